"""Second derivatives at nodes: which of them there are, and those of functions of τ and φ carried to z."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.problem.nodes import Grid
from kinegrad.motion.problem.sparse import product

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


def coupled(grid: Grid) -> Mask:
    """Which of coordinates, forces and parameters have second derivatives with which, before splines."""
    layout, mechanics = grid.layout, grid.mechanics
    nv, no = layout.nv, layout.forces + layout.parameters
    found = np.zeros((nv + no,) * 2, dtype=bool)
    used = np.zeros(layout.all, dtype=bool)
    for block in grid.blocks:
        used[block.function.entries[1]] = True
    of_coordinates, of_others = grid.patterns()
    support = np.zeros((layout.all, nv + no), dtype=bool)
    for k in range(layout.states):
        support[k, k % nv] = True
    support[layout.states + np.arange(no), nv + np.arange(no)] = True
    support[layout.size :, :nv] = of_coordinates
    support[layout.size :, nv:] = of_others
    forced, watched = mechanics.moved
    if used[layout.tau].any():
        found[:nv, :nv] |= mechanics.torque_pattern
        found[:nv, nv : nv + layout.forces] |= forced.T
    for row, moved in zip(range(layout.error.start, layout.error.stop), watched, strict=True):
        if used[row]:
            found[:nv, :nv] |= np.outer(moved, moved)
    if used[layout.size :].any() and layout.parameters:
        found[:, nv + layout.forces :] = True
    for block in grid.blocks:
        for a, b in zip(*block.function.pairs, strict=True):
            found |= np.outer(support[a], support[b])
    return found | found.T


class Pairs:
    """Second derivatives O of a function by y = (z, τ, φ) at places (a, b), each pair once: Jᵀ O J by z.

    Parameters
    ----------
    a, b : ndarray of int
    size : int
        Of z.
    """

    def __init__(self, a: Index, b: Index, size: int) -> None:
        self.count = len(a)
        a, b = np.maximum(a, b), np.minimum(a, b)
        self._plain = np.flatnonzero(a < size)
        off = np.flatnonzero((a < size) & (a != b))
        self._places = np.concatenate([a[self._plain] * size + b[self._plain], b[off] * size + a[off]])
        self._of_places = np.concatenate([self._plain, off])
        self._squares = np.flatnonzero((b >= size) & (a == b))
        self._square_rows = a[self._squares] - size
        self._across = [
            (which, *_blocks(a[which] - size, b[which] - below), below == size)
            for which, below in (
                (np.flatnonzero((a >= size) & (b < size)), 0),
                (np.flatnonzero((b >= size) & (a != b)), size),
            )
            if len(which)
        ]

    def add(self, values: Array, grid: Grid, x: Array, H: Array) -> None:
        """Add those with these values, (K, pairs), to H, (K, size, size)."""
        if len(self._of_places):
            H.reshape(len(H), -1)[:, self._places] += values[:, self._of_places]
        if len(self._squares):
            rows = grid.J(x)[:, self._square_rows]
            H += product(rows.swapaxes(1, 2), rows * values[:, self._squares, None])
        for which, one, at_one, two, at_two, computed in self._across:
            J = grid.J(x)
            across = np.zeros((len(J), len(one), len(two)))
            across[:, at_one, at_two] = values[:, which]
            part = product(J[:, one].swapaxes(1, 2), product(across, J[:, two]) if computed else across)
            if computed:
                H += part + part.swapaxes(1, 2)
            else:
                H[:, :, two] += part
                H[:, two] += part.swapaxes(1, 2)


def _blocks(one: Index, two: Index) -> tuple[Index, Index, Index, Index]:
    """The different numbers of each, and where those given are among them."""
    a, at_a = np.unique(one, return_inverse=True)
    b, at_b = np.unique(two, return_inverse=True)
    return a, at_a.ravel(), b, at_b.ravel()
