"""The map from coordinates and speeds to joints, its derivatives, and results carried back along it.

With q, v, a in coordinates and hats on what belongs to joints,

    q̂ = f(q),    v̂ = G(q) v,    â = G(q) a + γ(q, v),    τ = Gᵀ τ̂,    M = Gᵀ M̂ G

and at q ⊕ δ, where δ is a small change of configuration given as speeds are (a sum for coordinates of one number, a
turn in the child's frame for quaternions),

    dq̂ = G δ,    dv̂ = V δ + G dv,    dâ = A δ + C dv + G da,    dτ = Gᵀ dτ̂ + W δ                      (1)

V, A, C are derivatives of G v and of â, and W that of Gᵀ τ̂ at fixed τ̂.  All have few entries:

=========  ===============  =============================================  ======================================
           joints           a coupling q̂ᵢ = fᵢ(q)                           a quaternion, its chart hinges x, y, z
=========  ===============  =============================================  ======================================
G          1                fᵢ′                                            1 (and 0 at the hinges of the pose)
γ          0                fᵢ″ v²                                         (−ω₂ω₃, ω₁ω₃, −ω₁ω₂)
V          0                fᵢ″ v                                          B(ω)
A          0                fᵢ″ a + fᵢ‴ v²                                  B(α) + D(ω)
C          0                2 fᵢ″ v                                        ∂γ/∂ω
W          0                Σ fᵢ″ τ̂ᵢ                                       E(τ̂) (and dampers, see ``_chart_turn``)
=========  ===============  =============================================  ======================================

Of the chart: with the hinges x, y, z at angles ε, the child turns at ω = J(ε) ε̇ in its own frame, where the columns of
J are the hinges' axes there.  Hence ε̇ = K(ε) ω with K = J⁻¹,

    ε̇ = (c₃ω₁ − s₃ω₂) / c₂,    s₃ω₁ + c₃ω₂,    ω₃ − (s₂/c₂) (c₃ω₁ − s₃ω₂)                              (2)

and ε̈ = K ω̇ + K̇ ω.  At ε = 0 these are ω and α + γ; their derivatives by ε, which is δ to first order, are V and A, and
that of Kᵀ τ̂ is W.

Every function here multiplies and adds numbers one by one in a fixed order, so that a state gives the same bits
in any batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.model import Model
from kinegrad.model.coordinates import HINGES, POSE, Layout

__all__ = ["Chart", "Entries", "pose_angles"]

Array = NDArray[Any]  # float64; complex128 where a test differentiates by complex step
quietly = np.errstate(all="ignore")  # what overflows is found by who asked for it


class Entries:
    """G, V, A or C: its entries at coupled joints, (..., k), and at the charts of quaternions, (..., 3, 3) each.

    Where `unit`, joints that are their own coordinates, and chart hinges, have entries of one; else zero.
    """

    def __init__(self, layout: Layout, coupled: Array, charts: Sequence[Array] = (), *, unit: bool = False) -> None:
        self.layout, self.coupled, self.charts, self.unit = layout, coupled, charts, unit

    @quietly
    def push(self, x: Array) -> Array:
        """From speeds, (..., nv), to joints, (..., n)."""
        layout = self.layout
        batch = common(x.shape[:-1], self.coupled.shape[:-1], *(b.shape[:-2] for b in self.charts))
        pushed = np.zeros((*batch, layout.n), dtype=np.result_type(x, self.coupled))
        if self.unit:
            pushed[..., layout.moved] = x[..., layout.moved_v]
        if layout.functions:
            pushed[..., layout.coupled] = self.coupled * x[..., layout.coupled_v]
        if not self.unit:
            for chart, (first, _, v) in zip(self.charts, layout.balls, strict=True):
                pushed[..., first + POSE : first + len(HINGES)] = product(chart, x[..., v : v + 3])
        return pushed

    @quietly
    def pull(self, D: Array, axis: int = -1, inner: int | None = None) -> Array:
        """From joints to speeds along an axis of D, counted from the end: D times the matrix, where that is G.

        `inner` axes of D besides this one are not those of the batch; all behind it, if not given.
        """
        layout, lift = self.layout, (..., *(None,) * (-axis - 1 if inner is None else inner))
        pulled = D.take(layout.joint_of, axis=axis)
        behind = (slice(None),) * (-axis - 1)
        for k, (joint, v, first) in enumerate(zip(layout.coupled, layout.coupled_v, layout.leads, strict=True)):
            entry = D[(..., joint, *behind)] * self.coupled[..., k][lift]
            if first:
                pulled[(..., v, *behind)] = entry
            else:
                pulled[(..., v, *behind)] += entry
        return pulled

    @quietly
    def add_pulled(self, onto: Array, D: Array, inner: int) -> None:
        """Add D times the matrix, from joints, the last axis of D, to speeds, where that is V, A or C."""
        layout, lift = self.layout, (..., *(None,) * inner)
        for k, (joint, v) in enumerate(zip(layout.coupled, layout.coupled_v, strict=True)):
            onto[..., v] += D[..., joint] * self.coupled[..., k][lift]
        for chart, (first, _, v) in zip(self.charts, layout.balls, strict=True):
            for row in range(3):
                part = chart[..., row, :]
                part = part.reshape(*part.shape[:-1], *(1,) * inner, 3)
                onto[..., v : v + 3] += D[..., first + POSE + row, None] * part


class Chart:
    """The map at states q, with v and a where they are known: all of shape (..., nq) or (..., nv), checked before.

    Attributes
    ----------
    model, primitive : Model
        The model, and the same one with every joint its own coordinate.
    """

    def __init__(self, model: Model, q: Array, v: Array | None = None, a: Array | None = None) -> None:
        self.model, self.primitive, self.layout = model, model.primitive, model.layout
        self._q, self._v, self._a = q, v, a
        self._known: list[Array] = []

    # --- values -----------------------------------------------------------------------------------------------------

    @cached_property
    def q(self) -> Array:
        """q̂, (..., n)."""
        layout, q = self.layout, self._q
        found = np.zeros((*q.shape[:-1], layout.n), dtype=q.dtype)
        found[..., layout.plain] = q[..., layout.plain_q]
        if layout.functions:
            found[..., layout.coupled] = self.f(0)
        for first, k, _ in layout.balls:
            found[..., first : first + POSE] = pose_angles(q[..., k : k + 4])
        return found

    @cached_property
    def v(self) -> Array:
        """v̂, (..., n)."""
        return self.G.push(self.speeds)

    @cached_property
    @quietly
    def a(self) -> Array:
        """â, (..., n)."""
        return self.G.push(self._a) + self.drift if self._a is not None else self.drift

    @cached_property
    @quietly
    def drift(self) -> Array:
        """γ, (..., n): â where a is zero."""
        layout, v = self.layout, self.speeds
        coupled = self.f(2) * v[..., layout.coupled_v] ** 2
        batch = common(coupled.shape[:-1], v.shape[:-1])
        found = np.zeros((*batch, layout.n), dtype=np.result_type(coupled, v))
        found[..., layout.coupled] = coupled
        for first, _, k in layout.balls:
            x, y, z = (v[..., k + i] for i in range(3))
            for i, entry in enumerate((-y * z, x * z, -x * y)):
                found[..., first + POSE + i] = entry
        return found

    @property
    def speeds(self) -> Array:
        """v, zero where it was not given."""
        return np.zeros((self.layout.nv,)) if self._v is None else self._v

    @property
    def accelerations(self) -> Array:
        """a, zero where it was not given."""
        return np.zeros((self.layout.nv,)) if self._a is None else self._a

    # --- entries of the map -----------------------------------------------------------------------------------------

    @cached_property
    def G(self) -> Entries:
        """∂v̂/∂v = ∂q̂/∂δ = ∂â/∂a."""
        return Entries(self.layout, self.f(1), unit=True)

    @cached_property
    @quietly
    def V(self) -> Entries:
        """∂v̂/∂δ."""
        return self.weight_slope(self.speeds)

    @cached_property
    @quietly
    def A(self) -> Entries:
        """∂â/∂δ."""
        v, a, layout = self.speeds, self.accelerations, self.layout
        coupled = self.f(2) * a[..., layout.coupled_v] + self.f(3) * v[..., layout.coupled_v] ** 2
        charts = [_turned(a[..., k : k + 3]) + _turned_drift(v[..., k : k + 3]) for _, _, k in layout.balls]
        return Entries(layout, coupled, charts)

    @cached_property
    @quietly
    def C(self) -> Entries:
        """∂â/∂v."""
        v = self.speeds
        coupled = 2 * self.f(2) * v[..., self.layout.coupled_v]
        return Entries(self.layout, coupled, [_drift_slope(v[..., k : k + 3]) for _, _, k in self.layout.balls])

    @quietly
    def weight_slope(self, w: Array) -> Entries:
        """∂(G w)/∂δ, which is V with w in the place of v."""
        coupled = self.f(2) * w[..., self.layout.coupled_v]
        return Entries(self.layout, coupled, [_turned(w[..., k : k + 3]) for _, _, k in self.layout.balls])

    def f(self, order: int) -> Array:
        """Derivatives of couplings' functions of one order, (..., k)."""
        if len(self._known) <= order:
            layout, up_to = self.layout, order if order < 2 else max(order, 3)
            empty = np.zeros((*self._q.shape[:-1], 0), dtype=self._q.dtype)
            each = [
                f.derivatives(self._q[..., k], up_to) for f, k in zip(layout.functions, layout.coupled_q, strict=True)
            ]
            self._known = [np.stack(row, axis=-1) for row in zip(*each, strict=True)] or [empty] * (up_to + 1)
        return self._known[order]

    # --- results ----------------------------------------------------------------------------------------------------

    def forces(self, tau: Array) -> Array:
        """τ = Gᵀ τ̂, (..., nv)."""
        return self.G.pull(tau)

    def matrix(self, M: Array) -> Array:
        """Gᵀ M̂ G, (..., nv, nv)."""
        return self.G.pull(self.G.pull(M, -2), inner=1)

    def by_configuration(self, Dq: Array, Dv: Array | None = None, Da: Array | None = None, *, inner: int) -> Array:
        """Derivatives by δ of what has derivatives Dq, Dv, Da by q̂, v̂, â (last axis); (1).

        `inner` axes are between those of the batch and the last.
        """
        found = self.G.pull(Dq, inner=inner)
        if Dv is not None:
            self.V.add_pulled(found, Dv, inner)
        if Da is not None:
            self.A.add_pulled(found, Da, inner)
        return found

    def by_speed(self, Dv: Array, Da: Array | None = None, *, inner: int) -> Array:
        """The same by v."""
        found = self.G.pull(Dv, inner=inner)
        if Da is not None:
            self.C.add_pulled(found, Da, inner)
        return found

    def by_acceleration(self, Da: Array, *, inner: int) -> Array:
        """The same by a."""
        return self.G.pull(Da, inner=inner)

    @quietly
    def add_turn(self, onto: Array, tau: Array) -> None:
        """Add W, (..., nv, nv): how Gᵀ τ̂ changes with δ at fixed τ̂."""
        for k, (joint, v) in enumerate(zip(self.layout.coupled, self.layout.coupled_v, strict=True)):
            onto[..., v, v] += self.f(2)[..., k] * tau[..., joint]
        for ball in self.layout.balls:
            v = ball[2]
            for row, column, entry in self._chart_turn(ball, tau):
                onto[..., v + row, v + column] += entry

    @quietly
    def turn(self, tau: Array, delta: Array) -> Array:
        """W δ, (..., nv)."""
        return self._turn(tau, delta, transposed=False)

    @quietly
    def turn_transposed(self, tau: Array, w: Array) -> Array:
        """Wᵀ w, (..., nv)."""
        return self._turn(tau, w, transposed=True)

    def _turn(self, tau: Array, x: Array, *, transposed: bool) -> Array:
        batch = common(tau.shape[:-1], x.shape[:-1], self._q.shape[:-1], self.speeds.shape[:-1])
        found = np.zeros((*batch, self.layout.nv))
        for k, (joint, v) in enumerate(zip(self.layout.coupled, self.layout.coupled_v, strict=True)):
            found[..., v] += self.f(2)[..., k] * tau[..., joint] * x[..., v]
        for ball in self.layout.balls:
            v = ball[2]
            for entry in self._chart_turn(ball, tau):
                to, of = (entry[1], entry[0]) if transposed else (entry[0], entry[1])
                found[..., v + to] += entry[2] * x[..., v + of]
        return found

    def _chart_turn(self, ball: tuple[int, int, int], tau: Array) -> list[tuple[int, int, Array]]:
        """Rows, columns and entries of W of a quaternion: E(τ̂ − d ω) − d B(ω).

        Its dampers d resist ω and not ε̇, so that what they contribute to Gᵀ τ̂ does not change with δ.
        """
        first, _, v = ball
        d = self.model.damping[first + POSE : first + len(HINGES)]
        w = [self.speeds[..., v + i] for i in range(3)]
        x, y, z = (tau[..., first + POSE + i] - d[i] * w[i] for i in range(3))
        return [(0, 1, -z), (0, 2, y + d[0] * w[1]), (1, 2, -x - d[1] * w[0]), (2, 1, d[2] * w[0])]

    @quietly
    def push(self, dq: Array, dv: Array, da: Array | None = None) -> tuple[Array, Array, Array]:
        """dq̂, dv̂, dâ of a direction δ, dv, da; (1)."""
        by_a = self.A.push(dq) + self.C.push(dv)
        return self.G.push(dq), self.V.push(dq) + self.G.push(dv), by_a if da is None else by_a + self.G.push(da)


def pose_angles(quaternion: Array) -> Array:
    """Angles of hinges z, y, x that turn as a quaternion (w, x, y, z) does, (..., 3).

    Exact to rounding everywhere: near the singular position of the second hinge the first angle is anything, and the
    third is what remains.
    """
    q = unit(quaternion)
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    xx, yy, zz, wx, wy, wz, xy, xz, yz = x * x, y * y, z * z, w * x, w * y, w * z, x * y, x * z, y * z
    r00, r10 = 1 - 2 * (yy + zz), 2 * (xy + wz)
    across = np.sqrt(r00 * r00 + r10 * r10)
    some = across > 0
    length = np.where(some, across, 1.0)
    sine, cosine = np.where(some, r10, 0.0) / length, np.where(some, r00, 1.0) / length
    angles = np.empty((*q.shape[:-1], 3))
    angles[..., 0] = np.arctan2(sine, cosine)
    angles[..., 1] = np.arctan2(2 * (wy - xz), across)
    angles[..., 2] = np.arctan2(
        2 * (sine * (xz + wy) - cosine * (yz - wx)), cosine * (1 - 2 * (xx + zz)) - sine * (2 * (xy - wz))
    )
    return angles


def unit(quaternion: Array) -> Array:
    """Quaternions divided by their length, in memory of their own."""
    w, x, y, z = (quaternion[..., k] for k in range(4))
    return np.ascontiguousarray(quaternion / np.sqrt(w * w + x * x + y * y + z * z)[..., None])


def common(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """What shapes broadcast to; mostly they are equal."""
    first = shapes[0]
    return first if all(shape == first for shape in shapes) else np.broadcast_shapes(*shapes)


def product(matrix: Array, x: Array) -> Array:
    """3×3 matrices times vectors, in a fixed order."""
    first, second, third = (np.asarray(matrix[..., k] * x[..., k, None]) for k in range(3))
    return np.asarray(first + second + third)


def _rows(*rows: Sequence[Array]) -> Array:
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def _turned(w: Array) -> Array:
    """B(ω) = ∂(K ω)/∂ε at ε = 0, from (2)."""
    x, y, _ = np.moveaxis(w, -1, 0)
    o = np.zeros_like(x)
    return _rows((o, o, -y), (o, o, x), (o, -x, o))


def _turned_drift(w: Array) -> Array:
    """D(ω) = ∂(K̇ ω)/∂ε at ε = 0, from (2)."""
    x, y, z = np.moveaxis(w, -1, 0)
    o = np.zeros_like(x)
    return _rows((o, 2 * x * y, -x * z), (o, -x * x, -y * z), (o, y * z, y * y - x * x))


def _drift_slope(w: Array) -> Array:
    """∂γ/∂ω."""
    x, y, z = np.moveaxis(w, -1, 0)
    o = np.zeros_like(x)
    return _rows((o, -z, -y), (z, o, x), (-y, -x, o))
