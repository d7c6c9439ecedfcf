"""Lane values: what the compiled operations do is what their plain Python meaning says, bit for bit."""

import math

import numba
import numpy as np
import pytest

from kinegrad._kernels.compiler.width import ALLOWED, WIDTH, choose, detect
from kinegrad._kernels.lanes.lane import (
    fetch,
    gather,
    load,
    pick,
    put,
    root,
    scatter,
    select,
    spread,
    store,
    unload,
    within,
)

RNG = np.random.default_rng(1)


def plain(function):
    """The same source without Numba."""
    return getattr(function, "py_func", function)


@numba.njit(error_model="numpy")
def arithmetic(x, c, k, out):
    u, v = load(x, 0), load(x, 1)
    store(out, 0, u + v)
    store(out, 1, u - v)
    store(out, 2, u * v)
    store(out, 3, u / v)
    store(out, 4, -u)
    store(out, 5, u + c)
    store(out, 6, c + u)
    store(out, 7, u - c)
    store(out, 8, c - u)
    store(out, 9, u * c)
    store(out, 10, c * u)
    store(out, 11, u / c)
    store(out, 12, c / u)
    store(out, 13, u + k)
    store(out, 14, k - u)
    store(out, 15, u * k)
    store(out, 16, k / u)
    store(out, 17, u - 1)
    store(out, 18, c)
    store(out, 19, k)


def run_arithmetic(x, c, k):
    compiled, interpreted = np.empty((20, WIDTH)), np.empty((20, WIDTH))
    with np.errstate(all="ignore"):
        arithmetic(x, c, k, compiled)
        plain(arithmetic)(x, c, k, interpreted)
        u, v = x
        expected = [u + v, u - v, u * v, u / v, -u, u + c, c + u, u - c, c - u, u * c, c * u, u / c, c / u]
        expected += [u + k, k - u, u * k, k / u, u - 1, np.full(WIDTH, c), np.full(WIDTH, float(k))]
    return compiled, interpreted, np.array(expected)


@pytest.mark.parametrize("k", [3, -7, 0, 2**53])
def test_arithmetic_is_that_of_numpy(k):
    compiled, interpreted, expected = run_arithmetic(RNG.normal(size=(2, WIDTH)), 0.37, k)
    np.testing.assert_array_equal(compiled, expected)
    np.testing.assert_array_equal(interpreted, expected)


@pytest.mark.parametrize("c", [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7e308])
def test_arithmetic_of_special_numbers(c):
    x = np.resize([c, 1.0, 0.0, -0.0, math.nan, -math.inf, 1e308, 5e-324], (2, WIDTH))
    x[1] = np.resize([0.0, c, -2.0, math.inf], WIDTH)
    compiled, interpreted, expected = run_arithmetic(x, c, 2)
    np.testing.assert_array_equal(compiled, expected)
    np.testing.assert_array_equal(np.signbit(compiled)[expected == 0], np.signbit(expected)[expected == 0])
    np.testing.assert_array_equal(interpreted, expected)


@numba.njit
def move_row(x, k, y, j):
    store(y, j, load(x, k))


def test_store_and_load_touch_one_row():
    x, y = RNG.normal(size=(5, WIDTH)), np.zeros((4, WIDTH))
    for function in (move_row, plain(move_row)):
        y[:] = 0
        function(x, 3, y, 2)
        np.testing.assert_array_equal(y[2], x[3])
        np.testing.assert_array_equal(y[[0, 1, 3]], 0)


@numba.njit
def overwrite(x):
    u = load(x, 0)
    store(x, 0, u + 1.0)
    store(x, 1, u)


def test_load_is_a_value_not_a_view():
    for function in (overwrite, plain(overwrite)):
        x = np.arange(2.0 * WIDTH).reshape(2, WIDTH)
        function(x)
        np.testing.assert_array_equal(x[1], np.arange(WIDTH))
        np.testing.assert_array_equal(x[0], np.arange(WIDTH) + 1)


@numba.njit
def gather_to(x, r, k, y):
    store(y, 0, gather(x, r, k))


@numba.njit
def scatter_from(y, x, r, k):
    scatter(x, r, k, load(y, 0))


@numba.njit
def scatter_number(x, r, k, c):
    scatter(x, r, k, c)


@pytest.mark.parametrize("rows", [1, 2, WIDTH, WIDTH + 1, 2 * WIDTH + 3])
def test_gather_repeats_the_last_row_past_the_end(rows):
    x, y = RNG.normal(size=(rows, 3)), np.empty((1, WIDTH))
    for r in range(rows):
        for k in range(3):
            expected = [x[min(r + w, rows - 1), k] for w in range(WIDTH)]
            for function in (gather_to, plain(gather_to)):
                y[:] = np.nan
                function(x, r, k, y)
                np.testing.assert_array_equal(y[0], expected)


def test_one_row_is_the_same_for_all_states():
    x, y = RNG.normal(size=(1, 4)), np.empty((1, WIDTH))
    for function in (gather_to, plain(gather_to)):
        function(x, 1000, 2, y)
        np.testing.assert_array_equal(y[0], np.full(WIDTH, x[0, 2]))


@pytest.mark.parametrize("rows", [1, 2, WIDTH, WIDTH + 1, 2 * WIDTH + 3])
def test_scatter_writes_rows_once_and_the_last_with_the_last_lane(rows):
    """Idle lanes repeat the last state in real use; here they differ, which shows the order."""
    y = RNG.normal(size=(1, WIDTH))
    for r in range(rows):
        expected = np.zeros((rows, 3))
        for w in range(WIDTH):
            expected[min(r + w, rows - 1), 1] = y[0, w]
        for function in (scatter_from, plain(scatter_from)):
            x = np.zeros((rows, 3))
            function(y, x, r, 1)
            np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("rows", [1, WIDTH + 1])
def test_scatter_takes_a_number(rows):
    for c in (0.5, 2):
        for function in (scatter_number, plain(scatter_number)):
            x = np.zeros((rows, 2))
            function(x, 0, 1, c)
            np.testing.assert_array_equal(x[:, 1], [c] * min(rows, WIDTH) + [0] * (rows - min(rows, WIDTH)))
            np.testing.assert_array_equal(x[:, 0], 0)


@numba.njit
def unload_to(x, r, scratch, slot):
    unload(x, r, scratch, slot)


@pytest.mark.parametrize("columns", [1, WIDTH - 1, WIDTH, WIDTH + 1, 3 * WIDTH + 1])
@pytest.mark.parametrize("rows", [1, 2, WIDTH, 2 * WIDTH + 3])
def test_unload_transposes_slots_into_rows(rows, columns):
    """Whole blocks and the columns left over; idle lanes repeat the last state, as in real use."""
    for r in range(0, rows, WIDTH):
        scratch = RNG.normal(size=(columns + 2, WIDTH))
        scratch[:, rows - r :] = scratch[:, rows - r - 1 : rows - r]
        expected = np.zeros((rows, columns))
        expected[r : r + WIDTH] = scratch[2 : 2 + columns, : rows - r].T
        for function in (unload_to, plain(unload)):
            x = np.zeros((rows, columns))
            function(x, r, scratch, 2)
            np.testing.assert_array_equal(x, expected)


@numba.njit
def fetch_from(x, r, k, count, scratch, slot):
    store(scratch, 0, fetch(x, r, k, count, scratch, slot))


@pytest.mark.parametrize("count", [1, WIDTH - 1, WIDTH])
@pytest.mark.parametrize("rows", [1, 2, WIDTH, 2 * WIDTH + 3])
def test_fetch_transposes_columns_into_slots(rows, count):
    """From the middle of rows; rows past the last are the last, and other slots stay as they are."""
    x, k = RNG.normal(size=(rows, 2 * WIDTH + 1)), WIDTH
    for r in range(0, rows, WIDTH):
        seen = x[np.minimum(r + np.arange(WIDTH), rows - 1), k : k + count].T
        for function in (fetch_from, plain(fetch_from)):
            scratch = np.zeros((WIDTH + 4, WIDTH))
            function(x, r, k, count, scratch, 2)
            np.testing.assert_array_equal(scratch[2 : 2 + count], seen)
            np.testing.assert_allclose(scratch[0], (seen**2).sum(axis=0), rtol=1e-15)
            assert not scratch[1].any()
            assert not scratch[2 + count :].any()


@numba.njit
def single_lanes(x, w, c, out):
    u = load(x, 0)
    store(out, 0, spread(c))
    store(out, 1, put(u, w, c))
    store(out, 2, u)  # put leaves its argument alone
    return pick(u, w)


@pytest.mark.parametrize("w", range(WIDTH))
@pytest.mark.parametrize("c", [2.5, -0.0, math.nan, math.inf])
def test_spread_pick_put(w, c):
    x, out = RNG.normal(size=(1, WIDTH)), np.empty((3, WIDTH))
    expected = np.array([np.full(WIDTH, c), np.where(np.arange(WIDTH) == w, c, x[0]), x[0]])
    for function in (single_lanes, plain(single_lanes)):
        assert function(x, w, c, out) == x[0, w]
        np.testing.assert_array_equal(out, expected)


@numba.njit
def root_of(x, out):
    store(out, 0, root(load(x, 0)))


def test_root_is_that_of_numpy():
    """Of special numbers, too: the compiled and the plain one."""
    for x in (RNG.uniform(0, 9, (1, WIDTH)), np.full((1, WIDTH), math.inf), np.zeros((1, WIDTH))):
        for function in (root_of, plain(root_of)):
            out = np.empty((1, WIDTH))
            function(x, out)
            np.testing.assert_array_equal(out, np.sqrt(x))


@numba.njit
def is_within(x, bound):
    return within(load(x, 0), bound)


@pytest.mark.parametrize("w", range(WIDTH))
def test_within_is_about_every_lane(w):
    above = np.nextafter(2.0, 3.0)
    cases = {2.0: True, -2.0: True, 0.0: True, above: False, -above: False}
    cases |= {math.nan: False, math.inf: False, -math.inf: False}
    for value, expected in cases.items():
        x = np.full((1, WIDTH), 0.5)
        x[0, w] = value
        for function in (is_within, plain(is_within)):
            assert function(x, 2.0) is expected, value
    assert not is_within(np.zeros((1, WIDTH)), math.nan)


# --- the width itself ---------------------------------------------------------------------------------------


def test_width_comes_from_the_setting_or_the_processor():
    assert [choose(str(w)) for w in ALLOWED] == list(ALLOWED)
    assert choose(None) == choose("") == detect()
    assert detect() in (2, 4, 8)


@pytest.mark.parametrize("setting", ["3", "0", "-4", "four", "4.0", "32"])
def test_wrong_width_says_what_is_expected(setting):
    with pytest.raises(ValueError, match=rf"KINEGRAD_LANES is '{setting}'; expected one of \(1, 2, 4"):
        choose(setting)


@numba.njit
def selected(x, out):
    a, b = load(x, 0), load(x, 1)
    store(out, 0, select(a, b, a, b))
    store(out, 1, select(a, 0.5, 1.0, 0.0))
    store(out, 2, select(0.5, a, b, 2))


def test_select_is_lane_by_lane_and_nan_is_not_less():
    """Where a < b, and not where they are equal or one of them is NaN."""
    special = [math.nan, math.inf, -math.inf, 0.5, 0.0, -0.0]
    for row in range(len(special)):
        x = RNG.normal(size=(2, WIDTH))
        x[0, 0], x[1, 0] = special[row], special[row - 1]
        x[:, -1] = special[row]
        expected = [np.where(x[0] < x[1], *x), np.where(x[0] < 0.5, 1.0, 0.0), np.where(x[0] > 0.5, x[1], 2.0)]
        for function in (selected, plain(selected)):
            out = np.empty((3, WIDTH))
            function(x, out)
            np.testing.assert_array_equal(out, expected)
