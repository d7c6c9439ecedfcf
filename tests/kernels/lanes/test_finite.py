"""The question whether numbers are finite, at every place of arrays of all sizes around the width of registers."""

import itertools

import numpy as np
import pytest

from kinegrad._kernels.compiler.jit import kernel
from kinegrad._kernels.lanes.finite import FINE, LARGE, NOT_FINITE, finite

STATUS = {np.nan: NOT_FINITE, np.inf: NOT_FINITE, -np.inf: NOT_FINITE, 1e13: LARGE, -1.7e308: LARGE, 5e-324: FINE}


@kernel
def both_finite(x, y, start, stop):
    return finite((x, y), start, stop)


@pytest.mark.parametrize("columns", [0, 1, 3, 8, 13])
@pytest.mark.parametrize("rows", [1, 2, 5, 9])
def test_every_place(rows, columns):
    """Of all states or some; the second argument has a row for each state, or one for all, or none at all."""
    for others, (start, stop) in itertools.product((rows, 1, 0), ((0, rows), (rows // 2, rows), (0, (rows + 1) // 2))):
        x, y = np.ones((rows, columns)), np.ones((others, columns + 1))
        assert both_finite(x, y, start, stop) == FINE
        for array in (x, y):
            for place in np.ndindex(array.shape):
                seen = start <= place[0] < stop or (array is y and others == 1)
                for value, status in STATUS.items():
                    array[place] = value
                    assert both_finite(x, y, start, stop) == (status if seen else FINE)
                array[place] = 1.0


def test_what_is_not_finite_is_found_beside_what_is_large():
    x = np.full((5, 3), 1e300)
    assert both_finite(x, x, 0, 5) == LARGE
    x[0, 0], x[4, 2] = np.inf, -np.inf  # whose sum is no number, and whose squares are one
    assert both_finite(x, x, 0, 5) == NOT_FINITE
