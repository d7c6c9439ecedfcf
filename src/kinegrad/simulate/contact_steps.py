"""Fixed steps with contacts that open and close: a step in which that happens is split there.

A step of any length ℓ, with the projection onto the contacts that are closed, is a smooth function x⁺ = Φ(x, t, ℓ) of
the state x = (q, v).  Where a gap, or the normal force of a closed contact, g falls below zero in it, the length s with

    g(Φ(x, t, s)) = 0

is found to rounding.  The contact closes or opens there, by the impact of :mod:`kinegrad.simulate.switching`, and what
is left of the step, ℓ − s, goes on from there.  As long as the order of events stays the same, the whole motion is one
smooth function of all it is given: :mod:`kinegrad.simulate.contact_slopes` differentiates it.

Gaps are looked at where a step ends and, between, where the cubic through the gaps and their rates at both ends has its
least value; forces where a step ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from kinegrad.errors import SolveError
from kinegrad.simulate.constrained_law import ConstrainedLaw
from kinegrad.simulate.explicit import Scheme, Stages, finish_step, make_stages
from kinegrad.simulate.law import diverged, finite
from kinegrad.simulate.switching import ROUNDING, SMALL, Contacts, Event, Struck

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
    """What an event does: the state before it, the impact if there is one, and the law after it.

    `landed`, (m,), says which rows of that law hold a point where it landed.
    """

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
            event = self._find(k, t, left, end)
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
            self._follow(t, event.contact, event.touches)
        self.status = -2
        self.trouble = f"given up at t = {t:.6g} s: contacts open and close {MOST} times in one step"

    def _advance(self, k: int, t: float, length: float) -> tuple[Stages, State]:
        """The stages and the end of a piece from the present state, which is drawn onto what is closed."""
        stages = make_stages(self.law, self.scheme, length, k, t, *self.state)
        self.evaluations += len(self.scheme.b)
        end = finish_step(self.scheme, length, *self.state, stages.a)
        return stages, (self.law.drawn(*end) if finite(*end) else end)

    def _follow(self, t: float, contact: int, touches: bool) -> None:
        """Change the state and the law as an event does."""
        q, v = self.state
        struck = self.contacts.strike(t, contact, q, v) if touches else None
        law = self.contacts.release(t, contact, q) if struck is None else struck.law
        if struck is not None:
            self.contacts.tell(t, self.law, struck, q, v, None)
        self.tape.append(Switch(q, v, struck, law, self.contacts.landed_rows()))
        self.state, self.law = (q, v if struck is None else struck.v), law

    def _let_go(self, t: float) -> None:
        """Open contacts that torques, which jump where a step begins, pull off."""
        closed = self.contacts.closed
        forces, least = self._forces(t, *self.state)
        if not (forces < -least).any():
            return
        law = self.contacts.hold(t, *self.state, list(closed))
        if self.contacts.closed != closed:
            self.contacts.record(t)
            self.tape.append(Switch(*self.state, None, law, self.contacts.landed_rows()))
            self.law = law

    # --- events -------------------------------------------------------------------------------------------------

    def _find(self, k: int, t: float, left: float, end: State) -> Event | None:
        """The first event of a piece, its time counted from the beginning of the piece."""
        found = []
        floors, (q, v) = self.contacts.floors, self.state
        gaps = floors.error(np.array([q, end[0]]))
        speeds = floors.velocity(np.array([q, end[0]]), np.array([v, end[1]]))
        for contact in range(len(self.contacts.names)):
            if contact not in self.contacts.closed:
                length = self._touching(contact, k, t, left, gaps[:, contact], speeds[:, contact])
                found += [] if length is None else [Event(length, contact, True)]
        first, least = self._forces(t, q, v)
        last, _ = self._forces(t + left, *end)
        for row, contact in enumerate(self.contacts.closed):
            if last[row] < -least:
                found.append(Event(self._losing(row, k, t, left) if first[row] > 0 else 0.0, contact, False))
        return min(found, default=None)

    def _touching(self, contact: int, k: int, t: float, left: float, gaps: Array, speeds: Array) -> float | None:
        """The length at which a gap closes, or None."""

        def gap(length: float) -> float:
            return float(self.contacts.floors.error(self._advance(k, t, length)[1][0])[contact])

        least = 0.0 if gaps[0] > ROUNDING else -ROUNDING  # a gap that has just opened is zero to rounding
        high = left
        if gaps[1] >= least:
            high = left * _lowest(*gaps, *(left * speeds))
            if not 0 < high < left or gap(high) >= least:
                return None
        low = 0.0
        if gaps[0] <= ROUNDING:
            low = high / 2
            for _ in range(HALVES):
                if gap(low) > 0:
                    break
                low, high = low / 2, low
            else:
                return 0.0
        return _root(gap, low, high)

    def _losing(self, row: int, k: int, t: float, left: float) -> float:
        """The length at which the normal force of a closed contact is zero."""

        def force(length: float) -> float:
            return float(self._forces(t + length, *self._advance(k, t, length)[1])[0][row])

        return _root(force, 0.0, left)

    def _forces(self, t: float, q: Array, v: Array) -> tuple[Array, float]:
        """Normal forces of closed contacts, and what counts as zero."""
        closed = self.contacts.closed
        if not closed:
            return np.zeros(0), 0.0
        tau = self.law.torques(t, q, v, self.contacts.step)
        forces = self.law.own_forces(q, v, tau)[self.contacts.normal_rows(closed)]
        return forces, SMALL * (1.0 + float(np.abs(forces).max()))


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes its sign, to rounding."""
    return float(brentq(f, low, high, xtol=1e-16 * high, rtol=4 * np.finfo(float).eps))


def _lowest(y0: float, y1: float, d0: float, d1: float) -> float:
    """Where the cubic through values and slopes at 0 and 1 has its least value between them; else a number ≥ 1."""
    c3, c2 = 2 * (y0 - y1) + d0 + d1, 3 * (y1 - y0) - 2 * d0 - d1
    under = c2**2 - 3 * c3 * d0
    if not (under > 0 and d0 < 0):  # it falls at first, and then rises
        return 1.0
    root = float(np.sqrt(under))
    return float(-d0 / (c2 + root)) if c2 + root > 0 else 1.0
