"""From coordinates and speeds to joints, and from forces of joints to those of coordinates, one state at a time.

The map and its derivatives are derived in ``_engine/coordinates.py``.  With hats on what belongs to joints,

    a joint alone      q̂ = q        v̂ = v       â = a
    a coupling         q̂ = f(q)     v̂ = f′v     â = f′a + f″v²
    a quaternion       its pose hinges z, y, x stand at the Euler angles of the quaternion, its chart hinges x, y, z at
                       zero; these have v̂ = ω, â = α + (−ω₂ω₃, ω₁ω₃, −ω₁ω₂)

and τ = Gᵀ τ̂ with G = ∂v̂/∂v, one entry g for each joint: 1, f′, or 0 for the hinges of a pose.  Derivatives of τ follow
from those of τ̂ by (1) there, entry by entry: with D_q, D_v, D_a = ∂τ̂/∂(q̂, v̂, â) and δ a change of configuration,

    ∂τ/∂δ = Gᵀ (D_q G + D_v V + D_a A) + W        ∂τ/∂v = Gᵀ (D_v G + D_a C)        ∂τ/∂a = Gᵀ D_a G

A function f is made of pieces, polynomials in x − knot; beyond its ends it goes on along its tangents.

Glossary
    table    alone    (joints, 3)   joint, its coordinate, its speed
             coupled  (k, 5)        joint, coordinate, speed, first piece of its function, and that after the last
             balls    (balls, 3)    first hinge, first coordinate, first speed
             spans    (k, 2)        where a function begins and ends
             pieces   (pieces, 5 …) knot, and ascending coefficients
    slope    (states, n)   g
    bend     (states, 2 k) f″ of all coupled joints, then f‴
    entries  same     (entries, 4)  joints i, j and their speeds, where both are moved one to one, and j by no chart
             others   (entries, 6)  the same of all others that topology does not make zero; the number of j among
                                    coupled joints, or −1; which hinge of a chart j is, or −1
"""

import math

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.lanes.finite import FINE, LARGE, LARGEST, finite, with_results

NOT_UNIT = 3  # a status: some quaternion is not of unit length
UNIT = 1e-9  # by how much its length may differ from one
POSE, HINGES = 3, 6  # of a ball: hinges that only place it, and all of them


@inline
def function(pieces, first, last, lowest, highest, x):
    """f, f′, f″ and f‴ at x."""
    inside = x
    if x < lowest:
        inside = lowest
    if x > highest:
        inside = highest
    while last - first > 1:  # the piece that it is in, by bisection
        middle = (first + last) // 2
        if inside < pieces[middle, 0]:
            last = middle
        else:
            first = middle
    s, f, df, ddf, dddf = inside - pieces[first, 0], 0.0, 0.0, 0.0, 0.0
    for j in range(pieces.shape[1] - 1, 0, -1):
        dddf = dddf * s + ddf
        ddf = ddf * s + df
        df = df * s + f
        f = f * s + pieces[first, j]
    ddf, dddf = 2.0 * ddf, 6.0 * dddf
    if x != inside:
        f, ddf, dddf = f + df * (x - inside), 0.0, 0.0
    return f, df, ddf, dddf


@inline
def pose(w, x, y, z):
    """Angles of hinges z, y, x that turn as a unit quaternion does.

    Exact to rounding everywhere: near the singular position of the second hinge the first angle is anything, and the
    third is what remains.
    """
    r00, r10 = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z)
    across = math.sqrt(r00 * r00 + r10 * r10)
    sine, cosine = 0.0, 1.0
    if across > 0.0:
        sine, cosine = r10 / across, r00 / across
    up = 2.0 * (sine * (x * z + w * y) - cosine * (y * z - w * x))
    along = cosine * (1.0 - 2.0 * (x * x + z * z)) - sine * (2.0 * (x * y - w * z))
    return math.atan2(sine, cosine), math.atan2(2.0 * (w * y - x * z), across), math.atan2(up, along)


@kernel
def expand(table, q, v, a, q_hat, v_hat, a_hat, slope, bend, start, stop):
    """q̂, v̂, â and g, (states, n) each, and the bend, from q, (states or 1, nq), v and a, (states or 1, nv)."""
    ok = finite((q, v, a), start, stop)
    if not ok:
        return ok
    alone, coupled, balls, spans, pieces = table
    count, total = (
        len(coupled),
        0.0,
    )  # Σ (x / 1e12)² of what functions give, which alone may be large if nothing else is
    for r in range(start, stop):
        at_q, at_v, at_a = min(r, len(q) - 1), min(r, len(v) - 1), min(r, len(a) - 1)
        for j in range(len(alone)):
            i, k, s = alone[j, 0], alone[j, 1], alone[j, 2]
            q_hat[r, i], v_hat[r, i], a_hat[r, i], slope[r, i] = q[at_q, k], v[at_v, s], a[at_a, s], 1.0
        for j in range(count):
            i, k, s = coupled[j, 0], coupled[j, 1], coupled[j, 2]
            f, df, ddf, dddf = function(pieces, coupled[j, 3], coupled[j, 4], spans[j, 0], spans[j, 1], q[at_q, k])
            q_hat[r, i], v_hat[r, i], slope[r, i] = f, df * v[at_v, s], df
            a_hat[r, i] = df * a[at_a, s] + ddf * (v[at_v, s] * v[at_v, s])
            bend[r, j], bend[r, count + j] = ddf, dddf
            x, y, z = (1 / LARGEST) * f, (1 / LARGEST) * v_hat[r, i], (1 / LARGEST) * a_hat[r, i]
            total += x * x + y * y + z * z
        for j in range(len(balls)):
            i, k, s = balls[j, 0], balls[j, 1], balls[j, 2]
            w, x, y, z = q[at_q, k], q[at_q, k + 1], q[at_q, k + 2], q[at_q, k + 3]
            length = math.sqrt(w * w + x * x + y * y + z * z)
            if not abs(length - 1.0) <= UNIT:
                return NOT_UNIT
            angles = pose(w / length, x / length, y / length, z / length)
            w1, w2, w3 = v[at_v, s], v[at_v, s + 1], v[at_v, s + 2]
            drift = -w2 * w3, w1 * w3, -w1 * w2
            for c in range(POSE):
                q_hat[r, i + c], v_hat[r, i + c], a_hat[r, i + c], slope[r, i + c] = angles[c], 0.0, 0.0, 0.0
                at = i + POSE + c
                q_hat[r, at], v_hat[r, at], slope[r, at] = 0.0, v[at_v, s + c], 1.0
                a_hat[r, at] = a[at_a, s + c] + drift[c]
    return ok if total <= 1.0 else LARGE


@kernel
def contract(speed, slope, tau_hat, tau, start, stop):
    """τ = Gᵀ τ̂, (states, nv), from τ̂ and g, (states or 1, n); `speed`, (n,), is that of each joint, or −1."""
    for r in range(start, stop):
        at_g, at_tau = min(r, len(slope) - 1), min(r, len(tau_hat) - 1)
        for k in range(tau.shape[1]):
            tau[r, k] = 0.0
        for i in range(len(speed)):
            if speed[i] >= 0:
                tau[r, speed[i]] += slope[at_g, i] * tau_hat[at_tau, i]
    return with_results(FINE, (tau,), start, stop)


@inline
def chart_rows(c, x, y, z, dx, dy):
    """Row c of V, A and C of a quaternion at ω = (x, y, z), with dx, dy of α: three tuples of three."""
    o = 0.0 * x
    if c == 0:
        return (o, o, -y), (o, 2.0 * x * y, -dy - x * z), (o, -z, -y)
    if c == 1:
        return (o, o, x), (o, -x * x, dx - y * z), (z, o, x)
    return (o, -x, o), (o, y * z - dx, y * y - x * x), (-y, -x, o)


@inline
def add_turn(table, damping, r, bend, v, at_v, tau_hat, nv, by_q):
    """W, how Gᵀ τ̂ changes with δ at fixed τ̂, to ∂τ/∂δ; the dampers of a ball resist ω, which does not change."""
    _, coupled, balls, _, _ = table
    for j in range(len(coupled)):
        by_q[r, coupled[j, 2] * (nv + 1)] += bend[r, j] * tau_hat[r, coupled[j, 0]]
    for j in range(len(balls)):
        i, s = balls[j, 0] + POSE, balls[j, 2]
        d, w1, w2 = damping, v[at_v, s], v[at_v, s + 1]
        x, y = tau_hat[r, i] - d[i] * w1, tau_hat[r, i + 1] - d[i + 1] * w2
        z = tau_hat[r, i + 2] - d[i + 2] * v[at_v, s + 2]
        by_q[r, s * nv + s + 1] -= z
        by_q[r, s * nv + s + 2] += y + d[i] * w2
        by_q[r, (s + 1) * nv + s + 2] -= x + d[i + 1] * w1
        by_q[r, (s + 2) * nv + s + 1] += d[i + 2] * w1


@kernel
def contract_derivatives(
    table, entries, damping, slope, bend, v, a, tau_hat, by_q_hat, by_v_hat, by_a_hat, by_q, by_v, by_a, start, stop
):
    """∂τ/∂(δ, v, a), (states, nv·nv) each, from those of the joints, (states, n·n), and τ̂, (states, n)."""
    same, others = entries
    n, nv, count = slope.shape[1], v.shape[1], len(table[1])
    for r in range(start, stop):
        at_v, at_a = min(r, len(v) - 1), min(r, len(a) - 1)
        for k in range(nv * nv):
            by_q[r, k], by_v[r, k], by_a[r, k] = 0.0, 0.0, 0.0
        for e in range(len(same)):
            k, to = same[e, 0] * n + same[e, 1], same[e, 2] * nv + same[e, 3]
            by_q[r, to], by_v[r, to], by_a[r, to] = by_q_hat[r, k], by_v_hat[r, k], by_a_hat[r, k]
        for e in range(len(others)):
            i, j, x, y, c, hinge = others[e, 0], others[e, 1], others[e, 2], others[e, 3], others[e, 4], others[e, 5]
            g, k, to = slope[r, i], i * n + j, x * nv + y
            gh, Dv, Da = g * slope[r, j], g * by_v_hat[r, k], g * by_a_hat[r, k]
            by_q[r, to] += gh * by_q_hat[r, k]
            by_v[r, to] += gh * by_v_hat[r, k]
            by_a[r, to] += gh * by_a_hat[r, k]
            if c >= 0:
                w, bent = v[at_v, y], bend[r, c]
                by_q[r, to] += bent * w * Dv + (bent * a[at_a, y] + bend[r, count + c] * (w * w)) * Da
                by_v[r, to] += 2.0 * bent * w * Da
            if hinge >= 0:
                s, row = y - hinge, x * nv + y - hinge
                V, A, C = chart_rows(hinge, v[at_v, s], v[at_v, s + 1], v[at_v, s + 2], a[at_a, s], a[at_a, s + 1])
                for column in range(3):
                    by_q[r, row + column] += V[column] * Dv + A[column] * Da
                    by_v[r, row + column] += C[column] * Da
        add_turn(table, damping, r, bend, v, at_v, tau_hat, nv, by_q)
    return with_results(FINE, (by_q, by_v, by_a), start, stop)


@kernel
def contract_matrix(entries, nv, slope, M_hat, M, start, stop):
    """Gᵀ M̂ G, (states, nv·nv), from M̂, (states, n·n)."""
    same, others = entries
    n = slope.shape[1]
    for r in range(start, stop):
        for k in range(nv * nv):
            M[r, k] = 0.0
        for e in range(len(same)):
            M[r, same[e, 2] * nv + same[e, 3]] = M_hat[r, same[e, 0] * n + same[e, 1]]
        for e in range(len(others)):
            i, j = others[e, 0], others[e, 1]
            M[r, others[e, 2] * nv + others[e, 3]] += slope[r, i] * slope[r, j] * M_hat[r, i * n + j]
    return with_results(FINE, (M,), start, stop)
