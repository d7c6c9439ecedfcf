"""SciPy's SLSQP, for small programs: always present, dense, and without second derivatives.

Where its approximate Hessian has become useless it stops; it is then started again from there, without one.  So it is
where it calls a point an optimum because the objective falls no longer, and the conditions of one are not fulfilled.

It knows neither failed evaluations nor multipliers.  Where there is no value, it meets a wall,

    f̂(y) + (1 + |∇f̂(y)|) |x − y|,    ĝ(y),

y being the last iterate: higher than y with no better constraints, so that its line search turns back.  Multipliers
are estimated afterwards from the limits that hold.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError
from kinegrad.motion.nlp.conditions import SLACK, estimated_multipliers, optimality_conditions
from kinegrad.motion.nlp.evaluation import Evaluator, NotEvaluable
from kinegrad.motion.nlp.ipopt import Ending

__all__ = ["LARGEST", "run_slsqp"]

Array = NDArray[np.float64]
LOST = 8  # its word for a direction along which the merit function rises: its approximate Hessian is no good any more
KNOWN = ("ftol", "iprint", "disp")
LARGEST = 300  # variables; its least-squares problems take time with the third power of them
STATUS = {0: "optimal", 8: "stalled", 9: "iteration-limit", 4: "infeasible", 3: "stalled"}


def run_slsqp(
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
    from scipy.optimize import Bounds, minimize

    if scaled.n > LARGEST:
        raise InputError(
            f"`solver` is 'slsqp' and the program has {scaled.n} variables; its work is dense, so that at most "
            f"{LARGEST} are taken: expected 'ipopt' or 'uno'"
        )
    if unknown := sorted(options.keys() - set(KNOWN)):
        raise InputError(f"`options` are refused by SLSQP: it has no {unknown[0]!r}; expected {', '.join(KNOWN)}")
    wall = _Wall(scaled, x0)
    settings = {"ftol": tolerance**2} | options
    edges = Bounds(scaled.lower, scaled.upper, keep_feasible=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Values in x were outside bounds")  # by a rounding, says SLSQP of older SciPy
        done, x = 0, x0
        while True:
            settings["maxiter"] = max_iterations - done
            try:
                end = minimize(
                    wall.height, x, jac=wall.slope, bounds=edges, method="SLSQP", constraints=wall.rows(),
                    options=settings,
                )  # fmt: skip
            except NotEvaluable as trouble:  # of derivatives at the start
                return Ending(wall.base, None, None, "not-finite", str(trouble), done)
            reached, done = np.clip(end.x, scaled.lower, scaled.upper), done + int(end.nit)
            again = end.status == LOST or (end.status == 0 and not _optimal(scaled, reached, tolerance))
            if not again or done >= max_iterations or np.array_equal(reached, x):
                return Ending(reached, None, None, STATUS.get(int(end.status), "failed"), str(end.message), done)
            x = reached


def _optimal(scaled: Evaluator, x: Array, tolerance: float) -> bool:
    """Whether the conditions of an optimum are fulfilled, with multipliers of the limits that hold."""
    try:
        g, gradient, jacobian = scaled.constraints(x), scaled.gradient(x), scaled.jacobian(x)
    except NotEvaluable:
        return True
    multipliers = estimated_multipliers(scaled, x, g, gradient, jacobian, max(SLACK * tolerance, 1e-8))
    if multipliers is None:
        return True
    return optimality_conditions(scaled, x, g, gradient, jacobian, *multipliers).worst <= tolerance


class _Wall:
    """The scaled program with a wall where it cannot be evaluated."""

    def __init__(self, scaled: Evaluator, x0: Array) -> None:
        self.scaled, self.base = scaled, x0
        scaled.record(x0, None, None)
        self.equal = np.flatnonzero(scaled.g_lower == scaled.g_upper)
        free = scaled.g_lower < scaled.g_upper
        self.least = np.flatnonzero(free & np.isfinite(scaled.g_lower))
        self.most = np.flatnonzero(free & np.isfinite(scaled.g_upper))

    def height(self, x: Array) -> float:
        try:
            self.scaled.constraints(x)  # there is no point where there are none of them
            return self.scaled.objective(x)
        except NotEvaluable:
            steep = 1 + float(np.linalg.norm(self.scaled.gradient(self.base)))
            return self.scaled.objective(self.base) + steep * float(np.linalg.norm(x - self.base))

    def slope(self, x: Array) -> Any:
        """∇f̂, asked for only where an iteration has led."""
        try:
            found = self.scaled.gradient(x)
            self.scaled.jacobian(x)  # or it is no iterate
        except NotEvaluable:
            away = x - self.base
            length = float(np.linalg.norm(away))
            return away * ((1 + float(np.linalg.norm(self.scaled.gradient(self.base)))) / max(length, 1e-300))
        if not np.array_equal(x, self.base):
            self.base = x.copy()
            self.scaled.record(self.base, None, None)
        return found

    def _values(self, x: Array) -> Any:
        try:
            return self.scaled.constraints(x)
        except NotEvaluable:
            return self.scaled.constraints(self.base)

    def _slopes(self, x: Array) -> Any:
        try:
            return self.scaled.jacobian_matrix(self.scaled.jacobian(x)).tocsr()
        except NotEvaluable:
            return self.scaled.jacobian_matrix(self.scaled.jacobian(self.base)).tocsr()

    def rows(self) -> list[dict[str, Any]]:
        """Equations, and limits as what must not be negative."""
        low, high = self.scaled.g_lower, self.scaled.g_upper
        found: list[dict[str, Any]] = []
        if len(self.equal):
            which = self.equal
            found.append({
                "type": "eq",
                "fun": lambda x: self._values(x)[which] - low[which],
                "jac": lambda x: self._slopes(x)[which].toarray(),
            })  # fmt: skip
        if len(self.least) + len(self.most):
            below, above = self.least, self.most

            def room(x: Array) -> Array:
                g = self._values(x)
                return np.concatenate([g[below] - low[below], high[above] - g[above]])

            def slopes(x: Array) -> Array:
                j = self._slopes(x)
                return np.concatenate([j[below].toarray(), -j[above].toarray()])

            found.append({"type": "ineq", "fun": room, "jac": slopes})
        return found
