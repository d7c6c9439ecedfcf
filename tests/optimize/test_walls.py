"""Design optimisation where there is no model, no motion or no number: steps taken back, and what is reported."""

import numpy as np
import pytest

from kinegrad import Design, samples
from kinegrad.errors import ModelError, SolveError
from kinegrad.simulate import (
    Feedback,
    Limit,
    Objective,
    Simulated,
    Tracking,
    optimize_design,
)
from tests.optimize.objectives import CONSTRAINED, MASSES, METHODS, TIGHT, bowl


def narrow(edge, centre):
    """J falls steadily towards a centre; what is beyond an edge cannot be evaluated."""

    def function(design):
        if design.values[0] > edge:
            raise SolveError("the motion diverged")
        away = design.values - centre
        return away @ away, 2 * away

    return function


@pytest.mark.parametrize("method", METHODS)
def test_failed_steps_are_taken_back(method):
    """The first step would go to 3 at once; beyond 1.5 there is nothing, but the optimum is before it."""
    function = narrow(1.5, np.array([1.4, 2.0]))
    found = optimize_design(MASSES, function, method=method, scale=[10.0, 10.0], **TIGHT)
    assert found.failures > 0
    assert found.success
    np.testing.assert_allclose(found.values, [1.4, 2.0], atol=2e-6)
    assert f"{found.failures} of {found.evaluations} evaluations failed, the last: the motion diverged" in found.message
    assert all(record.values[0] <= 1.5 for record in found.history)


@pytest.mark.parametrize("method", METHODS)
def test_an_optimum_behind_a_wall_is_approached_and_reported(method):
    """J wants to be beyond the edge: the method gets close to it, cannot say that it converged there unless it takes
    the edge for a minimum, and the result is the best design that exists."""
    found = optimize_design(MASSES, narrow(1.5, np.array([1.9, 2.0])), method=method, max_iterations=60)
    assert 1.0 < found.values[0] <= 1.5
    assert found.value < narrow(1.5, np.array([1.9, 2.0]))(MASSES)[0]
    assert found.value <= min(record.value for record in found.history)
    assert found.failures > 0
    assert "evaluations failed" in found.message
    assert not found.success  # whatever the method says
    assert found.stationarity == pytest.approx(abs(found.gradient[0]) / 1.8, rel=1e-9)  # 1.8 at the start


@pytest.mark.parametrize("method", METHODS)
def test_masses_that_cannot_be(method):
    """Less mass, less J: the steps go below zero, where Design.at raises a ModelError."""
    with pytest.raises(ModelError):
        MASSES.at([-1.0, 1.0])

    def lighter(design):
        return (design.values**2 + 4 * design.values).sum(), 2 * design.values + 4

    found = optimize_design(MASSES, lighter, method=method, max_iterations=60)
    assert found.failures > 0
    assert (found.values >= 0).all()
    assert found.value < 0.5 * lighter(MASSES)[0]
    assert "mass" in found.message


@pytest.mark.parametrize("gradient", ["adjoint", "direct"])
@pytest.mark.parametrize("method", METHODS)
def test_diverging_motions(method, gradient):
    """A torque that grows with speed makes light pendulums explode within the time simulated, and light ones end
    nearest to their target: the optimiser runs into that and comes back."""
    push = Feedback(lambda t, q, v: v**3, None, lambda t, q, v: 3 * np.eye(2) * v[..., None] ** 2)
    design = Design(samples.double_pendulum(MP=6.0, MQ=6.0), ["P.mass", "Q.mass"])
    swing = Simulated(
        Objective(end=[Tracking([-8.0, -8.0])]),
        [0.5, 0.2],
        [0.0, 0.0],
        step=0.04,
        steps=30,
        tau=push,
        gradient=gradient,
    )
    with pytest.raises(SolveError, match="diverged at t = "):
        swing(design.at([0.5, 0.5]))
    bounds = [(0.1, 10.0), (0.1, 10.0)]
    found = optimize_design(design, swing, bounds=bounds, method=method, max_iterations=15)
    assert found.failures > 0
    assert found.value < 0.97 * swing(design)[0]
    assert np.isfinite(found.gradient).all()
    assert "diverged at t = " in found.message


@pytest.mark.parametrize("method", METHODS)
def test_cliffs_are_not_taken_for_convergence(method):
    """Beyond 1.5 J rises to 1e200: to a line search that interpolates, a reason to go back to where it was, and to say
    that it has converged there."""

    def cliff(design):
        x = design.values[0]
        steep = 10.0 ** (400 * min(x - 1.5, 0.5))
        away = design.values - [1.4, 2.0]
        return away @ away + steep, 2 * away + [steep * 400 * np.log(10) * (x < 2.0), 0.0]

    found = optimize_design(MASSES, cliff, method=method, scale=[10.0, 10.0], **TIGHT)
    assert found.success
    np.testing.assert_allclose(found.values, [1.4, 2.0], atol=2e-6)


def test_values_that_are_not_numbers_are_failed_steps():
    def function(design):
        value, gradient = bowl([1.4, 2.0])(design)
        return (np.nan, gradient) if design.values[0] > 1.5 else (value, gradient)

    found = optimize_design(MASSES, function, scale=[10.0, 10.0])
    assert found.success
    assert found.failures > 0
    assert "not finite" in found.message


def test_a_start_that_cannot_be_evaluated_is_an_error():
    with pytest.raises(SolveError, match="the motion diverged"):
        optimize_design(MASSES, narrow(0.5, np.zeros(2)))
    with pytest.raises(SolveError, match="`objective` has values or gradients that are not finite at Design"):
        optimize_design(MASSES, lambda design: (np.inf, np.zeros(2)))
    with pytest.raises(SolveError, match="`constraints` has values or gradients that are not finite"):
        optimize_design(MASSES, bowl([1, 1]), constraints=[Limit(lambda design: (np.nan, np.zeros(2)), 0, 1)])


def test_a_method_that_loses_its_way_returns_the_best_so_far(monkeypatch):
    def lost(fun, x0, *, jac, **_):
        jac(x0 + 0.1)
        jac(x0 * np.nan)

    monkeypatch.setattr("kinegrad.optimize.optimum.minimize", lost)
    found = optimize_design(MASSES, bowl([2.0, 2.0]))
    assert not found.success
    assert found.status == 2
    assert "lost its way" in found.message
    assert found.iterations == 1
    np.testing.assert_allclose(found.values, [1.1, 2.2])


@pytest.mark.parametrize("method", CONSTRAINED)
def test_limits_that_cannot_be_kept(method):
    impossible = Limit(lambda design: (design.values @ design.values, 2 * design.values), upper=-1.0)
    found = optimize_design(MASSES, bowl([1.0, 2.0]), constraints=[impossible], method=method, max_iterations=50,
                            bounds=[(0.1, 5)] * 2)  # fmt: skip
    assert not found.success
    assert found.status == 3
    assert found.message.startswith("nothing within the limits was found")
    assert found.violation >= 1.0


def test_the_result_is_the_best_within_the_limits():
    """A start within the limits, and one iteration that leaves them for a lower J: the start is the result."""
    curved = Limit(lambda design: (design.values[0] ** 4, [4 * design.values[0] ** 3, 0.0]), 1.0, 1.0)
    far = bowl([1.0, 40.0], [[1.0, 5.0], [5.0, 30.0]])
    found = optimize_design(MASSES, far, constraints=[curved], max_iterations=1)
    within = [record for record in found.history if record.violation < 1e-7]
    assert found.value == min(record.value for record in within)
    assert found.status == 1
