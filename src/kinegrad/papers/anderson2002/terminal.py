"""The findings of [anderson2002] for a terminal."""

from __future__ import annotations

from kinegrad.papers.anderson2002.reproduction import Report
from kinegrad.papers.report.page import duration
from kinegrad.papers.report.summary import Summary, Table

__all__ = ["summary"]

SHOWN = (2, 8, 24, 64, 512)  # degrees of freedom


def summary(report: Report) -> Summary:
    """Times on chains, deviations on the double pendulum, and the findings in words."""
    sizes = [n for n in dict.fromkeys(row.n for row in report.timings) if n in SHOWN]
    seconds = {(row.method, row.n): row.seconds for row in report.timings}
    times = Table(
        "chains: time of accelerations and their derivatives with respect to 4 parameters, one state",
        ["method"],
        [*(f"n = {n}" for n in sizes), "exponent", "order"],
        [
            [
                fit.method,
                *(duration(seconds[fit.method, n]) if (fit.method, n) in seconds else "" for n in sizes),
                f"{fit.exponent:.2f}",
                str(fit.order),
            ]
            for fit in report.exponents
        ],
    )
    curves = Table(
        "double pendulum, 20 s: deviations from fully recursive sensitivities of its kinetic energy",
        ["parameter", "method"],
        ["largest dT/dp", "largest deviation", "relative", "at t, s"],
        [
            [
                row.parameter, row.method,
                f"{row.largest_value:.4g}", f"{row.largest:.2g}", f"{row.relative:.1e}", f"{row.at:.2f}",
            ]
            for row in report.deviations
        ],
    )  # fmt: skip
    return Summary([times, curves], [f"• {words}" for words in report.findings])
