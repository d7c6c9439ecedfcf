"""Floor: how far each kernel is from what the machine can do

The 43-degree-of-freedom human, 301 states of q = sin 2πt, one thread.  The floor of a row is the time of its
arithmetic, if every instruction were one multiply-add of registers that waits for no other, and of writing its
results, as NumPy's `fill` writes as many bytes.  Operations are counted by running the kernel on numbers that count
(``python -m benchmarks.operations``); both rates are measured here, in turn with the calls.  Nothing overlaps in this
floor, and reading and keeping numbers between the passes of an algorithm costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.operations import of_human
from benchmarks.profile import in_turn
from benchmarks.setting import sinusoid
from benchmarks.timing import Measurement, Row
from kinegrad import (
    forward_dynamics,
    forward_dynamics_derivatives,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    mass_matrix,
)
from kinegrad._engine.threads import aligned
from kinegrad._kernels.compiler.jit import inline, kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.lane import load
from kinegrad._kernels.tree_solve import load_row, store_row
from kinegrad.samples import human43

SUMS = 10  # side by side, so that none waits for itself
TURNS = 10_000


@inline
def turn(scratch, turns):
    u = load_row(scratch, 0, tuple(range(SUMS)))
    c, d = load(scratch, SUMS), load(scratch, SUMS + 1)
    for _ in range(turns):
        u = tuple(x * c + d for x in u)
    store_row(scratch, 0, u)


@kernel
def multiply_adds(scratch, turns):
    """As many times `SUMS` multiply-adds."""
    turn(scratch, turns)
    return True


def run(repeats: int) -> list[Row]:
    counts = of_human()
    model, (q, v, a) = human43(thickness=0.1), sinusoid(43)
    out = {packed: inverse_dynamics_derivatives(model, q, v, a, packed=packed) for packed in (False, True)}
    row, matrix = np.empty_like(q), mass_matrix(model, q)
    matrices = 3 * matrix.nbytes
    works: dict[str, tuple[str, int, Callable[[], Any]]] = {
        "τ": ("τ", row.nbytes, lambda: inverse_dynamics(model, q, v, a, out=row, threads=1)),
        "M": ("M", matrix.nbytes, lambda: mass_matrix(model, q, out=matrix, threads=1)),
        "a": ("a", row.nbytes, lambda: forward_dynamics(model, q, v, a, out=row, threads=1)),
        "∂τ, dense": ("∂τ", matrices, lambda: inverse_dynamics_derivatives(model, q, v, a, out=out[False], threads=1)),
        "∂τ, packed": (
            "∂τ",
            3 * out[True].dtau_dq.values.nbytes,
            lambda: inverse_dynamics_derivatives(model, q, v, a, packed=True, out=out[True], threads=1),
        ),
        "∂a": ("∂a", matrices, lambda: forward_dynamics_derivatives(model, q, v, a, threads=1)),
    }
    scratch, memory = aligned(SUMS + 2), np.zeros(matrices // 8)
    rows: list[Row] = []
    for name, (what, size, call) in works.items():
        filled = memory[: size // 8]
        times = in_turn(
            {
                "call": lambda call=call: call() is None,
                "rate": lambda: multiply_adds(scratch, TURNS),
                "fill": lambda filled=filled: filled.fill(0.0),
            },
            repeats,
        )
        each = times["rate"].best / (SUMS * TURNS)
        operations = max(counts[what].values())
        arithmetic = 1e6 * each * operations * -(-len(q) // WIDTH)
        writing, taken = 1e6 * times["fill"].best, 1e6 * times["call"].best
        note = f"{taken:.0f} µs against {arithmetic:.0f} for {operations} operations and {writing:.0f} for writing"
        rows.append(Measurement(name, taken / (arithmetic + writing), "× the floor", note=note))
    rows.append(Measurement("one multiply-add of a register", 1e9 * each, "ns", note="independent of others"))
    return rows
