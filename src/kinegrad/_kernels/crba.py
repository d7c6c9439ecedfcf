"""The joint-space mass matrix by composite rigid bodies in the world frame.

The links of subtree i move as one body: their inertias (``bodies.py``), shifted to the reference point of link i, add
up to I.  A unit of q̈_i sets subtree i moving with S_i, which takes  F = I S_i,  and  M_ij = S_j · F  for every j on the
path from i to the root, F shifted from joint to joint on the way; all other entries are zero.   [featherstone2008] 6.2

Glossary (world, about the reference point of link i)
    S       motion subspace of joint i
    I       inertia of subtree i: mass, first moment, rotational inertia
    N       slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
"""

from kinegrad._kernels.bodies import INERTIA, body, hand_on_inertia, load_inertia, store_inertia
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FREE, axis, frames, handed_on, subspace
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import clear, scatter, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import dot

BODY, N = FREE, FREE + INERTIA  # I


@inline
def block(m, q, M, r, scratch):
    """M of the states r … r+W−1, zero on entry where topology says zero."""
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    for i in range(n):
        at = (i + 1) * N
        for k in range(BODY, N):
            store(scratch, at + k, 0.0)
        if m.massive[i]:
            store_inertia(scratch, at + BODY, body(m, i, scratch, at))

    # inward: subtrees as one body; their momentum against every axis on the path to the root
    for i in range(n - 1, -1, -1):
        at = (i + 1) * N
        S = subspace(m, i, scratch, at)
        F = load_inertia(scratch, at + BODY).times(S)
        scatter(M, r, i * n + i, S.dot(F) + m.passive[i, 3])
        k, j = i, m.parent[i]
        while j >= 0:
            F = handed_on(m, k, (k + 1) * N, F, scratch)
            z = axis(scratch, (j + 1) * N)
            entry = m.rate[j, 0] * dot(z, F.n) + m.rate[j, 1] * dot(z, F.f)
            scatter(M, r, i * n + j, entry)
            scatter(M, r, j * n + i, entry)
            k, j = j, m.parent[j]
        if m.parent[i] >= 0:
            hand_on_inertia(m, i, (m.parent[i] + 1) * N, at, BODY, scratch)


@kernel
def crba(m, q, M, scratch, start, stop):
    """M, (states, n·n).  Zeros of topology are written here, block by block: by the thread and into the cache that the
    entries are then written to."""
    ok = finite((q,), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    branches = False
    for i in range(len(m.parent)):
        branches = branches or m.parent[i] != i - 1
    for r in range(start, stop, lane_count()):
        if branches:  # or all joints are on one path
            clear(M, r)
        block(m, q, M, r, scratch)
    return ok
