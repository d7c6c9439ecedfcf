"""Marker trajectories: :class:`Markers`, and ``.trc`` files in and out.

A ``.trc`` file has a header of five lines (rates, numbers of frames and markers, units; names; X1 Y1 Z1 …), then a line
per frame: its number, time, three coordinates of each marker, separated by tabs.  A marker that was not seen has empty
cells or NaN; here it is NaN in all three.  Lengths are converted to metres.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.io.names import check_names
from kinegrad.io.number_table import Lines, check_columns, check_times, opened, rows_of, warn_of_declared
from kinegrad.io.whole_file import checked_path, replacing
from kinegrad.results import Result

__all__ = ["Markers", "read_trc", "write_trc"]

Array = NDArray[np.float64]
METRES = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "millimeters": 1e-3, "meters": 1.0, "millimetres": 1e-3, "metres": 1.0}
MOST_MARKERS = 100_000


@dataclass(frozen=True, eq=False)
class Markers(Result):
    """Positions of k markers at N instants.

    Parameters
    ----------
    t : array_like, shape (N,)
        s, increasing.
    names : tuple of str, k of them
    position : array_like, shape (N, k, 3)
        World, m; NaN where a marker was not seen.

    Examples
    --------
    >>> seen = Markers([0.0, 0.1], ("hip", "knee"), np.zeros((2, 2, 3)))
    >>> seen.select(["knee"]).position.shape
    (2, 1, 3)
    """

    t: Array
    names: tuple[str, ...]
    position: Array

    def __post_init__(self) -> None:
        set_field = object.__setattr__.__get__(self)
        t, position = engine.real("t", self.t), engine.real("position", self.position)
        names: Any = self.names
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise InputError(f"`names` is {shown(names)}; expected names of markers")
        if len(set(names)) != len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise InputError(f"marker {shown(twice)} is there twice; expected once")
        if t.ndim != 1 or position.shape != (len(t), len(names), 3):
            expected = f"({len(t)}, {len(names)}, 3): instants, markers, x y z"
            raise InputError(f"`position` has shape {position.shape}; expected {expected}")
        if not np.isfinite(t).all() or not (np.diff(t) > 0).all():
            raise InputError("`t` does not increase, or is not finite; expected increasing times")
        if np.isinf(position).any():
            raise InputError("`position` has infinite numbers; expected finite ones, NaN where a marker was not seen")
        partly = np.isnan(position).any(axis=-1) & ~np.isnan(position).all(axis=-1)
        if partly.any():
            i, k = np.argwhere(partly)[0]
            raise InputError(f"marker {shown(names[k])} has some of x, y, z at instant {i}; expected all, or none")
        set_field("t", t)
        set_field("names", tuple(names))
        set_field("position", position)

    def select(self, names: Sequence[str]) -> Markers:
        """Some of the markers, in this order."""
        check_names("the recording", "marker", self.names, list(names), others=True)
        return Markers(self.t, tuple(names), self.position[:, [self.names.index(name) for name in names]])

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether each marker was seen, (N, k)."""
        return ~np.isnan(self.position[..., 0])


def read_trc(path: str | os.PathLike[str]) -> Markers:
    """Read marker trajectories from a ``.trc`` file.

    Parameters
    ----------
    path : path

    Returns
    -------
    Markers
        In metres; NaN where a marker was not seen.

    Warns
    -----
    RecordingWarning
        If the header declares another number of frames than there are.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "walk.trc")
    ...     write_trc(file, Markers([0.0, 0.01], ("hip", "knee"), np.ones((2, 2, 3))))
    ...     read_trc(file).names
    ('hip', 'knee')
    """
    place = checked_path(path)
    try:
        with opened(place, "the header of a .trc file") as file:
            lines = Lines(place, file)
            text = iter(lines)
            first, keys, values, heads = (next(text, "") for _ in range(4))
            if not first.startswith("PathFileType"):
                raise InputError(f"{place}, line 1: is {shown(first[:40])}; expected 'PathFileType 4 (X/Y/Z) …'")
            table = dict(zip(keys.split(), values.split(), strict=False))
            frames, count = (_whole(place, table, key) for key in ("NumFrames", "NumMarkers"))
            unit = table.get("Units", "").lower()
            if unit not in METRES:
                raise InputError(f"{place}, line 3: Units is {shown(table.get('Units'))}; expected mm, cm or m")
            names = [cell.strip() for cell in heads.split("\t")]
            if [name.lower() for name in names[:2]] != ["frame#", "time"]:
                raise InputError(f"{place}, line 4: begins with {shown(names[:2])}; expected 'Frame#' and 'Time'")
            names = [name for name in names[2:] if name]
            if len(names) != count:
                raise InputError(f"{place}: declares {count} markers and names {len(names)}; expected as many")
            check_columns(lines, names)
            axes = [cell.strip() for cell in next(text, "").split("\t") if cell.strip()]
            if any(cell[:1].upper() != "XYZ"[k % 3] for k, cell in enumerate(axes)) or len(axes) not in (0, 3 * count):
                raise lines.wrong(f"begins with {shown(axes[:3])}; expected X1, Y1, Z1, …: three for each marker")
            columns = ["Frame#", "Time", *(f"{name}.{x}" for name in names for x in "XYZ")]
            numbers = rows_of(lines, text, columns, missing=True, tabs=True)
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: is not text: byte {error.start}; expected UTF-8") from None
    warn_of_declared(place, "frames", str(frames), len(numbers))
    t = numbers[:, 1]
    if np.isnan(numbers[:, :2]).any():
        raise InputError(f"{place}: a frame has no number or no time; expected both in every line")
    check_times(place, t)
    try:
        return Markers(t, tuple(names), numbers[:, 2:].reshape(len(t), -1, 3) * METRES[unit])
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def write_trc(path: str | os.PathLike[str], markers: Markers) -> None:
    """Write marker trajectories as a ``.trc`` file, in metres; what was not seen is left empty.

    Parameters
    ----------
    path : path
        Replaced if it exists.
    markers : Markers

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "walk.trc")
    ...     write_trc(file, Markers([0.0, 0.01], ("hip",), np.ones((2, 1, 3))))
    ...     print(file.read_text().splitlines()[2].split()[4])
    m
    """
    place = checked_path(path)
    if not isinstance(markers, Markers):
        raise InputError(f"`markers` is a {type(markers).__name__}; expected Markers(t, names, position)")
    for name in markers.names:
        if not name or any(c in name for c in "\t\r\n") or name != name.strip():
            raise InputError(f"a marker is called {shown(name)}; expected a name without tabs and line breaks")
    n, k = markers.position.shape[:2]
    rate = (n - 1) / (markers.t[-1] - markers.t[0]) if n > 1 else 1.0
    rates = f"{rate:.10g}"
    keys = "DataRate CameraRate NumFrames NumMarkers Units OrigDataRate OrigDataStartFrame OrigNumFrames"
    head = [
        f"PathFileType\t4\t(X/Y/Z)\t{place.name}",
        "\t".join(keys.split()),
        "\t".join([rates, rates, str(n), str(k), "m", rates, "1", str(n)]),
        "\t".join(["Frame#", "Time", *(x for name in markers.names for x in (name, "", ""))]),
        "\t".join(["", "", *(f"{x}{i}" for i in range(1, k + 1) for x in "XYZ")]),
        "",
    ]
    try:
        with replacing(place) as file:
            for line in head:
                file.write(f"{line}\n".encode())
            for i, (t, row) in enumerate(
                zip(markers.t.tolist(), markers.position.reshape(n, -1).tolist(), strict=True)
            ):
                cells = ["" if x != x else repr(x) for x in row]
                file.write("\t".join([str(i + 1), repr(t), *cells, "\n"]).encode())
    except OSError as error:
        raise InputError(f"{place}: cannot be written: {error.strerror or error}") from None


def _whole(place: Any, table: dict[str, str], key: str) -> int:
    text = table.get(key, "")
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise InputError(f"{place}, line 3: {key} is {shown(text)}; expected a whole number of at least 1")
    if key == "NumMarkers" and int(text) > MOST_MARKERS:
        raise InputError(f"{place}, line 3: {key} is {text}; expected at most {MOST_MARKERS}")
    return int(text)
