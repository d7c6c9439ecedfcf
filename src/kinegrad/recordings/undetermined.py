"""What markers do not determine: coordinates without a visible marker, for how long, and how wrong they may be.

Let H = Σ w JᵀJ of one frame, in units in which coordinates are comparable (1 rad ~ 0.3 m), and N the directions in
which nothing that was measured changes: eigenvalues of zero, or, in frames with hidden markers, so small that errors of
2 mm turn a coordinate by 0.1 rad.  Where (N Nᵀ)_jj is not zero, the coordinate j is *undetermined*.  There it is drawn,
with as little force as such errors have, to a cubic between the frames around the gap, with their slopes; held at the
ends of a recording; and where it is never determined, drawn to where the search began.

What is not measured is wrong by what the coordinate does meanwhile.  Errors of neighbouring frames are alike, unlike
those of markers: an error is a sum of slow waves across the gap of duration D,

    e(t) = Σ_m a_m φ_m(t) N Nᵀ e_j,    φ_m = sin(mπ s), sin((m − ½)π s) or cos((m − 1)π s),    0 ≤ s ≤ 1,

for gaps that are closed by measured frames on two sides, one or none, with independent amplitudes of the standard
deviations A/m².  Between two frames the error of a cubic is at most max|q⁗| D⁴/384, beyond one frame max|q̇| D; with
the half range R of the coordinate where it is determined, and ω² = max|q̈|/R,

    A = R min(1, (ωD)⁴/384)    or    A = R min(1, ωD),

together with errors of markers in the frames around, σ at the ends and 2.5 σ D/(√n L) by slopes from n frames in L.

Of a coordinate that is never determined, A is the standard deviation of one that is anywhere within its limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.model import Model

__all__ = ["Gap", "check_prior", "error_gaps", "filled_gaps", "null_projection", "spans"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
METRES = 0.3  # m that count as much as a radian
RANK = 1e-9  # of the largest eigenvalue: below, nothing is measured
WEAK, WEAKEST = 4e-4, 1e-3  # m², and part of the largest: below, errors of 2 mm are 0.1 rad where markers are hidden
PART = 1e-3  # of a coordinate in the null space, squared, that counts
LEAST = {"prismatic": 0.01, "revolute": 0.05}  # m, rad: half range at least
ANYWHERE = {"prismatic": 0.1, "revolute": 1.0}  # m, rad: standard deviation without limits
FASTEST = 6.0  # Hz: waves of errors are no faster
SLOPE = 0.06  # s, from which slopes at the ends of a gap are taken
SLOPES = 2.5  # of what errors of markers do to a cubic by slopes at the ends of a parabola
MOST = 24  # waves of a gap


@dataclass(frozen=True, eq=False)
class Gap:
    """A coordinate that markers do not determine for a while.

    Attributes
    ----------
    name : str
        The speed of the coordinate.
    start, end : float
        Its first and last frame, s.
    error : float
        Standard deviation of its slowest wave, rad or m.
    unit : str
        Of the error, "rad" or "m".
    waves : ndarray, shape (waves, m, nv)
        What one standard deviation of each wave does to the m samples.
    """

    name: str
    start: float
    end: float
    error: float
    unit: str
    waves: Array


def null_projection(model: Model, H: Array, least: Array | None = None) -> Array:
    """The projection onto what is not determined in each frame, (N, nv, nv), from Σ w JᵀJ: its columns are moves.

    Parameters
    ----------
    model : Model
    H : ndarray, shape (N, nv, nv)
        NaN in the rows of coordinates that are held.
    least : ndarray, shape (N,), optional
        Eigenvalues below are of directions that count as undetermined, m².
    """
    held = np.isnan(np.diagonal(H, axis1=1, axis2=2))
    unit = _units(model, {"prismatic": METRES, "revolute": 1.0})
    scaled = np.where(held[:, :, None] | held[:, None, :], 0.0, H * unit[:, None] * unit)
    values = np.linalg.eigvalsh(scaled)  # their vectors of few frames alone, because they take twice as long
    most = np.maximum(values[:, -1:], np.finfo(float).tiny)
    limit = RANK * most if least is None else np.maximum(RANK * most, np.minimum(least[:, None], WEAKEST * most))
    found = np.zeros_like(scaled)
    some = np.flatnonzero((values <= limit).sum(axis=1) > held.sum(axis=1))  # held ones are zeros
    values, vectors = np.linalg.eigh(scaled[some])
    null = vectors * (values <= limit[some])[:, None, :]
    found[some] = null @ null.transpose(0, 2, 1)
    found[held[:, :, None] | held[:, None, :]] = 0.0  # their unit vectors are in the null space of zeros
    return np.asarray(found * unit[:, None] / unit)


def spans(t: Array, names: Sequence[str], undetermined: Flags) -> tuple[tuple[str, float, float], ...]:
    """Coordinates with the first and last time of each gap.

    >>> spans(np.arange(4.0), ["knee"], np.array([[0], [1], [1], [0]], dtype=bool))
    (('knee', 1.0, 2.0),)
    """
    return tuple(
        (name, float(t[a]), float(t[b - 1])) for j, name in enumerate(names) for a, b in _runs(undetermined[:, j])
    )


def filled_gaps(t: Array, q: Array, undetermined: Flags) -> Array:
    """Positions with cubics where they are undetermined, held beyond the first and last that are determined."""
    found = q.copy()
    for j in range(q.shape[1]):
        for a, b in _runs(undetermined[:, j]):
            known = ~undetermined[:, j]
            if a == 0 or b == len(t):
                if known.any():
                    found[a:b, j] = q[b if a == 0 else a - 1, j]
                continue
            left, right = t[a - 1], t[b]
            slopes = [
                _slope(t, q[:, j], known & (t <= left) & (t >= left - SLOPE), left),
                _slope(t, q[:, j], known & (t >= right) & (t <= right + SLOPE), right),
            ]
            s, width = (t[a:b] - left) / (right - left), right - left
            found[a:b, j] = (
                (1 + 2 * s) * (1 - s) ** 2 * q[a - 1, j] + s * s * (3 - 2 * s) * q[b, j]
                + width * s * (1 - s) * ((1 - s) * slopes[0] - s * slopes[1])
            )  # fmt: skip
    return found


def _slope(t: Array, x: Array, rows: Flags, at: float) -> float:
    """Return the slope of the straight line, or the parabola, that fits best."""
    count = int(rows.sum())
    if count < 2:
        return 0.0
    return float(np.polynomial.Polynomial.fit(t[rows], x[rows], 2 if count > 3 else 1).deriv()(at))


def error_gaps(
    model: Model, t: Array, q: Array, a: Array, projection: Array, covariance: Array, limits: tuple[Array, Array],
    prior: Mapping[str, float],
) -> list[Gap]:  # fmt: skip
    """Gaps with their errors.

    Parameters
    ----------
    model : Model
        Without quaternions.
    t, q : ndarray, shapes (m,) and (m, nv)
        Samples.
    a : ndarray, shape (N, nv)
        Accelerations of the smoothed motion.
    projection : ndarray, shape (m, nv, nv)
        N Nᵀ of each frame.
    covariance : ndarray, shape (m, nv, nv)
        Of the samples by errors of markers.
    limits : tuple of ndarray, shape (nv,) each
    prior : dict of str to float
        Standard deviations of coordinates by name, rad or m, in the place of R.
    """
    undetermined = np.diagonal(projection, axis1=1, axis2=2) > PART
    least, anywhere = _units(model, LEAST), _units(model, ANYWHERE)
    found = []
    for j, name in enumerate(model.speed_names):
        known = ~undetermined[:, j]
        if known.all():
            continue
        noise = float(np.sqrt(np.median(covariance[known, j, j]))) if known.any() else 0.0
        x, fast = q[known, j], float(np.abs(a[:, j]).max(initial=0.0))
        size = max(float(np.ptp(x)) / 2, least[j]) if len(x) else _spread(limits[0][j], limits[1][j], anywhere[j])
        size = prior.get(name, size)
        unit = "m" if model.layout.speed_kinds[j] == "prismatic" else "rad"
        for first, end in _runs(undetermined[:, j]):
            closed = (first > 0, end < len(t))
            left, right = t[max(first - 1, 0)], t[min(end, len(t) - 1)]
            turn = np.sqrt(fast / size) * (right - left)
            part = min(1.0, turn**4 / 384) if all(closed) else min(1.0, turn) if any(closed) else 1.0
            near = max(SLOPE / max(float(np.median(np.diff(t))), np.finfo(float).tiny), 1.0)  # frames
            by_slopes = noise * SLOPES * (right - left) / (np.sqrt(near) * SLOPE)
            error = float(np.sqrt((size * part) ** 2 + noise**2 + min(by_slopes, size) ** 2))
            count = min(max(round(2 * FASTEST * (right - left)), 1), MOST)
            s = (t[first:end] - left) / max(right - left, np.finfo(float).tiny)
            waves = np.zeros((count, len(t), model.nv))
            for m in range(1, count + 1):
                waves[m - 1, first:end] = (error / m**2 * _wave(m, s, closed))[:, None] * projection[first:end, :, j]
            found.append(Gap(name, float(t[first]), float(t[end - 1]), error, unit, waves))
    return found


def _wave(m: int, s: Array, closed: tuple[bool, bool]) -> Array:
    if all(closed):
        return np.asarray(np.sin(m * np.pi * s))
    if not any(closed):
        return np.asarray(np.cos((m - 1) * np.pi * s))
    return np.asarray(np.sin((m - 0.5) * np.pi * (s if closed[0] else 1 - s)))


def _spread(low: float, high: float, anywhere: float) -> float:
    width = float(high - low)
    return width / np.sqrt(12) if np.isfinite(width) else anywhere


def check_prior(model: Model, prior: Any) -> dict[str, float]:
    """The argument `prior` of an analysis."""
    if prior is not None and not isinstance(prior, Mapping):
        raise InputError(f"`prior` is {shown(prior)}; expected a dictionary of coordinates")
    found = dict[str, float]()
    for name, value in (prior or {}).items():
        model.speed_index(name)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < np.inf:
            raise InputError(f"`prior[{shown(name)}]` is {shown(value)}; expected a standard deviation above zero")
        found[name] = float(value)
    return found


def _units(model: Model, by_kind: Mapping[str, float]) -> Array:
    kinds = model.layout.speed_kinds
    return np.array([by_kind["prismatic" if kind == "prismatic" else "revolute"] for kind in kinds])


def _runs(flags: Flags) -> list[tuple[int, int]]:
    """First and end of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
