"""Derivatives of hybrid dynamics with respect to design parameters, compiled for dual numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import dual_kernels as kernels
from kinegrad.design import elements
from kinegrad.design.dynamics import accelerations_in_coordinates
from kinegrad.design.parameters import Design, kernel_slopes
from kinegrad.design.running import check, followed, loads_of, model_of, parameters_last
from kinegrad.hybrid import HYBRID, HybridDynamics, hybrid_dynamics, prescribed_flags, without
from kinegrad.loads import Loads
from kinegrad.results import Result

__all__ = ["HybridDynamicsDesignDerivatives", "hybrid_dynamics_design_derivatives"]

Array = NDArray[np.float64]
_HYBRID = replace(HYBRID, function=kernels.hybrid_dynamics)


@dataclass(frozen=True, eq=False)
class HybridDynamicsDesignDerivatives(Result):
    """Derivatives of the accelerations and torques of all joints with respect to the parameters, (..., n, p) each.

    Those of prescribed accelerations and of given torques are what was given for them.
    """

    da_dp: Array
    dtau_dp: Array


def hybrid_dynamics_design_derivatives(
    design: Design,
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
    threads: int | None = None,
) -> HybridDynamicsDesignDerivatives:
    """da/dp and dτ/dp: how all that :func:`hybrid_dynamics` returns changes with each parameter.

    Parameters
    ----------
    design : Design
    q, v, tau, a : array_like, shape (..., n)
        As in :func:`hybrid_dynamics`.
    prescribed : sequence of str
        Names of the joints whose accelerations are given.
    dq_dp, dv_dp, dtau_dp, da_dp : array_like, shape (..., n, p), optional
        How the state, the torques of free joints and the accelerations of prescribed ones follow the parameters; the
        other entries are ignored.
    loads : Loads, optional
        External forces and torques on links; those of the design if it has any.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    HybridDynamicsDesignDerivatives

    Raises
    ------
    SingularError
        If nothing resists a free joint.

    Examples
    --------
    A cart that accelerates at 2 m/s²: 2 N more for each kg of it, less for each kg of the rod, which swings back.

    >>> from kinegrad import samples
    >>> design = Design(samples.cart_pendulum(), ["cart.mass", "rod.mass"])
    >>> change = hybrid_dynamics_design_derivatives(design, [0, 0], [0, 0], [0, 0], [2, 0], prescribed=["track"])
    >>> change.dtau_dp[0]
    array([2.   , 0.125])
    """
    follow = (dq_dp, dv_dp, dtau_dp, da_dp)
    return hybrid_dynamics_along(design, (q, v, tau, a), follow, prescribed, loads, threads)[1]


def hybrid_dynamics_along(
    design: Design,
    state: Sequence[Any],
    follow: Sequence[Any],
    prescribed: Iterable[str],
    loads: Loads | None = None,
    threads: int | None = None,
) -> tuple[HybridDynamics, HybridDynamicsDesignDerivatives]:
    """Accelerations and torques, and their derivatives, in one pass, of q, v, τ and a, and of how they follow."""
    flags = prescribed_flags(model_of(design), prescribed)
    held, free = flags == 1, flags == 0
    (q, v, tau, a), (dq, dv, dtau, da) = state, follow
    dtau = None if dtau is None else without("dtau_dp", dtau, held[:, None])
    da = None if da is None else without("da_dp", da, free[:, None])
    given = (q, v, without("tau", tau, held), without("a", a, free))
    model = design.model
    if model.elements:
        return _with_elements(design, given, (dq, dv, dtau, da), held, loads, threads)
    if model.coordinates:
        names, whole = [model.speed_names[i] for i in np.flatnonzero(flags)], loads_of(design, loads)
        known = hybrid_dynamics(model, *given, prescribed=names, loads=whole, threads=threads)
        both = accelerations_in_coordinates(design, held, (q, v, known.a), (dq, dv, dtau, da), loads, threads)
        return known, HybridDynamicsDesignDerivatives(*both)
    batch, pairs, load_rows = followed(design, _HYBRID, given, (dq, dv, dtau, da), loads)
    slopes, varied = kernel_slopes(design)
    turns = [None] * 3 if varied is None else varied
    fixed = [x if dx is None else (x, dx) for x, dx in zip(load_rows, turns, strict=True)]
    values, found = engine.run_directions(_HYBRID, batch, slopes, pairs, [flags, *fixed], threads)
    check(batch, found)
    motion = HybridDynamics(*(x.reshape(*batch.shape, batch.n) for x in values))
    return motion, HybridDynamicsDesignDerivatives(*(parameters_last(batch, x, (batch.n,)) for x in found))


def _with_elements(
    design: Design, state: Sequence[Any], follow: Sequence[Any], held: NDArray[np.bool_], loads: Loads | None,
    threads: int | None,
) -> tuple[HybridDynamics, HybridDynamicsDesignDerivatives]:  # fmt: skip
    """The same with force elements, which push free joints and take from what prescribed ones need."""
    (q, v, tau, a), (dq, dv, dtau, da) = state, follow
    names = [design.model.speed_names[i] for i in np.flatnonzero(held)]
    acting, plain = elements.changes(design, q, v, dq, dv, threads), elements.without_elements(design)
    pushed, lost = engine.with_forces(tau, acting.Q)
    slopes = (dq, dv, acting.added("dtau_dp", dtau), da)
    found, change = hybrid_dynamics_along(plain, (q, v, pushed, a), slopes, names, loads, threads)
    forces = np.where(held, found.tau - acting.Q, tau)
    by_p = np.where(held[:, None], change.dtau_dp - acting.dQ_dp, 0.0 if dtau is None else dtau)
    engine.lose(lost, (found.a, 1), (forces, 1), (change.da_dp, 2), (by_p, 2))
    engine.check_sums(forces, by_p)
    return HybridDynamics(found.a, forces), HybridDynamicsDesignDerivatives(change.da_dp, by_p)
