"""Objectives of a motion, J = g(end) + ∫ f dt, and their total derivatives with respect to design parameters.

g and f are sums of terms (:mod:`kinegrad.objectives.terms`), each of which knows its partial derivatives.
The direct method adds up [anderson2002] (2):  dJ/dp = J,p + J,q dq/dp + J,v dv/dp + J,a da/dp + J,τ dτ/dp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, SolveError, shown
from kinegrad.motion import Motion
from kinegrad.objectives.terms import Term
from kinegrad.results import Result

__all__ = ["Objective", "ObjectiveGradient", "objective_gradient", "objective_value"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Objective(Result):
    """J = g(end) + ∫ f dt.

    Parameters
    ----------
    end : sequence of Term
        Added up at the end of the motion: g.
    integral : sequence of Term
        Added up and integrated over it: f.

    Examples
    --------
    >>> from kinegrad.objectives import EndPosition, TorqueSquared
    >>> reach = Objective(end=[EndPosition("forearm", [0.3, 0.4, 0.0])], integral=[TorqueSquared(1e-3)])
    """

    end: Sequence[Term] = ()
    integral: Sequence[Term] = ()

    def __post_init__(self) -> None:
        for name in ("end", "integral"):
            terms = getattr(self, name)
            if not isinstance(terms, list | tuple) or not all(map(_is_term, terms)):
                raise InputError(f"`{name}` is {shown(terms)}; expected a list of terms, such as [TorqueSquared()]")
            object.__setattr__(self, name, tuple(terms))


def _is_term(term: Any) -> bool:
    return hasattr(term, "evaluate") and not isinstance(term, type)


def check_objective(objective: Any) -> None:
    """An Objective, and not one of the terms it is made of."""
    if not isinstance(objective, Objective):
        found = type(objective).__name__
        raise InputError(f"`objective` is a {found}; expected Objective(end=[...], integral=[...])")


@dataclass(frozen=True, eq=False)
class ObjectiveGradient(Result):
    """J, shape (...), and its total derivative dJ/dp, shape (..., p)."""

    value: Array
    dvalue_dp: Array


def objective_value(simulation: Motion, objective: Objective) -> Array:
    """J of a motion, shape (...).

    Examples
    --------
    >>> from kinegrad import samples
    >>> from kinegrad.objectives import KineticEnergy
    >>> from kinegrad.simulate import simulate
    >>> motion = simulate(samples.double_pendulum(), [0, 0], [1, 0], [0, 1])
    >>> float(objective_value(motion, Objective(integral=[KineticEnergy()])).round(6))
    0.980346
    """
    parts = _parts(simulation, objective)
    value = np.zeros(simulation.q.shape[1:-1])
    with np.errstate(all="ignore"):  # what overflows is found in the end
        for x, weights, term in parts:
            value += np.tensordot(weights, term.evaluate(x).value, 1)
    check_sums(value)
    return value


def objective_gradient(simulation: Motion, objective: Objective) -> ObjectiveGradient:
    """J and its total derivative with respect to the design's parameters, by the direct method (1)–(2).

    Parameters
    ----------
    simulation : Motion
        Of a design, such as a Simulation or FixedStepSimulation.  Integrals are taken by Gauss's rule in each step of
        the first (in each interval of any other motion), by Gregory's on the steps of the second: of that sum, the
        derivative is exact.
    objective : Objective

    Returns
    -------
    ObjectiveGradient

    Examples
    --------
    >>> from kinegrad import Design, samples
    >>> from kinegrad.objectives import KineticEnergy
    >>> from kinegrad.simulate import simulate
    >>> pendulum = samples.double_pendulum()
    >>> motion = simulate(pendulum, [1, 0], [0, 0], [0, 1], design=Design(pendulum, ["Q.mass", "gravity.z"]))
    >>> objective_gradient(motion, Objective(integral=[KineticEnergy()])).dvalue_dp.round(4)
    array([ 5.3306, -0.7926])
    """
    parts = _parts(simulation, objective)
    design = simulation.design
    if design is None:
        raise InputError("`simulation` was made without a design; expected simulate(..., design=Design(model, [...]))")
    batch = simulation.q.shape[1:-1]
    value, gradient = np.zeros(batch), np.zeros((*batch, design.p))
    with np.errstate(all="ignore"):  # what overflows is found in the end
        for x, weights, term in parts:
            found = term.evaluate(x)
            value += np.tensordot(weights, found.value, 1)
            pairs = ((found.dq, x.dq_dp), (found.dv, x.dv_dp), (found.da, x.da_dp), (found.dtau, x.dtau_dp))
            for partial, slope in pairs:
                if partial is not None and slope is not None:
                    gradient += np.einsum("m,m...i,m...ip->...p", weights, partial, slope)
            if found.dp is not None:
                gradient += np.tensordot(weights, found.dp, 1)
        gradient += _of_weights(simulation, objective)
        for before, after, dt_dp in simulation.jumps():  # ∫ f dt has f⁻ of more time, and f⁺ of less
            for term in objective.integral:
                gradient += (term.evaluate(before).value - term.evaluate(after).value)[0] * dt_dp
    check_sums(value, gradient)
    return ObjectiveGradient(value, gradient)


def _of_weights(simulation: Motion, objective: Objective) -> Array | float:
    """What integrals gain because the weights of their nodes follow the parameters."""
    slopes = simulation.weight_slopes() if objective.integral else None
    if slopes is None:
        return 0.0
    nodes, _ = simulation.quadrature()
    check_timeless(objective.integral, nodes)
    value = sum(np.asarray(term.evaluate(nodes).value) for term in objective.integral)
    return np.asarray(np.tensordot(value, slopes, 1))


def check_timeless(terms: Sequence[Term], at: Motion) -> None:
    """Refuse integrands that depend on time explicitly, where the times of nodes follow the parameters."""
    later = Motion(at.model, 2 * at.t, at.q, at.v, at.a, at.tau, design=at.design)
    for term in terms:
        if not np.array_equal(term.evaluate(at).value, term.evaluate(later).value):
            raise InputError(
                f"`integral` has a {type(term).__name__} that depends on time explicitly, and times at which it is "
                "evaluated, in steps that events split, follow the parameters; expected a term of the state alone"
            )


def check_sums(*parts: Array) -> None:
    """Refuse an objective and its gradient that are not finite, though the motion is."""
    if not all(np.isfinite(x).all() for x in parts):
        raise SolveError(
            "the objective or its gradient is not finite on a finite motion: it overflows float64, or a term returns "
            "NaN or infinity; expected smaller numbers, or a shorter motion"
        )


def add_terms(terms: Sequence[Term], at: Motion, weights: Array, value: Array, dp: Array | None) -> Array:
    """Weighted partial derivatives of terms, (4, m, ..., n) for q, v, a, τ.

    Their values, (...), and what is explicit in the parameters, (..., p), are added to `value` and `dp`.
    """
    share = np.zeros((4, *at.v.shape))
    scale = weights.reshape(-1, *(1,) * (at.q.ndim - 1))
    for term in terms:
        found = term.evaluate(at)
        _add_weighted(value, weights, found.value)
        for total, x in zip(share, (found.dq, found.dv, found.da, found.dtau), strict=True):
            if x is not None:
                total += scale * x
        if found.dp is not None and dp is not None:
            _add_weighted(dp, weights, found.dp)
    return share


def _add_weighted(total: Array, weights: Array, x: Array) -> None:
    """total += Σ w x, moment by moment: the same bits whatever the batch, which a product of matrices is not."""
    for weight, row in zip(weights, x, strict=True):
        total += weight * row


def _parts(simulation: Any, objective: Objective) -> list[tuple[Motion, Array, Term]]:
    """Where to evaluate each term, with which weights."""
    if not isinstance(simulation, Motion):
        raise InputError(f"`simulation` is a {type(simulation).__name__}; expected what simulate returns, or a Motion")
    check_objective(objective)
    if not getattr(simulation, "success", True):
        raise SolveError(f"`simulation` has not reached its end: {getattr(simulation, 'message', '')}")
    if getattr(simulation, "_models", None) is not None:
        raise InputError("`simulation` is of several models, and terms are of one; expected a simulation of each model")
    parts: list[tuple[Motion, Array, Term]] = []
    if objective.end:
        parts += [(simulation[-1:], np.ones(1), term) for term in objective.end]
    if objective.integral:
        nodes, weights = simulation.quadrature()
        parts += [(nodes, weights, term) for term in objective.integral]
    return parts
