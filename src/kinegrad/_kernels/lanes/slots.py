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
from kinegrad._kernels.mechanism import VARIED, first_columns


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


class _PerLane(NamedTuple):
    row: Any

    def __call__(self, what, x):
        return PerLane(x, VARIED[what].columns, self.row)


@inline
def per_lane(m, r):
    """A mechanism whose constants are (rows, n·k), one row for each state from r on."""
    return m.with_varied(_PerLane(r))


@inline
def _copy(x, rows, columns, scratch, first):
    for i in range(rows):
        for j in range(columns):
            store(scratch, first + i * columns + j, x[i, j])
    return Slots(scratch, first, columns)


class _Keep(NamedTuple):
    joints: Any
    places: Any
    scratch: Any
    first: Any

    def __call__(self, what, x):
        said = VARIED[what]
        rows = self.joints if said.each_joint else 1
        return _copy(x, rows, said.columns, self.scratch, self.first + getattr(self.places, what))


@inline
def keep(m, scratch, first):
    """The mechanism m with its constants in the slots from `first` on, as many as ``varied_numbers`` says."""
    n = len(m.parent)
    return m.with_varied(_Keep(n, first_columns(n), scratch, first))
