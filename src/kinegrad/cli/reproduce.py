"""``kinegrad reproduce``: the experiments of a paper, as a page of figures and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinegrad.cli.console import known_name, open_console, plain, print_section, text_table, with_progress
from kinegrad.papers import PAPERS

__all__ = ["reproduce"]


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"A paper: {', '.join(PAPERS)}.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the page, figures and numbers; by default out/PAPER.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Shorter measurements and fewer cases: about a minute or less.")
    ] = False,
) -> None:
    """Reproduce a paper's experiment: its figures and tables, as one HTML page.

    zhakatayev2023: sensitivities of the 43-joint human, analytic and numerical, their errors and their cost.

    anderson2002: sensitivities to lengths and masses by three methods, on chains and on a double pendulum over time.

    kudruss2019: directional derivatives by differences, dual numbers and structure: errors and cost.

    xiang2008: motion prediction of a two-link arm: minimum time, and lifting a load.
    """
    from kinegrad.papers import load

    module = load(known_name("paper", paper, PAPERS))
    report = with_progress(module.reproduce, out or Path("out", paper), quick)
    console, summary = open_console(), module.summary(report)
    for table in summary.tables:
        body = text_table(table.words, table.numbers)
        for row in table.rows:
            body.add_row(*map(plain, row))
        print_section(console, table.title, body)
        if table.note:
            console.print(plain(table.note))
    console.print()
    for paragraph in summary.paragraphs:
        console.print(plain(paragraph))
    console.print(f"page: {plain(report.page)}", soft_wrap=True)
