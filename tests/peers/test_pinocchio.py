"""The same numbers as Pinocchio, a C++ library by others, from other formulas (local frames, 6-vectors)."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from tests.conftest import assert_close, parts, random_loads, random_state, tree

pin = pytest.importorskip("pinocchio")
from tests.peers.pinocchio_model import external_forces, pinocchio_model

# Both sum some hundred products in double precision, in different orders: 1e-15 to 1e-14 of the largest.
CLOSE = 1e-12


def peer_tree(seed):
    """Without springs and dampers, which Pinocchio has not; depth-first, as its `crba` silently assumes."""
    model = tree(seed, depth_first=True, passive=False)
    armature = np.random.default_rng([seed, 3]).uniform(0, 1, model.n)
    return model.replace(armature=armature)


MODELS = {
    "human43": samples.human43(),
    "puma560": samples.puma560().replace(damping=np.zeros(6)),
    "spatial_chain": samples.spatial_chain(20),
    "cart_pendulum": samples.cart_pendulum(),
    **{f"tree{seed}": peer_tree(seed) for seed in range(30)},
}


@pytest.fixture(params=MODELS)
def peer(request):
    """A model, its twin in Pinocchio with data, and a state."""
    model = MODELS[request.param]
    twin = pinocchio_model(model)
    return model, twin, twin.createData(), random_state(model, 17)


def link_frame(model, data, i):
    """Pinocchio's frame i is the joint's, after its motion; kinegrad's is the link's, at the tip."""
    return data.oMi[i + 1] * pin.SE3(model.tip[i])


@pytest.mark.parametrize("method", ["spatial", "lagrange"])
def test_inverse_dynamics_with_loads(peer, method):
    model, twin, data, state = peer
    loads = random_loads(model, 17)
    wrenches = external_forces(model, twin, data, state[0], *parts(loads))
    tau = pin.rnea(twin, data, *state, wrenches)
    assert_close(kg.inverse_dynamics(model, *state, loads=loads, method=method), tau, CLOSE)


def test_mass_matrix(peer):
    """Pinocchio fills the upper triangle only; kinegrad all of it."""
    model, twin, data, (q, _, _) = peer
    upper = np.triu(pin.crba(twin, data, q))
    assert_close(np.triu(kg.mass_matrix(model, q)), upper, CLOSE)


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_torques_and_mass_matrices_of_many_trees(first):
    for seed in range(first, first + 20):
        model = peer_tree(seed)
        twin = pinocchio_model(model)
        data = twin.createData()
        q, v, a = random_state(model, seed)
        loads = random_loads(model, seed)
        tau = pin.rnea(twin, data, q, v, a, external_forces(model, twin, data, q, *parts(loads))).copy()
        for method in ("spatial", "lagrange"):
            assert_close(kg.inverse_dynamics(model, q, v, a, loads=loads, method=method), tau, CLOSE)
        assert_close(np.triu(kg.mass_matrix(model, q)), np.triu(pin.crba(twin, data, q)), CLOSE)


def test_bias_and_gravity_forces(peer):
    model, twin, data, (q, v, _) = peer
    assert_close(kg.bias_forces(model, q, v), pin.nonLinearEffects(twin, data, q, v), CLOSE)
    assert_close(kg.gravity_forces(model, q), pin.computeGeneralizedGravity(twin, data, q), CLOSE)


def test_forward_kinematics(peer):
    model, twin, data, (q, v, a) = peer
    pin.forwardKinematics(twin, data, q, v, a)
    frames = [link_frame(model, data, i) for i in range(model.n)]
    motion = kg.forward_kinematics(model, q, v, a)
    assert_close(motion.transform, [T.homogeneous for T in frames], CLOSE)
    velocity, acceleration = [], []
    for i, T in enumerate(frames):
        shift = pin.SE3(model.tip[i])
        w = pin.SE3(T.rotation, np.zeros(3))  # world axes at the link's origin
        twist = shift.actInv(data.v[i + 1])
        classical = shift.actInv(data.a[i + 1])
        classical.linear += np.cross(twist.angular, twist.linear)  # of the point, not of the moving frame
        velocity.append(w.act(twist))
        acceleration.append(w.act(classical))
    assert_close(motion.linear_velocity, [x.linear for x in velocity], CLOSE)
    assert_close(motion.angular_velocity, [x.angular for x in velocity], CLOSE)
    assert_close(motion.linear_acceleration, [x.linear for x in acceleration], CLOSE)
    assert_close(motion.angular_acceleration, [x.angular for x in acceleration], CLOSE)


def test_frame_jacobians(peer):
    model, twin, _, (q, _, _) = peer
    points = np.random.default_rng(18).normal(size=(model.n, 3))
    frames = [
        twin.addFrame(pin.Frame(name, i + 1, 0, pin.SE3(model.tip[i]) * pin.SE3(np.eye(3), x), pin.FrameType.OP_FRAME))
        for i, (name, x) in enumerate(zip(model.link_names, points, strict=True))
    ]
    data = twin.createData()
    J = [pin.computeFrameJacobian(twin, data, q, f, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED) for f in frames]
    J = np.reshape(J, (model.n, 6, model.n))  # it drops the last axis of a single joint
    actual = kg.jacobian(model, q, link=model.link_names, point=points)
    assert_close(np.concatenate([actual.linear, actual.angular], axis=1), J, CLOSE)


def test_center_of_mass_and_momentum(peer):
    model, twin, data, (q, v, _) = peer
    assert_close(kg.center_of_mass(model, q), pin.centerOfMass(twin, data, q), CLOSE)
    desired = pin.computeCentroidalMomentum(twin, data, q, v)
    momentum = kg.momentum(model, q, v)
    assert_close(
        np.concatenate([momentum.linear, momentum.angular]),
        np.concatenate([desired.linear, desired.angular]),
        CLOSE,
    )


def test_energies(peer):
    """V is compared by the weight times a metre, for it may be a small difference of heights.

    Without rotors: Pinocchio 4.1 counts their energy for some kinds of joints and leaves it out for others.
    """
    model, twin, data, (q, v, _) = peer
    bare = model.replace(armature=np.zeros(model.n))
    twin.armature = bare.armature.copy()
    assert_close(kg.kinetic_energy(bare, q, v), pin.computeKineticEnergy(twin, data, q, v), CLOSE)
    scale = model.total_mass * np.linalg.norm(model.gravity) * max(1.0, np.abs(kg.center_of_mass(model, q)).max())
    assert abs(kg.potential_energy(model, q) - pin.computePotentialEnergy(twin, data, q)) <= CLOSE * scale
