"""The one validation gate: whatever a caller gives becomes what kernels read, or an error that names it."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Collection, Iterable, Sequence
from contextlib import ContextDecorator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.kernel_constants import mechanism, tame
from kinegrad._engine.memory import certainly_apart, overlaps_itself, share_memory
from kinegrad._kernels.lanes.finite import LARGEST
from kinegrad._kernels.mechanism import Mechanism
from kinegrad.errors import InputError, KinegradError, SingularError, at_state, shown
from kinegrad.model import Model
from kinegrad.model.numbers import holds_masked

Array = NDArray[np.float64]
Shape = tuple[int, ...]
_FAR = 1e70  # where fourth powers, as in the square of an inertia, overflow
FLOAT64 = np.dtype(np.float64)  # NumPy keeps one object of it, so `is` finds it fast; a miss only costs a copy


def check_out(name: str, out: Any, shape: Shape) -> None:
    """Refuse what cannot be filled with a result of this shape."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float64 or out.shape != shape:
        found = f"{out.dtype} array of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise InputError(f"`{name}` is a {found}; expected a float64 array of shape {shape}")
    if isinstance(out, np.ma.MaskedArray) and np.ma.is_masked(out):
        raise InputError(f"`{name}` is a masked array, which would hide results; expected a plain array")
    if not out.flags.writeable:
        raise InputError(f"`{name}` is read-only; expected a writable array of shape {shape}")
    if overlaps_itself(out):
        raise InputError(f"`{name}` repeats its memory (strides {out.strides}); expected room for every number")


class Batch:
    """Checked arguments of one call, flattened to a common number of states.

    ``shape`` is the common batch shape, ``states`` its size.  Each argument becomes ``(states, columns)``, or
    ``(1, columns)`` if it is the same for all states; C-contiguous float64, never written to.  ``results`` are the
    arrays handed out for kernels to fill, those of which must be finite in the end.

    Parameters
    ----------
    model : Model
    state : dict
        Arguments of shape (..., n) by name.
    loads : dict
        Arguments of shape (..., n, 3) by name.
    """

    __slots__ = ("_given", "arguments", "model", "n", "results", "shape", "states")
    _given: dict[str, Array]
    arguments: list[Array]
    model: Model
    n: int
    results: list[Array]
    shape: Shape
    states: int

    def __init__(self, model: Model, state: dict[str, Any], loads: dict[str, Any] | None = None) -> None:
        check_model(model)
        self.model, self.results = model, []
        self.n = len(model.joints)
        if loads is not None or not self._take_plain(state):
            self._take_any(model, state, loads or {})

    def _take_plain(self, state: dict[str, Any]) -> bool:
        """The common case, fast: arrays of one shape that kernels can read as they are."""
        shape = None
        for x in state.values():
            if type(x) is not np.ndarray or x.dtype is not FLOAT64 or not x.flags.carray:
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
        self.shape = shape = broadcast(arguments, shapes)
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
            self.results.append(filled)
            return filled.reshape(full), filled
        check_out(name, out, full)
        if not out.flags.carray or any(share_memory(out, x) for x in self._given.values()):
            filled = np.zeros(flat) if zero else np.empty(flat)
        else:
            filled = np.asarray(out).reshape(flat)
            if zero:
                filled.fill(0.0)
        self.results.append(filled)
        return out, filled

    def outputs(self, core: Shape, count: int) -> list[tuple[Array, Array]]:
        """As many fresh results of one shape, in one piece of memory (which the C library then keeps for the next)."""
        memory = np.empty((count, self.states, math.prod(core)))
        self.results.extend(memory)
        return [(flat.reshape(self.shape + core), flat) for flat in memory]

    def check_finite(self) -> None:
        """For calls whose kernels do not look themselves."""
        if not all(np.isfinite(x).all() for x in self.arguments):
            raise self.not_finite()

    def not_finite(self) -> InputError:
        """What to raise when a kernel has found a number that is not finite."""
        return next(not_finite(name, x) for name, x in self._given.items() if not np.isfinite(x).all())

    def check_results(self) -> None:
        """Refuse results that are not finite."""
        if overflow_is_passed() or all(np.isfinite(x).all() for x in self.results):
            return
        good = [np.isfinite(x).all(axis=tuple(range(1, x.ndim))) for x in self.results]
        lost = [np.flatnonzero(~x)[:1] for x in good]
        if any(map(len, lost)):
            raise self.overflow(int(np.concatenate(lost).min()))

    def free_joint(self, joint: int, state: int) -> KinegradError:
        """What to raise when nothing seems to resist a joint in one of the states, or overflow may be the reason; of
        numbers after those of all joints, when a row of constraints follows from others.

        Pivots depend on sliding coordinates and on the model's constants alone.  Results are not looked at: where a
        kernel ends early, those of other states may not have been written.
        """
        slides = Mechanism(*mechanism(self.model)).rate[:, 1] != 0.0
        q = self.arguments[0]
        far = bool((np.abs(q[0 if len(q) == 1 else state, slides]) > _FAR).any())
        if (far or not tame(self.model)) and not overflow_is_passed():
            return self.overflow(state)
        if joint >= self.n:
            return DependentRow(joint - self.n, state, self.shape)
        return free_joint(self.model, joint, state, self.shape)

    def check_results_of(self, name: str, x: Array) -> None:
        """The same if `x`, (1, columns), an argument that kernels do not look at, is of uncommon size."""
        if (np.abs(x) > LARGEST).any():
            self._given, self.arguments = {**self._given, name: x}, [*self.arguments, x]
            self.check_results()

    def overflow(self, state: int) -> InputError:
        """What to raise when the results of a state overflow, with the cause: the largest number given for it
        if that is large, else the model's constants if those are."""
        sizes = {}
        for name, x in zip(self._given, self.arguments, strict=True):
            row = np.abs(x[0 if len(x) == 1 else state])
            sizes[name] = float(row.max(initial=0.0))
        name = max(sizes, key=lambda name: sizes[name])
        where = tuple(int(k) for k in np.unravel_index(state, self.shape)) if self.shape else ()
        at = f" of state {where[0] if len(where) == 1 else where}" if where else ""
        cause = ""
        if sizes[name] > LARGEST:
            cause = f", where `{name}` has numbers of up to {sizes[name]:.3g}"
        elif not tame(self.model):
            cause = f", where model {shown(self.model.name)} has constants of extreme size"
        return InputError(f"the results{at} are not finite: they overflow float64{cause}; expected smaller numbers")


class DependentRow(SingularError):
    """A row of constraints that follows from others in one of the states of a batch: to be caught by who knows their
    names."""

    def __init__(self, row: int, state: int, shape: Shape) -> None:
        super().__init__(f"row {row} of the constraints follows from others")
        self.row, self.state, self.shape = row, state, shape


def state_text(state: int, shape: Shape) -> str:
    """Which state of a batch of this shape a message is about, by its number among all of them."""
    return at_state([int(k) for k in np.unravel_index(state, shape)] if shape else [])


def free_joint(model: Model, joint: int, state: int, shape: Shape, what: str = "joint") -> SingularError:
    """What to raise when nothing resists a joint, or a coordinate, in one of the states of a batch."""
    name = model.joint_names[joint] if what == "joint" else model.speed_names[joint]
    return SingularError(
        f"nothing resists {what} {name!r} of model {model.name!r}{state_text(state, shape)}: the links it moves have "
        "no inertia about it; give them some, or give the joint armature"
    )


_local = threading.local()


def overflow_is_passed() -> bool:
    """Whether results that are not finite are to be returned."""
    return bool(getattr(_local, "overflow_passes", 0))


class overflow_passes(ContextDecorator):
    """Results that are not finite are returned, not refused: for integrators, whom they tell that a motion diverges."""

    def __enter__(self) -> None:
        _local.overflow_passes = getattr(_local, "overflow_passes", 0) + 1

    def __exit__(self, *_: object) -> None:
        _local.overflow_passes -= 1


def one_result(results: Sequence[Any], shapes: Sequence[Shape], state: Sequence[Array]) -> list[Array] | None:
    """The rows, (1, columns) each, of arrays to fill with the results of one state, if a kernel can do so at once:
    they are as it writes them, and none has memory in common with another or with the state; else None."""
    rows = []
    for k, x in enumerate(results):
        if type(x) is not np.ndarray or x.dtype is not FLOAT64 or x.shape != shapes[k] or not x.flags.carray:
            return None
        rows.append(x[None] if x.ndim == 1 else x.reshape(1, -1))
    return rows if certainly_apart(results, state) else None


def finish(result: Array, flat: Array) -> Array:
    """`result`, filled from the kernel's output `flat` where the two do not share memory."""
    if result.base is not flat and not np.may_share_memory(result, flat):
        result[...] = flat.reshape(result.shape)
    return result


def real(name: str, value: Any) -> Array:
    """`value` as a float64 array, or an InputError that says what it is instead."""
    if type(value) is np.ndarray and value.dtype is FLOAT64:
        return value
    if holds_masked(value):
        what = "is a masked array" if isinstance(value, np.ndarray) else "holds a masked array"
        raise InputError(f"`{name}` {what} with masked entries; expected real numbers throughout")
    try:
        array = np.asarray(value)
    except Exception:  # whatever a foreign object raises when asked for its numbers
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        what = "complex numbers" if array.dtype.kind == "c" else f"{type(value).__name__} of dtype {array.dtype}"
        raise InputError(f"`{name}` holds {what}; expected real numbers (float64)")
    with np.errstate(all="ignore"):  # what is too large for float64 becomes infinite, and is refused as such
        return array.astype(np.float64, copy=False)


def flag(name: str, value: Any) -> bool:
    """`value` as True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"`{name}` is {shown(value)}; expected True or False")
    return bool(value)


def one_of(name: str, value: Any, choices: Collection[str]) -> str:
    """`value`, if it is one of the words `choices`."""
    if not isinstance(value, str) or value not in choices:
        words = [repr(choice) for choice in choices]
        expected = " or ".join(words) if len(words) < 3 else f"one of {', '.join(words)}"
        raise InputError(f"`{name}` is {shown(value)}; expected {expected}")
    return value


def whole(name: str, value: Any, least: int = 1) -> int:
    """`value` as a whole number of at least `least` that a float64 can tell the size of."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Integral) or value < least:
        raise InputError(f"`{name}` is {shown(value)}; expected a whole number of at least {least}")
    if int(value) > sys.float_info.max:
        raise InputError(f"`{name}` is {shown(value)}; expected a whole number below {sys.float_info.max:.2g}")
    return int(value)


def positive(name: str, value: Any) -> float:
    """`value` as a positive number, which may be infinite."""
    number: Any = math.nan if isinstance(value, bool | np.bool_) or not isinstance(value, Real) else value
    if not number > 0:
        raise InputError(f"`{name}` is {shown(value)}; expected a positive number")
    try:
        return float(number)
    except OverflowError:  # of a whole number with hundreds of digits
        return math.inf


def check_model(model: Any) -> None:
    if not isinstance(model, Model):
        raise InputError(f"`model` is a {type(model).__name__}; expected a Model, such as samples.human43()")


def mapped(model: Any) -> bool:
    """Whether it is a model with coordinates that are not its joints."""
    return isinstance(model, Model) and bool(model.coordinates)


def sprung(model: Any) -> bool:
    """Whether it is a model with force elements between its links."""
    return isinstance(model, Model) and bool(model.elements)


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


def broadcast(names: Iterable[str], shapes: Sequence[Shape]) -> Shape:
    """The common batch shape of arguments, or an InputError that names them."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        found = ", ".join(f"`{name}` {shape}" for name, shape in zip(names, shapes, strict=True))
        raise InputError(f"batch shapes do not broadcast: {found}; expected them equal, or 1 where not") from None
