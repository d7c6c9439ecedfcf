"""Products of ∂τ/∂(q, q̇, q̈) with a direction, in O(n): the factors of rnea_derivatives.py, summed.

With t, b, u, w, l the factors of a joint (their 6-vectors written as one), S ψ̇ ψ̈ its path vectors and z its axis,

    jvp   δτ_i = b_i·Σ_{j⪯i}(ψ̇_j δq_j + S_j δq̇_j) + t_i·Σ_{j⪯i}(ψ̈_j δq_j + 2ψ̇_j δq̇_j + S_j δq̈_j) + l_i·Σ_{j⪯i} z_j δq_j
                 + S_i·Σ_{j≻i}(u_j δq_j + w_j δq̇_j + t_j δq̈_j)

(j ⪯ i: j on the path from i to the root).  Sums over j ⪯ i run outward, sums over j ≻ i inward, motions and forces
shifted from joint to joint as in kinematics.py.  (b has no linear part, so b·ψ̇ and b·S take the angular parts alone.)
Products from the other side are the gradient of yᵀτ: ``rnea_reverse.py``.

Glossary: SUM, the sums of one joint along its path (outward) or over its subtree (inward), 18 slots.
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.kinematics import carried, handed_on
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_derivatives import PATH, N, factors, hand_on, outward, record
from kinegrad._kernels.spatial import add, add3, dot, load3, scale, store3, zero3

SUM = 18  # slots a joint (and the world): see the kernel


@inline
def base(n):
    """Where the sums begin: joint i's at base + (i+1)·SUM, the world's at base."""
    return (n + 1) * N + n * PATH


def slots(n: int) -> int:
    """Scratch slots for n joints."""
    return (n + 1) * N + n * PATH + (n + 1) * SUM


@inline
def clear_sums(n, scratch):
    for k in range(base(n), base(n) + (n + 1) * SUM, 3):
        store3(scratch, k, zero3())


@kernel
def jvp(m, q, v, a, dq, dv, da, force, point, torque, plan, dtau, scratch, start, stop):
    """δτ, (states, n).  Sums: for b (3) | for t (6) | for l (3), outward; for S (6), inward."""
    ok = finite((q, v, a, dq, dv, da, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n, loaded = len(m.parent), len(force) > 0
    for r in range(start, stop, WIDTH):
        outward(m, plan, q, v, a, force, point, torque, r, scratch)
        clear_sums(n, scratch)
        for i in range(n):
            path, up, at = (n + 1) * N + i * PATH, base(n) + (m.parent[i] + 1) * SUM, base(n) + (i + 1) * SUM
            e, de, dde = gather(dq, r, i), gather(dv, r, i), gather(da, r, i)
            z, s = load3(scratch, path), load3(scratch, path + 3)
            dz, ds = load3(scratch, path + 6), load3(scratch, path + 9)
            ddz, dds = load3(scratch, path + 12), load3(scratch, path + 15)
            store3(scratch, at, add(load3(scratch, up), add(scale(e, dz), scale(de, z))))
            by_t = add(scale(e, ddz), add(scale(2.0 * de, dz), scale(dde, z)))
            by_t_ = add(scale(e, dds), add(scale(2.0 * de, ds), scale(dde, s)))
            above, above_ = carried(m, i, up + 3, (i + 1) * N, scratch)
            store3(scratch, at + 3, add(above, by_t))
            store3(scratch, at + 6, add(above_, by_t_))
            store3(scratch, at + 9, add(load3(scratch, up + 9), scale(e, z)))
        for i in range(n - 1, -1, -1):
            path, up, at = (n + 1) * N + i * PATH, base(n) + (m.parent[i] + 1) * SUM, base(n) + (i + 1) * SUM
            e, de, dde = gather(dq, r, i), gather(dv, r, i), gather(da, r, i)
            t, t_, b, u, u_, w, w_, l = factors(m, i, record(plan, i), path, loaded, scratch)  # noqa: E741
            z, s = load3(scratch, path), load3(scratch, path + 3)
            below, below_ = load3(scratch, at + 12), load3(scratch, at + 15)
            change = dot(b, load3(scratch, at)) + dot(t, load3(scratch, at + 3)) + dot(t_, load3(scratch, at + 6))
            change = change + dot(l, load3(scratch, at + 9)) + dot(z, below) + dot(s, below_)
            change = change + m.passive[i, 0] * e + m.passive[i, 2] * de + m.passive[i, 3] * dde
            scatter(dtau, r, i, change)
            below = add(below, add(scale(e, u), add(scale(de, w), scale(dde, t))))
            below_ = add(below_, add(scale(e, u_), add(scale(de, w_), scale(dde, t_))))
            add3(scratch, up + 12, handed_on(m, i, (i + 1) * N, below, below_, scratch))
            add3(scratch, up + 15, below_)
            hand_on(m, plan, i, loaded, scratch)
    return ok
