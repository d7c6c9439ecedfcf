"""``kinegrad inverse-dynamics``: torques of a motion, from a file into a file."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import kinegrad as kg
from kinegrad.cli.console import find_sample, open_console, plain, print_torques
from kinegrad.cli.info import ModelName
from kinegrad.papers.report.page import duration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["inverse_dynamics"]

BLOCK = 8192  # states between two steps of the progress bar


class Method(StrEnum):
    """The formulations of inverse dynamics."""

    spatial = "spatial"
    lagrange = "lagrange"


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

    mechanism, console = find_sample(model), open_console()
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
    print_torques(console, mechanism, motion.t, tau)
    console.print(f"{len(tau)} instants in {duration(seconds)}, method {method.value}")
    console.print(f"torques: {plain(target)}", soft_wrap=True)


def _torques(model: kg.Model, q: Array, v: Array, a: Array, method: str, threads: int | None) -> Array:
    """Inverse dynamics in blocks, with a progress bar from the first second on."""
    import numpy as np
    from rich.progress import Progress

    tau = np.empty_like(q)
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
