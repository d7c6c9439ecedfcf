"""∂/∂(q, q̇) of the centre of mass and of momentum.

Let m, h, I, (n, p) be mass, first moment, inertia and momentum of the links beyond joint j (its subtree), S_j = (z, s)
with ρ and η absorbed, and ψ̇_j = V × S_j with V the spatial velocity of the parent link of j, all about the reference
point of link j (kinematics.py).  The momentum H of all links then changes by

    ∂H/∂q̇_j = I S_j              ∂H/∂q_j = S_j ×* (n, p) + I ψ̇_j                            [singh2022]
    I (z, s) = (I z + h×s, m s − h×z)      (z, s) ×* (n, p) = (z×n + s×p, z×p)

for a growing q_j moves the subtree, and its momentum with it, by S_j, which itself moves with the parent link
and so adds ψ̇_j to the velocity.  The linear part of I S_j is also what the first moment of all links gains:
their centre of mass c, of total mass M, moves by ∂c/∂q_j = (I S_j)_lin / M.  About c, which is −x from joint j,

    ∂L/∂q̇_j = ∂n/∂q̇_j + x×∂p/∂q̇_j         ∂L/∂q_j = ∂n/∂q_j + x×∂p/∂q_j − ∂c/∂q_j×p

with p the momentum of all links.

Glossary (world axes)
    R d ω v   of joint i, as in kinematics.py
    m h I n p of subtree i, about the reference point of link i
    PLACE     that point, from the anchor of kinematics.py
    N             slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.crba import body_inertia, hand_on_inertia
from kinegrad._kernels.kinematics import carried, frames, handed_on, places_from_anchor, subspace
from kinegrad._kernels.kinematics_derivatives import scatter_column
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, load, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import add, add3, cross, load3, load6, scale, store3, sub, symmul, twist, zero3

VELOCITY, MASS, FIRST, SECOND, MOMENTUM, PLACE = 12, 18, 19, 22, 28, 34  # ω v | m | h | I | n p | p
N = 37


@inline
def inertia(scratch, at, z, s):
    """I times the motion (z, s)."""
    h = load3(scratch, at + FIRST)
    return (
        add(symmul(load6(scratch, at + SECOND), z), cross(h, s)),
        sub(scale(load(scratch, at + MASS), s), cross(h, z)),
    )


@inline
def subtrees(m, q, v, r, scratch):
    """Frames, places and velocities of all links, and the sums over their subtrees.

    Returns the mass of all links, their first moment from the anchor, and their linear momentum.
    """
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    places_from_anchor(m, scratch, N, PLACE)
    store3(scratch, VELOCITY, zero3())
    store3(scratch, VELOCITY + 3, zero3())
    for i in range(n):
        up, at, dq = (m.parent[i] + 1) * N, (i + 1) * N, gather(v, r, i)
        w, x = carried(m, i, up + VELOCITY, at, scratch)
        z, s = subspace(m, i, scratch, at)
        w, x = add(w, scale(dq, z)), add(x, scale(dq, s))
        store3(scratch, at + VELOCITY, w)
        store3(scratch, at + VELOCITY + 3, x)
        h, diagonal, rest = zero3(), zero3(), zero3()
        if m.massive[i]:
            h, diagonal, rest = body_inertia(m, i, scratch, at)
        store(scratch, at + MASS, m.inertia[i, 0])
        store3(scratch, at + FIRST, h)
        store3(scratch, at + SECOND, diagonal)
        store3(scratch, at + SECOND + 3, rest)
        moment, p = inertia(scratch, at, w, x)
        store3(scratch, at + MOMENTUM, moment)
        store3(scratch, at + MOMENTUM + 3, p)
    first, momentum = zero3(), zero3()
    total = first[0]
    for i in range(n - 1, -1, -1):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        moment, p = load3(scratch, at + MOMENTUM), load3(scratch, at + MOMENTUM + 3)
        if m.parent[i] >= 0:
            hand_on_inertia(m, i, up, at, MASS, scratch)
            add3(scratch, up + MOMENTUM, handed_on(m, i, at, moment, p, scratch))
            add3(scratch, up + MOMENTUM + 3, p)
        else:
            mass = load(scratch, at + MASS)
            total = total + mass
            first = add(first, add(load3(scratch, at + FIRST), scale(mass, load3(scratch, at + PLACE))))
            momentum = add(momentum, p)
    return total, first, momentum


@kernel
def momentum_derivatives(m, q, v, dc_dq, dp_dq, dp_dv, dL_dq, dL_dv, scratch, start, stop):
    """∂c/∂q; ∂p and ∂L by q and q̇; (states, 3 n) each.  No rows in the first, or the others: not wanted."""
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    for r in range(start, stop, WIDTH):
        total, first, p = subtrees(m, q, v, r, scratch)
        per_mass = 1.0 / total
        c = scale(per_mass, first)
        for j in range(n):
            up, at = (m.parent[j] + 1) * N, (j + 1) * N
            z, s = subspace(m, j, scratch, at)
            t, t_ = inertia(scratch, at, z, s)
            dc = scale(per_mass, t_)
            if len(dc_dq) > 0:
                scatter_column(dc_dq, r, j, n, dc)
            if len(dp_dq) > 0:
                w, x = carried(m, j, up + VELOCITY, at, scratch)
                dz, ds = twist(w, x, z, s)
                u, u_ = inertia(scratch, at, dz, ds)
                moment, momentum = load3(scratch, at + MOMENTUM), load3(scratch, at + MOMENTUM + 3)
                u, u_ = add(u, add(cross(z, moment), cross(s, momentum))), add(u_, cross(z, momentum))
                scatter_column(dp_dv, r, j, n, t_)
                scatter_column(dp_dq, r, j, n, u_)
                x = sub(load3(scratch, at + PLACE), c)
                scatter_column(dL_dv, r, j, n, add(t, cross(x, t_)))
                scatter_column(dL_dq, r, j, n, sub(add(u, cross(x, u_)), cross(dc, p)))
    return ok
