"""Scaling and motion in one problem: bone lengths, marker offsets and coordinates from the markers of a recording.

With design parameters p, the same for the whole recording, and coordinates q_k of each frame, the cost is

    E(p, q) = Σ_k ½ Σ w |x(q_k, p) − m_k|² + ½ Σ_j (p_j − r_j)² / s_j²,

the last for parameters that are known beforehand to some error s.  Frames are coupled by p alone.  So the coordinates
are eliminated (variable projection): for given p every frame is at its minimum q_k(p), and p moves by the step of
Gauss and Newton of what is left,

    S δ = −∂E/∂p,    S = Σ_k Pᵀ W (1 − J (JᵀWJ)⁻¹ JᵀW) P + diag(1/s²),    P = ∂x/∂p,

halved as long as it does not lower the cost; frames begin again from q − (JᵀWJ)⁻¹ JᵀW P δ.  S⁻¹ times the variance of
markers is the covariance of p.  Masses move no marker: they show in forces, and :func:`fit_masses` finds them there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.design import Design, point_motion_design_derivatives
from kinegrad.errors import InputError, SingularError, shown
from kinegrad.io.trc_file import Markers
from kinegrad.kinematics import jacobian, point_motion
from kinegrad.recordings.analysis import Analysis
from kinegrad.recordings.inverse_kinematics import InverseKinematics, Setting, check_limits, inverse_kinematics
from kinegrad.recordings.marker_problem import TRUSTED, MarkerProblem
from kinegrad.results import Result

__all__ = ["FittedMasses", "Scaled", "fit_design", "fit_masses"]

Array = NDArray[np.float64]
HALVED = 12  # times that a step is halved at most


@dataclass(frozen=True, eq=False)
class Scaled(Result):
    """A design that fits a recording, and its motion.

    Attributes
    ----------
    design : Design
        At the values that were found; ``design.model`` is the scaled model.
    covariance : ndarray, shape (p, p)
        Of the values, by what distances show of the errors of markers.
    kinematics : InverseKinematics
        The motion of the scaled model.
    costs : ndarray
        Of the whole recording, one after another, m².
    success : bool
    message : str
    """

    design: Design
    covariance: Array
    kinematics: InverseKinematics
    costs: Array
    success: bool
    message: str

    @property
    def values(self) -> dict[str, float]:
        """Parameters by name."""
        return dict(zip(self.design.names, self.design.values.tolist(), strict=True))

    @property
    def errors(self) -> dict[str, float]:
        """Their standard deviations."""
        return dict(zip(self.design.names, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))


def fit_design(
    design: Design,
    markers: Markers,
    *,
    known: Mapping[str, tuple[float, float]] | None = None,
    frames: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
    start: ArrayLike | Mapping[str, float] | None = None,
    limits: bool | Mapping[str, Any] = True,
    tolerance: float = 1e-9,
    max_iterations: int = 50,
) -> Scaled:
    """Design parameters and coordinates that bring markers nearest to measured ones, over the whole recording.

    Parameters
    ----------
    design : Design
        Bone lengths (``"knee.placement.z"``), marker offsets (``"heel.placement.x"``), or anything that moves markers;
        the search begins at its values.
    markers, frames, weights, start, limits
        As of :func:`inverse_kinematics`.
    known : dict of str to (value, error), optional
        Parameters that are known to a standard deviation, in their units (errors of markers count as 1 m/√weight: give
        them in units of the marker error, or leave it out).
    tolerance : float
        The search ends when a step lowers the cost by no more than this part of it.
    max_iterations : int

    Returns
    -------
    Scaled

    Raises
    ------
    SingularError
        If markers do not tell some parameters, masses for example, which the message names.

    Examples
    --------
    The length of a forearm, from a marker on the hand:

    >>> from kinegrad import Frame, point_motion, samples
    >>> arm = samples.two_link().replace(frames={"hand": Frame("forearm"), "elbow_marker": Frame("upper_arm")})
    >>> design, t = Design(arm, ["elbow.a"]), np.linspace(0, 1, 40)
    >>> q = np.stack([np.sin(3 * t), 0.5 + t], axis=-1)
    >>> real = design.at([0.43]).model
    >>> seen = Markers(t, ("hand", "elbow_marker"), point_motion(real, q, link=["hand", "elbow_marker"]).position)
    >>> round(fit_design(design, seen).values["elbow.a"], 9)
    0.43
    """
    if not isinstance(design, Design):
        raise InputError(f"`design` is a {type(design).__name__}; expected a Design")
    setting = Setting.of(design.model, markers, frames, weights, None)
    if not len(setting.t):
        raise InputError("`markers` have no frames; expected at least one")
    lower, upper = check_limits(design.model, limits)
    reference, pull = _known(design, known)
    most = engine.whole("max_iterations", max_iterations, 1)
    small = engine.positive("tolerance", tolerance)
    options = {"frames": frames, "weights": weights, "limits": limits, "tolerance": 1e-10}
    q = inverse_kinematics(design.model, markers, start=start, **options).q  # type: ignore[arg-type]
    rows = np.arange(len(q))

    def total(at: Design, guess: Array) -> tuple[float, Array, MarkerProblem]:
        problem = setting.problem(at.model, lower, upper)
        found = problem.solve(rows, guess, 1e-10, 100, TRUSTED)
        off = at.values - reference
        return float(found.cost.sum() + 0.5 * (pull * off * off).sum()), found.q, problem

    best, q, problem = total(design, q)
    costs, message, done = [best], f"no minimum within {most} steps", False
    for _ in range(most):
        g, S, follow = _normal(design, setting, problem, q)
        g, S = g + pull * (design.values - reference), S + np.diag(pull)
        _check_told(design, S)
        step = np.asarray(-np.linalg.solve(S, g), dtype=float)
        part, moved = 1.0, False
        for _ in range(HALVED):
            trial = _trial(design, part * step)
            if trial is not None:
                guess = problem.moved(q, part * (follow @ step))
                cost, found, other = total(trial, guess)
                if cost <= best:
                    gained, moved = best - cost, True
                    design, q, problem, best = trial, found, other, cost
                    costs.append(cost)
                    break
            part /= 2
        if not moved or gained <= small * best + 1e-18:
            message, done = "the design and every frame are at their minimum", True
            break
    g, S, _ = _normal(design, setting, problem, q)
    kinematics = inverse_kinematics(design.model, markers, start=q[0], **options)  # type: ignore[arg-type]
    covariance = np.asarray(np.linalg.inv(S + np.diag(pull)) * kinematics.marker_error**2, dtype=float)
    return Scaled(design, covariance, kinematics, np.array(costs), done and kinematics.success, message)


def _normal(design: Design, setting: Setting, problem: MarkerProblem, q: Array) -> tuple[Array, Array, Array]:
    """∂E/∂p, S, and how minima follow p, (N, nv, p)."""
    x = point_motion(design.model, q, link=setting.frames).position
    d = np.where(problem.seen[..., None], x - setting.measured, 0.0)
    weight = np.sqrt(problem.weights) * problem.seen
    P = point_motion_design_derivatives(design, q, link=setting.frames).dposition_dp * weight[..., None, None]
    J = jacobian(design.model, q, link=setting.frames).linear * weight[..., None, None]
    P, J = P.reshape(len(q), -1, design.p), J.reshape(len(q), -1, design.model.nv)
    low, high = problem.room(q)
    J = J * ((low < 0) & (high > 0))[:, None, :]  # what is at a limit stays
    r = (d * weight[..., None]).reshape(len(q), -1)
    follow = -np.linalg.pinv(J.transpose(0, 2, 1) @ J, rcond=1e-10, hermitian=True) @ (J.transpose(0, 2, 1) @ P)
    left = P + J @ follow
    return np.einsum("bkp,bk->p", left, r), np.einsum("bkp,bkq->pq", left, left), follow


def _trial(design: Design, step: Array) -> Design | None:
    """The design a step further; None where no such model exists: a negative length, an impossible body."""
    try:
        return design.at(design.values + step)
    except ValueError:
        return None


def _check_told(design: Design, S: Array) -> None:
    size = np.sqrt(np.maximum(np.diag(S), 0.0))
    silent = [name for name, x in zip(design.names, size, strict=True) if x <= 1e-12]
    if silent:
        names = ", ".join(map(shown, silent[:4]))
        raise SingularError(f"no marker depends on {names}; expected lengths and offsets (masses: see fit_masses)")
    values, vectors = np.linalg.eigh(S / np.outer(size, size))
    if values[0] < 1e-10:
        together = [name for name, x in zip(design.names, vectors[:, 0], strict=True) if abs(x) > 0.1]
        names = ", ".join(map(shown, together[:4]))
        raise SingularError(f"markers do not tell {names} apart; expected fewer parameters, or `known` ones")


def _known(design: Design, known: Any) -> tuple[Array, Array]:
    reference, pull = np.array(design.values), np.zeros(design.p)
    if known is not None and not isinstance(known, Mapping):
        raise InputError(f"`known` is {shown(known)}; expected a dictionary")
    for name, pair in (known or {}).items():
        if name not in design.names:
            raise InputError(f"`known` names {shown(name)}; expected one of {', '.join(map(shown, design.names))}")
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"`known[{shown(name)}]` is {shown(pair)}; expected (value, error)")
        k = design.names.index(name)
        value, error = (engine.real(f"known[{shown(name)}]", x) for x in pair)
        if value.shape != () or error.shape != () or not (np.isfinite(value) and error > 0):
            raise InputError(
                f"`known[{shown(name)}]` is {shown(pair)}; expected a finite value and an error above zero"
            )
        reference[k], pull[k] = float(value), 1 / float(error) ** 2
    return reference, pull


@dataclass(frozen=True, eq=False)
class FittedMasses(Result):
    """Relative masses of bodies that fit the forces of a recording.

    Attributes
    ----------
    change : dict of str to float
        By how much of itself the mass of each body changes, with its moments.
    error : dict of str to float
        Standard deviations of these.
    before, after : float
        Root mean square of the residual forces, N, without and with the change.
    """

    change: dict[str, float]
    error: dict[str, float]
    before: float
    after: float


def fit_masses(analysis: Analysis, *, error: float = 0.05, residual: float = 10.0) -> FittedMasses:
    """Masses that explain the forces of plates: residuals at the root, least squares with what is known beforehand.

    Parameters
    ----------
    analysis : Analysis
        Of a free model on force plates.
    error : float
        Relative standard deviation of each mass before the recording.
    residual : float
        Standard deviation of residuals that are not due to masses, N or N·m.

    Returns
    -------
    FittedMasses
        τ_root(m) is linear in masses, so this is exact: min Σ |τ_root|²/residual² + Σ change²/error².
    """
    if not isinstance(analysis, Analysis):
        raise InputError(f"`analysis` is a {type(analysis).__name__}; expected what analyze_recording returns")
    if not analysis.residual_names or not analysis.plates:
        raise InputError("the analysis has no residuals, or no force plates; expected a free model on plates")
    model = analysis.motion.model
    rows = [model.speed_index(name) for name in analysis.residual_names]
    before = analysis.tau[:, rows].ravel()
    slope = analysis.errors.dtau_dmass[:, rows].reshape(len(before), -1)
    s, r = engine.positive("error", error), engine.positive("residual", residual)
    S = slope.T @ slope / r**2 + np.eye(slope.shape[1]) / s**2
    change = -np.linalg.solve(S, slope.T @ before / r**2)
    after = before + slope @ change
    names = [name.removeprefix("mass of ") for name in analysis.errors.body_names]
    spread = np.sqrt(np.diag(np.linalg.inv(S)))
    root = (float(np.sqrt((x**2).mean())) for x in (before, after))
    return FittedMasses(
        dict(zip(names, change.tolist(), strict=True)), dict(zip(names, spread.tolist(), strict=True)), *root
    )
