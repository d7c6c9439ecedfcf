"""OpenSim's functions of one coordinate as those of kinegrad, exactly: read, scaled and put into one another.

``SimmSpline`` (and ``NaturalCubicSpline``, which OpenSim reads as such) is the cubic spline of Forsythe, Malcolm and
Moler: with m = f″ at the knots and h = the widths between them,

    h₀ m₀ + 2 (h₀ + h₁) m₁ + h₁ m₂ = 6 (s₁ − s₀)    at inner knots, s the slopes of the chords,
    (m₁ − m₀) / h₀ = 6 f[x₀, x₁, x₂, x₃]             at both ends: f‴ is that of the cubic through four points,

f‴ = 0 at the ends if there are three points, and a line if there are two.  Beyond its points it goes on straight.

A coupler q_d = s f(q) is substituted: a joint that moves by g(q_d) moves by g(s f(q)).  That is a function kinegrad has
if f is a straight line, or g is, or both are polynomials; a curve of a curve is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from kinegrad.io.strict_xml import Element, XmlFile
from kinegrad.model.functions import (
    CoordinateFunction,
    LinearFunction,
    PiecewiseLinearFunction,
    PolynomialFunction,
    SplineFunction,
)

__all__ = ["FUNCTIONS", "compose", "constant_of", "read_function", "scaled", "simm_spline"]

Array = NDArray[np.float64]
Reader = Callable[[XmlFile, Element], CoordinateFunction | None]
DEEPEST = 20  # multipliers within each other


def simm_spline(x: Array, y: Array) -> CoordinateFunction:
    """The spline of Forsythe, Malcolm and Moler through points.

    >>> line = simm_spline(np.array([0.0, 2.0]), np.array([1.0, 5.0]))
    >>> line
    LinearFunction(multiplier=2.0, offset=1.0)
    """
    n, h = len(x), np.diff(x)
    slope = np.diff(y) / h
    if n == 2:
        return LinearFunction(slope[0], y[0] - slope[0] * x[0])
    system, right = np.zeros((n, n)), np.zeros(n)
    for k in range(1, n - 1):
        system[k, k - 1 : k + 2] = h[k - 1], 2 * (h[k - 1] + h[k]), h[k]
        right[k] = 6 * (slope[k] - slope[k - 1])
    for row, k, ends in ((0, 0, slice(0, 4)), (n - 1, n - 2, slice(n - 4, n))):
        system[row, k : k + 2] = -1 / h[k], 1 / h[k]
        if n > 3:
            right[row] = 6 * _third_difference(x[ends], y[ends])
    second = np.linalg.solve(system, right)
    first = slope - h * (2 * second[:-1] + second[1:]) / 6
    rows = np.column_stack([y[:-1], first, second[:-1] / 2, np.diff(second) / (6 * h)])
    return SplineFunction(tuple(x), tuple(y), tuple(map(tuple, rows.tolist())))


def _third_difference(x: Array, y: Array) -> float:
    """The divided difference f[x₀, x₁, x₂, x₃]."""
    for k in range(1, 4):
        y = np.diff(y) / (x[k:] - x[:-k])
    return float(y[0])


# --- reading ----------------------------------------------------------------------------------------------------------


def read_function(file: XmlFile, holder: Element, count: int = 1) -> CoordinateFunction | Array | None:
    """The function in an element; of several coordinates, (count + 1,) numbers: a multiplier for each, and an offset.

    None, and a problem, if there is none or it is of a kind that is not known.
    """
    inner = holder.find("function")
    if inner is not None:
        holder = inner
    found = [child for child in holder.children if child.tag in FUNCTIONS]
    if len(found) != 1:
        others = [child.tag for child in holder.children if child.tag not in ("coordinates", "axis", "function")]
        if not found and others:
            known = ", ".join(sorted(FUNCTIONS))
            file.problem(holder, f"its function is <{others[0]}>, which is unknown; expected one of {known}")
        else:
            file.problem(holder, f"has {len(found)} functions; expected one")
        return None
    element = found[0]
    if count > 1:
        return _of_several(file, element, count)
    return _read(file, element, 0)


def _read(file: XmlFile, element: Element, depth: int) -> CoordinateFunction | None:
    if depth > DEEPEST:
        file.problem(element, f"has more than {DEEPEST} multipliers within each other; expected fewer")
        return None
    if element.tag == "MultiplierFunction":
        inside = file.only(element, "function", required=True)
        scale = file.only(element, "scale")
        factor = 1.0 if scale is None else file.number(scale, None)
        functions = [] if inside is None else [child for child in inside.children if child.tag in FUNCTIONS]
        if inside is not None and len(functions) != 1:
            file.problem(inside, f"has {len(functions)} functions; expected one")
            return None
        inner = _read(file, functions[0], depth + 1) if functions else None
        return None if inner is None or not np.isfinite(factor) else file.guard(element, scaled, inner, factor)
    make = FUNCTIONS[element.tag]
    return None if make is None else make(file, element)


def _of_several(file: XmlFile, element: Element, count: int) -> Array | None:
    """Multipliers and offset of a function that is linear in several coordinates."""
    if element.tag == "Constant":
        value = _constant(file, element)
        return None if value is None else np.array([0.0] * count + [value.offset])
    if element.tag != "LinearFunction":
        found = f"<{element.tag}> of {count} coordinates"
        file.problem(element, f"{found} cannot be represented; expected one coordinate, or a LinearFunction")
        return None
    numbers = _values(file, element, "coefficients", count + 1)
    return numbers if numbers is not None and np.isfinite(numbers).all() else None


def _values(file: XmlFile, element: Element, tag: str, count: int | None) -> Array | None:
    child = file.only(element, tag, required=True)
    if child is None:
        return None
    if not child.text:
        file.problem(child, "is empty; expected numbers")
        return None
    numbers = file.numbers(child, None, count)
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


def _constant(file: XmlFile, element: Element) -> LinearFunction | None:
    value = file.only(element, "value")
    number = 0.0 if value is None else file.number(value, None)
    return LinearFunction(0.0, number) if np.isfinite(number) else None


def _linear(file: XmlFile, element: Element) -> LinearFunction | None:
    numbers = _values(file, element, "coefficients", 2)
    return None if numbers is None else LinearFunction(*numbers)


def _polynomial(file: XmlFile, element: Element) -> CoordinateFunction | None:
    numbers = _values(file, element, "coefficients", None)  # the highest power first
    return None if numbers is None else file.guard(element, PolynomialFunction, tuple(numbers[::-1]))


def _points(make: Callable[[Array, Array], CoordinateFunction]) -> Reader:
    def read(file: XmlFile, element: Element) -> CoordinateFunction | None:
        x, y = _values(file, element, "x", None), _values(file, element, "y", None)
        if x is None or y is None:
            return None
        if len(x) != len(y) or len(x) < 2:
            found = f"has {len(x)} numbers in <x> and {len(y)} in <y>"
            file.problem(element, f"{found}; expected at least two, and as many in both")
            return None
        if not (np.diff(x) > 0).all():
            k = int(np.argmin(np.diff(x) > 0))
            file.problem(element, f"<x> goes from {x[k]:g} to {x[k + 1]:g}; expected increasing numbers")
            return None
        with np.errstate(all="ignore"):  # what overflows is refused by the function
            found_function: CoordinateFunction | None = file.guard(element, make, x, y)
        return found_function

    return read


def _piecewise(x: Array, y: Array) -> CoordinateFunction:
    if len(x) == 2:
        return simm_spline(x, y)
    return PiecewiseLinearFunction(tuple(x), tuple(y))


FUNCTIONS: dict[str, Reader | None] = {
    "Constant": _constant,
    "LinearFunction": _linear,
    "PolynomialFunction": _polynomial,
    "SimmSpline": _points(simm_spline),
    "NaturalCubicSpline": _points(simm_spline),  # OpenSim reads it as SimmSpline, whose ends are not natural
    "PiecewiseLinearFunction": _points(_piecewise),
    "MultiplierFunction": None,
}


# --- functions of functions -------------------------------------------------------------------------------------------


def constant_of(function: CoordinateFunction) -> float | None:
    """Its value, if it is the same everywhere."""
    if isinstance(function, LinearFunction):
        return function.offset if function.multiplier == 0 else None
    if isinstance(function, PolynomialFunction):
        return function.coefficients[0] if not any(function.coefficients[1:]) else None
    flat = all(not any(piece[1:]) for piece in function.pieces) and len(set(function.values)) == 1
    return function.values[0] if flat else None


def scaled(function: CoordinateFunction, factor: float, offset: float = 0.0) -> CoordinateFunction:
    """factor · f + offset."""
    if factor == 1 and offset == 0:
        return function
    if isinstance(function, LinearFunction):
        return LinearFunction(factor * function.multiplier, factor * function.offset + offset)
    if isinstance(function, PolynomialFunction):
        first, *others = (factor * c for c in function.coefficients)
        return PolynomialFunction((first + offset, *others))
    if factor == 0:
        return LinearFunction(0.0, offset)
    values = tuple(factor * y + offset for y in function.values)
    pieces = tuple((factor * a + offset, *(factor * c for c in rest)) for a, *rest in function.pieces)
    return type(function)(function.knots, values, pieces)


def compose(outer: CoordinateFunction, inner: CoordinateFunction) -> CoordinateFunction:
    """outer(inner(q)); a ValueError where that is no function kinegrad has.

    >>> compose(PolynomialFunction([0, 0, 1]), LinearFunction(2.0, 1.0))
    PolynomialFunction(coefficients=(1.0, 4.0, 4.0))
    """
    if isinstance(outer, LinearFunction):
        return scaled(inner, outer.multiplier, outer.offset)
    if isinstance(inner, PolynomialFunction) and len(inner.coefficients) <= 2:
        offset, slope = (*inner.coefficients, 0.0)[:2]
        inner = LinearFunction(slope, offset)
    if (value := constant_of(inner)) is not None:
        return LinearFunction(0.0, float(outer.derivatives(np.array([value]), 0)[0][0]))
    if isinstance(outer, PolynomialFunction) and isinstance(inner, LinearFunction | PolynomialFunction):
        parts = (inner.offset, inner.multiplier) if isinstance(inner, LinearFunction) else inner.coefficients
        return PolynomialFunction(tuple(Polynomial(outer.coefficients)(Polynomial(parts)).coef.tolist()))
    if isinstance(outer, SplineFunction) and isinstance(inner, LinearFunction):
        return _stretched(outer, inner.multiplier, inner.offset)
    kinds = f"{type(outer).__name__} of a {type(inner).__name__}"
    raise ValueError(f"a {kinds} cannot be represented; expected a straight line as one of them, or two polynomials")


def _stretched(function: SplineFunction, m: float, b: float) -> CoordinateFunction:
    """f(m q + b)."""
    knots = [(k - b) / m for k in function.knots]
    if m > 0:
        pieces = [[c * m**j for j, c in enumerate(piece)] for piece in function.pieces]
        return type(function)(tuple(knots), function.values, tuple(map(tuple, pieces)))
    widths = np.diff(function.knots)
    turned = []
    for piece, width in zip(function.pieces, widths, strict=True):
        moved = Polynomial(piece)(Polynomial([width, m])).coef
        turned.append(tuple(np.pad(moved, (0, len(piece) - len(moved))).tolist()))
    return type(function)(tuple(knots[::-1]), function.values[::-1], tuple(turned[::-1]))
