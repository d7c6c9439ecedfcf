"""Second thread: where its gain goes

The 43-degree-of-freedom human, 301 states of q = sin 2πt: the same work by one thread and by two, taking turns,
through the pool that every call uses; 2× is all that there is to gain.  *Arithmetic* is the kernel of ∂τ whose
entries stay in its scratch memory; *writing* is NumPy's `fill` of the dense matrices, half of them by each thread,
which computes nothing; *calls* are what a user calls, with `out=` where there is one.  The pool's own price is a call
of two parts that do nothing, less the same by the caller alone.  Python runs by one thread at a time; the part of a
call that is Python is that of a call of no states.  Page faults are those of the process during one call.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.profile import in_turn, left_in_lanes, prepared
from benchmarks.setting import sinusoid
from benchmarks.timing import Case, Measurement, Row, compare
from kinegrad import _engine as engine
from kinegrad import forward_dynamics, forward_dynamics_derivatives, inverse_dynamics, inverse_dynamics_derivatives
from kinegrad._engine.pool import Call
from kinegrad.samples import human43

ONE = "one thread"


def run(repeats: int) -> list[Row]:
    model = human43()
    state = sinusoid(model.n)
    out = {packed: inverse_dynamics_derivatives(model, *state, packed=packed) for packed in (False, True)}
    arguments, slots = prepared(model, state, out[False], packed=False)
    count = len(state[0])

    def kernel(start: int, stop: int) -> None:
        left_in_lanes(*arguments, engine.scratch(slots), start, stop)

    def fill(start: int, stop: int) -> None:
        for x in arguments[-3:]:
            x[start:stop].fill(0.0)

    def derivatives(packed: bool, threads: int) -> None:
        inverse_dynamics_derivatives(model, *state, packed=packed, out=out[packed], threads=threads)

    solid = human43(thickness=0.1)
    tau = np.empty_like(state[0])
    calls: dict[str, Callable[[int], Any]] = {
        "arithmetic of ∂τ": lambda threads: _parts(kernel, count, threads),
        "writing 13.4 MB": lambda threads: _parts(fill, count, threads),
        "call: ∂τ, dense": lambda threads: derivatives(False, threads),
        "call: ∂τ, packed": lambda threads: derivatives(True, threads),
        "call: ∂a": lambda threads: forward_dynamics_derivatives(solid, *state, threads=threads),
        "call: a": lambda threads: forward_dynamics(solid, *state, out=tau, threads=threads),
        "call: τ": lambda threads: inverse_dynamics(model, *state, out=tau, threads=threads),
    }
    cases = [Case(f"{name}, two threads", _with(call, 2), _with(call, 1), ONE) for name, call in calls.items()]
    return [*compare(cases, repeats), *_prices(model, repeats), _faults(_with(calls["call: ∂τ, dense"], 2))]


def _with(call: Callable[[int], Any], threads: int) -> Callable[[], None]:
    def thrown_away() -> None:
        call(threads)

    return thrown_away


def _parts(work: Callable[[int, int], None], count: int, threads: int) -> None:
    """`work` on as many rows, as `engine.run` would cut them."""
    Call(1, count, count, threads).run(lambda _, start, stop: work(start, stop))


def _prices(model: Any, repeats: int) -> list[Row]:
    none = [x[:0] for x in sinusoid(model.n)]
    nothing = inverse_dynamics_derivatives(model, *none)
    times = in_turn(
        {
            "alone": lambda: _parts(lambda start, stop: None, 301, 1),
            "pool": lambda: _parts(lambda start, stop: None, 301, 2),
            "python": lambda: inverse_dynamics_derivatives(model, *none, out=nothing, threads=2),
        },
        repeats,
    )
    wake = 1e6 * (times["pool"].best - times["alone"].best)
    python = 1e6 * times["python"].best
    return [
        Measurement("the pool: a helper woken and waited for", wake, "µs", note="best, less the caller alone"),
        Measurement("Python of a call of ∂τ, dense, `out=`", python, "µs", note="best; a call of no states"),
    ]


def _faults(call: Callable[[], None]) -> Measurement:
    call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        call()
    faults = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 100
    return Measurement("page faults of a call of ∂τ, dense, `out=`, two threads", faults, note="mean of 100 calls")
