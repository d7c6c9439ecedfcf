"""Sums over all bodies: energies, centre of mass, momentum.

With c from the reference point of a link to its centre of mass, which is at x from the anchor o, and ċ = v + ω×c,

    T = ½ Σ (m ċ·ċ + ω·Iω) + ½ Σ armature q̇²         V = −Σ m g·(o+x) + ½ Σ stiffness (q − rest)²
    p = Σ m ċ                                         L = Σ (Iω + m x×ċ), moved from o to the centre of mass

Glossary
    R, V = (ω, v)   as in joints.py;  PLACE: reference point, from o    world
    N         slots per joint; joint i's slots begin at (i+1)·N, the world's at 0
Output columns: T, V, centre of mass (3), linear momentum (3), angular momentum about the centre of mass (3).
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FRAME, FREE, carried, frames, places_from_anchor, rest, subspace
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    add,
    cross,
    dot,
    load3,
    load9,
    mul,
    put,
    row3,
    row6,
    scale,
    scatter3,
    sub,
    symmul,
    tmul,
)  # fmt: skip

VELOCITY, PLACE, N = FREE, FREE + 6, FREE + 9  # V | p
COLUMNS = 11


@inline
def block(m, q, v, out, r, scratch):
    """The columns of the states r … r+W−1."""
    n = len(m.parent)
    frames(m, q, r, scratch, N)
    o = places_from_anchor(m, scratch, N, PLACE)
    rest(scratch, VELOCITY)
    zero = scale(0.0, o)
    total, twice_kinetic, twice_elastic = zero[0], zero[0], zero[0]
    first, momentum, angular = zero, zero, zero
    for i in range(n):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        dq, stretch = gather(v, r, i), gather(q, r, i) - m.passive[i, 1]
        V = carried(m, i, up + VELOCITY, at, scratch) + subspace(m, i, scratch, at) * dq
        put(scratch, at + VELOCITY, V)
        twice_kinetic = twice_kinetic + m.passive[i, 3] * dq * dq
        twice_elastic = twice_elastic + m.passive[i, 0] * stretch * stretch
        if m.massive[i]:
            R, mass = load9(scratch, at + FRAME), m.inertia[i, 0]
            c = mul(R, row3(m.inertia, i, 1))
            x, dc = add(load3(scratch, at + PLACE), c), V.at(c).v
            p = scale(mass, dc)
            local = tmul(R, V.w)
            spin = symmul(row6(m.inertia, i, 4), local)
            total = total + mass
            twice_kinetic = twice_kinetic + dot(p, dc) + dot(local, spin)
            first = add(first, scale(mass, x))
            momentum = add(momentum, p)
            angular = add(angular, add(mul(R, spin), cross(x, p)))
    centre = scale(1.0 / total, first)
    g = (m.gravity[0, 0], m.gravity[0, 1], m.gravity[0, 2])
    scatter(out, r, 0, 0.5 * twice_kinetic)
    scatter(out, r, 1, 0.5 * twice_elastic - dot(g, add(first, scale(total, o))))
    scatter3(out, r, 2, add(centre, o))
    scatter3(out, r, 5, momentum)
    scatter3(out, r, 8, sub(angular, cross(centre, momentum)))


@kernel
def energies(m, q, v, out, scratch, start, stop):
    """out, (states, 11): see the module's docstring."""
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        block(m, q, v, out, r, scratch)
    return ok
