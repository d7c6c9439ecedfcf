"""Second derivatives of weighted errors of constraints, and of their rates, that design parameters take part in.

Let ψ = yᵀφ(q, p) + uᵀφ̇ with φ̇ = G(q, p) v, and let a dash be a derivative with respect to p.  Then

    ∂ψ′/∂q = G′ᵀ y + H(u)′ v          ∂ψ′/∂v = G′ᵀ u          ψ″ = yᵀφ″ + uᵀφ̇″                                       (1)

with the curvature H(u) = Σ u ∂²φ/∂q², because ∂(uᵀG v)/∂q = H(u) v.  G′ and H′ are kernels compiled for duals, φ″ and
φ̇″ are compiled for hyper-duals.  Where coordinates are not joints, with hats on what belongs to joints, v̂ = Γ v and
V = ∂v̂/∂q, (1) is Γᵀ(Ĝ′ᵀy + Ĥ(u)′v̂) + VᵀĜ′ᵀu and ΓᵀĜ′ᵀu, and ψ″ is that of joints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import dual_kernels, hyper_kernels
from kinegrad.constraints.assembly import check_set
from kinegrad.constraints.constraint_set import ConstraintSet
from kinegrad.design import coordinates, elements
from kinegrad.design.constraints import JACOBIAN, MOTION, moved_tables, row_slots, run_rows
from kinegrad.design.curvature import frame_second_slopes, kernel_second_slopes
from kinegrad.design.hessian import weighted_pairs
from kinegrad.design.parameters import Design, frame_slopes, kernel_slopes
from kinegrad.design.running import model_of
from kinegrad.errors import InputError
from kinegrad.results import Result

__all__ = ["ConstraintDesignHessian", "constraint_design_hessian"]

Array = NDArray[np.float64]
Axis = engine.Axis
_CURVATURE = engine.Kernel(
    dual_kernels.constraint_curvature,
    engine.Q,
    (engine.Result("dcurvature_dp", (Axis.PER_POSITION, Axis.PER_POSITION)),),
    tables=row_slots,
    with_elements=engine.indifferent,
)
_SECOND = replace(MOTION, function=hyper_kernels.constraint_motion)


@dataclass(frozen=True, eq=False)
class ConstraintDesignHessian(Result):
    """Second derivatives of yᵀφ + uᵀφ̇; ``d2_dqdp[..., i, k]`` is of coordinate i and parameter k.

    Attributes
    ----------
    d2_dqdp, d2_dvdp : ndarray, shape (..., n, p)
    d2_dpdp : ndarray, shape (..., p, p)
        With respect to two parameters; symmetric.
    """

    d2_dqdp: Array
    d2_dvdp: Array
    d2_dpdp: Array


def constraint_design_hessian(
    design: Design,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    w_errors: ArrayLike,
    w_rates: ArrayLike,
    *,
    threads: int | None = None,
) -> ConstraintDesignHessian:
    """The exact second derivatives of yᵀφ(q) + uᵀφ̇(q, v) that the parameters take part in, of weights y and u.

    As of :func:`constraint_design_derivatives`, what descriptions of constraints say in numbers does not vary.
    Angles and functions that build a model enter as in :func:`inverse_dynamics_design_hessian`.

    Parameters
    ----------
    design : Design
    constraints : ConstraintSet
        Of the design's model.
    q, v : array_like, shape (..., n)
        Coordinates and speeds.
    w_errors, w_rates : array_like, shape (..., m)
        Weights y of the errors, and u of their rates; batch shapes broadcast.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ConstraintDesignHessian
        ``d2_dqdp`` and ``d2_dvdp``, shape (..., n, p) each, and ``d2_dpdp``, shape (..., p, p).

    Examples
    --------
    >>> from kinegrad import samples
    >>> model, constraints = samples.four_bar()
    >>> design = Design(model, ["rocker.placement.x", "rocker.placement.rz"])
    >>> found = constraint_design_hessian(design, constraints, [0, 0, 0], [1, 0, 0], [1, 0], [0, 1])
    >>> found.d2_dqdp.shape, found.d2_dpdp.shape
    ((3, 2), (2, 2))
    """
    model = model_of(design)
    check_set(model, constraints)
    design, m, p = elements.without_elements(design), constraints.m, design.p
    weights = [_weights(name, x, m) for name, x in (("w_errors", w_errors), ("w_rates", w_rates))]
    at = None
    state: tuple[Any, ...] = (q, v)
    if model.coordinates:
        at = engine.Expansion(model, {"q": q, "v": v})
        state, design = (at.q, at.v), coordinates.primitive_design(design)
    whole, rows, _ = engine.checked(_SECOND, design.model, (*state, np.zeros(len(design.model.joints))))
    whole.check_finite()
    try:
        shape = np.broadcast_shapes(whole.shape, *(x.shape[:-1] for x in weights))
    except ValueError:
        found = f"`w_errors` and `w_rates` have batch shapes {[x.shape[:-1] for x in weights]}"
        raise InputError(f"{found}; expected such that broadcast with {whole.shape}, that of `q` and `v`") from None
    batch, (rates, *_) = run_rows(JACOBIAN, design, constraints, (state[0],), threads)
    n = len(design.model.joints)
    slopes = np.broadcast_to(rates.reshape(*batch.shape, p, m, n), (*shape, p, m, n))
    y, u = (np.broadcast_to(x, (*shape, m)) for x in weights)
    place, speeds = (np.broadcast_to(np.asarray(x, dtype=float), (*shape, n)) for x in state)
    with np.errstate(all="ignore"):  # what overflows is found in the end
        by_q, by_v = ((slopes * x[..., None, :, None]).sum(axis=-2) for x in (y, u))
        if u.any() and speeds.any():
            by_q = by_q + _bent(design, constraints, place, speeds, u, threads)
        by_p = _second(design, constraints, (whole, rows), (y, u), threads)
    if at is not None:
        by_delta, of_speeds = at.by_acceleration(by_q, inner=1), at.by_acceleration(by_v, inner=1)
        at.weight_slope(at.given["v"]).add_pulled(by_delta, by_v, 1)
        by_q, by_v = by_delta, of_speeds
    engine.check_sums(by_q, by_v, by_p)
    by_q, by_v = (np.ascontiguousarray(x.swapaxes(-1, -2)) for x in (by_q, by_v))
    return ConstraintDesignHessian(by_q, by_v, by_p)


def _weights(name: str, value: Any, m: int) -> Array:
    x = engine.real(name, value)
    if not x.ndim or x.shape[-1] != m:
        raise InputError(f"`{name}` has shape {x.shape}; the constraints have {m} rows, so its last axis must be {m}")
    if not np.isfinite(x).all():
        raise engine.not_finite(name, x)
    return x


def _bent(design: Design, constraints: ConstraintSet, q: Array, v: Array, u: Array, threads: int | None) -> Array:
    """H(u)′ v, (..., p, n)."""
    n, p = q.shape[-1], design.p
    rows = engine.kernel_array(u.reshape(-1, constraints.m))
    _, (found,) = run_rows(_CURVATURE, design, constraints, (q.reshape(-1, n),), threads, (rows,))
    H = found.reshape(*q.shape[:-1], p, n, n)
    return np.asarray(np.multiply(H, v[..., None, None, :], order="C").sum(axis=-1))


def _second(
    design: Design, constraints: ConstraintSet, given: tuple[engine.Batch, Any], weights: tuple[Array, Array],
    threads: int | None,
) -> Array:  # fmt: skip
    """ψ″, (..., p, p)."""
    (batch, rows), p, tables = given, design.p, constraints._tables
    first = moved_tables(design, constraints, frame_slopes(design), p)
    second = moved_tables(design, constraints, frame_second_slopes(design), p * p)
    curved = [engine.Curved(None, x, xx.reshape(p, p, -1)) for x, xx in zip(first, second, strict=True)]
    found = engine.run_pairs(
        _SECOND, batch, kernel_slopes(design)[0], kernel_second_slopes(design), rows, [tuple(tables), *curved], threads,
        (constraints.m,),
    )  # fmt: skip
    return weighted_pairs(batch, found[0], weights[0]) + weighted_pairs(batch, found[1], weights[1])
