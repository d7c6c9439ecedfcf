"""Synthetic motions, for trying functions and commands."""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.configuration import coordinate_ranges
from kinegrad.errors import InputError
from kinegrad.model import Model
from kinegrad.motion import Motion

__all__ = ["sample_motion"]

Array = NDArray[np.float64]

STRIDES = 2 * pi  # rad/s: one a second
SPEED = 1.3  # m/s
DIAGONAL = np.ones(3) / np.sqrt(3)
GAIT = {  # joint: middle, swing, phase in degrees, with the signs of human43
    "right_hip.x": (-10, 25, 0), "left_hip.x": (-10, 25, 180), "right_knee": (32, 28, 100), "left_knee": (32, 28, 280),
    "right_ankle.x": (0, 10, 60), "left_ankle.x": (0, 10, 240), "right_shoulder.x": (-5, 20, 180),
    "left_shoulder.x": (-5, 20, 0), "right_elbow.x": (-25, 10, 180), "left_elbow.x": (-25, 10, 0),
    "lumbar": (0, 3, 90), "pelvis.rz": (0, 4, 0), "neck.z": (0, 3, 180),
}  # fmt: skip


def sample_motion(model: Model, t: ArrayLike | None = None) -> Motion:
    """A smooth synthetic motion within the limits of a model: a kind of walk of human43, a swing of every other model.

    It is meant for trying functions and commands.  Contact with the ground is not considered.

    Parameters
    ----------
    model : Model
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
    times = np.arange(201) / 100 if t is None else np.asarray(t, dtype=float)
    walks = model.name == "human43" and set(GAIT) <= set(model.joint_names)
    lower, upper = coordinate_ranges(model)
    near = np.clip(0.0, lower, upper)  # of each range the part that is nearest to zero
    lower, upper = np.maximum(lower, near - 0.5), np.minimum(upper, near + 0.5)
    q, v, a = (np.zeros((*times.shape, size)) for size in (model.nq, model.nv, model.nv))
    layout = model.layout
    for k, name in enumerate(model.coordinate_names):
        if layout.coordinate_kinds[k] == "quaternion":
            continue
        middle, swing, phase = (lower[k] + upper[k]) / 2, 0.3 * (upper[k] - lower[k]), 0.7 * k
        if walks:
            middle, swing, phase = np.radians(GAIT.get(name, (0, 0, 0)))
        i = model.speed_index(name)
        q[..., k], v[..., i], a[..., i] = _swing(times, swing, phase)
        q[..., k] += middle
    for _, k, i in layout.balls:  # turns about an axis that stays
        angle, speed, acceleration = _swing(times, 0.3, 0.7 * k)
        q[..., k], q[..., k + 1 : k + 4] = np.cos(angle / 2), np.sin(angle / 2)[..., None] * DIAGONAL
        v[..., i : i + 3], a[..., i : i + 3] = speed[..., None] * DIAGONAL, acceleration[..., None] * DIAGONAL
    if walks:
        q[..., model.coordinate_index("pelvis.ty")] += SPEED * times
        v[..., model.speed_index("pelvis.ty")] += SPEED
    return Motion(model, times, q, v, a)


def _swing(times: Array, swing: float, phase: float) -> tuple[Array, Array, Array]:
    angle = STRIDES * times + phase
    return swing * np.sin(angle), STRIDES * swing * np.cos(angle), -(STRIDES**2) * swing * np.sin(angle)
