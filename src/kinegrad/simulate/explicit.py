"""Explicit steps in Nyström's form: the schemes, their stages, and slopes along them.

The formulas are those of :mod:`kinegrad.simulate.fixed`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.simulate.law import Law

__all__ = ["SCHEMES", "Cubic", "Scheme", "Stages", "finish_step", "make_stages"]

Array = NDArray[np.float64]


class Scheme(NamedTuple):
    """An explicit step in Nyström's form, s stages."""

    c: Array
    A: Array
    A_bar: Array
    b: Array
    b_bar: Array


def _runge_kutta(A: Array, b: Array) -> Scheme:
    return Scheme(A.sum(axis=1), A, A @ A, b, b @ A)


SCHEMES = {
    "rk4": _runge_kutta(np.diag([0.5, 0.5, 1.0], -1), np.array([1, 2, 2, 1]) / 6),
    "semi_implicit_euler": Scheme(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), np.ones(1), np.ones(1)),
}


class Stages(NamedTuple):
    """States, accelerations and torques of the s stages of one step, (s, ..., n); their slopes, (s, ..., n, p)."""

    q: list[Array]
    v: list[Array]
    a: list[Array]
    tau: list[Array]
    da: list[Array]
    dtau: list[Array]


def make_stages(
    law: Law, scheme: Scheme, h: float, k: int, t: float, q: Array, v: Array, dq: Array | None = None,
    dv: Array | None = None, *, first_only: bool = False,
) -> Stages:  # fmt: skip
    """Evaluate the law of motion at the stages of step k, which starts at (t, q, v)."""
    stages = Stages([], [], [], [], [], [])
    for i in range(1 if first_only else len(scheme.b)):
        t_i = t + scheme.c[i] * h
        q_i, v_i = law.imposed(t_i, *_stage(scheme, i, h, q, v, stages.a))
        if law.design is not None and dq is not None and dv is not None:
            slopes = law.imposed_slopes(t_i, *_stage(scheme, i, h, dq, dv, stages.da))
            a, tau, da, dtau = law.with_sensitivity(t_i, q_i, v_i, *slopes, k)
            stages.da.append(da)
            stages.dtau.append(dtau)
        else:
            a, tau = law.acceleration(t_i, q_i, v_i, k)
        for kept, x in zip(stages, (q_i, v_i, a, tau), strict=False):
            kept.append(x)
    return stages


def _stage(scheme: Scheme, i: int, h: float, q: Array, v: Array, a: list[Array]) -> tuple[Array, Array]:
    """qᵢ and vᵢ, or their slopes, from the accelerations before."""
    return q + scheme.c[i] * h * v + h**2 * _sum(scheme.A_bar[i], a), v + h * _sum(scheme.A[i], a)


def finish_step(scheme: Scheme, h: float, q: Array, v: Array, a: list[Array]) -> tuple[Array, Array]:
    """q⁺ and v⁺, or their slopes."""
    return q + h * v + h**2 * _sum(scheme.b_bar, a), v + h * _sum(scheme.b, a)


def _sum(weights: Array, a: list[Array]) -> Array | float:
    return sum((w * x for w, x in zip(weights, a, strict=False) if w), 0.0)


class Cubic:
    """The states of one step between its ends: the cubic through coordinates and speeds at both, and their error.

    Accelerations of the cubic differ from those of the stages at both ends by d (of a scheme without a stage at the
    end, at the start alone).  What makes h² d of an error is at most h² d / 6 of it between the ends: a missing
    quadratic term, as of semi-implicit Euler, h² d · u² (1 − u) / 2, and less of terms of higher order.

    Attributes
    ----------
    ends : tuple of ndarray, shape (2, ..., n)
        q and v.
    off : ndarray, shape (..., n)
        Error of q in the middle.
    """

    def __init__(self, scheme: Scheme, h: float, start: tuple[Array, Array], stages: Stages, end: tuple[Array, Array]):
        self.h, self.ends = h, (np.array([start[0], end[0]]), np.array([start[1], end[1]]))
        (q0, q1), (v0, v1) = self.ends[0], h * self.ends[1]
        self._q0, self._v0, self._bend, self._twist = q0, v0, 3 * (q1 - q0) - 2 * v0 - v1, v0 + v1 - 2 * (q1 - q0)
        off = np.abs(h**2 * stages.a[0] - 2 * self._bend)
        if scheme.c[-1] == 1.0:
            off = np.maximum(off, np.abs(h**2 * stages.a[-1] - 2 * self._bend - 6 * self._twist))
        self.off: Array = off / 6

    def __call__(self, times: Array) -> tuple[Array, Array]:
        """q and v, (times, ..., n)."""
        u = self._part(times)
        q = self._q0 + u * (self._v0 + u * (self._bend + u * self._twist))
        v = (self._v0 + u * (2 * self._bend + 3 * u * self._twist)) / (self.h or 1.0)
        q, v = np.where(u == 1.0, self.ends[0][1], q), np.where(u == 1.0, self.ends[1][1], v)
        return q, np.where(u == 0.0, self.ends[1][0], v)

    def share(self, times: Array) -> Array:
        """Part of `off`, (times, 1), that is possible at each time."""
        u = self._part(times)
        return 4 * u * (1 - u)

    def _part(self, times: Array) -> Array:
        return (times / (self.h or 1.0)).reshape(-1, *[1] * self._q0.ndim)
