"""Bridges take couplings, and refuse quaternions, whose derivatives are with respect to the tangent."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import InputError
from kinegrad.bridges import to_casadi, to_jax, to_torch
from tests.conftest import assert_close
from tests.mixed import mixed_state, mixed_tree

COUPLED = mixed_tree(5, joints=4, kinds="rcp")


@pytest.mark.parametrize(("bridge", "package"), [(to_jax, "jax"), (to_torch, "torch"), (to_casadi, "casadi")])
def test_quaternions_are_refused(bridge, package):
    pytest.importorskip(package)
    with pytest.raises(InputError, match="has a quaternion, with respect to whose numbers there are no derivatives"):
        bridge(mixed_tree(2))


def test_casadi_takes_couplings():
    casadi = pytest.importorskip("casadi")
    q, v, a = mixed_state(COUPLED, 1)
    function = to_casadi(COUPLED)
    assert_close(np.array(function(q, v, a)).ravel(), kg.inverse_dynamics(COUPLED, q, v, a), 1e-14)
    x = casadi.MX.sym("x", COUPLED.nq)
    J = casadi.Function("J", [x], [casadi.jacobian(function(x, v, a), x)])
    assert_close(np.array(J(q)), kg.inverse_dynamics_derivatives(COUPLED, q, v, a).dtau_dq, 1e-14)


def test_torch_takes_couplings():
    torch = pytest.importorskip("torch")
    q, v, a = mixed_state(COUPLED, 1)
    x = torch.tensor(q, requires_grad=True)
    to_torch(COUPLED)(x, torch.tensor(v), torch.tensor(a)).sum().backward()
    expected = kg.inverse_dynamics_vjp(COUPLED, q, v, a, np.ones(COUPLED.nv)).dq
    assert_close(x.grad.numpy(), expected, 1e-14)
