"""What the bridges share: importing an optional package, checking shapes before values are known, quaternions.

Other packages differentiate with respect to the numbers of q, of which a quaternion has four.  What they are given is
the derivative of τ(q / |q|): that with respect to the tangent q ⊕ δ, times δ = 2 Im(q* ⊗ dq).  Along q itself it is
zero, so that a function which normalises quaternions first, and then calls the bridge, has its exact derivative.

To second order q* ⊗ (q + dq) = 1 + s + u, with s = q·dq and the vector part u, is the rotation δ = 2u (1 − s).  So
with x the gradient with respect to the numbers of q, second derivatives with respect to the numbers of one quaternion
have −(q xᵀ + x qᵀ) besides those with respect to δ, carried back at both sides.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine import check_model, check_shapes
from kinegrad.configuration import pull_tangent
from kinegrad.errors import InputError, KinegradError
from kinegrad.loads import Loads, load_batch, named_loads
from kinegrad.model import Model

Array = NDArray[np.float64]


def package(name: str) -> Any:
    """The optional package called `name`, or an ImportError that says how to get it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # installed, but something it needs is not
            raise
        install = "pip install casadi" if name == "casadi" else f"pip install 'kinegrad[{name}]'"  # no extra: needed
        raise ImportError(
            f"kinegrad.bridges.to_{name} needs the package {name!r}, which is not installed: {install}", name=name
        ) from error


def check(model: Any, loads: Any) -> None:
    """A Model, and Loads or none; whether the loads fit is known when there are states."""
    check_model(model)
    if loads is not None and not isinstance(loads, Loads):
        raise InputError(f"`loads` is a {type(loads).__name__}; expected Loads(force=…, point=…, torque=…)")


def batch_shape(model: Model, loads: Loads | None, **shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common batch shape of arguments of these shapes and of the loads, or kinegrad's usual InputError."""
    state = {name: np.zeros(shape) for name, shape in shapes.items()}
    if model.coordinates:
        return check_shapes(model, state, named_loads(model, loads))[1]
    return load_batch(model, loads, state)[0].shape


def pull_second(model: Model, q: Array, second: Array, gradient: Array) -> Array:
    """Second derivatives with respect to the numbers of q, (..., nq, nq), from those with respect to δ, (..., nv, nv),
    and the gradient with respect to it, (..., nv)."""
    if model.nq == model.nv:
        return second
    right = pull_tangent(model, q[..., None, :], second)
    found = pull_tangent(model, q[..., None, :], right.swapaxes(-1, -2)).swapaxes(-1, -2)
    x = pull_tangent(model, q, gradient)
    for _, k, _ in model.layout.balls:
        here, slope = q[..., k : k + 4], x[..., k : k + 4]
        product = here[..., :, None] * slope[..., None, :] / (here * here).sum(axis=-1)[..., None, None]
        found[..., k : k + 4, k : k + 4] -= product + product.swapaxes(-1, -2)
    return found


def turn_product(model: Model, q: Array, gradient: Array, dq: Array) -> Array:
    """−(q xᵀ + x qᵀ) dq of all quaternions, (..., nq); zero at other coordinates."""
    x = pull_tangent(model, q, gradient)
    found = np.zeros(np.broadcast_shapes(x.shape, dq.shape))
    for _, k, _ in model.layout.balls:
        here, slope, along = (y[..., k : k + 4] for y in (q, x, dq))
        square = (here * here).sum(axis=-1, keepdims=True)
        two = here * (slope * along).sum(axis=-1, keepdims=True) + slope * (here * along).sum(axis=-1, keepdims=True)
        found[..., k : k + 4] = -two / square
    return found


def pull_left(model: Model, q: Array, D: Array) -> Array:
    """A matrix of rows of δ, (..., nv, m), with rows of the numbers of q, (..., nq, m)."""
    return pull_tangent(model, q[..., None, :], D.swapaxes(-1, -2)).swapaxes(-1, -2)


def third_order(where: str) -> KinegradError:
    return KinegradError(
        f"third derivatives of inverse dynamics are not available through {where}; expected a method that needs "
        "first and second derivatives only"
    )
