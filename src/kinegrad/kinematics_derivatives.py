"""Exact derivatives of the position, velocity and acceleration of links and points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import kinematics_derivatives as kernels
from kinegrad.kinematics import points, state_of
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "ForwardKinematicsDerivatives",
    "PointMotionDerivatives",
    "forward_kinematics_derivatives",
    "point_motion_derivatives",
]

Array = NDArray[np.float64]
Axis = engine.Axis


def _derivatives(axes: tuple[Axis | int, ...], per: dict[str, Axis]) -> tuple[engine.Result, ...]:
    """Results by name, each with an axis more: what it is with respect to."""
    return tuple(engine.Result(name, (*axes, axis), zero=True, optional=True) for name, axis in per.items())


def _slots(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
    return (), kernels.slots(model.n)


_BY_Q, _BY_V = Axis.PER_POSITION, Axis.PER_SPEED
_LINKS = engine.Kernel(
    kernels.links,
    engine.QVA,
    (
        *_derivatives((Axis.LINK, 4, 4), {"dtransform_dq": _BY_Q}),
        *_derivatives(
            (Axis.LINK, 3),
            {
                "dlinear_velocity_dq": _BY_Q,
                "dangular_velocity_dq": _BY_Q,
                "dangular_velocity_dv": _BY_V,
                "dlinear_acceleration_dq": _BY_Q,
                "dangular_acceleration_dq": _BY_Q,
                "dangular_acceleration_dv": _BY_V,
            },
        ),
    ),
    tables=_slots,
    with_elements=engine.indifferent,
)
_POINTS = engine.Kernel(
    kernels.points,
    engine.QVA,
    _derivatives((Axis.POINT, 3), {"dposition_dq": _BY_Q, "dvelocity_dq": _BY_Q, "dacceleration_dq": _BY_Q}),
    tables=_slots,
    with_elements=engine.indifferent,
)


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
    state, wanted = state_of(q, v, a), slice(1 + 3 * (v is not None) + 3 * (a is not None))
    if engine.mapped(model):
        at = engine.Expansion(model, dict(zip("qva", state, strict=False)))
        motion = at.arguments(engine.QVA)
        return engine.contract_fields(at, forward_kinematics_derivatives(at.primitive, *motion, threads=threads))
    dtransform_dq, *fields = engine.evaluate_with(_LINKS, model, state, threads=threads, wanted=wanted)
    if v is None:
        return ForwardKinematicsDerivatives(dtransform_dq)
    dx_dq, dw_dq, dw_dv = fields[:3]
    jacobian = dtransform_dq[..., :3, 3, :]
    velocity = (dx_dq, jacobian.copy(), dw_dq, dw_dv)
    if a is None:
        return ForwardKinematicsDerivatives(dtransform_dq, *velocity)
    ddx_dq, ddw_dq, ddw_dv = fields[3:]
    linear, angular = (ddx_dq, _twice(model, state, dx_dq), jacobian.copy()), (ddw_dq, ddw_dv, dw_dv.copy())
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
        The link or frame of the point, or of each of k points.
    point : array_like, shape (3,), or (k, 3)
        In the link's frame, or in the frame, m; one for all, or one for each.
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
    state, wanted = state_of(q, v, a), slice(1 + (v is not None) + (a is not None))
    if engine.mapped(model):
        at = engine.Expansion(model, dict(zip("qva", state, strict=False)))
        motion = at.arguments(engine.QVA)
        change = point_motion_derivatives(at.primitive, *motion, link=link, point=point, threads=threads)
        return engine.contract_fields(at, change)
    named = points(model, link, point)
    dx_dq, *fields = engine.evaluate_with(_POINTS, model, state, threads=threads, wanted=wanted, **named)
    if v is None:
        return PointMotionDerivatives(dx_dq)
    ddx_dq = fields[0]
    if a is None:
        return PointMotionDerivatives(dx_dq, ddx_dq, dx_dq.copy())
    dddx_dq = fields[1]
    return PointMotionDerivatives(dx_dq, ddx_dq, dx_dq.copy(), dddx_dq, _twice(model, state, ddx_dq), dx_dq.copy())


def _twice(model: Model, state: tuple[Any, ...], x: Array) -> Array:
    """2 x, which must be finite as any result."""
    try:
        with np.errstate(over="raise"):
            return 2.0 * x
    except FloatingPointError:
        half = np.where(np.abs(x) <= 0.5 * np.finfo(float).max, x, np.inf)
        batch, _, _ = engine.checked(_LINKS, model, state)
        batch.results = [half.reshape(batch.states, -1)]
        batch.check_results()
        return 2.0 * half
