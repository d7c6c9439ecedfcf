"""Design derivatives of models whose coordinates are not their joints, from those of the joints.

With hats on what belongs to joints (``_engine/coordinates.py``), τ = Gᵀ τ̂ and the parameters do not enter the map, so

    dτ/dp = Gᵀ dτ̂/dp + W dq/dp,                                                                          (1)

where dτ̂/dp is total: q̂, v̂, â follow p as q, v, a do.  The accelerations of given torques follow from
M da/dp = dτ/dp − (1) at fixed a, with M = Gᵀ M̂ G.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.design.given import check_balls
from kinegrad.design.parameters import Design, variant
from kinegrad.dynamics import solve_reduced
from kinegrad.errors import InputError

__all__ = ["accelerations", "checked_slopes", "first", "last", "primitive_design", "torques"]

Array = NDArray[np.float64]
Tangents = Callable[[Design, Sequence[Any], Sequence[Any]], Array]


def primitive_design(design: Design) -> Design:
    """The same parameters of the model's joints, made once per design."""
    found: Design | None = design.__dict__.get("_primitive")
    if found is None:
        check_balls(design.model, design._variation)
        found = design.__dict__["_primitive"] = variant(design, design.model.primitive)
    return found


def checked_slopes(design: Design, at: engine.Expansion, **given: Any) -> dict[str, Array]:
    """Derivatives dq_dp, … by name, (p, ..., nv) each, of those that are given; zero for the others."""
    slopes = {}
    for name, value in given.items():
        shape = (*at.shape, at.layout.nv, design.p)
        if value is None:
            slopes[name] = np.zeros((design.p, *(1,) * len(at.shape), at.layout.nv))
            continue
        x = engine.real(name, value)
        try:
            full = np.broadcast_to(x, shape)
        except ValueError:
            expected = f"{shape}: states, {at.layout.nv}, {design.p}"
            raise InputError(f"`{name}` has shape {x.shape}; expected {expected}") from None
        if not np.isfinite(full).all():
            raise engine.not_finite(name, x)
        slopes[name] = first(full)
    return slopes


def torques(
    design: Design, at: engine.Expansion, tau: Array, tangents: Tangents, dq: Array, dv: Array, da: Array | None
) -> Array:
    """(1), (p, ..., nv), at a motion q, v, a with torques τ̂ of joints that follows p as dq, dv, da do.

    ``tangents(design, state, follow)`` is dτ̂/dp of the joints, (..., n, p).
    """
    state, full = (at.q, at.v, at.a), (*at.shape, at.layout.n, design.p)
    with np.errstate(all="ignore"):  # what overflows is found in the end
        follow = [np.broadcast_to(last(at.check(x, 1)), full) for x in at.push(dq, dv, da)]
        change = first(tangents(primitive_design(design), state, follow))
        return at.G.pull(change) + at.turn(tau, dq)


def accelerations(
    at: engine.Expansion, M: Array, change: Array, dtau: Array, da: Array, held: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """da/dp and dτ/dp, (..., nv, p), of all coordinates, those of `held` ones given as `da`, of others as `dtau`.

    `change` is dτ/dp at the accelerations there are, where those that are held follow p as `da` does.
    """
    free = np.flatnonzero(~held)
    full = (*at.shape, at.layout.nv, change.shape[0])
    found, forces = (np.broadcast_to(last(x), full).copy() for x in (da, dtau))
    with np.errstate(all="ignore"):  # what overflows is found in the end
        found[..., free, :] = 0.0
        if len(free):
            right = (forces - last(change))[..., free, :]
            found[..., free, :] = solve_reduced(at, M[..., free[:, None], free], right, free)
        there = last(change) + (M[..., :, free, None] * found[..., None, free, :]).sum(axis=-2)
        forces[..., held, :] = there[..., held, :]
    return found, forces


def first(x: Array) -> Array:
    """The axis of parameters, which is last, put first."""
    return np.moveaxis(x, -1, 0)


def last(x: Array) -> Array:
    """The axis of parameters, which is first, put last."""
    return np.moveaxis(x, 0, -1)
