"""The command line: ``kinegrad info``, ``kinegrad inverse-dynamics``, ``kinegrad demo``,
``kinegrad reproduce``.

Thin: it reads arguments, calls the public API and prints.  What a user can get wrong ends with one line on
stderr and exit code 2; output that cannot be written with 1; Ctrl-C with 130; SIGTERM and SIGHUP, after tidying up,
with 128 and their number.  Where a terminal cannot show a letter, its name or a plain sign stands for it.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

import kinegrad as kg
from kinegrad.papers import PAPERS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kinegrad.papers import anderson2002, zhakatayev2023

    Array = NDArray[np.float64]

__all__ = ["app", "main"]

WIDTH = 100  # columns, where the output is not a terminal
BLOCK = 8192  # states between two steps of the progress bar
LARGEST = 8  # joints in the summary of torques
DEMO_JOINTS = {
    "right leg": ["right_hip.x", "right_knee", "right_ankle.x"],
    "spine and neck": ["lumbar", "neck.x", "neck.y"],
    "right arm": ["right_clavicle.z", "right_shoulder.x", "right_elbow.x", "right_wrist.x"],
}


class Method(StrEnum):
    """The formulations of inverse dynamics."""

    spatial = "spatial"
    lagrange = "lagrange"


class _Commands(TyperGroup):
    """Turns errors into a line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except kg.KinegradError as error:
            _complain(error)
            raise typer.Exit(2) from None
        except MemoryError:
            _complain("there is not enough memory for this")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            _console(stderr=True).print("interrupted")
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="How robots, machines and human bodies move, and exactly how that changes with everything.",
)

SAMPLE_NAMES = ", ".join(kg.samples.SAMPLES)
ModelName = Annotated[str, typer.Argument(metavar="MODEL", help=f"A sample: {SAMPLE_NAMES}.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kinegrad {kg.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def info(model: ModelName) -> None:
    """Show a model: its joints, tree, masses and branches."""
    mechanism, console = _sample(model), _console()
    console.print(_header(mechanism))
    _section(console, "joints, each axis in its joint's frame", _joint_table(mechanism))
    _section(console, "tree, by joint numbers", Text(mechanism.topology.draw_text()))
    _section(console, f"masses, {mechanism.total_mass:g} kg in all", _mass_table(mechanism))
    _section(console, "branches: parents Φ, first and last joints Ψ", _branch_table(mechanism))
    _section(console, "what describes the tree (zhakatayev2023, section 2.2)", _storage_table(mechanism))


@app.command()
def inverse_dynamics(
    model: ModelName,
    trajectory: Annotated[
        Path, typer.Option(metavar="FILE", help="q, v and a of all joints: a .csv, .npz or .nc file.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the torques go; by default NAME.tau.csv beside NAME.csv."),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="Newton–Euler (fastest) or the Lagrangian of zhakatayev2023.")
    ] = Method.spatial,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Threads; by default all processors.")] = None,
) -> None:
    """Compute the torques of a motion, from a file into a file.

    A CSV file has a header with the columns t (optional), q.JOINT, v.JOINT and a.JOINT for every joint. An NPZ file has
    arrays q, v and a of shape (instants, joints), and optionally t and joint_names. A NetCDF file has variables q, v
    and a over the dimensions time and joint, with the joints' names as coordinate.
    """
    from kinegrad import io

    mechanism, console = _sample(model), _console()
    io.file_format(trajectory)
    target = output or trajectory.with_name(f"{trajectory.stem}.tau{trajectory.suffix}")
    io.file_format(target)
    if os.path.realpath(target) == os.path.realpath(trajectory):
        raise kg.InputError(f"`--output` is {str(target)!r}, the trajectory itself; expected another file")
    motion = io.read_trajectory(trajectory, mechanism)
    start = time.perf_counter()
    tau = _torques(mechanism, motion.q, motion.v, motion.a, method.value, threads)
    seconds = time.perf_counter() - start
    io.write_torques(target, mechanism, motion.t, tau)
    _print_torques(console, mechanism, motion.t, tau)
    console.print(f"{len(tau)} instants in {_duration(seconds)}, method {method.value}")
    console.print(f"torques: {_plain(target)}", soft_wrap=True)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the figure goes.")] = Path("out"),
) -> None:
    """Torques of the 43-joint human of zhakatayev2023 over its 3 s motion, timed, with a figure."""
    import numpy as np

    from kinegrad.io.whole_file import replacing
    from kinegrad.plot.torques import plot_torques

    human, console = kg.samples.human43(), _console()
    console.print(repr(human), markup=False)
    t = np.linspace(0, 3, 301)
    w = 2 * np.pi
    motion = (np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t))
    q, v, a = (np.repeat(x[:, None], human.n, axis=1) for x in motion)
    tau = kg.inverse_dynamics(human, q, v, a)  # loads the kernel
    seconds = min(_timed(human, q, v, a) for _ in range(20))
    _print_torques(console, human, t, tau)
    console.print(
        f"{len(t)} instants, every q = sin(2πt): {_duration(seconds)} (best of 20), "
        f"{_duration(seconds / len(t))} an instant; up to {kg.get_threads()} threads"
    )
    figure = plot_torques(human, t, tau, DEMO_JOINTS, title="human43: joint torques while every q = sin(2πt)")
    path = out / "human43_torques.png"
    try:
        out.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            figure.savefig(file, dpi=150, format="png")
    except OSError as error:
        raise kg.InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    console.print(f"figure: {_plain(path)}", soft_wrap=True)


@app.command(name="compile")
def compile_command(
    functions: Annotated[
        list[str] | None, typer.Argument(metavar="[FUNCTION]...", help="Such as inverse_dynamics; by default all.")
    ] = None,
    processes: Annotated[int | None, typer.Option(metavar="N", help="At a time; by default all processors.")] = None,
) -> None:
    """Compile kernels before they are needed, in parallel; they are kept for all programs of this user."""
    from kinegrad.warm import compile_kernels

    found = _with_progress(
        lambda show: compile_kernels(
            functions or None, processes=processes, progress=lambda _, done, total: show("compiling", done, total)
        )
    )
    _console().print(f"{len(found.labels)} kernels compiled or found in {_duration(found.seconds)}")


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help=f"A paper: {', '.join(PAPERS)}.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where page, figures and numbers go; by default out/PAPER.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="About a minute or less: shorter measurements, fewer cases.")
    ] = False,
) -> None:
    """Run a paper's experiment again: its figures and tables, as one HTML page.

    zhakatayev2023: sensitivities of the 43-joint human, analytic and numerical, their errors and their cost.

    anderson2002: sensitivities to lengths and masses by three methods, on chains and on a double pendulum over time.
    """
    from kinegrad.papers import load

    console = _console()
    report = _with_progress(load(_known("paper", paper, PAPERS)).reproduce, out or Path("out", paper), quick)
    show: Callable[[Console, Any], None] = _print_anderson2002 if paper == "anderson2002" else _print_zhakatayev2023
    show(console, report)
    console.print(f"page: {_plain(report.page)}", soft_wrap=True)


def main() -> None:
    """Run the command line, as the program ``kinegrad`` does."""
    codecs.register_error("kinegrad.plain", _plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # not where it is closed, or replaced by something else
            stream.reconfigure(errors="kinegrad.plain")
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _terminate)
    try:
        try:
            app(prog_name="kinegrad")
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:  # of stdout: what concerns files has become an InputError
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python tries again, and complains again
        if not isinstance(error, BrokenPipeError):
            _complain(f"the output cannot be written: {error.strerror or error}")
        sys.exit(1)


def _terminate(number: int, frame: Any) -> None:
    """End as if by an exception, so that temporary files and folders are removed."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


# --- the work -----------------------------------------------------------------------------------------------


def _sample(name: str) -> kg.Model:
    samples = kg.samples.SAMPLES
    return samples[_known("model", name, samples)]()


def _known(what: str, name: str, names: Collection[str]) -> str:
    """`name` if it is among `names`, or an error with the closest."""
    import difflib

    if name not in names:
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
        hint = f"expected one of {', '.join(names)}"
        if close:
            hint = f"did you mean {' or '.join(map(repr, close))}?"
        raise kg.InputError(f"{what} {name[:60]!r} does not exist; {hint}")
    return name


def _with_progress(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's result, with a bar for each of the stages that it reports, while it runs."""
    from rich.progress import Progress, TaskID

    tasks: dict[str, TaskID] = {}
    with Progress(console=_console(stderr=True), transient=True) as bars:

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(_plain(stage), total=total)
            bars.update(tasks[stage], completed=done)

        return function(*arguments, show)


def _torques(model: kg.Model, q: Array, v: Array, a: Array, method: str, threads: int | None) -> Array:
    """Inverse dynamics in blocks, with a progress bar from the first second on."""
    import numpy as np
    from rich.progress import Progress

    tau = np.empty_like(q)
    start, shown = time.perf_counter(), False
    progress = Progress(console=_console(stderr=True), transient=True)
    task = progress.add_task("inverse dynamics", total=len(q))
    try:
        for k in range(0, len(q), BLOCK):
            block = slice(k, k + BLOCK)
            state = q[block], v[block], a[block]
            tau[block] = kg.inverse_dynamics(model, *state, method=method, threads=threads)
            progress.advance(task, len(tau[block]))
            if not shown and k + BLOCK < len(q) and time.perf_counter() - start > 1:
                progress.start()
                shown = True
    finally:
        if shown:
            progress.stop()
    return tau


def _timed(model: kg.Model, q: Array, v: Array, a: Array) -> float:
    start = time.perf_counter()
    kg.inverse_dynamics(model, q, v, a)
    return time.perf_counter() - start


# --- what is printed ----------------------------------------------------------------------------------------


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=WIDTH)


LETTERS = {
    "Φ": "Phi", "Ψ": "Psi", "Υ": "Upsilon", "τ": "tau", "π": "pi", "∂": "d", "µ": "u", "²": "^2", "·": "*", "…": "...",
    "–": "-", "−": "-", "×": "x", "•": "*", "└": "`", "├": "|", "│": "|", "─": "-",
}  # fmt: skip


def _plain_letters(error: UnicodeError) -> tuple[str, int]:
    """What stands for letters that the terminal does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(LETTERS.get(x) or ascii(x)[1:-1] for x in letters), error.end


def _complain(error: object) -> None:
    _console(stderr=True).print(f"[bold red]error:[/] {_plain(error)}", soft_wrap=True)


def _plain(text: object) -> str:
    from rich.markup import escape

    return escape(str(text))


def _section(console: Console, title: str, body: Table | Text) -> None:
    console.print()
    console.print(Text(title, style="bold"))
    console.print(body)


def _table(left: Sequence[str], right: Sequence[str] = ()) -> Table:
    """An empty table; the columns of `left` hold words, those of `right` numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


def _header(model: kg.Model) -> str:
    gravity = ", ".join(f"{x:g}" for x in model.gravity)
    solid = int((model.mass > 0).sum())
    return (
        f"[bold]{_plain(model.name)}[/]: {model.n} degrees of freedom, {model.total_mass:g} kg in "
        f"{solid} links ({model.n - solid} massless), gravity ({gravity}) m/s²"
    )


def _joint_table(model: kg.Model) -> Table:
    import numpy as np

    limited = bool(np.isfinite(model.position_limits).any())
    table = _table(["#", "joint", "kind", "axis", "parent link", "link"], ["mass, kg"])
    if limited:
        table.add_column("limits", justify="right")
    for i, joint in enumerate(model.joints):
        parent = model.parents[i]
        above = "world" if parent < 0 else model.link_names[parent]
        cells = [str(i), model.joint_names[i], joint.kind, _axis(joint.axis), above, model.link_names[i]]
        cells.append(_kilograms(model.mass[i]))
        if limited:
            lower, upper = model.position_limits[i]
            unit = "m" if joint.kind == "prismatic" else "rad"
            cells.append(f"{lower:.3g} … {upper:.3g} {unit}" if np.isfinite([lower, upper]).any() else "")
        table.add_row(*map(_plain, cells))
    return table


def _mass_table(model: kg.Model) -> Table:
    """Links with mass, in as many columns side by side as keep it short."""
    solid = [i for i in range(model.n) if model.mass[i] > 0]
    across = 1 if len(solid) <= 6 else 3
    rows = -(-len(solid) // across)
    table = _table([])
    for _ in range(across):
        table.add_column("link")
        table.add_column("mass, kg", justify="right")
    for k in range(rows):
        pairs = ((model.link_names[i], _kilograms(model.mass[i])) for i in solid[k::rows])
        table.add_row(*(_plain(cell) for pair in pairs for cell in pair))
    return table


def _branch_table(model: kg.Model) -> Table:
    tree = model.topology
    table = _table([], ["branch", "Φ", "Ψ", "joints"])
    table.add_column("from … to")
    for k, joints in enumerate(tree.branches):
        first, last = joints[0], joints[-1]
        parent = int(tree.branch_parents[k])
        names = dict.fromkeys((model.joint_names[first], model.joint_names[last]))
        cells = (k, "world" if parent < 0 else parent, f"{first}, {last}", len(joints), " … ".join(names))
        table.add_row(*map(_plain, cells))
    return table


def _storage_table(model: kg.Model) -> Table:
    stored = model.topology.storage()
    table = _table(["description"], ["numbers stored"])
    rows = {
        "branch matrices Φ and Ψ": stored.branch_matrices,
        "parent matrix Υ": stored.parent_matrix,
        "incidence matrix": stored.incidence_matrix,
        "adjacency matrix": stored.adjacency_matrix,
    }
    for description, count in rows.items():
        table.add_row(description, str(count))
    return table


def _print_torques(console: Console, model: kg.Model, t: Array | None, tau: Array) -> None:
    import numpy as np

    size = np.abs(tau)
    order = np.argsort(-size.max(axis=0), kind="stable")[:LARGEST]
    which = f"the {len(order)} largest of {model.n} joints" if model.n > len(order) else "all joints"
    table = _table(["joint"], ["max |τ|"])
    table.add_column("unit")
    table.add_column("at instant" if t is None else "at t, s", justify="right")
    for i in order:
        k = int(size[:, i].argmax())
        unit = "N" if model.joints[i].kind == "prismatic" else "N·m"
        when = str(k) if t is None else f"{t[k]:.4g}"
        table.add_row(_plain(model.joint_names[i]), f"{size[k, i]:.4g}", unit, when)
    _section(console, f"torques, {which}", table)
    console.print()


def _print_anderson2002(console: Console, report: anderson2002.Report) -> None:
    """What [anderson2002] done again has found."""
    sizes = [n for n in dict.fromkeys(row.n for row in report.timings) if n in (2, 8, 24, 64, 512)]
    times = _table(["method"], [f"n = {n}" for n in sizes] + ["exponent", "order"])
    seconds = {(row.method, row.n): row.seconds for row in report.timings}
    for fit in report.exponents:
        cells = [_duration(seconds[fit.method, n]) if (fit.method, n) in seconds else "" for n in sizes]
        times.add_row(fit.method, *cells, f"{fit.exponent:.2f}", str(fit.order))
    _section(console, "chains: time of accelerations and their derivatives by 4 parameters, one state", times)
    curves = _table(["parameter", "method"], ["largest dT/dp", "largest deviation", "relative", "at t, s"])
    for row in report.deviations:
        numbers = f"{row.largest_value:.4g}", f"{row.largest:.2g}", f"{row.relative:.1e}", f"{row.at:.2f}"
        curves.add_row(row.parameter, row.method, *numbers)
    _section(console, "double pendulum, 20 s: away from fully recursive sensitivities of its kinetic energy", curves)
    console.print()
    for words in report.findings:
        console.print(Text(f"• {words}"))


def _print_zhakatayev2023(console: Console, report: zhakatayev2023.Report) -> None:
    """What [zhakatayev2023] done again has found."""
    curves = _table(["entry", "method"], ["largest value", "RMS error", "largest error", "at t, s"])
    for row in report.curves:
        entry = f"∂Q{row.torque}/∂{row.by}{row.joint}"
        errors = f"{row.largest_value:.4g}", f"{row.rms:.2g}", f"{row.largest:.3g}", f"{row.at:.2f}"
        curves.add_row(entry, row.method, *errors)
    _section(console, "six sensitivities, numerical against analytic; joints from 1, as in the paper", curves)
    matrices = _table(["matrix", "method"], ["instants", "largest RMS error", "median", "largest entry"])
    for each in report.matrices:
        numbers = f"{each.largest:.2g}", f"{each.median:.2g}", f"{each.largest_value:.4g}"
        matrices.add_row(f"∂Q/∂{each.by}", each.method.replace("_", ", "), str(each.instants), *numbers)
    _section(console, f"all {report.entries} entries of each matrix", matrices)
    exact = "exactly zero" if report.zeros_exact else "not exactly zero"
    console.print(f"{report.zeros} are zero by topology; the analytic ones are {exact} there")
    costs = _table(["method", "threads", "how"], [f"{report.instants} instants"])
    for cost in report.timings:
        scaled = f"scaled to {report.instants} instants from {cost.measured}"
        how = "quoted" if not cost.measured else "measured" if cost.measured == report.instants else scaled
        costs.add_row(cost.what, str(cost.threads or ""), how, _duration(cost.seconds))
    _section(console, "time for the three matrices", costs)
    console.print()
    console.print(_plain(report.spike_statement))


def _axis(axis: Sequence[float]) -> str:
    for letter, x in zip("xyz", axis, strict=True):
        if abs(x) == 1:
            return letter if x > 0 else f"-{letter}"
    return "(" + ", ".join(f"{x:.3g}" for x in axis) + ")"


def _kilograms(mass: float) -> str:
    return f"{mass:.4g}" if mass else ""


def _duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


if __name__ == "__main__":
    main()
