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

**Joint frames.**  What a link sees from its own frame are the changes of components there, and so all vectors are given
by these (``joint_frames.py``).  Ten are turned outward, ten inward, by four multiplications each, or eight where axes
are neither parallel nor at right angles.  In return c, N and d are constants, there are no rotation matrices, products
with z take two multiplications, and of (2) only components along z are formed: a fifth fewer than in world axes.

**What else takes time.**  Seven numbers are read and three written for each joint and state.  They are read W joints at
a time and transposed, and written likewise: one by one they took a fifth of the time.  Their sizes are looked at as
they are read, since a pass of its own would bring all of them from a slower memory a second time.  Sines and cosines of
W joints are formed in a loop of their own, whose turns do not wait for one another.  Where there are W states, the last
W are computed once more rather than fewer: rows are then whole (``lanes/rows.py``), and no block begins by clamping the
rows of each lane in ten arrays, which took as long as two joints.  ``hvp_turning`` has no code for sliding and loads.

Glossary (in addition to that of ``rnea_gradient.py``; components in the frame of link i, 2ν and 2δν placed)
    R                rows of the rotation to world axes, with loads only                9 slots
    sin cos ρδq      of the angle of joint i, and its change                            1, 1, 1
    δω δ′A δY 2δν    changes of ω, A, Y, 2ν                                             3, 6, 6, 3
    E                sum over the path of joint i, with loads only                      3
    ηq ηδq           how far joint i has slid, and its change, if it slides             1, 1
    δF δH δD δΛ      changes of sums over subtree i                                     6, 6, 3, 3, of a record
    plan             (n, 6): as there, the kind of tilt, and whether γ is not zero
    h                (n, 9): as in ``joint_frames.py``
    columns          W slots for each of q, q̇, q̈, y, δq, δq̇, δq̈ of W joints, and later for the three results
"""

from kinegrad._kernels.compiler.jit import exact, inline, kernel
from kinegrad._kernels.compiler.width import WIDTH, lane_count
from kinegrad._kernels.joint_frames import (
    about,
    add_across,
    add_along,
    place,
    shift,
    turn,
    unplace,
    unturn,
    with_offset,
)
from kinegrad._kernels.joints import FRAME, SHIFT
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
    none,
    own_body,
)
from kinegrad._kernels.spatial import (
    Force,
    Motion,
    add,
    add3,
    add_cross,
    cross,
    gather3,
    load3,
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
    tmul,
    zero3,
)  # fmt: skip

SINE, COSINE, STEP = SHIFT, SHIFT + 1, SHIFT + 2  # of the angle | ρδq; FRAME, R, as in world axes
D_SPEED, D_ACCELERATION, D_VIRTUAL, D_FLOW = N, N + 3, N + 9, N + 15  # δω | δ′A | δY | 2δν
TURN, SLID, SLIDE, N_ALONG = N + 18, N + 21, N + 22, N + 23  # E | ηq | ηδq | slots
D_FORCE, D_PUSH, D_DRAG, D_LOAD = SUM, SUM + 6, SUM + 12, SUM + 15  # of a record: δF | δH | δD | δΛ
SUM_ALONG = 2 * SUM
POSITION, VELOCITY, RATE, WEIGHT, D_POSITION, D_VELOCITY, D_RATE, COLUMNS = range(8)  # columns
RESULTS = 3
TILT, OFFSET = 4, 5  # columns of plan


def slots(n: int, records: int) -> int:
    """Scratch slots for n joints and so many records."""
    return (n + 1) * N_ALONG + COLUMNS * WIDTH + RESULTS * n + records * SUM_ALONG


@exact
def both(a, b):
    """a + b of two sums, neither of which is to wait for the other: they are not made one."""
    return a + b


@inline
def origin(m, h, i, at, slides, scratch):
    """d of joint i, placed."""
    x, y, z = shift(h, i)
    if slides and m.rate[i, 1] != 0.0:
        z = z + load(scratch, at + SLID)
    return x, y, z


# --- outward ------------------------------------------------------------------------------------------------------


@inline
def move(m, h, i, tilt, up, at, v, a, y, slides, scratch):
    """ω, A, Y of link i from its parent's, as if its joint turned only, stored."""
    s, c = load(scratch, at + SINE), load(scratch, at + COSINE)
    A = load_motion(scratch, up + ACCELERATION)
    w, alpha, linear = place(h, tilt, i, load3(scratch, up + SPEED)), place(h, tilt, i, A.w), place(h, tilt, i, A.v)
    if m.apart[i]:
        d = origin(m, h, i, at, slides, scratch)
        flow = cross(w, d)
        linear = add_cross(add_cross(linear, alpha, d), w, flow)
        store3(scratch, at + FLOW, scale(2.0, flow))
    w, alpha = turn(c, s, w), turn(c, s, alpha)
    store3(scratch, at + SPEED, add_along(w, v))
    put(scratch, at + ACCELERATION, Motion(add_along(add_across(alpha, v, w), a), turn(c, s, linear)))
    Y = load_motion(scratch, up + VIRTUAL)
    w, linear = place(h, tilt, i, Y.w), place(h, tilt, i, Y.v)
    if m.apart[i]:
        linear = add_cross(linear, w, origin(m, h, i, at, slides, scratch))
    put(scratch, at + VIRTUAL, Motion(add_along(turn(c, s, w), y), turn(c, s, linear)))


@inline
def slide(at, v, a, y, scratch):
    """What the linear parts of S q̇, S q̈, S y add to that."""
    add3(scratch, at + FLOW, add_along(zero3(), 2.0 * v))
    w, linear = load3(scratch, at + SPEED), load3(scratch, at + ACCELERATION + 3)
    store3(scratch, at + ACCELERATION + 3, add_along(add_across(linear, 2.0 * v, w), a))
    add3(scratch, at + VIRTUAL + 3, add_along(zero3(), y))


@inline
def joint_adds(w, alpha, e, de, dde):
    """(1): what the angular, or linear, parts e z, de z, dde z of s, t, b add to δω and δ′α, or to δν and δ′a."""
    x = e * w[1], -e * w[0], de
    return x, add_along(add_across(cross(w, add_along(x, de)), e, alpha), dde)


@inline
def move_along(m, h, i, tilt, up, at, e, de, dde, slides, scratch):
    """Changes of the motion of link i along the direction (e, de, dde) of its joint, as if that turned only, stored."""
    s, c = load(scratch, at + SINE), load(scratch, at + COSINE)
    w, dA = place(h, tilt, i, load3(scratch, up + D_SPEED)), load_motion(scratch, up + D_ACCELERATION)
    alpha, linear = place(h, tilt, i, dA.w), place(h, tilt, i, dA.v)
    if m.apart[i]:
        d = origin(m, h, i, at, slides, scratch)
        linear = add_cross(add_cross(linear, alpha, d), w, load3(scratch, at + FLOW))
        store3(scratch, at + D_FLOW, scale(2.0, cross(w, d)))
    A = load_motion(scratch, at + ACCELERATION)
    x, more = joint_adds(load3(scratch, at + SPEED), A.w, e, de, dde)
    store3(scratch, at + D_SPEED, add(turn(c, s, w), x))
    linear = add_across(turn(c, s, linear), e, A.v)
    put(scratch, at + D_ACCELERATION, Motion(add(turn(c, s, alpha), more), linear))
    dY, Y = load_motion(scratch, up + D_VIRTUAL), load_motion(scratch, at + VIRTUAL)
    w, linear = place(h, tilt, i, dY.w), place(h, tilt, i, dY.v)
    if m.apart[i]:
        linear = add_cross(linear, w, origin(m, h, i, at, slides, scratch))
    w, linear = turn(c, s, w), turn(c, s, linear)
    put(scratch, at + D_VIRTUAL, Motion(add_across(w, e, Y.w), add_across(linear, e, Y.v)))
    store(scratch, at + STEP, e)


@inline
def slide_along(at, e, de, dde, scratch):
    """What the linear parts of s, t, b add to that."""
    flow, v = joint_adds(load3(scratch, at + SPEED), load3(scratch, at + ACCELERATION), e, de, dde)
    flow = unturn(load(scratch, at + COSINE), load(scratch, at + SINE), flow)
    add3(scratch, at + D_FLOW, scale(2.0, flow))
    add3(scratch, at + D_ACCELERATION + 3, v)
    add3(scratch, at + D_VIRTUAL + 3, add_across(zero3(), e, load3(scratch, at + VIRTUAL)))
    store(scratch, at + SLIDE, e)


@inline
def turn_world(h, i, tilt, up, at, scratch):
    """R of link i, and E, from its parent's."""
    s, c = load(scratch, at + SINE), load(scratch, at + COSINE)
    for k in (FRAME, FRAME + 3, FRAME + 6):
        store3(scratch, at + k, turn(c, s, place(h, tilt, i, load3(scratch, up + k))))
    turned = turn(c, s, place(h, tilt, i, load3(scratch, up + TURN)))
    store3(scratch, at + TURN, add_along(turned, load(scratch, at + STEP)))


@inline
def read(x, r, whole, k, count, scratch, slot):
    """Columns k … k+count−1, at most W, of the rows from r on to slots; returns the sum of their squares."""
    if whole:
        total = fetch(x, Whole(here(r)), k, count, scratch, slot)
    else:
        total = fetch(x, here(r), k, count, scratch, slot)
    return total


@inline
def turn_joint(m, h, i, at, offset, q, slides, scratch):
    """Sine and cosine of the angle of joint i, and how far it has slid, stored."""
    angle = q
    if slides and m.rate[i, 1] != 0.0:
        angle = m.rate[i, 0] * q
        store(scratch, at + SLID, m.rate[i, 1] * q)
    s, c = sincos(angle)
    if offset:
        s, c = with_offset(h, i, s, c)
    store(scratch, at + SINE, s)
    store(scratch, at + COSINE, c)


@inline
def outward(m, plan, h, arguments, loaded, slides, columns, r, whole, scratch):
    """Motion and virtual motion of all links and their changes; returns the sum of the squares of what was read."""
    n, W, total = len(m.parent), lane_count(), spread(0.0)
    at_rest(m, scratch)
    for k in range(D_SPEED, SLID, 3):
        store3(scratch, k, zero3())
    for start in range(0, n, W):
        first, k = max(0, min(start, n - W)), columns  # the last W once more, rather than fewer
        for x in arguments:
            total = both(total, read(x, r, whole, first, min(W, n), scratch, k))
            k = k + W
        for i in range(start, min(start + W, n)):
            q = load(scratch, columns + i - first + POSITION * W)
            turn_joint(m, h, i, (i + 1) * N_ALONG, plan[i, OFFSET], q, slides, scratch)
        for i in range(start, min(start + W, n)):
            up, at, k, tilt = (m.parent[i] + 1) * N_ALONG, (i + 1) * N_ALONG, columns + i - first, plan[i, TILT]
            v, a, y = (load(scratch, k + x * W) for x in (VELOCITY, RATE, WEIGHT))
            e, de, dde = (load(scratch, k + x * W) for x in (D_POSITION, D_VELOCITY, D_RATE))
            if slides and m.rate[i, 1] != 0.0:
                rho, eta = m.rate[i, 0], m.rate[i, 1]
                move(m, h, i, tilt, up, at, rho * v, rho * a, rho * y, slides, scratch)
                slide(at, eta * v, eta * a, eta * y, scratch)
                move_along(m, h, i, tilt, up, at, rho * e, rho * de, rho * dde, slides, scratch)
                slide_along(at, eta * e, eta * de, eta * dde, scratch)
            else:
                move(m, h, i, tilt, up, at, v, a, y, slides, scratch)
                move_along(m, h, i, tilt, up, at, e, de, dde, slides, scratch)
            if loaded:
                turn_world(h, i, tilt, up, at, scratch)
    return total


# --- inward -------------------------------------------------------------------------------------------------------


@inline
def body_along(m, i, at, own, only, scratch):
    """f, h and d of link i, and how they change, to the sums of its children, if it has any."""
    c, I = row3(m.inertia, i, 1), row6(m.inertia, i, 4)
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
    R, E = load9(scratch, at + FRAME), load3(scratch, at + TURN)
    f, e = tmul(R, gather3(force, r, 3 * i)), tmul(R, gather3(torque, r, 3 * i))
    x = add(mul(row9(m.F, i), gather3(point, r, 3 * i)), row3(m.F, i, 9))
    df, de = cross(f, E), cross(e, E)
    for slot, f_, e_ in ((FORCE, f, e), (D_FORCE, df, de)):
        put(scratch, own + slot, load_force(scratch, own + slot) - Force(add_cross(e_, x, f_), f_))
    Y, dY = load_motion(scratch, at + VIRTUAL).at(x), load_motion(scratch, at + D_VIRTUAL).at(x)
    enter3(scratch, own + LOAD, add_cross(cross(f, Y.v), e, Y.w), only)
    along = add_cross(cross(f, dY.v), e, dY.w)
    enter3(scratch, own + D_LOAD, add_cross(add_cross(along, df, Y.v), de, Y.w), only)


@inline
def change(m, i, at, own, loaded, results, scratch):
    """(2), of joint i as if it turned only."""
    n = len(m.parent)
    w, dw = load3(scratch, at + SPEED), load3(scratch, at + D_SPEED)
    H, dH = load_force(scratch, own + PUSH), load_force(scratch, own + D_PUSH)
    dwH = cross(dw, H.n)
    turned = add_cross(dwH, w, dH.n)
    A, dA = load_motion(scratch, at + ACCELERATION), load_motion(scratch, at + D_ACCELERATION)
    k = both(about(dA.w, H.n) + about(dA.v, H.f), about(A.w, dH.n) + about(A.v, dH.f))
    speed = sub(load3(scratch, own + D_DRAG), turned)
    k = both(k, about(dw, load3(scratch, own + DRAG)) + about(w, sub(speed, dwH)))
    F, dF = load_force(scratch, own + FORCE), load_force(scratch, own + D_FORCE)
    Y, dY = load_motion(scratch, at + VIRTUAL), load_motion(scratch, at + D_VIRTUAL)
    k = both(k, both(about(dY.w, F.n) + about(dY.v, F.f), about(Y.w, dF.n) + about(Y.v, dF.f)))
    if loaded:
        k = k - load(scratch, own + D_LOAD + 2)
    store(scratch, results + i, -k)
    store(scratch, results + n + i, speed[2] - turned[2])
    store(scratch, results + 2 * n + i, dH.n[2])


@inline
def slide_change(m, i, at, own, out, scratch):
    """(2), of joint i that slides, of what it would be if it turned only."""
    n, rho, eta = len(m.parent), m.rate[i, 0], m.rate[i, 1]
    w, dw = load3(scratch, at + SPEED), load3(scratch, at + D_SPEED)
    h, dh = load3(scratch, own + PUSH + 3), load3(scratch, own + D_PUSH + 3)
    dwh = cross(dw, h)
    turned = add_cross(dwh, w, dh)
    k = about(load3(scratch, at + D_ACCELERATION), h) + about(load3(scratch, at + ACCELERATION), dh)
    k = k + about(load3(scratch, at + D_VIRTUAL), load3(scratch, own + FORCE + 3))
    k = k + about(load3(scratch, at + VIRTUAL), load3(scratch, own + D_FORCE + 3)) - about(w, add(turned, dwh))
    store(scratch, out, rho * load(scratch, out) - eta * k)
    store(scratch, out + n, rho * load(scratch, out + n) - 2.0 * eta * turned[2])
    store(scratch, out + 2 * n, rho * load(scratch, out + 2 * n) + eta * dh[2])


@inline
def unturn_both(c, s, e, u, du):
    """A vector and its change, placed: the frame in which it is seen no longer turns."""
    u, du = unturn(c, s, u), unturn(c, s, du)
    return u, add_across(du, -e, u)


@inline
def hand_on_force(m, h, i, tilt, at, own, up, slot, first, slides, scratch):
    """A force sum of subtree i and its change to the record of its parent; returns their linear parts, placed."""
    e, s, c = load(scratch, at + STEP), load(scratch, at + SINE), load(scratch, at + COSINE)
    F, dF = load_force(scratch, own + slot), load_force(scratch, own + SUM + slot)
    if slides and m.rate[i, 1] != 0.0:
        dF = Force(add_across(dF.n, -load(scratch, at + SLIDE), F.f), dF.f)
    f, df = unturn_both(c, s, e, F.f, dF.f)
    n, dn = unturn_both(c, s, e, F.n, dF.n)
    if m.apart[i]:
        d = origin(m, h, i, at, slides, scratch)
        n, dn = add_cross(n, d, f), add_cross(dn, d, df)
    enter(scratch, up + slot, Force(unplace(h, tilt, i, n), unplace(h, tilt, i, f)), first)
    enter(scratch, up + SUM + slot, Force(unplace(h, tilt, i, dn), unplace(h, tilt, i, df)), first)
    return f, df


@inline
def hand_on(m, h, i, tilt, at, own, up, first, loaded, slides, scratch):
    """Sums over subtree i, and their changes, to the record of its parent."""
    e, s, c = load(scratch, at + STEP), load(scratch, at + SINE), load(scratch, at + COSINE)
    hand_on_force(m, h, i, tilt, at, own, up, FORCE, first, slides, scratch)
    push, dpush = hand_on_force(m, h, i, tilt, at, own, up, PUSH, first, slides, scratch)
    drag, ddrag = unturn_both(c, s, e, load3(scratch, own + DRAG), load3(scratch, own + D_DRAG))
    if m.apart[i]:
        flow = load3(scratch, at + FLOW)
        drag = add_cross(drag, flow, push)
        ddrag = add_cross(add_cross(ddrag, load3(scratch, at + D_FLOW), push), flow, dpush)
    enter3(scratch, up + DRAG, unplace(h, tilt, i, drag), first)
    enter3(scratch, up + D_DRAG, unplace(h, tilt, i, ddrag), first)
    if loaded:
        u, du = unturn_both(c, s, e, load3(scratch, own + LOAD), load3(scratch, own + D_LOAD))
        enter3(scratch, up + LOAD, unplace(h, tilt, i, u), first)
        enter3(scratch, up + D_LOAD, unplace(h, tilt, i, du), first)


@inline
def write(found, r, n, scratch, slot):
    """The results, n slots each, to their rows r."""
    for x in found:
        unload(x, r, scratch, slot)
        slot = slot + n


@inline
def inward(m, plan, h, force, point, torque, found, loaded, slides, results, r, whole, scratch):
    """The change of the gradient, and sums over subtrees."""
    n, sums = len(m.parent), results + RESULTS * len(m.parent)
    for i in range(n - 1, -1, -1):
        at, first, only = (i + 1) * N_ALONG, plan[i, FIRST], plan[i, LEAF]
        own, up = sums + plan[i, RECORD] * SUM_ALONG, sums + plan[i, UP] * SUM_ALONG
        if m.massive[i]:
            body_along(m, i, at, own, only, scratch)
        elif only:
            none(scratch, own, SUM_ALONG)
        if loaded:
            load_along(m, i, here(r), at, own, force, point, torque, only, scratch)
        change(m, i, at, own, loaded, results, scratch)
        if slides and m.rate[i, 1] != 0.0:
            slide_change(m, i, at, own, results + i, scratch)
        if m.parent[i] >= 0:
            hand_on(m, h, i, plan[i, TILT], at, own, up, first, loaded, slides, scratch)
    if whole:
        write(found, Whole(r), n, scratch, results)
    else:
        write(found, here(r), n, scratch, results)


@inline
def products(m, arguments, loads, loaded, slides, plan, h, turned, found, scratch, start, stop):
    """All states, W at a time; returns whether their numbers are finite."""
    worst, W = finite(loads, start, stop), lane_count()
    if not worst:
        return worst
    rate, F, inertia = turned
    m = unpack(m)._replace(rate=rate, F=F, inertia=inertia)
    columns = (len(m.parent) + 1) * N_ALONG
    results, whole = columns + COLUMNS * W, stop - start >= W
    for r in range(start, stop, W):
        if whole:
            r = min(r, stop - W)
        total = outward(m, plan, h, arguments, loaded, slides, columns, r, whole, scratch)
        if not within(total, LARGEST * LARGEST):
            ok = finite(arguments, r, min(r + W, stop))
            if not ok:
                return ok
            worst = max(worst, ok)
        inward(m, plan, h, *loads, found, loaded, slides, results, r, whole, scratch)
    return worst


@kernel
def hvp(
    m, q, v, a, y, dq, dv, da, force, point, torque, plan, h, rate, F, inertia, by_q, by_v, by_a, scratch, start, stop
):  # fmt: skip
    """Changes of the gradients of yᵀτ by the state, three times (states, n), along a direction (dq, dv, da); loads
    (states or 1, 3 n), or (0, 3 n) for none; plan (n, 6), h (n, 9), and what of the mechanism is in joint frames turned
    as ``joint_frames.py`` says.  Results must not overlap arguments: some states are read again after theirs are
    written."""
    state, loads, found = (q, v, a, y, dq, dv, da), (force, point, torque), (by_q, by_v, by_a)
    return products(m, state, loads, len(force) > 0, True, plan, h, (rate, F, inertia), found, scratch, start, stop)


@kernel
def hvp_turning(
    m, q, v, a, y, dq, dv, da, force, point, torque, plan, h, rate, F, inertia, by_q, by_v, by_a, scratch, start, stop
):  # fmt: skip
    """The same where no joint slides and there are no loads: without that code the rest is faster."""
    state, loads, found = (q, v, a, y, dq, dv, da), (force, point, torque), (by_q, by_v, by_a)
    return products(m, state, loads, False, False, plan, h, (rate, F, inertia), found, scratch, start, stop)
