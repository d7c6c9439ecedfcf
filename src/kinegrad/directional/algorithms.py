"""The functions of dynamics that have directional derivatives: their values, and both exact modes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kinegrad import _engine as engine
from kinegrad._kernels import dual_states
from kinegrad.constrained.derivatives import constrained_dynamics_derivatives
from kinegrad.constrained.dynamics import constrained_dynamics, impact
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.assembly import check_set
from kinegrad.directional.constrained import ImpactSpeeds, RowDrift, RowJacobian
from kinegrad.directional.motion import PointJacobian, PrescribedMotion
from kinegrad.directional.slopes import TORQUES, contracted, duals, pairs, row_slopes, saddle_matrix, torque_slopes
from kinegrad.directional.sweep import Algorithm, Array, Found, Sweep
from kinegrad.dynamics import (
    FORWARD,
    MASS_MATRIX,
    METHODS,
    bias_forces,
    forward_dynamics,
    inverse_dynamics,
    mass_matrix,
)
from kinegrad.dynamics_derivatives import JVP, inverse_dynamics_derivatives
from kinegrad.forward_derivatives import forward_dynamics_derivatives
from kinegrad.hybrid import hybrid_dynamics
from kinegrad.kinematics import jacobian
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["ALGORITHMS"]


class _MassMatrix(Algorithm):
    names = ("mass_matrix", "CRBA")
    state: tuple[str, ...] = ("q",)
    loads = False
    dual = replace(MASS_MATRIX, function=dual_states.mass_matrix)

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        return engine.evaluate(MASS_MATRIX, sweep.model, state, threads=sweep.threads)[0]

    def tangent(self, sweep: Sweep) -> Found:
        if sweep.model.coordinates:
            return self._by_columns(sweep)
        [(M, slopes)] = duals(sweep, self.dual, sweep.x, sweep.along)
        return M, sweep.directions_last(slopes)

    def structured(self, sweep: Sweep) -> Found:
        if sweep.model.coordinates:
            return self._by_columns(sweep)
        batch, [(q, dq)], _ = pairs(sweep, MASS_MATRIX, sweep.x, sweep.along)
        assert dq is not None
        values, slopes = engine.run_mass_tangents(batch, q, dq, sweep.threads)
        batch.results = [values]
        batch.check_results()
        shape = (*sweep.shape, batch.n, batch.n)
        return values.reshape(shape), slopes.reshape(*shape, sweep.count)

    def _by_columns(self, sweep: Sweep) -> Found:
        """Column j of M is what inverse dynamics needs at rest for an acceleration of one, less what it needs for none;
        where coordinates are not joints."""
        zero = np.zeros(sweep.model.nv)
        q, dq = sweep.x[0][..., None, None, :], sweep.along_or_zero(0)[..., :, None, :]
        a = np.vstack([zero, np.eye(sweep.model.nv)])
        plain, given = sweep.model.without_elements, (q, zero, a, dq, zero, zero)
        (found,) = engine.evaluate(JVP, plain, given, threads=sweep.threads)
        return self.value(sweep, sweep.x, None), sweep.directions_last(found[..., 1:, :] - found[..., :1, :])


class _InverseDynamics(Algorithm):
    names = ("inverse_dynamics", "RNEA")
    state: tuple[str, ...] = ("q", "v", "a")

    def motion(self, sweep: Sweep, state: Sequence[Array]) -> Sequence[Array]:
        """q, v and a of a state."""
        return state

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        motion = self.motion(sweep, state)
        return engine.evaluate(METHODS["spatial"], sweep.model, motion, loads, threads=sweep.threads)[0]

    def tangent(self, sweep: Sweep) -> Found:
        motion = self.motion(sweep, sweep.x)
        if sweep.plain:
            [(tau, slopes)] = duals(sweep, TORQUES, motion, sweep.along)
        else:
            tau = self.value(sweep, sweep.x, sweep.loads)
            slopes = torque_slopes(sweep, motion, [sweep.along_or_zero(k) for k in range(3)])
        return tau, sweep.directions_last(slopes)

    def structured(self, sweep: Sweep) -> Found:
        motion = self.motion(sweep, sweep.x)
        found = inverse_dynamics_derivatives(sweep.model, *motion, loads=sweep.given_loads, threads=sweep.threads)
        return found.tau, contracted(sweep, found.dtau_dq, found.dtau_dv, found.dtau_da)


class _BiasForces(_InverseDynamics):
    names = ("bias_forces", "NEFF")
    state: tuple[str, ...] = ("q", "v")

    def motion(self, sweep: Sweep, state: Sequence[Array]) -> Sequence[Array]:
        """q, v and no acceleration."""
        return (*state, np.zeros(sweep.model.nv))


class _ForwardDynamics(Algorithm):
    names = ("forward_dynamics", "ABA")
    state: tuple[str, ...] = ("q", "v", "tau")
    dual = replace(FORWARD["aba"], function=dual_states.forward_dynamics)

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        return engine.evaluate(FORWARD["aba"], sweep.model, state, loads, threads=sweep.threads)[0]

    def tangent(self, sweep: Sweep) -> Found:
        if sweep.plain:
            [(a, slopes)] = duals(sweep, self.dual, sweep.x, sweep.along)
            return a, sweep.directions_last(slopes)
        a = self.value(sweep, sweep.x, sweep.loads)
        changes = [sweep.along_or_zero(0), sweep.along_or_zero(1), np.zeros(sweep.model.nv)]
        M = mass_matrix(sweep.model, sweep.x[0], threads=sweep.threads)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            right = sweep.along_or_zero(2) - torque_slopes(sweep, [*sweep.x[:2], a], changes)
            return a, np.ascontiguousarray(np.linalg.solve(M, right.swapaxes(-1, -2)))  # [kudruss2019] prop. 3

    def structured(self, sweep: Sweep) -> Found:
        found = forward_dynamics_derivatives(sweep.model, *sweep.x, loads=sweep.given_loads, threads=sweep.threads)
        return found.a, contracted(sweep, found.da_dq, found.da_dv, found.da_dtau)


class _ConstrainedDynamics(Algorithm):
    names = ("constrained_dynamics", "FDCONT")
    state: tuple[str, ...] = ("q", "v", "tau")

    def checked(self, model: Model, constraints: Any) -> Any:
        check_set(model, constraints)
        return constraints

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        acting = None if loads is None else Loads(*loads.values())
        found = constrained_dynamics(sweep.model, sweep.constraints, *state, loads=acting, threads=sweep.threads)
        return np.concatenate([found.a, found.forces], axis=-1)

    def tangent(self, sweep: Sweep) -> Found:
        """[kudruss2019] algorithm 4: ∂b − ∂K x are slopes of torques and of φ̈ at the solution, and of Gᵀ f."""
        model, rows = sweep.model, sweep.constraints
        if not sweep.plain:
            return self.structured(sweep)
        value = self.value(sweep, sweep.x, sweep.loads)
        a, f = value[..., : model.n], value[..., model.n :]
        dq = sweep.along[0] if sweep.along[0] is not None else np.zeros((*sweep.shape, sweep.count, model.n))
        motion, changes = (*sweep.x[:2], a), (dq, sweep.along[1], None)
        [(_, dtau)] = duals(sweep, TORQUES, motion, changes)
        (G, dG), (_, curve) = row_slopes(sweep, rows, motion, changes)
        K = saddle_matrix(mass_matrix(model, sweep.x[0], threads=sweep.threads), G)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            pull = (f[..., None, :, None] * dG).sum(axis=-2)
            right = np.concatenate([sweep.along_or_zero(2) - dtau + pull, -curve], axis=-1)
            return value, np.ascontiguousarray(np.linalg.solve(K, right.swapaxes(-1, -2)))

    def structured(self, sweep: Sweep) -> Found:
        d = constrained_dynamics_derivatives(
            sweep.model, sweep.constraints, *sweep.x, loads=sweep.given_loads, threads=sweep.threads
        )
        by_parts = (
            contracted(sweep, d.da_dq, d.da_dv, d.da_dtau),
            contracted(sweep, d.dforces_dq, d.dforces_dv, d.dforces_dtau),
        )
        return np.concatenate([d.a, d.forces], axis=-1), np.concatenate(by_parts, axis=-2)


ALGORITHMS: dict[Callable[..., Any], Algorithm] = {
    mass_matrix: _MassMatrix(),
    inverse_dynamics: _InverseDynamics(),
    bias_forces: _BiasForces(),
    forward_dynamics: _ForwardDynamics(),
    constrained_dynamics: _ConstrainedDynamics(),
    impact: ImpactSpeeds(),
    hybrid_dynamics: PrescribedMotion(),
    jacobian: PointJacobian(),
    ConstraintSet.jacobian: RowJacobian(),
    ConstraintSet.drift: RowDrift(),
}
