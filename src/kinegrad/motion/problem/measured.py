"""Soft starts: limits of a motion that begins where a body was measured to be.

A measured state can be outside limits, by noise or because the body is.  At part s of the first phase a limit of q, v
or a on one side is then

    limit + excess · max(0, 1 − s / settle)

with the excess of the measured value over it.  Of a coordinate whose measured speed v leads outwards, it is that of
q + v t₁, t₁ being the time of the second control point.  The limit holds for control points: each has the one at the
end of its support, so that the spline keeps it wherever it is made of such points.  Control points that the measured
state itself determines have no limits: as many at the start of q, v and a as consecutive derivatives are given.

Clearances and limits of joints that follow soften alike, and between the nodes, too.  What the measured posture cannot
fulfil, such as a foot's place to a millimetre, is asked for from the next instant on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError
from kinegrad.motion.problem.followers import Followed
from kinegrad.motion.problem.nodes import Block, Grid
from kinegrad.motion.problem.requirements import Boundary, Phase
from kinegrad.motion.problem.rest import given_posture

if TYPE_CHECKING:
    from kinegrad.motion.problem.transcription import Transcription

__all__ = ["SoftStart", "soft_start", "soften_rows"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SoftStart:
    """Measured values of splines, {(order, spline): value}, and how limits of the first phase begin there."""

    settle: float
    phase: Phase
    values: dict[tuple[int, int], float]

    def ramp(self, s: Array) -> Array:
        """Share of an excess that is left at parts of the phase."""
        return np.clip(1 - s / self.settle, 0.0, 1.0)

    def beyond(self, over: Array, s: Array) -> Array:
        """Excesses of rows over limits, (m, …), beyond those that the measured state has left at parts of the phase."""
        if not len(s) or s[0] > 0:
            return over
        return np.asarray(over - np.multiply.outer(self.ramp(s), np.maximum(over[0], 0.0)))

    def bounds(self, order: int, k: int, lower: float, upper: float) -> tuple[Array, Array]:
        """Limits of all control points of derivative `order` of a spline, (m − order,) each."""
        basis = self.phase.basis
        count = basis.control_points - order
        ends = basis.knots[np.arange(count) + basis.degree + 1 + order]
        ramp = self.ramp(ends)
        given = [(d, k) in self.values for d in range(order, 3)]
        low, high = np.full(count, lower), np.full(count, upper)
        if given[0]:
            at = self.values[order, k]
            rate = self.values.get((order + 1, k), 0.0) * self.phase.duration[1] * basis.greville[1]  # type: ignore[index]
            ahead = rate if order == 0 else 0.0
            low = low - max(lower - min(at, at + ahead), 0.0) * ramp
            high = high + max(max(at, at + ahead) - upper, 0.0) * ramp
        known = given.index(False) if False in given else len(given)
        low[:known], high[:known] = -np.inf, np.inf
        return low, high

    def outside(self, order: int, k: int, lower: float, upper: float) -> bool:
        """Return True if a measured value is outside its limits."""
        at = self.values.get((order, k))
        return at is not None and not lower <= at <= upper


def soft_start(parts: Transcription) -> SoftStart | None:
    """The soft start of a problem that begins at a measured state."""
    found = [one for one in parts.requirements if isinstance(one, Boundary) and one.measured]
    if not found:
        return None
    names = [phase.name for phase in parts.phases]
    for one in found:
        if one.phase not in (None, names[0]):
            raise InputError(f"`measured` of Boundary('start', phase={one.phase!r}) is True; expected the state where "
                             "the motion starts, as measured")  # fmt: skip
    values = {
        (order, k): pair[0]
        for (p, end, order, k), pair in parts.conditions.items() if (p, end) == (0, 0) and pair[0] == pair[1]
    }  # fmt: skip
    return SoftStart(max(one.settle for one in found), parts.phases[0], values)


def soften_rows(parts: Transcription) -> None:
    """Let heights and distances, and limits of joints that follow, begin where the measured state has them."""
    soft, q = parts.soft, given_posture(parts, 0, 0)
    if soft is None or q is None or parts.parts[0].design is not None:
        return
    where = parts.where
    v = np.array([soft.values.get((1, int(k)), np.nan) for k in where.spline]) * where.sign
    for grid in parts.grids:
        if grid.variables is not parts.variables.phases[0]:
            continue
        changed, ramp = [], soft.ramp(grid.s)[:, None]
        for block in grid.blocks:
            y = _at_start(grid, block, q, v)
            if y is None:
                changed.append(block)
                continue
            lower: Any = block.lower
            upper: Any = block.upper
            value = block.function.value(y)[0]
            low, high = (np.maximum(x, 0.0) * ramp for x in (lower[0] - value, value - upper[0]))
            changed.append(replace(block, lower=lower - low, upper=upper + high, s=grid.s))
        grid.blocks = tuple(changed)


def _at_start(grid: Grid, block: Block, q: Array, v: Array) -> Array | None:
    """Numbers at the measured state of which a block is a function, (1, all); None if it is not softened."""
    if grid.name == "clearance":
        return grid.mechanics.values(grid.layout, q[None])
    if not isinstance(block.function, Followed):
        return None
    y = np.zeros((1, grid.layout.all))
    y[0, grid.layout.state(0)], y[0, grid.layout.state(1)] = q, v
    columns = block.function.entries[1]
    return y if np.isfinite(y[0, columns]).all() else None
