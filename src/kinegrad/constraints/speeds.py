"""Speeds that fulfil constraints: project_velocity."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.constraints.assembly import check_set, free_speeds
from kinegrad.constraints.constraint_set import ConstraintSet
from kinegrad.constraints.gauss_newton import inverse, times
from kinegrad.dynamics import mass_matrix
from kinegrad.errors import InputError, shown
from kinegrad.model import Model

__all__ = ["project_velocity"]

Array = NDArray[np.float64]
CONTRADICTS = 1e-9  # part of its terms by which a row may be off at speeds that are kept


def project_velocity(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    *,
    keep: Iterable[str] = (),
    threads: int | None = None,
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
    keep : iterable of str
        Coordinates whose speeds stay as they are, bit for bit, such as that of a driven crank; of a quaternion, the
        name of the ball joint.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., nv)

    Raises
    ------
    SingularError
        If nothing resists a coordinate that is not kept, so that the mass matrix is singular.
    InputError
        If the kept speeds contradict the constraints: names the row that is furthest off, and by how much.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> wall = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    >>> v = project_velocity(arm, wall, [0.3, 1.0], [1.0, 0.0])
    >>> bool(np.abs(wall.velocity([0.3, 1.0], v)).max() < 1e-15)
    True

    A crank that turns at 10 rad/s, and how fast coupler and rocker turn:

    >>> linkage, loop = kg.samples.four_bar()
    >>> project_velocity(linkage, loop, [0, 0, 0], [10, 0, 0], keep=["crank"]).round(3)
    array([ 10.   , -16.667,  -6.667])
    """
    check_set(model, constraints)
    free = free_speeds(model, keep)
    given = engine.check_arguments(model, {"q": q, "v": v})[0]
    shape = np.broadcast_shapes(*(x.shape[:-1] for x in given.values()))
    x, speeds = (np.broadcast_to(x, (*shape, x.shape[-1])) for x in given.values())
    G, M = constraints.jacobian(x, threads=threads), mass_matrix(model, x, threads=threads)
    M = np.where(free & free[:, None], M, np.eye(model.nv))  # of kept speeds, which do not change
    stuck = engine.factor_pivot(M, np.diagonal(M, axis1=-2, axis2=-1))
    if stuck is not None:
        raise engine.free_joint(model, *stuck, shape, "coordinate" if model.coordinates else "joint")
    with np.errstate(all="ignore"):  # what overflows is found below
        found = _projected(G, M, speeds, free)
        found[..., ~free] = speeds[..., ~free]
    if not np.isfinite(found).all():
        raise InputError("the results are not finite: they overflow float64; expected smaller numbers")
    if not free.all():
        _check_kept(constraints, G, found, shape)
    return found


def _check_kept(constraints: ConstraintSet, G: Array, v: Array, shape: tuple[int, ...]) -> None:
    """Refuse kept speeds that no other speeds reconcile with the constraints."""
    off = np.abs(times(G, v))
    wrong = off > CONTRADICTS * times(np.abs(G), np.abs(v))
    if wrong.any():
        state = int(np.flatnonzero(wrong.any(axis=-1))[0])
        rows = np.where(wrong, off, 0.0).reshape(-1, constraints.m)[state]
        row = int(rows.argmax())
        raise InputError(
            f"`keep` contradicts the constraints{engine.state_text(state, shape)}: with the kept speeds, row "
            f"{shown(constraints.row_names[row])} moves at {rows[row]:.3g} m or rad per s at least; expected 0: keep "
            "fewer speeds, or others"
        )


def _projected(G: Array, M: Array, v: Array, free: NDArray[np.bool_]) -> Array:
    """v less M⁻¹Gᵀ(G M⁻¹Gᵀ)⁺ G v of free speeds, by the singular values of G L⁻ᵀ, where M = L Lᵀ."""
    root, found = np.linalg.cholesky(M), np.array(v)
    weighted = np.swapaxes(np.linalg.solve(root, np.swapaxes(np.where(free, G, 0.0), -1, -2)), -1, -2)
    size = np.sqrt((weighted * weighted).sum(axis=-1, keepdims=True))
    size = np.where(size > 0, size, 1.0)  # rows may be of any: what is rounding is judged by unit lengths
    weighted, G = weighted / size, G / size
    U, s, V = np.linalg.svd(weighted, full_matrices=False)
    for _ in range(2):  # the second takes off what rounding left
        part = inverse(s) * times(np.swapaxes(U, -1, -2), times(G, found))
        change = times(np.swapaxes(V, -1, -2), part)
        found -= np.linalg.solve(np.swapaxes(root, -1, -2), change[..., None])[..., 0]
    return found
