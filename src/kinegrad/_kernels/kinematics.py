"""Where every link is, how it moves, and the motion of points fixed in links.

World frame, reference point o (fixed in the world).  Spatial velocity of link i: its angular velocity and the
velocity of the point of the link that is at o just now.  Spatial acceleration: the time derivative of both.
With the joint's axis z through p (relative to o), its motion subspace is S = (ρz, s),  s = ρ p×z + ηz,  and

    ω_i = ω_p + ρz q̇         α_i = α_p + ρz q̈ + (ω_p×ρz) q̇                     [featherstone2008] (5.8)
    v_i = v_p + s q̇          a_i = a_p + s q̈ + (ω_p×s + v_p×ρz) q̇

A point at x then moves with  ẋ = v + ω×x  and  ẍ = a + α×x + ω×ẋ,  which is S_i r and R_i r of [zhakatayev2023] (6).

Glossary
    R, p    rotation and origin of joint frame i         world, origin relative to o
    z, s    axis and its moment, as above                 world
    ω v α a spatial velocity and acceleration             world, at o
    N       slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.finite import finite
from kinegrad._kernels.jit import inline, kernel
from kinegrad._kernels.lanes import gather, scatter, spread
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
)  # fmt: skip
from kinegrad._kernels.trigonometry import sincos
from kinegrad._kernels.width import WIDTH

FRAME, AXIS, VELOCITY, ACCELERATION = 0, 12, 18, 24  # R p | z s | ω v | α a
N = 30


@inline
def joint_frame(m, i, R, p, q):
    """Joint i's frame (R, p) and axis z from its parent's frame and q_i."""
    s, c = sincos(m.rate[i, 0] * q)
    B = matmul(R, row9(m.X, i))
    x, y, z = (B[0], B[3], B[6]), (B[1], B[4], B[7]), (B[2], B[5], B[8])
    p = add(add(p, mul(R, row3(m.X, i, 9))), scale(m.rate[i, 1] * q, z))
    x, y = add(scale(c, x), scale(s, y)), sub(scale(c, y), scale(s, x))
    return (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]), p, z


@inline
def axis_moment(m, i, p, z):
    """s of S = (ρz, s)."""
    return add(scale(m.rate[i, 0], cross(p, z)), scale(m.rate[i, 1], z))


@inline
def base_at(scratch, p):
    """The world's frame: no rotation, its origin at p relative to o."""
    one, zero = spread(1.0), spread(0.0)
    store9(scratch, FRAME, (one, zero, zero, zero, one, zero, zero, zero, one))
    store3(scratch, FRAME + 9, p)


@inline
def origin():
    return spread(0.0), spread(0.0), spread(0.0)


@inline
def frames(m, q, r, scratch, stop, stride):
    """Frames and axes of joints 0 … stop−1."""
    for i in range(stop):
        up, at = (m.parent[i] + 1) * stride, (i + 1) * stride
        R, p, z = joint_frame(m, i, load9(scratch, up + FRAME), load3(scratch, up + FRAME + 9), gather(q, r, i))
        store9(scratch, at + FRAME, R)
        store3(scratch, at + FRAME + 9, p)
        store3(scratch, at + AXIS, z)
        store3(scratch, at + AXIS + 3, axis_moment(m, i, p, z))


@inline
def anchor(m, q, r, scratch, stride):
    """World position of the anchor joint: the reference point o that keeps numbers small far from the origin."""
    base_at(scratch, origin())
    frames(m, q, r, scratch, m.anchor + 1, stride)
    return load3(scratch, (m.anchor + 1) * stride + FRAME + 9)


@inline
def move(m, i, up, at, scratch, velocity, acceleration, dq, ddq):
    """Spatial velocity and acceleration of link i from its parent's; stores both."""
    w, v = load3(scratch, up + velocity), load3(scratch, up + velocity + 3)
    dw, dv = load3(scratch, up + acceleration), load3(scratch, up + acceleration + 3)
    z, s = scale(m.rate[i, 0], load3(scratch, at + AXIS)), load3(scratch, at + AXIS + 3)
    dw = add(dw, add(scale(ddq, z), scale(dq, cross(w, z))))
    dv = add(dv, add(scale(ddq, s), scale(dq, add(cross(w, s), cross(v, z)))))
    w, v = add(w, scale(dq, z)), add(v, scale(dq, s))
    store3(scratch, at + velocity, w)
    store3(scratch, at + velocity + 3, v)
    store3(scratch, at + acceleration, dw)
    store3(scratch, at + acceleration + 3, dv)
    return w, v, dw, dv


@inline
def motions(m, q, v, a, r, scratch):
    """Frames, velocities and accelerations of all links, o at the world's origin."""
    n = len(m.parent)
    base_at(scratch, origin())
    for k in range(VELOCITY, N, 3):
        store3(scratch, k, origin())
    frames(m, q, r, scratch, n, N)
    for i in range(n):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        move(m, i, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, i), gather(a, r, i))


@inline
def link_point(m, i, scratch, stride, x):
    """World position, relative to o, of the point x of link frame i."""
    at = (i + 1) * stride + FRAME
    in_joint = add(mul(row9(m.F, i), x), row3(m.F, i, 9))
    return add(load3(scratch, at + 9), mul(load9(scratch, at), in_joint))


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


@kernel
def transforms(m, q, T, scratch, start, stop):
    """World transforms T, (states, 16 n)."""
    ok = finite((q,), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        base_at(scratch, origin())
        frames(m, q, r, scratch, len(m.parent), N)
        write_transforms(m, r, T, scratch)
    return ok


@inline
def write_transforms(m, r, T, scratch):
    for i in range(len(m.parent)):
        at, k = (i + 1) * N + FRAME, 16 * i
        J = load9(scratch, at)
        R, p = matmul(J, row9(m.F, i)), add(load3(scratch, at + 9), mul(J, row3(m.F, i, 9)))
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
            scatter3(position, r, 3 * k, x)
            scatter3(velocity, r, 3 * k, dx)
            scatter3(acceleration, r, 3 * k, point_acceleration(scratch, i, x, dx))
    return ok


@kernel
def jacobians(m, q, links, local, linear, angular, scratch, start, stop):
    """Columns ρz×(x−p) + ηz and ρz of all joints that move each point; `linear`, `angular`: (states, 3 n k), zero."""
    ok = finite((q,), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    for r in range(start, stop, WIDTH):
        base_at(scratch, scale(-1.0, anchor(m, q, r, scratch, N)))
        frames(m, q, r, scratch, n, N)
        for k in range(len(links)):
            x = link_point(m, links[k], scratch, N, gather3(local, r, 3 * k))
            i = links[k]
            while i >= 0:
                at = (i + 1) * N + AXIS
                turn = scale(m.rate[i, 0], load3(scratch, at))
                slide = add(load3(scratch, at + 3), cross(turn, x))
                for axis in range(3):
                    scatter(linear, r, (3 * k + axis) * n + i, slide[axis])
                    scatter(angular, r, (3 * k + axis) * n + i, turn[axis])
                i = m.parent[i]
    return ok
