"""Numbers in lines of text, as motion-capture programs write them: strictly read, sizes checked on the way.

A number is decimal, with a point.  What is missing is ``NaN`` (or an empty cell between two tabs); whether anything may
be missing is the caller's to say.  A number in another notation (``1,5``, ``0x10``, ``inf``) is refused with its line.
"""

from __future__ import annotations

import math
import re
import warnings
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, RecordingWarning, shown
from kinegrad.io.whole_file import regular_file

__all__ = ["Lines", "check_columns", "check_times", "numbers_of", "opened", "rows_of", "warn_of_declared"]

Array = NDArray[np.float64]
LONGEST_LINE = 1 << 22  # characters
MOST_NUMBERS = 1 << 28  # of one file: 2 GiB of float64
MOST_HEADER = 1000  # lines before the numbers
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")  # each digit in one way: linear
_MISSING = {"", "nan", "-nan", "nan(ind)", "-nan(ind)"}


class Lines:
    """The lines of a text with their numbers; the last line that was read is ``number``."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path, self.number, self._file = path, 0, file

    def __iter__(self) -> Iterator[str]:
        while line := self._file.readline(LONGEST_LINE):
            self.number += 1
            if len(line) == LONGEST_LINE and not line.endswith("\n"):
                raise self.wrong(f"has more than {LONGEST_LINE} characters; expected one line per instant")
            if "\0" in line:
                raise self.wrong("holds the character NUL; expected text")
            yield line.rstrip("\r\n")

    def wrong(self, text: str) -> InputError:
        """The error that something is wrong with the line that was read last."""
        return InputError(f"{self.path}, line {self.number}: {text}")


def opened(path: Path, kind: str) -> TextIO:
    """A regular file opened as text, or an InputError."""
    try:
        if regular_file(path).st_size == 0:
            raise InputError(f"{path}: is empty; expected {kind}")
        return path.open(encoding="utf-8-sig", newline=None)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def numbers_of(cells: Sequence[str], lines: Lines, names: Sequence[str], *, missing: bool) -> list[float]:
    """The numbers of one line; NaN where one is missing, if that is allowed."""
    found = []
    for k, cell in enumerate(cells):
        text = cell.strip(" ")  # no other blanks: they come from damage, not from programs
        if _DECIMAL.fullmatch(text):
            number = float(text)
            if math.isfinite(number):
                found.append(number)
                continue
            expected = "expected a number below 1.8e308"
        elif text.lower() in _MISSING:
            if missing:
                found.append(math.nan)
                continue
            expected = "expected a number: nothing may be missing here"
        else:
            point = ", with a decimal point" if re.fullmatch(r"[+-]?[0-9]+,[0-9]+", text) else ""
            expected = f"expected a finite decimal number{point}"
        raise lines.wrong(f"column {shown(names[k])} is {shown(text)}; {expected}")
    return found


def rows_of(lines: Lines, text: Iterator[str], names: Sequence[str], *, missing: bool, tabs: bool) -> Array:
    """All lines that follow, (rows, columns); empty ones are skipped."""
    numbers, rows = array("d"), 0
    for line in text:
        if not line.strip(" \t"):
            continue
        cells = line.split("\t") if tabs else [cell for cell in line.replace("\t", " ").split(" ") if cell]
        while tabs and len(cells) > len(names) and not cells[-1].strip(" "):
            cells.pop()
        if tabs and len(cells) < len(names):
            cells += [""] * (len(names) - len(cells)) if missing else []
        if len(cells) != len(names):
            raise lines.wrong(f"has {len(cells)} values; expected {len(names)}, one for each column")
        numbers.extend(numbers_of(cells, lines, names, missing=missing))
        rows += 1
        if len(numbers) > MOST_NUMBERS:
            raise lines.wrong(f"the file has more than {MOST_NUMBERS} numbers; expected a shorter recording")
    return np.array(numbers).reshape(rows, len(names))


def check_columns(lines: Lines, names: Sequence[str]) -> None:
    """Names that are there, each once."""
    seen = set[str]()
    for name in names:
        if not name:
            raise lines.wrong("a column has no name; expected one for each")
        if name in seen:
            raise lines.wrong(f"column {shown(name)} is there twice; expected once")
        seen.add(name)


def warn_of_declared(path: Path, what: str, declared: str | None, found: int) -> None:
    """Warn if a header declares another number of rows or columns than there are, which count."""
    if declared is not None and declared.strip() != str(found):
        text = f"{path}: declares {shown(declared)} {what} and has {found}, which are read; is it cut off?"
        warnings.warn(text, RecordingWarning, stacklevel=4)


def check_times(path: Path, t: Array) -> None:
    """Times that increase."""
    if not len(t):
        raise InputError(f"{path}: has no instants; expected at least one line of numbers")
    if not (np.diff(t) > 0).all():
        k = int(np.argmin(np.diff(t) > 0))
        found = f"time goes from {t[k]:.12g} to {t[k + 1]:.12g} s"
        raise InputError(f"{path}: {found} at instant {k + 1}; expected it to increase")
