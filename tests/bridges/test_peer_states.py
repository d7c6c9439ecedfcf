"""States of Pinocchio and MuJoCo converted: dynamics, poses and Jacobians of both libraries agree after it.

Pinocchio sorts joints by the alphabet, has quaternions (x, y, z, w) and speeds of free-flyers in axes of the body, so
its array is of the right shape for kinegrad and means another posture.
"""

import functools
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import kinegrad as kg
from kinegrad.bridges import from_mujoco, from_pinocchio, to_mujoco, to_pinocchio
from tests.peers.test_urdf import robots

CLOSE = 1e-10  # of the largest entry; observed is 1e-14
TALOS = "talos_data/robots/talos_reduced.urdf"


@functools.cache
def talos(quaternion=True):
    path = robots() / TALOS
    model = kg.load(path, root="free", quaternion=quaternion)
    return model.replace(damping=0.0), pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())


def state(model, seed=0, batch=()):
    """Turns of a base stay where angles are unique."""
    rng = np.random.default_rng(seed)
    q = kg.integrate(model, kg.neutral(model), rng.uniform(-1, 1, (*batch, model.nv)))
    return q, *rng.uniform(-1, 1, (3, *batch, model.nv))


def agree(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE * max(abs(expected).max(), 1.0))


@pytest.mark.filterwarnings("ignore::kinegrad.io.LeftOutWarning")
@pytest.mark.parametrize("quaternion", [True, False])
def test_talos_has_the_dynamics_of_pinocchio(quaternion):
    model, theirs = talos(quaternion)
    data = theirs.createData()
    q, v, a, tau = state(model)
    there = to_pinocchio(model, theirs, q, v, a, tau=tau)
    back = from_pinocchio(model, theirs, there.q, there.v, there.a, tau=there.tau)
    for name, x in (("q", q), ("v", v), ("a", a), ("tau", tau)):
        np.testing.assert_allclose(getattr(back, name), x, rtol=0, atol=1e-12)
    torques = pin.rnea(theirs, data, there.q, there.v, there.a)
    agree(from_pinocchio(model, theirs, there.q, tau=torques).tau, kg.inverse_dynamics(model, q, v, a))
    accelerations = pin.aba(theirs, data, there.q, there.v, there.tau)
    found = from_pinocchio(model, theirs, there.q, there.v, accelerations)
    agree(found.a, kg.forward_dynamics(model, q, v, tau))
    # the same place, and the same Jacobian after the chain rule
    sole = theirs.getFrameId("left_sole_link")
    pin.computeJointJacobians(theirs, data, there.q)
    pin.updateFramePlacements(theirs, data)
    agree(kg.point_motion(model, q, link="left_sole_link").position, data.oMf[sole].translation)
    J = pin.getFrameJacobian(theirs, data, sole, pin.LOCAL_WORLD_ALIGNED)[:3]
    agree(J @ there.speed_map, kg.jacobian(model, q, link="left_sole_link").linear)
    agree(kg.jacobian(model, q, link="left_sole_link").linear @ back.speed_map, J)


@pytest.mark.filterwarnings("ignore::kinegrad.io.LeftOutWarning")
def test_the_first_posture_of_a_pinocchio_user():
    """A bent knee by Pinocchio's own index is a bent knee here."""
    model, theirs = talos()
    q = pin.neutral(theirs)
    q[theirs.joints[theirs.getJointId("leg_left_4_joint")].idx_q] = 1.2
    found = from_pinocchio(model, theirs, q).q
    expected = kg.neutral(model)
    expected[model.coordinate_index("leg_left_4_joint")] = 1.2
    np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore::kinegrad.io.LeftOutWarning")
@pytest.mark.parametrize("quaternion", [True, False])
def test_batches_are_single_states(quaternion):
    model, theirs = talos(quaternion)
    q, v, a, tau = state(model, 1, (2, 3))
    whole = to_pinocchio(model, theirs, q, v, a, tau=tau)
    back = from_pinocchio(model, theirs, whole.q, whole.v, whole.a, tau=whole.tau)
    for k in np.ndindex(2, 3):
        one = to_pinocchio(model, theirs, q[k], v[k], a[k], tau=tau[k])
        for name in ("q", "v", "a", "tau", "speed_map"):
            np.testing.assert_allclose(getattr(whole, name)[k], getattr(one, name), rtol=0, atol=1e-13)
    np.testing.assert_allclose(back.a, a, rtol=0, atol=1e-12)
    assert to_pinocchio(model, theirs, q, v[0, 0]).v.shape == (2, 3, theirs.nv)  # leading axes broadcast


def arm(**options):
    """All kinds of joints, in another order and under names that are sorted otherwise."""
    builder = kg.ModelBuilder("all kinds")
    body = kg.Inertia.box(1.0, [0.1, 0.2, 0.3])
    builder.add("truck", None, kg.planar("z"), link="deck", placement=[0.1, 0, 0], inertia=body)
    builder.add("mast", "deck", kg.spherical(**options), link="top", placement=[0, 0, 0.5], inertia=body)
    builder.add("belt", "top", kg.prismatic("y"), inertia=body)
    builder.add("wheel", "deck", kg.revolute("y"), placement=[0, 0.3, 0], inertia=body)
    builder.add("bolt", "top", kg.screw("x", pitch=0.1), inertia=body)
    theirs = pin.Model()
    inertia = pin.Inertia(1.0, np.zeros(3), body.inertia)
    places = {"truck": [0.1, 0, 0], "mast": [0, 0, 0.5], "wheel": [0, 0.3, 0], "belt": [0, 0, 0], "bolt": [0, 0, 0]}
    kinds = {
        "truck": pin.JointModelPlanar(), "wheel": pin.JointModelRUBY(), "mast": pin.JointModelSpherical(),
        "bolt": pin.JointModelHelicalUnaligned(np.array([1.0, 0, 0]), 0.1), "belt": pin.JointModelPY(),
    }  # fmt: skip
    for name, parent in (("truck", None), ("wheel", "truck"), ("mast", "truck"), ("bolt", "mast"), ("belt", "mast")):
        above = theirs.getJointId(parent) if parent else 0
        k = theirs.addJoint(above, kinds[name], pin.SE3(np.eye(3), np.array(places[name])), name)
        theirs.appendBodyToJoint(k, inertia, pin.SE3.Identity())
    return builder.build(), theirs


@pytest.mark.parametrize("options", [{"quaternion": True}, {}, {"sequence": "xzx"}, {"sequence": "yxz"}])
def test_every_kind_of_joint(options):
    """Balls with quaternions and with angles about axes in any order; planar, continuous, helical joints."""
    model, theirs = arm(**options)
    q, v, a, tau = state(model, 3)
    there = to_pinocchio(model, theirs, q, v, a, tau=tau)
    torques = pin.rnea(theirs, theirs.createData(), there.q, there.v, there.a)
    back = from_pinocchio(model, theirs, there.q, there.v, there.a, tau=torques)
    if options != {"sequence": "xzx"}:  # other angles of the same orientation
        np.testing.assert_allclose(back.q, q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(back.a, a, rtol=0, atol=1e-11)
    agree(back.tau, kg.inverse_dynamics(model, back.q, back.v, back.a))
    accelerations = pin.aba(theirs, theirs.createData(), there.q, there.v, there.tau)
    agree(
        from_pinocchio(model, theirs, there.q, there.v, accelerations).a[:3], kg.forward_dynamics(model, q, v, tau)[:3]
    )


GRIPPER = """<robot name="gripper"><link name="base"/>
{links}
<joint name="right" type="prismatic"><parent link="base"/><child link="r"/><axis xyz="0 -1 0"/>
<limit lower="0" upper="1" effort="1" velocity="1"/><mimic joint="left" multiplier="-2" offset="0.1"/></joint>
<joint name="left" type="prismatic"><parent link="base"/><child link="l"/><axis xyz="0 1 0"/>
<limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>""".format(
    links="".join(f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" '
                  f'iyz="0"/></inertial></link>' for name in "lr")
)  # fmt: skip


def test_joints_that_follow_others(tmp_path):
    """Pinocchio reads them as independent: they are checked on the way here, and follow on the way there."""
    path = tmp_path / "gripper.urdf"
    path.write_text(GRIPPER)
    model, theirs = kg.load(path), pin.buildModelFromUrdf(str(path))
    there = to_pinocchio(model, theirs, [0.3], [1.0], [2.0], tau=[5.0])
    assert list(theirs.names)[1:] == ["left", "right"]
    np.testing.assert_allclose([there.q, there.v, there.a, there.tau], [[0.3, -0.5], [1, -2], [2, -4], [5, 0]])
    back = from_pinocchio(model, theirs, there.q, there.v, there.a, tau=[5.0, 1.0])
    np.testing.assert_allclose([back.q, back.v, back.a, back.tau], [[0.3], [1], [2], [3]])
    with pytest.raises(kg.InputError, match=r"`q`: joint 'right' is 0.5 off from where the joint that it follows puts"):
        from_pinocchio(model, theirs, [0.3, 0.0])
    with pytest.raises(kg.InputError, match=r"`v`: joint 'right' differs by 3 from the joint that it follows"):
        from_pinocchio(model, theirs, there.q, [1.0, 1.0])


@pytest.mark.filterwarnings("ignore::kinegrad.io.LeftOutWarning")
def test_models_of_different_mechanisms_are_refused():
    model, theirs = talos()
    q = kg.neutral(model)
    fixed = pin.buildModelFromUrdf(str(robots() / TALOS))
    with pytest.raises(
        kg.InputError, match=r"the model has 'root.tx', 'root.ty'.*, which Pinocchio has not.*FreeFlyer"
    ):
        to_pinocchio(model, fixed, q)
    with pytest.raises(kg.InputError, match=r"Pinocchio has 'root_joint', .*which the model has not"):
        from_pinocchio(kg.samples.two_link(), theirs, pin.neutral(theirs))
    other = pin.Model()
    upper = other.addJoint(0, pin.JointModelPZ(), pin.SE3.Identity(), "shoulder")
    other.addJoint(upper, pin.JointModelRZ(), pin.SE3.Identity(), "elbow")
    with pytest.raises(kg.InputError, match="joint 'shoulder' is prismatic in Pinocchio and revolute in the model"):
        to_pinocchio(kg.samples.two_link(), other, [0, 0])
    odd = pin.Model()
    odd.addJoint(0, pin.JointModelSphericalZYX(), pin.SE3.Identity(), "shoulder")
    with pytest.raises(kg.InputError, match="joint 'shoulder' of Pinocchio is a JointModelSphericalZYX; expected rev"):
        to_pinocchio(kg.samples.two_link(), odd, [0, 0])
    for theirs in (None, "talos", mujoco.MjModel.from_xml_string("<mujoco/>")):
        with pytest.raises(kg.InputError, match=r"`theirs` is a .*; expected a pinocchio.Model"):
            to_pinocchio(model, theirs, q)
    with pytest.raises(kg.InputError, match=r"`theirs` is a Model; expected a mujoco.MjModel"):
        to_mujoco(model, fixed, q)


@pytest.mark.filterwarnings("ignore::kinegrad.io.LeftOutWarning")
def test_wrong_states_are_refused():
    model, theirs = talos()
    q = pin.neutral(theirs)
    with pytest.raises(
        kg.InputError, match=r"`q` has shape \(38,\); the model of Pinocchio has 39 of them, so its last"
    ):
        from_pinocchio(model, theirs, q[1:])
    with pytest.raises(kg.InputError, match="the quaternion of joint 'root_joint' has length 2; expected 1"):
        from_pinocchio(model, theirs, np.r_[q[:6], 2.0, q[7:]])
    with pytest.raises(kg.InputError, match=r"`q` is None; expected the posture"):
        from_pinocchio(model, theirs, None)
    with pytest.raises(kg.InputError, match=r"`a` is given without `v`"):
        from_pinocchio(model, theirs, q, a=np.zeros(38))
    angles, _ = talos(quaternion=False)
    up = kg.neutral(angles)
    up[angles.coordinate_index("root.ry")] = np.pi / 2
    with pytest.raises(kg.SingularError, match="angles of joint 'root_joint' are where two of its axes are one; load"):
        to_pinocchio(angles, theirs, up)


MJCF = """<mujoco><compiler angle="radian"/><option><flag contact="disable"/></option><worldbody>
<body name="drone" pos="3 2 1" euler="1 0 0"><freejoint name="fly"/><geom type="box" size="0.1 0.2 0.3"/>
<body pos="0 0 0.2"><joint name="eye" type="ball" pos="0 0 -0.1"/><geom type="box" size="0.2 0.1 0.1"/></body>
<body pos="0 0 0.2"><joint name="rotor" axis="0 1 1"/><geom type="box" size="0.1 0.2 0.1"/></body></body>
</worldbody></mujoco>"""


def test_mujoco_by_angles_and_by_quaternions(tmp_path):
    path = tmp_path / "drone.xml"
    path.write_text(MJCF)
    theirs = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(theirs)
    for quaternion in (True, False):
        model = kg.load(path, quaternion=quaternion)
        q, v, a, tau = state(model, 5)
        there = to_mujoco(model, theirs, q, v, a, tau=tau)
        if quaternion:  # the order and conventions are MuJoCo's own
            for name, x in (("q", q), ("v", v), ("a", a), ("tau", tau)):
                np.testing.assert_array_equal(getattr(there, name), x)
        data.qpos[:], data.qvel[:], data.qacc[:] = there.q, there.v, there.a
        mujoco.mj_inverse(theirs, data)
        back = from_mujoco(model, theirs, there.q, there.v, there.a, tau=data.qfrc_inverse)
        np.testing.assert_allclose(back.q, q, rtol=0, atol=1e-12)
        agree(back.tau, kg.inverse_dynamics(model, q, v, a))


def test_files_without_a_base_read_by_both(tmp_path):
    """MuJoCo and kinegrad read one URDF file in their own orders."""
    path = Path(tmp_path, "arm.urdf")
    path.write_text(GRIPPER.replace('<mimic joint="left" multiplier="-2" offset="0.1"/>', ""))
    theirs = mujoco.MjModel.from_xml_path(str(path))
    model = kg.load(path)
    q = np.arange(2.0)
    data = mujoco.MjData(theirs)
    data.qpos[:] = to_mujoco(model, theirs, q).q
    mujoco.mj_kinematics(theirs, data)
    for name in "lr":
        found = kg.point_motion(model, q, link=name).position
        np.testing.assert_allclose(data.body(name).xpos, found, atol=1e-15)
