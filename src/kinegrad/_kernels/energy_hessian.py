"""∂²/∂(q, q̇)² of a weighted centre of mass, φ = w·c, and of momentum, φ = w·p + y·L, L about the centre of mass.

**Centre of mass.**  Turning joint i turns ∂c/∂q_j of the joints j beyond it, as in ``kinematics_hessian.py``: for i on
the path from j to the root, i = j included,

    ∂²c/∂q_i∂q_j = z_i × ∂c/∂q_j                                                                              (1)

**Momentum about a fixed point.**  Let W = (y, w) be a constant motion about the point of the world where the centre of
mass c is now, and H the momentum of all links about that point, φ₀ = W·H.  Seen from the links beyond joint i,
turning it turns V of its parent and W back, as in ``rnea_hessian.py``: δV = ψ̇_i = V × S_i and δW = χ_i = W × S_i.  With
I and (n, p) of the links beyond j

    t = ∂H/∂q̇_j = I S_j       u = ∂H/∂q_j = I ψ̇_j + S_j ×* (n, p)       h = I χ_j + S_j ×* I W

    ∂²φ₀/∂q_i∂q_j = χ_i·u + ψ̇_i·h      ∂²φ₀/∂q_i∂q̇_j = χ_i·t      ∂²φ₀/∂q_j∂q̇_i = S_i·h                   (2)

**About the centre of mass**, which moves: y·L = y·n − y·(c×p), with c from that point, zero now.  This adds

    ∂q_i∂q_j    −c_i·(p_j×y) − c_j·(p_i×y) − c_ij·(p×y)      ∂q_i∂q̇_j    −c_i·(∂p/∂q̇_j×y)                     (3)

where indices are derivatives with respect to q, p the momentum of all links.  The first two are there for all i and j.

Glossary (world axes): slots as in energy_derivatives.py, and after all of those, of joint j, about the centre of mass,
    S ψ̇ χ      path slots                                  6 each
    t u        linear parts                                3 each
"""

from kinegrad._kernels.bodies import load_inertia
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.energy_derivatives import BODY, MOMENTUM, PLACE, VELOCITY, N, subtrees
from kinegrad._kernels.joints import carried, subspace
from kinegrad._kernels.kinematics_hessian import scatter_both
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    Motion,
    cross,
    dot,
    gather3,
    load3,
    load_force,
    load_motion,
    put,
    scale,
    store3,
    sub,
)

RATE, CHI, BY_V, BY_Q, PATH = 6, 12, 18, 21, 24  # ψ̇ | χ | t | u | slots of a joint, after S


def slots(n: int) -> int:
    """Scratch slots for n joints."""
    return (n + 1) * N + n * PATH


@inline
def enter(m, j, W, c, scratch):
    """The path slots of joint j; returns t, u and h about the centre of mass c."""
    n = len(m.parent)
    up, at, path = (m.parent[j] + 1) * N, (j + 1) * N, (n + 1) * N + j * PATH
    x = sub(load3(scratch, at + PLACE), c)
    back = scale(-1.0, x)
    S, I = subspace(m, j, scratch, at), load_inertia(scratch, at + BODY)
    dS, here = carried(m, j, up + VELOCITY, at, scratch).cross(S), W.at(x)
    X = here.cross(S)
    t, u = I.times(S), I.times(dS) + S.cross(load_force(scratch, at + MOMENTUM))
    h = I.times(X) + S.cross(I.times(here))
    put(scratch, path, S.at(back))
    put(scratch, path + RATE, dS.at(back))
    put(scratch, path + CHI, X.at(back))
    store3(scratch, path + BY_V, t.f)
    store3(scratch, path + BY_Q, u.f)
    return t.before(x), u.before(x), h.before(x)


@inline
def block(m, q, v, w, y, d2_dqdq, d2_dqdv, r, scratch):
    """Second derivatives of weighted momentum of the states r … r+W−1."""
    n = len(m.parent)
    total, first, p = subtrees(m, q, v, r, scratch)
    per_mass = 1.0 / total
    c, turn = scale(per_mass, first), gather3(y, r, 0)
    W, across = Motion(turn, gather3(w, r, 0)), scale(per_mass, cross(p, turn))
    for j in range(n):
        t, u, h = enter(m, j, W, c, scratch)
        drawn = cross(t.f, across)  # (3), its third part
        i = j
        while i >= 0:
            path = (n + 1) * N + i * PATH
            S, dS = load_motion(scratch, path), load_motion(scratch, path + RATE)
            X = load_motion(scratch, path + CHI)
            scatter_both(d2_dqdq, r, n, i, j, X.dot(u) + dS.dot(h) - dot(S.w, drawn))
            scatter(d2_dqdv, r, j * n + i, S.dot(h))
            scatter(d2_dqdv, r, i * n + j, X.dot(t))
            i = m.parent[i]
    return scale(per_mass, turn)


@inline
def add_moving_center(m, turn, r, d2_dqdq, d2_dqdv, scratch):
    """(3), its first two parts, and that by q and q̇; `turn` is y per mass."""
    n = len(m.parent)
    for j in range(n):
        own = (n + 1) * N + j * PATH
        c_j = load3(scratch, own + BY_V)
        a_j, b_j = cross(load3(scratch, own + BY_Q), turn), cross(c_j, turn)
        for i in range(n):
            path = (n + 1) * N + i * PATH
            c_i = load3(scratch, path + BY_V)
            less(d2_dqdv, r, i * n + j, dot(c_i, b_j))
            if i <= j:
                entry = dot(c_i, a_j) + dot(c_j, cross(load3(scratch, path + BY_Q), turn))
                less(d2_dqdq, r, i * n + j, entry)
                if i < j:
                    less(d2_dqdq, r, j * n + i, entry)


@inline
def less(out, r, k, u):
    scatter(out, r, k, gather(out, r, k) - u)


@inline
def center_block(m, q, v, w, d2_dqdq, r, scratch):
    """(1) of the states r … r+W−1, weighted."""
    n = len(m.parent)
    total, _, _ = subtrees(m, q, v, r, scratch)
    weight = scale(1.0 / total, gather3(w, r, 0))
    for j in range(n):
        at = (j + 1) * N
        drawn = cross(load_inertia(scratch, at + BODY).times(subspace(m, j, scratch, at)).f, weight)
        i = j
        while i >= 0:
            scatter_both(d2_dqdq, r, n, i, j, dot(subspace(m, i, scratch, (i + 1) * N).w, drawn))
            i = m.parent[i]


@kernel
def momentum_hessian(m, q, v, w, y, d2_dqdq, d2_dqdv, scratch, start, stop):
    """Of w·p + y·L, (states, n·n) each, zero on entry; weights (states or 1, 3) each."""
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        turn = block(m, q, v, w, y, d2_dqdq, d2_dqdv, r, scratch)
        add_moving_center(m, turn, r, d2_dqdq, d2_dqdv, scratch)
    return ok


@kernel
def center_hessian(m, q, v, w, d2_dqdq, scratch, start, stop):
    """Of w·c, (states, n·n), zero on entry; weights (states or 1, 3); v is of no consequence."""
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        center_block(m, q, v, w, d2_dqdq, r, scratch)
    return ok
