"""The tree of a compiled model.

A body of MuJoCo moves by its joints in a row, all given in the body's frame B at the reference q₀:

    A = B · J₁ · J₂ · …,        J = T(p) Rot(u, q − q₀) T(−p)  of a hinge,        J = T(u (q − q₀))  of a slide.

Rotations about one axis commute, so J = P · motion(q) · F with P = T(p) Rot(u, −q₀) and F = T(−p), and likewise for
slides: coordinates are MuJoCo's qpos, in the same order.  Balls and free joints have unit quaternions and speeds as
MuJoCo has them.  Bodies without joints are part of those that they are in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import shown
from kinegrad.io.model_file import Note
from kinegrad.io.moving_bodies import Bodies, MassProperties, Part
from kinegrad.model import Inertia, ModelBuilder, free, prismatic, revolute, spherical
from kinegrad.model.placement import rotate, translate

__all__ = ["Names", "Tree", "transform"]

Array = NDArray[np.float64]
FREE, BALL, SLIDE, HINGE = range(4)  # MuJoCo's numbers of joint types
_KINDS = ("free", "ball", "slide", "hinge")


def transform(position: Any, quaternion: Any) -> Array:
    """The 4×4 transform of a place and a unit quaternion (w, x, y, z)."""
    w, x, y, z = np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion)
    T = np.eye(4)
    T[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    T[:3, 3] = position
    return T


class Names:
    """Names of MuJoCo's objects; those without one get one that is not taken."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.links = self._all("body", model.nbody)
        self.joints = self._all("joint", model.njnt)

    def _all(self, what: str, count: int) -> list[str]:
        found = [self.of(what, k) for k in range(count)]
        taken = set(found)
        for k, name in enumerate(found):
            if not name:
                free_name = f"{what}{k}"
                while free_name in taken:
                    free_name += "_"
                found[k] = free_name
                taken.add(free_name)
        return found

    def of(self, what: str, k: int) -> str:
        """The name of an object, "" if it has none."""
        start = int(getattr(self.model, f"name_{_ADDRESSES.get(what, what)}adr")[k])
        raw = bytes(self.model.names[start : self.model.names.index(b"\0", start)])
        text = raw.decode("utf-8", "replace").strip()
        return text if text.isprintable() else ascii(text)[1:-1]


_ADDRESSES = {"joint": "jnt", "equality": "eq"}


class Tree:
    """Bodies put together in a builder.

    Attributes
    ----------
    host : list of (str or None, ndarray)
        The link that each body is part of, None for the world, and where it is in it.
    """

    def __init__(
        self,
        compiled: Any,
        builder: ModelBuilder,
        names: Names,
        quaternion: bool,
        flags: dict[str, bool],
        made: Bodies,
        stated: dict[int, Array],
    ) -> None:
        self.compiled, self.builder, self.names, self.quaternion = compiled, builder, names, quaternion
        self.flags = flags
        self.notes: list[Note] = []
        self.host: list[tuple[str | None, Array]] = [(None, np.eye(4))]
        self.taken = set(names.links)
        self._place_bodies(made, stated)
        self._build()

    def _place_bodies(self, made: Bodies, stated: dict[int, Array]) -> None:
        m = self.compiled
        parts: dict[int, list[tuple[Part, Array]]] = {}
        self.first: dict[int, int] = {}  # the body that each one is part of
        for b in range(1, m.nbody):
            parent = int(m.body_parentid[b])
            if m.body_jntnum[b]:
                self.host.append((self.names.links[b], np.eye(4)))
                self.first[b] = b
                parts[b] = []
            else:
                host, T = self.host[parent]
                self.host.append((host, T @ transform(m.body_pos[b], m.body_quat[b])))
                self.first[b] = self.first.get(parent, 0)
            if m.body_mass[b] or np.any(m.body_inertia[b]):
                R = transform(np.zeros(3), m.body_iquat[b])[:3, :3]
                inertia = stated.get(b, R @ np.diag(m.body_inertia[b]) @ R.T)
                own = MassProperties(float(m.body_mass[b]), np.array(m.body_ipos[b]), inertia)
                part = Part(self.names.links[b], own, own.wrong)
                if first := self.first[b]:
                    parts[first].append((part, self.host[b][1]))
                else:
                    made.note_fixed(part)
        self.bodies = {b: made.make(self.names.links[b], each) for b, each in parts.items()}

    def _build(self) -> None:
        m = self.compiled
        for b in range(1, m.nbody):
            host, T = self.host[b]
            if self.first[b] != b:
                if host is not None:
                    self.builder.add_frame(self.names.links[b], host, T)
                else:
                    self._note_world("body", self.names.links[b], T, float(m.body_mass[b]))
                continue
            self._add_joints(b)

    def _add_joints(self, b: int) -> None:
        m = self.compiled
        parent, T = self.host[int(m.body_parentid[b])]
        place = T @ transform(m.body_pos[b], m.body_quat[b])
        first = int(m.body_jntadr[b])
        joints = range(first, first + int(m.body_jntnum[b]))
        for j in joints:
            last = j == joints[-1]
            link = self.names.links[b] if last else self._inner_link(self.names.joints[j])
            self._add_joint(j, parent, place, link, self.bodies[b] if last else None)
            parent, place = link, np.eye(4)

    def _add_joint(self, j: int, parent: str | None, place: Array, link: str, body: Inertia | None) -> None:
        m, name, kind = self.compiled, self.names.joints[j], int(self.compiled.jnt_type[j])
        d, q = int(m.jnt_dofadr[j]), int(m.jnt_qposadr[j])
        anchor = translate(*m.jnt_pos[j])
        back = translate(*(-np.asarray(m.jnt_pos[j])))
        count = {FREE: 6, BALL: 3}.get(kind, 1)
        damping = np.array(m.dof_damping[d : d + count]) * self.flags["damper"]
        armature = np.array(m.dof_armature[d : d + count])
        stiffness = float(m.jnt_stiffness[j]) * self.flags["spring"]
        add = self.builder.add
        if kind in (FREE, BALL):
            numbers: dict[str, Any] = {"damping": damping}
            if self.quaternion:
                if armature.any():
                    text = f"{_KINDS[kind]} joint {shown(name)} has armature {armature.max():g}"
                    self.notes.append(Note("armature of a ball", f"{text}, which a quaternion has not"))
            elif armature.any():
                # of angular velocities, not of the rates of angles
                text = f"{_KINDS[kind]} joint {shown(name)} has armature, which three angles have not"
                self.notes.append(Note("armature of a ball", text))
            if not self.quaternion and damping[-3:].any():
                text = f"{_KINDS[kind]} joint {shown(name)} has damping, which three angles have not"
                self.notes.append(Note("damping of a ball", text))
                numbers = {"damping": np.concatenate([damping[:-3], np.zeros(3)])}
            if stiffness:
                text = f"{_KINDS[kind]} joint {shown(name)} has stiffness {stiffness:g}"
                self.notes.append(Note("stiffness of a ball", text))
            if kind == FREE:
                joint = free(quaternion=self.quaternion)
                add(name, None, joint, link=link, inertia=body, **numbers)
            else:
                joint = spherical(quaternion=self.quaternion)
                add(name, parent, joint, link=link, placement=place @ anchor, tip=back, inertia=body, **numbers)
            return
        axis, start = np.array(m.jnt_axis[j]), float(m.qpos0[q])
        numbers = {"damping": damping[0], "armature": armature[0]}
        if stiffness:
            numbers |= {"stiffness": stiffness, "rest": float(m.qpos_spring[q])}
        if m.jnt_limited[j]:
            numbers["position_limits"] = np.array(m.jnt_range[j])
        if kind == HINGE:
            before = anchor @ rotate(axis, -start) if start else anchor
            add(name, parent, revolute(axis), link=link, placement=place @ before, tip=back, inertia=body, **numbers)
        else:
            before = place @ translate(*(-start * axis)) if start else place
            add(name, parent, prismatic(axis), link=link, placement=before, inertia=body, **numbers)

    def _inner_link(self, name: str) -> str:
        while name in self.taken:
            name += ".link"
        self.taken.add(name)
        return name

    def add_sites(self) -> None:
        """Frames of all sites that have names."""
        m = self.compiled
        for k in range(m.nsite):
            name, (host, T) = self.names.of("site", k), self.host[int(m.site_bodyid[k])]
            place = T @ transform(m.site_pos[k], m.site_quat[k])
            if not name or name in self.taken:
                why = f"the name {shown(name)} is taken" if name else "it has no name"
                self.notes.append(Note("site", f"site {k} is not a frame, because {why}", matters=False))
            elif host is None:
                self._note_world("site", name, place)
            else:
                self.taken.add(name)
                self.builder.add_frame(name, host, place)

    def _note_world(self, what: str, name: str, T: Array, mass: float = 0.0) -> None:
        place = ", ".join(f"{x:g}" for x in T[:3, 3])
        heavy = f" of {mass:g} kg" if mass else ""
        text = f"{what} {shown(name)}{heavy} is fixed in the world at ({place}), and is no link or frame of the model"
        self.notes.append(Note(f"{what} of the world", text, matters=False))
