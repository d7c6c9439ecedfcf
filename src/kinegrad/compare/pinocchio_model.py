"""The same mechanism as a Pinocchio model, where Pinocchio is installed: for tests, timings and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from kinegrad.errors import InputError
from kinegrad.model import Model

__all__ = ["pinocchio_model"]


def pinocchio_model(model: Model) -> Any:
    """Return the mechanism as a ``pinocchio.Model``, joint by joint; without springs and dampers, which it has not."""
    if model.coordinates:
        raise InputError(
            f"model {model.name!r} has coordinates that are not its joints; expected model.primitive, whose are"
        )
    if model.elements:
        raise InputError(
            f"model {model.name!r} has force elements, which Pinocchio has not; expected model.without_elements"
        )
    pin = import_module("pinocchio")
    joints: dict[str, Callable[[Any], Any]] = {
        "revolute": lambda joint: pin.JointModelRevoluteUnaligned(np.array(joint.axis)),
        "prismatic": lambda joint: pin.JointModelPrismaticUnaligned(np.array(joint.axis)),
        "screw": lambda joint: pin.JointModelHelicalUnaligned(np.array(joint.axis), joint.pitch),
    }
    twin = pin.Model()
    twin.gravity.linear = np.array(model.gravity)
    tips = [pin.SE3(T) for T in model.tip]
    for i, joint in enumerate(model.joints):
        parent = int(model.parents[i])
        place = pin.SE3(model.placement[i])
        place = place if parent < 0 else tips[parent] * place
        index = twin.addJoint(parent + 1, joints[joint.kind](joint), place, model.joint_names[i])
        body = pin.Inertia(float(model.mass[i]), model.com[i], model.inertia[i])
        twin.appendBodyToJoint(index, body, tips[i])
    twin.armature = np.array(model.armature)
    return twin
