"""The same numbers as MuJoCo, with its own springs, dampers and rotors."""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import samples
from tests.conftest import SLIDERS_AND_HINGES, assert_close, random_loads, random_state, tree

mujoco = pytest.importorskip("mujoco")
from tests.peers.mujoco_model import can_be_mujoco, to_mujoco

# As with Pinocchio, 1e-15 to 1e-14; and MuJoCo keeps orientations as quaternions, read from text and
# normalised, which costs some 1e-16 a body.
CLOSE = 1e-12


def human():
    """Limbs with thickness, and a pelvis with mass: MuJoCo has no bodies without mass or moments."""
    body = kg.Inertia.sphere(1.0, 0.1)
    link = "pelvis.rz"
    return samples.human43(thickness=0.1).replace(mass={link: body.mass}, inertia={link: body.inertia})


def peer_trees(count):
    """Random trees without screws and branching massless links, numbered as MuJoCo does: depth first."""
    grown = (tree(seed, kinds=SLIDERS_AND_HINGES, depth_first=True) for seed in range(1000))
    return {model.name: model for model, _ in zip(filter(can_be_mujoco, grown), range(count), strict=False)}


MODELS = {
    "human": human(),
    "puma560": samples.puma560(),
    "spatial_chain": samples.spatial_chain(6),
    **peer_trees(20),
}


@pytest.fixture(params=MODELS)
def peer(request):
    """A model, its twin in MuJoCo with a state set, and that state."""
    model = MODELS[request.param]
    twin = to_mujoco(model)
    names = [twin.joint(i).name for i in range(twin.njnt)]
    assert names == list(model.joint_names), "numbered alike"
    data = mujoco.MjData(twin)
    state = random_state(model, 19)
    data.qpos, data.qvel, data.qacc = state
    return model, twin, data, state


def test_trees_have_massless_links_and_several_roots():
    """Otherwise half of the conversion would not be tried."""
    grown = peer_trees(20).values()
    assert len(grown) == 20
    assert any((model.mass == 0).any() for model in grown)
    assert any(len(model.topology.roots) > 1 for model in grown)


@pytest.mark.parametrize("method", ["spatial", "lagrange"])
def test_inverse_dynamics(peer, method):
    model, twin, data, state = peer
    mujoco.mj_inverse(twin, data)
    assert_close(kg.inverse_dynamics(model, *state, method=method), data.qfrc_inverse, CLOSE)


def test_mass_matrix(peer):
    model, twin, data, (q, _, _) = peer
    mujoco.mj_inverse(twin, data)
    M = np.zeros((model.n, model.n))
    mujoco.mj_fullM(twin, data, M)
    assert_close(kg.mass_matrix(model, q), M, CLOSE)


def test_forward_kinematics(peer):
    """Centres of mass of the bodies."""
    model, twin, data, (q, _, _) = peer
    mujoco.mj_kinematics(twin, data)
    links = [twin.body(k).name for k in range(1, twin.nbody)]
    com = model.com[[model.link_index(link) for link in links]]
    assert_close(kg.point_motion(model, q, link=links, point=com).position, data.xipos[1:], CLOSE)


def loads_on_bodies(model, seed):
    """Loads on links with mass: those without are no bodies in MuJoCo."""
    loads = random_loads(model, seed)
    heavy = (model.mass > 0)[:, None]
    return kg.Loads(loads.force * heavy, loads.point, loads.torque * heavy)


def test_inverse_dynamics_with_loads(peer):
    """MuJoCo's inverse leaves loads out; `mj_applyFT` says what they do to the joints."""
    model, twin, data, state = peer
    loads = loads_on_bodies(model, 20)
    mujoco.mj_inverse(twin, data)
    T = kg.forward_kinematics(model, state[0]).transform
    pushed = np.zeros(model.n)
    for i in np.flatnonzero(model.mass):
        x = T[i, :3, :3] @ loads.point[i] + T[i, :3, 3]
        mujoco.mj_applyFT(twin, data, loads.force[i], loads.torque[i], x, twin.body(model.link_names[i]).id, pushed)
    assert_close(kg.inverse_dynamics(model, *state, loads=loads), data.qfrc_inverse - pushed, CLOSE)


def test_torques_make_mujoco_accelerate_as_asked(peer):
    """Forward after inverse: MuJoCo, driven by kinegrad's τ and pushed by the same loads, has acceleration a.

    It wants each load as a wrench at the body's centre of mass.  Solving with M costs its condition
    number, up to 1e6 here, of the 1e-15 of the torques.
    """
    model, twin, data, (q, v, a) = peer
    loads = loads_on_bodies(model, 21)
    T = kg.forward_kinematics(model, q).transform
    for i in np.flatnonzero(model.mass):
        arm = T[i, :3, :3] @ (loads.point[i] - model.com[i])
        wrench = np.concatenate([loads.force[i], loads.torque[i] + np.cross(arm, loads.force[i])])
        data.xfrc_applied[twin.body(model.link_names[i]).id] = wrench
    data.qfrc_applied = kg.inverse_dynamics(model, q, v, a, loads=loads)
    mujoco.mj_forward(twin, data)
    assert_close(data.qacc, a, 1e-9)


def test_spring_dampers():
    """Spatial tendons between two sites, of branches, of one branch, and to the world: torques and accelerations."""
    for seed, model in enumerate(peer_trees(20).values()):
        rng, bodies = np.random.default_rng(seed), [x for x, m in zip(model.link_names, model.mass, strict=True) if m]
        between = [(bodies[0], None), (bodies[-1], None), *zip(bodies[1:], bodies[:-1], strict=True)][:4]
        springs = {
            f"s{k}": kg.SpringDamper(
                one, rng.normal(size=3), two, rng.normal(size=3), rng.uniform(1, 50), rng.uniform(0, 5), rng.uniform()
            )
            for k, (one, two) in enumerate(between)
        }
        model = model.replace(elements=springs)
        twin = to_mujoco(model)
        data = mujoco.MjData(twin)
        q, v, a = data.qpos, data.qvel, data.qacc = random_state(model, seed)
        mujoco.mj_inverse(twin, data)
        tau = kg.inverse_dynamics(model, q, v, a)
        assert_close(tau, data.qfrc_inverse, CLOSE)
        data.qfrc_applied = tau
        mujoco.mj_forward(twin, data)
        assert_close(kg.forward_dynamics(model, q, v, tau), data.qacc, 1e-8)  # as ill-conditioned as M is
