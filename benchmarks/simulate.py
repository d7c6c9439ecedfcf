"""Simulation in equal steps: RK4 of many states and of many designs

Time of one step of one state, which is four evaluations of forward dynamics; one thread, all states kept.  MuJoCo
makes the same steps (its RK4, no geometry, no contacts): `mj_step` in a Python loop that keeps q, or `rollout`, its
compiled loop over steps and states.  "Python loop" is `simulate_fixed` itself with torques from a Python function, zero
as in all rows: it calls the batched `forward_dynamics` at each stage.  The double pendulum is of cylinders, for
MuJoCo refuses point masses, and the human's pelvis, where three branches meet, is a sphere of 1 kg, for it refuses
massless links that branch.  Designs differ in their masses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import mujoco
import mujoco.rollout
import numpy as np
from numpy.typing import NDArray
from tests.peers.mujoco_model import to_mujoco

from benchmarks.derivatives import scaled
from benchmarks.timing import Case, Comparison, Row, compare
from kinegrad import Design, Inertia, Model, get_threads, set_threads
from kinegrad.samples import human43, spatial_chain
from kinegrad.simulate import Feedback, simulate_fixed

Array = NDArray[np.float64]
STEP = 1e-3  # s
ZERO = Feedback(lambda t, q, v: np.zeros_like(q), None, None)


def run(repeats: int) -> list[Row]:
    pendulum, pelvis = spatial_chain(2), Inertia.sphere(1.0, 0.1)
    human = human43(thickness=0.1).replace(mass={"pelvis.rz": pelvis.mass}, inertia={"pelvis.rz": pelvis.inertia})
    with one_thread():
        return [
            *_states("double pendulum, one state", pendulum, 1, 100, repeats),
            *_states("double pendulum, 1000 states", pendulum, 1000, 10, repeats),
            *_states("human, 64 states", human, 64, 10, repeats),
            _designs("double pendulum, 256 designs", pendulum, 256, 100, repeats),
            _designs("human, 256 designs", human, 256, 5, repeats),
            _tangents("human, 64 states, ∂/∂ 8 masses", human, 64, 2, repeats),
        ]


@contextmanager
def one_thread() -> Iterator[None]:
    before = get_threads()
    set_threads(1)
    try:
        yield
    finally:
        set_threads(before)


def starts(n: int, states: int) -> Array:
    return 0.3 * np.random.default_rng(0).normal(size=(states, n))


def _states(name: str, model: Model, states: int, steps: int, repeats: int) -> Iterator[Row]:
    n = model.n
    q0 = starts(n, states)
    v0 = np.zeros_like(q0)
    twin = to_mujoco(model)
    twin.opt.integrator, twin.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, STEP
    data = mujoco.MjData(twin)
    full = np.zeros((states, mujoco.mj_stateSize(twin, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    full[:, 1 : 1 + n] = q0

    def ours() -> Array:
        return simulate_fixed(model, q0, v0, step=STEP, steps=steps).q

    def loop() -> Array:
        return simulate_fixed(model, q0, v0, step=STEP, steps=steps, tau=ZERO).q

    def mj_step() -> Array:
        mujoco.mj_resetData(twin, data)
        data.qpos[:] = q0[0]
        path = np.empty((steps + 1, 1, n))
        path[0] = q0
        for k in range(steps):
            mujoco.mj_step(twin, data)
            path[k + 1, 0] = data.qpos
        return path

    def rollout() -> Array:
        path, _ = mujoco.rollout.rollout(twin, data, full, nstep=steps)
        return np.concatenate([q0[None], path[:, :, 1 : 1 + n].swapaxes(0, 1)])

    peers: dict[str, Callable[[], Array]] = {"MuJoCo rollout": rollout, "Python loop": loop}
    if states == 1:
        peers = {"MuJoCo mj_step, loop": mj_step} | peers
    for against, peer in peers.items():
        yield _per_step(Case(name, ours, peer, against), states * steps, repeats)


def _designs(name: str, model: Model, count: int, steps: int, repeats: int) -> Row:
    models = [model.replace(mass=model.mass * factor) for factor in np.linspace(1, 2, count)]
    q0, v0 = starts(model.n, 1)[0], np.zeros(model.n)

    def together() -> Array:
        return simulate_fixed(models, q0, v0, step=STEP, steps=steps).q

    def in_turn() -> Array:
        return np.stack([simulate_fixed(one, q0, v0, step=STEP, steps=steps).q for one in models], axis=1)

    return _per_step(Case(name, together, in_turn, "one after another"), count * steps, repeats)


def _tangents(name: str, model: Model, states: int, steps: int, repeats: int) -> Row:
    links = [link for link, mass in zip(model.link_names, model.mass, strict=True) if mass][:8]
    design = Design(model, [f"{link}.mass" for link in links])
    q0 = v0 = starts(model.n, states)  # from rest all would fall alike, and the slopes be zero

    def ours(tau: Feedback | None = None) -> Array:
        slopes = simulate_fixed(model, q0, v0, step=STEP, steps=steps, design=design, tau=tau).dv_dp
        assert slopes is not None
        return slopes

    return _per_step(Case(name, ours, lambda: ours(ZERO), "Python loop"), states * steps, repeats)


def _per_step(case: Case, steps: int, repeats: int) -> Row:
    [row] = compare([case], repeats)
    assert isinstance(row, Comparison)
    return replace(row, ours=scaled(row.ours, 1 / steps), peer=scaled(row.peer, 1 / steps))
