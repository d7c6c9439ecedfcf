"""How many threads; scratch memory for each; kernels on the states of a batch, or along many directions."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.gate import Batch, kernel_array
from kinegrad._engine.kernel_constants import flags_if_varied, mechanism, tame
from kinegrad._engine.pool import Call, at_hand, note_end, processors
from kinegrad._engine.signature import Kernel, Shape
from kinegrad._kernels.compiler.jit import narrow
from kinegrad._kernels.compiler.width import NARROW, WIDTH
from kinegrad._kernels.lanes.dual import Pair
from kinegrad._kernels.lanes.finite import FINE, NOT_FINITE
from kinegrad.errors import InputError, shown

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Note = tuple[int, int, tuple[Integers, ...]]  # first state of a part, what the kernel returned, its status

NO_JOINT = np.array((-1, -1))  # status of a kernel that found no joint that nothing resists
_local = threading.local()
_GRAIN = 2048  # states times joints of ∂τ that a thread should have to do before it is worth waking: 60 to 100 µs
_AT_HAND = 6  # a sixth of it is worth sharing with a helper that is awake (decision 162)
_SLOTS = 208  # of scratch that take as long as one of these joints, whatever the kernel (decision 152)
_COLUMNS = 4  # of results that cost as much as one slot of scratch
_AT_ONCE = 2_000_000  # of effort of a part when nothing is known of how long it takes: 0.3 to 1 ms, at worst 60
FIRST = 600_000  # states times squared joints that kernels along directions do in a fraction of a second
_threads = 0  # until it is asked for


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
    if not _threads:
        set_threads(None)
    return _threads


def check_threads(count: Any) -> int:
    """How many threads a call is to use that says `count`, or None."""
    if count is None:
        return _threads or get_threads()
    if type(count) is int and count >= 1:  # at once, as it is nearly always
        return count
    if isinstance(count, bool | np.timedelta64) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"`threads` is {shown(count)}; expected a whole number of at least 1")
    return int(count)


def _default_threads() -> int:
    setting = os.environ.get("KINEGRAD_THREADS")
    if setting is not None:
        if not (setting.isascii() and setting.isdigit() and len(setting) < 10 and int(setting)):
            raise InputError(
                f"the environment variable KINEGRAD_THREADS is {shown(setting)}; expected a whole number of at least 1"
            )
        return int(setting)
    return processors()


def scratch(slots: int) -> Array:
    """At least `slots` rows of W numbers, private to this thread and reused by its next call."""
    buffer: Array | None = getattr(_local, "buffer", None)
    if buffer is None or len(buffer) < slots:
        buffer = _local.buffer = aligned(slots)
    return buffer


def few(slots: int) -> Array:
    """The same with rows of NARROW numbers, for calls of that many states at most."""
    if NARROW == WIDTH:
        return scratch(slots)
    buffer: Array | None = getattr(_local, "few", None)
    if buffer is None or len(buffer) < slots:
        buffer = _local.few = aligned(slots, NARROW)
    return buffer


def fitting(kernel: Callable[..., int], slots: int, states: int) -> tuple[Callable[..., int], Array]:
    """What a call of so many states takes: the kernel, and scratch for it."""
    return (narrow(kernel), few(slots)) if states <= NARROW < WIDTH else (kernel, scratch(slots))


def scratch_pair(slots: int) -> Pair:
    """The same twice: values and slopes."""
    pair: Pair | None = getattr(_local, "pair", None)
    if pair is None or len(pair.value) < slots:
        pair = _local.pair = Pair(aligned(slots), aligned(slots))
    return pair


def aligned(slots: int, lanes: int = WIDTH) -> Array:
    """(slots, lanes) zeros that begin on a cache line, so that no slot straddles two."""
    memory = np.zeros(slots * lanes + 8)
    skip = -(memory.ctypes.data // 8) % 8
    return memory[skip : skip + slots * lanes].reshape(slots, lanes)


def run(
    kernel: Callable[..., int],
    batch: Batch,
    slots: int,
    threads: int | None,
    arguments: tuple[Any, ...] = (),
    pivots: bool = False,
) -> None:
    """Call ``kernel(*arguments, scratch, start, stop)`` on parts of the batch, with a status before the scratch if the
    kernel divides by pivots.

    Raises what it finds: that a number given is not finite, that a result is not, or that nothing resists a joint.
    """
    count, each = batch.states, effort(slots, sum(x.shape[-1] for x in batch.results))
    workers = workers_of(threads, count * each)
    if not count:
        return
    notes = run_states(kernel, slots, each, count, workers, arguments, pivots)
    if notes or not tame(batch.model):
        judge(batch, notes)


def run_states(
    kernel: Callable[..., int],
    slots: int,
    each: int,
    states: int,
    workers: int,
    arguments: tuple[Any, ...],
    pivots: bool = False,
) -> list[Note]:
    """The same of so many states, of so much effort each, on so many threads; returns what there is to judge."""
    workers = min(workers, -(-states // WIDTH))  # a block each
    if workers == 1 and (states <= WIDTH or states * each <= _AT_ONCE):
        own = (NO_JOINT.copy(),) if pivots else ()
        kernel, room = fitting(kernel, slots, states)
        ok = kernel(*arguments, *own, room, 0, states)
        note_end()
        return [(0, ok, own)] if ok != FINE or pivots else []
    return _run_in_parts(kernel, slots, _AT_ONCE // each, states, workers, arguments, pivots)


def _run_in_parts(
    kernel: Callable[..., int],
    slots: int,
    first: int,
    states: int,
    workers: int,
    arguments: tuple[Any, ...],
    pivots: bool,
) -> list[Note]:
    """On several threads, or in parts that Ctrl-C can come between."""
    notes: list[Note] = []
    call = Call(1, states, first, workers)

    def part(_: int, start: int, stop: int) -> None:
        own = (NO_JOINT.copy(),) if pivots else ()
        ok = kernel(*arguments, *own, scratch(slots), start, stop)
        stuck = any(status[0] >= 0 for status in own)
        if ok != FINE or stuck:
            notes.append((start, ok, own))
        if ok == NOT_FINITE or stuck:
            call.stop()

    call.run(part, alone_first=not compiled(kernel))
    return sorted(notes, key=lambda note: note[0])


def judge(batch: Batch, notes: list[Note]) -> None:
    """Raise what the parts of a call, in the order of states, have found."""
    if any(ok == NOT_FINITE for _, ok, _ in notes):
        raise batch.not_finite()
    stuck = [own[0].tolist() for _, _, own in notes if own and own[0][0] >= 0]
    if stuck:
        batch.check_finite()  # of parts that were never begun: how a call was cut does not show in its errors
        raise batch.free_joint(*stuck[0])
    if not (tame(batch.model) and all(ok == FINE for _, ok, _ in notes)):
        batch.check_results()


def compiled(kernel: Any) -> bool:
    """Whether a kernel has been called before, and so compiled, or loaded, in all likelihood."""
    return bool(getattr(kernel, "overloads", True))


def effort(slots: int, columns: int) -> int:
    """What a state takes that has so many slots of scratch and columns of results, in slots."""
    return max(1, slots + columns // _COLUMNS)


def workers_of(threads: int | None, work: int) -> int:
    """How many threads a call is to use that says `threads`, for work that takes so much effort."""
    workers = check_threads(threads)
    if workers == 1 or work < 2 * _SLOTS * _GRAIN // _AT_HAND:
        return 1
    grain = max(1, _GRAIN // _AT_HAND) if at_hand(workers) else _GRAIN
    return max(1, min(workers, work // (_SLOTS * grain)))


def workers_for(work: int) -> int:
    """How many threads so many joint-states are worth."""
    return max(1, min(get_threads(), work // _GRAIN))


def workers_asked(threads: int | None, work: int) -> int:
    """How many threads a call is to use that says `threads`, for so many joint-states."""
    workers = check_threads(threads)
    return workers if work >= 2 * _GRAIN else 1


def first_rows(work: int) -> int:
    """How many rows, each as much work as so many joint-states, take a fraction of a second at most."""
    return FIRST // work


def run_directions(
    kernel: Kernel,
    batch: Batch,
    slopes: tuple[Array, ...],
    state: Sequence[tuple[Array, Array | None]],
    fixed: Sequence[Any],
    threads: int | None,
    points: Shape | None = None,
) -> tuple[list[Array], list[Array]]:
    """The results of a kernel of duals, (states, columns) each, and their slopes, (states, directions, columns), along
    all directions for all states.

    `state` pairs values, (states, n), with slopes, (states, directions, n) or None for zero; `fixed` are arrays, pairs
    of rows (states or 1, columns) and slopes (directions, columns), or lists of tables, which kernels get as they are.
    Lanes run over states or over directions, whichever there are more of.  Slopes that are not finite are left for the
    caller to find, once all are there.
    """
    count, directions, model = len(state[0][0]), len(slopes[0]), batch.model
    constants = flags_if_varied(mechanism(model), slopes)
    slopes, none = tuple(map(kernel_array, slopes)), np.zeros((1, model.n))
    state = [(kernel_array(x), dx) for x, dx in state]
    fixed = [x if isinstance(x, list) else _as_kernels_read(x) for x in fixed]
    columns, (_, slots) = list(map(math.prod, kernel.cores(model, points))), kernel.needs(model)
    values = [np.empty((count, width)) for width in columns]
    results = [np.empty((count, directions, width)) for width in columns]
    over_states = count >= directions
    lines, rows = (directions, count) if over_states else (count, directions)
    workers = workers_asked(threads, count * directions * model.n)
    stuck: list[tuple[int, int]] = []
    call = Call(lines, rows, max(FIRST // (4 * model.n**2), WIDTH), workers)

    def part(k: int, start: int, stop: int) -> None:
        some, one = slice(start, stop), slice(k, k + 1)
        states, along = (some, one) if over_states else (one, some)
        pairs = [
            Pair(x[states], none if dx is None else kernel_array(dx[states, along].reshape(-1, model.n)))
            for x, dx in state
        ]
        rest = [_rows_of(x, states, along, count) for x in fixed]
        filled = [Pair(np.zeros((stop - start, width)), np.zeros((stop - start, width))) for width in columns]
        dm = tuple(x[along] for x in slopes)
        status = (NO_JOINT.copy(),) if kernel.pivots else ()
        kernel.function(constants, dm, *pairs, *rest, *filled, *status, scratch_pair(slots), 0, stop - start)
        if status and status[0][0] >= 0:
            joint, row = status[0].tolist()
            stuck.append((start + row if over_states else k, joint))
            call.stop()
        for result, pair in zip(results, filled, strict=True):
            result[(some, k) if over_states else (k, some)] = pair.slope
        if along.start == 0:
            for value, pair in zip(values, filled, strict=True):
                value[states] = pair.value if over_states else pair.value[:1]

    call.run(part, alone_first=not compiled(kernel.function))
    if stuck:
        first, joint = min(stuck)
        raise batch.free_joint(joint, first)
    return values, results


def _as_kernels_read(x: Any) -> Any:
    return tuple(map(kernel_array, x)) if isinstance(x, tuple) else kernel_array(x)


def _rows_of(x: Any, states: slice, along: slice, count: int) -> Any:
    """What does not depend on a direction, or a pair of rows and slopes, for some of the states and directions."""
    if isinstance(x, list):
        return tuple(x)
    if isinstance(x, tuple):
        return Pair(x[0][states] if len(x[0]) == count else x[0], x[1][along])
    return x[states] if x.ndim == 2 and len(x) == count else x
