"""Is every number finite?  x − x is zero for a finite number and NaN for any other, and sums of it stay so."""

from kinegrad._kernels.jit import kernel


@kernel
def all_finite(x):
    """Whether all of x, (rows, columns), is finite."""
    flat = x.ravel()
    total = 0.0
    for k in range(len(flat)):
        total += flat[k] - flat[k]
    return total == 0.0
