"""Objectives of a motion, J = g(end) + ∫ f dt, and their total derivatives with respect to design parameters.

g and f are sums of terms, each of which knows its partial derivatives with respect to q, v, a, τ and, explicitly, p.
The direct method adds up [anderson2002] (2):  dJ/dp = J,p + J,q dq/dp + J,v dv/dp + J,a da/dp + J,τ dτ/dp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.derivatives import inverse_dynamics_vjp
from kinegrad.design import Design
from kinegrad.design_derivatives import energy_design_derivatives, transform_design_derivatives
from kinegrad.dynamics import inverse_dynamics
from kinegrad.energy import kinetic_energy, potential_energy
from kinegrad.errors import InputError, SolveError, shown
from kinegrad.kinematics import point_motion
from kinegrad.kinematics_derivatives import point_motion_derivatives
from kinegrad.model import Model
from kinegrad.results import Result, owned
from kinegrad.simulate.integrators import FixedStepSimulation
from kinegrad.simulate.simulation import Simulation

__all__ = [
    "EndPosition",
    "Evaluation",
    "KineticEnergy",
    "Moments",
    "Objective",
    "ObjectiveGradient",
    "PotentialEnergy",
    "Term",
    "TorqueSquared",
    "Tracking",
    "UserTerm",
    "objective_gradient",
    "objective_value",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments(Result):
    """What a term may look at: times, shape (m,), and q, v, a, tau, shape (m, ..., n)."""

    model: Model
    design: Design | None
    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array


@dataclass(frozen=True, eq=False)
class Evaluation(Result):
    """A term's value, shape (m, ...), and its partial derivatives, (m, ..., n) and (m, ..., p); None for zero."""

    value: Array
    dq: Array | None = None
    dv: Array | None = None
    da: Array | None = None
    dtau: Array | None = None
    dp: Array | None = None


class Term(Protocol):
    """Anything that can be evaluated at moments of a motion."""

    def evaluate(self, at: Moments) -> Evaluation:
        """Value and partial derivatives; `dp` only if ``at.design`` is given."""
        ...


@dataclass(frozen=True)
class KineticEnergy:
    """½ vᵀ M v, J."""

    def evaluate(self, at: Moments) -> Evaluation:
        """Both gradients from one product of M(q) v, an inverse dynamics without gravity and springs, with v."""
        inertial = at.model.replace(gravity=np.zeros(3), stiffness=np.zeros(at.model.n))
        change = inverse_dynamics_vjp(inertial, at.q, np.zeros_like(at.q), at.v, at.v)
        dp = None if at.design is None else energy_design_derivatives(at.design, at.q, at.v).dkinetic_dp
        return Evaluation(kinetic_energy(at.model, at.q, at.v), change.dq / 2, change.da, dp=dp)


@dataclass(frozen=True)
class PotentialEnergy:
    """Of gravity and springs, J."""

    def evaluate(self, at: Moments) -> Evaluation:
        """Its gradient is what holds the links and the springs still."""
        still = np.zeros_like(at.q)
        holding = inverse_dynamics(at.model, at.q, still, still)
        dp = None if at.design is None else energy_design_derivatives(at.design, at.q, still).dpotential_dp
        return Evaluation(potential_energy(at.model, at.q), holding, dp=dp)


@dataclass(frozen=True, eq=False)
class TorqueSquared(Result):
    """Σ wᵢ τᵢ², with weights of shape (n,) or one for all."""

    weight: ArrayLike = 1.0

    def __post_init__(self) -> None:
        _own(self, "weight")

    def evaluate(self, at: Moments) -> Evaluation:
        """Of the torques alone."""
        weighted = _weight(self.weight, at.model) * at.tau
        return Evaluation((weighted * at.tau).sum(axis=-1), dtau=2 * weighted)


@dataclass(frozen=True, eq=False)
class Tracking(Result):
    """Σ wᵢ (qᵢ − rᵢ(t))²: distance from a reference, a constant of shape (n,) or a function of times (m,) → (m, n)."""

    reference: ArrayLike | Callable[[Array], ArrayLike]
    weight: ArrayLike = 1.0

    def __post_init__(self) -> None:
        _own(self, "reference", "weight")

    def evaluate(self, at: Moments) -> Evaluation:
        """Of the coordinates and the time."""
        given = engine.real("reference", self.reference(at.t) if callable(self.reference) else self.reference)
        expected = (len(at.t), at.model.n) if callable(self.reference) else (at.model.n,)
        if given.shape != expected:
            raise InputError(f"`reference` of Tracking gives shape {given.shape}; expected {expected}")
        away = at.q - (given.reshape(len(at.t), *(1,) * (at.q.ndim - 2), -1) if callable(self.reference) else given)
        weighted = _weight(self.weight, at.model) * away
        return Evaluation((weighted * away).sum(axis=-1), 2 * weighted)


@dataclass(frozen=True, eq=False)
class EndPosition(Result):
    """|x − target|², where x is a point of a link in the world, m²."""

    link: str
    target: ArrayLike
    point: ArrayLike = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        _own(self, "target", "point")

    def evaluate(self, at: Moments) -> Evaluation:
        """Of the coordinates, and of lengths among the parameters."""
        target = engine.real("target", self.target)
        if target.shape != (3,):
            raise InputError(f"`target` of EndPosition has shape {target.shape}; expected (3,), in the world, m")
        away = point_motion(at.model, at.q, link=self.link, point=self.point).position - target
        J = point_motion_derivatives(at.model, at.q, link=self.link, point=self.point).dposition_dq
        dp = None
        if at.design is not None:
            dT = transform_design_derivatives(at.design, at.q)[..., at.model.link_index(self.link), :3, :, :]
            dp = 2 * np.einsum("...i,...ijp,j->...p", away, dT, np.append(np.asarray(self.point, dtype=float), 1.0))
        return Evaluation((away**2).sum(axis=-1), 2 * np.einsum("...i,...ij->...j", away, J), dp=dp)


@dataclass(frozen=True, eq=False)
class UserTerm(Result):
    """A term of your own: a function from :class:`Moments` to an :class:`Evaluation`.

    Examples
    --------
    The speed of the last joint, squared:

    >>> def last_speed(at):
    ...     dv = np.zeros_like(at.v)
    ...     dv[..., -1] = 2 * at.v[..., -1]
    ...     return Evaluation(at.v[..., -1] ** 2, dv=dv)
    >>> objective = Objective(end=[UserTerm(last_speed)])
    """

    function: Callable[[Moments], Evaluation]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"`function` of a UserTerm is {shown(self.function)}; expected a callable of Moments")

    def evaluate(self, at: Moments) -> Evaluation:
        """Call the function with copies, which it may change, and check what it returns."""
        found = self.function(replace(at, **{x: getattr(at, x).copy() for x in ("t", "q", "v", "a", "tau")}))
        if not isinstance(found, Evaluation):
            raise InputError(f"the function of a UserTerm returns a {type(found).__name__}; expected an Evaluation")
        batch = at.t.shape + at.q.shape[1:-1]
        shapes = {"value": batch, **dict.fromkeys(("dq", "dv", "da", "dtau"), at.q.shape)}
        if at.design is not None:
            shapes["dp"] = (*batch, at.design.p)
        for name, shape in shapes.items():
            x = getattr(found, name)
            if (x is not None or name == "value") and np.shape(x) != shape:
                raise InputError(f"`{name}` of a UserTerm has shape {np.shape(x)}; expected {shape}")
        return found


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


def _own(term: Any, *names: str) -> None:
    """Replace arrays that were given by copies."""
    for name in names:
        object.__setattr__(term, name, owned(getattr(term, name)))


def _is_term(term: Any) -> bool:
    return hasattr(term, "evaluate") and not isinstance(term, type)


def _weight(weight: Any, model: Model) -> Array:
    """A weight of all joints, or one for each."""
    given = engine.real("weight", weight)
    if given.shape not in ((), (model.n,)):
        raise InputError(f"`weight` has shape {given.shape}; expected one number, or ({model.n},)")
    return given


def check_objective(objective: Any) -> None:
    """An Objective, and not one of the terms it is made of."""
    if not isinstance(objective, Objective):
        found = type(objective).__name__
        raise InputError(f"`objective` is a {found}; expected Objective(end=[...], integral=[...])")


@dataclass(frozen=True, eq=False)
class ObjectiveGradient(Result):
    """J, shape (...), and dJ/dp in all, shape (..., p)."""

    value: Array
    dvalue_dp: Array


def objective_value(simulation: Simulation | FixedStepSimulation, objective: Objective) -> Array:
    """J of a motion, shape (...).

    Examples
    --------
    >>> from kinegrad import samples
    >>> from kinegrad.simulate import simulate
    >>> motion = simulate(samples.double_pendulum(), [0, 0], [1, 0], [0, 1])
    >>> float(objective_value(motion, Objective(integral=[KineticEnergy()])).round(6))
    0.980346
    """
    parts = _parts(simulation, objective)
    value = np.zeros(simulation.q.shape[1:-1])
    with np.errstate(all="ignore"):  # what overflows is found in the end
        for x, weights, term in parts:
            value += np.tensordot(weights, term.evaluate(moments(x)).value, 1)
    check_sums(value)
    return value


def objective_gradient(simulation: Simulation | FixedStepSimulation, objective: Objective) -> ObjectiveGradient:
    """J and its total derivative with respect to the design's parameters, by the direct method (1)–(2).

    Parameters
    ----------
    simulation : Simulation or FixedStepSimulation
        Of a design.  Integrals are taken by Gauss's rule in each step of the first, by Gregory's on the steps of the
        second: of that sum, the derivative is exact.
    objective : Objective

    Returns
    -------
    ObjectiveGradient

    Examples
    --------
    >>> from kinegrad import Design, samples
    >>> from kinegrad.simulate import simulate
    >>> pendulum = samples.double_pendulum()
    >>> motion = simulate(pendulum, [1, 0], [0, 0], [0, 1], design=Design(pendulum, ["Q.mass", "gravity.z"]))
    >>> objective_gradient(motion, Objective(integral=[KineticEnergy()])).dvalue_dp.round(4)
    array([ 5.3306, -0.7926])
    """
    parts = _parts(simulation, objective)
    design = simulation._law.design
    if design is None:
        raise InputError("`simulation` was made without a design; expected simulate(..., design=Design(model, [...]))")
    batch = simulation.q.shape[1:-1]
    value, gradient = np.zeros(batch), np.zeros((*batch, design.p))
    with np.errstate(all="ignore"):  # what overflows is found in the end
        for x, weights, term in parts:
            found = term.evaluate(moments(x))
            value += np.tensordot(weights, found.value, 1)
            pairs = ((found.dq, x.dq_dp), (found.dv, x.dv_dp), (found.da, x.da_dp), (found.dtau, x.dtau_dp))
            for partial, slope in pairs:
                if partial is not None and slope is not None:
                    gradient += np.einsum("m,m...i,m...ip->...p", weights, partial, slope)
            if found.dp is not None:
                gradient += np.tensordot(weights, found.dp, 1)
    check_sums(value, gradient)
    return ObjectiveGradient(value, gradient)


def check_sums(*parts: Array) -> None:
    """Refuse an objective and its gradient that are not finite, though the motion is."""
    if not all(np.isfinite(x).all() for x in parts):
        raise SolveError(
            "the objective or its gradient is not finite on a finite motion: it overflows float64, or a term returns "
            "what is no number; expected smaller numbers, or a shorter motion"
        )


def moments(x: Any) -> Moments:
    """A simulation as terms see it."""
    return Moments(x._law.model, x._law.design, x.t, x.q, x.v, x.a, x.tau)


def add_terms(terms: Sequence[Term], at: Moments, weights: Array, value: Array, dp: Array | None) -> Array:
    """Weighted partial derivatives of terms, (4, m, ..., n) for q, v, a, τ.

    Their values, (...), and what is explicit in the parameters, (..., p), are added to `value` and `dp`.
    """
    share = np.zeros((4, *at.q.shape))
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


def _parts(simulation: Any, objective: Objective) -> list[tuple[Any, Array, Term]]:
    """Where to evaluate each term, with which weights."""
    if not isinstance(simulation, Simulation | FixedStepSimulation):
        raise InputError(f"`simulation` is a {type(simulation).__name__}; expected what simulate returns")
    check_objective(objective)
    if not simulation.success:
        raise SolveError(f"`simulation` has not reached its end: {simulation.message}")
    if getattr(simulation, "_models", None) is not None:
        raise InputError("`simulation` is of several models, and terms are of one; expected a simulation of each model")
    parts: list[tuple[Any, Array, Term]] = []
    if objective.end:
        parts += [(_Last(simulation), np.ones(1), term) for term in objective.end]
    if objective.integral:
        nodes, weights = simulation.quadrature()
        parts += [(nodes, weights, term) for term in objective.integral]
    return parts


class _Last:
    """The last moment of a simulation, as a simulation of one."""

    def __init__(self, simulation: Any) -> None:
        self._law = simulation._law
        for name in ("t", "q", "v", "a", "tau", "dq_dp", "dv_dp", "da_dp", "dtau_dp"):
            x = getattr(simulation, name)
            setattr(self, name, None if x is None else x[-1:])
