"""Hybrid dynamics by articulated bodies: some joints' motion is prescribed, the others are free; O(n).

For a free joint τ is known and q̈ is not; for a prescribed joint q̈ is known and τ is not.  As in ``aba.py``, the force
it takes to give link i the acceleration A is  I A + p.  A free joint gives way as there.  A prescribed one gives way
to nothing: whatever A_p its parent has, its link has A = A_p + c + S q̈ with all of this known but A_p, so inertia and
bias pass to the parent whole,

    I_p += I                      p_p += p + I (c + S q̈)                                   [featherstone2008] 9.2

(c + S q̈ are the remainder terms of prescribed motion in [anderson2002] (35), (36), where S q̈ is left out).  Outward,
once A is known, what it takes there:

    τ = S·(I A + p) + spring + damper + armature q̈

A prescribed joint needs no pivot, so that nothing need resist it.

Glossary: as in aba.py, and
    prescribed   (n,)  1 where q̈ is given, 0 where τ is
    DRIFT        c, and c + S q̈ of a prescribed joint
"""

from kinegrad._kernels.aba import (
    ACCELERATION,
    BIAS,
    DRIFT,
    LAMBDA,
    PHI,
    THETA,
    N,
    accelerate,
    articulated,
    free_lane,
    hand_on,
    hand_on_articulated,
    outward_motion,
    pivot,
)
from kinegrad._kernels.bodies import passive_force
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import carried, falling, subspace
from kinegrad._kernels.lanes.finite import finite, with_results
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import load6, load9, load_force, load_motion, put


@inline
def hand_on_whole(m, i, ddq, scratch):
    """c + S q̈, stored; I and p + I (c + S q̈) to the parent."""
    up, at = (m.parent[i] + 1) * N, (i + 1) * N
    c = load_motion(scratch, at + DRIFT) + subspace(m, i, scratch, at) * ddq
    put(scratch, at + DRIFT, c)
    if m.parent[i] >= 0:
        theta, phi, lam = load6(scratch, at + THETA), load9(scratch, at + PHI), load6(scratch, at + LAMBDA)
        p = load_force(scratch, at + BIAS) + articulated(scratch, at, c)
        hand_on_articulated(m, i, up, at, theta, phi, lam, p, scratch)


@inline
def follow(m, i, up, at, scratch):
    """A of link i, stored; S·(I A + p) of a prescribed joint."""
    A = carried(m, i, up + ACCELERATION, at, scratch) + load_motion(scratch, at + DRIFT)
    put(scratch, at + ACCELERATION, A)
    F = articulated(scratch, at, A) + load_force(scratch, at + BIAS)
    return subspace(m, i, scratch, at).dot(F)


@inline
def block(m, q, v, tau, a, prescribed, force, point, torque, ddq, t, r, scratch):
    """q̈ and τ of all joints, of the states r … r+W−1.  Returns a free joint that nothing resists and the lane of the
    state, or (−1, −1)."""
    n = len(m.parent)
    outward_motion(m, q, v, force, point, torque, r, scratch)

    # inward: articulated inertia and bias
    for i in range(n - 1, -1, -1):
        if prescribed[i]:
            hand_on_whole(m, i, gather(a, r, i), scratch)
        else:
            D, size = pivot(m, i, (i + 1) * N, gather(tau, r, i), gather(q, r, i), gather(v, r, i), scratch)
            w = free_lane(D, size)
            if w >= 0:
                return i, w
            if m.parent[i] >= 0:
                hand_on(m, i, scratch)

    # outward: accelerations, and what the prescribed ones take
    falling(m, scratch, ACCELERATION)
    for i in range(n):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        if prescribed[i]:
            given = gather(a, r, i)
            passive = passive_force(m, i, gather(q, r, i), gather(v, r, i), given)
            scatter(ddq, r, i, given)
            scatter(t, r, i, follow(m, i, up, at, scratch) + passive)
        else:
            scatter(ddq, r, i, accelerate(m, i, up, at, scratch))
            scatter(t, r, i, gather(tau, r, i))
    return -1, -1


@kernel
def hybrid(m, q, v, tau, a, prescribed, force, point, torque, ddq, t, status, scratch, start, stop):
    """q̈ and τ of all joints, (states, n) each; loads and status as in aba."""
    ok = finite((q, v, tau, a, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        joint, w = block(m, q, v, tau, a, prescribed, force, point, torque, ddq, t, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, len(ddq) - 1)
            return ok
    return with_results(ok, (ddq, t), start, stop)
