"""A motion between its samples.

Coordinates of one number are, between two samples, the polynomial of degree 5 that has q, v and a of both: of order 6,
twice continuously differentiable, and linear in the samples, so that slopes obey the same formula.

A quaternion is q₀ ⊗ exp(u/2), where q₀ is the sample before and u(t), the turn since then, is such a polynomial.  With
the angular velocity ω and its rate α in the child's frame,

    ω = J u̇,    α = J ü + J̇ u̇,    J(u) = 1 − b [u]× + d [u]×²                                           (1)
    b = (1 − cos θ)/θ²,    d = (θ − sin θ)/θ³,    θ = |u|

so that u, u̇, ü are 0, ω₀, α₀ at the first sample and log(q₀* ⊗ q₁), J⁻¹ω₁, J⁻¹(α₁ − J̇ u̇) at the second.  This is of
order 6, too, and exact for turns about one axis that are polynomials.  Of the two turns from one sample to the next it
is the shorter one: there must be less than half a turn between two samples.

Slopes are those of this construction: with δ₀ and δ₁ of both samples du₁ = J⁻¹(u₁) δ₁ − J⁻¹(−u₁) δ₀; all else is
analytic in u₁, ω and α, and differentiated by a complex step; in the end δ = exp(−u) δ₀ + J(u) du.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import CONJUGATE, exponential, logarithm, times
from kinegrad.model import Model
from kinegrad.model.numbers import STEP, slope

__all__ = ["between", "line"]

Array = NDArray[Any]
Where = NDArray[np.intp]
_SMALL = 1.0  # below this angle b and d are series, of so many terms that the next is below 1e-17
_TERMS = 10


def between(
    model: Model, knots: Array, t: Array, where: Where, state: Sequence[Array], slopes: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    """q, v, a at times t in intervals `where`, from samples (m, ...), and their slopes, if there are any."""
    if not (model.coordinates and model.layout.balls):
        return quintic(knots, t, where, *state), quintic(knots, t, where, *slopes) if slopes else []
    layout, (q, v, a) = model.layout, state
    single = np.concatenate([layout.plain_q, layout.coupled_q]), np.concatenate([layout.plain_v, layout.coupled_v])
    found = [np.empty((len(t), *x.shape[1:])) for x in state]
    each = quintic(knots, t, where, q[..., single[0]], v[..., single[1]], a[..., single[1]])
    for x, y, places in zip(found, each, (single[0], single[1], single[1]), strict=True):
        x[..., places] = y
    along = [np.empty((len(t), *x.shape[1:])) for x in slopes]
    if slopes:
        for x, y in zip(along, quintic(knots, t, where, *(s[..., single[1], :] for s in slopes)), strict=True):
            x[..., single[1], :] = y
    for _, k, j in layout.balls:
        ball, three = slice(k, k + 4), slice(j, j + 3)
        parts = _turned(knots, t, where, q[..., ball], v[..., three], a[..., three], [s[..., three, :] for s in slopes])
        for x, y, part in zip(found, parts[0], (ball, three, three), strict=True):
            x[..., part] = y
        for x, y in zip(along, parts[1], strict=True):
            x[..., three, :] = y
    return found, along


def quintic(knots: Array, t: Array, where: Where, q: Array, v: Array, a: Array) -> list[Array]:
    """q, v and a at times t in intervals `where`, from samples (m, ...)."""
    ends = [(x[where], x[where + 1]) for x in (q, v, a)]
    return _quintic(*_times(knots, t, where, q.ndim), *(x for pair in ends for x in pair))


def line(knots: Array, t: Array, where: Where, x: Array) -> Array:
    """x at times t in intervals `where`, straight between samples (m, ...)."""
    _, s = _times(knots, t, where, x.ndim)
    return np.asarray((1 - s) * x[where] + s * x[where + 1])


def _times(knots: Array, t: Array, where: Where, axes: int) -> tuple[Array, Array]:
    """Lengths of the intervals, and how far each time is in its own, to multiply arrays of so many axes."""
    spread = (-1, *(1,) * (axes - 1))
    h = np.diff(knots)[where].reshape(spread)
    return h, (t - knots[where]).reshape(spread) / h


def _quintic(h: Array, s: Array, q0: Array, q1: Array, v0: Array, v1: Array, a0: Array, a1: Array) -> list[Array]:
    """q, v and a of polynomials of degree 5 between two ends, at parts s of intervals h."""
    v0, a0 = h * v0, h**2 * a0
    D, E, F = q1 - q0 - v0 - a0 / 2, h * v1 - v0 - a0, h**2 * a1 - a0
    c3, c4, c5 = 10 * D - 4 * E + F / 2, -15 * D + 7 * E - F, 6 * D - 3 * E + F / 2
    return [
        q0 + s * (v0 + s * (a0 / 2 + s * (c3 + s * (c4 + s * c5)))),
        (v0 + s * (a0 + s * (3 * c3 + s * (4 * c4 + s * 5 * c5)))) / h,
        (a0 + s * (6 * c3 + s * (12 * c4 + s * 20 * c5))) / h**2,
    ]


# --- one quaternion ---------------------------------------------------------------------------------------------------


def _turned(
    knots: Array, t: Array, where: Where, q: Array, w: Array, dw: Array, slopes: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    """A quaternion, (k, ..., 4), ω and α, (k, ..., 3), and slopes δ, dω, dα, (k, ..., 3, p), at times t."""
    h, s = _times(knots, t, where, q.ndim)
    before, after = q[where], q[where + 1]
    turn = logarithm(times(before * CONJUGATE, after))
    ends = [x for y in (w, dw) for x in (y[where], y[where + 1])]
    u, *speeds = _along(h, s, turn, *ends)
    found = [engine.unit(times(before, exponential(u))), *speeds]
    if not slopes:
        return found, []
    first, last = ([np.moveaxis(x[rows], -1, 0) for x in slopes] for rows in (where, where + 1))  # (p, k, ..., 3)
    turned = _solve(turn, last[0]) - _solve(-turn, first[0])
    varied = [x + 1j * STEP * dx for x, dx in zip(ends, (first[1], last[1], first[2], last[2]), strict=True)]
    du, *along = (slope(x) for x in _along(h, s, turn + 1j * STEP * turned, *varied))
    delta = _back(u, first[0]) + _times_J(u, du)
    return found, [np.moveaxis(x, 0, -1) for x in (delta, *along)]


def _along(h: Array, s: Array, turn: Array, w0: Array, w1: Array, dw0: Array, dw1: Array) -> list[Array]:
    """u, ω and α at parts s of intervals h; analytic in all that may be complex."""
    rate = _solve(turn, w1)
    second = _solve(turn, dw1 - _drift(turn, rate))
    u, du, ddu = _quintic(h, s, 0.0 * turn, turn, w0, rate, dw0, second)
    return [u, _times_J(u, du), _times_J(u, ddu) + _drift(u, du)]


def _coefficients(u: Array) -> tuple[Array, ...]:
    """b, d and their derivatives with respect to θ², (..., 1) each."""
    square = (u * u).sum(axis=-1, keepdims=True)
    small = np.real(square) < _SMALL**2
    series = np.where(small, square, 0.0)
    b, d, db, dd = (np.zeros_like(series) for _ in range(4))
    for k in reversed(range(_TERMS)):
        db, dd = b - series * db, d - series * dd
        b, d = (1 / math.factorial(2 * k + m) - series * x for m, x in ((2, b), (3, d)))
    angle = np.sqrt(np.where(small, 1.0, square))
    sine, cosine, sq = np.sin(angle), np.cos(angle), angle * angle
    exact = (
        (1 - cosine) / sq,
        (angle - sine) / (sq * angle),
        (angle * sine - 2 * (1 - cosine)) / (2 * sq**2),
        (3 * sine - 2 * angle - angle * cosine) / (2 * sq**2 * angle),
    )
    return tuple(np.where(small, x, y) for x, y in zip((b, d, -db, -dd), exact, strict=True))


def _cross(x: Array, y: Array) -> Array:
    """x × y, broadcast."""
    x1, x2, x3 = (x[..., k] for k in range(3))
    y1, y2, y3 = (y[..., k] for k in range(3))
    return np.stack([x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1], axis=-1)


def _times_J(u: Array, x: Array) -> Array:
    """J(u) x."""
    b, d, _, _ = _coefficients(u)
    turned = _cross(u, x)
    return np.asarray(x - b * turned + d * _cross(u, turned))


def _drift(u: Array, du: Array) -> Array:
    """J̇ u̇, with [u̇]× u̇ = 0."""
    _, d, db, dd = _coefficients(u)
    turned, rate = _cross(u, du), 2 * (u * du).sum(axis=-1, keepdims=True)
    return np.asarray(-rate * db * turned + rate * dd * _cross(u, turned) + d * _cross(du, turned))


def _solve(u: Array, x: Array) -> Array:
    """J(u)⁻¹ x = x + ½ u × x + c u × (u × x),  c = (1 − (1 − θ² d) / (2 b)) / θ²."""
    b, d, _, _ = _coefficients(u)
    square = (u * u).sum(axis=-1, keepdims=True)
    small = np.real(square) < 1e-2
    safe = np.where(small, 1.0, square)
    series = np.where(small, square, 0.0)
    near = 1 / 12 + series * (1 / 720 + series * (1 / 30240 + series * (1 / 1209600 + series / 47900160)))
    c = np.where(small, near, (1 - (1 - safe * d) / (2 * b)) / safe)
    turned = _cross(u, x)
    return np.asarray(x + turned / 2 + c * _cross(u, turned))


def _back(u: Array, x: Array) -> Array:
    """exp(−u) x: the rotation J(u) J(−u)⁻¹."""
    return _times_J(u, _solve(-u, x))
