"""The same mechanism in MuJoCo, for accelerations that another program computes.

A MuJoCo body moves by several joints in a row, all given in the body's frame at q = 0, and must have mass.  So a link
with mass is a body, and takes the joints of the massless links before it along:

    P₁ motion₁ F₁ · P₂ motion₂ F₂  =  P₁C · (C⁻¹ motion₁ C) · motion₂ · F₂        with C = F₁ P₂

A massless link with several children, or none, has no counterpart, nor has a screw.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import said
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["mujoco_acceleration", "mujoco_xml"]

Array = NDArray[np.float64]
KINDS = {"revolute": "hinge", "prismatic": "slide"}


def mujoco_acceleration(model: Model, loads: Loads | None) -> Callable[[Array, Array, Array], Array] | str:
    """a(q, v, τ) by MuJoCo; or why it cannot be."""
    import mujoco

    why = _refused(model)
    if why:
        return why
    try:
        simulated = mujoco.MjModel.from_xml_string(mujoco_xml(model))
    except ValueError as error:  # as of point masses, which have no inertia
        return said(error)
    data = mujoco.MjData(simulated)
    order = [simulated.joint(name).dofadr[0] for name in model.joint_names]
    pushes = [] if loads is None else _pushes(model, loads, simulated)

    def acceleration(q: Array, v: Array, tau: Array) -> Array:
        data.qpos[order], data.qvel[order], data.qfrc_applied[:] = q, v, 0.0
        data.qfrc_applied[order] = tau
        mujoco.mj_kinematics(simulated, data)
        mujoco.mj_comPos(simulated, data)
        for body, force, torque, point in pushes:
            place = data.xpos[body] + data.xmat[body].reshape(3, 3) @ point
            mujoco.mj_applyFT(simulated, data, force, torque, place, body, data.qfrc_applied)
        mujoco.mj_forward(simulated, data)
        return np.array(data.qacc[order])

    return acceleration


def _refused(model: Model) -> str:
    if model.coordinates or model.elements:
        return "the model has couplings, quaternions or force elements"
    if any(joint.kind not in KINDS for joint in model.joints):
        return "the model has screws"
    children = [model.topology.children(i) for i in range(model.n)]
    if any(not model.mass[i] and len(children[i]) != 1 for i in range(model.n)):
        return "the model has massless links that branch or end"
    return ""


def _pushes(model: Model, loads: Loads, simulated: Any) -> list[tuple[int, Array, Array, Array]]:
    parts = loads.arrays(model)
    found = []
    for i in range(model.n):
        force, torque = parts["force"][..., i, :], parts["torque"][..., i, :]
        if force.any() or torque.any():
            tip = model.tip[i]
            point = tip[:3, :3] @ parts["point"][..., i, :] + tip[:3, 3]
            found.append((simulated.body(model.link_names[i]).id, force.copy(), torque.copy(), point))
    return found


def mujoco_xml(model: Model) -> str:
    """The model as MJCF, body by body; springs, dampers and armature included."""
    root = ET.Element("mujoco", model=model.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="false")
    ET.SubElement(root, "option", gravity=_numbers(model.gravity))
    world = ET.SubElement(root, "worldbody")
    for i in model.topology.roots:
        _add_body(model, world, np.eye(4), [i])
    return ET.tostring(root, encoding="unicode")


def _add_body(model: Model, above: ET.Element, start: Array, joints: list[int]) -> None:
    """The body of the first link with mass after `joints`, in the body `above` whose tip is `start`."""
    while not model.mass[joints[-1]]:
        joints = [*joints, *model.topology.children(joints[-1])]
    frames, T = [], start
    for i in joints:
        frames.append(T @ model.placement[i])
        T = frames[-1] @ model.tip[i]
    last, B = joints[-1], frames[-1]
    body = ET.SubElement(above, "body", name=model.link_names[last], pos=_numbers(B[:3, 3]), quat=_turn(B[:3, :3]))
    for i, frame in zip(joints, frames, strict=True):
        C = np.linalg.inv(B) @ frame
        axis = C[:3, :3] @ np.asarray(model.joints[i].axis)
        text = {
            "name": model.joint_names[i], "type": KINDS[model.joints[i].kind], "axis": _numbers(axis),
            "pos": _numbers(C[:3, 3]), "stiffness": _numbers([model.stiffness[i]]),
            "springref": _numbers([model.rest[i]]), "damping": _numbers([model.damping[i]]),
            "armature": _numbers([model.armature[i]]),
        }  # fmt: skip
        ET.SubElement(body, "joint", text)
    tip = model.tip[last]
    moments, axes = np.linalg.eigh(model.inertia[last])
    axes = axes * np.linalg.det(axes)
    size = max(float(moments.max(initial=0.0)), 1e-12)
    text = {
        "mass": _numbers([model.mass[last]]), "pos": _numbers(tip[:3, :3] @ model.com[last] + tip[:3, 3]),
        "quat": _turn(tip[:3, :3] @ axes), "diaginertia": _numbers(np.maximum(moments, 1e-12 * size)),
    }  # fmt: skip
    ET.SubElement(body, "inertial", text)
    for child in model.topology.children(last):
        _add_body(model, body, tip, [child])


def _numbers(values: Sequence[float] | Array) -> str:
    """Every digit of them."""
    return " ".join(repr(float(x)) for x in values)


def _turn(R: Array) -> str:
    """A rotation as a quaternion, scalar first."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(R).as_quat()
    return _numbers([w, x, y, z])
