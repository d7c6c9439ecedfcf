"""What a file says about its arrays, checked before they are read: no small file makes a large array by mistake."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from kinegrad.errors import InputError
from kinegrad.model import Model

__all__ = ["check_declared", "check_kind", "check_shape", "check_size"]

RATIO = 2000  # bytes of numbers to a byte of file: deflate, which both NPZ and NetCDF use, gives at most 1032


def check_declared(path: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], model: Model, size: int) -> None:
    """An InputError unless `q`, `v`, `a` or `t` is declared as real numbers of its shape that fit in `size` bytes."""
    check_kind(path, name, dtype)
    check_shape(f"{path}: ", name, shape, model)
    check_size(path, name, shape, dtype, size)


def check_kind(path: Any, name: str, dtype: np.dtype[Any]) -> None:
    """Real numbers."""
    if dtype.kind not in "iuf":
        what = "complex numbers" if dtype.kind == "c" else f"dtype {dtype}"
        raise InputError(f"{path}: `{name}` holds {what}; expected real numbers (float64)")


def check_shape(where: str, name: str, shape: tuple[int, ...], model: Model) -> None:
    """(N, n), or (N,) for times."""
    if name == "t" and len(shape) != 1:
        raise InputError(f"{where}`t` has shape {shape}; expected (N,), one per instant")
    what, names, _ = model.layout.columns(name)
    width = len(names)
    if name != "t" and (len(shape) != 2 or shape[1] != width):
        expected = f"(N, {width}): N instants of the {width} {what}s of model {model.name!r}"
        raise InputError(f"{where}`{name}` has shape {shape}; expected {expected}")


def check_size(path: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> None:
    """No more numbers than so many packed bytes can hold."""
    declared = prod(shape) * dtype.itemsize
    if declared > RATIO * max(size, 1):
        found = f"`{name}` of shape {shape} takes {declared} bytes, and {size} in the file"
        raise InputError(f"{path}: {found}, more than any packing achieves; expected all numbers to be there")
