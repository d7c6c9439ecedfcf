"""Building blocks compiled as they are, and compared with plain Python."""

import math

import numba


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
