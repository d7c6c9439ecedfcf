"""MotionProblem: what is asked, declared; its nonlinear program, guesses, and solutions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.design import Design
from kinegrad.errors import InputError, KinegradWarning, shown
from kinegrad.io.whole_file import checked_path
from kinegrad.model import Model
from kinegrad.motion.motion import Motion
from kinegrad.motion.nlp import Iterate, NonlinearSolution, load_solution
from kinegrad.motion.nlp.evaluation import Interrupts, Signals
from kinegrad.motion.nlp.judgement import stopped
from kinegrad.motion.problem import checks, guess
from kinegrad.motion.problem.between import excesses, fine_grid, tolerances_of
from kinegrad.motion.problem.derivative_check import DerivativeCheck, check_derivatives
from kinegrad.motion.problem.description import described
from kinegrad.motion.problem.objective_scale import solve_scaled
from kinegrad.motion.problem.program import MotionProgram
from kinegrad.motion.problem.refinement import NEARBY, carried, refined
from kinegrad.motion.problem.requirements import Phase, Requirement
from kinegrad.motion.problem.solution import MotionSolution, motion_of
from kinegrad.motion.problem.terms import Term, Time, UserTerm
from kinegrad.motion.problem.transcription import Transcription

__all__ = ["MotionProblem"]

Array = NDArray[np.float64]


class MotionProblem:
    """A motion to predict: how does this body move from here to there, within these limits, at the least cost?

    Everything is checked on construction: names, contradictions, targets out of reach, too few control points.
    :meth:`solve` finds the motion, and :meth:`describe` shows the problem.

    Parameters
    ----------
    model : Model
        Models with quaternions are refused, because a spline of the components is not a rotation.
    phases : Phase, or sequence of Phase
    requirements : sequence
        Boundary, Limits, Fixed, Symmetric, Periodic, Held, Reach, Guided, Above, Apart, Kept, Foot, Rests.
        The limits of the model (`position_limits`, `velocity_limits`, `effort_limits`) always hold.
    objective : Term, or sequence of Term
        Time, Effort, Power, Acceleration, Jerk, Posture, Follow, UserTerm; by default the time.
    design : Design, optional
        Parameters that are optimised together with the motion.
    design_bounds : array_like, shape (p, 2), or mapping of str to (lower, upper), optional
        Bounds of the parameters; parameters without bounds are not changed.
    actuated : sequence of str, optional
        Coordinates that have motors, if the model does not define it.

    Examples
    --------
    The time-optimal arm of [xiang2008] (66):

    >>> from kinegrad import samples
    >>> from kinegrad.motion.problem import Boundary, MotionProblem, Phase, Time
    >>> problem = MotionProblem(
    ...     samples.two_link(gravity=(0, 0, 0)),
    ...     Phase(duration=(0.1, 2.0), segments=20, nodes=1),
    ...     [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)],
    ...     Time(),
    ... )
    >>> problem
    MotionProblem(two_link: 39 unknowns, 42 rows; 1 phase)
    >>> solution = problem.solve()
    >>> solution.success, round(solution.duration, 5)
    (True, 0.39266)
    """

    def __init__(
        self,
        model: Model,
        phases: Phase | Sequence[Phase] = (),
        requirements: Sequence[Requirement] = (),
        objective: Term | Sequence[Term] = (),
        *,
        design: Design | None = None,
        design_bounds: Any = None,
        actuated: Sequence[str] | None = None,
    ) -> None:
        engine.check_model(model)
        if model.nq != model.nv:
            found = f"model {shown(model.name)} has coordinates that are quaternions"
            raise InputError(f"{found}, and splines of their components are no rotations; expected hinges instead, as "
                             "of spherical(…) without quaternion, or free(…)")  # fmt: skip
        self.model = model
        self.phases: tuple[Phase, ...] = checks.all_of("phases", phases, (Phase,), "phases") or (Phase(),)
        names = [phase.name for phase in self.phases]
        if len(set(names)) < len(names):
            raise InputError(f"`phases` are called {shown(names)}; expected different names")
        kinds = "Boundary, Limits, Fixed, Symmetric, Periodic, Held, Reach, Guided, Above, Apart, Kept, Foot or Rests"
        self.requirements = checks.all_of("requirements", requirements, (Requirement,), kinds)
        for k, one in enumerate(self.requirements):
            if isinstance(one, Term | Phase):
                raise InputError(f"`requirements` at {k} is {shown(one)}; expected {kinds}")
        terms = "terms: Time, Effort, Power, Acceleration, Jerk, Posture, Follow or UserTerm"
        self.objective: tuple[Term, ...] = checks.all_of("objective", objective, (Term,), terms) or (Time(),)
        self.design, self.design_bounds = _design(model, design, design_bounds)
        self.actuated = actuated
        self.parts = Transcription(self)
        guess.check_reachable(self.parts)

    @cached_property
    def program(self) -> MotionProgram:
        """The nonlinear program, as solvers take it."""
        program = MotionProgram(self.parts)
        if any(isinstance(term, UserTerm) for term in self.objective):  # which fail here, not after a solve
            for p in range(len(self.phases)):
                fine_grid(program, p)
        return program

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and why."""
        return tuple(self.parts.notes)

    def describe(self) -> str:
        """What the nonlinear program is: unknowns, rows and entries by family, and what was left out.

        Examples
        --------
        >>> from kinegrad import samples
        >>> from kinegrad.motion.problem import Boundary, MotionProblem, Phase
        >>> ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
        >>> print(MotionProblem(samples.two_link(), Phase(segments=4, nodes=1), ends).describe())
        motion problem of 'two_link', 2 coordinates, 2 actuators
          phase 'motion': 0.05 to 10 s, 4 segments of degree 3, 5 nodes
          7 unknowns: 6 control points, 1 duration
          10 rows: 10 torque
          non-zeros: Jacobian 58 of 70, Hessian 28 of 28
          objective: 1 time
        """
        return described(self.parts, self.program)

    def check_derivatives(self, x: ArrayLike | None = None, *, seed: int = 0) -> DerivativeCheck:
        """Compare gradient, Jacobian and Hessian with differences, at x or near the guess.

        Parameters
        ----------
        x : array_like, shape (n,), optional
            The unknowns; a random point near the guess if not given.
        seed : int
            Of the random numbers.

        Examples
        --------
        >>> from kinegrad import samples
        >>> from kinegrad.motion.problem import Boundary, Effort, MotionProblem, Phase
        >>> ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
        >>> check = MotionProblem(samples.two_link(), Phase(segments=4), ends, Effort()).check_derivatives()
        >>> max(check.gradient, check.jacobian, check.hessian) < 1e-6
        True
        """
        at = None if x is None else self._unknowns("x", x)
        return check_derivatives(self.program, self.guess() if at is None else at, seed, move=at is None)

    def guess(
        self, *, postures: Mapping[str, Any] | None = None, durations: Any = None, motion: Motion | None = None,
        noise: float = 0.0, seed: int = 0,
    ) -> Array:  # fmt: skip
        """Unknowns to begin with: straight lines between postures that fulfil what is asked for at the ends.

        Parameters
        ----------
        postures : mapping of str to array_like or mapping, optional
            Where to look for postures: at ``"start"``, ``"end"``, and at the ends of phases by their names.  Near the
            next posture that Boundary gives, or near zero, if not given.
        durations : array_like or mapping of str to float, optional
            Of the phases, s; 1 s within their limits if not given.
        motion : Motion, optional
            To begin with this motion instead, stretched over all phases.
        noise : float
            Standard deviation of random numbers added to control points, rad or m.
        seed : int
            Of these numbers.

        Returns
        -------
        ndarray, shape (n,)
            Of the unknowns of :attr:`program`.
        """
        program = self.program
        if motion is not None:
            if not isinstance(motion, Motion):
                raise InputError(f"`motion` is a {type(motion).__name__}; expected a Motion")
            x = guess.from_motion(program, motion, durations)
        else:
            x = guess.standing(program, postures, durations)
        spread = checks.number("noise", noise, least=0.0)
        if spread:
            points = np.unique(np.concatenate([v.points.ravel() for v in self.parts.variables.phases]))
            points = points[points >= 0]
            x[points] += spread * np.random.default_rng(seed).standard_normal(len(points))
            x = np.clip(x, program.x_lower, program.x_upper)
        return x

    def _unknowns(self, what: str, x: Any) -> Array:
        found = engine.real(what, x)
        if found.shape != (self.program.n,):
            raise InputError(f"`{what}` has shape {found.shape}; the problem has {self.program.n} unknowns")
        if not np.isfinite(found).all():
            raise engine.not_finite(what, found)
        return found

    def solve(
        self,
        guess: ArrayLike | Motion | MotionSolution | None = None,
        *,
        solver: str = "ipopt",
        hessian: str | None = None,
        gradient: str = "exact",
        tolerance: float = 1e-6,
        max_iterations: int = 1000,
        between: Mapping[str, float] | None = None,
        refine: bool | int = False,
        progress: bool | Callable[[Iterate], None] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        keep_iterates: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> MotionSolution:
        """Find the motion.

        Parameters
        ----------
        guess : array_like of shape (n,), Motion or MotionSolution, optional
            Where to begin; :meth:`guess` without arguments, if not given.  A solution of this problem brings its
            multipliers with it.
        solver, hessian, gradient, tolerance, max_iterations, progress, checkpoint, keep_iterates, options
            As of :func:`kinegrad.motion.nlp.solve`.  Solves with refined segments have files of their own beside
            `checkpoint`: ``lift.npz``, ``lift.refined1.npz``, …
        between : mapping of str to float, optional
            Tolerances between the nodes, by family, that differ from ``kinegrad.motion.problem.between.BETWEEN``.
        refine : bool or int
            Halve segments and add instants of clearances, and solve again from there, until all is within tolerance
            between the nodes; at most three times, or as often as this number says.

        Returns
        -------
        MotionSolution

        Warns
        -----
        KinegradWarning
            Before it begins, if the motion starts or ends at rest where limits of torques do not hold the body.
        """
        tolerances = tolerances_of(between)
        if not isinstance(refine, bool | int | np.integer) or refine < 0:
            raise InputError(f"`refine` is {shown(refine)}; expected True, False, or how often")
        for note in self.parts.at_rest:
            warnings.warn(note, KinegradWarning, stacklevel=2)
        x0, warm = self._start(guess)
        how: dict[str, Any] = {
            "solver": solver, "hessian": hessian, "gradient": gradient, "tolerance": tolerance,
            "max_iterations": max_iterations, "progress": progress, "keep_iterates": keep_iterates, "options": options,
        }  # fmt: skip
        most = 3 if refine is True else min(int(refine), 60)  # halvings beyond any use
        how["checkpoint"] = file = None if checkpoint is None else checked_path(checkpoint, "checkpoint")
        finer_files = [file and file.with_name(f"{file.stem}.refined{k + 1}{file.suffix}") for k in range(most)]
        for each in finer_files:
            if each is not None and each.exists():
                load_solution(each)  # a file of another kind is refused before the work, not after it
        nonlinear, scale = solve_scaled(self.program, x0, guessed=guess is None, warm_start=warm, **how)
        found = self._understood(nonlinear, tolerances)
        for count in range(1, most + 1):
            if found.status != "between-nodes":
                break
            finer = refined(found.problem, found, tolerances)
            x0 = carried(found.problem.program, found.x, finer.program)
            if solver in ("ipopt", "cyipopt"):
                how["options"] = NEARBY | dict(options or {})
            how["checkpoint"] = finer_files[count - 1]
            nonlinear, scale = solve_scaled(finer.program, x0, scale, guessed=True, **how)
            found = finer._understood(nonlinear, tolerances, refinements=count)
        return found

    def _understood(
        self, nonlinear: NonlinearSolution, tolerances: Mapping[str, float], *, refinements: int = 0
    ) -> MotionSolution:
        """The motion of a solution, which Ctrl-C does not lose."""
        signals = Signals()
        with Interrupts(signals):
            found = self.solution(nonlinear, tolerances, refinements=refinements)
        if signals.error is not None:
            raise signals.error
        return replace(found, nonlinear=stopped(nonlinear)) if signals.interrupted else found

    def _start(self, given: Any) -> tuple[Array, NonlinearSolution | None]:
        if given is None:
            return self.guess(), None
        if isinstance(given, MotionSolution):
            if len(given.x) == self.program.n and given.problem.program.m == self.program.m:
                return given.x.copy(), given.nonlinear
            given = given.motion
        if isinstance(given, Motion):
            return self.guess(motion=given), None
        return self._unknowns("guess", given), None

    def replaced(self, **changes: Any) -> MotionProblem:
        """The same problem with other arguments of :class:`MotionProblem`, by name.

        Examples
        --------
        >>> from kinegrad import samples
        >>> from kinegrad.motion.problem import Boundary, MotionProblem, Phase
        >>> ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
        >>> coarse = MotionProblem(samples.two_link(), Phase(segments=4), ends)
        >>> coarse.replaced(phases=Phase(segments=8)).program.n - coarse.program.n
        8
        """
        names = ("model", "phases", "requirements", "objective", "design", "design_bounds", "actuated")
        unknown = [name for name in changes if name not in names]
        if unknown:
            raise InputError(f"`{unknown[0]}` is no argument of MotionProblem; expected one of {', '.join(names)}")
        return MotionProblem(**{name: getattr(self, name) for name in names} | changes)

    def solution(
        self, found: NonlinearSolution, between: Mapping[str, float] | None = None, *, refinements: int = 0
    ) -> MotionSolution:
        """What a solution of :attr:`program` means: its motion, and how good it is between the nodes."""
        program, x = self.program, found.x
        count = len(self.phases)
        T = program.durations(x)
        parameters = {}
        if self.design is not None:
            values = self.parts.variables.phases[0]
            p = np.where(values.parameters >= 0, x[values.parameters], values.parameter_values)
            parameters = dict(zip(self.design.names, p.tolist(), strict=True))
        motion = motion_of(program, x, tuple(range(count)))
        return MotionSolution(
            self, found, motion, (motion,) if count == 1 else tuple(motion_of(program, x, (p,)) for p in range(count)),
            float(T.sum()), T, found.f, parameters, excesses(program, x, tolerances_of(between)),
            refinements,
        )  # fmt: skip

    def __repr__(self) -> str:
        program, count = self.program, len(self.phases)
        size = f"{program.n} unknowns, {program.m} rows"
        return f"MotionProblem({self.model.name}: {size}; {count} phase{'' if count == 1 else 's'})"

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.model, self.phases, self.requirements, self.objective)
        return _rebuilt, (*given, self.design, self.design_bounds, self.actuated)


def _rebuilt(
    model: Any, phases: Any, requirements: Any, objective: Any, design: Any, bounds: Any, actuated: Any
) -> Any:
    return MotionProblem(
        model, phases, requirements, objective, design=design, design_bounds=bounds, actuated=actuated
    )  # fmt: skip


def _design(model: Model, design: Any, bounds: Any) -> tuple[Design | None, Array | None]:
    if design is None:
        if bounds is not None:
            raise InputError("`design_bounds` is given without a `design`; expected both, or neither")
        return None, None
    if not isinstance(design, Design):
        raise InputError(f"`design` is a {type(design).__name__}; expected a Design")
    if design.model != model:
        raise InputError(
            f"`design` is of model {shown(design.model.name)} with other constants; expected that of `model`"
        )
    found = np.stack([design.values, design.values], axis=1)
    if bounds is not None:
        for k, pair in checks.per_name("design_bounds", bounds, design.names, model.name, "parameter").items():
            if np.ndim(pair) != 1:
                raise InputError(f"`design_bounds` of {design.names[k]!r} is {shown(pair)}; expected (lower, upper)")
            found[k] = checks.pair(f"design_bounds of {design.names[k]}", pair, "a lower and an upper number")
            if not np.isfinite(found[k]).all():
                raise InputError(f"`design_bounds` of {design.names[k]!r} is {shown(pair)}; expected finite numbers")
    return design, found
