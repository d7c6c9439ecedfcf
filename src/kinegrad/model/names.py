"""Names of models, joints and links: checked once, with suggestions where one is mistyped."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kinegrad.errors import LONGEST, InputError, ModelError, shown

CLOSE = 0.7  # of difflib's ratio: "elbw" is as close to "elbow" as 0.89, "xiang2008" to "anderson2002" as 0.48


def check_names(what: str, names: Sequence[str], n: int) -> tuple[str, ...]:
    """A tuple of n different names."""
    names = as_tuple(what, names, f"{n} non-empty strings")
    if not all(isinstance(name, str) and name for name in names):
        raise ModelError(f"`{what}` is {shown(names)}; expected {n} non-empty strings")
    if len(names) != n:
        raise ModelError(f"`{what}` has {len(names)} names; the model has {n} joints")
    names = tuple(check_name(f"`{what}`[{k}]", name) for k, name in enumerate(names))
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"`{what}` has {shown(name)} twice; expected different names")
        seen.add(name)
    return names


def check_name(what: str, name: Any) -> str:
    """A name that every file, terminal and message can show and read back: printable, without blanks at its ends."""
    if not isinstance(name, str):
        raise ModelError(f"{what} is {shown(name)}; expected text")
    if not name.isprintable():
        place, character = next((k, c) for k, c in enumerate(name) if not c.isprintable())
        found = f"{shown(name)}, with the unprintable character U+{ord(character):04X} at {place}"
        raise ModelError(f"{what} is {found}; expected printable characters")
    if name != name.strip():
        raise ModelError(f"{what} is {shown(name)}; expected no blanks at its ends")
    return str.__str__(name)


def as_tuple(what: str, values: Any, expected: str) -> tuple[Any, ...]:
    """`values` as a tuple, or a ModelError: a text and a mapping are no sequences of things."""
    if not isinstance(values, str | bytes | Mapping):
        try:
            return tuple(values)
        except Exception:  # whatever a foreign object raises when asked for its items
            pass
    raise ModelError(f"`{what}` is {shown(values)}; expected {expected}")


def closest(name: Any, names: Iterable[str], count: int = 3) -> list[str]:
    """The names that somebody who wrote `name` may have meant: mistyped ones, or those that it is a part of.

    >>> closest("elbw", ["elbow", "shoulder"]), closest("elbow", ["right_elbow.x", "neck"])
    (['elbow'], ['right_elbow.x'])
    >>> closest("hand", ["head", "right_hand", "left_hand"])
    ['right_hand', 'left_hand', 'head']
    >>> closest("xiang2008", ["anderson2002"])
    []
    """
    if not isinstance(name, str):
        return []
    text, some = name[:LONGEST], list(names)
    plain = {each.lower(): each for each in reversed(some)}
    near = [each.lower() for each in some if text.lower() in re.split(r"[\W_]+", each.lower())] if text else []
    near += difflib.get_close_matches(text.lower(), plain, n=count, cutoff=CLOSE)
    if not near and len(text) > 2:
        near = [each.lower() for each in some if text.lower() in each.lower()]
    return [plain[each] for each in dict.fromkeys(near)][:count]


def find_name(what: str, name: str, names: Sequence[str], model: str) -> int:
    """The position of `name`, or an InputError with the closest names there are."""
    if isinstance(name, str) and name in names:
        return names.index(name)
    close = closest(name, names)
    some = ", ".join(shown(x)[1:-1] for x in names[:8]) or f"no {what}s yet"
    hint = (
        f"did you mean {' or '.join(map(shown, close))}?"
        if close
        else f"it has {some}{', …' if len(names) > 8 else ''}"
    )
    raise InputError(f"{what} {shown(name)} does not exist in model {shown(model)}; {hint}")
