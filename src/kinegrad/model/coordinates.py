"""Coordinates and speeds, the joints that they move, and how one follows from the other.

A joint that nothing else is said of is its own coordinate and its own speed.  Two things say more:

- a :class:`CoupledCoordinate`: one coordinate moves several joints by smooth functions, q̂ᵢ = fᵢ(q);
- a :class:`Quaternion`: a ball joint, whose four coordinates are a unit quaternion and whose three speeds are the
  angular velocity of the child in its own frame.  It is six hinges at one point: three *pose* hinges z, y, x that stand
  at the Euler angles of the quaternion and never move, and three *chart* hinges x, y, z at zero, which do.  Pose
  hinges only place the chart, so their singular positions do not matter.

Hats mark what belongs to joints.  How the map and its derivatives are evaluated is in ``_engine/coordinates.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import ModelError, shown
from kinegrad.model.functions import CoordinateFunction, LinearFunction
from kinegrad.model.names import as_tuple, check_name

if TYPE_CHECKING:
    from kinegrad.model.model import Model

__all__ = ["CoupledCoordinate", "Layout", "Quaternion", "check_coordinate_names", "check_coordinates"]

Integers = NDArray[np.int64]
HINGES = ((0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))  # axes of a quaternion's six hinges
POSE = 3  # how many of them come first and only place the others


@dataclass(frozen=True)
class CoupledCoordinate:
    """One coordinate that moves several joints.

    Parameters
    ----------
    name : str
        Of the coordinate, and of its speed.
    joints : tuple of int
        The joints it moves, by number,
    functions : tuple of LinearFunction, PolynomialFunction or SplineFunction
        and how: q̂ᵢ = fᵢ(q).
    """

    name: str
    joints: tuple[int, ...]
    functions: tuple[CoordinateFunction, ...]


@dataclass(frozen=True)
class Quaternion:
    """The orientation of a ball joint as a unit quaternion (w, x, y, z).

    Parameters
    ----------
    name : str
        Of the ball: its coordinates are ``name.w``, ``name.x``, ``name.y``, ``name.z``.
    first : int
        The number of the first of its six hinges.
    """

    name: str
    first: int

    @property
    def joints(self) -> tuple[int, ...]:
        """Its hinges, those of the pose first."""
        return tuple(range(self.first, self.first + len(HINGES)))


class Layout:
    """Where each coordinate, speed and joint is.

    Coordinates and speeds are in the order of the first joint that each moves.

    Attributes
    ----------
    nq, nv, n : int
        How many coordinates, speeds and joints there are.
    coordinate_names, speed_names : tuple of str
    coordinate_kinds, speed_kinds : list of str
        Kinds of the joints they are, or stand for: what they are measured in; "quaternion" for the parts of one.
    plain, plain_q, plain_v : ndarray of int
        Joints that are their own coordinates, and where their coordinates and speeds are.
    coupled, coupled_q, coupled_v : ndarray of int
        The same of joints that couplings move.
    functions : tuple
        Of those joints.
    balls : tuple of (int, int, int)
        Of each quaternion: its first hinge, first coordinate, first speed.
    """

    def __init__(self, model: Model) -> None:
        by_first: dict[int, CoupledCoordinate | Quaternion] = {min(x.joints): x for x in model.coordinates}
        owned = {joint for x in model.coordinates for joint in x.joints}
        self.n, self.speed_kinds = len(model.joints), list[str]()
        names, speeds, kinds = list[str](), list[str](), list[str]()
        plain, coupled, balls = list[tuple[int, int, int]](), list[tuple[int, int, int, Any]](), []
        for i, joint in enumerate(model.joints):
            entry, at = by_first.get(i), (len(names), len(speeds))
            if isinstance(entry, Quaternion):
                balls.append((i, *at))
                names += [f"{entry.name}.{letter}" for letter in "wxyz"]
                kinds += ["quaternion"] * 4
                speeds += model.joint_names[i + POSE : i + len(HINGES)]
                self.speed_kinds += ["revolute"] * 3
            elif isinstance(entry, CoupledCoordinate):
                coupled += [(j, *at, f) for j, f in zip(entry.joints, entry.functions, strict=True)]
                names.append(entry.name)
                speeds.append(entry.name)
                kinds.append(_kind(model, entry))
                self.speed_kinds.append(kinds[-1])
            elif i not in owned:
                plain.append((i, *at))
                names.append(model.joint_names[i])
                speeds.append(model.joint_names[i])
                kinds.append(joint.kind)
                self.speed_kinds.append(joint.kind)
        self.nq, self.nv = len(names), len(speeds)
        self.coordinate_names, self.speed_names, self.coordinate_kinds = tuple(names), tuple(speeds), kinds
        self.plain, self.plain_q, self.plain_v = np.array(plain, dtype=np.int64).reshape(-1, 3).T
        self.functions = tuple(f for *_, f in coupled)
        numbers = np.array([row[:3] for row in coupled], dtype=np.int64).reshape(-1, 3)
        self.coupled, self.coupled_q, self.coupled_v = numbers.T
        self.balls = tuple(balls)
        self._parents = model.parents

    def columns(self, x: str) -> tuple[str, tuple[str, ...], list[str]]:
        """What the columns of q, v, a or tau are together (joints, or else coordinates or speeds), names and kinds."""
        mapped = bool(len(self.coupled) or self.balls)
        if x == "q":
            return "coordinate" if mapped else "joint", self.coordinate_names, self.coordinate_kinds
        return "speed" if mapped else "joint", self.speed_names, self.speed_kinds

    @cached_property
    def speed_of(self) -> Integers:
        """The speed that moves each joint, −1 for the hinges of poses, (n,)."""
        speed = np.full(self.n, -1)
        speed[self.plain], speed[self.coupled] = self.plain_v, self.coupled_v
        for first, _, v in self.balls:
            speed[first + POSE : first + len(HINGES)] = v, v + 1, v + 2
        return speed

    @cached_property
    def some_speed_of(self) -> Integers:
        """The same, but any speed for the hinges of poses."""
        return np.maximum(self.speed_of, 0)

    @cached_property
    def joint_of(self) -> Integers:
        """The first joint that each speed moves, (nv,)."""
        return np.array([int(np.flatnonzero(self.speed_of == v)[0]) for v in range(self.nv)], dtype=np.int64)

    @cached_property
    def moved(self) -> Integers:
        """Joints that a speed moves one to one: those that are their own coordinates, and charts of quaternions."""
        charts = [first + k for first, _, _ in self.balls for k in range(POSE, len(HINGES))]
        return np.array([*self.plain.tolist(), *charts], dtype=np.int64)

    @cached_property
    def moved_v(self) -> Integers:
        """Their speeds."""
        return self.speed_of[self.moved]

    @cached_property
    def leads(self) -> tuple[bool, ...]:
        """Of coupled joints, whether each is the first that its coordinate moves."""
        return tuple(bool(self.joint_of[v] == joint) for joint, v in zip(self.coupled, self.coupled_v, strict=True))

    @cached_property
    def in_series(self) -> bool:
        """Whether the joints of every coupling are connected: each but the first hangs on another of them."""
        owner = {int(joint): int(v) for joint, v in zip(self.coupled, self.coupled_v, strict=True)}
        return all(
            first or owner.get(int(self._parents[j])) == v
            for (j, v), first in zip(owner.items(), self.leads, strict=True)
        )

    @cached_property
    def pattern(self) -> tuple[Integers, Integers]:
        """Rows and columns, by speeds, where matrices can differ from zero: some joints of both are on one path."""
        found = np.zeros((self.nv, self.nv), dtype=bool)
        for i in range(self.n):
            j = i
            while j >= 0:
                a, b = self.speed_of[i], self.speed_of[j]
                if a >= 0 and b >= 0:
                    found[a, b] = found[b, a] = True
                j = int(self._parents[j])
        rows, cols = np.nonzero(found)
        return rows, cols


def _kind(model: Model, entry: CoupledCoordinate) -> str:
    """The unit of a coupling's coordinate: that of the joint of its name, of one that it moves one to one, or of the
    first."""
    own = [j for j in entry.joints if model.joint_names[j] == entry.name]
    pairs = zip(entry.joints, entry.functions, strict=True)
    alike = [j for j, f in pairs if isinstance(f, LinearFunction) and abs(f.multiplier) == 1]
    return model.joints[[*own, *alike, min(entry.joints)][0]].kind


def check_coordinates(model: Model, given: Any) -> tuple[CoupledCoordinate | Quaternion, ...]:
    """Couplings and quaternions that fit a model, or a ModelError."""
    entries = as_tuple("coordinates", given, "CoupledCoordinate and Quaternion objects")
    taken: dict[int, str] = {}
    checked: list[CoupledCoordinate | Quaternion] = []
    for entry in entries:
        if isinstance(entry, CoupledCoordinate):
            checked.append(_check_coupling(model, entry))
        elif isinstance(entry, Quaternion):
            checked.append(_check_quaternion(model, entry))
        else:
            raise ModelError(f"`coordinates` holds {shown(entry)}; expected CoupledCoordinate and Quaternion objects")
        for joint in entry.joints:
            if joint in taken:
                found = f"joint {shown(model.joint_names[joint])} is moved by coordinates {shown(taken[joint])}"
                raise ModelError(f"{found} and {shown(entry.name)}; expected one of them")
            taken[joint] = entry.name
    return tuple(checked)


def check_coordinate_names(names: Sequence[str]) -> None:
    """Every coordinate has a name of its own."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"two coordinates are called {shown(name)}; expected different names")
        seen.add(name)


def _check_coupling(model: Model, entry: CoupledCoordinate) -> CoupledCoordinate:
    name = check_name("`name` of a coupling", entry.name)
    where = f"coupling {shown(name)}"
    if not name:
        raise ModelError("`name` of a coupling is empty; expected text")
    joints = as_tuple(f"joints of {where}", entry.joints, "numbers of joints")
    functions = as_tuple(f"functions of {where}", entry.functions, "functions of the coordinate")
    if not joints or len(joints) != len(functions):
        found = f"{len(joints)} joints and {len(functions)} functions"
        raise ModelError(f"{where} has {found}; expected at least one joint, and a function for each")
    numbers = tuple(_joint_number(model, where, joint) for joint in joints)
    for function in functions:
        if not isinstance(function, CoordinateFunction):
            expected = "expected LinearFunction, PolynomialFunction or SplineFunction"
            raise ModelError(f"a function of {where} is {shown(function)}; {expected}")
    in_order = sorted(zip(numbers, functions, strict=True), key=lambda pair: pair[0])
    return CoupledCoordinate(name, tuple(joint for joint, _ in in_order), tuple(function for _, function in in_order))


def _check_quaternion(model: Model, entry: Quaternion) -> Quaternion:
    name = check_name("`name` of a quaternion", entry.name)
    where = f"quaternion {shown(name)}"
    first = _joint_number(model, where, entry.first)
    expected = "expected six hinges z, y, x, x, y, z at one point, as spherical(quaternion=True) has them"
    if first + len(HINGES) > model.n:
        raise ModelError(f"{where} begins at joint {first} of {model.n}; {expected}")
    eye = np.eye(4)
    for k, (i, axis) in enumerate(zip(range(first, first + len(HINGES)), HINGES, strict=True)):
        joint, last = model.joints[i], k == len(HINGES) - 1
        chained = k == 0 or (model.parents[i] == i - 1 and np.array_equal(model.placement[i], eye))
        bare = last or (np.array_equal(model.tip[i], eye) and model.mass[i] == 0)
        if joint.kind != "revolute" or joint.axis != axis or not chained or not bare:
            raise ModelError(f"joint {shown(model.joint_names[i])} of {where} does not fit; {expected}")
        if not last and (np.asarray(model.parents) == i).sum() != 1:
            raise ModelError(f"a link is attached within {where}; expected it at the end of the six hinges")
        for what in ("stiffness", "armature"):
            if getattr(model, what)[i] != 0:
                found = f"`{what}` of joint {shown(model.joint_names[i])} is {getattr(model, what)[i]:g}"
                raise ModelError(f"{found}, and a ball of coordinates that are a quaternion has none; expected zero")
        if np.isfinite(model.position_limits[i]).any():
            found = f"`position_limits` of joint {shown(model.joint_names[i])} are finite"
            raise ModelError(f"{found}, and {where} has no angles to limit; expected none")
    return Quaternion(name, first)


def _joint_number(model: Model, where: str, joint: Any) -> int:
    if isinstance(joint, bool | np.bool_) or not isinstance(joint, int | np.integer) or not 0 <= joint < model.n:
        raise ModelError(f"a joint of {where} is {shown(joint)}; expected a number from 0 to {model.n - 1}")
    return int(joint)
