"""Compilation on a thread of its own, which interrupts do not reach.

Python raises KeyboardInterrupt in the main thread, between any two of its steps.  In the midst of Numba and LLVM that
leaves half-made code behind, and where Python cannot raise it, in destructors and callbacks, it is lost.  So callers
hand their work to a helper thread and wait.  An interrupt ends the wait at once; the work goes on, and the next call
finds it done, or waits for the rest of it.

Each piece of work holds Numba's own lock of the compiler from beginning to end.  That makes three things simple:

- A thread that holds the lock is compiling already (kernels call other compiled functions), and works on by itself.
- A fork waits for the lock, so that no child begins with a compiler that stopped half-way in a thread it does not
  have.  To make the lock anew in the child would not do: LLVM has locks of its own, and data that is half changed.
- At exit the main thread takes the lock and keeps it, so that no thread is inside LLVM when its static objects are
  destroyed, which would be a crash.

The waiting side uses only what an interrupt cannot leave in a bad state: single calls into C.
"""

import _thread
import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from queue import SimpleQueue

from numba.core.compiler_lock import global_compiler_lock

_POLL = 0.1  # seconds, after which the waiting thread looks for signals that have not woken it: another thread got them
_NOTICE_AFTER = 1.0  # seconds
_jobs: SimpleQueue = SimpleQueue()
_helpers: dict[str, int] = {}  # the thread that serves, once there is one
_held = False  # the lock of the compiler, by a fork
_interrupted = False  # during a fork
_handler = None  # of interrupts, which is put aside during a fork
_ending = False


class _Job:
    """Work for the helper, and what came of it."""

    def __init__(self, work, arguments):
        self.work, self.arguments = work, arguments
        self.result = self.error = None
        self.finished = _thread.allocate_lock()
        self.finished.acquire()

    def run(self):
        try:
            with global_compiler_lock:
                self.result = self.work(*self.arguments)
        except BaseException as error:
            self.error = error
        self.arguments = None  # arrays of the caller
        self.finished.release()


def inside() -> bool:
    """Whether this thread is compiling already."""
    return global_compiler_lock.is_locked()


def run(work, *arguments):
    """``work(*arguments)`` on the helper thread; on this one where it is compiling already, or no thread can start."""
    if inside() or not _helper_serves():
        return work(*arguments)
    job = _Job(work, arguments)
    _jobs.put(job)
    while not job.finished.acquire(timeout=_POLL):
        pass
    if job.error is not None:
        raise job.error
    return job.result


def _helper_serves() -> bool:
    """Start the helper if there is none.  Of several started at once all but the first leave by themselves."""
    if _ending:
        return False
    if not _helpers:
        try:
            _thread.start_new_thread(_serve, (_jobs,))
        except RuntimeError:  # the process may have no more threads, or is about to end
            return False
    return True


def _serve(jobs):
    here = _thread.get_ident()
    if _helpers.setdefault("helper", here) == here:
        while not _ending:
            jobs.get().run()


# --- fork and exit --------------------------------------------------------------------------------------------------


def _before_fork():
    """Wait until nobody compiles.

    Python only prints what handlers of forks raise, ours and those of `logging` and others.  Interrupts from here on
    are therefore noted, and handed on afterwards; also those that come during the fork itself, which takes a while.
    """
    global _held, _interrupted, _handler
    mine = False
    while True:
        try:
            if not mine and inside():  # it compiles itself: the lock is not ours to take, nor to release
                return
            mine = True
            if _handler is None and _thread.get_ident() == threading.main_thread().ident:
                handler = signal.getsignal(signal.SIGINT)
                _handler = handler if callable(handler) else None
            if _handler is not None:
                signal.signal(signal.SIGINT, _note)
            while not inside():  # an interrupt may come just after the lock
                global_compiler_lock.acquire()
            _held = True
            return
        except KeyboardInterrupt:
            _interrupted = True


def _note(number, frame):
    global _interrupted
    _interrupted = True


def _after_fork_in_parent():
    global _interrupted
    try:
        _release()
        _raise_again()
    except KeyboardInterrupt:  # just after
        _interrupted = True
    if _interrupted:
        _interrupted = False
        _thread.start_new_thread(_interrupt_again, ())


def _interrupt_again():
    """By another thread, and a moment later, when the handlers of the fork have returned."""
    time.sleep(_POLL)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def _after_fork_in_child():
    global _jobs, _interrupted
    _jobs, _interrupted = SimpleQueue(), False
    _helpers.clear()
    _release()
    _raise_again()


def _raise_again():
    """Interrupts, from here on."""
    global _handler
    if _handler is not None:
        handler, _handler = _handler, None
        signal.signal(signal.SIGINT, handler)


def _release():
    global _held
    if _held:
        _held = False
        global_compiler_lock.release()


def _before_exit():
    """Take the lock of the compiler and keep it; who interrupts this wait wants the program to end at once."""
    global _ending
    _ending = True
    lock = global_compiler_lock._lock
    try:
        if not lock.acquire(timeout=_NOTICE_AFTER):
            _say_why_waiting()
            lock.acquire()
    except BaseException as error:
        _end_at_once(error)
    if getattr(sys, "last_type", None) is KeyboardInterrupt and not hasattr(sys, "ps1"):
        # Python ends by SIGINT after an interrupt that nobody caught, unless code from text has run since then,
        # as Numba's has on the helper thread: so once more, from text.
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


def _end_at_once(error):
    """Without destructors, as a thread is inside LLVM; after an interrupt, by that signal, as shells expect."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    os._exit(error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1)


def _say_why_waiting():
    if not os.environ.get("KINEGRAD_QUIET"):
        print("kinegrad: a compilation has to end before the program can (Ctrl-C: at once)", file=sys.stderr)


atexit.register(_before_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
