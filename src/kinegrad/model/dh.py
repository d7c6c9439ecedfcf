"""Denavit–Hartenberg rows, in both conventions, as placements of a joint.

distal     A = Rz(θ) Tz(d) Tx(a) Rx(α)    frame at the far end of the link    [zhakatayev2023] (4), [xiang2008] (1)
proximal   A = Rx(α) Tx(a) Rz(θ) Tz(d)    frame at the joint (Craig)

One of θ and d varies: θ + q or d + q, with either sign, or both together for a screw.  Rz and Tz of one axis
commute, so  A = P · motion(q) · F  with the constants on either side of the motion.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import ModelError, UnitsWarning, shown
from kinegrad.model.joints import Joint, prismatic, revolute, screw
from kinegrad.model.names import as_tuple
from kinegrad.model.numbers import real_number
from kinegrad.model.placement import rotate, translate

__all__ = ["DH", "DHTable"]

Array = NDArray[np.float64]
CONVENTIONS = ("distal", "proximal")
LARGE_ANGLE = 4 * np.pi  # rad, which nobody means; 15° and more in degrees
VARIABLES = ("theta", "-theta", "d", "-d")


@dataclass(frozen=True)
class DH:
    """One row of a Denavit–Hartenberg table.

    Parameters
    ----------
    theta, d, a, alpha : float
        The constants of the row: angles in rad, lengths in m.
    variable : {"theta", "-theta", "d", "-d"}
        What the coordinate adds to, and its sign.
    pitch : float
        For a screw: metres along z per radian of `theta`.

    Examples
    --------
    Joint 3 of the 43-degree-of-freedom human moves with d = −q₃:

    >>> DH(d=0.0, variable="-d").joint()
    Joint(kind='prismatic', axis=(0.0, 0.0, -1.0), pitch=0.0, label='')
    """

    theta: float = 0.0
    d: float = 0.0
    a: float = 0.0
    alpha: float = 0.0
    variable: str = "theta"
    pitch: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.variable, str) or self.variable not in VARIABLES:
            expected = f"expected one of {', '.join(VARIABLES)}"
            raise ModelError(f"`variable` of a DH row is {shown(self.variable)}; {expected}")
        for what in ("theta", "d", "a", "alpha", "pitch"):
            object.__setattr__(self, what, real_number(f"`{what}` of a DH row", getattr(self, what)))
        if self.pitch and self.variable.endswith("d"):
            raise ModelError("`pitch` of a DH row needs variable 'theta': a screw turns as it slides")

    def joint(self) -> Joint:
        """The primitive joint of this row."""
        axis = "-z" if self.variable.startswith("-") else "z"
        if self.pitch:
            return screw(axis, pitch=self.pitch)
        return prismatic(axis) if self.variable.endswith("d") else revolute(axis)

    def placement(self, convention: str) -> tuple[Array, Array]:
        """The constants P and F of A = P · motion(q) · F, 4×4 each."""
        along_z = rotate("z", self.theta) @ translate(z=self.d)
        along_x = rotate("x", self.alpha) @ translate(x=self.a)
        if check_convention(convention) == "distal":
            return np.eye(4), along_z @ along_x
        return along_x, along_z


def check_convention(convention: Any) -> str:
    """The convention, or a ModelError if there is none of that name."""
    if not isinstance(convention, str) or convention not in CONVENTIONS:
        raise ModelError(f"`convention` is {shown(convention)}; expected 'distal' or 'proximal'")
    return convention


def warn_of_degrees(rows: Sequence[DH]) -> None:
    """Warn where angles are beyond two turns, which nobody means in radians: α = 90."""
    angles = ((i, what, _real(row, what)) for i, row in enumerate(rows) for what in ("theta", "alpha"))
    found = [each for each in angles if abs(each[2]) > LARGE_ANGLE]
    if found:
        i, what, x = found[0]
        others = f", and {len(found) - 1} more, which look" if len(found) > 1 else ", which looks"
        message = f"`{what}` of row {i} is {x:g}{others} like degrees; angles are in rad: np.radians({x:g})"
        warnings.warn(message, UnitsWarning, stacklevel=3)


def _real(row: DH, what: str) -> float:
    """A number of a row, without the slope it may carry."""
    return float(np.real(getattr(row, what)))


@dataclass(frozen=True)
class DHTable:
    """The rows that joints are placed by, as they were given, so that their numbers can be design parameters.

    A row cannot be read from the transforms that it gives: without a and α it is the same in both conventions, and
    angles return only up to whole turns.

    Parameters
    ----------
    rows : sequence of DH or None, length n
        None for a joint that is not placed by a row.
    convention : {"distal", "proximal"}

    Examples
    --------
    >>> DHTable([DH(theta=3.5), None], "proximal").rows[0].theta
    3.5
    """

    rows: tuple[DH | None, ...]
    convention: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", as_tuple("rows", self.rows, "DH rows"))
        for row in self.rows:
            if row is not None and not isinstance(row, DH):
                raise ModelError(f"`rows` of a DH table holds {shown(row)}; expected DH rows, or None")
        check_convention(self.convention)

    def with_row(self, i: int, row: DH) -> DHTable:
        """The table with another row i."""
        return DHTable((*self.rows[:i], row, *self.rows[i + 1 :]), self.convention)

    def placing(self, joints: Sequence[Joint], placement: Array, tip: Array) -> DHTable | None:
        """The table without rows that do not place their joint as it is placed; None if no row is left."""
        rows = tuple(
            row if row is not None and joint.axis[0] == joint.axis[1] == 0.0 and self._places(row, P, F) else None
            for row, joint, P, F in zip(self.rows, joints, placement, tip, strict=True)
        )
        return self if rows == self.rows else DHTable(rows, self.convention) if any(rows) else None

    def _places(self, row: DH, P: Array, F: Array) -> bool:
        own = _placement(row, self.convention)
        return np.array_equal(P, own[0]) and np.array_equal(F, own[1])


@lru_cache(maxsize=1024)  # models are copied with some fields changed far more often than rows are
def _placement(row: DH, convention: str) -> tuple[Array, Array]:
    return row.placement(convention)
