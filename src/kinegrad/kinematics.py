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
Axis = engine.Axis

_TRANSFORM = engine.Result("transform", (Axis.LINK, 4, 4))
_MOTIONS = ("linear_velocity", "angular_velocity", "linear_acceleration", "angular_acceleration")
TRANSFORMS = engine.Kernel(kernels.transforms, engine.Q, (_TRANSFORM,), kernels.N, with_elements=engine.indifferent)
_MOTION = engine.Kernel(
    kernels.motion,
    engine.QVA,
    (_TRANSFORM, *(engine.Result(name, (Axis.LINK, 3)) for name in _MOTIONS)),
    kernels.N,
    with_elements=engine.indifferent,
)
POINTS = engine.Kernel(
    kernels.points,
    engine.QVA,
    tuple(engine.Result(name, (Axis.POINT, 3)) for name in ("position", "velocity", "acceleration")),
    kernels.N,
    with_elements=engine.indifferent,
)
_JACOBIANS = engine.Kernel(
    kernels.jacobians,
    engine.Q,
    tuple(engine.Result(name, (Axis.POINT, 3, Axis.PER_SPEED), zero=True) for name in ("linear", "angular")),
    kernels.N,
    with_elements=engine.indifferent,
)


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

    def at(self, model: Model, frame: str | Sequence[str]) -> ForwardKinematics:
        """The same of one link or frame by name, or of k of them.

        Parameters
        ----------
        model : Model
            Whose links these are.
        frame : str, or k names
            Links, or frames fixed in them.

        Returns
        -------
        ForwardKinematics
            Of frames: their axes and the motion of their origins.  Arrays of shape (..., 4, 4) and (..., 3) for one
            name, (..., k, 4, 4) and (..., k, 3) for k.

        Examples
        --------
        >>> from kinegrad import Frame, samples
        >>> arm = samples.two_link().replace(frames={"grip": Frame("forearm", [0.1, 0, 0])})
        >>> forward_kinematics(arm, [0, 0], [1, 0]).at(arm, "grip").linear_velocity
        array([0. , 0.9, 0. ])
        """
        engine.check_model(model)
        if self.transform.shape[-3] != model.n:
            wrong = f"`model` has {model.n} links, and the transforms are of {self.transform.shape[-3]}"
            raise InputError(f"{wrong}; expected the model that they were computed for")
        if not isinstance(frame, str | list | tuple):
            raise InputError(f"`frame` is a {type(frame).__name__}; expected a name, or several in a list")
        places = [model.locate(name) for name in ([frame] if isinstance(frame, str) else frame)]
        links = [i for i, _ in places]
        P = np.array([np.eye(4) if placement is None else placement for _, placement in places]).reshape(-1, 4, 4)
        T = self.transform[..., links, :, :]
        s = np.einsum("...kij,kj->...ki", T[..., :3, :3], P[:, :3, 3])  # from the link's origin to the frame's
        found: list[Array] = [T @ P]
        if self.linear_velocity is not None and self.angular_velocity is not None:
            w = self.angular_velocity[..., links, :]
            found += [self.linear_velocity[..., links, :] + np.cross(w, s), w]
        if self.linear_acceleration is not None and self.angular_acceleration is not None:
            dw = self.angular_acceleration[..., links, :]
            found += [self.linear_acceleration[..., links, :] + np.cross(dw, s) + np.cross(w, np.cross(w, s)), dw]
        if isinstance(frame, str):
            axis = self.transform.ndim - 3
            found = [x.squeeze(axis) for x in found]
        return ForwardKinematics(*found)


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

    Returns
    -------
    ForwardKinematics
        ``transform``, shape (..., n, 4, 4), from link frames to the world; if v and a were given,
        ``linear_velocity``, ``angular_velocity``, ``linear_acceleration`` and ``angular_acceleration``, shape (...,
        n, 3) each.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link()
    >>> forward_kinematics(arm, [0.0, np.pi / 2]).transform[1, :2, 3].round(12)
    array([0.4, 0.4])
    """
    state = state_of(q, v, a)
    if v is None:
        return ForwardKinematics(*engine.evaluate(TRANSFORMS, model, (q,), None, None, threads))
    wanted = slice(3 if a is None else 5)
    return ForwardKinematics(*engine.evaluate_with(_MOTION, model, state, threads=threads, wanted=wanted))


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
        The link or frame of the point, or of each of k points.
    point : array_like, shape (3,), or (k, 3)
        In the link's frame, or in the frame, m; one for all, or one for each.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    PointMotion
        ``position`` and, if v and a were given, ``velocity`` and ``acceleration``, in the world: shape (..., 3) for
        one point, (..., k, 3) for k points.

    Examples
    --------
    >>> from kinegrad import samples
    >>> hand = point_motion(samples.two_link(), [0, 0], [1, 0], link="forearm")
    >>> hand.position, hand.velocity
    (array([0.8, 0. , 0. ]), array([0. , 0.8, 0. ]))
    """
    state, wanted = state_of(q, v, a), slice(1 + (v is not None) + (a is not None))
    named = points(model, link, point)
    return PointMotion(*engine.evaluate_with(POINTS, model, state, threads=threads, wanted=wanted, **named))


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

    Returns
    -------
    Jacobian
        ``linear`` and ``angular``, shape (..., 3, n) each for one point, (..., k, 3, n) for k points.

    Examples
    --------
    >>> from kinegrad import samples
    >>> jacobian(samples.two_link(), [0, 0], link="forearm").linear[:2]
    array([[0. , 0. ],
           [0.8, 0.4]])
    """
    return Jacobian(*engine.evaluate_with(_JACOBIANS, model, (q,), threads=threads, **points(model, link, point)))


def state_of(q: Any, v: Any, a: Any) -> tuple[Any, ...]:
    """What of q, v and a is given: the caller may leave out a, or v and a."""
    if v is None and a is not None:
        raise InputError("`a` is given without `v`; expected both, or neither")
    return (q,) if v is None else (q, v) if a is None else (q, v, a)


def points(model: Model, link: Any, point: Any) -> dict[str, Any]:
    """What a call has of the points it names: link numbers, (k,), and places, (1, 3 k); the shape of their axis."""
    engine.check_model(model)
    if not isinstance(link, str | list | tuple):
        raise InputError(f"`link` is a {type(link).__name__}; expected a link's name, or several in a list")
    core: tuple[int, ...] = () if isinstance(link, str) else (len(link),)
    located = [model.locate(name) for name in ([link] if isinstance(link, str) else link)]
    links = np.array([i for i, _ in located], dtype=np.int64)
    local = engine.real("point", point)
    if local.shape not in ((3,), (*core, 3)):
        expected = "(3,)" if core == () else f"(3,) or ({core[0]}, 3)"
        raise InputError(f"`point` has shape {local.shape}; expected {expected}")
    if not np.isfinite(local).all():
        raise engine.not_finite("point", local)
    inside = np.empty((len(links), 3))
    inside[...] = local
    if model.frames:
        _leave_frames(located, inside)
    places = inside.reshape(1, -1)
    return {"options": [links, places], "points": core, "unseen": {"point": places}}


def _leave_frames(located: Sequence[tuple[int, Array | None]], inside: Array) -> None:
    """Change points that are given in frames, (k, 3), to coordinates in the frames of their links."""
    for k, (_, placement) in enumerate(located):
        if placement is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found in the results
                inside[k] = placement[:3, :3] @ inside[k] + placement[:3, 3]
