"""What results have in common: they compare by value, and they own their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Result", "brief", "frozen", "owned", "same"]

FEW = 6  # numbers, or things, that are shown one by one


class Result:
    """Base of frozen dataclasses (``eq=False``) that hold arrays: equal if all they hold is equal.

    Arrays are equal if shape and every number are, NaN being equal to NaN: a motion that diverged is equal to its copy.
    Fields declared with ``field(compare=False)`` are left out.  Arrays can be written to, so results have no hash.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Energies(Result):
    ...     kinetic: np.ndarray
    >>> Energies(np.array([1.0, np.nan])) == Energies(np.array([1.0, np.nan]))
    True
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Give every kind of result the short text below, which a dataclass would replace by all numbers."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls) and cls.__repr__ is Result.__repr__:
            cls.__repr__ = Result.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Names and values; of arrays of more than a few numbers, their shapes."""
        shown = [f.name for f in fields(self) if f.repr and not f.name.startswith("_")]  # type: ignore[arg-type]
        parts = (f"{name}={brief(value)}" for name in shown if (value := getattr(self, name)) is not None)
        return f"{type(self).__name__}({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in fields(self) if field.compare]  # type: ignore[arg-type]
        return self is other or all(same(getattr(self, name), getattr(other, name)) for name in names)


def brief(value: Any) -> str:
    """A value on one line: short as it is, arrays by their shape.

    >>> brief(np.ones((301, 43))), brief(np.array([1.0, 2.0])), brief({"tau": np.zeros(9)})
    ('array of shape (301, 43)', 'array([1., 2.])', "{'tau': array of shape (9,)}")
    """
    if isinstance(value, np.ndarray):
        if value.size <= FEW and value.ndim <= 1:
            return " ".join(repr(value).split())
        return f"array of shape {value.shape}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {brief(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple) and len(value) > FEW and not isinstance(value, str):
        return f"{type(value).__name__} of {len(value)}"
    return repr(value)


def same(x: Any, y: Any) -> bool:
    """Whether two values are equal, arrays within them number by number.

    >>> same({"a": (np.ones(2), "b")}, {"a": (np.ones(2), "b")}), same(np.ones(2), np.ones((1, 2)))
    (True, False)
    """
    if x is y:
        return True
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
            return False
        numbers = x.dtype.kind in "fc" and y.dtype.kind in "fc"
        return bool(np.array_equal(x, y, equal_nan=numbers))
    if isinstance(x, Mapping) and isinstance(y, Mapping):
        return x.keys() == y.keys() and all(same(x[key], y[key]) for key in x)
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return type(x) is type(y) and len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, float) and isinstance(y, float) and x != x and y != y:
        return True
    return bool(x == y)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that nobody can write to: its memory belongs to an immutable object, so the flag cannot be set back."""
    return np.ndarray(array.shape, array.dtype, buffer=array.tobytes())


def owned(value: Any) -> Any:
    """A copy of what a caller gave, whose numbers nobody can write to: what is done to the original is not seen.

    >>> given = np.zeros(2)
    >>> kept = owned({"a": given})
    >>> given[:] = 99
    >>> kept["a"]
    array([0., 0.])
    """
    if isinstance(value, np.ndarray):
        plain = value.dtype.kind in "biufc" and not isinstance(value, np.ma.MaskedArray)
        return frozen(value) if plain else value.copy()  # what is not plain is refused by name, where it is used
    if isinstance(value, Mapping):
        return {key: owned(x) for key, x in value.items()}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(owned(x) for x in value)
    if value is None or callable(value) or isinstance(value, str | bytes | Number):
        return value
    try:
        array = np.array(value)  # of whatever else has numbers: tensors, labelled arrays, memory
    except Exception:  # whatever a foreign object raises when asked for them
        return value
    return owned(array) if array.dtype.kind in "biufc" else value
