"""Lines that stand for the links of a model where it has no shapes to draw.

A link is drawn from its joint to the joints that it carries, and to the points where constraints and force elements act
on it; the last link of a branch also to the origin of its frame, if that is elsewhere.  From the nearest of these
points lines lead on to frames that stand out: a grip, the crown of a head.  A last link with none of these is drawn
as long as a uniform rod of its mass, centre and inertia.  A link whose mass is farther from all its lines than they are
long has a line to its centre of mass, too: a pelvis that carries the trunk.  All of this is fixed in the link, so it is
known without a posture.  A joint behind massless slides that another coordinate moves, as those of a knee in OpenSim,
is drawn where it is when that coordinate is zero: it wanders about that point.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.model.model import Model

__all__ = ["Segment", "link_segments"]

Array = NDArray[np.float64]
SAME_POINT = 1e-6  # m
NEAR = 0.02  # of the longest line of a link: a point so near to a line has none of its own
STANDS_OUT = 0.25  # of the longest line of a link: frames so far from all lines have one
MOST = 3  # lines of a link to frames


class Segment(NamedTuple):
    """A line fixed in a link."""

    link: int
    start: Array  # (3,), link frame, m: where the link's joint is, or the end of another line of the link
    end: Array  # (3,), link frame, m


def link_segments(model: Model, points: Iterable[tuple[int, Array]] = ()) -> tuple[Segment, ...]:
    """Return the lines of all links; none for links that are a point.

    Parameters
    ----------
    model : Model
    points : iterable of (int, ndarray)
        Links and points of their frames, (3,), m, that lines lead to: where constraints and elements act.

    Examples
    --------
    >>> from kinegrad import samples
    >>> [(segment.link, segment.start.tolist(), segment.end.tolist()) for segment in link_segments(samples.two_link())]
    [(0, [-0.4, 0.0, 0.0], [0.0, 0.0, 0.0]), (1, [-0.4, 0.0, 0.0], [0.0, 0.0, 0.0])]
    """
    carried: list[list[Array]] = [[] for _ in range(model.n)]
    inside = np.array(model.placement)  # of each joint in the link that carries it, past slides
    carrier, slides = np.array(model.parents), _coupled_slides(model)
    for i, parent in enumerate(model.parents):
        if parent in slides:
            slide = np.eye(4)
            slide[:3, 3] = slides[parent] * np.asarray(model.joints[parent].axis)
            carrier[i], inside[i] = carrier[parent], inside[parent] @ slide @ model.tip[parent] @ inside[i]
        if carrier[i] >= 0 and i not in slides:
            carried[carrier[i]].append(inside[i, :3, 3])
    held: dict[int, list[Array]] = {}
    for link, point in points:
        held.setdefault(link, []).append(np.asarray(point))
    frames: dict[int, list[Array]] = {}
    for frame in model.frames.values():
        frames.setdefault(model.link_index(frame.link), []).append(frame.placement[:3, 3])
    segments = []
    for link in (i for i in range(model.n) if i not in slides):
        tip = model.tip[link]
        start = -tip[:3, :3].T @ tip[:3, 3] + 0.0
        ends = [*carried[link], *([] if carried[link] else [np.zeros(3)])]
        lines = [(start, end) for end in _distinct([end for end in ends if _apart(start, end)])]
        for point in held.get(link, []):
            if _farness(point, start, lines) > max(NEAR * _longest(lines), SAME_POINT):
                lines.append((start, point))
        lines += _outstanding(frames.get(link, []), start, lines)
        if not lines and not carried[link]:
            end = _rod_end(model, link, start)
            lines = [(start, end)] if _apart(start, end) else []
        elif lines and model.mass[link] > 0:
            longest = _longest(lines)
            if all(_distance(model.com[link], *line) > longest for line in lines):
                lines.append((start, model.com[link]))
        segments += [Segment(link, np.array(first), np.array(end)) for first, end in lines]
    return tuple(segments)


def _outstanding(frames: list[Array], start: Array, lines: list[tuple[Array, Array]]) -> list[tuple[Array, Array]]:
    """Lines to frames that are far from all others, the farthest first."""
    found = list[tuple[Array, Array]]()
    for _ in range(MOST):
        every = [*lines, *found]
        far = [_farness(point, start, every) for point in frames]
        if not far or max(far) <= max(STANDS_OUT * _longest(every), SAME_POINT):
            break
        point = frames[int(np.argmax(far))]
        ends = [start, *(end for _, end in every)]
        found.append((min(ends, key=lambda end: float(np.linalg.norm(point - end))), point))
    return found


def _rod_end(model: Model, link: int, start: Array) -> Array:
    """Where a uniform rod from the link's joint through its centre of mass ends, by the link's mass and inertia."""
    com, mass, inertia = model.com[link], float(model.mass[link]), model.inertia[link]
    along = com - start
    length = float(np.linalg.norm(along))
    if mass <= 0 or length <= SAME_POINT:
        return np.array(com)
    along = along / length
    second = max(float(np.trace(inertia) / 2 - along @ inertia @ along), 0.0)  # ∫ x² dm along the rod
    end: Array = com + np.sqrt(3 * second / mass) * along
    return end


def _longest(lines: list[tuple[Array, Array]]) -> float:
    return max((float(np.linalg.norm(end - start)) for start, end in lines), default=0.0)


def _farness(point: Array, start: Array, lines: list[tuple[Array, Array]]) -> float:
    """How far a point is from all lines, or from the joint if there are none."""
    return min((_distance(point, *line) for line in lines), default=float(np.linalg.norm(point - start)))


def _coupled_slides(model: Model) -> dict[int, float]:
    """Massless prismatic links that a coupling moves, and where they are at zero, m."""
    layout = model.layout
    found = {int(i): f for i, f in zip(layout.coupled, layout.functions, strict=True)}
    return {
        i: float(f.derivatives(np.zeros(1), 0)[0][0])
        for i, f in found.items()
        if model.joints[i].kind == "prismatic" and model.mass[i] == 0
    }


def _distance(point: Array, start: Array, end: Array) -> float:
    """From a point to a line between two others."""
    along = end - start
    part = np.clip((point - start) @ along / (along @ along), 0.0, 1.0)
    return float(np.linalg.norm(point - start - part * along))


def _apart(first: Array, second: Array) -> bool:
    return bool(np.linalg.norm(second - first) > SAME_POINT)


def _distinct(points: list[Array]) -> list[Array]:
    kept: list[Array] = []
    for point in points:
        if all(_apart(point, other) for other in kept):
            kept.append(point)
    return kept
