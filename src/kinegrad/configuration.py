"""Configurations: the sum of one and a small change, the difference of two, and some to start from.

Coordinates of one number are added and subtracted.  A quaternion is turned by a vector δ in the child's frame,
q ⊕ δ = q ⊗ exp(δ/2), where δ is the angle times the axis: what an angular velocity of δ, in the child's frame, makes of
it in one second.  Derivatives "with respect to q" are those with respect to δ at zero, for every coordinate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.model import Model, SplineFunction
from kinegrad.model.coordinates import CoupledCoordinate

__all__ = ["difference", "integrate", "neutral", "random_configuration"]

Array = NDArray[np.float64]
CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])


def integrate(model: Model, q: ArrayLike, dv: ArrayLike) -> Array:
    """q ⊕ dv: where speeds dv, held for one second, lead from q.

    Parameters
    ----------
    model : Model
    q : array_like, shape (..., nq)
        Coordinates; quaternions of unit length.
    dv : array_like, shape (..., nv)
        The change: rad or m, for a quaternion a turn about axes of the child, rad.  Batch shapes broadcast.

    Returns
    -------
    ndarray, shape (..., nq)
        Its quaternions are of unit length.

    Examples
    --------
    >>> from kinegrad import Inertia, ModelBuilder, spherical
    >>> builder = ModelBuilder("top")
    >>> _ = builder.add("tip", None, spherical(quaternion=True), inertia=Inertia.sphere(1.0, 0.1))
    >>> top = builder.build()
    >>> integrate(top, [1, 0, 0, 0], [np.pi / 2, 0, 0]).round(6)
    array([0.707107, 0.707107, 0.      , 0.      ])
    """
    given = _check(model, {"q": q, "dv": dv})
    layout = model.layout
    shape = np.broadcast_shapes(given["q"].shape[:-1], given["dv"].shape[:-1])
    x, d = (np.broadcast_to(y, (*shape, y.shape[-1])) for y in given.values())
    moved = np.array(x)
    with np.errstate(all="ignore"):  # what overflows is found below
        for places, speeds in ((layout.plain_q, layout.plain_v), _coupled(model)):
            moved[..., places] += d[..., speeds]
        for _, k, v in layout.balls:
            moved[..., k : k + 4] = engine.unit(times(x[..., k : k + 4], exponential(d[..., v : v + 3])))
    _check_result(moved)
    return moved


def difference(model: Model, q0: ArrayLike, q1: ArrayLike) -> Array:
    """q1 ⊖ q0: the change that takes q0 to q1, so that ``integrate(model, q0, difference(model, q0, q1))`` is q1.

    Parameters
    ----------
    model : Model
    q0, q1 : array_like, shape (..., nq)
        Coordinates; quaternions of unit length.  Batch shapes broadcast.

    Returns
    -------
    ndarray, shape (..., nv)
        rad or m; of a quaternion the shorter turn, of at most π rad.

    Examples
    --------
    >>> from kinegrad import samples
    >>> difference(samples.two_link(), [0.1, 0.2], [0.3, 0.2]).round(12)
    array([0.2, 0. ])
    """
    given = _check(model, {"q0": q0, "q1": q1})
    layout = model.layout
    x, y = np.broadcast_arrays(*given.values())
    change = np.zeros((*x.shape[:-1], layout.nv))
    with np.errstate(all="ignore"):  # what overflows is found below
        for places, speeds in ((layout.plain_q, layout.plain_v), _coupled(model)):
            change[..., speeds] = y[..., places] - x[..., places]
        for _, k, v in layout.balls:
            turn = times(x[..., k : k + 4] * CONJUGATE, y[..., k : k + 4])
            change[..., v : v + 3] = logarithm(turn)
    _check_result(change)
    return change


def difference_vjp(model: Model, change: Array, w: Array) -> Array:
    """The gradient of wᵀ (q1 ⊖ q0) with respect to q1 ⊕ δ, (..., nv), where `change` is that difference.

    log(exp(u) exp(δ)) = u + (1 + ½ [u]× + c [u]×²) δ + …  with c = 1/θ² − cot(θ/2)/(2θ), θ = |u|.
    """
    found = np.array(w)
    for _, _, v in model.layout.balls:
        u, x = change[..., v : v + 3], w[..., v : v + 3]
        angle = np.sqrt((u * u).sum(axis=-1, keepdims=True))
        safe = np.where(angle > 1e-2, angle, 1.0)
        exact = 1 / safe**2 - np.cos(safe / 2) / np.sin(safe / 2) / (2 * safe)
        c = np.where(angle > 1e-2, exact, 1 / 12 + angle**2 / 720 + angle**4 / 30240)
        turned = np.cross(u, x)
        found[..., v : v + 3] = x - turned / 2 + c * np.cross(u, turned)
    return found


def tangent(model: Model, r: Array, dr: Array) -> Array:
    """δ, (..., nv), along dr, (..., nq), of r with its quaternions divided by their lengths: 2 Im(r* ⊗ dr) / |r|²."""
    if model.nq == model.nv:
        return dr
    layout = model.layout
    found = np.empty((*dr.shape[:-1], layout.nv))
    found[..., layout.plain_v], found[..., layout.coupled_v] = dr[..., layout.plain_q], dr[..., layout.coupled_q]
    for _, k, j in layout.balls:
        here = r[..., k : k + 4]
        square = (here * here).sum(axis=-1, keepdims=True)
        whole = times(np.broadcast_to(here * CONJUGATE, dr[..., k : k + 4].shape), dr[..., k : k + 4])
        found[..., j : j + 3] = 2 * whole[..., 1:] / square
    return found


def pull_tangent(model: Model, r: Array, turn: Array) -> Array:
    """The gradient with respect to r, (..., nq), of what has the gradient `turn`, (..., nv), with respect to that δ."""
    if model.nq == model.nv:
        return turn
    layout = model.layout
    found = np.empty((*turn.shape[:-1], layout.nq))
    found[..., layout.plain_q], found[..., layout.coupled_q] = turn[..., layout.plain_v], turn[..., layout.coupled_v]
    for _, k, j in layout.balls:
        here = r[..., k : k + 4]
        square = (here * here).sum(axis=-1, keepdims=True)
        found[..., k : k + 4] = 2 * times(here, pure(turn[..., j : j + 3])) / square
    return found


def neutral(model: Model) -> Array:
    """The configuration of zeros, with quaternions that do not turn, shape (nq,).

    Examples
    --------
    >>> from kinegrad import Inertia, ModelBuilder, spherical
    >>> builder = ModelBuilder("top")
    >>> _ = builder.add("tip", None, spherical(quaternion=True), inertia=Inertia.sphere(1.0, 0.1))
    >>> neutral(builder.build())
    array([1., 0., 0., 0.])
    """
    engine.check_model(model)
    q = np.zeros(model.nq)
    for _, k, _ in model.layout.balls:
        q[k] = 1.0
    return q


def random_configuration(
    model: Model, seed: int | np.random.Generator | None = None, *, shape: int | tuple[int, ...] = ()
) -> Array:
    """Random configurations: uniform within the joints' limits, orientations uniform over all.

    Joints without limits turn within ±π rad and slide within ±1 m.  A coupled coordinate has the limits of the joint of
    its name, else those of the splines that it enters.

    Parameters
    ----------
    model : Model
    seed : int or numpy.random.Generator, optional
        The same whole number gives the same configurations; a generator goes on from where it is.
    shape : int or tuple of int
        Batch shape.

    Returns
    -------
    ndarray, shape (..., nq)

    Examples
    --------
    >>> from kinegrad import samples
    >>> random_configuration(samples.two_link(), 1, shape=5).shape
    (5, 2)
    """
    engine.check_model(model)
    generator = isinstance(seed, np.random.Generator)
    if not (seed is None or generator):
        seed = engine.whole("seed", seed, 0)
    sizes = (shape,) if isinstance(shape, int | np.integer) else shape
    if not isinstance(sizes, tuple | list):
        raise InputError(f"`shape` is {shown(shape)}; expected a whole number, or several")
    batch = tuple(engine.whole("shape", size, 0) for size in sizes)
    rng = np.random.default_rng(seed)
    lower, upper = coordinate_ranges(model)
    q = lower + (upper - lower) * rng.random((*batch, model.nq))
    for _, k, _ in model.layout.balls:
        q[..., k : k + 4] = engine.unit(rng.normal(size=(*batch, 4)))
    return q


# --- quaternions (w, x, y, z) -----------------------------------------------------------------------------------------


def times(p: Array, q: Array) -> Array:
    """p ⊗ q, (..., 4)."""
    a, b, c, d = np.moveaxis(p, -1, 0)
    w, x, y, z = np.moveaxis(q, -1, 0)
    return np.stack(
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ],
        axis=-1,
    )


def pure(x: Array) -> Array:
    """The quaternion (0, x)."""
    return np.concatenate([np.zeros((*x.shape[:-1], 1)), x], axis=-1)


def exponential(turn: Array) -> Array:
    """exp(δ/2), (..., 4): the quaternion of a turn by |δ| about δ."""
    x, y, z = np.moveaxis(turn, -1, 0)
    angle = np.sqrt(x * x + y * y + z * z)
    half = np.sinc(angle / (2 * np.pi)) / 2
    return np.stack([np.cos(angle / 2), half * x, half * y, half * z], axis=-1)


def logarithm(quaternion: Array) -> Array:
    """The turn δ, of at most π, with exp(δ/2) = ± the quaternion, (..., 3)."""
    w, x, y, z = np.moveaxis(np.where(quaternion[..., :1] < 0, -quaternion, quaternion), -1, 0)
    sine = np.sqrt(x * x + y * y + z * z)
    factor = np.where(sine > 0, 2 * np.arctan2(sine, w) / np.where(sine > 0, sine, 1.0), 2.0)
    return np.stack([factor * x, factor * y, factor * z], axis=-1)


def _coupled(model: Model) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where coupled coordinates and their speeds are, once each."""
    layout = model.layout
    speeds, first = np.unique(layout.coupled_v, return_index=True)
    return layout.coupled_q[first], speeds


def _check(model: Model, state: dict[str, ArrayLike]) -> dict[str, Array]:
    """Arguments of the right shape, finite, quaternions of unit length."""
    engine.check_model(model)
    return engine.check_arguments(model, state)[0]


def _check_result(x: Array) -> None:
    if not np.isfinite(x).all():
        raise InputError("the results are not finite: they overflow float64; expected smaller numbers")


def coordinate_ranges(model: Model) -> tuple[Array, Array]:
    """Lower and upper ends of what random coordinates are within, (nq,) each; quaternions are made otherwise."""
    layout = model.layout
    usual = np.array([1.0 if kind == "prismatic" else np.pi for kind in layout.coordinate_kinds])
    lower, upper = -usual, usual.copy()
    owners = dict(zip(layout.plain_q.tolist(), layout.plain.tolist(), strict=True))
    for entry in model.coordinates:
        if not isinstance(entry, CoupledCoordinate):
            continue
        k = model.coordinate_index(entry.name)
        for joint, function in zip(entry.joints, entry.functions, strict=True):
            if model.joint_names[joint] == entry.name:
                owners[k] = joint
            elif isinstance(function, SplineFunction):
                lower[k], upper[k] = max(lower[k], function.knots[0]), min(upper[k], function.knots[-1])
    for k, joint in owners.items():
        least, most = model.position_limits[joint]
        if np.isfinite(least) or np.isfinite(most):
            width = 2 * usual[k]
            lower[k] = least if np.isfinite(least) else most - width
            upper[k] = most if np.isfinite(most) else least + width
    return np.minimum(lower, upper), upper
