"""Fixed steps under constraints: order, exact derivatives of steps with their projection, direct and adjoint."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError, samples
from kinegrad.simulate import (
    Feedback,
    KineticEnergy,
    Objective,
    TorqueSquared,
    adjoint_gradient,
    objective_gradient,
    objective_value,
    simulate,
    simulate_fixed,
)
from tests.simulate.test_constrained import bead, converged

STEPS = 8
STARTS = np.zeros((2, 3)), np.array([[1.0, 0, 0], [2.0, 0.3, 0]])  # neither speeds agree with the loop: projected
TAU = np.random.default_rng(0).normal(size=(STEPS, 3))
PD = Feedback(lambda t, q, v: -3 * q - v, lambda t, q, v: -3 * np.eye(3), lambda t, q, v: -np.eye(3))
J = Objective(end=[KineticEnergy()], integral=[TorqueSquared(), KineticEnergy()])


@pytest.fixture(scope="module")
def four_bar():
    model, loop = samples.four_bar()
    return model, loop, kg.Design(model, ["rocker.mass", "coupler.placement.x"])  # the second opens the loop


def test_steps_are_of_order_four_and_on_the_constraints():
    model, rod = bead()
    start = ([0.7, 0.0], [0.0, 1.0])
    exact = simulate(model, *start, [0, 0.5], constraints=rod, rtol=1e-11, atol=1e-12).q[-1]
    errors = []
    for steps in (20, 40):
        motion = simulate_fixed(model, *start, step=0.5 / steps, steps=steps, constraints=rod)
        assert np.abs(rod.error(motion.q)).max() < 1e-14
        assert np.abs(rod.velocity(motion.q, motion.v)).max() < 1e-13
        errors.append(np.abs(motion.q[-1] - exact).max())
    assert errors[0] / errors[1] > 12  # 16 of order 4
    found = kg.constrained_dynamics(model, rod, motion.q, motion.v, motion.tau)
    np.testing.assert_array_equal(motion.forces, found.forces)
    assert motion.row_names == ("rod",)


@pytest.mark.parametrize(
    ("tau", "method", "how"),
    [(TAU, "rk4", None), (PD, "semi_implicit_euler", None), (TAU, "rk4", 10.0)],
    ids=["projected", "feedback", "stabilised"],
)
def test_derivatives_are_those_of_the_discrete_motion(four_bar, tau, method, how):
    """Direct against converged differences of whole runs, adjoint against direct to rounding; its other gradients."""
    model, loop, design = four_bar
    options = {"step": 0.03, "steps": STEPS, "project": True, "method": method, "stabilisation": how}

    def run(x=design.values, starts=STARTS, tau=tau):
        at = design.at(x).model
        return simulate_fixed(at, *starts, constraints=kg.ConstraintSet(at, loop.constraints), tau=tau, **options)

    motion = simulate_fixed(model, *STARTS, constraints=loop, design=design, tau=tau, **options)
    for k in range(2):
        differences = converged(lambda x: [getattr(run(x), name) for name in "qva"], design.values, k, 1e-3)
        for name, x in zip("qva", differences, strict=True):
            slope = getattr(motion, f"d{name}_dp")[..., k]
            assert np.abs(slope - x).max() < 1e-9 * np.abs(x).max()  # rounding over the step of the differences
    found = adjoint_gradient(model, *STARTS, J, constraints=loop, design=design, tau=tau, segment=3, **options)
    direct = objective_gradient(motion, J)
    np.testing.assert_allclose(found.value, direct.value, rtol=1e-13)
    np.testing.assert_allclose(found.dvalue_dp, direct.dvalue_dp, rtol=1e-11)

    def value(y):
        return [objective_value(run(starts=(STARTS[0] + y[:3], STARTS[1] + y[3:])), J)]

    for k in (0, 5):
        slope = np.concatenate([found.dvalue_dq0, found.dvalue_dv0], axis=-1)[:, k]
        np.testing.assert_allclose(slope, converged(value, np.zeros(6), k, 1e-3)[0], rtol=1e-8, atol=1e-9)
    if tau is TAU:

        def pushed(y):
            return [objective_value(run(tau=TAU + np.eye(STEPS)[:, 4:5] * y), J)]

        np.testing.assert_allclose(
            found.dvalue_dtau[4, :, 1], converged(pushed, np.zeros(3), 1, 1e-2)[0], rtol=1e-8, atol=1e-10
        )


def test_redundant_rows_share_their_forces(four_bar):
    """A hinge in space instead of a pin in the plane: the same steps, and the same gradients, both ways."""
    model, loop, _ = four_bar
    pin, design = loop["pin"], kg.Design(model, ["rocker.mass"])
    hinge = kg.ConstraintSet(model, [kg.Loop(pin.link, other=pin.other, directions="xyzXZ", name="hinge")])
    given = {"step": 0.03, "steps": STEPS, "project": True, "design": design, "tau": TAU}
    ways = {"constraints": loop}, {"constraints": hinge, "redundant": "least-squares"}
    one, both = (simulate_fixed(model, *STARTS, **given, **way) for way in ways)
    for name in ("q", "v", "a", "dq_dp", "dv_dp", "da_dp"):
        x = getattr(one, name)
        assert np.abs(getattr(both, name) - x).max() < 1e-11 * np.abs(x).max()
    assert np.abs(both.forces[..., [0, 2]] - one.forces).max() < 1e-11 * np.abs(one.forces).max()
    one, both = (adjoint_gradient(model, *STARTS, J, segment=3, **given, **way) for way in ways)
    for name, x in vars(one).items():
        if isinstance(x, str):
            continue
        assert np.abs(getattr(both, name) - x).max() < 1e-10 * np.abs(x).max()


def test_what_does_not_go_together_is_refused(four_bar):
    model, loop, _ = four_bar
    start, steps = ([0, 0, 0], [0, 0, 0]), {"step": 0.1, "steps": 2}
    with pytest.raises(InputError, match="'implicit_midpoint' and `constraints`"):
        simulate_fixed(model, *start, constraints=loop, method="implicit_midpoint", **steps)
    with pytest.raises(InputError, match="several models and `constraints`"):
        simulate_fixed([model, model], *start, constraints=loop, **steps)
    with pytest.raises(InputError, match="`v0` does not agree"):
        simulate_fixed(model, [0, 0, 0], [1, 0, 0], constraints=loop, **steps)
    with pytest.raises(InputError, match="`v0` does not agree"):
        adjoint_gradient(model, [0, 0, 0], [1, 0, 0], J, constraints=loop, **steps)
    for options in ({"project": True}, {"stabilisation": 1.0}, {"redundant": "least-squares"}):
        with pytest.raises(InputError, match="without `constraints`"):
            simulate_fixed(model, *start, **options, **steps)
    builder = kg.ModelBuilder("ball")
    builder.add("ball", None, kg.spherical(quaternion=True), link="ball", inertia=kg.Inertia.sphere(1.0, 0.1))
    ball = builder.build()
    held = kg.ConstraintSet(ball, [kg.Distance("ball", [1, 0, 0], other_point=[0, 0, 2], name="rod")])
    with pytest.raises(InputError, match="has quaternions"):
        simulate_fixed(ball, kg.neutral(ball), [0, 0, 0], constraints=held, **steps)


def test_an_empty_batch(four_bar):
    model, loop, _ = four_bar
    motion = simulate_fixed(model, np.zeros((0, 3)), np.zeros((0, 3)), step=0.1, steps=2, constraints=loop)
    assert motion.forces.shape == (3, 0, 2)
