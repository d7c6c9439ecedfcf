"""Derivatives of hybrid dynamics under constraints with respect to design parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._engine import saddle
from kinegrad.constrained.design import checked_slopes, loose_ends, pulled
from kinegrad.constrained.hybrid import constrained_hybrid_dynamics, constrained_hybrid_dynamics_derivatives
from kinegrad.constrained.system import REDUNDANT, Stabilisation, quietly, solve_dense, stabilisation_law, unmet
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.assembly import check_set
from kinegrad.design import (
    Design,
    constraint_design_derivatives,
    constraint_jacobian_design_derivatives,
    hybrid_dynamics_design_derivatives,
    inverse_dynamics_design_derivatives,
)
from kinegrad.design.running import loads_of, model_of
from kinegrad.dynamics import mass_matrix
from kinegrad.hybrid import prescribed_flags, without
from kinegrad.loads import Loads
from kinegrad.results import Result

__all__ = ["ConstrainedHybridDynamicsDesignDerivatives", "constrained_hybrid_dynamics_design_derivatives"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ConstrainedHybridDynamicsDesignDerivatives(Result):
    """Derivatives of accelerations, torques and forces of constraints with respect to each parameter.

    Attributes
    ----------
    da_dp, dtau_dp : ndarray, shape (..., n, p)
        Those of prescribed accelerations and of given torques are what was given for them.
    dforces_dp : ndarray, shape (..., m, p)
    """

    da_dp: Array
    dtau_dp: Array
    dforces_dp: Array


@quietly
def constrained_hybrid_dynamics_design_derivatives(
    design: Design,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Iterable[str],
    dq_dp: ArrayLike | None = None,
    dv_dp: ArrayLike | None = None,
    dtau_dp: ArrayLike | None = None,
    da_dp: ArrayLike | None = None,
    loads: Loads | None = None,
    method: str = "range-space",
    stabilisation: Stabilisation = None,
    redundant: str = "error",
    threads: int | None = None,
) -> ConstrainedHybridDynamicsDesignDerivatives:
    """Differentiate the results of :func:`constrained_hybrid_dynamics` with respect to each parameter.

    Parameters
    ----------
    design : Design
    constraints : ConstraintSet
        Of the design's model.  Numbers in it do not vary; frames that it names do, if they are parameters.
    q, v, tau, a : array_like, shape (..., n)
        As of :func:`constrained_hybrid_dynamics`.
    prescribed : sequence of str
        Names of the joints whose accelerations are given.
    dq_dp, dv_dp, dtau_dp, da_dp : array_like, shape (..., n, p), optional
        How the state, the torques of free joints and the accelerations of prescribed ones follow the parameters; other
        entries are ignored.
    loads : Loads, optional
        External forces and torques on links; those of the design if it has any.
    method, stabilisation, redundant, threads
        As of :func:`constrained_dynamics`.

    Returns
    -------
    ConstrainedHybridDynamicsDesignDerivatives

    Raises
    ------
    SingularError
        As :func:`constrained_hybrid_dynamics`.

    Examples
    --------
    How the torque of a motor that starts a four-bar linkage follows the mass of its rocker:

    >>> from kinegrad import samples
    >>> model, loop = samples.four_bar()
    >>> design, zero = Design(model, ["rocker.mass"]), [0, 0, 0]
    >>> start = [10.0, 0, 0]  # rad/s²
    >>> change = constrained_hybrid_dynamics_design_derivatives(
    ...     design, loop, zero, zero, zero, start, prescribed=["crank"]
    ... )
    >>> change.dtau_dp.shape
    (3, 1)
    """
    model = model_of(design)
    check_set(model, constraints)
    flags = prescribed_flags(model, prescribed)
    held, free = flags == 1, np.flatnonzero(flags == 0)
    names = [model.speed_names[k] for k in np.flatnonzero(held)]
    tau, a = without("tau", tau, held), without("a", a, ~held)
    follow: dict[str, Any] = {"dq_dp": dq_dp, "dv_dp": dv_dp}
    follow["dtau_dp"] = None if dtau_dp is None else without("dtau_dp", dtau_dp, held[:, None])
    follow["da_dp"] = None if da_dp is None else without("da_dp", da_dp, ~held[:, None])
    if not constraints.m:
        known = hybrid_dynamics_design_derivatives(
            design, q, v, tau, a, prescribed=names, loads=loads, threads=threads, **follow
        )
        none = np.zeros((*known.da_dp.shape[:-2], 0, design.p))
        return ConstrainedHybridDynamicsDesignDerivatives(known.da_dp, known.dtau_dp, none)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    alpha, beta = stabilisation_law(stabilisation)
    how: dict[str, Any] = {"method": method, "stabilisation": stabilisation, "redundant": redundant, "threads": threads}
    how |= {"loads": loads_of(design, loads), "prescribed": names}
    found = constrained_hybrid_dynamics(model, constraints, q, v, tau, a, **how)
    f = found.forces
    by_torque = inverse_dynamics_design_derivatives(design, q, v, found.a, loads=loads, threads=threads)
    dG = constraint_jacobian_design_derivatives(design, constraints, q, threads=threads)
    rows = constraint_design_derivatives(design, constraints, q, v, found.a, threads=threads)
    s = -(np.asarray(rows.dacceleration_dp) + 2 * alpha * np.asarray(rows.dvelocity_dp) + beta**2 * rows.derror_dp)
    G, M = constraints.jacobian(q, threads=threads), mass_matrix(model, q, threads=threads)
    r, dG_x = pulled(dG, f) - by_torque, dG[..., free, :]
    if least:
        s = s - saddle.tilted(G[..., free], pulled(dG_x, unmet(constraints, q, v, found.a, (alpha, beta), threads)))
    by_x, by_f = solve_dense(
        constraints, q, method, M[..., free[:, None], free], G[..., free], r[..., free, :], s, least=least, free=free
    )
    if least:
        by_f = by_f + loose_ends(G[..., free], dG_x, f)
    by_a = np.zeros((*by_x.shape[:-2], model.nv, design.p))
    by_a[..., free, :] = by_x
    by_tau = np.where(held[:, None], M @ by_a - saddle.T(G) @ by_f - r, 0.0)
    if any(x is not None for x in follow.values()):
        by = constrained_hybrid_dynamics_derivatives(model, constraints, q, v, tau, a, **how)
        for name, x in follow.items():
            if x is not None:
                per, change = name.removesuffix("_dp"), checked_slopes(design, name, x, found.a.shape[:-1])
                by_a = by_a + getattr(by, f"da_{per}") @ change
                by_tau = by_tau + getattr(by, f"dtau_{per}") @ change
                by_f = by_f + getattr(by, f"dforces_{per}") @ change
    engine.check_sums(by_a, by_tau, by_f)
    return ConstrainedHybridDynamicsDesignDerivatives(*map(np.ascontiguousarray, (by_a, by_tau, by_f)))
