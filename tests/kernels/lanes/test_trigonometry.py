"""sin and cos of lane values: within one unit in the last place of the truth, which is mpmath's."""

import math

import mpmath
import numba
import numpy as np
import pytest

from kinegrad._kernels.compiler.jit import JIT
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.lanes.trigonometry import sincos

RNG = np.random.default_rng(2)
MAX_ULP = 1.0  # the promise; the worst measured on 10⁵ arguments is about 0.8
compiled_only = pytest.mark.skipif(not JIT, reason="without the JIT sin and cos are NumPy's")


@numba.njit
def _sincos_of(x, out):
    for r in range(0, len(x), WIDTH):
        s, c = sincos(gather(x, r, 0))
        scatter(out, r, 0, s)
        scatter(out, r, 1, c)


def sincos_of(x):
    out = np.empty((len(x), 2))
    _sincos_of(np.ascontiguousarray(x, dtype=float)[:, None], out)
    return out


def worst_ulp(x):
    """Largest error of sin and cos over x, in units in the last place of the true value."""
    with mpmath.workprec(200):
        exact = np.array([mpmath.cos_sin(mpmath.mpf(float(t)))[::-1] for t in x], dtype=object)
        high = exact.astype(float)
        low = (exact - high).astype(float)
    error = np.abs((sincos_of(x) - high) - low) / np.spacing(np.abs(high))
    return error.max()


def test_the_measure_sees_one_bit(monkeypatch):
    """One bit off the nearest double is an error between a half and one and a half."""
    x = np.array([0.3, 1.1])
    off = np.nextafter(np.column_stack([np.sin(x), np.cos(x)]), 2.0)
    monkeypatch.setitem(globals(), "sincos_of", lambda _: off)
    assert 0.5 <= worst_ulp(x) <= 1.6


@pytest.mark.parametrize("size", [math.pi, 100.0, 1e4])
def test_random_arguments(size):
    assert worst_ulp(RNG.uniform(-size, size, 4000)) <= MAX_ULP


def test_next_to_multiples_of_half_pi():
    """Where sin or cos nearly vanishes and a careless reduction leaves nothing: k π/2 up to 10⁴ rad."""
    with mpmath.workprec(200):
        at = np.array([float(k * mpmath.pi / 2) for k in range(1, 6367)])
    assert at[-1] > 9.99e3
    up, down = np.nextafter(at, np.inf), np.nextafter(at, 0)
    assert worst_ulp(np.concatenate([at, -at, up, -down])) <= MAX_ULP
    few = RNG.choice(at, 500)
    assert worst_ulp(np.concatenate([few + j * np.spacing(few) for j in (-7, -3, -2, 2, 3, 7)])) <= MAX_ULP


def test_next_to_odd_multiples_of_quarter_pi():
    """Where the reduction changes from one multiple to the next."""
    at = np.pi / 4 * (2 * RNG.integers(-6000, 6000, 500) + 1)
    assert worst_ulp(np.concatenate([at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)])) <= MAX_ULP


def test_tiny_arguments():
    x = np.concatenate([10.0 ** RNG.uniform(-308, 0, 2000), 5e-324 * RNG.integers(1, 2**40, 200), [5e-324]])
    assert worst_ulp(np.concatenate([x, -x])) <= MAX_ULP
    np.testing.assert_array_equal(sincos_of(x[x < 1e-9])[:, 0], x[x < 1e-9])


def test_zero():
    np.testing.assert_array_equal(sincos_of([0.0, -0.0]), [[0, 1], [0, 1]])


def test_up_to_the_limit_of_the_reduction():
    x = np.concatenate([RNG.uniform(1e4, 1e5, 2000), [1e5, -1e5]])
    assert worst_ulp(x) <= MAX_ULP


@compiled_only
def test_far_away_is_the_c_library():
    x = np.concatenate([[np.nextafter(1e5, 2e5), 1e22, 1.7e308], 10.0 ** RNG.uniform(5.1, 308, 200)])
    x = np.concatenate([x, -x])
    np.testing.assert_array_equal(sincos_of(x), [(math.sin(t), math.cos(t)) for t in x])


@compiled_only
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("w", range(WIDTH))
def test_not_a_number_stays_in_its_lane(bad, w):
    x = np.linspace(0.1, 0.9, WIDTH)
    x[w] = bad
    result = sincos_of(x)
    assert np.isnan(result[w]).all()
    result, x = np.delete(result, w, axis=0), np.delete(x, w)
    np.testing.assert_allclose(result, np.column_stack([np.sin(x), np.cos(x)]), rtol=4e-16)


@compiled_only
@pytest.mark.parametrize("w", range(WIDTH))
def test_a_far_lane_does_not_change_its_neighbours(w):
    near = RNG.uniform(-3, 3, (200, WIDTH))
    alone = sincos_of(near.ravel()).reshape(200, WIDTH, 2)
    near[:, w] = 3e5
    mixed = sincos_of(near.ravel()).reshape(200, WIDTH, 2)
    others = np.arange(WIDTH) != w
    np.testing.assert_array_equal(mixed[:, others], alone[:, others])


def test_sine_and_cosine_on_the_unit_circle():
    s, c = sincos_of(RNG.uniform(-1e4, 1e4, 5000)).T
    assert np.abs(s * s + c * c - 1).max() < 1e-15  # s and c each within an ulp
