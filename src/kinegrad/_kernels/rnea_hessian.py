"""∂²(yᵀτ)/∂(q, q̇, q̈)², exact, contracted with weights y: no tensor, and only joints on one path are touched.

The weights are virtual speeds.  With the virtual velocity Y_k = Σ_{j⪯k} S_j y_j of each link, yᵀτ is the power that the
links' forces f = I A + V×*I V would have, φ = Σ_k Y_k·f_k (and springs, dampers, rotors, which are linear).  A link has
2B(X) of ``rnea_derivatives.py`` for each motion X; two identities carry all that follows:

    2B(V)ᵀ Y = −2B(Y)ᵀ V            2B(X) x − 2B(X)ᵀ x = 2 x×*(I X)                                        (1)

Turning joint j moves its subtree as one.  Seen from the subtree its axes and inertias stay, and what comes from above
turns back: with V, A, Y of the parent link, ψ̇ and ψ̈ as in ``rnea_derivatives.py`` and  χ_j = Y × S_j,

    by q_j   δY = χ_j     δV = ψ̇_j     δA = ψ̈_j + ψ̇_j×V          by q̈_j   δA = S_j
    by q̇_j               δV = S_j     δA = 2ψ̇_j + S_j×V                                                    (2)

so that φ changes by sums over subtree j: F = Σ f, H = Σ I Y, D = Σ 2B(V)ᵀY, of which the linear part is zero,

    ∂φ/∂q_j = χ_j·F + ψ̈_j·H + ψ̇_j·D       ∂φ/∂q̇_j = 2ψ̇_j·H + S_j·D       ∂φ/∂q̈_j = S_j·H                 (3)

Differentiate (3) for joint i by a joint j on its path to the root (j = i included): again by (2), δχ_i = χ_j×S_i,
δψ̇_i = ψ̇_j×S_i and so on, δF = 2B δV + I δA, δH = I δY and δD = 2Bᵀ δY − 2B_Yᵀ δV by (1), with 2B and 2B_Y the sums of
2B(V) and 2B(Y) over subtree i.  What depends on i alone are its *factors*: t = I S, u, w of ``rnea_derivatives.py`` and

    h = I χ + S×*H        y = −2B_Yᵀ S        r = 2Bᵀ χ − 2B_Yᵀ ψ̇ + z×D          (of y and r the linear part is zero)

    ∂²φ/∂q_j∂q_i = χ_j·u + ψ̈_j·h + ψ̇_j·r
    ∂²φ/∂q_j∂q̇_i = χ_j·w + ψ̇_j·y             ∂²φ/∂q_i∂q̇_j = 2ψ̇_j·h + S_j·r           ∂²φ/∂q̇_i∂q̇_j = S_j·y
    ∂²φ/∂q_j∂q̈_i = χ_j·t                      ∂²φ/∂q_i∂q̈_j = S_j·h                                           (4)

and everything else is zero.  For j = i both forms agree; that with χ is kept, which is exactly zero at the root.

Loads (a world force f at a point x of a link, a world torque e) do not turn with the link: L of ``rnea_derivatives.py``
adds L z to u.  With x̄ the virtual velocity of the point and ω that of the link, Λ = Lᵀ Y = f×x̄ + e×ω adds z_j·Λ to
∂φ/∂q_j, and its change Lᵀ δY + Q z_j adds z_j·o to the first of (4), where, summed over subtree i,

    Q = (f·x̄ + e·ω) 1 − f x̄ᵀ − e ωᵀ  (not symmetric)        o = Lᵀ χ + Qᵀ z

The derivation at length: docs/theory/hessian.md.

Glossary (world axes, about the reference point of link i; besides that of ``rnea_derivatives.py``)
    Y                 virtual velocity of link i                                           6 slots
    symmetric H       of 2B_Y                                                              12, summed over subtree i
    D                                                                                      3, summed
    Q                                                                                      9, summed, with loads only
    χ                 path slots of a joint, besides S ψ̇ ψ̈ d                                6, closely packed
    once              as where of ``rnea_derivatives.py``, for symmetric matrices, whose entries (i, j) and (j, i) are
                      kept once, in the place of that with the deeper joint first
    first             slots of the entries of ∂τ/∂(q, q̇, q̈), or None if they are not wanted
    second            slots of those of ∂²φ/∂q∂q, ∂q∂q̇, ∂q∂q̈, ∂q̇∂q̇
"""

from kinegrad._kernels.bodies import add_sym, link_point, load_inertia, passive_force, store_sym
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import SHIFT, carried, rest
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter, store
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
from kinegrad._kernels.rnea_derivatives import (
    BODY,
    CURVE,
    FORCE,
    HOME,
    PATH,
    PULL,
    QUIET,
    RATE,
    STEP,
    SUBSPACE,
    TURN,
    Coriolis,
    N,
    begin,
    coriolis,
    enter,
    entries,
    entry_slots,
    factors,
    hand_on,
    load_coriolis,
    record,
)
from kinegrad._kernels.spatial import (
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
    put,
    scale,
    store3,
    store9,
    sub,
    tmul,
    zero3,
)  # fmt: skip

VIRTUAL, SYMMETRIC, PUSH, DRAG, LEAN, SUM = 0, 6, 12, 18, 21, 30  # Y | of 2B_Y | H | D | Q | slots for each joint
CHI = 6  # path slots for each joint, after all of those


@inline
def sums_at(n, i):
    """Where the record of joint i is; that of the world is number −1."""
    return (n + 1) * N + n * PATH + (i + 1) * SUM


@inline
def chi_at(n, i):
    return (n + 1) * N + n * PATH + (n + 1) * SUM + i * CHI


@inline
def entries_at(n):
    return chi_at(n, n)


def slots(n: int, pairs: int, matrices: int) -> int:
    """Scratch slots for n joints."""
    return entries_at(n) + matrices * entry_slots(n, pairs)


# --- outward ------------------------------------------------------------------------------------------------------


@inline
def enter_virtual(m, plan, i, y, force, point, torque, r, scratch):
    """Virtual motion of link i, what it contributes to the sums, and χ of its joint."""
    n = len(m.parent)
    own, at = sums_at(n, i), (i + 1) * N
    Y = carried(m, i, sums_at(n, m.parent[i]) + VIRTUAL, at, scratch)
    S = load_motion(scratch, (n + 1) * N + i * PATH + SUBSPACE)
    put(scratch, chi_at(n, i), Y.cross(S))
    Y = Y + S * gather(y, r, i)
    put(scratch, own + VIRTUAL, Y)
    if m.massive[i]:
        B = coriolis(Y, load_inertia(scratch, at + BODY))
        store_sym(scratch, own + SYMMETRIC, B.symmetric)
        put(scratch, own + PUSH, B.momentum)
        store3(scratch, own + DRAG, load_coriolis(scratch, at).transposed_times(Y))
    elif plan[i, HOME] == i:
        for k in range(SYMMETRIC, LEAN):
            store(scratch, own + k, 0.0)
    if len(force) > 0:
        x = link_point(m, i, scratch, N, gather3(point, r, 3 * i))
        store9(scratch, own + LEAN, lean(gather3(force, r, 3 * i), Y.at(x).v, gather3(torque, r, 3 * i), Y.w))


@inline
def lean(f, x, e, w):
    """Q = (f·x + e·w) 1 − f xᵀ − e wᵀ"""
    power = dot(f, x) + dot(e, w)
    return (
        power - f[0] * x[0] - e[0] * w[0], -f[0] * x[1] - e[0] * w[1], -f[0] * x[2] - e[0] * w[2],
        -f[1] * x[0] - e[1] * w[0], power - f[1] * x[1] - e[1] * w[1], -f[1] * x[2] - e[1] * w[2],
        -f[2] * x[0] - e[2] * w[0], -f[2] * x[1] - e[2] * w[1], power - f[2] * x[2] - e[2] * w[2],
    )  # fmt: skip


@inline
def outward_while_streaming(
    m, plan, q, v, a, y, force, point, torque, b, blocks, streamed, r, before, out, slots, where, kind, scratch
):
    """All links entered, parents before children, and the results of the block before written to memory meanwhile, as
    in ``rnea_derivatives.py``."""
    n = len(m.parent)
    pieces = len(out) * (out[0].shape[1] // lane_count())
    share, done = pieces // n + 1, pieces
    if b < blocks:
        begin(m, scratch)
        rest(scratch, sums_at(n, -1) + VIRTUAL)
    if 0 < b <= streamed:
        done = 0
        unload_ends(out, before, scratch, slots, where)
    for i in range(n):
        if b < blocks:
            enter(m, plan, i, q, v, a, force, point, torque, r, scratch)
            enter_virtual(m, plan, i, y, force, point, torque, r, scratch)
        until = min(done + share, pieces)
        stream_some(out, before, scratch, slots, where, kind, done, until)
        done = until


# --- inward -------------------------------------------------------------------------------------------------------


@inline
def second_factors(m, i, sums, virtual, path, chi, loaded, scratch):
    """h, y, r, o of joint i, once the sums of its subtree, at `sums` and `virtual`, are complete."""
    S, dS, X = load_motion(scratch, path + SUBSPACE), load_motion(scratch, path + RATE), load_motion(scratch, chi)
    B_Y = Coriolis(load6(scratch, virtual + SYMMETRIC), load_force(scratch, virtual + PUSH))
    h = load_inertia(scratch, sums + BODY).times(X) + S.cross(B_Y.momentum)
    y = scale(-1.0, B_Y.transposed_times(S))
    r = sub(load_coriolis(scratch, sums).transposed_times(X), B_Y.transposed_times(dS))
    r = add(r, cross(S.w, load3(scratch, virtual + DRAG)))
    o = zero3()
    if loaded:
        o = add(tmul(load9(scratch, sums + TURN), X.w), cross(load3(scratch, sums + PULL), X.v))
        o = add(o, tmul(load9(scratch, virtual + LEAN), S.w))
    return h, y, r, o


@inline
def hand_on_virtual(m, plan, i, loaded, scratch):
    """The sums of subtree i to its parent's; where both are one record, that has only to be shifted."""
    if m.parent[i] < 0:
        return
    n = len(m.parent)
    own, up = sums_at(n, plan[i, HOME]), sums_at(n, plan[m.parent[i], HOME])
    if up != own or m.apart[i]:
        B = Coriolis(load6(scratch, own + SYMMETRIC), load_force(scratch, own + PUSH))
        if m.apart[i]:
            B = B.before(load3(scratch, (i + 1) * N + SHIFT))
        if up == own:
            store_sym(scratch, up + SYMMETRIC, B.symmetric)
            store3(scratch, up + PUSH, B.momentum.n)
        else:
            add_sym(scratch, up + SYMMETRIC, B.symmetric)
            increase(scratch, up + PUSH, B.momentum)
            add3(scratch, up + DRAG, load3(scratch, own + DRAG))
    if loaded:
        for k in range(LEAN, SUM, 3):
            add3(scratch, up + k, load3(scratch, own + k))


@inline
def along_path(m, plan, i, place, pair, factors, second_factors, loaded, first, second, scratch):
    """All entries of joint i with a joint on its path to the root, itself included: in one pass, so that what is read
    of each joint of the path is read once."""
    (t, b, u, w, l), (h, y, r, o) = factors, second_factors
    n, (qq, qv, qa, vv) = len(m.parent), second
    k, j, path = -1, i, (n + 1) * N + i * PATH
    while j >= 0 and not plan[j, QUIET]:
        if k >= 0 and m.apart[k]:
            d = load3(scratch, path + STEP)
            t, u, w, h = t.before(d), u.before(d), w.before(d), h.before(d)
        path = (n + 1) * N + j * PATH
        row, column = place[pair, 0], place[pair, 1]
        z = load3(scratch, path + SUBSPACE)
        zt, zu, zw, zh = dot(z, t.n), dot(z, u.n), dot(z, w.n), dot(z, h.n)
        if m.rate[j, 1] != 0.0:
            s = load3(scratch, path + SUBSPACE + 3)
            zt, zu, zw, zh = zt + dot(s, t.f), zu + dot(s, u.f), zw + dot(s, w.f), zh + dot(s, h.f)
        store(scratch, qa + row, zh)
        store(scratch, vv + row, dot(z, y))
        if first is not None:
            by_q, by_v, by_a = first
            store(scratch, by_q + column, zu)
            store(scratch, by_v + column, zw)
            store(scratch, by_a + row, zt)
        dS = load_motion(scratch, path + RATE)
        store(scratch, qv + row, dot(z, r) + 2.0 * dS.dot(h))
        if first is not None and j != i:
            store(scratch, by_v + row, dot(z, b) + 2.0 * dS.dot(t))
        X = load_motion(scratch, chi_at(n, j))
        store(scratch, qa + column, X.dot(t))
        store(scratch, qv + column, X.dot(w) + dot(dS.w, y))
        ddS = load_motion(scratch, path + CURVE)
        entry = X.dot(u) + dot(dS.w, r) + ddS.dot(h)
        if loaded:
            entry = entry + dot(z, o)
        store(scratch, qq + row, entry)
        if first is not None and j != i:
            entry = dot(dS.w, b) + ddS.dot(t)
            if loaded:
                entry = entry + dot(z, l)
            store(scratch, by_q + row, entry)
        pair += 1
        k, j = j, m.parent[j]
    along_quiet_path(m, i, j, place, pair, t, u, w, h, first, second, scratch)


@inline
def along_quiet_path(m, i, j, place, pair, t, u, w, h, first, second, scratch):
    """The same of the quiet joints from j on: z = 0, and ψ̇ = ψ̈ = χ = 0."""
    n, (qq, qv, qa, vv) = len(m.parent), second
    while j >= 0:
        s = load3(scratch, (n + 1) * N + j * PATH + SUBSPACE + 3)
        row, column = place[pair, 0], place[pair, 1]
        store(scratch, qq + row, 0.0)
        store(scratch, qv + row, 0.0)
        store(scratch, vv + row, 0.0)
        store(scratch, qa + row, dot(s, h.f))
        store(scratch, qv + column, 0.0)
        store(scratch, qa + column, 0.0)
        if first is not None:
            by_q, by_v, by_a = first
            store(scratch, by_a + row, dot(s, t.f))
            store(scratch, by_q + column, dot(s, u.f))
            store(scratch, by_v + column, dot(s, w.f))
            if j != i:
                store(scratch, by_q + row, 0.0)
                store(scratch, by_v + row, 0.0)
        pair += 1
        j = m.parent[j]


@inline
def inward(m, plan, q, v, a, r, loaded, place, start, tau, first, second, scratch):
    """All entries into their slots; τ into its array, if first derivatives are wanted."""
    n = len(m.parent)
    for i in range(n - 1, -1, -1):
        sums, path, pair = record(plan, i), (n + 1) * N + i * PATH, start[i]
        t, b, u, w, l = factors(m, i, sums, path, loaded, scratch)
        more = second_factors(m, i, sums, sums_at(n, plan[i, HOME]), path, chi_at(n, i), loaded, scratch)
        along_path(m, plan, i, place, pair, (t, b, u, w, l), more, loaded, first, second, scratch)
        if first is not None:
            S, row = load_motion(scratch, path + SUBSPACE), place[pair, 0]
            passive = passive_force(m, i, gather(q, r, i), gather(v, r, i), gather(a, r, i))
            scatter(tau, r, i, S.dot(load_force(scratch, sums + FORCE)) + passive)
            store(scratch, first[0] + row, S.dot(u) + m.passive[i, 0])
            store(scratch, first[1] + row, S.dot(w) + m.passive[i, 2])
            store(scratch, first[2] + row, S.dot(t) + m.passive[i, 3])
        hand_on(m, plan, i, loaded, scratch)
        hand_on_virtual(m, plan, i, loaded, scratch)


@inline
def blocks_of_states(m, q, v, a, y, force, point, torque, plan, pairs, past, tau, out, scratch, begin_at, stop):
    """The results of all states: of the matrices in `out` the last four are second derivatives, those before, if there
    are any, first ones."""
    place, start, where, once = pairs
    streaming, kind, kind_once = past
    where, kind = (once, where, where, once), (kind_once, kind, kind, kind_once)
    if len(out) > 4:
        where, kind = (where[1], where[1], once, *where), (kind[1], kind[1], kind_once, *kind)
    n = len(m.parent)
    slots = entries(entries_at(n), n, len(place), out, scratch)
    first = slots[:3] if len(out) > 4 else None
    step = step_of(out[0].shape[1])
    blocks, streamed = count_blocks(begin_at, stop, step, streaming)
    before = Rows(begin_at, step)
    for b in range(max(blocks, streamed + 1)):
        r = block_rows(b, begin_at, streamed, step)
        outward_while_streaming(
            m, plan, q, v, a, y, force, point, torque, b, blocks, streamed, r, before, out, slots, where, kind, scratch
        )
        if b < blocks:
            inward(m, plan, q, v, a, r, len(force) > 0, place, start, tau, first, slots[-4:], scratch)
            if b >= streamed:
                unload_all(out, r, scratch, slots, where)
        before = r
    if streamed:
        fence(out[0])


@kernel
def rnea_hessian(
    m, q, v, a, y, force, point, torque, plan, pairs, past,
    d2_dqdq, d2_dqdv, d2_dqda, d2_dvdv, scratch, start, stop,
):  # fmt: skip
    """The second derivatives of yᵀτ, (states, n·n) or (states, non-zeros) each.

    plan  : as in rnea_derivatives.
    pairs : place, first and where, as there; once, as where.
    past  : as there; kind of blocks by where, and by once.
    """
    ok = finite((q, v, a, y, force, point, torque), start, stop)
    if not ok:
        return ok
    out = (d2_dqdq, d2_dqdv, d2_dqda, d2_dvdv)
    blocks_of_states(unpack(m), q, v, a, y, force, point, torque, plan, pairs, past, None, out, scratch, start, stop)
    return ok


@kernel
def rnea_both_derivatives(
    m, q, v, a, y, force, point, torque, plan, pairs, past,
    tau, dtau_dq, dtau_dv, dtau_da, d2_dqdq, d2_dqdv, d2_dqda, d2_dvdv, scratch, start, stop,
):  # fmt: skip
    """The same after τ, (states, n), and its first derivatives."""
    ok = finite((q, v, a, y, force, point, torque), start, stop)
    if not ok:
        return ok
    out = (dtau_dq, dtau_dv, dtau_da, d2_dqdq, d2_dqdv, d2_dqda, d2_dvdv)
    blocks_of_states(unpack(m), q, v, a, y, force, point, torque, plan, pairs, past, tau, out, scratch, start, stop)
    return ok
