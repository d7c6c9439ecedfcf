"""The body nearest to mass properties that no body has.

Moments of inertia I about the centre of mass belong to a body exactly if the second moments Σ = ½ tr(I) 1 − I are
positive semidefinite.  The nearest such I in the sense of Frobenius, min ‖I′ − I‖, has the same principal axes: the
norm does not change under rotations, and among matrices with given eigenvalues the one with common axes is nearest.
What is left are three numbers, I′ᵢ = Σⱼ≠ᵢ σⱼ with σ ≥ 0 nearest to the principal moments: non-negative least squares.

How far it is from the given one is judged by moments about axes: uᵀ(I′ − I)u / uᵀI′u, the largest over all directions
u, bounds the change of every entry in all frames, |I′ᵢⱼ − Iᵢⱼ| ≤ change · √(I′ᵢᵢ I′ⱼⱼ).  About other points than the
centre of mass, moments are larger, and change by a smaller part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.model import Inertia

__all__ = ["largest_change", "nearest_inertia"]

Array = NDArray[np.float64]
FLOOR = 1e-9  # of the largest moment: smaller ones count as this much


def nearest_inertia(mass: float, com: ArrayLike, inertia: ArrayLike) -> Inertia:
    """Return the body of this mass and centre of mass whose moments are nearest to the given ones.

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


def largest_change(before: ArrayLike, after: ArrayLike) -> float:
    """Return the largest relative change of the moment of inertia about any axis, as a part of the moment after it.

    Parameters
    ----------
    before, after : array_like, shape (3, 3)
        About the centre of mass, kg·m²; `after` is positive semidefinite.

    Examples
    --------
    >>> round(largest_change(np.diag([1.0, 1.0, 4.0]), np.diag([5.0, 5.0, 10.0]) / 3), 9)
    0.4
    """
    whole = np.asarray(after, dtype=float)
    moved = whole - np.asarray(before, dtype=float)
    if not moved.any():
        return 0.0
    moments, axes = np.linalg.eigh(whole)
    if not moments[-1] > 0:
        return float("inf")
    scaled = axes / np.sqrt(np.maximum(moments, FLOOR * moments[-1]))
    return float(np.abs(np.linalg.eigvalsh(scaled.T @ moved @ scaled)).max())
