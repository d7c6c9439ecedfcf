"""What is refused in the XML of MJCF before MuJoCo sees it: numbers that it would take, and sizes that it would try.

MuJoCo reads hexadecimal and infinite numbers and some NaN, and makes as many copies and keyframes as it is asked for.
Files that are included or attached are checked by the same rules, and what is counted is what they are expanded to: a
model of three lines that is attached in a ``<replicate>`` of a thousand has a thousand times its elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kinegrad.errors import FileError
from kinegrad.io.strict_xml import Element, XmlFile, decimal, read_xml

__all__ = ["check_before"]

FILES = 100  # included and attached ones
MOST = 100_000  # user data, keyframes and the like
COPIES = 30_000  # elements that are made beyond those that are written: MuJoCo's time grows with their square
DEFAULTS = 10_000  # default classes, of 16 kB each
NUMBERS = 30_000_000  # user data or keyframes of all elements
SOLVER = 100_000_000  # rows, contacts, numbers of its stack: older files ask for millions
PIXELS = 1 << 26  # of all textures, points of all height fields and of all made meshes
MEMORY = 16 << 30  # bytes
_STRANGE = re.compile(r"[+-]?(?:nan(?:\(.*\))?|inf(?:inity)?|0x[0-9a-f.]+(?:p[+-]?[0-9]+)?)", re.IGNORECASE)
_WORDS = ("name", "class", "childclass", "model", "file", "content")  # attributes that may hold any text
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}
_AREAS = {"texture": ("width", "height"), "hfield": ("nrow", "ncol")}
_COPYING = ("replicate", "composite", "flexcomp")


def check_before(path: Path) -> None:
    """A FileError of what is wrong with a file, or with one that it includes or attaches."""
    files = _Files(path)
    for file in files.all():
        for element in file.root.walk():
            _check_numbers(file, element)
            _check_sizes(file, element)
        file.check()
    files.check_expanded()


@dataclass
class _Expanded:
    """Size of an expanded file: numbers of elements, default classes and points of areas, and its largest sizes.

    `written` elements are those that stand in it and in what it includes.
    """

    elements: float = 0.0
    written: int = 0
    defaults: float = 0.0
    points: float = 0.0
    user: float = 0.0
    keys: float = 0.0


@dataclass
class _Files:
    """A file and all that it includes and attaches, each read once."""

    path: Path
    read: dict[Path, XmlFile] = field(default_factory=dict)
    known: dict[Path, _Expanded] = field(default_factory=dict)

    def all(self) -> Iterator[XmlFile]:
        """The files; MuJoCo says which of them it does not find."""
        waiting: list[tuple[Path, tuple[str, ...]]] = [(self.path, ("mujoco",))]
        while waiting:
            place, roots = waiting.pop()
            if place in self.read:
                continue
            if len(self.read) >= FILES:
                raise FileError(self.path, (f"includes and attaches more than {FILES} files; expected fewer",))
            file = self.read[place] = read_xml(place, *roots)
            yield file
            for element in file.root.walk():
                if element.tag == "include":
                    waiting += [(each, ("mujoco", "mujocoinclude")) for each in self.places(file, element)]
                elif _is_attached(element):
                    waiting += [(each, ("mujoco", "robot")) for each in self.places(file, element)]

    def places(self, file: XmlFile, element: Element) -> list[Path]:
        """Places where MuJoCo looks for a file: beside the first one and the one that names it, and in both folders."""
        name = element.get("file")
        if not name or "\0" in name:
            return []
        folders = (self.path.parent, file.path.parent, self.path.parent / file.path.parent)
        return list(dict.fromkeys(place for folder in folders if (place := folder / name).is_file()))

    def check_expanded(self) -> None:
        """Refuse what would take all memory, or no end."""
        found = self.expanded(self.path, ())
        made = found.elements - found.written
        for what, count, most in (
            ("elements that are made by copies and attached files", made, COPIES),
            ("default classes", found.defaults, DEFAULTS),
            ("points of textures, height fields and made meshes", found.points, PIXELS),
            ("numbers of user data", found.user * found.elements, NUMBERS),
            ("numbers of keyframes", found.keys * found.elements, NUMBERS),
        ):
            if count > most:
                raise FileError(self.path, (f"has {count:g} {what}; expected at most {most}",))

    def expanded(self, place: Path, around: tuple[Path, ...]) -> _Expanded:
        """Return the size of an expanded file; `around` are those that attach or include it."""
        if place in around:
            raise FileError(self.path, (f"attaches {place.name} within itself; expected models without a cycle",))
        if place in self.known:
            return self.known[place]
        file, found = self.read[place], _Expanded()
        models = {}
        for element in file.root.walk():
            if _is_attached(element):
                models[element.get("name") or Path(element.get("file")).stem] = element
        waiting = [(file.root, 1.0)]
        while waiting:
            element, times = waiting.pop()
            found.elements += times
            found.written += 1
            found.defaults += times * (element.tag == "default")
            found.points += times * _points(element)
            if element.tag == "size":
                found.user = max([found.user, *(_number(x) for key, x in element.attributes.items() if "nuser" in key)])
                found.keys = max(found.keys, _number(element.get("nkey", "0")))
            inner: list[Path] = []
            if element.tag == "include":
                inner = [each for each in self.places(file, element) if each not in (*around, place)]  # refused later
            elif element.tag == "attach" and element.get("model") in models:
                inner = self.places(file, models[element.get("model")])
            for each in inner:
                part = self.expanded(each, (*around, place))
                found.elements += times * part.elements
                found.defaults += times * part.defaults
                found.points += times * part.points
                found.written += part.written if element.tag == "include" else 0
                found.user, found.keys = max(found.user, part.user), max(found.keys, part.keys)
            copies = _copies(element)
            waiting += [(child, times * copies) for child in element.children]
            found.elements += times * copies * (element.tag in ("composite", "flexcomp"))
        self.known[place] = found
        return found


def _is_attached(element: Element) -> bool:
    """Return True if it names another model as an asset."""
    return element.tag == "model" and element.parent is not None and element.parent.tag == "asset"


def _copies(element: Element) -> float:
    """How often what is in an element is made."""
    copies = 1.0
    for word in element.get("count").split() if element.tag in _COPYING else ():
        copies *= max(_number(word), 1.0)
    return copies


def _points(element: Element) -> float:
    """Of a texture (six pictures of a cube), a height field, or a mesh that is made."""
    if element.tag in _AREAS:
        sides = [_number(element.get(key, "1")) for key in _AREAS[element.tag]]
        six = 6 if element.tag == "texture" and element.get("type", "cube") != "2d" else 1
        return six * sides[0] * max(sides[1], 1.0)
    if element.tag == "mesh" and element.get("builtin"):
        largest = max([_number(word) for word in element.get("params").split()], default=1.0)
        return 64 * largest * largest  # a point of its grid takes as much as 64 of a picture
    return 0.0


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
    if element.tag in _COPYING:
        copies, around = 1.0, element
        while True:
            copies *= _copies(around)
            if around.parent is None:
                break
            around = around.parent
        if copies > COPIES:
            file.problem(element, f"makes {copies:g} copies; expected at most {COPIES}")
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
