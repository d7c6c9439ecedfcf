"""solve: a nonlinear program, a guess, a solver; what comes back is checked by ourselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, SolveError, shown
from kinegrad.motion.nlp import conditions as kkt
from kinegrad.motion.nlp.evaluation import Evaluator, Interrupts, NotEvaluable, Stopped
from kinegrad.motion.nlp.ipopt import Ending, run_ipopt
from kinegrad.motion.nlp.messages import explanation
from kinegrad.motion.nlp.program import NonlinearProgram, check_program, check_start
from kinegrad.motion.nlp.progress import telling
from kinegrad.motion.nlp.solution import Iterate, NonlinearSolution

__all__ = ["GRADIENTS", "HESSIANS", "SOLVERS", "solve"]

Array = NDArray[np.float64]
SOLVERS = ("ipopt", "uno", "slsqp", "cyipopt")
HESSIANS = ("exact", "gauss-newton", "limited-memory")
GRADIENTS = ("exact", "forward", "central")
PACKAGES = {"ipopt": "casadi", "uno": "unopy", "slsqp": "scipy", "cyipopt": "cyipopt"}
SLACK = 10  # tolerances that the conditions of an optimum may be off by: solvers measure them each in its own way


def solve(
    program: NonlinearProgram,
    x0: ArrayLike | None = None,
    *,
    solver: str = "ipopt",
    hessian: str | None = None,
    gradient: str = "exact",
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    warm_start: NonlinearSolution | None = None,
    progress: bool | Callable[[Iterate], None] | None = None,
    keep_iterates: bool = False,
    options: Mapping[str, Any] | None = None,
) -> NonlinearSolution:
    """Minimise f(x) within the bounds of x and the limits of g(x).

    Parameters
    ----------
    program : NonlinearProgram
    x0 : array_like, shape (n,)
        A guess; moved onto bounds that it is outside of.  May be left out with `warm_start`.
    solver : {"ipopt", "uno", "slsqp", "cyipopt"}
        IPOPT, an interior-point method, as CasADi carries it; Uno (extra ``uno``), which has filter SQP, taken up to
        200 variables, and an interior-point method, taken above (``options={"preset": "ipopt"}`` chooses); SciPy's
        SLSQP, up to 300 variables; IPOPT through cyipopt, where that is installed.
    hessian : {"exact", "gauss-newton", "limited-memory"}
        What second derivatives are: the program's own, its ``gauss_newton``, or approximated by the solver from
        gradients.  Exact, if not given; of SLSQP, which knows no other, limited-memory.
    gradient : {"exact", "forward", "central"}
        Whether gradient and Jacobian are the program's own, or differences of its values.
    tolerance : float
        Of optimality, violation and complementarity, scaled.
    max_iterations : int
    warm_start : NonlinearSolution, optional
        Start from the multipliers of this one; and from its x, if `x0` is not given.
    progress : bool or callable, optional
        True shows iterations on stderr; a function is called with each :class:`Iterate`.
    keep_iterates : bool
        Whether to keep x of every iteration.
    options : mapping, optional
        The solver's own, by its names, which take precedence.

    Returns
    -------
    NonlinearSolution
        `success` and what is left of the conditions of an optimum come from our own evaluation at the returned point,
        whatever the solver says.

    Raises
    ------
    InputError
        An argument that cannot be, or a guess at which the program has no finite values.
    Exception
        Whatever a function of the program, or `progress`, raises: the solve ends, then it is raised.

    Notes
    -----
    Ctrl-C ends the solve at its next evaluation and returns the best point so far with the status "interrupted"; a
    second one is raised.  A point is better than another if it violates limits less, or, where both keep them within
    the tolerance, if its objective is less.

    Examples
    --------
    The point of the unit circle that is nearest to (2, 1):

    >>> class Circle:
    ...     n, m, f_scale = 2, 1, 1.0
    ...     x_lower, x_upper, x_scale = np.full(2, -np.inf), np.full(2, np.inf), np.ones(2)
    ...     g_lower = g_upper = g_scale = np.ones(1)
    ...     jacobian_pattern = np.array([0, 0]), np.array([0, 1])
    ...     hessian_pattern = np.array([0, 1]), np.array([0, 1])
    ...     def objective(self, x): return (x[0] - 2) ** 2 + (x[1] - 1) ** 2
    ...     def gradient(self, x): return 2 * (x - [2, 1])
    ...     def constraints(self, x): return np.array([x @ x])
    ...     def jacobian(self, x): return 2 * x
    ...     def hessian(self, x, sigma, multipliers): return np.full(2, 2 * sigma + 2 * multipliers[0])
    ...     def row_name(self, i): return "square of the distance"
    ...     def variable_name(self, j): return "xy"[j]
    >>> nearest = solve(Circle(), [1.0, 0.0])
    >>> nearest.success, nearest.x.round(6)
    (True, array([0.894427, 0.447214]))
    >>> bool(abs(nearest.g_multipliers[0] - (5**0.5 - 1)) < 1e-6)
    True
    """
    check_program(program)
    engine.one_of("solver", solver, SOLVERS)
    hessian = ("limited-memory" if solver == "slsqp" else "exact") if hessian is None else hessian
    _check_choices(program, solver, hessian, gradient, warm_start, options)
    tolerance = _tolerance(tolerance)
    max_iterations = engine.whole("max_iterations", max_iterations)
    engine.flag("keep_iterates", keep_iterates)
    if x0 is None and warm_start is None:
        raise InputError("`x0` is None, and there is no `warm_start`; expected a guess of shape (n,)")
    start = check_start(program, x0 if x0 is not None or warm_start is None else warm_start.x)
    with telling(progress) as told:
        scaled = Evaluator(
            program, gradient=gradient, hessian=hessian, told=told, tolerance=tolerance, keep=keep_iterates
        )
        with Interrupts(scaled):
            ending = _run(scaled, start, solver, hessian, tolerance, max_iterations, warm_start, dict(options or {}))
        if scaled.error is not None:
            raise scaled.error
    return _solution(scaled, ending, start, solver, hessian, gradient, tolerance)


def _run(
    scaled: Evaluator,
    start: Array,
    solver: str,
    hessian: str,
    tolerance: float,
    max_iterations: int,
    warm_start: NonlinearSolution | None,
    options: dict[str, Any],
) -> Ending | None:
    """Where the solver ended; None if it was stopped."""
    x0 = start / scaled.x_scale
    warm = None
    if warm_start is not None:
        rows, bounds = warm_start.g_multipliers, warm_start.x_multipliers
        warm = (rows * scaled.g_scale / scaled.f_scale, bounds * scaled.x_scale / scaled.f_scale)
    try:
        _check_values(scaled, x0)
        return RUN[solver](
            scaled, x0, hessian=hessian, tolerance=tolerance, max_iterations=max_iterations, warm=warm, options=options
        )
    except Stopped:
        return None


def _check_values(scaled: Evaluator, x0: Array) -> None:
    """Refuse a guess at which there is nothing."""
    try:
        scaled.objective(x0)
        scaled.constraints(x0)
    except NotEvaluable as trouble:
        raise InputError(f"`x0` is where the program has no finite values: {trouble}; expected another guess") from None


def _uno(scaled: Evaluator, x0: Array, **settings: Any) -> Ending:
    from kinegrad.motion.nlp.uno import run_uno

    return run_uno(scaled, x0, **settings)


def _slsqp(scaled: Evaluator, x0: Array, **settings: Any) -> Ending:
    from kinegrad.motion.nlp.slsqp import run_slsqp

    return run_slsqp(scaled, x0, **settings)


def _cyipopt(scaled: Evaluator, x0: Array, **settings: Any) -> Ending:
    from kinegrad.motion.nlp.cyipopt_interface import run_cyipopt

    return run_cyipopt(scaled, x0, **settings)


RUN: Mapping[str, Callable[..., Ending]] = {"ipopt": run_ipopt, "uno": _uno, "slsqp": _slsqp, "cyipopt": _cyipopt}


def _solution(
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
    if ending is not None and ending.status != "optimal" and not interrupted and scaled.best is not None:
        other = _judge(exact, *scaled.best, tolerance)
        if other is not None and other.rank(tolerance) < judged.rank(tolerance):
            judged = other
    status, word = ("interrupted", "stopped") if interrupted or ending is None else (ending.status, ending.word)
    if not interrupted:
        if judged.fulfilled(tolerance):
            status = "optimal" if judged.is_minimum else "saddle"
        elif status == "optimal":
            status = "stalled" if judged.conditions.violation <= SLACK * tolerance else "infeasible"
    x = np.clip(judged.x * scaled.x_scale, scaled.program.x_lower, scaled.program.x_upper)
    g = judged.g * scaled.g_scale
    message = explanation(scaled, status, word, judged.conditions, judged.curvature, x, g, tolerance)
    return NonlinearSolution(
        x, judged.f * scaled.f_scale, g,
        judged.x_multipliers * scaled.f_scale / scaled.x_scale, judged.g_multipliers * scaled.f_scale / scaled.g_scale,
        judged.conditions.optimality, judged.conditions.violation, judged.conditions.complementarity, judged.curvature,
        status, message,
        ending.iterations if ending is not None else max(len(scaled.history) - 1, 0),
        scaled.evaluations, tuple(scaled.history), scaled.seconds(), solver, hessian, gradient, word,
        None if scaled.iterates is None else np.array(scaled.iterates).reshape(-1, scaled.n),
    )  # fmt: skip


class _Judged:
    """A point in scaled numbers, with multipliers, and what is left of the conditions there."""

    def __init__(self, exact: Evaluator, x: Array, rows: Array | None, bounds: Array | None, tolerance: float) -> None:
        self.x = np.clip(x, exact.lower, exact.upper)
        self.f, self.g = exact.objective(self.x), exact.constraints(self.x)
        gradient, jacobian = exact.gradient(self.x), exact.jacobian(self.x)
        found = []
        if rows is not None and bounds is not None and np.isfinite(rows).all() and np.isfinite(bounds).all():
            found.append((rows, bounds))
        if not found or self._measure(exact, gradient, jacobian, *found[0]).worst > SLACK * tolerance:
            near = max(SLACK * tolerance, 1e-8)
            estimated = kkt.estimated_multipliers(exact, self.x, self.g, gradient, jacobian, near)
            found += [estimated] if estimated is not None else []
        found = found or [(np.zeros(exact.m), np.zeros(exact.n))]
        rows, bounds = min(found, key=lambda pair: self._measure(exact, gradient, jacobian, *pair).worst)
        self.conditions = self._measure(exact, gradient, jacobian, rows, bounds)
        self.g_multipliers = kkt.possible(rows, exact.g_lower, exact.g_upper)
        self.x_multipliers = kkt.possible(bounds, exact.lower, exact.upper)
        fixed = exact.lower == exact.upper
        left = gradient + exact.jacobian_matrix(jacobian).T @ self.g_multipliers
        self.x_multipliers = np.where(fixed, -left, self.x_multipliers)
        self.curvature, self.is_minimum = np.nan, True
        if self.fulfilled(tolerance) and exact.n <= kkt.DENSE:
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
        near = max(SLACK * tolerance, 1e-8)
        self.curvature = kkt.curvature(exact, self.x, self.g, jacobian, hessian, near)
        least = -np.sqrt(tolerance) * max(1.0, float(np.abs(hessian).max(initial=0.0)))
        self.is_minimum = not self.curvature < least

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


def _tolerance(value: Any) -> float:
    number = engine.positive("tolerance", value)
    if not number < 1:
        raise InputError(f"`tolerance` is {shown(value)}; expected a number between 0 and 1")
    return max(number, 1e-14)


def _check_choices(program: Any, solver: Any, hessian: Any, gradient: Any, warm_start: Any, options: Any) -> None:
    engine.one_of("hessian", hessian, HESSIANS)
    engine.one_of("gradient", gradient, GRADIENTS)
    if find_spec(PACKAGES[solver]) is None:
        install = "pip install 'kinegrad[uno]'" if solver == "uno" else f"pip install {PACKAGES[solver]}"
        raise InputError(f"`solver` is {solver!r}, and the package {PACKAGES[solver]!r} is not installed: {install}")
    if solver == "slsqp" and hessian != "limited-memory":
        raise InputError(f"`hessian` is {hessian!r}, and SLSQP takes no second derivatives; expected 'limited-memory'")
    if hessian == "gauss-newton" and not callable(getattr(program, "gauss_newton", None)):
        raise InputError("`hessian` is 'gauss-newton', and `program` has no method gauss_newton; expected 'exact'")
    if options is not None and not (isinstance(options, Mapping) and all(isinstance(name, str) for name in options)):
        raise InputError(f"`options` is {shown(options)}; expected a mapping from names to values")
    if warm_start is None:
        return
    if not isinstance(warm_start, NonlinearSolution):
        raise InputError(f"`warm_start` is a {type(warm_start).__name__}; expected a NonlinearSolution")
    sizes = (len(warm_start.x), len(warm_start.g))
    if sizes != (program.n, program.m):
        found = f"{sizes[0]} variables and {sizes[1]} rows"
        raise InputError(f"`warm_start` has {found}; the program has {program.n} and {program.m}")
