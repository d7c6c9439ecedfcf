"""Fixed steps with contacts that open and close: motions on paper, and exact derivatives through the events.

Derivatives are those of the discrete motion, whatever the step: they are compared with extrapolated differences of
whole runs, in which the order of events and their steps stay the same, and direct with adjoint ones.
"""

import pickle
from typing import NamedTuple

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

import kinegrad as kg
from kinegrad import Contact, InputError, SolveError
from kinegrad.simulate import (
    Evaluation,
    Feedback,
    KineticEnergy,
    Objective,
    PotentialEnergy,
    Simulated,
    TorqueSquared,
    Tracking,
    UnilateralContact,
    UserTerm,
    adjoint_gradient,
    objective_gradient,
    objective_value,
    simulate,
    simulate_fixed,
)
from tests.simulate.test_constrained import converged
from tests.simulate.test_contacts import HIGH, WIDE, G, ball, block
from tests.simulate.test_contacts import tilted as standing

JERKY = UserTerm(lambda at: Evaluation((at.a**2).sum(axis=-1), da=2 * at.a))
J = Objective(end=[KineticEnergy(), PotentialEnergy(), JERKY], integral=[KineticEnergy(), TorqueSquared(), JERKY])
SPRING = Feedback(lambda t, q, v: -3 * q - v, lambda t, q, v: -3 * np.eye(2), lambda t, q, v: -np.eye(2))


def plate():
    """A body on a plate on a spring, and the contact that it leaves by itself."""
    builder = kg.ModelBuilder("plate")
    builder.add("plate", None, kg.prismatic("z"), link="plate", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    builder.add("body", None, kg.prismatic("z"), link="body", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    rests = UnilateralContact(Contact("body", directions="z", other="plate", name="rests"), restitution=0.3)
    return builder.build().replace(stiffness=[50.0, 0.0]), [rests]


def railed():
    """A bead on a circle of radius 1 m about (0, 1), which runs into a slope."""
    builder = kg.ModelBuilder("bead")
    builder.add("x", None, kg.prismatic("x"))
    builder.add("z", "x", kg.prismatic("z"), link="bead", inertia=kg.Inertia.point(1.0, [0, 0, 0]))
    model = builder.build()
    rod = kg.ConstraintSet(model, [kg.Distance("bead", [0, 0, 0], None, [0, 0, 1.0], length=1.0)])
    slope = UnilateralContact(Contact("bead", directions=[[-0.6, 0, 0.8]], name="slope"), restitution=0.6)
    return model, [slope], rod


def tilted(angle, *, lift=0.0):
    """The block on its left corner, or so much above."""
    return standing(angle) + np.array([0, lift, 0])


def noise(*shape):
    return np.random.default_rng(7).normal(size=shape)


class Case(NamedTuple):
    """A run; `free` if the initial state may follow the parameters as it likes; which contacts are closed in turn."""

    name: str
    mechanism: tuple
    start: tuple
    free: bool
    names: list
    options: dict
    closed: str

    def __str__(self):
        return self.name


def cases():
    falling, stands = (tilted(-0.15, lift=0.03), [0.3, 0, 0]), (tilted(-0.15), [0, 0, 0])
    spline = make_interp_spline(np.linspace(0, 1, 9), noise(9, 2), k=3)
    of_ball, of_block = ["gravity.z", "ball.mass"], ["gravity.z", "block.com.x"]
    resting = ([-1.0, -1.0], [0.0, 0.0])
    euler = {"method": "semi_implicit_euler"}
    return [
        Case("bounces", ball(0.8), ([1.1], [0.0]), True, of_ball, run(0.03, 55, 0.1 * noise(55, 1)), "||"),
        Case("many in a step", ball(0.8), ([0.12], [0.0]), True, ["gravity.z"], run(0.1, 6, sticking_speed=0.2),
             "|||||||floor"),
        Case("pulled off", ball(0.8), ([0.1], [0.0]), False, ["ball.mass"], run(0.1, 8, np.linspace(0, 20, 8)[:, None]),
             "floor|"),
        Case("falls and rocks", block(), falling, True, of_block, run(0.043, 26), "|left|right|left"),
        Case("rocks", block(), stands, False, of_block, run(0.025, 24, 0.1 * noise(24, 3), **euler), "left|right"),
        Case("spline", plate(), resting, False, ["body.mass"], run(0.04, 16, spline), "rests|"),
        Case("feedback", plate(), resting, False, ["body.mass"], run(0.04, 16, SPRING), "rests|"),
        Case("railed", railed(), ([-1.0, 1.0], [0.0, 0.0]), False, ["gravity.z"], run(0.04, 18), "|"),
    ]  # fmt: skip


def run(step, steps, tau=None, **more):
    return {"step": step, "steps": steps, "tau": tau, **more}


@pytest.mark.parametrize("case", cases(), ids=str)
def test_derivatives_are_exact(case):
    """States, accelerations, times of impacts and J by design and initial state; the adjoint is the transpose."""
    model, contacts, held = (*case.mechanism, None)[:3]
    (q0, v0), design = case.start, kg.Design(model, case.names)
    follow = noise(2, model.n, design.p) * case.free
    options = {**case.options, "contacts": contacts}

    def motion(x, **more):
        at = design.at(x).model
        ties = {} if held is None else {"constraints": kg.ConstraintSet(at, list(held.constraints))}
        start = np.array([q0, v0]) + follow @ (x - design.values)
        return simulate_fixed(at, *start, **options, **ties, **more)

    found = motion(design.values, design=design, dq0_dp=follow[0], dv0_dp=follow[1])
    assert found.success
    assert "|".join("+".join(x.closed) for x in found.phases) == case.closed
    gradient = objective_gradient(found, J)

    def results(x):
        made = motion(x)
        assert [y.closed for y in made.phases] == [y.closed for y in found.phases]
        return made.q, made.v, made.a, np.array([y.t for y in made.impacts]), objective_value(made, J)

    for k in range(design.p):
        q, v, a, times, value = converged(results, design.values, k, 2e-4)
        np.testing.assert_allclose(found.dq_dp[..., k], q, atol=1e-8)
        np.testing.assert_allclose(found.dv_dp[..., k], v, atol=1e-8 * max(1.0, np.abs(v).max()))
        np.testing.assert_allclose(found.da_dp[..., k], a, atol=1e-8 * max(1.0, np.abs(a).max()))
        np.testing.assert_allclose([y.dt_dp[k] for y in found.impacts], times, atol=1e-8)
        np.testing.assert_allclose(gradient.dvalue_dp[k], value, rtol=1e-8, atol=1e-8)
    ties = {} if held is None else {"constraints": held}
    back = adjoint_gradient(model, q0, v0, J, design=design, **options, **ties)
    total = back.dvalue_dp + back.dvalue_dq0 @ follow[0] + back.dvalue_dv0 @ follow[1]
    np.testing.assert_allclose(back.value, gradient.value, rtol=1e-12)
    np.testing.assert_allclose(total, gradient.dvalue_dp, rtol=1e-10, atol=1e-10 * np.abs(total).max())


@pytest.mark.parametrize("case", ["ball", "block"])
def test_gradients_by_torques_and_initial_state(case):
    """Without a design: of torques in the steps before, with and after an impact, and of the start."""
    model, contacts = ball(0.8) if case == "ball" else block()
    q0, v0 = (np.array([0.3]), np.zeros(1)) if case == "ball" else (tilted(-0.15, lift=0.03), np.array([0.3, 0, 0]))
    options = {"step": 0.05, "steps": 10, "contacts": contacts}
    tau = noise(10, model.n)
    back = adjoint_gradient(model, q0, v0, J, tau=tau, **options)
    assert back.dvalue_dp is None
    impact = int(simulate_fixed(model, q0, v0, tau=tau, **options).impacts[0].t / 0.05)
    ways = [np.zeros((12, model.n)) for _ in range(5)]
    for way, row in zip(ways, (impact - 1, impact, impact + 1, 10, 11), strict=True):
        way[row] = noise(model.n)

    def value(x):
        change = sum(y * way for y, way in zip(x, ways, strict=True))
        motion = simulate_fixed(model, q0 + change[10], v0 + change[11], tau=tau + change[:10], **options)
        return [objective_value(motion, J)]

    slopes = np.concatenate([back.dvalue_dtau, [back.dvalue_dq0, back.dvalue_dv0]])
    for k, way in enumerate(ways):
        (wanted,) = converged(value, np.zeros(5), k, 2e-4)
        np.testing.assert_allclose((slopes * way).sum(), wanted, rtol=1e-8, atol=1e-8)


def test_a_ball_bounces_as_on_paper_and_comes_to_rest():
    """Parabolas are exact in these steps, so that all times are, however many bounces there are in a step."""
    model, floor = ball(0.8)
    motion = simulate_fixed(model, [1.1], [0.0], step=0.1, steps=50, contacts=floor, every=5)
    exact = simulate(model, [1.1], [0.0], [0, 5], contacts=floor, rtol=1e-12, atol=1e-13)
    assert len(motion.impacts) == len(exact.impacts) == 39
    np.testing.assert_allclose([x.t for x in motion.impacts], [x.t for x in exact.impacts], atol=1e-9)
    assert motion.phases[-1].closed == ("floor",)
    assert motion.phases[-1].end == motion.t[-1] == 5.0
    assert motion.impacts[0].touching == ("floor",)
    np.testing.assert_allclose(motion.impacts[0].impulses, [1.8 * np.sqrt(2 * G)], rtol=1e-12)
    np.testing.assert_allclose(motion.forces[-1], [G], rtol=1e-14)
    assert motion.forces[0, 0] == 0.0
    assert motion.q.shape == (11, 1)
    assert motion.q.min() > 0.1 - 1e-12


def test_a_block_rocks_and_steps_are_of_order_four():
    """Housner's ratio at each impact; times of impacts are of order 4, though steps are split."""
    model, corners = block()
    exact = [x.t for x in simulate(model, tilted(-0.15), [0, 0, 0], [0, 1.6], contacts=corners, rtol=1e-11).impacts]
    ratio = 1 - 1.5 * WIDE**2 / (WIDE**2 + HIGH**2)
    errors = []
    for steps in (20, 80):
        motion = simulate_fixed(model, tilted(-0.15), [0, 0, 0], step=1.6 / steps, steps=steps, contacts=corners)
        for x in motion.impacts:
            np.testing.assert_allclose(x.v_after[2] / x.v_before[2], ratio, rtol=1e-9)
        errors.append(np.abs(np.array([x.t for x in motion.impacts]) - exact).max())
    assert len(exact) == 3
    assert errors[0] / errors[1] > 100  # about 256 of order 4
    assert [x.closed for x in motion.phases] == [("left",), ("right",), ("left",), ("right",)]
    value, wanted = (
        objective_value(x, Objective(integral=[KineticEnergy()]))
        for x in (motion, simulate(model, tilted(-0.15), [0, 0, 0], [0, 1.6], contacts=corners))
    )
    np.testing.assert_allclose(value, wanted, rtol=1e-4)


def test_a_short_dip_between_steps_is_found():
    """A ball thrown up that is above the floor at both ends of a step, and below between."""
    model, _ = ball(0.8)
    ceiling = [UnilateralContact(Contact("ball", [0, 0, 0], directions=[[0, 0, -1]], other_point=[0, 0, 1.0]), 1.0)]
    motion = simulate_fixed(model, [0.9], [2.0], step=0.4, steps=1, contacts=ceiling)
    assert len(motion.impacts) == 1
    np.testing.assert_allclose(motion.impacts[0].t, (2 - np.sqrt(4 - 0.2 * G)) / G, rtol=1e-12)


def test_no_contacts_change_nothing():
    model, _ = ball(0.5)
    plain, empty = (simulate_fixed(model, [1.0], [0], step=0.1, steps=5, **x) for x in ({}, {"contacts": []}))
    np.testing.assert_allclose(empty.q, plain.q, rtol=1e-14)
    assert empty.impacts == ()
    assert [x.closed for x in empty.phases] == [()]


def test_results_pickle_compare_and_are_sliced():
    model, floor = ball(0.8)
    options = {"step": 0.1, "steps": 8, "contacts": floor, "design": kg.Design(model, ["gravity.z"])}
    motion = simulate_fixed(model, [1.1], [0.0], **options)
    assert pickle.loads(pickle.dumps(motion)) == motion == simulate_fixed(model, [1.1], [0.0], **options)
    assert motion[2:4].t.tolist() == motion.t[2:4].tolist()
    assert motion.to_xarray()["forces"].dims == ("time", "row")
    np.testing.assert_allclose(motion(0.25).q[0], [1.1 - G * 0.25**2 / 2], rtol=1e-12)
    with pytest.raises(InputError, match=r"contacts open or close between the steps at 0\.4 and 0\.5 s"):
        motion([0.4, 0.45])
    with pytest.raises(InputError, match="did not keep every step"):
        objective_value(motion[2:4], J)


def test_rows_that_depend_on_each_other():
    """A flat block lands on both corners, which both stick along x: a motion, but no derivative."""
    model, corners = block(wide=1.0)
    start = standing(-0.15, 1.0), [0, 0, 0]
    motion = simulate_fixed(model, *start, step=0.1, steps=8, contacts=corners)
    assert motion.phases[-1].closed == ("left", "right")
    np.testing.assert_allclose(motion.forces[-1], [0, G, 0, G], atol=1e-8)
    with pytest.raises(kg.KinegradError, match=r"depend|redundant|row"):
        adjoint_gradient(model, *start, J, step=0.1, steps=8, contacts=corners)


def test_what_goes_on_without_end_or_diverges_is_told():
    model, floor = ball(0.8)
    restless = {"step": 0.5, "steps": 2, "contacts": floor, "sticking_speed": 1e-300}
    motion = simulate_fixed(model, [0.11], [0.0], design=kg.Design(model, ["gravity.z"]), **restless)
    assert (motion.status, motion.success, motion.steps, len(motion.t)) == (-2, False, 0, 1)
    assert (
        "given up at t = 0.406371 s: contacts open and close 100 times in one step; expected a larger" in motion.message
    )
    assert len(motion.impacts) == 100
    assert motion.phases[-1].end >= motion.phases[-1].start
    with pytest.raises(SolveError, match="given up"):
        adjoint_gradient(model, [0.11], [0.0], J, **restless)
    design = kg.Design(model, ["gravity.z"])
    burst = simulate_fixed(model, [1.1], [1e308], step=10.0, steps=3, contacts=floor, design=design)
    assert burst.status == -1
    assert "diverged at t = 10 s in joint 'z'" in burst.message
    assert np.isfinite(burst.q).all()


def test_optimisation_passes_contacts_and_constraints_on():
    """Simulated gives J and its gradient, direct or adjoint, with the constraints of each design's own model."""
    model, contacts, rod = railed()
    design = kg.Design(model, ["gravity.z", "bead.mass"])
    options = {"step": 0.04, "steps": 20, "contacts": contacts, "constraints": rod}
    ways = [Simulated(J, [-1.0, 1.0], [0, 0], gradient=x, **options) for x in ("adjoint", "direct")]
    (value, slope), (other, same) = (way(design.at([-9.0, 1.2])) for way in ways)
    assert value == pytest.approx(other, rel=1e-12)
    np.testing.assert_allclose(slope, same, rtol=1e-10)
    (wanted,) = converged(lambda x: [ways[0](design.at(x))[0]], np.array([-9.0, 1.2]), 0, 1e-3)
    assert slope[0] == pytest.approx(wanted, rel=1e-8)


def test_what_is_refused():
    model, floor = ball(0.5)
    run = {"step": 0.1, "steps": 5, "contacts": floor}
    both = (simulate_fixed, lambda *state, **options: adjoint_gradient(*state, J, **options))
    for function in both:
        with pytest.raises(InputError, match=r"batch shape \(2,\) and `contacts` are given; expected one state"):
            function(model, [[1.0], [1.1]], [0], **run)
        with pytest.raises(InputError, match="`stabilisation` and `contacts`"):
            function(model, [1.0], [0], stabilisation=3.0, **run)
        with pytest.raises(InputError, match="'implicit_midpoint' and `contacts`"):
            function(model, [1.0], [0], method="implicit_midpoint", **run)
        with pytest.raises(InputError, match=r"`contacts` .* expected a list of UnilateralContact"):
            function(model, [1.0], [0], **run | {"contacts": "floor"})
        with pytest.raises(InputError, match="`sticking_speed`"):
            function(model, [1.0], [0], sticking_speed=np.nan, **run)
        with pytest.raises(InputError, match=r"`q0` has contact 'floor' 0\.05 m below its floor"):
            function(model, [0.05], [0], **run)
    with pytest.raises(InputError, match="several models and `contacts`"):
        simulate_fixed([model, model], [1.0], [0], **run)
    timed = Feedback(lambda t, q, v: [np.sin(t)], None, None)
    with pytest.raises(InputError, match="`tau` is a Feedback that follows time"):
        adjoint_gradient(model, [0.2], [0], J, tau=timed, **run)
    chase = Objective(integral=[Tracking(lambda t: t[:, None])])
    with pytest.raises(InputError, match="`integral` has a Tracking that depends on time explicitly"):
        adjoint_gradient(model, [0.2], [0], chase, **run)
    motion = simulate_fixed(model, [0.2], [0], design=kg.Design(model, ["ball.mass"]), **run)
    with pytest.raises(InputError, match="depends on time explicitly"):
        objective_gradient(motion, chase)
    with pytest.raises(InputError, match="`dq0_dp` does not agree with the constraints"):
        simulate_fixed(model, [0.1], [0], design=kg.Design(model, ["ball.mass"]), dq0_dp=[[1.0]], **run)
    other, _ = plate()
    sticks = [UnilateralContact(Contact("body", directions="xz", other="plate", name="sticks"))]
    with pytest.raises(InputError, match="'sticks' sticks to another link where it lands, which follows the initial"):
        adjoint_gradient(other, [0, 1.0], [0, 0], J, **run | {"contacts": sticks})
