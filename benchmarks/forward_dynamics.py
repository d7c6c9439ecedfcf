"""Forward dynamics: a and ∂a/∂(q, v, τ) of the 43-degree-of-freedom human

301 states of q = sin 2πt, with torques of 10 sin 2πt N·m; limbs 0.1 m thick, for slender ones have no inertia about
themselves.  Pinocchio's `aba` is called in a Python loop that fills an array of shape (301, 43), and
`computeABADerivatives` in one that leaves the three matrices in Pinocchio's memory, where the next state overwrites
them, or collects them in new arrays of shape (301, 43, 43).  kinegrad always delivers all 301.  The last rows are
accuracy where a is known: of the torques of the motion itself, whose rounding alone is enlarged by the condition
number of M, 5e5; these a are small, and would not agree to the 1e-11 that all rows above are checked to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks.setting import sinusoid, twin
from benchmarks.timing import Case, Measurement, Row, compare
from kinegrad import (
    ForwardDynamicsDerivatives,
    Model,
    forward_dynamics,
    forward_dynamics_derivatives,
    inverse_dynamics,
)
from kinegrad.samples import human43

Matrices = tuple[Any, ...]
LEFT, COLLECTED = "computeABADerivatives loop, left in place", "computeABADerivatives loop, collected"


def run(repeats: int) -> list[Row]:
    model = human43(thickness=0.1)
    q, v, a = sinusoid(model.n)
    tau = 10 * q
    other, data = twin(model)
    state, out = (q[70], v[70], tau[70]), np.empty(model.n)

    def loop() -> np.ndarray:
        found = np.empty(q.shape)
        for k in range(len(q)):
            found[k] = pin.aba(other, data, q[k], v[k], tau[k])
        return found

    def left() -> Matrices:
        for k in range(len(q)):
            pin.computeABADerivatives(other, data, q[k], v[k], tau[k])
        return data.ddq_dq, data.ddq_dv, data.Minv

    def collected() -> Matrices:
        found = tuple(np.empty((*q.shape, model.n)) for _ in range(3))
        for k in range(len(q)):
            one = pin.computeABADerivatives(other, data, q[k], v[k], tau[k])
            for x, y in zip(found, one, strict=True):
                x[k] = y
        return found

    def ours(method: str = "aba", threads: int = 1) -> np.ndarray:
        return forward_dynamics(model, q, v, tau, method=method, threads=threads)

    def derivatives(threads: int = 1) -> Matrices:
        return matrices(forward_dynamics_derivatives(model, q, v, tau, threads=threads))

    def all_states(_: Matrices) -> Matrices:
        """Checked against all of Pinocchio's matrices even where the timed loop leaves them behind."""
        return collected()

    rows = compare(
        [
            Case("a, one thread", ours, loop, "aba loop", 8),
            Case("a, two threads", lambda: ours(threads=2), loop, "aba loop, one thread"),
            Case("a by `crba`, one thread", lambda: ours("crba"), loop, "aba loop"),
            Case(
                "a, single call",
                lambda: forward_dynamics(model, *state, threads=1),
                lambda: pin.aba(other, data, *state),
                "aba",
                1.1,
            ),
            Case(
                "a, `out=`, single call",
                lambda: forward_dynamics(model, *state, out=out, threads=1),
                lambda: pin.aba(other, data, *state),
                "aba",
                1.1,
            ),
            Case("∂a, one thread", derivatives, left, LEFT, 6, all_states),
            Case("∂a, one thread", derivatives, collected, COLLECTED),
            Case("∂a, two threads", lambda: derivatives(2), left, f"{LEFT}, one thread", None, all_states),
            Case(
                "∂a, single call",
                lambda: matrices(forward_dynamics_derivatives(model, *state, threads=1)),
                lambda: pin.computeABADerivatives(other, data, *state),
                "computeABADerivatives",
                1.1,
            ),
        ],
        repeats,
    )
    return [*rows, *_accuracy(model, (q, v, a), lambda *x: pin.aba(other, data, *x))]


def _accuracy(model: Model, motion: Matrices, peer: Callable[..., np.ndarray]) -> list[Row]:
    """How far a is from that of the motion whose torques are given, by its largest entry."""
    q, v, a = motion
    tau = inverse_dynamics(model, q, v, a)
    found = {
        "aba": forward_dynamics(model, q, v, tau),
        "crba": forward_dynamics(model, q, v, tau, method="crba"),
        "Pinocchio's aba": np.array([peer(*x) for x in zip(q, v, tau, strict=True)]),
    }
    off = {name: float(np.abs(x - a).max() / np.abs(a).max()) for name, x in found.items()}
    note = "from the a that τ was computed from"
    return [Measurement(f"a by `{name}`, accuracy", 1e12 * x, "× 1e-12", None, note) for name, x in off.items()]


def matrices(d: ForwardDynamicsDerivatives) -> Matrices:
    return d.da_dq, d.da_dv, d.da_dtau
