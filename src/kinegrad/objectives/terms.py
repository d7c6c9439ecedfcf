"""Terms of objectives: what is added up at the end of a motion, or integrated over it.

Each term knows its value and its partial derivatives with respect to q, v, a, τ and, explicitly, p.  A new one is a
frozen dataclass with a method ``evaluate(at: Motion) -> Evaluation``; export it in ``objectives/__init__.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import difference, difference_vjp
from kinegrad.design import Design
from kinegrad.design.quantities import energy_design_derivatives, point_motion_design_derivatives
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_vjp
from kinegrad.energy import kinetic_energy, potential_energy
from kinegrad.errors import InputError, shown
from kinegrad.kinematics import point_motion
from kinegrad.kinematics_derivatives import point_motion_derivatives
from kinegrad.model import Model
from kinegrad.model.by_name import spread
from kinegrad.motion import Motion
from kinegrad.results import Result, owned

__all__ = [
    "EndPosition",
    "Evaluation",
    "KineticEnergy",
    "Moments",
    "PotentialEnergy",
    "Power",
    "Term",
    "TorqueNorm",
    "TorqueSquared",
    "Tracking",
    "UserTerm",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation(Result):
    """A term's value, shape (m, ...), and its partial derivatives, (m, ..., n) and (m, ..., p); None for zero."""

    value: Array
    dq: Array | None = None
    dv: Array | None = None
    da: Array | None = None
    dtau: Array | None = None
    dp: Array | None = None


class Moments(Motion):
    """What terms were given before there were motions: ``Moments(model, design, t, q, v, a, tau)`` is a Motion."""

    def __new__(cls, model: Model, design: Design | None, t: Array, q: Array, v: Array, a: Array, tau: Array) -> Any:
        """The motion of these moments."""
        return Motion(model, t, q, v, a, tau, design=design)


class Term(Protocol):
    """Anything that can be evaluated at the times of a motion."""

    def evaluate(self, at: Motion) -> Evaluation:
        """Value and partial derivatives; `dp` only if ``at.design`` is given."""
        ...


@dataclass(frozen=True)
class KineticEnergy:
    """½ vᵀ M v, J."""

    def evaluate(self, at: Motion) -> Evaluation:
        """Both gradients from one product of M(q) v, an inverse dynamics without gravity and springs, with v."""
        inertial = at.model.replace(gravity=np.zeros(3), stiffness=np.zeros(at.model.n), elements={})
        change = inverse_dynamics_vjp(inertial, at.q, np.zeros_like(at.v), at.v, at.v)
        dp = None if at.design is None else energy_design_derivatives(at.design, at.q, at.v).dkinetic_dp
        return Evaluation(kinetic_energy(at.model, at.q, at.v), change.dq / 2, change.da, dp=dp)


@dataclass(frozen=True)
class PotentialEnergy:
    """Of gravity, springs and force elements, J."""

    def evaluate(self, at: Motion) -> Evaluation:
        """Its gradient is what holds the links and the springs still."""
        still = np.zeros_like(at.v)
        holding = inverse_dynamics(at.model, at.q, still, still)
        dp = None if at.design is None else energy_design_derivatives(at.design, at.q, still).dpotential_dp
        return Evaluation(potential_energy(at.model, at.q), holding, dp=dp)


@dataclass(frozen=True, eq=False)
class TorqueSquared(Result):
    """Σ wᵢ τᵢ², with weights of shape (n,), one for all, or by name."""

    weight: Any = 1.0

    def __post_init__(self) -> None:
        _own(self, "weight")

    def evaluate(self, at: Motion) -> Evaluation:
        """Of the torques alone."""
        if at.tau is None:
            raise InputError("the motion has no torques, which TorqueSquared is of; expected Motion(..., tau=...)")
        weighted = _weight(self.weight, at.model) * at.tau
        return Evaluation((weighted * at.tau).sum(axis=-1), dtau=2 * weighted)


@dataclass(frozen=True, eq=False)
class Power(Result):
    """Σ wᵢ |τᵢ vᵢ|, W: what motors do, driving or braking; integrated, their work.

    Smoothly: √(P² + ε²) − ε for the magnitude of P.  With ``net=True``, Σ wᵢ τᵢ vᵢ, in which braking is negative.
    """

    weight: Any = 1.0
    smoothing: float = 1e-3
    net: bool = False

    def __post_init__(self) -> None:
        _own(self, "weight")
        engine.positive("smoothing", self.smoothing)
        engine.flag("net", self.net)

    def evaluate(self, at: Motion) -> Evaluation:
        """Of torques and speeds."""
        if at.tau is None:
            raise InputError("the motion has no torques, which Power is of; expected Motion(..., tau=...)")
        weight, power = _weight(self.weight, at.model), at.tau * at.v
        if self.net:
            return Evaluation((weight * power).sum(axis=-1), dv=weight * at.tau, dtau=weight * at.v)
        size = np.hypot(power, self.smoothing)
        slope = weight * power / size
        value = (weight * (size - self.smoothing)).sum(axis=-1)
        return Evaluation(value, dv=slope * at.tau, dtau=slope * at.v)


@dataclass(frozen=True, eq=False)
class TorqueNorm(Result):
    """Σ |wᵢ τᵢ|^k: with a high k, what its integral is made of is the peak; (J/T)^(1/k) tends to the largest |w τ|.

    Weights that are the inverse of limits keep the numbers near one.
    """

    order: float = 8.0
    weight: Any = 1.0

    def __post_init__(self) -> None:
        _own(self, "weight")
        if not engine.positive("order", self.order) >= 2:
            raise InputError(f"`order` of TorqueNorm is {self.order:g}; expected at least 2")

    def evaluate(self, at: Motion) -> Evaluation:
        """Of the torques alone."""
        if at.tau is None:
            raise InputError("the motion has no torques, which TorqueNorm is of; expected Motion(..., tau=...)")
        weight = _weight(self.weight, at.model)
        x = weight * at.tau
        slope = self.order * np.abs(x) ** (self.order - 1) * np.sign(x) * weight
        return Evaluation((np.abs(x) ** self.order).sum(axis=-1), dtau=slope)


@dataclass(frozen=True, eq=False)
class Tracking(Result):
    """Σ wᵢ (qᵢ − rᵢ(t))²: distance from a reference, a constant of shape (nq,) or a function of times (m,) → (m, nq).

    Of a quaternion, the difference is the turn from the reference to it, about axes of the child.
    """

    reference: ArrayLike | Callable[[Array], ArrayLike]
    weight: Any = 1.0

    def __post_init__(self) -> None:
        _own(self, "reference", "weight")

    def evaluate(self, at: Motion) -> Evaluation:
        """Of the coordinates and the time."""
        given = engine.real("reference", self.reference(at.t) if callable(self.reference) else self.reference)
        expected = (len(at.t), at.model.nq) if callable(self.reference) else (at.model.nq,)
        if given.shape != expected:
            raise InputError(f"`reference` of Tracking gives shape {given.shape}; expected {expected}")
        given = given.reshape(len(at.t), *(1,) * (at.q.ndim - 2), -1) if callable(self.reference) else given
        if at.model.coordinates:
            away = difference(at.model, given, at.q)
            weighted = _weight(self.weight, at.model) * away
            return Evaluation((weighted * away).sum(axis=-1), difference_vjp(at.model, away, 2 * weighted))
        away = at.q - given
        weighted = _weight(self.weight, at.model) * away
        return Evaluation((weighted * away).sum(axis=-1), 2 * weighted)


@dataclass(frozen=True, eq=False)
class EndPosition(Result):
    """|x − target|², where x is a point of a link or frame in the world, m²."""

    link: str
    target: ArrayLike
    point: ArrayLike = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not isinstance(self.link, str):
            raise InputError(f"`link` of EndPosition is {shown(self.link)}; expected the name of a link or frame")
        _own(self, "target", "point")

    def evaluate(self, at: Motion) -> Evaluation:
        """Of the coordinates, and of lengths among the parameters."""
        target = engine.real("target", self.target)
        if target.shape != (3,):
            raise InputError(f"`target` of EndPosition has shape {target.shape}; expected (3,), in the world, m")
        away = point_motion(at.model, at.q, link=self.link, point=self.point).position - target
        J = point_motion_derivatives(at.model, at.q, link=self.link, point=self.point).dposition_dq
        dp = None
        if at.design is not None:
            change = point_motion_design_derivatives(at.design, at.q, link=self.link, point=self.point)
            dp = 2 * np.einsum("...i,...ip->...p", away, change.dposition_dp)
        return Evaluation((away**2).sum(axis=-1), 2 * np.einsum("...i,...ij->...j", away, J), dp=dp)


@dataclass(frozen=True, eq=False)
class UserTerm(Result):
    """A term of your own: a function from a :class:`~kinegrad.Motion` to an :class:`Evaluation`.

    Examples
    --------
    The speed of the last joint, squared:

    >>> from kinegrad.objectives import Objective
    >>> def last_speed(at):
    ...     dv = np.zeros_like(at.v)
    ...     dv[..., -1] = 2 * at.v[..., -1]
    ...     return Evaluation(at.v[..., -1] ** 2, dv=dv)
    >>> objective = Objective(end=[UserTerm(last_speed)])
    """

    function: Callable[[Motion], Evaluation]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"`function` of a UserTerm is {shown(self.function)}; expected a callable of a Motion")

    def evaluate(self, at: Motion) -> Evaluation:
        """Call the function with copies, which it may change, and check what it returns."""
        own = {x: getattr(at, x).copy() for x in ("t", "q", "v", "a", "tau") if getattr(at, x) is not None}
        found = self.function(replace(at, **own))
        if not isinstance(found, Evaluation):
            raise InputError(f"the function of a UserTerm returns a {type(found).__name__}; expected an Evaluation")
        batch = at.t.shape + at.q.shape[1:-1]
        shapes = {"value": batch, **dict.fromkeys(("dq", "dv", "da", "dtau"), at.v.shape)}
        if at.design is not None:
            shapes["dp"] = (*batch, at.design.p)
        for name, shape in shapes.items():
            x = getattr(found, name)
            if (x is not None or name == "value") and np.shape(x) != shape:
                raise InputError(f"`{name}` of a UserTerm has shape {np.shape(x)}; expected {shape}")
        return found


def _own(term: Any, *names: str) -> None:
    """Replace arrays that were given by copies."""
    for name in names:
        object.__setattr__(term, name, owned(getattr(term, name)))


def _weight(weight: Any, model: Model) -> Array:
    """A weight of all speeds, one for each, or by name: those that are not named have none."""
    count = model.nv
    given = engine.real("weight", spread("weight", weight, model.speed_names, model.name, kind="speed"))
    if given.shape not in ((), (count,)):
        raise InputError(f"`weight` has shape {given.shape}; expected one number, ({count},), or numbers by name")
    return given
