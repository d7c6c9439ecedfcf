"""Zero-phase Butterworth low-pass filters of what was measured at equal steps of time.

A Butterworth filter of order k, run forwards and then backwards, has no phase: it shifts nothing in time.  Its gain at
the frequency f is that of one pass, squared.  With the bilinear transform, at the sampling rate f_s,

    G(f) = 1 / (1 + (tan(π f/f_s) / tan(π f_d/f_s))^(2k)),                                                        (1)

so that the cut-off f_c, where a filter has the gain 1/√2 (−3 dB), is not the frequency f_d that one pass is designed
for.  From G(f_c) = 1/√2,

    tan(π f_d/f_s) = tan(π f_c/f_s) / (√2 − 1)^(1/(2k)),                                                          (2)

the correction of [winter2009], exact at any sampling rate.  `order` here is that of both passes together, 2k, as
"fourth-order zero-lag Butterworth" means in the literature of biomechanics.

At its ends a record is continued by its own odd reflection, 2x₀ − x, for two periods of the cut-off (or as far as the
record goes), which keeps value and slope continuous; the continuation is dropped afterwards.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.motion import check_times

__all__ = ["equal_steps", "low_pass"]

Array = NDArray[np.float64]
PERIODS = 2  # of the cut-off, by which a record is continued at each end
JITTER = 1e-3  # of a step, by which times may miss equal steps
DECIMALS = 6  # to which times in files may have been rounded


def low_pass(t: ArrayLike, x: ArrayLike, cutoff: float, *, order: int = 4) -> Array:
    """What is slower than `cutoff` in a record of equal steps, without a shift in time.

    Parameters
    ----------
    t : array_like, shape (m,)
        Times, s, in equal steps (times that are rounded in a file, too).
    x : array_like, shape (m, ...)
        What was measured: angles, marker positions, forces.
    cutoff : float
        Hz, where the gain is 1/√2 (−3 dB); below half of the sampling rate.
    order : int
        Of the whole filter, forwards and backwards together: 2, 4, 6, …

    Returns
    -------
    ndarray, shape (m, ...)

    Examples
    --------
    A swing of 1 Hz with an error of 40 Hz upon it, sampled at 200 Hz:

    >>> t = np.arange(400) / 200
    >>> swing = np.sin(2 * np.pi * t)
    >>> found = low_pass(t, swing + 0.01 * np.sin(2 * np.pi * 40 * t), 6)
    >>> bool(np.abs(found - swing)[20:-20].max() < 1e-3)
    True
    """
    times = check_times(t, least=4)
    values = engine.real("x", x)
    if values.ndim < 1 or len(values) != len(times):
        raise InputError(f"`x` has shape {values.shape}; expected ({len(times)}, ...), a row for each time")
    if not np.isfinite(values).all():
        raise engine.not_finite("x", values)
    grid = equal_steps(times)
    if grid is None:
        steps = np.diff(times)
        found = f"from {steps.min():.6g} to {steps.max():.6g} s"
        raise InputError(f"the steps of `t` are {found}; expected equal ones: interpolate `x` to such times first")
    return filtered(grid, values, check_cutoff("cutoff", cutoff, grid), check_order(order))


def check_order(order: Any) -> int:
    """An even order, of both passes together."""
    found = engine.whole("order", order, 2)
    if found % 2 or found > 20:
        raise InputError(f"`order` is {found}; expected an even number up to 20: half of it for each of the two passes")
    return found


def check_cutoff(name: str, cutoff: Any, grid: Array) -> float:
    """A cut-off frequency below half of the sampling rate, Hz."""
    frequency, rate = engine.positive(name, cutoff), sampling_rate(grid)
    if not frequency < rate / 2:
        limit = f"half of the sampling rate of {rate:.6g} Hz"
        raise InputError(f"`{name}` is {shown(cutoff)} Hz; expected less than {rate / 2:.6g} Hz, {limit}")
    duration = grid[-1] - grid[0]
    if frequency * duration < 0.5:
        slowest = f"{0.5 / duration:.3g} Hz, half a period in the {duration:.4g} s of the record"
        raise InputError(f"`{name}` is {shown(cutoff)} Hz; expected at least {slowest}")
    return frequency


def sampling_rate(grid: Array) -> float:
    """Hz, of times in equal steps."""
    return float((len(grid) - 1) / (grid[-1] - grid[0]))


def padding(grid: Array, cutoff: float) -> int:
    """How many samples a record is continued by at each end."""
    return min(len(grid) - 1, math.ceil(PERIODS * sampling_rate(grid) / cutoff))


def filtered(grid: Array, x: Array, cutoff: float, order: int) -> Array:
    """`x` through the filter, along its first axis; all arguments checked."""
    from scipy.signal import butter, sosfiltfilt  # here, because SciPy's signals take a while to import

    rate, k = sampling_rate(grid), order // 2
    wanted = math.tan(math.pi * cutoff / rate) / (math.sqrt(2) - 1) ** (1 / (2 * k))  # (2)
    design = rate / math.pi * math.atan(wanted)
    sections = butter(k, design, fs=rate, output="sos")
    return np.asarray(sosfiltfilt(sections, x, axis=0, padtype="odd", padlen=padding(grid, cutoff)))


def equal_steps(t: Array) -> Array | None:
    """The equal steps that times are meant to be, if they are: to rounding, or to the decimals they are written in.

    >>> equal_steps(np.array([0, 0.033, 0.067, 0.1])).round(6)  # 30 Hz, in milliseconds
    array([0.      , 0.033333, 0.066667, 0.1     ])
    >>> equal_steps(np.array([0, 0.03, 0.09, 0.12])) is None  # a frame is missing
    True
    """
    if len(t) < 3:
        return t
    k, meant = np.arange(len(t)), np.linspace(t[0], t[-1], len(t))
    if np.abs(t - meant).max() <= JITTER * (t[-1] - t[0]) / (len(t) - 1):
        return meant
    for decimals in range(1, DECIMALS + 1):
        unit = 10.0**-decimals
        if np.abs(t / unit - np.round(t / unit)).max() < 1e-6:
            slope, first = np.polyfit(k, t, 1)
            error = np.abs(t - (first + slope * k)).max()  # half a unit at most, but for that of the fit
            return meant if error <= 0.75 * unit and slope > 1.5 * unit else None
    return None
