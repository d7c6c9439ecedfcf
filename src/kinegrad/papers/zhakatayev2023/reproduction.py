"""[zhakatayev2023] reproduced: exact sensitivities of the 43-joint human beside numerical ones, sections 5.2 and 6.

Every coordinate moves as q = sin 2πt, at 301 instants in 3 s.  The page has the paper's figures 1 to 6, the error
of numerical differentiation in all 3·1849 entries, and what each method costs.  Numerical methods:

numdifftools   adaptive, steps that do not shrink with x: what :func:`kinegrad.compare.numerical_jacobian` offers
jacobianest    adaptive, steps in proportion to x: the rule of the MATLAB function that the paper used
central        one step each way
forward        one step

Joints are numbered from 1 in what is printed and drawn, as in the paper.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kinegrad.errors import InputError
from kinegrad.io.whole_file import checked_path
from kinegrad.papers.report.files import plain, write_json
from kinegrad.papers.report.folder import whole_folder
from kinegrad.papers.report.page import Progress, about
from kinegrad.papers.zhakatayev2023 import experiment as work
from kinegrad.papers.zhakatayev2023.disagreements import Disagreements, disagreements
from kinegrad.papers.zhakatayev2023.experiment import EntryErrors, Experiment, MatrixErrors, Spike, Timing
from kinegrad.papers.zhakatayev2023.page import write_page

__all__ = ["EntryErrors", "MatrixErrors", "Report", "Spike", "Timing", "reproduce"]

QUICK_INSTANTS = 3  # whole adaptive matrices in quick mode


@dataclass(frozen=True)
class Report:
    """What was found and where it is.

    Attributes
    ----------
    page, results, rms : Path
        The HTML page, all numbers as JSON, and the RMS error of every entry as CSV.
    figures : tuple of Path
        PNG files.
    quick : bool
    instants : int
    entries, zeros : int
        Of one matrix; and those that topology makes zero.
    zeros_exact : bool
        Whether the analytic derivatives are exactly zero there.
    curves : tuple of EntryErrors
        Figures 4 and 5.
    matrices : tuple of MatrixErrors
    spikes : tuple of Spike
    disagreements : Disagreements
        Figures 5 and 6, beside what the paper says.
    timings : tuple of Timing
    about : dict of str to str
        Command, date, versions, machine.
    """

    page: Path
    results: Path
    rms: Path
    figures: tuple[Path, ...]
    quick: bool
    instants: int
    entries: int
    zeros: int
    zeros_exact: bool
    curves: tuple[EntryErrors, ...]
    matrices: tuple[MatrixErrors, ...]
    spikes: tuple[Spike, ...]
    disagreements: Disagreements
    timings: tuple[Timing, ...]
    about: dict[str, str]

    @property
    def spike_statement(self) -> str:
        """Whether the two adaptive methods break down at t = 0.5 s and 1 s, a sentence each."""
        return work.spike_statement(self.spikes, lambda x: f"{x:.3g}")


def reproduce(
    out: str | os.PathLike[str],
    quick: bool = False,
    progress: Progress | None = None,
    *,
    instants: int = work.INSTANTS,
    adaptive_instants: int | None = None,
) -> Report:
    """Run the experiment of the paper and write a page about it.

    Parameters
    ----------
    out : path
        A folder for the page, the figures and the numbers; made if it is not there.  Files appear in it when all is
        done, or not at all.
    quick : bool
        Whole matrices by adaptive differentiation at three instants only (figures 4 and 5 are always complete).
        Seconds instead of minutes.
    progress : callable, optional
        Called with what is being done, how much of it is done, and how much there is.
    instants : int
        In 3 s, at least 7, 6k + 1 of them: so that half seconds are among them.
    adaptive_instants : int, optional
        For whole matrices by adaptive differentiation; by default all, or three if quick.

    Returns
    -------
    Report

    Examples
    --------
    >>> report = reproduce("out/zhakatayev2023", quick=True)  # doctest: +SKIP
    >>> report.zeros, report.entries, report.page.name  # doctest: +SKIP
    (1102, 1849, 'index.html')

    Half seconds must be among the instants, for there the paper's method breaks down:

    >>> reproduce("out/zhakatayev2023", instants=300)
    Traceback (most recent call last):
    kinegrad.errors.InputError: `instants` is 300; expected 7, 13, 19, … so that half seconds are among them
    """
    if not isinstance(instants, int) or instants < 7 or instants % 6 != 1:
        raise InputError(f"`instants` is {instants!r}; expected 7, 13, 19, … so that half seconds are among them")
    count = (QUICK_INSTANTS if quick else instants) if adaptive_instants is None else adaptive_instants
    if not isinstance(count, int) or not 1 <= count <= instants:
        raise InputError(f"`adaptive_instants` is {count!r}; expected 1 to {instants}")
    say = progress or (lambda what, done, total: None)
    target = checked_path(out, "out")
    with whole_folder(target) as folder:
        timings: list[Timing] = []
        found = work.experiment(instants, count, say, timings)
        zeros = work.topological_zeros(found.model)
        report = Report(
            page=target / "index.html",
            results=target / "results.json",
            rms=target / "rms.csv",
            figures=(),
            quick=quick,
            instants=instants,
            entries=int(zeros.size),
            zeros=int(zeros.sum()),
            zeros_exact=not found.exact[:, :, zeros].any(),
            curves=tuple(work.curve_errors(found)),
            matrices=tuple(work.matrix_errors(found)),
            spikes=tuple(work.spikes(found)),
            disagreements=disagreements(found),
            timings=tuple(timings),
            about=about("zhakatayev2023", target, quick, ("numpy", "numba", "numdifftools", "matplotlib", "pin")),
        )
        report = write_page(folder, report, found, say)
        _write_rms(folder / report.rms.name, found)
        write_json(folder / report.results.name, plain(report) | {"spike_statement": report.spike_statement})
    return report


# --- files ------------------------------------------------------------------------------------------------------


def _write_rms(path: Path, x: Experiment) -> None:
    """RMS errors of all entries, a line each."""
    zeros = work.topological_zeros(x.model)
    names = x.model.joint_names
    rms = {method: work.rms_errors(x, method) for method in x.matrices}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        header = ["by", "torque", "joint", "torque_name", "joint_name", "topological_zero"]
        writer.writerow([*header, *(f"rms_{method}" for method in rms)])
        for (k, i, j), zero in np.ndenumerate(np.broadcast_to(zeros, (3, *zeros.shape))):
            errors = [float(values[k, i, j]) for values in rms.values()]
            writer.writerow([work.INPUTS[k], i + 1, j + 1, names[i], names[j], int(zero), *errors])
