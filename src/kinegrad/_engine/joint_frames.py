"""Joint frames turned about their own axes, as ``_kernels/joint_frames.py`` wants them; made once per model.

With X = Rz(β) Rx(α) Rz(γ) of each joint, by Euler's angles, one child of each link may choose how the link's frame is
turned about its axis: by its β, which is none then.  Angles are never formed, only their sines and cosines, which are
entries of X; where axes are parallel, or nearly so, any β will do as long as γ is that of the same.
A joint that turns by −q has its frame upside down, so that it turns by q.
What is not quite a rotation would become one; models hold rotations (``model/placement.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.kernel_constants import symmetric
from kinegrad._kernels.joint_frames import BRANCHED, PARALLEL, RIGHT, TILTED
from kinegrad._kernels.mechanism import Mechanism

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_NOTHING = np.finfo(float).eps  # of a sine or cosine that is zero but for rounding
_UPSIDE_DOWN = np.diag([1.0, -1.0, -1.0])


class JointFrames(NamedTuple):
    """What kernels in joint frames want to know of a mechanism."""

    kinds: Integers
    """(n, 2) the kind of α and β, and whether γ is not zero"""
    hinge: Array
    """(n, 9) cos and sin of α, β, γ, and d, placed"""
    rate: Array
    """(n, 2) ρ and η"""
    F: Array
    """(n, 12) as of the mechanism, in these frames"""
    inertia: Array
    """(n, 10) likewise"""


def joint_frames(m: Mechanism) -> JointFrames:
    """Of a mechanism."""
    n = len(m.parent)
    turned = np.where((m.rate[:, 0] < 0.0)[:, None, None], _UPSIDE_DOWN, np.eye(3))  # each frame in that of `m`
    before = np.concatenate([turned, np.eye(3)[None]])[m.parent].transpose(0, 2, 1)  # of the parent; the world's last
    rotation = before @ m.X[:, :9].reshape(n, 3, 3) @ turned
    alpha, beta = _tilts(rotation)
    placed = (_about_z(beta) @ _about_x(alpha)).transpose(0, 2, 1)
    gamma = _unit(placed @ rotation)
    d = np.einsum("nij,njk,nk->ni", placed, before, m.X[:, 9:])

    heir = _first_children(m.parent)
    own = np.where((heir >= 0)[:, None], beta[heir], _minus(gamma))  # how each frame is turned; without heirs, by −γ
    chosen = np.concatenate([own, [[1.0, 0.0]]])[m.parent]
    branched = np.append(heir, -1)[m.parent] != np.arange(n)
    beta = np.where(branched[:, None], _sum(beta, _minus(chosen)), [1.0, 0.0])
    gamma = np.where((heir >= 0)[:, None], _sum(gamma, own), [1.0, 0.0])
    parallel = (alpha[:, 0] > 0.0) & (alpha[:, 1] == 0.0)  # cos α is 1 for an angle of 1e-9 as well
    tilt = np.select([branched, alpha[:, 0] == 0.0, parallel], [BRANCHED, RIGHT, PARALLEL], TILTED)

    to_own = (turned @ _about_z(own)).transpose(0, 2, 1)
    xx, yy, zz, xy, xz, yz = m.inertia[:, 4:].T
    N = to_own @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1) @ to_own.transpose(0, 2, 1)
    F = to_own @ m.F[:, :9].reshape(n, 3, 3)
    kinds = np.column_stack([tilt, (gamma != [1.0, 0.0]).any(axis=1)]).astype(np.int64)
    return JointFrames(
        kinds,
        np.column_stack([alpha, beta, gamma, d]),
        np.column_stack([np.abs(m.rate[:, 0]), np.where(m.rate[:, 0] < 0.0, -m.rate[:, 1], m.rate[:, 1])]),
        np.column_stack([F.reshape(n, 9), np.einsum("nij,nj->ni", to_own, m.F[:, 9:])]),
        np.column_stack([m.inertia[:, 0], np.einsum("nij,nj->ni", to_own, m.inertia[:, 1:4]), symmetric(N)]),
    )


def _tilts(X: Array) -> tuple[Array, Array]:
    """cos and sin of α and of β, (n, 2) each, where X = Rz(β) Rx(α) Rz(γ)."""
    s, c = np.hypot(X[:, 0, 2], X[:, 1, 2]), X[:, 2, 2]
    tilted, right = s > _NOTHING, np.abs(c) <= _NOTHING
    alpha = np.column_stack([np.where(right, 0.0, np.where(tilted, c, np.sign(c))), np.where(right, 1.0, s * tilted)])
    beta = np.column_stack([-X[:, 1, 2], X[:, 0, 2]]) / np.where(tilted, s, 1.0)[:, None]
    return alpha, np.where(tilted[:, None], beta, [1.0, 0.0])


def _first_children(parents: Integers) -> Integers:
    """The first child of each link, or −1."""
    first = np.full(len(parents), -1)
    for i in reversed(range(len(parents))):
        if parents[i] >= 0:
            first[parents[i]] = i
    return first


def _unit(R: Array) -> Array:
    """cos and sin of the angle of rotations about z, but for rounding."""
    both = R[:, :2, 0]
    return np.asarray(both / np.hypot(both[:, 0], both[:, 1])[:, None])


def _sum(a: Array, b: Array) -> Array:
    """cos and sin of the sums of angles."""
    return np.column_stack([a[:, 0] * b[:, 0] - a[:, 1] * b[:, 1], a[:, 1] * b[:, 0] + a[:, 0] * b[:, 1]])


def _minus(a: Array) -> Array:
    return a * [1.0, -1.0]


def _about_x(a: Array) -> Array:
    R = np.tile(np.eye(3), (len(a), 1, 1))
    R[:, 1, 1] = R[:, 2, 2] = a[:, 0]
    R[:, 1, 2], R[:, 2, 1] = -a[:, 1], a[:, 1]
    return R


def _about_z(a: Array) -> Array:
    R = np.tile(np.eye(3), (len(a), 1, 1))
    R[:, 0, 0] = R[:, 1, 1] = a[:, 0]
    R[:, 0, 1], R[:, 1, 0] = -a[:, 1], a[:, 1]
    return R
