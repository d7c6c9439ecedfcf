"""What can go wrong, by name.

Every error kinegrad raises on purpose derives from :class:`KinegradError` and says, in one sentence, which
argument is at fault, what was found and what was expected.

>>> issubclass(InputError, KinegradError) and issubclass(InputError, ValueError)
True
"""

__all__ = ["InputError", "KinegradError", "ModelError", "SingularError", "SolveError"]


_MOST = 1000  # characters of a message


def _cut(text: str, most: int = _MOST, end: int = _MOST // 2) -> str:
    return text if len(text) <= most else f"{text[: most - end - 3]} … {text[-end:]}"


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


class SingularError(KinegradError, ArithmeticError):
    """A matrix or mechanism that is singular at the given state."""


class SolveError(KinegradError, RuntimeError):
    """A solver that stopped without an answer."""


def shown(value: object, most: int = 80) -> str:
    """What a message shows of a value: its repr, cut to so many characters.

    >>> shown("spatial"), len(shown(list(range(1000))))
    ("'spatial'", 80)
    """
    try:
        text = repr(value)
    except Exception:  # whatever a foreign object raises when asked what it is
        text = f"<{type(value).__name__}>"
    return _cut(" ".join(text.split()), most, 8)
