"""Names are the API: checked once, and found again with a helpful word when mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from kinegrad.errors import InputError, ModelError


def check_names(what: str, names: Sequence[str], n: int) -> tuple[str, ...]:
    """A tuple of n different, non-empty strings."""
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise ModelError(f"`{what}` is {names!r}; expected {n} non-empty strings")
    if len(names) != n:
        raise ModelError(f"`{what}` has {len(names)} names; the model has {n} joints")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ModelError(f"`{what}` has {name!r} twice; expected different names")
        seen.add(name)
    return tuple(names)


def find_name(what: str, name: str, names: Sequence[str], model: str) -> int:
    """The position of `name`, or an InputError with the closest names there are."""
    try:
        return names.index(name)
    except ValueError:
        close = difflib.get_close_matches(str(name), names, n=3, cutoff=0.4)
        hint = (
            f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else f"it has {', '.join(names[:8])}" + (", …" if len(names) > 8 else "")
        )
        raise InputError(f"{what} {name!r} does not exist in model {model!r}; {hint}") from None
