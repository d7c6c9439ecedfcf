"""Up, where requirements leave it open: against the gravity of the model.

A :class:`Foot` whose sole is given by its origin alone has the axes of the world, turned by the smallest angle that
brings z up: where y is up, x stays and y becomes −z.  :class:`Above` without a normal is above the ground.  Without
gravity z is up, with a note that says so; so is a sole whose normal is far from up, as of a frame with other axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.model import Model
from kinegrad.motion.problem.places import Above, Foot
from kinegrad.motion.problem.resting import Rests

__all__ = ["axes_with_z", "up_of", "upright"]

Array = NDArray[np.float64]
STEEP = 60.0  # degrees between the normal of a sole and up, from which there is a note


def up_of(model: Model) -> Array | None:
    """Unit vector against gravity, (3,); None without gravity."""
    strength = float(np.linalg.norm(model.gravity))
    return np.asarray(-model.gravity / strength) if strength > 0 else None


def axes_with_z(up: Array) -> Array:
    """Rotation by the smallest angle that takes z to a unit vector, (3, 3); about x where that is −z."""
    cosine = float(up[2])
    if cosine < -1 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    x, y, z = np.cross([0.0, 0.0, 1.0], up)
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    R = np.eye(3) + K + K @ K / (1 + cosine)
    near = np.abs(R - np.round(R)) < 1e-15
    return np.asarray(np.where(near, np.round(R), R) + 0.0)


def upright(model: Model, requirements: Sequence[Any]) -> tuple[tuple[Any, ...], list[str]]:
    """Requirements with all directions given, and notes."""
    up, notes, found = up_of(model), list[str](), list[Any]()
    for one in requirements:
        if isinstance(one, Foot):
            found.append(_foot(one, up, notes))
        elif isinstance(one, Above | Rests) and one.normal is None:
            if up is None:
                name = type(one).__name__
                notes.append(f"{name.lower()} {one.link}: model {model.name!r} has no gravity, and z is taken for up; "
                             f"{name}(normal=…) says otherwise")  # fmt: skip
            found.append(replace(one, normal=(0.0, 0.0, 1.0) if up is None else tuple(up.tolist())))
        else:
            found.append(one)
    return tuple(found), notes


def _foot(foot: Foot, up: Array | None, notes: list[str]) -> Foot:
    axes = np.eye(3) if up is None else axes_with_z(up)
    given = {"sole": np.asarray(foot.sole)} | ({} if foot.at is None else {"at": np.asarray(foot.at)})
    if up is None and any(x.ndim == 1 for x in given.values()):
        notes.append(f"foot {foot.link}: the model has no gravity, and z is taken for up; Foot(sole=…) with a "
                     "transform says otherwise")  # fmt: skip
    places: dict[str, Array] = {}
    for name, x in given.items():
        places[name] = np.eye(4)
        places[name][:3, :3], places[name][:3, 3] = (axes, x) if x.ndim == 1 else (x[:3, :3], x[:3, 3])
    normal = places.get("at", places["sole"])[:3, 2]
    if up is not None:
        angle = float(np.degrees(np.arccos(np.clip(normal @ up, -1.0, 1.0))))
        if angle > STEEP:
            notes.append(f"foot {foot.link}: the normal of its sole, z of the sole frame, is {angle:.0f}° from up, "
                         "which is against gravity")  # fmt: skip
    return replace(foot, sole=places["sole"], at=places.get("at"))
