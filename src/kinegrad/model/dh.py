"""Denavit–Hartenberg rows, in both conventions, as placements of a joint.

distal     A = Rz(θ) Tz(d) Tx(a) Rx(α)    frame at the far end of the link    [zhakatayev2023] (4), [xiang2008] (1)
proximal   A = Rx(α) Tx(a) Rz(θ) Tz(d)    frame at the joint (Craig)

One of θ and d varies: θ + q or d + q, with either sign, or both together for a screw.  Rz and Tz of one axis
commute, so  A = P · motion(q) · F  with the constants on either side of the motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import ModelError
from kinegrad.model.joints import Joint, prismatic, revolute, screw
from kinegrad.model.numbers import real_number
from kinegrad.model.placement import rotate, translate

__all__ = ["DH"]

Array = NDArray[np.float64]
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
        For a screw: metres along z a radian of `theta`.

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
            raise ModelError(f"`variable` of a DH row is {self.variable!r}; expected one of {', '.join(VARIABLES)}")
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
        if convention == "distal":
            return np.eye(4), along_z @ along_x
        if convention == "proximal":
            return along_x, along_z
        raise ModelError(f"`convention` is {convention!r}; expected 'distal' or 'proximal'")
