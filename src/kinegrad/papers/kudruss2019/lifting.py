"""Figure 3 of [kudruss2019]: how an optimiser converges on a bend and lift, with exact derivatives and differences.

The problem is :func:`kinegrad.predictions.sagittal_lift`: a human of 8 degrees of freedom in the sagittal plane, two
phases, a box at the hands in the second.  Where the paper collocates states, here coordinates are splines and torques
follow from inverse dynamics, so iterations are not those of the paper; what is compared is the same: one program, one
start, once with exact first derivatives and once with forward differences, and the distance of every iterate to the
last one.  The paper's SQP approximates second derivatives from first ones; "quasi-Newton SQP" does that, too, with BFGS
updates of limited memory, while "SQP" and "interior point" have the exact Hessian with either kind of gradient.
Distances are of unknowns divided by their scales, so that metres, radians and newtons can be added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np

from kinegrad.motion.problem import MotionSolution
from kinegrad.papers.report.page import Progress
from kinegrad.papers.report.whole_solve import solve_to_the_end
from kinegrad.predictions.sagittal import sagittal_lift

__all__ = ["KINDS", "MASSES", "METHODS", "Convergence", "convergences"]

MASSES, QUICK_MASSES = (5.0, 10.0, 20.0), (10.0,)  # kg
LIMIT = 600  # iterations
SHOWN = "interior point, exact"  # whose motion the page plays
KINDS: dict[str, dict[str, Any]] = {
    "SQP": {"solver": "uno", "hessian": "exact", "options": {"preset": "filtersqp"}},
    "quasi-Newton SQP": {"solver": "uno", "hessian": "limited-memory", "options": {"preset": "filtersqp"}},
    "interior point": {"solver": "ipopt", "hessian": "exact"},
    "limited memory": {"solver": "ipopt", "hessian": "limited-memory"},
}
METHODS: dict[str, dict[str, Any]] = {
    f"{kind}, {how}": {**options, "gradient": gradient}
    for kind, options in KINDS.items()
    for how, gradient in (("exact", "exact"), ("differences", "forward"))
}


@dataclass(frozen=True)
class Convergence:
    """One solve.

    Attributes
    ----------
    mass : float
        Of the box, kg.
    method : str
        A key of :data:`METHODS`.
    distances : tuple of float
        ‖x_k − x*‖₂ of the iterates x_k to the last one, scaled.
    final_time, objective : float
    iterations : int
    seconds : float
        Processor time.
    status : str
    """

    mass: float
    method: str
    distances: tuple[float, ...]
    final_time: float
    objective: float
    iterations: int
    seconds: float
    status: str


SLOW = ("limited memory, differences", "quasi-Newton SQP, differences")  # the slowest by far
QUICK_METHODS = tuple(name for name in METHODS if name not in SLOW)


def convergences(
    masses: Sequence[float], say: Progress, *, methods: Sequence[str] = tuple(METHODS), segments: int = 8
) -> tuple[list[Convergence], MotionSolution]:
    """Methods by name for all masses, from one start, those of SQP where Uno is installed; and a motion to show."""
    chosen = {name: METHODS[name] for name in methods if METHODS[name]["solver"] != "uno" or find_spec("unopy")}
    rows: list[Convergence] = []
    total = len(masses) * len(chosen)
    shown: MotionSolution | None = None
    for mass in masses:
        problem = sagittal_lift(mass, segments=segments)
        start, scale = problem.guess(), problem.program.x_scale
        for name, how in chosen.items():
            begin = process_time()
            solution = solve_to_the_end(problem, start, keep_iterates=True, max_iterations=LIMIT, **how)
            seconds = process_time() - begin
            shown = solution if shown is None or name == SHOWN else shown
            found = solution.nonlinear
            assert found.iterates is not None
            distances = np.linalg.norm((found.iterates - found.x) / scale, axis=1)
            rows.append(
                Convergence(
                    mass, name, tuple(distances.tolist()), solution.duration, solution.objective, found.iterations,
                    seconds, found.status,
                )
            )  # fmt: skip
            say("figure 3", len(rows), total)
    assert shown is not None
    return rows, shown
