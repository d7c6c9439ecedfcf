"""Joints of a model as tables of TOML, and back.

A table is a joint and the link that it moves.  A joint of several primitives (spherical, universal, planar, free) is
one table if it is exactly what :class:`ModelBuilder` makes of it; otherwise each primitive has its own.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np

from kinegrad.io.toml.parts import placement_value, read_body, read_placement, same_bits
from kinegrad.io.toml.tables import Table
from kinegrad.model import DH, Joint, Model, free, planar, prismatic, revolute, screw, spherical, universal
from kinegrad.model.coordinates import POSE, Quaternion
from kinegrad.model.dh import VARIABLES, DHTable
from kinegrad.model.joints import BallJoint
from kinegrad.model.placement import unit_axis

__all__ = ["JointEntry", "dh_table", "joint_tables", "read_joint"]

KINDS = ("revolute", "prismatic", "screw", "spherical", "universal", "planar", "free")
SPECIAL = {"position_limits": (-np.inf, np.inf), "velocity_limits": np.inf, "effort_limits": np.inf}
NUMBERS = ("position_limits", "velocity_limits", "effort_limits", "stiffness", "rest", "damping", "armature")
_ROW = ("theta", "d", "a", "alpha", "pitch")


# --- writing ----------------------------------------------------------------------------------------------------


def joint_tables(model: Model) -> tuple[list[dict[str, Any]], list[Quaternion]]:
    """A table of each joint, and the quaternions that none of them stands for."""
    tables, i, told = list[dict[str, Any]](), 0, list[Quaternion]()
    while i < model.n:
        group = _group(model, i)
        table, count = group if group is not None else (_single(model, i), 1)
        if group is not None and table.get("quaternion"):
            told += [x for x in model.coordinates if isinstance(x, Quaternion) and i <= x.first < i + count]
        tables.append(table)
        i += count
    quaternions = [x for x in model.coordinates if isinstance(x, Quaternion)]
    return tables, [x for x in quaternions if x not in told]


def _single(model: Model, i: int) -> dict[str, Any]:
    joint, row = model.joints[i], None if model.dh is None else model.dh.rows[i]
    table: dict[str, Any] = {"name": model.joint_names[i]}
    if row is None or _bits(joint) != _bits(row.joint()):
        if joint.kind != "revolute" or row is not None:
            table["type"] = joint.kind
        table["axis"] = _axis_value(joint)
        if joint.kind == "screw":
            table["pitch"] = joint.pitch
        if joint.label:
            table["label"] = joint.label
    P, F = np.eye(4), np.eye(4)
    table |= _ends(model, i, i)
    if row is not None and model.dh is not None:
        numbers = {what: getattr(row, what) for what in _ROW}
        table["dh"] = {what: x for what, x in numbers.items() if not same_bits(x, 0.0)}
        if row.variable != "theta":
            table["dh"]["variable"] = row.variable
        P, F = row.placement(model.dh.convention)
    for key, own, expected in (("placement", model.placement[i], P), ("tip", model.tip[i], F)):
        if not same_bits(own, expected):
            value = placement_value(own)
            table[key] = [0.0, 0.0, 0.0] if value is None else value
    return table | _body(model, i) | _numbers(model, i, i + 1, 0)


def _group(model: Model, i: int) -> tuple[dict[str, Any], int] | None:
    """The joint of several primitives that begins at i, and how many it has."""
    base = model.joint_names[i].rpartition(".")[0]
    if not base:
        return None
    for count in (9, 6, 3, 2):
        end = i + count
        found = _composites().get(tuple(map(_bits, model.joints[i:end]))) if end <= model.n else None
        for kind, words, primitives in found or ():
            ball = isinstance(primitives, BallJoint)
            names = [f"{base}.{p.label or k}" for k, p in enumerate(primitives)]
            if ball != (Quaternion(base, end - 6) in model.coordinates) or not _strung(model, i, end, names):
                continue
            numbers = _numbers(model, i, end, POSE if ball else 0)
            if ball and not _no_numbers(model, end - 6, end - 3):
                continue
            table: dict[str, Any] = {"name": base, "type": kind, **words, **_ends(model, i, end - 1)}
            for key, T in (("placement", model.placement[i]), ("tip", model.tip[end - 1])):
                if (value := placement_value(T)) is not None:
                    table[key] = value
            return table | _body(model, end - 1) | numbers, count
    return None


def _strung(model: Model, i: int, end: int, names: list[str]) -> bool:
    """Whether the joints from i to end are one after another, nothing between them, with these names."""
    rows = [] if model.dh is None else model.dh.rows[i:end]
    eye, inner = np.eye(4), slice(i, end - 1)
    return (
        list(model.joint_names[i:end]) == names
        and list(model.link_names[inner]) == names[:-1]
        and all(row is None for row in rows)
        and all(int(model.parents[j]) == j - 1 for j in range(i + 1, end))
        and all(same_bits(T, eye) for T in (*model.placement[i + 1 : end], *model.tip[inner]))
        and not any(np.signbit(x).any() or np.any(x) for x in (model.mass[inner], model.com[inner]))
        and not model.inertia[inner].any()
    )


def _ends(model: Model, first: int, last: int) -> dict[str, Any]:
    """What a joint connects: the link before it, and the one that it moves."""
    parent, name = int(model.parents[first]), model.joint_names[last]
    table = {"parent": model.link_names[parent]} if parent >= 0 else {}
    base = name if first == last else name.rpartition(".")[0]
    return table if model.link_names[last] == base else table | {"link": model.link_names[last]}


def _body(model: Model, i: int) -> dict[str, Any]:
    parts = {"mass": model.mass[i], "com": model.com[i], "inertia": model.inertia[i]}
    return {key: x.tolist() for key, x in parts.items() if not same_bits(x, np.zeros(np.shape(x)))}


def _numbers(model: Model, i: int, end: int, pose: int) -> dict[str, Any]:
    """What is not as by default: one value for all primitives if they are the same, else one of each."""
    table: dict[str, Any] = {}
    for what in NUMBERS:
        values = getattr(model, what)[i:end]
        if pose:
            values = np.concatenate([values[: -2 * pose], values[-pose:]])
        if all(same_bits(x, _default(what)) for x in values):
            continue
        table[what] = values[0].tolist() if all(same_bits(x, values[0]) for x in values) else values.tolist()
    return table


def _no_numbers(model: Model, i: int, end: int) -> bool:
    return all(same_bits(x, _default(what)) for what in NUMBERS for x in getattr(model, what)[i:end])


def _default(what: str) -> Any:
    return SPECIAL.get(what, 0.0)


def _axis_value(joint: Joint) -> Any:
    for letter in ("x", "y", "z", "-x", "-y", "-z"):
        if same_bits(joint.axis, unit_axis(letter)):
            return letter
    return list(joint.axis)


def _bits(joint: Joint) -> tuple[Any, ...]:
    return joint.kind, np.array([*joint.axis, joint.pitch]).tobytes(), joint.label


@cache
def _composites() -> dict[tuple[Any, ...], list[tuple[str, dict[str, Any], tuple[Joint, ...]]]]:
    """All joints of several primitives: their kinds and the words that make them, by their primitives."""
    found: dict[tuple[Any, ...], list[tuple[str, dict[str, Any], tuple[Joint, ...]]]] = {}
    letters = ["".join(x) for x in itertools.product("xyz", repeat=3) if x[0] != x[1] != x[2]]
    each: list[tuple[str, dict[str, Any], tuple[Joint, ...]]] = []
    for kind, make in (("spherical", spherical), ("free", free)):
        each += [(kind, {} if x == "zyx" else {"sequence": x}, make(x)) for x in letters]
        each.append((kind, {"quaternion": True}, make(quaternion=True)))
    pairs = ["".join(x) for x in itertools.permutations("xyz", 2)]
    each += [("universal", {} if x == "xy" else {"axes": x}, universal(x)) for x in pairs]
    each += [("planar", {} if x == "z" else {"normal": x}, planar(x)) for x in "xyz"]
    for kind, words, primitives in each:
        found.setdefault(tuple(map(_bits, primitives)), []).append((kind, words, primitives))
    return found


# --- reading ----------------------------------------------------------------------------------------------------


class JointEntry:
    """A joint as it was read: arguments of :meth:`ModelBuilder.add`, and its Denavit–Hartenberg row."""

    def __init__(self, table: Table, convention: str) -> None:
        self.table, self.row = table, None
        self.name: str = table.text("name")
        self.parent: str | None = table.text("parent", None)
        self.link: str = table.text("link", self.name)
        dh = table.table("dh", None)
        placement, tip = (read_placement(table, key) for key in ("placement", "tip"))
        if dh is not None:
            self.row = _read_row(dh)
            P, F = (np.eye(4), np.eye(4)) if self.row is None else self.row.placement(convention)
            placement, tip = P if placement is None else placement, F if tip is None else tip
        self.placement, self.tip = placement, tip
        self.joint = _read_kind(table, self.row)
        self.count = 1 if isinstance(self.joint, Joint) or self.joint is None else len(self.joint)
        self.body = read_body(table)
        self.numbers = _read_numbers(table, self.joint, self.count)
        table.end()

    @property
    def inner(self) -> list[str]:
        """Links between the primitives of a joint of several."""
        return [] if self.count == 1 else [f"{self.name}.{p.label or k}" for k, p in enumerate(self.joint[:-1])]


def read_joint(table: Table, convention: str) -> JointEntry:
    """A joint and the link that it moves; problems stay with the file."""
    return JointEntry(table, convention)


def _read_row(table: Table) -> DH | None:
    before = len(table.file.problems)
    numbers = {what: table.number(what, 0.0) for what in _ROW}
    variable = table.text("variable", "theta", among=VARIABLES)
    table.end()
    row: DH | None = table.guard(DH, variable=variable, **numbers) if len(table.file.problems) == before else None
    return row


def _read_kind(table: Table, row: DH | None) -> Any:
    """The joint, or its primitives; None and a problem if it is wrong."""
    own = {"axis", "pitch", "label", "sequence", "quaternion", "axes", "normal"}
    given = {key for key in own if key in table}
    kind = table.text("type", "revolute", among=KINDS)
    if row is not None and not given and "type" not in table:
        return row.joint()
    takes = {
        "revolute": {"axis", "label"}, "prismatic": {"axis", "label"}, "screw": {"axis", "pitch", "label"},
        "spherical": {"sequence", "quaternion"}, "free": {"sequence", "quaternion"}, "universal": {"axes"},
        "planar": {"normal"},
    }[kind]  # fmt: skip
    for key in sorted(given - takes):
        table.problem(f"is not of a {kind} joint; expected {', '.join(sorted(takes))}", key)
        return None
    if kind in ("revolute", "prismatic", "screw"):
        axis = table.value("axis", "z")
        if not isinstance(axis, str):
            axis = table.numbers("axis", (3,))
            if not np.isfinite(axis).all():
                return None
        label = table.text("label", None)
        if kind == "screw":
            pitch = table.number("pitch")
            joint = table.guard(screw, axis, pitch=pitch) if np.isfinite(pitch) else None
        else:
            joint = table.guard({"revolute": revolute, "prismatic": prismatic}[kind], axis)
        if joint is None or label is None:
            return joint
        return table.guard(Joint, joint.kind, joint.axis, joint.pitch, label)
    words = {key: table.value(key) for key in given}
    make: Any = {"spherical": spherical, "free": free, "universal": universal, "planar": planar}[kind]
    return table.guard(make, **words)


def _read_numbers(table: Table, joint: Any, count: int) -> dict[str, Any]:
    given = count - POSE if isinstance(joint, BallJoint) else count
    found: dict[str, Any] = {}
    for what in NUMBERS:
        last = (2,) if what == "position_limits" else ()
        shapes = (last,) if given == 1 else (last, (given, *last))
        value = table.numbers(what, *shapes, default=None, infinite=what in SPECIAL)
        if value is not None and not np.isnan(value).any():
            found[what] = value
    return found


def dh_table(entries: list[JointEntry], convention: str) -> DHTable | None:
    """The rows of all primitives; None if there are none."""
    rows = [row for entry in entries for row in [entry.row] * entry.count]
    return DHTable(tuple(rows), convention) if any(row is not None for row in rows) else None
