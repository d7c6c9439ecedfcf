"""The inertial regressor Y(q, q̇, q̈): torques are linear in the links' inertial parameters, τ = Y π.

About the origin of its own frame link j takes, with a₀ the acceleration of that origin less gravity, all in its axes,

    F = m a₀ + α×h + ω×(ω×h)          N = Ī α + ω×Ī ω + h×a₀                                      [atkeson1986]

linear in m, h = m c and Ī (about the origin).  Joint i, an ancestor of j or j itself, turns the link by ρz and moves
its origin, at x from the reference point of joint i, by u = ηz + ρz×x, so that its share is  ρz·N + u·F.  Collected
by parameter,

    m    u·a₀
    h    u×α + (u·ω) ω − (ω·ω) u + a₀×ρz
    Ī    (ρz) αᵀ + (ρz×ω) ωᵀ, symmetrised

Glossary
    R d ω v α a   as in joints.py, the world accelerating at −g
    L, x    rotation of link frame j; its origin from the reference point of joint i    world
    N       slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FRAME, SHIFT, falling, frames, move, rest, subspace
from kinegrad._kernels.kinematics import ACCELERATION, VELOCITY, N, point_acceleration, point_velocity
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    add,
    cross,
    dot,
    load3,
    load9,
    matmul,
    row9,
    scale,
    scatter3,
    sub,
    tmul,
)  # fmt: skip

PARAMETERS = 10  # of a link: m | m·c x y z | Ī xx xy xz yy yz zz


@inline
def share(Y, r, k, z, u, w, dw, a):
    """What a joint that turns the link by z and moves its origin by u feels of each parameter, from column k on."""
    scatter(Y, r, k, dot(u, a))
    h = add(add(cross(u, dw), cross(a, z)), sub(scale(dot(u, w), w), scale(dot(w, w), u)))
    scatter3(Y, r, k + 1, h)
    y = cross(z, w)
    scatter(Y, r, k + 4, z[0] * dw[0] + y[0] * w[0])
    scatter(Y, r, k + 5, z[0] * dw[1] + z[1] * dw[0] + y[0] * w[1] + y[1] * w[0])
    scatter(Y, r, k + 6, z[0] * dw[2] + z[2] * dw[0] + y[0] * w[2] + y[2] * w[0])
    scatter(Y, r, k + 7, z[1] * dw[1] + y[1] * w[1])
    scatter(Y, r, k + 8, z[1] * dw[2] + z[2] * dw[1] + y[1] * w[2] + y[2] * w[1])
    scatter(Y, r, k + 9, z[2] * dw[2] + y[2] * w[2])


@inline
def block(m, q, v, a, Y, r, scratch):
    """Y of the states r … r+W−1."""
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    rest(scratch, VELOCITY)
    falling(m, scratch, ACCELERATION)
    for j in range(n):
        up, at = (m.parent[j] + 1) * N, (j + 1) * N
        V, A = move(m, j, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, j), gather(a, r, j))
        L = matmul(load9(scratch, at + FRAME), row9(m.F, j))
        x = link_point(m, j, scratch, N, (0.0, 0.0, 0.0))
        a0 = tmul(L, point_acceleration(scratch, j, x, point_velocity(scratch, j, x)))
        w, dw = tmul(L, V.w), tmul(L, A.w)

        # the joint itself, then every joint on the path to the root
        i = j
        while i >= 0:
            z, s = subspace(m, i, scratch, (i + 1) * N)
            u = add(s, cross(z, x))
            share(Y, r, (i * n + j) * PARAMETERS, tmul(L, z), tmul(L, u), w, dw, a0)
            x = add(x, load3(scratch, (i + 1) * N + SHIFT))
            i = m.parent[i]


@kernel
def regressor(m, q, v, a, Y, scratch, start, stop):
    """Y, (states, n·10n), zero on entry where topology says zero."""
    ok = finite((q, v, a), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        block(m, q, v, a, Y, r, scratch)
    return ok
