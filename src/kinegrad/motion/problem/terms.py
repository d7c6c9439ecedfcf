"""Terms of the objective: J = Σ weight · ∫ ψ dt over all phases, or over one.

Descriptions know no model.  Integrals are sums over the nodes of each phase, by the rules of Newton and Cotes in each
segment: Simpson's for one or two nodes in it, and at four parts of it for splines of degree 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kinegrad.errors import InputError, shown
from kinegrad.motion.motion import Motion
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.requirements import Requirement

__all__ = ["Acceleration", "Effort", "Follow", "Jerk", "Posture", "Power", "Term", "Time", "UserTerm"]


class Term(Requirement):
    """Base of the terms."""

    weight: float
    phase: str | None

    def _check(self) -> None:
        name = type(self).__name__
        self._set(weight=checks.number(f"weight of {name}", self.weight))
        if self.phase is not None and not isinstance(self.phase, str):
            raise InputError(f"`phase` of {name} is {shown(self.phase)}; expected the name of a phase")


@dataclass(frozen=True, eq=False)
class Time(Term):
    """The duration, s.

    >>> Time(2.0).weight
    2.0
    """

    weight: float = 1.0
    phase: str | None = None

    def __post_init__(self) -> None:
        self._check()


@dataclass(frozen=True, eq=False)
class Effort(Term):
    """∫ Σ c τ² dt of actuators.

    Parameters
    ----------
    weight : float
    relative : bool
        τ by its limit, so that all count alike; else in N·m or N.
    by : float, array_like or mapping of str to float, optional
        Further factors c, one for all or by name.
    phase : str, optional

    Examples
    --------
    >>> Effort(relative=True).relative
    True
    """

    weight: float = 1.0
    relative: bool = False
    by: Any = 1.0
    phase: str | None = None

    def __post_init__(self) -> None:
        self._check()
        if not isinstance(self.relative, bool):
            raise InputError(f"`relative` of Effort is {shown(self.relative)}; expected True or False")
        self._own("by")


@dataclass(frozen=True, eq=False)
class Power(Term):
    """∫ Σ |P| dt of the mechanical power P of actuators, J; or the net work.

    Parameters
    ----------
    weight : float
    smoothing : float or None
        |P| is √(P² + ε²) − ε with this ε, W; None integrates P itself, the net work.
    phase : str, optional

    Examples
    --------
    >>> Power(smoothing=None).smoothing is None
    True
    """

    weight: float = 1.0
    smoothing: float | None = 1.0
    phase: str | None = None

    def __post_init__(self) -> None:
        self._check()
        if self.smoothing is not None:
            self._set(smoothing=checks.number("smoothing of Power", self.smoothing, least=0.0, above=True))


@dataclass(frozen=True, eq=False)
class Acceleration(Term):
    """∫ Σ c a² dt: what keeps a motion smooth where nothing else does.

    >>> Acceleration(1e-5).weight
    1e-05
    """

    weight: float = 1.0
    by: Any = 1.0
    phase: str | None = None

    def __post_init__(self) -> None:
        self._check()
        self._own("by")


@dataclass(frozen=True, eq=False)
class Jerk(Term):
    """∫ Σ c (da/dt)² dt.

    >>> Jerk(1e-6).weight
    1e-06
    """

    weight: float = 1.0
    by: Any = 1.0
    phase: str | None = None

    def __post_init__(self) -> None:
        self._check()
        self._own("by")


@dataclass(frozen=True, eq=False)
class Posture(Term):
    """∫ Σ c (q − q₀)² dt of a posture q₀.

    Parameters
    ----------
    weight : float
    q : float, array_like or mapping of str to float
        rad or m; coordinates that are not named do not count.
    by : float, array_like or mapping of str to float
    phase : str, optional

    Examples
    --------
    >>> Posture(0.01).q
    0.0
    """

    weight: float = 1.0
    q: Any = 0.0
    by: Any = 1.0
    phase: str | None = None

    def __post_init__(self) -> None:
        self._check()
        self._own("q", "by")


@dataclass(frozen=True, eq=False)
class Follow(Term):
    """∫ Σ c (q − r)² dt of a reference motion r, as one that was measured.

    The reference is stretched to the phase: at half of the phase, half of it has passed.

    Parameters
    ----------
    motion : Motion
        Of the same coordinates.
    weight : float
    by : float, array_like or mapping of str to float
        Factors c; coordinates that are not named do not count.
    phase : str, optional
        The one it lasts; needed where there are several.

    Examples
    --------
    >>> import numpy as np
    >>> from kinegrad import samples
    >>> arm, t = samples.two_link(), np.linspace(0, 1, 5)
    >>> Follow(Motion(arm, t, *np.zeros((3, 5, 2)))).weight
    1.0
    """

    motion: Motion
    weight: float = 1.0
    by: Any = 1.0
    phase: str | None = None

    def __post_init__(self) -> None:
        self._check()
        if not isinstance(self.motion, Motion):
            raise InputError(f"`motion` of Follow is a {type(self.motion).__name__}; expected a Motion")
        self._own("by")


@dataclass(frozen=True, eq=False)
class UserTerm(Term):
    """∫ ψ dt of a function of your own.

    Parameters
    ----------
    function : callable
        ``function(s=…, q=…, v=…, a=…, tau=…, forces=…)`` gets arrays of K nodes (s are parts of the phase; forces only
        where there are any) and returns the value, (K,), and a dictionary of its gradients by some of ``"q"``, ``"v"``,
        ``"a"``, ``"tau"``, ``"forces"``, each of the shape of that argument.
    weight : float
    name : str
    phase : str, optional

    Notes
    -----
    Its second derivatives are differences of these gradients.

    Examples
    --------
    >>> term = UserTerm(lambda s, q, **others: ((q**2).sum(axis=1), {"q": 2 * q}))
    >>> term.name
    'user term'
    """

    function: Callable[..., Any]
    weight: float = 1.0
    name: str = "user term"
    phase: str | None = None

    def __post_init__(self) -> None:
        self._check()
        if not callable(self.function):
            raise InputError(f"`function` of UserTerm is {shown(self.function)}; expected a function")
        if not isinstance(self.name, str):
            raise InputError(f"`name` of UserTerm is {shown(self.name)}; expected text")
