"""Gradient of yᵀτ with respect to q, q̇ and q̈ (vjp), products of its second derivatives with a direction (hvp), O(n).

The gradient is (3) of ``rnea_hessian.py``: with sums over subtree j, F = Σ f, H = Σ I Y, D = Σ 2B(V)ᵀY, Λ = Σ LᵀY,

    ∂φ/∂q_j = χ_j·F + ψ̈_j·H + ψ̇_j·D + z_j·Λ       ∂φ/∂q̇_j = 2ψ̇_j·H + S_j·D       ∂φ/∂q̈_j = S_j·H

and springs, dampers and rotors; D and Λ have no linear part.  Along a direction (δq, δq̇, δq̈) what a link sees from its
own frame changes by sums over its path to the root, (2) there,

    δY = Σ χ δq      δV = Σ (ψ̇ δq + S δq̇)      δA − δV×V = Σ (ψ̈ δq + 2ψ̇ δq̇ + S δq̈)      E = Σ z δq

so that, with each link's own I, 2B, L and Q, and δ′A for the third of them,

    δf = I δ′A + 2B δV + L E      δh = I δY      δd = 2Bᵀ δY − 2B_Yᵀ δV      δλ = Lᵀ δY + Q E

Handed on inward these turn with the frames, δF_p += δF_j + δq_j S_j×*F_j, and H, D, Λ likewise.  The product is

    δ∂φ/∂q_j = δY·(S×*F) + χ·δF + δ′A·(S×*H) + δV·(2ψ̇×*H + S×*D) + ψ̈·δH + ψ̇·δD + z·δΛ
    δ∂φ/∂q̇_j = 2 δV·(S×*H) + 2ψ̇·δH + S·δD            δ∂φ/∂q̈_j = S·δH

with δY, δV, δ′A of link j.  Path vectors need not be kept: as V, A, Y of link j serve as well as its parent's,
ψ̇ = V×S, ψ̈ = A×S + V×ψ̇, χ = Y×S, and so the gradient is

    ∂φ/∂q_j = z_j·Λ − S_j·(Y×*F + A×*H + V×*(D − V×*H))               ∂φ/∂q̇_j = S_j·(D − 2 V×*H)

No inertia is summed over subtrees, so a link's own is taken about its centre of mass c: with N its inertia there, ċ and
u the velocity and the virtual velocity of c, and ω, Ω the angular parts of V and Y,

    d  = N(Ω×ω) + Nω×Ω + ω×NΩ + 2m ċ×u
    δf = m (δ′a + 2 δω×ċ)        with the moment  N(δ′α − ω×δω) + ω×Nδω + δω×Nω + c×δf          (δ′a at c)
    δd = N(δΩ×ω − δω×Ω) + Nω×δΩ + ω×NδΩ + Nδω×Ω + δω×NΩ + 2m (ċ×δu + δċ×u)

Glossary (world axes, about the reference point of link i; 6-vectors are (angular, linear) pairs)
    V A Y            velocity, acceleration, virtual velocity of link i                6 slots each
    F H D Λ          sums over subtree i                                               6, 6, 3, 3
    δV δ′A δY E      sums over the path of joint i, hvp only                           6, 6, 6, 3
    δF δH δD δΛ      sums over subtree i, hvp only                                     6, 6, 3, 3
    home             the joint in whose slots the sums of subtree i are, as in ``rnea_derivatives.py``
    along            (δq, δq̇, δq̈), three arrays (states, n), or None for the gradient alone
"""

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import (
    FRAME,
    FREE,
    axis,
    carried,
    falling,
    handed_on,
    move,
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

VELOCITY, ACCELERATION, VIRTUAL = FREE, FREE + 6, FREE + 12  # V | A | Y
FORCE, PUSH, DRAG, LOAD, N = FREE + 18, FREE + 24, FREE + 30, FREE + 33, FREE + 36  # F | H | D | Λ | slots, vjp
D_VELOCITY, D_ACCELERATION, D_VIRTUAL, TURN = N, N + 6, N + 12, N + 18  # δV | δ′A | δY | E
D_FORCE, D_PUSH, D_DRAG, D_LOAD, N_HVP = N + 21, N + 27, N + 33, N + 36, N + 39  # δF | δH | δD | δΛ | slots, hvp


@inline
def own_body(m, i, at, V, A, Y, dV, dA, dY, scratch):
    """f, h and d of link i, and how they change, if it is given how V, A and Y do."""
    R, mass = load9(scratch, at + FRAME), m.inertia[i, 0]
    c, I = mul(R, row3(m.inertia, i, 1)), congruence(R, row6(m.inertia, i, 4))  # noqa: E741 (the book's symbol)
    w, Iw, IY = V.w, symmul(I, V.w), symmul(I, Y.w)
    dc, u = V.at(c).v, Y.at(c).v
    f, h = scale(mass, add(A.at(c).v, cross(w, dc))), scale(mass, u)
    put(scratch, at + FORCE, Force(add(add(symmul(I, A.w), cross(w, Iw)), cross(c, f)), f))
    put(scratch, at + PUSH, Force(add(IY, cross(c, h)), h))
    d = add(symmul(I, cross(Y.w, w)), add(cross(Iw, Y.w), cross(w, IY)))
    store3(scratch, at + DRAG, add(d, scale(2.0, cross(dc, h))))
    if dV is None:
        return
    x, y = dY.w, dV.w
    Ix, Iy = symmul(I, x), symmul(I, y)
    f, h = scale(mass, add(dA.at(c).v, scale(2.0, cross(y, dc)))), scale(mass, dY.at(c).v)
    n = add(symmul(I, sub(dA.w, cross(w, y))), add(cross(w, Iy), cross(y, Iw)))
    put(scratch, at + D_FORCE, Force(add(n, cross(c, f)), f))
    put(scratch, at + D_PUSH, Force(add(Ix, cross(c, h)), h))
    d = symmul(I, sub(cross(x, w), cross(y, Y.w)))
    d = add(d, add(add(cross(Iw, x), cross(w, Ix)), add(cross(Iy, Y.w), cross(y, IY))))
    moved = add(cross(dc, h), cross(scale(mass, dV.at(c).v), u))
    store3(scratch, at + D_DRAG, add(d, scale(2.0, moved)))


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
def own_load(m, i, r, up, at, stride, force, point, torque, Y, dY, along, scratch):
    """What the load on link i takes off f, its λ, and how both change along a direction, if it is given how Y does."""
    f, e = gather3(force, r, 3 * i), gather3(torque, r, 3 * i)
    x = link_point(m, i, scratch, stride, gather3(point, r, 3 * i))
    u = Y.at(x).v
    put(scratch, at + FORCE, load_force(scratch, at + FORCE) - Force(add(cross(x, f), e), f))
    store3(scratch, at + LOAD, add(cross(f, u), cross(e, Y.w)))
    if dY is None:
        return
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
    rest(scratch, VELOCITY)
    rest(scratch, VIRTUAL)
    falling(m, scratch, ACCELERATION)
    if along is not None:
        for k in range(D_VELOCITY, D_FORCE, 3):
            store3(scratch, k, zero3())
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * stride, (i + 1) * stride
        store_frame(m, i, up, at, gather(q, r, i), scratch)
        dV, dA, dY = None, None, None
        if along is None:
            V, A = move(m, i, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, i), gather(a, r, i))
            Y = carried(m, i, up + VIRTUAL, at, scratch) + subspace(m, i, scratch, at) * gather(y, r, i)
            put(scratch, at + VIRTUAL, Y)
        else:
            V, A, Y, dV, dA, dY = move_along(m, i, up, at, q, v, a, y, along, r, scratch)
        if m.massive[i]:
            own_body(m, i, at, V, A, Y, dV, dA, dY, scratch)
        else:
            no_body(plan, i, at, stride, scratch)
        if len(force) > 0:
            own_load(m, i, r, up, at, stride, force, point, torque, Y, dY, along, scratch)


@inline
def bracket(V, z, turn, slide):
    """V × S, S = (turn z, slide z): one cross product less."""
    wz = cross(V.w, z)
    return Motion(scale(turn, wz), add(scale(slide, wz), scale(turn, cross(V.v, z))))


@inline
def dual_bracket(z, turn, slide, F):
    """S ×* F, likewise."""
    zf = cross(z, F.f)
    return Force(add(scale(turn, cross(z, F.n)), scale(slide, zf)), scale(turn, zf))


@inline
def move_along(m, i, up, at, q, v, a, y, along, r, scratch):
    """V, A, Y of link i, and how they change, stored."""
    V, A, Y = (carried(m, i, up + slot, at, scratch) for slot in (VELOCITY, ACCELERATION, VIRTUAL))
    S, speed, z, turn, slide = (
        subspace(m, i, scratch, at),
        gather(v, r, i),
        axis(scratch, at),
        m.rate[i, 0],
        m.rate[i, 1],
    )
    dS, X = bracket(V, z, turn, slide), bracket(Y, z, turn, slide)
    ddS = bracket(A, z, turn, slide) + V.cross(dS)
    V, A, Y = V + S * speed, A + (S * gather(a, r, i) + dS * speed), Y + S * gather(y, r, i)
    e, de, dde = (gather(x, r, i) for x in along)
    dV = carried(m, i, up + D_VELOCITY, at, scratch) + (dS * e + S * de)
    dA = carried(m, i, up + D_ACCELERATION, at, scratch) + (ddS * e + (dS * (2.0 * de) + S * dde))
    dY = carried(m, i, up + D_VIRTUAL, at, scratch) + X * e
    for slot, x in ((VELOCITY, V), (ACCELERATION, A), (VIRTUAL, Y)):
        put(scratch, at + slot, x)
    for slot, x in ((D_VELOCITY, dV), (D_ACCELERATION, dA), (D_VIRTUAL, dY)):
        put(scratch, at + slot, x)
    return V, A, Y, dV, dA, dY


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
def inward(m, plan, y, loaded, by_q, by_v, by_a, r, scratch):
    """The gradient, and sums over subtrees."""
    for i in range(len(m.parent) - 1, -1, -1):
        at, own, weight = (i + 1) * N, (plan[i, HOME] + 1) * N, gather(y, r, i)
        V, A, Y = (load_motion(scratch, at + slot) for slot in (VELOCITY, ACCELERATION, VIRTUAL))
        F, H, D = load_force(scratch, own + FORCE), load_force(scratch, own + PUSH), load3(scratch, own + DRAG)
        z, turn, slide = axis(scratch, at), m.rate[i, 0], m.rate[i, 1]
        VH = V.cross(H)
        speed = Force(sub(D, VH.n), scale(-1.0, VH.f))

        # −S·(Y×*F + A×*H + V×*(D − V×*H)); what S slides along is left out where it does not
        n = add(add(cross(Y.w, F.n), cross(Y.v, F.f)), add(cross(A.w, H.n), cross(A.v, H.f)))
        n = add(n, add(cross(V.w, speed.n), cross(V.v, speed.f)))
        by_position, by_speed, by_acceleration = -turn * dot(z, n), sub(speed.n, VH.n), turn * dot(z, H.n)
        by_speed = turn * dot(z, by_speed)
        if slide != 0.0:
            f = add(add(cross(Y.w, F.f), cross(A.w, H.f)), cross(V.w, speed.f))
            by_position = by_position - slide * dot(z, f)
            by_speed = by_speed - 2.0 * slide * dot(z, VH.f)
            by_acceleration = by_acceleration + slide * dot(z, H.f)
        if loaded:
            by_position = by_position + turn * dot(z, load3(scratch, own + LOAD))
        scatter(by_q, r, i, by_position + m.passive[i, 0] * weight)
        scatter(by_v, r, i, by_speed + m.passive[i, 2] * weight)
        scatter(by_a, r, i, by_acceleration + m.passive[i, 3] * weight)
        if m.parent[i] >= 0:
            up = (plan[m.parent[i], HOME] + 1) * N
            pass_on(m, i, at, own, up, FORCE, F, False, scratch)
            pass_on(m, i, at, own, up, PUSH, H, False, scratch)
            if up != own:
                add3(scratch, up + DRAG, D)
            if loaded:
                add3(scratch, up + LOAD, load3(scratch, own + LOAD))


@inline
def inward_along(m, plan, dq, loaded, by_q, by_v, by_a, r, scratch):
    """The change of the gradient, and sums over subtrees."""
    for i in range(len(m.parent) - 1, -1, -1):
        at, own, e = (i + 1) * N_HVP, (plan[i, HOME] + 1) * N_HVP, gather(dq, r, i)
        S, z, turn, slide = subspace(m, i, scratch, at), axis(scratch, at), m.rate[i, 0], m.rate[i, 1]
        V, A, Y = (load_motion(scratch, at + slot) for slot in (VELOCITY, ACCELERATION, VIRTUAL))
        dS, X = bracket(V, z, turn, slide), bracket(Y, z, turn, slide)
        ddS = bracket(A, z, turn, slide) + V.cross(dS)
        dV, dA, dY = (load_motion(scratch, at + slot) for slot in (D_VELOCITY, D_ACCELERATION, D_VIRTUAL))
        F, H, dF, dH = (load_force(scratch, own + slot) for slot in (FORCE, PUSH, D_FORCE, D_PUSH))
        D, dD = load3(scratch, own + DRAG), load3(scratch, own + D_DRAG)
        SF, SH, SD = dual_bracket(z, turn, slide, F), dual_bracket(z, turn, slide, H), cross(S.w, D)
        change = dY.dot(SF) + X.dot(dF) + dA.dot(SH) + 2.0 * dV.dot(dS.cross(H)) + dot(dV.w, SD)
        change = change + ddS.dot(dH) + dot(dS.w, dD)
        if loaded:
            change = change + dot(S.w, load3(scratch, own + D_LOAD))
        scatter(by_q, r, i, change)
        scatter(by_v, r, i, 2.0 * (dV.dot(SH) + dS.dot(dH)) + dot(S.w, dD))
        scatter(by_a, r, i, S.dot(dH))
        if m.parent[i] >= 0:
            up = (plan[m.parent[i], HOME] + 1) * N_HVP
            pass_on(m, i, at, own, up, FORCE, F, False, scratch)
            pass_on(m, i, at, own, up, PUSH, H, False, scratch)
            pass_on(m, i, at, own, up, D_FORCE, dF + SF * e, True, scratch)
            pass_on(m, i, at, own, up, D_PUSH, dH + SH * e, True, scratch)
            dD = add(dD, scale(e, SD))
            if up != own:
                add3(scratch, up + DRAG, D)
                add3(scratch, up + D_DRAG, dD)
            else:
                store3(scratch, up + D_DRAG, dD)
            if loaded:  # and so each link has a record of its own
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
