"""Joints: one-degree-of-freedom primitives, and the common joints that are sequences of them.

A primitive turns about and slides along one axis; a composite joint is a tuple of primitives, which the builder
strings together with massless virtual links (as [zhakatayev2023] does for the hips and shoulders of its human).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.errors import ModelError, shown
from kinegrad.model.names import check_name
from kinegrad.model.numbers import FixedError, flag, real_number
from kinegrad.model.placement import unit_axis

__all__ = ["BallJoint", "Joint", "free", "planar", "prismatic", "revolute", "screw", "spherical", "universal"]

KINDS = ("revolute", "prismatic", "screw")


@dataclass(frozen=True)
class Joint:
    """One degree of freedom.

    Parameters
    ----------
    kind : {"revolute", "prismatic", "screw"}
        What q moves: an angle [rad], a length [m], or both (q is the angle).
    axis : tuple of three floats
        Unit vector in the joint's frame.
    pitch : float
        Advance along the axis, m/rad; zero unless `kind` is ``"screw"``.
    label : str
        What distinguishes it inside a composite joint: ``"z"`` in ``left_hip.z``.
    """

    kind: str
    axis: tuple[float, float, float]
    pitch: float = 0.0
    label: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ModelError(f"joint kind is {shown(self.kind)}; expected one of {', '.join(KINDS)}")
        object.__setattr__(self, "label", check_name("`label` of a joint", self.label))
        object.__setattr__(self, "axis", _axis(self.axis))
        object.__setattr__(self, "pitch", real_number(f"`pitch` of a {self.kind} joint", self.pitch))
        if self.kind != "screw" and self.pitch:
            raise ModelError(f"`pitch` of a {self.kind} joint is {self.pitch}; expected 0, or a screw")


def revolute(axis: str | ArrayLike = "z") -> Joint:
    """A hinge about `axis`.

    >>> revolute("-x").axis
    (-1.0, 0.0, 0.0)
    """
    return Joint("revolute", _axis(axis))


def prismatic(axis: str | ArrayLike = "z") -> Joint:
    """A slider along `axis`.

    >>> prismatic([0, 1, 1]).kind
    'prismatic'
    """
    return Joint("prismatic", _axis(axis))


def screw(axis: str | ArrayLike = "z", *, pitch: float) -> Joint:
    """A screw about `axis` that advances `pitch` metres per radian.

    >>> screw("z", pitch=0.01).pitch
    0.01
    """
    return Joint("screw", _axis(axis), pitch)


class BallJoint(tuple[Joint, ...]):
    """Joints of which the last six are the hinges of a ball whose coordinates are a unit quaternion."""

    __slots__ = ()


def spherical(sequence: str = "zyx", *, quaternion: bool = False) -> tuple[Joint, ...]:
    """A ball joint: three hinges at one point, turned in the order of `sequence`, any of the twelve Euler sequences.

    Parameters
    ----------
    sequence : str
        Three letters; without effect on a quaternion.
    quaternion : bool
        If True, the four coordinates are a unit quaternion (w, x, y, z) that turns the child's axes into the parent's,
        and the three speeds are the angular velocity of the child relative to the parent, in the **child's** frame
        (rad/s).  There is no gimbal lock.

    Examples
    --------
    >>> [joint.label for joint in spherical("zxz")]
    ['z', 'x', 'z2']
    >>> from kinegrad import Inertia, ModelBuilder
    >>> builder = ModelBuilder("top")
    >>> _ = builder.add("tip", None, spherical(quaternion=True), inertia=Inertia.sphere(1.0, 0.1))
    >>> top = builder.build()
    >>> top.coordinate_names, top.speed_names
    (('tip.w', 'tip.x', 'tip.y', 'tip.z'), ('tip.wx', 'tip.wy', 'tip.wz'))
    """
    hinges = _hinges("sequence", sequence, 3)
    if not flag("`quaternion`", quaternion):
        return hinges
    pose = tuple(_labelled("revolute", letter, f"pose_{letter}") for letter in "zyx")
    return BallJoint((*pose, *(_labelled("revolute", letter, f"w{letter}") for letter in "xyz")))


def universal(axes: str = "xy") -> tuple[Joint, ...]:
    """Two hinges at one point.

    >>> [joint.axis for joint in universal("xz")]
    [(1.0, 0.0, 0.0), (0.0, 0.0, 1.0)]
    """
    return _hinges("axes", axes, 2)


def planar(normal: str = "z") -> tuple[Joint, ...]:
    """Two sliders in the plane across `normal`, then a hinge about it.

    >>> [joint.label for joint in planar("z")]
    ['tx', 'ty', 'rz']
    """
    if not isinstance(normal, str) or normal not in ("x", "y", "z"):
        raise ModelError(f"`normal` is {shown(normal)}; expected 'x', 'y' or 'z'")
    across = {"x": "yz", "y": "zx", "z": "xy"}[normal]
    return (*_sliders(across), _labelled("revolute", normal, f"r{normal}"))


def free(sequence: str = "zyx", *, quaternion: bool = False) -> tuple[Joint, ...]:
    """Three sliders x, y, z, then a ball joint: a body free in space.

    Parameters
    ----------
    sequence, quaternion
        As of :func:`spherical`.  With a quaternion there are seven coordinates, the place of the child in the parent's
        frame and the quaternion, and six speeds: the rates of the place, in the **parent's** frame (m/s), and the
        angular velocity in the **child's** (rad/s).

    Examples
    --------
    >>> [joint.label for joint in free("xyz")]
    ['tx', 'ty', 'tz', 'rx', 'ry', 'rz']
    >>> len(free(quaternion=True))
    9
    """
    ball = spherical(sequence, quaternion=quaternion)
    if isinstance(ball, BallJoint):
        return BallJoint(_sliders("xyz") + tuple(ball))
    turns = tuple(Joint(j.kind, j.axis, label=f"r{j.label}") for j in ball)
    return _sliders("xyz") + turns


def _axis(axis: str | ArrayLike) -> tuple[float, float, float]:
    unit = unit_axis(axis)
    if np.iscomplexobj(unit):
        raise FixedError("`axis` of a joint varies with the parameters; expected it fixed: turn the joint's placement")
    x, y, z = unit.tolist()
    return x, y, z


def _labelled(kind: str, letter: str, label: str) -> Joint:
    return Joint(kind, _axis(letter), label=label)


def _sliders(letters: Iterable[str]) -> tuple[Joint, ...]:
    return tuple(_labelled("prismatic", letter, f"t{letter}") for letter in letters)


def _hinges(argument: str, letters: str, count: int) -> tuple[Joint, ...]:
    good = isinstance(letters, str) and len(letters) == count and set(letters) <= set("xyz")
    if not good or any(a == b for a, b in itertools.pairwise(letters)):
        raise ModelError(
            f"`{argument}` is {shown(letters)}; expected {count} of the letters x, y, z, no two neighbours equal"
        )
    labels = [f"{c}2" if c in letters[:k] else c for k, c in enumerate(letters)]
    return tuple(_labelled("revolute", c, label) for c, label in zip(letters, labels, strict=True))
