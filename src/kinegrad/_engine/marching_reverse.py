"""Fixed steps backwards, on threads: a segment of steps is made again, then gone through from its end.

As in ``marching.py`` a kernel takes some states through so many steps that Ctrl-C is not kept waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine import marching as forward
from kinegrad._engine.pool import PART, Call
from kinegrad._engine.threads import aligned, compiled, scratch, workers_for
from kinegrad._kernels import rnea_reverse
from kinegrad._kernels import steps_reverse as kernels
from kinegrad._kernels.compiler.width import WIDTH

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Part = Callable[[int, int, int, int], None]


class Segment(NamedTuple):
    """Some steps in a row.

    Attributes
    ----------
    q, v : ndarray, shape (steps + 1, states, n)
        Before each step and after the last.
    a : ndarray, shape (steps, states, n)
        Before each step.
    when, scheme, h
        As of :class:`March`.
    tape : ndarray
        What ``_kernels/steps_reverse.py`` keeps of them.
    """

    q: Array
    v: Array
    a: Array
    when: Integers
    scheme: tuple[Array, ...]
    h: float
    tape: Array


class Reversal:
    """What goes backwards through the steps of a :class:`March`, a segment at a time.

    Parameters
    ----------
    constants : tuple
        Of the mechanism.
    todo : March
    length : int
        Steps of the longest segment.

    Attributes
    ----------
    to_q, to_v : ndarray, shape (states, n)
        ∂J with respect to the state where it is now; zero to begin with, after the end of the motion.
    """

    def __init__(self, constants: tuple[Any, ...], todo: forward.March, length: int) -> None:
        count, n = todo.q0.shape
        self._constants, self._todo = constants, todo
        self._tape = self._slots(length * todo.when.shape[1] * kernels.TAPE * n)
        self._sums = self._slots(rnea_reverse.columns(n, len(todo.loads[0]) > 0))
        self.to_q, self.to_v = np.zeros((count, n)), np.zeros((count, n))

    def replay(self, q: Array, v: Array, first: int, last: int) -> Segment:
        """The steps first … last − 1 from q, v on, (states, n).  Of those before it, the tape is lost."""
        todo = self._todo
        return self._replayed(q, v, todo.when[first:last], todo.scheme, todo.h, self._tape)

    def end(self, q: Array, v: Array) -> Segment:
        """The last moment, as a step that leads nowhere: one stage, at its start."""
        one, zero = np.ones(1), np.zeros(1)
        scheme = zero, np.zeros((1, 1)), np.zeros((1, 1)), one, one
        when = np.ascontiguousarray(self._todo.when[-1:, :1])
        return self._replayed(q, v, when, scheme, 0.0, self._slots(kernels.TAPE * q.shape[1]))

    def _replayed(
        self, q0: Array, v0: Array, when: Integers, scheme: tuple[Array, ...], h: float, tape: Array
    ) -> Segment:
        steps, stages = when.shape
        q, v, a = (np.empty((steps + more, *self.to_q.shape)) for more in (1, 1, 0))
        part = Segment(q, v, a, when, scheme, h, tape)
        q[0], v[0] = q0, v0
        slots = kernels.replay_slots(q0.shape[1], stages)
        given = (self._todo.tau, part.when, *self._todo.loads, tuple(part.scheme), part.h, part.a, part.tape)

        def some(first: int, last: int, start: int, stop: int) -> None:
            kernels.replay(self._constants, part.q, part.v, *given, scratch(slots), first, last, start, stop)

        self._walk(kernels.replay, some, steps, stages)
        return part

    def reverse(self, part: Segment, by_q: Array, by_v: Array, by_a: Array) -> Array:
        """Back to the start of a segment, given what J has of each step explicitly, (steps, states, n) each.

        Returns ∂J with respect to a torque added during each step, (steps, states, n), without what is explicit in the
        torques.
        """
        steps, stages = part.when.shape
        push = np.empty_like(part.a)
        slots = kernels.reverse_slots(self.to_q.shape[1], stages)
        given = (part.tape, *self._todo.loads, tuple(part.scheme), part.h, by_q, by_v, by_a, push)
        gathered = self.to_q, self.to_v, self._sums

        def some(first: int, last: int, start: int, stop: int) -> None:
            behind = steps - last, steps - first
            kernels.reverse(self._constants, part.q, part.v, *given, *gathered, scratch(slots), *behind, start, stop)

        self._walk(kernels.reverse, some, steps, stages)
        return push

    def by_constants(self) -> Array:
        """∂J with respect to all constants of the mechanism, (states, columns of ``rnea_reverse.py``)."""
        by_state: Array = -self._sums.transpose(0, 2, 1).reshape(-1, self._sums.shape[1])
        return by_state[: len(self.to_q)]

    def _slots(self, count: int) -> Array:
        """So many slots for each block of lanes, (blocks, count, W)."""
        blocks = -(-len(self._todo.q0) // WIDTH)
        return aligned(blocks * count).reshape(blocks, count, WIDTH)

    def _walk(self, kernel: Any, some: Part, steps: int, stages: int) -> None:
        """All states through all steps, some of both at a time."""
        count, n = self.to_q.shape
        each = n * stages  # joint-states to evaluate in a step of a state
        rows = forward.FIRST // (each * min(steps, 100))
        call = Call(1, count, rows, workers_for(count * each * steps))

        def part(_: int, start: int, stop: int) -> None:
            step, many = 0, max(forward.FIRST // ((stop - start) * each), 1)
            while step < steps and not call.cancelled:
                end = min(step + many, steps)
                began = perf_counter()
                some(step, end, start, stop)
                many = max(int(many * min(PART / max(perf_counter() - began, 1e-6), 4.0)), 1)
                step = end

        call.run(part, alone_first=not compiled(kernel))
