"""The grids of a phase: nodes of its dynamics, instants where rows are kept, and what is asked for there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from kinegrad.constraints import ConstraintSet, Contact
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.cones import cone_rows
from kinegrad.motion.problem.followers import follower_blocks, follower_grid
from kinegrad.motion.problem.functions import Linear, Powers, SquaredDistance
from kinegrad.motion.problem.instants import clearance_instants, collocation_instants, node_instants
from kinegrad.motion.problem.kept_rows import Selected, named
from kinegrad.motion.problem.nodes import Block, Grid
from kinegrad.motion.problem.places import Above, Apart
from kinegrad.motion.problem.quantities import Mechanics
from kinegrad.motion.problem.requirements import Limits
from kinegrad.motion.problem.row_sizes import limit_scale, size_at_rest
from kinegrad.motion.problem.term_functions import effort_limits, term_blocks
from kinegrad.motion.problem.terms import Jerk
from kinegrad.motion.problem.variables import phase_numbers

if TYPE_CHECKING:
    from kinegrad.motion.problem.transcription import Transcription

Array = NDArray[np.float64]
Index = NDArray[np.int64]

LENGTH = 0.1  # m: size of rows of positions, and lever of moments
INTEGRALS = {3: 2, 4: 2, 5: 4}  # parts of a segment that integrals of squares of accelerations take, by the degree


def grids_of(parts: Transcription, p: int) -> list[Grid]:
    """All grids of a phase: dynamics, integrals, rows that are kept, clearances."""
    part, variables = parts.parts[p], parts.variables.phases[p]
    basis, none = part.phase.basis, np.zeros((0, 0), dtype=np.int64)
    grids = _dynamics(parts, p)
    groups: dict[tuple[float, ...], list[Selected]] = {}
    for one in part.kept:
        groups.setdefault(one.instants, []).append(one)
    for instants, chosen in groups.items():
        watched = ConstraintSet(part.model, _different([one.item.constraint for one in chosen]))
        names, columns, lower, upper = [], [], [], []
        mechanics = Mechanics(part.model, watched=watched, design=part.design, torques=False)
        start, first = mechanics.layout(1).error.start, 0
        for one in chosen:
            for row in one.rows:
                names.append(f"{one.item.label} {one.item.constraint.rows[row]}")
                columns.append(start + first + row)
                at = [one.item.instants.index(s) for s in instants]
                lower.append(one.item.lower[at, row])
                upper.append(one.item.upper[at, row])
            first += len(one.item.constraint.rows)
        function = Linear(tuple(names), np.arange(len(names)), columns, np.ones(len(names)))
        block = Block(function, np.stack(lower, 1), np.stack(upper, 1), np.full(len(names), LENGTH), label="kept")
        grids.append(Grid(basis, np.array(instants), mechanics, variables, none, 1, [block], "kept"))
    clearance = _clearance(parts, p)
    return [grid for grid in [*grids, *clearance] if grid.blocks]


def _clearance(parts: Transcription, p: int) -> list[Grid]:
    part, found = parts.parts[p], []
    none = np.zeros((0, 0), dtype=np.int64)
    groups: dict[tuple[float, ...], list[Any]] = {}
    for number, one in enumerate(parts.requirements):
        if isinstance(one, Above | Apart) and p in phase_numbers(parts.phases, one.phase, type(one).__name__):
            s = clearance_instants(np.union1d(part.nodes, part.phase.clear_at), one.during)
            groups.setdefault(tuple(s.tolist()), []).append((one, parts.label_of(one, number)))
    for instants, members in groups.items():
        contacts = []
        for one, label in members:
            place = one.other_point if isinstance(one, Above) else one.center
            directions: Any = [one.normal] if isinstance(one, Above) else "xyz"
            contacts.append(Contact(one.link, one.point, directions, one.other, place, name=label))
        watched = ConstraintSet(part.model, _different(contacts))
        mechanics = Mechanics(part.model, watched=watched, design=part.design, torques=False)
        first, blocks, K = mechanics.layout(1).error.start, [], len(instants)
        for one, label in members:
            if isinstance(one, Above):
                function: Any = Linear((label,), [0], [first], [1.0])
                lower, scale = np.full((K, 1), one.height), LENGTH
            else:
                function = SquaredDistance(label, first, one.distance, one.axis)
                lower, scale = np.ones((K, 1)), 1.0
            first += 1 if isinstance(one, Above) else 3
            blocks.append(Block(function, lower, np.full((K, 1), np.inf), np.array([scale]), label="clearance"))
        variables = parts.variables.phases[p]
        found.append(Grid(part.phase.basis, np.array(instants), mechanics, variables, none, 1, blocks, "clearance"))
    return found


def _dynamics(parts: Transcription, p: int) -> list[Grid]:
    part, phase = parts.parts[p], parts.phases[p]
    loads = phase.loads if part.design is None or part.design.loads is None else part.design.loads
    mechanics = Mechanics(part.model, loads, part.forced, part.forced_rows, None, part.design)
    jerk = any(isinstance(term, Jerk) for term in parts.terms)
    layout, K, u = mechanics.layout(4 if jerk else 3), len(part.nodes), parts.actuators
    blocks: list[Block] = []
    supplied = _supplied(parts, p)
    if len(supplied):
        blocks.append(_unsupplied(parts, p, layout, K, supplied))
    lower, upper = effort_limits(parts, p)
    bounded = np.isfinite(lower) | np.isfinite(upper)
    if bounded.any():
        names = tuple(f"torque of {name}" for name, there in zip(u.names, bounded, strict=True) if there)
        function = Linear.of_matrix(names, u.E[bounded], layout.tau.start)
        blocks.append(_limited(function, lower[bounded], upper[bounded], K, "torque"))
    blocks += _power_limits(parts, p, layout, K)
    blocks += follower_blocks(parts, p, layout, K)
    if part.forced is not None and part.feet:
        blocks += cone_rows(part, layout, K, [parts.force_size(part, name) for _, name in part.feet])
    fine = INTEGRALS[phase.degree]
    apart = phase.nodes < fine and not layout.forces
    if not apart:
        blocks += term_blocks(parts, p, layout, part.nodes, phase.nodes)
    here = parts.variables.phases[p], parts.variables.forces[p], layout.orders
    grids = [Grid(phase.basis, part.nodes, mechanics, *here, blocks, "dynamics")]
    followers = follower_grid(parts, p, layout.orders)
    grids += [] if followers is None else [followers]
    others = np.setdiff1d(np.arange(len(u.N)), supplied)
    if len(others):  # no force is unknown for them at each node: as many equations as accelerations have freedoms
        forces, s = parts.variables.forces[p], collocation_instants(phase)  # in time, and no more
        if part.forced is not None:  # where forces are known
            s, forces = part.nodes[:: phase.nodes], forces[:: phase.nodes]
        rows = [_unsupplied(parts, p, layout, len(s), others)]
        few = parts.variables.phases[p], forces[: len(s)], layout.orders
        grids.append(Grid(phase.basis, s, mechanics, *few, rows, "unsupplied"))
    if apart:  # limits at the nodes alone; integrals take more instants
        s = node_instants(phase, fine)
        grids.append(Grid(phase.basis, s, mechanics, *here, term_blocks(parts, p, layout, s, fine), "integrals"))
    return grids


def _supplied(parts: Transcription, p: int) -> Index:
    """Which of the torques without motors unknown forces can supply, at any posture but singular ones.

    A foot that is a point supplies two of the three of a body in the plane: nothing holds it from turning about the
    point.
    """
    part, N = parts.parts[p], parts.actuators.N
    best: Index = np.zeros(0, dtype=np.int64)
    if part.forced is None or not part.forced_rows or not len(N):
        return best
    sizes = _sizes_at_rest(parts, p, N)
    for q in np.random.default_rng(20080206).uniform(-0.5, 0.5, (3, part.model.nq)):
        reach = (N @ part.forced.jacobian(q)[list(part.forced_rows)].T) / sizes[:, None]
        _, r, order = qr(reach.T, mode="economic", pivoting=True)
        diagonal = np.abs(np.diag(r))
        rank = int((diagonal > 1e-6 * max(diagonal.max(initial=0.0), 1e-300)).sum())
        if rank > len(best):
            best = np.sort(order[:rank])
    return best


def _unsupplied(parts: Transcription, p: int, layout: Any, K: int, which: Index) -> Block:
    """Torques that no motor supplies are zero."""
    u = parts.actuators
    names = tuple(f"unactuated torque {u.row_names[i]}" for i in which)
    zero = np.zeros((K, len(names)))
    function, scale = Linear.of_matrix(names, u.N[which], layout.tau.start), _sizes_at_rest(parts, p, u.N[which])
    return Block(function, zero, zero, scale, sizes=np.zeros((2, len(names))), label="dynamics")


def _sizes_at_rest(parts: Transcription, p: int, rows: Array) -> Array:
    """Forces and moments of rows that are judged by nothing but their own equations."""
    found = size_at_rest(parts.parts[p].model, rows)
    return np.where(found > 0, found, 1.0)


def _limited(function: Any, lower: Array, upper: Array, K: int, label: str) -> Block:
    """Rows with limits: each side is judged by its own size."""
    scale = np.array([limit_scale(*pair) for pair in zip(lower, upper, strict=True)])
    low, high = (np.broadcast_to(x, (K, len(lower))) for x in (lower, upper))
    return Block(function, low, high, scale, sizes=np.abs([lower, upper]), label=label)


def _power_limits(parts: Transcription, p: int, layout: Any, K: int) -> list[Block]:
    blocks, u = [], parts.actuators
    for one in parts.requirements:
        if isinstance(one, Limits) and one.power is not None:
            if p not in phase_numbers(parts.phases, one.phase, "Limits"):
                continue
            found = checks.limits_of("power of Limits", one.power, u.names, parts.model.name, "actuator")
            if not found:
                continue
            i = np.array(sorted(found))
            names = tuple(f"power of {u.names[k]}" for k in i)
            bounds = np.array([found[k] for k in i])
            function = Powers(names, layout, u.E[i], u.S[:, i])
            blocks.append(_limited(function, bounds[:, 0], bounds[:, 1], K, "power"))
    return blocks


def _different(constraints: list[Any]) -> list[Any]:
    """Constraints under different names."""
    seen: dict[str, int] = {}
    found = []
    for one in constraints:
        seen[one.name] = seen.get(one.name, 0) + 1
        found.append(one if seen[one.name] == 1 else named(one, f"{one.name} ({seen[one.name]})"))
    return found
