"""Products of ∂τ/∂(q, q̇, q̈) with a direction, in O(n): the factors of rnea_derivatives.py, summed.

With t, b, u, w, l the factors of a joint (their 6-vectors written as one), S ψ̇ ψ̈ its path vectors and z its axis,

    jvp   δτ_i = b_i·Σ_{j⪯i}(ψ̇_j δq_j + S_j δq̇_j) + t_i·Σ_{j⪯i}(ψ̈_j δq_j + 2ψ̇_j δq̇_j + S_j δq̈_j) + l_i·Σ_{j⪯i} z_j δq_j
                 + S_i·Σ_{j≻i}(u_j δq_j + w_j δq̇_j + t_j δq̈_j)

(j ⪯ i: j on the path from i to the root).  Sums over j ⪯ i run outward, sums over j ≻ i inward, motions and forces
shifted from joint to joint as in joints.py.  (b has no linear part, so b·ψ̇ and b·S take the angular parts alone.)
Products from the other side are the gradient of yᵀτ: ``rnea_gradient.py``.

Glossary: sums of a joint along its path, for b (3) | t (6) | l (3), and over its subtree, for S (6).
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import carried, handed_on
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_derivatives import CURVE, PATH, RATE, SUBSPACE, N, factors, hand_on, outward, record
from kinegrad._kernels.spatial import add, dot, increase, load3, load_force, load_motion, put, scale, store3, zero3

FOR_B, FOR_T, FOR_L, FOR_S, SUM = 0, 3, 9, 12, 18  # sums of a joint | slots of them, for each joint and the world


@inline
def base(n):
    """Where the sums begin: joint i's at base + (i+1)·SUM, the world's at base."""
    return (n + 1) * N + n * PATH


def slots(n: int) -> int:
    """Scratch slots for n joints."""
    return (n + 1) * N + n * PATH + (n + 1) * SUM


@inline
def block(m, q, v, a, dq, dv, da, force, point, torque, plan, dtau, r, scratch):
    """δτ of the states r … r+W−1."""
    n, loaded = len(m.parent), len(force) > 0
    outward(m, plan, q, v, a, force, point, torque, r, scratch)
    for k in range(base(n), base(n) + (n + 1) * SUM, 3):
        store3(scratch, k, zero3())

    # outward: what b, t and l of a joint meet on its path
    for i in range(n):
        path, up, at = (n + 1) * N + i * PATH, base(n) + (m.parent[i] + 1) * SUM, base(n) + (i + 1) * SUM
        e, de, dde = gather(dq, r, i), gather(dv, r, i), gather(da, r, i)
        S, dS = load_motion(scratch, path + SUBSPACE), load_motion(scratch, path + RATE)
        ddS = load_motion(scratch, path + CURVE)
        store3(scratch, at + FOR_B, add(load3(scratch, up + FOR_B), add(scale(e, dS.w), scale(de, S.w))))
        above = carried(m, i, up + FOR_T, (i + 1) * N, scratch)
        put(scratch, at + FOR_T, above + (ddS * e + (dS * (2.0 * de) + S * dde)))
        store3(scratch, at + FOR_L, add(load3(scratch, up + FOR_L), scale(e, S.w)))

    # inward: what S of a joint meets in its subtree
    for i in range(n - 1, -1, -1):
        path, up, at = (n + 1) * N + i * PATH, base(n) + (m.parent[i] + 1) * SUM, base(n) + (i + 1) * SUM
        e, de, dde = gather(dq, r, i), gather(dv, r, i), gather(da, r, i)
        t, b, u, w, l = factors(m, i, record(plan, i), path, loaded, scratch)
        S, below = load_motion(scratch, path + SUBSPACE), load_force(scratch, at + FOR_S)
        change = dot(b, load3(scratch, at + FOR_B)) + load_motion(scratch, at + FOR_T).dot(t)
        change = change + dot(l, load3(scratch, at + FOR_L)) + S.dot(below)
        change = change + m.passive[i, 0] * e + m.passive[i, 2] * de + m.passive[i, 3] * dde
        scatter(dtau, r, i, change)
        below = below + (u * e + (w * de + t * dde))
        increase(scratch, up + FOR_S, handed_on(m, i, (i + 1) * N, below, scratch))
        hand_on(m, plan, i, loaded, scratch)


@kernel
def jvp(m, q, v, a, dq, dv, da, force, point, torque, plan, dtau, scratch, start, stop):
    """δτ, (states, n)."""
    ok = finite((q, v, a, dq, dv, da, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        block(m, q, v, a, dq, dv, da, force, point, torque, plan, dtau, r, scratch)
    return ok
