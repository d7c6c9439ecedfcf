"""The law of motion a = f(t, q, v) that integrators follow, and its derivatives: forward dynamics
with the torques that act.

Torques may be a constant, samples, a spline, or a function of time and state (:class:`Feedback`).  Joints may follow a
prescribed motion: hybrid dynamics then gives the accelerations of the others, whose state alone is integrated, and the
torques that the motion takes.  Whatever overflows becomes NaN here, so that an integrator can find out where a motion
diverged.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.design import Design
from kinegrad.design.dynamics import forward_dynamics_along, forward_dynamics_design_derivatives
from kinegrad.design.hybrid import hybrid_dynamics_along, hybrid_dynamics_design_derivatives
from kinegrad.design.running import loads_of
from kinegrad.dynamics import forward_dynamics
from kinegrad.errors import InputError, SingularError
from kinegrad.forward_derivatives import forward_dynamics_derivatives
from kinegrad.hybrid import hybrid_dynamics
from kinegrad.hybrid_derivatives import hybrid_dynamics_derivatives
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion.splines import SPLINES, within
from kinegrad.results import Result, owned
from kinegrad.simulate.design_motion import check_design
from kinegrad.simulate.prescribed import Prescribed
from kinegrad.simulate.torques import Constant, OneOf, Spline

__all__ = ["Feedback", "Law"]

Array = NDArray[np.float64]
Function = Callable[[float, Array, Array], ArrayLike]
FASTEST = 1e150  # speeds whose squares are finite
Held = Callable[[Any], Callable[[int, float], Array]]


@dataclass(frozen=True, eq=False)
class Feedback(Result):
    """Torques that follow time and state, with the derivatives that sensitivities need.

    Parameters
    ----------
    function : callable (t, q, v) → τ, shape (..., n)
    dtau_dq, dtau_dv : callable (t, q, v) → shape (..., n, n), or None
        Its partial derivatives; None says that τ does not depend on q, or on v.

    Examples
    --------
    A spring of 20 N·m/rad with a damper, on both joints:

    >>> pd = Feedback(lambda t, q, v: -20 * q - 2 * v, lambda t, q, v: -20 * np.eye(2), lambda t, q, v: -2 * np.eye(2))
    >>> pd.function(0.0, np.ones(2), np.zeros(2))
    array([-20., -20.])
    """

    function: Function
    dtau_dq: Function | None
    dtau_dv: Function | None

    def __post_init__(self) -> None:
        for name, part in vars(self).items():
            if not (callable(part) or (part is None and name != "function")):
                found = type(part).__name__
                raise InputError(f"`{name}` of a Feedback is a {found}; expected a function of (t, q, v)")


class Law:
    """a = f(t, q, v) of a model under torques and loads, for states of any batch shape.

    It keeps copies of all arrays and splines it is given: what a caller does to them later changes no finished motion.

    Parameters
    ----------
    model : Model
    tau : None, array, spline, Feedback or function
    held : callable
        Turns an array of samples into a function (step, t) → τ: how samples are read is the integrator's choice.
    span : (float, float)
        When the motion begins and ends, s.
    loads : Loads, optional
        Constant in the world frame.
    design : Design, optional
    prescribed : Prescribed, optional
        Joints that follow given motions, whatever torque that takes.
    """

    def __init__(
        self,
        model: Model,
        tau: Any,
        held: Held,
        span: tuple[float, float],
        loads: Loads | None,
        design: Design | None,
        prescribed: Prescribed | None = None,
    ) -> None:
        engine.check_model(model)
        check_design(model, design)
        if design is not None:
            loads = loads_of(design, loads)
        if loads is not None:
            if not isinstance(loads, Loads):
                raise InputError(f"`loads` is a {type(loads).__name__}; expected Loads(force=…, point=…, torque=…)")
            for what, x in loads.arrays(model).items():
                if x.ndim > 2:
                    raise InputError("`loads` has batch axes; expected one constant load on each link: (n, 3)")
                if not np.isfinite(x).all():
                    raise engine.not_finite(f"loads.{what}", x)
        tau = own_torques(tau)
        self.model, self.loads, self.design, self.given, self.prescribed = model, loads, design, tau, prescribed
        self.free = np.arange(model.nv) if prescribed is None else prescribed.free
        self.free_q = np.arange(model.nq) if prescribed is None else prescribed.free_q
        self.turning = bool(model.layout.balls) if model.coordinates else False
        self.feedback, self.exact = None, True
        self._given: Callable[[int, float], Any]
        if isinstance(tau, Feedback):
            self.feedback = tau
        elif isinstance(tau, SPLINES):
            self._given = Spline(tau, *within("`tau`", tau, *span))
        elif callable(tau):
            if design is not None:
                raise InputError(
                    "`tau` is a function and a `design` is given: the motion changes with the design, and the torque "
                    "with the motion, so its derivatives are needed; expected Feedback(function, dtau_dq, dtau_dv), "
                    "where None says that it does not depend on q or on v"
                )
            self.feedback, self.exact = Feedback(tau, None, None), False
        else:
            self._given = held(np.zeros(model.nv) if tau is None else tau)

    @cached_property
    def inertial(self) -> Model:
        """The model with nothing but its inertia: no gravity, springs or dampers."""
        zero = np.zeros(self.model.n)
        return self.model.replace(gravity=np.zeros(3), stiffness=zero, damping=zero, elements={})

    @property
    def damping(self) -> Array:
        """Of speeds, (nv,), where it does not change with the configuration: coupled joints must have none."""
        return np.zeros(self.model.nv) if self.model.coordinates else self.model.damping

    def without_torques(self) -> Law:
        """What finished motions keep of it, where nothing is evaluated again: functions may not be fit for pickling."""
        law = copy.copy(self)
        law.given, law.feedback, law._given = None, None, Constant(np.zeros(self.model.nv))
        law.prescribed = None
        return law

    def __eq__(self, other: object) -> bool:
        """Of the same model and parameters: what torques there were, and what parameters do, shows in the motion."""
        if not isinstance(other, Law):
            return NotImplemented
        names, values = zip(
            *(((), ()) if x.design is None else (x.design.names, x.design.values) for x in (self, other)), strict=True
        )
        return self.model == other.model and names[0] == names[1] and np.array_equal(*values)

    def of(self, model: Model, k: int, count: int) -> Law:
        """The same law for another model, the k-th of `count`."""
        law = copy.copy(self)
        law.__dict__.pop("inertial", None)
        law.model, law._given = model, OneOf(self._given, k, count)
        return law

    def whole(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """q, (nq,), and v, (nv,), of all joints, from those of the free ones and the prescribed motion."""
        if self.prescribed is None:
            return self.normalised(q), v.copy()
        moving = self.prescribed(t)
        all_q, all_v = np.empty(self.model.nq), np.empty(self.model.nv)
        all_q[self.free_q], all_q[self.prescribed.held_q] = q, moving[0]
        all_v[self.free], all_v[self.prescribed.held] = v, moving[1]
        return self.normalised(all_q), all_v

    def normalised(self, q: Array) -> Array:
        """A copy of q with quaternions divided by their lengths."""
        q = q.copy()
        if self.turning:
            for _, k, _ in self.model.layout.balls:
                q[..., k : k + 4] = engine.unit(q[..., k : k + 4])
        return q

    def whole_slopes(self, t: float, dq: Array, dv: Array) -> tuple[Array, Array]:
        """dq/dp and dv/dp of all joints, (n, p), from those of the free ones and of the prescribed motion."""
        if self.prescribed is None:
            return dq, dv
        full = np.zeros((2, self.model.nv, dq.shape[-1]))
        full[:, self.free] = dq, dv
        full[:, self.prescribed.held] = self.prescribed.slopes(t)[:2]
        return full[0], full[1]

    def imposed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """q, (..., nq), and v, (..., nv), with those of prescribed joints from their motion."""
        if self.prescribed is None:
            return q, v
        moving, q, v = self.prescribed(t), q.copy(), v.copy()
        q[..., self.prescribed.held_q], v[..., self.prescribed.held] = moving[:2]
        return q, v

    def imposed_slopes(self, t: float, dq: Array, dv: Array) -> tuple[Array, Array]:
        """dq/dp and dv/dp, (..., nv, p), with those of prescribed joints from their motion."""
        if self.prescribed is None or not self.prescribed.p:
            return dq, dv
        moving, dq, dv = self.prescribed.slopes(t), dq.copy(), dv.copy()
        dq[..., self.prescribed.held, :], dv[..., self.prescribed.held, :] = moving[:2]
        return dq, dv

    def released(self, t: float, by_q: Array, by_v: Array, by_p: Array | None, by_a: Array | None = None) -> None:
        """Turn gradients with respect to q, v and a, (..., nv), of prescribed joints into those by parameters."""
        if self.prescribed is None:
            return
        held = self.prescribed.held
        for k, by in enumerate((by_q, by_v, by_a)):
            if by is not None:
                if by_p is not None and self.prescribed.following:
                    by_p += by[..., held] @ self.prescribed.slopes(t)[k]
                by[..., held] = 0.0

    def torques(self, t: float, q: Array, v: Array, step: int = 0) -> Array:
        """τ at one time, for all states; zero at prescribed joints."""
        # copies both ways: a function may change what it is given, and use again what it returns
        given = self._given(step, t) if self.feedback is None else self.feedback.function(t, q.copy(), v.copy())
        tau = self.as_torques(given, t, v.shape)
        if self.prescribed is not None:
            tau[..., self.prescribed.held] = 0.0
        return tau

    def as_torques(self, given: Any, t: float, shape: tuple[int, ...]) -> Array:
        """A fresh array of that shape, of what a function, samples or a spline give."""
        return _broadcast("`tau`", engine.real("tau", given), t, shape)

    def gains(self, t: float, q: Array, v: Array) -> tuple[Array, Array] | None:
        """∂τ/∂q and ∂τ/∂v, (..., n, n), or None if τ does not follow the state."""
        if self.feedback is None:
            return None
        shape = (*v.shape, v.shape[-1])
        parts = []
        for name, part in (("dtau_dq", self.feedback.dtau_dq), ("dtau_dv", self.feedback.dtau_dv)):
            given = np.zeros(shape) if part is None else engine.real(name, part(t, q.copy(), v.copy()))
            parts.append(_broadcast(f"`{name}`", given, t, shape))
        return parts[0], parts[1]

    def acceleration(self, t: float, q: Array, v: Array, step: int = 0) -> tuple[Array, Array]:
        """a and τ, (..., n), τ of prescribed joints included; NaN where the state is not finite."""
        return self.under(t, q, v, self.torques(t, q, v, step))

    def under(self, t: float, q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """The same under torques that are known, (..., n)."""
        given, good = self._prescribed_acceleration(t), self._fit(q, v, tau)
        try:
            if good.all():
                return self._forward(q, v, tau, given)
            a, all_tau = np.full(v.shape, np.nan), tau.copy()
            a[good], all_tau[good] = self._forward(q[good], v[good], tau[good], given)
        except SingularError as error:
            raise SingularError(f"at t = {t:.6g} s {error}") from error
        return a, all_tau

    def _fit(self, q: Array, v: Array, tau: Array) -> NDArray[np.bool_]:
        """Which states are finite, and in joints, too: v enters them squared where coordinates are not joints."""
        good = finite(q, v, tau)
        return good & (np.abs(v) < FASTEST).all(axis=-1) if self.model.coordinates else good

    @engine.overflow_passes()
    def _forward(self, q: Array, v: Array, tau: Array, given: Array) -> tuple[Array, Array]:
        """a and τ of finite states; `given` is a of the prescribed joints."""
        if self.prescribed is None:
            return forward_dynamics(self.model, q, v, tau, loads=self.loads), tau
        names = self.prescribed.names
        result = hybrid_dynamics(self.model, q, v, tau, given, prescribed=names, loads=self.loads)
        return result.a, result.tau

    def _prescribed_acceleration(self, t: float) -> Array:
        """a of the prescribed joints, zero at the others, (n,)."""
        given = np.zeros(self.model.nv)
        if self.prescribed is not None:
            given[self.prescribed.held] = self.prescribed(t)[2]
        return given

    def _prescribed_slope(self, t: float) -> Array | None:
        """da/dp of the prescribed joints, zero at the others, (n, p); None if there is none."""
        if self.prescribed is None or not self.prescribed.following:
            return None
        given = np.zeros((self.model.nv, self.prescribed.p))
        given[self.prescribed.held] = self.prescribed.slopes(t)[2]
        return given

    def with_sensitivity(
        self, t: float, q: Array, v: Array, dq: Array, dv: Array, step: int = 0
    ) -> tuple[Array, Array, Array, Array]:
        """a, τ, and total da/dp and dτ/dp, where the state follows p as dq, dv do: in one pass if all is finite."""
        assert self.design is not None
        tau = self.torques(t, q, v, step)
        dtau = self._torque_slopes(t, q, v, dq, dv)
        if not self.design.p or not (self._fit(q, v, tau) & finite_slopes(dq, dv, dtau)).all():
            a, tau = self.acceleration(t, q, v, step)
            return a, tau, *self.sensitivity(t, q, v, tau, dq, dv)
        try:
            return self._along(t, q, v, tau, dq, dv, dtau)
        except SingularError as error:
            raise SingularError(f"at t = {t:.6g} s {error}") from error

    @engine.overflow_passes()
    def _along(
        self, t: float, q: Array, v: Array, tau: Array, dq: Array, dv: Array, dtau: Array
    ) -> tuple[Array, Array, Array, Array]:
        """a, τ, da/dp and dτ/dp of finite states and slopes."""
        assert self.design is not None
        if self.prescribed is None:
            a, da = forward_dynamics_along(self.design, (q, v, tau), (dq, dv, dtau), self.loads)
            return a, tau, da, dtau
        state, names = (q, v, tau, self._prescribed_acceleration(t)), self.prescribed.names
        follow = (dq, dv, dtau, self._prescribed_slope(t))
        found, change = hybrid_dynamics_along(self.design, state, follow, names, self.loads)
        return found.a, found.tau, change.da_dp, change.dtau_dp

    def _torque_slopes(self, t: float, q: Array, v: Array, dq: Array, dv: Array) -> Array:
        """Total dτ/dp of the free joints, zero at the others, (..., n, p)."""
        gains = self.gains(t, q, v)
        dtau = np.zeros_like(dq) if gains is None else gains[0] @ dq + gains[1] @ dv
        if self.prescribed is not None:
            dtau[..., self.prescribed.held, :] = 0.0
        return dtau

    @engine.overflow_passes()
    def sensitivity(self, t: float, q: Array, v: Array, tau: Array, dq: Array, dv: Array) -> tuple[Array, Array]:
        """Total da/dp and dτ/dp, (..., n, p), where the state follows p as dq, dv do.  [anderson2002] (9)"""
        assert self.design is not None
        dtau = self._torque_slopes(t, q, v, dq, dv)
        good = self._fit(q, v, tau) & finite_slopes(dq, dv, dtau)
        da = np.full(dq.shape, np.nan)
        state = q[good], v[good], tau[good]
        slopes: dict[str, Any] = {"dq_dp": dq[good], "dv_dp": dv[good], "dtau_dp": dtau[good]}
        if self.prescribed is None:
            da[good] = forward_dynamics_design_derivatives(self.design, *state, loads=self.loads, **slopes)
        else:
            given, names = self._prescribed_acceleration(t), self.prescribed.names
            slopes["da_dp"] = self._prescribed_slope(t)
            change = hybrid_dynamics_design_derivatives(
                self.design, *state, given, prescribed=names, loads=self.loads, **slopes
            )
            da[good], dtau[good] = change.da_dp, change.dtau_dp
        return da, dtau

    def derivatives(self, q: Array, v: Array, tau: Array, a: Array | None = None) -> Any:
        """a, da/dq, da/dv and da/dτ at given torques; with prescribed joints, whose accelerations are in `a`, also
        those by `a` and of τ."""
        if self.prescribed is not None and a is not None:
            names = self.prescribed.names
            return hybrid_dynamics_derivatives(self.model, q, v, tau, a, prescribed=names, loads=self.loads)
        return forward_dynamics_derivatives(self.model, q, v, tau, loads=self.loads)

    def drawn(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Where a step that led to (q, v) ends: constraints draw states to them."""
        return q, v

    def drawn_along(self, q: Array, v: Array, dq: Array, dv: Array) -> tuple[Array, Array, Array, Array]:
        """The same with its exact derivative."""
        return q, v, dq, dv

    @engine.overflow_passes()
    def jacobian(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """da/dq and da/dv of the free joints of one state, feedback included, (f, f) each."""
        tau = self.torques(t, q, v)
        if not self._fit(q, v, tau):
            return np.zeros((len(self.free), len(self.free))), np.zeros((len(self.free), len(self.free)))
        gains, free = self.gains(t, q, v), np.ix_(self.free, self.free)
        change = self.derivatives(q, v, tau, self._prescribed_acceleration(t))
        by_q, by_v = change.da_dq, change.da_dv
        if gains is not None:
            by_q, by_v = by_q + change.da_dtau @ gains[0], by_v + change.da_dtau @ gains[1]
        return by_q[free], by_v[free]


def own_torques(tau: Any) -> Any:
    """Copies of arrays and splines; functions as they are."""
    if isinstance(tau, SPLINES):
        return copy.deepcopy(tau)
    return tau if callable(tau) or isinstance(tau, Feedback) else owned(tau)


def _broadcast(what: str, given: Array, t: float, shape: tuple[int, ...]) -> Array:
    """A fresh array of the shape, of what a function or spline gives."""
    core = -2 if what != "`tau`" else -1
    try:
        if given.shape[core:] != shape[core:]:
            raise ValueError
        return np.array(np.broadcast_to(given, shape))
    except ValueError:
        raise InputError(f"{what} gives shape {given.shape} at t = {t:g}; expected {shape}") from None


def finite(*arrays: Array) -> NDArray[np.bool_]:
    """Whether all numbers of each state are, shape (...)."""
    good: NDArray[np.bool_] = np.logical_and.reduce([np.isfinite(x).all(axis=-1) for x in arrays])
    return good


def finite_slopes(*arrays: Array) -> NDArray[np.bool_]:
    """The same of slopes, (..., n, p)."""
    good: NDArray[np.bool_] = np.logical_and.reduce([np.isfinite(x).all(axis=(-2, -1)) for x in arrays])
    return good


def initial(model: Model, q0: Any, v0: Any, *, single: bool) -> tuple[Array, Array]:
    """Checked copies of the initial state, of one shape."""
    if engine.mapped(model):
        _, batch_shape = engine.check_arguments(model, {"q0": q0, "v0": v0})
    else:
        batch = engine.Batch(model, {"q0": q0, "v0": v0})
        batch.check_finite()
        batch_shape = batch.shape
    if single and batch_shape:
        raise InputError(f"`q0` and `v0` have batch shape {batch_shape}; expected ({model.nv},): see simulate_fixed")
    q, v = (
        np.broadcast_to(engine.real(name, x), (*batch_shape, width)).copy()
        for name, x, width in (("q0", q0, model.nq), ("v0", v0, model.nv))
    )
    return q, v


def initial_slope(name: str, value: Any, shape: tuple[int, ...], design: Design | None) -> Array:
    """A checked copy of dq0_dp or dv0_dp, (..., n, p)."""
    full = (*shape, 0 if design is None else design.p)
    if value is None:
        return np.zeros(full)
    if design is None:
        raise InputError(f"`{name}` is given without a `design`; expected both, or neither")
    x = engine.real(name, value)
    if not np.isfinite(x).all():
        raise engine.not_finite(name, x)
    try:
        return np.broadcast_to(x, full).copy()
    except ValueError:
        raise InputError(f"`{name}` has shape {x.shape}; expected {full}") from None


def diverged(model: Model, t: float, v: Array, why: str) -> str:
    """One sentence with the time and the joint, from the last speeds of one state."""
    speed = np.where(np.isfinite(v), np.abs(v), np.inf)
    joint = int(np.argmax(speed))
    return f"diverged at t = {t:.6g} s in joint {model.speed_names[joint]!r} (speed {v[joint]:.3g}): {why}"
