"""One branch of a mechanism, followed from posture to posture while kept coordinates go straight from one to the next.

With kept coordinates k and free ones x, φ(k, x) = 0 makes x a function of k as long as G_x = ∂φ/∂x keeps its rank:

    dx = −G_x⁺ G_k dk                                                                                              (1)

A step predicts by (1) and corrects by Newton's method, with k fixed.  It is taken if the correction is a small part of
the step, and if det [Uᵀ G_x; Nᵀ] keeps its sign, where U is a basis of the independent rows and N one of the free
motions before the step: it vanishes where branches meet, and has different signs on two branches that do.  Otherwise
the step is halved.  Lengths are those of rows: a coordinate counts by the length of its column of G.

Where steps become too short, or a posture is singular, (1) of the last regular posture leads straight on to where the
path is regular again.  If it is not met there, the branch ends, and the next posture is closed by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad.configuration import difference, integrate
from kinegrad.constraints.constraint_set import ConstraintSet
from kinegrad.constraints.gauss_newton import Flags, close, solve
from kinegrad.errors import InputError, SingularError

__all__ = ["MEET", "Rows", "Tracker"]

Array = NDArray[np.float64]
RANK = 1e-9  # singular values of rows of unit length below this part of the largest are rounding
NEAR = 1e-4  # part of the largest below which the smallest singular value stands for branches that meet
STRAIGHT = 0.1  # part of a step that its correction may be
FALL = 0.2  # part of the smallest singular value that a step has to leave
SHORTEST = 2.0**-17  # step, part of the way between two postures
NEWTON = 12  # iterations
MEET = "branches meet"


class Rows(NamedTuple):
    """Rows at a posture: G, (m, nv), and its free columns, by `length` of rows, as U diag(s) V.

    `rank` of them are independent; `smallest` is the smallest singular value of as many as there were at any posture,
    part of the largest.
    """

    G: Array
    length: Array
    U: Array
    s: Array
    V: Array
    rank: int
    smallest: float = 1.0

    def least(self, right: Array) -> Array:
        """The shortest change of free coordinates, (nv,), with G x = right as nearly as can be."""
        part = (self.U[:, : self.rank].T @ (right / self.length)) / self.s[: self.rank]
        return np.asarray(self.V[: self.rank].T @ part)


class Tracker:
    """A branch of a set of constraints on which coordinates that are not free are driven."""

    def __init__(self, constraints: ConstraintSet, free: Flags, limit: float, threads: int | None) -> None:
        self.constraints, self.model = constraints, constraints.model
        self.free, self.limit, self.threads = free, limit, threads
        self.regular: Rows | None = None  # at the last regular posture
        self.rank = 0  # largest of all postures so far
        self.longest = np.zeros(constraints.m)  # rows so far: one that vanishes on the way is no row of unit length

    def follow(self, q: Array, goal: Array) -> tuple[Array, str, float]:
        """From posture q to the kept coordinates of `goal`: (posture, "" or what is wrong, at which part of the way).

        What is wrong is ``MEET``, where the path went straight on, or any other sentence, where it ended.
        """
        change = np.where(self.free, 0.0, difference(self.model, q, goal))
        done, step, trouble, place = 0.0, 1.0, "", 1.0
        at = self._rows(q)
        while done < 1.0:
            if at.smallest >= NEAR or self.regular is None:
                self.regular = at
                step = min(step, 1.0 - done)
                found = self._step(q, at, change * step)
                if found is not None:
                    done, (q, at), step = done + step, found, 2 * step
                    continue
                step /= 2
                if step > SHORTEST:
                    continue
            straight = self._straight(q, change, 1.0 - done)
            if straight is None:
                return q, "the branch ends", done
            trouble, place = MEET, min(place, done)
            done, q, at = done + straight[0], straight[1], self._rows(straight[1])
            step = SHORTEST * 16
        return q, trouble, place

    def closed(self, q: Array, goal: Array) -> Array:
        """A posture with the kept coordinates of `goal`, near q, or, if there is none, near `goal`."""
        change = np.where(self.free, 0.0, difference(self.model, q, goal))
        found = goal
        for start in (integrate(self.model, q, change), goal):
            found = close(self.constraints, start[None], self.free, self.limit, self.threads)[0]
            if self.met(found):
                break
        return found

    def polished(self, q: Array) -> Array:
        """A posture to rounding."""
        return np.asarray(solve(self.constraints, q[None].copy(), self.free, self.threads)[0])

    def _step(self, q: Array, at: Rows, change: Array) -> tuple[Array, Rows] | None:
        """A posture further on, and its rows, or None where the step is too long."""
        predicted = change - at.least(at.G @ change)
        found = self._corrected(q, predicted, np.sqrt((at.G * at.G).sum(axis=0)))
        if found is None:
            return None
        there = self._rows(found)
        if there.rank < at.rank or there.smallest < FALL * at.smallest or not self._same_side(at, there):
            return None
        return found, there

    def _straight(self, q: Array, change: Array, left: float) -> tuple[float, Array] | None:
        """Part of the way by which a singular posture is passed, and the posture there; None if the branch ends."""
        assert self.regular is not None
        weights = np.sqrt((self.regular.G * self.regular.G).sum(axis=0))
        size = 16 * SHORTEST
        while True:
            size = min(size, left)
            part = change * size
            found = self._corrected(q, part - self.regular.least(self.regular.G @ part), weights)
            if found is not None and (size == left or self._rows(found).smallest >= NEAR):
                return size, found
            if size == left:
                return None
            size *= 4

    def _corrected(self, q: Array, step: Array, weights: Array) -> Array | None:
        """The posture next to q ⊕ step, if it is near enough."""
        predicted = integrate(self.model, q, step)
        found = self._newton(predicted)
        if found is None:
            return None
        off = weights * np.where(self.free, difference(self.model, predicted, found), 0.0)
        return found if np.linalg.norm(off) <= STRAIGHT * np.linalg.norm(weights * step) + self.limit else None

    def _newton(self, q: Array) -> Array | None:
        before = np.inf
        for _ in range(NEWTON):
            try:
                phi, G = self.constraints.closure(q, threads=self.threads)
            except (InputError, SingularError):
                return None
            size = np.abs(phi).max(initial=0.0)
            if not size < 0.5 * before:
                break
            if size == 0.0:
                return q
            nearest, before = q, size
            change = -self._of(G).least(phi)
            if not np.isfinite(change).all() or np.abs(change).max(initial=0.0) > 1e3:
                return None
            q = integrate(self.model, q, change)
        return nearest if before <= self.limit else None

    def met(self, q: Array) -> bool:
        return bool((np.abs(self.constraints.error(q)) <= self.limit).all())

    def _rows(self, q: Array) -> Rows:
        found = self._of(self.constraints.jacobian(q, threads=self.threads))
        self.rank = max(self.rank, found.rank)
        if found.rank < self.rank:
            return found._replace(smallest=0.0)
        return found._replace(smallest=float(found.s[self.rank - 1] / found.s[0])) if self.rank else found

    def _of(self, G: Array) -> Rows:
        moved = np.where(self.free, G, 0.0)
        self.longest = np.maximum(self.longest, np.sqrt((moved * moved).sum(axis=-1)))
        length = np.where(self.longest > 0.0, self.longest, 1.0)
        U, s, V = np.linalg.svd(moved / length[:, None], full_matrices=False)
        rank = int((s > RANK * s.max(initial=0.0)).sum())
        return Rows(G, length, U, s, V, rank)

    def _same_side(self, before: Rows, after: Rows) -> bool:
        """Return True if det [Uᵀ G_x; Nᵀ] has one sign at both."""
        r, free = before.rank, self.free
        if not r:
            return True
        basis = before.V[:r, free]
        rest = np.linalg.svd(basis, full_matrices=True)[2][r:]  # N
        old = before.s[:r, None] * basis
        new = before.U[:, :r].T @ (after.G[:, free] / after.length[:, None])
        signs = [np.linalg.slogdet(np.concatenate([x, rest]))[0] for x in (old, new)]
        return bool(signs[0] * signs[1] > 0)
