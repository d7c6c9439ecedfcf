"""Lengths of links by name, ``"upper.length"``: from a link's joint to where the next joint, or its tip, sits.

A model does not know lengths; it knows where things are placed.  What a person calls the length of a link is read from
these placements, in this order:

1. its children sit at one point of it, other than its own frame's origin: the distance to that point;
2. its frame sits at its far end (`tip`), and its children there, too: the distance to that end;
3. it has no children, and one frame fixed in it, such as a tool: the distance to that frame.

Changing the length moves that point along the line from the joint.  Masses, centres of mass and inertias stay as they
are: where they follow the length, use a function that builds the model (``Design.from_function``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown

if TYPE_CHECKING:
    from kinegrad.model.model import Model

__all__ = ["LinkLength", "link_length"]

Array = NDArray[np.float64]
SAME = 1e-12  # m


@dataclass(frozen=True, eq=False)
class LinkLength:
    """What a length moves: transforms `places` of the field `what` ("placement", "tip" or "frames"), by `vector`."""

    what: str
    places: tuple[int, ...]
    vector: Array

    @property
    def length(self) -> float:
        """m."""
        return float(np.linalg.norm(self.vector))

    @property
    def direction(self) -> Array:
        """A unit vector."""
        return self.vector / self.length


def link_length(model: Model, i: int) -> LinkLength:
    """The length of link i, or an InputError that says why it has none."""
    link = f"link {shown(model.link_names[i])} of model {shown(model.name)}"
    joint = shown(model.joint_names[i])[1:-1]
    if model.dh is not None and model.dh.rows[i] is not None:
        raise InputError(f"{link} is placed by a Denavit–Hartenberg row; expected {joint}.a or {joint}.d")
    children = [k for k in range(model.n) if model.parents[k] == i]
    end = model.tip[i, :3, 3]
    away = [k for k in children if np.linalg.norm(model.placement[k, :3, 3]) > SAME]
    if away:
        points = model.placement[away, :3, 3]
        if np.linalg.norm(end) > SAME or np.abs(points - points[0]).max() > SAME:
            why = (
                "its frame is not at its joint" if np.linalg.norm(end) > SAME else "its children sit at several points"
            )
            names = ", ".join(f"{model.joint_names[k]}.placement.x" for k in away[:2])
            raise InputError(f"{link} has no single length: {why}; expected {names}, …")
        return LinkLength("placement", tuple(away), points[0])
    if np.linalg.norm(end) > SAME:
        return LinkLength("tip", (i,), end)
    frames = [k for k, frame in enumerate(model.frames.values()) if frame.link == model.link_names[i]]
    far = [k for k in frames if np.linalg.norm(list(model.frames.values())[k].placement[:3, 3]) > SAME]
    if not children and len(far) == 1:
        return LinkLength("frames", tuple(far), np.array(list(model.frames.values())[far[0]].placement[:3, 3]))
    why = "nothing sits away from its joint" if not far else "several frames are fixed in it"
    raise InputError(f"{link} has no length: {why}; expected a child, a tip, or one frame such as a tool")
