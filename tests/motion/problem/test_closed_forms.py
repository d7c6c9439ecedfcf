"""Problems whose answers are known in closed form, or from another method."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.motion import (
    Above,
    Acceleration,
    Apart,
    Boundary,
    Effort,
    Fixed,
    Follow,
    Foot,
    Guided,
    Jerk,
    Limits,
    MotionProblem,
    Periodic,
    Phase,
    Reach,
    Time,
)
from kinegrad.motion.problem.between import OwnSizes


def cart(mass=1.0, axis="x", gravity=(0, 0, 0), **joint):
    builder = kg.ModelBuilder("cart", gravity=gravity)
    builder.add(
        "slide", None, kg.prismatic(axis), link="cart", inertia=kg.Inertia(mass, (0, 0, 0), np.zeros((3, 3))), **joint
    )
    return builder.build()


def ends(q=1.0, **more):
    return [Boundary("start", q=0.0, v=0.0, **more), Boundary("end", q=q, v=0.0, **more)]


@pytest.mark.parametrize("segments", [20, [0, 0.05, 0.2, 0.5, 0.65, 0.9, 1]])
@pytest.mark.parametrize("degree", [3, 4, 5])
def test_least_effort_of_a_mass(segments, degree):
    """∫ F² dt = 12 m² L² / T³, of a force that falls linearly: a cubic, so that every spline has it."""
    found = MotionProblem(cart(2.0), Phase(duration=1.5, segments=segments, degree=degree), ends(), Effort()).solve()
    assert found.success
    assert found.objective == pytest.approx(12 * 4 / 1.5**3, rel=1e-9)


@pytest.mark.parametrize("nodes", range(1, 13))
def test_more_nodes_do_not_make_integrals_worse(nodes):
    phase = Phase(duration=1.5, segments=6, nodes=nodes)
    assert MotionProblem(cart(2.0), phase, ends(), Effort()).solve().objective == pytest.approx(
        12 * 4 / 1.5**3, rel=1e-10
    )


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_the_jerk_of_cubic_splines_is_integrated_in_steps(nodes):
    """It jumps at breakpoints; a rule that took one side of them would prefer motions that are not symmetric."""
    phase = Phase(duration=1.0, segments=[0, 0.1, 0.3, 0.5, 0.7, 0.9, 1], nodes=nodes)
    found = MotionProblem(cart(), phase, ends(a=0.0), Jerk()).solve()
    middle = (phase.basis.breakpoints[1:] + phase.basis.breakpoints[:-1]) / 2
    jerk = (found.motion(middle + 0.01).a - found.motion(middle - 0.01).a)[:, 0] / 0.02
    assert found.objective == pytest.approx(np.diff(phase.basis.breakpoints) @ jerk**2, rel=1e-6)
    np.testing.assert_allclose(found.motion(1 - middle[::-1]).q[::-1], 1 - found.motion(middle).q, atol=1e-8)


@pytest.mark.parametrize(("degree", "within"), [(3, 0.06), (4, 2e-4), (5, 1e-8)])
def test_least_jerk(degree, within):
    """720 L² / T⁵, of q = 10 s³ − 15 s⁴ + 6 s⁵; cubic splines have a jerk of steps."""
    found = MotionProblem(cart(), Phase(duration=1.0, segments=10, degree=degree), ends(a=0.0), Jerk()).solve()
    assert found.success
    assert found.objective == pytest.approx(720, rel=within)
    s = found.motion.t
    np.testing.assert_allclose(found.motion.q[:, 0], 10 * s**3 - 15 * s**4 + 6 * s**5, atol=within / 5)


def test_least_time_of_a_mass_and_how_it_changes():
    """T = 2 √(m L / F), so dT/dm = T / 2m and dT/dF = −T / 2F; splines round the corner of the force off."""
    found = MotionProblem(cart(2.0, effort_limits=3.0), Phase(duration=(0.1, 5)), ends(), Time()).solve()
    T = found.duration
    assert found.success
    assert 0 < T / (2 * np.sqrt(2 / 3)) - 1 < 2e-3
    change = found.sensitivity({"m": "cart.mass"})
    assert change["m"][1] == pytest.approx(T / 4, rel=1e-6)
    assert change["limit of slide"][1] == pytest.approx(-T / 6, rel=1e-5)


def test_a_load_that_is_taken_between_two_phases():
    """1 kg is lifted by 0.5 m in 1 s; then, with 2 kg more, by 1.5 m in 2 s: ∫ F² = M² (g² T + 12 h² / T³) of each."""
    g = 9.81
    hoist = cart(axis="z", gravity=(0, 0, -g))
    phases = [
        Phase("up", duration=1.0, segments=8),
        Phase("on", duration=2.0, segments=8, attached={"cart": 2.0}, continuity=1),
    ]
    between = Boundary("end", phase="up", q=0.5, v=0.0)
    found = MotionProblem(hoist, phases, [*ends(2.0), between], Effort()).solve()
    assert found.success
    expected = (g**2 + 12 * 0.5**2) + 9 * (2 * g**2 + 12 * 1.5**2 / 2**3)
    assert found.objective == pytest.approx(expected, rel=1e-10)
    assert found.verify(mujoco=False).departure < 1e-9


def test_three_phases_in_a_wind():
    """Within ±3 N: with the wind (1 N), against it, without it.  The fastest brakes from half of the second on."""
    wind = [kg.Loads(force={"cart": [f, 0, 0]}) for f in (1.0, -1.0, 0.0)]
    phases = [Phase(name, duration=(0.05, 3), segments=8, loads=load, continuity=1)
              for name, load in zip("abc", wind, strict=True)]  # fmt: skip
    places = [Boundary("end", phase=name, q=q) for name, q in (("a", 1.0), ("b", 2.0))]
    found = MotionProblem(cart(), phases, [*ends(3.0), *places, Limits(tau=3.0)], Time()).solve()
    fast = np.sqrt(
        8 + 4 * 0.5
    )  # after half of the second metre, from v² = 2·4·1 with 2 m/s²; then −4 m/s² to v² = 2·3·1
    T = [np.sqrt(8) / 4, (fast - np.sqrt(8)) / 2 + (fast - np.sqrt(6)) / 4, np.sqrt(6) / 3]
    assert found.success
    np.testing.assert_allclose(found.durations, T, rtol=3e-3)
    assert 0 < found.duration - sum(T) < 1e-3


@pytest.mark.parametrize(("mass", "force", "way"), [(1e-6, 1e-6, 1e-3), (1e4, 1e5, 100.0), (1e6, 1e3, 1e3)])
def test_grams_and_ships(mass, force, way):
    """Tolerances are about the problem, not about N and kg: a straight guess of an effort of 1e-17 is no optimum."""
    T = 2 * np.sqrt(mass * way / force)
    found = MotionProblem(cart(mass), Phase(duration=T, segments=8), ends(way), Effort()).solve()
    assert found.success
    assert found.objective == pytest.approx(12 * (mass * way) ** 2 / T**3, rel=1e-9)
    strong = cart(mass, effort_limits=force)
    fast = MotionProblem(strong, Phase(duration=(T / 10, 10 * T), segments=16), ends(way), Time()).solve()
    assert fast.success
    assert fast.duration == pytest.approx(T, rel=5e-3)


@pytest.mark.parametrize(("mass", "way"), [(1.0, 1.0), (1e-6, 1e-3), (1e4, 100.0)])
@pytest.mark.parametrize("solver", ["ipopt", "slsqp"])
def test_an_optimum_is_one_from_itself(mass, way, solver):
    """Where slopes are zero, they say nothing of the units."""
    problem = MotionProblem(cart(mass), Phase(duration=1.0, segments=8), ends(way), Effort())
    found = problem.solve()
    for guess in (found, found.x, found.motion):
        again = problem.solve(guess, solver=solver)
        assert again.success, again.message
        assert again.objective == pytest.approx(12 * (mass * way) ** 2, rel=1e-9)
    assert problem.program.f_scale == 1.0  # which other threads may be using


def test_a_motion_that_is_followed_exactly():
    """The objective, too, is zero at this optimum."""
    given = MotionProblem(cart(), Phase(duration=1.0, segments=8), ends(), Effort()).solve().motion
    problem = MotionProblem(cart(), Phase(duration=1.0, segments=8), ends(), Follow(given))
    found = problem.solve()
    assert found.success
    assert problem.solve(found).success
    assert problem.solve(given).success


@pytest.mark.parametrize("duration", [0.03, 0.003])
def test_a_guess_that_is_much_too_fast(duration):
    """Its effort is larger by many powers of ten, beside which the optimum's slopes are not small."""
    phase = Phase(duration=(1e-3, 50.0), segments=8)
    problem = MotionProblem(cart(), phase, ends(), [Effort(), Time()])
    found = problem.solve(problem.guess(durations=[duration]))
    T = 36**0.25  # of 12/T³ + T
    assert found.success
    assert found.duration == pytest.approx(T, rel=1e-6)
    assert found.objective == pytest.approx(12 / T**3 + T, rel=1e-9)


# --- fewer motors than coordinates, and nothing else that pushes ---------------------------------------------


@pytest.mark.parametrize(("degree", "within"), [(3, 3e-3), (5, 1e-4)])
def test_a_cart_swings_its_pendulum_up(degree, within):
    """The hinge has no motor.  52.49185 is ∫F² dt by Hermite–Simpson collocation with 400 intervals (CasADi, IPOPT)."""
    model = kg.samples.cart_pendulum()
    swing = [Boundary("start", q=[0, 0], v=0), Boundary("end", q=[0, np.pi], v=0)]
    phase = Phase(duration=2.0, segments=24, degree=degree)
    found = MotionProblem(model, phase, swing, Effort(), actuated=["track"]).solve(refine=True)
    assert found.success
    assert found.objective == pytest.approx(52.49185, rel=within)
    assert found.verify().in_segments < 1e-4


def satellite():
    builder = kg.ModelBuilder("satellite", gravity=(0, 0, 0))
    builder.add("base", None, kg.free(), link="bus", inertia=kg.Inertia(20, (0, 0, 0), np.diag([1.0, 1.2, 0.8])))
    arm = kg.Inertia.cylinder(2, 0.03, (0, 0, 0), (0.5, 0, 0))
    builder.add("yaw", "bus", kg.revolute("z"), link="upper", placement=[0.3, 0, 0], inertia=arm)
    builder.add("pitch", "upper", kg.revolute("y"), link="lower", placement=[0.5, 0, 0], inertia=arm)
    return builder.build()


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_an_arm_turns_its_satellite(degree):
    """Nothing pushes the satellite: its momentum stays zero, and the bus turns against its arm."""
    model = satellite()
    move = [Boundary("start", q=0, v=0), Boundary("end", q={"yaw": 1.2, "pitch": -0.7}, v={"yaw": 0, "pitch": 0})]
    objective = [Effort(), Acceleration(1e-6)]
    problem = MotionProblem(model, Phase(duration=2.0, segments=12, degree=degree), move, objective)
    found = problem.solve(refine=True, between={"dynamics": 0.005})
    assert found.success
    fine = found.motion(np.linspace(0, 2, 41))
    at_most = np.abs(fine.v[:, 6:]).max() * 0.3  # of the arm alone, kg·m²/s
    momentum = kg.momentum(model, fine.q, fine.v)
    assert np.abs(momentum.linear).max() < 4e-3 * at_most
    assert np.abs(momentum.angular).max() < 4e-3 * at_most
    assert fine.q[-1, 3] < -0.1


def test_what_is_left_between_is_that_of_inverse_dynamics():
    """The torque of the hinge, which nothing supplies, on the fine grid; with a jerk among what is computed there."""
    model = kg.samples.cart_pendulum()
    swing = [Boundary("start", q=[0, 0], v=0), Boundary("end", q=[0, 2.0], v=0)]
    for nodes in (1, 2):
        problem = MotionProblem(
            model, Phase(duration=1.0, segments=8, nodes=nodes), swing, [Effort(), Jerk(1e-6)], actuated=["track"]
        )
        found = problem.solve()
        fine = found.motion(np.linspace(0, 1, 81))
        left = np.abs(kg.inverse_dynamics(model, fine.q, fine.v, fine.a)[:, 1]).max()
        (residual,) = (one.value for one in found.between if one.family == "dynamics")
        size = OwnSizes(found.problem.program, found.x).of_rows(np.array([[0.0, 1.0]]))[0]
        assert residual == pytest.approx(left / size, rel=1e-9)


def walker(nodes):
    """A torso with two legs in the plane, whose feet are points, takes a step."""
    builder = kg.ModelBuilder("walker")
    torso, thigh, shank = (kg.Inertia(*x) for x in (
        (12, (0, 0, 0.24), np.diag([1.3, 1.33, 0.1])), (6.8, (0, 0, -0.11), np.diag([0.47, 0.47, 0.05])),
        (3.2, (0, 0, -0.24), np.diag([0.2, 0.2, 0.02]))))  # fmt: skip
    builder.add("base", None, kg.planar("y"), link="torso", inertia=torso)
    for side in "rl":
        builder.add(f"{side}_hip", "torso", kg.revolute("y"), link=f"{side}_thigh", inertia=thigh, effort_limits=150)
        builder.add(
            f"{side}_knee", f"{side}_thigh", kg.revolute("y"), link=f"{side}_shank", placement=[0, 0, -0.4],
            inertia=shank, effort_limits=150, position_limits=(0.05, 1.5),
        )  # fmt: skip
    step = [
        Foot("r_shank", (0, 0, -0.8), friction=0.7, at=(0, 0, 0)),
        Periodic(advance={"base.tx": 0.35}, mirror={"r_hip": "l_hip", "r_knee": "l_knee"}, orders=1),
        Above("l_shank", 0.02, point=(0, 0, -0.4), during=(0.25, 0.75)),
        Above("l_shank", 0.0, point=(0, 0, -0.4)),
        Limits(q={"base.ry": (-0.1, 0.3), "base.tz": (0.6, 0.85)}),
    ]
    phase = Phase(duration=0.9, segments=12, nodes=nodes)
    problem = MotionProblem(builder.build(), phase, step, [Effort(1e-3), Acceleration(1e-3)])
    bent = {"base.tz": 0.75, "r_knee": 0.4, "l_knee": 0.4}
    start = bent | {"base.tx": -0.175, "r_hip": -0.5, "l_hip": 0.1}
    return problem, problem.guess(
        postures={"start": start, "end": bent | {"base.tx": 0.175, "l_hip": -0.5, "r_hip": 0.1}}
    )


@pytest.mark.slow
def test_a_foot_that_is_a_point_leaves_one_torque_to_nobody():
    """Two forces for three torques: the third is zero at breakpoints.  At all nodes it would cost 50 % more."""
    problem, guess = walker(2)
    assert "63 dynamics" in problem.describe()  # 2 at 25 nodes, 1 at 13 breakpoints
    found = problem.solve(guess, refine=True)
    assert found.success
    other, guess = walker(1)
    fewer = other.solve(guess, refine=True)
    assert fewer.success
    assert found.objective == pytest.approx(fewer.objective, rel=0.03)


# --- contacts, obstacles, other programs -------------------------------------------------------------------------


@pytest.mark.parametrize("mass", [2.0, 2e-4])
def test_a_box_on_a_slope(mass):
    """Of its weight, cos is pressure and sin is friction; with too little friction the message says what is missing."""
    builder = kg.ModelBuilder("box")
    builder.add("base", None, kg.free(), link="box", inertia=kg.Inertia(mass, (0, 0, 0.1), 0.01 * mass * np.eye(3)))
    model, angle = builder.build(), np.radians(20)
    slope = np.eye(4)
    slope[:3, :3] = kg.rotate("y", angle)[:3, :3]
    still, phase = [Boundary("start", v=0)], Phase(duration=0.5, segments=4)
    found = {}
    for friction in (0.5, 0.3):
        foot = Foot("box", (0, 0, 0), size=(0.4, 0.4), friction=friction, at=slope, faces=8)
        found[friction] = MotionProblem(model, phase, [foot, *still], Acceleration()).solve()
    assert found[0.5].success
    weight = mass * np.linalg.norm(model.gravity)
    force = weight * np.array([-np.sin(angle), 0, np.cos(angle)])
    np.testing.assert_allclose(found[0.5].motion.forces[:, :3], np.broadcast_to(force, (9, 3)), atol=1e-6 * weight)
    assert not found[0.3].success  # tan 20° = 0.36
    assert "unactuated torque base.t" in found[0.3].message


def test_a_posture_inside_an_obstacle_is_refused():
    """Before anything is solved: no motion can begin there.  Where the obstacle is asked for later, it can."""
    arm = kg.samples.two_link()
    there = [Boundary("start", q=[0.0, -2.0], v=0), Boundary("end", q=[1.0, -1.0], v=0)]
    hand = kg.point_motion(arm, [1.0, -1.0], link="forearm").position
    beside = hand + np.array([0.06, 0, 0])
    ball = Apart("forearm", 0.1, center=beside)
    with pytest.raises(kg.InputError, match=r"apart forearm is at 0\.06 m in the posture that is given for the end"):
        MotionProblem(arm, Phase(segments=4), [*there, ball])
    early = Apart("forearm", 0.1, center=beside, during=(0.0, 0.5))
    assert MotionProblem(arm, Phase(segments=8), [*there, early]).solve().success


def test_an_obstacle_between_two_nodes_is_not_forgotten():
    """`during` has no node within it: the point is looked at where the interval begins and ends."""
    arm = kg.samples.two_link()
    there = [Boundary("start", q=[0.0, -2.0], v=0), Boundary("end", q=[1.0, -1.0], v=0)]
    phase = Phase(duration=1.0, segments=6)
    where = MotionProblem(arm, phase, there, Effort()).solve().motion([0.52]).q[0]
    ball = Apart("forearm", 0.1, center=kg.point_motion(arm, where, link="forearm").position, during=(0.51, 0.53))
    problem = MotionProblem(arm, phase, [*there, ball], Effort())
    assert "2 clearance" in problem.describe()
    found = problem.solve(problem.guess(noise=0.05, seed=1))
    assert found.success
    hand = kg.point_motion(arm, found.motion([0.51, 0.53]).q, link="forearm").position
    assert np.linalg.norm(hand - np.array(ball.center), axis=1).min() > 0.1 - 1e-6


def test_a_hand_along_a_line_keeps_its_elbow():
    """Only the posture at the start is given; the end is looked for near it, and not beyond a stretched arm.

    Without gravity torques are those of one second over T², so the least time follows from them.
    """
    arm = kg.samples.two_link(gravity=(0, 0, 0))
    start, end = np.array([0.2, -1.8]), np.array([1.0, -1.6])
    here, there = kg.point_motion(arm, np.array([start, end]), link="forearm").position

    def line(s):
        return here + (there - here) * (s**2 * (3 - 2 * s))[:, None]

    held = [Boundary("start", q=start, v=0), Guided("forearm", line, directions="xy")]
    found = MotionProblem(arm, Phase(duration=(0.1, 2), segments=16), held, Time()).solve()
    assert found.success
    np.testing.assert_allclose(found.motion.q[-1], end, atol=1e-9)
    second = found.motion.t * 0.5 / found.duration  # the same path in half a second
    fixed = MotionProblem(arm, Phase(duration=0.5, segments=16), [*held, Limits(tau=100.0)], Effort()).solve()
    torque = np.abs(fixed.motion(second).tau).max() if fixed.success else np.nan
    assert found.duration == pytest.approx(0.5 * np.sqrt(torque / 10), rel=1e-6)


def test_an_arm_grows_as_long_as_its_target_is_far():
    """As it is, it does not reach it.  L = 0.7 m, and T = 2 √(I π/2 / τ) with the moment of inertia that follows."""
    builder = kg.ModelBuilder("crane", gravity=(0, 0, 0))
    rod, ball = kg.Inertia.rod(1.0, (0, 0, 0), (0.5, 0, 0)), kg.Inertia.sphere(0.2, 0.05)
    builder.add("turn", None, kg.revolute("z"), link="rod", inertia=rod, effort_limits=2.0)
    builder.add("grip", "rod", kg.revolute("z"), link="ball", placement=[0.5, 0, 0], inertia=ball)
    model = builder.build()
    there = [Fixed({"grip": 0.0}), Boundary("start", q={"turn": 0.0}, v=0), Boundary("end", v=0)]
    target = Reach("ball", (0.0, 0.7, 0.0), directions="xy")
    phase = Phase(duration=(0.1, 5), segments=16)
    with pytest.raises(kg.InputError, match="is out of reach"):
        MotionProblem(model, phase, [*there, target])
    design = kg.Design(model, {"L": "grip.placement.x"})
    problem = MotionProblem(model, phase, [*there, target], Time(), design=design, design_bounds={"L": (0.3, 1.0)})
    found = problem.solve()
    assert found.success
    assert found.parameters["L"] == pytest.approx(0.7, abs=1e-9)
    inertia = 0.5**2 / 3 + 0.2 * (0.7**2 + 0.4 * 0.05**2)
    assert found.duration == pytest.approx(2 * np.sqrt(inertia * np.pi / 2 / 2.0), rel=5e-3)


def test_torques_of_long_segments_are_applied_as_they_are():
    """Two segments of two seconds, in which a pendulum turns by 6 rad: its torques are no polynomials of degree 5."""
    builder = kg.ModelBuilder("pendulum")
    builder.add("hinge", None, kg.revolute("y"), link="rod", inertia=kg.Inertia.rod(1.0, (0, 0, 0), (0, 0, -1.0)))
    found = MotionProblem(builder.build(), Phase(duration=4.0, segments=2), ends(6.0), Acceleration()).solve()
    assert found.success
    assert found.verify(mujoco=False).in_segments < 1e-5


def test_what_mujoco_cannot_hold_is_said():
    """Point masses have no inertia, which its bodies need."""
    pytest.importorskip("mujoco")
    pendulum = kg.samples.double_pendulum()
    proof = MotionProblem(pendulum, Phase(duration=1.0, segments=6), ends([0.3, -0.2]), Effort()).solve().verify()
    assert proof.departure < 1e-6
    assert np.isnan(proof.mujoco)
    assert "not with MuJoCo: " in proof.message


@pytest.mark.slow
def test_an_acrobot_that_swings_up_past_a_limit_of_its_elbow_is_solved():
    """Its elbow waits at 6 rad; 6e-8 rad of relaxed bounds put back were 1e-5 N·m at the shoulder, "infeasible"."""
    builder = kg.ModelBuilder("acrobot")
    rod = kg.Inertia.rod(1.0, [0, 0, 0], [0, 0, -1.0])
    builder.add("shoulder", None, kg.revolute("y"), inertia=rod, link="upper")
    builder.add("elbow", "upper", kg.revolute("y"), placement=[0, 0, -1.0], inertia=rod, link="lower")
    swing = [Boundary("start", q=[0, 0], v=0), Boundary("end", q=[np.pi, 0], v=0), Limits(tau=15.0, q=6.0)]
    problem = MotionProblem(
        builder.build().replace(actuation=["elbow"]), Phase(duration=5.0, segments=80), swing,
        [Effort(1.0), Acceleration(1e-4)],
    )  # fmt: skip
    found = problem.solve().nonlinear
    assert found.success, found.message
    assert max(found.violation, found.optimality) < 1e-6
