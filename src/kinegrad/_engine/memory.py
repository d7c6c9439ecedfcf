"""Which results go past the caches; which arrays overlap, exactly where that can be told without long searching."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._kernels.lanes.stream import X86
from kinegrad.errors import InputError, shown

_LARGE = 4_000_000  # bytes of results that the caches nearest to a processor certainly do not hold
_STREAM = os.environ.get("KINEGRAD_STREAM", "")  # 0 never, 1 always
_WORK: Any = 100_000  # steps of NumPy's search; arrays that need more count as overlapping


def streams(size: int) -> bool:
    """Whether results of so many bytes are to be written past the caches (``_kernels/lanes/stream.py``)."""
    if not _STREAM:
        return X86 and size >= _LARGE
    if _STREAM not in ("0", "1"):
        raise InputError(f"the environment variable KINEGRAD_STREAM is {shown(_STREAM)}; expected 0 or 1, or unset")
    return _STREAM == "1"


def share_memory(x: NDArray[np.float64], y: NDArray[np.float64]) -> bool:
    """Whether two arrays have memory in common; True if that is hard to tell."""
    if not np.may_share_memory(x, y):  # fast: do their bounds overlap?
        return False
    try:
        return np.shares_memory(x, y, max_work=_WORK)
    except np.exceptions.TooHardError:
        return True


def certainly_apart(results: Sequence[NDArray[np.float64]], others: Sequence[NDArray[np.float64]]) -> bool:
    """Whether each of `results` has its memory to itself, as can be told at once: arrays of different owners have no
    memory in common, and only the bounds of the others need to be compared, which takes far longer."""
    if len(results) == 1:
        own = results[0] if results[0].base is None else results[0].base
        if type(own) is not np.ndarray or not own.flags.owndata:
            return _apart_by_bounds(results, others)
        for x in others:
            owner = x.base
            if owner is None:
                owner = x
            if owner is own or type(owner) is not np.ndarray or not owner.flags.owndata:
                return _apart_by_bounds(results, others)
        return True
    known = set()
    for x in others:
        owner = x if x.base is None else x.base
        if type(owner) is not np.ndarray or not owner.flags.owndata:
            return _apart_by_bounds(results, others)
        known.add(id(owner))
    for x in results:
        owner = x if x.base is None else x.base
        if type(owner) is not np.ndarray or not owner.flags.owndata or id(owner) in known:
            return _apart_by_bounds(results, others)
        known.add(id(owner))
    return True


def _apart_by_bounds(results: Sequence[NDArray[np.float64]], others: Sequence[NDArray[np.float64]]) -> bool:
    """The same of arrays of which some have one owner, or none that is known."""
    may_share = np.may_share_memory
    near: dict[int, list[NDArray[np.float64]]] = {0: []}  # by owner; those of none known are near all
    for x in others:
        near.setdefault(_owner(x), []).append(x)
    for x in results:
        owner = _owner(x)
        for group in (near.get(owner, ()), near[0]) if owner else near.values():
            for y in group:
                if may_share(x, y):
                    return False
        near.setdefault(owner, []).append(x)
    return True


def check_apart(results: dict[str, Any]) -> None:
    """Refuse arrays to fill, by name, of which two have memory in common."""
    for (one, x), (other, y) in combinations(results.items(), 2):
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and share_memory(x, y):
            raise InputError(f"`out.{one}` and `out.{other}` share memory; expected arrays of their own")


def _owner(x: NDArray[np.float64]) -> int:
    """Which array has allocated the memory of x; 0 if it was no array."""
    owner: Any = x.base
    if owner is None:
        return id(x) if x.flags.owndata else 0
    return id(owner) if type(owner) is np.ndarray and owner.flags.owndata else 0


def overlaps_itself(x: NDArray[np.float64]) -> bool:
    """Whether two entries of an array have memory in common; True if that is hard to tell.

    They have not if each stride steps over all that the shorter ones reach.  Otherwise the array is halved again and
    again along one axis after another: halves are alike, so that one of them and its overlap with the other say all.
    """
    if x.flags.c_contiguous or x.flags.f_contiguous or not x.size:
        return False
    reach = x.itemsize
    for stride, size in sorted(
        (abs(stride), size) for stride, size in zip(x.strides, x.shape, strict=True) if size > 1
    ):
        if stride < reach:
            break
        reach += stride * (size - 1)
    else:
        return False
    for axis in range(x.ndim):
        x = np.moveaxis(x, axis, 0)
        while len(x) > 1:
            half = (len(x) + 1) // 2
            if share_memory(x[:half], x[half:]):
                return True
            x = x[:half]
        x = np.moveaxis(x, 0, axis)
    return False
