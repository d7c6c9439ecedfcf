"""∂q̈/∂(q, q̇, τ): forward dynamics, differentiated through inverse dynamics.

At the acceleration a that τ causes, τ = ID(q, q̇, a) holds for every state, so that

    ∂a/∂τ = M⁻¹        ∂a/∂q = −M⁻¹ ∂ID/∂q        ∂a/∂q̇ = −M⁻¹ ∂ID/∂q̇              [carpentier2018]

with the derivatives of ``rnea_derivatives.py`` at that a, and M factored once (``tree_solve.py``).

Glossary (slots; matrices row by row, a row padded to a multiple of four)
    by_q, by_v    ∂ID/∂q, ∂ID/∂q̇, in the end ∂a/∂q, ∂a/∂q̇
    by_t          M, in the end M⁻¹
    M             its entries, closely packed, then its factors
"""

from kinegrad._kernels.aba import N as _BODY
from kinegrad._kernels.aba import block as forward_dynamics
from kinegrad._kernels.finite import finite, with_results
from kinegrad._kernels.jit import inline, kernel
from kinegrad._kernels.lanes import load, store, unload_part
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_derivatives import PATH, N, inward, outward
from kinegrad._kernels.tree_solve import factor, invert, solve
from kinegrad._kernels.width import WIDTH


def slots(n: int, pairs: int) -> int:
    """Scratch slots for n joints."""
    return max((n + 1) * N + n * PATH, (n + 1) * _BODY) + pairs + 3 * n * padded(n)


def padded(n: int) -> int:
    """Columns of a matrix row: n and up to three more."""
    return (n + 3) // 4 * 4


@inline
def unload_rows(x, r, n, width, scratch, slot):
    """Write n rows of n slots, `width` apart, as the n·n columns of x."""
    for i in range(n):
        unload_part(x, r, i * n, n, scratch, slot + i * width)


@kernel
def aba_derivatives(
    m, q, v, tau, force, point, torque, plan, pairs, spare, a, da_dq, da_dv, da_dtau, status, scratch, start, stop
):
    """q̈, (states, n), and its derivatives, (states, n·n); `pairs` as in rnea_derivatives but with rows padded to
    a multiple of four columns, status as in aba; `spare`, (states, n), is written to."""
    ok = finite((q, v, tau, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    place, first = pairs
    n = len(m.parent)
    width = (n + 3) // 4 * 4
    M = max((n + 1) * N + n * PATH, (n + 1) * _BODY)
    by_q = M + len(place)
    by_v, by_t = by_q + n * width, by_q + 2 * n * width
    for r in range(start, stop, WIDTH):
        joint, w = forward_dynamics(m, q, v, tau, force, point, torque, a, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, len(a) - 1)
            return ok

        # derivatives of inverse dynamics there
        for k in range(by_q, by_t):
            store(scratch, k, 0.0)
        outward(m, plan, q, v, a, force, point, torque, r, scratch)
        inward(m, plan, q, v, a, r, len(force) > 0, place, first, spare, by_q, by_v, by_t, scratch)
        for k in range(len(place)):
            store(scratch, M + k, load(scratch, by_t + place[k, 0]))

        # through the mass matrix
        factor(m, first, M, scratch)
        solve(m, first, M, by_q, width, -1.0, scratch)
        solve(m, first, M, by_v, width, -1.0, scratch)
        invert(m, first, M, by_t, width, scratch)
        unload_rows(da_dq, r, n, width, scratch, by_q)
        unload_rows(da_dv, r, n, width, scratch, by_v)
        unload_rows(da_dtau, r, n, width, scratch, by_t)
    return with_results(ok, (a,), start, stop)
