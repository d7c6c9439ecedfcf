"""Constraints of an ``.osim`` file, but coordinate couplers, as constraints of the model.

WeldConstraint              two frames coincide                            Loop, weld
PointConstraint             two points coincide                            Loop, pin
ConstantDistanceConstraint  two points keep their distance                 Distance
PointOnLineConstraint       a point stays on a line of another body        Loop, x and y of a frame whose z is the line

OpenSim holds them exactly, too.  RollingOnSurfaceConstraint restricts speeds only, which no constraint here does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import Distance, Loop
from kinegrad.constraints.descriptions import Constraint
from kinegrad.errors import shown
from kinegrad.io.model_file import Note
from kinegrad.io.opensim.frames import Frames, placed, vector
from kinegrad.io.strict_xml import Element, XmlFile
from kinegrad.model.placement import translate

__all__ = ["ConstraintRecord", "make_constraints", "read_constraint"]

Array = NDArray[np.float64]
Hosts = Mapping[str, tuple[str | None, Array]]
KINDS = ("WeldConstraint", "PointConstraint", "ConstantDistanceConstraint", "PointOnLineConstraint")


@dataclass
class ConstraintRecord:
    """A constraint between frames of two bodies; of a line, the first end is the point."""

    ends: tuple[tuple[str, Array], tuple[str, Array]]
    length: float
    element: Element


def read_constraint(file: XmlFile, element: Element, frames: Frames) -> list[ConstraintRecord]:
    """A constraint of either layout; [] if it is of another kind, or wrong, which is a problem of the file then."""
    if element.tag not in KINDS:
        return []
    before, length = len(file.problems), 0.0
    if element.tag == "PointOnLineConstraint":
        line = _end(file, element, frames, "line_body", "line_body")
        follower = _end(file, element, frames, "follower_body", "follower_body")
        direction = vector(file, element, "line_direction_vec", (1.0, 0.0, 0.0))
        if np.isfinite(direction).all() and not direction.any():
            file.problem(element, "its line_direction_vec is 0 0 0; expected a direction")
        ends = [
            (follower[0], follower[1] @ _at(vector(file, element, "point_on_follower"))),
            (line[0], line[1] @ _at(vector(file, element, "point_on_line")) @ _along(direction)),
        ]
    else:
        ends = []
        weld = element.tag == "WeldConstraint"
        for k in ("1", "2"):
            body, T = _end(file, element, frames, f"frame{k}" if weld else f"body_{k}", f"body_{k}")
            turn = vector(file, element, f"orientation_body_{k}") if weld else np.zeros(3)
            ends.append((body, T @ placed(vector(file, element, f"location_body_{k}"), turn)))
        if element.tag == "ConstantDistanceConstraint":
            given = file.only(element, "constant_distance", required=True)
            length = np.nan if given is None else file.number(given, None, above=0.0, unit="m")
    return [] if len(file.problems) > before else [ConstraintRecord((ends[0], ends[1]), length, element)]


def _end(file: XmlFile, element: Element, frames: Frames, socket: str, old: str) -> tuple[str, Array]:
    """The body at an end, and where the frame of the socket is in it."""
    name = element.find(old)
    if name is not None and element.find(f"socket_{socket}") is None:
        return file.word(name, None), np.eye(4)
    return frames.socket(element, f"socket_{socket}")


def _at(point: Array) -> Array:
    return np.asarray(translate(*point), dtype=float) if np.isfinite(point).all() else np.eye(4)


def _along(direction: Array) -> Array:
    """A frame whose z has this direction."""
    if not np.isfinite(direction).all() or not direction.any():
        return np.eye(4)  # a problem has been reported already
    z = direction / np.linalg.norm(direction)
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    return T


def make_constraints(
    file: XmlFile, records: list[ConstraintRecord], hosts: Hosts
) -> tuple[list[Constraint], list[Note]]:
    """Constraints between links of the model, and notes of those that there cannot be."""
    found: list[Constraint] = []
    notes = []
    for record in records:
        ends = []
        for body, T in record.ends:
            if body not in hosts:
                file.problem(record.element, f"names body {shown(body)}, which the file does not have")
                continue
            host, place = hosts[body]
            ends.append((host, place @ T))
        if len(ends) < 2:
            continue
        made: Any = file.guard(record.element, _made, record, *ends)
        if isinstance(made, str):
            notes.append(Note("constraint", f"{record.element.own_label} is left out: {made}", record.element.line))
        elif made is not None:
            found.append(made)
    return found, notes


def _made(record: ConstraintRecord, a: tuple[str | None, Array], b: tuple[str | None, Array]) -> Constraint | str:
    kind, name = record.element.tag, record.element.get("name")
    if a[0] == b[0]:
        return "both of its bodies are fixed in the ground" if a[0] is None else f"both are part of link {shown(a[0])}"
    if a[0] is None:
        if kind == "PointOnLineConstraint":
            return "its point is fixed in the ground"
        a, b = b, a
    link: Any = a[0]
    if kind == "ConstantDistanceConstraint":
        return Distance(link, a[1][:3, 3], b[0], b[1][:3, 3], length=record.length, name=name)
    words = {"WeldConstraint": "weld", "PointConstraint": "pin", "PointOnLineConstraint": "xy"}
    return Loop(link, a[1], b[0], b[1], directions=words[kind], name=name)
