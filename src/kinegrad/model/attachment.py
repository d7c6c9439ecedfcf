"""Bodies welded to links: a box in the hands, a tool on a flange, a backpack.

Two bodies that move as one have the mass m = m₁ + m₂, the centre of mass c = (m₁c₁ + m₂c₂)/m, and about it the inertia

    I = I₁ + I₂ + (m₁m₂/m) (|d|² 1 − d dᵀ),    d = c₂ − c₁,

exactly: no joint, link or constraint is added, and everything that is computed with the model follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import InputError, ModelError, shown
from kinegrad.model.inertia import Inertia, check_inertia

if TYPE_CHECKING:
    from kinegrad.model.model import Model

__all__ = ["attached", "bodies_by_name"]

Array = NDArray[np.float64]
FIELDS = ("mass", "com", "inertia")


def attached(
    model: Model, link: str, mass: float | Inertia, point: ArrayLike | None, inertia: ArrayLike | None
) -> dict[str, Array]:
    """The fields `mass`, `com` and `inertia` of the model with a body welded to a link or frame."""
    i, placement = model.locate(link)
    where = f"what is attached to {shown(link)}"
    if isinstance(mass, Inertia):
        if point is not None or inertia is not None:
            given = "point" if point is not None else "inertia"
            raise InputError(f"`{given}` is given, and `mass` is an Inertia, which has one; expected one of the two")
        body = mass
    else:
        turning = np.zeros((3, 3)) if inertia is None else inertia
        m, c, about_c = check_inertia(mass, (0.0, 0.0, 0.0) if point is None else point, turning, where=where)
        body = Inertia(m, c, about_c)
    if placement is not None:
        body = body.moved(placement)
    own = Inertia(model.mass[i], model.com[i], model.inertia[i])
    return _with_bodies(model, {i: own + body})


def bodies_by_name(model: Model, given: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that ``replace(inertia={"hand": Inertia(…)})`` changes: of those links mass and centre of mass, too.

    `others` are the other changes; a mass or centre of mass among them would contradict the bodies.
    """
    mixed = [name for name, value in given.items() if not isinstance(value, Inertia)]
    if mixed:
        found = f"`inertia` of {shown(mixed[0])} is {shown(given[mixed[0]])}, and another one is an Inertia"
        raise ModelError(f"{found}; expected either for all")
    for what in ("mass", "com"):
        if what in others:
            found = f"`{what}` is given, and `inertia` holds Inertia objects, which have one"
            raise InputError(f"{found}; expected one of the two")
    return {**_with_bodies(model, {model.link_index(name): body for name, body in given.items()})}


def _with_bodies(model: Model, bodies: Mapping[int, Inertia]) -> dict[str, Array]:
    fields = {}
    for what in FIELDS:
        values = getattr(model, what).copy()
        for i, body in bodies.items():
            new = np.asarray(getattr(body, what))
            values = values.astype(np.result_type(values, new), copy=False)
            values[i] = new
        fields[what] = values
    return fields
