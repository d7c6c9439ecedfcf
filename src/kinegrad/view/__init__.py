"""Models in the browser: to look at, to move, to play; and pages that do so by themselves.

Viewer        a page with the model, sliders, a clock, plots, and colours for what torques feel
export_page   the same model and motion as one file that needs nothing else
picture       a shaded picture for a paper; save_picture, as a file; film, a GIF or MP4 of a motion

The first two need the package viser: ``pip install 'kinegrad[view]'``.  Other figures are in :mod:`kinegrad.plot`.
"""

from kinegrad.view.export import export_page
from kinegrad.view.picture import film, picture, save_picture
from kinegrad.view.viewer import Viewer

__all__ = ["Viewer", "export_page", "film", "picture", "save_picture"]
