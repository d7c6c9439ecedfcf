"""Postures on the way of a motion in which rows of the constraints depend on each other though elsewhere they do not.

There a mechanism can move in more ways: a parallelogram that is stretched flat may go on as one, or fold.  What an
integrator does next depends on rounding, so that the motion ends before such a posture.

Between two instants of a motion, G goes through a posture of lower rank if its orientation changes: of full rank,

    det(G(t₁) G(t₂)ᵀ) < 0,                                                                                        (1)

which is seen however far apart the two instants are from that posture.  (Of redundant rows, the same is true of the
spaces of the first r singular vectors, with the rank r at the start.)  A motion that only touches such a posture, or
that leaves it on another branch, is seen by its smallest singular value σ.  Coordinates that are off by φ belong to one
branch only as long as, by the theorem of Newton and Kantorovich,

    σ² > 2 L |φ|,    L = |dG/dq|                                                                                  (2)

so that the posture is passed, as far as the motion is known, if (2) fails; or if σ is rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from kinegrad._engine import saddle
from kinegrad.constraints import ConstraintSet
from kinegrad.simulate.constrained_law import ConstrainedLaw
from kinegrad.simulate.crossings import parts_of, turn_rate
from kinegrad.simulate.explicit import Cubic
from kinegrad.simulate.law import Law

__all__ = ["RankWatch", "look_along", "watch_rank"]

Array = NDArray[np.float64]
Path = Callable[[Array], Array]
SUSPECT = 0.15  # part of the largest det(G Gᵀ) so far below which σ is computed
NEAR = 1e-2  # part of the σ of other postures below which (2) is judged
ROUNDING = 1e-6  # part of it that is rounding
SAFE = 4.0  # (2) holds by this factor where a motion ends
HALVINGS = 50
NAMED = 1e-3  # part of the largest share of a row in the combination that vanishes, of rows that are named
SHOWN = 6  # coordinates and rows in a sentence


class RankWatch:
    """The rows of constraints along the motions of some states.

    Parameters
    ----------
    constraints : ConstraintSet
    q : ndarray, shape (states, nq)
        At the start.
    free : ndarray of int, shape (f,), optional
        Speeds that are not prescribed: G is then of these alone, so that dead points of drives are seen.
    """

    def __init__(self, constraints: ConstraintSet, q: Array, free: NDArray[np.int64] | None = None) -> None:
        self.constraints, self.free = constraints, slice(None) if free is None else free
        G = self.jacobian(q)
        length = np.sqrt((G**2).sum(axis=-1, keepdims=True))
        self.size = np.where(length > saddle.RANK * length.max(axis=-2, keepdims=True), length, 1.0)
        self.G = G / self.size
        self.rank = saddle.rank(G)
        self.full = bool((self.rank == constraints.m).all())
        self.best = self._measure(self.G)
        self.usual = np.array([self._sigma(x, k)[0] for k, x in enumerate(self.G)])

    def jacobian(self, q: Array) -> Array:
        """G of free speeds, (..., m, f)."""
        return np.asarray(self.constraints.jacobian(q)[..., self.free])

    def look(self, path: Path, first: float, last: float, rate: float) -> dict[int, tuple[float, str]]:
        """Find states that reach a posture of lower rank between two times.

        Parameters
        ----------
        path : callable
            Coordinates (times, states, nq) at times (times,).
        first, last : float
            `first` is the end of the interval before.
        rate : float
            Largest sum of angular speeds of joints, rad/s.

        Returns
        -------
        dict
            For each such state, a time before that posture, and a sentence.
        """
        angle = rate * (last - first)
        t = np.linspace(first, last, 1 + parts_of(angle, 1))
        q = path(t[1:])
        good = np.isfinite(q).all(axis=(0, 2))
        G = np.repeat(self.G[None], len(t), axis=0)
        if good.all():
            G[1:] = self.jacobian(q) / self.size
        else:
            G[1:, good] = self.jacobian(q[:, good]) / self.size[good]
        measure = self._measure(G[1:])
        low = (measure < self.best + np.log(SUSPECT)).any(axis=0)
        turned = self._turned(G[:-1], G[1:], self.rank).any(axis=0)
        more = measure.max(axis=0) > self.best + np.log(2.0)
        for k in np.flatnonzero(more).tolist():
            at = int(measure[:, k].argmax())
            self.best[k], self.usual[k] = measure[at, k], max(self.usual[k], self._sigma(G[at + 1, k], k)[0])
        self.G = G[-1]
        found = {}
        for k in np.flatnonzero(good & (low | turned)).tolist():
            when = Way(self, path, k, t, G[:, k]).dependent()
            if when is not None:
                found[k] = when
        return found

    def near(self, q: Array) -> bool:
        """Return True if the first state is near a posture of lower rank at q."""
        G = self.jacobian(q[None])[0] / self.size[0]
        return bool(self._sigma(G, 0)[0] < NEAR * self.usual[0])

    def say(self, t: float, q: Array, k: int) -> str:
        """A sentence on state k, which is near a posture of lower rank at q."""
        G = self.jacobian(q[None])[0] / self.size[k]
        _, share = self._sigma(G, k)
        rows = np.flatnonzero(np.abs(share) > NAMED * np.abs(share).max())
        moved = np.flatnonzero(np.abs(self.constraints.jacobian(q[None])[0, rows]).max(axis=0) > 0)
        model = self.constraints.model
        names = _some([repr(self.constraints.row_names[row]) for row in rows.tolist()])
        flat = model.nq == model.nv
        posture = _some([f"{model.coordinate_names[j]} = {round(q[j], 6):.4g}" for j in moved.tolist()]) if flat else ""
        what = f"row {names} of the constraints is singular"
        if len(rows) > 1:
            what = f"rows {names} of the constraints depend on each other"
        where = f" ({posture})" if posture else ""
        return (
            f"ended at t = {t:.6g} s: {what} in a posture close by{where}, from which the mechanism can move on in "
            "more ways than one; expected a motion that stays away from it, or constraints that choose the way, such "
            "as a Coupling of joints that turn together"
        )

    def _measure(self, G: Array) -> Array:
        """Logarithm of what is zero where the rank is lower: det(G Gᵀ), or σ² of redundant rows."""
        if self.full:
            return np.asarray(np.linalg.slogdet(G @ saddle.T(G))[1])
        S = np.linalg.svd(G, compute_uv=False)
        at = np.broadcast_to(self.rank - 1, S.shape[:-1])[..., None]
        with np.errstate(divide="ignore"):
            return np.asarray(2.0 * np.log(np.take_along_axis(S, np.maximum(at, 0), axis=-1)[..., 0]))

    def _turned(self, G: Array, H: Array, rank: Any) -> NDArray[np.bool_]:
        """Return True if the orientation changes from G to H, (..., m, n), of a rank (...): (1)."""
        if self.full:
            return np.asarray(np.linalg.slogdet(G @ saddle.T(H))[0] < 0.0)
        few = min(G.shape[-2:])
        keep = (np.arange(few) < np.asarray(rank)[..., None]).astype(float)
        (U, _, Vt), (X, _, Yt) = (np.linalg.svd(x, full_matrices=False) for x in (G, H))
        pair = keep[..., :, None] * keep[..., None, :]
        rest = np.eye(few) * (1.0 - keep)[..., None, :]
        left, right = pair * (saddle.T(U) @ X) + rest, pair * (Vt @ saddle.T(Yt)) + rest
        return np.asarray(np.linalg.slogdet(left)[0] * np.linalg.slogdet(right)[0] < 0.0)

    def _sigma(self, G: Array, k: int) -> tuple[float, Array]:
        """σ of state k, and the combination of rows, (m,), that it belongs to."""
        U, S, _ = np.linalg.svd(G)
        r = max(int(self.rank[k]), 1)
        return float(S[r - 1]), U[:, r - 1]


def watch_rank(law: Law, q: Array) -> RankWatch | None:
    """Return a watch on the rank of a law's constraints from states q, (..., nq); None without constraints."""
    if not isinstance(law, ConstrainedLaw) or not law.constraints.m:
        return None
    return RankWatch(law.constraints, law.normalised(q).reshape(-1, q.shape[-1]), law.moving)


def look_along(watch: RankWatch, cubic: Cubic, t: float) -> dict[int, tuple[float, str]]:
    """:meth:`RankWatch.look` along a fixed step, or a part of one, that begins at a time t."""
    (q, v), h = cubic.ends, cubic.h
    good = np.isfinite(q).all(axis=-1) & np.isfinite(v).all(axis=-1)
    if not h > 0 or not good.any():
        return {}
    rate = float(turn_rate(watch.constraints.model, q[good], v[good]).max())

    def path(times: Array) -> Array:
        return cubic(times - t)[0].reshape(len(times), -1, q.shape[-1])

    return watch.look(path, t, t + h, rate)


class Way:
    """One state between two times, which may reach a posture of lower rank."""

    def __init__(self, watch: RankWatch, path: Path, k: int, t: Array, G: Array) -> None:
        self.watch, self.path, self.k, self.t, self.G = watch, path, k, t, G
        moved = np.linalg.norm(np.diff(self._q(t), axis=0), axis=-1)
        bent = np.linalg.norm(np.diff(G, axis=0), axis=(-2, -1))
        self.bend = float((bent / np.where(moved > 0, moved, np.inf)).max())  # L

    def _q(self, t: Array) -> Array:
        return self.path(t)[:, self.k]

    def _rows(self, t: float) -> Array:
        return np.asarray(self.watch.jacobian(self._q(np.array([t])))[0] / self.watch.size[self.k])

    def _sigma(self, t: float) -> float:
        return self.watch._sigma(self._rows(t), self.k)[0]

    def dependent(self) -> tuple[float, str] | None:
        """A time before the posture, and a sentence, or None if there is no such posture."""
        found = [t for t in (self._crossing(), self._touching()) if t is not None]
        if not found:
            return None
        at = min(found)
        back = 1e-9 * (self.t[-1] - self.t[0])
        t = at
        while t > self.t[0] and not self._unique(t, SAFE):
            t, back = max(at - back, self.t[0]), 4.0 * back
        return float(t), self.watch.say(float(at), self._q(np.array([at]))[0], self.k)

    def _crossing(self) -> float | None:
        """When the orientation changes, by halving."""
        turned = self.watch._turned(self.G[:-1], self.G[1:], self.watch.rank[self.k])
        for i in np.flatnonzero(turned).tolist():
            (low, high), (G, H) = self.t[i : i + 2], self.G[i : i + 2]
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                F = self._rows(middle)
                if self.watch._turned(G, F, self.watch.rank[self.k]):
                    high, H = middle, F
                elif self.watch._turned(F, H, self.watch.rank[self.k]):
                    low, G = middle, F
                else:  # it has only turned far
                    break
            else:
                return float(low)
        return None

    def _touching(self) -> float | None:
        """When σ is least, if it is too small there."""
        sigma = [self.watch._sigma(x, self.k)[0] for x in self.G]
        usual, last = self.watch.usual[self.k], len(sigma) - 1
        for i, x in enumerate(sigma):
            around = max(i - 1, 0), min(i + 1, last)
            if x > 0.5 * usual or x > min(sigma[j] for j in around):
                continue
            bounds = [float(self.t[j]) for j in around]
            least = minimize_scalar(self._sigma, bounds=bounds, method="bounded", options={"xatol": 1e-12})
            at = float(least.x) if least.fun < x else float(self.t[i])
            if not self._unique(at, 1.0):
                return at
        return None

    def _unique(self, t: float, factor: float) -> bool:
        """Return True if one branch only is near the posture at t: (2)."""
        sigma, usual = self._sigma(t), self.watch.usual[self.k]
        if sigma <= factor * ROUNDING * usual:
            return False
        off = self.watch.constraints.error(self._q(np.array([t])))[0] / self.watch.size[self.k][:, 0]
        known = sigma**2 > 2.0 * factor * self.bend * float(np.linalg.norm(off))
        return bool(known or sigma > factor * NEAR * usual)


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
