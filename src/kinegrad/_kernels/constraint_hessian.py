"""∂²/∂(q, q̇, q̈)² of a weighted sum of the errors of constraints and their time derivatives, κ·φ + κ′·φ̇ + κ″·φ̈.

Let H(f) = Σ f ∂²φ/∂q² be the curvature of ``constraints.py``, and Ḣ, Ḧ its time derivatives along (q, q̇, q̈) at fixed f.
As of points (``kinematics_hessian.py``), the second derivatives of φ̇ are Ḣ and H, and those of φ̈ are Ḧ, 2 Ḣ, H and 2 H:

    ∂q∂q   H(κ) + Ḣ(κ′) + Ḧ(κ″)       ∂q∂q̇   H(κ′) + 2 Ḣ(κ″)       ∂q∂q̈   H(κ″)       ∂q̇∂q̇   2 H(κ″)         (1)

H is linear in f.  So let f move as if it had the value κ″, the rate κ′/2 and the second rate κ: then (1) are the second
rate, twice the rate, and the value of the one matrix H(f).  It is computed as in ``constraints.py``, from

    H_jk = P_k·J_j + Q_k·Z_j

with all of its parts as *jets*, numbers with their first two rates, by the rules of products.

Glossary
    Jet          value, rate, second rate: of numbers, of vectors, of matrices (9 numbers)
    F N          Σ f u and Σ f a bᵀ over the rows of a pair
    f df ddf     κ″, κ′/2, κ, (states or 1, rows) each
"""

from typing import Any, NamedTuple

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.constraint_rows import (
    BOTH,
    CARRIER,
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
    column_slot,
    columns,
    heading,
    heading_rates,
    own_layout,
    row,
    unpack_constraints,
)
from kinegrad._kernels.kinematics_derivatives import PATH, outward
from kinegrad._kernels.lanes.finite import finite, with_results
from kinegrad._kernels.lanes.lane import gather, load, root, scatter, spread
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import add, cross, dot, load3, mul, row3, scale, store3, sub, zero3


class Jet(NamedTuple):
    """A quantity with its first two time derivatives."""

    x: Any
    dx: Any
    ddx: Any


# --- rules of products ------------------------------------------------------------------------------------------


@inline
def plus(a, b):
    return Jet(add(a.x, b.x), add(a.dx, b.dx), add(a.ddx, b.ddx))


@inline
def minus(a, b):
    return Jet(sub(a.x, b.x), sub(a.dx, b.dx), sub(a.ddx, b.ddx))


@inline
def inner(a, b):
    """a·b"""
    return Jet(
        dot(a.x, b.x), dot(a.dx, b.x) + dot(a.x, b.dx), dot(a.ddx, b.x) + 2.0 * dot(a.dx, b.dx) + dot(a.x, b.ddx)
    )


@inline
def outer(a, b):
    """a×b"""
    second = add(add(cross(a.ddx, b.x), scale(2.0, cross(a.dx, b.dx))), cross(a.x, b.ddx))
    return Jet(cross(a.x, b.x), add(cross(a.dx, b.x), cross(a.x, b.dx)), second)


@inline
def times(c, a):
    """A number times a vector."""
    second = add(add(scale(c.ddx, a.x), scale(2.0 * c.dx, a.dx)), scale(c.x, a.ddx))
    return Jet(scale(c.x, a.x), add(scale(c.dx, a.x), scale(c.x, a.dx)), second)


@inline
def dyad(a, b):
    """a bᵀ"""
    return (
        a[0] * b[0], a[0] * b[1], a[0] * b[2],
        a[1] * b[0], a[1] * b[1], a[1] * b[2],
        a[2] * b[0], a[2] * b[1], a[2] * b[2],
    )  # fmt: skip


@inline
def add9(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


@inline
def plus_dyad(N, a, b):
    """N + a bᵀ"""
    second = add9(add9(dyad(a.ddx, b.x), dyad(scale(2.0, a.dx), b.dx)), dyad(a.x, b.ddx))
    return Jet(add9(N.x, dyad(a.x, b.x)), add9(N.dx, add9(dyad(a.dx, b.x), dyad(a.x, b.dx))), add9(N.ddx, second))


@inline
def turn(N, Z):
    """N Z − tr N Z"""
    return sub(mul(N, Z), scale(N[0] + N[4] + N[8], Z))


@inline
def turned(N, Z):
    second = add(add(turn(N.ddx, Z.x), scale(2.0, turn(N.dx, Z.dx))), turn(N.x, Z.ddx))
    return Jet(turn(N.x, Z.x), add(turn(N.dx, Z.x), turn(N.x, Z.dx)), second)


@inline
def transposed(N):
    return (N[0], N[3], N[6], N[1], N[4], N[7], N[2], N[5], N[8])


@inline
def still():
    """A vector of zero."""
    return Jet(zero3(), zero3(), zero3())


@inline
def zero9():
    return (*zero3(), *zero3(), *zero3())


# --- the matrix -------------------------------------------------------------------------------------------------


@inline
def column_jet(scratch, slot):
    """J, or Z three slots later, of a joint."""
    return Jet(load3(scratch, slot), load3(scratch, slot + 6), load3(scratch, slot + 12))


@inline
def fill_shared(c, p, scratch, at):
    """Rates of Z of joints that move both points, which rows have no use for."""
    for k in range(c.pair[p, BOTH], c.pair[p, END]):
        slot, path = column_slot(c, p, k, at), at.path + c.path[k] * PATH
        store3(scratch, slot + 9, load3(scratch, path + 6))
        store3(scratch, slot + 15, load3(scratch, path + 12))


@inline
def direction_jet(m, i, x, scratch, at):
    """A direction fixed in link i, or in the world."""
    u = heading(m, i, x, scratch, at)
    du, ddu = heading_rates(i, u, scratch, at)
    return Jet(u, du, ddu)


@inline
def pull(m, c, p, e, de, dde, weights, r, scratch, at):
    """F and N of pair p; of a rod, f/|e| and w."""
    f, df, ddf = weights
    F, N = still(), Jet(zero9(), zero9(), zero9())
    bend, w = Jet(spread(0.0), spread(0.0), spread(0.0)), still()
    for k in range(c.pair[p, FIRST], c.pair[p, LAST]):
        own = Jet(gather(f, r, k), gather(df, r, k), gather(ddf, r, k))
        if c.kind[k] == DIRECTION:
            a = direction_jet(m, c.pair[p, LINK], row3(c.vector, k, 0), scratch, at)
            b = direction_jet(m, c.pair[p, OTHER], row3(c.vector, k, 3), scratch, at)
            N = plus_dyad(N, a, times(own, b))
        else:
            row(m, c, p, k, e, de, dde, scratch, at)
            u = Jet(load3(scratch, at.work), load3(scratch, at.work + 3), load3(scratch, at.work + 6))
            F = plus(F, times(own, u))
            if c.kind[k] == ROD:
                inverse = 1.0 / root(dot(e, e))
                rate, second = load(scratch, at.work + PHI + 1), load(scratch, at.work + PHI + 2)
                d = -1.0 * rate * inverse * inverse
                dd = (2.0 * rate * rate * inverse - second) * inverse * inverse
                bend = Jet(
                    own.x * inverse, own.dx * inverse + own.x * d, own.ddx * inverse + 2.0 * own.dx * d + own.x * dd
                )
                w = u
    return F, N, bend, w


@inline
def add_entry(out, r, n, i, j, u):
    """Add u to entries (i, j) and (j, i), or to the one on the diagonal."""
    scatter(out, r, i * n + j, gather(out, r, i * n + j) + u)
    if i != j:
        scatter(out, r, j * n + i, gather(out, r, j * n + i) + u)


@inline
def add_block(m, c, p, k, first, last, P, Q, r, out, scratch, at):
    """P·J_j + Q·Z_j for the joints j that are entries first … last−1 of `path`."""
    n = len(m.parent)
    d2_dqdq, d2_dqdv, d2_dqda = out
    for j in range(first, last):
        slot = column_slot(c, p, j, at)
        along, about = inner(P, column_jet(scratch, slot)), inner(Q, column_jet(scratch, slot + 3))
        one, other = c.path[j], c.path[k]
        add_entry(d2_dqdq, r, n, one, other, along.ddx + about.ddx)
        add_entry(d2_dqdv, r, n, one, other, 2.0 * (along.dx + about.dx))
        add_entry(d2_dqda, r, n, one, other, along.x + about.x)


@inline
def add_pair(m, c, p, weights, r, out, scratch, at):
    """The share of pair p, joint by joint as ``constraints.add_curvature`` does."""
    e, de, dde = columns(m, c, p, True, scratch, at)
    fill_shared(c, p, scratch, at)
    F, N, bend, w = pull(m, c, p, e, de, dde, weights, r, scratch, at)
    N_t = Jet(transposed(N.x), transposed(N.dx), transposed(N.ddx))
    own, others, both, end = c.pair[p, OWN], c.pair[p, OTHERS], c.pair[p, BOTH], c.pair[p, END]
    loop = c.pair[p, CARRIER] >= 0
    for k in range(own, end):
        slot = column_slot(c, p, k, at)
        J, Z = column_jet(scratch, slot), column_jet(scratch, slot + 3)
        P, X = times(bend, minus(J, times(inner(w, J), w))), outer(J, F)
        if k < others:  # of A's own
            add_block(m, c, p, k, k, others, P, plus(turned(N, Z), X), r, out, scratch, at)
            add_block(m, c, p, k, both, end, P, X, r, out, scratch, at)
        elif k < both:  # of B's own, where Z is −z
            T = turned(N_t, Z)
            own_Q = minus(T, X)
            if loop:
                P, own_Q = outer(F, Z), T
            add_block(m, c, p, k, own, others, P, T, r, out, scratch, at)
            add_block(m, c, p, k, k, both, P, own_Q, r, out, scratch, at)
            add_block(m, c, p, k, both, end, P, X, r, out, scratch, at)
        else:
            add_block(m, c, p, k, k, end, still(), X, r, out, scratch, at)


@inline
def block(m, q, v, a, c, weights, out, r, scratch, at):
    """(1) of the states r … r+W−1."""
    outward(m, q, v, a, r, scratch)
    for p in range(len(c.pair)):
        add_pair(m, c, p, weights, r, out, scratch, at)


@kernel
def constraint_hessian(m, q, v, a, c, f, df, ddf, d2_dqdq, d2_dqdv, d2_dqda, scratch, start, stop):
    """(1) but for the last, which is twice the one before; (states, n·n) each, zero on entry."""
    ok = finite((q, v, a, f, df, ddf), start, stop)
    if not ok:
        return ok
    m, c = unpack(m), unpack_constraints(c)
    at, out = own_layout(len(m.parent)), (d2_dqdq, d2_dqdv, d2_dqda)
    for r in range(start, stop, lane_count()):
        block(m, q, v, a, c, (f, df, ddf), out, r, scratch, at)
    return with_results(ok, out, start, stop)
