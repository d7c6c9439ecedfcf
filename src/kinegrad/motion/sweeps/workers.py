"""Where tasks run: processes of this machine, or the workers of a Dask scheduler anywhere."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from kinegrad import _engine as engine
from kinegrad.errors import InputError, said, shown

__all__ = ["LocalWorkers", "connected"]

PATIENCE = 10  # s, for a scheduler to answer


class LocalWorkers:
    """Processes of this machine, as an executor; those that die are replaced.

    concurrent.futures gives up a whole pool with its first lost process.  Here another one takes its place, so that
    tasks that are submitted again are run.  Ctrl-C, which a terminal sends to all processes, is left to this one: it
    raises KeyboardInterrupt here, and leaving the ``with`` statement by any exception ends the processes.

    Parameters
    ----------
    count : int
        Processes.

    Examples
    --------
    ``with LocalWorkers(4) as workers: multi_start(problem, 100, executor=workers)``, under
    ``if __name__ == "__main__":``, since processes are started anew and import the main script.
    """

    def __init__(self, count: int) -> None:
        self.count = engine.whole("count", count)
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        running = list((pool._processes or {}).values())
        manager: Any = pool._executor_manager_thread
        pool.shutdown(wait=kind is None, cancel_futures=True)
        if kind is not None:
            for process in running:
                process.terminate()
            if manager is not None:
                manager.join(PATIENCE)  # it drops what was cancelled as long as there is a pool

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Run ``function(*arguments)`` in one of the processes."""
        for _ in range(2):
            if self._pool is None:
                context = multiprocessing.get_context("spawn")  # threads of kernels do not survive a fork
                deaf = (signal.SIGINT, signal.SIG_IGN)
                self._pool = ProcessPoolExecutor(
                    self.count, mp_context=context, initializer=signal.signal, initargs=deaf
                )
            try:
                with _interrupts_later():  # processes are started here, and have this mask while they import
                    return self._pool.submit(function, *arguments, **named)
            except BrokenExecutor:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = None
        raise BrokenExecutor("processes end as soon as they are started")


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C waits until the end of the block, and is not heard by processes that are started in it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # which, when it starts, unblocks signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A Client of the Dask scheduler at an address, such as ``tcp://10.0.0.5:8786``; needs the extra ``dask``."""
    try:
        import distributed
    except ImportError:
        raise InputError("a scheduler needs the package 'distributed': pip install 'kinegrad[dask]'") from None
    if not isinstance(address, str) or not address.strip():
        raise InputError(f"`address` is {shown(address)}; expected one such as 'tcp://10.0.0.5:8786'")
    make: Any = distributed.Client
    try:
        client = make(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"the scheduler at {shown(address)} does not answer: {said(error)}") from None
    try:
        yield client
    finally:
        client.close()
