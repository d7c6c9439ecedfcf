"""How an optimum changes with limits, loads, masses and lengths, without another solve.

Let the problem depend on a parameter θ: f(x, θ), g(x, θ), limits of rows b(θ) and of unknowns c(θ).  At a regular
optimum with multipliers λ and ζ, of the active limits A, the objective changes as the Lagrangian does (the *envelope
theorem*),

    dJ/dθ = ∂f/∂θ + λᵀ(∂g/∂θ − ∂b/∂θ) − ζᵀ∂c/∂θ                                                                     (1)

and x moves so that the conditions of an optimum stay fulfilled.  Unknowns at their limits, x_c, move with these; of the
others, with H the Hessian of the Lagrangian,

    | H   Aᵀ | | dx/dθ |      | ∂²L/∂x∂θ + H_c ∂c/∂θ          |
    | A   0  | | dλ/dθ |  = − | ∂g_A/∂θ − ∂b_A/∂θ + A_c ∂c/∂θ |                                                      (2)

which gives dT/dθ.  Derivatives by masses, lengths and loads are those of the same program with θ among its unknowns:
columns of its exact Jacobian and Hessian; what limits and conditions at ends do is in ``changes.py``.  Both hold as
long as the same limits are active.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.design import Design
from kinegrad.errors import InputError, shown
from kinegrad.motion.problem.changes import Change, boundary_changes, limit_changes
from kinegrad.results import Result

if TYPE_CHECKING:
    from kinegrad.motion.problem.solution import MotionSolution

__all__ = ["Sensitivity"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sensitivity(Result):
    """Derivatives of an optimum.

    Attributes
    ----------
    names : tuple of str
        Of the parameters: constants as :class:`Design` names them; ``"limit of shoulder"`` for limits ±x of a torque,
        and ``"limit of v of elbow"``, ``"upper limit of q of elbow"``, ``"limit of power of elbow"`` for others;
        ``"friction of right_foot"``; ``"q of elbow at the end"``, ``"reach forearm x"``.
    values : ndarray, shape (p,)
        Their present values.
    dobjective : ndarray, shape (p,)
        Of the objective, per unit of the parameter.
    dduration : ndarray, shape (p,)
        Of the duration of the motion, s per unit.
    """

    names: tuple[str, ...]
    values: Array
    dobjective: Array
    dduration: Array

    def __getitem__(self, name: str) -> tuple[float, float]:
        """dJ and dT by the parameter called `name`."""
        if name not in self.names:
            raise InputError(f"there is no parameter {shown(name)}; they are {', '.join(self.names)}")
        k = self.names.index(name)
        return float(self.dobjective[k]), float(self.dduration[k])


def sensitivity(solution: MotionSolution, parameters: Any, *, limits: bool, boundary: bool) -> Sensitivity:
    """Of masses, lengths and loads by name, of limits, and of what is asked for at the ends."""
    changes: list[Change] = []
    if parameters is not None:
        changes += _of_design(solution, parameters)
    if limits:
        _check_limits_are_whole(solution)
        changes += limit_changes(solution)
    if boundary:
        changes += boundary_changes(solution)
    if not changes:
        raise InputError("there is nothing to differentiate with respect to: no `parameters`, and no limits")
    along = _moves(solution, changes)
    where = solution.problem.parts.variables.durations
    dT = along[where[where >= 0]].sum(axis=0) if (where >= 0).any() else np.zeros(len(changes))
    return Sensitivity(
        tuple(one.name for one in changes), np.array([one.value for one in changes]),
        np.array([one.objective for one in changes]), np.asarray(dT),
    )  # fmt: skip


def _check_limits_are_whole(solution: MotionSolution) -> None:
    """Refuse limits that begin at a measured state outside of them, and move with it."""
    parts = solution.problem.parts
    if parts.soft is None:
        return
    for order, bounds in enumerate(parts.limits[0]):
        for k, pair in bounds.items():
            if parts.soft.outside(order, k, *pair):
                name = f"{'qva'[order]} of {parts.model.coordinate_names[parts.where.leaders[k]]}"
                raise InputError(f"{name} was measured outside its limits, which begin there; expected limits=False")


def _design_of(solution: MotionSolution, parameters: Any) -> Design:
    if isinstance(parameters, Design):
        return parameters
    if isinstance(parameters, str) or not isinstance(parameters, Mapping | Sequence):
        raise InputError(f"`parameters` is {shown(parameters)}; expected a Design, or names of constants, such as "
                         "['forearm.mass', 'elbow.a']")  # fmt: skip
    loads = {phase.loads for phase in solution.problem.phases}
    if len(loads) > 1:
        loaded = next((str(x) for x in parameters if ".load." in str(x)), None)
        if loaded is not None:
            raise InputError(f"`parameters` names {shown(loaded)}, and phases differ in their loads; expected one load")
        loads = {None}
    return Design(solution.problem.model, parameters, next(iter(loads)))


def _of_design(solution: MotionSolution, parameters: Any) -> list[Change]:
    problem, x = solution.problem, solution.x
    if problem.design is not None:
        raise InputError("the problem has a design of its own, whose parameters are among the unknowns; expected none")
    design = _design_of(solution, parameters)
    room = np.stack([design.values - 1.0, design.values + 1.0], axis=1)
    wider = problem.replaced(design=design, design_bounds=room).program
    n, m = problem.program.n, problem.program.m
    if (wider.n, wider.m) != (n + design.p, m):
        raise InputError("the parameters change which rows are redundant; expected others")
    at, y = np.concatenate([x, design.values]), solution.nonlinear.g_multipliers
    rows, columns = wider.jacobian_pattern
    J = wider.jacobian(at)
    H, (below, beside) = wider.hessian(at, 1.0, y), wider.hessian_pattern
    gradient = wider.gradient(at)
    found = []
    for k, name in enumerate(design.names):
        mine = columns == n + k
        of_rows = np.zeros(m)
        of_rows[rows[mine]] = J[mine]
        slope = np.zeros(n)
        own = (below == n + k) & (beside < n)
        slope[beside[own]] = H[own]
        found.append(
            Change(name, float(design.values[k]), float(gradient[n + k] + of_rows @ y), slope, of_rows, np.zeros(n))
        )
    return found


def _scaled(solution: MotionSolution) -> tuple[Any, Any]:
    """Hessian of the Lagrangian and Jacobian, (n, n) and (m, n), both scaled."""
    from scipy.sparse import csc_array, diags_array

    program, x = solution.problem.program, solution.x
    n, m = program.n, program.m
    lower = csc_array((program.hessian(x, 1.0, solution.nonlinear.g_multipliers), program.hessian_pattern), (n, n))
    H = lower + lower.T - diags_array(lower.diagonal())
    A = csc_array((program.jacobian(x), program.jacobian_pattern), (m, n))
    by = diags_array(program.x_scale)
    return (by @ H @ by).tocsr(), (diags_array(1 / program.g_scale) @ A @ by).tocsr()


def _solved(H: Any, A: Any, diagonal: Array, right: Array) -> Array:
    """The solution of | H Aᵀ; A −D | s = right, with D a diagonal matrix."""
    from scipy.sparse import bmat, diags_array
    from scipy.sparse.linalg import splu

    if not A.shape[0]:
        return np.asarray(splu(H.tocsc()).solve(right))
    return np.asarray(splu(bmat([[H, A.T], [A, -diags_array(diagonal)]], format="csc")).solve(right))


def _active(solution: MotionSolution, H: Any, A: Any) -> tuple[Mask, Mask]:
    """Which rows and bounds hold at the optimum: those with multipliers y larger than their distance d, both scaled.

    An interior-point method ends with y d = μ, which leaves both of a limit that hardly matters small.  Then one step
    of Newton's method towards y d = 0 tells: it takes away d of an active limit, and y of another ([elbakry1994]).
    """
    from scipy.sparse import diags_array

    program, found = solution.problem.program, solution.nonlinear
    g, y = found.g / program.g_scale, found.g_multipliers * program.g_scale
    low, high = program.g_lower / program.g_scale, program.g_upper / program.g_scale
    x, z = found.x / program.x_scale, found.x_multipliers * program.x_scale
    least, most = program.x_lower / program.x_scale, program.x_upper / program.x_scale
    equal = low == high
    d, e = np.minimum(g - low, high - g), np.minimum(x - least, most - x)
    rows, bounds = equal | (np.abs(y) > d), np.abs(z) > e
    unclear = ~equal & (np.abs(y) < 1e6 * d) & (np.abs(y) > 1e-6 * d)
    unsure = (np.abs(z) < 1e6 * e) & (np.abs(z) > 1e-6 * e)
    if not (unclear.any() or unsure.any()):
        return rows, bounds
    kept, free = np.flatnonzero(rows | unclear), np.flatnonzero(~bounds | unsure)
    push = np.where(unsure, np.abs(z) / np.where(unsure, e, 1.0), 0.0)
    soft = np.where(unclear, d / np.where(unclear, np.abs(y), 1.0), 1e-12)
    right = np.concatenate([np.where(unsure, z, 0.0)[free], (np.sign(y) * np.where(unclear, d, 0.0))[kept]])
    step = _solved(H[free][:, free] + diags_array(push[free]), A[kept][:, free], soft[kept], right)
    dx, dy = np.zeros(program.n), np.zeros(program.m)
    dx[free], dy[kept] = step[: len(free)], step[len(free) :]
    return (
        np.where(unclear, np.sign(y) * dy > -0.5 * np.abs(y), rows),
        np.where(unsure, np.sign(z) * dx > 0.5 * e, bounds),
    )


def _moves(solution: MotionSolution, changes: list[Change]) -> Array:
    """dx/dθ of (2), (n, parameters)."""
    program = solution.problem.program
    H, A = _scaled(solution)
    rows, bounds = _active(solution, H, A)
    free, held = np.flatnonzero(~bounds), np.flatnonzero(bounds)
    out = np.zeros((program.n, len(changes)))
    out[held] = np.stack([one.bounds[held] for one in changes], 1) / program.x_scale[held, None]  # ∂c/∂θ
    slope = np.stack([one.slope * program.x_scale for one in changes], 1)[free] + H[free][:, held] @ out[held]
    residual = np.stack([one.rows / program.g_scale for one in changes], 1)[rows] + A[rows][:, held] @ out[held]
    system = H[free][:, free], A[rows][:, free], np.full(int(rows.sum()), 1e-12)
    out[free] = -_solved(*system, np.concatenate([slope, residual]))[: len(free)]
    return np.asarray(program.x_scale[:, None] * out)
