"""Every URDF file of example-robot-data: the same M, τ, ∂τ and places as Pinocchio's own reading of the file.

Pinocchio does not know of damping in τ, reads joints that mimic as independent ones, and numbers joints by the
alphabet; so ours are compared without damping, joint by joint (``Model.primitive``), by name.
"""

import functools
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import kinegrad as kg
from kinegrad.io import read_model
from kinegrad.model.coordinates import CoupledCoordinate
from tests.io.toml.test_round_trip import bits
from tests.io.urdf import test_refusals as urdf
from tests.published import HOW, published
from tests.robots import REFUSED, others, read, robots, table, urdf_files

CLOSE = 1e-9  # of the largest entry: both read the same decimals; observed is 1e-13
BODIES = ["hector_description/robots/quadrotor_base.urdf", "iris_description/robots/iris_simple.urdf"]
IMPOSSIBLE = [name for name, why in REFUSED.items() if "kg·m²" in why]  # read with inertia="project"


def names() -> list[str]:
    return [name for name in urdf_files() if name not in REFUSED]


@functools.cache
def load(name, **options):
    return read_model(robots() / name, **options).model


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
    assert len(urdf_files()) == 69
    assert {*REFUSED, *BODIES, *FREE, *MORE} <= set(urdf_files())
    assert len(names()) == 66


def compare(model, twin):
    """M, τ and ∂τ of both at one state, limits, and where links and frames are."""
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
    at_joint = [twin.getJointId(joint) for joint in model.joint_names]
    np.testing.assert_allclose(model.mass, [twin.inertias[k].mass for k in at_joint], rtol=1e-12)
    pin.framesForwardKinematics(twin, data, q_pin)
    for frame in (*model.frames, *model.link_names):
        body = data.oMf[twin.getFrameId(frame, pin.FrameType.BODY)]
        place = kg.point_motion(plain, q, link=frame, point=[0.1, 0.2, 0.3]).position
        np.testing.assert_allclose(place, body.act(np.array([0.1, 0.2, 0.3])), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in names() if name not in BODIES])
def test_same_as_pinocchio(name, tmp_path):
    """Without options; inertias that no body has, of parts, are added as Pinocchio adds them."""
    model = load(name)
    compare(model, pin.buildModelFromUrdf(str(robots() / name)))
    kg.save(model, tmp_path / "a.toml")
    assert bits(kg.load(tmp_path / "a.toml")) == bits(model)


def test_one_warning_each():
    """All that is to be told of a file is one warning of some lines."""
    assert all(len(read(name).warning) < 700 for name in names())


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused(name):
    for options in ({}, {"root": "free"}, {"strict": True}):
        with pytest.raises(kg.FileError) as caught:
            read_model(robots() / name, **options)
        assert any(REFUSED[name] in problem for problem in caught.value.problems)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_same_as_pinocchio_with_the_nearest_possible_inertias(name):
    """All else, masses and centres of mass too, is as Pinocchio reads it."""
    found = read_model(robots() / name, inertia="project")
    assert "inertia projected" in {note.what for note in found.report}
    compare(found.model, projected(found.model, pin.buildModelFromUrdf(str(robots() / name))))


def projected(model, twin):
    """Pinocchio's model with our inertias, where nothing else differs."""
    for i, joint in enumerate(model.joint_names):
        k = twin.getJointId(joint)
        own = twin.inertias[k]
        np.testing.assert_allclose(own.mass, model.mass[i], rtol=1e-12)
        np.testing.assert_allclose(own.mass * own.lever, model.mass[i] * model.com[i], rtol=0, atol=1e-12)
        twin.inertias[k] = pin.Inertia(float(model.mass[i]), model.com[i], model.inertia[i])
    return twin


def test_nearly_possible_inertias_are_those_of_pinocchio_but_for_one_percent(tmp_path):
    """A body with a part that is impossible beyond what the whole makes up for."""
    place = '<origin xyz="0.1 0 0.2" rpy="0.1 0.2 0.3"/>'
    upper, tool = urdf.moments("1", "1.5", "2.5"), urdf.moments("1e-3", "1e-3", "3e-2")
    links = [urdf.link("upper", urdf.body("1", upper)), urdf.link("tool", urdf.body("0.01", tool))]
    joints = [urdf.joint("a", "base", "upper"), urdf.joint("b", "upper", "tool", "fixed", place)]
    path = tmp_path / "a.urdf"
    path.write_text(urdf.robot(urdf.link("base"), *links, *joints))
    found, twin = read_model(path), pin.buildModelFromUrdf(str(path))
    assert [repair.what for repair in found.report.repairs] == ["inertia projected"]
    own, near = twin.inertias[1].inertia.copy(), found.model.inertia[0]
    assert 1e-4 < np.abs(own - near).max() < 0.01 * np.linalg.eigvalsh(near)[0]
    compare(found.model, projected(found.model, twin))


def page() -> str:
    return (Path(__file__).parents[2] / "docs/files.md").read_text(encoding="utf-8")


def test_the_table_in_the_docs_is_what_is_found():
    """``python -m tests.robots`` prints it."""
    assert table(urdf_files()) in page()


@pytest.mark.slow  # as what fetches them is
@pytest.mark.skipif(not published("pose2sim", ".osim"), reason=HOW)
def test_the_table_of_other_formats_is_what_is_found():
    assert table(others()) in page()


@pytest.mark.parametrize("name", BODIES)
def test_files_of_one_body_need_a_free_root(name):
    with pytest.raises(kg.FileError, match="has no joint that moves; expected one that moves, or root='free'"):
        load(name)
    assert load(name, root="free").nv == 6


FREE = [
    "iris_description/robots/iris_simple.urdf", "z1_description/urdf/z1.urdf", "go1_description/urdf/go1.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf", "tiago_description/robots/tiago.urdf",
]  # fmt: skip
MORE = [name for name in names() if name not in FREE]


@pytest.mark.parametrize("name", [*FREE, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_free_roots(name):
    """Pinocchio's free flyer has its velocity in its own frame; ours has the rates of its place in the world."""
    model = load(name, root="free", quaternion=True)
    twin = pin.buildModelFromUrdf(str(robots() / name), pin.JointModelFreeFlyer())
    model = model.replace(damping=np.zeros(model.n))
    rng = np.random.default_rng(1)
    q, (v, a) = kg.random_configuration(model, rng), rng.uniform(-1, 1, (2, model.nv))
    moved = {joint: (joint, 1.0, 0.0) for joint in model.speed_names[6:]}  # speeds, and what they move
    for one in model.coordinates:
        if isinstance(one, CoupledCoordinate):
            each = zip(one.joints, one.functions, strict=True)
            moved |= {model.joint_names[i]: (one.name, f.multiplier, f.offset) for i, f in each}
    G, values = np.zeros((twin.nv, model.nv)), dict(zip(model.coordinate_names[7:], q[7:], strict=True))
    for joint, (speed, multiplier, _) in moved.items():
        G[twin.joints[twin.getJointId(joint)].idx_v, model.speed_names.index(speed)] = multiplier
    w, x, y, z = q[3:7]
    R = pin.Quaternion(w, x, y, z).toRotationMatrix()
    G[:3, :3], G[3:6, 3:6] = R.T, np.eye(3)
    q_pin = pinocchio_q(twin, {joint: m * values[speed] + offset for joint, (speed, m, offset) in moved.items()})
    q_pin[:3], q_pin[3:7] = q[:3], (x, y, z, w)
    v_pin, a_pin = G @ v, G @ a
    a_pin[:3] -= np.cross(v[3:6], R.T @ v[:3])
    data = twin.createData()
    agree(kg.inverse_dynamics(model, q, v, a), G.T @ pin.rnea(twin, data, q_pin, v_pin, a_pin))
    M = pin.crba(twin, data, q_pin)
    M = np.triu(M) + np.triu(M, 1).T
    agree(kg.mass_matrix(model, q), G.T @ M @ G)
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
