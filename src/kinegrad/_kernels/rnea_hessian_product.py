"""Products of the second derivatives of yᵀτ with a direction (hvp), O(n): how the gradient changes along it.

How the motion of links changes along a direction (δq, δq̇, δq̈) is in ``motion_along.py``.  Sums that are handed on
inward turn with the frames: with s = S δq, δF_p += δF_j + s_j×*F_j, and H, D, Λ likewise.  The change of the gradient,
(1) of ``rnea_gradient.py``, is

    δ∂φ/∂q_j = z·δΛ − S·(δY×*F + Y×*δF + δ′A×*H + A×*δH + δV×*D + V×*(δD − V×*δH − 2 δV×*H))
    δ∂φ/∂q̇_j = S·(δD − 2(V×*δH + δV×*H))            δ∂φ/∂q̈_j = S·δH                                                 (2)

and, to the parent's frame from that in which the link rests,

    δD_p += δD + s×D + 2δν×h + 2ν×δh

A link's own mass adds, about its centre c and with ċ, J, h as there,

    δf = m (δa + δ′α×c + 2 δω×ċ)                 with the moment  Nδ′α − 2ω×Jδω + c×δf
    δd = 2J(δω×Ω + ω×δΩ) + 2(δċ×h + ċ×δh)        δċ = δω×c

In joint frames c and N are constants, there are no rotation matrices, products with z take two multiplications, and of
(2) only components along z are formed: a fifth fewer than in world axes.  In return ten vectors are turned outward and
ten inward, by four multiplications each about z, four more where axes are neither parallel nor at right angles, and
four more for all but one of the children of a link.  Results are transposed and written W joints at a time, as
arguments are read.  ``hvp_turning`` has no code for sliding and loads.

Glossary (in addition to those of ``rnea_gradient.py`` and ``motion_along.py``)
    δF δH δD δΛ      changes of sums over subtree i                                     6, 6, 3, 3, of a record
    results          n slots for each of δ∂φ/∂q, δ∂φ/∂q̇, δ∂φ/∂q̈
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH, lane_count
from kinegrad._kernels.joint_frames import about, add_across, unplace, unturn
from kinegrad._kernels.joints import FRAME
from kinegrad._kernels.lanes.finite import LARGEST, finite
from kinegrad._kernels.lanes.lane import load, store, unload, within
from kinegrad._kernels.lanes.rows import Whole, here
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.motion_along import (
    COLUMNS,
    COSINE,
    D_ACCELERATION,
    D_FLOW,
    D_SPEED,
    D_VIRTUAL,
    N_ALONG,
    SINE,
    SLIDE,
    STEP,
    TILT,
    TURN,
    both,
    origin,
    outward,
)
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
    enter,
    enter3,
    none,
    own_body,
)
from kinegrad._kernels.spatial import (
    Force,
    add,
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
    sub,
    symmul,
    tmul,
)  # fmt: skip

D_FORCE, D_PUSH, D_DRAG, D_LOAD = SUM, SUM + 6, SUM + 12, SUM + 15  # of a record: δF | δH | δD | δΛ
SUM_ALONG = 2 * SUM
RESULTS = 3


def slots(n: int, records: int) -> int:
    """Scratch slots for n joints and so many records."""
    return (n + 1) * N_ALONG + COLUMNS * WIDTH + RESULTS * n + records * SUM_ALONG


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
def hand_on_force(m, hinge, i, tilt, at, own, up, slot, first, slides, scratch):
    """A force sum of subtree i and its change to the record of its parent; returns their linear parts, placed."""
    e, s, c = load(scratch, at + STEP), load(scratch, at + SINE), load(scratch, at + COSINE)
    F, dF = load_force(scratch, own + slot), load_force(scratch, own + SUM + slot)
    if slides and m.rate[i, 1] != 0.0:
        dF = Force(add_across(dF.n, -load(scratch, at + SLIDE), F.f), dF.f)
    f, df = unturn_both(c, s, e, F.f, dF.f)
    n, dn = unturn_both(c, s, e, F.n, dF.n)
    if m.apart[i]:
        d = origin(m, hinge, i, at, slides, scratch)
        n, dn = add_cross(n, d, f), add_cross(dn, d, df)
    enter(scratch, up + slot, Force(unplace(hinge, tilt, i, n), unplace(hinge, tilt, i, f)), first)
    enter(scratch, up + SUM + slot, Force(unplace(hinge, tilt, i, dn), unplace(hinge, tilt, i, df)), first)
    return f, df


@inline
def hand_on(m, hinge, i, tilt, at, own, up, first, loaded, slides, scratch):
    """Sums over subtree i, and their changes, to the record of its parent."""
    e, s, c = load(scratch, at + STEP), load(scratch, at + SINE), load(scratch, at + COSINE)
    hand_on_force(m, hinge, i, tilt, at, own, up, FORCE, first, slides, scratch)
    push, dpush = hand_on_force(m, hinge, i, tilt, at, own, up, PUSH, first, slides, scratch)
    drag, ddrag = unturn_both(c, s, e, load3(scratch, own + DRAG), load3(scratch, own + D_DRAG))
    if m.apart[i]:
        flow = load3(scratch, at + FLOW)
        drag = add_cross(drag, flow, push)
        ddrag = add_cross(add_cross(ddrag, load3(scratch, at + D_FLOW), push), flow, dpush)
    enter3(scratch, up + DRAG, unplace(hinge, tilt, i, drag), first)
    enter3(scratch, up + D_DRAG, unplace(hinge, tilt, i, ddrag), first)
    if loaded:
        u, du = unturn_both(c, s, e, load3(scratch, own + LOAD), load3(scratch, own + D_LOAD))
        enter3(scratch, up + LOAD, unplace(hinge, tilt, i, u), first)
        enter3(scratch, up + D_LOAD, unplace(hinge, tilt, i, du), first)


@inline
def write(found, r, n, scratch, slot):
    """The results, n slots each, to their rows r."""
    for x in found:
        unload(x, r, scratch, slot)
        slot = slot + n


@inline
def inward(m, plan, hinge, force, point, torque, found, loaded, slides, results, r, whole, scratch):
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
            hand_on(m, hinge, i, plan[i, TILT], at, own, up, first, loaded, slides, scratch)
    if whole:
        write(found, Whole(r), n, scratch, results)
    else:
        write(found, here(r), n, scratch, results)


@inline
def products(m, arguments, loads, loaded, slides, plan, hinge, turned, found, scratch, start, stop):
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
        total = outward(m, plan, hinge, arguments, loaded, slides, columns, r, whole, scratch)
        if not within(total, LARGEST * LARGEST):
            ok = finite(arguments, r, min(r + W, stop))
            if not ok:
                return ok
            worst = max(worst, ok)
        inward(m, plan, hinge, *loads, found, loaded, slides, results, r, whole, scratch)
    return worst


@kernel
def hvp(
    m, q, v, a, y, dq, dv, da, force, point, torque, plan, hinge, rate, F, inertia, by_q, by_v, by_a,
    scratch, start, stop,
):  # fmt: skip
    """Changes of the gradients of yᵀτ by the state, three times (states, n), along a direction (dq, dv, da); loads
    (states or 1, 3 n), or (0, 3 n) for none; plan (n, 6), hinge (n, 9), and what of the mechanism is in joint frames
    turned as ``joint_frames.py`` says.  Results must not overlap arguments: some states are read again after theirs are
    written."""
    state, loads, found = (q, v, a, y, dq, dv, da), (force, point, torque), (by_q, by_v, by_a)
    return products(m, state, loads, len(force) > 0, True, plan, hinge, (rate, F, inertia), found, scratch, start, stop)


@kernel
def hvp_turning(
    m, q, v, a, y, dq, dv, da, force, point, torque, plan, hinge, rate, F, inertia, by_q, by_v, by_a,
    scratch, start, stop,
):  # fmt: skip
    """The same where no joint slides and there are no loads: without that code the rest is faster."""
    state, loads, found = (q, v, a, y, dq, dv, da), (force, point, torque), (by_q, by_v, by_a)
    return products(m, state, loads, False, False, plan, hinge, (rate, F, inertia), found, scratch, start, stop)
