"""SciPy's splines of time: which there are, and from when to when one is defined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BPoly, BSpline, PPoly

from kinegrad.errors import InputError

Array = NDArray[np.float64]
SPLINES = BSpline | PPoly | BPoly
ROUNDING = 1e-9  # by which the last of many steps may pass the end of a spline, of the time simulated


def knots(spline: Any) -> Array:
    """Where its pieces meet, the first and the last of them its ends."""
    if isinstance(spline, BSpline):
        return np.asarray(spline.t[spline.k : len(spline.t) - spline.k])
    return np.sort(spline.x)


def within(where: str, spline: Any, first: float, last: float) -> tuple[float, float]:
    """The times between which to evaluate it, or an InputError if it does not last from first to last."""
    if spline.extrapolate == "periodic":
        return -np.inf, np.inf
    begin, end = (float(x) for x in knots(spline)[[0, -1]])
    spare = ROUNDING * (last - first)
    if first < begin - spare or last > end + spare:
        span = f"from {first:.12g} to {last:.12g}"
        raise InputError(f"{where} is a spline from {begin:.12g} to {end:.12g} s; the simulation goes {span}")
    return begin, end
