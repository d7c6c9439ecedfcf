"""The same regressor as Pinocchio's `computeJointTorqueRegressor`, from other formulas in C++."""

import numpy as np
import pytest

import kinegrad as kg
from tests.conftest import assert_close, random_state

pin = pytest.importorskip("pinocchio")
from tests.peers.pinocchio_model import to_pinocchio  # noqa: E402  needs Pinocchio
from tests.peers.test_pinocchio import MODELS  # noqa: E402

CLOSE = 1e-12  # sums of some dozens of products, in different orders
ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]  # its inertia is xx, xy, yy, xz, yz, zz; kinegrad's xx, xy, xz, yy, yz, zz


@pytest.fixture(params=MODELS)
def peer(request):
    """A model whose link frames are Pinocchio's joint frames, its twin with data, and a state."""
    model = MODELS[request.param]
    model = model.replace(tip=np.broadcast_to(np.eye(4), (model.n, 4, 4)), armature=np.zeros(model.n))
    twin = to_pinocchio(model)
    return model, twin, twin.createData(), random_state(model, 23)


def test_regressor(peer):
    model, twin, data, state = peer
    n = model.n
    found = np.reshape(pin.computeJointTorqueRegressor(twin, data, *state), (n, n, 10))
    assert_close(kg.inverse_dynamics_regressor(model, *state).reshape(n, n, 10), found[:, :, ORDER], CLOSE)


def test_parameters(peer):
    model, twin, _, _ = peer
    found = np.array([twin.inertias[i + 1].toDynamicParameters() for i in range(model.n)])
    assert_close(kg.inertial_parameters(model).reshape(-1, 10), found[:, ORDER], CLOSE)


@pytest.mark.parametrize("name", MODELS)
def test_frames_at_the_tip(name):
    """With tips, the parameters are of other frames, and the torques the same."""
    model = MODELS[name].replace(armature=np.zeros(MODELS[name].n))
    twin = to_pinocchio(model)
    state = random_state(model, 29)
    Y = np.reshape(pin.computeJointTorqueRegressor(twin, twin.createData(), *state), (model.n, -1))
    tau = Y @ np.concatenate([twin.inertias[i + 1].toDynamicParameters() for i in range(model.n)])
    assert_close(kg.inverse_dynamics_regressor(model, *state) @ kg.inertial_parameters(model), tau, CLOSE)
