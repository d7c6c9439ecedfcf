"""Is every number finite, and of a size whose products are?

Kernels ask this of the states they are about to work on, and return the answer as their status: NOT_FINITE, having
written nothing (or, in ``rnea_hessian_product.py``, nothing new of these states), FINE, or LARGE, where results may
overflow and have to be looked at.

One pass: Σ (x / 1e12)² is at most one only where every number is finite and none is large.  Results are products of at
most seven numbers of a state and nine constants of the mechanism.  If those are at most 1e12, and the constants that
are not zero at least 1e-60, then every product, sum and pivot stays far from overflow; only a quotient of forward
dynamics may still be anything, which is why its kernels ask again, of the accelerations they found.
"""

import numpy as np
from numba import types

from kinegrad._kernels.compiler.jit import JIT, inline
from kinegrad._kernels.compiler.standin import Array, Number, as_type, check, tracer
from kinegrad._kernels.compiler.trace import operation

NOT_FINITE, FINE, LARGE = 0, 1, 2
LARGEST, SMALLEST = 1e12, 1e-60  # of ordinary numbers, and of a mechanism's constants unless they are zero


@operation
def numbers(x, k):
    """Number k of x, counted row by row: one loop over all rows, however short they are, fills the registers."""
    return x.reshape(-1)[k]


@numbers.register(Array)
def _(x, k):
    builder = tracer().builder
    if tracer().context.enable_boundscheck:
        check(k, x.shape[0] * x.shape[1])
    return Number(types.float64, builder.load(builder.gep(x.data, [as_type(k, types.int64)])))


@inline
def _finite(arrays, start, stop):
    total = 0.0
    for x in arrays:
        columns = x.shape[1]
        for k in range(max(0, min(start, len(x) - 1)) * columns, min(stop, len(x)) * columns):
            part = numbers(x, k) * (1.0 / LARGEST)
            total += part * part
    if total <= 1.0:
        return FINE
    doubt = 0.0  # x − x is zero for a finite number and NaN for any other, and sums of it stay so
    for x in arrays:
        columns = x.shape[1]
        for k in range(max(0, min(start, len(x) - 1)) * columns, min(stop, len(x)) * columns):
            doubt += numbers(x, k) - numbers(x, k)
    return LARGE if doubt == 0.0 else NOT_FINITE


def _finite_numpy(arrays, start, stop):
    parts = [x[min(start, len(x) - 1) : stop] for x in arrays if len(x)]
    if not all(np.isfinite(x).all() for x in parts):
        return NOT_FINITE
    return LARGE if any((np.abs(x) > LARGEST).any() for x in parts) else FINE


finite = _finite if JIT else _finite_numpy


@inline
def with_results(ok, results, start, stop):
    """The status `ok` of the states, or LARGE if a result is beyond what is ordinary."""
    return ok if finite(results, start, stop) == FINE else LARGE
