"""The findings of [kudruss2019] for a terminal."""

from __future__ import annotations

from kinegrad.papers.kudruss2019.effort import BOUNDS
from kinegrad.papers.kudruss2019.findings import effort_of
from kinegrad.papers.kudruss2019.reproduction import Report
from kinegrad.papers.kudruss2019.systems import CARTS, MODES
from kinegrad.papers.report.summary import Summary, Table

__all__ = ["summary"]


def summary(report: Report) -> Summary:
    """Errors and efforts of the modes, and the findings in words."""
    rows = {(row.cart, row.algorithm, row.mode): row for row in report.errors}
    names = dict.fromkeys((row.cart, row.algorithm) for row in report.errors)
    errors = Table(
        f"errors against closed forms: means over states, {report.samples} of them",
        ["cart", "algorithm"],
        [f"{name}, {mode}" for mode, name in MODES.items()],
        [[cart, name, *(f"{rows[cart, name, mode].level:.1e}" for mode in MODES)] for cart, name in names],
        note=f"{CARTS[1]}: of the states in which the box is within 60° of level",
    )
    k = max(row.directions for row in report.efforts)
    tasks = dict.fromkeys(row.task for row in report.efforts)
    efforts = Table(
        f"effort along {k} directions, in evaluations of the function",
        ["task"],
        [f"{name}, {mode}" for mode, name in MODES.items()],
        [[task, *(f"{effort_of(report.efforts, task, mode, k):.1f}" for mode in MODES)] for task in tasks]
        + [["the paper’s bound", *(f"{BOUNDS[mode](k):g}" for mode in MODES)]],
    )
    return Summary([errors, efforts], [f"• {words}" for words in report.findings])
