"""OpenSim's motion and storage files, ``.mot`` and ``.sto``: a header, names of columns, one line per instant.

Both headers are read, ``key=value`` (OpenSim) and ``key value`` (SIMM).  If the numbers of rows or columns that they
declare are not those of the labels and lines that follow, there is a warning, and the latter count, as in OpenSim 4.6.
``inDegrees``, or ``Angles are in degrees.`` (OpenSim 1 and 2), says whether angles are in degrees; which columns are
angles only a model knows, so :func:`read_storage` leaves numbers as they are and :meth:`StorageTable.coordinates`
converts what is rotational.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, UnitsWarning, shown
from kinegrad.io.names import HOLD, check_names
from kinegrad.io.number_table import (
    MOST_HEADER,
    Lines,
    check_columns,
    check_times,
    opened,
    rows_of,
    warn_of_declared,
)
from kinegrad.io.units import check_units, like_degrees
from kinegrad.io.whole_file import checked_path, replacing
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["StorageTable", "coordinate_table", "read_storage", "write_storage"]

Array = NDArray[np.float64]
KINDS = (".mot", ".sto")
SENTENCE = "Angles are in"  # in headers of OpenSim 1 and 2
ANGLES = re.compile(r"Angles are in (deg|rad|\w+)", re.IGNORECASE)
UNITS = {"deg": "degrees", "rad": "radians"}


@dataclass(frozen=True, eq=False)
class StorageTable(Result):
    """The columns of a ``.mot`` or ``.sto`` file.

    Parameters
    ----------
    t : ndarray, shape (N,)
        s, increasing.
    names : tuple of str
        Of the k columns besides time.
    values : ndarray, shape (N, k)
        As the file has them; NaN where it has none and that was allowed.
    in_degrees : bool or None
        Whether angles among them are in degrees; None if that is not known.
    title : str
        The first line of the file.
    header : mapping of str to str
        What else the header declares.

    Examples
    --------
    >>> table = StorageTable([0.0, 0.5], ("elbow",), [[10.0], [20.0]], in_degrees=True)
    >>> table.column("elbow")
    array([10., 20.])
    """

    t: Array
    names: tuple[str, ...]
    values: Array
    in_degrees: bool | None = False
    title: str = "Coordinates"
    header: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        set_field = object.__setattr__.__get__(self)
        set_field("t", engine.real("t", self.t))
        set_field("values", engine.real("values", self.values))
        set_field("names", _texts(self.names))
        if self.in_degrees is not None and not isinstance(self.in_degrees, bool | np.bool_):
            raise InputError(f"`in_degrees` is {shown(self.in_degrees)}; expected True, False or None")
        if self.t.ndim != 1 or self.values.shape != (len(self.t), len(self.names)):
            expected = f"({len(self.t)}, {len(self.names)}): instants, and columns"
            raise InputError(f"`values` has shape {self.values.shape}; expected {expected}")
        if not np.isfinite(self.t).all() or not (np.diff(self.t) > 0).all():
            raise InputError("`t` does not increase, or is not finite; expected increasing times")

    def column(self, name: str) -> Array:
        """The numbers of one column, (N,)."""
        if name not in self.names:
            check_names("the table", "column", self.names, [name], others=True)
        return np.array(self.values[:, self.names.index(name)])

    def coordinates(
        self,
        model: Model,
        *,
        motion_types: Mapping[str, str] | None = None,
        defaults: Mapping[str, float] | None = None,
        units: str | None = None,
    ) -> tuple[Array, tuple[str, ...], tuple[str, ...]]:
        """Coordinates q of a model, rad and m.

        Parameters
        ----------
        model : Model
            Without quaternions: their parts have no columns in such files.
        motion_types : dict of str to str, optional
            ``"rotational"``, ``"translational"`` or ``"coupled"`` for coordinates by name, as ``.osim`` files have
            them; without it, coordinates that are angles are rotational.  What is rotational is converted from degrees.
        defaults : dict of str to float, optional
            What to take for coordinates that have no column, rad or m; without it, a missing column is an error.
        units : "deg" or "rad", optional
            Unit of angles if the table does not say it; by default rad.  If the table says another, that is an error.

        Returns
        -------
        q : ndarray, shape (N, nq)
        missing : tuple of str
            Coordinates for which defaults were taken.
        unused : tuple of str
            Columns that are no coordinate of the model.

        Warns
        -----
        UnitsWarning
            If angles that are not in degrees, as far as is known, exceed two full turns; and if nothing is known of
            angles in a file without a version, which OpenSim takes for degrees.  With `units` there is no warning.

        Examples
        --------
        >>> from kinegrad import samples
        >>> table = StorageTable([0.0], ("elbow", "shoulder"), [[90.0, 0.0]], in_degrees=True)
        >>> table.coordinates(samples.two_link())[0].round(4)
        array([[0.    , 1.5708]])
        """
        engine.check_model(model)
        if model.layout.balls:
            raise InputError(f"model {shown(model.name)} has quaternions, which .mot files have no columns for")
        degrees = self._degrees(check_units(units))
        given = dict(defaults or {})
        where, unused = dict[str, int](), list[str]()
        for k, name in enumerate(self.names):
            plain = _coordinate_of(name)
            if plain is None or plain not in model.coordinate_names:
                unused.append(name)
            elif plain in where:
                both = f"{shown(self.names[where[plain]])} and {shown(name)}"
                raise InputError(f"columns {both} are one coordinate; expected it once")
            else:
                where[plain] = k
        missing = [name for name in model.coordinate_names if name not in where]
        check_names(
            "the motion",
            "column",
            [*where, *unused, *(name for name in given if name not in where)],
            model.coordinate_names,
            others=True,
            remedy=HOLD,
        )
        q, angles = np.empty((len(self.t), model.nq)), list[int]()
        for i, (name, kind) in enumerate(zip(model.coordinate_names, model.layout.coordinate_kinds, strict=True)):
            if name not in where:
                q[:, i] = given[name]
                continue
            x = self.values[:, where[name]]
            if not np.isfinite(x).all():
                k = int(np.argmin(np.isfinite(x)))
                raise InputError(f"coordinate {shown(name)} is missing at t = {self.t[k]:g} s; expected a number")
            usual = "translational" if kind == "prismatic" else "rotational"
            turns = (motion_types or {}).get(name, usual) == "rotational"
            angles += [i] * turns
            q[:, i] = np.deg2rad(x) if degrees and turns else x
        if units is None and not degrees:
            self._warn_of_degrees([model.coordinate_names[i] for i in angles], q[:, angles])
        return q, tuple(missing), tuple(unused)

    def _degrees(self, units: str | None) -> bool:
        """Return True if angles are in degrees, by the table or by `units`, which must agree."""
        if self.in_degrees is None or units is None:
            return units == "deg" if self.in_degrees is None else bool(self.in_degrees)
        if (units == "deg") != self.in_degrees:
            said = "degrees (inDegrees=yes)" if self.in_degrees else "radians (inDegrees=no)"
            raise InputError(f"`units` is {shown(units)}, and the table has {said}; expected it without `units`, or "
                             "another header")  # fmt: skip
        return bool(self.in_degrees)

    def _warn_of_degrees(self, names: list[str], angles: Array) -> None:
        """Of angles that are taken for radians, and may be degrees."""
        found, remedy = like_degrees(names, angles), "expected units='deg' (--units deg), or 'rad' if it is right"
        if found:
            said = "does not say its unit" if self.in_degrees is None else "says radians (inDegrees=no)"
            remedy = remedy if self.in_degrees is None else "expected inDegrees=yes, or units='rad' if it is right"
        elif self.in_degrees is None and "version" not in self.header and angles.any():
            found, said = "angles are taken for radians", "says neither their unit nor a version"
            remedy = f"OpenSim takes them for degrees; {remedy}"
        else:
            return
        warnings.warn(f"{found}, and the file {said}; {remedy}", UnitsWarning, stacklevel=3)


def read_storage(path: str | os.PathLike[str], *, missing: bool = False) -> StorageTable:
    """Read a ``.mot`` or ``.sto`` file of OpenSim.

    Parameters
    ----------
    path : path
    missing : bool
        Whether numbers may be missing (``NaN``), as they are in force-plate files while nobody stands on the plate.

    Returns
    -------
    StorageTable

    Raises
    ------
    InputError
        What in which line is wrong, and what was expected.

    Warns
    -----
    RecordingWarning
        If the header declares other numbers of rows or columns than there are; UnitsWarning if it contradicts itself.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "reach.mot")
    ...     write_storage(file, StorageTable([0.0, 0.1], ("elbow",), [[10.0], [20.0]], in_degrees=True))
    ...     read_storage(file).in_degrees
    True
    """
    place = checked_path(path)
    if place.suffix.lower() not in KINDS:
        raise InputError(f"{place}: files of kind {shown(place.suffix)} are unknown here; expected .mot or .sto")
    kind = "the header of a .mot or .sto file"
    try:
        with opened(place, kind) as file:
            lines = Lines(place, file)
            text = iter(lines)
            title, header = _header(lines, text)
            line = next((each for each in text if each.strip()), None)
            if line is None:
                raise lines.wrong("is the last one; expected names of columns after 'endheader'")
            names = [name.strip() for name in line.rstrip("\t ").split("\t")] if "\t" in line else line.split()
            check_columns(lines, names)
            if names[0].lower() != "time":
                raise lines.wrong(f"the first column is {shown(names[0])}; expected 'time'")
            numbers = rows_of(lines, text, names, missing=missing, tabs="\t" in line)
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: is not text: byte {error.start}; expected UTF-8") from None
    for what, found in (("rows", len(numbers)), ("columns", len(names))):
        declared = next((header.pop(key) for key in (f"n{what.title()}", f"data{what}") if key in header), None)
        warn_of_declared(place, what, declared, found)
    check_times(place, numbers[:, 0])
    return StorageTable(numbers[:, 0], tuple(names[1:]), numbers[:, 1:], _in_degrees(place, header), title, header)


def _in_degrees(place: Path, header: dict[str, str]) -> bool | None:
    """What a header says of angles: as ``inDegrees``, or in a sentence; None if nothing."""
    given, sentence = header.pop("inDegrees", None), header.pop(SENTENCE, None)
    if given is not None and given.strip().lower() not in ("yes", "no"):
        raise InputError(f"{place}: inDegrees is {shown(given)}; expected yes or no")
    stated = None if given is None else given.strip().lower() == "yes"
    if sentence is None:
        return stated
    if sentence not in UNITS.values():
        found = f"'Angles are in {sentence}' names an unknown unit"
        warnings.warn(f"{place}: {found}; expected degrees or radians", UnitsWarning, stacklevel=3)
        return stated
    if stated is not None and stated != (sentence == "degrees"):
        found = f"inDegrees is {shown(given)}, and 'Angles are in {sentence}.'"
        warnings.warn(f"{place}: {found}; the former counts, as in OpenSim", UnitsWarning, stacklevel=3)
        return stated
    return sentence == "degrees"


def write_storage(path: str | os.PathLike[str], table: StorageTable) -> None:
    """Write a ``.mot`` or ``.sto`` file that OpenSim and :func:`read_storage` read, to the last bit.

    Parameters
    ----------
    path : path
        Replaced if it exists.
    table : StorageTable

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "hold.sto")
    ...     write_storage(file, StorageTable([0.0], ("elbow_moment",), [[1.5]], title="Inverse Dynamics"))
    ...     print(file.read_text().splitlines()[-1])
    0.0	1.5
    """
    place = checked_path(path)
    if place.suffix.lower() not in KINDS:
        raise InputError(f"{place}: files of kind {shown(place.suffix)} are unknown here; expected .mot or .sto")
    if not isinstance(table, StorageTable):
        raise InputError(f"`table` is a {type(table).__name__}; expected a StorageTable")
    names = ["time", *table.names]
    for name in names:
        if not name or any(c in name for c in "\t\r\n") or name != name.strip():
            raise InputError(f"a column is called {shown(name)}; expected a name without tabs and line breaks")
    head = [
        " ".join(table.title.split()) or "Coordinates",
        "version=1",
        f"nRows={len(table.t)}",
        f"nColumns={len(names)}",
        *([] if table.in_degrees is None else [f"inDegrees={'yes' if table.in_degrees else 'no'}"]),
        *(f"{key}={value}" for key, value in table.header.items() if key != "version"),
        "endheader",
        "\t".join(names),
    ]
    rows = ("\t".join(map(repr, row)) for row in np.column_stack([table.t, table.values]).tolist())
    try:
        with replacing(place) as file:
            for line in (*head, *rows):
                file.write(f"{line}\n".encode())
    except OSError as error:
        raise InputError(f"{place}: cannot be written: {error.strerror or error}") from None


def coordinate_table(model: Model, t: ArrayLike, q: ArrayLike, *, in_degrees: bool = True) -> StorageTable:
    """Coordinates of a model as a table for :func:`write_storage`: angles in degrees, if that is wanted.

    Parameters
    ----------
    model : Model
        Without quaternions.
    t : array_like, shape (N,)
        s.
    q : array_like, shape (N, nq)
        rad and m.
    in_degrees : bool

    Examples
    --------
    >>> from kinegrad import samples
    >>> coordinate_table(samples.two_link(), [0.0], [[0.0, np.pi / 2]]).values
    array([[ 0., 90.]])
    """
    engine.check_model(model)
    if model.layout.balls:
        raise InputError(f"model {shown(model.name)} has quaternions, which .mot files have no columns for")
    x = np.array(engine.real("q", q), dtype=float)
    if x.ndim != 2 or x.shape[1] != model.nq:
        raise InputError(f"`q` has shape {x.shape}; expected (N, {model.nq}): instants, and coordinates")
    if in_degrees:
        turns = [kind != "prismatic" for kind in model.layout.coordinate_kinds]
        x[:, turns] = np.rad2deg(x[:, turns])
    return StorageTable(t, model.coordinate_names, x, in_degrees)  # type: ignore[arg-type]


def _header(lines: Lines, text: Iterator[str]) -> tuple[str, dict[str, str]]:
    """The first line, and what the others declare until 'endheader'."""
    title, header = next(text, "").strip(), dict[str, str]()
    if title.lower() == "endheader":
        return "", header
    if title.startswith("name "):
        title = title[5:].strip()
    elif "=" in title and title.split("=")[0].isidentifier():
        key, value = title.split("=", 1)
        header[key], title = value.strip(), ""
    for line in text:
        if lines.number > MOST_HEADER:
            raise lines.wrong("the header goes on; expected 'endheader' before")
        words = line.strip()
        if words.lower() == "endheader":
            kind = header.get("DataType", "double")
            if kind.lower() != "double":
                raise lines.wrong(f"the file holds {shown(kind)}; expected DataType=double: one number for each column")
            return title, header
        sentence = ANGLES.search(words)
        if sentence:
            key, value = SENTENCE, UNITS.get(sentence[1].lower(), sentence[1])
        elif "=" in words:
            key, value = words.split("=", 1)
        else:
            key, _, value = words.partition(" ")
        key = "inDegrees" if key.strip().lower() == "indegrees" else key.strip()
        if key in ("nRows", "nColumns", "datarows", "datacolumns", "inDegrees", SENTENCE) and key in header:
            raise lines.wrong(f"{key} is declared twice; expected once")
        header[key] = value.strip()
    raise InputError(f"{lines.path}: has no line 'endheader'; expected the header of a .mot or .sto file")


def _coordinate_of(name: str) -> str | None:
    """The coordinate that a column holds: ``knee`` itself, or ``/jointset/knee_r/knee/value``."""
    if not name.startswith("/"):
        return name
    parts = name.strip("/").split("/")
    return parts[-2] if len(parts) >= 2 and parts[-1] == "value" else None


def _texts(names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, list | tuple) or not all(isinstance(x, str) for x in names):
        raise InputError(f"`names` is {shown(names)}; expected the names of columns")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"column {shown(twice)} is there twice; expected once")
    return tuple(names)
