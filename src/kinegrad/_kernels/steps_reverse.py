"""Backwards through the steps of ``steps.py``: the discrete adjoint of W states at a time, no matrix formed.

From λ = ∂J/∂(q⁺, v⁺), the gradients μᵢ = ∂J/∂aᵢ come last stage first,

    μᵢ = h² b̄ᵢ λ_q + h bᵢ λ_v + Σⱼ (h² Āⱼᵢ κ_qⱼ + h Aⱼᵢ κ_vⱼ)     (j > i),   κ_qⱼ = (∂aⱼ/∂q)ᵀ μⱼ,  κ_vⱼ = (∂aⱼ/∂v)ᵀ μⱼ

    ∂J/∂q = λ_q + Σ κ_qⱼ,    ∂J/∂v = λ_v + h λ_q + Σ (cⱼ h κ_qⱼ + κ_vⱼ)

Since τ(q, v, a(q, v, τ)) = τ, the derivatives of a are those of inverse dynamics at the motion found, through M:

    w = M⁻¹ μ:      κ_q = −(∂τ/∂q)ᵀ w,      κ_v = −(∂τ/∂v)ᵀ w,      ∂J/∂τ = Σ wⱼ,      ∂J/∂c = −Σ wⱼᵀ ∂τ/∂c

for all constants c of the mechanism and its loads.  The three products are the gradient of wᵀτ, one backward sweep of
``rnea_reverse.py``.  M is never formed: forward dynamics by articulated bodies has factored it, and with U, D of
``aba.py`` (kept from the way forward) w is the acceleration that μ alone gives the mechanism at rest,

    inward   u = μ − S·p,    p_parent += p + U u/D        outward   w = (u − U·Y_parent)/D,    Y = Y_parent + S w

so that a stage costs O(n), however many constants there are.  ``replay`` makes the steps of a segment again and keeps
what this needs on a tape; between the two, the caller evaluates what J sees of each step.

Glossary (c A Ā b b̄, tau, when as in steps.py; L steps of one segment, s stages)
    q v a          states before each step and after the last, first accelerations   (L + 1, states, n), (L, states, n)
    tape           of each stage a (n), then U (6) and 1/D (1) of each joint         (blocks, L·s·8 n, W)
    by_q by_v by_a   ∂J/∂q, ∂J/∂v, ∂J/∂a at the start of each step, explicitly       (L, states, n)
    push           Σ wⱼ of each step                                                  (L, states, n)
    to_q to_v      λ, on entry after the last step, at the end before the first       (states, n)
    sums           Σ wⱼᵀ ∂τ/∂c, added to, in the columns of rnea_reverse.py          (blocks, columns, W)
    slots          rnea_reverse.py's, then of q, v, qᵢ, vᵢ, a₀ … aₛ₋₁ (as in steps.py), then of λ_q, λ_v, μ (which
                   becomes w), Σ wⱼ, κ_q₀ … κ_qₛ₋₁, κ_v₀ … κ_vₛ₋₁, n each
"""

from typing import Any, NamedTuple

from kinegrad._kernels import aba, rnea_reverse
from kinegrad._kernels.aba import PIVOT, ROD, hand_on, outward_motion, outward_solution, pivot
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import lane_count
from kinegrad._kernels.joints import carried, frames, handed_on, rest, subspace
from kinegrad._kernels.lanes.lane import gather, layer, load, scatter, store
from kinegrad._kernels.lanes.slots import Slots
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_reverse import FORCE, VIRTUAL
from kinegrad._kernels.spatial import Force, increase, load_force, put, zero3
from kinegrad._kernels.steps import finish, stage

_ABA, _N, _gradient = aba.N, rnea_reverse.N, rnea_reverse.block
TAPE = 8  # slots of the tape for each joint and stage
_FACTORS = 7  # of them for U and 1/D


def replay_slots(n: int, stages: int) -> int:
    """How many slots of scratch `replay` needs."""
    return (n + 1) * _ABA + (4 + stages) * n


def reverse_slots(n: int, stages: int) -> int:
    """How many slots of scratch `reverse` needs."""
    return (n + 1) * _N + (8 + 3 * stages) * n


class Sums(NamedTuple):
    """Slots to which `scatter` adds."""

    slots: Any


@scatter.register(Sums)
def _(x, r, k, u):
    store(x.slots, k, load(x.slots, k) + u)


# --- forward ----------------------------------------------------------------------------------------------------


@inline
def _record(n, a, tape, slot, scratch):
    """The accelerations a, and the factors of M, to the tape."""
    for i in range(n):
        store(tape, slot + i, load(scratch, a + i))
        at, to = (i + 1) * _ABA, slot + n + _FACTORS * i
        put(tape, to, load_force(scratch, at + ROD))
        store(tape, to + 6, load(scratch, at + PIVOT))


@inline
def _accelerate(m, q, v, tau, force, point, torque, a, r, scratch):
    """As aba.block.  That something resists every joint has been seen on the first way forward."""
    outward_motion(m, q, v, force, point, torque, r, scratch)
    for i in range(len(m.parent) - 1, -1, -1):
        pivot(m, i, (i + 1) * _ABA, gather(tau, r, i), gather(q, r, i), gather(v, r, i), scratch)
        if m.parent[i] >= 0:
            hand_on(m, i, scratch)
    outward_solution(m, a, r, scratch)


@kernel
def replay(m, q, v, tau, when, force, point, torque, scheme, h, a, tape, scratch, first, last, start, stop):
    """The steps first … last − 1, from q and v before the first of them on."""
    m = unpack(m)
    c, A, A_bar, b, b_bar = scheme
    n, stages = len(m.parent), len(b)
    at = (n + 1) * _ABA
    q_i, v_i = Slots(scratch, at + 2 * n, n), Slots(scratch, at + 3 * n, n)
    for r in range(start, stop, lane_count()):
        own = layer(tape, r // lane_count())
        for i in range(n):
            store(scratch, at + i, gather(layer(q, first), r, i))
            store(scratch, at + n + i, gather(layer(v, first), r, i))
        for step in range(first, last):
            for j in range(stages):
                stage(j, n, c, A, A_bar, h, scratch, at)
                a_i = at + (4 + j) * n
                tau_i = layer(tau, when[step, j])
                _accelerate(m, q_i, v_i, tau_i, force, point, torque, Slots(scratch, a_i, n), r, scratch)
                _record(n, a_i, own, (step * stages + j) * TAPE * n, scratch)
            finish(n, b, b_bar, h, scratch, at)
            for i in range(n):
                scatter(layer(a, step), r, i, load(scratch, at + 4 * n + i))
                scatter(layer(q, step + 1), r, i, load(scratch, at + i))
                scatter(layer(v, step + 1), r, i, load(scratch, at + n + i))
    return True


# --- backward ---------------------------------------------------------------------------------------------------


@inline
def _solve(m, mu, tape, slot, scratch):
    """w = M⁻¹ μ in the place of μ, with the factors on the tape.  Uses the slots of F for p, those of Y for Y."""
    n = len(m.parent)
    for i in range(n + 1):
        put(scratch, i * _N + FORCE, Force(zero3(), zero3()))
    for i in range(n - 1, -1, -1):
        up, at, factors = (m.parent[i] + 1) * _N, (i + 1) * _N, slot + _FACTORS * i
        p = load_force(scratch, at + FORCE)
        u = load(scratch, mu + i) - subspace(m, i, scratch, at).dot(p)
        store(scratch, mu + i, u)
        if m.parent[i] >= 0:
            p = p + load_force(tape, factors) * (u * load(tape, factors + 6))
            increase(scratch, up + FORCE, handed_on(m, i, at, p, scratch))
    rest(scratch, VIRTUAL)
    for i in range(n):
        up, at, factors = (m.parent[i] + 1) * _N, (i + 1) * _N, slot + _FACTORS * i
        Y = carried(m, i, up + VIRTUAL, at, scratch)
        w = (load(scratch, mu + i) - Y.dot(load_force(tape, factors))) * load(tape, factors + 6)
        put(scratch, at + VIRTUAL, Y + subspace(m, i, scratch, at) * w)
        store(scratch, mu + i, w)


@inline
def _gather_mu(i, n, scheme, h, by_a, r, to, kappa, scratch):
    """μᵢ, from λ in the slots `to` … and from κ of the stages after."""
    _c, A, A_bar, b, b_bar = scheme
    stages = len(b)
    for k in range(n):
        mu = h * h * b_bar[i] * load(scratch, to + k) + h * b[i] * load(scratch, to + n + k)
        for j in range(i + 1, stages):
            if A_bar[j, i] != 0.0:
                mu = mu + h * h * A_bar[j, i] * load(scratch, kappa + j * n + k)
            if A[j, i] != 0.0:
                mu = mu + h * A[j, i] * load(scratch, kappa + (stages + j) * n + k)
        if i == 0:
            mu = mu + gather(by_a, r, k)  # the acceleration at this time is the first stage's
        store(scratch, to + 2 * n + k, mu)


@inline
def _before(n, scheme, h, by_q, by_v, r, to, kappa, scratch):
    """λ before the step in the place of λ after it."""
    c, stages = scheme[0], len(scheme[3])
    for k in range(n):
        to_q, to_v = load(scratch, to + k), load(scratch, to + n + k)
        to_v = to_v + h * to_q + gather(by_v, r, k)
        to_q = to_q + gather(by_q, r, k)
        for j in range(stages):
            kq, kv = load(scratch, kappa + j * n + k), load(scratch, kappa + (stages + j) * n + k)
            to_q, to_v = to_q + kq, to_v + c[j] * h * kq + kv
        store(scratch, to + k, to_q)
        store(scratch, to + n + k, to_v)


@inline
def _step_back(m, q, v, tape, slot, force, point, torque, scheme, h, by_q, by_v, by_a, push, sums, r, scratch):
    """One step; λ is in its slots."""
    c, A, A_bar = scheme[0], scheme[1], scheme[2]
    n, stages = len(m.parent), len(scheme[3])
    at = (n + 1) * _N
    to = at + (4 + stages) * n
    w, total, kappa = to + 2 * n, to + 3 * n, to + 4 * n
    q_i, v_i, y = Slots(scratch, at + 2 * n, n), Slots(scratch, at + 3 * n, n), Slots(scratch, w, n)
    for k in range(n):
        store(scratch, at + k, gather(q, r, k))
        store(scratch, at + n + k, gather(v, r, k))
        store(scratch, total + k, 0.0)
        for j in range(stages):
            store(scratch, at + (4 + j) * n + k, load(tape, slot + j * TAPE * n + k))
    for i in range(stages - 1, -1, -1):
        stage(i, n, c, A, A_bar, h, scratch, at)
        _gather_mu(i, n, scheme, h, by_a, r, to, kappa, scratch)
        frames(m, q_i, r, scratch, _N)
        _solve(m, w, tape, slot + (i * TAPE + 1) * n, scratch)
        a_i, kq, kv = at + (4 + i) * n, kappa + i * n, kappa + (stages + i) * n
        by_q_i, by_v_i = Slots(scratch, kq, n), Slots(scratch, kv, n)
        _gradient(
            m, q_i, v_i, Slots(scratch, a_i, n), y, force, point, torque, by_q_i, by_v_i, None, sums, r, scratch
        )  # fmt: skip
        for k in range(n):
            store(scratch, kq + k, -load(scratch, kq + k))
            store(scratch, kv + k, -load(scratch, kv + k))
            store(scratch, total + k, load(scratch, total + k) + load(scratch, w + k))
    _before(n, scheme, h, by_q, by_v, r, to, kappa, scratch)
    for k in range(n):
        scatter(push, r, k, load(scratch, total + k))


@kernel
def reverse(
    m, q, v, tape, force, point, torque, scheme, h, by_q, by_v, by_a, push, to_q, to_v, sums, scratch, first, last,
    start, stop,
):  # fmt: skip
    """From after the step last − 1 to before the step first."""
    m = unpack(m)
    n, stages = len(m.parent), len(scheme[3])
    to = (n + 1) * _N + (4 + stages) * n
    for r in range(start, stop, lane_count()):
        own, added = layer(tape, r // lane_count()), Sums(layer(sums, r // lane_count()))
        for k in range(n):
            store(scratch, to + k, gather(to_q, r, k))
            store(scratch, to + n + k, gather(to_v, r, k))
        for step in range(last - 1, first - 1, -1):
            _step_back(
                m, layer(q, step), layer(v, step), own, step * stages * TAPE * n, force, point, torque, scheme, h,
                layer(by_q, step), layer(by_v, step), layer(by_a, step), layer(push, step), added, r, scratch,
            )  # fmt: skip
        for k in range(n):
            scatter(to_q, r, k, load(scratch, to + k))
            scatter(to_v, r, k, load(scratch, to + n + k))
    return True
