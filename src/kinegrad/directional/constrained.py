"""Directional derivatives of impacts, of G and of γ: both exact modes of each.

    structured   matrices of derivatives times the directions
    tangent      G, φ̈ and torques with slopes by duals; an impact is the solution of a linear system, as constrained
                 dynamics is, with b and K of which only slopes along the directions are formed

Where coordinates are not joints, or force elements act, ``tangent`` is the same as ``structured``.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from kinegrad import _engine as engine
from kinegrad.constrained.derivatives import impact_derivatives
from kinegrad.constrained.dynamics import impact
from kinegrad.constrained.system import restitution_rows
from kinegrad.constraints.assembly import check_set
from kinegrad.directional.slopes import TORQUES, contracted, duals, row_slopes, saddle_matrix
from kinegrad.directional.sweep import Algorithm, Array, Found, Sweep
from kinegrad.dynamics import mass_matrix
from kinegrad.model import Model

__all__ = ["ImpactSpeeds", "RowDrift", "RowJacobian"]


class _OfRows(Algorithm):
    loads = False
    takes: tuple[str, ...] = ("constraints",)

    def checked(self, model: Model, constraints: Any) -> Any:
        check_set(model, constraints)
        return constraints


class RowJacobian(_OfRows):
    names = ("ConstraintSet.jacobian", "G")
    state = ("q",)

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        found: Array = sweep.constraints.jacobian(state[0], threads=sweep.threads)
        return found

    def tangent(self, sweep: Sweep) -> Found:
        if not sweep.plain:
            return self.structured(sweep)
        rest = np.zeros(sweep.model.nv)
        (G, slopes), _ = row_slopes(sweep, sweep.constraints, (sweep.x[0], rest, rest), (sweep.along[0], None, None))
        return G, sweep.directions_last(slopes)

    def structured(self, sweep: Sweep) -> Found:
        bend = sweep.constraints.jacobian_derivatives(sweep.x[0], threads=sweep.threads)
        (D,) = sweep.D
        assert D is not None
        with np.errstate(all="ignore"):  # what overflows is found in the end
            return self.value(sweep, sweep.x, None), bend @ D[..., None, :, :]


class RowDrift(_OfRows):
    names = ("ConstraintSet.drift", "γ")
    state = ("q", "v")

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        found: Array = sweep.constraints.drift(*state, threads=sweep.threads)
        return found

    def tangent(self, sweep: Sweep) -> Found:
        if not sweep.plain:
            return self.structured(sweep)
        motion = (*sweep.x, np.zeros(sweep.model.nv))
        _, (_, slopes) = row_slopes(sweep, sweep.constraints, motion, (_turned(sweep), sweep.along[1], None))
        return self.value(sweep, sweep.x, None), sweep.directions_last(-slopes)

    def structured(self, sweep: Sweep) -> Found:
        d = sweep.constraints.derivatives(*sweep.x, np.zeros(sweep.model.nv), threads=sweep.threads)
        return self.value(sweep, sweep.x, None), -contracted(sweep, d.dacceleration_dq, d.dacceleration_dv)


class ImpactSpeeds(_OfRows):
    names = ("impact", "IMPACT")
    state = ("q", "v")
    takes = ("constraints", "restitution")

    def _how(self, sweep: Sweep) -> dict[str, Any]:
        given = sweep.options["restitution"]
        return {"restitution": 0.0 if given is None else given, "threads": sweep.threads}

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        found = impact(sweep.model, sweep.constraints, *state, **self._how(sweep))
        return np.concatenate([found.v, found.impulses], axis=-1)

    def tangent(self, sweep: Sweep) -> Found:
        """With Δ = v⁺ − v: M dΔ − Gᵀ dΛ = ∂(GᵀΛ − MΔ) and G dΔ = −∂G (v⁺ + e v) − (1 + e) G dv."""
        if not sweep.plain:
            return self.structured(sweep)
        model, rows, (q, v) = sweep.model, sweep.constraints, sweep.x
        e = restitution_rows(rows, self._how(sweep)["restitution"])
        value = self.value(sweep, sweep.x, None)
        after, impulses = value[..., : model.n], value[..., model.n :]
        bare, rest, dq = copy.copy(sweep), np.zeros(model.n), _turned(sweep)
        bare.model, bare.loads = engine.inertial(model), None
        [(_, dtau)] = duals(bare, TORQUES, (q, rest, after - v), (dq, None, None))
        (G, dG), _ = row_slopes(sweep, rows, (q, rest, rest), (dq, None, None))
        K, dv = saddle_matrix(mass_matrix(model, q, threads=sweep.threads), G), sweep.along_or_zero(1)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            pull = (impulses[..., None, :, None] * dG).sum(axis=-2)
            rates = (dG @ after[..., None, :, None])[..., 0] + e * (dG @ v[..., None, :, None])[..., 0]
            stops = -rates - (1 + e) * (dv @ G.swapaxes(-1, -2))
            right = np.concatenate([pull - dtau, np.broadcast_to(stops, (*pull.shape[:-1], rows.m))], axis=-1)
            change = np.linalg.solve(K, right.swapaxes(-1, -2))
            change[..., : model.n, :] += dv.swapaxes(-1, -2)
        return value, np.ascontiguousarray(change)

    def structured(self, sweep: Sweep) -> Found:
        d = impact_derivatives(sweep.model, sweep.constraints, *sweep.x, **self._how(sweep))
        parts = contracted(sweep, d.dv_dq, d.dv_dv), contracted(sweep, d.dimpulses_dq, d.dimpulses_dv)
        return np.concatenate([d.v, d.impulses], axis=-1), np.concatenate(parts, axis=-2)


def _turned(sweep: Sweep) -> Array:
    """Changes of q, (..., k, nv), zeros if there are none."""
    found = sweep.along[0]
    return np.zeros((*sweep.shape, sweep.count, sweep.model.nv)) if found is None else found
