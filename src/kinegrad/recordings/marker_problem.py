"""The least-squares problem of markers, many frames at once.

Markers k are fixed in links at points x_k(q); measured are m_k.  The cost of a frame is

    E(q) = ½ Σ_k w_k |x_k(q) − m_k|² + ½ Σ_j u_j (q_j − r_j)²

over the markers that were seen, and over coordinates that should stay near given values.  No Jacobian is ever formed.
With forces f_k = w_k (x_k − m_k), and for each joint j, of axis ω_j at the point o_j, sums over the markers beyond it,

    F_j = Σ f_k,    Q_j = Σ (x_k − o_j) f_kᵀ,

the derivatives of E with respect to the joints' positions are

    g_j = ω_j · Σ (x_k − o_j) × f_k            (a slider along s_j: s_j · F_j),
    H = A + T,    A = Σ w_k J_kᵀ J_k,    T_ij = ω_i · c_j,   c_j = Q_j ω_j − tr(Q_j) ω_j    (a slider: s_j × F_j)

for i on the way from the root to j, because there ∂²x_k/∂q_i∂q_j = ω_i × ∂x_k/∂q_j; T is symmetric.  A, which is all
that Gauss and Newton take, is the mass matrix of the same tree with point masses w_k at the markers and nothing else.
Coupled coordinates q̂ = f(q) contract all of it: g = Gᵀĝ, H = Gᵀ Ĥ G + diag(Σ f″ ĝ), G = f′.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.configuration import integrate
from kinegrad.dynamics import mass_matrix
from kinegrad.errors import InputError, shown
from kinegrad.kinematics import forward_kinematics, jacobian
from kinegrad.model import Inertia, Model
from kinegrad.model.coordinates import CoupledCoordinate

__all__ = ["MarkerProblem", "coordinate_limits"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
FIRST, SLIGHT, HOPELESS = 1e-2, 1e-6, 1e12  # damping: to begin with, hardly any, no step is small enough
TRUSTED = 1e-5  # to begin with where the guess is good
LEAST, ROUNDING, TINY = 1e-1, 1e-13, 1e-300  # of the largest entry of the diagonal; and what is not zero
MICROMETRE = 1e-6
BLOCK = 512  # frames that are worked on together
LONGEST = 1.0  # rad or m of a step: beyond, a quadratic model says nothing
INNER = 6  # rounds of putting coordinates on their limits
PATIENT = 3  # steps without second derivatives
MOST_PATTERNS = 64  # of markers that are seen together, before Jacobians are formed after all


class MarkerProblem:
    """Cost, gradient and Hessian of many frames.

    Parameters
    ----------
    model : Model
    frames : sequence of str, k of them
        The frame or link of each marker.
    measured : ndarray, shape (N, k, 3)
        NaN where a marker was not seen.
    weights : ndarray, shape (k,)
    reference, pull : ndarray, shape (N, nv) and (nv,)
        r and u; r is used where u is not zero.
    """

    def __init__(
        self, model: Model, frames: Sequence[str], measured: Array, weights: Array, reference: Array, pull: Array
    ) -> None:
        self.model, self.frames, self.weights = model, list(frames), weights
        self.seen: Flags = ~np.isnan(measured[..., 0])
        self.measured = np.where(self.seen[..., None], measured, 0.0)
        self.reference, self.pull = reference, pull
        located = [model.locate(name) for name in self.frames]
        self.link_of = np.array([i for i, _ in located])
        self.places = np.array([np.zeros(3) if T is None else T[:3, 3] for _, T in located])
        patterns, pattern = np.unique(self.seen, axis=0, return_inverse=True)
        self.pattern = pattern.reshape(-1)
        self.bodies = [self._massive(each) for each in patterns] if len(patterns) <= MOST_PATTERNS else []
        self._tree()

    def _massive(self, seen: Flags) -> Model:
        """The tree with the markers that are seen as point masses, and nothing else."""
        n = self.model.n
        bodies = [Inertia.zero()] * n
        for k in np.flatnonzero(seen & (self.weights > 0)):
            i = self.link_of[k]
            bodies[i] = bodies[i] + Inertia.point(float(self.weights[k]), self.places[k])
        return self.model.replace(
            mass=np.array([body.mass for body in bodies]),
            com=np.array([body.com for body in bodies]),
            inertia=np.array([body.inertia for body in bodies]),
            gravity=np.zeros(3), stiffness=np.zeros(n), damping=np.zeros(n), armature=np.zeros(n), elements={},
        )  # fmt: skip

    def _tree(self) -> None:
        """Axes in links, what is beyond each joint, which joints are on the way to which."""
        model, n = self.model, self.model.n
        tip = np.linalg.inv(model.tip)
        axes = np.array([joint.axis for joint in model.joints])
        pitch = np.array([joint.pitch for joint in model.joints])
        turns = np.array([joint.kind != "prismatic" for joint in model.joints])
        slides = np.where(turns, pitch, 1.0)
        in_link = np.einsum("nij,nj->ni", tip[:, :3, :3].transpose(0, 1, 2), axes)
        self.axis, self.turns, self.slides, self.origin = in_link, turns.astype(float), slides, tip[:, :3, 3]
        self.above = np.zeros((n, n))  # [i, j]: i is j, or on the way to it
        for j in range(n):
            i = j
            while i >= 0:
                self.above[i, j] = 1.0
                i = int(model.parents[i])
        self.by_link = np.argsort(self.link_of, kind="stable")
        links, self.starts = np.unique(self.link_of[self.by_link], return_index=True)
        self.beyond = self.above[:, links]  # (n, links with markers)
        self.plain = not model.coordinates
        self.curves = _Curves(model.layout.functions)

    def residuals(self, rows: Any, q: Array) -> tuple[Array, Array, Array, Array]:
        """d, (B, k, 3), zero where nothing was seen; cost, (B,); x, (B, k, 3); transforms of links."""
        T = forward_kinematics(self.model, q).transform
        at = T[:, self.link_of]
        x = (at[..., :3, :3] @ self.places[..., None])[..., 0] + at[..., :3, 3]
        d = np.where(self.seen[rows][..., None], x - self.measured[rows], 0.0)
        cost = 0.5 * np.einsum("bki,bki,k->b", d, d, self.weights)
        if self.pull.any():
            off = q - self.reference[rows]
            cost += 0.5 * (off * off) @ self.pull
        return d, cost, x, T

    def derivatives(self, rows: Any, q: Array, d: Array, x: Array, T: Array, *, exact: bool) -> tuple[Array, Array]:
        """∇E, (B, nv), and H, (B, nv, nv); A alone unless it shall be exact."""
        R, p = T[..., :3, :3], T[..., :3, 3]
        w = (R @ self.axis[..., None])[..., 0]
        o = (R @ self.origin[..., None])[..., 0] + p
        f = d * self.weights[:, None]
        parts = [f, np.cross(x, f)]
        if exact:
            parts.append((x[..., :, None] * f[..., None, :]).reshape(*x.shape[:2], 9))
        sums = np.concatenate(parts, axis=-1)[:, self.by_link]
        sums = self.beyond @ np.add.reduceat(sums, self.starts, axis=1)  # over links, then over all that is beyond
        F = sums[..., :3]
        moment = sums[..., 3:6] - np.cross(o, F)
        g = (w * (self.turns[:, None] * moment + self.slides[:, None] * F)).sum(axis=-1)
        H = None
        if exact:
            Q = sums[..., 6:].reshape(len(q), -1, 3, 3) - o[..., :, None] * F[..., None, :]
            trace = (Q[..., 0, 0] + Q[..., 1, 1] + Q[..., 2, 2])[..., None]
            c = self.turns[:, None] * ((Q @ w[..., None])[..., 0] - trace * w)
            c += self.slides[:, None] * np.cross(w, F)
            upper = ((w * self.turns[:, None]) @ c.transpose(0, 2, 1)) * self.above
            H = upper + upper.transpose(0, 2, 1)
            i = np.arange(self.model.n)
            H[:, i, i] -= upper[:, i, i]
        g, H = self._contracted(q, g, H)
        A = self.matrix(rows, q)
        A = A if H is None else A + H
        if self.pull.any():
            g = g + self.pull * (q - self.reference[rows])
            A[:, range(self.model.nv), range(self.model.nv)] += self.pull
        return g, A

    def _contracted(self, q: Array, g: Array, H: Array | None) -> tuple[Array, Array | None]:
        """From joints to speeds."""
        if self.plain:
            return g, H
        layout = self.model.layout
        slopes, curves = self.curves(q[:, layout.coupled_q])
        found = np.zeros((len(q), layout.nv))
        found[:, layout.moved_v] = g[:, layout.moved]
        for joint, v, first in zip(layout.coupled, layout.coupled_v, slopes, strict=True):
            found[:, v] += first * g[:, joint]
        if H is None:
            return found, None
        half = np.zeros((len(q), layout.n, layout.nv))
        half[:, :, layout.moved_v] = H[:, :, layout.moved]
        whole = np.zeros((len(q), layout.nv, layout.nv))
        for joint, v, first in zip(layout.coupled, layout.coupled_v, slopes, strict=True):
            half[:, :, v] += first[:, None] * H[:, :, joint]
        whole[:, layout.moved_v] = half[:, layout.moved]
        for joint, v, first, second in zip(layout.coupled, layout.coupled_v, slopes, curves, strict=True):
            whole[:, v] += first[:, None] * half[:, joint]
            whole[:, v, v] += second * g[:, joint]
        return found, whole

    def matrix(self, rows: Any, q: Array) -> Array:
        """A, (B, nv, nv)."""
        found = np.empty((len(q), self.model.nv, self.model.nv))
        if len(self.bodies) == 1:
            return mass_matrix(self.bodies[0], q)
        if self.bodies:
            pattern = self.pattern[rows]
            for k in np.unique(pattern):
                here = pattern == k
                found[here] = mass_matrix(self.bodies[k], q[here])
            return found
        J = jacobian(self.model, q, link=self.frames).linear
        scale = np.sqrt(self.weights) * self.seen[rows]
        J = (J * scale[..., None, None]).reshape(len(q), -1, self.model.nv)
        return np.asarray(J.transpose(0, 2, 1) @ J)


class _Curves:
    """First and second derivatives of many functions of one coordinate each, together."""

    def __init__(self, functions: Sequence[Any]) -> None:
        parts = [function.pieces_from_knots() for function in functions]
        most = max((len(rows) for _, rows in parts), default=1)
        degree = max((rows.shape[1] - 1 for _, rows in parts), default=1)
        self.span = np.array([span for span, _ in parts]).reshape(-1, 2)
        self.knots = np.full((len(parts), most), np.inf)
        self.pieces = np.zeros((len(parts), most, max(degree, 3)))
        for k, (_, rows) in enumerate(parts):
            self.knots[k, : len(rows)] = rows[:, 0]
            self.pieces[k, : len(rows), : rows.shape[1] - 1] = rows[:, 1:]
        self.knots[:, :1] = -np.inf
        self.starts = np.array([rows[0, 0] for _, rows in parts])
        self.number = np.arange(len(parts))

    def __call__(self, x: Array) -> tuple[list[Array], list[Array]]:
        """f′ and f″ of each function at its column of x, (B, functions)."""
        if not len(self.number):
            return [], []
        inside = np.clip(x, self.span[:, 0], self.span[:, 1])
        piece = (inside[..., None] >= self.knots).sum(axis=-1) - 1
        c = self.pieces[self.number, piece]
        s = inside - np.where(piece == 0, self.starts, self.knots[self.number, piece])
        first, second = np.zeros_like(x), np.zeros_like(x)
        for k in range(c.shape[-1] - 1, 0, -1):
            first = first * s + k * c[..., k]
            if k > 1:
                second = second * s + k * (k - 1) * c[..., k]
        second = np.where(inside == x, second, 0.0)
        return list(first.T), list(second.T)


class Solver:
    """Levenberg and Marquardt's method on all frames of a problem together, within limits.

    Steps solve (A + λ D) δ = −∇E, D the diagonal of A, λ by the ratio of what a step gained to what it promised
    [nielsen1999].  A frame is done when an undamped step promises to lower its cost by no more than `tolerance` of it.
    After `PATIENT` steps A is joined by what Gauss and Newton leave out, T: along directions that markers hardly
    determine it is the larger part, and without it there are many small steps.
    """

    def __init__(self, problem: MarkerProblem, lower: Array, upper: Array, tolerance: float, most: int) -> None:
        self.problem, self.lower, self.upper = problem, lower, upper
        self.tolerance, self.most = tolerance, most
        self.limited = bool(np.isfinite(lower).any() or np.isfinite(upper).any())

    def within(self, q: Array) -> Array:
        return np.clip(q, self.lower, self.upper) if self.limited else q

    def solve(
        self, rows: NDArray[np.int64], q: Array, damping: float = FIRST
    ) -> tuple[Array, Array, NDArray[np.int64], Flags]:
        """q, cost, iterations, done of frames `rows`, from `q`, (len(rows), nq); a block after another."""
        blocks = [self._block(rows[k : k + BLOCK], q[k : k + BLOCK], damping) for k in range(0, len(rows), BLOCK)]
        q, cost, steps, done = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return q, cost, steps, done

    def _block(
        self, rows: NDArray[np.int64], start: Array, first: float
    ) -> tuple[Array, Array, NDArray[np.int64], Flags]:
        problem = self.problem
        count, i = len(rows), np.arange(problem.model.nv)
        out: tuple[Array, Array, NDArray[np.int64], Flags] = (
            self.within(np.array(start)),
            np.zeros(count),
            np.zeros(count, dtype=np.int64),
            np.zeros(count, dtype=bool),
        )
        q, at = out[0].copy(), np.arange(count)
        d, cost, x, T = problem.residuals(rows, q)
        damping, growth = np.full(count, first), np.full(count, 2.0)
        floor = self.tolerance * MICROMETRE**2 * problem.weights.sum()
        g, A = problem.derivatives(rows, q, d, x, T, exact=PATIENT == 0)
        for turn in range(self.most):
            B = A.copy()
            scale = np.abs(A[:, i, i])
            largest = scale.max(axis=-1, keepdims=True)
            D = np.maximum(scale, LEAST * largest) + TINY
            B[:, i, i] += damping[:, None] * D + ROUNDING * largest
            step, h = self._step(q, B, g)
            step *= np.minimum(1.0, LONGEST / np.maximum(np.abs(step).max(axis=-1, keepdims=True), TINY))
            promised = -(h * step).sum(axis=-1) - 0.5 * np.einsum("bi,bi->b", step, (A @ step[..., None])[..., 0])
            trial = self.moved(q, step)
            new = problem.residuals(rows[at], trial)
            gain = (cost - new[1]) / np.maximum(np.abs(promised), TINY)
            enough = self.tolerance * cost + floor
            small = (np.abs(promised) <= enough) & (damping <= SLIGHT)
            better = (new[1] < cost) & (gain > 0)
            # a step that promises nothing measurable and gains nothing is as good as done, however damped
            lost = ~better & (np.abs(promised) <= np.maximum(enough, 1e-13 * cost))
            for old, fresh in zip((q, d, cost, x, T), (trial, new[0], new[1], new[2], new[3]), strict=True):
                if better.all():
                    old[...] = fresh
                else:
                    old[better] = fresh[better]
            more = np.clip(1 - (2 * gain - 1) ** 3, 0.05, 2.0)
            damping = np.where(better, damping * more, np.maximum(damping, 1e-4) * growth)
            growth = np.where(better, 2.0, growth * 2.0)
            out[2][at] += 1
            finished = small | lost
            stay = ~(finished | (damping > HOPELESS))
            if not stay.all():
                gone = ~stay
                out[0][at[gone]], out[1][at[gone]], out[3][at[gone]] = q[gone], cost[gone], finished[gone]
                kept = (at, q, d, cost, x, T, g, A, damping, growth, better)
                at, q, d, cost, x, T, g, A, damping, growth, better = (each[stay] for each in kept)
            if not len(at):
                break
            exact = turn + 1 >= PATIENT
            if better.all():
                g, A = problem.derivatives(rows[at], q, d, x, T, exact=exact)
            elif better.any():
                g[better], A[better] = problem.derivatives(
                    rows[at[better]], *(each[better] for each in (q, d, x, T)), exact=exact
                )
        out[0][at], out[1][at] = q, cost
        return out

    def covariance(self, q: Array) -> Array:
        """Of coordinates at their minima, (N, nv, nv), for errors of markers of variance 1: H⁻¹ (Σ w² JᵀJ) H⁻¹."""
        problem, rows = self.problem, np.arange(len(q))
        measured = np.where(problem.seen[..., None], problem.measured, np.nan)
        squared = MarkerProblem(
            problem.model, problem.frames, measured, problem.weights**2, problem.reference, np.zeros_like(problem.pull)
        )
        d, _, x, T = problem.residuals(rows, q)
        g, H = problem.derivatives(rows, q, d, x, T, exact=True)
        low, high = self.room(q)
        free = ~(((low >= 0) & (g > 0)) | ((high <= 0) & (g < 0)) | (low >= high))
        both = free[:, :, None] & free[:, None, :]
        inverse = np.linalg.pinv(np.where(both, H, 0.0), rcond=1e-10, hermitian=True)
        return np.asarray(inverse @ (squared.matrix(rows, q) * both) @ inverse)

    def moved(self, q: Array, step: Array) -> Array:
        """q ⊕ step, within limits."""
        model = self.problem.model
        moved = q + step if model.nq == model.nv else integrate(model, q, step)
        return self.within(moved)

    def _step(self, q: Array, B: Array, g: Array) -> tuple[Array, Array]:
        """What minimises gᵀδ + ½ δᵀB δ, nearly, within limits, and g without what limits hold.

        What a step would carry beyond a limit is put there, and the others follow; what pushes against one, stays.
        """
        if not self.limited:
            return np.asarray(-np.linalg.solve(B, g[..., None])[..., 0]), g
        low, high = self.room(q)
        free = ~(((low >= 0) & (g > 0)) | ((high <= 0) & (g < 0)) | (low >= high))
        h, step, i = np.where(free, g, 0.0), np.zeros_like(g), np.arange(g.shape[1])
        todo = np.arange(len(g))
        for _ in range(INNER):
            f, C, right = free[todo], B[todo], g[todo]
            held = np.flatnonzero(~f.all(axis=1))
            if len(held):
                some, full = f[held], C[held]
                right[held] = np.where(some, right[held] + (full @ step[todo[held]][..., None])[..., 0], 0.0)
                full = np.where(some[:, :, None] & some[:, None, :], full, 0.0)
                full[:, i, i] += ~some * 1.0
                C[held] = full
            found = np.where(f, -np.linalg.solve(C, right[..., None])[..., 0], step[todo])
            beyond = f & ((found < low[todo]) | (found > high[todo]))
            again = beyond.any(axis=-1)
            step[todo] = np.clip(found, low[todo], high[todo])
            free[todo] &= ~beyond
            todo = todo[again]
            if not len(todo):
                break
            step[todo] = np.where(free[todo], 0.0, step[todo])
        else:
            step = np.clip(step, low, high)
        return step, h

    def room(self, q: Array) -> tuple[Array, Array]:
        """How far each speed may carry its coordinate down and up, (B, nv)."""
        low, high = self.lower - q, self.upper - q
        if self.problem.model.nq == self.problem.model.nv:
            return low, high
        layout = self.problem.model.layout
        down, up = np.full((len(q), layout.nv), -np.inf), np.full((len(q), layout.nv), np.inf)
        for places, speeds in ((layout.plain_q, layout.plain_v), (layout.coupled_q, layout.coupled_v)):
            down[:, speeds], up[:, speeds] = low[:, places], high[:, places]
        return down, up


def coordinate_limits(model: Model, changed: Mapping[str, Any] | None = None) -> tuple[Array, Array]:
    """Lower and upper limits of coordinates, (nq,) each: of the joints of their names, unless others are given."""
    lower, upper = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    layout = model.layout
    owners = dict(zip(layout.plain_q.tolist(), layout.plain.tolist(), strict=True))
    for entry in model.coordinates:
        if isinstance(entry, CoupledCoordinate) and entry.name in model.joint_names:
            owners[model.coordinate_index(entry.name)] = model.joint_index(entry.name)
    for k, joint in owners.items():
        lower[k], upper[k] = model.position_limits[joint]
    for name, pair in (changed or {}).items():
        k = model.coordinate_index(name)
        try:
            low, high = (float(x) for x in pair)
        except (TypeError, ValueError):
            raise InputError(f"`limits[{shown(name)}]` is {shown(pair)}; expected (lower, upper)") from None
        if not low <= high:
            raise InputError(f"`limits[{shown(name)}]` is ({low}, {high}); expected lower ≤ upper")
        if layout.coordinate_kinds[k] == "quaternion":
            raise InputError(f"`limits[{shown(name)}]` limits a part of a quaternion; expected another coordinate")
        lower[k], upper[k] = low, high
    return lower, upper
