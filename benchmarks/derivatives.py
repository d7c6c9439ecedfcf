"""Derivatives: ∂τ/∂(q, v, a) of the 43-degree-of-freedom human

301 states of q = sin 2πt: three matrices of 43 × 43 each, and τ.  Pinocchio's `computeRNEADerivatives` is called
in a Python loop that leaves the matrices in Pinocchio's memory, where the next state overwrites them, or collects
them in new arrays of shape (301, 43, 43).  kinegrad always delivers all 301: with `out=` in the same arrays
again, or in new ones, which mostly get the memory of those that the loop has just thrown away; packed leaves out the
entries that topology makes zero.  Products with a vector are compared with
kinegrad's own dense matrices, whose multiplication is not counted.  The last rows are numerical differentiation:
MuJoCo's `mjd_inverseFD` (of a human with a pelvis of 1 kg and limbs 0.1 m thick, as MuJoCo has no bodies without mass
that branch, nor without moments), and adaptive differences of kinegrad's own τ, measured at one instant and multiplied
by 301.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
from tests.peers.mujoco_model import to_mujoco

from benchmarks.setting import STATES, sinusoid, twin
from benchmarks.timing import QUICK, Case, Comparison, Measurement, Row, Timing, compare
from kinegrad import (
    Inertia,
    InverseDynamicsDerivatives,
    Model,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_dynamics_jvp,
    inverse_dynamics_vjp,
)
from kinegrad.compare import numerical_jacobian
from kinegrad.samples import human43

Matrices = tuple[Any, ...]
LEFT, COLLECTED = "computeRNEADerivatives loop, left in place", "computeRNEADerivatives loop, collected"


class Work:
    """∂τ/∂(q, v, a) of one model along q = sin 2πt, by both libraries; also used by `derivative_scaling`."""

    def __init__(self, model: Model, states: int = STATES) -> None:
        self.model, self.states = model, sinusoid(model.n, states)
        self.other, self.data = twin(model)

    def ours(self, **options: Any) -> Matrices:
        return matrices(inverse_dynamics_derivatives(self.model, *self.states, **{"threads": 1} | options))

    def reusing(self, **options: Any) -> Callable[[], Matrices]:
        """The same into arrays that are made once."""
        out = inverse_dynamics_derivatives(self.model, *self.states, **options)
        return lambda: self.ours(out=out, **options)

    def left(self) -> Matrices:
        """Pinocchio's matrices of the last state; those before it are overwritten."""
        other, data = self.other, self.data
        for q, v, a in zip(*self.states, strict=True):
            pin.computeRNEADerivatives(other, data, q, v, a)
        return data.dtau_dq, data.dtau_dv, data.M

    def collected(self) -> Matrices:
        other, data = self.other, self.data
        by_q, by_v, by_a = (np.empty((*self.states[0].shape, self.model.n)) for _ in range(3))
        for k, (q, v, a) in enumerate(zip(*self.states, strict=True)):
            by_q[k], by_v[k], by_a[k] = pin.computeRNEADerivatives(other, data, q, v, a)
        return by_q, by_v, by_a

    def packed(self, dense: Matrices) -> Matrices:
        pattern = self.model.topology.pattern
        return tuple(x[..., pattern.rows, pattern.cols] for x in dense)

    def case(self, name: str, ours: Callable[[], Matrices], against: str = LEFT, target: float | None = None) -> Case:
        """Checked against all of Pinocchio's matrices even where the timed loop leaves them behind."""

        def same(found: Matrices) -> Matrices:
            expected = self.collected() if against != COLLECTED else found
            return self.packed(expected) if np.ndim(ours()[0]) == 2 else expected

        return Case(name, ours, self.collected if against == COLLECTED else self.left, against, target, same)


def matrices(d: InverseDynamicsDerivatives) -> Matrices:
    """The three, or the values of the three where they are packed."""
    return tuple(getattr(x, "values", x) for x in (d.dtau_dq, d.dtau_dv, d.dtau_da))


def run(repeats: int) -> list[Row]:
    work = Work(human43())
    dense, packed, fresh = work.reusing(), work.reusing(packed=True), work.ours
    cases = [
        work.case("∂τ, dense, `out=`", dense, LEFT, 7.5),
        work.case("∂τ, dense, new arrays, thrown away", fresh, LEFT, 7.5),
        work.case("∂τ, dense, new arrays, thrown away", fresh, COLLECTED),
        work.case("∂τ, packed, `out=`", packed, LEFT, 9),
        work.case("∂τ, packed, new arrays, thrown away", lambda: fresh(packed=True), LEFT, 9),
        work.case("∂τ, dense, `out=`, two threads", work.reusing(threads=2), f"{LEFT}, one thread", 9.5),
        work.case(
            "∂τ, dense, new arrays, thrown away, two threads", lambda: fresh(threads=2), f"{LEFT}, one thread", 9.5
        ),
        work.case("∂τ, packed, `out=`, two threads", work.reusing(packed=True, threads=2), f"{LEFT}, one thread", 13),
        work.case("∂τ by `lagrange`, dense, `out=`", work.reusing(method="lagrange")),
        work.case("∂τ by `lagrange`, packed, `out=`", work.reusing(method="lagrange", packed=True)),
        *_single_calls(work),
        *_products(work),
    ]
    return [*compare(cases, repeats), *_accuracy(work), *_mujoco(repeats), _adaptive(work, repeats)]


def _single_calls(work: Work) -> list[Case]:
    model, other, data = work.model, work.other, work.data
    state = tuple(x[70] for x in work.states)
    out = inverse_dynamics_derivatives(model, *state)

    def case(name: str, **options: Any) -> Case:
        return Case(
            name,
            lambda: matrices(inverse_dynamics_derivatives(model, *state, threads=1, **options)),
            lambda: pin.computeRNEADerivatives(other, data, *state),
            "computeRNEADerivatives",
            1.1,
        )

    return [case("∂τ, dense, single call"), case("∂τ, dense, `out=`, single call", out=out)]


def _products(work: Work) -> list[Case]:
    model, (q, v, a), dense = work.model, work.states, work.reusing()
    d = np.random.default_rng(1).normal(size=(3, *q.shape))

    def along(found: Matrices) -> np.ndarray:
        return np.einsum("mkij,mkj->ki", found, d)

    def back(found: Matrices) -> np.ndarray:
        return np.einsum("mkij,ki->mkj", found, d[0])

    def vjp() -> Matrices:
        gradient = inverse_dynamics_vjp(model, q, v, a, d[0], threads=1)
        return gradient.dq, gradient.dv, gradient.da

    against = "kinegrad's ∂τ, dense, `out=`"
    return [
        Case("∂τ times a vector (jvp)", lambda: inverse_dynamics_jvp(model, q, v, a, *d, threads=1), dense, against,
             same=along),
        Case("a vector times ∂τ (vjp)", vjp, dense, against, same=back),
    ]  # fmt: skip


def _accuracy(work: Work) -> list[Row]:
    """The difference from Pinocchio, each matrix by its own largest entry; the worst of the three."""
    expected = work.collected()

    def row(method: str) -> Row:
        found = work.ours(method=method)
        worst = max(_off(x, y) for x, y in zip(found, expected, strict=True))
        note = "difference from Pinocchio, by the largest entry"
        return Measurement(f"∂τ by `{method}`, accuracy", 1e15 * worst, "× 1e-15", 1000, note)

    return [row("spatial"), row("lagrange")]


def _mujoco(repeats: int) -> list[Row]:
    body, link = Inertia.sphere(1.0, 0.1), "pelvis.rz"
    work = Work(human43(thickness=0.1).replace(mass={link: body.mass}, inertia={link: body.inertia}))
    n, model = work.model.n, to_mujoco(work.model)
    assert [model.joint(i).name for i in range(n)] == list(work.model.joint_names), "numbered alike"
    data = mujoco.MjData(model)
    out = np.empty((3, STATES, n, n))  # MuJoCo's matrices are transposed

    def loop() -> None:
        for k, state in enumerate(zip(*work.states, strict=True)):
            data.qpos, data.qvel, data.qacc = state
            mujoco.mjd_inverseFD(model, data, 1e-6, False, *out[:, k], None, None, None, None)

    loop()
    off = max(_off(x.transpose(0, 2, 1), y) for x, y in zip(out, work.ours(), strict=True))
    against = f"mjd_inverseFD loop, steps of 1e-6, off by {off:.0e}"
    cases = [
        Case("∂τ, with pelvis, dense, `out=`", work.reusing(), loop, against),
        Case("∂τ, with pelvis, dense, `out=`, two threads", work.reusing(threads=2), loop, f"{against}, one thread"),
    ]
    return compare(cases, min(repeats, 10))


def _adaptive(work: Work, repeats: int) -> Row:
    model, k = work.model, 70
    state = [x[k] for x in work.states]

    def differentiate(i: int) -> np.ndarray:
        def tau(x: np.ndarray) -> np.ndarray:
            return inverse_dynamics(model, *state[:i], x, *state[i + 1 :], threads=1)

        return numerical_jacobian(tau, state[i], "adaptive")

    exact = work.ours()
    off = max(_off(differentiate(i), exact[i][k]) for i in range(3))
    against = f"adaptive differences, one instant × {STATES}, off by {off:.0e}"

    def instant() -> None:
        for i in range(3):
            differentiate(i)

    case = Case("∂τ, dense, `out=`", work.reusing(), instant, against, 1e4)
    [row] = compare([case], min(repeats, QUICK))
    assert isinstance(row, Comparison)
    return replace(row, peer=scaled(row.peer, STATES))


def scaled(t: Timing, factor: float) -> Timing:
    """All times multiplied."""
    return Timing(*(factor * x for x in (t.best, t.lower, t.median, t.upper)), t.runs)


def _off(x: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(x - expected).max() / np.abs(expected).max())
