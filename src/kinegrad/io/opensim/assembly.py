"""From the records of an ``.osim`` file to a model.

A joint of OpenSim places the child's joint frame by p = Σ fᵢ aᵢ in the parent's joint frame and turns it by
R = R₁ R₂ R₃, each about an axis fixed in what the former have turned.  So it is three sliders, then three hinges, of
which those by constants are merged into the placements of the others.  A joint that is reached from its child is
walked backwards: the same motions inverted, in the opposite order.  Bodies that nothing moves (welds, joints of which
all coordinates are locked) become one link with their parent, and keep their names as frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints.descriptions import Constraint
from kinegrad.errors import shown
from kinegrad.io.model_file import Note, Repair
from kinegrad.io.moving_bodies import Bodies, MassProperties, Part
from kinegrad.io.opensim.constraints import make_constraints
from kinegrad.io.opensim.document import Axis, CoordinateRecord, Coupler, Document, JointRecord
from kinegrad.io.opensim.frames import GROUND
from kinegrad.io.opensim.functions import compose, constant_of
from kinegrad.model import Inertia, Joint, Model, ModelBuilder
from kinegrad.model.functions import CoordinateFunction, LinearFunction
from kinegrad.model.placement import rotate, translate

__all__ = ["Assembled", "assemble"]

Array = NDArray[np.float64]
IDENTITY = LinearFunction()


@dataclass
class Assembled:
    """A model, and what became of its file's coordinates."""

    model: Model
    motion_types: dict[str, str]  # of the coordinates of the model
    defaults: dict[str, float]
    locked: dict[str, float]  # coordinates that are held, and where
    coupled: dict[str, tuple[str, CoordinateFunction]]  # dependent coordinates: of which one, and how
    unlimited: list[CoordinateRecord]  # clamped coordinates whose limits no joint of the model can have
    markers: dict[str, str]  # names of markers in the file: names of frames in the model
    homeless: list[str]  # bodies and markers fixed in the ground
    notes: list[Note]  # of inertias that no body has, and constraints that there cannot be
    constraints: list[Constraint]
    repairs: list[Repair]


def assemble(found: Document, bodies: Bodies, *, locked: str) -> Assembled | None:
    """The model; None, and problems of the file, if there is none."""
    return _Assembly(found, bodies, locked).run()


class _Assembly:
    def __init__(self, found: Document, made: Bodies, locked: str) -> None:
        self.found, self.file, self.made = found, found.file, made
        self.hold = locked == "fixed"
        self.notes: list[Note] = []
        self.coordinates: dict[str, CoordinateRecord] = {}
        self.resolved: dict[str, tuple[str, CoordinateFunction]] = {}
        self.moved: dict[str, dict[str, CoordinateFunction]] = {}
        self.own: dict[str, str] = {}

    def run(self) -> Assembled | None:
        found, file = self.found, self.file
        for joint in found.joints:
            for coordinate in joint.coordinates:
                if coordinate.name in self.coordinates:
                    file.problem(coordinate.element, f"coordinate {shown(coordinate.name)} is there twice; rename one")
                self.coordinates[coordinate.name] = coordinate
        order = self._tree()
        self._resolve()
        file.check()
        hosts: dict[str, tuple[str | None, Array]] = {GROUND: (None, np.eye(4))}
        chains: dict[str, list[tuple[Any, ...]]] = {}
        parts: dict[str, list[tuple[Part, Array]]] = {}
        for name, joint, above in order:
            chain = chains[name] = self._chain(joint, backwards=joint.child != name)
            host, T = hosts[above]
            if len(chain) == 1:  # nothing moves it
                hosts[name] = host, T @ chain[0][0]
            else:
                hosts[name] = name, np.eye(4)
                parts[name] = []
            host, T = hosts[name]
            if (part := self._part(name)) is None:
                continue
            if host is None:
                self.made.note_fixed(part)
            else:
                parts[host].append((part, T))
        bodies = {name: self.made.make(name, each) for name, each in parts.items()}
        for part, text in self.made.problems:
            file.problem(part.element, text)
        self._check_masses(order, hosts)
        file.check()
        builder = ModelBuilder(found.name, gravity=found.gravity)
        for name, joint, above in order:
            if hosts[name][0] == name:
                self._add(builder, name, joint, hosts[above], chains[name], bodies[name])
        if not self.own and not self.moved:
            file.problem(found.model, "nothing in it moves; expected a joint with a coordinate that is not locked")
            file.check()
        for label, moved in self.moved.items():
            if set(moved) != {label} or moved[label] != IDENTITY:
                file.guard(self.coordinates[label].element, builder.couple, label, moved)
        homeless = [name for name, (host, _) in hosts.items() if host is None and name != GROUND]
        for name, (host, T) in hosts.items():
            if host is not None and host != name:
                file.guard(found.bodies[name].element, builder.add_frame, name, host, T)
        markers = self._markers(builder, hosts, homeless)
        constraints, notes = make_constraints(file, found.constraints, hosts)
        self.notes += notes
        file.check()
        model: Model | None = file.guard(found.model, builder.build)
        file.check()
        if model is None:
            return None
        names = set(model.coordinate_names)
        kept = {name: c for name, c in self.coordinates.items() if name in names}
        unlimited = [c for name, c in kept.items() if (c.clamped or c.locked) and name not in self.own]
        locked = {name: c.default for name, c in self.coordinates.items() if self._held(name)}
        types = {name: c.motion_type for name, c in kept.items()}
        defaults = {name: c.default for name, c in kept.items()}
        notes = [*self.made.notes, *self.notes]
        files = (unlimited, markers, homeless, notes, constraints, self.made.repairs())
        return Assembled(model, types, defaults, locked, self.resolved, *files)

    # --- the tree -----------------------------------------------------------------------------------------------

    def _tree(self) -> list[tuple[str, JointRecord, str]]:
        """Bodies outward from the ground, each with its joint and the body that it hangs on."""
        found, file = self.found, self.file
        at: dict[str, list[JointRecord]] = {}
        for joint in found.joints:
            for body in (joint.parent, joint.child):
                if body and body != GROUND and body not in found.bodies:
                    file.problem(joint.element, f"names body {shown(body)}, which the file does not have")
                at.setdefault(body, []).append(joint)
            if joint.parent == joint.child:
                file.problem(joint.element, f"connects body {shown(joint.child)} with itself; expected two bodies")
        order, seen, waiting = [], {GROUND}, [GROUND]
        while waiting:
            above = waiting.pop(0)
            for joint in at.get(above, []):
                name = joint.child if joint.parent == above else joint.parent
                if name in found.bodies and name not in seen:
                    seen.add(name)
                    order.append((name, joint, above))
                    waiting.append(name)
        used = {id(joint) for _, joint, _ in order}
        for joint in found.joints:
            if id(joint) not in used and {joint.parent, joint.child} <= seen and joint.parent != joint.child:
                hint = "a closed loop is not read; cut it there and close it by a constraint"
                file.problem(joint.element, f"closes a loop of bodies; {hint}")
        for name, record in found.bodies.items():
            if name not in seen:
                joints = at.get(name)
                why = "no joint leads from the ground to it" if joints else "it has no joint (OpenSim lets it float)"
                file.problem(record.element, f"body {shown(name)}: {why}; add one, such as a FreeJoint")
        if not found.bodies:
            file.problem(found.model, "has no bodies; expected at least one")
        return order

    def _part(self, name: str) -> Part | None:
        """The mass properties of a body as the file states them; None if they are no numbers, which is a problem."""
        body = self.found.bodies[name]
        if not (np.isfinite([body.mass, *body.com]).all() and np.isfinite(body.inertia).all() and body.mass >= 0):
            return None
        own = MassProperties(body.mass, body.com, body.inertia)
        return Part(name, own, own.wrong, body.element, body.element.line)

    def _check_masses(self, order: Any, hosts: Any) -> None:
        """Find joints that move no mass."""
        beyond = {name: body.mass for name, body in self.found.bodies.items()}
        for name, _, above in reversed(order):
            if above != GROUND:
                beyond[above] += beyond[name]
        for name, joint, _ in order:
            if hosts[name][0] == name and beyond[name] == 0:
                if self.made.refuse_massless:
                    text = f"moves body {shown(name)}, and nothing from there on has mass"
                    self.file.problem(joint.element, f"{text}; give it some, or read with massless=True")
                else:
                    self.made.note_idle(joint.name, name, joint.element.line)

    # --- coordinates --------------------------------------------------------------------------------------------

    def _held(self, name: str) -> bool:
        return self.hold and self.coordinates[name].locked

    def _resolve(self) -> None:
        """Which coordinate each dependent one follows in the end, and how."""
        couplers: dict[str, Coupler] = {}
        for coupler in self.found.couplers:
            for name in (coupler.dependent, coupler.independent):
                if name not in self.coordinates:
                    self.file.problem(coupler.element, f"names coordinate {shown(name)}, which the file does not have")
                    return
            if coupler.dependent in couplers:
                other = shown(couplers[coupler.dependent].name)
                text = f"coordinate {shown(coupler.dependent)} depends by {other}, too; expected one coupler of it"
                self.file.problem(coupler.element, text)
            couplers[coupler.dependent] = coupler
        for name in couplers:
            function: CoordinateFunction | None = IDENTITY
            at, passed = name, set[str]()
            while at in couplers and function is not None:
                if at in passed:
                    self.file.problem(couplers[at].element, "couplers refer to each other in a circle; remove one")
                    function = None
                    break
                passed.add(at)
                function = self.file.guard(couplers[at].element, compose, function, couplers[at].function)
                at = couplers[at].independent
            if function is not None:
                self.resolved[name] = at, function

    def _drive(self, axis: Axis) -> tuple[str | None, CoordinateFunction]:
        """The coordinate of the model that moves an axis, and how; None, and a constant, if nothing does."""
        name, function = axis.coordinate, axis.function
        if name is None:
            value = constant_of(function)
            if value is None:
                raise ValueError("an axis has a function but no coordinates; expected a Constant, or a coordinate")
            return None, LinearFunction(0.0, value)
        if name in self.resolved:
            name, inner = self.resolved[name]
            function = compose(function, inner)
        if self._held(name):
            at = np.array([self.coordinates[name].default])
            return None, LinearFunction(0.0, float(function.derivatives(at, 0)[0][0]))
        value = constant_of(function)
        return (name, function) if value is None else (None, LinearFunction(0.0, value))

    def _chain(self, joint: JointRecord, *, backwards: bool) -> list[tuple[Any, ...]]:
        """Constant transforms, and between each two of them what moves: (T,), (axis, kind, …, T), …"""
        parts: list[Any] = [joint.in_parent]
        for axis in joint.axes:
            driven = self.file.guard(joint.element, self._drive, axis)
            if driven is None:
                continue
            name, function = driven
            if name is None:
                parts.append(_motion(axis.kind, axis.axis, function.offset))
            else:
                parts.append((axis, name, function))
        parts.append(np.linalg.inv(joint.in_child))
        if backwards:
            parts = [np.linalg.inv(x) if isinstance(x, np.ndarray) else (_turned(x[0]), *x[1:]) for x in parts[::-1]]
        chain: list[tuple[Any, ...]] = [(np.eye(4),)]
        for part in parts:
            if isinstance(part, np.ndarray):
                chain[-1] = (*chain[-1][:-1], chain[-1][-1] @ part)
            else:
                chain.append((*part, np.eye(4)))
        return chain

    def _add(
        self,
        builder: ModelBuilder,
        name: str,
        joint: JointRecord,
        host: tuple[str | None, Array],
        chain: list[tuple[Any, ...]],
        inertia: Inertia,
    ) -> None:
        """The primitives of a joint; the last of them moves the body."""
        (first,), *moving = chain
        above, base = host
        T = base @ first
        own = self._own_axes([(axis, coordinate, function) for axis, coordinate, function, _ in moving])
        for k, (axis, coordinate, function, after) in enumerate(moving):
            last = k == len(moving) - 1
            direction = axis.axis
            numbers: dict[str, Any] = {}
            label = f"{joint.name}.{axis.slot}"
            if own.get(coordinate) == k:
                label, record = coordinate, self.coordinates[coordinate]
                self.own[coordinate] = label
                if function == LinearFunction(-1.0):
                    direction, function = -direction, IDENTITY
                if record.locked:
                    numbers["position_limits"] = (record.default, record.default)
                elif record.clamped:
                    numbers["position_limits"] = record.range
            self.moved.setdefault(coordinate, {})[label] = function
            link = name if last else f"{joint.name}.{axis.slot}"
            body: dict[str, Any] = {"inertia": inertia, "tip": _rigid(after)} if last else {}
            kind = Joint(axis.kind, tuple(direction.tolist()))
            add = partial(builder.add, link=link, placement=_rigid(T), **body, **numbers)
            self.file.guard(joint.element, add, label, above, kind)
            above, T = link, after
        self._check_clamp(joint)

    def _check_clamp(self, joint: JointRecord) -> None:
        for record in joint.coordinates:
            if record.clamped and not record.range[0] <= record.range[1]:
                self.file.problem(record.element, "its range is empty; expected the lower number first")

    def _own_axes(self, moving: list[tuple[Axis, str, CoordinateFunction]]) -> dict[str, int]:
        """Which axis of a joint is its coordinate itself, if any: the last that it moves one to one."""
        found: dict[str, int] = {}
        for k, (axis, coordinate, function) in enumerate(moving):
            kinds = {"rotational": "revolute", "translational": "prismatic"}
            fits = kinds.get(self.coordinates[coordinate].motion_type, axis.kind) == axis.kind
            plain = axis.coordinate == coordinate and function in (IDENTITY, LinearFunction(-1.0))
            if fits and plain and coordinate not in self.own:
                found[coordinate] = k
        return found

    # --- markers ------------------------------------------------------------------------------------------------

    def _markers(
        self, builder: ModelBuilder, hosts: dict[str, tuple[str | None, Array]], homeless: list[str]
    ) -> dict[str, str]:
        taken = {name for name, (host, _) in hosts.items() if host is not None}
        found: dict[str, str] = {}
        for marker in self.found.markers:
            if marker.name in found:
                self.file.problem(marker.element, f"marker {shown(marker.name)} is there twice; rename one")
                continue
            if marker.body not in hosts:
                self.file.problem(
                    marker.element, f"is fixed in body {shown(marker.body)}, which the file does not have"
                )
                continue
            host, T = hosts[marker.body]
            if host is None:
                homeless.append(marker.name)
                continue
            label = marker.name if marker.name not in taken else f"{marker.name}.marker"
            place = T[:3, :3] @ marker.location + T[:3, 3]
            if self.file.guard(marker.element, builder.add_frame, label, host, place) is not None:
                found[marker.name] = label
                taken.add(label)
        return found


def _motion(kind: str, axis: Array, amount: float) -> Array:
    return rotate(axis, amount) if kind == "revolute" else translate(*(amount * axis))


def _turned(axis: Axis) -> Axis:
    """The inverse motion."""
    return Axis(axis.slot, axis.kind, -axis.axis, axis.coordinate, axis.function)


def _rigid(T: Array) -> Array:
    """Its last row exactly 0 0 0 1, whatever products and inverses have left there."""
    found = np.array(T)
    found[3] = (0.0, 0.0, 0.0, 1.0)
    return found
