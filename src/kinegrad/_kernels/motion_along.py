"""Motion and virtual motion of all links, and how they change along a direction (δq, δq̇, δq̈), in joint frames.

What a link sees from its own frame changes by sums over its path to the root, (2) of ``rnea_hessian.py``,

    δY = Σ χ δq      δV = Σ (ψ̇ δq + S δq̇)      δ′A = δA − δV×V = Σ (ψ̈ δq + 2ψ̇ δq̇ + S δq̈)      E = Σ z δq

With ψ̇ = V×S, ψ̈ = A×S + V×ψ̇, χ = Y×S and s = S δq, t = S δq̇, b = S δq̈, a joint adds to them

    Y×s              x = V×s + t             A×s + V×(x + t) + b                                                     (1)

In the frame in which the link rests, as in ``rnea_gradient.py``, δV = (δω, 0), and from the parent's frame to that of
the link

    δa = δa_p + δ′α_p×d + 2δω_p×ν + what joint i adds          δν = δω_p×d + the linear part of x

**Joint frames.**  What a link sees from its own frame are the changes of components there, and so all vectors are given
by these (``joint_frames.py``).

**What else takes time.**  Seven numbers are read for each joint and state.  They are read W joints at a time and
transposed: one by one they took a tenth of the time.  Their sizes are looked at as they are read, since a pass of its
own would bring all of them from a slower memory a second time.  Sines and cosines of W joints are formed in a loop of
their own, whose turns do not wait for one another.  Where there are W states, the last W are computed once more rather
than fewer: rows are then whole (``lanes/rows.py``), and no block begins by clamping the rows of each lane in ten
arrays, which took as long as two joints.

Glossary (in addition to that of ``rnea_gradient.py``; components in the frame of link i, 2ν and 2δν placed)
    R                rows of the rotation to world axes, with loads only                9 slots
    sin cos ρδq      of the angle of joint i, and its change                            1, 1, 1
    δω δ′A δY 2δν    changes of ω, A, Y, 2ν                                             3, 6, 6, 3
    E                sum over the path of joint i, with loads only                      3
    ηq ηδq           how far joint i has slid, and its change, if it slides             1, 1
    plan             (n, 6): as there, the kind of tilt, and whether γ is not zero
    hinge            (n, 9): as in ``joint_frames.py``
    columns          W slots for each of q, q̇, q̈, y, δq, δq̇, δq̈ of W joints
"""

from kinegrad._kernels.compiler.jit import exact, inline
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joint_frames import D, add_across, add_along, place, turn, unturn, with_offset
from kinegrad._kernels.joints import FRAME, SHIFT
from kinegrad._kernels.lanes.lane import fetch, load, spread, store
from kinegrad._kernels.lanes.rows import Whole, here
from kinegrad._kernels.lanes.trigonometry import sincos
from kinegrad._kernels.rnea_gradient import ACCELERATION, FLOW, SPEED, VIRTUAL, N, at_rest
from kinegrad._kernels.spatial import (
    Motion,
    add,
    add3,
    add_cross,
    cross,
    load3,
    load_motion,
    put,
    scale,
    store3,
    zero3,
)  # fmt: skip

SINE, COSINE, STEP = SHIFT, SHIFT + 1, SHIFT + 2  # of the angle | ρδq; FRAME: R
D_SPEED, D_ACCELERATION, D_VIRTUAL, D_FLOW = N, N + 3, N + 9, N + 15  # δω | δ′A | δY | 2δν
TURN, SLID, SLIDE, N_ALONG = N + 18, N + 21, N + 22, N + 23  # E | ηq | ηδq | slots
POSITION, VELOCITY, RATE, WEIGHT, D_POSITION, D_VELOCITY, D_RATE, COLUMNS = range(8)  # columns
TILT, OFFSET = 4, 5  # columns of plan


@exact
def both(a, b):
    """a + b of two sums, neither of which is to wait for the other: they are not made one."""
    return a + b


@inline
def origin(m, hinge, i, at, slides, scratch):
    """d of joint i, placed."""
    x, y, z = spread(hinge[i, D]), spread(hinge[i, D + 1]), spread(hinge[i, D + 2])
    if slides and m.rate[i, 1] != 0.0:
        z = z + load(scratch, at + SLID)
    return x, y, z


@inline
def move(m, hinge, i, tilt, up, at, v, a, y, slides, scratch):
    """ω, A, Y of link i from its parent's, as if its joint turned only, stored."""
    s, c = load(scratch, at + SINE), load(scratch, at + COSINE)
    A = load_motion(scratch, up + ACCELERATION)
    w = place(hinge, tilt, i, load3(scratch, up + SPEED))
    alpha, linear = place(hinge, tilt, i, A.w), place(hinge, tilt, i, A.v)
    if m.apart[i]:
        d = origin(m, hinge, i, at, slides, scratch)
        flow = cross(w, d)
        linear = add_cross(add_cross(linear, alpha, d), w, flow)
        store3(scratch, at + FLOW, scale(2.0, flow))
    w, alpha = turn(c, s, w), turn(c, s, alpha)
    store3(scratch, at + SPEED, add_along(w, v))
    put(scratch, at + ACCELERATION, Motion(add_along(add_across(alpha, v, w), a), turn(c, s, linear)))
    Y = load_motion(scratch, up + VIRTUAL)
    w, linear = place(hinge, tilt, i, Y.w), place(hinge, tilt, i, Y.v)
    if m.apart[i]:
        linear = add_cross(linear, w, origin(m, hinge, i, at, slides, scratch))
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
def move_along(m, hinge, i, tilt, up, at, e, de, dde, slides, scratch):
    """Changes of the motion of link i along the direction (e, de, dde) of its joint, as if that turned only, stored."""
    s, c = load(scratch, at + SINE), load(scratch, at + COSINE)
    w, dA = place(hinge, tilt, i, load3(scratch, up + D_SPEED)), load_motion(scratch, up + D_ACCELERATION)
    alpha, linear = place(hinge, tilt, i, dA.w), place(hinge, tilt, i, dA.v)
    if m.apart[i]:
        d = origin(m, hinge, i, at, slides, scratch)
        linear = add_cross(add_cross(linear, alpha, d), w, load3(scratch, at + FLOW))
        store3(scratch, at + D_FLOW, scale(2.0, cross(w, d)))
    A = load_motion(scratch, at + ACCELERATION)
    x, more = joint_adds(load3(scratch, at + SPEED), A.w, e, de, dde)
    store3(scratch, at + D_SPEED, add(turn(c, s, w), x))
    linear = add_across(turn(c, s, linear), e, A.v)
    put(scratch, at + D_ACCELERATION, Motion(add(turn(c, s, alpha), more), linear))
    dY, Y = load_motion(scratch, up + D_VIRTUAL), load_motion(scratch, at + VIRTUAL)
    w, linear = place(hinge, tilt, i, dY.w), place(hinge, tilt, i, dY.v)
    if m.apart[i]:
        linear = add_cross(linear, w, origin(m, hinge, i, at, slides, scratch))
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
def turn_world(hinge, i, tilt, up, at, scratch):
    """R of link i, and E, from its parent's."""
    s, c = load(scratch, at + SINE), load(scratch, at + COSINE)
    for k in (FRAME, FRAME + 3, FRAME + 6):
        store3(scratch, at + k, turn(c, s, place(hinge, tilt, i, load3(scratch, up + k))))
    turned = turn(c, s, place(hinge, tilt, i, load3(scratch, up + TURN)))
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
def turn_joint(m, hinge, i, at, offset, q, slides, scratch):
    """Sine and cosine of the angle of joint i, and how far it has slid, stored."""
    angle = q
    if slides and m.rate[i, 1] != 0.0:
        angle = m.rate[i, 0] * q
        store(scratch, at + SLID, m.rate[i, 1] * q)
    s, c = sincos(angle)
    if offset:
        s, c = with_offset(hinge, i, s, c)
    store(scratch, at + SINE, s)
    store(scratch, at + COSINE, c)


@inline
def outward(m, plan, hinge, arguments, loaded, slides, columns, r, whole, scratch):
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
            turn_joint(m, hinge, i, (i + 1) * N_ALONG, plan[i, OFFSET], q, slides, scratch)
        for i in range(start, min(start + W, n)):
            up, at, k, tilt = (m.parent[i] + 1) * N_ALONG, (i + 1) * N_ALONG, columns + i - first, plan[i, TILT]
            v, a, y = (load(scratch, k + x * W) for x in (VELOCITY, RATE, WEIGHT))
            e, de, dde = (load(scratch, k + x * W) for x in (D_POSITION, D_VELOCITY, D_RATE))
            if slides and m.rate[i, 1] != 0.0:
                rho, eta = m.rate[i, 0], m.rate[i, 1]
                move(m, hinge, i, tilt, up, at, rho * v, rho * a, rho * y, slides, scratch)
                slide(at, eta * v, eta * a, eta * y, scratch)
                move_along(m, hinge, i, tilt, up, at, rho * e, rho * de, rho * dde, slides, scratch)
                slide_along(at, eta * e, eta * de, eta * dde, scratch)
            else:
                move(m, hinge, i, tilt, up, at, v, a, y, slides, scratch)
                move_along(m, hinge, i, tilt, up, at, e, de, dde, slides, scratch)
            if loaded:
                turn_world(hinge, i, tilt, up, at, scratch)
    return total
