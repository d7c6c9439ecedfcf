"""Numbers of joints as people give them: one for all, one for each, or by name.

A name is that of a joint, or of a composite joint: ``"hip"`` stands for ``hip.z``, ``hip.x`` and ``hip.y``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import ModelError, shown
from kinegrad.model.names import find_name
from kinegrad.model.numbers import real_array

__all__ = ["named_places", "spread"]


def named_places(what: str, name: Any, names: Sequence[str], model: str) -> list[int]:
    """Where a joint is among `names`, or all primitives of a composite one; an InputError if there is none.

    >>> named_places("joint", "hip", ("hip.z", "hip.x", "knee"), "leg")
    [0, 1]
    """
    if isinstance(name, str) and name not in names:
        parts = [i for i, each in enumerate(names) if each.startswith(f"{name}.")]
        if parts:
            return parts
    return [find_name(what, name, names, model)]


def spread(
    what: str, value: Any, names: Sequence[str], model: str, *, core: tuple[int, ...] = (), default: Any = 0.0,
    kind: str = "joint",
) -> Any:  # fmt: skip
    """`value` for each of `names`, (n, *core), if it is one for all or a mapping; anything else as it is.

    >>> spread("damping", {"hip": 2.0}, ("hip.z", "hip.x", "knee"), "leg")
    array([2., 2., 0.])
    """
    if isinstance(value, Mapping):
        found: NDArray[Any] = np.array(np.broadcast_to(np.asarray(default, dtype=float), (len(names), *core)))
        for name, each in value.items():
            places = named_places(kind, name, names, model)
            new = real_array(f"`{what}` of {shown(name)}", each, "real numbers")
            if new.shape not in (core, (len(places), *core)):
                expected = f"numbers of shape {core}" if core else "a number"
                raise ModelError(f"`{what}` of {shown(name)} is {shown(each)}; expected {expected}")
            found = found.astype(np.result_type(found, new), copy=False)
            found[places] = new
        return found
    if isinstance(value, str | bytes) or value is None:
        return value
    try:
        shape = np.shape(value)
    except Exception:  # whatever a foreign object raises when asked for its shape
        return value
    if shape == core and not (core and len(names) == core[0] and len(core) > 1):
        given = real_array(f"`{what}`", value, "real numbers")
        return np.broadcast_to(given, (len(names), *core))
    return value
