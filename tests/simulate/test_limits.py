"""Simulations that would not end, or not fit into memory, say so; and what is not a number is refused by name."""

import numpy as np
import pytest
from scipy.interpolate import BSpline, CubicSpline

import kinegrad as kg
from kinegrad import Design, samples
from kinegrad.errors import InputError
from kinegrad.simulate import (
    KineticEnergy,
    Objective,
    UserTerm,
    adjoint_gradient,
    optimize_design,
    simulate,
    simulate_fixed,
    watch,
)

MODEL = samples.double_pendulum()
STATE = [1.0, 0.5], [0.0, 0.0]
METHODS = ["DOP853", "RK45", "Radau", "BDF", "LSODA"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tau", [[1e300, 1e300], lambda t, q, v: np.full(2, 1e300)], ids=["constant", "function"])
def test_absurd_torques_end(method, tau):
    """LSODA made no step and 24 000 evaluations of the start, when it was stopped by hand."""
    motion = simulate(MODEL, *STATE, [0, 1], tau=tau, method=method)
    assert not motion.success
    assert motion.message.startswith(("diverged at t = ", "given up at t = "))
    assert motion.nfev < 1000


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler", "implicit_midpoint"])
@pytest.mark.parametrize("size", [1e150, 1e300])
@pytest.mark.parametrize("what", ["constant", "function", "speed"])
def test_absurd_numbers_diverge_in_equal_steps(method, size, what):
    """Not an error about the arguments of a function that the caller does not know of."""
    tau = {"constant": [size, size], "function": lambda t, q, v: np.full(2, size), "speed": None}[what]
    speeds = [size, 0.0] if what == "speed" else STATE[1]
    motion = simulate_fixed(MODEL, STATE[0], speeds, step=0.01, steps=20, tau=tau, method=method)
    assert not motion.success
    assert motion.message.startswith("diverged at t = ")


@pytest.mark.parametrize("method", ["DOP853", "RK45"])
def test_no_progress_is_given_up(method, monkeypatch):
    """Dampers as hard as this keep explicit methods at steps of 1e-13 s: the end would be 10¹⁴ evaluations away.

    The patience of the library takes seconds; a hundredth of it shows the same.
    """
    monkeypatch.setattr(watch, "PATIENCE", 1000)
    motion = simulate(MODEL.replace(damping=[1e13, 1e13]), *STATE, [0, 1], method=method)
    assert not motion.success
    assert motion.status == -2
    assert motion.message.startswith("given up at t = ")
    assert "1000 evaluations have not taken it further by 1e-06 s" in motion.message
    assert "'Radau'" in motion.message
    assert simulate(MODEL.replace(damping=[1e13, 1e13]), *STATE, [0, 1], method="Radau").success


@pytest.mark.parametrize("method", METHODS)
def test_evaluations_may_be_limited(method):
    motion = simulate(MODEL, *STATE, np.linspace(0, 10, 101), method=method, max_evaluations=200)
    assert not motion.success
    assert motion.status == -2
    assert motion.message == f"given up at t = {motion._track.edges[-1]:.6g} s: `max_evaluations`, 200, are used up"
    assert motion.nfev <= 201
    assert 1 < len(motion.t) < 101, "what there is of it"
    assert np.isfinite(motion.q).all()


def test_progress_in_time_is_enough(monkeypatch):
    """Long motions take more evaluations than the patience for one step."""
    monkeypatch.setattr(watch, "PATIENCE", 100)
    assert simulate(MODEL, *STATE, [0, 10]).success


@pytest.mark.parametrize("steps", [10**15, 2**63, 10**30])
@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint"])
def test_more_steps_than_memory(steps, method):
    run = {"step": 1e-3, "steps": steps, "method": method}
    with pytest.raises(InputError, match=rf"`steps` is {steps} and `every` 1: .* GB to keep, and this machine has"):
        simulate_fixed(MODEL, *STATE, **run)
    with pytest.raises(InputError, match=rf"`steps` is {steps}"):
        simulate_fixed(MODEL, *STATE, every=steps, **run)
    with pytest.raises(InputError, match=rf"`steps` is {steps}"):
        adjoint_gradient(MODEL, *STATE, Objective(end=[KineticEnergy()]), **run)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(MODEL, *STATE, [0, 1], prescribed=np.array(3.0)), r"`prescribed` is a ndarray"),
        (
            lambda: kg.hybrid_dynamics(MODEL, *STATE, [0, 0], [0, 0], prescribed=np.array("hinge1")),
            r"`prescribed` is array\('hinge1'.*expected names of joints",
        ),
        (
            lambda: simulate_fixed(MODEL, *STATE, step=0.1, steps=3, tau=CubicSpline([0, 1, 2], 1j * np.ones((3, 2)))),
            r"`tau` holds complex numbers",
        ),
        (
            lambda: simulate_fixed(
                MODEL, *STATE, step=0.1, steps=3, tau=BSpline([0, 0, 1, 1.0], np.full((2, 2), np.nan), 1)
            ),
            r"`tau` at index \(0, 0\) is nan",
        ),
        (lambda: simulate(MODEL, [1, 0.5], [1e200, 0], [0, 1]), r"or `q0` and `v0` are too large"),
        (lambda: simulate(MODEL, *STATE, [0, 1], rtol=1e-20), r"`rtol` is 1e-20; expected at least 2.2e-14"),
        (lambda: simulate(MODEL, *STATE, [0, 1], max_evaluations=0), r"`max_evaluations` is 0; expected a whole"),
        (lambda: simulate_fixed(MODEL, *STATE, step=0.1, steps=10**400), r"`steps` is 10+\.\.\.0+; expected a whole"),
        (lambda: UserTerm(None), r"`function` of a UserTerm is None"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "L-BFGS-B"])
@pytest.mark.parametrize("bounds", [None, [(0.5, 3.0), (0.5, 3.0)]], ids=["free", "bounds"])
def test_a_gradient_of_the_wrong_sign_is_no_success(method, bounds):
    """SLSQP said that it had converged, with all of the gradient left."""
    design = Design(MODEL, ["P.mass", "Q.mass"])

    def uphill(at):
        away = at.values - 1.5
        return float((away**2).sum()), -2 * away

    found = optimize_design(design, uphill, method=method, bounds=bounds, scale=[1.0, 1.0])
    assert not found.success
    assert found.status != 0
    assert found.stationarity > 1
    if method == "SLSQP" and bounds is not None:
        assert "Lagrange's conditions are not met: 1.4 is left of the gradient; is the gradient right?" in found.message


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "L-BFGS-B"])
def test_an_optimum_is_stationary(method):
    """With bounds that hold and bounds that do not."""
    design = Design(MODEL, ["P.mass", "Q.mass"])

    def valley(at):
        away = at.values - [1.5, 4.0]
        return float((away**2).sum()), 2 * away

    found = optimize_design(design, valley, method=method, bounds=[(0.5, 3.0), (0.5, 3.0)])
    assert found.success
    assert found.stationarity < 1e-3
    np.testing.assert_allclose(found.values, [1.5, 3.0], atol=1e-4)


@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau", "BDF", "LSODA"])
def test_any_limit_of_evaluations_is_told(method):
    """Also where it is met between steps: integrators evaluate the law to begin, and DOP853 to interpolate."""
    for most in range(1, 60):
        run = simulate(samples.double_pendulum(), [1, 0.5], [0, 0], [0, 5], method=method, max_evaluations=most)
        assert run.status == -2
        assert "given up at t = " in run.message
