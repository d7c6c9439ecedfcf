"""SI units of the coordinates, speeds, accelerations and forces of joints, by the kind of the joint."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["NUMBER", "joint_units", "kind_units", "printed"]

UNITS = {"q": ("rad", "m"), "v": ("rad s-1", "m s-1"), "a": ("rad s-2", "m s-2"), "tau": ("N m", "N")}

NUMBER = "1"  # of what has no unit


def joint_units(x: str, kinds: Iterable[str]) -> str:
    """What `x` is written in: one unit, or both where some joints turn and some slide.

    >>> joint_units("v", ["revolute", "prismatic"])
    'rad s-1 or m s-1'
    """
    found = {kind_units(x, kind) for kind in kinds}
    return " or ".join(unit for unit in (*UNITS[x], NUMBER) if unit in found)


def kind_units(x: str, kind: str) -> str:
    """The unit of `x` for a joint of this kind; the parts of a quaternion are numbers."""
    return NUMBER if kind == "quaternion" else UNITS[x][kind == "prismatic"]


def printed(unit: str) -> str:
    """A unit as people write it; files have it as UDUNITS does.

    >>> printed("N m or N"), printed("rad s-1")
    ('N·m or N', 'rad/s')
    """
    for power, sign in (("-1", ""), ("-2", "²")):
        unit = unit.replace(f" s{power}", f"/s{sign}")
    return unit.replace("N m", "N·m")
