"""Derivatives of motions in fixed steps with contacts that open and close, forwards and backwards.

A piece of a step, x⁺ = Φ(z), is a smooth function of

    z = (q, v, t, ℓ, c, τ, p):

the state and the time at its start, its length, the places c where closed contacts landed, the torques that are added
in this step, and design parameters.  If an event g(x⁺, z) = 0 ends it, its length follows all others, and if the end of
the step does, the time,

    dℓ = −(∂g/∂z dz) / (∂g/∂ℓ),    or    dℓ = −dt,

after which z has no ℓ any more.  An event leads to v⁺ = R(q, v, p) and to new places c⁺ = φ(q, p).  The direct method
multiplies these matrices from the start, the adjoint from the end: one is the transpose of the other.  Integrals are
ℓ Σ bᵢ fᵢ of the stages of each piece, as if J were one more coordinate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constrained.derivatives import impact_derivatives
from kinegrad.constrained.design import constrained_dynamics_design_derivatives, impact_design_derivatives
from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design, constraint_design_derivatives
from kinegrad.errors import InputError, SolveError
from kinegrad.motion import Motion
from kinegrad.objectives.objective import Objective, add_terms, check_timeless
from kinegrad.simulate.constrained_law import ConstrainedLaw
from kinegrad.simulate.contact_steps import ContactMotion, Node, Piece, Switch
from kinegrad.simulate.explicit import Scheme, finish_step
from kinegrad.simulate.projection import check_slopes, closed, closed_slopes
from kinegrad.simulate.switching import Contacts, Struck

__all__ = ["ContactAdjoint", "Tangents", "stage_motion"]

Array = NDArray[np.float64]
SHIFT = 1e-3  # s: whether torques follow time is seen after so long


class Columns:
    """Where the parts of z are; parameters are the last."""

    def __init__(self, law: ConstrainedLaw) -> None:
        n, m, p = law.model.nv, law.constraints.m, 0 if law.design is None else law.design.p
        self.q, self.v, self.t, self.length = slice(0, n), slice(n, 2 * n), 2 * n, 2 * n + 1
        self.places = slice(2 * n + 2, 2 * n + 2 + m)
        self.tau = slice(self.places.stop, self.places.stop + n)
        self.p = slice(self.tau.stop, self.tau.stop + p)
        self.width = self.p.stop


class PieceSlopes:
    """Derivatives of a piece with respect to z, in which ℓ has been replaced by what it follows.

    Attributes
    ----------
    q, v : ndarray, shape (n, z)
        Of its end.
    stages : ndarray, shape (4, s, n, z)
        Of q, v, a and τ of its stages.
    length : ndarray, shape (z,)
    """

    def __init__(self, contacts: Contacts, scheme: Scheme, piece: Piece) -> None:
        self.law, self.piece, self.columns = piece.law, piece, Columns(piece.law)
        self.eye = np.eye(self.columns.width)
        self._make_stages(scheme)
        h, end = piece.length, self._step(scheme.b, scheme.b_bar, 1.0, piece.stages.a, self._da)
        places = self.eye[self.columns.places]
        before = finish_step(scheme, h, piece.q, piece.v, piece.stages.a)
        self.q, self.v = drawn_slopes(self.law, *before, *end, places)
        self._follow_event(contacts)

    def _step(self, b: Array, b_bar: Array, c: float, a: list[Array], da: list[Array]) -> tuple[Array, Array]:
        """Slopes of q + c ℓ v + ℓ² Σ b̄ a and v + ℓ Σ b a."""
        at, h, by_length = self.columns, self.piece.length, self.eye[self.columns.length]
        a_bar, a_sum = (
            sum((w * x for w, x in zip(by, a, strict=False)), np.zeros(len(self.piece.v))) for by in (b_bar, b)
        )
        dq = self.eye[at.q] + c * h * self.eye[at.v] + np.outer(c * self.piece.v + 2 * h * a_bar, by_length)
        dv = self.eye[at.v] + np.outer(a_sum, by_length)
        for w_bar, w, x in zip(b_bar, b, da, strict=False):
            dq, dv = dq + h**2 * w_bar * x, dv + h * w * x
        return dq, dv

    def _make_stages(self, scheme: Scheme) -> None:
        """Of q, v, a and τ of all stages."""
        law, at, piece = self.law, self.columns, self.piece
        q, v, _, tau = (np.array(x) for x in piece.stages[:4])
        by = law.derivatives(q, v, tau)
        by_p = None if law.design is None else law.by_design(q, v, tau)
        self._da: list[Array] = []
        rows = []
        for i, c in enumerate(scheme.c.tolist()):
            dq, dv = self._step(scheme.A[i], scheme.A_bar[i], c, piece.stages.a, self._da)
            dtau = self._torques(c, q[i], v[i], dq, dv)
            da = by.da_dq[i] @ dq + by.da_dv[i] @ dv + by.da_dtau[i] @ dtau
            if by_p is not None:
                da[:, at.p] += by_p[i]
            self._da.append(da)
            rows.append((dq, dv, da, dtau))
        self.stages = np.array(rows).swapaxes(0, 1)

    def _torques(self, c: float, q: Array, v: Array, dq: Array, dv: Array) -> Array:
        """dτ at the time t + c ℓ, of a state and its slopes."""
        law, at, piece = self.law, self.columns, self.piece
        t = piece.t + c * piece.length
        dtau, gains = self.eye[at.tau].copy(), law.gains(t, q, v)
        if gains is not None:
            dtau += gains[0] @ dq + gains[1] @ dv
        if piece.split:
            dtau += np.outer(torque_rate(law, piece.k, t, q, v), self.eye[at.t] + c * self.eye[at.length])
        return dtau

    def _follow_event(self, contacts: Contacts) -> None:
        """Replace ℓ."""
        at, piece = self.columns, self.piece
        if piece.contact is not None:
            g = self._gap(contacts)
        elif piece.row is not None:
            g = self._force(piece.row)
        else:
            g = self.eye[at.t] + self.eye[at.length]  # the end of the step
        if g[at.length] == 0.0:
            when = f"at t = {piece.t + piece.length:.6g} s"
            raise SolveError(f"{when} a contact neither closes nor opens but just touches: there is no derivative")
        self.length: Array = np.where(self.eye[at.length] > 0, 0.0, -g / g[at.length])
        for x in (self.q, self.v, self.stages):
            x += x[..., at.length, None] * self.length
            x[..., at.length] = 0.0

    def _gap(self, contacts: Contacts) -> Array:
        """Slopes of the gap that closes."""
        contact, (q, _) = self.piece.contact, self.piece.end
        g: Array = contacts.floors.jacobian(q)[contact] @ self.q
        if self.law.design is not None:
            g[self.columns.p] += constraint_design_derivatives(self.law.design, contacts.floors, q).derror_dp[contact]
        return g

    def _force(self, row: int) -> Array:
        """Slopes of the normal force that becomes zero."""
        law, piece, (q, v) = self.law, self.piece, self.piece.end
        tau = law.torques(piece.t + piece.length, q, v, piece.k)
        by, dtau = law.derivatives(q, v, tau), self._torques(1.0, q, v, self.q, self.v)
        g: Array = by.dforces_dq[row] @ self.q + by.dforces_dv[row] @ self.v + by.dforces_dtau[row] @ dtau
        if law.design is not None:
            how: dict[str, Any] = {"loads": law.loads, "redundant": law.redundant}
            by_p = constrained_dynamics_design_derivatives(law.design, law.constraints, q, v, tau, **how)
            g[self.columns.p] += by_p.dforces_dp[row]
        return g


def torque_rate(law: ConstrainedLaw, k: int, t: float, q: Array, v: Array) -> Array:
    """∂τ/∂t; refused where a function gives τ that follows time, because its derivative is not known."""
    if law.feedback is None:
        rate: Array = law._given.rate(k, t)  # type: ignore[attr-defined]
        return rate
    if not np.array_equal(law.torques(t, q, v), law.torques(t + SHIFT, q, v)):
        raise InputError(
            f"`tau` is a Feedback that follows time, and at t = {t:.6g} s a step is split where a contact opens or "
            "closes, at a time that moves; expected a function of q and v alone, a spline, or samples"
        )
    return np.zeros(law.model.nv)


def drawn_slopes(
    law: ConstrainedLaw, q: Array, v: Array, dq: Array, dv: Array, places: Array
) -> tuple[Array, Array]:  # fmt: skip
    """Slopes, (n, k), after (q, v) was drawn onto constraints that hold points at `places`, (m, k); p columns last."""
    if not law.projects:
        return dq, dv
    placed = closed(law.constraints, q)
    dq = closed_slopes(law.constraints, placed, dq, law.design, places)
    return dq, struck_slopes(law, law.constraints, placed.q, v, 0.0, dq, dv)


def struck_slopes(
    law: ConstrainedLaw, constraints: ConstraintSet, q: Array, v: Array, e: Any, dq: Array, dv: Array
) -> Array:  # fmt: skip
    """Slopes of v after an impact, (n, k), the design's parameters being the last columns."""
    by = impact_derivatives(law.model, constraints, q, v, restitution=e)
    found: Array = by.dv_dq @ dq + by.dv_dv @ dv
    if law.design is not None and law.design.p:
        found[:, -law.design.p :] += impact_design_derivatives(law.design, constraints, q, v, restitution=e).dv_dp
    return found


def place_slopes(law: ConstrainedLaw, landed: NDArray[np.bool_], q: Array, dq: Array) -> Array:
    """Slopes of places where contacts landed, (m, k), zero of floors and of what always holds."""
    found: Array = law.constraints.jacobian(q) @ dq
    if law.design is not None and law.design.p:
        by_p = constraint_design_derivatives(law.design, law.constraints, q).derror_dp
        found[:, -law.design.p :] += by_p
    return found * landed[:, None]


def switch_slopes(switch: Switch, dq: Array, dv: Array) -> tuple[Array, Array]:
    """Slopes of speeds and places after an event, (n, k) and (m, k)."""
    struck, law = switch.struck, switch.law
    if struck is not None:
        dv = struck_slopes(law, struck.constraints, switch.q, switch.v, struck.restitution, dq, dv)
    return dv, place_slopes(law, switch.landed, switch.q, dq)


# --- integrals over the stages -----------------------------------------------------------------------------------


def stage_motion(
    law: ConstrainedLaw, scheme: Scheme, pieces: list[Piece], *, slopes: Any = None
) -> tuple[Motion, Array]:
    """All stages of some pieces as a motion, and their weights in integrals.

    Times of a motion increase: where they do not, they are as close as numbers can be.
    """
    columns = [np.concatenate([np.array(piece.stages[k]) for piece in pieces]) for k in range(4)]
    t = np.concatenate([piece.t + scheme.c * piece.length for piece in pieces])
    for k in range(1, len(t)):
        t[k] = max(t[k], np.nextafter(t[k - 1], np.inf))
    weights = np.concatenate([piece.length * scheme.b for piece in pieces])
    state: dict[str, Any] = dict(zip(("q", "v", "a", "tau"), columns, strict=True))
    if slopes is not None:
        state |= dict(zip(("dq_dp", "dv_dp", "da_dp", "dtau_dp"), slopes, strict=True))
    return Motion(law.model, t, **state, design=law.design), weights


# --- forwards ----------------------------------------------------------------------------------------------------


class Tangents:
    """Derivatives with respect to a design's parameters, from the start of a motion to its end.

    Attributes
    ----------
    nodes : list of (dq, dv), (n, p) each
    stages : ndarray, shape (4, pieces · s, n, p)
    weights : ndarray, shape (pieces · s, p)
        Of the weights of the stages in integrals.
    times : list of ndarray, shape (p,)
        Of the times of the impacts.
    """

    def __init__(self, motion: ContactMotion, design: Design, dq: Array, dv: Array) -> None:
        law, scheme = motion.first, motion.scheme
        if motion.floors.m:
            check_slopes(motion.floors, *motion.start, dq, dv, design)
        self.p, self.dt = design.p, np.zeros(design.p)
        self.places = place_slopes(law, motion.landed, motion.start[0], dq)
        self.dq, self.dv = drawn_slopes(law, *motion.start, dq, dv, self.places)
        self.nodes: list[tuple[Array, Array]] = []
        self.times: list[Array] = []
        stages, weights = [np.zeros((4, 0, *dq.shape))], [np.zeros((0, design.p))]
        for x in motion.tape:
            if isinstance(x, Node):
                self.dt = np.zeros(design.p)
                self.nodes.append((self.dq, self.dv))
            elif isinstance(x, Switch):
                if x.struck is not None:
                    self.times.append(self.dt)
                    self._check_order(motion.contacts, x.t, x.struck, x.q, x.v)
                self.dv, self.places = switch_slopes(x, self.dq, self.dv)
            else:
                through = PieceSlopes(motion.contacts, scheme, x)
                dz = self._dz(through.columns)
                length = through.length @ dz
                self.dq, self.dv, self.dt = through.q @ dz, through.v @ dz, self.dt + length
                stages.append(through.stages @ dz)
                weights.append(np.outer(scheme.b, length))
        self.stages, self.weights = np.concatenate(stages, axis=1), np.concatenate(weights)

    def _check_order(self, contacts: Contacts, t: float, struck: Struck, q: Array, v: Array) -> None:
        """Note if contacts that touch at the same time would not do so for other parameters."""
        touching = list(struck.touching)
        if len(touching) > 1:
            gaps = (contacts.floors.jacobian(q) @ self.dq + contacts.gap_slopes(contacts.base, q))[touching]
            speeds = contacts.floors.velocity(q, v)[touching]
            apart = -gaps / speeds[:, None]
            contacts.check_order(t, touching, apart, self.dt + apart, speeds)

    def _dz(self, at: Columns) -> Array:
        dz = np.zeros((at.width, self.p))
        dz[at.q], dz[at.v], dz[at.t], dz[at.places], dz[at.p] = self.dq, self.dv, self.dt, self.places, np.eye(self.p)
        return dz


# --- backwards ---------------------------------------------------------------------------------------------------


class ContactAdjoint:
    """J and its derivatives, gathered from the end of a motion to its start.

    Attributes
    ----------
    value : ndarray, shape ()
    q, v : ndarray, shape (n,)
        ∂J with respect to the initial state.
    dtau : ndarray, shape (steps, n)
    dp : ndarray, shape (p,), or None
    """

    def __init__(self, motion: ContactMotion, objective: Objective) -> None:
        law, n = motion.first, motion.first.model.nv
        self.motion, self.law = motion, law
        self.value, self.dtau = np.zeros(()), np.zeros((motion.steps, n))
        self.dp = None if law.design is None else np.zeros(law.design.p)
        *_, last = motion.nodes
        self.q, self.v, self.t, self.places = np.zeros(n), np.zeros(n), 0.0, np.zeros(())
        self._end(last, objective)
        share, values = self._integral(objective)
        number = len(motion.pieces)
        for x in reversed(motion.tape):
            if isinstance(x, Node):
                self.t = 0.0
            elif isinstance(x, Switch):
                self._switch(x)
            else:
                number -= 1
                self._piece(x, share[:, number], values[number])
        self._begin()

    def by_parameters(self) -> Array | None:
        """Total dJ/dp."""
        return self.dp

    def _end(self, node: Node, objective: Objective) -> None:
        """Terms at the end of the motion."""
        law = node.law
        a, tau = law.acceleration(node.t, node.q, node.v, node.k)
        q, v = node.q[None], node.v[None]
        at = Motion(law.model, np.array([node.t]), q, v, a[None], tau[None], design=law.design)
        by_q, by_v, by_a, by_tau = add_terms(objective.end, at, np.ones(1), self.value, self.dp)[:, 0]
        change = law.derivatives(node.q, node.v, tau)
        by_tau = by_tau + by_a @ change.da_dtau
        self.q, self.v = by_q + by_a @ change.da_dq, by_v + by_a @ change.da_dv
        gains = law.gains(node.t, node.q, node.v)
        if gains is not None:
            self.q, self.v = self.q + by_tau @ gains[0], self.v + by_tau @ gains[1]
        self.dtau[node.k] += by_tau
        if self.dp is not None:
            self.dp += by_a @ law.by_design(node.q, node.v, tau)

    def _integral(self, objective: Objective) -> tuple[Array, Array]:
        """Weighted partial derivatives of integrands at all stages, (4, pieces, s, n); and Σ bᵢ fᵢ of split pieces."""
        pieces, scheme = self.motion.pieces, self.motion.scheme
        at, weights = stage_motion(self.law, scheme, pieces)
        share = add_terms(objective.integral, at, weights, self.value, self.dp)
        values = np.zeros(len(pieces))
        split = [k for k, piece in enumerate(pieces) if piece.split]
        if split and objective.integral:
            there, _ = stage_motion(self.law, scheme, [pieces[k] for k in split])
            check_timeless(objective.integral, there)
            found = sum(term.evaluate(there).value for term in objective.integral)
            values[split] = np.reshape(found, (-1, len(scheme.b))) @ scheme.b
        return share.reshape(4, len(pieces), len(scheme.b), -1), values

    def _piece(self, piece: Piece, share: Array, value: float) -> None:
        """Back through a piece, with the partial derivatives of integrands at its stages."""
        through = PieceSlopes(self.motion.contacts, self.motion.scheme, piece)
        at = through.columns
        z = self.q @ through.q + self.v @ through.v + np.einsum("xsn,xsnz->z", share, through.stages)
        z += (self.t + value) * through.length
        self.t = self.t + z[at.t]
        self.q, self.v, self.places = z[at.q], z[at.v], self.places + z[at.places]
        self.dtau[piece.k] += z[at.tau]
        self._add(z[at.p])

    def _switch(self, switch: Switch) -> None:
        """Back through an event."""
        if switch.struck is not None and len(switch.struck.touching) > 1:
            self.motion.contacts.note(switch.t, switch.struck.touching, "states and torques before")
        before = np.eye(2 * len(self.q), 2 * len(self.q) + self._p)
        dv, places = switch_slopes(switch, *np.split(before, 2))
        self._pull(before[: len(self.q)], dv, places)

    def _begin(self) -> None:
        """Back through the drawing of the initial state onto contacts that are closed there."""
        law, motion = self.law, self.motion
        before = np.eye(2 * len(self.q), 2 * len(self.q) + self._p)
        dq, dv = np.split(before, 2)
        places = place_slopes(law, motion.landed, motion.start[0], dq)
        dq, dv = drawn_slopes(law, *motion.start, dq, dv, places)
        self._pull(dq, dv, places)

    def _pull(self, dq: Array, dv: Array, places: Array) -> None:
        """Gradients with respect to (q, v, p) before, from those after; what places were before has no effect."""
        n = len(self.v)
        z = self.q @ dq + self.v @ dv + np.broadcast_to(self.places, len(places)) @ places
        self.q, self.v = z[:n], z[n : 2 * n]
        self._add(z[2 * n :])
        self.places = np.zeros(())

    @property
    def _p(self) -> int:
        return 0 if self.dp is None else len(self.dp)

    def _add(self, by_p: Array) -> None:
        if self.dp is not None:
            self.dp += by_p
