"""Gradient of yᵀτ with respect to q, q̇ and q̈ (vjp), products of its second derivatives with a direction (hvp), O(n).

The gradient is (3) of ``rnea_hessian.py``: with sums over subtree j, F = Σ f, H = Σ I Y, D = Σ 2B(V)ᵀY, Λ = Σ LᵀY,

    ∂φ/∂q_j = χ_j·F + ψ̈_j·H + ψ̇_j·D + z_j·Λ       ∂φ/∂q̇_j = 2ψ̇_j·H + S_j·D       ∂φ/∂q̈_j = S_j·H

and springs, dampers and rotors; D and Λ have no linear part.  Along a direction (δq, δq̇, δq̈) what a link sees from its
own frame changes by sums over its path to the root, (2) there,

    δY = Σ χ δq      δV = Σ (ψ̇ δq + S δq̇)      δ′A = δA − δV×V = Σ (ψ̈ δq + 2ψ̇ δq̇ + S δq̈)      E = Σ z δq

Handed on inward, what they change turns with the frames, δF_p += δF_j + δq_j S_j×*F_j, and H, D, Λ likewise, so that

    δ∂φ/∂q_j = δY·(S×*F) + χ·δF + δ′A·(S×*H) + ψ̈·δH + δV·(2ψ̇×*H + S×*D) + ψ̇·δD + z·δΛ
    δ∂φ/∂q̇_j = 2 δV·(S×*H) + 2ψ̇·δH + S·δD            δ∂φ/∂q̈_j = S·δH

with δY, δV, δ′A of link j, and ψ̇ = V×S, ψ̈ = A×S + V×ψ̇, χ = Y×S, in which V, A, Y of link j serve as well as its parent's.

**Link by link a frame in which it rests.**  All this holds in every frame that moves uniformly without turning, so
for each link that one is taken in which its reference point is just at rest.  Then V = (ω, 0), the linear part a of A is
the acceleration of the point, and what had linear velocities is gone:

    ψ̇ = ω×S = (ρp, ηp)     ψ̈ = (ρs, ηs + ρ a×z)      p = ω×z, s = α×z + ω×p
    ∂φ/∂q_j = z·Λ − S·(Y×*F + A×*H + ω×(D − ω×H))              ∂φ/∂q̇_j = S·(D − 2 ω×H)

(ω×H of both parts of H).  From frame to frame there is ν = ω_p×d + ηq̇z, the velocity of one point as seen from the other:

    a = a_p + α_p×d + ω_p×(ν + ηq̇z) + ηq̈z          δa = δa_p + δ′α_p×d + 2 δω_p×ν + …         D_p += D + 2ν×H
    δD_p += δD + δq ρz×D + 2δν×H + 2ν×δH             δν = δω_p×d + η(δq p + δq̇ z)         (linear parts of H, handed on)

No inertia is summed over subtrees, so a link's own is taken about its centre of mass c: with N its inertia there and J
= ½ tr N − N its second moments, ċ = ω×c, u the virtual velocity of c and Ω the angular part of Y,

    d  = 2J(ω×Ω) + 2m ċ×u                        because (Nx)×y + x×(Ny) = (tr N − N)(x×y)
    δf = m (δ′a + 2 δω×ċ)     with the moment  Nδ′α − 2ω×Jδω + c×δf                          (δ′a = δa + δ′α×c at c)
    δd = 2J(δω×Ω + ω×δΩ) + 2m (δċ×u + ċ×δu)      δċ = δω×c

Glossary (world axes, about the reference point of link i, in its frame; 6-vectors are (angular, linear) pairs)
    ω A Y            angular velocity, acceleration, virtual velocity of link i       3, 6, 6 slots
    2ν               twice the velocity of i's reference point in the parent's frame  3, only where they are apart
    F H D Λ          sums over subtree i                                               6, 6, 3, 3
    δω δ′A δY 2δν    their changes, hvp only                                           3, 6, 6, 3
    E                sum over the path of joint i, hvp with loads only                 3
    δF δH δD δΛ      sums over subtree i, hvp only                                     6, 6, 3, 3
    ψ̇ ψ̈ χ            path vectors of joint i, of ψ̇ the angular part, hvp only          3, 6, 6
    home             the joint in whose slots the sums of subtree i are, as in ``rnea_derivatives.py``
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
from kinegrad._kernels.rnea_derivatives import HOME
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

SPEED, ACCELERATION, VIRTUAL, FLOW = FREE, FREE + 3, FREE + 9, FREE + 15  # ω | A | Y | 2ν
FORCE, PUSH, DRAG, LOAD, N = FREE + 18, FREE + 24, FREE + 30, FREE + 33, FREE + 36  # F | H | D | Λ | slots, vjp
D_SPEED, D_ACCELERATION, D_VIRTUAL, TURN, D_FLOW = N, N + 3, N + 9, N + 15, N + 18  # δω | δ′A | δY | E | 2δν
D_FORCE, D_PUSH, D_DRAG, D_LOAD = N + 21, N + 27, N + 33, N + 36  # δF | δH | δD | δΛ
RATE, CURVE, CHI, N_HVP = N + 39, N + 42, N + 48, N + 54  # ψ̇ | ψ̈ | χ | slots, hvp


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
def move_along(m, i, up, at, e, de, dde, scratch):
    """How they change along the direction (e, de, dde) of joint i, and its path vectors; stored."""
    S, apart = subspace(m, i, scratch, at), m.apart[i]
    w, dw = load3(scratch, at + SPEED), load3(scratch, up + D_SPEED)
    p = cross(w, S.w)
    store3(scratch, at + RATE, p)
    store3(scratch, at + D_SPEED, add(dw, add(scale(e, p), scale(de, S.w))))

    A, dA = load_motion(scratch, at + ACCELERATION), load_motion(scratch, up + D_ACCELERATION)
    C = Motion(add_cross(cross(A.w, S.w), w, p), cross(A.v, S.w))
    if apart:
        d = load3(scratch, at + SHIFT)
        dA = Motion(dA.w, add_cross(add_cross(dA.v, dA.w, d), dw, load3(scratch, at + FLOW)))
        store3(scratch, at + D_FLOW, scale(2.0, cross(dw, d)))
    if m.rate[i, 1] != 0.0:
        along = cross(w, S.v)
        C = Motion(C.w, add_cross(add_cross(C.v, A.w, S.v), w, along))
        dA = Motion(dA.w, add(dA.v, add(scale(2.0 * de, along), scale(dde, S.v))))
        add3(scratch, at + D_FLOW, add(scale(2.0 * e, along), scale(2.0 * de, S.v)))
    dA = dA + C * e
    put(scratch, at + CURVE, C)
    put(scratch, at + D_ACCELERATION, Motion(add(dA.w, add(scale(2.0 * de, p), scale(dde, S.w))), dA.v))

    Y, dY = load_motion(scratch, at + VIRTUAL), load_motion(scratch, up + D_VIRTUAL)
    X = Motion(cross(Y.w, S.w), cross(Y.v, S.w))
    if m.rate[i, 1] != 0.0:
        X = Motion(X.w, add_cross(X.v, Y.w, S.v))
    if apart:
        dY = dY.at(load3(scratch, at + SHIFT))
    put(scratch, at + CHI, X)
    put(scratch, at + D_VIRTUAL, dY + X * e)


@inline
def own_body(m, i, at, along, scratch):
    """f, h and d of link i, and how they change along a direction."""
    R, mass = load9(scratch, at + FRAME), m.inertia[i, 0]
    c, I = mul(R, row3(m.inertia, i, 1)), congruence(R, row6(m.inertia, i, 4))  # noqa: E741 (the book's symbol)
    half = 0.5 * (m.inertia[i, 4] + m.inertia[i, 5] + m.inertia[i, 6])  # ½ tr N
    w, A = load3(scratch, at + SPEED), load_motion(scratch, at + ACCELERATION)
    dc = cross(w, c)
    f = scale(mass, add_cross(A.at(c).v, w, dc))
    put(scratch, at + FORCE, Force(add_cross(add_cross(symmul(I, A.w), w, symmul(I, w)), c, f), f))
    Y = load_motion(scratch, at + VIRTUAL)
    h = scale(mass, Y.at(c).v)
    put(scratch, at + PUSH, Force(add_cross(symmul(I, Y.w), c, h), h))
    g = cross(w, Y.w)
    store3(scratch, at + DRAG, scale(2.0, add_cross(sub(scale(half, g), symmul(I, g)), dc, h)))
    if along is None:
        return
    dw, dA = load3(scratch, at + D_SPEED), load_motion(scratch, at + D_ACCELERATION)
    f = scale(mass, add_cross(dA.at(c).v, scale(2.0, dw), dc))
    n = add_cross(symmul(I, dA.w), scale(2.0, w), sub(symmul(I, dw), scale(half, dw)))
    put(scratch, at + D_FORCE, Force(add_cross(n, c, f), f))
    d, g = cross(cross(dw, c), h), cross(dw, Y.w)
    dY = load_motion(scratch, at + D_VIRTUAL)
    h = scale(mass, dY.at(c).v)
    put(scratch, at + D_PUSH, Force(add_cross(symmul(I, dY.w), c, h), h))
    g = add_cross(g, w, dY.w)
    d = add(add_cross(d, dc, h), sub(scale(half, g), symmul(I, g)))
    store3(scratch, at + D_DRAG, scale(2.0, d))


@inline
def no_body(plan, i, at, last, scratch):
    """Zero sums, where link i has a record of its own."""
    if plan[i, HOME] == i:
        for k in range(FORCE, LOAD, 3):
            store3(scratch, at + k, zero3())
        if last > N:
            for k in range(D_FORCE, D_LOAD, 3):
                store3(scratch, at + k, zero3())


@inline
def own_load(m, i, r, up, at, stride, force, point, torque, along, scratch):
    """What the load on link i takes off f, its λ, and how both change along a direction."""
    f, e = gather3(force, r, 3 * i), gather3(torque, r, 3 * i)
    x = link_point(m, i, scratch, stride, gather3(point, r, 3 * i))
    Y = load_motion(scratch, at + VIRTUAL)
    u = Y.at(x).v
    put(scratch, at + FORCE, load_force(scratch, at + FORCE) - Force(add(cross(x, f), e), f))
    store3(scratch, at + LOAD, add(cross(f, u), cross(e, Y.w)))
    if along is None:
        return
    dY = load_motion(scratch, at + D_VIRTUAL)
    E = add(load3(scratch, up + TURN), scale(gather(along[0], r, i), subspace(m, i, scratch, at).w))
    store3(scratch, at + TURN, E)
    df, de = cross(E, f), cross(E, e)
    increase(scratch, at + D_FORCE, Force(add(cross(x, df), de), df))
    by_motion = add(cross(f, dY.at(x).v), cross(e, dY.w))
    store3(scratch, at + D_LOAD, add(by_motion, add(cross(u, df), cross(Y.w, de))))


@inline
def outward(m, plan, q, v, a, y, along, force, point, torque, stride, r, scratch):
    """Motion and virtual motion of all links, and what each link has for itself."""
    store_world(scratch)
    store3(scratch, SPEED, zero3())
    falling(m, scratch, ACCELERATION)
    rest(scratch, VIRTUAL)
    if along is not None:
        for k in range(D_SPEED, D_FLOW, 3):
            store3(scratch, k, zero3())
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * stride, (i + 1) * stride
        store_frame(m, i, up, at, gather(q, r, i), scratch)
        move(m, i, up, at, gather(v, r, i), gather(a, r, i), gather(y, r, i), scratch)
    if along is not None:
        for i in range(len(m.parent)):
            e, de, dde = (gather(x, r, i) for x in along)
            move_along(m, i, (m.parent[i] + 1) * stride, (i + 1) * stride, e, de, dde, scratch)
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * stride, (i + 1) * stride
        if m.massive[i]:
            own_body(m, i, at, along, scratch)
        else:
            no_body(plan, i, at, stride, scratch)
        if len(force) > 0:
            own_load(m, i, r, up, at, stride, force, point, torque, along, scratch)


# --- inward -------------------------------------------------------------------------------------------------------


@inline
def pass_on(m, i, at, own, up, slot, F, changed, scratch):
    """A force sum of subtree i, in its record `own`, to its parent's, `up`; where both are one, it has to be written
    only if it is shifted, or changed."""
    F = handed_on(m, i, at, F, scratch)
    if up != own:
        increase(scratch, up + slot, F)
    elif changed:
        put(scratch, up + slot, F)
    elif m.apart[i]:
        store3(scratch, up + slot, F.n)


@inline
def pass_on_drag(m, i, at, own, up, slot, D, changed, scratch):
    """D of subtree i likewise."""
    if up != own:
        add3(scratch, up + slot, D)
    elif changed or m.apart[i]:
        store3(scratch, up + slot, D)


@inline
def inward(m, plan, y, loaded, by_q, by_v, by_a, r, scratch):
    """The gradient, and sums over subtrees: one kind of sum after the other, so that each stays in registers until it is
    handed on."""
    for i in range(len(m.parent) - 1, -1, -1):
        at, own, weight = (i + 1) * N, (plan[i, HOME] + 1) * N, gather(y, r, i)
        up = own if m.parent[i] < 0 else (plan[m.parent[i], HOME] + 1) * N  # of a root nothing is read again
        z, turn, slide = axis(scratch, at), m.rate[i, 0], m.rate[i, 1]

        # −S·(Y×*F + A×*H + ω×(D − ω×H)); what S slides along is left out where it does not
        F, Y = load_force(scratch, own + FORCE), load_motion(scratch, at + VIRTUAL)
        n = add_cross(cross(Y.w, F.n), Y.v, F.f)
        pass_on(m, i, at, own, up, FORCE, F, False, scratch)
        H, A, w = load_force(scratch, own + PUSH), load_motion(scratch, at + ACCELERATION), load3(scratch, at + SPEED)
        n, wH = add_cross(add_cross(n, A.w, H.n), A.v, H.f), cross(w, H.n)
        pass_on(m, i, at, own, up, PUSH, H, False, scratch)
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
        pass_on_drag(m, i, at, own, up, DRAG, D, False, scratch)
        if loaded and m.parent[i] >= 0:  # and so each link has a record of its own
            add3(scratch, up + LOAD, load3(scratch, own + LOAD))


@inline
def inward_along(m, plan, dq, loaded, by_q, by_v, by_a, r, scratch):
    """The change of the gradient, and sums over subtrees: one kind of sum after the other, so that each stays in
    registers until it is handed on."""
    for i in range(len(m.parent) - 1, -1, -1):
        at, own, e = (i + 1) * N_HVP, (plan[i, HOME] + 1) * N_HVP, gather(dq, r, i)
        up = own if m.parent[i] < 0 else (plan[m.parent[i], HOME] + 1) * N_HVP  # of a root nothing is read again
        S, slides = subspace(m, i, scratch, at), m.rate[i, 1] != 0.0

        F, dF = load_force(scratch, own + FORCE), load_force(scratch, own + D_FORCE)
        SF = Force(cross(S.w, F.n), cross(S.w, F.f))
        if slides:
            SF = Force(add_cross(SF.n, S.v, F.f), SF.f)
        change = load_motion(scratch, at + D_VIRTUAL).dot(SF) + load_motion(scratch, at + CHI).dot(dF)
        pass_on(m, i, at, own, up, FORCE, F, False, scratch)
        pass_on(m, i, at, own, up, D_FORCE, dF + SF * e, True, scratch)

        H, dH, p = load_force(scratch, own + PUSH), load_force(scratch, own + D_PUSH), load3(scratch, at + RATE)
        SH, pH = Force(cross(S.w, H.n), cross(S.w, H.f)), cross(p, H.n)
        by_speed, by_acceleration = dot(p, dH.n), dot(S.w, dH.n)
        if slides:
            along = cross(load3(scratch, at + SPEED), S.v)
            SH, pH = Force(add_cross(SH.n, S.v, H.f), SH.f), add_cross(pH, along, H.f)
            by_speed, by_acceleration = by_speed + dot(along, dH.f), by_acceleration + dot(S.v, dH.f)
        change = change + load_motion(scratch, at + CURVE).dot(dH) + load_motion(scratch, at + D_ACCELERATION).dot(SH)
        dw = load3(scratch, at + D_SPEED)
        change, by_speed = change + 2.0 * dot(dw, pH), by_speed + dot(dw, SH.n)
        dH = dH + SH * e
        pass_on(m, i, at, own, up, PUSH, H, False, scratch)
        pass_on(m, i, at, own, up, D_PUSH, dH, True, scratch)

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
        pass_on_drag(m, i, at, own, up, DRAG, D, False, scratch)
        pass_on_drag(m, i, at, own, up, D_DRAG, dD, True, scratch)
        if loaded and m.parent[i] >= 0:  # and so each link has a record of its own
            L = load3(scratch, own + LOAD)
            add3(scratch, up + LOAD, L)
            add3(scratch, up + D_LOAD, add(load3(scratch, own + D_LOAD), scale(e, cross(S.w, L))))


@kernel
def vjp(m, q, v, a, y, force, point, torque, plan, by_q, by_v, by_a, scratch, start, stop):
    """Gradients of yᵀτ by the state, three times (states, n); loads (states or 1, 3 n), or (0, 3 n) for none;
    plan as in rnea_derivatives."""
    ok = finite((q, v, a, y, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        outward(m, plan, q, v, a, y, None, force, point, torque, N, r, scratch)
        inward(m, plan, y, len(force) > 0, by_q, by_v, by_a, r, scratch)
    return ok


@kernel
def hvp(m, q, v, a, y, dq, dv, da, force, point, torque, plan, by_q, by_v, by_a, scratch, start, stop):
    """Their changes along a direction (dq, dv, da)."""
    ok = finite((q, v, a, y, dq, dv, da, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        outward(m, plan, q, v, a, y, (dq, dv, da), force, point, torque, N_HVP, r, scratch)
        inward_along(m, plan, dq, len(force) > 0, by_q, by_v, by_a, r, scratch)
    return ok
