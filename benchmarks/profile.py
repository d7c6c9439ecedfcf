"""Profile: where the time of ∂τ/∂(q, v, a) goes

The 43-degree-of-freedom human, one thread; 301 states of q = sin 2πt, then one of them.  All lines of a part take
turns, each sample as long as the others; *best, less …* are differences of best times.  The parts of the kernel are
kernels of their own, made of the same functions: the outward pass alone (which, as the whole kernel, first looks
whether all numbers are finite); with the factors of each joint and the sums to its parent; with all entries, but left
in lanes.  *Call and sum* are a call with `out=` followed by a reader, NumPy's `sum` of all that was written, where
results are written past the caches (streamed), as those of this size are, and where they are not.  A single call is
Python, which a call of no states shows (checks, new arrays, results), the kernel with its dispatch, and as *rest* what
remains, as each alone meets warmer caches.
"""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.setting import sinusoid
from benchmarks.timing import REPEATS, Measurement, Row, Timing, sample
from kinegrad import InverseDynamicsDerivatives, Model, PackedMatrix, inverse_dynamics, inverse_dynamics_derivatives
from kinegrad import _engine as engine
from kinegrad._engine import memory
from kinegrad._kernels import rnea
from kinegrad._kernels.bodies import passive_force
from kinegrad._kernels.compiler.jit import kernel
from kinegrad._kernels.compiler.width import WIDTH
from kinegrad._kernels.lanes.finite import finite
from kinegrad._kernels.lanes.lane import gather, scatter, store
from kinegrad._kernels.mechanism import unpack
from kinegrad._kernels.rnea_derivatives import (
    FORCE,
    PATH,
    N,
    entries,
    entry_slots,
    factors,
    hand_on,
    inward,
    outward,
    record,
    rnea_derivatives,
)
from kinegrad._kernels.spatial import dot, load3
from kinegrad.loads import load_batch
from kinegrad.samples import human43

LENGTH = 5e-3  # seconds a sample lasts at least
Functions = dict[str, Callable[[], Any]]


# --- parts of the kernel, with its arguments --------------------------------------------------------------------


@kernel
def outward_alone(
    m, q, v, a, force, point, torque, plan, pairs, past, tau, dtau_dq, dtau_dv, dtau_da, scratch, start, stop
):
    """Frames, motion and path slots."""
    if not finite((q, v, a, force, point, torque), start, stop):
        return False
    m = unpack(m)
    for r in range(start, stop, WIDTH):
        outward(m, plan, q, v, a, force, point, torque, r, scratch)
    return True


@kernel
def with_factors(
    m, q, v, a, force, point, torque, plan, pairs, past, tau, dtau_dq, dtau_dv, dtau_da, scratch, start, stop
):
    """Also τ, the factors of each joint (in one number each, so that none is left out), and the sums."""
    if not finite((q, v, a, force, point, torque), start, stop):
        return False
    m = unpack(m)
    n, loaded = len(m.parent), len(force) > 0
    by_q = (n + 1) * N + n * PATH
    for r in range(start, stop, WIDTH):
        outward(m, plan, q, v, a, force, point, torque, r, scratch)
        for i in range(n - 1, -1, -1):
            sums, path = record(plan, i), (n + 1) * N + i * PATH
            z, s = load3(scratch, path), load3(scratch, path + 3)
            moment, f = load3(scratch, sums + FORCE), load3(scratch, sums + FORCE + 3)
            passive = passive_force(m, i, gather(q, r, i), gather(v, r, i), gather(a, r, i))
            scatter(tau, r, i, dot(z, moment) + dot(s, f) + passive)
            t, b, u, w, l = factors(m, i, sums, path, loaded, scratch)
            store(scratch, by_q + i, dot(z, u.n) + dot(s, u.f) + dot(z, b) + dot(z, l))
            store(scratch, by_q + n + i, dot(z, w.n) + dot(s, w.f))
            store(scratch, by_q + 2 * n + i, dot(z, t.n) + dot(s, t.f))
            hand_on(m, plan, i, loaded, scratch)
    return True


@kernel
def left_in_lanes(
    m, q, v, a, force, point, torque, plan, pairs, past, tau, dtau_dq, dtau_dv, dtau_da, scratch, start, stop
):
    """Everything but the way from lanes to the results' memory."""
    if not finite((q, v, a, force, point, torque), start, stop):
        return False
    m = unpack(m)
    place, first, _ = pairs
    n = len(m.parent)
    slots = entries((n + 1) * N + n * PATH, n, len(place), (dtau_dq, dtau_dv, dtau_da), scratch)
    for r in range(start, stop, WIDTH):
        outward(m, plan, q, v, a, force, point, torque, r, scratch)
        inward(m, plan, q, v, a, r, len(force) > 0, place, first, tau, slots, scratch)
    return True


# --- rows -------------------------------------------------------------------------------------------------------


def run(repeats: int) -> list[Row]:
    model = human43()
    rows: list[Row] = []
    for packed in (False, True):
        rows += _trajectory(model, packed, repeats)
    return [*rows, *_single(model, repeats), *_single_tau(model, repeats)]


def _trajectory(model: Model, packed: bool, repeats: int) -> list[Row]:
    state = sinusoid(model.n)
    out = inverse_dynamics_derivatives(model, *state, packed=packed)
    arguments, slots = prepared(model, state, out, packed)
    scratch = engine.scratch(slots)
    count = len(state[0])
    matrices = arguments[-3:]
    size = entry_slots(model.n, engine.pairs(model))
    _check(left_in_lanes, arguments, scratch, slots - 3 * size, count)

    def call(out: InverseDynamicsDerivatives | None) -> None:
        inverse_dynamics_derivatives(model, *state, packed=packed, out=out, threads=1)

    def fill() -> None:
        for x in matrices:
            x.fill(0.0)

    times = in_turn(
        {
            "out": lambda: call(out),
            "whole": lambda: rnea_derivatives(*arguments, scratch, 0, count),
            "lanes": lambda: left_in_lanes(*arguments, scratch, 0, count),
            "factors": lambda: with_factors(*arguments, scratch, 0, count),
            "outward": lambda: outward_alone(*arguments, scratch, 0, count),
            "fill": fill,
        },
        repeats,
    )
    times |= in_turn({f"read, {way}": partial(_read, lambda: call(out), matrices, way) for way in ("1", "0")}, repeats)
    # not in turn with the others, whose memory would be colder after it
    times |= in_turn({"new": lambda: call(None)}, repeats) | in_turn({"pages": lambda: call(_new_pages(out))}, repeats)
    megabytes = f"{sum(x.nbytes for x in matrices) / 1e6:.1f} MB"
    kilobytes = WIDTH * 8e-3
    joints, entries = (f"{kilobytes * k:.0f} kB" for k in (slots - 3 * size, 3 * size))
    name = f"∂τ, {'packed' if packed else 'dense'}"
    return [
        _row(f"{name}: call, new arrays, thrown away", times["new"]),
        _row(f"{name}: call, `out=` in new pages of the system, {megabytes}", times["pages"]),
        _row(f"{name}: call, `out=`", times["out"]),
        _less(f"{name}: — gate, Python", times["out"], times["whole"], "best, less the kernel's"),
        _row(f"{name}: — whole kernel", times["whole"]),
        _row(f"{name}: —— outward pass, scratch of {joints}", times["outward"]),
        _less(f"{name}: —— factors, sums to the parent", times["factors"], times["outward"], "best, less outward"),
        _less(f"{name}: —— pairs, into {entries} of lanes", times["lanes"], times["factors"], "best, less factors"),
        _less(f"{name}: —— from lanes to the results", times["whole"], times["lanes"], "whole kernel, less pairs"),
        _row(f"NumPy's `fill` of {megabytes}, for comparison", times["fill"]),
        _row(f"{name}: call and sum, `out=`, streamed", times["read, 1"]),
        _row(f"{name}: call and sum, `out=`, not streamed", times["read, 0"]),
    ]


def _read(call: Callable[[], None], results: Sequence[np.ndarray], way: str) -> None:
    """A call whose results are read at once; `way` as of KINEGRAD_STREAM."""
    before, memory._STREAM = memory._STREAM, way
    try:
        call()
    finally:
        memory._STREAM = before
    for x in results:
        x.sum()


def _single(model: Model, repeats: int) -> list[Row]:
    n = model.n
    state = tuple(x[70] for x in sinusoid(n))
    named = dict(zip("qva", state, strict=True))
    out = inverse_dynamics_derivatives(model, *state)
    arguments, slots = prepared(model, state, out, packed=False)
    scratch = engine.scratch(slots)
    batch, _ = load_batch(model, None, named)
    none = tuple(np.empty((0, n)) for _ in range(3))
    out_none = inverse_dynamics_derivatives(model, *none)
    times = in_turn(
        {
            "call": lambda: inverse_dynamics_derivatives(model, *state, threads=1),
            "out": lambda: inverse_dynamics_derivatives(model, *state, out=out, threads=1),
            "python": lambda: inverse_dynamics_derivatives(model, *none, threads=1),
            "python, out": lambda: inverse_dynamics_derivatives(model, *none, out=out_none, threads=1),
            "gate": lambda: load_batch(model, None, named),
            "arrays": lambda: (batch.output((n,)), batch.outputs((n, n), 3)),
            "dispatch": lambda: rnea_derivatives(*arguments, scratch, 0, 0),
            "kernel": lambda: rnea_derivatives(*arguments, scratch, 0, 1),
        },
        repeats,
    )
    name = "∂τ, dense, single call"
    return [
        _row(f"{name}, `out=`", times["out"]),
        _row(f"{name}, `out=`: — Python: call of no states", times["python, out"]),
        _row(name, times["call"]),
        _row(f"{name}: — Python: call of no states", times["python"]),
        _row(f"{name}: —— gate", times["gate"]),
        _row(f"{name}: —— new arrays", times["arrays"]),
        _row(f"{name}: — dispatch: kernel of no states", times["dispatch"]),
        _less(f"{name}: — kernel", times["kernel"], times["dispatch"], "of one state, less dispatch"),
        _rest(f"{name}: — rest", times, ("python", "kernel")),
    ]


def _single_tau(model: Model, repeats: int) -> list[Row]:
    n = model.n
    state = tuple(x[70] for x in sinusoid(n))
    named = dict(zip("qva", state, strict=True))
    batch, loads = load_batch(model, None, named)
    arguments = (engine.mechanism(model), *batch.arguments, *loads, np.empty((1, n)))
    scratch = engine.scratch((n + 1) * rnea.N)
    none = tuple(np.empty((0, n)) for _ in range(3))
    times = in_turn(
        {
            "call": lambda: inverse_dynamics(model, *state, threads=1),
            "python": lambda: inverse_dynamics(model, *none, threads=1),
            "gate": lambda: load_batch(model, None, named),
            "arrays": lambda: batch.output((n,)),
            "dispatch": lambda: rnea.rnea(*arguments, scratch, 0, 0),
            "kernel": lambda: rnea.rnea(*arguments, scratch, 0, 1),
        },
        repeats,
    )
    name = "τ, single call"
    return [
        _row(name, times["call"]),
        _row(f"{name}: — Python: call of no states", times["python"]),
        _row(f"{name}: —— gate", times["gate"]),
        _row(f"{name}: —— new array", times["arrays"]),
        _row(f"{name}: — dispatch: kernel of no states", times["dispatch"]),
        _less(f"{name}: — kernel", times["kernel"], times["dispatch"], "of one state, less dispatch"),
        _rest(f"{name}: — rest", times, ("python", "kernel")),
    ]


def prepared(
    model: Model, state: tuple[Any, ...], out: InverseDynamicsDerivatives, packed: bool
) -> tuple[tuple[Any, ...], int]:
    """What the public function gives the kernel to fill `out`, and how many slots it needs."""
    batch, loads = load_batch(model, None, dict(zip("qva", state, strict=True)))
    results = [getattr(x, "values", x) for x in (out.tau, out.dtau_dq, out.dtau_dv, out.dtau_da)]
    flat = [x.reshape(batch.states, -1) for x in results]
    stream = engine.streams(3 * flat[1].nbytes)
    tables, slots = engine.torque_tables(model, "packed" if packed else "dense", loaded=False, stream=stream)
    return (engine.mechanism(model), *batch.arguments, *loads, *tables, *flat), slots


def _new_pages(like: InverseDynamicsDerivatives) -> InverseDynamicsDerivatives:
    """Results of the same shapes in memory that the process did not have before."""

    def new(x: Any) -> Any:
        if isinstance(x, PackedMatrix):
            return PackedMatrix(new(x.values), x.rows, x.cols, x.n)
        return np.frombuffer(mmap.mmap(-1, x.nbytes)).reshape(x.shape)

    return InverseDynamicsDerivatives(*(new(x) for x in vars(like).values()))


def _check(part: Any, arguments: tuple[Any, ...], scratch: np.ndarray, first: int, count: int) -> None:
    """The lanes that `part` leaves hold the last states of the results that the whole kernel has written."""
    part(*arguments, scratch, 0, count)
    place, _, where = arguments[-6]
    size = entry_slots(arguments[-4].shape[1], len(place))
    for k, x in enumerate(arguments[-3:]):
        lane = scratch[first + k * size + where, (count - 1) % WIDTH]
        np.testing.assert_allclose(lane, x[-1], rtol=0, atol=1e-11 * np.abs(x).max())


# --- times ------------------------------------------------------------------------------------------------------


def in_turn(functions: Functions, repeats: int) -> dict[str, Timing]:
    """All of them taking turns, at least `repeats` times and for repeats / 10 seconds."""
    calls: dict[str, int] = {}
    found: dict[str, list[float]] = {name: [] for name in functions}
    for name, function in functions.items():
        function()  # compiles
        calls[name] = max(1, round(LENGTH / min(sample(function, 1) for _ in range(5))))
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        stop = perf_counter() + 3 * repeats / REPEATS
        while len(found[next(iter(found))]) < repeats or perf_counter() < stop:
            for name, function in functions.items():
                found[name].append(sample(function, calls[name]))
    finally:
        if enabled:
            gc.enable()
    return {name: Timing.of(seconds) for name, seconds in found.items()}


def _row(name: str, t: Timing) -> Row:
    return Measurement(name, 1e6 * t.best, "µs", note=f"best of {t.runs}; median {1e6 * t.median:.2f} µs")


def _less(name: str, whole: Timing, part: Timing, note: str) -> Row:
    """What the whole takes beyond the part."""
    medians = 1e6 * (whole.median - part.median)
    return Measurement(name, 1e6 * (whole.best - part.best), "µs", note=f"{note}; of medians {medians:.2f} µs")


def _rest(name: str, times: dict[str, Timing], parts: tuple[str, ...]) -> Row:
    """What the call takes beyond its parts, the kernel with its dispatch."""
    best = times["call"].best - sum(times[part].best for part in parts)
    median = times["call"].median - sum(times[part].median for part in parts)
    return Measurement(name, 1e6 * best, "µs", note=f"call, less Python and kernel; of medians {1e6 * median:.2f} µs")
