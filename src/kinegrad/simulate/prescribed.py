"""Prescribed motion: joints that follow given functions of time, whatever force that takes.

A motion is a SciPy spline, whose derivatives are taken, or a function t → (q, v, a); that of a ball whose coordinates
are a quaternion is a function t → (quaternion, angular velocity, angular acceleration), four, three and three numbers.
A motion that follows the parameters of a design is a :class:`DesignMotion`, which has slopes, too.
No finite force makes a coordinate or a speed jump, so splines that do are refused.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from kinegrad import _engine as engine
from kinegrad.design import Design
from kinegrad.errors import InputError
from kinegrad.model import Model
from kinegrad.motion.splines import SPLINES, knots, within
from kinegrad.simulate.design_motion import BoundMotion, DesignMotion, check_design

__all__ = ["Prescribed"]

Array = NDArray[np.float64]
AGREE = 1e-9  # how far an initial state may be from the motion, and a spline jump; by the number itself where above 1


class Prescribed:
    """The motions of some joints of a model between two times.

    Attributes
    ----------
    names : tuple of str
        The speeds whose motion is prescribed,
    held : ndarray of int, shape (k,)
        their numbers,
    free : ndarray of int, shape (nv − k,)
        and those of the others.
    held_q, free_q : ndarray of int
        The same in q, where some coordinates are quaternions.
    """

    def __init__(self, model: Model, motions: Any, first: float, last: float, design: Design | None = None) -> None:
        if not isinstance(motions, Mapping):
            found = type(motions).__name__
            raise InputError(f"`prescribed` is a {found}; expected a dictionary from names of joints to their motions")
        check_design(model, design)
        places = [_places(model, name) for name in motions]
        held_q, held = ([k for pair in places for k in pair[which]] for which in (0, 1))
        if len(held) == model.nv:
            raise InputError(
                f"`prescribed` names all joints of model {model.name!r}, so nothing is left to simulate; "
                "expected a free joint, or see inverse_dynamics"
            )
        self.model, self.names = model, tuple(model.speed_names[k] for k in held)
        self.held, self.held_q = np.array(held, dtype=np.int64), np.array(held_q, dtype=np.int64)
        self.free = np.setdiff1d(np.arange(model.nv), self.held)
        self.free_q = np.setdiff1d(np.arange(model.nq), self.held_q)
        self._bound: list[BoundMotion | None] = []
        self._motions = []
        for (name, motion), at in zip(motions.items(), places, strict=True):
            ball = len(at[0]) > 1
            bound = BoundMotion(name, motion, design, ball=ball) if isinstance(motion, DesignMotion) else None
            given = motion if bound is None else bound
            self._motions.append(_turn(name, given, first) if ball else _motion(name, given, first, last))
            if bound is not None:
                bound.check(first, last)
            self._bound.append(bound)
        self._sizes = [len(at[1]) for at in places]
        self.p = 0 if design is None else design.p
        self.following = any(bound is not None for bound in self._bound)  # whether it has slopes
        self._latest: tuple[float, tuple[Array, ...]] = (np.nan, ())
        self._latest_slopes: tuple[float, Array] = (np.nan, np.empty(0))

    def __call__(self, t: float) -> tuple[Array, ...]:
        """q, v and a of the prescribed joints, as many numbers as `held_q` and, twice, `held` have."""
        at, values = self._latest
        if at != t:
            each = [
                [np.empty(0)] * 3,
                *[motion(t) for motion in self._motions],
            ]  # a generator would change StopIteration
            values = tuple(np.concatenate([np.atleast_1d(x) for x in part]) for part in zip(*each, strict=True))
            self._latest = (t, values)
        return values

    def slopes(self, t: float) -> Array:
        """dq/dp, dv/dp and da/dp of the prescribed joints, (3, k, p)."""
        at, found = self._latest_slopes
        if at != t:
            still = [np.zeros((3, size, self.p)) for size in self._sizes]
            each = [x if bound is None else bound.slopes(t) for bound, x in zip(self._bound, still, strict=True)]
            found = np.concatenate([np.zeros((3, 0, self.p)), *each], axis=1)
            self._latest_slopes = (t, found)
        return found

    def start(self, name: str, value: Any, moving: Array) -> Array:
        """q0 or v0 with the motion's own numbers, (k,), where they agree or NaN stands for them."""
        x = engine.real(name, value)
        at_q = name == "q0"
        width, held = (self.model.nq, self.held_q) if at_q else (self.model.nv, self.held)
        if x.shape[-1:] != (width,):
            return x  # whose shape is refused elsewhere
        x = self._same_sign(x.copy(), moving) if at_q else x.copy()
        names = self.model.coordinate_names if at_q else self.model.speed_names
        for k, y in zip(held, moving, strict=True):
            wrong = ~np.isnan(x[..., k]) & ~(np.abs(x[..., k] - y) <= AGREE * max(1.0, abs(y)))
            if wrong.any():
                found = float(x[..., k][wrong].ravel()[0])
                raise InputError(
                    f"`{name}` is {found:.12g} at joint {names[k]!r}, whose prescribed motion begins with {y:.12g}; "
                    f"expected them to agree to {AGREE:g}, or NaN there"
                )
            x[..., k] = y
        return x

    def _same_sign(self, q: Array, moving: Array) -> Array:
        """q with quaternions of prescribed balls of the sign of the motion's: q and −q are one orientation."""
        whole = np.zeros(self.model.nq)
        whole[self.held_q] = moving
        for _, k, _ in self.model.layout.balls if self.model.coordinates else ():
            if k in self.held_q:
                four = slice(k, k + 4)
                q[..., four] *= np.where((q[..., four] * whole[four]).sum(axis=-1, keepdims=True) < 0, -1.0, 1.0)
        return q

    def start_slope(self, name: str, value: Any, moving: Array) -> Any:
        """dq0_dp or dv0_dp with the motion's own numbers, (k, p), where they agree or NaN stands for them."""
        if value is None or not self.p:
            return value
        x = engine.real(name, value)
        if x.ndim < 2 or x.shape[-2:] != (self.model.nv, self.p):
            return x  # whose shape is refused elsewhere
        x = x.copy()
        for joint, k, y in zip(self.names, self.held, moving, strict=True):
            given = x[..., k, :]
            wrong = ~np.isnan(given) & ~(np.abs(given - y) <= AGREE * np.maximum(1.0, np.abs(y)))
            if wrong.any():
                what = f"joint {joint!r}, whose motion is prescribed"
                if not self.following:
                    raise InputError(
                        f"`{name}` is not zero at {what} and does not follow the design; expected zeros there, or a "
                        "DesignMotion that does"
                    )
                j = int(np.flatnonzero(wrong.reshape(-1, self.p).any(axis=0))[0])
                found = float(given[..., j].ravel()[np.flatnonzero(wrong[..., j].ravel())[0]])
                raise InputError(
                    f"`{name}` is {found:.12g} at {what} and follows parameter {j} by {y[j]:.12g}; expected them to "
                    f"agree to {AGREE:g}, or NaN there"
                )
            x[..., k, :] = y
        return x


def _places(model: Model, name: Any) -> tuple[list[int], list[int]]:
    """Where the coordinates and speeds of what is called so are: of a joint, a coupled coordinate, or a ball."""
    for _, k, v in model.layout.balls if model.coordinates else ():
        ball = model.coordinate_names[k].removesuffix(".w")
        if name == ball:
            return list(range(k, k + 4)), list(range(v, v + 3))
        if name in (*model.coordinate_names[k : k + 4], *model.speed_names[v : v + 3]):
            raise InputError(
                f"`prescribed` names {name!r}, which is part of a quaternion: its motion is no function of one number; "
                f"expected the whole ball, {ball!r}, with a function t → (quaternion, velocity, acceleration)"
            )
    return [model.coordinate_index(name)], [model.speed_index(name)]


@dataclass(frozen=True, eq=False)
class _CheckedTurn:
    """A function t → (quaternion, ω, α) of a ball, whose results are looked at."""

    joint: str
    given: Callable[[float], Any]

    def __call__(self, t: float) -> list[Array]:
        where = f"prescribed[{self.joint!r}]"
        expected = "expected a quaternion, an angular velocity and its rate: four, three and three numbers"
        parts = self.given(t)
        if not isinstance(parts, tuple | list):
            raise InputError(f"`{where}` gives a {type(parts).__name__} at t = {t:g} s; {expected}")
        found = [engine.real(where, x) for x in parts]
        if [x.shape for x in found] != [(4,), (3,), (3,)]:
            raise InputError(f"`{where}` gives shapes {[x.shape for x in found]} at t = {t:g} s; {expected}")
        if not all(np.isfinite(x).all() for x in found):
            raise InputError(f"`{where}` gives {[x.tolist() for x in found]} at t = {t:g} s; expected finite numbers")
        length = float(np.sqrt((found[0] * found[0]).sum()))
        if not abs(length - 1) <= AGREE:
            raise InputError(f"`{where}` gives a quaternion of length {length:.12g} at t = {t:g} s; expected length 1")
        return found


def _turn(joint: str, motion: Any, first: float) -> _CheckedTurn:
    """A checked function t → (quaternion, ω, α)."""
    if not callable(motion) or isinstance(motion, SPLINES):
        found = type(motion).__name__
        raise InputError(
            f"`prescribed[{joint!r}]` is a {found}, and the joint a ball with a quaternion; expected a function "
            "t → (quaternion, angular velocity, angular acceleration)"
        )
    checked = _CheckedTurn(joint, motion)
    checked(first)
    return checked


@dataclass(frozen=True, eq=False)
class _Checked:
    """A function t → (q, v, a) of a joint, whose results are looked at."""

    joint: str
    given: Callable[[float], Any]

    def __call__(self, t: float) -> Array:
        where = f"prescribed[{self.joint!r}]"
        x = engine.real(where, self.given(t))
        if x.shape != (3,):
            raise InputError(f"`{where}` gives shape {x.shape} at t = {t:g} s; expected three numbers: q, v, a")
        if not np.isfinite(x).all():
            raise InputError(f"`{where}` gives q, v, a = {x.tolist()} at t = {t:g} s; expected finite numbers")
        return x


@dataclass(frozen=True, eq=False)
class _Spline:
    """A spline of one number and its first two derivatives, from one time to another.

    At `last`, the end of the simulation, derivatives are those from before: if a piece begins there, it is not met.
    """

    orders: tuple[Any, ...]
    begin: float
    end: float
    last: float

    def __call__(self, t: float) -> list[Any]:
        t = min(max(t, self.begin), self.end)
        before = np.nextafter(t, self.begin) if t == self.last else t
        return [self.orders[0](t), *(order(before) for order in self.orders[1:])]


def _motion(joint: str, motion: Any, first: float, last: float) -> _Checked:
    """A checked function t → (q, v, a)."""
    where = f"`prescribed[{joint!r}]`"
    if isinstance(motion, SPLINES):
        checked = _Checked(joint, _spline(where, copy.deepcopy(motion), first, last))
    elif callable(motion):
        checked = _Checked(joint, motion)
    else:
        found = type(motion).__name__
        raise InputError(f"{where} is a {found}; expected a SciPy spline of time, or a function t → (q, v, a)")
    checked(first)
    return checked


def _spline(where: str, spline: Any, first: float, last: float) -> _Spline:
    """A spline of one number, and its first two derivatives."""
    value = spline(first)
    if np.iscomplexobj(value) or np.shape(value) != ():
        found = "complex numbers" if np.iscomplexobj(value) else f"arrays of shape {np.shape(value)}"
        raise InputError(f"{where} is a spline of {found}; expected one real number for each time")
    if isinstance(spline, BSpline) and spline.k < 2:
        raise InputError(f"{where} is a spline of degree {spline.k}, whose speed jumps; expected degree 2 or more")
    begin, end = within(where, spline, first, last)
    meet = knots(spline)
    if spline.extrapolate == "periodic":
        period = meet[-1] - meet[0]
        met = meet + (np.floor((first - meet) / period) + 1) * period < last
        met[0] = False  # the end is the beginning
    else:
        met = (meet > first) & (meet < last)
    orders = (spline, spline.derivative(1), spline.derivative(2))
    for what, order in zip(("coordinate", "speed"), orders, strict=False):
        _check_smooth(f"{where} is a spline whose {what}", order, meet[met])
    return _Spline(orders, begin, end, last)


def _check_smooth(what: str, function: Any, knots: Array) -> None:
    if not knots.size:
        return
    after = function(knots)
    jumps = np.abs(after - function(np.nextafter(knots, -np.inf)))
    k = int(np.argmax(jumps))
    if jumps[k] > AGREE * max(1.0, np.abs(after).max()):
        where = f"by {jumps[k]:.3g} at t = {knots[k]:g} s"
        raise InputError(f"{what} jumps {where}, which takes an infinite force; expected it to be smooth")
