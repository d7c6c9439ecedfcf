"""XML read strictly: with line numbers, without surprises, and with all problems of a file at once.

Python's own parser, expat, reads the text, in a time that is linear in its length.  Documents that declare anything
themselves are refused: DTDs, entities of any kind, external references; so nothing is fetched, and no text is larger
than its file.  Size, depth, counts and lengths of words are limited.  What the file says of its encoding is honoured.

Loaders ask an :class:`XmlFile` for numbers and words.  What is wrong with them becomes a problem, with line, element,
attribute and value, and reading goes on with NaN; :meth:`XmlFile.check` raises all problems together.  A number is
decimal, with a point: ``-1``, ``.5``, ``2.5e-3``.  What Python would also take (``1_0``, ``nan``, ``inf``, digits of
other scripts) or other programs write (``0x10``, ``1,5``, ``1d3``) is refused: a number that is read in another sense
than it was meant is worse than none.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import LONGEST, FileError, said, shown
from kinegrad.io.whole_file import regular_file
from kinegrad.model.numbers import LARGEST

__all__ = ["Element", "XmlFile", "decimal", "read_xml"]

Array = NDArray[np.float64]

SIZE = 64 << 20  # bytes of a file
DEPTH = 1000  # elements within each other
COUNT = 1_000_000  # elements, and attributes, of a file
WORD = 10_000  # characters of a name, a path or another word
PROBLEMS = 200  # that are kept, and looked for
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")  # each digit in one way: linear
_BLANKS = " \t\r\n"  # what XML calls white space


@dataclass(eq=False, slots=True)
class Element:
    """An element of a document.

    Attributes
    ----------
    tag : str
    attributes : dict of str to str
    line : int
        Of the file, from 1.
    parent : Element or None
    children : list of Element
    text : str
        What is written directly in it, without blanks at its ends.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def get(self, attribute: str, default: str = "") -> str:
        """An attribute, without blanks at its ends."""
        return self.attributes.get(attribute, default).strip(_BLANKS)

    def find(self, tag: str) -> Element | None:
        """The first child of that tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def all(self, *tags: str) -> list[Element]:
        """All children of these tags, in their order."""
        return [child for child in self.children if child.tag in tags]

    def walk(self) -> Iterator[Element]:
        """The element and everything in it, in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting.extend(reversed(element.children))

    @property
    def own_label(self) -> str:
        """How messages write it: ``<link name="arm">``."""
        if "name" not in self.attributes:
            return f"<{_cut(self.tag)}>"
        return f'<{_cut(self.tag)} name="{_cut(self.attributes["name"])}">'

    @property
    def label(self) -> str:
        """The same, and of an element without a name the next one around it that has one."""
        around = self
        while "name" not in around.attributes and around.parent is not None:
            around = around.parent
        inside = around is self or "name" not in around.attributes
        return self.own_label if inside else f"{self.own_label} in {around.own_label}"


@dataclass(eq=False)
class XmlFile:
    """A document, and the problems that were found in it so far.

    Attributes
    ----------
    path : Path
        Where it is.
    root : Element
    problems : list of (int, str)
        Lines and sentences.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "arm.xml")
    ...     _ = path.write_text('<robot name="arm">\\n<mass value="1,5"/></robot>')
    ...     file = read_xml(path, "robot")
    >>> file.number(file.root.children[0], "value")
    nan
    >>> file.problems[0]
    (2, '<mass> in <robot name="arm">: value="1,5" is not a number; write it with a decimal point, as 1.5')
    """

    path: Path
    root: Element
    problems: list[tuple[int, str]] = field(default_factory=list)

    # --- problems -----------------------------------------------------------------------------------------------

    def problem(self, element: Element, sentence: str) -> None:
        """Keep a problem of an element."""
        if not self.full:
            self.problems.append((element.line, f"{element.label}: {sentence}"))

    @property
    def full(self) -> bool:
        """Whether there are so many problems that no more are kept."""
        return len(self.problems) >= PROBLEMS

    def check(self) -> None:
        """Raise a FileError of all problems, in the order of lines, if there are any."""
        if self.problems:
            each = dict.fromkeys(f"line {line}: {text}" for line, text in sorted(self.problems, key=lambda x: x[0]))
            more = (f"there are more than these {PROBLEMS} problems",) if self.full else ()
            raise FileError(self.path, (*each, *more))

    def guard(self, element: Element, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function finds, or None and a problem if it raises a ValueError: errors of models are such."""
        try:
            return function(*arguments)
        except ValueError as error:
            self.problem(element, str(error))
            return None

    # --- what is there ------------------------------------------------------------------------------------------

    def only(self, element: Element, tag: str, *, required: bool = False) -> Element | None:
        """The child of that tag; a problem if there are several, or none where one is required."""
        found = element.all(tag)
        for other in found[1:]:
            self.problem(other, f"is there twice; expected once, as in line {found[0].line}")
        if required and not found:
            self.problem(element, f"has no <{tag}>; add one")
        return found[0] if found else None

    def strange(self, element: Element, attributes: Collection[str], tags: Collection[str] = ()) -> list[Element | str]:
        """Attributes and children that are not among these; those that look like a mistyped one are problems."""
        found: list[Element | str] = []
        for name in element.attributes:
            if name not in attributes and name != "xmlns" and not name.startswith("xmlns:"):
                if close := _close(name, [x for x in attributes if x not in element.attributes]):
                    self.problem(element, f"attribute {shown(name)} is unknown; did you mean {shown(close)}?")
                else:
                    found.append(name)
        for child in element.children:
            if child.tag not in tags:
                if close := _close(child.tag, tags):
                    self.problem(child, f"is unknown here; did you mean <{close}>?")
                else:
                    found.append(child)
        return found

    def by_name(self, elements: Sequence[Element], what: str) -> dict[str, Element]:
        """Elements by their names; a name that is missing, or there twice, is a problem."""
        found: dict[str, Element] = {}
        for element in elements:
            name = self.word(element, "name")
            if name in found:
                self.problem(element, f"{what} {shown(name)} is there already, in line {found[name].line}; rename one")
            elif name:
                found[name] = element
        return found

    # --- words --------------------------------------------------------------------------------------------------

    def word(self, element: Element, attribute: str | None, default: str | None = None) -> str:
        """A text that is not empty; "" and a problem if it is missing, or cannot be printed.

        The text of the element itself if `attribute` is None.
        """
        given, where = _given(element, attribute)
        self._check_alone(element, attribute)
        if given is None:
            if default is None:
                self.problem(element, f"has no attribute {attribute!r}; add it")
            return default or ""
        text = given.strip(_BLANKS)
        if not text:
            self.problem(element, f"{where} is empty; expected text")
        elif len(text) > WORD:
            self.problem(element, f"{where} has {len(text)} characters; expected at most {WORD}")
            return ""
        elif not text.isprintable():
            character = next(c for c in text if not c.isprintable())
            found = f"{where} holds the character U+{ord(character):04X}"
            self.problem(element, f"{found}, which cannot be printed; expected printable characters")
            return ""
        return text

    def choice(
        self, element: Element, attribute: str | None, choices: Sequence[str], default: str | None = None
    ) -> str:
        """One of several words; "" and a problem if it is another."""
        text = self.word(element, attribute, default)
        if text and text not in choices:
            close = _close(text, choices)
            hint = f"did you mean {shown(close)}?" if close else f"expected one of {', '.join(choices)}"
            self.problem(element, f"{_given(element, attribute)[1]} is unknown; {hint}")
            return ""
        return text

    def flag(self, element: Element, attribute: str | None, default: bool | None = None) -> bool:
        """Whether it says true or false, or 1 or 0."""
        given = _given(element, attribute)[0]
        if given is None and default is not None:
            return default
        text = self.word(element, attribute)
        known = {"true": True, "1": True, "false": False, "0": False}
        if text and text.lower() not in known:
            self.problem(element, f"{_given(element, attribute)[1]} is neither; expected true or false")
        return known.get(text.lower(), False)

    def _check_alone(self, element: Element, attribute: str | None) -> None:
        """A text has no elements in it."""
        if attribute is None and element.children:
            self.problem(element.children[0], f"is inside <{element.tag}>, which has a value; expected it elsewhere")

    # --- numbers ------------------------------------------------------------------------------------------------

    def number(
        self,
        element: Element,
        attribute: str | None,
        default: float | None = None,
        *,
        least: float | None = None,
        above: float | None = None,
        unit: str = "",
    ) -> float:
        """One number; NaN and a problem if it is missing without a default, is none, or is out of bounds.

        Parameters
        ----------
        element : Element
        attribute : str or None
            Of the element; None for its text.
        default : float, optional
            Where it is missing.
        least, above : float, optional
            What it must not be below, and what it must exceed.
        unit : str
            For messages.
        """
        if _given(element, attribute)[0] is None and default is not None:
            return default
        (number,) = self.numbers(element, attribute, 1)
        measured = f" {unit}" if unit else ""
        if least is not None and number < least:
            self.problem(element, f"{_given(element, attribute)[1]} is below {least:g}{measured}; expected it or more")
            return math.nan
        if above is not None and number <= above:
            self.problem(element, f"{_given(element, attribute)[1]} is not above {above:g}{measured}; expected more")
            return math.nan
        return float(number)

    def numbers(
        self, element: Element, attribute: str | None, count: int | None, default: Sequence[float] | None = None
    ) -> Array:
        """Numbers with blanks between them, as many as `count` if that is given; NaN and a problem if they are not."""
        given, where = _given(element, attribute)
        self._check_alone(element, attribute)
        nothing = np.full(count or 0, np.nan)
        if given is None:
            if default is None:
                self.problem(element, f"has no attribute {attribute!r}; add it")
                return nothing
            return np.array(default, dtype=float)
        words = given.split()
        if not words and count is not None:
            self.problem(element, f"{where} is empty; expected {_counted(count)}")
            return nothing
        found = []
        for word in words:
            value = decimal(word)
            if isinstance(value, str):
                which = where if len(words) == 1 else f"{where} holds {shown(word)}, which"
                self.problem(element, f"{which} is {value}")
                return nothing
            found.append(value)
        if count is not None and len(found) != count:
            self.problem(element, f"{where} has {_counted(len(found))}; expected {count}")
            return nothing
        return np.array(found, dtype=float)


def decimal(word: str) -> float | str:
    """The number that a word is, or what is wrong with it and what to do.

    >>> decimal("-1.5e3"), decimal("0x10")
    (-1500.0, 'not a number; expected decimal digits, as 1.5 or -2e-3')
    """
    if _NUMBER.fullmatch(word):
        value = float(word)
        if abs(value) <= LARGEST:
            return value
        return f"too large; expected a number below {LARGEST:g}"
    if _NUMBER.fullmatch(word.replace(",", ".", 1)):
        return f"not a number; write it with a decimal point, as {_cut(word.replace(',', '.', 1))}"
    if word.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return "not a finite number; expected a finite one"
    return "not a number; expected decimal digits, as 1.5 or -2e-3"


def read_xml(path: Path, *roots: str) -> XmlFile:
    """Read a document whose outermost element is one of `roots`, any without them.

    Raises
    ------
    FileError
        If it cannot be read, is no XML, declares entities or a DTD, is larger than any model, or of another kind.
    """
    return _Reading(path).run(roots)


class _Reading:
    """One run of the parser."""

    def __init__(self, path: Path) -> None:
        self.path, self.root, self.count = path, Element("", {}, 0), 0
        self.open: list[Element] = []
        self.texts: list[list[str]] = []

    def run(self, roots: Sequence[str]) -> XmlFile:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        self.parser = parser
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._refuse_dtd
        parser.EntityDeclHandler = parser.ExternalEntityRefHandler = parser.SkippedEntityHandler = self._refuse_entity
        try:
            if (size := regular_file(self.path).st_size) > SIZE:
                self._fail(0, f"has {size / (1 << 20):.0f} MiB; expected a model of at most {SIZE >> 20} MiB")
            with self.path.open("rb") as file:
                content = file.read(SIZE + 1)
            if len(content) > SIZE:
                self._fail(0, f"grows while it is read; expected a model of at most {SIZE >> 20} MiB")
            parser.Parse(content, True)  # whole: expat begins a token again with each block that does not end it
        except expat.ExpatError as error:
            self._fail(error.lineno, f"is not well-formed XML: {_reason(error)}; correct the text there")
        except OSError as error:
            self._fail(0, f"cannot be read: {error.strerror or said(error)}")
        except (LookupError, ValueError) as error:
            if isinstance(error, FileError):
                raise
            self._fail(1, f"is in an encoding that cannot be read ({said(error)}); save it as UTF-8")
        if roots and self.root.tag not in roots:
            expected = " or ".join(f"<{tag}>" for tag in roots)
            self._fail(self.root.line, f"begins with {self.root.own_label}; expected {expected}")
        return XmlFile(self.path, self.root)

    def _fail(self, line: int, sentence: str) -> None:
        raise FileError(self.path, (f"line {line}: {sentence}" if line else sentence,)) from None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        self.count += 1 + len(attributes)
        if self.count > COUNT:
            self._fail(line, f"has more than {COUNT} elements and attributes; expected a model of fewer")
        if len(self.open) >= DEPTH:
            self._fail(line, f"has more than {DEPTH} elements within each other; expected fewer")
        parent = self.open[-1] if self.open else None
        element = Element(tag, attributes, line, parent)
        if parent is None:
            self.root = element
        else:
            parent.children.append(element)
        self.open.append(element)
        self.texts.append([])

    def _end(self, tag: str) -> None:
        self.open.pop().text = "".join(self.texts.pop()).strip(_BLANKS)

    def _characters(self, text: str) -> None:
        self.texts[-1].append(text)

    def _refuse_dtd(self, *_: Any) -> None:
        sentence = "declares a document type (DTD), which models do not need; remove <!DOCTYPE …>"
        self._fail(self.parser.CurrentLineNumber, sentence)

    def _refuse_entity(self, *_: Any) -> int:
        self._fail(self.parser.CurrentLineNumber, "uses an entity, which models do not need; write its text instead")
        return 0


def _given(element: Element, attribute: str | None) -> tuple[str | None, str]:
    """What is written, None if the attribute is not there, and how messages show it."""
    if attribute is None:
        return element.text, f"{_cut(element.text)!r}" if element.text else "its text"
    value = element.attributes.get(attribute)
    return value, f'{attribute}="{_cut(value or "")}"'


def _cut(text: str) -> str:
    line = " ".join(text.split())
    line = line if line.isprintable() else ascii(line)[1:-1]
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _counted(count: int) -> str:
    return "one number" if count == 1 else f"{count} numbers"


def _close(name: str, names: Collection[str]) -> str | None:
    close = difflib.get_close_matches(name[:LONGEST], names, n=1, cutoff=0.75)
    return close[0] if close else None


def _reason(error: expat.ExpatError) -> str:
    reason = expat.ErrorString(error.code) or "unknown error"
    return "it uses an entity that it does not define" if reason == "undefined entity" else reason
