"""What can go wrong, by name.

Every error kinegrad raises on purpose derives from :class:`KinegradError` and says, in one sentence, which
argument is at fault, what was found and what was expected.

>>> issubclass(InputError, KinegradError) and issubclass(InputError, ValueError)
True
"""

__all__ = ["InputError", "KinegradError", "ModelError", "SingularError", "SolveError"]


class KinegradError(Exception):
    """Base of all errors raised by kinegrad."""


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
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 11]} … {text[-8:]}"
