"""Constants of a model by name: ``"thigh.mass"``, ``"elbow.a"``, ``"gravity.z"``; their values, slopes and changes."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError
from kinegrad.model.dh import DH
from kinegrad.model.model import Model
from kinegrad.model.placement import rotate

Array = NDArray[np.float64]

_AXES = {"x": 0, "y": 1, "z": 2}
_MOMENTS = {a + b: (i, j) for a, i in _AXES.items() for b, j in _AXES.items() if i <= j}
_PER_JOINT = ("stiffness", "rest", "damping", "armature", "pitch")
_DH = ("theta", "d", "a", "alpha")
_LOAD = ("force", "point", "torque")
_TURNS = {f"r{x}": axis for x, axis in _AXES.items()}  # of a placement or tip about its own axes, from where it is


@dataclass(frozen=True)
class Constant:
    """One number among a model's constants: entry `where` of field `what` (and its mirror), or a DH parameter."""

    name: str
    what: str
    where: tuple[int, ...]

    @property
    def of_load(self) -> bool:
        """Whether it is a number of a load, which no model has."""
        return self.what in _LOAD

    @property
    def turns(self) -> bool:
        """Whether it is a turn of a placement or tip: (joint, axis) instead of an entry."""
        return self.what in ("placement", "tip") and len(self.where) == 2

    def get(self, model: Model, loads: dict[str, Array]) -> float:
        """Its present value; `loads` are force, point and torque of all links."""
        if self.of_load:
            return float(loads[self.what][self.where])
        if self.turns:
            return 0.0
        if self.what in _DH:
            return float(getattr(dh_row(model, self.where[0])[0], self.what))
        if self.what == "pitch":
            return model.joints[self.where[0]].pitch
        return float(getattr(model, self.what)[self.where])

    def slopes(self, model: Model) -> dict[str, Array]:
        """Slopes of the fields it enters."""
        if self.what in _DH:
            return _dh_slopes(model, self.where[0], self.what)
        if self.turns:
            full = np.zeros((model.n, 4, 4))
            full[self.where[0]] = getattr(model, self.what)[self.where[0]] @ _turn(self.where[1])
            return {self.what: full}
        shape = (
            (model.n,) if self.what == "pitch" else (model.n, 3) if self.of_load else getattr(model, self.what).shape
        )
        slope = np.zeros(shape)
        slope[self.where] = 1.0
        if self.what == "inertia":
            i, j, k = self.where
            slope[i, k, j] = 1.0
        return {self.what: slope}

    def shift(self, model: Model, fields: dict[str, Array], change: float) -> None:
        """Add `change` to it in `fields`, copies of the model's fields and of the loads'."""
        if self.what in _DH:
            i = self.where[0]
            row, convention = dh_row(model, i, fields)
            moved = replace(row, **{self.what: getattr(row, self.what) + change})
            for what, value in zip(("placement", "tip"), moved.placement(convention), strict=True):
                fields.setdefault(what, getattr(model, what).copy())[i] = value
        elif self.turns:
            i, axis = self.where
            frames = fields.setdefault(self.what, getattr(model, self.what).copy())
            frames[i] = frames[i] @ rotate("xyz"[axis], change)
        elif self.what == "pitch":
            i = self.where[0]
            joints = list(fields.get("joints", model.joints))
            joints[i] = replace(joints[i], pitch=joints[i].pitch + change)
            fields["joints"] = tuple(joints)  # type: ignore[assignment]
        else:
            for what, slope in self.slopes(model).items():
                fields[what] = (fields[what] if what in fields else getattr(model, what)) + change * slope


def find_constant(model: Model, name: str) -> Constant:
    """The constant called `name`, or an InputError that says what there is."""
    if not isinstance(name, str):
        raise InputError(f"constant {name!r} is a {type(name).__name__}; expected a name such as 'thigh.mass'")
    if name.startswith("gravity.") and name[8:] in _AXES:
        return Constant(name, "gravity", (_AXES[name[8:]],))
    for owner, quantity in _splits(name):
        if owner in model.link_names:
            i = model.link_names.index(owner)
            if quantity == "mass":
                return Constant(name, "mass", (i,))
            head, _, tail = quantity.partition(".")
            if head == "com" and tail in _AXES:
                return Constant(name, "com", (i, _AXES[tail]))
            if head == "inertia" and "".join(sorted(tail)) in _MOMENTS:
                return Constant(name, "inertia", (i, *_MOMENTS["".join(sorted(tail))]))
            what, _, axis = tail.partition(".")
            if head == "load" and what in _LOAD and axis in _AXES:
                return Constant(name, what, (i, _AXES[axis]))
        if owner in model.joint_names:
            i = model.joint_names.index(owner)
            if quantity in _PER_JOINT:
                _check_screw(model, i, quantity)
                return Constant(name, quantity, (i,))
            if quantity in _DH:
                dh_row(model, i)
                return Constant(name, quantity, (i,))
            head, _, tail = quantity.partition(".")
            if head in ("placement", "tip") and tail in _AXES:
                return Constant(name, head, (i, _AXES[tail], 3))
            if head in ("placement", "tip") and tail in _TURNS:
                return Constant(name, head, (i, _TURNS[tail]))
    raise InputError(f"constant {name!r} does not exist in model {model.name!r}; {_hint(model, name)}")


def _hint(model: Model, name: str) -> str:
    """The closest constants there are."""
    of_link = ("mass", *(f"com.{x}" for x in _AXES), *(f"inertia.{xy}" for xy in _MOMENTS),
               *(f"load.{what}.{x}" for what in _LOAD for x in _AXES))  # fmt: skip
    of_joint = (*_PER_JOINT, *_DH, *(f"{what}.{x}" for what in ("placement", "tip") for x in (*_AXES, *_TURNS)))
    owners = dict.fromkeys(model.joint_names, of_joint)
    for link in model.link_names:
        owners[link] = of_link + owners.get(link, ())
    owners["gravity"] = (*_AXES, *owners.get("gravity", ()))
    parts = _splits(name)
    near = [owner for owner, _ in parts if owner in owners]
    near = near or [x for owner, _ in parts for x in difflib.get_close_matches(owner, owners, n=2, cutoff=0.6)]
    known = [f"{owner}.{quantity}" for owner in near for quantity in owners[owner]]
    close = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else "see Design for the names there are"


def _check_screw(model: Model, i: int, quantity: str) -> None:
    if quantity == "pitch" and model.joints[i].kind != "screw":
        joint, kind = model.joint_names[i], model.joints[i].kind
        raise InputError(f"joint {joint!r} of model {model.name!r} is {kind}; only a screw has a pitch")


def dh_row(model: Model, i: int, fields: dict[str, Array] | None = None) -> tuple[DH, str]:
    """The Denavit–Hartenberg row that places joint i, and its convention; an InputError if none does.

    A row without a and α reads the same in both conventions; then the other joints tell.
    """
    P, F = ((fields or {}).get(what, getattr(model, what))[i] for what in ("placement", "tip"))
    row, convention = _read_row(P, F)
    if convention == "distal" and not F[:2, 3].any() and F[2, 2] == 1.0 and _is_proximal(model):
        convention = "proximal"
    what = _departs(P, F, row, convention)
    if what is None and abs(model.joints[i].axis[2]) != 1.0:
        what = "axis"
    if what is not None:
        joint = model.joint_names[i]
        raise InputError(
            f"joint {joint!r} of model {model.name!r} is not placed by a Denavit–Hartenberg row (see its {what}); "
            f"use {joint}.placement.x, {joint}.tip.x, …"
        )
    return row, convention


def _read_row(P: Array, F: Array) -> tuple[DH, str]:
    """The row that P and F are, if they are one."""
    if np.array_equal(P, np.eye(4)) and F[2, 0] == 0.0:
        theta, alpha = math.atan2(F[1, 0], F[0, 0]), math.atan2(F[2, 1], F[2, 2])
        a = F[0, 3] * F[0, 0] + F[1, 3] * F[1, 0]
        return DH(theta, F[2, 3], a, alpha), "distal"
    alpha, theta = math.atan2(P[2, 1], P[1, 1]), math.atan2(F[1, 0], F[0, 0])
    return DH(theta, F[2, 3], P[0, 3], alpha), "proximal"


def _departs(P: Array, F: Array, row: DH, convention: str) -> str | None:
    """Which of placement and tip is not that of the row."""
    for what, found, made in zip(("placement", "tip"), (P, F), row.placement(convention), strict=True):
        if np.abs(found - made).max() > 1e-12 * max(1.0, np.abs(found).max()):
            return what
    return None


def _is_proximal(model: Model) -> bool:
    """Whether some joint is placed by a row that can only be a proximal one."""
    for P, F in zip(model.placement, model.tip, strict=True):
        row, convention = _read_row(P, F)
        if convention == "proximal" and _departs(P, F, row, convention) is None:
            return True
    return False


def _turn(axis: int) -> Array:
    """Slope of a small turn about an axis."""
    slope = np.zeros((4, 4))
    j, k = (axis + 1) % 3, (axis + 2) % 3
    slope[j, k], slope[k, j] = -1.0, 1.0
    return slope


def _dh_slopes(model: Model, i: int, what: str) -> dict[str, Array]:
    row, convention = dh_row(model, i)
    P, F = row.placement(convention)
    turn_z, turn_x, shift = np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 4))
    turn_z[0, 1], turn_z[1, 0] = -1.0, 1.0
    turn_x[1, 2], turn_x[2, 1] = -1.0, 1.0
    if what == "theta":
        field, slope = "tip", turn_z @ F
    elif what == "d":
        shift[2, 3] = 1.0
        field, slope = "tip", shift
    elif convention == "distal":
        shift[:2, 3] = math.cos(row.theta), math.sin(row.theta)
        field, slope = "tip", shift if what == "a" else F @ turn_x
    else:
        shift[0, 3] = 1.0
        field, slope = "placement", shift if what == "a" else turn_x @ P
    full = np.zeros((model.n, 4, 4))
    full[i] = slope
    return {field: full}


def _splits(name: str) -> list[tuple[str, str]]:
    """All ways to read a dotted name as owner and quantity (owners may have dots), longest owner first."""
    parts = name.split(".")
    return [(".".join(parts[:k]), ".".join(parts[k:])) for k in range(len(parts) - 1, 0, -1)]
