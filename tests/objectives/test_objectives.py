"""Objectives: values against plain sums, direct gradients against differences, adjoint = direct."""

import numpy as np
import pytest
from scipy.integrate import trapezoid

import kinegrad as kg
from kinegrad import samples
from kinegrad.errors import InputError, SolveError
from kinegrad.simulate import (
    EndPosition,
    Evaluation,
    Feedback,
    KineticEnergy,
    Objective,
    TorqueSquared,
    UserTerm,
    adjoint_gradient,
    objective_gradient,
    objective_value,
    simulate,
    simulate_fixed,
)
from tests.simulate.models import chain, everything, feedback, pendulum

STATE = np.array([1.0, 0.5]), np.array([0.3, -0.2])
RUN = {"step": 0.02, "steps": 40}
STEADY = np.random.default_rng(8).normal(size=(40, 2))
TORQUES = {"free": None, "constant": [0.3, -0.1], "steps": STEADY, "feedback": feedback()}


def acceleration_squared(at):
    """A term in a."""
    return Evaluation((at.a**2).sum(-1) / 100, da=at.a / 50)


def test_value_is_the_integral():
    """Against the trapezoidal rule on 20001 samples, whose error is about 1e-8."""
    model, swing = samples.double_pendulum(), Objective(integral=[KineticEnergy()])
    motion = simulate(model, *STATE, [0, 2])
    fine = motion.interpolate(np.linspace(0, 2, 20001))
    plain = trapezoid(kg.kinetic_energy(model, fine.q, fine.v), fine.t)
    assert objective_value(motion, swing) == pytest.approx(plain, rel=1e-7)
    fixed = simulate_fixed(model, *STATE, step=0.005, steps=400)
    assert objective_value(fixed, swing) == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("design", [pendulum(), chain()], ids=["pendulum", "chain"])
def test_direct_gradient_of_a_simulation(design):
    """Against central differences of J of whole simulations."""
    objective = everything(design.model)
    tight = {"tau": feedback(), "rtol": 1e-12, "atol": 1e-13}
    found = objective_gradient(simulate(design.model, *STATE, [0, 1], design=design, **tight), objective)

    def at(change):
        return objective_value(simulate(design.at(design.values + change).model, *STATE, [0, 1], **tight), objective)

    for k, direction in enumerate(np.eye(design.p)):
        coarse, fine = ((at(h * direction) - at(-h * direction)) / (2 * h) for h in (2e-4, 1e-4))
        assert found.dvalue_dp[k] == pytest.approx((4 * fine - coarse) / 3, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize("tau", TORQUES.values(), ids=TORQUES)
@pytest.mark.parametrize("design", [pendulum(), chain()], ids=["pendulum", "chain"])
def test_adjoint_is_direct(design, tau, method):
    """On the discrete scheme both are exact; loads, all terms, a batch of states."""
    q0 = STATE[0] + np.linspace(0, 1, 3)[:, None]
    if isinstance(tau, np.ndarray):
        tau = tau[:, None, :]
    loads = kg.Loads(force=np.ones((2, 3)), point=np.full((2, 3), 0.1))
    run = RUN | {"tau": tau, "method": method, "design": design, "loads": loads}
    objective = everything(design.model)
    objective = Objective(end=[*objective.end, UserTerm(acceleration_squared)],
                          integral=[*objective.integral, UserTerm(acceleration_squared)])  # fmt: skip
    direct = objective_gradient(simulate_fixed(design.model, q0, STATE[1], **run), objective)
    adjoint = adjoint_gradient(design.model, q0, STATE[1], objective, **run)
    np.testing.assert_allclose(adjoint.value, direct.value, rtol=1e-13)
    scale = np.abs(direct.dvalue_dp).max()
    np.testing.assert_allclose(adjoint.dvalue_dp, direct.dvalue_dp, atol=1e-10 * scale, rtol=0)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_adjoint_of_initial_state_and_torques(method):
    """Against central differences of the same discrete J."""
    model = samples.double_pendulum()
    objective = everything(model)
    run = RUN | {"method": method}
    found = adjoint_gradient(model, *STATE, objective, tau=STEADY, **run)

    def J(q0=STATE[0], v0=STATE[1], tau=STEADY):
        return objective_value(simulate_fixed(model, q0, v0, tau=tau, **run), objective)

    def slope(f):
        coarse, fine = ((f(h) - f(-h)) / (2 * h) for h in (2e-4, 1e-4))
        return (4 * fine - coarse) / 3

    for i, unit in enumerate(np.eye(2)):
        assert found.dvalue_dq0[i] == pytest.approx(slope(lambda h, e=unit: J(q0=STATE[0] + h * e)), rel=1e-8)
        assert found.dvalue_dv0[i] == pytest.approx(slope(lambda h, e=unit: J(v0=STATE[1] + h * e)), rel=1e-8)
    for k in (0, 1, 20, 38, 39):
        push = np.zeros_like(STEADY)
        push[k, 1] = 1.0
        expected = slope(lambda h, e=push: J(tau=STEADY + h * e))
        assert found.dvalue_dtau[k, 1] == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_initial_sensitivity_joins_the_adjoint():
    """dJ/dp of a start that follows p is the adjoint's dJ/dq0 chained: the two methods once more."""
    design = pendulum()
    objective, slope = everything(design.model), np.arange(8.0).reshape(2, 4)
    direct = objective_gradient(simulate_fixed(design.model, *STATE, design=design, dq0_dp=slope, **RUN), objective)
    adjoint = adjoint_gradient(design.model, *STATE, objective, design=design, **RUN)
    total = adjoint.dvalue_dp + adjoint.dvalue_dq0 @ slope
    np.testing.assert_allclose(total, direct.dvalue_dp, rtol=1e-10)


@pytest.mark.parametrize("segment", [1, 7, 40, 100, 10**30])
def test_checkpoints_do_not_change_the_gradient(segment):
    design = chain()
    objective = everything(design.model)
    run = RUN | {"design": design, "tau": feedback()}
    one, two = (adjoint_gradient(design.model, *STATE, objective, segment=k, **run) for k in (None, segment))
    for name in ("value", "dvalue_dp", "dvalue_dq0", "dvalue_dv0", "dvalue_dtau"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-11, atol=1e-11)


def test_what_cannot_be_differentiated_is_refused():
    design = pendulum()
    model, swing = design.model, Objective(integral=[KineticEnergy()])
    with pytest.raises(InputError, match="made without a design"):
        objective_gradient(simulate(model, *STATE, [0, 1]), swing)
    with pytest.raises(InputError, match="expected every=1"):
        objective_value(simulate_fixed(model, *STATE, step=0.1, steps=10, every=2), swing)
    with pytest.raises(InputError, match="function without derivatives"):
        adjoint_gradient(model, *STATE, swing, tau=lambda t, q, v: -q, **RUN)
    with pytest.raises(InputError, match="expected a list of terms"):
        Objective(integral=KineticEnergy())
    wrong = Objective(end=[UserTerm(lambda at: Evaluation(np.zeros(3)))])
    with pytest.raises(InputError, match=r"`value` of a UserTerm has shape \(3,\); expected \(1,\)"):
        objective_value(simulate(model, *STATE, [0, 1]), wrong)
    explode = Feedback(lambda t, q, v: 10 * v**3, None, lambda t, q, v: 30 * np.eye(2) * v[..., None] ** 2)
    with pytest.raises(SolveError, match="not reached its end: diverged at t = "):
        objective_value(simulate(model, *STATE, [0, 1], tau=explode), swing)
    with pytest.raises(SolveError, match="diverged at t = "):
        adjoint_gradient(model, *STATE, swing, tau=explode, step=0.1, steps=40)


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_adjoint_of_a_motion_whose_last_torque_overflows(method):
    """The states are finite to the end; what the torque is there is the motion's fault, not that of an argument."""
    jump = Feedback(lambda t, q, v: np.full_like(q, np.inf if t > 0.199 else 0.0), None, None)
    with pytest.raises(SolveError, match=r"diverged at t = 0.2 s"):
        adjoint_gradient(
            samples.double_pendulum(),
            *STATE,
            Objective(end=[KineticEnergy()]),
            tau=jump,
            step=0.1,
            steps=2,
            method=method,
        )


@pytest.mark.parametrize("weight", [1e308, [1.0, 1e308]])
def test_objectives_that_overflow_are_refused(weight):
    """Of a finite motion, without a warning: forwards as backwards."""
    model = samples.double_pendulum()
    heavy = Objective(integral=[TorqueSquared(weight)])
    run = {"step": 0.01, "steps": 5, "tau": [10, 10], "design": kg.Design(model, ["gravity.z"])}
    motion = simulate_fixed(model, *STATE, **run)
    for refused in (
        lambda: objective_value(motion, heavy),
        lambda: objective_gradient(motion, heavy),
        lambda: adjoint_gradient(model, *STATE, heavy, **run),
    ):
        with pytest.raises(SolveError, match="not finite on a finite motion"):
            refused()


def test_terms_that_are_no_terms_are_shown_briefly():
    with pytest.raises(InputError, match=r"`end` is .{1,200}; expected a list of terms"):
        Objective(end=np.ones((30, 30)))


@pytest.mark.parametrize("link", [(), ("forearm",), 1, None])
def test_end_position_is_of_one_link(link):
    with pytest.raises(InputError, match=r"`link` of EndPosition is .*; expected the name of a link or frame"):
        EndPosition(link, (0, 0, 0))
