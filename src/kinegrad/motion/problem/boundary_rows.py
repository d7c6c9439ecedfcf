"""Rows of splines: conditions at ends, continuity, bounds on speeds and accelerations, periodicity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.requirements import Periodic
from kinegrad.motion.problem.row_sizes import limit_scale
from kinegrad.motion.problem.spline_rows import Share, SplineRow

if TYPE_CHECKING:
    from kinegrad.motion.problem.transcription import Transcription

Array = NDArray[np.float64]
SLOW = 1e-3  # rad/s, m/s and so on: speeds at ends that are asked for are met by a part of themselves, down to this


def spline_rows(parts: Transcription) -> list[SplineRow]:
    """Boundary conditions that are no ties, continuity where phases meet, bounds on v and a, periodicity."""
    rows: list[SplineRow] = []
    names = parts.model.coordinate_names
    for p, end, order, k in parts.rows_left:
        lower, upper = parts.conditions[p, end, order, k]
        if p > 0 and end == 0 and (p - 1, 1, order, k) in parts.rows_left:
            continue  # where phases meet, the first has it
        name = f"{'qva'[order]} of {names[parts.where.leaders[k]]} at the {'start' if end == 0 else 'end'}"
        share = _share(parts, p, parts.phases[p].basis.values([float(end)], order)[0], k, order)
        scale = float(np.clip(limit_scale(lower, upper), SLOW, 1.0))
        rows.append(SplineRow(name, (share,), lower, upper, scale, float(end), parts.phases[p].name))
    for p in range(1, len(parts.phases)):
        for order in range(1, parts.phases[p].continuity + 1):
            for k in range(parts.where.count):
                if parts.rest.get((p, 0, k), 0) >= order and parts.rest.get((p - 1, 1, k), 0) >= order:
                    continue
                before = _share(parts, p - 1, parts.phases[p - 1].basis.values([1.0], order)[0], k, order)
                after = _share(parts, p, parts.phases[p].basis.values([0.0], order)[0], k, order, -1.0)
                name = f"{'qva'[order]} of {names[parts.where.leaders[k]]} going on into phase {parts.phases[p].name!r}"
                rows.append(SplineRow(name, (before, after), 0.0, 0.0, 1.0, 0.0, parts.phases[p].name))
    rows += _hull_rows(parts)
    rows += _periodic_rows(parts)
    return [row for row in rows if _says_something(parts, row)]


def _says_something(parts: Transcription, row: SplineRow) -> bool:
    """Whether a row has unknowns; one without must be fulfilled."""
    if any(share.columns for share in row.shares):
        return True
    if any(share.constant and share.order and share.duration >= 0 for share in row.shares):
        return True
    value = sum(share.constant / share.duration_value**share.order for share in row.shares)
    if not row.lower - 1e-9 <= value <= row.upper + 1e-9:
        raise InputError(f"{row.name} is {value:.6g} by other conditions, outside {row.lower:g} … {row.upper:g}; "
                         "boundary conditions are inconsistent")  # fmt: skip
    return False


def _hull_rows(parts: Transcription) -> list[SplineRow]:
    """Bounds on v and a, of the control points of these splines."""
    rows = []
    for p, phase in enumerate(parts.phases):
        for order in (1, 2):
            matrix = phase.basis.hull(order)
            at = np.linspace(0, 1, len(matrix))
            for k, (lower, upper) in parts.limits[p][order].items():
                if np.isinf(lower) and np.isinf(upper):
                    continue
                what = f"{'qva'[order]} of {parts.model.coordinate_names[parts.where.leaders[k]]}"
                scale = limit_scale(lower, upper)
                low, high = np.full(len(matrix), lower), np.full(len(matrix), upper)
                if parts.soft is not None and p == 0:
                    low, high = parts.soft.bounds(order, k, lower, upper)
                for j, weights in enumerate(matrix):
                    share = _share(parts, p, weights, k, order)
                    if share.columns and np.isfinite([low[j], high[j]]).any():
                        row = SplineRow(what, (share,), low[j], high[j], scale, float(at[j]), phase.name)
                        rows.append(row)
    return rows


def _periodic_rows(parts: Transcription) -> list[SplineRow]:
    rows = []
    names, last = parts.model.coordinate_names, len(parts.phases) - 1
    for one in (x for x in parts.requirements if isinstance(x, Periodic)):
        advance = checks.values_of("advance of Periodic", one.advance, names, parts.model.name)
        partner = {parts.model.coordinate_index(name): (parts.model.coordinate_index(other), sign)
                   for name, (other, sign) in one.mirror.items()}  # fmt: skip
        for i in range(parts.model.nv):
            j, sign = partner.get(i, (i, 1.0))
            if parts.where.spline[i] < 0 or parts.where.spline[j] < 0:
                continue
            if int(parts.where.spline[i]) in {int(parts.where.spline[h]) for h in range(i)}:
                continue  # it follows another coordinate
            for order in range(one.orders + 1):
                lower, upper = advance.get(i, (0.0, 0.0)) if order == 0 else (0.0, 0.0)
                k, h = int(parts.where.spline[i]), int(parts.where.spline[j])
                end = _share(
                    parts, last, parts.phases[last].basis.values([1.0], order)[0], k, order, parts.where.sign[i]
                )
                begin = _share(
                    parts, 0, parts.phases[0].basis.values([0.0], order)[0], h, order, -sign * parts.where.sign[j]
                )
                name = f"{'qva'[order]} of {names[i]}, periodic"
                rows.append(SplineRow(name, (end, begin), lower, upper, 1.0, 1.0, parts.phases[last].name))
    return rows


def _share(parts: Transcription, p: int, weights: Array, k: int, order: int, sign: float = 1.0) -> Share:
    """weights · control points of spline k in phase p, over T^order."""
    phase, variables = parts.phases[p], parts.variables.phases[p]
    columns, coefficients, constant = [], [], 0.0
    for j in np.flatnonzero(weights):
        column = int(variables.points[j, k])
        if column < 0:
            constant += sign * weights[j] * variables.values[j, k]
        else:
            columns.append(column)
            coefficients.append(sign * float(weights[j]))
    T = float(phase.duration[0])  # type: ignore[index]
    return Share(tuple(columns), tuple(coefficients), constant, order, variables.duration, T)
