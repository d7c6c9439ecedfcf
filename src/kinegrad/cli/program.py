"""The program ``kinegrad``: its commands, and how it ends.

Thin: a command reads arguments, calls the public API and prints.  What a user can get wrong ends with one line on
stderr and exit code 2; output that cannot be written with 1; Ctrl-C with 130; SIGTERM and SIGHUP, after tidying up,
with 128 and their number.  Where a terminal cannot show a letter, its name or a plain sign stands for it.
"""

from __future__ import annotations

import codecs
import contextlib
import inspect
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import kinegrad as kg
from kinegrad.cli.analyze import analyze
from kinegrad.cli.compile import compile_command
from kinegrad.cli.console import complain, open_console, plain
from kinegrad.cli.convert import convert
from kinegrad.cli.demo import demo
from kinegrad.cli.info import info
from kinegrad.cli.inverse_dynamics import inverse_dynamics
from kinegrad.cli.predict import predict
from kinegrad.cli.reproduce import reproduce
from kinegrad.cli.sample_trajectory import sample_trajectory
from kinegrad.cli.sweep import sweep
from kinegrad.cli.view import view

__all__ = ["app", "main"]

LETTERS = {
    "Φ": "Phi", "Ψ": "Psi", "Υ": "Upsilon", "τ": "tau", "π": "pi", "∂": "d", "µ": "u", "²": "^2", "·": "*", "…": "...",
    "–": "-", "−": "-", "×": "x", "•": "*", "└": "`", "├": "|", "│": "|", "─": "-",
}  # fmt: skip


class _Commands(TyperGroup):
    """Turns errors into a line on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except kg.KinegradError as error:
            complain(error)
            raise typer.Exit(2) from None
        except MemoryError:
            complain("there is not enough memory for this")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            open_console(stderr=True).print("interrupted")
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Multibody dynamics with exact derivatives: robots, machines and human bodies.",
)


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


def _paragraphs(command: Callable[..., None]) -> str:
    """Its docstring with one line for each paragraph, for terminals of any width."""
    text = inspect.getdoc(command) or ""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


for _command in (
    info, convert, inverse_dynamics, analyze, sample_trajectory, demo, compile_command, reproduce, predict, sweep, view,
):  # fmt: skip
    _name = "compile" if _command is compile_command else None  # compile is a function of Python
    app.command(name=_name, help=_paragraphs(_command))(_command)


def main() -> None:
    """Run the command line, as the program ``kinegrad`` does."""
    codecs.register_error("kinegrad.plain", _plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # not where it is closed, or replaced by something else
            stream.reconfigure(errors="kinegrad.plain")
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _terminate)
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
        """Warnings of kinegrad as one line; others as Python shows them."""
        if issubclass(category, kg.KinegradWarning):
            open_console(stderr=True).print(f"[bold]warning:[/] {plain(message)}", soft_wrap=True)
        else:
            usual(message, category, *where, **more)

    warnings.showwarning = show
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
            complain(f"the output cannot be written: {error.strerror or error}")
        sys.exit(1)


def _terminate(number: int, frame: Any) -> None:
    """End as if by an exception, so that temporary files and folders are removed."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _plain_letters(error: UnicodeError) -> tuple[str, int]:
    """What stands for letters that the terminal does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(LETTERS.get(x) or ascii(x)[1:-1] for x in letters), error.end
