"""∂/∂(q, q̇) of the centre of mass and of momentum.

Let m, h, I, (n, p) be mass, first moment, inertia and momentum of the links beyond joint j (its subtree), S_j = (z, s)
with ρ and η absorbed, and ψ̇_j = V × S_j with V the spatial velocity of the parent link of j, all about the reference
point of link j (joints.py).  The momentum H of all links then changes by

    ∂H/∂q̇_j = I S_j              ∂H/∂q_j = S_j ×* (n, p) + I ψ̇_j                            [singh2022]
    I (z, s) = (I z + h×s, m s − h×z)      (z, s) ×* (n, p) = (z×n + s×p, z×p)

for a growing q_j moves the subtree, and its momentum with it, by S_j, which itself moves with the parent link
and so adds ψ̇_j to the velocity.  The linear part of I S_j is also what the first moment of all links gains:
their centre of mass c, of total mass M, moves by ∂c/∂q_j = (I S_j)_lin / M.  About c, which is −x from joint j,

    ∂L/∂q̇_j = ∂n/∂q̇_j + x×∂p/∂q̇_j         ∂L/∂q_j = ∂n/∂q_j + x×∂p/∂q_j − ∂c/∂q_j×p

with p the momentum of all links.

Glossary (world axes)
    R d, V = (ω, v)   of joint i, as in joints.py
    m h I n p of subtree i, about the reference point of link i
    PLACE     that point, from the anchor of joints.py
    N             slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.bodies import INERTIA, Inertia, body, hand_on_inertia, load_inertia, store_inertia
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FREE, carried, frames, handed_on, places_from_anchor, rest, subspace
from kinegrad._kernels.kinematics_derivatives import scatter_column
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, load
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import add, cross, increase, load3, load_force, put, scale, sub, zero3

VELOCITY, BODY = FREE, FREE + 6  # V | I
MOMENTUM, PLACE, N = BODY + INERTIA, BODY + INERTIA + 6, BODY + INERTIA + 9  # (n, p) | place


@inline
def subtrees(m, q, v, r, scratch):
    """Frames, places and velocities of all links, and the sums over their subtrees.

    Returns the mass of all links, their first moment from the anchor, and their linear momentum.
    """
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    places_from_anchor(m, scratch, N, PLACE)
    rest(scratch, VELOCITY)
    for i in range(n):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        V = carried(m, i, up + VELOCITY, at, scratch) + subspace(m, i, scratch, at) * gather(v, r, i)
        put(scratch, at + VELOCITY, V)
        zero = zero3()
        own = Inertia(m.inertia[i, 0], zero, (*zero, *zero))
        if m.massive[i]:
            own = body(m, i, scratch, at)
        store_inertia(scratch, at + BODY, own)
        put(scratch, at + MOMENTUM, own.times(V))
    first, momentum = zero3(), zero3()
    total = first[0]
    for i in range(n - 1, -1, -1):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        P = load_force(scratch, at + MOMENTUM)
        if m.parent[i] >= 0:
            hand_on_inertia(m, i, up, at, BODY, scratch)
            increase(scratch, up + MOMENTUM, handed_on(m, i, at, P, scratch))
        else:
            mass = load(scratch, at + BODY)
            total = total + mass
            first = add(first, add(load3(scratch, at + BODY + 1), scale(mass, load3(scratch, at + PLACE))))
            momentum = add(momentum, P.f)
    return total, first, momentum


@inline
def block(m, q, v, dc_dq, dp_dq, dp_dv, dL_dq, dL_dv, r, scratch):
    """The derivatives of the states r … r+W−1."""
    n = len(m.parent)
    total, first, p = subtrees(m, q, v, r, scratch)
    per_mass = 1.0 / total
    c = scale(per_mass, first)
    for j in range(n):
        up, at = (m.parent[j] + 1) * N, (j + 1) * N
        S, I = subspace(m, j, scratch, at), load_inertia(scratch, at + BODY)
        by_v = I.times(S)
        dc = scale(per_mass, by_v.f)
        if len(dc_dq) > 0:
            scatter_column(dc_dq, r, j, n, dc)
        if len(dp_dq) > 0:
            V = carried(m, j, up + VELOCITY, at, scratch)
            by_q = I.times(V.cross(S)) + S.cross(load_force(scratch, at + MOMENTUM))
            x = sub(load3(scratch, at + PLACE), c)
            scatter_column(dp_dv, r, j, n, by_v.f)
            scatter_column(dp_dq, r, j, n, by_q.f)
            scatter_column(dL_dv, r, j, n, by_v.before(x).n)
            scatter_column(dL_dq, r, j, n, sub(by_q.before(x).n, cross(dc, p)))


@kernel
def momentum_derivatives(m, q, v, dc_dq, dp_dq, dp_dv, dL_dq, dL_dv, scratch, start, stop):
    """∂c/∂q; ∂p and ∂L by q and q̇; (states, 3 n) each.  No rows in the first, or the others: not wanted."""
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        block(m, q, v, dc_dq, dp_dq, dp_dv, dL_dq, dL_dv, r, scratch)
    return ok
