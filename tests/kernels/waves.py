"""A small kernel, for tests of compiling and caching: sin x cos x, in a second or two of compilation."""

import numpy as np

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.lanes.trigonometry import sincos


@inline
def wave(x):
    s, c = sincos(x)
    return s * c


@kernel
def waves(x, y, start, stop):
    for r in range(start, stop, WIDTH):
        for k in range(x.shape[1]):
            scatter(y, r, k, wave(gather(x, r, k)))
    return True


@kernel
def double(x, y, start, stop):
    """Much less to compile."""
    for r in range(start, stop):
        for k in range(x.shape[1]):
            y[r, k] = 2 * x[r, k]
    return True


def check(kernel=waves):
    """Call the kernel, and fail if it computes anything else."""
    x = np.linspace(0, 3, 12).reshape(6, 2)
    y = np.zeros_like(x)
    expected = np.sin(x) * np.cos(x) if kernel is waves else 2 * x
    assert kernel(x, y, 0, 6)
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-15)
