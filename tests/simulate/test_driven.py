"""A motor that turns a linkage: joints with prescribed motion in a mechanism with closed loops.

Against closed forms, inverse dynamics of closed mechanisms, energy, the same linkage driven by the torque that was
found, and whole simulations of changed designs.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Design, InputError, SingularError, samples
from kinegrad.simulate import (
    DesignMotion,
    Evaluation,
    KineticEnergy,
    Objective,
    TorqueSquared,
    UserTerm,
    adjoint_gradient,
    objective_gradient,
    simulate,
    simulate_fixed,
)
from tests.constraints.linkages import four_bar_postures, turned
from tests.simulate.test_prescribed import extrapolated

SPEED = 10.0  # rad/s
T = np.linspace(0, 2 * np.pi / SPEED, 37)
TIGHT = {"rtol": 1e-11, "atol": 1e-12}
NAN = np.nan


def steady(t):
    return SPEED * t, SPEED, 0.0


def four_bar(**options):
    """A four-bar whose crank turns at constant speed, from q = 0."""
    model, loop = samples.four_bar()
    v0 = kg.project_velocity(model, loop, np.zeros(3), [SPEED, 0, 0], keep=["crank"])
    return model, loop, simulate(model, np.zeros(3), v0, T, prescribed={"crank": steady}, constraints=loop, **options)


@pytest.mark.parametrize(
    ("options", "limit"),
    [({}, 1e-12), ({"method": "Radau", "rtol": 1e-6}, 1e-12), ({"stabilisation": 20.0, **TIGHT}, 1e-8)],
    ids=["projected", "Radau", "stabilised"],
)
def test_a_crank_at_constant_speed(options, limit):
    """Postures in closed form; torque and forces of the loop as inverse dynamics gives them for that motion."""
    model, loop, motion = four_bar(**options)
    assert motion.success
    assert np.abs(loop.error(motion.q)).max() < limit
    assert np.abs(loop.velocity(motion.q, motion.v)).max() < 100 * limit
    assert turned(motion.q, four_bar_postures(SPEED * T)) < 10 * limit
    np.testing.assert_allclose(motion.v[:, 0], SPEED)
    assert not motion.a[:, 0].any()
    assert not motion.tau[:, 1:].any()
    needed = kg.constrained_inverse_dynamics(model, loop, motion.q, motion.v, motion.a, actuated=["crank"])
    assert np.abs(motion.tau).max() > 5.0
    np.testing.assert_allclose(motion.tau, needed.tau, atol=1e-11)
    np.testing.assert_allclose(motion.forces, needed.forces, atol=1e-10)


def test_the_motor_supplies_what_the_energy_gains():
    """τ ω = dE/dt, with E(θ) from postures in closed form alone, differentiated by differences of fourth order."""
    model, _, motion = four_bar()
    h = 1e-3

    def energy(angle):
        around = [four_bar_postures(angle + k * h) for k in (-2, -1, 0, 1, 2)]
        slope = (8 * (around[3] - around[1]) - (around[4] - around[0])) / (12 * h)
        return kg.kinetic_energy(model, around[2], SPEED * slope) + kg.potential_energy(model, around[2])

    sides = [energy(SPEED * T + k * h) for k in (-2, -1, 1, 2)]
    expected = (8 * (sides[2] - sides[1]) - (sides[3] - sides[0])) / (12 * h)
    np.testing.assert_allclose(motion.tau[:, 0], expected, atol=1e-6)  # h⁴ of 5 N·m, and rounding / h²
    nodes, weights = motion.quadrature()
    assert abs(weights @ (nodes.tau * nodes.v).sum(axis=1)) < 1e-9, "after a whole turn, nothing"


def test_driven_by_the_torque_that_was_found():
    """Without the motor's motion but with its torque the linkage moves alike."""
    model, loop, motion = four_bar()
    free = simulate(model, motion.q[0], motion.v[0], T[:5], constraints=loop, tau=lambda t, q, v: motion([t]).tau[0])
    np.testing.assert_allclose(free.q, motion.q[:5], atol=1e-7)
    np.testing.assert_allclose(free.forces, motion.forces[:5], atol=1e-4)


def test_fixed_steps_take_the_same_way():
    """Order 4: half the step, a sixteenth of the error of the five-bar, which has a freedom left."""
    model, loop = samples.five_bar()
    drive = {"left": lambda t: (0.3 * np.sin(4 * t), 1.2 * np.cos(4 * t), -4.8 * np.sin(4 * t))}
    start = kg.project_velocity(model, loop, np.zeros(4), [1.2, 0, 0, 0], keep=["left"])
    given = {"prescribed": drive, "constraints": loop}
    exact = simulate(model, np.zeros(4), start, [0, 0.4], **given, **TIGHT)
    error = []
    for steps in (20, 40):
        coarse = simulate_fixed(model, [NAN, 0, 0, 0], start, step=0.4 / steps, steps=steps, every=steps, **given)
        assert np.abs(loop.error(coarse.q)).max() < 1e-13
        assert coarse.q[-1, 0] == 0.3 * np.sin(4 * (steps * (0.4 / steps)))
        error.append(np.abs(coarse.q[-1] - exact.q[-1]).max())
    assert error[0] > 1e-9
    assert error[1] < error[0] / 10
    np.testing.assert_allclose(coarse.tau[-1], exact.tau[-1], atol=1e-4)
    batch = simulate_fixed(model, np.zeros((2, 4)), start, step=0.02, steps=5, **given)
    np.testing.assert_allclose(batch.tau[:, 1], batch.tau[:, 0], atol=1e-13)


def test_nothing_constrained_and_nothing_prescribed():
    model = samples.cart_pendulum()
    drive = {"track": lambda t: (0.1 * np.sin(9 * t), 0.9 * np.cos(9 * t), -8.1 * np.sin(9 * t))}
    start = [0, 0.5], [0.9, 0]
    plain = simulate(model, *start, T, prescribed=drive)
    none = simulate(model, *start, T, prescribed=drive, constraints=kg.ConstraintSet(model, []))
    np.testing.assert_array_equal(none.q, plain.q)
    np.testing.assert_array_equal(none.tau, plain.tau)
    linkage, loop = samples.four_bar()
    free = simulate(linkage, [0, 0, 0], [0, 0, 0], T[:4], constraints=loop)
    empty = simulate(linkage, [0, 0, 0], [0, 0, 0], T[:4], constraints=loop, prescribed={})
    np.testing.assert_allclose(empty.q, free.q, atol=1e-9)


@pytest.mark.slow
def test_a_ball_that_is_turned_lifts_what_stands_on_the_floor():
    """Closed form: the lift is as high as the corner of the turned body is low; the floor carries all the weight."""
    builder = kg.ModelBuilder("ball on a lift")
    builder.add("lift", None, kg.prismatic("z"), link="lift", inertia=kg.Inertia.sphere(1.0, 0.1))
    body = kg.Inertia.sphere(2.0, 0.1)
    builder.add("ball", "lift", kg.spherical(quaternion=True), link="body", inertia=body)
    model, corner = builder.build(), np.array([0.3, 0.0, -0.2])
    floor = kg.ConstraintSet(model, [kg.Contact("body", corner, directions="z", name="floor")])
    design = Design(model, ["body.mass"])
    turn = DesignMotion(  # about y, by an angle 0.5 t² that grows with the mass
        lambda t, p: (
            np.array([np.cos(p[0] * t * t / 8), 0, np.sin(p[0] * t * t / 8), 0]),
            [0, p[0] * t / 2, 0],
            [0, p[0] / 2, 0],
        )
    )
    t = np.linspace(0, 1, 5)
    run = {"prescribed": {"ball": turn}, "constraints": floor, "design": design}
    motion = simulate(model, [0.2, NAN, NAN, NAN, NAN], [0, NAN, NAN, NAN], t, **run, **TIGHT)
    angle = 0.5 * t**2
    height = 0.2 * np.cos(angle) + 0.3 * np.sin(angle)
    np.testing.assert_allclose(motion.q[:, 0], height, atol=1e-9)
    slope = (0.3 * np.cos(angle) - 0.2 * np.sin(angle)) * angle / 2  # dangle/dp = angle/p
    np.testing.assert_allclose(motion.dq_dp[:, 0, 0], slope, atol=1e-8)
    np.testing.assert_allclose(motion.dq_dp[:, 2, 0], angle / 2, atol=1e-12)
    rise = (0.3 * np.cos(angle) - 0.2 * np.sin(angle)) - (0.2 * np.cos(angle) + 0.3 * np.sin(angle)) * t**2
    np.testing.assert_allclose(motion.forces[:, 0], 3.0 * (9.81 + rise), atol=1e-7)


# --- sensitivities ------------------------------------------------------------------------------------------


def swing(t, p):
    w, size = 3.0 + p[0], 0.2 + p[1]
    return size * np.sin(w * t), size * w * np.cos(w * t), -size * w * w * np.sin(w * t)


def five_bar():
    """One arm driven, the other free, with parameters of masses, of a length, of gravity and of the drive."""
    model, loop = samples.five_bar()
    model = model.replace(damping=[0.1, 0.05, 0.1, 0.05])
    design = Design(model, {"m": "left.mass", "L": {"left_elbow.placement.x": 1.0}, "g": "gravity.z"})
    return design, kg.ConstraintSet(model, loop.constraints)


def run(function, design, constraints, **options):
    """The five-bar from a state that is drawn onto the constraints, so that it follows the design."""
    held = kg.ConstraintSet(design.model, constraints.constraints)
    given = {"prescribed": {"left": DesignMotion(swing)}, "constraints": held, "project": True, "design": design}
    return function(design.model, [NAN, 0.1, 0.2, 0.05], [NAN, 0.1, 0.4, 0.2], **given, **options)


NAMES = ("q", "v", "a", "tau")


def slopes(motion):
    return np.stack([getattr(motion, f"d{name}_dp") for name in NAMES])


def check_slopes(function, design, loop, tight, **options):
    motion = run(function, design, loop, **options)

    def moved(change):
        other = run(function, design.at(design.values + change), loop, **(options | tight))
        return np.stack([getattr(other, name) for name in NAMES])

    expected = extrapolated(moved, design.p)
    scale = np.abs(expected).max(axis=(1, 2), keepdims=True)
    assert (np.abs(slopes(motion) - expected) / scale).max() < 1e-6
    return motion


@pytest.mark.slow
def test_sensitivities_with_error_control():
    """Against steps of 2 ms, whose slopes are compared with whole simulations below: their error is some h⁴."""
    design, loop = five_bar()
    motion = run(simulate, design, loop, t=[0.0, 0.05, 0.1], rtol=1e-8, atol=1e-9)
    steps = run(simulate_fixed, design, loop, step=0.002, steps=50, every=25)
    scale = np.abs(slopes(steps)).max(axis=(1, 2), keepdims=True)
    assert (np.abs(slopes(motion) - slopes(steps)) / scale).max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("stabilisation", [None, 8.0])
@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler"])
def test_fixed_steps_direct_and_adjoint(stabilisation, method):
    """Slopes of the discrete motion itself; both gradients agree to rounding."""
    design, loop = five_bar()
    options = {"step": 0.02, "steps": 3, "stabilisation": stabilisation, "method": method}
    motion = check_slopes(simulate_fixed, design, loop, {}, **options)
    soft = UserTerm(lambda at: Evaluation((at.a**2).sum(axis=-1) / 100, da=at.a / 50))
    effort = Objective(end=[KineticEnergy(), TorqueSquared(0.1)], integral=[KineticEnergy(), TorqueSquared(0.3), soft])
    direct = objective_gradient(motion, effort)
    adjoint = run(
        lambda model, q, v, **given: adjoint_gradient(model, q, v, effort, segment=2, **given), design, loop, **options
    )
    np.testing.assert_allclose(adjoint.value, direct.value, rtol=1e-12)
    np.testing.assert_allclose(adjoint.dvalue_dp, direct.dvalue_dp, rtol=1e-10, atol=1e-12)
    assert adjoint.dvalue_dq0[0] == adjoint.dvalue_dv0[0] == 0.0, "the start of the driven joint is its motion's"
    assert not adjoint.dvalue_dtau[:, 0].any(), "a torque at the driven joint changes nothing"


# --- what is refused ----------------------------------------------------------------------------------------


def test_what_cannot_move_so_is_refused():
    model, loop = samples.four_bar()
    v0 = kg.project_velocity(model, loop, np.zeros(3), [SPEED, 0, 0], keep=["crank"])
    given = {"t": T, "prescribed": {"crank": steady}, "constraints": loop}
    with pytest.raises(InputError, match=r"`v0` does not agree with the constraints: row 'pin\.[xz]' moves at"):
        simulate(model, np.zeros(3), [SPEED, 0, 0], **given)
    assert simulate(model, np.zeros(3), [SPEED, 0, 0], **given, project=True).v[0, 0] == SPEED
    with pytest.raises(InputError, match="`v0` is 1 at joint 'crank', whose prescribed motion begins with 10"):
        simulate(model, np.zeros(3), v0 / SPEED, **given)
    both = {"prescribed": {"crank": steady, "rocker": lambda t: (0.0, v0[2], 0.0)}}
    with pytest.raises(SingularError, match=r"redundant, with the prescribed motion of 'crank', 'rocker': .*prescribe"):
        simulate(model, np.zeros(3), v0, **(given | both))
    with pytest.raises(InputError, match="names all joints"):
        simulate(model, np.zeros(3), v0, **(given | {"prescribed": dict.fromkeys(model.joint_names, steady)}))
    with pytest.raises(InputError, match="`prescribed` and `contacts`"):
        simulate(model, np.zeros(3), v0, **given, contacts=[])
    steps = {"step": 0.01, "steps": 2, "prescribed": {"crank": steady}}
    with pytest.raises(InputError, match="'implicit_midpoint' and `prescribed` is given; expected 'rk4'"):
        simulate_fixed(model, np.zeros(3), v0, method="implicit_midpoint", **steps)
    with pytest.raises(InputError, match="`prescribed` and `contacts`"):
        simulate_fixed(model, np.zeros(3), v0, contacts=[], **steps)
    with pytest.raises(InputError, match="`prescribed` and `contacts`"):
        adjoint_gradient(model, np.zeros(3), v0, Objective(end=[KineticEnergy()]), contacts=[], **steps)
    builder = kg.ModelBuilder("top")
    builder.add("stand", None, kg.revolute("z"), inertia=kg.Inertia.sphere(1.0, 0.1))
    builder.add("tip", "stand", kg.spherical(quaternion=True), inertia=kg.Inertia.sphere(1.0, 0.1))
    with pytest.raises(InputError, match="`prescribed` is given and model 'top' has quaternions; expected simulate"):
        simulate_fixed(
            builder.build(), [0, 1, 0, 0, 0], [SPEED, 0, 0, 0], step=0.1, steps=1, prescribed={"stand": steady}
        )


def test_a_dead_point_is_named():
    """A piston cannot be driven through the end of its stroke, where crank and rod are in line: they are too fast."""
    model, loop = samples.slider_crank()
    q = kg.assemble(model, loop, [-1.4, 0, 0], keep=["crank"])
    v = kg.project_velocity(model, loop, q, [0, 0, 1.0], keep=["piston"])
    drive = {"piston": lambda t: (q[2] + t, 1.0, 0.0)}
    with pytest.warns(kg.UnfinishedWarning, match=r"diverged at t = 0\.00.* in joint '(crank|rod)'"):
        motion = simulate(model, q, v, [0, 0.2], prescribed=drive, constraints=loop, speed_limit=100.0)
    assert not motion.success
