"""Force plates of C3D files: from channels, corners and origins to force, centre of pressure and free moment.

The corners c₁ … c₄ of a plate lie in the quadrants ++, −+, −−, +− of its own frame, whose axes are therefore

    x ∥ c₁ − c₂,    z ∥ x × (c₁ − c₄),    y = z × x,    R = (x y z),

with its middle c at their mean.  What is measured in that frame depends on the type of the plate:

====  ======================================================================  ========================================
type  channels                                                                force F, moment M about the middle c
====  ======================================================================  ========================================
1     F, the point's x and y, and the free moment                             as they are
2     F and the moment M₀ about the origin, which c is at o from              M = M₀ − o × F
3     eight sensors at (±a, ±b, 0), o = (0, 0, o_z):                          F = Σ fᵢ, M = Σ rᵢ × fᵢ − o × F
      f_x of 1+2, 3+4; f_y of 1+4, 2+3; f_z of 1, 2, 3, 4
4     as type 2, after multiplication by the plate's 6 × 6 matrix             M = M₀ − o × F
====  ======================================================================  ========================================

A force at the point r of the surface, and a free moment T across it, have the moment M = r × F + T e_z, so that

    r = (−M_y, M_x, 0) / F_z,    T = M_z − (r × F)_z.

All is then turned by R, and by −1 where the file has the forces on the plate instead of those on the foot.  Sensors are
below the surface and z points downwards, so o_z < 0; files that have it the other way round mean −o.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.io.model_file import LeftOutWarning
from kinegrad.recordings.force_plates import ForcePlate

__all__ = ["plates_in"]

Array = NDArray[np.float64]
CHANNELS = {1: 6, 2: 6, 3: 8, 4: 6}
OTHERS = {5: "Kistler with a matrix of 6 × 8", 6: "with a matrix of 12 × 12", 7: "with a matrix of 8 × 6",
          11: "Kistler treadmill", 12: "Kistler treadmill", 21: "AMTI stairs"}  # fmt: skip
LENGTHS = {"mm": 1e-3, "cm": 1e-2, "m": 1.0}
FORCES = {"n": 1.0, "kn": 1e3}


def plates_in(data: Any, scale: float, turn: Array, up: str, threshold: float) -> list[ForcePlate]:
    """The plates of what ezc3d has read.

    Parameters
    ----------
    data : ezc3d.c3d
    scale : float
        m in the unit of positions.
    turn : array, shape (3, 3)
        From the world of the file to that of the result, whose y is up.
    up : str
        The axis of the file that `turn` makes y.
    threshold : float
        N; below, a plate bears nothing.
    """
    group = data["parameters"].get("FORCE_PLATFORM", {})
    count = int(next(iter(_values(group, "USED")), 0))
    if count == 0:
        return []
    points = data["header"]["points"]
    frames = int(points["last_frame"]) - int(points["first_frame"]) + 1
    analogs = np.asarray(data["data"]["analogs"], dtype=float)[0]  # (channels, samples)
    rate = float(data["parameters"]["POINT"]["RATE"]["value"][0]) * analogs.shape[1] / max(frames, 1)
    if not analogs.size or not rate > 0:
        raise InputError(f"has {count} force plates, but no samples of their channels; expected them, or plates=False")
    t = int(points["first_frame"]) * analogs.shape[1] / max(frames, 1) / rate + np.arange(analogs.shape[1]) / rate
    found, across = [], []
    for k in range(count):
        frame, middle = _frame(group, k)
        force, point, free = _measured(data, group, k, analogs, scale, threshold)
        normal = turn @ frame[:, 2]
        across.append(abs(float(normal[1])))
        force = force @ (turn @ frame).T
        point = (point @ frame.T + middle * scale) @ turn.T
        torque = free[:, None] * normal
        if force[:, 1].sum() < 0:  # on the plate: turned into that on the foot
            force, torque = -force, -torque
        found.append(ForcePlate(t, force, point, torque, name=f"plate{k + 1}"))
    if max(across) < 0.5:
        other = "z" if up == "y" else "y"
        raise InputError(f"its force plates are not across {up}; expected up={other!r}, or plates=False")
    return found


def _values(group: Any, name: str) -> Any:
    return group[name]["value"] if name in group else ()


def _table(group: Any, name: str, rows: tuple[int, ...], k: int) -> Array:
    """What a parameter says of plate k."""
    x = np.asarray(_values(group, name), dtype=float)
    if x.ndim != len(rows) + 1 or x.shape[-1] <= k or any(a < b for a, b in zip(x.shape, rows, strict=False)):
        size = " × ".join(map(str, rows))
        raise InputError(f"FORCE_PLATFORM:{name} has shape {x.shape}; expected {size} numbers of plate {k + 1}")
    part: tuple[slice | int, ...] = (*(slice(n) for n in rows), k)
    x = x[part]
    if not np.isfinite(x).all():
        raise InputError(f"FORCE_PLATFORM:{name} of plate {k + 1} is not finite; expected finite numbers")
    return x


def _frame(group: Any, k: int) -> tuple[Array, Array]:
    """R, and the middle in units of positions."""
    corners = _table(group, "CORNERS", (3, 4), k).T
    x, y = corners[0] - corners[1], corners[0] - corners[3]
    z = np.cross(x, y)
    if not np.linalg.norm(z) > 1e-6 * np.linalg.norm(x) * np.linalg.norm(y):
        raise InputError(f"FORCE_PLATFORM:CORNERS of plate {k + 1} have no area; expected the corners of a rectangle")
    y = np.cross(z, x)
    return np.stack([axis / np.linalg.norm(axis) for axis in (x, y, z)], axis=1), corners.mean(axis=0)


def _measured(
    data: Any, group: Any, k: int, analogs: Array, scale: float, threshold: float
) -> tuple[Array, Array, Array]:
    """Force, point and free moment in the frame of plate k, (samples, 3), (samples, 3), (samples,), in N and m."""
    kinds = _values(group, "TYPE")
    kind = int(kinds[k]) if k < len(kinds) else 0
    if kind not in CHANNELS:
        what = f" ({OTHERS[kind]})" if kind in OTHERS else ""
        raise InputError(f"plate {k + 1} is of type {kind}{what}; expected 1, 2, 3 or 4, or plates=False")
    at = _table(group, "CHANNEL", (CHANNELS[kind],), k).astype(int) - 1
    if (at < 0).any() or (at >= len(analogs)).any():
        found = f"plate {k + 1} is on channel {int(at[(at < 0) | (at >= len(analogs))][0]) + 1}"
        raise InputError(f"{found}; expected one of the {len(analogs)} of the file")
    channels = analogs[at]
    if not np.isfinite(channels).all():
        raise InputError(f"the channels of plate {k + 1} are not finite; expected finite numbers")
    origin = _table(group, "ORIGIN", (3,), k) * scale
    if origin[2] > 0:
        origin = -origin
    if kind == 4:
        channels = _table(group, "CAL_MATRIX", (6, 6), k) @ channels
        factor = np.array([1.0] * 3 + [scale] * 3)  # of what the matrix gives: N, and N times the unit of positions
    else:
        factor = np.array([_unit(data, i, part, scale) for i, part in zip(at, _parts(kind), strict=True)])
    values = (channels * factor[:, None]).T
    if kind == 3:
        force, moment = _of_sensors(values, abs(origin[0]), abs(origin[1]))
        moment = moment - np.cross([0, 0, origin[2]], force)
        if np.any(_values(group, "FPCOPPOLY")):
            warnings.warn(f"FPCOPPOLY of plate {k + 1} does not correct its points", LeftOutWarning, stacklevel=5)
    elif kind == 1:
        force, point = values[:, :3], np.stack([values[:, 3], values[:, 4], 0 * values[:, 3]], axis=-1)
        return _above(force, point, values[:, 5], threshold)
    else:
        force = values[:, :3]
        moment = values[:, 3:] - np.cross(origin, force)
    down = np.where(force[:, 2] == 0, 1.0, force[:, 2])
    point = np.stack([-moment[:, 1] / down, moment[:, 0] / down, np.zeros(len(down))], axis=-1)
    return _above(force, point, moment[:, 2] - np.cross(point, force)[:, 2], threshold)


def _of_sensors(f: Array, a: float, b: float) -> tuple[Array, Array]:
    """Force, and moment about the middle of the sensors, of f_x12, f_x34, f_y14, f_y23, f_z1, …, f_z4."""
    force = np.stack([f[:, 0] + f[:, 1], f[:, 2] + f[:, 3], f[:, 4:].sum(axis=1)], axis=-1)
    along_x, along_y = f[:, 4:] @ [a, -a, -a, a], f[:, 4:] @ [b, b, -b, -b]
    about_z = a * (f[:, 2] - f[:, 3]) - b * (f[:, 0] - f[:, 1])
    return force, np.stack([along_y, -along_x, about_z], axis=-1)


def _above(force: Array, point: Array, free: Array, threshold: float) -> tuple[Array, Array, Array]:
    """Nothing where hardly anything is borne, since the point is a quotient of noise there: it stays the nearest one
    that was found, so that curves through points have no jump."""
    borne = np.flatnonzero(np.abs(force[:, 2]) >= max(threshold, np.finfo(float).tiny))
    if not len(borne):
        return 0 * force, 0 * point, 0 * free
    samples = np.arange(len(force))
    after = np.clip(np.searchsorted(borne, samples), 0, len(borne) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(borne[before] - samples) < np.abs(borne[after] - samples)
    nearest = borne[np.where(nearer, before, after)]
    on = (nearest == samples)[:, None]
    return np.where(on, force, 0.0), point[nearest], np.where(on[:, 0], free, 0.0)


def _parts(kind: int) -> tuple[str, ...]:
    """What the channels of a plate are: forces, lengths, moments."""
    return {1: ("force",) * 3 + ("length",) * 2 + ("moment",), 3: ("force",) * 8}.get(
        kind, ("force",) * 3 + ("moment",) * 3
    )


def _unit(data: Any, channel: int, part: str, scale: float) -> float:
    """The factor to N, m or N·m of a channel, as the file says it; without a word, from N and the unit of positions."""
    usual = {"force": 1.0, "length": scale, "moment": scale}[part]
    units = _channel_texts(data, "UNITS")
    said = units[channel].strip() if channel < len(units) else ""
    word = said.lower()
    for sign in (" ", ".", "·", "*", "-", "_", "\ufffd"):
        word = word.replace(sign, "")
    if not word:
        return usual
    if part == "force" and word in FORCES:
        return FORCES[word]
    if part == "length" and word in LENGTHS:
        return LENGTHS[word]
    if part == "moment":
        for force, factor in FORCES.items():
            if word.startswith(force) and word[len(force) :] in LENGTHS:
                return factor * LENGTHS[word[len(force) :]]
    labels = _channel_texts(data, "LABELS")
    name = shown(labels[channel].strip()) if channel < len(labels) else str(channel + 1)
    expected = {"force": "N or kN", "length": "mm, cm or m", "moment": "N·mm or N·m"}[part]
    raise InputError(f"channel {name} of a force plate is in {shown(said)}; expected {expected}")


def _channel_texts(data: Any, name: str) -> list[str]:
    """ANALOG:LABELS, LABELS2, …: each holds 255 at most."""
    group = data["parameters"].get("ANALOG", {})
    found: list[str] = []
    for number in ("", *map(str, range(2, 100))):
        if name + number not in group:
            break
        found += [str(text) for text in _values(group, name + number)]
    return found
