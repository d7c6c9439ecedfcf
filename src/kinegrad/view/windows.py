"""Narrow windows: the camera steps back until the model fits, and the panel of a phone begins closed.

A field of view is an angle of the height of a window, so that what fits into a wide one is cut off at both sides of a
phone.  Only the page knows its window, and exported pages have no server to ask: it is a script in the page, as names
on hover are.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_to_windows", "needed_distance", "run_in_page"]

Array = NDArray[np.float64]


def needed_distance(corners: Array, tangent: float, aspect: float = 1.0) -> float:
    """How far a camera must be from the origin for all corners to be in sight.

    Parameters
    ----------
    corners : array, shape (k, 3)
        In the camera's axes: to the right, upwards, and towards it.
    tangent : float
        Of half the field of view, of a window's height.
    aspect : float
        Width of the window by its height.

    Examples
    --------
    >>> cube = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    >>> needed_distance(cube, 1.0), needed_distance(cube, 1.0, aspect=0.5)
    (2.0, 3.0)
    """
    across = np.abs(corners[:, :2]) / np.array([min(aspect, 1.0), 1.0])
    return float((corners[:, 2] + across.max(axis=1) / tangent).max())


def run_in_page(server: Any, script: str) -> None:
    """Send a script to all who visit the page, now or later, and to recordings."""
    kind = getattr(importlib.import_module("viser._messages"), "RunJavascriptMessage", None)
    if kind is not None:  # a private name of viser: should it go, the page is there without what the script adds
        server.gui._websock_interface.queue_message(kind(script))


def fit_to_windows(server: Any, corners: Array, tangent: float, room: float) -> None:
    """Let pages in narrow windows begin at :func:`needed_distance`, times `room`, and with a closed panel."""
    distances = {aspect: room * needed_distance(corners, tangent, aspect) for aspect in (1.0, *NARROW)}
    run_in_page(server, f"const far={json.dumps(list(distances.items()))};{SCRIPT}")


NARROW = tuple(round(0.95 - 0.05 * k, 2) for k in range(15))  # widths by heights, down to a quarter

SCRIPT = r"""
if (window.kinegradFitted) return;  // a recording that begins again, and whoever turned the model, keep their view
window.kinegradFitted = true;
let tries = 0;
function fit() {
  const viewer = window.__viserMutable, control = viewer && viewer.cameraControl, canvas = viewer && viewer.canvas;
  const ready = control && canvas && Math.abs(control.distance / far[0][1] - 1) < .02;  // it is where it begins
  if (!ready) { if (tries++ < 600) setTimeout(fit, 50); return; }
  const box = canvas.getBoundingClientRect(), aspect = box.width / box.height;
  if (aspect < 1) control.dollyTo((far.find(x => x[0] <= aspect) || far[far.length - 1])[1], false);
}
function close() {  // the sheet over the lower half of a phone: its first line opens it
  const sheet = [...document.querySelectorAll('.mantine-Paper-root')].find(x => x.style.position === 'fixed' &&
    x.style.bottom === '0px' && x.style.maxHeight === '60%');
  const line = sheet && [...sheet.querySelectorAll('div')].find(x => x.style.cursor === 'pointer');
  line ? line.click() : tries < 200 && setTimeout(close, 100);
}
fit();
if (window.innerWidth < 576 && !window.__VISER_EMBED_DATA__) close();
"""
