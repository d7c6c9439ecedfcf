"""Slopes of torques and accelerations along many directions, on threads: values are shared by up to 64 directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.gate import Batch, kernel_array
from kinegrad._engine.pool import Call
from kinegrad._engine.threads import compiled, first_rows, scratch, workers_asked
from kinegrad._kernels import design_tangent as kernels
from kinegrad._kernels.mechanism import Mechanism
from kinegrad._kernels.tangent import Slopes
from kinegrad.errors import SingularError

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
_TOGETHER = 64  # directions that share values: many, yet few enough for Ctrl-C


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
    pulled : ndarray of bool, shape (directions,)
        Whether gravity changes.
    """

    constants: tuple[Any, ...]
    slopes: tuple[Array, ...]
    loads: tuple[Array, ...] | None
    what: Integers
    pulled: NDArray[np.bool_]


def directions(
    constants: tuple[Any, ...], slopes: tuple[Array, ...], loads: tuple[Array, ...] | None, n: int
) -> Directions:
    """Directions of which the slopes are these."""
    dm = Slopes(*slopes)
    count = len(dm.rate)
    flags = {kernels.GEOMETRY: (dm.rate, dm.X), kernels.TIP: (dm.F,), kernels.INERTIA: (dm.inertia,),
             kernels.PASSIVE: (dm.passive,)}  # fmt: skip
    what = np.zeros((count, n), dtype=np.int64)
    for flag, parts in flags.items():
        for x in parts:
            what |= flag * x.reshape(count, n, -1).any(axis=2)
    for i, parent in enumerate(Mechanism(*constants).parent):
        inboard = what[:, parent] & kernels.MOVES if parent >= 0 else 0
        what[:, i] |= np.where(what[:, i] & kernels.GEOMETRY, kernels.MOVES, inboard)
    moving = None if loads is None else tuple(map(kernel_array, loads))
    return Directions(constants, tuple(map(kernel_array, slopes)), moving, what, dm.gravity.any(axis=1))


def run_tangents(
    kernel: Callable[..., bool],
    batch: Batch,
    along: Directions,
    state: Sequence[tuple[Array, Array | None]],
    loads: Sequence[Array],
    threads: int | None,
) -> Array:
    """Slopes of what a kernel of ``_kernels/design_tangent.py`` finds, (states, directions, n).

    `state` pairs values, (states, n), with slopes, (states, directions, n) or None for zero; loads are force, point and
    torque, (states or 1, 3 n) or (0, 3 n).  Lanes run over states or over directions, whichever there are more of.
    """
    count, total, n = batch.states, len(along.what), batch.n
    over_states = count >= total
    values = [kernel_array(x) for x, _ in state]
    none = np.zeros((1, 1, n))
    no_loads = (np.zeros((1, 1, 3 * n)),) * 3
    what, given = along.what, [dx is not None for _, dx in state]
    if kernel is kernels.inverse_dynamics:  # where accelerations are given, and with them that of the world
        what = what | kernels.MOVES * (along.pulled | given[2])[:, None]
    if given[0] or given[1]:
        what = what | kernels.MOVES
    workers = workers_asked(threads, count * total * n)
    singular = False

    def call_kernel(
        rows: Sequence[Array], pushed: Sequence[Array], flags: Integers,
        layers: Callable[[Array], Array], changes: Sequence[Array], filled: Array, start: int, stop: int,
    ) -> None:  # fmt: skip
        nonlocal singular
        dm = tuple(map(layers, along.slopes))
        dloads = no_loads if along.loads is None else tuple(map(layers, along.loads))
        space = scratch(kernels.slots(n))
        arguments = (dm, flags, *rows, *changes, *pushed, *dloads, filled, space, start, stop)
        if not kernel(along.constants, *arguments):
            singular = True
            call.stop()

    if over_states:
        results = np.empty((total, count, n))
        slopes = [none if dx is None else np.ascontiguousarray(dx.swapaxes(0, 1)) for _, dx in state]
        groups = -(-total // _TOGETHER)
        call = Call(groups, count, first_rows(n * (2 + min(total, _TOGETHER))), workers)

        def part(group: int, start: int, stop: int) -> None:
            some = slice(group * _TOGETHER, (group + 1) * _TOGETHER)
            changes = [dx if dx is none else dx[some] for dx in slopes]
            call_kernel(
                values, loads, what[some], lambda x: x[some, None], changes, results[some], start, stop
            )

    else:
        results = np.empty((count, total, n))
        any_what = np.bitwise_or.reduce(what, axis=0)[None]
        call = Call(count, total, first_rows(3 * n), workers)

        def part(row: int, start: int, stop: int) -> None:
            one = slice(row, row + 1)
            pushed = [x[one] if len(x) == count else x for x in loads]
            changes = [none if dx is None else kernel_array(dx[one]) for _, dx in state]
            call_kernel(
                [x[one] for x in values], pushed, any_what, lambda x: x[None], changes, results[one], start, stop
            )

    call.run(part, alone_first=not compiled(kernel))
    if singular:
        raise SingularError(f"nothing resists one of the joints of model {batch.model.name!r}; see forward_dynamics")
    return results.swapaxes(0, 1) if over_states else results
