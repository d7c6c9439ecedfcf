"""Joints of a model of Pinocchio or MuJoCo: names, kinds, and the numbers of their coordinates and speeds.

kind        their coordinates                       their speeds
revolute    angle                                   rate
circle      cos, sin of the angle                   rate
prismatic   shift                                   rate
screw       angle                                   rate
free        position, quaternion                    linear, angular velocity
ball        quaternion                              angular velocity
planar      position (2), cos, sin of the angle     linear velocity (2), rate
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kinegrad.errors import InputError, shown
from kinegrad.io.mjcf.bodies import Names

__all__ = ["Peer", "PeerJoint", "mujoco_peer", "pinocchio_peer"]

WXYZ, XYZW = (0, 1, 2, 3), (3, 0, 1, 2)  # where w, x, y, z of a quaternion are
_PINOCCHIO = {
    "FreeFlyer": "free", "Spherical": "ball", "Planar": "planar",
    "RX": "revolute", "RY": "revolute", "RZ": "revolute", "RevoluteUnaligned": "revolute",
    "RUBX": "circle", "RUBY": "circle", "RUBZ": "circle", "RevoluteUnboundedUnaligned": "circle",
    "PX": "prismatic", "PY": "prismatic", "PZ": "prismatic", "PrismaticUnaligned": "prismatic",
    "HX": "screw", "HY": "screw", "HZ": "screw", "HelicalUnaligned": "screw",
}  # fmt: skip
_MUJOCO = ("free", "ball", "prismatic", "revolute")  # by MuJoCo's numbers of joint types


@dataclass(frozen=True)
class PeerJoint:
    """A joint: its name, its kind, and the numbers of its first coordinate and speed."""

    name: str
    kind: str
    q: int
    v: int


@dataclass(frozen=True)
class Peer:
    """A model of another library.

    Attributes
    ----------
    library : str
    joints : tuple of PeerJoint
    nq, nv : int
        Numbers of coordinates and speeds.
    quaternion : tuple of int
        Where w, x, y, z are in a quaternion.
    local : bool
        Whether linear velocities of free and planar joints are in axes of the body.
    """

    library: str
    joints: tuple[PeerJoint, ...]
    nq: int
    nv: int
    quaternion: tuple[int, ...]
    local: bool


def pinocchio_peer(theirs: Any) -> Peer:
    """Return what a ``pinocchio.Model`` says of its joints."""
    try:
        rows = list(zip(theirs.names, theirs.joints, strict=True))[1:]  # the first is the world
        found = [(str(name), str(j.shortname()), int(j.idx_q), int(j.idx_v), int(j.nq)) for name, j in rows]
        sizes = int(theirs.nq), int(theirs.nv)
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"`theirs` is a {type(theirs).__name__}; expected a pinocchio.Model") from None
    joints = []
    for name, short, q, v, nq in found:
        kind = _PINOCCHIO.get(short.removeprefix("JointModel"))
        if kind is not None:
            joints.append(PeerJoint(name, kind, q, v))
        elif nq:  # a joint that mimics another has no coordinate
            expected = "expected revolute, prismatic, helical, planar, spherical or free-flyer joints"
            raise InputError(f"joint {shown(name)} of Pinocchio is a {short}; {expected}")
    return Peer("Pinocchio", tuple(joints), *sizes, XYZW, local=True)


def mujoco_peer(theirs: Any) -> Peer:
    """Return what a ``mujoco.MjModel`` says of its joints."""
    try:
        names = Names(theirs).joints
        rows = zip(names, theirs.jnt_type, theirs.jnt_qposadr, theirs.jnt_dofadr, strict=True)
        joints = tuple(PeerJoint(name, _MUJOCO[int(kind)], int(q), int(v)) for name, kind, q, v in rows)
        sizes = int(theirs.nq), int(theirs.nv)
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"`theirs` is a {type(theirs).__name__}; expected a mujoco.MjModel") from None
    return Peer("MuJoCo", joints, *sizes, WXYZ, local=False)
