"""Limits of joints that follow a coordinate: range, speed, and what passes through them."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion import Acceleration, Boundary, Effort, Fixed, Foot, Limits, MotionProblem, Phase, Time
from kinegrad.motion.problem.followers import split_joints


def gripper(couple, leader=None, follower=None, multiplier=10.0):
    """Two sliders of 1 kg, of which the second goes ten times as far."""
    builder = kg.ModelBuilder("gripper", gravity=(0, 0, 0))
    body = kg.Inertia.point(1.0, [0, 0, 0])
    builder.add("a", None, kg.prismatic("x"), link="A", inertia=body, **leader or {})
    builder.add("b", None, kg.prismatic("y"), link="B", inertia=body, **follower or {})
    if couple:
        builder.couple("c", {"a": 1.0, "b": multiplier})
    else:
        builder.mimic("b", "a", multiplier=multiplier)
    return builder.build()


def fastest(model, **limits):
    ends = [Boundary("start", q=0, v=0), Boundary("end", q=1.0, v=0), Limits(tau=50.0, **limits)]
    return MotionProblem(model, Phase(duration=(0.1, 30.0), segments=16), ends, [Time()])


@pytest.mark.parametrize("couple", [False, True])
def test_speeds_of_joints_that_follow(couple):
    """One meter at 0.1 m/s, by the limit of whichever joint."""
    for limits in ({"follower": {"velocity_limits": 1.0}}, {"leader": {"velocity_limits": 0.1}}):
        found = fastest(gripper(couple, **limits)).solve()
        assert found.success
        assert np.abs(found.motion(np.linspace(0, found.duration, 201)).v).max() < 0.1 + 1e-6
        assert found.duration > 10


@pytest.mark.parametrize("couple", [False, True])
def test_forces_that_pass_through_joints_that_follow(couple):
    """1 N for 1 kg over 10 m: 2 √10 s and a little more; of a couple without a joint of its name both are limited."""
    problem = fastest(gripper(couple, follower={"effort_limits": 1.0}))
    assert "holds for what passes through that joint" in problem.describe()
    found = problem.solve()
    assert found.success
    assert 2 * np.sqrt(10) < found.duration < 2 * np.sqrt(10) * 1.01
    change = found.sensitivity()
    assert change["limit of b"][1] == pytest.approx(-found.duration / 2, rel=1e-4)  # T is as 1/√F
    if couple:
        found = fastest(gripper(couple, leader={"effort_limits": 0.05})).solve()
        assert 2 * np.sqrt(1 / 0.05) < found.duration < 2 * np.sqrt(1 / 0.05) * 1.01
    assert np.abs(found.motion.a).max() < (0.05 if couple else 0.1) * 1.02


def test_a_strength_of_zero_is_no_motor():
    """As URDF has it of joints that mimic: nothing of their own moves them."""
    assert not fastest(gripper(False, follower={"effort_limits": 0.0})).notes


def test_a_joint_that_may_not_move_is_refused():
    """Files have speeds of zero where nobody thought of a limit; the coordinate could not move."""
    for model in (gripper(False, follower={"velocity_limits": 0.0}), knee(velocity_limits=0.0)):
        with pytest.raises(kg.InputError, match="is 0, and it follows coordinate"):
            MotionProblem(model)


def test_ranges_of_joints_that_follow_are_those_of_their_coordinate():
    """Linear functions narrow it for all times, whichever way they go; a joint that cannot move is refused outside."""

    def gear(multiplier, offset):
        builder = kg.ModelBuilder("gear")
        rod = kg.Inertia.rod(1.0, (0, 0, 0), (0.4, 0, 0))
        builder.add("a", None, kg.revolute("y"), link="A", inertia=rod, position_limits=(-0.5, 0.5))
        shift = [0.4, 0, 0]
        builder.add("b", "A", kg.revolute("y"), link="B", placement=shift, inertia=rod, position_limits=(-0.8, 0.2))
        builder.mimic("b", "a", multiplier=multiplier, offset=offset)
        return MotionProblem(builder.build())

    problem = gear(-2.0, 0.1)
    assert problem.parts.limits[0][0][0] == pytest.approx((-0.05, 0.45))
    assert not problem.notes
    with pytest.raises(kg.InputError, match=r"joint 'b' stays at 0\.3 while coordinate 'a' moves, outside its limits"):
        gear(0.0, 0.3)


def knee(**numbers):
    """A shank that turns and slides as a knee bends; limits of the slide."""
    builder = kg.ModelBuilder("knee")
    body = kg.Inertia(3.0, (0, 0, -0.2), 0.05 * np.eye(3))
    builder.add("hip", None, kg.revolute("y"), link="thigh", inertia=body)
    builder.add("slide", "thigh", kg.prismatic("x"), link="roll", placement=[0, 0, -0.4], **numbers)
    builder.add("knee", "roll", kg.revolute("y"), link="shank", inertia=body)
    curve = kg.PolynomialFunction([0.0, 0.03, -0.012])
    builder.couple("knee", {"knee": 1.0, "slide": curve})
    return builder.build()


def bend(model, **phase):
    ends = [Boundary("start", q=[0, 0], v=0), Boundary("end", q=[0.5, 2.0], v=0), Limits(q={"knee": (-0.2, 2.4)})]
    return MotionProblem(model, Phase(**{"duration": (0.2, 2.0), "segments": 8} | phase), ends, [Time(), Effort(1e-4)])


def test_functions_that_are_not_linear():
    """Speeds and ranges are rows at nodes, looked at between them; where the range excludes it, there is none."""
    model = knee(velocity_limits=0.08, position_limits=(-0.005, 0.021))
    problem = bend(model)
    assert {block.label for _, _, block in problem.program.blocks()} >= {"speed", "kept"}
    check = problem.check_derivatives()
    assert max(check.gradient, check.jacobian, check.hessian) < 1e-6
    free, found = bend(knee()).solve(), problem.solve(refine=True)
    assert found.success, found.message
    slide = model.coordinates[0].functions[0]

    def fastest_slide(found):
        fine = found.motion(np.linspace(0, found.duration, 401))
        return np.abs(slide.derivatives(fine.q[:, 1], 1)[1] * fine.v[:, 1]).max()

    assert fastest_slide(free) > 0.12
    assert fastest_slide(found) < 0.08 * 1.02
    assert not [1 for _, _, block in bend(knee(position_limits=(-1, 1))).program.blocks() if block.label == "kept"]


def test_what_joints_transmit_is_what_they_would_supply_alone():
    """By inverse dynamics of the joints themselves, with a foot's forces, springs, dampers and rotors; and slopes."""
    builder = kg.ModelBuilder("leg")
    body = kg.Inertia(3.0, (0.02, 0, -0.2), 0.05 * np.eye(3))
    builder.add("base", None, kg.planar("y"), link="pelvis", inertia=body)
    own = {"stiffness": 30.0, "rest": 0.2, "damping": 2.0, "armature": 0.3}
    builder.add("hip", "pelvis", kg.revolute("y"), link="thigh", inertia=body)
    below = {"placement": [0, 0, -0.4], "inertia": body}
    builder.add("knee", "thigh", kg.revolute("y"), link="shank", effort_limits=40.0, **below, **own)
    builder.add("ankle", "shank", kg.revolute("y"), link="foot", effort_limits=90.0, **below)
    builder.mimic("knee", "hip", multiplier=-2.0, offset=0.1)
    builder.mimic("ankle", "hip", multiplier=1.0)
    model = builder.build()
    requirements = [Foot("foot", (0, 0, -0.85), size=(0.2, 0.1)), Boundary("start", v=0), Boundary("end", v=0)]
    phase = Phase(duration=(0.5, 1.0), segments=3, attached={"pelvis": 5.0}, loads=kg.Loads(force={"thigh": [3, 0, 8]}))
    problem = MotionProblem(model, phase, requirements, [Effort(), Acceleration(1e-3)])
    check = problem.check_derivatives()
    assert max(check.gradient, check.jacobian, check.hessian) < 1e-6
    x = problem.guess(noise=0.2, seed=3)
    (own_grid,) = [one.grid for one in problem.program.grids if one.grid.name == "followers"]
    (block,) = own_grid.rows
    dynamics = next(one.grid for one in problem.program.grids if one.grid.name == "dynamics")
    y = dynamics.y(x)
    q, v, a = (y[:, dynamics.layout.state(d)] for d in range(3))
    multiplier, offset = np.array([1, 1, 1, 1, -2.0, 1.0]), np.array([0, 0, 0, 0, 0.1, 0])
    joint = [z[:, [0, 1, 2, 3, 3, 3]] * multiplier for z in (q, v, a)]
    part = problem.parts.parts[0]
    alone = part.model.primitive
    tau = kg.inverse_dynamics(alone, joint[0] + offset, *joint[1:], loads=phase.loads)
    forced = kg.ConstraintSet(alone, part.forced.constraints)
    f = np.zeros((len(q), forced.m))
    f[:, list(part.forced_rows)] = y[:, dynamics.layout.force]
    tau = tau - forced.force(joint[0] + offset, f)
    shift = np.array([30.0 * (0.1 - 0.2), 0.0])
    np.testing.assert_allclose(block.function.value(own_grid.y(x)) + shift, tau[:, 4:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(block.upper[0] + shift, [40.0, 90.0])
    np.testing.assert_allclose(block.lower[0] + shift, [-40.0, -90.0])


def test_a_joint_in_two_parts_moves_as_before():
    """With frames, elements and couplings; names that are taken are not taken twice."""
    model = knee(effort_limits=5.0)
    model = model.replace(joint_names=("hip", "slide", "knee"), frames={"slide (transmitted)": kg.Frame("shank")})
    split, (name,) = split_joints(model, [1])
    assert name == "slide (transmitted)'"
    assert split.coordinate_names == ("hip", name, "knee")
    q, v, a = np.random.default_rng(1).normal(size=(3, 5, 2))
    wide = [np.insert(z, 1, 0.0, axis=1) for z in (q, v, a)]
    tau = kg.inverse_dynamics(split, *wide)
    np.testing.assert_allclose(tau[:, [0, 2]], kg.inverse_dynamics(model, q, v, a), rtol=1e-12, atol=1e-12)


def test_where_it_cannot_be_known_what_a_joint_transmits_a_note_says_so():
    springy = knee(effort_limits=5.0, damping=1.0)
    assert "is not kept, since the joint has damping of its own" in bend(springy).describe()
    model = gripper(False, follower={"effort_limits": 1.0})
    design = kg.Design(model, {"m": "B.mass"})
    problem = fastest(model).replaced(design=design, design_bounds={"m": (0.5, 2.0)})
    assert "is not kept, since the model has design parameters" in problem.describe()
    fixed = [Fixed({"a": 0.0})]
    with pytest.raises(kg.InputError, match="all coordinates are Fixed"):
        MotionProblem(model, Phase(), fixed)


@pytest.mark.parametrize(
    ("function", "end"), [(1.0, 5.0), (2.0, 2.5), (-2.0, -2.5), (kg.PolynomialFunction([0, 1.0, 0.1]), 3.66)], ids=str
)
def test_the_limit_of_the_joint_with_the_name_of_its_coordinate(function, end):
    """1 N moves 1 kg by 5 m in 2 √5 s, whatever the coordinate counts."""
    builder = kg.ModelBuilder("slide", gravity=(0, 0, 0))
    builder.add("a", None, kg.prismatic("x"), inertia=kg.Inertia.point(1.0, [0, 0, 0]), effort_limits=1.0)
    builder.couple("a", {"a": function})
    ends = [Boundary("start", q=0, v=0), Boundary("end", q=end, v=0)]
    found = MotionProblem(builder.build(), Phase(duration=(0.1, 30.0), segments=16), ends, [Time()]).solve()
    assert found.success
    assert found.duration == pytest.approx(2 * 5**0.5, rel=5e-3)
