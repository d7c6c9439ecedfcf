"""Two functions timed side by side: in turn, many times, the best of each.

Other work on the machine only ever adds time, so the best of many runs is the steadiest estimate of what a
function costs; taking turns, with samples of equal length, lets both meet the same conditions.  Medians and
quartiles tell how noisy it was.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

REPEATS, QUICK = 30, 3
SAMPLE = 2e-4  # seconds a sample lasts at least: the faster function is called several times in it
TOLERANCE = 1e-11  # of the largest entry: two formulations that differ by more do not compute the same


@dataclass(frozen=True)
class Case:
    """One row to measure.

    Attributes
    ----------
    name : str
        What is computed.
    ours, peer : callable
        The same work by kinegrad and by the peer.  Their results are compared unless one of them is None.
    against : str
        What the peer is.
    target : float, optional
        How many times faster we are to be.
    same : callable, optional
        Makes the peer's result comparable where conventions differ; not timed.
    """

    name: str
    ours: Callable[[], Any]
    peer: Callable[[], Any]
    against: str
    target: float | None = None
    same: Callable[[Any], Any] = lambda result: result


@dataclass(frozen=True)
class Timing:
    """Seconds per call, over `runs` samples."""

    best: float
    lower: float
    median: float
    upper: float
    runs: int

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        best, lower, median, upper = np.quantile(seconds, (0, 0.25, 0.5, 0.75)).tolist()
        return cls(best, lower, median, upper, len(seconds))


@dataclass(frozen=True)
class Comparison:
    """A measured :class:`Case`; `difference` is that of the results, by their largest entry."""

    name: str
    against: str
    ours: Timing
    peer: Timing
    target: float | None
    difference: float | None

    @property
    def ratio(self) -> float:
        return self.peer.best / self.ours.best

    @property
    def ratio_of_medians(self) -> float:
        return self.peer.median / self.ours.median

    @property
    def missed_by(self) -> float | None:
        """The part of the target that is missing, not above 0 if it is met."""
        return None if self.target is None else 1 - self.ratio / self.target


@dataclass(frozen=True)
class Measurement:
    """A number by itself, with the most that it may be."""

    name: str
    value: float
    unit: str = ""
    target: float | None = None
    note: str = ""

    @property
    def missed_by(self) -> float | None:
        """The part by which the target is exceeded, not above 0 if it is met."""
        return None if self.target is None else self.value / self.target - 1


Row = Comparison | Measurement


def compare(cases: Iterable[Case], repeats: int = REPEATS) -> list[Row]:
    """Measure each case at least `repeats` times, and for at least repeats / 30 seconds."""
    return [_compare(case, repeats) for case in cases]


def _compare(case: Case, repeats: int) -> Comparison:
    difference = _difference(case)
    ours_calls, peer_calls = _calls(case)
    ours: list[float] = []
    peer: list[float] = []
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        stop = perf_counter() + repeats / REPEATS
        while len(ours) < repeats or perf_counter() < stop:
            ours.append(sample(case.ours, ours_calls))
            peer.append(sample(case.peer, peer_calls))
    finally:
        if enabled:
            gc.enable()
    return Comparison(case.name, case.against, Timing.of(ours), Timing.of(peer), case.target, difference)


def sample(function: Callable[[], Any], calls: int) -> float:
    """Seconds per call, over `calls` of them."""
    rounds = range(calls)
    start = perf_counter()
    for _ in rounds:
        function()
    return (perf_counter() - start) / calls


def _calls(case: Case) -> tuple[int, int]:
    """How many calls of each make samples of equal length: a longer one would be disturbed more often."""
    ours, peer = (min(sample(function, 1) for _ in range(5)) for function in (case.ours, case.peer))
    length = max(SAMPLE, ours, peer)
    return round(length / ours), round(length / peer)


def _difference(case: Case) -> float | None:
    ours, peer = case.ours(), case.peer()
    if ours is None or peer is None:
        return None
    expected = np.asarray(case.same(peer))
    difference = float(np.abs(np.asarray(ours) - expected).max() / np.abs(expected).max())
    if not difference <= TOLERANCE:
        raise ArithmeticError(f"{case.name}: differs from {case.against} by {difference:.1e} of the largest")
    return difference
