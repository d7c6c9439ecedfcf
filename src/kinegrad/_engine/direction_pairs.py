"""Kernels of hyper-duals, along all pairs of directions: second derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.gate import Batch, kernel_array
from kinegrad._engine.kernel_constants import flags_if_varied, mechanism
from kinegrad._engine.pool import Call
from kinegrad._engine.signature import Kernel, Shape
from kinegrad._engine.threads import FIRST, aligned, compiled, workers_asked
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.dual import Pair
from kinegrad._kernels.lanes.hyper import Change, HyperPair

__all__ = ["Curved", "run_pairs"]

Array = NDArray[np.float64]


class Curved(NamedTuple):
    """Rows, (states or 1, columns), or None where kernels have them; their slopes, (p, columns), and second slopes,
    (p, p, columns)."""

    rows: Array | None
    slopes: Array
    second: Array


def run_pairs(
    kernel: Kernel,
    batch: Batch,
    slopes: tuple[Array, ...],
    second: tuple[Array, ...],
    state: Sequence[Array],
    fixed: Sequence[Any],
    threads: int | None,
    points: Shape | None = None,
) -> list[Array]:
    """Second derivatives of what a kernel of hyper-duals finds, (states, p, p, columns) each.

    `slopes`, (p, n·k), and `second`, (p, p, n·k), are those of the constants; `state` are rows, (states or 1, columns);
    `fixed` are :class:`Curved` rows, or tables, which kernels get as they are.
    """
    p, model, count = len(slopes[0]), batch.model, batch.states
    both = tuple(np.concatenate([x, y.reshape(p * p, -1)]) for x, y in zip(slopes, second, strict=True))
    constants = flags_if_varied(mechanism(model), both)
    columns, (_, slots) = list(map(math.prod, kernel.cores(model, points))), kernel.needs(model)
    results = [np.zeros((count, p, p, width)) for width in columns]
    which = [(j, k) for j in range(p) for k in range(j + 1)]
    rows = [kernel_array(x) for x in state]
    call = Call(len(which), count, max(FIRST // (16 * model.n**2), WIDTH), workers_asked(threads, count * model.n))

    def part(line: int, start: int, stop: int) -> None:
        j, k = which[line]
        changes = (_pair(x, y, j, k) for x, y in zip(slopes, second, strict=True))
        dm = tuple(tuple(map(kernel_array, each)) for each in zip(*changes, strict=True))
        own = [_part(x, start, stop) for x in rows]
        rest = [_along(x, j, k, start, stop) if isinstance(x, Curved) else x for x in fixed]
        filled = [_hyper(stop - start, width) for width in columns]
        kernel.function(constants, dm, *own, *rest, *filled, _scratch(slots), 0, stop - start)
        for result, found in zip(results, filled, strict=True):
            result[start:stop, j, k] = result[start:stop, k, j] = found.slope.slope

    call.run(part, alone_first=not compiled(kernel.function))
    return results


def _pair(slopes: Array, second: Array, j: int, k: int) -> Change:
    """Of one set of constants, one row each."""
    return Change(slopes[j : j + 1], slopes[k : k + 1], second[j, k][None])


def _part(rows: Array, start: int, stop: int) -> Array:
    """Rows of some of the states; one row, or none, serves all."""
    return rows[start:stop] if len(rows) > 1 else rows


def _along(x: Curved, j: int, k: int, start: int, stop: int) -> Change | HyperPair:
    change = Change(*map(kernel_array, _pair(x.slopes, x.second, j, k)))
    if x.rows is None:
        return change
    own = kernel_array(_part(x.rows, start, stop))
    return HyperPair(Pair(own, change.first), Pair(change.second, change.both))


def _hyper(rows: int, width: int) -> HyperPair:
    zeros = [np.zeros((rows, width)) for _ in range(4)]
    return HyperPair(Pair(*zeros[:2]), Pair(*zeros[2:]))


def _scratch(slots: int) -> HyperPair:
    parts = [aligned(slots) for _ in range(4)]
    return HyperPair(Pair(*parts[:2]), Pair(*parts[2:]))
