"""Sparse matrices as sums of pieces: places once, numbers at every evaluation.

A piece gives rows and columns of its entries as flat arrays, in which a place may occur often, and −1 is nowhere;
then, at every evaluation, as many numbers.  What belongs to one place is added up by ``np.bincount`` over a list of
positions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class SparseSum:
    """A matrix of some shape whose entries, in the order of columns, are sums of entries of pieces."""

    def __init__(self, shape: tuple[int, int], places: Sequence[tuple[Index, Index]], *, lower: bool = False) -> None:
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *(np.ravel(r) for r, _ in places)])
        columns = np.concatenate([np.zeros(0, dtype=np.int64), *(np.ravel(c) for _, c in places)])
        there = (rows >= 0) & (columns >= 0)
        if lower:
            rows, columns = np.maximum(rows, columns), np.minimum(rows, columns)
        keys, inverse = np.unique(columns[there] * shape[0] + rows[there], return_inverse=True)
        self.shape, self.count = shape, len(keys)
        self.rows, self.columns = keys % max(shape[0], 1), keys // max(shape[0], 1)
        self._position = np.full(len(rows), self.count, dtype=np.int64)
        self._position[there] = inverse.ravel()

    def values(self, pieces: Sequence[Array]) -> Array:
        """The entries, (count,), of the numbers of all pieces."""
        if not pieces:
            return np.zeros(self.count)
        flat = np.concatenate([np.ravel(x) for x in pieces])
        return np.bincount(self._position, flat, self.count + 1)[: self.count].astype(float, copy=False)
