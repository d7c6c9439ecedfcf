"""The discrete adjoint of the fixed-step integrators: the gradient of J with respect to everything, in one sweep.

Backwards through one step (notation of :mod:`kinegrad.simulate.fixed`), from λ = ∂J/∂(q⁺, v⁺), the gradients
μᵢ = ∂J/∂aᵢ come last stage first,

    μᵢ = h² b̄ᵢ λ_q + h bᵢ λ_v + Σⱼ (h² Āⱼᵢ κ_qⱼ + h Aⱼᵢ κ_vⱼ),     κ_qⱼ = (∂aⱼ/∂q)ᵀ μⱼ,  κ_vⱼ = (∂aⱼ/∂v)ᵀ μⱼ

    ∂J/∂q = λ_q + Σ κ_qⱼ,    ∂J/∂v = λ_v + h λ_q + Σ (cⱼ h κ_qⱼ + κ_vⱼ),    ∂J/∂τ = Σ M⁻¹ μⱼ
    ∂J/∂c = Σ μⱼᵀ ∂aⱼ/∂c = −Σ (M⁻¹ μⱼ)ᵀ ∂τ/∂c  at fixed motion, for all constants c of the model,

to which each time adds its own share of the integral.  Nothing of this depends on how many parameters there are: they
take their share, ∂J/∂p = ∂J/∂c · ∂c/∂p, once at the end.  It is the transpose of the tangent, so both give the same
numbers.  States are kept a segment apart; what lies between is computed again when it is needed, a segment at once, so
memory grows as the square root of the number of steps.  [anderson2002] compares the two methods in section 2.

All this runs compiled (:mod:`kinegrad.simulate.adjoint_compiled`), unless torques are a :class:`Feedback`, whose Python
functions are called at each stage; :class:`LoopAdjoint` then does the same, batch by batch, with n×n derivatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import pull_tangent
from kinegrad.constraints import ConstraintSet
from kinegrad.design import Design
from kinegrad.design.dynamics import constants_gradient, share_of_parameters
from kinegrad.errors import InputError, SolveError
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.objectives.objective import Objective, add_terms, check_objective, check_sums
from kinegrad.results import Result
from kinegrad.simulate.adjoint_compiled import CompiledAdjoint
from kinegrad.simulate.constrained_law import ConstrainedLaw, Drawing
from kinegrad.simulate.contact_run import check_single, check_switches
from kinegrad.simulate.contact_slopes import ContactAdjoint
from kinegrad.simulate.contact_steps import ContactMotion
from kinegrad.simulate.contacts import UnilateralContact
from kinegrad.simulate.explicit import SCHEMES, Cubic, Scheme, Stages, finish_step, make_stages
from kinegrad.simulate.fixed import check_reached, gregory, in_python
from kinegrad.simulate.fixed_preparation import begun, check_size, prepare
from kinegrad.simulate.law import Law
from kinegrad.simulate.midpoint_adjoint import MidpointAdjoint
from kinegrad.simulate.projection import check_project
from kinegrad.simulate.rank import look_along, watch_rank
from kinegrad.simulate.switching import Contacts
from kinegrad.simulate.turning import Step, pull_rate, pull_rate_by_turn

__all__ = ["AdjointGradient", "adjoint_gradient"]

Array = NDArray[np.float64]
END = SCHEMES["semi_implicit_euler"]  # the last moment, as a step that leads nowhere: one stage, at its start


@dataclass(frozen=True, eq=False)
class AdjointGradient(Result):
    """J and its gradient.

    Attributes
    ----------
    value : ndarray, shape (...)
    dvalue_dp : ndarray, shape (..., p), or None without a design
    dvalue_dq0, dvalue_dv0 : ndarray, shape (..., n)
        With respect to the initial state.
    dvalue_dtau : ndarray, shape (steps, ..., n)
        With respect to a torque added during each step.
    note : str
        Empty, or why these are no derivatives: contacts that affect each other touch at the same time.
    """

    value: Array
    dvalue_dp: Array | None
    dvalue_dq0: Array
    dvalue_dv0: Array
    dvalue_dtau: Array
    note: str = ""


def adjoint_gradient(
    model: Model,
    q0: ArrayLike,
    v0: ArrayLike,
    objective: Objective,
    *,
    step: float,
    steps: int,
    tau: Any = None,
    loads: Loads | None = None,
    method: str = "rk4",
    prescribed: Mapping[str, Any] | None = None,
    constraints: ConstraintSet | None = None,
    stabilisation: float | tuple[float, float] | None = None,
    redundant: str = "error",
    project: bool = False,
    contacts: Iterable[UnilateralContact] | None = None,
    sticking_speed: float = 1e-3,
    design: Design | None = None,
    segment: int | None = None,
) -> AdjointGradient:
    """Simulate as :func:`simulate_fixed` does, and differentiate the objective backwards: exact for these steps.

    Parameters
    ----------
    model, q0, v0, step, steps, tau, loads, method, prescribed, constraints, stabilisation, redundant, project, contacts
        As of :func:`simulate_fixed`.  A plain function as `tau` is not enough: expected a :class:`Feedback`.  With
        constraints the initial state is drawn onto them, too, and the gradient is that with respect to q0 and v0 as
        given; its time then grows with p.  With contacts it is exact as long as the order of events, and the steps in
        which they are, stay the same.
    objective : Objective
    sticking_speed : float
        The same.
    design : Design, optional
        The same.
    segment : int, optional
        Keep a state every so many steps and hold so many steps in memory on the way back; √steps if not given.

    Returns
    -------
    AdjointGradient

    Raises
    ------
    SolveError
        If the motion diverges, or rows of the constraints become dependent on its way.

    Examples
    --------
    >>> from kinegrad import samples
    >>> from kinegrad.simulate import KineticEnergy
    >>> swing = Objective(integral=[KineticEnergy()])
    >>> found = adjoint_gradient(samples.double_pendulum(), [1, 0], [0, 0], swing, step=0.01, steps=100)
    >>> found.dvalue_dq0.shape, found.dvalue_dtau.shape
    ((2,), (100, 2))
    """
    switches = check_switches(model, contacts, method, stabilisation)
    constraints = ConstraintSet(model, []) if switches is not None and constraints is None else constraints
    if switches is not None and prescribed is not None:
        raise InputError("`prescribed` and `contacts` are given; expected one of them")
    law, scheme, h = prepare(
        model, tau, loads, design, method, step, steps, constraints, stabilisation, redundant, prescribed
    )
    if not law.exact:
        raise InputError("`tau` is a function without derivatives; expected Feedback(function, dtau_dq, dtau_dv)")
    check_objective(objective)
    steps = int(steps)
    length = max(1, isqrt(steps)) if segment is None else min(engine.whole("segment", segment), steps)
    q, v, _ = begun(law, q0, v0)
    q = law.normalised(q)
    check_size(steps, 1, q.size, 0)
    given = q, v
    check_project(project, constraints)
    if isinstance(law, ConstrainedLaw):
        q, v = law.placed(q, v, project=project)
    note = ""
    backward: MidpointAdjoint | CompiledAdjoint | LoopAdjoint | ContactAdjoint
    with np.errstate(over="ignore", invalid="ignore"), engine.overflow_passes():
        if scheme is None:
            backward = MidpointAdjoint(law, h, steps, length, q, v, objective)
        elif switches is not None and isinstance(law, ConstrainedLaw):
            speed = engine.positive("sticking_speed", sticking_speed)
            moved = ContactMotion(Contacts(law, switches, speed, True), scheme, h, steps, *check_single(q, v))
            if moved.trouble:
                raise SolveError(moved.trouble)
            backward = ContactAdjoint(moved, objective)
            note = "; ".join(moved.contacts.notes)
        else:
            how = LoopAdjoint if in_python(law) else CompiledAdjoint
            backward = how(law, scheme, h, steps, length, q, v, objective)
        if isinstance(law, ConstrainedLaw) and isinstance(backward, LoopAdjoint | ContactAdjoint):
            start = Drawing(law, *(x[None] for x in given), always=True)
            backward.q, backward.v = start.pull(0, backward.q, backward.v, backward.dp)
        if isinstance(backward, LoopAdjoint):
            law.released(0.0, backward.q, backward.v, backward.dp)
        found = AdjointGradient(backward.value, backward.by_parameters(), backward.q, backward.v, backward.dtau, note)
    check_sums(*(x for x in vars(found).values() if isinstance(x, np.ndarray)))
    return found


def _checkpoints(
    law: Law, scheme: Scheme, h: float, steps: int, length: int, q: Array, v: Array
) -> list[tuple[Array, Array]]:
    """The states q, v before steps 0, length, 2 length, …; SolveError if the motion diverges."""
    kept, ranks = [], watch_rank(law, q)
    for k in range(steps):
        if k % length == 0:
            kept.append((q, v))
        before, start = v, (q, v)
        stages, end = _advance(law, scheme, h, k, k * h, q, v)
        q, v = law.drawn(*end)
        if ranks is not None and isinstance(stages, Stages):
            for _, why in look_along(ranks, Cubic(scheme, h, start, stages, (q, v)), k * h).values():
                raise SolveError(why)
        check_reached(law.model, (k + 1) * h, before, q, v)
    return kept


def _advance(
    law: Law, scheme: Scheme, h: float, k: int, t: float, q: Array, v: Array, *, leads_on: bool = True
) -> tuple[Stages | Step, tuple[Array, Array]]:
    """The stages of a step, and its end, before it is drawn onto constraints."""
    if law.turning:
        step = Step(law, scheme, h, k, t, q, v)
        return step, step.finish()
    stages = make_stages(law, scheme, h, k, t, q, v)
    end = finish_step(scheme, h, q, v, stages.a)
    return stages, law.imposed((k + 1) * h, *end) if leads_on else end


class _Segment:
    """All stages of some steps in a row, (steps, s, ..., n), with the derivatives of their accelerations.

    The end of the motion is a segment of its own, a step that leads nowhere.
    """

    def __init__(
        self, law: Law, scheme: Scheme, h: float, first: int, count: int, q: Array, v: Array, total: int
    ) -> None:
        self.steps = np.minimum(np.arange(first, first + count), total - 1)
        self.nodes = np.arange(first, first + count)
        self.t: Array = self.nodes * np.float64(h)
        rows, gains, places, ends = [], [], [], []
        for t, k in zip(self.t.tolist(), self.steps.tolist(), strict=True):
            stages, end = _advance(law, scheme, h, k, t, q, v, leads_on=first < total)
            rows.append([np.array(x) for x in (stages.q, stages.v, stages.a, stages.tau)])
            if isinstance(stages, Step):
                places.append(stages.r)
            times = t + scheme.c * h
            gains.append([law.gains(*x) for x in zip(times.tolist(), stages.q, stages.v, strict=True)])
            ends.append(end)
            q, v = law.drawn(*end) if first < total else end  # the end of the motion is no step
        self.ends = tuple(np.array(x) for x in zip(*ends, strict=True))  # before they are drawn onto constraints
        self.end, self.r = (q, v), np.array(places)
        self.q, self.v, self.a, self.tau = (np.array(x) for x in zip(*rows, strict=True))
        for a, tau in zip(self.a[-1], self.tau[-1], strict=True):  # the state may be finite and its rate not
            check_reached(law.model, self.t[-1], self.v[-1, 0], a, tau)
        self.change = change = law.derivatives(self.q, self.v, self.tau, self.a)
        self.da_dq, self.da_dv, self.da_dtau = change.da_dq, change.da_dv, change.da_dtau
        self.gains = None
        if law.feedback is not None:
            K = np.moveaxis(np.array(gains), 2, 0)
            self.da_dq, self.da_dv = self.da_dq + self.da_dtau @ K[0], self.da_dv + self.da_dtau @ K[1]
            self.gains = K[:, :, 0]


class LoopAdjoint:
    """J and its derivatives, gathered from the end of a motion to its start; batch by batch in Python, with matrices.

    Attributes
    ----------
    value : ndarray, shape (...)
    q, v : ndarray, shape (..., n)
        ∂J with respect to the state at the earliest time reached so far.
    dtau : ndarray, shape (steps, ..., n)
    """

    def __init__(
        self, law: Law, scheme: Scheme, h: float, steps: int, length: int, q: Array, v: Array, objective: Objective
    ) -> None:
        shape = v.shape
        self.law, self.scheme = law, scheme
        self.q, self.v, self.dtau = np.zeros(shape), np.zeros(shape), np.zeros((steps, *shape))
        self.value = np.zeros(shape[:-1])
        self.dp = None if law.design is None else np.zeros((*shape[:-1], law.design.p))  # explicit in the terms
        self.dconstants: Array | float = 0.0
        checkpoints = _checkpoints(law, scheme, h, steps, length, q, v)
        weights = gregory(steps, h)
        for first in reversed(range(0, steps, length)):
            count = min(length, steps - first)
            part = _Segment(law, scheme, h, first, count, *checkpoints[first // length], steps)
            if first + count == steps:
                self.through(_Segment(law, END, h, steps, 1, *part.end, steps), objective, weights, 0.0)
            self.through(part, objective, weights, h)

    def through(self, part: _Segment, objective: Objective, weights: Array, h: float) -> None:
        """Take the gradient from the end of a segment to its start; h = 0 for the end of the motion."""
        end = objective.end if h == 0.0 else ()
        share = self._share(part, objective.integral, weights[part.nodes]) + self._share(part, end, np.ones(1))
        mu = np.zeros_like(part.a)
        drawing = Drawing(self.law, *part.ends) if h and isinstance(self.law, ConstrainedLaw) else None
        for k in reversed(range(len(part.steps))):
            if drawing is not None:
                self.q, self.v = drawing.pull(k, self.q, self.v, self.dp)
            if h:
                self.law.released((int(part.nodes[k]) + 1) * h, self.q, self.v, self.dp)
            self._step(part, k, h, share[:, k], mu[k])
        pushed, given, supplied = _pull(part.da_dtau, mu), share[3], None
        if self.law.prescribed is not None:  # torques of prescribed joints depend on those that are given
            held = self.law.prescribed.held
            given, supplied = share[3].copy(), np.zeros_like(share[3])
            supplied[..., held], given[..., held] = share[3][..., held], 0.0
            pushed[:, 0] += _pull(part.change.dtau_dtau[:, 0], supplied)
            pushed[..., held] = 0.0
        check_sums(pushed)
        np.add.at(self.dtau, part.steps, pushed.sum(axis=1) + given)
        if supplied is not None:
            pushed[:, 0] -= supplied
        if self.dp is not None and isinstance(self.law, ConstrainedLaw):
            if supplied is None:
                da_dp = self.law.by_design(part.q, part.v, part.tau)
            else:
                da_dp, dtau_dp = self.law.driven_by_design(part.q, part.v, part.tau, part.a)
                self.dp += np.einsum("t...np,t...n->...p", dtau_dp[:, 0], supplied)
            self.dp += np.einsum("ts...np,ts...n->...p", da_dp, mu)
        elif self.dp is not None and self.law.design is not None:
            stages = (part.q, part.v, part.a, pushed)
            gradient, batch = constants_gradient(self.law.design, *stages, loads=self.law.loads)
            self.dconstants = self.dconstants - gradient.reshape(*batch.shape, gradient.shape[1]).sum(axis=(0, 1))

    def by_parameters(self) -> Array | None:
        """Total dJ/dp."""
        if self.dp is None or self.law.design is None:
            return None
        if isinstance(self.law, ConstrainedLaw):
            return self.dp
        return self.dp + share_of_parameters(self.law.design, np.asarray(self.dconstants))

    def _step(self, part: _Segment, k: int, h: float, share: Array, mu: Array) -> None:
        """One step backwards; fills μ, (s, ..., n)."""
        if self.law.turning and h:
            self._turning_step(part, k, h, share, mu)
        else:
            self._plain_step(part, k, h, share, mu)
        if self.law.prescribed is not None:
            by_q, by_v = part.change.dtau_dq[k, 0], part.change.dtau_dv[k, 0]
            if part.gains is not None:
                by_tau = part.change.dtau_dtau[k, 0]
                by_q, by_v = by_q + by_tau @ part.gains[0, k], by_v + by_tau @ part.gains[1, k]
            self.q, self.v = self.q + _pull(by_q, share[3]), self.v + _pull(by_v, share[3])
        elif part.gains is not None:
            self.q += _pull(part.gains[0, k], share[3])
            self.v += _pull(part.gains[1, k], share[3])

    def _turning_step(self, part: _Segment, k: int, h: float, share: Array, mu: Array) -> None:
        """The same with quaternions: each operation of :class:`Step` backwards."""
        model, A, b = self.law.model, self.scheme.A, self.scheme.b
        q, v, r = part.q[k], part.v[k], part.r[k]
        end = pull_tangent(model, r[-1], self.q)
        rates, numbers, speeds, turn = [h * x * end for x in b], end, self.v, np.zeros_like(self.v)
        if len(b) == 1:  # semi-implicit Euler: coordinates follow the new speeds
            speeds = speeds + pull_rate(model, q[0], rates[0])
            turn = pull_rate_by_turn(model, q[0], v[0] + h * part.a[k, 0], rates[0])
            rates = [np.zeros_like(end)]
        for i, x in enumerate(b):
            mu[i] = h * x * speeds
        mu[0] += share[2]  # the acceleration at this time is the first stage's
        for i in reversed(range(len(b))):
            by_turn = _pull(part.da_dq[k, i], mu[i]) + pull_rate_by_turn(model, q[i], v[i], rates[i])
            by_speed = _pull(part.da_dv[k, i], mu[i]) + pull_rate(model, q[i], rates[i])
            place = pull_tangent(model, r[i], by_turn)
            numbers, speeds = numbers + place, speeds + by_speed
            for j in range(i):
                rates[j] = rates[j] + h * A[i, j] * place
                mu[j] += h * A[i, j] * by_speed
        self.q, self.v = pull_rate(model, q[0], numbers) + turn + share[0], speeds + share[1]

    def _plain_step(self, part: _Segment, k: int, h: float, share: Array, mu: Array) -> None:
        c, A, A_bar, b, b_bar = self.scheme if h else END
        kq, kv = np.zeros_like(mu), np.zeros_like(mu)
        for i in reversed(range(len(b))):
            mu[i] = h**2 * b_bar[i] * self.q + h * b[i] * self.v
            mu[i] += np.tensordot(h**2 * A_bar[:, i], kq, 1) + np.tensordot(h * A[:, i], kv, 1)
            if i == 0:
                mu[0] += share[2]  # the acceleration at this time is the first stage's
            kq[i], kv[i] = _pull(part.da_dq[k, i], mu[i]), _pull(part.da_dv[k, i], mu[i])
            if self.law.prescribed is not None:
                by_a = _pull(part.change.da_da[k, i], mu[i])
                if i == 0:
                    by_a += _pull(part.change.dtau_da[k, 0], share[3])
                self.law.released(float(part.t[k]) + c[i] * h, kq[i], kv[i], self.dp, by_a)
        self.v = self.v + h * self.q + np.tensordot(c * h, kq, 1) + kv.sum(axis=0) + share[1]
        self.q = self.q + kq.sum(axis=0) + share[0]

    def _share(self, part: _Segment, terms: Any, weights: Array) -> Array:
        """Weighted partial derivatives of terms at the times of a segment, (4, steps, ..., n) for q, v, a, τ."""
        q, v, a, tau = (x[:, 0] for x in (part.q, part.v, part.a, part.tau))
        now = Motion(self.law.model, part.t, q, v, a, tau, design=self.law.design)
        return add_terms(terms, now, weights, self.value, self.dp)


def _pull(matrix: Array, x: Array) -> Array:
    """matrixᵀ x."""
    pulled: Array = np.einsum("...ij,...i->...j", matrix, x)
    return pulled
