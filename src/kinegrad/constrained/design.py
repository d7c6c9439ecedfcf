"""Derivatives of constrained motion and of impacts with respect to design parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._engine import saddle
from kinegrad.constrained.derivatives import constrained_dynamics_derivatives, impact_derivatives
from kinegrad.constrained.dynamics import constrained_dynamics, impact
from kinegrad.constrained.system import (
    REDUNDANT,
    Stabilisation,
    quietly,
    restitution_rows,
    solve_dense,
    stabilisation_law,
    unmet,
    unstopped,
)
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.assembly import check_set
from kinegrad.design import (
    Design,
    constraint_design_derivatives,
    constraint_jacobian_design_derivatives,
    inverse_dynamics_design_derivatives,
)
from kinegrad.design.running import loads_of, model_of
from kinegrad.dynamics import mass_matrix
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.results import Result

__all__ = [
    "ConstrainedDynamicsDesignDerivatives",
    "ImpactDesignDerivatives",
    "checked_slopes",
    "constrained_dynamics_design_derivatives",
    "impact_design_derivatives",
    "loose_ends",
    "pulled",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ConstrainedDynamicsDesignDerivatives(Result):
    """How accelerations and forces of constraints change with each parameter.

    Attributes
    ----------
    da_dp : ndarray, shape (..., n, p)
    dforces_dp : ndarray, shape (..., m, p)
    """

    da_dp: Array
    dforces_dp: Array


@dataclass(frozen=True, eq=False)
class ImpactDesignDerivatives(Result):
    """How speeds after an impact and its impulses change with each parameter.

    Attributes
    ----------
    dv_dp : ndarray, shape (..., n, p)
    dimpulses_dp : ndarray, shape (..., m, p)
    """

    dv_dp: Array
    dimpulses_dp: Array


@quietly
def constrained_dynamics_design_derivatives(
    design: Design,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    dq_dp: ArrayLike | None = None,
    dv_dp: ArrayLike | None = None,
    dtau_dp: ArrayLike | None = None,
    loads: Loads | None = None,
    method: str = "range-space",
    stabilisation: Stabilisation = None,
    redundant: str = "error",
    threads: int | None = None,
) -> ConstrainedDynamicsDesignDerivatives:
    """da/dp and dforces/dp: how the results of :func:`constrained_dynamics` change with each parameter.

    At fixed state and torques; or, if their own derivatives are given, the total derivative.  At the solution

        M da − Gᵀ df = −∂ID/∂p + ∂(Gᵀf)/∂p        G da = −∂(φ̈ + 2α φ̇ + β² φ)/∂p

    each right-hand side by duals, O(n) for each parameter, and one factorisation for all [kudruss2019].

    Parameters
    ----------
    design : Design
    constraints : ConstraintSet
        Of the design's model.  Numbers in it do not vary; frames that it names do, if they are parameters.
    q, v, tau : array_like, shape (..., n)
        Coordinates, speeds, and torques or forces.
    dq_dp, dv_dp, dtau_dp : array_like, shape (..., n, p), optional
        How the state and the torques follow the parameters.
    loads : Loads, optional
        External forces and torques on links; those of the design if it has any.
    method, stabilisation, redundant, threads
        As of :func:`constrained_dynamics`.

    Returns
    -------
    ConstrainedDynamicsDesignDerivatives
        ``da_dp``, shape (..., n, p), and ``dforces_dp``, shape (..., m, p).

    Examples
    --------
    A crank that turns a four-bar linkage: a heavier rocker is turned more slowly.

    >>> from kinegrad import samples
    >>> model, constraints = samples.four_bar()
    >>> design = Design(model, ["rocker.mass"])
    >>> change = constrained_dynamics_design_derivatives(design, constraints, [0, 0, 0], [0, 0, 0], [50, 0, 0])
    >>> change.da_dp.shape, change.dforces_dp.shape
    ((3, 1), (2, 1))
    """
    model = model_of(design)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    alpha, beta = stabilisation_law(stabilisation)
    how: dict[str, Any] = {"method": method, "redundant": redundant, "threads": threads}
    options = how | {"stabilisation": stabilisation}
    acting = loads_of(design, loads)
    found = constrained_dynamics(model, constraints, q, v, tau, loads=acting, **options)
    a, f = found.a, found.forces
    r = -inverse_dynamics_design_derivatives(design, q, v, a, loads=loads, threads=threads)
    dG = constraint_jacobian_design_derivatives(design, constraints, q, threads=threads)
    rows = constraint_design_derivatives(design, constraints, q, v, a, threads=threads)
    s = -(np.asarray(rows.dacceleration_dp) + 2 * alpha * np.asarray(rows.dvelocity_dp) + beta**2 * rows.derror_dp)
    G, M = constraints.jacobian(q, threads=threads), mass_matrix(model, q, threads=threads)
    if least:
        s = s - saddle.tilted(G, pulled(dG, unmet(constraints, q, v, a, (alpha, beta), threads)))
    by_a, by_f = solve_dense(constraints, q, method, M, G, r + pulled(dG, f), s, least=least)
    if least:
        by_f = by_f + loose_ends(G, dG, f)
    follow = {"dq_dp": dq_dp, "dv_dp": dv_dp, "dtau_dp": dtau_dp}
    if any(x is not None for x in follow.values()):
        by = constrained_dynamics_derivatives(model, constraints, q, v, tau, loads=acting, **options)
        for name, x in follow.items():
            if x is not None:
                per, change = name.removesuffix("_dp"), checked_slopes(design, name, x, a.shape[:-1])
                by_a = by_a + getattr(by, f"da_{per}") @ change
                by_f = by_f + getattr(by, f"dforces_{per}") @ change
    engine.check_sums(by_a, by_f)
    return ConstrainedDynamicsDesignDerivatives(np.ascontiguousarray(by_a), np.ascontiguousarray(by_f))


@quietly
def impact_design_derivatives(
    design: Design,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    *,
    dq_dp: ArrayLike | None = None,
    dv_dp: ArrayLike | None = None,
    restitution: ArrayLike = 0.0,
    method: str = "range-space",
    redundant: str = "error",
    threads: int | None = None,
) -> ImpactDesignDerivatives:
    """dv⁺/dp and dΛ/dp: how the results of :func:`impact` change with each parameter.

    At fixed q and v; or, if their own derivatives are given, the total derivative.

    Parameters
    ----------
    design : Design
    constraints : ConstraintSet
        Of the design's model.
    q, v : array_like, shape (..., n)
        Coordinates, and speeds before the impact.
    dq_dp, dv_dp : array_like, shape (..., n, p), optional
        How they follow the parameters.
    restitution, method, redundant, threads
        As of :func:`impact`.

    Returns
    -------
    ImpactDesignDerivatives
        ``dv_dp``, shape (..., n, p), and ``dimpulses_dp``, shape (..., m, p).

    Examples
    --------
    >>> from kinegrad import Contact, samples
    >>> arm = samples.two_link()
    >>> floor = ConstraintSet(arm, [Contact("forearm", directions="y")])
    >>> impact_design_derivatives(Design(arm, ["forearm.mass"]), floor, [0.5, 0.3], [0, 1]).dv_dp.shape
    (2, 1)
    """
    model = model_of(design)
    check_set(model, constraints)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    e = restitution_rows(constraints, restitution)
    options: dict[str, Any] = {"restitution": e, "method": method, "redundant": redundant, "threads": threads}
    found = impact(model, constraints, q, v, **options)
    before, still = engine.real("v", v), np.zeros(model.nv)
    change = found.v - before
    moved, standing = (
        inverse_dynamics_design_derivatives(design, q, still, x, threads=threads) for x in (change, still)
    )
    dG = constraint_jacobian_design_derivatives(design, constraints, q, threads=threads)
    rates = (constraint_design_derivatives(design, constraints, q, x, threads=threads) for x in (found.v, before))
    after_p, before_p = (np.asarray(x.dvelocity_dp) for x in rates)
    G, M = constraints.jacobian(q, threads=threads), mass_matrix(model, q, threads=threads)
    r = standing - moved + pulled(dG, found.impulses)
    right = -(after_p + e[:, None] * before_p)
    if least:
        left = unstopped(constraints, q, before, found.v, e, threads)
        right = right - saddle.tilted(G, pulled(dG, left))
    by_v, by_l = solve_dense(constraints, q, method, M, G, r, right, least=least)
    if least:
        by_l = by_l + loose_ends(G, dG, found.impulses)
    if dq_dp is not None or dv_dp is not None:
        by = impact_derivatives(model, constraints, q, v, **options)
        for name, x, to_v, to_l in (
            ("dq_dp", dq_dp, by.dv_dq, by.dimpulses_dq),
            ("dv_dp", dv_dp, by.dv_dv, by.dimpulses_dv),
        ):
            if x is not None:
                follow = checked_slopes(design, name, x, found.v.shape[:-1])
                by_v, by_l = by_v + to_v @ follow, by_l + to_l @ follow
    engine.check_sums(by_v, by_l)
    return ImpactDesignDerivatives(np.ascontiguousarray(by_v), np.ascontiguousarray(by_l))


def pulled(dG: Array, f: Array) -> Array:
    """∂(Gᵀf)/∂p at fixed f, (..., n, p)."""
    return np.asarray((dG * f[..., :, None, None]).sum(axis=-3))


def loose_ends(G: Array, dG: Array, f: Array) -> Array:
    """What forces of least norm change by with p beyond the range of G, (..., m, p)."""
    g = saddle.source(np.broadcast_to(G, (*f.shape[:-1], *G.shape[-2:])), f)
    return saddle.loose_ends(G, (dG * g[..., None, :, None]).sum(axis=-2))


def checked_slopes(design: Design, name: str, given: Any, batch: tuple[int, ...]) -> Array:
    """How something follows the parameters, (..., n, p)."""
    x, shape = engine.real(name, given), (*batch, design.model.nv, design.p)
    try:
        if x.ndim < 2:
            raise ValueError
        full = np.broadcast_to(x, shape)
    except ValueError:
        raise InputError(f"`{name}` has shape {x.shape}; expected one that broadcasts to {shape}") from None
    if not np.isfinite(x).all():
        raise engine.not_finite(name, x)
    return full
