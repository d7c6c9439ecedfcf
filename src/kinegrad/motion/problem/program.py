"""The nonlinear program of a motion problem, as :class:`~kinegrad.motion.nlp.NonlinearProgram` wants it.

Its rows are those of splines, then of each grid, block by block and node by node.  The objective is the sum of the
integrals of all grids and of durations times their weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.nlp.identity import expanded
from kinegrad.motion.nlp.program import Pattern
from kinegrad.motion.problem.assembly import GridAssembly
from kinegrad.motion.problem.nodes import Block, Grid
from kinegrad.motion.problem.sparse import SparseSum
from kinegrad.motion.problem.spline_rows import SplineRows
from kinegrad.motion.problem.terms import Time
from kinegrad.motion.problem.transcription import Transcription
from kinegrad.motion.problem.variables import phase_numbers

Array = NDArray[np.float64]


class MotionProgram:
    """f, g and their exact sparse derivatives."""

    def __init__(self, parts: Transcription) -> None:
        self.parts = parts
        self.fine: dict[int, Grid] = {}  # of phases, between their nodes: ``between.py``
        variables = parts.variables
        self.n = variables.n
        self.x_lower, self.x_upper, self.x_scale = variables.lower, variables.upper, variables.scale
        self.splines = SplineRows(parts.spline_rows, 0)
        first, self.grids = len(parts.spline_rows), []
        for grid in parts.grids:
            self.grids.append(GridAssembly(grid, first))
            first += self.grids[-1].count
        self.m = first
        self._time = np.zeros(len(parts.phases))
        for term in parts.terms:
            if isinstance(term, Time):
                for p in phase_numbers(parts.phases, term.phase, "Time"):
                    self._time[p] += term.weight
        lower, upper, scale = ([np.array([getattr(row, what) for row in parts.spline_rows], dtype=float)]
                               for what in ("lower", "upper", "scale"))  # fmt: skip
        for assembled in self.grids:
            for block in assembled.grid.rows:
                assert block.lower is not None
                assert block.upper is not None
                assert block.scale is not None
                lower.append(block.lower.ravel())
                upper.append(block.upper.ravel())
                scale.append(np.tile(block.scale, assembled.grid.K))
        self.g_lower, self.g_upper = np.concatenate(lower), np.concatenate(upper)
        self.g_scale = np.concatenate(scale)
        self.f_scale = 1.0
        parts_of = [*self.splines.jacobian_parts(), *(x for grid in self.grids for x in grid.jacobian_parts())]
        self._jacobian = SparseSum((self.m, self.n), parts_of)
        self.jacobian_pattern: Pattern = (self._jacobian.rows, self._jacobian.columns)
        parts_of = [*self.splines.hessian_parts(), *(x for grid in self.grids for x in grid.hessian_parts())]
        self._hessian = SparseSum((self.n, self.n), parts_of, lower=True)
        self.hessian_pattern: Pattern = (self._hessian.rows, self._hessian.columns)

    @property
    def identity(self) -> dict[str, str]:
        """Everything that the problem is made of, as files of results compare it."""
        names = ("model", "phases", "requirements", "objective", "design", "design_bounds", "actuated")
        return expanded(**{name: getattr(self.parts.problem, name) for name in names})

    @property
    def time_weights(self) -> Array:
        """Weights of durations in the objective, (phases,)."""
        return self._time

    def durations(self, x: Array) -> Array:
        """Of all phases, s."""
        where = self.parts.variables.durations
        fixed = np.array([phase.duration[0] for phase in self.parts.phases])  # type: ignore[index]
        return np.where(where >= 0, x[where], fixed)

    @np.errstate(all="ignore")  # what overflows is not finite, and solvers see that
    def objective(self, x: Array) -> float:
        """f(x)."""
        return float(self._time @ self.durations(x)) + sum([grid.objective(x) for grid in self.grids])

    @np.errstate(all="ignore")
    def gradient(self, x: Array) -> Array:
        """∂f/∂x."""
        out = np.zeros(self.n)
        for weight, k in zip(self._time, self.parts.variables.durations, strict=True):
            if k >= 0:
                out[k] += weight
        for grid in self.grids:
            grid.add_gradient(x, out)
        return out

    @np.errstate(all="ignore")
    def constraints(self, x: Array) -> Array:
        """g(x)."""
        return np.concatenate([self.splines.values(x), *(grid.values(x) for grid in self.grids)])

    @np.errstate(all="ignore")
    def jacobian(self, x: Array) -> Array:
        """Values of its pattern."""
        numbers = self.splines.jacobian_numbers(x)
        for grid in self.grids:
            numbers += grid.jacobian_numbers(x)
        return self._jacobian.values(numbers)

    def hessian(self, x: Array, sigma: float, multipliers: Array) -> Array:
        """Values of its pattern: σ ∂²f/∂x² + Σ λ ∂²g/∂x²."""
        return self._second(x, sigma, multipliers, gauss_newton=False)

    def gauss_newton(self, x: Array, sigma: float, multipliers: Array) -> Array:
        """The same without second derivatives of torques in the objective."""
        return self._second(x, sigma, multipliers, gauss_newton=True)

    @np.errstate(all="ignore")
    def _second(self, x: Array, sigma: float, multipliers: Array, *, gauss_newton: bool) -> Array:
        numbers = self.splines.hessian_numbers(x, multipliers)
        for grid in self.grids:
            numbers += grid.hessian_numbers(x, sigma, multipliers, gauss_newton=gauss_newton)
        return self._hessian.values(numbers)

    def variable_name(self, j: int) -> str:
        """What variable j is."""
        return self.parts.variables.names[j]

    def find_row(self, i: int) -> tuple[str, str, float]:
        """What row i is, in which phase, and at which part of it."""
        if i < len(self.splines.rows):
            row = self.splines.rows[i]
            return row.name, row.phase, row.at
        for assembled in self.grids:
            for k, block in enumerate(assembled.grid.rows):
                size = len(block.function.names)
                inside = i - assembled.starts[k]
                if 0 <= inside < assembled.grid.K * size:
                    node, r = divmod(inside, size)
                    return block.function.names[r], self.phase_of(assembled.grid), float(assembled.grid.s[node])
        raise IndexError(i)

    def phase_number(self, grid: Grid) -> int:
        """Which phase a grid is of."""
        phases = self.parts.variables.phases
        return next(p for p, variables in enumerate(phases) if variables.points is grid.variables.points)

    def phase_of(self, grid: Grid) -> str:
        """The name of that phase."""
        return self.parts.phases[self.phase_number(grid)].name

    def row_name(self, i: int) -> str:
        """What row i is, and at which part of its phase."""
        name, phase, s = self.find_row(i)
        where = "" if len(self.parts.phases) == 1 else f" of phase {phase!r}"
        return f"{name} at s = {s:.3g}{where}"

    def row_name_at(self, i: int, x: Array) -> str:
        """The same with its time, which durations among the unknowns tell."""
        name, phase, s = self.find_row(i)
        T, p = self.durations(x), [one.name for one in self.parts.phases].index(phase) if phase else 0
        where = "" if len(self.parts.phases) == 1 else f" of phase {phase!r}"
        return f"{name} at t = {T[:p].sum() + s * T[p]:.4g} s (s = {s:.3g}{where})"

    def blocks(self) -> list[tuple[GridAssembly, int, Block]]:
        """All blocks of rows, with where they stand."""
        return [(grid, k, block) for grid in self.grids for k, block in enumerate(grid.grid.rows)]
