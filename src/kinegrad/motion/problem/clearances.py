"""Points that are watched between the nodes: obstacles, floors, paths, and places where they are held.

Their excess is bounded at all times (``point_bounds.py``), and not only at instants.  Of a path that is a function, the
path itself is known at instants alone, and straight between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import Contact, Loop
from kinegrad.motion.problem.kept_rows import Item, bounds_of
from kinegrad.motion.problem.places import Above, Apart, Guided
from kinegrad.motion.problem.point_bounds import Path, Watch, largest_excess
from kinegrad.motion.problem.program import MotionProgram
from kinegrad.motion.problem.variables import phase_numbers

Array = NDArray[np.float64]
INSIDE = 5  # instants that are added for each way through an obstacle


@dataclass(frozen=True, eq=False)
class Seen:
    """Excess of one point in one phase."""

    family: str
    name: str
    s: Array
    over: Array  # at these instants
    bound: float  # at all times


def points_between(program: MotionProgram, p: int, x: Array, s: Array, tolerances: Any) -> Iterator[Seen]:
    """All watched points of a phase."""
    path, parts = path_of(program, p, x), program.parts
    watches = [("kept", watch) for item in parts.parts[p].items for watch in _of_item(item)]
    for number, one in enumerate(parts.requirements):
        if isinstance(one, Above | Apart) and p in phase_numbers(parts.phases, one.phase, type(one).__name__):
            watches.append(("clearance", _of_clearance(one, parts.label_of(one, number))))
    for family, watch in watches:
        first, last = watch.during
        corners = np.array(watch.corners)
        at = np.unique(np.concatenate([s[(s >= first) & (s <= last)], [first, last], corners]))
        if np.isfinite(tolerances[family]):
            yield Seen(family, watch.name, *largest_excess(path, watch, at, tolerances[family]))


def too_near(program: MotionProgram, p: int, x: Array, s: Array, tolerances: Any) -> Array:
    """Instants of a phase at which points are nearer to obstacles than they may be: some on each way through one."""
    found: list[float] = []
    for seen in points_between(program, p, x, s, tolerances):
        outside = seen.over > tolerances[seen.family]
        if seen.family == "clearance" and outside.any():
            edges = np.flatnonzero(np.diff(np.concatenate([[False], outside, [False]]).astype(int)))
            for first, end in edges.reshape(-1, 2):
                before, after = seen.s[max(first - 1, 0)], seen.s[min(end, len(outside) - 1)]
                found += np.linspace(before, after, INSIDE + 2)[1:-1].round(12).tolist()
    return np.unique(found)


def path_of(program: MotionProgram, p: int, x: Array) -> Path:
    """The splines of a phase."""
    part, v = program.parts.parts[p], program.parts.variables.phases[p]
    points, model = np.where(v.points >= 0, x[v.points], v.values), part.model
    if part.design is not None:
        model = part.design.at(np.where(v.parameters >= 0, x[v.parameters], v.parameter_values)).model
    return Path(model, part.phase.basis, v, points, float(program.durations(x)[p]))


def is_watched(item: Item) -> bool:
    """Return True if all rows of an item are bounded at all times."""
    constraint = item.constraint
    return isinstance(constraint, Contact) or (
        isinstance(constraint, Loop) and constraint.other is None and set(constraint.directions) <= set("xyz")
    )


def _of_clearance(one: Above | Apart, name: str) -> Watch:
    if isinstance(one, Above):
        contact = Contact(one.link, one.point, "xyz", one.other, one.other_point, name="watched")
        n, least = np.asarray(one.normal), one.height

        def below(s: Array, e: Array) -> Array:
            return np.asarray(least - e @ n)

        def most_below(s: Array, e: Array, rate: Array, half: Array, A: Array, middle: Array) -> Array:
            return np.asarray(least - np.minimum(e @ n, (e + rate * half[:, None]) @ n) + A * half**2 / 2)

        return Watch(name, contact, one.during, below, most_below)
    contact = Contact(one.link, one.point, "xyz", one.other, one.center, name="watched")
    d, M = one.distance, np.eye(3) if one.axis is None else np.eye(3) - np.outer(one.axis, one.axis)  # type: ignore[arg-type]

    def inside(s: Array, e: Array) -> Array:
        return np.asarray(1 - ((e @ M) ** 2).sum(axis=1) / d**2)

    def most_inside(s: Array, e: Array, rate: Array, half: Array, A: Array, middle: Array) -> Array:
        start, way = e @ M, (rate * half[:, None]) @ M
        long = (way**2).sum(axis=1)
        part = np.clip(-(start * way).sum(axis=1) / np.where(long > 0, long, 1.0), 0.0, 1.0)
        near = np.linalg.norm(start + part[:, None] * way, axis=1) - A * half**2 / 2
        return np.asarray(1 - (np.maximum(near, 0.0) / d) ** 2)

    return Watch(name, contact, one.during, inside, most_inside)


def _of_item(item: Item) -> list[Watch]:
    """Rows that keep a point where it is, or on a path."""
    one = item.constraint
    if len(item.instants) < 2 or not isinstance(one, Contact | Loop):
        return []
    during = getattr(item.source, "during", (0.0, 1.0))
    if isinstance(one, Contact):
        contact = Contact(one.link, one.point, "xyz", one.other, one.other_point, name="watched")
        units, rows = one.units, np.arange(len(one.rows))
    elif one.other is None:
        place, at = np.asarray(one.other_placement), np.asarray(one.placement)[:3, 3]
        contact = Contact(one.link, at, "xyz", None, place[:3, 3], name="watched")
        rows = np.array([k for k, letter in enumerate(one.rows) if letter in "xyz"], dtype=np.int64)
        units = place[:3, :3].T[["xyz".index(one.rows[k]) for k in rows]]
    else:
        return []
    corners: tuple[float, ...] = ()
    if isinstance(item.source, Guided) and not callable(item.source.path):
        inside = np.linspace(float(during[0]), float(during[1]), len(np.asarray(item.source.path)))
        corners = tuple(inside.tolist())

    def bounds(s: Array) -> tuple[Array, Array]:
        lower, upper = bounds_of(item.source, len(one.rows), s.tolist())
        return lower[:, rows], upper[:, rows]

    def watch(k: int) -> Watch:
        def excess(s: Array, e: Array) -> Array:
            (lower, upper), r = bounds(s), e @ units[k]
            return np.asarray(np.maximum(lower[:, k] - r, r - upper[:, k]))

        def most(s: Array, e: Array, rate: Array, half: Array, A: Array, middle: Array) -> Array:
            (lower, upper), (low, up) = bounds(s), bounds(middle)
            r, end = e @ units[k], (e + rate * half[:, None]) @ units[k]
            here = np.maximum(lower[:, k] - r, r - upper[:, k])
            then = np.maximum(low[:, k] - end, end - up[:, k])
            return np.asarray(np.maximum(here, then) + A * half**2 / 2)

        return Watch(f"{item.label} {one.rows[rows[k]]}", contact, during, excess, most, corners)

    return [watch(k) for k in range(len(rows))]
