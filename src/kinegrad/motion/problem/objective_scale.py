"""The scale of an objective, so that a solver's tolerance means the same for the efforts of a gram and of a ship.

Solvers stop where slopes are below a tolerance, in whatever units the objective is: without a scale, a guess whose
effort is 1e-17 N²·s would be an optimum.  The size of an objective at x is the largest of

    |∂f/∂x̂|,    |f|,    ε |∂²f/∂x̂²| |x̂|                                                                             (1)

with x̂ scaled.  Slopes alone are not enough: they are zero at an optimum, from which a solve may start again.  Where f
is zero there, too, as of a motion that is followed exactly, slopes are rounding of what the last of (1) is a part of;
and without ε it tells that the units are ordinary ones.

A guess may be bad: efforts of a motion that is much too fast are larger than those of the optimum by many powers of
ten, and what is small beside them is not small.  So the size is looked at again where a solve has ended, and if it is
another one there, the solve goes on from there with that scale (decision 158).
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import SolveError
from kinegrad.motion.nlp import NonlinearSolution, solve
from kinegrad.motion.problem.program import MotionProgram

Array = NDArray[np.float64]
ORDINARY = (1e-4, 1e6)  # sizes of objectives that solvers take as they are
PART = 1e-5  # ε: what is left of slopes at a tolerance of 1e-6 is then far above rounding
LEAST = 1e-6  # of x, scaled: less is zero
MOST = 30  # solves, of which each has a tenth of the scale before
ENDED = ("optimal", "saddle", "stalled")


def solve_scaled(
    program: MotionProgram, x0: Array, scale: float | None = None, *, guessed: bool = False, **how: Any
) -> tuple[NonlinearSolution, float]:
    """The solution, and the scale of the objective in which it is one; `scale` is the first to try.

    If `guessed`, nobody asked for x0, and a checkpoint may have begun with another guess.
    """
    scale = _first_scale(program, x0) if scale is None else scale
    file = how.get("checkpoint")
    found = solve(_with_scale(program, scale), None if guessed and _exists(file) else x0, **how)
    for _ in range(MOST):
        as_it_is = scale == 1.0 and abs(found.f) >= ORDINARY[0] and found.success
        if as_it_is or found.status not in ENDED:
            break
        here = _scale(program, found.x)
        if not (scale > 5 * here or (here > 50 * scale and not found.success)):  # all are powers of ten
            break
        scale = here
        rest = how | {"max_iterations": max(how["max_iterations"] - found.iterations, 1), "warm_start": None}
        again = solve(_with_scale(program, scale), None if _exists(file) else found.x, **rest)
        found = again if file is not None else _joined(found, again)
    return found, scale


def _exists(file: Any) -> bool:
    return file is not None and Path(file).exists()


def _with_scale(program: MotionProgram, scale: float) -> MotionProgram:
    """A program of its own, since others may be solving this one on other threads."""
    found = copy.copy(program)
    found.f_scale = scale
    return found


def _first_scale(program: MotionProgram, x: Array) -> float:
    """One where slopes are ordinary, as they nearly always are."""
    slope = _slope(program, x)
    return 1.0 if not slope < ORDINARY[0] and not slope > ORDINARY[1] else _scale(program, x)


def _scale(program: MotionProgram, x: Array) -> float:
    """One, or a power of ten near (1) if that is far from one."""
    try:
        f, bend = abs(float(program.objective(x))), np.zeros(program.n)
        rows, columns = program.hessian_pattern
        diagonal = rows == columns
        bend[rows[diagonal]] = program.hessian(x, 1.0, np.zeros(program.m))[diagonal]
    except SolveError:
        return 1.0
    way = np.maximum(np.abs(x / program.x_scale), LEAST)
    curved = float((np.abs(bend) * program.x_scale**2 * way).max(initial=0.0))
    size = max(_slope(program, x), f, PART * curved)
    if not (np.isfinite(size) and size > 0) or (size <= ORDINARY[1] and max(size, curved) >= ORDINARY[0]):
        return 1.0
    return float(10.0 ** round(np.log10(size)))


def _slope(program: MotionProgram, x: Array) -> float:
    try:
        return float(np.abs(program.gradient(x) * program.x_scale).max(initial=0.0))
    except SolveError:  # no numbers there: the solver will say so
        return np.nan


def _joined(first: NonlinearSolution, second: NonlinearSolution) -> NonlinearSolution:
    """The second of two solves in a row, with what both took."""
    done, iterates = first.iterations, second.iterates
    history = [
        replace(one, iteration=one.iteration + done, seconds=one.seconds + first.seconds) for one in second.history
    ]
    if iterates is not None and first.iterates is not None:
        iterates = np.concatenate([first.iterates, iterates])
    return replace(
        second, iterations=done + second.iterations, evaluations=first.evaluations + second.evaluations,
        history=(*first.history, *history), seconds=first.seconds + second.seconds, iterates=iterates,
    )  # fmt: skip
