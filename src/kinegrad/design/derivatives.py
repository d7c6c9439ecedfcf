"""Derivatives with respect to design parameters, of torques, accelerations, mass matrix, poses, points and energies.

They are those of the recursive algorithms themselves, O(n) for each parameter, no matrix formed ([anderson2002]
(62)–(70)): compiled for dual numbers, and for torques and accelerations written out, so that parameters share values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import design_tangent, rnea_reverse
from kinegrad._kernels import dual_kernels as kernels
from kinegrad.design import coordinates, elements
from kinegrad.design.parameters import (
    Design,
    check_still_frames,
    directions,
    frame_slopes,
    kernel_constants,
    kernel_slopes,
    sparse_slopes,
)
from kinegrad.dynamics import (
    HYBRID,
    MASS_MATRIX,
    HybridDynamics,
    forward_dynamics,
    hybrid_dynamics,
    inverse_dynamics,
    prescribed_flags,
    reduced_mass_matrix,
    without,
)
from kinegrad.energy import ENERGIES
from kinegrad.errors import InputError
from kinegrad.kinematics import POINTS, TRANSFORMS, forward_kinematics, points, state_of
from kinegrad.loads import Loads, named_loads
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


def _slots(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
    return (), design_tangent.slots(model.n)


_TORQUES = engine.Kernel(
    design_tangent.inverse_dynamics,
    engine.QVA,
    (engine.Result("dtau_dp", (engine.Axis.TORQUE,)),),
    tables=_slots,
    loads=True,
)
_ACCELERATIONS = engine.Kernel(
    design_tangent.forward_dynamics,
    engine.QVTAU,
    (engine.Result("da_dp", (engine.Axis.ACCELERATION,)),),
    tables=_slots,
    loads=True,
    pivots=True,
)
_GRADIENT = engine.Kernel(
    rnea_reverse.by_constants,
    engine.QVA | {"w": engine.Kind.WEIGHT},
    (engine.Result("gradient", (engine.Axis.CONSTANT,), zero=True),),
    rnea_reverse.N,
    loads=True,
)
_HYBRID = replace(HYBRID, function=kernels.hybrid_dynamics)
_MASS_MATRIX = replace(MASS_MATRIX, function=kernels.mass_matrix)
_TRANSFORMS = replace(TRANSFORMS, function=kernels.transforms)
_POINTS = replace(POINTS, function=kernels.points)
_ENERGIES = replace(ENERGIES, function=kernels.energies)


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
    if model_of(design).elements:
        acting, plain = elements.changes(design, q, v, threads=threads), elements.without_elements(design)
        change = inverse_dynamics_design_derivatives(plain, q, v, a, loads=loads, threads=threads)
        change -= acting.dQ_dp
        engine.check_sums(change)
        return change
    if design.model.coordinates:
        at, change = _torques_in_coordinates(design, (q, v, a), (None, None, None), loads, threads)
        return at.deliver(["dtau_dp"], [np.ascontiguousarray(coordinates.last(change))])[0]
    return _tangents(design, _TORQUES, (q, v, a), (None, None, None), loads, threads)[1]


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
    _check(batch, [shares])
    return shares.reshape(*batch.shape, design.p)


def constants_gradient(
    design: Design, *state: ArrayLike, loads: Loads | None = None, threads: int | None = None
) -> tuple[Array, engine.Batch]:
    """The gradient of wᵀτ at q, v, a, w with respect to all constants of kernels and loads, (states, columns); and the
    batch."""
    model = model_of(design)
    if model.elements:
        return _gradient_with_elements(design, state, loads, threads)
    given = named_loads(model, loads_of(design, loads))
    if model.coordinates:
        at = engine.Expansion(model, dict(zip(_GRADIENT.state, state, strict=True)), given)
        primitive = coordinates.primitive_design(design)
        return constants_gradient(primitive, *at.arguments(_GRADIENT.state), loads=loads, threads=threads)
    batch, rows, load_rows = engine.checked(_GRADIENT, model, state, given)
    _, gradient = batch.output((rnea_reverse.columns(model.n, given is not None),), zero=True)
    constants = kernel_constants(design)
    engine.fill(_GRADIENT, batch, threads, (*rows, *load_rows), [gradient], constants, given is not None)
    return gradient, batch


def _gradient_with_elements(
    design: Design, state: Sequence[ArrayLike], loads: Loads | None, threads: int | None
) -> tuple[Array, engine.Batch]:
    """The same where there are force elements: columns of their share, by parameters, come last."""
    q, v, _, w = state
    acting, plain = elements.changes(design, q, v, threads=threads), elements.without_elements(design)
    gradient, batch = constants_gradient(plain, *state, loads=loads, threads=threads)
    with np.errstate(all="ignore"):  # what overflows is found in the end
        share = -(acting.dQ_dp * engine.real("w", w)[..., None]).sum(axis=-2)
    whole = np.broadcast_to(share, (*batch.shape, design.p)).reshape(-1, design.p)
    return np.concatenate([gradient[:, : sparse_slopes(plain).shape[1]], whole], axis=1), batch


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
    return forward_dynamics_along(design, (q, v, tau), (dq_dp, dv_dp, dtau_dp), loads, threads)[1]


def forward_dynamics_along(
    design: Design,
    state: Sequence[Any],
    follow: Sequence[Any],
    loads: Loads | None = None,
    threads: int | None = None,
) -> tuple[Array, Array]:
    """a and da/dp, in one pass, of q, v and τ, and of how they follow the parameters."""
    if model_of(design).elements:
        (q, v, tau), (dq, dv, dtau) = state, follow
        acting, plain = elements.changes(design, q, v, dq, dv, threads), elements.without_elements(design)
        given, lost = engine.with_forces(tau, acting.Q)
        a, da = forward_dynamics_along(plain, (q, v, given), (dq, dv, acting.added("dtau_dp", dtau)), loads, threads)
        engine.lose(lost, (a, 1), (da, 2))
        return a, da
    if design.model.coordinates:
        a = forward_dynamics(design.model, *state, loads=loads_of(design, loads), threads=threads)
        none, slopes = np.zeros(design.model.nv, dtype=bool), (*follow, None)
        return a, _accelerations_in_coordinates(design, none, (*state[:2], a), slopes, loads, threads)[0]
    return _tangents(design, _ACCELERATIONS, state, follow, loads, threads)


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
    follow = (dq_dp, dv_dp, dtau_dp, da_dp)
    return hybrid_dynamics_along(design, (q, v, tau, a), follow, prescribed, loads, threads)[1]


def hybrid_dynamics_along(
    design: Design,
    state: Sequence[Any],
    follow: Sequence[Any],
    prescribed: Iterable[str],
    loads: Loads | None = None,
    threads: int | None = None,
) -> tuple[HybridDynamics, HybridDynamicsDesignDerivatives]:
    """Accelerations and torques, and their derivatives, in one pass, of q, v, τ and a, and of how they follow."""
    flags = prescribed_flags(model_of(design), prescribed)
    held, free = flags == 1, flags == 0
    (q, v, tau, a), (dq, dv, dtau, da) = state, follow
    dtau = None if dtau is None else without("dtau_dp", dtau, held[:, None])
    da = None if da is None else without("da_dp", da, free[:, None])
    given = (q, v, without("tau", tau, held), without("a", a, free))
    model = design.model
    if model.elements:
        return _hybrid_with_elements(design, given, (dq, dv, dtau, da), held, loads, threads)
    if model.coordinates:
        names, whole = [model.speed_names[i] for i in np.flatnonzero(flags)], loads_of(design, loads)
        known = hybrid_dynamics(model, *given, prescribed=names, loads=whole, threads=threads)
        both = _accelerations_in_coordinates(design, held, (q, v, known.a), (dq, dv, dtau, da), loads, threads)
        return known, HybridDynamicsDesignDerivatives(*both)
    batch, pairs, load_rows = followed(design, _HYBRID, given, (dq, dv, dtau, da), loads)
    slopes, varied = kernel_slopes(design)
    turns = [None] * 3 if varied is None else varied
    fixed = [x if dx is None else (x, dx) for x, dx in zip(load_rows, turns, strict=True)]
    values, found = engine.run_directions(_HYBRID, batch, slopes, pairs, [flags, *fixed], threads)
    _check(batch, found)
    motion = HybridDynamics(*(x.reshape(*batch.shape, batch.n) for x in values))
    return motion, HybridDynamicsDesignDerivatives(*(parameters_last(batch, x, (batch.n,)) for x in found))


def _hybrid_with_elements(
    design: Design, state: Sequence[Any], follow: Sequence[Any], held: NDArray[np.bool_], loads: Loads | None,
    threads: int | None,
) -> tuple[HybridDynamics, HybridDynamicsDesignDerivatives]:  # fmt: skip
    """The same with force elements, which push free joints and take from what prescribed ones need."""
    (q, v, tau, a), (dq, dv, dtau, da) = state, follow
    names = [design.model.speed_names[i] for i in np.flatnonzero(held)]
    acting, plain = elements.changes(design, q, v, dq, dv, threads), elements.without_elements(design)
    pushed, lost = engine.with_forces(tau, acting.Q)
    slopes = (dq, dv, acting.added("dtau_dp", dtau), da)
    found, change = hybrid_dynamics_along(plain, (q, v, pushed, a), slopes, names, loads, threads)
    forces = np.where(held, found.tau - acting.Q, tau)
    by_p = np.where(held[:, None], change.dtau_dp - acting.dQ_dp, 0.0 if dtau is None else dtau)
    engine.lose(lost, (found.a, 1), (forces, 1), (change.da_dp, 2), (by_p, 2))
    engine.check_sums(forces, by_p)
    return HybridDynamics(found.a, forces), HybridDynamicsDesignDerivatives(change.da_dp, by_p)


def mass_matrix_design_derivatives(design: Design, q: ArrayLike, *, threads: int | None = None) -> Array:
    """∂M/∂p, shape (..., n, n, p); arguments as in :func:`inverse_dynamics_design_derivatives`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> mass_matrix_design_derivatives(Design(samples.two_link(), ["forearm.mass"]), [0, 0])[..., 0].round(3)
    array([[0.36, 0.12],
           [0.12, 0.04]])
    """
    if model_of(design).elements:
        return mass_matrix_design_derivatives(elements.without_elements(design), q, threads=threads)
    if design.model.coordinates:
        at = engine.Expansion(design.model, {"q": q})
        change = mass_matrix_design_derivatives(coordinates.primitive_design(design), at.q, threads=threads)
        contracted = at.G.pull(at.G.pull(coordinates.first(change), -2), inner=1)
        return at.deliver(["dM_dp"], [np.ascontiguousarray(coordinates.last(contracted))])[0]
    return _quantity(design, _MASS_MATRIX, (q,), threads)


def transform_design_derivatives(design: Design, q: ArrayLike, *, threads: int | None = None) -> Array:
    """∂T/∂p of all link frames, shape (..., n, 4, 4, p).

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(), ["elbow.a"])
    >>> transform_design_derivatives(design, [0, np.pi / 2])[1, :2, 3, 0].round(12)
    array([0., 1.])
    """
    if model_of(design).elements:
        design = elements.without_elements(design)
    if design.model.coordinates:
        q = engine.Expansion(design.model, {"q": q}).q
        design = coordinates.primitive_design(design)
    return _quantity(design, _TRANSFORMS, (q,), threads)


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
    model_of(design)
    design = elements.without_elements(design)
    model, state = design.model, state_of(q, v, a)
    if model.coordinates:
        at = engine.Expansion(model, dict(zip("qva", state, strict=False)))
        state, design = tuple(at.arguments(engine.QVA)), coordinates.primitive_design(design)
        model = design.model
    named = points(model, link, point)
    batch, pairs, _ = followed(design, _POINTS, state, (None, None, None), None)
    slopes = kernel_slopes(design)[0]
    _, found = engine.run_directions(_POINTS, batch, slopes, pairs, named["options"], threads, named["points"])
    found = found[: 1 + (v is not None) + (a is not None)]
    batch.results = list(found)
    for name, x in named["unseen"].items():
        batch.check_results_of(name, x)
    batch.check_results()
    core = _POINTS.results[0].core(model, named["points"])
    moved = [parameters_last(batch, x, core) for x in found]
    if frame_slopes(design):
        _add_frames(design, moved, q, v, a, link, point, threads)
    return PointMotionDesignDerivatives(*moved)


def _add_frames(
    design: Design, moved: list[Array], q: Any, v: Any, a: Any, link: Any, point: Any, threads: int | None
) -> None:
    """Add what points in frames move because their frames move in their links: x = p + R s, by s alone."""
    names = [link] if isinstance(link, str) else link
    places = np.broadcast_to(engine.real("point", point), (len(names), 3))
    links = forward_kinematics(design.model, q, v, a, threads=threads)
    for k, name in enumerate(names):
        slope = frame_slopes(design).get(name)
        if slope is None:
            continue
        i, _ = design.model.locate(name)
        ds = links.transform[..., i, :3, :3] @ (slope[:, :3, :3] @ places[k] + slope[:, :3, 3]).T  # (..., 3, p)
        parts = [ds]
        if links.angular_velocity is not None:
            w = links.angular_velocity[..., i, :, None]
            parts.append(np.cross(w, ds, axis=-2))
        if links.angular_acceleration is not None:
            dw = links.angular_acceleration[..., i, :, None]
            parts.append(np.cross(dw, ds, axis=-2) + np.cross(w, parts[1], axis=-2))
        for total, part in zip(moved, parts, strict=True):
            (total if isinstance(link, str) else total[..., k, :, :])[...] += part


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
    if model_of(design).elements:
        plain = energy_design_derivatives(elements.without_elements(design), q, v, threads=threads)
        dpotential = plain.dpotential_dp + elements.changes(design, q, v, threads=threads).denergy_dp
        engine.check_sums(dpotential)
        return EnergyDesignDerivatives(plain.dkinetic_dp, dpotential)
    if design.model.coordinates:
        at = engine.Expansion(design.model, {"q": q, "v": v})
        q, v, design = at.q, at.v, coordinates.primitive_design(design)
    sums = _quantity(design, _ENERGIES, (q, v), threads, keep=2)
    return EnergyDesignDerivatives(sums[..., 0, :].copy(), sums[..., 1, :].copy())


def _torques_in_coordinates(
    design: Design, state: Sequence[Any], follow: Sequence[Any], loads: Loads | None, threads: int | None
) -> tuple[engine.Expansion, Array]:
    """The motion q, v, a, and dτ/dp, (p, ..., nv), where coordinates are not joints; `follow` are their slopes."""
    whole = loads_of(design, loads)
    at = engine.Expansion(design.model, dict(zip("qva", state, strict=True)), named_loads(design.model, whole))
    names = ("dq_dp", "dv_dp", "da_dp")
    slopes = coordinates.checked_slopes(design, at, **dict(zip(names, follow, strict=True)))
    tau = inverse_dynamics(at.primitive, at.q, at.v, at.a, loads=whole, threads=threads)

    def tangents(primitive: Design, state: Sequence[Any], follow: Sequence[Any]) -> Array:
        return _tangents(primitive, _TORQUES, state, follow, loads, threads)[1]

    return at, coordinates.torques(design, at, tau, tangents, *slopes.values())


def _accelerations_in_coordinates(
    design: Design, held: NDArray[np.bool_], state: Sequence[Any], follow: Sequence[Any], loads: Loads | None,
    threads: int | None,
) -> tuple[Array, ...]:  # fmt: skip
    """da/dp and dτ/dp, (..., nv, p), at q, v and all of a; `follow` are slopes of q, v, τ of free ones, a of others."""
    dq, dv, dtau, da = follow
    at, change = _torques_in_coordinates(design, state, (dq, dv, da), loads, threads)
    given = coordinates.checked_slopes(design, at, da_dp=da, dtau_dp=dtau)
    M = reduced_mass_matrix(at, threads)
    found = coordinates.accelerations(at, M, change, given["dtau_dp"], given["da_dp"], held)
    return at.deliver(["da_dp", "dtau_dp"], found)


def _tangents(
    design: Design,
    kernel: engine.Kernel,
    state: Sequence[Any],
    follow: Sequence[Any],
    loads: Loads | None,
    threads: int | None,
) -> tuple[Array, Array]:
    """What a kernel of state and loads finds, (..., n), if it solves for it, and its derivatives, (..., n, p)."""
    batch, pairs, load_rows = followed(design, kernel, state, follow, loads)
    values, found = engine.run_tangents(kernel, batch, directions(design), pairs, load_rows, threads)
    _check(batch, [found])
    return values.reshape(*batch.shape, batch.n), parameters_last(batch, found, (batch.n,))


def _quantity(
    design: Design, kernel: engine.Kernel, state: Sequence[Any], threads: int | None, *, keep: int | None = None
) -> Array:
    """Derivatives of what a kernel of duals finds at a fixed state; `keep`: only so many columns are needed."""
    batch, pairs, _ = followed(design, kernel, state, [None] * len(state), None)
    _, (found,) = engine.run_directions(kernel, batch, kernel_slopes(design)[0], pairs, [], threads)
    _check(batch, [found[..., :keep]])
    return parameters_last(batch, found, kernel.results[0].core(batch.model))


def followed(
    design: Design, kernel: engine.Kernel, state: Sequence[Any], follow: Sequence[Any], loads: Loads | None
) -> tuple[engine.Batch, list[tuple[Array, Array | None]], Sequence[Array]]:
    """The batch; values, (states, n), with slopes, (states, p, n), of its state; its loads."""
    model = model_of(design)
    given = named_loads(model, loads_of(design, loads)) if kernel.loads else None
    batch, rows, load_rows = engine.checked(kernel, model, state, given)
    batch.check_finite()
    pairs = [
        (engine.kernel_array(np.broadcast_to(x, (batch.states, model.n))), _follows(design, batch, f"d{name}_dp", dx))
        for name, x, dx in zip(kernel.state, rows, follow, strict=True)
    ]
    return batch, pairs, load_rows


def parameters_last(batch: engine.Batch, found: Array, core: tuple[int, ...]) -> Array:
    """Slopes, (states, p, columns), as derivatives, (..., *core, p)."""
    whole = found.reshape(*batch.shape, found.shape[1], *core)
    return np.ascontiguousarray(np.moveaxis(whole, len(batch.shape), -1))


def _check(batch: engine.Batch, results: Sequence[Array]) -> None:
    """Refuse slopes, (states, directions, columns), that are not finite."""
    batch.results = list(results)
    batch.check_results()


def loads_of(design: Design, loads: Loads | None) -> Loads | None:
    """The loads given, or those of the design."""
    if loads is not None and design.loads is not None and loads is not design.loads and loads != design.loads:
        raise InputError("`loads` are given, and `design` has loads of its own; expected one of them")
    if loads is not None and loads is not design.loads and isinstance(loads, Loads):
        check_still_frames(frame_slopes(design), design.model, loads)
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


def model_of(design: Any) -> Model:
    if not isinstance(design, Design):
        raise InputError(
            f"`design` is a {type(design).__name__}; expected a Design, such as Design(model, ['thigh.mass'])"
        )
    return design.model
