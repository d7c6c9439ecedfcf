"""The implicit midpoint rule in (q, p): what makes it worth its price, and that its derivatives are exact."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import kinegrad as kg
from kinegrad import Design, Loads, ModelBuilder, samples
from kinegrad.errors import SingularError, SolveError
from kinegrad.simulate import (
    Evaluation,
    Feedback,
    Objective,
    Simulated,
    UserTerm,
    adjoint_gradient,
    objective_gradient,
    objective_value,
    simulate_fixed,
)
from kinegrad.simulate.midpoint import curvature
from tests.simulate.models import LENGTHS_AND_MASSES, chain, everything, feedback, pendulum

STATE = np.array([1.0, 0.5]), np.array([0.3, -0.2])
MIDPOINT = {"method": "implicit_midpoint"}


def damped_and_loaded(which):
    """A design with a damper among its parameters, under loads of which one component is a parameter too."""
    plain = {"pendulum": pendulum, "chain": chain}[which]()
    model = plain.model.replace(damping=[0.3, 0.1])
    first, last = model.link_names[0], model.link_names[-1]
    loads = Loads(force={last: [1.0, 2.0, 3.0]}, point={last: [0.1, 0.0, -0.2]}, torque={first: [1.0, 2.0, 0.3]})
    more = {"damper": f"{model.joint_names[1]}.damping", "push": f"{last}.load.force.x"}
    return Design(
        model, LENGTHS_AND_MASSES["double_pendulum" if which == "pendulum" else "spatial_chain"] | more, loads
    )


def energy(model, motion):
    return kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)


def last(x, i):
    """The i-th coordinate or speed at the end, as an objective."""

    def term(at):
        slope = np.zeros_like(at.q)
        slope[..., i] = 1.0
        return Evaluation(getattr(at, x)[..., i], **{f"d{x}": slope})

    return Objective(end=[UserTerm(term)])


def floating():
    """A body that floats, with an arm on an oblique hinge."""
    builder = ModelBuilder("floating", gravity=(0, 0, 0))
    builder.add("float", None, kg.free(), link="base", inertia=kg.Inertia.box(2.0, [0.3, 0.2, 0.4]))
    arm = kg.Inertia.box(1.0, [0.1, 0.1, 0.6], [0.0, 0.0, 0.3])
    builder.add("hinge", "base", kg.revolute([1, 2, 3]), link="arm", inertia=arm, placement=[0.1, 0.0, 0.2])
    return builder.build()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("starts", "step", "seconds", "grows"),
    [([[0.5, 0.3]], 0.05, 1000, 1.02), ([[2.0, 0.5], [1.0, 1.0]], 0.01, 300, 1.5)],
    ids=["regular", "chaotic"],
)
def test_energy_of_a_double_pendulum_does_not_drift(starts, step, seconds, grows):
    """Errors come and go, and the last are no larger than the first.

    One start swings regularly, two are chaotic, so that their largest error depends on where they happen to come by.
    Semi-implicit Euler, in steps of 0.01 s, loses most of the energy.
    """
    model = samples.double_pendulum()
    still = [0.0, 0.0]
    motion = simulate_fixed(
        model, starts, still, step=step, steps=round(seconds / step), every=round(0.1 / step), **MIDPOINT
    )
    assert motion.success
    E = energy(model, motion)
    error, size = np.abs(E - E[0]), np.ptp(kg.potential_energy(model, motion.q), axis=0)
    assert (error.max(axis=0) < 5e-3 * size).all()
    assert (error[1000:].max(axis=0) < grows * error[:1000].max(axis=0)).all()
    assert (error[-1000:].mean(axis=0) < grows * error[:1000].mean(axis=0)).all()
    run = {"step": 0.01, "steps": 100 * seconds, "every": 10}
    euler = energy(model, simulate_fixed(model, starts, still, method="semi_implicit_euler", **run))
    assert (np.abs(euler - E[0])[-1000:].mean(axis=0) > 100 * error[-1000:].mean(axis=0)).all()


@pytest.mark.parametrize("model", [samples.double_pendulum(), floating()], ids=["pendulum", "floating"])
def test_the_discrete_flow_is_symplectic(model):
    """SᵀΩS = Ω for the exact tangent S of the flow in (q, p), found by adjoints of q and v at the end.

    Without the momentum in the place of the speed it is not: the mass matrix changes along the motion.
    """
    n = model.n
    rng = np.random.default_rng(1)
    q0, v0 = rng.normal(size=(2, n)) * 0.5
    run = {"step": 0.05, "steps": 20, **MIDPOINT}
    rows = [adjoint_gradient(model, q0, v0, last(x, i), **run) for x in "qv" for i in range(n)]
    A = np.array([[*row.dvalue_dq0, *row.dvalue_dv0] for row in rows])
    motion = simulate_fixed(model, q0, v0, **run)

    def to_momentum(q, v):
        inertial = model.replace(gravity=(0, 0, 0))
        change = kg.inverse_dynamics_derivatives(inertial, q, np.zeros(n), v)
        return np.block([[np.eye(n), np.zeros((n, n))], [change.dtau_dq, change.dtau_da]])

    S = to_momentum(motion.q[-1], motion.v[-1]) @ A @ np.linalg.inv(to_momentum(q0, v0))
    Omega = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    np.testing.assert_allclose(S.T @ Omega @ S, Omega, atol=1e-10)
    assert np.abs(A.T @ Omega @ A - Omega).max() > 1e-3, "otherwise the test shows nothing"


def test_motion_comes_back():
    """The rule is symmetric in time: with its speeds reversed, a motion takes the same way back."""
    model = samples.double_pendulum()
    there = simulate_fixed(model, *STATE, step=0.02, steps=100, **MIDPOINT)
    back = simulate_fixed(model, there.q[-1], -there.v[-1], step=0.02, steps=100, **MIDPOINT)
    np.testing.assert_allclose(back.q[::-1], there.q, atol=1e-11)
    np.testing.assert_allclose(back.v[::-1], -there.v, atol=1e-11)


def test_momentum_of_a_floating_model_is_constant():
    """Linear momentum to rounding, whatever the arm does; RK4 loses it at the order of its steps."""
    model = floating()
    rng = np.random.default_rng(2)
    q0, v0 = rng.normal(size=(2, model.n))
    motion = simulate_fixed(model, q0, v0, step=0.02, steps=200, **MIDPOINT)
    linear = kg.momentum(model, motion.q, motion.v).linear
    np.testing.assert_allclose(linear, linear[:1].repeat(len(linear), axis=0), rtol=0, atol=1e-13 * 200)
    rk4 = simulate_fixed(model, q0, v0, step=0.02, steps=200)
    assert np.ptp(kg.momentum(model, rk4.q, rk4.v).linear, axis=0).max() > 1e-9, "otherwise the test shows nothing"


def test_curvature_of_the_kinetic_energy():
    """∂²T/∂q² by polarisation, against differences of its gradient, ½ wᵀ ∂M/∂q w."""
    model = samples.random_tree(5, seed=4)
    motion = simulate_fixed(model, np.zeros(5), np.zeros(5), step=0.1, steps=1, **MIDPOINT)
    law, rng = motion._law, np.random.default_rng(0)
    q, w = rng.normal(size=(2, 3, 5))
    inertial = model.replace(gravity=(0, 0, 0), stiffness=np.zeros(5), damping=np.zeros(5))

    def gradient(q):
        return kg.inverse_dynamics_vjp(inertial, q, 0 * q, w, w).dq / 2

    found = curvature(law, q, w)
    for j, e in enumerate(np.eye(5)):
        coarse, fine = ((gradient(q + h * e) - gradient(q - h * e)) / (2 * h) for h in (2e-3, 1e-3))
        np.testing.assert_allclose(found[..., j], (4 * fine - coarse) / 3, atol=1e-9 * np.abs(found).max())
    assert np.array_equal(curvature(law, q, 0 * w), np.zeros((3, 5, 5)))


@pytest.mark.parametrize("tau", [None, feedback()], ids=["free", "feedback"])
@pytest.mark.parametrize("which", ["pendulum", "chain"])
def test_tangents_are_exact(which, tau):
    """With damper, loads and their parameters: central differences of the same steps, extrapolated."""
    design = damped_and_loaded(which)
    run = {"step": 0.02, "steps": 30, "tau": tau, **MIDPOINT}
    slope = np.ones((2, design.p)) / 4
    motion = simulate_fixed(design.model, *STATE, design=design, dq0_dp=slope, dv0_dp=-slope, **run)

    def at(change):
        moved = design.at(design.values + change)
        q0, v0 = STATE[0] + slope @ change, STATE[1] - slope @ change
        other = simulate_fixed(moved.model, q0, v0, loads=moved.loads, **run)
        return np.stack([other.q, other.v, other.a, other.tau])

    found = np.stack([motion.dq_dp, motion.dv_dp, motion.da_dp, motion.dtau_dp])
    for k, direction in enumerate(np.eye(design.p)):
        coarse, fine = ((at(h * direction) - at(-h * direction)) / (2 * h) for h in (2e-4, 1e-4))
        expected = (4 * fine - coarse) / 3
        np.testing.assert_allclose(found[..., k], expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("tau", [None, feedback()], ids=["free", "feedback"])
@pytest.mark.parametrize("which", ["pendulum", "chain"])
def test_adjoint_is_the_transpose_of_the_tangent(which, tau):
    """Same numbers to rounding, for a batch of states, whatever the segments; and differences by state and torques."""
    design = damped_and_loaded(which)
    objective = everything(design.model)
    q0, v0 = np.random.default_rng(5).normal(size=(2, 3, 2))
    run = {"step": 0.05, "steps": 23, "tau": tau, **MIDPOINT}
    direct = objective_gradient(simulate_fixed(design.model, q0, v0, design=design, **run), objective)
    for segment in (None, 1, 23):
        found = adjoint_gradient(design.model, q0, v0, objective, design=design, segment=segment, **run)
        np.testing.assert_allclose(found.value, direct.value, rtol=1e-12)
        np.testing.assert_allclose(
            found.dvalue_dp, direct.dvalue_dp, rtol=1e-10, atol=1e-10 * np.abs(direct.dvalue_dp).max()
        )

    def value(q0=q0, v0=v0, **more):
        motion = simulate_fixed(design.model, q0, v0, loads=design.loads, **(run | more))
        return objective_value(motion, objective)

    def difference(at):
        coarse, fine = ((at(h) - at(-h)) / (2 * h) for h in (2e-4, 1e-4))
        return (4 * fine - coarse) / 3

    scale = 1e-8 * np.abs(found.dvalue_dq0).max()
    for j, e in enumerate(np.eye(2)):
        for gradient, name, start in ((found.dvalue_dq0, "q0", q0), (found.dvalue_dv0, "v0", v0)):
            expected = difference(lambda h, name=name, start=start, e=e: value(**{name: start + h * e}))
            np.testing.assert_allclose(gradient[:, j], expected, atol=scale)
    if tau is None:
        for k in (0, 11, 22):
            push = np.zeros((23, 2))
            push[k, 1] = 1.0
            expected = difference(lambda h, push=push: value(tau=h * push))
            np.testing.assert_allclose(found.dvalue_dtau[k, :, 1], expected, atol=scale)


@pytest.mark.parametrize(
    "tau",
    [
        [1.0, -0.5],
        CubicSpline([0, 0.5, 1.0], [[0, 1], [1, 0], [-1, 2]]),
        feedback(),
        lambda t, q, v: -3 * q - q**3 - np.cos(t) * v,
    ],
    ids=["constant", "spline", "feedback", "function"],
)
def test_forced_and_damped_motion_is_that_of_rk4(tau):
    """Both converge to one motion: the difference falls by four as the step is halved."""
    design = damped_and_loaded("chain")
    run = {"tau": tau, "loads": design.loads}
    exact = simulate_fixed(design.model, *STATE, step=1 / 800, steps=800, **run)
    errors = []
    for steps in (50, 100, 200):
        found = simulate_fixed(design.model, *STATE, step=1 / steps, steps=steps, **run, **MIDPOINT)
        assert found.success
        errors.append(max(np.abs(getattr(found, x)[-1] - getattr(exact, x)[-1]).max() for x in "qv"))
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2, atol=0.1)


def test_function_without_derivatives_gives_the_same_steps():
    """Its differences steer Newton's method, which converges to rounding all the same."""
    model = samples.double_pendulum()
    run = {"step": 0.05, "steps": 20, **MIDPOINT}
    exact = simulate_fixed(model, *STATE, tau=feedback(), **run)
    plain = simulate_fixed(model, *STATE, tau=feedback().function, **run)
    np.testing.assert_allclose(plain.q, exact.q, rtol=0, atol=1e-13)


def test_batches_and_several_models():
    """A state gives the same motion alone, in a batch, and as one of several models with torques of their own."""
    design = pendulum()
    q0, v0 = np.random.default_rng(3).normal(size=(2, 3, 2))
    tau = np.random.default_rng(4).normal(size=(10, 3, 2))
    run = {"step": 0.02, "steps": 10, **MIDPOINT}
    together = simulate_fixed(design.model, q0, v0, tau=tau, design=design, **run)
    models = [design.model] * 3
    many = simulate_fixed(models, q0, v0, tau=tau, **run)
    for i in range(3):
        alone = simulate_fixed(design.model, q0[i], v0[i], tau=tau[:, i], design=design, **run)
        for x in ("q", "v", "a", "tau", "dq_dp", "dtau_dp"):
            np.testing.assert_allclose(getattr(together, x)[:, i], getattr(alone, x), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(many.q[:, i], alone.q, rtol=1e-13, atol=1e-14)
        assert np.array_equal(many.tau[:, i], alone.tau)
    lighter = simulate_fixed([model.replace(mass={"Q": m}) for model, m in zip(models, (1, 2, 3), strict=True)], q0, v0,
                             **run)  # fmt: skip
    one = simulate_fixed(design.model.replace(mass={"Q": 2.0}), q0[1], v0[1], **run)
    np.testing.assert_allclose(lighter.q[:, 1], one.q, rtol=1e-13)


def test_steps_that_cannot_be_solved_say_so():
    """A push that grows with the cube of the speed leaves the equations of a long step without a solution."""
    model = samples.double_pendulum()

    def push(t, q, v):
        return 1e-2 * v**3 * [0, 1.0]

    run = {"step": 0.1, "steps": 20, "tau": push, **MIDPOINT}
    motion = simulate_fixed(model, [[1, 0.5]] * 3, [[0, 0], [0, 80], [0, 0.1]], **run)
    assert not motion.success
    assert motion.message.startswith("1 of 3 states diverged; the first: state 1 diverged at t = 0.1 s in joint")
    assert "Newton's method does not solve the equations of the step" in motion.message
    assert np.isfinite(motion.q[:, [0, 2]]).all()
    assert np.isnan(motion.q[1:, 1]).all()
    alone = simulate_fixed(model, [1, 0.5], [0, 80], **run)
    assert alone.q.shape == (1, 2), "what there is of it"
    several = simulate_fixed([model, model], [1, 0.5], [[0, 0], [0, 1e200]], step=0.1, steps=3, **MIDPOINT)
    assert not several.success
    assert np.isfinite(several.q[:, 0]).all()
    gain = Feedback(push, None, lambda t, q, v: 3e-2 * v[..., None] ** 2 * np.diag([0, 1.0]))
    with pytest.raises(SolveError, match="Newton's method"):
        adjoint_gradient(model, [1, 0.5], [0, 80], last("q", 0), **(run | {"tau": gain}))


def test_rest_is_a_motion_too():
    """At rest there is nothing to compare a residual with."""
    model = samples.double_pendulum()
    motion = simulate_fixed(model, [0, 0], [0, 0], step=0.1, steps=10, **MIDPOINT)
    assert motion.success
    assert not motion.q.any()


def test_singular_mechanism_names_the_time():
    model = samples.double_pendulum().replace(mass=[1.0, 0.0], com={"Q": [0, 0, 0]})
    with pytest.raises(SingularError, match=r"at t = 0 s nothing resists joint 'hinge2'"):
        simulate_fixed(model, *STATE, step=0.1, steps=2, **MIDPOINT)


def test_stiff_springs_need_no_short_steps():
    """The rule is stable where explicit ones are not: a spring of 1e6 N·m/rad in steps of ten of its radians."""
    model = samples.double_pendulum().replace(stiffness=[0.0, 1e6])
    motion = simulate_fixed(model, [0.5, 0.0], [0, 0], step=0.01, steps=200, **MIDPOINT)
    assert motion.success
    assert np.ptp(energy(model, motion)) < 1e-2 * np.abs(energy(model, motion)[0])
    assert not simulate_fixed(model, [0.5, 0.0], [0, 0], step=0.01, steps=200).success, "else the test shows nothing"


def test_objectives_of_designs_take_the_method():
    """Simulated, by both gradients."""
    design = pendulum()
    found = [
        Simulated(everything(design.model), *STATE, step=0.05, steps=10, gradient=gradient, **MIDPOINT)(design)
        for gradient in ("adjoint", "direct")
    ]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-10)
