"""The methods that [anderson2002] compares, in one style: total da/dp of a chain whose state follows p as well.

fully_recursive       (57)–(61) and their slopes (62)–(70): no matrix of the system is formed.  O(n + pn)
partially_recursive   Appendix A: M, K and all their derivatives by recursion, M factored, (9).  O(n³)
conventional          (25)–(31): each element of M, K and of their derivatives a sum over all bodies, then M⁻¹ as a
                      matrix, (9).  O(n⁴)
conventional_frugal   the same sums without the terms that are zero, symmetry used, products tabulated, M factored.
                      Still O(n⁴)

(25)–(31) are taken as they read once put right (:mod:`kinegrad.papers.anderson2002.misprints`), but for I1,q: it is
zero, so that of the 3n⁴ forms of (28) n⁴ are left out.

All take ``(chain, q, v, dq, dv)`` with q, v (n,) and dq = dq/dp, dv = dv/dp (p, n), and return q̈ (n,) and dq̈/dp (p, n).
What they share is in :mod:`kinegrad.papers.anderson2002.chain`: outward kinematics with its slopes, whose symbols
are those of this file, and

=========  =============================================================================
P[i, k]    partial velocity 𝒫_i of body k: S_kᵀ … S_{i+1}ᵀ 𝒫_i of body i, zero for k < i
R2, F2     (47) and (51): what body k and all after it contribute, shifted to body k
I3, F3     articulated inertia (57) and load (58) of body k and all after it
=========  =============================================================================

In their own bases, 𝒫_i of body k changes with q_s only if i < s ≤ k, and S_k with q_k alone: the paper's local
differentiation.

References
----------
[anderson2002] Anderson, Hsu, analytical fully-recursive sensitivity analysis for multibody dynamic chain systems.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kinegrad.papers.anderson2002.chain import (
    Array,
    Chain,
    Direction,
    Motion,
    Slope,
    add_product,
    add_product_t,
    bilinear,
    clear,
    dot,
    multiply,
    multiply_t,
    outward,
    outward_slope,
)
from kinegrad.papers.report.compiled import compiled, inner

__all__ = ["METHODS", "conventional", "conventional_frugal", "fully_recursive", "idle", "partially_recursive"]

Result = tuple[Array, Array]


# --- 1: fully recursive -------------------------------------------------------------------------------------------


@compiled
def fully_recursive(chain: Chain, q: Array, v: Array, dq: Array, dv: Array) -> Result:
    """[anderson2002] section 4.2."""
    n, p = len(q), len(dq)
    motion = outward(chain, q, v)
    S, P = motion.S, motion.P
    I3, F3, M = motion.I1.copy(), motion.F1.copy(), np.empty(n)
    b, f = np.zeros((n, 6)), np.empty(n)  # I3 𝒫 and 𝒫ᵀ F3
    W, WS = np.empty((n, 6, 6)), np.empty((n, 6, 6))  # I3 − b bᵀ/M, and that times Sᵀ
    rest = np.empty((n, 6))  # F3 − b f/M
    X, Y = np.empty((6, 6)), np.empty((6, 6))
    for k in range(n - 1, -1, -1):  # triangularisation, inward
        add_product(b[k], I3[k], P[k])
        M[k], f[k] = dot(P[k], b[k]), dot(P[k], F3[k])  # [anderson2002] (59)
        for i in range(6):
            rest[k, i] = F3[k, i] - b[k, i] * f[k] / M[k]
            for j in range(6):
                W[k, i, j] = I3[k, i, j] - b[k, i] * b[k, j] / M[k]
        if k > 0:
            multiply_t(WS[k], W[k], S[k])
            multiply(X, S[k], WS[k])
            for i in range(6):
                for j in range(6):
                    I3[k - 1, i, j] += X[i, j]  # [anderson2002] (57)
            add_product(F3[k - 1], S[k], rest[k])  # [anderson2002] (58)
    A, x, a = np.zeros((n, 6)), np.zeros((n, 6)), np.empty(n)  # 𝒜 and S ᵀ𝒜 of the parent
    for k in range(n):  # back-substitution, outward
        if k > 0:
            add_product_t(x[k], S[k], A[k - 1])
        a[k] = (f[k] - dot(b[k], x[k])) / M[k]  # [anderson2002] (60)
        for i in range(6):
            A[k, i] = x[k, i] + P[k, i] * a[k]  # [anderson2002] (61)

    da = np.empty((p, n))
    _, d = nothing(n)
    db, df, dM = np.empty((n, 6)), np.empty(n), np.empty(n)
    drest, dA, dA_parent = np.empty(6), np.empty(6), np.empty(6)
    for c in range(p):
        along = Direction(dq[c], dv[c], chain.ds[c], chain.dr[c], chain.dm[c], chain.dinertia[c])
        outward_slope(chain, motion, v, along, np.int64(0), d)
        dI3, dF3 = d.I1, d.F1  # [anderson2002] (62); more is added on the way inward
        for k in range(n - 1, -1, -1):
            clear(db[k])
            add_product(db[k], dI3[k], P[k])
            add_product(db[k], I3[k], d.P[k])
            dM[k] = dot(d.P[k], b[k]) + dot(P[k], db[k])  # [anderson2002] (63)
            df[k] = dot(d.P[k], F3[k]) + dot(P[k], dF3[k])
            ratio, force = dM[k] / M[k], f[k] / M[k]
            dforce = (df[k] - force * dM[k]) / M[k]
            for i in range(6):
                drest[i] = dF3[k, i] - db[k, i] * force - b[k, i] * dforce
                for j in range(6):
                    outer = db[k, i] * b[k, j] + b[k, i] * (db[k, j] - b[k, j] * ratio)
                    X[i, j] = dI3[k, i, j] - outer / M[k]  # slope of W
            if k > 0:
                multiply_t(Y, X, S[k])
                multiply(X, S[k], Y)
                multiply(Y, d.S[k], WS[k])
                for i in range(6):
                    for j in range(6):
                        dI3[k - 1, i, j] += X[i, j] + Y[i, j] + Y[j, i]  # [anderson2002] (64)
                add_product(dF3[k - 1], d.S[k], rest[k])  # [anderson2002] (65)
                add_product(dF3[k - 1], S[k], drest)
            clear(dI3[k])  # the next parameter starts from zero
        clear(dA)
        for k in range(n):
            for i in range(6):
                dA_parent[i], dA[i] = dA[i], 0.0
            if k > 0:
                add_product_t(dA, d.S[k], A[k - 1])
                add_product_t(dA, S[k], dA_parent)
            change = df[k] - dot(db[k], x[k]) - dot(b[k], dA) - dM[k] * a[k]
            da[c, k] = change / M[k]  # [anderson2002] (67), (69)
            for i in range(6):
                dA[i] += d.P[k, i] * a[k] + P[k, i] * da[c, k]  # [anderson2002] (68), (70)
    return a, da


# --- what the other two share -------------------------------------------------------------------------------------


@inner
def partial_velocities(motion: Motion) -> Array:
    """𝒫_i of body k for all i ≤ k, (n, n, 6)."""
    n = len(motion.P)
    P = np.zeros((n, n, 6))
    for i in range(n):
        for j in range(6):
            P[i, i, j] = motion.P[i, j]
        for k in range(i + 1, n):
            add_product_t(P[i, k], motion.S[k], P[i, k - 1])  # [anderson2002] (37), (41)
    return P


@inner
def partial_velocity_slopes(dP: Array, motion: Motion, P: Array, d: Slope, first: int, last: int) -> None:
    """Slopes of 𝒫_i of body k, where S changes for bodies `first` to `last` alone; zero where they are not set."""
    n = len(P)
    clear(dP)
    for i in range(last + 1):
        if first <= i:
            for j in range(6):
                dP[i, i, j] = d.P[i, j]
        for k in range(max(i + 1, first), n):
            add_product_t(dP[i, k], motion.S[k], dP[i, k - 1])  # [anderson2002] (72), (73)
            if k <= last:
                add_product_t(dP[i, k], d.S[k], P[i, k - 1])


@inner
def factor(M: Array) -> None:
    """M = L Lᵀ (Cholesky), L in place of its lower half."""
    n = len(M)
    for j in range(n):
        for i in range(j, n):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[j, k]
            M[i, j] = np.sqrt(total) if i == j else total / M[j, j]


@inner
def solve(L: Array, x: Array) -> None:
    """x becomes (L Lᵀ)⁻¹ x."""
    n = len(L)
    for i in range(n):
        for k in range(i):
            x[i] -= L[i, k] * x[k]
        x[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        x[i] /= L[i, i]
        for k in range(i):
            x[k] -= L[i, k] * x[i]


@inner
def inverse(M: Array) -> Array:
    """M⁻¹, column by column from its factors."""
    factor(M)
    X = np.eye(len(M))
    for column in X:  # a row of X, which is symmetric
        solve(M, column)
    return X


@inner
def applied(A: Array, x: Array) -> Array:
    """A x, of n."""
    y = np.zeros(len(x))
    for i in range(len(x)):
        for j in range(len(x)):
            y[i] += A[i, j] * x[j]
    return y


@inner
def nothing(n: int) -> tuple[Direction, Slope]:
    """A direction along which nothing changes, and the slopes there."""
    vectors = np.zeros((2, n, 3))
    direction = Direction(np.zeros(n), np.zeros(n), vectors[0], vectors[1], np.zeros(n), np.zeros((n, 3, 3)))
    return direction, Slope(np.zeros((n, 6, 6)), np.zeros((n, 6)), np.zeros((n, 6, 6)), np.zeros((n, 6)))


@inner
def slope_along(chain: Chain, motion: Motion, v: Array, x: int, still: Direction, d: Slope) -> tuple[int, int]:
    """Partial slopes of bodies along x, the parameters, coordinates and speeds in a row; where S and 𝒫 change."""
    p, n = len(chain.dm), len(v)
    if x < p:
        along = Direction(still.dq, still.dv, chain.ds[x], chain.dr[x], chain.dm[x], chain.dinertia[x])
        outward_slope(chain, motion, v, along, np.int64(0), d)
        return 0, n - 1
    s = (x - p) % n
    seed = still.dq if x < p + n else still.dv
    seed[s] = 1.0
    outward_slope(chain, motion, v, still, s, d)
    seed[s] = 0.0
    return s, s


@inner
def add_bracket(da: Array, dK: Array, dM: Array, a: Array, x: int, dq: Array, dv: Array) -> None:
    """Add what x contributes to the bracket of [anderson2002] (9): K,x dx/dp, and with p and q − M,x q̈ dx/dp."""
    p, n = da.shape
    s = (x - p) % n
    for i in range(n):
        total = dK[i]
        if x < p + n:
            for j in range(n):
                total -= dM[i, j] * a[j]
        for c in range(p):
            if x >= p:
                da[c, i] += total * (dq[c, s] if x < p + n else dv[c, s])
            elif x == c:
                da[c, i] += total


# --- 2: partially recursive ---------------------------------------------------------------------------------------


@inner
def recursive_load_slope(dK: Array, motion: Motion, F2: Array, d: Slope, first: int, last: int) -> None:
    """K,x of all r.  What the paper calls 𝓕𝓟2 and 𝓕𝓡𝓟2 obey one recursion and are added up in one vector."""
    n = len(dK)
    total, inward = np.zeros(6), np.zeros(6)
    for r in range(n - 1, -1, -1):
        clear(inward)
        if r + 1 < n:
            add_product(inward, motion.S[r + 1], total)  # [anderson2002] (91)
            if first <= r + 1 <= last:
                add_product(inward, d.S[r + 1], F2[r + 1])  # [anderson2002] (92)
        for j in range(6):
            total[j] = inward[j] + (d.F1[r, j] if r >= first else 0.0)
        dK[r] = dot(motion.P[r], total)  # [anderson2002] (89), (94), (96)
        if first <= r <= last:
            dK[r] += dot(d.P[r], F2[r])


@inner
def recursive_mass_slope(
    dM: Array, motion: Motion, P: Array, dP: Array, R2: Array, d: Slope, first: int, last: int, massive: bool
) -> None:
    """M,x, full; 𝓡I2, 𝓡𝓟2 and 𝓡𝓡𝓟2 added up in one vector; `massive` where I1 changes, too."""
    n = len(dM)
    total, inward = np.zeros(6), np.zeros(6)
    clear(dM)
    for i in range(last + 1):
        clear(total)
        for k in range(n - 1, i - 1, -1):
            clear(inward)
            if k + 1 < n:
                add_product(inward, motion.S[k + 1], total)  # [anderson2002] (81), (82)
                if first <= k + 1 <= last:
                    add_product(inward, d.S[k + 1], R2[i, k + 1])  # [anderson2002] (83)
            if k >= first:
                add_product(inward, motion.I1[k], dP[i, k])
                if massive:
                    add_product(inward, d.I1[k], P[i, k])
            for j in range(6):
                total[j] = inward[j]
            dM[k, i] = dot(motion.P[k], total)  # [anderson2002] (79), (85)
            if first <= k <= last:
                dM[k, i] += dot(d.P[k], R2[i, k])
            dM[i, k] = dM[k, i]


@compiled
def partially_recursive(chain: Chain, q: Array, v: Array, dq: Array, dv: Array) -> Result:
    """[anderson2002] Appendix A."""
    n, p = len(q), len(dq)
    motion = outward(chain, q, v)
    S, P = motion.S, partial_velocities(motion)
    M, R2, F2, a = np.empty((n, n)), np.zeros((n, n, 6)), motion.F1.copy(), np.empty(n)
    for k in range(n - 1, -1, -1):
        if k + 1 < n:
            add_product(F2[k], S[k + 1], F2[k + 1])  # [anderson2002] (51), (90)
        a[k] = dot(motion.P[k], F2[k])  # K_k: [anderson2002] (50)
        for i in range(k + 1):
            add_product(R2[i, k], motion.I1[k], P[i, k])  # [anderson2002] (46)
            if k + 1 < n:
                add_product(R2[i, k], S[k + 1], R2[i, k + 1])  # [anderson2002] (47), (80)
            M[k, i] = M[i, k] = dot(motion.P[k], R2[i, k])  # [anderson2002] (45)
    factor(M)
    solve(M, a)  # [anderson2002] (6)

    da = np.zeros((p, n))
    dP, dM, dK = np.zeros((n, n, 6)), np.empty((n, n)), np.empty(n)
    still, d = nothing(n)
    for x in range(p + 2 * n):
        first, last = slope_along(chain, motion, v, x, still, d)
        if x < p + n:
            partial_velocity_slopes(dP, motion, P, d, first, last)
            recursive_mass_slope(dM, motion, P, dP, R2, d, first, last, x < p)
        recursive_load_slope(dK, motion, F2, d, first, last)
        add_bracket(da, dK, dM, a, x, dq, dv)
    for c in range(p):
        solve(M, da[c])  # [anderson2002] (9)
    return a, da


# --- 3: conventional ----------------------------------------------------------------------------------------------


@compiled
def conventional(chain: Chain, q: Array, v: Array, dq: Array, dv: Array) -> Result:
    """[anderson2002] section 3.1: sums over all bodies for all elements, and M⁻¹."""
    n, p = len(q), len(dq)
    motion = outward(chain, q, v)
    P, I1, F1 = partial_velocities(motion), motion.I1, motion.F1
    M, K = np.zeros((n, n)), np.zeros(n)
    for r in range(n):
        for k in range(n):
            K[r] += dot(P[r, k], F1[k])  # [anderson2002] (26)
        for i in range(n):
            for k in range(n):
                M[r, i] += bilinear(P[r, k], I1[k], P[i, k])  # [anderson2002] (25)
    M_inverse = inverse(M)
    a = applied(M_inverse, K)  # [anderson2002] (6)

    da = np.zeros((p, n))
    dP, dM, dK = np.zeros((n, n, 6)), np.empty((n, n)), np.empty(n)
    still, d = nothing(n)
    for x in range(p + 2 * n):
        clear(d.F1)
        first, last = slope_along(chain, motion, v, x, still, d)
        clear(dK)
        if x < p + n:
            partial_velocity_slopes(dP, motion, P, d, first, last)
            clear(dM)
            for r in range(n):
                for k in range(n):
                    dK[r] += dot(dP[r, k], F1[k])  # [anderson2002] (29), (30); with q̇ they do not change
                for i in range(n):
                    for k in range(n):  # [anderson2002] (27), (28)
                        dM[r, i] += bilinear(dP[r, k], I1[k], P[i, k]) + bilinear(P[r, k], I1[k], dP[i, k])
                        if x < p:  # I1,q is zero and left out
                            dM[r, i] += bilinear(P[r, k], d.I1[k], P[i, k])
        for r in range(n):
            for k in range(n):
                dK[r] += dot(P[r, k], d.F1[k])  # [anderson2002] (29)–(31)
        add_bracket(da, dK, dM, a, x, dq, dv)
    for c in range(p):
        da[c] = applied(M_inverse, da[c])  # [anderson2002] (9)
    return a, da


@compiled
def conventional_frugal(chain: Chain, q: Array, v: Array, dq: Array, dv: Array) -> Result:
    """[anderson2002] section 3.1: the same sums, of terms that are not zero, for i ≤ r, with I1 𝒫 tabulated."""
    n, p = len(q), len(dq)
    motion = outward(chain, q, v)
    P, F1 = partial_velocities(motion), motion.F1
    M, K, IP, IdP = np.zeros((n, n)), np.zeros(n), np.zeros((n, n, 6)), np.zeros((n, n, 6))
    for i in range(n):
        for k in range(i, n):
            add_product(IP[i, k], motion.I1[k], P[i, k])
            K[i] += dot(P[i, k], F1[k])  # [anderson2002] (26)
    for r in range(n):
        for i in range(r + 1):
            for k in range(r, n):
                M[r, i] += dot(P[r, k], IP[i, k])  # [anderson2002] (25)
            M[i, r] = M[r, i]
    factor(M)
    a = K.copy()
    solve(M, a)  # [anderson2002] (6)

    da = np.zeros((p, n))
    dP, dM, dK = np.zeros((n, n, 6)), np.empty((n, n)), np.empty(n)
    still, d = nothing(n)
    for x in range(p + 2 * n):
        s, last = slope_along(chain, motion, v, x, still, d)  # nothing before body s changes
        clear(dK)
        for r in range(n):
            for k in range(max(r, s), n):
                dK[r] += dot(P[r, k], d.F1[k])  # [anderson2002] (29)–(31)
        if x < p + n:
            partial_velocity_slopes(dP, motion, P, d, s, last)
            clear(dM)
            clear(IdP)
            for i in range(last + 1):
                for k in range(max(i, s), n):
                    dK[i] += dot(dP[i, k], F1[k])  # [anderson2002] (29), (30)
                    add_product(IdP[i, k], motion.I1[k], dP[i, k])
                    if x < p:
                        add_product(IdP[i, k], d.I1[k], P[i, k])
            for i in range(last + 1):
                for r in range(i, n):
                    for k in range(max(r, s), n):
                        dM[r, i] += dot(dP[r, k], IP[i, k]) + dot(P[r, k], IdP[i, k])  # [anderson2002] (27), (28)
                    dM[i, r] = dM[r, i]
        add_bracket(da, dK, dM, a, x, dq, dv)
    for c in range(p):
        solve(M, da[c])  # [anderson2002] (9)
    return a, da


@compiled
def idle(chain: Chain, q: Array, v: Array, dq: Array, dv: Array) -> Result:
    """Nothing, at what a call of the others costs."""
    return np.zeros_like(q), np.zeros_like(dq)


METHODS: dict[str, Callable[..., Result]] = {
    "fully recursive": fully_recursive,
    "partially recursive": partially_recursive,
    "conventional": conventional,
    "frugal conventional": conventional_frugal,
}
