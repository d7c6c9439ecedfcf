"""Trajectories as CSV: a header, then one line per instant, read and written a block of lines at a time.

A number is decimal, with a point: ``-1``, ``.5``, ``2.5e-3``.  What Python would also take (``1_0``, ``nan``, ``inf``,
digits of other scripts) or other programs write (``0x10``, ``1,5``, ``1d3``) is refused with its line and column,
because a number that is read in another sense than it was meant is worse than none.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, said, shown
from kinegrad.io.names import check_names
from kinegrad.io.units import joint_factor, time_factor
from kinegrad.model import Model

__all__ = ["read_csv", "write_csv"]

Array = NDArray[np.float64]
BLOCK = 1 << 14  # numbers that are converted, or written, at a time
LINE = 1 << 24  # characters of the longest line that is read
_DECIMAL = re.compile(r"[0-9eE+.\- \t]*")  # with these alone, float() knows decimal numbers only
_UNIT = re.compile(r"(.*?)\s*(?:\[([^\[\]]*)\]|\(([^()]*)\))")


def read_csv(path: Path, model: Model) -> tuple[dict[str, Any], Sequence[str]]:
    """q, v, a and perhaps t in SI units, in the model's order; and the joints' names."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(_lines(path, file), strict=True)
            header = next((row for row in reader if row), None)
            if header is None:
                raise InputError(f"{path}: is empty; expected a header and one line per instant")
            names, factors = _columns(path, header, model)
            place = {name: k for k, name in enumerate(names)}
            wanted = {x: [place[f"{x}.{name}"] for name in model.layout.columns(x)[1]] for x in "qva"}
            if "t" in place:
                wanted["t"] = [place["t"]]
            numbers = {x: array("d") for x in wanted}
            for block in _blocks(path, reader, names):
                if factors is not None:
                    block *= factors
                for x, columns in wanted.items():
                    numbers[x].frombytes(block[:, columns].tobytes())
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: is not a CSV text: {said(error)}") from None
    arrays = {x: np.frombuffer(each).reshape(-1, len(wanted[x])) for x, each in numbers.items() if each}
    arrays = {x: arrays.get(x, np.empty((0, len(columns)))) for x, columns in wanted.items()}
    if "t" in arrays:
        arrays["t"] = arrays["t"][:, 0]
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


def _columns(path: Path, header: Sequence[str], model: Model) -> tuple[list[str], Array | None]:
    """The name of each column, and what turns it into SI units if its header says that it takes that.

    A unit may follow the name in brackets: ``q.elbow [deg]``, ``t (ms)``.
    """
    kinds = {f"{x}.{name}": (x, kind) for x in "qva" for name, kind in zip(*model.layout.columns(x)[1:], strict=True)}
    names, factors = list[str](), np.ones(len(header))
    for k, text in enumerate(header):
        name, unit = text if text in kinds else text.strip(), None
        if name not in kinds and (match := _UNIT.fullmatch(name)) and (match[1] in kinds or match[1] == "t"):
            name, unit = match[1], match[2] if match[3] is None else match[3]
        names.append(name)
        if unit is not None:
            factor = time_factor(unit) if name == "t" else joint_factor(*kinds[name], unit)
            if factor is None:
                expected = "a unit of time" if name == "t" else _expected(*kinds[name])
                raise InputError(f"{path}: column {shown(name)} is in {shown(unit)}; expected {expected}")
            factors[k] = factor
    if len(names) == 1 and len(kinds) > 1:
        for separator in (";", "\t"):
            if separator in names[0]:
                raise InputError(f"{path}: columns are separated by {separator!r}; expected commas, and decimal points")
    check_names(path, "column", names, list(kinds), optional=["t"])
    return names, None if (factors == 1).all() else factors


def _expected(x: str, kind: str) -> str:
    examples = {
        "quaternion": {"q": "'1'"},
        "prismatic": {"q": "'m' or 'mm'", "v": "'m/s' or 'mm/s'", "a": "'m/s^2' or 'mm/s^2'"},
        "": {"q": "'rad' or 'deg'", "v": "'rad/s' or 'deg/s'", "a": "'rad/s^2' or 'deg/s^2'"},
    }
    return f"a unit such as {examples.get(kind, examples[''])[x]}"


def _blocks(path: Path, reader: Any, names: Sequence[str]) -> Iterator[Array]:
    """Arrays of some rows each, all of their numbers finite."""
    numbers, lines = array("d"), list[int]()
    for row in reader:
        if not row:
            continue
        line = reader.line_num
        if len(row) != len(names):
            count = f"has {len(row)} values; expected {len(names)}, one a column"
            raise InputError(f"{path}, line {line}: {count}")
        try:
            if not _DECIMAL.fullmatch("".join(row)):
                raise ValueError
            numbers.extend(map(float, row))
        except ValueError:
            k = next(k for k, text in enumerate(row) if not _is_number(text))
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
    for k, c in np.argwhere(~np.isfinite(block))[:1]:
        found = f"column {shown(names[c])}: is beyond the largest number, 1.8e308"
        raise InputError(f"{path}, line {lines[k]}, {found}; expected a finite decimal number")
    return block


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return _DECIMAL.fullmatch(text) is not None
