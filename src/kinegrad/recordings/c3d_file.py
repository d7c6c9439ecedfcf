"""C3D files of motion-capture systems: markers and force plates, read with the package ezc3d."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, said, shown
from kinegrad.io.trc_file import METRES, Markers
from kinegrad.io.whole_file import checked_path, regular_file
from kinegrad.recordings.c3d_layout import check_layout
from kinegrad.recordings.c3d_plates import plates_in
from kinegrad.recordings.force_plates import ForcePlate

__all__ = ["read_c3d"]

Array = NDArray[np.float64]
UPRIGHT = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])  # from a world whose z is up to one whose y is


def read_c3d(
    path: str | os.PathLike[str], *, up: str = "y", plates: bool = True, threshold: float = 10.0
) -> tuple[Markers, list[ForcePlate]]:
    """Markers and force plates of a C3D file, in metres and newtons.

    Parameters
    ----------
    path : path
    up : {"y", "z"}
        Which axis of the file points upwards.  In the result it is y, as in the models of OpenSim: a file with z
        upwards is rotated by −90° about x, (x, y, z) → (x, z, −y).
    plates : bool
        Whether to read force plates, which must be of types 1 to 4.  If False, only markers are read.
    threshold : float
        N.  A smaller normal force is treated as zero, because its centre of pressure would be a quotient of noise.

    Returns
    -------
    markers : Markers
        NaN where a marker was not visible.
    plates : list of ForcePlate
        Sampled at the rate of their channels, and not assigned to links.  Forces are those on the foot: upwards on
        average.  While there is no force, the centre of pressure is that of the nearest instant with a force.

    Raises
    ------
    InputError
        If ezc3d is not installed, or cannot read the file; if a plate is of another type, or `up` cannot be.
    """
    place = checked_path(path)
    if not isinstance(up, str) or up not in ("y", "z"):
        raise InputError(f"`up` is {shown(up)}; expected 'y' or 'z'")
    if not isinstance(plates, bool):
        raise InputError(f"`plates` is {shown(plates)}; expected True or False")
    least = engine.positive("threshold", threshold)
    try:
        import ezc3d
    except ImportError:
        raise InputError(f"{place}: C3D files are read with ezc3d; install it by pip install 'kinegrad[c3d]'") from None
    try:
        if regular_file(place).st_size == 0:
            raise InputError(f"{place}: is empty; expected a C3D file")
        with place.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content[1:2] != b"\x50":
                raise InputError(f"{place}: does not begin as C3D files do; expected one")
            try:
                check_layout(content)
            except InputError as error:
                raise InputError(f"{place}: {error}") from None
        data = ezc3d.c3d(os.fspath(place))
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror or said(error)}") from None
    except Exception as error:  # whatever ezc3d raises of a damaged file
        raise InputError(f"{place}: cannot be read by ezc3d: {said(error)}") from None
    turn = UPRIGHT if up == "z" else np.eye(3)
    try:
        markers = _markers(data, turn)
        return markers, plates_in(data, _scale(data), turn, up, least) if plates else []
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"{place}: {said(error)}") from None


def _scale(data: Any) -> float:
    """m in the unit of positions."""
    units = data["parameters"]["POINT"].get("UNITS", {"value": ()})["value"]
    unit = str(units[0]).strip().lower() if len(units) else ""
    if unit not in METRES:
        raise InputError(f"POINT:UNITS is {shown(unit)}; expected mm, cm or m")
    return METRES[unit]


def _markers(data: Any, turn: Array) -> Markers:
    point = data["parameters"]["POINT"]
    rate = float(point["RATE"]["value"][0])
    if not rate > 0:
        raise InputError(f"the rate of markers is {rate:g} Hz; expected one above zero")
    x = np.asarray(data["data"]["points"], dtype=float)[:3]  # (3, markers, frames)
    names: list[str] = []
    for number in ("", *map(str, range(2, 1000))):  # LABELS, LABELS2, …: each holds 255 at most
        if f"LABELS{number}" not in point:
            break
        names += [str(name).strip() for name in point[f"LABELS{number}"]["value"]]
    if len(names) < x.shape[1]:
        raise InputError(f"POINT:LABELS has {len(names)} names for {x.shape[1]} markers; expected one for each")
    position = np.moveaxis(x, (0, 1, 2), (2, 1, 0)) * _scale(data)
    position = np.where(np.isnan(position).any(axis=-1, keepdims=True), np.nan, position @ turn.T)
    first = int(data["header"]["points"]["first_frame"])
    return Markers((first + np.arange(len(position))) / rate, tuple(names[: x.shape[1]]), position)
