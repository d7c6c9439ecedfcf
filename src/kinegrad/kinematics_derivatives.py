"""Exact sensitivities of where links, points and the centre of mass are, how they move, and of momentum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import kinematics_derivatives as kernels
from kinegrad._kernels import momentum_derivatives as momentum_kernels
from kinegrad.energy import _with_mass
from kinegrad.kinematics import _points, _state, expand_motion, in_joints
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "ForwardKinematicsDerivatives",
    "MomentumDerivatives",
    "PointMotionDerivatives",
    "center_of_mass_derivatives",
    "forward_kinematics_derivatives",
    "momentum_derivatives",
    "point_motion_derivatives",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ForwardKinematicsDerivatives(Result):
    """Derivatives of the fields of :class:`ForwardKinematics`; the last axis is the coordinate j.

    ``[..., i, :, j]`` is exactly zero where joint j does not move link i.  SI units, per rad or m of joint j.

    Attributes
    ----------
    dtransform_dq : ndarray, shape (..., n, 4, 4, n)
        Of link frame to world; its last row is zero.
    dlinear_velocity_dq, dlinear_velocity_dv : ndarray, shape (..., n, 3, n), or None
        Of the velocity of the frame's origin, m/s; None unless v was given, as the next two.
    dangular_velocity_dq, dangular_velocity_dv : ndarray, shape (..., n, 3, n), or None
        Of the link's angular velocity, rad/s.
    dlinear_acceleration_dq, dlinear_acceleration_dv, dlinear_acceleration_da : ndarray or None
        Of the acceleration of the frame's origin, m/s², shape (..., n, 3, n); None unless a was given, as the
        next three.
    dangular_acceleration_dq, dangular_acceleration_dv, dangular_acceleration_da : ndarray or None
        Of the link's angular acceleration, rad/s², shape (..., n, 3, n).
    """

    dtransform_dq: Array
    dlinear_velocity_dq: Array | None = None
    dlinear_velocity_dv: Array | None = None
    dangular_velocity_dq: Array | None = None
    dangular_velocity_dv: Array | None = None
    dlinear_acceleration_dq: Array | None = None
    dlinear_acceleration_dv: Array | None = None
    dlinear_acceleration_da: Array | None = None
    dangular_acceleration_dq: Array | None = None
    dangular_acceleration_dv: Array | None = None
    dangular_acceleration_da: Array | None = None


@dataclass(frozen=True, eq=False)
class PointMotionDerivatives(Result):
    """Derivatives of the fields of :class:`PointMotion`; the last axis is the coordinate.

    Shapes (..., 3, n) for one point, (..., k, 3, n) for k; exactly zero where a joint does not move the link.
    SI units, per rad or m of the joint.

    Attributes
    ----------
    dposition_dq : ndarray
        Of the position, m: the Jacobian.
    dvelocity_dq, dvelocity_dv : ndarray or None
        Of the velocity, m/s; None unless v was given.
    dacceleration_dq, dacceleration_dv, dacceleration_da : ndarray or None
        Of the acceleration, m/s²; None unless a was given.
    """

    dposition_dq: Array
    dvelocity_dq: Array | None = None
    dvelocity_dv: Array | None = None
    dacceleration_dq: Array | None = None
    dacceleration_dv: Array | None = None
    dacceleration_da: Array | None = None


@dataclass(frozen=True, eq=False)
class MomentumDerivatives(Result):
    """Derivatives of the fields of :class:`Momentum`; the last axis is the coordinate.

    Attributes
    ----------
    dlinear_dq, dlinear_dv : ndarray, shape (..., 3, n)
        Of the linear momentum, kg·m/s.
    dangular_dq, dangular_dv : ndarray, shape (..., 3, n)
        Of the angular momentum about the centre of mass, which itself moves with q, kg·m²/s.
    """

    dlinear_dq: Array
    dlinear_dv: Array
    dangular_dq: Array
    dangular_dv: Array


def forward_kinematics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    threads: int | None = None,
) -> ForwardKinematicsDerivatives:
    """Derivatives of the world transforms of all links; with v and a, of their velocities and accelerations.

    The transforms' are those of [zhakatayev2023] (10)–(12).

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.  Batch shapes broadcast.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ForwardKinematicsDerivatives
        What :func:`forward_kinematics` returns, differentiated.

    Examples
    --------
    >>> from kinegrad import samples
    >>> change = forward_kinematics_derivatives(samples.two_link(), [0, 0], [1, 0])
    >>> change.dtransform_dq[1, :2, 3]  # the forearm's tip, by both joints
    array([[0. , 0. ],
           [0.8, 0.4]])
    >>> change.dlinear_velocity_dq[1, :2]
    array([[-0.8, -0.4],
           [ 0. ,  0. ]])
    """
    if engine.mapped(model):
        at = expand_motion(model, q, v, a)
        return _contracted(at, forward_kinematics_derivatives(*in_joints(at), threads=threads), 2)
    batch, state = _state(model, q, v, a)
    n = model.n
    dtransform_dq, dT = batch.output((n, 4, 4, n), zero=True)
    given = [v is not None] * 3 + [a is not None] * 3
    fields, flat = zip(*(_wanted(batch, (n, 3, n), wanted) for wanted in given), strict=True)
    arguments = (engine.mechanism(model), *state, dT, *flat)
    engine.run(kernels.links, batch, kernels.slots(n), threads, *arguments)
    if v is None:
        return ForwardKinematicsDerivatives(dtransform_dq)
    dx_dq, dw_dq, dw_dv, ddx_dq, ddw_dq, ddw_dv = fields
    jacobian = dtransform_dq[..., :3, 3, :]
    velocity = (dx_dq, jacobian.copy(), dw_dq, dw_dv)
    if a is None:
        return ForwardKinematicsDerivatives(dtransform_dq, *velocity)
    linear, angular = (ddx_dq, _twice(batch, dx_dq), jacobian.copy()), (ddw_dq, ddw_dv, dw_dv.copy())
    return ForwardKinematicsDerivatives(dtransform_dq, *velocity, *linear, *angular)


def point_motion_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    link: str | Sequence[str],
    point: ArrayLike = (0.0, 0.0, 0.0),
    threads: int | None = None,
) -> PointMotionDerivatives:
    """Derivatives of position, velocity and acceleration of points fixed in links.

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.  Batch shapes broadcast.
    link : str, or k names
        The link of the point, or of each of k points.
    point : array_like, shape (3,), or (k, 3)
        In the link's frame, m; one for all, or one for each.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    PointMotionDerivatives
        What :func:`point_motion` returns, differentiated: arrays of shape (..., 3, n) or (..., k, 3, n).

    Examples
    --------
    >>> from kinegrad import samples
    >>> hand = point_motion_derivatives(samples.two_link(), [0, 0], [1, 0], [0, 0], link="forearm")
    >>> hand.dposition_dq[:2]
    array([[0. , 0. ],
           [0.8, 0.4]])
    >>> hand.dacceleration_dv[:2]
    array([[-1.6, -0.8],
           [ 0. ,  0. ]])
    """
    if engine.mapped(model):
        at = expand_motion(model, q, v, a)
        change = point_motion_derivatives(*in_joints(at), link=link, point=point, threads=threads)
        return _contracted(at, change, 1 if isinstance(link, str) else 2)
    batch, state = _state(model, q, v, a)
    links, local, core = _points(model, link, point)
    given = (True, v is not None, a is not None)
    fields, flat = zip(*(_wanted(batch, (*core, 3, model.n), wanted) for wanted in given), strict=True)
    arguments = (engine.mechanism(model), *state, links, local, *flat)
    engine.run(kernels.points, batch, kernels.slots(model.n), threads, *arguments)
    batch.check_results_of("point", local)
    dx_dq, ddx_dq, dddx_dq = fields
    if v is None:
        return PointMotionDerivatives(dx_dq)
    if a is None:
        return PointMotionDerivatives(dx_dq, ddx_dq, dx_dq.copy())
    return PointMotionDerivatives(dx_dq, ddx_dq, dx_dq.copy(), dddx_dq, _twice(batch, ddx_dq), dx_dq.copy())


def center_of_mass_derivatives(model: Model, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Derivative of the centre of mass of all links with respect to q: its Jacobian, world frame.

    Parameters
    ----------
    model : Model
        With mass.
    q : array_like, shape (..., n)
        Coordinates, rad or m.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., 3, n)
        m per rad or m; exactly zero where a joint moves no mass.

    Examples
    --------
    >>> from kinegrad import samples
    >>> center_of_mass_derivatives(samples.two_link(), [0, 0])[:2].round(3)
    array([[0. , 0. ],
           [0.4, 0.1]])
    """
    if engine.mapped(_with_mass(model)):
        at = engine.Expansion(model, {"q": q})
        change = center_of_mass_derivatives(at.primitive, at.q_hat, threads=threads)
        return at.deliver(at.by_configuration(change, inner=1))
    batch = engine.Batch(model, {"q": q})
    n = model.n
    result, flat = batch.output((3, n))
    none = np.empty((0, 3 * n))
    arguments = (engine.mechanism(model), batch.arguments[0], np.zeros((1, n)), flat, none, none, none, none)
    slots = (n + 1) * momentum_kernels.N
    engine.run(momentum_kernels.momentum_derivatives, batch, slots, threads, *arguments)
    return result


def momentum_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, *, threads: int | None = None
) -> MomentumDerivatives:
    """Derivatives of linear momentum, and of angular momentum about the centre of mass.

    Those with respect to v are the centroidal momentum matrix: momentum is linear in v.

    Parameters
    ----------
    model : Model
        With mass.
    q, v : array_like, shape (..., n)
        Coordinates and speeds: rad or m, and their time derivatives.  Batch shapes broadcast.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    MomentumDerivatives
        What :func:`momentum` returns, differentiated: arrays of shape (..., 3, n).

    Examples
    --------
    >>> from kinegrad import samples
    >>> change = momentum_derivatives(samples.two_link(), [0, 0], [1, 0])
    >>> change.dlinear_dv[1].round(3), change.dlinear_dq[0].round(3)
    (array([0.4, 0.1]), array([-0.4, -0.1]))
    """
    if engine.mapped(_with_mass(model)):
        at = engine.Expansion(model, {"q": q, "v": v})
        return _contracted(at, momentum_derivatives(at.primitive, at.q_hat, at.v_hat, threads=threads), 1)
    batch = engine.Batch(model, {"q": q, "v": v})
    n = model.n
    fields, flat = zip(*(batch.output((3, n)) for _ in range(4)), strict=True)
    arguments = (engine.mechanism(model), *batch.arguments, np.empty((0, 3 * n)), *flat)
    slots = (n + 1) * momentum_kernels.N
    engine.run(momentum_kernels.momentum_derivatives, batch, slots, threads, *arguments)
    return MomentumDerivatives(*fields)


def _contracted(at: engine.Expansion, change: Any, inner: int) -> Any:
    """Derivatives by coordinates and speeds, from those by joints: fields d<x>_dq, d<x>_dv, d<x>_da of a result.

    `inner` axes are between those of the batch and the last; one more of transforms.
    """
    given = {field.name: getattr(change, field.name) for field in fields(change)}
    found = dict(given)
    for what in {name[:-1] for name, x in given.items() if x is not None}:  # d<x>_d
        by = [given.get(f"{what}{x}") for x in "qva"]
        axes = inner + (what == "dtransform_d")
        found[f"{what}q"] = at.deliver(at.by_configuration(*by, inner=axes))
        if by[1] is not None:
            found[f"{what}v"] = at.deliver(at.by_speed(by[1], by[2], inner=axes))
        if by[2] is not None:
            found[f"{what}a"] = at.deliver(at.by_acceleration(by[2], inner=axes))
    return type(change)(**found)


def _twice(batch: engine.Batch, x: Array) -> Array:
    """2 x, which must be finite as any result."""
    try:
        with np.errstate(over="raise"):
            return 2.0 * x
    except FloatingPointError:
        half = np.where(np.abs(x) <= 0.5 * np.finfo(float).max, x, np.inf)
        batch.results = [half.reshape(batch.states, -1)]
        batch.check_results()
        return 2.0 * half


def _wanted(batch: engine.Batch, core: tuple[int, ...], wanted: bool) -> tuple[Array, Array]:
    """A result and its zero-filled flat array for the kernel; arrays without rows where it is not wanted."""
    none = np.empty((0, 0))
    return batch.output(core, zero=True) if wanted else (none, none)
