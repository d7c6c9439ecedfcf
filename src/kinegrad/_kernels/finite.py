"""Is every number finite?  x − x is zero for a finite number and NaN for any other, and sums of it stay so.

Kernels ask this of the states they are about to work on and return False, having written nothing, if one is not.
"""

import numpy as np

from kinegrad._kernels.jit import JIT, inline


@inline
def _finite(arrays, start, stop):
    total = 0.0
    for x in arrays:
        for r in range(max(0, min(start, len(x) - 1)), min(stop, len(x))):
            for k in range(x.shape[1]):
                total += x[r, k] - x[r, k]
    return total == 0.0


def _finite_numpy(arrays, start, stop):
    return all(np.isfinite(x[min(start, len(x) - 1) : stop]).all() for x in arrays if len(x))


finite = _finite if JIT else _finite_numpy
