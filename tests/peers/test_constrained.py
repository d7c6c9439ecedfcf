"""Constrained dynamics and its derivatives from Pinocchio, and accelerations under equality constraints from MuJoCo."""

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import kinegrad as kg
from kinegrad.constraints import project_velocity
from tests.constrained.test_derivatives import closed_state, standing
from tests.constrained.test_dynamics import relative
from tests.peers.mujoco_model import mujoco_xml, numbers
from tests.peers.pinocchio_model import pinocchio_model

AXES = np.eye(3)
TURNS = ((AXES[2], -AXES[1]), (AXES[2], AXES[0]), (AXES[0], AXES[1]))  # the vectors of `link` and `other` of X, Y, Z


class Pinocchio:
    """The same constraints for Pinocchio: contacts in all world directions, welds in the axes of the link."""

    def __init__(self, held):
        self.model = pinocchio_model(held.model)
        self.data = self.model.createData()
        self.constraints, self.work = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for one in held:
            self.constraints.append(self.constraint(held.model, one))
            self.work.append(self.constraints[-1].createData())
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.work)
        self.settings = pin.ProximalSettings(1e-14, 0.0, 1)

    def constraint(self, model, one):
        i = model.link_names.index(one.link)
        if isinstance(one, kg.Contact):
            place = pin.SE3(model.tip[i] @ kg.translate(*one.point))
            return pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, self.model, i + 1, place, pin.LOCAL_WORLD_ALIGNED
            )
        place, kind = pin.SE3(model.tip[i] @ one.placement), pin.ContactType.CONTACT_6D
        if one.other is None:
            return pin.RigidConstraintModel(kind, self.model, i + 1, place, pin.LOCAL)
        j = model.link_names.index(one.other)
        there = pin.SE3(model.tip[j] @ one.other_placement)
        return pin.RigidConstraintModel(kind, self.model, i + 1, place, j + 1, there, pin.LOCAL)

    def accelerations(self, *state):
        return pin.constraintDynamics(self.model, self.data, *state, self.constraints, self.work, self.settings).copy()

    def derivatives(self, *state):
        """∂a and ∂f by q, v and τ."""
        self.accelerations(*state)
        return pin.computeConstraintDynamicsDerivatives(
            self.model, self.data, self.constraints, self.work, self.settings
        )


def forces_in_axes_of_links(held, q, d):
    """∂f/∂q where forces of welds are taken in axes that turn with the link, as Pinocchio's do, and not in those of the
    other link or the world: −δ×f for a relative turn δ; and of a torque Σ f a×b what the turn of a makes of it
    besides."""
    found = d.dforces_dq.copy()
    for one in held:
        rows = held.rows(one.name)
        turn, axes = kg.jacobian(held.model, q, link=one.link).angular, one.other_placement[:3, :3]
        if one.other is not None:
            turn = turn - kg.jacobian(held.model, q, link=one.other).angular
            i = held.model.link_names.index(one.other)
            axes = kg.forward_kinematics(held.model, q).transform[i, :3, :3] @ axes
        turn = axes.T @ turn
        force, torque = d.forces[rows][:3], d.forces[rows][3:]
        bent = [sum(f * np.cross(np.cross(z, a), b) for f, (a, b) in zip(torque, TURNS, strict=True)) for z in turn.T]
        found[rows][:3] -= np.cross(turn.T, force).T
        found[rows][3:] += np.transpose(bent) - np.cross(turn.T, torque).T
    return found


@pytest.mark.parametrize("feet", [["left_foot"], ["left_foot", "right_foot"]], ids=len)
def test_pinocchio_welded_feet(feet):
    human, held, q, v, tau = standing(feet)
    peer = Pinocchio(held)
    found = kg.constrained_dynamics_derivatives(human, held, q, v, tau)
    assert relative(found.a, peer.accelerations(q, v, tau)) < 1e-11
    assert relative(found.forces, peer.data.lambda_c) < 1e-11
    by = peer.derivatives(q, v, tau)
    ours = [found.da_dq, found.da_dv, found.da_dtau]
    ours += [forces_in_axes_of_links(held, q, found), found.dforces_dv, found.dforces_dtau]
    for x, y in zip(ours, by, strict=True):
        assert relative(x, y) < 1e-10


def test_pinocchio_point_contacts():
    # three directions of the world at a point of each foot; forces of both are in world axes
    human, _, q, v, tau = standing([])
    feet = [kg.Contact("left_foot", [0.1, 0.02, 0.0]), kg.Contact("right_foot", [0.0, 0.1, 0.05])]
    held = kg.ConstraintSet(human, feet).held_at(q)
    v = project_velocity(human, held, q, v)
    peer = Pinocchio(held)
    found = kg.constrained_dynamics_derivatives(human, held, q, v, tau)
    assert relative(found.a, peer.accelerations(q, v, tau)) < 1e-11
    assert relative(found.forces, peer.data.lambda_c) < 1e-11
    by = peer.derivatives(q, v, tau)
    ours = [found.da_dq, found.da_dv, found.da_dtau, found.dforces_dq, found.dforces_dv, found.dforces_dtau]
    for x, y in zip(ours, by, strict=True):
        assert relative(x, y) < 1e-10


def test_pinocchio_loop():
    # hands that hold each other, both moving
    human, _, q, v, tau = standing([])
    T = kg.forward_kinematics(human, q).transform
    left, right = (T[human.link_names.index(name)] for name in ("left_hand", "right_hand"))
    loop = kg.Loop("left_hand", other="right_hand", other_placement=np.linalg.inv(right) @ left)
    held = kg.ConstraintSet(human, [loop])
    v = project_velocity(human, held, q, v)
    peer = Pinocchio(held)
    found = kg.constrained_dynamics_derivatives(human, held, q, v, tau)
    assert relative(found.a, peer.accelerations(q, v, tau)) < 1e-11
    assert relative(found.forces, peer.data.lambda_c) < 1e-11
    by = peer.derivatives(q, v, tau)
    ours = [found.da_dq, found.da_dv, found.da_dtau]
    ours += [forces_in_axes_of_links(held, q, found), found.dforces_dv, found.dforces_dtau]
    for x, y in zip(ours, by, strict=True):
        assert relative(x, y) < 1e-10


@pytest.mark.parametrize("sample", [kg.samples.four_bar, kg.samples.slider_crank])
def test_mujoco_equality(sample):
    """MuJoCo's constraints are soft, by at least 1e-4 of what they resist: accelerations for several softnesses, at
    rest (it leaves out Ġv), extrapolated to none."""
    slender, held = sample()
    model = slender.replace(inertia=slender.inertia + 1e-3 * np.eye(3))  # MuJoCo wants some about every axis
    held = kg.ConstraintSet(model, held)
    q, _, tau = closed_state(model, held, 1)
    (loop,) = held
    found = kg.constrained_dynamics(model, held, q, np.zeros(model.n), tau)

    def softened(impedance):
        solver = f'solref="1 1" solimp="{impedance} {impedance} 1"'
        j = model.link_names.index(loop.link)
        anchor = (model.tip[j] @ loop.placement)[:3, 3]
        ends = f'body1="{loop.link}" body2="{loop.other}" anchor="{numbers(anchor)}"'
        equality = f"<equality><connect {ends} {solver}/></equality>"
        other = mujoco.MjModel.from_xml_string(mujoco_xml(model).replace("</mujoco>", f"{equality}</mujoco>"))
        data = mujoco.MjData(other)
        data.qpos, data.qvel, data.qfrc_applied = q, 0.0, tau
        mujoco.mj_forward(other, data)
        return (1 - impedance) / impedance, data.qacc.copy()

    (r1, a1), (r2, a2), (r3, a3) = map(softened, (0.9999, 0.9998, 0.9996))
    first, second = (r2 * a1 - r1 * a2) / (r2 - r1), (r3 * a2 - r2 * a3) / (r3 - r2)
    hard = (r3 * first - r1 * second) / (r3 - r1)
    assert relative(found.a, hard) < 1e-6
