"""How a solve goes: told to a function, or shown on stderr, on one line of a terminal or line by line elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kinegrad.errors import InputError, shown
from kinegrad.motion.nlp.solution import Iterate

__all__ = ["HEADER", "Counter", "counting", "line", "telling"]

HEADER = "iteration      objective  violation  optimality  seconds"


def line(iterate: Iterate) -> str:
    """An iteration in one line, under :data:`HEADER`.

    >>> line(Iterate(12, 0.392661, 3.2e-9, float("nan"), 0.05))
    '       12       0.392661    3.2e-09           -     0.05'
    """
    left = "-" if iterate.optimality != iterate.optimality else f"{iterate.optimality:.1e}"
    numbers = f"{iterate.violation:10.1e}  {left:>10}  {iterate.seconds:7.2f}"
    return f"{iterate.iteration:9d}  {iterate.objective:13.6g} {numbers}"


@contextmanager
def telling(progress: Any) -> Iterator[Callable[[Iterate], None]]:
    """A function to call with each iteration; what is shown is closed however the solve ends."""
    if progress is None or progress is False:
        yield lambda iterate: None
    elif callable(progress):
        yield progress
    elif progress is not True:
        raise InputError(f"`progress` is {shown(progress)}; expected True, or a function of an Iterate")
    elif sys.stderr is None or not sys.stderr.isatty():
        output = sys.stderr
        started = False

        def write(iterate: Iterate) -> None:
            nonlocal started
            if output is not None:
                print(*([] if started else [f"{HEADER}\n"]), line(iterate), sep="", file=output, flush=True)
                started = True

        yield write
    else:
        from rich.console import Console, Group
        from rich.live import Live
        from rich.text import Text

        with Live(Text(HEADER), console=Console(stderr=True), refresh_per_second=8) as live:
            yield lambda iterate: live.update(Group(Text(HEADER, style="dim"), Text(line(iterate))))


class Counter:
    """How many of `total` parts are done, told to a function after each."""

    def __init__(self, told: Callable[..., None] | None, total: int) -> None:
        self.done, self.total, self._told = 0, total, told

    def add(self, count: int) -> None:
        """Count parts that are done."""
        self.done += count
        if self._told is not None:
            self._told(self.done, self.total)


@contextmanager
def counting(progress: Any, what: str, said: Callable[..., str] | None = None) -> Iterator[Callable[..., None] | None]:
    """A function to call with how many parts are done, of how many, and what else `said` puts into words; or None.

    What is shown, a bar on a terminal or a line for each part elsewhere, is closed however it ends.
    """
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    elif progress is not True:
        arguments = "(done, of)" if said is None else "(done, of, last result)"
        raise InputError(f"`progress` is {shown(progress)}; expected True, or a function {arguments}")
    elif sys.stderr is None or not sys.stderr.isatty():
        output = sys.stderr

        def write(done: int, total: int, *last: Any) -> None:
            if output is not None:
                words = "" if said is None else f": {said(*last)}"
                print(f"{what}: {done} of {total}{words}", file=output, flush=True)

        yield write
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, TextColumn("{task.fields[last]}"), console=Console(stderr=True)) as bars:
            task = bars.add_task("", total=None, last="")

            def show(done: int, total: int, *last: Any) -> None:
                bars.update(task, completed=done, total=total, last="" if said is None else said(*last))

            yield show
