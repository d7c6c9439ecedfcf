"""Frames of markers fitted: tables of a model, frames in parts, on threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.coordinates import map_table
from kinegrad._engine.gate import kernel_array
from kinegrad._engine.kernel_constants import mechanism
from kinegrad._engine.pool import Call
from kinegrad._engine.reduction import speed_tree
from kinegrad._engine.tables import once
from kinegrad._engine.threads import compiled, scratch, workers_for
from kinegrad._kernels import marker_fit as kernels
from kinegrad._kernels.lanes.finite import NOT_FINITE
from kinegrad._kernels.mechanism import Mechanism
from kinegrad.errors import InputError
from kinegrad.model import Model

__all__ = ["FittedMarkers", "MarkerTask"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
FIRST = 400_000  # squared joints times frames of a part, as long as nothing is known of how long they take
STEPS = 8  # that a frame usually takes, at most


@dataclass(frozen=True, eq=False)
class FittedMarkers:
    """Frames at their minima, as ``_kernels/marker_fit.py`` gives them.

    Attributes
    ----------
    q : ndarray, shape (frames, nq)
    cost, steps, done : ndarray, shape (frames,)
    distance : ndarray, shape (frames, k)
    diagonal : ndarray, shape (frames, nv)
        Of Σ w JᵀJ: zero for speeds that no seen marker depends on.
    """

    q: Array
    cost: Array
    steps: Integers
    done: NDArray[np.bool_]
    distance: Array
    diagonal: Array


class MarkerTask:
    """Markers on a model, with limits: what is the same for all frames.

    Parameters
    ----------
    model : Model
    links : ndarray of int, shape (k,)
    places : ndarray, shape (k, 3)
        In the frames of their links.
    limits : ndarray, shape (nv, 2)
        Of the coordinate of each speed; infinite for those of quaternions.
    pull : ndarray, shape (nv,)

    Attributes
    ----------
    order : ndarray of int, shape (k,)
        In which markers are measured and weighed: by links.  Distances are in that of `links` again.
    """

    def __init__(self, model: Model, links: Integers, places: Array, limits: Array, pull: Array) -> None:
        plain = model.without_elements.primitive
        self._mechanism, layout, n = mechanism(plain), model.layout, model.n
        self.order = np.argsort(links, kind="stable")
        links = links[self.order]
        self.nq, self.nv, self._n = layout.nq, layout.nv, n
        frame = Mechanism(*self._mechanism).F[links]
        local = np.einsum("kij,kj->ki", frame[:, :9].reshape(-1, 3, 3), places[self.order]) + frame[:, 9:]
        beyond = np.searchsorted(links, np.arange(n + 1))
        coordinate = np.full(layout.nv, -1)
        coordinate[layout.plain_v], coordinate[layout.coupled_v] = layout.plain_q, layout.coupled_q
        table, speed = map_table(model)
        pairs, begin, tree = once(model, "markers", lambda: _pairs(model))
        turns = [kind != "prismatic" for kind in layout.speed_kinds]
        integers = (np.ascontiguousarray(x, dtype=np.int64) for x in (speed, beyond, coordinate, turns))
        speed, beyond, coordinate, turned = integers
        fixed = table, speed, pairs, begin, tree, beyond
        self._task = (
            *fixed,
            kernel_array(local),
            self.order,
            coordinate,
            kernel_array(limits),
            turned,
            kernel_array(pull),
        )
        self._slots = kernels.slots(n, layout.nq, layout.nv, len(links), len(tree[1]))

    def fit(
        self, q0: Array, measured: Array, weights: Array, reference: Array,
        tolerance: float, floor: float, damping: float, most: int, patient: int,
    ) -> FittedMarkers:  # fmt: skip
        """From q0, (frames or 1, nq), with what was measured, (frames, 3 k), weights, (frames or 1, k), and
        references, (frames or 1, nv); the rest is `how` of the kernel."""
        count, k = len(measured), len(self.order)
        q, distance, diagonal = np.empty((count, self.nq)), np.empty((count, k)), np.empty((count, self.nv))
        numbers = [np.empty((count, 1)) for _ in range(3)]
        how = float(tolerance), float(floor), float(damping), int(most), int(patient)
        given = *self._given(q0, measured, weights, reference), how
        self._run(kernels.fit, (*given, q, *numbers, distance, diagonal), count, STEPS)
        cost, steps, done = (x[:, 0] for x in numbers)
        return FittedMarkers(q, cost, steps.astype(np.int64), done > 0.5, distance, diagonal)

    def derivatives(
        self, q: Array, measured: Array, weights: Array, reference: Array, *, exact: bool
    ) -> tuple[Array, Array, Array, Array]:
        """Cost, (frames,), distances, (frames, k), gradient, (frames, nv), and Hessian, (frames, nv, nv), or Σ w JᵀJ in
        its place unless it shall be exact."""
        count, k = len(measured), len(self.order)
        cost, distance = np.empty((count, 1)), np.empty((count, k))
        g, H = np.empty((count, self.nv)), np.zeros((count, self.nv**2))
        given = self._given(q, measured, weights, reference)
        self._run(kernels.cost_derivatives, (*given, float(exact), cost, distance, g, H), count, 1)
        return cost[:, 0], distance, g, H.reshape(count, self.nv, self.nv)

    def _given(self, q: Array, measured: Array, weights: Array, reference: Array) -> tuple[Any, ...]:
        given = (kernel_array(x) for x in (q, measured, weights, reference))
        return self._mechanism, self._task, *given

    def _run(self, kernel: Any, arguments: tuple[Any, ...], count: int, steps: int) -> None:
        found: list[int] = []
        work = self._n**2 * steps
        call = Call(1, count, max(FIRST // work, 1), workers_for(count * self._n * steps))

        def part(_: int, start: int, stop: int) -> None:
            found.append(kernel(*arguments, scratch(self._slots), start, stop))

        call.run(part, alone_first=not compiled(kernel))
        if NOT_FINITE in found:
            raise InputError("markers or coordinates are not finite; expected NaN for markers that were not seen only")


def _pairs(model: Model) -> tuple[Integers, Integers, tuple[Integers, ...]]:
    """pairs, begin and tree of ``_kernels/marker_cost.py``."""
    layout, parents = model.layout, model.parents.tolist()
    (_, tree), _ = speed_tree(model, np.arange(layout.nv))
    first, above, _ = tree
    ends = np.concatenate([[first[0] + 1], first[:-1]])
    entry = {(k, int(above[e])): e for k in range(layout.nv) for e in range(first[k], ends[k])}
    speed, rows, begin = layout.speed_of.tolist(), list[tuple[int, int, int]](), list[int]()
    for j in range(layout.n):
        begin.append(len(rows))
        i = j
        while i >= 0:
            a, b = speed[j], speed[i]
            place = entry[max(a, b), min(a, b)] if min(a, b) >= 0 else -1
            rows.append((place, 2 if i != j and a == b else 1, int(a == b)))
            i = parents[i]
    return np.array(rows, dtype=np.int64).reshape(-1, 3), np.array(begin, dtype=np.int64), tree
