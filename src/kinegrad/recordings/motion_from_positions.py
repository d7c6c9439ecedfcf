"""Motions from positions alone: gaps filled, errors of measurement removed, speeds and accelerations by splines.

What is measured is q at some times.  Inverse dynamics wants its first two derivatives, too, which magnify errors of
high frequency by ω and ω².  So such errors are removed first, in one of two ways, and the derivatives are those of a
spline of degree 5, whose fourth derivative is continuous:

1. `lowpass`: a zero-phase Butterworth filter (:mod:`kinegrad.recordings.filtering`), then the spline through what it
   leaves;
2. `smoothing`: the smoothing spline itself (:mod:`kinegrad.recordings.smoothing_spline`).

With neither, the spline goes through every sample: right for positions that were computed, not for measured ones.

A quaternion is smoothed in its four parts, of continuous sign, s(t), and then brought to unit length, u = s/|s|.  Its
speeds are the angular velocity in the child's frame and its rate,

    ω = 2 u* ⊗ u̇,    α = 2 vec(u* ⊗ ü)    (vec(u̇* ⊗ u̇) = 0, so that α = ω̇),

with u̇ = (ṡ − u(u·ṡ))/|s| and ü by differentiating |s| u = s twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import CONJUGATE, times
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.motion import Motion, check_times
from kinegrad.recordings.filtering import check_cutoff, check_order, equal_steps, filtered, padding, sampling_rate
from kinegrad.recordings.gaps import close_gaps

__all__ = ["RecordedMotion", "motion_from_positions"]

Array = NDArray[np.float64]
DEGREE = 5
LONGEST_GAP = 0.2  # s
QUATERNION_ERROR = 0.05  # by which the length of a measured quaternion may differ from 1


@dataclass(frozen=True, eq=False, repr=False)
class RecordedMotion(Motion):
    """A motion that was made from measured positions, and how.

    Parameters
    ----------
    made : tuple of str
        What was done to the positions, step by step, in words.
    filled : ndarray of bool, shape (m, nq), or None
        Which positions were missing, and are filled in.

    Examples
    --------
    >>> from kinegrad import samples
    >>> t = np.linspace(0, 1, 101)
    >>> motion = motion_from_positions(samples.two_link(), t, np.outer(np.sin(3 * t), [1, 2]), lowpass=6)
    >>> print(motion)
    RecordedMotion(two_link: 101 times from 0 to 1 s; q, v, a)
    q: zero-phase Butterworth low-pass of order 4, cut-off 6 Hz (−3 dB), 100 Hz, continued by 34 samples at each end
    v, a: derivatives of the spline of degree 5 through q
    """

    made: tuple[str, ...] = field(default=(), kw_only=True)
    filled: NDArray[np.bool_] | None = field(default=None, kw_only=True)

    reported: ClassVar[tuple[str, ...]] = ("how",)

    @property
    def how(self) -> str:
        """What was done, as one text."""
        return "; ".join(self.made)

    def __str__(self) -> str:
        return "\n".join([repr(self), *self.made])

    def __getitem__(self, times: slice) -> RecordedMotion:
        """The motion at some of its times, by their numbers."""
        import dataclasses

        part = super().__getitem__(times)
        return part if self.filled is None else dataclasses.replace(part, filled=self.filled[times])


def motion_from_positions(
    model: Model,
    t: ArrayLike,
    q: ArrayLike,
    *,
    lowpass: float | None = None,
    order: int = 4,
    smoothing: str | float | ArrayLike | Mapping[str, float] | None = None,
    longest_gap: float = LONGEST_GAP,
) -> RecordedMotion:
    """The motion whose positions were measured: q, v and a, and what was done to get them.

    Parameters
    ----------
    model : Model
    t : array_like, shape (m,)
        s, increasing.
    q : array_like, shape (m, nq)
        Coordinates, rad or m, as measured; NaN where one is missing.  Angles that jump by whole turns are made
        continuous.
    lowpass : float, optional
        Cut-off frequency of a zero-phase Butterworth low-pass filter, Hz, where its gain is 1/√2 (−3 dB).  For walking
        4 to 8 Hz are usual.
    order : int
        Of that filter, forwards and backwards together: 2, 4, 6, …
    smoothing : "gcv", float, array_like or mapping, optional
        Instead of the filter, a smoothing spline: "gcv" chooses how smooth by generalised cross-validation; a number is
        the standard deviation of the errors of measurement, rad or m: one for all coordinates, one for each, or by
        name.
    longest_gap : float
        s; gaps that are longer are not filled but refused by name.

    Returns
    -------
    RecordedMotion
        Its `made` says what was done.  At both ends, for about one period of the cut-off, accelerations are less
        certain than within.

    Raises
    ------
    InputError
        What is missing or does not fit, by name and time.

    Examples
    --------
    Half a second of a measured swing, with one frame lost:

    >>> from kinegrad import samples
    >>> t = np.arange(61) / 120
    >>> angles = np.outer(np.sin(4 * t), [0.5, 1.0])
    >>> angles[20, 1] = np.nan
    >>> motion = motion_from_positions(samples.two_link(), t, angles, lowpass=10)
    >>> motion.made[0]
    'q.elbow: 1 of 61 missing, filled by a cubic spline (longest gap 0.0167 s)'
    >>> bool(np.abs(motion.v[10:-10, 1] - 4 * np.cos(4 * t[10:-10])).max() < 0.05)
    True
    """
    engine.check_model(model)
    instants, positions = _check(model, t, q)
    if lowpass is not None and smoothing is not None:
        raise InputError("both `lowpass` and `smoothing` are given; expected one of them, or neither")
    even = check_order(order)
    gap = engine.positive("longest_gap", longest_gap)
    made = list[str]()
    instants, positions, filled = close_gaps(model, instants, positions, gap, made)
    if lowpass is not None:
        instants, positions, filled = _equal(instants, positions, filled, gap, made)
        cutoff = check_cutoff("lowpass", lowpass, instants)
        positions = filtered(instants, positions, cutoff, even)
        made.append(
            f"q: zero-phase Butterworth low-pass of order {even}, cut-off {cutoff:g} Hz (−3 dB), "
            f"{sampling_rate(instants):.5g} Hz, continued by {padding(instants, cutoff)} samples at each end"
        )
    if smoothing is not None:
        from kinegrad.recordings.smoothing_spline import smooth_columns

        spline, words = smooth_columns(model, instants, positions, smoothing)
        made += words
        made.append(f"v, a: derivatives of the smoothing spline of degree {DEGREE}")
    else:
        from scipy.interpolate import make_interp_spline  # here, because it takes a while to import

        spline = make_interp_spline(instants, positions, k=DEGREE)
        through = "q" if lowpass is not None else "the positions as given, unfiltered"
        made.append(f"v, a: derivatives of the spline of degree {DEGREE} through {through}")
    path = SplinePositions(model, spline)
    state: dict[str, Any] = path(instants)
    return RecordedMotion(
        model, instants, **state, made=tuple(made), filled=filled if filled.any() else None, _path=path
    )


class SplinePositions:
    """q, v and a of a spline of coordinates; quaternions brought to unit length, their speeds angular velocities."""

    def __init__(self, model: Model, spline: Any) -> None:
        self._orders = (spline, spline.derivative(1), spline.derivative(2))
        layout = model.layout
        self._balls = layout.balls
        self._nv = layout.nv
        self._single = (
            np.concatenate([layout.plain_q, np.unique(layout.coupled_q)]).astype(int),
            np.concatenate([layout.plain_v, np.unique(layout.coupled_v)]).astype(int),
        )

    def __call__(self, t: Array) -> dict[str, Array]:
        s, ds, dds = (np.asarray(order(t)) for order in self._orders)
        q, (v, a) = np.array(s), np.empty((2, len(s), self._nv))
        places, speeds = self._single
        v[:, speeds], a[:, speeds] = ds[:, places], dds[:, places]
        for _, k, j in self._balls:
            four, three = slice(k, k + 4), slice(j, j + 3)
            u, du, ddu = _unit(s[:, four], ds[:, four], dds[:, four])
            q[:, four] = u
            v[:, three] = 2 * times(u * CONJUGATE, du)[:, 1:]
            a[:, three] = 2 * times(u * CONJUGATE, ddu)[:, 1:]
        return {"q": q, "v": v, "a": a}


def _unit(s: Array, ds: Array, dds: Array) -> tuple[Array, Array, Array]:
    """u = s/|s| and its first two derivatives: of |s| u = s, |s|̇ = u·ṡ."""
    length = np.linalg.norm(s, axis=1, keepdims=True)
    u = s / length
    rate = (u * ds).sum(axis=1, keepdims=True)
    du = (ds - u * rate) / length
    curve = (du * ds).sum(axis=1, keepdims=True) + (u * dds).sum(axis=1, keepdims=True)
    return u, du, (dds - u * curve - 2 * du * rate) / length


def _check(model: Model, t: Any, q: Any) -> tuple[Array, Array]:
    """Times and positions of the right shapes; NaN is allowed, infinity is not."""
    instants = check_times(t, least=DEGREE + 1)
    positions = np.array(engine.real("q", q))
    if positions.shape != (len(instants), model.nq):
        what = model.layout.columns("q")[0]
        expected = f"({len(instants)}, {model.nq}): times and {what}s of model {shown(model.name)}"
        raise InputError(f"`q` has shape {positions.shape}; expected {expected}")
    if np.isinf(positions).any():
        k, i = np.argwhere(np.isinf(positions))[0]
        raise InputError(f"`q` of {shown(model.coordinate_names[i])} at {instants[k]:g} s is infinite")
    for _, k, _ in model.layout.balls:
        length = np.linalg.norm(positions[:, k : k + 4], axis=1)
        wrong = np.abs(length - 1) > QUATERNION_ERROR
        if wrong.any():
            row = int(np.argmax(wrong))
            name = model.coordinate_names[k].rpartition(".")[0]
            raise InputError(f"`q` of the quaternion {shown(name)} at {instants[row]:g} s has length {length[row]:.4g}")
    return instants, positions


def _equal(
    t: Array, q: Array, filled: NDArray[np.bool_], longest: float, made: list[str]
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """The same at equal steps, which a filter needs: the times that were meant, or a cubic spline's values."""
    grid = equal_steps(t)
    if grid is not None:
        if np.abs(grid - t).max() > 1e-9 * max(abs(t[0]), abs(t[-1])):
            made.append(f"t: rounded times taken as equal steps of {grid[1] - grid[0]:.6g} s")
        return grid, q, filled
    from scipy.interpolate import CubicSpline

    steps = np.diff(t)
    if steps.max() > longest:
        k = int(np.argmax(steps))
        found = f"no samples from {t[k]:g} to {t[k + 1]:g} s, longer than `longest_gap` = {longest:g} s"
        raise InputError(f"`t` has {found}; expected a shorter gap, or the parts one by one")
    step = float(np.median(steps))
    grid = np.linspace(t[0], t[-1], max(round((t[-1] - t[0]) / step) + 1, DEGREE + 1))
    made.append(
        f"t: steps of {steps.min():.5g} to {steps.max():.5g} s, interpolated by a cubic spline "
        f"to equal ones of {grid[1] - grid[0]:.6g} s"
    )
    near = np.clip(np.searchsorted(t, grid), 0, len(t) - 1)
    return grid, np.asarray(CubicSpline(t, q)(grid)), filled[near]
