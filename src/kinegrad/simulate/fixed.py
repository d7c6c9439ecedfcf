"""Fixed-step integrators of many states at once, and their exact tangents.

An explicit step is, in Nyström's form, linear in the accelerations aᵢ of its stages:

    qᵢ = q + cᵢ h v + h² Σⱼ Āᵢⱼ aⱼ,    vᵢ = v + h Σⱼ Aᵢⱼ aⱼ,    aᵢ = f(t + cᵢ h, qᵢ, vᵢ)
    q⁺ = q + h v + h² Σⱼ b̄ⱼ aⱼ,        v⁺ = v + h Σⱼ bⱼ aⱼ

A Runge–Kutta method has Ā = A², b̄ = bA; semi-implicit Euler is the one-stage scheme with b = b̄ = 1.  Derivatives with
respect to design parameters obey the same lines, with daᵢ/dp in the place of aᵢ: what results is the derivative of
the discrete motion itself, whatever the step.  Neither method is symplectic where M changes with q; the implicit
midpoint rule (:mod:`kinegrad.simulate.midpoint`) is.

All explicit steps run compiled (:mod:`kinegrad.simulate.fixed_compiled`), unless torques are a Python function, which
must be called at each stage; :mod:`kinegrad.simulate.explicit` then does the same, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design
from kinegrad.errors import InputError, SolveError
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.simulate.constrained_law import ConstrainedLaw
from kinegrad.simulate.contact_run import check_single, check_switches, contact_fields
from kinegrad.simulate.contact_steps import ContactMotion
from kinegrad.simulate.contacts import ImpactEvent, Phase, UnilateralContact
from kinegrad.simulate.explicit import Cubic, Scheme, finish_step, make_stages
from kinegrad.simulate.feedback_steps import feedback_run, plain_feedback
from kinegrad.simulate.fixed_compiled import Run, check_alike, compiled_run, together
from kinegrad.simulate.fixed_preparation import begun, check_size, check_undamped, prepare
from kinegrad.simulate.law import Law, diverged, finite, initial_slope
from kinegrad.simulate.midpoint import midpoint_run
from kinegrad.simulate.projection import check_project
from kinegrad.simulate.rank import look_along, watch_rank
from kinegrad.simulate.switching import Contacts
from kinegrad.simulate.turning import turning_run
from kinegrad.simulate.unfinished import check_unfinished, noticed

__all__ = ["FixedStepSimulation", "simulate_fixed"]

Array = NDArray[np.float64]


OVERFLOW = "its numbers overflow; try a shorter step"
UNSOLVED = "Newton's method does not solve the equations of the step; try a shorter one"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FixedStepSimulation(Motion):
    """Motions of many states in equal steps, at m times.

    Attributes
    ----------
    model : Model
        Of several, the first.
    t : ndarray, shape (m,)
        s; the first is 0.
    q, v, a, tau : ndarray, shape (m, ..., n)
        Coordinates, speeds, accelerations and torques; NaN after a state diverged.
    design : Design, or None
    dq_dp, dv_dp, da_dp, dtau_dp : ndarray, shape (m, ..., n, p), or None
        Exact derivatives of these numbers with respect to the design's parameters; None without a design.
    forces : ndarray, shape (m, ..., k), or None
        Of the constraints, N or N·m; None without them.
    row_names : tuple of str
        Of the rows of the constraints.
    phases : tuple of Phase
        From when to when which of the `contacts` were closed.
    impacts : tuple of ImpactEvent
    success : bool
        Whether all states reached the end.
    status : int
        0; −1 if a motion diverged; −2 if it was given up, because contacts open and close without end, or because rows
        of the constraints become dependent.
    message : str
    nfev, steps : int
        Evaluations of the law of motion for each state, and steps made.

    Examples
    --------
    >>> from kinegrad import samples
    >>> starts = [[1, 0], [0.5, 0]]
    >>> simulate_fixed(samples.double_pendulum(), starts, [0, 0], step=0.1, steps=5).to_xarray()["tau"].dims
    ('time', 'batch', 'joint')
    """

    tau: Array
    design: Design | None = field(default=None, compare=False)  # the law compares its names and values
    success: bool
    status: int
    message: str
    nfev: int
    steps: int
    phases: tuple[Phase, ...] = ()
    impacts: tuple[ImpactEvent, ...] = ()
    _law: Law
    _models: tuple[Model, ...] | None = None
    _nodes: tuple[Motion, Array, Array | None] | None = field(default=None, compare=False)

    reported: ClassVar[tuple[str, ...]] = ("status", "message", "nfev", "steps")

    def quadrature(self) -> tuple[Motion, Array]:
        """The motion, and weights of its times for integrals: see :func:`gregory`.

        With contacts, the stages of all steps and of their parts, with weights of the method.
        """
        if len(self.t) != self.steps + 1:
            raise InputError("the simulation did not keep every step; expected every=1 for integrals over time")
        if self._nodes is not None:
            return self._nodes[:2]
        return self, gregory(self.steps, self.t[1] - self.t[0])

    def weight_slopes(self) -> Array | None:
        """How these weights follow the parameters, where contacts open and close in a step."""
        return None if self._nodes is None else self._nodes[2]

    def _at(self, times: Array) -> dict[str, Array]:
        """State and slopes at times within the steps; not where contacts open or close between two that were kept."""
        events = np.array([phase.start for phase in self.phases[1:]])
        rows = np.searchsorted(self.t, times)
        before, after = self.t[np.maximum(rows - 1, 0)], self.t[rows]
        for t, first, last in zip(times.tolist(), before.tolist(), after.tolist(), strict=True):
            if t != last and ((events >= first) & (events <= last)).any():
                found = f"`t` has {t:g}, and contacts open or close between the steps at {first:g} and {last:g} s"
                raise InputError(f"{found}; expected times of steps there, or simulate")
        return super()._at(times)


def simulate_fixed(
    model: Model | Sequence[Model],
    q0: ArrayLike,
    v0: ArrayLike,
    *,
    step: float,
    steps: int,
    tau: Any = None,
    loads: Loads | None = None,
    method: str = "rk4",
    every: int = 1,
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
    unfinished: str = "warn",
) -> FixedStepSimulation:
    """Simulate many initial states, or many designs, in equal steps from t = 0; with a design, also exact derivatives.

    All steps of all states are compiled and run on SIMD lanes and threads.  The loop over steps is in Python if `tau`
    is a Python function, which is called at each stage, if joints are prescribed, if the method is implicit, or if
    coordinates are not joints.

    Parameters
    ----------
    model : Model, or sequence of k Models
        Several must be alike in structure (joints, axes, parents, names), such as
        ``[design.at(x).model for x in values]``; the batch is then of shape (k,), a model for each state.
    q0, v0 : array_like, shape (..., n)
        Initial coordinates and speeds; batch shapes broadcast.
    step : float
        s.
    steps : int
        How many.
    tau : optional
        Torques of the joints: None for zero; a constant, shape (n,); one for each step, held during it, shape
        (steps, ..., n); a SciPy spline of time; a function (t, q, v) of states (..., n); or a :class:`Feedback`.
    loads : Loads, optional
        Constant in the world frame.
    method : {"rk4", "semi_implicit_euler", "implicit_midpoint"}
        The orders are 4, 1 and 2.  The last is symplectic, for long conservative motions: its energy error does not
        grow.  (Semi-implicit Euler is symplectic only if the mass matrix is constant.)
    every : int
        Report every `every`-th step; must divide `steps`.
    prescribed : dict, optional
        Motions of joints, the same for all states, as of :func:`simulate`; not with `contacts`, the implicit method or
        quaternions.  The loop over steps is then in Python, and prescribed joints have their motion at every stage.
    constraints : ConstraintSet, optional
        Constraints that hold at all times, for one model without quaternions, and not with the implicit method; the
        loop over steps is then in Python.  Each step ends with a projection of the state onto φ = 0 and G v = 0 by the
        smallest change in the metric of the mass matrix; derivatives include it, exactly.
    stabilisation, redundant, project
        As of :func:`simulate`.
    contacts : iterable of UnilateralContact, optional
        Contacts that open and close, for a single state, and not with `stabilisation`.  A step in which a gap closes,
        or a normal force becomes zero, is split there.  Derivatives are exact for the discrete motion and include the
        change of the time of the event, as long as the order of events, and the steps in which they occur, stay the
        same.
    sticking_speed : float
        As of :func:`simulate`.
    design : Design, optional
        Parameters of `model` to differentiate with respect to; of one model only.
    dq0_dp, dv0_dp : array_like, shape (..., n, p), optional
        Derivatives of the initial states with respect to the parameters; zero if not given.
    unfinished : {"warn", "raise", "ignore"}
        What to do if a motion diverges: warn (an :class:`~kinegrad.UnfinishedWarning`), raise a SolveError, or nothing.

    Returns
    -------
    FixedStepSimulation
        States that diverge are NaN from then on; ``message`` names the first, its time and joint.

    Raises
    ------
    SingularError
        If a joint has no inertia; the message contains the time, the joint and the state.
    SolveError
        If a motion diverges and `unfinished` is "raise".

    Examples
    --------
    >>> from kinegrad import samples
    >>> starts = np.linspace(0, 1, 5)[:, None] * [1.0, 0.5]
    >>> simulate_fixed(samples.double_pendulum(), starts, [0, 0], step=0.01, steps=100).q.shape
    (101, 5, 2)

    Ten pendulums with different bobs:

    >>> models = [samples.double_pendulum().replace(mass={"Q": mass}) for mass in np.linspace(1, 2, 10)]
    >>> simulate_fixed(models, [1.0, 0.5], [0, 0], step=0.01, steps=100, every=10).q.shape
    (11, 10, 2)

    A ball falls from 1 m and bounces; its height after 0.6 s, and the derivative with respect to gravity:

    >>> from kinegrad import Contact, Inertia, ModelBuilder, prismatic
    >>> builder = ModelBuilder("ball")
    >>> _ = builder.add("height", None, prismatic("z"), link="ball", inertia=Inertia.point(0.1, [0, 0, 0]))
    >>> ball = builder.build()
    >>> floor = UnilateralContact(Contact("ball", directions="z", name="floor"), restitution=0.5)
    >>> falls = {"step": 0.02, "steps": 30, "contacts": [floor], "design": Design(ball, ["gravity.z"])}
    >>> motion = simulate_fixed(ball, [1.0], [0.0], **falls)
    >>> round(motion.impacts[0].t, 6), motion.q[-1].round(6), motion.dq_dp[-1].round(6)
    (0.451524, array([0.220702]), array([[-0.023186]]))
    """
    models = None if isinstance(model, Model | str) or not isinstance(model, Sequence) else check_alike(model, design)
    one: Any = model if models is None else models[0]
    check_unfinished(unfinished)
    switches = check_switches(model, contacts, method, stabilisation)
    constraints = ConstraintSet(one, []) if switches is not None and constraints is None else constraints
    if switches is not None and prescribed is not None:
        raise InputError("`prescribed` and `contacts` are given; expected one of them")
    law, scheme, h = prepare(
        one, tau, loads, design, method, step, steps, constraints, stabilisation, redundant, prescribed
    )
    if models is not None and constraints is not None:
        raise InputError("several models and `constraints` are given; expected one model, of which the constraints are")
    steps, every = int(steps), engine.whole("every", every)
    if steps % every:
        raise InputError(f"`every` is {every}; expected a whole number that divides `steps`, {steps}")
    q, v, slopes = begun(law, q0, v0, (dq0_dp, dv0_dp))
    if models is not None:
        if scheme is None:
            for other in models:
                check_undamped(other)
        if law.feedback is not None:
            raise InputError(
                "`tau` is a function and several models are given: a function is called between steps in Python, which "
                "know one model; expected a constant, samples or a spline, or a call for each model"
            )
        q, v = (_one_each(x, len(models)) for x in (q, v))
    check_size(steps, every, q.size, 0 if design is None else design.p)
    dq, dv = (initial_slope(f"d{x}0_dp", y, v.shape, design) for x, y in zip("qv", slopes, strict=True))
    dq, dv = law.imposed_slopes(0.0, dq, dv)
    check_project(project, constraints)
    if isinstance(law, ConstrainedLaw):
        q, v, dq, dv = law.started(q, v, dq, dv, project=project)
    if switches is not None and isinstance(law, ConstrainedLaw) and scheme is not None:
        with np.errstate(over="ignore", invalid="ignore"), engine.overflow_passes():
            switching = Contacts(law, switches, engine.positive("sticking_speed", sticking_speed))
            moved = ContactMotion(switching, scheme, h, steps, *check_single(q, v))
            return noticed(FixedStepSimulation(**contact_fields(law, h, every, moved, dq, dv)), unfinished)
    with np.errstate(over="ignore", invalid="ignore"):
        if scheme is None:
            with engine.overflow_passes():
                found = midpoint_run(law, h, steps, every, q, v, dq, dv, models)
        else:
            run = loop_run if in_python(law) else compiled_run
            if law.turning:
                run = turning_run
            elif plain_feedback(law):
                run = feedback_run
            if models is not None and (one.coordinates or one.elements or law.prescribed):  # these loops know one model
                each = [
                    run(law.of(other, k, len(models)), scheme, h, steps, every, q[k], v[k], dq[k], dv[k])
                    for k, other in enumerate(models)
                ]
                found = together(each, steps // every + 1)
            else:
                found = run(law, scheme, h, steps, every, q, v, dq, dv, models)
    return noticed(_finished(law, scheme, h, steps, every, found, models), unfinished)


def in_python(law: Law) -> bool:
    """Whether steps follow one another in Python."""
    model = law.model
    special = law.feedback is not None or law.prescribed is not None or isinstance(law, ConstrainedLaw)
    return bool(special or model.coordinates or model.elements)


def _one_each(x: Array, count: int) -> Array:
    """Initial coordinates or speeds, (count, n), from (count, n), (1, n) or (n,)."""
    if x.shape[:-1] not in ((count,), (1,), ()):
        found = f"`q0` and `v0` have batch shape {x.shape[:-1]}"
        raise InputError(f"{found}; expected ({count},) or (), for {count} models")
    return np.broadcast_to(x, (count, x.shape[-1])).copy()


def loop_run(
    law: Law, scheme: Scheme, h: float, steps: int, every: int, q: Array, v: Array, dq: Array, dv: Array, _: Any = None
) -> Run:  # fmt: skip
    """Step by step in Python, the law of motion of all states evaluated at each stage."""
    kept: list[tuple[Array, ...]] = []
    lost, speeds = np.full(q.shape[:-1], -1), np.zeros(v.shape)
    ranks, ended = watch_rank(law, q), dict[int, str]()
    for k in range(steps + 1):
        last = k == steps
        stages = make_stages(law, scheme, h, min(k, steps - 1), k * h, q, v, dq, dv, first_only=last)
        if k % every == 0:
            slopes = () if law.design is None else (dq, dv, stages.da[0], stages.dtau[0])
            kept.append((q, v, stages.a[0], stages.tau[0], *slopes))
        if last:
            break
        before, start, t = v, (q, v), (k + 1) * h
        q, v = law.imposed(t, *finish_step(scheme, h, q, v, stages.a))
        if law.design is None:
            q, v = law.drawn(q, v)
        else:
            dq, dv = law.imposed_slopes(t, *finish_step(scheme, h, dq, dv, stages.da))
            q, v, dq, dv = law.drawn_along(q, v, dq, dv)
        if ranks is not None:
            for state, (_, why) in look_along(ranks, Cubic(scheme, h, start, stages, (q, v)), k * h).items():
                q = q.copy()
                q.reshape(-1, q.shape[-1])[state], ended[state] = np.nan, why
        new = ~finite(q, v) & (lost < 0)
        lost[new], speeds[new] = k + 1, before[new]
        if lost.size and (lost >= 0).all():
            break
    return Run([np.array(x) for x in zip(*kept, strict=True)], lost, speeds, ended=ended)


def _finished(
    law: Law, scheme: Scheme | None, h: float, steps: int, every: int, run: Run, models: tuple[Model, ...] | None
) -> FixedStepSimulation:
    """The result, with NaN where states were lost, as far as there is one left."""
    gone = run.lost >= 0
    none_left = gone.size > 0 and bool(gone.all())
    done = int(run.lost.max()) if none_left else steps
    count = (done - 1) // every + 1 if none_left else steps // every + 1
    columns = [x[:count] for x in run.columns]
    trouble, status = "", -1
    if gone.any():
        after = np.arange(count).reshape(-1, *[1] * run.lost.ndim) * every >= np.where(gone, run.lost, steps + 1)
        for x in columns:
            x[after] = np.nan
        first = run.lost[gone].min()
        trouble = first_divergence(law.model, first * h, run.before, run.lost != first, run.unsolved)
        why = (run.ended or {}).get(int(np.flatnonzero(run.lost == first)[0]))
        status, trouble = (-1, trouble) if why is None else (-2, why)
        if gone.size > 1:
            what = "diverged" if not run.ended else "did not reach the end"
            trouble = f"{gone.sum()} of {gone.size} states {what}; the first: {trouble}"
    trouble = trouble or _overflown("accelerations", "state", columns[2:4], every * h, 1)
    trouble = trouble or _overflown("derivatives", "motion", columns[4:], every * h, 2)
    names = ("q", "v", "a", "tau", "dq_dp", "dv_dp", "da_dp", "dtau_dp")
    motion: dict[str, Any] = dict.fromkeys(names) | dict(zip(names, columns, strict=False))
    report: dict[str, Any] = {
        "success": not trouble, "status": status if trouble else 0, "message": trouble or "reached the end",
        "nfev": run.evaluations if scheme is None else done * len(scheme.b) + 1, "steps": done,
    }  # fmt: skip
    times = np.arange(0, every * count, every) * np.float64(h)
    motion |= {"model": law.model, "t": times, "design": law.design}
    if isinstance(law, ConstrainedLaw):
        motion |= {"forces": law.forces(*(motion[x] for x in ("q", "v", "tau", "a"))), "row_names": law.row_names}
    return FixedStepSimulation(**motion, **report, _law=law.without_torques(), _models=models)


def _overflown(what: str, finite: str, numbers: list[Array], between: float, axes: int) -> str:
    """Which accelerations, (kept, ..., n), or derivatives, (kept, ..., n, p), are not finite; or nothing."""
    last = tuple(range(-axes, 0))
    good = np.logical_and.reduce([np.isfinite(x).all(axis=last) for x in numbers]) if numbers else np.True_
    if good.all():
        return ""
    k, *state = np.argwhere(~good)[0].tolist()
    where = f" of state {tuple(state) if len(state) > 1 else state[0]}" if state else ""
    return f"the {what}{where} diverged at t = {k * between:.6g} s: they overflow, though the {finite} is finite"


def first_divergence(
    model: Model, t: float, before: Array, still: NDArray[np.bool_], unsolved: NDArray[np.bool_] | None = None
) -> str:
    """Which state is no longer finite after a step that began with speeds `before`, or whose step was not solved."""
    state = np.argwhere(~still)[0]
    why = UNSOLVED if unsolved is not None and unsolved[tuple(state)] else OVERFLOW
    where = f"state {tuple(state.tolist()) if len(state) > 1 else state[0]} " if len(state) else ""
    return where + diverged(model, t, before[tuple(state)], why)


def check_reached(model: Model, t: float, before: Array, q: Array, v: Array) -> None:
    """Refuse to differentiate a motion that diverged."""
    still = finite(q, v)
    if not still.all():
        raise SolveError(first_divergence(model, t, before, still))


def gregory(steps: int, step: float) -> Array:
    """Weights of steps + 1 equidistant values for their integral: of order 4, or the trapezoidal rule below 5 steps.

    >>> gregory(6, 1.0) * 24
    array([ 9., 28., 23., 24., 23., 28.,  9.])
    """
    weights = np.ones(steps + 1)
    ends = [3 / 8, 7 / 6, 23 / 24] if steps >= 5 else [0.5]
    weights[: len(ends)] = ends
    weights[-len(ends) :] = ends[::-1]
    return weights * step
