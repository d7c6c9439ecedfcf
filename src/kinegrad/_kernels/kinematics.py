"""Where every link is, how it moves, and the motion of points fixed in links.

With V = (ω, v) and A = (α, a) of every link about its reference point (``joints.py``), a point at x from there moves
with

    ẋ = v + ω×x         ẍ = a + α×x + ω×ẋ

which is S_i r and R_i r of [zhakatayev2023] (6).

Glossary
    R d     of joint i, as in joints.py                                    world
    p       reference point of link i, from the world's origin            world
    V A     spatial velocity and acceleration                              world, at the reference point of link i
    N       slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FRAME, FREE, SHIFT, frames, move, places, rest, subspace
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    add,
    cross,
    gather3,
    load3,
    load9,
    load_motion,
    matmul,
    mul,
    row3,
    row9,
    scatter3,
    zero3,
)  # fmt: skip

VELOCITY, ACCELERATION, PLACE, N = FREE, FREE + 6, FREE + 12, FREE + 15  # V | A | p


@inline
def motions(m, q, v, a, r, scratch):
    """Frames, places, velocities and accelerations of all links."""
    frames(m, q, r, scratch, N)
    places(m, zero3(), scratch, N, PLACE)
    rest(scratch, VELOCITY)
    rest(scratch, ACCELERATION)
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        move(m, i, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, i), gather(a, r, i))


@inline
def point_velocity(scratch, i, x):
    """ẋ = v + ω×x"""
    return load_motion(scratch, (i + 1) * N + VELOCITY).at(x).v


@inline
def point_acceleration(scratch, i, x, dx):
    """ẍ = a + α×x + ω×ẋ"""
    V, A = load_motion(scratch, (i + 1) * N + VELOCITY), load_motion(scratch, (i + 1) * N + ACCELERATION)
    return add(A.v, add(cross(A.w, x), cross(V.w, dx)))


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
    for r in range(start, stop, lane_count()):
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
    for r in range(start, stop, lane_count()):
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
    for r in range(start, stop, lane_count()):
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
    for r in range(start, stop, lane_count()):
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
