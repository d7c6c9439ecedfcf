"""Adaptive differentiation with steps in proportion to the coordinate, as MATLAB's `jacobianest` takes them.

[zhakatayev2023] compares its sensitivities with `jacobianest` of J. D'Errico's "Adaptive Robust Numerical
Differentiation" (MATLAB Central File Exchange 13490).  This is its rule, written anew and for whole batches.
Component x of the point moves by

    δ_k = s · 100 · 2.0000001^(−k),   k = 0 … 25,      s = x if x ≠ 0, else 1

the central quotients e_k = (f(x + δ_k) − f(x − δ_k)) / 2δ_k are fitted, four in a row, by c₀ + c₁δ² + c₂δ⁴, and among
the 22 values of c₀, the three lowest and the three highest apart, the one that its fit misses least is the answer.

The weak point is s.  Where x would be zero but for rounding, such as sin π = 1.2e-16, every step is so small
that f hardly changes, or does not change at all.  Four quotients that are exactly zero are fitted exactly, so that
zero is what the rule trusts most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["EVALUATIONS", "jacobianest"]

Array = NDArray[np.float64]
LARGEST, RATIO, STEPS = 100.0, 2.0000001, 26
POWERS = (0, 2, 4)  # of δ in the fit
TRIM = 3  # estimates left out at each end
EVALUATIONS = 2 * STEPS  # of the function, for each component
STUDENT = 12.7062047361747  # t of 95 % with one degree of freedom; the same factor for all, kept for the estimate


def jacobianest(function: Callable[[Array], Array], x: ArrayLike, columns: Sequence[int] | None = None) -> Array:
    """The Jacobian of a function at x by that rule.

    Parameters
    ----------
    function : callable
        Takes points of shape (k, n), returns values of shape (k, m).
    x : array_like, shape (n,)
        Where to differentiate.
    columns : sequence of int, optional
        With respect to which components; all when not given.

    Returns
    -------
    ndarray, shape (m, n) or (m, len(columns))

    Examples
    --------
    >>> jacobianest(lambda x: np.sin(x), [1.0]).round(9)
    array([[0.54030231]])

    Right at zero, and lost beside it:

    >>> jacobianest(lambda x: 1 + np.sin(x), [0.0]).round(6), jacobianest(lambda x: 1 + np.sin(x), [1e-19])
    (array([[1.]]), array([[0.]]))
    """
    at = np.asarray(x, dtype=np.float64)
    chosen = np.arange(len(at)) if columns is None else np.asarray(columns)
    scale = np.where(at[chosen] == 0, 1.0, at[chosen])
    delta = scale[:, None] * LARGEST * RATIO ** -np.arange(STEPS, dtype=np.float64)
    points = np.tile(at, (2, STEPS, len(chosen), 1))
    for c, j in enumerate(chosen):
        points[0, :, c, j] += delta[c]
        points[1, :, c, j] -= delta[c]
    values = np.asarray(function(points.reshape(-1, len(at))))
    up, down = values.reshape(2, STEPS, len(chosen), -1)
    quotients = (up - down) * (0.5 / delta.T[:, :, None])  # (steps, columns, m)
    return _extrapolated(quotients).T


def _extrapolated(quotients: Array) -> Array:
    """The estimate at δ → 0 whose own error estimate is the smallest; (steps, ...) to (...)."""
    rows = len(POWERS) + 1
    powers = RATIO ** -np.outer(np.arange(rows), POWERS).astype(np.float64)
    orthogonal, triangular = np.linalg.qr(powers)
    inverse = np.linalg.inv(triangular)
    count = len(quotients) - rows
    windows = np.stack([quotients[k : k + count] for k in range(rows)], axis=-1)
    coefficients = windows @ (orthogonal @ inverse.T)
    missed = np.linalg.norm(windows - coefficients @ powers.T, axis=-1)
    error = STUDENT * np.linalg.norm(inverse[0]) * missed
    order = np.argsort(coefficients[..., 0], axis=0, kind="stable")[TRIM:-TRIM]
    estimates = np.take_along_axis(coefficients[..., 0], order, axis=0)
    best = np.take_along_axis(error, order, axis=0).argmin(axis=0)[None]
    found: Array = np.take_along_axis(estimates, best, axis=0)[0]
    return found
