"""Second derivatives of the forces of elements, weighted, and how they are added to those of inverse dynamics.

With Q(q, v) the generalised forces of elements, τ = τ₀ − Q, and ∂²(wᵀτ) = ∂²(wᵀτ₀) − ∂²(wᵀQ).  Elements are few, and
each knows only the joints of its way; so their second derivatives are the gradient of wᵀQ on dual numbers, along every
direction.  Where coordinates are not joints, Q = Gᵀ Q̂ is carried back as torques are (``_engine/curvature.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.call import evaluate_with
from kinegrad._engine.curvature import hessian_in_coordinates
from kinegrad._engine.elements import (
    ELEMENTS_DERIVATIVES,
    ElementDerivatives,
    check_sums,
    element_derivatives,
    element_table,
    kept_entries,
    subtract,
    undamped,
)
from kinegrad._engine.expansion import Expansion, deliver
from kinegrad._engine.gate import mapped, real
from kinegrad._engine.signature import QV, Axis, Kernel, Kind, Result
from kinegrad._kernels import dual_kernels
from kinegrad._kernels import elements as kernels
from kinegrad.model import Model

__all__ = ["less_hessian", "less_hvp"]

Array = NDArray[np.float64]
Run = Callable[..., tuple[Array, ...]]
STATE = ("q", "v", "a", "w", "dq", "dv", "da")
_PER = {"q": Axis.PER_POSITION, "v": Axis.PER_SPEED}
GRADIENTS = Kernel(
    dual_kernels.weighted_element_gradient,
    QV | {"w": Kind.WEIGHT, "dq": Kind.DPOSITION, "dv": Kind.DSPEED},
    tuple(Result(f"{what}_{x}", (axis,), zero=True) for what in ("by", "change") for x, axis in _PER.items()),
    2 * kernels.PER_JOINT,
)


class Second(NamedTuple):
    """Second derivatives of wᵀQ, (..., nv, nv) each."""

    qq: Array
    qv: Array
    qa: Array
    vv: Array


def _gradients(model: Model, joints: Model, state: Sequence[Array], threads: int | None) -> tuple[Array, ...]:
    """Gradients of wᵀQ by q and v, and their changes along a direction; of joints."""
    table = element_table(model)
    options = [table.links, table.way, table.numbers, np.zeros_like(table.numbers)]
    return evaluate_with(GRADIENTS, joints, state, threads=threads, options=options)


def _of_joints(model: Model, joints: Model, q: Array, v: Array, w: Array, threads: int | None) -> Second:
    """Along every direction."""
    n = joints.n
    unit = np.eye(2 * n)
    each = [x[..., None, :] for x in (q, v, w)]
    _, _, by_q, by_v = _gradients(model, joints, (*each, unit[:, :n], unit[:, n:]), threads)
    qq, qv, vv = (
        np.ascontiguousarray(x.swapaxes(-1, -2)) for x in (by_q[..., :n, :], by_q[..., n:, :], by_v[..., n:, :])
    )
    with np.errstate(all="ignore"):  # symmetric but for rounding
        return Second(0.5 * (qq + qq.swapaxes(-1, -2)), qv, np.zeros_like(qv), 0.5 * (vv + vv.swapaxes(-1, -2)))


def _second(model: Model, q: Array, v: Array, w: Array, threads: int | None) -> Second:
    """In the coordinates of the user."""
    bare = undamped(model)
    if not mapped(model):
        return _of_joints(model, bare, q, v, w, threads)
    at = Expansion(bare, {"q": q, "v": v, "w": w})
    joints = bare.primitive
    state, weights = (at.q, at.v), at.check(at.G.push(w), 1)
    second = _of_joints(model, joints, *state, weights, threads)
    acting = _in_joints(model, joints, state, threads)
    zero = np.zeros(joints.n)
    by_q, by_v, _, _ = _gradients(model, joints, (*state, weights, zero, zero), threads)
    none = np.zeros_like(acting.dQ_dv)
    gradient = by_q, by_v, np.zeros_like(by_q), acting.Q
    return Second(*hessian_in_coordinates(at, w, gradient, (acting.dQ_dq, acting.dQ_dv, none), second))


def _in_joints(model: Model, joints: Model, state: Sequence[Array], threads: int | None) -> ElementDerivatives:
    """Q̂ and its derivatives."""
    table = element_table(model)
    options, points = [table.links, table.way, table.numbers], (len(table.directed),)
    Q, _, energy, *slopes = evaluate_with(
        ELEMENTS_DERIVATIVES, joints, state, threads=threads, options=options, points=points
    )
    return ElementDerivatives(Q, energy, *slopes)


def _given(model: Model, run: Run, state: Sequence[Any]) -> list[Array]:
    """Arguments as arrays; those of wrong shapes are named by the gate of what is run without elements."""
    given = [real(name, x) for name, x in zip(STATE, state, strict=False)]
    try:
        np.broadcast_shapes(*(x.shape[:-1] for x in given))
        fits = all(x.shape[-1:] == (model.nq if k == 0 else model.nv,) for k, x in enumerate(given))
    except ValueError:
        fits = False
    if not fits:
        run(state)
    return given


def less_hessian(*, packed: bool, both: bool) -> Any:
    """What subtracts second derivatives, and, if `both`, forces and their first derivatives."""
    first = ("tau", "dtau_dq", "dtau_dv", "dtau_da") if both else ()
    names = (*first, "d2_dqdq", "d2_dqdv", "d2_dqda", "d2_dvdv")

    def less(
        model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
    ) -> tuple[Array, ...]:
        q, v, _, w = _given(model, run, state)
        acting = element_derivatives(model, (q, v), threads)  # which refuses ends that coincide
        parts: list[Array] = [*_second(model, q, v, w, threads)]
        if both:
            parts = [acting.Q, acting.dQ_dq, acting.dQ_dv, np.zeros_like(acting.dQ_dv), *parts]
        if not packed:
            found = run(state, out)
            subtract(found, *parts)
            return found
        rows, cols = model.pattern
        found = run(state)
        vectors = 1 if both else 0  # τ comes first
        whole = [*found[:vectors], *(_by_pattern(model, x) for x in found[vectors:])]
        subtract(whole, *parts[:vectors], *(part[..., rows, cols] for part in parts[vectors:]))
        return deliver(names, whole, out)

    return less


def _by_pattern(model: Model, x: Array) -> Array:
    """Packed entries of the model without elements among those of its own pattern."""
    whole = np.zeros((*x.shape[:-1], len(model.pattern[0])))
    whole[..., kept_entries(model)] = x
    return whole


def less_hvp(
    model: Model, run: Run, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, ...]:
    """Products of second derivatives with a direction."""
    q, v, _, w, dq, dv, _ = _given(model, run, state)
    element_derivatives(model, (q, v), threads)  # which refuses ends that coincide
    if mapped(model):
        second = _second(model, q, v, w, threads)
        with np.errstate(all="ignore"):
            by_q = (second.qq * dq[..., None, :]).sum(axis=-1) + (second.qv * dv[..., None, :]).sum(axis=-1)
            by_v = (second.qv * dq[..., :, None]).sum(axis=-2) + (second.vv * dv[..., None, :]).sum(axis=-1)
    else:
        _, _, by_q, by_v = _gradients(model, undamped(model), (q, v, w, dq, dv), threads)
    found = run(state, out)
    subtract(found, by_q, by_v)
    check_sums(*found)
    return found
