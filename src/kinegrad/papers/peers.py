"""The same mechanism and the same work in Pinocchio, where it is installed, to be timed beside ours."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.model import Model

__all__ = ["pinocchio_derivatives", "to_pinocchio"]

Array = NDArray[np.float64]


def to_pinocchio(model: Model) -> Any:
    """The mechanism as a ``pinocchio.Model``, joint by joint; without springs and dampers, which it has not."""
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


def pinocchio_derivatives(model: Model, q: Array, v: Array, a: Array) -> tuple[str, Callable[[], None]] | None:
    """Pinocchio's version, and a function that takes its derivatives at all states in turn; None without it."""
    try:
        pin = import_module("pinocchio")
    except ImportError:
        return None
    twin = to_pinocchio(model)
    data = twin.createData()

    def all_states() -> None:
        for state in zip(q, v, a, strict=True):
            pin.computeRNEADerivatives(twin, data, *state)

    return str(pin.__version__), all_states
