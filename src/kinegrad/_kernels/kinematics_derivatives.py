"""∂/∂(q, q̇, q̈) of where links and points are and how they move.

Let q_j be larger by ε at all times.  The links beyond joint j are then moved by ε S_j, and S_j = (z, s), with
ρ absorbed in z, is fixed in the parent link of j, which stays where it was.  With V and A the spatial
velocity and acceleration of that parent, S_j changes in time by

    Ṡ_j = ψ̇_j = V × S_j         S̈_j = ψ̈_j = A × S_j + V × ψ̇_j                                [singh2022]

Write M@x = M_lin + M_ang×x for how a motion M moves the point at x.  A point of a link beyond j is moved by
S_j@x, and its velocity and acceleration change by the time derivatives of that:

    ∂x/∂q_j = S_j@x      ∂ẋ/∂q_j = ψ̇_j@x + z×ẋ      ∂ẍ/∂q_j = ψ̈_j@x + 2 ψ̇_ang×ẋ + z×ẍ
    ∂ẋ/∂q̇_j = ∂ẍ/∂q̈_j = ∂x/∂q_j      ∂ẍ/∂q̇_j = 2 ∂ẋ/∂q_j                  (not repeated in the outputs)

and the link is turned by z, so that

    ∂R/∂q_j = z×R        ∂ω/∂q_j = ψ̇_ang + z×ω      ∂α/∂q_j = ψ̈_ang + ψ̇_ang×ω + z×α
                         ∂ω/∂q̇_j = ∂α/∂q̈_j = z      ∂α/∂q̇_j = 2 ψ̇_ang + z×ω

∂R/∂q_j and ∂x/∂q_j are the columns of ∂T/∂q_j, [zhakatayev2023] (10)–(12).  All else is zero and never
visited.  S_j, ψ̇_j, ψ̈_j are about the reference point of link j (kinematics.py), and x is taken from there: on the way
from the link to the root it grows by d of each joint that is passed.

Glossary (world axes)
    R d ω v α a       of joint i, slots as in kinematics.py, its N slots per joint
    S ψ̇ ψ̈           path slots of joint j, 18, after all of those: what the links beyond it read of it
"""

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FRAME, SHIFT, carried, frames, move, rest, subspace
from kinegrad._kernels.kinematics import ACCELERATION, VELOCITY, N, point_acceleration, point_velocity
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import add, cross, gather3, load3, load9, load_motion, matmul, put, row9, scale

PATH = 18  # S | ψ̇ | ψ̈


def slots(n: int) -> int:
    """Scratch slots for n joints."""
    return (n + 1) * N + n * PATH


@inline
def outward(m, q, v, a, r, scratch):
    """Frames and motion of all links, and the path slots."""
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    rest(scratch, VELOCITY)
    rest(scratch, ACCELERATION)
    for j in range(n):
        up, at, path = (m.parent[j] + 1) * N, (j + 1) * N, (n + 1) * N + j * PATH
        V, A = carried(m, j, up + VELOCITY, at, scratch), carried(m, j, up + ACCELERATION, at, scratch)
        S = subspace(m, j, scratch, at)
        dS = V.cross(S)
        put(scratch, path, S)
        put(scratch, path + 6, dS)
        put(scratch, path + 12, A.cross(S) + V.cross(dS))
        move(m, j, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, j), gather(a, r, j))


@inline
def moved(scratch, path, x):
    """M@x of the motion M in slots path …"""
    return load_motion(scratch, path).at(x).v


@inline
def velocity_by_q(scratch, path, x, dx):
    """∂ẋ/∂q_j"""
    return add(moved(scratch, path + 6, x), cross(load3(scratch, path), dx))


@inline
def acceleration_by_q(scratch, path, x, dx, ddx):
    """∂ẍ/∂q_j"""
    turned = add(cross(scale(2.0, load3(scratch, path + 6)), dx), cross(load3(scratch, path), ddx))
    return add(moved(scratch, path + 12, x), turned)


@inline
def scatter_column(out, r, k, step, u):
    """u into columns k, k + step, k + 2 step: down an axis that is not the last."""
    scatter(out, r, k, u[0])
    scatter(out, r, k + step, u[1])
    scatter(out, r, k + 2 * step, u[2])


@kernel
def points(m, q, v, a, links, local, dx_dq, ddx_dq, dddx_dq, scratch, start, stop):
    """∂(x, ẋ, ẍ)/∂q, (states, 3 k n) each, zero on entry; no rows in the second or third: not wanted.

    Of the points `local`, (states or 1, 3 k), fixed in `links`, (k,).
    """
    ok = finite((q, v, a), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    for r in range(start, stop, lane_count()):
        outward(m, q, v, a, r, scratch)
        for k in range(len(links)):
            i = links[k]
            x = link_point(m, i, scratch, N, gather3(local, r, 3 * k))
            dx = point_velocity(scratch, i, x)
            ddx = point_acceleration(scratch, i, x, dx)
            j = i
            while j >= 0:
                path, at = (n + 1) * N + j * PATH, 3 * k * n + j
                scatter_column(dx_dq, r, at, n, moved(scratch, path, x))
                if len(ddx_dq) > 0:
                    scatter_column(ddx_dq, r, at, n, velocity_by_q(scratch, path, x, dx))
                if len(dddx_dq) > 0:
                    scatter_column(dddx_dq, r, at, n, acceleration_by_q(scratch, path, x, dx, ddx))
                x = add(x, load3(scratch, (j + 1) * N + SHIFT))
                j = m.parent[j]
    return ok


@kernel
def links(m, q, v, a, dT, dx_dq, dw_dq, dw_dv, ddx_dq, ddw_dq, ddw_dv, scratch, start, stop):
    """∂T/∂q, (states, 16 n n), of all link frames; of their ẋ, ω and ẍ, α, (states, 3 n n) each.

    All zero on entry; no rows in the three of velocity, or of acceleration: not wanted.
    """
    ok = finite((q, v, a), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    for r in range(start, stop, lane_count()):
        outward(m, q, v, a, r, scratch)
        for i in range(n):
            at = (i + 1) * N
            R = matmul(load9(scratch, at + FRAME), row9(m.F, i))
            x = link_point(m, i, scratch, N, (0.0, 0.0, 0.0))
            dx = point_velocity(scratch, i, x)
            ddx = point_acceleration(scratch, i, x, dx)
            w, dw = load3(scratch, at + VELOCITY), load3(scratch, at + ACCELERATION)
            j = i
            while j >= 0:
                # [zhakatayev2023] (10), (11); (12) is what is not visited
                path, k = (n + 1) * N + j * PATH, 16 * i * n + j
                z, dz = load3(scratch, path), load3(scratch, path + 6)
                scatter_column(dT, r, k, 4 * n, cross(z, (R[0], R[3], R[6])))
                scatter_column(dT, r, k + n, 4 * n, cross(z, (R[1], R[4], R[7])))
                scatter_column(dT, r, k + 2 * n, 4 * n, cross(z, (R[2], R[5], R[8])))
                scatter_column(dT, r, k + 3 * n, 4 * n, moved(scratch, path, x))
                k = 3 * i * n + j
                zw = cross(z, w)
                if len(dx_dq) > 0:
                    scatter_column(dx_dq, r, k, n, velocity_by_q(scratch, path, x, dx))
                    scatter_column(dw_dq, r, k, n, add(dz, zw))
                    scatter_column(dw_dv, r, k, n, z)
                if len(ddx_dq) > 0:
                    scatter_column(ddx_dq, r, k, n, acceleration_by_q(scratch, path, x, dx, ddx))
                    turned = add(cross(dz, w), cross(z, dw))
                    scatter_column(ddw_dq, r, k, n, add(load3(scratch, path + 12), turned))
                    scatter_column(ddw_dv, r, k, n, add(scale(2.0, dz), zw))
                x = add(x, load3(scratch, (j + 1) * N + SHIFT))
                j = m.parent[j]
    return ok
