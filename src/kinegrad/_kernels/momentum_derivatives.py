"""∂/∂(q, q̇) of the centre of mass and of momentum.

Let m, h, I, (n, p) be mass, first moment, inertia and momentum, about the reference point o, of the links
beyond joint j (its subtree), S_j = (z, s) with ρ absorbed in z, and ψ̇_j = V × S_j with V the spatial velocity
of the parent link of j.  The momentum H of all links then changes by

    ∂H/∂q̇_j = I S_j              ∂H/∂q_j = S_j ×* (n, p) + I ψ̇_j                            [singh2022]
    I (z, s) = (I z + h×s, m s − h×z)      (z, s) ×* (n, p) = (z×n + s×p, z×p)

for a growing q_j moves the subtree, and its momentum with it, by S_j, which itself moves with the parent link
and so adds ψ̇_j to the velocity.  The linear part of I S_j is also what the first moment of all links gains:
their centre of mass c, of total mass M, moves by ∂c/∂q_j = (I S_j)_lin / M.  About c, with H = (n, p) of all,

    L = n − c×p      ∂L/∂q̇_j = ∂n/∂q̇_j − c×∂p/∂q̇_j      ∂L/∂q_j = ∂n/∂q_j − ∂c/∂q_j×p − c×∂p/∂q_j

Glossary (world frame, about o, the anchor of kinematics.py)
    R p z s ω v   of joint i, as in energy.py
    m h I n p     of subtree i; in the world's slots, of all links
    N             slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.crba import body_inertia
from kinegrad._kernels.finite import finite
from kinegrad._kernels.jit import inline, kernel
from kinegrad._kernels.kinematics import AXIS, anchor, base_at, frames, origin
from kinegrad._kernels.kinematics_derivatives import scatter_column
from kinegrad._kernels.lanes import gather, load, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_derivatives import load6, twist
from kinegrad._kernels.spatial import add, cross, load3, scale, store3, sub, symmul
from kinegrad._kernels.width import WIDTH

VELOCITY, MASS, FIRST, SECOND, MOMENTUM = 18, 24, 25, 28, 34  # ω v | m | h | I | n p
N = 40


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
    """Frames and velocities of all links, and the sums over their subtrees."""
    n = len(m.parent)
    base_at(scratch, scale(-1.0, anchor(m, q, r, scratch, N)))
    for k in range(VELOCITY, N):
        store(scratch, k, 0.0)
    frames(m, q, r, scratch, n, N)
    for i in range(n):
        up, at, dq = (m.parent[i] + 1) * N, (i + 1) * N, gather(v, r, i)
        w = add(load3(scratch, up + VELOCITY), scale(m.rate[i, 0] * dq, load3(scratch, at + AXIS)))
        x = add(load3(scratch, up + VELOCITY + 3), scale(dq, load3(scratch, at + AXIS + 3)))
        store3(scratch, at + VELOCITY, w)
        store3(scratch, at + VELOCITY + 3, x)
        h, diagonal, rest = origin(), origin(), origin()
        if m.massive[i]:
            h, diagonal, rest = body_inertia(m, i, scratch, at)
        store(scratch, at + MASS, m.inertia[i, 0])
        store3(scratch, at + FIRST, h)
        store3(scratch, at + SECOND, diagonal)
        store3(scratch, at + SECOND + 3, rest)
        moment, p = inertia(scratch, at, w, x)
        store3(scratch, at + MOMENTUM, moment)
        store3(scratch, at + MOMENTUM + 3, p)
    for i in range(n - 1, -1, -1):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        for k in range(MASS, N):
            store(scratch, up + k, load(scratch, up + k) + load(scratch, at + k))


@kernel
def momentum_derivatives(m, q, v, dc_dq, dp_dq, dp_dv, dL_dq, dL_dv, scratch, start, stop):
    """∂c/∂q; ∂p and ∂L by q and q̇; (states, 3 n) each.  No rows in the first, or the others: not wanted."""
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    for r in range(start, stop, WIDTH):
        subtrees(m, q, v, r, scratch)
        per_mass = 1.0 / load(scratch, MASS)
        c, p = scale(per_mass, load3(scratch, FIRST)), load3(scratch, MOMENTUM + 3)
        for j in range(n):
            up, at = (m.parent[j] + 1) * N, (j + 1) * N
            z, s = scale(m.rate[j, 0], load3(scratch, at + AXIS)), load3(scratch, at + AXIS + 3)
            t, t_ = inertia(scratch, at, z, s)
            dc = scale(per_mass, t_)
            if len(dc_dq) > 0:
                scatter_column(dc_dq, r, j, n, dc)
            if len(dp_dq) > 0:
                dz, ds = twist(load3(scratch, up + VELOCITY), load3(scratch, up + VELOCITY + 3), z, s)
                u, u_ = inertia(scratch, at, dz, ds)
                moment, carried = load3(scratch, at + MOMENTUM), load3(scratch, at + MOMENTUM + 3)
                u, u_ = add(u, add(cross(z, moment), cross(s, carried))), add(u_, cross(z, carried))
                scatter_column(dp_dv, r, j, n, t_)
                scatter_column(dp_dq, r, j, n, u_)
                scatter_column(dL_dv, r, j, n, sub(t, cross(c, t_)))
                scatter_column(dL_dq, r, j, n, sub(u, add(cross(dc, p), cross(c, u_))))
    return ok
