"""Coordinates that fulfil constraints: assemble, assemble_path.

How a posture is closed is in :mod:`kinegrad.constraints.gauss_newton`, and how a branch is followed from one posture to
the next in :mod:`kinegrad.constraints.paths`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import difference
from kinegrad.constraints.constraint_set import ConstraintSet
from kinegrad.constraints.gauss_newton import close, flipped
from kinegrad.constraints.paths import MEET, Tracker
from kinegrad.errors import BranchWarning, InputError, ModelError, SolveError, shown
from kinegrad.model import Model
from kinegrad.model.names import as_tuple, find_name
from kinegrad.results import Result

__all__ = ["AssembledPath", "assemble", "assemble_path", "check_set", "free_speeds"]

Array = NDArray[np.float64]
JUMP = 0.5  # rad or m: between neighbours whose kept coordinates agree
TOLERANCE = 1e-10  # m or rad


@dataclass(frozen=True, eq=False)
class AssembledPath(Result):
    """Postures of a path, and where its branch could not be followed.

    Attributes
    ----------
    q : ndarray, shape (m, ..., nq)
        Coordinates that meet all constraints.
    followed : ndarray of bool, shape (m, ...)
        Whether a posture is on the branch of the posture before it, without doubt; True for the first.
    messages : tuple of str
        A sentence for each posture that is not: its index, where on the way to it, and what was done.
    """

    q: Array
    followed: NDArray[np.bool_]
    messages: tuple[str, ...]

    @property
    def success(self) -> bool:
        """Return True if all postures are on the branch of the first."""
        return not self.messages


def assemble(
    model: Model,
    constraints: ConstraintSet,
    q_guess: ArrayLike,
    *,
    keep: Iterable[str] = (),
    continuation: bool | None = None,
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
    continuation : bool, optional
        True: the first axis of `q_guess` is a path along which the coordinates in `keep` are led, and all postures are
        on the branch of the first; see :func:`assemble_path`.  False: each posture is closed by itself, from its own
        guess, on whichever branch is near.  By default True for an ordered batch: one batch axis, `keep` given, and
        one guess of the other coordinates for all postures.
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

    Warns
    -----
    BranchWarning
        If the branch could not be followed to some postures of a path, with their indices; or if neighbours in a batch
        are far apart although their guesses are not, and `continuation` is not given.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> wall = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="x", other_point=[0.5, 0, 0])])
    >>> q = assemble(arm, wall, [0.3, 1.0], keep=["shoulder"])
    >>> q[0], bool(abs(wall.error(q)[0]) < 1e-10)
    (np.float64(0.3), True)

    A crank is turned once; the rocker swings to and fro on one branch:

    >>> linkage, loop = kg.samples.four_bar()
    >>> turn = np.zeros((5, 3))
    >>> turn[:, 0] = np.linspace(0, 2 * np.pi, 5)
    >>> assemble(linkage, loop, turn, keep=["crank"])[:, 2].round(3)
    array([0.   , 0.032, 0.727, 0.793, 0.   ])
    """
    free, guess, limit = _checked(model, constraints, q_guess, keep, tolerance)
    kept = _kept_coordinates(model, free)
    asked = continuation is not None
    if continuation is None:
        continuation = _ordered(guess, kept)
    elif engine.flag("continuation", continuation):
        _check_path(guess, free)
    if continuation:
        path = _path(constraints, guess, free, kept, limit, threads)
        if path.messages:
            more = f"; and at {len(path.messages) - 1} more" if len(path.messages) > 1 else ""
            text = f"the branch is not followed at {path.messages[0]}{more}: assemble_path lists them"
            warnings.warn(text, BranchWarning, stacklevel=2)
        return path.q
    shape, start = guess.shape[:-1], guess.reshape(-1, model.nq)
    q = close(constraints, start, free, limit, threads)
    q[:, kept] = start[:, kept]
    _check(constraints, q, limit, shape)
    found = q.reshape(guess.shape)
    jump = "" if asked else _jump(model, guess, found, kept)
    if jump:
        warnings.warn(jump, BranchWarning, stacklevel=2)
    return found


def assemble_path(
    model: Model,
    constraints: ConstraintSet,
    q_guess: ArrayLike,
    *,
    keep: Iterable[str],
    tolerance: float = TOLERANCE,
    threads: int | None = None,
) -> AssembledPath:
    """Close a mechanism along a path of kept coordinates, on one branch.

    The first posture is closed from its guess.  From each posture to the next the coordinates in `keep` go straight, in
    steps that are as short as the branch needs, however far the postures are apart; the others follow from the
    constraints.  Their guesses matter only where the branch ends.

    Parameters
    ----------
    model, constraints, keep, tolerance, threads
        As of :func:`assemble`; `keep` names at least one coordinate.
    q_guess : array_like, shape (m, ..., nq)
        Along the first axis the postures of a path; other batch axes are paths of their own.

    Returns
    -------
    AssembledPath
        Where branches meet on the way to a posture (a parallelogram laid flat), the path goes straight on, and where
        the branch ends (kept coordinates that it does not reach), the posture is closed by itself; ``followed`` is
        False there, and ``messages`` say so.

    Raises
    ------
    SolveError, SingularError
        As :func:`assemble`.

    Examples
    --------
    >>> import kinegrad as kg
    >>> flat, pin = kg.samples.four_bar(ground=0.5, crank=0.2, coupler=0.5, rocker=0.2001)
    >>> turn = np.zeros((3, 3))
    >>> turn[:, 0] = [0.5, 1.0, 1.5]  # rad
    >>> path = assemble_path(flat, pin, turn, keep=["crank"])
    >>> path.success, path.followed
    (True, array([ True,  True,  True]))
    """
    free, guess, limit = _checked(model, constraints, q_guess, keep, tolerance)
    _check_path(guess, free)
    return _path(constraints, guess, free, _kept_coordinates(model, free), limit, threads)


def check_set(model: Any, constraints: Any) -> None:
    """Refuse what is not a model, and constraints that are not of it."""
    engine.check_model(model)
    if not isinstance(constraints, ConstraintSet):
        raise InputError(f"`constraints` is {shown(constraints)}; expected a ConstraintSet(model, [...])")
    if constraints.model is not model and constraints.model != model:
        found = f"`constraints` are of model {shown(constraints.model.name)}, and `model` is {shown(model.name)}"
        raise InputError(f"{found}, which is not equal to it; expected one model")


# --- paths ------------------------------------------------------------------------------------------------------


def _ordered(guess: Array, kept: NDArray[np.bool_]) -> bool:
    """Return True if guesses, (..., nq), are a path: kept coordinates, and one guess of the others for all."""
    others = guess[..., ~kept]
    return bool(guess.ndim == 2 and len(guess) > 1 and kept.any() and not kept.all() and (others == others[0]).all())


def _jump(model: Model, guess: Array, q: Array, kept: NDArray[np.bool_]) -> str:
    """Return a sentence on the first neighbours in a batch that seem to be on two branches; "" without any."""
    if not kept.any() or kept.all():
        return ""
    for axis in range(q.ndim - 1):
        step, meant = (np.abs(np.diff(x, axis=axis)) for x in (q, guess))
        led, free = step[..., kept].max(axis=-1), np.where(kept, 0.0, step)
        far = free.max(axis=-1) > JUMP + 10 * led + 2 * meant.max(axis=-1)
        if far.any():
            where = tuple(int(i) for i in np.argwhere(far)[0])
            other = tuple(i + (k == axis) for k, i in enumerate(where))
            name = model.coordinate_names[int(np.argmax(free[where]))]
            one, two = (str(x[0] if len(x) == 1 else x) for x in (where, other))
            text = f"postures {one} and {two} differ by {free[where].max():.3g} in {shown(name)}"
            return (
                f"{text}, and by {led[where]:.3g} in what is kept: they may be on two branches; continuation=True "
                "follows one, continuation=False closes each by itself"
            )
    return ""


def _check_path(guess: Array, free: NDArray[np.bool_]) -> None:
    if guess.ndim < 2:
        raise InputError(f"`q_guess` has shape {guess.shape}; expected the postures of a path, (m, ..., nq)")
    if free.all():
        raise InputError("`keep` is empty; expected the coordinates that lead along the path, such as ['crank']")


def _path(
    constraints: ConstraintSet, guess: Array, free: NDArray[np.bool_], kept: NDArray[np.bool_], limit: float,
    threads: int | None,
) -> AssembledPath:  # fmt: skip
    """Postures on the branch of the first, path by path."""
    shape, count = guess.shape[:-1], len(guess)
    starts = guess.reshape(count, math.prod(shape[1:]), guess.shape[-1])
    q, followed, messages = starts.copy(), np.ones(starts.shape[:-1], dtype=bool), []
    if count:
        q[0] = close(constraints, starts[0], free, limit, threads)
        q[0][:, kept] = starts[0][:, kept]
        _check(constraints, q[0], limit, (1, *shape[1:]))
    for j in range(starts.shape[1] if count else 0):
        tracker = Tracker(constraints, free, limit, threads)
        for k in range(1, count):
            q[k, j], trouble, done = tracker.follow(q[k - 1, j], starts[k, j])
            if trouble:
                followed[k, j] = False
                index = k if len(shape) == 1 else (k, *(int(i) for i in np.unravel_index(j, shape[1:])))
                messages.append(_told(constraints.model, index, trouble, q[k - 1, j], starts[k, j], done, free))
            if trouble and trouble != MEET:
                q[k, j] = tracker.closed(q[k - 1, j], starts[k, j])
            q[k, j, kept] = starts[k, j, kept]
            q[k, j] = tracker.polished(q[k, j])
            q[k, j, kept] = starts[k, j, kept]
            if trouble and not tracker.met(q[k, j]):
                q[k + 1 :, j] = q[k, j]  # the first of these is named below
                break
    _check(constraints, q.reshape(-1, guess.shape[-1]), limit, shape)
    return AssembledPath(q.reshape(guess.shape), followed.reshape(shape), tuple(messages))


def _told(
    model: Model, index: Any, trouble: str, before: Array, goal: Array, done: float, free: NDArray[np.bool_]
) -> str:  # fmt: skip
    """Return a sentence: where a branch could not be followed, and how the posture was found."""
    change = np.where(free, 0.0, difference(model, before, goal))
    lead = int(np.abs(change).argmax())
    place = f"{model.speed_names[lead]} {done:.0%} of the way from the posture before it, {change[lead]:+.3g}"
    if model.speed_names[lead] in model.coordinate_names:
        value = before[model.coordinate_index(model.speed_names[lead])] + done * change[lead]
        place = f"{model.speed_names[lead]} = {value:.5g}, {done:.0%} of the way from the posture before it"
    if trouble == MEET:
        return f"posture {index}: branches meet at {place}; it went straight on there"
    return f"posture {index}: the branch ends at {place}; it was closed by itself"


# --- what is kept, what is met ----------------------------------------------------------------------------------


def _checked(
    model: Model, constraints: ConstraintSet, q_guess: Any, keep: Any, tolerance: Any
) -> tuple[NDArray[np.bool_], Array, float]:
    """Free speeds, (nv,), the checked guess, and the tolerance."""
    check_set(model, constraints)
    limit = engine.positive("tolerance", tolerance)
    free = free_speeds(model, keep)
    guess = engine.check_arguments(model, {"q_guess": q_guess})[0]["q_guess"]
    constraints.check_rods(guess)
    return free, guess, limit


def _balls(model: Model) -> dict[str, slice]:
    """Names of ball joints that are quaternions, and where their speeds are."""
    return {model.coordinate_names[k].removesuffix(".w"): slice(v, v + 3) for _, k, v in model.layout.balls}


def free_speeds(model: Model, keep: Any) -> NDArray[np.bool_]:
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
        turned = np.flatnonzero(flipped(constraints.model, loop, q))
        if len(turned):
            found = f"constraint {shown(loop.name)} is met{engine.state_text(int(turned[0]), shape)}"
            raise SolveError(
                f"{found} with its two frames half a turn apart; expected them to agree: begin with a guess that is "
                "nearer"
            )
