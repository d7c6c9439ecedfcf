"""The body nearest to mass properties that no body has.

Moments of inertia I about the centre of mass belong to a body exactly if the second moments Σ = ½ tr(I) 1 − I are
positive semidefinite.  The nearest such I in the sense of Frobenius, min ‖I′ − I‖, has the same principal axes: the
norm does not change under rotations, and among matrices with given eigenvalues the one with common axes is nearest.
What is left are three numbers, I′ᵢ = Σⱼ≠ᵢ σⱼ with σ ≥ 0 nearest to the principal moments: non-negative least squares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.model import Inertia

__all__ = ["nearest_inertia"]

Array = NDArray[np.float64]


def nearest_inertia(mass: float, com: ArrayLike, inertia: ArrayLike) -> Inertia:
    """The body of this mass and centre of mass whose moments are nearest to the given ones.

    Parameters
    ----------
    mass : float
        kg, zero or more; without mass there are no moments either.
    com : array_like, shape (3,)
        m.
    inertia : array_like, shape (3, 3)
        About the centre of mass, kg·m²; its symmetric part counts.

    Examples
    --------
    >>> nearest_inertia(1.0, [0, 0, 0], np.diag([1.0, 1.0, 4.0])).inertia.diagonal().round(9).tolist()
    [1.666666667, 1.666666667, 3.333333333]
    >>> nearest_inertia(1.0, [0, 0, 0], np.diag([1.0, 1.0, 1.5])).inertia.diagonal().round(9).tolist()
    [1.0, 1.0, 1.5]
    """
    from scipy.optimize import nnls  # here, because it takes long to import

    if not mass > 0:
        return Inertia.zero()
    given = np.asarray(inertia, dtype=float)
    moments, axes = np.linalg.eigh((given + given.T) / 2)
    scale = float(np.abs(moments).max()) or 1.0
    sigma, _ = nnls(np.ones((3, 3)) - np.eye(3), moments / scale)
    nearest = axes * (scale * (sigma.sum() - sigma)) @ axes.T
    return Inertia(mass, com, (nearest + nearest.T) / 2)
