"""∂τ/∂(q, q̇, q̈) by differentiating the recursive Lagrangian: equations (10) to (17) of [zhakatayev2023], on lanes.

Algorithm 1, outward.  T_i, S_i, R_i (5) and their derivatives by every joint m that moves link i:

    m above i   ∂T_i = ∂T_p A                                                                        (10)
                ∂S_i = ∂S_p A + ∂T_p B q̇            ∂R_i/∂q̇_m = ∂R_p/∂q̇_m A + 2 ∂S_p/∂q̇_m B q̇
                ∂R_i = ∂R_p A + 2∂S_p B q̇ + ∂T_p C q̇² + ∂T_p B q̈
    m = i       ∂T_i = T_p B                                                                          (11)
                ∂S_i = S_p B + T_p C q̇              ∂R_i/∂q̇_i = 2 S_p B + 2 T_p C q̇
                ∂R_i = R_p B + 2S_p C q̇ + T_p D q̇² + T_p C q̈
    otherwise   zero; such pairs are never visited                                                    (12)

∂S_i/∂q̇_m and ∂R_i/∂q̈_m obey the recursion of ∂T_i/∂q_m and are that same matrix.

Algorithms 2 and 3, inward, in one loop.  H_i, E_i, F_i, G_i (8), then for every m

    m above or = i   ∂H_i = J_i ∂R_iᵀ + Σ_children A_c ∂H_c         ∂E_i = ∂F_i = ∂G_i = 0                (13)
    m below i        ∂H_i = A_c ∂H_c  (+ B_m H_m if m = c)           the same for E and F, ∂G_i = 0         (14), (15)

(c the child of i towards m), and with U_i = ∂T_i/∂q_i and ∂U_i = ∂²T_i/∂q_m∂q_i = ∂T_p/∂q_m B_i, resp. T_p C_i,

    m above or = i   ∂Q_i = tr(∂U_i H_i + U_i ∂H_i) − gᵀ∂U_i E_i − tr(∂U_i K_i) − G_iᵀ ∂T_p w₀            (16)
    m below i        ∂Q_i = tr(U_i ∂H_i) − gᵀU_i ∂E_i − tr(U_i ∂K_i)
                     ∂Q_i/∂q̇_m = tr(U_i ∂H_i/∂q̇_m),  and so for q̈_m                                        (17)

K = F Vᵀ as in lagrange.py.  In (14) the matrices of one m only pass upwards from m to the root, so the loop over i
becomes a walk up that path with one running value.  Joints in the order of their numbers run branch by branch.

Glossary (as in lagrange.py; ∂ of a pair (i, m) is by m's coordinate unless it says otherwise)
    dT dS dR dRv   of pair (i, m), m above or = i: by q_m, the last by q̇_m      3×4
    dH dHv dHa     of pair (i, m), m above or = i: by q_m, q̇_m, q̈_m              4×3
    first          number of the first pair of joint i; its k-th ancestor's is first + k
"""

from kinegrad._kernels.bodies import passive_force
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lagrange import (
    AXIS,
    A,
    E,
    G,
    H,
    K,
    N,
    R,
    S,
    T,
    U,
    add12,
    carry,
    columns,
    edge,
    join,
    joint_matrices,
    load12,
    outer,
    outward,
    pseudo_inertia_times,
    scale12,
    square,
    start_from_world,
    store12,
    sum12,
    times_derivative,
    times_transform,
    trace,
)  # fmt: skip
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, load, scatter, spread, store, unload
from kinegrad._kernels.lanes.trigonometry import sincos
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import add, add3, dot, gather3, load3, mul, row3, row9, scale, store3, zero3

B, C, D = 0, 12, 24  # of each joint, after its slots of lagrange.py
JOINT = 36
DT, DS, DR, DRV, DH, DHV, DHA = 0, 12, 24, 36, 48, 60, 72  # of each pair
PAIR = 84


def slots(n: int, pairs: int) -> int:
    """Scratch slots for n joints and that many pairs (without those of the results)."""
    return (n + 1) * (N + JOINT) + pairs * PAIR


@inline
def third_derivative(m, i, q):
    """D_i: the third derivative of A_i by q_i."""
    rho = m.rate[i, 0]
    s, c = sincos(rho * q)
    P, F = row9(m.P, i), join(row9(m.F, i), row3(m.F, i, 9))
    px, py = (P[0], P[3], P[6]), (P[1], P[4], P[7])
    x, y = add(scale(c, px), scale(s, py)), add(scale(c, py), scale(-1.0 * s, px))
    cube = rho * rho * rho
    return times_transform(columns(scale(-cube, y), scale(cube, x), zero3(), zero3()), F)


@inline
def kinematic_sensitivities(m, i, dq, ddq, pair, above, up, extra, scratch):
    """(10), (11): all pairs of joint i, from those of its parent (`above` is the parent's first pair)."""
    A_i = load12(scratch, (i + 1) * N + A)
    B_i, C_i, D_i = load12(scratch, extra + B), load12(scratch, extra + C), load12(scratch, extra + D)
    T_p, S_p, R_p = load12(scratch, up + T), load12(scratch, up + S), load12(scratch, up + R)
    store12(scratch, pair + DT, times_derivative(T_p, B_i))
    dS = sum12(times_derivative(S_p, B_i), scale12(dq, times_derivative(T_p, C_i)))
    store12(scratch, pair + DS, dS)
    store12(scratch, pair + DRV, scale12(2.0, dS))
    dR = sum12(times_derivative(R_p, B_i), scale12(2.0 * dq, times_derivative(S_p, C_i)))
    dR = sum12(dR, scale12(dq * dq, times_derivative(T_p, D_i)))
    store12(scratch, pair + DR, sum12(dR, scale12(ddq, times_derivative(T_p, C_i))))
    k = m.parent[i]
    while k >= 0:
        pair += PAIR
        dT, dS = load12(scratch, above + DT), load12(scratch, above + DS)
        dT_B = times_derivative(dT, B_i)
        store12(scratch, pair + DT, times_transform(dT, A_i))
        store12(scratch, pair + DS, sum12(times_transform(dS, A_i), scale12(dq, dT_B)))
        dR = sum12(times_transform(load12(scratch, above + DR), A_i), scale12(2.0 * dq, times_derivative(dS, B_i)))
        dR = sum12(dR, sum12(scale12(dq * dq, times_derivative(dT, C_i)), scale12(ddq, dT_B)))
        store12(scratch, pair + DR, dR)
        dRv = times_transform(load12(scratch, above + DRV), A_i)
        store12(scratch, pair + DRV, sum12(dRv, scale12(2.0 * dq, dT_B)))
        above += PAIR
        k = m.parent[k]


@kernel
def lagrange_derivatives(m, q, v, a, force, point, torque, pairs, tau, dtau_dq, dtau_dv, dtau_da, scratch, start, stop):
    """Q, (states, n), and its derivatives, (states, n·n) or (states, non-zeros).

    pairs : place, (pairs, 2), the columns of entries (i, m) and (m, i), for i = n−1 … 0 and m from i up to the root;
            first, (n,), the first of these pairs of each i.
    """
    ok = finite((q, v, a, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    place, first = pairs
    n, loaded, width = len(m.parent), len(force) > 0, dtau_dq.shape[1]
    g = (m.gravity[0, 0], m.gravity[0, 1], m.gravity[0, 2])
    pairs_at = (n + 1) * (N + JOINT)
    by_q = pairs_at + len(place) * PAIR
    by_v, by_a = by_q + width, by_q + 2 * width
    for k in range(by_q, by_a + width):
        store(scratch, k, 0.0)
    for r in range(start, stop, lane_count()):
        # Algorithm 1: kinematics and its sensitivities, each link's own part of (8) and (13)
        start_from_world(scratch)
        for i in range(n):
            p, up, at, extra = m.parent[i], (m.parent[i] + 1) * N, (i + 1) * N, (n + 1) * N + (i + 1) * JOINT
            dq, ddq = gather(v, r, i), gather(a, r, i)
            R_i = outward(m, i, gather(q, r, i), dq, ddq, scratch)
            A_i, B_i, C_i = joint_matrices(m, i, gather(q, r, i))
            store12(scratch, extra + B, B_i)
            store12(scratch, extra + C, C_i)
            store12(scratch, extra + D, third_derivative(m, i, gather(q, r, i)))
            pair = pairs_at + first[i] * PAIR
            above = pairs_at + first[max(p, 0)] * PAIR
            kinematic_sensitivities(m, i, dq, ddq, pair, above, up, extra, scratch)
            for k in range(H, AXIS):
                store(scratch, at + k, 0.0)
            if m.massive[i]:
                store12(scratch, at + H, pseudo_inertia_times(m.J, i, R_i))
                for k in range(4):
                    store(scratch, at + E + k, m.J[i, 6 + k])
            if loaded:
                f, x = gather3(force, r, 3 * i), gather3(point, r, 3 * i)
                store12(scratch, at + K, join(outer(x, f), f))
                store3(scratch, at + G, gather3(torque, r, 3 * i))
            k = i
            while k >= 0:
                for entry in range(DH, PAIR):
                    store(scratch, pair + entry, 0.0)
                if m.massive[i]:
                    store12(scratch, pair + DH, pseudo_inertia_times(m.J, i, load12(scratch, pair + DR)))
                    store12(scratch, pair + DHV, pseudo_inertia_times(m.J, i, load12(scratch, pair + DRV)))
                    store12(scratch, pair + DHA, pseudo_inertia_times(m.J, i, load12(scratch, pair + DT)))
                pair += PAIR
                k = m.parent[k]

        # Algorithms 2 and 3
        for i in range(n - 1, -1, -1):
            p, up, at, extra = m.parent[i], (m.parent[i] + 1) * N, (i + 1) * N, (n + 1) * N + (i + 1) * JOINT
            A_i, U_i, B_i = load12(scratch, at + A), load12(scratch, at + U), load12(scratch, extra + B)
            H_i, K_i, G_i = load12(scratch, at + H), load12(scratch, at + K), load3(scratch, at + G)
            moment, mass = load3(scratch, at + E), load(scratch, at + E + 3)
            Q = trace(U_i, H_i) - dot(g, add(mul(square(U_i), moment), scale(mass, edge(U_i))))
            Q = Q - trace(U_i, K_i) - dot(G_i, load3(scratch, at + AXIS))
            Q = Q + passive_force(m, i, gather(q, r, i), gather(v, r, i), gather(a, r, i))
            scatter(tau, r, i, Q)

            # row i: m = i, then m above (13), (16), (17); and (13) for the parent
            axis = (m.rate[i, 0] * m.P[i, 2], m.rate[i, 0] * m.P[i, 5], m.rate[i, 0] * m.P[i, 8])
            pair, above = pairs_at + first[i] * PAIR, pairs_at + first[max(p, 0)] * PAIR
            number, k = first[i], i
            dU = times_derivative(load12(scratch, up + T), load12(scratch, extra + C))
            dw = zero3()  # ∂(T_p w₀)/∂q_m, zero for m = i
            stiffness, damping, armature = m.passive[i, 0], m.passive[i, 2], m.passive[i, 3]
            while k >= 0:
                dH, dHv, dHa = (
                    load12(scratch, pair + DH), load12(scratch, pair + DHV), load12(scratch, pair + DHA),
                )  # fmt: skip
                entry = trace(dU, H_i) + trace(U_i, dH) - trace(dU, K_i) - dot(G_i, dw)
                entry = entry - dot(g, add(mul(square(dU), moment), scale(mass, edge(dU))))
                row = place[number, 0]
                store(scratch, by_q + row, entry + stiffness)
                store(scratch, by_v + row, trace(U_i, dHv) + damping)
                store(scratch, by_a + row, trace(U_i, dHa) + armature)
                stiffness, damping, armature = 0.0, 0.0, 0.0
                if k != i:
                    add12(scratch, above + DH, carry(A_i, dH))
                    add12(scratch, above + DHV, carry(A_i, dHv))
                    add12(scratch, above + DHA, carry(A_i, dHa))
                    above += PAIR
                k = m.parent[k]
                if k >= 0:
                    dT = load12(scratch, above + DT)  # of pair (p, k)
                    dU = times_derivative(dT, B_i)
                    dw = mul(square(dT), axis)
                pair += PAIR
                number += 1

            # column i: this joint as the m of all joints above it (14), (16), (17)
            pair = pairs_at + first[i] * PAIR
            dH = sum12(carry(A_i, load12(scratch, pair + DH)), carry_derivative(B_i, H_i))
            dHv, dHa = carry(A_i, load12(scratch, pair + DHV)), carry(A_i, load12(scratch, pair + DHA))
            dE = add(mul(square(B_i), moment), scale(mass, edge(B_i)))
            dK = carry_derivative(B_i, K_i)
            number, k = first[i] + 1, p
            while k >= 0:
                there = (k + 1) * N
                U_k, A_k = load12(scratch, there + U), load12(scratch, there + A)
                entry = trace(U_k, dH) - dot(g, mul(square(U_k), dE)) - trace(U_k, dK)
                column = place[number, 1]
                store(scratch, by_q + column, entry)
                store(scratch, by_v + column, trace(U_k, dHv))
                store(scratch, by_a + column, trace(U_k, dHa))
                dH, dHv, dHa = carry(A_k, dH), carry(A_k, dHv), carry(A_k, dHa)
                dE, dK = mul(square(A_k), dE), carry(A_k, dK)
                number += 1
                k = m.parent[k]

            # (8) for the parent
            if p >= 0:
                add12(scratch, up + H, carry(A_i, H_i))
                add12(scratch, up + K, carry(A_i, K_i))
                add3(scratch, up + E, add(mul(square(A_i), moment), scale(mass, edge(A_i))))
                store(scratch, up + E + 3, load(scratch, up + E + 3) + mass)
                add3(scratch, up + G, G_i)
        unload(dtau_dq, r, scratch, by_q)
        unload(dtau_dv, r, scratch, by_v)
        unload(dtau_da, r, scratch, by_a)
    return ok


@inline
def carry_derivative(B_i, X):
    """B X, B a 3×4 matrix with last row 0 and X 4×3: the last row of the product is 0."""
    Y = carry(B_i, X)
    zero = spread(0.0)
    return join(square(Y), (zero, zero, zero))
