"""Exact sensitivities of whole trajectories: ∂τ/∂(q, v, a) of inverse dynamics, its products with vectors, its
derivatives with respect to loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import (
    kinematics,
    lagrange_derivatives,
    load_derivatives,
    rnea_derivatives,
    rnea_gradient,
    rnea_products,
)
from kinegrad.dynamics import METHODS
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.packed_matrix import PackedMatrix, given_arrays
from kinegrad.results import Result

__all__ = [
    "InverseDynamicsDerivatives",
    "InverseDynamicsGradient",
    "LoadDerivatives",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_jvp",
    "inverse_dynamics_load_derivatives",
    "inverse_dynamics_vjp",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class InverseDynamicsDerivatives(Result):
    """Torques and their derivatives; ``[..., i, j]`` is that of τ_i with respect to coordinate j.

    Attributes
    ----------
    tau : ndarray, shape (..., n)
        N·m or N.
    dtau_dq, dtau_dv, dtau_da : ndarray, shape (..., n, n), or PackedMatrix
        With respect to coordinates, speeds and accelerations; the last is the mass matrix.
    """

    tau: Array
    dtau_dq: Array | PackedMatrix
    dtau_dv: Array | PackedMatrix
    dtau_da: Array | PackedMatrix


@dataclass(frozen=True, eq=False)
class InverseDynamicsGradient(Result):
    """Gradients of wᵀτ with respect to coordinates, speeds and accelerations, shape (..., n) each."""

    dq: Array
    dv: Array
    da: Array


@dataclass(frozen=True, eq=False)
class LoadDerivatives(Result):
    """Derivatives of τ with respect to the loads; ``[..., i, l, x]`` is that of τ_i by component x on link l.

    Attributes
    ----------
    dtau_dforce : ndarray, shape (..., n, n, 3)
        World force, N.
    dtau_dtorque : ndarray, shape (..., n, n, 3)
        World torque, N·m.
    dtau_dpoint : ndarray, shape (..., n, n, 3)
        Where the force acts, in the link's frame, m.
    """

    dtau_dforce: Array
    dtau_dtorque: Array
    dtau_dpoint: Array


Axis, Kind = engine.Axis, engine.Kind
Tables = tuple[tuple[Any, ...], int]
_LESS = {False: engine.less_derivatives, True: engine.less_packed_derivatives}


def _torque_results(packed: bool) -> tuple[engine.Result, ...]:
    """τ and ∂τ/∂(q, v, a)."""
    per = {"dtau_dq": Axis.PER_POSITION, "dtau_dv": Axis.PER_SPEED, "dtau_da": Axis.PER_ACCELERATION}
    matrices = (engine.Result(name, (Axis.TORQUE, axis), packed=packed) for name, axis in per.items())
    return engine.Result("tau", (Axis.TORQUE,)), *matrices


def _spatial(packed: bool) -> engine.Kernel:
    def tables(model: Model, loaded: bool, stream: bool) -> Tables:
        return engine.torque_tables(model, "packed" if packed else "dense", loaded, stream)

    results = _torque_results(packed)
    return engine.Kernel(
        rnea_derivatives.rnea_derivatives, engine.QVA, results, tables=tables, loads=True, together=3,
        in_coordinates=_in_coordinates(packed, lambda: DERIVATIVES["spatial"][False]), with_elements=_LESS[packed],
    )  # fmt: skip


def _lagrange(packed: bool) -> engine.Kernel:
    def tables(model: Model, loaded: bool, stream: bool) -> Tables:
        n, count = model.n, engine.pairs(model)
        columns = 2 * count - n if packed else n * n
        slots = lagrange_derivatives.slots(n, count) + 3 * columns
        return (engine.places(model, "packed" if packed else "dense"),), slots

    results = _torque_results(packed)
    return engine.Kernel(
        lagrange_derivatives.lagrange_derivatives, engine.QVA, results, tables=tables, loads=True, together=3,
        in_coordinates=_in_coordinates(packed, lambda: DERIVATIVES["lagrange"][False]), with_elements=_LESS[packed],
    )  # fmt: skip


def _in_coordinates(packed: bool, dense: Callable[[], engine.Kernel]) -> Any:
    """τ and its derivatives where coordinates are not joints; packed ones by their own pattern."""

    def contracted(
        at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, options: Sequence[Any]
    ) -> list[Array]:
        kernel = dense()
        motion = at.q, at.v, at.a
        found = engine.evaluate(kernel, at.primitive, motion, loads, threads=threads)
        tau, *matrices = engine.contract(at, kernel.results, found)
        rows, cols = at.layout.pattern
        return [tau, *(np.ascontiguousarray(x[..., rows, cols]) if packed else x for x in matrices)]

    return contracted


def _jvp_in_coordinates(
    at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, options: Sequence[Any]
) -> list[Array]:
    """Gᵀ dτ̂ + W δ."""
    motion, along = (at.q, at.v, at.a), at.push(at.given["dq"], at.given["dv"], at.given["da"])
    direction = [at.check(x, 1) for x in along]
    (change,) = engine.evaluate(JVP, at.primitive, (*motion, *direction), loads, threads=threads)
    (tau,) = engine.evaluate(METHODS["spatial"], at.primitive, motion, loads, threads=threads)
    with np.errstate(all="ignore"):  # what overflows is found in the end
        return [at.forces(change) + at.turn(tau, at.given["dq"])]


def _vjp_in_coordinates(
    at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, options: Sequence[Any]
) -> list[Array]:
    """Those of (G w)ᵀ τ̂, contracted, and Wᵀ w."""
    motion, weights = (at.q, at.v, at.a), at.check(at.G.push(at.given["w"]), 1)
    found = engine.evaluate(VJP, at.primitive, (*motion, weights), loads, threads=threads)
    (tau,) = engine.evaluate(METHODS["spatial"], at.primitive, motion, loads, threads=threads)
    by_q, by_v, by_a = engine.contract(at, VJP.results, found)
    with np.errstate(all="ignore"):  # what overflows is found in the end
        return [by_q + at.turn_transposed(tau, at.given["w"]), by_v, by_a]


def _products(model: Model, loaded: bool, stream: bool) -> Tables:
    return (engine.plan(model, loaded),), rnea_products.slots(model.n)


def _gradients(model: Model, loaded: bool, stream: bool) -> Tables:
    plan, records = engine.gradient_plan(model)
    return (plan,), rnea_gradient.slots(model.n, records)


DERIVATIVES = {
    "spatial": {packed: _spatial(packed) for packed in (False, True)},
    "lagrange": {packed: _lagrange(packed) for packed in (False, True)},
}
JVP = engine.Kernel(
    rnea_products.jvp,
    engine.QVA | {"dq": Kind.DPOSITION, "dv": Kind.DSPEED, "da": Kind.DACCELERATION},
    (engine.Result("dtau", (Axis.TORQUE,)),),
    tables=_products,
    loads=True,
    in_coordinates=_jvp_in_coordinates,
    with_elements=engine.less_jvp,
)
VJP = engine.Kernel(
    rnea_gradient.vjp,
    engine.QVA | {"w": Kind.WEIGHT},
    (
        engine.Result("dq", (Axis.PER_POSITION,)),
        engine.Result("dv", (Axis.PER_SPEED,)),
        engine.Result("da", (Axis.PER_ACCELERATION,)),
    ),
    tables=_gradients,
    loads=True,
    in_coordinates=_vjp_in_coordinates,
    with_elements=engine.less_vjp,
)
_BY_LOADS = engine.Kernel(
    load_derivatives.load_derivatives,
    engine.Q,
    tuple(
        engine.Result(name, (Axis.TORQUE, Axis.LINK, 3), zero=True)
        for name in ("dtau_dforce", "dtau_dtorque", "dtau_dpoint")
    ),
    kinematics.N,
    loads=True,
    with_elements=engine.indifferent,
)


def inverse_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    loads: Loads | None = None,
    method: str = "spatial",
    packed: bool = False,
    out: InverseDynamicsDerivatives | None = None,
    threads: int | None = None,
) -> InverseDynamicsDerivatives:
    """τ and its exact derivatives with respect to q, v and a.

    Load points move with their links while world forces and torques keep their direction; both are differentiated.
    Springs, dampers and armature of joints, and force elements between links, are included.

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.  Batch shapes broadcast.
    loads : Loads, optional
        External forces and torques on links.
    method : {"spatial", "lagrange"}
        World-frame spatial algebra (fastest), or the recursions (10)–(17) of [zhakatayev2023].
    packed : bool
        Return only the entries that topology does not make zero, as :class:`PackedMatrix`.
    out : InverseDynamicsDerivatives, optional
        Arrays to fill and return, memory-mapped ones too: τ of shape (..., n) and three of shape (..., n, n),
        or (..., k) if packed, where k is ``len(model.pattern[0])``.  The result is `out` itself: it holds plain arrays
        where it was made of them, and each :class:`PackedMatrix` of a packed result stays one.  The contents are
        undefined if an error is raised.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    InverseDynamicsDerivatives
        ``tau``, shape (..., n), N·m or N; ``dtau_dq``, ``dtau_dv`` and ``dtau_da`` (the mass matrix), shape (..., n,
        n) each, where ``[..., i, j]`` is the derivative of τ_i with respect to q_j, v_j or a_j.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link(gravity=(0, -10, 0))
    >>> inverse_dynamics_derivatives(arm, [0, 0], [0, 0], [0, 0]).dtau_da.round(3)
    array([[0.4 , 0.16],
           [0.16, 0.12]])
    >>> inverse_dynamics_derivatives(arm, [np.pi / 2, 0], [0, 0], [0, 0], packed=True).dtau_dq.values
    array([-4., -1., -1., -1.])
    """
    engine.one_of("method", method, DERIVATIVES)
    if packed is not False:
        packed = engine.flag("packed", packed)
    given = None if loads is None else named_loads(model, loads)
    arrays = None if out is None else given_arrays(out, InverseDynamicsDerivatives, model)
    tau, *matrices = engine.evaluate(DERIVATIVES[method][packed], model, (q, v, a), given, arrays, threads)
    if out is not None:
        return out
    if packed:
        rows, cols = model.pattern
        return InverseDynamicsDerivatives(tau, *(PackedMatrix(values, rows, cols, model.nv) for values in matrices))
    return InverseDynamicsDerivatives(tau, *matrices)


def inverse_dynamics_jvp(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    dq: ArrayLike,
    dv: ArrayLike,
    da: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """The change of τ along a direction: ∂τ/∂q dq + ∂τ/∂v dv + ∂τ/∂a da, in O(n), no matrix formed.

    Parameters
    ----------
    model : Model
    q, v, a, dq, dv, da : array_like, shape (..., n)
        State and direction; batch shapes broadcast.
    loads : Loads, optional
        Held fixed in the world, their points moving with the links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n)

    Examples
    --------
    >>> from kinegrad import samples
    >>> zero = [0, 0]
    >>> inverse_dynamics_jvp(samples.two_link(), zero, zero, zero, zero, zero, [1, 0]).round(3)
    array([0.4 , 0.16])
    """
    (dtau,) = engine.evaluate(JVP, model, (q, v, a, dq, dv, da), named_loads(model, loads), None, threads)
    return dtau


def inverse_dynamics_vjp(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> InverseDynamicsGradient:
    """Gradients of wᵀτ with respect to q, v and a, in O(n), no matrix formed.

    Parameters
    ----------
    model : Model
    q, v, a, w : array_like, shape (..., n)
        State and weights; batch shapes broadcast.
    loads : Loads, optional
        Held fixed in the world, their points moving with the links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    InverseDynamicsGradient
        The gradients ``dq``, ``dv`` and ``da`` of wᵀτ, shape (..., n) each.

    Examples
    --------
    >>> from kinegrad import samples
    >>> zero = [0, 0]
    >>> inverse_dynamics_vjp(samples.two_link(), zero, zero, zero, [0, 1]).da.round(3)
    array([0.16, 0.12])
    """
    return InverseDynamicsGradient(*engine.evaluate(VJP, model, (q, v, a, w), named_loads(model, loads), None, threads))


def inverse_dynamics_load_derivatives(
    model: Model, q: ArrayLike, *, loads: Loads | None = None, threads: int | None = None
) -> LoadDerivatives:
    """Derivatives of τ with respect to force, torque and point of the load on every link.

    They depend on q and on the loads alone: τ is linear in forces and torques.

    Parameters
    ----------
    model : Model
    q : array_like, shape (..., n)
        Coordinates, rad or m.
    loads : Loads, optional
        Where the forces act and what they are; without it at the origins of the link frames, and zero.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    LoadDerivatives
        ``dtau_dforce``, ``dtau_dtorque`` and ``dtau_dpoint``, shape (..., n, n, 3) each: torque, link, component.

    Examples
    --------
    >>> from kinegrad import samples
    >>> change = inverse_dynamics_load_derivatives(samples.two_link(), [0, 0])
    >>> change.dtau_dforce[:, 1, 1]  # a force along y on the forearm's tip takes torque off both joints
    array([-0.8, -0.4])
    """
    given = named_loads(model, Loads() if loads is None else loads)
    return LoadDerivatives(*engine.evaluate(_BY_LOADS, model, (q,), given, None, threads))
