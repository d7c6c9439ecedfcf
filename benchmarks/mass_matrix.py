"""Mass matrix: M of the 43-degree-of-freedom human

301 states of q = sin 2πt.  Pinocchio's `crba` is called in a Python loop that fills an array of shape
(301, 43, 43), or discards the matrices.  Both libraries give full matrices: from Python, `crba` mirrors its
upper triangle itself, so nothing is left to symmetrise.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from benchmarks.setting import sinusoid, twin
from benchmarks.timing import Case, Row, compare
from kinegrad import mass_matrix
from kinegrad.samples import human43


def run(repeats: int) -> list[Row]:
    model = human43()
    q, _, _ = sinusoid(model.n)
    other, data = twin(model)
    state, out = q[70], np.empty((model.n, model.n))

    def loop() -> np.ndarray:
        M = np.empty((*q.shape, model.n))
        for k in range(len(q)):
            M[k] = pin.crba(other, data, q[k])
        return M

    def discarding_loop() -> None:
        for k in range(len(q)):
            pin.crba(other, data, q[k])

    def ours() -> np.ndarray:
        return mass_matrix(model, q, threads=1)

    cases = [
        Case("M, one thread", ours, loop, "crba loop", 8),
        Case("M, one thread", ours, discarding_loop, "crba loop, matrices discarded"),
        Case("M, two threads", lambda: mass_matrix(model, q, threads=2), loop, "crba loop, one thread"),
        Case(
            "M, single call",
            lambda: mass_matrix(model, state, threads=1),
            lambda: pin.crba(other, data, state),
            "crba",
            1.1,
        ),
        Case(
            "M, `out=`, single call",
            lambda: mass_matrix(model, state, out=out, threads=1),
            lambda: pin.crba(other, data, state),
            "crba",
            1.1,
        ),
    ]
    return compare(cases, repeats)
