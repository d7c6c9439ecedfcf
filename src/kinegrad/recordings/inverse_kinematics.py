"""Inverse kinematics: coordinates of every frame of a recording from the positions of its markers.

Each frame is a least-squares problem of its own (:mod:`kinegrad.recordings.marker_problem`), solved by Newton's method
with Levenberg and Marquardt's damping, within joint limits, to the minimum itself, from guesses that other frames give
(:mod:`kinegrad.recordings.frame_search`).  A coordinate that seen markers do not determine is interpolated between the
frames before and after; one that they never determine stays where it started.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import integrate, neutral
from kinegrad.errors import InputError, UnitsWarning, shown
from kinegrad.io.names import check_names
from kinegrad.io.trc_file import Markers
from kinegrad.kinematics import point_motion
from kinegrad.model import Model
from kinegrad.recordings.frame_search import FrameSearch
from kinegrad.recordings.marker_problem import MarkerProblem, coordinate_limits
from kinegrad.recordings.undetermined import spans
from kinegrad.results import Result

__all__ = ["InverseKinematics", "inverse_kinematics"]

Array = NDArray[np.float64]
FAR, TIMES = 0.1, 4.0  # m, and times the size of the model: beyond both, markers are in other units, or of others


@dataclass(frozen=True, eq=False)
class InverseKinematics(Result):
    """Coordinates of every frame, and how well markers fit.

    Attributes
    ----------
    t : ndarray, shape (N,)
        s.
    q : ndarray, shape (N, nq)
        Coordinates, rad or m.
    distance : ndarray, shape (N, k)
        Between each marker where it was measured and where the model has it, m; NaN where it was not seen.
    marker_names : tuple of str
        Of the k markers that were used.
    unused : tuple of str
        Markers of the recording that the model has no frame for.
    cost : ndarray, shape (N,)
        ½ Σ w |x − m|² of each frame at its minimum (and what `near` adds), m².
    gaps : tuple of (str, float, float)
        Speeds that seen markers do not determine, with the first and last time, s: there they are interpolated between
        the frames before and after, held at the ends of the recording, or stay where the search began.
    iterations : ndarray of int, shape (N,)
        Steps that each frame took in all.
    success : bool
        Whether every frame is at its minimum.
    message : str
    """

    t: Array
    q: Array
    distance: Array
    marker_names: tuple[str, ...]
    unused: tuple[str, ...]
    cost: Array
    gaps: tuple[tuple[str, float, float], ...]
    iterations: NDArray[np.int64]
    success: bool
    message: str
    _problem: MarkerProblem = field(repr=False, compare=False)

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Speeds that have gaps."""
        return tuple(dict.fromkeys(name for name, _, _ in self.gaps))

    @cached_property
    def covariance(self) -> Array:
        """Of the coordinates, (N, nv, nv), for errors of markers of 1 m in each direction.

        To first order: multiply it by their variance, m².  Zero for coordinates at limits; infinite variances in gaps.
        """
        found = self._problem.covariance(self.q)
        for name, start, end in self.gaps:
            j, rows = self._problem.model.speed_index(name), (self.t >= start) & (self.t <= end)
            found[rows, :, j] = found[rows, j, :] = 0.0
            found[rows, j, j] = np.inf
        return found

    @property
    def marker_error(self) -> float:
        """Standard deviation of markers in each direction, m, estimated from the distances of all frames.

        √(Σ|x − m|² / ν), where ν is what the sum is expected to be for errors of 1 m: with equal weights, the number of
        measured components less that of the coordinates; with other weights, what they let through.  NaN if coordinates
        follow every marker, so that distances say nothing.
        """
        freedom = self._problem.freedom(self.q)
        if freedom < 0.5:
            return float("nan")
        return float(np.sqrt(np.nansum(self.distance**2) / freedom))

    @property
    def rms(self) -> Array:
        """The root of the mean squared distance of the markers of each frame, (N,), m."""
        return np.asarray(np.sqrt(np.nanmean(self.distance**2, axis=1)))

    @property
    def largest(self) -> Array:
        """The largest distance in each frame, (N,), m."""
        return np.asarray(np.nanmax(self.distance, axis=1))


def inverse_kinematics(
    model: Model,
    markers: Markers,
    *,
    frames: Mapping[str, str] | None = None,
    weights: Mapping[str, float] | None = None,
    start: ArrayLike | Mapping[str, float] | None = None,
    limits: bool | Mapping[str, Any] = True,
    near: Mapping[str, Any] | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 100,
    seed: int = 0,
) -> InverseKinematics:
    """Find the coordinates at which the markers of a model are nearest to measured ones, in every frame.

    Parameters
    ----------
    model : Model
    markers : Markers
        Positions, NaN where a marker was not visible.  Every frame needs at least one visible marker.
    frames : dict of str to str, optional
        For markers by name, the frame or link of the model at whose origin they are.  By default the frames with the
        same names; markers without a frame are left out and named in the result.
    weights : dict of str to float, optional
        For markers by name, zero or more; by default 1.
    start : array_like, shape (nq,), or dict of str to float, optional
        Where the search for the first frame begins; coordinates that are not given begin at zero.
    limits : bool, or dict of str to (float, float)
        Whether coordinates stay within the limits of the joints of their names; a dictionary changes some of them.
    near : dict of str to (value, weight), optional
        Coordinates that should stay near a value (a number, or one for each frame) as far as the markers allow: adds
        ½ weight (q − value)² to the cost, as a coordinate task of OpenSim does; weight in m²/rad² or 1.
    tolerance : float
        A frame is finished when a further step would reduce its cost by no more than this fraction of it (or of the
        cost of distances of a micrometre).
    max_iterations : int
        Largest number of steps in each round.
    seed : int
        Seed of the random starts.

    Returns
    -------
    InverseKinematics
        If the search did not reach the minimum in some frame, ``success`` is False and ``message`` says where.

    Warns
    -----
    UnitsWarning
        If markers are several times as far apart as those of the model, or several times nearer, as in mm or km.

    Examples
    --------
    >>> from kinegrad import Frame, point_motion, samples
    >>> arm = samples.two_link().replace(frames={"hand": Frame("forearm"), "elbow_marker": Frame("upper_arm")})
    >>> t = np.linspace(0, 1, 50)
    >>> q = np.stack([np.sin(t), 0.5 + t], axis=-1)
    >>> seen = Markers(t, ("hand", "elbow_marker"), point_motion(arm, q, link=["hand", "elbow_marker"]).position)
    >>> found = inverse_kinematics(arm, seen)
    >>> found.success, bool(abs(found.q - q).max() < 1e-7)
    (True, True)
    """
    setting = Setting.of(model, markers, frames, weights, near)
    lower, upper = check_limits(model, limits)
    begin = _start(model, start)
    tolerance, most = _positive("tolerance", tolerance), engine.whole("max_iterations", max_iterations, 1)
    seed = engine.whole("seed", seed, 0)
    search = FrameSearch(setting.problem(model, lower, upper), setting.t, begin, tolerance, most)
    search.run(begin, seed)
    found = setting.result(search)
    _warn_of_units(model, begin, setting, found)
    return found


@dataclass
class Setting:
    """Arguments, checked."""

    t: Array
    names: tuple[str, ...]
    unused: tuple[str, ...]
    frames: list[str]
    measured: Array
    weights: Array
    reference: Array
    pull: Array

    @classmethod
    def of(cls, model: Model, markers: Any, frames: Any, weights: Any, near: Any) -> Setting:
        engine.check_model(model)
        if not isinstance(markers, Markers):
            raise InputError(f"`markers` is a {type(markers).__name__}; expected Markers(t, names, position)")
        for what, given in (("frames", frames), ("weights", weights), ("near", near)):
            if given is not None and not isinstance(given, Mapping):
                raise InputError(f"`{what}` is {shown(given)}; expected a dictionary")
        if frames is None:
            here = {name: name for name in markers.names if name in model.frames or name in model.link_names}
        else:
            here = dict(frames)
            check_names("the recording", "marker", markers.names, list(here), others=True)
        for frame in here.values():
            model.locate(frame)
        if not here:
            some = ", ".join(map(shown, markers.names[:4]))
            raise InputError(f"no marker ({some}, …) is a frame of model {shown(model.name)}; expected `frames`")
        names = tuple(name for name in markers.names if name in here)
        chosen = markers if names == markers.names else markers.select(names)
        amounts = np.ones(len(names))
        check_names("`weights`", "marker", names, list(weights or {}), others=True)
        for name, weight in (weights or {}).items():
            amounts[names.index(name)] = _positive(f"weights[{shown(name)}]", weight, zero=True)
        if not (amounts > 0).any():
            raise InputError("`weights` are all zero; expected one above zero")
        counts = (chosen.seen & (amounts > 0)).sum(axis=1)
        if not counts.all():
            k = int(np.argmin(counts))
            raise InputError(f"no marker was seen at t = {chosen.t[k]:g} s; expected at least one in every frame")
        unused = tuple(name for name in markers.names if name not in here)
        reference, pull = _near(model, near, len(chosen.t))
        frames_of = [here[name] for name in names]
        return cls(chosen.t, names, unused, frames_of, chosen.position, amounts, reference, pull)

    def problem(self, model: Model, lower: Array, upper: Array) -> MarkerProblem:
        """The least-squares problem of a model."""
        fixed = self.weights, self.reference, self.pull, lower, upper
        return MarkerProblem(model, self.frames, self.measured, *fixed)

    def result(self, found: FrameSearch) -> InverseKinematics:
        """Coordinates, and how well they fit."""
        problem, done = found.problem, found.done
        distance = found.distance if problem.complete else np.where(problem.seen, found.distance, np.nan)
        undetermined = spans(self.t, problem.model.speed_names, found.undetermined)
        message = "every frame is at its minimum"
        if not done.all():
            k = int(np.argmin(done))
            message = f"{int((~done).sum())} of {len(done)} frames did not get there, the first at t = {self.t[k]:g} s"
        fit = self.t, found.q, distance, self.names, self.unused, found.cost, undetermined, found.steps
        return InverseKinematics(*fit, bool(done.all()), message, problem)


def _warn_of_units(model: Model, q: Array, setting: Setting, found: InverseKinematics) -> None:
    """Warn where markers fit badly, and are several times as far apart as those of the model, or several times nearer.

    One frame shows it, that in which most markers were seen, beside the model where the search began: what slides would
    follow markers anywhere.
    """
    if not len(found.t) or not np.nanmax(found.distance) > FAR:
        return
    k = int(np.argmax(found._problem.seen.sum(axis=1)))
    seen = found._problem.seen[k]
    x, there = point_motion(model, q, link=setting.frames).position[seen], setting.measured[k, seen]
    size, measured = (float(np.abs(each - each[0]).max()) for each in (x, there))
    if measured > TIMES * size + FAR or size > TIMES * measured + FAR:
        message = f"markers are {measured:.3g} m apart, and those of the model {size:.3g} m"
        warnings.warn(f"{message}; are they in m, and of this model?", UnitsWarning, stacklevel=3)


# --- arguments --------------------------------------------------------------------------------------------------------


def check_limits(model: Model, limits: Any) -> tuple[Array, Array]:
    """Lower and upper limits of coordinates, (nq,) each."""
    if isinstance(limits, Mapping):
        return coordinate_limits(model, limits)
    if not isinstance(limits, bool | np.bool_):
        raise InputError(f"`limits` is {shown(limits)}; expected True, False or a dictionary")
    return coordinate_limits(model) if limits else (np.full(model.nq, -np.inf), np.full(model.nq, np.inf))


def _start(model: Model, start: Any) -> Array:
    if start is None:
        return neutral(model)
    if isinstance(start, Mapping):
        q = neutral(model)
        for name, value in start.items():
            q[model.coordinate_index(name)] = _finite(f"start[{shown(name)}]", value)
        return q
    q = engine.real("start", start)
    if q.shape != (model.nq,):
        raise InputError(f"`start` has shape {q.shape}; expected ({model.nq},)")
    return integrate(model, q, np.zeros(model.nv))  # checks that it is finite, and its quaternions of unit length


def _near(model: Model, near: Any, count: int) -> tuple[Array, Array]:
    reference, pull = np.zeros((1, model.nv)), np.zeros(model.nv)
    if not near:
        return reference, pull
    reference = np.zeros((count, model.nv))
    if model.nq != model.nv:
        raise InputError("`near` is for models without quaternions; expected None")
    for name, pair in near.items():
        k = model.coordinate_index(name)
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"`near[{shown(name)}]` is {shown(pair)}; expected (value, weight)")
        value = engine.real(f"near[{shown(name)}]", pair[0])
        if value.shape not in ((), (count,)) or not np.isfinite(value).all():
            raise InputError(f"`near[{shown(name)}]` has a value of shape {value.shape}; expected one, or {count}")
        reference[:, k], pull[k] = value, _positive(f"near[{shown(name)}]", pair[1], zero=True)
    return reference, pull


def _finite(what: str, value: Any) -> float:
    number = engine.real(what, value)
    if number.shape != () or not np.isfinite(number):
        raise InputError(f"`{what}` is {shown(value)}; expected a finite number")
    return float(number)


def _positive(what: str, value: Any, *, zero: bool = False) -> float:
    number = _finite(what, value)
    if number < 0 or (number == 0 and not zero):
        raise InputError(f"`{what}` is {number:g}; expected a number {'of zero or more' if zero else 'above zero'}")
    return number
