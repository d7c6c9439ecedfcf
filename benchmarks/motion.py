"""Motion prediction: solvers, kinds of derivatives, and OpenSim Moco

Processor time of whole solves, `problem.solve()` from its own guess to the checked solution, on one thread, kernels
compiled; fast ones many times, the best of them, slow ones once.  First the arm and the lifting of xiang2008 with 20
cubic segments and limits at knots and mid-points, by every solver, and with exact, Gauss–Newton and limited-memory
Hessians and exact and difference gradients.  Then the same problems, and planar chains whose links share the arm's
length and mass, in OpenSim Moco with 20 mesh intervals and its defaults (limited-memory Hessian, finite differences of
the dynamics), each run in a process of its own: time from the study on, without imports; runs that do not end are
stopped, and their time is a lower bound.  Motions of chains have many local optima, so that T of two solvers may differ
there.  Last, where the time goes with 43 joints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from time import process_time
from typing import Any

from benchmarks import moco
from benchmarks.timing import QUICK, Comparison, Measurement, Row, Timing
from kinegrad import get_threads, set_threads
from kinegrad.motion.nlp import solve
from kinegrad.motion.problem import MotionProblem, MotionSolution
from kinegrad.predictions import chain, lifting, prediction, time_optimal

INTERVALS = 20
EXACT = "IPOPT, exact Hessian"
UNO = "Uno, filter SQP, exact Hessian"
WAYS: Mapping[str, dict[str, Any]] = {
    EXACT: {},
    UNO: {"solver": "uno", "options": {"preset": "filtersqp"}},
    "Uno, interior point, exact Hessian": {"solver": "uno", "options": {"preset": "ipopt"}},
    "SciPy SLSQP": {"solver": "slsqp"},
    "IPOPT, Gauss–Newton": {"hessian": "gauss-newton"},
    "IPOPT, limited memory": {"hessian": "limited-memory"},
    "IPOPT, exact Hessian, forward differences": {"gradient": "forward"},
    "IPOPT, exact Hessian, central differences": {"gradient": "central"},
    "IPOPT, limited memory, forward differences": {"hessian": "limited-memory", "gradient": "forward"},
}
PROBLEMS: Mapping[str, Callable[[], MotionProblem]] = {
    "arm, limits at knots": partial(time_optimal, segments=INTERVALS, nodes=1),
    "arm, limits at knots and mid-points": partial(time_optimal, segments=INTERVALS),
    "lifting": partial(lifting, segments=INTERVALS),
    "chain of 5": partial(chain, 5, segments=INTERVALS),
    "chain of 10": partial(chain, 10, segments=INTERVALS),
    "chain of 20": partial(chain, 20, segments=INTERVALS),
}
OURS = tuple(PROBLEMS)[1:3]  # that all ways are tried on
PEERS: Mapping[str, tuple[tuple[str, ...], float | None, int, float]] = {
    # Moco's name: which of ours, how many times faster these are to be, how many runs, after how many seconds stopped
    "arm": (tuple(PROBLEMS)[:2], 50.0, 3, 60.0),
    "lift": (tuple(PROBLEMS)[2:3], None, 3, 60.0),
    "chain5": (tuple(PROBLEMS)[3:4], None, 1, 60.0),
    "chain10": (tuple(PROBLEMS)[4:5], 100.0, 1, 200.0),
    "chain20": (tuple(PROBLEMS)[5:6], None, 1, 120.0),
}
LONG = 10.0  # s of one solve, after which it is not tried again


def run(repeats: int) -> list[Row]:
    threads = get_threads()
    set_threads(1)
    try:
        rows = [row for name in OURS for row in _ways(name, repeats)]
        if find_spec("opensim"):
            names = list(PEERS)[:2] if repeats <= QUICK else list(PEERS)
            rows += [row for name in names for row in _beside_moco(name, repeats)]
        return rows + ([] if repeats <= QUICK else _whole_body())
    finally:
        set_threads(threads)


def _solve(problem: MotionProblem, options: Mapping[str, Any], repeats: int) -> tuple[MotionSolution, list[float]]:
    """The solution, and processor times of several solves; of long ones fewer."""
    problem.solve(max_iterations=2, **options)  # so that kernels are compiled and packages imported
    times: list[float] = []
    while not times or (len(times) < repeats and sum(times) < repeats / 10 and times[0] < LONG):
        start = process_time()
        found = problem.solve(max_iterations=1500, **options)
        times.append(process_time() - start)
    return found, times


def _found(solution: MotionSolution) -> str:
    nonlinear = solution.nonlinear
    counts = nonlinear.evaluations
    word = "" if nonlinear.success else f", {nonlinear.status}"
    values = f"{counts.constraints} of g, {counts.jacobian} of its Jacobian, {counts.hessian} Hessians"
    return f"T = {solution.duration:.5f} s, {solution.iterations} iterations{word}; {values}"


def _ways(name: str, repeats: int) -> list[Row]:
    problem = PROBLEMS[name]()
    rows: list[Row] = []
    for way, options in WAYS.items():
        if options.get("solver") == "uno" and find_spec("unopy") is None:
            continue
        solution, times = _solve(problem, options, repeats)
        rows.append(Measurement(f"{name}, {way}", 1e3 * min(times), "ms", note=_found(solution)))
    return rows


def _beside_moco(peer: str, repeats: int) -> list[Row]:
    """Ours against runs of Moco, and what each has found."""
    names, target, runs, limit = PEERS[peer]
    found = [moco.solve(peer, INTERVALS, limit=limit) for _ in range(1 if repeats <= QUICK else runs)]
    one = found[0]
    unfinished = one.final_time is None
    told = one.status if unfinished else f"T = {one.final_time:.5f} s, {one.iterations} iterations"
    against = f"OpenSim Moco, {'at least: ' if unfinished else ''}{told}"
    theirs = Timing.of([each.seconds for each in found])
    rows: list[Row] = []
    for name in names:
        for way in [EXACT, *([UNO] if peer in ("arm", "lift") and find_spec("unopy") else [])]:
            problem = PROBLEMS[name]()
            solution, times = _solve(problem, WAYS[way], repeats)
            aim = target if way == EXACT else None
            rows += [
                Comparison(f"{name}, {way}", against, Timing.of(times), theirs, aim, None),
                Measurement(f"{name}, {problem.program.n} unknowns", 1e3 * min(times), "ms", note=_found(solution)),
            ]
    return rows


class _Timed:
    """A program, and the processor time of its functions."""

    def __init__(self, program: Any) -> None:
        self._program, self.seconds = program, dict.fromkeys(("values", "first derivatives", "Hessian"), 0.0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def _call(self, kind: str, name: str, *arguments: Any) -> Any:
        start = process_time()
        try:
            return getattr(self._program, name)(*arguments)
        finally:
            self.seconds[kind] += process_time() - start

    def objective(self, x: Any) -> Any:
        return self._call("values", "objective", x)

    def constraints(self, x: Any) -> Any:
        return self._call("values", "constraints", x)

    def gradient(self, x: Any) -> Any:
        return self._call("first derivatives", "gradient", x)

    def jacobian(self, x: Any) -> Any:
        return self._call("first derivatives", "jacobian", x)

    def hessian(self, *arguments: Any) -> Any:
        return self._call("Hessian", "hessian", *arguments)


def _whole_body() -> list[Row]:
    """The human of 43 degrees of freedom lifts a box: its program's functions, and the rest, IPOPT with MUMPS."""
    known = prediction("human43-lift")
    problem = known.make()
    x0 = problem.guess(**known.guess)
    problem.solve(x0, max_iterations=2)
    program = _Timed(problem.program)
    start = process_time()
    found = solve(program, x0)
    total = process_time() - start
    size = f"{program.n} unknowns, {program.m} rows, {len(program.hessian_pattern[0])} entries of the Hessian"
    rest = total - sum(program.seconds.values())
    parts = {**program.seconds, "IPOPT and its linear algebra": rest}
    told = f"{found.iterations} iterations, {found.status}; {size}"
    return [
        Measurement("human43-lift, one solve", total, "s", note=told),
        *(Measurement(f"human43-lift, {part}", seconds, "s", note=f"{seconds / total:.0%} of it")
          for part, seconds in parts.items()),
    ]  # fmt: skip
