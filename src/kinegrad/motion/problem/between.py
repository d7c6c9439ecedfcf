"""Between the nodes: a converged solution is looked at where the solver did not.

Splines fulfil dynamics and limits at nodes, and may do anything between them: with too few nodes, solvers converge to
motions that rattle.  So every row is evaluated again on a grid ten times as fine as the segments, forces interpolated
linearly between nodes.  What is found is the largest excess of each family of rows:

    dynamics    torques that nothing supplies, by half of the weight (moments: by a lever of 0.1 m of it)
    torque, power   excess over limits, by the limit
    cone        friction, pressure, torsion, by half of the weight
    kept        errors of contacts, loops, held and guided points, m or rad
    clearance   m; of Apart by the square of its distance

and a solution succeeds if all are within the tolerances.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import ConstraintSet
from kinegrad.errors import InputError, shown
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.functions import Linear
from kinegrad.motion.problem.kept_rows import bounds_of
from kinegrad.motion.problem.nodes import Block, Grid
from kinegrad.motion.problem.program import MotionProgram
from kinegrad.motion.problem.quantities import Mechanics
from kinegrad.results import Result

__all__ = ["BETWEEN", "Excess"]

Array = NDArray[np.float64]
BETWEEN: Mapping[str, float] = {
    "dynamics": 0.02, "torque": 0.02, "power": 0.02, "cone": 0.02, "kept": 1e-3, "clearance": 2e-3,
}  # fmt: skip
FINE = 10  # instants in each segment


@dataclass(frozen=True, eq=False)
class Excess(Result):
    """The largest excess of one family of rows on the fine grid.

    Attributes
    ----------
    family : str
    value : float
        Over the limit, in the unit of the family.
    tolerance : float
    row : str
        Which row.
    phase : str
    s : float
        At which part of the phase.
    """

    family: str
    value: float
    tolerance: float
    row: str
    phase: str
    s: float

    @property
    def within(self) -> bool:
        """Whether it is within its tolerance."""
        return self.value <= self.tolerance


class FineGrid(Grid):
    """A grid whose forces are interpolated between those of the nodes."""

    coarse: Array
    together = False

    def _forces(self, x: Array) -> Array:
        each = [np.interp(self.s, self.coarse, x[own]) for own in self.forces.T]
        return np.stack(each, axis=1)


def tolerances_of(given: Any) -> dict[str, float]:
    """The defaults, with changes."""
    found = dict(BETWEEN)
    if given is None:
        return found
    if not isinstance(given, Mapping) or not set(given) <= set(BETWEEN):
        raise InputError(
            f"`between` is {shown(given)}; expected a dictionary from some of {', '.join(BETWEEN)} to numbers"
        )
    for name, value in given.items():
        found[name] = checks.number(f"between[{name!r}]", value, least=0.0, infinite=True)
    return found


def fine_instants(phase: Any) -> Array:
    """Ten in each segment."""
    edges = phase.basis.breakpoints
    inner = np.arange(FINE) / FINE
    return np.append((edges[:-1, None] + np.diff(edges)[:, None] * inner).ravel(), 1.0)


def own_grid(program: MotionProgram, p: int) -> Grid | None:
    """The dynamics of a phase at its nodes, if the program has them."""
    here = program.parts.variables.phases[p]
    return next((x.grid for x in program.grids if x.grid.name == "dynamics" and x.grid.variables is here), None)


def fine_grid(program: MotionProgram, p: int, s: Array | None = None) -> FineGrid:
    """The dynamics of a phase on a fine grid, with all its rows; at these instants, if given."""
    if s is None:
        known = program.fine.get(p)
        if not isinstance(known, FineGrid):
            program.fine[p] = known = fine_grid(program, p, fine_instants(program.parts.phases[p]))
        return known
    parts = program.parts
    here, own = parts.variables.phases[p], own_grid(program, p)
    part = parts.parts[p]
    few = [x.grid for x in program.grids if x.grid.name == "unsupplied" and x.grid.variables is here]
    known = few[0] if own is None and few else own
    mechanics = Mechanics(part.model, parts.phases[p].loads, design=part.design) if known is None else known.mechanics
    blocks = [block for one in ([] if own is None else [own]) + few for block in one.rows]
    forces = parts.variables.forces[p]
    orders = 3 if known is None else known.orders
    grid = FineGrid(parts.phases[p].basis, s, mechanics, here, forces, orders, blocks, "fine")
    grid.coarse = part.nodes
    return grid


def excesses(program: MotionProgram, x: Array, tolerances: Mapping[str, float]) -> tuple[Excess, ...]:
    """The largest of each family."""
    worst: dict[str, Excess] = {}

    def look(family: str, over: Array, names: tuple[str, ...], phase: str, s: Array) -> None:
        if not over.size:
            return
        k, r = np.unravel_index(int(np.argmax(over)), over.shape)
        value = max(float(over[k, r]), 0.0)
        if family not in worst or value > worst[family].value:
            worst[family] = Excess(family, value, tolerances[family], names[r], phase, float(s[k]))

    for p, phase in enumerate(program.parts.phases):
        grid = fine_grid(program, p)
        y = grid.y(x)
        for block in grid.blocks:
            value = block.function.value(y)
            assert block.lower is not None
            assert block.upper is not None
            over = np.maximum(block.lower[:1] - value, value - block.upper[:1]) / block.scale
            look(block.label, over, block.function.names, phase.name, grid.s)
        for family, names, over, s in _kinematics(program, p, x):
            look(family, over, names, phase.name, s)
    return tuple(worst[name] for name in BETWEEN if name in worst)


def _kinematics(program: MotionProgram, p: int, x: Array) -> list[tuple[str, tuple[str, ...], Array, Array]]:
    """Rows that are kept, and clearances, on the fine grid."""
    parts, found = program.parts, []
    s, none = fine_instants(parts.phases[p]), np.zeros((0, 0), dtype=np.int64)
    part, variables = parts.parts[p], parts.variables.phases[p]
    for item in part.items:
        if len(item.instants) < 2:
            continue
        during = getattr(item.source, "during", (0.0, 1.0))
        at = s[(s >= during[0]) & (s <= during[1])]
        watched = ConstraintSet(part.model, [item.constraint])
        mechanics = Mechanics(part.model, watched=watched, design=part.design, torques=False)
        rows = np.arange(len(item.constraint.rows))
        names = tuple(f"{item.label} {row}" for row in item.constraint.rows)
        function = Linear(names, np.arange(len(rows)), mechanics.layout(1).error.start + rows, np.ones(len(rows)))
        grid = Grid(parts.phases[p].basis, at, mechanics, variables, none, 1, [Block(function)], "fine")
        value = function.value(grid.y(x))
        lower, upper = bounds_of(item.source, len(item.constraint.rows), at.tolist())
        found.append(("kept", names, np.maximum(lower[:, rows] - value, value - upper[:, rows]), at))
    for assembled in program.grids:
        own = assembled.grid
        if own.name == "clearance" and own.variables is variables:
            at = s[(s >= own.s[0]) & (s <= own.s[-1])]
            grid = Grid(parts.phases[p].basis, at, own.mechanics, variables, none, 1, own.blocks, "fine")
            y = grid.y(x)
            for block in own.blocks:
                assert block.lower is not None
                found.append(("clearance", block.function.names, block.lower[:1] - block.function.value(y), at))
    return found
