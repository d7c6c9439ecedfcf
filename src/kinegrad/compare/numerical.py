"""Numerical differentiation: forward, central, complex-step and adaptive differences behind one call.

A difference quotient of step h errs by truncation, which grows with h, and by rounding, ε|f|/h, which shrinks:

    forward    (f(x + h) − f(x)) / h             truncation h  |f″|/2      best h ~ ε^(1/2)    leaves ~ 1e-8
    central    (f(x + h) − f(x − h)) / 2h        truncation h² |f‴|/6      best h ~ ε^(1/3)    leaves ~ 1e-10
    complex    Im f(x + ih) / h                  truncation h² |f‴|/6, no subtraction: any tiny h, leaves ~ 1e-16
    adaptive   central, steps from large to small, extrapolated to h → 0, the one with the least estimated error

The adaptive one is numdifftools: of the family of the MATLAB `jacobianest` that [zhakatayev2023] compares with, but
with other steps (``papers/zhakatayev2023/jacobianest.py`` has those).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad._engine import not_finite, one_of, real
from kinegrad.errors import InputError, shown

__all__ = ["numerical_jacobian"]

Array = NDArray[np.float64]
EPSILON = float(np.finfo(np.float64).eps)
TINY = 1e-200  # its square underflows to zero: no truncation at all


def numerical_jacobian(
    function: Callable[[Any], ArrayLike],
    x: ArrayLike,
    method: str = "central",
    *,
    step: ArrayLike | None = None,
    batched: bool = False,
) -> Array:
    """The derivative of a function with respect to every component of x, by differences.

    Parameters
    ----------
    function : callable
        Takes an array of the shape of x, returns real numbers of any one shape (a scalar too).
    x : array_like, any shape
        Where to differentiate.
    method : {"central", "forward", "complex", "adaptive"}
        ``complex`` is exact to rounding, but `function` must accept complex numbers and be analytic (no ``abs``, no
        comparisons, no transposed conjugates); kinegrad's own functions take real numbers only.  ``adaptive`` chooses
        its steps by itself: the most accurate of the others, and by far the slowest.
    step : float or array_like that broadcasts to x, optional
        Absolute step of each component.  Default: ε^(1/2) max(1, \\|x\\|) for ``forward``, ε^(1/3) max(1, \\|x\\|) for
        ``central``, 1e-200 for ``complex``.  Not for ``adaptive``.
    batched : bool
        `function` accepts a batch of points in its leading axis, and returns their values in its leading axis, as
        kinegrad's functions do: ``forward``, ``central`` and ``complex`` then call it once for all points.

    Returns
    -------
    ndarray, shape f.shape + x.shape
        ``[*i, *j]`` is the derivative of component i of the function with respect to component j of x.

    Examples
    --------
    >>> numerical_jacobian(lambda x: [x[0] * x[1], np.sin(x[1])], [2.0, 0.0]).round(8)
    array([[0., 2.],
           [0., 1.]])
    >>> float(numerical_jacobian(np.sin, 1.0, "complex") - np.cos(1.0))
    0.0

    How the torques of an arm change with its posture, all points in one call:

    >>> from kinegrad import inverse_dynamics, samples
    >>> arm = samples.two_link(gravity=(0, -10, 0))
    >>> numerical_jacobian(lambda q: inverse_dynamics(arm, q, [0, 0], [0, 0]), [np.pi / 2, 0], batched=True).round(6)
    array([[-4., -1.],
           [-1., -1.]])
    """
    if not callable(function):
        raise InputError(f"`function` is a {type(function).__name__}; expected a function of x")
    one_of("method", method, _METHODS)
    at = real("x", x)
    if not np.isfinite(at).all():
        raise not_finite("x", at)
    if not at.size:
        raise InputError(f"`x` has shape {at.shape}, no component; expected at least one")
    columns = _METHODS[method](_Evaluate(function, at, batched), at.ravel(), step)
    return np.moveaxis(columns, 0, -1).reshape(columns.shape[1:] + at.shape)


# --- the methods: each gives df/dx_j for all j, shape (x.size, *f.shape) ------------------------------------------


def _forward(f: _Evaluate, x: Array, step: ArrayLike | None) -> Array:
    points = _moved(x, _steps(f, x, step, EPSILON ** (1 / 2)))
    values = f(np.concatenate([x[None], points]))
    return _quotient(values[1:], values[0], points.diagonal() - x)


def _central(f: _Evaluate, x: Array, step: ArrayLike | None) -> Array:
    h = _steps(f, x, step, EPSILON ** (1 / 3))
    up, down = _moved(x, h), _moved(x, -h)
    values = f(np.concatenate([up, down]))
    return _quotient(values[: x.size], values[x.size :], up.diagonal() - down.diagonal())


def _complex(f: _Evaluate, x: Array, step: ArrayLike | None) -> Array:
    h = np.full(x.shape, TINY) if step is None else _given_steps(f, step)
    return _quotient(f.imaginary(x + 1j * np.diag(h)), 0.0, h)


def _adaptive(f: _Evaluate, x: Array, step: ArrayLike | None) -> Array:
    import numdifftools  # here, because it takes as long to import as all of kinegrad

    if step is not None:
        raise InputError(f"`step` is {shown(step)}; the adaptive method chooses its steps by itself, so expected None")
    value = f(x[None])[0]
    jacobian = numdifftools.Jacobian(lambda point: f(np.reshape(point, (1, -1)))[0].ravel())(x)
    return np.asarray(jacobian, dtype=np.float64).T.reshape(x.shape + value.shape)


_METHODS: dict[str, Callable[[_Evaluate, Array, ArrayLike | None], Array]] = {
    "central": _central,
    "forward": _forward,
    "complex": _complex,
    "adaptive": _adaptive,
}

# --- steps --------------------------------------------------------------------------------------------------------


def _steps(f: _Evaluate, x: Array, step: ArrayLike | None, scale: float) -> Array:
    """Steps by component that survive addition: x + h differs from x, and from x − h, by what is divided by."""
    h = scale * np.maximum(1.0, np.abs(x)) if step is None else _given_steps(f, step)
    with np.errstate(over="ignore"):
        up, down = x + h, x - h
    lost = (up == x) | (down == x) | ~np.isfinite(up) | ~np.isfinite(down)
    if lost.any():
        j = int(np.argmax(lost))
        raise InputError(
            f"`step` at index {f.index(j)} is {h[j]:.3g}, which does not move x = {x[j]:.17g} to another finite number"
        )
    return h


def _given_steps(f: _Evaluate, step: ArrayLike) -> Array:
    given = real("step", step)
    try:
        h = np.broadcast_to(given, f.shape).ravel()
    except ValueError:
        raise InputError(
            f"`step` has shape {given.shape}; expected one number, or the shape {f.shape} of `x`"
        ) from None
    if not (np.isfinite(h) & (h > 0)).all():
        raise InputError(f"`step` is {shown(step)}; expected positive finite numbers")
    return h


def _moved(x: Array, h: Array) -> Array:
    """Point j is x with component j moved by h_j; shape (x.size, x.size)."""
    points = np.tile(x, (x.size, 1))
    np.fill_diagonal(points, x + h)
    return points


def _quotient(high: Array, low: Array | float, h: Array) -> Array:
    """(high − low) / h by components of x, or an InputError where that is beyond the largest number."""
    with np.errstate(over="ignore"):
        slopes = (high - low) / h.reshape(-1, *(1,) * (high.ndim - 1))
    if not np.isfinite(slopes).all():
        raise InputError("`function` changes by more than the largest number, 1.8e308, over a step; scale it down")
    return slopes


# --- the function, asked politely ---------------------------------------------------------------------------------


class _Evaluate:
    """`function` at many points of shape (k, x.size): values (k, *f.shape), checked."""

    def __init__(self, function: Callable[[Any], ArrayLike], x: Array, batched: bool) -> None:
        self.function, self.x, self.shape, self.batched = function, x.ravel(), x.shape, batched

    def __call__(self, points: Array) -> Array:
        return self._finite(real("function(x)", self._values(points)), points)

    def imaginary(self, points: NDArray[np.complex128]) -> Array:
        self(self.x[None])  # what goes wrong with real numbers has another reason
        hint = (
            "; kinegrad's own functions take real numbers only: use its exact derivatives, or method='central' "
            "or 'adaptive'"
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", np.exceptions.ComplexWarning)
                values = np.asarray(self._values(points))
        except (TypeError, ValueError, np.exceptions.ComplexWarning) as error:
            raise InputError(f"`function` does not accept complex numbers ({error}){hint}") from error
        if values.dtype.kind != "c":
            raise InputError(f"`function` returned {values.dtype} for complex x; expected complex numbers{hint}")
        return self._finite(values.imag, points)

    def _values(self, points: NDArray[Any]) -> ArrayLike:
        count = len(points)
        inputs = points.reshape(count, *self.shape).copy()  # the function may write to it
        if self.batched:
            values = _array(self.function(inputs))
            if values.shape[:1] != (count,):
                raise InputError(
                    f"`function` returned shape {values.shape} for a batch of {count} points; "
                    f"expected ({count}, ...), or set batched=False"
                )
            return values
        each = [_array(self.function(point)) for point in inputs]
        for value in each:
            if value.shape != each[0].shape:
                raise InputError(f"`function` returned shapes {each[0].shape} and {value.shape}; expected one shape")
        return np.stack(each)

    def _finite(self, values: Array, points: NDArray[Any]) -> Array:
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            k, *component = bad[0].tolist()
            moved = np.flatnonzero(points[k] != self.x)
            where = f" moved at index {self.index(int(moved[0]))}" if len(moved) else ""
            raise InputError(
                f"`function` at index {tuple(component)} is {values[tuple(bad[0])]} for x{where}; "
                "expected finite numbers"
            )
        return values

    def index(self, j: int) -> tuple[int, ...]:
        """The index into x of its j-th component."""
        return tuple(int(k) for k in np.unravel_index(j, self.shape))


def _array(values: Any) -> NDArray[Any]:
    """What the function returned, as an array."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"`function` returned a {type(values).__name__} of uneven rows; expected one shape") from None
