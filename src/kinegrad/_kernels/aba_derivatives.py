"""∂q̈/∂(q, q̇, τ): forward dynamics, differentiated through inverse dynamics.

At the acceleration a that τ causes, τ = ID(q, q̇, a) holds for every state, so that

    ∂a/∂τ = M⁻¹        ∂a/∂q = −M⁻¹ ∂ID/∂q        ∂a/∂q̇ = −M⁻¹ ∂ID/∂q̇              [carpentier2018]

with the derivatives of ``rnea_derivatives.py`` at that a, and M factored once (``tree_solve.py``).

Accelerations of all states come first, state after state, so that the first that fails is the one reported; then
derivatives, in the order in which results can be streamed (``lanes/stream.py``).

Glossary (slots)
    X, Y, Z       row by row: ∂ID/∂q, ∂ID/∂q̇ and M, in the end ∂a/∂q, ∂a/∂q̇ and M⁻¹
    M             its entries, closely packed, then its factors
    panels        two panels of tree_solve.py
"""

from kinegrad._kernels.aba import N as _BODY
from kinegrad._kernels.aba import block as forward_dynamics
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.finite import FINE, finite, with_results
from kinegrad._kernels.lanes.lane import gather, load, scatter, store
from kinegrad._kernels.lanes.rows import Rows
from kinegrad._kernels.lanes.stream import block_rows, count_blocks, fence, step_of, unload_all
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_derivatives import (
    PATH,
    N,
    inward,
    outward_while_streaming,
)
from kinegrad._kernels.tree_solve import PANEL, factor, invert, solve


def slots(n: int, pairs: int) -> int:
    """Scratch slots for n joints."""
    return max((n + 1) * N + n * PATH, (n + 1) * _BODY) + pairs + 2 * PANEL * n + 3 * n * n


@inline
def through_mass_matrix(place, tree, reach, M, panels, X, Y, Z, scratch):
    """∂a from ∂ID, in place."""
    for k in range(len(place)):
        store(scratch, M + k, load(scratch, Z + place[k, 0]))
    factor(tree, M, scratch)
    solve(tree, M, X, Y, reach, panels, scratch)
    invert(tree, M, Z, reach, panels, scratch)


@kernel
def aba_derivatives(
    m,
    q,
    v,
    tau,
    force,
    point,
    torque,
    plan,
    pairs,
    streaming,
    spare,
    a,
    da_dq,
    da_dv,
    da_dtau,
    status,
    scratch,
    start,
    stop,
):
    """q̈, (states, n), and its derivatives, (states, n·n).

    plan        : as in rnea_derivatives.
    pairs       : place, of entries row by row, as there; tree and reach of tree_solve.py; blank, the entries, row by
                  row, that topology makes zero in ∂ID.
    streaming   : whether to stream the results past the caches.
    spare       : (states, n), is written to.
    status      : as in aba.
    """
    ok = finite((q, v, tau, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    place, tree, reach, blank = pairs
    out = (da_dq, da_dv, da_dtau)
    n, columns = len(m.parent), da_dq.shape[1]
    M = max((n + 1) * N + n * PATH, (n + 1) * _BODY)
    panels = M + len(place)
    X = panels + 2 * PANEL * n
    Y, Z = X + columns, X + 2 * columns

    for r in range(start, stop, lane_count()):
        joint, w = forward_dynamics(m, q, v, tau, force, point, torque, a, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, len(a) - 1)
            stop = r
            break

    step = step_of(columns)
    blocks, streamed = count_blocks(start, stop, step, streaming)
    before = Rows(start, step)
    for b in range(max(blocks, streamed + 1)):
        r = block_rows(b, start, streamed, step)
        outward_while_streaming(
            m, plan, q, v, a, force, point, torque, b, blocks, streamed, r, before, out, (X, Y, Z), None, None, scratch
        )
        if b < blocks:
            for k in range(len(blank)):
                store(scratch, X + blank[k], 0.0)
                store(scratch, Y + blank[k], 0.0)
            inward(m, plan, q, v, a, r, len(force) > 0, place, tree[0], spare, (X, Y, Z), scratch)
            through_mass_matrix(place, tree, reach, M, panels, X, Y, Z, scratch)
            if b >= streamed:
                unload_all(out, r, scratch, (X, Y, Z), None)
        before = r
    if streamed:
        fence(a)
    return with_results(ok, (a,), start, stop)


@kernel
def solve_derivatives(pairs, by_q, by_v, M, da_dq, da_dv, da_dtau, scratch, start, stop):
    """−M⁻¹ ∂τ/∂q, −M⁻¹ ∂τ/∂v and M⁻¹, (states, n·n) each, of matrices that are known: ∂τ/∂q, ∂τ/∂v and M.

    pairs : place, tree, reach, as above; pivots of M are known to be positive.
    """
    place, tree, reach = pairs
    n, columns = len(tree[0]), M.shape[1]
    panels = len(place)
    X = panels + 2 * PANEL * n
    Y, Z = X + columns, X + 2 * columns
    for r in range(start, stop, lane_count()):
        for k in range(columns):
            store(scratch, X + k, gather(by_q, r, k))
            store(scratch, Y + k, gather(by_v, r, k))
            store(scratch, Z + k, gather(M, r, k))
        through_mass_matrix(place, tree, reach, 0, panels, X, Y, Z, scratch)
        for k in range(columns):
            scatter(da_dq, r, k, load(scratch, X + k))
            scatter(da_dv, r, k, load(scratch, Y + k))
            scatter(da_dtau, r, k, load(scratch, Z + k))
    return with_results(FINE, (da_dq, da_dv, da_dtau), start, stop)
