"""Functions of what is known at one node: rows of constraints, and what objectives integrate.

A function r(y) has R results for each node, of y = (z, τ, φ) as :class:`~kinegrad.motion.problem.quantities.Layout` has
it.  It says once which entries of ∂r/∂y and of the second derivatives of λᵀr can differ from zero, as lists of indices,
and gives the numbers for all nodes at once.  That is all that assembly needs: no function knows splines or variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError
from kinegrad.motion.problem.quantities import Layout
from kinegrad.motion.problem.sparse import product

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class NodeFunction(Protocol):
    """r(y) at each of K nodes."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its results."""
        ...

    @property
    def entries(self) -> tuple[Index, Index]:
        """Result and part of y, of each entry of ∂r/∂y that may differ from zero."""
        ...

    @property
    def pairs(self) -> tuple[Index, Index]:
        """Two parts of y, of each second derivative that may differ from zero; each pair in one order only."""
        ...

    def value(self, y: Array) -> Array:
        """(K, R)."""
        ...

    def first(self, y: Array) -> Array:
        """(K, entries)."""
        ...

    def second(self, y: Array, weights: Array) -> Array:
        """(K, pairs), for weights (K, R)."""
        ...


NONE = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


class Linear:
    """r = A y; a number of y that is not finite enters those rows alone that have an entry for it."""

    def __init__(self, names: tuple[str, ...], rows: Any, columns: Any, coefficients: Any) -> None:
        self.names = names
        self.entries = (np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64))
        self.coefficients = np.asarray(coefficients, dtype=float)
        self.pairs = NONE
        self._single = np.array_equal(self.entries[0], np.arange(len(names)))  # one entry in each row, in order
        self._by_row = np.argsort(self.entries[0], kind="stable")
        self._filled, self._starts = np.unique(self.entries[0][self._by_row], return_index=True)

    @classmethod
    def of_matrix(cls, names: tuple[str, ...], matrix: Array, start: int) -> Linear:
        """r = matrix · y[start:]."""
        rows, columns = np.nonzero(matrix)
        return cls(names, rows, columns + start, matrix[rows, columns])

    def value(self, y: Array) -> Array:
        terms: Array = y.take(self.entries[1], axis=1) * self.coefficients
        if self._single:
            return terms
        found = np.zeros((len(y), len(self.names)))
        if len(self._starts):
            found[:, self._filled] = np.add.reduceat(terms.take(self._by_row, axis=1), self._starts, axis=1)
        return found

    def first(self, y: Array) -> Array:
        return np.broadcast_to(self.coefficients, (len(y), len(self.coefficients)))

    def second(self, y: Array, weights: Array) -> Array:
        return np.zeros((len(y), 0))


class Powers:
    """r_k = u_k (Sᵀv)_k: what each actuator delivers, of controls u = E τ."""

    def __init__(self, names: tuple[str, ...], layout: Layout, E: Array, S: Array) -> None:
        self.names, self.E, self.S = names, E, S
        self._tau, self._v = layout.tau, layout.state(1)
        (rt, ct), (cv, rv) = np.nonzero(E), np.nonzero(S)
        self._et, self._ev = (rt, ct), (rv, cv)
        start_t, start_v = layout.tau.start, layout.state(1).start
        self.entries = (np.concatenate([rt, rv]), np.concatenate([ct + start_t, cv + start_v]))
        curve = np.einsum("ki,jk->kij", E, S)  # of each power by τ_i and v_j, which several may share
        i, j = np.nonzero(curve.any(axis=0))
        self._curve, self.pairs = curve[:, i, j], (i + start_t, j + start_v)

    def _parts(self, y: Array) -> tuple[Array, Array]:
        return y[:, self._tau] @ self.E.T, y[:, self._v] @ self.S

    def value(self, y: Array) -> Array:
        u, w = self._parts(y)
        return u * w

    def first(self, y: Array) -> Array:
        u, w = self._parts(y)
        (rt, ct), (rv, cv) = self._et, self._ev
        return np.concatenate([w[:, rt] * self.E[rt, ct], u[:, rv] * self.S[cv, rv]], axis=1)

    def second(self, y: Array, weights: Array) -> Array:
        return product(weights, self._curve)


class SquaredDistance:
    """r = |M e|² / d², of e = three numbers of y; M leaves out the axis of a cylinder."""

    UNIT = " (squared distance by the least)"  # of what messages say about a row

    def __init__(self, name: str, start: int, distance: float, axis: Any = None) -> None:
        self.names, self.distance = (name + self.UNIT,), distance
        self._columns = start + np.arange(3)
        M = np.eye(3) if axis is None else np.eye(3) - np.outer(axis, axis)
        self._M = M / distance**2
        self.entries = (np.zeros(3, dtype=np.int64), self._columns)
        a, b = np.tril_indices(3)
        self._ab, self.pairs = (a, b), (self._columns[a], self._columns[b])

    def value(self, y: Array) -> Array:
        e = y[:, self._columns]
        return np.asarray(np.sum(e * (e @ self._M), axis=1, keepdims=True))

    def first(self, y: Array) -> Array:
        return 2 * y[:, self._columns] @ self._M

    def second(self, y: Array, weights: Array) -> Array:
        a, b = self._ab
        return 2 * weights * self._M[a, b]


class Squares:
    """r = Σ c (A y − target)²: efforts, accelerations, jerk, distance from a posture or a motion."""

    def __init__(
        self, name: str, rows: Any, columns: Any, coefficients: Any, weights: Array, target: Array | None = None
    ) -> None:
        self.names = (name,)
        self._A = Linear(tuple(map(str, range(len(weights)))), rows, columns, coefficients)
        self._c, self._target = weights, 0.0 if target is None else target
        r, c = self._A.entries
        self._ys, where = np.unique(c, return_inverse=True)
        self._where = where
        self.entries = (np.zeros(len(self._ys), dtype=np.int64), self._ys)
        dense = np.zeros((len(weights), len(self._ys)))
        np.add.at(dense, (r, where), self._A.coefficients)
        curve = 2 * dense.T @ (weights[:, None] * dense)
        a, b = np.nonzero(np.tril(curve))
        self.pairs, self._curve, self._dense = (self._ys[a], self._ys[b]), curve[a, b], dense

    def only(self, row: int, factor: float) -> Squares:
        """One of its rows alone, times a factor."""
        weights = np.zeros_like(self._c)
        weights[row] = factor * self._c[row]
        target = None if isinstance(self._target, float) else self._target
        return Squares(self.names[0], *self._A.entries, self._A.coefficients, weights, target)

    def magnitude(self, part: float, y: Array) -> Array:
        """Σ c (part (|A| y + |target|))² of magnitudes y, (K,)."""
        A = Linear(self._A.names, *self._A.entries, np.abs(self._A.coefficients))
        return np.asarray(((part * (A.value(y) + np.abs(self._target))) ** 2) @ np.abs(self._c))

    def _off(self, y: Array) -> Array:
        return self._A.value(y) - self._target

    def value(self, y: Array) -> Array:
        off = self._off(y)
        return np.asarray((off * off * self._c).sum(axis=1, keepdims=True))

    def first(self, y: Array) -> Array:
        return 2 * (self._off(y) * self._c) @ self._dense

    def second(self, y: Array, weights: Array) -> Array:
        return weights * self._curve


class SmoothPower:
    """r = Σ (√(P² + ε²) − ε) of powers P: their absolute value, rounded off within about ε; or Σ P."""

    def __init__(self, name: str, powers: Powers, smoothing: float | None) -> None:
        self.names, self._powers, self._eps = (name,), powers, smoothing
        _, columns = powers.entries
        self._ys, where = np.unique(columns, return_inverse=True)
        self._where = where
        self.entries = (np.zeros(len(self._ys), dtype=np.int64), self._ys)
        of_one, rows = powers.pairs, powers.entries[0]
        pairs: dict[tuple[int, int], int] = {}
        self._of_power = np.array([pairs.setdefault(_ordered(a, b), len(pairs)) for a, b in zip(*of_one, strict=True)])
        square = [
            (e, f, pairs.setdefault(_ordered(columns[e], columns[f]), len(pairs)))
            for k in range(len(powers.names))
            for e in np.flatnonzero(rows == k)
            for f in np.flatnonzero(rows == k)
            if columns[e] >= columns[f]
        ]
        self._square = (
            tuple(np.array(x, dtype=np.int64) for x in zip(*square, strict=True)) if square else (NONE[0],) * 3
        )
        keys = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        self.pairs = (keys[:, 0], keys[:, 1])

    def magnitude(self, part: float, y: Array) -> Array:
        """Σ part |u| |v| of magnitudes y, (K,)."""
        powers = self._powers
        u, w = y[:, powers._tau] @ np.abs(powers.E).T, y[:, powers._v] @ np.abs(powers.S)
        return np.asarray(part * (u * w).sum(axis=1))

    def _slopes(self, P: Array) -> tuple[Array, Array, Array]:
        if self._eps is None:
            return P, np.ones_like(P), np.zeros_like(P)
        root = np.sqrt(P * P + self._eps**2)
        return root - self._eps, P / root, self._eps**2 / root**3

    def value(self, y: Array) -> Array:
        return np.asarray(self._slopes(self._powers.value(y))[0].sum(axis=1, keepdims=True))

    def first(self, y: Array) -> Array:
        slope = self._slopes(self._powers.value(y))[1]
        out = np.zeros((len(self._ys), len(y)))
        np.add.at(out, self._where, (slope[:, self._powers.entries[0]] * self._powers.first(y)).T)
        return out.T

    def second(self, y: Array, weights: Array) -> Array:
        _, slope, curve = self._slopes(self._powers.value(y))
        out = np.zeros((len(self.pairs[0]), len(y)))
        np.add.at(out, self._of_power, self._powers.second(y, weights * slope).T)
        d, rows = self._powers.first(y), self._powers.entries[0]
        e, f, where = self._square
        np.add.at(out, where, (weights * curve[:, rows[e]] * d[:, e] * d[:, f]).T)
        return out.T


def _ordered(a: Any, b: Any) -> tuple[int, int]:
    return (int(a), int(b)) if a >= b else (int(b), int(a))


class User:
    """A term of the user's: its value and gradient by parts of y; its curvature by differences of that gradient."""

    STEP = 1e-5

    def __init__(self, name: str, layout: Layout, function: Callable[..., Any], times: Array) -> None:
        self.names, self._function, self._times = (name,), function, times
        self._parts: dict[str, slice] = {"q": layout.state(0), "v": layout.state(1), "a": layout.state(2)}
        if layout.torques:
            self._parts["tau"] = layout.tau
        if layout.forces:
            self._parts["forces"] = layout.force
        probe = self._call(np.zeros((len(times), layout.all)) + 1e-3, at_first=True)
        self._used = tuple(probe[1])
        self._ys = np.concatenate([np.arange(self._parts[x].start, self._parts[x].stop) for x in self._used])
        self.entries = (np.zeros(len(self._ys), dtype=np.int64), self._ys)
        a, b = np.tril_indices(len(self._ys))
        self._ab, self.pairs = (a, b), (self._ys[a], self._ys[b])

    def _call(self, y: Array, *, at_first: bool = False) -> tuple[Array, Mapping[str, Any]]:
        given = {name: y[:, part].copy() for name, part in self._parts.items()}
        try:
            value, slopes = self._function(s=self._times.copy(), **given)
        except (TypeError, ValueError) as error:
            if not at_first:  # it can be called; what it raises later is its own
                raise
            expected = "value (K,) and a dictionary of gradients by 'q', 'v', 'a', 'tau' or 'forces'"
            raise InputError(f"the function of {self.names[0]} fails: {error}; expected it to take s, "
                             f"{', '.join(self._parts)} and to return {expected}") from error  # fmt: skip
        value = np.asarray(value, dtype=float)
        if value.shape != (len(y),) or not isinstance(slopes, Mapping) or not set(slopes) <= set(self._parts):
            found = (
                f"shape {value.shape} and {sorted(slopes) if isinstance(slopes, Mapping) else type(slopes).__name__}"
            )
            raise InputError(f"the function of {self.names[0]} returns {found}; expected ({len(y)},) and gradients by "
                             f"some of {', '.join(self._parts)}")  # fmt: skip
        for part, x in slopes.items():
            if np.shape(x) != given[part].shape:
                found = f"gradient by {part!r} of shape {np.shape(x)}"
                raise InputError(f"the function of {self.names[0]} returns a {found}; expected {given[part].shape}")
        return value, slopes

    def _gradient(self, y: Array) -> Array:
        _, slopes = self._call(y)
        if tuple(slopes) != self._used:
            raise InputError(f"the function of {self.names[0]} returns gradients by other parts than at first")
        return np.concatenate([np.asarray(slopes[x], dtype=float) for x in self._used], axis=1)

    def value(self, y: Array) -> Array:
        return self._call(y)[0][:, None]

    def first(self, y: Array) -> Array:
        return self._gradient(y)

    def second(self, y: Array, weights: Array) -> Array:
        size, K = len(self._ys), len(y)
        H = np.empty((K, size, size))
        for j, column in enumerate(self._ys):
            h = self.STEP * (1 + np.abs(y[:, column]))
            sides = []
            for way in (1, -1):
                moved = y.copy()
                moved[:, column] += way * h
                sides.append(self._gradient(moved))
            H[:, :, j] = (sides[0] - sides[1]) / (2 * h[:, None])
        H = 0.5 * (H + H.swapaxes(1, 2))
        a, b = self._ab
        return weights * H[:, a, b]
