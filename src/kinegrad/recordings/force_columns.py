"""Columns of a table of forces: which of them are the force, the point and the free moment of which plate.

A name is taken apart into a stem and an axis: ``ground_force_v·x``, ``1_ground_torque_·y``, ``ground_force_1_p·z``,
``F·x·1`` (a number behind the axis belongs to the stem), ``f1_·2`` (axes 1, 2, 3, as OpenSim writes C3D files).  A stem
says what it is of by its last word or letter (force, v, f; cop, p; torque, moment, m, t), or else by a word in it; what
is left of it without such words is the plate: ``ground``, ``1_ground``, ``ground_1``, ``1``.

In an ``ExternalLoads`` file, and in `columns`, an *identifier* stands for three columns: its own name with x, y, z
behind it, or else, as in OpenSim, the three columns whose names begin with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kinegrad.errors import InputError, shown
from kinegrad.io.names import check_names

__all__ = [
    "QUANTITIES",
    "PlateColumns",
    "check_unused",
    "columns_of_identifier",
    "listed",
    "mapped_plates",
    "named_plates",
]

Three = tuple[str | None, str | None, str | None]
QUANTITIES = ("force", "point", "torque")
WORDS = {
    "point": r"cent(?:er|re)_?of_?pressure|cop|point",
    "torque": r"free_?(?:moment|torque)|moment|torque",
    "force": r"force|grf",
}
LETTERS = {"v": "force", "f": "force", "p": "point", "m": "torque", "t": "torque"}
AXIS = re.compile(r"(?P<stem>.*?)(?P<axis>[xyz])(?P<number>[_ .]?[0-9]+)?", re.IGNORECASE | re.DOTALL)
C3D_AXIS = re.compile(r"(?P<stem>[fpm][0-9]+)_(?P<axis>[123])", re.IGNORECASE)
SEPARATORS = "_-. :"
PLATE = 6  # columns of a plate at least: force and point
SHOWN = 24  # names in a message


@dataclass
class PlateColumns:
    """The columns of one plate; None where the table has none, which count as zero."""

    name: str
    force: Three
    point: Three
    torque: Three = (None, None, None)

    @property
    def used(self) -> set[str]:
        """Names of all its columns."""
        return {name for part in (self.force, self.point, self.torque) for name in part if name is not None}


@dataclass
class Stem:
    """Columns whose names differ by their axis alone."""

    kind: str
    start: str
    plate: str
    axes: dict[str, str] = field(default_factory=dict)

    @property
    def three(self) -> Three:
        """Names of the columns of x, y, z; None where there is none."""
        x, y, z = (self.axes.get(axis) for axis in "xyz")
        return x, y, z

    @property
    def complete(self) -> bool:
        """True if all three axes are there."""
        return len(self.axes) == 3


def named_plates(names: Sequence[str]) -> list[PlateColumns]:
    """Plates whose columns are recognised by their names, in the order of the file.

    >>> [plate.name for plate in named_plates(["Fx1", "Fy1", "Fz1", "Px1", "Py1", "Pz1", "Mz1"])]
    ['F1']
    """
    stems = _stems(names)
    found = []
    for stem in stems:
        if stem.kind != "force" or not stem.complete:
            continue
        point, torque = (
            [each for each in stems if (each.kind, each.plate) == (kind, stem.plate)] for kind in ("point", "torque")
        )
        same = [each.start for each in stems if each.complete and (each.kind, each.plate) == ("force", stem.plate)]
        for what, starts in (("force", same), *((k, [each.start for each in s]) for k, s in
                                                (("point", point), ("torque", torque)))):  # fmt: skip
            if len(starts) > 1:
                several = " and ".join(shown(name) for name in starts)
                raise InputError(f"columns {several} are both the {what} of one plate by their names; {MAP}")
        if not point or not point[0].complete:
            raise InputError(f"plate {shown(stem.start)} has columns of its force, and no three of its point; {MAP}")
        found.append(
            PlateColumns(stem.start, stem.three, point[0].three, torque[0].three if torque else PlateColumns.torque)
        )
    return found


MAP = (
    "expected names such as ground_force_vx … vz, ground_force_px … pz, ground_torque_x … z, or "
    "`columns={plate: {'force': …, 'point': …, 'torque': …}}` (--columns PLATE=FORCE,POINT,TORQUE), by what the names "
    "of three columns begin with"
)


def check_unused(names: Sequence[str], found: Sequence[PlateColumns], mapped: bool) -> list[str]:
    """Columns that no plate uses; refused if they may be a plate, unless columns were mapped by hand."""
    used = set().union(*(plate.used for plate in found)) if found else set[str]()
    unused = [name for name in names if name not in used]
    if mapped:
        return unused
    if not found:
        raise InputError(f"no columns of forces are found among {listed(names)}; {MAP}")
    lost = [stem for stem in _stems(unused) if stem.kind == "force"]
    if lost or len(unused) >= PLATE:
        plates = ", ".join(shown(plate.name) for plate in found)
        what = f"{len(unused)} columns belong to no plate that is found ({plates})"
        raise InputError(f"{what}: {listed(unused)}; {MAP}; or `columns={{}}` (--columns none) if they are no plate")
    return unused


def check_apart(found: Sequence[PlateColumns]) -> None:
    """Refuse plates of one name, and columns that are used twice."""
    plates, columns = set[str](), dict[str, str]()
    for plate in found:
        if plate.name in plates:
            raise InputError(f"two plates are called {shown(plate.name)}; expected another name in `columns`")
        plates.add(plate.name)
        for what, three in (("force", plate.force), ("point", plate.point), ("torque", plate.torque)):
            for name in (name for name in three if name is not None):
                use = f"the {what} of plate {shown(plate.name)}"
                if name in columns:
                    raise InputError(f"column {shown(name)} is used for {columns[name]} and for {use}; expected once")
                columns[name] = use


def mapped_plates(names: Sequence[str], columns: Any) -> list[PlateColumns]:
    """Plates as the argument `columns` has them."""
    if not isinstance(columns, Mapping):
        raise InputError(f"`columns` is {shown(columns)}; expected a dictionary of plates")
    found = []
    for plate, parts in columns.items():
        where = f"`columns[{shown(plate)}]`"
        if not isinstance(plate, str) or not isinstance(parts, Mapping):
            raise InputError(
                f"{where} is {shown(parts)}; expected {{'force': …, 'point': …}}, and 'torque' if there is"
            )
        check_names(where, "quantity", list(parts), ["force", "point"], optional=["torque"])
        three = {what: _mapped(names, f"{where}[{shown(what)}]", part) for what, part in parts.items()}
        found.append(PlateColumns(plate, **three))
    return found


def _mapped(names: Sequence[str], where: str, part: Any) -> Three:
    if isinstance(part, str):
        three = columns_of_identifier(names, part)
        if three is None:
            begun = [name for name in names if name.startswith(part)]
            what = f"names {len(begun)} columns ({listed(begun)})" if begun else "names no column"
            raise InputError(f"{where} is {shown(part)}, which {what}; expected three of {listed(names)}")
        return three
    if not isinstance(part, tuple | list) or len(part) != 3 or not all(x is None or isinstance(x, str) for x in part):
        raise InputError(f"{where} is {shown(part)}; expected what three names begin with, or three names (or None)")
    for name in part:
        if name is not None:
            check_names("the table", "column", names, [name], others=True)
    x, y, z = part
    return x, y, z


def columns_of_identifier(names: Sequence[str], identifier: str) -> Three | None:
    """The three columns that an identifier stands for: by x, y, z where they end so; None if there are not three.

    >>> columns_of_identifier(["f_vz", "f_vx", "f_vy", "f_p1", "f_p2", "f_p3"], "f_p")
    ('f_p1', 'f_p2', 'f_p3')
    """
    there = set(names)
    exact = tuple(f"{identifier}{x}" for x in "xyz")
    if not there.issuperset(exact):
        begun = [name for name in names if name.startswith(identifier)]
        if len(begun) != 3:
            return None
        ends = [name[-1].lower() for name in begun]
        exact = tuple(begun[ends.index(x)] for x in "xyz") if sorted(ends) == ["x", "y", "z"] else tuple(begun)
    x, y, z = exact
    return x, y, z


def listed(names: Sequence[str]) -> str:
    """Names in a message."""
    return ", ".join(map(shown, names[:SHOWN])) + (f", … ({len(names)} in all)" if len(names) > SHOWN else "")


# --- names ------------------------------------------------------------------------------------------------------------


def _stems(names: Sequence[str]) -> list[Stem]:
    """Names by stems that say what they are of."""
    parts: dict[tuple[str, str], dict[str, str]] = {}
    for name in names:
        match = C3D_AXIS.fullmatch(name) or AXIS.fullmatch(name)
        if match is None:
            continue
        axis = match["axis"].lower()
        axis = axis if axis in "xyz" else "xyz"[int(axis) - 1]
        parts.setdefault((match["stem"], match.groupdict().get("number") or ""), {}).setdefault(axis, name)
    beginnings = {stem for stem, _ in parts}
    found = []
    for (stem, number), axes in parts.items():
        kind, rest = _kind(stem, beginnings)
        if kind:
            plate = re.sub("|".join(WORDS.values()), "", f"{rest}{number}".lower())
            plate = "_".join(part for part in re.split(f"[{re.escape(SEPARATORS)}]+", plate) if part)
            found.append(Stem(kind, f"{rest}{number}" if rest else f"{stem}{number}", plate, axes))
    return found


def _kind(stem: str, beginnings: set[str]) -> tuple[str, str]:
    """What a stem is of, and the stem without the letter that says so; ("", …) if it says nothing."""
    plain = stem.rstrip(SEPARATORS).lower()
    for kind, words in WORDS.items():
        if re.search(f"(?:{words})$", plain):
            return kind, stem
    letter, before = plain[-1:], plain[-2:-1]
    alone = not before or before in SEPARATORS or before.isdigit()
    paired = any(stem[:-1] + other in beginnings for other in ("p" if letter == "v" else "v"))
    if letter in LETTERS and (alone or paired):
        return LETTERS[letter], stem.rstrip(SEPARATORS)[:-1]
    match = re.fullmatch(r"([fpm])([0-9]+)", plain)
    if match:
        return LETTERS[match[1]], match[2]
    for kind in ("torque", "point", "force"):
        if re.search(WORDS[kind], plain):
            return kind, stem
    return "", stem
