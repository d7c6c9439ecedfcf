"""A motion as a moving skeleton, in axes that stand still: a GIF, an MP4, or a page of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.constraints import ConstraintSet
from kinegrad.errors import InputError, shown
from kinegrad.io.whole_file import checked_path, replacing
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.plot.colours import branch_colours
from kinegrad.plot.names import drawn_name
from kinegrad.plot.skeleton import INK, Scene, _camera

__all__ = ["animate"]

Array = NDArray[np.float64]
KINDS = (".gif", ".mp4", ".html")
MOST = 2000  # pictures


def animate(
    model: Model,
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    fps: float = 25,
    speed: float = 1.0,
    azimuth: float = 60,
    elevation: float = 15,
    trace: str | None = None,
    constraints: ConstraintSet | None = None,
) -> Path:
    """Write a motion as a moving skeleton.

    Parameters
    ----------
    model : Model
    motion : Motion
        Of one motion of this model: from :func:`simulate`, a file, a spline, or measured.
    path : path
        A .gif; an .html page that plays by itself; or an .mp4, which needs the program ffmpeg.  Written whole or not
        at all.
    fps : float
        Pictures per second.
    speed : float
        How fast time passes: 0.5 is slow motion.
    azimuth, elevation : float
        Where the viewer is, degrees: 0, 0 on the world's x axis; 90, 0 on y; 0, 90 above.
    trace : str, optional
        A link or frame whose path is drawn.
    constraints : ConstraintSet, optional
        Of the model: links are drawn to their points, and loops, rods and contacts are shown.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from kinegrad import samples
    >>> from kinegrad.simulate import simulate
    >>> pendulum = samples.double_pendulum()
    >>> swing = simulate(pendulum, [1.0, 0.5], [0, 0], np.linspace(0, 0.2, 5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     animate(pendulum, swing, f"{folder}/swing.gif", fps=10).read_bytes()[:3]
    b'GIF'
    """
    from matplotlib.animation import FFMpegWriter, FuncAnimation, PillowWriter

    engine.check_model(model)
    target = checked_path(path)
    kind = target.suffix.lower()
    if kind not in KINDS:
        raise InputError(f"`path` is {shown(str(target))}; expected a name that ends in {', '.join(KINDS)}")
    times, q = _postures(model, motion, engine.positive("fps", fps), engine.positive("speed", speed))
    if kind == ".mp4" and not FFMpegWriter.isAvailable():
        raise InputError("an .mp4 needs the program ffmpeg, which is not installed; install it, or write .gif or .html")
    figure, show = _canvas(model, times, q, azimuth, elevation, trace, constraints)
    moving = FuncAnimation(figure, show, frames=len(times), interval=1000 / fps, blit=False)
    with tempfile.TemporaryDirectory(prefix="kinegrad-animation-") as folder:
        whole = Path(folder, f"motion{kind}")
        if kind == ".html":
            player = moving.to_jshtml(fps=round(max(fps, 1)))
            page = f"<!DOCTYPE html><meta charset='utf-8'><title>{model.name}</title>{player}"
            whole.write_text(page, encoding="utf-8")
        else:
            writer: Any = (PillowWriter if kind == ".gif" else FFMpegWriter)(fps=round(max(fps, 1)))
            moving.save(str(whole), writer=writer, dpi=90)
        try:
            with replacing(target) as file:
                file.write(whole.read_bytes())
        except OSError as error:
            raise InputError(f"{target}: cannot be written: {error.strerror or error}") from None
    return target


def _postures(model: Model, motion: Any, fps: float, speed: float) -> tuple[Array, Array]:
    """Times of the pictures, and the coordinates then."""
    if not isinstance(motion, Motion):
        raise InputError(f"`motion` is a {type(motion).__name__}; expected a Motion, such as simulate returns")
    if motion.model.coordinate_names != model.coordinate_names:
        raise InputError(f"`motion` is of model {shown(motion.model.name)}; expected one of {shown(model.name)}")
    if motion.q.ndim != 2 or len(motion.t) < 2:
        found = f"has coordinates of shape {motion.q.shape}"
        raise InputError(f"`motion` {found}; expected one motion of at least two times, ({len(motion.t)}, {model.nq})")
    if not np.isfinite(motion.q).all():
        raise engine.not_finite("motion.q", motion.q)
    count = int(np.ceil((motion.t[-1] - motion.t[0]) / speed * fps)) + 1
    if count > MOST:
        raise InputError(f"`motion` takes {count} pictures; expected at most {MOST}: a lower `fps`, or a part of it")
    times = np.linspace(motion.t[0], motion.t[-1], max(count, 2))
    return times, np.asarray(motion(times).q)


def _canvas(
    model: Model, times: Array, q: Array, azimuth: float, elevation: float, trace: str | None,
    constraints: ConstraintSet | None = None,
) -> Any:  # fmt: skip
    """A figure whose axes hold all pictures, and the function that shows picture k."""
    from matplotlib.figure import Figure

    camera = _camera(azimuth, elevation)[:2]
    scene = Scene(model, q, constraints)
    lines, joints = scene.lines @ camera.T, scene.joints @ camera.T
    path = None
    if trace is not None:
        from kinegrad.kinematics import point_motion

        path = point_motion(model, q, link=trace).position @ camera.T
    seen = [lines, joints, scene.ends @ camera.T, np.zeros((1, 2)), *([] if path is None else [path])]
    corners = np.concatenate([x.reshape(-1, 2) for x in seen])
    low, high = corners.min(axis=0), corners.max(axis=0)
    room = 0.08 * max(float((high - low).max()), 1e-6)
    wide, tall = high - low + 2 * room
    longest = 5.0
    inches = (max(longest * wide / max(wide, tall), 2.0), max(longest * tall / max(wide, tall), 2.0) + 0.4)
    figure = Figure(figsize=inches, layout="constrained")
    ax = figure.add_subplot()
    ax.set_aspect("equal")
    ax.set_xlim(low[0] - room, high[0] + room)
    ax.set_ylim(low[1] - room, high[1] + room)
    ax.set_axis_off()
    title = ax.set_title("", fontsize=10, color=INK, loc="left")
    colours = branch_colours(int(model.topology.branch_of.max()) + 1)
    way = ax.plot([], [], color="0.6", linewidth=1)[0]
    bones = [
        ax.plot([], [], color=colours[model.topology.branch_of[i]], linewidth=4, solid_capstyle="round")[0]
        for i in scene.owners
    ]
    size = float((high - low).max())
    between = [ax.plot(x, y, **style)[0] for x, y, style in scene.connected(0, camera, size)]
    dots = ax.plot([], [], "o", markersize=4, markerfacecolor="white", markeredgecolor=INK)[0]

    def show(k: int) -> list[Any]:
        for bone, ends in zip(bones, lines[k], strict=True):
            bone.set_data(ends[:, 0], ends[:, 1])
        for line, (x, y, _) in zip(between, scene.connected(k, camera, size), strict=True):
            line.set_data(x, y)
        dots.set_data(joints[k, :, 0], joints[k, :, 1])
        if path is not None:
            way.set_data(path[: k + 1, 0], path[: k + 1, 1])
        title.set_text(f"{drawn_name(model.name)}, t = {times[k]:.2f} s")
        return [*bones, *between, dots, way, title]

    return figure, show
