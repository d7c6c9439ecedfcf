"""A model from the links and joints of a URDF file.

A link frame of URDF is where its joint is: A = P · motion(q), with P the <origin> of the joint and no F.  Links that
are fixed to each other are one body: their inertias are moved into the frame of the first one and added, which is
exact, and each of the others stays as a frame by its name.  What is fixed to the world has no inertia that counts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import InputError, shown
from kinegrad.io.model_file import ModelFile, Note
from kinegrad.io.strict_xml import XmlFile, read_xml
from kinegrad.io.urdf.reading import JointRecord, LinkRecord, Robot, read_robot
from kinegrad.io.urdf.shapes import Packages, ShapeReader
from kinegrad.io.urdf.tree import Tree, check_tree, leaders
from kinegrad.io.whole_file import checked_path
from kinegrad.model import Inertia, Joint, LinearFunction, Model, ModelBuilder, free, planar, prismatic, revolute
from kinegrad.model.model import STANDARD_GRAVITY
from kinegrad.model.numbers import flag, real_array, too_large
from kinegrad.model.placement import rotate, unit_axis

__all__ = ["read"]

Array = NDArray[np.float64]
ROOT = "root"  # the joint of a free root
ROOTS, INERTIAS = ("fixed", "free"), ("refuse", "project")


def read(
    path: str | os.PathLike[str],
    *,
    root: str = "fixed",
    quaternion: bool = False,
    packages: Packages | None = None,
    inertia: str = "refuse",
    massless: bool = False,
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> ModelFile:
    """Read a URDF file.

    Parameters
    ----------
    path : path
    root : {"fixed", "free"}
        Whether the link without a parent is part of the world, or moves freely in it, by a joint called ``root``.
    quaternion : bool
        Whether the orientations of a free root and of floating joints are unit quaternions; otherwise they are turns
        about z, y and x.
    packages : folder, sequence of folders, or dict from names to folders, optional
        Where ``package://name/…`` is; the folders above the file and those of ROS_PACKAGE_PATH are searched otherwise.
    inertia : {"refuse", "project"}
        What to do with an inertia that no body has: refuse the file, or take the nearest possible one and report it.
    massless : bool
        Whether links that move may be without mass.
    gravity : array_like, shape (3,)
        World, m/s²; URDF does not say.

    Returns
    -------
    ModelFile

    Raises
    ------
    FileError
        With all problems of the file.
    """
    _check_option("root", root, ROOTS)
    _check_option("inertia", inertia, INERTIAS)
    flags = {what: _flag(what, value) for what, value in (("quaternion", quaternion), ("massless", massless))}
    down = _gravity(gravity)
    file = read_xml(checked_path(path), "robot")
    shapes = ShapeReader(file, packages)
    robot = read_robot(file, shapes, project=inertia == "project")
    tree, followers = check_tree(file, robot), leaders(file, robot)
    if tree is None:
        file.check()
        raise AssertionError("no tree, and no problem")  # check_tree says why
    assembly = _Assembly(file, robot, tree, free_root=root == "free", **flags)
    assembly.check_bodies()
    file.check()
    model = assembly.build(followers, down)
    file.check()
    assert model is not None
    notes = sorted(robot.notes, key=lambda note: note.line)
    return ModelFile.of(path, "URDF", model, tuple(notes))


class _Assembly:
    """Links put together: which of them are one body, and where each is in it."""

    def __init__(
        self, file: XmlFile, robot: Robot, tree: Tree, *, free_root: bool, quaternion: bool, massless: bool
    ) -> None:
        self.file, self.robot, self.tree = file, robot, tree
        self.free_root, self.quaternion, self.massless = free_root, quaternion, massless
        self.host: dict[
            str, tuple[str | None, Array]
        ] = {}  # the link that each is fixed in, and where; None: the world
        self.bodies: dict[str, Inertia] = {}
        self.sound: dict[str, bool] = {}
        self.order: list[tuple[LinkRecord, JointRecord | None]] = []  # depth first, in the order of the file
        self._walk()

    def _walk(self) -> None:
        waiting: list[tuple[str, JointRecord | None]] = [(self.tree.root, None)]
        while waiting:
            name, joint = waiting.pop()
            link = self.robot.links[name]
            self.order.append((link, joint))
            moves = self.free_root if joint is None else joint.kind != "fixed"
            if moves:
                self.host[name] = name, np.eye(4)
                self.bodies[name], self.sound[name] = Inertia.zero(), True
            elif joint is None:
                self.host[name] = None, np.eye(4)
            else:
                host, T = self.host[joint.parent]
                self.host[name] = host, T @ joint.placement
            self._add_body(link)
            waiting.extend((below.child, below) for below in reversed(self.tree.below[name]))

    def _add_body(self, link: LinkRecord) -> None:
        host, T = self.host[link.name]
        if host is None:
            return
        self.sound[host] &= link.sound
        if link.inertia is not None:
            moved = link.inertia if link.name == host else self.file.guard(link.element, link.inertia.moved, T)
            if moved is not None:
                self.bodies[host] = self.file.guard(link.element, self.bodies[host].__add__, moved) or self.bodies[host]

    def check_bodies(self) -> None:
        """Whether something moves, and all of that has mass."""
        if not self.bodies:
            expected = "expected one that moves, or root='free'"
            self.file.problem(self.file.root, f"has no joint that moves; {expected}")
        together: dict[str | None, list[str]] = {}
        for x, (host, _) in self.host.items():
            together.setdefault(host, []).append(x)
        for name, body in self.bodies.items():
            if body.mass == 0 and self.sound[name] and not self.massless:
                fixed = [x for x in together[name] if x != name]
                where = f", nor has what is fixed to it, {', '.join(map(shown, fixed[:4]))}" if fixed else ""
                expected = "give it an <inertial> with mass, or read with massless=True"
                self.file.problem(self.robot.links[name].element, f"moves and has no mass{where}; {expected}")

    def build(self, followers: dict[str, tuple[str, float, float]], gravity: ArrayLike) -> Model | None:
        """The model; None, and problems, where its parts do not go together."""
        builder = ModelBuilder(self.robot.name, gravity=gravity)
        for link, joint in self.order:
            host, T = self.host[link.name]
            if host == link.name:
                self.file.guard(link.element if joint is None else joint.element, self._add, builder, link, joint)
            elif host is not None:
                self.file.guard(link.element, builder.add_frame, link.name, host, T)
            else:
                self._note_world(link, T)
            for shape in link.shapes:
                place = T @ shape.placement
                builder.add_shape(host, shape.solid, place, color=shape.color, collision=shape.collision)
            if self.file.problems:
                return None
        led: dict[str, dict[str, LinearFunction]] = {}
        for name, (leader, multiplier, offset) in followers.items():
            own = led.setdefault(leader, {leader: LinearFunction()})
            element = self.robot.joints[name].element
            function = self.file.guard(element, LinearFunction, multiplier, offset)
            own |= {} if function is None else {name: function}
        for leader, moved in led.items():
            self.file.guard(self.robot.joints[leader].element, builder.couple, leader, moved)
        model: Model | None = self.file.guard(self.file.root, builder.build)
        return model

    def _add(self, builder: ModelBuilder, link: LinkRecord, joint: JointRecord | None) -> None:
        body = self.bodies[link.name]
        if joint is None:
            name = next(x for x in _names(ROOT) if x not in self.robot.joints)
            builder.add(name, None, free(quaternion=self.quaternion), link=link.name, inertia=body)
            return
        parent, T = self.host[joint.parent]
        primitives, before, after = _motion(joint, self.quaternion)
        numbers: dict[str, Any] = {}
        if isinstance(primitives, Joint):
            numbers = {
                "position_limits": joint.position_limits, "velocity_limits": joint.velocity_limit,
                "effort_limits": joint.effort_limit, "damping": joint.damping,
            }  # fmt: skip
        place = T @ joint.placement if before is None else T @ joint.placement @ before
        builder.add(joint.name, parent, primitives, link=link.name, placement=place, tip=after, inertia=body, **numbers)

    def _note_world(self, link: LinkRecord, T: Array) -> None:
        place = ", ".join(f"{x:g}" for x in T[:3, 3])
        mass = f" of {link.inertia.mass:g} kg" if link.inertia is not None else ""
        text = f"link {shown(link.name)}{mass} is fixed in the world at ({place}), and is no link or frame of the model"
        self.robot.notes.append(Note("link of the world", text, link.element.line, matters=False))


def _motion(joint: JointRecord, quaternion: bool) -> tuple[Joint | Sequence[Joint], Array | None, Array | None]:
    """The joint, and turns before and after it that put its axes where they are."""
    if joint.kind == "floating":
        return free(quaternion=quaternion), None, None
    if joint.kind == "prismatic":
        return prismatic(joint.axis), None, None
    if joint.kind != "planar":
        return revolute(joint.axis), None, None
    unit = unit_axis(joint.axis)
    for letter in "xyz":
        if np.array_equal(unit, unit_axis(letter)):
            return planar(letter), None, None
    across = np.cross([0.0, 0.0, 1.0], unit)  # the shortest turn that takes z to the axis
    size = float(np.linalg.norm(across))
    turn = rotate(across if size > 0 else "x", float(np.arctan2(size, unit[2])))
    return planar("z"), turn, turn.T


def _names(name: str) -> Any:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _check_option(what: str, value: Any, known: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in known:
        raise InputError(f"`{what}` is {shown(value)}; expected {' or '.join(map(repr, known))}")


def _gravity(given: ArrayLike) -> Array:
    try:
        down = real_array("`gravity`", given, "three numbers")
    except ValueError as error:
        raise InputError(str(error)) from None
    if down.shape != (3,) or too_large(down):
        found = f"has shape {down.shape}" if down.shape != (3,) else f"is {down.tolist()}"
        raise InputError(f"`gravity` {found}; expected (3,) finite numbers, m/s²")
    return down


def _flag(what: str, value: Any) -> bool:
    try:
        return flag(f"`{what}`", value)
    except ValueError as error:
        raise InputError(str(error)) from None
