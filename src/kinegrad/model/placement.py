"""Where one frame sits in another: 4×4 homogeneous transforms, built from turns and shifts, composed with ``@``.

Quarter turns are exact: ``rotate("x", np.pi / 2)`` has zeros and ones, not 6e-17.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import ModelError, shown
from kinegrad.model.numbers import LARGEST, real_array, real_number, too_large

__all__ = ["rotate", "translate", "unit_axis"]

Array = NDArray[np.float64]
_ROUNDING = 4e-15  # of R Rᵀ: what products of rotations have; such matrices keep their bits
_LETTERS = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def unit_axis(axis: str | ArrayLike) -> Array:
    """A unit vector from ``"x"``, ``"-z"`` or any non-zero 3-vector.

    >>> unit_axis("-y")
    array([ 0., -1.,  0.])
    >>> unit_axis([3, 0, 4])
    array([0.6, 0. , 0.8])
    """
    if isinstance(axis, str):
        sign, letter = (-1.0, axis[1:]) if axis[:1] in "-−" and axis else (1.0, axis.removeprefix("+"))
        if letter not in _LETTERS:
            raise ModelError(f"`axis` is {shown(axis)}; expected 'x', 'y', 'z', '-x', '-y', '-z' or a 3-vector")
        return sign * np.array(_LETTERS[letter]) + 0.0  # no negative zeros
    vector = real_array("`axis`", axis, "a letter or three numbers")
    if vector.shape != (3,):
        raise ModelError(f"`axis` has shape {vector.shape}; expected three numbers")
    largest = np.abs(vector).max()
    if not (np.isfinite(largest) and largest > 0):
        raise ModelError(f"`axis` is {vector.tolist()}; expected a finite vector that is not zero")
    if not 1e-100 < largest < 1e100:
        vector = vector / largest  # its square would overflow, or vanish
    length = np.sqrt(vector @ vector)
    is_unit = abs(length - 1.0) < 1e-15 and not np.iscomplexobj(vector)
    return vector if is_unit else np.asarray(vector / length)  # a unit vector keeps its bits


def translate(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Array:
    """A shift by (x, y, z) metres, as a 4×4 transform.

    >>> translate(0, 0, -0.44)[:3, 3]
    array([ 0.  ,  0.  , -0.44])
    """
    shift = np.array([real_number(f"`{name}` of a shift", value) for name, value in (("x", x), ("y", y), ("z", z))])
    T = np.eye(4, dtype=shift.dtype)
    T[:3, 3] = shift
    return T


def rotate(axis: str | ArrayLike, angle: float) -> Array:
    """A turn about `axis` by `angle` radians (right hand), as a 4×4 transform.

    >>> rotate("z", np.pi / 2)[:3, :3] + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    u = unit_axis(axis)
    c, s = _cos_sin(real_number("`angle` of a turn", angle))
    skew = np.array([[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]])
    R = c * np.eye(3) + s * skew + (1.0 - c) * np.outer(u, u)
    T = np.eye(4, dtype=R.dtype)
    T[:3, :3] = R
    return T


def turning(axis: int) -> Array:
    """Slope of a turn about x, y or z (0, 1, 2) where the angle is zero: the matrix [z]× of that axis, (4, 4)."""
    slope = np.zeros((4, 4))
    j, k = (axis + 1) % 3, (axis + 2) % 3
    slope[j, k], slope[k, j] = -1.0, 1.0
    return slope


def _cos_sin(angle: float) -> tuple[float, float]:
    """cos and sin, exact at whole multiples of π/2."""
    if isinstance(angle, complex):
        (c, s), (ch, sh) = _cos_sin(angle.real), (math.cosh(angle.imag), 1j * math.sinh(angle.imag))
        return c * ch - s * sh, s * ch + c * sh  # type: ignore[return-value]
    quarters = round(angle / (math.pi / 2))
    if abs(quarters) < 1_000 and angle == quarters * (math.pi / 2):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]
    return math.cos(angle), math.sin(angle)


def check_transform(what: str, value: ArrayLike) -> Array:
    """A rigid 4×4 transform; a 3-vector means a pure shift.

    Of a matrix of ten digits, say, the nearest rotation is taken: formulas that are equal for rotations would differ.
    """
    T = real_array(what, value, "a 4×4 transform or a 3-vector")
    if too_large(T):
        raise ModelError(f"{what} has a number that is not finite, or above {LARGEST:g}; expected finite numbers")
    if T.shape == (3,):
        T = translate(*T)
    if T.shape != (4, 4):
        raise ModelError(f"{what} has shape {T.shape}; expected a 4×4 transform or a 3-vector")
    if not np.array_equal(T[3], [0.0, 0.0, 0.0, 1.0]):
        raise ModelError(f"{what} has last row {T[3].tolist()}; expected [0, 0, 0, 1]")
    R = T[:3, :3]
    excess = R @ R.T - np.eye(3)
    error = float(np.abs(excess).max())
    if error > 1e-9 or np.linalg.det(R).real < 0:
        reason = "a reflection" if error <= 1e-9 else f"not orthonormal: R Rᵀ is off by {error:.2g}"
        raise ModelError(f"{what} has a 3×3 part that is {reason}; expected a rotation")
    if error > _ROUNDING:
        T[:3, :3] = R - 0.5 * excess @ R  # the nearest rotation, but for the square of the error
    return T
