"""IPOPT through ``cyipopt``, where it is installed: with the linear solvers that its IPOPT was built with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, said
from kinegrad.motion.nlp.evaluation import Evaluator, NotEvaluable, Stopped
from kinegrad.motion.nlp.ipopt import OPTIONS, Ending, settings, unrelaxed, warm_settings

__all__ = ["run_cyipopt"]

Array = NDArray[np.float64]
STATUS = {
    0: "optimal", 1: "optimal", 6: "optimal", 2: "infeasible", 3: "stalled", -2: "stalled", -3: "stalled",
    4: "unbounded", -1: "iteration-limit", -13: "not-finite",
}  # fmt: skip


def run_cyipopt(
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
    given = settings(scaled, hessian, tolerance, max_iterations)
    more = {} if warm is None else warm_settings(scaled, x0, *warm, tolerance)

    def again(x: Array, multipliers: tuple[Array, Array], changes: dict[str, Any]) -> Ending:
        return _run(scaled, x, hessian, multipliers, given | changes | options)

    found = _run(scaled, x0, hessian, warm, given | more | options)
    return unrelaxed(scaled, found, tolerance, options, again)


def _run(
    scaled: Evaluator, x0: Array, hessian: str, warm: tuple[Array, Array] | None, options: dict[str, Any]
) -> Ending:
    import cyipopt

    functions = _Functions(scaled)
    if hessian != "limited-memory":
        functions.hessian, functions.hessianstructure = functions.second, lambda: scaled.hessian_pattern
    problem = cyipopt.Problem(
        n=scaled.n, m=scaled.m, problem_obj=functions, lb=scaled.lower, ub=scaled.upper,
        cl=scaled.g_lower, cu=scaled.g_upper,
    )  # fmt: skip
    functions.problem = problem
    start: dict[str, Array] = {}
    if warm is not None:
        start = {"lagrange": warm[0], "zl": np.maximum(-warm[1], 0), "zu": np.maximum(warm[1], 0)}
    for name, value in options.items():
        try:
            problem.add_option(name, value)
        except TypeError as error:
            raise InputError(f"`options[{name!r}]` is refused by IPOPT: {said(error)}; expected {OPTIONS}") from None
    try:
        x, end = problem.solve(x0, **start)
    except Exception as error:
        if scaled.stopping:
            raise Stopped from None
        return Ending(x0, None, None, "failed", said(error), len(scaled.history))
    word = end["status_msg"]
    text = word.decode(errors="replace") if isinstance(word, bytes) else str(word)
    z = np.asarray(end["mult_x_U"]) - np.asarray(end["mult_x_L"])
    status = STATUS.get(int(end["status"]), "failed")
    return Ending(np.asarray(x), np.asarray(end["mult_g"]), z, status, text, functions.iteration)


class _Functions:
    """The program as cyipopt wants it.  A failed evaluation is its own exception; anything else never reaches it."""

    hessian: Any
    hessianstructure: Any
    problem: Any = None
    iteration = 0

    def __init__(self, scaled: Evaluator) -> None:
        self.scaled = scaled
        self.last = np.zeros(scaled.n)

    def _guarded(self, function: Any, *arguments: Any) -> Any:
        import cyipopt

        try:
            return function(*arguments)
        except (NotEvaluable, Stopped):
            raise cyipopt.CyIpoptEvaluationError from None
        except BaseException as error:  # a defect of ours, which is not to be lost either
            self.scaled.error = error
            raise cyipopt.CyIpoptEvaluationError from None

    def objective(self, x: Array) -> float:
        return float(self._guarded(self.scaled.objective, x))

    def gradient(self, x: Array) -> Any:
        self.last = np.array(x)
        return self._guarded(self.scaled.gradient, x)

    def constraints(self, x: Array) -> Any:
        return self._guarded(self.scaled.constraints, x)

    def jacobian(self, x: Array) -> Any:
        values = self._guarded(self.scaled.jacobian, x)
        return values if len(values) or not self.scaled.m else np.zeros(1)

    def jacobianstructure(self) -> Any:
        """The pattern; IPOPT's interface for C takes none that is empty, so that a zero is added to one."""
        rows, columns = self.scaled.jacobian_pattern
        one = np.zeros(1, dtype=int)
        return (rows, columns) if len(rows) or not self.scaled.m else (one, one)

    def second(self, x: Array, multipliers: Array, sigma: float) -> Any:
        return self._guarded(self.scaled.hessian, x, sigma, np.array(multipliers))

    def _iterate(self) -> tuple[Array, Array | None, Array | None]:
        """x and multipliers; before IPOPT 3.14, x alone: that of the last gradient, asked for only at iterates."""
        try:
            at = self.problem.get_current_iterate()
        except RuntimeError:
            return self.last, None, None
        return np.array(at["x"]), np.array(at["mult_g"]), at["mult_x_U"] - at["mult_x_L"]

    def intermediate(self, mode: int, iteration: int, *_: float) -> bool:
        self.iteration = iteration
        try:
            if mode == 0:  # not while it seeks a feasible point
                self.scaled.record(*self._iterate())
        except (NotEvaluable, Stopped):
            pass
        except BaseException as error:
            self.scaled.error = error
        return not self.scaled.stopping
