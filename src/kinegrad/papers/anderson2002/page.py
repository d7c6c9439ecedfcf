"""The page about :mod:`kinegrad.papers.anderson2002`: its tables and text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kinegrad import samples
from kinegrad.papers.anderson2002 import experiment as chains
from kinegrad.papers.anderson2002 import figures
from kinegrad.papers.anderson2002 import pendulum as swing
from kinegrad.papers.anderson2002.experiment import INVERTED, ORDERS, PAPER_LARGEST, RECURSIVE
from kinegrad.papers.anderson2002.findings import (
    crossing_words,
    errors_of,
    findings,
    largest_difference,
    reference_words,
)
from kinegrad.papers.anderson2002.misprints import MISPRINTS
from kinegrad.papers.anderson2002.pendulum import Pendulum
from kinegrad.papers.report import page as report_page
from kinegrad.papers.report.animation import animation, motion_scene
from kinegrad.papers.report.misprints import misprints_section
from kinegrad.papers.report.page import Page, Progress, duration, number, powers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kinegrad.papers.anderson2002 import Report

__all__ = ["write_page"]

GRAVITY = f"{np.abs(samples.double_pendulum().gravity).max():g} m/s<sup>2</sup>"  # of the chains, too
QUICK = "shorter measurements, slow methods on shorter chains only, perturbations of <i>L</i><sub>1</sub> alone."


def write_page(folder: Path, report: Report, x: Pendulum, say: Progress) -> Report:
    """Write figures and page into a folder; the report with the figures' final paths."""
    makers: dict[str, Callable[[], Figure]] = {
        "figure_2_times": lambda: figures.plot_times(report.timings, report.exponents),
        "small_chains": lambda: figures.plot_ratios(report.small),
        "figure_3_pendulum": lambda: figures.plot_pendulum(x),
        "figures_4_to_7_sensitivities": lambda: figures.plot_sensitivities(x),
        "perturbations": lambda: figures.plot_perturbations(report.perturbations),
    }
    return report_page.write_page(folder, report, makers, lambda pictures: _page(report, x, pictures), say)


# --- the page -----------------------------------------------------------------------------------------------------


def _page(report: Report, x: Pendulum, pictures: dict[str, bytes]) -> Page:
    lead = (
        "How accelerations, and motions over time, change with lengths and masses: the experiments of K. S. Anderson "
        "and Y. Hsu, <i>Analytical fully-recursive sensitivity analysis for multibody dynamic chain systems</i>, "
        "Multibody System Dynamics 8(1), 2002, run again with kinegrad."
    )
    title = "How motions change with lengths and masses, by three methods (anderson2002)"
    page = Page(title, lead, QUICK if report.quick else "")
    page.first_figure(
        pictures["figures_4_to_7_sensitivities"], "How the energy of a double pendulum follows its lengths and masses",
        "Exact sensitivities over time, by kinegrad and by the paper’s recursion, and forward differences beside them: "
        "the section on the double pendulum says more.",
    )  # fmt: skip
    fits = {fit.method: fit for fit in report.exponents}
    numbers = [
        (f"<i>n</i><sup>{fits[name].exponent:.2f}</sup>", f"growth of the time, {what}")
        for name, what in (
            (RECURSIVE, "fully recursive; the paper: <i>n</i>"),
            ("partially recursive", "partially recursive; the paper: <i>n</i><sup>3</sup>"),
            (INVERTED, "conventional; the paper: <i>n</i><sup>4</sup>"),
        )
    ]
    within, inverted = (number(largest_difference(report.pairs, inverted=x)) for x in (False, True))
    largest = max(row.n for row in report.pairs if row.n <= PAPER_LARGEST)
    difference = f"largest relative difference of any two up to <i>n</i> = {largest}; with ℳ inverted: {inverted}"
    page.numbers([*numbers, (within, difference)])
    page.section("Findings", "findings")
    page.points([_html(words) for words in findings(report)])
    _methods(page, report)
    _times(page, report, pictures)
    _small(page, report, pictures)
    _sensitivities(page, report, x, pictures)
    _perturbations(page, report, pictures)
    _misprints(page)
    page.made(
        "By one command, with nothing entered by hand. All numbers are in <code>results.json</code>, times and "
        "errors in <code>times.csv</code>, the curves in <code>sensitivities.csv</code>. A second run gives the "
        "same sensitivities; times differ.",
        report.about,
    )
    return page


def _html(words: str) -> str:
    """A finding as HTML: exponents raised, parameters with their indices.

    >>> _html("n^1.02 < 2e-13, 1e-08 of dT/dL1")
    'n<sup>1.02</sup> &lt; 2·10<sup>−13</sup>, 10<sup>−8</sup> of dT/d<i>L</i><sub>1</sub>'
    """
    raised = re.sub(r"n\^(-?[\d.]+\d)", lambda m: f"n<sup>{m[1].replace(chr(45), chr(0x2212))}</sup>", powers(words))
    return re.sub(r"(?<![A-Z])(L|M)([12PQ])\b", r"<i>\1</i><sub>\2</sub>", raised)


def _methods(page: Page, report: Report) -> None:
    page.section("What is compared, and how", "methods")
    page.paragraph(
        "The accelerations <i>q̈</i> of a chain and their total derivatives d<i>q̈</i>/d<i>p</i>, where the state "
        "itself follows the parameters: equation (9) of the paper. <b>Fully recursive</b> is its equations "
        "(57)–(70): no matrix of the system is formed. <b>Partially recursive</b> is its Appendix A: the mass matrix "
        "ℳ, the vector 𝒦 and all their derivatives by recursion, then ℳ factored. <b>Conventional</b> is equations "
        "(25)–(31): each element a sum over all bodies, as they read once put right (the last section has the "
        "misprints), and ℳ<sup>−1</sup> formed as a matrix. <b>Frugal conventional</b> is ours: the same sums without "
        "the terms that are zero, for one half of the symmetric matrices, with the products ℐ𝒫 kept in a table, and "
        "ℳ factored."
    )
    page.paragraph(
        "All four are written in one style, in <code>anderson2002_methods.py</code>: scalars and plain arrays "
        "compiled by Numba, 6×6 matrices multiplied in full, one state at a time, one thread, the same outward "
        "kinematics. The paper had its equations written by AUTOLEV and MAPLE. <b>kinegrad</b> is the library’s "
        f"function <code>forward_dynamics_design_derivatives</code>, with {chains.STATES} states in a call."
    )
    page.paragraph(
        "The chains are cylinders of 1 m and 1 kg, ten times as long as thick, hinged end to end about x, y, z in "
        f"turn, under gravity of {GRAVITY}. Parameters: length and mass of the first bar and of the middle one; a "
        "length moves the bar’s mass centre, its inertia and the next hinge. The text of the paper says neither what "
        "its chains were made of nor which or how many parameters it used. States and d<i>q</i>/d<i>p</i>, "
        "d<i>q̇</i>/d<i>p</i> are random, the same in every run. Compiling the four took "
        f"{duration(report.compile_seconds)} and is not counted; an empty call takes {duration(report.call_seconds)} "
        "and is part of every time but kinegrad’s. "
        "Methods are timed in turn, the best counts. A method is not tried where one evaluation would take more than "
        f"{report.limit:g} s"
        + (
            ": " + ", ".join(f"{name} from <i>n</i> = {n} on" for name, n in report.stopped.items())
            if report.stopped
            else ""
        )
        + "."
    )


def _times(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Figure 2: time by degrees of freedom", "times")
    page.figure(
        pictures["figure_2_times"], "Figure 2",
        "Time of <i>q̈</i> and d<i>q̈</i>/d<i>p</i> at one state, four parameters. Exponents are fitted from a "
        "quarter of each method’s largest size on.",
        "Time of one evaluation by number of degrees of freedom on logarithmic axes, a line for each of five methods: "
        "the fully recursive one is flattest, the conventional one steepest.",
    )  # fmt: skip
    page.paragraph(_arithmetic(report))
    sizes = list(dict.fromkeys(row.n for row in report.timings))
    timed = {(row.method, row.n): row.seconds for row in report.timings}
    rows = [[f"{n}", *(duration(timed[name, n]) if (name, n) in timed else "–" for name in ORDERS)] for n in sizes]
    page.table(
        ["<i>n</i>", *ORDERS], rows, "Table 1", "Time of one evaluation at one state; – : not tried, too slow.", words=1
    )
    errors, conditions = (
        {name: errors_of(report, name) for name in ORDERS},
        {r.n: r.condition for r in report.roundings},
    )
    rows = []
    for n in sizes:
        cells = [number(errors[name][n]) if n in errors[name] else "–" for name in ORDERS]
        pairs = [row for row in report.pairs if row.n == n]
        apart = [number(largest_difference(pairs, n, inverted)) for inverted in (False, True)]
        rows.append([f"{n}", *cells, apart[0], apart[1] if n in errors[INVERTED] else "–", number(conditions[n])])
    page.table(
        ["<i>n</i>", *ORDERS, "any two", "with ℳ inverted", "condition of ℳ"], rows, "Table 2",
        f"Errors of d<i>q̈</i>/d<i>p</i>, largest at {chains.CHECKED} states, relative to its largest entry: from "
        f"{reference_words(report)} (<i>ε</i> = {number(report.epsilon)}; (57)–(61) differentiated by a complex step). "
        "“any two”: the largest difference of any two columns but the conventional one; “with ℳ inverted”: with it, "
        "too. The condition of the mass matrix, by which rounding errors may be amplified, is the largest at these "
        "states.",
    )  # fmt: skip


def _arithmetic(report: Report) -> str:
    """How fast the number of products of the conventional method grows, over the sizes at which its time was fitted."""
    fit = next(fit for fit in report.exponents if fit.method == INVERTED)
    return (
        "Put right, (25) takes <i>n</i><sup>3</sup> forms 𝒫<sup>T</sup>ℐ𝒫, (27) takes 3<i>pn</i><sup>3</sup> and (28) "
        "3<i>n</i><sup>4</sup>, of which <i>n</i><sup>4</sup> are zero, since ℐ<sub>1</sub> does not depend on "
        "<i>q</i>, and left out. Fitted over the same sizes, "
        f"{fit.smallest} to {fit.largest}, the number of the rest grows as <i>n</i><sup>{fit.products:.2f}</sup> and "
        f"the time as <i>n</i><sup>{fit.exponent:.2f}</sup>."
    )


def _small(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Is there a crossing near n = 4?", "crossing")
    page.paragraph(
        "The paper finds the conventional method faster up to about four degrees of freedom. The conventional method "
        "also differentiates with respect to every coordinate and speed, 2<i>n</i> directions that serve all "
        "parameters, while the fully recursive one has a pass for each parameter. So both extremes are timed: one "
        "parameter, and the length and mass of every bar."
    )
    page.figure(
        pictures["small_chains"], "Small chains",
        "Time relative to the fully recursive method’s; above 1 that one is the faster. Dashed: where the paper puts "
        "the crossing.",
        "Times of three methods relative to the fully recursive one on chains of one to eight bars, with one parameter "
        "and with two per bar.",
    )  # fmt: skip
    page.paragraph(_html(crossing_words(report)))
    page.paragraph(
        "Where a crossing is depends on the constants before <i>n</i> and <i>n</i><sup>4</sup>, so on how the code is "
        "written. The paper’s was derived symbolically, by AUTOLEV and MAPLE, for each <i>n</i>, which may drop more "
        "zeros and repeated terms from the conventional equations than from the recursion. That is a guess: the text "
        "of the paper does not show its code."
    )


def _sensitivities(page: Page, report: Report, x: Pendulum, pictures: dict[str, bytes]) -> None:
    page.section("Figures 3 to 7: the double pendulum", "pendulum")
    values = ", ".join(f"{_html(name)} = {x:g} {_unit(name)}" for name, x in swing.VALUES.items())
    page.paragraph(
        "Two particles on massless bars swing in a plane under gravity alone. The values in the paper’s figure 3 and "
        "its initial state are not in its text, so these are our choice: "
        f"{values}, <i>g</i> = {GRAVITY}, released at rest {np.degrees(swing.START[0]):.0f}° from the vertical, bars "
        "in line: a regular swing, whose sensitivities grow about linearly over 20 s, so that methods can be compared "
        "all the way."
    )
    scene = motion_scene(samples.double_pendulum(), x.t, x.q, azimuth=-90.0, elevation=0.0)
    page.animation(animation(scene, "The swing", f"{x.t[-1]:g} s of the simulation.", height=360))
    page.figure(
        pictures["figure_3_pendulum"], "Figure 3",
        "The pendulum as it is released, its angles (the second one relative to the first bar) and its kinetic "
        "energy (71).",
        "A double pendulum hanging 30 degrees off the vertical, its two angles and its kinetic energy over 20 s.",
    )  # fmt: skip
    page.figure(
        pictures["figures_4_to_7_sensitivities"], "Figures 4 to 7",
        "Total derivatives of the kinetic energy <i>T</i>. Fully recursive: kinegrad’s simulation with "
        "sensitivities. Conventional: (4) and (5) integrated with (9). Differences: perturbations of the paper, "
        "10<sup>−5</sup> m or kg, and 5·10<sup>−4</sup> kg for <i>M</i><sub>P</sub>. Same integrator (DOP853) and "
        "tolerance, 10<sup>−11</sup>, for all.",
        "Left, the derivative of the kinetic energy with respect to each of four parameters over 20 s: three methods "
        "lie on one curve. Right, their distances from the fully recursive curve on a logarithmic axis.",
    )  # fmt: skip
    rows = [
        [
            _html(row.parameter), row.method, number(row.largest_value, 4),
            number(row.largest), number(row.relative), f"{row.at:.2f}",
        ]
        for row in report.deviations
    ]  # fmt: skip
    page.table(
        ["parameter", "method", "largest d<i>T</i>/d<i>p</i>", "largest deviation", "relative", "at <i>t</i>, s"], rows,
        "Table 3",
        "Deviations from the fully recursive sensitivities, J/m or J/kg. Two methods with the same integrator share "
        f"its error, which is {number(report.integration_error)} at most over the four parameters (against a tolerance "
        "of 10<sup>−13</sup>), so the conventional row says how well the equations agree.",
        words=2,
    )  # fmt: skip


def _perturbations(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("What the perturbation does to differences", "perturbations")
    page.paragraph(
        "Large perturbations err by curvature: in proportion to their size for forward differences, to its square "
        "for central ones. Small ones err by rounding, divided by the perturbation. With a loose integrator "
        "differences level off in between: they differentiate its error along with the motion. The exact methods "
        "know no perturbation; what remains is the integrator’s tolerance, which they keep better, since "
        "sensitivities are under its control, too. That confirms that the size of a perturbation plays no "
        "part; the integrator’s tolerance still does. Stiffness, which section 5 of the paper also names, was not "
        "tried."
    )
    page.figure(
        pictures["perturbations"], "Errors by perturbation",
        "Largest error of d<i>T</i>/d<i>p</i> in 20 s, relative to its largest value, against the fully recursive "
        "method with a tolerance of 10<sup>−13</sup>. Lines without marks: the fully recursive method with the same "
        "two tolerances. Perturbations are absolute.",
        "Errors of forward and central differences by size of the perturbation, on logarithmic axes: they fall, level "
        "off and rise again as perturbations shrink; those of the fully recursive method are level lines below.",
    )  # fmt: skip
    names = dict.fromkeys(row.parameter for row in report.perturbations)
    rows = []
    for name in names:
        for method in ("forward", "central"):
            chosen = {
                row.step: row.error
                for row in report.perturbations
                if (row.parameter, row.method, row.tolerance) == (name, method, swing.TIGHT)
            }
            best = min(chosen, key=chosen.__getitem__)
            cells = [x for step in (swing.STEPS[name], best) for x in (_step(name, step), number(chosen[step]))]
            rows.append([_html(name), method, *cells])
    page.table(
        ["parameter", "differences", "the paper’s", "error", "best perturbation", "error"], rows, "Table 4",
        "Relative errors over 20 s at the paper’s perturbation and at the best one tried, tolerance 10<sup>−11</sup>.",
        words=2,
    )  # fmt: skip


def _step(name: str, step: float) -> str:
    """A perturbation with its unit.

    >>> _step("L1", 1e-5), _step("MP", 5e-4)
    ('10<sup>−5</sup> m', '5·10<sup>−4</sup> kg')
    """
    return f"{_html(f'{step:.1e}'.replace('.0e', 'e'))} {_unit(name)}"


def _unit(name: str) -> str:
    return swing.UNITS[name].removeprefix("J/")


def _misprints(page: Page) -> None:
    misprints_section(page, MISPRINTS, "Table 5")
    page.paragraph(
        "One count is easy to misread: Appendix A gives O(<i>n</i><sup>2</sup>) for the derivatives of ℳ. That is "
        "for one coordinate; for all <i>n</i> that (9) asks for it is O(<i>n</i><sup>3</sup>), as much as the "
        "factors of ℳ, so the method would be O(<i>n</i><sup>3</sup>) even if solving with ℳ cost nothing."
    )
