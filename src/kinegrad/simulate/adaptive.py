"""Simulation with error control, and sensitivities integrated with the state under the same control.

The state is (q, v); with p design parameters it is joined by dq/dp and dv/dp, whose rates are dv/dp and the total
da/dp of forward dynamics ([anderson2002] (4)–(5)): 1 + p rows of two numbers for each joint,

    y = [q v; dq/dp₁ dv/dp₁; …],    ẏ = [v a; dv/dp₁ da/dp₁; …].

Only free joints are integrated; those of a prescribed motion have it at any time, and it does not follow the design.

With quaternions there are four numbers of q to three speeds, and dq/dp is in the tangent: see
:mod:`kinegrad.simulate.turning`.

Without quaternions, implicit methods get the exact Jacobian of a row, repeated along the diagonal.  What it leaves
out, how the lower rows change with the first one, changes how Newton's method converges but not to what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import BDF, DOP853, LSODA, RK45, OdeSolution, Radau
from scipy.interpolate import make_interp_spline

from kinegrad import _engine as engine
from kinegrad.design import Design
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion, check_times
from kinegrad.simulate.law import Law, initial, initial_slope
from kinegrad.simulate.prescribed import Prescribed
from kinegrad.simulate.progress import telling
from kinegrad.simulate.torques import Constant, Spline
from kinegrad.simulate.turning import rate, tangent_rate
from kinegrad.simulate.watch import Watched

__all__ = ["Simulation", "simulate"]

Array = NDArray[np.float64]
EXPLICIT = {"DOP853": DOP853, "RK45": RK45}
LEAST_RTOL = 100 * float(np.finfo(float).eps)  # SciPy's
IMPLICIT = {"Radau": Radau, "BDF": BDF, "LSODA": LSODA}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Simulation(Motion):
    """A simulated motion at m times.

    It can be pickled, unless torques or prescribed motions are functions that cannot, such as a lambda.

    Attributes
    ----------
    model : Model
    t : ndarray, shape (m,)
        The times asked for, as far as the simulation got, s.
    q, v, a, tau : ndarray, shape (m, n)
        Coordinates, speeds, accelerations and torques; of prescribed joints their motion, and the torques it takes.
    design : Design, or None
    dq_dp, dv_dp, da_dp, dtau_dp : ndarray, shape (m, n, p), or None
        Their total derivatives with respect to the design's parameters; None without a design.
    success : bool
        Whether the end was reached.
    status : int
        0; −1 if the motion diverged; −2 if it was stopped: no progress in time, or `max_evaluations` used up.
    message : str
    nfev, njev, steps : int
        Evaluations of the law of motion and of its Jacobian, and accepted steps.
    """

    tau: Array
    design: Design | None = field(default=None, compare=False)  # the law compares its names and values
    success: bool
    status: int
    message: str
    nfev: int
    njev: int
    steps: int
    _law: Law
    _track: Track = field(compare=False)

    reported: ClassVar[tuple[str, ...]] = ("status", "message", "nfev", "njev", "steps")

    def __call__(self, t: ArrayLike) -> Simulation:
        """As :meth:`interpolate`."""
        return self.interpolate(t)

    def interpolate(self, t: ArrayLike) -> Simulation:
        """The same motion at other times within it, shape (k,): the integrator's own interpolation, as exact as it."""
        times = check_times(t)
        first, last = self._track.edges[0], self._track.edges[-1]
        if times[0] < first or times[-1] > last:
            found = f"from {times[0]:g} to {times[-1]:g} s"
            raise InputError(f"`t` goes {found}; this simulation from {first:g} to {last:g}")
        return _sample(self._law, self._track, times)

    def quadrature(self) -> tuple[Motion, Array]:
        """The motion at five Gauss points in each step, with their weights, for integrals over time."""
        return self.gauss(self._track.edges)


def simulate(
    model: Model,
    q0: ArrayLike,
    v0: ArrayLike,
    t: ArrayLike,
    *,
    tau: Any = None,
    loads: Loads | None = None,
    prescribed: Mapping[str, Any] | None = None,
    design: Design | None = None,
    dq0_dp: ArrayLike | None = None,
    dv0_dp: ArrayLike | None = None,
    method: str = "DOP853",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_step: float = np.inf,
    speed_limit: float = 1e6,
    max_evaluations: int | None = None,
    progress: bool | Callable[[float], None] | None = None,
) -> Simulation:
    """The motion from an initial state, with error control; with a design, how it changes with the parameters.

    Parameters
    ----------
    model : Model
    q0, v0 : array_like, shape (n,)
        Initial coordinates and speeds; at prescribed joints those of the motion, to 1e-9, or NaN.
    t : array_like, shape (m,)
        Increasing times to report, s; the simulation starts at the first and ends at the last.
    tau : optional
        Torques of the joints: None for zero; a constant, shape (n,); samples at the times `t`, shape (m, n), joined by
        a cubic spline; a SciPy spline of time; a function (t, q, v) → (n,); or a :class:`Feedback`, a function with its
        derivatives, which a design needs.
    loads : Loads, optional
        Constant in the world frame, their points moving with the links.
    prescribed : dict, optional
        From names of joints to motions that they follow whatever torque it takes, which ``tau`` of the result says
        (`tau` as given is ignored there).  A motion is a SciPy spline of time with scalar values, or a function
        t → (q, v, a); that v and a are the derivatives of q is not checked.  The motion of a ball with a quaternion is
        a function t → (quaternion, angular velocity, angular acceleration), the latter two in the child's frame.
    design : Design, optional
        Parameters of `model` to differentiate with respect to.
    dq0_dp, dv0_dp : array_like, shape (n, p), optional
        How the initial state follows the parameters; zero if not given, and at prescribed joints.
    method : {"DOP853", "RK45", "Radau", "BDF", "LSODA"}
        SciPy's integrators; the last three for stiff motion (hard springs and dampers).
    rtol, atol : float
        Relative and absolute tolerance, of sensitivities too.
    max_step : float
        Longest step, s: shorter than what happens suddenly in `tau` or in a prescribed motion.
    speed_limit : float
        A free joint faster than this, rad/s or m/s, counts as diverged.
    max_evaluations : int, optional
        Give up after so many evaluations of the law of motion.  Without it, only where 100 000 of them take the motion
        no further than a millionth of the time asked for.
    progress : bool or callable, optional
        True shows a bar on stderr; a function is called after each step with the part of the time done, 0 to 1.

    Returns
    -------
    Simulation
        If the motion diverged or was stopped, the part before that, with ``success`` False and why in ``message``.

    Raises
    ------
    SingularError
        If nothing resists a free joint, with the time at which.
    Exception
        Whatever `tau`, `prescribed` or `progress` raise comes through unchanged.

    Examples
    --------
    >>> from kinegrad import Design, samples
    >>> pendulum = samples.double_pendulum()
    >>> motion = simulate(pendulum, [1.0, 0.5], [0, 0], np.linspace(0, 2, 101), design=Design(pendulum, ["Q.mass"]))
    >>> motion.q[-1].round(6)
    array([-0.100143, -0.519545])
    >>> motion.dq_dp[-1, :, 0].round(6)
    array([-0.163286, -0.2878  ])

    A cart with a pendulum is driven to and fro: the force that takes, N.

    >>> drive = lambda t: (0.1 * np.sin(9 * t), 0.9 * np.cos(9 * t), -8.1 * np.sin(9 * t))
    >>> cart = samples.cart_pendulum()
    >>> motion = simulate(cart, [0, 0.5], [0.9, 0], np.linspace(0, 2, 5), prescribed={"track": drive})
    >>> motion.tau[:, 0].round(4)
    array([ 0.6191,  8.7306, -3.1053, -6.3894,  6.6647])
    """
    engine.one_of("method", method, EXPLICIT | IMPLICIT)
    times = check_times(t, least=2)
    numbers = {"rtol": rtol, "atol": atol, "max_step": max_step, "speed_limit": speed_limit}
    rtol, atol, max_step, speed_limit = (engine.positive(name, x) for name, x in numbers.items())
    if rtol < LEAST_RTOL:
        raise InputError(f"`rtol` is {rtol:.3g}; expected at least {LEAST_RTOL:.2g}, 100 times the machine epsilon")
    if max_evaluations is not None:
        engine.whole("max_evaluations", max_evaluations)
    engine.check_model(model)
    held = None if prescribed is None else Prescribed(model, prescribed, times[0], times[-1])
    span = (float(times[0]), float(times[-1]))
    law = Law(model, tau, lambda samples: _samples(model, times, samples), span, loads, design, held)
    y0 = _start(law, times[0], (q0, v0), (dq0_dp, dv0_dp))
    watched = Watched(lambda t, y: _rate(law, t, y), law, span, max_evaluations)
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "max_step": max_step}
    if method in IMPLICIT and law.exact and not law.turning:
        options["jac"] = watched.guard(lambda t, y: _jacobian(law, t, y, sparse=method != "LSODA"))
    with telling(progress, *span) as tell, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if not np.isfinite(_rate(law, span[0], y0)).all():
            start = f"at the start, t = {times[0]:g} s"
            raise InputError(f"`tau`, or its derivatives, are not finite {start}, or `q0` and `v0` are too large")
        integrator = (EXPLICIT | IMPLICIT)[method]
        solver = watched.unlimited(integrator, watched.rate, span[0], y0, span[1], **options)
        edges, pieces, status, trouble = [span[0]], [], 0, ""
        while solver.status == "running" and not trouble:
            status, trouble = watched.step(solver, speed_limit)
            if not trouble:
                edges.append(float(solver.t))
                pieces.append(watched.unlimited(solver.dense_output))
                tell(solver.t)
    track = Track(np.array(edges), y0, OdeSolution(edges, pieces) if pieces else None)
    track.report = {
        "success": not trouble, "status": status, "message": trouble or "reached the end",
        "nfev": int(solver.nfev), "njev": int(solver.njev), "steps": len(pieces),
    }  # fmt: skip
    return _sample(law, track, times[times <= edges[-1]])


def _start(law: Law, t: float, state: tuple[Any, Any], slopes: tuple[Any, Any]) -> Array:
    """The checked initial y."""
    model, held = law.model, law.prescribed
    names = ("q0", "v0")
    if held is not None:
        moving = held(t)
        state = (held.start("q0", state[0], moving[0]), held.start("v0", state[1], moving[1]))
    q, v = initial(model, *state, single=True)
    changes = [initial_slope(f"d{name}_dp", x, (model.nv,), law.design) for name, x in zip(names, slopes, strict=True)]
    if held is not None:
        for name, x in zip(names, changes, strict=True):
            held.check_still(f"d{name}_dp", x)
    dq, dv = (x[law.free] for x in changes)
    return np.concatenate([q[law.free_q], v[law.free], np.concatenate([dq, dv]).T.ravel()])


class Track:
    """What an integration leaves behind: the ends of its steps, its interpolation, what it reports."""

    def __init__(self, edges: Array, start: Array, between: OdeSolution | None) -> None:
        self.edges, self.start, self.between = edges, start, between
        self.report: dict[str, Any] = {}

    def __call__(self, t: Array) -> Array:
        """y, (len(t), (1 + p) 2f)."""
        if self.between is None:
            return np.broadcast_to(self.start, (len(t), len(self.start))).copy()
        y: Array = self.between(t).T
        y[t == self.edges[0]] = self.start
        return y


def _rate(law: Law, t: float, y: Array) -> Array:
    """ẏ: [anderson2002] (4)–(5)."""
    free = law.free
    q, v = law.whole(t, *_state(law, y))
    q_dot = rate(law.model, q, v)[law.free_q] if law.turning else v[free]
    if law.design is None:
        return np.concatenate([q_dot, law.acceleration(t, q, v)[0][free]])
    dq, dv = (law.whole_slope(x) for x in _slopes(law, y))
    a, _, da, _ = law.with_sensitivity(t, q, v, dq, dv)
    dq_dot = tangent_rate(law.model, v, dq, dv) if law.turning else dv
    return np.concatenate([q_dot, a[free], np.concatenate([dq_dot[free], da[free]]).T.ravel()])


def _state(law: Law, y: Array) -> tuple[Array, Array]:
    """q and v of the free joints, (..., f) each, or more of q with quaternions."""
    first, f = len(law.free_q), len(law.free)
    return y[..., :first], y[..., first : first + f]


def _jacobian(law: Law, t: float, y: Array, *, sparse: bool) -> Any:
    """∂ẏ/∂y without the second derivatives: the Jacobian of a row, repeated."""
    f = len(law.free)
    rows = len(y) // (2 * f)
    da_dq, da_dv = law.jacobian(t, *law.whole(t, *_state(law, y)))
    one = np.block([[np.zeros((f, f)), np.eye(f)], [da_dq, da_dv]])
    if rows == 1:
        return one
    return scipy.sparse.block_diag([one] * rows, format="csc") if sparse else np.kron(np.eye(rows), one)


def _slopes(law: Law, y: Array) -> tuple[Array, Array]:
    """dq/dp and dv/dp of the free joints, (..., f, p); of quaternions in the tangent."""
    f = len(law.free)
    lower = y[..., len(law.free_q) + f :].reshape(*y.shape[:-1], -1, 2 * f).swapaxes(-1, -2)
    return lower[..., :f, :], lower[..., f:, :]


def _sample(law: Law, track: Track, t: Array) -> Simulation:
    """Everything there is to know at times `t`."""
    y = track(t)
    q, v = (np.array(x) for x in zip(*map(law.whole, t.tolist(), *_state(law, y)), strict=True))
    a, tau = (np.array(x) for x in zip(*map(law.acceleration, t.tolist(), q, v), strict=True))
    slopes: tuple[Array | None, Array | None, Array | None, Array | None] = (None, None, None, None)
    if law.design is not None:
        dq, dv = (law.whole_slope(x.copy()) for x in _slopes(law, y))
        da, dtau = (np.array(x) for x in zip(*map(law.sensitivity, t.tolist(), q, v, tau, dq, dv), strict=True))
        slopes = (dq, dv, da, dtau)
    names = ("dq_dp", "dv_dp", "da_dp", "dtau_dp")
    motion: dict[str, Any] = {"tau": tau, "design": law.design, **dict(zip(names, slopes, strict=True))}
    return Simulation(law.model, t.copy(), q, v, a, **motion, **track.report, _law=law, _track=track)


def _samples(model: Model, times: Array, samples: Any) -> Callable[[int, float], Array]:
    """A constant, or a cubic spline through samples (of lower degree where there are fewer than four)."""
    tau = engine.real("tau", samples)
    if not np.isfinite(tau).all():
        raise engine.not_finite("tau", tau)
    if tau.shape == (model.nv,):
        return Constant(tau)
    if tau.shape != (len(times), model.nv):
        expected = f"({model.nv},) for a constant, or ({len(times)}, {model.nv}) for samples at `t`"
        raise InputError(f"`tau` has shape {tau.shape}; expected {expected}")
    spline = make_interp_spline(times, tau, k=min(3, len(times) - 1))
    return Spline(spline, times[0], times[-1])
