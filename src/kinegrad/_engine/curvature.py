"""Second derivatives of a weighted sum of torques in coordinates that are not joints.

With the hats of ``_engine/coordinates.py``, φ = wᵀτ = ŵᵀτ̂(q̂, v̂, â) and ŵ = G w.  So φ depends on the coordinates
through x̂ = (q̂, v̂, â, ŵ), and by the chain rule, for x of (δ, v, a),

    ∂²φ/∂x∂x = Jᵀ Ĥ J + Σ ĝ_k ∂²x̂_k/∂x∂x,         ĝ = ∂φ/∂x̂ = (∂φ/∂q̂, ∂φ/∂v̂, ∂φ/∂â, τ̂)                      (1)

where J has the entries G, V, A, C and U = ∂ŵ/∂δ, and Ĥ has the second derivatives of joints and, because φ is linear in
ŵ, the first derivatives of τ̂ in the rows of ŵ.  What the last term of (1) adds, the *curvature* of the map, is

=========  =====================================================================  =====================
           a coupling q̂ᵢ = fᵢ(q), summed over its joints                           a quaternion
=========  =====================================================================  =====================
∂δ∂δ       ĝ_q f″ + ĝ_v f‴ v + ĝ_a (f‴ a + f⁗ v²) + τ̂ f‴ w                          (2), (3)
∂δ∂v       ĝ_v f″ + 2 ĝ_a f‴ v
∂δ∂a       ĝ_a f″
∂v∂v       2 ĝ_a f″
=========  =====================================================================  =====================

For a quaternion, δ is the rotation vector of q ⊕ δ in the child's frame.  That is symmetric: φ(q ⊕ δ) is an ordinary
function of δ.  Of the chart hinges at ε, exp(δ×) = R_x(ε₁) R_y(ε₂) R_z(ε₃) gives

    ε = δ − ½ (δ₂δ₃, −δ₁δ₃, δ₁δ₂) + O(δ³)                                                                    (2)

(Baker–Campbell–Hausdorff), their rates follow by (2) of ``_engine/coordinates.py``, and differentiating that by time,

    ε̈ = K α + (−ε̇₂ε̇₃/c₂ + ε̇₁ε̇₂ s₂/c₂,  ε̇₁ε̇₃ c₂,  −ε̇₁ε̇₂/c₂ + ε̇₂ε̇₃ s₂/c₂)                                  (3)

All of it is expanded to second order in (δ, ω, α), with :class:`Jet`.  Dampers of a ball resist ω, whatever δ is, and
have no second derivatives; so the mechanism is used without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.coordinates import Chart, Entries, quietly
from kinegrad._engine.tables import once
from kinegrad.model import Model
from kinegrad.model.coordinates import HINGES, POSE

__all__ = ["Curvature", "hessian_in_coordinates", "product_in_coordinates", "without_ball_dampers"]

Array = NDArray[np.float64]
BLOCKS = {"qq": (0, 0), "qv": (0, 1), "qa": (0, 2), "vv": (1, 1)}  # of the variables δ, ω, α of a jet


class Gradient(NamedTuple):
    """ĝ of (1), of shape (..., n) each."""

    by_q: Array
    by_v: Array
    by_a: Array
    tau: Array


class Jet:
    """A number to second order in 9 variables: value (...), slopes (..., 9), second derivatives (..., 9, 9)."""

    def __init__(self, value: Any, slope: Any, second: Any) -> None:
        self.value, self.slope, self.second = value, slope, second

    @classmethod
    def variable(cls, k: int, value: Array) -> Jet:
        """Variable number k."""
        return cls(value, np.eye(9)[k], np.zeros((9, 9)))

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.value + other.value, self.slope + other.slope, self.second + other.second)

    def __mul__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            x = np.asarray(other)
            return Jet(x * self.value, x[..., None] * self.slope, x[..., None, None] * self.second)
        x, y = np.asarray(self.value), np.asarray(other.value)
        mixed = self.slope[..., :, None] * other.slope[..., None, :]
        second = x[..., None, None] * other.second + y[..., None, None] * self.second + (mixed + mixed.swapaxes(-1, -2))
        return Jet(x * y, x[..., None] * other.slope + y[..., None] * self.slope, second)

    __rmul__ = __mul__

    def __sub__(self, other: Jet) -> Jet:
        return self + other * -1.0


class Curvature:
    """The last term of (1), block by block: entries of couplings, (..., k), and of quaternions, (..., 3, 3) each."""

    @quietly
    def __init__(self, at: Chart, w: Array, g: Gradient) -> None:
        layout, self.layout = at.layout, at.layout
        joint, speed = layout.coupled, layout.coupled_v
        by_q, by_v, by_a, tau = (x[..., joint] for x in g)
        v, a, y = (x[..., speed] for x in (at.speeds, at.accelerations, w))
        f2, f3, f4 = (at.f(order) for order in (2, 3, 4))
        self.coupled = {
            "qq": by_q * f2 + by_v * f3 * v + by_a * (f3 * a + f4 * v * v) + tau * f3 * y,
            "qv": by_v * f2 + 2.0 * (by_a * f3 * v),
            "qa": by_a * f2,
            "vv": 2.0 * (by_a * f2),
        }
        each = [_ball(ball, at.speeds, at.accelerations, w, g) for ball in layout.balls]
        self.balls = {
            name: [second[..., 3 * i : 3 * i + 3, 3 * j : 3 * j + 3] for second in each]
            for name, (i, j) in BLOCKS.items()
        }

    @quietly
    def add_to(self, onto: Array, name: str) -> None:
        """Add a block to a matrix, (..., nv, nv)."""
        for k, v in enumerate(self.layout.coupled_v):
            onto[..., v, v] += self.coupled[name][..., k]
        for (_, _, v), second in zip(self.layout.balls, self.balls[name], strict=True):
            onto[..., v : v + 3, v : v + 3] += second

    @quietly
    def add_product(self, onto: Array, name: str, x: Array, *, transposed: bool = False) -> None:
        """Add a block times x, (..., nv), to a vector."""
        for k, v in enumerate(self.layout.coupled_v):
            onto[..., v] += self.coupled[name][..., k] * x[..., v]
        for (_, _, v), second in zip(self.layout.balls, self.balls[name], strict=True):
            for k in range(3):
                column = second[..., k, :] if transposed else second[..., :, k]
                onto[..., v : v + 3] += column * x[..., v + k, None]


def _ball(ball: tuple[int, int, int], v: Array, a: Array, w: Array, g: Gradient) -> Array:
    """The curvature of one quaternion by (δ, ω, α), (..., 9, 9)."""
    first, _, at = ball
    zero = np.zeros(())
    delta = [Jet.variable(k, zero) for k in range(3)]
    omega, alpha = ([Jet.variable(3 * s + k, x[..., at + k]) for k in range(3)] for s, x in ((1, v), (2, a)))
    x, y, z = delta
    e = x - (y * z) * 0.5, y + (x * z) * 0.5, z - (x * y) * 0.5
    none = np.zeros(9), np.zeros((9, 9))
    rate, virtual = _rates(e, omega), _rates(e, [Jet(w[..., at + k], *none) for k in range(3)])
    c, inverse = _one() - e[1] * e[1] * 0.5, _one() + e[1] * e[1] * 0.5  # cos and its inverse; sin and tan are ε itself
    xy, xz, yz = rate[0] * rate[1], rate[0] * rate[2], rate[1] * rate[2]
    drift = xy * e[1] - yz * inverse, xz * c, yz * e[1] - xy * inverse
    total = Jet(zero, *none)
    for k, (turned, drifted) in enumerate(zip(_rates(e, alpha), drift, strict=True)):
        by_q, by_v, by_a, tau = (part[..., first + POSE + k] for part in g)
        total = total + e[k] * by_q + rate[k] * by_v + (turned + drifted) * by_a + virtual[k] * tau
    return np.asarray(total.second)


def _one() -> Jet:
    return Jet(np.ones(()), np.zeros(9), np.zeros((9, 9)))


def _rates(e: Any, w: Any) -> tuple[Jet, Jet, Jet]:
    """K(ε) ω to second order in ε: (2) of ``_engine/coordinates.py``."""
    c2, c3 = _one() + e[1] * e[1] * 0.5, _one() - e[2] * e[2] * 0.5
    across = c3 * w[0] - e[2] * w[1]
    return across * c2, e[2] * w[0] + c3 * w[1], w[2] - e[1] * across


@quietly
def hessian_in_coordinates(
    at: Chart,
    w: Array,
    gradient: Sequence[Array],
    first: tuple[Array, Array, Array],
    second: tuple[Array, Array, Array, Array],
    *,
    across: bool = False,
) -> list[Array]:
    """(1): the blocks ∂δ∂δ, ∂δ∂v, ∂δ∂a, ∂v∂v, (..., nv, nv) each, from those of joints and ∂τ̂/∂(q̂, v̂, â).

    `across`: entries of joints on different branches need not be zero, as those of constraints between them are not.
    """
    (t_q, t_v, t_a), (qq, qv, qa, vv), U = first, second, at.weight_slope(w)
    curvature = Curvature(at, w, Gradient(*gradient))

    def left(by_q: Array, by_v: Array | None, by_a: Array | None, by_w: Array) -> Array:
        """(∂x̂/∂δ)ᵀ times what has rows of q̂, v̂, â and ŵ."""
        rows = [None if x is None else x.swapaxes(-1, -2) for x in (by_q, by_v, by_a)]
        found = at.by_configuration(rows[0], rows[1], rows[2], inner=1)  # type: ignore[arg-type]
        U.add_pulled(found, by_w.swapaxes(-1, -2), 1)
        return np.ascontiguousarray(found.swapaxes(-1, -2))

    by_q = at.by_configuration(qq, qv, qa, inner=1)
    by_v = at.by_configuration(qv.swapaxes(-1, -2), vv, inner=1)
    by_a = at.by_configuration(qa.swapaxes(-1, -2), inner=1)
    for onto, t in ((by_q, t_q), (by_v, t_v), (by_a, t_a)):
        U.add_pulled(onto, t.swapaxes(-1, -2), 1)
    found = left(by_q, by_v, by_a, at.by_configuration(t_q, t_v, t_a, inner=1))
    by_speeds = at.G.pull(at.G.pull(vv, inner=1), -2) if across else at.matrix(vv)
    blocks = [
        0.5 * (found + found.swapaxes(-1, -2)),  # which is symmetric but for rounding
        left(at.by_speed(qv, qa, inner=1), at.by_speed(vv, inner=1), None, at.by_speed(t_v, t_a, inner=1)),
        left(at.by_acceleration(qa, inner=1), None, None, at.by_acceleration(t_a, inner=1)),
        by_speeds,
    ]
    for block, name in zip(blocks, BLOCKS, strict=True):
        curvature.add_to(block, name)
    return blocks


@quietly
def product_in_coordinates(
    at: Chart,
    w: Array,
    gradient: Sequence[Array],
    change: Sequence[Array],
    direction: tuple[Array, Array, Array],
    U: Entries,
) -> list[Array]:
    """(1) times a direction (δ, dv, da), three vectors (..., nv), from how ĝ changes along it."""
    (dq, dv, da), to = direction, Gradient(*change)
    curvature = Curvature(at, w, Gradient(*gradient))
    by_q = at.by_configuration(to.by_q, to.by_v, to.by_a, inner=0)
    U.add_pulled(by_q, to.tau, 0)
    by_v, by_a = at.by_speed(to.by_v, to.by_a, inner=0), at.by_acceleration(to.by_a, inner=0)
    for name, x in (("qq", dq), ("qv", dv), ("qa", da)):
        curvature.add_product(by_q, name, x)
    curvature.add_product(by_v, "qv", dq, transposed=True)
    curvature.add_product(by_v, "vv", dv)
    curvature.add_product(by_a, "qa", dq, transposed=True)
    return [by_q, by_v, by_a]


def without_ball_dampers(model: Model) -> Model:
    """The joints of a model, without the dampers of quaternions; made once."""
    found: Model = once(model, "without ball dampers", lambda: _without_ball_dampers(model))
    return found


def _without_ball_dampers(model: Model) -> Model:
    damping = np.array(model.primitive.damping)
    for first, _, _ in model.layout.balls:
        damping[first : first + len(HINGES)] = 0.0
    return (
        model.primitive
        if np.array_equal(damping, model.primitive.damping)
        else model.primitive.replace(damping=damping)
    )
