"""What of [xiang2008] is computed: both examples by several discretisations, solvers and derivatives; local minima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import InputError
from kinegrad.motion.problem import MotionProblem, MotionSolution
from kinegrad.motion.sweeps import multi_start
from kinegrad.papers.report.page import Progress
from kinegrad.papers.report.whole_solve import solve_to_the_end
from kinegrad.papers.xiang2008.closed_form import ClosedForm
from kinegrad.predictions.two_link import LOAD, lifting, time_optimal

__all__ = ["Minimum", "Run", "Sensitivity", "Sweep", "discretisations", "minima", "sensitivities", "solvers", "starts"]

Array = NDArray[np.float64]
GRAVITY = 9.8062
EXAMPLES: dict[int, Callable[..., MotionProblem]] = {1: time_optimal, 2: lifting}
DURATION = 0.5  # s, of guesses: straight lines between the ends, as in the paper


@dataclass(frozen=True)
class Run:
    """One solve.

    Attributes
    ----------
    example : int
        1 or 2.
    segments, nodes : int
        Of the splines, and in each segment, where torques are limited.
    solver, hessian, gradient : str
    final_time, objective : float
    iterations : int
    seconds : float
        Processor time.
    excess : float
        Of the largest torque between the nodes over its limit, by the limit.
    status : str
    history : tuple of float
        Objective by iteration.
    distances : tuple of float
        ‖x_k − x*‖ by iteration.
    """

    example: int
    segments: int
    nodes: int
    solver: str
    hessian: str
    gradient: str
    final_time: float
    objective: float
    iterations: int
    seconds: float
    excess: float
    status: str
    history: tuple[float, ...] = ()
    distances: tuple[float, ...] = ()


@dataclass(frozen=True)
class Minimum:
    """A local minimum of example 2, and how many starts led to it."""

    final_time: float
    objective: float
    starts: int


@dataclass(frozen=True)
class Sweep:
    """Solves of example 1 from random starts: how many, how many of them converged, and the final times found."""

    starts: int
    converged: int
    least: float
    most: float


@dataclass(frozen=True)
class Sensitivity:
    """∂τ/∂(q, v, a) at the optimum of example 2, (m, 2, 2) each, by recursion and in closed form."""

    t: Array
    recursive: tuple[Array, Array, Array]
    closed: tuple[Array, Array, Array]

    @property
    def difference(self) -> float:
        """The largest, by the largest entry."""
        pairs = zip(self.recursive, self.closed, strict=True)
        return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def solve(
    example: int, segments: int = 20, nodes: int = 2, *, duration: float = DURATION, noise: float = 0.0, seed: int = 0,
    **options: Any,
) -> tuple[MotionSolution, Run]:  # fmt: skip
    """One solve of an example from a straight line, with noise if asked for."""
    if example not in EXAMPLES:
        raise InputError(f"`example` is {example!r}; expected 1 or 2")
    problem = EXAMPLES[example](segments=segments, nodes=nodes)
    guess = problem.guess(durations=[duration], noise=noise, seed=seed)
    begin = process_time()
    solution = solve_to_the_end(problem, guess, keep_iterates=True, **options)
    seconds = process_time() - begin
    found = solution.nonlinear
    iterates = found.iterates
    distances = () if iterates is None else tuple(np.linalg.norm(iterates - found.x, axis=1).tolist())
    excess = max((one.value for one in solution.between if one.family == "torque"), default=0.0)
    run = Run(
        example, segments, nodes, found.solver, found.hessian, found.gradient, solution.duration, solution.objective,
        found.iterations, seconds, excess, found.status, tuple(each.objective for each in found.history), distances,
    )  # fmt: skip
    return solution, run


def discretisations(example: int, say: Progress) -> list[Run]:
    """By segments and nodes: 19 and 20 segments as the paper may have meant, then finer ones."""
    cases = [(19, 1), (19, 2), (20, 1), (20, 2), (40, 2), (80, 2)]
    return [_told(say, f"example {example}: discretisations", k, cases, example) for k in range(len(cases))]


def _told(say: Progress, stage: str, k: int, cases: Sequence[tuple[int, int]], example: int) -> Run:
    _, run = solve(example, *cases[k], solver="ipopt")
    say(stage, k + 1, len(cases))
    return run


def solvers(example: int, names: Sequence[str], say: Progress, limit: int = 3000) -> list[Run]:
    """By solver, second derivatives and gradients, with 20 segments."""
    cases: list[dict[str, Any]] = [{"solver": name} for name in names]
    cases += [
        {"solver": "ipopt", "hessian": "limited-memory", "max_iterations": limit},
        {"solver": "ipopt", "gradient": "forward", "hessian": "limited-memory", "max_iterations": limit},
        {"solver": "ipopt", "gradient": "central", "hessian": "limited-memory", "max_iterations": limit},
    ]
    runs = []
    for k, case in enumerate(cases):
        runs.append(solve(example, **case)[1])
        say(f"example {example}: solvers", k + 1, len(cases))
    return runs


def starts(count: int, say: Progress) -> Sweep:
    """Example 1 from straight lines with noise, of durations from 0.3 to 1.5 s."""
    rng = np.random.default_rng(2008)
    times = []
    for k in range(count):
        solution, run = solve(1, duration=float(rng.uniform(0.3, 1.5)), noise=0.2, seed=k)
        if run.status == "optimal":
            times.append(solution.duration)
        say("example 1: starts", k + 1, count)
    return Sweep(count, len(times), min(times, default=np.nan), max(times, default=np.nan))


def minima(count: int, say: Progress) -> list[Minimum]:
    """Distinct optima of example 2 from many starts: noise of 2 rad, and durations from 0.27 to 2.4 s."""
    found = multi_start(
        lifting(), count, seed=2008, spread=2.0, stretch=3.0, guess={"durations": [0.8]}, max_iterations=400,
        progress=lambda done, total, last: say("example 2: starts", done, total),
    )  # fmt: skip
    return [Minimum(one.duration, one.objective, one.count) for one in found.optima]


def sensitivities(solution: MotionSolution, count: int = 161) -> Sensitivity:
    """Figure 14: the recursive Lagrangian of the paper, and its appendix, along the optimum."""
    t = np.linspace(0.0, solution.duration, count)
    motion = solution.motion(t)
    loads = solution.problem.phases[0].loads
    state = (motion.q, motion.v, motion.a)
    ours = inverse_dynamics_derivatives(solution.problem.model, *state, loads=loads, method="lagrange")
    closed = ClosedForm(gravity=GRAVITY, load=LOAD).derivatives(*state)
    by_q, by_v, by_a = (np.asarray(x) for x in (ours.dtau_dq, ours.dtau_dv, ours.dtau_da))
    return Sensitivity(t, (by_q, by_v, by_a), closed)
