"""Constrained motion: accelerations and forces of constraints, q̈(q, q̇, τ) and f; impacts, q̇⁺(q, q̇) and impulses.

With the rows φ of ``constraints.py``, their Jacobian G, and what it takes to move without acceleration, h,

    [M  −Gᵀ; G  0] [q̈; f] = [τ − h; −φ̈(q, q̇, 0) − 2α φ̇ − β² φ]                           [kudruss2019] (1)

where α and β draw errors of φ and φ̇ back to zero [baumgarte1972], and are zero unless asked for.  An impact changes q̇
at once, so that only impulses count:

    [M  −Gᵀ; G  0] [q̇⁺ − q̇; Λ] = [0; −(1 + e) G q̇]                                        [kudruss2019] 3

with the restitution e of each row.  ``saddle.py`` solves both.  M is that of ``crba.py``; h is that of ``rnea.py``,
with gravity added to the accelerations of links where a force is made of them, for φ̈ does not know of it.

Glossary
    R d V A p   of each link, slots as in kinematics.py, then path slots and work as constraint_rows.py has them
    I F         inertia and force of subtrees, 16 slots for each link after all of those, at `sums`; home as in
                rnea_derivatives.py
    saddle      slots of saddle.py after these
    tables      plan, of rnea_derivatives.py; tree, of tree_solve.py; paths and reach, of saddle.py
"""

from kinegrad._kernels import constraint_rows, constraints, saddle
from kinegrad._kernels.bodies import (
    INERTIA,
    add_sym,
    body,
    inertia_force,
    load_inertia,
    load_on,
    passive_force,
    store_inertia,
    store_sym,
)
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.constraint_rows import own_layout, unpack_constraints
from kinegrad._kernels.constraints import Entries
from kinegrad._kernels.joints import FRAME, SHIFT, frames, handed_on, move, rest, subspace
from kinegrad._kernels.kinematics import ACCELERATION, VELOCITY, N
from kinegrad._kernels.lanes.finite import finite, with_results
from kinegrad._kernels.lanes.lane import gather, load, scatter, spread, store
from kinegrad._kernels.lanes.slots import Slots
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_derivatives import HOME
from kinegrad._kernels.saddle import factor_mass_matrix, reduce_constraints, solve_one
from kinegrad._kernels.spatial import Motion, add3, increase, load3, load9, load_force, load_motion, put, store3, sub

FORCE, SUMS = INERTIA, INERTIA + 6  # I | F | slots for each link


def slots(n: int, m: int, pairs: int) -> int:
    """Scratch slots for n joints and m constraints."""
    return constraint_rows.slots(n) + n * SUMS + saddle.slots(n, m, pairs)


@inline
def sums_slot(n):
    """Where the sums begin: after the slots of constraint_rows.py."""
    return own_layout(n).work + constraint_rows.COLUMNS + constraint_rows.COLUMN * n


@inline
def outward(m, q, v, r, scratch):
    """Frames and motion of all links without q̈."""
    frames(m, q, r, scratch, N)
    rest(scratch, VELOCITY)
    rest(scratch, ACCELERATION)
    for i in range(len(m.parent)):
        up, at = (m.parent[i] + 1) * N, (i + 1) * N
        move(m, i, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, i), spread(0.0))


@inline
def own_sums(m, plan, i, sums, forces, r, force, point, torque, scratch):
    """Link i's own inertia and, if `forces`, a constant, the force that its motion takes in the field of gravity."""
    at, own = (i + 1) * N, sums + i * SUMS
    if m.massive[i]:
        store_inertia(scratch, own, body(m, i, scratch, at))
        if forces:
            V, A = load_motion(scratch, at + VELOCITY), load_motion(scratch, at + ACCELERATION)
            A = Motion(A.w, sub(A.v, (m.gravity[0, 0], m.gravity[0, 1], m.gravity[0, 2])))
            put(scratch, own + FORCE, inertia_force(m, i, load9(scratch, at + FRAME), V, A))
    elif plan[i, HOME] == i:
        for k in range(SUMS):
            store(scratch, own + k, 0.0)
    if forces and len(force) > 0:
        acting = load_on(m, i, r, force, point, torque, scratch, N)
        put(scratch, own + FORCE, load_force(scratch, own + FORCE) - acting)


@inline
def hand_on(m, plan, i, sums, forces, scratch):
    """The sums of subtree i to its parent's; where both are one record, that has only to be shifted."""
    if m.parent[i] < 0:
        return
    own, up = sums + plan[i, HOME] * SUMS, sums + plan[m.parent[i], HOME] * SUMS
    if own != up or m.apart[i]:
        inertia, F = load_inertia(scratch, own), load_force(scratch, own + FORCE)
        if m.apart[i]:
            d = load3(scratch, (i + 1) * N + SHIFT)
            inertia, F = inertia.before(d), F.before(d)
        if own == up:  # in place: mass and force stay
            store3(scratch, up + 1, inertia.h)
            store_sym(scratch, up + 4, inertia.I)
            if forces:
                store3(scratch, up + FORCE, F.n)
        else:
            store(scratch, up, load(scratch, up) + inertia.mass)
            add3(scratch, up + 1, inertia.h)
            add_sym(scratch, up + 4, inertia.I)
            if forces:
                increase(scratch, up + FORCE, F)


@inline
def mass_matrix_row(m, first, i, S, inertia, M, scratch):
    """Entries of M of joint i and the joints above it."""
    F, entry = inertia.times(S), M + first[i]
    store(scratch, entry, S.dot(F) + m.passive[i, 3])
    k, j = i, m.parent[i]
    while j >= 0:
        F, entry = handed_on(m, k, (k + 1) * N, F, scratch), entry + 1
        store(scratch, entry, subspace(m, j, scratch, (j + 1) * N).dot(F))
        k, j = j, m.parent[j]


@inline
def equations_of_motion(m, plan, first, q, v, tau, force, point, torque, s, forces, r, scratch):
    """M and, if `forces`, a constant, τ − h, else zeros; with the frames there, and motions if `forces`."""
    n = len(m.parent)
    sums = sums_slot(n)
    for i in range(n):
        own_sums(m, plan, i, sums, forces, r, force, point, torque, scratch)
    for i in range(n - 1, -1, -1):
        own, S = sums + plan[i, HOME] * SUMS, subspace(m, i, scratch, (i + 1) * N)
        acting = spread(0.0)
        if forces:
            passive = passive_force(m, i, gather(q, r, i), gather(v, r, i), 0.0)
            acting = gather(tau, r, i) - (S.dot(load_force(scratch, own + FORCE)) + passive)
        store(scratch, s.z + i, acting)
        mass_matrix_row(m, first, i, S, load_inertia(scratch, own), s.M, scratch)
        hand_on(m, plan, i, sums, forces, scratch)


@inline
def transposed_jacobian(m, c, s, r, scratch):
    """Gᵀ to the slots of Y."""
    n = len(m.parent)
    for k in range(n * s.wide):
        store(scratch, s.Y + k, 0.0)
    constraints.jacobian(m, c, r, Entries(Slots(scratch, s.Y, 0), 1, s.wide), scratch, own_layout(n))


@inline
def factored(tree, paths, reach, s, rows, scratch):
    """M and Γ factored, once M and Gᵀ are there.  Returns what fails and the lane, or (−1, −1): a joint that nothing
    resists, or n plus the number of a row that follows from others."""
    what, w = factor_mass_matrix(tree, s, scratch)
    if what < 0:
        what, w = reduce_constraints(tree, paths, reach, s, rows, scratch)
        if what >= 0:
            what = what + len(tree[0])
    return what, w


@inline
def block(m, c, rows, tables, q, v, tau, force, point, torque, none, law, a, f, r, scratch):
    """q̈ and f of the states r … r+W−1.  Returns what fails and the lane, as `factored`."""
    plan, tree, paths, reach = tables
    n = len(m.parent)
    at, s = own_layout(n), saddle.saddle(n, rows, len(tree[1]), sums_slot(n) + n * SUMS)
    outward(m, q, v, r, scratch)
    equations_of_motion(m, plan, tree[0], q, v, tau, force, point, torque, s, True, r, scratch)
    transposed_jacobian(m, c, s, r, scratch)
    target(m, c, rows, q, v, none, law, s, r, scratch, at)
    what, w = factored(tree, paths, reach, s, rows, scratch)
    if what < 0:
        solve_one(tree, paths, s, rows, scratch)
        for k in range(n):
            scatter(a, r, k, load(scratch, s.z + k))
        for k in range(rows):
            scatter(f, r, k, load(scratch, s.f + k))
    return what, w


@inline
def target(m, c, rows, q, v, none, law, s, r, scratch, at):
    """−φ̈(q, q̇, 0) − 2α φ̇ − β² φ; φ̇ and φ are kept for a moment in the slots of Γ."""
    rate, error = Slots(scratch, s.gamma, 0), Slots(scratch, s.gamma + rows, 0)
    constraints.rates(m, c, v, none, r, rate, Slots(scratch, s.f, 0), scratch, at)
    for k in range(rows):
        store(scratch, s.f + k, -load(scratch, s.f + k))
    if law[0] != 0.0 or law[1] != 0.0:
        constraints.errors(m, c, q, r, error, scratch, at)
        for k in range(rows):
            back = 2.0 * law[0] * load(scratch, s.gamma + k) + law[1] * law[1] * load(scratch, s.gamma + rows + k)
            store(scratch, s.f + k, load(scratch, s.f + k) - back)


@inline
def impact_block(m, c, rows, tables, q, v, e, force, after, impulses, change, r, scratch):
    """q̇⁺, Λ and q̇⁺ − q̇ of the states r … r+W−1.  Returns what fails and the lane, as `factored`."""
    plan, tree, paths, reach = tables
    begin, joints, _, _ = paths
    n = len(m.parent)
    s = saddle.saddle(n, rows, len(tree[1]), sums_slot(n) + n * SUMS)
    frames(m, q, r, scratch, N)
    equations_of_motion(m, plan, tree[0], q, v, v, force, force, force, s, False, r, scratch)
    transposed_jacobian(m, c, s, r, scratch)
    for k in range(rows):
        rate = spread(0.0)
        for i in range(begin[k], begin[k + 1]):
            rate = rate + load(scratch, s.Y + joints[i] * s.wide + k) * gather(v, r, joints[i])
        store(scratch, s.f + k, (-1.0 - e[k]) * rate)
    what, w = factored(tree, paths, reach, s, rows, scratch)
    if what < 0:
        solve_one(tree, paths, s, rows, scratch)
        for k in range(n):
            scatter(change, r, k, load(scratch, s.z + k))
            scatter(after, r, k, gather(v, r, k) + load(scratch, s.z + k))
        for k in range(rows):
            scatter(impulses, r, k, load(scratch, s.f + k))
    return what, w


@kernel
def constrained(m, q, v, tau, force, point, torque, c, tables, none, law, a, f, status, scratch, start, stop):
    """q̈, (states, n), and f, (states, rows); loads (states or 1, 3 n), or (0, 3 n) for none.

    none   : (1, n), zeros.
    law    : (2,), α and β.
    status : (2,): what fails, a joint or n plus a row as `factored` has it, and the state; else left alone.
    """
    ok = finite((q, v, tau, force, point, torque), start, stop)
    if not ok:
        return ok
    m, c = unpack(m), unpack_constraints(c)
    for r in range(start, stop, lane_count()):
        what, w = block(
            m, c, f.shape[1], tables, q, v, tau, force, point, torque, none, law, a, f, r, scratch
        )  # fmt: skip
        if what >= 0:
            status[0], status[1] = what, min(r + w, len(a) - 1)
            return ok
    return with_results(ok, (a, f), start, stop)


@kernel
def impact(m, q, v, e, c, tables, none, change, after, impulses, status, scratch, start, stop):
    """q̇⁺, (states, n), and Λ, (states, rows), with the restitution e, (rows,); status as of `constrained`.

    none   : (0, 3 n): no loads.
    change : (states, n), becomes q̇⁺ − q̇.
    """
    ok = finite((q, v), start, stop)
    if not ok:
        return ok
    m, c = unpack(m), unpack_constraints(c)
    for r in range(start, stop, lane_count()):
        what, w = impact_block(
            m, c, impulses.shape[1], tables, q, v, e, none, after, impulses, change, r, scratch
        )  # fmt: skip
        if what >= 0:
            status[0], status[1] = what, min(r + w, len(after) - 1)
            return ok
    return with_results(ok, (after, impulses), start, stop)
