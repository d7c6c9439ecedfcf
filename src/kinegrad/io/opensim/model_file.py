"""OpenSim's ``.osim`` files: the skeleton of a model, and a list of what else is in the file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kinegrad.constraints import ConstraintSet
from kinegrad.errors import shown
from kinegrad.io.model_file import ModelFile, Note, Report
from kinegrad.io.moving_bodies import Bodies, check_choice
from kinegrad.io.opensim.assembly import Assembled, assemble
from kinegrad.io.opensim.document import Document, read_document, read_marker
from kinegrad.io.opensim.frames import Frames
from kinegrad.io.strict_xml import Element, XmlFile, read_xml
from kinegrad.io.whole_file import checked_path

__all__ = ["OpenSimFile", "read"]

_SETS = {
    "ForceSet": ("force", True),
    "ConstraintSet": ("constraint", True),
    "ControllerSet": ("controller", True),
    "ContactGeometrySet": ("contact geometry", False),
    "ProbeSet": ("probe", False),
    "ComponentSet": ("component", True),
}
_PARTS = {"appliesForce", "isDisabled", "isEnforced"}


@dataclass(frozen=True, eq=False)
class OpenSimFile(ModelFile):
    """What :func:`read` finds in a file.

    Attributes
    ----------
    model, constraints, report, loads, design
        As of :class:`~kinegrad.io.ModelFile`.
    motion_types : mapping of str to str
        ``"rotational"``, ``"translational"`` or ``"coupled"`` for every coordinate: what is rotational may be in
        degrees in motion files.
    defaults : mapping of str to float
        Values of coordinates where nothing else is said, rad or m.
    locked : mapping of str to float
        Coordinates that are held and so not in the model, and where, rad or m.
    coupled : mapping of str to str
        Coordinates that follow another one by a coupler and so are not in the model: that other one.
    markers : mapping of str to str
        The frame in the model of each marker.
    """

    motion_types: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, float] = field(default_factory=dict)
    locked: Mapping[str, float] = field(default_factory=dict)
    coupled: Mapping[str, str] = field(default_factory=dict)
    markers: Mapping[str, str] = field(default_factory=dict)


def read(
    path: str | os.PathLike[str],
    *,
    locked: str = "fixed",
    inertia: str = "close",
    massless: bool = False,
    strict: bool = False,
    markers: str | os.PathLike[str] | None = None,
) -> OpenSimFile:
    """Read the skeleton of an OpenSim model.

    All joints but ``EllipsoidJoint`` and ``ScapulothoracicJoint`` are read, in both layouts of the format.  Axes of a
    CustomJoint that are functions of a coordinate become coupled coordinates, coordinate couplers are substituted,
    welded bodies become frames of the link that they are fixed in, and markers frames.  Constraints of welds, points,
    distances and lines become those of the result.  Coordinates have the names that
    the file gives them, and are in the order of the joints that they move.

    Parameters
    ----------
    path : path
    locked : {"fixed", "free"}
        What becomes of locked coordinates: they are held at their defaults and not in the model, or they are
        coordinates like others, with limits at their defaults, which simulations do not keep.
    inertia : {"close", "project", "refuse"}
        What to do if a body with everything that is welded to it has an inertia that no body has, as the toes in many
        published models: take the nearest possible one, if that changes the moment of inertia about no axis by more
        than 1 %; take it however far it is, without a warning; or refuse each body whose inertia is impossible.
    massless : bool
        Whether joints that move no mass are accepted without a warning.
    strict : bool
        Whether to refuse impossible inertias and joints that move no mass, unless `inertia` or `massless` accepts them.
    markers : path, optional
        A file with a ``MarkerSet`` of its own, whose markers are added.

    Returns
    -------
    OpenSimFile
        The model, and a report that names what it does not have: muscles, contacts, actuators.

    Raises
    ------
    FileError
        With all problems of the file: line, element, what was found, what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> text = '''<OpenSimDocument Version="40000"><Model name="pendulum">
    ... <Ground name="ground"/>
    ... <BodySet name="bodyset"><objects><Body name="bob"><mass>1</mass><mass_center>0 -0.5 0</mass_center>
    ... <inertia>0.1 0.1 0.1 0 0 0</inertia></Body></objects></BodySet>
    ... <JointSet name="jointset"><objects><PinJoint name="hinge">
    ... <socket_parent_frame>/ground</socket_parent_frame><socket_child_frame>/bodyset/bob</socket_child_frame>
    ... <coordinates><Coordinate name="angle"/></coordinates></PinJoint></objects></JointSet>
    ... </Model></OpenSimDocument>'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "pendulum.osim").write_text(text)
    ...     found = read(Path(folder, "pendulum.osim"))
    >>> found.model.coordinate_names, found.motion_types["angle"], found.model.gravity.tolist()
    (('angle',), 'rotational', [0.0, -9.80665, 0.0])
    """
    check_choice("locked", locked, ("fixed", "free"))
    bodies = Bodies("body", inertia=inertia, massless=massless, strict=strict)
    place = checked_path(path)
    found = read_document(read_xml(place, "OpenSimDocument"))
    if markers is not None:
        _more_markers(found, markers)
    made = assemble(found, bodies, locked=locked)
    assert made is not None  # problems have been raised
    constraints = found.file.guard(found.model, ConstraintSet, made.model, made.constraints)
    found.file.check()
    report = Report(os.fspath(place), "OpenSim", tuple(_notes(found, made)), tuple(made.repairs))
    names = {dependent: name for dependent, (name, _) in made.coupled.items()}
    tables: tuple[Any, ...] = (made.motion_types, made.defaults, made.locked, names, made.markers)
    return OpenSimFile(made.model, constraints, report, None, None, *(MappingProxyType(dict(x)) for x in tables))


def _more_markers(found: Document, path: str | os.PathLike[str]) -> None:
    """Markers of a file that has nothing else."""
    other = read_xml(checked_path(path, "markers"), "OpenSimDocument")
    whole = other.only(other.root, "MarkerSet", required=True)
    other.check()
    frames = Frames(other, found.model)
    inner = None if whole is None else whole.find("objects")
    for element in [] if inner is None else inner.children:
        for marker in read_marker(other, element, frames):
            if marker.body != "ground" and marker.body not in found.bodies:
                other.problem(element, f"is fixed in body {shown(marker.body)}, which the model does not have")
            found.markers.append(marker)
    other.check()


def _notes(found: Document, made: Assembled) -> list[Note]:
    notes = list(made.notes)
    file, model = found.file, found.model
    converted = {id(record.element) for record in found.constraints}
    for tag, (what, matters) in _SETS.items():
        whole = model.find(tag)
        inner = None if whole is None else (whole.find("objects") or whole)
        for element in [] if inner is None else inner.children:
            if element.tag in ("objects", "groups", "components", "CoordinateCouplerConstraint"):
                continue
            if id(element) in converted:
                continue
            acts = matters and _acts(file, element)
            notes.append(Note(what, f"{element.own_label} is not in the model", element.line, acts))
    for element in model.walk():
        if element.tag == "WrapObjectSet":
            for each in (element.find("objects") or element).children:
                if each.tag.startswith("Wrap"):
                    text = f"{each.own_label}, which muscles wrap over, is not in the model"
                    notes.append(Note("wrap object", text, each.line, False))
        elif element.tag == "prescribed" and element.text.lower() in ("true", "1") and element.parent is not None:
            text = f"{element.parent.own_label}: its prescribed motion is not in the model"
            notes.append(Note("prescribed motion", text, element.line))
    for coordinate in made.unlimited:
        low, high = coordinate.range
        text = f"{coordinate.element.own_label}: its range from {low:g} to {high:g} is not in the model"
        notes.append(Note("range", text, coordinate.element.line))
    for record in (each for joint in found.joints for each in joint.coordinates):
        if record.locked and record.name in made.motion_types and record.name not in made.locked:
            text = f"{record.element.own_label}: it is locked at {record.default:g}, and no simulation holds it there"
            notes.append(Note("lock", text, record.element.line))
    for name in made.homeless:
        notes.append(Note("fixed in the ground", f"{shown(name)} does not move, and is not in the model", 0, False))
    return notes


def _acts(file: XmlFile, element: Element) -> bool:
    """Whether it is switched on."""
    for child in element.children:
        if child.tag in _PARTS:
            on = child.text.lower() in ("true", "1")
            return not on if child.tag == "isDisabled" else on
    return True
