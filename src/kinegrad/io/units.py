"""Units of what is in files: known ones are converted to rad, m and s, all others are refused by name.

A unit is a product of powers as people write it: ``deg``, ``rad/s``, ``rad s-1``, ``mm s^-2``, ``degrees per second``.
Where some joints turn and others slide there may be one for each kind, ``rad or m``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.model.dh import LARGE_ANGLE
from kinegrad.model.units import NUMBER

__all__ = ["check_units", "default_factor", "joint_factor", "like_degrees", "time_factor"]

RATES = {"q": 0, "v": 1, "a": 2}  # how many times it is differentiated with respect to time


def _spelled(size: float, *names: str) -> dict[str, float]:
    return dict.fromkeys(names, size)


_ANGLES = (
    _spelled(1.0, "rad", "radian", "radians")
    | _spelled(1e-3, "mrad", "milliradian", "milliradians")
    | _spelled(math.pi / 180, "deg", "degs", "degree", "degrees", "°", "arc_degree", "angular_degree")
    | _spelled(2 * math.pi, "rev", "revs", "revolution", "revolutions", "turn", "turns")
)
_LENGTHS = (
    _spelled(1.0, "m", "metre", "metres", "meter", "meters")
    | _spelled(1e-2, "cm", "centimetre", "centimetres", "centimeter", "centimeters")
    | _spelled(1e-3, "mm", "millimetre", "millimetres", "millimeter", "millimeters")
    | _spelled(1e-6, "um", "µm", "μm", "micrometre", "micrometres", "micrometer", "micrometers")
    | _spelled(1e3, "km", "kilometre", "kilometres", "kilometer", "kilometers")
)
_TIMES = (
    _spelled(1.0, "s", "sec", "secs", "second", "seconds")
    | _spelled(1e-3, "ms", "msec", "millisecond", "milliseconds")
    | _spelled(1e-6, "us", "µs", "μs", "microsecond", "microseconds")
    | _spelled(1e-9, "ns", "nanosecond", "nanoseconds")
    | _spelled(60.0, "min", "minute", "minutes")
    | _spelled(3600.0, "h", "hr", "hour", "hours")
    | _spelled(86400.0, "d", "day", "days")
)
_KNOWN = {
    name: (dimension, size)
    for dimension, table in (("angle", _ANGLES), ("length", _LENGTHS), ("time", _TIMES))
    for name, size in table.items()
}
_PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−", "0123456789-+-")
_FACTOR = re.compile(r"\s*(/|per\b|[*·⋅.])?\s*(°|[A-Za-zµμ_]+)(?:(?:\^|\*\*)?([+-]?[0-9]))?", re.ASCII)


def joint_factor(x: str, kind: str, units: str) -> float | None:
    """What turns `x` of a joint of this kind from `units` into SI; None if they do not measure it or are unknown.

    >>> joint_factor("v", "prismatic", "mm/s"), joint_factor("q", "prismatic", "deg")
    (0.001, None)
    """
    if kind == "quaternion":
        return 1.0 if NUMBER in units.split(" or ") else None
    dimension = "length" if kind == "prismatic" else "angle"
    wanted = {dimension: 1, "time": -RATES[x]} if RATES[x] else {dimension: 1}
    return _first(units.split(" or "), wanted)


def check_units(units: Any) -> str | None:
    """The argument `units` of readers: None, "rad" or "deg"."""
    if units is None:
        return None
    if isinstance(units, str) and units in ("rad", "deg"):
        return str(units)
    raise InputError(f"`units` is {shown(units)}; expected 'deg' or 'rad', of angles whose unit the file does not say")


def like_degrees(names: Sequence[str], angles: NDArray[np.float64], which: Any = True) -> str:
    """The largest of some angles, (N, names), rad, if it is beyond two full turns, in words; "" if none is.

    Columns count if they are in `which`, flags for all.

    >>> like_degrees(["knee"], np.array([[0.1], [-60.0]]))
    "'knee' reaches 60 rad, which looks like degrees"
    """
    if not angles.size:
        return ""
    largest = np.fmax(np.fmax.reduce(angles, axis=0), -np.fmin.reduce(angles, axis=0))  # without a copy of them
    largest = np.where(which, np.nan_to_num(largest), 0.0)
    k = int(np.argmax(largest))
    return (
        f"{shown(names[k])} reaches {largest[k]:.4g} rad, which looks like degrees" if largest[k] > LARGE_ANGLE else ""
    )


def default_factor(kind: str, units: str) -> float:
    """What turns angles of a joint of this kind, and their rates, into radians; 1 of what is no angle.

    >>> default_factor("revolute", "deg") == math.pi / 180, default_factor("prismatic", "deg")
    (True, 1.0)
    """
    return math.pi / 180 if units == "deg" and kind not in ("prismatic", "quaternion") else 1.0


def time_factor(units: str) -> float | None:
    """What turns times in `units` into seconds; "since" a date or not.  None if they are no time or unknown.

    >>> time_factor("ms"), time_factor("minutes since 2024-01-01"), time_factor("months")
    (0.001, 60.0, None)
    """
    return _first([units.split(" since ")[0]], {"time": 1})


def _first(alternatives: Sequence[str], wanted: dict[str, int]) -> float | None:
    for text in alternatives:
        size, dimensions = _parse(text)
        if dimensions == wanted:
            return size
    return None


def _parse(text: str) -> tuple[float, dict[str, int] | None]:
    """Size in SI and exponents of angle, length and time; None for exponents if there is an unknown word."""
    text = re.sub(r"\(([+-]?[0-9])\)", r"\1", text.translate(_PLAIN)).replace(" squared", "^2")
    text = re.sub(r"\brpm\b", "rev/min", text).strip()
    size, exponents, place = 1.0, dict[str, int](), 0
    while place < len(text):
        match = _FACTOR.match(text, place)
        name = match[2] if match else ""
        if match is None or (known := _KNOWN.get(name) or _KNOWN.get(name.lower() if len(name) > 2 else "")) is None:
            return 1.0, None
        power = int(match[3] or 1) * (-1 if match[1] in ("/", "per") else 1)
        dimension, one = known
        exponents[dimension] = exponents.get(dimension, 0) + power
        size *= one**power
        place = match.end()
    return size, {name: power for name, power in exponents.items() if power}
