"""What solutions are: proved forwards, refined, differentiated, pickled."""

import os
import pickle
import signal

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from kinegrad.motion import (
    Above,
    Acceleration,
    Boundary,
    Effort,
    Fixed,
    Foot,
    Held,
    Limits,
    MotionProblem,
    Phase,
    Reach,
    Symmetric,
    Time,
)
from kinegrad.motion.problem import problem as module
from kinegrad.motion.problem import verification
from tests.motion.problem import problems
from tests.motion.problem.test_two_link import lifting, time_optimal


def test_torques_applied_forwards_move_the_arm_as_predicted():
    """By our own forward dynamics and, independently, by MuJoCo's."""
    pytest.importorskip("mujoco")
    proof = lifting(2).solve().verify()
    assert proof.departure < 1e-6  # what errors of the polynomial through torques grow to in half a second
    assert proof.in_segments < 1e-10
    assert proof.mujoco < 1e-9  # segment by segment: no step crosses a corner of the torques


def test_verification_names_units_and_counts_segments():
    """A cart departs by metres, an arm by radians; what is done is told after each segment."""
    cart = kg.samples.cart_pendulum()
    ends = [Boundary("start", q=[0, 0], v=0), Boundary("end", q=[1, 0.1], v=0)]
    problem = MotionProblem(cart, Phase(segments=4, duration=1.0), ends, Effort())
    assert problem.model.layout.coordinate_kinds[0] == "prismatic"
    told = []
    proof = problem.solve().verify(mujoco=False, progress=lambda done, of: told.append((done, of)))
    assert told == [(4, 8), (5, 8), (6, 8), (7, 8), (8, 8)]
    assert proof.unit == ("m" if proof.coordinate == cart.coordinate_names[0] else "rad")
    assert f"by {proof.in_segments:.2g} {proof.segment_unit}; all at once by {proof.departure:.2g} {proof.unit} (" in (
        proof.message
    )
    with pytest.raises(kg.InputError, match=r"`progress` is 3; expected True, or a function \(done, of\)"):
        problem.solve().verify(progress=3)


def test_segments_side_by_side_depart_as_those_simulated_alone():
    """The batch of all segments against the adaptive integrator on each, on feet with forces between nodes."""
    found = problems.five_bar().replaced(phases=Phase(segments=6, duration=0.5)).solve()
    torques, rows = verification._torques(found, 0), verification._rows(found, 0)
    edges = verification._edges(found, 0)
    at, alone = found.phases[0](edges), []
    for k in range(6):
        one = verification._simulated(found, 0, torques, rows, at.q[k], at.v[k], edges[k : k + 2])
        alone.append(np.abs(one.q[-1] - at.q[k + 1]))
    together = verification._in_segments(found, 0, torques, rows)
    np.testing.assert_allclose(together, np.max(alone, axis=0), rtol=1e-3, atol=1e-9)


def test_a_lost_motion_ends_its_simulation(monkeypatch):
    """What is 1 rad off by itself says nothing of the prediction any more, and takes long."""
    monkeypatch.setattr(verification, "LOST", 1e-300)
    told = []
    proof = lifting(2).solve().verify(mujoco=False, progress=lambda *done: told.append(done))
    assert "the simulation all at once was ended there, at t = " in proof.message
    assert len(told) == 2
    assert np.isfinite(proof.departure)


def test_ctrl_c_leaves_what_was_simulated():
    """The segments are known by then, and the message says what is not."""
    found = lifting(2).solve()

    def stop(done, of):
        if done > of // 2:
            raise KeyboardInterrupt

    proof = found.verify(mujoco=False, progress=stop)
    assert proof.in_segments < 1e-10
    assert "stopped by Ctrl-C after " in proof.message


def test_a_closed_loop_is_proved_under_its_constraint():
    """[xiang2008] (38): forces at the cut joint are unknowns, and come out as those that forward dynamics finds."""
    proofs = []
    for segments in (6, 12):
        found = problems.five_bar().replaced(phases=Phase(segments=segments, duration=0.5)).solve()
        assert found.success
        proofs.append(found.verify(segments=False))
    assert proofs[1].departure < proofs[0].departure / 3  # between nodes forces are linear: an error of h²
    assert proofs[1].departure < 5e-3
    assert proofs[1].forces < 0.02


def test_refinement_ends_when_limits_hold_between_nodes():
    """Five segments exceed torques between knots by 7 %; halved as often as needed they do not."""
    problem = time_optimal(5, 1)
    coarse = problem.solve(between={"torque": 0.01})
    assert coarse.nonlinear.success
    assert not coarse.success
    assert coarse.status == "between-nodes"
    assert "torque of" in coarse.message
    fine = problem.solve(between={"torque": 0.01}, refine=True)
    assert fine.success
    assert fine.refinements >= 1
    assert fine.problem.program.n > problem.program.n


def test_sensitivities_are_those_of_problems_solved_again():
    """By masses, lengths, loads and limits: central differences of solutions, which agree to 1e-6."""
    names = {"m2": "forearm.mass", "L2": {"elbow.a": 1.0}, "f": "forearm.load.force.y"}

    def problem(m=0.5, L=0.0, f=-10.0, limit=10.0):
        arm = kg.Design(kg.samples.two_link(), {"m": "forearm.mass", "L": {"elbow.a": 1.0}}).at([m, L]).model
        loads = kg.Loads(force={"forearm": [0, f, 0]})
        base = lifting(2)
        phase = Phase(duration=(0.1, 2.0), segments=8, loads=loads)
        objective = [Time(0.99), Effort(1.0, relative=True)]
        return base.replaced(
            model=arm.replace(effort_limits=(limit, 10.0)), phases=phase, objective=objective
        )  # fmt: skip

    found = problem().solve(tolerance=1e-9)
    change = found.sensitivity(names)
    limits = ("limit of shoulder", "limit of elbow", "lower limit of duration", "upper limit of duration")
    assert change.names == ("m2", "L2", "f", *limits)
    h = 1e-4
    cases = {"m2": ("m", 0.5), "L2": ("L", 0.0), "f": ("f", -10.0), "limit of shoulder": ("limit", 10.0)}
    for name, (what, value) in cases.items():
        up, down = (problem(**{what: value + way * h}).solve(found.x, tolerance=1e-9) for way in (1, -1))
        assert up.nonlinear.success
        dJ, dT = change[name]
        np.testing.assert_allclose(dJ, (up.objective - down.objective) / (2 * h), rtol=3e-6, atol=1e-9)
        np.testing.assert_allclose(dT, (up.duration - down.duration) / (2 * h), rtol=3e-6, atol=1e-9)


def test_a_design_is_chosen_with_the_motion():
    """A lighter forearm lifts itself with less: the mass goes to its bound, and the objective below that without."""
    arm = kg.samples.two_link()
    ends = [Boundary("start", q=[0, -1], v=0), Boundary("end", v=0), Reach("forearm", (0.2, 0.5, 0), directions="xy")]
    plain = MotionProblem(arm, Phase(segments=6, duration=(0.2, 2)), ends, [Time(), Effort(0.01)])
    design = kg.Design(arm, {"L2": {"elbow.a": 1.0, "forearm.com.x": -0.5}, "m2": "forearm.mass"})
    both = plain.replaced(design=design, design_bounds={"L2": (-0.1, 0.1), "m2": (0.3, 0.7)})
    alone, together = plain.solve(), both.solve()
    assert together.success
    assert together.iterations < 30
    assert together.objective < alone.objective
    assert abs(together.parameters["m2"] - 0.3) < 1e-4
    assert together.verify(mujoco=False).departure < 1e-4


def standing_up(symmetric):
    """A person of 43 coordinates rises a little, both feet planted."""
    human = kg.samples.human43()
    feet = [Foot(f"{s}_foot", (x, 0.085, -0.87), size=(0.08, 0.27)) for s, x in (("right", 0.09), ("left", -0.09))]
    requirements = [*feet, Boundary("start", v=0, q={"pelvis.tz": -0.15}), Boundary("end", v=0, q={"pelvis.tz": -0.05})]
    if symmetric:
        follow = {}
        for name in human.coordinate_names:
            if name.startswith("left"):
                odd = name.endswith((".y", ".z", "_pelvis"))
                follow[name] = (name.replace("left", "right"), -1 if odd else 1)
        middle = ("lumbar", "pelvis.rz", "pelvis.tx", "neck.y", "neck.z")
        requirements += [Symmetric(follow), Fixed(dict.fromkeys(middle, 0.0))]
    objective = [Effort(1.0, relative=True), Acceleration(1e-4), problems.Posture(1e-2)]
    return MotionProblem(human, Phase(segments=4, duration=0.8), requirements, objective)


@pytest.mark.slow
def test_a_person_with_both_feet_planted():
    """The whole body, its floating base found from the model; symmetric motion is the optimum of the symmetric task."""
    one, two = standing_up(False).solve(), standing_up(True).solve()
    assert one.nonlinear.success
    assert two.nonlinear.success
    assert abs(one.objective / two.objective - 1) < 1e-3
    assert two.problem.program.n < one.problem.program.n
    kept = next(x for x in one.between if x.family == "kept")
    assert kept.within
    weight = one.problem.model.total_mass * 9.81
    normal = [k for k, name in enumerate(one.motion.row_names) if name.endswith(".z")]
    assert abs(one.motion.forces[:, normal].sum(axis=1).mean() / weight - 1) < 0.05


def test_hands_that_hold_one_box_and_clear_the_legs():
    """Relative positions and clearances, of a person in the plane."""
    found = problems.two_phases().solve()
    assert found.nonlinear.success
    assert found.phases[1].model.total_mass == found.phases[0].model.total_mass + 10
    at = found.phases[0](found.phases[0].t[-1:])
    grip = kg.point_motion(at.model, at.q[0], link="grip").position
    np.testing.assert_allclose(grip[[0, 2]], [0.45, 0.3], atol=1e-6)


def test_limits_of_speed_hold_at_all_times():
    """By the convex hull of control points, not only at nodes."""
    problem = time_optimal(8, 2)
    problem = problem.replaced(requirements=[*problem.requirements, Limits(v=4.0, a={"elbow": 60.0})])
    found = problem.solve()
    assert found.success
    fine = found.motion(np.linspace(0, found.duration, 501))
    assert np.abs(fine.v).max() < 4.0 + 1e-6
    assert np.abs(fine.a[:, 1]).max() < 60.0 + 1e-4


def test_a_point_can_be_held_relative_to_another():
    human = kg.samples.human_sagittal()
    foot = Foot("foot", (0.05, 0, 0), size=(0.25, 0.2))
    requirements = [
        foot, Boundary("start", v=0), Boundary("end", v=0), Held("grip", (0.3, 0, 0), other="trunk", directions="x"),
        Above("grip", 0.7),
    ]  # fmt: skip
    found = MotionProblem(
        human, Phase(segments=4, duration=1.0), requirements, [Effort(1e-4), Acceleration(1e-3)]
    ).solve()
    assert found.nonlinear.success
    ends = kg.point_motion(human, found.motion.q, link=["grip", "trunk"]).position
    breakpoints = found.motion.q.shape[0] // 4
    np.testing.assert_allclose((ends[:, 0] - ends[:, 1])[::breakpoints, 0], 0.3, atol=1e-6)


def test_problems_and_solutions_pickle():
    problem = time_optimal(6, 1)
    again = pickle.loads(pickle.dumps(problem))
    assert repr(again) == repr(problem)
    found = problem.solve()
    copy = pickle.loads(pickle.dumps(found))
    assert copy == found
    t = np.linspace(0, found.duration, 7)
    assert np.array_equal(copy.motion(t).q, found.motion(t).q)


def test_a_solution_starts_the_next_solve():
    """Warm, with multipliers: fewer iterations than from a guess."""
    problem = lifting(1)
    found = problem.solve()
    again = problem.solve(found)
    assert again.success
    assert again.iterations <= found.iterations
    from_motion = problem.solve(found.motion)
    assert abs(from_motion.duration - found.duration) < 1e-5


def test_where_there_are_no_numbers_the_solver_takes_a_shorter_step():
    """A duration of 1e-200 s overflows accelerations, and a mass below zero is no body: neither ends a solve."""
    arm = kg.samples.two_link()
    ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
    problem = MotionProblem(arm, Phase(segments=4, duration=(1e-200, 2.0)), ends)
    x = problem.guess(durations=1e-200)
    with pytest.raises(kg.SolveError):
        problem.program.constraints(x)
    assert problem.solve().nonlinear.success


def test_an_interrupt_while_a_motion_is_looked_at_loses_nothing(monkeypatch):
    """Between the nodes, when the solver has ended."""
    look = module.excesses

    def interrupt(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return look(*arguments)

    ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
    problem = MotionProblem(samples.two_link(), Phase(segments=8), ends)
    whole = problem.solve()
    monkeypatch.setattr(module, "excesses", interrupt)
    found = problem.solve()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert (found.status, found.success) == ("interrupted", False)
    assert found.duration == whole.duration
