"""Recordings whose vertical axis is another than that of the model, turned; and doubts about recordings.

Laboratories measure with z or with y upwards; a model has its gravity.  Between the two worlds there is a turn by 90°
about x: (x, y, z) → (x, z, −y) from z upwards to y upwards.

A recording that was not turned, or whose plates have another sign, unit or place, has torques that look like numbers.
:func:`doubts_about` compares what was measured with what bodies do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import neutral
from kinegrad.errors import InputError, shown
from kinegrad.io.trc_file import Markers
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.recordings.force_plates import FOOT, STANDING, ForcePlate

__all__ = ["doubts_about", "turn_upright", "up_axis"]

Array = NDArray[np.float64]
Recorded = TypeVar("Recorded", Markers, ForcePlate)
ABOUT_X = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # from z upwards to y upwards
ALONG = 0.999  # cosine between gravity and an axis that is called vertical
ACROSS = 30.0  # degrees from the vertical to the mean force of all plates, that are doubted
LYING = 60.0  # degrees from the vertical to the mean direction of what is up in the neutral posture
STRONG = 10.0  # N·m per kg of the whole body
UNEXPLAINED, OFTEN = 0.5, 0.1  # part of the weight that plates leave to the root, and of the instants
NEARER = 0.7  # part of the distance to its own foot that another foot may be away
AWAY = 1.0  # m, from a link to the centre of pressure on it, in the mean


def up_axis(model: Model) -> str:
    """The axis of the world that points upwards, "x", "y" or "z"; "" if gravity is zero or along none.

    >>> from kinegrad import samples
    >>> up_axis(samples.human43())
    'z'
    """
    size = float(np.linalg.norm(model.gravity))
    along = -np.asarray(model.gravity) / size if size else np.zeros(3)
    k = int(np.argmax(along))
    return "xyz"[k] if along[k] > ALONG else ""


def turn_upright(model: Model, recording: Recorded, *, up: str) -> Recorded:
    """Turn markers or a force plate into the world of a model, whose gravity is vertical.

    Parameters
    ----------
    model : Model
        With gravity along −y or −z.
    recording : Markers or ForcePlate
    up : {"y", "z"}
        The axis of the recording that points upwards.

    Returns
    -------
    Markers or ForcePlate
        The recording itself if that is the axis of the model.

    Examples
    --------
    >>> from kinegrad import samples
    >>> seen = Markers([0.0], ("head",), [[[0.1, 1.7, 0.2]]])
    >>> turn_upright(samples.human43(), seen, up="y").position
    array([[[ 0.1, -0.2,  1.7]]])
    """
    engine.check_model(model)
    if not isinstance(up, str) or up not in ("y", "z"):
        raise InputError(f"`up` is {shown(up)}; expected 'y' or 'z'")
    if not isinstance(recording, Markers | ForcePlate):
        raise InputError(f"`recording` is a {type(recording).__name__}; expected Markers or a ForcePlate")
    vertical = up_axis(model)
    if vertical not in ("y", "z"):
        found = ", ".join(f"{x:g}" for x in model.gravity)
        raise InputError(f"model {shown(model.name)} has gravity ({found}); expected it along −y or −z")
    if vertical == up:
        return recording
    R = ABOUT_X if up == "z" else ABOUT_X.T
    names = ("position",) if isinstance(recording, Markers) else ("force", "point", "torque")
    changed: dict[str, Any] = {name: getattr(recording, name) @ R.T for name in names}
    return replace(recording, **changed)


def doubts_about(
    model: Model, motion: Motion, plates: Sequence[ForcePlate], tau: Array, root: Sequence[str]
) -> list[str]:
    """Return a sentence for each physically implausible property of a recording.

    Parameters
    ----------
    model, motion, tau
        Of the inverse dynamics.
    plates : sequence of ForcePlate
        At the times of the motion, with their links.
    root : sequence of str
        Speeds that nothing drives, if the root is free.
    """
    vertical = -np.asarray(model.gravity) / max(float(np.linalg.norm(model.gravity)), 1e-300)
    found = []
    if plates and vertical.any():
        found += _across(plates, vertical)
    for plate in plates:
        found += _away(model, motion, plate) or _swapped(model, motion, plate)
    if root and vertical.any():
        found += _lying(model, motion, vertical)
        if plates:
            found += _unexplained(model, motion, tau, root)
    return found + _strong(model, motion, tau, root)


def _across(plates: Sequence[ForcePlate], vertical: Array) -> list[str]:
    mean = sum((plate.force.mean(axis=0) for plate in plates), np.zeros(3))
    if not np.linalg.norm(mean) > STANDING:
        return []
    angle = _angle(mean, vertical)
    if angle <= ACROSS:
        return []
    text = f"the mean force of the plates, ({_numbers(mean)}) N, is {angle:.0f}° from the vertical of the model"
    if angle > 180 - ACROSS:
        return [f"{text}; are these forces on the plates? expected those on the feet"]
    return [f"{text}; is another axis up (turn_upright, --up)?"]


def _away(model: Model, motion: Motion, plate: ForcePlate) -> list[str]:
    on = np.linalg.norm(plate.force, axis=1) > STANDING
    if not on.any():
        return []
    i = model.locate(plate.link)[0]
    origin = forward_kinematics(model, motion.q[on]).transform[:, i, :3, 3]
    away = float(np.linalg.norm(plate.point[on] - origin, axis=1).mean())
    if away <= AWAY:
        return []
    where = f"the centre of pressure of plate {shown(plate.name)} is {away:.3g} m from {shown(plate.link)}"
    return [f"{where} in the mean; is it in m, in the world of the model, and of this foot?"]


def _swapped(model: Model, motion: Motion, plate: ForcePlate) -> list[str]:
    """Doubt a plate whose centre of pressure is, in the mean, much nearer to another foot."""
    on = np.linalg.norm(plate.force, axis=1) > STANDING
    own = model.locate(plate.link)[0]
    feet = [i for i, name in enumerate(model.link_names) if i != own and FOOT.search(name)]
    if not on.any() or not feet or not FOOT.search(model.link_names[own]):
        return []
    origin = forward_kinematics(model, motion.q[on]).transform[:, :, :3, 3][:, [own, *feet]]
    away = np.linalg.norm(plate.point[on][:, None] - origin, axis=2).mean(axis=0)
    k = int(np.argmin(away))
    if away[k] >= NEARER * away[0]:
        return []
    text = (
        f"the centre of pressure of plate {shown(plate.name)} is {away[0]:.3g} m from {shown(plate.link)} in the mean"
    )
    return [f"{text}, and {away[k]:.3g} m from {shown(model.link_names[feet[k - 1]])}; is that the foot on it?"]


def _lying(model: Model, motion: Motion, vertical: Array) -> list[str]:
    i = next(j for j in range(model.n) if model.mass[j] > 0)  # whose speeds the root's are
    up = forward_kinematics(model, neutral(model)[None]).transform[0, i, :3, :3].T @ vertical
    mean = (forward_kinematics(model, motion.q).transform[:, i, :3, :3] @ up).mean(axis=0)
    angle = _angle(mean, vertical)
    if angle <= LYING:
        return []
    text = f"{shown(model.link_names[i])} is turned by {angle:.0f}° from upright, in the mean"
    return [f"{text}; does the person lie, or is another axis up (turn_upright, --up)?"]


def _unexplained(model: Model, motion: Motion, tau: Array, root: Sequence[str]) -> list[str]:
    rows = [model.speed_index(name) for name in root]
    forces = [i for i in rows if model.layout.speed_kinds[i] == "prismatic"]
    weight = model.total_mass * float(np.linalg.norm(model.gravity))
    far = np.linalg.norm(tau[:, forces], axis=1) > UNEXPLAINED * weight
    if not far.mean() > OFTEN:
        return []
    t = motion.t[far]
    share = f"{100 * far.mean():.0f} % of the instants (from {t[0]:.4g} to {t[-1]:.4g} s)"
    return [f"the plates leave more than half of the weight unexplained at {share}; is a plate missing?"]


def _strong(model: Model, motion: Motion, tau: Array, root: Sequence[str]) -> list[str]:
    rows = [
        i for i, name in enumerate(model.speed_names) if name not in root and model.layout.speed_kinds[i] != "prismatic"
    ]
    mass = model.total_mass
    if not rows or not mass > 0 or not len(tau):
        return []
    most = np.abs(tau[:, rows])
    k, j = (int(x) for x in np.unravel_index(int(np.argmax(most)), most.shape))
    if most[k, j] <= STRONG * mass:
        return []
    name = shown(model.speed_names[rows[j]])
    what = f"the torque of {name} is {most[k, j]:.4g} N·m at {motion.t[k]:.4g} s, {most[k, j] / mass:.3g} N·m per kg"
    return [f"{what}; expected at most {STRONG:g}: are units, axes, filter and plates right?"]


def _angle(a: Array, b: Array) -> float:
    """Degrees."""
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.degrees(np.arccos(np.clip(a @ b / size, -1.0, 1.0)))) if size else 90.0


def _numbers(x: Array) -> str:
    return ", ".join(f"{value:.4g}" for value in x)
