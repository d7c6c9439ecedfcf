"""The two-link arm in closed form: appendix 1 of [xiang2008], (69) to (82), as it must be.

With c₂ = cos θ₂, s₂ = sin θ₂, c₁ = cos θ₁, c₁₂ = cos(θ₁ + θ₂), h = m₂L₁l₂, and a load f that hangs down from the tip,

    τ₁ = (I₁ + I₂ + m₁l₁² + m₂(L₁² + l₂² + 2L₁l₂c₂)) θ̈₁ + (I₂ + m₂l₂² + hc₂) θ̈₂ − 2hs₂ θ̇₁θ̇₂ − hs₂ θ̇₂²
         + (m₂gl₂ + fL₂) c₁₂ + (m₁gl₁ + m₂gL₁ + fL₁) c₁
    τ₂ = (I₂ + m₂l₂² + hc₂) θ̈₁ + (I₂ + m₂l₂²) θ̈₂ + hs₂ θ̇₁² + (m₂gl₂ + fL₂) c₁₂

Nothing of it is shared with the kernels: lengths and masses are those of Table 1, written here once more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ClosedForm"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ClosedForm:
    """Torques and their derivatives, for q, v, a of shape (..., 2).

    >>> ClosedForm(gravity=9.8062).torques([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]).round(5).tolist()
    [3.92248, 0.98062]
    """

    length: float = 0.4  # L₁ = L₂, m
    centre: float = 0.2  # l₁ = l₂ from the joint, m
    mass: float = 0.5  # m₁ = m₂, kg
    inertia: float = 0.1  # I₁ = I₂ about the centre of mass, kg·m²
    gravity: float = 0.0  # g, m/s²
    load: float = 0.0  # f, N

    def _terms(self, q: ArrayLike) -> tuple[Array, ...]:
        angle = np.asarray(q)
        one, two = angle[..., 0], angle[..., 1]
        weight = self.mass * self.gravity * self.centre + self.load * self.length
        upper = (self.mass * self.centre + self.mass * self.length) * self.gravity + self.load * self.length
        h = self.mass * self.length * self.centre
        return one, two, np.asarray(weight), np.asarray(upper), np.asarray(h)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """(..., 2, 2): (75), (76), (81), (82)."""
        _, two, _, _, h = self._terms(q)
        own = self.inertia + self.mass * self.centre**2
        across = own + h * np.cos(two)
        whole = 2 * own + self.mass * self.length**2 + 2 * h * np.cos(two)
        rows = [np.stack([whole, across], axis=-1), np.stack([across, np.full_like(across, own)], axis=-1)]
        return np.stack(rows, axis=-2)

    def torques(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """(..., 2): (69), (70)."""
        one, two, weight, upper, h = self._terms(q)
        speed, s2 = np.asarray(v), np.sin(two)
        first, second = speed[..., 0], speed[..., 1]
        turning = np.stack([-h * s2 * (2 * first * second + second**2), h * s2 * first**2], axis=-1)
        both = weight * np.cos(one + two)
        hanging = np.stack([both + upper * np.cos(one), both], axis=-1)
        torques: Array = np.einsum("...ij,...j->...i", self.mass_matrix(q), np.asarray(a)) + turning + hanging
        return torques

    def derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
        """∂τ/∂q, ∂τ/∂v, ∂τ/∂a, (..., 2, 2) each: (71) to (82)."""
        one, two, weight, upper, h = self._terms(q)
        speed, forced = np.asarray(v), np.asarray(a)
        first, second = speed[..., 0], speed[..., 1]
        s2, c2 = np.sin(two), np.cos(two)
        both = -weight * np.sin(one + two)
        dq = np.stack(
            [
                both - upper * np.sin(one),  # (71)
                both - h * s2 * (2 * forced[..., 0] + forced[..., 1])
                - h * c2 * (2 * first * second + second**2),  # (72)
                both,  # (77)
                both - h * s2 * forced[..., 0] + h * c2 * first**2,  # (78)
            ],
            axis=-1,
        )  # fmt: skip
        dv = np.stack([-2 * h * s2 * second, -2 * h * s2 * (first + second), 2 * h * s2 * first, 0 * s2], axis=-1)
        shape = (*dq.shape[:-1], 2, 2)
        return dq.reshape(shape), dv.reshape(shape), self.mass_matrix(q)
