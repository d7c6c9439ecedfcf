"""The least curvature of large programs against dense eigenvalues: minima, saddles, redundant rows, nothing free."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import eigvalsh, null_space
from scipy.sparse import block_diag, csr_array, diags_array, vstack

from kinegrad.motion.nlp.conditions import curvature
from kinegrad.motion.nlp.sparse_curvature import sparse_curvature

LEAST = -1e-3


def sparse(rng, shape, density):
    return csr_array(np.where(rng.random(shape) < density, rng.random(shape), 0.0))


def case(seed, n, m, stiff):
    """H and A, with eigenvalues over many orders of magnitude, as barriers make them."""
    rng = np.random.default_rng(seed)
    G = sparse(rng, (n, n), 0.03)
    H = (G + G.T + diags_array(rng.uniform(0.5, 3.0, n))).tocsc()
    J = sparse(rng, (n // 4, n), 0.02)
    H = (H + stiff * (J.T @ J)).tocsc()
    return H, sparse(rng, (m, n), 0.03)


def dense(H, A):
    Z = null_space(A.toarray(), rcond=1e-9)
    return eigvalsh(Z.T @ (H @ Z)).min() if Z.shape[1] else np.inf


@pytest.mark.parametrize("stiff", [0.0, 1e3, 1e7])
@pytest.mark.parametrize("shift", [0.0, 5.0, 200.0])
def test_against_dense_eigenvalues(stiff, shift):
    """What is above the limit to a fraction of itself; what is below it is said to be, and is there."""
    for seed in range(2):
        H, A = case(seed, 300, 120, stiff)
        H = (H + diags_array(np.full(300, shift))).tocsc()
        expected = dense(H, A)
        for rows in (A, vstack([A, A[:7]]).tocsr()):  # some of them twice
            found = sparse_curvature(H, rows, LEAST)
            if expected > LEAST:
                assert abs(found - expected) <= 5e-3 * (abs(expected) + abs(LEAST))
            else:
                assert expected - 1e-6 * abs(expected) <= found < LEAST


@pytest.mark.parametrize("depth", [2e-3, 1.0, 1e4, 1e8])
def test_one_direction_downwards(depth):
    """Found however steep it is beside all that is stiff; how steep, from above."""
    H, A = case(1, 300, 120, 1e5)
    H = (H + diags_array(np.full(300, 200.0))).tocsc()
    bent = block_diag([H, csr_array(np.array([[-depth]]))]).tocsc()
    wider = csr_array(np.hstack([A.toarray(), np.zeros((120, 1))]))
    assert -1.02 * depth <= sparse_curvature(bent, wider, LEAST) < LEAST
    assert sparse_curvature(H, A, LEAST) > 0


def test_nothing_is_free():
    n = 300
    H, _ = case(2, n, 10, 0.0)
    assert sparse_curvature(H, diags_array(np.ones(n)).tocsr(), LEAST) == np.inf
    assert sparse_curvature(csr_array((0, 0)), csr_array((5, 0)), LEAST) == np.inf


@pytest.mark.parametrize("entry", [np.inf, -np.inf, np.nan, 1.7e308])
def test_what_overflows_has_no_curvature(entry):
    """And is no endless search for a bound below it."""
    H = case(2, 300, 10, 0.0)[0].tolil()
    H[0, 1] = H[1, 0] = H[0, 2] = H[2, 0] = entry
    with np.errstate(all="ignore"):
        assert np.isnan(sparse_curvature(H.tocsc(), csr_array((0, 300)), LEAST))


@pytest.mark.parametrize("n", [5, 300])
def test_slopes_that_overflow_when_squared(n):
    """Of a program of either size: a row that is not active counts by its multiplier and the square of its slope."""
    rows, columns = np.zeros(2, dtype=int), np.arange(2)
    each = {"lower": np.full(n, -np.inf), "upper": np.full(n, np.inf), "g_lower": np.zeros(1), "g_upper": np.ones(1)}
    scaled = SimpleNamespace(n=n, m=1, hessian_pattern=(np.arange(n), np.arange(n)), **each)
    scaled.jacobian_matrix = lambda values: csr_array((values, (rows, columns)), shape=(1, n))
    multipliers = np.ones(1), np.zeros(n)
    with np.errstate(all="ignore"):
        found = curvature(scaled, np.zeros(n), np.full(1, 0.5), np.full(2, 1e200), np.ones(n), 1e-8, multipliers)
        usual = curvature(scaled, np.zeros(n), np.full(1, 0.5), np.full(2, 1.0), np.ones(n), 1e-8, multipliers)
    assert np.isnan(found)
    assert usual == pytest.approx(1.0)
