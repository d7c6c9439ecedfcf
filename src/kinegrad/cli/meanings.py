"""The table of ``kinegrad info`` that says what coordinates mean, and which way is positive."""

from __future__ import annotations

from typing import Any

from rich.table import Table

import kinegrad as kg
from kinegrad.cli.console import plain, text_table

__all__ = ["meaning_table"]


def meaning_table(model: kg.Model) -> Table:
    """Of each joint: what a positive value does, its axis in the world where all joints are zero, and its range."""
    import numpy as np

    from kinegrad.samples.meanings import coordinate_meanings

    words = coordinate_meanings(model)
    turned, axes = list[Any](), list[Any]()
    for i, each in enumerate(model.joints):  # products of constants: no kernel has to be compiled for a table
        before = np.eye(3) if model.parents[i] < 0 else turned[model.parents[i]]
        joint = before @ model.placement[i, :3, :3]
        axes.append(joint @ np.asarray(each.axis))
        turned.append(joint @ model.tip[i, :3, :3])
    bounded = bool(np.isfinite(model.position_limits).any())
    table = text_table(["joint", *(["positive", "negative"] if words else []), "axis in the world"], [])
    if bounded:
        table.add_column("range", justify="right")
    for i, name in enumerate(model.joint_names):
        kind = model.joints[i].kind
        verb = {"prismatic": "slides along", "screw": "screws along"}.get(kind, "turns about")
        cells = [name, *(words.get(name, ("", "")) if words else ()), f"{verb} {_direction(axes[i])}"]
        if bounded:
            lower, upper = model.position_limits[i].tolist()
            cells.append(_range(lower, upper, kind))
        table.add_row(*map(plain, cells))
    return table


def _range(lower: float, upper: float, kind: str) -> str:
    import numpy as np

    if not np.isfinite([lower, upper]).any():
        return ""
    if kind == "prismatic":
        return f"{lower:.4g} … {upper:.4g} m"
    return f"{np.degrees(lower):.4g}° … {np.degrees(upper):.4g}°"


def _direction(axis: object) -> str:
    """A direction of the world: a signed letter where it is one."""
    import numpy as np

    x = np.asarray(axis, dtype=float)
    k = int(np.argmax(np.abs(x)))
    if abs(x[k]) > 1 - 1e-9:
        return ("+" if x[k] > 0 else "−") + "xyz"[k]
    return "(" + ", ".join(f"{each + 0.0:.3g}" for each in x.round(12)) + ")"
