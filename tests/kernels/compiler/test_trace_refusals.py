"""Blocks that cannot be traced: the error of the first compilation says file, line and reason."""

import numpy as np
import pytest
from numba.core.errors import TypingError

from kinegrad._kernels.compiler import jit
from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.lane import load
from tests.kernels.compiler.blocks import agrees, compiled

pytestmark = pytest.mark.skipif(not jit.JIT, reason="nothing is traced without the JIT")


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


@inline
def numbers_up_to(x):
    return sum(k for k in range(x))


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
        (numbers_up_to, 3, "only `for` takes a range whose bounds are known at run time"),
    ],
)
def test_what_cannot_be_traced_is_an_error_that_says_why(block, x, reason):
    with pytest.raises(TypingError, match=reason) as caught:
        compiled(block)(x)
    assert block.__name__ in str(caught.value)


def test_an_error_names_file_and_line():
    line = half_assigned.py_func.__code__.co_firstlineno + 4
    with pytest.raises(TypingError, match=rf"test_trace_refusals.py, line {line}\)"):
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
