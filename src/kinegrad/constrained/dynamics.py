"""Motion under constraints: accelerations and the forces of the constraints, and impacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._engine import saddle
from kinegrad._kernels import constrained as kernels
from kinegrad.constrained.system import (
    REDUNDANT,
    Stabilisation,
    inelastic,
    kept_model,
    kernel_of,
    quietly,
    restitution_rows,
    solve_dense,
    stabilisation_law,
    state_by_state,
)
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.assembly import check_set
from kinegrad.dynamics import bias_forces, forward_dynamics, mass_matrix
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "ConstrainedDynamics",
    "Impact",
    "constrained_dynamics",
    "impact",
]

Array = NDArray[np.float64]
Axis = engine.Axis


@dataclass(frozen=True, eq=False)
class ConstrainedDynamics(Result):
    """Accelerations, and the forces of the constraints that go with them.

    Attributes
    ----------
    a : ndarray, shape (..., n)
        rad/s² or m/s².
    forces : ndarray, shape (..., m)
        What each row of the set does to its link, in the row's direction, N or N·m: the multipliers f of
        M a + h = τ + Gᵀ f.
    """

    a: Array
    forces: Array


@dataclass(frozen=True, eq=False)
class Impact(Result):
    """Speeds after an impact, and its impulses.

    Attributes
    ----------
    v : ndarray, shape (..., n)
        rad/s or m/s.
    impulses : ndarray, shape (..., m)
        What each row of the set did to its link, in the row's direction, N·s or N·m·s.
    """

    v: Array
    impulses: Array


def constrained_dynamics(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    loads: Loads | None = None,
    method: str = "range-space",
    stabilisation: Stabilisation = None,
    redundant: str = "error",
    threads: int | None = None,
) -> ConstrainedDynamics:
    """The accelerations that torques τ cause while constraints hold, and the forces of the constraints.

    They solve  M a + h = τ + Gᵀ f  and  φ̈ = G a − γ = 0  (or the equation of `stabilisation`) at the given state, also
    if φ or φ̇ is not zero; use :func:`assemble` and :func:`project_velocity` to satisfy the constraints.  Springs,
    dampers, armature, force elements and loads are included.

    Parameters
    ----------
    model : Model
    constraints : ConstraintSet
        Constraints of this model.  An empty set gives the same bits as :func:`forward_dynamics`.
    q, v, tau : array_like, shape (..., n)
        Coordinates, speeds, and torques or forces: rad or m, their time derivatives, N·m or N.
    loads : Loads, optional
        External forces and torques on links.
    method : {"range-space", "null-space", "direct"}
        By the sparse factors of M, compiled (fastest; M must be regular; dense in states in which rows nearly depend on
        each other, so that no more digits are lost than by the others); by a basis of the motions that the
        constraints allow; or by solving the whole system.  The last two are dense; they serve for comparison, and for
        links without mass that are held by constraints only.  If coordinates are not joints, all three are dense.
    stabilisation : float or (float, float), optional
        Lets errors decay: φ̈ + 2α φ̇ + β² φ = 0 with rates (α, β), or one rate ω for both, 1/s [baumgarte1972].
    redundant : {"error", "least-squares"}
        What to do with redundant rows: refuse them by name, or choose the forces of least norm (a does not depend on
        the choice; if rows contradict each other, φ̈ has the least norm instead of being zero).
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ConstrainedDynamics
        ``a``, shape (..., n), rad/s² or m/s², and ``forces``, shape (..., m), N or N·m, in the order of the rows.

    Raises
    ------
    SingularError
        If rows are dependent in one of the states, or a joint has no inertia.

    Examples
    --------
    An arm whose tip lies on a table, y = 0: the table carries a part of its weight, and the tip slides along x.

    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link(gravity=(0, -10, 0))
    >>> table = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    >>> q = kg.assemble(arm, table, [0.5, -1.0], keep=["shoulder"])
    >>> slide = constrained_dynamics(arm, table, q, [0, 0], [0, 0])
    >>> slide.forces.round(3)
    array([4.277])
    >>> np.allclose(table.jacobian(q) @ slide.a, 0)
    True
    """
    check_set(model, constraints)
    engine.one_of("method", method, saddle.METHODS)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    law = stabilisation_law(stabilisation)
    if not constraints.m:
        a = forward_dynamics(model, q, v, tau, loads=loads, threads=threads)
        return ConstrainedDynamics(a, np.zeros((*a.shape[:-1], 0)))
    if method != "range-space" or least or engine.mapped(model):
        return _dense_dynamics(model, constraints, (q, v, tau), loads, method, law, least, threads)
    kernel = kernel_of(constraints, "dynamics", law, _dynamics_kernel)

    try:
        named = None if loads is None else named_loads(model, loads)
        return ConstrainedDynamics(
            *engine.evaluate(kernel, kept_model(constraints), (q, v, tau), named, None, threads)
        )  # fmt: skip
    except engine.DependentRow:
        pass

    def compiled(state: tuple[Any, ...], loads: Loads | None) -> tuple[Array, ...]:
        return engine.evaluate(kernel, kept_model(constraints), state, named_loads(model, loads), None, threads)

    def dense(state: tuple[Any, ...], loads: Loads | None) -> tuple[Array, ...]:
        found = _dense_dynamics(model, constraints, (state[0], state[1], state[2]), loads, method, law, least, threads)
        return found.a, found.forces

    return ConstrainedDynamics(*state_by_state(constraints, {"q": q, "v": v, "tau": tau}, loads, compiled, dense))


def impact(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    *,
    restitution: ArrayLike = 0.0,
    method: str = "range-space",
    redundant: str = "error",
    threads: int | None = None,
) -> Impact:
    """The speeds after an impact, in which constraints begin to hold at once, and its impulses.

    They solve  M (v⁺ − v) = Gᵀ Λ  and  G v⁺ = −e G v.  The impact takes no time, so that coordinates stay and nothing
    of ordinary size counts: no torque, load, spring, damper or gravity.

    Parameters
    ----------
    model : Model
    constraints : ConstraintSet
        Those that hold during the impact, new ones and old ones.
    q, v : array_like, shape (..., n)
        Coordinates, and speeds before the impact: rad or m, and their time derivatives.
    restitution : float or array_like, shape (m,)
        e between 0, plastic, and 1, elastic; for all rows or for each.
    method : {"range-space", "null-space", "direct"}
        As of :func:`constrained_dynamics`.
    redundant : {"error", "least-squares"}
        What to do where rows follow from others: refuse them by name, or choose the impulses of least norm.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    Impact

    Raises
    ------
    SingularError
        If rows depend on each other in one of the states, or nothing resists a joint.

    Examples
    --------
    A stretched arm hits the floor with its tip:

    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> floor = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    >>> after = impact(arm, floor, [-0.3, 0.4], [-1, 0], restitution=0.5)
    >>> before = floor.velocity([-0.3, 0.4], [-1, 0])
    >>> np.allclose(floor.velocity([-0.3, 0.4], after.v), -0.5 * before)
    True
    """
    check_set(model, constraints)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    engine.one_of("method", method, saddle.METHODS)
    e = restitution_rows(constraints, restitution)
    if method != "range-space" or least or engine.mapped(model) or not constraints.m:
        return _dense_impact(model, constraints, q, v, e, method, least, threads)
    kernel = kernel_of(constraints, "impact", None, _impact_kernel)
    without = kernel_of(constraints, "inelastic impact", None, _inelastic_kernel)

    def compiled(state: tuple[Any, ...], _: Any) -> tuple[Array, ...]:
        if not e.any():
            return engine.evaluate(without, kept_model(constraints), state, threads=threads)
        return engine.evaluate_with(kernel, kept_model(constraints), state, threads=threads, options=[e])

    try:
        return Impact(*compiled((q, v), None))
    except engine.DependentRow:
        pass

    def dense(state: tuple[Any, ...], _: Any) -> tuple[Array, ...]:
        found = _dense_impact(model, constraints, state[0], state[1], e, method, least, threads)
        return found.v, found.impulses

    return Impact(*state_by_state(constraints, {"q": q, "v": v}, None, compiled, dense))


def _dynamics_kernel(tables: engine.SaddleTables, law: tuple[float, float]) -> engine.Kernel:
    rates = np.array(law)

    def arguments(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
        structure, slots = tables.solution(loaded)
        return (tables.rows, structure, np.zeros((1, model.n)), rates), slots

    results = (engine.Result("a", (Axis.ACCELERATION,)), engine.Result("forces", (tables.m,)))
    return engine.Kernel(
        kernels.constrained, engine.QVTAU, results, tables=arguments, loads=True, pivots=True,
        with_elements=engine.pushed_by_forces,
    )  # fmt: skip


def _impact_kernel(tables: engine.SaddleTables, law: None) -> engine.Kernel:
    def arguments(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
        structure, slots = tables.solution(loaded=False)
        return (tables.rows, structure, engine.no_load(model.n)), slots

    results = (engine.Result("v", (Axis.ACCELERATION,)), engine.Result("impulses", (tables.m,)))
    return engine.Kernel(
        kernels.impact, engine.QV, results, tables=arguments, pivots=True, spare=True, with_elements=engine.indifferent
    )


def _inelastic_kernel(tables: engine.SaddleTables, law: None) -> engine.Kernel:
    """The same without restitution, which nearly all impacts are: one state then goes straight to the kernel."""
    return inelastic(_impact_kernel(tables, law), tables.m)


@quietly
def _dense_dynamics(
    model: Model, constraints: ConstraintSet, state: tuple[Any, Any, Any], loads: Loads | None, method: str,
    law: tuple[float, float], least: bool, threads: int | None,
) -> ConstrainedDynamics:  # fmt: skip
    given, _ = engine.check_arguments(
        model, dict(zip(("q", "v", "tau"), state, strict=True)), named_loads(model, loads)
    )
    q, v, tau = given.values()
    M = mass_matrix(model, q, threads=threads)
    r = tau - bias_forces(model, q, v, loads=loads, threads=threads)
    phi, G = constraints.closure(q, threads=threads)
    s = constraints.drift(q, v, threads=threads)
    if any(law):
        s = s - 2 * law[0] * constraints.velocity(q, v, threads=threads) - law[1] ** 2 * phi
    a, f = solve_dense(constraints, q, method, M, G, r[..., None], s[..., None], least=least)
    return ConstrainedDynamics(np.ascontiguousarray(a[..., 0]), np.ascontiguousarray(f[..., 0]))


@quietly
def _dense_impact(
    model: Model, constraints: ConstraintSet, q: Any, v: Any, e: Array, method: str, least: bool, threads: int | None
) -> Impact:
    given, shape = engine.check_arguments(model, {"q": q, "v": v})
    q, v = given.values()
    if not constraints.m:
        return Impact(np.broadcast_to(v, (*shape, model.nv)).copy(), np.zeros((*shape, 0)))
    M, G = mass_matrix(model, q, threads=threads), constraints.jacobian(q, threads=threads)
    s = -(1 + e) * constraints.velocity(q, v, threads=threads)
    change, impulses = solve_dense(constraints, q, method, M, G, np.zeros((model.nv, 1)), s[..., None], least=least)
    return Impact(v + change[..., 0], np.ascontiguousarray(impulses[..., 0]))
