"""Slopes of torques, accelerations and the mass matrix along many directions, which share values, on threads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.gate import Batch, kernel_array
from kinegrad._engine.kernel_constants import mechanism
from kinegrad._engine.pool import Call
from kinegrad._engine.signature import Kernel, Shape
from kinegrad._engine.threads import NO_JOINT, compiled, first_rows, scratch, scratch_pair, workers_asked
from kinegrad._kernels import aba_tangent, crba_tangent
from kinegrad._kernels import design_tangent as tangent
from kinegrad._kernels.lanes.dual import Pair
from kinegrad._kernels.lanes.finite import FINE, NOT_FINITE
from kinegrad._kernels.mechanism import Mechanism, Slopes

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
_EVERYWHERE = tangent.MOVES | tangent.REACHED
_LIFTED = tangent.RISES | tangent.REACHED
_TOGETHER = 64  # directions that share values: many, yet few enough for Ctrl-C
_MATRICES = 16  # the same where a direction takes slots for each joint: so that they stay in the caches


class Directions(NamedTuple):
    """Directions in the space of a mechanism's constants and of its loads.

    Attributes
    ----------
    constants : tuple
        Of the mechanism, with which kernels skip nothing that varies.
    slopes : tuple of ndarray, shape (directions, n·k) each
    loads : tuple of ndarray, shape (directions, 3 n) each, or None
    what : ndarray of int, shape (directions, n)
        Which constants of each joint vary, and whether its link is displaced: see ``_kernels/design_tangent.py``.
    lifted : ndarray of int, shape (directions, n)
        The same where the accelerations of joints are given, and those of links follow.
    """

    constants: tuple[Any, ...]
    slopes: tuple[Array, ...]
    loads: tuple[Array, ...] | None
    what: Integers
    lifted: Integers


def directions(
    constants: tuple[Any, ...], slopes: tuple[Array, ...], loads: tuple[Array, ...] | None, n: int
) -> Directions:
    """Directions of which the slopes are these."""
    dm = Slopes(*slopes)
    count = len(dm.rate)
    X = dm.X.reshape(count, n, 12)
    flags = {tangent.GEOMETRY: (dm.rate, X[..., :9]), tangent.SHIFT: (X[..., 9:],), tangent.TIP: (dm.F,),
             tangent.INERTIA: (dm.inertia,), tangent.PASSIVE: (dm.passive,)}  # fmt: skip
    what = np.zeros((count, n), dtype=np.int64)
    for flag, parts in flags.items():
        for x in parts:
            what |= flag * x.reshape(count, n, -1).any(axis=2)
    rises = what & (tangent.GEOMETRY | tangent.SHIFT) != 0
    rises |= dm.gravity.any(axis=1)[:, None]
    for i, parent in enumerate(Mechanism(*constants).parent):
        inboard = what[:, parent] & tangent.MOVES if parent >= 0 else 0
        what[:, i] |= np.where(what[:, i] & tangent.GEOMETRY, tangent.MOVES, inboard)
        if parent >= 0:
            rises[:, i] |= rises[:, parent]
    what[what != 0] |= tangent.REACHED
    for x in loads or ():
        what |= tangent.REACHED * x.reshape(count, n, -1).any(axis=2)
    for i, parent in reversed(list(enumerate(Mechanism(*constants).parent))):
        if parent >= 0:
            what[:, parent] |= what[:, i] & tangent.REACHED
    moving = None if loads is None else tuple(map(kernel_array, loads))
    return Directions(constants, tuple(map(kernel_array, slopes)), moving, what, what | _LIFTED * rises)


def run_tangents(
    kernel: Kernel,
    batch: Batch,
    along: Directions,
    state: Sequence[tuple[Array, Array | None]],
    loads: Sequence[Array],
    threads: int | None,
) -> tuple[Array, Array]:
    """What a kernel of ``rnea_tangent.py`` or ``aba_tangent.py`` finds: accelerations, if it solves for them,
    (states, n), and slopes, (states, directions, n).  Raises what it finds of the state that is not finite, and of
    slopes that are not.

    `state` pairs values, (states, n), with slopes, (states, directions, n) or None for zero; loads are force, point and
    torque, (states or 1, 3 n) or (0, 3 n).  Lanes run over states or over directions, whichever there are more of.
    """
    count, total, n = batch.states, len(along.what), batch.n
    over_states = count >= total
    todo = (_Layered if over_states else _Abreast)(kernel.function, along, state, loads)
    _, slots = kernel.needs(batch.model)
    first, workers = first_rows(todo.work), workers_asked(threads, count * total * n)
    at_once = workers == 1 and todo.lines == 1 and 0 < todo.rows <= first  # a fraction of a second
    call = None if at_once else Call(todo.lines, todo.rows, first, workers)
    stuck: list[tuple[int, int]] = []
    doubts: set[int] = set()

    def part(line: int, start: int, stop: int) -> None:
        status = (NO_JOINT.copy(),) if kernel.pivots else ()
        ok = kernel.function(along.constants, *todo.arguments(line), *status, scratch(slots), start, stop)
        if ok != FINE:
            doubts.add(ok)
            if ok == NOT_FINITE and call is not None:
                call.stop()
        if status and status[0][0] >= 0:
            joint, row = status[0].tolist()
            stuck.append((row if over_states else line, joint))
            if call is not None:
                call.stop()

    if call is None:
        part(0, 0, todo.rows)
    else:
        call.run(part, alone_first=not compiled(kernel.function))
    if doubts or stuck:
        batch.check_finite()
    if stuck:
        where, joint = min(stuck)
        raise batch.free_joint(joint, where)
    found = todo.results.swapaxes(0, 1) if over_states else todo.results
    if doubts:
        batch.results = [found]
        batch.check_results()
    return todo.found, found


def run_duals(
    kernel: Kernel,
    batch: Batch,
    state: Sequence[tuple[Array, Array | None]],
    loads: Sequence[Array],
    threads: int | None,
    points: Shape | None = None,
    options: Sequence[Any] = (),
) -> tuple[list[Array], list[Array]]:
    """The results of a kernel of ``_kernels/dual_states.py``, (states, columns) each, and their slopes, (states,
    directions, columns).

    `state` pairs values, (states, n), with slopes, (states, directions, n) or None for zero; loads as of
    :func:`run_tangents`; `options` are what the kernel takes as it is.  A row of lanes is a state along a direction.
    """
    model, count, n = batch.model, batch.states, batch.n
    directions = next(dx.shape[1] for _, dx in state if dx is not None)
    constants, none, columns = mechanism(model), np.zeros((1, n)), list(map(math.prod, kernel.cores(model, points)))
    values = [np.empty((count, width)) for width in columns]
    results = [np.zeros((count, directions, width)) for width in columns]
    _, slots = kernel.needs(model)
    call = Call(1, count, first_rows(4 * n * n * directions), workers_asked(threads, count * directions * n))
    stuck: list[tuple[int, int]] = []

    def part(_: int, start: int, stop: int) -> None:
        some, rows = slice(start, stop), (stop - start) * directions
        pairs = [
            Pair(x[some].repeat(directions, axis=0), none if dx is None else kernel_array(dx[some].reshape(rows, n)))
            for x, dx in state
        ]
        acting = [x[some].repeat(directions, axis=0) if len(x) == count > 1 else x for x in loads]
        filled = [Pair(np.zeros((rows, x.shape[-1])), x[some].reshape(rows, -1)) for x in results]
        status = (NO_JOINT.copy(),) if kernel.pivots else ()
        kernel.function(constants, *pairs, *acting, *options, *filled, *status, scratch_pair(slots), 0, rows)
        if status and status[0][0] >= 0:
            joint, row = status[0].tolist()
            stuck.append((start + row // directions, joint))
            call.stop()
        for value, pair in zip(values, filled, strict=True):
            value[some] = pair.value[::directions]

    call.run(part, alone_first=not compiled(kernel.function))
    if stuck:
        first, joint = min(stuck)
        raise batch.free_joint(joint, first)
    return values, results


def run_mass_tangents(batch: Batch, q: Array, dq: Array, threads: int | None) -> tuple[Array, Array]:
    """M, (states, n·n), at q, (states, n), and its slopes, (states, n·n, directions), along dq, (states, directions,
    n).  Lanes run over states or over directions, whichever there are more of."""
    count, total, n = dq.shape
    constants, q, values = mechanism(batch.model), kernel_array(q), np.zeros((count, n * n))
    over_states = count >= total
    layers, lines = (min(total, _MATRICES), -(-total // _MATRICES)) if over_states else (1, count)
    along = kernel_array(dq.swapaxes(0, 1) if over_states else dq)
    results = np.zeros((count, n * n * total))
    call = Call(lines, along.shape[1], first_rows(n * n * layers), workers_asked(threads, count * total * n))

    def part(line: int, start: int, stop: int) -> None:
        some = slice(line * layers, (line + 1) * layers)
        if over_states:
            given, filled = (q, along[some], values), (results, total, some.start)
        else:  # values are the same bits from each group of directions
            given, filled = (q[some], along[some], values[some]), (np.zeros((total, n * n)), 1, 0)
        memory = scratch(crba_tangent.slots(n, layers))
        crba_tangent.crba_tangent(constants, *given, *filled, memory, start, stop)
        if not over_states:
            results[line].reshape(n * n, total)[:, start:stop] = filled[0][start:stop].T

    call.run(part, alone_first=not compiled(crba_tangent.crba_tangent))
    return values, results.reshape(count, n * n, total)


@cache
def _no_slopes(n: int) -> Array:
    """Slopes of what does not follow the parameters."""
    return np.zeros((1, 1, n))


class _Todo:
    """What is common to both ways to arrange states and directions."""

    def __init__(
        self,
        kernel: Any,
        along: Directions,
        state: Sequence[tuple[Array, Array | None]],
        loads: Sequence[Array],
    ) -> None:
        self.along, self.loads = along, loads
        self.values, self.slopes = [kernel_array(x) for x, _ in state], [dx for _, dx in state]
        self.count, self.n = self.values[0].shape
        self.total = len(along.what)
        self.no_slopes, self.no_load_slopes = _no_slopes(self.n), (_no_slopes(3 * self.n),) * 3
        self.solves = kernel is aba_tangent.forward_dynamics
        self.what = along.what if self.solves else along.lifted
        self.found = np.empty((self.count, self.n))
        q_follows, v_follows, last_follows = (dx is not None for dx in self.slopes)  # the last is τ, or a
        if q_follows or v_follows or (last_follows and not self.solves):
            self.what = self.what | _EVERYWHERE
        elif last_follows:
            self.what = self.what | tangent.REACHED


class _Layered(_Todo):
    """Lanes are states, and layers directions."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        together = min(self.total, _TOGETHER)
        self.lines, self.rows, self.work = -(-self.total // _TOGETHER), self.count, self.n * (2 + together)
        self.results = np.empty((self.total, self.count, self.n))
        self.slopes = [None if dx is None else np.ascontiguousarray(dx.swapaxes(0, 1)) for dx in self.slopes]

    def arguments(self, line: int) -> tuple[Any, ...]:
        some = slice(line * _TOGETHER, (line + 1) * _TOGETHER)
        dm = tuple(x[some, None] for x in self.along.slopes)
        changes = (self.no_slopes if dx is None else dx[some] for dx in self.slopes)
        turns = self.along.loads
        dloads = self.no_load_slopes if turns is None else tuple(x[some, None] for x in turns)
        found = (self.found,) if self.solves else ()  # the same bits from each group of directions
        return dm, self.what[some], *self.values, *changes, *self.loads, *dloads, *found, self.results[some]


class _Abreast(_Todo):
    """Lanes are directions of one state, in a single layer."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.lines, self.rows, self.work = self.count, self.total, 3 * self.n
        self.results = np.empty((self.count, self.total, self.n))
        self.what = np.bitwise_or.reduce(self.what, axis=0)[None]

    def arguments(self, line: int) -> tuple[Any, ...]:
        one = slice(line, line + 1)
        dm = tuple(x[None] for x in self.along.slopes)
        values = (x[one] for x in self.values)
        changes = (self.no_slopes if dx is None else kernel_array(dx[one]) for dx in self.slopes)
        loads = (x[one] if len(x) == self.count else x for x in self.loads)
        turns = self.along.loads
        dloads = self.no_load_slopes if turns is None else tuple(x[None] for x in turns)
        found = (self.found[one],) if self.solves else ()
        return dm, self.what, *values, *changes, *loads, *dloads, *found, self.results[one]
