"""Between the unknowns of a spline motion and what is known at its nodes: sums of (1) in ``motion/problem/nodes.py``.

At node k the state x_d, d = 0 … D − 1, is a product of a sparse matrix with the unknowns, divided by T^d.  Derivatives
go the other way: with ∂τ/∂z, H = ∂²ℓ/∂z², g = ∂ℓ/∂z and c = ∂(∂ℓ/∂T)/∂z at each node, β_d = b_d / T^d, and
ż_d = −d x_d / T,

    ∂r/∂P            = (∂r/∂z)_d β_d                       ∂r/∂T   = ∂r/∂z · ż
    ∂²ℓ/∂P∂P′        = Σ_{d,e} β_d H_de β_e                ∂²ℓ/∂P∂o = Σ_d β_d H_do      (o: forces and parameters)
    m = H ż + c − (d/T) g,       ∂²ℓ/∂P∂T = Σ_d β_d m_d    ∂²ℓ/∂o∂T = m_o
    ∂²ℓ/∂T²          = żᵀ H ż + 2 c·ż + Σ_d d (d + 1) g_d·x_d / T²

What leaves here are numbers, one after another; where each goes in the sparse matrices, and with which others it is
added, a constant sparse matrix says, whose product with them is :func:`product`.  Loops over nodes are plain: there
are few of them, and a call is to cost little beside what a solver does in an iteration.

Glossary
    x        unknowns                                               (n)
    z        state, forces, parameters at each node                 (K, size); y: with torques and errors behind
    basis    b_d of the control points that count at a node          (K, D, W)
    J        ∂(τ, φ)/∂z                                              (K, computed, size)
    H        second derivatives by z                                 (K, size, size)
    mu       Σ λ ∂r/∂y of rows and T w ∂ψ/∂y of integrals            (K, all)
    direct   w ∂ψ/∂y, whose part by z is c; no rows if there is none (K, all)
    room     for β, one line of β H, m, ż, g and c                  (D + 5, at least size, D and W)
"""

from kinegrad._kernels.compiler.jit import exact, inline, kernel

__all__ = ["curvatures", "product", "row_slopes", "states", "torque_curvatures", "torque_slopes"]

QVA, CUBIC = 3, 4  # the usual D and W: known to the compiler, loops over them are none


@exact
def dot(starts, columns, entries, i, x):
    """Row i of a sparse matrix times a vector, in order: rows are too short for sums in parallel."""
    total = 0.0
    for e in range(starts[i], starts[i + 1]):
        total += entries[e] * x[columns[e]]
    return total


@kernel
def product(starts, columns, entries, x, out):
    """A sparse matrix, by rows, times a vector."""
    for i in range(len(out)):
        out[i] = dot(starts, columns, entries, i, x)


@kernel
def states(starts, columns, entries, constant, orders, x, duration, z):
    """q, v, a, … at all nodes, into the first columns of z."""
    count = len(constant) // z.shape[0]
    nv = count // orders
    for k in range(z.shape[0]):
        factor, first = 1.0, k * count
        for d in range(orders):
            for i in range(d * nv, (d + 1) * nv):
                z[k, i] = (constant[first + i] + dot(starts, columns, entries, first + i, x)) * factor
            factor /= duration


@kernel
def torque_slopes(rows, columns, by_q, by_v, by_a, nv, J):
    """∂τ/∂(q, v, a), packed, into J, which is zero elsewhere."""
    for k in range(J.shape[0]):
        for c in range(J.shape[1]):
            for s in range(J.shape[2]):
                J[k, c, s] = 0.0
        for e in range(len(rows)):
            r, c = rows[e], columns[e]
            J[k, r, c] = by_q[k, e]
            J[k, r, nv + c] = by_v[k, e]
            J[k, r, 2 * nv + c] = by_a[k, e]


@kernel
def torque_curvatures(rows, columns, by_qq, by_qv, by_qa, by_vv, nv, H):
    """Second derivatives of a sum of torques, packed, added to H."""
    for k in range(H.shape[0]):
        for e in range(len(rows)):
            r, c = rows[e], columns[e]
            H[k, r, c] += by_qq[k, e]
            H[k, nv + r, nv + c] += by_vv[k, e]
            H[k, r, nv + c] += by_qv[k, e]
            H[k, nv + c, r] += by_qv[k, e]
            H[k, r, 2 * nv + c] += by_qa[k, e]
            H[k, 2 * nv + c, r] += by_qa[k, e]


@kernel
def row_slopes(which, through, to, orders, timed, slopes, J, y, duration, out):
    """Derivatives of rows by the state over T^d, forces and parameters; then, if timed, along ż of those that have it.

    Number i of a node is the slope number which[i] of ∂r/∂y, times that entry of J which `through` says, if it is not
    negative; it is one by part to[i] of z, which has the order orders[i].  Slopes of one node are those of all.
    """
    nodes, count, size, per = y.shape[0], len(which), J.shape[2], 1.0 / duration
    after = nodes * count
    for k in range(nodes):
        row = k if slopes.shape[0] > 1 else 0
        for i in range(count):
            value, d = slopes[row, which[i]], orders[i]
            if through[i] >= 0:
                value *= J[k, through[i] // size, through[i] % size]
            if timed and d > 0:
                out[after] = value * y[k, to[i]] * (-d * per)
                after += 1
            for _ in range(d):
                value *= per
            out[k * count + i] = value


@inline
def carry(weights, J, k, count, room, row):
    """A gradient by y, carried through τ and φ to the first parts of z, into a row of room."""
    for s in range(count):
        room[row, s] = weights[k, s]
    for c in range(J.shape[1]):
        weight = weights[k, J.shape[2] + c]
        if weight != 0.0:
            for s in range(count):
                room[row, s] += weight * J[k, c, s]


@inline
def between(H, k, pairs, nv, D, W, room, out, at):
    """Σ β_d H_de β_e of all pairs of coordinates at one node; β is in the first D rows of room, the next is used."""
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        for v in range(W):
            for e in range(D):
                total = 0.0
                for d in range(D):
                    total += room[d, v] * H[k, d * nv + i, e * nv + j]
                room[D, e] = total
            for w in range(W):
                total = 0.0
                for e in range(D):
                    total += room[D, e] * room[e, w]
                out[at] = total
                at += 1
    return at


@kernel
def curvatures(H, mu, direct, J, y, basis, nv, duration, pairs, crossing, others, timed, room, out):
    """Second derivatives by control points of pairs of coordinates; by those of a coordinate and by forces and
    parameters; by these; and, if timed, by T and each of them, and by T twice."""
    nodes, D, W = basis.shape
    size, states, per = H.shape[1], D * nv, 1.0 / duration
    at_crossing = nodes * len(pairs) * W * W
    at_others = at_crossing + nodes * len(crossing) * W
    at_points = at_others + nodes * len(others)
    at_rest = at_points + nodes * nv * W
    at_time = at_rest + nodes * (size - states)
    m, dz, g, c = D + 1, D + 2, D + 3, D + 4  # rows of room, after β and one for between
    at = 0
    for k in range(nodes):
        factor = 1.0
        for d in range(D):
            for w in range(W):
                room[d, w] = basis[k, d, w] * factor
            factor *= per
        if D == QVA and W == CUBIC:
            at = between(H, k, pairs, nv, QVA, CUBIC, room, out, at)
        elif D == 1 and W == CUBIC:
            at = between(H, k, pairs, nv, 1, CUBIC, room, out, at)
        else:
            at = between(H, k, pairs, nv, D, W, room, out, at)
        for p in range(len(crossing)):
            i, o = crossing[p, 0], states + crossing[p, 1]
            for w in range(W):
                total = 0.0
                for d in range(D):
                    total += room[d, w] * H[k, d * nv + i, o]
                out[at_crossing] = total
                at_crossing += 1
        for p in range(len(others)):
            out[at_others] = H[k, states + others[p, 0], states + others[p, 1]]
            at_others += 1
        if not timed:
            continue
        twice = 0.0
        for s in range(states):
            room[dz, s] = y[k, s] * (-(s // nv) * per)
        for s in range(size):
            total = 0.0
            for t in range(nv, states):
                total += H[k, s, t] * room[dz, t]
            room[m, s] = total
        if len(direct):
            carry(direct, J, k, size, room, c)
            for s in range(size):
                room[m, s] += room[c, s]
            for s in range(states):
                twice += room[c, s] * room[dz, s]
        carry(mu, J, k, states, room, g)
        for s in range(states):
            d = s // nv
            twice += (room[m, s] - room[g, s] * (d + 1) * per) * room[dz, s]
            room[m, s] -= room[g, s] * d * per
        for i in range(nv):
            for w in range(W):
                total = 0.0
                for d in range(D):
                    total += room[d, w] * room[m, d * nv + i]
                out[at_points] = total
                at_points += 1
        for s in range(states, size):
            out[at_rest] = room[m, s]
            at_rest += 1
        out[at_time] = twice
        at_time += 1
