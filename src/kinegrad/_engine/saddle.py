"""The saddle-point system of constrained motion in dense matrices, for any batch and any number of right-hand sides.

    [M  −Gᵀ] [x]   [r]
    [G   0 ] [y] = [s]

Three formulations that share nothing but the matrices:

    range-space   M = C Cᵀ,  A = C⁻¹ Gᵀ = Q R:   y = R⁻¹ (R⁻ᵀ s − Qᵀ C⁻¹ r),   x = C⁻ᵀ (C⁻¹ r + Q R y)
    null-space    Gᵀ = Q₁ R,  Q₂ ⊥ Q₁:   x = Q₁ R⁻ᵀ s + Q₂ (Q₂ᵀ M Q₂)⁻¹ Q₂ᵀ (r − M Q₁ R⁻ᵀ s),   y = R⁻¹ Q₁ᵀ (M x − r)
    direct        the matrix as it stands

(With rows that depend on each other A = U Σ Vᵀ takes the place of Q R.  The compiled range-space method factors AᵀA,
which is faster and loses twice as many digits; the caller leaves nearly dependent rows to the one here.)

The last two in units of x in which the diagonal of M is one.  Where rows of G depend on each other, singular values
that are rounding are left out.  x is the same for any of the y that remain; that of least norm is returned.

Rows may be of any size: a lever of kilometres beside one of millimetres.  So what is rounding is judged by rows of unit
length, E⁻¹ G = V Σ Uᵀ, and what is of least norm by rows as they are.  With an orthonormal basis Q of all y that Gᵀ
does not see, which are E⁻¹ times the columns of V where Σ is zero, the right-hand side s − Q Qᵀ s can be met, and
is nearest to s where rows contradict each other; and of all y that act alike, y − Q Qᵀ y is the least.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.gate import DependentRow
from kinegrad._engine.reduction import factor_pivot
from kinegrad.errors import SingularError

__all__ = [
    "METHODS", "T", "check_independent", "in_masses", "least_norm", "loose_ends", "pulled", "pushed", "rank", "solve",
    "source", "tilted", "unit_rows", "unresisted",
]  # fmt: skip

Array = NDArray[Any]  # float64
METHODS = ("range-space", "null-space", "direct")
RANK = 1e-9  # singular values below this part of the largest are rounding
SQUARED = 1e-13  # the same of G M⁻¹ Gᵀ
LINK, ALIKE = 1e-10, 1e2  # entries of projectors that are more than rounding; sizes of rows that may be mixed


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
    unit = unit_rows(G)
    Gram = unit @ T(unit)
    found = factor_pivot(Gram[..., ::-1, ::-1], np.ones(G.shape[:-1]))  # rows are judged by those before them
    if found is not None:
        raise DependentRow(G.shape[-2] - 1 - found[0], found[1], G.shape[:-2])


def in_masses(M: Array, G: Array) -> Array:
    """Rows G C⁻ᵀ, (..., m, n), with M = C Cᵀ: those of which the range-space method judges which are independent."""
    return T(np.linalg.solve(np.linalg.cholesky(M), T(G)))


def unresisted(M: Array, G: Array) -> tuple[int, int] | None:
    """The first state in which neither mass nor constraints resist a coordinate: (coordinate, state), or None.

    The system is regular if M is positive on all motions that G leaves, and that is so if M + GᵀG is, in any units.
    """
    if not M.size:
        return None
    with np.errstate(all="ignore"):
        unit, _ = _units(M, G)
        rows = unit_rows(G * unit[..., None, :])
        both = unit[..., :, None] * M * unit[..., None, :] + T(rows) @ rows
    return factor_pivot(both, np.diagonal(both, axis1=-2, axis2=-1))


def unit_rows(G: Array) -> Array:
    """Rows of G, (..., m, n), of length 1, whatever their size; rows of zeros as they are."""
    return np.asarray(G / _lengths(T(G))[..., None])


def _lengths(B: Array) -> Array:
    """Of columns of B, (..., n, k); 1 of columns of zeros.  Squares do not overflow."""
    size = np.abs(B).max(axis=-2, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    length = np.sqrt(((B / size[..., None, :]) ** 2).sum(axis=-2))
    return np.asarray(size * np.where(length > 0, length, 1.0))


class Columns(NamedTuple):
    """A matrix B, (..., n, k), by columns of unit length: B = U Σ Vᵀ E, where what is rounding is left out.

    Attributes
    ----------
    size : ndarray, shape (..., k)
        The diagonal of E.
    U, V : ndarray, shapes (..., n, n) and (..., k, k)
    inverse : ndarray, shape (..., min(n, k))
        1/Σ; zero of what is rounding.
    none : ndarray, shape (..., k, k)
        An orthonormal basis Q of all y with B y = 0, and columns of zeros.
    """

    size: Array
    U: Array
    V: Array
    inverse: Array
    none: Array

    def solved(self, right: Array) -> Array:
        """Some x, (..., k, j), with B x as near to `right`, (..., n, j), as can be."""
        few, right = self.inverse.shape[-1], np.ascontiguousarray(right)
        found = self.V[..., :few] @ (self.inverse[..., None] * (T(self.U[..., :few]) @ right))
        return np.asarray(found / self.size[..., None])

    def loose(self, y: Array) -> Array:
        """The part of y, (..., k, j), that B does not see: Q Qᵀ y."""
        return np.asarray(self.none @ (T(self.none) @ np.ascontiguousarray(y)))

    @property
    def free(self) -> Array:
        """1 for columns of V, (..., k), that stand for no singular value but rounding, 0 for the others."""
        return _padded(1.0 - (self.inverse > 0), self.V.shape[-1])


def columns(B: Array) -> Columns:
    """Of B, (..., n, k), in one order of memory, so that a state gives the same bits in any batch."""
    B = np.ascontiguousarray(B)
    size = _lengths(B)
    U, S, Vt = np.linalg.svd(B / size[..., None, :], full_matrices=True)
    V, inverse = T(Vt), _inverse(S)
    free = _padded(1.0 - (inverse > 0), V.shape[-1])
    return Columns(size, U, V, inverse, _none(V, free, size))


def _none(V: Array, free: Array, size: Array) -> Array:
    """An orthonormal basis of what B does not see, E⁻¹ times the free columns of V, and columns of zeros."""
    # vectors of the null space come first, so that those which are zero change nothing of their basis
    Q = np.linalg.qr((V * free[..., None, :] / size[..., None])[..., ::-1])[0] * free[..., None, ::-1]
    seen = V * free[..., None, :]
    seen = seen @ T(seen)
    loose = np.abs(np.diagonal(seen, axis1=-2, axis2=-1)) > LINK
    largest = np.where(loose, size, 0.0).max(axis=-1, initial=0.0)
    least = np.where(loose, size, np.inf).min(axis=-1, initial=np.inf)
    apart = largest > ALIKE * least
    for state in np.argwhere(apart):
        k = tuple(state)
        Q[k] = _by_groups(seen[k], size[k])
    return Q


def _by_groups(seen: Array, size: Array) -> Array:
    """The same of one state, whose columns are of very different sizes, from N Nᵀ of unit columns.

    Those that depend on each other are taken by themselves: the rounding of large ones would be all of small ones.
    """
    from scipy.sparse.csgraph import connected_components  # here, because it takes a fifth of the import of kinegrad

    Q, done = np.zeros_like(seen), 0
    count, group = connected_components(np.abs(seen) > LINK, directed=False)
    for g in range(count):
        (members,) = np.nonzero(group == g)
        values, vectors = np.linalg.eigh(seen[np.ix_(members, members)])
        basis = vectors[:, values > 0.5] / (size[members] / size[members].min())[:, None]
        Q[members, done : done + basis.shape[1]] = np.linalg.qr(basis)[0]
        done += basis.shape[1]
    return Q


def loose_ends(G: Array, moved: Array) -> Array:
    """What the y of least norm changes by beyond the range of G, (..., m, k), where rows depend on each other.

    y = G g for some g, and stays so: N Nᵀ dy = N Nᵀ dG g, with N Nᵀ what is orthogonal to the range of G.  `moved` is
    dG g along k directions, with g of :func:`source`.
    """
    return columns(T(G)).loose(moved)


def tilted(G: Array, bent: Array) -> Array:
    """What is taken off ds, (..., m, k), where rows contradict each other: G x is then only as near to s as can be.

    Gᵀ (G x − s) = 0 stays so: G dx = ds − (Gᵀ)⁺ dGᵀ (G x − s) as nearly as can be.  `bent` is dGᵀ (G x − s) along k
    directions, (..., n, k).
    """
    return least_norm(T(G), bent)


def source(G: Array, f: Array) -> Array:
    """g, (..., n), of least norm with f = G g, for f of the range of G."""
    size = np.abs(G).max(axis=-1, keepdims=True, initial=0.0)
    size = np.where(size > 0, size, 1.0)
    found: Array = least_norm(G / size, f[..., None] / size)[..., 0]
    return found


def least_norm(B: Array, right: Array) -> Array:
    """x of least norm, (..., k, j), with B x = right as nearly as can be, for B, (..., n, k)."""
    by = columns(B)
    x = by.solved(right)
    return x - by.loose(x)


def pushed(W: Array, right: Array) -> Array:
    """Some y, (..., m, j), with W y = right, for W = G M⁻¹ Gᵀ, or nearly so, (..., m, m), of rows of any size."""
    return pusher(W)(right)


def pusher(W: Array) -> Callable[[Array], Array]:
    """:func:`pushed` of one W; singular values of W are squares, of which less is rounding."""
    diagonal = np.abs(np.diagonal(W, axis1=-2, axis2=-1))
    size = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))[..., None]
    U, S, Vt = np.linalg.svd(W / size / T(size))
    inverse = _inverse(S, SQUARED)[..., None]
    return lambda right: np.asarray(T(Vt) @ (inverse * (T(U) @ (right / size)))) / size


def pulled(G: Array, B: Array, right: Array) -> Array:
    """x = B y, (..., n, j), with G x = right, for B = M⁻¹ Gᵀ, or nearly so, (..., n, m).

    Two refinements take back what G B loses where rows nearly depend on each other.
    """
    push = pusher(G @ B)
    x = B @ push(right)
    for _ in range(2):
        x = x + B @ push(right - G @ x)
    return x


def rank(G: Array) -> NDArray[np.int64]:
    """How many rows of G, (..., m, n), are independent, (...)."""
    return np.asarray(_some(np.linalg.svd(unit_rows(G), compute_uv=False)).sum(axis=-1), dtype=np.int64)


def T(x: Array) -> Array:
    """Transposed."""
    return x.swapaxes(-1, -2)


def _some(S: Array, part: float = RANK) -> Array:
    """1 for singular values that are more than rounding, a part of the largest, 0 for the others."""
    noise = part * S.max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray(noise < S, dtype=np.float64)


def _inverse(S: Array, part: float = RANK) -> Array:
    some = _some(S, part)
    return np.asarray(some / np.where(some > 0, S, 1.0))


def _padded(x: Array, count: int) -> Array:
    """Followed by ones, (..., count)."""
    return np.concatenate([x, np.ones((*x.shape[:-1], count - x.shape[-1]))], axis=-1)


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
        by = columns(A)
        few = by.inverse.shape[-1]
        U, V = by.U[..., :few], by.V[..., :few]
        met = T(V) @ ((s - by.loose(s)) / by.size[..., None])
        along = by.inverse[..., None] * met - (by.inverse > 0)[..., None] * (T(U) @ z)  # of U, what constraints add
        y = V @ (by.inverse[..., None] * along) / by.size[..., None]
        return np.linalg.solve(T(C), z + U @ along), y - by.loose(y)
    Q, R = np.linalg.qr(A)
    along = np.linalg.solve(T(R), s) - T(Q) @ z
    return np.linalg.solve(T(C), z + Q @ along), np.linalg.solve(R, along)


def _null_space(M: Array, G: Array, r: Array, s: Array, least: bool) -> tuple[Array, Array]:
    if least:
        by = columns(T(G))
        few = by.inverse.shape[-1]
        met = T(by.V[..., :few]) @ ((s - by.loose(s)) / by.size[..., None])
        held = by.U[..., :few] @ (by.inverse[..., None] * met)
        free = _padded(1.0 - (by.inverse > 0), M.shape[-1])  # unit entries stand for what is not free
        P = by.U * free[..., None, :]
        H = T(P) @ M @ P + np.eye(M.shape[-1]) * (1.0 - free)[..., None]
        x = held + P @ np.linalg.solve(H, T(P) @ (r - M @ held))
        y = by.solved(M @ x - r)
        return x, y - by.loose(y)
    m = G.shape[-2]
    Q, R = np.linalg.qr(T(G), mode="complete")
    Q1, Q2, R = Q[..., :m], Q[..., m:], R[..., :m, :]
    x = Q1 @ np.linalg.solve(T(R), s)
    x = x + Q2 @ np.linalg.solve(T(Q2) @ M @ Q2, T(Q2) @ (r - M @ x))
    return x, np.linalg.solve(R, T(Q1) @ (M @ x - r))


def _direct(M: Array, G: Array, r: Array, s: Array, least: bool) -> tuple[Array, Array]:
    n, m = M.shape[-1], G.shape[-2]
    K = np.zeros((*np.broadcast_shapes(M.shape[:-2], G.shape[:-2]), n + m, n + m))
    if least:  # by rows of unit length, and N Nᵀ ŷ = 0 where they depend on each other: N is orthogonal to all G x
        by = columns(T(G))
        N = by.V * by.free[..., None, :]
        G, s = G / by.size[..., None], (s - by.loose(s)) / by.size[..., None]
        K[..., n:, n:] = N @ T(N)
    K[..., :n, :n], K[..., :n, n:], K[..., n:, :n] = M, -T(G), G
    shape = np.broadcast_shapes(r.shape[:-2], s.shape[:-2])
    sides = np.concatenate([np.broadcast_to(x, (*shape, *x.shape[-2:])) for x in (r, s)], axis=-2)
    found = np.linalg.solve(K, sides)
    x, y = found[..., :n, :], found[..., n:, :]
    if least:
        y = y / by.size[..., None]
        y = y - by.loose(y)
    return x, y
