"""The page about :mod:`kinegrad.papers.kudruss2019`: its tables and text."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from kinegrad.papers.kudruss2019 import effort, figures
from kinegrad.papers.kudruss2019.effort import BOUNDS, SOLVE
from kinegrad.papers.kudruss2019.findings import at_worst, disturbed_words, effort_of, evaluations_of, findings
from kinegrad.papers.kudruss2019.misprints import MISPRINTS
from kinegrad.papers.kudruss2019.systems import MODES, carts
from kinegrad.papers.report import page as report_page
from kinegrad.papers.report.animation import animation
from kinegrad.papers.report.misprints import misprints_section
from kinegrad.papers.report.motion_scene import scene_of
from kinegrad.papers.report.page import Page, Progress, duration, number, powers
from kinegrad.predictions.catalogue import prediction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kinegrad.motion.problem import MotionSolution
    from kinegrad.papers.kudruss2019 import Report

__all__ = ["write_page"]

QUICK = "{} states instead of 10 000, fewer numbers of directions, shorter measurements."
SOURCES = "<code>papers/kudruss2019/{}.py</code>"


def write_page(folder: Path, report: Report, lift: MotionSolution, say: Progress) -> Report:
    """Write figures and page into a folder; the report with the figures' final paths."""
    makers: dict[str, Callable[[], Figure]] = {
        "figure_1_errors": lambda: figures.plot_errors(report.errors),
        "figure_2_efforts": lambda: figures.plot_efforts(report.efforts),
        "figure_3_convergence": lambda: figures.plot_convergence(report.convergences),
        "steps": lambda: figures.plot_steps(report.steps),
    }
    return report_page.write_page(folder, report, makers, lambda pictures: _page(report, lift, pictures), say)


def _page(report: Report, lift: MotionSolution, pictures: dict[str, bytes]) -> Page:
    lead = (
        "What derivatives of dynamics along directions err by, and what they cost, by four modes: the experiments of "
        "M. Kudruss, P. Manns and C. Kirches, <i>Efficient derivative evaluation for rigid-body dynamics based on "
        "recursive algorithms subject to kinematic and loop constraints</i>, 2019, run again with kinegrad."
    )
    title = "Derivatives along directions: what they err by and what they cost (kudruss2019)"
    page = Page(title, lead, QUICK.format(report.samples) if report.quick else "")
    page.first_figure(
        pictures["figure_1_errors"], "Errors of derivatives by four modes",
        "Exact modes err by rounding, differences by what their step leaves; the section on figure 1 says how it was "
        "measured.",
    )  # fmt: skip
    k = max(row.directions for row in report.efforts)
    tasks = [task for task in dict.fromkeys(row.task for row in report.efforts) if task != SOLVE]
    highest = max(effort_of(report.efforts, task, "structured", k) for task in tasks)
    ratio = effort_of(report.efforts, SOLVE, "tangent", k) / effort_of(report.efforts, SOLVE, "forward", k)
    exact, forward = (at_worst(report.errors, modes).level for modes in (["tangent", "structured"], ["forward"]))
    many = f"evaluations at most for {k} directions with structure exploited; bound: {BOUNDS['structured'](k):g}"
    page.numbers(
        [
            (number(exact), "mean error of exact modes, at worst; the paper: about 10<sup>−14</sup>"),
            (number(forward), "of forward differences, at worst; the paper: 5·10<sup>−6</sup>"),
            (f"{highest:.3g}", many),
            (f"{ratio:.2g}", "of the time of differences for solving (1) with one factor; the paper: less than ¼"),
        ]
    )
    page.section("Findings", "findings")
    page.points([powers(words) for words in findings(report)])
    _modes(page)
    _errors(page, report, pictures)
    _steps(page, pictures)
    _efforts(page, report, pictures)
    _lifting(page, report, lift, pictures)
    misprints_section(page, MISPRINTS, "Table 5")
    page.made(
        "By one command, with nothing entered by hand. All numbers are in <code>results.json</code>, errors in "
        "<code>errors.csv</code>, efforts in <code>efforts.csv</code>. A second run gives the same errors; "
        "times differ.",
        report.about,
    )
    return page


def _modes(page: Page) -> None:
    page.section("What is compared, and how", "modes")
    page.paragraph(
        "A function <i>f</i> of dynamics at a state <i>x</i> and its derivatives along <i>k</i> directions "
        "<i>d</i>, in one call of <code>directional</code>. The algorithms are the paper’s: <b>CRBA</b>, the mass "
        "matrix; <b>NEFF</b>, nonlinear effects or bias forces; <b>RNEA</b>, inverse dynamics; <b>ABA</b>, forward "
        "dynamics; <b>FDCONT</b>, forward dynamics with constraints, accelerations and forces. The modes are"
    )
    page.points([
        "<b>FD</b>, forward differences (<i>f</i>(<i>x</i> + <i>hd</i>) − <i>f</i>(<i>x</i>))/<i>h</i>, where "
        "<i>hd</i> is 1.5·10<sup>−8</sup> of the state;",
        "<b>FDC</b>, central differences, where it is 6.1·10<sup>−6</sup>;",
        "<b>AD</b>, the chain rule through every operation: the algorithm compiled for dual numbers, which carry a "
        "value and a slope, for each direction anew. Of FDCONT it gives the right-hand sides of algorithm 4, and "
        "the matrix of (1) is factored once;",
        "<b>ED</b>, structure exploited: algorithm 3 with all that does not depend on the direction taken out of "
        "its inner loops; and for the others, matrices of derivatives of which topology leaves the entries that are "
        "not zero, times the directions.",
    ])  # fmt: skip


def _errors(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Figure 1: errors against closed forms", "errors")
    box = carts()[1].cart
    assert box is not None
    page.paragraph(
        f"{report.samples:,} states".replace(",", "\u202f") + " and their directions, 3<i>n</i> of them at each, are "
        "uniform in [−π, π]. The text of the paper does not say what its cart-pendulum is made of. Here the box has "
        f"{box.box_mass:g} kg and {number(box.box_inertia)} kg m<sup>2</sup>, the slender rod {box.rod_mass:g} kg "
        f"and {2 * box.rod_centre:g} m. In minimal coordinates there are two degrees of freedom; as a free box in "
        "the plane there are four, and two wheels that stay on the ground are two constraints. The derivatives in "
        "closed form ("
        + SOURCES.format("cart")
        + f") are evaluated in extended precision, <i>ε</i> = {number(report.epsilon)}."
    )
    page.figure(
        pictures["figure_1_errors"], "Figure 1",
        "Errors of the worst entry and direction of a state. Thick bars hold half of the states, thin ones 98 %, "
        "white lines are medians. Dashed: what the text of the paper says, at worst, for FD, FDC, and AD and ED.",
        "Errors of four modes for each algorithm on a logarithmic axis, two panels: forward differences are worst, "
        "central ones some three orders of magnitude better, both exact modes at rounding.",
    )  # fmt: skip
    rows = []
    for cart, name in dict.fromkeys((row.cart, row.algorithm) for row in report.errors):
        some = {row.mode: row for row in report.errors if (row.cart, row.algorithm) == (cart, name)}
        cells = [number(getattr(some[mode], what)) for what in ("level", "relative") for mode in MODES]
        rows.append([cart, name, *cells])
    names = list(MODES.values())
    page.table(
        ["cart", "algorithm", *names, *(f"{name}, relative" for name in names)], rows, "Table 1",
        "Mean errors: as they are, of the free box within 60° of level; and relative to the largest entry of a "
        "state’s derivatives, of all states.",
        words=2,
    )  # fmt: skip
    rows = [
        [name, *(number(x) for x in (row.quantiles[2], row.level, row.mean, row.largest))]
        for mode, name in MODES.items()
        for row in report.errors
        if (row.algorithm, row.mode) == ("FDCONT", mode)
    ]
    page.table(
        ["FDCONT", "median", "mean within 60° of level", "mean", "largest"], rows, "Table 2",
        "What states near upright do to the errors of constrained dynamics: there the constraints become dependent "
        "on each other, and derivatives themselves grow without bound.",
    )  # fmt: skip


def _steps(page: Page, pictures: dict[str, bytes]) -> None:
    page.section("What the step does to differences", "steps")
    page.paragraph(
        "The paper states what is left at best: about <i>ε</i><sup>1/2</sup> for forward differences and "
        "<i>ε</i><sup>2/3</sup> for central ones. Larger steps err by curvature, smaller ones by rounding; exact "
        "modes know no step."
    )
    page.figure(
        pictures["steps"], "Errors by step",
        "Median over the states of the errors relative to a state’s largest derivative. Level lines: ED.",
        "Errors of forward and central differences by step on logarithmic axes: they fall and rise again as steps "
        "shrink; the exact mode is a level line far below.",
    )  # fmt: skip


def _efforts(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Figure 2: effort by number of directions", "efforts")
    page.paragraph(
        "A pendulum of ten rods in a plane; for FDCONT its tip is pinned, two constraints. The effort is the time "
        "of function and derivatives together, divided by that of the function. kinegrad evaluates states in "
        f"batches, several at once in the registers of a processor: here {effort.STATES} in a call, so that what a "
        "call costs by itself, in Python, counts little. Modes and function are timed in turn, again and again, as "
        "processor time of one thread; the best counts. <b>solve (1)</b> is the linear system alone, with its "
        "matrix and the derivatives of that given."
    )
    page.figure(
        pictures["figure_2_efforts"], "Figure 2",
        "Effort in evaluations of the function. Dashed: bounds of the paper’s table 1, for FD, FDC, and AD and ED. "
        "Dotted: the evaluations that FD and FDC take, alone.",
        "Effort by number of directions, six panels with a line for each of four modes: differences and duals grow "
        "in proportion, the structured mode is nearly level.",
    )  # fmt: skip
    words = disturbed_words(report.efforts)
    if words:
        page.note(powers(words))
    counts = sorted({row.directions for row in report.efforts})
    rows = []
    for task in dict.fromkeys(row.task for row in report.efforts):
        single = min(row.function for row in report.efforts if row.task == task)
        for mode, name in MODES.items():
            cells = [f"{effort_of(report.efforts, task, mode, k):.1f}" for k in counts]
            rows.append([task if name == "FD" else "", name, duration(single) if name == "FD" else "", *cells])
            alone = [evaluations_of(report.efforts, task, mode, k) for k in counts]
            if None not in alone:
                rows.append(["", f"{name}, evaluations alone", "", *(f"{x:.1f}" for x in alone)])
    for mode, name in (("forward", "FD"), ("central", "FDC"), ("tangent", "AD, ED")):
        rows.append(["bound" if name == "FD" else "", name, "", *(f"{BOUNDS[mode](k):g}" for k in counts)])
    page.table(
        ["task", "mode", "one evaluation", *(f"{k}" for k in counts)], rows, "Table 3",
        "Effort by number of directions, and the best time of one evaluation of the function. <i>Evaluations "
        "alone</i>: those that differences take, in one batch, without moving states and dividing differences.",
        words=2, quoted=range(len(rows) - 3, len(rows)),
    )  # fmt: skip


def _lifting(page: Page, report: Report, lift: MotionSolution, pictures: dict[str, bytes]) -> None:
    page.section("Figure 3: convergence on a lifting motion", "lifting")
    page.paragraph(
        "A human of 8 degrees of freedom in the sagittal plane bends to a box and lifts it: two phases, the box at the "
        "hands in the second, the feet flat on the ground with unknown forces. The paper does not print its model; "
        "this one has the standard fractions of mass and height of a textbook (<code>samples.human_sagittal</code>). "
        "Coordinates are cubic splines, torques follow from inverse dynamics; the same program is solved from the same "
        "start, once with exact first derivatives and once with forward differences. The paper’s method is SQP with "
        "approximated second derivatives; it reports up to 10 % fewer iterations with exact derivatives. "
        "<code>kinegrad predict sagittal-lift</code> has a page about the motion alone."
    )
    scene = scene_of(lift, prediction("sagittal-lift").drawing)
    page.animation(animation(scene, "The motion", f"The lift as it was found, {lift.duration:.3f} s.", height=400))
    page.figure(
        pictures["figure_3_convergence"], "Figure 3",
        "Distance of the iterates to the last one, by iteration (logarithmic from 40 on). SQP and interior point have "
        "the exact Hessian of the Lagrangian, quasi-Newton SQP and limited memory (an interior point) approximate it "
        "from gradients.",
        "Distances to the solution by iteration on a logarithmic axis for each mass: methods with the exact Hessian "
        "end after some tens of iterations, limited memory takes many more.",
    )  # fmt: skip
    rows = [
        [f"{row.mass:g} kg", escape(row.method), f"{row.iterations}", duration(row.seconds), f"{row.final_time:.4f}",
         f"{row.objective:.6f}", escape(row.status)]
        for row in report.convergences
    ]  # fmt: skip
    page.table(
        ["box", "method, first derivatives", "iterations", "time", "<i>T</i>, s", "objective", "status"], rows,
        "Table 4", "All solves of figure 3, as they come out; processor time.", words=2,
    )  # fmt: skip
