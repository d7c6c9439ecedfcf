"""``kinegrad view``: a model in the browser, or as a page, a picture or a film."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import kinegrad as kg
from kinegrad.cli.console import find_mechanism, open_console, plain
from kinegrad.cli.info import ModelName
from kinegrad.cli.inverse_dynamics import Missing, Units

__all__ = ["view"]


def view(
    model: ModelName,
    motion: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A motion to play: a .csv, .npz, .nc, .mot or .sto file.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="PAGE.html", help="Write one page that plays offline; opens no browser."),
    ] = None,
    png: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture of the first posture.")] = None,
    gif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a film of the motion.")] = None,
    mp4: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an MP4 film; needs ffmpeg.")] = None,
    units: Annotated[
        Units | None, typer.Option(help="Unit of angles if the file does not state it; by default rad.")
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="Coordinates without a column in a CSV file: an error, or their neutral value.")
    ] = Missing.refuse,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark; else pages are as the reader's system.")] = False,
    port: Annotated[int, typer.Option(metavar="N", help="Port of the server; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Show a model and its motion: in the browser, or as a page, a picture or a film.

    In the browser there are a slider for each coordinate, play and pause, and synchronised plots; a click on a link
    colours the body by the derivatives of all torques with respect to its joint.
    """
    from kinegrad import view
    from kinegrad.io.whole_file import check_kept

    for option, path, endings in (
        ("--png", png, (".png", ".pdf", ".svg")), ("--gif", gif, (".gif",)), ("--mp4", mp4, (".mp4",)),
        ("--export", export, (".html", ".htm")),
    ):  # fmt: skip
        if path is not None and path.suffix.lower() not in endings:
            raise kg.InputError(f"{option} is '{plain(path)}'; expected a name that ends in {' or '.join(endings)}")
    check_kept([path for path in (png, gif, mp4, export) if path is not None], [Path(model), motion])
    (mechanism, held), console = find_mechanism(model, drawn=True), open_console()
    played = None if motion is None else _played(motion, mechanism, units, missing)
    written = []
    try:
        if png is not None:
            first = None if played is None else played.q[0]
            written.append(view.save_picture(mechanism, png, first, constraints=held, dark=dark))
        for target in (gif, mp4):
            if target is not None:
                if played is None:
                    raise kg.InputError("a film needs a motion; give its file with --motion")
                written.append(view.film(mechanism, played, target, constraints=held, dark=dark))
        if export is not None:
            written.append(view.export_page(mechanism, played, export, constraints=held, dark=dark or None))
        for path in written:
            console.print(f"wrote {plain(path)}")
        if not written:
            _serve(view.Viewer(mechanism, played, constraints=held, port=port, dark=dark), console, browser, port)
    except ImportError as error:
        raise kg.InputError(str(error)) from error


def _played(path: Path, model: kg.Model, units: Units | None, missing: Missing) -> kg.Motion:
    """The motion of a file, of its positions alone if that is all it has."""
    from kinegrad import io
    from kinegrad.io.trajectory import STORAGE
    from kinegrad.recordings import read_motion

    unit = None if units is None else units.value
    if path.suffix.lower() in STORAGE:
        return read_motion(path, model, units=unit, missing="neutral")
    if missing is Missing.refuse:
        with contextlib.suppress(io.PositionsAloneError):
            return io.read_trajectory(path, model, units=unit).motion()
    return read_motion(path, model, units=unit, missing=missing.value)


def _serve(viewer: kg.view.Viewer, console: Console, browser: bool, port: int) -> None:
    """Until Ctrl-C."""
    import webbrowser

    with viewer:
        if port not in (0, viewer.server.get_port()):
            console.print(f"port {port} is taken; this is the next that is free")
        console.print(f"{plain(viewer.model.name)} is at [bold]{viewer.url}[/]; Ctrl-C ends it")
        if browser:
            webbrowser.open(viewer.url)
        viewer.wait()
