"""A page that plays a motion by itself: one file, no server, no request to anywhere.

The scene is made in a server of viser that nobody visits, and every picture is recorded with its time; viser writes the
recording and its own page into one file.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from kinegrad.constraints import ConstraintSet
from kinegrad.errors import InputError, shown
from kinegrad.io.whole_file import checked_path, replacing
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.view.viewer import Viewer

__all__ = ["export_page"]

PICTURES = 30.0  # per second
LIGHT = "__VISER_EMBED_CONFIG__={darkMode:false}"


def export_page(
    model: Model,
    motion: Motion | None,
    path: str | os.PathLike[str],
    *,
    q: ArrayLike | None = None,
    loads: Loads | None = None,
    constraints: ConstraintSet | None = None,
    dark: bool | None = None,
    speed: float = 1.0,
) -> Path:
    """Write a self-contained page in which the model can be turned around, and its motion plays.

    Parameters
    ----------
    model : Model
    motion : Motion or None
        To be played, thirty pictures per second; None for a model that stands still.
    path : str or path
        A file that ends in .html; it is written whole or not at all.
    q, loads, constraints
        As for :class:`Viewer`.
    dark : bool, optional
        Light on dark; if not given, as the reader's system has it.
    speed : float
        How fast time passes in the page: 0.5 is slow motion.

    Returns
    -------
    Path
        Where the page is.

    Examples
    --------
    >>> import tempfile
    >>> from kinegrad import samples
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = export_page(samples.two_link(), None, f"{folder}/arm.html")
    ...     page.read_text(encoding="utf-8").lstrip()[:9].lower()
    '<!doctype'
    """
    target = checked_path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"`path` is {shown(str(target))}; expected a name that ends in .html")
    if not (np.ndim(speed) == 0 and np.isfinite(speed) and speed > 0):
        raise InputError(f"`speed` is {shown(speed)}; expected a positive number")
    with Viewer(model, motion, q=q, loads=loads, constraints=constraints) as viewer:
        viewer.scene.darken(None if dark is None else bool(dark))
        recording = viewer.server.get_scene_serializer()
        if motion is not None:
            pictures = max(2, int(np.ceil(viewer.shown.duration / speed * PICTURES)) + 1)
            times = np.linspace(motion.t[0], motion.t[-1], pictures)
            for t in times:
                viewer.set_time(t)
                recording.insert_sleep(viewer.shown.duration / speed / (pictures - 1))
        html = recording.as_html(dark_mode=bool(dark))
    if dark is None:
        html = html.replace(LIGHT, LIGHT.replace("false", "matchMedia('(prefers-color-scheme: dark)').matches"), 1)
    title = f"<title>{_plain(model.name)}</title>"
    html = html.replace("<title>Viser</title>", title, 1)
    try:
        with replacing(target) as file:
            file.write(html.encode("utf-8"))
    except OSError as error:
        raise InputError(f"{target}: the page cannot be written: {error.strerror or error}") from error
    return target


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
