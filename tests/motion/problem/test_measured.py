"""Plans that begin at measured states, outside limits too."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion import Above, Acceleration, Boundary, Effort, Fixed, Foot, MotionProblem, Phase, Symmetric

SETTLE = 0.5
GOAL = np.array([1.0, 0.0])


def arm():
    """Fast enough for its limits of speed to hold most of the time, with an elbow that waits at its stop."""
    return kg.samples.two_link(gravity=(0, 0, 0)).replace(
        velocity_limits=(1.2, 1.2), position_limits=((-2.0, 2.0), (0.0, 2.0))
    )


def plan(q, v, guess=None, T=1.0):
    ends = [Boundary("start", q=q, v=v, measured=True, settle=SETTLE), Boundary("end", q=GOAL, v=0)]
    return MotionProblem(arm(), Phase(duration=T, segments=12), ends, [Effort(), Acceleration(1e-3)]).solve(guess)


def excesses(found, s):
    """By how much q and v are outside their limits at parts of a plan, (m, 2, 2): lower, upper or the larger of ±."""
    model, at = arm(), found.motion(s * found.duration)
    low, high = model.position_limits.T
    q = np.maximum(low - at.q, at.q - high)
    v = np.abs(at.v) - model.velocity_limits
    return np.maximum(np.stack([q, v], axis=1), 0.0)


def test_a_loop_of_plans_goes_on_from_noisy_states():
    """Each plan starts at what was measured; its excess over limits falls linearly to nothing at part `settle`."""
    rng, s = np.random.default_rng(26), np.linspace(0, 1, 241)
    q, v, found, outside = np.zeros(2), np.zeros(2), None, 0
    for k in range(12):
        found = plan(q, v, found, T=1.1 - 0.05 * k)
        assert found.success, found.message
        np.testing.assert_allclose(found.motion.q[0], q, atol=1e-12)
        np.testing.assert_allclose(found.motion.v[0], v, atol=1e-6)
        over = excesses(found, s)
        outside += int((over[0] > 1e-4).sum())
        ahead = np.abs(v) * found.duration / 36  # the way to the second control point, T/(3 segments)
        allowed = np.stack([over[0, 0] + ahead, over[0, 1]])
        ramp = np.clip(1 - s / SETTLE, 0, 1)
        assert (over[:, 1] <= allowed[1] * ramp[:, None] + 1e-6).all()
        beyond = s > 2 / 12  # control points that the measured state determines reach so far
        assert (over[beyond, 0] <= allowed[0] * ramp[beyond, None] + 1e-6).all()
        assert (over[:, 0] <= allowed[0] + 1e-6).all()
        at = found.motion([0.05])
        q, v = at.q[0] + 0.003 * rng.standard_normal(2), at.v[0] + 0.02 * rng.standard_normal(2)
    assert outside >= 6


@pytest.mark.parametrize(("q", "v"), [([0.0, -0.004], [0.0, 0.0]), ([0.0, 0.3], [1.2036, 0.0]), ([0, 0], [0, -0.05])])
def test_states_slightly_outside_are_no_errors(q, v):
    """Beyond a stop, 0.3 % too fast, at a stop and on the way out: InputErrors, of a state that is a fact."""
    asked = [Boundary("start", q=q, v=v), Boundary("end", q=GOAL, v=0)]
    with pytest.raises(kg.InputError, match="measured=True of that Boundary" if v[1] == 0 else "which it would leave"):
        MotionProblem(arm(), Phase(duration=1.3, segments=12), asked, [Effort()])
    found = plan(q, v, T=1.3)
    assert found.success, found.message


def test_plans_within_limits_are_the_same():
    """Soft starts change nothing where nothing is outside."""
    ends = [Boundary("start", q=[0, 0.5], v=[0.3, 0.1]), Boundary("end", q=GOAL, v=0)]
    hard = MotionProblem(arm(), Phase(duration=1.3, segments=12), ends, [Effort(), Acceleration(1e-3)]).solve()
    soft = plan([0, 0.5], [0.3, 0.1], T=1.3)
    assert soft.objective == pytest.approx(hard.objective, rel=1e-6)


def test_unknowns_are_the_same_whatever_was_measured():
    """A speed that happens to be zero ties no control points, so that multipliers carry over."""
    sizes = {(p.n, p.m) for p in (plan([0, 0.5], v).problem.program for v in ([0.0, 0.0], [0.3, 0.0], [1.3, 0.1]))}
    assert len(sizes) == 1


def test_clearances_and_feet_begin_as_measured():
    """A hand 2 mm below its height, a foot 1 mm off: the posture is a fact, and the motion comes back."""
    person = kg.samples.human_sagittal()
    foot = Foot("foot", (0.05, 0, 0), size=(0.25, 0.2))
    grip = kg.point_motion(person, np.zeros(8), link="grip").position
    q = np.zeros(8)
    q[person.coordinate_index("trunk.tz")] = 0.001
    requirements = [foot, Boundary("start", q=q, v=0, measured=True), Above("grip", grip[2] + 0.003)]
    problem = MotionProblem(person, Phase(duration=0.6, segments=8), requirements, [Effort(relative=True)])
    found = problem.solve(between={"objective": 0.05})
    assert found.success, found.message
    height = kg.point_motion(person, found.motion.q, link="grip").position[:, 2]
    assert height[0] == pytest.approx(grip[2] + 0.001, abs=1e-9)
    assert (height[found.motion.t > 0.25 * 0.6] > grip[2] + 0.003 - 1e-6).all()


def test_coordinates_that_are_fixed_or_follow_keep_their_own_values():
    model = kg.samples.multi_pendulum(3)
    names = model.coordinate_names
    still = [Fixed({names[2]: 0.0}), Symmetric({names[1]: names[0]})]
    start = Boundary("start", q=[0.1, 0.102, 0.003], v=0, measured=True)
    found = MotionProblem(model, Phase(duration=1.0, segments=4), [*still, start], [Effort()]).solve()
    np.testing.assert_allclose(found.motion.q[0], [0.1, 0.1, 0.0], atol=1e-12)


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(kg.InputError, match="`measured` of Boundary\\('end'\\) is True"):
        Boundary("end", q=0.0, measured=True)
    with pytest.raises(kg.InputError, match="above 0 and up to 1"):
        Boundary("start", q=0.0, measured=True, settle=1.5)
    phases = [Phase("a", segments=4), Phase("b", segments=4)]
    with pytest.raises(kg.InputError, match="expected the state where the motion starts"):
        MotionProblem(arm(), phases, [Boundary("start", q=0.1, phase="b", measured=True)])
    found = plan([0.0, -0.004], [0.0, 0.0], T=1.3)
    with pytest.raises(kg.InputError, match="q of elbow was measured outside its limits"):
        found.sensitivity()
    assert found.sensitivity(["forearm.mass"], limits=False).names == ("forearm.mass",)
