"""From frame to frame of a recording: where the search for each begins.

A frame is fitted in three or four steps from a guess that is near, and not at all, or somewhere else, from one that is
far.  All frames of a round are worked on together, W at a time:

1. one frame in which most markers are seen, from the start and from random starts around it, eight, or sixteen if not
   most of the first lead to one cost: the lowest;
2. frames 32 apart, from that; where one ends higher than its neighbours, or far from them, it is solved again from
   theirs;
3. frames 8 apart, and then all others, from cubic polynomials through what is known around them; and once more, those
   that end higher than their neighbours, or far from them.

4. coordinates that no seen marker determines are filled in from the frames before and after.

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
from kinegrad.recordings.undetermined import PART, filled_gaps

__all__ = ["FrameSearch"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
STARTS = 16  # of the first frame, or half of them
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
        self.undetermined = np.zeros((count, problem.model.nv), dtype=bool)
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
        self._fill(begin)

    def _fill(self, begin: Array) -> None:
        """Coordinates that seen markers do not determine, by what they are before and after."""
        problem, model = self.problem, self.model
        loose = self.diagonal <= 1e-12 * self.diagonal.max(axis=1, keepdims=True)
        rows = np.flatnonzero(~problem.seen.all(axis=1) | loose.any(axis=1))
        if not len(rows) or model.nq != model.nv:
            self.undetermined |= loose
            return
        null = problem.null_projection(self.q[rows], rows)
        self.undetermined[rows] = np.diagonal(null, axis1=1, axis2=2) > PART
        never = self.undetermined.all(axis=0)
        wanted = np.where(never, begin, filled_gaps(self.t, self.q, self.undetermined))
        found = self.undetermined[rows].any(axis=1)
        rows, null = rows[found], null[found]
        if not len(rows):
            return
        step = (null @ (wanted[rows] - self.q[rows])[..., None])[..., 0]
        guess = problem.moved(self.q[rows], step)
        again = problem.drawn(wanted).solve(rows, guess, self.tolerance, self.most, TRUSTED)
        self.steps[rows] += again.steps
        self._take(rows[again.done], again, again.done)
        self.cost[rows] = problem.derivatives(self.q[rows], rows, exact=False)[0]

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
        starts, half = integrate(model, begin, turns), STARTS // 2
        q, cost, steps = self._rough(first, starts[:half])
        if 2 * len(_equal(cost)) <= half:  # no majority for the lowest
            found = zip((q, cost, steps), self._rough(first, starts[half:]), strict=True)
            q, cost, steps = (np.concatenate(both) for both in found)
        best = int(_equal(cost)[0])  # of equals, that from nearest to the start
        self.steps[first] += steps[best]
        row = np.array([first])
        self._take(row, self._solve(row, q[best : best + 1]))

    def _rough(self, first: int, starts: Array) -> tuple[Array, Array, Integers]:
        """q, cost and steps from each start."""
        rows = np.full(len(starts), first)
        found = self.problem.solve(rows, starts, max(ROUGH, self.tolerance), min(50, self.most))
        return found.q, np.where(np.isfinite(found.cost), found.cost, np.inf), found.steps

    def _mend(self, known: Integers, far: float) -> None:
        """Solve frames again that end higher than their neighbours, or far from them, from where these are."""
        cost = self.cost
        usual = np.median(cost[known])
        for here, there in ((known[1:], known[:-1]), (known[:-1], known[1:])):
            for _ in range(ROUNDS):
                suspect = ((cost[here] > 4 * cost[there]) & (cost[here] > 4 * usual + TINY)) | ~self.done[here]
                suspect |= self._largest(self.q[there], self.q[here]) > far
                rows, start = here[suspect], self.q[there[suspect]]
                if not len(rows):
                    break
                jump = self._largest(start, self.q[rows])
                found, before = self._solve(rows, start), cost[rows]
                closer = self._largest(start, found.q) < jump - 1e-6
                better = (found.cost < before * (1 - 1e-6)) | ((found.cost <= before * (1 + 1e-6) + 1e-20) & closer)
                better |= found.done & ~self.done[rows]
                if not better.any():
                    break
                self._take(rows[better], found, better)

    def _largest(self, q0: Array, q1: Array) -> Array:
        """The largest change of any coordinate, rad or m, from one configuration to another, of frames."""
        plain = self.model.nq == self.model.nv
        return np.asarray(np.abs(q1 - q0 if plain else difference(self.model, q0, q1)).max(axis=1))

    def _unwrap(self, known: Integers) -> None:
        """Angles that nothing limits, without jumps by whole turns."""
        layout, problem = self.model.layout, self.problem
        loose = np.isinf(problem.lower[layout.plain_q]) & np.isinf(problem.upper[layout.plain_q])
        turns = np.array([self.model.joints[joint].kind == "revolute" for joint in layout.plain], dtype=bool)
        angles = np.ix_(known, layout.plain_q[loose & turns])
        self.q[angles] = np.unwrap(self.q[angles], axis=0)

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


def _equal(cost: Array) -> Integers:
    """The starts that lead to the lowest cost."""
    return np.flatnonzero(cost <= cost.min() * (1 + 10 * ROUGH) + TINY)
