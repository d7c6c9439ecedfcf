"""Drawings of mechanisms and of results."""

from kinegrad.view.graphs import draw_branch_graph, draw_joint_graph
from kinegrad.view.sensitivities import plot_comparison, plot_curves, plot_error_maps
from kinegrad.view.skeleton import draw_skeleton, plot_skeleton
from kinegrad.view.torques import plot_torques

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
