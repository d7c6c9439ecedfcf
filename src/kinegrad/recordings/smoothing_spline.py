"""Smoothing splines of degree 5, their smoothness chosen by cross-validation or by the size of the errors.

The spline s that minimises

    Σ_k (x_k − s(t_k))² + λ ∫ s‴(t)² dt                                                                           (1)

is of degree 5, its pieces meeting at the samples [woltring1986].  In a basis of B-splines with those knots, s = B c,

    (BᵀB + λP) c = Bᵀx,    P = ∫ B‴ᵀB‴ dt,                                                                        (2)

a banded system of bandwidth 5, solved by Cholesky's method; P is exact by three Gauss points an interval.  Its
condition is about (f_h h)⁻⁶, of which refinement leaves the square root: the residual Bᵀ(x − Bc) − λDᵀ(Dc) is formed
from the third derivatives Dc themselves, P = DᵀD, as of the least squares that (1) is.  In equal steps h and far from
the ends it is a zero-phase low-pass filter with the gain

    G(f) = 1 / (1 + (f/f_h)⁶),    2π f_h = (λh)^(−1/6),                                                           (3)

so that λ is spoken of as the frequency f_h of half the gain.  With the influence matrix A(λ) = B(BᵀB + λP)⁻¹Bᵀ:

generalised cross-validation [craven1979] takes the λ with the least m |x − s|² / (m − tr A)²;

errors of known standard deviation σ take the λ with |x − s|² = m σ² [reinsch1967].

tr A = tr((BᵀB + λP)⁻¹ BᵀB) needs the inverse within the band only.  With the band in blocks, D on the diagonal and E
beside it, elimination gives S_i = D_i − E_{i−1}ᵀ S_{i−1}⁻¹ E_{i−1}, and from the last block back

    Z_ii = S_i⁻¹ + K_i Z_{i+1,i+1} K_iᵀ,    Z_{i,i+1} = −K_i Z_{i+1,i+1},    K_i = S_i⁻¹ E_i.                      (4)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BSpline
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.optimize import brentq, minimize_scalar

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.motion import check_times

__all__ = ["smooth_columns", "smoothing_spline"]

Array = NDArray[np.float64]
DEGREE = 5
BLOCK = 40  # rows of a block of (4)
REFINED = 2  # steps of refinement
TRIED = 25  # frequencies at which cross-validation is evaluated before the best is refined
SLOWEST = 1e-3  # of the sampling rate: below it, (2) is too ill-conditioned


def smoothing_spline(t: ArrayLike, x: ArrayLike, noise: float | None = None) -> BSpline:
    """The smoothing spline of degree 5 of one measured quantity.

    Parameters
    ----------
    t : array_like, shape (m,)
        s, increasing, in any steps.
    x : array_like, shape (m,)
    noise : float, optional
        Standard deviation of the errors of x; if not given, generalised cross-validation finds how smooth x is.

    Returns
    -------
    scipy.interpolate.BSpline
        With derivatives: ``spline.derivative(2)``.

    Examples
    --------
    >>> t = np.linspace(0, 2, 201)
    >>> errors = np.random.default_rng(0).normal(scale=0.01, size=201)
    >>> spline = smoothing_spline(t, np.sin(3 * t) + errors)
    >>> bool(np.abs(spline(t) - np.sin(3 * t)).max() < 0.01)
    True
    """
    times = check_times(t, least=2 * DEGREE)
    values = engine.real("x", x)
    if values.shape != times.shape:
        raise InputError(f"`x` has shape {values.shape}; expected {times.shape}, one for each time")
    if not np.isfinite(values).all():
        raise engine.not_finite("x", values)
    system = _System(times)
    frequency = system.choose(values, None if noise is None else engine.positive("noise", noise))
    return BSpline(system.knots, system.solve(values, frequency), DEGREE)


def smooth_columns(model: Model, t: Array, q: Array, smoothing: Any) -> tuple[BSpline, list[str]]:
    """The splines of all coordinates as one, and what was done in words."""
    if len(t) < 2 * DEGREE:
        raise InputError(f"`t` has {len(t)} times; expected at least {2 * DEGREE} for a smoothing spline")
    noise = _noise(model, smoothing)
    system, words = _System(t), list[str]()
    chosen = np.array([system.choose(x, size) for x, size in zip(q.T, noise, strict=True)])
    coefficients = np.stack([system.solve(x, f) for x, f in zip(q.T, chosen, strict=True)], axis=1)
    how = "generalised cross-validation" if isinstance(smoothing, str) else "the given standard deviation of errors"
    few = len(chosen) <= 6
    each = (
        ", ".join(f"{name} {f:.3g}" for name, f in zip(model.coordinate_names, chosen, strict=True))
        if few
        else f"{chosen.min():.3g} to {chosen.max():.3g}"
    )
    words.append(f"q: smoothing splines of degree {DEGREE} by {how}, half gain at {each} Hz")
    return BSpline(system.knots, coefficients, DEGREE), words


def _noise(model: Model, smoothing: Any) -> list[float | None]:
    """The standard deviation of each coordinate; None where cross-validation is to find it."""
    names = model.coordinate_names
    if isinstance(smoothing, str):
        engine.one_of("smoothing", smoothing, ["gcv"])
        return [None] * len(names)
    if isinstance(smoothing, Mapping):
        for name in smoothing:
            model.coordinate_index(name)
        lacking = [name for name in names if name not in smoothing]
        if lacking:
            raise InputError(f"`smoothing` has no {shown(lacking[0])}; expected the errors of all {len(names)}")
        return [engine.positive(f"smoothing[{name!r}]", smoothing[name]) for name in names]
    given = engine.real("smoothing", smoothing)
    if given.shape not in ((), (len(names),)):
        expected = f"'gcv', one number, {len(names)} numbers, or a mapping of names to numbers"
        raise InputError(f"`smoothing` has shape {given.shape}; expected {expected}")
    if not (np.isfinite(given) & (given > 0)).all():
        raise InputError(f"`smoothing` is {shown(smoothing)}; expected positive standard deviations, rad or m")
    return [float(x) for x in np.broadcast_to(given, len(names))]


class _System:
    """The matrices of (2) at some times, and their solutions for any λ; λ as the frequency of half the gain."""

    def __init__(self, t: Array) -> None:
        self.t, self.m = t, len(t)
        self.step = (t[-1] - t[0]) / (self.m - 1)
        self.knots = np.concatenate([np.repeat(t[0], DEGREE), t, np.repeat(t[-1], DEGREE)])
        self.size = self.m + DEGREE - 1
        basis = BSpline.design_matrix(t, self.knots, DEGREE)
        self.basis = basis
        self.gram = _band(basis.T @ basis, self.size)
        self.third = self._third_derivatives()
        self.penalty = _band(self.third.T @ self.third, self.size)
        self._traces: Callable[[float], float] | None = None
        duration = t[-1] - t[0]
        self.slowest = max(0.25 / duration, SLOWEST / self.step)
        self.fastest = 0.5 / self.step

    def _third_derivatives(self) -> Any:
        """D: third derivatives at Gauss points, times the roots of their weights."""
        from scipy.sparse import csr_array, diags_array

        x, w = np.polynomial.legendre.leggauss(3)
        middle, half = (self.t[1:] + self.t[:-1]) / 2, np.diff(self.t) / 2
        nodes, weights = (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()
        # d/dt of a B-spline of degree k: differences of coefficients, times k over the span of its knots
        change, knots, degree, count = None, self.knots, DEGREE, self.size
        for _ in range(3):
            scale = degree / (knots[degree + 1 : degree + count] - knots[1:count])
            rows = np.arange(count - 1)
            entries = np.concatenate([-scale, scale]), (np.tile(rows, 2), np.concatenate([rows, rows + 1]))
            first = csr_array(entries, shape=(count - 1, count))
            change = first if change is None else first @ change
            knots, degree, count = knots[1:-1], degree - 1, count - 1
        return diags_array(np.sqrt(weights)) @ (BSpline.design_matrix(nodes, knots, degree) @ change)

    def weight(self, frequency: float) -> float:
        """λ of (3)."""
        return float((2 * math.pi * frequency) ** -6 / self.step)

    def solve(self, x: Array, frequency: float) -> Array:
        """Coefficients of the spline."""
        weight = self.weight(frequency)
        factor = cholesky_banded(self.gram + weight * self.penalty)
        c = np.zeros(self.size)
        for _ in range(1 + REFINED):
            slope = self.basis.T @ (x - self.basis @ c) - weight * (self.third.T @ (self.third @ c))
            c = c + cho_solve_banded((factor, False), slope)
        return np.asarray(c)

    def residual(self, x: Array, frequency: float) -> float:
        """|x − s|²."""
        return float(((x - self.basis @ self.solve(x, frequency)) ** 2).sum())

    def trace(self, frequency: float) -> float:
        """tr A, by (4)."""
        band = self.gram + self.weight(frequency) * self.penalty
        edges = [*range(0, self.size, BLOCK), self.size]
        if len(edges) > 2 and edges[-1] - edges[-2] < DEGREE:
            del edges[-2]
        spans = list(pairwise(edges))
        inverses, ratios = [], list[Array]()
        corner = None
        for i, (a, b) in enumerate(spans):
            block = _dense(band, a, b, a, b)
            if corner is not None:
                block = block - corner.T @ ratios[-1]
            inverses.append(np.linalg.inv(block))
            if i + 1 < len(spans):
                corner = _dense(band, a, b, *spans[i + 1])
                ratios.append(inverses[-1] @ corner)
        total, z = 0.0, inverses[-1]
        total += float((z * _dense(self.gram, *spans[-1], *spans[-1])).sum())
        for i in range(len(spans) - 2, -1, -1):
            side = -ratios[i] @ z
            z = inverses[i] - side @ ratios[i].T
            total += 2 * float((side * _dense(self.gram, *spans[i], *spans[i + 1])).sum())
            total += float((z * _dense(self.gram, *spans[i], *spans[i])).sum())
        return total

    def choose(self, x: Array, noise: float | None) -> float:
        """The frequency of half the gain: by the size of errors, or by cross-validation."""
        low, high = math.log(self.slowest), math.log(self.fastest)
        if noise is not None:
            wanted = self.m * noise**2

            def excess(f: float) -> float:
                return self.residual(x, math.exp(f)) - wanted

            if excess(low) <= 0:
                return float(self.slowest)
            if excess(high) >= 0:
                return float(self.fastest)
            return math.exp(float(brentq(excess, low, high, xtol=1e-4)))
        if self._traces is None:
            grid = np.linspace(low, high, TRIED)
            free = np.array([self.m - self.trace(math.exp(f)) for f in grid])
            from scipy.interpolate import PchipInterpolator

            between = PchipInterpolator(grid, np.log(np.maximum(free, 1e-9)))
            self._traces = lambda f: math.exp(float(between(f)))
            self._grid = grid
        traces, grid = self._traces, self._grid

        def score(f: float) -> float:
            return math.log(self.residual(x, math.exp(f)) + 1e-300) - 2 * math.log(traces(f))

        scores = [score(f) for f in grid]
        k = int(np.argmin(scores))
        bounds = grid[max(k - 1, 0)], grid[min(k + 1, TRIED - 1)]
        best = minimize_scalar(score, bounds=bounds, method="bounded", options={"xatol": 1e-3})
        return math.exp(float(best.x if best.fun < scores[k] else grid[k]))


def _band(matrix: Any, size: int) -> Array:
    """A symmetric matrix in LAPACK's upper band storage, (DEGREE + 1, size)."""
    band = np.zeros((DEGREE + 1, size))
    for k in range(DEGREE + 1):
        band[DEGREE - k, k:] = matrix.diagonal(k)
    return band


def _dense(band: Array, a: int, b: int, c: int, d: int) -> Array:
    """Rows a…b, columns c…d of a symmetric matrix in band storage."""
    rows, columns = np.arange(a, b)[:, None], np.arange(c, d)[None, :]
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    inside = high - low <= DEGREE
    return np.where(inside, band[np.where(inside, DEGREE - (high - low), 0), high], 0.0)
