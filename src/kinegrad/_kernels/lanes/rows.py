"""Which rows of an array the lanes take, and where in memory these are.

    r                    the rows r … r+W−1, clamped to the last one
    Rows(first, step)    the rows first, first + step, …, clamped (``stream.py`` says what for)
    Whole(first)         the rows first … first+W−1, all of which are there, or one row for all states

Clamping is what lets an incomplete last block repeat the last state in its idle lanes and write the same bits again,
and an array of one row be the same for all states: no masks, no copies.  It takes five instructions for each lane and
array, and the compiler moves them in front of the loop over the columns, where they are wasted if the loop is short, or
if the branch that uses them is never taken.  Whole rows follow one another, or are one row, whose step is zero; and
``here`` keeps what is computed from a row number in its place.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from kinegrad._kernels.compiler.standin import INT, Number, as_type, check, tracer
from kinegrad._kernels.compiler.trace import operation
from kinegrad._kernels.compiler.width import lane_count


class Rows(NamedTuple):
    """The rows first, first + step, …: one for each lane."""

    first: Any
    step: Any


class Whole(NamedTuple):
    """The rows first … first+W−1 of an array that has them all, or has one for all states."""

    first: Any


def lanes():
    """The numbers of the lanes: 0 … W−1."""
    return tuple(range(lane_count()))


def first_and_step(r):
    """Of Rows, or of a row that others follow."""
    if isinstance(r, Whole):
        return r.first, 1
    return r if isinstance(r, Rows) else (r, 1)


def row_numbers(x, r):
    """The rows of each lane in an array x, clamped (plain Python)."""
    first, step = first_and_step(r)
    return np.minimum(first + step * np.arange(lane_count()), len(x) - 1)


def elements(x, r, k, count=1):
    """Pointers to column k, of which `count` are used, of the W rows r of a C-contiguous array."""
    rows, columns = x.shape
    find = _whole if isinstance(r, Whole) else _clamped
    for w, (row, pointer) in enumerate(find(x, *(as_type(y, types.int64) for y in first_and_step(r)), k)):
        if tracer().context.enable_boundscheck:
            check(row, rows)
            for end in {0, count - 1} if w == 0 else ():
                check(k + end, columns)
        yield pointer


def _clamped(x, first, step, k):
    """The row of each lane, and the pointer to its column k."""
    builder, (rows, columns) = tracer().builder, x.shape
    last = as_type(rows - 1, types.int64)
    for w in lanes():
        row = builder.add(first, builder.mul(step, INT(w)))
        row = Number(types.int64, builder.select(builder.icmp_signed("<", row, last), row, last))
        yield row, builder.gep(x.data, [as_type(row * columns + k, types.int64)])


def _whole(x, first, _, k):
    """The same of rows that are all there, or one: each pointer from the first one."""
    builder, (rows, columns) = tracer().builder, x.shape
    one = builder.icmp_signed("==", as_type(rows, types.int64), INT(1))
    first = Number(types.int64, builder.select(one, INT(0), first))
    step = Number(types.int64, builder.select(one, INT(0), INT(1)))
    pointer = builder.gep(x.data, [as_type(first * columns + k, types.int64)])
    for w in lanes():
        yield first + step * w, builder.gep(pointer, [as_type(step * columns * w, types.int64)])


@operation
def here(r):
    """The number r; what is made of it is made where it stands, not in front of the loops around."""
    return r


@here.register(Number)
def _(r):
    same = ir.FunctionType(INT, [INT])  # an empty instruction of which the compiler knows nothing
    return Number(types.int64, tracer().builder.asm(same, "", "=r,0", [as_type(r, types.int64)], side_effect=True))
