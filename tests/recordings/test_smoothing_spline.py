"""Smoothing splines: the minimiser that they claim to be, smooth by what the data says."""

import numpy as np
import pytest
from scipy.interpolate import BSpline

import kinegrad as kg
from kinegrad.recordings import smoothing_spline
from kinegrad.recordings.smoothing_spline import DEGREE, _System


@pytest.mark.parametrize("m", [12, 50, 130])
def test_trace_and_penalty_against_dense_matrices(m):
    """The band, its blocks and Gauss points against B‴ on a fine grid and a dense inverse; uneven steps."""
    t = np.sort(np.random.default_rng(m).uniform(size=m))
    system = _System(t)
    basis = BSpline(system.knots, np.eye(system.size), DEGREE)
    dense = basis(t)
    x, w = np.polynomial.legendre.leggauss(8)
    nodes = ((t[1:] + t[:-1])[:, None] / 2 + np.diff(t)[:, None] / 2 * x).ravel()
    third = basis.derivative(3)(nodes)
    third = np.sqrt((np.diff(t)[:, None] / 2 * w).ravel())[:, None] * third
    for frequency in (0.1 * system.fastest, 0.5 * system.fastest):
        # by orthogonal factors: their errors grow with the root of the condition, those of the trace with the condition
        rows = np.vstack([dense, np.sqrt(system.weight(frequency)) * third])
        factor, _ = np.linalg.qr(rows)
        influence = factor[:m] @ factor[:m].T
        assert system.trace(frequency) == pytest.approx(np.trace(influence), rel=1e-4)
        values = np.sin(5 * t)
        np.testing.assert_allclose(dense @ system.solve(values, frequency), influence @ values, atol=1e-9)


def test_parabolas_cost_nothing():
    """They have no third derivative: the smoothest splines leave them as they are."""
    t = np.linspace(0, 1, 60)
    x = 3 - 2 * t + 5 * t**2
    np.testing.assert_allclose(smoothing_spline(t, x, noise=0.1)(t), x, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 1e-1])
def test_cross_validation_finds_the_size_of_errors(scale):
    t = np.linspace(0, 4, 400)
    exact = np.sin(2 * t) + 0.3 * np.cos(7 * t)
    x = exact + np.random.default_rng(3).normal(scale=scale, size=400)
    spline = smoothing_spline(t, x)
    assert np.std(x - spline(t)) == pytest.approx(scale, rel=0.15)
    assert np.sqrt(np.mean((spline(t) - exact) ** 2)) < 0.5 * scale
    known = smoothing_spline(t, x, noise=scale)
    assert np.std(x - known(t)) == pytest.approx(scale, rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": np.arange(9.0), "x": np.zeros(9)}, "expected at least 10 times"),
        ({"x": np.zeros(9)}, r"`x` has shape \(9,\); expected \(20,\)"),
        ({"x": np.full(20, np.nan)}, "`x` at index"),
        ({"noise": 0}, "`noise` is 0"),
    ],
)
def test_mistakes_are_named(change, message):
    given = {"t": np.arange(20.0), "x": np.zeros(20), "noise": None} | change
    with pytest.raises(kg.InputError, match=message):
        smoothing_spline(**given)
