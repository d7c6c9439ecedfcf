"""∂τ/∂(force, torque, point) of the load on every link.

A load (f at the link's point r, torque h) on link l costs joint i, on the path from l to the root,
−(z·(x×f + h) + s·f) with x from the reference point of link i to the point (kinematics.py; ρ and η absorbed in z, s):

    ∂τ_i/∂f = −(s + z×x)        ∂τ_i/∂h = −z        ∂τ_i/∂r = −R_lᵀ(f×z)
"""

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import FRAME, SHIFT, frames, subspace
from kinegrad._kernels.kinematics import N
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import add, cross, gather3, load3, load9, row9, scale, scatter3, tmul


@kernel
def load_derivatives(m, q, force, point, torque, by_force, by_torque, by_point, scratch, start, stop):
    """Three times (states, n·n·3), zero on entry; entry (i, l) begins at column 3(i n + l)."""
    ok = finite((q, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    for r in range(start, stop, lane_count()):
        frames(m, q, r, scratch, N)
        for link in range(n):
            x = link_point(m, link, scratch, N, gather3(point, r, 3 * link))
            f, R = gather3(force, r, 3 * link), load9(scratch, (link + 1) * N + FRAME)
            i = link
            while i >= 0:
                at, k = (i + 1) * N, 3 * (i * n + link)
                z, s = subspace(m, i, scratch, at)
                scatter3(by_force, r, k, scale(-1.0, add(s, cross(z, x))))
                scatter3(by_torque, r, k, scale(-1.0, z))
                scatter3(by_point, r, k, tmul(row9(m.F, link), tmul(R, cross(z, f))))
                x = add(x, load3(scratch, at + SHIFT))
                i = m.parent[i]
    return ok
