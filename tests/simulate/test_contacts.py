"""Contacts that open and close: against motions on paper, what impacts conserve, and sensitivities through the events.

Sensitivities are compared with converged differences of whole simulations, of many events each.
"""

import pickle

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Contact, InputError
from kinegrad.simulate import (
    KineticEnergy,
    Objective,
    UnilateralContact,
    objective_gradient,
    objective_value,
    simulate,
    simulate_fixed,
)
from tests.simulate.test_constrained import converged

TIGHT = {"rtol": 1e-11, "atol": 1e-12}
G = 9.81
WIDE, HIGH = 0.15, 0.5  # half the width and half the height of a block


def ball(e, **more):
    """A ball of radius 0.1 m above a floor, and the contact."""
    builder = kg.ModelBuilder("ball")
    builder.add("z", None, kg.prismatic("z"), link="ball", inertia=kg.Inertia.sphere(1.0, 0.1))
    return builder.build(), [UnilateralContact(Contact("ball", [0, 0, -0.1], directions="z", name="floor"), e, **more)]


def block(wide=WIDE):
    """A planar block with two corners that stick where they land; normals are z."""
    builder = kg.ModelBuilder("block")
    builder.add("x", None, kg.prismatic("x"))
    builder.add("z", "x", kg.prismatic("z"))
    inertia = kg.Inertia(2.0, [0, 0, 0], np.diag([1.0, 2.0 * (HIGH**2 + wide**2) / 3, 1.0]))
    builder.add("turn", "z", kg.revolute("y"), link="block", inertia=inertia)
    corners = [
        UnilateralContact(Contact("block", [side * wide, 0, -HIGH], directions="xz", name=name))
        for side, name in ((-1, "left"), (1, "right"))
    ]
    return builder.build(), corners


def tilted(angle, wide=WIDE):
    """Coordinates of the block that stands on its left corner at (−wide, 0)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([-wide + c * wide + s * HIGH, -s * wide + c * HIGH, angle])


def test_a_ball_bounces_as_on_paper_and_comes_to_rest():
    """Flights of 2v/g, each 0.8 of the one before, until the ball is slower than `sticking_speed`; then it rests."""
    model, floor = ball(0.8)
    motion = simulate(model, [1.1], [0.0], np.linspace(0, 6, 61), contacts=floor)
    speed = np.sqrt(2 * G)
    t = [speed / G]
    while speed > 1e-3:
        speed *= 0.8
        t.append(t[-1] + 2 * speed / G)
    assert len(motion.impacts) == len(t) == 39
    np.testing.assert_allclose([x.t for x in motion.impacts], t, atol=1e-9)
    assert motion.phases[-1].closed == ("floor",)
    assert motion.phases[-1].end == 6.0
    np.testing.assert_allclose(motion.forces[-1], [G], rtol=1e-14)
    assert motion.q.min() > 0.1 - 1e-12
    assert motion.forces[1, 0] == 0.0  # in flight
    first = motion.impacts[0]
    np.testing.assert_allclose(first.impulses, [1.8 * np.sqrt(2 * G)], rtol=1e-9)
    assert first.touching == ("floor",)


def test_elastic_impacts_conserve_energy_and_what_is_free():
    """e = 1: energy; the momentum along a smooth inclined floor is what the impact cannot change."""
    builder = kg.ModelBuilder("particle")
    builder.add("x", None, kg.prismatic("x"))
    builder.add("z", "x", kg.prismatic("z"), link="bead", inertia=kg.Inertia.point(0.7, [0, 0, 0]))
    model = builder.build()
    slope = UnilateralContact(Contact("bead", directions=[[-0.6, 0, 0.8]], name="slope"), restitution=1.0)
    motion = simulate(model, [0, 1.0], [0.3, 0], np.linspace(0, 3, 31), contacts=[slope], **TIGHT)
    assert len(motion.impacts) >= 3
    energy = kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)
    assert np.ptp(energy) < 1e-9
    for x in motion.impacts:
        np.testing.assert_allclose(x.v_after @ [0.8, 0.6], x.v_before @ [0.8, 0.6], rtol=1e-14)
        np.testing.assert_allclose(x.v_after @ [-0.6, 0.8], -(x.v_before @ [-0.6, 0.8]), rtol=1e-12)


def test_a_slender_block_rocks_as_housner_says():
    """Each impact hands over to the other corner: ω⁺/ω = 1 − (3/2) sin²α, while angular momentum about it is kept."""
    model, corners = block()
    motion = simulate(model, tilted(-0.15), [0, 0, 0], np.linspace(0, 3, 31), contacts=corners)
    assert len(motion.impacts) >= 8
    ratio = 1 - 1.5 * WIDE**2 / (WIDE**2 + HIGH**2)
    for x in motion.impacts:
        np.testing.assert_allclose(x.v_after[2] / x.v_before[2], ratio, rtol=1e-9)
    assert [x.closed for x in motion.phases[:3]] == [("left",), ("right",), ("left",)]
    assert all(len(x.closed) == 1 for x in motion.phases)
    assert motion.row_names == ("left.x", "left.z", "right.x", "right.z")
    assert (motion.forces[:, [1, 3]] >= 0).all()


def test_a_flat_block_lands_on_both_corners_and_stays():
    """For a block wider than √2 its height, both corners push in the impact; x of both is one row too many."""
    model, corners = block(wide=1.0)
    motion = simulate(model, tilted(-0.15, 1.0), [0, 0, 0], np.linspace(0, 1, 11), contacts=corners)
    assert len(motion.impacts) == 1
    assert motion.phases[-1].closed == ("left", "right")
    np.testing.assert_allclose(motion.v[-1], 0, atol=1e-12)
    np.testing.assert_allclose(motion.forces[-1], [0, G, 0, G], atol=1e-8)


def test_a_body_leaves_a_plate_where_its_force_is_zero():
    """Two equal masses on a spring: the upper one is not held, and leaves where the spring has its rest length."""
    builder = kg.ModelBuilder("plate")
    builder.add("plate", None, kg.prismatic("z"), link="plate", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    builder.add("body", None, kg.prismatic("z"), link="body", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    model = builder.build().replace(stiffness=[50.0, 0.0])
    rests = UnilateralContact(Contact("body", directions="z", other="plate", name="rests"))
    motion = simulate(model, [-1.0, -1.0], [0, 0], np.linspace(0, 1, 21), contacts=[rests], **TIGHT)
    rate, middle = np.sqrt(25.0), -2 * G / 50.0
    release = np.arccos((0 - middle) / (-1.0 - middle)) / rate
    assert [x.closed for x in motion.phases[:2]] == [("rests",), ()]
    np.testing.assert_allclose(motion.phases[0].end, release, atol=1e-8)  # a force within 1e-9 N of zero counts as zero
    held = motion.t < release
    assert (motion.forces[held, 0] > 0).all()
    np.testing.assert_allclose(motion.q[held, 0], motion.q[held, 1], atol=1e-13)
    energy = kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)
    before_impact = motion.t < (motion.impacts[0].t if motion.impacts else 1.0)
    assert np.ptp(energy[before_impact]) < 1e-9  # letting go does no work


@pytest.mark.parametrize("case", ["ball", "block"])
def test_sensitivities_through_many_events(case):
    """States, times of impacts and an integral, by design and initial state, against converged differences."""
    if case == "ball":
        model, contacts = ball(0.8)
        design = kg.Design(model, ["gravity.z", "ball.mass"])
        t, events, turn = np.array([0, 0.3, 1.0, 2.5]), 4, np.array([0.3])

        def start(x):
            return np.array([1.1]) + turn * x

    else:
        model, contacts = block()
        design = kg.Design(model, ["gravity.z", "block.inertia.yy"])
        t, events = np.array([0, 1.0, 1.6]), 3
        turn = 0.1 * tilted(-0.15 + 1e-30j).imag / 1e-30

        def start(x):
            return tilted(-0.15 + 0.1 * x)

    slope = np.outer(turn, [1.0, 0.0])  # the initial state follows the first parameter
    J = Objective(integral=[KineticEnergy()])

    def run(x, **options):
        at = design.at(x)
        q0 = start(x[0] - design.values[0])
        return simulate(at.model, q0, np.zeros(model.n), t, contacts=contacts, **TIGHT, **options)

    found = run(design.values, design=design, dq0_dp=slope)
    assert len(found.impacts) == events

    def results(x):
        motion = run(x)
        value = objective_value(motion, J) if case == "ball" else np.zeros(())
        return motion.q, motion.v, np.array([y.t for y in motion.impacts]), value

    for k in range(2):
        q, v, times, value = converged(results, design.values, k, 2e-3)
        size = max(1.0, np.abs(found.dv_dp).max())
        assert np.abs(found.dq_dp[..., k] - q).max() < 1e-8 * size
        assert np.abs(found.dv_dp[..., k] - v).max() < 1e-8 * size
        np.testing.assert_allclose([y.dt_dp[k] for y in found.impacts], times, atol=1e-8)
        if case == "ball":  # the integrand jumps with the speed
            gradient = objective_gradient(found, J).dvalue_dp
            np.testing.assert_allclose(gradient[k], value, rtol=1e-8, atol=1e-9)


def test_contacts_with_constraints_that_always_hold():
    """A bead on a vertical rail falls on a floor: the rail's force takes the load that pushes it sideways."""
    builder = kg.ModelBuilder("bead")
    builder.add("x", None, kg.prismatic("x"))
    builder.add("z", "x", kg.prismatic("z"), link="bead", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    model = builder.build()
    rail = kg.ConstraintSet(model, [Contact("bead", directions="x", name="rail")])
    floor = UnilateralContact(Contact("bead", directions="z", name="floor"))
    push = kg.Loads(force={"bead": [3, 0, 0]})
    motion = simulate(model, [0, 0.2], [0, 0], [0, 0.1, 1.0], constraints=rail, contacts=[floor], loads=push)
    assert motion.row_names == ("rail.x", "floor.z")
    np.testing.assert_allclose(motion.forces, [[-3, 0], [-3, 0], [-3, G]], atol=1e-9)


def test_what_is_refused():
    model, floor = ball(0.5)
    t = [0, 1]
    with pytest.raises(InputError, match=r"`q0` has contact 'floor' 0\.05 m below its floor"):
        simulate(model, [0.05], [0], t, contacts=floor)
    with pytest.raises(InputError, match=r"`v0` runs contact 'floor' into its floor at 1 m/s"):
        simulate(model, [0.1], [-1], t, contacts=floor)
    with pytest.raises(InputError, match="`prescribed` and `contacts`"):
        simulate(model, [1.0], [0], t, contacts=floor, prescribed={"z": lambda t: (1.0, 0, 0)})
    for wrong in (floor[0].contact, "floor", [floor[0].contact], 3):
        with pytest.raises(InputError, match=r"`contacts` .* expected a list of UnilateralContact"):
            simulate(model, [1.0], [0], t, contacts=wrong)
    with pytest.raises(InputError, match="`sticking_speed`"):
        simulate(model, [1.0], [0], t, contacts=floor, sticking_speed=-1)
    for options in ({"restitution": 1.5}, {"restitution": np.nan}, {"normal": 1}, {"normal": 0.5}):
        with pytest.raises(InputError, match=f"`{next(iter(options))}` is"):
            UnilateralContact(floor[0].contact, **options)
    with pytest.raises(InputError, match="`contact` is"):
        UnilateralContact("ball")
    both = kg.ModelBuilder("two")
    both.add("a", None, kg.prismatic("z"), link="a", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    both.add("b", None, kg.prismatic("z"), link="b", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    two = both.build()
    sticks = UnilateralContact(Contact("b", directions="xz", other="a", name="sticks"))
    with pytest.raises(InputError, match="'sticks' sticks to another link"):
        simulate(two, [0, 1.0], [0, 0], t, contacts=[sticks], design=kg.Design(two, ["a.mass"]))


def test_no_contacts_change_nothing():
    model, _ = ball(0.5)
    np.testing.assert_array_equal(
        simulate(model, [1.0], [0], [0, 1], contacts=[]).q, simulate(model, [1.0], [0], [0, 1]).q
    )


def test_bouncing_without_end_is_given_up():
    """With no speed to stick at, bounces crowd before t = 4.064 s; the motion before is returned."""
    model, floor = ball(0.8)
    motion = simulate(model, [1.1], [0.0], np.linspace(0, 6, 7), contacts=floor, sticking_speed=1e-300)
    assert motion.status == -2
    assert "given up at t = 4.06371 s: contacts open and close" in motion.message
    assert len(motion.t) == 5


@pytest.mark.parametrize("fixed", [False, True])
def test_a_foot_that_would_slip_is_told_of_friction(fixed):
    """The tip of a leaning rod is pushed over the floor: what stops it at once lifts it, and nothing else stops it."""
    builder = kg.ModelBuilder("rod")
    builder.add("rod", None, kg.planar("y"), inertia=kg.Inertia.rod(1.0, [0, 0, -0.5], [0, 0, 0.5]))
    rod = builder.build()
    lean, tip = 0.5, [0, 0, -0.5]
    q, v = np.array([0.01 + 0.5 * np.cos(lean), 0.0, lean]), np.array([-0.1, 2.0, 0.0])
    assert rod.coordinate_names == ("rod.tz", "rod.tx", "rod.ry")

    def run(directions):
        floor = [UnilateralContact(Contact("rod", tip, directions=directions))]
        if fixed:
            return simulate_fixed(rod, q, v, step=0.01, steps=10, contacts=floor, unfinished="ignore")
        return simulate(rod, q, v, [0, 0.1], contacts=floor, unfinished="ignore")

    assert "a point that would slip needs friction, which is not simulated" in run("xz").message
    assert run("z").success  # it slides


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_integrators_agree(method):
    model, floor = ball(0.8)
    t = [x.t for x in simulate(model, [1.1], [0.0], [0, 2], contacts=floor, method=method).impacts]
    np.testing.assert_allclose(
        t, [x.t for x in simulate(model, [1.1], [0.0], [0, 2], contacts=floor).impacts], atol=1e-9
    )


def test_results_at_impacts_and_beyond():
    """At the time of an impact the state is that after it, also where the motion ends; results pickle and compare."""
    model, floor = ball(0.8)
    motion = simulate(model, [1.1], [0.0], [0, 1], contacts=floor)
    first = motion.impacts[0]
    np.testing.assert_array_equal(motion(first.t).v[0], first.v_after)
    until = simulate(model, [1.1], [0.0], [0, first.t], contacts=floor)
    assert until.success
    np.testing.assert_allclose(until.v[-1], first.v_after, rtol=1e-9)
    assert pickle.loads(pickle.dumps(motion)) == motion
    assert motion == simulate(model, [1.1], [0.0], [0, 1], contacts=floor)
    rest = simulate(
        model, [0.1], [0.0], [0, 1], contacts=floor, tau=lambda t, q, v: [20 * t]
    )  # pulled up more and more
    assert [x.closed for x in rest.phases] == [("floor",), ()]
    np.testing.assert_allclose(rest.phases[0].end, G / 20, atol=1e-9)
