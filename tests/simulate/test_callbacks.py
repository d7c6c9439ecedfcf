"""What a user's function raises comes through unchanged, from every method and every kind of function."""

import traceback

import numpy as np
import pytest

from kinegrad import Design, samples
from kinegrad.simulate import (
    Evaluation,
    Feedback,
    KineticEnergy,
    Limit,
    Objective,
    Simulated,
    Tracking,
    UserTerm,
    adjoint_gradient,
    objective_gradient,
    objective_value,
    optimize_design,
    simulate,
    simulate_fixed,
)

MODEL = samples.double_pendulum()
STATE = [1.0, 0.5], [0.0, 0.0]
ERRORS = [ValueError, ArithmeticError, RuntimeError, np.linalg.LinAlgError, StopIteration, KeyError]


def faulty(error, after=0.3):
    """A function that raises once it has been simulated for a while."""

    def the_culprit(t, *state):
        if t > after:
            raise error("the user's own words")
        return np.zeros(2) if state else (1.0, 0.0, 0.0)

    return the_culprit


def check(error, run, culprit="the_culprit"):
    with pytest.raises(error) as caught:
        run()
    assert type(caught.value) is error
    assert caught.value.args == ("the user's own words",)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert culprit in names, "with the traceback that leads to it"


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau", "BDF", "LSODA"])
def test_simulate(method, error):
    run = {"t": [0.0, 1.0], "method": method}
    check(error, lambda: simulate(MODEL, *STATE, tau=faulty(error), **run))
    calm = faulty(error, 2.0)
    check(error, lambda: simulate(MODEL, *STATE, tau=Feedback(faulty(error), None, None), **run))
    if method in ("Radau", "BDF"):  # LSODA asks for it only once it finds the motion stiff
        gain = Feedback(calm, lambda t, q, v: np.zeros((2, 2)) + faulty(error, -1.0)(t, q, v), None)
        check(error, lambda: simulate(MODEL, *STATE, tau=gain, **run))
    held = {"prescribed": {"hinge1": faulty(error)}}
    check(error, lambda: simulate(MODEL, *STATE, **held, **run))


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler", "implicit_midpoint"])
def test_fixed_steps(method, error):
    run = {"step": 0.1, "steps": 6, "method": method}
    check(error, lambda: simulate_fixed(MODEL, *STATE, tau=faulty(error), **run))
    objective, design = Objective(end=[KineticEnergy()]), Design(MODEL, ["Q.mass"])
    feedback = Feedback(faulty(error), None, None)
    check(error, lambda: adjoint_gradient(MODEL, *STATE, objective, tau=feedback, **run))
    gain = Feedback(faulty(error, 2.0), lambda t, q, v: np.zeros((2, 2)) + faulty(error)(t, q, v), None)
    check(error, lambda: simulate_fixed(MODEL, *STATE, tau=gain, design=design, **run))
    check(error, lambda: adjoint_gradient(MODEL, *STATE, objective, tau=gain, **run))


@pytest.mark.parametrize("error", ERRORS)
def test_objectives_and_progress(error):
    def the_culprit(*_):
        raise error("the user's own words")

    motion = simulate_fixed(MODEL, *STATE, step=0.1, steps=6, design=Design(MODEL, ["Q.mass"]))
    for term in (UserTerm(the_culprit), Tracking(the_culprit)):
        for objective in (Objective(end=[term]), Objective(integral=[term])):
            check(error, lambda objective=objective: objective_value(motion, objective))
            check(error, lambda objective=objective: objective_gradient(motion, objective))
            for method in ("rk4", "implicit_midpoint"):
                run = {"step": 0.1, "steps": 6, "method": method}
                check(error, lambda objective=objective, run=run: adjoint_gradient(MODEL, *STATE, objective, **run))
    check(error, lambda: simulate(MODEL, *STATE, [0, 1], progress=the_culprit))


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "L-BFGS-B"])
def test_optimisation(method, error):
    """From the objective, a term within it, a limit, and progress; at the start, and later."""
    design, calls = Design(MODEL, ["Q.mass"]), []

    def the_culprit(*_):
        calls.append(1)
        if len(calls) > 1:
            raise error("the user's own words")

    def hill(at):
        return float((at.values[0] - 1.5) ** 4), 4 * (at.values - 1.5) ** 3

    def steep(at):
        the_culprit()
        return hill(at)

    def term(at):
        the_culprit()
        return Evaluation(at.q[..., 0], dq=np.ones_like(at.q) * [1, 0])

    within = Simulated(Objective(end=[UserTerm(term)]), *STATE, step=0.1, steps=5)
    limit = Limit(lambda at: (steep(at)[0], hill(at)[1]), upper=10.0)
    runs = [
        lambda: optimize_design(design, steep, method=method, bounds=[(0.5, 3.0)]),
        lambda: optimize_design(design, within, method=method, bounds=[(0.5, 3.0)]),
        lambda: optimize_design(design, hill, method=method, bounds=[(0.5, 3.0)], progress=the_culprit),
    ]
    if method != "L-BFGS-B":
        runs.append(lambda: optimize_design(design, hill, method=method, constraints=[limit]))
    for run in runs:
        calls.clear()
        check(error, run)
