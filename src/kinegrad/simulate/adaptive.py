"""Simulation with error control, and sensitivities integrated with the state under the same control.

What integrators see of a motion is in :mod:`kinegrad.simulate.track`, how they are driven in
:mod:`kinegrad.simulate.stretches`.

Without quaternions, implicit methods get the exact Jacobian of a row, repeated along the diagonal.  What it leaves
out, how the lower rows change with the first one, changes how Newton's method converges but not to what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import BDF, DOP853, LSODA, RK45, Radau
from scipy.interpolate import make_interp_spline

from kinegrad import _engine as engine
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.assembly import check_set
from kinegrad.design import Design
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion, check_times
from kinegrad.simulate.constrained_law import ConstrainedLaw, check_unconstrained
from kinegrad.simulate.contacts import ImpactEvent, Phase, UnilateralContact, check_contacts
from kinegrad.simulate.law import Law, initial, initial_slope
from kinegrad.simulate.prescribed import Prescribed
from kinegrad.simulate.progress import telling
from kinegrad.simulate.projection import check_project
from kinegrad.simulate.stiffness import stiff_method
from kinegrad.simulate.stretches import Integration
from kinegrad.simulate.switching import Contacts
from kinegrad.simulate.torques import Constant, Spline
from kinegrad.simulate.track import Stretch, Track, pack, rate_of, slopes_of, state_of
from kinegrad.simulate.unfinished import check_unfinished, noticed

__all__ = ["Simulation", "simulate"]

Array = NDArray[np.float64]
EXPLICIT = {"DOP853": DOP853, "RK45": RK45}
LEAST_RTOL = 100 * float(np.finfo(float).eps)  # SciPy's
IMPLICIT = {"Radau": Radau, "BDF": BDF, "LSODA": LSODA}
UNDRAWN = ("BDF", "LSODA")  # they go on from several states before


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
    forces : ndarray, shape (m, k), or None
        Of the constraints, N or N·m; None without them.
    row_names : tuple of str
        Of the rows of the constraints.
    phases : tuple of Phase
        From when to when which of the `contacts` were closed.
    impacts : tuple of ImpactEvent
    success : bool
        Whether the end was reached.
    status : int
        0; −1 if the motion diverged; −2 if it was stopped: no progress in time, `max_evaluations` used up, or rows of
        the constraints become dependent.
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
    phases: tuple[Phase, ...] = ()
    impacts: tuple[ImpactEvent, ...] = ()
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

    def jumps(self) -> list[tuple[Motion, Motion, Array]]:
        """Impacts: the moment before, the moment after, and how their time follows the parameters."""
        found = []
        for x in self.impacts:
            if x.dt_dp is not None:
                rates = ((x.v_before, x.a_before, x.tau_before), (x.v_after, x.a_after, x.tau_after))
                sides = (Motion(self.model, [x.t], x.q[None], *(y[None] for y in side)) for side in rates)  # type: ignore[arg-type]
                found.append((*sides, x.dt_dp))
        return found  # type: ignore[return-value]


def simulate(
    model: Model,
    q0: ArrayLike,
    v0: ArrayLike,
    t: ArrayLike,
    *,
    tau: Any = None,
    loads: Loads | None = None,
    prescribed: Mapping[str, Any] | None = None,
    constraints: ConstraintSet | None = None,
    stabilisation: float | tuple[float, float] | None = None,
    redundant: str = "error",
    project: bool = False,
    contacts: Iterable[UnilateralContact] | None = None,
    sticking_speed: float = 1e-3,
    design: Design | None = None,
    dq0_dp: ArrayLike | None = None,
    dv0_dp: ArrayLike | None = None,
    method: str = "auto",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_step: float = np.inf,
    speed_limit: float = 1e6,
    max_evaluations: int | None = None,
    progress: bool | Callable[[float], None] | None = None,
    unfinished: str = "warn",
) -> Simulation:
    """Simulate the motion from an initial state, with error control; with a design, also its sensitivities.

    Parameters
    ----------
    model : Model
    q0, v0 : array_like, shape (n,)
        Initial coordinates and speeds; at prescribed joints they must agree with the motion to 1e-9, or be NaN.
    t : array_like, shape (m,)
        Increasing times to report, s; the simulation starts at the first and ends at the last.
    tau : optional
        Torques of the joints: None for zero; a constant, shape (n,); samples at the times `t`, shape (m, n),
        interpolated by a cubic spline; a SciPy spline of time; a function (t, q, v) → (n,); or a :class:`Feedback`, a
        function with its derivatives, which is required with a design.
    loads : Loads, optional
        Constant in the world frame, their points moving with the links.
    prescribed : dict, optional
        Motions of joints, by their names.  ``tau`` of the result contains the torques that they need; the argument
        `tau` is ignored for these joints.  A motion is a SciPy spline of time with scalar values, or a function
        t → (q, v, a); it is not checked that v and a are the derivatives of q.  The motion of a ball joint with a
        quaternion is a function t → (quaternion, angular velocity, angular acceleration), the latter two in the child's
        frame.
    constraints : ConstraintSet, optional
        Constraints that hold at all times.  After each step, and at the reported times, the state is projected onto
        φ = 0 and G v = 0 by the smallest change in the metric of the mass matrix, to rounding; ``forces`` of the result
        are those of the constraints.  With `prescribed`, prescribed
        joints are not moved by it.  With "BDF" and "LSODA" only if stabilised.
    stabilisation : float or (float, float), optional
        Instead of the projection, let errors decay: φ̈ + 2α φ̇ + β² φ = 0 with rates (α, β), or one for both, 1/s.
    redundant : {"error", "least-squares"}
        What to do with redundant rows of the constraints: refuse them by name, or choose the forces of least norm, as
        in :func:`constrained_dynamics`.
    project : bool
        Whether to project an initial state that violates the constraints by more than 1e-8 m or rad (or m/s, rad/s)
        instead of refusing it.
    contacts : iterable of UnilateralContact, optional
        Contacts that open and close.  The time of touch-down is found within the step; all contacts that touch at that
        time take part in one impact.  A contact opens when its normal force becomes zero.
    sticking_speed : float
        m/s.  A contact that closes more slowly remains closed, whatever its restitution, so that bouncing ends.
    design : Design, optional
        Parameters of `model` to differentiate with respect to.
    dq0_dp, dv0_dp : array_like, shape (n, p), optional
        Derivatives of the initial state with respect to the parameters; zero if not given, and at prescribed joints.
    method : {"auto", "DOP853", "RK45", "Radau", "BDF", "LSODA"}
        SciPy's integrators; the last three are for stiff motion (stiff springs, strong dampers).  "auto" starts with
        DOP853 and changes to LSODA (with constraints or a design, to Radau) if stability and not accuracy limits the
        steps; ``message`` of the result says so.
    rtol, atol : float
        Relative and absolute tolerance, also of sensitivities.
    max_step : float
        Longest step, s; choose it shorter than sudden changes of `tau` or of a prescribed motion.
    speed_limit : float
        A free joint faster than this, rad/s or m/s, counts as diverged.
    max_evaluations : int, optional
        Largest number of evaluations of the accelerations.  By default the simulation is stopped only if 100 000 of
        them advance the motion by less than a millionth of the simulated time.
    progress : bool or callable, optional
        True shows a bar on stderr; a function is called after each step with the part of the time done, 0 to 1.
    unfinished : {"warn", "raise", "ignore"}
        What to do if the motion diverges or is stopped: issue an :class:`~kinegrad.UnfinishedWarning`, raise a
        SolveError, or nothing.

    Returns
    -------
    Simulation
        If the motion diverged or was stopped, the part before, with ``success`` False and the reason in ``message``.

    Raises
    ------
    SingularError
        If a free joint has no inertia; the message contains the time.
    Exception
        Exceptions of `tau`, `prescribed` and `progress` are passed on unchanged.

    Examples
    --------
    >>> from kinegrad import Design, samples
    >>> pendulum = samples.double_pendulum()
    >>> motion = simulate(pendulum, [1.0, 0.5], [0, 0], np.linspace(0, 2, 101), design=Design(pendulum, ["Q.mass"]))
    >>> motion.q[-1].round(6)
    array([-0.100143, -0.519545])
    >>> motion.dq_dp[-1, :, 0].round(6)
    array([-0.163286, -0.2878  ])

    A cart with a pendulum is driven to and fro; this is the force that the drive needs, in N:

    >>> drive = lambda t: (0.1 * np.sin(9 * t), 0.9 * np.cos(9 * t), -8.1 * np.sin(9 * t))
    >>> cart = samples.cart_pendulum()
    >>> motion = simulate(cart, [0, 0.5], [0.9, 0], np.linspace(0, 2, 5), prescribed={"track": drive})
    >>> motion.tau[:, 0].round(4)
    array([ 0.6191,  8.7306, -3.1053, -6.3894,  6.6647])

    A four-bar linkage falls; its loop stays closed:

    >>> model, loop = samples.four_bar()
    >>> motion = simulate(model, [0, 0, 0], [0, 0, 0], [0, 0.5, 1], constraints=loop)
    >>> motion.row_names, bool(abs(loop.error(motion.q)).max() < 1e-14)
    (('pin.x', 'pin.z'), True)

    A ball falls from 1 m and bounces until it rests:

    >>> from kinegrad import Contact, Inertia, ModelBuilder, prismatic
    >>> builder = ModelBuilder("ball")
    >>> _ = builder.add("height", None, prismatic("z"), link="ball", inertia=Inertia.point(0.1, [0, 0, 0]))
    >>> floor = UnilateralContact(Contact("ball", directions="z", name="floor"), restitution=0.5)
    >>> motion = simulate(builder.build(), [1.0], [0.0], [0, 0.5, 1, 2], contacts=[floor])
    >>> len(motion.impacts), motion.impacts[0].impulses.round(4), motion.phases[-1].closed, motion.forces[-1].round(3)
    (14, array([0.6644]), ('floor',), array([0.981]))
    """
    engine.one_of("method", method, ["auto", *EXPLICIT, *IMPLICIT])
    check_unfinished(unfinished)
    times = check_times(t, least=2)
    numbers = {"rtol": rtol, "atol": atol, "max_step": max_step, "speed_limit": speed_limit}
    rtol, atol, max_step, speed_limit = (engine.positive(name, x) for name, x in numbers.items())
    if rtol < LEAST_RTOL:
        raise InputError(f"`rtol` is {rtol:.3g}; expected at least {LEAST_RTOL:.2g}, 100 times the machine epsilon")
    if max_evaluations is not None:
        engine.whole("max_evaluations", max_evaluations)
    engine.check_model(model)
    span = (float(times[0]), float(times[-1]))
    given = (model, tau, lambda samples: _samples(model, times, samples), span, loads, design)
    law: Law
    check_project(project, constraints)
    switching = None
    if contacts is not None:
        if prescribed is not None:
            raise InputError("`prescribed` and `contacts` are given; expected one of them")
        constraints = ConstraintSet(model, []) if constraints is None else constraints
    driven = None if prescribed is None else Prescribed(model, prescribed, *span, design)
    if constraints is None:
        check_unconstrained(stabilisation, redundant)
        law = Law(*given, driven)
    else:
        _check_constrained(model, constraints, method, stabilisation)
        law = ConstrainedLaw(*given, constraints, stabilisation, redundant, driven)
        if contacts is not None:
            switching = Contacts(law, check_contacts(contacts), engine.positive("sticking_speed", sticking_speed))
    y0 = _start(law, times[0], (q0, v0), (dq0_dp, dv0_dp), project)
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "max_step": max_step}
    exact = method in IMPLICIT and law.exact and not law.turning
    stiff = None
    if method == "auto":
        later = stiff_method(constrained=constraints is not None, sensitivities=design is not None)
        stiff = (IMPLICIT[later], options | {"exact": law.exact and not law.turning}, later)
        method = "DOP853"
    integration = Integration(
        law, span, (EXPLICIT | IMPLICIT)[method], options, exact=exact, sparse=method != "LSODA",
        speed_limit=speed_limit, most=max_evaluations, switching=switching, stiff=stiff,
    )  # fmt: skip
    with telling(progress, *span) as tell, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if not np.isfinite(rate_of(law, span[0], y0)).all():
            start = f"at the start, t = {times[0]:g} s"
            raise InputError(f"`tau`, or its derivatives, are not finite {start}, or `q0` and `v0` are too large")
        track = integration.run(y0, tell)
    if switching is not None:
        track.report |= {"phases": switching.told(float(track.edges[-1])), "impacts": tuple(switching.impacts)}
        track.report["message"] = "; ".join([track.report["message"], *switching.notes])
    return noticed(_sample(law, track, times[times <= track.edges[-1]]), unfinished)


def _check_constrained(
    model: Model, constraints: Any, method: str, stabilisation: Any
) -> None:  # fmt: skip
    """Refuse what does not go together with constraints."""
    check_set(model, constraints)
    if stabilisation is None and method in UNDRAWN:
        raise InputError(
            f"`method` is {method!r}, whose past states cannot be drawn onto constraints; expected 'auto', 'DOP853', "
            "'RK45' or 'Radau', or `stabilisation`"
        )


def _start(law: Law, t: float, state: tuple[Any, Any], slopes: tuple[Any, Any], project: bool) -> Array:
    """The checked initial y."""
    model, held = law.model, law.prescribed
    names = ("q0", "v0")
    if held is not None:
        moving = held(t)
        state = (held.start("q0", state[0], moving[0]), held.start("v0", state[1], moving[1]))
    q, v = initial(model, *state, single=True)
    if held is not None:
        known = held.slopes(t)
        slopes = tuple(held.start_slope(f"d{x}_dp", y, z) for x, y, z in zip(names, slopes, known, strict=False))
    changes = [initial_slope(f"d{name}_dp", x, (model.nv,), law.design) for name, x in zip(names, slopes, strict=True)]
    changes = list(law.imposed_slopes(t, *changes))
    if isinstance(law, ConstrainedLaw):
        q, v, *changes = law.started(q, v, *changes, project=project)
    dq, dv = (x[law.free] for x in changes)
    return pack(q[law.free_q], v[law.free], dq, dv)


def _sample(law: Law, track: Track, t: Array) -> Simulation:
    """Everything there is to know at times `t`."""
    names = ("q", "v", "a", "tau", "dq_dp", "dv_dp", "da_dp", "dtau_dp", "forces")
    parts = [_sample_part(stretch, times) for stretch, times in track.parts(t)]
    motion: dict[str, Any] = dict.fromkeys(names)
    for name, columns in zip(names, zip(*parts, strict=True), strict=True):
        if columns[0] is not None:
            motion[name] = np.concatenate(columns)
    report = track.report | {"design": law.design, "row_names": track.row_names}
    return Simulation(law.model, t.copy(), **motion, **report, _law=law, _track=track)


def _sample_part(stretch: Stretch, t: Array) -> tuple[Array | None, ...]:
    """The same of one stretch: q, v, a, τ, their slopes, forces."""
    law, y = stretch.law, stretch(t)
    q, v = (np.array(x) for x in zip(*map(law.whole, t.tolist(), *state_of(law, y)), strict=True))
    dq, dv = None, None
    if law.design is not None:
        whole = map(law.whole_slopes, t.tolist(), *(x.copy() for x in slopes_of(law, y)))
        dq, dv = (np.array(x) for x in zip(*whole, strict=True))
    forces = None
    if isinstance(law, ConstrainedLaw):
        q, v, dq, dv = law.reported(q, v, dq, dv)
    a, tau = (np.array(x) for x in zip(*map(law.acceleration, t.tolist(), q, v), strict=True))
    if isinstance(law, ConstrainedLaw):
        forces = law.forces(q, v, tau, a)
    if dq is None or dv is None:
        return q, v, a, tau, None, None, None, None, forces
    da, dtau = (np.array(x) for x in zip(*map(law.sensitivity, t.tolist(), q, v, tau, dq, dv), strict=True))
    return q, v, a, tau, dq, dv, da, dtau, forces


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
