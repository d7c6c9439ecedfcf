"""What is refused in the XML of MJCF before MuJoCo sees it: numbers that it would take, and sizes that it would try.

MuJoCo reads hexadecimal and infinite numbers and some NaN, and makes as many copies and keyframes as it is asked for.
Included files are checked, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kinegrad.io.strict_xml import Element, XmlFile, decimal, read_xml

__all__ = ["check_before"]

FILES = 100  # included ones
MOST = 100_000  # copies of a body; user data, keyframes and the like
SOLVER = 100_000_000  # rows, contacts, numbers of its stack: older files ask for millions
PIXELS = 1 << 26  # of a texture, or points of a height field
MEMORY = 16 << 30  # bytes
_STRANGE = re.compile(r"[+-]?(?:nan(?:\(.*\))?|inf(?:inity)?|0x[0-9a-f.]+(?:p[+-]?[0-9]+)?)", re.IGNORECASE)
_WORDS = ("name", "class", "childclass", "model", "file", "content")  # attributes that may hold any text
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}
_AREAS = {"texture": ("width", "height"), "hfield": ("nrow", "ncol")}


def check_before(path: Path) -> None:
    """A FileError of what is wrong with a file, or with one that it includes."""
    for file in _included(path):
        for element in file.root.walk():
            _check_numbers(file, element)
            _check_sizes(file, element)
        file.check()


def _included(path: Path) -> Iterator[XmlFile]:
    """The file and all that it includes; MuJoCo says which of them it does not find."""
    waiting: list[tuple[Path, tuple[str, ...]]] = [(path, ("mujoco",))]
    seen = set[Path]()
    while waiting and len(seen) < FILES:
        place, roots = waiting.pop()
        if place in seen or (place != path and not place.is_file()):
            continue
        seen.add(place)
        file = read_xml(place, *roots)
        yield file
        names = [element.get("file") for element in file.root.walk() if element.tag == "include"]
        waiting += [(path.parent / name, ("mujoco", "mujocoinclude")) for name in names if name and "\0" not in name]


def _check_numbers(file: XmlFile, element: Element) -> None:
    for key, value in element.attributes.items():
        strange = [] if key in _WORDS else [word for word in value.split() if _STRANGE.fullmatch(word)]
        if strange:
            found = f'{key}="{value[:80]}" holds {strange[0]!r}'
            file.problem(element, f"{found}; expected finite decimal numbers, as 1.5 or -2e-3")


def _check_sizes(file: XmlFile, element: Element) -> None:
    if element.tag == "size":
        for key, value in element.attributes.items():
            most = MEMORY if key == "memory" else SOLVER if key in ("njmax", "nconmax", "nstack") else MOST
            if _bytes(value) > most:
                file.problem(element, f'{key}="{value[:80]}" is absurdly large; expected at most {most}')
    if element.tag in ("replicate", "composite", "flexcomp"):
        copies, around = 1.0, element
        while True:
            for word in around.get("count").split() if around.tag in ("replicate", "composite", "flexcomp") else ():
                copies *= max(_number(word), 1.0)
            if around.parent is None:
                break
            around = around.parent
        if copies > MOST:
            file.problem(element, f"makes {copies:g} copies; expected at most {MOST}")
    if element.tag in _AREAS:
        sides = [_number(element.get(key, "1")) for key in _AREAS[element.tag]]
        if sides[0] * sides[1] > PIXELS:
            file.problem(element, f"has {sides[0]:g} by {sides[1]:g} points; expected at most {PIXELS} together")


def _number(word: str) -> float:
    """A number, 0 of what is none: MuJoCo says what is wrong with it."""
    value = decimal(word)
    return value if isinstance(value, float) else 0.0 if "large" not in value else float("inf")


def _bytes(text: str) -> float:
    word = text.strip()
    unit = word[-1:].upper() if word[-1:].upper() in _UNITS else ""
    return _number(word[: len(word) - len(unit)]) * 2.0 ** _UNITS[unit]
