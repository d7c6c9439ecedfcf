"""Scaling and motion in one problem: bone lengths, marker offsets and coordinates from the markers of a recording.

With design parameters p, the same for the whole recording, and coordinates q_k of each frame, the cost is

    E(p, q) = Σ_k ½ Σ w |x(q_k, p) − m_k|² + ½ Σ_j (p_j − r_j)² / s_j²,

the last for parameters that are known beforehand to some error s.  Frames are coupled by p alone.  So the coordinates
are eliminated (variable projection): for given p every frame is at its minimum q_k(p), and p moves by the step of
Gauss and Newton of what is left,

    S δ = −∂E/∂p,    S = Σ_k Pᵀ W (1 − J (JᵀWJ)⁻¹ JᵀW) P + diag(1/s²),    P = ∂x/∂p,

halved as long as it does not lower the cost; frames begin again from q − (JᵀWJ)⁻¹ JᵀW P δ.  With L = P + J ∂q/∂p,

    Cov p = S⁻¹ (Σ_k LᵀW²L + diag(1/s²)) S⁻¹ σ²,

σ the standard deviation of markers, in whose units s is.  It is estimated from the distances that remain: their squares
have the expectation σ² tr (1 − K)ᵀ(1 − K), K = J H⁻¹ JᵀW + L S⁻¹ LᵀW (see :class:`MarkerProblem`).

Masses move no marker: they show in forces, and :func:`fit_masses` finds them there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.design import Design, point_motion_design_derivatives
from kinegrad.errors import InputError, SingularError, shown
from kinegrad.io.trc_file import Markers
from kinegrad.kinematics import jacobian, point_motion
from kinegrad.recordings.inverse_kinematics import InverseKinematics, Setting, check_limits, inverse_kinematics
from kinegrad.recordings.marker_problem import TRUSTED, MarkerProblem
from kinegrad.results import Result

__all__ = ["Scaled", "fit_design"]

Array = NDArray[np.float64]
HALVED = 12  # times that a step is halved at most
ROUNDS = 8  # fits, each with the marker error that the one before shows
USUAL, SMALL = 5e-3, 1e-5  # marker error to begin with, and the smallest that is believed, m


@dataclass(frozen=True, eq=False)
class Scaled(Result):
    """A design that fits a recording, and its motion.

    Attributes
    ----------
    design : Design
        At the values that were found; ``design.model`` is the scaled model.
    covariance : ndarray, shape (p, p)
        Covariance of the values, from the errors of markers and of `known` values.
    marker_error : float
        Standard deviation of markers in each direction, m, as given or estimated from the distances that remain.
    kinematics : InverseKinematics
        The motion of the scaled model.
    costs : ndarray
        Of the whole recording, one after another, m².
    success : bool
    message : str
    """

    design: Design
    covariance: Array
    marker_error: float
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
    marker_error: float | None = None,
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
        Values that are known beforehand and their standard deviations, in the units of the parameters.
    marker_error : float, optional
        Standard deviation of markers in each direction, m, against which `known` values are weighed.  By default it is
        estimated from the distances that remain, beginning with 5 mm.
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
    known_values, certainty = _known(design, known)
    given = None if marker_error is None else engine.positive("marker_error", marker_error)
    most = engine.whole("max_iterations", max_iterations, 1)
    small = engine.positive("tolerance", tolerance)
    options = {"frames": frames, "weights": weights, "limits": limits, "tolerance": 1e-10}
    q = inverse_kinematics(design.model, markers, start=start, **options).q  # type: ignore[arg-type]
    error = USUAL if given is None else given
    for _ in range(ROUNDS):
        prior = _Prior(known_values, certainty * error**2)
        fit = _minimum(design, q, setting, (lower, upper), prior, small, most)
        design, q = fit.design, fit.q
        spread, freedom = _spread(fit, setting, prior)
        error, before = (_estimated(fit, setting, freedom) if given is None else given), error
        if given is not None or not certainty.any() or not abs(max(error, SMALL) - before) > 0.02 * before:
            break
        error = max(error, SMALL)
    kinematics = inverse_kinematics(design.model, markers, start=q[0], **options)  # type: ignore[arg-type]
    success = fit.done and kinematics.success
    return Scaled(design, spread * error**2, error, kinematics, np.array(fit.costs), success, fit.message)


class _Prior(NamedTuple):
    """Known values, and how strongly they pull: the variance of markers over theirs; zero for those not known."""

    values: Array
    pull: Array


class _Fit(NamedTuple):
    """Design and frames at their minimum, with the costs on the way."""

    design: Design
    q: Array
    problem: MarkerProblem
    costs: list[float]
    done: bool
    message: str


def _minimum(
    design: Design, q: Array, setting: Setting, limits: tuple[Array, Array], prior: _Prior, tolerance: float, most: int
) -> _Fit:
    """Minimise the cost of the whole recording, from a design and its frames."""
    rows = np.arange(len(q))

    def total(at: Design, guess: Array) -> tuple[float, Array, MarkerProblem]:
        problem = setting.problem(at.model, *limits)
        found = problem.solve(rows, guess, 1e-10, 100, TRUSTED)
        off = at.values - prior.values
        return float(found.cost.sum() + 0.5 * (prior.pull * off * off).sum()), found.q, problem

    best, q, problem = total(design, q)
    costs = [best]
    for _ in range(most):
        rates = _Rates.at(design, setting, problem, q)
        g, S = rates.g + prior.pull * (design.values - prior.values), rates.S + np.diag(prior.pull)
        _check_told(design, S)
        step = np.asarray(-np.linalg.solve(S, g), dtype=float)
        part, moved = 1.0, False
        for _ in range(HALVED):
            trial = _trial(design, part * step)
            if trial is not None:
                guess = problem.moved(q, part * (rates.follow @ step))
                cost, found, other = total(trial, guess)
                if cost <= best:
                    gained, moved = best - cost, True
                    design, q, problem, best = trial, found, other, cost
                    costs.append(cost)
                    break
            part /= 2
        if not moved or gained <= tolerance * best + 1e-18:
            return _Fit(design, q, problem, costs, True, "the design and every frame are at their minimum")
    return _Fit(design, q, problem, costs, False, f"no minimum within {most} steps")


class _Rates(NamedTuple):
    """Slopes of a fit: r distances, J = ∂x/∂q and L = dx/dp with frames that follow, (N, 3k) rows; W (N, 3k)."""

    r: Array
    J: Array
    L: Array
    W: Array
    H: Array  # pseudo-inverse of JᵀWJ, (N, nv, nv)
    follow: Array  # ∂q/∂p, (N, nv, p)

    @classmethod
    def at(cls, design: Design, setting: Setting, problem: MarkerProblem, q: Array) -> _Rates:
        x = point_motion(design.model, q, link=setting.frames).position
        r = np.where(problem.seen[..., None], x - setting.measured, 0.0).reshape(len(q), -1)
        seen = problem.seen[..., None, None]
        P = point_motion_design_derivatives(design, q, link=setting.frames).dposition_dp * seen
        J = (jacobian(design.model, q, link=setting.frames).linear * seen).reshape(len(q), -1, design.model.nv)
        P = P.reshape(len(q), -1, design.p)
        low, high = problem.room(q)
        J = J * ((low < 0) & (high > 0))[:, None, :]  # a coordinate at a limit stays there
        W = np.repeat(problem.weights * problem.seen, 3, axis=1)
        JW = (J * W[..., None]).transpose(0, 2, 1)
        H = np.asarray(np.linalg.pinv(JW @ J, rcond=1e-10, hermitian=True))
        follow = -H @ (JW @ P)
        return cls(r, J, P + J @ follow, W, H, follow)

    @property
    def g(self) -> Array:
        """∂E/∂p, (p,)."""
        return np.asarray(np.einsum("bkp,bk->p", self.L, self.W * self.r))

    @property
    def S(self) -> Array:
        """Σ LᵀWL, (p, p)."""
        return self.squares(1)

    def squares(self, power: int) -> Array:
        """Σ LᵀW^power L, (p, p)."""
        return np.asarray(np.einsum("bkp,bkq->pq", self.L * self.W[..., None] ** power, self.L))


def _spread(fit: _Fit, setting: Setting, prior: _Prior) -> tuple[Array, float]:
    """Covariance of parameters for errors of markers of 1 m, and the expected Σ |x − m|² of such errors."""
    rates = _Rates.at(fit.design, setting, fit.problem, fit.q)
    inverse = np.linalg.inv(rates.S + np.diag(prior.pull))
    twice = rates.squares(2)
    across = (rates.L * (rates.W**2)[..., None]).transpose(0, 2, 1) @ rates.J @ rates.H
    both = np.einsum("bpk,bkq->pq", across, rates.J.transpose(0, 2, 1) @ rates.L)
    freedom = fit.problem.freedom(fit.q) - 2 * np.trace(inverse @ rates.S) + 2 * np.trace(inverse @ both)
    freedom += np.trace(
        inverse @ (rates.L.reshape(-1, fit.design.p).T @ rates.L.reshape(-1, fit.design.p)) @ inverse @ twice
    )
    return np.asarray(inverse @ (twice + np.diag(prior.pull)) @ inverse), float(freedom)


def _estimated(fit: _Fit, setting: Setting, freedom: float) -> float:
    """Standard deviation of markers, m, from the distances that remain; NaN if everything follows every marker."""
    x = point_motion(fit.design.model, fit.q, link=setting.frames).position
    squared = float(np.nansum((x - setting.measured) ** 2))
    return float(np.sqrt(squared / freedom)) if freedom >= 0.5 else float("nan")


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
