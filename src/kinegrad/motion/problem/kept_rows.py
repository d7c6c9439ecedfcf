"""Which rows of constraints are looked at, and when: as many as the splines can keep, and none twice.

A row φ(q(t)) = 0 cannot hold at all times, since splines have finitely many control points.  With m of them, of which
r₀ and r₁ are taken by conditions on speeds and accelerations at the ends, there are m − r₀ − r₁ to choose, and as
many instants can be asked for: 0, 1, and the means of k knots (Greville abscissae) of the control points
between.  These are the breakpoints if k = 3 and r₀ = r₁ = 1.  Each lies where its own basis function is not zero, so
by Schoenberg and Whitney the equations are independent; with more instants they would be too many.  Between them rows
are off by O(h^{k+1}).

Rows can depend on each other in one instant, too: two rows on one point, a planar model whose foot cannot leave its
plane, a start where all coordinates are given.  The dependence is structural, so it is found at random postures that
fulfil what is fixed; a row that adds nothing is left out, and its force with it.  What is left out must be fulfilled
by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import Constraint, ConstraintSet, Contact, Loop
from kinegrad.design import Design, constraint_design_derivatives
from kinegrad.errors import InputError
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model
from kinegrad.motion.bspline import SplineBasis
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.places import Foot, Guided, Held, Kept, Reach
from kinegrad.motion.problem.resting import Rests, resting_contact
from kinegrad.motion.problem.upright import axes_with_z

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
MET = 1e-6  # m or rad, by which a row that is left out may be off
SMALL = 1e-7  # of the largest slopes of a constraint: slopes of a row that depends on nothing


@dataclass(frozen=True, eq=False)
class Item:
    """Rows of one constraint of one phase, and when they are asked for."""

    label: str
    constraint: Constraint
    source: Any
    phase: int
    instants: tuple[float, ...]
    lower: Array  # (instants, rows)
    upper: Array
    forces: bool = False


def kept_instants(basis: SplineBasis, conditions: tuple[int, int], during: tuple[float, float]) -> tuple[float, ...]:
    """When equations are asked for."""
    first, last = conditions
    m = basis.control_points
    inner = basis.greville[first + 1 : m - 1 - last]
    s = np.unique(np.round(np.concatenate([[0.0], inner, [1.0]]), 14))
    before, after = s[s < during[0]][-1:], s[s > during[1]][:1]  # which are moved to the ends of the interval
    s = s[(s >= during[0]) & (s <= during[1])]
    ends = [during[0]] * len(before) + [during[1]] * len(after)
    return tuple(float(x) for x in np.unique(np.concatenate([s, ends])))


def named(constraint: Constraint, name: str) -> Constraint:
    """The same constraint by another name."""
    return replace(constraint, name=name)  # type: ignore[type-var]


def foot_constraint(model: Model, foot: Foot) -> Constraint:
    """The sole frame held where it stands."""
    q = np.zeros(model.nq)
    if foot.posture is not None:
        for i, value in checks.per_name("posture of Foot", foot.posture, model.coordinate_names, model.name).items():
            q[i] = checks.number(f"posture of Foot({foot.link!r}), {model.coordinate_names[i]}", value)
    i, placement = model.locate(foot.link)
    here = forward_kinematics(model, q).transform[i]
    if placement is not None:
        here = here @ placement
    sole = np.asarray(foot.sole)
    stands = sole if foot.at is None else np.asarray(foot.at)
    inside = np.linalg.solve(here, sole)
    inside[3] = [0, 0, 0, 1]
    if foot.size is None:
        axes = np.ascontiguousarray(stands[:3, :3].T)
        return Contact(foot.link, inside[:3, 3], directions=axes, other_point=stands[:3, 3])
    u, _, vt = np.linalg.svd(inside[:3, :3])
    inside[:3, :3] = u @ vt
    return Loop(foot.link, inside, other_placement=stands)


def constraint_of(model: Model, one: Any) -> Constraint:
    """Of a requirement."""
    if isinstance(one, Kept):
        return one.constraint
    if isinstance(one, Foot):
        return foot_constraint(model, one)
    if isinstance(one, Rests):
        return resting_contact(one, axes_with_z(np.asarray(one.normal)))
    if isinstance(one, Guided):
        return Contact(one.link, one.point, one.directions)
    if one.other is not None:
        return Contact(one.link, one.point, one.directions, one.other, one.other_point)
    return Contact(one.link, one.point, one.directions, other_point=one.at)


def bounds_of(one: Any, rows: int, instants: Sequence[float]) -> tuple[Array, Array]:
    """Of its rows at these instants, (instants, rows)."""
    zero = np.zeros((len(instants), rows))
    if isinstance(one, Held | Reach) and one.other is not None:
        zero += np.asarray(one.at)[["xyz".index(c) for c in one.directions]]
    if not isinstance(one, Guided):
        return zero, zero.copy()
    span = one.during[1] - one.during[0]
    s = (np.asarray(instants) - one.during[0]) / (span if span else 1.0)
    places = one.places(np.clip(s, 0, 1))[:, ["xyz".index(c) for c in one.directions]]
    return places - one.tolerance, places + one.tolerance


@dataclass(frozen=True, eq=False)
class Selected:
    """Rows of one item that are asked for, each with its instants."""

    item: Item
    rows: tuple[int, ...]
    instants: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Freedom:
    """What can move in a phase: q = spread · u + offset of splines u, and parameters of a design."""

    spread: Array  # (nv, splines)
    offset: Array  # (nv,)
    lower: Array  # (splines,): limits
    upper: Array
    ends: dict[float, tuple[Mask, Array]]  # at 0 and 1: which splines are constant, and their values
    design: Design | None
    free: Mask  # (parameters,): those that are unknown
    measured: bool = False  # whether the posture at 0 is, so that it need not fulfil what is kept

    def sample(self, s: float | None) -> tuple[Array, Mask]:
        """Three postures, (3, nv), and which splines are free."""
        rng = np.random.default_rng(19970917)
        low = np.clip(np.where(np.isfinite(self.lower), self.lower, -1.0), -1, 1)
        high = np.clip(np.where(np.isfinite(self.upper), self.upper, 1.0), -1, 1)
        u = low + rng.uniform(0.2, 0.8, (3, len(low))) * (high - low)
        moving = np.ones(len(low), dtype=bool)
        if s in self.ends:
            held, values = self.ends[s]
            u, moving = np.where(held, values, u), ~held
        return u @ self.spread.T + self.offset, moving

    def columns(self, rows: ConstraintSet, q: Array, moving: Mask) -> Array:
        """How rows change with what is free, (3, m, …)."""
        G = rows.jacobian(q) @ (self.spread * moving)
        if self.design is None or not self.free.any():
            return np.asarray(G)
        slopes = constraint_design_derivatives(self.design, rows, q).derror_dp[..., self.free]
        return np.concatenate([G, slopes], axis=-1)


def select(model: Model, items: Sequence[Item], freedom: Freedom) -> tuple[list[Selected], list[str]]:
    """Rows of the items of one phase that are independent in what is unknown; notes on what is left out."""
    left_out: dict[tuple[str, str], list[str]] = {}
    chosen: dict[tuple[int, int], list[float]] = {}
    known: dict[Any, list[tuple[int, int]]] = {}
    sets = [ConstraintSet(model, [item.constraint]) for item in items]
    for s in sorted({s for item in items for s in item.instants}):
        active = tuple(k for k, item in enumerate(items) if s in item.instants)
        key = (active, s if s in freedom.ends else None)
        if key not in known:
            known[key] = _independent(items, sets, active, freedom, s, left_out)
        for pair in known[key]:
            chosen.setdefault(pair, []).append(s)
    found: dict[tuple[int, tuple[float, ...]], list[int]] = {}
    for (k, row), instants in chosen.items():
        found.setdefault((k, tuple(instants)), []).append(row)
    notes = []
    for (label, when), names in left_out.items():
        new = [name for name in names if not when or name not in left_out.get((label, ""), [])]
        if new:
            verb = "row" if len(new) == 1 else "rows"
            notes.append(f"{label}{when}: {verb} {', '.join(new)} left out, since other conditions say the same")
    return [Selected(items[k], tuple(rows), instants) for (k, instants), rows in found.items()], notes


def _independent(
    items: Sequence[Item], sets: Sequence[ConstraintSet], active: tuple[int, ...], freedom: Freedom, s: float,
    left_out: dict[tuple[str, str], list[str]],
) -> list[tuple[int, int]]:  # fmt: skip
    q, moving = freedom.sample(s)
    span = _Span()
    found = []
    for k in active:
        slopes = freedom.columns(sets[k], q, moving)
        size = np.linalg.norm(sets[k].jacobian(q), axis=2).max(axis=1)  # of the constraint: a row may be rounding alone
        for row in range(sets[k].m):
            equal = bool((items[k].lower[:, row] == items[k].upper[:, row]).all())
            if not equal or span.adds(slopes[:, row], size):
                found.append((k, row))
                continue
            still = (np.linalg.norm(slopes[:, row], axis=1) <= SMALL * size).all()
            if still and not (freedom.measured and s == 0):
                _check_met(items[k], sets[k], row, q, s)
            when = "" if s not in freedom.ends else f" at the {'start' if s == 0 else 'end'}"
            names = left_out.setdefault((items[k].label, when), [])
            if items[k].constraint.rows[row] not in names:
                names.append(items[k].constraint.rows[row])
    return found


def rows_with_forces(model: Model, rows: ConstraintSet) -> tuple[int, ...]:
    """Rows whose forces are independent, whatever moves: of a planar mechanism those in its plane."""
    q = np.random.default_rng(19970917).uniform(-1, 1, (3, model.nq))
    G, span = rows.jacobian(q), _Span()
    size = np.maximum(np.linalg.norm(G, axis=2).max(axis=1), 1e-9)
    return tuple(r for r in range(rows.m) if span.adds(G[:, r], size))


class _Span:
    """Rows at three postures, one after another: which add something to those before."""

    def __init__(self) -> None:
        self._basis: Array | None = None

    def adds(self, row: Array, size: Array) -> bool:
        """Whether a row, (3, n), is independent at some posture, by its size."""
        left = row.copy()
        if self._basis is not None:
            for _ in range(2):
                left -= np.einsum("kmi,km->ki", self._basis, np.einsum("kmi,ki->km", self._basis, left))
        length = np.linalg.norm(left, axis=1)
        if not (length > SMALL * np.maximum(size, 1e-9)).any():
            return False
        unit = (left / np.maximum(length, 1e-300)[:, None])[:, None]
        self._basis = unit if self._basis is None else np.concatenate([self._basis, unit], axis=1)
        return True


def _check_met(item: Item, rows: ConstraintSet, row: int, q: Array, s: float) -> None:
    """Where nothing that can move changes a row, it must be fulfilled as it is."""
    target = item.lower[item.instants.index(s), row]
    off = float(np.abs(rows.error(q)[:, row] - target).max())
    if off > MET:
        when = "at the start" if s == 0 else "at the end" if s == 1 else f"at {s:.3g} of the phase"
        raise InputError(
            f"{item.label} cannot be met {when}: its row {item.constraint.rows[row]!r} is {off:.3g} off, and nothing "
            "that is free there moves it; conditions are inconsistent"
        )
