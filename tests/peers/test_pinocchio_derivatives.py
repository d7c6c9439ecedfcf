"""The same sensitivities as Pinocchio's `computeRNEADerivatives`, from other formulas in C++."""

import numpy as np
import pytest

import kinegrad as kg
from tests.conftest import assert_close, parts, random_loads, random_state

pin = pytest.importorskip("pinocchio")
from tests.peers.pinocchio_model import external_forces, pinocchio_model
from tests.peers.test_pinocchio import MODELS, peer_tree

# Both sum some hundred products in double precision, in different orders: 1e-15 to 1e-14 of the largest.
CLOSE = 1e-12
methods = pytest.mark.parametrize("method", ["spatial", "lagrange"])


@pytest.fixture(params=MODELS)
def peer(request):
    """A model without springs and dampers, its twin in Pinocchio with data, and a state."""
    model = MODELS[request.param]
    assert not model.stiffness.any()
    assert not model.damping.any()
    twin = pinocchio_model(model)
    return model, twin, twin.createData(), random_state(model, 19)


def pinocchio_derivatives(model, twin, data, state, *wrenches):
    """∂τ/∂q, ∂τ/∂v, M; it drops an axis of a single joint."""
    found = pin.computeRNEADerivatives(twin, data, *state, *wrenches)
    return [np.reshape(x, (model.n, model.n)).copy() for x in found]


def assert_same(result, desired, v):
    """∂τ/∂v by M·v at least: it is a difference of such terms, and zero but for rounding where M is constant."""
    dtau_dq, dtau_dv, M = desired
    assert_close(result.dtau_dq, dtau_dq, CLOSE)
    scale = max(np.abs(dtau_dv).max(), np.abs(M).max() * np.abs(v).max())
    assert np.abs(result.dtau_dv - dtau_dv).max() <= CLOSE * scale
    assert_close(result.dtau_da, M, CLOSE)


@methods
def test_derivatives(peer, method):
    model, twin, data, state = peer
    desired = pinocchio_derivatives(model, twin, data, state)
    result = kg.inverse_dynamics_derivatives(model, *state, method=method)
    assert_same(result, desired, state[1])
    assert_close(result.tau, pin.rnea(twin, data, *state), CLOSE)


def turning_wrenches(model, twin, data, q, force, point, torque):
    """−Σ Jᵀ ∂w/∂q over the links, (n, n): Pinocchio's wrenches w of world loads, as the links turn.

    In joint frame i, of rotation R and angular Jacobian Ω (local axes): w = (Rᵀf, Rᵀh + x × Rᵀf), x fixed, and
    ∂(Rᵀf)/∂q_j = −Ω_j × Rᵀf.
    """
    total = np.zeros((model.n, model.n))
    pin.computeJointJacobians(twin, data, q)
    for i in range(model.n):
        J = np.reshape(pin.getJointJacobian(twin, data, i + 1, pin.ReferenceFrame.LOCAL), (6, model.n))
        R = data.oMi[i + 1].rotation
        x = pin.SE3(model.tip[i]).act(np.asarray(point[i]))
        df = -np.cross(J[3:].T, R.T @ force[i])  # (n, 3)
        dh = -np.cross(J[3:].T, R.T @ torque[i]) + np.cross(x, df)
        total -= J.T @ np.hstack([df, dh]).T
    return total


def check_with_loads(model, twin, data, state, loads, methods):
    wrenches = external_forces(model, twin, data, state[0], *parts(loads))
    dtau_dq, dtau_dv, M = pinocchio_derivatives(model, twin, data, state, wrenches)
    dtau_dq = dtau_dq + turning_wrenches(model, twin, data, state[0], *parts(loads))
    for method in methods:
        result = kg.inverse_dynamics_derivatives(model, *state, loads=loads, method=method)
        assert_same(result, (dtau_dq, dtau_dv, M), state[1])


@methods
def test_derivatives_with_loads(peer, method):
    """Pinocchio's external wrenches turn with their joints, kinegrad's loads stay as they are in the world.

    The difference is what the wrenches' own change costs, added here; it is no rounding, as checked below.
    """
    model, twin, data, state = peer
    check_with_loads(model, twin, data, state, random_loads(model, 19), [method])


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_derivatives_of_many_trees(first):
    for seed in range(first, first + 20):
        model = peer_tree(seed)
        twin = pinocchio_model(model)
        state, loads = random_state(model, seed), random_loads(model, seed)
        check_with_loads(model, twin, twin.createData(), state, loads, ["spatial", "lagrange"])


def test_turning_wrenches_matter():
    """The correction is as large as the derivative itself, so that the test above could fail without it."""
    model = MODELS["puma560"]
    twin = pinocchio_model(model)
    data = twin.createData()
    q, _, _ = state = random_state(model, 19)
    loads = random_loads(model, 19)
    change = turning_wrenches(model, twin, data, q, *parts(loads))
    dtau_dq = kg.inverse_dynamics_derivatives(model, *state, loads=loads).dtau_dq
    assert np.abs(change).max() > 0.05 * np.abs(dtau_dq).max()
