"""How many tasks are done: told to a function, or shown on stderr, as a bar on a terminal or line by line elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kinegrad.errors import InputError, shown
from kinegrad.motion.sweeps.tasks import Finished

__all__ = ["telling"]


@contextmanager
def telling(progress: Any, what: str) -> Iterator[Finished | None]:
    """A function to call with each result; what is shown is closed however it ends."""
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    elif progress is not True:
        raise InputError(f"`progress` is {shown(progress)}; expected True, or a function (done, of, last result)")
    elif sys.stderr is None or not sys.stderr.isatty():
        output = sys.stderr

        def write(done: int, total: int, result: Mapping[str, Any]) -> None:
            if output is not None:
                print(f"{what}: {done} of {total}: {_line(result)}", file=output, flush=True)

        yield write
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, TextColumn("{task.fields[last]}"), console=Console(stderr=True)) as bars:
            task = bars.add_task("", total=None, last="")
            yield lambda done, total, result: bars.update(task, completed=done, total=total, last=_line(result))


def _line(result: Mapping[str, Any]) -> str:
    """A result in a few words."""
    if result.get("status") == "error":
        return str(result.get("message"))[:100]
    value = result.get("objective")
    objective = "-" if value is None else f"{value:.6g}"
    return f"{result.get('status')}, objective {objective}, {result.get('iterations')} iterations"
