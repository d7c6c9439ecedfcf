"""∂q̈/∂(q, q̇, τ): forward dynamics, differentiated through inverse dynamics.

At the acceleration a that τ causes, τ = ID(q, q̇, a) holds for every state, so that

    ∂a/∂τ = M⁻¹        ∂a/∂q = −M⁻¹ ∂ID/∂q        ∂a/∂q̇ = −M⁻¹ ∂ID/∂q̇              [carpentier2018]

with the derivatives of ``rnea_derivatives.py`` at that a, and M factored once (``tree_solve.py``).

Accelerations of all states come first, state after state, so that the first that fails is the one reported; then
derivatives, in the order in which results can be streamed (``stream.py``).

Glossary (slots)
    slots         where the entries of ∂ID/∂q, ∂ID/∂q̇ and M begin, kept as in rnea_derivatives.py; in the third's place
                  come the factors of M
    X, Y, Z       row by row: ∂ID/∂q, ∂ID/∂q̇, in the end ∂a/∂q, ∂a/∂q̇; M⁻¹
    panels        two panels of tree_solve.py
"""

from kinegrad._kernels.aba import N as _BODY
from kinegrad._kernels.aba import block as forward_dynamics
from kinegrad._kernels.finite import finite, with_results
from kinegrad._kernels.jit import inline, kernel
from kinegrad._kernels.lanes import Rows, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_derivatives import (
    PATH,
    N,
    clear_zeros,
    entries,
    entry_slots,
    inward,
    outward_while_streaming,
)
from kinegrad._kernels.stream import block_rows, count_blocks, fence, picked, step_of, unload_three
from kinegrad._kernels.tree_solve import PANEL, factor, invert, solve
from kinegrad._kernels.width import WIDTH


def slots(n: int, pairs: int) -> int:
    """Scratch slots for n joints."""
    return max((n + 1) * N + n * PATH, (n + 1) * _BODY) + entry_slots(pairs) + 2 * PANEL * n + 3 * n * n


@inline
def through_mass_matrix(m, first, where, reach, slots, panels, X, Y, Z, scratch):
    """∂a from ∂ID."""
    by_q, by_v, M = slots
    for k in range(len(where)):
        store(scratch, X + k, picked(scratch, by_q, where, 0, k))
        store(scratch, Y + k, picked(scratch, by_v, where, 0, k))
    factor(m, first, M, scratch)
    solve(m, first, M, X, Y, reach, panels, scratch)
    invert(m, first, M, Z, reach, panels, scratch)


@kernel
def aba_derivatives(
    m, q, v, tau, force, point, torque, plan, pairs, past, spare, a, da_dq, da_dv, da_dtau, status, scratch, start, stop
):
    """q̈, (states, n), and its derivatives, (states, n·n).

    plan, past  : as in rnea_derivatives, but nothing is blank.
    pairs       : first and where, as there; reach of tree_solve.py.
    spare       : (states, n), is written to.
    status      : as in aba.
    """
    ok = finite((q, v, tau, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    first, where, reach = pairs
    streaming, blank = past
    out = (da_dq, da_dv, da_dtau)
    n, count, columns = len(m.parent), first[0] + 1, da_dq.shape[1]
    slots, panels = entries(max((n + 1) * N + n * PATH, (n + 1) * _BODY), count)
    X = panels + 2 * PANEL * n
    Y, Z = X + columns, X + 2 * columns

    for r in range(start, stop, WIDTH):
        joint, w = forward_dynamics(m, q, v, tau, force, point, torque, a, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, len(a) - 1)
            stop = r
            break

    clear_zeros(slots, count, scratch)
    step = step_of(columns)
    blocks, streamed = count_blocks(start, stop, step, streaming)
    before = Rows(start, step)
    for b in range(max(blocks, streamed + 1)):
        r = block_rows(b, start, streamed, step)
        outward_while_streaming(
            m, plan, q, v, a, force, point, torque, b, blocks, streamed, r, before, out, (X, Y, Z), None, blank, scratch
        )
        if b < blocks:
            inward(m, plan, q, v, a, r, len(force) > 0, first, spare, slots, count, scratch)
            through_mass_matrix(m, first, where, reach, slots, panels, X, Y, Z, scratch)
            if b >= streamed:
                unload_three(out, r, scratch, (X, Y, Z), None)
        before = r
    if streamed:
        fence(a)
    return with_results(ok, (a,), start, stop)
