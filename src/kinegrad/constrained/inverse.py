"""What actuators and constraints have to supply for a motion of a closed mechanism, and exact derivatives of that.

With B = [S, Gᵀ], from actuators and multipliers to joints, x = (u, f) of least norm solves

    B x = b,  b = M a + h        x = B⁺ b

Where the rank of B stays what it is, and b within its range,

    dx = B⁺ (db − dB x) + (1 − B⁺ B) dBᵀ g,    x = Bᵀ g

The second part keeps x among the solutions of least norm: it is zero where actuators and constraints are no more than
the motion determines.  S is constant, so that dB x = dGᵀ f, the curvature H(f) dq, and dBᵀ g = (0, dG g).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._engine import saddle
from kinegrad.constrained.system import quietly
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.assembly import check_set
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import InputError, SingularError, shown
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "ConstrainedInverseDynamics",
    "ConstrainedInverseDynamicsDerivatives",
    "constrained_inverse_dynamics",
    "constrained_inverse_dynamics_derivatives",
]

Array = NDArray[np.float64]
Actuated = Iterable[str] | ArrayLike | None
MISSING, ROUNDING = 1e-8, 1e-12  # of what a joint takes, and of what any takes: more cannot be rounding


@dataclass(frozen=True, eq=False)
class ConstrainedInverseDynamics(Result):
    """What a motion of a constrained mechanism takes.

    Attributes
    ----------
    tau : ndarray, shape (..., n)
        Torques and forces of the joints, zero where no actuator acts, N·m or N.
    forces : ndarray, shape (..., m)
        Of the constraints, N or N·m.
    actuators : ndarray, shape (..., k)
        What the actuators supply: τ = S actuators.
    """

    tau: Array
    forces: Array
    actuators: Array


@dataclass(frozen=True, eq=False)
class ConstrainedInverseDynamicsDerivatives(Result):
    """What a motion of a constrained mechanism takes, and derivatives; ``[..., i, j]`` is of entry i by coordinate j.

    Attributes
    ----------
    tau : ndarray, shape (..., n)
        Torques and forces of the joints, N·m or N.
    forces : ndarray, shape (..., m)
        Of the constraints, N or N·m.
    actuators : ndarray, shape (..., k)
        What the actuators supply.
    dtau_dq, dtau_dv, dtau_da : ndarray, shape (..., n, n)
        With respect to coordinates, speeds and accelerations.
    dforces_dq, dforces_dv, dforces_da : ndarray, shape (..., m, n)
        The same of the forces.
    dactuators_dq, dactuators_dv, dactuators_da : ndarray, shape (..., k, n)
        The same of the actuators.
    """

    tau: Array
    forces: Array
    actuators: Array
    dtau_dq: Array
    dtau_dv: Array
    dtau_da: Array
    dforces_dq: Array
    dforces_dv: Array
    dforces_da: Array
    dactuators_dq: Array
    dactuators_dv: Array
    dactuators_da: Array


def constrained_inverse_dynamics(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    actuated: Actuated = None,
    loads: Loads | None = None,
    threads: int | None = None,
) -> ConstrainedInverseDynamics:
    """What actuators and constraints have to supply for a motion: S u + Gᵀ f = M a + h.  [xiang2008] (38)

    Cut a closed loop, and inverse dynamics of the tree gives torques of all its joints; those of joints without
    actuators have to come from the cut, by its forces f.  Where actuators and constraints together are more than the
    motion determines, (u, f) has the least norm.

    Parameters
    ----------
    model : Model
    constraints : ConstraintSet
    q, v, a : array_like, shape (..., n)
        A motion that agrees with the constraints: rad or m, and their time derivatives.
    actuated : names of joints, or array_like of shape (n, k), optional
        Which joints are driven, or the matrix S from actuators to torques; if not given the model's actuation, and all
        joints if it has none.
    loads : Loads, optional
        External forces and torques on links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ConstrainedInverseDynamics

    Raises
    ------
    SingularError
        If actuators and constraints cannot supply what the motion takes in one of the states.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link(gravity=(0, -10, 0))
    >>> table = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    >>> hold = constrained_inverse_dynamics(arm, table, [0, 0], [0, 0], [0, 0], actuated=["shoulder"])
    >>> hold.tau.round(3), hold.forces.round(3)
    (array([2., 0.]), array([2.5]))
    """
    check_set(model, constraints)
    found, _ = _supplied(model, constraints, (q, v, a), actuation(model, actuated), loads, threads)
    return found


@quietly
def constrained_inverse_dynamics_derivatives(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    actuated: Actuated = None,
    loads: Loads | None = None,
    threads: int | None = None,
) -> ConstrainedInverseDynamicsDerivatives:
    """What actuators and constraints have to supply for a motion, and its exact derivatives.

    Derivatives are those of the formulas with respect to every coordinate by itself, also along directions that leave
    φ = 0, where the rank of actuators and constraints together stays what it is.  Where they are less than a nearby
    motion needs, derivatives are those of what comes nearest to it.

    Parameters
    ----------
    model, constraints, q, v, a, actuated, loads, threads
        As of :func:`constrained_inverse_dynamics`.

    Returns
    -------
    ConstrainedInverseDynamicsDerivatives

    Raises
    ------
    SingularError
        As :func:`constrained_inverse_dynamics`.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link(gravity=(0, -10, 0))
    >>> table = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="y")])
    >>> hold = constrained_inverse_dynamics_derivatives(arm, table, [0, 0], [0, 0], [0, 0], actuated=["shoulder"])
    >>> hold.dtau_da.shape, hold.dforces_da.shape, hold.dactuators_da.shape
    ((2, 2), (1, 2), (1, 2))
    """
    check_set(model, constraints)
    S = actuation(model, actuated)
    found, B = _supplied(model, constraints, (q, v, a), S, loads, threads)
    torque = inverse_dynamics_derivatives(model, q, v, a, loads=loads, threads=threads)
    H = constraints.curvature(q, found.forces, threads=threads)
    by_q, by_v, by_a = map(np.asarray, (torque.dtau_dq, torque.dtau_dv, torque.dtau_da))
    change = saddle.least_norm(B, np.concatenate([by_q - H, by_v, by_a], axis=-1))
    x = np.concatenate([found.actuators, found.forces], axis=-1)
    g, moved = saddle.source(saddle.T(B), x), np.zeros((*x.shape, model.nv))
    moved[..., S.shape[1] :, :] = constraints.derivatives(q, g, threads=threads).dvelocity_dq
    change[..., : model.nv] += saddle.loose_ends(saddle.T(B), moved)
    du, df = np.split(change, [S.shape[1]], axis=-2)
    parts = [np.ascontiguousarray(y) for half in (S @ du, df, du) for y in np.split(half, 3, axis=-1)]
    engine.check_sums(*parts)
    return ConstrainedInverseDynamicsDerivatives(found.tau, found.forces, found.actuators, *parts)


@quietly
def _supplied(
    model: Model, constraints: ConstraintSet, motion: tuple[Any, Any, Any], S: Array, loads: Loads | None,
    threads: int | None,
) -> tuple[ConstrainedInverseDynamics, Array]:  # fmt: skip
    """What is supplied, and the matrix B = [S, Gᵀ], (..., n, k + m)."""
    needed = inverse_dynamics(model, *motion, loads=loads, threads=threads)
    G = constraints.jacobian(motion[0], threads=threads)
    sides = S, saddle.T(G)
    B = np.concatenate([np.broadcast_to(x, (*needed.shape[:-1], *x.shape[-2:])) for x in sides], axis=-1)
    supplied = saddle.least_norm(B, needed[..., None])[..., 0]
    _check_supplied(model, B, supplied, needed)
    u, f = np.split(supplied, [S.shape[1]], axis=-1)
    engine.check_sums(u, f)
    return ConstrainedInverseDynamics(u @ S.T, f.copy(), u.copy()), B


def _check_supplied(model: Model, B: Array, supplied: Array, needed: Array) -> None:
    """Refuse a motion of which a joint lacks more than rounding: of its own torque, or of the largest of all."""
    missing = np.abs((B @ supplied[..., None])[..., 0] - needed)
    own = np.abs(needed) + (np.abs(B) @ np.abs(supplied)[..., None])[..., 0]
    lacks = missing > MISSING * own + ROUNDING * own.max(axis=-1, keepdims=True)
    if lacks.any():
        state = int(np.flatnonzero(lacks.any(axis=-1))[0])
        short = np.where(lacks, missing, 0.0).reshape(-1, model.nv)[state]
        worst, at = int(short.argmax()), engine.state_text(state, needed.shape[:-1])
        raise SingularError(
            f"actuators and constraints cannot supply what the motion takes{at}: joint {model.speed_names[worst]!r} "
            f"lacks {short[worst]:.3g}; expected a motion that they can, or more actuators"
        )


def actuation(model: Model, actuated: Any) -> Array:
    """S, (n, k): from actuators to torques."""
    if actuated is None:
        return np.eye(model.nv) if model.actuation is None else model.actuation.matrix
    try:
        names = None if isinstance(actuated, str | np.ndarray) else list(actuated)
    except Exception:  # whatever a foreign object raises when asked for its items
        names = None
    if names is not None and all(isinstance(name, str) for name in names):
        columns = [model.speed_index(name) for name in names]
        if len(set(columns)) < len(columns):
            raise InputError(f"`actuated` is {shown(actuated)}; expected each joint once")
        return np.eye(model.nv)[:, columns]
    if isinstance(actuated, str):
        raise InputError(f"`actuated` is {shown(actuated)}; expected a list of names of joints, or a matrix")
    S = engine.real("actuated", actuated)
    if S.ndim != 2 or S.shape[0] != model.nv or not np.isfinite(S).all():
        found = f"has shape {S.shape}" if np.isfinite(S).all() else "holds numbers that are not finite"
        raise InputError(f"`actuated` {found}; expected names of joints, or a matrix of shape ({model.nv}, k)")
    return S
