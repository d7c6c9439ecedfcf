"""The point that a solve returns, judged by the conditions of an optimum and not by the solver's word."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import SolveError
from kinegrad.motion.nlp import conditions as kkt
from kinegrad.motion.nlp.conditions import SLACK
from kinegrad.motion.nlp.evaluation import Evaluator, NotEvaluable, Stopped
from kinegrad.motion.nlp.ipopt import Ending
from kinegrad.motion.nlp.messages import explanation
from kinegrad.motion.nlp.program import NonlinearProgram
from kinegrad.motion.nlp.solution import STATUSES, NonlinearSolution

__all__ = ["judged_solution", "still_optimal", "stopped"]

Array = NDArray[np.float64]
AFTERWARDS = "when the solver had ended"


@np.errstate(all="ignore")  # what overflows is not finite, and is told
def judged_solution(
    scaled: Evaluator, ending: Ending | None, start: Array, solver: str, hessian: str, gradient: str, tolerance: float
) -> NonlinearSolution:
    """The point to return, judged by the conditions of an optimum."""
    interrupted = scaled.interrupted
    exact = Evaluator(scaled.program, tolerance=tolerance)  # counts and differences of the solve are left as they are
    candidates: list[tuple[Array, Array | None, Array | None]] = []
    if ending is not None and not interrupted:
        candidates.append((ending.x, ending.g_multipliers, ending.x_multipliers))
    if scaled.best is not None:
        candidates.append(scaled.best)
    candidates.append((start / scaled.x_scale, None, None))
    judged = None
    for x, rows, bounds in candidates:
        judged = _judge(exact, x, rows, bounds, tolerance)
        if judged is not None:
            break
    if exact.error is not None:
        raise exact.error
    if judged is None:
        raise SolveError(f"the program has no finite values where it had some before: {exact.trouble}")
    if ending is not None and not interrupted and scaled.best is not None and not judged.fulfilled(tolerance):
        other = _judge(exact, *scaled.best, tolerance)
        if other is not None and other.rank(tolerance) < judged.rank(tolerance):
            judged = other
    status, word = ("interrupted", "stopped") if interrupted or ending is None else (ending.status, ending.word)
    claimed = status
    if not interrupted:
        if judged.fulfilled(tolerance):
            status = "optimal" if judged.is_minimum else "saddle"
        elif status == "optimal":
            status = "stalled"
    if scaled.interrupted and not interrupted:
        status, word = "interrupted", AFTERWARDS
    x = np.clip(judged.x * scaled.x_scale, scaled.program.x_lower, scaled.program.x_upper)
    g = judged.g * scaled.g_scale
    message = explanation(scaled, status, claimed, word, judged.conditions, judged.curvature, x, g, tolerance)
    return NonlinearSolution(
        x, judged.f * scaled.f_scale, g,
        judged.x_multipliers * scaled.f_scale / scaled.x_scale, judged.g_multipliers * scaled.f_scale / scaled.g_scale,
        judged.conditions.optimality, judged.conditions.violation, judged.conditions.complementarity, judged.curvature,
        status, message,
        scaled.iterations_before + (ending.iterations if ending is not None else _done(scaled)),
        scaled.evaluations, tuple(scaled.history), scaled.seconds(), solver, hessian, gradient, word,
        None if scaled.iterates is None else np.array(scaled.iterates).reshape(-1, scaled.n),
    )  # fmt: skip


def stopped(solution: NonlinearSolution) -> NonlinearSolution:
    """A solution after which Ctrl-C has come."""
    message = f"{STATUSES['interrupted']} ({AFTERWARDS}); before: {solution.message}"
    return replace(solution, status="interrupted", message=message)


def _done(scaled: Evaluator) -> int:
    """Iterations of a solve that was stopped, as far as they were seen."""
    return scaled.history[-1].iteration - scaled.iterations_before if scaled.history else 0


class _Judged:
    """A point in scaled numbers, with multipliers, and what is left of the conditions there."""

    def __init__(self, exact: Evaluator, x: Array, rows: Array | None, bounds: Array | None, tolerance: float) -> None:
        self.x = np.clip(x, exact.lower, exact.upper)
        self.f, self.g = exact.objective(self.x), exact.constraints(self.x)
        gradient, jacobian = exact.gradient(self.x), exact.jacobian(self.x)
        found = []
        if rows is not None and bounds is not None and np.isfinite(rows).all() and np.isfinite(bounds).all():
            found.append((self._measure(exact, gradient, jacobian, rows, bounds), rows, bounds))
        if not found or found[0][0].worst > SLACK * tolerance:
            near = max(SLACK * tolerance, 1e-8)
            estimated = kkt.estimated_multipliers(exact, self.x, self.g, gradient, jacobian, near)
            if estimated is None and not found:
                estimated = np.zeros(exact.m), np.zeros(exact.n)
            if estimated is not None:
                found.append((self._measure(exact, gradient, jacobian, *estimated), *estimated))
        self.conditions, rows, bounds = min(found, key=lambda each: each[0].worst)
        self.g_multipliers = kkt.possible(rows, exact.g_lower, exact.g_upper)
        self.x_multipliers = kkt.possible(bounds, exact.lower, exact.upper)
        fixed = exact.lower == exact.upper
        left = gradient + exact.jacobian_matrix(jacobian).T @ self.g_multipliers
        self.x_multipliers = np.where(fixed, -left, self.x_multipliers)
        self.curvature, self.is_minimum = np.nan, True
        if self.fulfilled(tolerance):
            self._curve(exact, jacobian, tolerance)

    def _measure(
        self, exact: Evaluator, gradient: Array, jacobian: Array, rows: Array, bounds: Array
    ) -> kkt.Conditions:
        return kkt.optimality_conditions(exact, self.x, self.g, gradient, jacobian, rows, bounds)

    def _curve(self, exact: Evaluator, jacobian: Array, tolerance: float) -> None:
        """Tell a saddle or a maximum from a minimum."""
        try:
            hessian = exact.hessian(self.x, 1.0, self.g_multipliers)
        except NotEvaluable:
            return
        except Stopped:
            if not isinstance(exact.error, NotImplementedError):
                raise
            exact.error = None  # a program that has none, solved without
            return
        near = max(SLACK * tolerance, 1e-8)
        multipliers = (self.g_multipliers, self.x_multipliers)
        self.curvature = np.inf
        for among, size in kkt.separate(exact, jacobian, hessian):
            least = -np.sqrt(tolerance) * max(1.0, size)
            found = kkt.curvature(exact, self.x, self.g, jacobian, hessian, near, multipliers, least, among)
            self.curvature = found if np.isnan(found) else min(self.curvature, found)
            self.is_minimum = self.is_minimum and not found < least

    def fulfilled(self, tolerance: float) -> bool:
        return self.conditions.worst <= SLACK * tolerance

    def rank(self, tolerance: float) -> tuple[float, float]:
        outside = self.conditions.violation
        return (outside if outside > SLACK * tolerance else 0.0, self.f)


def _judge(exact: Evaluator, x: Array, rows: Array | None, bounds: Array | None, tolerance: float) -> _Judged | None:
    """The point judged; None if there is nothing at it."""
    try:
        return _Judged(exact, x, rows, bounds, tolerance)
    except (NotEvaluable, Stopped):
        return None


@np.errstate(all="ignore")
def still_optimal(program: NonlinearProgram, found: NonlinearSolution, tolerance: float) -> bool:
    """Whether a solution is one of this program, within this tolerance."""
    if not found.success:
        return False
    exact = Evaluator(program, tolerance=tolerance)
    rows = found.g_multipliers * exact.g_scale / exact.f_scale
    bounds = found.x_multipliers * exact.x_scale / exact.f_scale
    judged = _judge(exact, found.x / exact.x_scale, rows, bounds, tolerance)
    if exact.error is not None:
        raise exact.error
    return judged is not None and judged.fulfilled(tolerance) and judged.is_minimum
