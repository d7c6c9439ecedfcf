"""The one validation gate: whatever a caller gives becomes what kernels read, or an error that names it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError
from kinegrad.model import Model
from kinegrad.model.names import shown

Array = NDArray[np.float64]
Shape = tuple[int, ...]
_FLOAT64 = np.dtype(np.float64)  # NumPy keeps one object of it, so `is` finds it fast; a miss only costs a copy


class Batch:
    """Checked arguments of one call, flattened to a common number of states.

    ``shape`` is the common batch shape, ``states`` its size.  Each argument becomes ``(states, columns)``, or
    ``(1, columns)`` if it is the same for all states; C-contiguous float64, never written to.

    Parameters
    ----------
    model : Model
    state : dict
        Arguments of shape (..., n) by name.
    loads : dict
        Arguments of shape (..., n, 3) by name.
    """

    __slots__ = ("_given", "arguments", "n", "shape", "states")
    _given: dict[str, Array]
    arguments: list[Array]
    n: int
    shape: Shape
    states: int

    def __init__(self, model: Model, state: dict[str, Any], loads: dict[str, Any] | None = None) -> None:
        check_model(model)
        self.n = len(model.joints)
        if loads is not None or not self._take_plain(state):
            self._take_any(model, state, loads or {})

    def _take_plain(self, state: dict[str, Any]) -> bool:
        """The common case, fast: arrays of one shape that kernels can read as they are."""
        shape = None
        for x in state.values():
            if type(x) is not np.ndarray or x.dtype is not _FLOAT64 or not x.flags.carray:
                return False
            if x.shape != shape:
                if shape is not None or x.shape[-1:] != (self.n,):
                    return False
                shape = x.shape
        assert shape is not None
        self._given = state
        self.shape = shape[:-1]
        self.states = count = math.prod(self.shape)
        flat = (count, self.n)
        self.arguments = [x.reshape(flat) for x in state.values()]
        return True

    def _take_any(self, model: Model, state: dict[str, Any], loads: dict[str, Any]) -> None:
        """Anything that is, or becomes, real numbers of shapes that broadcast."""
        n = self.n
        arguments = self._given = {name: real(name, value) for name, value in (state | loads).items()}
        given = arguments.values()
        cores = [1] * len(state) + [2] * len(loads)
        for (name, x), core in zip(arguments.items(), cores, strict=True):
            if x.shape[max(x.ndim - core, 0) :] != ((n,) if core == 1 else (n, 3)):
                raise _wrong_shape(model, name, x, core)
        shapes = [x.shape[:-core] for x, core in zip(given, cores, strict=True)]
        self.shape = shape = _broadcast(arguments, shapes)
        self.states = count = math.prod(shape)
        self.arguments = []
        for x, own, core in zip(given, shapes, cores, strict=True):
            rows = 1 if own != shape and math.prod(own) == 1 else count
            if rows == count and own != shape:
                x = np.broadcast_to(x, shape + x.shape[-core:])
            self.arguments.append(kernel_array(x.reshape(rows, n if core == 1 else 3 * n)))

    def output(self, core: Shape, out: Any = None, name: str = "out", *, zero: bool = False) -> tuple[Array, Array]:
        """A result array of shape ``shape + core`` and the ``(states, columns)`` array for the kernel to fill.

        They share memory unless `out` is not fit to be filled in place, in which case :func:`finish` copies.
        """
        full = self.shape + core
        flat = (self.states, math.prod(core))
        if out is None:
            filled = np.zeros(flat) if zero else np.empty(flat)
            return filled.reshape(full), filled
        if not isinstance(out, np.ndarray) or out.dtype != np.float64 or out.shape != full:
            found = f"{out.dtype} array of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
            raise InputError(f"`{name}` is a {found}; expected a float64 array of shape {full}")
        if not out.flags.writeable:
            raise InputError(f"`{name}` is read-only; expected a writable array of shape {full}")
        if out.size and any(stride == 0 and size > 1 for stride, size in zip(out.strides, full, strict=True)):
            raise InputError(f"`{name}` repeats its memory (strides {out.strides}); expected room for every number")
        if not out.flags.carray or any(np.may_share_memory(out, x) for x in self._given.values()):
            return out, np.zeros(flat) if zero else np.empty(flat)
        if zero:
            out.fill(0.0)
        return out, np.asarray(out).reshape(flat)

    def outputs(self, core: Shape, count: int) -> list[tuple[Array, Array]]:
        """As many fresh results of one shape, in one block of memory (which the C library then keeps for the next)."""
        block = np.empty((count, self.states, math.prod(core)))
        return [(flat.reshape(self.shape + core), flat) for flat in block]

    def check_finite(self) -> None:
        """For calls whose kernels do not look themselves."""
        if not all(np.isfinite(x).all() for x in self.arguments):
            raise self.not_finite()

    def not_finite(self) -> InputError:
        """What to raise when a kernel has found a number that is not finite."""
        return next(not_finite(name, x) for name, x in self._given.items() if not np.isfinite(x).all())


def one_state(threads: Any, model: Any, *state: Any) -> list[Array] | None:
    """The rows, (1, n) each, of one state that is given just as kernels read it; None if it is not.

    Control loops call with one state at a time, and then looking at arguments costs as much as the kernel: a function
    may hand such a state to its kernel at once, and go through :class:`Batch` only if the kernel finds fault with it.
    """
    if type(model) is not Model or not (threads is None or (type(threads) is int and threads == 1)):
        return None
    shape, rows = (len(model.joints),), []
    for x in state:
        if type(x) is not np.ndarray or x.dtype is not _FLOAT64 or x.shape != shape or not x.flags.carray:
            return None
        rows.append(x[None])
    return rows


def finish(result: Array, flat: Array) -> Array:
    """`result`, filled from the kernel's output `flat` where the two do not share memory."""
    if result.base is not flat and not np.may_share_memory(result, flat):
        result[...] = flat.reshape(result.shape)
    return result


def real(name: str, value: Any) -> Array:
    """`value` as a float64 array, or an InputError that says what it is instead."""
    if type(value) is np.ndarray and value.dtype is _FLOAT64:
        return value
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InputError(f"`{name}` is a masked array with masked entries; expected real numbers throughout")
    try:
        array = np.asarray(value)
    except Exception:  # whatever a foreign object raises when asked for its numbers
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        what = "complex numbers" if array.dtype.kind == "c" else f"{type(value).__name__} of dtype {array.dtype}"
        raise InputError(f"`{name}` holds {what}; expected real numbers (float64)")
    return array.astype(np.float64, copy=False)


def whole(name: str, value: Any, least: int = 1) -> int:
    """`value` as a whole number of at least `least`."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Integral) or value < least:
        raise InputError(f"`{name}` is {shown(value)}; expected a whole number of at least {least}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """`value` as a positive number, which may be infinite."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real) or not float(value) > 0:
        raise InputError(f"`{name}` is {shown(value)}; expected a positive number")
    return float(value)


def check_model(model: Any) -> None:
    if not isinstance(model, Model):
        raise InputError(f"`model` is a {type(model).__name__}; expected a Model, such as samples.human43()")


def not_finite(name: str, x: Array) -> InputError:
    where = tuple(int(k) for k in np.argwhere(~np.isfinite(x))[0])
    return InputError(f"`{name}` at index {where} is {x[where]}; expected finite numbers")


def kernel_array(x: Array) -> Array:
    """`x` as kernels are compiled for: C-contiguous, aligned, marked writable (kernels never write to it)."""
    if x.flags.carray:
        return x
    if not (x.flags.c_contiguous and x.flags.aligned):
        return np.array(x, order="C")
    return _WritableView(x).view()


class _WritableView:
    def __init__(self, x: Array) -> None:
        self._owner = x
        self.__array_interface__ = {**x.__array_interface__, "data": (x.ctypes.data, False)}

    def view(self) -> Array:
        return np.asarray(self)


def _wrong_shape(model: Model, name: str, x: Array, core: int) -> InputError:
    n = model.n
    if core == 1:
        hint = f"model {model.name!r} has {n} degrees of freedom, so its last axis must be {n}"
    else:
        hint = f"model {model.name!r} has {n} links, so its last axes must be ({n}, 3)"
    return InputError(f"`{name}` has shape {x.shape}; {hint}")


def _broadcast(names: Iterable[str], shapes: Sequence[Shape]) -> Shape:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        found = ", ".join(f"`{name}` {shape}" for name, shape in zip(names, shapes, strict=True))
        raise InputError(f"batch shapes do not broadcast: {found}; expected them equal, or 1 where not") from None
