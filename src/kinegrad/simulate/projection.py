"""States drawn back onto constraints, by the least change that masses allow, and the exact derivative of that.

What integration leaves of φ(q) = 0 and G v = 0 is taken off by

    q′ = q + s,   s = M(q)⁻¹ G(q)ᵀ λ,   φ(q′) = 0                                                                  (1)
    v′ = v + M(q′)⁻¹ G(q′)ᵀ μ,          G(q′) v′ = 0                                                               (2)

Newton's method finds λ, and (2) is an inelastic impact.  With H(λ) = ∂(Gᵀλ)/∂q, derivatives of (1) solve

    M ds = [H(λ) − ∂(M s)/∂q] dq + Gᵀ dλ,      G(q′) (dq + ds) = −∂φ/∂p,

which is exact, however far the state was off: a step with its projection is one smooth function, and can be
differentiated forwards and backwards.  Where joints follow a prescribed motion, s and v′ − v are zero at these, and M
is that of the other, free joints.  Along a motion with error control, which the projection does not change beyond
its tolerance, slopes are drawn onto the linearised constraints instead (:func:`linearised`).  Slopes with respect to
the design need what the design itself does to rows and masses: :class:`Follows`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad._engine import saddle
from kinegrad.configuration import integrate
from kinegrad.constrained.dynamics import impact
from kinegrad.constrained.system import solve_dense
from kinegrad.constraints import ConstraintSet
from kinegrad.design import (
    Design,
    constraint_design_derivatives,
    constraint_jacobian_design_derivatives,
    inverse_dynamics_design_derivatives,
)
from kinegrad.dynamics import mass_matrix
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import InputError, SingularError, SolveError
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = [
    "CONSISTENT", "Placed", "check_consistent", "check_project", "check_rank", "check_slopes", "closed",
    "closed_slopes", "linearised", "nearby", "slope_errors", "still", "still_slopes", "weights",
]  # fmt: skip

Array = NDArray[np.float64]
Free = NDArray[np.int64] | None  # numbers of free speeds, where others are prescribed
CONSISTENT = 1e-8  # m or rad, and per s: how far an initial state may be off
CLOSED = 1e-10  # what must be reached; usually it is rounding
STEPS = 50
NEARBY = 1e-3  # m or rad: much more than a state is off, and less than what a motion passes through


class Placed(NamedTuple):
    """Coordinates that meet the constraints, by (1): where they were, s and λ, and how far they are off."""

    q: Array
    before: Array
    s: Array
    multipliers: Array
    off: Array


def weights(constraints: ConstraintSet, q: Array, free: Free = None) -> Array:
    """M⁻¹ Gᵀ, (..., n, m); where some speeds are prescribed, of the others, and zero for them."""
    G, M = constraints.jacobian(q), mass_matrix(constraints.model, q)
    try:
        return _solved(M, saddle.T(G), free)
    except np.linalg.LinAlgError:
        raise SingularError("the mass matrix is singular; expected every joint to move some mass") from None


def _solved(M: Array, right: Array, free: Free) -> Array:
    """M⁻¹ `right`, (..., n, k), of the free speeds alone if some are prescribed, and zero for the prescribed ones."""
    if free is None:
        return np.asarray(np.linalg.solve(M, right))
    found = np.zeros((*np.broadcast_shapes(M.shape[:-2], right.shape[:-2]), *right.shape[-2:]))
    found[..., free, :] = np.linalg.solve(M[..., free[:, None], free], right[..., free, :])
    return found


def closed(constraints: ConstraintSet, q: Array, free: Free = None) -> Placed:
    """q′ of (1) for all states, (..., nq); SolveError where Newton's method does not lead there."""
    placed = nearest(constraints, q, free)
    if not (placed.off <= CLOSED).all():
        raise SolveError(f"projection onto the constraints failed: {_worst(constraints, placed.q, 'off')}")
    return placed


def nearest(constraints: ConstraintSet, q: Array, free: Free = None) -> Placed:
    """The same as far as Newton's method leads."""
    model, q = constraints.model, np.asarray(q)
    phi = constraints.error(q)
    multipliers, B = np.zeros(phi.shape), None
    s, found, off = np.zeros((*q.shape[:-1], model.nv)), q.copy(), _size(phi)
    for _ in range(STEPS):
        if not (off > 0.0).any():
            break
        B = weights(constraints, q, free) if B is None else B
        try:
            phi, G = constraints.closure(found)
        except (InputError, SingularError):
            break
        change = saddle.pushed(G @ B, phi[..., None])[..., 0]
        trial = multipliers - change
        moved = (B @ trial[..., None])[..., 0]
        there = integrate(model, q, moved)
        try:
            now = _size(constraints.error(there))
        except (InputError, SingularError):
            break
        better = now < off
        if not better.any():
            break
        keep = better[..., None]
        found, multipliers = np.where(keep, there, found), np.where(keep, trial, multipliers)
        s, off = np.where(keep, moved, s), np.where(better, now, off)
    return Placed(found, q, s, multipliers, off)


def still(constraints: ConstraintSet, q: Array, v: Array, *, redundant: bool = False, free: Free = None) -> Array:
    """v′ of (2), (..., n)."""
    model = constraints.model
    if not redundant and free is None:
        return impact(model, constraints, q, v).v
    M, G = mass_matrix(model, q), constraints.jacobian(q)
    if free is None:
        change, _ = saddle.solve(
            "range-space", M, G, np.zeros((*v.shape, 1)), -constraints.velocity(q, v)[..., None], least=True
        )  # fmt: skip
        return np.asarray(v + change[..., 0])
    return np.asarray(v + _stopped(constraints, q, v, M, G, free, redundant)[0])


def _stopped(
    constraints: ConstraintSet, q: Array, v: Array, M: Array, G: Array, free: NDArray[np.int64], redundant: bool
) -> tuple[Array, Array]:  # fmt: skip
    """Change of speeds, (..., n), zero of prescribed ones, and impulses, (..., m), of (2)."""
    parts = M[..., free[:, None], free], G[..., free]
    sides = np.zeros((*v.shape[:-1], len(free), 1)), -constraints.velocity(q, v)[..., None]
    some, impulses = solve_dense(constraints, q, "range-space", *parts, *sides, least=redundant, free=free)
    change = np.zeros(v.shape)
    change[..., free] = some[..., 0]
    return change, impulses[..., 0]


def still_slopes(
    constraints: ConstraintSet, q: Array, v: Array, after: Array, dq: Array, dv: Array, design: Design | None,
    free: NDArray[np.int64],
) -> Array:  # fmt: skip
    """dv′ of (2), (..., n, k), from dq and dv, (..., n, k), where some speeds are prescribed; parameters as of
    :func:`closed_slopes`."""
    model, rest, change = constraints.model, np.zeros(constraints.model.nv), after - v
    M, G = mass_matrix(model, q), constraints.jacobian(q)
    _, impulses = _stopped(constraints, q, v, M, G, free, True)
    inertial = inverse_dynamics_derivatives(engine.inertial(model), q, rest, change)
    right = (constraints.curvature(q, impulses) - np.asarray(inertial.dtau_dq)) @ dq
    moved = -(np.asarray(constraints.derivatives(q, after).dvelocity_dq) @ dq) - G @ dv
    if design is not None and design.p:
        by_mass, at_rest = (
            inverse_dynamics_design_derivatives(design, q, rest, x, loads=Loads()) for x in (change, rest)
        )
        dG = constraint_jacobian_design_derivatives(design, constraints, q)
        right[..., -design.p :] += (dG * impulses[..., :, None, None]).sum(axis=-3) - by_mass + at_rest
        rates = constraint_design_derivatives(design, constraints, q, after)
        moved[..., -design.p :] -= np.asarray(rates.dvelocity_dp)
    parts = M[..., free[:, None], free], G[..., free]
    some, _ = solve_dense(constraints, q, "range-space", *parts, right[..., free, :], moved, least=True, free=free)
    found = np.array(np.broadcast_to(dv, (*some.shape[:-2], *dv.shape[-2:])))
    found[..., free, :] += some
    return found


def closed_slopes(
    constraints: ConstraintSet, placed: Placed, dq: Array, design: Design | None = None, kept: Array | None = None,
    free: Free = None,
) -> Array:  # fmt: skip
    """dq′ of (1), (..., n, k), from dq, (..., n, k); with a design, whose p parameters are the last p of k columns.

    `kept`, (m, k): what derivatives of φ are meant to be, of rows that hold a point where it landed.
    """
    model, q, s, still = constraints.model, placed.before, placed.s, np.zeros(constraints.model.nv)
    B, G = weights(constraints, q, free), constraints.jacobian(placed.q)
    inertial = inverse_dynamics_derivatives(engine.inertial(model), q, still, s)
    bend = constraints.curvature(q, placed.multipliers) - np.asarray(inertial.dtau_dq)
    right, moved = bend @ dq, np.zeros((*G.shape[:-1], dq.shape[-1]))
    if design is not None and design.p:
        by_mass, at_rest = (inverse_dynamics_design_derivatives(design, q, still, x, loads=Loads()) for x in (s, still))
        dG = constraint_jacobian_design_derivatives(design, constraints, q)
        right[..., -design.p :] += (dG * placed.multipliers[..., :, None, None]).sum(axis=-3) - by_mass + at_rest
        moved[..., -design.p :] += constraint_design_derivatives(design, constraints, placed.q).derror_dp
    moved = moved if kept is None else moved - kept
    found = dq + _solved(mass_matrix(model, q), right, free)
    return np.asarray(found - saddle.pulled(G, B, moved + G @ found))


def linearised(
    constraints: ConstraintSet, q: Array, v: Array, dq: Array, dv: Array, design: Design, kept: Array | None = None,
    free: Free = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Slopes, (..., n, p), on the linearised constraints, by the least change that masses allow.

    `kept`, (m, p): what derivatives of φ are meant to be, of rows that hold a point where it landed.
    """
    off, moving = slope_errors(constraints, q, v, dq, dv, design)
    off = off if kept is None else off - kept
    B, rows = weights(constraints, q, free), constraints.derivatives(q, v)
    G = rows.derror_dq
    change = saddle.pulled(G, B, off)
    moving = moving - np.asarray(rows.dvelocity_dq) @ change
    return np.asarray(dq - change), np.asarray(dv - saddle.pulled(G, B, moving))


def slope_errors(
    constraints: ConstraintSet, q: Array, v: Array, dq: Array, dv: Array, design: Design
) -> tuple[Array, Array]:  # fmt: skip
    """Total derivatives of φ and φ̇, (..., m, p)."""
    rows, by_design = constraints.derivatives(q, v), constraint_design_derivatives(design, constraints, q, v)
    off = rows.derror_dq @ dq + by_design.derror_dp
    return off, rows.derror_dq @ dv + np.asarray(rows.dvelocity_dq) @ dq + np.asarray(by_design.dvelocity_dp)


def check_rank(constraints: ConstraintSet, q: Array, free: Free = None) -> None:
    """Refuse states, (..., n), at which rows depend on each other that do not nearby: there, forces of least norm jump,
    and stages of a step, which are a little off the constraints, would find the mechanism locked."""
    moving = slice(None) if free is None else free
    near = nearby(constraints.model, q)
    here, there = (saddle.rank(constraints.jacobian(x)[..., moving]) for x in (q, near))
    if (here < there).any():
        state = int(np.flatnonzero(here < there)[0])
        few, more = (int(x.reshape(-1)[state]) for x in (here, there))
        raise SingularError(
            f"`redundant` is 'least-squares', and of {constraints.m} rows of the constraints {few} are independent at "
            f"`q0`{engine.state_text(state, here.shape)}, but {more} nearby; expected as many, or constraints of "
            f"{few} rows that imply the others"
        )


def nearby(model: Model, q: Array) -> Array:
    """Coordinates close to q, (..., nq), in which nothing is aligned by chance."""
    return np.asarray(integrate(model, q, NEARBY * np.cos(np.arange(1.0, model.nv + 1))))


def check_slopes(
    constraints: ConstraintSet, q: Array, v: Array, dq: Array, dv: Array, design: Design
) -> None:  # fmt: skip
    """Refuse slopes of initial states, (..., n, p), along which constraints do not stay met."""
    for name, x in zip(("dq0_dp", "dv0_dp"), slope_errors(constraints, q, v, dq, dv, design), strict=True):
        flat = np.abs(x).reshape(-1, constraints.m, design.p)
        if (flat > CONSISTENT).any():
            _, row, k = (int(i) for i in np.unravel_index(int(np.argmax(flat)), flat.shape))
            what = (
                f"row {constraints.row_names[row]!r} follows parameter {design.names[k]!r} by {flat.max():.3g} per unit"
            )
            raise InputError(
                f"`{name}` does not agree with the constraints: {what}; expected 0, so that the initial state follows "
                "the design, or `project=True`"
            )


def check_consistent(constraints: ConstraintSet, q: Array, v: Array) -> None:
    """Refuse initial states, (..., n), that do not meet the constraints: which row is furthest off, and by how much."""
    ways = "`project=True` to move it there, or see assemble and project_velocity"
    if (_size(constraints.error(q)) > CONSISTENT).any():
        raise InputError(f"`q0` does not meet the constraints: {_worst(constraints, q, 'off')}; expected 0, or {ways}")
    if (_size(constraints.velocity(q, v)) > CONSISTENT).any():
        found = _worst_row(constraints, constraints.velocity(q, v), "moves at", "per s")
        raise InputError(f"`v0` does not agree with the constraints: {found}; expected 0, or {ways}")


def check_project(project: object, constraints: ConstraintSet | None) -> None:
    """Refuse what is neither True nor False, and True without constraints."""
    if engine.flag("project", project) and constraints is None:
        raise InputError("`project` is given without `constraints`; expected both, or neither")


def _size(x: Array) -> Array:
    """The largest of each state; not a number counts as infinite."""
    size = np.abs(x).max(axis=-1, initial=0.0)
    return np.where(np.isnan(size), np.inf, size)


def _worst(constraints: ConstraintSet, q: Array, how: str) -> str:
    return _worst_row(constraints, constraints.error(q), "is off by", "")


def _worst_row(constraints: ConstraintSet, rows: Array, how: str, per: str) -> str:
    """The row that is furthest off in any state."""
    flat = np.abs(rows).reshape(-1, rows.shape[-1])
    state, row = (int(k) for k in np.unravel_index(int(np.argmax(flat)), flat.shape))
    where = f" in state {state}" if rows.ndim > 1 else ""
    return f"row {constraints.row_names[row]!r} {how} {flat[state, row]:.3g} m or rad {per}".rstrip() + where
