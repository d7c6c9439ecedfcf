"""From the declaration of a motion to a nonlinear program: unknowns, grids of nodes, rows and terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import ConstraintSet, Contact
from kinegrad.design import Design
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.actuators import Actuators, actuators_of
from kinegrad.motion.problem.cones import cone_rows
from kinegrad.motion.problem.functions import Linear, Powers, SmoothPower, SquaredDistance, Squares, User
from kinegrad.motion.problem.kept_rows import Item, Selected, bounds_of, constraint_of, kept_instants, named, select
from kinegrad.motion.problem.nodes import Block, Grid
from kinegrad.motion.problem.quantities import Mechanics
from kinegrad.motion.problem.requirements import (
    Above,
    Apart,
    Boundary,
    Foot,
    Guided,
    Held,
    Kept,
    Limits,
    Periodic,
    Phase,
    Reach,
)  # fmt: skip
from kinegrad.motion.problem.spline_rows import Share, SplineRow
from kinegrad.motion.problem.terms import Acceleration, Effort, Follow, Jerk, Posture, Power, Time, UserTerm
from kinegrad.motion.problem.variables import (
    Coordinates,
    Variables,
    VariablesBuilder,
    conditions_of,
    coordinates_of,
    limits_of,
    phase_numbers,
)  # fmt: skip

Array = NDArray[np.float64]
LENGTH = 0.1  # m: size of rows of positions, and lever of moments


@dataclass(frozen=True, eq=False)
class PhaseParts:
    """What a phase is made of."""

    phase: Phase
    model: Model
    design: Design | None
    nodes: Array  # parts of the phase where dynamics is looked at
    forced: ConstraintSet | None
    forced_rows: tuple[int, ...]
    feet: tuple[tuple[Foot, str], ...]
    kept: tuple[Selected, ...]


def node_instants(phase: Phase, nodes: int) -> Array:
    """Where dynamics is looked at: `nodes` equal parts of each segment."""
    edges = phase.basis.breakpoints
    inner = np.arange(nodes) / nodes
    s = (edges[:-1, None] + np.diff(edges)[:, None] * inner).ravel()
    return np.append(s, 1.0)


RULES = {2: (1 / 6, 4 / 6, 1 / 6), 3: (1 / 8, 3 / 8, 3 / 8, 1 / 8), 4: (1 / 12, 4 / 12, 2 / 12, 4 / 12, 1 / 12)}


def quadrature(phase: Phase, nodes: int) -> Array:
    """Weights of integrals over the part of the phase: Simpson's rules in each segment, or the trapezoid rule."""
    lengths = np.diff(phase.basis.breakpoints)
    ends = np.full(nodes + 1, 1 / nodes)
    ends[[0, -1]] /= 2
    rule = np.array(RULES.get(nodes, ends))
    w = np.zeros(len(lengths) * nodes + 1)
    for k, h in enumerate(lengths):
        w[k * nodes : (k + 1) * nodes + 1] += h * rule
    return w


class Transcription:
    """All parts of the program of a :class:`MotionProblem`."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self.model: Model = problem.model
        self.phases: tuple[Phase, ...] = problem.phases
        self.requirements, self.terms = problem.requirements, problem.objective
        self.notes: list[str] = []
        self.actuators: Actuators = actuators_of(self.model, problem.actuated)
        self.where: Coordinates = coordinates_of(self.model, self.requirements)
        self.conditions = conditions_of(self.model, self.phases, self.where, self.requirements)
        self.limits = limits_of(self.model, self.phases, self.where, self.requirements)
        self.builder = VariablesBuilder(self.model, self.phases, self.where, self.limits)
        self.spline_conditions()
        self.force_size = max(0.5 * self.model.total_mass * float(np.linalg.norm(self.model.gravity)), 1.0)
        self.parts = [self._phase_parts(p) for p in range(len(self.phases))]
        self.variables = self._variables()
        self.spline_rows = self._spline_rows()
        self.grids = [grid for p in range(len(self.phases)) for grid in self._grids(p)]
        self.check_counts()

    # --- splines --------------------------------------------------------------------------------------------------

    def spline_conditions(self) -> None:
        """Ties and bounds of control points; what is not one of these stays a row."""
        self.rows_left: list[tuple[int, int, int, int]] = []
        self.rest: dict[tuple[int, int, int], int] = {}  # (phase, end, spline): derivatives that are zero
        builder, phases = self.builder, self.phases
        for p in range(1, len(phases)):
            for k in range(self.where.count):
                builder.tie(int(builder.point(p - 1, -1, k)), int(builder.point(p, 0, k)))
        for (p, end, order, k), (lower, upper) in sorted(self.conditions.items(), key=lambda x: x[0][2]):
            name = self.model.coordinate_names[self.where.leaders[k]]
            if order == 0:
                what = f"q of {shown(name)} at the {'start' if end == 0 else 'end'} of phase {phases[p].name!r}"
                builder.bound(int(builder.point(p, 0 if end == 0 else -1, k)), lower, upper, what)
                continue
            zero = lower == upper == 0 and self.rest.get((p, end, k), 0) == order - 1
            if zero:
                one, two = (order - 1, order) if end == 0 else (-order, -order - 1)
                if phases[p].basis.control_points <= order:
                    raise InputError(f"phase {phases[p].name!r} has {phases[p].basis.control_points} control points, "
                                     "too few for its boundary conditions; expected more segments")  # fmt: skip
                builder.tie(int(builder.point(p, one, k)), int(builder.point(p, two, k)))
                self.rest[p, end, k] = order
            else:
                self.rows_left.append((p, end, order, k))
        self._check_few()

    def _check_few(self) -> None:
        """Refuse splines with more conditions than control points."""
        for p, phase in enumerate(self.phases):
            for k in range(self.where.count):
                count = sum(
                    1 for (q, _, _, j), (lower, upper) in self.conditions.items() if (q, j) == (p, k) and lower == upper
                )
                if count > phase.basis.control_points:
                    name = self.model.coordinate_names[self.where.leaders[k]]
                    raise InputError(
                        f"phase {phase.name!r} has {phase.basis.control_points} control points for a coordinate, and "
                        f"{shown(name)} has {count} boundary conditions in it; expected more segments"
                    )

    def derivative_conditions(self, p: int, end: int) -> int:
        """How many derivatives are prescribed at an end: 1 where phases meet, or the motion is periodic."""
        given = max((order for (q, e, order, _) in self.conditions if (q, e) == (p, end)), default=0)
        inner = (end == 0 and p > 0) or (end == 1 and p + 1 < len(self.phases))
        periodic = any(isinstance(one, Periodic) for one in self.requirements)
        return max(given, 1 if inner or periodic else 0)

    def end_values(self, p: int) -> dict[float, tuple[Any, Array]]:
        """Coordinates that are constant at the start and the end of a phase, with their values."""
        found = {}
        for s, j in ((0.0, 0), (1.0, -1)):
            held, values = np.zeros(self.model.nv, dtype=bool), np.zeros(self.model.nv)
            for i in range(self.model.nv):
                k = int(self.where.spline[i])
                if k < 0:
                    held[i], values[i] = True, self.where.offset[i]
                    continue
                a = self.builder.root(int(self.builder.point(p, j, k)))
                low, high = self.builder.lower[a], self.builder.upper[a]
                if high - low <= 1e-9 * (1 + abs(low)):
                    held[i], values[i] = True, self.where.sign[i] * 0.5 * (low + high)
            found[s] = (held, values)
        return found

    # --- phases ---------------------------------------------------------------------------------------------------

    def _phase_parts(self, p: int) -> PhaseParts:
        phase = self.phases[p]
        model, design = self.phase_model(phase)
        for loaded in [] if phase.loads is None else [phase.loads]:
            loaded.arrays(model)  # which checks its names
        items, feet = self._items(p, model)
        still = {i: self.where.offset[i] for i in range(model.nv) if self.where.spline[i] < 0}
        fixed = self.end_values(p)
        inner = (
            np.array([i in still for i in range(model.nv)]),
            np.array([still.get(i, 0.0) for i in range(model.nv)]),
        )
        moments = {s: fixed.get(s, inner) for item in items for s in item.instants}
        low, high = self._q_limits(p)
        selected, notes = select(model, items, moments, (low, high))
        self.notes += [note for note in notes if note not in self.notes]
        with_forces = [item for item in items if item.forces]
        forced, rows = None, []
        if with_forces:
            forced = ConstraintSet(model, [item.constraint for item in with_forces])
            for item in with_forces:
                there = (
                    {r for one in selected if one.item is item for r in one.rows} if item.instants else set(range(99))
                )
                first = forced.rows(item.constraint.name).start
                rows += [first + r for r in range(len(item.constraint.rows)) if r in there]
        return PhaseParts(
            phase, model, design, node_instants(phase, phase.nodes), forced, tuple(rows), tuple(feet), tuple(selected)
        )  # fmt: skip

    def phase_model(self, phase: Phase) -> tuple[Model, Design | None]:
        """With what is attached in this phase."""
        design = self.problem.design
        model = self.model
        for link, (mass, point) in phase.attached.items():
            model = model.attach(link, mass, point=point)
        if design is None or not phase.attached:
            return model, design
        if design._function is not None:
            function, attached = design._function, dict(phase.attached)

            def built(*arguments: Any, **values: Any) -> Any:
                made = function(*arguments, **values)
                body, loads = made if isinstance(made, tuple) else (made, None)
                for link, (mass, point) in attached.items():
                    body = body.attach(link, mass, point=point)
                return body if loads is None else (body, loads)

            given = design.values if design._keywords is None else dict(zip(design.names, design.values, strict=True))
            return model, Design.from_function(built, given)
        links = {model.link_names[model.locate(link)[0]] for link in phase.attached}
        for name, terms in design._terms.items():
            for constant, _ in terms:
                bodies = {model.link_names[constant.where[0]]} if constant.what in ("mass", "com", "inertia") else set()
                if bodies & links and isinstance(dict(design.parameters)[name], str):
                    raise InputError(f"parameter {shown(name)} is a constant of a link that carries a mass in phase "
                                     f"{phase.name!r}; expected a combination of constants instead")  # fmt: skip
        return model, Design(model, design.parameters, design.loads)

    def _items(self, p: int, model: Model) -> tuple[list[Item], list[tuple[Foot, str]]]:
        phase, items, feet = self.phases[p], [], []
        ends = (self.derivative_conditions(p, 0), self.derivative_conditions(p, 1))
        for number, one in enumerate(self.requirements):
            if not isinstance(one, Held | Reach | Guided | Kept | Foot):
                continue
            if isinstance(one, Reach):
                last = phase_numbers(self.phases, one.phase, "Reach")
                target = last[0] if one.phase else (0 if one.when == "start" else len(self.phases) - 1)
                if p != target:
                    continue
                instants: tuple[float, ...] = (0.0,) if one.when == "start" else (1.0,)
            else:
                if p not in phase_numbers(self.phases, one.phase, type(one).__name__):
                    continue
                instants = kept_instants(phase.basis, ends, getattr(one, "during", (0.0, 1.0)))
                if (one.phase is None and p > 0) or (p > 0 and self._same_before(one, p)):
                    instants = tuple(s for s in instants if s > 0)
            constraint = constraint_of(model, one)
            label = self.label_of(one, number)
            constraint = ConstraintSet(model, [named(constraint, constraint.name or label)]).constraints[0]
            lower, upper = bounds_of(one, len(constraint.rows), instants)
            forces = isinstance(one, Foot) or (isinstance(one, Kept) and bool(one.forces))
            items.append(Item(label, constraint, one, p, instants, lower, upper, forces))
            if isinstance(one, Foot):
                feet.append((one, constraint.name))
        return items, feet

    def _same_before(self, one: Any, p: int) -> bool:
        """Whether the phase before has the same requirement."""
        before = self.phases[p - 1].name
        return any(
            type(other) is type(one) and other.phase == before and replace(other, phase=one.phase) == one
            for other in self.requirements
        )

    def label_of(self, one: Any, number: int) -> str:
        """What messages call a requirement."""
        kind = type(one).__name__
        subject = _of(one)
        alike = [k for k, other in enumerate(self.requirements) if type(other) is type(one) and _of(other) == _of(one)]
        text = f"{kind.lower()} {subject}"
        return text if len(alike) == 1 else f"{text} #{alike.index(number) + 1}"

    def _q_limits(self, p: int) -> tuple[Array, Array]:
        low, high = np.full(self.model.nv, -np.inf), np.full(self.model.nv, np.inf)
        for i in range(self.model.nv):
            k, sign = int(self.where.spline[i]), self.where.sign[i]
            if k >= 0 and k in self.limits[p][0]:
                a, b = self.limits[p][0][k]
                low[i], high[i] = (a, b) if sign > 0 else (-b, -a)
        return low, high

    # --- unknowns -------------------------------------------------------------------------------------------------

    def _variables(self) -> Variables:
        nodes = [len(part.nodes) for part in self.parts]
        scales = [self.force_scales(part) for part in self.parts]
        forces = [len(part.forced_rows) for part in self.parts]
        return self.builder.build(nodes, forces, scales, self.problem.design, self.problem.design_bounds)

    def force_scales(self, part: PhaseParts) -> Array:
        """Sizes of forces and moments."""
        if part.forced is None:
            return np.zeros(0)
        turning = np.array([name.rsplit(".", 1)[-1] in ("X", "Y", "Z") for name in part.forced.row_names])
        return np.asarray(np.where(turning, LENGTH, 1.0)[list(part.forced_rows)] * self.force_size)

    def share(self, p: int, weights: Array, k: int, order: int, sign: float = 1.0) -> Share:
        """weights · control points of spline k in phase p, over T^order."""
        phase, variables = self.phases[p], self.variables.phases[p]
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

    def _spline_rows(self) -> list[SplineRow]:
        rows: list[SplineRow] = []
        names = self.model.coordinate_names
        for p, end, order, k in self.rows_left:
            lower, upper = self.conditions[p, end, order, k]
            if p > 0 and end == 0 and (p - 1, 1, order, k) in self.rows_left:
                continue  # where phases meet, the first has it
            name = f"{'qva'[order]} of {names[self.where.leaders[k]]} at the {'start' if end == 0 else 'end'}"
            share = self.share(p, self.phases[p].basis.values([float(end)], order)[0], k, order)
            rows.append(SplineRow(name, (share,), lower, upper, 1.0, float(end), self.phases[p].name))
        for p in range(1, len(self.phases)):
            for order in range(1, self.phases[p].continuity + 1):
                for k in range(self.where.count):
                    if self.rest.get((p, 0, k), 0) >= order and self.rest.get((p - 1, 1, k), 0) >= order:
                        continue
                    before = self.share(p - 1, self.phases[p - 1].basis.values([1.0], order)[0], k, order)
                    after = self.share(p, self.phases[p].basis.values([0.0], order)[0], k, order, -1.0)
                    name = (
                        f"{'qva'[order]} of {names[self.where.leaders[k]]} going on into phase {self.phases[p].name!r}"
                    )
                    rows.append(SplineRow(name, (before, after), 0.0, 0.0, 1.0, 0.0, self.phases[p].name))
        rows += self._hull_rows()
        rows += self._periodic_rows()
        return [row for row in rows if self._says_something(row)]

    def _says_something(self, row: SplineRow) -> bool:
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

    def _hull_rows(self) -> list[SplineRow]:
        """Bounds on v and a, of the control points of these splines."""
        rows = []
        for p, phase in enumerate(self.phases):
            for order in (1, 2):
                matrix = phase.basis.hull(order)
                at = np.linspace(0, 1, len(matrix))
                for k, (lower, upper) in self.limits[p][order].items():
                    if np.isinf(lower) and np.isinf(upper):
                        continue
                    what = f"{'qva'[order]} of {self.model.coordinate_names[self.where.leaders[k]]}"
                    scale = max(abs(x) for x in (lower, upper) if np.isfinite(x)) or 1.0
                    for j, weights in enumerate(matrix):
                        share = self.share(p, weights, k, order)
                        if share.columns:
                            rows.append(SplineRow(what, (share,), lower, upper, scale, float(at[j]), phase.name))
        return rows

    def _periodic_rows(self) -> list[SplineRow]:
        rows = []
        names, last = self.model.coordinate_names, len(self.phases) - 1
        for one in (x for x in self.requirements if isinstance(x, Periodic)):
            advance = checks.values_of("advance of Periodic", one.advance, names, self.model.name)
            partner = {self.model.coordinate_index(name): (self.model.coordinate_index(other), sign)
                       for name, (other, sign) in one.mirror.items()}  # fmt: skip
            for i in range(self.model.nv):
                j, sign = partner.get(i, (i, 1.0))
                if self.where.spline[i] < 0 or self.where.spline[j] < 0:
                    continue
                if int(self.where.spline[i]) in {int(self.where.spline[h]) for h in range(i)}:
                    continue  # it follows another coordinate
                for order in range(one.orders + 1):
                    lower, upper = advance.get(i, (0.0, 0.0)) if order == 0 else (0.0, 0.0)
                    k, h = int(self.where.spline[i]), int(self.where.spline[j])
                    end = self.share(
                        last, self.phases[last].basis.values([1.0], order)[0], k, order, self.where.sign[i]
                    )
                    begin = self.share(
                        0, self.phases[0].basis.values([0.0], order)[0], h, order, -sign * self.where.sign[j]
                    )
                    name = f"{'qva'[order]} of {names[i]}, periodic"
                    rows.append(SplineRow(name, (end, begin), lower, upper, 1.0, 1.0, self.phases[last].name))
        return rows

    # --- grids ----------------------------------------------------------------------------------------------------

    def _grids(self, p: int) -> list[Grid]:
        part, variables = self.parts[p], self.variables.phases[p]
        basis, none = part.phase.basis, np.zeros((0, 0), dtype=np.int64)
        grids = self._dynamics(p)
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
        clearance = self._clearance(p)
        return [grid for grid in [*grids, *clearance] if grid.blocks]

    def _clearance(self, p: int) -> list[Grid]:
        part, found = self.parts[p], []
        none = np.zeros((0, 0), dtype=np.int64)
        groups: dict[tuple[float, ...], list[Any]] = {}
        for number, one in enumerate(self.requirements):
            if isinstance(one, Above | Apart) and p in phase_numbers(self.phases, one.phase, type(one).__name__):
                s = part.nodes[(part.nodes >= one.during[0] - 1e-12) & (part.nodes <= one.during[1] + 1e-12)]
                if len(s):
                    groups.setdefault(tuple(s.tolist()), []).append((one, self.label_of(one, number)))
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
            variables = self.variables.phases[p]
            found.append(Grid(part.phase.basis, np.array(instants), mechanics, variables, none, 1, blocks, "clearance"))
        return found

    def _dynamics(self, p: int) -> list[Grid]:
        part, phase = self.parts[p], self.phases[p]
        loads = phase.loads
        mechanics = Mechanics(part.model, loads, part.forced, part.forced_rows, None, part.design)
        jerk = any(isinstance(term, Jerk) for term in self.terms)
        layout, K, u = mechanics.layout(4 if jerk else 3), len(part.nodes), self.actuators
        blocks: list[Block] = []
        if len(u.N):
            names = tuple(f"unactuated torque {name}" for name in u.row_names)
            zero = np.zeros((K, len(names)))
            sizes = np.array([self._row_size(row) for row in u.N])
            blocks.append(Block(Linear.of_matrix(names, u.N, layout.tau.start), zero, zero, sizes, label="dynamics"))
        lower, upper = self.effort_limits(p)
        bounded = np.isfinite(lower) | np.isfinite(upper)
        if bounded.any():
            names = tuple(f"torque of {name}" for name, there in zip(u.names, bounded, strict=True) if there)
            sizes = np.array([max(abs(x) for x in pair if np.isfinite(x)) or 1.0
                              for pair in zip(lower[bounded], upper[bounded], strict=True)])  # fmt: skip
            function = Linear.of_matrix(names, u.E[bounded], layout.tau.start)
            low, high = (np.broadcast_to(x[bounded], (K, len(names))) for x in (lower, upper))
            blocks.append(Block(function, low, high, sizes, label="torque"))
        blocks += self._power_limits(p, layout, K)
        if part.forced is not None and part.feet:
            blocks += cone_rows(part, layout, K, self.force_size)
        apart = phase.nodes == 1 and not layout.forces
        if not apart:
            blocks += self._term_blocks(p, layout, part.nodes, phase.nodes)
        here = self.variables.phases[p], self.variables.forces[p], layout.orders
        grids = [Grid(phase.basis, part.nodes, mechanics, *here, blocks, "dynamics")]
        if apart:  # limits at the breakpoints alone; integrals take the middles, too
            s = node_instants(phase, 2)
            grids.append(Grid(phase.basis, s, mechanics, *here, self._term_blocks(p, layout, s, 2), "integrals"))
        return grids

    def _row_size(self, row: Array) -> float:
        """Of a force or a moment."""
        first = int(np.flatnonzero(row)[0])
        sliding = not self.model.coordinates and self.model.joints[first].kind == "prismatic"
        return float(self.force_size * (1.0 if sliding else LENGTH))

    def effort_limits(self, p: int) -> tuple[Array, Array]:
        """Of actuators in a phase."""
        lower, upper = self.actuators.lower.copy(), self.actuators.upper.copy()
        for one in self.requirements:
            if not isinstance(one, Limits) or one.tau is None:
                continue
            names = self.actuators.names
            found = checks.limits_of("tau of Limits", one.tau, names, self.model.name, "actuator")
            if p in phase_numbers(self.phases, one.phase, "Limits"):
                for i, (low, high) in found.items():
                    lower[i], upper[i] = max(lower[i], low), min(upper[i], high)
                    if lower[i] > upper[i]:
                        raise InputError(f"limits of tau of {shown(names[i])} are crossed")
        return lower, upper

    def _power_limits(self, p: int, layout: Any, K: int) -> list[Block]:
        blocks, u = [], self.actuators
        for one in self.requirements:
            if isinstance(one, Limits) and one.power is not None:
                if p not in phase_numbers(self.phases, one.phase, "Limits"):
                    continue
                found = checks.limits_of("power of Limits", one.power, u.names, self.model.name, "actuator")
                i = np.array(sorted(found))
                names = tuple(f"power of {u.names[k]}" for k in i)
                bounds = np.array([found[k] for k in i])
                sizes = np.array([max((abs(x) for x in pair if np.isfinite(x)), default=1.0) or 1.0 for pair in bounds])
                low, high = (np.broadcast_to(bounds[:, side], (K, len(i))) for side in (0, 1))
                function = Powers(names, layout, u.E[i], u.S[:, i])
                blocks.append(Block(function, low, high, sizes, label="power"))
        return blocks

    def _term_blocks(self, p: int, layout: Any, s: Array, nodes: int) -> list[Block]:
        blocks = []
        for term in self.terms:
            if isinstance(term, Time) or p not in phase_numbers(self.phases, term.phase, type(term).__name__):
                continue
            function = self._function(term, p, layout, s)
            blocks.append(
                Block(function, weights=term.weight * quadrature(self.phases[p], nodes), label=type(term).__name__)
            )
        return blocks

    def _function(self, term: Any, p: int, layout: Any, s: Array) -> Any:
        model, u = self.model, self.actuators
        if isinstance(term, Effort):
            weights = self._factors(term, u.names, "actuator", 0.0)
            if term.relative:
                lower, upper = self.effort_limits(p)
                size = np.maximum(np.abs(lower), np.abs(upper))
                if np.isinf(size[weights != 0]).any():
                    k = int(np.argmax(np.isinf(size) & (weights != 0)))
                    raise InputError(f"Effort(relative=True) needs a limit for every actuator, and {shown(u.names[k])} "
                                     "has none; give it one with Limits(tau=…)")  # fmt: skip
                weights = weights / np.where(np.isfinite(size), np.maximum(size, 1e-300), 1.0) ** 2
            rows, columns = np.nonzero(u.E)
            return Squares("effort", rows, columns + layout.tau.start, u.E[rows, columns], weights)
        if isinstance(term, Power):
            return SmoothPower("power", Powers(u.names, layout, u.E, u.S), term.smoothing)
        if isinstance(term, UserTerm):
            return User(term.name, layout, term.function, s)
        order = {Acceleration: 2, Jerk: 3}.get(type(term), 0)
        weights = self._factors(term, model.coordinate_names, "coordinate", 0.0)
        target = None
        if isinstance(term, Posture):
            given = checks.per_name("q of Posture", term.q, model.coordinate_names, model.name)
            target = np.array([checks.number("q of Posture", given.get(i, 0.0)) for i in range(model.nv)])
            weights = weights * np.array([i in given for i in range(model.nv)])
        if isinstance(term, Follow):
            motion = term.motion
            if len(self.phases) > 1 and term.phase is None:
                raise InputError("Follow has no `phase`, and there are several; expected the one that its motion lasts")
            if motion.coordinate_names != model.coordinate_names or motion.q.ndim != 2:
                raise InputError(f"`motion` of Follow is {motion!r}; expected one of the coordinates of {model.name!r}")
            t = motion.t[0] + s * (motion.t[-1] - motion.t[0])
            t[-1] = motion.t[-1]
            target = motion(t).q
        number = np.arange(model.nv)
        return Squares(
            type(term).__name__.lower(), number, number + order * layout.nv, np.ones(model.nv), weights, target
        )

    def _factors(self, term: Any, names: tuple[str, ...], kind: str, missing: float) -> Array:
        what = f"by of {type(term).__name__}"
        given = checks.per_name(what, term.by, names, self.model.name, kind)
        return np.array(
            [checks.number(what, given[i], least=0.0) if i in given else missing for i in range(len(names))]
        )

    # --- counts ---------------------------------------------------------------------------------------------------

    def check_counts(self) -> None:
        """Refuse more equations than unknowns."""
        equations = sum(row.lower == row.upper for row in self.spline_rows)
        for grid in self.grids:
            for block in grid.rows:
                equations += int(np.sum(np.asarray(block.lower) == np.asarray(block.upper)))
        if self.variables.n == 0:
            raise InputError("the conditions leave nothing to choose: all control points are fixed, and so is the time")
        if equations > self.variables.n:
            raise InputError(f"the problem has {equations} equations and {self.variables.n} unknowns; expected more "
                             "unknowns: more segments, fewer nodes, or fewer conditions")  # fmt: skip


def _of(one: Any) -> str:
    """The link or joint that a requirement is about."""
    if isinstance(one, Kept):
        return one.constraint.name or one.constraint.subject
    return str(getattr(one, "link", ""))


def _different(constraints: list[Any]) -> list[Any]:
    """Constraints under different names."""
    seen: dict[str, int] = {}
    found = []
    for one in constraints:
        seen[one.name] = seen.get(one.name, 0) + 1
        found.append(one if seen[one.name] == 1 else named(one, f"{one.name} ({seen[one.name]})"))
    return found


__all__ = ["Boundary", "Transcription", "node_instants", "quadrature"]
