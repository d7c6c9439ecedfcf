"""The same regressor as Pinocchio's `computeJointTorqueRegressor`, from other formulas in C++."""

import numpy as np
import pytest

import kinegrad as kg
from tests.conftest import assert_close, random_state, some_now

pin = pytest.importorskip("pinocchio")
from tests.peers.pinocchio_model import pinocchio_model
from tests.peers.test_pinocchio import MODELS, peer_tree
from tests.test_forward_dynamics import conditioned

CLOSE = 1e-12  # sums of some dozens of products, in different orders
ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]  # its inertia is xx, xy, yy, xz, yz, zz; kinegrad's xx, xy, xz, yy, yz, zz


@pytest.fixture(params=MODELS)
def peer(request):
    """A model whose link frames are Pinocchio's joint frames, its twin with data, and a state."""
    model = MODELS[request.param]
    model = model.replace(tip=np.broadcast_to(np.eye(4), (model.n, 4, 4)), armature=np.zeros(model.n))
    twin = pinocchio_model(model)
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
    twin = pinocchio_model(model)
    state = random_state(model, 29)
    Y = np.reshape(pin.computeJointTorqueRegressor(twin, twin.createData(), *state), (model.n, -1))
    tau = Y @ np.concatenate([twin.inertias[i + 1].toDynamicParameters() for i in range(model.n)])
    assert_close(kg.inverse_dynamics_regressor(model, *state) @ kg.inertial_parameters(model), tau, CLOSE)


# --- accelerations by inertial parameters -----------------------------------------------------------------------


def slopes_of_parameters(mass, com):
    """∂π/∂(m, c, I about c) of one link in kinegrad's order: π = m, m c, I + m (c·c 1 − c cᵀ)."""
    slopes = np.zeros((10, 10))
    slopes[0, 0] = 1.0
    slopes[1:4, 0], slopes[1:4, 1:4] = com, mass * np.eye(3)
    upper = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    moments = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]  # as the names below are ordered
    for row, (i, j) in enumerate(upper, start=4):
        slopes[row, 0] = (i == j) * com @ com - com[i] * com[j]
        for k in range(3):
            slopes[row, 1 + k] = mass * (2 * (i == j) * com[k] - (i == k) * com[j] - (j == k) * com[i])
        slopes[row, 4 + moments.index((i, j))] = 1.0
    return slopes


def at_joints(model):
    """The same mechanism, link frames at the joints: tips move into the placements of the children and the bodies."""
    placement = [P if k < 0 else model.tip[k] @ P for k, P in zip(model.parents, model.placement, strict=True)]
    bodies = [model.link_inertia(link).moved(F) for link, F in zip(model.link_names, model.tip, strict=True)]
    mass, com, inertia = ([getattr(body, what) for body in bodies] for what in ("mass", "com", "inertia"))
    tip = np.broadcast_to(np.eye(4), (model.n, 4, 4))
    return model.replace(placement=placement, tip=tip, mass=mass, com=com, inertia=inertia)


NAMES = ("mass", "com.x", "com.y", "com.z", *(f"inertia.{m}" for m in ("xx", "yy", "zz", "xy", "xz", "yz")))


def check_accelerations_by_inertia(model, seed):
    """∂a/∂π = −M⁻¹ Y(q, v, a), with M⁻¹ and the regressor Y of Pinocchio, against the recursion of duals."""
    model = at_joints(model)
    twin = pinocchio_model(model)
    data = twin.createData()
    q, v, tau = random_state(model, seed)
    links = [i for i in range(model.n) if model.mass[i]]
    design = kg.Design(model, [f"{model.link_names[i]}.{name}" for i in links for name in NAMES])
    a = pin.aba(twin, data, q, v, tau)
    Y = np.reshape(pin.computeJointTorqueRegressor(twin, data, q, v, a), (model.n, model.n, 10))[:, :, ORDER]
    columns = [Y[:, i] @ slopes_of_parameters(model.mass[i], model.com[i]) for i in links]
    M = kg.mass_matrix(model, q)
    desired = -np.linalg.solve(M, np.concatenate(columns, axis=1))
    found = kg.forward_dynamics_design_derivatives(design, q, v, tau)
    assert_close(found, desired, max(1e-11, 10 * conditioned(M)))


@pytest.mark.parametrize("name", ["human43", "puma560", "spatial_chain", "cart_pendulum"])
def test_accelerations_by_inertia(name):
    thick = {"human43": kg.samples.human43(thickness=0.1)}
    check_accelerations_by_inertia(thick.get(name, MODELS[name]), 5)


@pytest.mark.parametrize("first", some_now(range(0, 200, 20), 2))
def test_accelerations_by_inertia_of_random_trees(first):
    for seed in range(first, first + 20):
        check_accelerations_by_inertia(peer_tree(seed), seed)
