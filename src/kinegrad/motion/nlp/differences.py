"""Gradient and Jacobian by differences, to compare exact ones with.

In scaled variables, with ε the rounding of a float64:

    forward    (f(x + h) − f(x)) / h,                  h = √ε max(1, |x|)
    central    (f(x + h) − f(x − h)) / 2h,             h = ∛ε max(1, |x|)
               (−3 f(x) + 4 f(x + h) − f(x + 2h)) / 2h,    where x − h is outside the bounds; mirrored, where x + h is

Steps never leave the bounds, where a program may not be defined, unless these are narrower than the steps.  Columns of
the Jacobian without a common row are moved together [curtis1974], so that a sparse one takes few
evaluations; the gradient of the objective takes one or two for every variable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Differences", "column_groups"]

Array = NDArray[np.float64]


class Differences:
    """Differences of the values of a scaled program."""

    def __init__(self, scaled: Any, scheme: str) -> None:
        self.scaled, self.central = scaled, scheme == "central"
        self.relative = np.finfo(float).eps ** (1 / 3 if self.central else 1 / 2)
        rows, columns = scaled.jacobian_pattern
        self.groups = column_groups(rows, columns, scaled.m, scaled.n)

    def gradient(self, x: Array) -> Array:
        """∇f̂."""
        value, (h, one_sided) = self.scaled.objective(x), self._steps(x)
        function = self.scaled.fresh_objective
        changes = [self._change(x, j, h, one_sided[j], value, function) for j in range(len(x))]
        return np.array(changes) / h

    def jacobian(self, x: Array) -> Array:
        """Ĵ, the values of its pattern."""
        rows, columns = self.scaled.jacobian_pattern
        base, (h, one_sided) = self.scaled.constraints(x), self._steps(x)
        values, function = np.empty(len(rows)), self.scaled.fresh_constraints
        for group, entries in self.groups:
            for which in (False, True):  # columns of a group that need the other formula are moved by themselves
                some, own = group[one_sided[group] == which], entries[one_sided[columns[entries]] == which]
                if len(some):
                    change = self._change(x, some, h, which, base, function)
                    values[own] = change[rows[own]] / h[columns[own]]
        return values

    def _steps(self, x: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Signed steps, and where central differences must be one-sided."""
        h = self.relative * np.maximum(1.0, np.abs(x))
        above, below = self.scaled.upper - x, x - self.scaled.lower
        one_sided = np.minimum(above, below) < h if self.central else np.zeros(len(x), dtype=bool)
        down = (above < (2 * h if self.central else h)) & (below > above) & (one_sided | (not self.central))
        return (x + np.where(down, -h, h)) - x, one_sided  # what is added in floating point

    def _change(self, x: Array, which: Any, h: Array, one_sided: bool, base: Any, function: Any) -> Any:
        """The slope of a function along some variables, times h."""

        def moved(steps: int) -> Any:
            there = x.copy()
            there[which] += steps * h[which]
            return function(there)

        if not self.central:
            return moved(1) - base
        if one_sided:
            return (4 * moved(1) - 3 * base - moved(2)) / 2
        return (moved(1) - moved(-1)) / 2


def column_groups(rows: Any, columns: Any, m: int, n: int) -> list[tuple[Any, Any]]:
    """Groups of columns no two of which share a row, greedily, and the entries of the pattern in each.

    Examples
    --------
    >>> [list(map(int, group)) for group, _ in column_groups(np.array([0, 1, 1]), np.array([0, 1, 2]), 2, 3)]
    [[0, 1], [2]]
    """
    starts = np.searchsorted(columns, np.arange(n + 1))
    taken: list[NDArray[np.bool_]] = []
    members: list[list[int]] = []
    for j in range(n):
        own = rows[starts[j] : starts[j + 1]]
        if not len(own):
            continue
        k = next((k for k, used in enumerate(taken) if not used[own].any()), len(taken))
        if k == len(taken):
            taken.append(np.zeros(m, dtype=bool))
            members.append([])
        taken[k][own] = True
        members[k].append(j)
    found = []
    for group in members:
        entries = np.concatenate([np.arange(starts[j], starts[j + 1]) for j in group])
        found.append((np.array(group), entries))
    return found
