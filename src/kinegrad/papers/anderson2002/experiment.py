"""The experiment of :mod:`kinegrad.papers.anderson2002`: what da/dp costs on chains, how well methods agree, and
how much rounding costs each.

The double pendulum of figures 3 to 7 is in :mod:`kinegrad.papers.anderson2002.pendulum`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from kinegrad import samples
from kinegrad.design import Design
from kinegrad.design.dynamics import forward_dynamics_design_derivatives
from kinegrad.dynamics import mass_matrix
from kinegrad.papers.anderson2002.chain import Chain, chain_of
from kinegrad.papers.anderson2002.extended import extended_derivatives
from kinegrad.papers.anderson2002.methods import METHODS, idle
from kinegrad.papers.report.disturbance import disturbed
from kinegrad.papers.report.page import Progress

__all__ = [
    "Case",
    "Closest",
    "Crossing",
    "Exponent",
    "Pair",
    "Rounding",
    "Timing",
    "agreement",
    "all_crossings",
    "chain_design",
    "closest",
    "compile_methods",
    "crossings",
    "exponents",
    "prepare",
    "small_times",
    "times",
]

Array = NDArray[np.float64]
SIZES = (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 32, 64, 128, 256, 512)
PAPER_LARGEST = 24  # degrees of freedom, figure 2
STATES = 64  # that kinegrad gets at once
FEWEST = 7  # evaluations, if they are not slow
CHECKED = 3  # states at which methods are compared
LIBRARY = "kinegrad"
RECURSIVE = "fully recursive"
INVERTED, FACTORED = "conventional", ("partially recursive", "frugal conventional")  # what is made of M
ORDERS = {  # what the paper says, or follows from how the sums run
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
    disturbed : bool
        Whether repeats differ more than on an idle machine.
    """

    method: str
    n: int
    p: int
    seconds: float
    evaluations: int
    disturbed: bool = False


@dataclass(frozen=True)
class Rounding:
    """The largest error of dq̈/dp at a few states, and what may amplify it.

    Attributes
    ----------
    method : str
    n : int
    error : float
        From :func:`~kinegrad.papers.anderson2002.extended.extended_derivatives`, relative to its largest entry.
    condition : float
        Of the mass matrix, the largest at these states.
    """

    method: str
    n: int
    error: float
    condition: float


@dataclass(frozen=True)
class Pair:
    """The largest difference of two methods' dq̈/dp at a few states, relative to the largest entry."""

    first: str
    second: str
    n: int
    difference: float


@dataclass(frozen=True)
class Exponent:
    """t ~ n^exponent, fitted to sizes from `smallest` to `largest`, beside the order for large n.

    `products` is how the number of products grows over the same sizes, where it is known.
    """

    method: str
    exponent: float
    smallest: int
    largest: int
    order: int
    products: float | None = None


@dataclass(frozen=True)
class Closest:
    """Where another method comes closest to the fully recursive one on small chains, and its time relative to it."""

    method: str
    n: int
    p: int
    ratio: float


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


def agreement(case: Case, methods: Iterable[str]) -> tuple[list[Rounding], list[Pair]]:
    """Errors of the methods, of the fully recursive one and of kinegrad, and the differences of any two of them."""
    states = list(zip(case.q[:CHECKED], case.v[:CHECKED], strict=True))
    found = {
        name: np.array([METHODS[name](case.chain, *state, *case.slopes)[1].T for state in states])
        for name in dict.fromkeys((RECURSIVE, *methods))
    }
    found[LIBRARY] = case.library(CHECKED)
    exact = np.array([extended_derivatives(case.chain, *state, *case.slopes).T for state in states])
    size, model, n = float(np.abs(exact).max()), case.design.model, case.design.model.n
    condition = float(np.linalg.cond(mass_matrix(model, case.q[:CHECKED])).max())

    def apart(x: Array, y: Array) -> float:
        return float(np.abs(x - y).max()) / size

    roundings = [Rounding(name, n, apart(x, exact), condition) for name, x in found.items()]
    return roundings, [Pair(one, two, n, apart(found[one], found[two])) for one, two in combinations(found, 2)]


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
) -> tuple[list[Timing], list[Rounding], list[Pair], dict[str, int]]:
    """Times, errors and differences at all sizes, and at which size a method was given up.

    That is where it would take more than `limit` s; `budget` is how long measuring at one size may take, s.
    """
    found: list[Timing] = []
    roundings: list[Rounding] = []
    pairs: list[Pair] = []
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
        errors, differences = agreement(case, running)
        roundings, pairs = roundings + errors, pairs + differences
        found += _measure(case, running, budget)
    say("chains", len(sizes), len(sizes))
    return found, roundings, pairs, stopped


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
    times: list[list[float]] = [[] for _ in work]
    share = budget / len(work)
    while any(_unsure(sum(each), len(each), share) for each in times):
        for (_, function, _), each in zip(work, times, strict=True):
            if _unsure(sum(each), len(each), share):
                each.append(_timed(function))
    return [
        Timing(name, case.design.model.n, case.design.p, min(each) / states, len(each), disturbed(each))
        for (name, _, states), each in zip(work, times, strict=True)
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
    >>> round(fit.exponent, 6), fit.smallest, fit.largest, fit.order, round(fit.products, 2)
    (4.0, 8, 32, 4, 3.7)
    """
    rows = []
    for name in dict.fromkeys(row.method for row in timings):
        largest = max(row.n for row in timings if row.method == name)
        points = [(row.n, row.seconds) for row in timings if row.method == name and row.n >= largest / 4]
        slope = _slope(points)
        forms = [(row.n, _forms(row.n, row.p)) for row in timings if row.method == name and row.n >= largest / 4]
        products = _slope(forms) if name == INVERTED else None
        rows.append(Exponent(name, slope, points[0][0], points[-1][0], ORDERS[name], products))
    return rows


def _slope(points: Sequence[tuple[float, float]]) -> float:
    x, y = np.log(np.array(points, dtype=np.float64).T)
    return float(np.polyfit(x, y, 1)[0])


def _forms(n: int, p: int) -> int:
    """How many products 𝒫ᵀ I1 𝒫 the conventional method takes: (25), (27), and (28) without I1,q, which is zero."""
    return n**3 + 3 * p * n**3 + 2 * n**4


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
    """Crossings on small chains with one parameter, with four, and with two per bar."""
    rows = crossings([row for row in small if row.p == 1], 1)
    rows += crossings([row for row in small if row.p == 4], 4)
    return rows + crossings([row for row in small if row.p == 2 * row.n])


def closest(small: Sequence[Timing]) -> Closest:
    """The least time of another method relative to the fully recursive one's, over all small chains.

    >>> rows = [Timing("fully recursive", n, 1, 1.0 * n, 1) for n in (1, 2)]
    >>> closest([*rows, Timing("conventional", 1, 1, 4.0, 1), Timing("conventional", 2, 1, 6.0, 1)])
    Closest(method='conventional', n=2, p=1, ratio=3.0)
    """
    base = {(row.n, row.p): row.seconds for row in small if row.method == RECURSIVE}
    rows = [Closest(r.method, r.n, r.p, r.seconds / base[r.n, r.p]) for r in small if r.method != RECURSIVE]
    return min(rows, key=lambda row: row.ratio)
