"""The unknowns of a motion problem: which there are, what they are bounded by, and where they stand.

Splines are fewer than coordinates where some are fixed, or follow others (symmetry): coordinate i is σ_i times spline
c(i).  Control points that are known to be equal are one unknown: those where phases meet, and, at an end where the
motion is at rest, the first two or, if accelerations vanish too, three.  Bounds of coordinates are bounds of control
points, by the convex hull, and hold at all times.  An unknown whose bounds meet is a constant, and no unknown.

They stand in the order: control points by phase and instant, forces by phase and node, durations, parameters; so the
matrices of interior-point methods are banded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.model import CoupledCoordinate, Model
from kinegrad.motion.problem import checks
from kinegrad.motion.problem.followers import linear_limits
from kinegrad.motion.problem.nodes import PhaseVariables
from kinegrad.motion.problem.requirements import Boundary, Fixed, Limits, Phase, Symmetric

Array = NDArray[np.float64]
Index = NDArray[np.int64]
TOUCH = 1e-9  # bounds closer than this, by their size, meet


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Which spline each coordinate follows."""

    spline: Index  # (nv,), −1: none
    sign: Array
    offset: Array
    leaders: tuple[int, ...]  # of each spline, the coordinate that it is

    @property
    def count(self) -> int:
        """Number of splines."""
        return len(self.leaders)


def coordinates_of(model: Model, requirements: tuple[Any, ...]) -> Coordinates:
    """From Fixed and Symmetric."""
    names, n = model.coordinate_names, model.nv
    fixed: dict[int, float] = {}
    follows: dict[int, tuple[int, float]] = {}
    for one in requirements:
        if isinstance(one, Fixed):
            for name, value in one.q.items():
                i = model.coordinate_index(name)
                if i in fixed and fixed[i] != value:
                    raise InputError(f"coordinate {shown(name)} is Fixed at {fixed[i]:g} and at {value:g}")
                fixed[i] = value
        if isinstance(one, Symmetric):
            for name, (other, sign) in one.pairs.items():
                i, j = model.coordinate_index(name), model.coordinate_index(other)
                if i == j or i in follows:
                    found = "itself" if i == j else "two others"
                    raise InputError(f"Symmetric makes coordinate {shown(name)} follow {found}; expected one other")
                follows[i] = (j, sign)
    for i, (j, _) in follows.items():
        if j in follows or i in fixed:
            what = f"which follows {shown(names[follows[j][0]])}" if j in follows else "and is Fixed"
            raise InputError(f"coordinate {shown(names[i])} follows {shown(names[j])}, {what}; expected one of the two")
    leaders = tuple(i for i in range(n) if i not in follows and i not in fixed)
    where = {i: k for k, i in enumerate(leaders)}
    spline, sign, offset = np.full(n, -1, dtype=np.int64), np.ones(n), np.zeros(n)
    for i in range(n):
        j, s = follows.get(i, (i, 1.0))
        sign[i] = s
        if j in where:
            spline[i] = where[j]
        else:
            offset[i] = s * fixed[j]
    if not leaders:
        raise InputError("all coordinates are Fixed; expected some that move")
    return Coordinates(spline, sign, offset, leaders)


def meet(low: Any, high: Any) -> Any:
    """Whether bounds meet, so that what they bound is a constant."""
    return np.isfinite(low) & np.isfinite(high) & (high - low <= TOUCH * (1 + np.abs(low)))


def phase_numbers(phases: tuple[Phase, ...], name: str | None, what: str) -> list[int]:
    """Of one phase by name, or of all."""
    if name is None:
        return list(range(len(phases)))
    names = [phase.name for phase in phases]
    if name not in names:
        raise InputError(f"`phase` of {what} is {shown(name)}; the phases are {', '.join(map(repr, names))}")
    return [names.index(name)]


Conditions = dict[tuple[int, int, int, int], tuple[float, float]]  # (phase, end, order, spline): lower, upper


def conditions_of(model: Model, phases: tuple[Phase, ...], where: Coordinates, requirements: Any) -> Conditions:
    """Boundary conditions of splines, contradictions refused."""
    found: Conditions = {}
    names = model.coordinate_names
    for one in requirements:
        if not isinstance(one, Boundary):
            continue
        end = 0 if one.when == "start" else 1
        of_phase = phase_numbers(phases, one.phase, "Boundary") if one.phase else [0 if end == 0 else len(phases) - 1]
        for order, letter in enumerate("qva"):
            given = getattr(one, letter)
            if given is None:
                continue
            label = f"{letter} of Boundary({one.when!r})"
            for i, (lower, upper) in checks.values_of(label, given, names, model.name).items():
                k, sign = int(where.spline[i]), where.sign[i]
                if one.measured and (k < 0 or where.leaders[k] != i):
                    continue
                if k < 0:
                    value = where.offset[i] if order == 0 else 0.0
                    if not lower - TOUCH <= value <= upper + TOUCH:
                        raise InputError(f"`{label}` asks for {lower:g} of {shown(names[i])}, which is Fixed at "
                                         f"{where.offset[i]:g}; expected no contradiction")  # fmt: skip
                    continue
                low, high = (lower, upper) if sign > 0 else (-upper, -lower)
                for phase, side in _sides(of_phase[0], end, len(phases), order, phases):
                    key = (phase, side, order, k)
                    old = found.get(key, (-np.inf, np.inf))
                    new = (max(low, old[0]), min(high, old[1]))
                    if new[0] > new[1] + TOUCH * (1 + abs(new[0])):
                        raise InputError(f"boundary conditions contradict: {letter} of {shown(names[i])} at the "
                                         f"{one.when} is to be {_range(low, high)} and {_range(*old)}")  # fmt: skip
                    found[key] = (min(new), max(new))
    return found


def _range(lower: float, upper: float) -> str:
    return f"{lower:g}" if lower == upper else f"from {lower:g} to {upper:g}"


def _sides(phase: int, end: int, count: int, order: int, phases: tuple[Phase, ...]) -> list[tuple[int, int]]:
    """The end of a phase, and the beginning of the next that goes on from it."""
    sides = [(phase, end)]
    if end == 1 and phase + 1 < count and order <= phases[phase + 1].continuity:
        sides.append((phase + 1, 0))
    if end == 0 and phase > 0 and order <= phases[phase].continuity:
        sides.append((phase - 1, 1))
    return sides


Bounds = dict[int, tuple[float, float]]


def limits_of(model: Model, phases: tuple[Phase, ...], where: Coordinates, requirements: Any) -> list[list[Bounds]]:
    """Bounds of splines on q, v and a, by phase and order; the model's own are among them."""
    names = model.coordinate_names
    found: list[list[Bounds]] = [[{}, {}, {}] for _ in phases]

    def narrow(phase: int, order: int, i: int, lower: float, upper: float) -> None:
        k, sign = int(where.spline[i]), where.sign[i]
        if k < 0:
            if order == 0 and not lower - TOUCH <= where.offset[i] <= upper + TOUCH:
                raise InputError(f"coordinate {shown(names[i])} is Fixed at {where.offset[i]:g}, outside its limits "
                                 f"{_range(lower, upper)}")  # fmt: skip
            return
        low, high = (lower, upper) if sign > 0 else (-upper, -lower)
        old = found[phase][order].get(k, (-np.inf, np.inf))
        new = (max(low, old[0]), min(high, old[1]))
        if new[0] > new[1]:
            what = "qva"[order]
            raise InputError(f"limits of {what} of {shown(names[i])} are crossed: {_range(low, high)} and "
                             f"{_range(*old)} have nothing in common")  # fmt: skip
        found[phase][order][k] = new

    joints = dict(zip(model.joint_names, zip(model.position_limits, model.velocity_limits, strict=True), strict=True))
    coupled = {entry.name for entry in model.coordinates if isinstance(entry, CoupledCoordinate)}
    of_followers = linear_limits(model)
    for phase in range(len(phases)):
        for i, name in enumerate(names):
            if name in joints and name not in coupled:
                (lower, upper), speed = joints[name]
                narrow(phase, 0, i, float(lower), float(upper))
                narrow(phase, 1, i, -float(speed), float(speed))
        for i, order, lower, upper in of_followers:
            narrow(phase, order, i, lower, upper)
    for one in requirements:
        if isinstance(one, Limits):
            for phase in phase_numbers(phases, one.phase, "Limits"):
                for order, letter in enumerate("qva"):
                    given = getattr(one, letter)
                    if given is not None:
                        for i, pair in checks.limits_of(f"{letter} of Limits", given, names, model.name).items():
                            narrow(phase, order, i, *pair)
    return found


@dataclass(frozen=True, eq=False)
class Variables:
    """All unknowns."""

    phases: tuple[PhaseVariables, ...]
    forces: tuple[Index, ...]  # by phase, (K, forces)
    lower: Array
    upper: Array
    scale: Array
    names: tuple[str, ...]
    durations: Index  # by phase, −1 where fixed
    parameters: Index

    @property
    def n(self) -> int:
        """How many."""
        return len(self.lower)


class VariablesBuilder:
    """Ties and bounds of control points, then numbers for them."""

    def __init__(
        self, model: Model, phases: tuple[Phase, ...], where: Coordinates, limits: list[list[Bounds]], constants: bool
    ) -> None:
        self.model, self.phases, self.where, self.constants = model, phases, where, constants
        self.start = np.cumsum([0, *(phase.basis.control_points * where.count for phase in phases)])
        total = int(self.start[-1])
        self.parent = np.arange(total)
        self.lower, self.upper = np.full(total, -np.inf), np.full(total, np.inf)
        for p, phase in enumerate(phases):
            for k, (low, high) in limits[p][0].items():
                ids = self.point(p, np.arange(phase.basis.control_points), k)
                self.lower[ids], self.upper[ids] = low, high

    def point(self, phase: int, j: Any, spline: Any) -> Any:
        """The number of a control point; j may count from the end."""
        m = self.phases[phase].basis.control_points
        return self.start[phase] + (np.asarray(j) % m) * self.where.count + spline

    def tie(self, a: int, b: int) -> None:
        """Two control points that are one unknown."""
        a, b = self.root(a), self.root(b)
        if a != b:
            first, second = min(a, b), max(a, b)
            self.parent[second] = first
            self.lower[first] = max(self.lower[first], self.lower[second])
            self.upper[first] = min(self.upper[first], self.upper[second])

    def root(self, a: int) -> int:
        """The control point that stands for it."""
        while self.parent[a] != a:
            a = int(self.parent[a])
        return a

    def bound(self, a: int, lower: float, upper: float, what: str, hint: str = "") -> None:
        """Narrow the bounds of a control point."""
        a = self.root(a)
        low, high = max(lower, self.lower[a]), min(upper, self.upper[a])
        if low > high + TOUCH * (1 + abs(low)):
            raise InputError(f"{what} is asked to be {_range(lower, upper)}, but its limits and other conditions leave "
                             f"{_range(self.lower[a], self.upper[a])}; expected what can be met{hint}")  # fmt: skip
        self.lower[a], self.upper[a] = min(low, high), max(low, high)

    def build(
        self, nodes: list[int], forces: list[int], force_scale: list[Array], design: Any, design_bounds: Array | None
    ) -> Variables:
        """Numbers for all unknowns."""
        roots = np.array([self.root(a) for a in range(len(self.parent))], dtype=np.int64)
        low, high = self.lower[roots], self.upper[roots]
        with np.errstate(invalid="ignore"):
            fixed = meet(low, high) & (not self.constants)
        free = np.flatnonzero((roots == np.arange(len(roots))) & ~fixed)
        number = np.full(len(roots), -1, dtype=np.int64)
        number[free] = np.arange(len(free))
        number = number[roots]
        names, names_of = [], self.model.coordinate_names
        for a in free:
            p = int(np.searchsorted(self.start, a, side="right") - 1)
            j, k = divmod(int(a - self.start[p]), self.where.count)
            names.append(f"control point {j} of {names_of[self.where.leaders[k]]} in phase {self.phases[p].name!r}")
        lower, upper, scale = [low[free]], [high[free]], [np.ones(len(free))]
        count = len(free)
        found_forces = []
        for p, (K, size) in enumerate(zip(nodes, forces, strict=True)):
            found_forces.append(count + np.arange(K * size).reshape(K, size))
            lower.append(np.full(K * size, -np.inf))
            upper.append(np.full(K * size, np.inf))
            scale.append(np.tile(force_scale[p], K))
            names += [f"force {w} at node {k} of phase {self.phases[p].name!r}" for k in range(K) for w in range(size)]
            count += K * size
        durations = []
        for phase in self.phases:
            least, most = phase.duration  # type: ignore[misc]
            durations.append(-1 if least == most else count)
            if least < most:
                lower.append(np.array([least]))
                upper.append(np.array([most]))
                scale.append(np.array([float(np.clip(1.0, least, most))]))
                names.append(f"duration of phase {phase.name!r}")
                count += 1
        parameters = np.full(0 if design is None else design.p, -1, dtype=np.int64)
        if design is not None:
            assert design_bounds is not None
            for k, (least, most) in enumerate(design_bounds):
                if least < most:
                    parameters[k] = count
                    lower.append(np.array([least]))
                    upper.append(np.array([most]))
                    scale.append(np.array([max(abs(design.values[k]), min(most - least, 1e3), 1e-3)]))
                    names.append(f"parameter {design.names[k]}")
                    count += 1
        values = np.zeros(0) if design is None else np.array([
            float(np.clip(x, *pair)) for x, pair in zip(design.values, design_bounds, strict=True)  # type: ignore[arg-type]
        ])  # fmt: skip
        parts = []
        for p, phase in enumerate(self.phases):
            shape = (phase.basis.control_points, self.where.count)
            part = slice(int(self.start[p]), int(self.start[p + 1]))
            known = number[part] < 0
            constant = np.zeros(len(known))
            constant[known] = 0.5 * (low[part][known] + high[part][known])
            T = float(phase.duration[0])  # type: ignore[index]
            parts.append(
                PhaseVariables(
                    number[part].reshape(shape), constant.reshape(shape), durations[p], T, parameters, values,
                    self.where.spline, self.where.sign, self.where.offset, count,
                )
            )  # fmt: skip
        return Variables(
            tuple(parts), tuple(found_forces), np.concatenate(lower), np.concatenate(upper), np.concatenate(scale),
            tuple(names), np.array(durations, dtype=np.int64), parameters,
        )  # fmt: skip
