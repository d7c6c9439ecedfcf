"""What torques may be: functions that reuse their arrays, and what is refused by name."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from kinegrad import Design, InputError, Loads, SolveError, samples
from kinegrad.simulate import (
    EndPosition,
    Evaluation,
    Feedback,
    KineticEnergy,
    Objective,
    PotentialEnergy,
    TorqueSquared,
    Tracking,
    UserTerm,
    adjoint_gradient,
    objective_gradient,
    objective_value,
    simulate,
    simulate_fixed,
)
from kinegrad.simulate.law import Law
from kinegrad.simulate.prescribed import Prescribed
from tests.conftest import assert_close

MODEL = samples.double_pendulum()
START = ([1.0, 0.0], [0.0, 0.0])
STEPS = {"step": 0.01, "steps": 50}
GAIN = {"dtau_dq": lambda t, q, v: -3 * np.eye(2), "dtau_dv": None}


def fresh(t, q, v):
    return -3 * q


def reused():
    """One buffer for all calls."""
    buffer = np.zeros(2)

    def function(t, q, v):
        buffer[:] = -3 * q
        return buffer

    return function


def careless(t, q, v):
    q *= -3
    v[:] = np.nan
    return q


@pytest.mark.parametrize("function", [reused(), careless])
def test_functions_may_reuse_and_change_their_arrays(function):
    for run in (
        lambda tau: simulate(MODEL, *START, np.linspace(0, 0.5, 6), tau=tau).tau,
        lambda tau: simulate_fixed(MODEL, *START, tau=tau, **STEPS).tau,
        lambda tau: simulate_fixed(MODEL, *START, tau=tau, **STEPS).q,
        lambda tau: (
            adjoint_gradient(
                MODEL, *START, Objective(integral=[TorqueSquared()]), tau=Feedback(tau, **GAIN), **STEPS
            ).dvalue_dq0
        ),
    ):
        assert np.array_equal(run(function), run(fresh))


@pytest.mark.parametrize(
    ("tau", "message"),
    [
        (lambda t, q, v: q + 1j, "`tau` holds complex numbers"),
        (lambda t, q, v: "much", "`tau` holds str"),
        (lambda t, q, v: np.ones(3), r"`tau` gives shape \(3,\) at t = 0; expected \(2,\)"),
        (
            Feedback(fresh, lambda t, q, v: np.ones(2), None),
            r"`dtau_dq` gives shape \(2,\) at t = 0; expected \(2, 2\)",
        ),
        (Feedback(fresh, None, lambda t, q, v: "some"), "`dtau_dv` holds str"),
    ],
)
def test_what_functions_give_is_refused_by_name(tau, message):
    design = Design(MODEL, ["Q.mass"]) if isinstance(tau, Feedback) else None
    with pytest.raises(InputError, match=message):
        simulate(MODEL, *START, [0, 1], tau=tau, design=design)
    with pytest.raises(InputError, match=message):
        simulate_fixed(MODEL, *START, tau=tau, design=design, **STEPS)


def test_feedback_wants_functions_and_a_word_on_both_derivatives():
    with pytest.raises(InputError, match="`function` of a Feedback is a int"):
        Feedback(3, None, None)
    with pytest.raises(InputError, match="`dtau_dq` of a Feedback is a ndarray"):
        Feedback(fresh, np.eye(2), None)
    with pytest.raises(TypeError, match="dtau_dq"):
        Feedback(fresh)


def test_loads_that_are_not_finite():
    loads = Loads(force={"Q": [np.nan, 0, 0]})
    for run in (lambda: simulate(MODEL, *START, [0, 1], loads=loads),
                lambda: simulate_fixed(MODEL, *START, loads=loads, **STEPS)):  # fmt: skip
        with pytest.raises(InputError, match=r"`loads.force` at index \(1, 0\) is nan"):
            run()


@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau", "BDF", "LSODA"])
def test_torques_that_stop_being_numbers_end_the_run(method):
    motion = simulate(
        MODEL, *START, np.linspace(0, 1, 11), tau=lambda t, q, v: np.full(2, np.nan if t > 0.45 else 0.0), method=method
    )
    assert not motion.success
    assert motion.message.startswith("diverged at t = 0.4")
    assert 0.2 < motion.t[-1] < 0.5


def test_numbers_of_any_kind():
    assert simulate_fixed(MODEL, *START, step=np.float32(0.5), steps=np.int64(2), every=np.int32(2)).t[-1] == 1.0
    assert simulate(MODEL, *START, [0, 0.1], rtol=np.float32(1e-3), max_step=np.inf).success
    for wrong in ({"steps": True}, {"steps": 2.0}, {"every": 0}, {"every": True}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            simulate_fixed(MODEL, *START, **STEPS | wrong)
    for wrong in ({"rtol": True}, {"rtol": 0}, {"atol": "small"}, {"speed_limit": np.nan}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            simulate(MODEL, *START, [0, 0.1], **wrong)


# --- objectives -------------------------------------------------------------------------------------------------

SHORT = {"step": 0.01, "steps": 5}


def some(at):
    return Evaluation(at.q[..., 0], dq=np.ones_like(at.q), dp=np.zeros((1, 1)))


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (TorqueSquared(np.ones(3)), r"`weight` has shape \(3,\); expected one number, \(2,\), or numbers by name"),
        (Tracking(np.ones((6, 2))), r"`reference` of Tracking gives shape \(6, 2\); expected \(2,\)"),
        (Tracking(lambda t: np.ones(2)), r"`reference` of Tracking gives shape \(2,\); expected \(6, 2\)"),
        (EndPosition("Q", [1.0, 2.0]), r"`target` of EndPosition has shape \(2,\)"),
        (EndPosition("Q", 1.0), r"`target` of EndPosition has shape \(\)"),
        (UserTerm(lambda at: None), "returns a NoneType; expected an Evaluation"),
        (UserTerm(some), r"`dp` of a UserTerm has shape \(1, 1\); expected \(6, 1\)"),
    ],
)
def test_terms_are_refused_by_name(term, message):
    design = Design(MODEL, ["Q.mass"])
    motion = simulate_fixed(MODEL, *START, design=design, **SHORT)
    with pytest.raises(InputError, match=message):
        objective_gradient(motion, Objective(integral=[term]))


def test_objectives_are_refused_by_name():
    motion = simulate_fixed(MODEL, *START, **SHORT)
    for run in (objective_value, objective_gradient):
        with pytest.raises(InputError, match="`objective` is a KineticEnergy; expected Objective"):
            run(motion, KineticEnergy())
        with pytest.raises(InputError, match="`simulation` is a NoneType"):
            run(None, Objective())
    with pytest.raises(InputError, match="`objective` is a KineticEnergy"):
        adjoint_gradient(MODEL, *START, KineticEnergy(), **SHORT)
    with pytest.raises(InputError, match="`end` is"):
        Objective(end=[KineticEnergy])


def test_potential_energy_balances_kinetic_energy():
    """Of a conservative motion their sum, and its gradient by any parameter, are those of the start."""
    model = MODEL.replace(stiffness=[2.0, 1.0])
    design = Design(model, ["Q.mass", "gravity.z", "hinge2.stiffness", "hinge2.placement.z"])
    motion = simulate(model, [0.7, 0.4], [0.3, 0], [0, 0.5, 1.3], design=design, rtol=1e-12, atol=1e-13)
    both = Objective(end=[KineticEnergy(), PotentialEnergy()])
    at_start = simulate(model, [0.7, 0.4], [0.3, 0], [0, 1e-9], design=design)
    assert_close(objective_value(motion, both), objective_value(at_start, both), 1e-9)
    found, expected = (objective_gradient(x, both).dvalue_dp for x in (motion, at_start))
    assert_close(found, expected, 1e-8)  # 1e-9 s of motion, and the integrator's tolerance


def test_empty_batches():
    design = Design(MODEL, ["Q.mass"])
    none = np.zeros((0, 2))
    objective = Objective(end=[Tracking([0.0, 0.0])])
    assert adjoint_gradient(MODEL, none, none, objective, design=design, **SHORT).dvalue_dp.shape == (0, 1)
    for tau in (None, fresh):
        assert simulate_fixed(MODEL, none, none, tau=tau, **SHORT).q.shape == (6, 0, 2)


def test_the_adjoint_of_a_motion_that_diverges():
    heavy = Feedback(lambda t, q, v: 10 * v**3, None, lambda t, q, v: 30 * np.eye(2) * v[..., None] ** 2)
    for tau in (heavy, np.full(2, 1e300)):
        with pytest.raises(SolveError, match="diverged at t = "):
            adjoint_gradient(MODEL, [1, 0], [5, 0], Objective(end=[KineticEnergy()]), tau=tau, step=0.1, steps=60)


@pytest.mark.parametrize("prescribed", [False, True], ids=["free", "prescribed"])
@pytest.mark.parametrize("shape", [(), (4,)], ids=["one", "batch"])
def test_values_and_slopes_of_one_pass(shape, prescribed):
    """a, τ and their total derivatives together are those of two passes to rounding, even where some are not finite."""
    design = Design(MODEL, ["P.mass", "Q.mass"])
    feedback = Feedback(lambda t, q, v: -3 * q, dtau_dq=lambda t, q, v: -3 * np.eye(2), dtau_dv=None)
    motion = {MODEL.joint_names[0]: CubicSpline([0, 1, 2, 3], [0, 0.3, 0.1, 0.2])}
    held = Prescribed(MODEL, motion, 0.0, 3.0) if prescribed else None
    law = Law(MODEL, feedback, None, (0.0, 3.0), None, design, held)
    rng = np.random.default_rng(3)
    q, v = rng.normal(size=(2, *shape, 2))
    dq, dv = rng.normal(size=(2, *shape, 2, 2))
    for lost in (False, bool(shape)):
        if lost:
            q[1], dv[2] = np.nan, np.nan
        found = law.with_sensitivity(1.0, q, v, dq, dv)
        a, tau = law.acceleration(1.0, q, v)
        for x, y in zip(found, (a, tau, *law.sensitivity(1.0, q, v, tau, dq, dv)), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-13)
