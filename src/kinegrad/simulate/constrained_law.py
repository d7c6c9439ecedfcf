"""The law of motion of a model under constraints: constrained dynamics, with the torques that act.

Constraints hold in accelerations, so that errors of integration are left to themselves; :meth:`ConstrainedLaw.drawn`
takes them off after a step, or `stabilisation` draws them back all the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.constrained.derivatives import constrained_dynamics_derivatives, impact_derivatives
from kinegrad.constrained.design import constrained_dynamics_design_derivatives, impact_design_derivatives
from kinegrad.constrained.dynamics import constrained_dynamics
from kinegrad.constrained.hybrid import constrained_hybrid_dynamics, constrained_hybrid_dynamics_derivatives
from kinegrad.constrained.hybrid_design import constrained_hybrid_dynamics_design_derivatives
from kinegrad.constrained.system import REDUNDANT, stabilisation_law
from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.simulate.law import Held, Law, finite, finite_slopes
from kinegrad.simulate.prescribed import Prescribed
from kinegrad.simulate.projection import (
    check_consistent,
    check_rank,
    check_slopes,
    closed,
    closed_slopes,
    linearised,
    still,
    still_slopes,
)

__all__ = ["ConstrainedLaw", "Drawing", "check_unconstrained"]

Array = NDArray[np.float64]


class ConstrainedLaw(Law):
    """a = f(t, q, v) of a model under constraints that hold at all times.

    Parameters
    ----------
    model, tau, held, span, loads, design, prescribed
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
        prescribed: Prescribed | None = None,
    ) -> None:  # fmt: skip
        super().__init__(model, tau, held, span, loads, design, prescribed)
        self.constraints, self.redundant = constraints, engine.one_of("redundant", redundant, REDUNDANT)
        self.stabilisation = None if stabilisation is None else stabilisation_law(stabilisation)
        self.kept: Array | None = None  # derivatives of φ, (m, p), of rows that hold a point where it landed
        self.row_names = constraints.row_names  # of the rows whose forces are reported
        self.rows: NDArray[np.int64] = np.arange(constraints.m)  # where the rows that hold are among them

    @property
    def _how(self) -> dict[str, Any]:
        return {"loads": self.loads, "stabilisation": self.stabilisation, "redundant": self.redundant}

    @property
    def _driven(self) -> dict[str, Any]:
        return self._how | {"prescribed": () if self.prescribed is None else self.prescribed.names}

    @property
    def moving(self) -> NDArray[np.int64] | None:
        """Numbers of free speeds, if others are prescribed."""
        return None if self.prescribed is None else self.free

    @engine.overflow_passes()
    def _forward(self, q: Array, v: Array, tau: Array, given: Array) -> tuple[Array, Array]:
        if self.prescribed is None:
            return constrained_dynamics(self.model, self.constraints, q, v, tau, **self._how).a, tau
        found = constrained_hybrid_dynamics(self.model, self.constraints, q, v, tau, given, **self._driven)
        return found.a, found.tau

    @engine.overflow_passes()
    def forces(self, q: Array, v: Array, tau: Array, a: Array | None = None) -> Array:
        """Of all rows that are reported, (..., k), zero of those that do not hold; `a`: prescribed accelerations."""
        found = np.zeros((*q.shape[:-1], len(self.row_names)))
        found[..., self.rows] = self.own_forces(q, v, tau, a)
        return found

    @engine.overflow_passes()
    def own_forces(self, q: Array, v: Array, tau: Array, a: Array | None = None) -> Array:
        """Of the constraints, (..., m); NaN where the state is not finite."""
        good = self._fit(q, v, tau)
        found = np.full((*q.shape[:-1], self.constraints.m), np.nan)
        state = q[good], v[good], tau[good]
        if self.prescribed is None or a is None:
            found[good] = constrained_dynamics(self.model, self.constraints, *state, **self._how).forces
        else:
            found[good] = constrained_hybrid_dynamics(
                self.model, self.constraints, *state, a[good], **self._driven
            ).forces
        return found

    @engine.overflow_passes()
    def _along(
        self, t: float, q: Array, v: Array, tau: Array, dq: Array, dv: Array, dtau: Array
    ) -> tuple[Array, Array, Array, Array]:
        a, supplied = self._forward(q, v, tau, self._prescribed_acceleration(t))
        return a, supplied, *self._slopes(t, (q, v, tau), dq, dv, dtau)

    def _slopes(
        self, t: float, state: tuple[Array, ...], dq: Array, dv: Array, dtau: Array
    ) -> tuple[Array, Array]:  # fmt: skip
        """da/dp and dτ/dp."""
        assert self.design is not None
        follow: dict[str, Any] = {"dq_dp": dq, "dv_dp": dv, "dtau_dp": dtau}
        if self.prescribed is None:
            follow |= self._how
            change = constrained_dynamics_design_derivatives(self.design, self.constraints, *state, **follow)
            return change.da_dp, dtau
        follow |= self._driven | {"da_dp": self._prescribed_slope(t)}
        given = self._prescribed_acceleration(t)
        q, v, tau = state
        both = constrained_hybrid_dynamics_design_derivatives(self.design, self.constraints, q, v, tau, given, **follow)
        return both.da_dp, both.dtau_dp

    @engine.overflow_passes()
    def sensitivity(self, t: float, q: Array, v: Array, tau: Array, dq: Array, dv: Array) -> tuple[Array, Array]:
        dtau = self._torque_slopes(t, q, v, dq, dv)
        good = self._fit(q, v, tau) & finite_slopes(dq, dv, dtau)
        da = np.full(dq.shape, np.nan)
        da[good], dtau[good] = self._slopes(t, (q[good], v[good], tau[good]), dq[good], dv[good], dtau[good])
        return da, dtau

    def derivatives(self, q: Array, v: Array, tau: Array, a: Array | None = None) -> Any:
        if self.prescribed is None or a is None:
            return constrained_dynamics_derivatives(self.model, self.constraints, q, v, tau, **self._how)
        return constrained_hybrid_dynamics_derivatives(self.model, self.constraints, q, v, tau, a, **self._driven)

    @property
    def projects(self) -> bool:
        """Whether states are drawn onto the constraints after steps."""
        return self.stabilisation is None and self.constraints.m > 0

    def drawn(self, q: Array, v: Array) -> tuple[Array, Array]:
        """States on the constraints, if they are not stabilised instead; those that are not finite as they are."""
        if not self.projects:
            return q, v
        good, q, v = finite(q, v), self.normalised(q), v.copy()
        q[good] = closed(self.constraints, q[good], self.moving).q
        v[good] = self._still(q[good], v[good])
        return q, v

    def _still(self, q: Array, v: Array) -> Array:
        return still(self.constraints, q, v, redundant=self.redundant != "error", free=self.moving)

    def drawn_along(self, q: Array, v: Array, dq: Array, dv: Array) -> tuple[Array, Array, Array, Array]:
        if not self.projects:
            return q, v, dq, dv
        good = finite(q, v) & finite_slopes(dq, dv)
        q, v, dq, dv = q.copy(), v.copy(), dq.copy(), dv.copy()
        q[good], v[good], dq[good], dv[good] = self._moved(q[good], v[good], dq[good], dv[good])
        return q, v, dq, dv

    def _moved(self, q: Array, v: Array, dq: Array, dv: Array) -> tuple[Array, Array, Array, Array]:
        """States on the constraints, with the exact derivative of getting there."""
        placed = closed(self.constraints, q, self.moving)
        speeds = self._still(placed.q, v)
        if self.design is None:
            return placed.q, speeds, dq, dv
        dq = closed_slopes(self.constraints, placed, dq, self.design, free=self.moving)
        if self.moving is not None:
            dv = still_slopes(self.constraints, placed.q, v, speeds, dq, dv, self.design, self.moving)
            return placed.q, speeds, dq, dv
        follow: dict[str, Any] = {"dq_dp": dq, "dv_dp": dv, "redundant": self.redundant}
        change = impact_design_derivatives(self.design, self.constraints, placed.q, v, **follow)
        return placed.q, speeds, dq, change.dv_dp

    def drawn_slopes(self, q: Array, v: Array, dq: Array, dv: Array) -> tuple[Array, Array]:
        """Slopes of a state on the constraints, (..., n, p), on the linearised ones."""
        if not self.projects or self.design is None:
            return dq, dv
        return linearised(self.constraints, q, v, dq, dv, self.design, self.kept, self.moving)

    def started(
        self, q: Array, v: Array, dq: Array, dv: Array, *, project: bool
    ) -> tuple[Array, Array, Array, Array]:  # fmt: skip
        """Initial states on the constraints, with their slopes; refused where they are far off and not to be moved."""
        if not self.constraints.m:
            return q, v, dq, dv
        q = self.normalised(q)
        if not project:
            check_consistent(self.constraints, q, v)
            if self.design is not None:
                check_slopes(self.constraints, q, v, dq, dv, self.design)
        placed = self._moved(q, v, dq, dv)
        self._check_rank(placed[0])
        return placed

    def placed(self, q: Array, v: Array, *, project: bool) -> tuple[Array, Array]:
        """Initial states on the constraints, stabilised or not, without slopes."""
        if not self.constraints.m:
            return q, v
        if not project:
            check_consistent(self.constraints, q, v)
        q = closed(self.constraints, q, self.moving).q
        self._check_rank(q)
        return q, self._still(q, v)

    def _check_rank(self, q: Array) -> None:
        if self.redundant != "error":
            check_rank(self.constraints, q, self.moving)

    def by_design(self, q: Array, v: Array, tau: Array) -> Array:
        """∂a/∂p at fixed state and torques, (..., n, p)."""
        assert self.design is not None
        change = constrained_dynamics_design_derivatives(self.design, self.constraints, q, v, tau, **self._how)
        return change.da_dp

    def driven_by_design(self, q: Array, v: Array, tau: Array, a: Array) -> tuple[Array, Array]:
        """∂a/∂p and ∂τ/∂p at fixed state, given torques and prescribed accelerations, (..., n, p) each."""
        assert self.design is not None
        both = constrained_hybrid_dynamics_design_derivatives(
            self.design, self.constraints, q, v, tau, a, **self._driven
        )
        return both.da_dp, both.dtau_dp

    def reported(
        self, q: Array, v: Array, dq: Array | None, dv: Array | None
    ) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
        """States of an interpolation, (m, n), and their slopes as they are reported: on the constraints."""
        q, v = self.drawn(q, v)
        if dq is None or dv is None:
            return q, v, dq, dv
        return q, v, *self.drawn_slopes(q, v, dq, dv)


def check_unconstrained(stabilisation: Any, redundant: Any) -> None:
    """Refuse what says something about constraints where there are none."""
    engine.one_of("redundant", redundant, REDUNDANT)
    for name, given in (("stabilisation", stabilisation is not None), ("redundant", redundant != "error")):
        if given:
            raise InputError(f"`{name}` is given without `constraints`; expected both, or neither")


class Drawing:
    """Derivatives of drawing states (q, v), (steps, ..., n), onto constraints, for gradients that go backwards.

    `always`: initial states, which are drawn even where the motion is stabilised.
    """

    def __init__(self, law: ConstrainedLaw, q: Array, v: Array, *, always: bool = False) -> None:
        self.none = not (law.projects or (always and law.constraints.m))
        if self.none:
            return
        n, p = law.model.nv, 0 if law.design is None else law.design.p
        placed = closed(law.constraints, q, law.moving)
        identity = np.broadcast_to(np.eye(n, n + p), (*v.shape, n + p))
        self.dq = closed_slopes(law.constraints, placed, identity, law.design, free=law.moving)
        if law.moving is not None:
            after = law._still(placed.q, v)
            along = np.broadcast_to(np.eye(n, 2 * n + p), (*v.shape, 2 * n + p))  # q, v, p
            across = np.broadcast_to(np.eye(n, 2 * n + p, n), (*v.shape, 2 * n + p))
            by = still_slopes(law.constraints, placed.q, v, after, along, across, law.design, law.moving)
            self.dv_dq, self.dv_dv, self.dv_dp = by[..., :n], by[..., n : 2 * n], by[..., 2 * n :]
            return
        change = impact_derivatives(law.model, law.constraints, placed.q, v, redundant=law.redundant)
        self.dv_dq, self.dv_dv, self.dv_dp = change.dv_dq, change.dv_dv, np.zeros((*v.shape, p))
        if law.design is not None:
            by_design = impact_design_derivatives(law.design, law.constraints, placed.q, v, redundant=law.redundant)
            self.dv_dp = by_design.dv_dp

    def pull(self, k: int, by_q: Array, by_v: Array, by_p: Array | None) -> tuple[Array, Array]:
        """Gradients with respect to q and v before, from those after; adds that by the parameters to `by_p`."""
        if self.none:
            return by_q, by_v
        n = by_q.shape[-1]
        by_q = by_q + _pull(self.dv_dq[k], by_v)
        by_all = _pull(self.dq[k], by_q)
        if by_p is not None:
            by_p += by_all[..., n:] + _pull(self.dv_dp[k], by_v)
        return by_all[..., :n], _pull(self.dv_dv[k], by_v)


def _pull(matrix: Array, x: Array) -> Array:
    """matrixᵀ x."""
    pulled: Array = np.einsum("...ij,...i->...j", matrix, x)
    return pulled
