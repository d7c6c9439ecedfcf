"""Masses of bodies from the forces of plates: least squares of the residuals at the root, with known errors.

Torques are linear in masses.  With the mass of body b scaled by exp(s_b), the residuals at the root are

    r(s) = r₀ + Σ_b (∂r/∂m_b) (exp(s_b) − 1),

and s minimises ½ Σ (r/σ)²/κ + ½ Σ s²/e², over the instants that the plates cover.  Masses stay positive for any s.
Residuals are smooth in time, so that neighbouring instants are not independent: κ is the number of instants per
independent observation, 1 + 2 Σ_k ρ_k with the autocorrelation ρ of what remains, up to its first zero.  σ, of forces
and of moments, is what the caller expects of other errors, or the root mean square of what remains if that is larger:
what masses do not explain lowers the weight of the recording against what was known.

An instant is covered unless, within 50 ms of it,

- more than a quarter of the body's weight is missing or left over, or
- a foot stands, as high as feet on plates stand, without a force.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.kinematics import point_motion
from kinegrad.model import Model
from kinegrad.recordings.analysis import Analysis
from kinegrad.recordings.force_plates import FOOT, STANDING
from kinegrad.results import Result

__all__ = ["FittedMasses", "fit_masses"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
MISSING = 0.25  # part of the body's weight that plates and motion may differ by
FEW = 0.05  # part of the instants that plates have to cover at least
MARGIN = 0.05  # s: around instants that are not covered
STILL, LEVEL = 0.25, 0.02  # m/s and m: speed of a foot that stands, and how far from its height on a plate
HALF = 0.5  # part of a prior error that the recording has to leave at most to have told anything
FAR = 3.0  # prior errors: a larger change of a mass contradicts what was known
ROUNDS, STEPS = 20, 50


@dataclass(frozen=True, eq=False)
class FittedMasses(Result):
    """Masses that fit the forces of a recording.

    Attributes
    ----------
    model : Model
        The model with these masses, moments of inertia scaled alike.
    change, error : dict of str to float
        Relative change of the mass of each body, above −1, and its standard deviation.
    told : dict of str to float
        Part of what was not known beforehand that the recording told, from 0 (nothing) to 1: 1 − (error / prior)².
    total : tuple of float
        Total mass and its standard deviation, kg.
    covered : ndarray of bool, shape (N,)
        Instants that were used.
    force, moment : tuple of float
        Root mean square of the residual forces, N, and moments, N·m, of these instants before and after.
    success : bool
        Whether the search converged, the recording told something, and no mass left its prior by three of its errors.
    message : str
    """

    model: Model
    change: dict[str, float]
    error: dict[str, float]
    told: dict[str, float]
    total: tuple[float, float]
    covered: Flags
    force: tuple[float, float]
    moment: tuple[float, float]
    success: bool
    message: str


def fit_masses(
    analysis: Analysis,
    *,
    error: float = 0.05,
    residual: tuple[float, float] = (10.0, 10.0),
    start: float | None = None,
    end: float | None = None,
) -> FittedMasses:
    """Find masses that explain the forces of plates, starting from known ones.

    Parameters
    ----------
    analysis : Analysis
        Analysis of a free model on force plates.
    error : float
        Relative standard deviation of each mass before the recording.
    residual : (float, float)
        Standard deviations of residuals that are not due to masses, N and N·m.  Larger ones that remain count instead.
    start, end : float, optional
        Times between which the recording is used, s.  Instants at which a foot stands beside the plates are left out
        anyway.

    Returns
    -------
    FittedMasses

    Raises
    ------
    InputError
        If the plates cover hardly any instant.
    """
    if not isinstance(analysis, Analysis):
        raise InputError(f"`analysis` is a {type(analysis).__name__}; expected what analyze_recording returns")
    if not analysis.residual_names or not analysis.plates:
        raise InputError("the analysis has no residuals, or no force plates; expected a free model on plates")
    prior = engine.positive("error", error)
    if not isinstance(residual, tuple | list) or len(residual) != 2:
        raise InputError(f"`residual` is {shown(residual)}; expected two standard deviations, N and N·m")
    expected = np.array([engine.positive(f"residual[{k}]", x) for k, x in enumerate(residual)])
    asked = _between(analysis.motion.t, start, end)
    covered = _covered(analysis) & asked
    if covered.sum() < max(FEW * asked.sum(), 1):
        raise InputError(_nothing_covered(analysis))

    model = analysis.motion.model
    rows = [model.speed_index(name) for name in analysis.residual_names]
    turns = np.array([model.layout.speed_kinds[row] != "prismatic" for row in rows])
    before = analysis.tau[covered][:, rows]
    slope = analysis.errors.dtau_dmass[covered][:, rows]

    def remains(s: Array) -> Array:
        return np.asarray(before + slope @ np.expm1(s))

    s, scale, frames, settled = np.zeros(slope.shape[-1]), expected, 1.0, False
    for _ in range(ROUNDS):
        s, S, converged = _minimum(before, slope, scale[turns.astype(int)] * np.sqrt(frames), prior, s)
        after = remains(s)
        found = np.maximum(expected, [_rms(after[:, ~turns]), _rms(after[:, turns])])
        together = _correlation(after / found[turns.astype(int)])
        settled = converged and bool(np.allclose([*found, together], [*scale, frames], rtol=0.01, atol=0))
        scale, frames = found, together
        if settled:
            break

    spread = np.linalg.inv(S)
    bodies = [name.removeprefix("mass of ") for name in analysis.errors.body_names]
    factor, sd = np.exp(s), np.sqrt(np.diag(spread))
    masses = factor * np.array([model.mass[model.link_index(name)] for name in bodies])
    total = float(np.sqrt(masses @ spread @ masses))
    told = 1 - (sd / prior) ** 2
    least = float(np.linalg.eigvalsh(spread)[0]) / prior**2
    contradicted = [name for name, x in zip(bodies, s, strict=True) if abs(x) > FAR * prior]
    left = scale if (scale > FAR * expected).any() else None
    share = float(covered.mean())
    message = _message(share, bodies, told, settled, least, contradicted, left, float(masses.sum()), total)
    new = model.replace(
        mass=dict(zip(bodies, masses.tolist(), strict=True)),
        inertia={name: x * model.inertia[model.link_index(name)] for name, x in zip(bodies, factor, strict=True)},
    )
    success = settled and least < HALF**2 and not contradicted
    return FittedMasses(
        model=new,
        change=dict(zip(bodies, (factor - 1).tolist(), strict=True)),
        error=dict(zip(bodies, (factor * sd).tolist(), strict=True)),
        told=dict(zip(bodies, told.tolist(), strict=True)),
        total=(float(masses.sum()), total),
        covered=covered,
        force=(_rms(before[:, ~turns]), _rms(after[:, ~turns])),
        moment=(_rms(before[:, turns]), _rms(after[:, turns])),
        success=success,
        message=message,
    )


def _minimum(before: Array, slope: Array, scale: Array, prior: float, s: Array) -> tuple[Array, Array, bool]:
    """Logarithms of factors at the minimum, the Gauss–Newton Hessian there, and whether the search converged."""

    def parts(s: Array) -> tuple[float, Array]:
        r = (before + slope @ np.expm1(s)) / scale
        return 0.5 * float((r * r).sum() + (s @ s) / prior**2), r

    cost, r = parts(s)
    for _ in range(STEPS):
        L = (slope / scale[:, None] * np.exp(s)).reshape(-1, len(s))
        S = L.T @ L + np.eye(len(s)) / prior**2
        step = np.linalg.solve(S, L.T @ r.ravel() + s / prior**2)
        part = 1.0
        while part > 1e-6:
            new, there = parts(s - part * step)
            if new <= cost:
                break
            part /= 2
        else:
            return s, S, bool(np.abs(step).max() < 1e-6 * prior)
        gained, s, cost, r = cost - new, s - part * step, new, there
        if gained <= 1e-12 * cost + 1e-18:
            return s, S, True
    return s, S, False


def _covered(analysis: Analysis) -> Flags:
    """Instants at which the plates carry the body, and no foot stands beside them, (N,)."""
    model, t = analysis.motion.model, analysis.motion.t
    forces = [
        name for name in analysis.residual_names if model.layout.speed_kinds[model.speed_index(name)] == "prismatic"
    ]
    missing = np.linalg.norm(analysis.tau[:, [model.speed_index(name) for name in forces]], axis=1)
    off = missing > MISSING * model.total_mass * np.linalg.norm(model.gravity)
    off |= _beside(analysis)
    return ~_near(t, off)


def _near(t: Array, flags: Flags) -> Flags:
    """Instants at most a margin away from flagged ones, (N,)."""
    flagged = t[flags]
    if not len(flagged):
        return np.zeros(len(t), dtype=bool)
    beside = np.clip(np.searchsorted(flagged, t)[:, None] + [-1, 0], 0, len(flagged) - 1)
    return np.asarray(np.abs(flagged[beside] - t[:, None]).min(axis=1) <= MARGIN + 1e-9, dtype=bool)


def _beside(analysis: Analysis) -> Flags:
    """Instants at which a foot stands, as feet on plates do, without a force, (N,)."""
    model, motion = analysis.motion.model, analysis.motion
    strength = float(np.linalg.norm(model.gravity))
    found = np.zeros(len(motion.t), dtype=bool)
    if strength == 0:
        return found
    feet = [name for name in model.link_names if FOOT.search(name)]
    feet = list(dict.fromkeys([*feet, *(model.link_names[model.locate(plate.link)[0]] for plate in analysis.plates)]))
    moving = point_motion(model, motion.q, motion.v, link=feet)
    assert moving.velocity is not None
    height = -moving.position @ model.gravity / strength
    still = np.linalg.norm(moving.velocity, axis=-1) < STILL
    loaded = np.stack([_loaded(analysis, foot) for foot in feet], axis=-1)
    standing = still & loaded
    if not standing.any():
        return found
    own = [float(np.median(height[standing[:, k], k])) for k in range(len(feet)) if standing[:, k].any()]
    for k in range(len(feet)):
        level = own if not standing[:, k].any() else [float(np.median(height[standing[:, k], k]))]
        low = np.abs(height[:, k, None] - level).min(axis=1) < LEVEL
        found |= still[:, k] & low & ~_near(motion.t, loaded[:, k])
    return found


def _loaded(analysis: Analysis, foot: str) -> Flags:
    """Instants at which a link stands on a plate, (N,)."""
    model = analysis.motion.model
    on = [plate.force for plate in analysis.plates if model.link_names[model.locate(plate.link)[0]] == foot]
    force = np.sum([np.zeros((len(analysis.motion.t), 3)), *on], axis=0)
    return np.asarray(np.linalg.norm(force, axis=1) > STANDING, dtype=bool)


def _between(t: Array, start: float | None, end: float | None) -> Flags:
    limits = []
    for name, value, none in (("start", start, -np.inf), ("end", end, np.inf)):
        x = engine.real(name, none if value is None else value)
        if x.shape != () or np.isnan(x):
            raise InputError(f"`{name}` is {shown(value)}; expected a time in s, or None")
        limits.append(float(x))
    if not limits[0] < limits[1]:
        raise InputError(f"`start` is {limits[0]:g} s and `end` {limits[1]:g} s; expected start before end")
    return np.asarray((t >= limits[0] - 1e-9) & (t <= limits[1] + 1e-9))


def _correlation(r: Array) -> float:
    """Number of instants per independent observation of residuals, (N, components)."""
    energy, total = float((r * r).sum()), 1.0
    if energy == 0:
        return 1.0
    for k in range(1, len(r)):
        rho = float((r[k:] * r[:-k]).sum()) / energy
        if rho <= 0:
            break
        total += 2 * rho
    return total


def _rms(x: Array) -> float:
    return float(np.sqrt((x**2).mean())) if x.size else 0.0


def _nothing_covered(analysis: Analysis) -> str:
    """How much of the needed force the plates carry, for a refusal."""
    model = analysis.motion.model
    weight = model.total_mass * float(np.linalg.norm(model.gravity))
    force = np.sum([plate.force for plate in analysis.plates], axis=0)
    carried = float(np.linalg.norm(force, axis=1).max(initial=0.0))
    return (
        f"the plates cover hardly any instant: they carry up to {carried:.0f} N, and the model weighs {weight:.0f} N; "
        "expected instants at which they carry it within a quarter, with every standing foot on a plate (scale the "
        "model to the person's mass first)"
    )


def _message(
    share: float, bodies: Sequence[str], told: Array, settled: bool, least: float, contradicted: list[str],
    left: Array | None, mass: float, error: float,
) -> str:  # fmt: skip
    said = f"total mass {mass:.2f} ± {error:.2f} kg, from {100 * share:.0f} % of the instants"
    if not settled:
        return f"{said}; the search did not converge"
    if contradicted:
        names = ", ".join(map(shown, contradicted[:4]))
        return f"{said}; the forces contradict the known mass of {names}: markers, plates or the motion are wrong"
    if least >= HALF**2 and left is not None:
        forces = f"residuals of {left[0]:.0f} N and {left[1]:.1f} N·m remain, which the known masses do not explain"
        return f"{said}; {forces}: markers, plates or the motion are wrong, or the person is another"
    if least >= HALF**2:
        return f"{said}; the recording tells no mass, nor any sum of masses, better than it was known"
    silent = [name for name, x in zip(bodies, told, strict=True) if x < 1 - HALF**2]
    if silent:
        names = ", ".join(map(shown, silent[:4])) + (f" and {len(silent) - 4} others" if len(silent) > 4 else "")
        return f"{said}; the recording tells little of the masses of {names} one by one"
    return f"{said}; the recording tells the mass of every body"
