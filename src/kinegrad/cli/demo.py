"""``kinegrad demo``: torques of the human over a motion of three seconds, timed, with a figure."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import kinegrad as kg
from kinegrad.cli.console import open_console, plain, print_torques
from kinegrad.papers.report.page import duration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["demo"]

JOINTS = {
    "right leg": ["right_hip.x", "right_knee", "right_ankle.x"],
    "spine and neck": ["lumbar", "neck.x", "neck.y"],
    "right arm": ["right_clavicle.z", "right_shoulder.x", "right_elbow.x", "right_wrist.x"],
}


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the figure.")] = Path("out"),
) -> None:
    """Compute the torques of the 43-joint human of zhakatayev2023 over its 3 s motion, timed, with a figure."""
    import numpy as np

    from kinegrad.io.whole_file import replacing
    from kinegrad.plot.torque_curves import plot_torques

    human, console = kg.samples.human43(), open_console()
    console.print(repr(human), markup=False)
    t = np.linspace(0, 3, 301)
    w = 2 * np.pi
    motion = (np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t))
    q, v, a = (np.repeat(x[:, None], human.n, axis=1) for x in motion)
    tau = kg.inverse_dynamics(human, q, v, a)  # loads the kernel
    seconds = min(_timed(human, q, v, a) for _ in range(20))
    print_torques(console, human, t, tau)
    console.print(
        f"{len(t)} instants, every q = sin(2πt): {duration(seconds)} (best of 20), "
        f"{duration(seconds / len(t))} per instant; up to {kg.get_threads()} threads"
    )
    figure = plot_torques(human, t, tau, JOINTS, title="human43: joint torques while every q = sin(2πt)")
    path = out / "human43_torques.png"
    try:
        out.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            figure.savefig(file, dpi=150, format="png")
    except OSError as error:
        raise kg.InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    console.print(f"figure: {plain(path)}", soft_wrap=True)


def _timed(model: kg.Model, q: Array, v: Array, a: Array) -> float:
    start = time.perf_counter()
    kg.inverse_dynamics(model, q, v, a)
    return time.perf_counter() - start
