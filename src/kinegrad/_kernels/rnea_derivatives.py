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

Every link has a reference point of its own (``kinematics.py``).  On the way from i to the root the forces t, u, w are
shifted from joint to joint, n + d×f; b and l meet angular parts only, and stay.  Of the sums, I is shifted as in
``crba.py``, forces as all forces, and

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
    where            (columns,): how many numbers, W to a slot, that of each column of the results is after the first
    quiet            whether all joints from the root to j slide and none turns: then z = 0, and ψ̇ = ψ̈ = 0
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.crba import body_inertia, inertia_before, parallel
from kinegrad._kernels.kinematics import (
    FRAME,
    SHIFT,
    carried,
    link_point,
    store_frame,
    store_world,
    subspace,
)  # fmt: skip
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import Rows, gather, load, scatter, store
from kinegrad._kernels.lanes.stream import (
    block_rows,
    count_blocks,
    fence,
    step_of,
    stream_some,
    unload_ends,
    unload_three,
)
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea import gravity_at_base, inertia_force, passive_force
from kinegrad._kernels.spatial import (
    add,
    add3,
    cross,
    dot,
    gather3,
    load3,
    load6,
    load9,
    mul,
    scale,
    store3,
    store9,
    sub,
    symmul,
    tmul,
    twist,
    zero3,
)  # fmt: skip

VELOCITY, ACCELERATION = 12, 18  # after the frame of kinematics.py
MASS, FIRST, SECOND, SYMMETRIC, MOMENTUM, FORCE, TURN, PULL = 24, 25, 28, 34, 40, 46, 52, 61
N = 64  # slots per joint; joint i's begin at (i+1)·N, the world's at 0
HOME, QUIET = 0, 1  # columns of a plan
SPACE = 2  # slots after each row of entries
PATH = 21  # path slots per joint, after all of those


def slots(n: int, pairs: int) -> int:
    """Scratch slots for n joints."""
    return (n + 1) * N + n * PATH + 3 * entry_slots(n, pairs)


@inline
def coriolis(scratch, at, z):
    """2B times a motion of angular part z."""
    n, p = load3(scratch, at + MOMENTUM), load3(scratch, at + MOMENTUM + 3)
    return sub(symmul(load6(scratch, at + SYMMETRIC), z), cross(n, z)), scale(-2.0, cross(p, z))


@inline
def inertia(scratch, at, z, s):
    """I times the motion (z, s)."""
    h = load3(scratch, at + FIRST)
    return (
        add(symmul(load6(scratch, at + SECOND), z), cross(h, s)),
        sub(scale(load(scratch, at + MASS), s), cross(h, z)),
    )


@inline
def coriolis_symmetric(w, v, h, diagonal, rest):
    """ω×Ī − Īω× − v×h× − h×v×, as diagonal and off-diagonal (xy, xz, yz)."""
    x = cross(w, (diagonal[0], rest[0], rest[1]))
    y = cross(w, (rest[0], diagonal[1], rest[2]))
    z = cross(w, (rest[1], rest[2], diagonal[2]))
    hv = dot(h, v)
    return (
        2.0 * (x[0] - h[0] * v[0] + hv),
        2.0 * (y[1] - h[1] * v[1] + hv),
        2.0 * (z[2] - h[2] * v[2] + hv),
    ), (
        x[1] + y[0] - h[0] * v[1] - h[1] * v[0],
        x[2] + z[0] - h[0] * v[2] - h[2] * v[0],
        y[2] + z[1] - h[1] * v[2] - h[2] * v[1],
    )


@inline
def begin(m, scratch):
    """The world: at rest, but for its acceleration."""
    store_world(scratch)
    store3(scratch, VELOCITY, zero3())
    store3(scratch, VELOCITY + 3, zero3())
    gravity_at_base(m, scratch, ACCELERATION)


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
    w, x = carried(m, i, up + VELOCITY, at, scratch)
    dw, dx = carried(m, i, up + ACCELERATION, at, scratch)
    z, s = subspace(m, i, scratch, at)
    dz, ds = twist(w, x, z, s)
    az, as_ = twist(dw, dx, z, s)
    bz, bs = twist(w, x, dz, ds)
    store3(scratch, path, z)
    store3(scratch, path + 3, s)
    store3(scratch, path + 6, dz)
    store3(scratch, path + 9, ds)
    store3(scratch, path + 12, add(az, bz))
    store3(scratch, path + 15, add(as_, bs))
    store3(scratch, path + 18, load3(scratch, at + SHIFT))
    dq, ddq = gather(v, r, i), gather(a, r, i)
    w, x = add(w, scale(dq, z)), add(x, scale(dq, s))
    dw, dx = add(dw, add(scale(ddq, z), scale(dq, dz))), add(dx, add(scale(ddq, s), scale(dq, ds)))
    store3(scratch, at + VELOCITY, w)
    store3(scratch, at + VELOCITY + 3, x)
    store3(scratch, at + ACCELERATION, dw)
    store3(scratch, at + ACCELERATION + 3, dx)
    own_sums(m, plan, i, at, w, x, dw, dx, scratch)
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
    pieces = 3 * (out[0].shape[1] // WIDTH)
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
def own_sums(m, plan, i, at, w, v, dw, dv, scratch):
    """Link i's own part of all sums but L."""
    if m.massive[i]:
        h, diagonal, rest = body_inertia(m, i, scratch, at)
        store(scratch, at + MASS, m.inertia[i, 0])
        store3(scratch, at + FIRST, h)
        store3(scratch, at + SECOND, diagonal)
        store3(scratch, at + SECOND + 3, rest)
        on, off = coriolis_symmetric(w, v, h, diagonal, rest)
        store3(scratch, at + SYMMETRIC, on)
        store3(scratch, at + SYMMETRIC + 3, off)
        n, p = inertia(scratch, at, w, v)
        store3(scratch, at + MOMENTUM, n)
        store3(scratch, at + MOMENTUM + 3, p)
        moment, f = inertia_force(m, i, load9(scratch, at + FRAME), w, v, dw, dv)
        store3(scratch, at + FORCE, moment)
        store3(scratch, at + FORCE + 3, f)
    elif plan[i, HOME] == i:
        for k in range(MASS, TURN):
            store(scratch, at + k, 0.0)


@inline
def own_load(m, i, at, r, force, point, torque, scratch):
    """Link i's load: out of the force sum, and its own part of L."""
    f, h = gather3(force, r, 3 * i), gather3(torque, r, 3 * i)
    x = link_point(m, i, scratch, N, gather3(point, r, 3 * i))
    store3(scratch, at + FORCE, sub(load3(scratch, at + FORCE), add(cross(x, f), h)))
    store3(scratch, at + FORCE + 3, sub(load3(scratch, at + FORCE + 3), f))
    xf = dot(x, f)
    turn = (
        xf - f[0] * x[0], h[2] - f[0] * x[1], -h[1] - f[0] * x[2],
        -h[2] - f[1] * x[0], xf - f[1] * x[1], h[0] - f[1] * x[2],
        h[1] - f[2] * x[0], -h[0] - f[2] * x[1], xf - f[2] * x[2],
    )  # fmt: skip
    store9(scratch, at + TURN, turn)
    store3(scratch, at + PULL, f)


@inline
def joint_force(m, i, at, z, s, q, dq, ddq, scratch):
    """τ_i = S_i·F plus what spring, damper and rotor take."""
    t = dot(z, load3(scratch, at + FORCE)) + dot(s, load3(scratch, at + FORCE + 3))
    return t + passive_force(m, i, q, dq, ddq)


@inline
def factors(m, i, at, path, loaded, scratch):
    """t, b, u, w, l of joint i (6-vectors as two), once the sums of its subtree are complete."""
    z, s = load3(scratch, path), load3(scratch, path + 3)
    dz, ds = load3(scratch, path + 6), load3(scratch, path + 9)
    moment, f = load3(scratch, at + FORCE), load3(scratch, at + FORCE + 3)
    n, p = load3(scratch, at + MOMENTUM), load3(scratch, at + MOMENTUM + 3)
    t, t_ = inertia(scratch, at, z, s)
    b = add(symmul(load6(scratch, at + SYMMETRIC), z), add(cross(n, z), scale(2.0, cross(p, s))))
    u, u_ = coriolis(scratch, at, dz)
    c, c_ = inertia(scratch, at, load3(scratch, path + 12), load3(scratch, path + 15))
    u = add(add(u, c), add(cross(z, moment), cross(s, f)))
    u_ = add(add(u_, c_), cross(z, f))
    w, w_ = coriolis(scratch, at, z)
    c, c_ = inertia(scratch, at, dz, ds)
    w, w_ = add(w, scale(2.0, c)), add(w_, scale(2.0, c_))
    l = zero3()  # noqa: E741 (the symbol of the derivation)
    if loaded:
        turn, pull = load9(scratch, at + TURN), load3(scratch, at + PULL)
        l = add(tmul(turn, z), cross(pull, s))  # noqa: E741
        u, u_ = add(u, mul(turn, z)), sub(u_, cross(pull, z))
    return t, t_, b, u, u_, w, w_, l


@inline
def hand_on(m, plan, i, loaded, scratch):
    """The sums of subtree i to its parent's; where both are one record, that has only to be shifted."""
    if m.parent[i] < 0:
        return
    sums, up, at = record(plan, i), record(plan, m.parent[i]), (i + 1) * N
    if up != sums or m.apart[i]:
        M, h = load(scratch, sums + MASS), load3(scratch, sums + FIRST)
        second, second_off = load3(scratch, sums + SECOND), load3(scratch, sums + SECOND + 3)
        on, off = load3(scratch, sums + SYMMETRIC), load3(scratch, sums + SYMMETRIC + 3)
        n, p = load3(scratch, sums + MOMENTUM), load3(scratch, sums + MOMENTUM + 3)
        moment, f = load3(scratch, sums + FORCE), load3(scratch, sums + FORCE + 3)
        if m.apart[i]:
            d = load3(scratch, at + SHIFT)
            h, second, second_off = inertia_before(M, h, second, second_off, d)
            more, more_off = parallel(p, d)
            on, off = add(on, more), add(off, more_off)
            n, moment = add(n, cross(d, p)), add(moment, cross(d, f))
        if up == sums:
            store3(scratch, up + FIRST, h)
            store3(scratch, up + SECOND, second)
            store3(scratch, up + SECOND + 3, second_off)
            store3(scratch, up + SYMMETRIC, on)
            store3(scratch, up + SYMMETRIC + 3, off)
            store3(scratch, up + MOMENTUM, n)
            store3(scratch, up + FORCE, moment)
        else:
            store(scratch, up + MASS, load(scratch, up + MASS) + M)
            add3(scratch, up + FIRST, h)
            add3(scratch, up + SECOND, second)
            add3(scratch, up + SECOND + 3, second_off)
            add3(scratch, up + SYMMETRIC, on)
            add3(scratch, up + SYMMETRIC + 3, off)
            add3(scratch, up + MOMENTUM, n)
            add3(scratch, up + MOMENTUM + 3, p)
            add3(scratch, up + FORCE, moment)
            add3(scratch, up + FORCE + 3, f)
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
def entries(at, n, pairs, scratch):
    """Where the entries of the three matrices begin, from slot `at` on, their zeros set; and the slot after them."""
    size = entry_slots(n, pairs)
    for k in range(1, 4):
        store(scratch, at + k * size - 1, 0.0)
    return (at, at + size, at + 2 * size), at + 3 * size


@inline
def inward(m, plan, q, v, a, r, loaded, place, first, tau, slots, scratch):
    """τ into its array; all entries of the three matrices into their slots."""
    n, (by_q, by_v, by_a) = len(m.parent), slots
    for i in range(n - 1, -1, -1):
        sums, path, pair = record(plan, i), (n + 1) * N + i * PATH, first[i]
        z, s = load3(scratch, path), load3(scratch, path + 3)
        scatter(tau, r, i, joint_force(m, i, sums, z, s, gather(q, r, i), gather(v, r, i), gather(a, r, i), scratch))
        t, t_, b, u, u_, w, w_, l = factors(m, i, sums, path, loaded, scratch)  # noqa: E741

        # j = i: one entry of each matrix
        row = place[pair, 0]
        store(scratch, by_q + row, dot(z, u) + dot(s, u_) + m.passive[i, 0])
        store(scratch, by_v + row, dot(z, w) + dot(s, w_) + m.passive[i, 2])
        store(scratch, by_a + row, dot(z, t) + dot(s, t_) + m.passive[i, 3])

        # j above i: the part of column i, then that of row i
        pair, k, j = pair + 1, i, m.parent[i]
        while j >= 0 and not plan[j, QUIET]:
            if m.apart[k]:
                d = load3(scratch, path + 18)
                t, u, w = add(t, cross(d, t_)), add(u, cross(d, u_)), add(w, cross(d, w_))
            path = (n + 1) * N + j * PATH
            z, dz, ds = load3(scratch, path), load3(scratch, path + 6), load3(scratch, path + 9)
            row, column = place[pair, 0], place[pair, 1]
            zu, zw, entry = dot(z, u), dot(z, w), dot(z, t)
            if m.rate[j, 1] != 0.0:
                s = load3(scratch, path + 3)
                zu, zw, entry = zu + dot(s, u_), zw + dot(s, w_), entry + dot(s, t_)
            store(scratch, by_q + column, zu)
            store(scratch, by_v + column, zw)
            store(scratch, by_a + column, entry)
            store(scratch, by_a + row, entry)
            entry = dot(b, dz) + dot(t, load3(scratch, path + 12)) + dot(t_, load3(scratch, path + 15))
            if loaded:
                entry = entry + dot(l, z)
            store(scratch, by_q + row, entry)
            store(scratch, by_v + row, dot(b, z) + 2.0 * (dot(t, dz) + dot(t_, ds)))
            pair += 1
            k, j = j, m.parent[j]

        # j quiet: z = 0, and ψ̇ = ψ̈ = 0, so that of row i nothing is left but the mass matrix
        while j >= 0:
            s = load3(scratch, (n + 1) * N + j * PATH + 3)
            row, column, entry = place[pair, 0], place[pair, 1], dot(s, t_)
            store(scratch, by_q + column, dot(s, u_))
            store(scratch, by_v + column, dot(s, w_))
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
    out = (dtau_dq, dtau_dv, dtau_da)
    n = len(m.parent)
    slots, _ = entries((n + 1) * N + n * PATH, n, len(place), scratch)
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
                unload_three(out, r, scratch, slots, where)
        before = r
    if streamed:
        fence(tau)
    return ok
