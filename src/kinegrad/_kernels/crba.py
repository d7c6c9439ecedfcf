"""The joint-space mass matrix by composite rigid bodies in the world frame.

About the reference point of link i (``kinematics.py``) the links of its subtree move as one body with mass m, first
moment h = m c and rotational inertia Ī.  Handed on to the parent, whose reference point is d before that of link i,

    h + m d        Ī + 2 (g·d) 1 − g dᵀ − d gᵀ,   g = h + ½ m d

they add up.  A unit of q̈_i sets subtree i moving with S_i = (z, s) (ρ and η absorbed), which takes

    n = Ī z + h×s        f = m s − h×z                                            [featherstone2008] 6.2

and M_ij = S_j · (n, f) for every j on the path from i to the root, (n, f) shifted from joint to joint on the way; all
other entries are zero.

Glossary (world, about the reference point of link i)
    z s     motion subspace of joint i
    m h I   mass, first moment and inertia of subtree i             I is Ī of the derivation
    N       slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.kinematics import FRAME, SHIFT, axis, frames, handed_on, subspace
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import load, scatter, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    add,
    add3,
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

MASS, FIRST, SECOND = 12, 13, 16  # m | h | I
N = 22


@inline
def body_inertia(m, i, scratch, at):
    """h and I (diagonal, rest) of link i alone."""
    R = load9(scratch, at + FRAME)
    c = mul(R, row3(m.inertia, i, 1))
    h = scale(m.inertia[i, 0], c)
    I = congruence(R, row6(m.inertia, i, 4))  # noqa: E741 (the book's symbol)
    x, y, z = h[0] * c[0], h[1] * c[1], h[2] * c[2]
    diagonal = I[0] + y + z, I[1] + x + z, I[2] + x + y
    return h, diagonal, (I[3] - h[0] * c[1], I[4] - h[0] * c[2], I[5] - h[1] * c[2])


@inline
def parallel(g, d):
    """2 (g·d) 1 − g dᵀ − d gᵀ, as diagonal and rest (xy, xz, yz): the parallel axis theorem with g = h + ½ m d."""
    x, y, z = g[0] * d[0], g[1] * d[1], g[2] * d[2]
    diagonal = 2.0 * (y + z), 2.0 * (x + z), 2.0 * (x + y)
    return diagonal, (-(g[0] * d[1] + d[0] * g[1]), -(g[0] * d[2] + d[0] * g[2]), -(g[1] * d[2] + d[1] * g[2]))


@inline
def inertia_before(M, h, diagonal, rest, d):
    """h and I (diagonal, rest) of a body of mass M about a point that is d before its reference point."""
    half = scale(0.5 * M, d)
    more, more_rest = parallel(add(h, half), d)
    return add(add(h, half), half), add(diagonal, more), add(rest, more_rest)


@inline
def hand_on_inertia(m, i, up, at, mass, scratch):
    """m, h and I of subtree i to its parent's; they follow each other from slot `mass` on."""
    first, second = mass + 1, mass + 4
    M, h = load(scratch, at + mass), load3(scratch, at + first)
    diagonal, rest = load3(scratch, at + second), load3(scratch, at + second + 3)
    if m.apart[i]:
        h, diagonal, rest = inertia_before(M, h, diagonal, rest, load3(scratch, at + SHIFT))
    store(scratch, up + mass, load(scratch, up + mass) + M)
    add3(scratch, up + first, h)
    add3(scratch, up + second, diagonal)
    add3(scratch, up + second + 3, rest)


@inline
def block(m, q, M, r, scratch):
    """M of the states r … r+W−1."""
    n = len(m.parent)
    frames(m, q, r, scratch, N)
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
        at = (i + 1) * N
        mass, h, I = load(scratch, at + MASS), load3(scratch, at + FIRST), load6(scratch, at + SECOND)  # noqa: E741
        z, s = subspace(m, i, scratch, at)
        moment = add(symmul(I, z), cross(h, s))
        f = sub(scale(mass, s), cross(h, z))
        scatter(M, r, i * n + i, dot(z, moment) + dot(s, f) + m.passive[i, 3])
        k, j = i, m.parent[i]
        while j >= 0:
            moment = handed_on(m, k, (k + 1) * N, moment, f, scratch)
            z = axis(scratch, (j + 1) * N)
            entry = m.rate[j, 0] * dot(z, moment) + m.rate[j, 1] * dot(z, f)
            scatter(M, r, i * n + j, entry)
            scatter(M, r, j * n + i, entry)
            k, j = j, m.parent[j]
        if m.parent[i] >= 0:
            hand_on_inertia(m, i, (m.parent[i] + 1) * N, at, MASS, scratch)


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
