"""Peaks and work of a given motion as functions of a design: what sizes motors, gears and batteries.

A maximum has corners, and optimisers want slopes.  So a peak is the mean over time of a high power, added up over the
joints,

    J = ( 1/T ∫ Σᵢ |xᵢ|^k dt )^(1/k),    dJ/dx = (w/T) (|x|/J)^(k−1) sign x,                                       (1)

which tends to the largest |x| as k grows: from above where several joints share it, from below where it is short.  How
large it is, max |x| at the given times, is ``unsmoothed``: a motor is chosen by that number, not by J.  The
integral is the trapezoidal rule on the given times, whose weights w are positive.  All is divided by the largest |x|
before it is raised to a power, so that nothing overflows.

Work is ∫ Σᵢ wᵢ |τᵢ vᵢ| dt, with √(P² + ε²) − ε for |P|.  Both are differentiated through inverse dynamics, by its
product with weights on torques: dJ/dp = Σ (∂J/∂τ)ᵀ ∂τ/∂p.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.design import Design
from kinegrad.design.dynamics import inverse_dynamics_design_vjp
from kinegrad.design.running import loads_of
from kinegrad.dynamics import inverse_dynamics
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.motion import Motion
from kinegrad.objectives.objective import check_sums
from kinegrad.results import Result

__all__ = ["PeakPower", "PeakTorque", "Work"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _OfTorques(Result):
    """A number of the torques that a given motion takes."""

    motion: Motion
    _: KW_ONLY
    loads: Loads | None = None
    weight: Any = 1.0

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.motion, Motion):
            raise InputError(f"`motion` of {name} is a {type(self.motion).__name__}; expected a Motion")
        if self.motion.q.ndim != 2 or len(self.motion.t) < 2:
            found = f"has coordinates of shape {self.motion.q.shape}"
            raise InputError(f"`motion` of {name} {found}; expected one motion of at least two times")
        if not (np.isfinite(self.motion.q).all() and np.isfinite(self.motion.a).all()):
            raise InputError(f"`motion` of {name} is not finite; expected one that reached its end")
        object.__setattr__(self, "weight", named_weights(self.motion, self.weight))

    def __call__(self, design: Design) -> tuple[float, Array]:
        """J and dJ/dp, shape (p,), of one design."""
        x, (tau, loads) = self.motion, self._torques(design)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            value, slope = self._of(tau, x.v, trapezoidal(x.t))
            check_sums(np.asarray(value), slope)
            gradient = inverse_dynamics_design_vjp(design, x.q, x.v, x.a, slope, loads=loads).sum(axis=0)
        check_sums(np.asarray(value), gradient)
        return float(value), gradient

    def unsmoothed(self, design: Design) -> float:
        """The number that J stands for, at the given times: N·m, N, W or J, times `weight`.

        Examples
        --------
        >>> from kinegrad import Design, samples
        >>> arm, t = samples.two_link(gravity=(0, -10, 0)), np.linspace(0, 1, 101)
        >>> q = np.outer(np.pi * t, [1, 0])
        >>> peak, design = PeakTorque(Motion(arm, t, q, 0 * q, 0 * q)), Design(arm, ["forearm.mass"])
        >>> round(peak(design)[0], 2), round(peak.unsmoothed(design), 2)  # N·m
        (3.76, 4.0)
        """
        tau, _ = self._torques(design)
        with np.errstate(all="ignore"):
            value = self._exactly(tau, self.motion.v, trapezoidal(self.motion.t))
        check_sums(np.asarray(value))
        return float(value)

    def _torques(self, design: Design) -> tuple[Array, Loads | None]:
        if not isinstance(design, Design):
            raise InputError(f"`design` is a {type(design).__name__}; expected a Design")
        x = self.motion
        if design.model.speed_names != x.model.speed_names:
            raise InputError("`motion` is of a model with other speeds than the design's; expected the same names")
        loads = loads_of(design, self.loads)
        return inverse_dynamics(design.model, x.q, x.v, x.a, loads=loads), loads

    def _of(self, tau: Array, v: Array, w: Array) -> tuple[float, Array]:
        """The number, and its slope by τ, (m, nv), with weights w of the times."""
        raise NotImplementedError

    def _exactly(self, tau: Array, v: Array, w: Array) -> float:
        """The number without smoothing."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class PeakTorque(_OfTorques):
    """The largest torque of a given motion, smoothly: (1), as a function of the design.

    The smoothed number can be some 10 % below the largest torque where this is short; :meth:`unsmoothed` returns the
    largest torque itself, and so does the `unsmoothed` of :class:`DesignOptimum`.

    Parameters
    ----------
    motion : Motion
        The same for all designs.
    loads : Loads, optional
        Those of the design if it has any.
    weight : float, array_like of shape (nv,), or mapping
        Torques are multiplied by it first: 1/limit makes J the largest share of the limits; 0 leaves a joint out.
    sharpness : float
        k: the higher, the nearer to the maximum, and the rougher.

    Examples
    --------
    >>> from kinegrad import Design, samples
    >>> arm, t = samples.two_link(gravity=(0, -10, 0)), np.linspace(0, 1, 101)
    >>> hold = Motion(arm, t, *np.zeros((3, 101, 2)))
    >>> peak = PeakTorque(hold, weight={"shoulder": 1.0})
    >>> value, gradient = peak(Design(arm, ["forearm.mass"]))
    >>> round(value, 9), gradient.round(9)
    (4.0, array([6.]))
    """

    _: KW_ONLY
    sharpness: float = 32.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sharpness", _sharpness(self.sharpness))

    def _of(self, tau: Array, v: Array, w: Array) -> tuple[float, Array]:
        value, slope = smooth_peak(self.weight * tau, w, self.sharpness)
        return value, slope * self.weight

    def _exactly(self, tau: Array, v: Array, w: Array) -> float:
        return float(np.abs(self.weight * tau).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class PeakPower(_OfTorques):
    """The largest power |τᵢ vᵢ| of a joint in a given motion, smoothly: (1), as a function of the design, W.

    Parameters are those of :class:`PeakTorque`.

    Examples
    --------
    >>> from kinegrad import Design, samples
    >>> arm, t = samples.two_link(), np.linspace(0, 1, 101)
    >>> turn = Motion(arm, t, np.outer(t, [1, 0]), np.tile([1.0, 0], (101, 1)), np.zeros((101, 2)))
    >>> value, gradient = PeakPower(turn)(Design(arm, ["forearm.mass"]))
    >>> bool(3.5 < value < 4.0), gradient.shape
    (True, (1,))
    """

    _: KW_ONLY
    sharpness: float = 32.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sharpness", _sharpness(self.sharpness))

    def _of(self, tau: Array, v: Array, w: Array) -> tuple[float, Array]:
        value, slope = smooth_peak(self.weight * tau * v, w, self.sharpness)
        return value, slope * self.weight * v

    def _exactly(self, tau: Array, v: Array, w: Array) -> float:
        return float(np.abs(self.weight * tau * v).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Work(_OfTorques):
    """∫ Σ wᵢ |τᵢ vᵢ| dt of a given motion, J: what motors do, whether they drive or brake; a function of the design.

    Parameters
    ----------
    motion, loads, weight
        As of :class:`PeakTorque`.
    smoothing : float
        ε of √(P² + ε²) − ε, W; zero for the net work ∫ Σ wᵢ τᵢ vᵢ dt, in which braking counts as negative, is
        ``net=True``.
    net : bool
        Count braking as negative.

    Examples
    --------
    Lifting half a kilogram by 0.4 m, at constant speed and by a slide:

    >>> from kinegrad import Design, Inertia, ModelBuilder, prismatic
    >>> builder = ModelBuilder("lift", gravity=(0, 0, -10))
    >>> _ = builder.add("slide", None, prismatic("z"), link="load", inertia=Inertia.sphere(0.5, 0.1))
    >>> lift, t = builder.build(), np.linspace(0, 1, 11)
    >>> up = Motion(lift, t, 0.4 * t[:, None], np.full((11, 1), 0.4), np.zeros((11, 1)))
    >>> value, gradient = Work(up, net=True)(Design(lift, ["load.mass"]))
    >>> round(value, 9), gradient.round(9)
    (2.0, array([4.]))
    """

    _: KW_ONLY
    smoothing: float = 1e-3
    net: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "smoothing", engine.positive("smoothing", self.smoothing))
        engine.flag("net", self.net)

    def _of(self, tau: Array, v: Array, w: Array) -> tuple[float, Array]:
        weight, power = self.weight * w[:, None], tau * v
        if self.net:
            return float((weight * power).sum()), weight * v
        size = np.hypot(power, self.smoothing)
        return float((weight * (size - self.smoothing)).sum()), weight * power / size * v

    def _exactly(self, tau: Array, v: Array, w: Array) -> float:
        power = self.weight * tau * v
        return float((w @ (power if self.net else np.abs(power))).sum())


def smooth_peak(x: Array, w: Array, k: float) -> tuple[float, Array]:
    """J and dJ/dx of (1), of samples (m, n) with weights (m,) of their times.

    >>> smooth_peak(np.array([[3.0], [3.0], [3.0]]), np.array([0.25, 0.5, 0.25]), 8)[0]
    3.0
    """
    largest = float(np.abs(x).max(initial=0.0))
    if not largest > 0 or not np.isfinite(largest):
        return largest, np.zeros_like(x)
    share, weights = np.abs(x) / largest, (w / w.sum())[:, None]
    value = largest * float((weights * share**k).sum()) ** (1 / k)
    return value, weights * (np.abs(x) / value) ** (k - 1) * np.sign(x)


def trapezoidal(t: Array) -> Array:
    """Weights of times, (m,)."""
    w = np.zeros(len(t))
    w[:-1] += np.diff(t) / 2
    w[1:] += np.diff(t) / 2
    return w


def named_weights(motion: Motion, weight: Any) -> Array:
    """One for all, one for each speed, or by name: those that are not named count nothing."""
    from kinegrad.model.by_name import spread

    model = motion.model
    value = spread("weight", weight, model.speed_names, model.name, kind="speed")
    found = engine.real("weight", value)
    if found.shape not in ((), (model.nv,)) or not np.isfinite(found).all():
        raise InputError(f"`weight` has shape {found.shape}; expected finite numbers: one, ({model.nv},), or by name")
    return np.array(np.broadcast_to(found, model.nv))


def _sharpness(value: Any) -> float:
    k = engine.positive("sharpness", value)
    if not 2 <= k <= 1000:
        raise InputError(f"`sharpness` is {k:g}; expected from 2 to 1000")
    return k
