"""Positions smoothed and differentiated exactly as OpenSim's inverse dynamics does it.

For comparison with OpenSim and with published results that it made; :func:`motion_from_positions` is the better filter.
OpenSim's InverseDynamicsTool, with a cut-off frequency,

1. continues the record by half of its samples at each end, reflected in its first and last sample (odd);
2. resamples it by a natural spline of degree 5 at its smallest step, if its steps are not equal to rounding;
3. filters by a Butterworth filter of third order forwards, then backwards; each pass copies its first three samples;
4. takes q, v and a from the interpolating natural spline of degree 5 (its third and fourth derivatives vanish at both
   ends).

Without a cut-off it does the last alone.  The cut-off is that of one pass: of both, the gain is ½ there (−6 dB).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.motion import check_times
from kinegrad.recordings.motion_from_positions import RecordedMotion, SplinePositions

__all__ = ["motion_as_opensim"]

Array = NDArray[np.float64]
LEAST = 7  # samples


def motion_as_opensim(model: Model, t: ArrayLike, q: ArrayLike, *, lowpass: float | None = None) -> RecordedMotion:
    """The motion that OpenSim's InverseDynamicsTool makes of measured positions.

    Parameters
    ----------
    model : Model
        Without quaternions.
    t : array_like, shape (m,)
        s, increasing; at least seven.
    q : array_like, shape (m, nq)
        rad or m; nothing may be missing.
    lowpass : float, optional
        ``lowpass_cutoff_frequency_for_coordinates``, Hz.

    Returns
    -------
    RecordedMotion
        At the times given; where these are uneven and filtered, at those that OpenSim resamples to.

    Examples
    --------
    >>> from kinegrad import samples
    >>> t = np.arange(100) / 100
    >>> motion = motion_as_opensim(samples.two_link(), t, np.outer(np.sin(4 * t), [0.5, 1.0]), lowpass=6)
    >>> motion.made[-1]
    'v, a: derivatives of the natural spline of degree 5 through q'
    """
    engine.check_model(model)
    if model.nq != model.nv:
        found = f"model {shown(model.name)} has quaternions"
        raise InputError(f"{found}, which OpenSim does not filter; expected coordinates of one number each")
    times, x = check_times(t, least=LEAST), engine.real("q", q)
    if x.shape != (len(times), model.nq):
        raise InputError(f"`q` has shape {x.shape}; expected ({len(times)}, {model.nq}): times, and coordinates")
    if not np.isfinite(x).all():
        raise engine.not_finite("q", x)
    made = list[str]()
    grid, y = times, x
    if lowpass is not None:
        cutoff = engine.positive("lowpass", lowpass)
        count = len(times) // 2
        grid, y = _continued(times, x, count)
        made.append(f"q: continued by {count} samples at each end, reflected")
        steps = np.diff(grid)
        if abs(steps.min() - (grid[-1] - grid[0]) / (len(grid) - 1)) > np.finfo(float).eps:
            grid, y = _resampled(grid, y)
            made.append(f"q: resampled by a natural spline of degree 5 at {1 / np.diff(grid).mean():.6g} Hz")
        rate = 1 / steps.min()
        if not cutoff < rate / 2:
            raise InputError(f"`lowpass` is {cutoff:g} Hz; expected less than half of the sampling rate of {rate:g} Hz")
        y = _both_ways(y, cutoff, rate)
        made.append(f"q: Butterworth of third order forwards and backwards, cut-off {cutoff:g} Hz of each pass")
        inside = (grid >= times[0] - 1e-9) & (grid <= times[-1] + 1e-9)
        times = grid[inside] if inside.sum() != len(times) else times
    made.append("v, a: derivatives of the natural spline of degree 5 through q")
    path = SplinePositions(model, natural_spline(grid, y, 5))
    state: dict[str, Any] = path(times)
    return RecordedMotion(model, times, **state, made=tuple(made), filled=None, _path=path)


def natural_spline(t: Array, x: Array, degree: int) -> Any:
    """The interpolating natural spline: its derivatives of orders (degree + 1)/2, …, degree − 1 vanish at both ends."""
    from scipy.interpolate import make_interp_spline  # here, because it takes a while to import

    ends = [(order, np.zeros(x.shape[1:])) for order in range((degree + 1) // 2, degree)]
    return make_interp_spline(t, x, k=degree, bc_type=(ends, ends))


def _continued(t: Array, x: Array, count: int) -> tuple[Array, Array]:
    """Reflected in the first and the last sample, times and values."""

    def odd(y: Array) -> Array:
        before, after = 2 * y[0] - y[count:0:-1], 2 * y[-1] - y[-2 : -count - 2 : -1]
        return np.concatenate([before, y, after])

    return odd(t), odd(x)


def _resampled(t: Array, x: Array) -> tuple[Array, Array]:
    """At equal steps as small as the smallest, and before the last time: OpenSim leaves out that itself."""
    step = np.diff(t).min()
    count = int(np.ceil((t[-1] - t[0]) / step - 1e-9))
    grid = t[0] + step * np.arange(count)
    return grid, np.asarray(natural_spline(t, x, 5)(grid))


def _both_ways(x: Array, cutoff: float, rate: float) -> Array:
    from scipy.signal import butter, lfilter, lfiltic  # here, because SciPy's signals take a while to import

    b, a = butter(3, cutoff, fs=rate)

    units = np.eye(3)
    begin = np.column_stack([lfiltic(b, a, y=unit, x=unit) for unit in units])  # linear in the last three samples

    def one_way(y: Array) -> Array:
        rest, _ = lfilter(b, a, y[3:], axis=0, zi=begin @ y[2::-1])
        return np.concatenate([y[:3], rest])

    return one_way(one_way(x)[::-1])[::-1]
