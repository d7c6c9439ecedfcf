"""Joints of a model beside those of another library: coordinates both ways, and their speeds by ours.

    v̂ = A(q) v        â = A a + Ȧ v        τ = Aᵀ τ̂        with hats for the other library

A joint of one degree of freedom is moved by a coordinate, q̂ = f(q), and A = f′.  A free joint with the position p,
the orientation R and its angular velocity ω in axes of the body has R ṗ and E θ̇, E = 1 where our coordinates are a
quaternion.  Of turns θ about axes e₁, e₂, … one after the other

    ω = Σ u_k θ̇_k,        u_k = (R_{k+1} R_{k+2} …)ᵀ e_k,        u̇_k = u_k × Σ_{l>k} u_l θ̇_l.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.bridges.peer_joints import Peer, PeerJoint
from kinegrad.errors import InputError, SingularError, shown
from kinegrad.model import LinearFunction, Model
from kinegrad.model.coordinates import HINGES, Quaternion

__all__ = ["Body", "Single", "matched"]

Array = NDArray[np.float64]
Part = Any  # Single or Body
SIZES = {"free": (3, 3), "ball": (0, 3), "planar": (2, 1)}  # slides and turns
UNIT = 1e-9  # by how much the length of a quaternion, and of (cos, sin), may differ from 1
LOCK = 1e-8  # |det E| at which angles do not tell the angular velocity


class Single:
    """A joint of one degree of freedom, moved by one coordinate."""

    def __init__(self, model: Model, joint: PeerJoint, i: int) -> None:
        layout = model.layout
        self.name, self.kind, self.theirs_q, self.theirs_v = joint.name, joint.kind, joint.q, [joint.v]
        plain, coupled = list(layout.plain), list(layout.coupled)
        if i in plain:
            k = plain.index(i)
            self.function: Any = LinearFunction()
            self.q, self.v = int(layout.plain_q[k]), [int(layout.plain_v[k])]
        else:
            k = coupled.index(i)
            self.function = layout.functions[k]
            self.q, self.v = int(layout.coupled_q[k]), [int(layout.coupled_v[k])]

    @property
    def leads(self) -> bool:
        """Return True if the coordinate follows from the joint."""
        return isinstance(self.function, LinearFunction) and self.function.multiplier != 0

    def to_theirs(self, q: Array, found: Array) -> None:
        (x,) = self.function.derivatives(q[..., self.q], 0)
        if self.kind == "circle":
            found[..., self.theirs_q], found[..., self.theirs_q + 1] = np.cos(x), np.sin(x)
        else:
            found[..., self.theirs_q] = x

    def angle(self, given: Array) -> Array:
        """Their coordinate, an angle also where it is given by its cosine and sine."""
        k = self.theirs_q
        if self.kind == "circle":
            _check_unit(given[..., k : k + 2], f"(cos, sin) of joint {shown(self.name)}")
            x: Array = np.arctan2(given[..., k + 1], given[..., k])
            return x
        return given[..., k]

    def to_ours(self, given: Array, found: Array) -> None:
        found[..., self.q] = (self.angle(given) - self.function.offset) / self.function.multiplier

    def slopes(self, q: Array, v: Array) -> tuple[Array, Array]:
        """A and Ȧ v."""
        _, slope, curvature = self.function.derivatives(q[..., self.q], 2)
        return slope[..., None, None], (curvature * v[..., self.v[0]] ** 2)[..., None]


class Body:
    """A free, ball or planar joint: slides along x, y, z, then a quaternion or turns."""

    def __init__(self, model: Model, joint: PeerJoint, peer: Peer) -> None:
        self.name, self.kind, self.local, self.order = joint.name, joint.kind, peer.local, list(peer.quaternion)
        slides, turns = SIZES[joint.kind]
        self.slides, self.axes, self.ball = list[int](), list[tuple[float, ...]](), False
        self.q, self.v, self.turn_q = list[int](), list[int](), list[int]()
        self.theirs_q, self.theirs_v = joint.q, list(range(joint.v, joint.v + slides + turns))
        self.count = slides

    def take(self, model: Model, name: str) -> bool:
        """Find the joints of that name in the model; False if they are not of this kind."""
        slides, turns = SIZES[self.kind]
        layout = model.layout
        own = {int(i): (int(q), int(v)) for i, q, v in zip(layout.plain, layout.plain_q, layout.plain_v, strict=True)}
        balls = {x.first: x for x in model.coordinates if isinstance(x, Quaternion) and x.name == name}
        i = next((i for i, each in enumerate(model.joint_names) if each.startswith(name + ".")), -1)
        eye, before = np.eye(4), list[int]()
        for axis in np.eye(3)[:slides]:
            if i not in own or model.joints[i].kind != "prismatic" or not np.array_equal(model.joints[i].axis, axis):
                return False
            self.q.append(own[i][0])
            self.v.append(own[i][1])
            before.append(i)
            i += 1
        if i in balls:
            if self.kind == "planar":
                return False
            _, k, v = next(ball for ball in layout.balls if ball[0] == i)
            self.ball, self.turn_q = True, list(range(k, k + 4))
            self.v += [v, v + 1, v + 2]
            before += [*range(i, i + len(HINGES) - 1)]
            last = i + len(HINGES) - 1
        else:
            for _ in range(turns):
                if i not in own or model.joints[i].kind != "revolute" or sorted(model.joints[i].axis) != [0, 0, 1]:
                    return False
                self.axes.append(tuple(model.joints[i].axis))
                self.turn_q.append(own[i][0])
                self.v.append(own[i][1])
                before.append(i)
                i += 1
            last = before.pop()
            if self.kind == "planar" and self.axes != [(0, 0, 1)]:
                return False
        inner = all(np.array_equal(model.tip[j], eye) for j in before)
        follows = all(np.array_equal(model.placement[j], eye) for j in [*before, last][1:])
        return inner and follows

    # --- orientation --------------------------------------------------------------------------------------------

    def _turns(self, q: Array) -> list[Array]:
        """The rotation of each angle."""
        found = []
        for k, axis in zip(self.turn_q, self.axes, strict=True):
            c, s, x = np.cos(q[..., k]), np.sin(q[..., k]), np.asarray(axis)
            cross = np.cross(np.eye(3), x)  # the matrix [x]×, since its rows are e × x
            R = c[..., None, None] * np.eye(3) + s[..., None, None] * cross + (1 - c)[..., None, None] * np.outer(x, x)
            found.append(R)
        return found

    def rotation(self, q: Array) -> Array:
        if self.ball:
            return _matrix(q[..., self.turn_q])
        R = np.eye(3)
        for turn in self._turns(q):
            R = R @ turn
        return R

    def columns(self, q: Array) -> Array:
        """u_k, in columns, (..., 3, turns); 1 of a quaternion."""
        if self.ball:
            return np.broadcast_to(np.eye(3), (*q.shape[:-1], 3, 3))
        after, found = np.broadcast_to(np.eye(3), (*q.shape[:-1], 3, 3)), []
        for axis, turn in zip(reversed(self.axes), reversed(self._turns(q)), strict=True):
            found.append(after.swapaxes(-1, -2) @ np.asarray(axis))
            after = turn @ after
        return np.stack(found[::-1], axis=-1)

    # --- conversions --------------------------------------------------------------------------------------------

    def to_theirs(self, q: Array, found: Array) -> None:
        k, n = self.theirs_q, self.count
        found[..., k : k + n] = q[..., self.q]
        if self.kind == "planar":
            x = q[..., self.turn_q[0]]
            found[..., k + n], found[..., k + n + 1] = np.cos(x), np.sin(x)
            return
        if self.ball:
            wxyz = q[..., self.turn_q]
            _check_unit(wxyz, f"the quaternion {shown(self.name)}")
        else:
            wxyz = _quaternion(self.rotation(q))
        for place, value in zip(self._place(), np.moveaxis(wxyz, -1, 0), strict=True):
            found[..., place] = value

    def _place(self) -> list[int]:
        """Positions of w, x, y, z."""
        return [self.theirs_q + self.count + k for k in self.order]

    def to_ours(self, given: Array, found: Array) -> None:
        k, n = self.theirs_q, self.count
        found[..., self.q] = given[..., k : k + n]
        if self.kind == "planar":
            _check_unit(given[..., k + n : k + n + 2], f"(cos, sin) of joint {shown(self.name)}")
            found[..., self.turn_q[0]] = np.arctan2(given[..., k + n + 1], given[..., k + n])
            return
        wxyz = given[..., self._place()]
        _check_unit(wxyz, f"the quaternion of joint {shown(self.name)}")
        found[..., self.turn_q] = wxyz if self.ball else _angles(wxyz, self.axes)

    def slopes(self, q: Array, v: Array) -> tuple[Array, Array]:
        """A and Ȧ v."""
        n, size = self.count, len(self.v)
        A, drift = np.zeros((*q.shape[:-1], size, size)), np.zeros((*q.shape[:-1], size))
        u = self.columns(q)
        rates = v[..., self.v[n:]]
        turning = np.zeros((*rates.shape[:-1], 3))
        bent = np.zeros_like(turning)
        for k in reversed(range(u.shape[-1])):  # later turns first
            if not self.ball:
                bent = bent + rates[..., k, None] * np.cross(u[..., k], turning)
            turning = turning + rates[..., k, None] * u[..., k]
        if self.kind == "planar":
            A[..., n, n] = 1.0
        else:
            if (abs(np.linalg.det(u)) < LOCK).any():
                hint = "load the model with quaternion=True, whose orientation is a unit quaternion"
                raise SingularError(f"the angles of joint {shown(self.name)} are where two of its axes are one; {hint}")
            A[..., n:, n:], drift[..., n:] = u, bent
        if n:
            Rt = self.rotation(q).swapaxes(-1, -2)[..., :n, :n] if self.local else np.eye(n)
            A[..., :n, :n] = Rt
            if self.local:
                shift = np.zeros_like(turning)
                shift[..., :n] = np.einsum("...ij,...j->...i", A[..., :n, :n], v[..., self.v[:n]])
                drift[..., :n] = -np.cross(turning, shift)[..., :n]
        return A, drift


def matched(model: Model, peer: Peer) -> list[Part]:
    """Parts of a model and a peer with equal names, or an InputError that names those without a counterpart."""
    parts = list[Part]()
    names = {name: i for i, name in enumerate(model.joint_names)}
    rest = []
    for joint in peer.joints:
        if joint.kind not in SIZES:
            i = names.get(joint.name)
            if i is None:
                rest.append(joint.name)
                continue
            kind = "revolute" if joint.kind == "circle" else joint.kind
            if model.joints[i].kind != kind:
                found = f"joint {shown(joint.name)} is {kind} in {peer.library} and {model.joints[i].kind} in the model"
                raise InputError(f"{found}; expected two models of one mechanism")
            parts.append(Single(model, joint, i))
            continue
        part = _body(model, joint, peer)
        if part is None:
            rest.append(joint.name)
        else:
            parts.append(part)
    _check_all(model, peer, parts, rest)
    return parts


def _body(model: Model, joint: PeerJoint, peer: Peer) -> Body | None:
    """The part of a joint of several degrees of freedom; a free joint is also found by ``root``, as files are read."""
    for name in (joint.name, "root") if joint.kind == "free" else (joint.name,):
        part = Body(model, joint, peer)
        if part.take(model, name):
            return part
    return None


def _check_all(model: Model, peer: Peer, parts: list[Part], rest: list[str]) -> None:
    led = {v for part in parts if isinstance(part, Body) or part.leads for v in part.v}
    alone = [name for v, name in enumerate(model.layout.speed_names) if v not in led]
    if rest or alone:
        found = [f"{peer.library} has {_few(rest)}, which the model has not"] if rest else []
        found += [f"the model has {_few(alone)}, which {peer.library} has not"] if alone else []
        hint = "expected two models of one mechanism, with joints of the same names"
        if any("root" in name for name in [*rest, *alone]):
            hint += "; a free base needs kinegrad.load(…, root='free'), and JointModelFreeFlyer in Pinocchio"
        raise InputError(f"joints do not match: {'; '.join(found)}; {hint}")


def _few(names: list[str]) -> str:
    text = ", ".join(shown(name) for name in names[:5])
    return f"{text} and {len(names) - 5} more" if len(names) > 5 else text


def _check_unit(x: Array, what: str) -> None:
    length = np.sqrt((x * x).sum(axis=-1))
    if (abs(length - 1) > UNIT).any():
        worst = float(length.flat[np.argmax(abs(length - 1))])
        raise InputError(f"`q`: {what} has length {worst:.6g}; expected 1")


def _matrix(wxyz: Array) -> Array:
    w, x, y, z = np.moveaxis(wxyz, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def _quaternion(R: Array) -> Array:
    """(w, x, y, z) of rotations, w not negative."""
    from scipy.spatial.transform import Rotation

    xyzw = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat(canonical=True)
    wxyz: Array = np.roll(xyzw, 1, axis=-1).reshape(*R.shape[:-2], 4)
    return wxyz


def _angles(wxyz: Array, axes: list[tuple[float, ...]]) -> Array:
    """Angles of turns about axes x, y, z one after the other; where two axes are one, the last angle is zero."""
    from scipy.spatial.transform import Rotation

    sequence = "".join("XYZ"[axis.index(1)] for axis in axes)
    flat = Rotation.from_quat(np.roll(wxyz, -1, axis=-1).reshape(-1, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        angles: Array = flat.as_euler(sequence).reshape(*wxyz.shape[:-1], 3)
    return angles
