"""Lines that stand for the links of a model where it has no shapes to draw.

A link is drawn from its joint to the joints that it carries; if it carries none, or all of them are where its own
joint is, to the origin of its frame; and if that is there as well, to its centre of mass.  A link whose mass is farther
from all its lines than they are long has a line to its centre of mass, too: a pelvis that carries the trunk.  All of
this is fixed in the link, so it is known without a posture.  A joint behind massless slides that another coordinate
moves, as those of a knee in OpenSim, is drawn where it is when that coordinate is zero: it wanders about that point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.model.model import Model

__all__ = ["Segment", "link_segments"]

Array = NDArray[np.float64]
SAME_POINT = 1e-6  # m


class Segment(NamedTuple):
    """A line fixed in a link."""

    link: int
    start: Array  # (3,), link frame, m: where the link's joint is
    end: Array  # (3,), link frame, m


def link_segments(model: Model) -> tuple[Segment, ...]:
    """The lines of all links; none for links that are a point.

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
    segments = []
    for link in (i for i in range(model.n) if i not in slides):
        tip = model.tip[link]
        start = -tip[:3, :3].T @ tip[:3, 3] + 0.0
        ends = [end for end in carried[link] if _apart(start, end)]
        if not ends and not carried[link]:  # the end of a branch
            ends = [end for end in (np.zeros(3), model.com[link]) if _apart(start, end)][:1]
        elif ends and model.mass[link] > 0:
            longest = max(float(np.linalg.norm(end - start)) for end in ends)
            if all(_distance(model.com[link], start, end) > longest for end in ends):
                ends.append(model.com[link])
        segments += [Segment(link, start, np.array(end)) for end in _distinct(ends)]
    return tuple(segments)


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
