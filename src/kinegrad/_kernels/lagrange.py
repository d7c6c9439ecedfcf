"""Inverse dynamics by the recursive Lagrangian of 4×4 matrices: the formulation of [zhakatayev2023], on lanes.

The kinetic energy of link i is ½ tr(Ṫ_i J_i Ṫ_iᵀ) with its pseudo-inertia J_i (7).  Lagrange's equations turn it into
tr(∂T_k/∂q_i J_k T̈_kᵀ), summed over the links k that joint i moves; T_k = T_i · (A … A) lets that sum run inward:

    outward   T_i = T_p A_i,   S_i = Ṫ_i,   R_i = T̈_i                                        (5)
    inward    H_i = J_i R_iᵀ + Σ A_c H_c      inertia                                          (8)
              E_i = m_i r_i  + Σ A_c E_c      gravity
              F_i = …                         forces, see below
              G_i = h_i      + Σ G_c          torques
    torque    Q_i = tr(∂T_i/∂q_i H_i) − gᵀ ∂T_i/∂q_i E_i − tr(Vᵀ ∂T_i/∂q_i F_i) − G_iᵀ T_p w₀       (9)

The paper's F_i is 4×n, one column a link, and enters only through tr(Vᵀ U F_i) = tr(U F_i Vᵀ).  The 4×4 product
K_i = F_i Vᵀ obeys the same recursion, K_i = r_i f_iᵀ + Σ A_c K_c, and keeps the algorithm O(n).
w₀, the axis of a revolute joint, becomes ρ P_i e_z for joints of any kind and placement.

Glossary (link frames; constants P_i, F_i of the joint placement are m.P, m.F)
    A B C   A_i and its first two derivatives by q_i     3×4 (the last row is 0 0 0 1, resp. 0)
    T S R   world transform and its time derivatives     3×4
    U       ∂T_i/∂q_i = T_p B_i                           3×4
    H, K    inertia and force matrices                    4×3 (their last column is 0)
    E       gravity vector: first moment, mass            4
    G       sum of torques                                3, world
A 3×4 or 4×3 matrix is a tuple of 12: first the 3×3 part row by row, then its last column or row.
"""

from kinegrad._kernels.bodies import passive_force
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, load, scatter, spread, store
from kinegrad._kernels.lanes.trigonometry import sincos
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    add,
    add3,
    dot,
    gather3,
    load3,
    load9,
    matmul,
    mul,
    row3,
    row9,
    scale,
    store3,
    store9,
    zero3,
)  # fmt: skip

T, S, R, A, U, H, K, E, G, AXIS = 0, 12, 24, 36, 48, 60, 72, 84, 88, 91
N = 94


@inline
def square(X):
    """The 3×3 part of a 3×4 or 4×3 matrix."""
    return X[0], X[1], X[2], X[3], X[4], X[5], X[6], X[7], X[8]


@inline
def edge(X):
    """The last column of a 3×4, or last row of a 4×3 matrix."""
    return X[9], X[10], X[11]


@inline
def join(B, e):
    return B[0], B[1], B[2], B[3], B[4], B[5], B[6], B[7], B[8], e[0], e[1], e[2]


@inline
def load12(x, k):
    return join(load9(x, k), load3(x, k + 9))


@inline
def store12(x, k, X):
    store9(x, k, square(X))
    store3(x, k + 9, edge(X))


@inline
def add12(x, k, X):
    add3(x, k, (X[0], X[1], X[2]))
    add3(x, k + 3, (X[3], X[4], X[5]))
    add3(x, k + 6, (X[6], X[7], X[8]))
    add3(x, k + 9, edge(X))


@inline
def sum12(X, Y):
    return (
        X[0] + Y[0], X[1] + Y[1], X[2] + Y[2], X[3] + Y[3], X[4] + Y[4], X[5] + Y[5],
        X[6] + Y[6], X[7] + Y[7], X[8] + Y[8], X[9] + Y[9], X[10] + Y[10], X[11] + Y[11],
    )  # fmt: skip


@inline
def scale12(s, X):
    return join(
        (s * X[0], s * X[1], s * X[2], s * X[3], s * X[4], s * X[5], s * X[6], s * X[7], s * X[8]),
        scale(s, edge(X)),
    )


@inline
def times_transform(X, Y):
    """X Y, both 3×4, Y with last row 0 0 0 1."""
    return join(matmul(square(X), square(Y)), add(mul(square(X), edge(Y)), edge(X)))


@inline
def times_derivative(X, Y):
    """X Y, both 3×4, Y with last row 0."""
    return join(matmul(square(X), square(Y)), mul(square(X), edge(Y)))


@inline
def outer(a, b):
    """a bᵀ, 3×3"""
    return (
        a[0] * b[0], a[0] * b[1], a[0] * b[2],
        a[1] * b[0], a[1] * b[1], a[1] * b[2],
        a[2] * b[0], a[2] * b[1], a[2] * b[2],
    )  # fmt: skip


@inline
def carry(A, H):
    """A H, A a 3×4 transform and H 4×3."""
    Y, Z = matmul(square(A), square(H)), outer(edge(A), edge(H))
    return join(
        (
            Y[0] + Z[0], Y[1] + Z[1], Y[2] + Z[2], Y[3] + Z[3], Y[4] + Z[4], Y[5] + Z[5],
            Y[6] + Z[6], Y[7] + Z[7], Y[8] + Z[8],
        ),
        edge(H),
    )  # fmt: skip


@inline
def trace(X, Y):
    """tr(X Y), X 3×4 and Y 4×3."""
    return (
        dot((X[0], X[1], X[2]), (Y[0], Y[3], Y[6]))
        + dot((X[3], X[4], X[5]), (Y[1], Y[4], Y[7]))
        + dot((X[6], X[7], X[8]), (Y[2], Y[5], Y[8]))
        + dot(edge(X), edge(Y))
    )


@inline
def pseudo_inertia_times(J, i, X):
    """J_i Xᵀ, J the pseudo-inertia (7) and X 3×4: a 4×3 matrix."""
    x, y, z = (X[0], X[3], X[6]), (X[1], X[4], X[7]), (X[2], X[5], X[8])
    t = edge(X)
    row0 = add(add(scale(J[i, 0], x), scale(J[i, 3], y)), add(scale(J[i, 4], z), scale(J[i, 6], t)))
    row1 = add(add(scale(J[i, 3], x), scale(J[i, 1], y)), add(scale(J[i, 5], z), scale(J[i, 7], t)))
    row2 = add(add(scale(J[i, 4], x), scale(J[i, 5], y)), add(scale(J[i, 2], z), scale(J[i, 8], t)))
    row3 = add(add(scale(J[i, 6], x), scale(J[i, 7], y)), add(scale(J[i, 8], z), scale(J[i, 9], t)))
    return join(
        (row0[0], row0[1], row0[2], row1[0], row1[1], row1[2], row2[0], row2[1], row2[2]),
        row3,
    )


@inline
def joint_matrices(m, i, q):
    """A_i, B_i, C_i: P · motion(q), its first two derivatives, all times F."""
    rho, eta = m.rate[i, 0], m.rate[i, 1]
    s, c = sincos(rho * q)
    P, F = row9(m.P, i), join(row9(m.F, i), row3(m.F, i, 9))
    px, py, pz = (P[0], P[3], P[6]), (P[1], P[4], P[7]), (P[2], P[5], P[8])
    x, y = add(scale(c, px), scale(s, py)), add(scale(c, py), scale(-1.0 * s, px))
    shift = add(row3(m.P, i, 9), scale(eta * q, pz))
    none = zero3()
    A_i = times_transform(columns(x, y, scale(spread(1.0), pz), shift), F)
    B_i = times_transform(columns(scale(rho, y), scale(-rho, x), none, scale(spread(eta), pz)), F)
    C_i = times_transform(columns(scale(-rho * rho, x), scale(-rho * rho, y), none, none), F)
    return A_i, B_i, C_i


@inline
def columns(x, y, z, t):
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2], t[0], t[1], t[2]


@inline
def start_from_world(scratch):
    """T₀ = 1, S₀ = R₀ = 0."""
    one, zero = spread(1.0), spread(0.0)
    store9(scratch, T, (one, zero, zero, zero, one, zero, zero, zero, one))
    store3(scratch, T + 9, zero3())
    for k in range(S, A):
        store(scratch, k, zero)


@inline
def outward(m, i, q, dq, ddq, scratch):
    """(5), and U_i = ∂T_i/∂q_i."""
    up, at = (m.parent[i] + 1) * N, (i + 1) * N
    A_i, B_i, C_i = joint_matrices(m, i, q)
    T_p, S_p, R_p = load12(scratch, up + T), load12(scratch, up + S), load12(scratch, up + R)
    U_i = times_derivative(T_p, B_i)
    store12(scratch, at + A, A_i)
    store12(scratch, at + U, U_i)
    store12(scratch, at + T, times_transform(T_p, A_i))
    store12(scratch, at + S, sum12(times_transform(S_p, A_i), scale12(dq, U_i)))
    R_i = sum12(times_transform(R_p, A_i), scale12(2.0 * dq, times_derivative(S_p, B_i)))
    R_i = sum12(R_i, sum12(scale12(dq * dq, times_derivative(T_p, C_i)), scale12(ddq, U_i)))
    store12(scratch, at + R, R_i)
    store3(scratch, at + AXIS, scale(m.rate[i, 0], mul(square(T_p), (m.P[i, 2], m.P[i, 5], m.P[i, 8]))))
    return R_i


@kernel
def lagrange(m, q, v, a, force, point, torque, tau, scratch, start, stop):
    """Q, (states, n); loads (states or 1, 3 n), or (0, 3 n) for none."""
    ok = finite((q, v, a, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    g = (m.gravity[0, 0], m.gravity[0, 1], m.gravity[0, 2])
    for r in range(start, stop, lane_count()):
        start_from_world(scratch)
        # outward: (5), and each link's own part of (8)
        for i in range(n):
            at = (i + 1) * N
            R_i = outward(m, i, gather(q, r, i), gather(v, r, i), gather(a, r, i), scratch)
            for k in range(H, AXIS):
                store(scratch, at + k, 0.0)
            if m.massive[i]:
                store12(scratch, at + H, pseudo_inertia_times(m.J, i, R_i))
                for k in range(4):
                    store(scratch, at + E + k, m.J[i, 6 + k])
            if len(force) > 0:
                f, x = gather3(force, r, 3 * i), gather3(point, r, 3 * i)
                store12(scratch, at + K, join(outer(x, f), f))
                store3(scratch, at + G, gather3(torque, r, 3 * i))

        # inward: (9), then A_i H_i … to the parent (8)
        for i in range(n - 1, -1, -1):
            up, at = (m.parent[i] + 1) * N, (i + 1) * N
            A_i, U_i = load12(scratch, at + A), load12(scratch, at + U)
            H_i, K_i, G_i = load12(scratch, at + H), load12(scratch, at + K), load3(scratch, at + G)
            first, mass = load3(scratch, at + E), load(scratch, at + E + 3)
            Q = trace(U_i, H_i) - dot(g, add(mul(square(U_i), first), scale(mass, edge(U_i))))
            Q = Q - trace(U_i, K_i) - dot(G_i, load3(scratch, at + AXIS))
            Q = Q + passive_force(m, i, gather(q, r, i), gather(v, r, i), gather(a, r, i))
            scatter(tau, r, i, Q)
            if m.parent[i] >= 0:
                add12(scratch, up + H, carry(A_i, H_i))
                add12(scratch, up + K, carry(A_i, K_i))
                add3(scratch, up + E, add(mul(square(A_i), first), scale(mass, edge(A_i))))
                store(scratch, up + E + 3, load(scratch, up + E + 3) + mass)
                add3(scratch, up + G, G_i)
    return ok
