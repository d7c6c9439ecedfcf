"""Bridges take couplings and quaternions; with respect to the numbers of these, derivatives are those of τ(q / |q|)."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad.bridges import to_casadi, to_jax, to_torch
from kinegrad.bridges.products import Products
from kinegrad.configuration import pull_tangent
from tests.conftest import assert_close
from tests.mixed import mixed_state, mixed_tree

MODELS = [mixed_tree(5, joints=4, kinds="rcp"), mixed_tree(2, joints=4)]
models = pytest.mark.parametrize("model", MODELS, ids=["coupled", "quaternions"])
CLOSE = 1e-9  # of the largest: Richardson's differences of h = 1e-3 err by h⁴ times a fifth derivative


def normalised(model, q):
    q = np.array(q)
    for _, k, _ in model.layout.balls:
        q[..., k : k + 4] /= np.linalg.norm(q[..., k : k + 4], axis=-1, keepdims=True)
    return q


def by_numbers(model, q, v, a):
    """∂τ(q / |q|)/∂q, (nv, nq), by extrapolated central differences of the numbers of q."""
    found = []
    for h in (2e-3, 1e-3):
        ends = [normalised(model, q + s * h * np.eye(model.nq)) for s in (1, -1)]
        tau = [kg.inverse_dynamics(model, x, v, a) for x in ends]
        found.append((tau[0] - tau[1]).T / (2 * h))
    return (4 * found[1] - found[0]) / 3


def twice_by_numbers(model, q, v, a, w):
    """∂²(wᵀτ(q / |q|))/∂q², (nq, nq), by differences of the exact gradient by numbers, of order 6."""
    h, found = 3e-3, 0.0
    for s, weight in zip((-3, -2, -1, 1, 2, 3), (-1, 9, -45, 45, -9, 1), strict=True):
        moved = q + s * h * np.eye(model.nq)
        unit = normalised(model, moved)
        gradient = kg.inverse_dynamics_vjp(model, unit, v, a, w).dq
        numbers = pull_tangent(model, unit, gradient)
        for _, k, _ in model.layout.balls:  # at q / |q|, and so per |q|
            numbers[..., k : k + 4] /= np.linalg.norm(moved[..., k : k + 4], axis=-1, keepdims=True)
        found = found + weight * numbers / (60 * h)
    return found


@pytest.mark.slow
@models
def test_second_derivatives(model):
    """By the numbers of q, of which quaternions have four, through JAX and CasADi, and what PyTorch would be given."""
    q, v, a = mixed_state(model, 1)
    rng = np.random.default_rng(5)
    w, dq, e = rng.normal(size=model.nv), rng.normal(size=model.nq), np.zeros(model.nv)
    expected = twice_by_numbers(model, q, v, a, w)
    exact = kg.inverse_dynamics_hessian(model, q, v, a, w)
    assert_close(Products(model).hvp(q, v, a, w, dq, e, e)[0], expected @ dq, CLOSE)
    bent = Products(model).bend(q, v, a, dq, e, e, dq, e, e)
    assert_close(w @ bent, dq @ expected @ dq, CLOSE)
    mixed = pull_tangent(model, q, exact.d2_dqdv.T).T
    casadi = pytest.importorskip("casadi")
    x, y = casadi.MX.sym("x", model.nq), casadi.MX.sym("y", model.nv)
    both = casadi.vertcat(x, y)
    phi = casadi.dot(casadi.DM(w), to_casadi(model)(x, y, a))
    found = casadi.Function("H", [x, y], [casadi.jacobian(casadi.gradient(phi, both), both)])(q, v).full()
    assert_close(found[: model.nq, : model.nq], expected, CLOSE)
    assert_close(found[: model.nq, model.nq :], mixed, 1e-13)
    assert_close(found, found.T, 1e-13)
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    tau = to_jax(model)
    found = jax.hessian(lambda q, v: (w * tau(q, v, a)).sum(), (0, 1))(q, v)
    assert_close(np.asarray(found[0][0]), expected, CLOSE)
    assert_close(np.asarray(found[0][1]), mixed, 1e-13)


@models
def test_casadi(model):
    casadi = pytest.importorskip("casadi")
    q, v, a = mixed_state(model, 1, (2,))
    function = to_casadi(model, states=2)
    assert_close(np.array(function(q.T, v.T, a.T)).T, kg.inverse_dynamics(model, q, v, a), 1e-14)
    x = casadi.MX.sym("x", model.nq, 2)
    J = casadi.Function("J", [x], [casadi.jacobian(function(x, v.T, a.T), x)])
    found, expected = np.array(J(q.T)), np.zeros((2 * model.nv, 2 * model.nq))
    for k in range(2):
        block = slice(k * model.nv, (k + 1) * model.nv), slice(k * model.nq, (k + 1) * model.nq)
        expected[block] = by_numbers(model, q[k], v[k], a[k])
    assert_close(found, expected, CLOSE)
    y = casadi.MX.sym("y", model.nv, 2)
    J = casadi.Function("J", [y], [casadi.jacobian(function(q.T, v.T, y), y)])
    assert_close(np.array(J(a.T))[: model.nv, : model.nv], kg.mass_matrix(model, q[0]), 1e-14)


@models
def test_jax(model):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    q, v, a = mixed_state(model, 1, (2,))
    tau = to_jax(model)
    assert_close(np.asarray(tau(q, v, a)), kg.inverse_dynamics(model, q, v, a), 1e-14)
    expected = by_numbers(model, q[0], v[0], a[0])
    assert_close(np.asarray(jax.jacfwd(tau)(q[0], v[0], a[0])), expected, CLOSE)
    assert_close(np.asarray(jax.vmap(jax.jacrev(tau))(q, v, a))[0], expected, CLOSE)


# of its own code, when forward mode is first used
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning", "ignore:.*torch.jit:FutureWarning")
@models
def test_torch(model):
    torch = pytest.importorskip("torch")
    q, v, a = (torch.tensor(x) for x in mixed_state(model, 1))
    tau = to_torch(model)
    expected = by_numbers(model, *(x.numpy() for x in (q, v, a)))
    assert_close(torch.func.jacrev(tau)(q, v, a).numpy(), expected, CLOSE)
    assert_close(torch.func.jacfwd(tau)(q, v, a).numpy(), expected, CLOSE)


@models
def test_products(model):
    """What the functions of JAX and PyTorch are made of, which needs neither; one direction goes with many states."""
    q, v, a = mixed_state(model, 1)
    rng = np.random.default_rng(3)
    dq, w, zero = rng.normal(size=model.nq), rng.normal(size=model.nv), np.zeros(model.nv)
    expected = by_numbers(model, q, v, a)
    assert_close(Products(model).jvp(q, v, a, dq, zero, zero), expected @ dq, CLOSE)
    assert_close(Products(model).vjp(q, v, a, w)[0], w @ expected, CLOSE)
    many = Products(model).jvp(*(np.stack([x, x]) for x in (q, v, a)), dq[None], zero[None], zero[None])
    assert_close(many, np.stack([expected @ dq] * 2), CLOSE)
