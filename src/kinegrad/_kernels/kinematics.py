"""Where every link is, how it moves, and the motion of points fixed in links.

World axes; the quantities of link i are about its own reference point, the origin of joint frame i, at rest in the
world for the duration of one evaluation.  Spatial velocity of link i: its angular velocity and the velocity of the
point of the link that is there just now.  Spatial acceleration: the time derivative of both.  With d from the
reference point of the parent link to that of link i, motion and force are handed on by a shift,

    outward  (ω, v) → (ω, v + ω×d)          inward  (n, f) → (n + d×f, f)                [featherstone2008] 2.8

and no number ever grows with the distance from some common origin, which would cost digits.  The axis z of the joint
passes through its own reference point, so that its motion subspace is just S = (ρz, ηz), and with ω_p, v_p, α_p, a_p of
the parent link shifted to joint i,

    ω_i = ω_p + ρz q̇         α_i = α_p + ρz q̈ + (ω_p×ρz) q̇                     [featherstone2008] (5.8)
    v_i = v_p + ηz q̇         a_i = a_p + ηz q̈ + (ω_p×ηz + v_p×ρz) q̇

A point at x, from the reference point, moves with  ẋ = v + ω×x  and  ẍ = a + α×x + ω×ẋ,  which is S_i r and R_i r of
[zhakatayev2023] (6).

Glossary
    R       rotation of joint frame i; its third column is the axis z     world
    d       from the reference point of the parent to that of link i      world
    p       reference point of link i, from the world's origin            world
    ω v α a spatial velocity and acceleration                              world, at the reference point of link i
    apart   (n,) of the mechanism: 0 where d is always zero, as between the hinges of a ball joint, and for roots
            (the world does not turn); then there is nothing to shift
    N       slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, load, scatter, spread
from kinegrad._kernels.lanes.trigonometry import sincos
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    add,
    cross,
    gather3,
    load3,
    load9,
    matmul,
    mul,
    row3,
    row9,
    scale,
    scatter3,
    store3,
    store9,
    sub,
    zero3,
)  # fmt: skip

FRAME, SHIFT = 0, 9  # R | d; the first slots of a joint in all spatial kernels
VELOCITY, ACCELERATION, PLACE = 12, 18, 24  # ω v | α a | p
N = 27


@inline
def joint_frame(m, i, R, q):
    """R and d of joint i, from its parent's R and q_i."""
    s, c = sincos(m.rate[i, 0] * q)
    B = matmul(R, row9(m.X, i))
    x, y, z = (B[0], B[3], B[6]), (B[1], B[4], B[7]), (B[2], B[5], B[8])
    d = add(mul(R, row3(m.X, i, 9)), scale(m.rate[i, 1] * q, z))
    x, y = add(scale(c, x), scale(s, y)), sub(scale(c, y), scale(s, x))
    return (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]), d


@inline
def store_world(scratch):
    """R of the world."""
    one, zero = spread(1.0), spread(0.0)
    store9(scratch, FRAME, (one, zero, zero, zero, one, zero, zero, zero, one))


@inline
def store_frame(m, i, up, at, q, scratch):
    """R and d of joint i, from its parent's."""
    R, d = joint_frame(m, i, load9(scratch, up + FRAME), q)
    store9(scratch, at + FRAME, R)
    store3(scratch, at + SHIFT, d)


@inline
def frames(m, q, r, scratch, stride):
    """R and d of all joints."""
    store_world(scratch)
    for i in range(len(m.parent)):
        store_frame(m, i, (m.parent[i] + 1) * stride, (i + 1) * stride, gather(q, r, i), scratch)


@inline
def places(m, base, scratch, stride, place):
    """p of all joints, once their frames are there, with the world's origin at `base`."""
    store3(scratch, place, base)
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * stride, (i + 1) * stride
        store3(scratch, at + place, add(load3(scratch, up + place), load3(scratch, at + SHIFT)))


@inline
def places_from_anchor(m, scratch, stride, place):
    """p of all joints, from the reference point of the first link with mass; returns where in the world that is.

    Where a sum over all links needs one point common to all, this one keeps numbers small far from the world's origin.
    """
    anchor = 0
    while anchor < len(m.parent) - 1 and not m.massive[anchor]:
        anchor += 1
    places(m, zero3(), scratch, stride, place)
    o = load3(scratch, (anchor + 1) * stride + place)
    places(m, scale(-1.0, o), scratch, stride, place)
    return o


@inline
def axis(scratch, at):
    """z, the third column of R."""
    return load(scratch, at + FRAME + 2), load(scratch, at + FRAME + 5), load(scratch, at + FRAME + 8)


@inline
def subspace(m, i, scratch, at):
    """S_i = (ρz, ηz)."""
    z = axis(scratch, at)
    return scale(m.rate[i, 0], z), scale(m.rate[i, 1], z)


@inline
def carried(m, i, slot, at, scratch):
    """The motion of the parent link that is in its slots `slot` …, about the reference point of link i."""
    w, v = load3(scratch, slot), load3(scratch, slot + 3)
    if m.apart[i]:
        v = add(v, cross(w, load3(scratch, at + SHIFT)))
    return w, v


@inline
def handed_on(m, i, at, n, f, scratch):
    """The moment of a force (n, f) on link i about the reference point of its parent."""
    if m.apart[i]:
        n = add(n, cross(load3(scratch, at + SHIFT), f))
    return n


@inline
def move(m, i, up, at, scratch, velocity, acceleration, dq, ddq):
    """Spatial velocity and acceleration of link i from its parent's; stores both."""
    w, v = carried(m, i, up + velocity, at, scratch)
    dw, dv = carried(m, i, up + acceleration, at, scratch)
    z = axis(scratch, at)
    turn, slide, wz = m.rate[i, 0] * dq, m.rate[i, 1] * dq, cross(w, z)
    dw = add(dw, add(scale(m.rate[i, 0] * ddq, z), scale(turn, wz)))
    dv = add(dv, add(scale(m.rate[i, 1] * ddq, z), add(scale(slide, wz), scale(turn, cross(v, z)))))
    w, v = add(w, scale(turn, z)), add(v, scale(slide, z))
    store3(scratch, at + velocity, w)
    store3(scratch, at + velocity + 3, v)
    store3(scratch, at + acceleration, dw)
    store3(scratch, at + acceleration + 3, dv)
    return w, v, dw, dv


@inline
def motions(m, q, v, a, r, scratch):
    """Frames, places, velocities and accelerations of all links."""
    frames(m, q, r, scratch, N)
    places(m, zero3(), scratch, N, PLACE)
    for k in range(VELOCITY, PLACE, 3):
        store3(scratch, k, zero3())
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        move(m, i, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, i), gather(a, r, i))


@inline
def link_point(m, i, scratch, stride, x):
    """The point x of link frame i, from the reference point of link i."""
    in_joint = add(mul(row9(m.F, i), x), row3(m.F, i, 9))
    return mul(load9(scratch, (i + 1) * stride + FRAME), in_joint)


@inline
def point_velocity(scratch, i, x):
    """ẋ = v + ω×x"""
    at = (i + 1) * N + VELOCITY
    return add(load3(scratch, at + 3), cross(load3(scratch, at), x))


@inline
def point_acceleration(scratch, i, x, dx):
    """ẍ = a + α×x + ω×ẋ"""
    at = (i + 1) * N
    w, dw = load3(scratch, at + VELOCITY), load3(scratch, at + ACCELERATION)
    return add(load3(scratch, at + ACCELERATION + 3), add(cross(dw, x), cross(w, dx)))


@inline
def in_world(scratch, i, x):
    """x, from the reference point of link i, as a place in the world."""
    return add(load3(scratch, (i + 1) * N + PLACE), x)


@kernel
def transforms(m, q, T, scratch, start, stop):
    """World transforms T, (states, 16 n)."""
    ok = finite((q,), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        frames(m, q, r, scratch, N)
        places(m, zero3(), scratch, N, PLACE)
        write_transforms(m, r, T, scratch)
    return ok


@inline
def write_transforms(m, r, T, scratch):
    for i in range(len(m.parent)):
        at, k = (i + 1) * N + FRAME, 16 * i
        J = load9(scratch, at)
        R, p = matmul(J, row9(m.F, i)), in_world(scratch, i, mul(J, row3(m.F, i, 9)))
        for axis in range(3):
            scatter(T, r, k + 12 + axis, 0.0)
        scatter3(T, r, k, (R[0], R[1], R[2]))
        scatter3(T, r, k + 4, (R[3], R[4], R[5]))
        scatter3(T, r, k + 8, (R[6], R[7], R[8]))
        scatter(T, r, k + 3, p[0])
        scatter(T, r, k + 7, p[1])
        scatter(T, r, k + 11, p[2])
        scatter(T, r, k + 15, 1.0)


@kernel
def motion(m, q, v, a, T, linear_v, angular_v, linear_a, angular_a, scratch, start, stop):
    """World transforms (states, 16 n), and velocity and acceleration of link frames (states, 3 n)."""
    ok = finite((q, v, a), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        motions(m, q, v, a, r, scratch)
        write_transforms(m, r, T, scratch)
        for i in range(len(m.parent)):
            at = (i + 1) * N
            x = link_point(m, i, scratch, N, (0.0, 0.0, 0.0))
            dx = point_velocity(scratch, i, x)
            scatter3(linear_v, r, 3 * i, dx)
            scatter3(linear_a, r, 3 * i, point_acceleration(scratch, i, x, dx))
            scatter3(angular_v, r, 3 * i, load3(scratch, at + VELOCITY))
            scatter3(angular_a, r, 3 * i, load3(scratch, at + ACCELERATION))
    return ok


@kernel
def points(m, q, v, a, links, local, position, velocity, acceleration, scratch, start, stop):
    """Motion of the points `local`, (states or 1, 3 k), fixed in `links`, (k,).  [zhakatayev2023] (6)"""
    ok = finite((q, v, a), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        motions(m, q, v, a, r, scratch)
        for k in range(len(links)):
            i = links[k]
            x = link_point(m, i, scratch, N, gather3(local, r, 3 * k))
            dx = point_velocity(scratch, i, x)
            scatter3(position, r, 3 * k, in_world(scratch, i, x))
            scatter3(velocity, r, 3 * k, dx)
            scatter3(acceleration, r, 3 * k, point_acceleration(scratch, i, x, dx))
    return ok


@kernel
def jacobians(m, q, links, local, linear, angular, scratch, start, stop):
    """Columns ηz + ρz×x and ρz of all joints that move each point, x from the joint to the point.

    `linear`, `angular`: (states, 3 n k), zero on entry.
    """
    ok = finite((q,), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    for r in range(start, stop, WIDTH):
        frames(m, q, r, scratch, N)
        for k in range(len(links)):
            i = links[k]
            x = link_point(m, i, scratch, N, gather3(local, r, 3 * k))
            while i >= 0:
                at = (i + 1) * N
                turn, slide = subspace(m, i, scratch, at)
                slide = add(slide, cross(turn, x))
                for c in range(3):
                    scatter(linear, r, (3 * k + c) * n + i, slide[c])
                    scatter(angular, r, (3 * k + c) * n + i, turn[c])
                x = add(x, load3(scratch, at + SHIFT))
                i = m.parent[i]
    return ok
