"""``kinegrad sample-trajectory``: a file to try the other commands with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import kinegrad as kg
from kinegrad.cli.console import find_model, open_console, plain
from kinegrad.cli.info import ModelName
from kinegrad.samples.motions import sample_motion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["sample_trajectory"]

RATE, DURATION = 100, 2.0  # Hz, s
ERROR = 0.3  # degrees, of "measured" angles


def sample_trajectory(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write: .csv, .npz or .nc.")],
    model: Annotated[str, typer.Option(metavar="MODEL", help=str(ModelName.__metadata__[0].help))] = "human43",
    measured: Annotated[
        bool,
        typer.Option("--measured", help="Only angles, in degrees, with errors and a gap, as recorded in a laboratory."),
    ] = False,
) -> None:
    """Write a synthetic trajectory, for trying the other commands: two seconds at 100 Hz.

    The motion is not measured; for human43 it resembles a walk. The file has q, v and a of every joint; with
    --measured, only times and angles in degrees, with errors of 0.3 degrees and a gap, as CSV.
    """
    import numpy as np

    from kinegrad import io

    mechanism, console = find_model(model), open_console()
    suffix = io.file_format(file)
    t = np.arange(int(RATE * DURATION) + 1) / RATE
    motion = sample_motion(mechanism, t)
    q, v, a = motion.q, motion.v, motion.a
    if measured:
        if suffix != ".csv":
            raise kg.InputError(f"`FILE` is {str(file)!r}; expected a .csv, which is what --measured writes")
        _write_measured(file, mechanism, t, q)
        what = f"t and {mechanism.nq} coordinates, angles in degrees"
        options = " --units deg --lowpass 6"
    else:
        io.write_trajectory(file, mechanism, t, q, v, a)
        what, options = f"t, q, v and a of {mechanism.nv} joints", ""
    console.print(f"{plain(file)}: {len(t)} instants of {what}; synthetic, not measured", soft_wrap=True)
    console.print(f"try: kinegrad inverse-dynamics {plain(model)} --trajectory {plain(file)}{options}", soft_wrap=True)


def _write_measured(path: Path, model: kg.Model, t: Array, q: Array) -> None:
    import numpy as np

    from kinegrad.io.whole_file import replacing

    turning = np.array([kind != "prismatic" for kind in model.layout.coordinate_kinds])
    values = np.where(turning, np.degrees(q), q)
    values += np.random.default_rng(0).normal(scale=np.where(turning, ERROR, 1e-3), size=q.shape)
    lines = [",".join(["time", *(_cell(name) for name in model.coordinate_names)])]
    for k, row in enumerate(values):
        cells = [f"{x:.3f}" for x in row]
        if 80 <= k < 84:
            cells[-1] = ""
        lines.append(",".join([f"{t[k]:.2f}", *cells]))
    try:
        with replacing(path) as file:
            file.write(("\n".join(lines) + "\n").encode())
    except OSError as error:
        raise kg.InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def _cell(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(x in name for x in '",\n') else name
