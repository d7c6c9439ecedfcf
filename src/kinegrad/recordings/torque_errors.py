"""How uncertain torques are: from errors of markers, masses and lengths of bones, to first order.

Torques are τ(q, v, a, p) of the smoothed motion.  Smoothing is linear: from samples q̃ at times k it makes q = S⁰q̃,
v = S¹q̃, a = S²q̃ at times i, the same for every coordinate.  Errors of samples are independent from time to time, with
covariances Σ_k, so

    Var τ_i = Σ_αβ T_α C_αβ T_βᵀ,    C_αβ = Σ_k S^α_ik S^β_ik Σ_k,    T = (∂τ/∂q, ∂τ/∂v, ∂τ/∂a) at time i.

Where q̃ minimises the distances of markers, whose errors are independent with standard deviation σ in each direction,

    Σ_k = σ² H⁻¹ (Σ w² JᵀJ) H⁻¹,

H the Hessian of the cost at its minimum; coordinates at a limit have no error.  Where markers do not determine a
coordinate, its errors are slow waves (:mod:`kinegrad.recordings.undetermined`), each of which adds its square.
Errors of masses and lengths are systematic: relative errors of each body, independent of each other, held for the whole
recording: Var τ = Σ_p (∂τ/∂p)² s_p².  The motion is held as it was found: how other lengths would have changed it is
not in the bars.  All of it is linear propagation; it is right as long as errors are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.design import Design, inverse_dynamics_design_derivatives, point_motion_design_derivatives
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import InputError
from kinegrad.kinematics import jacobian
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.recordings.force_plates import ForcePlate
from kinegrad.recordings.undetermined import Gap
from kinegrad.results import Result

__all__ = ["TorqueErrors", "body_masses", "bone_lengths", "torque_errors"]

Array = NDArray[np.float64]
PROBE = 1e-3  # rad or m: an impulse that no smoothing takes for a turn
MOST = 3000  # samples: S⁰, S¹ and S² of more would fill the memory


@dataclass(frozen=True, eq=False)
class TorqueErrors(Result):
    """Standard deviations of torques, N·m or N, and what they come from.

    Attributes
    ----------
    measured : ndarray, shape (N, nv)
        By errors of markers, or of coordinates.
    mass, length : ndarray, shape (N, nv)
        By relative errors of the masses of bodies (with their moments), and of the lengths of bones.
    dtau_dmass : ndarray, shape (N, nv, bodies)
        How torques change with the relative mass of each body,
    dtau_dlength : ndarray, shape (N, nv, bones)
        and with the relative length of each bone.
    body_names, bone_names : tuple of str
    """

    measured: Array
    mass: Array
    length: Array
    dtau_dmass: Array
    dtau_dlength: Array
    body_names: tuple[str, ...]
    bone_names: tuple[str, ...]

    @property
    def total(self) -> Array:
        """All together, as independent errors, (N, nv)."""
        return np.asarray(np.sqrt(self.measured**2 + self.mass**2 + self.length**2))


def torque_errors(
    model: Model,
    motion: Motion,
    loads: Loads | None,
    plates: Sequence[ForcePlate],
    covariance: Array | None,
    smooth: Callable[[Array, Array], Motion] | None,
    t: Array,
    mass_error: float,
    length_error: float,
    gaps: Sequence[Gap] = (),
) -> TorqueErrors:
    """Error bars of the torques of a motion; all arguments checked by the caller.

    Parameters
    ----------
    model, motion, loads, plates
        Of the inverse dynamics.
    covariance : ndarray, shape (m, nv, nv), or None
        Of the samples from which `smooth` makes the motion, (t, q̃) → motion, at times t, (m,).
    mass_error, length_error : float
        Relative standard deviations.
    gaps : sequence of Gap
        Coordinates that markers do not determine for a while.
    """
    measured = np.zeros_like(motion.v)
    if covariance is not None and smooth is not None:
        measured = _measured(model, motion, loads, plates, covariance, smooth, t, gaps)
    found: list[Any] = []
    for design, relative in ((body_masses(model), mass_error), (bone_lengths(model), length_error)):
        if design is None:
            slope, names = np.zeros((*motion.v.shape, 0)), tuple[str, ...]()
        else:
            slope = inverse_dynamics_design_derivatives(design, motion.q, motion.v, motion.a, loads=loads)
            slope = slope + _moved_origins(design, motion, plates)
            names = design.names
        found.append((relative * np.sqrt((slope**2).sum(axis=-1)), slope, names))
    (mass, by_mass, bodies), (length, by_length, bones) = found
    return TorqueErrors(measured, mass, length, by_mass, by_length, bodies, bones)


def _measured(
    model: Model,
    motion: Motion,
    loads: Loads | None,
    plates: Sequence[ForcePlate],
    covariance: Array,
    smooth: Callable[[Array, Array], Motion],
    t: Array,
    gaps: Sequence[Gap],
) -> Array:
    """Standard deviations by errors of samples, (N, nv)."""
    S = _responses(model, motion, smooth, t)
    slopes = inverse_dynamics_derivatives(model, motion.q, motion.v, motion.a, loads=loads)
    by_q = np.array(slopes.dtau_dq)
    for plate in plates:
        J = jacobian(model, motion.q, link=model.link_names[model.locate(plate.link)[0]])
        by_q += _by_origin(J.angular, J.linear, plate.force)
    T = (by_q, np.asarray(slopes.dtau_dv), np.asarray(slopes.dtau_da))
    flat, shape = covariance.reshape(len(covariance), -1), (len(motion.t), model.nv, model.nv)
    variance = np.zeros(motion.v.shape)
    for i in range(3):
        for j in range(i, 3):
            C = ((S[i] * S[j]) @ flat).reshape(shape)
            variance += (1 if i == j else 2) * np.einsum("bij,bji->bi", T[i] @ C, T[j].transpose(0, 2, 1))
    for gap in gaps:
        for wave in gap.waves:
            moved = sum(A @ (R @ wave)[..., None] for A, R in zip(T, S, strict=True))
            variance += np.asarray(moved)[..., 0] ** 2
    return np.sqrt(np.maximum(variance, 0.0))


def _responses(model: Model, motion: Motion, smooth: Callable[[Array, Array], Motion], t: Array) -> list[Array]:
    """S⁰, S¹, S², (N, m) each: what an impulse at each sample leaves behind."""
    if model.nq != model.nv:
        raise InputError("error bars of markers are for models without quaternions; expected none")
    if len(t) > MOST:
        raise InputError(f"the recording has {len(t)} frames; error bars are for up to {MOST}: take a part of it")
    found = [np.empty((len(motion.t), len(t))) for _ in range(3)]
    for first in range(0, len(t), model.nq):
        count = min(model.nq, len(t) - first)
        probe = np.zeros((len(t), model.nq))
        probe[range(first, first + count), range(count)] = PROBE
        answer = smooth(t, probe)
        if len(answer.t) != len(motion.t):
            raise InputError("smoothing answers at other times than those of the motion; expected the same")
        for S, x in zip(found, (answer.q, answer.v, answer.a), strict=True):
            S[:, first : first + count] = x[:, :count] / PROBE
    return found


def _by_origin(angular: Array, moved: Array, force: Array) -> Array:
    """∂τ_i = ω_i · (∂o × F): the torque of a plate about an origin that moves, (N, nv, columns)."""
    turned = np.cross(moved.transpose(0, 2, 1), force[:, None])  # (N, columns, 3)
    return np.asarray(angular.transpose(0, 2, 1) @ turned.transpose(0, 2, 1))


def _moved_origins(design: Design, motion: Motion, plates: Sequence[ForcePlate]) -> Array:
    total = np.zeros((*motion.v.shape, design.p))
    for plate in plates:
        link = design.model.link_names[design.model.locate(plate.link)[0]]
        moved = point_motion_design_derivatives(design, motion.q, link=link).dposition_dp
        total += _by_origin(jacobian(design.model, motion.q, link=link).angular, moved, plate.force)
    return total


def body_masses(model: Model) -> Design | None:
    """The relative masses of bodies, each with its moments; None without any."""
    parameters = {}
    for i, link in enumerate(model.link_names):
        if model.mass[i] > 0:
            moments = {
                f"{a}{b}": model.inertia[i, j, k] for j, a in enumerate("xyz") for k, b in enumerate("xyz") if j <= k
            }
            parts = {f"{link}.inertia.{name}": float(value) for name, value in moments.items() if value}
            parameters[f"mass of {link}"] = {f"{link}.mass": float(model.mass[i]), **parts}
    return Design(model, parameters) if parameters else None


def bone_lengths(model: Model) -> Design | None:
    """Relative lengths of links with mass or with joints beyond them; None without any.

    A link grows in all directions from its joint: its tip, its centre of mass and the joints on it, wherever its frame
    is.  Lengths in functions of coordinates, such as spline knees, are not varied.
    """
    parameters = {}
    for i, (joint, link) in enumerate(zip(model.joint_names, model.link_names, strict=True)):
        grown = {f"{joint}.tip": model.tip[i, :3, 3], f"{link}.com": model.com[i] if model.mass[i] > 0 else np.zeros(3)}
        for j, parent in enumerate(model.parents):
            if parent == i:
                grown[f"{model.joint_names[j]}.placement"] = model.placement[j, :3, 3]
        parts = {f"{name}.{x}": float(r) for name, at in grown.items() for x, r in zip("xyz", at, strict=True) if r}
        if parts:
            parameters[f"length of {link}"] = parts
    return Design(model, parameters) if parameters else None
