"""Finite differences along directions: forward and central.  [kudruss2019] 2.1"""

from __future__ import annotations

import numpy as np

from kinegrad.configuration import integrate
from kinegrad.directional.sweep import Array, Found, Sweep
from kinegrad.errors import InputError

__all__ = ["STEPS", "differences"]

EPSILON = float(np.finfo(np.float64).eps)
STEPS = {"forward": EPSILON ** (1 / 2), "central": EPSILON ** (1 / 3)}


def differences(sweep: Sweep, mode: str, size: float) -> Found:
    """[kudruss2019] 2.1, all points in one call."""
    value = sweep.algorithm.value(sweep, sweep.x, sweep.loads)
    h = _lengths(sweep, size)
    slopes = _moved(sweep, h)
    core = slopes.shape[h.ndim :]
    base = _moved(sweep, -h) if mode == "central" else value.reshape(*sweep.shape, 1, *core)
    width = (2.0 * h if mode == "central" else h).reshape(*h.shape, *(1,) * len(core))
    with np.errstate(all="ignore"):  # what overflows is found in the end
        slopes -= base
        slopes /= width
    return value, sweep.directions_last(slopes)


def _lengths(sweep: Sweep, size: float) -> Array:
    """h of each state and direction, (*shape, k): the largest number of h d is `size` max(1, |x|)."""
    reach = np.max([np.abs(x).max(axis=-1, initial=1.0) for x in sweep.x], axis=0)[..., None]
    lengths = np.max([np.abs(d).max(axis=-1, initial=0.0) for d in sweep.along if d is not None], axis=0)
    with np.errstate(all="ignore"):
        h: Array = size * reach / np.where(lengths > 0.0, lengths, 1.0)
    if not (np.isfinite(h) & (h > 0.0)).all():
        found = f"from {lengths.min():.3g} to {lengths.max():.3g}, and `step` is {size:.3g}"
        raise InputError(f"`D` has directions with largest numbers {found}; expected ordinary ones")
    return h


def _moved(sweep: Sweep, h: Array) -> Array:
    """The function at x + h d, (*shape, k, *core)."""
    parts = []
    for k, (x, d) in enumerate(zip(sweep.abreast(sweep.x), sweep.along, strict=True)):
        if d is None:
            parts.append(np.broadcast_to(x, (*sweep.shape, sweep.count, x.shape[-1])))
            continue
        with np.errstate(all="ignore"):  # what overflows is refused by name
            change = h[..., None] * d
            parts.append(integrate(sweep.model, x, change) if k == 0 and sweep.model.coordinates else x + change)
    return sweep.algorithm.value(sweep, parts, sweep.loads_abreast)
