"""Between the nodes: a converged solution is looked at where the solver did not.

Splines fulfil dynamics and limits at nodes, and may do anything between them: with too few nodes, solvers converge to
motions that rattle.  So every row is evaluated again on a grid ten times as fine as the segments, forces interpolated
linearly between nodes.  What is found is the largest excess of each family of rows:

    dynamics    torques that nothing supplies, by what their own equations are made of (``row_sizes.py``)
    torque, power   excess over a limit, by that limit; over a limit of zero, by what the row is made of
    speed       of joints that follow a coordinate, excess by the limit
    cone        friction, pressure, torsion, by what half of the weight that the foot may carry would allow
    kept        errors of contacts, loops, held and guided points, m or rad
    clearance   m; of Apart by the square of its distance
    objective   difference of the integrals from those of the motion itself, by its terms

Points are bounded at all times (``point_bounds.py``), other rows at these instants.  A solution succeeds if all are
within the tolerances.
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
from kinegrad.motion.problem.clearances import is_watched, points_between
from kinegrad.motion.problem.functions import Linear, Powers
from kinegrad.motion.problem.kept_rows import bounds_of
from kinegrad.motion.problem.nodes import Block, Grid
from kinegrad.motion.problem.objective_between import objective_difference
from kinegrad.motion.problem.program import MotionProgram
from kinegrad.motion.problem.quantities import Mechanics
from kinegrad.motion.problem.row_sizes import LEAST, row_sizes, size_at_rest
from kinegrad.motion.problem.term_functions import term_blocks
from kinegrad.results import Result

__all__ = ["BETWEEN", "Excess"]

Array = NDArray[np.float64]
BETWEEN: Mapping[str, float] = {
    "dynamics": 0.02, "torque": 0.02, "power": 0.02, "speed": 0.02, "cone": 0.02, "kept": 1e-3, "clearance": 2e-3,
    "objective": 0.01,
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
            program.fine[p] = known = _with_terms(program, p)
        return known
    parts = program.parts
    here, own = parts.variables.phases[p], own_grid(program, p)
    part = parts.parts[p]
    few = [x.grid for x in program.grids if x.grid.name == "unsupplied" and x.grid.variables is here]
    others = [x.grid for x in program.grids if x.grid.name == "integrals" and x.grid.variables is here]
    known = own if own is not None else next(iter(few + others), None)
    mechanics = Mechanics(part.model, parts.phases[p].loads, design=part.design) if known is None else known.mechanics
    blocks = [block for one in ([] if own is None else [own]) + few for block in one.rows]
    forces = parts.variables.forces[p]
    orders = 3 if known is None else known.orders
    grid = FineGrid(parts.phases[p].basis, s, mechanics, here, forces, orders, blocks, "fine")
    grid.coarse = part.nodes
    return grid


def _fine_followers(program: MotionProgram, p: int) -> list[FineGrid]:
    """Joints that follow, on a fine grid: a model of its own."""
    found = []
    for own in (x.grid for x in program.grids if x.grid.name == "followers" and program.phase_number(x.grid) == p):
        s = fine_instants(program.parts.phases[p])
        grid = FineGrid(own.basis, s, own.mechanics, own.variables, own.forces, own.orders, own.blocks, "fine")
        grid.coarse = own.s
        found.append(grid)
    return found


def _with_terms(program: MotionProgram, p: int) -> FineGrid:
    """The fine grid of a phase with rows and terms."""
    parts = program.parts
    grid = fine_grid(program, p, fine_instants(parts.phases[p]))
    terms = term_blocks(parts, p, grid.layout, grid.s, FINE)
    known = FineGrid(grid.basis, grid.s, grid.mechanics, grid.variables, grid.forces, grid.orders,
                     [*grid.blocks, *terms], "fine")  # fmt: skip
    known.coarse = grid.coarse
    return known


def excesses(program: MotionProgram, x: Array, tolerances: Mapping[str, float]) -> tuple[Excess, ...]:
    """The largest of each family."""
    worst: dict[str, Excess] = {}
    for one in excesses_by_phase(program, x, tolerances):
        if one.family not in worst or one.value > worst[one.family].value:
            worst[one.family] = one
    grids = [fine_grid(program, p) for p in range(len(program.parts.phases))]
    off = objective_difference(program, x, grids, OwnSizes(program, x), tolerances["objective"])
    if off is not None:
        phase = program.parts.phases[off.phase].name
        worst["objective"] = Excess("objective", off.value, tolerances["objective"], off.term, phase, off.s)
    return tuple(worst[name] for name in BETWEEN if name in worst)


def phases_outside(program: MotionProgram, x: Array, tolerances: Mapping[str, float]) -> set[str]:
    """Names of phases that are not good enough between their nodes, but for clearances."""
    rows = excesses_by_phase(program, x, tolerances)
    found = {one.phase for one in rows if not one.within and one.family != "clearance"}
    grids = [fine_grid(program, p) for p in range(len(program.parts.phases))]
    off = objective_difference(program, x, grids, OwnSizes(program, x), tolerances["objective"])
    if off is not None and off.value > tolerances["objective"]:
        part = tolerances["objective"] / len(grids)
        found |= {phase.name for phase, x in zip(program.parts.phases, off.by_phase, strict=True) if x > part}
    return found


def excesses_by_phase(program: MotionProgram, x: Array, tolerances: Mapping[str, float]) -> list[Excess]:
    """The largest of each family of rows in each phase."""
    worst: dict[tuple[str, str], Excess] = {}
    parts: Any = program.parts

    def measured(family: str, phase: str) -> bool:
        return parts.soft is not None and phase == parts.phases[0].name and family in ("kept", "speed", "clearance")

    def look(family: str, over: Array, names: tuple[str, ...], phase: str, s: Array) -> None:
        if not over.size:
            return
        if measured(family, phase):
            over = parts.soft.beyond(over, s)
        k, r = np.unravel_index(int(np.argmax(over)), over.shape)
        value = max(float(over[k, r]), 0.0)
        if (family, phase) not in worst or value > worst[family, phase].value:
            worst[family, phase] = Excess(family, value, tolerances[family], names[r], phase, float(s[k]))

    sizes = OwnSizes(program, x)
    for p, phase in enumerate(program.parts.phases):
        grid = fine_grid(program, p)
        for one in [grid, *_fine_followers(program, p)]:
            y = one.y(x)
            for block in one.rows:
                look(block.label, _over(block, one, y, sizes), block.function.names, phase.name, one.s)
        for family, names, over, s in _kinematics(program, p, x):
            look(family, over, names, phase.name, s)
        for seen in points_between(program, p, x, grid.s, tolerances):
            over, bound = seen.over, seen.bound
            if measured(seen.family, phase.name):
                over = parts.soft.beyond(over, seen.s)
                bound -= seen.over.max() - over.max()
            if over.max() <= tolerances[seen.family] < bound:  # no instant shows it, and nothing excludes it
                over = np.where(over == over.max(), bound, over)
            look(seen.family, over[:, None], (seen.name,), phase.name, seen.s)
    return list(worst.values())


def _over(block: Block, grid: Grid, y: Array, sizes: OwnSizes) -> Array:
    """Excess over both sides, each by its own size; where that is zero, by what the row is made of."""
    assert block.sizes is not None
    value, (lower, upper) = block.function.value(y), bounds_at(block, grid.s)
    by = block.sizes
    if (by == 0).any():
        by = np.where(by == 0, sizes.of(block.function, grid.layout), by)
    found = []
    for over, size in ((lower - value, by[0]), (value - upper, by[1])):
        there = ~np.isneginf(over) & (size > 0)  # a row without size has no torque
        found.append(np.divide(over, size, out=np.zeros_like(over), where=there))
    return np.asarray(np.maximum(found[0], found[1]))


def bounds_at(block: Block, s: Array) -> tuple[Array, Array]:
    """Bounds at other instants than those of the block, between which they are linear."""
    assert block.lower is not None
    assert block.upper is not None
    found = []
    for bounds in (block.lower, block.upper):
        if (bounds == bounds[:1]).all():
            found.append(np.broadcast_to(bounds[:1], (len(s), bounds.shape[1])))
        else:
            assert block.s is not None
            found.append(np.stack([np.interp(s, block.s, column) for column in bounds.T], axis=1))
    return found[0], found[1]


class OwnSizes:
    """Sizes of rows that have no limit to be judged by: means over a whole motion."""

    def __init__(self, program: MotionProgram, x: Array) -> None:
        self._program, self._x = program, x
        self._known: dict[bytes, Array] = {}

    def of(self, function: Any, layout: Any) -> Array:
        """Of the rows of a function of torques, or of powers, (R,)."""
        if isinstance(function, Powers):
            return self._mean(function.E, function.S)
        rows = np.zeros((len(function.names), layout.nv))
        r, c = function.entries
        np.add.at(rows, (r, c - layout.tau.start), function.coefficients)
        return self._mean(rows)

    def of_rows(self, rows: Array) -> Array:
        """Of rows of torques, (R, nv)."""
        return self._mean(rows)

    def _mean(self, rows: Array, speeds: Array | None = None) -> Array:
        key = rows.tobytes() + (b"" if speeds is None else speeds.tobytes())
        if key not in self._known:
            program, x = self._program, self._x
            T, total = program.durations(x), np.zeros(len(rows))
            for p, part in enumerate(program.parts.parts):
                grid = fine_grid(program, p)
                size = np.maximum(row_sizes(grid, x, rows), LEAST * size_at_rest(part.model, rows))
                if speeds is not None:
                    size = size * (np.abs(grid.y(x)[:, grid.layout.state(1)] @ speeds) + LEAST / T[p])
                total += T[p] * np.trapezoid(size, grid.s, axis=0)
            self._known[key] = np.asarray(total / T.sum())
        return self._known[key]


def _kinematics(program: MotionProgram, p: int, x: Array) -> list[tuple[str, tuple[str, ...], Array, Array]]:
    """Rows that are kept, on the fine grid."""
    parts, found = program.parts, []
    s, none = fine_instants(parts.phases[p]), np.zeros((0, 0), dtype=np.int64)
    part, variables = parts.parts[p], parts.variables.phases[p]
    for item in part.items:
        if len(item.instants) < 2 or is_watched(item):
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
    return found
