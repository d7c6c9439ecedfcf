"""The rows that lanes take: whole ones, of which none is clamped, are read and written as all others are."""

import numba
import numpy as np
import pytest

from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.lane import fetch, gather, scatter, store, unload
from kinegrad._kernels.lanes.rows import Whole, here

RNG = np.random.default_rng(2)
COLUMNS = (1, max(1, WIDTH - 1), WIDTH, WIDTH + 1, 3 * WIDTH + 1)


def plain(function):
    """The same source without Numba."""
    return getattr(function, "py_func", function)


@numba.njit
def read(x, r, k, count, scratch):
    store(scratch, 0, gather(x, Whole(r), k))
    store(scratch, 1, fetch(x, Whole(here(r)), k, count, scratch, 2))


@numba.njit
def write(x, y, r, scratch):
    scatter(x, Whole(r), 0, gather(x, r, 0))  # what it has
    unload(x, Whole(r), scratch, 1)
    unload(y, here(r), scratch, 1)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("rows", [1, WIDTH, 2 * WIDTH + 3])
def test_whole_rows_are_read_as_others_are(rows, columns):
    """One row is the same for all states, whatever their number."""
    x, count = RNG.normal(size=(rows, columns)), min(columns, WIDTH)
    for r in (0, 7, 100) if rows == 1 else range(rows - WIDTH + 1):
        for k in (0, columns - count):
            seen = x[np.minimum(r + np.arange(WIDTH), rows - 1), k : k + count].T
            for function in (read, plain(read)):
                scratch = np.zeros((WIDTH + 3, WIDTH))
                function(x, r, k, count, scratch)
                np.testing.assert_array_equal(scratch[0], seen[0])
                np.testing.assert_array_equal(scratch[2 : 2 + count], seen)
                np.testing.assert_allclose(scratch[1], (seen**2).sum(axis=0), rtol=1e-15)
                assert not scratch[2 + count :].any()


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("rows", [WIDTH, 2 * WIDTH + 3])
def test_whole_rows_are_written_as_others_are(rows, columns):
    for r in range(rows - WIDTH + 1):
        scratch = RNG.normal(size=(columns + 1, WIDTH))
        for function in (write, plain(write)):
            x, y = np.zeros((2, rows, columns))
            function(x, y, r, scratch)
            np.testing.assert_array_equal(x[r : r + WIDTH], scratch[1:].T)
            np.testing.assert_array_equal(x, y)


@numba.njit
def told(start, stop):
    total = 0
    for r in range(start, stop):
        total += here(r) * here(stop)
    return total


def test_a_number_is_the_same_here():
    assert told(3, 11) == plain(told)(3, 11) == 11 * sum(range(3, 11))
