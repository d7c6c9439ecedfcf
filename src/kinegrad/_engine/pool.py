"""Long calls in short parts, shared with worker threads.

A call is rows of work, independent of one another, that the caller and its helpers take part by part.  A part takes a
fraction of a second, so that Ctrl-C, which Python delivers between two of them, is not kept waiting.  What is promised:

- When a call ends, with a result or with an exception, none of its parts is running or will ever run.
- Where no thread can be started (process limits, interpreter shutdown), the caller does the work alone.
- A forked child has a pool of its own.
- Parts begin at multiples of the lane width, and so give the same bits however they are cut.

Towards the end of a call, a thread estimates when the others will be done with their parts, and takes as many rows as
it can do until all of them end together.

**Calls in quick succession.**  To wake a thread that sleeps takes longer than many calls take.  When a thread calls
again within a fraction of a millisecond, a third call is likely to follow, and helpers do not go to sleep after the
second one: for as long a moment they look at a flag (``_kernels/waiting.py``), and so does the caller for the last of
its helpers.  Less work is then worth sharing (``at_hand``).  Flags are hints: what counts, a call for helpers and the
end of their work, is in Python's queues.  No thread lingers where a call has more of them than there are processors,
where several threads call in turn, or for a while after a part that took so much longer than another that
something else must have had its processor.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from kinegrad._kernels.compiler.jit import JIT
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.waiting import linger

PART = 0.03  # seconds that a part should take
MOMENT = 200e-6  # seconds within which calls are in quick succession, and for which threads linger
_RELIEF = 0.1  # seconds for which threads do not linger after others have needed the processors
_SETTLE = 3e-6  # seconds that a caller who has called for helpers holds Python's lock
_MOST = 256  # helpers, whatever is asked for
_LEAST = 100e-6  # seconds of a part towards the end of a call: it takes a tenth of that to hand one out
_FEW = 16  # threads: of more, to ask each when it will be done would keep the others waiting

Flag = NDArray[np.int64]

Task = Callable[[int, int, int], None]


class Call:
    """The parts of one call: `lines` times `rows` rows, for a task of (line, first row, row after the last).

    Parameters
    ----------
    lines, rows : int
    first : int
        Rows of a part as long as nothing is known of how long they take.
    workers : int
        How many threads, with that of the caller, may be at it.
    """

    def __init__(self, lines: int, rows: int, first: int, workers: int) -> None:
        even = -(-rows * lines // workers)
        self._lines, self._rows, self._workers = lines if rows else 0, rows, workers
        self._size = whole_blocks(min(first, even))
        self._measured = False
        self._line = self._row = 0
        self._lock = threading.Lock()
        self._busy = 0
        self._left: SimpleQueue[None] = SimpleQueue()  # to wake the caller, who waits for the last of its helpers
        self._task: Task | None = None
        self._error: BaseException | None = None
        self._over = _flag()  # raised by the last of its helpers
        self._lingers = False  # whether its threads wait without going to sleep
        self._pace = math.inf  # seconds per row of the fastest part
        self._paces: dict[int, float] = {}  # of the last part of each thread
        self._taken: dict[int, tuple[float, int]] = {}  # when each thread took its last part, and how many rows
        self._stopped = False  # no part is handed out any more
        self.cancelled = False  # nor is one that is running wanted

    def run(self, task: Task, *, alone_first: bool = False) -> None:
        """Do all parts, or those until `stop` is called; an exception of any part is raised here.

        With `alone_first` helpers are woken after the first part only: where it may compile, and the caller is to be
        free to leave on Ctrl-C, nobody else should have to wait for the compiler.
        """
        self._task = task
        try:
            self._lingers = self._workers > 1 and can_linger(self._workers)
            part = self._take()
            if alone_first and part is not None:
                self._do(task, part)
                part = self._take()
            if part is not None and self._workers > 1 and self._line < self._lines:
                _wake(self, self._workers - 1)
            while part is not None:
                self._do(task, part)
                part = self._take()
            self._wait()
        except BaseException:
            self._stopped = self.cancelled = True
            self._wait_whatever_comes()
            raise
        finally:
            self._task = None  # what is still queued holds no arrays
            note_end()
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # whose frames hold arrays, and this call

    def stop(self) -> None:
        """Hand out no more parts: one has failed, and those before it, where an earlier failure may be, are taken."""
        self._stopped = True

    def help(self) -> tuple[bool, Flag]:
        """What a helper does for a call; returns whether to linger after it, and the flag to raise then."""
        over = _UNSEEN
        with self._lock:
            task = self._task
            if self._stopped or task is None:
                return self._lingers, over
            self._busy += 1
        try:
            while not _closed and (part := self._take()):
                self._do(task, part)
        except BaseException as error:  # to be raised where the call was made
            self._error = self._error or error
            self._stopped = self.cancelled = True
        finally:
            del task
            with self._lock:
                self._busy -= 1
                if not self._busy:
                    over = self._over
            self._left.put(None)
        return self._lingers, over

    def _take(self) -> tuple[int, int, int] | None:
        with self._lock:
            if self._stopped or self._line == self._lines:
                self._stopped = True
                return None
            line, start = self._line, self._row
            size = self._size
            rest = (self._lines - line) * self._rows - start
            if self._measured and self._workers > 1 and rest < 2 * self._workers * size:  # the end is near
                size = min(size, whole_blocks(max(self._share(rest), int(_LEAST / self._pace))))
            stop = min(start + size, self._rows)
            self._taken[threading.get_ident()] = perf_counter(), stop - start
            self._line, self._row = (line, stop) if stop < self._rows else (line + 1, 0)
            return line, start, stop

    def _share(self, rest: float) -> int:
        """How many of the rows that are left this thread is to take, so that all threads end together."""
        if self._workers > _FEW:
            return int(rest / self._workers)
        now, me = perf_counter(), threading.get_ident()
        speed = {thread: 1.0 / self._paces.get(thread, self._pace) for thread in {me, *self._taken}}
        for thread, (began, rows) in self._taken.items():
            if thread != me:
                rest += max(rows - (now - began) * speed[thread], 0)
        total = sum(speed.values()) + (self._workers - len(speed)) / self._pace
        return int(rest * speed[me] / total)

    def _do(self, task: Task, part: tuple[int, int, int]) -> None:
        began = perf_counter()
        task(*part)
        took = max(perf_counter() - began, 1e-6)
        rows = part[2] - part[1]
        if took > 2 * rows * self._pace + MOMENT:
            _note_crowd()
        self._paces[threading.get_ident()] = took / rows
        self._pace = min(self._pace, took / rows)
        self._size = whole_blocks(min(int(rows * PART / took), 8 * rows))
        self._measured = True

    def _wait(self) -> None:
        if self._busy and self._lingers:
            linger(_UNSEEN, self._over, int(MOMENT * _rate), 0)
        while self._busy:
            try:
                self._left.get(timeout=0.5)  # again after a while: an interrupt may have taken what would wake us
            except Empty:
                continue

    def _wait_whatever_comes(self) -> None:
        """Wait for parts that are running, through further interrupts, the last of which is then raised."""
        late: BaseException | None = None
        while True:
            try:
                with self._lock:
                    busy = self._busy  # which can only sink from now on
                if not busy:
                    break
                self._wait()
            except BaseException as error:
                late = error
        if late is not None:
            raise late


def _flag() -> Flag:
    """A flag, far from all else in memory: what is near is slow to write to while others look at the flag."""
    return np.zeros(33, np.int64)[16:17]


def whole_blocks(rows: int) -> int:
    """At least one, and so many rows rounded up to whole blocks of lanes."""
    return max(-(-rows // WIDTH), 1) * WIDTH


_queue: SimpleQueue[Call | None] = SimpleQueue()
_lock = threading.Lock()
_helpers: list[threading.Thread] = []
_resting: dict[int, Flag] = {}  # helpers that wait, awake or asleep, and the flags that call them; the latest last
_closed = False
_ended = _crowded = -math.inf  # when the latest call ended, and when others last had our processors
_caller = 0  # the thread whose call has ended
_rate = 0.0  # turns of `linger` per second, once it is known
_processors = 0  # likewise; none if there is no lingering
_UNSEEN = _flag()  # a flag that nobody waits for


# --- calls in quick succession ----------------------------------------------------------------------------------


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def note_end() -> None:
    """A call has ended that helpers may have been worth calling for."""
    global _ended, _caller
    _ended, _caller = perf_counter(), threading.get_ident()


def at_hand(workers: int) -> bool:
    """Whether helpers come at once to a call of at most so many threads: calls are in quick succession, and a helper is
    free.  (The first call of such a row wakes it.)"""
    return bool(_resting or not _helpers) and can_linger(workers)


def can_linger(workers: int) -> bool:
    """Whether threads of a call of so many are to linger: calls are in quick succession, and each has a processor."""
    if not (JIT and _soon()):
        return False
    if not _rate:
        measure()
    return workers <= _processors


def _soon() -> bool:
    """Whether the latest call was this thread's, a moment ago, with processors to itself."""
    now = perf_counter()
    return now - _ended < MOMENT and now - _crowded > _RELIEF and _caller == threading.get_ident()


def _note_crowd() -> None:
    """A part has taken so much longer than another that its processor must have been taken away."""
    global _crowded
    _crowded = perf_counter()


def measure() -> None:
    """How long a turn takes; compiles, or loads, what lingers.  If that fails, threads sleep."""
    global _rate, _processors
    turns, flag, seconds = 10_000, _flag(), math.inf
    try:
        for _ in range(3):
            began = perf_counter()
            linger(_UNSEEN, flag, turns, 0)
            seconds = min(seconds, perf_counter() - began)
        _processors = processors()
    except Exception:  # no memory, no place to keep what is compiled: whatever it is, calls can do without
        _processors = 0
    _rate = max(turns / max(seconds, 1e-9), 1.0)


# --- helpers ----------------------------------------------------------------------------------------------------


def _wake(call: Call, count: int) -> None:
    """Let so many helpers, or as many as there can be, take part in a call."""
    count = min(count, _MOST)
    with _lock:
        while len(_helpers) < count and not _closed:
            helper = threading.Thread(target=_serve, args=(_queue, _resting), name="kinegrad", daemon=True)
            try:
                helper.start()
            except RuntimeError:  # the process has as many as it may, or Python is shutting down
                break
            _helpers.append(helper)
        count = 0 if _closed else min(count, len(_helpers))
    for _ in range(count):
        _queue.put(call)
    for flag in list(_resting.values())[-count:] if count else ():
        flag[0] = 1


def _serve(queue: SimpleQueue[Call | None], resting: dict[int, Flag]) -> None:
    """The life of a helper."""
    me, flag, over, lingers = threading.get_ident(), _flag(), _UNSEEN, False
    while True:
        flag[0] = 0
        resting[me] = flag
        if lingers:
            linger(over, flag, int(MOMENT * _rate) if queue.empty() else 0, int(_SETTLE * _rate))
        call = queue.get()
        resting.pop(me, None)
        if call is None:
            break
        lingers, over = call.help()
        del call  # or it would live until the next one comes
    queue.put(None)  # for the others, also one that was started but not noted, because of an interrupt


def _close() -> None:
    """Before Python takes modules apart: no helper may still be in compiled code."""
    global _closed
    _closed = True
    with _lock:
        _queue.put(None)
        for helper in _helpers:
            helper.join()
        _helpers.clear()


def _forget() -> None:
    """In a forked child, which has none of its parent's threads, and perhaps other processors."""
    global _queue, _lock, _resting, _rate
    _queue, _lock, _resting, _rate = SimpleQueue(), threading.Lock(), {}, 0.0
    _helpers.clear()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
