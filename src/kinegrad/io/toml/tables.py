"""Tables of a TOML file read strictly: every key known, every value of its kind, all problems at once."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import LONGEST, FileError, said, shown
from kinegrad.io.toml.lines import Path, key_lines, line_of
from kinegrad.io.whole_file import regular_file
from kinegrad.model.numbers import LARGEST

__all__ = ["Table", "TomlFile", "read_toml"]

Array = NDArray[np.float64]
SIZE = 64 << 20  # bytes of a file
_NOTHING: Any = object()


@dataclass(eq=False)
class TomlFile:
    """A document, where its keys are, and the problems that were found so far."""

    path: FilePath
    content: dict[str, Any]
    lines: dict[Path, int]
    problems: list[tuple[int, str]] = field(default_factory=list)

    @property
    def root(self) -> Table:
        """The outermost table."""
        return Table(self, (), self.content)

    def problem(self, path: Path, sentence: str) -> None:
        """Keep a problem of a key."""
        self.problems.append((line_of(path, self.lines), f"{_label(path, self.content)}{sentence}"))

    def check(self) -> None:
        """Raise a FileError of all problems, in the order of lines, if there are any."""
        if self.problems:
            ordered = sorted(self.problems, key=lambda x: x[0])
            each = dict.fromkeys(f"line {line}: {text}" if line else text for line, text in ordered)
            raise FileError(self.path, tuple(each))


class Table:
    """A table of a document.  What was asked for is known; :meth:`end` complains of all other keys.

    Methods return `default`, or a harmless value of the right kind, where something is wrong, and keep a problem.
    """

    def __init__(self, file: TomlFile, path: Path, content: Any) -> None:
        self.file, self.path = file, path
        self.content: dict[str, Any] = content if isinstance(content, dict) else {}
        self.asked: set[str] = set()
        if not isinstance(content, dict):
            self.problem(f"is {_shown(content)}; expected a table")

    def __contains__(self, key: str) -> bool:
        self.asked.add(key)
        return key in self.content

    def problem(self, sentence: str, *keys: str | int) -> None:
        """Keep a problem of the table, or of a key in it."""
        self.file.problem((*self.path, *keys), sentence)

    def guard(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """What a function finds, or None and a problem if it raises a ValueError: errors of models are such."""
        try:
            return function(*arguments, **named)
        except ValueError as error:
            self.problem(str(error))
            return None

    def end(self) -> None:
        """Complain of keys that nobody asked for."""
        for key in self.content:
            if key not in self.asked:
                close = difflib.get_close_matches(key[:LONGEST], self.asked, n=1)
                hint = (
                    f"did you mean {shown(close[0])}?" if close else f"expected one of {', '.join(sorted(self.asked))}"
                )
                self.problem(f"is unknown; {hint}", key)

    def value(self, key: str, default: Any = _NOTHING) -> Any:
        """Whatever is there; None and a problem if nothing is, and no default is given."""
        self.asked.add(key)
        if key in self.content:
            return self.content[key]
        if default is _NOTHING:
            self.problem(f"key {key!r} is missing; add it")
            return None
        return default

    def text(self, key: str, default: str | None = _NOTHING, *, among: Collection[str] = ()) -> Any:
        """A text; one of several if they are given."""
        found = self.value(key, default)
        if key in self.content and not (isinstance(found, str) and found):
            self.problem(f"is {_shown(found)}; expected text", key)
            return "" if default is _NOTHING else default
        if among and key in self.content and found not in among:
            close = difflib.get_close_matches(found[:LONGEST], list(among), n=1)
            hint = f"did you mean {shown(close[0])}?" if close else f"expected one of {', '.join(among)}"
            self.problem(f"is {_shown(found)}; {hint}", key)
            return next(iter(among)) if default is _NOTHING else default
        return "" if found is None and default is _NOTHING else found

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        found = self.value(key, default)
        if not isinstance(found, bool):
            self.problem(f"is {_shown(found)}; expected true or false", key)
            return default
        return found

    def number(self, key: str, default: Any = _NOTHING, *, infinite: bool = False) -> Any:
        """A number; NaN and a problem if it is none."""
        return self.numbers(key, (), default=default, infinite=infinite)

    def numbers(
        self, key: str, *shapes: tuple[int | None, ...], default: Any = _NOTHING, infinite: bool = False
    ) -> Any:
        """Numbers of one of the shapes, in which None is any length; a float for the shape ()."""
        found = self.value(key, default)
        if key not in self.content:
            return np.nan if default is _NOTHING else default
        array = _array(found)
        expected = " or ".join(map(_counted, shapes))
        nothing = np.nan if () in shapes else np.full([n or 1 for n in shapes[0]], np.nan)
        if array is None or not any(_fits(array.shape, shape) for shape in shapes):
            self.problem(f"is {_shown(found)}; expected {expected}", key)
            return nothing
        good = ~np.isnan(array) if infinite else np.abs(array) <= LARGEST
        if not good.all():
            limit = "not nan" if infinite else f"finite, below {LARGEST:g}"
            self.problem(f"is {_shown(found)}; expected {expected}, {limit}", key)
            return nothing
        return float(array) if array.shape == () else array

    def table(self, key: str, default: Any = _NOTHING) -> Any:
        """A table within; None if there is none."""
        found = self.value(key, default)
        return Table(self.file, (*self.path, key), found) if key in self.content else None

    def tables(self, key: str) -> list[Table]:
        """An array of tables: [[key]]."""
        found = self.value(key, [])
        if not isinstance(found, list):
            self.problem(f"is {_shown(found)}; expected tables, each under [[{key}]]", key)
            return []
        return [Table(self.file, (*self.path, key, k), each) for k, each in enumerate(found)]

    def entries(self) -> Iterator[tuple[str, Any]]:
        """All keys and values, whatever the keys are called."""
        self.asked.update(self.content)
        yield from self.content.items()


def read_toml(path: FilePath) -> TomlFile:
    """Read a document; a FileError if it cannot be read, or is no TOML."""

    def fail(sentence: str) -> FileError:
        return FileError(path, (sentence,))

    try:
        if (size := regular_file(path).st_size) > SIZE:
            raise fail(f"has {size / (1 << 20):.0f} MiB; expected a model of at most {SIZE >> 20} MiB")
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        return TomlFile(path, tomllib.loads(text), key_lines(text))
    except FileError:
        raise
    except OSError as error:
        raise fail(f"cannot be read: {error.strerror or said(error)}") from None
    except UnicodeDecodeError as error:
        raise fail(f"is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise fail(f"is not TOML: {said(error)}; correct the text there") from None
    except ValueError as error:  # of a whole number of thousands of digits
        raise fail(f"holds a number that cannot be read: {said(error)}") from None
    except RecursionError:
        raise fail("has too many brackets within each other; expected a model") from None


def _array(value: Any) -> Array | None:
    """Numbers as an array; None if they are none, or not of one shape."""
    if not _only_numbers(value, 4):
        return None
    try:
        return np.array(value, dtype=float)
    except (ValueError, OverflowError):
        return None


def _only_numbers(value: Any, depth: int) -> bool:
    if isinstance(value, list):
        return depth > 0 and all(_only_numbers(x, depth - 1) for x in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fits(found: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(found) == len(wanted) and all(w is None or f == w for f, w in zip(found, wanted, strict=True))


def _counted(shape: tuple[int | None, ...]) -> str:
    if shape == ():
        return "a number"
    if len(shape) == 1:
        return "numbers" if shape[0] is None else f"{shape[0]} numbers"
    return f"{' by '.join('any' if n is None else str(n) for n in shape)} numbers"


def _shown(value: Any) -> str:
    return shown(value) if not isinstance(value, bool) else str(value).lower()


def _label(path: Path, content: Mapping[str, Any]) -> str:
    """``[[joint]] 'elbow', mass:``: tables by their names where they have one."""
    words, now = list[str](), content
    for k, part in enumerate(path):
        try:
            now = now[part]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            now = {}
        if isinstance(part, int):
            name = next((now[x] for x in ("name", "coordinate", "link") if isinstance(now, dict) and x in now), part)
            words[-1] = f"[[{words[-1]}]] {shown(name)}"
        else:
            words.append(part if len(part) <= LONGEST and part.isprintable() else shown(part))
        if k > 6:
            break
    return f"{', '.join(words)}: " if words else ""
