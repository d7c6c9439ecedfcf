"""What a motion is required to be: phases, boundary conditions, limits; points and contacts are in ``places.py``.

Descriptions know no model; each is immutable, and checked for what it says by itself.  Names and sizes are checked
when a :class:`MotionProblem` is made of them, before anything is solved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads
from kinegrad.motion.bspline import SplineBasis
from kinegrad.motion.problem import checks
from kinegrad.results import owned, same

__all__ = [
    "Boundary",
    "Fixed",
    "Limits",
    "Periodic",
    "Phase",
    "Requirement",
    "Symmetric",
]


class Requirement:
    """Base of the descriptions: frozen dataclasses that compare by value, and pickle."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [x.name for x in fields(self)]  # type: ignore[arg-type]
        return all(same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _own(self, *names: str) -> None:
        """Copies that nobody can write to."""
        self._set(**{name: owned(getattr(self, name)) for name in names})


@dataclass(frozen=True, eq=False)
class Phase(Requirement):
    """A stretch of the motion with one spline, one set of contacts and one set of loads.

    Parameters
    ----------
    name : str
    duration : float, or (least, most)
        s; one number fixes it.
    segments : int, or array_like of shape (segments + 1,)
        Of the splines: how many of equal length, or where they meet, from 0 to 1.
    degree : int
        Of the splines, 3 to 5.
    nodes : int
        How many times within a segment dynamics and limits are looked at: 1 is the breakpoints alone.  One is a trap
        where contact forces are unknown (docs/motion.md, *Between the nodes*).
    attached : mapping of str to float, or to (mass, point), optional
        Point masses, kg, that a link or frame carries in this phase, at its origin or at a point of its frame, m.
    loads : Loads, optional
        External loads in this phase, one for all times.
    continuity : int
        Up to which derivative the motion goes on from the phase before: 2, accelerations too, or 1, speeds.  Where a
        foot leaves the ground or a load is taken, forces jump and accelerations with them: 1.
    clear_at : array_like, shape (k,)
        Parts of the phase, from 0 to 1, at which clearances are required besides the nodes, as where a point passes a
        small obstacle; ``solve(refine=True)`` finds them.

    Examples
    --------
    >>> Phase("lift", duration=(0.5, 3.0), segments=12, attached={"hand": 5.0}).basis
    SplineBasis(12 equal segments of degree 3)
    """

    name: str = "motion"
    duration: float | tuple[float, float] = (0.05, 10.0)
    segments: int | ArrayLike = 20
    degree: int = 3
    nodes: int = 2
    attached: Mapping[str, Any] = field(default_factory=dict)
    loads: Loads | None = None
    continuity: int = 2
    clear_at: ArrayLike = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"`name` of a Phase is {shown(self.name)}; expected text")
        where = f"duration of phase {self.name!r}"
        if isinstance(self.duration, bool | str | bytes) or self.duration is None:
            raise InputError(f"`{where}` is {shown(self.duration)}; expected a time, or the least and the most, s")
        if isinstance(self.duration, int | float | np.number):
            T = checks.number(where, self.duration, least=0.0, above=True)
            ends = (T, T)
        else:
            ends = checks.pair(where, self.duration, "a time, or the least and the most, s")
        if not ends[0] > 0 or not np.isfinite(ends).all():
            raise InputError(f"`{where}` is {shown(self.duration)}; expected finite times above 0 s")
        for what, lowest, highest in (("nodes", 1, 20), ("continuity", 1, 2)):
            x = getattr(self, what)
            if isinstance(x, bool) or not isinstance(x, int | np.integer) or not lowest <= x <= highest:
                found = f"`{what}` of phase {self.name!r} is {shown(x)}"
                raise InputError(f"{found}; expected a whole number from {lowest} to {highest}")
        if not isinstance(self.attached, Mapping):
            raise InputError(f"`attached` of phase {self.name!r} is {shown(self.attached)}; expected a dictionary")
        masses = {}
        for link, given in self.attached.items():
            place = f"attached[{link!r}] of phase {self.name!r}"
            mass, point = given if isinstance(given, tuple | list) and len(given) == 2 else (given, (0.0, 0.0, 0.0))
            masses[link] = (checks.number(place, mass, least=0.0), tuple(checks.vector(place, point).tolist()))
        if self.loads is not None and not isinstance(self.loads, Loads):
            raise InputError(f"`loads` of phase {self.name!r} is a {type(self.loads).__name__}; expected Loads(…)")
        at = np.asarray(engine.real("clear_at", self.clear_at), dtype=float)
        if at.ndim != 1 or not ((at >= 0) & (at <= 1)).all():
            found = f"`clear_at` of phase {self.name!r} is {shown(self.clear_at)}"
            raise InputError(f"{found}; expected parts of the phase in a row, from 0 to 1")
        self._set(duration=ends, attached=masses, basis=SplineBasis(self.segments, self.degree), clear_at=owned(at))
        self._set(segments=owned(self.segments) if np.ndim(self.segments) else self.segments)

    basis: SplineBasis = field(init=False, compare=False, repr=False)


def check_interval(requirement: Any) -> None:
    name = type(requirement).__name__
    if requirement.phase is not None and not isinstance(requirement.phase, str):
        raise InputError(f"`phase` of {name} is {shown(requirement.phase)}; expected the name of a phase")
    if hasattr(requirement, "during"):
        during = checks.pair(f"during of {name}", requirement.during, "a part of the phase, from 0 to 1")
        if during[0] < 0 or during[1] > 1:
            raise InputError(f"`during` of {name} is {shown(requirement.during)}; expected a part of (0, 1)")
        requirement._set(during=during)


@dataclass(frozen=True, eq=False)
class Boundary(Requirement):
    """Coordinates, speeds and accelerations at the start or the end of the motion, or of a phase.

    Parameters
    ----------
    when : str
        ``"start"`` or ``"end"``.
    q, v, a : array_like, float or mapping of str to float or (lower, upper), optional
        For all coordinates, or by name; rad or m, and their time derivatives.
    phase : str, optional
        Whose start or end; of the whole motion if not given.
    measured : bool
        Whether these are measured values at the start, which may be outside limits: limits of q, v and a, and
        clearances, begin at them and tighten linearly, until they are whole at part `settle` of the first phase.
        Coordinates that are Fixed, or follow others, keep their own values.
    settle : float
        Part of the first phase, above 0 and up to 1.

    Notes
    -----
    The rate at which limits tighten is the excess of the measured value divided by `settle` times the duration of the
    phase.  Limits of torques hold from the start: accelerations are free there, unless `a` is given.

    Examples
    --------
    >>> Boundary("start", q={"knee": 0.3, "hip": (-0.5, 0.5)}, v=0.0).when
    'start'

    An arm whose elbow was measured 0.002 rad beyond its range moves back into it:

    >>> from kinegrad import samples
    >>> from kinegrad.motion import Limits, MotionProblem, Phase
    >>> ends = [Boundary("start", q=[0.0, 0.502], v=0.0, measured=True), Boundary("end", q=[0.3, 0.3], v=0.0)]
    >>> bounds = Limits(q={"elbow": 0.5})
    >>> MotionProblem(samples.two_link(), Phase(segments=12), [*ends, bounds]).solve().success
    True
    """

    when: str
    q: Any = None
    v: Any = None
    a: Any = None
    phase: str | None = None
    measured: bool = False
    settle: float = 0.25

    def __post_init__(self) -> None:
        check_when(self)
        check_interval(self)
        if self.q is None and self.v is None and self.a is None:
            raise InputError("a Boundary has none of `q`, `v`, `a`; expected at least one of them")
        engine.flag("measured", self.measured)
        settle = checks.number("settle of Boundary", self.settle, least=0.0, above=True)
        if settle > 1:
            raise InputError(f"`settle` of Boundary is {settle:g}; expected a part of the phase, above 0 and up to 1")
        if self.measured and self.when != "start":
            raise InputError("`measured` of Boundary('end') is True; expected it of the start, where a body can be "
                             "measured")  # fmt: skip
        self._set(settle=settle)
        self._own("q", "v", "a")


def check_when(requirement: Any) -> None:
    if not isinstance(requirement.when, str) or requirement.when not in ("start", "end"):
        name = type(requirement).__name__
        raise InputError(f"`when` of {name} is {shown(requirement.when)}; expected 'start' or 'end'")


@dataclass(frozen=True, eq=False)
class Limits(Requirement):
    """Bounds, beside those that the model has by itself.

    Parameters
    ----------
    q, v, a, tau, power : float, array_like of shape (n,) or (n, 2), or mapping of str, optional
        One number x is ±x; two are the lower and the upper one.  Rad or m and time derivatives; N·m or N; W.
        Those of `tau` and `power` are of actuators, by name where the model has an actuation.
    phase : str, optional
        In which phase; in all if not given.

    Notes
    -----
    Bounds on q, v and a are put on the control points of the splines and of their derivatives, and so hold at all
    times; those of torque and power are looked at where :class:`Phase` has nodes.  Limits of the model on joints that
    follow a coordinate hold, too.

    Examples
    --------
    >>> Limits(tau=10.0, q={"knee": (0.0, 2.4)}).tau
    10.0
    """

    q: Any = None
    v: Any = None
    a: Any = None
    tau: Any = None
    power: Any = None
    phase: str | None = None

    def __post_init__(self) -> None:
        check_interval(self)
        self._own("q", "v", "a", "tau", "power")


@dataclass(frozen=True, eq=False)
class Fixed(Requirement):
    """Coordinates that do not move: they are no unknowns.

    Parameters
    ----------
    q : mapping of str to float
        rad or m.

    Examples
    --------
    >>> Fixed({"right_toes": 0.0, "left_toes": 0.0}).q["left_toes"]
    0.0
    """

    q: Mapping[str, float]

    def __post_init__(self) -> None:
        if not isinstance(self.q, Mapping) or not self.q:
            raise InputError(f"`q` of Fixed is {shown(self.q)}; expected a dictionary from coordinates to numbers")
        self._set(q={name: checks.number(f"q of Fixed, {name}", x) for name, x in self.q.items()})


@dataclass(frozen=True, eq=False)
class Symmetric(Requirement):
    """Coordinates that follow others: q_name = sign · q_other at all times.

    Parameters
    ----------
    pairs : mapping of str to str, or to (str, sign)
        From the coordinate that follows to the one it follows; the sign is 1 or −1.

    Examples
    --------
    >>> Symmetric({"left_knee": "right_knee", "left_hip.z": ("right_hip.z", -1)}).pairs["left_hip.z"]
    ('right_hip.z', -1.0)
    """

    pairs: Mapping[str, Any]

    def __post_init__(self) -> None:
        self._set(pairs=signed_pairs("pairs of Symmetric", self.pairs))


def signed_pairs(what: str, given: Any) -> dict[str, tuple[str, float]]:
    """Names with a name and a sign each."""
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"`{what}` is {shown(given)}; expected a dictionary from coordinates to coordinates")
    found = {}
    for name, other in given.items():
        partner, sign = other if isinstance(other, tuple | list) and len(other) == 2 else (other, 1.0)
        if not isinstance(name, str) or not isinstance(partner, str) or sign not in (1, -1):
            raise InputError(f"`{what}` has {shown(name)}: {shown(other)}; expected a coordinate, or one and ±1")
        found[name] = (partner, float(sign))
    return found


@dataclass(frozen=True, eq=False)
class Periodic(Requirement):
    """The motion ends as it began: q(T) = q(0) + advance, v(T) = v(0), a(T) = a(0); or as its mirror image began.

    Parameters
    ----------
    advance : mapping of str to float or (lower, upper), optional
        By how much coordinates are further at the end, rad or m; others by nothing.
    mirror : mapping of str to str, or to (str, sign), optional
        q_name(T) = sign · q_other(0) for these, as of a step with the other leg; and the other way round, unless that
        is given, too.
    orders : int
        2: accelerations too; 1: q and v.

    Examples
    --------
    >>> Periodic(advance={"pelvis.ty": 0.6}).orders
    2
    """

    advance: Mapping[str, Any] = field(default_factory=dict)
    mirror: Mapping[str, Any] = field(default_factory=dict)
    orders: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.advance, Mapping):
            raise InputError(f"`advance` of Periodic is {shown(self.advance)}; expected a dictionary")
        whole = isinstance(self.orders, int | np.integer) and not isinstance(self.orders, bool)
        if not whole or self.orders not in (1, 2):
            raise InputError(f"`orders` of Periodic is {shown(self.orders)}; expected 1 or 2")
        self._own("advance")
        none = isinstance(self.mirror, Mapping) and not self.mirror
        pairs = {} if none else signed_pairs("mirror of Periodic", self.mirror)
        self._set(mirror={other: (name, sign) for name, (other, sign) in pairs.items()} | pairs)
