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

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.gate import kernel_array
from kinegrad._engine.pool import Call
from kinegrad._kernels.coordinates import NOT_UNIT, contract, contract_derivatives, contract_matrix, expand
from kinegrad._kernels.lanes.finite import FINE, LARGE, NOT_FINITE
from kinegrad.model import Model
from kinegrad.model.coordinates import HINGES, POSE, Layout

__all__ = ["Chart", "Entries", "map_table", "unit"]

Array = NDArray[Any]
_FEW = 1_000_000  # joint-states that take a fraction of a second
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
    """The map at states q, with v and a where they are known: all of shape (..., nq) or (..., nv), of shapes checked
    before.  Values are those of the kernel ``expand``.

    Attributes
    ----------
    model, primitive : Model
        The model, and the same one with every joint its own coordinate.
    shape : tuple of int
        The common batch shape.
    q, v, a : ndarray, shape (..., n)
        q̂, v̂ and â of all states; where v or a is not given, it is zero.
    slope : ndarray, shape (..., n)
        The one entry of G that each joint has, or zero.
    status : int
        What the kernel says of the numbers.
    """

    def __init__(
        self, model: Model, shape: tuple[int, ...], q: Array, v: Array | None = None, a: Array | None = None
    ) -> None:
        self.model, self.primitive, self.layout, self.shape = model, model.primitive, model.layout, shape
        self._q, self._v, self._a = q, v, a
        count, n, k = math.prod(shape), self.layout.n, len(self.layout.coupled)
        joints, bend = np.empty((4, count, n)), np.empty((count, 2 * k))
        given = [_flat(x, shape, count) for x in (q, self.speeds, self.accelerations)]
        self._motion = given[1:]
        arguments = (map_table(model)[0], *given, *joints, bend)
        self.status = _in_parts(lambda start, stop: expand(*arguments, start, stop), count, n)
        self.q, self.v, self.a, self.slope = joints.reshape(4, *shape, n)
        self._bend = bend.reshape(*shape, 2 * k)

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
        """f′, f″, f‴ or f⁗ of all coupled joints, (..., k)."""
        k = len(self.layout.coupled)
        if order == 4:  # which only second derivatives need
            found = np.zeros((*self._q.shape[:-1], k))
            for number, (f, column) in enumerate(zip(self.layout.functions, self.layout.coupled_q, strict=True)):
                found[..., number] = f.derivatives(self._q[..., column], order)[order]
            return found
        return (
            self.slope[..., self.layout.coupled] if order == 1 else self._bend[..., (order - 2) * k : (order - 1) * k]
        )

    # --- results ----------------------------------------------------------------------------------------------------

    def forces(self, tau: Array) -> Array:
        """τ = Gᵀ τ̂, (..., nv), of τ̂ of all states."""
        count, n, nv = math.prod(self.shape), self.layout.n, self.layout.nv
        found = np.empty((count, nv))
        given = map_table(self.model)[1], self.slope.reshape(count, n), _flat(tau, self.shape, count), found
        _in_parts(lambda start, stop: contract(*given, start, stop), count, n)
        return found.reshape(*self.shape, nv)

    def matrix(self, M: Array) -> Array:
        """Gᵀ M̂ G, (..., nv, nv), of M̂ of all states."""
        count, n, nv = math.prod(self.shape), self.layout.n, self.layout.nv
        found = np.empty((count, nv * nv))
        given = entry_table(self.model), nv, self.slope.reshape(count, n), M.reshape(count, n * n), found
        _in_parts(lambda start, stop: contract_matrix(*given, start, stop), count, n * n)
        return found.reshape(*self.shape, nv, nv)

    def torque_derivatives(self, tau: Array, *by: Array) -> list[Array]:
        """∂τ/∂(δ, v, a), (..., nv, nv) each, from τ̂ and ∂τ̂/∂(q̂, v̂, â) of all states."""
        count, n, nv = math.prod(self.shape), self.layout.n, self.layout.nv
        found = np.empty((3, count, nv * nv))
        maps = map_table(self.model)[0], entry_table(self.model), kernel_array(self.model.damping)
        state = self.slope.reshape(count, n), self._bend.reshape(count, self._bend.shape[-1]), *self._motion
        given = *maps, *state, tau.reshape(count, n), *(x.reshape(count, n * n) for x in by), *found
        _in_parts(lambda start, stop: contract_derivatives(*given, start, stop), count, n * n)
        return list(found.reshape(3, *self.shape, nv, nv))

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
        batch = common(tau.shape[:-1], x.shape[:-1], self.shape)
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


def map_table(model: Model) -> tuple[tuple[Array, ...], Array]:
    """The table of ``_kernels/coordinates.py``, and the speed of each joint; made once per model."""
    found: tuple[tuple[Array, ...], Array] | None = model.__dict__.get("_map_table")
    if found is None:
        layout = model.layout
        alone = np.column_stack([layout.plain, layout.plain_q, layout.plain_v])
        curves = [f.pieces_from_knots() for f in layout.functions]
        ends = np.cumsum([0, *(len(pieces) for _, pieces in curves)])
        coupled = np.column_stack([layout.coupled, layout.coupled_q, layout.coupled_v, ends[:-1], ends[1:]])
        pieces = np.zeros((ends[-1], max((rows.shape[1] for _, rows in curves), default=1)))
        for first, (_, rows) in zip(ends[:-1], curves, strict=True):
            pieces[first : first + len(rows), : rows.shape[1]] = rows
        spans = np.array([span for span, _ in curves]).reshape(-1, 2)
        balls = np.array(layout.balls, dtype=np.int64).reshape(-1, 3)
        whole = [np.ascontiguousarray(x, dtype=np.int64) for x in (alone, coupled, balls)]
        found = (*whole, spans, pieces), layout.speed_of
        object.__setattr__(model, "_map_table", found)
    return found


def entry_table(model: Model) -> tuple[Array, Array]:
    """The entries `same` and `others` of ``_kernels/coordinates.py``, made once per model."""
    found: tuple[Array, Array] | None = model.__dict__.get("_entry_table")
    if found is None:
        layout, pattern = model.layout, model.primitive.topology.pattern
        number, hinge = np.full(layout.n, -1), np.full(layout.n, -1)
        number[layout.coupled] = np.arange(len(layout.coupled))
        for first, _, _ in layout.balls:
            hinge[first + POSE : first + len(HINGES)] = range(3)
        i, j = pattern.rows, pattern.cols
        table = np.column_stack([i, j, layout.speed_of[i], layout.speed_of[j], number[j], hinge[j]])
        table = table[(table[:, 2] >= 0) & (table[:, 3] >= 0)].astype(np.int64)
        same = (number[table[:, 0]] < 0) & (table[:, 4] < 0) & (table[:, 5] < 0)
        found = np.ascontiguousarray(table[same, :4]), np.ascontiguousarray(table[~same])
        object.__setattr__(model, "_entry_table", found)
    return found


def _flat(x: Array, shape: tuple[int, ...], count: int) -> Array:
    """x, (..., columns), as kernels take it: (states, columns), or (1, columns) where it is the same for all."""
    own, columns = x.shape[:-1], x.shape[-1]
    if own != shape:
        if math.prod(own) == 1:
            return kernel_array(x.reshape(1, columns))
        x = np.broadcast_to(x, (*shape, columns))
    return kernel_array(x.reshape(count, columns))


def _in_parts(work: Callable[[int, int], int], count: int, n: int) -> int:
    """``work(start, stop)`` on all states, in parts that do not keep Ctrl-C waiting; the gravest status of any."""
    if not count:
        return LARGE  # nothing was looked at
    if count * n <= _FEW:
        return work(0, count)
    found = list[int]()
    call = Call(1, count, _FEW // n + 1, 1)
    call.run(lambda _, start, stop: found.append(work(start, stop)))
    return next((status for status in (NOT_FINITE, NOT_UNIT, LARGE) if status in found), FINE)


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
