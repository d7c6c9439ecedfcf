"""Drawings of mechanisms and of results: every figure is returned, and none is shown by itself.

trajectory        a motion over time (the same as plot_motion); torques (plot_torques)
sensitivity_map   ∂τ/∂q joint by joint, over time (plot_sensitivity_map); topology (plot_topology)
plot_skeleton, animate, plot_comparison, plot_curves, plot_error_maps; draw_… draw into axes that there are
"""

from kinegrad.plot.animation import animate
from kinegrad.plot.graphs import draw_branch_graph, draw_joint_graph, plot_topology
from kinegrad.plot.motions import plot_motion
from kinegrad.plot.sensitivities import plot_comparison, plot_curves, plot_error_maps
from kinegrad.plot.sensitivity_maps import plot_sensitivity_map
from kinegrad.plot.skeleton import draw_skeleton, plot_skeleton
from kinegrad.plot.torque_curves import plot_torques

__all__ = [
    "animate",
    "draw_branch_graph",
    "draw_joint_graph",
    "draw_skeleton",
    "plot_comparison",
    "plot_curves",
    "plot_error_maps",
    "plot_motion",
    "plot_sensitivity_map",
    "plot_skeleton",
    "plot_topology",
    "plot_torques",
    "sensitivity_map",
    "topology",
    "torques",
    "trajectory",
]

trajectory, torques, sensitivity_map, topology = plot_motion, plot_torques, plot_sensitivity_map, plot_topology
