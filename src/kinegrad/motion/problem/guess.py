"""Where a search begins: postures where phases begin and end, and straight lines between them.

A posture fulfils, as well as it can, the rows that hold there (least squares within the limits of q), near a hint: one
of the caller's, or the next posture that is given, or zero.  Control points lie on the straight line between two
postures, at the means of their knots, so that the guess *is* that line but for conditions at its ends.  The feet that
stand share the weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.constraints import ConstraintSet
from kinegrad.errors import InputError, shown
from kinegrad.motion.motion import Motion
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.program import MotionProgram
from kinegrad.motion.problem.rest import given_posture
from kinegrad.motion.problem.resting import Rests
from kinegrad.motion.problem.transcription import Transcription

Array = NDArray[np.float64]
NEAR = 0.03  # weight of the distance from the hint, rad or m, against rows in m or rad
MOST = 100  # steps
FAR = 2e-3  # m or rad: how far from a target the nearest posture may be before the target is out of reach


def standing(program: MotionProgram, postures: Any = None, durations: Any = None) -> Array:
    """A guess x, (n,)."""
    parts = program.parts
    hints = _hints(parts, postures)
    corners = [posture(parts, k, hints[k])[0] for k in range(len(parts.phases) + 1)]
    return from_postures(program, corners, durations)


def from_postures(program: MotionProgram, corners: list[Array], durations: Any = None) -> Array:
    """Straight lines between postures of splines."""
    parts = program.parts
    x = np.clip(np.zeros(program.n), program.x_lower, program.x_upper)
    times = _durations(parts, durations)
    for p, phase in enumerate(parts.phases):
        variables = parts.variables.phases[p]
        line = corners[p] + phase.basis.greville[:, None] * (corners[p + 1] - corners[p])
        there = variables.points >= 0
        x[variables.points[there]] = line[there]
        if variables.duration >= 0:
            x[variables.duration] = times[p]
        fill_forces(parts, p, x)
        known = variables.parameters >= 0
        x[variables.parameters[known]] = variables.parameter_values[known]
    return np.asarray(np.clip(x, program.x_lower, program.x_upper))


def fill_forces(parts: Transcription, p: int, x: Array) -> None:
    """Feet share the weight."""
    part = parts.parts[p]
    if not part.feet:
        return
    g = float(np.linalg.norm(part.model.gravity))
    load = sum(mass for mass, _ in part.phase.attached.values())
    resting = sum(isinstance(one, Rests) for one, _ in part.feet)
    standing = part.model.total_mass - (load if resting else 0.0)
    for one, name in part.feet:
        assert part.forced is not None
        normal = part.forced.rows(name).start + 2
        if normal in part.forced_rows:
            share = load / resting if isinstance(one, Rests) else standing / (len(part.feet) - resting)
            x[parts.variables.forces[p][:, part.forced_rows.index(normal)]] = share * g


def _hints(parts: Transcription, postures: Any) -> list[Array]:
    """A posture near which to look, for the start and the end of each phase."""
    names, count = parts.model.coordinate_names, len(parts.phases) + 1
    found = _neighbours(parts)
    if postures is None:
        return found
    keys = {"start": 0, "end": count - 1} | {phase.name: k + 1 for k, phase in enumerate(parts.phases)}
    given = postures if isinstance(postures, Mapping) else None
    if given is None or not set(given) <= set(keys):
        raise InputError(f"`postures` is {shown(postures)}; expected a dictionary from {shown(list(keys))}, the "
                         "ends of phases by their names, to coordinates")  # fmt: skip
    for key, q in given.items():
        found[keys[key]][:] = 0.0
        for i, value in checks.per_name(f"postures[{key!r}]", q, names, parts.model.name).items():
            found[keys[key]][i] = checks.number(f"postures[{key!r}], {names[i]}", value)
    return found


def _neighbours(parts: Transcription) -> list[Array]:
    """Of each corner: the nearest posture that is given, or zero: an elbow that is bent one way stays so."""
    count = len(parts.phases) + 1
    known = {k: q for k in range(count) for q in [_given(parts, k)] if q is not None}
    near = [min(known, key=lambda k, here=here: abs(k - here), default=None) for here in range(count)]  # type: ignore[misc]
    return [np.zeros(parts.model.nv) if k is None else known[k].copy() for k in near]


def _given(parts: Transcription, corner: int) -> Array | None:
    """All coordinates where phases meet, if they are given there."""
    found = [given_posture(parts, p, end) for p, end in ((corner, 0), (corner - 1, 1)) if 0 <= p < len(parts.phases)]
    return next((q for q in found if q is not None), None)


def _durations(parts: Transcription, durations: Any) -> Array:
    limits = np.array([phase.duration for phase in parts.phases])
    if durations is None:
        return np.clip(np.ones(len(limits)), limits[:, 0], limits[:, 1])
    if isinstance(durations, Mapping):
        names = [phase.name for phase in parts.phases]
        found = np.clip(np.ones(len(limits)), limits[:, 0], limits[:, 1])
        for k, T in checks.per_name("durations", durations, names, parts.model.name, "phase").items():
            found[k] = checks.number("durations", T, least=0.0, above=True)
        return found
    given = np.atleast_1d(engine.real("durations", durations))
    if given.shape != (len(limits),) or not (np.isfinite(given) & (given > 0)).all():
        raise InputError(f"`durations` is {shown(durations)}; expected {len(limits)} times above zero, s")
    return given


def posture(parts: Transcription, corner: int, hint: Array) -> tuple[Array, Array, list[str]]:
    """Splines' values where phases meet, (splines,); what is left of its rows, and their names."""
    p, end = (corner, 0) if corner < len(parts.phases) else (corner - 1, -1)
    where, builder = parts.where, parts.builder
    ids = [builder.root(int(builder.point(p, end, k))) for k in range(where.count)]
    low, high = builder.lower[ids], builder.upper[ids]
    start = np.clip(np.array([where.sign[i] * hint[i] for i in where.leaders]), low, high)
    items = _rows_at(parts, corner)
    if not items:
        return start, np.zeros(0), []
    spread = _matrix(parts)
    found = _nearest(items, spread, parts.where.offset, start, low, high)
    return found, _errors(items, spread @ found + where.offset), [name for *_, names in items for name in names]


def _nearest(items: list[Any], spread: Array, offset: Array, start: Array, low: Array, high: Array) -> Array:
    """Least squares of the rows, and a little of the distance from the start, within bounds.

    Steps of Levenberg and Marquardt; a component at a bound that the gradient pushes against is held there.
    """
    u, near, damping = start.copy(), NEAR, 1e-3

    def cost(at: Array) -> float:
        error = _errors(items, spread @ at + offset)
        return float(error @ error) + near**2 * float((at - start) @ (at - start))

    value = cost(u)
    for step in range(MOST):
        q = spread @ u + offset
        error = _errors(items, q)
        J = np.concatenate([rows_of.jacobian(q)[list(rows)] for rows_of, rows, *_ in items]) @ spread
        J = np.where(np.abs(error)[:, None] > 0, J, 0.0)  # rows within their tolerance
        gradient = J.T @ error + near**2 * (u - start)
        held = ((u <= low) & (gradient > 0)) | ((u >= high) & (gradient < 0)) | (low == high)
        free = np.flatnonzero(~held)
        if not len(free) or (step and np.abs(error).max() < 1e-10):
            break
        A = J[:, free].T @ J[:, free] + (near**2 + damping) * np.eye(len(free))
        moved = u.copy()
        moved[free] -= np.linalg.solve(A, gradient[free])
        moved = np.clip(moved, low, high)
        new = cost(moved)
        if new < value:
            small = np.abs(moved - u).max() < 1e-9
            u, value, damping = moved, new, max(damping / 10, 1e-12)
            if small:
                break
        else:
            damping *= 10
            if damping > 1e8:
                break
        if step % 10 == 9:  # the hint counts less and less
            near *= 0.1
            value = cost(u)
    return u


def _matrix(parts: Transcription) -> Array:
    """∂q/∂(splines), (nv, splines)."""
    where, out = parts.where, np.zeros((parts.model.nv, parts.where.count))
    for i in range(parts.model.nv):
        if where.spline[i] >= 0:
            out[i, where.spline[i]] = where.sign[i]
    return out


def _rows_at(parts: Transcription, corner: int) -> list[tuple[ConstraintSet, tuple[int, ...], Array, Array, list[str]]]:
    """All rows that are to hold where phases meet, redundant ones too."""
    found = []
    for p, s in ((corner, 0.0), (corner - 1, 1.0)):
        if 0 <= p < len(parts.parts):
            part = parts.parts[p]
            for item in part.items:
                if s in item.instants:
                    k, count = item.instants.index(s), len(item.constraint.rows)
                    names = [f"{item.label} {row}" for row in item.constraint.rows]
                    rows = ConstraintSet(part.model, [item.constraint])
                    found.append((rows, tuple(range(count)), item.lower[k], item.upper[k], names))
    return found


def _errors(items: list[Any], q: Array) -> Array:
    """By how much rows are off."""
    parts = []
    for rows_of, rows, lower, upper, _ in items:
        value = rows_of.error(q)[list(rows)]
        parts.append(value - np.clip(value, lower, upper))
    return np.concatenate(parts) if parts else np.zeros(0)


def check_reachable(parts: Transcription) -> None:
    """Refuse targets that no posture within the limits comes near to, from several hints.

    Not where parameters of a design are free: a longer arm may reach them.
    """
    bounds = parts.problem.design_bounds
    if bounds is not None and (bounds[:, 0] < bounds[:, 1]).any():
        return
    rng = np.random.default_rng(20080206)
    for corner in range(0 if parts.soft is None else 1, len(parts.phases) + 1):
        best = None
        for attempt in range(6):
            hint = np.zeros(parts.model.nv) if attempt == 0 else rng.uniform(-0.6, 0.6, parts.model.nv)
            _, error, names = posture(parts, corner, hint)
            if not len(error):
                best = None
                break
            worst = int(np.argmax(np.abs(error)))
            if best is None or abs(error[worst]) < best[0]:
                best = (abs(float(error[worst])), names[worst])
            if best[0] < FAR:
                best = None
                break
        if best is not None:
            last = len(parts.phases)
            when = (
                "the start"
                if corner == 0
                else "the end"
                if corner == last
                else f"the end of {parts.phases[corner - 1].name!r}"
            )
            raise InputError(
                f"what is asked for at {when} is out of reach: the nearest posture found within all limits leaves "
                f"{best[1]} off by {best[0]:.3g} m or rad; expected targets that can be met together"
            )


def from_motion(program: MotionProgram, motion: Motion, durations: Any = None) -> Array:
    """Control points nearest to a motion, which is stretched over all phases."""
    parts = program.parts
    if motion.coordinate_names != parts.model.coordinate_names or motion.q.ndim != 2:
        raise InputError(f"`guess` is {motion!r}; expected a motion of the coordinates of {parts.model.name!r}")
    times = _durations(parts, durations)
    total = motion.t[-1] - motion.t[0]
    if durations is None and len(times) == 1:
        least, most = parts.phases[0].duration  # type: ignore[misc]
        times = np.clip([total], least, most)
    x = from_postures(program, [np.zeros(parts.where.count)] * (len(parts.phases) + 1), times)
    begins = np.concatenate([[0.0], np.cumsum(times)]) / times.sum()
    for p, phase in enumerate(parts.phases):
        variables = parts.variables.phases[p]
        s = np.linspace(0, 1, 4 * phase.basis.control_points)
        t = motion.t[0] + (begins[p] + s * (begins[p + 1] - begins[p])) * total
        q = motion(np.clip(t, motion.t[0], motion.t[-1])).q[:, list(parts.where.leaders)]
        points = np.linalg.lstsq(phase.basis.values(s), q, rcond=None)[0]
        there = variables.points >= 0
        x[variables.points[there]] = points[there]
    return np.asarray(np.clip(x, program.x_lower, program.x_upper))
