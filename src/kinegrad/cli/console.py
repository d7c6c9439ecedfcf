"""What the commands share: finding what is named, printing tables, torques and progress."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import kinegrad as kg

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kinegrad.io import ModelFile

    Array = NDArray[np.float64]

PATIENCE = 10  # seconds between two lines of progress in a log
WIDTH = 100  # columns, where the output is not a terminal
LARGEST = 8  # joints in the summary of torques
_OPTIONS = {"inertia='project'": "--project-inertia", "massless=True": "--massless"}


def open_console(*, stderr: bool = False) -> Console:
    """A console on stdout or stderr, of a fixed width where it is not a terminal."""
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=WIDTH)


def complain(error: object) -> None:
    """Print an error as one line on stderr."""
    open_console(stderr=True).print(f"[bold red]error:[/] {plain(error)}", soft_wrap=True)


def plain(text: object) -> str:
    """Text whose brackets are not markup."""
    from rich.markup import escape

    return escape(str(text))


def print_section(console: Console, title: str, body: Table | Text) -> None:
    """Print a title in bold after an empty line, and what belongs to it."""
    console.print()
    console.print(Text(title, style="bold"))
    console.print(body)


def text_table(left: Sequence[str], right: Sequence[str] = ()) -> Table:
    """An empty table; the columns of `left` hold words, those of `right` numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


def find_model(name: str) -> kg.Model:
    """Return the sample model of this name, or the model in the file of this name; what it lacks goes to stderr."""
    return find_mechanism(name)[0]


def find_mechanism(name: str, *, drawn: bool = False) -> tuple[kg.Model, kg.ConstraintSet | None]:
    """Return a model as :func:`find_model`, and the constraints of its file.

    Meshes that are missing are mentioned only if the model is `drawn`.
    """
    try:
        found = find_file(name)
    except kg.FileError as error:
        problems = [text.replace("use --", "use kinegrad convert --") for text in error.problems]
        raise kg.FileError(error.path, problems) from None
    if found is None:
        return kg.samples.SAMPLES[name](), None
    left_out = found.left_out
    meshes = sum(note.what == "mesh not found" for note in found.report)
    left_out += [f"{meshes} × mesh not found"] if drawn and meshes else []
    said = [f"not in the model: {', '.join(left_out)}"] if left_out else []
    said += [repair.text for repair in found.report.repairs]
    if said:
        text = f"[bold]note:[/] {plain('; '.join(said))}; see kinegrad info"
        open_console(stderr=True).print(text, soft_wrap=True)
    return found.model, found.constraints


def find_file(name: str, **options: Any) -> ModelFile | None:
    """What is in the file of this name; None if it is the name of a sample, an error if it is neither."""
    import os

    samples = kg.samples.SAMPLES
    if name in samples:
        if options:
            raise kg.InputError(f"{next(iter(options))!r} is an option of files; {name!r} is a sample")
        return None
    suffix = os.path.splitext(name)[1].lower()
    if suffix or os.sep in name or os.path.exists(name):
        try:
            return kg.io.read_model(name, **options)
        except kg.FileError as error:
            raise kg.FileError(error.path, [_in_options(text) for text in error.problems]) from None
    known_name("model", name, samples)
    return None


def _in_options(problem: str) -> str:
    """What a problem of a file advises, as options of commands instead of arguments of Python."""
    for argument, option in _OPTIONS.items():
        problem = problem.replace(f"read with {argument}", f"use {option}")
    return problem.replace("or root='free'", "or --root free")


def known_name(what: str, name: str, names: Collection[str]) -> str:
    """`name` if it is among `names`, or an error with the closest."""
    from kinegrad.model.names import closest

    if name not in names:
        close = closest(name, names)
        hint = f"expected one of {', '.join(names)}{', or a file' if what == 'model' else ''}"
        if close:
            hint = f"did you mean {' or '.join(map(repr, close))}?"
        raise kg.InputError(f"{what} {name[:60]!r} does not exist; {hint}")
    return name


def with_progress(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's result, with a bar for each of the stages that it reports, while it runs.

    Where stderr is no terminal, a line for each stage as it begins, and another every so often.
    """
    console = open_console(stderr=True)
    if not console.is_terminal:
        return function(*arguments, _line_by_line(console))
    from rich.progress import Progress, TaskID

    tasks: dict[str, TaskID] = {}
    with Progress(console=console, transient=True) as bars:

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(plain(stage), total=total)
            bars.update(tasks[stage], completed=done)

        return function(*arguments, show)


def _line_by_line(console: Console) -> Callable[[str, int, int], None]:
    """What shows stages in a log: lines that come when a stage begins, then at most every PATIENCE seconds."""
    import time

    begun, last = set[str](), [0.0]

    def show(stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage not in begun or (done < total and now - last[0] > PATIENCE):
            begun.add(stage)
            last[0] = now
            console.print(f"{plain(stage)}: {done} of {total}", soft_wrap=True)

    return show


def print_torques(console: Console, model: kg.Model, t: Array | None, tau: Array) -> None:
    """Print the joints with the largest torques, and when those occur."""
    import numpy as np

    size = np.abs(tau)
    order = np.argsort(-size.max(axis=0), kind="stable")[:LARGEST]
    which = f"the {len(order)} largest of {model.nv} joints" if model.nv > len(order) else "all joints"
    table = text_table(["joint"], ["max |τ|"])
    table.add_column("unit")
    table.add_column("at instant" if t is None else "at t, s", justify="right")
    for i in order:
        k = int(size[:, i].argmax())
        unit = "N" if model.layout.speed_kinds[i] == "prismatic" else "N·m"
        when = str(k) if t is None else f"{t[k]:.4g}"
        table.add_row(plain(model.speed_names[i]), f"{size[k, i]:.4g}", unit, when)
    print_section(console, f"torques, {which}", table)
    console.print()
