"""Sizes by which rows of torques are judged: what the equation of a row itself is made of.

A row r of torques is a virtual motion, q̇ = r.  It moves link i by J at its centre of mass and turns it by W, and

    r·τ = Σ_i (J_i·m_i a_i + W_i·Ḣ_i) − Σ_i J_i·m_i g + (springs, dampers, rotors, loads) − Σ_j (r·G_jᵀ) f_j         (1)

with Ḣ the change of a link's angular momentum.  The size of a row at one instant is (1) with magnitudes: of inertia and
of weight link by link, of all that acts on joints, and of each force.  A row is judged by the mean of its sizes in the
whole motion: a force where the row is one, a moment where the row is a moment, and no row is judged by another one.
Where next to nothing acts it is a thousandth of

    Σ_i m_i δ_i |g|,        m δ = √(m² |J|² + m WᵀIW)                                                                (2)

at least, with δ by how much the mass of a link moves (root mean square), and 1 m/s² for |g| where there is no gravity.
So it is zero only if the row moves no mass.  Solvers scale rows by (2), which needs no motion.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinegrad.kinematics import forward_kinematics, jacobian
from kinegrad.model import Model
from kinegrad.motion.problem.nodes import Grid

Array = NDArray[np.float64]
SLOW = 1.0  # m/s²: an acceleration of bodies without weight
LEAST = 1e-3  # of (2)
ROOM = 4_000_000  # numbers of Jacobians at a time


def size_at_rest(model: Model, rows: Array) -> Array:
    """(2) of rows, (R, nv), the largest of some postures, (R,)."""
    g = float(np.linalg.norm(model.gravity)) or SLOW
    q = np.random.default_rng(19970917).uniform(-0.5, 0.5, (3, model.nq))
    R = forward_kinematics(model, q).transform[..., :3, :3]
    linear, angular = _twists(model, q, rows)
    moved, turned = _rms(model, linear, angular, R @ model.inertia @ R.swapaxes(-1, -2)), angular.swapaxes(-1, -2)
    light = np.where(model.mass[:, None] > 0, 0.0, np.linalg.norm(turned, axis=-1) * _spin(model)[:, None])
    return np.asarray((g * moved + light).sum(axis=1).max(axis=0))


def row_sizes(grid: Grid, x: Array, rows: Array) -> Array:
    """Magnitudes of (1) of rows, (R, nv), at the instants of a grid, (K, R)."""
    y, layout = grid.y(x), grid.layout
    mechanics = grid.mechanics if grid.mechanics.design is None else grid.mechanics.at(grid.parameters(x))
    model, count = mechanics.model, len(y)
    step = max(1, ROOM // max(1, 6 * model.n * (model.nv + len(rows))))
    found = np.empty((count, len(rows)))
    for first in range(0, count, step):
        here = y[first : first + step]
        q, v, a = (np.ascontiguousarray(here[:, layout.state(d)]) for d in range(3))
        found[first : first + step], net = _of_links(model, q, v, a, rows)
        tau = here[:, layout.tau] @ rows.T
        if layout.forces:
            G = mechanics.forced.jacobian(q)[:, list(mechanics.forced_rows)]  # type: ignore[union-attr]
            pushed = (G @ rows.T) * here[:, layout.force][:, :, None]
            found[first : first + step] += np.abs(pushed).sum(axis=1)
            tau = tau + pushed.sum(axis=1)
        found[first : first + step] += np.abs(tau - net)
    return found


def _of_links(model: Model, q: Array, v: Array, a: Array, rows: Array) -> tuple[Array, Array]:
    """Magnitudes and sum of what links add to (1), (K, R) each."""
    motion = forward_kinematics(model, q, v, a)
    w, dw = motion.angular_velocity, motion.angular_acceleration
    assert motion.linear_acceleration is not None
    assert w is not None
    assert dw is not None
    R = motion.transform[..., :3, :3]
    s = np.einsum("kiab,ib->kia", R, model.com)
    at = motion.linear_acceleration + np.cross(dw, s) + np.cross(w, np.cross(w, s))
    inertia = R @ model.inertia @ R.swapaxes(-1, -2)
    spun = np.einsum("kiab,kib->kia", inertia, dw) + np.cross(w, np.einsum("kiab,kib->kia", inertia, w))
    linear, angular = _twists(model, q, rows)  # (K, n, 3, R)
    moved = np.einsum("kiar,kia->kir", linear, model.mass[:, None] * at)
    moved += np.einsum("kiar,kia->kir", angular, spun)
    weight = np.einsum("kiar,ia->kir", linear, model.mass[:, None] * model.gravity)
    sizes, net = np.abs(moved) + np.abs(weight), moved - weight
    return np.asarray(sizes.sum(axis=1)), np.asarray(net.sum(axis=1))


def _rms(model: Model, linear: Array, angular: Array, inertia: Array) -> Array:
    """m δ of each link, (K, n, R)."""
    m = model.mass[:, None]
    spin = np.einsum("kiar,kiab,kibr->kir", angular, inertia, angular, optimize=True)
    return np.asarray(np.sqrt(m**2 * (linear**2).sum(axis=2) + m * np.maximum(spin, 0.0)))


def _spin(model: Model) -> Array:
    """Largest moment of inertia of each link, times 1/s²: bodies without mass."""
    return np.asarray(np.linalg.eigvalsh(model.inertia)[:, -1])


def _twists(model: Model, q: Array, rows: Array) -> tuple[Array, Array]:
    """Virtual motion of centres of mass, and turns of links, (K, n, 3, R)."""
    J = jacobian(model, q, link=list(model.link_names), point=model.com)
    spread = [np.flatnonzero(row) for row in rows]
    found = []
    for part in (J.linear, J.angular):
        each = [part[..., columns] @ row[columns] for row, columns in zip(rows, spread, strict=True)]
        found.append(np.stack(each, axis=-1) if each else np.zeros((*part.shape[:-1], 0)))
    return found[0], found[1]


def limit_scale(lower: float, upper: float) -> float:
    """Scale of a row for solvers: the larger limit, at most a hundred times the smaller one that is not zero."""
    sizes = [abs(float(x)) for x in (lower, upper) if np.isfinite(x) and x]
    return min(max(sizes), 100 * min(sizes)) if sizes else 1.0


def carried_weights(model: Model, joins: Sequence[tuple[int, int]]) -> Array:
    """Weight of everything that hangs together with each link, (n,), N.

    Trees that start at the world are apart, unless couplings, force elements or one of these pairs of links join them.
    """
    root = list(range(model.n))
    for i, parent in enumerate(model.parents):
        root[i] = i if parent < 0 else root[int(parent)]
    elements = [(x.link, x.other) for x in model.elements.values() if x.other is not None]
    coupled = [(entry.joints[0], joint) for entry in model.coordinates for joint in entry.joints[1:]]
    for one, other in [*joins, *coupled, *((model.locate(a)[0], model.locate(b)[0]) for a, b in elements)]:
        a, b = root[one], root[other]
        root = [a if r == b else r for r in root]
    mass = np.bincount(root, model.mass, model.n)[root]
    g = float(np.linalg.norm(model.gravity))
    return np.asarray(np.maximum(mass * g, np.minimum(mass * SLOW, 2.0)))
