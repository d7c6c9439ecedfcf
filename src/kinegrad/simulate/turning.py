"""Rates of coordinates where some are quaternions, and fixed steps of them.

The rate of a coordinate of one number is its speed; that of a quaternion is q̇ = ½ q ⊗ ω.  Integrators add multiples of
rates, so that quaternions lose their length by as much as the integrator errs; every state is therefore divided by it
before anything is computed from it, and every step ends with quaternions of unit length.

Sensitivities are those of the tangent, q ⊕ δ, with δ̇ = dω − ω × δ along a motion.  Those of fixed steps are the
derivative of the discrete motion itself, by the derivative of each operation: with dq = ½ q ⊗ δ,

    d(½ q ⊗ ω) = ½ dq ⊗ ω + ½ q ⊗ dω,        δ of r/|r| = 2 Im(r* ⊗ dr) / |r|²                            (1)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.configuration import CONJUGATE, pure, tangent, times
from kinegrad.model import Model
from kinegrad.simulate.fixed_compiled import Run
from kinegrad.simulate.law import Law, finite

__all__ = ["rate", "tangent_rate", "turning_run"]

Array = NDArray[np.float64]


def rate(model: Model, q: Array, v: Array) -> Array:
    """q̇, (..., nq), of states with quaternions of unit length."""
    layout = model.layout
    found = np.empty((*v.shape[:-1], layout.nq))
    found[..., layout.plain_q], found[..., layout.coupled_q] = v[..., layout.plain_v], v[..., layout.coupled_v]
    for _, k, j in layout.balls:
        found[..., k : k + 4] = times(q[..., k : k + 4], pure(v[..., j : j + 3])) / 2
    return found


def tangent_rate(model: Model, v: Array, dq: Array, dv: Array) -> Array:
    """δ̇, (..., nv, p), of slopes δ and dv of the same shape."""
    found = dv.copy()
    for _, _, j in model.layout.balls:
        turn = np.cross(v[..., j : j + 3, None], dq[..., j : j + 3, :], axis=-2)
        found[..., j : j + 3, :] -= turn
    return found


def _ambient(model: Model, q: Array, slope: Array) -> Array:
    """dq as numbers, (p, ..., nq), from the tangent, (p, ..., nv): rates, were the slopes speeds."""
    return rate(model, np.broadcast_to(q, (*slope.shape[:-1], q.shape[-1])), slope)


def _rate_slope(model: Model, q: Array, v: Array, dq: Array, dv: Array) -> Array:
    """d(q̇), (p, ..., nq), of tangents dq and dv, (p, ..., nv); (1)."""
    found, moved = _ambient(model, q, dv), _ambient(model, q, dq)
    for _, k, j in model.layout.balls:
        speed = np.broadcast_to(pure(v[..., j : j + 3]), (*dq.shape[:-1], 4))
        found[..., k : k + 4] += times(moved[..., k : k + 4], speed) / 2
    return found


# --- the same backwards: gradients of numbers, (..., nq), and of tangents and speeds, (..., nv) -----------------------


def pull_rate(model: Model, q: Array, rates: Array) -> Array:
    """The gradient with respect to v, from `rates`, that with respect to q̇; also to δ, from that to dq = ½ q ⊗ δ."""
    layout = model.layout
    found = np.empty((*rates.shape[:-1], layout.nv))
    found[..., layout.plain_v], found[..., layout.coupled_v] = rates[..., layout.plain_q], rates[..., layout.coupled_q]
    for _, k, j in layout.balls:
        found[..., j : j + 3] = times(q[..., k : k + 4] * CONJUGATE, rates[..., k : k + 4])[..., 1:] / 2
    return found


def pull_rate_by_turn(model: Model, q: Array, v: Array, rates: Array) -> Array:
    """The gradient by δ of what has the gradient `rates` by q̇; (1)."""
    found = np.zeros(v.shape)
    for _, k, j in model.layout.balls:
        moved = times(q[..., k : k + 4] * CONJUGATE, times(rates[..., k : k + 4], -pure(v[..., j : j + 3])))
        found[..., j : j + 3] = moved[..., 1:] / 4
    return found


def turning_run(
    law: Law, scheme: Any, h: float, steps: int, every: int, q: Array, v: Array, dq: Array, dv: Array, _: Any = None
) -> Run:  # fmt: skip
    """Fixed steps of models with quaternions, step by step in Python, with exact tangents."""
    kept: list[tuple[Array, ...]] = []
    lost, speeds = np.full(q.shape[:-1], -1), np.zeros(v.shape)
    q, (dq, dv) = law.normalised(q), (np.moveaxis(x, -1, 0) for x in (dq, dv))
    for k in range(steps + 1):
        last = k == steps
        slopes = (dq, dv) if law.design is not None else None
        step = Step(law, scheme, h, min(k, steps - 1), k * h, q, v, slopes, first_only=last)
        if k % every == 0:
            each = () if slopes is None else (dq, dv, step.da[0], step.dtau[0])
            kept.append((q, v, step.a[0], step.tau[0], *(np.moveaxis(x, 0, -1) for x in each)))
        if last:
            break
        before = v
        q, v = step.finish()
        dq, dv = step.slopes
        new = ~finite(q, v) & (lost < 0)
        lost[new], speeds[new] = k + 1, before[new]
        if lost.size and (lost >= 0).all():
            break
    return Run([np.array(x) for x in zip(*kept, strict=True)], lost, speeds)


class Step:
    """The stages of one step, and where it ends.  Slopes are (p, ..., nv), those of coordinates in the tangent.

    Attributes
    ----------
    r, q, v, a, tau : list of ndarray
        Of each stage; r are coordinates before their quaternions are divided by their lengths.
    """

    def __init__(
        self, law: Law, scheme: Any, h: float, k: int, t: float, q: Array, v: Array,
        slopes: tuple[Array, Array] | None = None, *, first_only: bool = False,
    ) -> None:  # fmt: skip
        self.law, self.scheme, self.h, self.start = law, scheme, h, (q, v)
        self.sloped, self.slopes = slopes is not None, slopes or (q, v)
        self.r = list[Array]()
        self.q, self.v, self.a, self.tau = list[Array](), list[Array](), list[Array](), list[Array]()
        self.da, self.dtau = list[Array](), list[Array]()
        self.rates, self.rate_slopes = list[Array](), list[Array]()
        for i in range(1 if first_only else len(scheme.b)):
            r, dr = self._place(scheme.A[i], self.rates, self.rate_slopes)
            v_i = v + h * _sum(scheme.A[i], self.a)
            q_i = law.normalised(r)
            a, tau = law.acceleration(t + scheme.c[i] * h, q_i, v_i, k)
            self.rates.append(rate(law.model, q_i, v_i))
            stage = (r, q_i, v_i, a, tau)
            for kept, x in zip((self.r, self.q, self.v, self.a, self.tau), stage, strict=True):
                kept.append(x)
            if self.sloped:
                self._slope(t + scheme.c[i] * h, i, r, dr)

    def _slope(self, t: float, i: int, r: Array, dr: Array) -> None:
        """da and dτ of stage i, and the slope of its rates."""
        model = self.law.model
        dq, dv = tangent(model, r, dr), self.slopes[1] + self.h * _sum(self.scheme.A[i], self.da)
        state = self.q[i], self.v[i], self.tau[i]
        da, dtau = self.law.sensitivity(t, *state, np.moveaxis(dq, 0, -1), np.moveaxis(dv, 0, -1))
        self.rate_slopes.append(_rate_slope(model, self.q[i], self.v[i], dq, dv))
        self.da.append(np.moveaxis(da, -1, 0))
        self.dtau.append(np.moveaxis(dtau, -1, 0))

    def _place(self, weights: Array, rates: list[Array], slopes: list[Array]) -> tuple[Array, Array]:
        """Coordinates after some of each rate, quaternions of any length, and their slopes."""
        q, dq = self.start[0], self.slopes[0]
        dr = _ambient(self.law.model, q, dq) + self.h * _sum(weights, slopes) if self.sloped else dq
        return q + self.h * _sum(weights, rates), dr

    def finish(self) -> tuple[Array, Array]:
        """q⁺ and v⁺; `slopes` are then theirs, and `r` has the end, too."""
        scheme, model, (q, v), (dq, dv) = self.scheme, self.law.model, self.start, self.slopes
        v_next = v + self.h * _sum(scheme.b, self.a)
        dv_next = dv + self.h * _sum(scheme.b, self.da) if self.sloped else dv
        rates, slopes = self.rates, self.rate_slopes
        if len(scheme.b) == 1:  # semi-implicit Euler: coordinates follow the new speeds
            rates = [rate(model, q, v_next)]
            slopes = [_rate_slope(model, q, v_next, dq, dv_next)] if self.sloped else []
        r, dr = self._place(scheme.b, rates, slopes)
        self.r.append(r)
        if self.sloped:
            self.slopes = tangent(model, r, dr), dv_next
        return self.law.normalised(r), v_next


def _sum(weights: Array, x: list[Array]) -> Any:
    return sum((w * y for w, y in zip(weights, x, strict=False) if w), 0.0)
