"""Torques that are known beforehand, as functions (step, t) → τ.  They own their numbers, and can be pickled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Constant", "PerStep", "Spline"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Constant:
    """The same at all times, shape (n,)."""

    tau: Array

    def __call__(self, step: int, t: float) -> Array:
        return self.tau

    def rate(self, step: int, t: float) -> Array:
        """∂τ/∂t."""
        return np.zeros_like(self.tau)


@dataclass(frozen=True, eq=False)
class PerStep:
    """One for each step, held during it, shape (steps, ..., n)."""

    tau: Array

    def __call__(self, step: int, t: float) -> Array:
        return np.asarray(self.tau[step])

    def rate(self, step: int, t: float) -> Array:
        """∂τ/∂t within a step."""
        return np.zeros_like(self.tau[step])


@dataclass(frozen=True, eq=False)
class Spline:
    """A SciPy spline of time, from one time to another."""

    spline: Any
    begin: float
    end: float

    def __call__(self, step: int, t: float) -> Array:
        return np.asarray(self.spline(min(max(t, self.begin), self.end)))

    def rate(self, step: int, t: float) -> Array:
        """∂τ/∂t."""
        return np.asarray(self.spline(min(max(t, self.begin), self.end), 1))


@dataclass(frozen=True, eq=False)
class OneOf:
    """The k-th row of torques that may differ from state to state, (count, n)."""

    given: Any
    k: int
    count: int

    def __call__(self, step: int, t: float) -> Array:
        tau = np.asarray(self.given(step, t))
        return tau if tau.ndim < 2 else np.broadcast_to(tau, (self.count, tau.shape[-1]))[self.k]
