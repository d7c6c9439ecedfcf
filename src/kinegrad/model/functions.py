"""Functions of one coordinate, by which it moves joints: linear, polynomial, cubic spline, piecewise linear.

Each gives its value and its derivatives, exactly and for arrays of any shape: inverse dynamics needs f, f′ and f″, its
first derivatives f‴ as well, its second ones f⁗.  Functions are immutable; they compare and hash by value, and pickle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import ModelError, shown
from kinegrad.model.names import as_tuple
from kinegrad.model.numbers import LARGEST, FixedError, carrying, real_array

__all__ = [
    "CoordinateFunction", "LinearFunction", "PiecewiseLinearFunction", "PolynomialFunction", "SplineFunction",
    "as_function",
]  # fmt: skip

Array = NDArray[Any]  # float64; complex128 where a test differentiates by complex step
_EVERYWHERE = (-math.inf, math.inf)
_FIXED = (
    "expected it fixed: it is a constant of the map from coordinates to joints, which is not differentiated with "
    "respect to parameters. Use kinegrad.compare.numerical_jacobian, or the chain rule through `model.primitive`, "
    "whose joints are not coupled: both are shown in docs/design.md"
)
SMOOTH = 1e-9  # by how much a spline and its slope may jump at a knot, relative to their largest values


@dataclass(frozen=True)
class LinearFunction:
    """multiplier · q + offset: gears, and the ``mimic`` of URDF.

    Parameters
    ----------
    multiplier : float
        Per unit of the coordinate.
    offset : float
        rad or m.

    Examples
    --------
    >>> LinearFunction(-2.0, 0.5).derivatives(np.array([1.0]), 1)
    [array([-1.5]), array([-2.])]
    """

    multiplier: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        for what in ("multiplier", "offset"):
            (number,) = _numbers(f"`{what}` of a LinearFunction", [getattr(self, what)])
            object.__setattr__(self, what, number)

    def derivatives(self, x: Array, order: int) -> list[Array]:
        """f, f′, … up to `order`, each of the shape of x."""
        zero = np.zeros_like(x)
        return [self.multiplier * x + self.offset, zero + self.multiplier, *[zero] * (order - 1)][: order + 1]

    def pieces_from_knots(self) -> tuple[tuple[float, float], Array]:
        """Where the function begins and ends, and its one piece: knot and ascending coefficients."""
        return _EVERYWHERE, np.array([[0.0, self.offset, self.multiplier]])


@dataclass(frozen=True)
class PolynomialFunction:
    """c₀ + c₁ q + c₂ q² + …: coefficients in ascending order, as in ``numpy.polynomial`` (OpenSim's descend).

    Parameters
    ----------
    coefficients : sequence of float
        At least one.

    Examples
    --------
    >>> PolynomialFunction([1.0, 0.0, 3.0]).derivatives(np.array([2.0]), 2)
    [array([13.]), array([12.]), array([6.])]
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        given = as_tuple("coefficients", self.coefficients, "numbers, the constant one first")
        if not given:
            raise ModelError("`coefficients` of a PolynomialFunction is empty; expected at least one number")
        numbers = _numbers("`coefficients` of a PolynomialFunction", given)
        object.__setattr__(self, "coefficients", tuple(numbers))

    def derivatives(self, x: Array, order: int) -> list[Array]:
        """f, f′, … up to `order`, each of the shape of x."""
        return _horner([np.asarray(c) for c in self.coefficients], x, order)

    def pieces_from_knots(self) -> tuple[tuple[float, float], Array]:
        """Where the function begins and ends, and its one piece: knot and ascending coefficients."""
        return _EVERYWHERE, np.array([[0.0, *self.coefficients]])


@dataclass(frozen=True)
class SplineFunction:
    """A cubic spline through points, natural at its ends and continued beyond them along its tangents.

    So it is twice continuously differentiable everywhere; f‴ jumps at the knots, where it is that to their right.

    Parameters
    ----------
    knots : sequence of float
        At least two, increasing: values of the coordinate.
    values : sequence of float
        Values of the function there, as many.

    Examples
    --------
    >>> slide = SplineFunction([0.0, 1.0, 2.0], [0.0, 0.1, 0.0])
    >>> [x.round(4).tolist() for x in slide.derivatives(np.array([1.0, 3.0]), 1)]
    [[0.1, -0.15], [0.0, -0.15]]

    A spline of SciPy, with any conditions at its ends:

    >>> from scipy.interpolate import CubicSpline
    >>> clamped = SplineFunction.from_scipy(CubicSpline([0, 1, 2], [0.0, 0.1, 0.0], bc_type="clamped"))
    >>> [abs(x).round(12).tolist() for x in clamped.derivatives(np.array([3.0]), 1)]
    [[0.0], [0.0]]
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]
    pieces: tuple[tuple[float, ...], ...] = field(default=(), repr=False)  # ascending coefficients after each knot

    def __post_init__(self) -> None:
        knots, values = (
            _numbers(f"`{what}` of a SplineFunction", as_tuple(what, getattr(self, what), "numbers"))
            for what in ("knots", "values")
        )
        if len(knots) < 2 or len(knots) != len(values):
            found = f"{len(knots)} knots and {len(values)} values"
            raise ModelError(f"a SplineFunction has {found}; expected at least two knots, and a value for each")
        if not all(a < b for a, b in pairwise(knots)):
            raise ModelError(f"`knots` of a SplineFunction are {shown(knots)}; expected increasing numbers")
        pieces = self.pieces or self._interpolated(np.array(knots), np.array(values))
        if not np.isfinite(pieces).all():
            raise ModelError("the coefficients of a SplineFunction overflow; expected knots farther apart")
        for what, given in (("knots", knots), ("values", values), ("pieces", pieces)):
            object.__setattr__(self, what, tuple(given))
        self._check_smooth()
        rows = np.array(self.pieces)
        object.__setattr__(self, "_at", (np.array(self.knots), rows))

    @classmethod
    def from_scipy(cls, spline: Any) -> SplineFunction:
        """A spline of SciPy with scalar values (CubicSpline, PPoly, BSpline, …), continued along its tangents.

        It must be continuous with its slope.  Where f″ is not zero at its ends, f″ jumps there.
        """
        from scipy.interpolate import BSpline, PPoly  # here, because it takes longer to import than all of kinegrad

        if not isinstance(spline, BSpline | PPoly):
            raise ModelError(
                f"a function is a {type(spline).__name__}; expected a number, a function or a SciPy spline"
            )
        if carrying() and np.iscomplexobj(spline.c):
            raise FixedError(f"a spline of SciPy varies with the parameters; {_FIXED}")
        if isinstance(spline, BSpline):
            if np.iscomplexobj(spline.c) or spline.c.ndim != 1:
                raise ModelError(f"a spline has coefficients of shape {spline.c.shape}; expected one real number each")
            begin, end = spline.t[spline.k], spline.t[-spline.k - 1]
            spline = PPoly.from_spline(spline)
            inside = (spline.x[:-1] >= begin) & (spline.x[1:] <= end) & (np.diff(spline.x) > 0)
            first, last = np.flatnonzero(inside)[[0, -1]]
            spline = PPoly(spline.c[:, first : last + 1], spline.x[first : last + 2])
            spline = PPoly(spline.c[:, np.diff(spline.x) > 0], np.unique(spline.x))
        if np.iscomplexobj(spline.c) or spline.c.ndim != 2:
            raise ModelError(f"a spline has coefficients of shape {spline.c.shape}; expected one real number each")
        pieces = tuple(tuple(map(float, piece)) for piece in spline.c[::-1].T)
        values = [piece[0] for piece in pieces]
        width = float(spline.x[-1] - spline.x[-2])
        values.append(math.fsum(c * width**k for k, c in enumerate(pieces[-1])))
        return cls(tuple(map(float, spline.x)), tuple(values), pieces)

    def derivatives(self, x: Array, order: int) -> list[Array]:
        """f, f′, … up to `order`, each of the shape of x."""
        knots, pieces = self._at  # type: ignore[attr-defined]
        real = np.real(x)
        k = np.clip(np.searchsorted(knots, real, side="right") - 1, 0, len(pieces) - 1)
        inside = np.clip(real, knots[0], knots[-1])
        beyond = x - inside  # zero, but for the imaginary part of a complex step, which stays with the polynomial
        out = real != inside
        s = np.where(out, inside, x) - knots[k]
        found = _horner(list(np.moveaxis(pieces[k], -1, 0)), s, max(order, 1))
        found[0] = np.where(out, found[0] + found[1] * beyond, found[0])
        found[2:] = [np.where(out, 0.0, f) for f in found[2:]]
        return found[: order + 1]

    def pieces_from_knots(self) -> tuple[tuple[float, float], Array]:
        """Where the function begins and ends, and its pieces, (pieces, 1 + coefficients): knot, ascending ones."""
        knots, pieces = self._at  # type: ignore[attr-defined]
        return (self.knots[0], self.knots[-1]), np.column_stack([knots[:-1], pieces])

    def _interpolated(self, knots: Array, values: Array) -> tuple[tuple[float, ...], ...]:
        return _natural(knots, values)

    def _check_smooth(self) -> None:
        for k, (piece, width) in enumerate(zip(self.pieces[:-1], np.diff(self.knots), strict=False)):
            ends = _horner([np.asarray(c) for c in piece], np.asarray(width), 1)
            for what, end, order in (("value", ends[0], 0), ("slope", ends[1], 1)):
                next_piece = self.pieces[k + 1]
                start = next_piece[order] if len(next_piece) > order else 0.0
                if abs(float(end) - start) > SMOOTH * max(1e-3, abs(start), abs(float(end))):
                    where = f"from {float(end):.6g} to {start:.6g} at {self.knots[k + 1]:g}"
                    raise ModelError(f"the {what} of a spline jumps {where}; expected a smooth function")


@dataclass(frozen=True)
class PiecewiseLinearFunction(SplineFunction):
    """Straight lines between points, continued beyond them along the first and the last one.

    It is the only function with kinks.  At a kink the slope jumps, so joints that it moves change their speeds at once:
    a real mechanism would be struck there by an impulse, which no result here contains.  Between kinks everything
    is exact; at a kink itself, f′ is the slope to its right, and derivatives are those of the line to its right.

    Parameters
    ----------
    knots : sequence of float
        At least two, increasing: values of the coordinate.
    values : sequence of float
        Values of the function there, as many.

    Examples
    --------
    >>> roof = PiecewiseLinearFunction([0.0, 1.0, 2.0], [0.0, 0.1, 0.0])
    >>> [x.round(4).tolist() for x in roof.derivatives(np.array([0.5, 1.0, 3.0]), 1)]
    [[0.05, 0.1, -0.1], [0.1, -0.1, -0.1]]
    """

    def _interpolated(self, knots: Array, values: Array) -> tuple[tuple[float, ...], ...]:
        with np.errstate(all="ignore"):  # what overflows is found by the caller
            slopes = np.diff(values) / np.diff(knots)
        return tuple(zip(values[:-1].tolist(), slopes.tolist(), strict=True))

    def _check_smooth(self) -> None:
        """Kinks are what it is for."""


CoordinateFunction = LinearFunction | PolynomialFunction | SplineFunction


def as_function(what: str, given: Any) -> CoordinateFunction:
    """A function of a coordinate; a number is a multiplier, a spline of SciPy is taken as it is."""
    if isinstance(given, CoordinateFunction):
        return given
    if hasattr(given, "derivative") and hasattr(given, "c"):
        return SplineFunction.from_scipy(given)
    try:
        return LinearFunction(given)
    except FixedError:
        raise
    except ModelError:
        expected = "expected a number, a LinearFunction, PolynomialFunction, SplineFunction, or a SciPy spline"
        raise ModelError(f"{what} is {shown(given)}; {expected}") from None


def _numbers(what: str, given: ArrayLike) -> list[float]:
    """Finite numbers that carry no slopes."""
    numbers = real_array(what, given, "finite numbers")
    if np.iscomplexobj(numbers):
        raise FixedError(f"{what} varies with the parameters; {_FIXED}")
    if numbers.ndim != 1 or not (np.abs(numbers) <= LARGEST).all():
        raise ModelError(f"{what} is {shown(given)}; expected finite numbers, below {LARGEST:g}")
    return [float(x) for x in numbers]


def _horner(coefficients: list[Array], x: Array, order: int) -> list[Array]:
    """A polynomial with ascending coefficients, and its derivatives up to `order`."""
    found = []
    for _ in range(order + 1):
        total = np.zeros_like(x)
        for c in reversed(coefficients):
            total = total * x + c
        found.append(total)
        coefficients = [k * c for k, c in enumerate(coefficients)][1:]
    return found


def _natural(x: Array, y: Array) -> tuple[tuple[float, ...], ...]:
    """Coefficients of the natural cubic spline: continuous f″, zero at both ends."""
    with np.errstate(all="ignore"):  # what overflows is found by the caller
        h, n = np.diff(x), len(x)
        slope = np.diff(y) / h
        system, right = np.eye(n), np.zeros(n)
        for k in range(1, n - 1):
            system[k, k - 1 : k + 2] = h[k - 1], 2 * (h[k - 1] + h[k]), h[k]
            right[k] = 6 * (slope[k] - slope[k - 1])
        second = np.linalg.solve(system, right) if np.isfinite(system).all() and np.isfinite(right).all() else right
        first = slope - h * (2 * second[:-1] + second[1:]) / 6
        rows = np.column_stack([y[:-1], first, second[:-1] / 2, np.diff(second) / (6 * h)])
    return tuple(tuple(row) for row in rows.tolist())
