"""What a model looks like: a surface and a colour for each part of each link.

A model with shapes looks as they say.  Links without any are capsules along their lines
(:mod:`kinegrad.model.segments`), as thick as their mass would be with the density of water, within bounds, so that a
body looks like one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.model import Model
from kinegrad.model.geometry import Sphere
from kinegrad.model.segments import Segment, link_segments
from kinegrad.view.surfaces import Surface, capsule_between, surface

__all__ = ["Part", "body_parts", "reach"]

Array = NDArray[np.float64]
DENSITY = 1000.0  # kg/m³
THINNEST, THICKEST = 0.006, 0.07  # radii of capsules, of the reach of the model
# distinguishable for the colour-blind too: Okabe and Ito's, in an order that neighbours differ in
LIGHTER = 0.22  # of the way to white
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7a5195", "#b5a642")


class Part(NamedTuple):
    """A piece of a link to draw."""

    link: int  # −1 for the world
    surface: Surface  # link frame
    color: tuple[float, float, float, float]  # red, green, blue, opacity, from 0 to 1


def body_parts(model: Model, points: Iterable[tuple[int, Array]] = ()) -> tuple[Part, ...]:
    """Return all parts of a model, shapes where it has them; `points` as of :func:`link_segments`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> len(body_parts(samples.human43())) > 15
    True
    """
    parts, shaped = [], set()
    for k, shape in enumerate(model.shapes):
        if shape.collision:
            continue
        link, frame = (-1, None) if shape.link is None else model.locate(shape.link)
        placement = shape.placement if frame is None else frame @ shape.placement
        shaped.add(link)
        color = shape.color or branch_color(model, link)
        parts.append(Part(link, surface(shape.solid, f"`shapes`[{k}]: ").moved(placement), color))
    length = reach(model)
    lines = link_segments(model, points)
    for line in lines:
        if line.link not in shaped:
            slimmer = 1 - 0.015 * (line.link % 5)  # ends that meet at a joint do not lie in each other's surface
            bone = capsule_between(line.start, line.end, slimmer * _radius(model, line, lines, length))
            parts.append(Part(line.link, bone, branch_color(model, line.link)))
    drawn = shaped | {line.link for line in lines}
    for link in range(model.n):  # a mass without an extent is a ball
        if link not in drawn and model.mass[link] > 0:
            radius = float(np.clip((model.mass[link] / DENSITY * 0.75 / np.pi) ** (1 / 3), 0.01 * length, 0.1 * length))
            placement = np.eye(4)
            placement[:3, 3] = model.com[link]
            parts.append(Part(link, surface(Sphere(radius)).moved(placement), branch_color(model, link)))
    return tuple(parts)


def reach(model: Model) -> float:
    """A length that the model could have if it were stretched out, m: the scale of axes, arrows and views."""
    far = np.zeros(model.n)
    for link in range(model.n):
        parent = model.parents[link]
        before = far[parent] if parent >= 0 else 0.0
        step = np.linalg.norm(model.placement[link, :3, 3]) if parent >= 0 else 0.0
        far[link] = before + step + np.linalg.norm(model.tip[link, :3, 3])
    longest = float((far + np.linalg.norm(model.com, axis=1)).max())
    return longest if longest > 0 else 1.0


def branch_color(model: Model, link: int) -> tuple[float, float, float, float]:
    """The colour of the branch that a link belongs to, every second body of it lighter; grey for the world."""
    if link < 0:
        return 0.6, 0.62, 0.65, 1.0
    text = PALETTE[int(model.topology.branch_of[link]) % len(PALETTE)]
    before, bodies = link, 0
    while (before := int(model.parents[before])) >= 0 and model.topology.branch_of[before] == model.topology.branch_of[
        link
    ]:
        bodies += bool(model.mass[before] > 0)
    lighter = LIGHTER if bodies % 2 else 0.0
    red, green, blue = (x + lighter * (1 - x) for x in (int(text[k : k + 2], 16) / 255 for k in (1, 3, 5)))
    return red, green, blue, 1.0


def _radius(model: Model, line: Segment, lines: tuple[Segment, ...], length: float) -> float:
    """Of a capsule that has the link's mass: all lines of a link share it by their lengths."""
    whole = sum(float(np.linalg.norm(other.end - other.start)) for other in lines if other.link == line.link)
    filled = np.sqrt(model.mass[line.link] / (DENSITY * np.pi * whole)) if model.mass[line.link] > 0 else 0.0
    own = float(np.linalg.norm(line.end - line.start))
    return float(np.clip(filled, THINNEST * length, min(THICKEST * length, max(0.45 * own, THINNEST * length))))
