"""B-splines of time: q, v, a and jerk by control points, and their exact derivatives.

A coordinate is a spline of degree k on s = t/T, from 0 to 1, with m control points p and the clamped knots
s₀ = … = s_k = 0 < … < 1 = s_m = … = s_{m+k}, [xiang2008] (39), (40).  With N_j the basis functions,

    q = Σ N_j(s) p_j,    v = Σ N_j′(s) p_j / T,    a = Σ N_j″(s) p_j / T²,    and so on                              (1)

so the d-th time derivative x_d is linear in p, and a power of T:

    ∂x_d/∂p_j = N_j⁽ᵈ⁾(s) / T^d        ∂x_d/∂T = −d x_d / T        ∂²x_d/∂T² = d (d + 1) x_d / T²                    (2)

A knot s_i that moves changes N_j.  Where t̄ are the knots with s_i twice and N̄_j their basis functions,

    ∂q/∂s_i = −Σ_{j=i−k}^{i} (p_j − p_{j−1}) / (s_{j+k} − s_j) N̄_j(s)                                                (3)

([piegl1998]; for k = 1 it is read off the polygon).  The sum is a spline again, and its derivatives with respect to s
are those of v and a.  At s = s_i itself the highest derivative jumps, and (3) is taken from the right.

A spline is a convex combination of its control points, and so are its derivatives of *theirs*:

    p⁽ᵈ⁺¹⁾_j = (k − d) (p⁽ᵈ⁾_{j+1} − p⁽ᵈ⁾_j) / (s_{j+k+1} − s_{j+d+1})                                               (4)

Bounds on them hold at all times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BSpline

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.results import frozen

__all__ = ["SplineBasis"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
DEGREES = (3, 4, 5)
MOST_SEGMENTS = 1000


@dataclass(frozen=True, eq=False, repr=False)
class SplineBasis:
    """B-splines of one degree on clamped knots from 0 to 1; immutable, compares by value, pickles.

    Parameters
    ----------
    segments : int, or array_like of shape (segments + 1,)
        Number of pieces of equal length; or where pieces meet, from 0 to 1, increasing.
    degree : int
        3 to 5; jerk is continuous from 4 on.

    Examples
    --------
    >>> basis = SplineBasis(20)
    >>> basis.control_points
    23
    >>> basis.values([0.0, 0.5])[0, :3]
    array([1., 0., 0.])
    >>> bool(abs(basis.values([0.5], 1).sum()) < 1e-12)  # a constant has no speed
    True
    """

    segments: int | ArrayLike = 20
    degree: int = 3

    def __post_init__(self) -> None:
        set_field = object.__setattr__.__get__(self)
        whole = isinstance(self.degree, int | np.integer) and not isinstance(self.degree, bool)
        if not whole or self.degree not in DEGREES:
            raise InputError(f"`degree` is {shown(self.degree)}; expected 3, 4 or 5")
        set_field("degree", int(self.degree))
        edges = _breakpoints(self.segments)
        set_field("segments", len(edges) - 1)
        set_field("breakpoints", frozen(edges))

    breakpoints: Array = None  # type: ignore[assignment]  # set above

    @property
    def control_points(self) -> int:
        """How many control points a coordinate has: segments + degree."""
        return len(self.breakpoints) - 1 + self.degree

    @cached_property
    def knots(self) -> Array:
        """With the ends repeated, (control_points + degree + 1,)."""
        k = self.degree
        return frozen(np.concatenate([np.zeros(k), self.breakpoints, np.ones(k)]))

    @cached_property
    def _orders(self) -> list[Any]:
        spline = BSpline(self.knots, np.eye(self.control_points), self.degree)
        return [spline, *(spline.derivative(d) for d in range(1, self.degree + 1))]

    def values(self, s: ArrayLike, order: int = 0) -> Array:
        """N⁽ᵈ⁾ of order d at s, shape (K, control_points): what control points are multiplied by, before 1/T^d."""
        at = _instants(s)
        if isinstance(order, bool) or not isinstance(order, int | np.integer) or not 0 <= order <= 5:
            raise InputError(f"`order` is {shown(order)}; expected a number from 0 to 5")
        if order > self.degree:
            return np.zeros((len(at), self.control_points))
        return np.asarray(self._orders[order](at), dtype=float)

    def first(self, s: ArrayLike) -> Integers:
        """The first of the degree + 1 control points that count at each s, (K,)."""
        piece = np.searchsorted(self.breakpoints, _instants(s), side="right") - 1
        return np.clip(piece, 0, len(self.breakpoints) - 2).astype(np.int64)

    def window(self, s: ArrayLike, orders: int) -> tuple[Integers, Array]:
        """Which control points count at each s, (K, k + 1), and their N⁽ᵈ⁾ for d < orders, (orders, K, k + 1)."""
        at = _instants(s)
        columns = self.first(at)[:, None] + np.arange(self.degree + 1)
        values = [np.take_along_axis(self.values(at, d), columns, axis=1) for d in range(orders)]
        return columns, np.array(values)

    def evaluate(self, points: ArrayLike, T: float, s: ArrayLike, orders: int = 3) -> list[Array]:
        """q, v, a, … of control points (control_points, n) at s, each (K, n).

        >>> basis = SplineBasis(4)
        >>> line = basis.greville[:, None] * [1.0, 2.0]  # q = s, 2 s
        >>> q, v, a = basis.evaluate(line, 2.0, [0.25])
        >>> q.round(12), v.round(12)
        (array([[0.25, 0.5 ]]), array([[0.5, 1. ]]))
        """
        p = self._points(points)
        return [self.values(s, d) @ p / T**d for d in range(orders)]

    @cached_property
    def greville(self) -> Array:
        """Where control points would lie if q = s: means of k knots each; a guess that is a line becomes one."""
        k = self.degree
        return frozen(np.array([self.knots[j + 1 : j + k + 1].mean() for j in range(self.control_points)]))

    def hull(self, order: int) -> Array:
        """The matrix from control points to those of the derivative of some order, (control_points − order, …), (4)."""
        k, t, m = self.degree, self.knots, self.control_points
        if not 0 <= order <= k:
            raise InputError(f"`order` is {shown(order)}; expected a number from 0 to {k}")
        matrix = np.eye(m)
        for d in range(order):
            j = np.arange(m - d - 1)
            matrix = (k - d) * np.diff(matrix, axis=0) / (t[j + k + 1] - t[j + d + 1])[:, None]
        return matrix

    def knot_derivatives(self, points: ArrayLike, s: ArrayLike, knots: Sequence[int], order: int = 0) -> Array:
        """∂(d-th derivative by s of q)/∂s_i of inner breakpoints i, (K, n, len(knots)), by (3).

        Parameters
        ----------
        points : array_like, shape (control_points, n)
        s : array_like, shape (K,)
        knots : sequence of int
            Numbers of inner breakpoints, from 1 to segments − 1.
        order : int
            d; divide by T^d for derivatives with respect to time.

        Examples
        --------
        >>> basis = SplineBasis(3)
        >>> line = basis.greville[:, None]  # at fixed control points, a line bends when a knot moves
        >>> basis.knot_derivatives(line, [0.2], [1]).shape
        (1, 1, 1)
        """
        p, at, k, t = self._points(points), _instants(s), self.degree, self.knots
        columns = []
        for number in knots:
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 < number < self._count:
                expected = f"inner breakpoints, from 1 to {self._count - 1}"
                raise InputError(f"`knots` holds {shown(number)}; expected numbers of {expected}")
            i = int(number) + k
            twice = np.insert(t, i, t[i])
            j = np.arange(i - k, i + 1)
            slopes = np.zeros((self.control_points + 1, p.shape[1]))
            slopes[j] = -(p[j] - p[j - 1]) / (t[j + k] - t[j])[:, None]
            spline = BSpline(twice, slopes, k)
            columns.append(spline(at) if not order else spline.derivative(order)(at))
        return np.stack(columns, axis=-1) if columns else np.zeros((len(at), p.shape[1], 0))

    @property
    def _count(self) -> int:
        return len(self.breakpoints) - 1

    def refined(self) -> SplineBasis:
        """Twice as many segments: each in two halves; it holds every spline of this one."""
        middle = (self.breakpoints[1:] + self.breakpoints[:-1]) / 2
        return SplineBasis(np.sort(np.concatenate([self.breakpoints, middle])), self.degree)

    def carried(self, points: ArrayLike, other: SplineBasis) -> Array:
        """Control points of `other` for the same motion, exactly if it refines this basis, else by least squares."""
        p = self._points(points)
        inner, _ = np.polynomial.legendre.leggauss(self.degree + 1)
        edges = np.union1d(self.breakpoints, other.breakpoints)
        s = ((edges[1:] + edges[:-1]) / 2)[:, None] + np.diff(edges)[:, None] / 2 * inner
        at = np.concatenate([[0.0], s.ravel(), [1.0]])
        return np.asarray(np.linalg.lstsq(other.values(at), self.values(at) @ p, rcond=None)[0])

    def _points(self, points: ArrayLike) -> Array:
        p = engine.real("points", points)
        if p.ndim != 2 or len(p) != self.control_points:
            raise InputError(f"`points` has shape {p.shape}; expected ({self.control_points}, n)")
        return p

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.degree, self.breakpoints.tobytes()

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, SplineBasis) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return SplineBasis, (np.array(self.breakpoints), self.degree)

    def __repr__(self) -> str:
        uniform = np.allclose(np.diff(self.breakpoints), 1 / self._count, rtol=1e-9, atol=0)
        return f"SplineBasis({self._count} {'equal ' if uniform else ''}segments of degree {self.degree})"


def _breakpoints(given: Any) -> Array:
    """From 0 to 1, increasing."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        if not 1 <= given <= MOST_SEGMENTS:
            raise InputError(f"`segments` is {shown(given)}; expected a number from 1 to {MOST_SEGMENTS}")
        return np.linspace(0.0, 1.0, int(given) + 1)
    if isinstance(given, bool | str | float) or given is None:
        raise InputError(f"`segments` is {shown(given)}; expected a whole number, or breakpoints from 0 to 1")
    edges = engine.real("segments", given)
    if edges.ndim != 1 or len(edges) < 2:
        raise InputError(f"`segments` has shape {edges.shape}; expected a whole number, or breakpoints from 0 to 1")
    if not (np.isfinite(edges).all() and (np.diff(edges) > 1e-9).all() and edges[0] == 0 and edges[-1] == 1):
        raise InputError(f"`segments` is {shown(edges.tolist())}; expected breakpoints that increase from 0 to 1")
    return edges


def _instants(s: ArrayLike) -> Array:
    """Normalised times, (K,), from 0 to 1."""
    at = np.atleast_1d(engine.real("s", s))
    if at.ndim != 1 or not ((at >= 0) & (at <= 1)).all():
        raise InputError(f"`s` is {shown(at.tolist())}; expected numbers from 0 to 1 in a row")
    return at
