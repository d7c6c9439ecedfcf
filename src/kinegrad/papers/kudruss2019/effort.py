"""Figure 2 of [kudruss2019]: what derivatives along k directions cost, in evaluations of the function.

The effort of a mode is the time of function and derivatives together, divided by that of the function alone, for the
same states: processor time of one thread.  All modes and the function are timed in turn, again and again, and the best
time of each counts.  Where times of one and the same work differ much, something else was at work on the machine: that
is found and said.

Differences evaluate the function at 1 + k or 1 + 2k points, and move states and divide differences besides.  The points
alone, made beforehand and evaluated in one call as differences do it, are measured in the same turns: what is left of
the effort is the overhead of batches in NumPy, which compiled loops over one state, as the paper's, do not have.

The last task is the linear system (1) alone: differences factor each perturbed matrix, both exact modes factor one
(proposition 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter, thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.directional import directional
from kinegrad.papers.kudruss2019 import linear
from kinegrad.papers.kudruss2019.cart import saddle
from kinegrad.papers.kudruss2019.systems import MODES, Mechanism, uniform
from kinegrad.papers.report.disturbance import disturbed
from kinegrad.papers.report.page import Progress

__all__ = ["BOUNDS", "SOLVE", "STATES", "Effort", "efforts"]

Array = NDArray[np.float64]
STATES = 256  # in a call
SYSTEMS = 16  # the same of the linear system alone
SOLVE = "solve (1)"
BOUNDS: dict[str, Callable[[float], float]] = {  # of the paper's table 1, evaluations for k directions
    "forward": lambda k: 1 + k,
    "central": lambda k: 1 + 2 * k,
    "tangent": lambda k: 1 + 1.5 * k,
    "structured": lambda k: 1 + 1.5 * k,
}
FEWEST = 6  # rounds
ALONE = " alone"
SHORTEST = 5e-5  # s that a measurement takes: what is shorter is done several times in it


@dataclass(frozen=True)
class Effort:
    """What a mode costs.

    Attributes
    ----------
    task, mode : str
        The algorithm, or the linear system alone; and how it is differentiated.
    directions : int
    seconds, function : float
        Of function and derivatives, and of the function alone, for one state: the best of `rounds`.
    rounds : int
    disturbed : bool
        Whether the times of the function say that something else was at work.
    alone : float or None
        Seconds of the evaluations that differences take, without the rest, for one state; None of other modes.
    """

    task: str
    mode: str
    directions: int
    seconds: float
    function: float
    rounds: int
    disturbed: bool
    alone: float | None = None

    @property
    def effort(self) -> float:
        """In evaluations of the function."""
        return self.seconds / self.function

    @property
    def evaluations(self) -> float | None:
        """Effort of the evaluations alone, of differences; about 1 + k or 1 + 2k."""
        return None if self.alone is None else self.alone / self.function


def efforts(pendulum: Mechanism, directions: Sequence[int], budget: float, say: Progress) -> list[Effort]:
    """Efforts of all algorithms and of the linear system; `budget` is how long measuring one of them at one number of
    directions may take, s."""
    rows: list[Effort] = []
    tasks = [*(algorithm.name for algorithm in pendulum.algorithms), SOLVE]
    total = len(tasks) * len(directions)
    for done, (task, k) in enumerate((task, k) for task in tasks for k in directions):
        say("effort", done, total)
        work, states = _solving(pendulum, k) if task == SOLVE else _evaluating(pendulum, task, k)
        rows += _measure(task, k, work, states, budget)
    say("effort", total, total)
    return rows


def _evaluating(pendulum: Mechanism, name: str, k: int) -> tuple[dict[str, Callable[[], Any]], int]:
    """The function and its modes, and how many states they have in a call."""
    n = pendulum.model.n
    algorithm = next(each for each in pendulum.algorithms if each.name == name)
    state = list(uniform([2021, n], 3, STATES, n)[: algorithm.parts])
    D = list(uniform([2022, n, k], 3, STATES, n, k)[: algorithm.parts])
    options: dict[str, Any] = {"threads": 1, **pendulum.options(algorithm)}

    def along(mode: str) -> Callable[[], Any]:
        return lambda: directional(algorithm.function, pendulum.model, state, D, mode=mode, **options)

    def alone(points: int) -> Callable[[], Any]:
        many = [np.ascontiguousarray(np.broadcast_to(x, (points, *x.shape))) for x in state]
        return lambda: pendulum.value(algorithm, *many)

    work = {"": alone(1)} | {mode: along(mode) for mode in MODES}
    return work | {
        f"{mode}{ALONE}": alone(points) for mode, points in (("forward", 1 + k), ("central", 1 + 2 * k))
    }, STATES


def _solving(pendulum: Mechanism, k: int) -> tuple[dict[str, Callable[[], Any]], int]:
    """The system K x = b of some states, and its derivatives along k directions of K and b.

    That ∂K and ∂b have to come from somewhere is not counted.
    """
    n, rows = pendulum.model.n, pendulum.constraints
    assert rows is not None
    (q,) = uniform([2021, n], 1, SYSTEMS, n)
    K = saddle(pendulum.value(pendulum.algorithms[0], q), rows.jacobian(q))
    b, db = uniform([2023], SYSTEMS, n + rows.m), uniform([2024, k], SYSTEMS, k, n + rows.m)
    dK = 1e-3 * uniform([2025, k], SYSTEMS, k, n + rows.m, n + rows.m)
    none = np.zeros((SYSTEMS, 0, *K.shape[1:])), np.zeros((SYSTEMS, 0, *b.shape[1:]))
    work: dict[str, Callable[[], Any]] = {
        "": lambda: linear.solutions(K, none[0], b, none[1], 0.0, 0),
        "forward": lambda: linear.solutions(K, dK, b, db, 1e-8, 1),
        "central": lambda: linear.solutions(K, dK, b, db, 1e-5, 2),
        "tangent": lambda: linear.solutions(K, dK, b, db, 0.0, 0),
    }
    return work | {"structured": work["tangent"]}, SYSTEMS


def _measure(task: str, k: int, work: dict[str, Callable[[], Any]], states: int, budget: float) -> list[Effort]:
    """Each in turn, again and again within the budget."""
    counts = {name: _repeats(run) for name, run in work.items()}
    times: dict[str, list[float]] = {name: [] for name in work}
    end = perf_counter() + budget
    while perf_counter() < end or len(times[""]) < FEWEST:
        for name, run in work.items():
            times[name].append(_timed(run, counts[name]))
    rounds, function = len(times[""]), min(times[""])
    return [
        Effort(
            task, mode, k, min(times[mode]) / states, function / states, rounds,
            disturbed(times[mode]) or disturbed(times[""]),
            min(times[mode + ALONE]) / states if mode + ALONE in times else None,
        )
        for mode in work if mode and not mode.endswith(ALONE)
    ]  # fmt: skip


def _repeats(run: Callable[[], Any]) -> int:
    """How often in a measurement; what is compiled on a first call is compiled then."""
    run()
    return max(1, round(SHORTEST / max(_timed(run, 1), 1e-7)))


def _timed(run: Callable[[], Any], repeats: int) -> float:
    start = thread_time()
    for _ in range(repeats):
        run()
    return (thread_time() - start) / repeats
