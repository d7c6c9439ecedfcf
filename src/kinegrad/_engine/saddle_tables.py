"""The structure of constrained systems as the kernels of ``saddle.py`` want it: tables of whole numbers, made once for
a set of constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.tables import block_kinds, pairs, places, plan, tree
from kinegrad._kernels import constrained, constrained_derivatives
from kinegrad._kernels.constraint_rows import END, FIRST, LAST, LINK, OTHER, OWN
from kinegrad._kernels.tree_solve import PANEL
from kinegrad.model import Model

__all__ = ["SaddleTables"]

Integers = NDArray[np.int64]


class SaddleTables:
    """Tables of a model with the rows of constraints, (pair, ends, kind, vector, path, joint, ratio) as kernels take
    them.

    Attributes
    ----------
    rows : tuple of ndarray
        As given.
    m : int
        How many rows there are.
    """

    def __init__(self, model: Model, rows: tuple[Any, ...]) -> None:
        self.rows, self.m = tuple(rows), len(rows[2])
        self._model, self._known = model, dict[Any, Any]()
        self._on_path = _on_path(model, self.rows, self.m)

    def solution(self, loaded: bool) -> tuple[tuple[Any, ...], int]:
        """The argument `tables` of the kernels of ``constrained.py``, with or without loads, and how many slots they
        need."""
        key = "solution", loaded
        if key not in self._known:
            model, on_path = self._model, self._on_path
            begin, joints = _packed(on_path.T)
            over, rows = _packed(on_path)
            given = (plan(model, loaded), tree(model), (begin, joints, over, rows), _panels(on_path))
            self._known[key] = given, constrained.slots(model.n, self.m, pairs(model))
        found: tuple[tuple[Any, ...], int] = self._known[key]
        return found

    def derivatives(self, loaded: bool) -> tuple[tuple[Any, ...], int]:
        """The argument `tables_of_derivatives` of the kernels of ``constrained_derivatives.py``, and how many slots
        they need."""
        key = "derivatives", loaded
        if key not in self._known:
            model, n = self._model, self._model.n
            wide = -(-n // PANEL) * PANEL
            place = places(model, "dense")[0]
            pattern = np.zeros((n, n), dtype=bool)
            pattern[model.topology.pattern.rows, model.topology.pattern.cols] = True
            blank = np.ones((n, wide), dtype=bool)
            blank[:, :n] = ~pattern
            where = _slots_of(n, n, wide)
            given = (
                plan(model, loaded), place // n * wide + place % n, _panels(pattern | self._bent()), _panels(pattern),
                np.flatnonzero(blank), where, _slots_of(self.m, n, wide), block_kinds(where),
            )  # fmt: skip
            _, solution = self.solution(loaded)
            self._known[key] = given, constrained_derivatives.slots(n, self.m, pairs(model), solution)
        found: tuple[tuple[Any, ...], int] = self._known[key]
        return found

    def _bent(self) -> NDArray[np.bool_]:
        """Where Σ f ∂²φ/∂q² may have entries, (n, n)."""
        pair, path = self.rows[0], self.rows[4]
        found = np.zeros((self._model.n,) * 2, dtype=bool)
        for row in pair:
            joints = path[row[OWN] : row[END]]
            found[np.ix_(joints, joints)] = True
        for j in range(self._model.n - 1, -1, -1):  # L⁻ᵀ carries entries to all rows above
            if self._model.parents[j] >= 0:
                found[self._model.parents[j]] |= found[j]
        return found


def _on_path(model: Model, rows: tuple[Any, ...], m: int) -> NDArray[np.bool_]:
    """Whether joint k is on the path of each row, (n, m): one of the links or joints it is about, or above them."""
    pair, joint = rows[0], rows[5]
    found = np.zeros((model.n, m), dtype=bool)
    ends = [(k, (row[LINK], row[OTHER])) for row in pair for k in range(row[FIRST], row[LAST])]
    for k, joints in [*ends, *((k, both) for k, *both in joint)]:
        for j in joints:
            if j >= 0:
                found[[j, *model.topology.ancestors(int(j))], k] = True
    return found


def _packed(flags: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """Where the columns of each row begin, and the columns that are set, one row after the other."""
    begin = np.concatenate([[0], np.cumsum(flags.sum(axis=1))]).astype(np.int64)
    return begin, np.nonzero(flags)[1].astype(np.int64)


def _panels(flags: NDArray[np.bool_]) -> Integers:
    """Whether any column of each panel is set, (rows, panels)."""
    columns = flags.shape[1]
    padded = np.zeros((len(flags), -(-columns // PANEL) * PANEL), dtype=bool)
    padded[:, :columns] = flags
    return np.asarray(padded.reshape(len(flags), -1, PANEL).any(axis=2), dtype=np.int64)


def _slots_of(rows: int, columns: int, wide: int) -> Integers:
    """Where columns of results are that are rows of slots, `wide` apart: slots after the first."""
    slots = np.add.outer(np.arange(rows) * wide, np.arange(columns))
    return np.asarray(slots, dtype=np.int64).ravel()
