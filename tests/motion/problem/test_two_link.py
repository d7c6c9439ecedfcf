"""The two problems of [xiang2008], section 6, with their figures: what every good solver finds with these splines."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion import Boundary, Effort, MotionProblem, Phase, Time


def time_optimal(segments, nodes):
    """[xiang2008] (66)."""
    ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
    phase = Phase(duration=(0.1, 2.0), segments=segments, nodes=nodes)
    return MotionProblem(kg.samples.two_link(gravity=(0, 0, 0)), phase, ends, Time())


def lifting(nodes):
    """[xiang2008] (68) with u = 0.01."""
    ends = [Boundary("start", q=[1.32, -2.37], v=0), Boundary("end", q=[2.80, -2.37], v=0)]
    loads = kg.Loads(force={"forearm": [0, -10, 0]})
    phase = Phase(duration=(0.1, 2.0), segments=20, nodes=nodes, loads=loads)
    return MotionProblem(kg.samples.two_link(), phase, ends, [Time(0.99), Effort(0.01)])


@pytest.mark.parametrize(
    ("segments", "nodes", "T"), [(20, 1, 0.39266), (20, 2, 0.39315), (19, 1, 0.39218), (19, 2, 0.39268)]
)
def test_time_optimal(segments, nodes, T):
    """The published time is 0.3934 s; with limits at knots alone, fewer of them are tighter to the true optimum."""
    found = time_optimal(segments, nodes).solve()
    assert found.success
    assert abs(found.duration - T) < 1e-4
    assert found.iterations < 40
    assert np.abs(found.motion.tau).max() < 10 * (1 + 1e-5)


@pytest.mark.parametrize(("nodes", "T"), [(1, 0.51880), (2, 0.5191)])
def test_lifting(nodes, T):
    """The published time is 0.520 s."""
    found = lifting(nodes).solve()
    assert found.success
    assert abs(found.duration - T) < 1e-4
    assert found.iterations < 40


def test_several_starts_find_one_optimum():
    """As the paper reports: different starting points converge to the same solution."""
    problem = time_optimal(20, 1)
    times = [
        problem.solve(problem.guess(durations=T, noise=0.2, seed=k)).duration for k, T in enumerate((0.3, 0.8, 1.5))
    ]
    assert np.ptp(times) < 1e-5


@pytest.mark.parametrize("problem", [time_optimal(6, 2), lifting(1)])
def test_derivatives(problem):
    """Against differences, whose error is about 1e-10 here."""
    check = problem.check_derivatives()
    assert max(check.gradient, check.jacobian, check.hessian) < 1e-8


def test_the_motion_is_one():
    """What is found can be evaluated, and its torques are those of inverse dynamics."""
    found = lifting(2).solve()
    t = np.linspace(0, found.duration, 37)
    at = found.motion(t)
    loads = kg.Loads(force={"forearm": [0, -10, 0]})
    tau = kg.inverse_dynamics(at.model, at.q, at.v, at.a, loads=loads)
    np.testing.assert_allclose(at.tau, tau, atol=1e-10)
    np.testing.assert_allclose(at.q[[0, -1]], [[1.32, -2.37], [2.80, -2.37]], atol=1e-12)
    np.testing.assert_allclose(at.v[[0, -1]], 0, atol=1e-10)
