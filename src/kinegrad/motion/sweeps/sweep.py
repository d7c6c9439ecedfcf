"""A problem for all combinations of some of its parameters, from one or many guesses each."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kinegrad import _engine as engine
from kinegrad.errors import InputError, shown
from kinegrad.motion.nlp.identity import digest, expanded, program_identity, sections
from kinegrad.motion.problem import MotionProblem
from kinegrad.motion.sweeps.progress import telling
from kinegrad.motion.sweeps.records import Records, plain
from kinegrad.motion.sweeps.starts import (
    Guesses,
    Optimum,
    Start,
    check_options,
    distinct_optima,
    options_identity,
    outcome,
    refuse_checkpoint,
    solve_start,
    words,
)
from kinegrad.motion.sweeps.tasks import failure, run_tasks
from kinegrad.results import Result

__all__ = ["Sweep", "SweepPoint", "check_parameters", "sweep"]

MOST = 100_000  # tasks


@dataclass(frozen=True, eq=False)
class SweepPoint(Result):
    """One combination of parameters.

    Attributes
    ----------
    parameters : dict
    starts : tuple of Start
    optima : tuple of Optimum
        Distinct ones, the best first; none if no guess succeeded.
    """

    parameters: dict[str, Any]
    starts: tuple[Start, ...]
    optima: tuple[Optimum, ...]

    @property
    def success(self) -> bool:
        """Whether an optimum was found."""
        return bool(self.optima)


@dataclass(frozen=True, eq=False)
class Sweep(Result):
    """All combinations, the last parameter varying fastest.

    Attributes
    ----------
    names : tuple of str
        Of the parameters that vary.
    points : tuple of SweepPoint
    """

    names: tuple[str, ...]
    points: tuple[SweepPoint, ...]

    @property
    def failures(self) -> tuple[SweepPoint, ...]:
        """Combinations without an optimum."""
        return tuple(point for point in self.points if not point.success)


def sweep(
    make: Callable[..., Any],
    vary: Mapping[str, Sequence[Any]],
    *,
    fixed: Mapping[str, Any] | None = None,
    name: str | None = None,
    starts: int = 1,
    seed: int = 0,
    spread: float = 0.3,
    stretch: float = 3.0,
    guess: Mapping[str, Any] | None = None,
    executor: Any = None,
    record: str | os.PathLike[str] | None = None,
    retries: int = 3,
    progress: bool | Callable[[int, int, Mapping[str, Any]], None] | None = None,
    same_objective: float = 1e-4,
    same_x: float = 1e-2,
    **options: Any,
) -> Sweep:
    """Solve a problem for all combinations of some of its parameters.

    Parameters
    ----------
    make : callable
        Makes a :class:`~kinegrad.motion.problem.MotionProblem` from keyword arguments; on a worker, so that it has to
        be importable there: a function of a module, no lambda.
    vary : mapping of str to sequence
        Values of those arguments that vary.
    fixed : mapping, optional
        Others.
    name : str, optional
        Under which the record knows the problem; where `make` is, if not given.
    starts, seed, spread, stretch, guess, executor, record, retries, progress, same_objective, same_x
        As of :func:`multi_start`; `starts` guesses for each combination.
    **options
        Of ``problem.solve``.

    Returns
    -------
    Sweep

    Examples
    --------
    >>> from kinegrad import samples
    >>> from kinegrad.motion.problem import Boundary, MotionProblem, Phase
    >>> def reach(elbow, segments=6):
    ...     ends = [Boundary("start", q=[0, -2], v=0), Boundary("end", q=[1, elbow], v=0)]
    ...     return MotionProblem(samples.two_link(gravity=(0, 0, 0)), Phase(segments=segments), ends)
    >>> found = sweep(reach, {"elbow": [-1.0, -0.5]})
    >>> for point in found.points:
    ...     print(point.parameters, round(point.optima[0].duration, 3))
    {'elbow': -1.0} 0.4...
    {'elbow': -0.5} 0.4...
    """
    if not callable(make):
        raise InputError(f"`make` is {shown(make)}; expected a function that makes a MotionProblem")
    others = words("fixed", fixed)
    check_parameters(make, vary, others)
    refuse_checkpoint(options)
    check_options(options, MotionProblem.solve)
    starts, retries = engine.whole("starts", starts), engine.whole("retries", retries, least=0)
    tolerances = (engine.positive("same_objective", same_objective), engine.positive("same_x", same_x))
    guesses = Guesses(seed, spread, stretch, words("guess", guess))
    names = tuple(vary)
    combinations = [dict(zip(names, values, strict=True)) for values in itertools.product(*vary.values())]
    if len(combinations) * starts > MOST:
        found = f"{len(combinations)} combinations of {starts} guesses"
        raise InputError(f"`vary` and `starts` make {found}; expected at most {MOST} tasks")
    tasks = {
        _key(parameters, i): (make, others | parameters, guesses, i, options, os.getpid())
        for parameters in combinations
        for i in range(starts)
    }
    if len(tasks) < len(combinations) * starts:
        raise InputError("`vary` has the same combination twice; expected different values of each parameter")
    with telling(progress, "sweep") as finished:
        if record is None:
            results = run_tasks(solve_combination, tasks, executor=executor, retries=retries, finished=finished)
        else:
            function = f"{getattr(make, '__module__', '?')}.{getattr(make, '__qualname__', type(make).__name__)}"
            settings = guesses.identity | {"options": options_identity(options, MotionProblem)}
            work = {"problem": function if name is None else name, **expanded(fixed=others), **settings}
            with Records(record, work) as records:
                for parameters in combinations:
                    _check_recorded(records, make, others | parameters, [_key(parameters, i) for i in range(starts)])
                results = run_tasks(
                    solve_combination, tasks, executor=executor, records=records, retries=retries, finished=finished
                )
    points = []
    for parameters in combinations:
        own = [results[_key(parameters, i)] for i in range(starts)]
        ended = tuple(outcome(i, result) for i, result in enumerate(own))
        scales: Any = next(((result["x_scale"], result["f_scale"]) for result in own if "x_scale" in result), ([], 1.0))
        points.append(SweepPoint(parameters, ended, distinct_optima(ended, *_scales(*scales), *tolerances)))
    return Sweep(names, tuple(points))


def solve_combination(
    make: Callable[..., Any],
    parameters: Mapping[str, Any],
    guesses: Guesses,
    i: int,
    options: Mapping[str, Any],
    home: int,
) -> dict[str, Any]:
    """Make a problem and solve it from guess number i; what is run on workers."""
    problem = make(**parameters)
    program, made = problem.program, _made(problem)
    try:
        found = solve_start(problem, guesses, i, options, home)
    except Exception as error:
        found = failure(error)
    scales = {"x_scale": program.x_scale, "f_scale": program.f_scale}
    return found | {"parameters": dict(parameters), "made": made, **scales}


def _made(problem: Any) -> dict[str, str]:
    """What a problem is, in a digest for each of its parts."""
    identity = program_identity(problem.program)
    return sections(identity) | {"values": digest([x and float(f"{x:.6g}") for x in identity["values"]])}


def _check_recorded(records: Records, make: Callable[..., Any], parameters: Mapping[str, Any], keys: list[str]) -> None:
    """Refuse results of a combination for which another problem is made now."""
    known = [key for key in keys if key in records.found]
    if not known:
        return
    try:
        made: dict[str, str] | None = _made(make(**parameters))
    except Exception:  # which is a result, if it was raised in the earlier run, too
        made = None
    for key in known:
        recorded = records.found[key].get("made")
        if recorded == made:
            continue
        old, new = recorded or {}, made or {}
        names = ", ".join(name for name in {**old, **new} if old.get(name) != new.get(name))
        found = f"`record` {records.path} has results of another problem for {key!r}"
        raise InputError(f"{found} than `make` makes now (what differs: {names}); expected the same, or a new file")


def check_parameters(make: Callable[..., Any], vary: Any, fixed: Any) -> None:
    """Refuse parameters that `make` does not have, that are there twice, or that have no values."""
    if not isinstance(vary, Mapping) or not vary:
        raise InputError(f"`vary` is {shown(vary)}; expected a mapping from parameters to their values")
    for name, values in vary.items():
        if not isinstance(name, str):
            raise InputError(f"`vary` has the parameter {shown(name)}; expected names")
        if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not len(values):
            raise InputError(f"`vary[{name!r}]` is {shown(values)}; expected a list of values, one at least")
        if name in fixed:
            raise InputError(f"{name!r} is in `vary` and in `fixed`; expected it in one of them")
    signature = inspect.signature(make)
    if any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values()):
        return
    known = [
        each for each in signature.parameters.values() if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    names = [each.name for each in known]
    for name in (*vary, *fixed):
        if name not in names:
            raise InputError(f"the problem has no parameter {name!r}; expected one of {', '.join(names)}")
    for each in known:
        if each.default is each.empty and each.name not in (*vary, *fixed):
            raise InputError(f"the problem needs a value of {each.name!r}; expected it in `vary` or `fixed`")


def _key(parameters: Mapping[str, Any], start: int) -> str:
    values = ", ".join(f"{name} = {plain(value)!r}" for name, value in parameters.items())
    return f"{values}, start {start}"


def _scales(x_scale: Any, f_scale: Any) -> tuple[Any, float]:
    import numpy as np

    return np.array(x_scale, dtype=float), float(f_scale)
