"""When dynamics is looked at, and with which weights integrals are summed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.problem.requirements import Phase

Array = NDArray[np.float64]
NEAR = 1e-12  # parts of a phase that are the same instant


def node_instants(phase: Phase, nodes: int) -> Array:
    """Where dynamics is looked at: `nodes` equal parts of each segment."""
    edges = phase.basis.breakpoints
    inner = np.arange(nodes) / nodes
    s = (edges[:-1, None] + np.diff(edges)[:, None] * inner).ravel()
    return np.append(s, 1.0)


def clearance_instants(nodes: Array, during: tuple[float, float]) -> Array:
    """The nodes of an interval, and its ends, of which nodes may be far.

    >>> clearance_instants(np.linspace(0, 1, 5), (0.3, 1.0))
    array([0.3 , 0.5 , 0.75, 1.  ])
    """
    inside = nodes[(nodes > during[0] + NEAR) & (nodes < during[1] - NEAR)]
    near = [float(nodes[np.argmin(np.abs(nodes - end))]) for end in during]
    ends = [x if abs(x - end) <= NEAR else end for x, end in zip(near, during, strict=True)]
    return np.unique(np.concatenate([[ends[0]], inside, [ends[1]]]))


def collocation_instants(phase: Phase) -> Array:
    """Where a motion without motors fulfils its equations: at the means of the knots of its accelerations.

    Accelerations are splines of degree k − 2, and two control points of q are left for where it begins and how fast: as
    many equations as that spline has control points make it a solution of its differential equation, and with more of
    them motors would have to give up their freedom.  For cubic splines these instants are the breakpoints.
    """
    k = phase.basis.degree - 2
    edges = phase.basis.breakpoints
    knots = np.concatenate([np.zeros(k), edges, np.ones(k)])
    return np.array([knots[i + 1 : i + k + 1].mean() for i in range(len(edges) - 1 + k)])


# weights of n equal parts, Newton–Cotes: exact for polynomials of degree n, and of n + 1 where n is even
RULES = {
    1: np.array([1, 1]) / 2,
    2: np.array([1, 4, 1]) / 6,
    3: np.array([1, 3, 3, 1]) / 8,
    4: np.array([7, 32, 12, 32, 7]) / 90,
    5: np.array([19, 75, 50, 50, 75, 19]) / 288,
    6: np.array([41, 216, 27, 272, 27, 216, 41]) / 840,
}


def rule(parts: int) -> Array:
    """Weights of a segment in equal parts; beyond six, rules in a row, for larger ones have negative weights.

    >>> rule(2) * 6
    array([1., 4., 1.])
    """
    if parts in RULES:
        return RULES[parts]
    first = 5 if parts == 7 else 6  # not six and one, which would be a trapezoid
    w = np.zeros(parts + 1)
    w[: first + 1] += RULES[first] * first / parts
    w[first:] += rule(parts - first) * (parts - first) / parts
    return w


def quadrature(phase: Phase, nodes: int, *, steps: bool = False) -> Array:
    """Weights of integrals over the part of the phase, segment by segment.

    With `steps`, of what is constant within segments and jumps between them, as the jerk of cubic splines: of the
    values inside, or of those at the breakpoints, which are taken from the right.
    """
    lengths = np.diff(phase.basis.breakpoints)
    each = rule(nodes)
    if steps:
        each = np.zeros(nodes + 1)
        each[1:nodes] = 1 / max(nodes - 1, 1)
        each[0] = nodes == 1
    w = np.zeros(len(lengths) * nodes + 1)
    for k, h in enumerate(lengths):
        w[k * nodes : (k + 1) * nodes + 1] += h * each
    return w
