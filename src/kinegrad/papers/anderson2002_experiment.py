"""The experiment of :mod:`kinegrad.papers.anderson2002`: what da/dp costs on chains, and how well methods agree.

The double pendulum of figures 3 to 7 is in :mod:`kinegrad.papers.anderson2002_pendulum`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from kinegrad import samples
from kinegrad.design import Design
from kinegrad.design_derivatives import forward_dynamics_design_derivatives
from kinegrad.dynamics import mass_matrix
from kinegrad.papers.anderson2002_chain import Chain, chain_of
from kinegrad.papers.anderson2002_methods import METHODS, idle

__all__ = [
    "Agreement",
    "Case",
    "Crossing",
    "Exponent",
    "Timing",
    "agreements",
    "all_crossings",
    "chain_design",
    "compile_methods",
    "crossings",
    "exponents",
    "prepare",
    "small_times",
    "times",
]

Array = NDArray[np.float64]
Progress = Callable[[str, int, int], None]
SIZES = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 32, 64, 128, 256, 512)
PAPER_LARGEST = 24  # degrees of freedom, figure 2
STATES = 64  # that kinegrad gets at once
FEWEST = 7  # evaluations, if they are not slow
CHECKED = 3  # states at which methods are compared
LIBRARY = "kinegrad"
RECURSIVE = "fully recursive"
ORDERS = {  # what is claimed, or follows from how the sums run
    "fully recursive": 1,
    "partially recursive": 3,
    "conventional": 4,
    "frugal conventional": 4,
    LIBRARY: 1,
}
SMALL = (1, 2, 3, 4, 5, 6, 8)  # degrees of freedom around the crossing


@dataclass(frozen=True)
class Timing:
    """Time of one evaluation.

    Attributes
    ----------
    method : str
    n, p : int
        Degrees of freedom and design parameters.
    seconds : float
        For q̈ and dq̈/dp at one state: the best of `evaluations`.
    evaluations : int
    """

    method: str
    n: int
    p: int
    seconds: float
    evaluations: int


@dataclass(frozen=True)
class Agreement:
    """The largest difference from the fully recursive dq̈/dp, in parts of its largest entry, and the condition of M."""

    method: str
    n: int
    difference: float
    condition: float


@dataclass(frozen=True)
class Exponent:
    """t ~ n^exponent, fitted to sizes from `smallest` to `largest`, beside the order that is claimed."""

    method: str
    exponent: float
    smallest: int
    largest: int
    claimed: int


@dataclass(frozen=True)
class Crossing:
    """From which n on the fully recursive method is faster than another; p = 2n if `p` is 0.

    `at` is between two sizes, None if it is faster at all, and infinite if at none.
    """

    other: str
    p: int
    at: float | None


@dataclass(frozen=True, eq=False)
class Case:
    """A chain, states of it (m, n), and how they follow the parameters, (n, p)."""

    design: Design
    chain: Chain
    q: Array
    v: Array
    dq: Array
    dv: Array

    @property
    def slopes(self) -> tuple[Array, Array]:
        """dq/dp and dv/dp as the methods take them, (p, n)."""
        return np.ascontiguousarray(self.dq.T), np.ascontiguousarray(self.dv.T)

    def library(self, states: int) -> Array:
        """kinegrad's dq̈/dp at the first states, on one thread, (states, n, p)."""
        q, v = self.q[:states], self.v[:states]
        return forward_dynamics_design_derivatives(
            self.design, q, v, np.zeros_like(q), dq_dp=self.dq, dv_dp=self.dv, threads=1
        )


# --- chains ---------------------------------------------------------------------------------------------------------


def chain_design(n: int, bars: Iterable[int] | None = None) -> Design:
    """Length and mass of some bars of a spatial chain, from 1; by default of the first and the middle one.

    A bar's length moves its mass centre, its inertia (a cylinder of constant radius) and the next hinge; its mass
    scales its inertia.

    Examples
    --------
    >>> chain_design(6).names
    ('L1', 'm1', 'L4', 'm4')
    >>> chain_design(6).parameters["L4"]["hinge5.placement.z"]
    -1.0
    """
    model = samples.spatial_chain(n)
    parameters: dict[str, dict[str, float]] = {}
    for k in sorted(set((1, n // 2 + 1) if bars is None else bars)):
        mass, inertia, length = model.mass[k - 1], model.inertia[k - 1], -2 * model.com[k - 1, 2]
        across = float(mass * length / 6)  # d/dL of m (3 R² + L²) / 12
        longer = {f"bar{k}.com.z": -0.5, f"bar{k}.inertia.xx": across, f"bar{k}.inertia.yy": across}
        parameters[f"L{k}"] = longer | ({f"hinge{k + 1}.placement.z": -1.0} if k < n else {})
        moments = {f"bar{k}.inertia.{x}{x}": float(inertia[i, i] / mass) for i, x in enumerate("xyz")}
        parameters[f"m{k}"] = {f"bar{k}.mass": 1.0} | moments
    return Design(model, parameters)


def prepare(design: Design, states: int = STATES) -> Case:
    """Random states and slopes, the same at every run: angles and speeds of 0.5 rad and 0.5 rad/s, slopes of 1."""
    random = np.random.default_rng([2002, design.model.n, design.p])
    q, v = 0.5 * random.normal(size=(2, states, design.model.n))
    dq, dv = random.normal(size=(2, design.model.n, design.p))
    return Case(design, chain_of(design), q, v, dq, dv)


# --- agreement ------------------------------------------------------------------------------------------------------


def agreements(case: Case, methods: Iterable[str]) -> list[Agreement]:
    """Each method, and kinegrad, against the fully recursive one."""
    states = list(zip(case.q[:CHECKED], case.v[:CHECKED], strict=True))
    found = {
        name: np.array([METHODS[name](case.chain, *state, *case.slopes)[1].T for state in states])
        for name in dict.fromkeys((RECURSIVE, *methods))
    }
    exact = found.pop(RECURSIVE)
    size = float(np.abs(exact).max())
    n, condition = case.design.model.n, float(np.linalg.cond(mass_matrix(case.design.model, case.q[0])))
    found[LIBRARY] = case.library(CHECKED)
    return [Agreement(name, n, float(np.abs(x - exact).max()) / size, condition) for name, x in found.items()]


# --- times ----------------------------------------------------------------------------------------------------------


def compile_methods(say: Progress) -> tuple[float, float]:
    """Compile all methods; how long that took, and how long an empty call takes, s."""
    case = prepare(chain_design(2))
    start = perf_counter()
    for done, method in enumerate((*METHODS.values(), idle)):
        say("compiling the methods", done, len(METHODS) + 1)
        method(case.chain, case.q[0], case.v[0], *case.slopes)
    seconds = perf_counter() - start
    say("compiling the methods", len(METHODS) + 1, len(METHODS) + 1)
    slopes = case.slopes
    empty = min(_timed(lambda: idle(case.chain, case.q[0], case.v[0], *slopes)) for _ in range(1000))
    return seconds, empty


def times(
    sizes: Sequence[int], limit: float, budget: float, say: Progress
) -> tuple[list[Timing], list[Agreement], dict[str, int]]:
    """Times and agreement at all sizes, and at which size a method was given up: it would take more than `limit` s.

    `budget` is how long measuring at one size may take, s.
    """
    found: list[Timing] = []
    agreed: list[Agreement] = []
    stopped: dict[str, int] = {}
    for done, n in enumerate(sizes):
        say("chains", done, len(sizes))
        case = prepare(chain_design(n))
        for name in METHODS:
            last = next((row for row in reversed(found) if row.method == name), None)
            if last is not None and name not in stopped:
                foreseen = last.seconds * (n / last.n) ** ORDERS[name]
                if foreseen > limit:
                    stopped[name] = n
        running = [name for name in METHODS if name not in stopped]
        agreed += agreements(case, running)
        found += _measure(case, running, budget)
    say("chains", len(sizes), len(sizes))
    return found, agreed, stopped


def small_times(budget: float, say: Progress) -> list[Timing]:
    """Times of small chains with one parameter, with four, and with the length and mass of every bar."""
    found: list[Timing] = []
    for done, n in enumerate(SMALL):
        say("small chains", done, len(SMALL))
        designs = [Design(chain_design(n).model, {"L1": chain_design(n).parameters["L1"]})]  # type: ignore[call-overload]
        designs += [chain_design(n)] if n > 2 else []
        designs += [chain_design(n, range(1, n + 1))]
        for design in designs:
            found += _measure(prepare(design, CHECKED), list(METHODS), budget, library=False)
    say("small chains", len(SMALL), len(SMALL))
    return found


def _measure(case: Case, names: Sequence[str], budget: float, library: bool = True) -> list[Timing]:
    """Each in turn, again and again within the budget; the best of each counts."""
    slopes, state = case.slopes, (case.q[0], case.v[0])
    work: list[tuple[str, Callable[[], object], int]] = [
        (name, partial(METHODS[name], case.chain, *state, *slopes), 1) for name in names
    ]
    if library:
        work.append((LIBRARY, lambda: case.library(STATES), STATES))
    best, spent, counts = [np.inf] * len(work), [0.0] * len(work), [0] * len(work)
    share = budget / len(work)
    while any(map(_unsure, spent, counts, [share] * len(work))):
        for k, (_, function, _) in enumerate(work):
            if _unsure(spent[k], counts[k], share):
                seconds = _timed(function)
                best[k], spent[k], counts[k] = min(best[k], seconds), spent[k] + seconds, counts[k] + 1
    return [
        Timing(name, case.design.model.n, case.design.p, seconds / states, count)
        for (name, _, states), seconds, count in zip(work, best, counts, strict=True)
    ]


def _unsure(spent: float, count: int, share: float) -> bool:
    """Whether to measure again: the share is not used up, or too few evaluations are behind it."""
    return spent < share or count < (FEWEST if spent < 4 * share else 2)


def _timed(function: Callable[[], object]) -> float:
    start = perf_counter()
    function()
    return perf_counter() - start


# --- what follows from them -----------------------------------------------------------------------------------------


def exponents(timings: Sequence[Timing]) -> list[Exponent]:
    """Slopes on logarithmic axes, over the sizes from a quarter of a method's largest on.

    >>> [fit] = exponents([Timing("conventional", n, 4, 2e-9 * n**4, 1) for n in (2, 8, 16, 32)])
    >>> round(fit.exponent, 6), fit.smallest, fit.largest, fit.claimed
    (4.0, 8, 32, 4)
    """
    rows = []
    for name in dict.fromkeys(row.method for row in timings):
        largest = max(row.n for row in timings if row.method == name)
        points = [(row.n, row.seconds) for row in timings if row.method == name and row.n >= largest / 4]
        n, seconds = np.log(np.array(points).T)
        slope = float(np.polyfit(n, seconds, 1)[0])
        rows.append(Exponent(name, slope, points[0][0], points[-1][0], ORDERS[name]))
    return rows


def crossings(timings: Sequence[Timing], p: int = 0) -> list[Crossing]:
    """Where each of the other methods crosses the fully recursive one, the size between two interpolated.

    >>> rows = [Timing("fully recursive", n, 4, 4.0 * n, 1) for n in (2, 4, 8)]
    >>> rows += [Timing("conventional", n, 4, n**2 / 2, 1) for n in (2, 4, 8)]
    >>> crossings(rows, 4)
    [Crossing(other='conventional', p=4, at=8.0)]
    """
    ours = {row.n: row.seconds for row in timings if row.method == RECURSIVE}
    rows = []
    for name in METHODS:
        theirs = {row.n: row.seconds for row in timings if row.method == name}
        if name == RECURSIVE or not theirs:
            continue
        sizes = sorted(theirs)
        ahead = [n for n in sizes if theirs[n] <= ours[n]]
        at: float | None = None
        if ahead and ahead[-1] == sizes[-1]:
            at = float(sizes[-1]) if theirs[sizes[-1]] == ours[sizes[-1]] else np.inf
        elif ahead:
            low, high = ahead[-1], sizes[sizes.index(ahead[-1]) + 1]
            x, y = np.log(theirs[low] / ours[low]), np.log(theirs[high] / ours[high])
            at = float(np.exp(np.interp(0.0, [x, y], np.log([low, high]))))
        rows.append(Crossing(name, p, at))
    return rows


def all_crossings(small: Sequence[Timing]) -> list[Crossing]:
    """Crossings on small chains with one parameter, with four, and with two a bar."""
    rows = crossings([row for row in small if row.p == 1], 1)
    rows += crossings([row for row in small if row.p == 4], 4)
    return rows + crossings([row for row in small if row.p == 2 * row.n])
