"""Quaternions and couplings beside Pinocchio (free-flyer, spherical joints, mimic by substitution) and MuJoCo (ball and
free joints, a polynomial coupling).

Pinocchio keeps quaternions as (x, y, z, w), has angular velocity in the child's frame as we do, and linear velocity of
its free-flyer in the child's frame; kinegrad's is in the parent's.  MuJoCo's are (w, x, y, z), with angular velocity
in the child's frame and linear velocity in the world.
"""

import numpy as np
import pytest

import kinegrad as kg
from kinegrad import Inertia, ModelBuilder
from tests.conftest import assert_close
from tests.mixed import mixed_state
from tests.reference.coordinates import rotation

CLOSE = 1e-12  # both sum some hundred products in double precision, in different orders


def humanoid(*, root):
    """A floating (or hanging) trunk with two ball hips, knees that follow each other or not, numbered depth-first."""
    builder = ModelBuilder("humanoid", gravity=(0.3, -0.2, -9.81))
    trunk = Inertia.box(5.0, [0.3, 0.2, 0.5], com=[0.01, 0.02, 0.03])
    joint = kg.free(quaternion=True) if root == "free" else kg.spherical(quaternion=True)
    builder.add(
        "base", None, joint, link="trunk", inertia=trunk, placement=kg.rotate("y", 0.4) @ kg.translate(0.1, 0, 0.2)
    )
    for side, sign in (("left", 1.0), ("right", -1.0)):
        place = kg.rotate("x", 0.3 * sign) @ kg.translate(0, sign * 0.1, -0.2)
        thigh = Inertia.box(2.0, [0.1, 0.12, 0.4], com=[0.0, 0.02, -0.2])
        shank = Inertia.box(1.0, [0.05, 0.06, 0.3], com=[0.0, 0.0, -0.15])
        builder.add(
            f"{side}_hip", "trunk", kg.spherical(quaternion=True), link=f"{side}_thigh", placement=place, inertia=thigh
        )
        builder.add(
            f"{side}_knee",
            f"{side}_thigh",
            kg.revolute("y"),
            link=f"{side}_shank",
            placement=[0, 0, -0.4],
            inertia=shank,
        )
    return builder


# --- Pinocchio --------------------------------------------------------------------------------------------------------


class Pinocchio:
    """The twin, joint by joint, and states from one to the other: q, and the matrix B of ``their v = B v``."""

    def __init__(self, model):
        pin = pytest.importorskip("pinocchio")
        self.model, self.twin = model, pin.Model()
        self.twin.gravity.linear = np.array(model.gravity)
        self.free = model.joint_names[0].endswith("tx")
        balls, number = {first: first + 5 for first, _, _ in model.layout.balls}, {-1: 0}
        i = 0
        while i < model.n:
            floating = self.free and i == 0
            end = balls.get(3 if floating else i, i)  # the last of its hinges
            if floating:
                joint = pin.JointModelFreeFlyer()
            elif end > i:
                joint = pin.JointModelSpherical()
            else:
                joint = pin.JointModelRevoluteUnaligned(np.array(model.joints[i].axis))
            above, place = number[int(model.parents[i])], pin.SE3(model.placement[i])
            number[end] = self.twin.addJoint(above, joint, place, model.joint_names[i])
            body = pin.Inertia(float(model.mass[end]), model.com[end], model.inertia[end])
            self.twin.appendBodyToJoint(number[end], body, pin.SE3(model.tip[end]))
            i = end + 1
        self.data, self.pin = self.twin.createData(), pin

    def q(self, q):
        theirs = np.array(q)
        for _, k, _ in self.model.layout.balls:
            theirs[k : k + 4] = np.roll(q[k : k + 4], -1)
        return theirs

    def B(self, q):
        """Of the linear speeds of a free base: theirs are R(q)ᵀ times ours."""
        B = np.eye(self.model.nv)
        if self.free:
            B[:3, :3] = rotation(q[3:7]).T
        return B

    def a(self, q, v, a):
        """Their accelerations: d/dt (Rᵀ ẋ) = Rᵀ ẍ − ω × Rᵀ ẋ."""
        theirs = self.B(q) @ a
        if self.free:
            theirs[:3] -= np.cross(v[3:6], rotation(q[3:7]).T @ v[:3])
        return theirs


@pytest.fixture(params=["free", "ball"])
def pinocchio(request):
    model = humanoid(root=request.param).build()
    return model, Pinocchio(model)


@pytest.mark.parametrize("seed", range(5))
def test_pinocchio_torques_mass_matrix_and_accelerations(pinocchio, seed):
    model, twin = pinocchio
    q, v, a = mixed_state(model, seed)
    Q, B = twin.q(q), twin.B(q)
    theirs = twin.pin.rnea(twin.twin, twin.data, Q, B @ v, twin.a(q, v, a))
    tau = kg.inverse_dynamics(model, q, v, a)
    assert_close(tau, B.T @ theirs, CLOSE)
    M = twin.pin.crba(twin.twin, twin.data, Q)
    M = np.triu(M) + np.triu(M, 1).T
    assert_close(kg.mass_matrix(model, q), B.T @ M @ B, CLOSE)
    theirs = twin.pin.aba(twin.twin, twin.data, Q, B @ v, np.linalg.inv(B).T @ tau)
    assert_close(twin.a(q, v, kg.forward_dynamics(model, q, v, tau)), theirs, 1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_pinocchio_derivatives_in_the_tangent(seed):
    """Balls have the same tangent in both: ∂τ/∂(q, v, a) of Pinocchio's own formulas."""
    model = humanoid(root="ball").build()
    twin = Pinocchio(model)
    q, v, a = mixed_state(model, seed)
    theirs = twin.pin.computeRNEADerivatives(twin.twin, twin.data, twin.q(q), v, a)
    mine = kg.inverse_dynamics_derivatives(model, q, v, a)
    M = np.triu(theirs[2]) + np.triu(theirs[2], 1).T
    for x, y in ((mine.dtau_dq, theirs[0]), (mine.dtau_dv, theirs[1]), (mine.dtau_da, M)):
        assert_close(x, y, CLOSE)
    theirs = twin.pin.computeABADerivatives(twin.twin, twin.data, twin.q(q), v, mine.tau)
    change = kg.forward_dynamics_derivatives(model, q, v, mine.tau)
    assert_close(change.da_dq, theirs[0], 1e-11)
    assert_close(change.da_dv, theirs[1], 1e-11)


def test_pinocchio_configurations():
    """integrate and difference; neutral."""
    model = humanoid(root="ball").build()
    twin = Pinocchio(model)
    q, v, _ = mixed_state(model, 1)
    theirs = twin.pin.integrate(twin.twin, twin.q(q), v)
    mine = kg.integrate(model, q, v)
    assert_close(kg.difference(model, q, mine), twin.pin.difference(twin.twin, twin.q(q), theirs), 1e-13)
    assert_close(twin.q(mine), theirs, 1e-13)
    assert_close(twin.q(kg.neutral(model)), twin.pin.neutral(twin.twin), 1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_pinocchio_mimic_by_substitution(seed):
    """One knee follows the other: Pinocchio's knees given the same motion, its torques added up by the multiplier."""
    builder = humanoid(root="ball")
    builder.mimic("right_knee", "left_knee", multiplier=-1.5, offset=0.3)
    model, plain = builder.build(), humanoid(root="ball").build()
    twin = Pinocchio(plain)
    assert model.nv == plain.nv - 1
    q, v, a = mixed_state(model, seed)
    k, follower = model.coordinate_index("left_knee"), plain.coordinate_index("right_knee")
    Q = np.insert(q, follower, -1.5 * q[k] + 0.3)
    s, last = model.speed_index("left_knee"), plain.speed_index("right_knee")
    V, A = (np.insert(x, last, -1.5 * x[s]) for x in (v, a))
    theirs = twin.pin.rnea(twin.twin, twin.data, twin.q(Q), V, A)
    S = np.delete(np.eye(plain.nv), last, axis=1)
    S[last, s] = -1.5
    assert_close(kg.inverse_dynamics(model, q, v, a), S.T @ theirs, CLOSE)
    by_q, by_v, M = twin.pin.computeRNEADerivatives(twin.twin, twin.data, twin.q(Q), V, A)
    M = np.triu(M) + np.triu(M, 1).T
    mine = kg.inverse_dynamics_derivatives(model, q, v, a)
    for x, y in ((mine.dtau_dq, by_q), (mine.dtau_dv, by_v), (mine.dtau_da, M)):
        assert_close(x, S.T @ y @ S, CLOSE)


# --- MuJoCo -----------------------------------------------------------------------------------------------------------

XML = """
<mujoco><compiler angle="radian" autolimits="false"/><option gravity="0.3 -0.2 -9.81"/>
<worldbody><body name="trunk" pos="0 0 0">{base}
  <inertial pos="0.01 0.02 0.03" mass="5" diaginertia="0.12 0.14 0.05"/>
  <body name="thigh" pos="0 0.1 -0.2"><joint name="hip" type="ball" damping="0.7"/>
    <inertial pos="0 0.02 -0.2" mass="2" diaginertia="0.03 0.03 0.004"/>
    <body name="shank" pos="0 0 -0.4"><joint name="knee" type="hinge" axis="0 1 0"/>
      <joint name="slide" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 -0.15" mass="1" diaginertia="0.01 0.011 0.002"/></body></body></body></worldbody>
{equality}</mujoco>
"""


def mujoco_twin(base, equality=""):
    mujoco = pytest.importorskip("mujoco")
    return mujoco, mujoco.MjModel.from_xml_string(XML.format(base=base, equality=equality))


def leg(root):
    builder = ModelBuilder("leg", gravity=(0.3, -0.2, -9.81))
    builder.add("base", None, root, link="trunk", inertia=Inertia(5.0, [0.01, 0.02, 0.03], np.diag([0.12, 0.14, 0.05])))
    thigh, shank = (
        Inertia(2.0, [0, 0.02, -0.2], np.diag([0.03, 0.03, 0.004])),
        Inertia(1.0, [0, 0, -0.15], np.diag([0.01, 0.011, 0.002])),
    )
    builder.add(
        "hip",
        "trunk",
        kg.spherical(quaternion=True),
        link="thigh",
        placement=[0, 0.1, -0.2],
        inertia=thigh,
        damping=0.7,
    )
    builder.add("knee", "thigh", kg.revolute("y"), link="carrier", placement=[0, 0, -0.4])
    builder.add("slide", "carrier", kg.prismatic("x"), link="shank", inertia=shank)
    return builder


@pytest.mark.parametrize(("root", "base"), [("free", "<freejoint/>"), ("ball", '<joint type="ball"/>')])
@pytest.mark.parametrize("seed", range(4))
def test_mujoco_ball_and_free_joints(root, base, seed):
    mujoco, twin = mujoco_twin(base)
    model = leg(kg.free(quaternion=True) if root == "free" else kg.spherical(quaternion=True)).build()
    q, v, a = mixed_state(model, seed)
    data = mujoco.MjData(twin)
    data.qpos, data.qvel, data.qacc = q, v, a
    mujoco.mj_inverse(twin, data)
    tau = kg.inverse_dynamics(model, q, v, a)
    assert_close(tau, data.qfrc_inverse, CLOSE)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(twin, data, M)
    assert_close(kg.mass_matrix(model, q), M, CLOSE)
    data.qfrc_applied = tau
    mujoco.mj_forward(twin, data)
    assert_close(kg.forward_dynamics(model, q, v, tau), data.qacc, 1e-11)


def test_mujoco_integrates_quaternions_alike():
    mujoco, twin = mujoco_twin("<freejoint/>")
    model = leg(kg.free(quaternion=True)).build()
    q, v, _ = mixed_state(model, 2)
    theirs = q.copy()
    mujoco.mj_integratePos(twin, theirs, v, 0.7)
    assert_close(kg.integrate(model, q, 0.7 * v), theirs, 1e-13)
    change = np.empty(model.nv)
    mujoco.mj_differentiatePos(twin, change, 1.0, q, theirs)
    assert_close(kg.difference(model, q, theirs), change, 1e-12)


def test_mujoco_polynomial_coupling():
    """The shank slides as a polynomial of the knee angle: MuJoCo holds that by a constraint, whose force does no work
    in the coordinate; so where accelerations fulfil it, our torque is the sum of its joints' torques times slopes."""
    equality = '<equality><joint joint1="slide" joint2="knee" polycoef="0.01 0.02 -0.03 0.01 0"/></equality>'
    mujoco, twin = mujoco_twin('<joint type="ball"/>', equality)
    builder = leg(kg.spherical(quaternion=True))
    builder.couple("knee", {"knee": 1.0, "slide": kg.PolynomialFunction([0.01, 0.02, -0.03, 0.01])})
    model = builder.build()
    q, v, a = mixed_state(model, 4)
    x, dx, ddx = (q[-1], v[-1], a[-1])
    f = [0.01 + 0.02 * x - 0.03 * x**2 + 0.01 * x**3, 0.02 - 0.06 * x + 0.03 * x**2, -0.06 + 0.06 * x]
    data = mujoco.MjData(twin)
    data.qpos, data.qvel = np.append(q, f[0]), np.append(v, f[1] * dx)
    data.qacc = np.append(a, f[1] * ddx + f[2] * dx**2)
    mujoco.mj_inverse(twin, data)
    theirs = data.qfrc_inverse + data.qfrc_constraint
    expected = np.append(theirs[:-2], theirs[-2] + f[1] * theirs[-1])
    assert_close(kg.inverse_dynamics(model, q, v, a), expected, CLOSE)
