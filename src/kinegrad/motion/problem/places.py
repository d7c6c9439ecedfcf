"""Points, contacts and loops that a motion has to mind: descriptions, as those of ``requirements.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kinegrad import _engine as engine
from kinegrad.constraints.descriptions import Constraint
from kinegrad.errors import InputError, said, shown
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.requirements import Requirement, check_interval, check_when
from kinegrad.results import owned

__all__ = ["Above", "Apart", "Foot", "Guided", "Held", "Kept", "Reach"]


def _placed(requirement: Any, *, link: str = "link", point: str = "point") -> None:
    name, where = type(requirement).__name__, getattr(requirement, link)
    if not isinstance(where, str):
        raise InputError(f"`{link}` of {name} is {shown(where)}; expected the name of a link or frame")
    at = checks.vector(f"{point} of {name}({where!r})", getattr(requirement, point))
    requirement._set(**{point: tuple(at.tolist())})


def _relative(requirement: Any) -> None:
    if requirement.other is not None:
        _placed(requirement, link="other", point="other_point")


def _letters(requirement: Any) -> None:
    letters, name = requirement.directions, type(requirement).__name__
    good = isinstance(letters, str) and letters and set(letters) <= set("xyz") and len(set(letters)) == len(letters)
    if not good:
        raise InputError(f"`directions` of {name} is {shown(letters)}; expected some of 'xyz', each once")


@dataclass(frozen=True, eq=False)
class Held(Requirement):
    """A point of a link that stays at a place of the world, without a force.

    Parameters
    ----------
    link : str
        A link, or a frame fixed in one.
    at : array_like, shape (3,)
        World, m.
    point : array_like, shape (3,)
        In the frame of the link, m.
    directions : str
        Which of x, y, z.
    phase : str, optional
    during : (float, float)
        From which part of the phase to which.
    other : str, optional
        A link or frame: `at` is then counted from a point of it, along the axes of the world, as of two hands on one
        box.
    other_point : array_like, shape (3,)
        In the frame of `other`, m.

    Examples
    --------
    >>> Held("hand", (0.3, 0.0, 1.0), directions="z").directions
    'z'
    """

    link: str
    at: ArrayLike
    point: ArrayLike = (0.0, 0.0, 0.0)
    directions: str = "xyz"
    phase: str | None = None
    during: tuple[float, float] = (0.0, 1.0)
    other: str | None = None
    other_point: ArrayLike = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _placed(self)
        _placed(self, point="at")
        _relative(self)
        _letters(self)
        check_interval(self)


@dataclass(frozen=True, eq=False)
class Reach(Requirement):
    """A point of a link that is at a place of the world at the start or the end.

    Parameters
    ----------
    link : str
    at : array_like, shape (3,)
        World, m.
    when : str
        ``"start"`` or ``"end"``.
    point : array_like, shape (3,)
    directions : str
    phase : str, optional
        Whose start or end; of the whole motion if not given.
    other, other_point
        As of :class:`Held`.

    Examples
    --------
    >>> Reach("hand", (0.3, 0.0, 1.0), "end").when
    'end'
    """

    link: str
    at: ArrayLike
    when: str = "end"
    point: ArrayLike = (0.0, 0.0, 0.0)
    directions: str = "xyz"
    phase: str | None = None
    other: str | None = None
    other_point: ArrayLike = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _placed(self)
        _placed(self, point="at")
        _relative(self)
        _letters(self)
        check_when(self)
        check_interval(self)


@dataclass(frozen=True, eq=False)
class Guided(Requirement):
    """A point of a link that follows a path.

    Parameters
    ----------
    link : str
    path : callable, or array_like of shape (k, 3)
        From parts of the phase, (m,) from 0 to 1, to places of the world, (m, 3); or places equally far apart in time,
        between which it goes straight.
    point : array_like, shape (3,)
    directions : str
    tolerance : float
        By how much it may be off, m.
    phase : str, optional
    during : (float, float)

    Examples
    --------
    >>> Guided("hand", [[0.3, 0, 1], [0.5, 0, 1]]).places(np.array([0.5]))
    array([[0.4, 0. , 1. ]])
    """

    link: str
    path: Callable[[Any], Any] | ArrayLike
    point: ArrayLike = (0.0, 0.0, 0.0)
    directions: str = "xyz"
    tolerance: float = 0.0
    phase: str | None = None
    during: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        _placed(self)
        _letters(self)
        check_interval(self)
        self._set(tolerance=checks.number("tolerance of Guided", self.tolerance, least=0.0))
        if not callable(self.path):
            x = engine.real("path of Guided", self.path)
            if x.ndim != 2 or x.shape[1] != 3 or len(x) < 2 or x.dtype.kind not in "iuf" or not np.isfinite(x).all():
                raise InputError(f"`path` of Guided has shape {x.shape}; expected finite places (k, 3), k from 2 on")
            self._set(path=owned(x.astype(float)))

    def places(self, s: Any) -> Any:
        """World places at parts of the phase, (m, 3)."""
        if callable(self.path):
            try:
                found = np.asarray(self.path(np.array(s)), dtype=float)
            except (TypeError, ValueError) as error:
                expected = f"expected a function from ({len(s)},) to ({len(s)}, 3)"
                raise InputError(f"`path` of Guided fails: {said(error)}; {expected}") from error
            if found.shape != (len(s), 3) or not np.isfinite(found).all():
                raise InputError(f"`path` of Guided returns shape {found.shape}; expected finite ({len(s)}, 3)")
            return found
        points = np.asarray(self.path)
        at = np.linspace(0, 1, len(points))
        return np.stack([np.interp(s, at, points[:, k]) for k in range(3)], axis=-1)


@dataclass(frozen=True, eq=False)
class Above(Requirement):
    """A point of a link that stays above the ground, above any plane, or beside a point of another link.

    normal · (p − p_other) ≥ height, at the nodes of the phase and at its `clear_at`; looked at at all times afterwards.

    Parameters
    ----------
    link : str
    height : float
        m.
    point : array_like, shape (3,)
    normal : array_like, shape (3,), optional
        World; against gravity if not given, and z without gravity.
    other : str, optional
        A link or frame; the world if not given.
    other_point : array_like, shape (3,)
        In its frame, m.
    phase : str, optional
    during : (float, float)

    Examples
    --------
    >>> Above("grip", 0.15, normal=(1, 0, 0), other="shank").normal
    (1.0, 0.0, 0.0)
    """

    link: str
    height: float = 0.0
    point: ArrayLike = (0.0, 0.0, 0.0)
    normal: ArrayLike | None = None
    other: str | None = None
    other_point: ArrayLike = (0.0, 0.0, 0.0)
    phase: str | None = None
    during: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        _placed(self)
        _relative(self)
        self._set(
            height=checks.number("height of Above", self.height),
            other_point=tuple(checks.vector("other_point of Above", self.other_point).tolist()),
        )
        if self.normal is not None:
            self._set(normal=tuple(checks.direction("normal of Above", self.normal).tolist()))
        check_interval(self)


@dataclass(frozen=True, eq=False)
class Apart(Requirement):
    """A point of a link that stays away from an obstacle: a ball, or a cylinder without ends.

    Parameters
    ----------
    link : str
    distance : float
        From the centre or the axis, m.
    center : array_like, shape (3,)
        World, m; or in the frame of `other`.
    point : array_like, shape (3,)
    axis : array_like, shape (3,), optional
        World direction of the cylinder; without it the obstacle is a ball.
    other : str, optional
        A link or frame that carries the centre.
    phase : str, optional
    during : (float, float)

    Examples
    --------
    >>> Apart("hand", 0.2, center=(0.5, 0.0, 0.5)).distance
    0.2
    """

    link: str
    distance: float
    center: ArrayLike = (0.0, 0.0, 0.0)
    point: ArrayLike = (0.0, 0.0, 0.0)
    axis: ArrayLike | None = None
    other: str | None = None
    phase: str | None = None
    during: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        _placed(self)
        if self.other is not None and not isinstance(self.other, str):
            raise InputError(f"`other` of Apart is {shown(self.other)}; expected the name of a link or frame")
        self._set(
            distance=checks.number("distance of Apart", self.distance, least=0.0, above=True),
            center=tuple(checks.vector("center of Apart", self.center).tolist()),
        )
        if self.axis is not None:
            self._set(axis=tuple(checks.direction("axis of Apart", self.axis).tolist()))
        check_interval(self)


@dataclass(frozen=True, eq=False)
class Kept(Requirement):
    """A constraint that the motion keeps: a cut joint, two hands on one box, a rod.

    Parameters
    ----------
    constraint : Contact, Loop, Distance, Coupling or Given
    forces : bool
        Whether it has forces, unknown at every node, as a cut joint has [xiang2008] (38); else it is kept by the
        torques alone.
    phase : str, optional

    Examples
    --------
    >>> from kinegrad import Loop
    >>> Kept(Loop("coupler", other="rocker", directions="xz"), forces=True).forces
    True
    """

    constraint: Constraint
    forces: bool = False
    phase: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.constraint, Constraint):
            found = shown(self.constraint)
            raise InputError(f"`constraint` of Kept is {found}; expected Contact, Loop, Distance, Coupling or Given")
        if not isinstance(self.forces, bool | np.bool_):
            raise InputError(f"`forces` of Kept is {shown(self.forces)}; expected True or False")
        check_interval(self)


@dataclass(frozen=True, eq=False)
class Foot(Requirement):
    """A sole that stands on the ground, with a wrench that is unknown at every node, inside its friction cone.

    The *sole frame* is in the middle of the sole, z away from the ground.  The wrench is what the ground exerts, F at
    its origin and M about it, along the axes of where it stands.  It fulfils F_z ≥ 0; friction, by a pyramid inside the
    cone; |M_y| ≤ ½ size_x F_z and |M_x| ≤ ½ size_y F_z, so that the centre of pressure is within the sole; and
    |M_z| ≤ torsion F_z.

    Parameters
    ----------
    link : str
        A link, or a frame fixed in one.
    sole : array_like, shape (4, 4) or (3,)
        Where the sole frame is in the world while the model is in `posture`: a transform, or its origin.  Then z is
        against gravity, and the axes are those of the world turned as little as that takes: where y is up, x stays.
        Without gravity they are those of the world.  A normal more than 60° from up is among the notes of a problem.
    size : (float, float), optional
        Of the sole along x and y of its frame, m.  None is a point, which transmits a force only.
    friction : float
        Coefficient μ.
    torsion : float
        m; by which F_z is multiplied to bound the moment about the normal.
    faces : int
        Of the pyramid, from 3 on; its edges are on the cone.
    at : array_like, shape (4, 4) or (3,), optional
        Where it stands; if not given, where it is in `posture`.
    posture : array_like, shape (n,), or mapping of str to float, optional
        Zero if not given.
    phase : str, optional
        While which it stands; always if not given.

    Examples
    --------
    >>> Foot("right_foot", (0.09, 0.085, -0.87), size=(0.08, 0.27)).friction
    0.6
    """

    link: str
    sole: ArrayLike
    size: tuple[float, float] | None = None
    friction: float = 0.6
    torsion: float = 0.05
    faces: int = 4
    at: ArrayLike | None = None
    posture: Any = None
    phase: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.link, str):
            raise InputError(f"`link` of Foot is {shown(self.link)}; expected the name of a link or frame")
        where = f"Foot({self.link!r})"
        if self.size is not None:
            extent = checks.vector(f"size of {where}", self.size, 2)
            if not (extent > 0).all():
                raise InputError(f"`size` of {where} is {shown(self.size)}; expected two lengths above 0 m, or None")
            self._set(size=tuple(extent.tolist()))
        if isinstance(self.faces, bool) or not isinstance(self.faces, int | np.integer) or not 3 <= self.faces <= 64:
            raise InputError(f"`faces` of {where} is {shown(self.faces)}; expected a whole number from 3 to 64")
        self._set(
            sole=_place(f"sole of {where}", self.sole),
            friction=checks.number(f"friction of {where}", self.friction, least=0.0, above=True),
            torsion=checks.number(f"torsion of {where}", self.torsion, least=0.0, above=True),
            posture=owned(self.posture),
        )
        if self.at is not None:
            self._set(at=_place(f"at of {where}", self.at))
        check_interval(self)


def _place(what: str, given: Any) -> Any:
    """A transform, (4, 4), or the origin of a frame whose axes are left open, (3,)."""
    found = checks.transform(what, given)
    return owned(found[:3, 3] if np.ndim(given) == 1 else found)
