"""The objective on a fine grid: what a solver minimised, and what the motion itself has.

Integrals are sums over nodes.  With few nodes a motion can be cheap at them and dear between them.  So all terms are
integrated again with ten instants in each segment, and the difference is judged by

    Σ_p Σ_i |J_pi(fine) − J_pi(nodes)| / (Σ |T terms| + Σ_p Σ_i |w_i| ∫ |ψ_i| dt + Z)                                (1)

over phases p and terms i: differences do not cancel, and a term counts as much as it adds to the objective.  Z matters
only where an objective is zero but for differences of large numbers, as the effort of a motion that needs none: it is
(1) of squares of a hundredth of what their parts are made of, torques as in ``row_sizes.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.problem.functions import SmoothPower, Squares
from kinegrad.motion.problem.nodes import Block, Grid
from kinegrad.motion.problem.program import MotionProgram

Array = NDArray[np.float64]
ROUNDING = 1e-6  # of control points of 1 rad or m, by what solvers leave of speeds and accelerations that are zero
LEAST = 0.01  # of what torques and distances are made of: less is zero


@dataclass(frozen=True, eq=False)
class Difference:
    """How far the integrals of the nodes are from those of the motion."""

    value: float  # (1)
    by_phase: Array  # parts of it, (phases,)
    term: str  # that has the largest part
    phase: int
    s: float


def objective_difference(
    program: MotionProgram, x: Array, grids: Sequence[Grid], sizes: Any, most: float
) -> Difference | None:
    """(1), of the fine grids of all phases; None where the time is all that counts."""
    T = program.durations(x)
    size = float(np.abs(program.time_weights) @ T)
    off, worst = np.zeros(len(grids)), (-1.0, "", 0, 0.0)
    pairs: list[tuple[int, Block]] = []
    for p, grid in enumerate(grids):
        coarse = [(one.grid, block) for one in program.grids for block in one.grid.terms
                  if one.grid.variables is program.parts.variables.phases[p]]  # fmt: skip
        for (own, rough), fine in zip(coarse, grid.terms, strict=True):
            assert rough.weights is not None
            assert fine.weights is not None
            at_nodes, between = rough.function.value(own.y(x))[:, 0], fine.function.value(grid.y(x))[:, 0]
            size += float(T[p] * np.abs(between) @ np.abs(fine.weights))
            difference = float(T[p] * abs(between @ fine.weights - at_nodes @ rough.weights))
            off[p] += difference
            pairs.append((p, fine))
            if difference > worst[0]:
                apart = np.abs(between - np.interp(grid.s, own.s, at_nodes))
                worst = (difference, fine.function.names[0], p, float(grid.s[np.argmax(apart)]))
    if not pairs:
        return None
    if off.sum() > most * size:
        size += sum(T[p] * _zero(block, grids[p], x, sizes) for p, block in pairs)
    parts = off / size if size > 0 else np.zeros_like(off)
    return Difference(float(parts.sum()), parts, *worst[1:])


def _zero(block: Block, grid: Grid, x: Array, sizes: Any) -> float:
    """Z of one term, per second."""
    function, y, layout = block.function, np.abs(grid.y(x)), grid.layout
    if not isinstance(function, Squares | SmoothPower):
        return 0.0
    steep = np.abs(grid.b).sum(axis=2).T / grid.duration(x) ** np.arange(grid.orders)  # (K, orders)
    largest = max(1.0, float(np.abs(grid.control_points(x)).max(initial=0.0)))
    y[:, : layout.states] += ROUNDING * largest * np.repeat(steep, layout.nv, axis=1)
    if layout.torques:
        y[:, layout.tau] = sizes.of_rows(np.eye(layout.nv))
    assert block.weights is not None
    return float(function.magnitude(LEAST, y) @ np.abs(block.weights))
