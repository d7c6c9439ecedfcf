"""What solving a motion problem gives: a motion, its torques and forces, and how good they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.motion.motion import Motion
from kinegrad.motion.nlp import NonlinearSolution
from kinegrad.motion.problem.between import Excess, fine_grid, own_grid
from kinegrad.motion.problem.program import MotionProgram
from kinegrad.motion.problem.sensitivity import Sensitivity, sensitivity
from kinegrad.motion.problem.verification import Verification, verify
from kinegrad.results import Result

if TYPE_CHECKING:
    from kinegrad.motion.problem.problem import MotionProblem

__all__ = ["MotionSolution"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class MotionSolution(Result):
    """A predicted motion.

    Attributes
    ----------
    problem : MotionProblem
    nonlinear : NonlinearSolution
        The unknowns, multipliers, iterations and messages of the solver.
    motion : Motion
        At the nodes of all phases, with torques and forces, and between them by the splines themselves.
    phases : tuple of Motion
        The same phase by phase; where two meet, torques can jump.
    duration : float
        Of all of it, s.
    durations : ndarray, shape (phases,)
    objective : float
    parameters : dict of str to float
        Of the design, if there is one.
    between : tuple of Excess
        The largest excess of each family of rows between the nodes, and the difference of the objective there.
    refinements : int
        How often points were added.
    """

    problem: MotionProblem = field(compare=False)
    nonlinear: NonlinearSolution
    motion: Motion
    phases: tuple[Motion, ...]
    duration: float
    durations: Array
    objective: float
    parameters: dict[str, float]
    between: tuple[Excess, ...]
    refinements: int = 0

    @property
    def x(self) -> Array:
        """The unknowns."""
        return self.nonlinear.x

    @property
    def iterations(self) -> int:
        """Of the solver."""
        return self.nonlinear.iterations

    @property
    def success(self) -> bool:
        """Whether the solver found an optimum, and all is within tolerance between the nodes, too."""
        return self.nonlinear.success and all(one.within for one in self.between)

    @property
    def status(self) -> str:
        """That of the solver, or "between-nodes" where it succeeded and the fine grid says otherwise."""
        return self.nonlinear.status if not self.nonlinear.success or self.success else "between-nodes"

    @cached_property
    def message(self) -> str:
        """What happened, in a sentence."""
        if self.success:
            return self.nonlinear.message
        outside = [one for one in self.between if not one.within]
        ends = dict(zip((phase.name for phase in self.problem.phases), np.cumsum(self.durations), strict=True))
        lasts = dict(zip(ends, self.durations, strict=True))
        each = "; ".join(
            f"{one.family} by {one.value:.3g} (of {one.tolerance:g}; {one.row} at "
            f"t = {ends[one.phase] - (1 - one.s) * lasts[one.phase]:.4g} s, s = {one.s:.3g} of {one.phase!r})"
            for one in outside
        )
        if self.nonlinear.success:
            said = f"the solver succeeded, but between the nodes tolerances are exceeded: {each}; "
            said += "use refine=True or more segments"
        else:
            said = self.nonlinear.message
            if each and self.nonlinear.violation < min(one.tolerance for one in outside):  # else nodes say enough
                said += f". Between the nodes tolerances are exceeded: {each}"
        return ". Note: ".join([said, *self.problem.parts.at_rest])

    def verify(
        self, *, segments: bool = True, mujoco: bool | None = None, whole: bool = True,
        progress: bool | Callable[[int, int], None] | None = None,
    ) -> Verification:  # fmt: skip
        """Apply the predicted torques to the mechanism, and see how far it departs from the predicted motion.

        Parameters
        ----------
        segments : bool
            Simulate each segment by itself, too.
        mujoco : bool, optional
            Whether to simulate with MuJoCo as well; if not given, where it is installed.
        whole : bool
            Simulate the motion all at once, too, until it departs by more than 1 rad or m.
        progress : bool or callable, optional
            True shows how many segments are simulated on stderr; a function is called with how many are, and of how
            many.

        Notes
        -----
        Ctrl-C ends the simulation; what was found until then is returned, and the message says so.

        Examples
        --------
        >>> from kinegrad import samples
        >>> from kinegrad.motion.problem import Boundary, MotionProblem, Phase
        >>> ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
        >>> found = MotionProblem(samples.two_link(), Phase(segments=8), ends).solve()
        >>> found.verify(mujoco=False).departure < 1e-6
        True
        """
        for name, value in (("segments", segments), ("mujoco", mujoco), ("whole", whole)):
            if not (isinstance(value, bool) or (name == "mujoco" and value is None)):
                raise InputError(f"`{name}` is {shown(value)}; expected True or False")
        if not (whole or segments):
            raise InputError("`whole` and `segments` are both False; expected at least one to simulate")
        return verify(self, mujoco=mujoco, segments=segments, whole=whole, progress=progress)

    def sensitivity(self, parameters: Any = None, *, limits: bool = True, boundary: bool = False) -> Sensitivity:
        """How the optimum changes with masses, lengths, loads, limits and conditions at ends, from its multipliers.

        Parameters
        ----------
        parameters : Design, sequence of str or mapping, optional
            Constants of the model, by the names of :class:`Design`.
        limits : bool
            Limits on torques, powers, q, v and a, and the friction of feet.  A limit ±x is one parameter; of any other,
            the lower and the upper one are two.  Limits on q, v and a are those of splines, so of a coordinate that
            others follow.
        boundary : bool
            Coordinates that are given at the ends; speeds and accelerations there that are given and not zero; places
            to reach.  Each changes alone: where given coordinates close a loop, or put a foot where it stands, that a
            combination of them keeps it so is up to the caller.

        Examples
        --------
        >>> from kinegrad import samples
        >>> from kinegrad.motion.problem import Boundary, MotionProblem, Phase
        >>> ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
        >>> found = MotionProblem(samples.two_link(), Phase(segments=8), ends).solve()
        >>> change = found.sensitivity(["forearm.mass"])
        >>> change.names
        ('forearm.mass', 'limit of shoulder', 'limit of elbow', 'lower limit of duration', 'upper limit of duration')
        >>> bool(change["forearm.mass"][1] > 0), bool(change["limit of elbow"][1] < 0)
        (True, True)
        """
        for name, value in (("limits", limits), ("boundary", boundary)):
            if not isinstance(value, bool):
                raise InputError(f"`{name}` is {shown(value)}; expected True or False")
        return sensitivity(self, parameters, limits=limits, boundary=boundary)

    def __repr__(self) -> str:
        what = f"T = {self.duration:.6g} s, objective {self.objective:.6g}"
        return f"MotionSolution({self.status}: {what}; {self.iterations} iterations of {self.nonlinear.solver})"


class SplinePath:
    """q, v, a and τ of a solution at any time; it pickles."""

    def __init__(self, program: MotionProgram, x: Array, phases: tuple[int, ...]) -> None:
        self._parts = (program.parts.problem, np.array(x), phases)
        self._program = program
        self._times = np.concatenate([[0.0], np.cumsum(program.durations(x)[list(phases)])])

    def __reduce__(self) -> tuple[Any, ...]:
        return _path, self._parts

    def __call__(self, t: Array) -> dict[str, Array]:
        _, x, phases = self._parts
        n = self._program.parts.model.nv
        out = {name: np.empty((len(t), n)) for name in ("q", "v", "a", "tau")}
        which = np.clip(np.searchsorted(self._times, t, side="right") - 1, 0, len(phases) - 1)
        for k, p in enumerate(phases):
            here = which == k
            if here.any():
                T = self._times[k + 1] - self._times[k]
                s = np.clip((t[here] - self._times[k]) / T, 0.0, 1.0)
                grid = fine_grid(self._program, p, s)
                y = grid.y(x)
                for d, name in enumerate("qva"):
                    out[name][here] = y[:, grid.layout.state(d)]
                out["tau"][here] = y[:, grid.layout.tau]
        return out


def _path(problem: Any, x: Array, phases: tuple[int, ...]) -> SplinePath:
    return SplinePath(problem.program, x, phases)


def _at_nodes(program: MotionProgram, x: Array, phases: tuple[int, ...]) -> dict[str, Array]:
    """q, v, a and τ at the nodes of phases in a row; where two meet, those of the later one."""
    found: dict[str, list[Array]] = {"q": [], "v": [], "a": [], "tau": []}
    for p in phases:
        own = own_grid(program, p)
        grid = fine_grid(program, p, program.parts.parts[p].nodes) if own is None else own
        y = grid.y(x)
        y = y if p == phases[-1] else y[:-1]
        for d, name in enumerate("qva"):
            found[name].append(y[:, grid.layout.state(d)])
        found["tau"].append(y[:, grid.layout.tau])
    return {name: np.concatenate(parts) for name, parts in found.items()}


def motion_of(program: MotionProgram, x: Array, phases: tuple[int, ...]) -> Motion:
    """The motion of one or several phases in a row, at their nodes."""
    parts, path = program.parts, SplinePath(program, x, phases)
    T = program.durations(x)
    times: list[Array] = []
    begin = 0.0
    for p in phases:
        t = begin + parts.parts[p].nodes * T[p]
        times.append(t if not times else t[1:])
        begin += T[p]
    t = np.concatenate(times)
    state = _at_nodes(program, x, phases)
    forced = [parts.parts[p].forced for p in phases]
    names: list[str] = []
    for rows in forced:
        names += [] if rows is None else [name for name in rows.row_names if name not in names]
    forces = None
    if names:
        forces = np.zeros((len(t), len(names)))
        first = 0
        for k, p in enumerate(phases):
            part = parts.parts[p]
            start = first if k == 0 else first - 1
            if part.forced is not None:
                columns = [names.index(part.forced.row_names[r]) for r in part.forced_rows]
                forces[start : start + len(part.nodes)] = 0.0
                forces[start : start + len(part.nodes), columns] = x[parts.variables.forces[p]]
            first = start + len(part.nodes)
    model = parts.model if len(phases) > 1 else parts.parts[phases[0]].model
    design = parts.problem.design if len(phases) > 1 else parts.parts[phases[0]].design
    if design is not None:
        known = parts.variables.phases[phases[0]]
        chosen = np.where(known.parameters >= 0, x[known.parameters], known.parameter_values)
        model = design.at(chosen).model
    return Motion(
        model, t, state["q"], state["v"], state["a"], state["tau"], forces=forces, row_names=tuple(names), _path=path
    )  # fmt: skip
