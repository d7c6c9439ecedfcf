"""Fixed steps under a torque that is a Python function: the loop that a user would write, and no more.

With stages i and the numbers of a scheme,

    qᵢ = q + h Σ Aᵢⱼ vⱼ,    vᵢ = v + h Σ Aᵢⱼ aⱼ,    v⁺ = v + h Σ bᵢ aᵢ,    q⁺ = q + h Σ bᵢ vᵢ,

or q⁺ = q + h v⁺ for semi-implicit Euler.  This is Nyström's form of :mod:`kinegrad.simulate.explicit` to rounding.
Forward dynamics checks its arguments and results; only where it refuses them is each state looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.dynamics import FORWARD, forward_dynamics
from kinegrad.errors import InputError, SingularError
from kinegrad.simulate.explicit import Scheme
from kinegrad.simulate.fixed_compiled import Run
from kinegrad.simulate.law import Law, finite

__all__ = ["feedback_run", "plain_feedback"]

Array = NDArray[np.float64]
FLOAT64 = np.dtype(np.float64)
LONGEST = 1e50  # step, s, that takes ordinary states with ordinary accelerations to finite ones


def plain_feedback(law: Law) -> bool:
    """Return True if torques are a function and nothing else is to be done in a step."""
    apart = law.design is not None or law.prescribed is not None or law.turning
    return type(law) is Law and law.feedback is not None and not apart


def feedback_run(
    law: Law, scheme: Scheme, h: float, steps: int, every: int, q: Array, v: Array, dq: Array, dv: Array, _: Any = None
) -> Run:  # fmt: skip
    """Step by step in Python, forward dynamics of all states evaluated at each stage."""
    one, other = _Stage(law, q.shape, v.shape), _Stage(law, q.shape, v.shape)
    between = [_Stage(law, q.shape, v.shape) for _ in scheme.b[1:]]
    there, back = _step(scheme, h, one, between, other), _step(scheme, h, other, between, one)
    one.q[...], one.v[...] = q, v
    count, kept = steps // every + 1, 0
    columns = [np.empty((count, *shape)) for shape in (q.shape, v.shape, v.shape, v.shape)]
    lost, speeds = np.full(q.shape[:-1], -1), np.zeros(v.shape)
    sure = True  # that the state is finite: so is the initial one
    for k in range(steps + 1):
        state, before, step = (other, one, back) if k % 2 else (one, other, there)
        if not (sure or (np.isfinite(state.q).all() and np.isfinite(state.v).all())):
            new = ~finite(state.q, state.v) & (lost < 0)
            lost[new], speeds[new] = k, before.v[new]
            if lost.size and (lost >= 0).all():
                break
        tau, sure = state.evaluate(k * h)
        if k % every == 0:
            for column, x in zip(columns, (state.q, state.v, state.a, tau), strict=True):
                column[kept] = x
            kept += 1
        if k < steps:
            sure = step(k * h) and sure and h < LONGEST
    return Run([x[:kept] for x in columns], lost, speeds)


class _Stage:
    """A state of all motions, and its accelerations."""

    def __init__(self, law: Law, coordinates: tuple[int, ...], speeds: tuple[int, ...]) -> None:
        assert law.feedback is not None
        self.q, self.v, self.a = np.empty(coordinates), np.empty(speeds), np.empty(speeds)
        self.evaluate = _evaluation(law, self.q, self.v, self.a)


def _evaluation(law: Law, q: Array, v: Array, a: Array) -> Callable[[float], tuple[Array, bool]]:
    """Return a function of t that fills in the accelerations.

    It returns τ, which may be an array of the user's, and whether all is known to be finite and of ordinary size.
    """
    assert law.feedback is not None
    function, shape, flat, fill = law.feedback.function, v.shape, (v.size // v.shape[-1], v.shape[-1]), None
    if law.loads is None and v.size:
        fill = engine.prepared(FORWARD["aba"], law.model, [q.reshape(flat), v.reshape(flat)], a.reshape(flat))

    def evaluate(t: float) -> tuple[Array, bool]:
        tau = function(t, q.copy(), v.copy())  # copies: a function may change what it is given
        if type(tau) is not np.ndarray or tau.dtype is not FLOAT64 or tau.shape != shape or not tau.flags.carray:
            tau = np.ascontiguousarray(law.as_torques(tau, t, shape))
        if fill is not None:
            if fill(tau.reshape(flat)):
                return tau, True
        elif v.size:
            try:
                a[...] = forward_dynamics(law.model, q, v, tau, loads=law.loads)
                return tau, False
            except (InputError, SingularError):  # not finite, or nothing resists a joint
                pass
        a[...], tau = law.under(t, q, v, np.array(tau))  # state by state, with errors that say which
        return tau, False

    return evaluate


def _step(scheme: Scheme, h: float, state: _Stage, between: list[_Stage], after: _Stage) -> Callable[[float], bool]:
    """Return a function of t that fills in the state after an evaluated one and returns whether all was fine."""
    stages, spare = [state, *between], np.empty(state.v.shape)
    rates, slopes, end = [x.v for x in stages], [x.a for x in stages], h * scheme.b
    speed = _sum(after.v, state.v, end, slopes, spare)
    place = _sum(after.q, state.q, end, rates if between else [after.v], spare)
    inner = []
    for x, row, c in zip(between, h * scheme.A[1:], h * scheme.c[1:], strict=True):
        moves = _sum(x.q, state.q, row, rates, spare), _sum(x.v, state.v, row, slopes, spare)
        inner.append((*moves, x.evaluate, float(c)))

    def step(t: float) -> bool:
        fine = True
        for move, turn, evaluate, later in inner:
            move()
            turn()
            fine &= evaluate(t + later)[1]
        speed()
        place()
        return fine

    return step


def _sum(moved: Array, x: Array, weights: Array, rates: list[Array], spare: Array) -> Callable[[], None]:
    """Return a function that fills `moved` with x + Σ wⱼ rateⱼ, of arrays that stay where they are."""
    (rate, weight), *more = [(y, np.array(w)) for y, w in zip(rates, weights, strict=False) if w]  # 0-d arrays are fast
    multiply, add = np.multiply, np.add

    def fill() -> None:
        multiply(rate, weight, moved)
        for y, w in more:
            multiply(y, w, spare)
            add(moved, spare, moved)
        add(moved, x, moved)

    return fill
