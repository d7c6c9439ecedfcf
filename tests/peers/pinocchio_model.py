"""Loads as Pinocchio takes them; the mechanism itself is made by ``kinegrad.compare.pinocchio_model``."""

import numpy as np
import pinocchio as pin

from kinegrad import Model
from kinegrad.compare.pinocchio_model import pinocchio_model

__all__ = ["external_forces", "pinocchio_model"]


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
