"""Gradient of yᵀτ with respect to q, q̇ and q̈ (vjp), O(n); ``rnea_hessian_product.py`` has how it changes.

The gradient is (3) of ``rnea_hessian.py``: with sums over subtree j, F = Σ f, H = Σ I Y, D = Σ 2B(V)ᵀY, Λ = Σ LᵀY,

    ∂φ/∂q_j = χ_j·F + ψ̈_j·H + ψ̇_j·D + z_j·Λ       ∂φ/∂q̇_j = 2ψ̇_j·H + S_j·D       ∂φ/∂q̈_j = S_j·H

and springs, dampers and rotors; D and Λ have no linear part.  In ψ̇ = V×S, ψ̈ = A×S + V×ψ̇, χ = Y×S the motion of link j
serves as well as its parent's, and so

    ∂φ/∂q_j = z·Λ − S·(Y×*F + A×*H + V×*(D − V×*H))        ∂φ/∂q̇_j = S·(D − 2 V×*H)        ∂φ/∂q̈_j = S·H         (1)

**For each link a frame in which it rests.**  All this holds in every frame that moves uniformly and does not turn.
For each link that one is taken in which its reference point is just at rest.  Then V = (ω, 0), V×* is ω× of both parts,
and the linear part a of A is the acceleration of the point.  Seen from its parent's frame, the point moves at
ν = ω_p×d + ηq̇z, and from one to the other

    a = a_p + α_p×d + ω_p×(ν + ηq̇z) + ηq̈z          D_p += D + 2ν×h          h = linear part of H                     (2)

No inertia is summed over subtrees, so a link's own is taken about its centre of mass c: with N its inertia there, its
second moments J = ½ tr N − N, ċ = ω×c, h = m times the virtual velocity of c, and Ω the angular part of Y,

    d  = 2J(ω×Ω) + 2ċ×h                          because (Nx)×y + x×(Ny) = (tr N − N)(x×y)

Registers hold one kind of sum at a time, so a pass reads what it needs when it needs it, and hands on each sum before
it takes up the next.  Sums are in records: a link finds those of its children in its own, adds its body and its load,
and leaves the record to its parent, unless another child has left one before.

Glossary (world axes, about the reference point of link i, in its frame; 6-vectors are (angular, linear) pairs)
    ω A Y            angular velocity, acceleration, virtual velocity of link i        3, 6, 6 slots
    2ν               twice the velocity of the reference point in the parent's frame   3, only where they are apart
    F H D Λ          sums over subtree i                                                6, 6, 3, 3, of a record
    plan             (n, 4): the record of subtree i, that of its parent, whether link i has no children, and whether
                     both records are one, since it is the first child that hands on
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

SPEED, ACCELERATION, VIRTUAL, FLOW, N = FREE, FREE + 3, FREE + 9, FREE + 15, FREE + 18  # ω | A | Y | 2ν | slots
FORCE, PUSH, DRAG, LOAD, SUM = 0, 6, 12, 15, 18  # of a record: F | H | D | Λ | slots
RECORD, UP, LEAF, FIRST = 0, 1, 2, 3  # columns of plan


def slots(n: int, records: int) -> int:
    """Scratch slots for n joints and so many records."""
    return (n + 1) * N + records * SUM


# --- outward ------------------------------------------------------------------------------------------------------


@inline
def move(m, i, up, at, speed, acceleration, weight, scratch, slides=True):
    """ω, A, Y of link i from its parent's, stored; `slides`: whether any joint does."""
    w, A, Y = load3(scratch, up + SPEED), load_motion(scratch, up + ACCELERATION), load_motion(scratch, up + VIRTUAL)
    z, turn, slide = axis(scratch, at), m.rate[i, 0], m.rate[i, 1]
    if m.apart[i]:
        d = load3(scratch, at + SHIFT)
        flow = cross(w, d)
        A, Y = Motion(A.w, add(A.v, add(cross(A.w, d), cross(w, flow)))), Y.at(d)
        store3(scratch, at + FLOW, scale(2.0, flow))
    p = cross(w, z)
    if slides and slide != 0.0:
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
def at_rest(m, scratch):
    """The world: it does not turn, and accelerates at −g."""
    store_world(scratch)
    store3(scratch, SPEED, zero3())
    falling(m, scratch, ACCELERATION)
    rest(scratch, VIRTUAL)


@inline
def outward(m, q, v, a, y, r, scratch):
    """Motion and virtual motion of all links."""
    at_rest(m, scratch)
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        store_frame(m, i, up, at, gather(q, r, i), scratch)
        move(m, i, up, at, gather(v, r, i), gather(a, r, i), gather(y, r, i), scratch)


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
def own_body(m, i, c, I, at, own, only, scratch):
    """f, h and d of link i, with c and N as given, to the sums of its children, if it has any; returns what more can be
    made of: m, J, ω, ċ, Ω, h."""
    mass = m.inertia[i, 0]
    half = 0.5 * (m.inertia[i, 4] + m.inertia[i, 5] + m.inertia[i, 6])  # ½ tr N
    J = half - I[0], half - I[1], half - I[2], -I[3], -I[4], -I[5]
    w, A = load3(scratch, at + SPEED), load_motion(scratch, at + ACCELERATION)
    dc = cross(w, c)
    f = scale(mass, add_cross(A.at(c).v, w, dc))
    enter(scratch, own + FORCE, Force(add_cross(add_cross(symmul(I, A.w), w, symmul(I, w)), c, f), f), only)
    Y = load_motion(scratch, at + VIRTUAL)
    h = scale(mass, Y.at(c).v)
    enter(scratch, own + PUSH, Force(add_cross(symmul(I, Y.w), c, h), h), only)
    enter3(scratch, own + DRAG, scale(2.0, add_cross(symmul(J, cross(w, Y.w)), dc, h)), only)
    return mass, J, w, dc, Y.w, h


@inline
def own_load(m, i, r, at, own, stride, force, point, torque, only, scratch):
    """What the load on link i takes off f, and its λ; returns what more can be made of: its force and torque, where it
    is applied, and the virtual velocity there."""
    f, e = gather3(force, r, 3 * i), gather3(torque, r, 3 * i)
    x = link_point(m, i, scratch, stride, gather3(point, r, 3 * i))
    Y = load_motion(scratch, at + VIRTUAL)
    u = Y.at(x).v
    put(scratch, own + FORCE, load_force(scratch, own + FORCE) - Force(add_cross(e, x, f), f))
    enter3(scratch, own + LOAD, add_cross(cross(f, u), e, Y.w), only)
    return f, e, x, Motion(Y.w, u)


@inline
def none(scratch, own, last):
    """Sums of a link that has neither mass nor children."""
    for k in range(0, last, 3):
        store3(scratch, own + k, zero3())


@inline
def inward(m, plan, y, force, point, torque, by_q, by_v, by_a, r, scratch):
    """The gradient, and sums over subtrees, one kind after the other."""
    sums, loaded = (len(m.parent) + 1) * N, len(force) > 0
    for i in range(len(m.parent) - 1, -1, -1):
        at, first, weight = (i + 1) * N, plan[i, FIRST], gather(y, r, i)
        own, up = sums + plan[i, RECORD] * SUM, sums + plan[i, UP] * SUM
        if m.massive[i]:
            R = load9(scratch, at + FRAME)
            c, I = mul(R, row3(m.inertia, i, 1)), congruence(R, row6(m.inertia, i, 4))
            own_body(m, i, c, I, at, own, plan[i, LEAF], scratch)
        elif plan[i, LEAF]:
            none(scratch, own, SUM)
        if loaded:
            own_load(m, i, r, at, own, N, force, point, torque, plan[i, LEAF], scratch)
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


@kernel
def vjp(m, q, v, a, y, force, point, torque, plan, by_q, by_v, by_a, scratch, start, stop):
    """Gradients of yᵀτ by the state, three times (states, n); loads (states or 1, 3 n), or (0, 3 n) for none;
    plan (n, 4)."""
    ok = finite((q, v, a, y, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        outward(m, q, v, a, y, r, scratch)
        inward(m, plan, y, force, point, torque, by_q, by_v, by_a, r, scratch)
    return ok
