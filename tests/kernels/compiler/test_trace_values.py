"""Values in building blocks: tuples, arrays, constants of NumPy, lanes, duals, slots, operations."""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core import types

from kinegrad._kernels.compiler import jit
from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.compiler.trace import operation
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.dual import Dual, Pair, make
from kinegrad._kernels.lanes.lane import load, pick, spread, store, within
from kinegrad._kernels.lanes.slots import Slots
from tests.kernels.compiler.blocks import agrees, compiled

pytestmark = pytest.mark.skipif(not jit.JIT, reason="nothing is traced without the JIT")


class Rod(NamedTuple):
    length: Any
    ends: Any

    def middle(self):
        return (self.ends[0] + self.ends[1]) / 2.0


@inline
def stretched(rod, by=2.0):
    return Rod(rod.length * by, (rod.ends[0], rod.ends[1] * by))


@inline
def rods(x, y):
    rod = stretched(stretched(Rod(x, (0.0, y))), by=3.0)
    return rod.middle() + rod.length


@numba.njit
def rod_outside(x, y):
    rod = stretched(Rod(x, (x, y)), by=3.0)
    return stretched(rod).length + rod.ends[1]


def test_named_tuples_arguments_by_name_and_defaults():
    agrees(rods, (1.0, 2.0))
    assert rod_outside(1.0, 2.0) == 12.0


@inline
def element(k, x):
    values = (x, 2.0 * x, 3.0 * x)
    pairs = ((x, 1), (x + 1.0, 2))
    return values[k] + pairs[k % 2][0] + pairs[-1][1]


@inline
def ranges(x):
    total = 0
    for k in (*range(1, 7, 3), 9):  # the body three times
        total = 10 * total + k
    squares = tuple(k * k for k in range(4))
    first, *others = range(5, 2, -1)
    return total * x + squares[3] + first + others[1] + sum(k for k in range(3)) + len(tuple(range(2)))


def test_ranges_are_their_numbers_outside_of_loops():
    assert ranges.py_func(2) == 2 * 149 + 9 + 5 + 3 + 3 + 2
    agrees(ranges, (2,))


def test_elements_of_tuples_by_numbers_known_at_run_time():
    agrees(element, (0, 1.5), (1, 1.5), (2, 1.5))


@numba.njit
def halved(x):
    return x / 2


@inline
def known_to_numba(x, k):
    y = abs(x) + math.sqrt(abs(x)) + np.cos(x) + halved(x)
    return y + min(k, 3) + max(1, k, 2) + min(x, 0.5, y) + float(k) + x**2 + k % 3 + k // 2 + (k & 1) + -k + +x


def test_functions_and_operators_that_numba_knows():
    for args in ((0.3, 2), (-4.0, 7), (100.0, -1)):
        # Numba's powers and trigonometric functions may differ from Python's in the last bit
        assert compiled(known_to_numba)(*args) == pytest.approx(known_to_numba.py_func(*args), rel=1e-15)


HALF, TWO = np.float64(0.5), np.int64(2)


@inline
def numpy_constants(x, k):
    return HALF * x + x * HALF + TWO * k + k * TWO


def test_constants_of_numpy():
    assert compiled(numpy_constants)(3.0, 4) == 19.0


@inline
def array_access(x, y, k):
    n = len(x) + y.shape[1] * x.size
    y[k, 0] = x[-1] + x[k]
    y[-1, 1] = n
    layer = y[k]
    layer[2] += 1.0
    return layer[0] + y[k, 2]


def test_arrays():
    function = compiled(array_access)
    for k in range(3):
        x, y, z = np.arange(3.0), np.ones((3, 4)), np.ones((3, 4))
        assert function(x, y, k) == array_access.py_func(x, z, k)
        np.testing.assert_array_equal(y, z)


def test_arrays_that_are_not_contiguous():
    x, y = np.arange(6.0)[::2], np.asfortranarray(np.ones((3, 4)))
    expected = array_access.py_func(x, y.copy(order="F"), 1)
    assert compiled(array_access)(x, y, 1) == expected


@inline
def on_lanes(x, n, out):
    u, total = load(x, 0), spread(0.0)
    for k in range(n):
        if pick(u, 0) > k:
            total = total + u * load(x, k)
        elif not within(u, 1.0):
            total = total - 1.0
    store(out, 0, total / 2.0 if n > 2 else -total)


def test_lanes_in_branches_and_loops():
    x = np.random.default_rng(8).normal(size=(4, WIDTH)) * 2
    for n in range(5):
        found, expected = np.empty((2, 1, WIDTH))
        compiled(on_lanes)(x, n, found)
        on_lanes.py_func(x, n, expected)
        np.testing.assert_allclose(found, expected, rtol=1e-15)


@inline
def power(x, n, slope):
    u = make(load(x, 0), slope)
    y = u
    for _ in range(n):
        y = y * u + 1.0 / (2.0 - u) - 3.0
    return y


@numba.njit
def dual_power(x, n, out):
    pair = Pair(out, out)
    y = -power(x, n, spread(1.0)) + 0.0
    store(out, 0, y.value)
    store(out, 1, y.slope)
    return pair.value[0, 0]


def test_duals_are_traced_as_pairs_of_lanes():
    x, out = np.random.default_rng(9).uniform(-1, 1, size=(1, WIDTH)), np.empty((2, WIDTH))
    dual_power(x, 3, out)
    h = 2.0**-100  # the complex step of duals without the JIT
    expected = -power.py_func(x + 0j, 3, np.ones(WIDTH))
    np.testing.assert_allclose(out[0], expected.real, rtol=1e-14)
    np.testing.assert_allclose(out[1], expected.imag / h, rtol=1e-13)
    assert numba.typeof(Dual(1.0, 2.0)) == types.NamedUniTuple(types.float64, 2, Dual)


@inline
def through_slots(scratch, k):
    constants = Slots(scratch, k, 2)
    store(scratch, 0, constants[1, 0] * 2.0)


def test_slots_are_read_by_index():
    found, expected = np.arange(2 * 6.0 * WIDTH).reshape(2, 6, WIDTH)
    expected[:] = found
    compiled(through_slots)(found, 1)
    through_slots.py_func(expected, 1)
    np.testing.assert_array_equal(found, expected)


@operation
def doubled(x):
    return x + x


@doubled.register(Rod)
def _(x):
    return Rod(doubled(x.length), x.ends)


@numba.njit
def doubled_outside(x):
    return doubled(Rod(x, x)).length + doubled(x)


def test_an_operation_is_decided_by_its_first_argument():
    assert doubled(Rod(2.0, 3.0)) == Rod(4.0, 3.0)
    assert doubled_outside(1.5) == 6.0
