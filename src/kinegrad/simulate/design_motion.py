"""Prescribed motions that follow the parameters of a design: θ(t; p)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import CONJUGATE, times
from kinegrad.design import Design
from kinegrad.errors import InputError
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["BoundMotion", "DesignMotion", "check_design"]

Array = NDArray[np.float64]
STEP = 1e-40  # of the complex step; its square is nothing beside 1
DIFFERENCE = 1e-6  # step of the differences that derivatives are checked with, relative to max(1, |p|)
AGREE = 1e-3  # part by which they may differ
CHECKED = (0.0, 0.37, 1.0)  # parts of the time span at which they are compared


@dataclass(frozen=True, eq=False)
class DesignMotion(Result):
    """A prescribed motion that follows the parameters of a design, for `prescribed` of simulations with a `design`.

    Parameters
    ----------
    function : callable (t, p) → (q, v, a)
        Coordinate, speed and acceleration of the joint at t, s; p, shape (p,), are the values of the design in the
        order of its names.  For a ball with a quaternion (quaternion, angular velocity, angular acceleration).
    derivatives : callable (t, p) → (dq_dp, dv_dp, da_dp), optional
        Partial derivatives, shape (p,) each; for a ball (3, p), that of the quaternion in the tangent.  Without it the
        function is called with complex p (complex step), and has to be analytic: NumPy's functions qualify, those of
        the `math` module and ``abs`` do not.

    Examples
    --------
    A crank that swings with an amplitude and a frequency that are parameters:

    >>> swing = DesignMotion(lambda t, p: (p[0] * np.sin(p[1] * t), p[0] * p[1] * np.cos(p[1] * t),
    ...                                    -p[0] * p[1] ** 2 * np.sin(p[1] * t)))
    >>> swing.function(0.5, np.array([0.1, np.pi]))[0]
    np.float64(0.1)
    """

    function: Callable[[float, Array], Any]
    derivatives: Callable[[float, Array], Any] | None = None

    def __post_init__(self) -> None:
        for name, part in vars(self).items():
            if not (callable(part) or (part is None and name == "derivatives")):
                found = type(part).__name__
                raise InputError(f"`{name}` of a DesignMotion is a {found}; expected a function of (t, p)")


def check_design(model: Model, design: Any) -> None:
    """Refuse what is no design of this model."""
    if design is not None and not (isinstance(design, Design) and (design.model is model or design.model == model)):
        found = type(design).__name__ if not isinstance(design, Design) else "design of another model"
        raise InputError(f"`design` is a {found}; expected a Design of this model: Design(model, [...])")


class BoundMotion:
    """A DesignMotion of a joint, at the values of a design: a function t → (q, v, a) that has slopes."""

    def __init__(self, joint: str, motion: DesignMotion, design: Design | None, *, ball: bool) -> None:
        self.where, self.motion, self.ball = f"prescribed[{joint!r}]", motion, ball
        if design is None:
            raise InputError(
                f"`{self.where}` is a DesignMotion, and no `design` is given whose parameters it follows; expected "
                "both, or a function t → (q, v, a)"
            )
        self.values, self.names = np.array(design.values), design.names

    def __call__(self, t: float) -> Any:
        return self.motion.function(t, self.values.copy())

    def slopes(self, t: float) -> Array:
        """dq/dp, dv/dp and da/dp, (3, 1 or 3, p); of a quaternion in the tangent."""
        if self.motion.derivatives is None:
            return self._by_complex_step(t)
        core = (3, len(self.values)) if self.ball else (len(self.values),)
        given = self.motion.derivatives(t, self.values.copy())
        parts = [engine.real(self.where, x) for x in given] if isinstance(given, tuple | list) else []
        if not parts and isinstance(given, np.ndarray):
            parts = list(engine.real(self.where, given))
        if len(parts) != 3 or any(x.shape != core for x in parts):
            found = [x.shape for x in parts] if parts else type(given).__name__
            raise InputError(
                f"`derivatives` of `{self.where}` give {found} at t = {t:g} s; expected three of shape {core}"
            )
        return self._finite(t, np.array(parts).reshape(3, -1, len(self.values)))

    def check(self, first: float, last: float) -> None:
        """Refuse derivatives that are not those of the function: cut off, not analytic, or wrong."""
        with warnings.catch_warnings():  # float(x) of a complex number is a warning only
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            self._compare(first, last)

    def _compare(self, first: float, last: float) -> None:
        for t in (first + part * (last - first) for part in CHECKED):
            exact, rough = self.slopes(t), self._by_differences(t)
            size = max(1.0, *(float(np.abs(np.asarray(x, dtype=float)).max()) for x in self(t)))
            off = np.abs(exact - rough) - AGREE * (np.abs(exact) + np.abs(rough)).max(axis=(0, 1))
            if (off > AGREE * DIFFERENCE * size).any():
                k = int(np.argmax(off.max(axis=(0, 1))))
                what = "does not give derivatives by the complex step (is it analytic?)"
                if self.motion.derivatives is not None:
                    what = "has `derivatives` that are not those of its function"
                raise InputError(
                    f"`{self.where}` {what}: with respect to {self.names[k]!r} at t = {t:g} s they are "
                    f"{exact[..., k].ravel().tolist()}, and differences {rough[..., k].ravel().round(6).tolist()}; "
                    "expected them to agree"
                )

    def _by_complex_step(self, t: float) -> Array:
        found = []
        for k in range(len(self.values)):
            moved = self.values.astype(complex)
            moved[k] += 1j * STEP
            try:
                parts = [np.asarray(x, dtype=complex).ravel() for x in self.motion.function(t, moved)]
            except (TypeError, np.exceptions.ComplexWarning) as error:
                raise InputError(
                    f"`{self.where}` cannot take complex parameters ({error}); expected NumPy's functions, or a "
                    "DesignMotion with `derivatives`"
                ) from error
            found.append(self._tangent([x.real for x in parts], [x.imag / STEP for x in parts]))
        return self._finite(t, np.stack(found, axis=-1))

    def _by_differences(self, t: float) -> Array:
        found = []
        for k, value in enumerate(self.values):
            h = DIFFERENCE * max(1.0, abs(value))
            sides = []
            for x in (value + h, value - h):
                moved = self.values.copy()
                moved[k] = x
                sides.append([np.asarray(y, dtype=float).ravel() for y in self.motion.function(t, moved)])
            middle = [(x + y) / 2 for x, y in zip(*sides, strict=True)]
            found.append(self._tangent(middle, [(x - y) / (2 * h) for x, y in zip(*sides, strict=True)]))
        return np.stack(found, axis=-1)

    def _tangent(self, values: list[Array], slopes: list[Array]) -> Array:
        """Slopes of q, v and a, (3, 1 or 3): dq of a quaternion is 2 Im(q* ⊗ dq)."""
        first = slopes[0]
        if self.ball:
            first = 2 * times(values[0] * CONJUGATE, first)[1:]
        return np.array([first, *slopes[1:]])

    def _finite(self, t: float, slopes: Array) -> Array:
        if not np.isfinite(slopes).all():
            raise InputError(f"derivatives of `{self.where}` are not finite at t = {t:g} s; expected finite numbers")
        return slopes
