"""The linear system (1) of [kudruss2019] alone, K x = b, and its derivatives along directions of K and b.

Proposition 3:  K ∂x = ∂b − ∂K x,  so that the factors of K serve all directions; differences factor each matrix anew.
Plain loops compiled by Numba, because libraries of linear algebra wake threads for right-hand sides as few as these.

    K, dK     (S, N, N), (S, k, N, N)       b, db     (S, N), (S, k, N)       for S states at once
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine

__all__ = ["central", "exact", "forward", "solution"]

Array = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])
OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": {"contract", "reassoc"}}


def compiled(function: Function) -> Function:
    """Compile on first use, out of reach of interrupts, and keep the code."""
    return cast(Function, cast(Any, engine.keep_compiled)(cast(Any, numba.njit)(**OPTIONS)(function)))


def inner(function: Function) -> Function:
    """The same for what only compiled code calls."""
    return cast(Function, cast(Any, numba.njit)(**OPTIONS)(function))


@inner
def factor(A: Any, swaps: Any) -> None:
    """A = P L U by elimination with pivots, in place."""
    n = len(A)
    for k in range(n):
        pivot = k + np.argmax(np.abs(A[k:, k]))
        swaps[k] = pivot
        if pivot != k:
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
def _solution(K: Array, b: Array) -> Any:
    A, x, swaps = K.copy(), b.copy(), np.empty(len(b), np.int64)
    factor(A, swaps)
    substitute(A, swaps, x)
    return x


@compiled
def solution(K: Array, b: Array) -> Any:
    """x, (S, N)."""
    found = np.empty(b.shape)
    for s in range(len(K)):
        found[s] = _solution(K[s], b[s])
    return found


@compiled
def forward(K: Array, dK: Array, b: Array, db: Array, h: float) -> Any:
    """∂x, (S, k, N), by forward differences."""
    found = np.empty(db.shape)
    for s in range(len(K)):
        x = _solution(K[s], b[s])
        for k in range(db.shape[1]):
            found[s, k] = (_solution(K[s] + h * dK[s, k], b[s] + h * db[s, k]) - x) / h
    return found


@compiled
def central(K: Array, dK: Array, b: Array, db: Array, h: float) -> Any:
    """∂x, (S, k, N), by central differences; and x, which they do not need, but who asks for ∂x does."""
    found = np.empty(db.shape)
    for s in range(len(K)):
        _solution(K[s], b[s])
        for k in range(db.shape[1]):
            up = _solution(K[s] + h * dK[s, k], b[s] + h * db[s, k])
            found[s, k] = (up - _solution(K[s] - h * dK[s, k], b[s] - h * db[s, k])) / (2 * h)
    return found


@compiled
def exact(K: Array, dK: Array, b: Array, db: Array) -> Any:
    """∂x, (S, k, N), with the factors of x."""
    swaps, found = np.empty(b.shape[1], np.int64), db.copy()
    for s in range(len(K)):
        A, x = K[s].copy(), b[s].copy()
        factor(A, swaps)
        substitute(A, swaps, x)
        for k in range(db.shape[1]):
            for i in range(len(x)):
                total = found[s, k, i]
                for j in range(len(x)):
                    total -= dK[s, k, i, j] * x[j]
                found[s, k, i] = total
            substitute(A, swaps, found[s, k])
    return found
