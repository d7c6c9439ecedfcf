"""What a C3D file declares of itself, walked before ezc3d reads it, which takes minutes over some damaged files.

A file is blocks of 512 bytes.  The first is a header; its first byte says in which block the parameters begin, after
four bytes of which the last is the processor, 84 and 85 for little-endian ones, 86 for big-endian.  A parameter or a
group of them is

    length of the name (negative if locked), number of the group (negative of a group itself), name,
    the distance from here to the next (2 bytes; 0 after the last),
    of a parameter: type (−1 text, 1, 2, 4 bytes), number of dimensions, dimensions, data,
    length of the description, description,

and a name of length zero ends them.  Then come frames of points (4 numbers each) and samples of channels, of 2 bytes,
or 4 if the scale of points is negative.
"""

from __future__ import annotations

import math
import mmap
import struct

from kinegrad.errors import InputError

__all__ = ["check_layout"]

BLOCK = 512
SIZES = {-1: 1, 1: 1, 2: 2, 4: 4}
LITTLE, BIG = (84, 85), 86


def check_layout(content: bytes | mmap.mmap) -> None:
    """Refuse a file whose parameters or frames are not where it says.

    Raises
    ------
    InputError
        With the byte where it goes wrong.
    """
    start = BLOCK * (content[0] - 1)
    if len(content) < BLOCK or not 0 < start <= len(content) - 4:
        raise InputError(f"its parameters begin in block {content[0]}; expected that in its {len(content)} bytes")
    processor = content[start + 3]
    if processor not in (*LITTLE, BIG):
        raise InputError(f"byte {start + 4}: the processor is {processor}; expected 84, 85 or 86")
    order = ">" if processor == BIG else "<"
    known = _walk(content, start + 4, order)
    points, samples, first, last = struct.unpack_from(f"{order}4H", content, 2)
    data = BLOCK * (struct.unpack_from(f"{order}H", content, 16)[0] - 1)
    scale = content[12:16] if processor != LITTLE[1] else content[14:16] + content[12:14]  # halves the other way round
    size = 4 if (scale[0] if processor == BIG else scale[3]) & 0x80 else 2
    needed = (last - first + 1) * (4 * points + samples) * size
    if data <= start or data + max(needed, 0) > len(content):  # of long recordings, the last number may be cut off
        frames = f"frames {first} to {last} of {points} points and {samples} samples of channels"
        raise InputError(f"declares {frames}, {needed} bytes from byte {data + 1} on; it has {len(content)}")
    _check_needed(known, samples // max(struct.unpack_from(f"{order}H", content, 18)[0], 1))


def _check_needed(known: dict[str, tuple[int, int]], channels: int) -> None:
    """What ezc3d takes for granted: numbers of each channel, in lists of up to 255."""
    needed = {"POINT:USED": 1, "POINT:SCALE": 1, "POINT:RATE": 1, "POINT:FRAMES": 1, "ANALOG:USED": 1}
    if channels:
        needed |= {"ANALOG:GEN_SCALE": 1, "ANALOG:SCALE": min(channels, 255), "ANALOG:OFFSET": min(channels, 255)}
    for name, count in needed.items():
        kind, found = known.get(name, (0, 0))
        if found < count or kind not in (2, 4):
            raise InputError(f"{name} has {found if kind in (2, 4) else 0} numbers; expected {count}")


def _walk(content: bytes | mmap.mmap, at: int, order: str) -> dict[str, tuple[int, int]]:
    """Go from one parameter to the next, to the last; by name, the type of each, and how many there are in it."""
    groups: dict[int, str] = {}
    found: list[tuple[int, str, int, int]] = []
    while True:
        here = at
        try:
            length, group = struct.unpack_from("2b", content, at)
            if length == 0:
                break
            name = content[at + 2 : at + 2 + abs(length)].decode("latin-1").upper()
            if not (name.isascii() and name.isprintable()):
                raise InputError(f"byte {here + 3}: the name of a parameter cannot be printed; the file is damaged")
            at += 2 + abs(length)
            (step,) = struct.unpack_from(f"{order}H", content, at)
            end = at + 2
            if group < 0:
                groups[-group] = name
            else:
                kind, count = struct.unpack_from("bB", content, end)
                sizes = struct.unpack_from(f"{count}B", content, end + 2)
                if kind not in SIZES or count > 7 or (kind < 0 and not count):  # ezc3d crashes at texts without length
                    raise InputError(f"byte {end + 1}: a parameter is of type {kind}, with {count} dimensions")
                end += 2 + count + SIZES[kind] * math.prod(sizes)
                found.append((group, name, kind, math.prod(sizes)))
            end += 1 + content[end]
        except (struct.error, IndexError):
            raise InputError(f"byte {here + 1}: a parameter goes beyond the end of the file") from None
        if group == 0 or end > len(content) or (step and at + step < end):
            raise InputError(f"byte {here + 1}: a parameter is longer than the way to the next; the file is damaged")
        if step == 0:
            break
        at += step
    for group, name, _, _ in found:
        if group not in groups:
            raise InputError(f"its parameter {name} is of group {group}, which it does not have; the file is damaged")
    return {f"{groups[group]}:{name}": (kind, count) for group, name, kind, count in found}
