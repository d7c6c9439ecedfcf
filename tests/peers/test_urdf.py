"""Every URDF file of example-robot-data: the same M, τ and ∂τ as Pinocchio's own reading of the file.

Pinocchio does not know of damping in τ, reads joints that mimic as independent ones, and numbers joints by the
alphabet; so ours are compared without damping, joint by joint (``Model.primitive``), by name.
"""

import functools
import importlib.metadata
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import kinegrad as kg
from kinegrad.io.urdf import read
from tests.io.toml.test_round_trip import bits

CLOSE = 1e-9  # of the largest entry: both read the same decimals; observed is 1e-13
# files that no reader should take, and why; the rest is read as it is, or with massless=True
INVALID = {
    "alex_description/urdf/alex_psyonic_hands.urdf": "joint=\"index_q1\" does not exist",
    "allegro_hand_description/urdf/allegro_left_hand.urdf": "violate the triangle inequality",
    "allegro_hand_description/urdf/allegro_right_hand.urdf": "violate the triangle inequality",
    "anymal_b_simple_description/robots/anymal-kinova.urdf": "violate the triangle inequality",
    "anymal_b_simple_description/robots/anymal.urdf": "violate the triangle inequality",
    "anymal_c_simple_description/urdf/anymal.urdf": "violate the triangle inequality",
    "b1_description/urdf/b1-z1.urdf": "violate the triangle inequality",
    "b1_description/urdf/b1.urdf": "violate the triangle inequality",
    "bolt_description/robots/bolt.urdf": "`mass` is 0 kg, but",
    "go1_description/urdf/go1.urdf": "violate the triangle inequality",
    "hyq_description/robots/hyq_no_sensors.urdf": "violate the triangle inequality",
    "pr2_description/urdf/pr2.urdf": "violate the triangle inequality",
    "romeo_description/urdf/romeo_laas_small.urdf": "is negative (is the given inertia about another point?)",
    "romeo_description/urdf/romeo_small.urdf": "violate the triangle inequality",
    "tiago_description/robots/tiago.urdf": "is negative",
    "tiago_description/robots/tiago_dual.urdf": "is negative",
    "tiago_description/robots/tiago_no_hand.urdf": "is negative",
    "ur_description/urdf/ur3.urdf": "has no <link>",
}  # fmt: skip

BODIES = ["hector_description/robots/quadrotor_base.urdf", "iris_description/robots/iris_simple.urdf"]


@functools.cache
def robots() -> Path:
    files = importlib.metadata.files("example-robot-data") or []
    found = next(f for f in files if f.name == "panda.urdf")
    return Path(found.locate()).resolve().parents[2]


def names() -> list[str]:
    try:
        return sorted(str(path.relative_to(robots())) for path in robots().rglob("*.urdf"))
    except importlib.metadata.PackageNotFoundError:
        return []


def load(name, **options):
    return read(robots() / name, massless=True, **options).model


def pinocchio_q(twin, values):
    """Coordinates of Pinocchio from those of joints by name; a continuous joint has a cosine and a sine."""
    q = pin.neutral(twin)
    for index, name in enumerate(twin.names):
        joint = twin.joints[index]
        if name in values:
            angle = values[name]
            q[joint.idx_q : joint.idx_q + joint.nq] = [np.cos(angle), np.sin(angle)] if joint.nq == 2 else [angle]
    return q


def agree(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE * max(np.abs(expected).max(), 1e-9))


def test_they_are_there():
    assert len(names()) == 69
    assert {*INVALID, *BODIES, *FREE} <= set(names())


def compare(model, twin):
    """M, τ and ∂τ of both at one state, and where frames are."""
    joints = [twin.names[k] for k in range(1, twin.njoints)]
    assert sorted(joints) == sorted(model.joint_names)
    plain = model.primitive.replace(damping=np.zeros(model.n))
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-1, 1, (3, model.n))
    at = [twin.joints[twin.getJointId(joint)].idx_v for joint in model.joint_names]
    v_pin, a_pin = np.zeros((2, twin.nv))
    v_pin[at], a_pin[at] = v, a
    q_pin = pinocchio_q(twin, dict(zip(model.joint_names, q, strict=True)))
    data = twin.createData()
    tau = pin.rnea(twin, data, q_pin, v_pin, a_pin)
    dq, dv, M = pin.computeRNEADerivatives(twin, data, q_pin, v_pin, a_pin)
    M = np.triu(M) + np.triu(M, 1).T
    agree(kg.inverse_dynamics(plain, q, v, a), tau[at])
    agree(kg.mass_matrix(plain, q), M[np.ix_(at, at)])
    found = kg.inverse_dynamics_derivatives(plain, q, v, a)
    agree(found.dtau_dq, dq[np.ix_(at, at)])
    agree(found.dtau_dv, dv[np.ix_(at, at)])
    np.testing.assert_array_equal(model.damping, twin.damping[at])
    limited = [i for i, joint in enumerate(model.joint_names) if twin.joints[twin.getJointId(joint)].nq == 1]
    at_q = [twin.joints[twin.getJointId(model.joint_names[i])].idx_q for i in limited]
    np.testing.assert_array_equal(model.position_limits[limited, 0], twin.lowerPositionLimit[at_q])
    np.testing.assert_array_equal(model.position_limits[limited, 1], twin.upperPositionLimit[at_q])
    pin.framesForwardKinematics(twin, data, q_pin)
    for frame in model.frames:
        body = data.oMf[twin.getFrameId(frame, pin.FrameType.BODY)]
        place = kg.point_motion(plain, q, link=frame, point=[0.1, 0.2, 0.3]).position
        np.testing.assert_allclose(place, body.act(np.array([0.1, 0.2, 0.3])), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in names() if name not in {*INVALID, *BODIES}])
def test_same_as_pinocchio(name, tmp_path):
    model = load(name)
    compare(model, pin.buildModelFromUrdf(str(robots() / name)))
    kg.save(model, tmp_path / "a.toml")
    assert bits(kg.load(tmp_path / "a.toml")) == bits(model)


@pytest.mark.parametrize("name", INVALID)
def test_invalid_files_are_refused_and_repaired(name):
    """With the nearest possible inertias, all else, masses and centres of mass too, is as Pinocchio reads it."""
    with pytest.raises(kg.FileError) as caught:
        load(name)
    assert any(INVALID[name] in problem for problem in caught.value.problems)
    if any(why in INVALID[name] for why in ("does not exist", "has no <link>")):
        return
    found = read(robots() / name, massless=True, inertia="project")
    assert found.report.counts["inertia projected"] >= 1
    model, twin = found.model, pin.buildModelFromUrdf(str(robots() / name))
    for i, joint in enumerate(model.joint_names):
        k = twin.getJointId(joint)
        own = twin.inertias[k]
        np.testing.assert_allclose(own.mass, model.mass[i], rtol=1e-12)
        np.testing.assert_allclose(own.mass * own.lever, model.mass[i] * model.com[i], rtol=0, atol=1e-12)
        twin.inertias[k] = pin.Inertia(float(model.mass[i]), model.com[i], model.inertia[i])
    compare(model, twin)


@pytest.mark.parametrize("name", BODIES)
def test_files_of_one_body_need_a_free_root(name):
    with pytest.raises(kg.FileError, match="has no joint that moves; expected one that moves, or root='free'"):
        load(name)
    assert load(name, root="free").nv == 6


FREE = ["iris_description/robots/iris_simple.urdf", "a1_description/urdf/a1.urdf", "z1_description/urdf/z1.urdf"]


@pytest.mark.parametrize("name", FREE)
def test_free_roots(name):
    """Pinocchio's free flyer has its velocity in its own frame; ours has the rates of its place in the world."""
    model = load(name, root="free", quaternion=True)
    twin = pin.buildModelFromUrdf(str(robots() / name), pin.JointModelFreeFlyer())
    model = model.replace(damping=np.zeros(model.n))
    rng = np.random.default_rng(1)
    q, (v, a) = kg.random_configuration(model, rng), rng.uniform(-1, 1, (2, model.nv))
    others = model.speed_names[6:]
    at = [*range(6), *(twin.joints[twin.getJointId(joint)].idx_v for joint in others)]
    w, x, y, z = q[3:7]
    R = pin.Quaternion(w, x, y, z).toRotationMatrix()
    q_pin = pinocchio_q(twin, dict(zip(others, q[7:], strict=True)))
    q_pin[:3], q_pin[3:7] = q[:3], (x, y, z, w)
    v_pin, a_pin = np.zeros((2, twin.nv))
    v_pin[at], a_pin[at] = v, a
    v_pin[:3] = R.T @ v[:3]
    a_pin[:3] = R.T @ a[:3] - np.cross(v[3:6], R.T @ v[:3])
    data = twin.createData()
    T = np.eye(model.nv)
    T[:3, :3] = R
    agree(kg.inverse_dynamics(model, q, v, a), T @ pin.rnea(twin, data, q_pin, v_pin, a_pin)[at])
    M = pin.crba(twin, data, q_pin)
    M = np.triu(M) + np.triu(M, 1).T
    agree(kg.mass_matrix(model, q), T @ M[np.ix_(at, at)] @ T.T)
    euler = load(name, root="free")
    assert euler.coordinate_names[:6] == ("root.tx", "root.ty", "root.tz", "root.rz", "root.ry", "root.rx")


@pytest.mark.parametrize("name", ["panda_description/urdf/panda.urdf", "baxter_description/urdf/baxter.urdf"])
def test_joints_that_mimic_others(name):
    """One coordinate moves both, as in Pinocchio's own joints of that kind; where the leader is the later one in the
    tree, as in Talos, Pinocchio refuses the file."""
    model = load(name)
    model = model.replace(damping=np.zeros(model.n))
    twin = pin.buildModelFromUrdf(str(robots() / name), mimic=True)
    assert twin.nv == model.nv < model.n
    q, v, a = np.random.default_rng(2).uniform(-1, 1, (3, model.nv))
    at = [twin.joints[twin.getJointId(joint)].idx_v for joint in model.speed_names]
    v_pin, a_pin = np.zeros((2, twin.nv))
    v_pin[at], a_pin[at] = v, a
    q_pin = pinocchio_q(twin, dict(zip(model.coordinate_names, q, strict=True)))
    data = twin.createData()
    agree(kg.inverse_dynamics(model, q, v, a), pin.rnea(twin, data, q_pin, v_pin, a_pin)[at])
    M = pin.crba(twin, data, q_pin)
    M = np.triu(M) + np.triu(M, 1).T
    agree(kg.mass_matrix(model, q), M[np.ix_(at, at)])
