"""Constrained dynamics: the human on both feet

a, the forces of the floor, and their derivatives with respect to q, v and τ, of the 43-degree-of-freedom human whose
feet are welded to the floor, six directions each; 301 states near a bent posture, limbs 0.1 m thick.  Each state meets
the constraints, so that Pinocchio's derivatives, of accelerations in axes of the foot, are the same.  Pinocchio is
called in a Python loop that fills an array, or, for derivatives, leaves the matrices in its memory, where the next
state overwrites them; kinegrad always delivers all 301.  The last rows are how time grows with the number of
constraints: points of links held in three directions each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from benchmarks.setting import STATES, sinusoid, twin
from benchmarks.timing import Case, Measurement, Row, compare, sample
from kinegrad import (
    ConstraintSet,
    Contact,
    Loop,
    Model,
    assemble,
    constrained_dynamics,
    constrained_dynamics_derivatives,
    forward_kinematics,
    impact,
    impact_derivatives,
    project_velocity,
)
from kinegrad.samples import human43

Arrays = tuple[Any, ...]
FEET = ("left_foot", "right_foot")
HELD = ("left_foot", "right_foot", "left_hand", "right_hand")


def run(repeats: int) -> list[Row]:
    model = human43(thickness=0.1)
    constraints, q, v, tau = standing(model)
    other, data = twin(model)
    models, work, settings = welds(model, other)
    pin.initConstraintDynamics(other, data, models, work)
    state = q[70], v[70], tau[70]

    def peer(k: int) -> Any:
        return pin.constraintDynamics(other, data, q[k], v[k], tau[k], models, work, settings)

    def loop() -> np.ndarray:
        found = np.empty(q.shape)
        for k in range(len(q)):
            found[k] = peer(k)
        return found

    def left() -> Arrays:
        for k in range(len(q)):
            peer(k)
            pin.computeConstraintDynamicsDerivatives(other, data, models, work, settings)
        return data.ddq_dq, data.ddq_dv, data.ddq_dtau

    def collected(_: Any = None) -> Arrays:
        found = tuple(np.empty((*q.shape, model.n)) for _ in range(3))
        for k in range(len(q)):
            peer(k)
            by = pin.computeConstraintDynamicsDerivatives(other, data, models, work, settings)[:3]
            for x, y in zip(found, by, strict=True):
                x[k] = y
        return found

    def one() -> Arrays:
        peer(70)
        return pin.computeConstraintDynamicsDerivatives(other, data, models, work, settings)[:3]

    def ours(threads: int = 1) -> np.ndarray:
        return constrained_dynamics(model, constraints, q, v, tau, threads=threads).a

    def derivatives(*given: Any, threads: int = 1) -> Arrays:
        d = constrained_dynamics_derivatives(model, constraints, *(given or (q, v, tau)), threads=threads)
        return d.da_dq, d.da_dv, d.da_dtau

    dynamics, both = "constraintDynamics loop", "constraintDynamics and its derivatives, loop"
    rows = compare(
        [
            Case("a and forces, one thread", ours, loop, dynamics, 3),
            Case("a and forces, two threads", lambda: ours(2), loop, f"{dynamics}, one thread"),
            Case(
                "a and forces, single call",
                lambda: constrained_dynamics(model, constraints, *state, threads=1).a,
                lambda: peer(70),
                "constraintDynamics",
            ),
            Case("∂a and ∂forces, one thread", derivatives, left, f"{both}, left in place", 3, collected),
            Case("∂a and ∂forces, one thread", derivatives, collected, f"{both}, collected"),
            Case("∂a and ∂forces, single call", lambda: derivatives(*state), one, "constraintDynamics, derivatives"),
        ],
        repeats,
    )
    return [*rows, *_impacts(model, constraints, q, v, repeats), *_growth(model, q, v, tau, repeats)]


def standing(model: Model) -> tuple[ConstraintSet, np.ndarray, np.ndarray, np.ndarray]:
    """Both feet on the floor; coordinates and speeds that agree with it, and torques of 10 sin 2πt N·m."""
    way, rate, _ = sinusoid(model.n)
    share = np.cos(np.arange(model.n))
    middle = 0.4 * np.sin(1.0 + np.arange(model.n))
    T = forward_kinematics(model, middle).transform
    feet = [Loop(foot, other_placement=T[model.link_names.index(foot)]) for foot in FEET]
    constraints = ConstraintSet(model, feet)
    q = assemble(model, constraints, middle + 0.1 * share * way)
    return constraints, q, project_velocity(model, constraints, q, 0.1 * share * rate), 10 * way


def welds(model: Model, other: pin.Model) -> Arrays:
    """The same constraints for Pinocchio."""
    models, work = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for foot in FEET:
        i = model.link_names.index(foot)
        place = pin.SE3(model.tip[i])
        models.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, other, i + 1, place, pin.LOCAL))
        work.append(models[-1].createData())
    return models, work, pin.ProximalSettings(1e-12, 0.0, 1)


def _time(function: Any, repeats: int) -> float:
    """Microseconds per state."""
    return 1e6 * min(sample(function, 1) for _ in range(3 + repeats // 4)) / STATES


def _impacts(model: Model, constraints: ConstraintSet, q: Any, v: Any, repeats: int) -> list[Row]:
    note = "one thread, of both feet at once"
    value = _time(lambda: impact(model, constraints, q, v, threads=1), repeats)
    change = _time(lambda: impact_derivatives(model, constraints, q, v, threads=1), repeats)
    return [
        Measurement("impact", value, "µs per state", None, note),
        Measurement("∂impact", change, "µs per state", None, note),
    ]


def _growth(model: Model, q: Any, v: Any, tau: Any, repeats: int) -> list[Row]:
    rows: list[Row] = []
    for count in range(1, len(HELD) + 1):
        held = ConstraintSet(model, [Contact(link) for link in HELD[:count]])
        value = _time(lambda held=held: constrained_dynamics(model, held, q, v, tau, threads=1), repeats)
        change = _time(lambda held=held: constrained_dynamics_derivatives(model, held, q, v, tau, threads=1), repeats)
        name, note = f"{3 * count} constraints", "one thread"
        rows.append(Measurement(f"a and forces, {name}", value, "µs per state", None, note))
        rows.append(Measurement(f"∂a and ∂forces, {name}", change, "µs per state", None, note))
    return rows
