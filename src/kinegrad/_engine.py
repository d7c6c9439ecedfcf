"""Between public functions and kernels: constants, one validation gate, scratch memory, threads.

A public function asks :class:`Batch` to check and flatten its arguments to ``(states, columns)``, lets :func:`run`
call a kernel on blocks of states, and shapes the result back.  Nothing of this is public.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._kernels.mechanism import Mechanism
from kinegrad._kernels.tangent import Pair, Slopes
from kinegrad._kernels.width import WIDTH
from kinegrad.errors import InputError, SingularError
from kinegrad.model import Model

Array = NDArray[np.float64]
Shape = tuple[int, ...]
_FLOAT64 = np.dtype(np.float64)  # NumPy keeps one object of it, so `is` finds it fast; a miss only costs a copy

VARIABLE = (
    "placement", "tip", "mass", "com", "inertia", "gravity", "stiffness", "rest", "damping", "armature", "pitch",
)  # fmt: skip
_STEP = 1e-30  # of complex step: its square is lost, so the derivative is exact

# --- constants of a model, as kernels want them -----------------------------------------------------------------


def mechanism(model: Model) -> tuple[Any, ...]:
    """The model's constants in the order of :class:`Mechanism`, computed once per model."""
    found = model.__dict__.get("_mechanism")
    if found is None:
        found = tuple(_mechanism(model, np.array([joint.pitch for joint in model.joints])))
        object.__setattr__(model, "_mechanism", found)
    return found


def _mechanism(model: Any, pitch: NDArray[Any]) -> Mechanism:
    """From a Model, or from anything with its fields, complex ones too: the arithmetic is analytic."""
    aligned = [_align(np.array(joint.axis)) for joint in model.joints]
    sign, align = np.array([s for s, _ in aligned]), np.array([A for _, A in aligned])
    kinds = np.array([joint.kind for joint in model.joints])
    turn = np.where(kinds == "prismatic", 0.0, sign)
    slide = np.where(kinds == "prismatic", sign, sign * pitch)
    P, F = model.placement @ align, align.transpose(0, 2, 1) @ model.tip
    X = np.where((model.parents >= 0)[:, None, None], F[model.parents] @ P, P)
    R, p = F[:, :3, :3], F[:, :3, 3]
    com = np.einsum("nij,nj->ni", R, model.com) + p
    inertia = R @ model.inertia @ R.transpose(0, 2, 1)
    second = 0.5 * np.trace(model.inertia, axis1=1, axis2=2)[:, None, None] * np.eye(3) - model.inertia
    first = model.mass[:, None] * model.com
    second = second + first[:, :, None] * model.com[:, None, :]
    massive = np.real(model.mass) > 0
    return Mechanism(
        parent=np.array(model.parents),
        rate=np.column_stack([turn, slide]),
        X=_rows(X),
        F=_rows(F),
        P=_rows(P),
        inertia=np.column_stack([model.mass, com, _symmetric(inertia)]),
        J=np.column_stack([_symmetric(second), first, model.mass]),
        massive=massive.astype(np.int64),
        passive=np.column_stack([model.stiffness, model.rest, model.damping, model.armature]),
        gravity=np.array(model.gravity)[None],
        anchor=int(np.argmax(massive)),
    )


def slopes(model: Model, variation: dict[str, Array], directions: int) -> tuple[Array, ...]:
    """Slopes of the kernels' constants, (directions, n·k) each in the order of :class:`Slopes`.

    `variation` holds slopes of model fields, (directions, *shape of the field); of joint pitches as ``"pitch"``.
    By complex step through :func:`_mechanism`, which is exact.
    """
    rows = []
    for k in range(directions):
        fields = {what: getattr(model, what) for what in VARIABLE if what != "pitch"}
        fields["pitch"] = np.array([joint.pitch for joint in model.joints])
        moved = {what: x + 1j * _STEP * variation[what][k] if what in variation else x for what, x in fields.items()}
        varied = SimpleNamespace(joints=model.joints, parents=model.parents, **moved)
        constants = _mechanism(varied, moved["pitch"])
        rows.append([np.imag(getattr(constants, what)).ravel() / _STEP for what in Slopes._fields])
    return tuple(np.ascontiguousarray(column) for column in map(np.array, zip(*rows, strict=True)))


def pairs(model: Model) -> int:
    """How many (joint, ancestor or itself) pairs there are."""
    return (model.topology.nonzeros + model.n) // 2


def places(model: Model, layout: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where kernels put matrix entries: columns of (i, j) and (j, i), (pairs, 2), and the first pair of each i, (n,).

    Pairs are ordered i = n−1 … 0, j from i up to the root.  The layout is ``"dense"`` rows of n, ``"padded"`` rows of
    n and up to three more, or ``"packed"``, the topological non-zeros alone.  Made once per model.
    """
    key = f"_places_{layout}"
    found: tuple[NDArray[np.int64], NDArray[np.int64]] | None = model.__dict__.get(key)
    if found is None:
        n, topology = model.n, model.topology
        each = [(i, j) for i in reversed(range(n)) for j in (i, *reversed(topology.ancestors(i)))]
        i, j = np.array(each, dtype=np.int64).T
        width = -(-n // 4) * 4 if layout == "padded" else n
        number = np.arange(n)[:, None] * width + np.arange(n)
        if layout == "packed":
            number[topology.pattern.rows, topology.pattern.cols] = np.arange(topology.nonzeros)
        first = np.searchsorted(-i, -np.arange(n))
        found = np.stack([number[i, j], number[j, i]], axis=1), first.astype(np.int64)
        object.__setattr__(model, key, found)
    return found


def without_springs(model: Model) -> Model:
    """The same model with slack springs, made once per model."""
    if not model.stiffness.any():
        return model
    found: Model | None = model.__dict__.get("_without_springs")
    if found is None:
        found = model.replace(stiffness=np.zeros(model.n))
        object.__setattr__(model, "_without_springs", found)
    return found


def _align(axis: Array) -> tuple[float, Array]:
    """A sign and a rotation that takes z to sign·axis; the identity where it can be."""
    align = np.eye(4)
    if abs(axis[2]) == 1.0:
        return float(axis[2]), align
    x = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    x /= np.linalg.norm(x)
    align[:3, :3] = np.column_stack([x, np.cross(axis, x), axis])
    return 1.0, align


def _rows(T: Array) -> Array:
    """(n, 4, 4) transforms as (n, 12): rotation row by row, translation."""
    return np.ascontiguousarray(np.concatenate([T[:, :3, :3].reshape(-1, 9), T[:, :3, 3]], axis=1))


def _symmetric(S: Array) -> Array:
    return np.stack([S[:, 0, 0], S[:, 1, 1], S[:, 2, 2], S[:, 0, 1], S[:, 0, 2], S[:, 1, 2]], axis=1)


# --- the validation gate ----------------------------------------------------------------------------------------


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


# --- threads and scratch ----------------------------------------------------------------------------------------

_local = threading.local()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_lock = threading.Lock()
_GRAIN = 2048  # joint-states a thread should have to do before it is worth waking
_threads = 0


def set_threads(count: int | None) -> None:
    """Set how many threads calls use when they do not say.

    Parameters
    ----------
    count : int or None
        At least 1; None is the number of processors this process may use (the initial value, unless the
        environment variable ``KINEGRAD_THREADS`` says otherwise).

    Examples
    --------
    >>> set_threads(1)
    >>> get_threads()
    1
    >>> set_threads(None)
    """
    global _threads
    _threads = _default_threads() if count is None else check_threads(count)


def get_threads() -> int:
    """How many threads calls use when they do not say.

    >>> get_threads() >= 1
    True
    """
    return _threads


def check_threads(count: Any) -> int:
    if isinstance(count, bool | np.timedelta64) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"`threads` is {count!r}; expected a whole number of at least 1")
    return int(count)


def _default_threads() -> int:
    setting = os.environ.get("KINEGRAD_THREADS")
    if setting is not None:
        if not (setting.isascii() and setting.isdigit() and int(setting)):
            raise ImportError(f"KINEGRAD_THREADS is {setting!r}; expected a whole number of at least 1")
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


set_threads(None)


def scratch(slots: int) -> Array:
    """At least `slots` rows of W numbers, private to this thread and reused by its next call."""
    buffer: Array | None = getattr(_local, "buffer", None)
    if buffer is None or len(buffer) < slots:
        buffer = _local.buffer = _aligned(slots)
    return buffer


def scratch_pair(slots: int) -> Pair:
    """The same twice: values and slopes."""
    pair: Pair | None = getattr(_local, "pair", None)
    if pair is None or len(pair.value) < slots:
        pair = _local.pair = Pair(_aligned(slots), _aligned(slots))
    return pair


def _aligned(slots: int) -> Array:
    """(slots, W) zeros that begin on a cache line, so that no slot straddles two."""
    memory = np.zeros(slots * WIDTH + 8)
    skip = -(memory.ctypes.data // 8) % 8
    return memory[skip : skip + slots * WIDTH].reshape(slots, WIDTH)


def run(kernel: Callable[..., bool], batch: Batch, slots: int, threads: int | None, *arguments: Any) -> None:
    """Call ``kernel(*arguments, scratch, start, stop)`` on blocks of the batch; the kernel checks that it is finite."""
    count = batch.states
    workers = _threads if threads is None else check_threads(threads)
    if workers > 1:
        workers = min(workers, count * batch.n // _GRAIN)
    if workers <= 1:
        if count and not kernel(*arguments, scratch(slots), 0, count):
            raise batch.not_finite()
        return
    size = -(-count // (workers * WIDTH)) * WIDTH
    edges = [(start, min(start + size, count)) for start in range(0, count, size)]

    def block(start: int, stop: int) -> bool:
        return kernel(*arguments, scratch(slots), start, stop)

    futures = [_workers(workers - 1).submit(block, *edge) for edge in edges[1:]]
    finite = [block(*edges[0]), *(future.result() for future in futures)]
    if not all(finite):
        raise batch.not_finite()


def run_directions(
    kernel: Callable[..., bool],
    model: Model,
    slopes: tuple[Array, ...],
    state: Sequence[tuple[Array, Array | None]],
    fixed: Sequence[Any],
    columns: Sequence[int],
    slots: int,
    threads: int | None,
) -> list[Array]:
    """Slopes of a kernel's results, (states, directions, columns) each, along all directions for all states.

    `state` pairs values, (states, n), with slopes, (states, directions, n) or None for zero.  Lanes run over states or
    over directions, whichever there are more of.
    """
    count, directions = len(state[0][0]), len(slopes[0])
    constants = mechanism(model)
    none = np.zeros((1, model.n))
    results = [np.empty((count, directions, width)) for width in columns]

    def one(k: int) -> bool:
        if count >= directions:
            dm = tuple(x[k : k + 1] for x in slopes)
            pairs = [Pair(x, none if dx is None else np.ascontiguousarray(dx[:, k])) for x, dx in state]
            filled = [Pair(np.zeros((count, width)), np.zeros((count, width))) for width in columns]
        else:
            dm = slopes
            pairs = [Pair(x[k : k + 1], none if dx is None else dx[k]) for x, dx in state]
            filled = [Pair(np.zeros((directions, width)), np.zeros((directions, width))) for width in columns]
        rows = len(filled[0].value)
        if not kernel(constants, dm, *pairs, *fixed, *filled, scratch_pair(slots), 0, rows):
            return False
        for result, pair in zip(results, filled, strict=True):
            result[(slice(None), k) if count >= directions else k] = pair.slope
        return True

    items = range(min(count, directions)) if directions else range(0)
    workers = _threads if threads is None else check_threads(threads)
    if workers == 1 or count * directions * model.n < 2 * _GRAIN:
        done = [one(k) for k in items]
    else:
        done = list(_workers(workers).map(one, items))
    if not all(done):
        raise SingularError(f"nothing resists one of the joints of model {model.name!r}; see forward_dynamics")
    return results


def _workers(count: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < count:
            _pool, _pool_size = ThreadPoolExecutor(count, thread_name_prefix="kinegrad"), count
        return _pool


def _forget_pool() -> None:
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
