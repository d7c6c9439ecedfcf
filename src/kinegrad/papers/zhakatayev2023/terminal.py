"""The findings of [zhakatayev2023] for a terminal."""

from __future__ import annotations

from kinegrad.papers.report.page import duration
from kinegrad.papers.report.summary import Summary, Table
from kinegrad.papers.zhakatayev2023.reproduction import Report

__all__ = ["summary"]


def summary(report: Report) -> Summary:
    """Errors of six sensitivities and of all entries, and what the methods cost."""
    exact = "exactly zero" if report.zeros_exact else "not exactly zero"
    curves = Table(
        "six sensitivities, numerical against analytic; joints from 1, as in the paper",
        ["entry", "method"],
        ["largest value", "RMS error", "largest error", "at t, s"],
        [
            [
                f"∂Q{row.torque}/∂{row.by}{row.joint}", row.method,
                f"{row.largest_value:.4g}", f"{row.rms:.2g}", f"{row.largest:.3g}", f"{row.at:.2f}",
            ]
            for row in report.curves
        ],
    )  # fmt: skip
    matrices = Table(
        f"all {report.entries} entries of each matrix",
        ["matrix", "method"],
        ["instants", "largest RMS error", "median", "largest entry"],
        [
            [
                f"∂Q/∂{row.by}", row.method.replace("_", ", "),
                str(row.instants), f"{row.largest:.2g}", f"{row.median:.2g}", f"{row.largest_value:.4g}",
            ]
            for row in report.matrices
        ],
        note=f"{report.zeros} are zero by topology; the analytic ones are {exact} there",
    )  # fmt: skip
    costs = Table(
        "time for the three matrices",
        ["method", "threads", "how"],
        [f"{report.instants} instants"],
        [
            [row.what, str(row.threads or ""), _how(row.measured, report.instants), duration(row.seconds)]
            for row in report.timings
        ],
    )
    return Summary([curves, matrices, costs], [report.spike_statement])


def _how(measured: int | None, instants: int) -> str:
    """Where the time of a method comes from."""
    if not measured:
        return "quoted"
    return "measured" if measured == instants else f"scaled to {instants} instants from {measured}"
