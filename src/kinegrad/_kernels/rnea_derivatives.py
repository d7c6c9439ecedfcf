"""∂τ/∂(q, q̇, q̈) in the world frame, exact, touching only joints on one path.

Write S_j = (z, s) for the motion subspace of joint j (its ρ absorbed in z), V and A for spatial velocity and
acceleration of its parent link (the world accelerating at −g), and

    ψ̇_j = V × S_j         ψ̈_j = A × S_j + V × ψ̇_j                                            [singh2022]

Let i be a joint and, summed over the links of its subtree, I their inertia, (n, p) momentum, (n_f, f) force, and
2B = v×* I − I v× + (Iv)×̄*, which multiplied out is

    2B = [[K, 0], [−2p×, 0]]     K = ω×Ī − Īω× − v×h× − h×v× − n×  =  symmetric part − n×

with Ī and h the second and first moments: twelve numbers instead of a 6×6.  Then for every j on the path from i to
the root (j = i included)

    ∂τ_i/∂q_j = S_i·(2B ψ̇_j + I ψ̈_j)         ∂τ_j/∂q_i = S_j·(2B ψ̇_i + I ψ̈_i + S_i ×* F)
    ∂τ_i/∂q̇_j = S_i·(2B S_j + 2I ψ̇_j)        ∂τ_j/∂q̇_i = S_j·(2B S_i + 2I ψ̇_i)
    ∂τ_i/∂q̈_j = S_i·I S_j = ∂τ_j/∂q̈_i

and everything else is zero.  What depends on i alone is a *factor*, computed once:

    t = I S_i    b = (2B)ᵀ S_i (its linear part is 0)    u = 2B ψ̇_i + I ψ̈_i + S_i ×* F    w = 2B S_i + 2I ψ̇_i

so that each entry is a short dot product, and products with a vector (jvp, vjp) are sums along paths: O(n).

Loads.  A world force f at a point x of a link, and a world torque h, act on it with (x×f + h, f).  F counts them with
a minus; but unlike inertia forces they do not turn with the link.  What that leaves over when joint j turns by z_j is

    (x×(z_j×f) + z_j×h, z_j×f)  =  L z_j,     L = [[(x·f)1 − f xᵀ − h×], [−f×]],    summed over the subtree,

which adds S_i·L z_j to ∂τ_i/∂q_j and S_j·L z_i to ∂τ_j/∂q_i: one more factor l = Lᵀ S_i, and L z_i into u.

Every link has a reference point of its own (``joints.py``).  On the way from i to the root the forces t, u, w are
shifted from joint to joint, n + d×f; b and l meet angular parts only, and stay.  Of the sums, I is shifted as in
``bodies.py``, forces as all forces, and

    K − 2 d×p×:   symmetric part + 2 (p·d) 1 − p dᵀ − d pᵀ,   n + d×p             turn + (f·d) 1 − f dᵀ

Glossary (world axes, about the reference point of link i; 6-vectors are (angular, linear) pairs)
    S ψ̇ ψ̈ d        path slots of a joint: what its descendants read of it        21 slots, closely packed
    V A              spatial velocity and acceleration of link i                   12
    m h Ī            mass, first and second moment                                  10, summed over subtree i
    symmetric n p    of 2B                                                          12, summed
    n_f f            force                                                           6, summed
    turn pull        of L: its 3×3 part, and f                                      12, summed
    home             the joint in whose slots the sums of subtree i are: i, or, as a massless link without load adds
                     nothing to those of its only child, that child's
    pair             of a joint i and a joint j on its path to the root; numbered i = n−1 … 0, from j = i up to the
                     root; first, (n,), the number of the first of each i
    by_q by_v by_a   entries of the three matrices that topology does not make zero, row by row, with SPACE after each
                     row (or else the entries of a column were powers of two apart in a chain of 512, say, and fought
                     for the same places in the caches), then one zero
    place            (pairs, 2): how many slots entries (i, j) and (j, i) are after the first
    where            (columns,): how many slots that of each column of the results is after the first
    quiet            whether all joints from the root to j slide and none turns: then z = 0, and ψ̇ = ψ̈ = 0
"""

from typing import Any, NamedTuple

from kinegrad._kernels.bodies import (
    INERTIA,
    add_sym,
    body,
    inertia_force,
    link_point,
    load_inertia,
    parallel,
    passive_force,
    plus,
    store_inertia,
    store_sym,
)
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FRAME, FREE, SHIFT, carried, falling, rest, store_frame, store_world, subspace
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, load, scatter, store
from kinegrad._kernels.lanes.rows import Rows
from kinegrad._kernels.lanes.stream import (
    block_rows,
    count_blocks,
    fence,
    step_of,
    stream_some,
    unload_all,
    unload_ends,
)
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    Force,
    add,
    add3,
    cross,
    dot,
    gather3,
    increase,
    load3,
    load6,
    load9,
    load_force,
    load_motion,
    mul,
    put,
    scale,
    store3,
    store9,
    sub,
    symmul,
    tmul,
    zero3,
)  # fmt: skip

VELOCITY, ACCELERATION, BODY = FREE, FREE + 6, FREE + 12  # V | A | I
SYMMETRIC = BODY + INERTIA
MOMENTUM, FORCE, TURN, PULL, N = SYMMETRIC + 6, SYMMETRIC + 12, SYMMETRIC + 18, SYMMETRIC + 27, SYMMETRIC + 30
# of 2B | (n, p) | F | L | slots per joint; joint i's begin at (i+1)·N, the world's at 0
HOME, QUIET = 0, 1  # columns of a plan
SPACE = 2  # slots after each row of entries
SUBSPACE, RATE, CURVE, STEP, PATH = 0, 6, 12, 18, 21  # S | ψ̇ | ψ̈ | d | path slots per joint, after all of those


def slots(n: int, pairs: int) -> int:
    """Scratch slots for n joints."""
    return (n + 1) * N + n * PATH + 3 * entry_slots(n, pairs)


class Coriolis(NamedTuple):
    """2B of a body, or of a subtree as one: the symmetric part of K, and momentum (n, p)."""

    symmetric: Any
    momentum: Any

    def times(self, S):
        """2B S"""
        n, p = self.momentum
        return Force(sub(symmul(self.symmetric, S.w), cross(n, S.w)), scale(-2.0, cross(p, S.w)))

    def transposed_times(self, S):
        """(2B)ᵀ S, its angular part; the linear part is zero."""
        n, p = self.momentum
        return add(symmul(self.symmetric, S.w), add(cross(n, S.w), scale(2.0, cross(p, S.v))))

    def before(self, d):
        """The same about a point that is d before."""
        return Coriolis(plus(self.symmetric, parallel(self.momentum.f, d)), self.momentum.before(d))


@inline
def load_coriolis(scratch, at):
    return Coriolis(load6(scratch, at + SYMMETRIC), load_force(scratch, at + MOMENTUM))


@inline
def coriolis(V, body):
    """2B of a body that moves with V; of its K, the symmetric part ω×Ī − Īω× − v×h× − h×v×."""
    w, v, h, I = V.w, V.v, body.h, body.I
    x, y, z = cross(w, (I[0], I[3], I[4])), cross(w, (I[3], I[1], I[5])), cross(w, (I[4], I[5], I[2]))
    hv = dot(h, v)
    symmetric = (
        2.0 * (x[0] - h[0] * v[0] + hv),
        2.0 * (y[1] - h[1] * v[1] + hv),
        2.0 * (z[2] - h[2] * v[2] + hv),
        x[1] + y[0] - h[0] * v[1] - h[1] * v[0],
        x[2] + z[0] - h[0] * v[2] - h[2] * v[0],
        y[2] + z[1] - h[1] * v[2] - h[2] * v[1],
    )
    return Coriolis(symmetric, body.times(V))


@inline
def begin(m, scratch):
    """The world: at rest, but for its acceleration."""
    store_world(scratch)
    rest(scratch, VELOCITY)
    falling(m, scratch, ACCELERATION)


@inline
def record(plan, i):
    """Where the sums of subtree i are."""
    return (plan[i, HOME] + 1) * N


@inline
def enter(m, plan, i, q, v, a, force, point, torque, r, scratch):
    """Frame and motion of link i, what it contributes to the sums, and the path slots of its joint."""
    n = len(m.parent)
    up, at, path = (m.parent[i] + 1) * N, (i + 1) * N, (n + 1) * N + i * PATH
    store_frame(m, i, up, at, gather(q, r, i), scratch)
    V, A = carried(m, i, up + VELOCITY, at, scratch), carried(m, i, up + ACCELERATION, at, scratch)
    S = subspace(m, i, scratch, at)
    dS = V.cross(S)
    put(scratch, path + SUBSPACE, S)
    put(scratch, path + RATE, dS)
    put(scratch, path + CURVE, A.cross(S) + V.cross(dS))
    store3(scratch, path + STEP, load3(scratch, at + SHIFT))
    dq, ddq = gather(v, r, i), gather(a, r, i)
    V, A = V + S * dq, A + (S * ddq + dS * dq)
    put(scratch, at + VELOCITY, V)
    put(scratch, at + ACCELERATION, A)
    own_sums(m, plan, i, at, V, A, scratch)
    if len(force) > 0:
        own_load(m, i, at, r, force, point, torque, scratch)


@inline
def outward(m, plan, q, v, a, force, point, torque, r, scratch):
    """All links entered, parents before children."""
    begin(m, scratch)
    for i in range(len(m.parent)):
        enter(m, plan, i, q, v, a, force, point, torque, r, scratch)


@inline
def outward_while_streaming(
    m, plan, q, v, a, force, point, torque, b, blocks, streamed, r, before, out, slots, where, kind, scratch
):
    """The same for block b, if it is one of the `blocks`; meanwhile the results of the block before, which are still in
    their slots, go to memory, if it is one of those to be streamed."""
    n = len(m.parent)
    pieces = 3 * (out[0].shape[1] // lane_count())
    share, done = pieces // n + 1, pieces
    if b < blocks:
        begin(m, scratch)
    if 0 < b <= streamed:
        done = 0
        unload_ends(out, before, scratch, slots, where)
    for i in range(n):
        if b < blocks:
            enter(m, plan, i, q, v, a, force, point, torque, r, scratch)
        until = min(done + share, pieces)
        stream_some(out, before, scratch, slots, where, kind, done, until)
        done = until


@inline
def own_sums(m, plan, i, at, V, A, scratch):
    """Link i's own part of all sums but L."""
    if m.massive[i]:
        own = body(m, i, scratch, at)
        store_inertia(scratch, at + BODY, own)
        B = coriolis(V, own)
        store_sym(scratch, at + SYMMETRIC, B.symmetric)
        put(scratch, at + MOMENTUM, B.momentum)
        put(scratch, at + FORCE, inertia_force(m, i, load9(scratch, at + FRAME), V, A))
    elif plan[i, HOME] == i:
        for k in range(BODY, TURN):
            store(scratch, at + k, 0.0)


@inline
def own_load(m, i, at, r, force, point, torque, scratch):
    """Link i's load: out of the force sum, and its own part of L."""
    f, h = gather3(force, r, 3 * i), gather3(torque, r, 3 * i)
    x = link_point(m, i, scratch, N, gather3(point, r, 3 * i))
    put(scratch, at + FORCE, load_force(scratch, at + FORCE) - Force(add(cross(x, f), h), f))
    xf = dot(x, f)
    turn = (
        xf - f[0] * x[0], h[2] - f[0] * x[1], -h[1] - f[0] * x[2],
        -h[2] - f[1] * x[0], xf - f[1] * x[1], h[0] - f[1] * x[2],
        h[1] - f[2] * x[0], -h[0] - f[2] * x[1], xf - f[2] * x[2],
    )  # fmt: skip
    store9(scratch, at + TURN, turn)
    store3(scratch, at + PULL, f)


@inline
def factors(m, i, at, path, loaded, scratch):
    """t, b, u, w, l of joint i, once the sums of its subtree are complete."""
    S, dS, ddS = (
        load_motion(scratch, path + SUBSPACE), load_motion(scratch, path + RATE), load_motion(scratch, path + CURVE),
    )  # fmt: skip
    I, B, F = load_inertia(scratch, at + BODY), load_coriolis(scratch, at), load_force(scratch, at + FORCE)
    t = I.times(S)
    b = B.transposed_times(S)
    u = B.times(dS) + I.times(ddS) + S.cross(F)
    w = B.times(S) + I.times(dS) * 2.0
    l = zero3()
    if loaded:
        turn, pull = load9(scratch, at + TURN), load3(scratch, at + PULL)
        l = add(tmul(turn, S.w), cross(pull, S.v))
        u = u + Force(mul(turn, S.w), cross(S.w, pull))
    return t, b, u, w, l


@inline
def hand_on(m, plan, i, loaded, scratch):
    """The sums of subtree i to its parent's; where both are one record, that has only to be shifted."""
    if m.parent[i] < 0:
        return
    sums, up, at = record(plan, i), record(plan, m.parent[i]), (i + 1) * N
    if up != sums or m.apart[i]:
        own, B, F = load_inertia(scratch, sums + BODY), load_coriolis(scratch, sums), load_force(scratch, sums + FORCE)
        if m.apart[i]:
            d = load3(scratch, at + SHIFT)
            own, B, F = own.before(d), B.before(d), F.before(d)
        if up == sums:  # in place: masses, momentum and force stay
            store3(scratch, up + BODY + 1, own.h)
            store_sym(scratch, up + BODY + 4, own.I)
            store_sym(scratch, up + SYMMETRIC, B.symmetric)
            store3(scratch, up + MOMENTUM, B.momentum.n)
            store3(scratch, up + FORCE, F.n)
        else:
            store(scratch, up + BODY, load(scratch, up + BODY) + own.mass)
            add3(scratch, up + BODY + 1, own.h)
            add_sym(scratch, up + BODY + 4, own.I)
            add_sym(scratch, up + SYMMETRIC, B.symmetric)
            increase(scratch, up + MOMENTUM, B.momentum)
            increase(scratch, up + FORCE, F)
    if loaded:
        hand_on_load(m, i, up, sums, scratch)


@inline
def hand_on_load(m, i, up, at, scratch):
    """L of subtree i to its parent's; with loads each link has a record of its own."""
    turn, f = load9(scratch, at + TURN), load3(scratch, at + PULL)
    if m.apart[i]:
        d = load3(scratch, at + SHIFT)
        fd = dot(f, d)
        turn = (
            turn[0] + fd - f[0] * d[0], turn[1] - f[0] * d[1], turn[2] - f[0] * d[2],
            turn[3] - f[1] * d[0], turn[4] + fd - f[1] * d[1], turn[5] - f[1] * d[2],
            turn[6] - f[2] * d[0], turn[7] - f[2] * d[1], turn[8] + fd - f[2] * d[2],
        )  # fmt: skip
    add3(scratch, up + TURN, (turn[0], turn[1], turn[2]))
    add3(scratch, up + TURN + 3, (turn[3], turn[4], turn[5]))
    add3(scratch, up + TURN + 6, (turn[6], turn[7], turn[8]))
    add3(scratch, up + PULL, f)


@inline
def entry_slots(n, pairs):
    """Slots for the entries of one matrix."""
    return 2 * pairs - n + SPACE * n + 1


@inline
def entries(at, n, pairs, out, scratch):
    """Where the entries of each matrix of `out` begin, from slot `at` on, their zeros set."""
    size = entry_slots(n, pairs)
    for k in range(1, len(out) + 1):
        store(scratch, at + k * size - 1, 0.0)
    return tuple(at + k * size for k, _ in enumerate(out))


@inline
def inward(m, plan, q, v, a, r, loaded, place, first, tau, slots, scratch):
    """τ into its array; all entries of the three matrices into their slots."""
    n, (by_q, by_v, by_a) = len(m.parent), slots
    for i in range(n - 1, -1, -1):
        sums, path, pair = record(plan, i), (n + 1) * N + i * PATH, first[i]
        S = load_motion(scratch, path + SUBSPACE)
        passive = passive_force(m, i, gather(q, r, i), gather(v, r, i), gather(a, r, i))
        scatter(tau, r, i, S.dot(load_force(scratch, sums + FORCE)) + passive)
        t, b, u, w, l = factors(m, i, sums, path, loaded, scratch)

        # j = i: one entry of each matrix
        row = place[pair, 0]
        store(scratch, by_q + row, S.dot(u) + m.passive[i, 0])
        store(scratch, by_v + row, S.dot(w) + m.passive[i, 2])
        store(scratch, by_a + row, S.dot(t) + m.passive[i, 3])

        # j above i: the part of column i, then that of row i
        pair, k, j = pair + 1, i, m.parent[i]
        while j >= 0 and not plan[j, QUIET]:
            if m.apart[k]:
                d = load3(scratch, path + STEP)
                t, u, w = t.before(d), u.before(d), w.before(d)
            path = (n + 1) * N + j * PATH
            z, dS = load3(scratch, path + SUBSPACE), load_motion(scratch, path + RATE)
            row, column = place[pair, 0], place[pair, 1]
            zu, zw, entry = dot(z, u.n), dot(z, w.n), dot(z, t.n)
            if m.rate[j, 1] != 0.0:
                s = load3(scratch, path + SUBSPACE + 3)
                zu, zw, entry = zu + dot(s, u.f), zw + dot(s, w.f), entry + dot(s, t.f)
            store(scratch, by_q + column, zu)
            store(scratch, by_v + column, zw)
            store(scratch, by_a + column, entry)
            store(scratch, by_a + row, entry)
            entry = dot(b, dS.w) + load_motion(scratch, path + CURVE).dot(t)
            if loaded:
                entry = entry + dot(l, z)
            store(scratch, by_q + row, entry)
            store(scratch, by_v + row, dot(b, z) + 2.0 * dS.dot(t))
            pair += 1
            k, j = j, m.parent[j]

        # j quiet: z = 0, and ψ̇ = ψ̈ = 0, so that of row i nothing is left but the mass matrix
        while j >= 0:
            s = load3(scratch, (n + 1) * N + j * PATH + SUBSPACE + 3)
            row, column, entry = place[pair, 0], place[pair, 1], dot(s, t.f)
            store(scratch, by_q + column, dot(s, u.f))
            store(scratch, by_v + column, dot(s, w.f))
            store(scratch, by_a + column, entry)
            store(scratch, by_q + row, 0.0)
            store(scratch, by_v + row, 0.0)
            store(scratch, by_a + row, entry)
            pair += 1
            j = m.parent[j]
        hand_on(m, plan, i, loaded, scratch)


@kernel
def rnea_derivatives(
    m, q, v, a, force, point, torque, plan, pairs, past, tau, dtau_dq, dtau_dv, dtau_da, scratch, start, stop
):
    """τ, (states, n), and its derivatives, (states, n·n) or (states, non-zeros).

    pairs : place, (pairs, 2), first, (n,), and where, (columns,), of the glossary.
    plan  : (n, 2), HOME and QUIET of the glossary.
    past  : whether to stream the results past the caches; kind, as in lanes/stream.py.
    """
    ok = finite((q, v, a, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    place, first, where = pairs
    streaming, kind = past
    out, where, kind = (dtau_dq, dtau_dv, dtau_da), (where, where, where), (kind, kind, kind)
    n = len(m.parent)
    slots = entries((n + 1) * N + n * PATH, n, len(place), out, scratch)
    step = step_of(dtau_dq.shape[1])
    blocks, streamed = count_blocks(start, stop, step, streaming)
    before = Rows(start, step)
    for b in range(max(blocks, streamed + 1)):
        r = block_rows(b, start, streamed, step)
        outward_while_streaming(
            m, plan, q, v, a, force, point, torque, b, blocks, streamed, r, before, out, slots, where, kind, scratch
        )
        if b < blocks:
            inward(m, plan, q, v, a, r, len(force) > 0, place, first, tau, slots, scratch)
            if b >= streamed:
                unload_all(out, r, scratch, slots, where)
        before = r
    if streamed:
        fence(tau)
    return ok
