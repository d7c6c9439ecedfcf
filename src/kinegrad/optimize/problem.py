"""A problem of [anderson2002] (1) in scaled numbers, as an optimiser sees it, with a wall where there is no model.

    minimise J(p)   subject to   lower ≤ c(p) ≤ upper   and bounds on p

The methods work on

    x = (p − p₀) / s,    J / s_J,    cᵢ / sᵢ,

s of each parameter being the width of its bounds, or its size; s_J and sᵢ the larger of the value at the start and its
largest slope there, ∂/∂x: so that a tolerance and a first step mean the same whatever the units.

Where a model cannot exist, or its motion diverges, there is no J.  The methods see a wall there,

    J(y) + (s_J + |∂J/∂x|) |x − y|,    c(y),

y being the last iterate: higher than y with no better constraints, so that line searches and trust regions turn back,
and rising about as steeply as J fell, so that their interpolations go back by halves and quarters.  A very large
number instead would make them go back almost to where they were; so a J above a thousand such walls, that of a motion
about to diverge, is seen as a wall too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import BFGS, NonlinearConstraint, nnls

from kinegrad import _engine as engine
from kinegrad.design import Design
from kinegrad.errors import InputError, ModelError, SingularError, SolveError, shown
from kinegrad.results import Result, owned

__all__ = ["DesignIterate", "Limit", "Lost", "Problem", "Stopped"]

Array = NDArray[np.float64]
DesignFunction = Callable[[Design], tuple[ArrayLike, ArrayLike]]
PerParameter = Mapping[str, Any] | Sequence[Any] | Array
CLIFF = 1e3  # walls


@dataclass(frozen=True, eq=False)
class Limit(Result):
    """lower ≤ c(p) ≤ upper, for k numbers at once.

    Parameters
    ----------
    function : callable Design → (values, gradient)
        Shapes (k,) and (k, p), or a number and (p,).
    lower, upper : float or array_like, shape (k,)
        Equal where c has to have one value.

    Notes
    -----
    ``design.values`` of a linear combination is its change from the model with which the design was made.

    Examples
    --------
    No more than five kilograms in total, of a design of two masses:

    >>> light = Limit(lambda design: (design.model.total_mass, [1.0, 1.0]), upper=5.0)
    """

    function: DesignFunction
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"`function` of a Limit is {shown(self.function)}; expected a callable of a Design")
        low, high = engine.real("lower", self.lower), engine.real("upper", self.upper)
        given = f"`lower` and `upper` of a Limit are {shown(self.lower)} and {shown(self.upper)}"
        if np.isnan(low).any() or np.isnan(high).any() or low.ndim > 1 or high.ndim > 1 or not np.all(low <= high):
            raise InputError(f"{given}; expected numbers, lower ≤ upper")
        if (low == np.inf).any() or (high == -np.inf).any():
            raise InputError(f"{given}: no number is within them")
        for name in ("lower", "upper"):
            object.__setattr__(self, name, owned(getattr(self, name)))


@dataclass(frozen=True, eq=False)
class DesignIterate(Result):
    """Where an optimisation has been.

    Attributes
    ----------
    iteration : int
        0 for the start.
    values : ndarray, shape (p,)
    value : float
        J.
    violation : float
        The largest amount by which a limit is not kept, in its own units; 0 if all are.
    """

    iteration: int
    values: Array
    value: float
    violation: float


@dataclass(frozen=True, eq=False)
class Point:
    """All there is to know at scaled parameters x."""

    x: Array
    design: Design
    values: Array
    value: float
    gradient: Array
    limits: Array
    dlimits: Array
    rows: tuple[int, ...]  # how many of them each Limit has


class Lost(Exception):
    """A method that asks for values at parameters that are not finite."""


class Stopped(Exception):
    """A StopIteration of a user's function, on its way through SciPy, which takes it for a wish to end."""

    def __init__(self, what: StopIteration) -> None:
        super().__init__(what)
        self.what = what


class Problem:
    """The problem in scaled numbers, as SciPy sees it, and what has been seen of it so far."""

    def __init__(
        self,
        design: Design,
        objective: DesignFunction,
        constraints: tuple[Limit, ...],
        bounds: PerParameter | None,
        scale: PerParameter | None,
        tolerance: float,
        progress: Callable[[DesignIterate], None] | None,
    ) -> None:
        self.design, self.objective, self.constraints = design, objective, constraints
        self.tolerance, self.progress = tolerance, progress
        self.least, self.most = _bounds(design, bounds)
        self.free = np.flatnonzero(self.least < self.most)
        if not self.free.size:
            raise InputError("`bounds` leave no parameter free; expected lower < upper for one at least")
        self.size = _scale(design, scale, self.least, self.most)[self.free]
        self.lower, self.upper = ((x - design.values)[self.free] / self.size for x in (self.least, self.most))
        self.evaluations, self.failures, self.trouble = 0, 0, ""
        self.rows: tuple[int, ...] | None = None
        start = self._evaluate(np.zeros(len(self.free)))
        self.rows = start.rows
        self.low, self.high = self._edges(start.rows)
        all_rows = zip([start.value, *start.limits], [start.gradient, *start.dlimits], strict=True)
        sizes = np.array([max(abs(value), np.abs(slope[self.free] * self.size).max()) for value, slope in all_rows])
        sizes[sizes == 0] = 1.0
        self.value_size, self.limit_size = sizes[0], sizes[1:]
        self.last, self.base, self.best = start, start, start  # evaluated, iterate, within limits with the least J
        self.curved = start  # up to where the curvature is known
        self.hessian = BFGS(exception_strategy="damp_update")
        self.hessian.initialize(len(self.free), "hess")
        self.failed: Array | None = None  # the last x at which there was nothing
        self.history: list[DesignIterate] = []
        self.record(start)

    @engine.overflow_passes()
    def _evaluate(self, x: Array) -> Point:
        """Everything at x; raises what objective and limits raise, a SolveError for what is not finite."""
        values = self.design.values.copy()
        values[self.free] += self.size * x
        values = np.clip(values, self.least, self.most)
        self.evaluations += 1
        design = self.design.at(values)
        value, gradient = _pair("objective", self.objective(design), design.p, scalar=True)
        parts = [_pair(f"constraints[{k}]", each.function(design), design.p) for k, each in enumerate(self.constraints)]
        limits = np.concatenate([np.zeros(0), *(part[0] for part in parts)])
        dlimits = np.concatenate([np.zeros((0, design.p)), *(part[1] for part in parts)])
        rows = tuple(len(part[0]) for part in parts)
        if rows != self.rows and self.rows is not None:
            raise InputError(f"`constraints` give {rows} numbers at {design!r}; expected {self.rows}, as at the start")
        for name, found in {"objective": (value, gradient), "constraints": (limits, dlimits)}.items():
            if not all(np.isfinite(each).all() for each in found):
                raise SolveError(f"`{name}` has values or gradients that are not finite at {design!r}")
        return Point(x.copy(), design, values, float(value[0]), gradient[0], limits, dlimits, rows)

    def _edges(self, rows: tuple[int, ...]) -> tuple[Array, Array]:
        """Lower and upper limits of all rows."""
        edges: list[list[Array]] = [[np.zeros(0)], [np.zeros(0)]]
        for k, (limit, count) in enumerate(zip(self.constraints, rows, strict=True)):
            for name, given, found in zip(("lower", "upper"), (limit.lower, limit.upper), edges, strict=True):
                edge = engine.real(name, given)
                if edge.shape not in ((), (1,), (count,)):
                    raise InputError(f"`{name}` of constraints[{k}] has shape {edge.shape}; its function gives {count}")
                found.append(np.broadcast_to(edge, count))
        return np.concatenate(edges[0]), np.concatenate(edges[1])

    def look(self, x: Array) -> Point | None:
        """What there is at x; None if nothing."""
        for known in (self.last, self.base, self.best):
            if np.array_equal(known.x, x):
                return known
        if not np.isfinite(x).all():
            raise Lost(f"the method has lost its way: it asks for the parameters {x}")
        if self.failed is not None and np.array_equal(self.failed, x):
            return None
        try:
            point = self._evaluate(np.asarray(x))
        except (ModelError, SolveError, SingularError) as error:
            self.failures, self.trouble, self.failed = self.failures + 1, str(error), np.array(x)
            return None
        self.last = point
        if self.rank(point) <= self.rank(self.best):
            self.best = point
        return point

    def violation(self, point: Point) -> Array:
        """By how much each limit is not kept."""
        outside: Array = np.maximum(np.maximum(self.low - point.limits, point.limits - self.high), 0.0)
        return outside

    def rank(self, point: Point) -> tuple[float, float]:
        """The less the better: first of what limits are violated by, beyond the tolerance, then of J."""
        excess = (self.violation(point) / self.limit_size).max(initial=0.0)
        return (excess if excess > 10 * self.tolerance else 0.0), point.value

    def stationarity(self, point: Point) -> float:
        """|∂J/∂x − Σ μᵢ nᵢ|, scaled, least over μ ≥ 0: n are the inward normals of bounds and limits that hold."""
        near, eye = float(np.sqrt(self.tolerance)), np.eye(len(self.free))
        limits, slopes = point.limits / self.limit_size, self._dlimits(point)
        normals = np.concatenate([
            eye[point.x - self.lower <= near], -eye[self.upper - point.x <= near],
            slopes[limits - self.low / self.limit_size <= near], -slopes[self.high / self.limit_size - limits <= near],
        ])  # fmt: skip
        gradient = self._slope(point)
        return float(nnls(normals.T, gradient)[1] if len(normals) else np.linalg.norm(gradient))

    @property
    def doubt(self) -> float:
        """The stationarity above which a method has not converged: where J is within ε of its least it is about √ε."""
        return 10 * float(np.sqrt(self.tolerance))

    def record(self, point: Point | None) -> None:
        """Put an iterate into the history."""
        if point is None:
            return
        self.base = point
        if self.history and np.array_equal(self.history[-1].values, point.values):
            return
        violation = float(self.violation(point).max(initial=0.0))
        self.history.append(DesignIterate(len(self.history), point.values.copy(), point.value, violation))
        if self.progress is not None:
            self.progress(self.history[-1])

    def callback(self, x: Array) -> None:
        """For methods that say when an iteration has ended."""
        try:
            self.record(self.look(x))
        except StopIteration as error:
            raise Stopped(error) from error

    def height(self, x: Array) -> float:
        """J, scaled; or the wall."""
        point = self.look(x)
        base, wall = self.base.value / self.value_size, self._steepness() * float(np.linalg.norm(x - self.base.x))
        if point is None or point.value / self.value_size > base + CLIFF * wall:
            return float(base + wall)
        return float(point.value / self.value_size)

    def slope(self, x: Array) -> Array:
        """∂/∂x of that."""
        point = self.look(x)
        if point is not None and self.height(x) == point.value / self.value_size:
            return self._slope(point)
        away: Array = x - self.base.x
        return away * (self._steepness() / float(np.linalg.norm(away)))

    def _steepness(self) -> float:
        return 1 + float(np.linalg.norm(self._slope(self.base)))

    def slope_of_iterate(self, x: Array) -> Array:
        """The same, for SLSQP and trust-constr, which ask for it only where an iteration has led."""
        self.record(self.look(x))
        return self.slope(x)

    def _slope(self, point: Point) -> Array:
        slope: Array = point.gradient[self.free] * self.size / self.value_size
        return slope

    def limits(self, x: Array) -> Array:
        """c, scaled; behind a wall, as before it."""
        limits: Array = (self.look(x) or self.base).limits / self.limit_size
        return limits

    def dlimits(self, x: Array) -> Array:
        """∂c/∂x of that."""
        return self._dlimits(self.look(x) or self.base)

    def _dlimits(self, point: Point) -> Array:
        slopes: Array = point.dlimits[:, self.free] * self.size / self.limit_size[:, None]
        return slopes

    def between(self) -> list[Any]:
        """Limits as trust-constr takes them."""
        if not len(self.low):
            return []
        low, high = self.low / self.limit_size, self.high / self.limit_size
        return [NonlinearConstraint(self.limits, low, high, jac=self.dlimits, hess=self.curvature)]

    def curvature(self, x: Array, multipliers: Array) -> Array:
        """∂²/∂x² of the Lagrangian J + Σ λᵢ cᵢ, learnt from iterates alone: SciPy would learn it from walls too."""
        point, before = self.look(x) or self.base, self.curved
        if point is not before:
            slopes = [self._slope(each) + multipliers @ self._dlimits(each) for each in (before, point)]
            if (slopes[1] != slopes[0]).any():
                self.hessian.update(point.x - before.x, slopes[1] - slopes[0])
            self.curved = point
        return np.array(self.hessian.get_matrix())

    def curvature_alone(self, x: Array) -> Array:
        """The same without limits; with them, nothing: theirs has it all."""
        n = len(self.free)
        return np.zeros((n, n)) if len(self.low) else self.curvature(x, np.zeros(0))

    def in_pairs(self) -> list[dict[str, Any]]:
        """Limits as SLSQP takes them: c − lower = 0, and c − lower ≥ 0, upper − c ≥ 0."""
        equal = self.low == self.high
        lower, upper = ~equal & np.isfinite(self.low), ~equal & np.isfinite(self.high)
        sides = {("eq", 1): equal, ("ineq", 1): lower, ("ineq", -1): upper}
        pairs = []
        for (kind, sign), rows in sides.items():
            edge = (self.low if sign > 0 else self.high) / self.limit_size
            if rows.any():
                pairs.append(
                    {
                        "type": kind,
                        "fun": lambda x, rows=rows, edge=edge, sign=sign: sign * (self.limits(x) - edge)[rows],
                        "jac": lambda x, rows=rows, sign=sign: sign * self.dlimits(x)[rows],
                    }
                )
        return pairs


def _pair(name: str, found: Any, p: int, *, scalar: bool = False) -> tuple[Array, Array]:
    """What a function of designs gave, as (k,) and (k, p)."""
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise InputError(f"`{name}` gives {type(found).__name__}; expected two things, values and their gradient")
    value, gradient = engine.real(f"value of {name}", found[0]), engine.real(f"gradient of {name}", found[1])
    wanted = (*value.shape, p)
    if value.ndim > (0 if scalar else 1) or gradient.shape != wanted:
        shapes = f"() and ({p},)" + ("" if scalar else f", or (k,) and (k, {p})")
        raise InputError(f"`{name}` gives shapes {value.shape} and {gradient.shape}; expected {shapes}")
    return np.array(value, ndmin=1), np.array(gradient).reshape(-1, p)  # copies: a function may use its arrays again


def _per_parameter(design: Design, name: str, given: Any, expected: str) -> dict[int, Any]:
    """What is given for parameters, by number."""
    if isinstance(given, Mapping):
        for key in given:
            if key not in design.names:
                raise InputError(f"`{name}` has {shown(key)}; expected names of parameters: {', '.join(design.names)}")
        return {design.names.index(key): value for key, value in given.items()}
    try:
        items = list(given)
    except Exception:  # whatever a foreign object raises when asked for its items
        items = []
    if isinstance(given, str) or len(items) != design.p:
        raise InputError(f"`{name}` is {shown(given)}; expected {expected}, one for each of the {design.p} parameters")
    return dict(enumerate(items))


def _bounds(design: Design, given: PerParameter | None) -> tuple[Array, Array]:
    lower, upper = np.full(design.p, -np.inf), np.full(design.p, np.inf)
    if given is None:
        return lower, upper
    for k, pair in _per_parameter(design, "bounds", given, "pairs (lower, upper)").items():
        if pair is None:
            continue
        name, start = design.names[k], design.values[k]
        try:
            low, high = pair
            lower[k] = -np.inf if low is None else engine.real("lower", low).item()
            upper[k] = np.inf if high is None else engine.real("upper", high).item()
        except Exception:  # whatever is no pair of numbers, or raises when asked for them
            raise InputError(f"`bounds` of {name!r} is {shown(pair)}; expected (lower, upper), or None") from None
        if not lower[k] <= start <= upper[k]:
            raise InputError(f"`bounds` of {name!r} are {lower[k]:g} and {upper[k]:g}; the design has {start:g}")
    return lower, upper


def _scale(design: Design, given: PerParameter | None, lower: Array, upper: Array) -> Array:
    """Scales of the parameters, (p,)."""
    width, size = upper - lower, np.abs(design.values)
    scale: Array = np.where(np.isfinite(width) & (width > 0), width, np.where(size > 0, size, 1.0))
    if given is not None:
        for k, value in _per_parameter(design, "scale", given, "positive numbers").items():
            number = engine.real(f"scale of {design.names[k]!r}", value)
            if number.shape != () or not 0 < number < np.inf:
                raise InputError(f"`scale` of {design.names[k]!r} is {shown(value)}; expected a positive number")
            scale[k] = number
    return scale
