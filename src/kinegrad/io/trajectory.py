"""Trajectories q, v, a and torques τ in files of three kinds, chosen by suffix.

======  =========================================================================================
.csv    a header, then one line an instant: ``t``, ``q.<joint>``, ``v.<joint>``, ``a.<joint>``
.npz    arrays ``q``, ``v``, ``a`` (N, n); ``t`` (N,) and ``joint_names`` (n,) if wanted
.nc     NetCDF: variables ``q``, ``v``, ``a`` over (time, joint), the joints' names as coordinate
======  =========================================================================================

Torques are ``tau`` in the same manner.  Columns may come in any order where they have names.  ``t`` (s) is
optional: inverse dynamics does not need it.  Numbers survive a round trip to the last bit.  A file appears
whole or not at all: it is written beside its place under a temporary name, then moved there.
"""

from __future__ import annotations

import csv
import difflib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["Trajectory", "file_format", "read_trajectory", "write_torques", "write_trajectory"]

Array = NDArray[np.float64]
UNITS = {"q": ("rad", "m"), "v": ("rad s-1", "m s-1"), "a": ("rad s-2", "m s-2"), "tau": ("N m", "N")}


@dataclass(frozen=True, eq=False)
class Trajectory(Result):
    """A motion at N instants, its columns in the order of the model's joints.

    Parameters
    ----------
    t : ndarray, shape (N,), or None
        s.
    q, v, a : ndarray, shape (N, n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.
    joint_names : tuple of str, or None
        Those of the model; None where the file did not name its columns.

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


def file_format(path: str | os.PathLike[str]) -> str:
    """The suffix that says what kind of file `path` is: ".csv", ".npz" or ".nc"; an InputError for any other.

    >>> file_format("walk.CSV")
    '.csv'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _READERS:
        raise InputError(f"{path}: files of kind {suffix!r} are unknown; expected .csv, .npz or .nc")
    return suffix


def read_trajectory(path: str | os.PathLike[str], model: Model) -> Trajectory:
    """Read q, v and a of all joints of a model.

    Parameters
    ----------
    path : path
        A .csv, .npz or .nc file.
    model : Model
        Whose joints the columns are; columns with names are put in its order.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        What in which file is wrong, and what was expected.

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
    read = _READERS[file_format(path)]
    try:
        arrays, names = read(Path(path), model)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    order = None if names is None else _order(path, names, model)
    motion = {x: _matrix(x, arrays[x], model, f"{path}: ") for x in "qva"}
    rows = {x: len(values) for x, values in motion.items()}
    if len(set(rows.values())) > 1:
        found = ", ".join(f"`{x}` has {count}" for x, count in rows.items())
        raise InputError(f"{path}: {found} instants; expected as many in each")
    if not rows["q"]:
        raise InputError(f"{path}: has no instants; expected at least one")
    if order is not None:
        motion = {x: values[:, order] for x, values in motion.items()}
    t = _times(arrays.get("t"), rows["q"], f"{path}: ")
    return Trajectory(t, **motion, joint_names=None if names is None else model.joint_names)


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


# --- reading: each returns arrays by name, and the joints' names if the file has them -----------------------

_Found = tuple[dict[str, Any], Sequence[str] | None]


def _read_csv(path: Path, model: Model) -> _Found:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            numbered = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: is not a CSV text: {error}") from None
    if not numbered:
        raise InputError(f"{path}: is empty; expected a header and one line an instant")
    header = [name.strip() for name in numbered[0][1]]
    wanted = [f"{x}.{joint}" for x in "qva" for joint in model.joint_names]
    _check_names(path, "column", header, wanted, optional=["t"])
    values = np.empty((len(numbered) - 1, len(header)))
    for k, (line, row) in enumerate(numbered[1:]):
        if len(row) != len(header):
            count = f"has {len(row)} values; expected {len(header)}, one a column"
            raise InputError(f"{path}, line {line}: {count}")
        try:
            values[k] = row
        except ValueError:
            values[k] = [_number(text) for text in row]
        for c in np.flatnonzero(~np.isfinite(values[k]))[:1]:
            found = f"column {header[c]!r}: is {row[c]!r}"
            raise InputError(f"{path}, line {line}, {found}; expected a finite number")
    columns = [values[:, header.index(name)] for name in wanted]
    q, v, a = np.reshape(columns, (3, model.n, len(values))).swapaxes(1, 2)
    arrays: dict[str, Any] = {"q": q, "v": v, "a": a}
    if "t" in header:
        arrays["t"] = values[:, header.index("t")]
    return arrays, model.joint_names


def _read_npz(path: Path, model: Model) -> _Found:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = {} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except OSError:
        raise
    except Exception as error:  # whatever a broken archive makes zipfile, zlib or NumPy raise
        raise InputError(f"{path}: is not a readable NPZ archive of numbers: {error}") from None
    _check_names(path, "array", list(arrays), ["q", "v", "a"], optional=["t", "joint_names"])
    names = arrays.pop("joint_names", None)
    return arrays, None if names is None else _texts(path, names)


def _read_netcdf(path: Path, model: Model) -> _Found:
    xarray = _xarray(path)
    with path.open("rb"):  # the system's own word for a file that is not there
        pass
    try:
        with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as file:
            data = file.load()
    except Exception as error:  # whatever a broken file makes HDF5 or xarray raise
        raise InputError(f"{path}: is not a readable NetCDF file: {error}") from None
    given = [str(name) for name in data.variables if name in data.data_vars or name == "joint"]
    _check_names(path, "variable", given, ["q", "v", "a", "joint"], others=True)
    arrays: dict[str, Any] = {}
    for x in "qva":
        if set(data[x].dims) != {"time", "joint"}:
            raise InputError(f"{path}: `{x}` is over {data[x].dims}; expected ('time', 'joint')")
        arrays[x] = data[x].transpose("time", "joint").values
    if "time" in data.coords:
        units = data["time"].attrs.get("units", "s")
        if units not in ("s", "second", "seconds"):
            raise InputError(f"{path}: `time` is in {units!r}; expected 's'")
        arrays["t"] = data["time"].values
    return arrays, _texts(path, data["joint"].values)


_READERS: dict[str, Callable[[Path, Model], _Found]] = {
    ".csv": _read_csv,
    ".npz": _read_npz,
    ".nc": _read_netcdf,
}


def _check_names(
    path: Any,
    what: str,
    found: Sequence[str],
    wanted: Sequence[str],
    *,
    optional: Sequence[str] = (),
    others: bool = False,
) -> None:
    """An InputError at the first name that is there twice, unknown (unless `others` may be), or missing."""
    expected, seen = [*wanted, *optional], set[str]()
    for name in found:
        if name in seen:
            raise InputError(f"{path}: {what} {name!r} is there twice; expected once")
        if name not in expected and not others:
            close = difflib.get_close_matches(name, expected, n=3)
            hint = f"did you mean {_listed(close, ' or ')}?" if close else f"expected {_listed(expected)}"
            raise InputError(f"{path}: {what} {name!r} is unknown; {hint}")
        seen.add(name)
    for name in wanted:
        if name not in seen:
            close = difflib.get_close_matches(name, found, n=3) or list(found)
            hint = f"expected {_listed(wanted)}; found {_listed(close) or 'none'}"
            raise InputError(f"{path}: {what} {name!r} is missing; {hint}")


def _listed(names: Sequence[str], separator: str = ", ") -> str:
    return separator.join([*map(repr, names[:6]), *(["…"] if len(names) > 6 else [])])


def _order(path: Any, names: Sequence[str], model: Model) -> NDArray[np.int64] | None:
    """Where each joint of the model is in `names`; None if they are in its order."""
    _check_names(path, "joint", names, model.joint_names)
    place = {name: k for k, name in enumerate(names)}
    order = np.array([place[name] for name in model.joint_names])
    return None if np.array_equal(order, np.arange(model.n)) else order


def _texts(path: Any, names: NDArray[Any]) -> list[str]:
    values = names.tolist()
    if names.ndim == 1 and names.dtype.kind == "S":
        values = [name.decode("utf-8", "replace") for name in values]
    if names.ndim != 1 or not all(isinstance(name, str) for name in values):
        found = f"{names.dtype} of shape {names.shape}"
        raise InputError(f"{path}: joint names are {found}; expected a row of texts")
    return list(values)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _matrix(name: str, values: Any, model: Model, where: str = "") -> Array:
    """`values` as finite float64 (N, n), or an InputError that starts with `where`."""
    array = _finite(name, values, where)
    if array.ndim != 2 or array.shape[1] != model.n:
        expected = f"(N, {model.n}): N instants of the {model.n} joints of model {model.name!r}"
        raise InputError(f"{where}`{name}` has shape {array.shape}; expected {expected}")
    return array


def _times(values: Any, count: int, where: str = "") -> Array | None:
    if values is None:
        return None
    t = _finite("t", values, where)
    if t.shape != (count,):
        raise InputError(f"{where}`t` has shape {t.shape}; expected ({count},), one an instant")
    return t


def _finite(name: str, values: Any, where: str) -> Array:
    try:
        array = engine.real(name, values)
        if not np.isfinite(array).all():
            raise engine.not_finite(name, array)
    except InputError as error:
        raise InputError(f"{where}{error}") from None
    return array


# --- writing ------------------------------------------------------------------------------------------------


def _write(path: Any, model: Model, t: ArrayLike | None, given: Mapping[str, ArrayLike]) -> None:
    suffix = file_format(path)
    values = {x: _matrix(x, each, model) for x, each in given.items()}
    count = len(next(iter(values.values())))
    for x, each in values.items():
        if len(each) != count:
            raise InputError(f"`{x}` has {len(each)} instants; expected {count}, as many as `q`")
    times = _times(t, count)
    if suffix == ".nc":
        _xarray(Path(path))
    try:
        with _replacing(Path(path)) as temporary:
            _WRITERS[suffix](temporary, model, times, values)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place at the end, or is gone if anything went wrong."""
    path = path.resolve()
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_csv(path: Path, model: Model, t: Array | None, values: Mapping[str, Array]) -> None:
    header = [f"{x}.{joint}" for x in values for joint in model.joint_names]
    table = np.hstack([*values.values()])
    if t is not None:
        header, table = ["t", *header], np.column_stack([t, table])
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(row.tolist() for row in table)


def _write_npz(path: Path, model: Model, t: Array | None, values: Mapping[str, Array]) -> None:
    arrays: dict[str, Any] = {**values, "joint_names": np.array(model.joint_names)}
    if t is not None:
        arrays["t"] = t
    with path.open("xb") as file:
        np.savez(file, **arrays)


def _write_netcdf(path: Path, model: Model, t: Array | None, values: Mapping[str, Array]) -> None:
    kinds = [joint.kind for joint in model.joints]
    coordinates: dict[str, Any] = {"joint": list(model.joint_names), "kind": ("joint", kinds)}
    if t is not None:
        coordinates["time"] = ("time", t, {"units": "s"})
    variables = {x: (("time", "joint"), each, {"units": _units(x, kinds)}) for x, each in values.items()}
    dataset = _xarray(path).Dataset(variables, coordinates, {"model": model.name})
    dataset.to_netcdf(path, engine="h5netcdf")


_WRITERS: dict[str, Callable[[Path, Model, Array | None, Mapping[str, Array]], None]] = {
    ".csv": _write_csv,
    ".npz": _write_npz,
    ".nc": _write_netcdf,
}


def _units(x: str, kinds: Iterable[str]) -> str:
    """One unit, or both where some joints turn and some slide (the coordinate ``kind`` says which)."""
    turning, sliding = UNITS[x]
    found = {sliding if kind == "prismatic" else turning for kind in kinds}
    return " or ".join(unit for unit in UNITS[x] if unit in found)


def _xarray(path: Path) -> Any:
    """xarray, if what it needs for NetCDF is installed too."""
    try:
        _, _, xarray = map(import_module, ("h5py", "h5netcdf", "xarray"))
    except ImportError as error:
        hint = "install it with `pip install h5netcdf h5py xarray`, or use .npz or .csv"
        raise InputError(f"{path}: NetCDF needs the package {error.name!r}; {hint}") from None
    return xarray
