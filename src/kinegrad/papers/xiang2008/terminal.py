"""The findings of [xiang2008] for a terminal."""

from __future__ import annotations

from kinegrad.papers.report.summary import Summary, Table
from kinegrad.papers.xiang2008.experiment import Run
from kinegrad.papers.xiang2008.findings import PUBLISHED
from kinegrad.papers.xiang2008.reproduction import Report

__all__ = ["summary"]


def summary(report: Report) -> Summary:
    """The table of T, and the findings in words."""
    rows = [
        [
            f"{run.example}", f"{run.segments}, {'knots' if run.nodes == 1 else 'and middles'}", _how(run),
            f"{run.final_time:.5f}", f"{run.iterations}", f"{1000 * run.seconds:.0f} ms", f"{run.excess:.1e}",
            run.status,
        ]
        for run in report.runs
    ]  # fmt: skip
    table = Table(
        "final times",
        ["", "segments, limits at", "solver"],
        ["T, s", "iterations", "time", "excess", "status"],
        rows,
        note=f"published: {PUBLISHED[1]} s and {PUBLISHED[2]:.3f} s; without splines {report.exact.final_time:.6f} s",
    )
    return Summary([table], [f"• {words}" for words in report.findings])


def _how(run: Run) -> str:
    """Solver, and what it knows of derivatives, where that is not all."""
    parts = [run.solver]
    if run.hessian != "exact":
        parts.append(run.hessian)
    if run.gradient != "exact":
        parts.append(f"{run.gradient} differences")
    return ", ".join(parts)
