"""Sparse matrices that are linear in numbers at nodes: places and coefficients once, numbers at every evaluation.

A part says of its numbers, which come anew with every evaluation, where they go: entry by entry the row, the column, a
coefficient, and which number it takes; −1 is nowhere.  A place may occur often.  The values of the whole pattern are
then one product of a constant sparse matrix with all numbers, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine import spline_nodes

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST = 200_000  # multiplications of one product of matrices, below which OpenBLAS starts no threads


def product(A: Array, B: Array) -> Array:
    """A B of matrices in the last two axes, in pieces for which BLAS starts no threads.

    At such sizes threads wait for each other longer than they work: on a busy machine, for seconds.
    """
    rows = max(1, MOST // (A.shape[-1] * B.shape[-1] + 1))
    if A.shape[-2] <= rows:
        return np.asarray(np.matmul(A, B))
    pieces = [np.matmul(A[..., k : k + rows, :], B) for k in range(0, A.shape[-2], rows)]
    return np.concatenate(pieces, axis=-2)


@dataclass(frozen=True, eq=False)
class Part:
    """Where some numbers go; all arrays of one shape, or of shapes that broadcast to that of `rows`."""

    rows: Any
    columns: Any
    coefficients: Any = 1.0
    sources: Any = None  # which number; one after another, if not given
    count: int | None = None  # of numbers; as many as entries, if not given


class SparseSum:
    """A matrix of some shape whose entries, in the order of columns, are sums of multiples of numbers."""

    def __init__(self, shape: tuple[int, int], parts: Sequence[Part], *, lower: bool = False) -> None:
        from scipy.sparse import csr_array

        none = np.zeros(0, dtype=np.int64)
        all_rows, all_columns, coefficients, sources, first = [none], [none], [np.zeros(0)], [none], 0
        for part in parts:
            rows = np.asarray(part.rows, dtype=np.int64)
            own = np.arange(rows.size).reshape(rows.shape) if part.sources is None else part.sources
            all_rows.append(rows.ravel())
            all_columns.append(np.broadcast_to(part.columns, rows.shape).ravel())
            coefficients.append(np.broadcast_to(part.coefficients, rows.shape).ravel())
            sources.append(np.broadcast_to(own + first, rows.shape).ravel())
            first += rows.size if part.count is None else part.count
        r, c, factor, source = (np.concatenate(x) for x in (all_rows, all_columns, coefficients, sources))
        there = (r >= 0) & (c >= 0)
        r, c, factor, source = r[there], c[there], factor[there], source[there]
        if lower:
            r, c = np.maximum(r, c), np.minimum(r, c)
        keys, inverse = np.unique(c * shape[0] + r, return_inverse=True)
        self.shape, self.count = shape, len(keys)
        self.rows, self.columns = keys % max(shape[0], 1), keys // max(shape[0], 1)
        self._matrix = csr_array((factor, (inverse.ravel(), source)), shape=(self.count, first))

    def values(self, numbers: Sequence[Array]) -> Array:
        """The entries, (count,), of the numbers of all parts."""
        if not numbers:
            return np.zeros(self.count)
        flat = np.concatenate([x.ravel() for x in numbers]) if len(numbers) > 1 else numbers[0].ravel()
        A, found = self._matrix, np.empty(self.count)
        spline_nodes.product(A.indptr, A.indices, A.data, flat, found)
        return found
