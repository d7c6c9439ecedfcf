"""Drawings of mechanisms and of results."""

from kinegrad.plot.animation import animate
from kinegrad.plot.graphs import draw_branch_graph, draw_joint_graph
from kinegrad.plot.motions import plot_motion
from kinegrad.plot.sensitivities import plot_comparison, plot_curves, plot_error_maps
from kinegrad.plot.skeleton import draw_skeleton, plot_skeleton
from kinegrad.plot.torques import plot_torques

__all__ = [
    "animate",
    "draw_branch_graph",
    "draw_joint_graph",
    "draw_skeleton",
    "plot_comparison",
    "plot_curves",
    "plot_error_maps",
    "plot_motion",
    "plot_skeleton",
    "plot_torques",
]
