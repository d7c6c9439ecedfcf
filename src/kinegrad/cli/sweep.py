"""``kinegrad sweep``: a motion predicted for many parameters, from many guesses, on many machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import kinegrad as kg
from kinegrad.cli.console import known_name, open_console, plain, print_section, text_table

if TYPE_CHECKING:
    from kinegrad.motion.sweeps import Sweep

__all__ = ["make_prediction", "sweep"]


def sweep(
    file: Annotated[
        Path,
        typer.Argument(metavar="PROBLEM.toml", help="The problem; see the page Solvers and sweeps."),
    ],
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A Dask scheduler, such as tcp://10.0.0.5:8786.")
    ] = None,
    workers: Annotated[
        int, typer.Option(metavar="N", help="Number of processes on this machine; 0: no other process.")
    ] = 0,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the results; by default PROBLEM.jsonl.")
    ] = None,
    retries: Annotated[int, typer.Option(metavar="N", help="How often a lost task is submitted again.")] = 3,
) -> None:
    """Predict a motion for all combinations of some parameters, from one or many guesses each.

    Results are written as they arrive, one line each. When started again, the sweep continues with the missing ones.
    """
    from kinegrad.motion.sweeps import sweep as run
    from kinegrad.motion.sweeps.sweep import check_parameters
    from kinegrad.motion.sweeps.sweep_file import read_sweep

    plan = read_sweep(file)
    make, signature, guess, options = _problem(plan.problem)
    check_parameters(signature, plan.vary, plan.fixed)
    target = record or Path(file.stem + ".jsonl")
    try:
        with _executor(scheduler, workers) as executor:
            found = run(
                make, plan.vary, fixed=plan.fixed, name=plan.problem, starts=plan.starts, seed=plan.seed,
                spread=plan.spread, stretch=plan.stretch, guess=guess, executor=executor, record=target,
                retries=retries, progress=True, **{**options, **plan.options},
            )  # fmt: skip
    except KeyboardInterrupt:
        console = open_console(stderr=True)
        console.print(f"results so far: {plain(target)}; the same command continues", soft_wrap=True)
        raise
    _print(found, plan.starts)
    open_console().print(f"results: {plain(target)}", soft_wrap=True)
    if found.failures:
        raise typer.Exit(1)


def make_prediction(name: str, /, **parameters: Any) -> Any:
    """The problem of a prediction; what workers call."""
    from kinegrad.predictions import prediction

    return prediction(name).make(**parameters)


def _problem(name: str) -> tuple[Callable[..., Any], Callable[..., Any], Mapping[str, Any], Mapping[str, Any]]:
    """What makes the problem, on a worker; its signature; arguments of its guess, and of its solve."""
    if ":" not in name:
        from kinegrad.predictions import PREDICTIONS

        found = PREDICTIONS[known_name("problem", name, PREDICTIONS)]
        return partial(make_prediction, name), found.make, found.guess, found.options
    module, _, function = name.partition(":")
    try:
        make = getattr(import_module(module), function)
    except Exception as error:
        raise kg.InputError(f"problem {name[:60]!r} cannot be imported: {type(error).__name__}: {error}") from None
    if not callable(make):
        raise kg.InputError(f"problem {name[:60]!r} is a {type(make).__name__}; expected a function")
    return make, make, {}, {}


def _executor(scheduler: str | None, workers: int) -> AbstractContextManager[Any]:
    from kinegrad.motion.sweeps.workers import LocalWorkers, connected

    if scheduler is not None and workers:
        raise kg.InputError("--scheduler and --workers are both given; expected one of them")
    if workers < 0:
        raise kg.InputError(f"--workers is {workers}; expected a number of processes, or 0")
    if scheduler is not None:
        return connected(scheduler)
    return LocalWorkers(workers) if workers else nullcontext()


def _print(found: Sweep, starts: int) -> None:
    """A line for every combination."""
    console = open_console()
    table = text_table([*found.names, "status"], ["T, s", "objective", "optima", "found"])
    for point in found.points:
        best = point.optima[0] if point.optima else None
        status = "optimal" if best else point.starts[0].status
        numbers = (f"{best.duration:.5f}", f"{best.objective:.6g}") if best else ("-", "-")
        counts = (str(len(point.optima)), f"{best.count} of {starts}" if best else f"0 of {starts}")
        values = [f"{x:g}" if isinstance(x, float) else str(x) for x in point.parameters.values()]
        table.add_row(*map(plain, (*values, status, *numbers, *counts)))
    print_section(console, f"{len(found.points)} combinations", table)
    for point in found.failures[:3]:
        where = ", ".join(f"{name} = {value}" for name, value in point.parameters.items())
        console.print(plain(f"{where}: {point.starts[0].message}"))
    console.print()
