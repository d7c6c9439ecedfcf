"""Where links and points are and how they move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import kinematics as kernels
from kinegrad.errors import InputError
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["ForwardKinematics", "Jacobian", "PointMotion", "forward_kinematics", "jacobian", "point_motion"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ForwardKinematics(Result):
    """Pose and motion of every link frame, in the world.

    Attributes
    ----------
    transform : ndarray, shape (..., n, 4, 4)
        Link frame to world.
    linear_velocity, angular_velocity : ndarray, shape (..., n, 3), or None
        Of the frame's origin, m/s, and of the link, rad/s; None unless v was given.
    linear_acceleration, angular_acceleration : ndarray, shape (..., n, 3), or None
        m/s² and rad/s², without gravity; None unless a was given.
    """

    transform: Array
    linear_velocity: Array | None = None
    angular_velocity: Array | None = None
    linear_acceleration: Array | None = None
    angular_acceleration: Array | None = None


@dataclass(frozen=True, eq=False)
class PointMotion(Result):
    """Motion of points fixed in links, in the world: ``position`` m, ``velocity`` m/s, ``acceleration`` m/s².

    Shapes (..., 3) for one point, (..., k, 3) for k; velocity and acceleration are None unless v and a were given.
    """

    position: Array
    velocity: Array | None = None
    acceleration: Array | None = None


@dataclass(frozen=True, eq=False)
class Jacobian(Result):
    """How joint speeds move a point: ``velocity = linear @ v``, ``angular_velocity = angular @ v``.

    Shapes (..., 3, n) for one point, (..., k, 3, n) for k.
    """

    linear: Array
    angular: Array


def forward_kinematics(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, threads: int | None = None
) -> ForwardKinematics:
    """World transforms of all links; with v and a, their velocities and accelerations.

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.
    threads : int, optional
        See :func:`set_threads`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link()
    >>> forward_kinematics(arm, [0.0, np.pi / 2]).transform[1, :2, 3].round(12)
    array([0.4, 0.4])
    """
    if engine.mapped(model):
        return forward_kinematics(*in_joints(expand_motion(model, q, v, a)), threads=threads)
    batch, (q_, v_, a_) = _state(model, q, v, a)
    n = model.n
    transform, T = batch.output((n, 4, 4))
    if v is None:
        slots = (n + 1) * kernels.N
        engine.run(kernels.transforms, batch, slots, threads, engine.mechanism(model), q_, T)
        return ForwardKinematics(transform)
    fields, flat = zip(*(batch.output((n, 3)) for _ in range(4)), strict=True)
    batch.results = [T, *(flat if a is not None else flat[:2])]
    slots = (n + 1) * kernels.N
    engine.run(kernels.motion, batch, slots, threads, engine.mechanism(model), q_, v_, a_, T, *flat)
    return ForwardKinematics(transform, *(fields if a is not None else fields[:2]))


def point_motion(
    model: Model,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    link: str | Sequence[str],
    point: ArrayLike = (0.0, 0.0, 0.0),
    threads: int | None = None,
) -> PointMotion:
    """Position, velocity and acceleration of points fixed in links.  [zhakatayev2023] (6)

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.
    link : str, or k names
        The link of the point, or of each of k points.
    point : array_like, shape (3,), or (k, 3)
        In the link's frame, m; one for all, or one for each.
    threads : int, optional
        See :func:`set_threads`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> hand = point_motion(samples.two_link(), [0, 0], [1, 0], link="forearm")
    >>> hand.position, hand.velocity
    (array([0.8, 0. , 0. ]), array([0. , 0.8, 0. ]))
    """
    if engine.mapped(model):
        return point_motion(*in_joints(expand_motion(model, q, v, a)), link=link, point=point, threads=threads)
    batch, (q_, v_, a_) = _state(model, q, v, a)
    links, local, core = _points(model, link, point)
    fields, flat = zip(*(batch.output((*core, 3)) for _ in range(3)), strict=True)
    wanted = 1 + (v is not None) + (a is not None)
    batch.results = list(flat[:wanted])
    slots = (model.n + 1) * kernels.N
    constants = engine.mechanism(model)
    engine.run(kernels.points, batch, slots, threads, constants, q_, v_, a_, links, local, *flat)
    batch.check_results_of("point", local)
    return PointMotion(*fields[:wanted])


def jacobian(
    model: Model,
    q: ArrayLike,
    *,
    link: str | Sequence[str],
    point: ArrayLike = (0.0, 0.0, 0.0),
    threads: int | None = None,
) -> Jacobian:
    """The Jacobian of points fixed in links (by default the origins of their frames), world frame.

    Parameters
    ----------
    model : Model
    q : array_like, shape (..., n)
        Coordinates, rad or m.
    link, point, threads
        As in :func:`point_motion`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> jacobian(samples.two_link(), [0, 0], link="forearm").linear[:2]
    array([[0. , 0. ],
           [0.8, 0.4]])
    """
    if engine.mapped(model):
        at = engine.Expansion(model, {"q": q})
        found = jacobian(at.primitive, at.q_hat, link=link, point=point, threads=threads)
        inner = 1 if isinstance(link, str) else 2
        return Jacobian(*(at.deliver(at.G.pull(x, inner=inner)) for x in (found.linear, found.angular)))
    batch = engine.Batch(model, {"q": q})
    links, local, core = _points(model, link, point)
    linear, linear_flat = batch.output((*core, 3, model.n), zero=True)
    angular, angular_flat = batch.output((*core, 3, model.n), zero=True)
    slots = (model.n + 1) * kernels.N
    arguments = (engine.mechanism(model), batch.arguments[0], links, local, linear_flat, angular_flat)
    engine.run(kernels.jacobians, batch, slots, threads, *arguments)
    batch.check_results_of("point", local)
    return Jacobian(linear, angular)


def expand_motion(model: Model, q: Any, v: Any, a: Any) -> engine.Expansion:
    """Checked q, and v and a where they are given, of a model whose coordinates are not its joints."""
    if v is None and a is not None:
        raise InputError("`a` is given without `v`; expected both, or neither")
    return engine.Expansion(model, {name: x for name, x in (("q", q), ("v", v), ("a", a)) if x is not None})


def in_joints(at: engine.Expansion) -> tuple[Model, Array, Array | None, Array | None]:
    """The model's joints and their motion, as far as it was given."""
    v, a = "v" in at.given, "a" in at.given
    return at.primitive, at.q_hat, at.v_hat if v else None, at.a_hat if a else None


def _state(model: Model, q: Any, v: Any, a: Any) -> tuple[engine.Batch, list[Array]]:
    """Checked q, v, a; zeros stand in for what is not given."""
    if v is None and a is not None:
        raise InputError("`a` is given without `v`; expected both, or neither")
    given = {"q": q} | {name: x for name, x in (("v", v), ("a", a)) if x is not None}
    batch = engine.Batch(model, given)
    zero = np.zeros((1, model.n))
    return batch, [*batch.arguments, zero, zero][:3]


def _points(model: Model, link: Any, point: Any) -> tuple[NDArray[np.int64], Array, tuple[int, ...]]:
    """Link numbers (k,), points (1, 3 k), and () or (k,)."""
    if not isinstance(link, str | list | tuple):
        raise InputError(f"`link` is a {type(link).__name__}; expected a link's name, or several in a list")
    core: tuple[int, ...] = () if isinstance(link, str) else (len(link),)
    links = np.array([model.link_index(name) for name in ([link] if isinstance(link, str) else link)], dtype=np.int64)
    local = engine.real("point", point)
    if local.shape not in ((3,), (*core, 3)):
        expected = "(3,)" if core == () else f"(3,) or ({core[0]}, 3)"
        raise InputError(f"`point` has shape {local.shape}; expected {expected}")
    if not np.isfinite(local).all():
        raise engine.not_finite("point", local)
    return links, np.broadcast_to(local, (len(links), 3)).reshape(1, -1).copy(), core
