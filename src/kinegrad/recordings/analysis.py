"""A recording analysed: torques, residuals at the root, powers, and error bars.

What is at the root, the speeds between the world and the first body with mass, is driven by nothing: the torques that
inverse dynamics finds there are *residuals*, what motion, masses and forces contradict each other by.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.dynamics import inverse_dynamics
from kinegrad.errors import InputError, RecordingWarning, shown
from kinegrad.model import Model
from kinegrad.model.units import joint_units
from kinegrad.motion import Motion
from kinegrad.recordings.force_plates import ForcePlate, assign_links, plate_loads
from kinegrad.recordings.inverse_kinematics import InverseKinematics
from kinegrad.recordings.marker_problem import coordinate_limits
from kinegrad.recordings.motion_from_positions import motion_from_positions
from kinegrad.recordings.opensim_filter import motion_as_opensim
from kinegrad.recordings.torque_errors import TorqueErrors, torque_errors
from kinegrad.recordings.undetermined import Gap, check_prior, error_gaps
from kinegrad.recordings.upright import doubts_about
from kinegrad.results import Result

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["Analysis", "analyze_recording", "root_speeds", "smoother"]

Array = NDArray[np.float64]
SHOWN = 4  # gaps of a coordinate in a message


@dataclass(frozen=True, eq=False)
class Analysis(Result):
    """Torques of a recorded motion, and what they are worth.

    Attributes
    ----------
    motion : Motion
        Smoothed: t, q, v, a, with the torques as its tau; its `made` says how it was smoothed.
    plates : tuple of ForcePlate
        At its times, with their links.
    power : ndarray, shape (N, nv)
        τ v of each coordinate, W.
    residual_names : tuple of str
        Speeds at the root, which nothing drives.
    errors : TorqueErrors
        Standard deviations of torques.
    warnings : tuple of str
        What in the recording contradicts what bodies do, a sentence each.
    """

    motion: Motion
    plates: tuple[ForcePlate, ...]
    power: Array
    residual_names: tuple[str, ...]
    errors: TorqueErrors
    warnings: tuple[str, ...] = ()

    @property
    def tau(self) -> Array:
        """Torques, (N, nv), N·m or N."""
        assert self.motion.tau is not None
        return self.motion.tau

    @property
    def residuals(self) -> Array:
        """Torques at the root, (N, residuals)."""
        return self.tau[:, [self.motion.model.speed_index(name) for name in self.residual_names]]

    def to_xarray(self) -> Dataset:
        """Everything over time, by names, with units."""
        found = self.motion.to_xarray()
        axis = found["tau"].dims[-1]
        kinds = self.motion.model.layout.speed_kinds
        units = joint_units("tau", kinds)
        found["power"] = (("time", axis), self.power, {"units": "W"})
        for name in ("measured", "mass", "length", "total"):
            found[f"tau_error_{name}"] = (("time", axis), getattr(self.errors, name), {"units": units})
        for name, labels in (("mass", self.errors.body_names), ("length", self.errors.bone_names)):
            if labels:
                found.coords[f"{name}_parameter"] = list(labels)
                slope = getattr(self.errors, f"dtau_d{name}")
                found[f"dtau_d{name}"] = (
                    ("time", axis, f"{name}_parameter"),
                    slope,
                    {"units": f"{units} per relative change"},
                )
        found.attrs["residuals"] = ", ".join(self.residual_names)
        found.attrs["warnings"] = "; ".join(self.warnings)
        found.attrs["made"] = "; ".join(getattr(self.motion, "made", ()))
        return found


def smoother(model: Model, lowpass: float | None, filter: str = "butterworth") -> Callable[[Array, Array], Motion]:
    """What makes a motion of positions: (t, q) → q, v, a.

    Parameters
    ----------
    model : Model
    lowpass : float or None
        Hz.
    filter : {"butterworth", "opensim"}
        :func:`motion_from_positions`, or :func:`motion_as_opensim`.
    """
    if filter == "butterworth":
        return lambda t, q: motion_from_positions(model, t, q, lowpass=lowpass)
    if filter == "opensim":
        return lambda t, q: motion_as_opensim(model, t, q, lowpass=lowpass)
    raise InputError(f"`filter` is {shown(filter)}; expected 'butterworth' or 'opensim'")


def analyze_recording(
    model: Model,
    t: ArrayLike,
    q: ArrayLike,
    *,
    lowpass: float | None = None,
    filter: str = "butterworth",
    plates: Sequence[ForcePlate] = (),
    kinematics: InverseKinematics | None = None,
    marker_error: float | None = None,
    coordinate_error: float | None = None,
    mass_error: float = 0.05,
    length_error: float = 0.01,
    prior: Mapping[str, float] | None = None,
) -> Analysis:
    """Inverse dynamics of recorded positions, with residuals, powers and error bars.

    Parameters
    ----------
    model : Model
    t, q : array_like, shapes (m,) and (m, nq)
        Times, s, and coordinates, rad or m, as recorded or found by :func:`inverse_kinematics`.
    lowpass : float, optional
        Cut-off frequency, Hz; without it nothing is filtered.
    filter : {"butterworth", "opensim"}
        Which filter; see :func:`motion_from_positions` and :func:`motion_as_opensim`.
    plates : sequence of ForcePlate
        Force plates; one without a link acts on the nearest foot.
    kinematics : InverseKinematics, optional
        The result from which q was taken; its covariance is used for error bars.
    marker_error : float, optional
        Standard deviation of markers in each direction, m; by default estimated from their distances from the model.
    coordinate_error : float, optional
        Standard deviation of each coordinate, rad or m, if q does not come from markers; larger where q is NaN.
    mass_error, length_error : float
        Relative standard deviations of the mass of each body and of the length of each bone.
    prior : dict of str to float, optional
        For coordinates by name, their standard deviation where markers do not determine them for long, rad or m; by
        default half of their range where they are determined, or, if they never are, by their limits.

    Returns
    -------
    Analysis

    Warns
    -----
    RecordingWarning
        If the mean force of the plates is more than 30° from the vertical, a centre of pressure more than 1 m from
        its link, the root link more than 60° from upright, a torque above 10 N·m per kg of the model, or more than half
        of the weight unexplained by the plates at over 10 % of the instants.  See :func:`turn_upright`.  Also of
        coordinates that markers do not determine, with times.

    Examples
    --------
    >>> from kinegrad import samples
    >>> t = np.arange(200) / 100
    >>> swing = np.outer(np.sin(3 * t), [0.5, 1.0])
    >>> found = analyze_recording(samples.two_link(), t, swing, lowpass=6, coordinate_error=0.01)
    >>> found.tau.shape, bool((found.errors.total > 0).all())
    ((200, 2), True)
    """
    engine.check_model(model)
    relative = [_relative(name, value) for name, value in (("mass_error", mass_error), ("length_error", length_error))]
    smooth = smoother(model, lowpass, filter)
    times, samples = engine.real("t", t), engine.real("q", q)
    motion = smooth(times, samples)
    assigned = assign_links(model, motion.t, motion.q, plates) if plates else []
    at = tuple(plate.at(motion.t) for plate in assigned)
    loads = plate_loads(model, motion.q, at)
    tau = inverse_dynamics(model, motion.q, motion.v, motion.a, loads=loads)
    covariance = _covariance(model, len(times), kinematics, marker_error, coordinate_error)
    known, gaps = check_prior(model, prior), list[Gap]()
    if kinematics is not None and covariance is not None:
        gaps, covariance = _gaps(model, kinematics, motion, covariance, known)
    elif covariance is not None and model.nq == model.nv and np.isnan(samples).any():
        lost = np.isnan(samples)[:, :, None] * np.eye(model.nv)
        gaps = error_gaps(model, times, samples, motion.a, lost, covariance, coordinate_limits(model), known)
    errors = torque_errors(model, motion, loads, at, covariance, smooth, times, relative[0], relative[1], gaps)
    torques, root = dataclasses.replace(motion, tau=tau), root_speeds(model)
    lacking = "missing and filled in is" if kinematics is None else "markers do not determine"
    doubts = [*doubts_about(model, motion, at, tau, root), *_of_gaps(gaps, lacking)]
    for text in doubts:
        warnings.warn(text, RecordingWarning, stacklevel=2)
    return Analysis(torques, at, tau * motion.v, root, errors, tuple(doubts))


def _gaps(
    model: Model, kinematics: InverseKinematics, motion: Motion, covariance: Array, prior: dict[str, float]
) -> tuple[list[Gap], Array]:
    """What markers do not determine, with how wrong it may be; and the covariance of the rest."""
    if model.nq != model.nv:
        return [], covariance
    problem, q = kinematics._problem, kinematics.q
    projection = problem.null_projection(q, np.arange(len(q)))
    some = np.flatnonzero(np.abs(projection).max(axis=(1, 2), initial=0.0))
    rest, covariance = np.eye(model.nv) - projection[some], np.array(covariance)
    covariance[some] = rest @ covariance[some] @ rest.transpose(0, 2, 1)
    limits = problem.lower, problem.upper
    return error_gaps(model, kinematics.t, q, motion.a, projection, covariance, limits, prior), covariance


def _of_gaps(gaps: Sequence[Gap], what: str) -> list[str]:
    """A sentence for each coordinate."""
    found = []
    for name in dict.fromkeys(gap.name for gap in gaps):
        mine = [gap for gap in gaps if gap.name == name]
        when = ", ".join(f"from {gap.start:.4g} to {gap.end:.4g} s" for gap in mine[:SHOWN])
        when += f" and {len(mine) - SHOWN} more times" if len(mine) > SHOWN else ""
        error = f"{max(gap.error for gap in mine):.2g} {mine[0].unit}"
        found.append(f"{what} {shown(name)} {when}: its errors there are taken to be {error}")
    return found


def root_speeds(model: Model) -> tuple[str, ...]:
    """Speeds between the world and the first bodies with mass: what no muscle and no motor drives, where it is free.

    Empty if the first body with mass is not free in all six directions: then something holds it.

    >>> from kinegrad import samples
    >>> root_speeds(samples.two_link())
    ()
    """
    names: list[str] = []
    for i in range(model.n):
        path, j = [], i
        while j >= 0:
            path.append(j)
            j = int(model.parents[j])
        if model.mass[i] > 0:
            speeds = sorted({int(model.layout.speed_of[j]) for j in path if model.layout.speed_of[j] >= 0})
            names = [model.speed_names[v] for v in speeds]
            break
    return tuple(names) if len(names) >= 6 else ()


def _relative(name: str, value: Any) -> float:
    number = engine.real(name, value)
    if number.shape != () or not 0 <= number < 1:
        raise InputError(f"`{name}` is {shown(value)}; expected a relative error from 0 to below 1")
    return float(number)


def _covariance(
    model: Model, count: int, kinematics: Any, marker_error: float | None, coordinate_error: float | None
) -> Array | None:
    if kinematics is not None:
        if not isinstance(kinematics, InverseKinematics):
            raise InputError(f"`kinematics` is a {type(kinematics).__name__}; expected what inverse_kinematics returns")
        if len(kinematics.t) != count:
            raise InputError(f"`kinematics` has {len(kinematics.t)} frames, and `q` {count}; expected as many")
        error = kinematics.marker_error if marker_error is None else engine.positive("marker_error", marker_error)
        return kinematics._problem.covariance(kinematics.q) * error**2
    if marker_error is not None:
        raise InputError("`marker_error` is given without `kinematics`; expected both, or coordinate_error")
    if coordinate_error is None:
        return None
    error = engine.positive("coordinate_error", coordinate_error)
    return np.broadcast_to(error**2 * np.eye(model.nv), (count, model.nv, model.nv))
