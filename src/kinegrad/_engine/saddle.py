"""The saddle-point system of constrained motion in dense matrices, for any batch and any number of right-hand sides.

    [M  −Gᵀ] [x]   [r]
    [G   0 ] [y] = [s]

Three formulations that share nothing but the matrices:

    range-space   M = C Cᵀ,  A = C⁻¹ Gᵀ = U Σ Vᵀ:   y = V Σ⁻² Vᵀ (s − Aᵀ C⁻¹ r),   x = C⁻ᵀ (C⁻¹ r + A y)
    null-space    Gᵀ = Q₁ R,  Q₂ ⊥ Q₁:   x = Q₁ R⁻ᵀ s + Q₂ (Q₂ᵀ M Q₂)⁻¹ Q₂ᵀ (r − M Q₁ R⁻ᵀ s),   y = R⁻¹ Q₁ᵀ (M x − r)
    direct        the matrix as it stands

The last two in units of x in which the diagonal of M is one.  Where rows of G depend on each other, singular values
that are rounding are left out.  x is the same for any of the y that remain; that of least norm is returned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.gate import DependentRow
from kinegrad._engine.reduction import factor_pivot
from kinegrad.errors import SingularError

__all__ = ["METHODS", "T", "check_independent", "least_norm", "loose_ends", "rank", "solve", "source", "tilted"]

Array = NDArray[Any]  # float64
METHODS = ("range-space", "null-space", "direct")
RANK = 1e-9  # singular values below this part of the largest are rounding


def solve(method: str, M: Array, G: Array, r: Array, s: Array, *, least: bool) -> tuple[Array, Array]:
    """x, (..., n, k), and y, (..., m, k), for r, (..., n, k), and s, (..., m, k).

    `least` allows for rows of G that depend on each other.  Raises SingularError where the system has no solution for
    all right-hand sides.
    """
    try:
        with np.errstate(all="ignore"):  # what overflows is found by who asked for it
            if method == "range-space":
                return _range_space(M, G, r, s, least)
            unit, size = _units(M, G)
            row, column = unit[..., :, None], unit[..., None, :]
            formulation = _null_space if method == "null-space" else _direct
            x, y = formulation(row * M * column, G * column / size, row * r, s / size, least)
            return row * x, y / size
    except np.linalg.LinAlgError:
        raise SingularError("the system of constrained motion is singular") from None


def check_independent(G: Array) -> None:
    """Raise DependentRow for the first state in which a row of G, (..., m, n), follows from others."""
    if not G.size:
        return
    with np.errstate(all="ignore"):
        length = np.sqrt((G * G).sum(axis=-1))
        unit = G / np.where(length > 0, length, 1.0)[..., None]
        Gram = unit @ T(unit)
    found = factor_pivot(Gram[..., ::-1, ::-1], np.ones(G.shape[:-1]))  # rows are judged by those before them
    if found is not None:
        raise DependentRow(G.shape[-2] - 1 - found[0], found[1], G.shape[:-2])


def loose_ends(G: Array, moved: Array) -> Array:
    """What the y of least norm changes by beyond the range of G, (..., m, k), where rows depend on each other.

    y = G g for some g, and stays so: N Nᵀ dy = N Nᵀ dG g, with N Nᵀ what is orthogonal to the range of G.  `moved` is
    dG g along k directions, with g of :func:`source`.
    """
    U, S, _ = np.linalg.svd(G, full_matrices=False)
    U = U * _some(S)[..., None, :]
    return np.asarray(moved - U @ (T(U) @ moved))


def tilted(G: Array, bent: Array) -> Array:
    """What is taken off ds, (..., m, k), where rows contradict each other: G x is then only as near to s as can be.

    Gᵀ (G x − s) = 0 stays so: G dx = ds − (Gᵀ)⁺ dGᵀ (G x − s) as nearly as can be.  `bent` is dGᵀ (G x − s) along k
    directions, (..., n, k).
    """
    return least_norm(T(G), bent)


def source(G: Array, f: Array) -> Array:
    """g, (..., n), of least norm with f = G g."""
    found: Array = least_norm(G, f[..., None])[..., 0]
    return found


def least_norm(B: Array, right: Array) -> Array:
    """x of least norm, (..., k, j), with B x = right as nearly as can be, for B, (..., n, k)."""
    U, S, Vt = np.linalg.svd(B, full_matrices=False)
    return np.asarray(T(Vt) @ (_inverse(S)[..., None] * (T(U) @ right)))


def rank(G: Array) -> NDArray[np.int64]:
    """How many rows of G, (..., m, n), are independent, (...)."""
    return np.asarray(_some(np.linalg.svd(G, compute_uv=False)).sum(axis=-1), dtype=np.int64)


def T(x: Array) -> Array:
    """Transposed."""
    return x.swapaxes(-1, -2)


def _some(S: Array) -> Array:
    """1 for singular values that are more than rounding, 0 for the others."""
    noise = RANK * S.max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray(noise < S, dtype=np.float64)


def _inverse(S: Array) -> Array:
    some = _some(S)
    return np.asarray(some / np.where(some > 0, S, 1.0))


def _units(M: Array, G: Array) -> tuple[Array, Array]:
    """Units of x, (..., n), in which the diagonal of M is one, and what is then the largest entry of G, (..., 1, 1).

    In these M and G can be judged together: a gram beside a thousand tons is no rounding.
    """
    diagonal = np.diagonal(M, axis1=-2, axis2=-1)
    unit: Array = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    size = np.abs(G * unit[..., None, :]).max(axis=(-1, -2), keepdims=True, initial=0.0)
    return unit, np.where(size > 0, size, 1.0)


def _range_space(M: Array, G: Array, r: Array, s: Array, least: bool) -> tuple[Array, Array]:
    C: Array = np.linalg.cholesky(M)
    A: Array = np.linalg.solve(C, T(G))
    z: Array = np.linalg.solve(C, r)
    if least:
        U, S, Vt = np.linalg.svd(A, full_matrices=False)
        y = T(Vt) @ (_inverse(S)[..., None] * (_inverse(S)[..., None] * (Vt @ s) - T(U) @ z))
    else:
        y = np.linalg.solve(T(A) @ A, s - T(A) @ z)
    return np.linalg.solve(T(C), z + A @ y), y


def _null_space(M: Array, G: Array, r: Array, s: Array, least: bool) -> tuple[Array, Array]:
    if least:
        U, S, Vt = np.linalg.svd(G, full_matrices=True)
        k = S.shape[-1]
        some, zero = _some(S), np.zeros((*S.shape[:-1], G.shape[-1] - k))
        range_part = T(Vt[..., :k, :]) @ (_inverse(S)[..., None] * (T(U[..., :k]) @ s))
        free = 1.0 - np.concatenate([some, zero], axis=-1)  # unit entries stand for what is not free
        P = T(Vt) * free[..., None, :]
        H = T(P) @ M @ P + np.eye(M.shape[-1]) * (1.0 - free)[..., None]
        x = range_part + P @ np.linalg.solve(H, T(P) @ (r - M @ range_part))
        return x, U[..., :k] @ (_inverse(S)[..., None] * (Vt[..., :k, :] @ (M @ x - r)))
    m = G.shape[-2]
    Q, R = np.linalg.qr(T(G), mode="complete")
    Q1, Q2, R = Q[..., :m], Q[..., m:], R[..., :m, :]
    x = Q1 @ np.linalg.solve(T(R), s)
    x = x + Q2 @ np.linalg.solve(T(Q2) @ M @ Q2, T(Q2) @ (r - M @ x))
    return x, np.linalg.solve(R, T(Q1) @ (M @ x - r))


def _direct(M: Array, G: Array, r: Array, s: Array, least: bool) -> tuple[Array, Array]:
    n, m = M.shape[-1], G.shape[-2]
    K = np.zeros((*np.broadcast_shapes(M.shape[:-2], G.shape[:-2]), n + m, n + m))
    K[..., :n, :n], K[..., :n, n:], K[..., n:, :n] = M, -T(G), G
    shape = np.broadcast_shapes(r.shape[:-2], s.shape[:-2])
    sides = np.concatenate([np.broadcast_to(x, (*shape, *x.shape[-2:])) for x in (r, s)], axis=-2)
    found = np.linalg.pinv(K, rcond=RANK) @ sides if least else np.linalg.solve(K, sides)
    return found[..., :n, :], found[..., n:, :]
