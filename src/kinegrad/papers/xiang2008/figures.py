"""The figures of :mod:`kinegrad.papers.xiang2008`: 7 to 14 of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model
from kinegrad.papers.xiang2008.cost import Cost, growth

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "plot_angles",
    "plot_convergence",
    "plot_costs",
    "plot_history",
    "plot_sensitivities",
    "plot_torques",
    "plot_trajectory",
]

Array = NDArray[np.float64]
INK, FAINT = "#1b2733", "#9aa7b4"
COLOURS = ("#2f6fab", "#c4553b")
STYLES = ("-", (0, (6, 2)), (0, (2, 2)), (0, (1, 1)))


def plot_angles(t: Array, q: Array) -> Figure:
    """Figures 7 and 11: joint angles over time."""
    figure, ax = _axes("joint angle, rad")
    for k, colour in enumerate(COLOURS):
        ax.plot(t, q[:, k], color=colour, linewidth=2.2, label=f"$q_{k + 1}$")
        for end in (0, -1):
            ax.plot(t[end], q[end, k], marker="o", color=colour, markersize=6)
    ax.legend(frameon=False, fontsize=12)
    return figure


def plot_torques(t: Array, tau: Array, nodes: Array, limit: float) -> Figure:
    """Figures 8 and 12: joint torques over time, the instants at which they are limited, and the limits."""
    figure, ax = _axes("joint torque, N·m")
    for sign in (-1, 1):
        ax.axhline(sign * limit, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
    for k, colour in enumerate(COLOURS):
        ax.plot(t, tau[:, k], color=colour, linewidth=1.8, label=rf"$\tau_{k + 1}$")
        ax.plot(nodes, np.interp(nodes, t, tau[:, k]), ".", color=colour, markersize=5)
    ax.legend(frameon=False, fontsize=12, ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return figure


def plot_trajectory(model: Model, q: Array, postures: int = 13) -> Figure:
    """Figures 9 and 13: the arm at equal steps of time, and the way of its tip."""
    from matplotlib.figure import Figure

    poses = forward_kinematics(model, q).transform
    places = np.concatenate([np.zeros((len(q), 1, 3)), poses[:, :, :3, 3]], axis=1)
    chosen = np.linspace(0, len(q) - 1, postures).round().astype(int)
    wide, high = np.ptp(np.append(places[:, :, :2].reshape(-1, 2), [[0.0, 0.0]], axis=0), axis=0)
    figure = Figure(figsize=(6.4, 0.7 + 5.7 * float(np.clip(high / wide, 0.3, 1.0))), layout="constrained")
    ax = figure.add_subplot()
    for rank, k in enumerate(chosen):
        shade = min(1.0, 0.2 + 0.8 * rank / (postures - 1))
        for link, colour in enumerate(COLOURS):
            x, y = places[k, link : link + 2, :2].T
            ax.plot(x, y, color=colour, alpha=shade, linewidth=3.5, solid_capstyle="round")
    ax.plot(*places[:, -1, :2].T, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
    for k, name in ((0, "start"), (-1, "end")):
        x, y = places[k, -1, :2]
        ax.annotate(name, (x, y), xytext=(8, 6), textcoords="offset points", fontsize=11, color=INK)
    ax.plot(0, 0, marker="s", color=INK, markersize=8)
    ax.set_aspect("equal")
    ax.set_xlabel("x, m", fontsize=12)
    ax.set_ylabel("y, m", fontsize=12)
    _tidy(ax)
    return figure


def plot_costs(rows: Sequence[Cost]) -> Figure:
    """Time of one state by degrees of freedom, on logarithmic axes, for each formulation."""
    figure, ax = _axes("time of one state, µs", "degrees of freedom $n$")
    for name, style in zip(dict.fromkeys(row.formulation for row in rows), STYLES, strict=False):
        own = [(row.n, 1e6 * row.seconds) for row in rows if row.formulation == name]
        label = f"{name}: $n^{{{growth(rows, name):.1f}}}$"
        ax.loglog(*zip(*own, strict=True), linestyle=style, color=INK, linewidth=1.8, marker="o", label=label)
    sizes = sorted({row.n for row in rows})
    ax.set_xticks(sizes, [f"{n}" for n in sizes])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=12)
    return figure


def plot_history(histories: Mapping[str, Sequence[float]], best: float) -> Figure:
    """Figure 10: the cost function over iterations, for each way to take second derivatives."""
    figure, ax = _axes("total travel time $T$, s", "iteration")
    for (name, values), style in zip(histories.items(), STYLES, strict=False):
        ax.plot(range(len(values)), values, linestyle=style, color=INK, linewidth=1.8, marker=".", label=name)
    ax.axhline(best, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
    ax.legend(frameon=False, fontsize=11)
    return figure


def plot_convergence(curves: Mapping[str, Sequence[float]]) -> Figure:
    """How far iterates are from the last one, over iterations."""
    figure, ax = _axes(r"$\|x_k - x^*\|_2$, scaled", "iteration")
    for (name, values), style in zip(curves.items(), STYLES, strict=False):
        before = np.maximum(values[:-1], 1e-12)  # the last one is at no distance from itself
        ax.semilogy(range(len(before)), before, linestyle=style, linewidth=1.8, label=name)
    ax.set_xscale("symlog", linthresh=10)
    ax.legend(frameon=False, fontsize=11)
    return figure


def plot_sensitivities(t: Array, recursive: Sequence[Array], closed: Sequence[Array]) -> Figure:
    """Figure 14: ∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ at the optimum, by recursion and in closed form."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8.2), layout="constrained")
    grid = figure.subplots(3, 2, sharex=True)
    units = ("N·m/rad", "N·m·s/rad", "N·m·s²/rad")
    for row, (ours, theirs, letter) in enumerate(zip(recursive, closed, ("", r"\dot", r"\ddot"), strict=True)):
        grid[row, 0].set_ylabel(units[row], fontsize=12)
        for i in range(2):
            ax = grid[row, i]
            for j, colour in enumerate(COLOURS):
                name = rf"$\partial\tau_{i + 1}/\partial{letter} q_{j + 1}$"
                ax.plot(t, ours[:, i, j], color=colour, linewidth=2.2, label=name)
                ax.plot(t[::8], theirs[::8, i, j], "o", color=INK, markersize=4, fillstyle="none")
            ax.legend(frameon=False, fontsize=10, loc="best")
            _tidy(ax)
    for ax in grid[-1]:
        ax.set_xlabel("t, s", fontsize=12)
    return figure


def _axes(ylabel: str, xlabel: str = "t, s") -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.4), layout="constrained")
    ax = figure.add_subplot()
    ax.set_xlabel(xlabel, fontsize=12)
    ax.set_ylabel(ylabel, fontsize=12)
    _tidy(ax)
    return figure, ax


def _tidy(ax: Any) -> None:
    ax.grid(color="#e6eaee", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=11)
