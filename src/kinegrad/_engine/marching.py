"""Fixed steps on threads: of many states, of many designs, along many directions.

A kernel takes some states through some steps: so many that Ctrl-C is not kept waiting.  The state where it ends, which
it writes among its results, is where it starts again; the acceleration there is evaluated twice, to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.gate import kernel_array
from kinegrad._engine.kernel_constants import flags_if_varied, mechanism, mechanisms
from kinegrad._engine.pool import PART, Call
from kinegrad._engine.threads import compiled, scratch, scratch_pair, workers_for
from kinegrad._kernels import steps as kernels
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.dual import Pair
from kinegrad.model import Model

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Kernel = Callable[..., None]
FIRST = 200_000  # joint-states to evaluate before it is known how long that takes
_FEWEST = 16  # steps at a time, lest one evaluation more for each time counts


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

    @property
    def first_rows(self) -> int:
        """States to begin with, so that some hundred steps of them take a fraction of a second."""
        joints, stages = self.q0.shape[1], self.when.shape[1]
        return FIRST // (int(joints) * int(stages) * min(len(self.when), 100))


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
    q, v, a = motion = [np.empty(todo.shape) for _ in "qva"]
    marks = _unmarked(count, n)

    def advance(q: Any, v: Any, when: Integers, every: int, filled: Sequence[Any], start: int, stop: int) -> None:
        steps = (todo.tau, when, *todo.loads, tuple(todo.scheme), todo.h, every)
        kernel(constants, q, v, *steps, *filled, *marks, scratch(todo.slots), start, stop)

    call = Call(1, count, todo.first_rows, workers_for(todo.work))
    call.run(
        lambda _, start, stop: _Walk(advance, todo, motion, marks, call).go(todo.q0, todo.v0, 0, start, stop),
        alone_first=not compiled(kernel),
    )
    return Marched(q, v, a, *marks)


def march_slopes(
    model: Model,
    slopes: tuple[Array, ...],
    load_slopes: tuple[Array, ...] | None,
    todo: March,
    dq0: Array,
    dv0: Array,
) -> tuple[Marched, list[Array]]:
    """The motions of all states, and slopes of q, v, a, (kept, states, n, p) each, from those of constants, of loads,
    (p, 3 n) or None for zero, and of q0, v0, (states, p, n).

    Lanes run over states or over directions, whichever there are more of.  Each dual has the value with its slope: the
    motion is that of the first direction, and equal to what :func:`march` finds but for rounding.
    """
    kept, count, n = todo.shape
    directions = len(slopes[0])
    if not directions:
        return march([model], todo), [np.empty((kept, count, n, 0)) for _ in "qva"]
    constants = flags_if_varied(mechanism(model), slopes)
    slopes = tuple(map(kernel_array, slopes))
    load_slopes = None if load_slopes is None else tuple(map(kernel_array, load_slopes))
    results = [np.empty((kept, count, n, directions)) for _ in "qva"]
    q, v, a = motion = [np.empty(todo.shape) for _ in "qva"]
    found = _unmarked(count, n)
    over_states = count >= directions
    lines, rows = (directions, count) if over_states else (count, directions)
    call = Call(lines, rows, todo.first_rows, workers_for(todo.work * directions))

    def part(line: int, start: int, stop: int) -> None:
        some, one = slice(start, stop), slice(line, line + 1)
        states, along = (some, one) if over_states else (one, some)
        dm = tuple(x[along] for x in slopes)
        loads: Sequence[Any] = todo.loads
        if load_slopes is not None:
            loads = tuple(Pair(x, dx[along]) for x, dx in zip(todo.loads, load_slopes, strict=True))
        tau = todo.tau if todo.tau.shape[1] == 1 else kernel_array(todo.tau[:, states])
        q0, v0 = (
            Pair(x[states], kernel_array(dx[states, along].reshape(-1, n)))
            for x, dx in ((todo.q0, dq0), (todo.v0, dv0))
        )
        lanes = stop - start
        filled = [Pair(np.empty((kept, lanes, n)), np.empty((kept, lanes, n))) for _ in "qva"]
        marks = _unmarked(lanes, n)

        def advance(q: Any, v: Any, when: Integers, every: int, filled: Sequence[Any], start: int, stop: int) -> None:
            steps = (tau, when, *loads, tuple(todo.scheme), todo.h, every)
            kernels.along_directions(
                constants, dm, q, v, *steps, *filled, *marks, scratch_pair(todo.slots), start, stop
            )

        _Walk(advance, todo, filled, marks, call).go(q0, v0, 0, 0, lanes)
        for result, pair in zip(results, filled, strict=True):
            if over_states:
                result[:, states, :, line] = pair.slope
            else:
                result[:, line, :, along] = pair.slope.swapaxes(1, 2)
        if along.start == 0:
            lane = slice(None) if over_states else slice(1)
            for value, pair in zip(motion, filled, strict=True):
                value[:, states] = pair.value[:, lane]
            for mark, own in zip(found, marks, strict=True):
                mark[states] = own[lane]

    call.run(part, alone_first=not compiled(kernels.along_directions))
    return Marched(q, v, a, *found), results


class _Walk:
    """Some states through all steps, some steps at a time.

    Parameters
    ----------
    advance : callable
        ``advance(q, v, when, every, filled, start, stop)`` calls the kernel.
    todo : March
    motion : three arrays, or Pairs of arrays, (kept, states, n): the results
    marks : lost, before, free
    call : Call
    """

    def __init__(self, advance: Kernel, todo: March, motion: Sequence[Any], marks: tuple[Any, ...], call: Call) -> None:
        self.advance, self.todo, self.motion, self.call = advance, todo, motion, call
        self.lost, _, self.free = marks
        self.many = 0

    def go(self, q: Any, v: Any, step: int, start: int, stop: int) -> None:
        """From q, v before a step on, to the end; states of which a joint is free end there."""
        todo, last = self.todo, len(self.todo.when) - 1
        stages = todo.when.shape[1]
        self.many = max(FIRST // ((stop - start) * todo.q0.shape[1] * stages), _FEWEST)
        while step <= last and not self.call.cancelled:
            end = self._end(step, last)
            marked = self.lost[start:stop] >= 0, self.free[start:stop, 0] >= 0
            began = perf_counter()
            q, v = self._some(q, v, step, end, start, stop)
            self.many = max(int(self.many * min(PART / max(perf_counter() - began, 1e-6), 4.0)), _FEWEST)
            self.lost[start:stop][(self.lost[start:stop] >= 0) & ~marked[0]] += step
            stuck = (self.free[start:stop, 0] >= 0) & ~marked[1]
            self.free[start:stop, 1][stuck] += step * stages
            if end == last:
                return
            step = end
            if stuck.any():  # their blocks of lanes have no state to go on from; the others go on without them
                for first in range(start, stop, WIDTH):
                    after = min(first + WIDTH, stop)
                    if not (self.free[first:after, 0] >= 0).any():
                        self.go(q, v, step, first, after)
                return

    def _end(self, step: int, last: int) -> int:
        """Where to stop next: at steps that are kept, or between two of them if those are far apart."""
        every = self.todo.every
        if self.many >= every and step % every == 0:
            return min(step + self.many // every * every, last)
        return min(step + self.many, step - step % every + every, last)

    def _some(self, q: Any, v: Any, step: int, end: int, start: int, stop: int) -> tuple[Any, Any]:
        """From `step` to `end`; returns q and v there, unless it is an end that is not kept."""
        every, when = self.todo.every, self.todo.when[step : end + 1]
        whole = step % every == 0 and (end % every == 0 or end == len(self.todo.when) - 1)
        if whole:
            first = step // every
            filled = [_layers(x, first, first + (end - step) // every + 1) for x in self.motion]
            self.advance(q, v, when, every, filled, start, stop)
            return _layer(filled[0], -1), _layer(filled[1], -1)
        filled = [_like(x) for x in self.motion]
        self.advance(q, v, when, end - step, filled, start, stop)
        for x, some in zip(self.motion, filled, strict=True):
            for k, at in enumerate((step, end)):
                if at % every == 0:
                    _copy(some, k, x, at // every, start, stop)
        return _layer(filled[0], -1), _layer(filled[1], -1)


def _parts(x: Any) -> tuple[Array, ...]:
    return tuple(x) if isinstance(x, Pair) else (x,)


def _same(x: Any, parts: Sequence[Array]) -> Any:
    return Pair(*parts) if isinstance(x, Pair) else parts[0]


def _layers(x: Any, first: int, after: int) -> Any:
    return _same(x, [part[first:after] for part in _parts(x)])


def _layer(x: Any, k: int) -> Any:
    return _same(x, [part[k] for part in _parts(x)])


def _like(x: Any) -> Any:
    """Two layers of the same kind."""
    return _same(x, [np.empty((2, *part.shape[1:])) for part in _parts(x)])


def _copy(x: Any, k: int, to: Any, at: int, start: int, stop: int) -> None:
    for part, other in zip(_parts(x), _parts(to), strict=True):
        other[at, start:stop] = part[k, start:stop]


def _unmarked(count: int, n: int) -> tuple[Integers, Array, Integers]:
    return np.full(count, -1), np.zeros((count, n)), np.full((count, 2), -1)
