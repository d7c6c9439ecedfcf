"""Inverse dynamics by recursive Newton–Euler in the world frame: τ(q, q̇, q̈), O(n).

With spatial velocity and acceleration of every link from ``joints.py`` (the world accelerating at −g, which is
gravity), each link takes the force of ``bodies.py``, less the load on it.  Forces of children, shifted to the reference
point of their parent, add up, and joint i must supply  τ_i = S_i · Σ_{subtree} (n, f)  plus what its spring, damper and
rotor take.  [luh1980], [featherstone2008] 5.3

Glossary
    V A     velocity and acceleration of link i                world, about the reference point of link i
    F       force (n, f) on subtree i                          likewise
    N       slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.bodies import inertia_force, load_on, passive_force
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FRAME, FREE, axis, falling, frames, handed_on, move, rest
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import Force, dot, increase, load9, load_force, put, scale

VELOCITY, ACCELERATION, FORCE, N = FREE, FREE + 6, FREE + 12, FREE + 18  # V | A | F


@inline
def block(m, q, v, a, force, point, torque, tau, r, scratch):
    """τ of the states r … r+W−1."""
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    rest(scratch, VELOCITY)
    falling(m, scratch, ACCELERATION)

    # outward: motion of every link and the force it takes
    for i in range(n):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        V, A = move(m, i, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, i), gather(a, r, i))
        zero = scale(0.0, V.v)
        F = Force(zero, zero)
        if m.massive[i]:
            F = inertia_force(m, i, load9(scratch, at + FRAME), V, A)
        if len(force) > 0:
            F = F - load_on(m, i, r, force, point, torque, scratch, N)
        put(scratch, at + FORCE, F)

    # inward: project on the joint's axis, hand on to the parent
    for i in range(n - 1, -1, -1):
        at = (i + 1) * N
        F, z = load_force(scratch, at + FORCE), axis(scratch, at)
        t = m.rate[i, 0] * dot(z, F.n) + m.rate[i, 1] * dot(z, F.f)
        scatter(tau, r, i, t + passive_force(m, i, gather(q, r, i), gather(v, r, i), gather(a, r, i)))
        if m.parent[i] >= 0:
            increase(scratch, (m.parent[i] + 1) * N + FORCE, handed_on(m, i, at, F, scratch))


@kernel
def rnea(m, q, v, a, force, point, torque, tau, scratch, start, stop):
    """τ, (states, n); loads (states or 1, 3 n), or (0, 3 n) for none."""
    ok = finite((q, v, a, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        block(m, q, v, a, force, point, torque, tau, r, scratch)
    return ok
