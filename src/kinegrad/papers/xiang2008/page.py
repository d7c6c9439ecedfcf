"""The page about :mod:`kinegrad.papers.xiang2008`: its tables and text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kinegrad.motion.problem import MotionSolution
from kinegrad.papers.report import page as report_page
from kinegrad.papers.report.animation import animation
from kinegrad.papers.report.misprints import misprints_section
from kinegrad.papers.report.motion_scene import scene_of
from kinegrad.papers.report.page import Page, Progress, duration, number, powers
from kinegrad.papers.xiang2008 import figures
from kinegrad.papers.xiang2008.cost import FORMULATIONS
from kinegrad.papers.xiang2008.experiment import Run, Sensitivity
from kinegrad.papers.xiang2008.findings import PUBLISHED, findings, run_of
from kinegrad.papers.xiang2008.misprints import MISPRINTS
from kinegrad.predictions.catalogue import prediction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kinegrad.papers.xiang2008 import Report

__all__ = ["write_page"]

LIMIT = 10.0  # N·m
# OpenSim Moco 4.6 by benchmarks/moco.py: mesh intervals, T, iterations, processor time; limited memory, 1e-6
MOCO = {1: ((20, 0.39273, 27, 0.92), (100, 0.39189, 26, 4.5)), 2: ((20, 0.51903, 19, 1.04), (100, 0.51886, 22, 4.1))}


def write_page(folder: Path, report: Report, sensitivity: Sensitivity, say: Progress) -> Report:
    """Write figures and page into a folder; the report with the figures' final paths."""
    makers = _makers(report, sensitivity)
    return report_page.write_page(folder, report, makers, lambda pictures: _page(report, pictures), say)


def _makers(report: Report, sensitivity: Sensitivity) -> dict[str, Callable[[], Figure]]:
    makers: dict[str, Callable[[], Figure]] = {}
    for solution, angles, torques, way in ((report.example1, 7, 8, 9), (report.example2, 11, 12, 13)):
        t, q, tau = _fine(solution)
        nodes, model = solution.motion.t, solution.problem.model
        makers[f"figure_{angles}_angles"] = lambda t=t, q=q: figures.plot_angles(t, q)  # type: ignore[misc]
        makers[f"figure_{torques}_torques"] = lambda t=t, tau=tau, nodes=nodes: figures.plot_torques(  # type: ignore[misc]
            t, tau, nodes, LIMIT
        )
        makers[f"figure_{way}_trajectory"] = lambda q=q, model=model: figures.plot_trajectory(model, q)  # type: ignore[misc]
    kinds: dict[str, dict[str, Any]] = {
        "exact Hessian": {}, "limited memory": {"hessian": "limited-memory"}, "filter SQP": {"solver": "uno"},
    }  # fmt: skip
    history: dict[str, Sequence[float]] = {}
    convergence: dict[str, Sequence[float]] = {}
    for name, wanted in kinds.items():
        for example, curves, what in ((1, history, "history"), (2, convergence, "distances")):
            run = run_of(report, example, **wanted)
            if run is not None:
                curves[name] = getattr(run, what)
    makers["figure_10_history"] = lambda: figures.plot_history(history, report.exact.final_time)
    makers["convergence"] = lambda: figures.plot_convergence(convergence)
    makers["costs"] = lambda: figures.plot_costs(report.costs)
    makers["figure_14_sensitivities"] = lambda: figures.plot_sensitivities(
        sensitivity.t, sensitivity.recursive, sensitivity.closed
    )
    return dict(sorted(makers.items(), key=lambda pair: _order(pair[0])))


def _order(name: str) -> int:
    return int(name.split("_")[1]) if name.startswith("figure_") else 99


def _fine(solution: MotionSolution) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    t = np.linspace(0.0, solution.duration, 401)
    motion = solution.motion(t)
    assert motion.tau is not None
    return t, motion.q, motion.tau


def _page(report: Report, pictures: dict[str, bytes]) -> Page:
    lead = (
        "How does an arm move from here to there in the least time, or with the least effort, within the limits of its "
        "motors? Both examples of Y. Xiang, J. S. Arora and K. Abdel-Malek, <i>Optimization-based motion prediction of "
        "mechanical systems: sensitivity analysis</i>, 2008, predicted again with kinegrad."
    )
    quick = "fewer starts, and fewer iterations without second derivatives." if report.quick else ""
    page = Page("Motions of an arm with the least time and the least effort (xiang2008)", lead, quick)
    page.numbers(
        [
            (f"{report.example1.duration:.5f} s", "least time of example 1; published 0.3934 s"),
            (f"{report.example2.duration:.5f} s", "of example 2, lifting with a load; published 0.520 s"),
            (f"{report.exact.final_time:.6f} s", "least time without splines, torques switched three times"),
            (number(report.difference), "between sensitivities by recursion and in closed form, relative"),
        ]
    )
    page.section("Findings", "findings")
    page.points([powers(words) for words in findings(report)])
    _example(page, report, pictures, 1)
    _example(page, report, pictures, 2)
    _table(page, report)
    _derivatives(page, report, pictures)
    _formulations(page, report, pictures)
    misprints_section(page, MISPRINTS, "Table 4")
    page.made(
        "By one command, with nothing entered by hand but the numbers of OpenSim Moco, which are quoted. All numbers "
        "are in <code>results.json</code>, all solves in <code>runs.csv</code>. A second run finds the same; times "
        "differ.",
        report.about,
    )
    return page


def _example(page: Page, report: Report, pictures: dict[str, bytes], example: int) -> None:
    solution = (report.example1, report.example2)[example - 1]
    name = ("two-link-time-optimal", "two-link-lifting")[example - 1]
    title = ("Example 1: the least time", "Example 2: lifting with a load")[example - 1]
    page.section(title, f"example{example}")
    page.paragraph(escape(prediction(name).text))
    first = 7 if example == 1 else 11
    scene = scene_of(solution, prediction(name).drawing)
    page.animation(animation(scene, "The motion", f"{solution.duration:.3f} s; slow it down to see more.", height=360))
    page.figure(pictures[f"figure_{first}_angles"], f"Figure {first}", "Joint angles.")
    page.figure(
        pictures[f"figure_{first + 1}_torques"], f"Figure {first + 1}",
        "Joint torques of the splines themselves; dots are where they are limited, dashed lines the limits."
        + (" The true optimum jumps from limit to limit; splines follow as they can." if example == 1 else ""),
    )  # fmt: skip
    page.figure(
        pictures[f"figure_{first + 2}_trajectory"],
        f"Figure {first + 2}",
        "The arm at equal steps of time; dashed: its tip.",
    )
    if example == 1:
        page.figure(
            pictures["figure_10_history"], "Figure 10",
            "Travel time by iteration, from a straight line of 0.5 s. On the way limits are not kept, so that it can "
            "be below the optimum. Dashed: the least time without splines.",
        )  # fmt: skip
    page.paragraph(
        "The paper integrated the torques forwards with a commercial code. Here: "
        + powers(report.verification[example - 1].message)
        + "."
    )


def _table(page: Page, report: Report) -> None:
    page.section("What T depends on", "times")
    page.paragraph(
        "A spline of degree 3 has accelerations that are straight lines, so its torques cannot jump as those of the "
        "true optimum do. Between two instants at which they are limited they may exceed the limit a little: a "
        "<i>T</i> with limits at the knots alone is too good by that. More segments approach the optimum. Moco limits "
        "controls at its mesh points and their middles."
    )
    rows, quoted = [], []
    for example in (1, 2):
        for run in (run for run in report.runs if run.example == example):
            rows.append(_row(run))
        for intervals, T, iterations, seconds in MOCO[example]:
            quoted.append(len(rows))
            rows.append([f"{example}", "OpenSim Moco", f"{intervals} mesh intervals", "collo&shy;cation",
                         "limited-memory", "differ&shy;ences", f"{T:.5f}", f"{iterations}", duration(seconds), "",
                         "optimal"])  # fmt: skip
        quoted.append(len(rows))
        time = ("1.07 s", "2.44 s")[example - 1]
        rows.append([f"{example}", "published", "20 segments, 22 control points", "", "SNOPT, SQP", "exact",
                     f"{PUBLISHED[example]:.4g}", "", time, "", ""])  # fmt: skip
    rows.append(["1", "without splines", "three switches", "at all times", "", "", f"{report.exact.final_time:.5f}", "",
                 "", "0", ""])  # fmt: skip
    page.table(
        ["example", "solver", "discreti&shy;sation", "limits at", "Hessian", "gradient", "<i>T</i>, s", "iterations",
         "time", "excess", "status"],
        rows, "Table 1",
        "Final times (<i>n</i> segments have <i>n</i> + 3 control points); iterations and processor time of "
        "the solve; the largest excess of a torque between the nodes, "
        "relative to its limit. Grey: others’ numbers, those of Moco by <code>benchmarks/moco.py</code> on one thread, "
        "the published ones at 1.4 GHz.",
        words=6, quoted=quoted,
    )  # fmt: skip
    rows = [[f"{one.final_time:.4f}", f"{one.objective:.5f}", f"{one.starts}"] for one in report.minima]
    page.table(
        ["<i>T</i>, s", "objective", "starts that end there"], rows, "Table 2",
        "Local minima of example 2, by <code>multi_start</code> from straight lines with noise. Which one a solver "
        "finds depends on where it begins; nothing but many starts tells.", words=0,
    )  # fmt: skip


def _row(run: Run) -> list[str]:
    return [
        f"{run.example}", escape(run.solver), f"{run.segments} segments",
        "knots" if run.nodes == 1 else "knots and middles", run.hessian, run.gradient, f"{run.final_time:.5f}",
        f"{run.iterations}", duration(run.seconds), number(run.excess), run.status,
    ]  # fmt: skip


def _derivatives(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Derivatives", "derivatives")
    page.paragraph(
        "The paper’s formulas for ∂<i>τ</i>/∂<b>q</b>, ∂<i>τ</i>/∂<b>q̇</b> and ∂<i>τ</i>/∂<b>q̈</b> by recursion, "
        "against the closed form of its appendix, along the optimum of example 2: they differ by "
        f"{number(report.difference)}."
    )
    page.figure(
        pictures["figure_14_sensitivities"], "Figure 14",
        "Sensitivities at the optimum: lines by the recursive Lagrangian, circles in closed form.",
    )  # fmt: skip
    page.paragraph(
        "Second derivatives decide how many iterations it takes. With the exact sparse Hessian of the Lagrangian, "
        "solvers end in a few steps; approximated from gradients it takes many more."
    )
    page.figure(
        pictures["convergence"], "Convergence of example 2",
        "Distance to the last iterate, by iteration (logarithmic from 10 on).",
    )  # fmt: skip


def _formulations(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Regular and recursive equations", "formulations")
    page.paragraph(
        "Section 3 of the paper writes torques as sums over all joints, (6) to (10), and their derivatives as (11); "
        "section 4 by recursion. The paper says that the former cost O(<i>n</i><sup>4</sup>), sensitivities more, and "
        "the latter O(<i>n</i>). Here both are plain compiled loops over 4×4 matrices, for one state of a spatial "
        "chain of hinges; they agree with kinegrad’s kernels to "
        f"{number(max(row.difference for row in report.costs))}."
    )
    page.figure(
        pictures["costs"], "Cost of the formulations",
        "Time of one state by degrees of freedom, with the exponent fitted to the larger half of sizes.",
        "Times on logarithmic axes: the recursive equations grow in proportion to n, the regular ones with the fourth "
        "power, their sensitivities still faster.",
    )  # fmt: skip
    sizes = sorted({row.n for row in report.costs})
    times = {(row.formulation, row.n): duration(row.seconds) for row in report.costs}
    rows = [[escape(name), *(times.get((name, n), "") for n in sizes)] for name in FORMULATIONS]
    page.table(
        ["formulation", *(f"{n}" for n in sizes)], rows, "Table 3", "Processor time of one state, best of seven."
    )
