"""Constants of a model by name: ``"thigh.mass"``, ``"elbow.a"``, ``"gravity.z"``; their values, slopes and changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.model.coordinates import POSE
from kinegrad.model.dh import DH, DHTable
from kinegrad.model.elements import Element, element_numbers
from kinegrad.model.frames import Frame, placements
from kinegrad.model.lengths import link_length
from kinegrad.model.model import Model
from kinegrad.model.names import closest
from kinegrad.model.numbers import STEP, carry_slopes, slope
from kinegrad.model.placement import rotate, turning

Array = NDArray[np.float64]

_AXES = {"x": 0, "y": 1, "z": 2}
_MOMENTS = {a + b: (i, j) for a, i in _AXES.items() for b, j in _AXES.items() if i <= j}
_PER_JOINT = ("stiffness", "rest", "damping", "armature", "pitch")
_DH = ("theta", "d", "a", "alpha")
_LOAD = ("force", "point", "torque")
_TURNS = {f"r{x}": axis for x, axis in _AXES.items()}  # of a placement or tip about its own axes, from where it is


@dataclass(frozen=True)
class Constant:
    """One number among a model's constants: entry `where` of field `what` (and its mirror), or a DH parameter.

    Of ``"frames"``, an entry of the placements of all frames in their order; of ``"elements"``, which element, and
    which of its constants.
    """

    name: str
    what: str
    where: tuple[int, ...]

    @property
    def of_load(self) -> bool:
        """Whether it is a number of a load, which no model has."""
        return self.what in _LOAD

    @property
    def turns(self) -> bool:
        """Whether it is a turn of a placement, tip or frame: (joint or frame, axis) instead of an entry."""
        return self.what in ("placement", "tip", "frames") and len(self.where) == 2

    def turned(self, model: Model) -> tuple[Any, Any] | None:
        """What it turns, and about which axis; None if it turns nothing."""
        if self.turns:
            return (self.what, self.where[0]), self.where[1]
        if self.what == "elements":
            placement, _, axis = self._of_element(model)[1].rpartition(".")
            return ((self.what, self.where[0], placement), axis) if axis in _TURNS else None
        return None

    def get(self, model: Model, loads: dict[str, Array]) -> float:
        """Its present value; `loads` are force, point and torque of all links."""
        if self.of_load:
            return float(loads[self.what][self.where])
        if self.turns:
            return 0.0
        if self.what in _DH:
            return float(getattr(dh_row(model, self.where[0])[0], self.what))
        if self.what == "length":
            return link_length(model, self.where[0]).length
        if self.what == "pitch":
            return model.joints[self.where[0]].pitch
        if self.what == "elements":
            element, number = self._of_element(model)
            return float(element.number(number))
        if self.what == "frames":
            return float(placements(model.frames)[self.where])
        return float(getattr(model, self.what)[self.where])

    def slopes(self, model: Model) -> dict[str, Array]:
        """Slopes of the fields it enters."""
        if self.what in _DH:
            return _dh_slopes(model, self.where[0], self.what)
        if self.what == "length":
            return self._slopes_of_length(model)
        if self.what == "elements" or (self.what == "frames" and model.elements):
            return self._slopes_by_step(model)
        return self._slopes_of_field(model)

    def touches(self, model: Model) -> list[tuple[str, tuple[int, ...]]]:
        """The numbers of the model that it moves, as (what, where): itself, or all that a length moves."""
        if self.what != "length":
            return [(self.what, self.where)]
        found = link_length(model, self.where[0])
        return [(found.what, (k, axis, 3)) for k in found.places for axis in range(3)]

    def _slopes_of_length(self, model: Model) -> dict[str, Array]:
        found = link_length(model, self.where[0])
        now = placements(model.frames) if found.what == "frames" else getattr(model, found.what)
        full = np.zeros(now.shape)
        full[list(found.places), :3, 3] = found.direction
        if found.what != "frames" or not model.elements:
            return {found.what: full}
        fields: dict[str, Any] = {}  # elements may be attached to the frame
        with carry_slopes():
            self.set(model, fields, lambda now: now + 1j * STEP)  # type: ignore[arg-type, return-value]
            return {"elements": slope(element_numbers(model.replace(**fields))), found.what: full}

    def _set_length(self, model: Model, fields: dict[str, Any], new: Callable[[float], float]) -> None:
        found = link_length(model, self.where[0])
        change = (new(found.length) - found.length) * found.direction
        if found.what == "frames":
            frames = fields.setdefault("frames", dict(model.frames))
            for k in found.places:
                name = list(frames)[k]
                T = np.array(frames[name].placement)
                T = T.astype(np.result_type(T, change))
                T[:3, 3] += change
                frames[name] = Frame(frames[name].link, T)
            return
        now = fields[found.what] if found.what in fields else getattr(model, found.what)
        values = np.array(now)
        values = values.astype(np.result_type(values, change), copy=False)
        values[list(found.places), :3, 3] += change
        fields[found.what] = values

    def _of_element(self, model: Model) -> tuple[Element, str]:
        """The element, and the name of its constant."""
        element = list(model.elements.values())[self.where[0]]
        return element, element.constants[self.where[1]]

    def _slopes_by_step(self, model: Model) -> dict[str, Array]:
        """Slopes of elements, and of frames that they may be attached to, by complex step."""
        fields: dict[str, Any] = {}
        with carry_slopes():
            self.set(model, fields, lambda now: now + 1j * STEP)  # type: ignore[arg-type, return-value]
            found = {"elements": slope(element_numbers(model.replace(**fields)))}
        return found if self.what == "elements" else found | self._slopes_of_field(model)

    def _slopes_of_field(self, model: Model) -> dict[str, Array]:
        if self.turns:
            now = placements(model.frames) if self.what == "frames" else getattr(model, self.what)
            full = np.zeros(now.shape)
            full[self.where[0]] = now[self.where[0]] @ turning(self.where[1])
            return {self.what: full}
        unit = np.zeros(self._shape(model))
        unit[self.where] = 1.0
        if self.what == "inertia":
            i, j, k = self.where
            unit[i, k, j] = 1.0
        return {self.what: unit}

    def _shape(self, model: Model) -> tuple[int, ...]:
        """Of the field."""
        of_other = {"pitch": (model.n,), "frames": (len(model.frames), 4, 4)} | dict.fromkeys(_LOAD, (model.n, 3))
        return of_other[self.what] if self.what in of_other else getattr(model, self.what).shape

    def set(self, model: Model, fields: dict[str, Any], new: Callable[[float], float]) -> None:
        """Make it what `new` makes of it in `fields`, copies of the model's fields and of the loads'."""
        if self.what in _DH:
            i = self.where[0]
            table: Any = fields.get("dh", model.dh)
            row, convention = dh_row(model, i, table)
            moved = replace(row, **{self.what: new(getattr(row, self.what))})  # type: ignore[arg-type]
            fields["dh"] = table.with_row(i, moved)
            for what, value in zip(("placement", "tip"), moved.placement(convention), strict=True):
                fields[what] = _changed(fields.get(what, getattr(model, what)), i, value)
        elif self.what == "length":
            self._set_length(model, fields, new)
        elif self.what == "elements":
            elements = fields.setdefault("elements", dict(model.elements))
            name = list(elements)[self.where[0]]
            elements[name] = elements[name].changed(self._of_element(model)[1], new)
        elif self.what == "frames":
            frames = fields.setdefault("frames", dict(model.frames))
            name = list(frames)[self.where[0]]
            T = np.array(frames[name].placement)
            if self.turns:
                T = T @ rotate("xyz"[self.where[1]], new(0.0))
            else:
                T = _changed(T, self.where[1:], new(_number(T[self.where[1:]])))
            frames[name] = Frame(frames[name].link, T)
        elif self.turns:
            i, axis = self.where
            now = fields.get(self.what, getattr(model, self.what))
            fields[self.what] = _changed(now, i, now[i] @ rotate("xyz"[axis], new(0.0)))
        elif self.what == "pitch":
            i = self.where[0]
            joints = list(fields.get("joints", model.joints))
            joints[i] = replace(joints[i], pitch=new(joints[i].pitch))
            fields["joints"] = tuple(joints)
        else:
            now = fields[self.what] if self.what in fields else getattr(model, self.what)
            values = fields[self.what] = _changed(now, self.where, new(_number(now[self.where])))
            if self.what == "inertia":
                i, j, k = self.where
                values[i, k, j] = values[i, j, k]


def _changed(values: Any, where: Any, new: Any) -> NDArray[Any]:
    """A copy with an entry changed, to a number that may carry a slope."""
    found = np.array(values)
    found = found.astype(np.result_type(found, new), copy=False)
    found[where] = new
    return found


def _number(x: Any) -> Any:
    """A plain number, or one that carries a slope."""
    return x.item()


def find_constant(model: Model, name: str) -> Constant:
    """The constant called `name`, or an InputError that says what there is."""
    if not isinstance(name, str):
        raise InputError(f"constant {shown(name)} is a {type(name).__name__}; expected a name such as 'thigh.mass'")
    if name.startswith("gravity.") and name[8:] in _AXES:
        return Constant(name, "gravity", (_AXES[name[8:]],))
    for owner, quantity in _splits(name):
        if owner in model.link_names:
            i = model.link_names.index(owner)
            if quantity == "mass":
                return Constant(name, "mass", (i,))
            if quantity == "length":
                link_length(model, i)
                return Constant(name, "length", (i,))
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
            if head == "placement" and owner in model.frames:
                found = f"constant {shown(name)} could be that of joint or of frame {shown(owner)}"
                raise InputError(f"{found}, in model {shown(model.name)}; expected the frame to have another name")
            if head in ("placement", "tip") and tail in _AXES:
                return Constant(name, head, (i, _AXES[tail], 3))
            if head in ("placement", "tip") and tail in _TURNS:
                return Constant(name, head, (i, _TURNS[tail]))
        if owner in model.elements and quantity in model.elements[owner].constants:
            k = list(model.elements).index(owner)
            return Constant(name, "elements", (k, model.elements[owner].constants.index(quantity)))
        head, _, tail = quantity.partition(".")
        if owner in model.frames and head == "placement":
            k = list(model.frames).index(owner)
            if tail in _AXES:
                return Constant(name, "frames", (k, _AXES[tail], 3))
            if tail in _TURNS:
                return Constant(name, "frames", (k, _TURNS[tail]))
    raise InputError(f"constant {shown(name)} does not exist in model {shown(model.name)}; {_hint(model, name)}")


def check_apart(
    model: Model, parameters: Mapping[str, Sequence[tuple[Constant, float]]], alone: Collection[str]
) -> None:
    """Refuse parameters that do not leave each other alone, so that a model would not have the values it was given.

    A parameter that is `alone` says what a constant is; no other may move it.  A combination says what to add: two of
    them may move one constant, unless they move all in the same proportion and are thus one parameter.  The numbers of
    a Denavit–Hartenberg row place a joint; then placement and tip cannot be moved apart from them.
    """
    movers: dict[tuple[str, tuple[int, ...]], list[tuple[str, Constant]]] = {}
    rows: dict[int, tuple[str, Constant]] = {}
    for name, terms in parameters.items():
        for constant, _ in terms:
            for key in constant.touches(model):
                for other, twin in movers.setdefault(key, []):
                    if (other == name and twin is not constant) or name in alone or other in alone:
                        raise _not_apart(other, twin, name, constant, "are one constant")
                movers[key].append((name, constant))
            if constant.what in _DH:
                rows.setdefault(constant.where[0], (name, constant))
    for (what, where), ((name, constant), *_) in movers.items():
        if what in ("placement", "tip") and where[0] in rows:
            raise _not_apart(*rows[where[0]], name, constant, "both place one joint")
    alike: dict[frozenset[Any], list[tuple[str, dict[Any, float]]]] = {}
    for name in [name for name in parameters if name not in alone]:
        factors = {(c.what, c.where): factor for c, factor in parameters[name] if factor}
        for other, found in alike.setdefault(frozenset(factors), []):
            ratios = [factors[key] / found[key] for key in factors] or [0.0]
            if max(ratios) - min(ratios) <= 1e-12 * max(map(abs, ratios)):
                one, two = parameters[other][0][0], parameters[name][0][0]
                raise _not_apart(other, one, name, two, "move the same, but for a factor")
        alike[frozenset(factors)].append((name, factors))


def _not_apart(one: str, constant: Constant, two: str, twin: Constant, why: str) -> InputError:
    both = f"{shown(one)} ({shown(constant.name)}) and {shown(two)} ({shown(twin.name)})"
    return InputError(f"`parameters` {both} {why}; expected one parameter for it")


def _hint(model: Model, name: str) -> str:
    """The closest constants there are."""
    of_link = ("mass", "length", *(f"com.{x}" for x in _AXES), *(f"inertia.{xy}" for xy in _MOMENTS),
               *(f"load.{what}.{x}" for what in _LOAD for x in _AXES))  # fmt: skip
    of_joint = (*_PER_JOINT, *_DH, *(f"{what}.{x}" for what in ("placement", "tip") for x in (*_AXES, *_TURNS)))
    owners = dict.fromkeys(model.joint_names, of_joint)
    for link in model.link_names:
        owners[link] = of_link + owners.get(link, ())
    for frame in model.frames:
        owners[frame] = (*owners.get(frame, ()), *(f"placement.{x}" for x in (*_AXES, *_TURNS)))
    owners |= {name: element.constants for name, element in model.elements.items()}
    owners["gravity"] = (*_AXES, *owners.get("gravity", ()))
    parts = _splits(name)
    near = [(owner, rest) for owner, rest in parts if owner in owners][:1]
    in_series = [(*pair, found) for pair in near or parts if (found := _of_joints_in_series(model, pair[0], of_link))]
    alike = [x for _, rest, found in in_series for x in found.get(rest, ())]
    alike = alike or [f"{owner}.{x}" for owner, rest in near for x in closest(rest, owners[owner], 2)]
    alike = alike or [x for _, rest, found in in_series for each in closest(rest, found, 1) for x in found[each]]
    if not near and not in_series:
        alike = [f"{x}.{rest}" for owner, rest in parts for x in closest(owner, owners, 2) if rest in owners[x]]
    if alike:
        return f"did you mean {' or '.join(map(shown, alike[:3]))}?"
    said = [f"{shown(owner)} has {', '.join(owners[owner][:12])}, …" for owner, _ in near if len(owners[owner]) > 12]
    said = said or [f"{shown(owner)} has {', '.join(owners[owner])}" for owner, _ in near]
    firsts = ("placement.x", "tip.x", "damping")
    said += [f"joint {shown(owner)} has {', …, '.join(x[y][0] for y in firsts)}, …" for owner, _, x in in_series]
    return "; ".join(said) or "see Design for the names there are"


def _of_joints_in_series(model: Model, name: str, of_link: Sequence[str]) -> dict[str, list[str]]:
    """Constants of a ball, universal, planar or free joint called `name`, which is several joints ``name.…`` in series.

    It is placed by the first of them, its link by the last, and each has its own springs; those of a ball whose
    coordinates are a quaternion are dampers only.  Between them are no bodies.
    """
    own = [i for i, joint in enumerate(model.joint_names) if joint.rpartition(".")[0] == name]
    if len(own) < 2 or any(j != i + 1 or model.parents[j] != i for i, j in pairwise(own)):
        return {}
    first, last = model.joint_names[own[0]], model.joint_names[own[-1]]
    found = {f"placement.{x}": [f"{first}.placement.{x}"] for x in (*_AXES, *_TURNS)}
    found |= {f"tip.{x}": [f"{last}.tip.{x}"] for x in (*_AXES, *_TURNS)}
    pose = {i for start, _, _ in model.layout.balls for i in range(start, start + POSE)}
    chart = {i + POSE for i in pose}
    for what in ("stiffness", "rest", "damping", "armature"):
        still = pose if what == "damping" else pose | chart
        have = [f"{model.joint_names[i]}.{what}" for i in own if i not in still]
        found |= {what: have} if have else {}
    link = model.link_names[own[-1]]
    return found if link == name else found | {x: [f"{link}.{x}"] for x in of_link}


def _check_screw(model: Model, i: int, quantity: str) -> None:
    if quantity == "pitch" and model.joints[i].kind != "screw":
        joint, kind = model.joint_names[i], model.joints[i].kind
        raise InputError(f"joint {shown(joint)} of model {shown(model.name)} is {kind}; only a screw has a pitch")


def dh_row(model: Model, i: int, table: DHTable | None = None) -> tuple[DH, str]:
    """The Denavit–Hartenberg row that places joint i, and its convention; an InputError if none does."""
    table = model.dh if table is None else table
    row = None if table is None else table.rows[i]
    if table is None or row is None:
        joint = shown(model.joint_names[i])
        raise InputError(
            f"joint {joint} of model {shown(model.name)} is not placed by a Denavit–Hartenberg row, as "
            f"Model.from_dh does; use {joint[1:-1]}.placement.x, {joint[1:-1]}.tip.x, …"
        )
    return row, table.convention


def _dh_slopes(model: Model, i: int, what: str) -> dict[str, Array]:
    row, convention = dh_row(model, i)
    P, F = row.placement(convention)
    turn_x, turn_z, shift = turning(0), turning(2), np.zeros((4, 4))
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
