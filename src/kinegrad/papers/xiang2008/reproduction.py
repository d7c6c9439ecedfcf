"""[xiang2008] reproduced: both examples of its section 6, figures 7 to 14, and what their numbers depend on."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kinegrad.errors import InputError
from kinegrad.io.whole_file import checked_path
from kinegrad.motion.problem import MotionSolution
from kinegrad.motion.problem.verification import Verification
from kinegrad.papers.report.files import write_json, write_rows
from kinegrad.papers.report.folder import whole_folder
from kinegrad.papers.report.page import Progress, about
from kinegrad.papers.xiang2008 import experiment
from kinegrad.papers.xiang2008.bang_bang import BangBang, bang_bang
from kinegrad.papers.xiang2008.cost import SIZES, Cost, costs
from kinegrad.papers.xiang2008.experiment import Minimum, Run, Sweep
from kinegrad.papers.xiang2008.findings import findings
from kinegrad.papers.xiang2008.page import write_page

__all__ = ["Report", "reproduce"]

STARTS, QUICK_STARTS = 20, 5  # of example 1
MINIMA, QUICK_MINIMA = 60, 12  # starts of example 2
QUICK_SIZES = SIZES[:6]  # degrees of freedom of chains
LIMIT, QUICK_LIMIT = 3000, 300  # iterations without exact second derivatives


@dataclass(frozen=True)
class Report:
    """What was found and where it is.

    Attributes
    ----------
    page, results, runs_file : Path
        The HTML page, all numbers as JSON, the solves as CSV.
    figures : tuple of Path
        PNG files.
    quick : bool
    example1, example2 : MotionSolution
        With 20 segments, limits at knots and between them.
    runs : tuple of Run
        By discretisation and solver.
    starts : Sweep
        Of example 1.
    minima : tuple of Minimum
        Of example 2.
    exact : BangBang
        The least time without splines.
    difference : float
        Of sensitivities by recursion and in closed form, relative.
    costs : tuple of Cost
        Of the regular and the recursive equations, section 4.4.
    verification : tuple
        How far both motions depart when their torques are simulated.
    about : dict of str to str
        Command, date, versions, machine.
    """

    page: Path
    results: Path
    runs_file: Path
    figures: tuple[Path, ...]
    quick: bool
    example1: MotionSolution
    example2: MotionSolution
    runs: tuple[Run, ...]
    starts: Sweep
    minima: tuple[Minimum, ...]
    exact: BangBang
    difference: float
    costs: tuple[Cost, ...]
    verification: tuple[Verification, Verification]
    about: dict[str, str]

    @property
    def findings(self) -> tuple[str, ...]:
        """What was found, a sentence or two each."""
        return tuple(findings(self))


def reproduce(
    out: str | os.PathLike[str],
    quick: bool = False,
    progress: Progress | None = None,
    *,
    starts: int | None = None,
    minima: int | None = None,
) -> Report:
    """Run the experiments of the paper and write a page about them.

    Parameters
    ----------
    out : path
        A folder for the page, the figures and the numbers; made if it is not there.  Files appear in it when all is
        done, or not at all.
    quick : bool
        Fewer starts, and fewer iterations for solvers without exact second derivatives.
    progress : callable, optional
        Called with what is being done, how much of it is done, and how much there is.
    starts, minima : int, optional
        How many starts of example 1 and of example 2.

    Returns
    -------
    Report

    Examples
    --------
    >>> report = reproduce("out/xiang2008", quick=True)  # doctest: +SKIP
    >>> reproduce("out/xiang2008", starts=0)
    Traceback (most recent call last):
    kinegrad.errors.InputError: `starts` is 0; expected at least 1
    """
    first = (QUICK_STARTS if quick else STARTS) if starts is None else starts
    second = (QUICK_MINIMA if quick else MINIMA) if minima is None else minima
    for name, count in (("starts", first), ("minima", second)):
        if count < 1:
            raise InputError(f"`{name}` is {count}; expected at least 1")
    say = progress or (lambda what, done, total: None)
    target = checked_path(out, "out")
    names = ["ipopt", *(["uno"] if find_spec("unopy") else []), "slsqp"]
    limit = QUICK_LIMIT if quick else LIMIT
    with whole_folder(target) as folder:
        solutions = [experiment.solve(example)[0] for example in (1, 2)]
        runs: list[Run] = []
        for example in (1, 2):
            runs += experiment.discretisations(example, say)
            runs += experiment.solvers(example, names, say, limit)
        sensitivity = experiment.sensitivities(solutions[1])
        report = Report(
            page=target / "index.html",
            results=target / "results.json",
            runs_file=target / "runs.csv",
            figures=(),
            quick=quick,
            example1=solutions[0],
            example2=solutions[1],
            runs=tuple(runs),
            starts=experiment.starts(first, say),
            minima=tuple(experiment.minima(second, say)),
            exact=bang_bang(),
            difference=sensitivity.difference,
            costs=tuple(costs(QUICK_SIZES if quick else SIZES, say)),
            verification=(solutions[0].verify(), solutions[1].verify()),
            about=about("xiang2008", target, quick, ("numpy", "scipy", "casadi", "unopy", "matplotlib")),
        )
        report = write_page(folder, report, sensitivity, say)
        rows = [{k: v for k, v in asdict(run).items() if k not in ("history", "distances")} for run in report.runs]
        write_rows(folder / report.runs_file.name, rows)
        write_json(folder / report.results.name, _plain(report))
    return report


def _plain(report: Report) -> dict[str, Any]:
    """The report for JSON."""
    return {
        "quick": report.quick,
        "examples": [
            {"T": one.duration, "objective": one.objective, "iterations": one.iterations, "status": one.status}
            for one in (report.example1, report.example2)
        ],
        "runs": [asdict(run) for run in report.runs],
        "starts": asdict(report.starts),
        "minima": [asdict(one) for one in report.minima],
        "bang_bang": asdict(report.exact),
        "sensitivity_difference": report.difference,
        "costs": [asdict(one) for one in report.costs],
        "verification": [one.message for one in report.verification],
        "findings": list(report.findings),
        "about": report.about,
    }
