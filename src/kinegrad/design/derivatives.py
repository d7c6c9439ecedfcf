"""Derivatives with respect to design parameters, of torques, accelerations, mass matrix, poses, points and energies.

They are those of the recursive algorithms themselves, O(n) for each parameter, no matrix formed ([anderson2002]
(62)–(70)): compiled for dual numbers, and for torques and accelerations written out, so that parameters share values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import aba, crba, design_tangent, energy, kinematics, rnea_adjoint
from kinegrad._kernels import dual_kernels as kernels
from kinegrad.design import coordinates
from kinegrad.design.parameters import Design, directions, kernel_constants, kernel_slopes, sparse_slopes
from kinegrad.dynamics import (
    forward_dynamics,
    hybrid_dynamics,
    inverse_dynamics,
    mass_matrix,
    prescribed_flags,
    without,
)
from kinegrad.errors import InputError, SingularError
from kinegrad.kinematics import _points, _state, expand_motion, in_joints
from kinegrad.loads import Loads, expand, load_batch
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "EnergyDesignDerivatives",
    "HybridDynamicsDesignDerivatives",
    "PointMotionDesignDerivatives",
    "energy_design_derivatives",
    "forward_dynamics_design_derivatives",
    "hybrid_dynamics_design_derivatives",
    "inverse_dynamics_design_derivatives",
    "inverse_dynamics_design_vjp",
    "mass_matrix_design_derivatives",
    "point_motion_design_derivatives",
    "transform_design_derivatives",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HybridDynamicsDesignDerivatives(Result):
    """Derivatives of the accelerations and torques of all joints with respect to the parameters, (..., n, p) each.

    Those of prescribed accelerations and of given torques are what was given for them.
    """

    da_dp: Array
    dtau_dp: Array


@dataclass(frozen=True, eq=False)
class PointMotionDesignDerivatives(Result):
    """Derivatives of the motion of points fixed in links with respect to the parameters.

    Shapes (..., 3, p) for one point, (..., k, 3, p) for k; those of velocity and acceleration are None unless v and a
    were given.
    """

    dposition_dp: Array
    dvelocity_dp: Array | None = None
    dacceleration_dp: Array | None = None


@dataclass(frozen=True, eq=False)
class EnergyDesignDerivatives(Result):
    """Derivatives of kinetic and potential energy with respect to the parameters, shape (..., p) each, J per unit."""

    dkinetic_dp: Array
    dpotential_dp: Array


def inverse_dynamics_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """∂τ/∂p at fixed motion: how the torques of :func:`inverse_dynamics` change with each parameter.

    Parameters
    ----------
    design : Design
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.
    loads : Loads, optional
        External forces and torques on links; those of the design if it has any.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n, p)

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(gravity=(0, -10, 0)), ["forearm.mass"])
    >>> inverse_dynamics_design_derivatives(design, [0, 0], [0, 0], [0, 0])[:, 0]
    array([6., 2.])
    """
    state = {"q": q, "v": v, "a": a}
    if _checked(design).coordinates:
        at, change = _torques_in_coordinates(design, state, {}, loads, threads)
        return at.deliver(np.ascontiguousarray(coordinates.last(change)))
    return _tangents(design, design_tangent.inverse_dynamics, state, {}, loads, threads)


def inverse_dynamics_design_vjp(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """The gradient of wᵀτ with respect to all parameters at fixed motion: wᵀ ∂τ/∂p without ∂τ/∂p.

    One backward sweep gives the gradient with respect to every constant of the model, O(n) whatever p is, and that of
    the parameters follows from it.  For many parameters this is p times less work than the derivatives.

    Parameters
    ----------
    design : Design
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations.
    w : array_like, shape (..., n)
        Weights of the torques.
    loads, threads
        As of :func:`inverse_dynamics_design_derivatives`.

    Returns
    -------
    ndarray, shape (..., p)

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(gravity=(0, -10, 0)), ["forearm.mass", "elbow.a"])
    >>> inverse_dynamics_design_vjp(design, [0, 0], [0, 0], [0, 0], [1, 0])
    array([6., 5.])
    """
    gradient, batch = constants_gradient(design, q, v, a, w, loads=loads, threads=threads)
    shares = share_of_parameters(design, gradient)
    batch.results = [shares]
    batch.check_results()
    return shares.reshape(*batch.shape, design.p)


def constants_gradient(
    design: Design, q: ArrayLike, v: ArrayLike, a: ArrayLike, w: ArrayLike, *, loads: Loads | None = None,
    threads: int | None = None,
) -> tuple[Array, engine.Batch]:  # fmt: skip
    """The gradient of wᵀτ with respect to all constants of kernels and loads, (states, columns); and the batch."""
    model = _checked(design)
    loads = loads_of(design, loads)
    if model.coordinates:
        at = expand(model, loads, {"q": q, "v": v, "a": a, "w": w})
        motion = at.q_hat, at.v_hat, at.a_hat, at.check(at.G.push(at.given["w"]), 1)
        return constants_gradient(coordinates.primitive_design(design), *motion, loads=loads, threads=threads)
    batch, load_rows = load_batch(model, loads, {"q": q, "v": v, "a": a, "w": w})
    _, gradient = batch.output((rnea_adjoint.columns(model.n, loads is not None),), zero=True)
    arguments = kernel_constants(design), *batch.arguments[:4], *load_rows, gradient
    engine.run(rnea_adjoint.rnea_adjoint, batch, (model.n + 1) * rnea_adjoint.N, threads, *arguments)
    return gradient, batch


def share_of_parameters(design: Design, gradient: Array) -> Array:
    """From gradients with respect to constants, (..., columns), to those with respect to parameters, (..., p)."""
    slopes = sparse_slopes(design)  # which adds in the same order always
    rows = gradient[..., : slopes.shape[1]].reshape(-1, slopes.shape[1])
    with np.errstate(all="ignore"):  # what overflows is found in the end
        shares: Array = (slopes @ rows.T).T
    return np.ascontiguousarray(shares).reshape(*gradient.shape[:-1], design.p)


def forward_dynamics_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    dq_dp: ArrayLike | None = None,
    dv_dp: ArrayLike | None = None,
    dtau_dp: ArrayLike | None = None,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """da/dp: how the accelerations of :func:`forward_dynamics` change with each parameter.

    At fixed state and torques; or, if their own derivatives are given, the total derivative: [anderson2002] (9), fully
    recursive.

    Parameters
    ----------
    design : Design
    q, v, tau : array_like, shape (..., n)
        Coordinates, speeds, and torques or forces: rad or m, their time derivatives, N·m or N.
    dq_dp, dv_dp, dtau_dp : array_like, shape (..., n, p), optional
        How the state and the torques follow the parameters.
    loads : Loads, optional
        External forces and torques on links; those of the design if it has any.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n, p)

    Raises
    ------
    SingularError
        If nothing resists a joint, as in :func:`forward_dynamics`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.double_pendulum(), ["P.mass"])
    >>> forward_dynamics_design_derivatives(design, [0, 0], [0, 0], [1, 0]).round(12)[:, 0]
    array([-1.,  2.])
    """
    state = {"q": q, "v": v, "tau": tau}
    follow = {"q": dq_dp, "v": dv_dp, "tau": dtau_dp}
    if _checked(design).coordinates:
        a = forward_dynamics(design.model, q, v, tau, loads=loads_of(design, loads), threads=threads)
        none = np.zeros(design.model.nv, dtype=bool)
        return _accelerations_in_coordinates(design, none, {**state, "a": a}, follow, loads, threads)[0]
    try:
        return _tangents(design, design_tangent.forward_dynamics, state, follow, loads, threads)
    except SingularError:
        loads = loads_of(design, loads)
        forward_dynamics(design.model, q, v, tau, loads=loads, threads=threads)  # which says at which joint
        raise


def hybrid_dynamics_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Iterable[str],
    dq_dp: ArrayLike | None = None,
    dv_dp: ArrayLike | None = None,
    dtau_dp: ArrayLike | None = None,
    da_dp: ArrayLike | None = None,
    loads: Loads | None = None,
    threads: int | None = None,
) -> HybridDynamicsDesignDerivatives:
    """da/dp and dτ/dp: how all that :func:`hybrid_dynamics` returns changes with each parameter.

    Parameters
    ----------
    design : Design
    q, v, tau, a : array_like, shape (..., n)
        As in :func:`hybrid_dynamics`.
    prescribed : sequence of str
        Names of the joints whose accelerations are given.
    dq_dp, dv_dp, dtau_dp, da_dp : array_like, shape (..., n, p), optional
        How the state, the torques of free joints and the accelerations of prescribed ones follow the parameters; the
        other entries are ignored.
    loads : Loads, optional
        External forces and torques on links; those of the design if it has any.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    HybridDynamicsDesignDerivatives

    Raises
    ------
    SingularError
        If nothing resists a free joint.

    Examples
    --------
    A cart that accelerates at 2 m/s²: 2 N more for each kg of it, less for each kg of the rod, which swings back.

    >>> from kinegrad import samples
    >>> design = Design(samples.cart_pendulum(), ["cart.mass", "rod.mass"])
    >>> change = hybrid_dynamics_design_derivatives(design, [0, 0], [0, 0], [0, 0], [2, 0], prescribed=["track"])
    >>> change.dtau_dp[0]
    array([2.   , 0.125])
    """
    model = _checked(design)
    flags = prescribed_flags(model, prescribed)
    ignored = {"tau": flags == 1, "a": flags == 0}
    state = {"q": q, "v": v, "tau": without("tau", tau, ignored["tau"]), "a": without("a", a, ignored["a"])}
    follow = {"q": dq_dp, "v": dv_dp, "tau": dtau_dp, "a": da_dp}
    for name, entries in ignored.items():
        if follow[name] is not None:
            follow[name] = without(f"d{name}_dp", follow[name], entries[:, None])
    if model.coordinates:
        names = [model.speed_names[i] for i in np.flatnonzero(flags)]
        whole = loads_of(design, loads)
        state["a"] = hybrid_dynamics(model, q, v, tau, a, prescribed=names, loads=whole, threads=threads).a
        found = _accelerations_in_coordinates(design, flags == 1, state, follow, loads, threads)
        return HybridDynamicsDesignDerivatives(*found)
    try:
        return HybridDynamicsDesignDerivatives(*_hybrid(design, flags, state, follow, loads, threads))
    except SingularError:
        names = [model.joint_names[i] for i in np.flatnonzero(flags)]
        loads = loads_of(design, loads)
        hybrid_dynamics(model, q, v, tau, a, prescribed=names, loads=loads, threads=threads)  # which says which joint
        raise


def mass_matrix_design_derivatives(design: Design, q: ArrayLike, *, threads: int | None = None) -> Array:
    """∂M/∂p, shape (..., n, n, p); arguments as in :func:`inverse_dynamics_design_derivatives`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> mass_matrix_design_derivatives(Design(samples.two_link(), ["forearm.mass"]), [0, 0])[..., 0].round(3)
    array([[0.36, 0.12],
           [0.12, 0.04]])
    """
    n = _checked(design).n
    if design.model.coordinates:
        at = engine.Expansion(design.model, {"q": q})
        change = mass_matrix_design_derivatives(coordinates.primitive_design(design), at.q_hat, threads=threads)
        return at.deliver(np.ascontiguousarray(coordinates.last(at.matrix(coordinates.first(change)))))
    return _quantity(design, kernels.mass_matrix, crba.N, {"q": q}, n * n, threads, (n, n))


def transform_design_derivatives(design: Design, q: ArrayLike, *, threads: int | None = None) -> Array:
    """∂T/∂p of all link frames, shape (..., n, 4, 4, p).

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["elbow.a"])
    >>> transform_design_derivatives(design, [0, np.pi / 2])[1, :2, 3, 0].round(12)
    array([0., 1.])
    """
    n = _checked(design).n
    if design.model.coordinates:
        q = engine.Expansion(design.model, {"q": q}).q_hat
        return transform_design_derivatives(coordinates.primitive_design(design), q, threads=threads)
    return _quantity(design, kernels.transforms, kinematics.N, {"q": q}, 16 * n, threads, (n, 4, 4))


def point_motion_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    link: str | Sequence[str],
    point: ArrayLike = (0.0, 0.0, 0.0),
    threads: int | None = None,
) -> PointMotionDesignDerivatives:
    """∂(position, velocity, acceleration)/∂p of points fixed in links, at fixed q, v and a.

    Parameters
    ----------
    design : Design
    q, v, a, link, point, threads
        As in :func:`point_motion`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["elbow.a"])
    >>> point_motion_design_derivatives(design, [0, 0], [1, 0], link="forearm").dvelocity_dp[:, 0]
    array([0., 1., 0.])
    """
    model = _checked(design)
    if model.coordinates:
        _, q, v, a = in_joints(expand_motion(model, q, v, a))
        primitive = coordinates.primitive_design(design)
        return point_motion_design_derivatives(primitive, q, v, a, link=link, point=point, threads=threads)
    n = model.n
    batch, state = _state(model, q, v, a)
    batch.check_finite()
    links, local, core = _points(model, link, point)
    pairs = [(engine.kernel_array(np.broadcast_to(x, (batch.states, n))), None) for x in state]
    columns = [3 * len(links)] * 3
    slots = (n + 1) * kinematics.N
    results = engine.run_directions(
        kernels.points, batch, kernel_slopes(design)[0], pairs, [links, local], columns, slots, threads
    )[: 1 + (v is not None) + (a is not None)]
    batch.results = list(results)
    batch.check_results_of("point", local)
    batch.check_results()
    shape = (*batch.shape, design.p, *core, 3)
    moved = (np.ascontiguousarray(np.moveaxis(x.reshape(shape), len(batch.shape), -1)) for x in results)
    return PointMotionDesignDerivatives(*moved)


def energy_design_derivatives(
    design: Design, q: ArrayLike, v: ArrayLike, *, threads: int | None = None
) -> EnergyDesignDerivatives:
    """∂(kinetic, potential energy)/∂p at fixed state.

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["forearm.mass"])
    >>> energy_design_derivatives(design, [0, 0], [1, 0]).dkinetic_dp.round(3)
    array([0.18])
    """
    state = {"q": q, "v": v}
    if _checked(design).coordinates:
        at = engine.Expansion(design.model, state)
        return energy_design_derivatives(coordinates.primitive_design(design), at.q_hat, at.v_hat, threads=threads)
    sums = _quantity(design, kernels.energies, energy.N, state, energy.COLUMNS, threads, (energy.COLUMNS,), keep=2)
    return EnergyDesignDerivatives(sums[..., 0, :].copy(), sums[..., 1, :].copy())


def _torques_in_coordinates(
    design: Design, state: dict[str, Any], follow: dict[str, Any], loads: Loads | None, threads: int | None
) -> tuple[engine.Expansion, Array]:
    """The motion q, v, a, and dτ/dp, (p, ..., nv), where coordinates are not joints."""
    whole = loads_of(design, loads)
    at = expand(design.model, whole, state)
    slopes = coordinates.checked_slopes(design, at, **{f"d{x}_dp": follow.get(x) for x in "qva"})
    tau = inverse_dynamics(at.primitive, at.q_hat, at.v_hat, at.a_hat, loads=whole, threads=threads)

    def tangents(primitive: Design, state: dict[str, Any], follow: dict[str, Any]) -> Array:
        return _tangents(primitive, design_tangent.inverse_dynamics, state, follow, loads, threads)

    return at, coordinates.torques(design, at, tau, tangents, *slopes.values())


def _accelerations_in_coordinates(
    design: Design, held: NDArray[np.bool_], state: dict[str, Any], follow: dict[str, Any], loads: Loads | None,
    threads: int | None,
) -> tuple[Array, Array]:  # fmt: skip
    """da/dp and dτ/dp, (..., nv, p), where coordinates are not joints; `state` has all accelerations."""
    motion = {x: state[x] for x in "qva"}
    at, change = _torques_in_coordinates(design, motion, follow, loads, threads)
    given = coordinates.checked_slopes(design, at, da_dp=follow.get("a"), dtau_dp=follow.get("tau"))
    M = at.matrix(mass_matrix(at.primitive, at.q_hat, threads=threads))
    M = np.broadcast_to(M, (*at.shape, *M.shape[-2:]))
    found = coordinates.accelerations(at, M, change, given["dtau_dp"], given["da_dp"], held)
    a, tau = (at.deliver(x) for x in found)
    return a, tau


def _tangents(
    design: Design, kernel: Any, state: dict[str, Any], follow: dict[str, Any], loads: Loads | None,
    threads: int | None,
) -> Array:  # fmt: skip
    """Derivatives, (..., n, p), of what a kernel of state and loads finds."""
    batch, pairs, load_rows = _follow(design, state, follow, loads)
    found = engine.run_tangents(kernel, batch, directions(design), pairs, load_rows, threads)
    _check(batch, [found])
    return np.ascontiguousarray(np.swapaxes(found, -1, -2)).reshape(*batch.shape, batch.n, design.p)


def _hybrid(
    design: Design, flags: Any, state: dict[str, Any], follow: dict[str, Any], loads: Loads | None, threads: int | None
) -> list[Array]:
    """Derivatives, (..., n, p), of accelerations and torques."""
    batch, pairs, load_rows = _follow(design, state, follow, loads)
    slopes, varied = kernel_slopes(design)
    turns = [None] * 3 if varied is None else varied
    fixed = [x if dx is None else (x, dx) for x, dx in zip(load_rows, turns, strict=True)]
    n = batch.n
    found = engine.run_directions(
        kernels.hybrid_dynamics, batch, slopes, pairs, [flags, *fixed], [n] * 2, (n + 1) * aba.N, threads
    )
    _check(batch, found)
    whole = (x.reshape(*batch.shape, design.p, n) for x in found)
    return [np.ascontiguousarray(np.swapaxes(x, -1, -2)) for x in whole]


def _follow(
    design: Design, state: dict[str, Any], follow: dict[str, Any], loads: Loads | None
) -> tuple[engine.Batch, list[tuple[Array, Array | None]], Sequence[Array]]:
    """The batch; values, (states, n), with slopes, (states, p, n), of its state; its loads."""
    model = _checked(design)
    batch, load_rows = load_batch(model, loads_of(design, loads), state)
    batch.check_finite()
    pairs = [
        (engine.kernel_array(np.broadcast_to(x, (batch.states, model.n))), _follows(design, batch, f"d{name}_dp", dx))
        for name, x, dx in zip(state, batch.arguments, map(follow.get, state), strict=False)
    ]
    return batch, pairs, load_rows


def _quantity(
    design: Design,
    kernel: Any,
    slots: int,
    state: dict[str, Any],
    columns: int,
    threads: int | None,
    core: tuple[int, ...],
    *,
    keep: int | None = None,
) -> Array:
    model = _checked(design)
    n = model.n
    batch = engine.Batch(model, state)
    batch.check_finite()
    pairs = [(engine.kernel_array(np.broadcast_to(x, (batch.states, n))), None) for x in batch.arguments]
    slots = (n + 1) * slots
    (result,) = engine.run_directions(kernel, batch, kernel_slopes(design)[0], pairs, [], [columns], slots, threads)
    _check(batch, [result[..., :keep]])
    return np.ascontiguousarray(np.moveaxis(result.reshape(*batch.shape, design.p, *core), len(batch.shape), -1))


def _check(batch: engine.Batch, results: Sequence[Array]) -> None:
    """Refuse slopes, (states, directions, columns), that are not finite."""
    batch.results = list(results)
    batch.check_results()


def loads_of(design: Design, loads: Loads | None) -> Loads | None:
    """The loads given, or those of the design."""
    if loads is not None and design.loads is not None and loads is not design.loads and loads != design.loads:
        raise InputError("`loads` are given, and `design` has loads of its own; expected one of them")
    return design.loads if loads is None else loads


def _follows(design: Design, batch: engine.Batch, name: str, value: Any) -> Array | None:
    """A derivative with respect to p, (states, p, n) for the kernel."""
    if value is None:
        return None
    x = engine.real(name, value)
    shape = (*batch.shape, batch.n, design.p)
    try:
        full = np.broadcast_to(x, shape)
    except ValueError:
        raise InputError(f"`{name}` has shape {x.shape}; expected {shape}: states, {batch.n}, {design.p}") from None
    if not np.isfinite(full).all():
        raise engine.not_finite(name, x)
    return engine.kernel_array(np.swapaxes(full, -1, -2).reshape(batch.states, design.p, batch.n))


def _checked(design: Any) -> Model:
    if not isinstance(design, Design):
        raise InputError(
            f"`design` is a {type(design).__name__}; expected a Design, such as Design(model, ['thigh.mass'])"
        )
    return design.model
