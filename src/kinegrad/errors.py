"""The errors that kinegrad raises.

Every error kinegrad raises on purpose derives from :class:`KinegradError` and says, in one sentence, which
argument is at fault, what was found and what was expected.

>>> issubclass(InputError, KinegradError) and issubclass(InputError, ValueError)
True
"""

import reprlib
from collections.abc import Sequence
from typing import Any

__all__ = ["FileError", "InputError", "KinegradError", "ModelError", "SingularError", "SolveError"]

MOST = 1000  # characters of a message
LONGEST = 80  # characters of a name or a value in it
LISTED = 20  # problems of a file in its message

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = LONGEST


def _cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[: MOST // 2 - 3]} … {text[-MOST // 2 :]}"


class KinegradError(Exception):
    """Base of all errors raised by kinegrad; what is over a thousand characters of a message is cut out of its middle.

    >>> len(str(KinegradError("x" * 5000)))
    1000
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(_cut(x) if isinstance(x, str) else x for x in arguments))


class ModelError(KinegradError, ValueError):
    """A mechanism that cannot exist: a cycle, a negative mass, two links of one name, …"""


class InputError(KinegradError, ValueError):
    """An argument of a wrong shape, type or value."""


class FileError(InputError):
    """A file that is refused, with all problems that were found in it.

    Attributes
    ----------
    path : str
        Of the file.
    problems : tuple of str
        A sentence each, with line and element; the message has the first twenty.

    Examples
    --------
    >>> print(FileError("arm.urdf", ["line 3: <mass>: has no attribute 'value'; add it"]))
    arm.urdf, line 3: <mass>: has no attribute 'value'; add it
    >>> FileError("arm.urdf", ["line 3: a", "line 9: b"]).problems
    ('line 3: a', 'line 9: b')
    """

    def __init__(self, path: object, problems: Sequence[str]) -> None:
        self.path, self.problems = str(path), tuple(_cut(x) for x in problems)
        if len(self.problems) == 1:
            (only,) = self.problems
            text = f"{self.path}, {only}" if only.startswith("line ") else f"{self.path}: {only}"
        else:
            more = len(self.problems) - LISTED
            listed = [*self.problems[:LISTED], *([f"and {more} more"] if more > 0 else [])]
            text = "\n  ".join([f"{self.path} has {len(self.problems)} problems:", *listed])
        Exception.__init__(self, text)  # a list is cut at its end, not in its middle

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.problems)


class SingularError(KinegradError, ArithmeticError):
    """A matrix or mechanism that is singular at the given state."""


class SolveError(KinegradError, RuntimeError):
    """A solver that stopped without an answer."""


class KinegradWarning(UserWarning):
    """Base of all warnings of kinegrad: results are what was asked for, but perhaps not what was meant."""


class UnitsWarning(KinegradWarning):
    """A number that looks as if it were in another unit, such as an angle in degrees."""


class RecordingWarning(KinegradWarning):
    """A recording that contradicts itself, its model, or what bodies can do; results are those of what was read."""


class UnfinishedWarning(KinegradWarning):
    """A simulation that did not reach its end; its result says ``success=False`` and why."""


class BranchWarning(KinegradWarning):
    """Postures of a path that are not on the branch of those before them, or may not be."""


def at_state(where: Sequence[int]) -> str:
    """How a message says which state of a batch it is about; nothing of a state that is alone.

    >>> at_state([3]), at_state([3, 0]), at_state([])
    (' in state 3', ' in state (3, 0)', '')
    """
    return f" in state {where[0] if len(where) == 1 else tuple(where)}" if where else ""


def said(error: Exception) -> str:
    """What another library said, for a message: on one line, cut where it is long.

    >>> said(OSError("no such\\nfile")), said(ValueError())
    ('no such file', 'ValueError')
    """
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 2 * LONGEST else f"{text[: 2 * LONGEST]}…"


def shown(value: Any) -> str:
    """How a message shows what it was given: on one line, cut where it is long.

    >>> shown("knee"), shown([1.0] * 1000)
    ("'knee'", '[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, ...]')
    """
    try:
        text = " ".join(_short.repr(value).split())
    except Exception:  # whatever a foreign object raises when asked for its text
        return f"a {type(value).__name__}"
    return text if len(text) <= 2 * LONGEST else f"{text[:LONGEST]}…"
