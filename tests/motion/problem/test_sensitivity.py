"""How an optimum changes with limits of every kind and with what is asked for at its ends: problems solved again."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError
from kinegrad.motion import Acceleration, Boundary, Effort, Foot, Limits, MotionProblem, Phase, Reach, Time
from tests.motion.problem.test_two_link import lifting


def check(problem, found, cases, tolerance, rtol):
    """Central differences of problems solved again: of the objective, and of the duration."""
    change, h = found.sensitivity(boundary=True), 1e-5
    for name, (what, value) in cases.items():
        pair = [problem(**{what: value + way * h}).solve(found.x, tolerance=tolerance) for way in (1, -1)]
        assert all(one.nonlinear.success for one in pair)
        assert change.values[change.names.index(name)] == value
        for mine, (up, down) in zip(
            change[name], [[x.objective for x in pair], [x.duration for x in pair]], strict=True
        ):
            np.testing.assert_allclose(mine, (up - down) / (2 * h), rtol=rtol, atol=1e-8, err_msg=name)
    return change


def arm(q=-2.62, v=4.6, a=28.0, power=16.0, tau=9.5, start=1.32, end=2.8, rate=0.5):
    """The lifting arm within limits of all kinds, all of them active; it arrives at some speed."""
    ends = [Boundary("start", q=[start, -2.37], v=0), Boundary("end", q=[end, -2.37], v=[rate, 0.2])]
    limits = Limits(
        q={"elbow": (q, -2.2)}, v={"shoulder": v}, a={"elbow": a}, power={"shoulder": (-1e3, power)},
        tau={"elbow": (-9.0, tau)},
    )  # fmt: skip
    phase = Phase(duration=(0.1, 2.0), segments=8, loads=kg.Loads(force={"forearm": [0, -10, 0]}))
    return MotionProblem(kg.samples.two_link(), phase, [*ends, limits], [Time(0.99), Effort(0.3, relative=True)])


def test_limits_and_ends():
    """q, v, a, power, a torque whose two limits differ; coordinates and speeds at ends."""
    found = arm().solve(tolerance=1e-10)
    cases = {
        "lower limit of q of elbow": ("q", -2.62), "limit of v of shoulder": ("v", 4.6),
        "limit of a of elbow": ("a", 28.0), "upper limit of power of shoulder": ("power", 16.0),
        "upper limit of elbow": ("tau", 9.5), "q of shoulder at the start": ("start", 1.32),
        "q of shoulder at the end": ("end", 2.8), "v of shoulder at the end": ("rate", 0.5),
    }  # fmt: skip
    change = check(arm, found, cases, 1e-10, 1e-5)
    assert all(abs(change[name][0]) > 1e-4 for name in cases)  # none of them idle
    for name in ("upper limit of q of elbow", "lower limit of elbow", "lower limit of power of shoulder"):
        np.testing.assert_allclose(change[name], 0.0, atol=1e-8)
    assert "v of elbow at the start" not in change.names  # rest is a tie of control points, not a number


def test_limits_of_durations():
    """The least duration pushes; of the most nothing is felt."""
    problem = lifting(1).replaced(phases=Phase(duration=(0.7, 2.0), segments=6, nodes=1))
    found = problem.solve(tolerance=1e-10)
    change = found.sensitivity()
    assert change["lower limit of duration"][1] == 1.0
    longer = problem.replaced(phases=Phase(duration=(0.7 + 1e-5, 2.0), segments=6, nodes=1)).solve(
        found.x, tolerance=1e-10
    )
    slope = (longer.objective - found.objective) / 1e-5
    np.testing.assert_allclose(change["lower limit of duration"][0], slope, rtol=1e-4)
    np.testing.assert_allclose(change["upper limit of duration"], 0.0, atol=1e-8)


def person(mu=0.05, x=0.45, z=0.9, v=5.0):
    """Rises on slippery ground; the second phase has a limit of its own."""
    requirements = [
        Foot("foot", (0.05, 0, 0), size=(0.25, 0.2), faces=6, friction=mu),
        Boundary("start", v=0), Boundary("end", v=0),
        Reach("grip", (x, 0, z), "end", directions="xz"), Reach("grip", (0.35, 0, 0.45), "start", directions="xz"),
        Limits(v=8.0, phase="one"), Limits(v={"shoulder": v}, phase="two"),
    ]  # fmt: skip
    phases = [Phase(name, duration=(0.05, 2), segments=3) for name in ("one", "two")]
    objective = [Time(1.0), Effort(0.02, relative=True), Acceleration(1e-5)]
    return MotionProblem(kg.samples.human_sagittal(), phases, requirements, objective)


@pytest.mark.slow
def test_friction_and_places():
    found = person().solve(tolerance=1e-9)
    cases = {
        "friction of foot": ("mu", 0.05), "reach grip #1 x": ("x", 0.45), "reach grip #1 z": ("z", 0.9),
        "limit of v of shoulder in phase 'two'": ("v", 5.0),
    }  # fmt: skip
    change = check(person, found, cases, 1e-9, 1e-4)
    assert change["friction of foot"][0] < -0.01
    assert {"limit of v of hip", "limit of v of shoulder in phase 'one'"} <= set(change.names)


def test_what_is_asked_for():
    found = arm().solve()
    with pytest.raises(InputError, match="`boundary` is 1; expected True or False"):
        found.sensitivity(boundary=1)
    alone = found.sensitivity(limits=False, boundary=True).names
    assert alone == (
        "q of shoulder at the start", "q of elbow at the start", "q of shoulder at the end", "q of elbow at the end",
        "v of shoulder at the end", "v of elbow at the end",
    )  # fmt: skip
