"""Slopes of torques along many directions of the constants, the state and the loads, O(n) each.

The last pass of ``design_tangent.py``, whose derivation and glossary hold here, for inverse dynamics, where q̈ and δq̈
are given: A° goes outward, forces come inward,

    δτ = S·F° + S°·F + spring, damper, rotor

Of a link that RISES only, as by another field of gravity, the linear part of A° is all there is.
"""

from kinegrad._kernels.aba import ACCELERATION, VELOCITY, N
from kinegrad._kernels.bodies import inertia_force, load_on
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.design_tangent import (
    DRIFT,
    FORCE,
    INERTIA,
    MOVES,
    PUSH,
    REACHED,
    RISES,
    SHIFT,
    TENSOR,
    A,
    C,
    accelerate_base,
    by_any,
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
from kinegrad._kernels.joints import FRAME, carried, falling, frames, handed_on, move, rest, subspace
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, layer, scatter
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.spatial import (
    Force,
    Motion,
    add,
    cross,
    increase,
    load3,
    load6,
    load9,
    load_force,
    load_motion,
    mul,
    put,
    row3,
    scale,
    store3,
    symmul,
    zero3,
)


@inline
def _needed(m, what, force, point, torque, r, scratch):
    """F, the sum of what links need, where directions lift them; links outboard of those are lifted, too."""
    n = len(m.parent)
    for i in range(n):
        own, flags = link_slots(n, i), by_any(what, i)
        F = Force(zero3(), zero3())
        if m.massive[i]:
            if flags & (MOVES | INERTIA):
                F = share(m, i, n, scratch)
            elif flags & RISES:  # of such a link c is all that directions need
                at = (i + 1) * N
                R, V_ = load9(scratch, at + FRAME), load_motion(scratch, at + VELOCITY)
                F = inertia_force(m, i, R, V_, load_motion(scratch, at + ACCELERATION))
                store3(scratch, own + C, mul(R, row3(m.inertia, i, 1)))
        if flags & (MOVES | RISES):
            if len(force) > 0:
                F = F - load_on(m, i, r, force, point, torque, scratch, N)
            put(scratch, own + FORCE, F)
    for i in range(n - 1, -1, -1):
        if m.parent[i] >= 0 and by_any(what, m.parent[i]) & (MOVES | RISES):
            F = load_force(scratch, link_slots(n, i) + FORCE)
            increase(scratch, link_slots(n, m.parent[i]) + FORCE, handed_on(m, i, (i + 1) * N, F, scratch))


@inline
def _torques(m, dm, what, k, q, v, a, dq, dv, da, r, dtau, scratch):
    """δτ, once p is there."""
    n = len(m.parent)
    accelerate_base(dm, r, n, scratch)
    for i in range(n):
        at, own, before, now = (i + 1) * N, link_slots(n, i), way_slots(n, m.parent[i]), way_slots(n, i)
        if what[k, i] & MOVES:
            slope = carried(m, i, before + A, at, scratch) + subspace(m, i, scratch, at) * gather(da, r, i)
            slope = slope + load_motion(scratch, now + DRIFT)
            put(scratch, now + A, slope)
            if m.massive[i]:
                c = load3(scratch, own + C)
                f = scale(m.inertia[i, 0], slope.at(c).v)
                turned = add(symmul(load6(scratch, own + TENSOR), slope.w), cross(c, f))
                increase(scratch, now + PUSH, Force(turned, f))
        elif what[k, i] & RISES:  # as by another gravity: linear, and the same for all points
            lift = load3(scratch, before + A + 3)
            if what[k, i] & SHIFT:
                lift = add(lift, load3(scratch, now + DRIFT + 3))
            put(scratch, now + A, Motion(zero3(), lift))
            if m.massive[i]:
                f = scale(m.inertia[i, 0], lift)
                increase(scratch, now + PUSH, Force(cross(load3(scratch, own + C), f), f))
    for i in range(n - 1, -1, -1):
        if what[k, i] & REACHED:
            p = load_force(scratch, way_slots(n, i) + PUSH)
            t = passive(m, dm, i, r, what[k, i], n, q, v, a, dq, dv, scratch) + m.passive[i, 3] * gather(da, r, i)
            scatter(dtau, r, i, t + subspace(m, i, scratch, (i + 1) * N).dot(p))
            if m.parent[i] >= 0:
                hand_on(m, i, n, what[k, i] & (MOVES | SHIFT), p, scratch)
        else:
            scatter(dtau, r, i, zero3()[0])


@kernel
def inverse_dynamics(
    m, dm, what, q, v, a, dq, dv, da, force, point, torque, dforce, dpoint, dtorque, dtau, scratch, start, stop
):
    """δτ, (layers, rows, n)."""
    ok = finite((q, v, a, force, point, torque), start, stop)
    if not ok:
        return ok
    m = unpack(m)
    n = len(m.parent)
    for r in range(start, stop, lane_count()):
        frames(m, q, r, scratch, N)
        rest(scratch, VELOCITY)
        falling(m, scratch, ACCELERATION)
        for i in range(n):
            up, at = (m.parent[i] + 1) * N, (i + 1) * N
            move(m, i, up, at, scratch, VELOCITY, ACCELERATION, gather(v, r, i), gather(a, r, i))
        _needed(m, what, force, point, torque, r, scratch)
        for k in range(len(dtau)):
            d, e, de, dde = of_layer(dm, k), layer_or_only(dq, k), layer_or_only(dv, k), layer_or_only(da, k)
            df, dx, dt = layer_or_only(dforce, k), layer_or_only(dpoint, k), layer_or_only(dtorque, k)
            outward(m, d, what, k, q, v, a, e, de, force, point, torque, df, dx, dt, r, scratch)
            _torques(m, d, what, k, q, v, a, e, de, dde, r, layer(dtau, k), scratch)
    return with_layers(ok, dtau, start, stop)
