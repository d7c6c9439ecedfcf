"""OpenSim's functions: end conditions, extrapolation, scaling and substitution, each against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from kinegrad.io.opensim.functions import compose, constant_of, scaled, simm_spline
from kinegrad.model.functions import LinearFunction, PiecewiseLinearFunction, PolynomialFunction

X = np.array([-0.65, -0.17, 0.66, 1.66, 2.0])
Y = np.array([-1.64, 0.0, -0.62, 0.15, 0.4])


def test_ends_of_a_simm_spline_have_the_third_derivative_of_the_cubic_through_four_points() -> None:
    spline = simm_spline(X, Y)
    for points, at in ((slice(0, 4), X[0] + 0.1), (slice(-4, None), X[-1] - 0.1)):
        cubic = np.polynomial.Polynomial.fit(X[points], Y[points], 3).convert()
        assert spline.derivatives(np.array([at]), 3)[3][0] == pytest.approx(6 * cubic.coef[3], rel=1e-9)
    assert np.abs(spline.derivatives(X, 0)[0] - Y).max() < 1e-14


def test_a_simm_spline_of_three_points_is_a_parabola_and_of_two_a_line() -> None:
    parabola = simm_spline(X[:3], Y[:3])
    assert np.abs(parabola.derivatives(np.linspace(-0.6, 0.6, 9), 3)[3]).max() < 1e-12
    line = simm_spline(X[:2], Y[:2])
    assert isinstance(line, LinearFunction)
    assert np.abs(line.derivatives(X[:2], 0)[0] - Y[:2]).max() < 1e-15


def test_beyond_its_points_it_goes_on_straight() -> None:
    spline = simm_spline(X, Y)
    (value,), (slope,), (second,) = spline.derivatives(np.array([X[-1] + 2.0]), 2)
    (end,), (end_slope,) = spline.derivatives(X[-1:], 1)
    assert (value, slope, second) == (pytest.approx(end + 2 * end_slope), pytest.approx(end_slope), 0.0)


FUNCTIONS = [
    LinearFunction(0.7, -0.2), PolynomialFunction([0.1, -0.4, 0.3, 0.05]), simm_spline(X, Y),
    PiecewiseLinearFunction(tuple(X), tuple(Y)),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("line", [LinearFunction(1.3, 0.4), LinearFunction(-0.6, 0.1)])
def test_functions_of_lines_and_lines_of_functions(function: object, line: LinearFunction) -> None:
    x = np.linspace(-4, 5, 67)
    inside = compose(function, line).derivatives(x, 2)
    value, first, second = function.derivatives(line.multiplier * x + line.offset, 2)
    for found, expected in zip(inside, (value, first * line.multiplier, second * line.multiplier**2), strict=True):
        assert np.abs(found - expected).max() < 1e-12
    outside = compose(line, function).derivatives(x, 2)
    value, first, second = function.derivatives(x, 2)
    expected_values = (line.multiplier * value + line.offset, line.multiplier * first, line.multiplier * second)
    for found, expected in zip(outside, expected_values, strict=True):
        assert np.abs(found - expected).max() < 1e-13


def test_a_curve_of_a_curve_is_refused() -> None:
    with pytest.raises(
        ValueError, match="a SplineFunction of a PolynomialFunction cannot be represented; expected a straight"
    ):
        compose(simm_spline(X, Y), PolynomialFunction([0, 1, 2]))


def test_polynomials_of_polynomials_and_constants() -> None:
    both = compose(PolynomialFunction([0, 0, 1]), PolynomialFunction([1, 0, 2]))
    assert both == PolynomialFunction([1, 0, 4, 0, 4])
    assert constant_of(scaled(simm_spline(X, Y), 0.0, 3.0)) == 3.0
    assert constant_of(compose(simm_spline(X, Y), LinearFunction(0.0, X[2]))) == pytest.approx(Y[2])


def test_kinks_take_the_line_to_their_right() -> None:
    roof = PiecewiseLinearFunction((0.0, 1.0, 2.0), (0.0, 1.0, 0.5))
    assert roof.derivatives(np.array([-1.0, 0.0, 1.0, 2.0, 3.0]), 1)[1].tolist() == [1.0, 1.0, -0.5, -0.5, -0.5]
