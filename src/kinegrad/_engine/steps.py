"""Fixed steps on threads: of many states, of many designs, along many directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.constants import flags_if_varied, mechanism, mechanisms
from kinegrad._engine.gate import kernel_array
from kinegrad._engine.threads import run_blocks, run_tasks, scratch, scratch_pair, workers_for
from kinegrad._kernels import steps as kernels
from kinegrad._kernels.tangent import Pair
from kinegrad._kernels.width import WIDTH
from kinegrad.model import Model

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class March:
    """What to integrate: see the glossary of ``_kernels/steps.py``.

    Attributes
    ----------
    q0, v0 : ndarray, shape (states, n)
    tau : ndarray, shape (T, states or 1, n)
    when : ndarray of int, shape (steps + 1, stages)
    loads : force, point, torque, shape (1 or 0, 3 n)
    scheme : c, A, A_bar, b, b_bar
    h : float
    every : int
    """

    q0: Array
    v0: Array
    tau: Array
    when: Integers
    loads: tuple[Array, ...]
    scheme: tuple[Array, ...]
    h: float
    every: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Times kept, states, joints."""
        return (len(self.when) - 1) // self.every + 1, *self.q0.shape

    @property
    def slots(self) -> int:
        return kernels.slots(self.q0.shape[1], self.when.shape[1])

    @property
    def work(self) -> int:
        """Joint-states to evaluate."""
        return self.q0.size * self.when.size

    def arguments(self, tau: Array, loads: Sequence[Any]) -> tuple[Any, ...]:
        """What follows the initial states in the kernels' arguments."""
        return tau, self.when, *loads, tuple(self.scheme), self.h, self.every


@dataclass(frozen=True, eq=False)
class Marched:
    """q, v, a, (kept, states, n); when and where states were lost; where a joint is free."""

    q: Array
    v: Array
    a: Array
    lost: Integers
    before: Array
    free: Integers


def march(models: Sequence[Model], todo: March) -> Marched:
    """The motions of all states of one model, or of each state with a model of its own."""
    kernel: Any = kernels.along_states if len(models) == 1 else kernels.along_designs
    constants = mechanism(models[0]) if len(models) == 1 else mechanisms(models)
    _, count, n = todo.shape
    q, v, a = (np.empty(todo.shape) for _ in "qva")
    found = Marched(q, v, a, *_unmarked(count, n))
    arguments = (constants, todo.q0, todo.v0, *todo.arguments(todo.tau, todo.loads), *vars(found).values())

    def block(start: int, stop: int) -> None:
        kernel(*arguments, scratch(todo.slots), start, stop)

    run_blocks(block, count, workers_for(todo.work))
    return found


def march_slopes(
    model: Model,
    slopes: tuple[Array, ...],
    load_slopes: tuple[Array, ...] | None,
    todo: March,
    dq0: Array,
    dv0: Array,
) -> tuple[list[Array], Integers]:
    """Slopes of q, v, a, (kept, states, n, p) each, from those of constants, of loads, (p, 3 n) or None for zero, and
    of q0, v0, (states, p, n); and `free`, (states, 2).

    Lanes run over states or over directions, whichever there are more of.
    """
    kept, count, n = todo.shape
    directions = len(slopes[0])
    constants = flags_if_varied(mechanism(model), slopes)
    slopes = tuple(map(kernel_array, slopes))
    load_slopes = None if load_slopes is None else tuple(map(kernel_array, load_slopes))
    results = [np.empty((kept, count, n, directions)) for _ in "qva"]
    free = np.full((count, 2), -1)
    over_states = count >= directions
    items, rows = (directions, count) if over_states else (count, directions)
    workers = workers_for(todo.work * directions)
    size = rows if items >= workers else -(-rows // (workers * WIDTH)) * WIDTH

    def one(item: int, start: int) -> None:
        part = slice(start, min(start + size, rows))
        states, along = (part, slice(item, item + 1)) if over_states else (slice(item, item + 1), part)
        dm = tuple(x[along] for x in slopes)
        loads: Sequence[Any] = todo.loads
        if load_slopes is not None:
            loads = tuple(Pair(x, dx[along]) for x, dx in zip(todo.loads, load_slopes, strict=True))
        tau = todo.tau if todo.tau.shape[1] == 1 else kernel_array(todo.tau[:, states])
        pairs = [
            Pair(x[states], kernel_array(dx[states, along].reshape(-1, n)))
            for x, dx in ((todo.q0, dq0), (todo.v0, dv0))
        ]
        lanes = len(pairs[0].slope)
        filled = [Pair(np.empty((kept, lanes, n)), np.empty((kept, lanes, n))) for _ in "qva"]
        lost, before, found = _unmarked(lanes, n)
        arguments = (*pairs, *todo.arguments(tau, loads), *filled, lost, before, found)
        kernels.along_directions(constants, dm, *arguments, scratch_pair(todo.slots), 0, lanes)
        for result, pair in zip(results, filled, strict=True):
            if over_states:
                result[:, states, :, item] = pair.slope
            else:
                result[:, item, :, along] = pair.slope.swapaxes(1, 2)
        stuck = found[:, 0] >= 0
        if over_states:
            free[states][stuck] = found[stuck]
        elif stuck.any():
            free[item] = found[stuck][0]

    run_tasks(one, [(item, start) for item in range(items) for start in range(0, rows, size)], workers)
    return results, free


def _unmarked(count: int, n: int) -> tuple[Integers, Array, Integers]:
    return np.full(count, -1), np.zeros((count, n)), np.full((count, 2), -1)
