"""Motion in equal steps of W states at a time: an explicit scheme in Nyström's form, all steps in one call.

    qᵢ = q + cᵢ h v + h² Σⱼ Āᵢⱼ aⱼ,    vᵢ = v + h Σⱼ Aᵢⱼ aⱼ,    aᵢ = f(qᵢ, vᵢ, τᵢ)     (j < i)
    q⁺ = q + h v + h² Σⱼ b̄ⱼ aⱼ,        v⁺ = v + h Σⱼ bⱼ aⱼ

f is the forward dynamics of ``aba.py``.  Lanes are W states of one mechanism, W mechanisms (``along_designs``), or
W states or directions of duals (``along_directions``), which makes it the derivative of the discrete motion itself.

A state whose numbers are no longer finite stays so: its lane is lost, the others go on.  Where nothing resists a
joint the block ends, for that is an error whatever the other states do.

Glossary
    c A Ā b b̄   the scheme, s stages                                  (s,), (s, s), (s, s), (s,), (s,)
    q0 v0        initial states                                        (states or 1, n)
    tau, when    torques, and which of them each stage of each step has   (T, states or 1, n), (steps + 1, s)
    q v a        results at every `every`-th step                      (kept, states, n)
    lost         first step after which a state is not finite, or −1   (states,)
    before       its speeds before that step                           (states, n)
    free         a joint that nothing resists, and the number k·s + i of the stage, or −1   (states, 2)
    slots        aba.py's, then of q, v, qᵢ, vᵢ, a₀ … aₛ₋₁, n each, then the constants of lanes/slots.py
"""

import math

from kinegrad._kernels import aba
from kinegrad._kernels.aba import free_lane, hand_on, outward_motion, outward_solution, pivot
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.lanes.dual import vary
from kinegrad._kernels.lanes.lane import gather, layer, load, pick, scatter, store, within
from kinegrad._kernels.lanes.slots import Slots, keep, per_lane
from kinegrad._kernels.mechanism import unpack, unpack_slopes, varied_numbers

_N, _NOISE = aba.N, aba.NOISE


def slots(n: int, stages: int) -> int:
    """How many slots of scratch the kernels need."""
    return (n + 1) * _N + (4 + stages) * n + varied_numbers(n)


@inline
def _state_slot(n):
    return (n + 1) * _N


@inline
def _constants_slot(n, stages):
    return (n + 1) * _N + (4 + stages) * n


@inline
def _mark_free(D, size, joint, evaluation, r, free):
    """Note the states of which D is rounding noise.  Where D is not a number the state is lost, not its joint free."""
    found = False
    for w in range(lane_count()):
        if pick(D, w) <= _NOISE * pick(size, w) and pick(size, w) < math.inf:
            row = min(r + w, len(free) - 1)
            found = True
            if free[row, 0] < 0:
                free[row, 0], free[row, 1] = joint, evaluation
    return found


@inline
def _accelerate(m, q, v, tau, force, point, torque, a, r, scratch, evaluation, free):
    """As aba.block, but lanes that are lost do not stop the others; returns whether a joint of one is free."""
    found = False
    outward_motion(m, q, v, force, point, torque, r, scratch)
    for i in range(len(m.parent) - 1, -1, -1):
        D, size = pivot(m, i, (i + 1) * _N, gather(tau, r, i), gather(q, r, i), gather(v, r, i), scratch)
        if free_lane(D, size) >= 0 and _mark_free(D, size, i, evaluation, r, free):
            found = True
        if m.parent[i] >= 0:
            hand_on(m, i, scratch)
    outward_solution(m, a, r, scratch)
    return found


@inline
def stage(i, n, c, A, A_bar, h, scratch, at):
    """qᵢ and vᵢ from q, v and the accelerations before."""
    for k in range(n):
        v = load(scratch, at + n + k)
        q_i, v_i = load(scratch, at + k) + c[i] * h * v, v
        for j in range(i):
            a = load(scratch, at + (4 + j) * n + k)
            if A_bar[i, j] != 0.0:
                q_i = q_i + h * h * A_bar[i, j] * a
            if A[i, j] != 0.0:
                v_i = v_i + h * A[i, j] * a
        store(scratch, at + 2 * n + k, q_i)
        store(scratch, at + 3 * n + k, v_i)


@inline
def finish(n, b, b_bar, h, scratch, at):
    """q⁺ and v⁺ in the place of q and v; v moves to the slots of vᵢ.  Returns zero in lanes that are finite."""
    doubt = load(scratch, at) - load(scratch, at)
    for k in range(n):
        v = load(scratch, at + n + k)
        q_next, v_next = load(scratch, at + k) + h * v, v
        for j in range(len(b)):
            a = load(scratch, at + (4 + j) * n + k)
            if b_bar[j] != 0.0:
                q_next = q_next + h * h * b_bar[j] * a
            if b[j] != 0.0:
                v_next = v_next + h * b[j] * a
        store(scratch, at + k, q_next)
        store(scratch, at + n + k, v_next)
        store(scratch, at + 3 * n + k, v)
        doubt = doubt + (q_next - q_next) + (v_next - v_next)
    return doubt


@inline
def _keep_state(n, s, q, v, a, r, scratch, at):
    """Write q, v and a₀ as the s-th results."""
    for k in range(n):
        scatter(layer(q, s), r, k, load(scratch, at + k))
        scatter(layer(v, s), r, k, load(scratch, at + n + k))
        scatter(layer(a, s), r, k, load(scratch, at + 4 * n + k))


@inline
def _mark_lost(doubt, step, n, r, scratch, at, lost, before):
    """Note the states that this step has lost; returns whether none of the block is left."""
    left = 0
    for w in range(lane_count()):
        row = min(r + w, len(lost) - 1)
        if pick(doubt, w) == 0.0:
            left += 1
        elif lost[row] < 0:
            lost[row] = step
            for k in range(n):
                before[row, k] = pick(load(scratch, at + 3 * n + k), w)
    return left == 0


@inline
def block(m, q0, v0, tau, when, force, point, torque, scheme, h, every, q, v, a, lost, before, free, r, scratch):
    """All steps of the states r … r+W−1."""
    c, A, A_bar, b, b_bar = scheme
    n, stages, steps = len(m.parent), len(b), len(when) - 1
    at = _state_slot(n)
    for k in range(n):
        store(scratch, at + k, gather(q0, r, k))
        store(scratch, at + n + k, gather(v0, r, k))
    q_i, v_i = Slots(scratch, at + 2 * n, n), Slots(scratch, at + 3 * n, n)
    for step in range(steps + 1):
        for i in range(stages if step < steps else 1):
            stage(i, n, c, A, A_bar, h, scratch, at)
            a_i, tau_i = Slots(scratch, at + (4 + i) * n, n), layer(tau, when[step, i])
            if _accelerate(m, q_i, v_i, tau_i, force, point, torque, a_i, r, scratch, step * stages + i, free):
                return
            if i == 0 and step % every == 0:
                _keep_state(n, step // every, q, v, a, r, scratch, at)
        if step == steps:
            return
        doubt = finish(n, b, b_bar, h, scratch, at)
        if not within(doubt, 0.0) and _mark_lost(doubt, step + 1, n, r, scratch, at, lost, before):
            for k in range((4 + stages) * n):
                store(scratch, at + k, load(scratch, at + k) * math.nan)
            for s in range(step // every + 1, steps // every + 1):
                _keep_state(n, s, q, v, a, r, scratch, at)
            return


@kernel
def along_states(
    m, q0, v0, tau, when, force, point, torque, scheme, h, every, q, v, a, lost, before, free, scratch, start, stop
):
    """Many states of one mechanism."""
    m = unpack(m)
    for r in range(start, stop, lane_count()):
        block(m, q0, v0, tau, when, force, point, torque, scheme, h, every, q, v, a, lost, before, free, r, scratch)
    return True


@kernel
def along_designs(
    m, q0, v0, tau, when, force, point, torque, scheme, h, every, q, v, a, lost, before, free, scratch, start, stop
):
    """Each state with a mechanism of its own: constants (states, n·k)."""
    m = unpack(m)
    first = _constants_slot(len(m.parent), len(scheme[3]))
    for r in range(start, stop, lane_count()):
        own = keep(per_lane(m, r), scratch, first)
        block(own, q0, v0, tau, when, force, point, torque, scheme, h, every, q, v, a, lost, before, free, r, scratch)
    return True


@kernel
def along_directions(
    m, dm, q0, v0, tau, when, force, point, torque, scheme, h, every, q, v, a, lost, before, free, scratch, start, stop
):
    """Duals: many states along one direction, or one along many.  q0, v0, q, v, a and scratch are Pairs."""
    m, dm = unpack(m), unpack_slopes(dm)
    first = _constants_slot(len(m.parent), len(scheme[3]))
    for r in range(start, stop, lane_count()):
        own = keep(vary(m, dm, r), scratch, first)
        block(own, q0, v0, tau, when, force, point, torque, scheme, h, every, q, v, a, lost, before, free, r, scratch)
    return True
