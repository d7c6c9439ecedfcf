"""Stiff motions are noticed, and simulations that stop early are, too."""

import warnings

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.simulate import simulate, simulate_fixed

ROWS = [(0, 0.089159, 0, np.pi / 2), (0, 0, -0.425, 0), (0, 0, -0.39225, 0), (0, 0.10915, 0, np.pi / 2),
        (0, 0.09465, 0, -np.pi / 2), (0, 0.0823, 0, 0)]  # fmt: skip
MASSES = [3.7, 8.393, 2.275, 1.219, 1.219, 0.1879]


def arm(damping):
    """About a UR5: its dampers are hard for the light wrist."""
    bodies = [kg.Inertia.sphere(mass, 0.06) for mass in MASSES]
    return kg.Model.from_dh(ROWS, name="UR5", inertias=bodies, damping=damping)


def test_a_damped_arm_is_handed_over():
    """Twenty-five thousand evaluations before; the same motion afterwards."""
    times, start = np.linspace(0, 2, 41), [0, -1.0, 1.0, 0, 0.5, 0]
    auto = simulate(arm(2.0), start, np.zeros(6), times)
    assert auto.success
    assert "LSODA took over from DOP853" in auto.message
    assert auto.nfev < 5000
    plainly = simulate(arm(2.0), start, np.zeros(6), times, method="DOP853")
    assert "stiff from t = " in plainly.message
    assert plainly.nfev > 3 * auto.nfev
    np.testing.assert_allclose(auto.q, plainly.q, atol=2e-6)
    inside = auto([0.0123, 1.234])
    np.testing.assert_allclose(inside.q, plainly([0.0123, 1.234]).q, atol=2e-6)


def test_sensitivities_go_on_through_the_hand_over():
    model = arm(2.0)
    design = kg.Design(model, ["link2.mass"])
    times, start = np.linspace(0, 0.3, 4), [0, -1.0, 1.0, 0, 0.5, 0]
    auto = simulate(model, start, np.zeros(6), times, design=design)
    assert "Radau took over" in auto.message
    plainly = simulate(model, start, np.zeros(6), times, design=design, method="DOP853")
    np.testing.assert_allclose(auto.dq_dp, plainly.dq_dp, atol=1e-6)


@pytest.mark.parametrize("model", [kg.samples.double_pendulum(), kg.samples.puma560().replace(gravity=(0, 0, 0))])
def test_motions_that_are_not_stiff_are_the_same_bits(model):
    start = np.linspace(0.5, 1, model.n), np.zeros(model.n)
    times = np.linspace(0, 1, 6)
    auto, plainly = (simulate(model, *start, times, method=method) for method in ("auto", "DOP853"))
    np.testing.assert_array_equal(auto.q, plainly.q)
    assert auto.message == plainly.message == "reached the end"


def test_constraints_are_kept_through_the_hand_over():
    model, loop = kg.samples.four_bar()
    stiff = model.replace(damping=20.0)
    loop = kg.ConstraintSet(stiff, loop.constraints)
    motion = simulate(stiff, np.zeros(3), np.zeros(3), np.linspace(0, 1, 5), constraints=loop)
    assert "Radau took over" in motion.message
    assert np.abs(loop.error(motion.q)).max() < 1e-12


def test_an_early_end_is_noticed():
    pendulum = kg.samples.double_pendulum()
    given = (pendulum, [1.0, 0.5], [0, 0], [0, 1])
    with pytest.warns(kg.UnfinishedWarning, match="did not reach its end: given up at t = .*max_evaluations"):
        found = simulate(*given, max_evaluations=50)
    assert not found.success
    with pytest.raises(kg.SolveError, match="did not reach its end"):
        simulate(*given, max_evaluations=50, unfinished="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate(*given, max_evaluations=50, unfinished="ignore")
        simulate(*given)
    with pytest.raises(kg.InputError, match="`unfinished` is 'no'; expected one of 'warn', 'raise', 'ignore'"):
        simulate(*given, unfinished="no")


def test_an_early_end_in_fixed_steps_is_noticed():
    given = (kg.samples.double_pendulum(), [1.0, 0.5], [0, 1e200])
    with pytest.warns(kg.UnfinishedWarning, match="did not reach its end"):
        simulate_fixed(*given, step=0.1, steps=20)
    with pytest.raises(kg.SolveError, match="did not reach its end"):
        simulate_fixed(*given, step=0.1, steps=20, unfinished="raise")
