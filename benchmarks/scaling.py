"""Scaling: τ against the number of joints

301 states of q = sin 2πt, one thread, for chains and for binary trees of n bars, against Pinocchio's `rnea`
in a Python loop.  The exponent k of time ∝ nᵏ is fitted to the best times by least squares in logarithms:
1 is O(n), and the fixed cost of a call makes it less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from benchmarks.setting import sinusoid, twin
from benchmarks.timing import Case, Comparison, Measurement, Row, compare
from kinegrad import Model, inverse_dynamics
from kinegrad.samples import spatial_chain

SIZES = (8, 16, 32, 64, 128, 256)


def run(repeats: int) -> list[Row]:
    rows: list[Row] = []
    for shape, build in (("chain", spatial_chain), ("binary tree", binary_tree)):
        found = compare([_case(f"τ, {shape}, n = {n}", build(n)) for n in SIZES], repeats)
        times = [row for row in found if isinstance(row, Comparison)]
        ours, peer = exponent([row.ours.best for row in times]), exponent([row.peer.best for row in times])
        note = f"n = {SIZES[0]}…{SIZES[-1]}; Pinocchio's is {peer:.2f}"
        rows += [*found, Measurement(f"τ, {shape}, exponent of n", ours, note=note)]
    return rows


def binary_tree(n: int) -> Model:
    """The bars of the chain, each carrying two others."""
    return spatial_chain(n).replace(name=f"binary_tree({n})", parents=[(i - 1) // 2 for i in range(n)])


def exponent(times: Sequence[float], sizes: Sequence[int] = SIZES) -> float:
    """k of time ∝ sizeᵏ."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def _case(name: str, model: Model) -> Case:
    q, v, a = sinusoid(model.n)
    other, data = twin(model)

    def loop() -> np.ndarray:
        tau = np.empty(q.shape)
        for k in range(len(q)):
            tau[k] = pin.rnea(other, data, q[k], v[k], a[k])
        return tau

    return Case(name, lambda: inverse_dynamics(model, q, v, a, threads=1), loop, "rnea loop")
