"""Trajectories as CSV: a header, then one line per instant, read and written a block of lines at a time.

A number is decimal, with a point: ``-1``, ``.5``, ``2.5e-3``.  What Python would also take (``1_0``, ``nan``, ``inf``,
digits of other scripts) or other programs write (``0x10``, ``1,5``, ``1d3``) is refused with its line and column,
because a number that is read in another sense than it was meant is worse than none.

Columns may be separated by commas, semicolons or tabs, which is found by what the header then means; where they are not
separated by commas, all numbers may have decimal commas.  The column of times may be called ``t``, ``time``, … in any
case, and ``elbow`` is ``q.elbow``.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, said, shown
from kinegrad.io.names import HOLD, PositionsAloneError, check_names
from kinegrad.io.units import default_factor, joint_factor, time_factor
from kinegrad.model import Model

__all__ = ["read_csv", "write_csv"]

Array = NDArray[np.float64]
BLOCK = 1 << 14  # numbers that are converted, or written, at a time
LINE = 1 << 24  # characters of the longest line that is read
SEPARATORS = (",", ";", "\t")
TIME_NAMES = {"t", "time", "times", "timestamp", "seconds"}  # in any case
MISSING = {"", "nan", "na", "n/a", "null", "none"}  # how gaps are written, in any case
_DECIMAL = re.compile(r"[0-9eE+.\- \t]*")  # with these alone, float() knows decimal numbers only
_UNIT = re.compile(r"(.*?)(?:\[([^\[\]]*)\]|\(([^()]*)\))")


def read_csv(
    path: Path, model: Model, wanted: str = "qva", units: str | None = None, *, partly: bool = False
) -> tuple[dict[str, Any], Sequence[str]]:
    """q, v, a and perhaps t in SI units, in the model's order; and the joints' names.

    Of `wanted` "q" alone, gaps are NaN, and what else there is of v and a is left aside; `partly` leaves columns of
    coordinates that are not in the file NaN.  `units` are of columns whose header says none: "deg" or "rad".
    """
    gaps = wanted == "q"
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = _lines(path, file)
            head = list[str]()
            for line in lines:
                head.append(line)
                if line.strip():
                    break
            if not head or not head[-1].strip():
                raise InputError(f"{path}: is empty; expected a header and one line per instant")
            separator = _separator(head[-1], model)
            reader = csv.reader(chain(head, lines), strict=True, delimiter=separator)
            header = next(row for row in reader if row)
            names, factors = _columns(path, header, model, wanted, units, partly)
            place = {name: k for k, name in enumerate(names)}
            columns_of = {x: [place.get(f"{x}.{name}", -1) for name in model.layout.columns(x)[1]] for x in wanted}
            if "t" in place:
                columns_of["t"] = [place["t"]]
            numbers = {x: array("d") for x in columns_of}
            for block in _blocks(path, reader, names, separator, gaps):
                if factors is not None:
                    block *= factors
                for x, columns in columns_of.items():
                    part = block[:, columns]
                    part[:, np.array(columns) < 0] = np.nan
                    numbers[x].frombytes(part.tobytes())
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: is not a CSV text: {said(error)}") from None
    arrays = {x: np.frombuffer(each).reshape(-1, len(columns_of[x])) for x, each in numbers.items() if each}
    arrays = {x: arrays.get(x, np.empty((0, len(columns)))) for x, columns in columns_of.items()}
    if "t" in arrays:
        arrays["t"] = arrays["t"][:, 0]
        for k in np.flatnonzero(np.isnan(arrays["t"]))[:1]:
            raise InputError(f"{path}: the time of instant {k} is missing; expected a number of seconds")
    return arrays, model.joint_names


def write_csv(file: BinaryIO, model: Model, t: Array | None, values: Mapping[str, Array]) -> None:
    """Write a header and all instants; numbers in as many digits as bring them back to the last bit."""
    header = [f"{x}.{name}" for x in values for name in model.layout.columns(x)[1]]
    columns = [*values.values()]
    if t is not None:
        header, columns = ["t", *header], [t[:, None], *columns]
    odd = any(character in name for name in header for character in '\r\n",')
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL).writerow(header)
    writer = csv.writer(text, lineterminator="\n")
    rows = max(BLOCK // len(header), 1)
    for k in range(0, len(columns[0]), rows):
        writer.writerows(np.hstack([each[k : k + rows] for each in columns]).tolist())
    text.detach()  # what it holds goes to the file, which stays open


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    """The lines of a text, none of them longer than memory should have to hold."""
    while line := file.readline(LINE):
        if len(line) == LINE:
            raise InputError(f"{path}: has a line of more than {LINE} characters; expected one line per instant")
        yield line


def _separator(header: str, model: Model) -> str:
    """What columns are separated by: that with which most names in the header are known, a comma if in doubt."""
    known = {name for x in "qva" for name in (f"{x}.{each}" for each in model.layout.columns(x)[1])}
    known |= {*model.coordinate_names}
    counts = dict[str, tuple[int, int]]()
    for separator in SEPARATORS:
        try:
            cells = [cell.strip() for cell in next(csv.reader([header], delimiter=separator, strict=True), [])]
        except csv.Error:
            continue
        plain = [match[1].rstrip() if (match := _UNIT.fullmatch(cell)) else cell for cell in cells]
        familiar = sum(a in known or b in known or _is_time(b) for a, b in zip(cells, plain, strict=True))
        counts[separator] = familiar, len(cells)
    return max(counts, key=lambda separator: counts[separator], default=",")


def _is_time(name: str) -> bool:
    return name.strip().lower() in TIME_NAMES


def _columns(
    path: Path, header: Sequence[str], model: Model, wanted: str, units: str | None, partly: bool
) -> tuple[list[str], Array | None]:
    """The name of each column, and what turns it into SI units if its header says that it takes that.

    A unit may follow the name in brackets: ``q.elbow [deg]``, ``t (ms)``.  A name without ``q.``, ``v.`` or ``a.`` is
    that of a coordinate.
    """
    kinds = {f"{x}.{name}": (x, kind) for x in "qva" for name, kind in zip(*model.layout.columns(x)[1:], strict=True)}
    bare = {name: f"q.{name}" for name in model.coordinate_names if name not in kinds and not _is_time(name)}
    names, factors = list[str](), np.ones(len(header))
    for k, text in enumerate(header):
        name, unit = text if text in kinds else text.strip(), None
        match = None if name in kinds or name in bare else _UNIT.fullmatch(name)
        own = match[1].rstrip() if match else ""
        if match and (own in kinds or own in bare or _is_time(own)):
            name, unit = own, match[2] if match[3] is None else match[3]
        if name not in kinds:
            name = bare.get(name) or ("t" if _is_time(name) else name)
        names.append(name)
        if name == "t" and unit is not None:
            factor = time_factor(unit)
            if factor is None:
                raise InputError(f"{path}: column {shown(name)} is in {shown(unit)}; expected a unit of time")
            factors[k] = factor
        elif name in kinds and unit is not None:
            factor = joint_factor(*kinds[name], unit)
            if factor is None:
                raise InputError(
                    f"{path}: column {shown(name)} is in {shown(unit)}; expected {_expected(*kinds[name])}"
                )
            factors[k] = factor
        elif name in kinds and units is not None:
            factors[k] = default_factor(kinds[name][1], units)
    required = [name for name, (x, _) in kinds.items() if x in wanted]
    others = [name for name, (x, _) in kinds.items() if x not in wanted]
    if partly:
        required, others = [], [*kinds]
    elif wanted == "qva" and not any(name in kinds and kinds[name][0] != "q" for name in names):
        check_names(path, "column", names, required[: model.nq], optional=["t"], remedy=HOLD)
        raise PositionsAloneError(path, "columns")
    check_names(path, "column", names, required, optional=["t", *others], remedy=HOLD if wanted == "q" else "")
    if partly and not any(name in kinds and kinds[name][0] == "q" for name in names):
        raise InputError(f"{path}: has no column of a coordinate; expected some, such as {shown(next(iter(kinds)))}")
    return names, None if (factors == 1).all() else factors


def _expected(x: str, kind: str) -> str:
    examples = {
        "quaternion": {"q": "'1'"},
        "prismatic": {"q": "'m' or 'mm'", "v": "'m/s' or 'mm/s'", "a": "'m/s^2' or 'mm/s^2'"},
        "": {"q": "'rad' or 'deg'", "v": "'rad/s' or 'deg/s'", "a": "'rad/s^2' or 'deg/s^2'"},
    }
    return f"a unit such as {examples.get(kind, examples[''])[x]}"


def _blocks(path: Path, reader: Any, names: Sequence[str], separator: str, gaps: bool) -> Iterator[Array]:
    """Arrays of some rows each, all of their numbers finite; where gaps are allowed, they are NaN."""
    numbers, lines, commas = array("d"), list[int](), False
    for row in reader:
        if not row or (len(row) == 1 and len(names) > 1 and not row[0].strip()):
            continue
        line = reader.line_num
        if len(row) != len(names):
            count = f"has {len(row)} values; expected {len(names)}, one a column"
            raise InputError(f"{path}, line {line}: {count}")
        if separator != ",":  # which leaves the comma to be the decimal one, as German or French programs write it
            pointed, written = any("." in text for text in row), any("," in text for text in row)
            if pointed and (written or commas):
                found = "decimal commas and decimal points"
                raise InputError(f"{path}, line {line}: the file has {found}; expected one of them throughout")
            commas = commas or written
            row = [text.replace(",", ".") for text in row]
        if gaps:
            row = ["nan" if text.strip().lower() in MISSING else text for text in row]
        try:
            if not gaps and not _DECIMAL.fullmatch("".join(row)):
                raise ValueError
            if gaps and not all(text == "nan" or _DECIMAL.fullmatch(text) for text in row):
                raise ValueError
            numbers.extend(map(float, row))
        except ValueError:
            k = next(k for k, text in enumerate(row) if not (_is_number(text) or (gaps and text == "nan")))
            hint = ", with a decimal point" if re.fullmatch(r"\s*[+-]?[0-9]+,[0-9]+\s*", row[k]) else ""
            found = f"column {shown(names[k])}: is {shown(row[k])}"
            raise InputError(f"{path}, line {line}, {found}; expected a finite decimal number{hint}") from None
        lines.append(line)
        if len(numbers) >= BLOCK:
            yield _finite(path, np.frombuffer(numbers).reshape(len(lines), -1), names, lines)
            numbers, lines = array("d"), []
    if numbers:
        yield _finite(path, np.frombuffer(numbers).reshape(len(lines), -1), names, lines)


def _finite(path: Path, block: Array, names: Sequence[str], lines: Sequence[int]) -> Array:
    """The block, if no number was too large."""
    for k, c in np.argwhere(np.isinf(block))[:1]:
        found = f"column {shown(names[c])}: is beyond the largest number, 1.8e308"
        raise InputError(f"{path}, line {lines[k]}, {found}; expected a finite decimal number")
    return block


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return _DECIMAL.fullmatch(text) is not None
