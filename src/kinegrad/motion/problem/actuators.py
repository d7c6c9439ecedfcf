"""Which torques a motion can have: rows of τ that are zero, and controls u = E τ of actuators.

Where the model says which actuators it has, τ = S u, the torques that nothing supplies are those across S: with N a
basis of the null space of Sᵀ, Nᵀτ = 0 and u = S⁺τ.

Where it does not say, all coordinates have motors, except a *floating base*: a body that nothing holds cannot push
itself off the world.  It is found as follows.  Speeds that move all links as one rigid body are those at which all
links with mass have the same twist; the twists of links are linear in v, so these speeds are a null space, and it
must be the same in several postures.  If they make up all six rigid motions (or two shifts and the turn of a plane,
beginning with sliding joints of massless links that no motor is known of), then the body floats, and the torques
along these speeds are zero.  The world may hold several mechanisms; each is judged by itself, and speeds that move no
mass have no part in it.  In human43 they are the five joints of the pelvis, and *one* more: the third turn of the
body is shared by three joints, whose torques need not vanish, but their sum must.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import random_configuration
from kinegrad.errors import InputError, shown
from kinegrad.kinematics import forward_kinematics
from kinegrad.kinematics_derivatives import forward_kinematics_derivatives
from kinegrad.model import CoupledCoordinate, Model
from kinegrad.model.functions import LinearFunction

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Actuators:
    """Controls u = E τ, torques S u, and rows N τ = 0."""

    names: tuple[str, ...]
    E: Array  # (actuators, nv)
    S: Array  # (nv, actuators)
    N: Array  # (rows, nv)
    row_names: tuple[str, ...]
    lower: Array  # limits of the model
    upper: Array


def actuators_of(model: Model, actuated: Any = None) -> Actuators:
    """From the model, or from names of coordinates that have motors."""
    if actuated is not None:
        if isinstance(actuated, str) or not isinstance(actuated, list | tuple):
            raise InputError(f"`actuated` is {shown(actuated)}; expected a list of coordinates")
        numbers = [model.speed_index(name) for name in actuated]
        if len(set(numbers)) < len(numbers):
            raise InputError(f"`actuated` is {shown(actuated)}; expected each coordinate once")
        return _of_coordinates(model, np.eye(model.nv)[[i for i in range(model.nv) if i not in numbers]], numbers)
    if model.actuation is not None:
        return _of_matrix(model)
    rows = floating_rows(model)
    none = [i for i in range(model.nv) if _no_motor(model, i)]
    whole = np.concatenate([rows, np.eye(model.nv)[none]]) if none else rows
    return _of_coordinates(model, _independent(whole), None)


def _of_coordinates(model: Model, N: Array, numbers: list[int] | None) -> Actuators:
    nv = model.nv
    if numbers is None:
        alone = {int(np.flatnonzero(row)[0]) for row in N if np.count_nonzero(row) == 1}
        numbers = [i for i in range(nv) if i not in alone]
    E = np.eye(nv)[numbers]
    limit = _limits(model)[numbers]
    names = tuple(model.speed_names[i] for i in numbers)
    return Actuators(names, E, E.T.copy(), N, _row_names(model, N), -limit, limit)


def _of_matrix(model: Model) -> Actuators:
    assert model.actuation is not None
    S = np.array(model.actuation.matrix)
    if np.linalg.matrix_rank(S) < S.shape[1]:
        raise InputError(f"the actuation of model {shown(model.name)} has actuators that can do each other's work; "
                         "expected a matrix of full column rank, so that torques tell the controls")  # fmt: skip
    _, s, vt = np.linalg.svd(S.T)
    N = _tidy(vt[len(s) :]) if S.shape[1] < model.nv else np.zeros((0, model.nv))
    E: Array = np.linalg.pinv(S).astype(float)
    E[np.abs(E) < 1e-12 * max(np.abs(E).max(initial=0.0), 1e-300)] = 0.0
    limits, own = np.full(S.shape[1], np.inf), _limits(model)
    for k, column in enumerate(S.T):
        i = np.flatnonzero(column)
        if len(i) == 1 and np.count_nonzero(S[i[0]]) == 1:
            limits[k] = own[i[0]] / abs(column[i[0]])
    return Actuators(model.actuation.names, E, S, N, _row_names(model, N), -limits, limits)


def _limits(model: Model) -> Array:
    """Effort limits of motors, (nv,): of the joints with the names of speeds, infinite where there is none.

    A joint that moves by c q with its coordinate q has a motor that acts on q with c times the joint's force.
    """
    if model.nv == model.n and not model.coordinates:
        return np.array(model.effort_limits)
    by_name = dict(zip(model.joint_names, model.effort_limits.tolist(), strict=True))
    for entry in model.coordinates:
        if isinstance(entry, CoupledCoordinate) and entry.name in by_name:
            functions = dict(zip(entry.joints, entry.functions, strict=True))
            function = functions.get(model.joint_index(entry.name))
            linear = isinstance(function, LinearFunction)
            limit = by_name.pop(entry.name)  # other functions: a row of its own, see `followers`
            if linear:
                by_name[entry.name] = abs(function.multiplier) * limit if limit < np.inf else limit  # type: ignore[union-attr]
    return np.array([by_name.get(name, np.inf) for name in model.speed_names])


def _no_motor(model: Model, i: int) -> bool:
    """A joint whose strength is zero."""
    return bool(_limits(model)[i] == 0)


def _row_names(model: Model, N: Array) -> tuple[str, ...]:
    names = []
    for row in N:
        parts = [(row[i], model.speed_names[i]) for i in np.flatnonzero(row)]
        names.append(" + ".join(name if c == 1 else f"{c:.3g} {name}" for c, name in parts))
    return tuple(names)


def floating_rows(model: Model) -> Array:
    """Rows of τ that floating bases make zero, (rows, nv): six or three for each mechanism that floats."""
    massive = (model.mass > 0) | np.abs(model.inertia).any(axis=(1, 2))
    twists = [_twists(model, q) for q in random_configuration(model, 20230718, shape=4)]
    found = [_rows_of_one(model, links, massive, twists) for links in _mechanisms(model)]
    return np.concatenate([np.zeros((0, model.nv)), *found])


def _mechanisms(model: Model) -> list[NDArray[np.int64]]:
    """Links by the tree they are in; trees that a coordinate moves together count as one."""
    root, speed = np.arange(model.n), model.layout.speed_of
    for i, parent in enumerate(model.parents):
        root[i] = i if parent < 0 else root[parent]
    for v in range(model.nv):
        together = root[speed == v]
        root[np.isin(root, together)] = together.min()
    return [np.flatnonzero(root == r) for r in np.unique(root)]


def _rows_of_one(model: Model, links: NDArray[np.int64], massive: NDArray[np.bool_], twists: list[Array]) -> Array:
    """Rows of one mechanism, (6, nv), (3, nv) or none."""
    none = np.zeros((0, model.nv))
    links = links[massive[links]]
    if not len(links):
        return none
    moving = np.flatnonzero(np.abs(np.stack(twists)[:, links]).max(axis=(0, 1, 2)) > 0)  # speeds that move a mass
    relative = np.concatenate([(x[links[1:]] - x[links[:1]]).reshape(-1, model.nv) for x in twists[:-1]])[:, moving]
    _, s, vt = np.linalg.svd(relative) if len(relative) else (None, np.zeros(0), np.eye(len(moving)))
    rank = int((s > 1e-9 * max(s.max(initial=0.0), 1.0)).sum())
    rigid = np.zeros((len(moving) - rank, model.nv))
    rigid[:, moving] = vt[rank:]
    if len(rigid) not in (3, 6):
        return none
    motions = twists[-1][links[0]] @ rigid.T  # (6, k)
    if np.linalg.matrix_rank(motions, 1e-9) < len(rigid):
        return none
    rows = _tidy(rigid)
    return rows if _slides_freely(model, rows) else none


def _twists(model: Model, q: Array) -> Array:
    """Of all links at the world's origin, by speeds, (n, 6, nv)."""
    d = forward_kinematics_derivatives(model, q, np.zeros(model.nv))
    assert d.dangular_velocity_dv is not None
    assert d.dlinear_velocity_dv is not None
    at = forward_kinematics(model, q).transform[:, :3, 3]
    turn = d.dangular_velocity_dv  # (n, 3, nv)
    shift = d.dlinear_velocity_dv - np.cross(turn, at[:, :, None], axis=1)
    return np.concatenate([turn, shift], axis=1)


def _slides_freely(model: Model, rows: Array) -> bool:
    """Whether among these rows are two or three sliding joints of massless links without a known motor."""
    free, speed = 0, model.layout.speed_of
    for row in rows:
        i = np.flatnonzero(row)
        joints = np.flatnonzero(speed == i[0])
        if len(i) != 1 or len(joints) != 1:
            continue
        j = int(joints[0])
        empty = model.mass[j] == 0 and not model.inertia[j].any()
        loose = not (model.stiffness[j] or model.damping[j] or model.armature[j])
        idle = np.isinf(model.effort_limits[j]) or model.effort_limits[j] == 0
        free += model.joints[j].kind == "prismatic" and empty and loose and idle
    return free >= (3 if len(rows) == 6 else 2)


def _tidy(basis: Array) -> Array:
    """A basis of the same space with as many zeros as Gauss gives it, ones first."""
    A = basis.copy()
    row = 0
    for column in range(A.shape[1]):
        if row == len(A):
            break
        k = row + int(np.argmax(np.abs(A[row:, column])))
        if abs(A[k, column]) < 1e-9:
            continue
        A[[row, k]] = A[[k, row]]
        A[row] /= A[row, column]
        others = np.arange(len(A)) != row
        A[others] -= np.outer(A[others, column], A[row])
        row += 1
    A[np.abs(A) < 1e-9] = 0.0
    near = np.abs(A - np.round(A)) < 1e-9
    A[near] = np.round(A[near])
    return A + 0.0


def _independent(rows: Array) -> Array:
    found = rows[:0]
    for row in rows:
        more = np.concatenate([found, row[None]])
        if np.linalg.matrix_rank(more, 1e-9) == len(more):
            found = more
    return found


def check_threads(threads: Any) -> Any:
    """A number of threads, or None."""
    return None if threads is None else engine.whole("threads", threads)
