"""Contacts that open and close: what they are, and which of them hold.

A contact is closed while its floor pushes, and opens when it would have to pull.  Of those that touch, the ones that
hold are found so that no floor pulls and none is run into: of impulses in an impact, with the speeds after it, and of
forces afterwards, with the accelerations.  Contacts stick in all directions they have; there is no friction cone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.constraints import Contact
from kinegrad.errors import InputError, ModelError, SolveError, shown
from kinegrad.model.names import as_tuple
from kinegrad.results import Result

__all__ = ["ImpactEvent", "Phase", "UnilateralContact", "check_contacts", "complementary"]

Array = NDArray[np.float64]
FRICTION = (
    "contacts stick along the floor by forces of any size, because there is no friction cone; "
    "a point that would slip needs friction, which is not simulated"
)


@dataclass(frozen=True, eq=False)
class UnilateralContact(Result):
    """A contact that opens and closes: a point and a floor that pushes it but never pulls.

    Its gap is how far the point is above the floor, along the normal.  When the gap closes there is an impact; from
    then on the point sticks where it landed, in all directions of the contact, until the floor would have to pull.
    Forces along the floor may have any size: there is no friction cone, and a point never slips.  Without directions
    along the floor a point slides freely.

    Parameters
    ----------
    contact : Contact
        The point of a link, and in `other_point` a point of the floor.  One of its directions is the normal, and points
        from the floor to the side where the link is; in the others the point sticks while the contact is closed.
    restitution : float
        e between 0, the point stays, and 1, it leaves as fast as it came.
    normal : int, optional
        Which of the directions is the normal; the last if not given: z of "xyz".

    Examples
    --------
    >>> from kinegrad import Contact
    >>> UnilateralContact(Contact("ball", [0, 0, -0.1], directions="z"), restitution=0.8).restitution
    0.8
    """

    contact: Contact
    restitution: float = 0.0
    normal: int = -1

    def __post_init__(self) -> None:
        if not isinstance(self.contact, Contact):
            raise InputError(f"`contact` is {shown(self.contact)}; expected a Contact")
        e = engine.real("restitution", self.restitution)
        if e.shape != () or not 0 <= e <= 1:
            raise InputError(f"`restitution` is {shown(self.restitution)}; expected a number from 0 to 1")
        count = len(self.contact.rows)
        if isinstance(self.normal, bool) or not isinstance(self.normal, int | np.integer):
            raise InputError(f"`normal` is {shown(self.normal)}; expected the number of a direction")
        if not -count <= self.normal < count:
            raise InputError(f"`normal` is {self.normal}; the contact has {count} directions: expected one of them")
        object.__setattr__(self, "restitution", float(e))
        object.__setattr__(self, "normal", int(self.normal) % count)


@dataclass(frozen=True, eq=False)
class Phase(Result):
    """A part of a motion in which the same contacts are closed.

    Attributes
    ----------
    start, end : float
        s.
    closed : tuple of str
        Names of the contacts that are closed.
    """

    start: float
    end: float
    closed: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ImpactEvent(Result):
    """An impact.

    Attributes
    ----------
    t : float
        s.
    touching : tuple of str
        Names of the contacts whose gaps closed.
    q, v_before, v_after, a_before, a_after, tau_before, tau_after : ndarray
        Coordinates; speeds, accelerations and torques before and after.
    impulses : ndarray, shape (k,)
        One for each of ``row_names`` of the motion, N·s or N·m·s.
    dt_dp : ndarray, shape (p,), or None
        How the time of the impact follows the parameters; None without a design.
    """

    t: float
    touching: tuple[str, ...]
    q: Array
    v_before: Array
    v_after: Array
    a_before: Array
    a_after: Array
    tau_before: Array
    tau_after: Array
    impulses: Array
    dt_dp: Array | None


def check_contacts(given: Any) -> tuple[UnilateralContact, ...]:
    """Unilateral contacts in a tuple, or an InputError."""
    expected = "a list of UnilateralContact(Contact(…))"
    try:
        found = as_tuple("contacts", given, expected)
    except ModelError as error:
        raise InputError(str(error)) from None
    for one in found:
        if not isinstance(one, UnilateralContact):
            raise InputError(f"`contacts` holds {shown(one)}; expected {expected}")
    return found


Try = Callable[[tuple[int, ...]], tuple[Array, Array, Any]]


def complementary(
    candidates: Iterable[int], first: Iterable[int], attempt: Try, what: str, *, sticking: bool
) -> tuple[tuple[int, ...], Any]:
    """Which of the candidates push, such that none pulls and no other is run into; and what `attempt` has found.

    Parameters
    ----------
    candidates, first : iterable of int
        Numbers of contacts; with which to begin.
    attempt : callable
        Given those that push, their pushes and how the gaps of all contacts open, (contacts,) each, in units of their
        own tolerance, and anything else.
    what : str
        For the sentence if there is no such set, or none that this finds.
    sticking : bool
        Whether a contact has directions along its floor.
    """
    everyone, pushing, seen = set(candidates), tuple(sorted(first)), set[tuple[int, ...]]()
    while pushing not in seen:
        seen.add(pushing)
        pushes, opening, found = attempt(pushing)
        pulls = [k for k in pushing if pushes[k] < -1.0]
        entered = [k for k in sorted(everyone - set(pushing)) if opening[k] < -1.0]
        if not pulls and not entered:
            return pushing, found
        if pulls:
            worst = min(pulls, key=lambda k: float(pushes[k]))
            pushing = tuple(k for k in pushing if k != worst)
        else:
            pushing = tuple(sorted({*pushing, min(entered, key=lambda k: float(opening[k]))}))
    sentence = f"{what} no set of contacts is found in which no floor pulls and none is run into"
    raise SolveError(f"{sentence}; {FRICTION}" if sticking else sentence)
