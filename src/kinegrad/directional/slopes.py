"""Slopes along directions, which the exact modes of several functions are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kinegrad import _engine as engine
from kinegrad._kernels import constraint_rows, dual_states
from kinegrad.constraints import ConstraintSet
from kinegrad.directional.sweep import Array, Sweep
from kinegrad.dynamics import METHODS
from kinegrad.dynamics_derivatives import JVP

__all__ = ["TORQUES", "contracted", "duals", "pairs", "row_slopes", "saddle_matrix", "torque_slopes"]

TORQUES = replace(METHODS["spatial"], function=dual_states.inverse_dynamics)
ROWS = engine.Kernel(
    dual_states.constraints,
    engine.QVA,
    (
        engine.Result("jacobian", (engine.Axis.POINT, engine.Axis.PER_POSITION)),
        engine.Result("acceleration", (engine.Axis.POINT,)),
    ),
    tables=lambda model, loaded, stream: ((), constraint_rows.slots(model.n)),
    with_elements=engine.indifferent,
)


def row_slopes(
    sweep: Sweep, rows: ConstraintSet, motion: Sequence[Array], changes: Sequence[Array | None]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """G and φ̈ with their slopes along changes of q, v and a, of which the first is not None."""
    G, acceleration = duals(sweep, ROWS, motion, changes, (rows.m,), [tuple(rows._tables)])
    return G, acceleration


def pairs(
    sweep: Sweep, kernel: engine.Kernel, state: Sequence[Array], changes: Sequence[Array | None]
) -> tuple[engine.Batch, list[tuple[Array, Array | None]], Sequence[Array]]:
    """The batch; values, (states, n), with slopes, (states, k, n) or None; loads."""
    batch, rows, loads = engine.checked(
        kernel, sweep.model.without_elements, state, sweep.loads if kernel.loads else None
    )
    batch.check_finite()
    shape = (batch.states, sweep.count, batch.n)
    slopes = [None if d is None else d.reshape(shape) for d in changes]
    slopes += [None] * (len(rows) - len(slopes))
    values = [engine.kernel_array(np.broadcast_to(x, (batch.states, batch.n))) for x in rows]
    return batch, list(zip(values, slopes, strict=True)), loads


def duals(
    sweep: Sweep,
    kernel: engine.Kernel,
    state: Sequence[Array],
    changes: Sequence[Array | None],
    points: engine.Shape | None = None,
    options: Sequence[Any] = (),
) -> list[tuple[Array, Array]]:
    """Return values, (..., *core), and slopes, (..., k, *core), of a kernel of ``_kernels/dual_states.py``."""
    batch, together, loads = pairs(sweep, kernel, state, changes)
    both = engine.run_duals(kernel, batch, together, loads, sweep.threads, points, options)
    batch.results = both[0]
    batch.check_results()
    return [
        (value.reshape(*sweep.shape, *core), slope.reshape(*sweep.shape, sweep.count, *core))
        for value, slope, core in zip(*both, kernel.cores(sweep.model, points), strict=True)
    ]


def contracted(sweep: Sweep, *matrices: Any) -> Array:
    """Derivatives, (..., r, nv) each, times the changes of the parts of the state, (..., nv, k)."""
    with np.errstate(all="ignore"):  # what overflows is found in the end
        products = [m @ d for m, d in zip(matrices, sweep.D, strict=False) if d is not None]
        total: Array = products[0]
        for product in products[1:]:
            total += product
    return total


def torque_slopes(sweep: Sweep, motion: Sequence[Array], changes: Sequence[Array]) -> Array:
    """Slopes of torques, (..., k, nv), where coordinates are not joints or force elements act."""
    given = (*sweep.abreast(motion), *changes)
    return engine.evaluate(JVP, sweep.model, given, sweep.loads_abreast, threads=sweep.threads)[0]


def saddle_matrix(M: Array, G: Array) -> Array:
    """K = [M −Gᵀ; G 0]."""
    n, m = M.shape[-1], G.shape[-2]
    K = np.zeros((*M.shape[:-2], n + m, n + m))
    K[..., :n, :n], K[..., :n, n:], K[..., n:, :n] = M, -G.swapaxes(-1, -2), G
    return K
