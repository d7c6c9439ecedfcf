"""How a solve goes: told to a function, or shown on stderr, on one line of a terminal or line by line elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kinegrad.errors import InputError, shown
from kinegrad.motion.nlp.solution import Iterate

__all__ = ["HEADER", "line", "telling"]

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
