"""Figures of a predicted motion: postures, coordinates, torques by their limits, forces, and how it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.model.units import joint_units
from kinegrad.motion.problem import MotionSolution
from kinegrad.papers.report.animation import Scene
from kinegrad.papers.report.motion_scene import foot_forces
from kinegrad.plot.names import drawn_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_coordinates", "plot_forces", "plot_postures", "plot_progress", "plot_torques"]

Array = NDArray[np.float64]
MOST = 8  # curves in a figure
FAINT = "#9aa7b4"
COLOURS = ("#2f6fab", "#c4553b", "#2a7f62", "#e08e45", "#7a3fa0", "#5d6b78", "#148fa3", "#d1495b")


def plot_postures(scene: Scene, count: int = 6) -> Figure:
    """The model at equal steps of time, as the page shows it first; one that moves in space also from behind."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Polygon

    flat = scene.up == "y" or np.ptp(scene.points[..., 1]) < 1e-9
    views = [("", 0, 1 if scene.up == "y" else 2)] if flat else [("from its right", 1, 2), ("from behind", 0, 2)]
    every = [scene.points.reshape(-1, 3), *(block.corners.reshape(-1, 3) for block in scene.blocks)]
    low, high = np.concatenate(every).min(axis=0), np.concatenate(every).max(axis=0)
    wide = max(high[i] - low[i] for _, i, _ in views)
    tall = max(high[j] - low[j] for _, _, j in views)
    figure = Figure(
        figsize=(11, min(7.5, 1.1 + len(views) * 11 / count * tall / max(wide, 0.3 * tall))), layout="constrained"
    )
    grid = figure.subplots(len(views), count, squeeze=False, sharey="row")
    chosen = np.linspace(0, len(scene.t) - 1, count).round().astype(int)
    for row, (name, i, j) in enumerate(views):
        for ax, k in zip(grid[row], chosen, strict=True):
            if scene.ground is not None:
                ax.axhline(scene.ground, color=FAINT, linewidth=1)
            for block in scene.blocks:
                corners = block.corners[k][:, [i, j]]
                hull = [corners.min(axis=0), corners.max(axis=0)]
                outline = [(hull[a][0], hull[b][1]) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
                ax.add_patch(Polygon(outline, facecolor=block.colour, edgecolor="#5b4316", alpha=0.6))
            for a, b, _, colour, _ in scene.limbs:
                ax.plot(*scene.points[k][[a, b]][:, [i, j]].T, color=colour, linewidth=3.2, solid_capstyle="round")
            for a, radius, colour in scene.balls:
                ax.plot(*scene.points[k, a][[i, j]], "o", color=colour, markersize=110 * radius)
            for arrow in scene.arrows:
                start, end = arrow.start[k], arrow.start[k] + arrow.vector[k]
                ax.plot([start[i], end[i]], [start[j], end[j]], color=arrow.colour, linewidth=1.4)
            ax.set_aspect("equal")
            ax.set_xlim(low[i] - 0.08, high[i] + 0.08)
            ax.set_ylim(min(low[j], scene.ground if scene.ground is not None else np.inf) - 0.05, high[j] + 0.12)
            ax.set_axis_off()
            if row == 0:
                ax.set_title(f"{scene.t[k] - scene.t[0]:.2f} s", fontsize=11)
        if name:
            last = grid[row, -1]
            last.text(1.0, 0.0, name, transform=last.transAxes, fontsize=10, color="#4a5a6a", va="top", ha="right")
    return figure


def plot_coordinates(solution: MotionSolution) -> Figure:
    """The coordinates that move most."""
    model, t = solution.problem.model, np.linspace(0, solution.duration, 241)
    q = solution.motion(t).q
    order = _distinct(q, np.argsort(-np.ptp(q, axis=0), kind="stable"))
    kinds = [model.layout.speed_kinds[k] for k in order[: len(COLOURS)]]  # motion problems have no quaternions
    figure, ax = _axes(f"coordinate, {joint_units('q', kinds)}")
    for k, colour in zip(order, COLOURS, strict=False):
        ax.plot(t, q[:, k], color=colour, linewidth=1.9, label=drawn_name(model.coordinate_names[k]))
    _seams(ax, solution)
    _names(figure)
    return figure


def plot_torques(solution: MotionSolution) -> Figure:
    """The torques that come nearest to their limits, by them; or the largest, where there are none."""
    model, t = solution.problem.model, np.linspace(0, solution.duration, 481)
    tau = solution.motion(t).tau
    assert tau is not None
    limit = _limits(solution)
    bounded = np.isfinite(limit) & (limit > 0)
    relative = bounded.any()
    if relative:
        tau = np.where(bounded, tau / np.where(bounded, limit, 1.0), 0.0)
        tau[:, ~solution.problem.parts.actuators.S.any(axis=1)] = 0.0  # without motors
    figure, ax = _axes("torque by its limit" if relative else "torque, N·m or N")
    if relative:
        for sign in (-1, 1):
            ax.axhline(sign, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
    order = _distinct(tau, np.argsort(-np.abs(tau).max(axis=0), kind="stable"))
    for k, colour in zip(order, COLOURS, strict=False):
        ax.plot(t, tau[:, k], color=colour, linewidth=1.7, label=drawn_name(model.speed_names[k]))
    _seams(ax, solution)
    _names(figure)
    return figure


def plot_forces(solution: MotionSolution) -> Figure | None:
    """Forces under feet, or in a cut joint; None where there are none."""
    forces = solution.motion.forces
    if forces is None:
        return None
    t = np.linspace(0, solution.duration, 241)
    figure, ax = _axes("force, N")
    feet = foot_forces(solution, t)
    if feet:
        for (name, (_, force)), colour in zip(feet.items(), COLOURS, strict=False):
            ax.plot(t, force[:, 2], color=colour, linewidth=2.0, label=f"{drawn_name(name)}, upwards")
            along = force[:, int(np.abs(force[:, :2]).max(axis=0).argmax())]
            label = f"{drawn_name(name)}, along the ground"
            ax.plot(t, along, color=colour, linewidth=1.3, linestyle=(0, (4, 2)), label=label)
    else:
        for k, (name, colour) in enumerate(zip(solution.motion.row_names, COLOURS, strict=False)):
            ax.plot(solution.motion.t, forces[:, k], color=colour, linewidth=1.8, label=drawn_name(name))
    _seams(ax, solution)
    _names(figure)
    return figure


def plot_progress(solution: MotionSolution) -> Figure:
    """What was left of the conditions of an optimum, by iteration."""
    figure, ax = _axes("scaled", "iteration")
    history = solution.nonlinear.history
    k = [each.iteration for each in history]
    for name, values, colour in (
        ("violation", [each.violation for each in history], COLOURS[1]),
        ("optimality", [each.optimality for each in history], COLOURS[0]),
    ):
        ax.semilogy(k, np.maximum(values, 1e-14), color=colour, linewidth=1.8, marker=".", label=name)
    ax.xaxis.get_major_locator().set_params(integer=True)
    _names(figure)
    return figure


def _distinct(x: Array, order: NDArray[np.integer[Any]]) -> list[int]:
    """The first few columns in this order that are not zero, nor ± one before: left and right may be alike."""
    found: list[int] = []
    for k in order.tolist():
        size = np.abs(x[:, k]).max()
        alike = any(min(np.abs(x[:, k] - sign * x[:, j]).max() for sign in (-1, 1)) < 1e-6 * size for j in found)
        if size > 1e-9 and not alike:
            found.append(k)
    return found[:MOST]


def _limits(solution: MotionSolution) -> Array:
    """Largest torques of all speeds, N·m or N: those of the model, and those that were asked for."""
    from kinegrad.motion.problem.term_functions import effort_limits

    parts = solution.problem.parts
    limit = np.full(parts.model.nv, np.inf)
    largest = np.min([np.maximum(*np.abs(effort_limits(parts, p))) for p in range(len(parts.phases))], axis=0)
    for column, most in zip(parts.actuators.S.T, largest, strict=True):
        i = np.flatnonzero(column)
        if len(i) == 1:
            limit[i[0]] = min(limit[i[0]], most * abs(column[i[0]]))
    return limit


def _names(figure: Figure) -> None:
    """What curves are, above them: among many there is no free place; left, where phones begin."""
    figure.legend(loc="outside upper left", frameon=False, fontsize=10, ncols=4)


def _seams(ax: Any, solution: MotionSolution) -> None:
    for time in np.cumsum(solution.durations)[:-1]:
        ax.axvline(time, color=FAINT, linewidth=1.0)


def _axes(ylabel: str, xlabel: str = "t, s") -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 4.2), layout="constrained")
    ax = figure.add_subplot()
    ax.set_xlabel(xlabel, fontsize=12)
    ax.set_ylabel(ylabel, fontsize=12)
    ax.grid(color="#e6eaee", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=11)
    return figure, ax
