"""Lane values kept in slots of scratch, in the place of a state's array or of a mechanism's constants.

What a kernel uses at every step is copied once, so that a vector load takes the place of W loads from W rows far
apart.  Lanes may then differ in their constants: each has a mechanism of its own.

    Slots      (scratch, first, columns): gather, scatter of column k is slot first + k, whatever the rows;
               [i, j] of constants (n, columns) is slot first + i·columns + j
    PerLane    constants (n, columns) that differ from row to row, (rows, n·columns), from the current row on
    keep       copies constants that give lane values (PerLane, or the Varied of dual.py) to slots

The scratch is an array (slots, W), or the Pair of arrays of ``dual.py``.
"""

from typing import Any, NamedTuple

from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.lanes.lane import gather, load, scatter, store
from kinegrad._kernels.mechanism import Mechanism

CONSTANTS = 40  # slots per joint of a mechanism's constants; three more for gravity


class Slots(NamedTuple):
    """Slots first, first + 1, … of scratch, as the columns of a state or as constants (n, columns)."""

    scratch: Any
    first: Any
    columns: Any

    def __getitem__(self, where):
        return load(self.scratch, self.first + where[0] * self.columns + where[1])


class PerLane(NamedTuple):
    """Constants (n, columns), one row for each lane from `row` on."""

    value: Any
    columns: Any
    row: Any

    def __getitem__(self, where):
        return gather(self.value, self.row, where[0] * self.columns + where[1])


@gather.register(Slots)
def _(x, r, k):
    return load(x.scratch, x.first + k)


@scatter.register(Slots)
def _(x, r, k, u):
    store(x.scratch, x.first + k, u)


@inline
def per_lane(m, r):
    """A mechanism whose constants are (rows, n·k), one row for each state from r on."""
    return Mechanism(
        m.parent,
        PerLane(m.rate, 2, r),
        PerLane(m.X, 12, r),
        PerLane(m.F, 12, r),
        m.P,
        PerLane(m.inertia, 10, r),
        m.J,
        m.massive,
        PerLane(m.passive, 4, r),
        PerLane(m.gravity, 3, r),
        m.apart,
    )


@inline
def _copy(x, rows, columns, scratch, first):
    for i in range(rows):
        for j in range(columns):
            store(scratch, first + i * columns + j, x[i, j])
    return Slots(scratch, first, columns)


@inline
def keep(m, scratch, first):
    """The mechanism m with its constants in the 40 n + 3 slots from `first` on."""
    n = len(m.parent)
    return Mechanism(
        m.parent,
        _copy(m.rate, n, 2, scratch, first),
        _copy(m.X, n, 12, scratch, first + 2 * n),
        _copy(m.F, n, 12, scratch, first + 14 * n),
        m.P,
        _copy(m.inertia, n, 10, scratch, first + 26 * n),
        m.J,
        m.massive,
        _copy(m.passive, n, 4, scratch, first + 36 * n),
        _copy(m.gravity, 1, 3, scratch, first + 40 * n),
        m.apart,
    )
