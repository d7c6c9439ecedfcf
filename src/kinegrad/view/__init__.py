"""Drawings of mechanisms and of results."""

from kinegrad.view.graphs import draw_branch_graph, draw_joint_graph

__all__ = ["draw_branch_graph", "draw_joint_graph"]
