"""[kudruss2019] reproduced: what four ways to differentiate dynamics along directions err by, and what they cost.

The page has figure 1, errors against closed forms on a cart-pendulum in minimal coordinates and as a free box with
constraints; figure 2, the effort by the number of directions on a pendulum of ten rods; and what the step does to
differences; and figure 3, how optimisers converge on a lifting motion with exact derivatives and with differences.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kinegrad.directional import STEPS
from kinegrad.errors import InputError
from kinegrad.io.whole_file import checked_path
from kinegrad.papers.kudruss2019 import accuracy, effort, lifting, systems
from kinegrad.papers.kudruss2019.accuracy import Accuracy, StepError
from kinegrad.papers.kudruss2019.cart import EXTENDED
from kinegrad.papers.kudruss2019.effort import Effort
from kinegrad.papers.kudruss2019.findings import findings
from kinegrad.papers.kudruss2019.lifting import Convergence
from kinegrad.papers.kudruss2019.page import write_page
from kinegrad.papers.report.files import plain, write_json, write_rows
from kinegrad.papers.report.folder import whole_folder
from kinegrad.papers.report.page import Progress, about

__all__ = ["Report", "reproduce"]

SAMPLES, QUICK_SAMPLES = 10_000, 2_000  # states of figure 1; the paper has 10 000
DIRECTIONS, QUICK_DIRECTIONS = (1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30), (1, 2, 5, 10, 20, 30)
BUDGET, QUICK_BUDGET = 1.0, 0.15  # s for measuring one task at one number of directions
STEP_SAMPLES = 300


@dataclass(frozen=True)
class Report:
    """What was found and where it is.

    Attributes
    ----------
    page, results, errors_file, efforts_file : Path
        The HTML page, all numbers as JSON, errors and efforts as CSV.
    figures : tuple of Path
        PNG files.
    quick : bool
    samples : int
        States of figure 1.
    epsilon : float
        Of the precision in which closed forms are evaluated; 1.1e-19, or 2.2e-16 where there is no better.
    errors : tuple of Accuracy
        Figure 1.
    efforts : tuple of Effort
        Figure 2.
    steps : tuple of StepError
    convergences : tuple of Convergence
        Figure 3.
    about : dict of str to str
        Command, date, versions, machine.
    """

    page: Path
    results: Path
    errors_file: Path
    efforts_file: Path
    figures: tuple[Path, ...]
    quick: bool
    samples: int
    epsilon: float
    errors: tuple[Accuracy, ...]
    efforts: tuple[Effort, ...]
    steps: tuple[StepError, ...]
    convergences: tuple[Convergence, ...]
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
    samples: int | None = None,
    directions: Sequence[int] | None = None,
    budget: float | None = None,
    masses: Sequence[float] | None = None,
) -> Report:
    """Run the experiments of the paper and write a page about them.

    Parameters
    ----------
    out : path
        A folder for the page, the figures and the numbers; made if it is not there.  Files appear in it when all is
        done, or not at all.
    quick : bool
        Less than a minute: fewer states, fewer numbers of directions, shorter measurements.
    progress : callable, optional
        Called with what is being done, how much of it is done, and how much there is.
    samples : int, optional
        States of figure 1; by default 10 000, as in the paper, and 2000 if quick.
    directions : sequence of int, optional
        Numbers of directions of figure 2, increasing.
    budget : float, optional
        How long one measurement of figure 2 may take, s.
    masses : sequence of float, optional
        Of the boxes of figure 3, kg, each above zero.

    Returns
    -------
    Report

    Examples
    --------
    >>> report = reproduce("out/kudruss2019", quick=True)  # doctest: +SKIP
    >>> reproduce("out/kudruss2019", directions=[3, 2])
    Traceback (most recent call last):
    kinegrad.errors.InputError: `directions` is [3, 2]; expected at least two whole numbers from 1 on, increasing
    """
    count = (QUICK_SAMPLES if quick else SAMPLES) if samples is None else samples
    if count < 1:
        raise InputError(f"`samples` is {count}; expected at least 1")
    along = (QUICK_DIRECTIONS if quick else DIRECTIONS) if directions is None else tuple(directions)
    if len(along) < 2 or along[0] < 1 or list(along) != sorted(set(along)):
        raise InputError(f"`directions` is {list(along)}; expected at least two whole numbers from 1 on, increasing")
    seconds = (QUICK_BUDGET if quick else BUDGET) if budget is None else budget
    boxes = (lifting.QUICK_MASSES if quick else lifting.MASSES) if masses is None else tuple(map(float, masses))
    if not boxes or not all(np.isfinite(box) and box > 0 for box in boxes):
        raise InputError(f"`masses` is {list(boxes)}; expected at least one mass above 0 kg")
    say = progress or (lambda what, done, total: None)
    target = checked_path(out, "out")
    with whole_folder(target) as folder:
        carts = systems.carts()
        methods = tuple(lifting.QUICK_METHODS if quick else lifting.METHODS)
        convergences, lift = lifting.convergences(boxes, say, methods=methods)
        report = Report(
            page=target / "index.html",
            results=target / "results.json",
            errors_file=target / "errors.csv",
            efforts_file=target / "efforts.csv",
            figures=(),
            quick=quick,
            samples=count,
            epsilon=float(np.finfo(EXTENDED).eps),
            errors=tuple(accuracy.accuracies(carts, count, say)),
            efforts=tuple(effort.efforts(systems.multi_pendulum(), along, seconds, say)),
            steps=tuple(accuracy.step_errors(carts, _steps(quick), min(count, STEP_SAMPLES), say)),
            convergences=tuple(convergences),
            about=about("kudruss2019", target, quick, ("numpy", "scipy", "numba", "matplotlib", "casadi", "unopy")),
        )
        report = write_page(folder, report, lift, say)
        write_rows(folder / report.errors_file.name, [_flat(row) for row in report.errors])
        write_rows(folder / report.efforts_file.name, [asdict(row) | {"effort": row.effort} for row in report.efforts])
        write_json(folder / report.results.name, _plain(report))
    return report


def _steps(quick: bool) -> list[float]:
    """Steps of differences, from large to small."""
    return [10.0 ** (-k / (1 if quick else 2)) for k in range(1, 13 if quick else 25)]


# --- files ----------------------------------------------------------------------------------------------------------


def _flat(row: Accuracy) -> dict[str, Any]:
    """A row of figure 1 with a column for each quantile."""
    values = asdict(row)
    quantiles = zip(accuracy.QUANTILES, values.pop("quantiles"), strict=True)
    return values | {f"quantile_{q:g}": x for q, x in quantiles}


def _plain(report: Report) -> dict[str, Any]:
    """The report for JSON."""
    values = plain(report)
    values["efforts"] = [asdict(row) | {"effort": row.effort} for row in report.efforts]
    values["findings"] = list(report.findings)
    values["chosen"] = _chosen()
    return values


def _chosen() -> dict[str, Any]:
    """What the text of the paper leaves open and was chosen here."""
    carts, pendulum = systems.carts(), systems.multi_pendulum()
    assert pendulum.constraints is not None
    return {
        "units": {"lengths": "m", "masses": "kg", "inertia": "kg·m²", "gravity": "m/s²"},
        "carts": {cart.name: asdict(cart.cart) for cart in carts if cart.cart is not None},
        "multi_pendulum": {
            "rods": pendulum.model.n,
            "mass": float(pendulum.model.mass[0]),
            "length": float(-2 * pendulum.model.com[0, 2]),
            "constraints": [repr(one) for one in pendulum.constraints],
        },
        "states": "uniform in [−π, π], directions too, 3 n of them for each state; the same in every run",
        "steps": STEPS | {"relative to": "max(1, largest number of the state)"},
        "states_timed": effort.STATES,
    }
