"""Products of the second derivatives of yᵀτ with a direction (hvp), O(n): how the gradient changes along it.

Along a direction (δq, δq̇, δq̈) what a link sees from its own frame changes by sums over its path to the root, (2) of
``rnea_hessian.py``,

    δY = Σ χ δq      δV = Σ (ψ̇ δq + S δq̇)      δ′A = δA − δV×V = Σ (ψ̈ δq + 2ψ̇ δq̇ + S δq̈)      E = Σ z δq

With ψ̇ = V×S, ψ̈ = A×S + V×ψ̇, χ = Y×S and s = S δq, t = S δq̇, b = S δq̈, a joint adds to them

    Y×s              x = V×s + t             A×s + V×(x + t) + b                                                     (1)

Sums that are handed on inward turn with the frames: δF_p += δF_j + s_j×*F_j, and H, D, Λ likewise.  The change of the
gradient, (1) of ``rnea_gradient.py``, is

    δ∂φ/∂q_j = z·δΛ − S·(δY×*F + Y×*δF + δ′A×*H + A×*δH + δV×*D + V×*(δD − V×*δH − 2 δV×*H))
    δ∂φ/∂q̇_j = S·(δD − 2(V×*δH + δV×*H))            δ∂φ/∂q̈_j = S·δH                                                 (2)

In the frame in which the link rests, δV = (δω, 0), and from the parent's frame to that of the link

    δa = δa_p + δ′α_p×d + 2δω_p×ν + what joint i adds
    δD_p += δD + s×D + 2δν×h + 2ν×δh                δν = δω_p×d + the linear part of x

A link's own mass adds, about its centre c and with ċ, J, h as there,

    δf = m (δa + δ′α×c + 2 δω×ċ)                 with the moment  Nδ′α − 2ω×Jδω + c×δf
    δd = 2J(δω×Ω + ω×δΩ) + 2(δċ×h + ċ×δh)        δċ = δω×c

Every inertia is N = λ1 + pqᵀ + qpᵀ, λ being its middle principal moment: of the others one is below it and one above.
To turn p and q to world axes and to form N there takes 27 multiplications; to turn the matrix would take 45.

**Joints in pairs.**  The hinges of a ball joint pass through one point, and the links between them have no mass.  Sums
over subtrees are then equal on both sides of such a link, and its motion serves both joints, the one that moves it and
the one that it carries: an axis is fixed in both links.  The vectors that S is multiplied by in (2) are formed once.

**What else takes time.**  Seven numbers are read and three written for each joint and state.  They are read W joints at
a time and transposed, and written likewise: one by one they took a fifth of the time.  Their sizes are looked at as
they are read, since a pass of its own would bring all of them from a slower memory a second time.  Sines and cosines of
W joints are formed in a loop of their own, whose turns do not wait for one another.  Where there are W states, the last
W are computed once more rather than fewer: rows are then whole (``lanes/rows.py``), and no block begins by clamping the
rows of each lane in ten arrays, which took as long as two joints.  ``hvp_turning`` has no code for sliding and loads.

Glossary (in addition to that of ``rnea_gradient.py``)
    δω δ′A δY 2δν    changes of ω, A, Y, 2ν                                             3, 6, 6, 3 slots
    δq               of joint i, for the way back                                       1
    E                sum over the path of joint i, with loads only                      3
    δF δH δD δΛ      changes of sums over subtree i                                     6, 6, 3, 3, of a record
    plan             (n, 5): as there, and in column ALSO the joint whose change is found with that of joint i, ALONE if
                     there is none, WITH_PARENT if joint i is found with its parent
    inertia          (n, 7): λ, p, q of each link, in its frame
    columns          W slots for each of q, q̇, q̈, y, δq, δq̇, δq̈, sin, cos of W joints, and later for the three results
"""

from kinegrad._kernels.compiler.jit import exact, inline, kernel
from kinegrad._kernels.compiler.width import WIDTH, lane_count
from kinegrad._kernels.joints import FRAME, SHIFT, axis, store_turned
from kinegrad._kernels.lanes.finite import LARGEST, finite
from kinegrad._kernels.lanes.lane import fetch, load, spread, store, unload, within
from kinegrad._kernels.lanes.rows import Whole, here
from kinegrad._kernels.lanes.trigonometry import sincos
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_gradient import (
    ACCELERATION,
    DRAG,
    FIRST,
    FLOW,
    FORCE,
    LEAF,
    LOAD,
    PUSH,
    RECORD,
    SPEED,
    SUM,
    UP,
    VIRTUAL,
    N,
    at_rest,
    enter,
    enter3,
    move,
    none,
    own_body,
    own_load,
)
from kinegrad._kernels.spatial import (
    Force,
    Motion,
    add,
    add3,
    add_cross,
    cross,
    dot,
    increase,
    load3,
    load9,
    load_force,
    load_motion,
    mul,
    put,
    row3,
    scale,
    store3,
    sub,
    symmul,
    zero3,
)  # fmt: skip

D_SPEED, D_ACCELERATION, D_VIRTUAL, D_FLOW, STEP = N, N + 3, N + 9, N + 15, N + 18  # δω | δ′A | δY | 2δν | δq
TURN, N_ALONG = N + 19, N + 22  # E | slots
D_FORCE, D_PUSH, D_DRAG, D_LOAD = SUM, SUM + 6, SUM + 12, SUM + 15  # of a record: δF | δH | δD | δΛ
SUM_ALONG = 2 * SUM
POSITION, VELOCITY, RATE, WEIGHT, D_POSITION, D_VELOCITY, D_RATE, SINE, COSINE, COLUMNS = range(10)  # columns
RESULTS = 3
ALSO, ALONE, WITH_PARENT = 4, -1, -2  # a column of plan, and what it holds besides joints


def slots(n: int, records: int) -> int:
    """Scratch slots for n joints and so many records."""
    return (n + 1) * N_ALONG + COLUMNS * WIDTH + RESULTS * n + records * SUM_ALONG


@exact
def both(a, b):
    """a + b of two sums, neither of which is to wait for the other: they are not made one."""
    return a + b


@inline
def both3(a, b):
    """The same of two vectors."""
    return both(a[0], b[0]), both(a[1], b[1]), both(a[2], b[2])


# --- outward ------------------------------------------------------------------------------------------------------


@inline
def joint_adds(w, alpha, s, t, b):
    """(1): what the angular, or linear, parts of s, t, b add to δω and δ′α, or to δν and δ′a."""
    x = add_cross(t, w, s)
    return x, add(add_cross(cross(alpha, s), w, add(x, t)), b)


@inline
def move_along(m, i, up, at, e, de, dde, slides, scratch):
    """Changes of the motion of link i along the direction (e, de, dde) of its joint, stored."""
    z, turn, slide = axis(scratch, at), m.rate[i, 0], m.rate[i, 1]
    w, A, dw = load3(scratch, at + SPEED), load_motion(scratch, at + ACCELERATION), load3(scratch, up + D_SPEED)
    s = scale(turn * e, z)
    x, alpha = joint_adds(w, A.w, s, scale(turn * de, z), scale(turn * dde, z))
    store3(scratch, at + D_SPEED, add(dw, x))
    dA = load_motion(scratch, up + D_ACCELERATION)
    v = add_cross(dA.v, A.v, s)
    if m.apart[i]:
        d = load3(scratch, at + SHIFT)
        v = add_cross(add_cross(v, dA.w, d), dw, load3(scratch, at + FLOW))
        store3(scratch, at + D_FLOW, scale(2.0, cross(dw, d)))
    put(scratch, at + D_ACCELERATION, Motion(add(dA.w, alpha), v))
    Y, dY = load_motion(scratch, at + VIRTUAL), load_motion(scratch, up + D_VIRTUAL)
    v = add_cross(dY.v, Y.v, s)
    if m.apart[i]:
        v = add_cross(v, dY.w, load3(scratch, at + SHIFT))
    put(scratch, at + D_VIRTUAL, Motion(add_cross(dY.w, Y.w, s), v))
    store(scratch, at + STEP, e)
    if slides and slide != 0.0:
        slide_along(i, at, scale(slide * e, z), scale(slide * de, z), scale(slide * dde, z), scratch)


@inline
def slide_along(i, at, s, t, b, scratch):
    """What the linear parts of s, t, b of joint i add to that."""
    flow, v = joint_adds(load3(scratch, at + SPEED), load3(scratch, at + ACCELERATION), s, t, b)
    add3(scratch, at + D_FLOW, scale(2.0, flow))
    add3(scratch, at + D_ACCELERATION + 3, v)
    add3(scratch, at + D_VIRTUAL + 3, cross(load3(scratch, at + VIRTUAL), s))


@inline
def read(x, r, whole, k, count, scratch, slot):
    """Columns k … k+count−1, at most W, of the rows from r on to slots; returns the sum of their squares."""
    if whole:
        total = fetch(x, Whole(here(r)), k, count, scratch, slot)
    else:
        total = fetch(x, here(r), k, count, scratch, slot)
    return total


@inline
def outward(m, arguments, loaded, slides, columns, r, whole, scratch):
    """Motion and virtual motion of all links and their changes; returns the sum of the squares of what was read."""
    n, W, total = len(m.parent), lane_count(), spread(0.0)
    at_rest(m, scratch)
    for k in range(D_SPEED, STEP, 3):
        store3(scratch, k, zero3())
    store3(scratch, TURN, zero3())
    for start in range(0, n, W):
        first, k = max(0, min(start, n - W)), columns  # the last W once more, rather than fewer
        for x in arguments:
            total = both(total, read(x, r, whole, first, min(W, n), scratch, k))
            k = k + W
        for i in range(start, min(start + W, n)):
            k = columns + i - first
            s, c = sincos(m.rate[i, 0] * load(scratch, k + POSITION * W))
            store(scratch, k + SINE * W, s)
            store(scratch, k + COSINE * W, c)
        for i in range(start, min(start + W, n)):
            up, at, k = (m.parent[i] + 1) * N_ALONG, (i + 1) * N_ALONG, columns + i - first
            q, s, c = (load(scratch, k + x * W) for x in (POSITION, SINE, COSINE))
            store_turned(m, i, up, at, q, s, c, scratch)
            v, a, y = (load(scratch, k + x * W) for x in (VELOCITY, RATE, WEIGHT))
            move(m, i, up, at, v, a, y, scratch, slides)
            e, de, dde = (load(scratch, k + x * W) for x in (D_POSITION, D_VELOCITY, D_RATE))
            move_along(m, i, up, at, e, de, dde, slides, scratch)
            if loaded:
                turned = scale(m.rate[i, 0] * e, axis(scratch, at))
                store3(scratch, at + TURN, add(load3(scratch, up + TURN), turned))
    return total


# --- inward -------------------------------------------------------------------------------------------------------


@inline
def turned_inertia(R, inertia, i):
    """N of link i in world axes, λ1 + pqᵀ + qpᵀ."""
    base, p, q = inertia[i, 0], mul(R, row3(inertia, i, 1)), mul(R, row3(inertia, i, 4))
    return (
        base + p[0] * q[0] + p[0] * q[0],
        base + p[1] * q[1] + p[1] * q[1],
        base + p[2] * q[2] + p[2] * q[2],
        p[0] * q[1] + p[1] * q[0],
        p[0] * q[2] + p[2] * q[0],
        p[1] * q[2] + p[2] * q[1],
    )


@inline
def body_along(m, i, inertia, at, own, only, scratch):
    """f, h and d of link i, and how they change, to the sums of its children, if it has any."""
    R = load9(scratch, at + FRAME)
    c, I = mul(R, row3(m.inertia, i, 1)), turned_inertia(R, inertia, i)
    mass, J, w, dc, W, h = own_body(m, i, c, I, at, own, only, scratch)
    dw, dA = load3(scratch, at + D_SPEED), load_motion(scratch, at + D_ACCELERATION)
    f = scale(mass, add_cross(dA.at(c).v, scale(2.0, dw), dc))
    n = sub(symmul(I, dA.w), cross(w, scale(2.0, symmul(J, dw))))
    enter(scratch, own + D_FORCE, Force(add_cross(n, c, f), f), only)
    d, g = cross(cross(dw, c), h), cross(dw, W)
    dY = load_motion(scratch, at + D_VIRTUAL)
    h = scale(mass, dY.at(c).v)
    enter(scratch, own + D_PUSH, Force(add_cross(symmul(I, dY.w), c, h), h), only)
    d = add(add_cross(d, dc, h), symmul(J, add_cross(g, w, dY.w)))
    enter3(scratch, own + D_DRAG, scale(2.0, d), only)


@inline
def load_along(m, i, r, at, own, force, point, torque, only, scratch):
    """What the load on link i takes off f, its λ, and how both change."""
    f, e, x, Y = own_load(m, i, r, at, own, N_ALONG, force, point, torque, only, scratch)
    dY, E = load_motion(scratch, at + D_VIRTUAL), load3(scratch, at + TURN)
    df, de = cross(E, f), cross(E, e)
    increase(scratch, own + D_FORCE, Force(add(cross(x, df), de), df))
    by_motion = add(cross(f, dY.at(x).v), cross(e, dY.w))
    enter3(scratch, own + D_LOAD, add(by_motion, add(cross(Y.v, df), cross(Y.w, de))), only)


@inline
def change(m, i, also, at, own, loaded, results, scratch):
    """(2), of joint i, and of joint `also` if it is one; where they slide, `slide_change` adds what is left out."""
    w, dw = load3(scratch, at + SPEED), load3(scratch, at + D_SPEED)
    H, dH = load_force(scratch, own + PUSH), load_force(scratch, own + D_PUSH)
    dwH = cross(dw, H.n)
    turned = add_cross(dwH, w, dH.n)
    A, dA = load_motion(scratch, at + ACCELERATION), load_motion(scratch, at + D_ACCELERATION)
    k = both3(add_cross(cross(dA.w, H.n), dA.v, H.f), add_cross(cross(A.w, dH.n), A.v, dH.f))
    speed = sub(load3(scratch, own + D_DRAG), turned)
    k = both3(k, add_cross(cross(dw, load3(scratch, own + DRAG)), w, sub(speed, dwH)))
    F, dF = load_force(scratch, own + FORCE), load_force(scratch, own + D_FORCE)
    Y, dY = load_motion(scratch, at + VIRTUAL), load_motion(scratch, at + D_VIRTUAL)
    k = both3(k, both3(add_cross(cross(dY.w, F.n), dY.v, F.f), add_cross(cross(Y.w, dF.n), Y.v, dF.f)))
    if loaded:
        k = sub(k, load3(scratch, own + D_LOAD))
    speed = sub(speed, turned)
    about_axis(m, i, k, speed, dH.n, results, scratch)
    if also >= 0:
        about_axis(m, also, k, speed, dH.n, results, scratch)


@inline
def about_axis(m, i, k, speed, push, results, scratch):
    """What a joint that turns has of the three vectors of (2)."""
    n, z, turn = len(m.parent), axis(scratch, (i + 1) * N_ALONG), m.rate[i, 0]
    store(scratch, results + i, -turn * dot(z, k))
    store(scratch, results + n + i, turn * dot(z, speed))
    store(scratch, results + 2 * n + i, turn * dot(z, push))


@inline
def slide_change(m, i, at, own, out, n, scratch):
    """What the linear part of S adds to (2)."""
    z = scale(m.rate[i, 1], axis(scratch, at))
    w, dw = load3(scratch, at + SPEED), load3(scratch, at + D_SPEED)
    h, dh = load3(scratch, own + PUSH + 3), load3(scratch, own + D_PUSH + 3)
    alpha, dalpha = load3(scratch, at + ACCELERATION), load3(scratch, at + D_ACCELERATION)
    dwh = cross(dw, h)
    turned = add_cross(dwh, w, dh)
    f = sub(add_cross(cross(dalpha, h), alpha, dh), cross(w, add(turned, dwh)))
    f = add_cross(f, load3(scratch, at + D_VIRTUAL), load3(scratch, own + FORCE + 3))
    f = add_cross(f, load3(scratch, at + VIRTUAL), load3(scratch, own + D_FORCE + 3))
    store(scratch, out, load(scratch, out) - dot(z, f))
    store(scratch, out + n, load(scratch, out + n) - 2.0 * dot(z, turned))
    store(scratch, out + 2 * n, load(scratch, out + 2 * n) + dot(z, dh))


@inline
def turn_on(m, i, at, own, up, slot, first, s, scratch):
    """A force sum of subtree i and, turned by s, its change to the record of its parent; returns their linear parts."""
    F, dF = load_force(scratch, own + slot), load_force(scratch, own + SUM + slot)
    dF = Force(add_cross(dF.n, s, F.n), add_cross(dF.f, s, F.f))
    if m.apart[i]:
        d = load3(scratch, at + SHIFT)
        F, dF = F.before(d), dF.before(d)
    if first:  # the record is the same
        if m.apart[i]:
            store3(scratch, up + slot, F.n)
        put(scratch, up + SUM + slot, dF)
    else:
        increase(scratch, up + slot, F)
        increase(scratch, up + SUM + slot, dF)
    return F.f, dF.f


@inline
def hand_on(m, i, at, own, up, first, loaded, slides, scratch):
    """Sums over subtree i, and their changes, to the record of its parent."""
    e = load(scratch, at + STEP)
    if slides and m.rate[i, 1] != 0.0:
        s = scale(m.rate[i, 1] * e, axis(scratch, at))
        for slot in (FORCE, PUSH):
            add3(scratch, own + SUM + slot, cross(s, load3(scratch, own + slot + 3)))
    s = scale(m.rate[i, 0] * e, axis(scratch, at))
    turn_on(m, i, at, own, up, FORCE, first, s, scratch)
    h, dh = turn_on(m, i, at, own, up, PUSH, first, s, scratch)
    D = load3(scratch, own + DRAG)
    dD = add_cross(load3(scratch, own + D_DRAG), s, D)
    if m.apart[i]:
        flow = load3(scratch, at + FLOW)
        D = add_cross(D, flow, h)
        dD = add_cross(add_cross(dD, load3(scratch, at + D_FLOW), h), flow, dh)
    if not first or m.apart[i]:
        enter3(scratch, up + DRAG, D, first)
    enter3(scratch, up + D_DRAG, dD, first)
    if loaded:
        L, dL = load3(scratch, own + LOAD), load3(scratch, own + D_LOAD)
        if not first:
            add3(scratch, up + LOAD, L)
        enter3(scratch, up + D_LOAD, add_cross(dL, s, L), first)


@inline
def write(found, r, n, scratch, slot):
    """The results, n slots each, to their rows r."""
    for x in found:
        unload(x, r, scratch, slot)
        slot = slot + n


@inline
def inward(m, plan, inertia, force, point, torque, found, loaded, slides, results, r, whole, scratch):
    """The change of the gradient, and sums over subtrees."""
    n, sums = len(m.parent), results + RESULTS * len(m.parent)
    for i in range(n - 1, -1, -1):
        at, out, first, only = (i + 1) * N_ALONG, results + i, plan[i, FIRST], plan[i, LEAF]
        own, up = sums + plan[i, RECORD] * SUM_ALONG, sums + plan[i, UP] * SUM_ALONG
        if m.massive[i]:
            body_along(m, i, inertia, at, own, only, scratch)
        elif only:
            none(scratch, own, SUM_ALONG)
        if loaded:
            load_along(m, i, here(r), at, own, force, point, torque, only, scratch)
        if plan[i, ALSO] != WITH_PARENT:
            change(m, i, plan[i, ALSO], at, own, loaded, results, scratch)
        if slides and m.rate[i, 1] != 0.0:
            slide_change(m, i, at, own, out, n, scratch)
        if m.parent[i] >= 0:
            hand_on(m, i, at, own, up, first, loaded, slides, scratch)
    if whole:
        write(found, Whole(r), n, scratch, results)
    else:
        write(found, here(r), n, scratch, results)


@inline
def products(m, arguments, loads, loaded, slides, plan, inertia, found, scratch, start, stop):
    """All states, W at a time; returns whether their numbers are finite."""
    worst = finite(loads, start, stop)
    if not worst:
        return worst
    m, W = unpack(m), lane_count()
    columns = (len(m.parent) + 1) * N_ALONG
    results, whole = columns + COLUMNS * W, stop - start >= W
    for r in range(start, stop, W):
        if whole:
            r = min(r, stop - W)
        total = outward(m, arguments, loaded, slides, columns, r, whole, scratch)
        if not within(total, LARGEST * LARGEST):
            ok = finite(arguments, r, min(r + W, stop))
            if not ok:
                return ok
            worst = max(worst, ok)
        inward(m, plan, inertia, *loads, found, loaded, slides, results, r, whole, scratch)
    return worst


@kernel
def hvp(m, q, v, a, y, dq, dv, da, force, point, torque, plan, inertia, by_q, by_v, by_a, scratch, start, stop):
    """Changes of the gradients of yᵀτ by the state, three times (states, n), along a direction (dq, dv, da); loads
    (states or 1, 3 n), or (0, 3 n) for none; plan (n, 5), inertia (n, 7).  Results must not overlap arguments: some
    states are read again after theirs are written."""
    state, loads, found = (q, v, a, y, dq, dv, da), (force, point, torque), (by_q, by_v, by_a)
    return products(m, state, loads, len(force) > 0, True, plan, inertia, found, scratch, start, stop)


@kernel
def hvp_turning(m, q, v, a, y, dq, dv, da, force, point, torque, plan, inertia, by_q, by_v, by_a, scratch, start, stop):
    """The same where no joint slides and there are no loads: without that code the rest is faster."""
    state, loads, found = (q, v, a, y, dq, dv, da), (force, point, torque), (by_q, by_v, by_a)
    return products(m, state, loads, False, False, plan, inertia, found, scratch, start, stop)
