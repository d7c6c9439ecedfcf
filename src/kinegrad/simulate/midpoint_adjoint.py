"""The discrete adjoint of the implicit midpoint rule (notation of :mod:`kinegrad.simulate.midpoint`).

Backwards through one step, from λ = ∂J/∂(q⁺, p⁺), by the implicit function theorem,

    Jᵀ y = h λ_q + h ((h/2) G_q + G_w)ᵀ λ_p,        z = h λ_p + (h/2) y
    ∂J/∂q = λ_q + G_qᵀ z − P_qᵀ y,    ∂J/∂p = λ_p + y,    ∂J/∂τ = z,    ∂J/∂c = zᵀ ∂G/∂c − yᵀ ∂P/∂c

for all constants c of the model.  The last two terms are sums of gradients of inverse dynamics at fixed motion, ∂T/∂q
by polarisation (3).  At each time, J also depends on v = M⁻¹ p and on a(t, q, v): with ν = ∂J/∂v and u = M⁻¹ ν,

    ∂J/∂p = u,    ∂J/∂q −= Eᵀ u,    ∂J/∂c −= uᵀ ∂(M v)/∂c .
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.design.dynamics import constants_gradient, share_of_parameters
from kinegrad.dynamics import forward_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import SolveError
from kinegrad.forward_derivatives import forward_dynamics_derivatives
from kinegrad.motion import Motion
from kinegrad.objectives.objective import Objective, add_terms
from kinegrad.simulate.fixed import check_reached, first_divergence, gregory
from kinegrad.simulate.law import Law, finite
from kinegrad.simulate.midpoint import Middle, Stepper, curvature, middle, solve

__all__ = ["MidpointAdjoint"]

Array = NDArray[np.float64]


class MidpointAdjoint:
    """J and its derivatives, gathered from the end of a motion to its start.

    Attributes
    ----------
    value : ndarray, shape (...)
    q, v : ndarray, shape (..., n)
        ∂J with respect to the initial state.
    dtau : ndarray, shape (steps, ..., n)
    """

    def __init__(self, law: Law, h: float, steps: int, length: int, q: Array, v: Array, objective: Objective) -> None:
        self.law, self.h, self.steps, self.objective = law, h, steps, objective
        self.value, self.dtau = np.zeros(q.shape[:-1]), np.zeros((steps, *q.shape))
        self.dp = None if law.design is None else np.zeros((*q.shape[:-1], law.design.p))
        self.dconstants: Array | float = 0.0
        self.weights = gregory(steps, h)
        with np.errstate(over="ignore", invalid="ignore"):
            checkpoints = self._checkpoints(length, q, v)
        self.q, self.p = np.zeros_like(q), np.zeros_like(q)
        for first in reversed(range(0, steps, length)):
            count = min(length, steps - first)
            self._segment(first, count, *checkpoints[first // length])
        M, E = self._inertia(q, v)
        self._count_constants([(q, np.zeros_like(q), v, self.p), (q, np.zeros_like(q), np.zeros_like(q), -self.p)])
        self.q, self.v = self.q + _pull(E, self.p), _pull(M, self.p)

    def by_parameters(self) -> Array | None:
        """Total dJ/dp."""
        if self.dp is None or self.law.design is None:
            return None
        return self.dp + share_of_parameters(self.law.design, np.asarray(self.dconstants))

    def _checkpoints(self, length: int, q: Array, v: Array) -> list[tuple[Array, Array]]:
        """q and p before steps 0, length, 2 length, …; SolveError if the motion diverges."""
        stepper, kept = Stepper(self.law, self.h), []
        p = stepper.momentum(q, v)
        w = v
        for k in range(self.steps):
            if k % length == 0:
                kept.append((q, p))
            before = w
            w, G, stuck = stepper.solve(k, q, p)
            q, p = q + self.h * w, p + self.h * G
            still = finite(q, p)
            if not still.all():
                raise SolveError(first_divergence(self.law.model, (k + 1) * self.h, before, still, stuck))
        return kept

    def _segment(self, first: int, count: int, q: Array, p: Array) -> None:
        """Take the gradient through some steps; through the end of the motion too, if they reach it."""
        law, h, stepper = self.law, self.h, Stepper(self.law, self.h)
        states, speeds, torques, gains = [(q, p)], [], [], []
        for k in range(first, first + count):
            w, G, _ = stepper.solve(k, q, p)
            q_m, t_m = q + (h / 2) * w, (k + 0.5) * h
            speeds.append(w)
            torques.append(law.torques(t_m, q_m, w, k))
            gains.append(law.gains(t_m, q_m, w))
            q, p = q + h * w, p + h * G
            states.append((q, p))
        last = first + count == self.steps
        node_q, node_p = (np.array(x) for x in zip(*states[: count + last], strict=True))
        by_q, by_p = self._nodes(np.arange(first, first + count + last), node_q, node_p)
        w, q_m = np.array(speeds), node_q[:count] + (h / 2) * np.array(speeds)
        K: Any = None if law.feedback is None else tuple(np.array(x) for x in zip(*gains, strict=True))
        at = middle(law, q_m, w, np.array(torques), K, curvature(law, q_m, w))
        if last:
            self.q, self.p = self.q + by_q[-1], self.p + by_p[-1]
        y, z = np.empty_like(w), np.empty_like(w)
        for k in reversed(range(count)):
            y[k], z[k] = self._step(Middle(*(x[k] for x in at)))
            self.q, self.p = self.q + by_q[k], self.p + by_p[k]
        self.dtau[first : first + count] += z
        self._count_step_constants(q_m, w, y, z)

    def _step(self, at: Middle) -> tuple[Array, Array]:
        """One step backwards: y and z."""
        h = self.h
        right = h * self.q + h * _pull(at.slope_of_momentum(h), self.p)
        y = solve(at.matrix(h).swapaxes(-1, -2), right, np.ones(right.shape[:-1], dtype=bool))
        z = h * self.p + (h / 2) * y
        self.q, self.p = self.q + _pull(at.G_q, z) - _pull(at.P_q, y), self.p + y
        return y, z

    def _nodes(self, numbers: NDArray[np.int64], q: Array, p: Array) -> tuple[Array, Array]:
        """What the terms of J at some times add to ∂J/∂q and ∂J/∂p there."""
        law, times = self.law, numbers * np.float64(self.h)
        steps = np.minimum(numbers, self.steps - 1)
        stepper = Stepper(law, self.h)
        v = np.array([stepper.speed(*x) for x in zip(times.tolist(), q, p, strict=True)])
        found = [law.acceleration(*x) for x in zip(times.tolist(), q, v, steps.tolist(), strict=True)]
        a, tau = (np.array(x) for x in zip(*found, strict=True))
        for k, t in enumerate(times.tolist()):  # the state may be finite and its rate not
            check_reached(law.model, t, v[k], a[k], tau[k])
        now = Motion(law.model, times, q, v, a, tau, design=law.design)
        share = add_terms(self.objective.integral, now, self.weights[numbers], self.value, self.dp)
        if numbers[-1] == self.steps:
            last = Motion(law.model, times[-1:], q[-1:], v[-1:], a[-1:], tau[-1:], design=law.design)
            share[:, -1:] += add_terms(self.objective.end, last, np.ones(1), self.value, self.dp)
        change = forward_dynamics_derivatives(law.model, q, v, tau, loads=law.loads)
        pushed = forward_dynamics(law.inertial, q, np.zeros_like(q), share[2])
        by_tau = pushed + share[3]
        by_q, by_v = share[0] + _pull(change.da_dq, share[2]), share[1] + _pull(change.da_dv, share[2])
        if law.feedback is not None:
            gains = [law.gains(*x) for x in zip(times.tolist(), q, v, strict=True)]
            K_q, K_v = (np.array(x) for x in zip(*(pair for pair in gains if pair is not None), strict=True))
            by_q, by_v = by_q + _pull(K_q, by_tau), by_v + _pull(K_v, by_tau)
        np.add.at(self.dtau, steps, by_tau)
        u, still = forward_dynamics(law.inertial, q, np.zeros_like(q), by_v), np.zeros_like(q)
        self._count_constants([(q, v, a, -pushed), (q, still, v, -u), (q, still, still, u)], times=True)
        return by_q - _pull(self._inertia(q, v)[1], u), u

    def _inertia(self, q: Array, v: Array) -> tuple[Array, Array]:
        """M and E = ∂(M v)/∂q."""
        change = inverse_dynamics_derivatives(self.law.inertial, q, np.zeros_like(q), v)
        return np.asarray(change.dtau_da), np.asarray(change.dtau_dq)

    def _count_step_constants(self, q: Array, w: Array, y: Array, z: Array) -> None:
        """zᵀ ∂G/∂c − yᵀ ∂P/∂c of some steps: G = ∂T/∂q − (what holds the model at rest) − D w + τ."""
        still = np.zeros_like(w)
        size, along = (np.abs(x).max(axis=-1, keepdims=True) for x in (w, z))
        size = np.where((size > 0) & (along > 0), size / np.where(along > 0, along, 1.0), 1.0)
        polarised = w / (4 * size)
        damped = -0.75 * z  # −zᵀ D w, and −½ zᵀ D w for what (3) has of it, as halves of a difference
        self._count_constants([
            (q, still, w, -y), (q, still, still, y - z), (q, w, still, damped), (q, -w, still, -damped),
            (q, w + size * z, still, polarised), (q, w - size * z, still, -polarised),
        ], times=True)  # fmt: skip

    def _count_constants(self, parts: list[tuple[Array, Array, Array, Array]], *, times: bool = False) -> None:
        """Add gradients of yᵀτ(q, v, a) with respect to all constants, summed over `parts` and times."""
        if self.law.design is None:
            return
        q, v, a, y = (np.array(x) for x in zip(*parts, strict=True))
        gradient, batch = constants_gradient(self.law.design, q, v, a, y, loads=self.law.loads)
        whole = gradient.reshape(*batch.shape, gradient.shape[1])
        self.dconstants = self.dconstants + whole.sum(axis=(0, 1) if times else 0)


def _pull(matrix: Array, x: Array) -> Array:
    """matrixᵀ x for each state."""
    pulled: Array = np.einsum("...ij,...i->...j", matrix, x)
    return pulled
