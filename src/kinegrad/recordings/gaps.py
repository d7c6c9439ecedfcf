"""Missing positions of a recording: left out at its ends, filled within, refused where they are too long."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.model import Model

__all__ = ["close_gaps"]

Array = NDArray[np.float64]
FEWEST = 6  # samples of each coordinate


def close_gaps(
    model: Model, t: Array, q: Array, longest: float, made: list[str]
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Times, positions without gaps, and which of them are filled; `made` gets a line for all that was done.

    Angles that jump by whole turns, and quaternions by their sign, are made continuous first.
    """
    known = ~np.isnan(q)
    for _, k, _ in model.layout.balls:
        known[:, k : k + 4] = known[:, k : k + 4].all(axis=1, keepdims=True)  # a quaternion in part is none
    for i, name in enumerate(model.coordinate_names):
        if known[:, i].sum() < FEWEST:
            found = f"is missing at all but {known[:, i].sum()} of {len(t)} times"
            raise InputError(f"`q` of {shown(name)} {found}; expected at least {FEWEST}")
    first = int(max(np.argmax(known[:, i]) for i in range(q.shape[1])))
    last = int(min(len(t) - np.argmax(known[::-1, i]) for i in range(q.shape[1])))
    if last - first < FEWEST:
        found = f"are there together at {max(last - first, 0)} times"
        raise InputError(f"all columns of `q` {found}; expected at least {FEWEST} from the first to the last")
    for count, which, when in ((first, "first", t[first]), (len(t) - last, "last", t[last - 1])):
        if count:
            side = "start" if which == "first" else "end"
            made.append(f"t: the {which} {count} times left out, where coordinates are missing; {side} at {when:g} s")
    t, q, known = t[first:last], q[first:last].copy(), known[first:last]
    _continue_turns(model, q, known, made)
    for i, name in enumerate(model.coordinate_names):
        if not known[:, i].all():
            _fill(t, q[:, i], known[:, i], longest, name, made)
    return t, q, ~known


def _continue_turns(model: Model, q: Array, known: NDArray[np.bool_], made: list[str]) -> None:
    """Angles without jumps of whole turns, quaternions without changes of sign; in place."""
    layout = model.layout
    for i in layout.plain_q:
        if layout.coordinate_kinds[i] != "revolute":
            continue
        x = q[known[:, i], i]
        smooth = np.unwrap(x)
        jumps = int(np.count_nonzero(np.abs(np.diff(smooth - x)) > 1))
        if jumps:
            q[known[:, i], i] = smooth
            what = "jump" if jumps == 1 else "jumps"
            made.append(f"q.{layout.coordinate_names[i]}: {jumps} {what} of a whole turn removed")
    for _, k, _ in layout.balls:
        rows = np.flatnonzero(known[:, k])
        u = q[rows, k : k + 4]
        against = (u[1:] * u[:-1]).sum(axis=1) < 0
        q[rows, k : k + 4] = u * np.concatenate([[1.0], np.cumprod(np.where(against, -1.0, 1.0))])[:, None]


def _fill(t: Array, x: Array, known: NDArray[np.bool_], longest: float, name: str, made: list[str]) -> None:
    """Fill the gaps of one coordinate by a cubic spline through what is there; in place."""
    from scipy.interpolate import CubicSpline

    there = t[known]
    gap = np.where(np.diff(np.flatnonzero(known)) > 1, np.diff(there), 0.0)
    k = int(np.argmax(gap))
    if gap[k] > longest:
        found = f"from {there[k]:g} to {there[k + 1]:g} s, longer than `longest_gap` = {longest:g} s"
        raise InputError(f"`q` of {shown(name)} is missing {found}; expected a shorter gap, or the parts one by one")
    x[~known] = CubicSpline(there, x[known])(t[~known])
    count = f"{np.count_nonzero(~known)} of {len(t)} missing"
    made.append(f"q.{name}: {count}, filled by a cubic spline (longest gap {gap[k]:.3g} s)")
