"""Hybrid dynamics under constraints: some joints' motion is prescribed, the others are free, and constraints hold.

With h for prescribed joints and x for free ones,

    M_xx a_x − G_xᵀ f = τ_x − b_x − M_xh a_h        G_x a_x = γ − G_h a_h                                        (1)

gives the free accelerations and the forces f of the constraints, and then τ_h = (M a + b − Gᵀ f)_h is what motors of
the prescribed joints supply.  The same matrix solves for all derivatives: with ID(q, v, a) the inverse dynamics and H
the curvature ∂(Gᵀf)/∂q at the solution,

    M_xx da_x − G_xᵀ df = dτ_x − M_xh da_h − (∂ID/∂q − H)_x dq − (∂ID/∂v)_x dv
    G_x da_x = −G_h da_h − ∂φ̈/∂q dq − ∂φ̈/∂v dv
    dτ_h = (∂ID/∂q − H)_h dq + (∂ID/∂v)_h dv + (M da − Gᵀ df)_h
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._engine import saddle
from kinegrad.constrained.system import (
    REDUNDANT,
    Stabilisation,
    quietly,
    solve_dense,
    stabilisation_law,
    unmet,
)
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.assembly import check_set
from kinegrad.constraints.gauss_newton import times
from kinegrad.dynamics import bias_forces, mass_matrix
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import InputError
from kinegrad.hybrid import hybrid_dynamics, prescribed_flags, without
from kinegrad.hybrid_derivatives import hybrid_dynamics_derivatives
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "ConstrainedHybridDynamics",
    "ConstrainedHybridDynamicsDerivatives",
    "constrained_hybrid_dynamics",
    "constrained_hybrid_dynamics_derivatives",
]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ConstrainedHybridDynamics(Result):
    """Accelerations and torques of all joints, where some have prescribed motion, and the forces of the constraints.

    Attributes
    ----------
    a : ndarray, shape (..., n)
        As given at prescribed joints, found at free ones, rad/s² or m/s².
    tau : ndarray, shape (..., n)
        Found at prescribed joints, as given at free ones, N·m or N.
    forces : ndarray, shape (..., m)
        Of the rows of the set, N or N·m.
    """

    a: Array
    tau: Array
    forces: Array


@dataclass(frozen=True, eq=False)
class ConstrainedHybridDynamicsDerivatives(Result):
    """Results of constrained hybrid dynamics and their derivatives; ``[..., i, j]`` is of entry i by coordinate j.

    Attributes
    ----------
    a, tau : ndarray, shape (..., n)
    forces : ndarray, shape (..., m)
    da_dq, da_dv, da_dtau, da_da : ndarray, shape (..., n, n)
        With respect to coordinates, speeds, torques of free joints and accelerations of prescribed ones; columns of
        entries that are not given are zero.
    dtau_dq, dtau_dv, dtau_dtau, dtau_da : ndarray, shape (..., n, n)
        The same of the torques.
    dforces_dq, dforces_dv, dforces_dtau, dforces_da : ndarray, shape (..., m, n)
        The same of the forces of the constraints.
    """

    a: Array
    tau: Array
    forces: Array
    da_dq: Array
    da_dv: Array
    da_dtau: Array
    da_da: Array
    dtau_dq: Array
    dtau_dv: Array
    dtau_dtau: Array
    dtau_da: Array
    dforces_dq: Array
    dforces_dv: Array
    dforces_dtau: Array
    dforces_da: Array


@quietly
def constrained_hybrid_dynamics(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Iterable[str],
    loads: Loads | None = None,
    method: str = "range-space",
    stabilisation: Stabilisation = None,
    redundant: str = "error",
    threads: int | None = None,
) -> ConstrainedHybridDynamics:
    """Solve for unknown accelerations, torques and constraint forces where the motion of some joints is prescribed.

    Between :func:`constrained_dynamics`, where all joints are free, and :func:`constrained_inverse_dynamics`, where all
    accelerations are given; in dense matrices.

    Parameters
    ----------
    model : Model
    constraints : ConstraintSet
        Of this model.  An empty set gives what :func:`hybrid_dynamics` gives.
    q, v : array_like, shape (..., n)
        Coordinates and speeds: rad or m, and their time derivatives.
    tau : array_like, shape (..., n)
        Torques or forces of the free joints, N·m or N; entries at prescribed joints are ignored, NaN too.
    a : array_like, shape (..., n)
        Accelerations of the prescribed joints, rad/s² or m/s²; entries at free joints are ignored, NaN too.
    prescribed : sequence of str
        Names of the joints whose accelerations are given.
    loads, method, stabilisation, redundant, threads
        As of :func:`constrained_dynamics`.

    Returns
    -------
    ConstrainedHybridDynamics
        ``a`` and ``tau``, shape (..., n), and ``forces``, shape (..., m).

    Raises
    ------
    SingularError
        If rows depend on each other once the prescribed joints move as they are told (a linkage at a dead point, or
        more prescribed joints than it has freedoms), or nothing resists a free joint.

    Examples
    --------
    The motor that turns a four-bar linkage at 10 rad/s, here at the angle 0.5 rad:

    >>> import kinegrad as kg
    >>> model, loop = kg.samples.four_bar()
    >>> q = kg.assemble(model, loop, [0.5, 0, 0], keep=["crank"])
    >>> v = kg.project_velocity(model, loop, q, [10, 0, 0], keep=["crank"])
    >>> drive = constrained_hybrid_dynamics(model, loop, q, v, [0, 0, 0], [0, 0, 0], prescribed=["crank"])
    >>> drive.tau.round(3)
    array([-0.071,  0.   ,  0.   ])
    """
    check_set(model, constraints)
    engine.one_of("method", method, saddle.METHODS)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    law = stabilisation_law(stabilisation)
    free, given = _checked(model, constraints, (q, v, tau, a), prescribed)
    if not constraints.m:
        known = hybrid_dynamics(model, *given, prescribed=_names(model, free), loads=loads, threads=threads)
        return ConstrainedHybridDynamics(known.a, known.tau, np.zeros((*known.a.shape[:-1], 0)))
    state, _ = engine.check_arguments(model, dict(zip(("q", "v", "tau", "a"), given, strict=True)),
                                      named_loads(model, loads))  # fmt: skip
    x, speeds, torques, known_a = state.values()
    M, b = mass_matrix(model, x, threads=threads), bias_forces(model, x, speeds, loads=loads, threads=threads)
    phi, G = constraints.closure(x, threads=threads)
    r = torques - b - times(M, known_a)
    s = constraints.drift(x, speeds, threads=threads) - times(G, known_a)
    if any(law):
        s = s - 2 * law[0] * constraints.velocity(x, speeds, threads=threads) - law[1] ** 2 * phi
    parts = M[..., free[:, None], free], G[..., free], r[..., free, None], s[..., None]
    a_x, f = (y[..., 0] for y in solve_dense(constraints, x, method, *parts, least=least, free=free))
    found = np.array(np.broadcast_to(known_a, (*a_x.shape[:-1], model.nv)))
    found[..., free] = a_x
    needed = times(M, found) + b - (G * f[..., None]).sum(axis=-2)
    supplied = np.where(_held(model, free), needed, torques)
    engine.check_sums(supplied)
    return ConstrainedHybridDynamics(found, supplied, np.ascontiguousarray(f))


@quietly
def constrained_hybrid_dynamics_derivatives(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Iterable[str],
    loads: Loads | None = None,
    method: str = "range-space",
    stabilisation: Stabilisation = None,
    redundant: str = "error",
    threads: int | None = None,
) -> ConstrainedHybridDynamicsDerivatives:
    """Results of :func:`constrained_hybrid_dynamics`, and their exact derivatives with respect to all that is given.

    Parameters
    ----------
    model, constraints, q, v, tau, a, prescribed, loads, method, stabilisation, redundant, threads
        As of :func:`constrained_hybrid_dynamics`.

    Returns
    -------
    ConstrainedHybridDynamicsDerivatives

    Raises
    ------
    SingularError
        As :func:`constrained_hybrid_dynamics`.

    Examples
    --------
    >>> import kinegrad as kg
    >>> model, loop = kg.samples.four_bar()
    >>> zero = [0, 0, 0]
    >>> drive = constrained_hybrid_dynamics_derivatives(model, loop, zero, zero, zero, zero, prescribed=["crank"])
    >>> drive.dtau_da.shape, drive.dforces_dq.shape
    ((3, 3), (2, 3))
    """
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    check_set(model, constraints)
    free, given = _checked(model, constraints, (q, v, tau, a), prescribed)
    how: dict[str, Any] = {"method": method, "stabilisation": stabilisation, "redundant": redundant}
    how |= {"prescribed": _names(model, free), "loads": loads, "threads": threads}
    found = constrained_hybrid_dynamics(model, constraints, *given, **how)
    x, speeds = given[:2]
    if not constraints.m:
        names = _names(model, free)
        d = hybrid_dynamics_derivatives(model, *given, prescribed=names, loads=loads, threads=threads)
        none = [np.zeros((*d.a.shape[:-1], 0, model.nv)) for _ in range(4)]
        return ConstrainedHybridDynamicsDerivatives(
            d.a, d.tau, found.forces, d.da_dq, d.da_dv, d.da_dtau, d.da_da, d.dtau_dq, d.dtau_dv, d.dtau_dtau,
            d.dtau_da, *none,
        )  # fmt: skip
    alpha, beta = stabilisation_law(stabilisation)
    torque = inverse_dynamics_derivatives(model, x, speeds, found.a, loads=loads, threads=threads)
    rows = constraints.derivatives(x, speeds, found.a, threads=threads)
    by_q, by_v, M = map(np.asarray, (torque.dtau_dq, torque.dtau_dv, torque.dtau_da))
    G = np.broadcast_to(rows.derror_dq, (*found.a.shape[:-1], constraints.m, model.nv))
    by_q = by_q - constraints.curvature(x, found.forces, threads=threads)
    rate, curve, curve_v = map(np.asarray, (rows.dvelocity_dq, rows.dacceleration_dq, rows.dacceleration_dv))
    held = _held(model, free)
    s = [curve + 2 * alpha * rate + beta**2 * G, curve_v + 2 * alpha * G, np.zeros_like(G), np.where(held, G, 0.0)]
    if least:
        left = unmet(constraints, x, speeds, found.a, (alpha, beta), threads)
        s[0] = s[0] + saddle.tilted(G[..., free], constraints.curvature(x, left, threads=threads)[..., free, :])
    eye = np.broadcast_to(np.where(held, 0.0, np.eye(model.nv)), M.shape)
    r = np.concatenate([-by_q, -by_v, eye, np.where(held, -M, 0.0)], axis=-1)
    by_x, by_f = solve_dense(
        constraints, x, method, M[..., free[:, None], free], G[..., free], r[..., free, :],
        -np.concatenate(s, axis=-1), least=least, free=free,
    )  # fmt: skip
    if least:
        g = np.zeros(found.a.shape)
        g[..., free] = saddle.source(G[..., free], found.forces)
        moved = np.asarray(constraints.derivatives(x, g, threads=threads).dvelocity_dq)
        by_f[..., : model.nv] += saddle.loose_ends(G[..., free], moved)
    da = np.zeros((*found.a.shape, 4 * model.nv))
    da[..., free, :] = by_x
    da[..., held, 3 * model.nv + np.flatnonzero(held)] = 1.0
    dtau = M @ da - saddle.T(G) @ by_f
    dtau[..., : model.nv] += by_q
    dtau[..., model.nv : 2 * model.nv] += by_v
    dtau[..., free, :] = 0.0
    dtau[..., free, 2 * model.nv + free] = 1.0
    engine.check_sums(da, dtau, by_f)
    parts = [np.ascontiguousarray(y) for whole in (da, dtau, by_f) for y in np.split(whole, 4, axis=-1)]
    return ConstrainedHybridDynamicsDerivatives(found.a, found.tau, found.forces, *parts)


def _checked(
    model: Model, constraints: ConstraintSet, state: tuple[Any, Any, Any, Any], prescribed: Any
) -> tuple[Integers, tuple[Any, Array, Array, Array]]:
    """Numbers of free speeds, and q, v, τ and a with zeros where they are ignored."""
    flags = prescribed_flags(model, prescribed)
    free, (q, v, tau, a) = np.flatnonzero(flags == 0), state
    if constraints.m and not len(free):
        raise InputError(
            f"`prescribed` names all joints of model {model.name!r}, so that constraints have nothing to move; "
            "expected a free joint, or see constrained_inverse_dynamics"
        )
    return free, (
        engine.real("q", q),
        engine.real("v", v),
        without("tau", tau, flags == 1),
        without("a", a, flags == 0),
    )


def _held(model: Model, free: Integers) -> NDArray[np.bool_]:
    held = np.ones(model.nv, dtype=bool)
    held[free] = False
    return held


def _names(model: Model, free: Integers) -> list[str]:
    """Names of prescribed speeds."""
    return [model.speed_names[k] for k in np.flatnonzero(_held(model, free))]
