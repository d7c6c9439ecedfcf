"""Limits of joints that follow a coordinate: q̂ = f(q), of a mimic joint, a gear, a knee.

Their ranges and speeds are limits of the coordinate.  Where f is linear, bounds on control points become narrower, and
hold at all times.  Other functions make rows at the nodes,

    lower ≤ f(q) ≤ upper,        |f′(q) v| ≤ limit                                                                   (1)

if the range of the coordinate does not exclude that they are exceeded.

The motor of a coordinate supplies Σ_j f_j′ τ_j of the forces τ_j at its joints.  The effort limit of the joint that has
the name of the coordinate, if it is c q, times |c| is that of the motor.  The effort limit of another joint is how
strong that joint is.  The force τ_j that the coupling passes through it is that of inverse dynamics if the joint is a
coordinate of its own.  It is computed of a model in which two joints at the same place stand for such a joint: one that
follows, and one that does not move, whose force is τ_j.  A limit of zero is that of a joint without a motor, as in
URDF, and limits nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import ConstraintSet
from kinegrad.errors import InputError, shown
from kinegrad.model import CoupledCoordinate, Model
from kinegrad.model.functions import LinearFunction
from kinegrad.motion.problem.functions import Linear
from kinegrad.motion.problem.nodes import Block, Grid, PhaseVariables
from kinegrad.motion.problem.quantities import Layout, Mechanics

if TYPE_CHECKING:
    from kinegrad.motion.problem.transcription import Transcription

Array = NDArray[np.float64]
TOUCH = 1e-9  # rad or m
SAMPLES = 101  # values of a coordinate at which a function is looked at


def linear_limits(model: Model) -> list[tuple[int, int, float, float]]:
    """Limits of coordinates by joints that are linear functions of them: coordinate, order, lower, upper."""
    found: list[tuple[int, int, float, float]] = []
    for i, entry, joint, function in _followed(model):
        if not isinstance(function, LinearFunction):
            continue
        name, (lower, upper), speed = model.joint_names[joint], *_limits(model, joint)
        c, d = function.multiplier, function.offset
        if c == 0:
            if not lower - TOUCH <= d <= upper + TOUCH:
                raise InputError(f"joint {shown(name)} stays at {d:g} while coordinate {shown(entry.name)} moves, "
                                 f"outside its limits from {lower:g} to {upper:g}; expected other limits")  # fmt: skip
            continue
        _check_speed(entry, name, speed)
        low, high = sorted(((lower - d) / c, (upper - d) / c))
        found += [(i, 0, low, high), (i, 1, -speed / abs(c), speed / abs(c))]
    return found


def follower_blocks(parts: Transcription, p: int, layout: Layout, K: int) -> list[Block]:
    """Rows (1) of a phase, of functions that are not linear."""
    model, blocks = parts.parts[p].model, []
    for i, entry, joint, function in _followed(model):
        if isinstance(function, LinearFunction) or parts.where.spline[i] < 0:
            continue
        name, (lower, upper), speed = model.joint_names[joint], *_limits(model, joint)
        values, slopes = _range(parts, p, i, function)
        if not (lower - TOUCH <= values[0] and values[1] <= upper + TOUCH):
            row = Followed(f"q of {name}", function, layout.state(0).start + i)
            blocks.append(_block(row, lower, upper, K, 0.1, (1.0, 1.0), "kept"))
        if np.isfinite(speed) and slopes > 0:
            _check_speed(entry, name, speed)
            row = Followed(f"v of {name}", function, layout.state(0).start + i, layout.state(1).start + i)
            blocks.append(_block(row, -speed, speed, K, speed, (speed, speed), "speed"))
    return blocks


def _check_speed(entry: CoupledCoordinate, name: str, speed: float) -> None:
    """Refuse a joint without speed that a coordinate moves: files have zeros where no limit was meant."""
    if speed == 0:
        found = f"the velocity limit of joint {shown(name)} is 0, and it follows coordinate {shown(entry.name)}"
        raise InputError(f"{found}, which cannot move then; expected a larger limit, or infinity for none")


def _block(row: Any, lower: float, upper: float, K: int, scale: float, sizes: Any, label: str) -> Block:
    low, high = np.full((K, 1), lower), np.full((K, 1), upper)
    return Block(row, low, high, np.array([scale]), sizes=np.array(sizes)[:, None], label=label)


def _followed(model: Model) -> list[tuple[int, CoupledCoordinate, int, Any]]:
    """All joints that couplings move: position of the coordinate, coupling, joint, function."""
    return [
        (model.coordinate_index(entry.name), entry, joint, function)
        for entry in model.coordinates if isinstance(entry, CoupledCoordinate)
        for joint, function in zip(entry.joints, entry.functions, strict=True)
    ]  # fmt: skip


def _limits(model: Model, joint: int) -> tuple[tuple[float, float], float]:
    lower, upper = model.position_limits[joint]
    return (float(lower), float(upper)), float(model.velocity_limits[joint])


def _range(parts: Transcription, p: int, i: int, function: Any) -> tuple[tuple[float, float], float]:
    """Least and largest value, and largest slope, of a function of a coordinate within its limits."""
    k, sign = int(parts.where.spline[i]), parts.where.sign[i]
    lower, upper = parts.limits[p][0].get(k, (-np.inf, np.inf))
    low, high = sorted((sign * lower, sign * upper))
    if not np.isfinite([low, high]).all():
        return (-np.inf, np.inf), np.inf
    values, slopes = function.derivatives(np.linspace(low, high, SAMPLES), 1)
    return (float(values.min()), float(values.max())), float(np.abs(slopes).max())


class Followed:
    """f(q), or its rate f′(q) v."""

    def __init__(self, name: str, function: Any, q: int, v: int | None = None) -> None:
        self.names, self._f, self._q, self._v = (name,), function, q, v
        columns = [q] if v is None else [q, v]
        self.entries = (np.zeros(len(columns), dtype=np.int64), np.array(columns))
        pairs = [(q, q)] if v is None else [(q, q), (v, q)]
        self.pairs = (np.array([a for a, _ in pairs]), np.array([b for _, b in pairs]))

    def value(self, y: Array) -> Array:
        f = self._f.derivatives(y[:, self._q], 1)
        return np.asarray(f[0] if self._v is None else f[1] * y[:, self._v])[:, None]

    def first(self, y: Array) -> Array:
        f = self._f.derivatives(y[:, self._q], 2)
        return np.stack([f[1]] if self._v is None else [f[2] * y[:, self._v], f[1]], axis=1)

    def second(self, y: Array, weights: Array) -> Array:
        f = self._f.derivatives(y[:, self._q], 3)
        slopes = np.stack([f[2]] if self._v is None else [f[3] * y[:, self._v], f[2]], axis=1)
        return np.asarray(weights * slopes)


# --- what joints transmit ----------------------------------------------------------------------------------------


def strong_joints(parts: Transcription, p: int) -> tuple[list[int], list[str]]:
    """Joints that follow and have an effort limit, and sentences about them."""
    part, found, notes = parts.parts[p], [], []
    for _, entry, joint, function in _followed(part.model):
        name, limit = part.model.joint_names[joint], part.model.effort_limits[joint]
        if (name == entry.name and isinstance(function, LinearFunction)) or not (np.isfinite(limit) and limit > 0):
            continue
        text = f"effort limit of joint {name!r}, which follows coordinate {entry.name!r}, "
        own = [what for what in ("stiffness", "damping", "armature") if getattr(part.model, what)[joint]]
        if part.design is not None or (own and not isinstance(function, LinearFunction)):
            why = "the model has design parameters" if part.design is not None else f"the joint has {own[0]} of its own"
            notes.append(f"{text}is not kept, since {why}; Limits(tau=…) of the coordinate would be")
            continue
        notes.append(f"{text}holds for what passes through that joint; the motor of the coordinate supplies it, and "
                     "Limits(tau=…) limits the motor")  # fmt: skip
        found.append(joint)
    return found, notes


def follower_grid(parts: Transcription, p: int, orders: int) -> Grid | None:
    """Rows of what joints transmit that follow and have an effort limit."""
    joints, notes = strong_joints(parts, p)
    parts.notes += [note for note in notes if note not in parts.notes]
    if not joints:
        return None
    part, old = parts.parts[p], parts.parts[p].model
    model, names = split_joints(old, joints)
    forced = None if part.forced is None else ConstraintSet(model, part.forced.constraints)
    mechanics = Mechanics(model, part.phase.loads, forced, part.forced_rows)
    layout, K = mechanics.layout(orders), len(part.nodes)
    place = {name: i for i, name in enumerate(model.coordinate_names)}
    rows, columns, coefficients, limits, shifts = [], [], [], [], []
    followed = {joint: (place[entry.name], function) for _, entry, joint, function in _followed(old)}
    for r, joint in enumerate(joints):
        i, function = followed[joint]
        terms = [(layout.tau.start + place[names[r]], 1.0)]
        shift = 0.0
        if isinstance(function, LinearFunction):  # springs and rotors are those of the joint that follows
            c, d = function.multiplier, function.offset
            stiffness, damping, armature = (getattr(old, x)[joint] for x in ("stiffness", "damping", "armature"))
            terms += [
                (layout.state(order).start + i, c * x) for order, x in enumerate((stiffness, damping, armature)) if x
            ]
            shift = stiffness * (d - old.rest[joint])
        rows += [r] * len(terms)
        columns += [column for column, _ in terms]
        coefficients += [factor for _, factor in terms]
        limits.append(float(old.effort_limits[joint]))
        shifts.append(shift)
    limit, shift_ = np.array(limits), np.array(shifts)
    function = Linear(tuple(f"torque of {old.joint_names[j]}" for j in joints), rows, columns, coefficients)
    low, high = (np.tile(side * limit - shift_, (K, 1)) for side in (-1, 1))
    block = Block(function, low, high, limit, sizes=np.stack([limit, limit]), label="torque")
    variables = _with_fixed(parts.variables.phases[p], [place[name] for name in old.coordinate_names], model.nv)
    forces = parts.variables.forces[p]
    return Grid(part.phase.basis, part.nodes, mechanics, variables, forces, orders, [block], "followers")


def _with_fixed(variables: PhaseVariables, places: list[int], nv: int) -> PhaseVariables:
    """The same unknowns for a model with more coordinates, all zero."""
    spline, sign, offset = np.full(nv, -1, dtype=np.int64), np.ones(nv), np.zeros(nv)
    spline[places], sign[places], offset[places] = variables.spline, variables.sign, variables.offset
    return replace(variables, spline=spline, sign=sign, offset=offset)


def split_joints(model: Model, joints: list[int]) -> tuple[Model, list[str]]:
    """The model with a joint of its own before each of these, at the same place and of the same kind; their names."""
    n, taken = model.n, {*model.joint_names, *model.link_names, *model.frames, *model.coordinate_names}
    order = [(j, part) for j in range(n) for part in ((0, 1) if j in joints else (1,))]
    number = {key: k for k, key in enumerate(order)}
    names = {j: _free_name(f"{model.joint_names[j]} (transmitted)", taken) for j in joints}
    first, eye = [part == 0 for _, part in order], np.eye(4)

    def parent(j: int, part: int) -> int:
        if part == 1 and j in joints:
            return number[j, 0]
        above = int(model.parents[j])
        return -1 if above < 0 else number[above, 1]

    which = np.array([j for j, _ in order])
    empty = {"mass": 0.0, "com": 0.0, "inertia": 0.0, "stiffness": 0.0, "rest": 0.0, "damping": 0.0, "armature": 0.0}
    fields: dict[str, Any] = {}
    for what, value in empty.items():
        fields[what] = np.array(getattr(model, what))[which]
        fields[what][first] = value
    for what in ("position_limits", "velocity_limits", "effort_limits"):
        fields[what] = np.array(getattr(model, what))[which]
        fields[what][first] = (-np.inf, np.inf) if what == "position_limits" else np.inf
    coordinates = tuple(
        replace(entry, joints=tuple(number[j, 1] for j in entry.joints))
        for entry in model.coordinates if isinstance(entry, CoupledCoordinate)
    )  # fmt: skip
    made = Model(
        model.name, tuple(model.joints[j] for j in which), np.array([parent(*key) for key in order]),
        tuple(names[j] if part == 0 else model.joint_names[j] for j, part in order),
        tuple(names[j] if part == 0 else model.link_names[j] for j, part in order),
        placement=np.array([eye if part == 1 and j in joints else model.placement[j] for j, part in order]),
        tip=np.array([eye if part == 0 else model.tip[j] for j, part in order]),
        gravity=model.gravity, frames=model.frames, coordinates=coordinates, elements=model.elements, **fields,
    )  # fmt: skip
    return made, [names[j] for j in joints]


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "'"
    taken.add(name)
    return name
