"""Second derivatives of what equations of motion define: accelerations, and forces of constraints.

Let z solve R(q, q̇, z) = (τ, 0), with R linear in z: z is q̈ and R the torques of inverse dynamics; or z is (q̈, f) and R
has the rows of constraints besides.  The sum φ = wᵀz has the multipliers λ of  (∂R/∂z)ᵀ λ = w.  Differentiate
λᵀR = λᵀ(τ, 0) twice along (q, q̇, τ), z following: what multiplies the second derivatives of z is wᵀ, so that with
ℒ = λᵀR at fixed λ, which has no second derivatives with respect to q̇ and z, nor to z twice,

    ∂²φ/∂q∂q = −(ℒ_qq + ℒ_qz ∂z/∂q + (ℒ_qz ∂z/∂q)ᵀ)        ∂²φ/∂q∂q̇ = −(ℒ_qq̇ + ℒ_qz ∂z/∂q̇)
    ∂²φ/∂q∂τ = −ℒ_qz ∂z/∂τ                                  ∂²φ/∂q̇∂q̇ = −ℒ_q̇q̇                                  (1)

and everything else is zero.

Glossary
    rows    begin, (n + 1,), and columns: those where row i of ℒ_qz may be other than zero are columns[begin[i]], …
    k       length of z
    slots   ∂z/∂q, ∂z/∂q̇, ∂z/∂τ, k·n each; ℒ_qz ∂z/∂q, n·n; a row of ℒ_qz, k
"""

from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.finite import FINE
from kinegrad._kernels.lanes.lane import gather, load, scatter, spread, store


def slots(n: int, k: int) -> int:
    """Scratch slots for n coordinates and k unknowns."""
    return 3 * k * n + n * n + k


@inline
def row_products(rows, i, n, k, row, scratch, d2_dqdv, d2_dqdtau, L_qv, r):
    """Row i of ℒ_qz, in slots from `row` on, times ∂z/∂q, kept; times ∂z/∂q̇ and ∂z/∂τ, in the results."""
    begin, columns = rows
    for j in range(n):
        by_q, by_v, by_tau = spread(0.0), spread(0.0), spread(0.0)
        for at in range(begin[i], begin[i + 1]):
            c = columns[at]
            entry, slot = load(scratch, row + c), c * n + j
            by_q = by_q + entry * load(scratch, slot)
            by_v = by_v + entry * load(scratch, slot + k * n)
            by_tau = by_tau + entry * load(scratch, slot + 2 * k * n)
        store(scratch, 3 * k * n + i * n + j, by_q)
        scatter(d2_dqdv, r, i * n + j, -1.0 * (gather(L_qv, r, i * n + j) + by_v))
        scatter(d2_dqdtau, r, i * n + j, -1.0 * by_tau)


@kernel
def implicit_hessian(
    rows, L_qq, L_qv, L_qz, L_vv, z_q, z_v, z_tau, d2_dqdq, d2_dqdv, d2_dqdtau, d2_dvdv, scratch, start, stop
):
    """(1), (states, n·n) each; ℒ_qz, (states, n·k), and derivatives of z, (states or 1, k·n) each."""
    n = len(rows[0]) - 1
    k = L_qz.shape[1] // n
    product, row = 3 * k * n, 3 * k * n + n * n
    for r in range(start, stop, lane_count()):
        for c in range(k * n):
            store(scratch, c, gather(z_q, r, c))
            store(scratch, c + k * n, gather(z_v, r, c))
            store(scratch, c + 2 * k * n, gather(z_tau, r, c))
        for i in range(n):
            for c in range(k):
                store(scratch, row + c, gather(L_qz, r, i * k + c))
            row_products(rows, i, n, k, row, scratch, d2_dqdv, d2_dqdtau, L_qv, r)
        for i in range(n):
            for j in range(n):
                both = load(scratch, product + i * n + j) + load(scratch, product + j * n + i)
                scatter(d2_dqdq, r, i * n + j, -1.0 * (gather(L_qq, r, i * n + j) + both))
                scatter(d2_dvdv, r, i * n + j, -1.0 * gather(L_vv, r, i * n + j))
    return FINE
