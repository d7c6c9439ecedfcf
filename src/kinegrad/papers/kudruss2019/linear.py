"""The linear system (1) of [kudruss2019] alone, K x = b, and its derivatives along directions of K and b.

Proposition 3:  K ∂x = ∂b − ∂K x,  so that the factors of K serve all directions; differences factor each matrix anew.
Plain loops compiled by Numba, because libraries of linear algebra wake threads for right-hand sides as few as these.

    K, dK     (S, N, N), (S, k, N, N)       b, db     (S, N), (S, k, N)       for S states at once
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.papers.report.compiled import compiled, inner

__all__ = ["solutions"]

Array = NDArray[np.float64]


@inner
def factor(A: Any, swaps: Any) -> None:
    """A = P L U by elimination with pivots, in place."""
    n = len(A)
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        swaps[k] = pivot
        for j in range(n):
            A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]


@inner
def substitute(A: Any, swaps: Any, x: Any) -> None:
    """x becomes the solution for the right-hand side x."""
    n = len(A)
    for k in range(n):
        x[k], x[swaps[k]] = x[swaps[k]], x[k]
    for i in range(n):
        total = x[i]
        for j in range(i):
            total -= A[i, j] * x[j]
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= A[i, j] * x[j]
        x[i] = total / A[i, i]


@inner
def solve_moved(K: Any, dK: Any, b: Any, db: Any, h: float, A: Any, swaps: Any, x: Any) -> None:
    """x, the solution of (K + h ∂K) x = b + h ∂b; A are its factors."""
    for i in range(len(b)):
        x[i] = b[i] + h * db[i]
        for j in range(len(b)):
            A[i, j] = K[i, j] + h * dK[i, j]
    factor(A, swaps)
    substitute(A, swaps, x)


@inner
def changed(dK: Any, x: Any, right: Any) -> None:
    """right − ∂K x, in place."""
    for i in range(len(x)):
        total = right[i]
        for j in range(len(x)):
            total -= dK[i, j] * x[j]
        right[i] = total


@compiled
def solutions(K: Array, dK: Array, b: Array, db: Array, h: float, sides: int) -> tuple[Array, Array]:
    """x, (S, N), and ∂x, (S, k, N): with the factors of x if `sides` is 0, or by differences on one or two sides."""
    n, directions = b.shape[1], db.shape[1]
    A, swaps, other, x, found = np.empty((n, n)), np.empty(n, np.int64), np.empty(n), np.empty(b.shape), db.copy()
    for s in range(len(K)):
        solve_moved(K[s], K[s], b[s], b[s], 0.0, A, swaps, x[s])
        for k in range(directions):
            if sides == 0:
                changed(dK[s, k], x[s], found[s, k])
                substitute(A, swaps, found[s, k])
            else:
                solve_moved(K[s], dK[s, k], b[s], db[s, k], h, A, swaps, found[s, k])
                other[:] = x[s]
                if sides == 2:
                    solve_moved(K[s], dK[s, k], b[s], db[s, k], -h, A, swaps, other)
                for i in range(n):
                    found[s, k, i] = (found[s, k, i] - other[i]) / (sides * h)
    return x, found
