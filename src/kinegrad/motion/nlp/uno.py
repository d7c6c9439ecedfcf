"""Uno (package ``unopy``): filter SQP for small programs and warm starts, an interior-point method for large ones.

Uno counts multipliers by L = f − λᵀg inside; asked for the other sign, it turns them in the Hessian and in its result,
but not in the callbacks of iterations, where they are turned here.

While it runs it has a handler of SIGINT of its own, below Python's, which a second Ctrl-C kills the process by, and
which stays if two solves overlap.  So the handler that was there is put back at every evaluation, and solves with
Uno wait for each other.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, said
from kinegrad.motion.nlp.evaluation import Evaluator, NotEvaluable, Stopped
from kinegrad.motion.nlp.ipopt import Ending

__all__ = ["PRESETS", "run_uno"]

Array = NDArray[np.float64]
PRESETS = ("filtersqp", "ipopt", "funnelsqp", "filterslp")
ALONE = threading.Lock()
SMALL = 200  # variables up to which the preset is filter SQP, whose steps cost more and are fewer
STATUS = {
    "FEASIBLE_KKT_POINT": "optimal",
    "FEASIBLE_FJ_POINT": "stalled",
    "INFEASIBLE_STATIONARY_POINT": "infeasible",
    "FEASIBLE_SMALL_STEP": "stalled",
    "INFEASIBLE_SMALL_STEP": "infeasible",
    "UNBOUNDED": "unbounded",
    "UNBOUNDED_OBJECTIVE": "unbounded",
    "DIVERGING_ITERATE": "unbounded",
}


def run_uno(
    scaled: Evaluator,
    x0: Array,
    *,
    hessian: str,
    tolerance: float,
    max_iterations: int,
    warm: tuple[Array, Array] | None,
    options: dict[str, Any],
) -> Ending:
    """Solve the scaled program from x0."""
    import unopy

    options = dict(options)
    preset = options.pop("preset", "filtersqp" if scaled.n <= SMALL else "ipopt")
    if preset not in PRESETS:
        raise InputError(f"`options['preset']` is {preset!r}; expected one of {', '.join(map(repr, PRESETS))}")
    handler = _Handler()
    model = _model(unopy, scaled, x0, handler, exact=hessian != "limited-memory")
    if warm is not None:
        model.set_initial_dual_iterate(warm[0].tolist())
    solver = unopy.UnoSolver()
    solver.set_preset(preset)
    given: dict[str, Any] = {
        "logger": "SILENT", "max_iterations": max_iterations,
        "primal_tolerance": tolerance, "dual_tolerance": tolerance,
    }  # fmt: skip
    if hessian == "limited-memory":
        given["hessian_model"] = "LBFGS"
    for name, value in (given | options).items():
        try:
            solver.set_option(name, value)
        except Exception as error:
            raise InputError(f"`options[{name!r}]` is refused by Uno: {said(error)}") from None
    n = scaled.n

    def iterated(
        x: Array, lower: Array, upper: Array, rows: Array, factor: float, *residuals: float
    ) -> None:  # what Uno calls with every iterate that it accepts
        try:
            in_sum = -(np.asarray(lower)[:n] + np.asarray(upper)[:n])
            known = factor == 1.0  # not while it seeks a feasible point, without the objective
            scaled.record(np.array(x[:n]), -np.asarray(rows) if known else None, in_sum if known else None)
        except (NotEvaluable, Stopped):
            pass
        except BaseException as error:
            scaled.error = error

    solver.set_notify_acceptable_iterate_callback(iterated)
    solver.set_termination_callback(lambda *_: scaled.stopping)
    try:
        scaled.record(x0, None, None)
        with ALONE:
            handler.note()
            end = solver.optimize(model)
    except Exception as error:
        if scaled.stopping:
            raise Stopped from None
        return Ending(x0, None, None, "failed", said(error), len(scaled.history))
    word, point = end.optimization_status.name, end.solution_status.name
    if word == "USER_INTERRUPTION":  # before the first evaluation
        scaled.interrupted = True
        raise Stopped
    status = STATUS.get(point, "failed")
    if point == "NOT_OPTIMAL":
        limits = {"ITERATION_LIMIT": "iteration-limit", "EVALUATION_ERROR": "not-finite"}
        status = limits.get(word, "stalled" if word == "ALGORITHMIC_ERROR" else "failed")
    z = np.array(end.lower_bound_dual_solution)[:n] + np.array(end.upper_bound_dual_solution)[:n]
    rows = np.array(end.constraint_dual_solution, dtype=float).reshape(scaled.m)
    return Ending(np.array(end.primal_solution)[:n], rows, z, status, f"{word}, {point}", int(end.number_iterations))


class _Handler:
    """What the operating system calls for SIGINT, which only its own functions can put back from any thread."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None) if hasattr(signal, "SIGKILL") else None  # of POSIX systems
        self._action = ctypes.create_string_buffer(1024)  # larger than any system's struct sigaction
        self._noted = False

    def note(self) -> None:
        """Remember what is there now."""
        self._noted = self._library is not None and self._library.sigaction(signal.SIGINT, None, self._action) == 0

    def put_back(self) -> None:
        """Put back what was there."""
        if self._noted and self._library is not None:
            self._library.sigaction(signal.SIGINT, self._action, None)


def _model(unopy: Any, scaled: Evaluator, x0: Array, handler: _Handler, *, exact: bool) -> Any:
    """The program as Uno wants it; a failed evaluation is an exception, which Uno takes for one."""

    def guarded(function: Any) -> Any:
        def fill(*arguments: Any) -> Any:
            handler.put_back()
            try:
                return function(*arguments)
            except (NotEvaluable, Stopped):
                raise
            except BaseException as error:  # a defect of ours, which is not to be lost either
                scaled.error = error
                raise Stopped from None

        return fill

    def filled(function: Any) -> Any:
        def fill(x: Any, *rest: Any) -> None:
            rest[-1][:] = function(np.array(x[: scaled.n]), *rest[:-1])

        return guarded(fill)

    model = unopy.Model(
        unopy.PROBLEM_NONLINEAR, scaled.n, scaled.lower.tolist(), scaled.upper.tolist(), unopy.ZERO_BASED_INDEXING
    )
    model.set_objective(
        unopy.MINIMIZE, guarded(lambda x: scaled.objective(np.array(x[: scaled.n]))), filled(scaled.gradient)
    )
    if scaled.m:
        rows, columns = scaled.jacobian_pattern
        model.set_constraints(
            scaled.m, filled(scaled.constraints), scaled.g_lower.tolist(), scaled.g_upper.tolist(),
            len(rows), rows.tolist(), columns.tolist(), filled(scaled.jacobian),
        )  # fmt: skip
    if exact:
        low, left = scaled.hessian_pattern

        def second(x: Array, sigma: float, multipliers: Any) -> Array:
            return scaled.hessian(x, sigma, np.array(multipliers[: scaled.m], dtype=float))

        model.set_lagrangian_hessian(len(low), unopy.LOWER_TRIANGLE, low.tolist(), left.tolist(), filled(second))
    model.set_lagrangian_sign_convention(unopy.MULTIPLIER_POSITIVE)
    model.set_initial_primal_iterate(x0.tolist())
    return model
