"""The implicit midpoint rule for q and the momentum p = M(q) v, and its exact tangents.

With L(q, v) = ½ vᵀ M(q) v − U(q), take the action of a step from q to q⁺ as h L at the middle of both, and the virtual
work of all other forces F (torques, dampers, loads) there too.  The discrete Lagrange–d'Alembert principle then gives
the momenta at both ends [marsden2001]; written with w = (q⁺ − q)/h, the speed of the step,

    P(qₘ, w) − (h/2) G(t + h/2, qₘ, w) = p,        qₘ = q + (h/2) w                                (1)
    q⁺ = q + h w,    p⁺ = p + h G,    P = M w,    G = ∂T/∂q − ∂U/∂q + F                          (2)

which is the implicit midpoint rule for Hamilton's equations, as (p + p⁺)/2 = P and w = ∂H/∂p, G = −∂H/∂q + F there.
It is of order 2, symmetric in time, and symplectic in (q, p) whatever M(q) is; without F, the energy of long motions
does not drift, and the momentum of a coordinate on which L does not depend is constant to rounding.  (The midpoint
rule for q and v has none of this where M changes with q.)

Equation (1) is solved for w by Newton's method, to rounding.  With E = ∂P/∂q and K_q, K_v = ∂τ/∂(q, v),

    J = M + (h/2) E − (h/2) (G_w + (h/2) G_q),    G_w = Eᵀ − D + K_v,    G_q = T_qq − U_qq + K_q,    ∂T/∂q = ½ Eᵀ w

Only T_qq is not a first derivative of inverse dynamics.  But the velocity forces c(q, v) are quadratic in v, and
yᵀ ∂T/∂q = wᵀ Γ(w, y) with the symmetric bilinear Γ of c(q, v) = Γ(v, v), so polarisation is exact:

    yᵀ ∂T/∂q = ¼ wᵀ (c(q, w + y) − c(q, w − y)),                                                   (3)

whose gradient with respect to q, or to a constant of the model, is a difference of two gradients of inverse dynamics.

Tangents follow from (1) and (2) by the implicit function theorem; so they are those of the discrete motion itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.design.dynamics import inverse_dynamics_design_derivatives
from kinegrad.dynamics import forward_dynamics, inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives, inverse_dynamics_vjp
from kinegrad.errors import SingularError
from kinegrad.model import Model
from kinegrad.simulate.fixed_compiled import Run, together
from kinegrad.simulate.law import Law, finite, finite_slopes

__all__ = ["Middle", "Stepper", "midpoint_run"]

Array = NDArray[np.float64]
Gains = tuple[Array, Array] | None
LIMIT = 30  # iterations of Newton's method: from a predictor it takes two to four
NOISE = 16 * float(np.finfo(float).eps)  # the part of its terms to which the residual of (1) has to vanish,
NEAR = 1e6  # or, once it stops getting smaller, so many times that: what rounding leaves where terms cancel
TINY = float(np.finfo(float).tiny)  # a state at rest has no terms
PREDICTOR = (1.0, -5.0, 10.0, -10.0, 5.0)  # the next value of a polynomial of degree 4, from the last five


class Middle(NamedTuple):
    """P and G at states (q, w), (..., n), and their derivatives, (..., n, n)."""

    P: Array
    G: Array
    P_q: Array
    P_w: Array
    G_q: Array
    G_w: Array
    terms: Array  # the size of what G is the sum of

    def matrix(self, h: float) -> Array:
        """J of (1)."""
        J: Array = self.P_w + (h / 2) * (self.P_q - self.G_w - (h / 2) * self.G_q)
        return J

    def slope_of_momentum(self, h: float) -> Array:
        """∂G/∂w along a step, where the middle moves with w: (h/2) G_q + G_w."""
        slope: Array = (h / 2) * self.G_q + self.G_w
        return slope


def middle(law: Law, q: Array, w: Array, tau: Array, gains: Gains, T_qq: Array) -> Middle:
    """P, G and their derivatives at finite states of any shape."""
    still, d = np.zeros_like(q), law.damping
    moving = inverse_dynamics_derivatives(law.inertial, q, still, w)
    resting = inverse_dynamics_derivatives(law.model, q, still, still, loads=law.loads)
    E, M, U_qq = (np.asarray(x) for x in (moving.dtau_dq, moving.dtau_da, resting.dtau_dq))
    Et = E.swapaxes(-1, -2)
    T_q = _times(Et, w) / 2
    G_q, G_w = T_qq - U_qq, (Et - np.diag(d) if d.any() else Et)
    if gains is not None:
        G_q, G_w = G_q + gains[0], G_w + gains[1]
    terms = np.abs(T_q) + np.abs(resting.tau) + d * np.abs(w) + np.abs(tau)
    return Middle(moving.tau, T_q - resting.tau - d * w + tau, E, M, G_q, G_w, terms)


def curvature(law: Law, q: Array, w: Array) -> Array:
    """∂²T/∂q² at states of any shape, (..., n, n), by (3) for each coordinate."""
    n = q.shape[-1]
    size = np.abs(w).max(axis=-1, keepdims=True)[..., None]
    size = np.where(size > 0, size, 1.0)  # y as large as w, so that no digits are lost
    y, still = size * np.eye(n), np.zeros((*q.shape, n))
    at, weight = (np.broadcast_to(x[..., None, :], (2, *still.shape)) for x in (q, w))
    speeds = np.stack([weight[0] + y, weight[0] - y])
    change = inverse_dynamics_vjp(law.inertial, at, speeds, still, weight).dq
    T_qq = (change[0] - change[1]) / (4 * size)
    return np.asarray((T_qq + T_qq.swapaxes(-1, -2)) / 2)


def by_design(law: Law, q: Array, w: Array) -> tuple[Array, Array]:
    """∂P/∂p and ∂G/∂p at fixed (q, w), (..., n, p) each; ∂T/∂q by (3), whose dampers have to be taken out."""
    assert law.design is not None
    n = q.shape[-1]
    size = np.abs(w).max(axis=-1, keepdims=True)
    size = np.where(size > 0, size, 1.0)
    y = np.moveaxis(size[..., None] * np.eye(n), -2, 0)
    still = np.zeros_like(w)
    v = np.concatenate([np.stack([still, still, w, -w]), w + y, w - y])
    a = np.concatenate([w[None], np.zeros((len(v) - 1, *w.shape))])
    change = inverse_dynamics_design_derivatives(law.design, np.broadcast_to(q, v.shape), v, a, loads=law.loads)
    P_p, damped = change[0] - change[1], (change[2] - change[3]) / 2
    T_qp = np.einsum("...j,i...jp->...ip", w, change[4 : 4 + n] - change[4 + n :]) / (4 * size[..., None])
    return P_p, T_qp - damped / 2 - change[1] - damped


class Stepper:
    """Steps of (1) and (2) from t = 0, for states of any batch shape; counts evaluations of P and G."""

    def __init__(self, law: Law, h: float) -> None:
        self.law, self.h = law, h
        self.evaluations = 0
        self._before: list[Array] = []  # speeds of the last steps, to predict the next

    def momentum(self, q: Array, v: Array) -> Array:
        """p = M(q) v."""
        return inverse_dynamics(self.law.inertial, q, np.zeros_like(q), v)

    def speed(self, t: float, q: Array, p: Array) -> Array:
        """v = M(q)⁻¹ p; NaN where the state is not finite."""
        good, v = finite(q, p), np.full(q.shape, np.nan)
        try:
            v[good] = forward_dynamics(self.law.inertial, q[good], np.zeros_like(q[good]), p[good])
        except SingularError as error:
            raise SingularError(f"at t = {t:.6g} s {error}") from error
        return v

    def predict(self, k: int, q: Array, p: Array) -> Array:
        """A first guess of w in step k: the polynomial of the last speeds, or along the acceleration at the start."""
        if len(self._before) == len(PREDICTOR):
            return np.asarray(sum(c * w for c, w in zip(PREDICTOR, self._before, strict=True)))
        t = k * self.h
        v = self.speed(t, q, p)
        self.evaluations += 1
        return v + (self.h / 2) * self.law.acceleration(t, q, v, k)[0]

    def solve(self, k: int, q: Array, p: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """w and G of step k, and which states have none: NaN there."""
        law, h, t = self.law, self.h, (k + 0.5) * self.h
        w = self.predict(k, q, p)
        kept_w, kept_G = np.full(q.shape, np.nan), np.full(q.shape, np.nan)
        left, before = finite(q, p, w), np.full(q.shape[:-1], np.inf)
        T_qq: Array | None = None
        gains: Gains = None
        for _ in range(LIMIT):
            q_m = q + (h / 2) * w
            tau = law.torques(t, q_m, w, k)
            left &= finite(q_m, w, tau)
            if not left.any():
                break
            at, speed, force = (_held(x, left) for x in (q_m, w, tau))
            if law.exact or gains is None:
                gains = law.gains(t, at, speed) if law.exact else self._differences(k, t, at, speed, force)
            T_qq = curvature(law, at, speed) if T_qq is None else T_qq  # once: it hardly changes within a step
            now = middle(law, at, speed, force, gains, T_qq)
            self.evaluations += 1
            residual = now.P - (h / 2) * now.G - p
            noise = NOISE * (_times(np.abs(now.P_w), np.abs(speed)) + np.abs(p) + (h / 2) * now.terms)
            excess = (np.abs(residual) / (noise + TINY)).max(axis=-1)
            found = left & ((excess <= 1) | ((excess >= before / 2) & (excess <= NEAR)))
            kept_w[found], kept_G[found] = w[found], now.G[found]
            left &= ~found & (excess < np.inf)
            if not left.any():
                break
            w = w - solve(now.matrix(h), residual, left)
            before = excess
        self._before = [*self._before, kept_w][-len(PREDICTOR) :]
        return kept_w, kept_G, ~finite(kept_w, kept_G)

    def _differences(self, k: int, t: float, q: Array, w: Array, tau: Array) -> Gains:
        """∂τ/∂q and ∂τ/∂v of a function without derivatives: they change how Newton's method converges, not to what."""
        n, gains = q.shape[-1], []
        for x in (q, w):
            columns = []
            for j in range(n):
                change = np.zeros_like(x)
                change[..., j] = 1e-7 * np.maximum(1.0, np.abs(x[..., j]))
                moved = self.law.torques(t, *((x + change, w) if x is q else (q, x + change)), k)
                columns.append((moved - tau) / change[..., j : j + 1])
            gains.append(np.nan_to_num(np.stack(columns, axis=-1)))
        return gains[0], gains[1]

    def exact(self, k: int, q: Array, w: Array) -> tuple[Middle, Array]:
        """P, G and all their derivatives in the middle of step k, and where that is."""
        law, t, q_m = self.law, (k + 0.5) * self.h, q + (self.h / 2) * w
        tau, gains = law.torques(t, q_m, w, k), law.gains(t, q_m, w)
        return middle(law, q_m, w, tau, gains, curvature(law, q_m, w)), q_m

    def tangent(self, k: int, q: Array, w: Array, dq: Array, dp: Array) -> tuple[Array, Array]:
        """dq⁺ and dp⁺, (..., n, p), from dq and dp."""
        h = self.h
        good = finite(q, w) & finite_slopes(dq, dp)
        at, q_m = self.exact(k, _held(q, good), _held(w, good))
        P_p, G_p = by_design(self.law, q_m, _held(w, good))
        dw = solve(at.matrix(h), dp - (at.P_q - (h / 2) * at.G_q) @ dq - P_p + (h / 2) * G_p, good)
        dG = at.G_q @ (dq + (h / 2) * dw) + at.G_w @ dw + G_p
        return dq + h * dw, dp + h * dG

    def momentum_slope(self, q: Array, v: Array, dq: Array, dv: Array) -> Array:
        """dp of p = M(q) v."""
        M, drift = self._momentum_parts(q, v, dq)
        return M @ dv + drift

    def speed_slope(self, q: Array, v: Array, dq: Array, dp: Array) -> Array:
        """dv of v = M(q)⁻¹ p."""
        good = finite(q, v) & finite_slopes(dq, dp)
        dv = np.full(dq.shape, np.nan)
        M, drift = self._momentum_parts(q[good], v[good], dq[good])
        dv[good] = solve(M, dp[good] - drift, np.ones(len(M), dtype=bool))
        return dv

    def _momentum_parts(self, q: Array, v: Array, dq: Array) -> tuple[Array, Array]:
        """M, and E dq + ∂(M v)/∂p."""
        law, still = self.law, np.zeros_like(q)
        assert law.design is not None
        change = inverse_dynamics_derivatives(law.inertial, q, still, v)
        both = np.stack([v, still])
        by_p = inverse_dynamics_design_derivatives(law.design, np.stack([q, q]), 0 * both, both, loads=law.loads)
        return np.asarray(change.dtau_da), np.asarray(change.dtau_dq) @ dq + by_p[0] - by_p[1]


def midpoint_run(
    law: Law, h: float, steps: int, every: int, q: Array, v: Array, dq: Array, dv: Array,
    models: Sequence[Model] | None = None,
) -> Run:  # fmt: skip
    """Step by step in Python, all states of a model at once."""
    if models is not None:
        each = [
            midpoint_run(law.of(model, k, len(models)), h, steps, every, q[k], v[k], dq[k], dv[k])
            for k, model in enumerate(models)
        ]
        return together(each, steps // every + 1)
    stepper, sloped = Stepper(law, h), law.design is not None
    lost, unsolved, speeds = np.full(q.shape[:-1], -1), np.zeros(q.shape[:-1], dtype=bool), v.copy()
    p = stepper.momentum(q, v)
    dp = stepper.momentum_slope(q, v, dq, dv) if sloped else dq
    kept: list[tuple[Array, ...]] = []
    for k in range(steps + 1):
        if k % every == 0:
            kept.append(_moment(stepper, min(k, steps - 1), k * h, q, p, v if k == 0 else None, dq, dp))
        if k == steps:
            break
        w, G, stuck = stepper.solve(k, q, p)
        if sloped:
            dq, dp = stepper.tangent(k, q, w, dq, dp)
        q, p = q + h * w, p + h * G
        new = ~finite(q, p) & (lost < 0)
        lost[new], unsolved[new] = k + 1, stuck[new]
        speeds = np.where((lost < 0)[..., None], w, speeds)
        if lost.size and (lost >= 0).all():
            break
    return Run([np.array(x) for x in zip(*kept, strict=True)], lost, speeds, unsolved, stepper.evaluations + len(kept))


def _moment(
    stepper: Stepper, k: int, t: float, q: Array, p: Array, v: Array | None, dq: Array, dp: Array
) -> tuple[Array, ...]:
    """q, v, a, τ at a time, and their slopes with a design."""
    law = stepper.law
    v = stepper.speed(t, q, p) if v is None else v
    if law.design is None:
        return q, v, *law.acceleration(t, q, v, k)
    dv = stepper.speed_slope(q, v, dq, dp)
    a, tau, da, dtau = law.with_sensitivity(t, q, v, dq, dv, k)
    return q, v, a, tau, dq, dv, da, dtau


def _held(x: Array, good: NDArray[np.bool_]) -> Array:
    """x with zeros in the place of states that are lost."""
    return x if good.all() else np.where(good[..., None], x, 0.0)


def _times(matrix: Array, x: Array) -> Array:
    """matrix · x for each state."""
    product: Array = (matrix @ x[..., None])[..., 0]
    return product


def solve(J: Array, b: Array, where: NDArray[np.bool_]) -> Array:
    """J⁻¹ b for b of shape (..., n) or (..., n, p); NaN where J is singular, zero where there is nothing to solve."""
    right = b[..., None] if b.ndim < J.ndim else b
    if not where.all():
        J = np.where(where[..., None, None], J, np.eye(J.shape[-1]))
        right = np.where(where[..., None, None], right, 0.0)
    try:
        x = np.linalg.solve(J, right)
    except np.linalg.LinAlgError:
        x = np.full(right.shape, np.nan)
        for index in np.ndindex(J.shape[:-2]):
            with contextlib.suppress(np.linalg.LinAlgError):
                x[index] = np.linalg.solve(J[index], right[index])
    return np.asarray(x[..., 0] if b.ndim < J.ndim else x, dtype=float)
