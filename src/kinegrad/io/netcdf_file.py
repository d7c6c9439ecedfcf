"""Trajectories as NetCDF 4: variables over (time, joint) with units, also of files that others have written.

Files are put together in memory (`packed`): HDF5, when the disk is full, leaves the process with a file that it cannot
close, and ends it.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, said, shown
from kinegrad.io.declared import check_kind, check_size
from kinegrad.io.hdf5_heap import check_heaps
from kinegrad.io.interrupts import interrupts_wait
from kinegrad.io.names import PositionsAloneError, check_names, joint_order, joint_texts
from kinegrad.io.units import default_factor, joint_factor, time_factor
from kinegrad.io.whole_file import checked_path, replacing
from kinegrad.model import Model
from kinegrad.model.units import joint_units, kind_units

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["check_packages", "packed", "read_netcdf", "write_dataset", "write_netcdf"]

Array = NDArray[np.float64]
Variable = tuple[tuple[str, ...], NDArray[Any], Mapping[str, Any]]  # dimensions, numbers or texts, attributes
PACKAGES = ("h5py", "h5netcdf", "xarray")
TEXTS = {"decode_vlen_strings": True}
ALONE = b"This is a netCDF dimension but not a netCDF variable"  # by the NetCDF 4 format specification


@interrupts_wait()
def read_netcdf(
    path: Path, model: Model, wanted: str = "qva", units: str | None = None
) -> tuple[dict[str, Any], Sequence[str]]:
    """q, v, a and perhaps t in SI units, in the model's order; and the joints' names.

    Of `wanted` "q" alone, v and a may be missing.  `units` are of variables that have no such attribute.
    """
    packages = check_packages(path)
    with path.open("rb") as file:  # the system's own word for a file that cannot be read
        if file.read(3) == b"CDF":
            raise InputError(f"{path}: is a NetCDF 3 file; expected NetCDF 4, as xarray writes with engine='h5netcdf'")
    try:
        return _read(path, model, wanted, units, *packages)
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path}: its variables take more memory than there is") from None
    except Exception as error:  # whatever a broken file makes HDF5 or xarray raise
        raise InputError(f"{path}: is not a readable NetCDF file: {said(error)}") from None


@interrupts_wait()
def write_netcdf(file: BinaryIO, model: Model, t: Array | None, values: Mapping[str, Array]) -> None:
    """Write variables with their units; the coordinate ``kind`` says which joints turn and which slide."""
    axes = {what: (names, kinds) for what, names, kinds in map(model.layout.columns, values)}
    rows = len(next(iter(values.values())))
    sizes = {"time": rows, **{what: len(names) for what, (names, _) in axes.items()}}
    variables: dict[str, Variable] = {}
    for what, (names, kinds) in axes.items():
        variables |= {what: ((what,), np.array(names), {}), _kind(what): ((what,), np.array(kinds), {})}
    if t is not None:
        variables["time"] = ("time",), t, {"units": "s"}
    for x, each in values.items():
        what, _, kinds = model.layout.columns(x)
        variables[x] = ("time", what), each, {"units": joint_units(x, kinds), "coordinates": _kind(what)}
    file.write(packed(sizes, variables, {"model": model.name}))


@interrupts_wait()
def packed(sizes: Mapping[str, int], variables: Mapping[str, Variable], attributes: Mapping[str, Any]) -> memoryview:
    """Return the bytes of a NetCDF 4 file, which HDF5 never sees on a disk.

    Parameters
    ----------
    sizes : mapping of str to int
        Of dimensions.
    variables : mapping of str to (dimensions, array, attributes)
        Arrays of numbers or texts.
    attributes : mapping of str to value
        Of the file.
    """
    h5py, h5netcdf, _ = check_packages("")
    whole = io.BytesIO()
    with h5netcdf.File(whole, "w") as data:
        data.dimensions = dict(sizes)
        data.attrs.update({name: _attribute(x) for name, x in attributes.items()})
        for name, (dimensions, array, own) in variables.items():
            if array.dtype.kind in "UO":
                variable = data.create_variable(name, dimensions, dtype=h5py.string_dtype())
                variable[...] = array.astype(object)
            else:
                plain = array.astype(np.int8) if array.dtype == bool else array
                variable = data.create_variable(name, dimensions, data=plain)
            for key, x in own.items():
                variable.attrs[key] = _attribute(x)
    return whole.getbuffer()


def _attribute(value: Any) -> Any:
    """A text, a number or an array of these; what NetCDF has no type for as text."""
    if isinstance(value, bool | np.bool_):
        return np.int8(value)
    array = np.asarray(value)
    return value if isinstance(value, str) or array.dtype.kind in "iuf" else str(value)


def write_dataset(path: str | os.PathLike[str], dataset: Dataset) -> None:
    """Write an xarray.Dataset as a NetCDF 4 file, whole or not at all.

    Unlike ``dataset.to_netcdf(path)``, it cannot end the process if the disk is full.

    Parameters
    ----------
    path : str or pathlib.Path
        Of the file; one that is there is replaced.
    dataset : xarray.Dataset
        Of numbers and texts, such as ``motion.to_xarray()``.

    Raises
    ------
    InputError
        If the file cannot be written; a file that was there before stays as it was.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from kinegrad import Motion, samples
    >>> motion = Motion(samples.two_link(), [0.0, 1.0], *np.zeros((3, 2, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_dataset(Path(folder, "motion.nc"), motion.to_xarray())
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['motion.nc']
    """
    place = checked_path(path)
    xarray = check_packages(place)[2]
    if not isinstance(dataset, xarray.Dataset):
        raise InputError(f"`dataset` is a {type(dataset).__name__}; expected an xarray.Dataset, as of to_xarray()")
    variables: dict[str, Variable] = {}
    for name, each in dataset.variables.items():
        array = np.asarray(each.values)
        if array.dtype.kind not in "biufUO":
            found = f"`dataset` has {str(name)!r} of type {array.dtype}"
            raise InputError(f"{found}; expected numbers or texts")
        own = dict(each.attrs)
        along = [
            str(x) for x in dataset.coords if x != name and x not in dataset.dims and {*dataset[x].dims} <= {*each.dims}
        ]
        if along and name not in dataset.coords:
            own["coordinates"] = " ".join(along)
        variables[str(name)] = tuple(map(str, each.dims)), array, own
    content = packed({str(name): int(size) for name, size in dataset.sizes.items()}, variables, dataset.attrs)
    try:
        with replacing(place) as file:
            file.write(content)
    except OSError as error:
        raise InputError(f"{place}: cannot be written: {error.strerror or error}") from None


def _kind(what: str) -> str:
    """The variable with the kinds of joints, coordinates or speeds."""
    return "kind" if what == "joint" else f"{what}_kind"


def check_packages(path: Any) -> tuple[Any, Any, Any]:
    """h5py, h5netcdf and xarray, if all are installed."""
    try:
        h5py, h5netcdf, xarray = map(import_module, PACKAGES)
    except ImportError as error:
        hint = "install it with `pip install h5netcdf h5py xarray`, or use .npz or .csv"
        raise InputError(f"{path}: NetCDF needs the package {error.name!r}; {hint}") from None
    return h5py, h5netcdf, xarray


def _read(
    path: Path, model: Model, wanted: str, units: str | None, h5py: Any, h5netcdf: Any, xarray: Any
) -> tuple[dict[str, Any], Sequence[str]]:
    check_heaps(path)
    axes = {x: model.layout.columns(x)[0] for x in wanted}
    others = _check_headers(path, h5py, {*axes.values()})
    with warnings.catch_warnings(), np.errstate(all="ignore"), h5netcdf.File(path, "r", **TEXTS) as file:
        warnings.simplefilter("ignore")  # what is odd in a file of others is refused below, or of no concern
        store = xarray.backends.H5NetCDFStore(file)
        with xarray.open_dataset(store, decode_times=False, drop_variables=others) as data:
            known = list(dict.fromkeys(axes.values()))
            given = [str(name) for name in data.variables if name in data.data_vars or name in known]
            if wanted == "qva" and "q" in given and not {"v", "a"} & {*given}:
                raise PositionsAloneError(path, "variables")
            check_names(path, "variable", given, [*wanted, *known], others=True)
            arrays = {}
            for x, axis in axes.items():
                names = joint_texts(path, data[axis].values)
                order = joint_order(path, names, model, x)
                values = _variable(path, data[x], x, names, model, units)
                arrays[x] = values if order is None else values[:, order]
            if "time" in data.variables:
                arrays["t"] = _time(path, data["time"])
    return arrays, model.joint_names


def _check_headers(path: Path, h5py: Any, axes: set[str]) -> list[str]:
    """What the file says about the variables that will be read; the names of all others."""
    read = {"q", "v", "a", "time"} | axes
    with h5py.File(path, "r") as file:
        for name in read:
            if not isinstance(file.get(name, getlink=True), h5py.HardLink | None):
                raise InputError(f"{path}: variable {name!r} is a link to another place; expected the numbers here")
            variable = file.get(name)
            if isinstance(variable, h5py.Dataset) and not _is_dimension_alone(variable):
                check_size(path, name, variable.shape, variable.dtype, variable.id.get_storage_size())
                if name in "qva":
                    check_kind(path, name, variable.dtype)
        return [name for name in file if name not in read]


def _is_dimension_alone(variable: Any) -> bool:
    """Whether it only stands for a dimension without coordinates, of which nothing is stored or read."""
    name = variable.attrs.get("NAME", b"")
    return bool(
        variable.attrs.get("CLASS") == b"DIMENSION_SCALE" and isinstance(name, bytes) and name.startswith(ALONE)
    )


def _variable(path: Path, variable: Any, x: str, names: Sequence[str], model: Model, default: str | None) -> Array:
    """Values over (time, joint), or (time, coordinate) and (time, speed), converted one by one to SI units."""
    axis, own, kinds_of = model.layout.columns(x)
    if set(variable.dims) != {"time", axis} or len(variable.dims) != 2:
        raise InputError(f"{path}: `{x}` is over {variable.dims}; expected ('time', {axis!r})")
    values = variable.transpose("time", axis).values
    check_kind(path, x, values.dtype)
    kinds = dict(zip(own, kinds_of, strict=True))
    if "units" not in variable.attrs:
        plain = np.asarray(values, np.float64)
        return plain if default is None else plain * [default_factor(kinds[name], default) for name in names]
    units = _units(path, x, variable.attrs["units"], len(names))
    factors = np.empty(len(names))
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        factor = joint_factor(x, kinds[name], unit)
        if factor is None:
            found = f"`{x}` of {axis} {shown(name)} is in {shown(unit)}"
            raise InputError(f"{path}: {found}; expected {kind_units(x, kinds[name])!r} or a unit that converts to it")
        factors[k] = factor
    return np.asarray(values, np.float64) if (factors == 1).all() else values * factors


def _time(path: Path, variable: Any) -> Array:
    """Instants in seconds."""
    if variable.dims != ("time",):
        raise InputError(f"{path}: `time` is over {variable.dims}; expected ('time',)")
    values = variable.values
    check_kind(path, "time", values.dtype)
    (units,) = _units(path, "time", variable.attrs.get("units", "s"), 1)
    factor = time_factor(units)
    if factor is None:
        raise InputError(f"{path}: `time` is in {shown(units)}; expected 's' or a unit that converts to it")
    return np.asarray(values, np.float64) if factor == 1 else values * factor


def _units(path: Path, name: str, given: Any, count: int) -> list[str]:
    """The attribute ``units`` of a variable, for each of `count` joints: one text for all, or one for each."""
    texts = np.atleast_1d(np.asarray(given)).tolist()
    texts = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in texts]
    if len(texts) not in (1, count) or not all(isinstance(each, str) for each in texts):
        found = f"`{name}` has the units {shown(texts[0] if len(texts) == 1 else texts)}"
        raise InputError(f"{path}: {found}; expected one text, or one for each of {count} joints")
    return texts * (count // len(texts))
