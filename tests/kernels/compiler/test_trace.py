"""Building blocks: what is traced into a compiled function computes what the source says in plain Python."""

import math
import threading
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numba.core import event, types
from numba.core.errors import TypingError

import kinegrad as kg
from kinegrad._kernels.compiler import jit
from kinegrad._kernels.compiler.jit import exact, inline
from kinegrad._kernels.compiler.trace import operation
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.dual import Dual, Pair, make
from kinegrad._kernels.lanes.lane import load, pick, spread, store, within
from kinegrad._kernels.lanes.slots import Slots

pytestmark = pytest.mark.skipif(not jit.JIT, reason="nothing is traced without the JIT")

THREE = 3


def compiled(block):
    """A compiled function that does nothing but call `block`, with up to three arguments."""
    count = block.py_func.__code__.co_argcount
    if count == 1:
        return numba.njit(lambda x: block(x), _nrt=False, error_model="numpy")
    if count == 2:
        return numba.njit(lambda x, y: block(x, y), _nrt=False, error_model="numpy")
    return numba.njit(lambda x, y, z: block(x, y, z), _nrt=False, error_model="numpy")


def agrees(block, *calls):
    """The block, compiled, gives what its source gives, in type too, for each of the argument lists."""
    function = compiled(block)
    for args in calls:
        found, expected = function(*args), block.py_func(*args)
        assert found == expected or (math.isnan(found) and math.isnan(expected)), args
        assert type(found) is type(expected), args


# --- branches -----------------------------------------------------------------------------------------------


@inline
def sign(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1
    return 0


@inline
def nested(x, y):
    result = 0.0
    if x > 0.0:
        if y > 0.0:
            result = x * y
            x = result + 1.0
        else:
            x = -x
    elif y > 0.0:
        result = y
    return result + x


@inline
def one_side_returns(x, y):
    t = x + y
    if t > 3:
        return t * 100
    t = t + 1
    if t < 0:
        t = -t
    else:
        return t
    return t * 10


def test_branches():
    agrees(sign, (3,), (-2,), (0,), (2.5,), (-1e-300,), (math.nan,))
    agrees(nested, *((x, y) for x in (-1.5, 0.0, 2.0) for y in (-3.0, 0.0, 4.0)))
    agrees(one_side_returns, (1, 1), (5, 5), (-4, -4))


@inline
def constant_branch(x):
    if THREE == 3:  # decided while tracing: the other side would have no type
        return x
    return undefined_name(x)  # noqa: F821


def test_branches_on_constants_are_decided_while_tracing():
    agrees(constant_branch, (2.0,))


@inline
def logic(x, y):
    a = x > 0 and y > 0
    b = x > 0 or y > 10
    c = not a
    d = 0 < abs(min(x, 9)) < abs(y) < 7
    return (1 if a else 0) + (2 if b else 0) + (4 if c else 0) + (8 if d else 0) + (16 if x and not y else 0)


def test_and_or_not():
    agrees(logic, *((x, y) for x in (-1, 0, 3) for y in (-1, 0, 5, 11)))


@inline
def note(x, k):
    x[k] = x[k] + 1.0
    return x[k] > 1.5


@inline
def short_cuts(x):
    if note(x, 0) and note(x, 1):
        x[2] = 1.0
    if note(x, 3) or note(x, 4):
        x[5] = 1.0
    return x[0]


def test_and_or_do_not_evaluate_what_python_does_not():
    for first in (0.0, 1.0):
        found, expected = np.full((2, 6), first)
        compiled(short_cuts)(found)
        short_cuts.py_func(expected)
        np.testing.assert_array_equal(found, expected)


# --- loops --------------------------------------------------------------------------------------------------


@inline
def up_and_down(start, stop, x):
    total = 0
    for i in range(start, stop):
        total = total * 3 + i
    for i in range(stop, start - 1, -2):
        total = total * 5 - i
    for _ in range(THREE):
        total += 1
    return total + x


def test_ranges():
    agrees(up_and_down, (0, 5, 0), (2, 2, 1), (3, -4, 2), (-3, 4, 3))


@inline
def first_multiple(n, k):
    for i in range(1, n):
        for j in range(i):
            if j == 3:
                continue
            if i * j == k:
                return 10 * i + j
            if i * j > k:
                break
        else_ = i
        if else_ > 30:
            return -2
    return -1


def test_return_break_and_continue_in_nested_loops():
    agrees(first_multiple, *((n, k) for n in (0, 3, 12) for k in (0, 2, 12, 27, 35, 97)))


@inline
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
            steps += 1
            continue
        n = 3 * n + 1
        steps += 1
        if steps > 1000:
            break
    return steps


@inline
def forever(n):
    k = 0
    while True:
        k += 1
        if k * k >= n:
            return k


def test_while():
    agrees(collatz, (1,), (6,), (27,), (97,))
    agrees(forever, (1,), (10,), (100,))


@inline
def tuples_round(n, x):
    a, b = (x, 1.0), (0.0, (x, 2.0))
    for _ in range(n):
        a, b = (a[1], a[0] + b[0]), (b[1][0], (b[1][1], a[0]))
    return a[0] + 2.0 * a[1] + 4.0 * b[0] + 8.0 * b[1][0] + 16.0 * b[1][1]


def test_tuples_carried_round_a_loop():
    agrees(tuples_round, *((n, 1.5) for n in range(6)))


@inline
def unrolled(n, x):
    total = 0.0
    for weight, values in ((1.0, (x, 2 * x)), (2.0, (x,)), (3.0, (x, x, 7.0))):
        for k in range(len(values)):
            if k > n:
                break
            total = total * weight + values[k]
        if total > 50.0:
            continue
        if total < -50.0:
            break
        total += 1.0
    return total


def test_loops_over_tuples_of_different_kinds_are_unrolled():
    agrees(unrolled, *((n, x) for n in (0, 1, 5) for x in (1.0, -100.0, 30.0)))


@inline
def widening(n):
    total = 0
    for i in range(n):
        if i > 2:
            total = total + 0.5
    return total


@inline
def widened_inside(n):
    a, b = 0, 1
    for i in range(n):
        a = b
        for _ in range(i):
            b = b * 0.5
    return a + b


def test_a_variable_becomes_as_wide_as_the_loop_makes_it():
    function = compiled(widening)
    assert [function(n) for n in (0, 3, 5)] == [0.0, 0.0, 1.0]
    assert [compiled(widened_inside)(n) for n in (0, 1, 4)] == [1.0, 2.0, widened_inside.py_func(4)]


@inline
def reused(n, x):
    w = (x, x)
    x = w[0] + w[1]
    for w in range(n):  # the tuple before is not what this is
        x = x + w
    return x


def test_a_name_may_be_used_again_for_something_else():
    agrees(reused, (0, 1.0), (4, 1.0))


# --- values -------------------------------------------------------------------------------------------------


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


# --- lanes, duals, slots --------------------------------------------------------------------------------------


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


# --- operations -----------------------------------------------------------------------------------------------


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


# --- what it is for: one function, with the flags of each block ----------------------------------------------------


@inline
def summed(x, y, z):
    return (x + y) + z


@exact
def summed_exactly(x, y, z):
    return (x + y) + z


@numba.njit(fastmath={"contract", "reassoc"})
def both_sums(x, y, z):
    return summed(x, y, z) + summed_exactly(x, y, z)


def test_each_block_has_its_own_flags():
    both_sums(1.0, 2.0, 3.0)
    modules = []
    library = numba.core.codegen.CPUCodeLibrary
    original = library.add_ir_module
    library.add_ir_module = lambda self, module: (modules.append(str(module)), original(self, module))[1]
    try:
        numba.njit(both_sums.py_func, fastmath={"contract", "reassoc"})(1.0, 2.0, 3.0)
    finally:
        library.add_ir_module = original
    sums = [line for text in modules for line in text.splitlines() if " fadd " in line]
    assert sum("reassoc" in line for line in sums) == 3
    assert sum("reassoc" not in line and "contract" in line for line in sums) == 2


def test_a_kernel_is_compiled_as_one_function(tmp_path, monkeypatch):
    """None of its building blocks is typed, optimised or assembled on its own: that took nearly all of the time."""
    from kinegrad._kernels import rnea

    kernel = numba.njit(rnea.rnea.py_func, **jit._OPTIONS)
    model = kg.samples.two_link()
    x, none = np.zeros((1, 2)), np.zeros((0, 6))
    scratch = np.zeros((3 * rnea.N, WIDTH))
    with event.install_recorder("numba:compile") as recorder:
        kernel(kg._engine.mechanism(model), x, x, x, none, none, none, x.copy(), scratch, 0, 1)
    started = [e.data["dispatcher"] for _, e in recorder.buffer if e.is_start]
    assert started == [kernel]


def test_blocks_are_traced_in_several_threads():
    found = {}

    def work(number):
        function = compiled([sign, collatz, forever, widening][number])
        found[number] = function(27)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: 1, 1: 111, 2: 6, 3: 12.0}


# --- what cannot be traced ----------------------------------------------------------------------------------------


@inline
def tries(x):
    try:
        return x
    finally:
        pass


@inline
def with_else(x):
    while x > 0.0:
        x = x - 1.0
    else:
        x = 5.0
    return x


@inline
def half_assigned(x):
    if x > 0:
        y = x
    return y


@inline
def mixed(x):
    y = (x, x) if x > 0 else x
    return y[0]


@inline
def mixed_in_loop(x):
    y = (1.0, 2.0)
    for _ in range(x):
        y = y[0]
    return 1


@inline
def returns_mixed(x):
    if x > 0:
        return (x, x)
    return x


@inline
def compares_lanes(x):
    return load(x, 0) == 0.0


@inline
def decides_by_lanes(x):
    if load(x, 0):
        return 1
    return 2


@inline
def unknown_step(x):
    for k in range(0, 10, x):
        x = x + k
    return x


@pytest.mark.parametrize(
    ("block", "x", "reason"),
    [
        (tries, 1.0, "a building block cannot have: try"),
        (with_else, 1.0, "a building block cannot have: while with else"),
        (half_assigned, 1, "name 'y' is not defined"),
        (mixed, 1.0, r"'the value' has no single type here: UniTuple\(float64, 2\) or float64|UniTuple"),
        (mixed_in_loop, 1, "'y' has no single type here"),
        (returns_mixed, 1.0, "has no single type here"),
        (compares_lanes, np.zeros((1, WIDTH)), "lane"),
        (decides_by_lanes, np.zeros((1, WIDTH)), "lane"),
        (unknown_step, 1, "the step of a range must be known while tracing"),
    ],
)
def test_what_cannot_be_traced_is_an_error_that_says_why(block, x, reason):
    with pytest.raises(TypingError, match=reason) as caught:
        compiled(block)(x)
    assert block.__name__ in str(caught.value)


def test_an_error_names_file_and_line():
    line = half_assigned.py_func.__code__.co_firstlineno + 4
    with pytest.raises(TypingError, match=rf"test_trace.py, line {line}\)"):
        compiled(half_assigned)(1)


@inline
def unused_mix(x):
    y = (x, x) if x > 0 else x
    y = x + 1
    return y


def test_a_variable_of_no_single_type_is_no_error_unless_used():
    agrees(unused_mix, (1,), (-1,))


def test_without_a_source_it_says_so():
    space = {}
    exec("def without(x):\n    return x\n", space)
    with pytest.raises(TypingError, match="the source of without is not found"):
        compiled(inline(space["without"]))(1.0)
