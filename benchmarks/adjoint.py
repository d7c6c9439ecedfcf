"""Adjoint gradients: dJ/dp against the number of parameters, memory against the number of steps

J is the distance of a chain's joints from a posture, at the end and along the way; RK4, one thread.  The peer of the
adjoint is the direct method, `simulate_fixed` with a design and `objective_gradient`, whose result is the same; or the
motion alone, `simulate_fixed` without a design, of which the adjoint may take the five-fold time (≥ 0.2×).  The
exponent k of time ∝ pᵏ of the adjoint is fitted to the best times.  Memory is the most that NumPy holds during the
call, less dJ/dτ, which is a result and as long as the motion; with checkpoints (√steps of them) and, to compare, with
all steps kept (`segment=steps`); its exponent is that of the steps.
"""

from __future__ import annotations

import tracemalloc

import numpy as np

from benchmarks.scaling import exponent
from benchmarks.simulate import one_thread
from benchmarks.timing import Case, Comparison, Measurement, Row, compare
from kinegrad import Design
from kinegrad.samples import spatial_chain
from kinegrad.simulate import Objective, Tracking, adjoint_gradient, objective_gradient, simulate_fixed

PARAMETERS = (1, 4, 16, 64, 240)
STEPS = (100, 400, 1600, 6400)
LINKS, STATES, H = 24, 16, 1e-3
INERTIAL = ("mass", "com.x", "com.y", "com.z", *(f"inertia.{m}" for m in ("xx", "yy", "zz", "xy", "xz", "yz")))


def run(repeats: int) -> list[Row]:
    with one_thread():
        times = [_time(p, repeats) for p in PARAMETERS]
        forward = [_time(p, repeats, forward=True) for p in (PARAMETERS[0], PARAMETERS[-1])]
        grows = exponent([row.ours.best for row in times], PARAMETERS)
        note = f"p = {PARAMETERS[0]}…{PARAMETERS[-1]}"
        return [*times, *forward, Measurement("dJ/dp, adjoint, exponent of p", grows, note=note), *_memory()]


def _setting(n: int) -> tuple[np.ndarray, Objective]:
    away = Tracking(np.full(n, 0.1))
    return 0.3 * np.random.default_rng(0).normal(size=(STATES, n)), Objective(end=[away], integral=[away])


def _time(p: int, repeats: int, forward: bool = False) -> Comparison:
    """Fixed motions, more and more of a chain's inertial parameters; against the direct method, or the motion alone."""
    chain = spatial_chain(LINKS)
    names = [f"{link}.{what}" for what in INERTIAL for link in chain.link_names]
    design = Design(chain, names[:p])
    q0, objective = _setting(LINKS)
    options = {"step": H, "steps": 40}

    def adjoint() -> np.ndarray:
        return adjoint_gradient(chain, q0, np.zeros(LINKS), objective, design=design, **options).dvalue_dp

    def direct() -> np.ndarray:
        motion = simulate_fixed(chain, q0, np.zeros(LINKS), design=design, **options)
        return objective_gradient(motion, objective).dvalue_dp

    def alone() -> None:
        simulate_fixed(chain, q0, np.zeros(LINKS), **options)

    name = f"dJ/dp of {STATES} motions, 40 steps, n = {LINKS}, p = {p}"
    if forward:
        [row] = compare([Case(name, adjoint, alone, "the motion alone", 0.2)], repeats)
    else:
        [row] = compare([Case(name, adjoint, direct, "direct, compiled")], min(repeats, 5))
    assert isinstance(row, Comparison)
    return row


def _memory() -> list[Row]:
    chain = spatial_chain(6)
    design = Design(chain, [f"{link}.mass" for link in chain.link_names])
    q0, objective = _setting(6)
    rows: list[Row] = []
    for what, whole in (("√steps kept", False), ("all steps kept", True)):
        peaks = []
        for steps in STEPS:
            segment = steps if whole else None
            tracemalloc.start()
            found = adjoint_gradient(
                chain, q0[0], np.zeros(6), objective, step=H, steps=steps, design=design, segment=segment
            )
            peaks.append((tracemalloc.get_traced_memory()[1] - found.dvalue_dtau.nbytes) / 1e6)
            tracemalloc.stop()
        rows += [
            Measurement(f"memory of the adjoint, n = 6, {steps} steps, {what}", peak, "MB")
            for steps, peak in zip(STEPS, peaks, strict=True)
        ]
        target = None if whole else 0.6
        note = f"{STEPS[0]}…{STEPS[-1]}"
        rows.append(
            Measurement(f"memory of the adjoint, {what}, exponent of steps", exponent(peaks, STEPS), "", target, note)
        )
    return rows
