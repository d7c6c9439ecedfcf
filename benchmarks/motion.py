"""Motion prediction: solvers, kinds of derivatives, and OpenSim Moco

Processor time of whole solves, in milliseconds, on one thread, from one guess, with what was found; best of several,
kernels compiled.  The arm and the lifting of xiang2008 with 20 cubic segments, limits at knots and mid-points: IPOPT,
Uno's two presets and SciPy's SLSQP; exact against limited-memory Hessians, exact against difference gradients.  Then
the same problems, and planar chains whose links share the arm's length and mass, in OpenSim Moco with 20 mesh intervals
and its defaults (limited-memory Hessian, finite differences of the dynamics): one process each, one run, stopped after
some minutes.  The target of the arm is for the faster of our two solvers.  Motions of chains have many local optima, so
that T of two solvers may differ there.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from time import process_time
from typing import Any

from benchmarks import moco
from benchmarks.timing import QUICK, Comparison, Measurement, Row, Timing
from kinegrad import get_threads, set_threads
from kinegrad.motion.problem import MotionProblem, MotionSolution
from kinegrad.predictions import chain, lifting, time_optimal

WAYS: Mapping[str, dict[str, Any]] = {
    "IPOPT, exact Hessian": {},
    "Uno, filter SQP, exact Hessian": {"solver": "uno", "options": {"preset": "filtersqp"}},
    "Uno, interior point, exact Hessian": {"solver": "uno", "options": {"preset": "ipopt"}},
    "SciPy SLSQP": {"solver": "slsqp"},
    "IPOPT, Gauss–Newton": {"hessian": "gauss-newton"},
    "IPOPT, limited memory": {"hessian": "limited-memory"},
    "IPOPT, exact Hessian, forward differences": {"gradient": "forward"},
    "IPOPT, exact Hessian, central differences": {"gradient": "central"},
    "IPOPT, limited memory, forward differences": {"hessian": "limited-memory", "gradient": "forward"},
}
PROBLEMS = {"arm": time_optimal, "lift": lifting}
INTERVALS = 20
TARGETS: Mapping[str, float | None] = {"arm": 50.0, "lift": None, "chain5": None, "chain10": 100.0, "chain20": None}
LIMIT = 200.0  # s, of a process of Moco


def run(repeats: int) -> list[Row]:
    threads = get_threads()
    set_threads(1)
    try:
        rows = [row for name in PROBLEMS for row in _ways(name, repeats)]
        names = list(TARGETS)[:2] if repeats <= QUICK else list(TARGETS)
        return rows + ([row for name in names for row in _beside_moco(name, repeats)] if find_spec("opensim") else [])
    finally:
        set_threads(threads)


def _problem(name: str) -> MotionProblem:
    if name in PROBLEMS:
        return PROBLEMS[name](segments=INTERVALS)
    return chain(int(name.removeprefix("chain")), segments=INTERVALS)


def _solve(problem: MotionProblem, options: Mapping[str, Any], repeats: int) -> tuple[MotionSolution, list[float]]:
    """The solution, and processor times of several solves; of long ones fewer."""
    guess = problem.guess(durations=[0.5])
    problem.solve(guess, max_iterations=2)  # so that kernels are compiled and packages imported
    times: list[float] = []
    while not times or (len(times) < repeats and sum(times) < repeats / 10):
        start = process_time()
        found = problem.solve(guess, max_iterations=1500, **options)
        times.append(process_time() - start)
    return found, times


def _found(solution: MotionSolution) -> str:
    nonlinear = solution.nonlinear
    counts = nonlinear.evaluations
    word = "" if nonlinear.success else f", {nonlinear.status}"
    values = f"{counts.constraints} of g, {counts.jacobian} of its Jacobian, {counts.hessian} Hessians"
    return f"T = {solution.duration:.5f} s, {solution.iterations} iterations{word}; {values}"


def _ways(name: str, repeats: int) -> list[Row]:
    problem = _problem(name)
    rows: list[Row] = []
    for way, options in WAYS.items():
        if options.get("solver") == "uno" and find_spec("unopy") is None:
            continue
        solution, times = _solve(problem, options, repeats)
        rows.append(Measurement(f"{name}, {way}", 1e3 * min(times), "ms", note=_found(solution)))
    return rows


def _beside_moco(name: str, repeats: int) -> list[Row]:
    """Ours against one run of Moco, and what each has found; of the arm also with filter SQP, the fastest we have."""
    peer = moco.solve(name, INTERVALS, limit=LIMIT)
    unfinished = peer.final_time is None
    told = peer.status if unfinished else f"T = {peer.final_time:.5f} s, {peer.iterations} iterations"
    against = f"OpenSim Moco, {'at least: ' if unfinished else ''}{told}"
    ways = ["IPOPT, exact Hessian"]
    if name in PROBLEMS and find_spec("unopy"):
        ways.append("Uno, filter SQP, exact Hessian")
    rows: list[Row] = []
    for way in ways:
        solution, times = _solve(_problem(name), WAYS[way], repeats)
        target = TARGETS[name] if way == ways[-1] else None
        size = solution.problem.program.n
        rows += [
            Comparison(f"{name}, {way}", against, Timing.of(times), Timing.of([peer.seconds]), target, None),
            Measurement(f"{name}, {way}, {size} unknowns", 1e3 * min(times), "ms", note=_found(solution)),
        ]
    return rows
