"""Transforms that follow parameters: their slopes and second slopes, by the product rule.

A turn by the angle φ about an axis z is R = exp(φ [z]×), so that ∂R/∂φ = [z]× R and ∂²R/∂φ² = [z]×² R.  An angle φ is
linear in the parameters, with slopes c: ∂R/∂k = c_k [z]× R, ∂²R/∂k∂l = c_k c_l [z]×² R.  A shift is linear itself.
A product of two transforms, whatever they follow, has

    (A B)_k = A_k B + A B_k,        (A B)_kl = A_kl B + A_k B_l + A_l B_k + A B_kl                                   (1)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinegrad.model.placement import rotate, turning

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Transform:
    """A transform `x`, (4, 4), its slopes `d` along p parameters, (p, 4, 4), and second slopes `dd`, (p, p, 4, 4)."""

    x: Array
    d: Array
    dd: Array

    def __matmul__(self, other: Transform) -> Transform:
        across = self.d[:, None] @ other.d[None]
        return Transform(
            self.x @ other.x,
            self.d @ other.x + self.x @ other.d,
            self.dd @ other.x + self.x @ other.dd + across + across.swapaxes(0, 1),  # (1)
        )


def placed(x: Array, shifts: Array) -> Transform:
    """`x`, (4, 4), whose origin moves by `shifts`, (p, 3), per unit of the parameters."""
    d = np.zeros((len(shifts), 4, 4))
    d[:, :3, 3] = shifts
    return Transform(np.array(x), d, np.zeros((len(shifts), *d.shape)))


def turned(axis: str, angle: float, slopes: Array) -> Transform:
    """A turn by `angle`, rad, about ``"x"``, ``"y"`` or ``"z"``; `slopes` of the angle, (p,)."""
    R, generator = rotate(axis, angle), turning("xyz".index(axis))
    once = generator @ R
    return Transform(R, np.multiply.outer(slopes, once), np.multiply.outer(np.outer(slopes, slopes), generator @ once))


def shifted(axis: str, distance: float, slopes: Array) -> Transform:
    """A shift by `distance`, m, along an axis; `slopes` of the distance, (p,)."""
    x = np.eye(4)
    x["xyz".index(axis), 3] = distance
    return placed(x, np.multiply.outer(slopes, np.eye(3)["xyz".index(axis)]))
