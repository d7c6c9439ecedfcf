"""Names are the API: checked once, and found again with a helpful word when mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from kinegrad.errors import InputError, ModelError, shown


def check_names(what: str, names: Sequence[str], n: int) -> tuple[str, ...]:
    """A tuple of n different, non-empty strings."""
    names = as_tuple(what, names, f"{n} non-empty strings")
    if not all(isinstance(name, str) and name for name in names):
        raise ModelError(f"`{what}` is {shown(names)}; expected {n} non-empty strings")
    if len(names) != n:
        raise ModelError(f"`{what}` has {len(names)} names; the model has {n} joints")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"`{what}` has {name!r} twice; expected different names")
        seen.add(name)
    return names


def as_tuple(what: str, values: Any, expected: str) -> tuple[Any, ...]:
    """`values` as a tuple, or a ModelError: a text and a mapping are no sequences of things."""
    if not isinstance(values, str | bytes | Mapping):
        try:
            return tuple(values)
        except Exception:  # whatever a foreign object raises when asked for its items
            pass
    raise ModelError(f"`{what}` is {shown(values)}; expected {expected}")


def find_name(what: str, name: str, names: Sequence[str], model: str) -> int:
    """The position of `name`, or an InputError with the closest names there are."""
    try:
        return names.index(name if isinstance(name, str) else None)
    except ValueError:
        typed = name[:80] if isinstance(name, str) else shown(name)
        close = difflib.get_close_matches(typed, names, n=3, cutoff=0.4)
        hint = (
            f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else f"it has {', '.join(names[:8]) or f'no {what}s yet'}" + (", …" if len(names) > 8 else "")
        )
        raise InputError(f"{what} {shown(name)} does not exist in model {model!r}; {hint}") from None
