"""Building blocks: what is traced into a compiled function computes what the source says in plain Python."""

import math
import threading

import numba
import numpy as np
import pytest
from numba.core import event

import kinegrad as kg
from kinegrad._kernels.compiler import jit
from kinegrad._kernels.compiler.jit import exact, inline
from kinegrad._kernels.compiler.width import WIDTH
from tests.kernels.compiler.blocks import agrees, compiled

pytestmark = pytest.mark.skipif(not jit.JIT, reason="nothing is traced without the JIT")

THREE = 3


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
