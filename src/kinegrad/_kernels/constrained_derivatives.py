"""∂q̈/∂(q, q̇, τ) and ∂f/∂(q, q̇, τ) of constrained motion; ∂q̇⁺/∂(q, q̇) and ∂Λ/∂(q, q̇) of impacts.

At their solution the equations of ``constrained.py`` hold for every state, so that along any change of it

    M ∂q̈ − Gᵀ ∂f = −∂ID + H ∂q (+ 1 for τ)        H = Σ f ∂²φ/∂q²,  ID at q̈ without constraints
    G ∂q̈ = −∂(φ̈ + 2α φ̇ + β² φ)                    at q̈                                  [kudruss2019] Prop. 3

with ∂ID of ``rnea_derivatives.py`` and ∂φ̈/∂q = G̈, ∂φ̈/∂q̇ = 2Ġ, ∂φ̇/∂q = Ġ of ``constraints.py``: three times n right-hand
sides of one system, whose factors are computed once.  Of an impact, with ID at q̇ = 0 and the acceleration Δ = q̇⁺ − q̇,
without gravity and springs,

    M ∂Δ − Gᵀ ∂Λ = −∂ID/∂q ∂q + H ∂q             G ∂Δ = −∂(G q̇⁺)/∂q ∂q − e ∂(G q̇)/∂q ∂q − (1 + e) G ∂q̇

Solutions of all states come first, as in ``aba_derivatives.py``; then derivatives, panel by panel of six right-hand
sides: L⁻ᵀ of them, the constraints met, L⁻¹D⁻¹.  ∂q̈/∂τ is symmetric, and computed down to its diagonal.

Glossary (slots)
    X Y Z       n rows, n in whole panels apart: ∂ID/∂q − H, ∂ID/∂q̇ and M, in the end ∂q̈/∂q, ∂q̈/∂q̇ and ∂q̈/∂τ
    K           the same of constraints, rows of each one after the other: right-hand sides, in the end ∂f
    saddle      slots of saddle.py
    tables      those of constrained.py, and
                plan, of rnea_derivatives.py, with or without loads; place, where in X the two entries of each pair of
                joints are; reach of the columns of X, and of Y; blank, the entries of X that ∂ID leaves alone; where,
                of the columns of results, n·n and rows·n, and kind, of the first, as in lanes/stream.py
"""

from kinegrad._kernels import constraint_rows, constraints, kinematics_derivatives, saddle
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.constrained import block as solve_block
from kinegrad._kernels.constrained import factored, impact_block
from kinegrad._kernels.constraint_rows import own_layout, unpack_constraints
from kinegrad._kernels.constraints import Entries
from kinegrad._kernels.lanes.finite import finite, with_results
from kinegrad._kernels.lanes.lane import gather, load, store
from kinegrad._kernels.lanes.rows import Rows
from kinegrad._kernels.lanes.slots import Slots
from kinegrad._kernels.lanes.stream import block_rows, count_blocks, fence, step_of, unload_all, unload_from
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_derivatives import PATH, N, inward, outward, outward_while_streaming
from kinegrad._kernels.saddle import in_panels, meet_constraints
from kinegrad._kernels.tree_solve import COLUMNS, PANEL, divide, gather_up


def slots(n: int, m: int, pairs: int, solution: int) -> int:
    """Scratch slots for n joints and m constraints; `solution`, those that the solution itself needs."""
    wide = -(-n // PANEL) * PANEL
    outer = max((n + 1) * N + n * PATH, constraint_rows.slots(n))
    return max(outer + saddle.slots(n, m, pairs) + 3 * (n + m) * wide, solution)


@inline
def clear(scratch, first, count):
    for k in range(count):
        store(scratch, first + k, 0.0)


@inline
def outer_slots(n):
    """Slots of the passes over links, which need them one after the other."""
    return max((n + 1) * N + n * PATH, own_layout(n).work + constraint_rows.COLUMNS + constraint_rows.COLUMN * n)


@inline
def matrix(scratch, first, wide):
    """Rows of slots, `wide` apart, as constraints.py fills them."""
    return Entries(Slots(scratch, first, 0), wide, 1)


@inline
def subtract_curvature(m, c, rows, f, s, X, wide, r, scratch, at):
    """X −= H"""
    for k in range(rows):
        store(scratch, s.f + k, -gather(f, r, k))
    constraints.add_curvature(m, c, Slots(scratch, s.f, 0), r, matrix(scratch, X, wide), scratch, at)


@inline
def constraint_sides(law, K, rows, wide, scratch):
    """−(G̈ + 2α Ġ + β² G), −(2Ġ + 2α G) and 0 from G̈, Ġ and G."""
    size = rows * wide
    for k in range(K, K + size):
        G, dG, ddG = load(scratch, k + 2 * size), load(scratch, k + size), load(scratch, k)
        store(scratch, k, -(ddG + 2.0 * law[0] * dG + law[1] * law[1] * G))
        store(scratch, k + size, -2.0 * (dG + law[0] * G))
        store(scratch, k + 2 * size, 0.0)


@inline
def transposed(s, K, rows, n, wide, scratch):
    """Gᵀ to the slots of Y from the rows of G at K."""
    clear(scratch, s.Y, n * s.wide)
    for c in range(rows):
        for k in range(n):
            store(scratch, s.Y + k * s.wide + c, load(scratch, K + c * wide + k))


@inline
def all_sides(tree, paths, reach, s, rows, X, K, n, wide, scratch):
    """−M⁻¹ … of the columns of X, with constraints met: right-hand sides of both become solutions."""
    for p in range(wide // PANEL):
        at = X + p * PANEL
        gather_up(tree, s.M, at, wide, n - 1, COLUMNS, reach, p, scratch)
        meet_constraints(tree, paths, s, rows, at, K + p * PANEL, wide, n - 1, COLUMNS, -1.0, scratch)
        divide(tree, s.M, at, wide, n - 1, COLUMNS, -1.0, scratch)


@inline
def identity_sides(tree, paths, reach, s, rows, Z, K, n, wide, scratch):
    """∂q̈/∂τ and ∂f/∂τ: columns of the identity, each down to its diagonal."""
    clear(scratch, Z, n * wide)
    for k in range(n):
        store(scratch, Z + k * wide + k, 1.0)
    for p in range(wide // PANEL):
        at, begin = Z + p * PANEL, p * PANEL
        last = min(begin + PANEL, n) - 1
        gather_up(tree, s.M, at, wide, last, COLUMNS, reach, p, scratch)
        meet_constraints(tree, paths, s, rows, at, K + p * PANEL, wide, last, COLUMNS, 1.0, scratch)
        divide(tree, s.M, at, wide, last, COLUMNS, 1.0, scratch)
    for i in range(n):
        for j in range(i):
            store(scratch, Z + i * wide + j, load(scratch, Z + j * wide + i))


@inline
def packed_mass_matrix(place, s, Z, scratch):
    for k in range(len(place)):
        store(scratch, s.M + k, load(scratch, Z + place[k, 0]))


@inline
def block(m, c, rows, tables, tables_of_derivatives, q, v, a, f, loaded, law, spare, s, X, r, scratch):
    """All derivatives of the states r …, in X, Y, Z and K, after the pass outward of rnea_derivatives.py."""
    _, tree, paths, reach = tables
    plan, place, reach_q, reach_v, blank, _, _, _ = tables_of_derivatives
    n = len(m.parent)
    wide, at = in_panels(n), own_layout(n)
    size, Y, Z, K = rows * wide, X + n * wide, X + 2 * n * wide, X + 3 * n * wide
    for k in range(len(blank)):
        store(scratch, X + blank[k], 0.0)
        store(scratch, Y + blank[k], 0.0)
    inward(m, plan, q, v, a, r, loaded, place, tree[0], spare, (X, Y, Z), scratch)
    packed_mass_matrix(place, s, Z, scratch)

    # the constraints' part, in the slots of the passes that are over
    clear(scratch, K, 3 * size)
    kinematics_derivatives.outward(m, q, v, a, r, scratch)
    constraints.jacobian_rates(
        m, c, r, matrix(scratch, K + 2 * size, wide), matrix(scratch, K + size, wide), matrix(scratch, K, wide),
        scratch, at,
    )  # fmt: skip
    subtract_curvature(m, c, rows, f, s, X, wide, r, scratch, at)
    transposed(s, K + 2 * size, rows, n, wide, scratch)
    constraint_sides(law, K, rows, wide, scratch)

    factored(tree, paths, reach, s, rows, scratch)
    all_sides(tree, paths, reach_q, s, rows, X, K, n, wide, scratch)
    all_sides(tree, paths, reach_v, s, rows, Y, K + size, n, wide, scratch)
    identity_sides(tree, paths, reach_v, s, rows, Z, K + 2 * size, n, wide, scratch)


@kernel
def constrained_derivatives(
    m,
    q,
    v,
    tau,
    force,
    point,
    torque,
    c,
    tables,
    tables_of_derivatives,
    none,
    law,
    streaming,
    spare,
    a,
    f,
    df_dq,
    df_dv,
    df_dtau,
    da_dq,
    da_dv,
    da_dtau,
    status,
    scratch,
    start,
    stop,
):
    """q̈, (states, n), f, (states, rows), and their derivatives, (states, n·n) and (states, rows·n).

    none, law, status : as of constrained.
    streaming         : whether to stream the larger results past the caches.
    spare             : (states, n), is written to.
    """
    ok = finite((q, v, tau, force, point, torque), start, stop)
    if not ok:
        return ok
    m, c = unpack(m), unpack_constraints(c)
    plan, place, _, _, _, where, where_f, kind = tables_of_derivatives
    where, kind = (where, where, where), (kind, kind, kind)
    out = (da_dq, da_dv, da_dtau)
    n, rows, columns = len(m.parent), f.shape[1], da_dq.shape[1]
    wide = in_panels(n)
    s = saddle.saddle(n, rows, len(place), outer_slots(n))
    X = s.end
    Y, Z, K, size = X + n * wide, X + 2 * n * wide, X + 3 * n * wide, rows * wide

    for r in range(start, stop, lane_count()):
        what, w = solve_block(m, c, rows, tables, q, v, tau, force, point, torque, none, law, a, f, r, scratch)
        if what >= 0:
            status[0], status[1] = what, min(r + w, len(a) - 1)
            stop = r
            break

    step = step_of(columns)
    blocks, streamed = count_blocks(start, stop, step, streaming)
    before = Rows(start, step)
    for b in range(max(blocks, streamed + 1)):
        r = block_rows(b, start, streamed, step)
        outward_while_streaming(
            m, plan, q, v, a, force, point, torque, b, blocks, streamed, r, before, out, (X, Y, Z), where, kind, scratch
        )
        if b < blocks:
            block(m, c, rows, tables, tables_of_derivatives, q, v, a, f, len(force) > 0, law, spare, s, X, r, scratch)
            unload_from(df_dq, r, scratch, K, where_f)
            unload_from(df_dv, r, scratch, K + size, where_f)
            unload_from(df_dtau, r, scratch, K + 2 * size, where_f)
            if b >= streamed:
                unload_all(out, r, scratch, (X, Y, Z), where)
        before = r
    if streamed:
        fence(a)
    return with_results(ok, (a, f), start, stop)


@inline
def subtract_rates(m, c, q, v, rest, e, K, Z, rows, wide, r, scratch, at):
    """K −= e Ġ, with the velocity v; e of each row, or None for one.  G follows K, Ġ follows G, and G̈ goes to Z."""
    size = rows * wide
    kinematics_derivatives.outward(m, q, v, rest, r, scratch)
    constraints.jacobian_rates(
        m, c, r, matrix(scratch, K + size, wide), matrix(scratch, K + 2 * size, wide), matrix(scratch, Z, wide),
        scratch, at,
    )  # fmt: skip
    for k in range(rows):
        part = 1.0 if e is None else e[k]
        for j in range(wide):
            here = K + k * wide + j
            store(scratch, here, load(scratch, here) - part * load(scratch, here + 2 * size))


@inline
def block_of_impact(
    m, c, rows, tables, tables_of_derivatives, q, v, e, none, rest, change, after, impulses, s, X, r, scratch
):
    """All derivatives of the states r …, in X, Y and K."""
    _, tree, paths, reach = tables
    plan, place, reach_q, reach_v, blank, _, _, _ = tables_of_derivatives
    n = len(m.parent)
    wide, at = in_panels(n), own_layout(n)
    size, Y, Z, K = rows * wide, X + n * wide, X + 2 * n * wide, X + 3 * n * wide
    outward(m, plan, q, rest, change, none, none, none, r, scratch)
    for k in range(len(blank)):
        store(scratch, X + blank[k], 0.0)
    inward(m, plan, q, rest, change, r, False, place, tree[0], change, (X, Y, Z), scratch)  # Δ is not needed any more
    packed_mass_matrix(place, s, Z, scratch)

    clear(scratch, K, 3 * size)
    subtract_rates(m, c, q, after, rest, None, K, Z, rows, wide, r, scratch, at)
    subtract_curvature(m, c, rows, impulses, s, X, wide, r, scratch, at)
    subtract_rates(m, c, q, v, rest, e, K, Z, rows, wide, r, scratch, at)
    transposed(s, K + size, rows, n, wide, scratch)
    for k in range(rows):
        for j in range(wide):
            here = K + size + k * wide + j
            store(scratch, here, (-1.0 - e[k]) * load(scratch, here))

    factored(tree, paths, reach, s, rows, scratch)
    all_sides(tree, paths, reach_q, s, rows, X, K, n, wide, scratch)
    clear(scratch, Y, n * wide)
    all_sides(tree, paths, reach_v, s, rows, Y, K + size, n, wide, scratch)
    for k in range(n):
        store(scratch, Y + k * wide + k, load(scratch, Y + k * wide + k) + 1.0)


@kernel
def impact_derivatives(
    m,
    q,
    v,
    e,
    c,
    tables,
    tables_of_derivatives,
    none,
    rest,
    change,
    after,
    impulses,
    dl_dq,
    dl_dv,
    dv_dq,
    dv_dv,
    status,
    scratch,
    start,
    stop,
):
    """q̇⁺, (states, n), Λ, (states, rows), and their derivatives, (states, n·n) and (states, rows·n).

    m      : without gravity and springs.
    e      : (rows,), restitution.
    none   : (0, 3 n): no loads.
    rest   : (1, n), zeros.
    change : (states, n), is written to.
    """
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m, c = unpack(m), unpack_constraints(c)
    place, where, where_f = tables_of_derivatives[1], tables_of_derivatives[5], tables_of_derivatives[6]
    n, rows = len(m.parent), impulses.shape[1]
    wide = in_panels(n)
    s = saddle.saddle(n, rows, len(place), outer_slots(n))
    X = s.end
    Y, K, size = X + n * wide, X + 3 * n * wide, rows * wide

    for r in range(start, stop, lane_count()):
        what, w = impact_block(m, c, rows, tables, q, v, e, none, after, impulses, change, r, scratch)
        if what >= 0:
            status[0], status[1] = what, min(r + w, len(after) - 1)
            return ok

    for r in range(start, stop, lane_count()):
        block_of_impact(
            m, c, rows, tables, tables_of_derivatives, q, v, e, none, rest, change, after, impulses, s, X, r, scratch,
        )  # fmt: skip
        unload_from(dv_dq, r, scratch, X, where)
        unload_from(dv_dv, r, scratch, Y, where)
        unload_from(dl_dq, r, scratch, K, where_f)
        unload_from(dl_dv, r, scratch, K + size, where_f)
    return with_results(ok, (after, impulses), start, stop)
