"""From the declaration of a motion to a nonlinear program: unknowns, grids of nodes, rows and terms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.motion.problem.actuators import Actuators, actuators_of
from kinegrad.motion.problem.boundary_rows import spline_rows
from kinegrad.motion.problem.grids import LENGTH, grids_of
from kinegrad.motion.problem.instants import node_instants
from kinegrad.motion.problem.kept_rows import (
    Freedom,
    Item,
    Selected,
    bounds_of,
    constraint_of,
    kept_instants,
    named,
    rows_with_forces,
    select,
)
from kinegrad.motion.problem.measured import soft_start, soften_rows
from kinegrad.motion.problem.places import Foot, Guided, Held, Kept, Reach
from kinegrad.motion.problem.requirements import Periodic, Phase
from kinegrad.motion.problem.rest import check_clear, check_rates, torques_at_rest
from kinegrad.motion.problem.resting import Rests, lifted, sudden_loads, with_floors
from kinegrad.motion.problem.row_sizes import carried_weights
from kinegrad.motion.problem.upright import upright
from kinegrad.motion.problem.variables import (
    Coordinates,
    Variables,
    VariablesBuilder,
    conditions_of,
    coordinates_of,
    limits_of,
    meet,
    phase_numbers,
)  # fmt: skip

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PhaseParts:
    """What a phase is made of."""

    phase: Phase
    model: Model
    design: Design | None
    nodes: Array  # parts of the phase where dynamics is looked at
    forced: ConstraintSet | None
    forced_rows: tuple[int, ...]
    feet: tuple[tuple[Any, str], ...]  # Foot or Rests, and the name of its constraint
    kept: tuple[Selected, ...]
    items: tuple[Item, ...]


class Transcription:
    """All parts of the program of a :class:`MotionProblem`.

    `constants`: control points that conditions fix are unknowns, too, with bounds that meet.
    """

    def __init__(self, problem: Any, *, constants: bool = False) -> None:
        self.problem = problem
        self.model: Model = problem.model
        self.phases: tuple[Phase, ...] = problem.phases
        requirements, self.notes = upright(self.model, problem.requirements)
        self.requirements = with_floors(self.model, self.phases, requirements)
        self.notes += sudden_loads(self.phases, requirements)
        self.terms = problem.objective
        self.actuators: Actuators = actuators_of(self.model, problem.actuated)
        self.where: Coordinates = coordinates_of(self.model, self.requirements)
        self.conditions = conditions_of(self.model, self.phases, self.where, self.requirements)
        self.limits = limits_of(self.model, self.phases, self.where, self.requirements)
        self.soft = soft_start(self)
        check_rates(self)
        self.builder = VariablesBuilder(self.model, self.phases, self.where, self.limits, constants)
        self._soften()
        self.spline_conditions()
        self._weights = carried_weights(self.model, self._joined())
        self.parts = [self._phase_parts(p) for p in range(len(self.phases))]
        self.variables = self._variables()
        self.spline_rows = spline_rows(self)
        self.grids = [grid for p in range(len(self.phases)) for grid in grids_of(self, p)]
        soften_rows(self)
        self.check_counts()
        check_clear(self)
        self.at_rest = torques_at_rest(self)
        self.notes += self.at_rest

    def _soften(self) -> None:
        """Limits of control points that begin at a measured state."""
        if self.soft is None:
            return
        for k, pair in self.limits[0][0].items():
            ids = self.builder.point(0, np.arange(self.phases[0].basis.control_points), k)
            self.builder.lower[ids], self.builder.upper[ids] = self.soft.bounds(0, k, *pair)

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
                hint = ", or measured=True of that Boundary" if (p, end) == (0, 0) else ""
                what = f"q of {shown(name)} at the {'start' if end == 0 else 'end'} of phase {phases[p].name!r}"
                builder.bound(int(builder.point(p, 0 if end == 0 else -1, k)), lower, upper, what, hint)
                continue
            measured = self.soft is not None and (p, end) == (0, 0)  # speeds of zero are rows like others
            zero = not measured and lower == upper == 0 and self.rest.get((p, end, k), 0) == order - 1
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

    @property
    def returns(self) -> bool:
        """Whether the motion ends as it began.

        What is kept at the start is then kept at the end, and speeds and accelerations there are one condition each for
        both ends.  Where it ends as its mirror image began, these conditions are about the other side of the body, and
        leave a foot that stands all its control points.
        """
        return any(isinstance(one, Periodic) and not (one.mirror or one.advance) for one in self.requirements)

    def derivative_conditions(self, p: int, end: int) -> int:
        """How many control points at an end are taken by conditions on derivatives there.

        Where phases meet, a derivative that is prescribed counts on both sides, and one that goes on counts once; half
        of them are counted for each side.
        """
        given = {order for (q, e, order, _) in self.conditions if (q, e) == (p, end) and order > 0}
        before = p - 1 if end == 0 else p
        if not 0 <= before < len(self.phases) - 1:
            return max(max(given, default=0), int(self.returns))
        go_on = self.phases[before + 1].continuity
        count = sum(2 if order in given else 1 for order in range(1, go_on + 1))
        return (count + 1) // 2 if end == 1 else count // 2

    # --- phases ---------------------------------------------------------------------------------------------------

    def _phase_parts(self, p: int) -> PhaseParts:
        phase = self.phases[p]
        model, design = self.phase_model(phase)
        if phase.loads is not None:
            arrays = phase.loads.arrays(model)  # which checks its names
            if any(x.ndim != 2 for x in arrays.values()):
                raise InputError(f"`loads` of phase {phase.name!r} have batch axes; expected one load for all times")
            if design is not None and design.loads not in (None, phase.loads):
                raise InputError(
                    f"`loads` of phase {phase.name!r} differ from those of the design; expected one of the two"
                )
        items, feet = self._items(p, model)
        selected, notes = select(model, items, self._freedom(p, design))
        self.notes += [note for note in notes if note not in self.notes]
        forced: ConstraintSet | None = None
        rows: tuple[int, ...] = ()
        if any(item.forces for item in items):
            forced = ConstraintSet(model, [item.constraint for item in items if item.forces])
            rows = rows_with_forces(model, forced)
        nodes = node_instants(phase, phase.nodes)
        return PhaseParts(phase, model, design, nodes, forced, rows, tuple(feet), tuple(selected), tuple(items))

    def _freedom(self, p: int, design: Design | None) -> Freedom:
        """What can move in a phase."""
        where, builder = self.where, self.builder
        spread = np.zeros((self.model.nv, where.count))
        there = np.flatnonzero(where.spline >= 0)
        spread[there, where.spline[there]] = where.sign[there]
        bounds = [self.limits[p][0].get(k, (-np.inf, np.inf)) for k in range(where.count)]
        ends = {}
        for s, j in ((0.0, 0), (1.0, -1)):
            ids = [builder.root(int(builder.point(p, j, k))) for k in range(where.count)]
            low, high = builder.lower[ids], builder.upper[ids]
            with np.errstate(invalid="ignore"):
                held = meet(low, high)
            ends[s] = (held, np.where(held, np.where(held, low, 0.0), 0.0))
        lower, upper = np.array(bounds).T
        free = np.zeros(0, dtype=bool)
        if design is not None:
            free = self.problem.design_bounds[:, 0] < self.problem.design_bounds[:, 1]
        return Freedom(spread, where.offset, lower, upper, ends, design, free, self.soft is not None and p == 0)

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

    def _items(self, p: int, model: Model) -> tuple[list[Item], list[tuple[Any, str]]]:
        phase, items, feet = self.phases[p], [], []
        ends = (self.derivative_conditions(p, 0), self.derivative_conditions(p, 1))
        for number, one in enumerate(self.requirements):
            if not isinstance(one, Held | Reach | Guided | Kept | Foot | Rests):
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
                during = getattr(one, "during", (0.0, 1.0))
                leaves = isinstance(one, Rests) and lifted(self.model, self.phases, self.requirements, p, one)
                # what moves on freely need not leave a control point for going on: it rests until it leaves
                instants = kept_instants(phase.basis, (ends[0], 0) if leaves else ends, during)
                if (one.phase is None and p > 0) or (p > 0 and self._same_before(one, p)):
                    instants = tuple(s for s in instants if s > 0)
                ending = p == len(self.phases) - 1
                if self.returns and ending and one.phase is None and during[0] == 0:
                    instants = tuple(s for s in instants if s < 1)
            constraint = constraint_of(model, one)
            label = self.label_of(one, number)
            constraint = ConstraintSet(model, [named(constraint, constraint.name or label)]).constraints[0]
            lower, upper = bounds_of(one, len(constraint.rows), instants)
            forces = isinstance(one, Foot | Rests) or (isinstance(one, Kept) and bool(one.forces))
            items.append(Item(label, constraint, one, p, instants, lower, upper, forces))
            if isinstance(one, Foot | Rests):
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

    # --- unknowns -------------------------------------------------------------------------------------------------

    def _variables(self) -> Variables:
        nodes = [len(part.nodes) for part in self.parts]
        scales = [self.force_scales(part) for part in self.parts]
        forces = [len(part.forced_rows) for part in self.parts]
        found = self.builder.build(nodes, forces, scales, self.problem.design, self.problem.design_bounds)
        for p, part in enumerate(self.parts):
            for one, name in part.feet:
                if isinstance(one, Rests) and lifted(self.model, self.phases, self.requirements, p, one):
                    assert part.forced is not None
                    own = range(part.forced.m)[part.forced.rows(name)]
                    last = found.forces[p][-1, [k for k, row in enumerate(part.forced_rows) if row in own]]
                    found.lower[last] = found.upper[last] = 0.0
        return found

    def force_scales(self, part: PhaseParts) -> Array:
        """Sizes of forces and moments."""
        if part.forced is None:
            return np.zeros(0)
        turning = np.array([name.rsplit(".", 1)[-1] in ("X", "Y", "Z") for name in part.forced.row_names])
        sizes = np.array([self.force_size(part, part.forced.constraint_of(row)) for row in range(part.forced.m)])
        return np.asarray((np.where(turning, LENGTH, 1.0) * sizes)[list(part.forced_rows)])

    def force_size(self, part: PhaseParts, name: str) -> float:
        """Size of the forces of a constraint, N: half the weight of what it belongs to, as a foot carries."""
        assert part.forced is not None
        links = _links_of(self.model, part.forced[name])
        return 0.5 * float(max(self._weights[i] for i in links)) or 1.0

    def _joined(self) -> list[tuple[int, int]]:
        """Links that constraints with forces join."""
        kept = [one.constraint for one in self.requirements if isinstance(one, Kept) and one.forces]
        pairs = [_links_of(self.model, constraint) for constraint in kept]
        return [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]

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


def _links_of(model: Model, constraint: Any) -> list[int]:
    """The link that a constraint is about, and the other one if it has one."""
    joints = [getattr(constraint, what, None) for what in ("joint", "other")]
    if joints[0] is not None:
        return [model.joint_index(name) for name in joints if name is not None]
    names = (constraint.link, constraint.other)
    return [model.locate(name)[0] for name in names if name is not None]


def _of(one: Any) -> str:
    """The link or joint that a requirement is about."""
    if isinstance(one, Kept):
        return one.constraint.name or one.constraint.subject
    return str(getattr(one, "link", ""))


__all__ = ["PhaseParts", "Transcription"]
