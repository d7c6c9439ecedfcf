"""Maps of sensitivities and graphs of topologies: what is drawn is what was computed."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.plot import plot_sensitivity_map, plot_topology


@pytest.fixture(scope="module")
def motion():
    arm, t = kg.samples.puma560(), np.linspace(0, 1, 21)
    wave = (np.sin(2 * t), 2 * np.cos(2 * t), -4 * np.sin(2 * t))
    return kg.Motion(arm, t, *(0.5 * np.outer(x, np.ones(6)) for x in wave))


@pytest.mark.parametrize(("of", "field"), [("q", "dtau_dq"), ("v", "dtau_dv"), ("a", "dtau_da")])
def test_entries_are_the_derivatives(motion, of, field):
    figure = plot_sensitivity_map(motion, of=of, times=[0.25])
    exact = getattr(
        kg.inverse_dynamics_derivatives(motion.model, *(getattr(motion([0.25]), x)[0] for x in "qva")), field
    )
    np.testing.assert_allclose(figure.axes[1].images[0].get_array(), exact, rtol=1e-12, atol=1e-12)
    largest = np.abs(getattr(kg.inverse_dynamics_derivatives(motion.model, motion.q, motion.v, motion.a), field)).max(0)
    drawn = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(drawn, np.maximum(largest, 1e-4 * largest.max()), rtol=1e-12)


def test_zeros_of_topology_are_left_out():
    human, t = kg.samples.human43(), np.linspace(0, 1, 5)
    still = kg.Motion(human, t, *np.zeros((3, 5, 43)))
    drawn = plot_sensitivity_map(still, times=[0.5]).axes[0].images[0].get_array()
    assert np.ma.count_masked(drawn) == 1102


def test_numbers_are_written_where_they_fit_and_names_where_they_can_be_read(motion):
    """Six joints: what is in the entries, not the floor of the colours; 43 joints: every name, at both sides."""
    written = [text.get_text() for text in plot_sensitivity_map(motion, times=[0.25]).axes[0].texts]
    entries = kg.inverse_dynamics_derivatives(motion.model, motion.q, motion.v, motion.a).dtau_dq
    assert written == [f"{x:.3g}" for x in np.abs(entries).max(axis=0).ravel()]
    human, t = kg.samples.human43(), np.linspace(0, 1, 5)
    first = plot_sensitivity_map(kg.Motion(human, t, *np.zeros((3, 5, 43))), times=[0.5]).axes[0]
    for labels in (first.get_xticklabels(), first.get_yticklabels()):
        assert tuple(label.get_text() for label in labels) == human.speed_names
    assert not first.texts


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: plot_sensitivity_map("walk"), "`motion` is 'walk'"),
        (lambda m: plot_sensitivity_map(m, of="tau"), "`of` is 'tau'; expected 'q', 'v' or 'a'"),
        (lambda m: plot_sensitivity_map(m, times=[2.0]), "expected instants from 0 to 1 s"),
        (lambda m: plot_sensitivity_map(m, times=[]), "`t` has shape"),
        (lambda m: plot_sensitivity_map(m, loads=[1]), "`loads` is"),
    ],
)
def test_what_is_refused(motion, call, message):
    with pytest.raises(kg.InputError, match=message):
        call(motion)


def test_both_graphs_of_a_model():
    axes = plot_topology(kg.samples.human43(), show_numbers_from=1).axes
    assert [ax.get_title() for ax in axes] == ["joints", "branches"]
    texts = {text.get_text() for text in axes[0].texts}
    assert {"43", "right_knee"} <= texts
