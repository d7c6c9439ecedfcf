"""Multibody dynamics twice over, as plainly as it can be written; one state at a time.

Two routes that share only the joint transforms A_i(q_i) = P_i · motion(q_i) · F_i:

* energies: geometric Jacobians give M(q), T = ½ vᵀMv and V(q); Lagrange's equation by complex step
  (:func:`inverse_dynamics`, real arguments only);
* transforms: exact ∂T_j/∂q_k and ∂²T_j/∂q_k∂q_m by the product rule, and [xiang2008] (6)-(10)
  (:func:`regular_lagrangian`).

Everything but :func:`inverse_dynamics` is complex-safe (transposes never conjugate), so that
:func:`numerical_derivative` differentiates it to machine precision, with respect to q, v, a and loads, and to
constants of the model, made complex by :func:`with_constants`.

Symbols: T world transform of a link (4, 4), R its rotation, J pseudo-inertia (4, 4), J_v and J_ω Jacobians
(3, n), z and o a joint's axis and origin in the world (3,); link j, joints i, k, m.

References
----------
[xiang2008] Xiang, Arora, Abdel-Malek, recursive Lagrangian dynamics and its sensitivity.
[zhakatayev2023] Zhakatayev et al., the pseudo-inertia (7).
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.model import Model

Array = NDArray[Any]  # float64 or complex128
AnyModel = Model | SimpleNamespace  # what `with_constants` returns serves as a model, here only
CONSTANTS = (
    "joints", "parents", "placement", "tip", "mass", "com", "inertia", "gravity",
    "stiffness", "rest", "damping", "armature",
)  # fmt: skip
STEP = 1e-30  # of the complex step: its square is lost beside 1, so the derivative has no truncation error


# --- the complex step ---


def numerical_derivative(f: Callable[[Array], Any], x: ArrayLike) -> Array:
    """∂f/∂x_k = Im f(x + i h e_k) / h, of shape f.shape + x.shape."""
    x = np.asarray(x, dtype=np.float64)
    columns = []
    for k in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[k] += 1j * STEP
        columns.append(np.imag(f(moved)) / STEP)
    return np.stack(columns, axis=-1).reshape(*np.shape(columns[0]), *x.shape)


def rate(f: Callable[..., Any], *motion: tuple[ArrayLike, ArrayLike]) -> Array:
    """df/dt = Im f(x + i h ẋ, …) / h, for pairs (x, ẋ)."""
    return np.imag(f(*(np.asarray(x) + 1j * STEP * np.asarray(dx) for x, dx in motion))) / STEP


def with_constants(model: Model, **changes: Any) -> SimpleNamespace:
    """The model with some constants changed, unchecked, so that they may be complex: for ∂τ/∂mass, …"""
    unknown = set(changes) - set(CONSTANTS)
    if unknown:
        raise TypeError(f"not constants of the dynamics: {sorted(unknown)}; expected some of {CONSTANTS}")
    return SimpleNamespace(n=model.n, **{name: changes.get(name, getattr(model, name)) for name in CONSTANTS})


# --- transforms and their exact derivatives ---


def skew(u: ArrayLike) -> Array:
    """The matrix K with K x = u × x."""
    x, y, z = np.asarray(u)
    zero = 0 * x
    return np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]])


def unskew(K: Array) -> Array:
    """The vector u with u × x = K x, of the antisymmetric part of K (..., 3, 3)."""
    K = K - np.swapaxes(K, -1, -2)
    return np.stack([K[..., 2, 1], K[..., 0, 2], K[..., 1, 0]], axis=-1) / 2


def joint_transform(model: AnyModel, i: int, q_i: complex, order: int = 0) -> Array:
    """A = P · motion(q) · F, R = 1 + sin q K + (1 − cos q) K² (Rodrigues); or its order-th derivative."""
    joint = model.joints[i]
    axis = np.asarray(joint.axis)
    sin, cos, one = np.sin(q_i), np.cos(q_i), [1.0, 0.0, 0.0][order]
    by_K, by_KK = [(sin, 1 - cos), (cos, sin), (-sin, cos)][order]
    along = axis * [q_i, 1.0, 0.0][order]
    R, p = one * np.eye(3), along
    if joint.kind != "prismatic":
        K = skew(axis)
        R, p = R + by_K * K + by_KK * (K @ K), joint.pitch * along  # the pitch of a hinge is zero
    motion = np.zeros((4, 4), np.result_type(R, p))
    motion[:3, :3], motion[:3, 3], motion[3, 3] = R, p, one
    return model.placement[i] @ motion @ model.tip[i]


def transforms(model: AnyModel, q: ArrayLike) -> Array:
    """T_i = T_parent(i) A_i, shape (n, 4, 4)."""
    q, T = np.asarray(q), []
    for i, parent in enumerate(model.parents):
        above = T[parent] if parent >= 0 else np.eye(4)
        T.append(above @ joint_transform(model, i, q[i]))
    return np.array(T)


def transform_derivatives(model: AnyModel, q: ArrayLike) -> tuple[Array, Array, Array]:
    """T[j], ∂T_j/∂q_k at [j, k] and ∂²T_j/∂q_k∂q_m at [j, k, m]: the product rule on T_j = T_parent A_j."""
    q, n = np.asarray(q), model.n
    A, dA, ddA = (np.array([joint_transform(model, i, q[i], order) for i in range(n)]) for order in (0, 1, 2))
    T = np.zeros((n, 4, 4), A.dtype)
    dT = np.zeros((n, n, 4, 4), A.dtype)
    ddT = np.zeros((n, n, n, 4, 4), A.dtype)
    for j, parent in enumerate(model.parents):
        above, d_above, dd_above = np.eye(4), np.zeros((n, 4, 4)), np.zeros((n, n, 4, 4))  # the world's
        if parent >= 0:
            above, d_above, dd_above = T[parent], dT[parent], ddT[parent]
        T[j] = above @ A[j]
        dT[j] = d_above @ A[j]
        dT[j, j] = above @ dA[j]
        ddT[j] = dd_above @ A[j]
        ddT[j, :, j] = ddT[j, j, :] = d_above @ dA[j]
        ddT[j, j, j] = above @ ddA[j]
    return T, dT, ddT


def transform_motion(model: AnyModel, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """T, Ṫ = Σ ∂T/∂q_k v_k and T̈ = ΣΣ ∂²T/∂q_k∂q_m v_k v_m + Σ ∂T/∂q_k a_k, each (n, 4, 4)."""
    T, dT, ddT = transform_derivatives(model, q)
    v, a = np.asarray(v), np.asarray(a)
    return T, _along(dT, v), _along(_along(ddT, v), v) + _along(dT, a)


def _along(X: Array, v: Array) -> Array:
    """Σ_k X[..., k, :, :] v_k."""
    return np.einsum("...kab,k->...ab", X, v)


# --- kinematics ---


def point_motion(
    model: AnyModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, link: int, point: ArrayLike
) -> tuple[Array, Array, Array]:
    """Position T r, velocity Ṫ r, acceleration T̈ r of a point r fixed in a link, world, each (3,)."""
    r = np.append(point, 1.0)
    T, dT, ddT = transform_motion(model, q, v, a)
    return (T[link] @ r)[:3], (dT[link] @ r)[:3], (ddT[link] @ r)[:3]


def angular_motion(model: AnyModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, link: int) -> tuple[Array, Array]:
    """Angular velocity ω× = Ṙ Rᵀ and acceleration ω̇× = R̈ Rᵀ + Ṙ Ṙᵀ of a link, in the world, each (3,)."""
    R, dR, ddR = (X[link, :3, :3] for X in transform_motion(model, q, v, a))
    return unskew(dR @ R.T), unskew(ddR @ R.T + dR @ dR.T)


def jacobian(model: AnyModel, q: ArrayLike, link: int, point: ArrayLike) -> tuple[Array, Array]:
    """J_v = [z × (x − o)] (hinge) or [z] (slider), J_ω = [z] or [0] of a point x fixed in a link, (3, n)."""
    return _jacobian(model, transforms(model, q), link, point)


def _jacobian(model: AnyModel, T: Array, link: int, point: ArrayLike) -> tuple[Array, Array]:
    """The same, from the transforms T of all links."""
    x = (T[link] @ np.append(point, 1.0))[:3]
    J_v, J_w = [np.zeros(3)] * model.n, [np.zeros(3)] * model.n
    k = link
    while k >= 0:
        joint, parent = model.joints[k], model.parents[k]
        frame = (T[parent] if parent >= 0 else np.eye(4)) @ model.placement[k]
        z, o = frame[:3, :3] @ np.asarray(joint.axis), frame[:3, 3]
        if joint.kind == "prismatic":
            J_v[k] = z
        else:
            J_v[k], J_w[k] = skew(z) @ (x - o) + joint.pitch * z, z
        k = parent
    return np.array(J_v).T, np.array(J_w).T


def com(model: AnyModel, q: ArrayLike) -> Array:
    """c = Σ m_j T_j r_j / Σ m_j, of the whole model in the world, (3,)."""
    zero = np.zeros(model.n)
    return com_motion(model, q, zero, zero)[0]


def com_motion(model: AnyModel, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """c, ċ, c̈ = Σ m_j (T_j, Ṫ_j, T̈_j) r_j / Σ m_j, each (3,)."""
    m, mr = model.mass, _first_moments(model)
    c, dc, ddc = (np.einsum("jab,jb->a", X, mr)[:3] / np.sum(m) for X in transform_motion(model, q, v, a))
    return c, dc, ddc


def momentum(model: AnyModel, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """p = Σ m_j Ṫ_j r_j; about the com L = ∫ x × ẋ dm − c × p, with ∫ x ẋᵀ dm = Σ T_j J_j Ṫ_jᵀ; each (3,)."""
    T, dT, _ = transform_motion(model, q, v, np.zeros(model.n))
    p = np.einsum("jab,jb->a", dT, _first_moments(model))[:3]
    W = sum(T[j] @ pseudo_inertia(model, j) @ dT[j].T for j in range(model.n))
    return p, unskew((W.T - W)[:3, :3]) - np.cross(com(model, q), p)


# --- the route by energies ---


def mass_matrix(model: AnyModel, q: ArrayLike) -> Array:
    """M = Σ_j m J_vᵀJ_v + J_ωᵀ R I Rᵀ J_ω at the centres of mass, + diag(armature)."""
    T = transforms(model, q)
    M = np.diag(model.armature)
    for j in range(model.n):
        J_v, J_w = _jacobian(model, T, j, model.com[j])
        R = T[j, :3, :3]
        M = M + model.mass[j] * J_v.T @ J_v + J_w.T @ R @ model.inertia[j] @ R.T @ J_w
    return M


def kinetic_energy(model: AnyModel, q: ArrayLike, v: ArrayLike) -> complex:
    """T = ½ vᵀ M(q) v."""
    v = np.asarray(v)
    return v @ mass_matrix(model, q) @ v / 2


def potential_energy(model: AnyModel, q: ArrayLike) -> complex:
    """V = −Σ m_j gᵀ x_j + Σ ½ k (q − rest)², x_j the centres of mass."""
    T = transforms(model, q)
    moments = np.einsum("jab,jb->a", T, _first_moments(model))[:3]
    return np.sum(model.stiffness * (np.asarray(q) - model.rest) ** 2) / 2 - model.gravity @ moments


def inverse_dynamics(
    model: AnyModel,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    force: ArrayLike | None = None,
    point: ArrayLike | None = None,
    torque: ArrayLike | None = None,
) -> Array:
    """τ = d/dt ∂T/∂v − ∂T/∂q + ∂V/∂q + D v − Σ (J_vᵀ f + J_ωᵀ h), by complex step: real arguments only."""
    q, v, a = np.asarray(q), np.asarray(v), np.asarray(a)
    momentum_rate = mass_matrix(model, q) @ a + rate(lambda q: mass_matrix(model, q), (q, v)) @ v
    tau = momentum_rate + model.damping * v
    tau = tau - numerical_derivative(lambda q: kinetic_energy(model, q, v) - potential_energy(model, q), q)
    T = transforms(model, q)
    for j, (f, r, h) in enumerate(zip(*_loads(model, force, point, torque), strict=True)):
        J_v, J_w = _jacobian(model, T, j, r)
        tau = tau - J_v.T @ f - J_w.T @ h
    return tau


# --- the route by transforms ---


def pseudo_inertia(model: AnyModel, j: int) -> Array:
    """J = [[Σ + m c cᵀ, m c], [m cᵀ, m]] with Σ = ½ tr(I) 1 − I, [zhakatayev2023] (7)."""
    r, inertia, upper = np.append(model.com[j], 1.0), model.inertia[j], np.eye(4, 3)
    return upper @ (np.trace(inertia) / 2 * np.eye(3) - inertia) @ upper.T + model.mass[j] * np.outer(r, r)


def regular_lagrangian(
    model: AnyModel,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    force: ArrayLike | None = None,
    point: ArrayLike | None = None,
    torque: ArrayLike | None = None,
) -> Array:
    """τ_i = Σ_j tr(T̈_j J_j ∂T_jᵀ/∂q_i) − m gᵀ ∂T_j/∂q_i r − fᵀ ∂T_j/∂q_i r_f − h·ω_ji + joint's own terms.

    [xiang2008] (6)-(10): T̈ gathers M q̈ of (7) and the double sum over q̇_k q̇_m of (8); ω_ji× = ∂R_j/∂q_i R_jᵀ.
    """
    q, v, a = np.asarray(q), np.asarray(v), np.asarray(a)
    T, dT, ddT = transform_derivatives(model, q)
    T_acceleration = _along(_along(ddT, v), v) + _along(dT, a)
    mr, g = _first_moments(model), np.append(model.gravity, 0.0)
    tau = model.armature * a + model.damping * v + model.stiffness * (q - model.rest)
    for j, (f, r, h) in enumerate(zip(*_loads(model, force, point, torque), strict=True)):
        dT_j = dT[j]  # [i] is ∂T_j/∂q_i
        omega = unskew(dT_j[:, :3, :3] @ T[j, :3, :3].T)
        tau = tau + np.einsum("ab,iab->i", T_acceleration[j] @ pseudo_inertia(model, j), dT_j)
        tau = tau - g @ dT_j @ mr[j] - np.append(f, 0.0) @ dT_j @ np.append(r, 1.0) - omega @ h
    return tau


def _first_moments(model: AnyModel) -> Array:
    """m_j (c_j, 1), shape (n, 4)."""
    return model.mass[:, None] * np.column_stack([model.com, np.ones(model.n)])


def _loads(model: AnyModel, *loads: ArrayLike | None) -> list[Array]:
    """World forces, their points in the links, world torques: each (n, 3), zero where None."""
    return [np.zeros((model.n, 3)) if load is None else np.asarray(load) for load in loads]
