"""``kinegrad predict``: a motion predicted, as a page that plays it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kinegrad.cli.console import known_name, open_console, plain, print_section, text_table

__all__ = ["predict"]

NAMES = (
    "two-link-time-optimal", "two-link-lifting", "sagittal-lift", "human43-lift", "human43-lift-aside", "human43-step",
    "five-bar",
)  # fmt: skip


def predict(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"A motion: {', '.join(NAMES)}.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the page, figures and numbers; by default out/NAME.")
    ] = None,
    solver: Annotated[str, typer.Option(help="ipopt, uno, slsqp (small problems) or cyipopt.")] = "ipopt",
) -> None:
    """Predict a motion: solve its problem, check it between the nodes, and write a page that plays it.

    two-link-time-optimal, two-link-lifting: the arm of xiang2008.

    sagittal-lift: bend and lift in the sagittal plane, after kudruss2019.

    human43-lift, human43-lift-aside, human43-step: the 43-joint human lifts a box, ahead or to one side, and walks.

    five-bar: a closed loop.
    """
    chosen = known_name("motion", name, NAMES)
    from kinegrad.papers.report.motion_page import predict as run
    from kinegrad.predictions import prediction

    def stage(what: str, done: int, total: int) -> None:
        if not done:
            print(f"{'writing the page' if what == 'page' else what} …", file=sys.stderr, flush=True)

    report = run(prediction(chosen), out or Path("out", chosen), solver=solver, progress=True, stages=stage)
    solution, console = report.solution, open_console()
    console.print(plain(solution.problem.describe()))
    table = text_table(["between the nodes", "where"], ["excess", "tolerance"])
    for one in solution.between:
        table.add_row(*map(plain, (one.family, f"{one.row}, {one.phase}", f"{one.value:.2e}", f"{one.tolerance:g}")))
    print_section(console, "checked on a grid ten times as fine", table)
    console.print(plain(report.verified))
    console.print(plain(f"{solution.message}; {solution.iterations} iterations, {report.seconds:.2f} s"))
    console.print(f"T = {solution.duration:.5f} s")
    console.print(f"page: {plain(report.page)}", soft_wrap=True)
    if not solution.success:
        raise typer.Exit(1)
