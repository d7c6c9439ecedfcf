"""What a model adds to descriptions: names where none were given, lengths and places that were left open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import neutral
from kinegrad.constraints.descriptions import Constraint, Contact, Distance, Loop
from kinegrad.errors import InputError, ModelError, shown
from kinegrad.kinematics import forward_kinematics, point_motion
from kinegrad.model import Model
from kinegrad.model.names import as_tuple

__all__ = ["all_of", "held", "names_of", "place", "resolved"]

Array = NDArray[np.float64]


def all_of(given: Any) -> tuple[Constraint, ...]:
    """Descriptions in a tuple, or an InputError."""
    expected = "Contact, Loop, Distance, Coupling or Given objects"
    try:
        found = as_tuple("constraints", given, f"a list of {expected}")
    except ModelError as error:
        raise InputError(str(error)) from None
    for one in found:
        if not isinstance(one, Constraint):
            raise InputError(f"`constraints` holds {shown(one)}; expected {expected}")
    return found


def names_of(given: Sequence[Constraint]) -> tuple[str, ...]:
    """The names that were given, and such for the others: ``contact_foot``, ``contact_foot_2``."""
    used: set[str] = set()
    for one in given:
        if one.name in used:
            raise InputError(f"two constraints are called {shown(one.name)}; expected different names")
        used |= {one.name} - {""}
    names = []
    for one in given:
        plain = name = one.name or f"{one.word}_{one.subject}"
        number = 2
        while not one.name and name in used:
            name, number = f"{plain}_{number}", number + 1
        used.add(name)
        names.append(name)
    return tuple(names)


def place(model: Model, q: Any, link: str | None, point: Any) -> Array:
    """A point of a link or frame, or of the world, in the world."""
    return np.asarray(point) if link is None else point_motion(model, q, link=link, point=point).position


def resolved(model: Model, one: Constraint, name: str) -> Constraint:
    """With its name, and the length of a distance."""
    if isinstance(one, Distance) and one.length is None:
        q = neutral(model)
        try:
            gap = place(model, q, one.link, one.point) - place(model, q, one.other, one.other_point)
        except InputError as error:
            raise InputError(f"constraint {shown(name)}: {error}") from None
        with np.errstate(over="ignore"):
            length = float(np.linalg.norm(gap))
        if not length > 0:
            found = f"constraint {shown(name)} is of two points that are at one place in the neutral configuration"
            raise InputError(f"{found}; expected `length`")
        one = replace(one, length=length)
    return one if one.name else replace(one, name=name)  # type: ignore[type-var]


def held(model: Model, one: Constraint, q: Any) -> Constraint:
    """A contact, or a loop with the world, that holds what it ties where that is at q; others as they are."""
    x = engine.real("q", q)
    if x.ndim != 1:
        raise InputError(f"`q` has shape {x.shape}; expected one configuration, ({model.nq},)")
    if isinstance(one, Contact):
        there = place(model, x, one.link, one.point)
        other = _frame(model, x, one.other)
        return replace(one, other_point=other[:3, :3].T @ (there - other[:3, 3]))
    if isinstance(one, Loop) and one.other is None:
        return replace(one, other_placement=_frame(model, x, one.link) @ np.asarray(one.placement))
    return one


def _frame(model: Model, q: Array, name: str | None) -> Array:
    """A link or frame, or the world, in the world, (4, 4)."""
    if name is None:
        return np.eye(4)
    link, placement = model.locate(name)
    T: Array = forward_kinematics(model, q).transform[link]
    return T if placement is None else T @ placement
