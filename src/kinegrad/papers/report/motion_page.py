"""The page about one predicted motion: it plays, with figures, what the solver did, and how good it is."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kinegrad.io.trajectory import write_trajectory
from kinegrad.io.whole_file import checked_path
from kinegrad.motion.problem import Foot, MotionSolution
from kinegrad.motion.problem.verification import Verification
from kinegrad.papers.report import motion_figures as figures
from kinegrad.papers.report.animation import animation
from kinegrad.papers.report.files import write_json
from kinegrad.papers.report.folder import unfinished_page, whole_folder
from kinegrad.papers.report.motion_scene import scene_of
from kinegrad.papers.report.page import Page, Progress, about, duration, number, powers, write_figures
from kinegrad.papers.report.whole_solve import solve_to_the_end
from kinegrad.predictions.catalogue import Prediction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PredictionReport", "predict"]

SOLVERS = {"ipopt": "IPOPT", "cyipopt": "IPOPT", "uno": "Uno", "slsqp": "SLSQP"}
UNVERIFIED = "the predicted torques were not simulated: Ctrl-C ended that"
CAPTIONS = {
    "postures": ("Postures", "At equal steps of time."),
    "coordinates": ("Coordinates", "Those that move most; of left and right, one where both are alike."),
    "torques": (
        "Torques",
        "Those that come nearest to their limits, on 481 instants, not only where they are limited.",
    ),
    "forces": ("Forces", "Unknowns of the problem, at its nodes; straight lines between them."),
    "progress": ("Iterations", "What was left of the conditions of an optimum."),
}
FAMILIES = {
    "dynamics": "torques that nothing supplies, by the terms of their own equations",
    "torque": "excess over a limit, by the limit",
    "power": "excess over a limit, by the limit",
    "speed": "joints that follow a coordinate, excess by the limit",
    "cone": "friction, pressure and torsion, by what half of the weight allows",
    "kept": "contacts, loops and held points, m or rad",
    "clearance": "m; of obstacles by the square of their distance",
    "objective": "difference of its integrals from those of the motion, by its terms",
}


@dataclass(frozen=True)
class PredictionReport:
    """What was found and where it is.

    Attributes
    ----------
    page, results, motion_file : Path
        The HTML page, numbers as JSON, and the motion as CSV.
    solution : MotionSolution
    verification : Verification or None
        How far the motion departs if its torques are simulated forwards; None if Ctrl-C ended that.
    seconds : float
        For solving, of a clock on the wall.
    """

    page: Path
    results: Path
    motion_file: Path
    solution: MotionSolution
    verification: Verification | None
    seconds: float

    @property
    def verified(self) -> str:
        """What the simulation shows."""
        return UNVERIFIED if self.verification is None else self.verification.message


def predict(
    prediction: Prediction,
    out: str | os.PathLike[str],
    *,
    solver: str = "ipopt",
    progress: Any = None,
    stages: Progress | None = None,
    **changes: Any,
) -> PredictionReport:
    """Solve a problem of the catalogue and write a page about its motion.

    Parameters
    ----------
    prediction : Prediction
    out : path
        A folder for the page, the figures and the numbers; files appear in it when all is done, or not at all.  Ctrl-C
        while the solution is simulated ends that alone, and the page says so.
    solver : str
        As of :meth:`MotionProblem.solve`.
    progress : bool or callable, optional
        Of the iterations, as of :meth:`MotionProblem.solve`.
    stages : callable, optional
        Called with what is being done, how much of it is done, and how much there is.
    **changes
        Of the arguments of the function that makes the problem.

    Returns
    -------
    PredictionReport
    """
    from time import perf_counter

    say = stages or (lambda what, done, total: None)
    target = checked_path(out, "out")
    with whole_folder(target) as folder:
        problem = prediction.make(**changes)
        begin = perf_counter()
        guess = problem.guess(**prediction.guess)
        solution = solve_to_the_end(problem, guess, solver=solver, progress=progress, **prediction.options)
        seconds = perf_counter() - begin
        stands = any(isinstance(one, Foot) for one in problem.requirements)
        step = "simulating the predicted torques"
        say(step, 0, 1)
        try:
            verification = solution.verify(
                whole=not stands, progress=partial(say, step)
            )  # without control, who stands falls
        except KeyboardInterrupt:  # the motion is there, and its page is to be
            verification = None
        report = PredictionReport(
            target / "index.html", target / "results.json", target / "motion.csv", solution, verification, seconds
        )
        facts = about("", target, False, ("numpy", "scipy", "casadi", "unopy"))
        facts["command"] = shlex.join(["kinegrad", "predict", prediction.name, "--out", os.fspath(target)])
        motion = solution.motion
        write_trajectory(folder / report.motion_file.name, motion.model, motion.t, motion.q, motion.v, motion.a)
        write_json(folder / report.results.name, _numbers(prediction, report, facts))
        unfinished_page(folder / report.page.name, prediction.title)
    with whole_folder(target) as folder:
        _write_page(folder, prediction, report, facts, say)
    return report


def _write_page(
    folder: Path, prediction: Prediction, report: PredictionReport, facts: dict[str, str], say: Progress
) -> None:
    solution = report.solution
    scene = scene_of(solution, prediction.drawing)
    makers: dict[str, Callable[[], Figure]] = {
        "postures": lambda: figures.plot_postures(scene),
        "coordinates": lambda: figures.plot_coordinates(solution),
        "torques": lambda: figures.plot_torques(solution),
    }
    if (forces := figures.plot_forces(solution)) is not None:
        makers["forces"] = lambda: forces
    makers["progress"] = lambda: figures.plot_progress(solution)
    pictures = write_figures(folder, makers, say)
    page = Page(prediction.title, escape(prediction.text))
    nonlinear, program = solution.nonlinear, solution.problem.program
    page.numbers(
        [
            (f"{solution.duration:.4f} s", "final time <i>T</i>"),
            (f"{program.n} × {program.m}", "unknowns and rows of the nonlinear program"),
            (
                f"{nonlinear.iterations}",
                f"iterations of {SOLVERS[nonlinear.solver]}, in {duration(report.seconds)}",
            ),
            (escape(solution.status), "by the conditions of an optimum, and by a fine grid between the nodes"),
        ]
    )
    page.section("The motion", "motion")
    page.animation(animation(scene, "The motion", _caption(solution)))
    for name, png in pictures.items():
        label, caption = CAPTIONS[name]
        if name == "progress":
            page.section("How it was found", "found")
            page.listing(solution.problem.describe())
            page.paragraph(powers(_sentence(solution.nonlinear.message)))
        page.figure(png, label, caption)
    _quality(page, report)
    page.made("By one command. Numbers are in <code>results.json</code>, the motion in <code>motion.csv</code>.", facts)
    (folder / report.page.name).write_text(page.render(), encoding="utf-8")


def _caption(solution: MotionSolution) -> str:
    stands = any(isinstance(one, Foot) for one in solution.problem.requirements)
    arrows = " Arrows: forces of the ground at the centre of pressure." if stands else ""
    return f"{solution.duration:.3f} s of the solution itself, its splines.{arrows}"


def _quality(page: Page, report: PredictionReport) -> None:
    solution = report.solution
    page.section("How good it is", "good")
    page.paragraph(
        "A solver looks at nodes alone. Here everything was evaluated again on a grid ten times as fine as the "
        "segments of the splines, points were bounded at all times, and the largest excess of each kind is:"
    )
    rows = [
        [escape(one.family), escape(FAMILIES.get(one.family, "")), escape(one.row),
         f"{one.s:.3f} of {escape(one.phase)}", number(one.value), f"{one.tolerance:g}", "yes" if one.within else "no"]
        for one in solution.between
    ]  # fmt: skip
    page.table(
        ["what", "measured in", "where", "when", "excess", "tolerance", "within"], rows, "Table 1",
        "Between the nodes.", words=4,
    )  # fmt: skip
    page.paragraph(
        "The proof is a simulation: forward dynamics with the predicted torques, and with feet and loops kept as "
        "constraints. Begun anew in every segment of the splines, it shows what the solution itself is worth; "
        "over the whole motion, a body that balances is unstable without feedback, so that is done for others alone."
    )
    page.paragraph(powers(_sentence(report.verified)))


def _numbers(prediction: Prediction, report: PredictionReport, facts: dict[str, str]) -> dict[str, Any]:
    solution = report.solution
    nonlinear = solution.nonlinear
    return {
        "name": prediction.name,
        "T": solution.duration,
        "durations": solution.durations.tolist(),
        "objective": solution.objective,
        "success": solution.success,
        "status": solution.status,
        "message": solution.message,
        "iterations": nonlinear.iterations,
        "seconds": report.seconds,
        "unknowns": solution.problem.program.n,
        "rows": solution.problem.program.m,
        "optimality": _finite(nonlinear.optimality),
        "violation": _finite(nonlinear.violation),
        "between": [
            {"family": one.family, "value": one.value, "tolerance": one.tolerance, "row": one.row, "phase": one.phase,
             "s": one.s} for one in solution.between
        ],
        "verification": report.verified,
        "about": facts,
    }  # fmt: skip


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
