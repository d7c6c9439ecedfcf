"""The figures of :mod:`kinegrad.papers.kudruss2019`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinegrad.papers.kudruss2019.accuracy import Accuracy, StepError
from kinegrad.papers.kudruss2019.effort import BOUNDS, Effort
from kinegrad.papers.kudruss2019.lifting import METHODS, Convergence
from kinegrad.papers.kudruss2019.systems import CARTS, MODES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_convergence", "plot_efforts", "plot_errors", "plot_steps"]

INK, FAINT = "#1b2733", "#9aa7b4"
COLOURS = {"forward": "#d1495b", "central": "#e08e45", "tangent": "#2a7f62", "structured": "#2f6fab"}
MARKERS = {"forward": "o", "central": "s", "tangent": "^", "structured": "D"}
PAPER = {"forward": 5e-6, "central": 1e-8, "tangent": 1e-14}  # what the text says; the last for both exact modes


def plot_errors(rows: Sequence[Accuracy]) -> Figure:
    """Figure 1: the errors of all modes, by algorithm, for both carts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.6), layout="constrained")
    counts = [len({row.algorithm for row in rows if row.cart == cart}) for cart in CARTS]
    axes = figure.subplots(1, 2, sharey=True, width_ratios=counts)
    for ax, cart in zip(axes, CARTS, strict=True):
        names = list(dict.fromkeys(row.algorithm for row in rows if row.cart == cart))
        for row in (row for row in rows if row.cart == cart):
            x = names.index(row.algorithm) + 0.19 * (list(MODES).index(row.mode) - 1.5)
            low, first, middle, third, high = row.quantiles
            colour = COLOURS[row.mode]
            ax.plot([x, x], [low, high], color=colour, linewidth=1.4, solid_capstyle="butt")
            ax.plot([x, x], [first, third], color=colour, linewidth=8, solid_capstyle="butt")
            ax.plot(x, middle, marker="_", markersize=9, markeredgewidth=1.6, color="white", zorder=3)
        for mode, value in PAPER.items():
            ax.axhline(value, color=COLOURS[mode], linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
        ax.set_yscale("log")
        ax.set_xticks(range(len(names)), names)
        ax.set_title(cart, loc="left", fontweight="bold", fontsize=12, color=INK)
        _tidy(ax)
        ax.grid(visible=False, axis="x")
    axes[0].set_ylabel("error of a state: its worst entry and direction", fontsize=12)
    handles = [_line(COLOURS[mode], linewidth=8) for mode in MODES] + [_line(FAINT, linestyle=(0, (4, 3)))]
    labels = [f"{name}, {mode}" for mode, name in MODES.items()] + ["the paper’s text, at worst"]
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=11)
    return figure


def plot_efforts(rows: Sequence[Effort]) -> Figure:
    """Figure 2: effort by number of directions, one panel for each task."""
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(row.task for row in rows))
    figure = Figure(figsize=(11, 7.2), layout="constrained")
    grid = figure.subplots(2, -(-len(tasks) // 2), sharex=True, squeeze=False)
    k = np.array(sorted({row.directions for row in rows}), dtype=float)
    for ax, task in zip(grid.flat, tasks, strict=False):
        for mode in ("forward", "central", "tangent"):
            ax.plot(k, BOUNDS[mode](k), color=COLOURS[mode], linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)  # type: ignore[arg-type]
        for mode in MODES:
            some = [row for row in rows if (row.task, row.mode) == (task, mode)]
            ax.plot(
                [row.directions for row in some], [row.effort for row in some], color=COLOURS[mode],
                marker=MARKERS[mode], markersize=4.5, linewidth=1.8, zorder=3 if mode == "structured" else 2,
            )  # fmt: skip
            alone = [(row.directions, row.evaluations) for row in some if row.evaluations is not None]
            if alone:
                ax.plot(*zip(*alone, strict=True), color=COLOURS[mode], linewidth=1.4, linestyle=(0, (1, 1.5)))
        ax.set_title(task, loc="left", fontweight="bold", fontsize=12, color=INK)
        ax.set_ylim(0, 1.12 * BOUNDS["central"](k.max()))
        _tidy(ax)
    for ax in grid[-1]:
        ax.set_xlabel("directions $k$", fontsize=12)
    for ax in grid[:, 0]:
        ax.set_ylabel("evaluations of the function", fontsize=12)
    handles = [_line(COLOURS[mode], marker=MARKERS[mode]) for mode in MODES]
    labels = [f"{name}, {mode}" for mode, name in MODES.items()]
    bounds = {"forward": "$1 + k$", "central": "$1 + 2k$", "tangent": r"$1 + \frac{3}{2}k$"}
    handles += [_line(COLOURS[mode], linestyle=(0, (4, 3)), linewidth=1.1) for mode in bounds]
    figure.legend(
        handles, [*labels, *bounds.values()], loc="outside lower center", ncols=7, frameon=False, fontsize=10.5
    )
    return figure


def plot_steps(rows: Sequence[StepError]) -> Figure:
    """Errors of differences by step, beside the levels of the exact mode, for both carts."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.4), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, cart in zip(axes, CARTS, strict=True):
        for mode in ("forward", "central"):
            some = [row for row in rows if (row.cart, row.mode) == (cart, mode)]
            ax.loglog(
                [row.step for row in some], [row.relative for row in some], color=COLOURS[mode], marker=MARKERS[mode],
                markersize=5, linewidth=1.8, label=f"{MODES[mode]}, {mode}",
            )  # fmt: skip
        (exact,) = (row.relative for row in rows if (row.cart, row.mode) == (cart, "structured"))
        ax.axhline(exact, color=COLOURS["structured"], linewidth=2.2, label="ED, structured")
        name = next(row.algorithm for row in rows if row.cart == cart)
        ax.set_title(f"{name}, {cart}", loc="left", fontweight="bold", fontsize=12, color=INK)
        ax.set_xlabel("step, relative to the state", fontsize=12)
        _tidy(ax)
    axes[0].set_ylabel("median error, relative", fontsize=12)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=11)
    return figure


def plot_convergence(rows: Sequence[Convergence]) -> Figure:
    """Figure 3: distance to the last iterate by iteration, a panel for each mass."""
    from matplotlib.figure import Figure

    masses = list(dict.fromkeys(row.mass for row in rows))
    kinds = list(dict.fromkeys(name.partition(",")[0] for name in METHODS))
    colours = dict(zip(kinds, ("#2f6fab", "#7b5ea7", "#2a7f62", "#e08e45"), strict=True))
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    axes = figure.subplots(1, len(masses), sharey=True, squeeze=False)[0]
    for ax, mass in zip(axes, masses, strict=True):
        for row in (row for row in rows if row.mass == mass):
            kind, _, how = row.method.partition(", ")
            style: Any = "-" if how == "exact" else (0, (3, 2))
            distances = np.maximum(row.distances[:-1], 1e-10)
            ax.semilogy(range(len(distances)), distances, color=colours[kind], linestyle=style, linewidth=1.8)
        ax.set_xscale("symlog", linthresh=40)
        ax.set_title(f"box of {mass:g} kg", loc="left", fontweight="bold", fontsize=12, color=INK)
        ax.set_xlabel("iteration", fontsize=12)
        _tidy(ax)
    axes[0].set_ylabel(r"$\|x_k - x^*\|_2$, scaled", fontsize=12)
    handles = [_line(colour) for colour in colours.values()] + [_line(INK), _line(INK, linestyle=(0, (3, 2)))]
    labels = [*colours, "exact", "forward differences"]
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=11)
    return figure


def _line(colour: str, **style: Any) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=colour, **({"linewidth": 1.8} | style))


def _tidy(ax: Any) -> None:
    ax.grid(color="#e6eaee", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=11)
