"""Long calls in short parts, shared with worker threads.

A call is rows of work, independent of one another, that the caller and its helpers take part by part.  A part takes a
fraction of a second, so that Ctrl-C, which Python delivers between two of them, is not kept waiting.  What is promised:

- When a call ends, with a result or with an exception, none of its parts is running or will ever run.
- Where no thread can be started (process limits, interpreter shutdown), the caller does the work alone.
- A forked child has a pool of its own.
- Parts begin at multiples of the lane width, and so give the same bits however they are cut.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import perf_counter

from kinegrad._kernels.compiler.width import WIDTH

PART = 0.03  # seconds that a part should take
_MOST = 256  # helpers, whatever is asked for

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
        self._stopped = False  # no part is handed out any more
        self.cancelled = False  # nor is one that is running wanted

    def run(self, task: Task, *, alone_first: bool = False) -> None:
        """Do all parts, or those until `stop` is called; an exception of any part is raised here.

        With `alone_first` helpers are woken after the first part only: where it may compile, and the caller is to be
        free to leave on Ctrl-C, nobody else should have to wait for the compiler.
        """
        self._task = task
        try:
            if alone_first and (part := self._take()):
                self._do(task, part)
            if self._workers > 1 and not self._stopped:
                _wake(self, self._workers - 1)
            while part := self._take():
                self._do(task, part)
            self._wait()
        except BaseException:
            self._stopped = self.cancelled = True
            self._wait_whatever_comes()
            raise
        finally:
            self._task = None  # what is still queued holds no arrays
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # whose frames hold arrays, and this call

    def stop(self) -> None:
        """Hand out no more parts: one has failed, and those before it, where an earlier failure may be, are taken."""
        self._stopped = True

    def help(self) -> None:
        """What a worker does for a call."""
        with self._lock:
            task = self._task
            if self._stopped or task is None:
                return
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
            self._left.put(None)

    def _take(self) -> tuple[int, int, int] | None:
        with self._lock:
            if self._stopped or self._line == self._lines:
                self._stopped = True
                return None
            line, start = self._line, self._row
            size = self._size
            if self._measured and self._workers > 1:  # smaller ones towards the end, so that all end together
                rest = (self._lines - line) * self._rows - start
                size = min(size, whole_blocks(max(-(-rest // self._workers), size // 4)))
            stop = min(start + size, self._rows)
            self._line, self._row = (line, stop) if stop < self._rows else (line + 1, 0)
            return line, start, stop

    def _do(self, task: Task, part: tuple[int, int, int]) -> None:
        began = perf_counter()
        task(*part)
        took = max(perf_counter() - began, 1e-6)
        rows = part[2] - part[1]
        self._size = whole_blocks(min(int(rows * PART / took), 8 * rows))
        self._measured = True

    def _wait(self) -> None:
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


def whole_blocks(rows: int) -> int:
    """At least one, and so many rows rounded up to whole blocks of lanes."""
    return max(-(-rows // WIDTH), 1) * WIDTH


_queue: SimpleQueue[Call | None] = SimpleQueue()
_lock = threading.Lock()
_helpers: list[threading.Thread] = []
_closed = False


def _wake(call: Call, count: int) -> None:
    """Let so many helpers, or as many as there can be, take part in a call."""
    count = min(count, _MOST)
    with _lock:
        while len(_helpers) < count and not _closed:
            helper = threading.Thread(target=_serve, args=(_queue,), name="kinegrad", daemon=True)
            try:
                helper.start()
            except RuntimeError:  # the process has as many as it may, or Python is shutting down
                break
            _helpers.append(helper)
        count = 0 if _closed else min(count, len(_helpers))
    for _ in range(count):
        _queue.put(call)


def _serve(queue: SimpleQueue[Call | None]) -> None:
    while (call := queue.get()) is not None:
        call.help()
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
    """In a forked child, which has none of its parent's threads."""
    global _queue, _lock
    _queue, _lock = SimpleQueue(), threading.Lock()
    _helpers.clear()


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
