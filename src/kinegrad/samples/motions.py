"""Motions to try things with: made up, not measured."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.motion import Motion

__all__ = ["sample_motion"]

STRIDES = 2 * pi  # rad/s: one a second
SPEED = 1.3  # m/s
GAIT = {  # joint: middle, swing, phase in degrees, with the signs of human43
    "right_hip.x": (-10, 25, 0), "left_hip.x": (-10, 25, 180), "right_knee": (32, 28, 100), "left_knee": (32, 28, 280),
    "right_ankle.x": (0, 10, 60), "left_ankle.x": (0, 10, 240), "right_shoulder.x": (-5, 20, 180),
    "left_shoulder.x": (-5, 20, 0), "right_elbow.x": (-25, 10, 180), "left_elbow.x": (-25, 10, 0),
    "lumbar": (0, 3, 90), "pelvis.rz": (0, 4, 0), "neck.z": (0, 3, 180),
}  # fmt: skip


def sample_motion(model: Model, t: ArrayLike | None = None) -> Motion:
    """A smooth motion within the limits of a model: of human43 a kind of walk, of others a swing of every joint.

    It is made up, to have something to compute with; feet do not care for the ground.

    Parameters
    ----------
    model : Model
        Whose joints are its coordinates.
    t : array_like, shape (m,), optional
        s; two seconds at 100 Hz if not given.

    Returns
    -------
    Motion

    Examples
    --------
    >>> from kinegrad.samples import human43
    >>> sample_motion(human43())
    Motion(human43: 201 times from 0 to 2 s; q, v, a)
    """
    if not isinstance(model, Model):
        raise InputError(f"`model` is a {type(model).__name__}; expected a Model")
    if model.coordinates:
        found = f"model {shown(model.name)} has coordinates that are not its joints"
        raise InputError(f"{found}; expected a model whose joints are its coordinates")
    times = np.arange(201) / 100 if t is None else np.asarray(t, dtype=float)
    lower, upper = np.clip(model.position_limits, -0.5, 0.5).T
    walks = model.name == "human43" and set(GAIT) <= set(model.joint_names)
    rows: list[Any] = []
    for i, name in enumerate(model.joint_names):
        middle, swing, phase = (lower[i] + upper[i]) / 2, 0.3 * (upper[i] - lower[i]), 0.7 * i
        if walks:
            middle, swing, phase = np.radians(GAIT.get(name, (0, 0, 0)))
        angle = STRIDES * times + phase
        x = swing * np.sin(angle)
        rows.append((middle + x, STRIDES * swing * np.cos(angle), -(STRIDES**2) * x))
    q, v, a = np.transpose(rows, (1, 2, 0))
    if walks:
        q[:, model.joint_index("pelvis.ty")] += SPEED * times
        v[:, model.joint_index("pelvis.ty")] += SPEED
    return Motion(model, times, q, v, a)
