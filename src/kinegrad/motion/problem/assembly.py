"""From functions at nodes to gradient, Jacobian and Hessian by the unknowns: formulas (1) of ``nodes.py``.

For each grid, entries of Jacobian and Hessian fall into a few families: by control points, by forces and parameters,
and by the duration.  Each family is one array of numbers for all nodes, and one array of places that never changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.motion.problem.nodes import Grid

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]
Places = list[tuple[Index, Index]]


class GridAssembly:
    """One grid: its rows from number `first` on."""

    def __init__(self, grid: Grid, first: int) -> None:
        self.grid, self.first = grid, first
        layout, blocks = grid.layout, grid.rows
        self.of_coordinates, self.of_others = grid.patterns()
        others = np.broadcast_to(grid.variables.parameters, (grid.K, layout.parameters))
        forces = grid.forces if layout.forces else np.zeros((grid.K, 0), dtype=np.int64)
        self.others = np.concatenate([forces, others], axis=1).astype(np.int64)  # (K, forces + parameters)
        self.sign = grid.variables.sign
        self.starts, start = [], first
        for block in blocks:
            self.starts.append(start)
            start += grid.K * len(block.function.names)
        self.count = start - first
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
        return np.concatenate([np.zeros(0), *(block.function.value(y).ravel() for block in self.grid.rows)])

    # --- Jacobian -------------------------------------------------------------------------------------------------

    def _jacobian_tables(self) -> None:
        grid, layout = self.grid, self.grid.layout
        blocks = range(len(grid.rows))
        entries = [grid.rows[k].function.entries for k in blocks]
        rows = [self.row_numbers(k)[:, r] for k, (r, _) in zip(blocks, entries, strict=True)]
        none = np.zeros((grid.K, 0), dtype=np.int64)
        self.entry_rows = np.concatenate([none, *rows], axis=1)  # (K, E)
        y = np.concatenate([np.zeros(0, dtype=np.int64), *(c for _, c in entries)])
        self.packed_c, self.packed_i = np.nonzero(self.of_coordinates)
        in_state, in_other = y < layout.states, (y >= layout.states) & (y < layout.size)
        computed = y >= layout.size
        self.e_state, self.y_state = np.flatnonzero(in_state), y[in_state]
        self.e_other, self.y_other = np.flatnonzero(in_other), y[in_other] - layout.states
        self.e_computed, self.y_computed = np.flatnonzero(computed), y[computed] - layout.size
        where = [np.flatnonzero(self.packed_c == c) for c in range(len(self.of_coordinates))]
        counts = np.array([len(where[c]) for c in self.y_computed], dtype=np.int64)
        self.x_entry = np.repeat(self.e_computed, counts)
        self.x_packed = np.concatenate([np.zeros(0, dtype=np.int64), *(where[c] for c in self.y_computed)])
        pairs = [(e, c, o) for e, c in zip(self.e_computed, self.y_computed, strict=True)
                 for o in np.flatnonzero(self.of_others[c])]  # fmt: skip
        self.o_entry, self.o_c, self.o_other = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
        self.timed = grid.orders > 1 and grid.variables.duration >= 0

    def jacobian_places(self) -> Places:
        grid, layout = self.grid, self.grid.layout
        shape = (grid.K, -1, grid.width)

        def spread(rows: Index) -> Index:
            return np.broadcast_to(rows[:, :, None], (*rows.shape, grid.width))

        duration = np.int64(grid.variables.duration)
        i = self.y_state % layout.nv
        places = [
            (spread(self.entry_rows[:, self.e_state]), grid.which[:, i].reshape(shape)),
            (spread(self.entry_rows[:, self.x_entry]), grid.which[:, self.packed_i[self.x_packed]].reshape(shape)),
            (self.entry_rows[:, self.e_other], self.others[:, self.y_other]),
            (self.entry_rows[:, self.o_entry], self.others[:, self.o_other]),
        ]
        if self.timed:
            for e in (self.e_state, self.e_computed):
                rows = self.entry_rows[:, e]
                places.append((rows, np.full(rows.shape, duration)))
        return [(np.ascontiguousarray(r).ravel(), np.ascontiguousarray(c).ravel()) for r, c in places]

    def _scaled_basis(self, T: float) -> Array:
        """b_d / T^d, (K, D, width)."""
        grid = self.grid
        return np.ascontiguousarray((grid.b / T ** np.arange(grid.orders)[:, None, None]).transpose(1, 0, 2))

    def _by_points(self, J: Array, bT: Array) -> Array:
        """∂(τ, φ)/∂P on its pattern, (K, packed, width)."""
        layout, D = self.grid.layout, self.grid.orders
        columns = self.packed_i[:, None] + layout.nv * np.arange(D)
        found: Array = np.matmul(J[:, self.packed_c[:, None], columns], bT) * self.sign[self.packed_i][:, None]
        return found

    def jacobian_values(self, x: Array) -> list[Array]:
        grid, layout = self.grid, self.grid.layout
        y, T = grid.y(x), grid.duration(x)
        bT = self._scaled_basis(T)
        slopes = np.concatenate([np.zeros((grid.K, 0)), *(block.function.first(y) for block in grid.rows)], axis=1)
        d, i = self.y_state // layout.nv, self.y_state % layout.nv
        found = [slopes[:, self.e_state, None] * bT[:, d] * self.sign[i][:, None]]
        computed = len(self.e_computed) > 0
        J = grid.J(x) if computed else np.zeros((grid.K, 0, layout.size))
        packed = self._by_points(J, bT) if computed else np.zeros((grid.K, 0, grid.width))
        found.append(slopes[:, self.x_entry, None] * packed[:, self.x_packed])
        found.append(slopes[:, self.e_other])
        found.append(slopes[:, self.o_entry] * J[:, self.o_c, layout.states + self.o_other])
        if self.timed:
            rates = grid.rates(y[:, : layout.size], T)
            found.append(slopes[:, self.e_state] * rates[:, self.y_state])
            along = np.matmul(J[:, :, : layout.states], rates[:, :, None])[:, :, 0]
            found.append(slopes[:, self.e_computed] * along[:, self.y_computed])
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
            found += float(np.sum(term.function.value(y)[:, 0] * term.weights))
        return float(self.grid.duration(x) * found)

    def add_gradient(self, x: Array, out: Array) -> None:
        """Of the objective, added."""
        grid, layout, terms = self.grid, self.grid.layout, self.grid.terms
        if not terms:
            return
        y, T = grid.y(x), grid.duration(x)
        by_y = self._gradient_by_y(y, [term.weights[:, None] for term in terms], terms)  # type: ignore[index]
        by_z = self._by_z(x, by_y)
        self._add_by_variables(out, T * by_z, T)
        if grid.variables.duration >= 0:
            rates = grid.rates(y[:, : layout.size], T)
            out[grid.variables.duration] += self.objective(x) / T + T * float((by_z[:, : layout.states] * rates).sum())

    def _gradient_by_y(self, y: Array, weights: list[Any], blocks: list[Any]) -> Array:
        """Σ weights · ∂r/∂y, (K, all)."""
        out = np.zeros((self.grid.layout.all, self.grid.K))
        for weight, block in zip(weights, blocks, strict=True):
            rows, columns = block.function.entries
            np.add.at(out, columns, (weight[:, rows] * block.function.first(y)).T)
        return np.ascontiguousarray(out.T)

    def _by_z(self, x: Array, by_y: Array) -> Array:
        """(K, size)."""
        size = self.grid.layout.size
        computed = by_y[:, size:]
        if not computed.any():
            return by_y[:, :size].copy()
        found: Array = by_y[:, :size] + np.matmul(computed[:, None, :], self.grid.J(x))[:, 0]
        return found

    def _add_by_variables(self, out: Array, by_z: Array, T: float) -> None:
        grid, layout = self.grid, self.grid.layout
        states = by_z[:, : layout.states].reshape(grid.K, grid.orders, layout.nv)
        out += grid.states.T @ (states / T ** np.arange(grid.orders)[:, None]).ravel()
        if self.others.size:
            there = self.others >= 0
            out += np.bincount(self.others[there], by_z[:, layout.states :][there], len(out))

    # --- Hessian --------------------------------------------------------------------------------------------------

    def _hessian_tables(self) -> None:
        grid, layout = self.grid, self.grid.layout
        nv, D, W = layout.nv, grid.orders, grid.width
        coupled = self._coupled()
        moving = grid.variables.spline >= 0
        mask = np.tril(coupled[:nv, :nv]) & np.outer(moving, moving)
        self.pair_i, self.pair_j = np.nonzero(mask)
        d, e = np.divmod(np.arange(D * D), D)
        self.gather_i = self.pair_i[:, None] + nv * d
        self.gather_j = self.pair_j[:, None] + nv * e
        self.with_i, self.with_o = np.nonzero(coupled[:nv, nv:] & moving[:, None])
        self.oo_a, self.oo_b = np.nonzero(np.tril(coupled[nv:, nv:]))
        one, two = grid.which[:, self.pair_i], grid.which[:, self.pair_j]  # (K, pairs, W)
        rows = np.broadcast_to(one[:, :, :, None], (*one.shape, W))
        columns = np.broadcast_to(two[:, :, None, :], (*two.shape, W))
        same = (self.pair_i == self.pair_j)[:, None, None]
        upper = same & (np.arange(W)[:, None] < np.arange(W))
        self._pp = (np.where(upper, -1, rows), np.where(upper, -1, columns))
        alike = (rows == columns) & ~(same & (np.arange(W)[:, None] == np.arange(W)))
        signs = (self.sign[self.pair_i] * self.sign[self.pair_j])[:, None, None]
        factor = signs * np.where(alike, 2.0, 1.0)
        self._factor = np.broadcast_to(factor, rows.shape).reshape(grid.K, len(self.pair_i), W * W)
        self.curved = bool(coupled.any())

    def _coupled(self) -> Mask:
        """Which of coordinates, forces and parameters have second derivatives with which, before splines."""
        grid, layout, mechanics = self.grid, self.grid.layout, self.grid.mechanics
        nv, no = layout.nv, layout.forces + layout.parameters
        found = np.zeros((nv + no,) * 2, dtype=bool)
        used = np.zeros(layout.all, dtype=bool)
        for block in grid.blocks:
            used[block.function.entries[1]] = True
        support = np.zeros((layout.all, nv + no), dtype=bool)
        for k in range(layout.states):
            support[k, k % nv] = True
        support[layout.states + np.arange(no), nv + np.arange(no)] = True
        support[layout.size :, :nv] = self.of_coordinates
        support[layout.size :, nv:] = self.of_others
        forced, watched = mechanics.moved
        if used[layout.tau].any():
            found[:nv, :nv] |= mechanics.torque_pattern
            found[:nv, nv : nv + layout.forces] |= forced.T
        for row, moved in zip(range(layout.error.start, layout.error.stop), watched, strict=True):
            if used[row]:
                found[:nv, :nv] |= np.outer(moved, moved)
        if used[layout.size :].any() and layout.parameters:
            found[:, nv + layout.forces :] = True
        for block in grid.blocks:
            for a, b in zip(*block.function.pairs, strict=True):
                found |= np.outer(support[a], support[b])
        return found | found.T

    def hessian_places(self) -> Places:
        grid = self.grid
        if not self.curved and not (self.timed and grid.blocks) and not self._integrates:
            return []
        W = grid.width

        def spread(x: Index) -> Index:
            return np.broadcast_to(x[:, :, None], (*x.shape, W))

        places = [
            self._pp,
            (spread(self.others[:, self.with_o]), grid.which[:, self.with_i]),
            (self.others[:, self.oo_a], self.others[:, self.oo_b]),
        ]
        if grid.variables.duration >= 0 and (self.timed or self._integrates):
            T = np.int64(grid.variables.duration)
            places += [
                (np.full(grid.which.shape, T), grid.which),
                (np.full(self.others.shape, T), self.others),
                (np.full(grid.K, T), np.full(grid.K, T)),
            ]
        return [(np.ascontiguousarray(r).ravel(), np.ascontiguousarray(c).ravel()) for r, c in places]

    @property
    def _integrates(self) -> bool:
        return bool(self.grid.terms)

    def hessian_values(self, x: Array, sigma: float, multipliers: Array, *, gauss_newton: bool = False) -> list[Array]:
        """Numbers for `hessian_places`; of Gauss–Newton, without second derivatives of τ and φ in the objective."""
        grid, layout = self.grid, self.grid.layout
        if not self.curved and not (self.timed and grid.blocks) and not self._integrates:
            return []
        y, T = grid.y(x), grid.duration(x)
        z, S = y[:, : layout.size], layout.states
        rows, terms = grid.rows, grid.terms
        of_rows = [multipliers[self.row_numbers(k)] for k in range(len(rows))]
        of_terms = [sigma * term.weights[:, None] for term in terms]  # type: ignore[index]
        direct = self._gradient_by_y(y, of_terms, terms)
        mu = self._gradient_by_y(y, of_rows, rows) + T * direct
        H = np.zeros((grid.K, layout.size, layout.size))
        bent = mu[:, layout.size :] - (T * direct[:, layout.size :] if gauss_newton else 0.0)
        if bent.any():
            grid.add_second(x, np.ascontiguousarray(bent), H)
        for weight, block in zip([*of_rows, *(T * w for w in of_terms)], [*rows, *terms], strict=True):
            a, b = block.function.pairs
            if len(a):
                self._add_pairs(x, H, a, b, block.function.second(y, weight))
        bT = self._scaled_basis(T)
        found = [self._between_points(H, bT)]
        D = grid.orders
        columns = self.with_i[:, None] + layout.nv * np.arange(D)
        by_other = np.matmul(H[:, columns, (S + self.with_o)[:, None]][:, :, None, :], bT[:, None])[:, :, 0]
        found.append(by_other * self.sign[self.with_i][:, None])
        found.append(H[:, S + self.oo_a, S + self.oo_b])
        if grid.variables.duration >= 0 and (self.timed or self._integrates):
            found += self._by_duration(x, H, mu, direct, z, T, bT)
        return found

    def _between_points(self, H: Array, bT: Array) -> Array:
        K, D, W = bT.shape
        products = (bT[:, :, None, :, None] * bT[:, None, :, None, :]).reshape(K, D * D, W * W)
        found: Array = np.matmul(H[:, self.gather_i, self.gather_j], products) * self._factor
        return found

    def _by_duration(
        self, x: Array, H: Array, mu: Array, direct: Array, z: Array, T: float, bT: Array
    ) -> list[Array]:  # fmt: skip
        grid, layout = self.grid, self.grid.layout
        S, D, nv = layout.states, grid.orders, layout.nv
        g, c = self._by_z(x, mu), self._by_z(x, direct)
        rates = grid.rates(z, T)
        along = np.matmul(H[:, :, :S], rates[:, :, None])[:, :, 0]
        twice = (along[:, :S] * rates).sum(axis=1) + 2 * (c[:, :S] * rates).sum(axis=1)
        mixed = along + c
        for d in range(1, D):
            part = layout.state(d)
            mixed[:, part] -= d / T * g[:, part]
            twice += d * (d + 1) / T**2 * (g[:, part] * z[:, part]).sum(axis=1)
        by_points = np.einsum("kdi,kdw->kiw", mixed[:, :S].reshape(grid.K, D, nv), bT) * self.sign[:, None]
        return [by_points, mixed[:, S:], twice]

    def _add_pairs(self, x: Array, H: Array, a: Index, b: Index, values: Array) -> None:
        """Add Jᵀ O J of second derivatives O by y at places (a, b), each pair once."""
        size = self.grid.layout.size
        a, b = np.maximum(a, b), np.minimum(a, b)
        plain, mixed = a < size, (a >= size) & (b < size)
        diagonal, across = (b >= size) & (a == b), (b >= size) & (a != b)
        if plain.any():
            i, j, value = a[plain], b[plain], values[:, plain]
            H[:, i, j] += value
            off = i != j
            H[:, j[off], i[off]] += value[:, off]
        if not (mixed.any() or diagonal.any() or across.any()):
            return
        J = self.grid.J(x)
        if diagonal.any():
            rows = J[:, a[diagonal] - size]
            H += np.matmul(rows.swapaxes(1, 2), rows * values[:, diagonal, None])
        if mixed.any():
            c, at_c = np.unique(a[mixed] - size, return_inverse=True)
            z, at_z = np.unique(b[mixed], return_inverse=True)
            O = np.zeros((len(J), len(c), len(z)))  # noqa: E741
            O[:, at_c.ravel(), at_z.ravel()] = values[:, mixed]
            part = np.matmul(J[:, c].swapaxes(1, 2), O)
            H[:, :, z] += part
            H[:, z] += part.swapaxes(1, 2)
        if across.any():
            c, at_c = np.unique(a[across] - size, return_inverse=True)
            e, at_e = np.unique(b[across] - size, return_inverse=True)
            O = np.zeros((len(J), len(c), len(e)))  # noqa: E741
            O[:, at_c.ravel(), at_e.ravel()] = values[:, across]
            part = np.matmul(J[:, c].swapaxes(1, 2), np.matmul(O, J[:, e]))
            H += part + part.swapaxes(1, 2)
