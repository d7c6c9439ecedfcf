"""From the XML of a URDF file to links and joints: numbers checked, nothing put together yet."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import shown
from kinegrad.io.model_file import Note, Repair, named
from kinegrad.io.moving_bodies import MassProperties, Part
from kinegrad.io.strict_xml import Element, XmlFile, decimal
from kinegrad.io.urdf.shapes import PlacedSolid, ShapeReader
from kinegrad.model import rotate, translate

__all__ = ["JointRecord", "LinkRecord", "Mimic", "Robot", "origin", "read_robot"]

Array = NDArray[np.float64]
KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
LIMITED = ("revolute", "prismatic")
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_UNLIMITED = (-np.inf, np.inf)


@dataclass(eq=False)
class LinkRecord:
    """A link: its mass properties, None if it has none; whether these could be read; what it looks like."""

    name: str
    element: Element
    part: Part | None = None
    sound: bool = True
    shapes: list[PlacedSolid] = field(default_factory=list)


@dataclass(frozen=True)
class Mimic:
    """A joint follows another: q = multiplier · q_joint + offset."""

    joint: str
    multiplier: float
    offset: float
    element: Element


@dataclass(eq=False)
class JointRecord:
    """A joint: what it connects, where it is in its parent link, how it moves."""

    name: str
    element: Element
    kind: str
    parent: str
    child: str
    placement: Array
    axis: Array
    position_limits: tuple[float, float] = _UNLIMITED
    velocity_limit: float = np.inf
    effort_limit: float = np.inf
    damping: float = 0.0
    mimic: Mimic | None = None


@dataclass(eq=False)
class Robot:
    """All that a file says, and notes of what is left out.

    Attributes
    ----------
    strict : bool
        Whether limits that are missing or −1, and mimics of absent joints, are problems.
    open : list of str
        Limits that are missing or −1, and so not in the model.
    alone : list of str
        Joints that mimic an absent one, and so move by themselves.
    """

    name: str
    links: dict[str, LinkRecord]
    joints: dict[str, JointRecord]
    notes: list[Note]
    strict: bool = False
    open: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)

    def repairs(self) -> list[Repair]:
        """Return one sentence of each kind."""
        found = []
        if self.alone:
            text = f"joints that mimic an absent one move by themselves: {named(map(shown, self.alone))}"
            found.append(Repair("mimic of an absent joint", text))
        if self.open:
            text = f"limits that are missing or -1 are not in the model: {named(self.open)}"
            found.append(Repair("limit without a value", text))
        return found


def read_robot(file: XmlFile, shapes: ShapeReader, *, strict: bool) -> Robot:
    """Return all links and joints; problems stay with the file."""
    root, notes = file.root, shapes.notes
    unnamed = "name" not in root.attributes and not strict
    robot = Robot(file.path.stem if unnamed else file.word(root, "name"), {}, {}, notes, strict)
    if unnamed:
        notes.append(
            Note("robot without a name", "<robot> has no name; the model is named after the file", root.line, False)
        )
    links = file.by_name(root.all("link"), "link")
    joints = file.by_name(root.all("joint"), "joint")
    if not root.all("link"):
        file.problem(root, "has no <link>; expected at least one")
    _known(file, root, ("name", "version"), notes, ("link", "joint", "material", *_OTHERS))
    for element in root.all(*_OTHERS):
        notes.append(_other(element))
    shapes.read_materials(root)
    for name, element in links.items():
        robot.links[name] = _link(file, name, element, shapes)
    for name, element in joints.items():
        robot.joints[name] = _joint(file, name, element, robot)
    return robot


def origin(file: XmlFile, element: Element, notes: list[Note]) -> Array:
    """The transform of the child <origin>: a shift xyz, then turns about fixed axes, roll x, pitch y, yaw z.

    Newer files may have a quaternion in the place of the turns.
    """
    place = file.only(element, "origin")
    if place is None:
        return np.eye(4)
    _known(file, place, ("xyz", "rpy", "quat_xyzw"), notes)
    shift = file.numbers(place, "xyz", 3, (0.0, 0.0, 0.0))
    roll, pitch, yaw = file.numbers(place, "rpy", 3, (0.0, 0.0, 0.0))
    x, y, z, w = file.numbers(place, "quat_xyzw", 4, (0.0, 0.0, 0.0, 1.0))
    if not np.isfinite([*shift, roll, pitch, yaw, x, y, z, w]).all():
        return np.eye(4)
    if "quat_xyzw" in place.attributes:
        given = f'quat_xyzw="{place.get("quat_xyzw")}"'
        if "rpy" in place.attributes:
            file.problem(place, f"{given} stands beside rpy; remove one of them")
        elif not (x or y or z or w):
            file.problem(place, f"{given} is zero; expected a unit quaternion")
        else:
            half = float(np.linalg.norm([x, y, z]))
            turn = rotate([x, y, z], 2 * float(np.arctan2(half, w))) if half else np.eye(4)
            found: Array = translate(*shift) @ turn
            return found
        return np.eye(4)
    turned: Array = translate(*shift) @ rotate("z", yaw) @ rotate("y", pitch) @ rotate("x", roll)
    return turned


# --- links ------------------------------------------------------------------------------------------------------


def _link(file: XmlFile, name: str, element: Element, shapes: ShapeReader) -> LinkRecord:
    record = LinkRecord(name, element)
    _known(file, element, ("name",), shapes.notes, ("inertial", "visual", "collision"))
    inertial = file.only(element, "inertial")
    if inertial is not None:
        before = len(file.problems)
        record.part = _part(file, name, inertial, shapes.notes)
        record.sound = len(file.problems) == before
    for tag in ("visual", "collision"):
        for drawn in element.all(tag):
            solid = shapes.read(drawn, origin(file, drawn, shapes.notes), collision=tag == "collision")
            record.shapes += [solid] if solid is not None else []
    return record


def _part(file: XmlFile, name: str, element: Element, notes: list[Note]) -> Part | None:
    """Return the mass properties of a link in the link's frame; None if they are no numbers."""
    _known(file, element, (), notes, ("origin", "mass", "inertia"))
    place = origin(file, element, notes)
    mass_of = file.only(element, "mass", required=True)
    moments_of = file.only(element, "inertia", required=True)
    if mass_of is None or moments_of is None:
        return None
    _known(file, mass_of, ("value",), notes)
    _known(file, moments_of, _MOMENTS, notes)
    mass = file.number(mass_of, "value", least=0.0, unit="kg")
    xx, xy, xz, yy, yz, zz = (file.number(moments_of, each) for each in _MOMENTS)
    moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if not (np.isfinite(mass) and np.isfinite(moments).all()):
        return None
    own = MassProperties(mass, np.zeros(3), moments)
    return Part(name, own.moved(place), own.wrong, moments_of, moments_of.line)


# --- joints -----------------------------------------------------------------------------------------------------


def _joint(file: XmlFile, name: str, element: Element, robot: Robot) -> JointRecord:
    notes = robot.notes
    kind = file.choice(element, "type", KINDS)
    known = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "safety_controller", "calibration")
    _known(file, element, ("name", "type"), notes, known)
    ends = []
    for tag in ("parent", "child"):
        end = file.only(element, tag, required=True)
        if end is not None:
            _known(file, end, ("link",), notes)
        ends.append("" if end is None else file.word(end, "link"))
    parent, child = ends
    record = JointRecord(name, element, kind, parent, child, origin(file, element, notes), np.array([1.0, 0.0, 0.0]))
    axis = file.only(element, "axis")
    if axis is not None and kind in ("fixed", "floating"):  # without effect, but numbers all the same
        file.numbers(axis, "xyz", 3, (1.0, 0.0, 0.0))
    elif axis is not None:
        _known(file, axis, ("xyz",), notes)
        given = file.numbers(axis, "xyz", 3)
        if np.isfinite(given).all():
            if not given.any():
                file.problem(axis, f'xyz="{axis.get("xyz")}" has no direction; expected one that is not zero')
            else:
                record.axis = given
                length = float(np.linalg.norm(given))
                if abs(length - 1) > 1e-3:
                    text = f"the axis of joint {shown(name)} has length {length:g} and is taken as a direction"
                    notes.append(Note("axis of another length", text, axis.line, matters=False))
    if kind not in ("fixed", ""):
        _limits(file, record, robot)
        _dynamics(file, record, notes)
    else:  # without effect, but numbers all the same
        for unused in element.all("limit", "dynamics"):
            for attribute in ("lower", "upper", "effort", "velocity", "damping", "friction"):
                file.number(unused, attribute, 0.0)
    _mimic(file, record, notes)
    for tag in ("safety_controller", "calibration"):
        for each in element.all(tag):
            text = f"joint {shown(name)} has a <{tag}>, which is of its controller"
            notes.append(Note(tag.replace("_", " "), text, each.line, matters=False))
    return record


def _limits(file: XmlFile, joint: JointRecord, robot: Robot) -> None:
    notes = robot.notes
    limit = file.only(joint.element, "limit", required=joint.kind in LIMITED and robot.strict)
    if limit is None:
        if joint.kind in LIMITED:
            _open(robot, joint, "limits", joint.element)
        return
    _known(file, limit, ("lower", "upper", "effort", "velocity"), notes)
    joint.effort_limit, joint.velocity_limit = (_bound(file, joint, robot, limit, x) for x in ("effort", "velocity"))
    given = [x for x in ("lower", "upper") if x in limit.attributes]
    lower, upper = (file.number(limit, x, 0.0) for x in ("lower", "upper"))
    if joint.kind not in LIMITED:
        if given and (lower or upper):
            text = f"joint {shown(joint.name)} is {joint.kind} and has limits of its position"
            notes.append(Note("position limits", text, limit.line, matters=False))
        return
    if not given:
        text = f"joint {shown(joint.name)} has neither 'lower' nor 'upper', so that both are 0, as URDF says"
        notes.append(Note("position limits", text, limit.line, matters=False))
    if lower > upper:
        file.problem(limit, f"lower {lower:g} is above upper {upper:g}; exchange or correct them")
    elif np.isfinite([lower, upper]).all():
        joint.position_limits = lower, upper


def _bound(file: XmlFile, joint: JointRecord, robot: Robot, limit: Element, what: str) -> float:
    """Return the limit of effort or velocity; infinity where it is missing, or −1, as some programs write it."""
    missing = what not in limit.attributes and joint.kind in LIMITED
    if not robot.strict and (missing or decimal(limit.get(what)) == -1):
        _open(robot, joint, what, limit)
        return np.inf
    return file.number(limit, what, None if joint.kind in LIMITED else np.inf, least=0.0)


def _open(robot: Robot, joint: JointRecord, what: str, element: Element) -> None:
    robot.open.append(f"{what} of {shown(joint.name)}")
    given = element.get(what) if what in element.attributes else ""
    found = f'{what}="{given[:40]}"' if given else f"no {what}"
    text = f"joint {shown(joint.name)} has {found}, and no bound of it in the model"
    robot.notes.append(Note("limit without a value", text, element.line, matters=False))


def _dynamics(file: XmlFile, joint: JointRecord, notes: list[Note]) -> None:
    dynamics = file.only(joint.element, "dynamics")
    if dynamics is None:
        return
    _known(file, dynamics, ("damping", "friction"), notes, matters=True)
    damping = file.number(dynamics, "damping", 0.0, least=0.0)
    friction = file.number(dynamics, "friction", 0.0, least=0.0)
    if friction:
        unit = "N" if joint.kind == "prismatic" else "N·m"
        text = f"joint {shown(joint.name)} has Coulomb friction of {friction:g} {unit}, which is not smooth"
        notes.append(Note("joint friction", text, dynamics.line))
    if joint.kind in ("planar", "floating"):
        if damping:
            text = f"joint {shown(joint.name)} is {joint.kind} and has one damping of all its motions, {damping:g}"
            notes.append(Note("damping", text, dynamics.line))
        return
    joint.damping = damping


def _mimic(file: XmlFile, joint: JointRecord, notes: list[Note]) -> None:
    mimic = file.only(joint.element, "mimic")
    if mimic is None:
        return
    _known(file, mimic, ("joint", "multiplier", "offset"), notes)
    numbers = file.number(mimic, "multiplier", 1.0), file.number(mimic, "offset", 0.0)
    of = file.word(mimic, "joint")
    if joint.kind == "fixed":
        text = f"joint {shown(joint.name)} is fixed and has a <mimic>"
        notes.append(Note("mimic of a fixed joint", text, mimic.line, matters=False))
    elif joint.kind in ("planar", "floating"):
        file.problem(mimic, f"is in a {joint.kind} joint; expected it in one that has one coordinate")
    elif of and np.isfinite(numbers).all():
        joint.mimic = Mimic(of, *numbers, mimic)


# --- what is left out -------------------------------------------------------------------------------------------

_OTHERS = ("gazebo", "transmission", "sensor", "ros2_control")


def _other(element: Element) -> Note:
    """A note of a known extension of URDF."""
    about = element.get("name") or element.get("reference")
    text = f"<{element.tag}>{f' of {shown(about)}' if about else ''} is left out"
    joints = sorted({x.tag for x in element.walk() if x.tag.startswith("joint:") or x.tag == "implicitSpringDamper"})
    if element.tag == "gazebo" and any(tag.startswith("joint:") for tag in joints):
        return Note("gazebo joint", f"{text}: it holds {', '.join(joints)}", element.line)
    return Note(element.tag, text, element.line, matters=False)


def _left_out(element: Element, part: Element | str, *, matters: bool = False) -> Note:
    if isinstance(part, Element):
        text = f"{element.label} holds {part.own_label}, which is not of URDF"
        return Note(f"<{part.tag}>", text, part.line, matters)
    value = shown(element.attributes[part])
    return Note(f"attribute {part}", f"{element.label} has {part}={value}, which is not of URDF", element.line, matters)


def _known(
    file: XmlFile,
    element: Element,
    attributes: Collection[str],
    notes: list[Note],
    tags: Collection[str] = (),
    *,
    matters: bool = False,
) -> None:
    """Notes of attributes and children that URDF does not have; problems where they look mistyped, or are macros."""
    for part in file.strange(element, attributes, tags):
        if isinstance(part, Element) and part.tag.startswith("xacro:"):
            file.problem(part, "is a macro that was not expanded; make a URDF file of it with the program xacro")
        notes.append(_left_out(element, part, matters=matters))
