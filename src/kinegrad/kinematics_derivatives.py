"""Exact derivatives of the position, velocity and acceleration of links and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import kinematics_derivatives as kernels
from kinegrad.kinematics import _points, _state, expand_motion, in_joints
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "ForwardKinematicsDerivatives",
    "PointMotionDerivatives",
    "forward_kinematics_derivatives",
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
        return at.contracted(forward_kinematics_derivatives(*in_joints(at), threads=threads), 2)
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
        return at.contracted(change, 1 if isinstance(link, str) else 2)
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
