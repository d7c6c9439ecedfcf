"""The problems by name: what they ask for, and that the small ones reach their published figures."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, samples
from kinegrad.cli.predict import NAMES
from kinegrad.predictions import PREDICTIONS, five_bar_reach, human43_lift, lifting, prediction, time_optimal
from kinegrad.predictions.human import GRIP, mirrored, step_postures
from kinegrad.predictions.sagittal import FLOOR, SHELF, sagittal_lift
from kinegrad.predictions.two_link import chain, chain_model


def test_the_command_line_knows_all_of_them():
    """Its names are written out, so that ``kinegrad --help`` does not import solvers."""
    assert set(NAMES) == set(PREDICTIONS)
    with pytest.raises(InputError, match="expected one of two-link-time-optimal"):
        prediction("walk")


# --- the arm of xiang2008 -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "segments", "nodes", "expected"),
    [
        (time_optimal, 20, 1, 0.39266), (time_optimal, 20, 2, 0.39315), (time_optimal, 19, 1, 0.39218),
        (time_optimal, 19, 2, 0.39268), (lifting, 20, 1, 0.51880), (lifting, 20, 2, 0.5191),
    ],
)  # fmt: skip
def test_final_times_are_those_of_other_solvers(make, segments, nodes, expected):
    """Numbers of a trial with IPOPT, Uno and SciPy, to 1e-4; published 0.3934 and 0.520 s."""
    problem = make(segments=segments, nodes=nodes)
    solution = problem.solve(problem.guess(durations=[0.5]))
    assert solution.success
    assert solution.duration == pytest.approx(expected, abs=1e-4)
    assert problem.phases[0].basis.control_points == segments + 3


def test_the_chain_of_two_links_is_the_arm():
    ours, theirs = chain_model(2), samples.two_link(gravity=(0, 0, 0))
    q, v, a = np.random.default_rng(0).normal(size=(3, 5, 2))
    np.testing.assert_allclose(kg.inverse_dynamics(ours, q, v, a), kg.inverse_dynamics(theirs, q, v, a), atol=1e-13)
    problem = chain(2, weight=0.0)
    assert problem.solve(problem.guess(durations=[0.5])).duration == pytest.approx(0.39315, abs=1e-4)
    for links in (1, 2.5, "3", True):
        with pytest.raises(InputError, match="links"):
            chain(links)


# --- people and loops ---------------------------------------------------------------------------------------


def test_mirror_images_are_mirrored():
    """A random posture and its mirror image: every link of one side is where that of the other side was."""
    human = samples.human43()
    rng, pairs = np.random.default_rng(3), mirrored(human)
    q = rng.normal(size=43)
    other = np.array([pairs[name][1] * q[human.joint_index(pairs[name][0])] for name in human.joint_names])
    for link in ("right_foot", "right_hand", "head"):
        twin = link.replace("right", "left")
        here = kg.point_motion(human, q, link=link, point=[0, 0, 0]).position
        there = kg.point_motion(human, other, link=twin, point=[0, 0, 0]).position
        np.testing.assert_allclose(there, here * [-1, 1, 1], atol=1e-12)


def test_postures_of_a_step_are_mirror_images():
    ends = step_postures(0.5)
    pairs = mirrored(samples.human43())
    for name, angle in ends["start"].items():
        if not name.startswith("pelvis"):
            assert ends["end"][pairs[name][0]] == angle
    assert ends["end"]["pelvis.ty"] - ends["start"]["pelvis.ty"] == 0.5


@pytest.mark.slow
def test_five_bar_closes_its_loop_and_verifies():
    problem = five_bar_reach(segments=24)
    solution = problem.solve()
    assert solution.success, solution.message
    model, loop = samples.five_bar()
    q = solution.motion(np.linspace(0, solution.duration, 50)).q
    assert np.abs(loop.error(q)).max() < 1e-5
    tau = solution.motion.tau
    assert np.abs(tau[:, [1, 3]]).max() < 1e-4  # the elbows have no motors
    assert solution.verify(mujoco=False).in_segments < 1e-4
    assert model.actuator_names == ("left", "right")


@pytest.mark.slow
def test_sagittal_lift_takes_the_box_and_brings_it():
    problem = sagittal_lift(segments=8)
    solution = problem.solve()
    assert solution.nonlinear.success, solution.message
    human = problem.model
    taken, end = solution.durations[0], solution.duration
    for time, place in ((taken, FLOOR), (end, SHELF)):
        q = solution.motion([time]).q[0]
        np.testing.assert_allclose(kg.point_motion(human, q, link="grip", point=[0, 0, 0]).position, place, atol=1e-5)
    weight = human.total_mass * 9.81
    before, after = solution.phases
    for motion, total in ((before, weight), (after, weight + 98.1)):  # at rest where the box is taken
        k = motion.row_names.index(next(name for name in motion.row_names if name.endswith(".z")))
        mean = np.trapezoid(motion.forces[:, k], motion.t) / (motion.t[-1] - motion.t[0])
        assert mean == pytest.approx(total, rel=0.02)  # momentum: at rest at both ends of both phases


@pytest.mark.slow
def test_human_lifts_the_box_with_both_feet_on_the_ground():
    problem = human43_lift(segments=12)
    solution = problem.solve()
    assert solution.nonlinear.success, solution.message
    t = np.linspace(0, solution.duration, 60)
    q = solution.motion(t).q
    human = problem.model
    hands = [kg.point_motion(human, q, link=f"{side}_hand", point=GRIP).position for side in ("right", "left")]
    np.testing.assert_allclose(hands[0] * [-1, 1, 1], hands[1], atol=1e-9)  # symmetric
    assert hands[0][-1, 2] - hands[0][0, 2] == pytest.approx(1.0, abs=1e-5)
    foot = kg.point_motion(human, q, link="right_foot", point=[0, 0, 0]).position
    assert np.abs(foot - foot[0]).max() < 1e-3
    limited = np.isfinite(human.effort_limits)
    assert (np.abs(solution.motion.tau[:, limited]) <= 1.001 * human.effort_limits[limited]).all()
    lower, upper = human.position_limits.T
    assert (q >= lower - 1e-9).all()
    assert (q <= upper + 1e-9).all()


@pytest.mark.slow
def test_human_takes_a_step_and_could_take_the_next():
    """The planted foot stays, the other one swings ahead, and the end is the mirror image of the start."""
    chosen = prediction("human43-step")
    problem = chosen.make(segments=10)
    solution = problem.solve(problem.guess(**chosen.guess))
    assert solution.nonlinear.success, solution.message
    human, pairs = problem.model, mirrored(problem.model)
    ends = solution.motion([0.0, solution.duration])
    for k, name in enumerate(human.joint_names):
        other, sign = pairs[name]
        ahead = 0.55 if name == "pelvis.ty" else 0.0
        i = human.joint_index(other)
        assert ends.q[1, k] == pytest.approx(sign * ends.q[0, i] + ahead, abs=1e-6)
        assert ends.v[1, k] == pytest.approx(sign * ends.v[0, i], abs=1e-5)
    q = solution.motion(np.linspace(0, solution.duration, 60)).q
    right, left = (
        kg.point_motion(human, q, link=f"{side}_foot", point=[0, 0, 0]).position for side in ("right", "left")
    )
    assert np.abs(right - right[0]).max() < 2e-3
    assert left[-1, 1] - left[0, 1] == pytest.approx(1.1, abs=1e-3)  # two steps ahead
    assert left[30, 2] > left[0, 2] + 0.029  # over the ground


@pytest.mark.slow
def test_the_step_is_one():
    """Periodic, the swinging foot clears the ground and lands without speed, forces within cones; an optimum."""
    step = prediction("human43-step")
    problem = step.make()
    solution = problem.solve(problem.guess(**step.guess), **step.options)
    assert solution.success, solution.message
    assert solution.nonlinear.curvature > 0
    motion = solution.motion
    heel, toes = ((0.0, 0.0, 0.0), (0.0, 0.16, 0.0))
    for point in (heel, toes):
        swing = kg.point_motion(motion.model, motion.q, motion.v, link="left_foot", point=point)
        stance = kg.point_motion(motion.model, motion.q, motion.v, link="right_foot", point=point)
        # speeds go on from step to step, so the foot that lands stands as the other one did: no impact
        assert np.linalg.norm(swing.velocity[-1]) < 0.01
        assert np.abs(stance.position - stance.position[0]).max() < 1e-3
        middle = (motion.t > 0.25 * motion.t[-1]) & (motion.t < 0.75 * motion.t[-1])
        assert swing.position[middle, 2].min() > stance.position[0, 2] + 0.025
        assert swing.position[-1, 1] - stance.position[0, 1] == pytest.approx(0.55, abs=1e-3)
