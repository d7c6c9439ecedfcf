"""The numbers that models are made of: real ones; or, while a design is differentiated, real ones that carry a slope.

A slope rides along as an imaginary part so small that its square is lost (complex step): whatever is computed from
such a number by sums, products, quotients and analytic functions comes out with its exact derivative.  Everything in
``model/`` computes so, and decides (is this a rotation, can this body exist) by the real part alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import ModelError, shown

Array = NDArray[np.float64]
STEP = 2.0**-100  # of complex step: its square is lost, so the derivative is exact; slopes keep their bits
LARGEST = 1e100  # of a model's constants, in SI units: a product of three, such as m c², is still finite

_PLAIN = frozenset({float, int, np.float64, np.int64, np.float32})
_carrying = ContextVar("carrying", default=False)
_far = ContextVar("far", default=False)


class FixedError(ModelError):
    """A number carries a slope where none is followed: of what cannot be a parameter."""


@contextmanager
def carry_slopes(*, far: bool = False) -> Iterator[None]:
    """Within it, models may be built from numbers that carry slopes; nothing else accepts such models.

    `far`: imaginary parts may be of any size (``design/circles.py``), so that no body is refused as one that cannot be.
    """
    tokens = _carrying.set(True), _far.set(far)
    try:
        yield
    finally:
        _carrying.reset(tokens[0])
        _far.reset(tokens[1])


def carrying() -> bool:
    """Whether models may be built from numbers that carry slopes."""
    return _carrying.get()


def far_from_real() -> bool:
    """Whether models are built of complex numbers of any size, of which "zero or more" says nothing."""
    return _far.get()


def slope(x: Any) -> Array:
    """The slope that numbers carry."""
    return np.asarray(np.imag(x) / STEP)


def numbers(value: Any, kinds: str = "iuf") -> Array:
    """A fresh float64 array of `value`; complex if it carries slopes.  TypeError if it holds anything else."""
    if holds_masked(value):
        raise TypeError("masked entries")
    given = np.asarray(value)
    with np.errstate(all="ignore"):  # a long double beyond float64 becomes infinite, and is refused as such
        if given.dtype.kind == "c" and carrying():
            return np.array(given, dtype=np.complex128)
        if given.dtype.kind not in kinds:
            raise TypeError(f"dtype {given.dtype}")
        return np.array(given, dtype=np.float64)


def holds_masked(value: Any) -> bool:
    """Whether a masked array, alone or in any kind of sequence, has masked entries, whose numbers NumPy would use.

    >>> holds_masked([[1.0, 2.0], np.ma.array([3.0, 4.0], mask=[False, True])])
    True
    """
    if isinstance(value, np.ndarray):
        return isinstance(value, np.ma.MaskedArray) and bool(np.ma.is_masked(value))
    if isinstance(value, str | bytes | range | Mapping) or hasattr(value, "__array__"):
        return False
    if not (hasattr(value, "__len__") and hasattr(value, "__getitem__")):  # what NumPy takes for a sequence
        return False
    try:
        items = list(islice(iter(value), len(value)))
        if _PLAIN.issuperset(map(type, items)):
            return False
        return any(holds_masked(x) for x in items if type(x) not in _PLAIN)
    except Exception:  # whatever a foreign object raises when asked for its items
        return False


def too_large(array: Array) -> bool:
    """Whether products of these numbers might overflow; infinite ones count."""
    return not bool((np.abs(array) <= LARGEST).all())


def real_array(what: str, value: Any, expected: str) -> Array:
    """A fresh float64 array of the real numbers in `value`, or a ModelError that names `what`."""
    try:
        return numbers(value)
    except Exception:  # whatever a foreign object raises when asked for its numbers
        raise ModelError(f"{what} is a {type(value).__name__}; expected {expected}") from None


def flag(what: str, value: Any) -> bool:
    """True or False, or a ModelError that names `what`."""
    if not isinstance(value, bool | np.bool_):
        raise ModelError(f"{what} is {shown(value)}; expected True or False")
    return bool(value)


def real_number(what: str, value: Any) -> float:
    """One finite number, or a ModelError that names `what`."""
    number = real_array(what, value, "a finite number")
    if number.shape != () or too_large(number):
        raise ModelError(f"{what} is {shown(value)}; expected a finite number, below {LARGEST:g}")
    return number.item()
