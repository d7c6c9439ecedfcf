"""A simulation that did not reach its end does not go unnoticed."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from kinegrad import _engine as engine
from kinegrad.errors import SolveError, UnfinishedWarning

__all__ = ["UNFINISHED", "WITHOUT_END", "check_unfinished", "noticed"]

UNFINISHED = ("warn", "raise", "ignore")
WITHOUT_END = (  # what to do about contacts that open and close again and again
    "expected a larger `sticking_speed` of contacts that bounce, or directions along the floor of contacts that slide: "
    "without these nothing resists, since friction is not simulated"
)
Simulated = TypeVar("Simulated")


def noticed(found: Simulated, unfinished: str) -> Simulated:
    """The simulation; a warning, an error or nothing if it stopped early."""
    result: Any = found
    if result.success or unfinished == "ignore":
        return found
    message = f"the simulation did not reach its end: {result.message}"
    if unfinished == "raise":
        raise SolveError(message)
    warnings.warn(f"{message} (`unfinished` says what to do then)", UnfinishedWarning, stacklevel=3)
    return found


def check_unfinished(value: Any) -> str:
    """The argument `unfinished`."""
    return engine.one_of("unfinished", value, UNFINISHED)
