"""Fixed steps with contacts that open and close: a step in which that happens is split there.

A step of any length ℓ, with the projection onto the contacts that are closed, is a smooth function x⁺ = Φ(x, t, ℓ) of
the state x = (q, v).  Where a gap, or the normal force of a closed contact, g falls below zero in it, the length s with

    g(Φ(x, t, s)) = 0

is found to rounding.  The contact closes or opens there, by the impact of :mod:`kinegrad.simulate.switching`, and what
is left of the step, ℓ − s, goes on from there.  As long as the order of events stays the same, the whole motion is one
smooth function of all it is given: :mod:`kinegrad.simulate.contact_slopes` differentiates it.

Gaps and forces are evaluated along the cubic through both ends of a piece; if an event is possible there, by how much
the cubic may err, pieces of many lengths are made.  Shorter dips are excluded by :mod:`kinegrad.simulate.crossings`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from kinegrad.errors import SolveError
from kinegrad.simulate.constrained_law import ConstrainedLaw
from kinegrad.simulate.crossings import first_fall, instants, turn_rate
from kinegrad.simulate.explicit import Cubic, Scheme, Stages, finish_step, make_stages
from kinegrad.simulate.law import diverged, finite
from kinegrad.simulate.rank import look_along, watch_rank
from kinegrad.simulate.switching import ROUNDING, SMALL, Contacts, Event, Struck, grown
from kinegrad.simulate.unfinished import WITHOUT_END

__all__ = ["ContactMotion", "Node", "Piece", "Switch"]

Array = NDArray[np.float64]
State = tuple[Array, Array]
MOST = 100  # events in one step
HALVES = 60  # of a step, to where a gap that has just opened is positive


class Piece(NamedTuple):
    """A step, or a part of one: from where and when, how long, its stages, and the event that ends it, if one does.

    `contact` is the one that touches, `row` that of a normal force, in the constraints of the law, which is zero; both
    are None where the step ends.  `split` says whether its beginning or its end is an event.
    """

    law: ConstrainedLaw
    k: int
    t: float
    length: float
    q: Array
    v: Array
    stages: Stages
    end: State
    split: bool
    contact: int | None = None
    row: int | None = None


class Switch(NamedTuple):
    """What an event does: its time, the state before it, the impact if there is one, and the law after it.

    `landed`, (m,), says which rows of that law hold a point where it landed.
    """

    t: float
    q: Array
    v: Array
    struck: Struck | None
    law: ConstrainedLaw
    landed: NDArray[np.bool_]


class Node(NamedTuple):
    """The end of a step, or the start of the motion, and the law from there on."""

    t: float
    k: int
    q: Array
    v: Array
    law: ConstrainedLaw


class ContactMotion:
    """One motion in fixed steps; what happened is in its `tape`, between the nodes.

    Parameters
    ----------
    contacts : Contacts
    scheme : Scheme
    h : float
        Step, s.
    steps : int
    q, v : ndarray, shape (n,)
        Initial state, on the constraints that always hold.

    Attributes
    ----------
    tape : list of Piece, Switch and Node
    start, first, landed, floors
        Initial state, the law there, its rows that hold a point where it is, and normals of contacts closed there.
    status : int
        0; −1 if the motion diverged; −2 if it was given up.
    trouble : str
    """

    def __init__(self, contacts: Contacts, scheme: Scheme, h: float, steps: int, q: Array, v: Array) -> None:
        self.contacts, self.scheme = contacts, scheme
        self.tape: list[Piece | Switch | Node] = []
        self.status, self.trouble, self.evaluations, self.steps = 0, "", 0, 0
        self.start = q, v
        self.law = contacts.settle(0.0, q, v)
        self.first, self.landed, self.floors = self.law, contacts.landed_rows(), contacts.own_floors()
        self.state = self.law.drawn(q, v)
        self.ranks = watch_rank(self.law, self.state[0])
        for k in range(steps):
            contacts.step = k
            try:
                self._let_go(k * h)
                self.tape.append(Node(k * h, k, *self.state, self.law))
                self._step(k, k * h, h)
            except SolveError as error:
                self.status, self.trouble = -2, f"given up at t = {k * h:.6g} s: {error}"
            if self.trouble:
                return
            self.steps = k + 1
        self.tape.append(Node(steps * h, steps - 1, *self.state, self.law))

    @property
    def nodes(self) -> list[Node]:
        """All of them."""
        return [x for x in self.tape if isinstance(x, Node)]

    @property
    def pieces(self) -> list[Piece]:
        """All of them."""
        return [x for x in self.tape if isinstance(x, Piece)]

    # --- a step -------------------------------------------------------------------------------------------------

    def _step(self, k: int, t: float, left: float) -> None:
        """From one node to the next, event by event."""
        split = False
        for _ in range(MOST):
            stages, end = self._advance(k, t, left)
            if not finite(*end):
                why = "its numbers overflow; try a shorter step"
                self.status, self.trouble = -1, diverged(self.law.model, t + left, self.state[1], why)
                return
            cubic = Cubic(self.scheme, left, self.state, stages, end)
            event = self._find(k, t, left, cubic)
            if self._is_dependent(cubic, t, left if event is None else event.t):
                return
            if event is None:
                self.tape.append(Piece(self.law, k, t, left, *self.state, stages, end, split))
                self.state = end
                return
            if event.t > 0:
                split, (stages, end) = True, self._advance(k, t, event.t)
                row = None if event.touches else self.contacts.normal_row(event.contact)
                contact = event.contact if event.touches else None
                self.tape.append(Piece(self.law, k, t, event.t, *self.state, stages, end, True, contact, row))
                self.state, t, left = end, t + event.t, max(left - event.t, 0.0)
            self._follow(k, t, event.contact, event.touches)
        self.status = -2
        self.trouble = f"given up at t = {t:.6g} s: contacts open and close {MOST} times in one step; {WITHOUT_END}"

    def _advance(self, k: int, t: float, length: float) -> tuple[Stages, State]:
        """The stages and the end of a piece from the present state, which is drawn onto what is closed."""
        stages = make_stages(self.law, self.scheme, length, k, t, *self.state)
        self.evaluations += len(self.scheme.b)
        end = finish_step(self.scheme, length, *self.state, stages.a)
        return stages, (self.law.drawn(*end) if finite(*end) else end)

    def _follow(self, k: int, t: float, contact: int, touches: bool) -> None:
        """Change the state and the law as an event does."""
        if not touches:
            self._switch(t, None, self.contacts.release(t, contact, self.state[0]))
            return
        for number, touching in enumerate(self.contacts.groups(contact, *self.state)):
            if number:  # a piece without length ends where another contact touches at the same time
                stages, end = self._advance(k, t, 0.0)
                self.tape.append(Piece(self.law, k, t, 0.0, *self.state, stages, end, True, touching[0]))
                self.state = end
            q, v = self.state
            struck = self.contacts.strike(t, touching, q, v)
            self.contacts.tell(t, self.law, struck, q, v, None)
            self._switch(t, struck, struck.law)

    def _switch(self, t: float, struck: Struck | None, law: ConstrainedLaw) -> None:
        """Go on with another law, and with the speeds after an impact if there is one."""
        q, v = self.state
        self.tape.append(Switch(t, q, v, struck, law, self.contacts.landed_rows()))
        self.state, self.law = (q, v if struck is None else struck.v), law
        self.ranks = watch_rank(law, q)

    def _let_go(self, t: float) -> None:
        """Open contacts that torques, which jump where a step begins, pull off."""
        closed = self.contacts.closed
        forces, least = self._forces(np.array([t]), *(x[None] for x in self.state))
        if not (forces < -least).any():
            return
        law = self.contacts.hold(t, *self.state, list(closed))
        if self.contacts.closed != closed:
            self.contacts.record(t)
            self._switch(t, None, law)

    def _is_dependent(self, cubic: Cubic, t: float, length: float) -> bool:
        """Return True if rows of the constraints become dependent in the first part of a piece: then it has ended."""
        if self.ranks is None:
            return False
        for when, why in look_along(self.ranks, cubic, t).values():
            if when <= t + length:
                self.status, self.trouble = -2, why
                return True
        return False

    # --- events -------------------------------------------------------------------------------------------------

    def _find(self, k: int, t: float, left: float, cubic: Cubic) -> Event | None:
        """The first event of a piece, its time counted from the beginning of the piece.

        The cubic through both ends is looked at first; pieces of other lengths are made only if it leaves doubt.
        """
        gap, G = self.contacts.floors.error(self.state[0]), self.contacts.floors.jacobian(cubic.ends[0])
        arrived = self._arrived(gap)
        if arrived is not None:
            return Event(0.0, arrived, True)
        margin = np.abs(G).max(axis=0) @ cubic.off
        opening = gap <= ROUNDING  # have just opened, or move along their floors
        opening[list(self.contacts.closed)], margin[list(self.contacts.closed)] = False, 0.0
        rate = float(turn_rate(self.law.model, *cubic.ends).max())
        lengths = instants(0.0, left, rate, 1)

        def near(lengths: Array) -> Array:
            found: Array = self._watch(t, lengths, *cubic(lengths), opening) - cubic.share(lengths) * margin
            return found

        def values(lengths: Array) -> Array:
            ends = [self.state if x == 0.0 else self._advance(k, t, x)[1] for x in lengths.tolist()]
            q, v = (np.array(x) for x in zip(*ends, strict=True))
            return self._watch(t, lengths, q, v, opening)

        if not opening.any() and first_fall(near, lengths) is None:
            return None
        fall = first_fall(values, lengths)
        if fall is None:
            return None
        found = []
        for contact in fall.which.tolist():
            touches = contact not in self.contacts.closed
            root = self._touching if touches else self._losing
            found.append(Event(root(contact, k, t, fall.low, fall.high), contact, touches))
        return min(found)

    def _arrived(self, gap: Array) -> int | None:
        """An open contact that has come to its floor just where the piece begins, and moves into it."""
        known = [*self.contacts.closed, *self.contacts.opened]
        near = [k for k in np.flatnonzero(gap <= ROUNDING).tolist() if k not in known]
        if not near:
            return None
        speed = self.contacts.floors.jacobian(self.state[0]) @ self.state[1]
        return next((k for k in near if speed[k] < -SMALL * (1.0 + np.abs(self.state[1]).max())), None)

    def _watch(self, t: float, lengths: Array, q: Array, v: Array, opening: NDArray[np.bool_]) -> Array:
        """Gaps of open contacts and forces of closed ones, (lengths, contacts), as in :class:`Contacts`."""
        values = self.contacts.floors.error(q)
        for k in np.flatnonzero(opening).tolist():
            values[:, k] = grown(values[:, k], lengths, self.contacts.opened.get(k, (t, 1))[1])
        if self.contacts.closed:
            forces, least = self._forces(t + lengths, q, v)
            values[:, self.contacts.closed] = forces + least
        return np.asarray(values)

    def _touching(self, contact: int, k: int, t: float, low: float, high: float) -> float:
        """The length at which a gap closes, which is open after `low` and not at `high`."""

        def gap(length: float) -> float:
            return float(self.contacts.floors.error(self._advance(k, t, length)[1][0])[contact])

        start = float(self.contacts.floors.error(self.state[0])[contact])
        if start <= ROUNDING and (low == 0.0 or gap(low) <= 0):  # it has just opened, by no more than rounding at `low`
            low = high / 2
            for _ in range(HALVES):
                if gap(low) > 0:
                    break
                low, high = low / 2, low
            else:
                return 0.0
        return _root(gap, low, high)

    def _losing(self, contact: int, k: int, t: float, low: float, high: float) -> float:
        """The length at which the normal force of a closed contact is zero."""
        row = self.contacts.closed.index(contact)

        def force(length: float) -> float:
            end = self.state if length == 0.0 else self._advance(k, t, length)[1]
            return float(self._forces(np.array([t + length]), *(x[None] for x in end))[0][0, row])

        return _root(force, low, high) if force(low) > 0 else low

    def _forces(self, t: Array, q: Array, v: Array) -> tuple[Array, Array]:
        """Normal forces of closed contacts, (times, closed), and what counts as zero, (times, 1)."""
        closed = self.contacts.closed
        if not closed:
            return np.zeros((len(t), 0)), np.zeros((len(t), 1))
        tau = np.array([self.law.torques(*x, self.contacts.step) for x in zip(t.tolist(), q, v, strict=True)])
        forces = self.law.own_forces(q, v, tau)[:, self.contacts.normal_rows(closed)]
        return forces, SMALL * (1.0 + np.abs(forces).max(axis=-1, keepdims=True))


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes its sign, to rounding."""
    return float(brentq(f, low, high, xtol=1e-16 * high, rtol=4 * np.finfo(float).eps))
