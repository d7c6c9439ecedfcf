"""∂²/∂(q, q̇, q̈)² of a weighted sum of positions, velocities and accelerations of points: φ = Σ w·x + w′·ẋ + w″·ẍ.

Turning joint i by ε turns all that lies beyond it, the vectors P_j = ∂x/∂q_j of joints j beyond it (j = i too) as well,
by ε z_i.  So for i on the path from j to the root

    H_ij = ∂²x/∂q_i∂q_j = z_i × P_j                                                                           (1)

This holds at all times.  So ẋ = Σ P_j q̇_j has the second derivatives Ḣ and H, and ẍ has Ḧ, 2 Ḣ, H and 2 H:

               x      ẋ      ẍ
    ∂q∂q       H      Ḣ      Ḧ
    ∂q∂q̇              H      2 Ḣ         (symmetric, as H is)
    ∂q∂q̈                     H
    ∂q̇∂q̇                     2 H

Differentiate (1) by time, and collect what meets z_i, ż_i and z̈_i, of all points beyond j: *factors* of j alone,

    n = Σ P×w + Ṗ×w′ + P̈×w″        n′ = Σ P×w′ + 2 Ṗ×w″        n″ = Σ P×w″

    ∂²φ/∂q_i∂q_j = z_i·n + ż_i·n′ + z̈_i·n″      ∂²φ/∂q_i∂q̇_j = z_i·n′ + 2 ż_i·n″      ∂²φ/∂q_i∂q̈_j = z_i·n″     (2)

P, Ṗ, P̈ are ∂x/∂q, ∂ẋ/∂q, ∂ẍ/∂q of ``kinematics_derivatives.py``, and z, ż, z̈ the angular parts of its S, ψ̇, ψ̈.

Glossary (world axes)
    slots as in kinematics_derivatives.py, and after all of those
    FACTORS   n n′ n″ of joint j, 9 slots
"""

from kinegrad._kernels.bodies import link_point
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import SHIFT
from kinegrad._kernels.kinematics import N, point_acceleration, point_velocity
from kinegrad._kernels.kinematics_derivatives import PATH, acceleration_by_q, moved, outward, velocity_by_q
from kinegrad._kernels.kinematics_derivatives import slots as motion_slots
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import scatter, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import add, add3, cross, dot, gather3, load3, scale

FACTORS = 9


def slots(n: int) -> int:
    """Scratch slots for n joints."""
    return motion_slots(n) + n * FACTORS


@inline
def factors_at(n, j):
    return (n + 1) * N + n * PATH + j * FACTORS


@inline
def add_point(m, i, x, w, dw, ddw, scratch):
    """What the point at x of link i adds to the factors of the joints that move it."""
    n = len(m.parent)
    dx = point_velocity(scratch, i, x)
    ddx = point_acceleration(scratch, i, x, dx)
    j = i
    while j >= 0:
        path, at = (n + 1) * N + j * PATH, factors_at(n, j)
        P, dP = moved(scratch, path, x), velocity_by_q(scratch, path, x, dx)
        ddP = acceleration_by_q(scratch, path, x, dx, ddx)
        add3(scratch, at, add(add(cross(P, w), cross(dP, dw)), cross(ddP, ddw)))
        add3(scratch, at + 3, add(cross(P, dw), scale(2.0, cross(dP, ddw))))
        add3(scratch, at + 6, cross(P, ddw))
        x = add(x, load3(scratch, (j + 1) * N + SHIFT))
        j = m.parent[j]


@inline
def scatter_both(out, r, n, i, j, entry):
    """Entries (i, j) and (j, i)."""
    scatter(out, r, i * n + j, entry)
    scatter(out, r, j * n + i, entry)


@inline
def pairs(m, r, d2_dqdq, d2_dqdv, d2_dqda, d2_dvdv, scratch):
    """(2), of all pairs of joints on one path."""
    n = len(m.parent)
    for j in range(n):
        at = factors_at(n, j)
        f, df, ddf = load3(scratch, at), load3(scratch, at + 3), load3(scratch, at + 6)
        i = j
        while i >= 0:
            path = (n + 1) * N + i * PATH
            z, dz, ddz = load3(scratch, path), load3(scratch, path + 6), load3(scratch, path + 12)
            scatter_both(d2_dqdq, r, n, i, j, dot(z, f) + dot(dz, df) + dot(ddz, ddf))
            if len(d2_dqdv) > 0:
                scatter_both(d2_dqdv, r, n, i, j, dot(z, df) + 2.0 * dot(dz, ddf))
            if len(d2_dqda) > 0:
                entry = dot(z, ddf)
                scatter_both(d2_dqda, r, n, i, j, entry)
                scatter_both(d2_dvdv, r, n, i, j, 2.0 * entry)
            i = m.parent[i]


@kernel
def points(
    m, q, v, a, links, local, w, dw, ddw, d2_dqdq, d2_dqdv, d2_dqda, d2_dvdv, scratch, start, stop
):  # fmt: skip
    """(2), (states, n·n) each, zero on entry; no rows in the second, or in the last two: not wanted.

    Of the points `local`, (states or 1, 3 k), fixed in `links`, (k,), with weights w, w′, w″, (states or 1, 3 k) each.
    """
    ok = finite((q, v, a), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    for r in range(start, stop, lane_count()):
        outward(m, q, v, a, r, scratch)
        for k in range(factors_at(n, 0), factors_at(n, n)):
            store(scratch, k, 0.0)
        for k in range(len(links)):
            x = link_point(m, links[k], scratch, N, gather3(local, r, 3 * k))
            add_point(
                m, links[k], x, gather3(w, r, 3 * k), gather3(dw, r, 3 * k), gather3(ddw, r, 3 * k), scratch
            )  # fmt: skip
        pairs(m, r, d2_dqdq, d2_dqdv, d2_dqda, d2_dvdv, scratch)
    return ok
