"""What the bridges share: importing an optional package, checking shapes before values are known, quaternions.

Other packages differentiate with respect to the numbers of q, of which a quaternion has four.  What they are given is
the derivative of τ(q / |q|): that with respect to the tangent q ⊕ δ, times δ = 2 Im(q* ⊗ dq).  Along q itself it is
zero, so that a function which normalises quaternions first, and then calls the bridge, has its exact derivative.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from kinegrad._engine import check_model, check_shapes
from kinegrad.errors import InputError, KinegradError
from kinegrad.loads import Loads, load_batch, named_loads
from kinegrad.model import Model


def package(name: str) -> Any:
    """The optional package called `name`, or an ImportError that says how to get it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # installed, but something it needs is not
            raise
        raise ImportError(
            f"kinegrad.bridges.to_{name} needs the package {name!r}, which is not installed: "
            f"pip install 'kinegrad[{name}]'",
            name=name,
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


def second_order(where: str) -> KinegradError:
    return KinegradError(
        f"second derivatives of inverse dynamics are not available through {where}; expected a method that needs "
        "first derivatives only (gradients, Jacobians, quasi-Newton or Gauss–Newton Hessians)"
    )
