"""Models in the browser: to look at, to move, to play; and pages that do so by themselves.

Viewer        a page with the model, sliders, a clock, plots, and colours for what torques feel
export_page   the same model and motion as one file that needs nothing else

They need the package viser: ``pip install 'kinegrad[view]'``.  Figures for papers are in :mod:`kinegrad.plot`.
"""

from kinegrad.view.export import export_page
from kinegrad.view.viewer import Viewer

__all__ = ["Viewer", "export_page"]
