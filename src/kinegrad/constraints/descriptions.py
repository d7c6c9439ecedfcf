"""What can be constrained: descriptions that know no model, each one immutable and equal by value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import InputError, ModelError, shown
from kinegrad.model.names import check_name
from kinegrad.model.numbers import LARGEST, real_array, real_number, too_large
from kinegrad.model.placement import check_transform, unit_axis
from kinegrad.results import frozen

__all__ = ["Constraint", "Contact", "Coupling", "Distance", "Given", "Loop"]

Array = NDArray[np.float64]
WELD, HINGE, PIN = "xyzXYZ", "xyzXY", "xyz"
_WORDS = {"weld": WELD, "hinge": HINGE, "pin": PIN}


class Constraint:
    """Base of the descriptions: frozen dataclasses that compare and hash by value, and pickle."""

    name: str
    word: ClassVar[str]

    @property
    def rows(self) -> tuple[str, ...]:
        """What its rows are called, after its name and a dot; one row has no name of its own."""
        return ("",)

    @property
    def subject(self) -> str:
        """The link or joint that it is about."""
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """What it says, in words."""
        raise NotImplementedError

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return (type(self), *(_content(getattr(self, field.name)) for field in fields(self)))  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Constraint) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]

    def __repr__(self) -> str:
        parts = ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        shown_ = [f"{name}={_text(x)}" for name, x in parts if name != "name" or x]
        return f"{type(self).__name__}({', '.join(shown_)})"

    def _set(self, **checked: Any) -> None:
        for name, value in checked.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False, repr=False)
class Contact(Constraint):
    """A point of a link that does not move in some directions of the world.

    Its rows are u·(p − p₀) for unit vectors u that are fixed in the world, where p is the point of the link, and p₀ a
    point of the world or of another link.

    Parameters
    ----------
    link : str
        A link, or a frame fixed in one.
    point : array_like, shape (3,), optional
        Of the link, in its frame, m; its origin if not given.
    directions : str, or array_like of shape (k, 3)
        Letters of world axes, or any directions u, as of an inclined floor; their length does not count.
    other : str, optional
        Another link or frame; the world if not given.
    other_point : array_like, shape (3,), optional
        Where the point is held: in the frame of `other`, or in the world, m; the origin if not given.
        :meth:`ConstraintSet.held_at` holds contacts where they are in a configuration.
    name : str, optional
        Made from the link if not given.

    Examples
    --------
    >>> Contact("foot", [0.1, 0, 0], directions="z").rows
    ('z',)
    >>> Contact("foot", directions=[[0, 3, 4]]).directions
    ((0.0, 0.6, 0.8),)
    """

    link: str
    point: ArrayLike = (0.0, 0.0, 0.0)
    directions: str | ArrayLike = "xyz"
    other: str | None = None
    other_point: ArrayLike = (0.0, 0.0, 0.0)
    name: str = ""
    word: ClassVar[str] = "contact"

    def __post_init__(self) -> None:
        where = _named(self, "link", "other")
        points = {what: _point(where, what, getattr(self, what)) for what in ("point", "other_point")}
        directions = self.directions
        if not isinstance(directions, str):
            directions = _directions(where, directions)
        else:
            _letters(where, directions, "xyz", "some of 'xyz', or unit vectors of shape (k, 3)")
            directions = str.__str__(directions)  # of a class of its own, it might be anything
        self._set(**points, directions=directions)

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(self.directions if isinstance(self.directions, str) else map(str, range(len(self.units))))

    @property
    def units(self) -> Array:
        """The directions u, (k, 3)."""
        if isinstance(self.directions, str):
            return np.array([unit_axis(letter) for letter in self.directions])
        return np.array(self.directions)

    @property
    def subject(self) -> str:
        return self.link

    @property
    def summary(self) -> str:
        units = self.directions
        if not isinstance(units, str):
            units = ", ".join(_text(tuple(u)) for u in self.units.tolist())
        ends = f"{self.link} {_text(self.point)} with {self.other or 'the world'} {_text(self.other_point)}"
        return f"contact {units} of {ends}"


@dataclass(frozen=True, eq=False, repr=False)
class Loop(Constraint):
    """Two frames, of two links or of a link and the world, that do not move relative to each other in some directions.

    A cut joint: the rows of directions x, y, z are how far the frame of `link` is from the other, along that frame's
    axes, m; those of X, Y, Z are how far it is turned about them: near closure the angle, rad.  The axis that is free
    where two turns are locked may turn through all angles.

    Parameters
    ----------
    link : str
        A link, or a frame fixed in one.
    placement : array_like, shape (4, 4) or (3,), optional
        The frame in the link: a transform, or a shift, m.
    other : str, optional
        Another link or frame; the world if not given.
    other_placement : array_like, shape (4, 4) or (3,), optional
        The frame in it.
    directions : str
        Letters of what is locked: shifts along "xyz" and turns about "XYZ" of the other frame; or ``"weld"``, all six;
        ``"hinge"``, all but the turn about z; ``"pin"``, the three shifts.
    name : str, optional
        Made from the link if not given.

    Examples
    --------
    >>> Loop("rod", [0, 0, -0.5], "rocker", directions="hinge").rows
    ('x', 'y', 'z', 'X', 'Y')
    """

    link: str
    placement: ArrayLike = (0.0, 0.0, 0.0)
    other: str | None = None
    other_placement: ArrayLike = (0.0, 0.0, 0.0)
    directions: str = WELD
    name: str = ""
    word: ClassVar[str] = "loop"

    def __post_init__(self) -> None:
        where = _named(self, "link", "other")
        frames = {}
        for what in ("placement", "other_placement"):
            frames[what] = frozen(_plain(where, what, check_transform, getattr(self, what)))
        letters = _WORDS.get(self.directions, self.directions) if isinstance(self.directions, str) else self.directions
        _letters(where, letters, WELD, "'weld', 'hinge', 'pin', or some of 'xyzXYZ'")
        self._set(**frames, directions="".join(letter for letter in WELD if letter in letters))

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(self.directions)

    @property
    def subject(self) -> str:
        return self.link

    @property
    def summary(self) -> str:
        other = f"{self.other or 'the world'} {_text(self.other_placement)}"
        return f"loop {self.directions} of {self.link} {_text(self.placement)} with {other}"


@dataclass(frozen=True, eq=False, repr=False)
class Distance(Constraint):
    """A massless rod with a ball at each end: the distance of two points does not change.

    Its row is |p − p₀| − length, m.

    Parameters
    ----------
    link : str
        A link, or a frame fixed in one.
    point : array_like, shape (3,), optional
        Of the link, in its frame, m.
    other : str, optional
        Another link or frame; the world if not given.
    other_point : array_like, shape (3,), optional
        In the frame of `other`, or in the world, m.
    length : float, optional
        m; what the distance is in the model's neutral configuration, if not given.
    name : str, optional
        Made from the link if not given.

    Examples
    --------
    >>> Distance("bob", other_point=[0, 0, 1], length=0.5)
    Distance(link='bob', point=(0, 0, 0), other=None, other_point=(0, 0, 1), length=0.5)
    """

    link: str
    point: ArrayLike = (0.0, 0.0, 0.0)
    other: str | None = None
    other_point: ArrayLike = (0.0, 0.0, 0.0)
    length: float | None = None
    name: str = ""
    word: ClassVar[str] = "distance"

    def __post_init__(self) -> None:
        where = _named(self, "link", "other")
        points = {what: _point(where, what, getattr(self, what)) for what in ("point", "other_point")}
        length = None if self.length is None else _number(where, "length", self.length)
        if length is not None and not length > 0:
            raise InputError(f"`length` of {where} is {length:g}; expected more than zero, m")
        self._set(**points, length=length)

    @property
    def subject(self) -> str:
        return self.link

    @property
    def summary(self) -> str:
        ends = f"{self.link} {_text(self.point)} from {self.other or 'the world'} {_text(self.other_point)}"
        return f"distance of {ends}" + ("" if self.length is None else f": {self.length:g} m")


@dataclass(frozen=True, eq=False, repr=False)
class Coupling(Constraint):
    """Two joints that move together: the row is q_joint − ratio q_other − offset.

    A belt, a rack or a gear whose force is wanted.  Where it is not, :meth:`ModelBuilder.mimic` couples joints without
    a constraint, by removing a coordinate.

    Parameters
    ----------
    joint, other : str
        Names of joints.
    ratio : float
        Of their speeds, rad or m of `joint` per rad or m of `other`.
    offset : float
        rad or m of `joint`.
    name : str, optional
        Made from the joint if not given.

    Examples
    --------
    >>> Coupling("rack", "pinion", 0.02)
    Coupling(joint='rack', other='pinion', ratio=0.02, offset=0.0)
    """

    joint: str
    other: str
    ratio: float = 1.0
    offset: float = 0.0
    name: str = ""
    word: ClassVar[str] = "coupling"

    def __post_init__(self) -> None:
        where = _named(self, "joint")
        other = _plain(where, "other", lambda what, x: check_name(what, x), self.other)
        if other == self.joint:
            raise InputError(f"{where} couples joint {shown(self.joint)} with itself; expected two joints")
        self._set(other=other, **{what: _number(where, what, getattr(self, what)) for what in ("ratio", "offset")})

    @property
    def subject(self) -> str:
        return self.joint

    @property
    def summary(self) -> str:
        return f"{self.joint} = {self.ratio:g} {self.other} + {self.offset:g}"


@dataclass(frozen=True, eq=False, repr=False)
class Given(Constraint):
    """A joint that is held: the row is q_joint − value.

    Parameters
    ----------
    joint : str
        Name of a joint.
    value : float
        rad or m.
    name : str, optional
        Made from the joint if not given.

    Examples
    --------
    >>> Given("knee", 0.1)
    Given(joint='knee', value=0.1)
    """

    joint: str
    value: float = 0.0
    name: str = ""
    word: ClassVar[str] = "given"

    def __post_init__(self) -> None:
        where = _named(self, "joint")
        self._set(value=_number(where, "value", self.value))

    @property
    def subject(self) -> str:
        return self.joint

    @property
    def summary(self) -> str:
        return f"{self.joint} = {self.value:g}"


# --- checks -----------------------------------------------------------------------------------------------------


def _named(constraint: Any, subject: str, other: str | None = None) -> str:
    """Check its names; how errors call it."""
    kind, what = type(constraint).__name__, getattr(constraint, subject)
    where = f"{kind}({shown(what)})"
    checked = {"name": _plain(where, "name", check_name, constraint.name)}
    checked[subject] = _plain(where, subject, check_name, what)
    if other is not None and getattr(constraint, other) is not None:
        checked[other] = _plain(where, other, check_name, getattr(constraint, other))
    constraint._set(**checked)
    return where


def _plain(where: str, what: str, check: Any, value: Any) -> Any:
    """What a check of the model's parts finds; its errors are of arguments here."""
    try:
        found = check(f"`{what}` of {where}", value)
    except ModelError as error:
        raise InputError(str(error)) from None
    if np.iscomplexobj(found):
        raise InputError(f"`{what}` of {where} holds complex numbers; expected real numbers")
    return found


def _number(where: str, what: str, value: Any) -> float:
    return float(_plain(where, what, real_number, value))


def _point(where: str, what: str, value: Any) -> tuple[float, ...]:
    x = _plain(where, what, lambda name, given: real_array(name, given, "three numbers"), value)
    if x.shape != (3,):
        raise InputError(f"`{what}` of {where} has shape {x.shape}; expected three numbers, m")
    if too_large(x):
        raise InputError(f"`{what}` of {where} is {shown(x.tolist())}; expected finite numbers, below {LARGEST:g}")
    return tuple(float(c) + 0.0 for c in x)


def _letters(where: str, given: Any, known: str, expected: str) -> None:
    if not isinstance(given, str) or not given or len(set(given)) < len(given) or not set(given) <= set(known):
        raise InputError(f"`directions` of {where} is {shown(given)}; expected {expected}, each once")


def _directions(where: str, given: Any) -> tuple[tuple[float, ...], ...]:
    """Unit vectors."""
    array = _plain(where, "directions", lambda name, x: real_array(name, x, "vectors of shape (k, 3)"), given)
    if array.ndim != 2 or array.shape[1] != 3 or not len(array):
        raise InputError(f"`directions` of {where} have shape {array.shape}; expected letters, or vectors (k, 3)")
    found = []
    for k, vector in enumerate(array):
        if not np.isfinite(vector).all() or not vector.any():
            text = shown(vector.tolist())
            raise InputError(f"`directions` of {where} at {k} is {text}; expected a finite vector that is not zero")
        found.append(tuple(float(c) + 0.0 for c in unit_axis(vector)))
    return tuple(found)


def _content(x: Any) -> Any:
    return (x + 0.0).tobytes() if isinstance(x, np.ndarray) else x


def _text(x: Any) -> str:
    if isinstance(x, np.ndarray):
        turned = "" if np.array_equal(x[:3, :3], np.eye(3)) else ", turned"
        return f"({', '.join(f'{c:g}' for c in x[:3, 3])}{turned})"
    return f"({', '.join(f'{c:g}' for c in x)})" if isinstance(x, tuple) and isinstance(x[0], float) else repr(x)
