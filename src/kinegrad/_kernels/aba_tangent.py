"""Slopes of accelerations along many directions of the constants, the state and the loads, O(n) each.

The last pass of ``design_tangent.py``, whose derivation and glossary hold here, for forward dynamics: with I, U, D of
the articulated bodies of ``aba.py``, inward and outward again,

    u = δτ − S°·F − passive − S·p,    p_parent += p + I c° + U (u − U·c°)/D + ξ ×* F
    δq̈ = (u − U·A_p°)/D

which are (62)–(70) of [anderson2002], fully recursive, no matrix formed.  F = I A + p of the articulated body, too: the
sum of what the links of a long chain need has lost digits.
"""

from kinegrad._kernels import aba
from kinegrad._kernels.aba import ACCELERATION, BIAS, PIVOT, ROD, N, articulated
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.design_tangent import (
    ACTING,
    DRIFT,
    FORCE,
    INERTIA,
    MOVES,
    PUSH,
    REACHED,
    SHIFT,
    A,
    accelerate_base,
    by_any,
    found_slots,
    hand_on,
    layer_or_only,
    link_slots,
    of_layer,
    outward,
    passive,
    share,
    way_slots,
    with_layers,
)
from kinegrad._kernels.joints import carried, subspace
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, layer, load, scatter, store
from kinegrad._kernels.lanes.slots import Slots
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import load_force, load_motion, put, zero3

_aba = aba.block


@inline
def _transmitted(m, what, scratch):
    """F = I A + p of the articulated body, which keeps its digits where the sum of many links loses them; where
    directions move links."""
    n = len(m.parent)
    for i in range(n):
        at, flags = (i + 1) * N, by_any(what, i)
        if m.massive[i] and flags & (MOVES | INERTIA):
            share(m, i, n, scratch)
        if flags & (MOVES | SHIFT):
            F = articulated(scratch, at, load_motion(scratch, at + ACCELERATION)) + load_force(scratch, at + BIAS)
            put(scratch, link_slots(n, i) + FORCE, F)


@inline
def _accelerations(m, dm, what, k, q, v, a, dq, dv, dtau, r, da, scratch):
    """δq̈, once p is there."""
    n = len(m.parent)
    for i in range(n - 1, -1, -1):
        at, now = (i + 1) * N, way_slots(n, i)
        if what[k, i] & REACHED:
            p = load_force(scratch, now + PUSH)
            u = gather(dtau, r, i) - passive(m, dm, i, r, what[k, i], n, q, v, a, dq, dv, scratch)
            u = u - subspace(m, i, scratch, at).dot(p)
            store(scratch, now + ACTING, u)
            if m.parent[i] >= 0:
                U = load_force(scratch, at + ROD)
                moved = what[k, i] & (MOVES | SHIFT)
                if moved:
                    c = load_motion(scratch, now + DRIFT)
                    p, u = p + articulated(scratch, at, c), u - c.dot(U)
                hand_on(m, i, n, moved, p + U * (u * load(scratch, at + PIVOT)), scratch)
        else:
            store(scratch, now + ACTING, zero3()[0])
    accelerate_base(dm, r, n, scratch)
    for i in range(n):
        at, now = (i + 1) * N, way_slots(n, i)
        slope = carried(m, i, way_slots(n, m.parent[i]) + A, at, scratch)
        if what[k, i] & (MOVES | SHIFT):
            slope = slope + load_motion(scratch, now + DRIFT)
        ddq = (load(scratch, now + ACTING) - slope.dot(load_force(scratch, at + ROD))) * load(scratch, at + PIVOT)
        put(scratch, now + A, slope + subspace(m, i, scratch, at) * ddq)
        scatter(da, r, i, ddq)


@kernel
def forward_dynamics(
    m, dm, what, q, v, tau, dq, dv, dtau, force, point, torque, dforce, dpoint, dtorque, a, da, status, scratch,
    start, stop
):  # fmt: skip
    """q̈, (rows or 1, n), and δq̈, (layers, rows, n).

    status, (2,): where nothing resists a joint, its number and the row, else left alone.
    """
    ok = finite((q, v, tau, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    found = Slots(scratch, found_slots(n), n)
    for r in range(start, stop, lane_count()):
        joint, w = _aba(m, q, v, tau, force, point, torque, found, r, scratch)
        if joint >= 0:
            status[0], status[1] = joint, min(r + w, stop - 1)
            return ok
        for i in range(n):
            scatter(a, r, i, gather(found, r, i))
        _transmitted(m, what, scratch)
        for k in range(len(da)):
            d, e, de, dt = of_layer(dm, k), layer_or_only(dq, k), layer_or_only(dv, k), layer_or_only(dtau, k)
            df, dx, turn = layer_or_only(dforce, k), layer_or_only(dpoint, k), layer_or_only(dtorque, k)
            outward(m, d, what, k, q, v, found, e, de, force, point, torque, df, dx, turn, r, scratch)
            _accelerations(m, d, what, k, q, v, found, e, de, dt, r, layer(da, k), scratch)
    return with_layers(ok, da, start, stop)
