"""Is every number finite?  x − x is zero for a finite number and NaN for any other, and sums of it stay so."""

from kinegrad._kernels.jit import kernel


@kernel
def all_finite(arrays):
    """Whether all numbers of a tuple of arrays (rows, columns) are finite."""
    total = 0.0
    for x in arrays:
        flat = x.ravel()
        for k in range(len(flat)):
            total += flat[k] - flat[k]
    return total == 0.0
