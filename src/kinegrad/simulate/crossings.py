"""The first time at which one of several functions of time falls below zero, however short the dip.

Each part of an interval has five equidistant instants, at which the functions f are evaluated.  With the parabola P
through the first, the middle and the last of the values, and the polynomial Q of degree 4 through all five,

    e = max |f − P|  at the other two instants,        f ≥ min Q − e  between them,                                 (1)

where f is resolved, since e is an error of order 3 and that of Q is of order 5.  A part in which (1) does not exclude a
value below zero is halved, until a sample is negative, or the part is resolved to rounding.

Values of smooth motions are resolved by (1) unless bodies turn far between two instants: gaps of points on a body that
turns are trigonometric functions of its angles.  :func:`instants` therefore places instants by the angle turned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.model import Model

__all__ = ["Fall", "first_fall", "instants", "parts_of", "turn_rate"]

Array = NDArray[np.float64]
TURN = 0.25  # largest angle by which joints may turn between two instants, rad
MOST = 10_000  # parts of a step that are looked at
HALVINGS = 40  # of a part, at most
RESOLVED = 1e-13  # part of the largest value: a smaller e is rounding
BLOCK = 256  # parts that are evaluated in one call
FINE = 32  # intervals in each part, at the ends of which Q is evaluated


class Fall(NamedTuple):
    """Two instants, and the functions, (k,), that are not negative at the first and negative at the second."""

    low: float
    high: float
    which: NDArray[np.int64]


def first_fall(values: Callable[[Array], Array], times: Array) -> Fall | None:
    """Return the first fall of functions below zero, or None.

    Parameters
    ----------
    values : callable
        f of increasing times, (k,) → (k, functions).  Where f is not known, such as directly after a start at zero, it
        is NaN, which stands for the next value that is known.  A function that is negative at the second of `times`
        has fallen after the first, whatever its value there.
    times : ndarray, shape (4 parts + 1,)
        Equidistant in each part.

    Examples
    --------
    >>> first_fall(lambda t: (t[:, None] - 0.1234) ** 2 - 1e-10, np.linspace(0.0, 1.0, 5)) is None
    False
    >>> first_fall(lambda t: (t[:, None] - 0.1234) ** 2 + 1e-10, np.linspace(0.0, 1.0, 5)) is None
    True
    """
    for first in range(0, len(times) - 1, 4 * BLOCK):
        some = times[first : first + 4 * BLOCK + 1]
        found = values(some)
        least = found.min(axis=0)
        if (least > found.max(axis=0) - least).all():  # they change by less than what is left; not of NaN
            continue
        each = 4 * np.arange((len(some) - 1) // 4)[:, None] + np.arange(5)
        fall = _refined(values, some[each], found[each], started=first > 0)
        if fall is not None:
            return fall
    return None


def _refined(values: Callable[[Array], Array], t: Array, f: Array, *, started: bool) -> Fall | None:
    """The first fall in parts, (parts, 5), with values, (parts, 5, functions)."""
    for halving in range(HALVINGS + 1):
        known = _known(f)
        negative = known < 0.0
        if not started:
            negative[0, 0] &= negative[0, 1]
        begun = negative.any(axis=(1, 2))
        count = int(np.argmax(begun)) + 1 if begun.any() else len(t)  # parts after the first fall do not matter
        t, f, known, negative = t[:count], f[:count], known[:count], negative[:count]
        open_ = _unresolved(known, negative)
        if halving == HALVINGS or not open_.any():
            break
        keep = open_.copy()
        keep[-1] |= begun.any()
        if not started and not keep[0]:
            started = True
        t, f = _halved(values, t[keep], f[keep], open_[keep])
    if not negative.any():
        return None
    part = int(np.argmax(negative.any(axis=(1, 2))))
    seen = negative[part] & ~np.isnan(f[part])
    at = max(int(np.argmax(seen.any(axis=1))), 1)
    return Fall(float(t[part, at - 1]), float(t[part, at]), np.flatnonzero(seen[at]))


def _known(f: Array) -> Array:
    """Values in which each NaN is replaced by the next value of its part; 1 if there is none."""
    lost = np.isnan(f)
    if not lost.any():
        return f.copy()
    f = f.copy()
    f[:, -1] = np.where(lost[:, -1], 1.0, f[:, -1])
    for k in range(3, -1, -1):
        f[:, k] = np.where(lost[:, k], f[:, k + 1], f[:, k])
    return f


_NODES = np.linspace(-1.0, 1.0, 5)
_QUARTIC = np.vander(np.linspace(-1.0, 1.0, FINE + 1), 5) @ np.linalg.inv(np.vander(_NODES, 5))
_PARABOLA = np.vander(_NODES[[1, 3]], 3) @ np.linalg.inv(np.vander(_NODES[[0, 2, 4]], 3))


def _unresolved(f: Array, negative: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which parts may be negative between their instants, before the first at which one is: (1)."""
    e = np.abs(f[:, 1::2] - _PARABOLA @ f[:, ::2]).max(axis=1, initial=0.0)
    fine = _QUARTIC @ f
    rounding = RESOLVED * np.abs(f).max(axis=1, initial=0.0)
    least = _least(fine)
    open_ = (least - e < 0.0) & ((e > rounding) | (least < -rounding))
    fallen = negative.any(axis=(1, 2))
    for part in np.flatnonzero(fallen).tolist():
        at = int(np.argmax(negative[part].any(axis=1)))
        before = fine[part, : max(at - 1, 0) * FINE // 4 + 1].min(axis=0) if at else 0.0 * rounding[part]
        others = open_[part] & ~negative[part].any(axis=0)
        open_[part] = others | (negative[part].any(axis=0) & (before < -rounding[part]))
    found: NDArray[np.bool_] = open_.any(axis=1)
    return found


def _least(fine: Array) -> Array:
    """The least value of each column of (parts, instants, functions), by the parabola through three around it."""
    if not fine.size:
        return np.zeros((len(fine), fine.shape[2]))
    at = np.clip(fine.argmin(axis=1), 1, FINE - 1)[:, None]
    y0, y1, y2 = (np.take_along_axis(fine, at + k, axis=1)[:, 0] for k in (-1, 0, 1))
    bend = y2 - 2.0 * y1 + y0
    off = np.where(bend > 0.0, np.abs(y2 - y0), 0.0)
    inside = off < 2.0 * bend
    vertex = y1 - np.where(inside, off**2 / (8.0 * np.where(inside, bend, 1.0)), 0.0)
    return np.asarray(np.minimum(fine.min(axis=1), vertex))


def _halved(
    values: Callable[[Array], Array], t: Array, f: Array, open_: NDArray[np.bool_]
) -> tuple[Array, Array]:  # fmt: skip
    """Parts with both halves in the place of those that are open."""
    middle = (t[open_, :-1] + t[open_, 1:]) / 2
    new = values(middle.ravel()).reshape(*middle.shape, f.shape[-1])
    parts: list[tuple[Array, Array]] = []
    number = 0
    for k, halve in enumerate(open_.tolist()):
        if not halve:
            parts.append((t[k], f[k]))
            continue
        both_t, both_f = np.empty(9), np.empty((9, f.shape[-1]))
        both_t[::2], both_t[1::2], both_f[::2], both_f[1::2] = t[k], middle[number], f[k], new[number]
        parts += [(both_t[:5], both_f[:5]), (both_t[4:], both_f[4:])]
        number += 1
    return np.array([x for x, _ in parts]), np.array([x for _, x in parts])


def turn_rate(model: Model, q: Array, v: Array) -> Array:
    """Sum of the angular speeds of all joints, (...), rad/s, of states without quaternions that are off unit length."""
    joints = model.primitive.joints
    speeds = engine.Expansion(model, {"q": q, "v": v}).v if engine.mapped(model) else v
    turning = np.array([joint.kind != "prismatic" for joint in joints])
    return np.asarray(np.abs(speeds[..., turning]).sum(axis=-1))


def instants(first: float, last: float, rate: float, least: int) -> Array:
    """Times from `first` to `last` in at least `least` parts, between which joints of a total `rate` turn by `TURN`."""
    return np.linspace(first, last, 4 * parts_of(rate * (last - first) / 4, least) + 1)


def parts_of(angle: float, least: int) -> int:
    """Number of parts, `least` to `MOST`, in each of which joints turn by `TURN`, of an angle, rad.

    A motion that turns further in a step is not resolved by it.
    """
    return min(max(least, int(np.ceil(angle / TURN))), MOST) if np.isfinite(angle) else least
