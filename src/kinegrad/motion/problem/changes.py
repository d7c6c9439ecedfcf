"""What limits, friction and conditions at the ends do to the program of a motion: derivatives that (1) and (2) of
``sensitivity.py`` need.

A limit ±x moves both sides away at once; of any other, each side is a parameter.  Bounds on q are those of unknowns,
since control points have them; bounds on v and a, torques and powers are rows.  The friction μ is a coefficient of the
rows of a foot, μ cos(π/k) F_z − t_j·F ≥ 0.  A coordinate that is given at an end is a constant of the program, not a
limit: its derivatives are those of the program in which it is an unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError
from kinegrad.motion.problem.functions import Linear, Squares
from kinegrad.motion.problem.nodes import Block
from kinegrad.motion.problem.places import Reach
from kinegrad.motion.problem.program import MotionProgram
from kinegrad.motion.problem.terms import Effort
from kinegrad.motion.problem.transcription import Transcription

if TYPE_CHECKING:
    from kinegrad.motion.problem.solution import MotionSolution

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Change:
    """What one parameter θ does."""

    name: str
    value: float
    objective: float  # dJ/dθ
    slope: Array  # ∂²L/∂x∂θ, (n,)
    rows: Array  # ∂g/∂θ − ∂b/∂θ, (m,)
    bounds: Array  # ∂c/∂θ, (n,)


@dataclass(frozen=True, eq=False)
class _Limit:
    """Both sides of a limit, and the rows or unknowns that have it."""

    name: str
    lower: float
    upper: float
    rows: Index
    unknowns: Index
    phases: tuple[int, ...]
    actuator: str = ""  # whose torque it limits


def limit_changes(solution: MotionSolution) -> list[Change]:
    """Limits of torques, powers, q, v, a and durations; friction of feet."""
    found = []
    names = [phase.name for phase in solution.problem.phases]
    for limit in _merged([*_of_blocks(solution), *_of_splines(solution), *_of_durations(solution)], names):
        if limit.lower == -limit.upper:
            found.append(_moved(solution, f"limit of {limit.name}", limit.upper, limit, (-1.0, 1.0)))
            continue
        if np.isfinite(limit.lower):
            found.append(_moved(solution, f"lower limit of {limit.name}", limit.lower, limit, (1.0, 0.0)))
        if np.isfinite(limit.upper):
            found.append(_moved(solution, f"upper limit of {limit.name}", limit.upper, limit, (0.0, 1.0)))
    return [*found, *_frictions(solution)]


def _moved(solution: MotionSolution, name: str, value: float, limit: _Limit, sides: tuple[float, float]) -> Change:
    """A limit whose lower and upper sides move by `sides` per unit."""
    program, found = solution.problem.program, solution.nonlinear
    rows, bounds = np.zeros(program.m), np.zeros(program.n)
    y, z = found.g_multipliers[limit.rows], found.x_multipliers[limit.unknowns]
    rows[limit.rows] = -np.where(y > 0, sides[1], sides[0])
    at_upper = np.where(z > 0, program.x_upper[limit.unknowns] == limit.upper, False)
    at_lower = np.where(z < 0, program.x_lower[limit.unknowns] == limit.lower, False)
    bounds[limit.unknowns] = sides[1] * at_upper + sides[0] * at_lower
    larger = 1 if abs(limit.upper) >= abs(limit.lower) else 0
    size = (limit.lower, limit.upper)[larger]
    objective, slope = _relative_effort(solution, limit, -2 * sides[larger] / size if size else 0.0)
    objective += float(rows @ found.g_multipliers) - float(bounds @ found.x_multipliers)
    return Change(name, value, objective, slope, rows, bounds)


def _merged(limits: list[_Limit], phase_names: list[str]) -> list[_Limit]:
    """One for all phases with the same numbers; of others, the phase is part of the name."""
    groups: dict[tuple[str, float, float], list[_Limit]] = {}
    for one in limits:
        groups.setdefault((one.name, one.lower, one.upper), []).append(one)
    names = [name for name, _, _ in groups]
    found = []
    for (name, lower, upper), alike in groups.items():
        phases = tuple(p for one in alike for p in one.phases)
        if names.count(name) > 1:
            name = f"{name} in phase {phase_names[phases[0]]!r}"
        rows, unknowns = (np.unique(np.concatenate([getattr(x, what) for x in alike])) for what in ("rows", "unknowns"))
        found.append(_Limit(name, lower, upper, rows, unknowns, phases, alike[0].actuator))
    return found


def _of_blocks(solution: MotionSolution) -> Iterator[_Limit]:
    """Torques and powers, in each phase."""
    program, none = solution.problem.program, np.zeros(0, dtype=np.int64)
    for label in ("torque", "power"):
        for grid, k, block in program.blocks():
            if block.label != label:
                continue
            assert block.lower is not None
            assert block.upper is not None
            varies = (block.lower != block.lower[:1]).any(axis=0) | (block.upper != block.upper[:1]).any(axis=0)
            if varies.any():
                name = block.function.names[int(np.argmax(varies))]
                raise InputError(f"limits of {name} vary in time, and a sensitivity is with respect to one number; "
                                 "expected limits=False")  # fmt: skip
            for r, name in enumerate(block.function.names):
                what, sides = name.removeprefix("torque of "), (float(block.lower[0, r]), float(block.upper[0, r]))
                phase = (program.phase_number(grid.grid),)
                actuator = what if label == "torque" and what in solution.problem.parts.actuators.names else ""
                yield _Limit(what, *sides, grid.row_numbers(k)[:, r], none, phase, actuator)


def _of_splines(solution: MotionSolution) -> Iterator[_Limit]:
    """Of q, v and a, in each phase."""
    parts, program, none = solution.problem.parts, solution.problem.program, np.zeros(0, dtype=np.int64)
    names = parts.model.coordinate_names
    for order, letter in enumerate("qva"):
        for p, phase in enumerate(parts.phases):
            for k, (lower, upper) in sorted(parts.limits[p][order].items()):
                if np.isinf(lower) and np.isinf(upper):
                    continue
                name = f"{letter} of {names[parts.where.leaders[k]]}"
                if order == 0:
                    points = parts.variables.phases[p].points[:, k]
                    yield _Limit(name, lower, upper, none, np.unique(points[points >= 0]), (p,))
                    continue
                mine = [i for i, row in enumerate(program.splines.rows) if (row.name, row.phase) == (name, phase.name)]
                yield _Limit(name, lower, upper, np.array(mine, dtype=np.int64), none, (p,))


def _of_durations(solution: MotionSolution) -> Iterator[_Limit]:
    """Of phases whose duration is chosen."""
    parts, none = solution.problem.parts, np.zeros(0, dtype=np.int64)
    for p, (phase, k) in enumerate(zip(parts.phases, parts.variables.durations, strict=True)):
        if k >= 0:
            least, most = phase.duration  # type: ignore[misc]
            yield _Limit("duration", float(least), float(most), none, np.array([k]), (p,))


def _frictions(solution: MotionSolution) -> Iterator[Change]:
    """Of each foot, in all phases in which it stands."""
    parts, program, y = solution.problem.parts, solution.problem.program, solution.nonlinear.g_multipliers
    found: dict[str, Change] = {}
    for p, part in enumerate(parts.parts):
        for foot, contact in part.feet:
            inside = float(np.cos(np.pi / foot.faces))
            name = f"friction of {foot.link}"
            before = found.get(name)
            if before is None or before.value != foot.friction:
                name = name if before is None else f"{name} in phase {part.phase.name!r}"
                empty = np.zeros(program.n), np.zeros(program.m), np.zeros(program.n)
                before = found[name] = Change(name, foot.friction, 0.0, *empty)
            for grid, k, block in program.blocks():
                own = f"normal force of {contact}"
                if block.label != "cone" or own not in block.function.names or program.phase_number(grid.grid) != p:
                    continue
                assert isinstance(block.function, Linear)
                row_of, column_of = block.function.entries
                normal = int(column_of[row_of == block.function.names.index(own)][0]) - grid.grid.layout.force.start
                unknowns = parts.variables.forces[p][:, normal]
                for r, face in enumerate(block.function.names):
                    if face.startswith("friction face") and face.endswith(f" of {contact}"):
                        at = grid.row_numbers(k)[:, r]
                        before.rows[at] += inside * solution.x[unknowns]
                        before.slope[unknowns] += inside * y[at]
    for one in found.values():
        yield Change(one.name, one.value, float(one.rows @ y), one.slope, one.rows, one.bounds)


def _relative_effort(solution: MotionSolution, limit: _Limit, factor: float) -> tuple[float, Array]:
    """∂f/∂θ and ∂²f/∂x∂θ of efforts that are relative to a limit θ of a torque: of weights 1/θ², times `factor`."""
    problem, program, x = solution.problem, solution.problem.program, solution.x
    value, slope = 0.0, np.zeros(program.n)
    if not limit.actuator or not factor:
        return value, slope
    k = problem.parts.actuators.names.index(limit.actuator)
    for assembled in program.grids:
        grid = assembled.grid
        efforts = [block for block in grid.terms if block.label == "Effort"]
        if not efforts or program.phase_number(grid) not in limit.phases:
            continue
        phase = program.phase_of(grid)
        terms = [one for one in problem.objective if isinstance(one, Effort) and one.phase in (None, phase)]
        blocks = []
        for block, term in zip(efforts, terms, strict=True):
            if term.relative:
                assert isinstance(block.function, Squares)
                blocks.append(Block(block.function.only(k, factor), weights=block.weights, label="Effort"))
        if blocks:
            part = assembled.with_blocks(blocks)
            value += part.objective(x)
            part.add_gradient(x, slope)
    return value, slope


# --- ends ---------------------------------------------------------------------------------------------------------


def boundary_changes(solution: MotionSolution) -> list[Change]:
    """Coordinates that are given at ends; speeds and accelerations there that are not zero; places to reach."""
    return [*_coordinates_at_ends(solution), *_rates_at_ends(solution), *_places(solution)]


def _coordinates_at_ends(solution: MotionSolution) -> Iterator[Change]:
    problem, program, y = solution.problem, solution.problem.program, solution.nonlinear.g_multipliers
    parts = problem.parts
    given = {key: x for key, x in sorted(parts.conditions.items()) if key[2] == 0 and x[0] == x[1]}
    if not given:
        return
    wider = MotionProgram(Transcription(problem, constants=True))
    place = {name: k for k, name in enumerate(wider.parts.variables.names)}
    mine = np.array([place[name] for name in parts.variables.names])
    at = np.zeros(wider.n)
    known = np.setdiff1d(np.arange(wider.n), mine)
    at[known] = wider.x_lower[known]
    at[mine] = solution.x
    kept = _same_rows(program, wider)
    multipliers = np.zeros(wider.m)
    multipliers[kept] = y
    J, (rows, columns) = wider.jacobian(at), wider.jacobian_pattern
    H, (below, beside) = wider.hessian(at, 1.0, multipliers), wider.hessian_pattern
    gradient, seen = wider.gradient(at), set()
    for (p, end, _, k), (value, _) in given.items():
        w = int(wider.parts.variables.phases[p].points[0 if end == 0 else -1, k])
        if w in seen:
            continue  # where phases meet
        seen.add(w)
        of_rows, slope = np.zeros(wider.m), np.zeros(wider.n)
        of_rows[rows[columns == w]] = J[columns == w]
        slope[beside[below == w]] = H[below == w]
        slope[below[beside == w]] = H[beside == w]
        name = _end_name(solution, p, end, f"q of {parts.model.coordinate_names[parts.where.leaders[k]]}")
        objective = float(gradient[w] + of_rows @ multipliers)
        yield Change(name, value, objective, slope[mine], of_rows[kept], np.zeros(program.n))


def _same_rows(program: MotionProgram, wider: MotionProgram) -> Index:
    """Where rows of a program are among those of one with more unknowns, which may have rows that are constant here."""
    found, j = [], 0
    for row in program.splines.rows:
        while (wider.splines.rows[j].name, wider.splines.rows[j].phase, wider.splines.rows[j].at) != (
            row.name, row.phase, row.at
        ):  # fmt: skip
            j += 1
        found.append(j)
        j += 1
    more = len(wider.splines.rows) - len(program.splines.rows)
    return np.array([*found, *range(len(program.splines.rows) + more, wider.m)], dtype=np.int64)


def _rates_at_ends(solution: MotionSolution) -> Iterator[Change]:
    parts, program = solution.problem.parts, solution.problem.program
    names = parts.model.coordinate_names
    for p, end, order, k in parts.rows_left:
        lower, upper = parts.conditions[p, end, order, k]
        what = f"{'qva'[order]} of {names[parts.where.leaders[k]]}"
        label = f"{what} at the {'start' if end == 0 else 'end'}"
        for i, row in enumerate(program.splines.rows):
            if lower == upper and (row.name, row.phase) == (label, parts.phases[p].name):
                yield _shifted(solution, _end_name(solution, p, end, what), lower, np.array([i]))


def _places(solution: MotionSolution) -> Iterator[Change]:
    parts, program = solution.problem.parts, solution.problem.program
    for p, part in enumerate(parts.parts):
        for one in part.kept:
            if not isinstance(one.item.source, Reach):
                continue
            for r in one.rows:
                name = f"{one.item.label} {one.item.constraint.rows[r]}"
                value = float(np.asarray(one.item.source.at)["xyz".index(one.item.source.directions[r])])
                for grid, k, block in program.blocks():
                    if block.label == "kept" and program.phase_number(grid.grid) == p and name in block.function.names:
                        at = grid.row_numbers(k)[:, block.function.names.index(name)]
                        yield _shifted(solution, name, value, at)


def _shifted(solution: MotionSolution, name: str, value: float, rows: Any) -> Change:
    """Equations g = θ."""
    program = solution.problem.program
    change = np.zeros(program.m)
    change[rows] = -1.0
    objective = float(change @ solution.nonlinear.g_multipliers)
    return Change(name, value, objective, np.zeros(program.n), change, np.zeros(program.n))


def _end_name(solution: MotionSolution, p: int, end: int, what: str) -> str:
    phases = solution.problem.phases
    name = f"{what} at the {'start' if end == 0 else 'end'}"
    return name if len(phases) == 1 else f"{name} of phase {phases[p].name!r}"
