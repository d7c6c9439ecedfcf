"""Second derivatives of accelerations, and of forces of constraints, from those of inverse dynamics and of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.elements import check_sums
from kinegrad._engine.gate import kernel_array
from kinegrad._engine.pool import Call
from kinegrad._engine.tables import once
from kinegrad._engine.threads import compiled, first_rows, scratch, workers_asked
from kinegrad._kernels import implicit_hessian as kernels
from kinegrad.model import Model

__all__ = ["solved_hessian"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def solved_hessian(
    model: Model, second: Sequence[Array], first: Sequence[Array], threads: int | None, *, full: bool = False
) -> tuple[Array, ...]:
    """(1) of ``_kernels/implicit_hessian.py``: blocks qq, qv, qτ, vv, (..., n, n) each.

    `second` are ℒ_qq, ℒ_qv, ℒ_qz, ℒ_vv, (..., n, n or k), and `first` those of z with respect to q, v, τ, (..., k, n).
    Where z is a and ℒ_qz is zero by the pattern of the model, it is not looked at; unless it is `full`.
    """
    n, k, shape = model.nv, first[0].shape[-2], second[0].shape[:-2]
    count = math.prod(shape)
    given = [_rows(x, shape, count) for x in (*second, *first)]
    found = [np.empty((count, n * n)) for _ in range(4)]
    arguments, slots = (_columns(model, k, full), *given, *found), kernels.slots(n, k)
    work = k * n
    call = Call(1, count, first_rows(work), workers_asked(threads, count * work))

    def part(_: int, start: int, stop: int) -> None:
        kernels.implicit_hessian(*arguments, scratch(slots), start, stop)

    call.run(part, alone_first=not compiled(kernels.implicit_hessian))
    check_sums(*found)
    return tuple(x.reshape(*shape, n, n) for x in found)


def _rows(x: Array, shape: tuple[int, ...], count: int) -> Array:
    """A matrix for each state, as kernels take it: a row of numbers for each, or one for all."""
    own, columns = x.shape[:-2], x.shape[-2] * x.shape[-1]
    if own != shape and math.prod(own) != 1:
        x = np.broadcast_to(x, (*shape, *x.shape[-2:]))
    return kernel_array(x.reshape(-1 if x.size else count, columns))


def _columns(model: Model, k: int, full: bool) -> tuple[Integers, Integers]:
    """Where rows of ℒ_qz may be other than zero: begin, (n + 1,), and columns."""

    def make() -> tuple[Integers, Integers]:
        by_row: list[list[int]] = [[] for _ in range(model.nv)]
        for row, column in zip(*model.pattern, strict=True):
            by_row[row].append(int(column))
        whole = [list(range(k)) if full else sorted(columns) for columns in by_row]
        begin = np.cumsum([0, *map(len, whole)]).astype(np.int64)
        return begin, np.array([c for columns in whole for c in columns], dtype=np.int64)

    found: tuple[Integers, Integers] = once(model, ("columns of z", k, full), make)
    return found
