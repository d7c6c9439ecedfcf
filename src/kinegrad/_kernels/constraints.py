"""Constraints φ(q) = 0: their Jacobian G = ∂φ/∂q, how they move, φ̇ and φ̈, and how all of that changes.

With w of each row and the columns J (or Z) of each joint, from ``constraint_rows.py``,

    G_j = w·J_j        Ġ_j = ẇ·J_j + w·J̇_j        G̈_j = ẅ·J_j + 2 ẇ·J̇_j + w·J̈_j

and because ∂φ̇/∂q = Ġ, ∂φ̈/∂q = G̈ and ∂φ̈/∂v = 2Ġ along the motion (q, v, a), these are all the derivatives.

For given multipliers f the curvature is H = Σ f ∂²φ/∂q² = ∂(Gᵀf)/∂q, symmetric.  Of two joints let k be the one that
is not above the other, j; then q_k changes w and x but not S_j.  With F = Σ f u and N = Σ f a bᵀ, over a pair's rows,

    H_jk = P_k·J_j + Q_k·z_j        T_k = N Z_k − tr N Z_k (k of A)  or  Nᵀ Z_k − tr N Z_k (k of B)

    P_k   f (J_k − w (w·J_k))/|e| for rods, F×Z_k for k of B in loops: w changes        (else 0)
    Q_k   J_k×F: the point moves, seen from j of the same side; T_k: a or b turns       (signs below)

Glossary
    c           Constraints; Layout `at` says where frames, V, A, path slots and work are: see constraint_rows.py
    G Ġ G̈ H   Entries: where entry (row, column) of a matrix goes, in results or in scratch (Slots)
"""

from typing import Any, NamedTuple

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.constraint_rows import (
    BOTH,
    CARRIER,
    COLUMNS,
    DIRECTION,
    END,
    FIRST,
    LAST,
    LINK,
    OTHER,
    OTHERS,
    OWN,
    PHI,
    ROD,
    Constraints,
    Layout,
    column_slot,
    columns,
    coupled,
    ends,
    heading,
    own_layout,
    part,
    point_rates,
    row,
    slots,
    still_value,
    unpack_constraints,
    work_slots,
)
from kinegrad._kernels.joints import frames
from kinegrad._kernels.kinematics import N, motions
from kinegrad._kernels.kinematics_derivatives import outward
from kinegrad._kernels.lanes.finite import finite, with_results
from kinegrad._kernels.lanes.lane import gather, load, root, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    add,
    add3,
    cross,
    dot,
    load3,
    load9,
    mul,
    row3,
    scale,
    store3,
    sub,
    zero3,
)  # fmt: skip

__all__ = [
    "Constraints", "Entries", "Layout", "add_curvature", "closure", "curvature", "derivatives", "errors", "jacobian",
    "jacobian_rates", "motion", "own_layout", "rates", "slots", "unpack_constraints", "work_slots",
]  # fmt: skip

FORCE, TURN = 0, 3  # in the slots of work while H is computed: F, N


class Entries(NamedTuple):
    """A matrix: entry (i, k) is column i·row + k·column of the results x, or that slot of Slots."""

    x: Any
    row: Any
    column: Any


# --- what other kernels use -------------------------------------------------------------------------------------


@inline
def errors(m, c, q, r, phi, scratch, at):
    """φ of all rows, with the frames there."""
    for p in range(len(c.pair)):
        _, _, e = ends(m, c, p, scratch, at)
        for k in range(c.pair[p, FIRST], c.pair[p, LAST]):
            _, value = still_value(m, c, p, k, e, scratch, at)
            scatter(phi, r, k, value)
    for s in range(len(c.joint)):
        scatter(phi, r, c.joint[s, 0], coupled(c, s, q, r) - c.ratio[s, 1])


@inline
def jacobian(m, c, r, G, scratch, at):
    """G, with the frames there; entries of joints that are on no path are left alone: they have to be zero."""
    for p in range(len(c.pair)):
        e, _, _ = columns(m, c, p, False, scratch, at)
        for k in range(c.pair[p, FIRST], c.pair[p, LAST]):
            w, _ = still_value(m, c, p, k, e, scratch, at)
            for j in range(c.pair[p, OWN], c.pair[p, END]):
                J = load3(scratch, column_slot(c, p, j, at) + part(c, k))
                scatter(G.x, r, k * G.row + c.path[j] * G.column, dot(w, J))
    coupling_jacobian(c, r, G)


@inline
def coupling_jacobian(c, r, G):
    """Rows of joints: 1 and −ratio."""
    for s in range(len(c.joint)):
        at = c.joint[s, 0] * G.row
        scatter(G.x, r, at + c.joint[s, 1] * G.column, 1.0)
        if c.joint[s, 2] >= 0:
            scatter(G.x, r, at + c.joint[s, 2] * G.column, -c.ratio[s, 0])


@inline
def rates(m, c, v, a, r, dphi, ddphi, scratch, at):
    """φ̇ and φ̈ of all rows along (v, a), with the frames, V and A there.

    For γ = −φ̈(q, v, 0), let A be what it is for a = 0, and give zeros for a.
    """
    for p in range(len(c.pair)):
        x, y, e = ends(m, c, p, scratch, at)
        dx, ddx = point_rates(c.pair[p, LINK], x, scratch, at)
        dy, ddy = point_rates(c.pair[p, OTHER], y, scratch, at)
        for k in range(c.pair[p, FIRST], c.pair[p, LAST]):
            row(m, c, p, k, e, sub(dx, dy), sub(ddx, ddy), scratch, at)
            scatter(dphi, r, k, load(scratch, at.work + PHI + 1))
            scatter(ddphi, r, k, load(scratch, at.work + PHI + 2))
    for s in range(len(c.joint)):
        scatter(dphi, r, c.joint[s, 0], coupled(c, s, v, r))
        scatter(ddphi, r, c.joint[s, 0], coupled(c, s, a, r))


@inline
def jacobian_rates(m, c, r, G, dG, ddG, scratch, at):
    """G, Ġ and G̈, with the frames, V, A and path slots there; other entries are left alone, as of `jacobian`."""
    for p in range(len(c.pair)):
        e, de, dde = columns(m, c, p, True, scratch, at)
        for k in range(c.pair[p, FIRST], c.pair[p, LAST]):
            row(m, c, p, k, e, de, dde, scratch, at)
            w, dw, ddw = load3(scratch, at.work), load3(scratch, at.work + 3), load3(scratch, at.work + 6)
            for j in range(c.pair[p, OWN], c.pair[p, END]):
                slot = column_slot(c, p, j, at) + part(c, k)
                J, dJ, ddJ = load3(scratch, slot), load3(scratch, slot + 6), load3(scratch, slot + 12)
                scatter(G.x, r, k * G.row + c.path[j] * G.column, dot(w, J))
                scatter(dG.x, r, k * dG.row + c.path[j] * dG.column, dot(dw, J) + dot(w, dJ))
                curve = dot(ddw, J) + 2.0 * dot(dw, dJ) + dot(w, ddJ)
                scatter(ddG.x, r, k * ddG.row + c.path[j] * ddG.column, curve)
    coupling_jacobian(c, r, G)


# --- curvature --------------------------------------------------------------------------------------------------


@inline
def gather_pull(m, c, p, e, f, r, scratch, at):
    """F and N, to the slots of work; returns, of a rod, f/|e| and w."""
    for s in range(0, COLUMNS, 3):
        store3(scratch, at.work + s, zero3())
    bend, w = load(scratch, at.work), load3(scratch, at.work)  # zeros, of lanes or of duals
    for k in range(c.pair[p, FIRST], c.pair[p, LAST]):
        pull = gather(f, r, k)
        if c.kind[k] == DIRECTION:
            a = heading(m, c.pair[p, LINK], row3(c.vector, k, 0), scratch, at)
            b = scale(pull, heading(m, c.pair[p, OTHER], row3(c.vector, k, 3), scratch, at))
            for i in (0, 1, 2):
                add3(scratch, at.work + TURN + 3 * i, scale(a[i], b))
        else:
            u, _ = still_value(m, c, p, k, e, scratch, at)
            add3(scratch, at.work + FORCE, scale(pull, u))
            if c.kind[k] == ROD:
                bend, w = pull / root(dot(e, e)), u
    return bend, w


@inline
def turned(N, Z):
    """N Z − tr N Z"""
    return sub(mul(N, Z), scale(N[0] + N[4] + N[8], Z))


@inline
def add_block(c, p, k, first, last, P, Q, r, H, scratch, at):
    """H_jk and H_kj += P·J_j + Q·Z_j for the joints j that are entries first … last−1 of `path`."""
    for j in range(first, last):
        slot = column_slot(c, p, j, at)
        value = dot(P, load3(scratch, slot)) + dot(Q, load3(scratch, slot + 3))
        one, other = c.path[j], c.path[k]
        here, there = one * H.row + other * H.column, other * H.row + one * H.column
        scatter(H.x, r, here, gather(H.x, r, here) + value)
        if j != k:
            scatter(H.x, r, there, gather(H.x, r, there) + value)


@inline
def add_curvature(m, c, f, r, H, scratch, at):
    """H += Σ f ∂²φ/∂q², both halves, with the frames there; f has a column for each row."""
    for p in range(len(c.pair)):
        e, _, _ = columns(m, c, p, False, scratch, at)
        bend, w = gather_pull(m, c, p, e, f, r, scratch, at)
        F, N_ = load3(scratch, at.work + FORCE), load9(scratch, at.work + TURN)
        own, others, both, end = c.pair[p, OWN], c.pair[p, OTHERS], c.pair[p, BOTH], c.pair[p, END]
        loop = c.pair[p, CARRIER] >= 0
        for k in range(own, end):
            slot = column_slot(c, p, k, at)
            J, Z = load3(scratch, slot), load3(scratch, slot + 3)
            P, X = scale(bend, sub(J, scale(dot(w, J), w))), cross(J, F)
            if k < others:  # of A's own
                add_block(c, p, k, k, others, P, add(turned(N_, Z), X), r, H, scratch, at)
                add_block(c, p, k, both, end, P, X, r, H, scratch, at)
            elif k < both:  # of B's own, where Z is −z
                T = turned((N_[0], N_[3], N_[6], N_[1], N_[4], N_[7], N_[2], N_[5], N_[8]), Z)
                own_Q = sub(T, X)
                if loop:
                    P, own_Q = cross(F, Z), T
                add_block(c, p, k, own, others, P, T, r, H, scratch, at)
                add_block(c, p, k, k, both, P, own_Q, r, H, scratch, at)
                add_block(c, p, k, both, end, P, X, r, H, scratch, at)
            else:
                add_block(c, p, k, k, end, zero3(), X, r, H, scratch, at)


# --- kernels ----------------------------------------------------------------------------------------------------


@kernel
def closure(m, q, c, phi, G, scratch, start, stop):
    """φ, (states, rows), and G, (states, rows·n), zero on entry; no rows in one: not wanted."""
    ok = finite((q,), start, stop)
    if not ok:
        return ok
    m, c = unpack(m), unpack_constraints(c)
    n = len(m.parent)
    at = own_layout(n)
    for r in range(start, stop, lane_count()):
        frames(m, q, r, scratch, N)
        if len(phi) > 0:
            errors(m, c, q, r, phi, scratch, at)
        if len(G) > 0:
            jacobian(m, c, r, Entries(G, n, 1), scratch, at)
    return with_results(ok, (phi, G), start, stop)


@kernel
def motion(m, q, v, a, c, dphi, ddphi, scratch, start, stop):
    """φ̇ and φ̈, (states, rows) each."""
    ok = finite((q, v, a), start, stop)
    if not ok:
        return ok
    m, c = unpack(m), unpack_constraints(c)
    at = own_layout(len(m.parent))
    for r in range(start, stop, lane_count()):
        motions(m, q, v, a, r, scratch)
        rates(m, c, v, a, r, dphi, ddphi, scratch, at)
    return with_results(ok, (dphi, ddphi), start, stop)


@kernel
def derivatives(m, q, v, a, c, G, dG, ddG, scratch, start, stop):
    """G, Ġ and G̈, (states, rows·n) each, zero on entry."""
    ok = finite((q, v, a), start, stop)
    if not ok:
        return ok
    m, c = unpack(m), unpack_constraints(c)
    n = len(m.parent)
    at = own_layout(n)
    for r in range(start, stop, lane_count()):
        outward(m, q, v, a, r, scratch)
        jacobian_rates(m, c, r, Entries(G, n, 1), Entries(dG, n, 1), Entries(ddG, n, 1), scratch, at)
    return with_results(ok, (G, dG, ddG), start, stop)


@kernel
def curvature(m, q, c, f, H, scratch, start, stop):
    """H, (states, n·n), zero on entry, of multipliers f, (states or 1, rows)."""
    ok = finite((q, f), start, stop)
    if not ok:
        return ok
    m, c = unpack(m), unpack_constraints(c)
    n = len(m.parent)
    at = own_layout(n)
    for r in range(start, stop, lane_count()):
        frames(m, q, r, scratch, N)
        add_curvature(m, c, f, r, Entries(H, n, 1), scratch, at)
    return with_results(ok, (H,), start, stop)
