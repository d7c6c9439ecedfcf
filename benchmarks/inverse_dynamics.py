"""Inverse dynamics: τ of the 43-degree-of-freedom human

301 states of q = sin 2πt.  Pinocchio's `rnea` is called in a Python loop that fills an array of shape
(301, 43).
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from benchmarks.setting import sinusoid, twin
from benchmarks.timing import Case, Row, compare
from kinegrad import inverse_dynamics
from kinegrad.samples import human43


def run(repeats: int) -> list[Row]:
    model = human43()
    q, v, a = sinusoid(model.n)
    other, data = twin(model)
    state = q[70], v[70], a[70]

    out = np.empty(model.n)

    def loop() -> np.ndarray:
        tau = np.empty(q.shape)
        for k in range(len(q)):
            tau[k] = pin.rnea(other, data, q[k], v[k], a[k])
        return tau

    def ours(method: str = "spatial", threads: int = 1) -> np.ndarray:
        return inverse_dynamics(model, q, v, a, method=method, threads=threads)

    cases = [
        Case("τ, one thread", ours, loop, "rnea loop", 8),
        Case("τ, two threads", lambda: ours(threads=2), loop, "rnea loop, one thread"),
        Case("τ by `lagrange`, one thread", lambda: ours("lagrange"), loop, "rnea loop"),
        Case(
            "τ, single call",
            lambda: inverse_dynamics(model, *state, threads=1),
            lambda: pin.rnea(other, data, *state),
            "rnea",
            1.1,
        ),
        Case(
            "τ, `out=`, single call",
            lambda: inverse_dynamics(model, *state, out=out, threads=1),
            lambda: pin.rnea(other, data, *state),
            "rnea",
            1.1,
        ),
    ]
    return compare(cases, repeats)
