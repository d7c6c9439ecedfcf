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
    samples,
)
from kinegrad.bridges import jax_bridge, to_jax
from tests.conftest import assert_close, random_loads, random_state

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

    monkeypatch.setattr(jax_bridge, "inverse_dynamics", counted)
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
    assert gradient(*state).shape == (20_000, 6)
