"""Lines that stand for the links of a model where it has no shapes to draw.

A link is drawn from its joint to the joints that it carries; if it carries none, or all of them are where its own
joint is, to the origin of its frame; and if that is there as well, to its centre of mass.  All of this is fixed in the
link, so it is known without a posture.
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
    for i, parent in enumerate(model.parents):
        if parent >= 0:
            carried[parent].append(model.placement[i, :3, 3])
    segments = []
    for link in range(model.n):
        tip = model.tip[link]
        start = -tip[:3, :3].T @ tip[:3, 3] + 0.0
        ends = [end for end in carried[link] if _apart(start, end)]
        if not ends and not carried[link]:  # the end of a branch
            ends = [end for end in (np.zeros(3), model.com[link]) if _apart(start, end)][:1]
        segments += [Segment(link, start, np.array(end)) for end in _distinct(ends)]
    return tuple(segments)


def _apart(first: Array, second: Array) -> bool:
    return bool(np.linalg.norm(second - first) > SAME_POINT)


def _distinct(points: list[Array]) -> list[Array]:
    kept: list[Array] = []
    for point in points:
        if all(_apart(point, other) for other in kept):
            kept.append(point)
    return kept
