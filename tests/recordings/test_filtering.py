"""The zero-phase low-pass: its gain is what its formula says, and it shifts nothing."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.recordings import low_pass
from kinegrad.recordings.filtering import equal_steps


@pytest.mark.parametrize("order", [2, 4, 6, 8])
@pytest.mark.parametrize(("rate", "cutoff"), [(100, 6), (100, 30), (1000, 20)])
def test_gain_at_the_cutoff_is_minus_three_decibels(order, rate, cutoff):
    """At every order and rate, also close to half of the rate, where Winter's usual approximation is off."""
    t = np.arange(40 * rate) / rate
    middle = slice(15 * rate, 25 * rate)
    for frequency in (cutoff / 3, cutoff, 1.4 * cutoff):
        x = np.cos(2 * np.pi * frequency * t)
        found = low_pass(t, x, cutoff, order=order)[middle]
        ratio = np.tan(np.pi * frequency / rate) / np.tan(np.pi * cutoff / rate)
        gain = 1 / (1 + (np.sqrt(2) - 1) * ratio**order)
        np.testing.assert_allclose(found, gain * x[middle], rtol=0, atol=1e-6)  # in phase, by its gain


def test_a_line_is_left_as_it_is():
    """The odd continuation continues it."""
    t = np.linspace(0, 1, 200)
    np.testing.assert_allclose(low_pass(t, np.outer(t, [1, -2, 0]), 5), np.outer(t, [1, -2, 0]), atol=1e-4)


def test_forwards_and_backwards_are_the_same():
    random = np.random.default_rng(1)
    x = np.cumsum(random.normal(size=(400, 2)), axis=0)
    t = np.arange(400) / 100
    a, b = low_pass(t, x, 6), low_pass(t, x[::-1], 6)[::-1]
    np.testing.assert_allclose(a[50:-50], b[50:-50], atol=1e-3 * np.abs(x).max())


@pytest.mark.parametrize("decimals", [2, 3, 4])
def test_rounded_times_are_equal_steps(decimals):
    t = np.arange(500) / 30
    grid = equal_steps(np.round(t, decimals))
    np.testing.assert_allclose(grid, t, atol=10.0**-decimals)
    assert np.ptp(np.diff(grid)) < 1e-12


def test_a_lost_frame_is_not_equal_steps():
    t = np.delete(np.arange(100) / 100, 40)
    assert equal_steps(t) is None
    with pytest.raises(kg.InputError, match=r"steps of `t` are from 0.01 to 0.02 s; expected equal"):
        low_pass(t, t, 6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cutoff": 50}, "`cutoff` is 50 Hz; expected less than 50 Hz, half of the sampling rate of 100 Hz"),
        ({"cutoff": 0}, "`cutoff` is 0; expected a positive number"),
        ({"cutoff": float("nan")}, "`cutoff` is nan"),
        ({"cutoff": "6"}, "`cutoff` is '6'"),
        ({"cutoff": 0.1}, "`cutoff` is 0.1 Hz; expected at least 0.5"),
        ({"order": 3}, "`order` is 3; expected an even number"),
        ({"order": 0}, "`order` is 0"),
        ({"x": np.zeros(3)}, r"`x` has shape \(3,\); expected \(101, ...\)"),
        ({"x": np.full(101, np.nan)}, "`x` at index"),
        ({"t": np.zeros(101)}, "expected it to increase"),
        ({"t": [0.0]}, "`t` has shape"),
    ],
)
def test_mistakes_are_named(change, message):
    given = {"t": np.linspace(0, 1, 101), "x": np.zeros(101), "cutoff": 6, "order": 4} | change
    with pytest.raises(kg.InputError, match=message):
        low_pass(given["t"], given["x"], given["cutoff"], order=given["order"])
