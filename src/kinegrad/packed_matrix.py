"""Matrices of which topology makes many entries zero, without those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.results import Result

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from kinegrad.model import Model

__all__ = ["PackedMatrix"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PackedMatrix(Result):
    """The entries of n×n matrices that topology does not make zero.

    Those of a model are at ``model.pattern``, a tuple of rows and columns; ``len(model.pattern[0])`` is how many.

    Attributes
    ----------
    values : ndarray, shape (..., k)
        One row of k entries for each state, in row-major order of the matrix.
    rows, cols : ndarray of int, shape (k,)
        Where they belong.
    n : int
        Size of the matrix.

    Examples
    --------
    >>> packed = PackedMatrix(np.array([1.0, 2.0]), np.array([0, 1]), np.array([0, 1]), 2)
    >>> packed.to_dense()
    array([[1., 0.],
           [0., 2.]])
    """

    values: Array
    rows: NDArray[np.int64]
    cols: NDArray[np.int64]
    n: int

    def to_dense(self) -> Array:
        """Full matrices, shape (..., n, n)."""
        dense = np.zeros((*self.values.shape[:-1], self.n, self.n))
        dense[..., self.rows, self.cols] = self.values
        return dense

    def to_sparse(self, k: int | tuple[int, ...] = ()) -> csr_array:
        """The matrix of state k (an index into the batch) as a SciPy sparse array."""
        from scipy.sparse import csr_array  # here, because it takes longer to import than all of kinegrad

        try:
            values = self.values[k]
        except (IndexError, TypeError):
            raise InputError(
                f"`k` is {shown(k)}; expected an index into batch shape {self.values.shape[:-1]}"
            ) from None
        if values.ndim != 1:
            raise InputError(
                f"`k` is {shown(k)}, which leaves a batch of shape {values.shape[:-1]}; expected one state"
            )
        return csr_array((values, (self.rows, self.cols)), shape=(self.n, self.n))


def given_arrays(out: Any, kind: type[Result], model: Model) -> dict[str, Any]:
    """The arrays of `out`, to be filled; packed ones must have the places of the model's entries."""
    if not isinstance(out, kind):
        raise InputError(f"`out` is a {type(out).__name__}; expected an {kind.__name__} of arrays")
    arrays = {}
    for name, x in vars(out).items():
        if x is None:  # which elsewhere asks for a new array
            raise InputError(f"`out.{name}` is None; expected an array to fill")
        if isinstance(x, PackedMatrix):
            engine.check_model(model)
            rows, cols = model.pattern
            if not (x.n == model.nv and _same(x.rows, rows) and _same(x.cols, cols)):
                raise InputError(
                    f"`out.{name}` has its entries in other places than those of model {model.name!r}; "
                    "expected a result of this model, or of one with the same joints on each path"
                )
            x = x.values
        arrays[name] = x
    return arrays


def _same(x: NDArray[np.int64], y: NDArray[np.int64]) -> bool:
    return x is y or np.array_equal(x, y)
