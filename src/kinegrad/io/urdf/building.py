"""A model from the links and joints of a URDF file.

A link frame of URDF is where its joint is: A = P · motion(q), with P the <origin> of the joint and no F.  Links that
are fixed to each other are one body (:mod:`kinegrad.io.moving_bodies`): their inertias are moved into the frame of the
first one and added, which is exact, and each of the others stays as a frame by its name.  What is fixed to the world
has no inertia that counts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import InputError, shown
from kinegrad.io.model_file import ModelFile, Note
from kinegrad.io.moving_bodies import Bodies, Part, check_choice, check_flag
from kinegrad.io.strict_xml import XmlFile, read_xml
from kinegrad.io.urdf.reading import JointRecord, LinkRecord, Robot, read_robot
from kinegrad.io.urdf.shapes import Packages, ShapeReader
from kinegrad.io.urdf.tree import Tree, check_tree, leaders
from kinegrad.io.whole_file import checked_path
from kinegrad.model import Inertia, Joint, LinearFunction, Model, ModelBuilder, free, planar, prismatic, revolute
from kinegrad.model.model import STANDARD_GRAVITY
from kinegrad.model.numbers import real_array, too_large
from kinegrad.model.placement import rotate, unit_axis

__all__ = ["read"]

Array = NDArray[np.float64]
ROOT = "root"  # the joint of a free root
ROOTS = ("fixed", "free")


def read(
    path: str | os.PathLike[str],
    *,
    root: str = "fixed",
    quaternion: bool = False,
    packages: Packages | None = None,
    inertia: str = "close",
    massless: bool = False,
    strict: bool = False,
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
    inertia : {"close", "project", "refuse"}
        What to do if a link with everything that is fixed to it has an inertia that no body has: take the nearest
        possible one, if that changes the moment of inertia about no axis by more than 1 %; take it however far it is,
        without a warning; or refuse each link whose inertia is impossible.
    massless : bool
        Whether joints that move no mass are accepted without a warning.
    strict : bool
        Whether to refuse what no model can have, instead of reading it otherwise, with a warning: impossible inertias
        and links without mass (unless `inertia` or `massless` accepts them), mimics of joints that do not exist, limits
        that are missing or −1.
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
    check_choice("root", root, ROOTS)
    turned = check_flag("quaternion", quaternion)
    bodies = Bodies("link", inertia=inertia, massless=massless, strict=strict)
    down = _gravity(gravity)
    file = read_xml(checked_path(path), "robot")
    shapes = ShapeReader(file, packages, strict=bodies.strict)
    robot = read_robot(file, shapes, strict=bodies.strict)
    tree, followers = check_tree(file, robot), leaders(file, robot)
    if tree is None:
        file.check()
        raise AssertionError("no tree, and no problem")  # check_tree says why
    assembly = _Assembly(file, robot, tree, bodies, free_root=root == "free", quaternion=turned)
    assembly.make_bodies()
    file.check()
    model = assembly.build(followers, down)
    file.check()
    assert model is not None
    notes = sorted([*robot.notes, *bodies.notes], key=lambda note: note.line)
    return ModelFile.of(path, "URDF", model, tuple(notes), (*bodies.repairs(), *robot.repairs()))


class _Assembly:
    """Links put together: which of them are one body, and where each is in it."""

    def __init__(
        self, file: XmlFile, robot: Robot, tree: Tree, made: Bodies, *, free_root: bool, quaternion: bool
    ) -> None:
        self.file, self.robot, self.tree, self.made = file, robot, tree, made
        self.free_root, self.quaternion = free_root, quaternion
        self.root = next(x for x in _names(ROOT) if x not in robot.joints)
        self.host: dict[
            str, tuple[str | None, Array]
        ] = {}  # the link that each is fixed in, and where; None: the world
        self.parts: dict[str, list[tuple[Part, Array]]] = {}
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
                self.parts[name], self.sound[name] = [], True
            elif joint is None:
                self.host[name] = None, np.eye(4)
            else:
                host, T = self.host[joint.parent]
                self.host[name] = host, T @ joint.placement
            host, T = self.host[name]
            if host is not None:
                self.sound[host] &= link.sound
                self.parts[host] += [(link.part, T)] if link.part is not None else []
            elif link.part is not None:
                self.made.note_fixed(link.part)
            waiting.extend((below.child, below) for below in reversed(self.tree.below[name]))

    def make_bodies(self) -> None:
        """Add up what moves together, and check that something moves, and has mass."""
        if not self.parts:
            expected = "expected one that moves, or root='free'"
            self.file.problem(self.file.root, f"has no joint that moves; {expected}")
        for name, parts in self.parts.items():
            self.bodies[name] = self.made.make(name, parts)
        for part, text in self.made.problems:
            self.file.problem(part.element, text)
        beyond = {name: self._mass(name) for name in self.parts}  # of a body and all that it carries
        for link, joint in reversed(self.order):
            above = None if joint is None else self.host[joint.parent][0]
            if link.name in beyond and above is not None:
                beyond[above] += beyond[link.name]
        together: dict[str | None, list[str]] = {}
        for x, (host, _) in self.host.items():
            together.setdefault(host, []).append(x)
        for link, joint in self.order:
            if link.name in self.parts and self.sound[link.name] and not self._mass(link.name):
                self._check_massless(
                    link, joint, beyond[link.name] > 0, [x for x in together[link.name] if x != link.name]
                )

    def _mass(self, name: str) -> float:
        """Return the mass of a body, as the file states it."""
        return sum(part.given.mass for part, _ in self.parts[name])

    def _check_massless(self, link: LinkRecord, joint: JointRecord | None, carries: bool, fixed: list[str]) -> None:
        if self.made.refuse_massless:
            where = f", nor has what is fixed to it, {', '.join(map(shown, fixed[:4]))}" if fixed else ""
            expected = "give it an <inertial> with mass, or read with massless=True"
            self.file.problem(link.element, f"moves and has no mass{where}; {expected}")
        elif not carries:
            self.made.note_idle(self.root if joint is None else joint.name, link.name, link.element.line)

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
            builder.add(self.root, None, free(quaternion=self.quaternion), link=link.name, inertia=body)
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
        mass = f" of {link.part.given.mass:g} kg" if link.part is not None else ""
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


def _gravity(given: ArrayLike) -> Array:
    try:
        down = real_array("`gravity`", given, "three numbers")
    except ValueError as error:
        raise InputError(str(error)) from None
    if down.shape != (3,) or too_large(down):
        found = f"has shape {down.shape}" if down.shape != (3,) else f"is {down.tolist()}"
        raise InputError(f"`gravity` {found}; expected (3,) finite numbers, m/s²")
    return down
