"""Second slopes of functions that build a model, from what they give on circles in the complex plane.

Let f be a number of the model along a line of parameters, f(p + z d) = Σ a_m z^m with real a_m.  On half a circle,
z = r exp(iθ_j) with θ_j = jπ/N, j = 1 … N − 1, imaginary parts are a sine series, and so

    Im f_j = Σ a_m r^m sin(m θ_j),        a_m r^m = c_m := 2/N Σ_j Im f_j sin(m θ_j)                                (1)

but for a_(2N−m) r^(2N−m), which is nothing where the series converges well.  ∂²f/∂z² = 2 a₂ is as exact as rounding of
slopes allows: real parts, and with them the size of f itself, do not enter.  A mixed derivative is what the line along
both parameters has beyond those along each.

Nothing is taken on trust.  A circle counts only if

- the last c_m are rounding: those of functions with a kink, a jump, a pole or a branch cut on the circle are not;
- real parts are f + Σ c_m cos(m θ_j), as those of analytic functions are: ``abs``, conjugates, poles inside are not;
- the circle of half the radius gives the same.

Otherwise a smaller one is tried.  The difference between the two, or rounding by r² if that is larger, is the estimate
of the error.  Above 1e-9 of the largest number, slope or second slope of the same link (with the unit of a parameter
its value, or 1 if that is less), the function is refused.  [fornberg1981]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.exceptions import ComplexWarning
from numpy.typing import NDArray

from kinegrad.design.function import Built, Names, built_fields, call_carrying, check_structure
from kinegrad.errors import InputError, shown
from kinegrad.model.numbers import carry_slopes

Array = NDArray[np.float64]

N = 16
_ANGLES = np.pi * np.arange(1, N) / N
_SINES = np.sin(np.outer(np.arange(1, N), _ANGLES))
_COSINES = np.cos(np.outer(np.arange(1, N), _ANGLES))
_FEW = (2, 6, 11)  # nodes at which two parameters that do not meet are told
_EPS = np.finfo(float).eps
_LAST = 1e-13  # of the last coefficients, by the largest imaginary part
_BOUND = 1e-9  # of the estimated error
_SMALLER = 4.0
_CIRCLES = 24


class _Circle(NamedTuple):
    """What a function gives on half a circle."""

    imaginary: Array  # (N − 1, numbers)
    c: Array  # (N − 1, numbers), (1)
    size: Array  # of imaginary parts, (numbers,)
    off: Array  # how far real parts are from those of an analytic function, (numbers,)
    doubtful: NDArray[np.bool_]  # whether it is more than rounding, though c_m converge, (numbers,)
    clean: bool  # whether it counts


class _Line(NamedTuple):
    """What is known along a line of parameters."""

    circle: _Circle
    radius: float
    bend: Array  # 2 a₂, (numbers,)


class _Function:
    """Numbers of a model as a vector that follows the parameters."""

    def __init__(self, function: Callable[..., Any], names: Names, values: Array, base: Built) -> None:
        self.function, self.names, self.values, self.base = function, names, values, base
        self.fields = built_fields(base)
        self.here = np.concatenate([x.ravel() for x in self.fields.values()])
        rows = [(len(x), x.size // len(x)) for x in self.fields.values() if x.size]
        each = np.concatenate([np.full(count, size) for count, size in rows])
        self._first, self._sizes = np.cumsum(each) - each, each
        self.sizes = self.around(np.abs(self.here))
        self.labels = names or tuple(f"p{k}" for k in range(len(values)))
        self.unit = np.maximum(np.abs(values), 1.0)

    def on(self, line: Array, radius: float, nodes: Any) -> NDArray[np.complex128]:
        """At nodes of a circle, (nodes, numbers)."""
        rows = []
        for angle in _ANGLES[nodes]:
            with carry_slopes(far=True), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error", ComplexWarning)
                built = call_carrying(self.function, self.names, self.values, radius * np.exp(1j * angle) * line)
                fields = built_fields(built)
            check_structure(self.base, built, "at complex values")
            rows.append(np.concatenate([np.asarray(x, complex).ravel() for x in fields.values()]))
        return np.array(rows)

    def around(self, x: Array) -> Array:
        """The largest of the numbers of one link, joint, frame or element, for each of them."""
        return np.repeat(np.maximum.reduceat(x, self._first), self._sizes) if x.size else x

    def circle(self, line: Array, radius: float) -> _Circle:
        """Coefficients, and whether the circle counts."""
        f = self.on(line, radius, slice(None))
        imaginary = f.imag
        c = 2 / N * _SINES @ imaginary
        size, last = np.abs(imaginary).max(axis=0), np.abs(c[-3:]).max(axis=0)
        steep = 16 * _EPS * self.around(size) / min(radius, 1.0)  # what rounding of p + z does
        rounding = np.maximum(steep, 16 * _EPS * radius * self.sizes)
        converged = (last <= _LAST * size) | (last <= rounding)
        off = np.abs(f.real - self.here - _COSINES.T @ c).max(axis=0)
        analytic = off <= 256 * _EPS * np.maximum(self.sizes, self.around(np.abs(f).max(axis=0))) + steep
        clean = bool((converged & analytic).all() and np.isfinite(f).all())
        return _Circle(imaginary, c, size, off, converged & ~analytic, clean)


def function_second_slopes(function: Callable[..., Any], names: Names, values: Array, base: Built) -> dict[str, Array]:
    """Of fields of model and loads, (p, p, *shape of the field), of those that have any."""
    f = _Function(function, names, values, base)
    p = len(values)
    found = np.zeros((p, p, f.here.size))
    alone = []
    for k in range(p):
        line = _line(f, f.unit[k] * np.eye(p)[k], 0.5, (k,))
        alone.append(line)
        found[k, k] = line.bend / f.unit[k] ** 2
        for j in range(k):
            found[k, j] = found[j, k] = _mixed(f, alone, j, k)
    out, first = {}, 0
    for what, x in f.fields.items():
        part = found[:, :, first : first + x.size]
        if part.any():
            out[what] = np.ascontiguousarray(part).reshape(p, p, *x.shape)
        first += x.size
    return out


def confirmed(
    function: Callable[..., Any], names: Names, values: Array, base: Built, k: int, slopes: dict[str, Array]
) -> float:
    """How far around parameter k `slopes`, (p, *shape of the field), are those of an analytic function; 0 if they are
    not."""
    f = _Function(function, names, values, base)
    try:
        line = _line(f, f.unit[k] * np.eye(len(values))[k], 0.5, (k,))
    except InputError:
        return 0.0
    none = {what: np.zeros(x.size) for what, x in f.fields.items()}
    along = np.concatenate([slopes[what][k].ravel() if what in slopes else zero for what, zero in none.items()])
    found = line.circle.c[0] / (line.radius * f.unit[k])
    right = (np.abs(found - along) <= _BOUND * f.around(np.maximum(np.abs(found), np.abs(along)))).all()
    return float(line.radius * f.unit[k]) if right else 0.0


def _mixed(f: _Function, alone: list[_Line], j: int, k: int) -> Array:
    """∂²f/∂p_j∂p_k, by the line along which both parameters change."""
    sides = alone[j], alone[k]
    steps = np.zeros(len(f.values))
    for i, side in zip((j, k), sides, strict=True):
        steps[i] = side.radius * f.unit[i]
    size = sides[0].circle.size + sides[1].circle.size
    try:
        few = f.on(steps, 1.0, list(_FEW)).imag
    except Exception:  # found again, and named, below
        few = np.full((1, f.here.size), np.nan)
    else:
        few = few - sum(side.circle.imaginary[list(_FEW)] for side in sides)
    if (np.abs(few) <= 4 * _EPS * size).all():
        return np.zeros(f.here.size)
    both = _line(f, steps, 1.0, (j, k))
    bend: Array = both.bend - sum(side.bend * side.radius**2 for side in sides)
    bend[np.abs(bend) <= 16 * _EPS * (size + both.circle.size / both.radius**2)] = 0.0
    return np.asarray(bend / (2 * steps[j] * steps[k]))


def _line(f: _Function, line: Array, radius: float, along: tuple[int, ...]) -> _Line:
    """The largest circle that counts, of `radius` or smaller, and ∂²f/∂z²; InputError if there is none."""
    reason, cause = "it is not analytic there: abs, kinks, jumps and poles do that", None
    doubtful = np.zeros(f.here.size, dtype=bool)  # on any larger circle
    for _ in range(_CIRCLES):
        try:
            circle = f.circle(line, radius)
            half = f.circle(line, radius / 2) if circle.clean else circle
        except Exception as error:  # beyond what a model can be, or what the function takes
            reason, cause = str(error), error
        else:
            if circle.clean and half.clean:
                bend, again = 2 * circle.c[1] / radius**2, 8 * half.c[1] / radius**2
                unsure = np.where(doubtful, np.maximum(circle.off, 4 * _EPS * f.sizes), 0.0)
                noise = np.maximum(4 * _EPS * circle.size, unsure) / radius**2
                beside = f.around(np.maximum(np.abs(bend), np.abs(circle.c[0]) / radius))
                allowed = _BOUND * beside + min(64 * _EPS / radius, _BOUND) * f.sizes
                if (np.maximum(np.abs(bend - again), noise) <= allowed).all():
                    bend[np.abs(circle.c[1]) <= 4 * _EPS * circle.size] = 0.0
                    return _Line(circle, radius, bend)
            doubtful |= circle.doubtful
        radius /= _SMALLER
    where = " and ".join(f"{shown(f.labels[k])} = {f.values[k]:g}" for k in along)
    raise InputError(
        f"`function` has no second derivatives at {where} that can be told to {_BOUND:g}: {reason}; expected one that "
        "is analytic around these values, see Design.from_function"
    ) from cause
