"""When dynamics is looked at, and with which weights integrals are summed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.problem.requirements import Phase

Array = NDArray[np.float64]


def node_instants(phase: Phase, nodes: int) -> Array:
    """Where dynamics is looked at: `nodes` equal parts of each segment."""
    edges = phase.basis.breakpoints
    inner = np.arange(nodes) / nodes
    s = (edges[:-1, None] + np.diff(edges)[:, None] * inner).ravel()
    return np.append(s, 1.0)


RULES = {2: (1 / 6, 4 / 6, 1 / 6), 3: (1 / 8, 3 / 8, 3 / 8, 1 / 8), 4: (1 / 12, 4 / 12, 2 / 12, 4 / 12, 1 / 12)}


def quadrature(phase: Phase, nodes: int) -> Array:
    """Weights of integrals over the part of the phase: Simpson's rules in each segment, or the trapezoid rule."""
    lengths = np.diff(phase.basis.breakpoints)
    ends = np.full(nodes + 1, 1 / nodes)
    ends[[0, -1]] /= 2
    rule = np.array(RULES.get(nodes, ends))
    w = np.zeros(len(lengths) * nodes + 1)
    for k, h in enumerate(lengths):
        w[k * nodes : (k + 1) * nodes + 1] += h * rule
    return w
