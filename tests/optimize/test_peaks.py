"""Peaks, work, reach and margins: their values by hand, their gradients by central differences."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.objectives import Objective, Power, TorqueNorm, objective_gradient, objective_value
from kinegrad.optimize import Limit, PeakPower, PeakTorque, Reach, Work, WorkspaceMargin, optimize_design
from kinegrad.optimize.peaks import smooth_peak
from kinegrad.simulate import simulate_fixed

ARM = kg.samples.two_link(gravity=(0, -9.81, 0))
T = np.linspace(0, 1, 201)
W = np.array([3.0, 5.0])
MOTION = kg.Motion(ARM, T, np.sin(T[:, None] * W), W * np.cos(T[:, None] * W), -(W**2) * np.sin(T[:, None] * W))
DESIGN = kg.Design(ARM, ["upper_arm.mass", "forearm.mass", "shoulder.a", "elbow.a"])


def by_differences(function, design, h=1e-5):
    """Central differences; their error is h² of the third derivative."""
    steps = h * np.eye(design.p)
    ends = [(function(design.at(design.values + d))[0], function(design.at(design.values - d))[0]) for d in steps]
    return np.array([(more - less) / (2 * h) for more, less in ends])


@pytest.mark.parametrize(
    "function",
    [
        PeakTorque(MOTION),
        PeakTorque(MOTION, weight={"elbow": 2.0}, sharpness=8),
        PeakTorque(MOTION, loads=kg.Loads(force={"forearm": [0, -5, 0]})),
        PeakPower(MOTION),
        Work(MOTION),
        Work(MOTION, net=True, weight=[1, 0]),
        Reach("forearm", [1, 2, 0]),
        WorkspaceMargin("forearm", [[0.3, 0.4, 0], [0.1, 0.6, 0], [-0.5, 0, 0]]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_gradients_are_those_of_differences(function):
    value, gradient = function(DESIGN)
    numerical = by_differences(function, DESIGN)
    np.testing.assert_allclose(gradient, numerical, atol=2e-6 * max(np.abs(numerical).max(), 1))
    assert np.isfinite(value)


def test_peaks_are_near_the_largest():
    tau = kg.inverse_dynamics(ARM, MOTION.q, MOTION.v, MOTION.a)
    assert PeakTorque(MOTION, sharpness=300)(DESIGN)[0] == pytest.approx(np.abs(tau).max(), rel=0.02)
    assert PeakPower(MOTION, sharpness=300)(DESIGN)[0] == pytest.approx(np.abs(tau * MOTION.v).max(), rel=0.02)
    value, slope = smooth_peak(np.array([[1e200], [-1e200]]), np.array([0.5, 0.5]), 32)  # no overflow
    assert value == pytest.approx(1e200)
    np.testing.assert_allclose(slope, [[0.5], [-0.5]])


def test_work_against_gravity_is_the_change_of_energy():
    """From rest to rest nothing else is left of the net work."""
    rest = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
    ramp = kg.Motion(ARM, T, *(np.outer(x(T), [0.5, -0.3]) for x in (rest, rest.deriv(), rest.deriv(2))))
    change = kg.potential_energy(ARM, ramp.q[-1]) - kg.potential_energy(ARM, ramp.q[0])
    assert Work(ramp, net=True)(DESIGN)[0] == pytest.approx(float(change), rel=1e-4)
    assert Work(ramp)(DESIGN)[0] >= abs(float(change)) - 1e-2


def test_reach_of_an_arm_with_limits():
    """An elbow that must stay bent by a quarter turn reaches the hypotenuse."""
    bent = ARM.replace(position_limits={"elbow": (np.pi / 2, np.pi)})
    value, gradient = Reach("forearm", [1, 0, 0])(kg.Design(bent, ["shoulder.a", "elbow.a"]))
    assert value == pytest.approx(0.4 * np.sqrt(2), abs=1e-6)
    np.testing.assert_allclose(gradient, [np.sqrt(0.5)] * 2, atol=1e-5)


def test_targets_out_of_reach_have_negative_margins():
    assert WorkspaceMargin("forearm", [[1.0, 0, 0]])(DESIGN)[0] == pytest.approx(-0.2, abs=1e-6)


def test_a_designer_makes_the_peak_least_while_targets_stay_in_reach():
    design = kg.Design(ARM, ["shoulder.a", "elbow.a"])
    margin = WorkspaceMargin("forearm", [[0.5, 0.3, 0]])
    bounds = {"shoulder.a": (0.1, 0.6), "elbow.a": (0.1, 0.6)}
    best = optimize_design(design, PeakTorque(MOTION), bounds=bounds, constraints=[Limit(margin, lower=0.05)])
    assert best.success, best.message
    assert margin(design.at(best.values))[0] >= 0.05 - 1e-6
    assert PeakTorque(MOTION)(design.at(best.values))[0] < PeakTorque(MOTION)(design)[0]


@pytest.mark.parametrize(
    "term", [Power(), Power(net=True, weight={"hinge1": 2.0}), TorqueNorm(4), TorqueNorm(8, [1, 0.5])]
)
def test_terms_of_simulated_motions(term):
    pendulum = kg.samples.double_pendulum()
    design, objective = kg.Design(pendulum, ["Q.mass"]), Objective(integral=[term])

    def run(at, **options):
        push = np.outer(np.cos(np.arange(50) / 9), [0.9, -0.4])
        return simulate_fixed(at.model, [0.5, 0.2], [0.1, 0], step=0.02, steps=50, tau=push, **options)

    exact = objective_gradient(run(design, design=design), objective)
    h = 1e-5
    ends = [objective_value(run(design.at(design.values + d)), objective) for d in (h, -h)]
    np.testing.assert_allclose(exact.dvalue_dp, [(ends[0] - ends[1]) / (2 * h)], atol=1e-7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PeakTorque(None), "`motion` of PeakTorque is a NoneType"),
        (lambda: PeakTorque(MOTION, weight=[1, 2, 3]), r"`weight` has shape \(3,\)"),
        (lambda: PeakTorque(MOTION, weight={"wrist": 1}), "speed 'wrist' does not exist"),
        (lambda: PeakTorque(MOTION, sharpness=1), "`sharpness` is 1; expected from 2 to 1000"),
        (lambda: Work(MOTION, smoothing=0), "`smoothing` is 0"),
        (lambda: Reach(3, [1, 0, 0]), "`link` is 3"),
        (lambda: Reach("forearm", [0, 0, 0]), "`direction` is .*; expected a vector that is not zero"),
        (lambda: WorkspaceMargin("forearm", [0.1, 0.2, 0]), r"`targets` has shape \(3,\)"),
        (lambda: WorkspaceMargin("forearm", [[0, 0, 0]]), r"`targets`\[0\] is at `base`"),
        (lambda: Reach("hand", [1, 0, 0])(DESIGN), "'hand' does not exist"),
        (lambda: PeakTorque(MOTION)(ARM), "`design` is a Model"),
        (lambda: TorqueNorm(1), "`order` of TorqueNorm is 1"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(kg.InputError, match=message):
        make()


def test_numbers_without_smoothing():
    """A motor is chosen by the largest torque, which a smooth maximum of a short peak is 10 % below."""
    tau = kg.inverse_dynamics(ARM, MOTION.q, MOTION.v, MOTION.a)
    assert PeakTorque(MOTION).unsmoothed(DESIGN) == np.abs(tau).max()
    assert PeakTorque(MOTION, weight={"elbow": 2.0}).unsmoothed(DESIGN) == 2 * np.abs(tau[:, 1]).max()
    assert PeakPower(MOTION).unsmoothed(DESIGN) == np.abs(tau * MOTION.v).max()
    assert PeakTorque(MOTION)(DESIGN)[0] < 0.98 * PeakTorque(MOTION).unsmoothed(DESIGN)
    power = (tau * MOTION.v)[:, 0]
    assert Work(MOTION, weight=[1, 0]).unsmoothed(DESIGN) == pytest.approx(np.trapezoid(np.abs(power), T), rel=1e-12)
    assert Work(MOTION, weight=[1, 0], net=True).unsmoothed(DESIGN) == pytest.approx(np.trapezoid(power, T), rel=1e-12)


def test_an_optimum_reports_the_largest_torque_and_limits_that_it_leaves():
    """A smooth maximum that keeps a limit does not keep it for the motor: the message has both numbers."""
    peak, design = PeakTorque(MOTION), kg.Design(ARM, ["forearm.mass"])
    limit = 0.9 * peak(design)[0]
    mass = design.values[0]
    found = optimize_design(
        design, lambda d: (-float(d.values[0]), np.array([-1.0])), bounds={"forearm.mass": (0.1 * mass, 2 * mass)},
        constraints=[Limit(peak, upper=limit)],
    )  # fmt: skip
    assert found.success
    assert found.unsmoothed == found.value
    largest = peak.unsmoothed(found.design)
    assert largest > 1.02 * limit
    assert (
        f"constraints[0], PeakTorque, is {largest:.4g} without smoothing, above its limit {limit:.4g}" in found.message
    )
    least = optimize_design(design, peak, bounds={"forearm.mass": (0.5 * mass, mass)})
    assert least.unsmoothed == peak.unsmoothed(least.design)
