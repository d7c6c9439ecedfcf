"""Slopes of the mass matrix along many directions of q, which share its values: [kudruss2019] algorithm 3.

What the duals of ``dual_states.py`` make of ``crba.py``, by hand.  Along δq, link c is displaced relative to its parent
by the twist S_c δq_c.  An observer on link i sees neither S_i nor the body of link i change; the inertia I of
subtree i and the force F = I S_i change for him, marked °, by what is displaced outboard,

    I_i° = Σ_children (I_c° + Y_c δq_c)          Y = S ×* I − I S×                             proposition 2
    F°   = I_i° S_i,   handed on to the parent as  F° + (S ×* F) δq                           proposition 1

and  δM_ij = S_j·F°  for every j on the path from i to the root.  Y and S ×* F are the same for all directions: what is
left for each of them is O(1) for each joint and each pair of joints.  With I = (m, h, Ī) and S = (z, s),

    Y = (0,  m s + z×h,  z×Ī − Ī z× + 2 (h·s) 1 − h sᵀ − s hᵀ)

Directions are layers, and lanes are states; or there is one layer, and lanes are directions of one state.

Glossary (world, about the reference point of link i; as in crba.py, then for each direction)
    RATE    I°: its first moment and rotational inertia (the mass does not change)      9 slots per joint
    δq      the direction                                                               1 slot per joint
    F°      as above, for the present i                                                 6 slots
"""

from kinegrad._kernels.bodies import (
    Inertia,
    add_sym,
    body,
    hand_on_inertia,
    load_inertia,
    parallel,
    plus,
    store_inertia,
)
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.crba import BODY, N
from kinegrad._kernels.joints import SHIFT, frames, handed_on, subspace
from kinegrad._kernels.lanes.lane import gather, layer, load, scatter, spread, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import add, add3, cross, load3, load6, load_force, put, scale, store3, zero3

RATE = 9
EACH, ONCE = RATE + 1, 6  # slots of a direction: for each joint, and besides


@inline
def _rate(n, k, i):
    """Where I° of subtree i along direction k is."""
    return (n + 1) * N + k * (EACH * n + ONCE) + RATE * i


@inline
def _step(n, k, i):
    """Where δq_i of direction k is; behind the last of them, F°."""
    return (n + 1) * N + k * (EACH * n + ONCE) + RATE * n + i


def slots(n: int, layers: int) -> int:
    """How many slots of scratch the kernel needs."""
    return (n + 1) * N + layers * (EACH * n + ONCE)


@inline
def _displaced(I, S):
    """Y of an inertia along a motion."""
    h, T = I.h, I.I
    x, y, z = (cross(S.w, (T[0], T[3], T[4])), cross(S.w, (T[3], T[1], T[5])), cross(S.w, (T[4], T[5], T[2])))
    turned = (2.0 * x[0], 2.0 * y[1], 2.0 * z[2], x[1] + y[0], x[2] + z[0], y[2] + z[1])
    return Inertia(spread(0.0), add(scale(I.mass, S.v), cross(S.w, h)), plus(turned, parallel(h, S.v)))


@inline
def _load_rate(scratch, k):
    return Inertia(spread(0.0), load3(scratch, k), load6(scratch, k + 3))


@inline
def _begin(m, q, dq, layers, r, scratch):
    """Frames and bodies; directions, and slopes of zero."""
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    for i in range(n):
        at = (i + 1) * N
        for k in range(BODY, N):
            store(scratch, at + k, 0.0)
        if m.massive[i]:
            store_inertia(scratch, at + BODY, body(m, i, scratch, at))
    for k in range(layers):
        for i in range(n):
            for j in range(0, RATE, 3):
                store3(scratch, _rate(n, k, i) + j, zero3())
            store(scratch, _step(n, k, i), gather(layer(dq, k), r, i))


@inline
def _hand_on(m, i, S, layers, scratch):
    """I° + Y δq and I of subtree i to those of its parent."""
    n, at, up = len(m.parent), (i + 1) * N, m.parent[i]
    Y = _displaced(load_inertia(scratch, at + BODY), S)
    for k in range(layers):
        e, own = load(scratch, _step(n, k, i)), _load_rate(scratch, _rate(n, k, i))
        T = Y.I
        more = (e * T[0], e * T[1], e * T[2], e * T[3], e * T[4], e * T[5])
        h, I = add(own.h, scale(e, Y.h)), plus(own.I, more)
        if m.apart[i]:
            I = plus(I, parallel(h, load3(scratch, at + SHIFT)))
        add3(scratch, _rate(n, k, up), h)
        add_sym(scratch, _rate(n, k, up) + 3, I)
    hand_on_inertia(m, i, (up + 1) * N, at, BODY, scratch)


@inline
def block(m, q, dq, M, dM, wide, first, r, scratch):
    """M and δM of the states r … r+W−1."""
    n, layers = len(m.parent), len(dq)
    _begin(m, q, dq, layers, r, scratch)

    # inward: momentum of subtrees, and its slopes, against every axis on the path to the root
    for i in range(n - 1, -1, -1):
        S = subspace(m, i, scratch, (i + 1) * N)
        F = load_inertia(scratch, (i + 1) * N + BODY).times(S)
        scatter(M, r, i * n + i, S.dot(F) + m.passive[i, 3])
        for k in range(layers):
            dF = _load_rate(scratch, _rate(n, k, i)).times(S)
            scatter(dM, r, (i * n + i) * wide + first + k, S.dot(dF))
            put(scratch, _step(n, k, n), dF)
        c, j = i, m.parent[i]
        while j >= 0:
            at = (c + 1) * N
            turned, S_j = subspace(m, c, scratch, at).cross(F), subspace(m, j, scratch, (j + 1) * N)
            F = handed_on(m, c, at, F, scratch)
            entry = S_j.dot(F)
            scatter(M, r, i * n + j, entry)
            scatter(M, r, j * n + i, entry)
            for k in range(layers):
                dF = load_force(scratch, _step(n, k, n)) + turned * load(scratch, _step(n, k, c))
                dF = handed_on(m, c, at, dF, scratch)
                put(scratch, _step(n, k, n), dF)
                slope = S_j.dot(dF)
                scatter(dM, r, (i * n + j) * wide + first + k, slope)
                scatter(dM, r, (j * n + i) * wide + first + k, slope)
            c, j = j, m.parent[j]
        if m.parent[i] >= 0:
            _hand_on(m, i, S, layers, scratch)


@kernel
def crba_tangent(m, q, dq, M, dM, wide, first, scratch, start, stop):
    """M, (rows or 1, n·n), and δM, (rows, n·n·wide), both zero on entry where topology says zero.

    q, (rows or 1, n), and dq, (layers, rows or 1, n); slopes of layer k go to columns first + k of `wide` for an entry.
    """
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        block(m, q, dq, M, dM, wide, first, r, scratch)
    return True
