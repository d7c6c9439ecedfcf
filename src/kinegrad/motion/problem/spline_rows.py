"""Rows that are linear in control points and have powers of durations: boundary conditions, bounds, continuity.

A row is a sum of *shares* of phases,  r = Σ_t s_t / T_t^d,  s_t = Σ_c A_tc x_c + constant:  the d-th time derivative
of a spline at an end, one of its control points, or the difference of two such at a joint of phases.  Then

    ∂r/∂x_c = A_tc / T^d        ∂²r/∂x_c∂T = −d A_tc / T^{d+1}
    ∂r/∂T = −d s / T^{d+1}      ∂²r/∂T² = d(d+1) s / T^{d+2}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.problem.sparse import Part

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Share:
    """s / T^order of one phase."""

    columns: tuple[int, ...]
    coefficients: tuple[float, ...]
    constant: float
    order: int
    duration: int  # its variable, or −1
    duration_value: float


@dataclass(frozen=True)
class SplineRow:
    """A row with its bounds."""

    name: str
    shares: tuple[Share, ...]
    lower: float
    upper: float
    scale: float = 1.0
    at: float = 0.0  # when in the motion: fraction of its phase
    phase: str = ""


class SplineRows:
    """All of them."""

    def __init__(self, rows: Sequence[SplineRow], first: int) -> None:
        self.rows, self.first = tuple(rows), first
        shares = [(first + k, share) for k, row in enumerate(rows) for share in row.shares]
        self._row = np.array([k for k, _ in shares], dtype=np.int64)
        self._order = np.array([share.order for _, share in shares], dtype=np.int64)
        self._T = np.array([share.duration for _, share in shares], dtype=np.int64)
        self._T_value = np.array([share.duration_value for _, share in shares])
        self._constant = np.array([share.constant for _, share in shares])
        self._share = np.array([t for t, (_, share) in enumerate(shares) for _ in share.columns], dtype=np.int64)
        self._column = np.array([c for _, share in shares for c in share.columns], dtype=np.int64)
        self._A = np.array([a for _, share in shares for a in share.coefficients])

    def _durations(self, x: Array) -> Array:
        return np.where(self._T >= 0, x[self._T], self._T_value) if len(self._T) else np.zeros(0)

    def _sums(self, x: Array) -> Array:
        found: Array = np.bincount(self._share, self._A * x[self._column], len(self._row)) + self._constant
        return found

    def values(self, x: Array) -> Array:
        """(rows,)."""
        if not self.rows:
            return np.zeros(0)
        each = self._sums(x) / self._durations(x) ** self._order
        found = np.bincount(self._row - self.first, each, len(self.rows))
        return found.astype(float, copy=False)

    def jacobian_parts(self) -> list[Part]:
        """Of control points; of durations."""
        if not self.rows:
            return []
        timed = np.where(self._order > 0, self._T, -1)
        return [Part(self._row[self._share], self._column), Part(self._row, timed)]

    def jacobian_numbers(self, x: Array) -> list[Array]:
        if not self.rows:
            return []
        T, d = self._durations(x), self._order
        return [self._A / T[self._share] ** d[self._share], -d * self._sums(x) / T ** (d + 1)]

    def hessian_parts(self) -> list[Part]:
        """Of control points with durations; of durations with themselves."""
        if not self.rows:
            return []
        timed = np.where(self._order > 0, self._T, -1)
        return [Part(timed[self._share], self._column), Part(timed, timed)]

    def hessian_numbers(self, x: Array, multipliers: Array) -> list[Array]:
        if not self.rows:
            return []
        T, d, weight = self._durations(x), self._order, multipliers[self._row]
        t = self._share
        mixed = -weight[t] * d[t] * self._A / T[t] ** (d[t] + 1)
        return [mixed, weight * d * (d + 1) * self._sums(x) / T ** (d + 2)]
