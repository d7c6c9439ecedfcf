"""The one part of an HDF5 file that the library reads without any check: its global heaps.

They hold texts of any length and the links from variables to their dimensions.  HDF5 goes from object to object by the
sizes that are stored there; one that is damaged to zero keeps it in the same place for ever (HDF5 2.0).  So they are
gone through here first.  Layout, little-endian, from "HDF5 File Format Specification", III.E:

    collection   "GCOL", version 1, three zeros, size (8 bytes), then objects
    object       number (2), references (2), zeros (4), size (8), then so many bytes, padded to 8
    number 0     what is free: all that is left, its own 16 bytes included; nothing at all if fewer than 16 are left
"""

from __future__ import annotations

import mmap
from pathlib import Path
from struct import unpack_from

__all__ = ["check_heaps"]

BEGIN = b"GCOL\1\0\0\0"
HEADER = 16  # bytes, of a collection and of an object


def check_heaps(path: Path) -> None:
    """A ValueError if a global heap of the file cannot be gone through."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        begin = data.find(BEGIN)
        while begin >= 0:
            if begin + HEADER > len(data) or not _is_sound(data, begin, unpack_from("<Q", data, begin + 8)[0]):
                raise ValueError(f"the heap at byte {begin} is damaged")
            begin = data.find(BEGIN, begin + len(BEGIN))


def _is_sound(data: mmap.mmap, begin: int, size: int) -> bool:
    """Whether the objects of a collection fill it."""
    place, end = begin + HEADER, begin + size
    if size < HEADER or end > len(data):
        return False
    while end - place >= HEADER:
        number, _, _, length = unpack_from("<HHIQ", data, place)
        if number == 0:
            return bool(length == end - place)
        place += HEADER + (length + 7) // 8 * 8
    return place <= end
