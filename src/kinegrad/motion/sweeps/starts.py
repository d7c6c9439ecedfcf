"""One problem from many guesses: which optima there are, and how often each was found.

A solver finds a local optimum, the one that its guess leads to, and cannot tell whether there is a better one.  Here a
problem is solved from many guesses, and what was found is sorted into distinct optima.  Two solutions are of one
optimum if their objectives differ by no more than `same_objective`, relative to the larger of them and the scale of
the objective, and no variable differs by more than `same_x` of its scale.  They are taken in the order of their
objectives, each to the first optimum whose best solution it is the same as.

Guess number 0 is the problem's own.  Guess number i is random, and depends on the seed and on i alone: it is the same
wherever, whenever and in whatever order it is solved.  Of a motion problem, normal numbers of standard deviation
`spread` are added to the control points, rad or m, and each duration is multiplied by a factor between 1/`stretch` and
`stretch`, its logarithm being uniform; of a nonlinear program, normal numbers of `spread` scales are added to x0.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.motion.nlp import solve
from kinegrad.motion.nlp.identity import expanded, program_identity
from kinegrad.motion.nlp.program import check_program, check_start
from kinegrad.motion.sweeps.progress import telling
from kinegrad.motion.sweeps.records import Records
from kinegrad.motion.sweeps.tasks import run_tasks
from kinegrad.results import Result

__all__ = ["Guesses", "MultiStart", "Optimum", "Start", "distinct_optima", "multi_start", "outcome"]

Array = NDArray[np.float64]
SILENT = ("progress", "checkpoint", "keep_iterates")  # options of solve that change no result


@dataclass(frozen=True, eq=False)
class Start(Result):
    """How one guess ended.

    Attributes
    ----------
    number : int
        Of the guess.
    status, message : str
        Of the solution; "error" if the solve raised an error, which the message then is.
    success : bool
    objective, violation, optimality : float
        NaN after an error.
    duration : float
        Of a predicted motion, s; NaN of other programs.
    iterations : int
    seconds : float
    x : ndarray, shape (n,)
        Empty after an error.
    """

    number: int
    status: str
    message: str
    success: bool
    objective: float
    violation: float
    optimality: float
    duration: float
    iterations: int
    seconds: float = field(compare=False)
    x: Array


@dataclass(frozen=True, eq=False)
class Optimum(Result):
    """A local optimum, and the guesses that led to it.

    Attributes
    ----------
    objective, duration : float
        Of the best of its solutions; the duration is NaN if it is no motion.
    x : ndarray, shape (n,)
        The same; ``problem.solve(optimum.x)`` gives the motion.
    starts : tuple of int
        Numbers of the guesses.
    """

    objective: float
    duration: float
    x: Array
    starts: tuple[int, ...]

    @property
    def count(self) -> int:
        """How often it was found."""
        return len(self.starts)


@dataclass(frozen=True, eq=False, repr=False)
class MultiStart(Result):
    """What was found from many guesses.

    Attributes
    ----------
    starts : tuple of Start
        In the order of the guesses.
    optima : tuple of Optimum
        Distinct ones, the best first.
    same_objective, same_x : float
        What counted as the same.
    """

    starts: tuple[Start, ...]
    optima: tuple[Optimum, ...]
    same_objective: float
    same_x: float

    @property
    def failures(self) -> tuple[Start, ...]:
        """Guesses that did not end in an optimum."""
        return tuple(start for start in self.starts if not start.success)

    def __repr__(self) -> str:
        found = f"{len(self.optima)} distinct optima from {len(self.starts)} guesses"
        best = f", the best {self.optima[0].objective:.6g}" if self.optima else ""
        return f"MultiStart({found}{best}; {len(self.failures)} failed)"

    def __str__(self) -> str:
        """A table of the optima."""
        lines = ["  objective    duration, s  found", *(
            f"{each.objective:11.6g}  {each.duration:13.6g}  {each.count:5d}" for each in self.optima
        )]  # fmt: skip
        same = f"the same: objectives within {self.same_objective:g}, variables within {self.same_x:g} of their scales"
        failed = f"{len(self.failures)} of {len(self.starts)} guesses failed"
        if self.failures:
            counts = Counter(start.status for start in self.failures)
            error = next((start.message for start in self.failures if start.status == "error"), "")
            failed += f" ({', '.join(f'{status}: {n}' for status, n in counts.items())}{error and f'; {error}'})"
        return "\n".join([*lines, f"{failed}; {same}"])


@dataclass(frozen=True)
class Guesses:
    """How guesses are drawn; checked once, and sent with every task."""

    seed: int
    spread: float
    stretch: float
    given: Mapping[str, Any] = field(default_factory=dict)  # arguments of MotionProblem.guess
    x0: Array | None = None
    draw: Callable[[np.random.Generator], ArrayLike] | None = None

    def __post_init__(self) -> None:
        engine.whole("seed", self.seed, least=0)
        engine.positive("spread", self.spread)
        if not (engine.positive("stretch", self.stretch) >= 1 and np.isfinite(self.stretch)):
            raise InputError(f"`stretch` is {shown(self.stretch)}; expected a factor of at least 1")
        if not np.isfinite(self.spread):
            raise InputError(f"`spread` is {shown(self.spread)}; expected a finite number")
        if self.draw is not None and not callable(self.draw):
            raise InputError(f"`draw` is {shown(self.draw)}; expected a function of a random generator that gives x")

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that guesses depend on beside the problem, as records compare it."""
        names = {"guess": self.given, "x0": self.x0, "draw": self.draw}
        return {"seed": self.seed, "spread": self.spread, "stretch": self.stretch, **expanded(**names)}

    def number(self, problem: Any, i: int) -> Any:
        """Guess number i."""
        random = np.random.default_rng([self.seed, i])
        motion = is_motion_problem(problem)
        program = problem.program if motion else problem
        if i == 0:
            return self.x0 if self.x0 is not None else problem.guess(**self.given)
        if self.draw is not None:
            return check_start(program, self.draw(random))
        if not motion or self.x0 is not None:
            assert self.x0 is not None
            step = self.spread * program.x_scale * random.standard_normal(program.n)
            return np.clip(self.x0 + step, program.x_lower, program.x_upper)
        T = program.durations(problem.guess(**self.given))
        limits = np.array([np.broadcast_to(phase.duration, 2) for phase in problem.phases])
        T = np.clip(T * self.stretch ** random.uniform(-1, 1, len(T)), limits[:, 0], limits[:, 1])
        changed = {**self.given, "durations": T, "noise": self.spread, "seed": int(random.integers(2**31))}
        return problem.guess(**changed)


def multi_start(
    problem: Any,
    count: int = 20,
    *,
    seed: int = 0,
    spread: float = 0.3,
    stretch: float = 3.0,
    guess: Mapping[str, Any] | None = None,
    x0: ArrayLike | None = None,
    draw: Callable[[np.random.Generator], ArrayLike] | None = None,
    executor: Any = None,
    record: str | os.PathLike[str] | None = None,
    retries: int = 3,
    progress: bool | Callable[[int, int, Mapping[str, Any]], None] | None = None,
    same_objective: float = 1e-4,
    same_x: float = 1e-2,
    **options: Any,
) -> MultiStart:
    """Solve a problem from many guesses, and sort what is found into distinct optima.

    Parameters
    ----------
    problem : MotionProblem or NonlinearProgram
    count : int
        Guesses; number 0 is the problem's own, or `x0`.
    seed : int
        Of the random guesses: with the same seed, guess number i is always the same.
    spread, stretch : float
        How far they are from number 0; see :mod:`kinegrad.motion.sweeps.starts`.
    guess : mapping, optional
        Arguments of :meth:`MotionProblem.guess`, for all guesses.
    x0 : array_like, shape (n,), optional
        Guess number 0; needed for a nonlinear program.
    draw : callable, optional
        Gives a random x, of shape (n,), from a ``numpy.random.Generator``, instead of all that.
    executor : optional
        Where to solve: a ``concurrent.futures.Executor``, a ``dask.distributed.Client``, or here.  What is sent to
        other processes has to be picklable.
    record : path, optional
        A file to which each result is appended when it arrives; what it has already is not solved again.  A file of
        another problem, other guesses or other options is refused, and so is one that is no record; neither is written
        to.  Functions are the same if their code, defaults, closure and the global values that they use are.
    retries : int
        How often a guess is sent out again if its worker is lost.
    progress : bool or callable, optional
        True shows a bar; a function is called with how many are done, of how many, and the last result.
    same_objective, same_x : float
        What counts as the same optimum.
    **options
        Of ``problem.solve``, or of :func:`kinegrad.motion.nlp.solve`.

    Examples
    --------
    A hundred guesses on a cluster, resumable: ``multi_start(problem, 100, executor=Client(address),
    record="starts.jsonl")``.  Here:

    >>> from kinegrad import samples
    >>> from kinegrad.motion.problem import Boundary, MotionProblem, Phase
    >>> ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, -1], v=0)]
    >>> problem = MotionProblem(samples.two_link(gravity=(0, 0, 0)), Phase(duration=(0.1, 2.0), segments=6), ends)
    >>> found = multi_start(problem, 3, seed=1, spread=0.1)
    >>> len(found.starts), found.optima[0].count
    (3, 3)
    """
    count, retries = engine.whole("count", count), engine.whole("retries", retries, least=0)
    tolerances = (engine.positive("same_objective", same_objective), engine.positive("same_x", same_x))
    program = problem.program if is_motion_problem(problem) else problem
    check_program(program)
    refuse_checkpoint(options)
    check_options(options, problem.solve if is_motion_problem(problem) else solve)
    if x0 is None and not is_motion_problem(problem):
        raise InputError("`x0` is None, and `problem` is a NonlinearProgram; expected a guess of shape (n,)")
    first = None if x0 is None else check_start(program, x0)
    guesses = Guesses(seed, spread, stretch, words("guess", guess), first, draw)
    tasks = {f"start {i}": (problem, guesses, i, options, os.getpid()) for i in range(count)}
    with telling(progress, "starts") as finished:
        if record is None:
            found = run_tasks(solve_start, tasks, executor=executor, retries=retries, finished=finished)
        else:
            what = repr(problem) if is_motion_problem(problem) else type(problem).__name__
            settings = guesses.identity | {"options": options_identity(options, problem)}
            with Records(record, {"what": what, "problem": program_identity(program), **settings}) as records:
                found = run_tasks(
                    solve_start, tasks, executor=executor, records=records, retries=retries, finished=finished
                )
    starts = tuple(outcome(i, result) for i, result in enumerate(found.values()))
    return MultiStart(starts, distinct_optima(starts, program.x_scale, program.f_scale, *tolerances), *tolerances)


def words(name: str, given: Any) -> dict[str, Any]:
    """Arguments by name; none if None is given."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise InputError(f"`{name}` is {shown(given)}; expected a mapping from names to values")
    return dict(given)


def refuse_checkpoint(options: Mapping[str, Any]) -> None:
    """Many solves cannot share one file."""
    if "checkpoint" in options:
        raise InputError("`checkpoint` is for a single solve; expected `record`, to which all results are written")


def check_options(options: Mapping[str, Any], *functions: Callable[..., Any]) -> None:
    """Refuse arguments that none of these functions has, before they fail in every task."""
    each = [signature(function).parameters.items() for function in functions]
    known = dict.fromkeys(name for one in each for name, what in one if what.kind is what.KEYWORD_ONLY)
    for name in options:
        if name not in known:
            raise InputError(f"`{name}` is no argument of solve; expected some of {', '.join(known)}")


def options_identity(options: Mapping[str, Any], problem: Any) -> dict[str, str]:
    """Options of the solve of a problem with their defaults, but for those that change no result."""
    named = signature(problem.solve if is_motion_problem(problem) else solve).parameters.values()
    all_of = {each.name: each.default for each in named if each.kind is each.KEYWORD_ONLY} | dict(options)
    return expanded(**{name: x for name, x in all_of.items() if name not in SILENT})


def is_motion_problem(problem: Any) -> bool:
    """Whether it is a MotionProblem: it makes its own guesses, and its solutions are motions."""
    return hasattr(problem, "program") and hasattr(problem, "guess")


def solve_start(problem: Any, guesses: Guesses, i: int, options: Mapping[str, Any], home: int) -> dict[str, Any]:
    """Solve from guess number i; what is run on workers."""
    if os.getpid() != home:
        engine.set_threads(1)  # workers are many
    x = guesses.number(problem, i)
    if is_motion_problem(problem):
        motion = problem.solve(x, **options)
        found, success, status, message = motion.nonlinear, motion.success, motion.status, motion.message
        duration = motion.duration
    else:
        found = solve(problem, x, **options)
        success, status, message, duration = found.success, found.status, found.message, np.nan
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return {
        "status": status, "message": message, "success": success, "objective": found.f, "violation": found.violation,
        "optimality": found.optimality, "duration": duration, "iterations": found.iterations,
        "seconds": found.seconds, "x": found.x,
    }  # fmt: skip


def outcome(number: int, result: Mapping[str, Any]) -> Start:
    """A result, perhaps from a file, as a Start."""

    def real(name: str) -> float:
        value = result.get(name)
        return np.nan if value is None else float(value)

    return Start(
        number, str(result["status"]), str(result["message"]), bool(result.get("success", False)),
        real("objective"), real("violation"), real("optimality"), real("duration"),
        int(result.get("iterations", 0)), real("seconds"), np.array(result.get("x", []), dtype=float),
    )  # fmt: skip


def distinct_optima(
    starts: Sequence[Start], x_scale: Array, f_scale: float, same_objective: float, same_x: float
) -> tuple[Optimum, ...]:
    """Solutions sorted into optima, as the head of this module says."""
    found: list[tuple[Start, list[int]]] = []
    for start in sorted((each for each in starts if each.success), key=lambda each: (each.objective, each.number)):
        for best, numbers in found:
            size = max(abs(start.objective), abs(best.objective), f_scale)
            near = abs(start.objective - best.objective) <= same_objective * size
            if near and len(start.x) == len(best.x) and (np.abs(start.x - best.x) <= same_x * x_scale).all():
                numbers.append(start.number)
                break
        else:
            found.append((start, [start.number]))
    return tuple(Optimum(best.objective, best.duration, best.x, tuple(sorted(numbers))) for best, numbers in found)
