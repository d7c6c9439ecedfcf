"""What is computed of a motion at its nodes: torques, and errors of constraints; with first and second derivatives.

At a node the motion is known by z = (q, v, a, …, f, p): its state, as many time derivatives as are needed, the forces f
of contacts and loops, and design parameters p.  From z follow the torques and the errors

    τ = M(q) a + c(q, v) − loads − G(q)ᵀ f,        φ = φ(q)                                                          (1)

with G the Jacobian of the rows that have forces.  Let μ and ν be weights of τ and φ.  First derivatives are those of
inverse dynamics and of constraints, and

    ∂τ/∂q ∋ −Σ f ∂²φ/∂q²  (the curvature),        ∂τ/∂f = −Gᵀ                                                        (2)

Second derivatives of μᵀτ + νᵀφ are those of inverse dynamics weighted by μ, less those of fᵀG(q)μ, which is the
velocity of the rows at speeds μ weighted by f (``_kernels/constraint_hessian.py``), and the curvature weighted by ν.

With respect to design parameters, first and second derivatives are those of the design functions, exact as well:
of μᵀτ₀ those of inverse dynamics, of νᵀφ − fᵀG(q)μ those of constraints with weights ν of errors and −f of rates at
speeds μ.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine import spline_nodes
from kinegrad.constrained.hessian import row_hessian
from kinegrad.constraints import ConstraintSet
from kinegrad.design import (
    Design,
    constraint_design_derivatives,
    constraint_design_hessian,
    constraint_jacobian_design_derivatives,
    inverse_dynamics_design_derivatives,
    inverse_dynamics_design_hessian,
)
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.dynamics_hessian import inverse_dynamics_hessian
from kinegrad.loads import Loads
from kinegrad.model import Model

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the parts of z and of y = (z, τ, φ) are, at one node."""

    nv: int
    orders: int  # q, v, a, jerk: how many of them
    forces: int
    parameters: int
    torques: int  # nv, or none
    errors: int

    @property
    def states(self) -> int:
        """Numbers of the state."""
        return self.orders * self.nv

    @property
    def size(self) -> int:
        """Numbers of z."""
        return self.states + self.forces + self.parameters

    @property
    def all(self) -> int:
        """Numbers of y."""
        return self.size + self.torques + self.errors

    def state(self, order: int) -> slice:
        return slice(order * self.nv, (order + 1) * self.nv)

    @property
    def force(self) -> slice:
        return slice(self.states, self.states + self.forces)

    @property
    def parameter(self) -> slice:
        return slice(self.states + self.forces, self.size)

    @property
    def tau(self) -> slice:
        return slice(self.size, self.size + self.torques)

    @property
    def error(self) -> slice:
        return slice(self.size + self.torques, self.all)


@dataclass(frozen=True, eq=False)
class Mechanics:
    """The model of a phase, its loads, and its rows: those with forces, and those whose errors are looked at."""

    model: Model
    loads: Loads | None = None
    forced: ConstraintSet | None = None
    forced_rows: tuple[int, ...] = ()  # those that carry a force; others are redundant
    watched: ConstraintSet | None = None
    design: Design | None = None
    torques: bool = True
    remembered: dict[bytes, Mechanics] = field(default_factory=dict)  # the same with other parameters

    def layout(self, orders: int) -> Layout:
        """Sizes."""
        watched = 0 if self.watched is None else self.watched.m
        parameters = 0 if self.design is None else self.design.p
        nv = self.model.nv
        return Layout(nv, orders, len(self.forced_rows), parameters, nv if self.torques else 0, watched)

    def at(self, p: Array) -> Mechanics:
        """The same with other parameters."""
        if self.design is None or np.array_equal(p, self.design.values):
            return self
        key = p.tobytes()
        known = self.remembered.get(key)
        if known is None:  # one at a time; other threads may do the same work, and get the same
            known = self._made_at(p)
            self.remembered.clear()
            self.remembered[key] = known
        return known

    def _made_at(self, p: Array) -> Mechanics:
        assert self.design is not None
        design = self.design.at(p)
        sets = {
            name: None if (old := getattr(self, name)) is None else ConstraintSet(design.model, old.constraints)
            for name in ("forced", "watched")
        }
        loads = self.loads if design.loads is None else design.loads
        return replace(self, model=design.model, design=design, loads=loads, remembered={}, **sets)  # type: ignore[arg-type]

    # --- what depends on what ------------------------------------------------------------------------------------

    @cached_property
    def moved(self) -> tuple[Mask, Mask]:
        """Which coordinates move each row, (m, nv), of the rows with forces and of those that are watched."""
        return _moved(self.model, self.forced)[list(self.forced_rows)], _moved(self.model, self.watched)

    @cached_property
    def torque_pattern(self) -> Mask:
        """Which coordinates each torque depends on, (nv, nv)."""
        rows, columns = self.model.pattern
        found = np.zeros((self.model.nv,) * 2, dtype=bool)
        found[rows, columns] = True
        for moved in self.moved[0]:
            found |= np.outer(moved, moved)
        return found

    @cached_property
    def _pattern(self) -> tuple[Index, Index]:
        """Rows and columns of packed derivatives of τ."""
        rows, columns = self.model.pattern
        return rows.copy(), columns.copy()

    # --- values and derivatives ----------------------------------------------------------------------------------

    def _full(self, f: Array) -> Array:
        assert self.forced is not None
        whole = np.zeros((len(f), self.forced.m))
        whole[:, list(self.forced_rows)] = f
        return whole

    def values(self, layout: Layout, z: Array, tau: Array | None = None) -> Array:
        """y, (K, all), of z, (K, size); with torques without forces of constraints, where they are known already."""
        y = np.empty((len(z), layout.all))
        y[:, : layout.size] = z
        q = z[:, layout.state(0)]
        if self.torques:
            if tau is None:
                q, v, a = _motion(layout, z)
                tau = inverse_dynamics(self.model, q, v, a, loads=self.loads)
            if self.forced_rows:
                tau -= self.forced.force(q, self._full(z[:, layout.force]))  # type: ignore[union-attr]
            y[:, layout.tau] = tau
        if self.watched is not None:
            y[:, layout.error] = self.watched.error(q)
        return y

    def first(self, layout: Layout, z: Array, also: list[Array] | None = None) -> Array:
        """∂(τ, φ)/∂z, (K, torques + errors, size); torques without forces of constraints are added to the list."""
        J = np.empty((len(z), layout.torques + layout.errors, layout.size))
        q, nt = z[:, layout.state(0)], layout.torques
        if not self.torques:
            J[:] = 0.0
        else:
            q, v, a = _motion(layout, z)
            d = inverse_dynamics_derivatives(self.model, q, v, a, loads=self.loads, packed=True)
            if also is not None:
                also.append(d.tau)
            slopes = [x.values for x in (d.dtau_dq, d.dtau_dv, d.dtau_da)]  # type: ignore[union-attr]
            spline_nodes.torque_slopes(*self._pattern, *slopes, layout.nv, J)
            if self.forced_rows:
                f, G = self._full(z[:, layout.force]), self.forced.jacobian(q)  # type: ignore[union-attr]
                J[:, :nt, layout.state(0)] -= self.forced.curvature(q, f)  # type: ignore[union-attr]
                J[:, :nt, layout.force] = -G[:, list(self.forced_rows)].swapaxes(1, 2)
            if self.design is not None:
                J[:, :nt, layout.parameter] = self._torque_slopes(layout, z)
        if self.watched is not None:
            J[:, nt:, layout.state(0)] = self.watched.jacobian(q)
            if self.design is not None:
                J[:, nt:, layout.parameter] = constraint_design_derivatives(self.design, self.watched, q).derror_dp
        return J

    def _torque_slopes(self, layout: Layout, z: Array) -> Array:
        """∂τ/∂p, (K, nv, p)."""
        design = self.design
        assert design is not None
        state = [z[:, layout.state(k)] for k in range(3)]
        slopes = inverse_dynamics_design_derivatives(design, *state, loads=_own_loads(design, self.loads))
        if self.forced_rows:
            assert self.forced is not None
            dG = constraint_jacobian_design_derivatives(design, self.forced, state[0])
            slopes = slopes - np.einsum("kmnp,km->knp", dG, self._full(z[:, layout.force]), optimize=True)
        return np.asarray(slopes)

    def add_second(self, layout: Layout, z: Array, mu: Array, nu: Array, H: Array) -> None:
        """Add the second derivatives of μᵀτ + νᵀφ to H, (K, size, size)."""
        q = z[:, layout.state(0)]
        if self.torques and mu.any():
            q, v, a = _motion(layout, z)
            d = inverse_dynamics_hessian(self.model, q, v, a, mu, loads=self.loads, packed=True)
            curves = [x.values for x in (d.d2_dqdq, d.d2_dqdv, d.d2_dqda, d.d2_dvdv)]  # type: ignore[union-attr]
            spline_nodes.torque_curvatures(*self._pattern, *curves, layout.nv, H)
            if self.forced_rows:
                self._add_forces(layout, z, mu, H)
        if self.watched is not None and nu.any():
            H[:, layout.state(0), layout.state(0)] += self.watched.curvature(q, nu)
        if self.design is not None:
            self._add_parameters(layout, z, mu, nu, H)

    def _add_forces(self, layout: Layout, z: Array, mu: Array, H: Array) -> None:
        """Less the second derivatives of fᵀG(q)μ."""
        assert self.forced is not None
        q, f, forced = z[:, layout.state(0)], self._full(z[:, layout.force]), self.forced
        none = np.zeros_like(f)
        pulled = row_hessian(forced, (q, mu, np.zeros_like(mu)), (none, f, none), None)[0]
        H[:, layout.state(0), layout.state(0)] -= pulled
        turned = np.asarray(forced.derivatives(q, mu).dvelocity_dq)[:, list(self.forced_rows)]
        H[:, layout.force, layout.state(0)] -= turned
        H[:, layout.state(0), layout.force] -= turned.swapaxes(1, 2)

    def _add_parameters(self, layout: Layout, z: Array, mu: Array, nu: Array, H: Array) -> None:
        design = self.design
        assert design is not None
        p, q = layout.parameter, z[:, layout.state(0)]
        mixed = np.zeros((len(z), layout.size, layout.parameters))
        if self.torques and mu.any():
            v, a = z[:, layout.state(1)], z[:, layout.state(2)]
            d = inverse_dynamics_design_hessian(design, q, v, a, mu, loads=_own_loads(design, self.loads))
            for order, x in enumerate((d.d2_dqdp, d.d2_dvdp, d.d2_dadp)):
                mixed[:, layout.state(order)] = x
            mixed[:, p] = d.d2_dpdp
            if self.forced_rows:
                assert self.forced is not None
                f = self._full(z[:, layout.force])
                pulled = constraint_design_hessian(design, self.forced, q, mu, np.zeros_like(f), -f)
                mixed[:, layout.state(0)] += pulled.d2_dqdp
                mixed[:, p] += pulled.d2_dpdp
                rates = constraint_design_derivatives(design, self.forced, q, mu).dvelocity_dp
                mixed[:, layout.force] = -np.asarray(rates)[:, list(self.forced_rows)]
        if self.watched is not None and nu.any():
            still = np.zeros_like(q)
            bent = constraint_design_hessian(design, self.watched, q, still, nu, np.zeros_like(nu))
            mixed[:, layout.state(0)] += bent.d2_dqdp
            mixed[:, p] += bent.d2_dpdp
        H[:, :, p] += mixed
        others = slice(0, layout.states + layout.forces)
        H[:, p, others] += mixed[:, others].swapaxes(1, 2)


def _motion(layout: Layout, z: Array) -> Array:
    """q, v and a, each in one piece, (3, K, nv): kernels read them as they are."""
    return np.ascontiguousarray(z[:, : 3 * layout.nv].reshape(len(z), 3, layout.nv).swapaxes(0, 1))


def _own_loads(design: Design, loads: Loads | None) -> Loads | None:
    """Loads that are not the design's own."""
    return None if design.loads is not None else loads


def _moved(model: Model, rows: ConstraintSet | None) -> Mask:
    """Where the Jacobian is not zero at some posture, (m, nv): kernels give exact zeros elsewhere."""
    if rows is None:
        return np.zeros((0, model.nv), dtype=bool)
    q = np.random.default_rng(20080206).uniform(-1, 1, (3, model.nq))
    return np.asarray((np.abs(rows.jacobian(q)) > 0).any(axis=0))


def moving(model: Model, rows: ConstraintSet) -> Any:
    """As above, of a set."""
    return _moved(model, rows)
