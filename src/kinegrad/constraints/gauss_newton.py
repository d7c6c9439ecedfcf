"""Coordinates near a guess at which φ(q) = 0, by Gauss–Newton steps within a trust region.

With G = U diag(s) Vᵀ the step of least length is

    δ = −V diag(s / (s² + λ)) Uᵀ φ

with λ = 0 where that is no longer than the radius, and else the λ that makes it so ([nocedal2006] 10.3, Levenberg and
Marquardt).  The radius grows where |φ|² falls as φ + G δ promises, and shrinks where it does not.  Since s is known,
redundant constraints, with s = 0, do no harm.  Where |φ| is more than what the largest step takes, sliders count in
longer units, so that a body 10 km away is moved and hardly turned.  A guess from which no step leads on (an arm
stretched straight that has to bend) is moved a little, at random but always alike, and tried again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinegrad.configuration import integrate
from kinegrad.constraints.constraint_set import ConstraintSet
from kinegrad.constraints.descriptions import Constraint, Loop
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model

__all__ = ["close", "flipped", "inverse", "solve", "times"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
NOISE = 1e-12  # singular values below this part of the largest are rounding
RADIUS, SMALLEST, LARGEST = 0.5, 1e-12, 8.0  # of the trust region: at first, where it has failed, at most; rad or m
FAR = 1e60  # m or rad: how far a guess may be off to be tried; products of it are still finite
STEPS, STUCK = 200, 1e-6  # of Gauss–Newton; a step that takes less than this part of |φ|² is the last
SHAKES = (0.03, 0.1, 0.3, 1.0, 3.0, 3.0, 3.0)  # by how much a guess is moved from which there is no way, rad or m


def close(constraints: ConstraintSet, start: Array, free: Flags, limit: float, threads: int | None) -> Array:
    """Coordinates, (states, nq), nearest to `start` with all rows within `limit`, or as near to that as can be."""
    q = solve(constraints, start.copy(), free, threads)
    rng = np.random.default_rng(0)
    for size in SHAKES:
        shake, off = (
            size * free * rng.normal(size=constraints.model.nv),
            _off(constraints, q),
        )  # the same for all states
        lost = np.flatnonzero(off > limit)
        if len(lost):
            shaken = integrate(constraints.model, start[lost], shake)
            again = solve(constraints, shaken, free, threads)
            better = _off(constraints, again) < off[lost]
            q[lost[better]] = again[better]
    return q


@np.errstate(all="ignore")  # a step that overflows is none
def solve(constraints: ConstraintSet, q: Array, free: Flags, threads: int | None) -> Array:
    """Steps of all states, (states, nq), until none falls any more."""
    model, radius = constraints.model, np.full(len(q), RADIUS)
    slides = np.array([kind == "prismatic" for kind in model.layout.speed_kinds], dtype=bool)
    error, G = _closure(constraints, q, free, threads)
    active = np.flatnonzero((error != 0.0).any(axis=-1) & (np.abs(error) < FAR).all(axis=-1))
    for _ in range(STEPS):
        if not len(active):
            break
        phi, size = error[active], _size(error[active])
        unit = np.where(slides, np.maximum(1.0, np.sqrt(size)[:, None] / LARGEST), 1.0)
        scaled = _step(phi, G[active] * unit[:, None, :], radius[active])
        step = unit * scaled
        promised = size - _size(phi + times(G[active], step))
        moved = integrate(model, q[active], step)
        new, new_G = _closure(constraints, moved, free, threads)
        fallen = size - _size(new)
        better = fallen > 1e-4 * promised
        done = active[better]
        q[done], error[done], G[done] = moved[better], new[better], new_G[better]
        length = np.sqrt((scaled * scaled).sum(axis=-1))
        wider = better & (fallen > 0.75 * promised)
        grown = np.minimum(np.maximum(radius[active], 2 * length), LARGEST)
        radius[active] = np.where(wider, grown, np.where(better, radius[active], 0.25 * length))
        still = (promised > 0.0) & (radius[active] > SMALLEST) & (error[active] != 0.0).any(axis=-1)
        stuck = better & (fallen < STUCK * size)
        active = active[still & ~stuck]
    return q


def _size(error: Array) -> Array:
    """|φ|²"""
    return np.asarray((error * error).sum(axis=-1))


def _closure(constraints: ConstraintSet, q: Array, free: Flags, threads: int | None) -> tuple[Array, Array]:
    """φ and G, with the columns of what is kept set to zero."""
    error, G = constraints.closure(q, threads=threads)
    return error, np.where(free, G, 0.0)


def _step(phi: Array, G: Array, radius: Array) -> Array:
    """The shortest step to φ + G δ = 0, or one as long as the radius."""
    U, s, V = np.linalg.svd(G, full_matrices=False)
    part = times(np.swapaxes(U, -1, -2), phi)
    bare = inverse(s) * part

    def length(damping: Array) -> Array:
        x = s / (s * s + damping[:, None]) * part
        return np.asarray(np.sqrt((x * x).sum(axis=-1)))

    y = bare
    long = np.sqrt((bare * bare).sum(axis=-1)) > radius
    if long.any():
        low, high = np.zeros(len(phi)), np.sqrt((s * part * s * part).sum(axis=-1)) / radius + 1e-300
        for _ in range(24):  # |δ| falls with λ, and is at most |diag(s) Uᵀφ| / λ
            middle = 0.5 * (low + high)
            above = length(middle) > radius
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        y = np.where(long[:, None], s / (s * s + high[:, None]) * part, bare)
    return -times(np.swapaxes(V, -1, -2), y)


def inverse(s: Array) -> Array:
    """1/s, of singular values that are not rounding."""
    least = NOISE * s.max(axis=-1, keepdims=True, initial=0.0)
    sound = s > least
    return np.where(sound, 1.0 / np.where(sound, s, 1.0), 0.0)


def times(A: Array, x: Array) -> Array:
    """A x of stacks."""
    return np.asarray((A * x[..., None, :]).sum(axis=-1))


def _off(constraints: ConstraintSet, q: Array) -> Array:
    """Distance of states from closure, (states,): the largest row, infinite if a loop is half a turn off."""
    largest: Array = np.abs(constraints.error(q)).max(axis=-1, initial=0.0)
    for one in constraints:
        largest[flipped(constraints.model, one, q)] = np.inf
    return largest


def flipped(model: Model, one: Constraint, q: Array) -> Flags:
    """Return True if axes of the two frames of a loop that should agree point against each other, (states,)."""
    if not isinstance(one, Loop) or sum(map(str.isupper, one.directions)) < 2:
        return np.zeros(len(q), dtype=bool)
    transforms = forward_kinematics(model, q).transform
    ours = _frame(model, transforms, one.link)[:, :3, :3] @ np.asarray(one.placement)[:3, :3]
    theirs = _frame(model, transforms, one.other)[:, :3, :3] @ np.asarray(one.other_placement)[:3, :3]
    along = (theirs * ours).sum(axis=-2)  # cosines of the angles between x, y, z of the two
    locked = [letter in one.directions for letter in "XYZ"]
    checked = along if all(locked) else along[:, [not lock for lock in locked]]
    return np.asarray((checked < 0).any(axis=-1))


def _frame(model: Model, transforms: Array, name: str | None) -> Array:
    if name is None:
        return np.eye(4)[None]
    link, placement = model.locate(name)
    return transforms[:, link] if placement is None else transforms[:, link] @ placement
