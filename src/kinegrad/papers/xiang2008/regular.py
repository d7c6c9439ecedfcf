"""The regular Lagrangian equations of [xiang2008], (6) to (11), beside the recursive ones, (12) to (20), for chains.

T_j is the transform of link j, J_j its pseudo-inertia, r_j its centre of mass, f a force at r_f on the last link, g
gravity; the signs of the last two terms of (6) are put right (see `misprints`).  With ∂T_j/∂q_k = W_k T_j, where W_k is
the unit motion of joint k as a 4×4 matrix in the world frame, and W_k W_m T_j with k ≤ m for second derivatives,

    τ_i = Σ_j [ Σ_k tr(W_k T_j J_j (W_i T_j)ᵀ) q̈_k + Σ_k Σ_m tr(W_k W_m T_j J_j (W_i T_j)ᵀ) q̇_k q̇_m
                − gᵀ W_i T_j m_j r_j ] − fᵀ W_i T_n r_f,

O(n⁴) traces; its derivative with respect to q_s, (11), has O(n⁵).  The recursive equations take O(n) products of 4×4
matrices for torques.  All of them are plain compiled loops, so that their times tell what the formulations cost.
"""

from __future__ import annotations

from math import cos, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.errors import InputError
from kinegrad.model import Model
from kinegrad.papers.report.compiled import compiled, inner

__all__ = ["Chain", "chain_of", "recursive_torques", "regular_derivative", "regular_torques"]

Array = NDArray[np.float64]


class Chain(NamedTuple):
    """Constants of a chain of hinges and slides.

    Attributes
    ----------
    P, F : ndarray, shape (n, 4, 4)
        Placement and tip of each joint: T_j = T_{j−1} P_j motion(q_j) F_j.
    K : ndarray, shape (n, 4, 4)
        Unit motions in joint frames: of a hinge axis×, of a slide its axis in the last column.
    hinge : ndarray, shape (n,)
        1 for a hinge, 0 for a slide.
    J : ndarray, shape (n, 4, 4)
        Pseudo-inertias in link frames.
    mr : ndarray, shape (n, 4)
        First moments and masses, m (c, 1).
    g, f, r : ndarray, shape (4,)
        Gravity; the force on the last link, in the world frame; its point, in the link frame.
    """

    P: Array
    F: Array
    K: Array
    hinge: Array
    J: Array
    mr: Array
    g: Array
    f: Array
    r: Array


def chain_of(model: Model, force: ArrayLike = (0, 0, 0), point: ArrayLike = (0, 0, 0)) -> Chain:
    """Return the constants of a chain, with a force (N, world frame) at a point of its last link (m).

    Examples
    --------
    >>> from kinegrad import samples
    >>> chain = chain_of(samples.two_link(gravity=(0, 0, 0)))
    >>> regular_torques(chain, np.zeros(2), np.zeros(2), np.ones(2)).round(6).tolist()
    [0.56, 0.28]
    """
    if model.parents.tolist() != list(range(-1, model.n - 1)):
        raise InputError(f"model {model.name!r} branches; expected a chain")
    kinds = [joint.kind for joint in model.joints]
    if model.coordinates or set(kinds) - {"revolute", "prismatic"}:
        raise InputError(f"model {model.name!r} has other joints than hinges and slides; expected these alone")
    if any(np.any(getattr(model, name)) for name in ("armature", "damping", "stiffness")) or model.elements:
        raise InputError(f"model {model.name!r} has springs, dampers or rotors, which (6) does not; expected none")
    J = np.zeros((model.n, 4, 4))
    for j, (m, c, inertia) in enumerate(zip(model.mass, model.com, model.inertia, strict=True)):
        J[j, :3, :3] = np.trace(inertia) / 2 * np.eye(3) - inertia + m * np.outer(c, c)
        J[j, :3, 3] = J[j, 3, :3] = m * c
        J[j, 3, 3] = m
    hinge, K = np.array([kind == "revolute" for kind in kinds], dtype=float), np.zeros((model.n, 4, 4))
    for j, joint in enumerate(model.joints):
        if hinge[j]:
            K[j, :3, :3] = np.cross(np.eye(3), joint.axis)
        else:
            K[j, :3, 3] = joint.axis
    world = [np.append(np.asarray(x, dtype=float), last) for x, last in ((model.gravity, 0), (force, 0), (point, 1))]
    return Chain(np.array(model.placement), np.array(model.tip), K, hinge, J, np.ascontiguousarray(J[:, :, 3]), *world)


@inner
def multiply(A: Any, B: Any, C: Any) -> None:
    """C = A B, 4×4."""
    for i in range(4):
        for k in range(4):
            C[i, k] = A[i, 0] * B[0, k] + A[i, 1] * B[1, k] + A[i, 2] * B[2, k] + A[i, 3] * B[3, k]


@inner
def trace_product(A: Any, B: Any) -> float:
    """tr(A Bᵀ)."""
    total = 0.0
    for i in range(4):
        for k in range(4):
            total += A[i, k] * B[i, k]
    return total


@inner
def form(g: Any, A: Any, r: Any) -> float:
    """gᵀ A r."""
    total = 0.0
    for i in range(4):
        for k in range(4):
            total += g[i] * A[i, k] * r[k]
    return total


@inner
def joint_motion(chain: Chain, j: int, q: float, T: Any, dT: Any, ddT: Any, X: Any) -> None:
    """T, ∂T/∂q, ∂²T/∂q² of joint j: T = P (1 + sin q K + (1 − cos q) K²) F of a hinge, P (1 + q K) F of a slide."""
    K, hinge, M, square = chain.K[j], chain.hinge[j] > 0, np.empty((4, 4)), np.empty((4, 4))
    multiply(K, K, square)
    c, s = cos(q), sin(q)
    for out, order in ((T, 0), (dT, 1), (ddT, 2)):
        if order == 0:
            one, two = (s, 1.0 - c) if hinge else (q, 0.0)
        elif order == 1:
            one, two = (c, s) if hinge else (1.0, 0.0)
        else:
            one, two = (-s, c) if hinge else (0.0, 0.0)
        for i in range(4):
            for k in range(4):
                M[i, k] = one * K[i, k] + two * square[i, k] + (1.0 if order == 0 and i == k else 0.0)
        multiply(chain.P[j], M, X)
        multiply(X, chain.F[j], out)


@inner
def positions(chain: Chain, q: Any) -> Any:
    """T_j, (n, 4, 4), and W_j, (n, 4, 4): transforms of links and unit motions of joints in the world frame."""
    n = len(q)
    A, W, work = np.empty((n, 4, 4)), np.empty((n, 4, 4)), np.empty((6, 4, 4))
    T, dT, ddT, X, Y, back = work[0], work[1], work[2], work[3], work[4], np.zeros((4, 4))
    back[3, 3] = 1.0
    for j in range(n):
        joint_motion(chain, j, q[j], T, dT, ddT, X)
        if j == 0:
            A[0] = T
            X[:] = chain.P[0]
        else:
            multiply(A[j - 1], T, A[j])
            multiply(A[j - 1], chain.P[j], X)
        for i in range(3):  # X⁻¹
            back[i, 3] = -(X[0, i] * X[0, 3] + X[1, i] * X[1, 3] + X[2, i] * X[2, 3])
            for k in range(3):
                back[i, k] = X[k, i]
        multiply(X, chain.K[j], Y)
        multiply(Y, back, W[j])
    return A, W


@compiled
def regular_torques(chain: Chain, q: Array, v: Array, a: Array) -> Array:
    """Torques by (6) to (10), (n,)."""
    n = len(q)
    A, W = positions(chain, q)
    U, X, Y, tau = np.empty((n, 4, 4)), np.empty((4, 4)), np.empty((4, 4)), np.zeros(n)
    for j in range(n):
        for i in range(j + 1):
            multiply(W[i], A[j], U[i])
        for k in range(j + 1):
            multiply(U[k], chain.J[j], X)
            for i in range(j + 1):
                tau[i] += trace_product(X, U[i]) * a[k]  # (7)
            for m in range(j + 1):
                multiply(W[min(k, m)], U[max(k, m)], Y)
                multiply(Y, chain.J[j], X)
                for i in range(j + 1):
                    tau[i] += trace_product(X, U[i]) * v[k] * v[m]  # (8)
        for i in range(j + 1):
            tau[i] -= form(chain.g, U[i], chain.mr[j])  # (9)
            if j == n - 1:
                tau[i] -= form(chain.f, U[i], chain.r)  # (10)
    return tau


@compiled
def regular_derivative(chain: Chain, q: Array, v: Array, a: Array) -> Array:
    """∂τ/∂q by (11), (n, n)."""
    n = len(q)
    A, W = positions(chain, q)
    U, V, K = np.empty((n, 4, 4)), np.empty((n, n, 4, 4)), np.empty((n, n, 4, 4))
    X, Y, dtau = np.empty((4, 4)), np.empty((4, 4)), np.zeros((n, n))
    for j in range(n):
        for i in range(j + 1):
            multiply(W[i], A[j], U[i])
        for k in range(j + 1):
            for m in range(j + 1):
                multiply(W[min(k, m)], U[max(k, m)], V[k, m])  # ∂²T_j/∂q_k∂q_m
                multiply(V[k, m], chain.J[j], K[k, m])
        for k in range(j + 1):
            multiply(U[k], chain.J[j], X)
            for i in range(j + 1):
                for s in range(j + 1):  # ∂(M q̈)/∂q
                    dtau[i, s] += (trace_product(K[k, s], U[i]) + trace_product(X, V[i, s])) * a[k]
        for k in range(j + 1):
            for m in range(j + 1):
                for s in range(j + 1):  # ∂V/∂q
                    one, two, three = min(k, m, s), max(min(k, m), min(max(k, m), s)), max(k, m, s)
                    multiply(W[one], V[two, three], Y)  # ∂³T_j/∂q_k∂q_m∂q_s
                    multiply(Y, chain.J[j], X)
                    for i in range(j + 1):
                        dtau[i, s] += (trace_product(X, U[i]) + trace_product(K[k, m], V[i, s])) * v[k] * v[m]
        for i in range(j + 1):
            for s in range(j + 1):
                dtau[i, s] -= form(chain.g, V[i, s], chain.mr[j])
                if j == n - 1:
                    dtau[i, s] -= form(chain.f, V[i, s], chain.r)
    return dtau


@compiled
def recursive_torques(chain: Chain, q: Array, v: Array, a: Array) -> Array:
    """Torques by (12) to (20), (n,)."""
    n = len(q)
    links, work, tau = np.empty((2, n, 4, 4)), np.zeros((4, 4, 4)), np.empty(n)
    moved = np.zeros((3, n + 1, 4, 4))
    T, dA, A, B, C = links[0], links[1], moved[0], moved[1], moved[2]
    dT, ddT, X, D = work[0], work[1], work[2], work[3]
    A[0] = np.eye(4)
    for j in range(n):
        joint_motion(chain, j, q[j], T[j], dT, ddT, X)
        multiply(A[j], T[j], A[j + 1])  # (12)
        multiply(A[j], dT, dA[j])
        multiply(B[j], T[j], B[j + 1])
        B[j + 1] += dA[j] * v[j]  # (13)
        multiply(C[j], T[j], C[j + 1])
        multiply(B[j], dT, X)
        C[j + 1] += 2.0 * v[j] * X + dA[j] * a[j]
        multiply(A[j], ddT, X)
        C[j + 1] += v[j] * v[j] * X  # (14)
    E, F, e = np.zeros(4), np.zeros(4), np.empty(4)
    F[:] = chain.r
    for i in range(n - 1, -1, -1):
        if i < n - 1:
            multiply(T[i + 1], D, X)
            D[:] = X
            for x in (E, F):
                for k in range(4):
                    e[k] = T[i + 1, k, 0] * x[0] + T[i + 1, k, 1] * x[1] + T[i + 1, k, 2] * x[2] + T[i + 1, k, 3] * x[3]
                x[:] = e
        for r in range(4):
            for k in range(4):
                for m in range(4):
                    D[r, k] += chain.J[i, r, m] * C[i + 1, k, m]  # (17)
        E += chain.mr[i]  # (18)
        total = 0.0
        for r in range(4):
            for k in range(4):
                total += dA[i, r, k] * D[k, r]
        tau[i] = total - form(chain.g, dA[i], E) - form(chain.f, dA[i], F)  # (16)
    return tau
