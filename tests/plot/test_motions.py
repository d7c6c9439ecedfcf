"""Figures of motions: everything is shown or it is said what is not; animations keep their axes."""

from itertools import pairwise

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.plot import animate, draw_skeleton, plot_motion, plot_torques
from kinegrad.plot.animation import _canvas
from kinegrad.plot.colours import PALETTE, line_styles

HUMAN, ARM = kg.samples.human43(), kg.samples.two_link()
T = np.linspace(0, 0.2, 6)


def waving(model):
    """A motion of all its coordinates, one more than the other."""
    size = np.linspace(0.1, 1, model.nv)
    return kg.Motion(model, T, *(np.outer(x, size) for x in (np.sin(T), np.cos(T), -np.sin(T))))


def builder_arm():
    builder = kg.ModelBuilder("arm")
    body = kg.Inertia.rod(1.0, [0, 0, 0], [0, 0, -0.3])
    upper = builder.add("shoulder", None, kg.spherical("zxy"), link="upper", inertia=body)
    builder.add("elbow", upper, kg.revolute("y"), link="fore", placement=[0, 0, -0.3], inertia=body)
    return builder.build()


@pytest.mark.parametrize("model", [HUMAN, ARM, builder_arm()], ids=lambda model: model.name)
def test_torques_show_every_joint(model):
    tau = np.random.default_rng(0).normal(size=(len(T), model.nv))
    figure = plot_torques(model, T, tau, graph=False)
    texts = [text.get_text() for ax in figure.axes for text in ax.texts]
    for i, name in enumerate(model.speed_names):
        assert f"{i}  {name}" in texts
    for ax in figure.axes:
        curves = [(line.get_color(), line.get_linestyle()) for line in ax.lines if len(line.get_xdata()) == len(T)]
        assert len(set(curves)) == len(curves)  # no two alike in a panel


def test_what_is_not_shown_is_said():
    chain = kg.samples.multi_pendulum(100)
    tau = np.outer(np.ones(len(T)), np.arange(100.0))
    figure = plot_torques(chain, T, tau, graph=False)
    assert figure._supxlabel.get_text() == "not shown: 60 of 100 joints, none above 59 N·m or N"
    labels = plot_motion(waving(HUMAN))
    assert "(35 of 43 that move less are not shown)" in labels.axes[-1].get_xlabel()


def test_labels_do_not_overlap():
    """Drawn, and their boxes compared."""
    figure = plot_torques(HUMAN, T, np.zeros((len(T), 43)), graph=False)
    figure.canvas.draw()
    for ax in figure.axes:
        boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: box.y0)
        assert all(upper.y0 >= lower.y1 - 1 for lower, upper in pairwise(boxes))
    for model in (HUMAN, ARM, builder_arm(), kg.samples.puma560()):
        figure = kg.plot.plot_skeleton(model)
        figure.canvas.draw()
        boxes = [text.get_window_extent() for text in figure.axes[1].texts]
        for k, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[k + 1 :]), model.name


def test_links_of_built_models_are_drawn():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    draw_skeleton(builder_arm(), None, ax)
    thick = [line for line in ax.lines if line.get_linewidth() == 6]
    lengths = [np.hypot(np.ptp(line.get_xdata()), np.ptp(line.get_ydata())) for line in thick]
    assert len(lengths) == 2
    assert min(lengths) > 0.1


def test_a_motion_plots_itself():
    figure = waving(ARM).plot()
    assert [ax.get_ylabel() for ax in figure.axes] == ["q, °", "v, °/s"]
    figure = waving(HUMAN).plot(names=["right_knee"], quantities=["a"])
    assert len(figure.axes[0].lines) == 1
    for wrong in ({"names": ["knie"]}, {"names": []}, {"quantities": ["x"]}, {"quantities": []}):
        with pytest.raises(kg.InputError):
            waving(HUMAN).plot(**wrong)


@pytest.mark.parametrize("suffix", [".gif", ".html"])
def test_animations(tmp_path, suffix):
    found = animate(ARM, waving(ARM), tmp_path / f"x{suffix}", fps=10, trace="forearm")
    start = found.read_bytes()[:15]
    assert start.startswith(b"GIF8" if suffix == ".gif" else b"<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [found]


def test_axes_of_an_animation_stand_still_and_hold_everything():
    motion = waving(HUMAN)
    figure, show = _canvas(HUMAN, motion.t, motion.q, 60, 15, None)
    ax = figure.axes[0]
    limits = ax.get_xlim(), ax.get_ylim()
    for k in range(len(T)):
        show(k)
        assert (ax.get_xlim(), ax.get_ylim()) == limits
        for line in ax.lines:
            x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
            assert ((x >= limits[0][0]) & (x <= limits[0][1])).all()
            assert ((y >= limits[1][0]) & (y <= limits[1][1])).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ARM, None, "x.gif"), "`motion` is a NoneType"),
        ((ARM, waving(HUMAN), "x.gif"), "`motion` is of model 'human43'; expected one of 'two_link'"),
        ((ARM, waving(ARM), "x.png"), "expected a name that ends in .gif"),
        ((None, waving(ARM), "x.gif"), "`model` is a NoneType"),
        ((ARM, waving(ARM)[:1], "x.gif"), "expected one motion of at least two times"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(kg.InputError, match=message):
        animate(*arguments)
    with pytest.raises(kg.InputError, match="`fps` is 0"):
        animate(ARM, waving(ARM), "x.gif", fps=0)


def test_colours_stay_apart():
    """Also for those who see no difference of hue: no two have the same lightness and hue at once."""
    assert len(set(PALETTE)) == len(PALETTE)
    assert len(set(line_styles(32))) == 32


def test_results_are_short():
    d = kg.inverse_dynamics_derivatives(HUMAN, *np.zeros((3, 301, 43)))
    assert repr(d) == (
        "InverseDynamicsDerivatives(tau=array of shape (301, 43), dtau_dq=array of shape (301, 43, 43), "
        "dtau_dv=array of shape (301, 43, 43), dtau_da=array of shape (301, 43, 43))"
    )
    assert len(repr(kg.io.Trajectory(None, *np.zeros((3, 500, 2))))) < 200


def test_torques_of_a_motion_are_those_it_has_or_those_of_inverse_dynamics():
    arm, t = kg.samples.two_link(), np.linspace(0, 1, 11)
    q, v, a = (np.outer(x, [1.0, 2.0]) for x in (t**3, 3 * t**2, 6 * t))
    for motion in (kg.Motion(arm, t, q, v, a), kg.Motion(arm, t, q, v, a, tau=np.outer(t, [3.0, 4.0]))):
        expected = kg.inverse_dynamics(arm, q, v, a) if motion.tau is None else motion.tau
        drawn = [line.get_ydata() for line in plot_torques(motion, graph=False).axes[0].lines[:2]]
        np.testing.assert_array_equal(np.stack(drawn, axis=-1), expected)
    with pytest.raises(kg.InputError, match="`t` and `tau` are given with a Motion"):
        plot_torques(motion, t)
    with pytest.raises(kg.InputError, match="`t` has shape"):
        plot_torques(arm)
    with pytest.raises(kg.InputError, match="`tau`"):
        plot_torques(arm, t)
