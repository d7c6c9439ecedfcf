"""Numbers of links and joints among the fields of a model: their shapes, checks, and changes by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, ModelError, shown
from kinegrad.model.by_name import named_places
from kinegrad.model.numbers import LARGEST, far_from_real, real_array
from kinegrad.model.placement import check_transform

if TYPE_CHECKING:
    from kinegrad.model.model import Model

__all__ = ["PER_JOINT", "PER_LINK", "check_joint_numbers", "numbers", "updated"]

Array = NDArray[np.float64]
PER_LINK = {"mass": (), "com": (3,), "inertia": (3, 3)}
PER_JOINT = {
    "position_limits": (2,), "velocity_limits": (), "effort_limits": (),
    "stiffness": (), "rest": (), "damping": (), "armature": (),
}  # fmt: skip


def numbers(what: str, value: Any, shape: tuple[int, ...], *, finite: bool = True) -> Array:
    """A fresh float64 array of the given shape, or a ModelError that names `what`."""
    array = real_array(f"`{what}`", value, "real numbers")
    if array.shape != shape:
        raise ModelError(f"`{what}` has shape {array.shape}; expected {shape}")
    bad = ~(np.abs(array) <= LARGEST) if finite else np.isnan(array)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        expected = f"finite number, below {LARGEST:g}" if finite else "number"
        raise ModelError(f"`{what}` at {where} is {array[where]}; expected a {expected}")
    return array


def check_joint_numbers(model: Model) -> None:
    """Refuse negative dampers and the like, and limits of which the lower is above the upper."""
    for what in ("damping", "armature", "velocity_limits", "effort_limits"):
        for joint, value in zip(model.joint_names, getattr(model, what), strict=True):
            if not (value >= 0 or far_from_real()):
                raise ModelError(f"`{what}` of joint {shown(joint)} is {value}; expected zero or more")
    for joint, (lower, upper) in zip(model.joint_names, model.position_limits, strict=True):
        if not lower <= upper:
            found = f"`position_limits` of joint {shown(joint)} are ({lower}, {upper})"
            raise ModelError(f"{found}; expected lower ≤ upper")


def updated(model: Model, what: str, changes: Mapping[str, Any]) -> Array:
    """A field of numbers with those of some links or joints, by name, changed."""
    if what not in PER_LINK | PER_JOINT and what not in ("placement", "tip"):
        raise InputError(f"`{what}` is given by name; expected a plain value")
    kind, names = ("link", model.link_names) if what in PER_LINK else ("joint", model.joint_names)

    def index(name: Any) -> list[int]:
        return [model.link_index(name)] if kind == "link" else named_places(kind, name, names, model.name)

    values = getattr(model, what).copy()
    for name, value in changes.items():
        if what in ("placement", "tip"):
            new = check_transform(f"`{what}` of joint {shown(name)}", value)
            values = values.astype(np.result_type(values, new), copy=False)
            values[index(name)] = new
            continue
        new = real_array(f"`{what}` of {shown(name)}", value, "real numbers")
        if new.shape not in (values.shape[1:], (len(index(name)), *values.shape[1:])):
            found = f"`{what}` of {shown(name)} is {shown(value)}"
            raise ModelError(f"{found}; expected numbers of shape {values.shape[1:]}")
        values = values.astype(np.result_type(values, new), copy=False)
        values[index(name)] = new
    return np.asarray(values)
