"""``kinegrad compile``: kernels compiled before they are needed."""

from __future__ import annotations

from typing import Annotated

import typer

from kinegrad.cli.console import open_console, with_progress
from kinegrad.papers.report.page import duration

__all__ = ["compile_command"]


def compile_command(
    functions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FUNCTION]...", help="Functions, such as inverse_dynamics; by default all."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(metavar="N", help="Number of parallel processes; by default one for each processor.")
    ] = None,
) -> None:
    """Compile kernels before they are needed, in parallel; they are kept for all programs of this user."""
    from kinegrad.warm import compile_kernels

    found = with_progress(
        lambda show: compile_kernels(
            functions or None, processes=processes, progress=lambda _, done, total: show("compiling", done, total)
        )
    )
    open_console().print(f"{len(found.labels)} kernels compiled or found in {duration(found.seconds)}")
