"""States of one mechanism in kinegrad and in Pinocchio or MuJoCo: joints matched by name, orientations converted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.bridges.peer_joints import Peer, mujoco_peer, pinocchio_peer
from kinegrad.bridges.peer_parts import Single, matched
from kinegrad.errors import InputError, shown
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["PeerState", "from_mujoco", "from_pinocchio", "to_mujoco", "to_pinocchio"]

Array = NDArray[np.float64]
FOLLOWS = 1e-8  # by how much a joint that follows another may be elsewhere, rad or m, and per s and s²


@dataclass(frozen=True, eq=False)
class PeerState(Result):
    """A state converted from one library to another.

    Attributes
    ----------
    q : ndarray, shape (..., nq)
    v, a, tau : ndarray, shape (..., nv), or None
        None if not given.
    speed_map : ndarray, shape (..., nv, nv given)
        The matrix by which the given speeds were multiplied: v = speed_map @ given v.  A Jacobian with respect to the
        speeds of the result, times this matrix, is the Jacobian with respect to the given speeds.
    """

    q: Array
    v: Array | None
    a: Array | None
    tau: Array | None
    speed_map: Array


def from_pinocchio(
    model: Model,
    theirs: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
) -> PeerState:
    """Convert a state of Pinocchio to a state of kinegrad.

    Joints are matched by their names; Pinocchio sorts them by the alphabet.  Quaternions are converted from
    (x, y, z, w) to (w, x, y, z), or to angles if the model has angles, and (cos, sin) of continuous joints to the
    angle.  Linear velocities and forces of free-flyers are in axes of the body in Pinocchio, and in axes of the world
    here; accelerations are the time derivatives of speeds in both.

    Parameters
    ----------
    model : Model
    theirs : pinocchio.Model
        Of the same mechanism, with joints of the same names.  A free-flyer may be called ``root`` in `model`.
    q : array_like, shape (..., theirs.nq)
        Coordinates of Pinocchio.
    v, a, tau : array_like, shape (..., theirs.nv), optional
        Speeds, accelerations and torques of Pinocchio.  `a` needs `v`.  Batch shapes broadcast.

    Returns
    -------
    PeerState
        Of kinegrad: ``q``, ``v``, ``a``, ``tau``, ``speed_map``.

    Examples
    --------
    >>> import pinocchio as pin
    >>> from kinegrad import Inertia, ModelBuilder, free, neutral
    >>> builder = ModelBuilder("drone")
    >>> _ = builder.add("root", None, free(quaternion=True), inertia=Inertia.box(1.0, [0.1, 0.2, 0.3]))
    >>> theirs = pin.Model()
    >>> _ = theirs.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    >>> from_pinocchio(builder.build(), theirs, [1, 2, 3, 0, 0, 0.6, 0.8]).q
    array([1. , 2. , 3. , 0.8, 0. , 0. , 0.6])
    """
    engine.check_model(model)
    return _from(model, pinocchio_peer(theirs), q, v, a, tau)


def to_pinocchio(
    model: Model,
    theirs: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
) -> PeerState:
    """Convert a state of kinegrad to a state of Pinocchio: the inverse of :func:`from_pinocchio`.

    Parameters
    ----------
    model : Model
    theirs : pinocchio.Model
        Of the same mechanism, with joints of the same names.  A free-flyer may be called ``root`` in `model`.
    q : array_like, shape (..., model.nq)
        Coordinates.
    v, a, tau : array_like, shape (..., model.nv), optional
        Speeds, accelerations and torques.  `a` needs `v`.  Batch shapes broadcast.  The torque of a coordinate that
        moves several joints is that of the first of them that follows it linearly, and zero at the others.

    Returns
    -------
    PeerState
        Of Pinocchio: ``q``, ``v``, ``a``, ``tau``, ``speed_map``.

    Examples
    --------
    >>> import pinocchio as pin
    >>> from kinegrad import samples
    >>> theirs = pin.Model()
    >>> upper = theirs.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "shoulder")
    >>> _ = theirs.addJoint(upper, pin.JointModelRUBZ(), pin.SE3.Identity(), "elbow")
    >>> to_pinocchio(samples.two_link(), theirs, [0.3, 0.0]).q
    array([0.3, 1. , 0. ])
    """
    engine.check_model(model)
    return _to(model, pinocchio_peer(theirs), q, v, a, tau)


def from_mujoco(
    model: Model,
    theirs: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
) -> PeerState:
    """Convert a state of MuJoCo (qpos, qvel, qacc, qfrc) to a state of kinegrad.

    A model that kinegrad has read from a file of MJCF with quaternions has the same order and conventions as MuJoCo.
    One from a URDF file, or with ``quaternion=False``, may not.

    Parameters
    ----------
    model : Model
    theirs : mujoco.MjModel
        Of the same mechanism, with joints of the same names.  A free joint may be called ``root`` in `model`.
    q : array_like, shape (..., theirs.nq)
        qpos.
    v, a, tau : array_like, shape (..., theirs.nv), optional
        qvel, qacc, and forces as qfrc_applied.  `a` needs `v`.  Batch shapes broadcast.

    Returns
    -------
    PeerState
        Of kinegrad: ``q``, ``v``, ``a``, ``tau``, ``speed_map``.

    Examples
    --------
    >>> import mujoco
    >>> from kinegrad import samples
    >>> joints = ('<joint name="elbow" axis="0 0 1"/>', '<joint name="shoulder" axis="0 0 1"/>')
    >>> body = '<body>{}<geom size="0.1"/></body>'
    >>> text = "".join(body.format(joint) for joint in joints)
    >>> theirs = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    >>> from_mujoco(samples.two_link(), theirs, [0.1, 0.2]).q
    array([0.2, 0.1])
    """
    engine.check_model(model)
    return _from(model, mujoco_peer(theirs), q, v, a, tau)


def to_mujoco(
    model: Model,
    theirs: Any,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
) -> PeerState:
    """Convert a state of kinegrad to a state of MuJoCo: the inverse of :func:`from_mujoco`.

    Parameters
    ----------
    model : Model
    theirs : mujoco.MjModel
        Of the same mechanism, with joints of the same names.  A free joint may be called ``root`` in `model`.
    q : array_like, shape (..., model.nq)
        Coordinates.
    v, a, tau : array_like, shape (..., model.nv), optional
        Speeds, accelerations and torques.  `a` needs `v`.  Batch shapes broadcast.  The torque of a coordinate that
        moves several joints is that of the first of them that follows it linearly, and zero at the others.

    Returns
    -------
    PeerState
        Of MuJoCo: ``q`` (qpos), ``v`` (qvel), ``a`` (qacc), ``tau``, ``speed_map``.

    Examples
    --------
    >>> import mujoco
    >>> from kinegrad import Inertia, ModelBuilder, free, neutral
    >>> builder = ModelBuilder("drone")
    >>> _ = builder.add("root", None, free(), inertia=Inertia.box(1.0, [0.1, 0.2, 0.3]))  # angles about z, y, x
    >>> body = '<body><freejoint name="root"/><geom size="0.1"/></body>'
    >>> theirs = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    >>> to_mujoco(builder.build(), theirs, [1, 2, 3, np.pi, 0, 0]).q.round(12)
    array([1., 2., 3., 0., 0., 0., 1.])
    """
    engine.check_model(model)
    return _to(model, mujoco_peer(theirs), q, v, a, tau)


# --- both ways ----------------------------------------------------------------------------------------------------


def _to(model: Model, peer: Peer, q: Any, v: Any, a: Any, tau: Any) -> PeerState:
    x, speeds, accelerations, torques = _given(q, v, a, tau, model.nq, model.nv, f"model {shown(model.name)}")
    parts = matched(model, peer)
    found = np.zeros((*x.shape[:-1], peer.nq))
    for part in parts:
        part.to_theirs(x, found)
    zero = np.zeros((*x.shape[:-1], model.nv))
    A, B, drift = _maps(parts, model, peer, x, zero if speeds is None else speeds)
    new_v = None if speeds is None else _times(A, speeds)
    new_a = None if accelerations is None else _times(A, accelerations) + drift
    return PeerState(found, new_v, new_a, None if torques is None else _times(B.swapaxes(-1, -2), torques), A)


def _from(model: Model, peer: Peer, q: Any, v: Any, a: Any, tau: Any) -> PeerState:
    x, speeds, accelerations, torques = _given(q, v, a, tau, peer.nq, peer.nv, f"the model of {peer.library}")
    parts = matched(model, peer)
    found = np.zeros((*x.shape[:-1], model.nq))
    for part in _leading(parts):
        part.to_ours(x, found)
    _check_following(parts, x, found)
    zero = np.zeros((*x.shape[:-1], model.nv))
    A, B, _ = _maps(parts, model, peer, found, zero)
    new_v = None if speeds is None else _times(B, speeds)
    new_a = None
    if new_v is not None:
        _check_kept("v", speeds, _times(A, new_v), parts)
    if accelerations is not None and new_v is not None:
        drift = _maps(parts, model, peer, found, new_v)[2]
        new_a = _times(B, accelerations - drift)
        _check_kept("a", accelerations, _times(A, new_a) + drift, parts)
    return PeerState(found, new_v, new_a, None if torques is None else _times(A.swapaxes(-1, -2), torques), B)


def _leading(parts: list[Any]) -> list[Any]:
    """The parts that our coordinates follow from: one for each."""
    found: dict[int, Any] = {}
    for part in parts:
        if not isinstance(part, Single) or part.leads:
            found.setdefault(part.v[0], part)
    return list(found.values())


def _maps(parts: list[Any], model: Model, peer: Peer, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """A, a matrix B with B A = 1, and Ȧ v: their speeds are A v."""
    A, B = np.zeros((*q.shape[:-1], peer.nv, model.nv)), np.zeros((*q.shape[:-1], model.nv, peer.nv))
    drift = np.zeros((*q.shape[:-1], peer.nv))
    leading = {id(part) for part in _leading(parts)}
    for part in parts:
        block, own = part.slopes(q, v)
        rows, cols = np.ix_(part.theirs_v, part.v)
        A[..., rows, cols] = block
        drift[..., part.theirs_v] = own
        if id(part) in leading:
            B[..., cols.T, rows.T] = np.linalg.inv(block)
    return A, B, drift


def _times(A: Array, x: Array) -> Array:
    found: Array = (A @ x[..., None])[..., 0]
    return found


def _check_following(parts: list[Any], given: Array, found: Array) -> None:
    """Joints that follow others are where these put them."""
    for part in parts:
        if isinstance(part, Single) and len([x for x in parts if x.v == part.v]) > 1:
            (expected,) = part.function.derivatives(found[..., part.q], 0)
            off = abs(part.angle(given) - expected)
            if part.kind == "circle":  # whole turns are the same
                off = abs((off + np.pi) % (2 * np.pi) - np.pi)
            if (off > FOLLOWS).any():
                text = f"joint {shown(part.name)} is {off.max():.3g} off from where the joint that it follows puts it"
                raise InputError(f"`q`: {text}; expected less than {FOLLOWS:g}")


def _check_kept(name: str, given: Any, expected: Array, parts: list[Any]) -> None:
    off = abs(given - expected)
    if (off > FOLLOWS * (1.0 + abs(given).max(initial=0.0))).any():
        v = int(np.unravel_index(np.argmax(off), off.shape)[-1])
        part = next(x for x in parts if v in x.theirs_v)
        text = f"joint {shown(part.name)} differs by {off.max():.3g} from the joint that it follows"
        raise InputError(f"`{name}`: {text}; expected equal motions")


def _given(
    q: Any, v: Any, a: Any, tau: Any, nq: int, nv: int, of: str
) -> tuple[Array, Array | None, Array | None, Array | None]:
    """Arguments as arrays of one batch shape."""
    if q is None:
        raise InputError("`q` is None; expected the posture, because speeds and forces turn with it")
    if a is not None and v is None:
        raise InputError("`a` is given without `v`; expected both, because speeds turn with the body")
    given = {"q": q, "v": v, "a": a, "tau": tau}
    arrays = {name: engine.real(name, x) for name, x in given.items() if x is not None}
    for name, x in arrays.items():
        size = nq if name == "q" else nv
        if x.ndim == 0 or x.shape[-1] != size:
            raise InputError(f"`{name}` has shape {x.shape}; {of} has {size} of them, so its last axis must be {size}")
        if not np.isfinite(x).all():
            raise engine.not_finite(name, x)
    shape = engine.broadcast(arrays, [x.shape[:-1] for x in arrays.values()])
    full = {name: np.broadcast_to(x, (*shape, x.shape[-1])) for name, x in arrays.items()}
    return full["q"], full.get("v"), full.get("a"), full.get("tau")
