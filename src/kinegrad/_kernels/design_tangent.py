"""Slopes along many directions of the constants, the state and the loads, O(n) each: what ``rnea_tangent.py`` (torques)
and ``aba_tangent.py`` (accelerations) share.

What the duals of ``lanes/dual.py`` make of ``rnea.py`` and ``aba.py``, by hand: the values are computed once for all
directions, and of a product that has none of its own slope nothing is left to do.

Along a direction joint frame i is displaced relative to its parent by a small twist ξ_i, and every quantity of link i
is displaced with the link; what is left of its slope, marked °, is what an observer on the link sees:

    δx = Ξ_i × x + x°  (motions),    δf = Ξ_i ×* f + f°  (forces),    Ξ_i = Ξ_parent + ξ_i

With θ = R_p θ_X the turn of the placement X, seen in the world, and V, A of the parent carried to link i,

    ξ = (θ + z (ρ δq + q δρ),  z (η δq + q δη) + θ × ηq z)                    S° = (δρ z, δη z)
    V_p° → V_p° + V_p × ξ         V° = V_p° + S° q̇ + S δq̇
    A_p° → A_p° + A_p × ξ         A° = A_p° + c° + S δq̈
                                  c° = A_p × ξ + S° q̈ + (V_p° × S + V_p × S°) q̇ + (V_p × S) δq̇

A length is another matter.  Where the placement is shifted, by d = R_p δX_t, all that is outboard is shifted by d,
which turns with the parent: no angular velocity changes, and every point gains the acceleration

    g = α_p × d + ω_p × (ω_p × d)

as in another field of gravity.  So (0, d) is added to ξ and (0, g) to c° of that joint, and V° does not know of it: of
the links outboard nothing is left to do but to add up their forces, which articulated bodies have done.

The force f = I A + V ×* I V on a link has the slope I A° + p, of which p holds what comes from V° and from the inertia,

    c° = R δc    s° = v° + ω°×c + ω×c°    b° = α×c° + ω°×s + ω×s°             (s, b: motion of the centre of mass)
    f° = m b° + δm b        n° = ω°×Nω + ω×Nω° + N° α + ω×N°ω + c×f° + c°×f

less what loads do, whose forces do not turn with the link.  Forces of subtrees add up, F_p° = Σ (F° + ξ ×* F).  What is
left depends on whether accelerations are given or sought, and is in the two files named above.

Directions are layers, and lanes are states; or there is one layer, and lanes are directions of one state.

Glossary (world axes, about the reference point of link i; as in aba.py, then)
    C S B NW N F   c, s, b, Nω, N = R I Rᵀ, force on subtree i                3, 3, 3, 3, 6, 6 slots per joint: LINK
    V° A° c° ξ p u Θ   as above, and the angle of Ξ, for the present direction  6, 6, 6, 6, 6, 1, 3 slots per joint: WAY
    dm             slopes of the constants                                     (layers, rows or 1, n·k) each
    dq dv dx …     slopes of states, of a or τ, of the loads                   (layers or 1, rows or 1, columns)
    what           which constants of a joint vary, whether its link MOVES or RISES,
                   whether it is REACHED: inboard of anything that does          (layers, n): sums of GEOMETRY, …
"""

from kinegrad._kernels.aba import ACCELERATION, VELOCITY, N
from kinegrad._kernels.bodies import link_point, store_sym
from kinegrad._kernels.compiler.jit import inline
from kinegrad._kernels.joints import FRAME, axis, carried, handed_on, subspace
from kinegrad._kernels.lanes.finite import with_results
from kinegrad._kernels.lanes.lane import gather, layer
from kinegrad._kernels.mechanism import COLUMNS, Slopes
from kinegrad._kernels.spatial import (
    Force,
    Motion,
    add,
    congruence,
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
    row3,
    row6,
    row9,
    scale,
    store3,
    sub,
    symmul,
    zero3,
)

GEOMETRY, SHIFT, TIP, INERTIA, PASSIVE = 1, 2, 4, 8, 16  # of `what`: rate or turn of X, its shift, F, inertia, passive
MOVES, RISES = 32, 64  # ξ (but for shifts), V° or A° ≠ 0; where accelerations are given, the linear part of A° alone
REACHED = 128  # p or u of the joint can differ from zero; else they are neither stored nor read
C, SPEED, LIFT, SPIN, TENSOR, FORCE, LINK = 0, 3, 6, 9, 12, 18, 24
V, A, DRIFT, MOVED, PUSH, TURN, ACTING, WAY = 0, 6, 12, 18, 24, 30, 33, 34


@inline
def link_slots(n, i):
    """Where what all directions share of link i begins."""
    return (n + 1) * N + i * LINK


@inline
def way_slots(n, i):
    """Where what the present direction has of link i begins, of the world for i = −1."""
    return (n + 1) * N + n * LINK + (i + 1) * WAY


@inline
def found_slots(n):
    """Where accelerations begin that were found."""
    return way_slots(n, n)


def slots(n: int) -> int:
    """How many slots of scratch the kernels need."""
    return (n + 1) * N + n * LINK + (n + 1) * WAY + n


@inline
def of_layer(dm, k):
    """The slopes of layer k."""
    return Slopes(*[layer(x, k) for x in dm])


@inline
def layer_or_only(x, k):
    """Layer k, or the only one."""
    return layer(x, min(k, len(x) - 1))


# --- values -----------------------------------------------------------------------------------------------------


@inline
def share(m, i, n, scratch):
    """What all directions need of link i, once V and A are there; returns the force that its motion takes."""
    at, own = (i + 1) * N, link_slots(n, i)
    R, V_, A_ = load9(scratch, at + FRAME), load_motion(scratch, at + VELOCITY), load_motion(scratch, at + ACCELERATION)
    c, T = mul(R, row3(m.inertia, i, 1)), congruence(R, row6(m.inertia, i, 4))
    s = V_.at(c).v
    b = add(A_.v, add(cross(A_.w, c), cross(V_.w, s)))
    spin, f = symmul(T, V_.w), scale(m.inertia[i, 0], b)
    store3(scratch, own + C, c)
    store3(scratch, own + SPEED, s)
    store3(scratch, own + LIFT, b)
    store3(scratch, own + SPIN, spin)
    store_sym(scratch, own + TENSOR, T)
    return Force(add(add(symmul(T, A_.w), cross(V_.w, spin)), cross(c, f)), f)


@inline
def by_any(what, i):
    """What any direction does to link i."""
    flags = what[0, i]
    for k in range(1, len(what)):
        flags = flags | what[k, i]
    return flags


# --- one direction ----------------------------------------------------------------------------------------------


@inline
def _turn_of(X, dX):
    """θ of the rotations X and X + dX = (1 + θ×) X, both nine numbers row by row."""
    x, y, z = (X[0], X[1], X[2]), (X[3], X[4], X[5]), (X[6], X[7], X[8])
    dx, dy, dz = (dX[0], dX[1], dX[2]), (dX[3], dX[4], dX[5]), (dX[6], dX[7], dX[8])
    return (
        0.5 * (dot(dz, y) - dot(dy, z)),
        0.5 * (dot(dx, z) - dot(dz, x)),
        0.5 * (dot(dy, x) - dot(dx, y)),
    )


@inline
def _displace(m, dm, i, r, varies, q, v, a, dq, dv, scratch):
    """ξ, V° and c° of link i, stored, and the angle of Ξ."""
    n = len(m.parent)
    up, at, before, now = (m.parent[i] + 1) * N, (i + 1) * N, way_slots(n, m.parent[i]), way_slots(n, i)
    z, S = axis(scratch, at), subspace(m, i, scratch, at)
    angle, speed, rate = gather(q, r, i), gather(v, r, i), gather(a, r, i)
    e, de = gather(dq, r, i), gather(dv, r, i)
    V_p, A_p = carried(m, i, up + VELOCITY, at, scratch), carried(m, i, up + ACCELERATION, at, scratch)
    xi = S * e
    drift, more = V_p.cross(S) * de, S * de
    if varies:
        R, X = load9(scratch, up + FRAME), COLUMNS.X * i
        drho, deta = gather(dm.rate, r, COLUMNS.rate * i), gather(dm.rate, r, COLUMNS.rate * i + 1)
        rows = (*gather3(dm.X, r, X), *gather3(dm.X, r, X + 3), *gather3(dm.X, r, X + 6))
        theta = mul(R, _turn_of(row9(m.X, i), rows))
        slide = add(scale(angle * deta, z), cross(theta, scale(m.rate[i, 1] * angle, z)))
        xi = xi + Motion(add(theta, scale(angle * drho, z)), slide)
        dS = Motion(scale(drho, z), scale(deta, z))
        drift = drift + (dS * rate + V_p.cross(dS) * speed)
        more = more + dS * speed
    seen = carried(m, i, before + V, at, scratch) + V_p.cross(xi)
    put(scratch, now + DRIFT, drift + seen.cross(S) * speed + A_p.cross(xi))
    put(scratch, now + V, seen + more)
    put(scratch, now + MOVED, xi)
    store3(scratch, now + TURN, add(load3(scratch, before + TURN), xi.w))


@inline
def _shift(m, dm, i, r, moves, scratch):
    """What the shift of joint i adds to its ξ and c°."""
    n = len(m.parent)
    up, now = (m.parent[i] + 1) * N, way_slots(n, i)
    d = mul(load9(scratch, up + FRAME), gather3(dm.X, r, COLUMNS.X * i + 9))
    w, dw = load3(scratch, up + VELOCITY), load3(scratch, up + ACCELERATION)
    xi, drift = Motion(zero3(), d), Motion(zero3(), add(cross(dw, d), cross(w, cross(w, d))))
    if moves:
        xi, drift = xi + load_motion(scratch, now + MOVED), drift + load_motion(scratch, now + DRIFT)
    put(scratch, now + MOVED, xi)
    put(scratch, now + DRIFT, drift)


@inline
def _by_motion(m, i, n, scratch):
    """What V° adds to p."""
    at, own, now = (i + 1) * N, link_slots(n, i), way_slots(n, i)
    w, c, slope = load3(scratch, at + VELOCITY), load3(scratch, own + C), load_motion(scratch, now + V)
    b = add(cross(slope.w, load3(scratch, own + SPEED)), cross(w, slope.at(c).v))
    f = scale(m.inertia[i, 0], b)
    spin = symmul(load6(scratch, own + TENSOR), slope.w)
    return Force(add(add(cross(slope.w, load3(scratch, own + SPIN)), cross(w, spin)), cross(c, f)), f)


@inline
def _by_inertia(m, dm, i, r, n, scratch):
    """What the slopes of mass, centre of mass and inertia add to p."""
    at, own, k = (i + 1) * N, link_slots(n, i), COLUMNS.inertia * i
    R = load9(scratch, at + FRAME)
    w, dw = load3(scratch, at + VELOCITY), load3(scratch, at + ACCELERATION)
    c, b, mass = load3(scratch, own + C), load3(scratch, own + LIFT), m.inertia[i, 0]
    dc = mul(R, gather3(dm.inertia, r, k + 1))
    f = add(scale(mass, add(cross(dw, dc), cross(w, cross(w, dc)))), scale(gather(dm.inertia, r, k), b))
    dT = congruence(R, (*gather3(dm.inertia, r, k + 4), *gather3(dm.inertia, r, k + 7)))
    moment = add(symmul(dT, dw), cross(w, symmul(dT, w)))
    return Force(add(moment, add(cross(c, f), cross(dc, scale(mass, b)))), f)


@inline
def _by_load(m, dm, i, r, varies, force, point, torque, dforce, dpoint, dtorque, n, scratch):
    """The slope of the load on link i: its force does not turn with the link."""
    at, turn = (i + 1) * N, load3(scratch, way_slots(n, i) + TURN)
    f, t, local = gather3(force, r, 3 * i), gather3(torque, r, 3 * i), gather3(point, r, 3 * i)
    x = link_point(m, i, scratch, N, local)
    df = sub(gather3(dforce, r, 3 * i), cross(turn, f))
    dt = sub(gather3(dtorque, r, 3 * i), cross(turn, t))
    seen = mul(row9(m.F, i), gather3(dpoint, r, 3 * i))
    if varies:
        F = COLUMNS.F * i
        a, b, c = gather3(dm.F, r, F), gather3(dm.F, r, F + 3), gather3(dm.F, r, F + 6)
        seen = add(seen, add((dot(a, local), dot(b, local), dot(c, local)), gather3(dm.F, r, F + 9)))
    dx = mul(load9(scratch, at + FRAME), seen)
    return Force(add(dt, add(cross(dx, f), cross(x, df))), df)


@inline
def outward(m, dm, what, k, q, v, a, dq, dv, force, point, torque, dforce, dpoint, dtorque, r, scratch):
    """Everything of the present direction that does not need A°."""
    n = len(m.parent)
    for j in range(0, ACTING, 3):
        store3(scratch, way_slots(n, -1) + j, zero3())
    for i in range(n):
        now = way_slots(n, i)
        if what[k, i] & REACHED:
            p = Force(zero3(), zero3())
            if what[k, i] & MOVES:
                _displace(m, dm, i, r, what[k, i] & GEOMETRY, q, v, a, dq, dv, scratch)
                if m.massive[i]:
                    p = _by_motion(m, i, n, scratch)
            else:
                for j in range(0, DRIFT, 3):
                    store3(scratch, now + j, zero3())
                store3(scratch, now + TURN, zero3())
            if what[k, i] & SHIFT:
                _shift(m, dm, i, r, what[k, i] & MOVES, scratch)
            if what[k, i] & INERTIA:
                p = p + _by_inertia(m, dm, i, r, n, scratch)
            if len(force) > 0:
                tip = what[k, i] & TIP
                p = p - _by_load(m, dm, i, r, tip, force, point, torque, dforce, dpoint, dtorque, n, scratch)
            put(scratch, now + PUSH, p)


@inline
def passive(m, dm, i, r, flags, n, q, v, a, dq, dv, scratch):
    """Slopes of what spring, damper and rotor take, without δq̈; and S°·F."""
    t = zero3()[0]
    if flags & MOVES:  # as all links do where dq or dv is not zero
        t = m.passive[i, 0] * gather(dq, r, i) + m.passive[i, 2] * gather(dv, r, i)
    if flags & PASSIVE:
        away, c = gather(q, r, i) - m.passive[i, 1], COLUMNS.passive * i
        t = t + gather(dm.passive, r, c) * away - m.passive[i, 0] * gather(dm.passive, r, c + 1)
        t = t + gather(dm.passive, r, c + 2) * gather(v, r, i) + gather(dm.passive, r, c + 3) * gather(a, r, i)
    if flags & GEOMETRY:
        z, F, c = axis(scratch, (i + 1) * N), load_force(scratch, link_slots(n, i) + FORCE), COLUMNS.rate * i
        t = t + gather(dm.rate, r, c) * dot(z, F.n) + gather(dm.rate, r, c + 1) * dot(z, F.f)
    return t


@inline
def hand_on(m, i, n, moving, p, scratch):
    """p + ξ ×* F to the parent."""
    own, now, up = link_slots(n, i), way_slots(n, i), way_slots(n, m.parent[i])
    if moving:
        p = p + load_motion(scratch, now + MOVED).cross(load_force(scratch, own + FORCE))
    increase(scratch, up + PUSH, handed_on(m, i, (i + 1) * N, p, scratch))


@inline
def accelerate_base(dm, r, n, scratch):
    """A° of the world: −δg."""
    put(scratch, way_slots(n, -1) + A, Motion(zero3(), scale(-1.0, gather3(dm.gravity, r, 0))))


@inline
def with_layers(ok, slopes, start, stop):
    """The status `ok`, or LARGE if a slope, (layers, rows, n), is beyond what is ordinary."""
    for k in range(len(slopes)):
        ok = with_results(ok, (layer(slopes, k),), start, stop)
    return ok
