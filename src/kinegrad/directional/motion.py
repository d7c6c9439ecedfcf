"""Directional derivatives of hybrid dynamics and of the Jacobians of points: both exact modes of each.

structured   matrices of derivatives times the directions
tangent      of hybrid dynamics, slopes of torques by duals at the motion that was found, and the free part of M
             factored once for all directions ([kudruss2019] proposition 3); of Jacobians the same as structured
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kinegrad.directional.slopes import TORQUES, contracted, duals, torque_slopes
from kinegrad.directional.sweep import Algorithm, Array, Found, Sweep
from kinegrad.dynamics import mass_matrix
from kinegrad.errors import InputError
from kinegrad.hybrid import hybrid_dynamics, prescribed_flags
from kinegrad.hybrid_derivatives import hybrid_dynamics_derivatives
from kinegrad.kinematics import jacobian
from kinegrad.kinematics_derivatives import forward_kinematics_derivatives, point_motion_derivatives
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["PointJacobian", "PrescribedMotion"]


class PrescribedMotion(Algorithm):
    names = ("hybrid_dynamics", "HYBRID")
    state = ("q", "v", "tau", "a")
    takes = ("prescribed",)

    def prepared(self, model: Model, given: dict[str, Any]) -> dict[str, Any]:
        flags = prescribed_flags(model, given["prescribed"])
        return {"prescribed": [model.speed_names[k] for k in np.flatnonzero(flags)], "held": flags == 1}

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        names, acting = sweep.options["prescribed"], None if loads is None else Loads(*loads.values())
        found = hybrid_dynamics(sweep.model, *state, prescribed=names, loads=acting, threads=sweep.threads)
        return np.concatenate([found.a, found.tau], axis=-1)

    def tangent(self, sweep: Sweep) -> Found:
        held, n = sweep.options["held"], sweep.model.nv
        value, free = self.value(sweep, sweep.x, sweep.loads), np.flatnonzero(~held)
        rest = np.zeros((*sweep.shape, sweep.count, n))
        dtau, da = (rest + np.where(keep, sweep.along_or_zero(k), 0.0) for k, keep in ((2, ~held), (3, held)))
        motion, changes = (*sweep.x[:2], value[..., :n]), [rest + sweep.along_or_zero(0), sweep.along_or_zero(1), da]
        if sweep.plain:
            changes[1] = rest + changes[1]
            [(_, slopes)] = duals(sweep, TORQUES, motion, changes)
        else:
            slopes = torque_slopes(sweep, motion, changes)
        M = mass_matrix(sweep.model, sweep.x[0], threads=sweep.threads)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            right = (dtau - slopes)[..., free].swapaxes(-1, -2)
            da[..., free] = np.linalg.solve(M[..., free[:, None], free], right).swapaxes(-1, -2)
            moved = slopes + da[..., free] @ M[..., free, :]
            found = np.concatenate([da, np.where(held, moved, dtau)], axis=-1)
        return value, sweep.directions_last(found)

    def structured(self, sweep: Sweep) -> Found:
        names, loads = sweep.options["prescribed"], sweep.given_loads
        d = hybrid_dynamics_derivatives(sweep.model, *sweep.x, prescribed=names, loads=loads, threads=sweep.threads)
        by_parts = (
            contracted(sweep, d.da_dq, d.da_dv, d.da_dtau, d.da_da),
            contracted(sweep, d.dtau_dq, d.dtau_dv, d.dtau_dtau, d.dtau_da),
        )
        return np.concatenate([d.a, d.tau], axis=-1), np.concatenate(by_parts, axis=-2)


class PointJacobian(Algorithm):
    """Speeds of points are linear in v: column j of a Jacobian is that of a speed of one of joint j alone."""

    names = ("jacobian", "JACOBIAN")
    state = ("q",)
    takes = ("link", "point")
    loads = False

    def prepared(self, model: Model, given: dict[str, Any]) -> dict[str, Any]:
        if given["link"] is None:
            raise InputError("`link` is None; expected the link of the point whose Jacobian is meant, or several")
        return {"link": given["link"], "point": (0.0, 0.0, 0.0) if given["point"] is None else given["point"]}

    def value(self, sweep: Sweep, state: Sequence[Array], loads: dict[str, Array] | None) -> Array:
        found = jacobian(sweep.model, state[0], **sweep.options, threads=sweep.threads)
        return np.concatenate([found.linear, found.angular], axis=-2)

    def tangent(self, sweep: Sweep) -> Found:
        return self.structured(sweep)

    def structured(self, sweep: Sweep) -> Found:
        model, link, (D,) = sweep.model, sweep.options["link"], sweep.D
        value = self.value(sweep, sweep.x, None)
        links = [model.locate(name)[0] for name in ([link] if isinstance(link, str) else link)]
        q, v, threads = sweep.x[0][..., None, :], np.eye(model.nv), sweep.threads
        linear = np.asarray(point_motion_derivatives(model, q, v, **sweep.options, threads=threads).dvelocity_dq)
        angular = np.asarray(forward_kinematics_derivatives(model, q, v, threads=threads).dangular_velocity_dq)
        angular = angular[..., links[0], :, :] if isinstance(link, str) else angular[..., links, :, :]
        columns = np.moveaxis(np.concatenate([linear, angular], axis=-2), len(sweep.shape), -2)
        assert D is not None
        D = D.reshape(*sweep.shape, *(1,) * (columns.ndim - len(sweep.shape) - 2), model.nv, sweep.count)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            return value, columns @ D
