"""What an ``.osim`` file says, whichever of its two layouts it has: bodies, joints, coordinates, couplers, markers.

Until version 3 a joint is inside the body that it moves, with the place and orientation of its two frames.  Since
version 4 joints are a set of their own, and name their frames by paths (*sockets*): of bodies, or of offset frames,
which may be anywhere in the file.  Both become the same records here; orientations are body-fixed rotations about x, y
and z.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import shown
from kinegrad.io.opensim.constraints import KINDS, ConstraintRecord, read_constraint
from kinegrad.io.opensim.frames import GROUND, Frames, placed, vector
from kinegrad.io.opensim.functions import read_function, scaled
from kinegrad.io.strict_xml import Element, XmlFile
from kinegrad.model.functions import CoordinateFunction, LinearFunction

__all__ = [
    "Axis",
    "BodyRecord",
    "CoordinateRecord",
    "Coupler",
    "Document",
    "JointRecord",
    "MarkerRecord",
    "read_document",
]

Array = NDArray[np.float64]
NEW = 30500  # version since which joints are a set of their own
OLDEST = 20000
PARALLEL = 1e-6  # sine of the angle
OUTSIDE = 1.5e-8  # how far defaults may be out of a range that clamps them, as in OpenSim, which takes no others
SLOTS = ("rotation1", "rotation2", "rotation3", "translation1", "translation2", "translation3")
_R, _T = "revolute", "prismatic"
# coordinates of simple joints in the order of the file, each with what it moves; body-fixed, translations first
JOINTS: dict[str, tuple[tuple[str, int], ...]] = {
    "WeldJoint": (),
    "PinJoint": ((_R, 2),),
    "SliderJoint": ((_T, 0),),
    "UniversalJoint": ((_R, 0), (_R, 1)),
    "GimbalJoint": ((_R, 0), (_R, 1), (_R, 2)),
    "BallJoint": ((_R, 0), (_R, 1), (_R, 2)),
    "PlanarJoint": ((_R, 2), (_T, 0), (_T, 1)),
    "FreeJoint": ((_R, 0), (_R, 1), (_R, 2), (_T, 0), (_T, 1), (_T, 2)),
}
# what may be in elements, in either layout: whatever looks like one of these, but is none, is mistyped
PARTS: dict[str, tuple[str, ...]] = {
    "Body": (
        "mass", "mass_center", "inertia", *(f"inertia_{x}" for x in ("xx", "yy", "zz", "xy", "xz", "yz")), "components",
        "Joint", "FrameGeometry", "frame_geometry", "VisibleObject", "WrapObjectSet", "attached_geometry",
    ),
    "Joint": (
        "CoordinateSet", "coordinates", "SpatialTransform", "parent_body", "reverse", "location", "location_in_parent",
        "orientation", "orientation_in_parent", "frames", "socket_parent_frame", "socket_child_frame", "components",
    ),
    "Coordinate": (
        "default_value", "default_speed_value", "range", "clamped", "locked", "prescribed", "prescribed_function",
        "motion_type", "is_free_to_satisfy_constraints", "initial_value", "initial_speed_value", "components",
    ),
    "TransformAxis": (
        "coordinates", "axis", "function", "Constant", "LinearFunction", "PolynomialFunction", "SimmSpline",
        "NaturalCubicSpline", "PiecewiseLinearFunction", "MultiplierFunction",
    ),
}  # fmt: skip


@dataclass
class BodyRecord:
    """A body: mass, centre of mass, inertia about it."""

    name: str
    mass: float
    com: Array
    inertia: Array
    element: Element


@dataclass
class CoordinateRecord:
    """A coordinate of a joint."""

    name: str
    default: float
    range: tuple[float, float]
    clamped: bool
    locked: bool
    motion_type: str
    element: Element


@dataclass
class Axis:
    """A turn about or a slide along an axis of the joint's frame, by a function of a coordinate."""

    slot: str
    kind: str
    axis: Array
    coordinate: str | None
    function: CoordinateFunction


@dataclass
class JointRecord:
    """A joint between two bodies: where its frames are in them, and how it moves, in the order of motion."""

    name: str
    kind: str
    parent: str
    child: str
    in_parent: Array
    in_child: Array
    coordinates: list[CoordinateRecord]
    axes: list[Axis]
    element: Element


@dataclass
class Coupler:
    """q_dependent = f(q_independent)."""

    name: str
    dependent: str
    independent: str
    function: CoordinateFunction
    element: Element


@dataclass
class MarkerRecord:
    """A marker: a point of a body."""

    name: str
    body: str
    location: Array
    element: Element


@dataclass
class Document:
    """All of it."""

    file: XmlFile
    model: Element
    name: str
    gravity: Array
    bodies: dict[str, BodyRecord] = field(default_factory=dict)
    joints: list[JointRecord] = field(default_factory=list)
    couplers: list[Coupler] = field(default_factory=list)
    constraints: list[ConstraintRecord] = field(default_factory=list)
    markers: list[MarkerRecord] = field(default_factory=list)


def read_document(file: XmlFile) -> Document:
    """Everything that a model needs; what is wrong becomes problems of the file."""
    version = file.root.get("Version")
    if not (version.isascii() and version.isdigit() and len(version) < 10) or int(version) < OLDEST:
        file.problem(file.root, f"Version is {shown(version)}; expected {OLDEST} or more, as OpenSim since 2.0 writes")
    model = file.only(file.root, "Model", required=True)
    file.check()
    assert model is not None
    gravity = file.only(model, "gravity")
    down = np.array([0.0, -9.80665, 0.0]) if gravity is None else file.numbers(gravity, None, 3)
    found = Document(file, model, model.get("name") or "model", down)
    frames = Frames(file, model)
    bodies = [x for x in _objects(file, model, "BodySet") if x.tag == "Body"]
    named = file.by_name(bodies, "body")
    found.bodies = {name: _body(file, name, element) for name, element in named.items() if name != GROUND}
    inside = [joint for body in bodies for holder in body.all("Joint") for joint in holder.children]
    apart = _objects(file, model, "JointSet")
    if inside and apart:
        file.problem(apart[0], f"is in a JointSet, and {inside[0].own_label} inside its body; expected one layout")
    for element in inside:
        found.joints += _old_joint(file, element)
    for element in apart:
        found.joints += _new_joint(file, element, frames)
    for element in _objects(file, model, "ConstraintSet"):
        if element.tag == "CoordinateCouplerConstraint" and _enforced(file, element):
            found.couplers += _coupler(file, element)
        elif element.tag in KINDS and _enforced(file, element):
            found.constraints += read_constraint(file, element, frames)
    for element in _objects(file, model, "MarkerSet"):
        found.markers += read_marker(file, element, frames)
    return found


# --- parts ------------------------------------------------------------------------------------------------------------


def _objects(file: XmlFile, model: Element, tag: str) -> list[Element]:
    """What is in a set of the model."""
    whole = file.only(model, tag)
    if whole is None:
        return []
    if whole.get("file"):
        file.problem(whole, f"refers to the file {shown(whole.get('file'))}; expected everything in one file")
    inner = whole.find("objects")
    return [] if inner is None else inner.children


def _number(file: XmlFile, element: Element, tag: str, default: float | None = None) -> float:
    child = file.only(element, tag, required=default is None)
    return (np.nan if default is None else default) if child is None else file.number(child, None)


def _flag(file: XmlFile, element: Element, tag: str, default: bool) -> bool:
    child = file.only(element, tag)
    return default if child is None else file.flag(child, None)


def _enforced(file: XmlFile, element: Element) -> bool:
    return not _flag(file, element, "isDisabled", False) and _flag(file, element, "isEnforced", True)


def _body(file: XmlFile, name: str, element: Element) -> BodyRecord:
    file.strange(element, element.attributes, PARTS["Body"])
    mass = _number(file, element, "mass")
    if mass < 0:
        file.problem(element, f"its mass is {mass:g} kg; expected zero or more")
    com = vector(file, element, "mass_center")
    whole = file.only(element, "inertia")
    if whole is not None:
        numbers = file.numbers(whole, None, 6)
    else:
        tags = ("xx", "yy", "zz", "xy", "xz", "yz")
        numbers = np.array([_number(file, element, f"inertia_{x}", None if x[0] == x[1] else 0.0) for x in tags])
    xx, yy, zz, xy, xz, yz = numbers
    return BodyRecord(name, mass, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), element)


def _coordinates(file: XmlFile, elements: list[Element]) -> list[CoordinateRecord]:
    found = []
    for element in elements:
        file.strange(element, element.attributes, PARTS["Coordinate"])
        low, high = (-np.inf, np.inf)
        limits = file.only(element, "range")
        if limits is not None:
            low, high = file.numbers(limits, None, 2)
            if low > high:
                file.problem(limits, f"goes from {low:g} to {high:g}; expected the lower number first")
        name = file.word(element, "name")
        numbers = _number(file, element, "default_value", 0.0), (float(low), float(high))
        clamped, locked = (_flag(file, element, what, False) for what in ("clamped", "locked"))
        if clamped and (numbers[0] < low - OUTSIDE or numbers[0] > high + OUTSIDE):
            text = f"it is clamped from {low:g} to {high:g}, and its default_value is {numbers[0]:g}"
            file.problem(element, f"{text}; expected one within the range")
        found.append(CoordinateRecord(name, *numbers, clamped, locked, "coupled", element))
    return found


def _joint(file: XmlFile, element: Element, given: list[Element], ends: tuple[str, Array, str, Array]) -> Any:
    """A joint between two bodies, whose frames are known; [] if it is of an unknown kind."""
    kind, name = element.tag, file.word(element, "name")
    file.strange(element, element.attributes, PARTS["Joint"])
    coordinates = _coordinates(file, given)
    if kind == "CustomJoint":
        axes = _custom_axes(file, element, coordinates)
    elif kind in JOINTS:
        moved = JOINTS[kind]
        if coordinates and len(coordinates) != len(moved):
            found = f"has {len(coordinates)} coordinates"
            file.problem(element, f"{found}; expected {len(moved)} of a {kind}")
            return []
        for k in range(len(coordinates), len(moved)):
            usual = f"{name}_coord_{k}"
            coordinates.append(CoordinateRecord(usual, 0.0, (-np.inf, np.inf), False, False, "coupled", element))
        axes = []
        for coordinate, (how, axis) in zip(coordinates, moved, strict=False):
            coordinate.motion_type = "rotational" if how == _R else "translational"
            slot = f"{'rotation' if how == _R else 'translation'}{'xyz'[axis]}"
            axes.append(Axis(slot, how, np.eye(3)[axis], coordinate.name, LinearFunction()))
        axes.sort(key=lambda axis: axis.kind != _T)  # stable: translations in the joint's parent frame come first
    else:
        known = ", ".join([*JOINTS, "CustomJoint"])
        surface = kind in ("EllipsoidJoint", "ScapulothoracicJoint")
        why = (
            "moves a body over a surface, which no joint of kinegrad does" if surface else "is a joint of unknown kind"
        )
        file.problem(element, f"{why}; expected one of {known}")
        return []
    parent, in_parent, child, in_child = ends
    return [JointRecord(name, kind, parent, child, in_parent, in_child, coordinates, axes, element)]


def _custom_axes(file: XmlFile, element: Element, coordinates: list[CoordinateRecord]) -> list[Axis]:
    """Translations, then rotations, of a CustomJoint; finds the motion types of its coordinates."""
    transform = file.only(element, "SpatialTransform", required=True)
    slots = dict[str, Element]()
    for k, axis in enumerate([] if transform is None else transform.all("TransformAxis")):
        slot = axis.get("name") or (SLOTS[k] if k < len(SLOTS) else "")
        if slot not in SLOTS or slot in slots:
            again = "is there twice" if slot in slots else f"is called {shown(slot)}"
            file.problem(axis, f"{again}; expected one each of {', '.join(SLOTS)}")
        slots[slot] = axis
    known = {coordinate.name: coordinate for coordinate in coordinates}
    found, used = list[Axis](), set[str]()
    directions: dict[str, Array] = {}
    for k, slot in enumerate(SLOTS):
        if slot not in slots:
            continue
        axis, kind = slots[slot], _R if k < 3 else _T
        file.strange(axis, axis.attributes, PARTS["TransformAxis"])
        direction = directions[slot] = vector(file, axis, "axis", (1.0, 0.0, 0.0))  # of all of them, as OpenSim has it
        size = float(np.sqrt(direction @ direction))
        if size == 0:
            file.problem(axis, "its axis is 0 0 0; expected a direction")
            continue
        names = [name for holder in axis.all("coordinates") for name in holder.text.split()]
        for name in names:
            if name not in known:
                others = ", ".join(map(shown, known)) or "none"
                file.problem(axis, f"names coordinate {shown(name)}, which its joint does not have; it has {others}")
        used.update(names)
        function = read_function(file, axis, max(len(names), 1))
        if function is None or not np.isfinite(size) or any(name not in known for name in names):
            continue
        direction = direction / size
        if isinstance(function, np.ndarray):  # linear in several coordinates: as many joints about one axis
            parts = [LinearFunction(m) for m in function[:-1]] + [LinearFunction(0.0, function[-1])]
            found += [Axis(f"{slot}_{i}", kind, direction, name, part) for i, (name, part) in
                      enumerate(zip([*names, None], parts, strict=True))]  # fmt: skip
            continue
        found.append(Axis(slot, kind, direction, names[0] if names else None, function))
        _set_motion_type(axis, known.get(names[0]) if names else None, kind, function)
    if transform is not None:
        _check_apart(file, transform, directions)
    for name, coordinate in known.items():
        if name not in used and transform is not None:
            file.problem(coordinate.element, "no axis of its joint depends on it; expected one, or no such coordinate")
    return [axis for axis in found if axis.kind == _T] + [axis for axis in found if axis.kind == _R]


def _check_apart(file: XmlFile, transform: Element, directions: dict[str, Array]) -> None:
    """No two of three axes are parallel: together they would move one coordinate, and OpenSim takes no such joint."""
    for one, other in combinations(directions, 2):
        a, b = directions[one], directions[other]
        same = one[:-1] == other[:-1] and np.isfinite([a, b]).all() and a.any() and b.any()
        if same and np.linalg.norm(np.cross(a, b)) <= PARALLEL * np.linalg.norm(a) * np.linalg.norm(b):
            file.problem(transform, f"{one} and {other} have parallel axes; expected three of different directions")


def _set_motion_type(axis: Element, coordinate: CoordinateRecord | None, kind: str, function: Any) -> None:
    """A coordinate is rotational or translational by the last axis that it moves one to one, else coupled."""
    holder = axis.find("function") or axis
    line = any(x.tag == "LinearFunction" for x in holder.children)
    if coordinate is not None and line and abs(function.multiplier) == 1:
        coordinate.motion_type = "rotational" if kind == _R else "translational"


# --- both layouts -----------------------------------------------------------------------------------------------------


def _old_joint(file: XmlFile, element: Element) -> list[JointRecord]:
    """A joint inside its body."""
    above = file.only(element, "parent_body", required=True)
    parent = "" if above is None else file.word(above, None)
    body = element.parent.parent if element.parent is not None else None
    child = "" if body is None else body.get("name")
    frames = [placed(vector(file, element, f"location{x}"), vector(file, element, f"orientation{x}"))
              for x in ("_in_parent", "")]  # fmt: skip
    held = file.only(element, "CoordinateSet")
    inner = None if held is None else held.find("objects")
    given = [] if inner is None else inner.all("Coordinate")
    ends = (parent, frames[0], child, frames[1])
    if _flag(file, element, "reverse", False):
        ends = (child, frames[1], parent, frames[0])
    found: list[JointRecord] = _joint(file, element, given, ends)
    return found


def _new_joint(file: XmlFile, element: Element, frames: Frames) -> list[JointRecord]:
    """A joint of a JointSet."""
    ends: list[Any] = []
    for which in ("parent", "child"):
        ends += frames.socket(element, f"socket_{which}_frame")
    held = file.only(element, "coordinates")
    given = [] if held is None else held.all("Coordinate")
    found: list[JointRecord] = _joint(file, element, given, tuple(ends))
    return found


def _coupler(file: XmlFile, element: Element) -> list[Coupler]:
    holder = file.only(element, "coupled_coordinates_function", required=True)
    names = file.only(element, "independent_coordinate_names", required=True)
    dependent = file.only(element, "dependent_coordinate_name", required=True)
    if holder is None or names is None or dependent is None:
        return []
    free = names.text.split()
    if len(free) != 1:
        file.problem(names, f"names {len(free)} coordinates; expected one, on which the dependent one depends")
        return []
    function = read_function(file, holder)
    factor = _number(file, element, "scale_factor", 1.0)
    if function is None or isinstance(function, np.ndarray) or not np.isfinite(factor):
        return []
    name = element.get("name") or "a coupler"
    return [Coupler(name, file.word(dependent, None), free[0], scaled(function, factor), element)]


def read_marker(file: XmlFile, element: Element, frames: Frames) -> list[MarkerRecord]:
    """A marker of either layout."""
    if element.tag != "Marker":
        return []
    name, location = file.word(element, "name"), vector(file, element, "location")
    old = element.find("body")
    if element.find("socket_parent_frame") is None and old is not None:
        body, T = file.word(old, None), np.eye(4)
    else:
        body, T = frames.socket(element, "socket_parent_frame")
    if not name or not body or not np.isfinite(location).all():
        return []
    return [MarkerRecord(name, body, T[:3, :3] @ location + T[:3, 3], element)]
