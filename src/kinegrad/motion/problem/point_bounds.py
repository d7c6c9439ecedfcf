"""Bounds on points that hold at all times, from splines whose control points bound speeds and accelerations.

Let e(t) be a point of one link minus a point of another one, or of the world.  A joint j of its way moves e by at most
its lever ρ_j, the sum of lengths from the joint to the point (1 for a slider).  With Ω_j the sum of the speeds of all
hinges up to j,

    |ë| ≤ A = Σ_j ρ_j (|q̈_j| + |q̇_j| (Ω_{j−1} + Ω_j))                                                               (1)

Joints that carry both points turn e: their lever is |e|.  In one segment control points bound q̇ and q̈, and with them A.
From an instant t₀ on, e departs from its tangent by A (t − t₀)²/2 at most.  A clearance, and how far a point is from
where it is kept, are bounded in this way from both ends of an interval; where the bound does not do, the interval is
halved, until either all bounds are within the tolerance or an instant is found that is not.  Bounds are met in the
square of the length of intervals, so that some hundred instants are enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import ConstraintSet, Contact
from kinegrad.model import CoupledCoordinate, Model
from kinegrad.motion.bspline import SplineBasis
from kinegrad.motion.problem.nodes import PhaseVariables

Array = NDArray[np.float64]
MOST = 100_000  # instants of one point
SHORT = 1e-12  # s: intervals that are not halved


@dataclass(frozen=True, eq=False)
class Path:
    """Splines of one phase, and the model that they move."""

    model: Model
    basis: SplineBasis
    variables: PhaseVariables
    points: Array  # control points, (m, splines)
    T: float  # s

    def state(self, s: Array) -> tuple[Array, Array]:
        """q and v, (K, nv) each."""
        columns, b = self.basis.window(s, 2)
        v, (q, rate) = self.variables, np.einsum("dkw,kwc->dkc", b, self.points[columns])
        there = np.maximum(v.spline, 0)
        moving = v.spline >= 0
        return v.offset + np.where(moving, v.sign * q[:, there], 0.0), np.where(
            moving, v.sign * rate[:, there] / self.T, 0.0
        )

    def largest(self, order: int) -> tuple[Array, Array]:
        """Least and largest values of a derivative of each coordinate in each segment, (segments, nv) each."""
        v = self.variables
        hull = self.basis.hull(order) @ self.points / self.T**order
        window = self.basis.degree + 1 - order
        parts = np.lib.stride_tricks.sliding_window_view(hull, window, axis=0)
        one, other = (v.sign * part[:, np.maximum(v.spline, 0)] for part in (parts.min(axis=-1), parts.max(axis=-1)))
        moving, rest = v.spline >= 0, v.offset if order == 0 else 0.0
        low, high = np.minimum(one, other), np.maximum(one, other)
        return rest + np.where(moving, low, 0.0), rest + np.where(moving, high, 0.0)

    def joint_bounds(self) -> tuple[Array, Array, Array]:
        """Largest |q̂|, speed and acceleration of each joint in each segment, (segments, n) each."""
        low, high = self.largest(0)
        q, v, a = (np.maximum(*np.abs(self.largest(d))) for d in range(3))
        if not self.model.coordinates:
            return q, v, a
        layout, n = self.model.layout, self.model.n
        found = np.zeros((3, len(q), n))
        found[:, :, layout.plain] = np.stack([q, v, a])[:, :, layout.plain_v]
        for entry in self.model.coordinates:
            assert isinstance(entry, CoupledCoordinate)
            i = layout.coordinate_names.index(entry.name)
            for joint, function in zip(entry.joints, entry.functions, strict=True):
                f = np.array([_largest_of(function, a_, b_) for a_, b_ in zip(low[:, i], high[:, i], strict=True)]).T
                found[:, :, joint] = f[0], f[1] * v[:, i], f[1] * a[:, i] + f[2] * v[:, i] ** 2
        return found[0], found[1], found[2]

    def acceleration(self, contact: Contact) -> Array:
        """A of (1) for the points of a contact, by segment."""
        model = self.model.primitive
        q, v, a = self.joint_bounds()
        chains = [_chain(model, contact.link, contact.point)]
        chains += [] if contact.other is None else [_chain(model, contact.other, contact.other_point)]
        common = [j for j in chains[0][0] if all(j in chain for chain, _ in chains[1:])] if chains[1:] else []
        found, far = np.zeros(len(q)), np.zeros(len(q))
        own = []
        for chain, length in chains:
            private = [j for j in chain if j not in common]
            rho = np.empty((len(private), len(q)))
            lever = np.full(len(q), length)
            for k, j in reversed(list(enumerate(private))):
                joint = model.joints[j]
                lever = lever + _shift(model.tip[j])
                rho[k] = 1.0 if joint.kind == "prismatic" else lever + abs(joint.pitch)
                slide = {"prismatic": 1.0, "screw": abs(joint.pitch)}.get(joint.kind, 0.0)
                lever = lever + slide * q[:, j] + _shift(model.placement[j])
            own.append((private, rho))
            far += lever
        turned = np.zeros(len(q))
        turns = [model.joints[j].kind != "prismatic" for j in range(model.n)]
        for j in common:
            if turns[j]:
                found += far * (a[:, j] + v[:, j] * (2 * turned + v[:, j]))
                turned = turned + v[:, j]
        for private, rho in own:
            total = turned
            for k, j in enumerate(private):
                found += rho[k] * (a[:, j] + v[:, j] * (2 * total + turns[j] * v[:, j]))
                total = total + turns[j] * v[:, j]
        return found


def _chain(model: Model, name: str, point: Any) -> tuple[list[int], float]:
    """Joints from the world to a link or frame, and how far a point of it is from the link's origin."""
    i, placement = model.locate(name)
    local = np.asarray(point, dtype=float)
    if placement is not None:
        local = placement[:3, :3] @ local + placement[:3, 3]
    found = []
    while i >= 0:
        found.append(i)
        i = int(model.parents[i])
    return found[::-1], float(np.linalg.norm(local))


def _shift(transform: Array) -> float:
    return float(np.linalg.norm(transform[:3, 3]))


def _largest_of(function: Any, low: float, high: float) -> tuple[float, float, float]:
    """Bounds on |f|, |f′| and |f″| between two values of its coordinate."""
    (begin, end), pieces = function.pieces_from_knots()
    ends = np.append(pieces[1:, 0], end)
    found = np.abs(np.array(list(function.derivatives(np.array([low, high]), 2)))).max(axis=1)
    a, b = np.clip([low, high], begin, end)
    for (knot, *c), stop in zip(pieces.tolist(), ends.tolist(), strict=True):
        if knot > b or stop < a:
            continue
        w = max(abs(max(a, knot) - knot), abs(min(b, stop) - knot))
        for order in range(3):
            factors = [np.prod(np.arange(k - order + 1, k + 1)) for k in range(len(c))]
            bound = sum(
                abs(x) * f * w ** (k - order) for k, (x, f) in enumerate(zip(c, factors, strict=True)) if k >= order
            )
            found[order] = max(found[order], bound)
    return float(found[0]), float(found[1]), float(found[2])


Bound = Callable[[Array, Array, Array, Array, Array, Array], Array]


@dataclass(frozen=True, eq=False)
class Watch:
    """A point, when it is looked at, and its excess: at instants, and at most until half of an interval later."""

    name: str
    contact: Contact  # of all three directions
    during: tuple[float, float]
    excess: Callable[[Array, Array], Array]  # of s, e
    most: Bound  # of s, e, ė, half of the interval with its sign, s, A and the instant in the middle
    corners: tuple[float, ...] = ()  # instants where the path turns


def largest_excess(path: Path, watch: Watch, s: Array, tolerance: float) -> tuple[Array, Array, float]:
    """Instants that were looked at, excess there, and a bound at all times: within the tolerance, if it can be."""
    A, rows = path.acceleration(watch.contact), ConstraintSet(path.model, [watch.contact])
    edges = path.basis.breakpoints

    def look(at: Array) -> tuple[Array, Array, Array]:
        q, v = path.state(at)
        e = rows.error(q)
        return e, rows.velocity(q, v), watch.excess(at, e)

    e, rate, over = look(s)
    found_s, found = [s], [over]
    left, right = [s[:-1], e[:-1], rate[:-1]], [s[1:], e[1:], rate[1:]]
    bound = float(over.max(initial=-np.inf))
    count = len(s)
    while len(left[0]):
        middle = (left[0] + right[0]) / 2
        segment = np.clip(np.searchsorted(edges, middle, side="right") - 1, 0, len(edges) - 2)
        half = (right[0] - left[0]) * path.T / 2
        sides = ((left, half), (right, -half))
        most = np.max([watch.most(x[0], x[1], x[2], h, A[segment], middle) for x, h in sides], axis=0)
        open_ = most > tolerance
        bound = max(bound, float(most[~open_].max(initial=-np.inf)))
        if not open_.any():
            break
        if (
            found[-1].max(initial=-np.inf) > tolerance
            or count > MOST
            or not np.isfinite(most).all()
            or half.max() < SHORT
        ):
            bound = max(bound, float(most.max()))
            break
        left, right, middle = [x[open_] for x in left], [x[open_] for x in right], middle[open_]
        e, rate, over = look(middle)
        count += len(middle)
        found_s.append(middle)
        found.append(over)
        new = [middle, e, rate]
        left, right = (
            [np.concatenate([a, b]) for a, b in zip(left, new, strict=True)],
            [np.concatenate([b, a]) for a, b in zip(right, new, strict=True)],
        )
    order = np.argsort(np.concatenate(found_s), kind="stable")
    return np.concatenate(found_s)[order], np.concatenate(found)[order], bound
