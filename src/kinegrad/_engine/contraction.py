"""Results of kernels, which are of joints, as results of coordinates and speeds: by the axes that they have.

The formulas are those of ``_engine/coordinates.py``.  A kernel that gives a derivative with respect to positions also
gives those with respect to speeds and accelerations, called alike (``dtau_dq``, ``dtau_dv``, ``dtau_da``), unless what
it differentiates does not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.expansion import Expansion
from kinegrad._engine.signature import Axis, Result

__all__ = ["contract", "contract_fields"]

Array = NDArray[np.float64]
R = TypeVar("R")  # a public result
_TORQUE_DERIVATIVES = [
    (Axis.TORQUE,),
    (Axis.TORQUE, Axis.PER_POSITION),
    (Axis.TORQUE, Axis.PER_SPEED),
    (Axis.TORQUE, Axis.PER_ACCELERATION),
]


def contract(at: Expansion, results: Sequence[Result], found: Sequence[Array]) -> list[Array]:
    """The same results in coordinates and speeds."""
    named = dict(zip((result.name for result in results), found, strict=True))
    axes = [result.axes for result in results]
    if axes == _TORQUE_DERIVATIVES:
        return [at.forces(found[0]), *at.torque_derivatives(*found)]
    force = next((named[result.name] for result in results if result.axes == (Axis.TORQUE,)), None)
    contracted = []
    for result, x in zip(results, found, strict=True):
        if result.axes == (Axis.TORQUE,):
            contracted.append(at.forces(x))
            continue
        if result.axes == (Axis.TORQUE, Axis.PER_ACCELERATION):
            contracted.append(at.matrix(x))
            continue
        y = _by_columns(at, result.name, result.axes[-1] if result.axes else 0, named, x)
        for k, axis in enumerate(reversed(result.axes), start=1):
            if axis is Axis.TORQUE:
                y = at.G.pull(y, -k)
        if result.axes == (Axis.TORQUE, Axis.PER_POSITION) and force is not None:
            at.add_turn(y, force)
        contracted.append(y)
    return contracted


def contract_fields(at: Expansion, change: R) -> R:
    """A public result whose fields are called d<x>_dq, d<x>_dv, d<x>_da, by coordinates and speeds."""
    per = {"q": Axis.PER_POSITION, "v": Axis.PER_SPEED, "a": Axis.PER_ACCELERATION}
    named = {name: x for name, x in vars(change).items() if x is not None}
    fields = {name: _by_columns(at, name, per[name[-1]], named, x) for name, x in named.items()}
    return type(change)(**dict(zip(fields, at.deliver(list(fields), list(fields.values())), strict=True)))


def _by_columns(at: Expansion, name: str, last: Axis | int, named: dict[str, Array], x: Array) -> Array:
    """With the last axis in coordinates or speeds, if it is one of joints with respect to which a derivative is."""
    inner = x.ndim - len(at.shape) - 1
    by_speed, by_acceleration = (named.get(f"{name[:-1]}{of}") for of in "va")
    if last is Axis.PER_POSITION:
        return at.by_configuration(x, by_speed, by_acceleration, inner=inner)
    if last is Axis.PER_SPEED:
        return at.by_speed(x, by_acceleration, inner=inner)
    return at.by_acceleration(x, inner=inner) if last is Axis.PER_ACCELERATION else x
