"""Exact derivatives of constrained motion and of impacts: with respect to coordinates, speeds, torques and loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._engine import saddle
from kinegrad._kernels import constrained_derivatives as kernels
from kinegrad.constrained.dynamics import constrained_dynamics, impact
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
    unmet,
    unstopped,
)
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.assembly import check_set
from kinegrad.dynamics import mass_matrix
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives, inverse_dynamics_load_derivatives
from kinegrad.forward_derivatives import forward_dynamics_derivatives
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "ConstrainedDynamicsDerivatives",
    "ConstrainedLoadDerivatives",
    "ImpactDerivatives",
    "constrained_dynamics_derivatives",
    "constrained_dynamics_load_derivatives",
    "impact_derivatives",
]

Array = NDArray[np.float64]
Axis = engine.Axis


@dataclass(frozen=True, eq=False)
class ConstrainedDynamicsDerivatives(Result):
    """Accelerations and forces of constraints, and their derivatives; ``[..., i, j]`` is of entry i by coordinate j.

    Attributes
    ----------
    a : ndarray, shape (..., n)
        rad/s² or m/s².
    forces : ndarray, shape (..., m)
        N or N·m.
    da_dq, da_dv, da_dtau : ndarray, shape (..., n, n)
        With respect to coordinates, speeds and torques.
    dforces_dq, dforces_dv, dforces_dtau : ndarray, shape (..., m, n)
        The same of the forces.
    """

    a: Array
    forces: Array
    da_dq: Array
    da_dv: Array
    da_dtau: Array
    dforces_dq: Array
    dforces_dv: Array
    dforces_dtau: Array


@dataclass(frozen=True, eq=False)
class ImpactDerivatives(Result):
    """Speeds after an impact and its impulses, and their derivatives; axes as of ConstrainedDynamicsDerivatives.

    Attributes
    ----------
    v : ndarray, shape (..., n)
        After the impact, rad/s or m/s.
    impulses : ndarray, shape (..., m)
        N·s or N·m·s.
    dv_dq, dv_dv : ndarray, shape (..., n, n)
        With respect to coordinates, and to speeds before the impact.
    dimpulses_dq, dimpulses_dv : ndarray, shape (..., m, n)
        The same of the impulses.
    """

    v: Array
    impulses: Array
    dv_dq: Array
    dv_dv: Array
    dimpulses_dq: Array
    dimpulses_dv: Array


@dataclass(frozen=True, eq=False)
class ConstrainedLoadDerivatives(Result):
    """Derivatives with respect to the load on every link; ``[..., i, l, x]`` is of entry i by component x on link l.

    Attributes
    ----------
    da_dforce, da_dtorque, da_dpoint : ndarray, shape (..., n, l, 3)
        Of accelerations, with respect to world force, N, world torque, N·m, and the point in the link's frame, m.
    dforces_dforce, dforces_dtorque, dforces_dpoint : ndarray, shape (..., m, l, 3)
        Of the forces of constraints.
    """

    da_dforce: Array
    da_dtorque: Array
    da_dpoint: Array
    dforces_dforce: Array
    dforces_dtorque: Array
    dforces_dpoint: Array


def constrained_dynamics_derivatives(
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
) -> ConstrainedDynamicsDerivatives:
    """Accelerations that τ causes while constraints hold, forces of the constraints, and their exact derivatives.

    One factorisation serves all right-hand sides [kudruss2019].  Derivatives are those of the formulas for any q and v,
    met constraints or not.  With ``redundant="least-squares"`` they are those of the forces of least norm, where the
    rank of the constraints stays what it is.

    Parameters
    ----------
    model, constraints, q, v, tau, loads, method, stabilisation, redundant, threads
        As of :func:`constrained_dynamics`.

    Returns
    -------
    ConstrainedDynamicsDerivatives
        ``a`` and ``forces``; ``da_dq``, ``da_dv`` and ``da_dtau``, shape (..., n, n) each; ``dforces_dq``,
        ``dforces_dv`` and ``dforces_dtau``, shape (..., m, n) each.

    Raises
    ------
    SingularError
        As :func:`constrained_dynamics`.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> tip = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="xy")])
    >>> held = constrained_dynamics_derivatives(arm, tip, [0.5, -1.0], [0, 0], [0, 0])
    >>> bool(abs(held.da_dtau).max() < 1e-12)  # nothing moves, whatever pushes
    True
    """
    check_set(model, constraints)
    engine.one_of("method", method, saddle.METHODS)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    law = stabilisation_law(stabilisation)
    if not constraints.m:
        d = forward_dynamics_derivatives(model, q, v, tau, loads=loads, threads=threads)
        none = np.zeros((*d.a.shape[:-1], 0, model.nv))
        f = np.zeros((*d.a.shape[:-1], 0))
        return ConstrainedDynamicsDerivatives(d.a, f, d.da_dq, d.da_dv, d.da_dtau, none, none.copy(), none.copy())
    if method != "range-space" or least or engine.mapped(model):
        return _dense(model, constraints, (q, v, tau), loads, method, law, least, threads)
    kernel = kernel_of(constraints, "derivatives", law, _dynamics_kernel)

    def compiled(state: tuple[Any, ...], loads: Loads | None) -> tuple[Array, ...]:
        named = None if loads is None else named_loads(model, loads)
        return engine.evaluate(kernel, kept_model(constraints), state, named, None, threads)

    def dense(state: tuple[Any, ...], loads: Loads | None) -> tuple[Array, ...]:
        d = _dense(model, constraints, (state[0], state[1], state[2]), loads, method, law, least, threads)
        return d.a, d.forces, d.dforces_dq, d.dforces_dv, d.dforces_dtau, d.da_dq, d.da_dv, d.da_dtau

    try:
        found = compiled((q, v, tau), loads)
    except engine.DependentRow:
        found = ()
    found = found or state_by_state(constraints, {"q": q, "v": v, "tau": tau}, loads, compiled, dense)
    a, f, f_q, f_v, f_tau, a_q, a_v, a_tau = found
    return ConstrainedDynamicsDerivatives(a, f, a_q, a_v, a_tau, f_q, f_v, f_tau)


def impact_derivatives(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    *,
    restitution: ArrayLike = 0.0,
    method: str = "range-space",
    redundant: str = "error",
    threads: int | None = None,
) -> ImpactDerivatives:
    """The speeds after an impact, its impulses, and their exact derivatives with respect to q and v.

    Parameters
    ----------
    model, constraints, q, v, restitution, method, redundant, threads
        As of :func:`impact`.

    Returns
    -------
    ImpactDerivatives
        ``v`` and ``impulses``; ``dv_dq`` and ``dv_dv``, shape (..., n, n) each; ``dimpulses_dq`` and
        ``dimpulses_dv``, shape (..., m, n) each.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> floor = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    >>> d = impact_derivatives(arm, floor, [-0.3, 0.4], [-1, 0])
    >>> np.allclose(d.dv_dv @ [-1, 0], d.v)  # speeds after are linear in those before
    True
    """
    check_set(model, constraints)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    engine.one_of("method", method, saddle.METHODS)
    e = restitution_rows(constraints, restitution)
    if method != "range-space" or least or engine.mapped(model) or not constraints.m:
        return _dense_impact(model, constraints, q, v, e, method, least, threads)
    kernel = kernel_of(constraints, "impact_derivatives", None, _impact_kernel)
    without = kernel_of(constraints, "inelastic impact_derivatives", None, _inelastic_kernel)
    bare = kept_model(constraints, moving=False)

    def compiled(state: tuple[Any, ...], _: Any) -> tuple[Array, ...]:
        if not e.any():
            return engine.evaluate(without, bare, state, threads=threads)
        return engine.evaluate_with(kernel, bare, state, threads=threads, options=[e])

    def dense(state: tuple[Any, ...], _: Any) -> tuple[Array, ...]:
        d = _dense_impact(model, constraints, state[0], state[1], e, method, least, threads)
        return d.v, d.impulses, d.dimpulses_dq, d.dimpulses_dv, d.dv_dq, d.dv_dv

    try:
        found = compiled((q, v), None)
    except engine.DependentRow:
        found = ()
    found = found or state_by_state(constraints, {"q": q, "v": v}, None, compiled, dense)
    after, impulses, l_q, l_v, v_q, v_v = found
    return ImpactDerivatives(after, impulses, v_q, v_v, l_q, l_v)


def constrained_dynamics_load_derivatives(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    *,
    loads: Loads | None = None,
    method: str = "range-space",
    redundant: str = "error",
    threads: int | None = None,
) -> ConstrainedLoadDerivatives:
    """Derivatives of accelerations and forces of constraints with respect to the load on every link.

    They depend on q and on the loads alone.

    Parameters
    ----------
    model, constraints, q, method, redundant, threads
        As of :func:`constrained_dynamics`.
    loads : Loads, optional
        Where the forces act and what they are; without it at the origins of the link frames, and zero.

    Returns
    -------
    ConstrainedLoadDerivatives
        ``da_dforce``, ``da_dtorque`` and ``da_dpoint``, shape (..., n, n, 3) each: acceleration, link, component; the
        same of the forces of constraints, ``dforces_dforce``, …, shape (..., m, n, 3) each.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> tip = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    >>> change = constrained_dynamics_load_derivatives(arm, tip, [0.5, -1.0])
    >>> round(change.dforces_dforce[0, 1, 1], 12)  # a force on the tip along y is taken up at once
    np.float64(-1.0)
    """
    check_set(model, constraints)
    engine.one_of("method", method, saddle.METHODS)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    change = inverse_dynamics_load_derivatives(model, q, loads=loads, threads=threads)
    parts = [change.dtau_dforce, change.dtau_dtorque, change.dtau_dpoint]
    G, M = constraints.jacobian(q, threads=threads), mass_matrix(model, q, threads=threads)
    r = -np.concatenate([x.reshape(*x.shape[:-2], 3 * model.n) for x in parts], axis=-1)
    s = np.zeros((constraints.m, r.shape[-1]))
    a, f = solve_dense(constraints, q, method, M, G, r, s, least=least)
    by = [np.split(x, 3, axis=-1) for x in (a, f)]
    return ConstrainedLoadDerivatives(*(x.reshape(*x.shape[:-1], model.n, 3) for x in (*by[0], *by[1])))


# --- kernels ----------------------------------------------------------------------------------------------------


def _matrices(rows: int | Axis, *names: str) -> tuple[engine.Result, ...]:
    per = {"q": Axis.PER_POSITION, "v": Axis.PER_SPEED, "u": Axis.PER_TORQUE}
    return tuple(engine.Result(name, (rows, per[name[-1]])) for name in names)


def _dynamics_kernel(tables: engine.SaddleTables, law: tuple[float, float]) -> engine.Kernel:
    rates = np.array(law)

    def arguments(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
        solution, _ = tables.solution(loaded)
        structure, slots = tables.derivatives(loaded)
        return (tables.rows, solution, structure, np.zeros((1, model.n)), rates, stream), slots

    results = (
        engine.Result("a", (Axis.ACCELERATION,)),
        engine.Result("forces", (tables.m,)),
        *_matrices(tables.m, "dforces_dq", "dforces_dv", "dforces_dtau"),
        *_matrices(Axis.ACCELERATION, "da_dq", "da_dv", "da_dtau"),
    )
    return engine.Kernel(
        kernels.constrained_derivatives, engine.QVTAU, results, tables=arguments, loads=True, pivots=True, together=3,
        spare=True, with_elements=engine.pushed_constrained_derivatives,
    )  # fmt: skip


def _impact_kernel(tables: engine.SaddleTables, law: None) -> engine.Kernel:
    def arguments(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
        solution, _ = tables.solution(loaded=False)
        structure, slots = tables.derivatives(loaded=False)
        return (tables.rows, solution, structure, engine.no_load(model.n), np.zeros((1, model.n))), slots

    results = (
        engine.Result("v", (Axis.ACCELERATION,)),
        engine.Result("impulses", (tables.m,)),
        *_matrices(tables.m, "dimpulses_dq", "dimpulses_dv"),
        *_matrices(Axis.ACCELERATION, "dv_dq", "dv_dv"),
    )
    return engine.Kernel(
        kernels.impact_derivatives, engine.QV, results, tables=arguments, pivots=True, together=2, spare=True,
        with_elements=engine.indifferent,
    )  # fmt: skip


def _inelastic_kernel(tables: engine.SaddleTables, law: None) -> engine.Kernel:
    return inelastic(_impact_kernel(tables, law), tables.m)


# --- dense: coordinates that are not joints, rows that depend on each other ---------------------------------------


@quietly
def _dense(
    model: Model, constraints: ConstraintSet, state: tuple[Any, Any, Any], loads: Loads | None, method: str,
    law: tuple[float, float], least: bool, threads: int | None,
) -> ConstrainedDynamicsDerivatives:  # fmt: skip
    """The same from matrices of public functions."""
    redundant = REDUNDANT[least]
    found = constrained_dynamics(
        model, constraints, *state, loads=loads, method=method, stabilisation=law, redundant=redundant, threads=threads
    )  # fmt: skip
    a, f, (q, v) = found.a, found.forces, (engine.real(name, x) for name, x in zip("qv", state, strict=False))
    torque = inverse_dynamics_derivatives(model, q, v, a, loads=loads, threads=threads)
    rows = constraints.derivatives(q, v, a, threads=threads)
    G = np.broadcast_to(rows.derror_dq, (*a.shape[:-1], constraints.m, model.nv))
    H = constraints.curvature(q, f, threads=threads)
    alpha, beta = law
    rate, curve, curve_v = map(np.asarray, (rows.dvelocity_dq, rows.dacceleration_dq, rows.dacceleration_dv))
    s = [curve + 2 * alpha * rate + beta**2 * G, curve_v + 2 * alpha * G, np.zeros_like(G)]
    by_q, by_v, M = map(np.asarray, (torque.dtau_dq, torque.dtau_dv, torque.dtau_da))
    r = [H - by_q, -by_v, np.broadcast_to(np.eye(model.nv), M.shape)]
    if least:
        left = unmet(constraints, q, v, a, law, threads)
        s[0] = s[0] + saddle.tilted(G, constraints.curvature(q, left, threads=threads))
    by, by_f = solve_dense(
        constraints, q, method, M, G, np.concatenate(r, axis=-1),
        -np.concatenate(s, axis=-1), least=least,
    )  # fmt: skip
    if least:
        by_f[..., : model.nv] += _loose_ends(constraints, q, G, f, threads)
        engine.check_sums(by_f)
    parts = [np.ascontiguousarray(x) for half in (by, by_f) for x in np.split(half, 3, axis=-1)]
    return ConstrainedDynamicsDerivatives(a, f, *parts)


def _loose_ends(constraints: ConstraintSet, q: Array, G: Array, f: Array, threads: int | None) -> Array:
    """What forces of least norm change by with q beyond the range of G, (..., m, n)."""
    moved = constraints.derivatives(q, saddle.source(G, f), threads=threads).dvelocity_dq
    return saddle.loose_ends(G, np.asarray(moved))


@quietly
def _dense_impact(
    model: Model, constraints: ConstraintSet, q: Any, v: Any, e: Array, method: str, least: bool, threads: int | None
) -> ImpactDerivatives:
    """The same from matrices of public functions."""
    how: dict[str, Any] = {"restitution": e, "method": method, "redundant": REDUNDANT[least], "threads": threads}
    found = impact(model, constraints, q, v, **how)
    q, v = engine.real("q", q), engine.real("v", v)
    shape, still = found.v.shape[:-1], np.zeros(model.nv)
    if not constraints.m:
        eye, none = np.eye(model.nv), np.zeros((*shape, 0, model.nv))
        by_v = np.broadcast_to(eye, (*shape, model.nv, model.nv)).copy()
        return ImpactDerivatives(found.v, found.impulses, 0 * by_v, by_v, none, none.copy())
    bare = engine.inertial(model)
    torque = inverse_dynamics_derivatives(bare, q, still, found.v - v, threads=threads)
    after, before = (constraints.derivatives(q, x, threads=threads) for x in (found.v, v))
    H = constraints.curvature(q, found.impulses, threads=threads)
    G = np.broadcast_to(after.derror_dq, (*shape, constraints.m, model.nv))
    s_q = -(np.asarray(after.dvelocity_dq) + e[:, None] * np.asarray(before.dvelocity_dq))
    if least:
        left = unstopped(constraints, q, v, found.v, e, threads)
        s_q = s_q - saddle.tilted(G, constraints.curvature(q, left, threads=threads))
    r = np.concatenate([H - np.asarray(torque.dtau_dq), np.zeros_like(H)], axis=-1)
    s = np.concatenate([s_q, np.broadcast_to(-(1 + e[:, None]) * G, s_q.shape)], axis=-1)
    by, by_l = solve_dense(constraints, q, method, np.asarray(torque.dtau_da), G, r, s, least=least)
    if least:
        by_l[..., : model.nv] += _loose_ends(constraints, q, G, found.impulses, threads)
        engine.check_sums(by_l)
    v_q, v_v = np.split(by, 2, axis=-1)
    l_q, l_v = map(np.ascontiguousarray, np.split(by_l, 2, axis=-1))
    return ImpactDerivatives(found.v, found.impulses, np.ascontiguousarray(v_q), v_v + np.eye(model.nv), l_q, l_v)
