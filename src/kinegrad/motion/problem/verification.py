"""Proof of a predicted motion: its torques, applied to the mechanism, must move it as predicted.

Inverse dynamics gave the torques; here forward dynamics takes them back, by another algorithm and an integrator with
error control, as [xiang2008] did with a commercial program.  Where feet stand or loops are closed, their constraints
act instead of the predicted forces.  Torques of rows without motors, which are zero at nodes and nearly so between
them, are left out.

People are unstable: small differences grow while torques are applied open-loop.  So besides the whole motion, each
segment is simulated by itself from the predicted state at its beginning, which tells how well the prediction fulfils
the equations of motion wherever it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.constraints import Constraint, ConstraintSet, Given
from kinegrad.errors import KinegradError, said
from kinegrad.model import CoupledCoordinate
from kinegrad.motion.problem.requirements import Fixed
from kinegrad.results import Result

if TYPE_CHECKING:
    from kinegrad.motion.problem.solution import MotionSolution

__all__ = ["Verification"]

Array = NDArray[np.float64]
POINTS = 6  # Chebyshev points in each interval of nodes for the polynomial of the torques
EXTREMES = (1 - np.cos(np.pi * np.array([2, 3, 5]) / 6)) / 2  # parts of an interval where it is furthest off
CLOSE = 1e-8  # of the largest value of each torque: how far it may be off
ROUNDING = 1e-14  # of the largest torque of all: what is not seen
HALVINGS = 6  # of intervals, at most


@dataclass(frozen=True, eq=False)
class Verification(Result):
    """How far the simulated motion departs from the predicted one.

    Attributes
    ----------
    departure : float
        The largest difference of a coordinate at any time, rad or m; inf where the simulation failed.
    coordinate : str
        Which coordinate.
    time : float
        When, s.
    in_segments : float
        The same where each segment is simulated by itself.
    forces : float
        The largest difference of contact and loop forces from the predicted ones, by the force size of the problem;
        NaN where there are none.
    mujoco : float
        Departure of a simulation with MuJoCo; NaN where there is none.
    message : str
        What was done, and what could not be.
    """

    departure: float
    coordinate: str
    time: float
    in_segments: float
    forces: float
    mujoco: float
    message: str

    def __str__(self) -> str:
        return self.message


def verify(solution: MotionSolution, *, mujoco: bool | None, segments: bool, whole: bool = True) -> Verification:
    """Simulate forwards."""
    problem, notes = solution.problem, []
    parts = problem.parts
    worst = (0.0, "", 0.0)
    local, force_off, began = 0.0, np.nan, 0.0
    state: tuple[Array, Array] | None = None
    try:
        for p, motion in enumerate(solution.phases):
            spline, rows = _torques(solution, p), _rows(solution, p)
            t = motion.t
            if not whole:
                local = max(local, _in_segments(solution, p, spline, rows))
                continue
            q0, v0 = (motion.q[0], motion.v[0]) if state is None else state
            found = _simulated(solution, p, spline, rows, q0, v0, t)
            off = np.abs(found.q - motion.q[: len(found.t)])
            k, i = np.unravel_index(int(np.argmax(off)), off.shape)
            if off[k, i] > worst[0] or not worst[1]:
                worst = (float(off[k, i]), parts.model.coordinate_names[i], began + float(t[k]))
            if len(found.t) < len(t):
                worst = (np.inf, worst[1], worst[2])
                notes.append(f"the simulation of phase {problem.phases[p].name!r} ended early: {found.message}")
                break
            state = (found.q[-1], found.v[-1])
            if segments:
                local = max(local, _in_segments(solution, p, spline, rows))
            if motion.forces is not None and found.forces is not None and rows is not None:
                force_off = np.nanmax([force_off, _force_difference(solution, p, found)])
            began += float(t[-1])
    except KinegradError as error:
        worst, local = (np.inf, "", began), np.inf
        notes.append(f"the mechanism cannot be simulated: {said(error)}")
    other = np.nan
    if mujoco is not False:
        other, note = _with_mujoco(solution)
        notes.append(note)
    if not whole:
        done = f"torques applied forwards, segment by segment: the motion departs by {local:.2g} rad or m"
        return Verification(np.nan, "", np.nan, local, np.nan, other, "; ".join([done, *notes]))
    where = f" ({worst[1]} at t = {worst[2]:.3g} s)" if worst[1] else ""
    done = f"torques applied forwards: the motion departs by {worst[0]:.2g} rad or m{where}"
    if segments:
        done = f"torques applied forwards, segment by segment: the motion departs by {local:.2g} rad or m; "
        if np.isfinite(local) and worst[0] > max(0.05, 20 * local):
            done += f"all at once, without control, it is unstable, as a body on its feet is: by {worst[0]:.2g}{where}"
        else:
            done += f"all at once by {worst[0]:.2g}{where}"
    return Verification(*worst, local if segments else np.nan, float(force_off), other, "; ".join([done, *notes]))


def _applied(solution: MotionSolution, tau: Array) -> Array:
    """Torques without those that nothing supplies."""
    N = solution.problem.parts.actuators.N
    return tau if not len(N) else tau - np.linalg.solve(N @ N.T, N @ tau.T).T @ N


def _torques(solution: MotionSolution, p: int) -> Any:
    """A piecewise polynomial of time through torques between each two nodes; where that is not enough, on halves."""
    motion = solution.phases[p]
    edges = motion.t
    for _ in range(HALVINGS):
        curve = _through(solution, p, edges)
        h = np.diff(edges)
        t = edges[:-1, None] + h[:, None] * EXTREMES
        tau = motion(t.ravel()).tau
        assert tau is not None
        off = np.abs(_applied(solution, tau) - curve(t.ravel())).reshape(*t.shape, -1).max(axis=1)
        sizes = np.abs(tau).max(axis=0)  # each torque by its own size, and rounding by the largest
        bad = (off > np.maximum(CLOSE * sizes, ROUNDING * sizes.max(initial=0.0))).any(axis=1)
        if not bad.any():
            return curve
        edges = np.sort(np.concatenate([edges, (edges[:-1] + h / 2)[bad]]))
    return _through(solution, p, edges)


def _through(solution: MotionSolution, p: int, edges: Array) -> Any:
    """A polynomial through torques at Chebyshev points of each interval."""
    from scipy.interpolate import PPoly

    motion, h = solution.phases[p], np.diff(edges)
    x = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)[::-1]
    t = ((edges[1:] + edges[:-1]) / 2)[:, None] + h[:, None] / 2 * x
    tau = motion(t.ravel()).tau
    assert tau is not None
    values = _applied(solution, tau).reshape(len(edges) - 1, POINTS, -1)
    powers = ((x + 1) / 2)[:, None] ** np.arange(POINTS - 1, -1, -1)
    c = np.einsum("ab,kbn->akn", np.linalg.inv(powers), values)
    c = c / h[None, :, None] ** np.arange(POINTS - 1, -1, -1)[:, None, None]
    return PPoly(c, edges)


def _rows(solution: MotionSolution, p: int) -> ConstraintSet | None:
    """What holds while the phase lasts."""
    part = solution.problem.parts.parts[p]
    kept: list[Constraint] = [] if part.forced is None else list(part.forced.constraints)
    for one in solution.problem.requirements:
        if isinstance(one, Fixed):
            kept += [_joint_held(part.model, name, value) for name, value in one.q.items()]
    return ConstraintSet(part.model, kept) if kept else None


def _joint_held(model: Any, coordinate: str, value: float) -> Given:
    """A coordinate held by a joint that it moves: of several the one that moves most."""
    for entry in model.coordinates:
        if isinstance(entry, CoupledCoordinate) and entry.name == coordinate:
            found = [function.derivatives(np.array(value), 1) for function in entry.functions]
            k = int(np.argmax([abs(slope) for _, slope in found]))
            return Given(model.joint_names[entry.joints[k]], float(found[k][0]))
    return Given(coordinate, value)


def _simulated(
    solution: MotionSolution, p: int, tau: Any, rows: ConstraintSet | None, q0: Array, v0: Array, t: Array
) -> Any:
    from kinegrad.simulate import simulate

    model, loads = _with_parameters(solution, p)
    how: dict[str, Any] = {}
    if rows is not None:
        how = {"constraints": ConstraintSet(model, rows.constraints), "redundant": "least-squares", "project": True}
    return simulate(model, q0, v0, t, tau=tau, loads=loads, rtol=1e-10, atol=1e-12, **how)


def _with_parameters(solution: MotionSolution, p: int) -> tuple[Any, Any]:
    """The model and loads of a phase, with the parameters that were chosen."""
    part = solution.problem.parts.parts[p]
    loads = solution.problem.phases[p].loads
    if part.design is None:
        return part.model, loads
    design = part.design.at(list(solution.parameters.values()))
    return design.model, loads if design.loads is None else design.loads


def _in_segments(solution: MotionSolution, p: int, tau: Any, rows: ConstraintSet | None) -> float:
    motion, phase = solution.phases[p], solution.problem.phases[p]
    edges, worst = phase.basis.breakpoints * motion.t[-1], 0.0
    edges[-1] = motion.t[-1]
    at = motion(edges)
    for k in range(len(edges) - 1):
        found = _simulated(solution, p, tau, rows, at.q[k], at.v[k], edges[k : k + 2])
        worst = max(worst, float(np.abs(found.q[-1] - at.q[k + 1]).max()) if len(found.t) == 2 else np.inf)
    return worst


def _force_difference(solution: MotionSolution, p: int, found: Any) -> float:
    motion, parts = solution.phases[p], solution.problem.parts
    forced, rows = parts.parts[p].forced, parts.parts[p].forced_rows
    assert motion.forces is not None
    assert forced is not None
    names = [forced.row_names[r] for r in rows]
    predicted = motion.forces[:, [motion.row_names.index(name) for name in names]]
    acted = found.forces[:, [found.row_names.index(name) for name in names]]
    return float((np.abs(predicted - acted) / parts.force_scales(parts.parts[p])).max())


def _with_mujoco(solution: MotionSolution) -> tuple[float, str]:
    """Forward dynamics of MuJoCo, under the same integrator."""
    from importlib.util import find_spec

    if find_spec("mujoco") is None:
        return np.nan, "MuJoCo is not installed"
    if any(part.forced is not None for part in solution.problem.parts.parts):
        return np.nan, "not with MuJoCo, whose contacts and loops are soft"
    from scipy.integrate import solve_ivp

    from kinegrad.compare.mujoco_model import mujoco_acceleration

    worst, state = 0.0, None
    for p, motion in enumerate(solution.phases):
        model, loads = _with_parameters(solution, p)
        acceleration: Callable[..., Array] | str = mujoco_acceleration(model, loads)
        if isinstance(acceleration, str):
            return np.nan, f"not with MuJoCo: {acceleration}"
        tau, n = _torques(solution, p), model.nv
        law = acceleration

        def rate(t: float, y: Array, law: Any = law, tau: Any = tau, n: int = n) -> Array:
            return np.concatenate([y[n:], law(y[:n], y[n:], tau(t))])

        state = np.concatenate([motion.q[0], motion.v[0]]) if state is None else state
        edges = motion.t[0] + solution.problem.parts.phases[p].basis.breakpoints * (motion.t[-1] - motion.t[0])
        for begin, end in pairwise(edges.tolist()):  # torques have corners between segments
            found = solve_ivp(rate, (begin, end), state, "DOP853", rtol=1e-10, atol=1e-11)
            if not found.success:
                return np.inf, f"MuJoCo's motion ended early: {found.message}"
            state = found.y[:, -1]
            worst = max(worst, float(np.abs(state[:n] - motion(np.array([end])).q[0]).max()))
    return worst, f"with MuJoCo it departs by {worst:.2g}"
