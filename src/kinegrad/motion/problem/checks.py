"""Checks of what descriptions are given: numbers, pairs of numbers, and numbers by the names of coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, ModelError, shown
from kinegrad.model.names import find_name
from kinegrad.model.numbers import real_number
from kinegrad.model.placement import check_transform

Array = NDArray[np.float64]


def number(what: str, value: Any, *, least: float = -np.inf, above: bool = False, infinite: bool = False) -> float:
    """A finite number, at least (or above) some other."""
    try:
        found = float(real_number(f"`{what}`", value))
    except ModelError as error:
        raise InputError(str(error)) from None
    if infinite and found == np.inf:
        return found
    if not np.isfinite(found) or found < least or (above and found == least):
        low = f"a finite number{'' if least == -np.inf else f' above {least:g}' if above else f' from {least:g} on'}"
        raise InputError(f"`{what}` is {shown(value)}; expected {low}")
    return found


def pair(what: str, value: Any, expected: str) -> tuple[float, float]:
    """Two numbers, the first not above the second."""
    x = engine.real(what, value)
    if x.shape != (2,) or np.isnan(x).any():
        raise InputError(f"`{what}` is {shown(value)}; expected {expected}")
    if x[0] > x[1]:
        raise InputError(f"`{what}` is {shown(value)}: its bounds are crossed; expected {expected}")
    return float(x[0]), float(x[1])


def vector(what: str, value: Any, size: int = 3) -> Array:
    """Finite numbers in a row."""
    x = engine.real(what, value)
    if x.shape != (size,):
        raise InputError(f"`{what}` has shape {x.shape}; expected {size} numbers")
    if not np.isfinite(x).all():
        raise engine.not_finite(what, x)
    return x


def direction(what: str, value: Any) -> Array:
    """A unit vector."""
    x = vector(what, value)
    length = float(np.sqrt(x @ x))
    if not length > 0:
        raise InputError(f"`{what}` is {shown(value)}; expected a vector that is not zero")
    return x / length


def transform(what: str, value: Any) -> Array:
    """A rigid transform; a 3-vector is a shift."""
    try:
        return np.asarray(check_transform(f"`{what}`", value), dtype=float)
    except ModelError as error:
        raise InputError(str(error)) from None


def per_name(what: str, given: Any, names: Sequence[str], model: str, kind: str = "coordinate") -> dict[int, Any]:
    """Values by number, of a dictionary from names, an array of all, or one number for all."""
    if isinstance(given, Mapping):
        return {find_name(kind, name, names, model): value for name, value in given.items()}
    if isinstance(given, bool | str | bytes):
        raise InputError(f"`{what}` is {shown(given)}; expected numbers, or a dictionary from {kind}s to numbers")
    x = engine.real(what, given)
    if x.ndim == 0:
        return dict.fromkeys(range(len(names)), float(x))
    if x.shape not in ((len(names),), (len(names), 2)):
        expected = f"({len(names)},) or ({len(names)}, 2), or a dictionary from {kind}s to numbers"
        raise InputError(f"`{what}` has shape {x.shape}; expected one number, or shape {expected}")
    return dict(enumerate(x.tolist()))


def values_of(what: str, given: Any, names: Sequence[str], model: str) -> dict[int, tuple[float, float]]:
    """Lower and upper value by number: equal, where one number was given."""
    found = {}
    for i, value in per_name(what, given, names, model).items():
        where = f"{what} of {names[i]}"
        if np.ndim(value) == 0:
            x = number(where, value)
            found[i] = (x, x)
        else:
            found[i] = pair(where, value, "one number, or a lower and an upper one")
    return found


def limits_of(
    what: str, given: Any, names: Sequence[str], model: str, kind: str = "coordinate"
) -> dict[int, tuple[float, float]]:
    """Lower and upper limit by number: ±x, where one number x was given."""
    found = {}
    for i, value in per_name(what, given, names, model, kind).items():
        where = f"{what} of {names[i]}"
        if np.ndim(value) == 0:
            x = number(where, value, least=0.0, infinite=True)
            found[i] = (-x, x)
        else:
            found[i] = pair(where, value, "one number x for ±x, or a lower and an upper one")
    return found


def all_of(what: str, given: Any, kinds: tuple[type, ...], expected: str) -> tuple[Any, ...]:
    """One or several of some kinds, as a tuple."""
    if isinstance(given, kinds):
        return (given,)
    if isinstance(given, str | bytes | Mapping):
        raise InputError(f"`{what}` is {shown(given)}; expected {expected}")
    try:
        found = tuple(given)
    except Exception:  # whatever a foreign object raises when asked for its items
        raise InputError(f"`{what}` is {shown(given)}; expected {expected}") from None
    for k, one in enumerate(found):
        if not isinstance(one, kinds):
            raise InputError(f"`{what}` at {k} is {shown(one)}; expected {expected}")
    return found
