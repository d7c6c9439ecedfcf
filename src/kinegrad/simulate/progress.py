"""How far a simulation has got: told to a function, or shown as a bar on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kinegrad.errors import InputError, shown

__all__ = ["telling"]


@contextmanager
def telling(progress: Any, first: float, last: float) -> Iterator[Callable[[float], None]]:
    """A function to call with the simulated time after each step; the bar closes however the simulation ends."""
    if progress is None or progress is False:
        yield lambda t: None
    elif progress is True:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        time = TextColumn("t = {task.fields[t]:.4g} of {task.fields[last]:.4g} s")
        columns = (TextColumn("simulating"), BarColumn(), TaskProgressColumn(), time, TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as bars:
            task = bars.add_task("", total=last - first, t=first, last=last)
            yield lambda t: bars.update(task, completed=t - first, t=t)
    elif callable(progress):
        yield lambda t: progress((t - first) / (last - first))
    else:
        raise InputError(f"`progress` is {shown(progress)}; expected True, or a function of the part done, 0 to 1")
