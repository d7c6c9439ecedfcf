"""Contacts that open and close during an integration with error control, and sensitivities through these events.

A gap g(q) that closes is an impact at t*, after which q is the same and v⁺ = R(q, v).  How t* follows parameters p, and
how the state does on either side of it, at fixed times:

    dt* = −(g_q dq⁻ + g_p) / ġ⁻
    dq⁺ = dq⁻ + (v⁻ − v⁺) dt*,     dv⁺ = R_q (dq⁻ + v⁻ dt*) + R_v (dv⁻ + a⁻ dt*) + R_p − a⁺ dt*

Where a contact opens because its force is zero, accelerations with and without it are the same, and so are slopes.

A contact that has just opened is at its floor: its gap over the power of time with which it grows (the first after a
bounce, the third after a release) shows where it closes again, be it at once.  Between the instants of a step at which
gaps and forces are evaluated, :mod:`kinegrad.simulate.crossings` excludes shorter dips.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from kinegrad._engine import DependentRow, saddle
from kinegrad.constrained.design import impact_design_derivatives
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.placing import held
from kinegrad.design import constraint_design_derivatives
from kinegrad.dynamics import mass_matrix
from kinegrad.errors import InputError
from kinegrad.simulate.constrained_law import ConstrainedLaw
from kinegrad.simulate.contacts import ImpactEvent, Phase, UnilateralContact, complementary
from kinegrad.simulate.crossings import first_fall, instants, turn_rate
from kinegrad.simulate.independence import order_note, parts_of_rows
from kinegrad.simulate.law import Law
from kinegrad.simulate.projection import CONSISTENT, check_slopes, slope_errors
from kinegrad.simulate.track import pack, slopes_of, state_of

__all__ = ["Contacts"]

Array = NDArray[np.float64]
PLACES = 8  # intervals of each step, at least, at the ends of which gaps and forces are evaluated
TOUCHING = 1e-9  # m: gaps that close in the same impact
ROUNDING = 1e-12  # m: what a gap that has just opened may be without being closed again
SAME_TIME = 1e-5  # part of the slopes of two times by which they may differ and count as equal
SMALL = 1e-9  # of the largest force, impulse, speed or acceleration: zero


def grown(gap: Array, since: Array, order: int) -> Array:
    """A gap over the power of the time since the contact opened with which it grows; NaN while it is rounding."""
    known = (since > 0) & ~(np.abs(gap) < ROUNDING)
    return np.where(known, gap / np.where(since > 0, since, 1.0) ** order, np.nan)


class Event(NamedTuple):
    """When something happens, to which contact, and whether it touches or is released."""

    t: float
    contact: int
    touches: bool


class Struck(NamedTuple):
    """What an impact does.

    Which contacts touch and which push, with their constraints; v⁺, impulses and restitution of their rows; the law
    after it.
    """

    touching: tuple[int, ...]
    pushing: tuple[int, ...]
    constraints: ConstraintSet
    v: Array
    impulses: Array
    restitution: Array
    law: ConstrainedLaw


class Contacts:
    """The unilateral contacts of one simulation, and which of them are closed.

    Parameters
    ----------
    law : ConstrainedLaw
        With the constraints that always hold.
    contacts : tuple of UnilateralContact
    sticking_speed : float
        m/s: what comes slower stays, whatever its restitution.
    differentiated : bool, optional
        Whether derivatives are wanted; if not given, those of the law's design.
    """

    def __init__(
        self, law: ConstrainedLaw, contacts: tuple[UnilateralContact, ...], sticking_speed: float,
        differentiated: bool | None = None,
    ) -> None:  # fmt: skip
        model, base = law.model, law.constraints
        self.base, self.given, self.sticking_speed = law, contacts, sticking_speed
        self.whole = ConstraintSet(model, [*base, *(one.contact for one in contacts)])
        self.names = self.whole.names[len(base) :]
        named = self.whole.constraints[len(base) :]
        normals = [one.contact.units[one.normal] for one in contacts]
        floors = [replace(one, directions=[u]) for one, u in zip(named, normals, strict=True)]  # type: ignore[type-var]
        self.floors = ConstraintSet(model, floors)
        self.places = list(named)
        self.closed: tuple[int, ...] = ()
        self.step = 0  # of fixed steps, the present one: its torques act
        self.opened: dict[int, tuple[float, int]] = {}
        self.impacts: list[ImpactEvent] = []
        self.notes: list[str] = []
        self.phases: list[tuple[float, tuple[str, ...]]] = []
        self._laws: dict[Any, ConstrainedLaw] = {}
        differentiated = law.design is not None if differentiated is None else differentiated
        for one, name in zip(contacts, self.names, strict=True):
            if differentiated and one.contact.other is not None and len(one.contact.rows) > 1:
                found = f"contact {name!r} sticks to another link where it lands, which follows the design"
                if law.design is None:
                    found = found.replace("the design", "the initial state")
                raise InputError(f"{found}; expected its normal as the only direction, or no derivatives")

    # --- laws ---------------------------------------------------------------------------------------------------

    def set_of(self, closed: tuple[int, ...]) -> ConstraintSet:
        """What holds while some contacts are closed, at the places where they landed."""
        return self._law(closed).constraints

    def _law(self, closed: tuple[int, ...]) -> ConstrainedLaw:
        parts = tuple(self.places[k] for k in closed)
        if parts not in self._laws:
            law = copy.copy(self.base)
            law.constraints = ConstraintSet(law.model, [*self.base.constraints, *parts])
            kept = [np.arange(self.base.constraints.m)]
            kept += [np.arange(self.whole.m)[self.whole.rows(self.names[k])] for k in closed]
            law.rows, law.row_names = np.concatenate(kept), self.whole.row_names
            self._laws[parts] = law
        return self._laws[parts]

    def law_at(self, closed: tuple[int, ...], q: Array) -> ConstrainedLaw:
        """The same law; where rows depend on each other at q, it takes forces of least norm."""
        law = copy.copy(self._law(closed))
        try:
            saddle.check_independent(law.constraints.jacobian(q))
            law.redundant = self.base.redundant
        except DependentRow:
            law.redundant = "least-squares"
        return law

    def normal_rows(self, closed: tuple[int, ...]) -> list[int]:
        """The row of each closed contact's normal in their set."""
        first, found = self.base.constraints.m, []
        for k in closed:
            found.append(first + self.given[k].normal)
            first += len(self.given[k].contact.rows)
        return found

    def normal_row(self, contact: int) -> int:
        """That of one closed contact."""
        return self.normal_rows(self.closed)[self.closed.index(contact)]

    def landed_rows(self) -> NDArray[np.bool_]:
        """Which rows of the closed contacts' set hold a point where it landed: the floor alone is where it is."""
        rows = [np.zeros(self.base.constraints.m, bool)]
        rows += [np.full(n, n > 1) for n in (len(self.given[k].contact.rows) for k in self.closed)]
        return np.concatenate(rows)

    # --- events -------------------------------------------------------------------------------------------------

    def begin(self, t: float, y: Array) -> tuple[Law, Array]:
        """The law and the state at the start: contacts without a gap are closed, if their floors push."""
        q, v = state_of(self.base, y)
        law = self.settle(t, q, v)
        slopes = slopes_of(law, y)
        if law.design is not None and self.closed:
            check_slopes(self.own_floors(), q, v, *slopes, law.design)
        q, v = law.drawn(q, v)
        self._keep(law, q, v, *slopes)
        return law, pack(q, v, *slopes)

    def own_floors(self) -> ConstraintSet:
        """The normals of those contacts that are closed."""
        return ConstraintSet(self.base.model, [self.floors.constraints[k] for k in self.closed])

    def settle(self, t: float, q: Array, v: Array) -> ConstrainedLaw:
        """The law at the start: contacts without a gap are closed, if their floors push."""
        gap, speed = self.floors.error(q), self.floors.velocity(q, v)
        for k, name in enumerate(self.names):
            if gap[k] < -CONSISTENT:
                raise InputError(
                    f"`q0` has contact {name!r} {-gap[k]:.3g} m below its floor; expected it above, or on it"
                )
            if gap[k] <= CONSISTENT and speed[k] < -CONSISTENT:
                found = f"`v0` runs contact {name!r} into its floor at {-speed[k]:.3g} m/s"
                raise InputError(f"{found}, and there is no gap; expected it to rest, or a gap")
        resting = [k for k in range(len(self.names)) if gap[k] <= CONSISTENT and speed[k] <= CONSISTENT]
        self._land(resting, q)
        return self.hold(t, q, v, resting)

    def find(self, law: Law, piece: Callable[[Any], Array], first: float, last: float) -> Event | None:
        """The first event of a step."""
        assert isinstance(law, ConstrainedLaw)
        q, v = state_of(law, piece(np.linspace(first, last, PLACES + 1)).T)
        rate = float(turn_rate(law.model, law.normalised(q), v).max())

        def values(t: Array) -> Array:
            return self._watch(law, piece, t)

        fall = first_fall(values, instants(first, last, rate, PLACES // 4))
        if fall is None:
            return None
        found = []
        for k in fall.which.tolist():

            def value(t: float, k: int = k) -> float:
                x = float(values(np.array([t]))[0, k])
                return 1.0 if np.isnan(x) else x

            t = fall.low
            if value(t) > 0:
                t = float(brentq(value, *fall[:2], xtol=1e-15 * max(map(abs, fall[:2])), rtol=1e-15))
            found.append(Event(t, k, k not in self.closed))
        return min(found)

    def _watch(self, law: ConstrainedLaw, piece: Callable[[Any], Array], t: Array) -> Array:
        """Gaps of open contacts and forces of closed ones, (times, contacts): an event is where one falls below 0.

        The gap of a contact that has just opened is NaN while it is rounding."""
        q, v = state_of(law, piece(t).T)
        q = law.normalised(q)
        values = self.floors.error(q)
        for k, (start, order) in self.opened.items():
            values[:, k] = grown(values[:, k], t - start, order)
        if self.closed:
            tau = np.array([law.torques(*x) for x in zip(t.tolist(), q, v, strict=True)])
            forces = law.own_forces(q, v, tau)[:, self.normal_rows(self.closed)]
            values[:, self.closed] = forces + SMALL * (1.0 + np.abs(forces).max(axis=-1, keepdims=True))
        return values

    def follow(self, event: Event, law: Law, y: Array) -> tuple[Law, Array]:
        """The law and the state after an event."""
        assert isinstance(law, ConstrainedLaw)
        (q, v), (dq, dv) = state_of(law, y), slopes_of(law, y)
        if event.touches:
            return self._strike(event, law, law.normalised(q), v, dq, dv)
        after = self.release(event.t, event.contact, q)
        self._keep(after, q, v, dq, dv)
        return after, y

    def release(self, t: float, contact: int, q: Array) -> ConstrainedLaw:
        """The law after a contact has opened."""
        self.closed = tuple(k for k in self.closed if k != contact)
        self._still_open(self.floors.error(q), [contact])
        self.opened[contact] = (t, 3)
        self.record(t)
        return self.law_at(self.closed, q)

    # --- what an event does -------------------------------------------------------------------------------------

    def _strike(
        self, event: Event, law: ConstrainedLaw, q: Array, v: Array, dq: Array, dv: Array
    ) -> tuple[Law, Array]:  # fmt: skip
        """Impacts of all contacts that touch, and the slopes after them."""
        for touching in self.groups(event.contact, q, v):
            struck, by_p = self.strike(event.t, touching, q, v), None
            (a_before, _), (a_after, _) = self._rate(law, event.t, q, v), self._rate(struck.law, event.t, q, struck.v)
            if law.design is not None:
                times = self._times(law, touching, q, v, dq)
                by_p = times[0]
                self.check_order(event.t, touching, times - by_p, times, self.floors.velocity(q, v)[touching])
                moved = dq + v[:, None] * by_p, dv + a_before[:, None] * by_p
                dv = self._struck_slopes(law, struck, q, v, *moved) - a_after[:, None] * by_p
                dq = moved[0] - struck.v[:, None] * by_p
            self.tell(event.t, law, struck, q, v, by_p)
            self._keep(struck.law, q, struck.v, dq, dv)
            law, v = struck.law, struck.v
        return law, pack(q, v, dq, dv)

    def groups(self, contact: int, q: Array, v: Array) -> list[list[int]]:
        """Contacts that touch when `contact` does, itself first, in groups that do not affect each other."""
        gap, speed = self.floors.error(q), self.floors.velocity(q, v)
        others = [k for k in range(len(self.names)) if k not in self.closed and gap[k] <= TOUCHING and speed[k] < 0]
        touching = [contact, *(k for k in others if k != contact)]
        if len(touching) == 1:
            return [touching]
        of = {k: range(self.whole.m)[self.whole.rows(self.names[k])] for k in (*self.closed, *touching)}
        active = [*range(self.base.constraints.m), *(row for rows in of.values() for row in rows)]
        part, found = parts_of_rows(self.whole, q, active), dict[int, list[int]]()
        for k in touching:
            found.setdefault(int(part[of[k][self.given[k].normal]]), []).append(k)
        return list(found.values())

    def strike(self, t: float, touching: list[int], q: Array, v: Array) -> Struck:
        """Close contacts that touch at the same time."""
        gap, speed, before = self.floors.error(q), self.floors.velocity(q, v), self.closed
        touching = sorted(touching)
        self._land(touching, q)
        candidates = [*before, *touching]
        e = {k: self.given[k].restitution if -speed[k] > self.sticking_speed else 0.0 for k in touching}
        attempt = self._attempt_impact(q, v, e)
        sticking = self._sticking(candidates)
        found = complementary(candidates, touching, attempt, "in the impact", sticking=sticking)
        pushing, (after, impulses, rows) = found
        opening = self.floors.velocity(q, after)
        rest = SMALL * (np.abs(speed[candidates]).max() + self.sticking_speed)
        staying = [k for k in candidates if opening[k] <= rest]
        self._still_open(gap, candidates)
        self.opened |= {k: (t, 1) for k in candidates if k not in staying}
        constraints, law = self.set_of(pushing), self.hold(t, q, after, staying)
        return Struck(tuple(touching), pushing, constraints, after, impulses, rows, law)

    def _still_open(self, gap: Array, changing: list[int]) -> None:
        """Forget when contacts opened that change, or that have left their floors."""
        self.opened = {k: x for k, x in self.opened.items() if gap[k] <= TOUCHING and k not in changing}

    def check_order(self, t: float, touching: list[int], apart: Array, times: Array, speeds: Array) -> None:
        """Note parameters for which contacts that affect each other would not touch at the same time.

        `apart`, (touching, p), are differences of the slopes of their times, `times`.
        """
        assert self.base.design is not None
        noise = SAME_TIME * np.abs(times).max(axis=0) + CONSISTENT / np.abs(speeds).min()
        names = [self.base.design.names[k] for k in np.flatnonzero((np.abs(apart) > noise).any(axis=0))]
        if names:
            self.note(t, touching, ", ".join(map(repr, names[:4])) + ", …" * (len(names) > 4))

    def note(self, t: float, touching: Iterable[int], what: str) -> None:
        """Note that derivatives do not exist from a time on."""
        self.notes.append(order_note(t, [self.names[k] for k in touching], what))

    def _times(self, law: ConstrainedLaw, touching: list[int], q: Array, v: Array, dq: Array) -> Array:
        """Slopes of the times at which contacts touch, (touching, p)."""
        gaps = self.floors.jacobian(q)[touching] @ dq + self.gap_slopes(law, q)[touching]
        return -gaps / self.floors.velocity(q, v)[touching, None]

    def tell(self, t: float, law: ConstrainedLaw, struck: Struck, q: Array, v: Array, dt_dp: Array | None) -> None:
        """Record an impact, and the phase that it begins."""
        whole = np.zeros(self.whole.m)
        whole[self._law(struck.pushing).rows] = struck.impulses
        names = tuple(self.names[k] for k in struck.touching)
        (a_before, tau_before), (a_after, tau_after) = self._rate(law, t, q, v), self._rate(struck.law, t, q, struck.v)
        rates = (a_before, a_after, tau_before, tau_after)
        self.impacts.append(ImpactEvent(t, names, q.copy(), v.copy(), struck.v, *rates, whole, dt_dp))
        self.record(t)

    def _rate(self, law: ConstrainedLaw, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """Accelerations and torques."""
        return law.acceleration(t, q, v, self.step)

    def _attempt_impact(self, q: Array, v: Array, e: dict[int, float]) -> Any:
        """What an impact in which some contacts push does."""
        M = mass_matrix(self.base.model, q)

        def attempt(pushing: tuple[int, ...]) -> tuple[Array, Array, Any]:
            constraints, normals = self.set_of(pushing), self.normal_rows(pushing)
            rows = np.zeros(constraints.m)
            rows[normals] = [e.get(k, 0.0) for k in pushing]
            G = constraints.jacobian(q)
            right = -(1 + rows) * constraints.velocity(q, v)
            change, impulses = saddle.solve("range-space", M, G, np.zeros((len(v), 1)), right[:, None], least=True)
            after = v + change[:, 0]
            pushes = np.zeros(len(self.names))
            pushes[list(pushing)] = impulses[normals, 0] / (SMALL * np.abs(impulses).max(initial=1e-300))
            scale = SMALL * (np.abs(self.floors.velocity(q, v)).max() + 1e-300)
            return pushes, self.floors.velocity(q, after) / scale, (after, impulses[:, 0], rows)

        return attempt

    def _struck_slopes(
        self, law: ConstrainedLaw, struck: Struck, q: Array, v: Array, dq: Array, dv: Array
    ) -> Array:  # fmt: skip
        """dv⁺ at the impact."""
        assert law.design is not None
        follow: dict[str, Any] = {"dq_dp": dq, "dv_dp": dv, "restitution": struck.restitution}
        return impact_design_derivatives(law.design, struck.constraints, q, v, **follow).dv_dp

    def gap_slopes(self, law: ConstrainedLaw, q: Array) -> Array:
        """∂g/∂p of all gaps, (contacts, p)."""
        assert law.design is not None
        return np.asarray(constraint_design_derivatives(law.design, self.floors, q).derror_dp)

    def hold(self, t: float, q: Array, v: Array, candidates: list[int]) -> ConstrainedLaw:
        """The law of those contacts at rest on their floors that are pushed; others open."""

        def attempt(pushing: tuple[int, ...]) -> tuple[Array, Array, Any]:
            law = self.law_at(pushing, q)
            a, tau = self._rate(law, t, q, v)
            forces = law.own_forces(q, v, tau)
            pushes = np.zeros(len(self.names))
            pushes[list(pushing)] = forces[self.normal_rows(pushing)] / (SMALL * (1 + np.abs(forces).max(initial=0.0)))
            opening = self.floors.acceleration(q, v, a)
            return pushes, opening / (SMALL * (1 + np.abs(a).max())), law

        sticking = self._sticking(candidates)
        self.closed, law = complementary(candidates, candidates, attempt, f"at t = {t:.6g} s", sticking=sticking)
        self.opened |= {k: (t, 2) for k in candidates if k not in self.closed}
        if not self.phases:
            self.record(t)
        found: ConstrainedLaw = law
        return found

    def _sticking(self, contacts: list[int]) -> bool:
        """Return True if one of them has directions along its floor."""
        return any(len(self.given[k].contact.rows) > 1 for k in contacts)

    def _land(self, contacts: list[int], q: Array) -> None:
        """Contacts stick where they are."""
        for k in contacts:
            if len(self.given[k].contact.rows) > 1:
                self.places[k] = held(self.base.model, self.places[k], q)

    def _keep(self, law: ConstrainedLaw, q: Array, v: Array, dq: Array, dv: Array) -> None:
        """Remember how places where contacts landed follow the design."""
        if law.design is None or not law.constraints.m:
            return
        kept = slope_errors(law.constraints, q, v, dq, dv, law.design)[0]
        kept[: self.base.constraints.m] = 0.0
        kept[self.normal_rows(self.closed)] = 0.0
        law.kept = kept

    def record(self, t: float) -> None:
        """Begin a phase, in the place of one that began at the same time."""
        if self.phases and self.phases[-1][0] == t:
            self.phases.pop()
        self.phases.append((t, tuple(self.names[k] for k in self.closed)))

    def told(self, end: float) -> tuple[Phase, ...]:
        """The phases of a motion that ended at some time."""
        ends = [t for t, _ in self.phases[1:]] + [end]
        return tuple(Phase(t, until, closed) for (t, closed), until in zip(self.phases, ends, strict=True))
