"""Names of columns, arrays and joints in files: checked, put in the model's order, shown in messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import LONGEST, InputError, shown
from kinegrad.model import Model
from kinegrad.model.names import closest

__all__ = ["HOLD", "PositionsAloneError", "check_names", "joint_order", "joint_texts"]

SEARCHED = 1000  # names that are looked through for a similar one
HOLD = "read_motion(missing='neutral') or --missing neutral holds what is missing at its neutral value"


class PositionsAloneError(InputError):
    """A file that has q, but neither v nor a."""

    def __init__(self, path: Any, what: str) -> None:
        hint = "kinegrad.recordings.read_motion makes them from q"
        super().__init__(f"{path}: has q alone; expected {what} of v and a, too: {hint}")


def check_names(
    path: Any,
    what: str,
    found: Sequence[str],
    wanted: Sequence[str],
    *,
    optional: Sequence[str] = (),
    others: bool = False,
    remedy: str = "",
) -> None:
    """An InputError at the first name that is there twice, unknown (unless `others` may be), or missing (`remedy`)."""
    listed, seen = [*wanted, *optional], set[str]()
    expected = set(listed)
    for name in found:
        if name in seen:
            raise InputError(f"{path}: {what} {shown(name)} is there twice; expected once")
        if name not in expected and not others:
            close = closest(name, listed[:SEARCHED])
            hint = f"did you mean {_listed(close, ' or ')}?" if close else f"expected {_listed(listed)}"
            raise InputError(f"{path}: {what} {shown(name)} is unknown; {hint}")
        seen.add(name)
    for name in wanted:
        if name not in seen:
            candidates = [each[:LONGEST] for each in found[:SEARCHED]]
            close = closest(name, candidates) or candidates
            hint = f"expected {_listed(wanted)}; found {_listed(close) or 'none'}"
            raise InputError(f"{path}: {what} {shown(name)} is missing; {hint}{remedy and '; ' + remedy}")


def joint_order(path: Any, names: Sequence[str], model: Model, x: str = "q") -> NDArray[np.int64] | None:
    """Where each column of q, v or a is in `names`; None if they are in the model's order."""
    what, wanted, _ = model.layout.columns(x)
    check_names(path, what, names, wanted)
    place = {name: k for k, name in enumerate(names)}
    order = np.array([place[name] for name in wanted])
    return None if np.array_equal(order, np.arange(len(wanted))) else order


def joint_texts(path: Any, names: NDArray[Any]) -> list[str]:
    """A row of texts as such, whatever it was stored as."""
    if names.dtype.kind == "U" and names.itemsize:
        codes = np.ascontiguousarray(names.astype(names.dtype.newbyteorder("="))).view(np.uint32)
        if (codes > 0x10FFFF).any():  # NumPy would make a text of it that Python cannot work with
            raise InputError(f"{path}: joint names hold a character that does not exist; expected texts")
    values = names.tolist()
    if names.ndim == 1 and all(isinstance(name, bytes) for name in values):
        values = [name.decode("utf-8", "replace") for name in values]
    if names.ndim != 1 or not all(isinstance(name, str) for name in values):
        found = f"{names.dtype} of shape {names.shape}"
        raise InputError(f"{path}: joint names are {found}; expected a row of texts")
    return list(values)


def _listed(names: Sequence[str], separator: str = ", ") -> str:
    return separator.join([*(shown(name) for name in names[:6]), *(["…"] if len(names) > 6 else [])])
