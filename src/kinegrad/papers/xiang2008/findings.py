"""What :mod:`kinegrad.papers.xiang2008` has found, in sentences without markup, for page and terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kinegrad.papers.xiang2008.cost import FORMULATIONS, growth
from kinegrad.papers.xiang2008.experiment import Run

if TYPE_CHECKING:
    from kinegrad.papers.xiang2008 import Report

__all__ = ["PUBLISHED", "findings", "run_of"]

PUBLISHED = {1: 0.3934, 2: 0.520}  # s


def findings(report: Report) -> Iterator[str]:
    """Sentences, the most important ones first."""
    yield _first(report)
    yield _limits(report)
    yield _second(report)
    yield _hessians(report)
    yield _minima(report)
    yield _formulations(report)
    yield (
        f"Sensitivities at the optimum of example 2, by the recursive Lagrangian and in closed form, differ by "
        f"{report.difference:.1e} of the largest one: rounding. The paper says that they match quite closely."
    )


def run_of(report: Report, example: int, segments: int = 20, nodes: int = 2, **wanted: str) -> Run | None:
    """The run with these settings, the first of them; None if there is none."""
    wanted = {"solver": "ipopt", "hessian": "exact", "gradient": "exact"} | wanted
    for run in report.runs:
        if (run.example, run.segments, run.nodes) == (example, segments, nodes) and all(
            getattr(run, name) == value for name, value in wanted.items()
        ):
            return run
    return None


def _first(report: Report) -> str:
    T, exact = report.example1.duration, report.exact.final_time
    sweep = report.starts
    least, most = f"{sweep.least:.5f}", f"{sweep.most:.5f}"
    spread = f"= {least}" if least == most else f"from {least} to {most}"
    return (
        f"Example 1, the least time: T = {T:.5f} s with 20 segments and torques limited at the knots and between "
        "them; published 0.3934 s. The optimum without splines switches torques between their limits three times and "
        f"takes {exact:.8f} s. {sweep.converged} of {sweep.starts} starts, straight lines with noise, ended at an "
        f"optimum, with T {spread} s."
    )


def _limits(report: Report) -> str:
    knots, between = run_of(report, 1, 20, 1), run_of(report, 1, 20, 2)
    fewer = run_of(report, 1, 19, 1)
    if knots is None or between is None or fewer is None:
        return "The discretisations were not run."
    return (
        f"What T is depends on where torques are limited: at the knots alone {knots.final_time:.5f} s, but then "
        f"torques exceed their limit by {100 * knots.excess:.2g} % between them; with the middle of each segment "
        f"{between.final_time:.5f} s and {100 * between.excess:.2g} %. With 22 control points, as the paper says, "
        f"there are 19 segments: {fewer.final_time:.5f} s. All are below the published one, and above the true optimum."
    )


def _second(report: Report) -> str:
    knots = run_of(report, 2, 20, 1)
    at_knots = f", {knots.final_time:.5f} s with limits at the knots alone" if knots is not None else ""
    return f"Example 2, lifting with a load: T = {report.example2.duration:.5f} s{at_knots}; published 0.520 s."


def _hessians(report: Report) -> str:
    exact, limited = run_of(report, 2), run_of(report, 2, hessian="limited-memory")
    sqp = run_of(report, 2, solver="uno")
    if exact is None or limited is None:
        return "Second derivatives were not compared."
    words = f"{limited.iterations} iterations with a limited-memory one ({limited.status})"
    with_sqp = f", {sqp.iterations} of filter SQP" if sqp is not None else ""
    return (
        f"With the exact Hessian example 2 takes {exact.iterations} iterations of an interior-point method{with_sqp}, "
        f"against {words}."
    )


def _minima(report: Report) -> str:
    listed = ", ".join(
        f"T = {one.final_time:.4f} s (J = {one.objective:.4f}, {one.starts} start{'s' if one.starts > 1 else ''})"
        for one in report.minima
    )
    return (
        f"Example 2 has local minima: {sum(one.starts for one in report.minima)} of the starts with noise ended at an "
        f"optimum, and the distinct ones are {listed}."
    )


def _formulations(report: Report) -> str:
    exponents = {name: growth(report.costs, name) for name in FORMULATIONS}
    said = "; ".join(f"{name} as n^{x:.1f} (order {FORMULATIONS[name][1]})" for name, x in exponents.items())
    n = max(row.n for row in report.costs if row.formulation == "regular, torques")
    regular, recursive = (
        next(row.seconds for row in report.costs if (row.formulation, row.n) == (f"{kind}, torques", n))
        for kind in ("regular", "recursive")
    )
    off = max(row.difference for row in report.costs)
    return (
        f"The regular Lagrangian equations, (6) to (11), and the recursive ones give the same torques and "
        f"sensitivities to {off:.1e}. Their times grow: {said}. At n = {n} the regular equations take "
        f"{regular / recursive:.0f} times as long as the recursive ones, at n = 2 about as long; the paper says so too."
    )
