"""From functions at nodes to gradient, Jacobian and Hessian by the unknowns: formulas (1) of ``nodes.py``.

Derivatives by z are computed at all nodes at once.  What splines make of them is linear, with constant coefficients
but for powers of the duration: where each number goes, and by which factor, is settled beforehand (``sparse.py``), so
that an evaluation is a few operations on whole arrays, whatever the problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine import spline_nodes
from kinegrad.motion.problem.coupling import Pairs, coupled
from kinegrad.motion.problem.functions import Linear
from kinegrad.motion.problem.nodes import Block, Grid
from kinegrad.motion.problem.sparse import Part, product

Array = NDArray[np.float64]
Index = NDArray[np.int64]
NONE = np.zeros(0, dtype=np.int64)
NOTHING = np.zeros((0, 0))


class GridAssembly:
    """One grid: its rows from number `first` on."""

    def __init__(self, grid: Grid, first: int) -> None:
        self.grid, self.first = grid, first
        layout = grid.layout
        others = np.broadcast_to(grid.variables.parameters, (grid.K, layout.parameters))
        forces = grid.forces if layout.forces else np.zeros((grid.K, 0), dtype=np.int64)
        self.others = np.concatenate([forces, others], axis=1).astype(np.int64)  # (K, forces + parameters)
        self.sign = grid.variables.sign
        self.starts, start = [], first
        for block in grid.rows:
            self.starts.append(start)
            start += grid.K * len(block.function.names)
        self.count = start - first
        self._order = np.repeat(np.arange(grid.orders), layout.nv)  # of each number of the state
        self._basis = np.ascontiguousarray(grid.b.transpose(1, 0, 2))  # (K, D, width)
        self._adjoints = [_Adjoint(block, layout.all) for block in (*grid.rows, *grid.terms)]
        self._jacobian_tables()
        self._hessian_tables()

    def with_blocks(self, blocks: list[Any]) -> GridAssembly:
        """The same grid with other functions."""
        own = self.grid
        grid = Grid(own.basis, own.s, own.mechanics, own.variables, own.forces, own.orders, blocks, own.name)
        return GridAssembly(grid, 0)

    # --- rows -----------------------------------------------------------------------------------------------------

    def row_numbers(self, k: int) -> Index:
        """Of block k, (K, R)."""
        size = len(self.grid.rows[k].function.names)
        return self.starts[k] + np.arange(self.grid.K * size).reshape(self.grid.K, size)

    def values(self, x: Array) -> Array:
        """Of all rows, flat."""
        y = self.grid.y(x)
        found = [block.function.value(y).ravel() for block in self.grid.rows]
        return np.concatenate(found) if found else np.zeros(0)

    # --- Jacobian -------------------------------------------------------------------------------------------------

    def _jacobian_tables(self) -> None:
        """The numbers of which the Jacobian is made: entries of ∂r/∂y times those of ∂y/∂z, by row and part of z."""
        grid, layout = self.grid, self.grid.layout
        entries = [block.function.entries for block in grid.rows]
        y = np.concatenate([NONE, *(columns for _, columns in entries)])
        rows = [self.row_numbers(k)[:, r] for k, (r, _) in enumerate(entries)]
        entry_rows = np.concatenate([np.zeros((grid.K, 0), dtype=np.int64), *rows], axis=1)  # (K, entries)
        of_coordinates, of_others = grid.patterns()
        depends = np.concatenate([*[of_coordinates] * grid.orders, of_others], axis=1)  # (computed, size)
        direct = [(e, -1, z) for e, z in enumerate(y) if z < layout.size]
        through = [(e, c * layout.size + z, z) for e in np.flatnonzero(y >= layout.size)
                   for c in [y[e] - layout.size] for z in np.flatnonzero(depends[c])]  # fmt: skip
        which, at, z = np.array(direct + through, dtype=np.int64).reshape(-1, 3).T
        in_state = z < layout.states
        orders = np.where(in_state, self._order[np.where(in_state, z, 0)], 0)
        self._timed_slopes = grid.orders > 1 and grid.variables.duration >= 0
        self._slope_tables = *map(np.ascontiguousarray, (which, at, z, orders)), self._timed_slopes
        self._timed = np.flatnonzero(orders > 0) if self._timed_slopes else NONE
        self._numbers_row, self._numbers_z, self._through = entry_rows[:, which], z, bool(through)
        self._constant = None
        if all(isinstance(block.function, Linear) for block in grid.rows):  # the same at all nodes, whatever x
            coefficients = [b.function.coefficients for b in grid.rows if isinstance(b.function, Linear)]
            self._constant = np.concatenate([np.zeros(0), *coefficients])[None]

    def jacobian_parts(self) -> list[Part]:
        """Where the numbers of :meth:`jacobian_numbers` go."""
        grid, layout = self.grid, self.grid.layout
        rows, z, count = self._numbers_row, self._numbers_z, self._numbers_row.size
        if not count:
            return []
        number = np.arange(count).reshape(rows.shape)
        s, o = np.flatnonzero(z < layout.states), np.flatnonzero(z >= layout.states)
        i = z[s] % layout.nv
        shape = (grid.K, len(s), grid.width)

        def spread(x: Index) -> Index:
            return np.broadcast_to(x[:, :, None], shape)

        factors = self._basis[:, self._order[z[s]]] * self.sign[i][:, None]
        to_points = (spread(rows[:, s]), grid.which[:, i], factors, spread(number[:, s]))
        to_others = (rows[:, o], self.others[:, z[o] - layout.states], np.ones((grid.K, len(o))), number[:, o])
        r, c, f, n = (np.concatenate([a.ravel(), b.ravel()]) for a, b in zip(to_points, to_others, strict=True))
        found = [Part(r, c, f, n, count)]
        if len(self._timed):
            found.append(Part(rows[:, self._timed], np.int64(grid.variables.duration)))
        return found

    def jacobian_numbers(self, x: Array) -> list[Array]:
        """Derivatives of rows by z, each by the power of the duration that it has; and along ż."""
        grid, rows = self.grid, self._numbers_row
        if not rows.size:
            return []
        y, slopes = grid.y(x), self._constant
        if slopes is None:
            slopes = np.concatenate([block.function.first(y) for block in grid.rows], axis=1)
        J = grid.J(x) if self._through else np.empty((0, 0, grid.layout.size))
        out = np.empty(rows.size + grid.K * len(self._timed))
        spline_nodes.row_slopes(*self._slope_tables, slopes, J, y, grid.duration(x), out)
        return [out]

    def _rates(self, y: Array, T: float) -> Array:
        """ż: how the state changes with T, (K, states)."""
        found: Array = y[:, : self.grid.layout.states] * (self._order / -T)
        return found

    # --- objective ------------------------------------------------------------------------------------------------

    def objective(self, x: Array) -> float:
        """The integrals over this phase."""
        terms = self.grid.terms
        if not terms:
            return 0.0
        y = self.grid.y(x)
        found = 0.0
        for term in terms:
            assert term.weights is not None
            found += float(term.function.value(y)[:, 0] @ term.weights)
        return float(self.grid.duration(x) * found)

    def add_gradient(self, x: Array, out: Array) -> None:
        """Of the objective, added."""
        grid, layout = self.grid, self.grid.layout
        if not grid.terms:
            return
        y, T = grid.y(x), grid.duration(x)
        by_z = self._by_z(x, self._of_terms(y, 1.0))
        states = by_z[:, : layout.states]
        out += grid.states.T @ (states * T ** (1.0 - self._order)).ravel()
        if self.others.size:
            there = self.others >= 0
            out += np.bincount(self.others[there], T * by_z[:, layout.states :][there], len(out))
        if grid.variables.duration >= 0:
            out[grid.variables.duration] += self.objective(x) / T + T * float((states * self._rates(y, T)).sum())

    def _of_rows(self, y: Array, multipliers: list[Array]) -> Array:
        """Σ λ ∂r/∂y of all rows, (K, all)."""
        found = [adjoint(y, weights) for adjoint, weights in zip(self._adjoints, multipliers, strict=False)]
        return sum(found[1:], found[0]) if found else np.zeros((self.grid.K, self.grid.layout.all))

    def _of_terms(self, y: Array, sigma: float) -> Array:
        """Σ σ w ∂ψ/∂y of all terms, (K, all)."""
        out = np.zeros((self.grid.K, self.grid.layout.all))
        for adjoint, term in zip(self._adjoints[len(self.grid.rows) :], self.grid.terms, strict=True):
            assert term.weights is not None
            out += adjoint(y, sigma * term.weights[:, None])
        return out

    def _by_z(self, x: Array, by_y: Array) -> Array:
        """(K, size)."""
        size = self.grid.layout.size
        computed = by_y[:, size:]
        if not computed.any():
            return by_y[:, :size].copy()
        found: Array = by_y[:, :size] + np.einsum("kc,kcz->kz", computed, self.grid.J(x))
        return found

    # --- Hessian --------------------------------------------------------------------------------------------------

    def _hessian_tables(self) -> None:
        grid, layout = self.grid, self.grid.layout
        nv = layout.nv
        self._pairs = [Pairs(*block.function.pairs, layout.size) for block in (*grid.rows, *grid.terms)]
        together = coupled(grid)
        moving = grid.variables.spline >= 0
        self.pair_i, self.pair_j = np.nonzero(np.tril(together[:nv, :nv]) & np.outer(moving, moving))
        self.with_i, self.with_o = np.nonzero(together[:nv, nv:] & moving[:, None])
        self.oo_a, self.oo_b = np.nonzero(np.tril(together[nv:, nv:]))
        self._curve_tables = tuple(
            np.stack(each, axis=1)
            for each in ((self.pair_i, self.pair_j), (self.with_i, self.with_o), (self.oo_a, self.oo_b))
        )
        timed = grid.orders > 1 and grid.variables.duration >= 0
        self._bent = bool(together.any() or (timed and grid.blocks) or grid.terms)
        self._by_time = grid.variables.duration >= 0 and bool(timed or grid.terms)
        W, by_time = grid.width, nv * grid.width + self.others.shape[1] + 1 if self._by_time else 0
        self._curves = grid.K * (len(self.pair_i) * W * W + len(self.with_i) * W + len(self.oo_a) + by_time)

    def hessian_parts(self) -> list[Part]:
        """Where the numbers of :meth:`hessian_numbers` go."""
        grid, W = self.grid, self.grid.width
        if not self._bent:
            return []
        found = []
        if len(self.pair_i):
            one, two = grid.which[:, self.pair_i], grid.which[:, self.pair_j]  # (K, pairs, W)
            rows = np.broadcast_to(one[:, :, :, None], (*one.shape, W))
            columns = np.broadcast_to(two[:, :, None, :], (*two.shape, W))
            same = (self.pair_i == self.pair_j)[:, None, None]
            above, on = same & (np.arange(W)[:, None] < np.arange(W)), same & np.eye(W, dtype=bool)
            signs = (self.sign[self.pair_i] * self.sign[self.pair_j])[:, None, None]
            factor = signs * np.where((rows == columns) & ~on, 2.0, 1.0)
            found.append(Part(np.where(above, -1, rows), columns, factor))
        if len(self.with_i):
            rows = np.broadcast_to(self.others[:, self.with_o, None], (grid.K, len(self.with_o), W))
            found.append(Part(rows, grid.which[:, self.with_i], self.sign[self.with_i][:, None]))
        if len(self.oo_a):
            found.append(Part(self.others[:, self.oo_a], self.others[:, self.oo_b]))
        if self._by_time:
            T = np.int64(grid.variables.duration)
            found.append(Part(grid.which, T, self.sign[:, None]))
            if self.others.size:
                found.append(Part(self.others, T))
            found.append(Part(np.full(grid.K, T), T))
        return found

    def hessian_numbers(self, x: Array, sigma: float, multipliers: Array, *, gauss_newton: bool = False) -> list[Array]:
        """Second derivatives; of Gauss–Newton, without those of τ and φ in the objective."""
        grid, layout = self.grid, self.grid.layout
        if not self._bent:
            return []
        y, T, K = grid.y(x), grid.duration(x), grid.K
        of_rows = [multipliers[start : start + K * len(block.function.names)].reshape(K, -1)
                   for start, block in zip(self.starts, grid.rows, strict=True)]  # fmt: skip
        direct = self._of_terms(y, sigma) if grid.terms else None
        mu = self._of_rows(y, of_rows)
        bent = mu[:, layout.size :]
        if direct is not None:
            mu = mu + T * direct
            bent = bent if gauss_newton else mu[:, layout.size :]
        H = np.zeros((K, layout.size, layout.size))
        if bent.any():
            grid.add_second(x, np.ascontiguousarray(bent), H)
        weights = [*of_rows, *(T * sigma * term.weights[:, None] for term in grid.terms)]  # type: ignore[index]
        for weight, block, pairs in zip(weights, (*grid.rows, *grid.terms), self._pairs, strict=True):
            if pairs.count:
                pairs.add(block.function.second(y, weight), grid, x, H)
        J = grid.J(x) if self._by_time else np.empty((0, 0, layout.size))
        room, out = np.empty((grid.orders + 5, max(layout.size, grid.width))), np.empty(self._curves)
        spline_nodes.curvatures(
            H, mu, NOTHING if direct is None else direct, J, y, self._basis, layout.nv, T, *self._curve_tables,
            self._by_time, room, out,
        )  # fmt: skip
        return [out]


class _Adjoint:
    """Σ weights ∂r/∂y of one function, (K, all): a product with a constant matrix."""

    def __init__(self, block: Block, size: int) -> None:
        self._function, (self._rows, columns) = block.function, block.function.entries
        self._constant = isinstance(self._function, Linear)
        if isinstance(self._function, Linear):
            self._matrix = np.zeros((len(self._function.names), size))
            np.add.at(self._matrix, (self._rows, columns), self._function.coefficients)
        else:
            self._matrix = np.zeros((len(columns), size))
            self._matrix[np.arange(len(columns)), columns] = 1.0

    def __call__(self, y: Array, weights: Array) -> Array:
        given = weights if self._constant else weights[:, self._rows] * self._function.first(y)
        return product(given, self._matrix)
