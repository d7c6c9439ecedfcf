"""Plots of nothing, of what is not finite, and of shapes that do not fit are errors that say so."""

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest

from kinegrad import InputError, samples
from kinegrad.plot import plot_comparison, plot_curves, plot_error_maps, plot_skeleton, plot_torques
from kinegrad.plot.sensitivities import Curve
from kinegrad.plot.skeleton import joint_points

ARM = samples.two_link()
T, TAU = [0.0, 1.0], np.ones((2, 2))


def curve(exact=(0.0, 1.0), **numerical):
    return Curve("$x$", "m", np.asarray(exact), {name: np.asarray(each) for name, each in numerical.items()})


@pytest.mark.parametrize("plot", [plot_comparison, plot_curves])
@pytest.mark.parametrize(
    ("t", "curves", "message"),
    [
        (T, [], "`curves` is empty"),
        ([], [curve([])], r"`t` has shape \(0,\); expected \(N,\), at least one instant"),
        (1.0, [curve()], r"`t` has shape \(\)"),
        (None, [curve()], "`t` holds NoneType"),
        (["a", "b"], [curve()], "`t` holds list"),
        ([0, np.nan], [curve()], r"`t` at index \(1,\) is nan"),
        (T, [curve(), curve([1.0])], r"`curves\[1\], exact` has shape \(1,\); expected \(2,\)"),
        (T, [curve([0, np.inf])], r"`curves\[0\], exact` at index \(1,\) is inf"),
        (T, [curve(central=[1.0, 2.0, 3.0])], r"`curves\[0\], central` has shape \(3,\)"),
    ],
)
def test_curves(plot, t, curves, message):
    with pytest.raises(InputError, match=message):
        plot(t, curves)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ARM, [], np.ones((0, 2))), r"`t` has shape \(0,\)"),
        ((ARM, T, np.ones((2, 3))), r"`tau` has shape \(2, 3\); expected \(2, 2\)"),
        ((ARM, T, TAU * np.nan), "`tau` at index"),
        ((ARM, T, None), "`tau` holds"),
        ((None, T, TAU), "`model` is a NoneType"),
        ((ARM, T, TAU, {}), "`groups` is empty"),
        ((ARM, T, TAU, {"arm": []}), r"`groups\['arm'\]` is \[\]; expected the names of one or more joints"),
        ((ARM, T, TAU, {"arm": "elbow"}), r"`groups\['arm'\]` is 'elbow'"),
        ((ARM, T, TAU, {"arm": ["wrist"]}), "joint 'wrist' does not exist"),
    ],
)
def test_torques(arguments, message):
    with pytest.raises(InputError, match=message):
        plot_torques(*arguments)


def test_one_instant_can_be_drawn():
    assert len(plot_torques(ARM, [0], [[1, 2]]).axes) == 2
    plot_comparison([0.0], [curve([1.0], central=[1.0])]).canvas.draw()
    plot_error_maps(ARM, {"all exact": np.zeros((2, 2))}).canvas.draw()


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ({}, "`errors` is empty"),
        ({"a": np.ones((3, 3))}, r"`errors\['a'\]` has shape \(3, 3\); expected \(2, 2\)"),
        ({"a": np.full((2, 2), np.nan)}, r"`errors\['a'\]` at index \(0, 0\) is nan"),
        ({"a": None}, r"`errors\['a'\]` holds"),
    ],
)
def test_error_maps(errors, message):
    with pytest.raises(InputError, match=message):
        plot_error_maps(ARM, errors)


@pytest.mark.parametrize("draw", [plot_skeleton, joint_points])
@pytest.mark.parametrize("q", [[], [0.0], np.zeros((3, 2)), [0, np.nan], "ab"])
def test_skeletons(draw, q):
    with pytest.raises(InputError, match="`q`"):
        draw(ARM, q)
    with pytest.raises(InputError, match="`model` is a"):
        draw(None)
