"""The least-squares problem of markers, of all frames of a recording; solved by ``_kernels/marker_fit.py``.

The cost of a frame, its derivatives and the method are derived in the kernels.  Here are the problem as a recording
gives it, how far coordinates may move, and the covariance of what is found.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import integrate
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.model.coordinates import CoupledCoordinate
from kinegrad.recordings.undetermined import WEAK, null_projection

__all__ = ["MarkerProblem", "coordinate_limits"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
CAREFUL, TRUSTED = (1e-2, 3), (1e-6, 2)  # damping to begin with, and steps without second derivatives
MICROMETRE = 1e-6
BLOCK = 1024  # frames whose matrices are there together


class MarkerProblem:
    """Markers of all frames, with what coordinates may do.

    Parameters
    ----------
    model : Model
    frames : sequence of str, k of them
        The frame or link of each marker.
    measured : ndarray, shape (N, k, 3)
        NaN where a marker was not seen.
    weights : ndarray, shape (k,)
    reference, pull : ndarray, shape (N or 1, nv) and (nv,)
        Values that coordinates should stay near, and how strongly; the first is used where the second is not zero.
    lower, upper : ndarray, shape (nq,)
        Limits of coordinates.
    """

    def __init__(
        self, model: Model, frames: Sequence[str], measured: Array, weights: Array, reference: Array, pull: Array,
        lower: Array, upper: Array,
    ) -> None:  # fmt: skip
        self.model, self.frames, self.weights, self.lower, self.upper = model, list(frames), weights, lower, upper
        self.seen: Flags = ~np.isnan(measured[..., 0])
        self.complete = bool(self.seen.all())
        self._reference, self._pull = reference, pull
        located = [model.locate(name) for name in self.frames]
        self._links = np.array([i for i, _ in located], dtype=np.int64)
        self._places = np.array([np.zeros(3) if T is None else T[:3, 3] for _, T in located])
        self._task = self._of(pull)
        order = self._task.order
        by_link = measured if (order == np.arange(len(order))).all() else np.take(measured, order, axis=1)
        by_link = by_link if self.complete else np.nan_to_num(by_link)
        self._measured = by_link.reshape(len(measured), 3 * len(order))
        self._seen = self.seen if self.complete else self.seen[:, order]

    def _of(self, pull: Array) -> engine.MarkerTask:
        limits = np.concatenate(self._by_speed(self.lower[None], self.upper[None])).T
        return engine.MarkerTask(self.model, self._links, self._places, limits, pull)

    def _given(self, rows: Any, weights: Array) -> tuple[Array, Array, Array]:
        """Measured, weights and references of some frames."""
        amounts = weights[None, self._task.order]
        amounts = amounts if self.complete else amounts * self._seen[rows]
        reference = self._reference if len(self._reference) == 1 else self._reference[rows]
        return self._measured[rows], amounts, reference

    def solve(
        self, rows: Any, guess: Array, tolerance: float, most: int, how: tuple[float, int] = CAREFUL
    ) -> engine.FittedMarkers:
        """Frames `rows` from guesses, (rows or 1, nq), in `most` steps at most."""
        floor = tolerance * MICROMETRE**2 * float(self.weights.sum())
        return self._task.fit(guess, *self._given(rows, self.weights), tolerance, floor, *how[:1], most, *how[1:])

    def derivatives(self, q: Array, rows: Any = slice(None), *, exact: bool = True) -> tuple[Array, Array, Array]:
        """Cost, (rows,), its gradient, (rows, nv), and Hessian, (rows, nv, nv), of frames at q, (rows, nq), or
        Σ w JᵀJ in the place of the last unless it shall be exact."""
        cost, _, g, H = self._task.derivatives(q, *self._given(rows, self.weights), exact=exact)
        return cost, g, H

    def free(self, q: Array, g: Array) -> Flags:
        """Which speeds no limit holds, (N, nv)."""
        low, high = self.room(q)
        return np.asarray(~(((low >= 0) & (g > 0)) | ((high <= 0) & (g < 0)) | (low >= high)))

    def covariance(self, q: Array) -> Array:
        """Covariance of coordinates at their minima, (N, nv, nv), for errors of markers of variance 1.

        H⁻¹ (Σ w² JᵀJ) H⁻¹.
        """
        found = np.empty((len(q), self.model.nv, self.model.nv))
        for rows, inverse in self._inverses(q):
            found[rows] = inverse @ self._squares(q, rows, self.weights**2) @ inverse
        return found

    def freedom(self, q: Array) -> float:
        """Expected Σ |x − m|² of all frames at their minima, for errors of markers of variance 1.

        To first order, distances are (1 − K) e with K = J H⁻¹ JᵀW, whatever the weights W, so that the expectation is

            tr (1 − K)ᵀ(1 − K) = 3 seen − 2 tr H⁻¹ (JᵀWJ) + tr H⁻¹ (JᵀJ) H⁻¹ (JᵀW²J);

        with equal weights it is the number of measured components less that of determined coordinates.
        """
        total = 3.0 * float(self.seen.sum())
        for rows, inverse in self._inverses(q):
            plain, once, twice = (self._squares(q, rows, self.weights**power) for power in (0, 1, 2))
            total -= 2 * np.einsum("bij,bji->", inverse, once)
            total += np.einsum("bij,bji->", inverse @ plain, inverse @ twice)
        return float(total)

    def _inverses(self, q: Array) -> Iterator[tuple[slice, Array]]:
        """H⁻¹ of blocks of frames, zero where a limit holds: matrices of all frames at once would fill the memory."""
        for start in range(0, len(q), BLOCK):
            rows = slice(start, start + BLOCK)
            _, g, H = self.derivatives(q[rows], rows)
            free = self.free(q[rows], g)
            both = free[:, :, None] & free[:, None, :]
            yield rows, np.asarray(np.linalg.pinv(np.where(both, H, 0.0), rcond=1e-10, hermitian=True))

    def _squares(self, q: Array, rows: slice, weights: Array) -> Array:
        """Σ w JᵀJ over the seen markers of frames `rows`, (rows, nv, nv)."""
        loose = self._of(np.zeros_like(self._pull))
        return np.asarray(loose.derivatives(q[rows], *self._given(rows, weights), exact=False)[3])

    def null_projection(self, q: Array, rows: NDArray[np.int64]) -> Array:
        """What seen markers do not determine in frames `rows` at q, (rows, nq), and no limit holds: (rows, nv, nv)."""
        found = np.empty((len(rows), self.model.nv, self.model.nv))
        least = np.where(self.seen[rows].all(axis=1), 0.0, self.weak)
        for start in range(0, len(rows), BLOCK):
            some = slice(start, start + BLOCK)
            _, g, H = self.derivatives(q[some], rows[some], exact=False)
            held = ~self.free(q[some], g)
            H = np.where(held[:, :, None] | held[:, None, :], np.nan, H)
            found[some] = null_projection(self.model, H, least[some])
        return found

    @property
    def weak(self) -> float:
        """Σ w |J|² of a direction that errors of markers leave open, m²: by their weights and their extent."""
        x = self._measured.reshape(len(self._measured), -1, 3)
        x = np.where(self._seen[..., None], x, np.nan)[int(np.argmax(self._seen.sum(axis=1)))] if len(x) else x
        size = float(np.nanmax(np.nanmax(x, axis=0) - np.nanmin(x, axis=0))) if x.size else 0.0
        return WEAK * min(1.0, size * size) * float(self.weights.max(initial=0.0))

    def drawn(self, reference: Array) -> MarkerProblem:
        """The problem in which coordinates are drawn to others, (N, nv), unless they are drawn already: hardly at all,
        but for directions that markers do not determine."""
        other = copy.copy(self)
        mine = self._pull > 0
        other._pull = np.where(mine, self._pull, self.weak)
        other._reference = np.where(mine, self._reference, reference)
        other._task = other._of(other._pull)
        return other

    def moved(self, q: Array, step: Array) -> Array:
        """q ⊕ step, within limits."""
        return np.clip(integrate(self.model, q, step), self.lower, self.upper)

    def room(self, q: Array) -> tuple[Array, Array]:
        """How far each speed may carry its coordinate down and up, (N, nv)."""
        return self._by_speed(self.lower - q, self.upper - q)

    def _by_speed(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Numbers of coordinates, (N, nq), as those of speeds; quaternions have no limits."""
        if self.model.nq == self.model.nv:
            return low, high
        layout = self.model.layout
        down, up = np.full((len(low), layout.nv), -np.inf), np.full((len(low), layout.nv), np.inf)
        for places, speeds in ((layout.plain_q, layout.plain_v), (layout.coupled_q, layout.coupled_v)):
            down[:, speeds], up[:, speeds] = low[:, places], high[:, places]
        return down, up


def coordinate_limits(model: Model, changed: Mapping[str, Any] | None = None) -> tuple[Array, Array]:
    """Lower and upper limits of coordinates, (nq,) each: of the joints of their names, unless others are given."""
    lower, upper = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    layout = model.layout
    owners = dict(zip(layout.plain_q.tolist(), layout.plain.tolist(), strict=True))
    for entry in model.coordinates:
        if isinstance(entry, CoupledCoordinate) and entry.name in model.joint_names:
            owners[model.coordinate_index(entry.name)] = model.joint_index(entry.name)
    for k, joint in owners.items():
        lower[k], upper[k] = model.position_limits[joint]
    for name, pair in (changed or {}).items():
        k = model.coordinate_index(name)
        try:
            low, high = (float(x) for x in pair)
        except (TypeError, ValueError):
            raise InputError(f"`limits[{shown(name)}]` is {shown(pair)}; expected (lower, upper)") from None
        if not low <= high or low == np.inf or high == -np.inf:
            raise InputError(f"`limits[{shown(name)}]` is ({low}, {high}); expected lower ≤ upper, and numbers between")
        if layout.coordinate_kinds[k] == "quaternion":
            raise InputError(f"`limits[{shown(name)}]` limits a part of a quaternion; expected another coordinate")
        lower[k], upper[k] = low, high
    return lower, upper
