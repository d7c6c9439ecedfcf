"""Masses and inertias that a file states, and the bodies that move with them.

A file describes links one by one.  What moves is a body: a link with everything that is fixed to it.  Many published
files give a camera, an antenna or a dummy base an inertia that no body has; what moves with it is possible all the
same.  So parts are added as the file states them, and the sum is judged:

===========================================  ==================================================================
the body that moves                          what becomes of it
===========================================  ==================================================================
possible                                     as it is; a note if one of its parts alone is impossible
nearest possible one within CLOSE            the nearest possible one, and a note
farther away                                 refused; ``inertia="project"`` takes the nearest possible one
===========================================  ==================================================================

``inertia="refuse"`` refuses every impossible part.  A joint that moves no mass is accepted with a warning, because
inverse dynamics needs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, ModelError, shown
from kinegrad.io.model_file import Note, Repair, named
from kinegrad.io.nearest_inertia import largest_change, nearest_inertia
from kinegrad.model import Inertia
from kinegrad.model.inertia import check_inertia, rotational, second_moments
from kinegrad.model.numbers import flag, too_large

__all__ = ["Bodies", "MassProperties", "Part", "check_choice", "check_flag"]

Array = NDArray[np.float64]
CLOSE = 0.01  # relative change of the moment of inertia about any axis
LARGE = 10  # relative changes above it are not told apart in messages
INERTIAS = ("close", "project", "refuse")
PROJECT = "inertia='project'"
MASSLESS = "massless=True"


@dataclass(frozen=True, eq=False)
class MassProperties:
    """Mass, kg, centre of mass (3,), m, and inertia about it (3, 3), kg·m², whether a body can have them or not.

    Examples
    --------
    >>> camera = MassProperties(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))
    >>> camera.wrong.split(":")[0]
    'principal moments (1, 1, 3) kg·m² about the centre of mass violate the triangle inequality'
    >>> (camera + MassProperties(9.0, np.zeros(3), np.eye(3))).wrong
    ''
    """

    mass: float
    com: Array
    inertia: Array

    @classmethod
    def zero(cls) -> MassProperties:
        """Return mass properties without mass and inertia."""
        return cls(0.0, np.zeros(3), np.zeros((3, 3)))

    @property
    def wrong(self) -> str:
        """Why no body has these mass properties; "" if one has."""
        try:
            check_inertia(self.mass, self.com if self.mass else np.zeros(3), self.inertia)
        except ModelError as error:
            return str(error).removeprefix("inertia: ")
        return ""

    def moved(self, T: Array) -> MassProperties:
        """Return the mass properties in another frame, in which theirs has the pose T (4, 4)."""
        R, p = T[:3, :3], T[:3, 3]
        with np.errstate(over="ignore", invalid="ignore"):
            com = R @ self.com + p if self.mass else np.zeros(3)
            return MassProperties(self.mass, com, rotational(R @ second_moments(self.inertia) @ R.T))

    def __add__(self, other: MassProperties) -> MassProperties:
        """Return the mass properties of both together, given in one frame."""
        with np.errstate(over="ignore", invalid="ignore"):
            inertia = self.inertia + other.inertia
            if not (mass := self.mass + other.mass):
                return MassProperties(0.0, np.zeros(3), inertia)
            share, apart = other.mass / mass, other.com - self.com
            between = self.mass * share * rotational(np.outer(apart, apart))
            return MassProperties(mass, self.com + share * apart, inertia + between)


@dataclass(frozen=True, eq=False)
class Part:
    """A link of a file as part of a body.

    Attributes
    ----------
    name : str
    given : MassProperties
        In the frame of the link.
    wrong : str
        Why no body has them; "" if one has.
    element : Any
        Where the file states them.
    line : int
    """

    name: str
    given: MassProperties
    wrong: str
    element: Any = None
    line: int = 0


class Bodies:
    """Makes the bodies that move, and collects problems, notes and repairs.

    Parameters
    ----------
    what : str
        The format's word: "link" or "body".
    inertia : {"close", "project", "refuse"}
        How far an impossible inertia may be from the nearest possible one: see above.
    massless : bool
        Whether joints that move no mass are accepted without a warning.
    strict : bool
        Whether everything is refused that is not allowed by name: "close" becomes "refuse", and joints that move no
        mass are refused.

    Attributes
    ----------
    problems : list of (Part, str)
    notes : list of Note
    """

    def __init__(self, what: str, *, inertia: str = "close", massless: bool = False, strict: bool = False) -> None:
        check_choice("inertia", inertia, INERTIAS)
        self.strict, self.massless = check_flag("strict", strict), check_flag("massless", massless)
        self.what, self.inertia = what, "refuse" if strict and inertia == "close" else inertia
        self.problems: list[tuple[Part, str]] = []
        self.notes: list[Note] = []
        self.parts: list[str] = []  # impossible alone
        self.changed: dict[str, float] = {}  # bodies, and the largest change of a moment of inertia
        self.idle: list[str] = []  # joints that move no mass

    @property
    def refuse_massless(self) -> bool:
        """Return True if a moving link without mass is a problem."""
        return self.strict and not self.massless

    def make(self, name: str, parts: Sequence[tuple[Part, Array]]) -> Inertia:
        """Return the body of all parts, each with its pose (4, 4) in the frame of the body; problems are kept."""
        impossible = [part for part, _ in parts if part.wrong]
        if impossible and self.inertia == "refuse":
            for part in impossible:
                self._refuse(part, part.wrong)
            return Inertia.zero()
        whole = MassProperties.zero()
        for part, T in parts:
            whole += part.given if part.name == name else part.given.moved(T)
        wrong = whole.wrong
        if not wrong:
            self._note_parts(name, impossible)
            return Inertia(whole.mass, whole.com, whole.inertia)
        if too_large(whole.com) or too_large(whole.inertia):
            self.problems += [(part, wrong) for part, _ in parts[:1]]
            return Inertia.zero()
        return self._nearest(name, whole, impossible or [part for part, _ in parts[:1]], wrong)

    def note_fixed(self, part: Part) -> None:
        """Note, or refuse, an impossible part that is fixed in the world, where no inertia counts."""
        if part.wrong and self.inertia == "refuse":
            self._refuse(part, part.wrong)
        elif part.wrong:
            text = f"{self.what} {shown(part.name)}, which is fixed in the world, has an inertia that no body has"
            self.notes.append(Note("impossible inertia", f"{text}: {part.wrong}", part.line, matters=False))

    def _refuse(self, part: Part, wrong: str, effect: str = "") -> None:
        text = f"{wrong}; correct it, or read with {PROJECT} for the nearest possible one{effect}"
        self.problems.append((part, text))

    def _note_parts(self, name: str, impossible: Sequence[Part]) -> None:
        for part in impossible:
            self.parts.append(part.name)
            text = f"{self.what} {shown(part.name)} has an inertia that no body has"
            whole = f"what moves, {shown(name)} with all that is fixed to it, is possible and was not changed"
            self.notes.append(Note("impossible inertia", f"{text}: {part.wrong}; {whole}", part.line, matters=False))

    def _nearest(self, name: str, whole: MassProperties, blamed: Sequence[Part], wrong: str) -> Inertia:
        nearest = nearest_inertia(whole.mass, whole.com, whole.inertia)
        change = largest_change(whole.inertia, nearest.inertia)
        asked = self.inertia == "project"
        if change > CLOSE and not asked:
            effect = (
                f"which changes a moment of inertia by {_percent(change)}"
                if whole.mass
                else "which is zero, since the mass is zero"
            )
            for part in blamed:
                self._refuse(part, part.wrong or wrong, f", {effect}")
            return Inertia.zero()
        moved = float(np.abs(nearest.inertia - whole.inertia).max())
        fixed = [shown(part.name) for part in blamed if part.name != name]
        of = f"{self.what} {shown(name)}{f' with {named(fixed)}' if fixed else ''}"
        text = f"the inertia of {of} was replaced by the nearest possible one, {moved:.3g} kg·m² away"
        if whole.mass:
            text += f" (moments of inertia change by up to {_percent(change)})"
        self.notes.append(Note("inertia projected", f"{text}: {wrong}", blamed[0].line, matters=not asked))
        self.changed[name] = change
        return nearest

    def note_idle(self, joint: str, link: str, line: int) -> None:
        """Note that a joint moves no mass."""
        self.idle.append(joint)
        text = f"joint {shown(joint)} moves {self.what} {shown(link)}, and nothing from there on has mass"
        self.notes.append(Note("joint without mass", text, line, matters=False))

    def repairs(self) -> list[Repair]:
        """Return one sentence of each kind, for what was not asked for."""
        found = []
        if self.parts and self.inertia != "project":
            names = named(map(shown, self.parts))
            text = f"no body can have the inertia of {names}, but what moves together with it can (nothing was changed)"
            found.append(Repair("impossible inertia", text, PROJECT))
        if self.changed and self.inertia != "project":
            names = named(f"{shown(name)} ({_percent(change)})" for name, change in self.changed.items())
            text = f"no body can have the inertia of {names}; the nearest possible one was taken, which changes"
            text += " moments of inertia by the part in brackets"
            found.append(Repair("inertia projected", text, PROJECT))
        if self.idle and not self.massless:
            text = f"no mass is moved by {named(map(shown, self.idle))}: forward dynamics needs some, inverse does not"
            found.append(Repair("joint without mass", text, MASSLESS))
        return found


def _percent(change: float) -> str:
    if change > LARGE:
        return f"more than {100 * LARGE} %"
    return f"{100 * change:.2g} %" if change < 1 else f"{100 * change:.0f} %"


def check_choice(what: str, value: Any, known: Sequence[str]) -> None:
    """Raise an InputError unless an option has one of its values."""
    if not isinstance(value, str) or value not in known:
        *most, last = map(repr, known)
        raise InputError(f"`{what}` is {shown(value)}; expected {', '.join(most)} or {last}")


def check_flag(what: str, value: Any) -> bool:
    """Return an option that is True or False; raise an InputError if it is neither."""
    try:
        return flag(f"`{what}`", value)
    except ValueError as error:
        raise InputError(str(error)) from None
