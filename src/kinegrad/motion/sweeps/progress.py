"""How many tasks are done: told to a function, or shown on stderr, as a bar on a terminal or line by line elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from kinegrad.motion.nlp.progress import counting
from kinegrad.motion.sweeps.tasks import Finished

__all__ = ["telling"]


def telling(progress: Any, what: str) -> AbstractContextManager[Finished | None]:
    """A function to call with each result; what is shown is closed however it ends."""
    return counting(progress, what, _line)


def _line(result: Mapping[str, Any]) -> str:
    """A result in a few words."""
    if result.get("status") == "error":
        return str(result.get("message"))[:100]
    value = result.get("objective")
    objective = "-" if value is None else f"{value:.6g}"
    return f"{result.get('status')}, objective {objective}, {result.get('iterations')} iterations"
