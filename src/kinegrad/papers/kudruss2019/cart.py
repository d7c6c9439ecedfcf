"""The cart-pendulum of [kudruss2019] 4.1 in closed form: its dynamics, and their derivatives along directions.

A box of mass M and inertia C moves in the x-z plane: at (x, z), turned by φ about y.  A rod of mass m, with its mass
centre at ℓ from its hinge at the box's origin and inertia J about that hinge, turns by θ relative to the box, and hangs
along −z for ψ = φ + θ = 0.  Its mass centre is at (x − ℓ sin ψ, z − ℓ cos ψ), so with α = −ℓ cos ψ and β = ℓ sin ψ

            ⎡M+m    0     mα    mα⎤                      ⎡mβ ψ̇²             ⎤
    H(q) =  ⎢ 0    M+m    mβ    mβ⎥           c(q, q̇) =  ⎢(M+m) g − mα ψ̇²   ⎥           α' = β,  β' = −α
            ⎢ mα    mβ   C+J    J ⎥                      ⎢m g β             ⎥
            ⎣ mα    mβ    J     J ⎦                      ⎣m g β             ⎦

Wheels at (X, Z) of the box are held at the height of the ground, z − X sin φ + Z cos φ = const:

    G = (0, 1, −X cos φ − Z sin φ, 0)                       γ = −Ġ q̇ = (Z cos φ − X sin φ) φ̇²

In minimal coordinates, x and θ, z and φ are zero, and so are their rows and columns.  Derivatives follow from the
product rule.  All of it is arithmetic on arrays of any type: complex numbers, by which the tests differentiate it, and
extended precision, in which it is what the modes are measured by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXTENDED", "Cart", "saddle", "solve"]

Numbers = NDArray[Any]  # float64, complex128 or extended
EXTENDED = np.longdouble
X, Z, PHI, THETA = range(4)


@dataclass(frozen=True)
class Cart:
    """Constants of a cart-pendulum, and what is known of it in closed form.

    Directions are arrays like the state, with one more axis before the last: (..., k, n) beside (..., 1, n).

    Attributes
    ----------
    box_mass, box_inertia : float
        M and C, kg and kg·m².
    rod_mass, rod_centre, rod_inertia : float
        m, ℓ and J, kg, m and kg·m².
    gravity : float
        m/s².
    coordinates : tuple of int
        Which of x, z, φ and θ there are; the others are zero.
    wheels : tuple of tuple of float
        (X, Z) of the points that touch the ground, m.
    """

    box_mass: float
    box_inertia: float
    rod_mass: float
    rod_centre: float
    rod_inertia: float
    gravity: float
    coordinates: tuple[int, ...] = (X, Z, PHI, THETA)
    wheels: tuple[tuple[float, float], ...] = ()

    # --- values -------------------------------------------------------------------------------------------------

    def mass_matrix(self, q: Numbers) -> Numbers:
        """H, (..., n, n)."""
        alpha, beta = self._rod(q)
        return self._matrix(self.rod_mass * alpha, self.rod_mass * beta, constant=True)

    def bias(self, q: Numbers, v: Numbers) -> Numbers:
        """c, (..., n)."""
        alpha, beta = self._rod(q)
        square, weight = self._all(v)[..., (PHI, THETA)].sum(axis=-1) ** 2, self.gravity
        m, total = self.rod_mass, self.box_mass + self.rod_mass
        return self._vector(m * beta * square, total * weight - m * alpha * square, m * weight * beta)

    def jacobian(self, q: Numbers) -> Numbers:
        """G, (..., wheels, n)."""
        phi = self._all(q)[..., PHI]
        return self._rows([-x * np.cos(phi) - z * np.sin(phi) for x, z in self.wheels], 1.0)

    def gamma(self, q: Numbers, v: Numbers) -> Numbers:
        """γ, (..., wheels)."""
        phi, rate = self._all(q)[..., PHI], self._all(v)[..., PHI]
        return np.stack([(z * np.cos(phi) - x * np.sin(phi)) * rate**2 for x, z in self.wheels], axis=-1)

    # --- along directions ---------------------------------------------------------------------------------------

    def mass_matrix_along(self, q: Numbers, dq: Numbers) -> Numbers:
        """δH."""
        alpha, beta = self._rod(q)
        turn = self.rod_mass * self._turn(dq)
        return self._matrix(beta * turn, -alpha * turn, constant=False)

    def bias_along(self, q: Numbers, v: Numbers, dq: Numbers, dv: Numbers) -> Numbers:
        """δc."""
        alpha, beta = self._rod(q)
        rate, turn, change, m = self._turn(v), self._turn(dq), self._turn(dv), self.rod_mass
        square, twice = rate**2, 2 * rate * change
        across = m * (-alpha * turn * square + beta * twice)
        up = -m * (beta * turn * square + alpha * twice)
        return self._vector(across, up, -m * self.gravity * alpha * turn)

    def jacobian_along(self, q: Numbers, dq: Numbers) -> Numbers:
        """δG."""
        phi, turn = self._all(q)[..., PHI], self._all(dq)[..., PHI]
        return self._rows([(x * np.sin(phi) - z * np.cos(phi)) * turn for x, z in self.wheels], 0.0)

    def gamma_along(self, q: Numbers, v: Numbers, dq: Numbers, dv: Numbers) -> Numbers:
        """δγ."""
        phi, rate = self._all(q)[..., PHI], self._all(v)[..., PHI]
        turn, change = self._all(dq)[..., PHI], self._all(dv)[..., PHI]
        columns = [
            -(z * np.sin(phi) + x * np.cos(phi)) * turn * rate**2
            + 2 * (z * np.cos(phi) - x * np.sin(phi)) * rate * change
            for x, z in self.wheels
        ]
        return np.stack(columns, axis=-1)

    # --- what follows from them ---------------------------------------------------------------------------------

    def inverse_dynamics(self, q: Numbers, v: Numbers, a: Numbers) -> Numbers:
        """τ = H a + c."""
        return _times(self.mass_matrix(q), a) + self.bias(q, v)

    def inverse_dynamics_along(self, q: Numbers, v: Numbers, a: Numbers, *D: Numbers) -> Numbers:
        """δτ."""
        dq, dv, da = D
        change = _times(self.mass_matrix_along(q, dq), a) + _times(self.mass_matrix(q), da)
        return change + self.bias_along(q, v, dq, dv)

    def forward_dynamics(self, q: Numbers, v: Numbers, tau: Numbers) -> Numbers:
        """a = H⁻¹ (τ − c)."""
        return solve(self.mass_matrix(q), (tau - self.bias(q, v))[..., None])[..., 0]

    def forward_dynamics_along(self, q: Numbers, v: Numbers, tau: Numbers, *D: Numbers) -> Numbers:
        """δa = H⁻¹ (δτ − δH a − δc).   [kudruss2019] proposition 3"""
        dq, dv, dtau = D
        a = self.forward_dynamics(q, v, tau)
        right = dtau - _times(self.mass_matrix_along(q, dq), a) - self.bias_along(q, v, dq, dv)
        return solve(self.mass_matrix(q), right[..., None])[..., 0]

    def constrained_dynamics(self, q: Numbers, v: Numbers, tau: Numbers) -> Numbers:
        """Accelerations and then forces: [kudruss2019] (1)."""
        right = np.concatenate([tau - self.bias(q, v), self.gamma(q, v)], axis=-1)
        return solve(saddle(self.mass_matrix(q), self.jacobian(q)), right[..., None])[..., 0]

    def constrained_dynamics_along(self, q: Numbers, v: Numbers, tau: Numbers, *D: Numbers) -> Numbers:
        """Their slopes: [kudruss2019] algorithm 4."""
        dq, dv, dtau = D
        x = self.constrained_dynamics(q, v, tau)
        change = saddle(self.mass_matrix_along(q, dq), self.jacobian_along(q, dq))
        right = np.concatenate([dtau - self.bias_along(q, v, dq, dv), self.gamma_along(q, v, dq, dv)], axis=-1)
        right = right - _times(change, x)
        return solve(saddle(self.mass_matrix(q), self.jacobian(q)), right[..., None])[..., 0]

    # --- parts --------------------------------------------------------------------------------------------------

    def _all(self, x: Numbers) -> Numbers:
        """x, z, φ and θ, or how they change, (..., 4)."""
        whole = np.zeros((*x.shape[:-1], 4), dtype=x.dtype)
        whole[..., self.coordinates] = x
        return whole

    def _turn(self, x: Numbers) -> Numbers:
        """ψ, or how it changes."""
        whole = self._all(x)
        return whole[..., PHI] + whole[..., THETA]

    def _rod(self, q: Numbers) -> tuple[Numbers, Numbers]:
        """α and β."""
        psi = self._turn(q)
        return -self.rod_centre * np.cos(psi), self.rod_centre * np.sin(psi)

    def _matrix(self, across: Numbers, up: Numbers, *, constant: bool) -> Numbers:
        """A matrix of the pattern of H, with its constant entries or with zeros."""
        H = np.zeros((*np.shape(across), 4, 4), dtype=across.dtype)
        if constant:
            H[..., X, X] = H[..., Z, Z] = self.box_mass + self.rod_mass
            H[..., PHI, PHI] = H[..., PHI, THETA] = H[..., THETA, PHI] = H[..., THETA, THETA] = self.rod_inertia
            H[..., PHI, PHI] += self.box_inertia
        for turn in (PHI, THETA):
            H[..., X, turn] = H[..., turn, X] = across
            H[..., Z, turn] = H[..., turn, Z] = up
        return H[..., self.coordinates, :][..., self.coordinates]

    def _vector(self, across: Numbers, up: Numbers, about: Numbers) -> Numbers:
        return np.stack([across, up, about, about], axis=-1)[..., self.coordinates]

    def _rows(self, about: list[Numbers], up: float) -> Numbers:
        """Rows of the pattern of G."""
        G = np.zeros((*about[0].shape, len(about), 4), dtype=about[0].dtype)
        G[..., Z] = up
        G[..., PHI] = np.stack(about, axis=-1)
        return G[..., self.coordinates]


def saddle(H: Numbers, G: Numbers) -> Numbers:
    """[H −Gᵀ; G 0], of stacks of matrices."""
    n, m = H.shape[-1], G.shape[-2]
    K = np.zeros((*H.shape[:-2], n + m, n + m), dtype=H.dtype)
    K[..., :n, :n], K[..., :n, n:], K[..., n:, :n] = H, -G.swapaxes(-1, -2), G
    return K


def _times(A: Numbers, x: Numbers) -> Numbers:
    """A x"""
    product: Numbers = A * x[..., None, :]
    return np.asarray(product.sum(axis=-1))


def solve(A: Numbers, B: Numbers) -> Numbers:
    """A⁻¹ B for stacks of small systems by elimination with pivots, in the precision of the numbers given.

    >>> solve(np.array([[0.0, 2.0], [1.0, 1.0]], EXTENDED), np.array([[2.0], [3.0]], EXTENDED)).ravel().astype(float)
    array([2., 1.])
    """
    n = A.shape[-1]
    shape = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    parts = (np.broadcast_to(A, (*shape, n, n)), np.broadcast_to(B, (*shape, n, B.shape[-1])))
    work = np.concatenate(parts, axis=-1).reshape(-1, n, n + B.shape[-1])
    states = np.arange(len(work))
    for k in range(n):
        pivot = k + np.abs(work[:, k:, k]).argmax(axis=1)
        work[states, k], work[states, pivot] = work[states, pivot], work[states, k].copy()
        work[:, k] /= work[:, k, k, None].copy()
        others = [i for i in range(n) if i != k]
        work[:, others] -= work[:, others, k, None] * work[:, None, k]
    return work[:, :, n:].reshape(*shape, n, B.shape[-1])
