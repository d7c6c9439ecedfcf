"""Are the derivatives those of the functions?  Compared with differences, on demand.

Gradient and Jacobian are compared with central differences of values, along random directions and for each variable
of a small problem; the Hessian with central differences of the exact gradient of the Lagrangian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.problem.program import MotionProgram
from kinegrad.results import Result

__all__ = ["DerivativeCheck"]

Array = NDArray[np.float64]
STEP = 1e-6
MOST = 400  # directions


@dataclass(frozen=True, eq=False)
class DerivativeCheck(Result):
    """Largest differences, relative to the largest entry.

    Attributes
    ----------
    gradient, jacobian, hessian : float
    worst_row : str
        The row of the Jacobian with the largest difference.
    directions : int
        How many directions were tried.
    """

    gradient: float
    jacobian: float
    hessian: float
    worst_row: str
    directions: int


def check_derivatives(program: MotionProgram, x: Array, seed: int, *, move: bool) -> DerivativeCheck:
    """At x, or at a random point near it."""
    from scipy.sparse import csc_array

    rng = np.random.default_rng(seed)
    n, m, scale = program.n, program.m, program.x_scale
    if move:
        x = x + 0.02 * scale * rng.standard_normal(n)
        where = program.parts.variables.durations
        x[where[where >= 0]] = np.clip(x[where[where >= 0]], program.x_lower[where[where >= 0]], None)
    weights = rng.standard_normal(m) / program.g_scale
    sigma = 0.7

    def matrix(values: Array, pattern: Any, rows: int) -> Any:
        return csc_array((values, pattern), shape=(rows, n))

    def slope(at: Array) -> Array:
        rows = matrix(program.jacobian(at), program.jacobian_pattern, m)
        return np.asarray(sigma * program.gradient(at) + rows.T @ weights)

    lower = matrix(program.hessian(x, sigma, weights), program.hessian_pattern, n)
    diagonal = lower.diagonal()
    gradient, J = program.gradient(x), matrix(program.jacobian(x), program.jacobian_pattern, m)
    D = scale[:, None] * (np.eye(n) if n <= MOST else rng.standard_normal((n, 40)) / np.sqrt(n))
    off = np.zeros(3)
    size = np.full(3, 1e-300)
    row = 0
    for d in D.T:
        up, down = x + STEP * d, x - STEP * d
        pairs = (
            (gradient @ d, (program.objective(up) - program.objective(down)) / (2 * STEP)),
            (
                (J @ d) / program.g_scale,
                (program.constraints(up) - program.constraints(down)) / (2 * STEP) / program.g_scale,
            ),
            ((lower @ d + lower.T @ d - diagonal * d) * scale, (slope(up) - slope(down)) / (2 * STEP) * scale),
        )
        for k, (exact, difference) in enumerate(pairs):
            gap = np.abs(np.atleast_1d(exact - difference))
            size[k] = max(size[k], float(np.abs(difference).max(initial=0.0)))
            if gap.max(initial=0.0) > off[k]:
                off[k] = float(gap.max())
                row = int(np.argmax(gap)) if k == 1 else row
    found = off / np.maximum(size, 1e-12)
    f, g, h = found.tolist()
    return DerivativeCheck(f, g, h, program.row_name(row) if m else "", D.shape[1])
