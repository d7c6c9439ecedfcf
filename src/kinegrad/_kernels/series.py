"""Hybrid dynamics by articulated bodies where one coordinate may move several joints in series; O(n).

Joints that one coordinate q moves in *series* are connected: each but the first of them hangs on another.  With
q̂ⱼ = fⱼ(q), their joints are accelerated by gⱼ q̈ + γⱼ, gⱼ = fⱼ′, γⱼ = fⱼ″ q̇².  What the links of a series take, while
the coordinate and everything outboard of them are cut free and the first link's parent has acceleration A_p, is as in
``hybrid.py`` for prescribed motion: inertia and bias of a link go to its parent whole, I_p += I and
p_p += p + I (c + S γ).  Along the series, outward from its first joint,

    s = s_p + g S                        motion of link j per unit of q̇
    e = e_p + c + S γ                    acceleration of link j where A_p and q̈ are zero

so that, summed over the joints of a series, with F = g I S,

    U = Σ F        D = Σ (2 s − g S)·F + g² armature        u = τ − Σ (g S·p + e·F + g (spring + damper + armature γ))

(I is what a link and the links of its series outboard have together, so that D is Σ s·I s over single links, each with
what else hangs on it.)  Then, at the first joint alone, as in ``aba.py`` with e in the place of c,

    q̈ = (u − U·A_p) / D        I_p += I − U Uᵀ/D        p_p += p + I e + U u/D

A joint alone is a series of one; the chart hinges of a quaternion are such, with g = 1 and γ from the map.

Glossary: as in aba.py and hybrid.py, and
    role     (n,)  PRESCRIBED, ALONE (g = 1 and γ = 0), or the first joint of the series that the joint is of
    slope    g;  a  q̈ of a prescribed joint, γ of one in a series
    TWIST OFFSET SIZE RATE   s, e, the inertia that D is what remains of, q̈     6, 6, 1, 1 slots more for each joint
"""

from kinegrad._kernels.aba import (
    ACCELERATION,
    ACTING,
    BIAS,
    DRIFT,
    MASS,
    PIVOT,
    ROD,
    SPREAD,
    N,
    accelerate,
    articulated,
    free_lane,
    hand_on,
    outward_motion,
    pivot,
)
from kinegrad._kernels.bodies import passive_force
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.hybrid import follow, hand_on_whole
from kinegrad._kernels.joints import carried, falling, handed_on, subspace
from kinegrad._kernels.lanes.finite import finite, with_results
from kinegrad._kernels.lanes.lane import gather, load, scatter, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import Force, dot, increase, load_force, load_motion, put, zero3

PRESCRIBED, ALONE = -1, -2
TWIST, OFFSET, SIZE, RATE, MORE = 0, 6, 12, 13, 14  # s | e | inertia | q̈ | slots more per joint


def slots(n: int) -> int:
    """Slots of scratch for n joints."""
    return (n + 1) * N + n * MORE


@inline
def add_slot(scratch, k, x):
    store(scratch, k, load(scratch, k) + x)


@inline
def outward_series(m, i, first, g, drift, more, scratch):
    """s and e of joint i of a series, stored; its sums U, D and u begin at zero."""
    at, own, up = (i + 1) * N, more + i * MORE, more + m.parent[i] * MORE
    S = subspace(m, i, scratch, at)
    s, e = S * g, load_motion(scratch, at + DRIFT) + S * drift
    if first != i:
        s = s + carried(m, i, up + TWIST, at, scratch)
        e = e + carried(m, i, up + OFFSET, at, scratch)
    put(scratch, own + TWIST, s)
    put(scratch, own + OFFSET, e)
    put(scratch, at + ROD, Force(zero3(), zero3()))
    store(scratch, at + PIVOT, 0.0)
    store(scratch, at + ACTING, 0.0)
    store(scratch, own + SIZE, 0.0)


@inline
def sum_series(m, i, g, drift, q, dq, more, scratch):
    """What joint i adds to U, D and u, beside what those outboard have added there."""
    at, own = (i + 1) * N, more + i * MORE
    S, s, e = subspace(m, i, scratch, at) * g, load_motion(scratch, own + TWIST), load_motion(scratch, own + OFFSET)
    F = articulated(scratch, at, S)
    increase(scratch, at + ROD, F)
    add_slot(scratch, at + PIVOT, 2.0 * s.dot(F) - S.dot(F) + g * g * m.passive[i, 3])
    bias = S.dot(load_force(scratch, at + BIAS)) + e.dot(F) + g * passive_force(m, i, q, dq, drift)
    add_slot(scratch, at + ACTING, -bias)
    whole = load(scratch, at + SPREAD) * dot(S.w, S.w) + load(scratch, at + MASS) * dot(S.v, S.v)
    add_slot(scratch, own + SIZE, whole)


@inline
def hand_on_sums(m, i, drift, more, scratch):
    """U, D and u of a joint in a series to the joint that it hangs on; I and p whole."""
    up, at = (m.parent[i] + 1) * N, (i + 1) * N
    increase(scratch, up + ROD, handed_on(m, i, at, load_force(scratch, at + ROD), scratch))
    add_slot(scratch, up + PIVOT, load(scratch, at + PIVOT))
    add_slot(scratch, up + ACTING, load(scratch, at + ACTING))
    add_slot(scratch, more + m.parent[i] * MORE + SIZE, load(scratch, more + i * MORE + SIZE))
    hand_on_whole(m, i, drift, scratch)


@inline
def series_pivot(m, i, tau, more, scratch):
    """1/D and u of a series at its first joint, and e in the place of c, as ``aba.hand_on`` wants them; D and size."""
    at, own = (i + 1) * N, more + i * MORE
    e, D = load_motion(scratch, own + OFFSET), load(scratch, at + PIVOT)
    put(scratch, at + DRIFT, e)
    store(scratch, at + PIVOT, 1.0 / D)
    add_slot(scratch, at + ACTING, tau + e.dot(load_force(scratch, at + ROD)))
    return D, load(scratch, own + SIZE)


@inline
def accelerate_series(m, i, first, g, more, scratch):
    """q̈ of the series that joint i is of, and A of link i, stored."""
    up, at = (m.parent[i] + 1) * N, (i + 1) * N
    A = carried(m, i, up + ACCELERATION, at, scratch) + load_motion(scratch, at + DRIFT)
    if first == i:
        acting = load(scratch, at + ACTING) - A.dot(load_force(scratch, at + ROD))
        store(scratch, more + i * MORE + RATE, acting * load(scratch, at + PIVOT))
    else:
        store(scratch, more + i * MORE + RATE, load(scratch, more + m.parent[i] * MORE + RATE))
    ddq = load(scratch, more + i * MORE + RATE)
    put(scratch, at + ACCELERATION, A + subspace(m, i, scratch, at) * (g * ddq))
    return ddq


@inline
def inward(m, i, q, v, tau, a, slope, role, r, more, scratch):
    """Articulated inertia and bias of link i to its parent.  Returns a lane in which nothing resists it, or −1."""
    if role[i] == PRESCRIBED:
        hand_on_whole(m, i, gather(a, r, i), scratch)
        return -1
    if role[i] == ALONE:
        D, size = pivot(m, i, (i + 1) * N, gather(tau, r, i), gather(q, r, i), gather(v, r, i), scratch)
    else:
        sum_series(m, i, gather(slope, r, i), gather(a, r, i), gather(q, r, i), gather(v, r, i), more, scratch)
        if role[i] != i:
            hand_on_sums(m, i, gather(a, r, i), more, scratch)
            return -1
        D, size = series_pivot(m, i, gather(tau, r, i), more, scratch)
    w = free_lane(D, size)
    if w < 0 and m.parent[i] >= 0:
        hand_on(m, i, scratch)
    return w


@inline
def block(m, q, v, tau, a, slope, role, force, point, torque, ddq, t, r, scratch):
    """q̈ and τ of the states r … r+W−1.  Returns a joint that nothing resists and the lane of the state, or (−1, −1)."""
    n = len(m.parent)
    more = (n + 1) * N
    outward_motion(m, q, v, force, point, torque, r, scratch)
    for i in range(n):
        if role[i] >= 0:
            outward_series(m, i, role[i], gather(slope, r, i), gather(a, r, i), more, scratch)

    # inward: articulated inertia and bias
    for i in range(n - 1, -1, -1):
        w = inward(m, i, q, v, tau, a, slope, role, r, more, scratch)
        if w >= 0:
            return i, w

    # outward: accelerations, and what the prescribed ones take
    falling(m, scratch, ACCELERATION)
    for i in range(n):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        if role[i] == PRESCRIBED:
            given = gather(a, r, i)
            passive = passive_force(m, i, gather(q, r, i), gather(v, r, i), given)
            scatter(ddq, r, i, given)
            scatter(t, r, i, follow(m, i, up, at, scratch) + passive)
        elif role[i] == ALONE:
            scatter(ddq, r, i, accelerate(m, i, up, at, scratch))
            scatter(t, r, i, gather(tau, r, i))
        else:
            scatter(ddq, r, i, accelerate_series(m, i, role[i], gather(slope, r, i), more, scratch))
            scatter(t, r, i, gather(tau, r, i))
    return -1, -1


@kernel
def series(m, q, v, tau, a, slope, role, force, point, torque, ddq, t, status, scratch, start, stop):
    """q̈ and τ, (states, n) each, of the coordinate that moves each joint; q, v, a of joints, τ of coordinates, at the
    first joint of each series; loads and status as in aba."""
    ok = finite((q, v, tau, a, slope, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        joint, w = block(m, q, v, tau, a, slope, role, force, point, torque, ddq, t, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, len(ddq) - 1)
            return ok
    return with_results(ok, (ddq, t), start, stop)
