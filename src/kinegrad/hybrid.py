"""Hybrid dynamics, between inverse and forward: some joints' motion is prescribed, the others are free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import aba, hybrid
from kinegrad.dynamics import SERIES, hybrid_in_coordinates
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["HybridDynamics", "hybrid_dynamics"]

Array = NDArray[np.float64]


def _with_elements(
    model: Model, run: Any, state: Sequence[Any], out: Any, threads: int | None, options: Sequence[Any]
) -> tuple[Array, Array]:
    """Elements push free joints, and take from what prescribed ones need."""
    q, v, tau, a = state
    Q, held = engine.element_forces(model, state, threads).Q, options[0] == 1
    pushed, lost = engine.with_forces(tau, Q)
    found, forces = run((q, v, pushed, a), out)
    with np.errstate(all="ignore"):  # what overflows is found below
        forces[...] = np.where(held, forces - Q, tau)
    engine.lose(lost, (found, 1), (forces, 1))
    engine.check_sums(forces)
    return found, forces


HYBRID = engine.Kernel(
    hybrid.hybrid, SERIES.state, SERIES.results, aba.N, loads=True, pivots=True, together=2,
    in_coordinates=hybrid_in_coordinates, with_elements=_with_elements,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class HybridDynamics(Result):
    """Accelerations and torques of all joints, where some have prescribed motion.

    Attributes
    ----------
    a : ndarray, shape (..., n)
        As given at prescribed joints, found at free ones, rad/s² or m/s².
    tau : ndarray, shape (..., n)
        Found at prescribed joints, as given at free ones, N·m or N.
    """

    a: Array
    tau: Array


def hybrid_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Iterable[str],
    loads: Loads | None = None,
    threads: int | None = None,
) -> HybridDynamics:
    """What is not known of a and τ, where the motion of some joints is prescribed and the others are free.

    Between :func:`forward_dynamics`, where all joints are free, and :func:`inverse_dynamics`, where all are
    prescribed; by articulated bodies, O(n).  Springs, dampers and armature of the joints, and force elements between
    links, are included.

    Parameters
    ----------
    model : Model
    q, v : array_like, shape (..., n)
        Coordinates and speeds: rad or m, and their time derivatives.
    tau : array_like, shape (..., n)
        Torques or forces of the free joints, N·m or N; entries at prescribed joints are ignored, NaN too.
    a : array_like, shape (..., n)
        Accelerations of the prescribed joints, rad/s² or m/s²; entries at free joints are ignored, NaN too.
    prescribed : sequence of str
        Names of the joints whose accelerations are given.
    loads : Loads, optional
        External forces and torques on links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    HybridDynamics
        a and τ of all joints.

    Raises
    ------
    SingularError
        If nothing resists a free joint; prescribed joints need no resistance.

    Examples
    --------
    A cart is pushed so that it accelerates at 2 m/s²: how its pendulum starts to swing, and the force it takes.

    >>> from kinegrad import samples
    >>> start = hybrid_dynamics(samples.cart_pendulum(), [0, 0], [0, 0], [0, 0], [2, 0], prescribed=["track"])
    >>> start.a, start.tau.round(3)
    (array([2., 5.]), array([2.1, 0. ]))
    """
    flags = prescribed_flags(model, prescribed)
    state = (q, v, without("tau", tau, flags == 1), without("a", a, flags == 0))
    given = named_loads(model, loads)
    return HybridDynamics(*engine.evaluate_with(HYBRID, model, state, given, threads=threads, options=[flags]))


def prescribed_flags(model: Model, prescribed: Any) -> NDArray[np.int64]:
    """1 for each joint (or speed) named, 0 for the others, (nv,)."""
    engine.check_model(model)
    one = isinstance(prescribed, str) or (isinstance(prescribed, np.ndarray) and prescribed.ndim != 1)
    try:
        names = None if one else tuple(prescribed)
    except Exception:  # whatever a foreign object raises when asked for its items
        names = None
    if names is None:
        raise InputError(
            f"`prescribed` is {shown(prescribed)}; expected names of joints, such as [{model.speed_names[0]!r}]"
        )
    flags = np.zeros(model.nv, dtype=np.int64)
    for name in names:
        flags[model.speed_index(name)] += 1
    if (flags > 1).any():
        raise InputError(f"`prescribed` names joint {model.speed_names[int(np.argmax(flags))]!r} twice; expected once")
    return flags


def without(name: str, value: Any, ignored: NDArray[np.bool_]) -> Array:
    """`value` with zeros where it is ignored, (n,) or (n, 1); as it is where its shape is wrong."""
    x = engine.real(name, value)
    return np.where(ignored, 0.0, x) if x.shape[-ignored.ndim :][:1] == ignored.shape[:1] else x
