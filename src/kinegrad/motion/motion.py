"""A motion: times, coordinates, speeds, accelerations and torques of a model, and what is between its times.

What a simulation returns, a file holds, a spline describes and an optimisation predicts is the same thing.  Everything
that looks at a motion (objectives, figures, files) takes any of them.

Between its times a motion is evaluated by what it was made of: the integrator's own interpolation, the spline itself;
or else, where samples are all there is, by the polynomial of degree 5 in each interval that has q, v and a of both
ends.  With h the length of the interval, s the part of it that has passed, and

    D = q₁ − q₀ − h v₀ − ½h² a₀,    E = h (v₁ − v₀) − h² a₀,    F = h² (a₁ − a₀),

    q(s) = q₀ + h v₀ s + ½h² a₀ s² + (10D − 4E + ½F) s³ + (−15D + 7E − F) s⁴ + (6D − 3E + ½F) s⁵.

It is linear in the samples, so slopes with respect to parameters obey the same line.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.interpolation import between, line
from kinegrad.model import Model
from kinegrad.model.units import joint_units
from kinegrad.results import Result

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.figure import Figure
    from xarray import Dataset

    from kinegrad.design import Design

__all__ = ["Motion"]

Array = NDArray[np.float64]
STATE = ("q", "v", "a", "tau")
SLOPES = ("dq_dp", "dv_dp", "da_dp", "dtau_dp")


@dataclass(frozen=True, eq=False, repr=False)
class Motion(Result):
    """A motion of a model at m times, and between them.

    Motions compare by value and pickle.  Arrays are kept as they are given; those of simulations may have NaN where a
    state diverged.

    Parameters
    ----------
    model : Model
        Whose coordinates and speeds these are.
    t : array_like, shape (m,)
        s, increasing.
    q : array_like, shape (m, ..., nq)
        Coordinates, rad or m, in the order of :attr:`coordinate_names`.
    v, a : array_like, shape (m, ..., nv)
        Speeds and accelerations, the time derivatives of q, in the order of :attr:`speed_names`.
    tau : array_like, shape (m, ..., nv), optional
        Torques of the joints, N·m or N; None where they are not known.
    design : Design, optional
        Parameters that the motion follows.
    dq_dp, dv_dp, da_dp, dtau_dp : array_like, shape (m, ..., nv, p), optional
        How it follows them in total; None where it does not.
    forces : array_like, shape (m, ..., k), optional
        Forces of constraints, N or N·m, one for each of `row_names`.
    row_names : tuple of str, optional
        Names of the rows of the constraints, as of :attr:`ConstraintSet.row_names`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm, t = samples.two_link(), np.linspace(0, 1, 5)
    >>> wave = np.sin(t), np.cos(t), -np.sin(t)
    >>> motion = Motion(arm, t, *(np.stack([x, 2 * x], axis=-1) for x in wave))
    >>> motion
    Motion(two_link: 5 times from 0 to 1 s; q, v, a)
    >>> between = motion([0.1, 0.6])
    >>> bool(np.abs(between.q[:, 0] - np.sin([0.1, 0.6])).max() < 1e-7)
    True
    >>> len(motion[1:4]), motion.between(0.2, 0.6).t
    (3, array([0.2 , 0.25, 0.5 , 0.6 ]))
    """

    model: Model
    t: Array
    q: Array
    v: Array
    a: Array
    tau: Array | None = None
    design: Design | None = None
    dq_dp: Array | None = None
    dv_dp: Array | None = None
    da_dp: Array | None = None
    dtau_dp: Array | None = None
    forces: Array | None = field(default=None, kw_only=True)
    row_names: tuple[str, ...] = field(default=(), kw_only=True)
    _path: Callable[[Array], dict[str, Array]] | None = field(default=None, compare=False, kw_only=True)

    reported: ClassVar[tuple[str, ...]] = ()  # fields that are attributes of the labelled dataset

    def __post_init__(self) -> None:
        engine.check_model(self.model)
        set_field = object.__setattr__.__get__(self)
        set_field("t", check_times(self.t))
        sizes = dict(zip(STATE, (self.model.nq, *(self.model.nv,) * 3), strict=True))
        for name, size in sizes.items():
            if name == "tau" and self.tau is None:
                continue
            x = engine.real(name, getattr(self, name))
            batch = np.shape(self.q)[1:-1] if name != "q" else x.shape[1:-1]
            if x.shape != (len(self.t), *batch, size):
                expected = f"({len(self.t)}, {'...' if name == 'q' else ', '.join(map(str, batch))}, {size})"
                raise InputError(f"`{name}` has shape {x.shape}; expected {expected.replace(', , ', ', ')}")
            set_field(name, x)
        if len({getattr(self, name) is None for name in SLOPES[:3]}) > 1:
            raise InputError("some of `dq_dp`, `dv_dp` and `da_dp` are None; expected all three, or none")
        for name in SLOPES:
            if (given := getattr(self, name)) is not None:
                x, shape = engine.real(name, given), self.v.shape
                if self.design is None:
                    raise InputError(f"`{name}` is given without a `design`; expected both, or neither")
                if x.shape != (*shape, self.design.p):
                    raise InputError(f"`{name}` has shape {x.shape}; expected {(*shape, self.design.p)}")
                set_field(name, x)
        if self.forces is not None:
            x, expected_shape = engine.real("forces", self.forces), (*self.v.shape[:-1], len(self.row_names))
            if x.shape != expected_shape:
                raise InputError(f"`forces` has shape {x.shape}; expected {expected_shape}: one for each row")
            set_field("forces", x)

    @classmethod
    def from_spline(cls, model: Model, spline: Any, t: ArrayLike | None = None) -> Motion:
        """The motion that a spline of time describes, exactly: speeds and accelerations are its derivatives.

        Parameters
        ----------
        model : Model
        spline : BSpline, PPoly or BPoly
            SciPy's, of values of shape (..., nq) and of degree 2 or more; it is copied.  Its coordinates must be such
            that speeds are their derivatives, which those of quaternions are not.
        t : array_like, shape (m,), optional
            Times to keep; where its pieces meet, if not given.

        Examples
        --------
        >>> from kinegrad import samples
        >>> from scipy.interpolate import make_interp_spline
        >>> t = np.linspace(0, 1, 6)
        >>> reach = Motion.from_spline(samples.two_link(), make_interp_spline(t, np.outer(t, [1, 2]), k=5))
        >>> reach([0.25]).v.round(12)
        array([[1., 2.]])
        """
        from kinegrad.motion.splines import (
            SPLINES,
            knots,
        )  # here, because SciPy's take longer to import than all of kinegrad

        engine.check_model(model)
        if not isinstance(spline, SPLINES):
            raise InputError(f"`spline` is a {type(spline).__name__}; expected a BSpline, PPoly or BPoly of SciPy")
        if getattr(spline, "k", 3) < 2:
            raise InputError(f"`spline` is of degree {spline.k}, whose speed jumps; expected degree 2 or more")
        _check_plain(model, "a spline of coordinates")
        meet = np.unique(knots(spline))
        times = meet if t is None else check_times(t)
        if spline.extrapolate != "periodic" and (times[0] < meet[0] or times[-1] > meet[-1]):
            span = f"from {meet[0]:.12g} to {meet[-1]:.12g} s"
            raise InputError(f"`t` goes from {times[0]:.12g} to {times[-1]:.12g} s; the spline {span}")
        path = _SplinePath(spline)
        state: dict[str, Any] = path(times)
        return cls(model, times, **state, _path=path)

    # --- what it is ---------------------------------------------------------------------------------------------

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates q, as many as nq."""
        return self.model.coordinate_names

    @property
    def speed_names(self) -> tuple[str, ...]:
        """Names of the speeds v, accelerations a and torques τ, as many as nv."""
        return self.model.speed_names

    def __len__(self) -> int:
        """Number of times."""
        return len(self.t)

    def __repr__(self) -> str:
        batch = self.q.shape[1:-1]
        parts = [name for name in (*STATE, *SLOPES, "forces") if getattr(self, name) is not None]
        span = f"from {self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else "none"
        of = f" of {' × '.join(map(str, batch))} motions" if batch else ""
        return f"{type(self).__name__}({self.model.name}: {len(self.t)} times{of} {span}; {', '.join(parts)})"

    # --- parts of it --------------------------------------------------------------------------------------------

    def __getitem__(self, times: slice) -> Self:
        """The motion at some of its times, by their numbers: ``motion[10:20]``, ``motion[-1:]``."""
        if not isinstance(times, slice):
            raise InputError(f"`times` is {shown(times)}; expected a slice such as motion[10:20], or motion(t)")
        parts = ((name, getattr(self, name)) for name in ("t", *STATE, *SLOPES, "forces"))
        changes: dict[str, Any] = {name: None if x is None else x[times] for name, x in parts}
        return dataclasses.replace(self, **changes)

    def __call__(self, t: ArrayLike) -> Motion:
        """The motion at other times within it, shape (k,) or one number: at its own times the same numbers.

        Between them it is the integrator's or the spline's own; of samples, q, v and a are the polynomial of degree 5
        through q, v and a of both ends of an interval (of a quaternion, its turn since the sample before, which must be
        less than half a turn), and torques a straight line.
        """
        times = check_times(t)
        first, last = self._span
        if times[0] < first or times[-1] > last:
            asked = f"from {times[0]:g} to {times[-1]:g} s"
            raise InputError(f"`t` goes {asked}; this motion from {first:g} to {last:g}")
        found: dict[str, Any] = self._at(times)
        if self._path is not None:
            found |= self._path(times)
        return Motion(self.model, times, design=self.design, **found, row_names=self.row_names, _path=self._path)

    def between(self, first: float, last: float) -> Motion:
        """The motion from one time to another, both included: its own times between them, and these two."""
        ends = check_times([first, last])
        inner = self.t[(self.t > ends[0]) & (self.t < ends[1])]
        return self(np.concatenate([ends[:1], inner, ends[1:]]))

    @property
    def _span(self) -> tuple[float, float]:
        """From when to when it can be evaluated."""
        return float(self.t[0]), float(self.t[-1])

    def _at(self, times: Array) -> dict[str, Array]:
        """State and slopes at times within the samples, by polynomials."""
        given = {name: x for name in (*STATE, *SLOPES, "forces") if (x := getattr(self, name)) is not None}
        rows = np.searchsorted(self.t, times)
        other = self.t[rows] != times
        found = {name: x[rows] for name, x in given.items()}
        if other.any():
            where = self.t, times[other], rows[other] - 1
            state, slopes = ([given[name] for name in names[:3] if name in given] for names in (STATE, SLOPES))
            for names, parts in zip((STATE, SLOPES), between(self.model, *where, state, slopes), strict=True):
                for name, x in zip(names, parts, strict=False):
                    found[name][other] = x
                if names[3] in given:
                    found[names[3]][other] = line(*where, given[names[3]])
            if "forces" in given:
                found["forces"][other] = line(*where, given["forces"])
        return found

    # --- other forms --------------------------------------------------------------------------------------------

    def quadrature(self) -> tuple[Motion, Array]:
        """The motion at five Gauss points in each of its intervals, with their weights, for integrals over time."""
        return self.gauss(self.t)

    def weight_slopes(self) -> Array | None:
        """How the weights of :meth:`quadrature` follow the parameters, (nodes, p); None where they do not."""
        return None

    def jumps(self) -> list[tuple[Motion, Motion, Array]]:
        """Where speeds jump at times that follow the parameters: before, after, and dt/dp, (p,)."""
        return []

    def gauss(self, edges: Array) -> tuple[Motion, Array]:
        """The motion at five Gauss points between each two of some times, and their weights."""
        if len(edges) < 2:
            raise InputError(f"the motion has {len(edges)} times; expected at least 2 for integrals over time")
        x, w = np.polynomial.legendre.leggauss(5)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        nodes = (middle[:, None] + half[:, None] * x).ravel()
        return self(nodes), (half[:, None] * w).ravel()

    def plot(self, names: Sequence[str] | None = None, quantities: Sequence[str] | None = None) -> Figure:
        """Curves over time, a panel for each quantity: see :func:`kinegrad.plot.plot_motion`.

        Parameters
        ----------
        names : sequence of str, optional
            Coordinates or speeds to show; those that move most when not given.
        quantities : sequence of {"q", "v", "a", "tau"}, optional

        Returns
        -------
        matplotlib figure

        Examples
        --------
        >>> from kinegrad import samples
        >>> still = Motion(samples.two_link(), [0.0, 1.0], *np.zeros((3, 2, 2)))
        >>> len(still.plot().axes)
        2
        """
        from importlib import import_module  # figures are a layer above: asked for by name, when they are wanted

        figure: Figure = import_module("kinegrad.plot").plot_motion(self, names, quantities)
        return figure

    def to_xarray(self) -> Dataset:
        """The motion as an xarray.Dataset over time, batch, joint and parameter, with names and units.

        Variables ``q``, ``v``, ``a``, ``tau`` are over (time, joint) as in NetCDF files of trajectories, of a design
        also ``dq_dp``, … over (time, joint, parameter); a batch of states adds ``batch`` after time (``batch0``, …
        if it has several axes).  Forces of constraints are over (time, row).  Where coordinates are not joints, q is
        over ``coordinate`` and all else over
        ``speed``.  What a simulation reports is among the attributes, so that a file keeps it.

        Examples
        --------
        >>> from kinegrad import samples
        >>> from kinegrad.simulate import simulate
        >>> motion = simulate(samples.double_pendulum(), [1, 0], [0, 0], [0, 0.5, 1]).to_xarray()
        >>> motion["q"].sel(joint="hinge2").dims, motion["q"].attrs["units"]
        (('time',), 'rad')
        """
        import xarray

        model, axes = self.model, self.q.ndim - 2
        batch = ("batch",) if axes == 1 else tuple(f"batch{k}" for k in range(axes))
        coordinates: dict[str, Any] = {"time": ("time", self.t, {"units": "s"})}
        variables: dict[str, Any] = {}
        tangent, _, tangent_kinds = model.layout.columns("v")
        for x in STATE:
            axis, names, kinds = model.layout.columns(x)
            coordinates |= {axis: list(names), "kind" if axis == "joint" else f"{axis}_kind": (axis, kinds)}
            if getattr(self, x) is not None:
                variables[x] = (("time", *batch, axis), getattr(self, x), {"units": joint_units(x, kinds)})
            if (slope := getattr(self, f"d{x}_dp")) is not None:
                units = joint_units(x, tangent_kinds).split(" or ")
                each = {"units": " or ".join(f"{unit} per unit of the parameter" for unit in units)}
                variables[f"d{x}_dp"] = (("time", *batch, tangent, "parameter"), slope, each)
        if self.design is not None:
            coordinates |= {"parameter": list(self.design.names), "value": ("parameter", self.design.values)}
        if self.forces is not None:
            coordinates |= {"row": list(self.row_names)}
            variables["forces"] = (("time", *batch, "row"), self.forces, {"units": "N or N m"})
        report = {name: getattr(self, name) for name in self.reported}
        return xarray.Dataset(variables, coordinates, {"model": model.name, **report})


class _SplinePath:
    """A spline's q, v and a at any times; of a copy, which nobody changes."""

    def __init__(self, spline: Any) -> None:
        own = copy.deepcopy(spline)
        self._orders = (own, own.derivative(1), own.derivative(2))

    def __call__(self, t: Array) -> dict[str, Array]:
        return {name: np.asarray(order(t)) for name, order in zip("qva", self._orders, strict=True)}


def check_times(t: Any, *, least: int = 1) -> Array:
    """Finite times that increase, (m,); one number is one time."""
    times = np.atleast_1d(engine.real("t", t))
    if times.ndim != 1 or len(times) < least:
        raise InputError(f"`t` has shape {np.shape(t)}; expected at least {least} times in a row")
    if not np.isfinite(times).all():
        raise engine.not_finite("t", times)
    if not (np.diff(times) > 0).all():
        k = int(np.argmin(np.diff(times) > 0))
        raise InputError(f"`t` goes from {times[k]:g} to {times[k + 1]:g} at index {k + 1}; expected it to increase")
    return times


def _check_plain(model: Model, what: str) -> None:
    """Refuse to differentiate or interpolate coordinates whose rates are not the speeds."""
    if model.nq != model.nv:
        found = f"model {shown(model.name)} has {model.nq} coordinates and {model.nv} speeds"
        raise InputError(f"{found}, quaternions among them, and this is {what}: between times it is not defined")
