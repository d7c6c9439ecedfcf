"""Coordinates and speeds that fulfil constraints: assemble, project_velocity.

Assembly finds the q near a guess at which φ(q) = 0, by Gauss–Newton steps within a trust region.  With G = U diag(s) Vᵀ
the step of least length is

    δ = −V diag(s / (s² + λ)) Uᵀ φ

with λ = 0 where that is no longer than the radius, and else the λ that makes it so ([nocedal2006] 10.3, Levenberg and
Marquardt).  The radius grows where |φ|² falls as φ + G δ promises, and shrinks where it does not.  Since s is known,
redundant constraints, with s = 0, do no harm.  Where |φ| is more than what the largest step takes, sliders count in
longer units, so that a body 10 km away is moved and hardly turned.  A guess from which no step leads on (an arm
stretched straight that has to bend) is moved a little, at random but always alike, and tried again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import integrate
from kinegrad.constraints.constraint_set import ConstraintSet
from kinegrad.constraints.descriptions import Constraint, Loop
from kinegrad.dynamics import mass_matrix
from kinegrad.errors import InputError, ModelError, SolveError, shown
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model
from kinegrad.model.names import as_tuple, find_name

__all__ = ["assemble", "check_set", "project_velocity"]

Array = NDArray[np.float64]
TOLERANCE = 1e-10  # m or rad
NOISE = 1e-12  # singular values below this part of the largest are rounding
RADIUS, SMALLEST, LARGEST = 0.5, 1e-12, 8.0  # of the trust region: at first, where it has failed, at most; rad or m
FAR = 1e60  # m or rad: how far a guess may be off to be tried; products of it are still finite
STEPS, STUCK = 200, 1e-6  # of Gauss–Newton; a step that takes less than this part of |φ|² is the last
SHAKES = (0.03, 0.1, 0.3, 1.0, 3.0, 3.0, 3.0)  # by how much a guess is moved from which there is no way, rad or m


def assemble(
    model: Model,
    constraints: ConstraintSet,
    q_guess: ArrayLike,
    *,
    keep: Iterable[str] = (),
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> Array:
    """Close a mechanism: coordinates near a guess that meet all constraints.

    Parameters
    ----------
    model : Model
    constraints : ConstraintSet
        Of this model.
    q_guess : array_like, shape (..., nq)
        Where to begin; quaternions of unit length.
    keep : iterable of str
        Coordinates that stay as they are in the guess, bit for bit; of a quaternion, the name of the ball joint.
    tolerance : float
        How far every row may be from zero in the end, m or rad.  Where constraints can be met, the last steps usually
        come much closer.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., nq)
        Each step is the shortest there is, so that coordinates which need not change hardly do.

    Raises
    ------
    SolveError
        If constraints cannot be met from there: names the one that is furthest off, and by how much.
    SingularError
        If the two points of a distance are at one place in a guess, from where no direction leads to its length.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> wall = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="x", other_point=[0.5, 0, 0])])
    >>> q = assemble(arm, wall, [0.3, 1.0], keep=["shoulder"])
    >>> q[0], bool(abs(wall.error(q)[0]) < 1e-10)
    (np.float64(0.3), True)
    """
    check_set(model, constraints)
    limit = engine.positive("tolerance", tolerance)
    free = _free_speeds(model, keep)
    guess = engine.check_arguments(model, {"q_guess": q_guess})[0]["q_guess"]
    constraints.check_rods(guess)
    shape, start = guess.shape[:-1], guess.reshape(-1, model.nq)
    q = _solve(constraints, start.copy(), free, threads)
    rng = np.random.default_rng(0)
    for size in SHAKES:
        shake, off = size * free * rng.normal(size=model.nv), _off(constraints, q)  # the same for all states
        lost = np.flatnonzero(off > limit)
        if len(lost):
            shaken = integrate(model, start[lost], shake)
            again = _solve(constraints, shaken, free, threads)
            better = _off(constraints, again) < off[lost]
            q[lost[better]] = again[better]
    kept = _kept_coordinates(model, free)
    q[:, kept] = start[:, kept]
    _check(constraints, q, limit, shape)
    return q.reshape(guess.shape)


def project_velocity(
    model: Model, constraints: ConstraintSet, q: ArrayLike, v: ArrayLike, *, threads: int | None = None
) -> Array:
    """Speeds that keep the constraints met, G v = 0, as near as can be to those given.

    Of all such speeds they have the least kinetic energy of the difference, ½ (v′ − v)ᵀ M (v′ − v): what an inelastic
    impact would leave.

    Parameters
    ----------
    model : Model
    constraints : ConstraintSet
        Of this model.
    q : array_like, shape (..., nq)
        Coordinates.
    v : array_like, shape (..., nv)
        Speeds.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., nv)

    Raises
    ------
    SingularError
        If nothing resists a coordinate, so that the mass matrix is singular.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> wall = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    >>> v = project_velocity(arm, wall, [0.3, 1.0], [1.0, 0.0])
    >>> bool(np.abs(wall.velocity([0.3, 1.0], v)).max() < 1e-15)
    True
    """
    check_set(model, constraints)
    given = engine.check_arguments(model, {"q": q, "v": v})[0]
    shape = np.broadcast_shapes(*(x.shape[:-1] for x in given.values()))
    x, speeds = (np.broadcast_to(x, (*shape, x.shape[-1])) for x in given.values())
    G, M = constraints.jacobian(x, threads=threads), mass_matrix(model, x, threads=threads)
    stuck = engine.factor_pivot(M, np.diagonal(M, axis1=-2, axis2=-1))
    if stuck is not None:
        raise engine.free_joint(model, *stuck, shape, "coordinate" if model.coordinates else "joint")
    with np.errstate(all="ignore"):  # what overflows is found below
        found = _projected(G, M, speeds)
    if not np.isfinite(found).all():
        raise InputError("the results are not finite: they overflow float64; expected smaller numbers")
    return found


def _projected(G: Array, M: Array, v: Array) -> Array:
    """v less M⁻¹Gᵀ(G M⁻¹Gᵀ)⁺ G v, by the singular values of G L⁻ᵀ, where M = L Lᵀ."""
    root, found = np.linalg.cholesky(M), np.array(v)
    weighted = np.swapaxes(np.linalg.solve(root, np.swapaxes(G, -1, -2)), -1, -2)
    size = np.sqrt((weighted * weighted).sum(axis=-1, keepdims=True))
    size = np.where(size > 0, size, 1.0)  # rows may be of any: what is rounding is judged by unit lengths
    weighted, G = weighted / size, G / size
    U, s, V = np.linalg.svd(weighted, full_matrices=False)
    for _ in range(2):  # the second takes off what rounding left
        part = _inverse(s) * _times(np.swapaxes(U, -1, -2), _times(G, found))
        change = _times(np.swapaxes(V, -1, -2), part)
        found -= np.linalg.solve(np.swapaxes(root, -1, -2), change[..., None])[..., 0]
    return found


def check_set(model: Any, constraints: Any) -> None:
    """Refuse what is not a model, and constraints that are not of it."""
    engine.check_model(model)
    if not isinstance(constraints, ConstraintSet):
        raise InputError(f"`constraints` is {shown(constraints)}; expected a ConstraintSet(model, [...])")
    if constraints.model is not model and constraints.model != model:
        found = f"`constraints` are of model {shown(constraints.model.name)}, and `model` is {shown(model.name)}"
        raise InputError(f"{found}, which is not equal to it; expected one model")


# --- Gauss–Newton -----------------------------------------------------------------------------------------------


@np.errstate(all="ignore")  # a step that overflows is none
def _solve(constraints: ConstraintSet, q: Array, free: NDArray[np.bool_], threads: int | None) -> Array:
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
        promised = size - _size(phi + _times(G[active], step))
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


def _closure(constraints: ConstraintSet, q: Array, free: NDArray[np.bool_], threads: int | None) -> tuple[Array, Array]:
    """φ and G, with the columns of what is kept set to zero."""
    error, G = constraints.closure(q, threads=threads)
    return error, np.where(free, G, 0.0)


def _step(phi: Array, G: Array, radius: Array) -> Array:
    """The shortest step to φ + G δ = 0, or one as long as the radius."""
    U, s, V = np.linalg.svd(G, full_matrices=False)
    part = _times(np.swapaxes(U, -1, -2), phi)
    bare = _inverse(s) * part

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
    return -_times(np.swapaxes(V, -1, -2), y)


def _inverse(s: Array) -> Array:
    """1/s, of singular values that are not rounding."""
    least = NOISE * s.max(axis=-1, keepdims=True, initial=0.0)
    sound = s > least
    return np.where(sound, 1.0 / np.where(sound, s, 1.0), 0.0)


def _times(A: Array, x: Array) -> Array:
    """A x of stacks."""
    return np.asarray((A * x[..., None, :]).sum(axis=-1))


# --- what is kept, what is met ----------------------------------------------------------------------------------


def _balls(model: Model) -> dict[str, slice]:
    """Names of ball joints that are quaternions, and where their speeds are."""
    return {model.coordinate_names[k].removesuffix(".w"): slice(v, v + 3) for _, k, v in model.layout.balls}


def _free_speeds(model: Model, keep: Any) -> NDArray[np.bool_]:
    """Which speeds may change, (nv,)."""
    try:
        names = as_tuple("keep", keep, "names of coordinates, as in keep=['knee']")
    except ModelError as error:
        raise InputError(str(error)) from None
    balls, free = _balls(model), np.ones(model.nv, dtype=bool)
    single = [name for name in model.speed_names if name in model.coordinate_names]
    for name in names:
        if isinstance(name, str) and name in balls:
            free[balls[name]] = False
        else:
            find_name("coordinate", name, (*single, *balls), model.name)
            free[model.speed_index(name)] = False
    return free


def _kept_coordinates(model: Model, free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which coordinates do not change, (nq,)."""
    speed = {name: k for k, name in enumerate(model.speed_names)}
    kept = np.array([name in speed and not free[speed[name]] for name in model.coordinate_names])
    for _, k, v in model.layout.balls:
        kept[k : k + 4] = not free[v]
    return kept


def _check(constraints: ConstraintSet, q: Array, tolerance: float, shape: tuple[int, ...]) -> None:
    """Say which constraint is not met, in the first state in which one is not."""
    error = np.abs(constraints.error(q))
    wrong = np.flatnonzero((error > tolerance).any(axis=-1))
    if len(wrong):
        state = int(wrong[0])
        row = int(error[state].argmax())
        also = {constraints.constraint_of(int(k)) for k in np.flatnonzero(error[state] > tolerance)}
        worst = constraints.constraint_of(row)
        others = f"; nor can {', '.join(map(shown, sorted(also - {worst})))}" if len(also) > 1 else ""
        found = f"constraint {shown(worst)} cannot be met{engine.state_text(state, shape)} from this guess: "
        found += f"its row {shown(constraints.row_names[row])} is off by {error[state, row]:.3g}{others}"
        raise SolveError(f"{found}; expected at most {tolerance:.3g}: try another guess, or keep fewer coordinates")
    for loop in constraints:
        flipped = np.flatnonzero(_flipped(constraints.model, loop, q))
        if len(flipped):
            found = f"constraint {shown(loop.name)} is met{engine.state_text(int(flipped[0]), shape)}"
            raise SolveError(
                f"{found} with its two frames half a turn apart; expected them to agree: begin with a guess that is "
                "nearer"
            )


def _off(constraints: ConstraintSet, q: Array) -> Array:
    """How far states are from closure, (states,): the largest row, infinite where a loop is half a turn off."""
    largest: Array = np.abs(constraints.error(q)).max(axis=-1, initial=0.0)
    for one in constraints:
        largest[_flipped(constraints.model, one, q)] = np.inf
    return largest


def _flipped(model: Model, one: Constraint, q: Array) -> NDArray[np.bool_]:
    """Whether axes of the two frames of a loop that should agree point against each other, (states,)."""
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
