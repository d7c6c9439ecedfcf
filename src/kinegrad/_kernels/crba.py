"""The joint-space mass matrix by composite rigid bodies in the world frame.

About the reference point o a set of bodies moves as one with mass m, first moment h = m c and rotational inertia
I = Σ R I_c Rᵀ + m(c·c 1 − c cᵀ); all ten numbers of a subtree add up.  A unit of q̈_i sets subtree i moving with
S_i = (ρz, s), which takes

    n = I ρz + h×s        f = m s − h×ρz                                          [featherstone2008] 6.2

and M_ij = S_j · (n, f) for every j on the path from i to the root; all other entries are zero.

Glossary
    z s     axis of joint i and its moment, as in kinematics.py    world, relative to o
    h, I    first moment and inertia of subtree i about o          world
    N       slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.finite import finite
from kinegrad._kernels.jit import inline, kernel
from kinegrad._kernels.kinematics import AXIS, FRAME, anchor, base_at, frames
from kinegrad._kernels.lanes import load, scatter, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    add,
    congruence,
    cross,
    dot,
    load3,
    load6,
    load9,
    mul,
    row3,
    row6,
    scale,
    store3,
    sub,
    symmul,
)  # fmt: skip
from kinegrad._kernels.width import WIDTH

MASS, FIRST, SECOND = 18, 19, 22  # m | h | I
N = 28


@inline
def body_inertia(m, i, scratch, at):
    """h and I of link i about o."""
    R, p = load9(scratch, at + FRAME), load3(scratch, at + FRAME + 9)
    mass = m.inertia[i, 0]
    c = add(p, mul(R, row3(m.inertia, i, 1)))
    h = scale(mass, c)
    I = congruence(R, row6(m.inertia, i, 4))  # noqa: E741 (the book's symbol)
    x, y, z = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    diagonal = I[0] + y + z, I[1] + x + z, I[2] + x + y
    return h, diagonal, (I[3] - h[0] * c[1], I[4] - h[0] * c[2], I[5] - h[1] * c[2])


@inline
def block(m, q, M, r, scratch):
    """M of the states r … r+W−1."""
    n = len(m.parent)
    o = anchor(m, q, r, scratch, N)
    base_at(scratch, scale(-1.0, o))
    frames(m, q, r, scratch, n, N)
    for i in range(n):
        at = (i + 1) * N
        for k in range(MASS, N):
            store(scratch, at + k, 0.0)
        if m.massive[i]:
            h, diagonal, rest = body_inertia(m, i, scratch, at)
            store(scratch, at + MASS, m.inertia[i, 0])
            store3(scratch, at + FIRST, h)
            store3(scratch, at + SECOND, diagonal)
            store3(scratch, at + SECOND + 3, rest)

    # inward: subtrees as one body; their momentum against every axis on the path to the root
    for i in range(n - 1, -1, -1):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        mass, h, I = load(scratch, at + MASS), load3(scratch, at + FIRST), load6(scratch, at + SECOND)  # noqa: E741
        turn, s = scale(m.rate[i, 0], load3(scratch, at + AXIS)), load3(scratch, at + AXIS + 3)
        moment = add(symmul(I, turn), cross(h, s))
        f = sub(scale(mass, s), cross(h, turn))
        scatter(M, r, i * n + i, dot(turn, moment) + dot(s, f) + m.passive[i, 3])
        j = m.parent[i]
        while j >= 0:
            there = (j + 1) * N + AXIS
            entry = m.rate[j, 0] * dot(load3(scratch, there), moment) + dot(load3(scratch, there + 3), f)
            scatter(M, r, i * n + j, entry)
            scatter(M, r, j * n + i, entry)
            j = m.parent[j]
        if m.parent[i] >= 0:
            for k in range(MASS, N):
                store(scratch, up + k, load(scratch, up + k) + load(scratch, at + k))


@kernel
def crba(m, q, M, scratch, start, stop):
    """M, (states, n·n), zero on entry where topology says zero."""
    ok = finite((q,), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        block(m, q, M, r, scratch)
    return ok
