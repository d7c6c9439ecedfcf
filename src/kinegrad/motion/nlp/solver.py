"""solve: a nonlinear program, a guess, a solver; what comes back is checked by ourselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.motion.nlp.evaluation import Evaluator, Interrupts, NotEvaluable, Stopped
from kinegrad.motion.nlp.ipopt import Ending, run_ipopt
from kinegrad.motion.nlp.judgement import judged_solution, still_optimal
from kinegrad.motion.nlp.program import NonlinearProgram, check_program, check_start
from kinegrad.motion.nlp.progress import telling
from kinegrad.motion.nlp.saved import Checkpoint
from kinegrad.motion.nlp.solution import Iterate, NonlinearSolution

__all__ = ["GRADIENTS", "HESSIANS", "SOLVERS", "solve"]

Array = NDArray[np.float64]
SOLVERS = ("ipopt", "uno", "slsqp", "cyipopt")
HESSIANS = ("exact", "gauss-newton", "limited-memory")
GRADIENTS = ("exact", "forward", "central")
PACKAGES = {"ipopt": "casadi", "uno": "unopy", "slsqp": "scipy.optimize", "cyipopt": "cyipopt"}


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
    checkpoint: str | os.PathLike[str] | None = None,
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
    checkpoint : str or pathlib.Path, optional
        A file that follows the solve: the last iterate is written to it about once in a second, and the solution at
        the end.  If it is there at the start, the solve continues from it, with its multipliers, its history and its
        counters; one that has ended in an optimum is returned as it is.  A file of another program is refused, and so
        is one that began with another guess than `x0`, which may be None.  Solver, tolerances and options may be others
        than before.
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
    second one is raised.  If it comes when the solver has ended, and its result is judged, that result is returned with
    the same status.  Before the solver begins there is nothing to return, and KeyboardInterrupt is raised.

    A point is better than another if it violates limits less, or, where both keep them within the tolerance, if its
    objective is less.

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
    guess = None if x0 is None else check_start(program, x0)
    file = None if checkpoint is None else Checkpoint(checkpoint, program, guess)
    if file is not None and file.found is not None:
        x0, warm_start = None, file.found
    if x0 is None and warm_start is None:
        raise InputError("`x0` is None, and there is no `warm_start`; expected a guess of shape (n,)")
    start = check_start(program, x0 if x0 is not None or warm_start is None else warm_start.x)
    if file is not None and file.start is None:
        file.start = start
    if file is not None and file.found is not None and still_optimal(program, file.found, tolerance):
        return file.found
    import_module(PACKAGES[solver])  # before the clock starts
    with telling(progress) as told:
        scaled = Evaluator(program, gradient=gradient, hessian=hessian, tolerance=tolerance, keep=keep_iterates)
        scaled.told = told
        if file is not None:
            scaled.told = _following(told, file, scaled, solver, hessian, gradient)
            if file.found is not None:
                scaled.go_on(file.found)
        with Interrupts(scaled), np.errstate(all="ignore"):  # what overflows is not finite, and is told
            ending = _run(scaled, start, solver, hessian, tolerance, max_iterations, warm_start, dict(options or {}))
            if scaled.error is None:
                solution = judged_solution(scaled, ending, start, solver, hessian, gradient, tolerance)
        if scaled.error is not None:
            raise scaled.error
    if file is not None:
        file.close(solution)
    return solution


def _following(
    told: Callable[[Iterate], None], file: Checkpoint, scaled: Evaluator, solver: str, hessian: str, gradient: str
) -> Callable[[Iterate], None]:
    def follow(iterate: Iterate) -> None:
        told(iterate)
        file.follow(scaled, solver, hessian, gradient)

    return follow


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
    free = int((scaled.lower < scaled.upper).sum())
    equations = int((scaled.g_lower == scaled.g_upper).sum())
    try:
        _check_values(scaled, x0)
        if not free:  # nothing to be solved, which not every solver understands
            scaled.record(x0, None, None)
            return Ending(x0, None, None, "infeasible", "all variables are fixed", 0)
        if solver in ("ipopt", "cyipopt") and equations > free:
            word = f"IPOPT takes at most as many equations as free variables; here are {equations} and {free}"
            return Ending(x0, None, None, "failed", word, 0)
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
