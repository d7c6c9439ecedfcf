"""The same mechanism as a Pinocchio model."""

import numpy as np
import pinocchio as pin

from kinegrad import Model

JOINTS = {
    "revolute": lambda joint: pin.JointModelRevoluteUnaligned(np.array(joint.axis)),
    "prismatic": lambda joint: pin.JointModelPrismaticUnaligned(np.array(joint.axis)),
    "screw": lambda joint: pin.JointModelHelicalUnaligned(np.array(joint.axis), joint.pitch),
}


def to_pinocchio(model: Model) -> pin.Model:
    """Joint by joint; springs and dampers are not Pinocchio's and are left out."""
    twin = pin.Model()
    twin.gravity.linear = np.array(model.gravity)
    tips = [pin.SE3(T) for T in model.tip]
    for i, joint in enumerate(model.joints):
        parent = int(model.parents[i])
        offset = pin.SE3(model.placement[i])
        if parent >= 0:
            offset = tips[parent] * offset
        index = twin.addJoint(parent + 1, JOINTS[joint.kind](joint), offset, model.joint_names[i])
        assert index == i + 1
        twin.appendBodyToJoint(index, pin.Inertia(model.mass[i], model.com[i], model.inertia[i]), tips[i])
    twin.armature = np.array(model.armature)
    return twin


def external_forces(model: Model, twin: pin.Model, data: pin.Data, q, force, point, torque) -> pin.StdVec_Force:
    """Loads of one state as Pinocchio wants them: local joint-frame wrenches."""
    pin.forwardKinematics(twin, data, q)
    wrenches = pin.StdVec_Force()
    wrenches.append(pin.Force.Zero())
    for i in range(model.n):
        T = data.oMi[i + 1]
        x = (pin.SE3(model.tip[i])).act(np.asarray(point[i]))
        f, h = T.rotation.T @ force[i], T.rotation.T @ torque[i]
        wrenches.append(pin.Force(f, h + np.cross(x, f)))
    return wrenches
