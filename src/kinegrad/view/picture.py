"""Pictures and films of a model for papers: its surfaces, shaded, without a browser.

Triangles are projected in parallel and drawn from the farthest to the nearest (the painter's algorithm); those whose
outside is turned away are left out, and each has one shade, from the angle between its outside and the light.  Large
triangles are halved first, so that parts that meet hide each other as they should.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.constraints import ConstraintSet
from kinegrad.errors import InputError, shown
from kinegrad.io.whole_file import checked_path, replacing
from kinegrad.kinematics import forward_kinematics
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.view.parts import Part, body_parts, reach
from kinegrad.view.scene import LONGEST, up_direction
from kinegrad.view.shown import Shown
from kinegrad.view.surfaces import refined

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["film", "picture", "save_picture"]

Array = NDArray[np.float64]
AMBIENT = 0.55  # of the light comes from everywhere
PICTURES = 25  # per second
FINEST = 0.03  # longest edges of triangles, of the reach of the model
NO_FFMPEG = (
    "an .mp4 film needs the program ffmpeg, which is not installed: apt install ffmpeg (Debian, Ubuntu), dnf install "
    "ffmpeg-free (Fedora), brew install ffmpeg (macOS), winget install ffmpeg (Windows); or write a .gif"
)


def picture(
    model: Model,
    q: ArrayLike | None = None,
    *,
    loads: Loads | None = None,
    constraints: ConstraintSet | None = None,
    azimuth: float = -35.0,
    elevation: float = 15.0,
    dark: bool = False,
) -> Figure:
    """A shaded picture of a model in one posture.

    Parameters
    ----------
    model : Model
    q : array_like, shape (nq,), optional
        Posture; neutral if not given.
    loads : Loads, optional
        Forces, drawn as arrows.
    constraints : ConstraintSet, optional
        Of the model: links are drawn to their points, and rods are shown.
    azimuth, elevation : float
        Where the viewer is, degrees: about the vertical, and above the ground.
    dark : bool
        Light on dark.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot: save it with ``figure.savefig``.

    Examples
    --------
    >>> from kinegrad import samples
    >>> figure = picture(samples.puma560())
    >>> len(figure.axes)
    1
    """
    scene = Shown(model, q=q, loads=loads, constraints=constraints)
    painter = _Painter(scene, azimuth, elevation, dark)
    figure, ax = painter.canvas(scene.q[None])
    painter.draw(ax, scene.q, None)
    return figure


def save_picture(
    model: Model,
    path: str | os.PathLike[str],
    q: ArrayLike | None = None,
    *,
    loads: Loads | None = None,
    constraints: ConstraintSet | None = None,
    azimuth: float = -35.0,
    elevation: float = 15.0,
    dark: bool = False,
    dpi: float = 150,
) -> Path:
    """Write :func:`picture` to a .png, .pdf or .svg file, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from kinegrad import samples
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_picture(samples.two_link(), f"{folder}/arm.png").read_bytes()[1:4]
    b'PNG'
    """
    target = checked_path(path)
    kind = target.suffix.lower()
    if kind not in (".png", ".pdf", ".svg"):
        raise InputError(f"`path` is {shown(str(target))}; expected a name that ends in .png, .pdf or .svg")
    camera = {"azimuth": azimuth, "elevation": elevation}
    figure = picture(model, q, loads=loads, constraints=constraints, dark=dark, **camera)
    try:
        with replacing(target) as file:
            figure.savefig(file, format=kind[1:], dpi=dpi)
    except OSError as error:
        raise InputError(f"{target}: the picture cannot be written: {error.strerror or error}") from error
    return target


def film(
    model: Model,
    motion: Motion,
    path: str | os.PathLike[str],
    *,
    loads: Loads | None = None,
    constraints: ConstraintSet | None = None,
    azimuth: float = -35.0,
    elevation: float = 15.0,
    dark: bool = False,
    speed: float = 1.0,
) -> Path:
    """Write a film of a motion: .gif, or .mp4 where the program ffmpeg is installed.

    Parameters
    ----------
    model : Model
    motion : Motion
    path : str or path
        Ends in .gif or .mp4; the file is written whole or not at all.
    loads, constraints
        As for :class:`Viewer`.
    azimuth, elevation, dark
        As for :func:`picture`.
    speed : float
        How fast time passes: 0.5 is slow motion.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile, kinegrad as kg
    >>> arm, t = kg.samples.two_link(), np.linspace(0, 0.2, 5)
    >>> motion = kg.Motion(arm, t, *(np.outer(x, [1, 2]) for x in (t, np.ones(5), np.zeros(5))))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     film(arm, motion, f"{folder}/arm.gif").read_bytes()[:3]
    b'GIF'
    """
    import tempfile

    from matplotlib.animation import FFMpegWriter, PillowWriter

    target, scene = checked_path(path), Shown(model, motion, loads=loads, constraints=constraints)
    kind = target.suffix.lower()
    if kind not in (".gif", ".mp4"):
        raise InputError(f"`path` is {shown(str(target))}; expected a name that ends in .gif or .mp4")
    if not (np.ndim(speed) == 0 and np.isfinite(speed) and speed > 0):
        raise InputError(f"`speed` is {shown(speed)}; expected a positive number")
    if kind == ".mp4" and not FFMpegWriter.isAvailable():
        raise InputError(NO_FFMPEG)
    painter = _Painter(scene, azimuth, elevation, dark)
    figure, ax = painter.canvas(scene.postures())
    times = np.linspace(motion.t[0], motion.t[-1], max(2, int(np.ceil(scene.duration / speed * PICTURES)) + 1))
    writer: Any = (PillowWriter if kind == ".gif" else FFMpegWriter)(fps=PICTURES)
    with tempfile.TemporaryDirectory(prefix="kinegrad-film-") as folder:
        whole = Path(folder, f"film{kind}")
        with writer.saving(figure, str(whole), dpi=100):
            for t in times:
                painter.draw(ax, scene.state(float(t))[0], float(t))
                writer.grab_frame()
        try:
            with replacing(target) as file:
                file.write(whole.read_bytes())
        except OSError as error:
            raise InputError(f"{target}: the film cannot be written: {error.strerror or error}") from error
    return target


class _Painter:
    """Draws postures of one model from one direction."""

    def __init__(self, scene: Shown, azimuth: float, elevation: float, dark: bool) -> None:
        for name, angle in (("azimuth", azimuth), ("elevation", elevation)):
            if not (np.ndim(angle) == 0 and np.isfinite(angle)):
                raise InputError(f"`{name}` is {shown(angle)}; expected a finite number, degrees")
        self.scene, self.model = scene, scene.model
        self.size = reach(scene.model)
        self.parts: tuple[Part, ...] = tuple(
            part._replace(surface=refined(part.surface, FINEST * self.size))
            for part in body_parts(scene.model, scene.attached)
        )  # of small triangles, whose middles say well enough which is before which
        self.camera = _camera(up_direction(scene.model), np.radians(azimuth), np.radians(elevation))
        self.light = self.camera.T @ (np.array([-0.4, 0.6, 0.7]) / np.linalg.norm([-0.4, 0.6, 0.7]))
        self.back, self.ink = ("#14181d", "#e8ecf0") if dark else ("#ffffff", "#1b2733")
        self.wire = "#9aa5b1" if dark else "#5d6b78"
        largest = scene.largest_force()
        self.newtons = LONGEST * self.size / largest if largest > 0 else 0.0

    def canvas(self, postures: Array) -> tuple[Figure, Axes]:
        """A figure whose axes hold all these postures."""
        from matplotlib.figure import Figure

        shapes = [self._projected(q)[0].reshape(-1, 3) for q in postures]
        wires = [wire @ self.camera.T for q in postures for wire in self.scene.wires(q)]
        drawn = np.concatenate([*shapes, *wires])[:, :2]
        corners = drawn if len(drawn) else np.zeros((1, 2))  # nothing to see of links that are points without mass
        low, high = corners.min(0), corners.max(0)
        spare = 0.06 * float((high - low).max()) or 0.5
        low, high = low - spare, high + spare
        width, height = high - low
        figure = Figure(figsize=(6.4 * min(1, width / height) + 0.01, 6.4 * min(1, height / width) + 0.01))
        figure.set_facecolor(self.back)
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
        ax.set_axis_off()
        return figure, ax

    def draw(self, ax: Axes, q: Array, t: float | None) -> None:
        """One posture in place of what was drawn."""
        from matplotlib.collections import PolyCollection

        for artist in [*ax.collections, *ax.texts, *ax.patches, *ax.lines]:
            artist.remove()
        triangles, colors = self._projected(q)
        order = np.argsort(triangles[..., 2].mean(axis=1))
        faces = PolyCollection(
            list(triangles[order, :, :2]), facecolors=colors[order], edgecolors=colors[order], lw=0.8
        )
        ax.add_collection(faces)
        for wire in self.scene.wires(q):  # before all surfaces, or springs inside a body would be lost
            x, y = (wire @ self.camera.T).T[:2]
            ax.plot(x, y, color=self.wire, linewidth=1.6, solid_joinstyle="round")
        for point, force in self.scene.arrows(q, t):
            start, along = self.camera @ point, self.newtons * (self.camera @ force)
            ax.annotate("", (start + along)[:2], start[:2], annotation_clip=False,
                        arrowprops={"arrowstyle": "-|>", "color": "#c81e1e", "linewidth": 2})  # fmt: skip
        if t is not None:
            ax.text(0.02, 0.02, f"{t:.2f} s", transform=ax.transAxes, color=self.ink, fontsize=12)

    def _projected(self, q: Array) -> tuple[Array, Array]:
        """Triangles in the camera's axes, (f, 3, 3), nearest last in z, and their colours, (f, 4)."""
        transforms = forward_kinematics(self.model, q).transform
        triangles, colors = [np.zeros((0, 3, 3))], [np.zeros((0, 4))]
        for part in self.parts:
            surface = part.surface if part.link < 0 else part.surface.moved(transforms[part.link])
            corners = surface.vertices[surface.faces]
            normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            length = np.linalg.norm(normal, axis=1, keepdims=True)
            normal = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0)
            seen = (normal @ self.camera[2] > 0) & (length[:, 0] > 0)
            shade = AMBIENT + (1 - AMBIENT) * np.clip(normal[seen] @ self.light, 0, 1)
            color = np.tile(part.color, (int(seen.sum()), 1))
            color[:, :3] *= shade[:, None]
            triangles.append(corners[seen] @ self.camera.T)
            colors.append(color)
        return np.concatenate(triangles), np.concatenate(colors)


def _camera(up: Array, azimuth: float, elevation: float) -> Array:
    """Rows: to the right in the picture, upwards in it, and out of it towards the viewer."""
    first = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
    first /= np.linalg.norm(first)
    level = np.cos(azimuth) * first + np.sin(azimuth) * np.cross(up, first)
    towards = np.cos(elevation) * level + np.sin(elevation) * up
    right = np.cross(up, level)
    return np.stack([right, np.cross(towards, right), towards])
