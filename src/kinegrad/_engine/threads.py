"""Blocks of states on threads, each with scratch memory of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.constants import flags_if_varied, mechanism
from kinegrad._engine.gate import Batch, kernel_array
from kinegrad._kernels.tangent import Pair
from kinegrad._kernels.width import WIDTH
from kinegrad.errors import InputError, SingularError
from kinegrad.model import Model

Array = NDArray[np.float64]

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

    def block(start: int, stop: int) -> bool:
        return kernel(*arguments, scratch(slots), start, stop)

    if not all(run_blocks(block, count, workers)):
        raise batch.not_finite()


def workers_for(work: int) -> int:
    """How many threads so many joint-states are worth."""
    return max(1, min(_threads, work // _GRAIN))


def run_blocks(block: Callable[[int, int], Any], count: int, workers: int) -> list[Any]:
    """Call ``block(start, stop)`` on as many parts of `count` states as there are workers, of whole blocks of lanes."""
    size = max(-(-count // (workers * WIDTH)), 1) * WIDTH
    return run_tasks(block, [(start, min(start + size, count)) for start in range(0, count, size)], workers)


def run_tasks(task: Callable[..., Any], each: Sequence[tuple[int, ...]], workers: int) -> list[Any]:
    """Call the task with each of the arguments; where each has a thread of its own, this one takes the first."""
    if workers <= 1:
        return [task(*arguments) for arguments in each]
    if len(each) > workers:
        return list(_workers(workers).map(lambda arguments: task(*arguments), each))
    futures = [_workers(workers - 1).submit(task, *arguments) for arguments in each[1:]]
    return [task(*arguments) for arguments in each[:1]] + [future.result() for future in futures]


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

    `state` pairs values, (states, n), with slopes, (states, directions, n) or None for zero; `fixed` are arrays, or
    pairs of rows (states or 1, columns) and slopes (directions, columns).  Lanes run over states or over directions,
    whichever there are more of.
    """
    count, directions = len(state[0][0]), len(slopes[0])
    constants = flags_if_varied(mechanism(model), slopes)
    slopes, none = tuple(map(kernel_array, slopes)), np.zeros((1, model.n))
    state = [(kernel_array(x), dx) for x, dx in state]
    fixed = [tuple(map(kernel_array, x)) if isinstance(x, tuple) else kernel_array(x) for x in fixed]
    results = [np.empty((count, directions, width)) for width in columns]

    def one(k: int) -> bool:
        if count >= directions:
            dm = tuple(x[k : k + 1] for x in slopes)
            pairs = [Pair(x, none if dx is None else kernel_array(dx[:, k])) for x, dx in state]
            rest = [Pair(x[0], x[1][k : k + 1]) if isinstance(x, tuple) else x for x in fixed]
            filled = [Pair(np.zeros((count, width)), np.zeros((count, width))) for width in columns]
        else:
            dm = slopes
            pairs = [Pair(x[k : k + 1], none if dx is None else kernel_array(dx[k])) for x, dx in state]
            rest = [Pair(*x) if isinstance(x, tuple) else x for x in fixed]
            filled = [Pair(np.zeros((directions, width)), np.zeros((directions, width))) for width in columns]
        rows = len(filled[0].value)
        if not kernel(constants, dm, *pairs, *rest, *filled, scratch_pair(slots), 0, rows):
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
