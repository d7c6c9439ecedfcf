"""What connects links besides joints: force elements, loops, rods and contacts, as points and lines to draw."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import Contact, Distance, Loop
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model, SpringDamper
from kinegrad.model.elements import ends as element_ends

__all__ = ["Connection", "attachments", "coil", "connections", "places"]

Array = NDArray[np.float64]
TURNS, STEPS = 7, 12  # of the coil of a spring, and points of each turn


class Connection(NamedTuple):
    """Two points that something connects: "spring", "bushing", "loop", "rod" or "contact"."""

    kind: str
    links: tuple[int, int]  # −1 for the world
    points: Array  # (2, 3), m, in the frames of the links


def connections(model: Model, constraints: Iterable[Any] | None = None) -> tuple[Connection, ...]:
    """Return the force elements of a model and its constraints between points.

    Examples
    --------
    >>> from kinegrad import samples
    >>> model, loop = samples.four_bar()
    >>> [(each.kind, each.links) for each in connections(model, loop)]
    [('loop', (1, 2))]
    """
    found = []
    for element in model.elements.values():
        if isinstance(element, SpringDamper):
            kind, points = "spring", [element.point, element.other_point]
        else:
            kind, points = "bushing", [element.placement[:3, 3], element.other_placement[:3, 3]]
        found.append(_made(model, kind, element_ends(model, element), points))
    for each in constraints or ():
        if isinstance(each, Loop):
            points = [np.asarray(each.placement)[:3, 3], np.asarray(each.other_placement)[:3, 3]]
        elif isinstance(each, Distance | Contact):
            points = [np.asarray(each.point, dtype=float), np.asarray(each.other_point, dtype=float)]
        else:
            continue
        kind = {Loop: "loop", Distance: "rod", Contact: "contact"}[type(each)]
        links = model.locate(each.link), (-1, None) if each.other is None else model.locate(each.other)
        found.append(_made(model, kind, links, points))
    return tuple(found)


def attachments(connected: Iterable[Connection]) -> list[tuple[int, Array]]:
    """Return the links and points that connections are fixed to, without the world."""
    pairs = [pair for each in connected for pair in zip(each.links, each.points, strict=True)]
    return [(link, point) for link, point in pairs if link >= 0]


def places(model: Model, connected: Iterable[Connection], q: Array) -> Array:
    """Return where both points of each connection are in the world, (..., connections, 2, 3), m."""
    transforms = forward_kinematics(model, q).transform
    found = [np.zeros((*transforms.shape[:-3], 0, 3))]
    for each in connected:
        for link, point in zip(each.links, each.points, strict=True):
            T = transforms[..., link, :, :] if link >= 0 else np.broadcast_to(np.eye(4), transforms[..., 0, :, :].shape)
            found.append((T[..., :3, :3] @ point + T[..., :3, 3])[..., None, :])
    whole = np.concatenate(found, axis=-2)
    return whole.reshape(*whole.shape[:-2], -1, 2, 3)


def coil(start: Array, end: Array, radius: float) -> Array:
    """Return the points of a coil from one point to another, (k, 3); a straight line if it is shorter than wide."""
    along = end - start
    length = float(np.linalg.norm(along))
    if length <= 2 * radius:
        return np.array([start, end])
    u = along / length
    side = np.cross(u, np.eye(3)[np.argmin(np.abs(u))])
    side /= np.linalg.norm(side)
    part = np.linspace(0.15, 0.85, TURNS * STEPS + 1)[:, None]
    angle = np.linspace(0, 2 * np.pi * TURNS, TURNS * STEPS + 1)[:, None]
    turned = start + part * along + radius * (np.cos(angle) * side + np.sin(angle) * np.cross(u, side))
    return np.concatenate([[start, start + 0.15 * along], turned, [start + 0.85 * along, end]])


def _made(model: Model, kind: str, ends: Any, points: list[Array]) -> Connection:
    """A connection whose points are in the frames of links, not of frames fixed in them."""
    inside = [
        np.array(point, dtype=float) if frame is None else frame[:3, :3] @ point + frame[:3, 3]
        for point, (_, frame) in zip(points, ends, strict=True)
    ]
    return Connection(kind, (ends[0][0], ends[1][0]), np.array(inside))
