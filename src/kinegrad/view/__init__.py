"""The place of the browser viewer to come; until then, what :mod:`kinegrad.plot` draws can be reached here as well.

>>> from kinegrad import plot, view
>>> view.draw_skeleton is plot.draw_skeleton
True
"""

from kinegrad.plot import (
    draw_branch_graph,
    draw_joint_graph,
    draw_skeleton,
    plot_comparison,
    plot_curves,
    plot_error_maps,
    plot_skeleton,
    plot_torques,
)

__all__ = [
    "draw_branch_graph",
    "draw_joint_graph",
    "draw_skeleton",
    "plot_comparison",
    "plot_curves",
    "plot_error_maps",
    "plot_skeleton",
    "plot_torques",
]
