"""Finished motions own what they need, travel between processes, and compare by value."""

import pickle

import numpy as np
import pytest
from scipy.interpolate import BSpline, CubicSpline

from kinegrad import Design, Loads, samples
from kinegrad.simulate import (
    EndPosition,
    Evaluation,
    Feedback,
    KineticEnergy,
    Limit,
    Objective,
    Simulated,
    TorqueSquared,
    Tracking,
    UserTerm,
    adjoint_gradient,
    objective_gradient,
    objective_value,
    optimize_design,
    simulate,
    simulate_fixed,
)
from tests.simulate.models import pendulum

MODEL = samples.double_pendulum()
T = np.linspace(0, 1, 11)
EFFORT = Objective(end=[KineticEnergy()], integral=[TorqueSquared(), KineticEnergy()])


def spring(t, q, v):
    return -2.0 * q - 0.1 * v


def stiffness(t, q, v):
    return -2.0 * np.eye(2)


def damping(t, q, v):
    return -0.1 * np.eye(2)


def drive(t):
    return 0.1 * np.sin(t) + 1.0, 0.1 * np.cos(t), -0.1 * np.sin(t)


def straight():
    """A spline that holds the very array of coefficients it is given."""
    return BSpline(np.array([0, 0, 1, 1.0]), np.array([[0.1, 0.2], [0.3, 0.4]]), 1)


def spoil(*arrays):
    for x in arrays:
        x[...] = 99.0


GIVEN = {
    "constant": lambda: np.array([0.1, 0.2]),
    "samples": lambda: np.full((11, 2), 0.3) * T[:, None],
    "spline": straight,
}


@pytest.mark.parametrize("method", ["DOP853", "rk4", "implicit_midpoint"])
@pytest.mark.parametrize("kind", GIVEN)
def test_torques_and_loads_may_be_used_again(kind, method):
    """Spoiling all that was given changes neither objectives nor gradients nor interpolation afterwards."""
    tau = GIVEN[kind]()
    tau = tau[:10] if kind == "samples" and method != "DOP853" else tau
    force, q0, v0, t = np.array([0.0, 0.0, 2.0]), np.array([1.0, 0.5]), np.zeros(2), T.copy()
    loads = Loads(force={"Q": force})
    design = Design(MODEL, ["P.mass", "Q.load.force.z"], loads)
    slope = np.full((2, 2), 0.1)
    run = {"tau": tau, "design": design, "dq0_dp": slope}
    if method == "DOP853":
        motion = simulate(MODEL, q0, v0, t, **run)
    else:
        motion = simulate_fixed(MODEL, q0, v0, step=0.1, steps=10, method=method, **run)

    def look():
        gradient = objective_gradient(motion, EFFORT)
        between = motion.interpolate([0.05, 0.55]).tau if method == "DOP853" else 0
        return objective_value(motion, EFFORT), gradient.dvalue_dp, between, motion.to_xarray()["q"].values

    before = look()
    spoil(tau.c if isinstance(tau, BSpline) else tau, force, q0, v0, t, slope)
    for x, y in zip(before, look(), strict=True):
        assert np.array_equal(x, y)


def test_prescribed_splines_may_be_used_again():
    cart = samples.cart_pendulum()
    motion_given = CubicSpline([0, 1, 2], [0, 0.1, 0.3])
    motion = simulate(cart, [np.nan, 0.5], [np.nan, 0], [0, 1], prescribed={"track": motion_given})
    before = motion.interpolate([0.5]).tau
    spoil(motion_given.c)
    assert np.array_equal(motion.interpolate([0.5]).tau, before)


def test_terms_and_limits_own_their_numbers():
    weight, reference, target, upper = np.ones(2), np.zeros(2), np.zeros(3), np.array([5.0])
    q0 = np.array([1.0, 0.5])
    objective = Objective(end=[Tracking(reference, weight), EndPosition("Q", target)], integral=[TorqueSquared(weight)])
    simulated, limit = Simulated(objective, q0, [0, 0], step=0.1, steps=5), Limit(np.sum, upper=upper)
    before = simulated(pendulum())
    spoil(weight, reference, target, upper, q0)
    assert simulated(pendulum())[0] == before[0]
    assert limit.upper == 5.0


def test_user_terms_may_change_what_they_are_given():
    """Terms that work in place do not change the motion, nor what the next term sees."""

    def rude(at):
        at.q[:] = 0.0
        return Evaluation(at.v[..., 0], dv=np.stack([np.ones_like(at.v[..., 0]), 0 * at.v[..., 1]], axis=-1))

    objective = Objective(end=[UserTerm(rude), Tracking([0.0, 0.0])], integral=[UserTerm(rude), Tracking([0.0, 0.0])])
    for method in ("rk4", "implicit_midpoint"):
        run = {"step": 0.1, "steps": 5, "method": method}
        motion = simulate_fixed(MODEL, [1.0, 0.5], [0, 0], **run)
        q = motion.q.copy()
        value = objective_value(motion, objective)
        assert np.array_equal(motion.q, q)
        assert adjoint_gradient(MODEL, [1.0, 0.5], [0, 0], objective, **run).value == pytest.approx(value, rel=1e-12)


def test_objectives_of_designs_may_use_their_arrays_again():
    """An objective that fills one array of its own for all designs is minimised as any other."""
    buffer = np.empty(1)

    def hill(design):
        buffer[:] = 2 * (design.values - 1.3)
        return float(((design.values - 1.3) ** 2).sum()), buffer

    best = optimize_design(Design(MODEL, ["Q.mass"]), hill, bounds=[(0.5, 3.0)])
    assert best.success
    np.testing.assert_allclose(best.values, 1.3, atol=1e-6)


FUNCTIONS = Feedback(spring, stiffness, damping)
MOTIONS = {
    "plain": lambda: simulate(MODEL, [1, 0.5], [0, 0], T),
    "design": lambda: simulate(MODEL, [1, 0.5], [0, 0], T, design=Design(MODEL, ["Q.mass"]), tau=[0.1, 0.2]),
    "samples": lambda: simulate(MODEL, [1, 0.5], [0, 0], T, tau=np.outer(T, [1, 2])),
    "feedback": lambda: simulate(MODEL, [1, 0.5], [0, 0], T, tau=FUNCTIONS, design=Design(MODEL, ["Q.mass"])),
    "loads": lambda: simulate(MODEL, [1, 0.5], [0, 0], T, loads=Loads(force={"Q": [0, 0, 1.0]}), tau=straight()),
    "Radau": lambda: simulate(MODEL, [1, 0.5], [0, 0], T, method="Radau"),
    "BDF": lambda: simulate(MODEL, [1, 0.5], [0, 0], T, method="BDF"),
    "LSODA": lambda: simulate(MODEL, [1, 0.5], [0, 0], T, method="LSODA"),
    "diverged": lambda: simulate(MODEL, [1, 0.5], [0, 0], T, speed_limit=2.0),
    "prescribed": lambda: simulate(MODEL, [np.nan, 0.5], [np.nan, 0], T, prescribed={"hinge1": drive}),
    "rk4": lambda: simulate_fixed(MODEL, [[1, 0.5]], [0, 0], step=0.1, steps=5, design=Design(MODEL, ["Q.mass"])),
    "lambda": lambda: simulate_fixed(MODEL, [1, 0.5], [0, 0], step=0.1, steps=5, tau=lambda t, q, v: -q),
    "midpoint": lambda: simulate_fixed(MODEL, [1, 0.5], [0, 0], step=0.1, steps=5, method="implicit_midpoint"),
    "models": lambda: simulate_fixed([MODEL, MODEL], [1, 0.5], [0, 0], step=0.1, steps=5),
    "lost": lambda: simulate_fixed(MODEL, [[1, 0], [1, 1e200]], [0, 1e150], step=0.1, steps=5),
}


@pytest.mark.parametrize("kind", MOTIONS)
def test_motions_pickle_and_compare_by_value(kind):
    """A motion that comes back from another process is the same motion, and can be asked the same."""
    motion = MOTIONS[kind]()
    copy = pickle.loads(pickle.dumps(motion))
    assert copy == motion
    assert copy == MOTIONS[kind](), "the same call gives the same motion"
    assert copy.to_xarray().equals(motion.to_xarray())
    if hasattr(motion, "interpolate") and motion.success:
        assert copy.interpolate([0.25, 0.35]) == motion.interpolate([0.25, 0.35])
        assert objective_value(copy, EFFORT) == objective_value(motion, EFFORT)
    changed = pickle.loads(pickle.dumps(motion))
    changed.q[0] += 1e-9
    assert changed != motion


def test_motions_of_other_models_are_other_motions():
    """Even where all numbers agree: a joint of another name."""
    renamed = MODEL.replace(name="other")
    one, two = (simulate_fixed(m, [1, 0.5], [0, 0], step=0.1, steps=2) for m in (MODEL, renamed))
    assert np.array_equal(one.q, two.q)
    assert one != two


def test_gradients_and_optima_pickle_and_compare_by_value():
    design = pendulum()
    swing = Simulated(Objective(end=[KineticEnergy()]), [0.5, 0.3], [0, 0], step=0.05, steps=10)
    run = {"step": 0.05, "steps": 10, "design": design}

    def results():
        motion = simulate_fixed(design.model, [0.5, 0.3], [0, 0], **run)
        return [
            objective_gradient(motion, EFFORT),
            adjoint_gradient(design.model, [0.5, 0.3], [0, 0], EFFORT, **run),
            optimize_design(design, swing, bounds=[(-0.1, 0.1), (-0.1, 0.1), (0.9, 1.1), (0.9, 1.1)]).history,
        ]

    for one, other in zip(results(), results(), strict=True):
        assert one == other
        assert pickle.loads(pickle.dumps(one)) == one
