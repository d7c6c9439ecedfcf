"""``kinegrad inverse-dynamics``: torques of a motion, from a file into a file."""

from __future__ import annotations

import contextlib
import re
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import kinegrad as kg
from kinegrad.cli.console import find_model, open_console, plain, print_torques
from kinegrad.cli.info import ModelName
from kinegrad.papers.report.page import duration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kinegrad.io import Trajectory
    from kinegrad.recordings import RecordedMotion

    Array = NDArray[np.float64]

__all__ = ["inverse_dynamics"]

BLOCK = 8192  # states between two steps of the progress bar


class Units(StrEnum):
    """What angles in files are in where their headers do not say."""

    rad = "rad"
    deg = "deg"


class Missing(StrEnum):
    """What becomes of coordinates that a file does not have."""

    refuse = "refuse"
    neutral = "neutral"


class Method(StrEnum):
    """The formulations of inverse dynamics."""

    spatial = "spatial"
    lagrange = "lagrange"


def inverse_dynamics(
    model: ModelName,
    trajectory: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Motion file: .csv, .npz, .nc, .mot or .sto."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for the torques; by default NAME.tau.csv for NAME.csv or NAME.mot."),
    ] = None,
    units: Annotated[
        Units | None, typer.Option(help="Unit of angles if the file does not state it; by default rad.")
    ] = None,
    lowpass: Annotated[
        float | None,
        typer.Option(
            metavar="HZ",
            help="v and a from q after a zero-phase Butterworth low-pass with this cut-off.",
        ),
    ] = None,
    order: Annotated[
        int, typer.Option(metavar="N", help="Order of that filter, forward and backward passes together.")
    ] = 4,
    smooth: Annotated[
        bool, typer.Option("--smooth", help="Compute v and a from q by smoothing splines (cross-validated).")
    ] = False,
    missing: Annotated[
        Missing, typer.Option(help="Coordinates without a column: an error, or their neutral value at all times.")
    ] = Missing.refuse,
    rate: Annotated[
        float | None, typer.Option(metavar="HZ", help="Samples per second, if the file has no times.")
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LINK=MASS",
            help="A mass that a link carries: right_hand=2kg, or at a point: right_hand=2kg@0,0,0.05. Repeatable.",
        ),
    ] = None,
    method: Annotated[
        Method, typer.Option(help="Newton–Euler (fastest) or the Lagrangian of zhakatayev2023.")
    ] = Method.spatial,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Number of threads; by default one for each processor.")
    ] = None,
) -> None:
    """Compute the torques of a motion, from a file into a file.

    A CSV file has a header with the columns t or time, q.JOINT (or JOINT) and, if they are known, v.JOINT and a.JOINT
    for every joint, separated by commas, semicolons or tabs. An NPZ file has arrays q, v and a of shape (instants,
    joints), and optionally t and joint_names. A NetCDF file has variables q, v and a over the dimensions time and
    joint, with the joints' names as coordinate.

    If a file has q only, v and a are the derivatives of a spline through it. For measured data give --lowpass or
    --smooth, which remove measurement errors first.
    """
    from kinegrad import io
    from kinegrad.io.trajectory import STORAGE
    from kinegrad.io.whole_file import check_kept
    from kinegrad.recordings import read_motion

    mechanism, console = find_model(model), open_console()
    for text in load or ():
        mechanism = with_load(mechanism, text)
    stored = trajectory.suffix.lower() in STORAGE  # of OpenSim: positions alone
    if not stored:
        io.file_format(trajectory)
    suffix = ".csv" if stored else trajectory.suffix
    target = output or trajectory.with_name(f"{trajectory.stem}.tau{suffix}")
    io.file_format(target)
    check_kept([target], [Path(model), trajectory])
    unit = None if units is None else units.value
    motion: Trajectory | RecordedMotion | None = None
    if lowpass is None and not smooth and rate is None and missing is Missing.refuse and not stored:
        with contextlib.suppress(io.PositionsAloneError):
            motion = io.read_trajectory(trajectory, mechanism, units=unit)
    if motion is None:
        motion = read_motion(
            trajectory, mechanism, lowpass=lowpass, order=order, smoothing="gcv" if smooth else None, units=unit,
            missing=missing.value, rate=rate,
        )  # fmt: skip
        for line in motion.made:
            console.print(plain(line), soft_wrap=True)
    start = time.perf_counter()
    tau = _torques(mechanism, motion.q, motion.v, motion.a, method.value, threads)
    seconds = time.perf_counter() - start
    io.write_torques(target, mechanism, motion.t, tau)
    print_torques(console, mechanism, motion.t, tau)
    console.print(f"{len(tau)} instants in {duration(seconds)}, method {method.value}")
    console.print(f"torques: {plain(target)}", soft_wrap=True)


def with_load(model: kg.Model, text: str) -> kg.Model:
    """The model with a mass attached: ``right_hand=2kg``, ``right_hand=2kg@0,0,0.05``."""
    match = re.fullmatch(r"(.+)=([^=@]+?)\s*(kg|g)?(?:@(.+))?", text.strip())
    wrong = kg.InputError(
        f"`--load` is {text!r}; expected LINK=MASS, such as right_hand=2kg or right_hand=2kg@0,0,0.05"
    )
    if match is None:
        raise wrong
    link, mass, unit, point = match.groups()
    try:
        kilograms = float(mass) * (1e-3 if unit == "g" else 1.0)
        place = None if point is None else [float(x) for x in point.split(",")]
    except ValueError:
        raise wrong from None
    if place is not None and len(place) != 3:
        raise wrong
    return model.attach(link, kilograms, point=place)


def _torques(model: kg.Model, q: Array, v: Array, a: Array, method: str, threads: int | None) -> Array:
    """Inverse dynamics in blocks, with a progress bar from the first second on."""
    import numpy as np
    from rich.progress import Progress

    tau = np.empty_like(v)
    start, shown = time.perf_counter(), False
    progress = Progress(console=open_console(stderr=True), transient=True)
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
