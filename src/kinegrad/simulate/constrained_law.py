"""The law of motion of a model under constraints: constrained dynamics, with the torques that act.

Constraints hold in accelerations, so that errors of integration are left to themselves; :meth:`ConstrainedLaw.drawn`
takes them off after a step, or `stabilisation` draws them back all the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.constrained import constrained_dynamics, stabilisation_law
from kinegrad.constrained_derivatives import constrained_dynamics_derivatives
from kinegrad.constrained_design import constrained_dynamics_design_derivatives, impact_design_derivatives
from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design
from kinegrad.errors import SingularError
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.simulate.law import Held, Law, finite_slopes
from kinegrad.simulate.projection import check_consistent, check_slopes, closed, closed_slopes, linearised, still

__all__ = ["ConstrainedLaw"]

Array = NDArray[np.float64]


class ConstrainedLaw(Law):
    """a = f(t, q, v) of a model under constraints that hold at all times.

    Parameters
    ----------
    model, tau, held, span, loads, design
        As of :class:`Law`.
    constraints : ConstraintSet
    stabilisation : float or (float, float), optional
        As of :func:`constrained_dynamics`.
    redundant : {"error", "least-squares"}
        The same.
    """

    def __init__(
        self, model: Model, tau: Any, held: Held, span: tuple[float, float], loads: Loads | None,
        design: Design | None, constraints: ConstraintSet, stabilisation: Any = None, redundant: str = "error",
    ) -> None:  # fmt: skip
        super().__init__(model, tau, held, span, loads, design)
        self.constraints, self.redundant = constraints, redundant
        self.stabilisation = None if stabilisation is None else stabilisation_law(stabilisation)
        self.kept: Array | None = None  # derivatives of φ, (m, p), of rows that hold a point where it landed
        self.rows: NDArray[np.int64] = np.arange(constraints.m)  # where its rows are among those that are reported

    @property
    def row_names(self) -> tuple[str, ...]:
        """Of the rows whose forces are reported."""
        return self.constraints.row_names

    @property
    def _how(self) -> dict[str, Any]:
        return {"loads": self.loads, "stabilisation": self.stabilisation, "redundant": self.redundant}

    @engine.overflow_passes()
    def _forward(self, q: Array, v: Array, tau: Array, given: Array) -> tuple[Array, Array]:
        return constrained_dynamics(self.model, self.constraints, q, v, tau, **self._how).a, tau

    @engine.overflow_passes()
    def forces(self, t: float, q: Array, v: Array) -> Array:
        """Of the constraints, (..., m); NaN where the state is not finite."""
        tau = self.torques(t, q, v)
        good = self._fit(q, v, tau)
        found = np.full((*q.shape[:-1], self.constraints.m), np.nan)
        try:
            state = q[good], v[good], tau[good]
            found[good] = constrained_dynamics(self.model, self.constraints, *state, **self._how).forces
        except SingularError as error:
            raise SingularError(f"at t = {t:.6g} s {error}") from error
        return found

    @engine.overflow_passes()
    def _along(
        self, t: float, q: Array, v: Array, tau: Array, dq: Array, dv: Array, dtau: Array
    ) -> tuple[Array, Array, Array, Array]:
        a = constrained_dynamics(self.model, self.constraints, q, v, tau, **self._how).a
        return a, tau, self._slopes((q, v, tau), dq, dv, dtau), dtau

    def _slopes(self, state: tuple[Array, Array, Array], dq: Array, dv: Array, dtau: Array) -> Array:
        assert self.design is not None
        follow: dict[str, Any] = {"dq_dp": dq, "dv_dp": dv, "dtau_dp": dtau}
        change = constrained_dynamics_design_derivatives(self.design, self.constraints, *state, **follow, **self._how)
        return change.da_dp

    @engine.overflow_passes()
    def sensitivity(self, t: float, q: Array, v: Array, tau: Array, dq: Array, dv: Array) -> tuple[Array, Array]:
        dtau = self._torque_slopes(t, q, v, dq, dv)
        good = self._fit(q, v, tau) & finite_slopes(dq, dv, dtau)
        da = np.full(dq.shape, np.nan)
        da[good] = self._slopes((q[good], v[good], tau[good]), dq[good], dv[good], dtau[good])
        return da, dtau

    @engine.overflow_passes()
    def jacobian(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        tau = self.torques(t, q, v)
        if not self._fit(q, v, tau):
            return np.zeros((self.model.nv, self.model.nv)), np.zeros((self.model.nv, self.model.nv))
        change = constrained_dynamics_derivatives(self.model, self.constraints, q, v, tau, **self._how)
        gains = self.gains(t, q, v)
        if gains is None:
            return change.da_dq, change.da_dv
        return change.da_dq + change.da_dtau @ gains[0], change.da_dv + change.da_dtau @ gains[1]

    @property
    def projects(self) -> bool:
        """Whether states are drawn onto the constraints after steps."""
        return self.stabilisation is None and self.constraints.m > 0

    def drawn(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The state on the constraints, if it is not stabilised instead."""
        if not self.projects:
            return q, v
        q = closed(self.constraints, self.normalised(q)).q
        return q, still(self.constraints, q, v, redundant=self.redundant != "error")

    def drawn_slopes(self, q: Array, v: Array, dq: Array, dv: Array) -> tuple[Array, Array]:
        """Slopes of a state on the constraints, (..., n, p), on the linearised ones."""
        if not self.projects or self.design is None:
            return dq, dv
        return linearised(self.constraints, q, v, dq, dv, self.design, self.kept)

    def started(
        self, q: Array, v: Array, dq: Array, dv: Array, *, project: bool
    ) -> tuple[Array, Array, Array, Array]:  # fmt: skip
        """Initial states on the constraints, with their slopes; refused where they are far off and not to be moved."""
        if not self.constraints.m:
            return q, v, dq, dv
        q = self.normalised(q)
        if not project:
            check_consistent(self.constraints, q, v)
        placed = closed(self.constraints, q)
        speeds = still(self.constraints, placed.q, v, redundant=self.redundant != "error")
        if self.design is not None:
            if not project:
                check_slopes(self.constraints, placed.q, speeds, dq, dv, self.design)
            dq = closed_slopes(self.constraints, placed, dq, self.design)
            follow: dict[str, Any] = {"dq_dp": dq, "dv_dp": dv}
            dv = impact_design_derivatives(self.design, self.constraints, placed.q, v, **follow).dv_dp
        return placed.q, speeds, dq, dv

    def reported(
        self, q: Array, v: Array, dq: Array | None, dv: Array | None
    ) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
        """States of an interpolation, (m, n), and their slopes as they are reported: on the constraints."""
        q, v = self.drawn(q, v)
        if dq is None or dv is None:
            return q, v, dq, dv
        return q, v, *self.drawn_slopes(q, v, dq, dv)
