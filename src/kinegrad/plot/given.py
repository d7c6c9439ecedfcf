"""What is to be drawn, checked: real finite numbers of the right shape, at least one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.constraints import ConstraintSet
from kinegrad.errors import InputError, shown
from kinegrad.model import Model

__all__ = ["check_constraints", "finite", "instants"]

Array = NDArray[np.float64]


def finite(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Finite numbers of exactly this shape.

    >>> finite("q", [1, 2], (3,))
    Traceback (most recent call last):
    kinegrad.errors.InputError: `q` has shape (2,); expected (3,)
    """
    array = engine.real(name, values)
    if array.shape != shape:
        raise InputError(f"`{name}` has shape {array.shape}; expected {shape}")
    if not np.isfinite(array).all():
        raise engine.not_finite(name, array)
    return array


def check_constraints(model: Model, constraints: Any) -> None:
    """None, or a ConstraintSet of this model.

    >>> from kinegrad import samples
    >>> check_constraints(samples.two_link(), [])
    Traceback (most recent call last):
    kinegrad.errors.InputError: `constraints` is []; expected a ConstraintSet
    """
    if constraints is not None and not isinstance(constraints, ConstraintSet):
        raise InputError(f"`constraints` is {shown(constraints)}; expected a ConstraintSet")
    if constraints is not None and constraints.model != model:
        raise InputError("`constraints` are of another model than the one shown")


def instants(t: Any) -> Array:
    """Times, at least one.

    >>> instants([])
    Traceback (most recent call last):
    kinegrad.errors.InputError: `t` has shape (0,); expected (N,), at least one instant
    """
    times = engine.real("t", t)
    if times.ndim != 1 or not times.size:
        raise InputError(f"`t` has shape {times.shape}; expected (N,), at least one instant")
    return finite("t", times, times.shape)
