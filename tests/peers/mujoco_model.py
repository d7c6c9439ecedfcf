"""The same mechanism as MuJoCo XML.

A MuJoCo body moves by several joints in a row, all given in the body's frame at q = 0, and must have mass. So
a link with mass is a body, and takes the joints of the massless links before it along:

    P₁ motion₁ F₁ · P₂ motion₂ F₂  =  P₁C · (C⁻¹ motion₁ C) · motion₂ · F₂        with C = F₁ P₂

A massless link with several children, or none, has no counterpart, nor has a screw.
"""

from xml.etree import ElementTree as ET

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from kinegrad import Model, SpringDamper

KINDS = {"revolute": "hinge", "prismatic": "slide"}


def can_be_mujoco(model: Model) -> bool:
    """Whether the model has neither screws nor massless links that branch."""
    plain = all(joint.kind in KINDS for joint in model.joints)
    return plain and all(model.mass[i] or len(model.topology.children(i)) == 1 for i in range(model.n))


def to_mujoco(model: Model) -> mujoco.MjModel:
    """Body by body; springs, dampers, armature and spring-dampers included.  Depth-first joints keep their numbers."""
    return mujoco.MjModel.from_xml_string(mujoco_xml(model))


def mujoco_xml(model: Model) -> str:
    """The same as text."""
    assert can_be_mujoco(model), "screws and massless links that branch are not MuJoCo's"
    root = ET.Element("mujoco", model=model.name)
    ET.SubElement(root, "compiler", angle="radian", autolimits="false")
    ET.SubElement(root, "option", gravity=numbers(model.gravity))
    world = ET.SubElement(root, "worldbody")
    for i in model.topology.roots:
        add_body(model, world, np.eye(4), [i])
    if model.elements:
        add_tendons(model, root)
    return ET.tostring(root, encoding="unicode")


def add_body(model: Model, above: ET.Element, start: np.ndarray, joints: list[int]) -> None:
    """The body of the first link with mass after `joints`, in the body `above` whose tip is `start`."""
    while not model.mass[joints[-1]]:
        joints = [*joints, *model.topology.children(joints[-1])]
    # the frame of each joint at q = 0, seen from the parent body's frame
    frames, T = [], start
    for i in joints:
        frames.append(T @ model.placement[i])
        T = frames[-1] @ model.tip[i]
    last, B = joints[-1], frames[-1]
    body = ET.SubElement(above, "body", name=model.link_names[last], pos=numbers(B[:3, 3]), quat=quaternion(B[:3, :3]))
    for i, frame in zip(joints, frames, strict=True):
        C = np.linalg.inv(B) @ frame
        ET.SubElement(
            body,
            "joint",
            name=model.joint_names[i],
            type=KINDS[model.joints[i].kind],
            axis=numbers(C[:3, :3] @ model.joints[i].axis),
            pos=numbers(C[:3, 3]),
            stiffness=numbers([model.stiffness[i]]),
            springref=numbers([model.rest[i]]),
            damping=numbers([model.damping[i]]),
            armature=numbers([model.armature[i]]),
        )
    tip = model.tip[last]
    moments, axes = np.linalg.eigh(model.inertia[last])  # MuJoCo's own diagonalisation of `fullinertia` stops at 1e-12
    axes = axes * np.linalg.det(axes)
    ET.SubElement(
        body,
        "inertial",
        mass=numbers([model.mass[last]]),
        pos=numbers(tip[:3, :3] @ model.com[last] + tip[:3, 3]),
        quat=quaternion(tip[:3, :3] @ axes),
        diaginertia=numbers(moments),
    )
    for child in model.topology.children(last):
        add_body(model, body, tip, [child])


def add_tendons(model: Model, root: ET.Element) -> None:
    """A spatial tendon with a site at each end for each spring-damper, of links with mass."""
    tendons = ET.SubElement(root, "tendon")
    for name, element in model.elements.items():
        assert isinstance(element, SpringDamper), "bushings are not MuJoCo's"
        spring = {"stiffness": element.stiffness, "damping": element.damping, "springlength": element.rest_length}
        spatial = ET.SubElement(tendons, "spatial", name=name, **{what: numbers([x]) for what, x in spring.items()})
        for end, (link, point) in enumerate(((element.link, element.point), (element.other, element.other_point))):
            body, place = root.find("worldbody"), point
            if link is not None:
                tip = model.tip[model.link_index(link)]
                body, place = root.find(f".//body[@name='{link}']"), tip[:3, :3] @ point + tip[:3, 3]
            ET.SubElement(body, "site", name=f"{name}.{end}", pos=numbers(place))
            ET.SubElement(spatial, "site", site=f"{name}.{end}")


def numbers(values) -> str:
    """Every digit of them."""
    return " ".join(repr(float(x)) for x in values)


def quaternion(R: np.ndarray) -> str:
    return numbers(Rotation.from_matrix(R).as_quat(scalar_first=True))
