"""Optimisation of a design, [anderson2002] (1), with exact gradients, through SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, OptimizeResult, minimize

from kinegrad import _engine as engine
from kinegrad.design import Design
from kinegrad.errors import InputError, shown
from kinegrad.optimize.problem import DesignFunction, DesignIterate, Limit, Lost, PerParameter, Problem, Stopped
from kinegrad.results import Result

__all__ = ["DesignOptimum", "optimize_design"]

Array = NDArray[np.float64]
METHODS = ("SLSQP", "trust-constr", "L-BFGS-B")
TRUST_REGION = ("equality_constrained_sqp", "tr_interior_point")  # what trust-constr calls itself
INSIDE = 1e-3  # how far from its bounds trust-constr starts, by their width: its barrier is infinite on them


@dataclass(frozen=True, eq=False)
class DesignOptimum(Result):
    """The best design found: of those within the limits the one with the least J.

    Attributes
    ----------
    design : Design
        At the optimum.
    values : ndarray, shape (p,)
        Of the parameters, as the design that was given counts them.
    value : float
        J.
    unsmoothed : float
        The number that J stands for, where the objective is smoothed, as the largest torque of :class:`PeakTorque`;
        else J.
    gradient : ndarray, shape (p,)
        dJ/dp; not zero where bounds or limits hold it.
    violation : float
        As in :class:`DesignIterate`.
    stationarity : float
        What is left of the gradient once bounds and limits that hold have taken their part, by the scale of J: 0 at an
        optimum.  Found for every method, from the gradients and multipliers of least squares.
    history : tuple of DesignIterate
        The start, then what each iteration reached.
    success : bool
        Whether the method converged, at a point within the limits that meets Lagrange's conditions (`stationarity` at
        most 10 √tolerance): a method that can go no further, as with a wrong gradient, takes that for convergence.
    status : int
        0 converged; 1 at the limit of iterations; 2 stopped for another reason; 3 nothing within the limits found.
    message : str
        The method's own words; if designs were tried that could not be evaluated, how many, and why the last; and
        limits on smoothed numbers that the numbers themselves do not keep.
    iterations, evaluations, failures : int
        Iterations of the method, evaluations of the objective, and those that failed.
    """

    design: Design
    values: Array
    value: float
    unsmoothed: float
    gradient: Array
    violation: float
    stationarity: float
    history: tuple[DesignIterate, ...]
    success: bool
    status: int
    message: str
    iterations: int
    evaluations: int
    failures: int


def optimize_design(
    design: Design,
    objective: DesignFunction,
    *,
    bounds: PerParameter | None = None,
    constraints: Sequence[Limit] = (),
    method: str = "SLSQP",
    tolerance: float = 1e-8,
    max_iterations: int = 200,
    scale: PerParameter | None = None,
    progress: Callable[[DesignIterate], None] | None = None,
) -> DesignOptimum:
    """The values of the parameters that make an objective least, within bounds and limits.

    A step to values at which the model cannot exist, or its motion diverges, is taken back and a shorter one tried.

    Parameters
    ----------
    design : Design
        Its present values are the start.
    objective : callable Design → (J, dJ/dp)
        A number and its gradient, shape (p,): a :class:`Simulated`, a :class:`TorqueEffort`, or a function of your own.
    bounds : dict of str to pair, or sequence of p pairs, optional
        (lower, upper) of parameters; None for no bound.  They are never left.
    constraints : sequence of Limit, optional
    method : {"SLSQP", "trust-constr", "L-BFGS-B"}
        The first two take bounds and limits: sequential quadratic programming, which is quick, and an interior point
        in a trust region, which is patient.  The third takes bounds only.
    tolerance : float
        SLSQP and L-BFGS-B stop when J, trust-constr when the gradient of the Lagrangian, changes by less than this part
        of its scale; limits are kept to ten times that part of theirs.  What the scales are: see `scale`.
    max_iterations : int
    scale : dict of str to float, or sequence of p, optional
        By how much a parameter has to change to matter.  If not given, the width of its bounds; without two bounds, its
        size; if it is 0, as linear combinations are, 1.  J and limits are scaled by the larger of their size at the
        start and what they change by there over the scale of a parameter.
    progress : callable, optional
        Called with each :class:`DesignIterate`.

    Returns
    -------
    DesignOptimum

    Raises
    ------
    SolveError, SingularError, ModelError
        If the objective or a limit cannot be evaluated at the start; later that is only a failed step.
    Exception
        Anything else that `objective`, a limit or `progress` raise comes through unchanged.

    Examples
    --------
    An arm holds ten newtons at arm's length.  How is its length best shared out, if it has to stay 0.8 m?

    >>> import kinegrad as kg
    >>> from kinegrad.simulate import TorqueEffort
    >>> lengths = {"upper": {"shoulder.a": 1, "upper_arm.com.x": -0.5}, "fore": {"elbow.a": 1, "forearm.com.x": -0.5}}
    >>> design = kg.Design(kg.samples.two_link(gravity=(0, -10, 0)), lengths)
    >>> still = np.zeros((3, 2))
    >>> hold = TorqueEffort(still, still, still, [0, 0.5, 1], loads=kg.Loads(force={"forearm": [0, -10, 0]}))
    >>> def reach(design):
    ...     tip = kg.point_motion(design.model, [0, 0], link="forearm").position
    ...     slope = kg.point_motion_design_derivatives(design, [0, 0], link="forearm").dposition_dp
    ...     return tip[0], slope[0]
    >>> best = optimize_design(design, hold, constraints=[Limit(reach, 0.8, 0.8)], scale=[0.4, 0.4])
    >>> best.success, best.values.round(5)
    (True, array([ 0.01379, -0.01379]))
    """
    _check_arguments(design, objective, constraints, method, tolerance, max_iterations, progress)
    problem = Problem(design, objective, tuple(constraints), bounds, scale, float(tolerance), progress)
    arguments: dict[str, Any] = {"method": method, "jac": problem.slope_of_iterate}
    x0, low, high = np.zeros(problem.lower.shape), problem.lower, problem.upper
    options: dict[str, Any] = {"maxiter": max_iterations}
    if method == "SLSQP":
        arguments["constraints"] = problem.in_pairs()
        options["ftol"] = tolerance
    elif method == "trust-constr":
        arguments |= {"constraints": problem.between(), "hess": problem.curvature_alone}
        arguments["callback"] = lambda x, state: _stationary(state, tolerance)
        options |= {"gtol": 0.0, "xtol": tolerance, "barrier_tol": tolerance}
        margin = INSIDE * np.minimum(high - low, 1.0)
        x0 = np.clip(x0, low + margin, high - margin)
    else:
        arguments |= {"jac": problem.slope, "callback": problem.callback}
        options |= {"ftol": tolerance, "gtol": tolerance}
    edges = Bounds(low, high, keep_feasible=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Values in x were outside bounds")  # by a rounding, says SLSQP of older SciPy
        try:
            end = minimize(problem.height, x0, bounds=edges, options=options, **arguments)
        except Lost as error:
            reached = len(problem.history) - 1
            end = OptimizeResult(x=problem.base.x, success=False, message=str(error), nit=reached)
        except Stopped as error:
            raise error.what from None
    return _result(problem, end, max_iterations)


def _stationary(state: Any, tolerance: float) -> bool:
    """Whether trust-constr is done.  Its own test forgets the barrier, which keeps it away from bounds that hold."""
    left = max(state.optimality, state.constr_violation, state.get("barrier_parameter", 0.0))
    return bool(left < tolerance)


def _result(problem: Problem, end: Any, max_iterations: int) -> DesignOptimum:
    """The best point within the limits, and how the method came to its end."""
    last, point = problem.look(end.x), problem.best
    problem.record(last)
    if last is not None:
        (outside, value), (best_outside, best_value) = problem.rank(last), problem.rank(problem.best)
        # points that use up the tolerance of a limit are better by about that: the last is meant
        if outside <= best_outside and value - best_value <= problem.doubt * problem.value_size:
            point = last
    stationarity = problem.stationarity(point)
    status, message = 0 if end.success else 1 if end.nit >= max_iterations else 2, str(end.message)
    if end.get("method") in TRUST_REGION and end.status >= 2:  # 3: our word that it is done; 2, 4: its steps vanish
        status, message = 0, "the gradient of the Lagrangian vanishes" if end.status == 3 else "the steps vanish"
    if status == 0 and stationarity > problem.doubt:
        status = 2
        message = f"{message}, but Lagrange's conditions are not met: {stationarity:.2g} is left of the gradient"
        if not problem.failures:
            message += "; is the gradient right?"
    if problem.rank(point)[0] > 0:
        status, message = 3, f"nothing within the limits was found; {message}"
    if problem.failures:
        message = (
            f"{message}; {problem.failures} of {problem.evaluations} evaluations failed, the last: {problem.trouble}"
        )
    for text in _left_by_numbers(problem, point):
        message = f"{message}; {text}"
    violation = float(problem.violation(point).max(initial=0.0))
    exactly = getattr(problem.objective, "unsmoothed", None)
    number = point.value if exactly is None else float(exactly(point.design))
    return DesignOptimum(
        point.design, point.values.copy(), point.value, number, point.gradient.copy(), violation, stationarity,
        tuple(problem.history), status == 0, status, message, int(end.nit), problem.evaluations, problem.failures,
    )  # fmt: skip


def _left_by_numbers(problem: Problem, point: Any) -> list[str]:
    """Sentences about limits that smoothed numbers keep, and the numbers that they stand for do not."""
    found = []
    for k, limit in enumerate(problem.constraints):
        exactly = getattr(limit.function, "unsmoothed", None)
        if exactly is None:
            continue
        number, low, high = float(exactly(point.design)), np.min(limit.lower), np.max(limit.upper)
        size = problem.doubt * max(abs(number), 1e-300)
        if number > high + size or number < low - size:
            side, edge = ("above", high) if number > high else ("below", low)
            name = type(limit.function).__name__
            found.append(f"constraints[{k}], {name}, is {number:.4g} without smoothing, {side} its limit {edge:.4g}")
    return found


def _check_arguments(
    design: Any, objective: Any, constraints: Any, method: Any, tolerance: Any, max_iterations: Any, progress: Any
) -> None:
    if not isinstance(design, Design):
        raise InputError(
            f"`design` is a {type(design).__name__}; expected a Design, such as Design(model, ['thigh.mass'])"
        )
    if not callable(objective):
        hint = "; Simulated(objective, q0, v0, step=…, steps=…) makes one" if hasattr(objective, "integral") else ""
        raise InputError(f"`objective` is a {type(objective).__name__}; expected a callable Design → (J, dJ/dp){hint}")
    if isinstance(constraints, Limit) or not isinstance(constraints, Sequence):
        raise InputError(f"`constraints` is a {type(constraints).__name__}; expected a list of Limit")
    for k, limit in enumerate(constraints):
        if not isinstance(limit, Limit):
            raise InputError(f"`constraints[{k}]` is a {type(limit).__name__}; expected Limit(function, lower, upper)")
    engine.one_of("method", method, METHODS)
    if method == "L-BFGS-B" and constraints:
        raise InputError("`method` is 'L-BFGS-B', which takes no `constraints`; expected 'SLSQP' or 'trust-constr'")
    number: Any = tolerance
    if isinstance(tolerance, bool) or not isinstance(tolerance, Real) or not 0 < number < 1:
        raise InputError(f"`tolerance` is {shown(tolerance)}; expected a number between 0 and 1")
    if isinstance(max_iterations, bool) or not isinstance(max_iterations, Integral) or max_iterations < 1:
        raise InputError(f"`max_iterations` is {shown(max_iterations)}; expected a whole number of at least 1")
    if progress is not None and not callable(progress):
        raise InputError(f"`progress` is a {type(progress).__name__}; expected a function of a DesignIterate")
