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

from kinegrad.constrained import constrained_dynamics
from kinegrad.constraints import Constraint, ConstraintSet, Given
from kinegrad.dynamics import forward_dynamics
from kinegrad.errors import KinegradError, said
from kinegrad.model import CoupledCoordinate
from kinegrad.motion.motion import Motion
from kinegrad.motion.nlp.progress import Counter, counting
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
LOST = 1.0  # rad or m: a departure at which the prediction is lost, and the rest says no more


@dataclass(frozen=True, eq=False)
class Verification(Result):
    """How far the simulated motion departs from the predicted one.

    Attributes
    ----------
    departure : float
        Largest difference of a coordinate from the prediction at any time, in `unit`; inf where the simulation failed,
        NaN if the motion was not simulated all at once.  The simulation ends when the difference exceeds 1 rad or m.
    coordinate, unit : str
        Name of that coordinate, and its unit: rad or m.
    time : float
        When, s.
    in_segments : float
        Largest difference where each segment is simulated by itself, in `segment_unit`; NaN if that was not done.
    segment_unit : str
        rad or m.
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
    unit: str
    time: float
    in_segments: float
    segment_unit: str
    forces: float
    mujoco: float
    message: str

    def __str__(self) -> str:
        return self.message


def verify(
    solution: MotionSolution, *, mujoco: bool | None, segments: bool, whole: bool = True, progress: Any = None
) -> Verification:
    """Simulate forwards; Ctrl-C ends it, and what was simulated until then is returned."""
    parts, notes = solution.problem.parts, list[str]()
    count = sum(len(phase.basis.breakpoints) - 1 for phase in solution.problem.phases)
    found = _Found([f"{'m' if kind == 'prismatic' else 'rad'}" for kind in parts.model.layout.coordinate_kinds])
    other = np.nan
    with counting(progress, "segments") as told:
        done = Counter(told, count * (int(segments) + int(whole) + int(mujoco is not False)))
        try:
            _simulate_all(solution, found, notes, done, segments=segments, whole=whole)
            if mujoco is not False:
                other, note = _with_mujoco(solution, done)
                notes.append(note)
        except KinegradError as error:
            found.whole, found.local = (np.inf, *found.whole[1:]), (np.inf, -1)
            notes.append(f"the mechanism cannot be simulated: {said(error)}")
        except KeyboardInterrupt:
            notes.append(f"stopped by Ctrl-C after {done.done} of {done.total} segments")
    where = f" ({parts.model.coordinate_names[found.whole[1]]} at t = {found.whole[2]:.3g} s)"
    where = where if found.whole[1] >= 0 else ""
    all_at_once, local = found.said(*found.whole[:2]), found.said(*found.local)
    if not segments:
        words = f"torques applied forwards: the motion departs by {all_at_once}{where}"
    else:
        words = f"torques applied forwards, segment by segment: the motion departs by {local}"
        unstable = np.isfinite(found.local[0]) and found.whole[0] > max(0.05, 20 * found.local[0])
        if whole and unstable:
            words += (
                f"; all at once, without control, it is unstable, as a body on its feet is: by {all_at_once}{where}"
            )
        elif whole:
            words += f"; all at once by {all_at_once}{where}"
    return Verification(
        found.whole[0] if whole else np.nan, parts.model.coordinate_names[found.whole[1]] if where else "",
        found.unit(found.whole[1]), found.whole[2] if whole else np.nan, found.local[0] if segments else np.nan,
        found.unit(found.local[1]), float(found.forces), other, "; ".join([words, *notes]),
    )  # fmt: skip


@dataclass
class _Found:
    """The largest departures so far, with the number of the coordinate (-1: none) and the time; forces."""

    units: list[str]
    whole: tuple[float, int, float] = (np.nan, -1, 0.0)
    local: tuple[float, int] = (np.nan, -1)
    forces: float = np.nan

    def unit(self, coordinate: int) -> str:
        return self.units[coordinate] if coordinate >= 0 else ""

    def said(self, value: float, coordinate: int) -> str:
        if np.isnan(value):
            return "an unknown amount (not simulated to its end)"
        return f"{value:.2g} {self.unit(coordinate)}".rstrip()


def _simulate_all(
    solution: MotionSolution, found: _Found, notes: list[str], done: Counter, *, segments: bool, whole: bool
) -> None:
    """Each phase: its segments side by side, then the whole from where the phase before has ended."""
    state: tuple[Array, Array] | None = None
    began, lost = 0.0, not whole
    for p, motion in enumerate(solution.phases):
        spline, rows = _torques(solution, p), _rows(solution, p)
        if segments:
            off = _in_segments(solution, p, spline, rows)
            value, i = float(off.max()), int(off.argmax())
            found.local = (value, i) if not value <= found.local[0] else found.local
            done.add(len(solution.problem.phases[p].basis.breakpoints) - 1)
        if not lost:
            state = (motion.q[0], motion.v[0]) if state is None else state
            ended, why = _all_at_once(solution, p, spline, rows, state, began, found, done)
            lost, state = ended is None, ended
            notes += [why] if lost else []
        began += float(motion.t[-1])


def _all_at_once(
    solution: MotionSolution, p: int, tau: Any, rows: ConstraintSet | None, state: tuple[Array, Array], began: float,
    found: _Found, done: Counter,
) -> tuple[tuple[Array, Array] | None, str]:  # fmt: skip
    """Where a phase ends, by its segments one after the other; None, and why, if it does not come that far."""
    motion, name = solution.phases[p], solution.problem.phases[p].name
    edges = _edges(solution, p)
    for begin, end in pairwise(edges.tolist()):
        inside = np.flatnonzero((motion.t > begin + 1e-12) & (motion.t < end - 1e-12))
        times = np.concatenate([[begin], motion.t[inside], [end]])
        simulated = _simulated(solution, p, tau, rows, *state, times)
        predicted = motion(times[: len(simulated.t)])
        off = np.abs(simulated.q - predicted.q)
        k, i = np.unravel_index(int(np.argmax(off)), off.shape)
        if not off[k, i] <= found.whole[0]:
            found.whole = (float(off[k, i]), int(i), began + float(times[k]))
        if len(simulated.t) < len(times):
            found.whole = (np.inf, *found.whole[1:])
            return None, f"the simulation of phase {name!r} ended early: {simulated.message}"
        if motion.forces is not None and simulated.forces is not None and rows is not None:
            found.forces = np.nanmax([found.forces, _force_difference(solution, p, simulated, predicted)])
        state = (simulated.q[-1], simulated.v[-1])
        done.add(1)
        if found.whole[0] > LOST:
            return None, f"the simulation all at once was ended there, at t = {began + end:.3g} s"
    return state, ""


def _edges(solution: MotionSolution, p: int) -> Array:
    """Times at which the segments of a phase meet, s."""
    motion = solution.phases[p]
    edges: Array = solution.problem.phases[p].basis.breakpoints * motion.t[-1]
    edges[-1] = motion.t[-1]
    return edges


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


def _in_segments(solution: MotionSolution, p: int, tau: Any, rows: ConstraintSet | None) -> Array:
    """Largest departures of all coordinates where each segment is simulated by itself; all segments are one batch.

    Time is s, from 0 to 1 in every segment, so that one integrator takes all of them along.  It begins anew where
    torques have a corner in any segment.
    """
    from scipy.integrate import solve_ivp

    from kinegrad.simulate.projection import closed, still

    model, loads = _with_parameters(solution, p)
    held = None if rows is None else ConstraintSet(model, rows.constraints)
    edges = _edges(solution, p)
    begin, h = edges[:-1], np.diff(edges)
    at = solution.phases[p](edges)
    corners = [(tau.x[(tau.x > a) & (tau.x < b)] - a) / (b - a) for a, b in pairwise(edges.tolist())]
    cuts = np.unique(np.concatenate([[0.0, 1.0], *corners]).round(9))
    q0, v0 = at.q[:-1], at.v[:-1]
    if held is not None:
        q0 = closed(held, q0).q
        v0 = still(held, q0, v0, redundant=True)
    y, shape = np.stack([q0, v0], axis=1), (len(h), 2, model.nv)
    for first, last in pairwise(cuts.tolist()):
        piece = np.searchsorted(tau.x, begin + 0.5 * (first + last) * h, side="right") - 1

        def rate(s: float, flat: Array, piece: Any = piece) -> Array:
            q, v = flat.reshape(shape).swapaxes(0, 1)
            x = begin + s * h - tau.x[piece]
            torque = np.zeros_like(q)
            for c in tau.c[:, piece]:
                torque = torque * x[:, None] + c
            if held is None:
                a = forward_dynamics(model, q, v, torque, loads=loads)
            else:
                a = constrained_dynamics(model, held, q, v, torque, loads=loads, redundant="least-squares").a
            return np.ravel(h[:, None, None] * np.stack([v, a], axis=1))

        found = solve_ivp(rate, (first, last), y.ravel(), "DOP853", rtol=1e-10, atol=1e-12)
        if not found.success:
            return np.full(model.nv, np.inf)
        y = found.y[:, -1].reshape(shape)
    return np.asarray(np.abs(y[:, 0] - at.q[1:]).max(axis=0))


def _force_difference(solution: MotionSolution, p: int, found: Any, predicted: Motion) -> float:
    parts = solution.problem.parts
    forced, rows = parts.parts[p].forced, parts.parts[p].forced_rows
    assert predicted.forces is not None
    assert forced is not None
    names = [forced.row_names[r] for r in rows]
    expected = predicted.forces[:, [predicted.row_names.index(name) for name in names]]
    acted = found.forces[:, [found.row_names.index(name) for name in names]]
    return float((np.abs(expected - acted) / parts.force_scales(parts.parts[p])).max())


def _with_mujoco(solution: MotionSolution, done: Counter) -> tuple[float, str]:
    """Forward dynamics of MuJoCo, under the same integrator."""
    from importlib.util import find_spec

    if find_spec("mujoco") is None:
        return np.nan, "MuJoCo is not installed"
    if any(part.forced is not None for part in solution.problem.parts.parts):
        return np.nan, "not with MuJoCo, whose contacts and loops are soft"
    from scipy.integrate import solve_ivp

    from kinegrad.compare.mujoco_model import mujoco_acceleration

    worst, coordinate, state = 0.0, 0, None
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
        for begin, end in pairwise(_edges(solution, p).tolist()):  # torques have corners between segments
            found = solve_ivp(rate, (begin, end), state, "DOP853", rtol=1e-10, atol=1e-11)
            if not found.success:
                return np.inf, f"MuJoCo's motion ended early: {found.message}"
            state = found.y[:, -1]
            off = np.abs(state[:n] - motion(np.array([end])).q[0])
            if off.max() > worst:
                worst, coordinate = float(off.max()), int(off.argmax())
            done.add(1)
    kind = solution.problem.parts.model.layout.coordinate_kinds[coordinate]
    return worst, f"with MuJoCo it departs by {worst:.2g} {'m' if kind == 'prismatic' else 'rad'}"
