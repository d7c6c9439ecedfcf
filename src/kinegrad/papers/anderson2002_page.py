"""The page about :mod:`kinegrad.papers.anderson2002`: its tables and its words."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from math import inf, log
from pathlib import Path
from typing import TYPE_CHECKING

from kinegrad.papers import anderson2002_experiment as chains
from kinegrad.papers import anderson2002_figures as figures
from kinegrad.papers import anderson2002_pendulum as swing
from kinegrad.papers.anderson2002_experiment import LIBRARY, ORDERS, PAPER_LARGEST, RECURSIVE, Crossing, Progress
from kinegrad.papers.anderson2002_misprints import MISPRINTS
from kinegrad.papers.anderson2002_pendulum import Pendulum, Perturbation
from kinegrad.papers.page import Page, duration, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kinegrad.papers.anderson2002 import Report

__all__ = ["findings", "write_page"]

DPI = 150
NEAR = 0.3  # of an exponent to the one that is claimed
CACHES = "presumably because what it works on outgrows the processor's caches"
POWERS = {1: "n", 3: "n³", 4: "n⁴"}


def write_page(folder: Path, report: Report, x: Pendulum, say: Progress) -> Report:
    """Write figures and page into a folder; the report with the figures' final paths."""
    makers: dict[str, Callable[[], Figure]] = {
        "figure_2_times": lambda: figures.plot_times(report.timings, report.exponents),
        "small_chains": lambda: figures.plot_ratios(report.small),
        "figure_3_pendulum": lambda: figures.plot_pendulum(x),
        "figures_4_to_7_sensitivities": lambda: figures.plot_sensitivities(x),
        "perturbations": lambda: figures.plot_perturbations(report.perturbations),
    }
    pictures = {}
    for k, (name, make) in enumerate(makers.items()):
        say("page", k, len(makers))
        buffer = io.BytesIO()
        make().savefig(buffer, format="png", dpi=DPI)
        pictures[name] = buffer.getvalue()
        (folder / f"{name}.png").write_bytes(pictures[name])
    (folder / report.page.name).write_text(_page(report, pictures).render(), encoding="utf-8")
    say("page", len(makers), len(makers))
    return replace(report, figures=tuple(report.page.with_name(f"{name}.png") for name in pictures))


# --- what was found, in words -------------------------------------------------------------------------------------


def findings(report: Report) -> Iterator[str]:
    """Sentences without markup, for the page and for the terminal."""
    for fit in report.exponents:
        if fit.method != LIBRARY:
            yield _growth(fit.method, fit.exponent, fit.smallest, fit.largest, fit.claimed)
    yield _crossing_words(report.crossings)
    common = _largest_common(report)
    base = _seconds(report, RECURSIVE, common)
    ratios = ", ".join(
        f"{name} {_seconds(report, name, common) / base:.3g}" for name in ORDERS if name not in (RECURSIVE, LIBRARY)
    )
    yield f"At n = {common}, in times of the fully recursive method: {ratios}."
    fit = next(fit for fit in report.exponents if fit.method == LIBRARY)
    yield (
        f"kinegrad's own kernel, the same recursion on vector registers with {chains.STATES} states in a call, takes "
        f"{duration(_seconds(report, LIBRARY, common))} a state at n = {common}, where the plain one takes "
        f"{duration(base)}; it grows as n^{fit.exponent:.2f} from n = {fit.smallest} to {fit.largest}"
        + (f", {CACHES}." if fit.exponent > fit.claimed + NEAR else ".")
    )
    yield _agreement_words(report)
    yield _pendulum_words(report)
    yield _difference_words(report)
    wild = report.wild
    yield (
        f"Released from the horizontal the pendulum is chaotic: dT/dL1 reaches {wild.largest_value:.2g} J/m within 20 "
        f"s. The two exact methods still agree to {wild.methods:.1g} of that; forward differences leave it by 1 % at "
        f"{wild.sound_until:.3g} s and are off by {100 * wild.differences:.3g} % in the end."
    )


def _growth(method: str, exponent: float, smallest: int, largest: int, claimed: int) -> str:
    verdict = f"O({POWERS[claimed]}), as the paper says"
    if exponent < claimed - NEAR:
        verdict = f"below the claimed O({POWERS[claimed]}): at these sizes terms of lower order still count"
    if exponent > claimed + NEAR:
        verdict = f"steeper than the claimed O({POWERS[claimed]}), {CACHES}"
    if method == "frugal conventional":
        verdict = verdict.replace("as the paper says", "too")
    return (
        f"{method[0].upper()}{method[1:]}: time grows as n^{exponent:.2f} from n = {smallest} to {largest}; {verdict}."
    )


def _crossing_words(crossings: Sequence[Crossing]) -> str:
    met = [row for row in crossings if row.at is not None]
    if not met:
        return (
            "There is no crossing: in one and the same style of code the fully recursive method is the fastest from "
            "n = 1 on, with one parameter, with four, and with two a bar. The paper puts the crossing near n = 4."
        )
    parts = "; ".join(
        f"{row.other}, {_parameters(row.p)}: "
        + ("faster at all small sizes" if row.at == inf else f"crosses at n = {row.at:.1f}")
        for row in met
    )
    return f"Where others are faster on small chains: {parts}. The paper puts the crossing near n = 4."


def _agreement_words(report: Report) -> str:
    within = [row for row in report.agreements if row.n <= PAPER_LARGEST]
    beyond = [row for row in report.agreements if row.n > PAPER_LARGEST]
    words = (
        f"All methods and kinegrad agree to {max(row.difference for row in within):.1e} of the largest entry up to "
        f"n = {within[-1].n}."
    )
    if beyond:
        worst = max(beyond, key=lambda row: row.difference)
        words += (
            f" Beyond, rounding grows with the condition of the mass matrix: {worst.difference:.1e} at most "
            f"({worst.method}, n = {worst.n}, condition {worst.condition:.0e})."
        )
    return words


def _pendulum_words(report: Report) -> str:
    worst = {
        method: max(row.relative for row in report.deviations if row.method == method)
        for method in dict.fromkeys(row.method for row in report.deviations)
    }
    return (
        "Double pendulum, 20 s, largest deviation from the fully recursive sensitivities in parts of their largest "
        "value: "
        + ", ".join(f"{method} {value:.1e}" for method, value in worst.items())
        + f"; what the integrator leaves is {report.integration_error:.1e}."
    )


def _difference_words(report: Report) -> str:
    name = report.perturbations[0].parameter
    best = {method: _best(report, name, method) for method in ("forward", "central")}
    same = {row.tolerance: row.error for row in report.perturbations if _is(row, name, "fully recursive")}
    loose = min(row.error for row in report.perturbations if row.tolerance == swing.LOOSE and _is(row, name, "central"))
    return (
        f"No perturbation makes differences by {name} as good: at best forward ones err by "
        f"{best['forward'].error:.1e} (at {best['forward'].step:.0e}), central ones by {best['central'].error:.1e} "
        f"(at {best['central'].step:.0e}), the fully recursive method by {same[swing.TIGHT]:.1e} with the same "
        f"integrator. With a tolerance of {swing.LOOSE:.0e} central differences err by {loose:.1e} at best, the fully "
        f"recursive method by {same[swing.LOOSE]:.1e}."
    )


def _is(row: Perturbation, name: str, method: str) -> bool:
    return (row.parameter, row.method) == (name, method)


def _best(report: Report, name: str, method: str) -> Perturbation:
    rows = [row for row in report.perturbations if _is(row, name, method) and row.tolerance == swing.TIGHT]
    return min(rows, key=lambda row: row.error)


def _distance(step: float, row: Perturbation) -> float:
    return abs(log(row.step / step))


def _parameters(p: int) -> str:
    return {0: "two parameters a bar", 1: "one parameter"}.get(p, f"{p} parameters")


def _largest_common(report: Report) -> int:
    """The largest size of the paper's at which all methods were timed."""
    sizes = [{row.n for row in report.timings if row.method == name} for name in ORDERS]
    return max(n for n in set.intersection(*sizes) if n <= PAPER_LARGEST)


def _seconds(report: Report, method: str, n: int) -> float:
    return next(row.seconds for row in report.timings if (row.method, row.n) == (method, n))


# --- the page -----------------------------------------------------------------------------------------------------


def _page(report: Report, pictures: dict[str, bytes]) -> Page:
    lead = (
        "How accelerations, and motions over time, change with lengths and masses: the experiments of K. S. Anderson "
        "and Y. Hsu, <i>Analytical fully-recursive sensitivity analysis for multibody dynamic chain systems</i>, "
        "Multibody System Dynamics 8(1), 2002, run again with kinegrad."
    )
    page = Page("anderson2002, reproduced", lead)
    fits = {fit.method: fit for fit in report.exponents}
    numbers = [
        (f"<i>n</i><sup>{fits[name].exponent:.2f}</sup>", f"growth of the time, {what}")
        for name, what in (
            (RECURSIVE, "fully recursive; the paper: <i>n</i>"),
            ("partially recursive", "partially recursive; the paper: <i>n</i><sup>3</sup>"),
            ("conventional", "conventional, as printed; the paper: <i>n</i><sup>4</sup>"),
        )
    ]
    within = max(row.difference for row in report.agreements if row.n <= PAPER_LARGEST)
    page.numbers(
        [*numbers, (number(within), f"largest relative difference of any two up to <i>n</i> = {PAPER_LARGEST}")]
    )
    page.section("Findings", "findings")
    page.points([_html(words) for words in findings(report)])
    _methods(page, report)
    _times(page, report, pictures)
    _small(page, report, pictures)
    _sensitivities(page, report, pictures)
    _perturbations(page, report, pictures)
    _misprints(page)
    page.section("How this page was made", "made")
    page.paragraph(
        "By one command, with nothing entered by hand. All numbers are in <code>results.json</code>, times and "
        "agreement in <code>times.csv</code>, the curves in <code>sensitivities.csv</code>. A second run gives the "
        "same sensitivities; times differ."
    )
    page.about(report.about)
    return page


def _html(words: str) -> str:
    """A finding as HTML, exponents raised.

    >>> _html("n^1.02 < 2e-13")
    'n<sup>1.02</sup> &lt; 2·10<sup>−13</sup>'
    """
    raised = re.sub(r"n\^([\d.]+\d)", r"n<sup>\1</sup>", escape(words))
    return re.sub(r"(\d)e([+-]?)0?(\d+)", lambda m: f"{m[1]}·10<sup>{'−' * (m[2] == '-')}{m[3]}</sup>", raised)


def _methods(page: Page, report: Report) -> None:
    page.section("What is compared, and how", "methods")
    page.paragraph(
        "The accelerations <i>q̈</i> of a chain and their total derivatives d<i>q̈</i>/d<i>p</i>, where the state "
        "itself follows the parameters: equation (9) of the paper. <b>Fully recursive</b> is its equations "
        "(57)–(70): no matrix of the system is formed. <b>Partially recursive</b> is its Appendix A: the mass matrix "
        "ℳ, the vector 𝒦 and all their derivatives by recursion, then ℳ factored. <b>Conventional</b> is equations "
        "(25)–(31): each element a sum over all bodies, evaluated as printed. <b>Frugal conventional</b> is ours: "
        "the same sums without the terms that are zero, for one half of the symmetric matrices, with the products ℐ𝒫 "
        "kept in a table. The matrix is factored, not inverted, in both."
    )
    page.paragraph(
        "All four are written in one style, in <code>anderson2002_methods.py</code>: scalars and plain arrays "
        "compiled by Numba, 6×6 matrices multiplied in full, one state at a time, one thread, the same outward "
        "kinematics. The paper had its equations written by AUTOLEV and MAPLE. <b>kinegrad</b> is the library’s "
        f"function <code>forward_dynamics_design_derivatives</code>, with {chains.STATES} states in a call."
    )
    page.paragraph(
        "The chains are cylinders of 1 m and 1 kg, ten times as long as thick, hinged end to end about x, y, z in "
        "turn, under gravity. Parameters: length and mass of the first bar and of the middle one; a length moves the "
        "bar’s mass centre, its inertia and the next hinge. The text of the paper says neither what its chains were "
        "made of nor which or how many parameters it used. States and d<i>q</i>/d<i>p</i>, d<i>q̇</i>/d<i>p</i> are "
        f"random, the same in every run. Compiling the four took {duration(report.compile_seconds)} and is not "
        f"counted; an empty call takes {duration(report.call_seconds)} and is part of every time but kinegrad’s. "
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
    )  # fmt: skip
    page.paragraph(_arithmetic(report))
    sizes = list(dict.fromkeys(row.n for row in report.timings))
    timed = {(row.method, row.n): row.seconds for row in report.timings}
    differences = {(row.method, row.n): row.difference for row in report.agreements}
    conditions = {row.n: row.condition for row in report.agreements}
    rows = [[f"{n}", *(duration(timed[name, n]) if (name, n) in timed else "–" for name in ORDERS)] for n in sizes]
    page.table(
        ["<i>n</i>", *ORDERS], rows, "Table 1", "Time of one evaluation at one state; – : not tried, too slow.", words=1
    )
    others = [name for name in ORDERS if name != RECURSIVE]
    rows = [
        [
            f"{n}", *(number(differences[name, n]) if (name, n) in differences else "–" for name in others),
            number(conditions[n]),
        ]
        for n in sizes
    ]  # fmt: skip
    page.table(
        ["<i>n</i>", *others, "condition of ℳ"], rows, "Table 2",
        "Largest difference of d<i>q̈</i>/d<i>p</i> from the fully recursive one in parts of its largest entry, at "
        f"{chains.CHECKED} states, and the condition of the mass matrix, which rounding in its factors is multiplied "
        "with at worst.",
    )  # fmt: skip


def _arithmetic(report: Report) -> str:
    """How fast the number of products of the conventional method grows, over the sizes at which its time was fitted."""
    fit = next(fit for fit in report.exponents if fit.method == "conventional")
    rows = [row for row in report.timings if row.method == fit.method and row.n >= fit.smallest]
    forms = [2 * row.n**4 + (3 * row.p + 1) * row.n**3 for row in rows]
    grown = chains.exponents([replace(row, seconds=float(x)) for row, x in zip(rows, forms, strict=True)])[0].exponent
    return (
        "As printed, (25) takes <i>n</i><sup>3</sup> forms 𝒫<sup>T</sup>ℐ𝒫, (27) takes 3<i>pn</i><sup>3</sup> and (28) "
        f"2<i>n</i><sup>4</sup>. Fitted over the same sizes, {fit.smallest} to {fit.largest}, their number grows as "
        f"<i>n</i><sup>{grown:.2f}</sup> and the time as <i>n</i><sup>{fit.exponent:.2f}</sup>."
        + (" The rest is memory and the load of the machine." if fit.exponent > grown + 0.1 else "")
    )


def _small(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Is there a crossing near n = 4?", "crossing")
    page.paragraph(
        "The paper finds the conventional method faster up to about four degrees of freedom. The conventional method "
        "also differentiates by every coordinate and speed, 2<i>n</i> directions that serve all parameters, while "
        "the fully recursive one has a pass for each parameter. So both extremes are timed: one parameter, and the "
        "length and mass of every bar."
    )
    page.figure(
        pictures["small_chains"], "Small chains",
        "Time in units of the fully recursive method’s; above 1 it is the faster one. Dashed: where the paper puts the "
        "crossing.",
    )  # fmt: skip
    page.paragraph(_html(_crossing_words(report.crossings)))


def _sensitivities(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Figures 3 to 7: the double pendulum", "pendulum")
    page.paragraph(
        "Two particles on massless bars swing in a plane under gravity alone. The values in the paper’s figure 3 and "
        "its initial state are not in its text. Here <i>L</i><sub>1</sub> = <i>L</i><sub>2</sub> = 1 m, "
        "<i>M</i><sub>P</sub> = <i>M</i><sub>Q</sub> = 1 kg, released at rest 30° from the vertical, bars in line: a "
        "swing that is not chaotic, so that sensitivities grow steadily and methods can be compared for 20 s."
    )
    page.figure(
        pictures["figure_3_pendulum"], "Figure 3",
        "The pendulum as it is released, its angles (the second one relative to the first bar) and its kinetic "
        "energy (71).",
    )  # fmt: skip
    page.figure(
        pictures["figures_4_to_7_sensitivities"], "Figures 4 to 7",
        "Total derivatives of the kinetic energy <i>T</i>. Fully recursive: kinegrad’s simulation with "
        "sensitivities. Conventional: (4) and (5) integrated with (9). Differences: perturbations of the paper, "
        "10<sup>−5</sup>, and 5·10<sup>−4</sup> kg for <i>M</i><sub>P</sub>. Same integrator (DOP853) and tolerance, "
        "10<sup>−11</sup>, for all.",
    )  # fmt: skip
    rows = [
        [
            f"<i>{row.parameter[0]}</i><sub>{row.parameter[1]}</sub>", row.method, number(row.largest_value, 4),
            number(row.largest), number(row.relative), f"{row.at:.2f}",
        ]
        for row in report.deviations
    ]  # fmt: skip
    page.table(
        ["parameter", "method", "largest d<i>T</i>/d<i>p</i>", "largest deviation", "relative", "at <i>t</i>, s"], rows,
        "Table 3",
        "Deviations from the fully recursive sensitivities, J/m or J/kg. Two methods with the same integrator share "
        f"its error, which is {number(report.integration_error)} (against a tolerance of 10<sup>−13</sup>), so the "
        "conventional row says how well the equations agree.",
        words=2,
    )  # fmt: skip


def _perturbations(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("What the perturbation does to differences", "perturbations")
    page.paragraph(
        "Large perturbations err by curvature: in proportion to their size for forward differences, to its square "
        "for central ones. Small ones err by rounding, divided by the perturbation. With a loose integrator "
        "differences level off in between: they differentiate its error along with the motion. The exact methods "
        "know no perturbation; what remains is the integrator’s tolerance, which they keep better, since "
        "sensitivities are under its control, too. That confirms what section 5 of the paper says, with numbers."
    )
    page.figure(
        pictures["perturbations"], "Errors by perturbation",
        "Largest error of d<i>T</i>/d<i>p</i> in 20 s, in parts of its largest value, against the fully recursive "
        "method with a tolerance of 10<sup>−13</sup>. Lines without marks: the fully recursive method with the same "
        "two tolerances.",
    )  # fmt: skip
    names = dict.fromkeys(row.parameter for row in report.perturbations)
    rows = []
    for name in names:
        for method in ("forward", "central"):
            chosen = [row for row in report.perturbations if _is(row, name, method) and row.tolerance == swing.TIGHT]
            near = min(chosen, key=partial(_distance, swing.STEPS[name]))
            best = min(chosen, key=lambda row: row.error)
            cells = [number(near.step, 1), number(near.error), number(best.step, 1), number(best.error)]
            rows.append([f"<i>{name[0]}</i><sub>{name[1]}</sub>", method, *cells])
    page.table(
        ["parameter", "differences", "near the paper’s", "error", "best perturbation", "error"], rows, "Table 4",
        "Relative errors over 20 s at the perturbation nearest to the paper’s, and at the best one, tolerance "
        "10<sup>−11</sup>.",
        words=2,
    )  # fmt: skip


def _misprints(page: Page) -> None:
    page.section("Misprints found on the way", "misprints")
    page.paragraph(
        "The copy at hand is a scan; some of this may be its doing and not the paper’s. Listed is what was derived "
        "anew; what is marked was also evaluated both ways in the tests, where the printed form fails and the other "
        "holds."
    )
    rows = [[each.equation, each.printed, each.correct, "✓" if each.tested else ""] for each in MISPRINTS]
    page.table(["equation", "as printed", "what it must be", "tested"], rows, "Table 5", "Formulas put right.", words=4)
    page.paragraph(
        "One count is easy to misread: Appendix A gives O(<i>n</i><sup>2</sup>) for the derivatives of ℳ. That is "
        "for one coordinate; for all <i>n</i> that (9) asks for it is O(<i>n</i><sup>3</sup>), as much as the "
        "factors of ℳ, so the method would be O(<i>n</i><sup>3</sup>) even if ℳ were solved for nothing."
    )
