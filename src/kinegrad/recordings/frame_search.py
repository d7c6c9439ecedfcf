"""From frame to frame of a recording: where the search for each begins.

A frame is fitted in three or four steps from a guess that is near, and not at all, or somewhere else, from one that is
far.  All frames of a round are worked on together, W at a time:

1. one frame in which most markers are seen, from the start and from random starts around it: the best of them;
2. frames 32 apart, from that; where one ends higher than its neighbours, or far from them, it is solved again from
   theirs;
3. frames 8 apart, and then all others, from cubic polynomials through what is known around them; and once more, those
   that end higher than their neighbours, or far from them.

What a frame begins with depends on the recording alone, and a frame does not feel the others of its round: results are
the same bits with any number of threads.  Other frames in a recording, or fewer of them, give other guesses, and so the
same minima to rounding, not to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import difference, integrate
from kinegrad.recordings.marker_problem import CAREFUL, TRUSTED, MarkerProblem

__all__ = ["FrameSearch"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
STARTS = 16  # of the first frame
ROUGH = 1e-3  # part of the cost that they are compared to
STRIDES = 32, 8, 1  # frames apart, round by round
ROUNDS = 4  # of looking again
TINY = 1e-18  # m²: cost of nothing
FAR, JUMP = 0.7, 0.3  # rad or m: from frame to frame of the first round, and of the last, that is looked at again


class FrameSearch:
    """All frames of a problem: what is known of each so far."""

    def __init__(self, problem: MarkerProblem, t: Array, begin: Array, tolerance: float, most: int) -> None:
        count, k = problem.seen.shape
        self.problem, self.model, self.t = problem, problem.model, t
        self.tolerance, self.most = tolerance, most
        self.q, self.cost = np.tile(begin, (count, 1)), np.zeros(count)
        self.steps, self.done = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
        self.distance, self.diagonal = np.zeros((count, k)), np.zeros((count, problem.model.nv))

    def run(self, begin: Array, seed: int) -> None:
        """All frames, from few that are far apart to those between them."""
        count = len(self.t)
        if not count:
            return
        first = int(np.argmax(self.problem.seen.sum(axis=1)))
        self._first(first, begin, seed)
        known = np.unique(np.append(np.arange(0, count, STRIDES[0]), count - 1))
        others = known[known != first]
        if len(others):
            self._take(others, self._solve(others, self.q[first : first + 1]))
        self._mend(known, FAR)
        self._unwrap(known)
        for stride in STRIDES[1:]:
            wanted = np.zeros(count, dtype=bool)
            wanted[::stride], wanted[known] = True, False
            new = np.flatnonzero(wanted)
            if len(new):
                self._take(new, self._solve(new, self._between(known, new), TRUSTED))
                known = np.union1d(known, new)
        self._mend(known, JUMP)

    def _solve(self, rows: Integers, guess: Array, how: tuple[float, int] = CAREFUL) -> engine.FittedMarkers:
        found = self.problem.solve(rows, guess, self.tolerance, self.most, how)
        self.steps[rows] += found.steps
        return found

    def _take(self, rows: Integers, found: engine.FittedMarkers, which: Any = slice(None)) -> None:
        """Some of the frames that were found."""
        self.q[rows], self.cost[rows], self.done[rows] = found.q[which], found.cost[which], found.done[which]
        self.distance[rows], self.diagonal[rows] = found.distance[which], found.diagonal[which]

    def _first(self, first: int, begin: Array, seed: int) -> None:
        """One frame from several starts: the best of what they lead to."""
        model, rng = self.model, np.random.default_rng(seed)
        wide = np.array([0.2 if kind == "prismatic" else 1.0 for kind in model.layout.speed_kinds])
        turns = wide * rng.normal(size=(STARTS, model.nv)) * np.linspace(0, 1.5, STARTS)[:, None]
        starts, rows = integrate(model, begin, turns), np.full(STARTS, first)
        rough = self.problem.solve(rows, starts, max(ROUGH, self.tolerance), min(50, self.most))
        cost = np.where(np.isfinite(rough.cost), rough.cost, np.inf)
        equal = np.flatnonzero(cost <= cost.min() * (1 + 10 * ROUGH) + TINY)
        best = int(equal[0])  # of equals, that from nearest to the start
        self.steps[first] += rough.steps[best]
        row = np.array([first])
        self._take(row, self._solve(row, rough.q[best : best + 1]))

    def _mend(self, known: Integers, far: float) -> None:
        """Solve frames again that end higher than their neighbours, or far from them, from where these are."""
        cost, model = self.cost, self.model
        usual = np.median(cost[known])
        for here, there in ((known[1:], known[:-1]), (known[:-1], known[1:])):
            for _ in range(ROUNDS):
                suspect = ((cost[here] > 4 * cost[there]) & (cost[here] > 4 * usual + TINY)) | ~self.done[here]
                suspect |= np.abs(difference(model, self.q[there], self.q[here])).max(axis=1) > far
                rows, start = here[suspect], self.q[there[suspect]]
                if not len(rows):
                    break
                jump = np.abs(difference(model, start, self.q[rows])).max(axis=1)
                found, before = self._solve(rows, start), cost[rows]
                closer = np.abs(difference(model, start, found.q)).max(axis=1) < jump - 1e-6
                better = (found.cost < before * (1 - 1e-6)) | ((found.cost <= before * (1 + 1e-6) + 1e-20) & closer)
                better |= found.done & ~self.done[rows]
                if not better.any():
                    break
                self._take(rows[better], found, better)

    def _unwrap(self, known: Integers) -> None:
        """Angles that nothing limits, without jumps by whole turns."""
        layout, problem = self.model.layout, self.problem
        for k, joint in zip(layout.plain_q, layout.plain, strict=True):
            loose = np.isinf(problem.lower[k]) and np.isinf(problem.upper[k])
            if loose and self.model.joints[joint].kind == "revolute":
                self.q[known, k] = np.unwrap(self.q[known, k])

    def _between(self, known: Integers, new: Integers) -> Array:
        """Guesses by polynomials of degree 3 through the four known frames around each; fewer where there are fewer."""
        model, t, count = self.model, self.t, min(4, len(known))
        first = np.clip(np.searchsorted(known, new) - count // 2, 0, len(known) - count)
        around = [known[first + k] for k in range(count)]
        parts = [np.ones(len(new)) for _ in around]
        for k, part in enumerate(parts):
            for other in around[:k] + around[k + 1 :]:
                part *= (t[new] - t[other]) / (t[around[k]] - t[other])
        if model.nq == model.nv:
            return np.asarray(sum(part[:, None] * self.q[rows] for part, rows in zip(parts, around, strict=True)))
        base = self.q[around[count // 2]]
        steps = (p[:, None] * difference(model, base, self.q[rows]) for p, rows in zip(parts, around, strict=True))
        return integrate(model, base, sum(steps))
