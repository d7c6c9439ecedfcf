"""Objectives as functions of a design, J(p) with dJ/dp: of a simulated motion, and of the torques of a given one.

They are what :func:`optimize_design` takes as objective, and inside a :class:`Limit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import simpson

from kinegrad import _engine as engine
from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design
from kinegrad.design.dynamics import inverse_dynamics_design_vjp
from kinegrad.design.running import loads_of
from kinegrad.dynamics import inverse_dynamics
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads
from kinegrad.objectives.objective import Objective, check_sums, objective_gradient
from kinegrad.results import Result
from kinegrad.simulate.adjoint import adjoint_gradient
from kinegrad.simulate.contacts import UnilateralContact, check_contacts
from kinegrad.simulate.fixed import simulate_fixed
from kinegrad.simulate.law import own_torques

__all__ = ["Simulated", "TorqueEffort"]

Array = NDArray[np.float64]
GRADIENTS = ("adjoint", "direct")


@dataclass(frozen=True, eq=False)
class Simulated(Result):
    """An objective of the motion from a given state in equal steps, as a function of the design.

    Parameters
    ----------
    objective : Objective
    q0, v0 : array_like, shape (..., n)
        Initial coordinates and speeds, the same for all designs.  Of several states, J is the sum.
    step, steps, tau, loads, method, prescribed, constraints, stabilisation, project, contacts, sticking_speed
        As of :func:`simulate_fixed`; a function as `tau` has to be a :class:`Feedback`.  Constraints hold for all
        designs, with the numbers that were given.
    gradient : {"adjoint", "direct"}
        By :func:`adjoint_gradient`, or by tangents and :func:`objective_gradient`: the same numbers.

    Examples
    --------
    >>> from kinegrad import Design, samples
    >>> from kinegrad.simulate import KineticEnergy
    >>> design = Design(samples.double_pendulum(), ["Q.mass", "gravity.z"])
    >>> swing = Simulated(Objective(integral=[KineticEnergy()]), [1, 0], [0, 0], step=0.01, steps=100)
    >>> value, gradient = swing(design)
    >>> gradient.round(4)
    array([ 5.3306, -0.7926])
    """

    objective: Objective
    q0: ArrayLike
    v0: ArrayLike
    _: KW_ONLY
    step: float
    steps: int
    tau: Any = None
    loads: Loads | None = None
    method: str = "rk4"
    prescribed: Mapping[str, Any] | None = None
    constraints: ConstraintSet | None = None
    stabilisation: float | tuple[float, float] | None = None
    project: bool = False
    contacts: Sequence[UnilateralContact] | None = None
    sticking_speed: float = 1e-3
    gradient: str = "adjoint"

    def __post_init__(self) -> None:
        if not isinstance(self.objective, Objective):
            found = type(self.objective).__name__
            raise InputError(f"`objective` is a {found}; expected an Objective(end=[...], integral=[...])")
        if self.gradient not in GRADIENTS:
            raise InputError(f"`gradient` is {shown(self.gradient)}; expected {' or '.join(map(repr, GRADIENTS))}")
        if self.constraints is not None and not isinstance(self.constraints, ConstraintSet):
            raise InputError(f"`constraints` is {shown(self.constraints)}; expected a ConstraintSet")
        if self.contacts is not None:
            object.__setattr__(self, "contacts", check_contacts(self.contacts))
        for name in ("q0", "v0", "tau"):
            object.__setattr__(self, name, own_torques(getattr(self, name)))

    def __call__(self, design: Design) -> tuple[float, Array]:
        """J and dJ/dp, shape (p,), of one design; a SolveError if the motion diverges."""
        run: dict[str, Any] = {
            "step": self.step, "steps": self.steps, "tau": self.tau, "loads": self.loads, "method": self.method,
            "design": design, "stabilisation": self.stabilisation, "project": self.project, "contacts": self.contacts,
            "prescribed": self.prescribed, "sticking_speed": self.sticking_speed,
        }  # fmt: skip
        if self.constraints is not None:
            run["constraints"] = ConstraintSet(design.model, self.constraints.constraints)
        with np.errstate(over="ignore", invalid="ignore"):  # of motions about to diverge
            if self.gradient == "adjoint":
                found: Any = adjoint_gradient(design.model, self.q0, self.v0, self.objective, **run)
            else:
                found = objective_gradient(
                    simulate_fixed(design.model, self.q0, self.v0, **run, unfinished="ignore"), self.objective
                )
        return float(found.value.sum()), found.dvalue_dp.reshape(-1, design.p).sum(axis=0)


@dataclass(frozen=True, eq=False)
class TorqueEffort(Result):
    """∫ Σ wᵢ τᵢ² dt of the torques that a given motion takes, as a function of the design.

    The motion, coordinates of the joints over time, is the same for all designs.  The integral is Simpson's rule on the
    given times (SciPy's, which takes unequal ones too): it is linear, so its gradient is Simpson's of 2 Σ wᵢ τᵢ ∂τᵢ/∂p.

    Parameters
    ----------
    q, v, a : array_like, shape (m, n)
        Coordinates, speeds and accelerations.
    t : array_like, shape (m,)
        Increasing, s.
    loads : Loads, optional
        Constant, or with m along their first axis; those of the design if it has any.
    weight : float or array_like, shape (n,)
        w; 0 for joints that do not count.

    Examples
    --------
    >>> from kinegrad import Design, samples
    >>> design = Design(samples.two_link(gravity=(0, -10, 0)), ["forearm.mass"])
    >>> hold = TorqueEffort(*np.zeros((3, 3, 2)), [0, 0.5, 1], weight=[1, 0])
    >>> hold(design)
    (16.0, array([48.]))
    """

    q: ArrayLike
    v: ArrayLike
    a: ArrayLike
    t: ArrayLike
    loads: Loads | None = None
    weight: ArrayLike = 1.0

    def __post_init__(self) -> None:
        motion = {x: engine.real(x, getattr(self, x)) for x in "qvat"}
        t, shape = motion["t"], motion["q"].shape
        if t.ndim != 1 or len(t) < 2 or not (np.isfinite(t).all() and (np.diff(t) > 0).all()):
            raise InputError(f"`t` has shape {t.shape}; expected at least 2 increasing times, s")
        for x in "qva":
            if motion[x].ndim != 2 or motion[x].shape != shape or len(motion[x]) != len(t):
                n = shape[-1] if shape else "n"
                raise InputError(f"`{x}` has shape {motion[x].shape}; expected ({len(t)}, {n}), a row for each time")
        weight = engine.real("weight", self.weight)
        if weight.shape not in ((), (1,), shape[1:]) or not np.isfinite(weight).all():
            raise InputError(f"`weight` has shape {weight.shape}; expected a number, or ({shape[1]},) of them")
        for name, value in (motion | {"weight": weight}).items():
            object.__setattr__(self, name, value.copy())

    def __call__(self, design: Design) -> tuple[float, Array]:
        """J and dJ/dp, shape (p,), of one design."""
        q, v, a, t = (np.asarray(x) for x in (self.q, self.v, self.a, self.t))
        loads = loads_of(design, self.loads)
        tau = inverse_dynamics(design.model, q, v, a, loads=loads)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            weighted = np.asarray(self.weight) * tau
            check_sums(2 * weighted)
            with engine.overflow_passes():
                slope = inverse_dynamics_design_vjp(design, q, v, a, 2 * weighted, loads=loads)
            value, gradient = simpson((weighted * tau).sum(axis=-1), x=t), np.asarray(simpson(slope, x=t, axis=0))
        check_sums(value, gradient)
        return float(value), gradient
