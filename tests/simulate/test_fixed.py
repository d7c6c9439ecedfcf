"""Fixed steps: order of convergence, energy, batches, exact tangents, divergence; MuJoCo makes the same steps."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from kinegrad.errors import InputError, SingularError
from kinegrad.simulate import simulate, simulate_fixed
from kinegrad.simulate.fixed import gregory
from tests.simulate.models import chain, feedback, pendulum

STATE = [1.0, 0.5], [0.3, -0.2]


@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("semi_implicit_euler", 1), ("implicit_midpoint", 2)])
def test_order_of_convergence(method, order):
    """Halving the step divides the error by 2^order."""
    model = samples.double_pendulum()
    exact = simulate(model, *STATE, [0, 1], rtol=1e-12, atol=1e-13).q[-1]
    sizes = (100, 200, 400)
    errors = [
        np.abs(simulate_fixed(model, *STATE, step=1 / k, steps=k, method=method).q[-1] - exact).max() for k in sizes
    ]
    found = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(found, order, atol=0.25)


def test_semi_implicit_euler_keeps_energy_only_of_constant_mass():
    """Of one pendulum, whose mass matrix is constant, errors come and go for 40 s.  Of two, they grow."""
    drift = {}
    for model in (samples.multi_pendulum(1), samples.double_pendulum()):
        run = {"step": 0.01, "steps": 4_000, "method": "semi_implicit_euler"}
        motion = simulate_fixed(model, [1.0, 0.5][: model.n], [0.0] * model.n, **run)
        E = kg.kinetic_energy(model, motion.q, motion.v) + kg.potential_energy(model, motion.q)
        drift[model.n] = np.abs(E[-400:] - E[0]).max() / np.abs(E[:400] - E[0]).max()
    assert drift[1] < 1.05
    assert drift[2] > 3, "otherwise the documentation is too careful"


@pytest.mark.parametrize("method", ["rk4", "semi_implicit_euler", "implicit_midpoint"])
@pytest.mark.parametrize("tau", [None, feedback()], ids=["free", "feedback"])
@pytest.mark.parametrize("design", [pendulum(), chain()], ids=["pendulum", "chain"])
def test_tangents_are_exact(design, tau, method):
    """Central differences of the same steps, extrapolated; round-off 1e-15 / 1e-4."""
    run = {"step": 0.02, "steps": 30, "tau": tau, "method": method}
    slope = np.ones((2, design.p)) / 4
    motion = simulate_fixed(design.model, *STATE, design=design, dq0_dp=slope, **run)

    def at(change):
        moved = simulate_fixed(design.at(design.values + change).model, STATE[0] + slope @ change, STATE[1], **run)
        return np.stack([moved.q, moved.v, moved.a, moved.tau])

    found = np.stack([motion.dq_dp, motion.dv_dp, motion.da_dp, motion.dtau_dp])
    for k, direction in enumerate(np.eye(design.p)):
        coarse, fine = ((at(h * direction) - at(-h * direction)) / (2 * h) for h in (2e-4, 1e-4))
        expected = (4 * fine - coarse) / 3
        np.testing.assert_allclose(found[..., k], expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


def test_batch_is_each_state_alone():
    """Same bits, any batch shape, sensitivities too."""
    design = pendulum()
    q0, v0 = np.random.default_rng(3).normal(size=(2, 2, 3, 2))
    run = {"step": 0.02, "steps": 10, "design": design, "tau": feedback()}
    together = simulate_fixed(design.model, q0, v0, **run)
    assert together.q.shape == (11, 2, 3, 2)
    assert together.dq_dp.shape == (11, 2, 3, 2, 4)
    for i in np.ndindex(2, 3):
        alone = simulate_fixed(design.model, q0[i], v0[i], **run)
        assert np.array_equal(alone.q, together.q[(slice(None), *i)])
        np.testing.assert_allclose(alone.dq_dp, together.dq_dp[(slice(None), *i)], rtol=1e-12, atol=1e-14)


def test_every_keeps_some():
    model = samples.double_pendulum()
    all_, some = (simulate_fixed(model, *STATE, step=0.01, steps=20, every=k) for k in (1, 5))
    assert np.array_equal(all_.q[::5], some.q)
    assert np.array_equal(all_.t[::5], some.t)
    assert np.array_equal(all_.a[::5], some.a)


def test_torques_are_held_during_a_step():
    """As if the steps were runs of their own."""
    model, tau = samples.double_pendulum(), np.random.default_rng(0).normal(size=(3, 2))
    whole = simulate_fixed(model, *STATE, step=0.1, steps=3, tau=tau)
    q, v = STATE
    for k in range(3):
        one = simulate_fixed(model, q, v, step=0.1, steps=1, tau=tau[k])
        q, v = one.q[-1], one.v[-1]
        np.testing.assert_allclose(whole.q[k + 1], q, rtol=1e-14)
    assert np.array_equal(whole.tau, tau[[0, 1, 2, 2]])


def test_divergence_of_one_state_leaves_the_others():
    """Pushed with v³ and long steps, the fast state overflows."""
    model = samples.double_pendulum()
    motion = simulate_fixed(
        model, [[1, 0.5]] * 3, [[0, 0], [0, 80], [0, 0.1]], step=0.1, steps=20, tau=lambda t, q, v: 1e-3 * v**3 * [0, 1]
    )
    assert not motion.success
    assert motion.message.startswith("1 of 3 states diverged; the first: state 1 diverged at t = ")
    assert "joint 'hinge2'" in motion.message
    assert np.isfinite(motion.q[:, [0, 2]]).all()
    assert np.isnan(motion.q[-1, 1]).all()
    alone = simulate_fixed(model, [1, 0.5], [0, 80], step=0.1, steps=20, tau=lambda t, q, v: 1e-3 * v**3 * [0, 1])
    assert alone.steps < 20
    assert np.isfinite(alone.q).all(), "what there is of it"


def test_singular_mechanism_names_the_time():
    with pytest.raises(SingularError, match=r"at t = 0 s nothing resists joint 'hinge2'"):
        simulate_fixed(
            samples.double_pendulum().replace(mass=[1.0, 0.0], com={"Q": [0, 0, 0]}), *STATE, step=0.1, steps=2
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": 0.0}, r"`step` is 0.0; expected a positive number"),
        ({"steps": 2.5}, r"`steps` is 2.5; expected a whole number"),
        ({"every": 3}, r"`every` is 3; expected a whole number that divides `steps`, 10"),
        ({"method": "euler"}, r"`method` is 'euler'; expected one of 'rk4', 'semi_implicit_euler', 'impl"),
        ({"tau": np.ones((11, 2))}, r"`tau` has shape \(11, 2\); expected \(2,\) for a constant, or \(10, ..., 2\)"),
    ],
)
def test_wrong_input_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        simulate_fixed(samples.double_pendulum(), *STATE, **({"step": 0.1, "steps": 10} | change))


@pytest.mark.parametrize("steps", [1, 4, 5, 6, 20])
def test_gregory_integrates(steps):
    """Lines exactly; cubics too, from five steps on."""
    t = np.linspace(0, 1, steps + 1)
    for power in (0, 1, 2, 3) if steps >= 5 else (0, 1):
        assert gregory(steps, 1 / steps) @ t**power == pytest.approx(1 / (power + 1), abs=1e-14)


def test_mujoco_follows():
    """Its RK4 with the same step is the same method: a double pendulum of cylinders, 2000 steps.

    Found: 6e-15.  Rounding may differ with the machine and grows with the motion; hence 1e-11.
    """
    mujoco = pytest.importorskip("mujoco")
    from tests.peers.mujoco_model import to_mujoco

    model = samples.spatial_chain(2)
    twin = to_mujoco(model)
    twin.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    twin.opt.timestep = 0.001
    data = mujoco.MjData(twin)
    data.qpos[:], data.qvel[:] = STATE
    path = [data.qpos.copy()]
    for _ in range(2000):
        mujoco.mj_step(twin, data)
        path.append(data.qpos.copy())
    motion = simulate_fixed(model, *STATE, step=0.001, steps=2000)
    assert np.ptp(motion.q, axis=0).min() > 0.5, "it moves"
    np.testing.assert_allclose(motion.q, path, rtol=0, atol=1e-11)


@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint"])
@pytest.mark.parametrize("tau", [None, feedback()], ids=["free", "feedback"])
def test_no_states_with_a_design(method, tau):
    """A batch may be empty; its derivatives then are, too."""
    model = samples.double_pendulum()
    design = kg.Design(model, ["gravity.z", "gravity.x"])
    run = simulate_fixed(model, np.zeros((0, 2)), [0, 0], step=0.1, steps=3, design=design, tau=tau, method=method)
    assert run.success
    assert run.dv_dp.shape == (4, 0, 2, 2)


@pytest.mark.parametrize("named", ["step", "method", "every", "steps"])
def test_messages_are_on_one_line(named):
    """Whatever was given: arrays are printed on several."""
    given = {"step": 0.1, "steps": 3, named: np.ones((3, 3))}
    with pytest.raises(InputError, match=f"`{named}` is ") as error:
        simulate_fixed(samples.double_pendulum(), *STATE, **given)
    assert "\n" not in str(error.value)


PUSH = np.array([1e160, 0.0])


@pytest.mark.parametrize("tau", [PUSH, lambda t, q, v: PUSH], ids=["compiled", "in Python"])
def test_a_finite_state_whose_accelerations_overflow_has_diverged(tau):
    """At the end, where no step follows that would show it."""
    euler = {"step": 1.0, "steps": 1, "method": "semi_implicit_euler"}
    run = simulate_fixed(samples.double_pendulum(), [[1, 1]], [0, 0], tau=tau, **euler)
    assert np.isfinite(run.v).all()
    assert not run.success
    assert run.message.startswith("the accelerations of state 0 diverged at t = 1 s: they overflow")
