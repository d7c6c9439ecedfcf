"""[anderson2002] reproduced: what da/dp costs on chains by its three methods, and its double pendulum.

The page has figure 2, the time of an evaluation by the number of degrees of freedom, with fitted exponents; figures 4
to 7, how the kinetic energy of a double pendulum depends on lengths and masses over 20 s by three methods; what the
perturbation does to differences; and where formulas are misprinted.

"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from kinegrad import samples
from kinegrad.errors import InputError
from kinegrad.io.whole_file import checked_path
from kinegrad.papers.anderson2002 import experiment as chains
from kinegrad.papers.anderson2002 import pendulum as swing
from kinegrad.papers.anderson2002.experiment import Closest, Crossing, Exponent, Pair, Rounding, Timing
from kinegrad.papers.anderson2002.extended import EPSILON
from kinegrad.papers.anderson2002.findings import findings
from kinegrad.papers.anderson2002.page import write_page
from kinegrad.papers.anderson2002.pendulum import Deviation, Pendulum, Perturbation, Wild
from kinegrad.papers.report.files import plain, write_json
from kinegrad.papers.report.folder import whole_folder
from kinegrad.papers.report.page import Progress, about

__all__ = ["Report", "reproduce"]

LIMIT, QUICK_LIMIT = 2.0, 0.2  # s an evaluation may take
BUDGET, QUICK_BUDGET = 1.5, 0.15  # s for measuring at one size


@dataclass(frozen=True)
class Report:
    """What was found and where it is.

    Attributes
    ----------
    page, results, times, curves : Path
        The HTML page, all numbers as JSON, times and errors of the methods as CSV, the sensitivities over time as CSV.
    figures : tuple of Path
        PNG files.
    quick : bool
    limit : float
        A method is not tried at sizes where one evaluation would take longer, s.
    stopped : dict of str to int
        The first size at which a method was not tried any more.
    compile_seconds, call_seconds : float
        To compile the methods, and for an empty call.
    timings, small : tuple of Timing
        Figure 2; and small chains with other numbers of parameters.
    roundings : tuple of Rounding
    pairs : tuple of Pair
        Differences of any two methods.
    epsilon : float
        Of the precision in which the errors in `roundings` are taken; 1.1e-19, or 2.2e-16 where there is no better.
    exponents : tuple of Exponent
    crossings : tuple of Crossing
    closest : Closest
    deviations : tuple of Deviation
        Figures 4 to 7.
    integration_error : float
        Of the sensitivities in them, relative; the largest of the four parameters.
    perturbations : tuple of Perturbation
    wild : Wild
    about : dict of str to str
        Command, date, versions, machine.
    """

    page: Path
    results: Path
    times: Path
    curves: Path
    figures: tuple[Path, ...]
    quick: bool
    limit: float
    stopped: dict[str, int]
    compile_seconds: float
    call_seconds: float
    timings: tuple[Timing, ...]
    small: tuple[Timing, ...]
    roundings: tuple[Rounding, ...]
    pairs: tuple[Pair, ...]
    epsilon: float
    exponents: tuple[Exponent, ...]
    crossings: tuple[Crossing, ...]
    closest: Closest
    deviations: tuple[Deviation, ...]
    integration_error: float
    perturbations: tuple[Perturbation, ...]
    wild: Wild
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
    sizes: Sequence[int] = chains.SIZES,
    steps: Sequence[float] | None = None,
) -> Report:
    """Run the experiments of the paper and write a page about them.

    Parameters
    ----------
    out : path
        A folder for the page, the figures and the numbers; made if it is not there.  Files appear in it when all is
        done, or not at all.
    quick : bool
        About a minute: shorter measurements, slow methods on smaller chains only, perturbations of L1 alone.
    progress : callable, optional
        Called with what is being done, how much of it is done, and how much there is.
    sizes : sequence of int
        Degrees of freedom of the chains, increasing, at least two.
    steps : sequence of float, optional
        Perturbations of differences, m or kg; by default 0.1 to 1e-11.  The paper's is always among them.

    Returns
    -------
    Report

    Examples
    --------
    >>> report = reproduce("out/anderson2002", quick=True)  # doctest: +SKIP
    >>> report.exponents[0]  # doctest: +SKIP
    Exponent(method='fully recursive', exponent=1.004, smallest=128, largest=512, order=1, products=None)

    >>> reproduce("out/anderson2002", sizes=[8, 4])
    Traceback (most recent call last):
    kinegrad.errors.InputError: `sizes` is [8, 4]; expected at least two numbers of joints, from 2 on, increasing
    """
    if len(sizes) < 2 or sizes[0] < 2 or any(high <= low for low, high in pairwise(sizes)):
        raise InputError(f"`sizes` is {list(sizes)}; expected at least two numbers of joints, from 2 on, increasing")
    if steps is None:
        steps = [10.0**-k for k in range(1, 12)] if quick else [10 ** (-k / 2) for k in range(2, 23)]
    if len(steps) < 1 or min(steps) <= 0:
        raise InputError(f"`steps` is {list(steps)}; expected positive perturbations")
    say = progress or (lambda what, done, total: None)
    limit, budget = (QUICK_LIMIT, QUICK_BUDGET) if quick else (LIMIT, BUDGET)
    target = checked_path(out, "out")
    with whole_folder(target) as folder:
        compiling, call = chains.compile_methods(say)
        timings, roundings, pairs, stopped = chains.times(sizes, limit, budget, say)
        small = chains.small_times(budget / 8, say)
        motion = swing.pendulum(say)
        names = ["L1"] if quick else list(swing.STEPS)
        report = Report(
            page=target / "index.html",
            results=target / "results.json",
            times=target / "times.csv",
            curves=target / "sensitivities.csv",
            figures=(),
            quick=quick,
            limit=limit,
            stopped=stopped,
            compile_seconds=compiling,
            call_seconds=call,
            timings=tuple(timings),
            small=tuple(small),
            roundings=tuple(roundings),
            pairs=tuple(pairs),
            epsilon=EPSILON,
            exponents=tuple(chains.exponents(timings)),
            crossings=tuple(chains.all_crossings(small)),
            closest=chains.closest(small),
            deviations=tuple(swing.deviations(motion)),
            integration_error=motion.integration_error,
            perturbations=tuple(swing.perturbations(motion, names, steps, say)),
            wild=swing.wild_swing(say),
            about=about("anderson2002", target, quick, ("numpy", "scipy", "numba", "matplotlib")),
        )
        report = write_page(folder, report, motion, say)
        _write_times(folder / report.times.name, report)
        _write_curves(folder / report.curves.name, motion)
        write_json(folder / report.results.name, _plain(report))
    return report


# --- files ----------------------------------------------------------------------------------------------------------


def _plain(report: Report) -> dict[str, Any]:
    """The report for JSON."""
    values = plain(report)
    values["deviations"] = [asdict(row) | {"relative": row.relative} for row in report.deviations]
    beyond = [asdict(row) | {"at": "beyond" if row.at == inf else row.at} for row in report.crossings]
    values["crossings"] = beyond  # JSON has no infinity
    values["findings"] = list(report.findings)
    values["chosen"] = _chosen()
    return values


def _chosen() -> dict[str, Any]:
    """What the text of the paper leaves open and was chosen here, and the perturbations, which are the paper's."""
    units = {"lengths": "m", "masses": "kg", "inertia": "kg·m²", "angles": "rad", "gravity": "m/s²", "time": "s"}
    pendulum = {
        "values": swing.VALUES,
        "start": {"q": swing.START, "v": (0.0, 0.0)},
        "wild_start": {"q": swing.WILD, "v": (0.0, 0.0)},
        "gravity": samples.double_pendulum().gravity.tolist(),
        "duration": swing.DURATION,
        "instants": swing.INSTANTS,
        "integrator": "DOP853",
        "tolerances": {"tight": swing.TIGHT, "loose": swing.LOOSE, "reference": swing.REFERENCE},
        "absolute_tolerance": "a tenth of the relative one",
        "paper_perturbations": swing.STEPS,
    }
    bar = samples.spatial_chain(1)
    spatial = {
        "length": float(-2 * bar.com[0, 2]),
        "mass": float(bar.mass[0]),
        "inertia": np.diag(bar.inertia[0]).tolist(),
        "gravity": bar.gravity.tolist(),
        "states": "normal random, seed [2002, n, p]: 0.5 rad and 0.5 rad/s; slopes of them 1",
        "states_checked": chains.CHECKED,
    }
    return {"units": units, "double_pendulum": pendulum, "chains": spatial}


def _write_times(path: Path, report: Report) -> None:
    """A line for each method and size: the time, and the error of rounding."""
    errors = {(row.method, row.n): row.error for row in report.roundings}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["method", "n", "p", "seconds", "evaluations", "relative_error"])
        for row in report.timings:
            writer.writerow([row.method, row.n, row.p, row.seconds, row.evaluations, errors[row.method, row.n]])


def _write_curves(path: Path, x: Pendulum) -> None:
    """A line for each instant: the kinetic energy, and its sensitivities according to all methods."""
    columns = {
        f"dT_d{name}.{method.replace(' ', '_')}": values[:, k]
        for method, values in x.sensitivity.items()
        for k, name in enumerate(swing.STEPS)
    }
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["t", "kinetic_energy", *columns])
        writer.writerows(np.column_stack([x.t, x.kinetic, *columns.values()]).tolist())
