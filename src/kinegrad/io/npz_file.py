"""Trajectories as NPZ: what the archive says about its arrays is checked before any of them is unpacked."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kinegrad.errors import InputError, said
from kinegrad.io.declared import check_declared
from kinegrad.io.names import PositionsAloneError, check_names, joint_order, joint_texts
from kinegrad.io.units import default_factor
from kinegrad.model import Model

__all__ = ["read_npz", "write_npz"]

Array = NDArray[np.float64]
LONGEST_NAME = 4096  # characters that a joint's name may take in a file, with its padding, if the model has no longer
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(
    path: Path, model: Model, wanted: str = "qva", units: str | None = None
) -> tuple[dict[str, Any], Sequence[str] | None]:
    """q, v, a and perhaps t, in the model's order; and the joints' names if the file has them.

    Of `wanted` "q" alone, v and a may be missing and are left aside.  Angles are in `units`: "deg", else rad.
    """
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = _members(path, archive, model, wanted)
            for name, member in members.items():
                _check_header(path, archive, name, member, model)
            arrays = {name: _unpack(archive, member) for name, member in members.items()}
    except (OSError, InputError):
        raise
    except MemoryError:
        raise InputError(f"{path}: its arrays take more memory than there is") from None
    except Exception as error:  # whatever a broken archive makes zipfile, zlib or NumPy raise
        raise InputError(f"{path}: is not a readable NPZ archive of numbers: {said(error)}") from None
    named = [names for names in _names(model) if names in arrays]
    for names in named:
        texts = joint_texts(path, arrays.pop(names))
        for x in _names(model)[names]:
            if x not in wanted:
                continue
            order = joint_order(path, texts, model, x)
            if order is not None:
                arrays[x] = arrays[x][:, order]
    if units == "deg":
        for x in wanted:
            factors = [default_factor(kind, units) for kind in model.layout.columns(x)[2]]
            arrays[x] = arrays[x] * factors
    return arrays, model.joint_names if len(named) == len(_names(model)) else None


def write_npz(file: BinaryIO, model: Model, t: Array | None, values: Mapping[str, Array]) -> None:
    """Write arrays by name, and the joints' names."""
    arrays: dict[str, Any] = dict(values)
    for what, names, _ in map(model.layout.columns, values):
        arrays[f"{what}_names"] = np.array(names)
    if t is not None:
        arrays["t"] = t
    np.savez(file, **arrays)


def _names(model: Model) -> dict[str, str]:
    """Arrays of names, and what they are the columns of."""
    return {"coordinate_names": "q", "speed_names": "va"} if model.coordinates else {"joint_names": "qva"}


def _members(path: Path, archive: zipfile.ZipFile, model: Model, wanted: str) -> dict[str, zipfile.ZipInfo]:
    """The parts of the archive that are wanted, by the names of their arrays."""
    infos = archive.infolist()
    names = [info.filename.removesuffix(".npy") for info in infos]
    if wanted == "qva" and "q" in names and not {"v", "a"} & {*names}:
        raise PositionsAloneError(path, "arrays")
    aside = [x for x in "qva" if x not in wanted]
    check_names(path, "array", names, [*wanted], optional=["t", *aside, *_names(model)])
    for name, info in zip(names, infos, strict=True):
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(
                f"{path}: array {name!r} is packed by method {info.compress_type}; expected none or deflate"
            )
    return {name: info for name, info in zip(names, infos, strict=True) if name not in aside}


def _check_header(path: Path, archive: zipfile.ZipFile, name: str, member: zipfile.ZipInfo, model: Model) -> None:
    """Kind, shape and size of an array, by what its first bytes say."""
    with archive.open(member) as file:
        version = npy.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"array {name!r} has a header of version {version}")
        shape, _, dtype = _HEADERS[version](file)
        begin = file.tell()
    if name in _names(model):
        what, wanted, _ = model.layout.columns(_names(model)[name][0])
        if dtype.kind not in "US" or len(shape) != 1:
            raise InputError(f"{path}: {what} names are {dtype} of shape {shape}; expected a row of texts")
        longest = max(LONGEST_NAME, *map(len, wanted))
        if shape[0] > len(wanted) or dtype.itemsize > 4 * longest:
            found = f"{shape[0]} {what} names of up to {dtype.itemsize // (4 if dtype.kind == 'U' else 1)} characters"
            raise InputError(f"{path}: has {found}; expected {len(wanted)}, of at most {longest}")
    else:
        check_declared(path, name, shape, dtype, model, member.compress_size)
    if begin + prod(shape) * dtype.itemsize != member.file_size:
        raise ValueError(f"array {name!r} of shape {shape} takes another number of bytes than the archive has")


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    with archive.open(member) as file:
        values = npy.read_array(file, allow_pickle=False)
        if file.read(1):  # and with it the checksum of all
            raise ValueError(f"{member.filename!r} has more bytes than its header says")
    return values.astype(np.float64, copy=False) if values.dtype.kind in "iuf" else values
