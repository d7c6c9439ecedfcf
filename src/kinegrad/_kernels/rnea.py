"""Inverse dynamics by recursive Newton–Euler in the world frame: τ(q, q̇, q̈), O(n).

With spatial velocity and acceleration of every link from ``kinematics.py`` (the world accelerating at −g, which is
gravity), the momentum balance of link i about its reference point is, with c from there to its centre of mass,

    f_i = m (a + α×c + ω×(v + ω×c))                                              [luh1980], [featherstone2008] 5.3
    n_i = R (I R'α + R'ω × I R'ω) + c×f_i          (R' = Rᵀ, I about c in the joint frame)

less the loads on it.  Forces of children, shifted to the reference point of their parent, add up, and joint i must
supply  τ_i = S_i · Σ_{subtree} (n, f)  plus what its spring, damper and rotor take.

Glossary
    R d z ω v α a   as in kinematics.py
    c       centre of mass of link i                          world, from the reference point of link i
    f, n    force on subtree i and its moment                 world, about the reference point of link i
    N       slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.kinematics import FRAME, axis, frames, handed_on, link_point, move
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter, spread
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    add,
    add3,
    cross,
    dot,
    gather3,
    load3,
    load9,
    mul,
    row3,
    row6,
    scale,
    store3,
    sub,
    symmul,
    tmul,
    zero3,
)  # fmt: skip

VELOCITY, ACCELERATION, FORCE = 12, 18, 24  # ω v | α a | n f
N = 30


@inline
def inertia_force(m, i, R, w, v, dw, dv):
    """n and f that the motion of link i takes."""
    mass, com, inertia = m.inertia[i, 0], row3(m.inertia, i, 1), row6(m.inertia, i, 4)
    c = mul(R, com)
    f = scale(mass, add(dv, add(cross(dw, c), cross(w, add(v, cross(w, c))))))
    w, dw = tmul(R, w), tmul(R, dw)
    n = mul(R, add(symmul(inertia, dw), cross(w, symmul(inertia, w))))
    return add(n, cross(c, f)), f


@inline
def load_force(m, i, r, force, point, torque, scratch):
    """n and f of the load on link i: a world force at a point fixed in the link, and a world torque."""
    f = gather3(force, r, 3 * i)
    x = link_point(m, i, scratch, N, gather3(point, r, 3 * i))
    return add(gather3(torque, r, 3 * i), cross(x, f)), f


@inline
def passive_force(m, i, q, dq, ddq):
    """What spring, damper and rotor of joint i take."""
    return m.passive[i, 0] * (q - m.passive[i, 1]) + m.passive[i, 2] * dq + m.passive[i, 3] * ddq


@inline
def gravity_at_base(m, scratch, at):
    """The world does not turn, and accelerates at −g."""
    store3(scratch, at, zero3())
    g = spread(m.gravity[0, 0]), spread(m.gravity[0, 1]), spread(m.gravity[0, 2])
    store3(scratch, at + 3, scale(-1.0, g))


@inline
def block(m, q, v, a, force, point, torque, tau, r, scratch):
    """τ of the states r … r+W−1."""
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    store3(scratch, VELOCITY, zero3())
    store3(scratch, VELOCITY + 3, zero3())
    gravity_at_base(m, scratch, ACCELERATION)

    # outward: motion of every link and the force it takes
    for i in range(n):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        w, dx, dw, ddx = move(m, i, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, i), gather(a, r, i))
        moment, f = scale(0.0, dx), scale(0.0, dx)
        if m.massive[i]:
            moment, f = inertia_force(m, i, load9(scratch, at + FRAME), w, dx, dw, ddx)
        if len(force) > 0:
            load_moment, load = load_force(m, i, r, force, point, torque, scratch)
            moment, f = sub(moment, load_moment), sub(f, load)
        store3(scratch, at + FORCE, moment)
        store3(scratch, at + FORCE + 3, f)

    # inward: project on the joint's axis, hand on to the parent
    for i in range(n - 1, -1, -1):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        moment, f = load3(scratch, at + FORCE), load3(scratch, at + FORCE + 3)
        z = axis(scratch, at)
        t = m.rate[i, 0] * dot(z, moment) + m.rate[i, 1] * dot(z, f)
        t = t + passive_force(m, i, gather(q, r, i), gather(v, r, i), gather(a, r, i))
        scatter(tau, r, i, t)
        if m.parent[i] >= 0:
            add3(scratch, up + FORCE, handed_on(m, i, at, moment, f, scratch))
            add3(scratch, up + FORCE + 3, f)


@kernel
def rnea(m, q, v, a, force, point, torque, tau, scratch, start, stop):
    """τ, (states, n); loads (states or 1, 3 n), or (0, 3 n) for none."""
    ok = finite((q, v, a, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        block(m, q, v, a, force, point, torque, tau, r, scratch)
    return ok
