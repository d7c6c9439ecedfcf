"""What a solve gives back: the point, its multipliers, how good it is, and how it was reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kinegrad.results import Result

__all__ = ["STATUSES", "Evaluations", "Iterate", "NonlinearSolution"]

Array = NDArray[np.float64]
STATUSES: Mapping[str, str] = {
    "optimal": "a point that fulfils the conditions of Karush, Kuhn and Tucker within the tolerance",
    "infeasible": "no point within the limits was found; at this one their violation cannot be reduced by small steps",
    "stalled": "the steps became too small before the conditions were fulfilled",
    "iteration-limit": "the largest number of iterations was reached",
    "unbounded": "the objective falls without end",
    "saddle": "a point that fulfils these conditions, but the objective falls along a direction within the limits",
    "not-finite": "values or derivatives were not finite where the solver needed them",
    "interrupted": "Ctrl-C",
    "failed": "the solver gave up",
}


@dataclass(frozen=True, eq=False)
class Evaluations(Result):
    """How often a solve asked the program for each of its functions."""

    objective: int = 0
    gradient: int = 0
    constraints: int = 0
    jacobian: int = 0
    hessian: int = 0

    def __add__(self, other: Evaluations) -> Evaluations:
        return Evaluations(
            self.objective + other.objective,
            self.gradient + other.gradient,
            self.constraints + other.constraints,
            self.jacobian + other.jacobian,
            self.hessian + other.hessian,
        )


@dataclass(frozen=True, eq=False)
class Iterate(Result):
    """One iteration of a solve.

    Attributes
    ----------
    iteration : int
        0 for the start.
    objective : float
        f, in its own unit.
    violation : float
        The largest by which a limit or a bound is not kept, scaled.
    optimality : float
        The largest component of ∇f + Jᵀλ + z, scaled; NaN where the solver does not tell its multipliers.
    seconds : float
        Since the start of the solve.
    """

    iteration: int
    objective: float
    violation: float
    optimality: float
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class NonlinearSolution(Result):
    """A point, and how good it is.

    Attributes
    ----------
    x : ndarray, shape (n,)
    f : float
    g : ndarray, shape (m,)
    x_multipliers, g_multipliers : ndarray, shapes (n,) and (m,)
        Of bounds and rows, in units of f per unit of x or g: positive where an upper limit holds, negative where a
        lower one does.  By how much f falls if an upper limit rises by one, to first order.
    optimality, violation, complementarity : float
        What is left of the conditions of an optimum, scaled, computed by :func:`optimality_conditions` from the
        program itself, not taken from the solver.
    curvature : float
        The least eigenvalue of the scaled Hessian of the Lagrangian along directions that keep all active limits: a
        negative one tells a saddle from a minimum.  inf where no such direction is left; NaN where it was not
        computed: it is dense work, done for small programs only.
    status : str
        One of :data:`STATUSES`.
    success : bool
        Whether `status` is "optimal".
    message : str
        What happened, in a sentence; of a failure with the rows that are violated most.
    iterations : int
    evaluations : Evaluations
    history : tuple of Iterate
    iterates : ndarray, shape (len(history), n), or None
        x of each, if asked for.
    seconds : float
    solver, hessian, gradient : str
        What was asked for.
    solver_status : str
        The solver's own word.
    """

    x: Array
    f: float
    g: Array
    x_multipliers: Array
    g_multipliers: Array
    optimality: float
    violation: float
    complementarity: float
    curvature: float
    status: str
    message: str
    iterations: int
    evaluations: Evaluations
    history: tuple[Iterate, ...]
    seconds: float = field(compare=False)
    solver: str
    hessian: str
    gradient: str
    solver_status: str
    iterates: Array | None = None

    @property
    def success(self) -> bool:
        """Whether the point is an optimum within the tolerance."""
        return self.status == "optimal"

    def __repr__(self) -> str:
        what = f"f = {self.f:.6g}, violation {self.violation:.1e}, optimality {self.optimality:.1e}"
        return f"NonlinearSolution({self.status}: {what}; {self.iterations} iterations of {self.solver})"
