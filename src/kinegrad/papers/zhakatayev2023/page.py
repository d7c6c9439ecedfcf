"""The page about :mod:`kinegrad.papers.zhakatayev2023`: its figures, tables and text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kinegrad.model import Topology
from kinegrad.papers.report import page as report_page
from kinegrad.papers.report.animation import animation, motion_scene
from kinegrad.papers.report.disturbance import disturbed_words
from kinegrad.papers.report.page import Page, Progress, duration, number
from kinegrad.papers.zhakatayev2023 import experiment as paper
from kinegrad.papers.zhakatayev2023.disagreements import Disagreements
from kinegrad.papers.zhakatayev2023.experiment import BREAKDOWN, Entry, Experiment, Timing
from kinegrad.plot import draw_branch_graph, draw_joint_graph
from kinegrad.plot.sensitivities import Curve, plot_comparison, plot_curves, plot_error_maps
from kinegrad.plot.skeleton import plot_skeleton
from kinegrad.samples import human43

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kinegrad.papers.zhakatayev2023 import Report

__all__ = ["write_page"]

FIGURE_1 = Topology([-1, 0, 1, 2, 3, 4, 4, 2, 7, 2, 9])  # 11 joints, 6 branches; section 2.1 says which are junctions
UNITS = {"q": "N·m/rad", "v": "N·m·s/rad", "a": "N·m·s²/rad"}
TEX = {"q": "q", "v": r"\dot q", "a": r"\ddot q"}
HTML = {"q": "q", "v": "q̇", "a": "q̈"}
METHODS = {
    "forward": "forward differences",
    "central": "central differences",
    "jacobianest": "jacobianest’s rule",
    "jacobianest_elsewhere": "the same, half seconds left out",
    "numdifftools": "numdifftools",
}
NAMES = human43().joint_names
DOI = "doi:10.1007/s11071-023-08433-7"


def write_page(folder: Path, report: Report, x: Experiment, say: Progress) -> Report:
    """Write figures and page into a folder; the report with the figures' final paths."""
    makers: dict[str, Callable[[], Figure]] = {
        "figure_1_example_tree": lambda: _graphs(FIGURE_1, 12, 4.6),
        "figure_2_human": lambda: plot_skeleton(x.model, show_numbers_from=1),
        "figure_3_human_graphs": lambda: _graphs(Topology(x.model.parents), 12, 8.6),
        "figure_4_sensitivities": lambda: plot_comparison(x.t, _curves(x, paper.FIGURE_4)),
        "figure_5_sensitivities": lambda: plot_comparison(x.t, _curves(x, paper.FIGURE_5)),
        "figure_6_motion": lambda: plot_curves(x.t, _motion(x), marks=(0.5, 1.0)),
        "errors_numdifftools": lambda: _error_maps(x, "numdifftools"),
        "errors_jacobianest": lambda: _error_maps(x, "jacobianest"),
        "errors_central": lambda: _error_maps(x, "central"),
    }
    return report_page.write_page(folder, report, makers, lambda pictures: _page(report, x, pictures), say)


# --- figures ----------------------------------------------------------------------------------------------------


def _graphs(tree: Topology, width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    draw_joint_graph(tree, left, show_numbers_from=1)
    draw_branch_graph(tree, right, show_numbers_from=1)
    left.set_title("joints", loc="left", fontweight="bold")
    right.set_title("branches, with their joints", loc="left", fontweight="bold")
    return figure


def _curves(x: Experiment, entries: Sequence[Entry]) -> list[Curve]:
    curves = []
    for entry in entries:
        by, i, j = entry.place
        name = (
            rf"$\partial Q/\partial {TEX[entry.by]}$: torque of {NAMES[entry.torque - 1]} by {NAMES[entry.joint - 1]}"
        )
        estimates = {METHODS[method]: each[entry] for method, each in x.curves.items()}
        curves.append(Curve(name, UNITS[entry.by], x.exact[:, by, i, j], estimates))
    return curves


def _motion(x: Experiment) -> list[Curve]:
    q, v, _ = x.states
    return [
        Curve(f"$q$ {NAMES[4]}", "rad", q[:, 4], {}),
        Curve(f"$q$ {NAMES[13]}", "rad", q[:, 13], {}),
        Curve(rf"$\dot q$ {NAMES[24]}", "rad/s", v[:, 24], {}),
        *(Curve(f"$Q$ {NAMES[i - 1]}", "N·m", x.torques[:, i - 1], {}) for i in (20, 18, 30)),
    ]


def _error_maps(x: Experiment, method: str) -> Figure:
    titles = (rf"RMS error of $\partial Q/\partial {TEX[by]}$" for by in paper.INPUTS)
    errors = dict(zip(titles, paper.rms_errors(x, method), strict=True))
    return plot_error_maps(x.model, errors, show_numbers_from=1)


# --- words and tables -------------------------------------------------------------------------------------------


def _page(report: Report, x: Experiment, pictures: dict[str, bytes]) -> Page:
    lead = (
        "Sensitivities of the inverse dynamics of a human body with 43 joints, exact and numerical: the "
        "experiment of A. Zhakatayev, Y. Rogovchenko and M. Pätzold, <i>Recursive inverse dynamics "
        f"sensitivity analysis of open-tree-type multibody systems</i>, Nonlinear Dynamics, 2023 ({DOI}), "
        "run again with kinegrad."
    )
    quick = "adaptive differentiation of whole matrices at some instants only, scaled to all." if report.quick else ""
    page = Page("How torques of a human body change with its motion: exact and numerical (zhakatayev2023)", lead, quick)
    page.first_figure(
        pictures["figure_4_sensitivities"], "Three sensitivities of the human over three seconds",
        "How torques follow the motion of other joints: exact (kinegrad) and by two adaptive numerical methods, which "
        "agree here; at the right their difference.",
    )  # fmt: skip
    analytic, adaptive = _timing(report, "analytic, spatial"), _timing(report, "numdifftools")
    plain = {name: _timing(report, name).seconds / analytic.seconds for name in ("forward", "central")}
    label = "measured" if adaptive.measured == report.instants else f"scaled from {adaptive.measured} instants"
    page.numbers(
        [
            (duration(analytic.seconds), f"all three 43×43 matrices at {report.instants} instants, exact, one thread"),
            (duration(adaptive.seconds), f"the same by adaptive differentiation, numdifftools, {label}"),
            (f"{number(adaptive.seconds / analytic.seconds)}×", "as long, for numbers that are less exact"),
            (
                f"{number(plain['forward'])}× and {number(plain['central'])}×",
                "as long as exact ones: plain forward and central differences, of the same compiled torques",
            ),
            (f"{report.zeros} of {report.entries}", "entries of each matrix that the tree makes zero"),
        ]
    )
    _setting(page, report, x, pictures)
    _figures_4_5(page, report, pictures)
    _breakdown(page, report, pictures)
    _all_entries(page, report, pictures)
    _timings(page, report)
    page.made(
        "By one command, with nothing entered by hand. All numbers are in <code>results.json</code>, the "
        "RMS error of every entry in <code>rms.csv</code>. A second run gives the same, times and date "
        "apart.",
        report.about,
    )
    return page


def _setting(page: Page, report: Report, x: Experiment, pictures: dict[str, bytes]) -> None:
    page.section("The mechanism and its motion", "setting")
    page.paragraph(
        "A tree of joints with one degree of freedom each is described by the parent of each joint, or "
        "more briefly by its branches: unbroken chains between junctions. Joints are numbered from 1 on "
        "this page, as in the paper; kinegrad itself counts from 0 and calls joints by their names."
    )
    page.figure(
        pictures["figure_1_example_tree"], "Figure 1",
        "A tree of 11 joints in 6 branches. Joints 3 and 5 are junctions; 6, 7, 9 and 11 are leaves. A "
        "branch has the same colour in both graphs.",
    )  # fmt: skip
    page.paragraph(
        "The human body has 43 joints that move 20 limbs of 77.5 kg in total; the other links are massless "
        "steps of joints with several axes. The paper prints lengths and masses but no moments of "
        "inertia: here each limb is a slender rod, so that values may differ from the paper’s where "
        "inertia matters."
    )
    page.figure(
        pictures["figure_2_human"], "Figure 2",
        "The human standing, all coordinates zero. Arrows are joint axes, the green dot is the pelvis, "
        "which is at the world’s origin. The third axis of the whole body’s rotation is repeated in both "
        "legs and the trunk (6, 14, 22).",
    )  # fmt: skip
    slides = [joint.kind == "prismatic" for joint in x.model.joints]
    scene = motion_scene(x.model, x.t, np.where(slides, 0.0, x.states[0]), azimuth=40.0)
    motion = (
        "All 43 coordinates are sin 2π<i>t</i>, in rad and m, so nobody moves like this; seen from the pelvis, which "
        f"slides along all three axes itself. {x.t[-1]:g} s."
    )
    page.animation(animation(scene, "The motion", motion))
    page.figure(
        pictures["figure_3_human_graphs"], "Figure 3",
        "Joint graph and branch graph of the human: 43 joints, 7 branches. A torque depends only on "
        f"joints above and below its own, which makes {report.zeros} of the {report.entries} entries of "
        "each matrix zero.",
    )  # fmt: skip
    page.paragraph(
        f"Every coordinate moves as <i>q<sub>i</sub></i> = sin 2π<i>t</i>, sampled at {report.instants} "
        "instants in 3 s. At each instant the derivatives of all 43 torques <i>Q</i> with respect to all "
        "coordinates <i>q</i>, speeds <i>q̇</i> and accelerations <i>q̈</i> are taken: exactly, and by "
        "numerical differentiation."
    )


def _figures_4_5(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Six sensitivities over time", "sensitivities")
    page.paragraph(
        "The six entries that the paper shows. Two adaptive numerical methods are laid over the exact "
        "curves, each differentiating by that one coordinate, at every instant: <b>numdifftools</b>, a "
        "Python package whose steps do not shrink with the coordinate, and <b>jacobianest’s rule</b>, the "
        "way in which the MATLAB function used in the paper chooses its steps, written anew for kinegrad "
        "(the authors’ own program was not run)."
    )
    page.figure(
        pictures["figure_4_sensitivities"], "Figure 4",
        "Three entries on which exact and numerical values agree. At the right the size of the difference, "
        "logarithmic; zero is drawn at 10<sup>−17</sup>.",
    )  # fmt: skip
    page.figure(
        pictures["figure_5_sensitivities"], "Figure 5",
        "Torque of the left knee (18) by the pelvis joint of the left leg (14). " + _spikes_seen(report),
    )  # fmt: skip
    rows = [
        [
            _entry(Entry(row.torque, row.by, row.joint)), METHODS[row.method], UNITS[row.by],
            number(row.largest_value, 3), number(row.rms), number(row.largest), f"{row.at:.2f}",
        ]
        for row in report.curves
    ]  # fmt: skip
    header = ["entry", "method", "unit", "largest value", "RMS error", "largest error", "at <i>t</i>, s"]
    page.table(header, rows, "Table 1", "Errors of the six curves against the exact derivatives.", words=3)


def _spikes_seen(report: Report) -> str:
    """Which rows of figure 5 have errors that show, and by which method."""
    rows = [row for row in report.curves if (row.torque, row.joint) == (18, 14)]
    seen = [row for row in rows if row.largest > BREAKDOWN * row.largest_value]
    if not seen:
        return "No method errs visibly."
    parts = (
        f"{_entry(Entry(row.torque, row.by, row.joint))} errs by up to {number(row.largest)} "
        f"{UNITS[row.by]} ({number(100 * row.largest / row.largest_value)} % of the largest value)"
        for row in seen
    )
    methods = " and ".join(dict.fromkeys(METHODS[row.method] for row in seen))
    return f"Errors that show are those of {methods} alone: {'; '.join(parts)}."


def _breakdown(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("Where numerical differentiation breaks down, and why", "spikes")
    first = report.spikes[0]
    page.note(f"<b>{paper.spike_statement(report.spikes, number)}</b>", _why(report))
    page.figure(
        pictures["figure_6_motion"], "Figure 6",
        "Coordinates, a speed and torques of the motion; dashed lines at <i>t</i> = 0.5 s and 1 s.",
    )  # fmt: skip
    header = [
        "<i>t</i>,&nbsp;s", "<i>q</i><sub>14</sub>, rad", "<i>Q</i><sub>18</sub>, N·m", "exact",
        "numdifftools: error", "jacobianest’s rule: value", "error", "error, <i>q</i><sub>14</sub>&nbsp;=&nbsp;0",
    ]  # fmt: skip
    rows = [
        [
            f"{s.t:.1f}", number(s.coordinate), number(s.torque, 4), number(s.exact, 6),
            number(abs(s.numdifftools - s.exact)), number(s.jacobianest, 6), number(abs(s.jacobianest - s.exact)),
            number(abs(s.jacobianest_at_zero - s.exact)),
        ]
        for s in report.spikes
    ]  # fmt: skip
    page.table(
        header, rows, "Table 2",
        f"{_entry(paper.BROKEN)}, N·m/rad, where sin 2π<i>t</i> vanishes. In double precision it is "
        "exactly zero only at <i>t</i> = 0. The last column sets <i>q</i><sub>14</sub> to zero exactly "
        "and changes nothing else.",
        words=0,
    )  # fmt: skip
    page.paragraph(
        "The paper attributes the spikes to torque and coordinate vanishing together. At <i>t</i> = 0, where posture, "
        "torque and derivative are those of 0.5 s, the same rule errs by "
        f"{number(abs(first.jacobianest - first.exact))} only. It is the way the step is chosen that decides."
    )
    by_a = paper.FIGURE_5[2]
    same = (row for row in report.curves if (row.torque, row.by, row.joint) == by_a and row.method == "jacobianest")
    _disagreements(page, report.disagreements, next(same))


def _disagreements(page: Page, found: Disagreements, smaller: paper.EntryErrors) -> None:
    """Say where figures 5 and 6 differ from the paper, and what was tried to explain it."""
    page.paragraph(
        "<b>Two things differ from the paper.</b> In its figure 6, <i>Q</i><sub>18</sub> vanishes at 0.5 s and 1 s and "
        f"<i>Q</i><sub>20</sub> does not. Here it is the other way round: <i>Q</i><sub>18</sub> = "
        f"{number(found.rods[0], 4)} N·m, and <i>Q</i><sub>20</sub> = {number(found.rods[1])} N·m, since the ankle "
        "turns a slender foot about its own axis. Limbs that are cylinders, a tenth as thick as long, have "
        f"{number(found.cylinders[0], 4)} and {number(found.cylinders[1])} N·m, so that the moments of inertia, which "
        f"the paper does not print, are not the reason. {_shifts(found)} The reason is not known."
    )
    q, a = (", ".join(f"{t:g}" for t in found.seen[by]) or "none" for by in "qa")
    same = "the same instants" if found.summed == found.seen else "other instants: " + _instants(found.summed)
    page.paragraph(
        "In its figure 5 the estimate of ∂<i>Q</i><sub>18</sub>/∂<i>q</i><sub>14</sub> has spikes at 0.5 s and 1 s "
        "only, and that of ∂<i>Q</i><sub>18</sub>/∂<i>q̈</i><sub>14</sub> has none. Here the rule errs visibly at "
        f"{q} s in the former, and at {a} s in the latter, by up to {number(smaller.largest)} of "
        f"{number(smaller.largest_value, 3)} {UNITS['a']}: <i>q̈</i> = −(2π)<sup>2</sup><i>q</i> is zero but for "
        "rounding where <i>q</i> is, and torques are linear in it. Instants that are sums of steps of 0.01 s, whose "
        f"coordinates are up to a hundred times farther from zero, show {same}. Nothing that was tried leaves two "
        "instants only."
    )


def _shifts(found: Disagreements) -> str:
    if not found.shifts:
        return "No shift of the joint numbers makes <i>Q</i><sub>18</sub> vanish and <i>Q</i><sub>20</sub> not."
    possible = [shift for shift, lost in found.shifts.items() if not lost]
    if possible:
        return f"Joints counted from another number, by {', '.join(f'{k:+d}' for k in possible)}, would explain it."
    listed = ", ".join(f"{k:+d}" for k in found.shifts)
    return (
        f"Joints counted from another number do not explain it: with a shift of {listed}, <i>Q</i><sub>18</sub> "
        "vanishes and <i>Q</i><sub>20</sub> does not, but then topology makes entries of figures 4 and 5 zero, which "
        "the paper draws."
    )


def _instants(found: dict[str, list[float]]) -> str:
    return "; ".join(f"{HTML[by]}: {', '.join(f'{t:g}' for t in times) or 'none'}" for by, times in found.items())


def _why(report: Report) -> str:
    half = next(s for s in report.spikes if s.t == 0.5)
    if abs(half.jacobianest - half.exact) <= BREAKDOWN * abs(half.exact):
        return "The spikes of the paper are not seen in this run."
    largest = 100 * abs(half.coordinate)
    return (
        "The reason lies in the steps. That rule makes them proportional to the coordinate unless it is "
        "exactly zero, 100 times <i>q</i> at most. At <i>t</i> = 0.5 s sin 2π<i>t</i> is not zero but "
        f"{number(half.coordinate)}, what rounding leaves of sin π, so the largest step is "
        f"{number(largest)} rad. The smaller ones change the torque by less than its last digit; their "
        "quotients are all zero, agree perfectly, and so are trusted most: the estimate is "
        f"{number(half.jacobianest, 4)}, the derivative {number(half.exact, 4)}. With the coordinate set "
        f"to zero exactly, the same rule errs by {number(abs(half.jacobianest_at_zero - half.exact))}."
    )


def _all_entries(page: Page, report: Report, pictures: dict[str, bytes]) -> None:
    page.section("All entries", "entries")
    exact = "exactly zero" if report.zeros_exact else "NOT exactly zero"
    page.paragraph(
        f"Of the {report.entries} entries of each matrix {report.zeros} belong to joints of which neither "
        f"moves the other. The analytic derivatives are {exact} there, at all {report.instants} instants. "
        f"For the other {report.entries - report.zeros} the error of a numerical method is taken at each "
        "instant; its root mean square over time is one number an entry."
    )
    rows = [
        [
            f"∂<i>Q</i>/∂<i>{HTML[row.by]}</i>", METHODS[row.method], f"{row.instants}", number(row.largest_value, 3),
            number(row.largest), _entry(Entry(row.torque, row.by, row.joint)), number(row.median),
            number(row.at_zeros),
        ]
        for row in report.matrices
    ]  # fmt: skip
    header = ["matrix", "method", "instants", "largest entry", "largest RMS error", "where", "median", "at zeros"]
    page.table(
        header, rows, "Table 3",
        "RMS errors over time, in N, N·m and their quotients by m, rad and s, as the joints slide or "
        f"turn. <i>At zeros</i>: the largest estimate among the {report.zeros} entries that must vanish.",
        words=2,
    )  # fmt: skip
    captions = {
        "numdifftools": "adaptive differentiation by numdifftools",
        "jacobianest": "jacobianest’s rule; the instants at which coordinates are nearly zero dominate",
        "central": "central differences",
    }
    for k, (method, what) in enumerate(captions.items()):
        row = next(row for row in report.matrices if row.method == method)
        page.figure(
            pictures[f"errors_{method}"], f"Figure {7 + k}",
            f"RMS error of {what}, {row.instants} of {report.instants} instants. Plain areas: zero by topology; "
            "the lowest colour of the scale: zero or below it. Lines divide branches.",
            is_map=True,
        )  # fmt: skip


def _timings(page: Page, report: Report) -> None:
    page.section("What it costs", "cost")
    base = _timing(report, "analytic, spatial").seconds
    rows = []
    for row in report.timings:
        if not row.measured:
            how = "quoted"
        elif row.measured == report.instants:
            how = "measured"
        else:
            how = f"scaled to {report.instants} instants from {row.measured}"
        rows.append(
            [
                row.what, f"{row.threads or ''}", how, "" if row.evaluations is None else f"{row.evaluations}",
                duration(row.seconds), number(row.seconds / base, 3),
            ]
        )  # fmt: skip
    page.table(
        [
            "method", "threads", "how", "torque evaluations per instant", f"{report.instants} instants",
            "times the first",
        ],
        rows, "Table 4",
        f"Time for the three matrices at all instants. {_peers_said(report)}: in turn, best of "
        f"{paper.REPEATS}, kernels loaded before. Numerical ones: one run, evaluating inverse dynamics "
        "compiled by kinegrad, on as many threads as it sees fit. The paper’s times are its own, on an "
        "Intel Core i5-10310U.",
        words=3, quoted=[k for k, row in enumerate(report.timings) if not row.measured],
    )  # fmt: skip
    words = disturbed_words(sum(row.disturbed for row in report.timings), len(report.timings))
    if words:
        page.note(words)
    adaptive, rule = _timing(report, "numdifftools"), _timing(report, "jacobianest")
    evaluations = rule.evaluations or 1
    each = paper.PAPER_NUMERICAL / (paper.INSTANTS * evaluations)
    page.paragraph(
        "The paper’s numerical time was "
        f"{number(paper.PAPER_NUMERICAL / paper.PAPER_ANALYTIC)} times its analytic one; here adaptive "
        f"differentiation takes {number(adaptive.seconds / base)} times as long as the analytic derivatives. If "
        f"the paper’s function evaluated torques {evaluations} times per instant, as its rule does here, one "
        f"evaluation took {duration(each)} there; it takes "
        f"{duration(rule.seconds / (report.instants * evaluations))} here in batches, and "
        f"{duration(adaptive.seconds / (report.instants * (adaptive.evaluations or 1)))} singly with all that "
        "numdifftools does around it. That compiled torques are cheap does not make their differences exact."
    )


def _peers_said(report: Report) -> str:
    """What stands beside our own times."""
    if any("Pinocchio" in row.what for row in report.timings):
        return "Analytic ones and Pinocchio’s"
    return "Analytic ones (Pinocchio would stand beside them, but is not installed here: <code>pip install pin</code>)"


def _timing(report: Report, start: str) -> Timing:
    return next(row for row in report.timings if row.what.startswith(start))


def _entry(entry: Entry) -> str:
    torque, joint = (NAMES[k - 1] for k in (entry.torque, entry.joint))
    return f"∂<i>Q</i>/∂<i>{HTML[entry.by]}</i> of {torque} ({entry.torque}) by {joint} ({entry.joint})"
