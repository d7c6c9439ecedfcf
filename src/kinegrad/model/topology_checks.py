"""Checks of topologies: what Υ, Φ and Ψ must satisfy, and errors that say what is wrong and where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import ModelError, shown
from kinegrad.model.numbers import holds_masked

IntArray = NDArray[np.int64]
WORLD = -1


def integers(argument: str, values: ArrayLike, *, ndim: int) -> IntArray:
    """`values` as a fresh int64 array, shape (n,) or (n, 2), or an error that names the first bad entry."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ModelError(f"`{argument}` is ragged; expected rows of one length") from error
    except Exception as error:  # whatever a foreign object raises when asked for its numbers
        raise ModelError(f"`{argument}` is a {type(values).__name__}; expected whole numbers") from error
    if holds_masked(values):
        raise ModelError(f"`{argument}` has masked entries; expected whole numbers throughout")
    if array.size == 0:
        raise ModelError(f"`{argument}` is empty; expected at least one entry")
    if array.ndim != ndim or array.shape[1:] not in [(), (2,)]:
        raise ModelError(f"`{argument}` has shape {array.shape}; expected (n{', 2' if ndim == 2 else ','})")
    if array.dtype.kind not in "iuf":
        raise ModelError(f"`{argument}` has dtype {array.dtype}; expected whole numbers")
    for place in np.argwhere((array != np.floor(array)) | ~(np.abs(array) < 2**53))[:1].tolist():
        raise ModelError(f"`{argument}{place}` is {array[tuple(place)]}; expected a whole number")
    return array.astype(np.int64)


def second_column(argument: str, matrix: ArrayLike) -> IntArray:
    """Parents, from 0, in a matrix of the paper, whose first column must count 1, 2, …"""
    numbers, parents = integers(argument, matrix, ndim=2).T
    for k in np.flatnonzero(numbers != np.arange(1, len(numbers) + 1))[:1]:
        raise ModelError(f"`{argument}[{k}, 0]` is {numbers[k]}; expected {k + 1}: it counts 1, 2, …")
    return np.asarray(parents - 1)


def check_parents(
    parents: IntArray, argument: str, kind: str, *, base: int = 0, names: Sequence[str] | None = None
) -> IntArray:
    """`parents` if each is the world or a lower number, else an error that counts from `base`."""

    def called(i: int) -> str:
        return f"{kind} {i + base}" + (f" ({shown(names[i])})" if names else "")

    numbers, last = np.arange(len(parents)), len(parents) - 1
    for i in np.flatnonzero((parents < WORLD) | (parents > last))[:1]:
        found, lowest = parents[i] + base, f"{WORLD + base} (the world)"
        raise ModelError(f"`{argument}` gives {called(i)} parent {found}; expected {lowest} to {last + base}")
    for i in np.flatnonzero(parents == numbers)[:1]:
        raise ModelError(f"`{argument}` makes {called(i)} its own parent; expected a lower number")
    for i in np.flatnonzero(parents > numbers)[:1]:
        if cycle := _cycle(parents):
            members = [called(j) for j in [*cycle, cycle[0]]]
            path = " → ".join(members if len(members) <= 12 else [*members[:6], "…", *members[-5:]])
            raise ModelError(f"`{argument}` has a cycle, child → parent: {path}; expected a tree")
        parent = called(parents[i])
        raise ModelError(f"`{argument}` numbers {called(i)} before its parent, {parent}; expected after")
    return parents


def _cycle(parents: IntArray) -> list[int]:
    """Members of one cycle, lowest first, each followed by its parent, or nothing."""
    far = np.append(parents, WORLD)  # far[-1] is the world's
    for _ in range(len(parents).bit_length()):
        far = far[far]  # the 2nd, 4th, 8th … ancestor: in the end the world, or on a cycle
    cycle: list[int] = np.sort(far[far != WORLD])[:1].tolist()
    while cycle and (i := int(parents[cycle[-1]])) != cycle[0]:
        cycle.append(i)
    return cycle


def join(phi: IntArray, psi: IntArray, *, base: int) -> IntArray:
    """Parents of the joints from Φ (b,) and Ψ (b, 2), both from 0; errors count from `base`."""
    if len(phi) != len(psi):
        raise ModelError(f"`phi` has {len(phi)} branches and `psi` has {len(psi)}; expected as many in both")
    check_parents(phi, "phi", "branch", base=base)
    for k in np.flatnonzero(psi[:, 0] > psi[:, 1])[:1]:
        first, last = psi[k] + base
        raise ModelError(f"`psi` runs branch {k + base} backwards, {first} to {last}; expected first ≤ last")
    order = np.argsort(psi[:, 0], kind="stable")
    expected = np.append(0, psi[order, 1] + 1)  # each branch starts after the end of the one before
    for k in np.flatnonzero(psi[order, 0] != expected[:-1])[:1]:
        first, last = psi[order[k]] + base
        if k == 0:
            fault = f"does not start at joint {base}"
        else:
            gap = psi[order[k], 0] > expected[k]
            fault = f"{'leaves a gap after' if gap else 'overlaps'} branch {order[k - 1] + base}"
        found = f"branch {order[k] + base} is {first} to {last}"
        raise ModelError(f"`psi` {fault}: {found}; expected it to start at {expected[k] + base}")
    parents = np.arange(-1, expected[-1] - 1)
    parents[psi[:, 0]] = np.where(phi == WORLD, WORLD, psi[phi, 1])
    return check_parents(parents, "psi", "joint", base=base)
