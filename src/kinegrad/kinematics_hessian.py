"""Exact second derivatives of points, of the centre of mass and of momentum, contracted with weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import energy_hessian, kinematics_hessian
from kinegrad.energy import check_mass
from kinegrad.energy_derivatives import center_of_mass_derivatives, momentum_derivatives
from kinegrad.errors import InputError
from kinegrad.kinematics import points, state_of
from kinegrad.kinematics_derivatives import point_motion_derivatives
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "MomentumHessian",
    "PointMotionHessian",
    "center_of_mass_hessian",
    "momentum_hessian",
    "point_motion_hessian",
]

Array = NDArray[np.float64]
Tables = tuple[tuple[Any, ...], int]
_BY_Q, _BY_V, _BY_A = engine.Axis.PER_POSITION, engine.Axis.PER_SPEED, engine.Axis.PER_ACCELERATION
_BLOCKS = {"d2_dqdq": (_BY_Q, _BY_Q), "d2_dqdv": (_BY_Q, _BY_V), "d2_dqda": (_BY_Q, _BY_A), "d2_dvdv": (_BY_V, _BY_V)}
_RESULTS = tuple(engine.Result(name, axes, zero=True, optional=True) for name, axes in _BLOCKS.items())


def _kernel(function: Any, state: Mapping[str, Any], results: int, slots: Any) -> engine.Kernel:
    def tables(model: Model, loaded: bool, stream: bool) -> Tables:
        return (), slots(model.n)

    return engine.Kernel(function, state, _RESULTS[:results], tables=tables, with_elements=engine.indifferent)


_POINTS = _kernel(kinematics_hessian.points, engine.QVA, 4, kinematics_hessian.slots)
_MOMENTUM = _kernel(energy_hessian.momentum_hessian, engine.QV, 2, energy_hessian.slots)
_CENTER = _kernel(energy_hessian.center_hessian, engine.QV, 1, energy_hessian.slots)


@dataclass(frozen=True, eq=False)
class PointMotionHessian(Result):
    """Second derivatives of a weighted sum of positions, velocities and accelerations, (..., n, n) each.

    ``d2_dqdv[..., i, j]`` is by q_i and v_j.  Those by v and a, and by a twice, are zero.

    Attributes
    ----------
    d2_dqdq : ndarray
        Symmetric, as the others are where coordinates are joints.
    d2_dqdv : ndarray or None
        None unless v was given.
    d2_dqda, d2_dvdv : ndarray or None
        None unless a was given.
    """

    d2_dqdq: Array
    d2_dqdv: Array | None = None
    d2_dqda: Array | None = None
    d2_dvdv: Array | None = None


@dataclass(frozen=True, eq=False)
class MomentumHessian(Result):
    """Second derivatives of weighted momentum, (..., n, n) each; those by v twice are zero.

    Attributes
    ----------
    d2_dqdq : ndarray
        Symmetric.
    d2_dqdv : ndarray
        The row is that of q.
    """

    d2_dqdq: Array
    d2_dqdv: Array


def point_motion_hessian(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    link: str | Sequence[str],
    point: ArrayLike = (0.0, 0.0, 0.0),
    w_position: ArrayLike | None = None,
    w_velocity: ArrayLike | None = None,
    w_acceleration: ArrayLike | None = None,
    threads: int | None = None,
) -> PointMotionHessian:
    """The exact second derivatives of a weighted sum of what points fixed in links are and do, with respect to q, v, a.

    The sum is over the three components of positions, velocities and accelerations, each with its weight, and over all
    points: what the Hessian of a Lagrangian needs of them.  With respect to quaternions, derivatives are those by the
    rotation vector δ of q ⊕ δ, as of :func:`inverse_dynamics_hessian`.

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.  Batch shapes broadcast.
    link : str, or k names
        The link or frame of the point, or of each of k points.
    point : array_like, shape (3,), or (k, 3)
        In the link's frame, or in the frame, m; one for all, or one for each.
    w_position, w_velocity, w_acceleration : array_like, shape (..., 3), or (..., k, 3) for k points
        Weights in the world frame; zero where they are not given.  Those of velocities need `v`, of accelerations `a`.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    PointMotionHessian
        ``d2_dqdq`` and, if v and a were given, ``d2_dqdv``, ``d2_dqda`` and ``d2_dvdv``, shape (..., n, n) each.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link()
    >>> point_motion_hessian(arm, [0, 0], link="forearm", w_position=[1, 0, 0]).d2_dqdq
    array([[-0.8, -0.4],
           [-0.4, -0.4]])
    """
    weights = {"w_position": w_position, "w_velocity": w_velocity, "w_acceleration": w_acceleration}
    for name, needed, what in (("w_velocity", "v", v), ("w_acceleration", "a", a)):
        if weights[name] is not None and what is None:
            raise InputError(f"`{name}` is given without `{needed}`; expected both, or neither")
    given, wanted = state_of(q, v, a), 1 + (v is not None) + 2 * (a is not None)
    named = points(model, link, point)
    core = (*named["points"], 3)
    zero = np.zeros(core)
    state, rows = _weighted(model, given, {x: (zero if w is None else w, core) for x, w in weights.items()})
    if engine.mapped(model):
        at = engine.Expansion(model, dict(zip("qva", state, strict=False)))
        motion = at.arguments(engine.QVA)[: len(state)]
        return PointMotionHessian(*_points_in_coordinates(at, motion, link, point, rows, core, wanted, threads))
    named["options"] += [x.reshape(len(x), math.prod(core)) for x in rows.values()]
    named["unseen"] |= rows
    del named["points"]
    found = engine.evaluate_with(_POINTS, model, state, threads=threads, wanted=slice(wanted), **named)
    return PointMotionHessian(*found)


def center_of_mass_hessian(model: Model, q: ArrayLike, w: ArrayLike, *, threads: int | None = None) -> Array:
    """The exact second derivatives of w·c with respect to q, c being the centre of mass of all links.

    Parameters
    ----------
    model : Model
        With mass.
    q : array_like, shape (..., n)
        Coordinates, rad or m.
    w : array_like, shape (..., 3)
        Weights in the world frame.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n, n)
        Symmetric; exactly zero for joints that are not on one path from a root.

    Examples
    --------
    >>> from kinegrad import samples
    >>> center_of_mass_hessian(samples.two_link(), [0, 0], [1, 0, 0]).round(3)
    array([[-0.4, -0.1],
           [-0.1, -0.1]])
    """
    state, rows = _weighted(check_mass(model), (q,), {"w": (w, (3,))})
    if not engine.mapped(model):
        (found,) = engine.evaluate_with(_CENTER, model, state, threads=threads, options=[*rows.values()], unseen=rows)
        return found
    at = engine.Expansion(model, {"q": state[0]})
    weights = _batched(at, rows["w"])
    second = center_of_mass_hessian(at.primitive, at.q, weights, threads=threads)
    first = center_of_mass_derivatives(at.primitive, at.q, threads=threads)
    return _in_coordinates(at, [_times(weights, first)], [second])[0]


def momentum_hessian(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    w_linear: ArrayLike | None = None,
    w_angular: ArrayLike | None = None,
    threads: int | None = None,
) -> MomentumHessian:
    """The exact second derivatives of weighted momentum with respect to q and v.

    The sum is over the components of linear momentum, and of angular momentum about the centre of mass, which itself
    moves with q.

    Parameters
    ----------
    model : Model
        With mass.
    q, v : array_like, shape (..., n)
        Coordinates and speeds: rad or m, and their time derivatives.  Batch shapes broadcast.
    w_linear, w_angular : array_like, shape (..., 3)
        Weights in the world frame; zero where they are not given.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    MomentumHessian
        ``d2_dqdq`` and ``d2_dqdv``, shape (..., n, n) each; the derivatives with respect to (v, v) are zero.

    Examples
    --------
    >>> from kinegrad import samples
    >>> momentum_hessian(samples.two_link(), [0, 0], [1, 0], w_linear=[1, 0, 0]).d2_dqdv.round(3)
    array([[-0.4, -0.1],
           [-0.1, -0.1]])
    """
    weights = {x: (np.zeros(3) if w is None else w, (3,)) for x, w in
               (("w_linear", w_linear), ("w_angular", w_angular))}  # fmt: skip
    state, rows = _weighted(check_mass(model), (q, v), weights)
    if not engine.mapped(model):
        options = [*rows.values()]
        found = engine.evaluate_with(_MOMENTUM, model, state, threads=threads, options=options, unseen=rows)
        return MomentumHessian(*found)
    at = engine.Expansion(model, dict(zip("qv", state, strict=True)))
    linear, angular = (_batched(at, x) for x in rows.values())
    second = momentum_hessian(at.primitive, at.q, at.v, w_linear=linear, w_angular=angular, threads=threads)
    d = momentum_derivatives(at.primitive, at.q, at.v, threads=threads)
    by_q = _times(linear, d.dlinear_dq) + _times(angular, d.dangular_dq)
    by_v = _times(linear, d.dlinear_dv) + _times(angular, d.dangular_dv)
    return MomentumHessian(*_in_coordinates(at, [by_q, by_v], [second.d2_dqdq, second.d2_dqdv]))


# --- weights, and coordinates that are not joints -----------------------------------------------------------------


def _weighted(
    model: Model, state: Sequence[Any], weights: Mapping[str, tuple[Any, tuple[int, ...]]]
) -> tuple[list[Array], dict[str, Array]]:
    """The state, of the common batch shape of state and weights; and weights, (states or 1, *core), by name."""
    engine.check_model(model)
    given, _ = engine.check_shapes(model, dict(zip("qva", state, strict=False)))
    shapes, values = {name: x.shape[:-1] for name, x in given.items()}, {}
    for name, (value, core) in weights.items():
        x = values[name] = engine.real(name, value)
        if x.shape[max(x.ndim - len(core), 0) :] != core:
            raise InputError(f"`{name}` has shape {x.shape}; its last axes must be {core}: points and components")
        if not np.isfinite(x).all():
            raise engine.not_finite(name, x)
        shapes[name] = x.shape[: x.ndim - len(core)]
    shape = engine.broadcast(shapes, list(shapes.values()))
    rows = {}
    for name, (_, core) in weights.items():
        one = math.prod(shapes[name]) == 1
        x = values[name] if one else np.broadcast_to(values[name], (*shape, *core))
        rows[name] = engine.kernel_array(x.reshape(1 if one else math.prod(shape), *core))
    motion = [*given.values()]
    motion[0] = np.broadcast_to(motion[0], (*shape, motion[0].shape[-1]))
    return motion, rows


def _batched(at: engine.Expansion, w: Array) -> Array:
    """Weights, (states or 1, *core), by the axes of the batch."""
    return w.reshape(*(at.shape if len(w) != 1 else ()), *w.shape[1:])


def _times(w: Array, slopes: Array) -> Array:
    """w·∂x/∂q, (..., n), of weights (..., 3) and derivatives (..., 3, n); summed one by one."""
    with np.errstate(all="ignore"):  # what overflows is found in the end
        return np.asarray(sum(w[..., k, None] * slopes[..., k, :] for k in range(3)))


def _points_in_coordinates(
    at: engine.Expansion, motion: Sequence[Array], link: Any, point: Any, rows: dict[str, Array],
    core: tuple[int, ...], wanted: int, threads: int | None,
) -> list[Array]:  # fmt: skip
    """As of points, from those of the joints."""
    names = ("w_position", "w_velocity", "w_acceleration")[: len(motion)]
    weights = {name: _batched(at, rows[name]) for name in names}
    H = point_motion_hessian(at.primitive, *motion, link=link, point=point, threads=threads, **weights)
    d = point_motion_derivatives(at.primitive, *motion, link=link, point=point, threads=threads)
    gradient = []
    for by in "qva"[: len(motion)]:
        total = np.zeros((*at.shape, at.layout.n))
        for name in names:
            slope = getattr(d, f"d{name.removeprefix('w_')}_d{by}", None)
            if slope is not None:
                shares = _times(weights[name], slope)
                with np.errstate(all="ignore"):
                    total += shares if len(core) == 1 else shares.sum(axis=-2)
        gradient.append(total)
    second = [x for x in (H.d2_dqdq, H.d2_dqdv, H.d2_dqda, H.d2_dvdv) if x is not None]
    return _in_coordinates(at, gradient, second)[:wanted]


def _in_coordinates(at: engine.Expansion, gradient: Sequence[Array], second: Sequence[Array]) -> list[Array]:
    """As many blocks in coordinates as are given of joints, of what has no weights that depend on q."""
    n, still = at.layout.n, np.zeros((*at.shape, at.layout.nv))
    none, nothing = np.zeros((*at.shape, n)), np.zeros((*at.shape, n, n))
    slopes = [*gradient, *[none] * (3 - len(gradient)), none]
    blocks = [*second, *[nothing] * (4 - len(second))]
    found = engine.hessian_in_coordinates(at, still, slopes, (nothing, nothing, nothing), tuple(blocks))  # type: ignore[arg-type]
    names = [*_BLOCKS][: len(second)]
    return list(at.deliver(names, [np.ascontiguousarray(x) for x in found[: len(second)]]))
