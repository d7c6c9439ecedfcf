"""Fixed steps under a Python function: the numbers of the compiled loop, and of a loop of four lines.

Users write that loop themselves, so that ours must do no more in a step: forward dynamics, the function, the sums.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.simulate import simulate_fixed
from kinegrad.simulate.law import Law

METHODS = ("rk4", "semi_implicit_euler")
SHAPES = ((), (3,), (2, 40), (1, 1))
ROUNDING = {"rtol": 0, "atol": 1e-13}


def pd(t, q, v):
    return -30 * q - 2 * v + np.sin(t)


def start(model, shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (2, *shape, model.nv))


def by_hand(model, q, v, h, steps, method, tau=pd, **loads):
    """The four lines."""

    def f(t, q, v):
        return kg.forward_dynamics(model, q, v, tau(t, q, v), **loads)

    for t in np.arange(steps) * h:
        if method == "semi_implicit_euler":
            v = v + h * f(t, q, v)
            q = q + h * v
            continue
        q2, v2 = q + h / 2 * v, v + h / 2 * (a1 := f(t, q, v))
        q3, v3 = q + h / 2 * v2, v + h / 2 * (a2 := f(t + h / 2, q2, v2))
        q4, v4 = q + h * v3, v + h * (a3 := f(t + h / 2, q3, v3))
        a4 = f(t + h, q4, v4)
        q, v = q + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return q, v


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_loop_of_four_lines(method, shape, monkeypatch):
    """The same numbers; and no state is looked at while all are ordinary."""
    model = kg.samples.puma560()
    q, v = start(model, shape)
    monkeypatch.setattr(Law, "under", None)
    motion = simulate_fixed(model, q, v, step=0.01, steps=20, every=10, tau=pd, method=method)
    assert motion.success
    assert motion.q.shape == (3, *shape, 6)
    expected = by_hand(model, q, v, 0.01, 20, method)
    np.testing.assert_allclose([motion.q[-1], motion.v[-1]], expected, **ROUNDING)
    for k in range(3):
        tau = pd(motion.t[k], motion.q[k], motion.v[k])
        np.testing.assert_allclose(motion.tau[k], tau, **ROUNDING)
        np.testing.assert_allclose(motion.a[k], kg.forward_dynamics(model, motion.q[k], motion.v[k], tau), rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_compiled_loop(method):
    """A function that returns a constant."""
    model, tau = kg.samples.two_link(), np.array([0.3, -0.2])
    q, v = start(model, (5,))
    common = {"step": 0.01, "steps": 30, "method": method}
    one = simulate_fixed(model, q, v, tau=tau, **common)
    other = simulate_fixed(model, q, v, tau=lambda t, q, v: tau, **common)
    for name in ("t", "q", "v", "a", "tau"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=0, atol=1e-12)
    assert (one.nfev, one.steps, one.message) == (other.nfev, other.steps, other.message)


def strap():
    """An arm with a spring between its hand and the wall."""
    spring = kg.SpringDamper("forearm", [0, 0, 0], None, [0, 0.3, 0], stiffness=10.0)
    return kg.samples.two_link().replace(elements={"strap": spring})


def coupled():
    builder = kg.ModelBuilder("gripper")
    for side, x in (("left", 1.0), ("right", -1.0)):
        builder.add(
            side, None, kg.revolute("y"), placement=[x, 0, 0], inertia=kg.Inertia.rod(1.0, [0, 0, 0], [0, 0, 1])
        )
    builder.mimic("right", "left", multiplier=-1.0)
    return builder.build()


@pytest.mark.parametrize("method", METHODS)
def test_models_that_go_through_all_checks(method, monkeypatch):
    """Loads, force elements and couplings take the long way, to the same numbers."""
    monkeypatch.setattr(Law, "under", None)
    pushed = {"loads": kg.Loads(force={"forearm": [0, 1.0, 0]})}
    for model, loads in ((kg.samples.two_link(), pushed), (strap(), {}), (coupled(), {})):
        q, v = start(model, (4,))
        motion = simulate_fixed(model, q, v, step=0.01, steps=10, tau=pd, method=method, **loads)
        expected = by_hand(model, q, v, 0.01, 10, method, **loads)
        np.testing.assert_allclose([motion.q[-1], motion.v[-1]], expected, **ROUNDING)


def test_functions_may_do_what_they_like_with_arrays():
    """Change what they are given, return the same array again, a view, a list, integers, or float32."""
    model = kg.samples.puma560()
    q, v = start(model, (3,))
    room = np.zeros((3, 6))

    def spoils(t, q, v):
        tau = pd(t, q, v)
        q[...], v[...] = np.nan, np.nan
        return tau

    def reuses(t, q, v):
        room[...] = pd(t, q, v)
        return room

    found = [
        simulate_fixed(model, q, v, step=0.01, steps=10, tau=tau)
        for tau in (pd, spoils, reuses, lambda t, q, v: pd(t, q, v).tolist(), lambda t, q, v: pd(t, q, v).T.copy().T)
    ]
    for each in found[1:]:
        np.testing.assert_array_equal(each.q, found[0].q)
        np.testing.assert_array_equal(each.tau, found[0].tau)
    whole = simulate_fixed(model, q, v, step=0.01, steps=10, tau=lambda t, q, v: np.ones(6, dtype=int))
    np.testing.assert_array_equal(whole.tau, np.ones((11, 3, 6)))
    with pytest.raises(kg.InputError, match=r"`tau` gives shape \(5,\) at t = 0; expected \(3, 6\)"):
        simulate_fixed(model, q, v, step=0.01, steps=10, tau=lambda t, q, v: np.ones(5))


@pytest.mark.parametrize("spring", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_states_that_diverge(method, spring):
    """One of three is lost and the others go on; a function is not called once all are lost."""
    model, calls = strap() if spring else kg.samples.two_link(), []
    if spring:  # that pulls nowhere
        model = model.replace(elements={"strap": kg.SpringDamper("forearm", [0, 0, 0], None, [9, 9, 9])})

    def explodes(t, q, v):
        calls.append(t)
        return 1e4 * v**3

    q, v = np.zeros((3, 2)), np.array([[0.0, 0.0], [2.0, 1.0], [0.0, 0.0]])
    model = model.replace(gravity=np.zeros(3))
    motion = simulate_fixed(model, q, v, step=0.1, steps=50, tau=explodes, method=method, unfinished="ignore")
    assert not motion.success
    assert "state 1 diverged at t = " in motion.message
    assert np.isnan(motion.q[-1, 1]).all()
    np.testing.assert_array_equal(motion.q[-1, [0, 2]], 0.0)
    calls.clear()
    alone = simulate_fixed(model, q[1], v[1], step=0.1, steps=50, tau=explodes, method=method, unfinished="ignore")
    lost = int(np.isnan(motion.q[:, 1]).all(axis=-1).argmax())
    assert alone.steps == lost < 20
    assert len(alone.t) == lost
    assert len(calls) == lost * (4 if method == "rk4" else 1)
    np.testing.assert_array_equal(alone.q, motion.q[:lost, 1])


def test_a_joint_without_inertia_is_named():
    builder = kg.ModelBuilder("weak")
    builder.add("upper", None, kg.revolute("y"), inertia=kg.Inertia.rod(1.0, [0, 0, 0], [0, 0, 1]))
    builder.add("bare", "upper", kg.revolute("x"), placement=[0, 0, 1])
    with pytest.raises(kg.SingularError, match="at t = 0 s nothing resists joint 'bare'"):
        simulate_fixed(builder.build(), [0.1, 0.0], [0.0, 0.0], step=0.1, steps=2, tau=pd)


def test_no_states_at_all():
    motion = simulate_fixed(kg.samples.two_link(), np.zeros((0, 2)), np.zeros(2), step=0.1, steps=3, tau=pd)
    assert motion.q.shape == (4, 0, 2)
