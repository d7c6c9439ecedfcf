"""Which rows of constraints are looked at, and when: as many as the splines can keep, and none twice.

A row φ(q(t)) = 0 cannot hold at all times, since splines have finitely many control points.  With m of them, of which
r₀ and r₁ are taken by conditions on speeds and accelerations at the ends, there are m − r₀ − r₁ to choose, and as
many instants can be asked for: 0, 1, and the means of k knots (Greville abscissae) of the control points
between.  These are the breakpoints if k = 3 and r₀ = r₁ = 1.  Each lies where its own basis function is not zero, so
by Schoenberg and Whitney the equations are independent; with more instants they would be too many.  Between them rows
are off by O(h^{k+1}).

Rows can depend on each other in one instant, too: two rows on one point, a planar model whose foot cannot leave its
plane, a start where all coordinates are given.  The dependence is structural, so it is found at random postures that
fulfil what is fixed; a row that adds nothing is left out, and its force with it.  What is left out must be fulfilled
by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import Constraint, ConstraintSet, Contact, Loop
from kinegrad.errors import InputError, shown
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model
from kinegrad.motion.bspline import SplineBasis
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.places import Foot, Guided, Held, Kept, Reach

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
MET = 1e-6  # m or rad, by which a row that is left out may be off
ZERO, HALF = 0.0, 0.5


@dataclass(frozen=True, eq=False)
class Item:
    """Rows of one constraint of one phase, and when they are asked for."""

    label: str
    constraint: Constraint
    source: Any
    phase: int
    instants: tuple[float, ...]
    lower: Array  # (instants, rows)
    upper: Array
    forces: bool = False
    everywhere: bool = False  # it goes on from the phase before


def kept_instants(basis: SplineBasis, conditions: tuple[int, int], during: tuple[float, float]) -> tuple[float, ...]:
    """When equations are asked for."""
    first, last = conditions
    m = basis.control_points
    inner = basis.greville[first + 1 : m - 1 - last]
    s = np.unique(np.round(np.concatenate([[0.0], inner, [1.0]]), 14))
    return tuple(float(x) for x in s if during[0] - 1e-12 <= x <= during[1] + 1e-12)


def named(constraint: Constraint, name: str) -> Constraint:
    """The same constraint by another name."""
    return replace(constraint, name=name)  # type: ignore[type-var]


def foot_constraint(model: Model, foot: Foot) -> Constraint:
    """The sole frame held where it stands."""
    q = np.zeros(model.nq)
    if foot.posture is not None:
        for i, value in checks.per_name("posture of Foot", foot.posture, model.coordinate_names, model.name).items():
            q[i] = checks.number(f"posture of Foot({foot.link!r}), {model.coordinate_names[i]}", value)
    i, placement = model.locate(foot.link)
    here = forward_kinematics(model, q).transform[i]
    if placement is not None:
        here = here @ placement
    sole = np.asarray(foot.sole)
    stands = sole if foot.at is None else np.asarray(foot.at)
    inside = np.linalg.solve(here, sole)
    inside[3] = [0, 0, 0, 1]
    if foot.size is None:
        axes = np.ascontiguousarray(stands[:3, :3].T)
        return Contact(foot.link, inside[:3, 3], directions=axes, other_point=stands[:3, 3])
    u, _, vt = np.linalg.svd(inside[:3, :3])
    inside[:3, :3] = u @ vt
    return Loop(foot.link, inside, other_placement=stands)


def constraint_of(model: Model, one: Any) -> Constraint:
    """Of a requirement."""
    if isinstance(one, Kept):
        return one.constraint
    if isinstance(one, Foot):
        return foot_constraint(model, one)
    if isinstance(one, Guided):
        return Contact(one.link, one.point, one.directions)
    if one.other is not None:
        return Contact(one.link, one.point, one.directions, one.other, one.other_point)
    return Contact(one.link, one.point, one.directions, other_point=one.at)


def bounds_of(one: Any, rows: int, instants: Sequence[float]) -> tuple[Array, Array]:
    """Of its rows at these instants, (instants, rows)."""
    zero = np.zeros((len(instants), rows))
    if isinstance(one, Held | Reach) and one.other is not None:
        zero += np.asarray(one.at)[["xyz".index(c) for c in one.directions]]
    if not isinstance(one, Guided):
        return zero, zero.copy()
    span = one.during[1] - one.during[0]
    s = (np.asarray(instants) - one.during[0]) / (span if span else 1.0)
    places = one.places(np.clip(s, 0, 1))[:, ["xyz".index(c) for c in one.directions]]
    return places - one.tolerance, places + one.tolerance


@dataclass(frozen=True, eq=False)
class Selected:
    """Rows of one item that are asked for, each with its instants."""

    item: Item
    rows: tuple[int, ...]
    instants: tuple[float, ...]


def select(
    model: Model, items: Sequence[Item], fixed: dict[float, tuple[Mask, Array]], limits: tuple[Array, Array]
) -> tuple[list[Selected], list[str]]:
    """Independent rows of the items of one phase; notes on what is left out.

    `fixed` are coordinates that are constant at the instants 0 and 1, with their values; `limits` those of q.
    """
    notes: list[str] = []
    chosen: dict[tuple[int, int], list[float]] = {}
    known: dict[Any, list[tuple[int, int]]] = {}
    sets = [ConstraintSet(model, [item.constraint]) for item in items]
    every = sorted({s for item in items for s in item.instants})
    for s in every:
        active = tuple(k for k, item in enumerate(items) if s in item.instants)
        held, values = fixed.get(s, (np.zeros(model.nv, dtype=bool), np.zeros(model.nv)))
        key = (active, held.tobytes(), values.tobytes())
        if key not in known:
            known[key] = _independent(model, items, sets, active, held, values, limits, notes, s)
        for pair in known[key]:
            chosen.setdefault(pair, []).append(s)
    found: dict[tuple[int, tuple[float, ...]], list[int]] = {}
    for (k, row), instants in chosen.items():
        found.setdefault((k, tuple(instants)), []).append(row)
    return [Selected(items[k], tuple(rows), instants) for (k, instants), rows in found.items()], notes


def _independent(
    model: Model, items: Sequence[Item], sets: Sequence[ConstraintSet], active: tuple[int, ...], held: Mask,
    values: Array, limits: tuple[Array, Array], notes: list[str], s: float,
) -> list[tuple[int, int]]:  # fmt: skip
    rng = np.random.default_rng(19970917)
    low, high = (np.clip(np.where(np.isfinite(x), x, side), -1, 1) for x, side in zip(limits, (-1, 1), strict=True))
    q = np.where(held, values, low + rng.uniform(0.2, 0.8, (3, model.nq)) * (high - low))
    G = {k: sets[k].jacobian(q) * ~held for k in active}
    basis = np.zeros((3, 0, model.nv))
    found = []
    for k in active:
        equal = items[k].lower == items[k].upper
        for row in range(sets[k].m):
            if not equal[:, row].all():
                found.append((k, row))
                continue
            g = G[k][:, row]
            size = np.linalg.norm(sets[k].jacobian(q)[:, row], axis=1)
            left = g.copy()
            for _ in range(2):
                left -= np.einsum("kmi,km->ki", basis, np.einsum("kmi,ki->km", basis, left))
            length = np.linalg.norm(left, axis=1)
            if (length > 1e-7 * np.maximum(size, 1e-9)).any() and length.max() > 1e-9:
                found.append((k, row))
                unit = left / np.maximum(length, 1e-300)[:, None]
                basis = np.concatenate([basis, unit[:, None]], axis=1)
            else:
                _check_met(model, items[k], sets[k], row, q, held, s, not basis.shape[1] or not g.any())
                what = f"{sets[k].row_names[row]} of {items[k].label}"
                when = f" at the {'start' if s == 0 else 'end'}" if held.any() and s in (0.0, 1.0) else ""
                notes.append(f"{what}{when} is left out: other conditions say the same")
    return found


def _check_met(
    model: Model, item: Item, rows: ConstraintSet, row: int, q: Array, held: Mask, s: float, alone: bool
) -> None:
    """Where nothing that can move changes a row, it must be fulfilled as it is."""
    if not alone:
        return
    error = (
        rows.error(q)[:, row] - item.lower[min(range(len(item.instants)), key=lambda k: abs(item.instants[k] - s)), row]
    )
    if np.abs(error).max() > MET:
        when = "at the start" if s == 0 else "at the end" if s == 1 else f"at {s:.3g} of the phase"
        raise InputError(
            f"{item.label} cannot be met {when}: row {shown(rows.row_names[row])} is {np.abs(error).max():.3g} off, "
            "and no coordinate that is free there moves it; boundary conditions are inconsistent with it"
        )
