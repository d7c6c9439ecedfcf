"""The rows of constraints as kernels want them: the tables of ``_kernels/constraint_rows.py``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._kernels.constraint_rows import DIRECTION, PAIR, POINT, ROD
from kinegrad.constraints.descriptions import Constraint, Contact, Coupling, Distance, Given, Loop
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.model.coordinates import HINGES

__all__ = ["Tables", "table_slopes", "tables"]

Array = NDArray[np.float64]
WORLD = -1
# The vectors (a of `link`, b of `other`) of which rotation rows a·b are made, as axes and a sign: the axis that is free
# is that of `link` in both, so that it may turn through all angles; each row is the angle near closure.
_TURNS = {
    "XY": {"X": ("z", "y", -1.0), "Y": ("z", "x", 1.0)},
    "YZ": {"Y": ("x", "z", -1.0), "Z": ("x", "y", 1.0)},
    "XZ": {"X": ("y", "z", 1.0), "Z": ("y", "x", -1.0)},
    "XYZ": {"X": ("z", "y", -1.0), "Y": ("z", "x", 1.0), "Z": ("x", "y", 1.0)},
    "X": {"X": ("z", "y", -1.0)},
    "Y": {"Y": ("z", "x", 1.0)},
    "Z": {"Z": ("x", "y", 1.0)},
}  # fmt: skip


class Tables(NamedTuple):
    """The arrays of a :class:`kinegrad._kernels.constraint_rows.Constraints`, in its order."""

    pair: NDArray[np.int64]
    ends: Array
    kind: NDArray[np.int64]
    vector: Array
    path: NDArray[np.int64]
    joint: NDArray[np.int64]
    ratio: Array


def tables(model: Model, constraints: Sequence[Constraint]) -> Tables:
    """Of constraints of a model, with their names and lengths."""
    return _filled(_Rows(model), constraints)


def table_slopes(model: Model, constraints: Sequence[Constraint], frames: Mapping[str, Array]) -> tuple[Array, Array]:
    """Slopes of `ends` and `vector`, (p, 6 pairs) and (p, 6 rows), where frames vary with slopes (p, 4, 4) by name.

    Both are linear in the placements of frames, so that slopes in their place, and zero for all that does not vary,
    give slopes.
    """
    count = len(next(iter(frames.values())))
    found = [_filled(_Rows(model, {name: x[k] for name, x in frames.items()}), constraints) for k in range(count)]
    return np.array([x.ends.ravel() for x in found]), np.array([x.vector.ravel() for x in found])


def _filled(made: _Rows, constraints: Sequence[Constraint]) -> Tables:
    for constraint in constraints:
        where = f"constraint {shown(constraint.name)}"
        if isinstance(constraint, Contact):
            _contact(made, constraint, where)
        elif isinstance(constraint, Loop):
            _loop(made, constraint, where)
        elif isinstance(constraint, Distance):
            made.pair(where, constraint, (), [(ROD, (constraint.length, 0.0, 0.0), (0.0,) * 3)])
        elif isinstance(constraint, Coupling):
            made.joint(where, constraint.joint, constraint.other, constraint.ratio, constraint.offset)
        else:
            assert isinstance(constraint, Given)
            made.joint(where, constraint.joint, None, 0.0, constraint.value)
    return made.tables()


def _contact(made: _Rows, contact: Contact, where: str) -> None:
    zero = (0.0, 0.0, 0.0)
    made.pair(where, contact, ("common",), [(POINT, zero, u) for u in contact.units])


def _loop(made: _Rows, loop: Loop, where: str) -> None:
    ours, theirs = np.asarray(loop.placement), np.asarray(loop.other_placement)
    turns = _TURNS.get("".join(letter for letter in loop.directions if letter.isupper()), {})
    rows: list[tuple[int, Any, Any]] = []
    for letter in loop.directions:
        if letter.islower():
            rows.append((POINT, np.zeros(3), theirs[:3, "xyz".index(letter)]))
        else:
            a, b, sign = turns[letter]
            rows.append((DIRECTION, ours[:3, "xyz".index(a)], sign * theirs[:3, "xyz".index(b)]))
    made.pair(where, loop, ("turning",), rows, ours[:3, 3], theirs[:3, 3])


class _Rows:
    """Tables in the making, or their slopes: with `slopes` of frames, links and the world count as zero."""

    def __init__(self, model: Model, slopes: Mapping[str, Array] | None = None) -> None:
        self.model, self.slopes, self.count = model, slopes, 0
        self.still = np.eye(4) if slopes is None else np.zeros((4, 4))
        self.pairs, self.ends = list[list[int]](), list[Any]()
        self.kinds, self.vectors, self.path = list[int](), list[Any](), list[int]()
        self.joints, self.ratios = list[list[int]](), list[list[float]]()

    def pair(
        self, where: str, constraint: Any, how: tuple[str, ...], rows: Sequence[tuple[int, Any, Any]],
        point: Any = None, other_point: Any = None,
    ) -> None:  # fmt: skip
        """The rows (kind, a, b or u) of two points; of a contact joints on both paths count, a loop's u turns."""
        (A, ours), (B, theirs) = self._locate(where, constraint.link), (WORLD, self.still)
        if constraint.other is not None:
            B, theirs = self._locate(where, constraint.other)
        if A == B:
            both = f"{shown(constraint.link)} and {shown(constraint.other)}"
            same = f"link {shown(self.model.link_names[A])}" if constraint.link == constraint.other else both
            raise InputError(f"{where} ties {same} to itself, which never moves; expected two links")
        x = ours @ (*(constraint.point if point is None else point), 1.0)
        y = theirs @ (*(constraint.other_point if other_point is None else other_point), 1.0)
        first, self.count = self.count, self.count + len(rows)
        own, others, common = _paths(self.model, A, B)
        meet = common[0] if common else WORLD
        starts = np.cumsum([len(self.path), len(own), len(others), len(common) if "common" in how else 0])
        self.path += own + others + (common if "common" in how else [])
        carrier = B if "turning" in how else WORLD
        self.pairs.append([A, B, carrier, meet, first, self.count, *starts.tolist()])
        self.ends.append([*x[:3], *y[:3]])
        for kind, a, b in rows:
            turned = (ours if kind == DIRECTION else self.still)[:3, :3] @ a
            self.kinds.append(kind)
            self.vectors.append([*turned, *((theirs if "turning" in how else self.still)[:3, :3] @ b)])

    def joint(self, where: str, joint: str, other: str | None, ratio: float, offset: float) -> None:
        """The row of one joint, or of two."""
        numbers = [self._joint(where, joint), WORLD if other is None else self._joint(where, other)]
        self.joints.append([self.count, *numbers])
        self.ratios.append([ratio, offset])
        self.kinds.append(POINT)
        self.vectors.append([0.0] * 6)
        self.count += 1

    def _locate(self, where: str, name: str) -> tuple[int, Array]:
        """The link of a name, and where the frame of that name is in it."""
        try:
            link, placement = self.model.locate(name)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if link in self._inner:
            raise InputError(
                f"{where} is on {shown(name)}, which is inside a ball joint and not a body; expected a link"
            )
        if self.slopes is not None:
            return link, self.slopes.get(name, self.still)
        return link, self.still if placement is None else np.real(placement)  # slopes are of designs alone

    def _joint(self, where: str, name: str) -> int:
        try:
            joint = self.model.joint_index(name)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if any(first <= joint < first + len(HINGES) for first, _, _ in self._balls):
            raise InputError(f"{where} is on {shown(name)}, a hinge inside a ball joint; expected another joint")
        return joint

    @property
    def _balls(self) -> Sequence[tuple[int, int, int]]:
        return self.model.layout.balls if self.model.coordinates else ()

    @property
    def _inner(self) -> set[int]:
        return {first + k for first, _, _ in self._balls for k in range(len(HINGES) - 1)}

    def tables(self) -> Tables:
        whole, real = np.int64, np.float64
        return Tables(
            np.array(self.pairs, whole).reshape(-1, PAIR),
            np.array(self.ends, real).reshape(-1, 6),
            np.array(self.kinds, whole),
            np.array(self.vectors, real).reshape(-1, 6),
            np.array(self.path, whole),
            np.array(self.joints, whole).reshape(-1, 3),
            np.array(self.ratios, real).reshape(-1, 2),
        )


def _paths(model: Model, A: int, B: int) -> tuple[list[int], list[int], list[int]]:
    """Joints that move A alone, B alone, and both; each from the link to the root."""
    ours, theirs = _to_root(model, A), _to_root(model, B)
    both = set(ours) & set(theirs)
    return [j for j in ours if j not in both], [j for j in theirs if j not in both], [j for j in ours if j in both]


def _to_root(model: Model, link: int) -> list[int]:
    path = []
    while link >= 0:
        path.append(link)
        link = int(model.parents[link])
    return path
