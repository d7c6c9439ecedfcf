"""The least curvature of a large program along directions that keep its active limits, by sparse factors.

Let H be the Hessian, A the normals of active limits, Z a basis of the null space of A, λ the least eigenvalue of ZᵀHZ,
and for a shift σ

    K(σ) = | H − σ   Aᵀ |          B(σ): x ↦ the first part of K(σ)⁻¹ (x, 0)                                         (1)
           | A      −δ  |

with a small δ, so that rows may be redundant.  B is symmetric; on the null space its eigenvalues are 1/(λᵢ − σ), on the
rest they vanish with δ.  So λ follows from the ends of B's spectrum, by Lanczos' method, a solve with K each step:

- Every λᵢ is above σ if K(σ) has as many positive pivots as variables.  Pivots on the diagonal alone, L D Lᵀ, count by
  Sylvester's law; where such factors leave a residual, their word is not taken.  Then λ = σ + 1/max B.
- Otherwise shifts go up from a bound below all eigenvalues of H (Gershgorin's), tenfold each, to σ.  Where λ is just
  below a shift, B has a negative eigenvalue that is as large as any: λ = σ + 1/min B.  As B is seen through vectors of
  its own, that is a direction of negative curvature, and not a guess.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["sparse_curvature"]

Array = NDArray[np.float64]
SLACK = 1e-10  # δ, by the size of H
BACKWARD = 1e-9  # residual of factors without pivoting that are believed, by sizes
NOTHING = 1e-7  # max B by 1/|σ|: below, the null space is empty


def sparse_curvature(H: Any, A: Any, least: float) -> float:
    """λ of sparse H, (n, n), and A, (m, n), as far as δ lets it be known, if it is above `least` < 0; else one below.

    Infinite where nothing is free; NaN where H overflows.
    """
    n = H.shape[0]
    if not n:
        return np.inf
    lowest = float((H.diagonal() - (abs(H).sum(axis=1) - abs(H.diagonal()))).min())
    if not np.isfinite(lowest):
        return np.nan
    proven = _factor(H, A, least, symmetric=True)
    if proven is not None and int((proven.U.diagonal() > 0).sum()) == n:
        return _from_above(_ends(proven, n, A.shape[0], "LA"), least)
    found = np.nan
    for shift in _upward(min(2.0 * lowest, 2.0 * least), least):
        factor = _factor(H, A, shift, symmetric=False)
        if factor is None:
            continue
        low, high = _ends(factor, n, A.shape[0], "SA"), _ends(factor, n, A.shape[0], "LA")
        if low < -0.01 * max(high, 1.0 / abs(shift)):
            return shift + 1.0 / low
        found = _from_above(high, shift)
        if found < least:
            return found
    return found


def _upward(lowest: float, highest: float) -> Iterator[float]:
    """Shifts from below, tenfold nearer to zero each."""
    shift = lowest
    while shift < 3.0 * highest:
        yield shift
        shift /= 10.0
    yield highest


def _from_above(largest: float, shift: float) -> float:
    return np.inf if largest < NOTHING / abs(shift) else shift + 1.0 / largest


def _factor(H: Any, A: Any, shift: float, *, symmetric: bool) -> Any:
    """Of K(σ), with pivots on the diagonal alone if it is to count them; None if that fails."""
    from scipy.sparse import bmat, eye_array
    from scipy.sparse.linalg import splu

    n, m = H.shape[0], A.shape[0]
    slack = SLACK * max(1.0, float(abs(H).max()))
    K = bmat(
        [[H - shift * eye_array(n), A.T], [A, -slack * eye_array(m)]] if m else [[H - shift * eye_array(n)]], "csc"
    )
    options: dict[str, Any] = {}
    if symmetric:
        options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        factor = splu(K, **options)
    except RuntimeError:  # singular
        return None
    right = np.random.default_rng(19970117).standard_normal(n + m)
    x = factor.solve(right)
    if not np.isfinite(x).all():
        return None
    if symmetric:
        size = float(abs(K).max()) * np.abs(x).max() + np.abs(right).max()
        turned = not np.array_equal(factor.perm_r, factor.perm_c)
        if turned or np.abs(K @ x - right).max() > BACKWARD * size:
            return None
    return factor


def _ends(factor: Any, n: int, m: int, which: str) -> float:
    """The least (SA) or the largest (LA) eigenvalue of B."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    whole = np.zeros(n + m)

    def product(x: Array) -> Array:
        whole[:n] = x.ravel()
        return np.asarray(factor.solve(whole)[:n])

    if n < 3:
        B = np.stack([product(e) for e in np.eye(n)])
        found = np.linalg.eigvalsh(0.5 * (B + B.T))
        return float(found[0] if which == "SA" else found[-1])
    start = np.random.default_rng(20060301).standard_normal(n)
    B = LinearOperator((n, n), matvec=product, dtype=np.float64)
    for tolerance in (1e-3, 0.1):
        try:
            found = eigsh(
                B, k=1, which=which, v0=start, tol=tolerance, maxiter=30, ncv=min(n, 20), return_eigenvectors=False
            )
        except ArpackNoConvergence:
            continue
        return float(found[0])
    x = product(start)
    return float(x @ product(x) / (x @ x))  # inside the spectrum
