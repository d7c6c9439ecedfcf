"""An integrator under watch: its steps end with a sentence, and only what it raises itself is taken for divergence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.simulate.law import Law, diverged

__all__ = ["Watched"]

Array = NDArray[np.float64]
PATIENCE = 100_000  # evaluations in which the time has to advance
ADVANCE = 1e-6  # by this part of the whole: at such a rate the end would take 10¹¹ of them


class _GivenUp(Exception):
    """That an integrator leads nowhere: our own signal to leave it."""


class Watched:
    """The law of motion as one of SciPy's integrators calls it, and the steps of that integrator.

    Parameters
    ----------
    rate : callable (t, y) → ẏ
    law : Law
        Of the joints, to name one that diverges.
    span : (float, float)
        When the motion begins and ends, s.
    most : int or None
        How many evaluations there may be.
    """

    def __init__(
        self, rate: Callable[[float, Array], Array], law: Law, span: tuple[float, float], most: int | None
    ) -> None:
        self._rate, self._law, self._most, self._least = self.guard(rate), law, most, ADVANCE * (span[1] - span[0])
        self._count, self._marked, self._mark = 0, 0, span[0]
        self._error: Exception | None = None
        self._unlimited = False

    def rate(self, t: float, y: Array) -> Array:
        """ẏ; leaves the integrator if that has been asked for too often."""
        self._count += 1
        if self._unlimited:
            return np.asarray(self._rate(t, y))
        if self._most is not None and self._count > self._most:
            raise _GivenUp(f"`max_evaluations`, {self._most}, are used up")
        if self._count - self._marked > PATIENCE:
            raise _GivenUp(
                f"{PATIENCE} evaluations have not taken it further by {self._least:.3g} s; where springs or dampers "
                "are hard, try another `method`, such as 'Radau'"
            )
        return np.asarray(self._rate(t, y))

    def unlimited(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """What a few evaluations between steps are for, which end by themselves: to begin, and to interpolate."""
        self._unlimited = True
        try:
            return function(*arguments, **options)
        finally:
            self._unlimited = False

    def guard(self, function: Callable[[float, Array], Any]) -> Callable[[float, Array], Any]:
        """The same function; what it raises is known not to be the integrator's."""

        def guarded(t: float, y: Array) -> Any:
            try:
                return function(t, y)
            except Exception as error:
                self._error = error
                raise

        return guarded

    def step(self, solver: Any, speed_limit: float) -> tuple[int, str]:
        """One step of the integrator: 0 and nothing, or the status and a sentence that say why there is none."""
        try:
            why = solver.step()
        except _GivenUp as signal:
            return -2, f"given up at t = {solver.t:.6g} s: {signal}"
        except ValueError as error:
            if error is self._error:
                raise
            why = str(error)  # SciPy's linear algebra, given numbers that are not finite
        else:
            why = self._fault(solver, why, speed_limit)
        if why:
            return -1, diverged(self._law.model, solver.t, self._speeds(solver), why.rstrip("."))
        if solver.t - self._mark >= self._least:
            self._mark, self._marked = solver.t, self._count
        return 0, ""

    def _fault(self, solver: Any, why: str | None, speed_limit: float) -> str:
        """What is wrong with a step, if anything."""
        if solver.status == "failed":
            return why.lower() if why else "the integrator found no step short enough"
        if not np.isfinite(solver.y).all():
            return "its numbers are not finite"
        if not np.abs(self._speeds(solver)).max() < speed_limit:
            return f"faster than `speed_limit`, {speed_limit:g}"
        if solver.t == solver.t_old:
            return "its steps are shorter than the spacing between numbers"
        return ""

    def _speeds(self, solver: Any) -> Array:
        """Of all joints, zero at prescribed ones."""
        free, first = self._law.free, len(self._law.free_q)
        v = np.zeros(self._law.model.nv)
        v[free] = solver.y[first : first + len(free)]
        return v
