"""Many calls of one function, here or anywhere: on any executor, with retries, progress, and results as they arrive.

An executor is what has ``submit(function, *arguments)`` and gives futures: those of concurrent.futures, or a Client of
Dask, whose workers may be on other machines.  What a call raises is its result, since it would raise the same
elsewhere.  What a future raises is not of the call but of what runs it, a worker that was lost mostly: the call is
submitted again.  A result counts once, however often its call was run.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kinegrad.errors import InputError, SolveError, said, shown
from kinegrad.motion.sweeps.records import Records

__all__ = ["Finished", "failure", "run_tasks"]

Finished = Callable[[int, int, Mapping[str, Any]], None]
WAIT = 0.2  # s, after which a wait looks whether Ctrl-C has come


def run_tasks(
    function: Callable[..., Mapping[str, Any]],
    tasks: Mapping[str, Sequence[Any]],
    *,
    executor: Any = None,
    records: Records | None = None,
    retries: int = 3,
    finished: Finished | None = None,
) -> dict[str, Any]:
    """The results of ``function(*arguments)`` for all tasks, by their keys, in the order of the tasks.

    Parameters
    ----------
    function : callable
        Gives a mapping, as JSON has it.
    tasks : mapping of str to sequence
        Arguments by key.
    executor : optional
        None calls the function here, one task after the other.
    records : Records, optional
        Open; tasks that it has are not run again, and results are added to it as they arrive.
    retries : int
        How often a task is submitted again.
    finished : callable, optional
        Is told how many are done, of how many, and the last result.

    Raises
    ------
    SolveError
        If tasks were lost more often than that; all others have been finished, and are in the records.
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        found = f"`executor` is {shown(executor)}"
        raise InputError(f"{found}; expected a concurrent.futures.Executor, a dask.distributed.Client, or None")
    results: dict[str, Any] = {}
    known = records.found if records is not None else {}

    def take(key: str, result: Mapping[str, Any]) -> None:
        if key in results:
            return
        if records is not None and key not in known:
            records.add(key, result)
        results[key] = records.found[key] if records is not None else result
        if finished is not None:
            finished(len(results), len(tasks), results[key])

    for key in tasks:
        if key in known:
            take(key, known[key])
    left = {key: arguments for key, arguments in tasks.items() if key not in results}
    if executor is None:
        for key, arguments in left.items():
            take(key, _result(function, *arguments))
    elif left:
        _distribute(function, left, executor, retries, take)
    return {key: results[key] for key in tasks}


def _result(function: Callable[..., Mapping[str, Any]], *arguments: Any) -> Mapping[str, Any]:
    """What a call gives, or raises, as a result."""
    try:
        return function(*arguments)
    except Exception as error:
        return failure(error)


def failure(error: Exception) -> dict[str, Any]:
    """An error as a result."""
    return {"status": "error", "error": type(error).__name__, "message": said(error)}


def _distribute(
    function: Callable[..., Mapping[str, Any]],
    tasks: Mapping[str, Sequence[Any]],
    executor: Any,
    retries: int,
    take: Callable[[str, Mapping[str, Any]], None],
) -> None:
    arrived: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    waiting: dict[str, Any] = {}
    attempts = dict.fromkeys(tasks, 0)
    lost: dict[str, BaseException] = {}

    def submit(key: str) -> None:
        attempts[key] += 1
        try:
            future = executor.submit(_result, function, *tasks[key], **_options(executor))
        except Exception as error:  # a pool that is broken takes no more
            lost[key] = error
            return
        waiting[key] = future
        future.add_done_callback(lambda done: arrived.put((key, done)))

    try:
        for key in tasks:
            submit(key)
        while waiting:
            try:
                key, ended = arrived.get(timeout=WAIT)
            except queue.Empty:
                continue
            if key not in waiting or waiting[key] is not ended:
                continue
            del waiting[key]
            try:
                result = ended.result()
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # of whatever runs tasks: CancelledError is no Exception
                if attempts[key] <= retries:
                    submit(key)
                else:
                    lost[key] = error
                continue
            take(key, result)
    finally:
        for future in waiting.values():  # after an error or Ctrl-C; of nothing, otherwise
            future.cancel()
    if lost:
        key, reason = next(iter(lost.items()))
        what = said(reason) if isinstance(reason, Exception) else type(reason).__name__
        raise SolveError(
            f"{len(lost)} of {len(tasks)} tasks were lost, {key!r} among them: {what}; the others have been finished"
        )


def _options(executor: Any) -> dict[str, Any]:
    """Dask takes calls with equal arguments for one, unless it is told that they are not."""
    return {"pure": False} if type(executor).__module__.partition(".")[0] == "distributed" else {}
