"""The JAX bridge: values and derivatives are kinegrad's, under every transformation."""

import re

import numpy as np
import pytest

from kinegrad import (
    InputError,
    KinegradError,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_dynamics_hessian,
    inverse_dynamics_hvp,
    inverse_dynamics_jvp,
    samples,
)
from kinegrad.bridges import products, to_jax
from tests.bridges.calls import log_calls
from tests.conftest import assert_close, random_loads, random_state
from tests.mixed import mixed_state, mixed_tree

jax = pytest.importorskip("jax")
CLOSE = 1e-12  # the same kernels; only sums of a few products are taken by JAX
MODEL = samples.puma560()
FIELDS = ("dtau_dq", "dtau_dv", "dtau_da")


@pytest.fixture(autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("model", [MODEL, samples.human43()], ids=("puma560", "human43"))
@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("jit", [False, True])
def test_values_and_jacobians(model, loaded, jit):
    loads = random_loads(model) if loaded else None
    state = random_state(model)
    tau = to_jax(model, loads=loads)
    exact = inverse_dynamics_derivatives(model, *state, loads=loads)
    maybe_jit = jax.jit if jit else lambda f: f
    assert_close(maybe_jit(tau)(*state), exact.tau, CLOSE)
    for transformation in (jax.jacfwd, jax.jacrev):
        for jacobian, field in zip(maybe_jit(transformation(tau, (0, 1, 2)))(*state), FIELDS, strict=True):
            assert_close(jacobian, getattr(exact, field), CLOSE)


@pytest.mark.parametrize("axes", [(0, 0, 0), (0, None, None), (None, None, 0)])
def test_vmap_is_one_call(axes, monkeypatch):
    calls = []

    def counted(model, *state, **options):
        calls.append(np.broadcast_shapes(*(x.shape for x in state)))
        return inverse_dynamics(model, *state, **options)

    monkeypatch.setattr(products, "inverse_dynamics", counted)
    batch = random_state(MODEL, 1, (5,))
    state = [x if axis == 0 else x[0] for x, axis in zip(batch, axes, strict=True)]
    tau = jax.jit(jax.vmap(to_jax(MODEL), in_axes=axes))
    assert_close(tau(*state), inverse_dynamics(MODEL, *state), CLOSE)
    assert calls == [(5, 6)]


def test_vmap_over_what_has_a_batch_already():
    # The new axis comes first, for arguments of fewer axes and for loads too.
    loads = random_loads(MODEL, 2, (3,))
    q, _, a = random_state(MODEL, 2, (3,))
    v = random_state(MODEL, 3, (4,))[1]
    actual = jax.vmap(to_jax(MODEL, loads=loads), in_axes=(None, 0, None))(q, v, a)
    assert_close(actual, inverse_dynamics(MODEL, q, v[:, None], a, loads=loads), CLOSE)


def test_vmap_of_jacobians():
    state = random_state(MODEL, 4, (7,))
    exact = inverse_dynamics_derivatives(MODEL, *state)
    assert_close(jax.vmap(jax.jacrev(to_jax(MODEL)))(*state), exact.dtau_dq, CLOSE)
    assert_close(jax.vmap(jax.jacfwd(to_jax(MODEL), 1))(*state), exact.dtau_dv, CLOSE)


def test_gradient_of_a_loss_with_broadcasting():
    q, v, a = random_state(MODEL, 5, (2, 3))
    v, a = v[0, 0], a[:, :1]
    gradient = jax.jit(jax.grad(lambda *state: (to_jax(MODEL)(*state) ** 2).sum() / 2, (0, 1, 2)))(q, v, a)
    exact = inverse_dynamics_derivatives(MODEL, q, v, a)
    full = [np.einsum("bti,btij->btj", exact.tau, getattr(exact, field)) for field in FIELDS]
    for actual, desired in zip(gradient, (full[0], full[1].sum((0, 1)), full[2].sum(1, keepdims=True)), strict=True):
        assert_close(actual, desired, CLOSE)


def test_other_numbers_are_converted():
    state = [np.round(x) for x in random_state(MODEL, 6)]
    desired = inverse_dynamics(MODEL, *state)
    for kind in (np.float32, int):
        actual = to_jax(MODEL)(*(x.astype(kind) for x in state))
        assert actual.dtype == np.float64
        assert_close(actual, desired, CLOSE)
    assert to_jax(MODEL)(*(list(x) for x in state)).shape == (6,)


@pytest.mark.parametrize("loaded", [False, True])
def test_hessians(loaded):
    """Of a weighted sum of torques, with respect to each part of the state, in whatever order modes are nested."""
    loads, (q, v, a), w = random_loads(MODEL) if loaded else None, random_state(MODEL), random_state(MODEL, 1)[0]
    tau, exact = to_jax(MODEL, loads=loads), inverse_dynamics_hessian(MODEL, q, v, a, w, loads=loads)

    def weighted(*state):
        return (w * tau(*state)).sum()

    whole = jax.jit(jax.hessian(weighted, (0, 1, 2)))(q, v, a)
    for (i, j), field in {(0, 0): "dqdq", (0, 1): "dqdv", (0, 2): "dqda", (1, 1): "dvdv"}.items():
        desired = getattr(exact, f"d2_{field}")
        assert_close(whole[i][j], desired, CLOSE)
        assert_close(whole[j][i], desired.T, CLOSE)
    assert not np.asarray(whole[1][2]).any()
    assert not np.asarray(whole[2][2]).any()
    for nested in (
        jax.jacrev(jax.jacrev(weighted)),
        jax.jacfwd(jax.jacfwd(weighted)),
        jax.jacrev(jax.jacfwd(weighted)),
    ):
        assert_close(nested(q, v, a), exact.d2_dqdq, CLOSE)
    _, product = jax.jvp(jax.grad(weighted), (q, v, a), (v, a, q))
    assert_close(product, exact.d2_dqdq @ v + exact.d2_dqdv @ a + exact.d2_dqda @ q, CLOSE)


def test_hessians_of_a_batch():
    state, w = random_state(MODEL, 1, (5,)), random_state(MODEL, 2)[0]
    found = jax.vmap(jax.hessian(lambda *state: (w * to_jax(MODEL)(*state)).sum()))(*state)
    assert_close(found, inverse_dynamics_hessian(MODEL, *state, w).d2_dqdq, CLOSE)


def products_with_the_hessian(phi):
    """Every way that JAX has to a product with the Hessian of phi(x) along dx."""

    def scanned(x, dx):
        def gradient(x):
            def step(carry, _):
                return carry, jax.tree.map(lambda y: y / 2, jax.grad(phi)(carry))

            return jax.tree.map(lambda y: y.sum(axis=0), jax.lax.scan(step, x, length=2)[1])

        return jax.jvp(gradient, (x,), (dx,))[1]

    def along(gradient):
        return lambda x, dx: jax.jvp(gradient, (x,), (dx,))[1]

    return {
        "jvp of grad": along(jax.grad(phi)),
        "grad of jvp": lambda x, dx: jax.grad(lambda x: jax.jvp(phi, (x,), (dx,))[1])(x),
        "vjp of grad": lambda x, dx: jax.vjp(jax.grad(phi), x)[1](dx)[0],
        "linearised grad": lambda x, dx: jax.linearize(jax.grad(phi), x)[1](dx),
        "jvp of grad of checkpoint": along(jax.grad(jax.checkpoint(phi))),
        "vjp of grad of checkpoint": lambda x, dx: jax.vjp(jax.grad(jax.checkpoint(phi)), x)[1](dx)[0],
        "jvp of grad of jit": along(jax.grad(jax.jit(phi))),
        "scan": scanned,
    }


MIXED = mixed_tree(2, joints=4)  # quaternions and couplings


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("model", "state"), [(MODEL, random_state(MODEL)), (MIXED, mixed_state(MIXED, 1))], ids=["puma560", "quaternions"]
)
def test_products_with_hessians(model, state, jit, squared):
    """Along q, v and a, beside the gradient's central differences; and all beside each other, to rounding."""
    rng, tau = np.random.default_rng(3), to_jax(model)
    dx = tuple(rng.normal(size=x.shape) for x in state)
    w = rng.normal(size=model.nv)

    def phi(x):
        torques = tau(*x)
        return (torques * (torques if squared else w)).sum()

    def unit(x):
        q = x[0].copy()
        for _, k, _ in model.layout.balls:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
        return q, *x[1:]

    h, ends = 1e-5, []
    for s in (h, -h):
        q, *rest = (x + s * d for x, d in zip(state, dx, strict=True))
        moved = unit((q, *rest))
        by_q, *others = (np.array(x) for x in jax.grad(phi)(moved))
        for _, k, _ in model.layout.balls:  # the derivative of τ(q / |q|) at q is that at q / |q|, per |q|
            by_q[k : k + 4] /= np.linalg.norm(q[k : k + 4])
        ends.append((by_q, *others))
    differences = [(x - y) / (2 * h) for x, y in zip(*ends, strict=True)]
    exact = None
    for product in products_with_the_hessian(phi).values():
        found = (jax.jit(product) if jit else product)(state, dx)
        exact = exact or found
        for actual, first, desired in zip(found, exact, differences, strict=True):
            assert_close(actual, first, CLOSE)
            assert_close(actual, desired, 1e-7)  # h² times a third derivative, and rounding / h


def test_products_with_hessians_compute_nothing_else(monkeypatch):
    """Without jit, a few products, each of as many states as there are: no matrix, no tensor."""
    (q, v, a), (w, along, _) = random_state(MODEL, 1, (5,)), random_state(MODEL, 2, (5,))
    tau = to_jax(MODEL)
    calls = log_calls(monkeypatch)
    found = {}
    for name, product in products_with_the_hessian(lambda q: (w * tau(q, v, a)).sum()).items():
        if name != "scan":
            calls.clear()
            assert_close(product(q, along), inverse_dynamics_hvp(MODEL, q, v, a, w, along, 0 * v, 0 * a).dq, CLOSE)
            found[name] = sorted(calls)
    value, jvp, vjp, hvp = (("dynamics", 5), ("jvp", 5), ("vjp", 5), ("hvp", 5))
    assert {call for calls in found.values() for call in calls} <= {value, jvp, vjp, hvp}
    assert found["jvp of grad"] == sorted([value, jvp, vjp, hvp])
    assert found["grad of jvp"] == sorted([value, jvp, hvp])
    assert found["vjp of grad"] == sorted([value, vjp, hvp])


@pytest.mark.parametrize("transformation", [jax.grad, lambda phi: lambda q: jax.jvp(jax.grad(phi), (q,), (q,))[1]])
def test_jit_computes_what_is_used(transformation, monkeypatch):
    """Values and their changes along the way are left out."""
    (q, v, a), w = random_state(MODEL, 1, (5,)), random_state(MODEL, 2)[0]
    tau = to_jax(MODEL)
    calls = log_calls(monkeypatch)
    jax.jit(transformation(lambda q: (w * tau(q, v, a)).sum()))(q).block_until_ready()
    assert calls in ([("vjp", 5)], [("hvp", 5)])


def test_hessians_take_a_product_for_each_column(monkeypatch):
    (q, v, a), w = random_state(MODEL, 1, (5,)), random_state(MODEL, 2)[0]
    tau = to_jax(MODEL)
    hessian = jax.jit(jax.vmap(jax.hessian(lambda q, v, a: w @ tau(q, v, a))))
    calls = log_calls(monkeypatch)
    assert_close(hessian(q, v, a), inverse_dynamics_hessian(MODEL, q, v, a, w).d2_dqdq, CLOSE)
    assert calls == [("hvp", 5 * 6)]


def test_second_derivatives_of_torques():
    """The whole tensor, by every nesting: forward mode twice goes through products for each torque."""
    q, v, a = random_state(MODEL)
    tau = to_jax(MODEL)
    desired = inverse_dynamics_hessian(MODEL, q, v, a, np.eye(6)).d2_dqdq
    for outer in (jax.jacfwd, jax.jacrev):
        for inner in (jax.jacfwd, jax.jacrev):
            assert_close(jax.jit(outer(inner(tau)))(q, v, a), desired, CLOSE)
            assert_close(jax.vmap(outer(inner(tau)), (0, None, None))(q[None], v, a)[0], desired, CLOSE)


@pytest.mark.parametrize(
    ("model", "loaded"), [(MODEL, False), (MODEL, True), (MIXED, False)], ids=["puma560", "loaded", "quaternions"]
)
def test_one_direction_or_weight_for_many_states(model, loaded):
    """What JAX batches for the states only: gradients by the direction, or by the weights, are summed over states."""
    loads = random_loads(model) if loaded else None
    q, v, a = mixed_state(model, 1, (3,)) if model is MIXED else random_state(model, 1, (3,))
    rng, tau = np.random.default_rng(2), to_jax(model, loads=loads)
    dq, w, u = rng.normal(size=model.nq), rng.normal(size=model.nv), rng.normal(size=(3, model.nv))

    def change(dq, q, v, a):
        return jax.jvp(lambda q: tau(q, v, a), (q,), (dq,))[1]

    def together(dq):
        return (u * jax.vmap(change, (None, 0, 0, 0))(dq, q, v, a)).sum()

    one_by_one = sum(np.asarray(u[i] @ jax.jacfwd(change)(dq, q[i], v[i], a[i])) for i in range(3))
    assert_close(jax.grad(together)(dq), one_by_one, CLOSE)
    assert_close(together(dq), one_by_one @ dq, CLOSE)

    def pulled(w, q, v, a):
        return jax.vjp(lambda q: tau(q, v, a), q)[1](w)[0]

    rows = jax.vmap(jax.jacrev(pulled), (None, 0, 0, 0))(w, q, v, a)  # ∂(Jᵀw)/∂w = Jᵀ
    assert_close(rows, np.swapaxes(jax.vmap(jax.jacfwd(tau))(q, v, a), -1, -2), CLOSE)
    if model is MODEL:
        exact = inverse_dynamics_jvp(model, q, v, a, dq, 0 * v, 0 * a, loads=loads)
        assert_close(together(dq), (u * exact).sum(), CLOSE)


@pytest.mark.slow
def test_long_chains_and_trajectories():
    """A tensor of 200³ numbers for each of 300 states would be 19 GB."""
    chain = samples.spatial_chain(200)
    (q, v, a), (w, dq, _) = random_state(chain, 1, (300,)), random_state(chain, 2, (300,))
    tau = to_jax(chain)
    product = jax.jit(lambda q, dq: jax.jvp(jax.grad(lambda q: (w * tau(q, v, a)).sum()), (q,), (dq,))[1])
    desired = inverse_dynamics_hvp(chain, q, v, a, w, dq, 0 * v, 0 * a).dq
    assert_close(product(q, dq), desired, CLOSE)


def test_third_derivatives_are_refused():
    q, v, a = random_state(MODEL)
    with pytest.raises(KinegradError, match="third derivatives of inverse dynamics are not available through JAX"):
        jax.jacfwd(jax.hessian(lambda q: to_jax(MODEL)(q, v, a).sum()))(q)


def test_single_precision_is_refused():
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(InputError, match=re.escape("jax.config.update('jax_enable_x64', True)")):
        to_jax(MODEL)(*random_state(MODEL))


def test_wrong_shapes_are_named_before_anything_runs():
    with pytest.raises(InputError, match=r"`v` has shape \(5,\); model 'puma560' has 6 degrees of freedom"):
        jax.jit(to_jax(MODEL))(np.zeros(6), np.zeros(5), np.zeros(6))


def test_large_batches_do_not_hang():
    # JAX hands large arrays to callbacks while they are still being copied; https://github.com/jax-ml/jax/issues/24255
    state = random_state(MODEL, 7, (20_000,))
    gradient = jax.jit(jax.grad(lambda q, v, a: (to_jax(MODEL)(jax.numpy.sin(q), v, a) ** 2).sum()))
    assert gradient(*state).block_until_ready().shape == (20_000, 6)
