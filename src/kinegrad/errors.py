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
