"""Trajectories q, v, a and torques τ in files of three kinds, chosen by suffix.

======  =========================================================================================
.csv    a header, then one line per instant: ``t``, ``q.<joint>``, ``v.<joint>``, ``a.<joint>``
.npz    arrays ``q``, ``v``, ``a`` (N, n); ``t`` (N,) and ``joint_names`` (n,) if wanted
.nc     NetCDF: variables ``q``, ``v``, ``a`` over (time, joint), the joints' names as coordinate
======  =========================================================================================

Where coordinates are not joints (couplings, quaternions), columns of q have the names of coordinates, and those of v, a
and tau the names of speeds: in NPZ ``coordinate_names`` and ``speed_names``, in NetCDF the axes ``coordinate`` and
``speed``.

Torques are ``tau`` in the same manner.  Columns may come in any order where they have names.  ``t`` (s) is
optional: inverse dynamics does not need it.  Numbers survive a round trip to the last bit.

Numbers are in SI units.  Where a file says otherwise, they are converted, or refused if the unit is not known: in
NetCDF by the attribute ``units`` (one for all joints, one for each, or ``deg or mm``), in CSV by a unit in brackets
after a column's name, as in ``q.elbow [deg]``.  Where it says nothing, the argument `units` does: "deg" for angles in
degrees.

A file appears whole or not at all: it is written beside its place under a temporary name, then moved there.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import neutral
from kinegrad.errors import InputError, UnitsWarning, shown
from kinegrad.io.csv_file import read_csv, write_csv
from kinegrad.io.declared import check_shape
from kinegrad.io.netcdf_file import check_packages, read_netcdf, write_netcdf
from kinegrad.io.npz_file import read_npz, write_npz
from kinegrad.io.storage_file import read_storage
from kinegrad.io.units import check_units, like_degrees
from kinegrad.io.whole_file import checked_path, regular_file, replacing
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.results import Result

__all__ = [
    "Positions",
    "Trajectory",
    "file_format",
    "read_positions",
    "read_trajectory",
    "write_torques",
    "write_trajectory",
]

Array = NDArray[np.float64]
STORAGE = (".mot", ".sto")
_OTHERS = dict.fromkeys(STORAGE, "positions alone are read by kinegrad.recordings.read_motion") | dict.fromkeys(
    (".trc", ".c3d"), "markers are analysed by `kinegrad analyze --markers FILE`"
)  # what to do with files that hold something else


@dataclass(frozen=True, eq=False)
class Trajectory(Result):
    """A motion at N instants, its columns in the order of the model's joints.

    Parameters
    ----------
    t : ndarray, shape (N,), or None
        s.
    q, v, a : ndarray, shape (N, nq), (N, nv), (N, nv)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.
    joint_names : tuple of str, or None
        Those of the model; None where the file did not name its columns.
    model : Model, or None
        Whose motion it is: what :func:`read_trajectory` was given.

    Examples
    --------
    >>> Trajectory(None, *np.zeros((3, 5, 2))).q.shape
    (5, 2)
    """

    t: Array | None
    q: Array
    v: Array
    a: Array
    joint_names: tuple[str, ...] | None = None
    model: Model | None = field(default=None, repr=False, compare=False)

    def motion(self) -> Motion:
        """The same as a :class:`~kinegrad.Motion`, which has names and is defined between its times, too.

        Examples
        --------
        >>> from kinegrad.samples import two_link
        >>> t = np.array([0.0, 1.0])
        >>> still = Trajectory(t, *np.zeros((3, 2, 2)), model=two_link())
        >>> still.motion()
        Motion(two_link: 2 times from 0 to 1 s; q, v, a)
        """
        if self.model is None:
            raise InputError("the trajectory is of no model; expected what read_trajectory returns, or model=…")
        if self.t is None:
            raise InputError("the trajectory has no times, as its file has none; expected `t` for a motion")
        return Motion(self.model, self.t, self.q, self.v, self.a)


@dataclass(frozen=True, eq=False)
class Positions(Result):
    """Positions at N instants, as they were measured.

    Parameters
    ----------
    t : ndarray, shape (N,), or None
        s.
    q : ndarray, shape (N, nq)
        Coordinates, rad or m; NaN where one is missing.
    held : tuple of str
        Coordinates that the file does not have, at their neutral values.
    model : Model, or None
        Whose coordinates they are.

    Examples
    --------
    >>> Positions(None, np.zeros((5, 2))).q.shape
    (5, 2)
    """

    t: Array | None
    q: Array
    held: tuple[str, ...] = ()
    model: Model | None = field(default=None, repr=False, compare=False)


def file_format(path: str | os.PathLike[str]) -> str:
    """The suffix that says what kind of file `path` is: ".csv", ".npz" or ".nc"; an InputError for any other.

    >>> file_format("walk.CSV")
    '.csv'
    """
    place = checked_path(path)
    suffix = place.suffix.lower()
    if suffix not in _READERS:
        what = f"are no trajectories: {_OTHERS[suffix]}" if suffix in _OTHERS else "are unknown"
        raise InputError(f"{place}: files of kind {shown(suffix)} {what}; expected .csv, .npz or .nc")
    return suffix


def read_trajectory(path: str | os.PathLike[str], model: Model, *, units: str | None = None) -> Trajectory:
    """Read q, v and a of all joints of a model.

    Files that have q alone are for :func:`kinegrad.recordings.read_motion`.

    Parameters
    ----------
    path : path
        A .csv, .npz or .nc file.
    model : Model
        Whose joints the columns are; columns with names are put in its order.
    units : "deg" or "rad", optional
        Of angles and their rates where the file does not say; rad if not given.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        What in which file is wrong, and what was expected.

    Warns
    -----
    UnitsWarning
        If neither `units` nor the file says the unit of an angle beyond two full turns, as it would be in degrees.

    Examples
    --------
    >>> import tempfile
    >>> from kinegrad.samples import two_link
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "reach.csv")
    ...     write_trajectory(file, two_link(), [0, 1], *np.ones((3, 2, 2)))
    ...     read_trajectory(file, two_link()).t
    array([0., 1.])
    """
    engine.check_model(model)
    place = checked_path(path)
    arrays, names = _read(place, model, "qva", check_units(units))
    motion = {x: _matrix(x, arrays[x], model, f"{place}: ") for x in "qva"}
    if units is None:
        _warn_of_degrees(place, model, motion["q"], False)
    rows = {x: len(values) for x, values in motion.items()}
    if len(set(rows.values())) > 1:
        found = ", ".join(f"`{x}` has {count}" for x, count in rows.items())
        raise InputError(f"{place}: {found} instants; expected as many in each")
    if not rows["q"]:
        raise InputError(f"{place}: has no instants; expected at least one")
    if model.coordinates:
        _check_unit(model, motion["q"], f"{place}: ")
    t = _times(arrays.get("t"), rows["q"], f"{place}: ")
    return Trajectory(t, **motion, joint_names=None if names is None else model.joint_names, model=model)


def read_positions(
    path: str | os.PathLike[str], model: Model, *, units: str | None = None, missing: str = "refuse"
) -> Positions:
    """Read q alone, with gaps: what was measured.

    Parameters
    ----------
    path : path
        A .csv, .npz or .nc file, or a .mot or .sto file of OpenSim; its v and a, and columns of a .mot file that are no
        coordinate, are left aside.
    model : Model
        Whose coordinates the columns are.
    units : "deg" or "rad", optional
        Of angles where the file does not say; rad if not given.
    missing : "refuse" or "neutral"
        What to do where a CSV or .mot file has no column of a coordinate: an error, or its neutral value at all times.

    Returns
    -------
    Positions

    Warns
    -----
    UnitsWarning
        If neither `units` nor the file says the unit of an angle beyond two full turns, as it would be in degrees; of
        .mot and .sto files, also if they say rad, or are of OpenSim 1 or 2 and say nothing.

    Examples
    --------
    >>> import tempfile
    >>> from kinegrad.samples import two_link
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "reach.csv")
    ...     _ = file.write_text("Time (s);shoulder;elbow\\n0;0;90\\n0,5;45;\\n")
    ...     read_positions(file, two_link(), units="deg").q.round(3)
    array([[0.   , 1.571],
           [0.785,   nan]])
    """
    engine.check_model(model)
    place = checked_path(path)
    partly = engine.one_of("missing", missing, ["refuse", "neutral"]) == "neutral"
    unit = check_units(units)
    if place.suffix.lower() in STORAGE:
        return _stored_positions(place, model, partly, unit)
    arrays, _ = _read(place, model, "q", unit, partly)
    q = np.array(engine.real("q", arrays["q"]))
    check_shape(f"{place}: ", "q", q.shape, model)
    if not len(q):
        raise InputError(f"{place}: has no instants; expected at least one")
    held = tuple[str, ...]()
    if partly:
        absent = np.asarray(np.isnan(q).all(axis=0))
        held = tuple(name for name, none in zip(model.coordinate_names, absent, strict=True) if none)
        q[:, absent] = neutral(model)[absent]
    if unit is None:
        _warn_of_degrees(place, model, q, partly)
    return Positions(_times(arrays.get("t"), len(q), f"{place}: "), q, held, model)


def _stored_positions(place: Path, model: Model, partly: bool, units: str | None) -> Positions:
    """Of OpenSim's motion files, which usually say themselves whether angles are in degrees."""
    table = read_storage(place)
    usual = dict(zip(model.coordinate_names, neutral(model).tolist(), strict=True)) if partly else None
    try:
        q, held, _ = table.coordinates(model, defaults=usual, units=units)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
    return Positions(table.t, q, held, model)


def _warn_of_degrees(place: Path, model: Model, q: Array, partly: bool) -> None:
    """Of angles beyond two turns, unless the file says their unit: then they are the same whichever is assumed."""
    turning = np.array([kind == "revolute" for kind in model.layout.coordinate_kinds])
    if not like_degrees(model.coordinate_names, q, turning):
        return
    assumed = np.asarray(_read(place, model, "q", "deg", partly)[0]["q"])
    turning &= ~((assumed == q) | np.isnan(q)).all(axis=0)
    found = like_degrees(model.coordinate_names, q, turning)
    if found:
        message = f"{place}: {found}; expected units 'deg', or 'rad' if it is right"
        warnings.warn(message, UnitsWarning, stacklevel=3)


def _read(
    place: Path, model: Model, wanted: str, units: str | None, partly: bool = False
) -> tuple[dict[str, Any], Sequence[str] | None]:
    read = _READERS[file_format(place)]
    try:
        regular_file(place)
        return read(place, model, wanted, units, **({"partly": True} if partly and read is read_csv else {}))
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror or error}") from None


def write_trajectory(
    path: str | os.PathLike[str], model: Model, t: ArrayLike | None, q: ArrayLike, v: ArrayLike, a: ArrayLike
) -> None:
    """Write a trajectory for :func:`read_trajectory`.

    Parameters
    ----------
    path : path
        A .csv, .npz or .nc file; replaced if it exists.
    model : Model
    t : array_like, shape (N,), or None
        s.
    q, v, a : array_like, shape (N, n)
        Coordinates, speeds and accelerations.

    Examples
    --------
    >>> import tempfile
    >>> from kinegrad.samples import two_link
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "reach.csv")
    ...     write_trajectory(file, two_link(), None, *np.ones((3, 1, 2)))
    ...     print(file.read_text().splitlines()[0])
    q.shoulder,q.elbow,v.shoulder,v.elbow,a.shoulder,a.elbow
    """
    _write(path, model, t, {"q": q, "v": v, "a": a})


def write_torques(path: str | os.PathLike[str], model: Model, t: ArrayLike | None, tau: ArrayLike) -> None:
    """Write what the joints must supply, N·m or N.

    Parameters
    ----------
    path : path
        A .csv, .npz or .nc file; replaced if it exists.
    model : Model
    t : array_like, shape (N,), or None
        s.
    tau : array_like, shape (N, n)

    Examples
    --------
    >>> import tempfile
    >>> from kinegrad.samples import two_link
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "hold.csv")
    ...     write_torques(file, two_link(), [0], [[3.92, 0.98]])
    ...     print(file.read_text().rstrip())
    t,tau.shoulder,tau.elbow
    0.0,3.92,0.98
    """
    _write(path, model, t, {"tau": tau})


# --- what files hold ------------------------------------------------------------------------------------------------


def _matrix(name: str, values: Any, model: Model, where: str = "") -> Array:
    """`values` as finite float64 (N, n), or an InputError that starts with `where`."""
    array = _finite(name, values, where)
    check_shape(where, name, array.shape, model)
    return array


def _times(values: Any, count: int, where: str = "") -> Array | None:
    if values is None:
        return None
    t = _finite("t", values, where)
    if t.shape != (count,):
        raise InputError(f"{where}`t` has shape {t.shape}; expected ({count},), one per instant")
    return t


def _check_unit(model: Model, q: Array, where: str) -> None:
    """Quaternions of unit length."""
    try:
        engine.check_unit(model, "q", q)
    except InputError as error:
        raise InputError(f"{where}{error}") from None


def _finite(name: str, values: Any, where: str) -> Array:
    try:
        array = engine.real(name, values)
        if not np.isfinite(array).all():
            raise engine.not_finite(name, array)
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    return array


def _write(path: Any, model: Model, t: ArrayLike | None, given: Mapping[str, ArrayLike]) -> None:
    engine.check_model(model)
    place = checked_path(path)
    suffix = file_format(place)
    values = {x: _matrix(x, each, model) for x, each in given.items()}
    if model.coordinates and "q" in values:
        engine.check_unit(model, "q", values["q"])
    count = len(next(iter(values.values())))
    for x, each in values.items():
        if len(each) != count:
            raise InputError(f"`{x}` has {len(each)} instants; expected {count}, as many as `q`")
    times = _times(t, count)
    if suffix == ".nc":
        check_packages(place)
    try:
        with replacing(place) as file:
            _WRITERS[suffix](file, model, times, values)
    except OSError as error:
        raise InputError(f"{place}: cannot be written: {error.strerror or error}") from None
    except UnicodeEncodeError as error:
        found = f"a name has the character {error.object[error.start]!a}"
        raise InputError(f"{place}: cannot be written: {found}, which is no text") from None


_READERS: dict[str, Callable[..., tuple[dict[str, Any], Sequence[str] | None]]] = {
    ".csv": read_csv,
    ".npz": read_npz,
    ".nc": read_netcdf,
}
_WRITERS: dict[str, Callable[[BinaryIO, Model, Array | None, Mapping[str, Array]], None]] = {
    ".csv": write_csv,
    ".npz": write_npz,
    ".nc": write_netcdf,
}
