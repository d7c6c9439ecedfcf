"""Nodes of a phase: from the unknowns to z, and back from derivatives by z to derivatives by unknowns.

At parts s of a phase of duration T, the d-th time derivative of coordinate i is a sum over the k + 1 control points
that count there, x_{d,i} = σ_i Σ_α b_{d,α} P_{c(i),α} / T^d plus a constant for d = 0: c(i) is the spline that
coordinate i follows, with the sign σ_i.  Let ℓ(z, T) be what all functions of a node add to the Lagrangian, with
gradient g and Hessian H by z.  Integrals over time make it depend on T directly, ℓ = λᵀr + T w ψ, with ℓ_T = w ψ and
c = w ψ_z.  With ż = ∂z/∂T = −d x_d / T (zero for forces and parameters), by (2) of ``motion/bspline.py``

    ∂ℓ/∂P_α    = Σ_d g_d b_{d,α} / T^d                              ∂ℓ/∂T = ℓ_T + g·ż
    ∂²ℓ/∂P²    = Σ_{d,e} b_{d,α} H_de b_{e,β} / T^{d+e}             (one product of matrices for all pairs)
    ∂²ℓ/∂P∂T   = Σ_d b_{d,α} / T^d (H ż + c − (d/T) g)_d
    ∂²ℓ/∂T²    = żᵀ H ż + 2 c·ż + Σ_d d (d + 1) g_d·x_d / T²                                                         (1)

Everything is done for all nodes at once.  Where the numbers go in the sparse matrices, and by which factors, is worked
out beforehand (``sparse.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine import spline_nodes
from kinegrad.errors import InputError, ModelError, SolveError
from kinegrad.motion.bspline import SplineBasis
from kinegrad.motion.problem.functions import NodeFunction
from kinegrad.motion.problem.quantities import Mechanics

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]
FEW = 2000  # derivatives by q that are computed with torques in less time than another call takes


@dataclass(frozen=True, eq=False)
class Block:
    """A function of a grid: rows of constraints with bounds, or a term of the objective with quadrature weights."""

    function: NodeFunction
    lower: Array | None = None  # (K, R): rows
    upper: Array | None = None
    scale: Array | None = None  # (R,): for solvers
    sizes: Array | None = None  # (2, R): what an excess over either side is judged by; 0: what the row is made of
    weights: Array | None = None  # (K,): of an integral over the phase, by its duration; a term
    label: str = ""
    s: Array | None = None  # (K,): of bounds that vary in time


@dataclass(frozen=True, eq=False)
class PhaseVariables:
    """Where the unknowns of a phase are; −1 is a constant."""

    points: Index  # (control points, splines)
    values: Array  # (control points, splines): those that are constant
    duration: int
    duration_value: float
    parameters: Index  # (p,)
    parameter_values: Array
    spline: Index  # (nv,): which spline a coordinate follows; −1: none
    sign: Array  # (nv,)
    offset: Array  # (nv,): where it is constant, its value
    count: int  # of all unknowns


class Grid:
    """Instants of a phase, what is computed there, and functions of it."""

    together = True  # whether first derivatives are computed with values where there are few of them

    def __init__(
        self, basis: SplineBasis, s: Array, mechanics: Mechanics, variables: PhaseVariables, forces: Index,
        orders: int, blocks: Sequence[Block], name: str = "",
    ) -> None:  # fmt: skip
        self.basis, self.s, self.mechanics, self.variables, self.forces = basis, s, mechanics, variables, forces
        self.layout = mechanics.layout(orders)
        self.blocks, self.name, self.orders = tuple(blocks), name, orders
        self.columns, self.b = basis.window(s, orders)
        self.K, self.width = self.columns.shape
        spline = np.maximum(variables.spline, 0)
        which = variables.points[self.columns[:, None, :], spline[None, :, None]]
        self.which = np.where(variables.spline[None, :, None] >= 0, which, -1)  # (K, nv, width)
        self.states, self._constant = self._by_control_points()
        self._memory: dict[str, Any] = {}

    # --- values ---------------------------------------------------------------------------------------------------

    def duration(self, x: Array) -> float:
        v = self.variables
        return float(x[v.duration]) if v.duration >= 0 else v.duration_value

    def parameters(self, x: Array) -> Array:
        v = self.variables
        return np.where(v.parameters >= 0, x[v.parameters], v.parameter_values) if len(v.parameters) else np.zeros(0)

    def control_points(self, x: Array) -> Array:
        """(control points, splines)."""
        v = self.variables
        return np.where(v.points >= 0, x[v.points], v.values)

    def z(self, x: Array) -> Array:
        """(K, size)."""
        return np.asarray(self._remember("z", x, lambda: self._z(x)))

    def _z(self, x: Array) -> Array:
        layout, A = self.layout, self.states
        z = np.empty((self.K, layout.size))
        T = self.duration(x)
        spline_nodes.states(A.indptr, A.indices, A.data, self._constant, self.orders, x.copy(), T, z)
        if layout.size == layout.states:
            return z
        if layout.forces:
            z[:, layout.force] = self._forces(x)
        z[:, layout.parameter] = self.parameters(x)
        return z

    def _forces(self, x: Array) -> Array:
        """Of constraints, (K, forces)."""
        return x[self.forces]

    def _by_control_points(self) -> tuple[Any, Array]:
        """T^d times the state as a sparse matrix of unknowns, (K · states, …), and what of it is constant."""
        from scipy.sparse import csr_array

        v, nv, width = self.variables, self.layout.nv, self.width
        moving = np.flatnonzero(v.spline >= 0)
        shape = (self.K, self.orders, len(moving), width)
        rows = (np.arange(self.K)[:, None, None] * self.orders + np.arange(self.orders)[:, None]) * nv + moving
        rows = np.broadcast_to(rows[..., None], shape)
        entries = np.broadcast_to(self.b.transpose(1, 0, 2)[:, :, None, :] * v.sign[moving][:, None], shape)
        columns = np.broadcast_to(self.which[:, None, moving], shape)
        there = columns >= 0
        values = v.values[self.columns[:, None, :], v.spline[moving][None, :, None]]  # (K, moving, width)
        constant = np.zeros((self.K, self.orders, nv))
        constant[:, 0] = v.offset
        constant[:, :, moving] += np.where(there, 0.0, entries * values[:, None]).sum(axis=-1)
        shape_of_all = (self.K * self.orders * nv, v.count)
        matrix = csr_array((entries[there], (rows[there], columns[there])), shape=shape_of_all)
        return matrix, constant.ravel()

    def _at(self, x: Array) -> Mechanics:
        return self.mechanics if self.mechanics.design is None else self.mechanics.at(self.parameters(x))

    def _remember(self, name: str, x: Array, make: Any) -> Any:
        """One-point cache."""
        key = x.tobytes()
        known = self._memory.get(name)
        if known is None or known[0] != key:
            try:
                known = (key, make())
            except (InputError, ModelError) as error:  # beyond what numbers or a mechanism can be: a shorter step
                raise SolveError(str(error)) from error
            self._memory[name] = known
        return known[1]

    def y(self, x: Array) -> Array:
        """(K, all)."""
        return np.asarray(self._remember("y", x, lambda: self._y(x)))

    def _y(self, x: Array) -> Array:
        at, z, tau = self._at(x), self.z(x), list[Array]()
        if not (self.together and at.torques and self.K * self.layout.nv**2 <= FEW):
            return at.values(self.layout, z)
        self._memory["J"] = (x.tobytes(), at.first(self.layout, z, tau))
        return at.values(self.layout, z, tau[0])

    def J(self, x: Array) -> Array:
        """∂(τ, φ)/∂z, (K, torques + errors, size)."""
        return np.asarray(self._remember("J", x, lambda: self._at(x).first(self.layout, self.z(x))))

    def add_second(self, x: Array, mu: Array, H: Array) -> None:
        """Second derivatives of τ and φ, weighted by mu (K, torques + errors), added to H."""
        nt = self.layout.torques
        try:
            self._at(x).add_second(self.layout, self.z(x), mu[:, :nt], mu[:, nt:], H)
        except (InputError, ModelError) as error:
            raise SolveError(str(error)) from error

    @cached_property
    def rows(self) -> list[Block]:
        """Blocks that are constraints."""
        return [block for block in self.blocks if block.weights is None]

    @cached_property
    def terms(self) -> list[Block]:
        """Blocks that are parts of the objective."""
        return [block for block in self.blocks if block.weights is not None]

    # --- what depends on what -------------------------------------------------------------------------------------

    def patterns(self) -> tuple[Mask, Mask]:
        """Of each part of τ and φ: which coordinates, (c, nv), and which of forces and parameters, (c, …), it has."""
        layout, mechanics = self.layout, self.mechanics
        forced, watched = mechanics.moved
        states = np.zeros((layout.torques + layout.errors, layout.nv), dtype=bool)
        others = np.zeros((len(states), layout.forces + layout.parameters), dtype=bool)
        if layout.torques:
            states[: layout.torques] = mechanics.torque_pattern
            others[: layout.torques, : layout.forces] = forced.T
        states[layout.torques :] = watched
        others[:, layout.forces :] = True
        return states, others
