"""How an optimum changes with limits, loads, masses and lengths, without another solve.

Let the problem depend on a parameter θ: f(x, θ), g(x, θ), limits of rows b(θ).  At a regular optimum with multipliers
λ, of the active limits A, the objective changes as the Lagrangian does (the *envelope theorem*),

    dJ/dθ = ∂f/∂θ + λᵀ(∂g/∂θ − ∂b/∂θ)                                                                               (1)

and x moves so that the conditions of an optimum stay fulfilled: with H the Hessian of the Lagrangian,

    | H   Aᵀ | | dx/dθ |      | ∂²L/∂x∂θ         |
    | A   0  | | dλ/dθ |  = − | ∂g_A/∂θ − ∂b_A/∂θ |                                                                  (2)

which gives dT/dθ.  Derivatives by masses, lengths and loads are those of the same program with θ among its unknowns:
columns of its exact Jacobian and Hessian.  Both hold as long as the same limits are active.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.design import Design
from kinegrad.errors import InputError, shown
from kinegrad.motion.problem.functions import Squares
from kinegrad.motion.problem.nodes import Block
from kinegrad.motion.problem.program import MotionProgram
from kinegrad.motion.problem.terms import Effort
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
        Of the parameters: constants as :class:`Design` names them, and ``"limit of …"`` for torque limits.
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


@dataclass(frozen=True, eq=False)
class _Change:
    """What (1) and (2) need of one parameter."""

    name: str
    value: float
    objective: float  # ∂f/∂θ + λᵀ(∂g − ∂b)
    slope: Array  # ∂²L/∂x∂θ, (n,)
    rows: Array  # ∂g/∂θ − ∂b/∂θ, (m,)


def sensitivity(solution: MotionSolution, parameters: Any, *, limits: bool) -> Sensitivity:
    """Of masses, lengths and loads by name, and of torque limits."""
    changes: list[_Change] = []
    if parameters is not None:
        changes += _of_design(solution, parameters)
    if limits:
        changes += _of_limits(solution)
    if not changes:
        raise InputError("there is nothing to differentiate with respect to: no `parameters`, and no torque limits")
    along = _moves(solution, changes)
    where = solution.problem.parts.variables.durations
    dT = along[where[where >= 0]].sum(axis=0) if (where >= 0).any() else np.zeros(len(changes))
    return Sensitivity(
        tuple(one.name for one in changes), np.array([one.value for one in changes]),
        np.array([one.objective for one in changes]), np.asarray(dT),
    )  # fmt: skip


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


def _of_design(solution: MotionSolution, parameters: Any) -> list[_Change]:
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
        found.append(_Change(name, float(design.values[k]), float(gradient[n + k] + of_rows @ y), slope, of_rows))
    return found


def _of_limits(solution: MotionSolution) -> list[_Change]:
    """Torque limits of actuators, ±, of all phases at once."""
    problem, program, y = solution.problem, solution.problem.program, solution.nonlinear.g_multipliers
    parts, found = problem.parts, []
    for name in parts.actuators.names:
        rows, value = np.zeros(program.m), np.nan
        for grid, k, block in program.blocks():
            if block.label != "torque" or f"torque of {name}" not in block.function.names:
                continue
            r = block.function.names.index(f"torque of {name}")
            at = grid.row_numbers(k)[:, r]
            assert block.lower is not None
            assert block.upper is not None
            value = float(max(abs(block.lower[0, r]), abs(block.upper[0, r])))
            rows[at] = np.where(y[at] > 0, -1.0, 1.0)  # by how much the active side moves away
        if not np.isfinite(value):
            continue
        objective, slope = _relative_effort(solution, name, value)
        found.append(_Change(f"limit of {name}", value, float(rows @ y) + objective, slope, rows))
    return found


def _relative_effort(solution: MotionSolution, name: str, limit: float) -> tuple[float, Array]:
    """∂f/∂θ and ∂²f/∂x∂θ of efforts that are relative to the limit θ: weights 1/θ²."""
    problem, program, x = solution.problem, solution.problem.program, solution.x
    value, slope = 0.0, np.zeros(program.n)
    relative = [term for term in problem.objective if isinstance(term, Effort) and term.relative]
    k = problem.parts.actuators.names.index(name)
    for assembled in program.grids:
        grid = assembled.grid
        if not relative or not any(block.label == "Effort" for block in grid.terms):
            continue
        blocks = []
        efforts = [block for block in grid.terms if block.label == "Effort"]
        of = [term for term in problem.objective if isinstance(term, Effort) and _in_phase(solution, grid, term)]
        for block, term in zip(efforts, of, strict=True):
            if term.relative:
                assert isinstance(block.function, Squares)
                blocks.append(Block(block.function.only(k, -2 / limit), weights=block.weights, label="Effort"))
        if blocks:
            part = assembled.with_blocks(blocks)
            value += part.objective(x)
            part.add_gradient(x, slope)
    return value, slope


def _in_phase(solution: MotionSolution, grid: Any, term: Effort) -> bool:
    phases = solution.problem.parts.variables.phases
    p = next(k for k, one in enumerate(phases) if one is grid.variables)
    return term.phase is None or term.phase == solution.problem.phases[p].name


def active_rows(program: MotionProgram, solution: MotionSolution) -> tuple[Mask, Mask]:
    """Which rows and bounds hold at the optimum: their multipliers are larger than their distance, both scaled."""
    found = solution.nonlinear
    g, y = found.g / program.g_scale, found.g_multipliers * program.g_scale
    low, high = program.g_lower / program.g_scale, program.g_upper / program.g_scale
    rows: Mask = np.asarray((low == high) | (np.abs(y) > np.minimum(g - low, high - g)))
    x, z = found.x / program.x_scale, found.x_multipliers * program.x_scale
    low, high = program.x_lower / program.x_scale, program.x_upper / program.x_scale
    return rows, np.abs(z) > np.minimum(x - low, high - x)


def _moves(solution: MotionSolution, changes: list[_Change]) -> Array:
    """dx/dθ of (2), (n, parameters)."""
    from scipy.sparse import bmat, csc_array, eye_array
    from scipy.sparse.linalg import splu

    program, x = solution.problem.program, solution.x
    rows, bounds = active_rows(program, solution)
    free = np.flatnonzero(~bounds)
    n = program.n
    lower = csc_array((program.hessian(x, 1.0, solution.nonlinear.g_multipliers), program.hessian_pattern), (n, n))
    H = (lower + lower.T - csc_array((lower.diagonal(), (np.arange(n), np.arange(n))), (n, n))).tocsr()[free][:, free]
    A = csc_array((program.jacobian(x), program.jacobian_pattern), (program.m, n)).tocsr()[rows][:, free]
    by, size = program.x_scale[free], program.g_scale[rows]
    D, E = csc_array((by, (np.arange(len(by)),) * 2)), csc_array((1 / size, (np.arange(len(size)),) * 2))
    H, A = D @ H @ D, E @ A @ D
    system = bmat([[H, A.T], [A, -1e-12 * eye_array(len(size))]], format="csc")
    right = np.concatenate(
        [-by[:, None] * np.stack([one.slope[free] for one in changes], 1),
         -np.stack([one.rows[rows] for one in changes], 1) / size[:, None]]
    )  # fmt: skip
    solved = splu(system).solve(right)
    out = np.zeros((n, len(changes)))
    out[free] = by[:, None] * solved[: len(free)]
    return out
