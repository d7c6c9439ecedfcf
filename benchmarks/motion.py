"""Motion prediction: processor time of one solve, beside OpenSim Moco

The two examples of xiang2008, and its arm cut into 5, 10 and 20 links (`kinegrad.predictions.two_link`), from straight
lines, to a tolerance of 1e-6, on one thread. Moco solves the same problems by collocation (`benchmarks/moco.py`), once
each, in a process of its own that is stopped after 300 s. Final time T, objective J and iterations are in the names:
the discretisations differ, so T does in the fourth digit, and longer chains have several local optima. Below: the same
problems by other solvers, second derivatives and gradients; and the human of 43 degrees of freedom, which Moco was not
given.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from time import process_time
from typing import Any

from benchmarks.moco import Peer
from benchmarks.moco import solve as moco
from benchmarks.timing import QUICK, Comparison, Measurement, Row, Timing

import kinegrad as kg
from kinegrad.motion.problem import MotionProblem, MotionSolution
from kinegrad.predictions import chain, human43_lift, lifting, time_optimal

PROBLEMS: dict[str, tuple[Callable[[], MotionProblem], str, float | None]] = {
    "arm": (time_optimal, "arm", 50.0),
    "lift": (lifting, "lift", None),
    "chain of 5": (lambda: chain(5), "chain5", None),
    "chain of 10": (lambda: chain(10), "chain10", 100.0),
    "chain of 20": (lambda: chain(20), "chain20", None),
}
SMALL = ("arm", "lift")
WAYS: dict[str, dict[str, Any]] = {
    "IPOPT, exact Hessian": {"solver": "ipopt"},
    "IPOPT, limited memory": {"solver": "ipopt", "hessian": "limited-memory", "max_iterations": 3000},
    "IPOPT, limited memory, forward differences": {
        "solver": "ipopt", "hessian": "limited-memory", "gradient": "forward", "max_iterations": 3000,
    },
    "Uno, filter SQP": {"solver": "uno"},
    "SciPy SLSQP": {"solver": "slsqp"},
}  # fmt: skip
LIMIT = 300.0  # s for Moco


def run(repeats: int) -> list[Row]:
    threads = kg.get_threads()
    kg.set_threads(1)
    try:
        rows = [row for name in PROBLEMS for row in _problem(name, repeats)]
        return rows + ([] if repeats <= QUICK else _human(repeats))
    finally:
        kg.set_threads(threads)


def _problem(name: str, repeats: int) -> list[Row]:
    make, theirs, target = PROBLEMS[name]
    problem = make()
    guess = problem.guess(durations=[0.5 if name in SMALL else 1.0])
    best = "uno" if name in SMALL and find_spec("unopy") else "ipopt"
    many = max(2, repeats // (1 if name in SMALL else 10))
    solution, timing = _timed(problem, guess, many, solver=best)
    rows: list[Row] = []
    if repeats > QUICK or name in SMALL:
        peer = moco(theirs, 20, limit=LIMIT)
        once = Timing(*[peer.seconds] * 4, 1)
        rows.append(Comparison(_said(name, best, solution), _moco(peer), timing, once, target, None))
        if repeats > QUICK and name in SMALL:
            fine = moco(theirs, 100, limit=LIMIT)
            rows.append(Comparison(_said(name, best, solution), _moco(fine), timing, Timing(*[fine.seconds] * 4, 1), None,
                                   None))  # fmt: skip
    if name in SMALL:
        for way, options in WAYS.items():
            if options["solver"] == "uno" and not find_spec("unopy"):
                continue
            solution, timing = _timed(problem, guess, max(1, many // 10), **options)
            rows.append(Measurement(_said(name, way, solution), 1000 * timing.best, "ms"))
    return rows


def _human(repeats: int) -> list[Row]:
    rows: list[Row] = []
    for aside in (False, True):
        problem = human43_lift(aside=aside)
        solution, timing = _timed(problem, problem.guess(), max(1, repeats // 15))
        what = "human43 lifts a box, to one side" if aside else "human43 lifts a box"
        size = f"{problem.program.n} unknowns, {problem.program.m} rows"
        rows.append(Measurement(f"{_said(what, 'ipopt', solution)}; {size}", timing.best, "s", 10.0))
    return rows


def _timed(problem: MotionProblem, guess: Any, many: int, **options: Any) -> tuple[MotionSolution, Timing]:
    """Processor time of solves."""
    seconds = []
    solution = problem.solve(guess, **options)  # loads kernels
    for _ in range(many):
        begin = process_time()
        solution = problem.solve(guess, **options)
        seconds.append(process_time() - begin)
    return solution, Timing.of(seconds)


def _said(name: str, way: str, solution: MotionSolution) -> str:
    found = f"T = {solution.duration:.5f} s, J = {solution.objective:.5f}, {solution.iterations} iterations"
    ended = "" if solution.nonlinear.success else f" ({solution.nonlinear.status})"
    return f"{name}, {way}: {found}{ended}"


def _moco(peer: Peer) -> str:
    if peer.final_time is None:
        return f"Moco, {peer.intervals} intervals: {peer.status}"
    found = f"T = {peer.final_time:.5f} s, J = {peer.objective:.5f}, {peer.iterations} iterations"
    return f"Moco, {peer.intervals} intervals: {found}"
