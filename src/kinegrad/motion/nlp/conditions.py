"""The conditions of an optimum, checked by ourselves: a solver's word is not proof.

At a minimum of the scaled program, where the constraints are regular, there are multipliers λ of rows and z of bounds
with (Karush, Kuhn and Tucker)

    ∇f + Jᵀλ + z = 0,          optimality: the largest component of what is left
    limits and bounds kept,    violation: the largest excess
    λ⁺ᵢ (uᵢ − gᵢ) = 0,  λ⁻ᵢ (gᵢ − lᵢ) = 0,  and the same of z:    complementarity: the largest product

λ⁺ and λ⁻ being the positive and the negative part.  Both the first and the third grow with the multipliers, so they
are divided by s = max(100, mean |multiplier|) / 100, as IPOPT does [waechter2006, (6)].  A multiplier of a limit that
is infinite cannot be: it is set to zero.  Those of equations have any sign; that of a fixed variable is what remains
of its component.

A maximum fulfils these conditions, too.  What tells a minimum is the Hessian of the Lagrangian along the directions
that keep all active limits to first order: with Z a basis of the null space of the active rows, the least eigenvalue
of ZᵀHZ is not negative.  Of large programs it comes from sparse factors (``sparse_curvature.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.nlp.sparse_curvature import sparse_curvature
from kinegrad.results import Result

__all__ = [
    "Conditions",
    "curvature",
    "estimated_multipliers",
    "matrix",
    "optimality_conditions",
    "stationarity",
    "violation_of",
]

Array = NDArray[np.float64]
DENSE = 250  # variables up to which dense work is done
SCALE = 100.0
SLACK = 10  # tolerances that the conditions of an optimum may be off by: solvers measure them each in its own way


@dataclass(frozen=True, eq=False)
class Conditions(Result):
    """What is left of the conditions, scaled."""

    optimality: float
    violation: float
    complementarity: float

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self.optimality, self.violation, self.complementarity)


def matrix(values: Array, pattern: tuple[Any, Any], shape: tuple[int, int]) -> Any:
    """Values of a pattern as a sparse matrix, by columns."""
    from scipy.sparse import csc_array

    rows, columns = pattern
    starts = np.searchsorted(columns, np.arange(shape[1] + 1))
    return csc_array((values, rows, starts), shape=shape)


def violation_of(lower: Array, upper: Array, values: Array) -> float:
    """The largest excess over a limit."""
    return float(max((lower - values).max(initial=0.0), (values - upper).max(initial=0.0)))


def possible(multipliers: Array, lower: Array, upper: Array) -> Array:
    """Multipliers without those parts whose limit is infinite."""
    return np.clip(multipliers, *signs(lower, upper))


def signs(lower: Array, upper: Array) -> tuple[Array, Array]:
    """The least and the most that multipliers can be."""
    return np.where(np.isfinite(lower), -np.inf, 0.0), np.where(np.isfinite(upper), np.inf, 0.0)


def stationarity(scaled: Any, gradient: Array, jacobian: Array, g_multipliers: Array, x_multipliers: Array) -> float:
    """The largest component of ∇f + Jᵀλ + z, over s."""
    both = np.concatenate([x_multipliers, g_multipliers])
    both = np.minimum(np.maximum(both, scaled.least), scaled.most)
    z, y = both[: scaled.n], both[scaled.n :]
    rows, columns = scaled.jacobian_pattern
    left = np.bincount(columns, jacobian * y[rows], scaled.n) + gradient + z
    left[scaled.fixed] = 0.0
    return float(np.abs(left).max(initial=0.0) / _size(both))


def optimality_conditions(
    scaled: Any, x: Array, g: Array, gradient: Array, jacobian: Array, g_multipliers: Array, x_multipliers: Array
) -> Conditions:
    """What is left of the conditions at x with some multipliers, all scaled."""
    y = possible(g_multipliers, scaled.g_lower, scaled.g_upper)
    z = possible(x_multipliers, scaled.lower, scaled.upper)
    products = [0.0]
    for value, low, high, multiplier in ((g, scaled.g_lower, scaled.g_upper, y), (x, scaled.lower, scaled.upper, z)):
        free = low < high
        below, above = free & (multiplier < 0), free & (multiplier > 0)
        products.append(np.abs(multiplier[below] * (value - low)[below]).max(initial=0.0))
        products.append(np.abs(multiplier[above] * (high - value)[above]).max(initial=0.0))
    return Conditions(
        stationarity(scaled, gradient, jacobian, y, z),
        max(violation_of(scaled.lower, scaled.upper, x), violation_of(scaled.g_lower, scaled.g_upper, g)),
        float(max(products) / _size(np.concatenate([z, y]))),
    )


def _size(multipliers: Array) -> float:
    return max(SCALE, float(np.abs(multipliers).sum()) / max(len(multipliers), 1)) / SCALE


def active(scaled: Any, x: Array, g: Array, near: float) -> tuple[Array, Array]:
    """Which side of each row and bound holds: −1 lower, 1 upper, 2 both, 0 neither."""
    sides = []
    for value, low, high in ((g, scaled.g_lower, scaled.g_upper), (x, scaled.lower, scaled.upper)):
        at_low, at_high = value - low <= near, high - value <= near
        sides.append(np.where(at_low & at_high, 2.0, np.where(at_high, 1.0, np.where(at_low, -1.0, 0.0))))
    return sides[0], sides[1]


def estimated_multipliers(
    scaled: Any, x: Array, g: Array, gradient: Array, jacobian: Array, near: float
) -> tuple[Array, Array] | None:
    """Multipliers λ and z of the limits that hold at x that leave least of ∇f + Jᵀλ + z; None if that is too much work.

    Linear least squares with the signs that the active sides allow.
    """
    from scipy.optimize import lsq_linear

    rows, bounds = active(scaled, x, g, near)
    free = np.flatnonzero(scaled.lower < scaled.upper)
    which, edges = np.flatnonzero(rows), free[bounds[free] != 0]
    y, z = np.zeros(scaled.m), np.zeros(scaled.n)
    if len(which) + len(edges) == 0:
        return y, z
    if len(free) > 2 * DENSE or len(which) > 2 * DENSE:
        return None
    normals = np.zeros((scaled.n, len(which) + len(edges)))
    normals[:, : len(which)] = scaled.jacobian_matrix(jacobian).tocsr()[which].toarray().T
    normals[edges, len(which) + np.arange(len(edges))] = 1.0
    sides = np.concatenate([rows[which], bounds[edges]])
    low = np.where(sides == 1, 0.0, -np.inf)
    high = np.where(sides == -1, 0.0, np.inf)
    found = lsq_linear(normals[free], -gradient[free], (low, high), method="bvls", tol=1e-14).x
    y[which], z[edges] = found[: len(which)], found[len(which) :]
    return y, z


def curvature(
    scaled: Any, x: Array, g: Array, jacobian: Array, hessian: Array, near: float,
    multipliers: tuple[Array, Array] | None = None, least: float = -1e-3, among: NDArray[np.bool_] | None = None,
) -> float:  # fmt: skip
    """The least eigenvalue of the Lagrangian's Hessian along directions that keep all active limits.

    Of large programs, where it is below `least`, some curvature that is.  NaN where numbers overflow.  If `among` is
    given, variables that are not among these stay where they are.

    An interior point stays away from limits, by the barrier parameter divided by the multiplier, and near a switch it
    is not clear which limits are active.  With multipliers, limits that are not near count as the barrier does, by
    |λ| / distance in the direction of their normal, which is large for active ones and small for others.
    """
    from scipy.linalg import eigvalsh, null_space
    from scipy.sparse import diags_array

    rows, bounds = active(scaled, x, g, near)
    free = np.flatnonzero((scaled.lower < scaled.upper) & (bounds == 0) & (True if among is None else among))
    if not len(free):
        return np.inf
    dense = len(free) <= DENSE  # at which sparse matrices cost more than their zeros save
    diagonal = np.diag if dense else diags_array
    both = matrix(hessian, scaled.hessian_pattern, (scaled.n, scaled.n)), scaled.jacobian_matrix(jacobian)
    lower, all_normals = (A.toarray() if dense else A.tocsr() for A in both)
    lower, all_normals = lower[free][:, free], all_normals[:, free]
    full = lower + lower.T - diagonal(lower.diagonal())
    if multipliers is not None:
        inside = np.flatnonzero(rows == 0)
        distance = np.minimum(g - scaled.g_lower, scaled.g_upper - g)[inside]
        J = all_normals[inside]
        full = full + J.T @ (J * (np.abs(multipliers[0][inside]) / distance)[:, None])
        distance = np.minimum(x - scaled.lower, scaled.upper - x)[free]
        full = full + diagonal(np.abs(multipliers[1][free]) / distance)
    if not np.isfinite(full if dense else full.data).all():
        return np.nan
    normals = all_normals[np.flatnonzero(rows)]
    if not dense:
        return sparse_curvature(full.tocsc(), normals, least)
    basis = null_space(normals, rcond=1e-9) if normals.shape[0] else np.eye(len(free))
    if not basis.shape[1]:
        return np.inf
    return float(eigvalsh(basis.T @ full @ basis).min())


def separate(scaled: Any, jacobian: Array, hessian: Array) -> list[tuple[NDArray[np.bool_], float]]:
    """Variables that neither rows nor curvature join, (n,) each, and the largest entry of the Hessian among them.

    What is small in one program is not small beside another one, so that each is judged by its own numbers.  Programs
    whose largest entries have the same power of ten are judged together.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, (rows, columns) = scaled.n, scaled.hessian_pattern
    J = scaled.jacobian_matrix(jacobian).tocoo()
    there = hessian != 0
    i, j = np.concatenate([rows[there], n + J.row[J.data != 0]]), np.concatenate([columns[there], J.col[J.data != 0]])
    size = n + scaled.m
    _, label = connected_components(coo_array((np.ones(len(i)), (i, j)), shape=(size, size)), directed=False)
    largest = np.zeros(size)
    np.maximum.at(largest, label[rows], np.abs(hessian))
    power = np.ceil(np.log10(np.maximum(largest[label[:n]], 1.0)))
    return [(power == p, float(largest[label[:n]][power == p].max())) for p in np.unique(power)]
