"""C3D files of motion-capture systems: markers and force plates, read with the package ezc3d."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, said, shown
from kinegrad.io.trc_file import METRES, Markers
from kinegrad.io.whole_file import checked_path, regular_file
from kinegrad.recordings.force_plates import ForcePlate

__all__ = ["read_c3d"]

Array = NDArray[np.float64]
UPRIGHT = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # from a world whose z is up to one whose y is


def read_c3d(path: str | os.PathLike[str], *, up: str = "y") -> tuple[Markers, list[ForcePlate]]:
    """Markers and force plates of a C3D file, in metres and newtons.

    Parameters
    ----------
    path : path
    up : {"y", "z"}
        Which axis of the file points upwards.  OpenSim's models stand along y: what is along z is turned by −90° about
        x, (x, y, z) → (x, z, −y).

    Returns
    -------
    markers : Markers
        NaN where one was not seen.
    plates : list of ForcePlate
        Without links; forces are those on the foot: upwards on average.

    Raises
    ------
    InputError
        If ezc3d is not installed, or cannot read the file.
    """
    place = checked_path(path)
    if not isinstance(up, str) or up not in ("y", "z"):
        raise InputError(f"`up` is {shown(up)}; expected 'y' or 'z'")
    try:
        import ezc3d
    except ImportError:
        raise InputError(f"{place}: C3D files are read with ezc3d; install it by pip install 'kinegrad[c3d]'") from None
    try:
        if regular_file(place).st_size == 0:
            raise InputError(f"{place}: is empty; expected a C3D file")
        with place.open("rb") as file:
            if file.read(2)[1:] != b"\x50":
                raise InputError(f"{place}: does not begin as C3D files do; expected one")
        data = ezc3d.c3d(os.fspath(place), extract_forceplat_data=True)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror or said(error)}") from None
    except Exception as error:  # whatever ezc3d raises of a damaged file
        raise InputError(f"{place}: cannot be read by ezc3d: {said(error)}") from None
    turn = UPRIGHT if up == "z" else np.eye(3)
    try:
        return _markers(data, turn), _plates(data, turn)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{place}: {said(error)}") from None


def _markers(data: Any, turn: Array) -> Markers:
    point = data["parameters"]["POINT"]
    rate = float(point["RATE"]["value"][0])
    unit = str(point["UNITS"]["value"][0]).strip().lower() if len(point["UNITS"]["value"]) else "mm"
    if unit not in METRES:
        raise InputError(f"units of markers are {shown(unit)}; expected mm, cm or m")
    if not rate > 0:
        raise InputError(f"the rate of markers is {rate:g} Hz; expected one above zero")
    x = np.asarray(data["data"]["points"], dtype=float)[:3]  # (3, markers, frames)
    names = [str(name).strip() for name in point["LABELS"]["value"]][: x.shape[1]]
    position = np.moveaxis(x, (0, 1, 2), (2, 1, 0)) * METRES[unit]
    position = np.where(np.isnan(position).any(axis=-1, keepdims=True), np.nan, position @ turn.T)
    first = int(data["header"]["points"]["first_frame"])
    return Markers((first + np.arange(len(position))) / rate, tuple(names), position)


def _plates(data: Any, turn: Array) -> list[ForcePlate]:
    found = []
    analog = data["parameters"].get("ANALOG", {})
    for k, plate in enumerate(data["data"].get("platform", [])):
        force, moment = (np.asarray(plate[what], dtype=float).T for what in ("force", "moment"))
        place = str(plate.get("unit_position", "mm")).lower()
        by_moment = 1e-3 if "mm" in str(plate.get("unit_moment", "Nmm")).lower() else 1.0
        point = np.asarray(plate["center_of_pressure"], dtype=float).T * METRES.get(place, 1e-3)
        free = np.asarray(plate["Tz"], dtype=float).T * by_moment
        if free.shape != force.shape:
            free = np.zeros_like(moment)
        force, point, free = (x @ turn.T for x in (force, point, free))
        if np.nansum(force[:, 1]) < 0:  # on the plate: turned into that on the foot
            force, free = -force, -free
        rate = float(analog["RATE"]["value"][0])
        point = np.where(np.isfinite(point), point, 0.0)
        t = int(data["header"]["points"]["first_frame"]) / float(data["parameters"]["POINT"]["RATE"]["value"][0])
        found.append(ForcePlate(t + np.arange(len(force)) / rate, force, point, free, name=f"plate{k + 1}"))
    return found
