"""Gradient of yᵀτ with respect to q, q̇ and q̈ (vjp), products of its second derivatives with a direction (hvp), O(n).

The gradient is (3) of ``rnea_hessian.py``: with sums over subtree j, F = Σ f, H = Σ I Y, D = Σ 2B(V)ᵀY, Λ = Σ LᵀY,

    ∂φ/∂q_j = χ_j·F + ψ̈_j·H + ψ̇_j·D + z_j·Λ       ∂φ/∂q̇_j = 2ψ̇_j·H + S_j·D       ∂φ/∂q̈_j = S_j·H

and springs, dampers and rotors; D and Λ have no linear part.  Along a direction (δq, δq̇, δq̈) what a link sees from its
own frame changes by sums over its path to the root, (2) there,

    δY = Σ χ δq      δV = Σ (ψ̇ δq + S δq̇)      δ′A = δA − δV×V = Σ (ψ̈ δq + 2ψ̇ δq̇ + S δq̈)      E = Σ z δq

Handed on inward, what they change turns with the frames, δF_p += δF_j + δq_j S_j×*F_j, and H, D, Λ likewise, so that

    δ∂φ/∂q_j = δY·(S×*F) + χ·δF + δ′A·(S×*H) + ψ̈·δH + δV·(2ψ̇×*H + S×*D) + ψ̇·δD + z·δΛ
    δ∂φ/∂q̇_j = 2 δV·(S×*H) + 2ψ̇·δH + S·δD            δ∂φ/∂q̈_j = S·δH

with δY, δV, δ′A of link j.  In ψ̇ = V×S, ψ̈ = A×S + V×ψ̇, χ = Y×S the motion of link j serves as well as its parent's.

**For each link a frame in which it rests.**  All this holds in every frame that moves uniformly and does not turn.
For each link that one is taken in which its reference point is just at rest.  Then V = (ω, 0), the linear part a of A
is the acceleration of the point, and with S = (ρz, ηz)

    ψ̇ = (ρp, ηp)     ψ̈ = (ρs, ηs + ρ a×z)      p = ω×z     s = α×z + ω×p
    ∂φ/∂q_j = z·Λ − S·(Y×*F + A×*H + ω×(D − ω×H))              ∂φ/∂q̇_j = S·(D − 2 ω×H)

(ω×H of both parts of H).  Seen from its parent's frame, the point moves at ν = ω_p×d + ηq̇z, and from one to the other

    a = a_p + α_p×d + ω_p×(ν + ηq̇z) + ηq̈z          δa = δa_p + δ′α_p×d + 2 δω_p×ν + what joint i adds
    D_p += D + 2ν×h     δD_p += δD + δq ρz×D + 2δν×h + 2ν×δh     δν = δω_p×d + η(δq p + δq̇ z)     h = linear part of H

No inertia is summed over subtrees, so a link's own is taken about its centre of mass c: with N its inertia there, its
second moments J = ½ tr N − N, ċ = ω×c, u the virtual velocity of c, and Ω the angular part of Y,

    d  = 2J(ω×Ω) + 2m ċ×u                        because (Nx)×y + x×(Ny) = (tr N − N)(x×y)
    δf = m (δa + δ′α×c + 2 δω×ċ)                 with the moment  Nδ′α − 2ω×Jδω + c×δf
    δd = 2J(δω×Ω + ω×δΩ) + 2m (δċ×u + ċ×δu)      δċ = δω×c

Registers hold one kind of sum at a time, so a pass reads what it needs when it needs it, and hands on each sum before
it takes up the next.  Sums are in records: a link finds those of its children in its own, adds its body and its load,
and leaves the record to its parent, unless another child has left one before.

Glossary (world axes, about the reference point of link i, in its frame; 6-vectors are (angular, linear) pairs)
    ω A Y            angular velocity, acceleration, virtual velocity of link i        3, 6, 6 slots
    2ν               twice the velocity of the reference point in the parent's frame   3, only where they are apart
    δω δ′A δY 2δν    their changes, hvp only                                            3, 6, 6, 3
    E                sum over the path of joint i, hvp with loads only                  3
    F H D Λ          sums over subtree i                                                6, 6, 3, 3, of a record
    δF δH δD δΛ      their changes, hvp only                                            6, 6, 3, 3, of a record
    plan             (n, 4): the record of subtree i, that of its parent, whether link i has no children, and whether
                     both records are one, since it is the first child that hands on
    along            (δq, δq̇, δq̈), three arrays (states, n), or None for the gradient alone
"""

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import (
    FRAME,
    FREE,
    SHIFT,
    axis,
    falling,
    handed_on,
    rest,
    store_frame,
    store_world,
    subspace,
)
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    Force,
    Motion,
    add,
    add3,
    add_cross,
    congruence,
    cross,
    dot,
    gather3,
    increase,
    load3,
    load9,
    load_force,
    load_motion,
    mul,
    put,
    row3,
    row6,
    scale,
    store3,
    sub,
    symmul,
    zero3,
)  # fmt: skip

SPEED, ACCELERATION, VIRTUAL, FLOW, N = FREE, FREE + 3, FREE + 9, FREE + 15, FREE + 18  # ω | A | Y | 2ν | slots, vjp
D_SPEED, D_ACCELERATION, D_VIRTUAL, D_FLOW, TURN = N, N + 3, N + 9, N + 15, N + 18  # δω | δ′A | δY | 2δν | E
N_HVP = N + 21  # slots, hvp
FORCE, PUSH, DRAG, LOAD, SUM = 0, 6, 12, 15, 18  # of a record: F | H | D | Λ | slots, vjp
D_FORCE, D_PUSH, D_DRAG, D_LOAD, SUM_HVP = 18, 24, 30, 33, 36  # δF | δH | δD | δΛ | slots, hvp
RECORD, UP, LEAF, FIRST = 0, 1, 2, 3  # columns of plan


def slots(n: int, records: int, along: bool) -> int:
    """Scratch slots for n joints and so many records."""
    return (n + 1) * N_HVP + records * SUM_HVP if along else (n + 1) * N + records * SUM


# --- outward ------------------------------------------------------------------------------------------------------


@inline
def move(m, i, up, at, speed, acceleration, weight, scratch):
    """ω, A, Y of link i from its parent's, stored."""
    w, A, Y = load3(scratch, up + SPEED), load_motion(scratch, up + ACCELERATION), load_motion(scratch, up + VIRTUAL)
    z, turn, slide = axis(scratch, at), m.rate[i, 0], m.rate[i, 1]
    if m.apart[i]:
        d = load3(scratch, at + SHIFT)
        flow = cross(w, d)
        A, Y = Motion(A.w, add(A.v, add(cross(A.w, d), cross(w, flow)))), Y.at(d)
        store3(scratch, at + FLOW, scale(2.0, flow))
    p = cross(w, z)
    if slide != 0.0:
        along = scale(2.0 * slide * speed, z)
        store3(scratch, at + FLOW, add(load3(scratch, at + FLOW), along))
        A = Motion(A.w, add(A.v, add(cross(w, along), scale(slide * acceleration, z))))
        Y = Motion(Y.w, add(Y.v, scale(slide * weight, z)))
    A = Motion(add(A.w, add(scale(turn * acceleration, z), scale(turn * speed, p))), A.v)
    w, Y = add(w, scale(turn * speed, z)), Motion(add(Y.w, scale(turn * weight, z)), Y.v)
    store3(scratch, at + SPEED, w)
    put(scratch, at + ACCELERATION, A)
    put(scratch, at + VIRTUAL, Y)


@inline
def second_rate(m, i, S, w, p, A):
    """ψ̈ of joint i, from the angular part p of ψ̇."""
    C = Motion(add_cross(cross(A.w, S.w), w, p), cross(A.v, S.w))
    if m.rate[i, 1] != 0.0:
        C = Motion(C.w, add_cross(add_cross(C.v, A.w, S.v), w, cross(w, S.v)))
    return C


@inline
def virtual_rate(m, i, S, Y):
    """χ of joint i."""
    X = Motion(cross(Y.w, S.w), cross(Y.v, S.w))
    if m.rate[i, 1] != 0.0:
        X = Motion(X.w, add_cross(X.v, Y.w, S.v))
    return X


@inline
def move_along(m, i, up, at, e, de, dde, scratch):
    """How they change along the direction (e, de, dde) of joint i, stored."""
    S, w, dw = subspace(m, i, scratch, at), load3(scratch, at + SPEED), load3(scratch, up + D_SPEED)
    p = cross(w, S.w)
    store3(scratch, at + D_SPEED, add(dw, add(scale(e, p), scale(de, S.w))))

    dA = load_motion(scratch, up + D_ACCELERATION)
    if m.apart[i]:
        d = load3(scratch, at + SHIFT)
        dA = Motion(dA.w, add_cross(add_cross(dA.v, dA.w, d), dw, load3(scratch, at + FLOW)))
        store3(scratch, at + D_FLOW, scale(2.0, cross(dw, d)))
    if m.rate[i, 1] != 0.0:
        along = cross(w, S.v)
        dA = Motion(dA.w, add(dA.v, add(scale(2.0 * de, along), scale(dde, S.v))))
        add3(scratch, at + D_FLOW, add(scale(2.0 * e, along), scale(2.0 * de, S.v)))
    dA = dA + second_rate(m, i, S, w, p, load_motion(scratch, at + ACCELERATION)) * e
    put(scratch, at + D_ACCELERATION, Motion(add(dA.w, add(scale(2.0 * de, p), scale(dde, S.w))), dA.v))

    X, dY = virtual_rate(m, i, S, load_motion(scratch, at + VIRTUAL)), load_motion(scratch, up + D_VIRTUAL)
    if m.apart[i]:
        dY = dY.at(load3(scratch, at + SHIFT))
    put(scratch, at + D_VIRTUAL, dY + X * e)


@inline
def outward(m, q, v, a, y, along, loaded, stride, r, scratch):
    """Motion and virtual motion of all links, and then their changes."""
    store_world(scratch)
    store3(scratch, SPEED, zero3())
    falling(m, scratch, ACCELERATION)
    rest(scratch, VIRTUAL)
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * stride, (i + 1) * stride
        store_frame(m, i, up, at, gather(q, r, i), scratch)
        move(m, i, up, at, gather(v, r, i), gather(a, r, i), gather(y, r, i), scratch)
    if along is None:
        return
    for k in range(D_SPEED, N_HVP, 3):
        store3(scratch, k, zero3())
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * stride, (i + 1) * stride
        e, de, dde = (gather(x, r, i) for x in along)
        move_along(m, i, up, at, e, de, dde, scratch)
        if loaded:
            turned = scale(e, subspace(m, i, scratch, at).w)
            store3(scratch, at + TURN, add(load3(scratch, up + TURN), turned))


# --- inward -------------------------------------------------------------------------------------------------------


@inline
def enter(scratch, k, F, only):
    """A force to a sum, or in its place if it is the only one."""
    if only:
        put(scratch, k, F)
    else:
        increase(scratch, k, F)


@inline
def enter3(scratch, k, u, only):
    """A vector likewise."""
    if only:
        store3(scratch, k, u)
    else:
        add3(scratch, k, u)


@inline
def pass_on(m, i, at, up, slot, F, first, changed, scratch):
    """A force sum of subtree i to the record of its parent.  The first that comes finds itself there already: it has to
    be written only if it is shifted, or changed."""
    F = handed_on(m, i, at, F, scratch)
    if not first:
        increase(scratch, up + slot, F)
    elif changed:
        put(scratch, up + slot, F)
    elif m.apart[i]:
        store3(scratch, up + slot, F.n)


@inline
def own_body(m, i, at, own, only, along, scratch):
    """f, h and d of link i, and how they change along a direction, to the sums of its children, if it has any."""
    R, mass = load9(scratch, at + FRAME), m.inertia[i, 0]
    c, I = mul(R, row3(m.inertia, i, 1)), congruence(R, row6(m.inertia, i, 4))
    half = 0.5 * (m.inertia[i, 4] + m.inertia[i, 5] + m.inertia[i, 6])  # ½ tr N
    w, A = load3(scratch, at + SPEED), load_motion(scratch, at + ACCELERATION)
    dc = cross(w, c)
    f = scale(mass, add_cross(A.at(c).v, w, dc))
    enter(scratch, own + FORCE, Force(add_cross(add_cross(symmul(I, A.w), w, symmul(I, w)), c, f), f), only)
    Y = load_motion(scratch, at + VIRTUAL)
    h = scale(mass, Y.at(c).v)
    enter(scratch, own + PUSH, Force(add_cross(symmul(I, Y.w), c, h), h), only)
    g = cross(w, Y.w)
    enter3(scratch, own + DRAG, scale(2.0, add_cross(sub(scale(half, g), symmul(I, g)), dc, h)), only)
    if along is None:
        return
    dw, dA = load3(scratch, at + D_SPEED), load_motion(scratch, at + D_ACCELERATION)
    f = scale(mass, add_cross(dA.at(c).v, scale(2.0, dw), dc))
    n = add_cross(symmul(I, dA.w), scale(2.0, w), sub(symmul(I, dw), scale(half, dw)))
    enter(scratch, own + D_FORCE, Force(add_cross(n, c, f), f), only)
    d, g = cross(cross(dw, c), h), cross(dw, Y.w)
    dY = load_motion(scratch, at + D_VIRTUAL)
    h = scale(mass, dY.at(c).v)
    enter(scratch, own + D_PUSH, Force(add_cross(symmul(I, dY.w), c, h), h), only)
    g = add_cross(g, w, dY.w)
    d = add(add_cross(d, dc, h), sub(scale(half, g), symmul(I, g)))
    enter3(scratch, own + D_DRAG, scale(2.0, d), only)


@inline
def own_load(m, i, r, at, own, stride, force, point, torque, only, along, scratch):
    """What the load on link i takes off f, its λ, and how both change along a direction."""
    f, e = gather3(force, r, 3 * i), gather3(torque, r, 3 * i)
    x = link_point(m, i, scratch, stride, gather3(point, r, 3 * i))
    Y = load_motion(scratch, at + VIRTUAL)
    u = Y.at(x).v
    put(scratch, own + FORCE, load_force(scratch, own + FORCE) - Force(add_cross(e, x, f), f))
    enter3(scratch, own + LOAD, add_cross(cross(f, u), e, Y.w), only)
    if along is None:
        return
    dY = load_motion(scratch, at + D_VIRTUAL)
    E = load3(scratch, at + TURN)
    df, de = cross(E, f), cross(E, e)
    increase(scratch, own + D_FORCE, Force(add(cross(x, df), de), df))
    by_motion = add(cross(f, dY.at(x).v), cross(e, dY.w))
    enter3(scratch, own + D_LOAD, add(by_motion, add(cross(u, df), cross(Y.w, de))), only)


@inline
def own_link(m, plan, i, r, at, own, stride, last, force, point, torque, along, scratch):
    """Body and load of link i to the sums of its children."""
    only = plan[i, LEAF]
    if m.massive[i]:
        own_body(m, i, at, own, only, along, scratch)
    elif only:
        for k in range(0, last, 3):
            store3(scratch, own + k, zero3())
    if len(force) > 0:
        own_load(m, i, r, at, own, stride, force, point, torque, only, along, scratch)


@inline
def inward(m, plan, y, force, point, torque, by_q, by_v, by_a, r, scratch):
    """The gradient, and sums over subtrees, one kind after the other."""
    sums, loaded = (len(m.parent) + 1) * N, len(force) > 0
    for i in range(len(m.parent) - 1, -1, -1):
        at, first, weight = (i + 1) * N, plan[i, FIRST], gather(y, r, i)
        own, up = sums + plan[i, RECORD] * SUM, sums + plan[i, UP] * SUM
        own_link(m, plan, i, r, at, own, N, SUM, force, point, torque, None, scratch)
        z, turn, slide = axis(scratch, at), m.rate[i, 0], m.rate[i, 1]

        # −S·(Y×*F + A×*H + ω×(D − ω×H)); what S slides along is left out where it does not
        F, Y = load_force(scratch, own + FORCE), load_motion(scratch, at + VIRTUAL)
        n = add_cross(cross(Y.w, F.n), Y.v, F.f)
        pass_on(m, i, at, up, FORCE, F, first, False, scratch)
        H, A, w = load_force(scratch, own + PUSH), load_motion(scratch, at + ACCELERATION), load3(scratch, at + SPEED)
        n, wH = add_cross(add_cross(n, A.w, H.n), A.v, H.f), cross(w, H.n)
        pass_on(m, i, at, up, PUSH, H, first, False, scratch)
        D = load3(scratch, own + DRAG)
        speed = sub(D, wH)
        by_position, by_acceleration = -turn * dot(z, add_cross(n, w, speed)), turn * dot(z, H.n)
        by_speed = turn * dot(z, sub(speed, wH))
        if slide != 0.0:
            wH = cross(w, H.f)
            f = add(cross(Y.w, F.f), sub(cross(A.w, H.f), cross(w, wH)))
            by_position = by_position - slide * dot(z, f)
            by_speed = by_speed - 2.0 * slide * dot(z, wH)
            by_acceleration = by_acceleration + slide * dot(z, H.f)
        if loaded:
            by_position = by_position + turn * dot(z, load3(scratch, own + LOAD))
        scatter(by_q, r, i, by_position + m.passive[i, 0] * weight)
        scatter(by_v, r, i, by_speed + m.passive[i, 2] * weight)
        scatter(by_a, r, i, by_acceleration + m.passive[i, 3] * weight)
        if m.apart[i]:
            D = add_cross(D, load3(scratch, at + FLOW), H.f)
        if not first or m.apart[i]:
            enter3(scratch, up + DRAG, D, first)
        if loaded and not first:
            add3(scratch, up + LOAD, load3(scratch, own + LOAD))


@inline
def inward_along(m, plan, along, force, point, torque, by_q, by_v, by_a, r, scratch):
    """The change of the gradient, and sums over subtrees, likewise."""
    sums, loaded = (len(m.parent) + 1) * N_HVP, len(force) > 0
    for i in range(len(m.parent) - 1, -1, -1):
        at, first, e = (i + 1) * N_HVP, plan[i, FIRST], gather(along[0], r, i)
        own, up = sums + plan[i, RECORD] * SUM_HVP, sums + plan[i, UP] * SUM_HVP
        own_link(m, plan, i, r, at, own, N_HVP, SUM_HVP, force, point, torque, along, scratch)
        S, slides = subspace(m, i, scratch, at), m.rate[i, 1] != 0.0

        F, dF = load_force(scratch, own + FORCE), load_force(scratch, own + D_FORCE)
        SF = Force(cross(S.w, F.n), cross(S.w, F.f))
        if slides:
            SF = Force(add_cross(SF.n, S.v, F.f), SF.f)
        X = virtual_rate(m, i, S, load_motion(scratch, at + VIRTUAL))
        change = load_motion(scratch, at + D_VIRTUAL).dot(SF) + X.dot(dF)
        pass_on(m, i, at, up, FORCE, F, first, False, scratch)
        pass_on(m, i, at, up, D_FORCE, dF + SF * e, first, True, scratch)

        H, dH, w = load_force(scratch, own + PUSH), load_force(scratch, own + D_PUSH), load3(scratch, at + SPEED)
        p = cross(w, S.w)
        SH, pH = Force(cross(S.w, H.n), cross(S.w, H.f)), cross(p, H.n)
        by_speed, by_acceleration = dot(p, dH.n), dot(S.w, dH.n)
        if slides:
            sliding = cross(w, S.v)
            SH, pH = Force(add_cross(SH.n, S.v, H.f), SH.f), add_cross(pH, sliding, H.f)
            by_speed, by_acceleration = by_speed + dot(sliding, dH.f), by_acceleration + dot(S.v, dH.f)
        C = second_rate(m, i, S, w, p, load_motion(scratch, at + ACCELERATION))
        change = change + C.dot(dH) + load_motion(scratch, at + D_ACCELERATION).dot(SH)
        dw = load3(scratch, at + D_SPEED)
        change, by_speed = change + 2.0 * dot(dw, pH), by_speed + dot(dw, SH.n)
        dH = dH + SH * e
        pass_on(m, i, at, up, PUSH, H, first, False, scratch)
        pass_on(m, i, at, up, D_PUSH, dH, first, True, scratch)

        D, dD = load3(scratch, own + DRAG), load3(scratch, own + D_DRAG)
        SD = cross(S.w, D)
        change = change + dot(dw, SD) + dot(p, dD)
        if loaded:
            change = change + dot(S.w, load3(scratch, own + D_LOAD))
        scatter(by_q, r, i, change)
        scatter(by_v, r, i, 2.0 * by_speed + dot(S.w, dD))
        scatter(by_a, r, i, by_acceleration)
        dD = add(dD, scale(e, SD))
        if m.apart[i]:
            flow = load3(scratch, at + FLOW)
            D = add_cross(D, flow, H.f)
            dD = add_cross(add_cross(dD, load3(scratch, at + D_FLOW), H.f), flow, dH.f)
        if not first or m.apart[i]:
            enter3(scratch, up + DRAG, D, first)
        enter3(scratch, up + D_DRAG, dD, first)
        if loaded:
            L, dL = load3(scratch, own + LOAD), load3(scratch, own + D_LOAD)
            if not first:
                add3(scratch, up + LOAD, L)
            enter3(scratch, up + D_LOAD, add(dL, scale(e, cross(S.w, L))), first)


@kernel
def vjp(m, q, v, a, y, force, point, torque, plan, by_q, by_v, by_a, scratch, start, stop):
    """Gradients of yᵀτ by the state, three times (states, n); loads (states or 1, 3 n), or (0, 3 n) for none;
    plan (n, 4)."""
    ok = finite((q, v, a, y, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        outward(m, q, v, a, y, None, len(force) > 0, N, r, scratch)
        inward(m, plan, y, force, point, torque, by_q, by_v, by_a, r, scratch)
    return ok


@kernel
def hvp(m, q, v, a, y, dq, dv, da, force, point, torque, plan, by_q, by_v, by_a, scratch, start, stop):
    """Their changes along a direction (dq, dv, da)."""
    ok = finite((q, v, a, y, dq, dv, da, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        outward(m, q, v, a, y, (dq, dv, da), len(force) > 0, N_HVP, r, scratch)
        inward_along(m, plan, (dq, dv, da), force, point, torque, by_q, by_v, by_a, r, scratch)
    return ok
