"""The figures of :mod:`kinegrad.papers.anderson2002`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinegrad.papers.anderson2002 import experiment as chains
from kinegrad.papers.anderson2002 import pendulum as swing
from kinegrad.papers.anderson2002.experiment import LIBRARY, PAPER_LARGEST, RECURSIVE, Exponent, Timing
from kinegrad.papers.anderson2002.pendulum import Pendulum, Perturbation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_pendulum", "plot_perturbations", "plot_ratios", "plot_sensitivities", "plot_times"]

INK, FAINT = "#1b2733", "#9aa7b4"
COLOURS = {
    "fully recursive": "#2f6fab",
    "partially recursive": "#2a7f62",
    "conventional": "#d1495b",
    "frugal conventional": "#e08e45",
    LIBRARY: INK,
}
MARKERS = {"fully recursive": "o", "partially recursive": "s", "conventional": "^", "frugal conventional": "v"}
FLOOR = 1e-16  # what a deviation of zero is drawn at


def plot_times(timings: Sequence[Timing], exponents: Sequence[Exponent]) -> Figure:
    """Figure 2: time of an evaluation by degrees of freedom, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    ax = figure.subplots()
    ax.axvspan(2, PAPER_LARGEST, color="#f2f6fa", zorder=0)
    for fit in exponents:
        rows = [row for row in timings if row.method == fit.method]
        n, microseconds = [row.n for row in rows], [1e6 * row.seconds for row in rows]
        name = f"{fit.method}, 64 states at once" if fit.method == LIBRARY else fit.method
        ax.loglog(
            n, microseconds, color=COLOURS[fit.method], marker=MARKERS.get(fit.method, "D"), markersize=6, linewidth=2,
            label=rf"{name}: $n^{{{fit.exponent:.2f}}}$ for {fit.smallest} … {fit.largest}",
        )  # fmt: skip
    low, high = ax.get_ylim()
    ax.set_ylim(low / 1.5, high * 1.5)
    ax.text(2.1, low / 1.3, "the paper’s sizes", color="#6a7784", fontsize=11, va="bottom")
    ax.set_xticks([2, 4, 8, 16, 24, 32, 64, 128, 256, 512], minor=False)
    ax.set_xticklabels(["2", "4", "8", "16", "24", "32", "64", "128", "256", "512"])
    ax.minorticks_off()
    ax.set_xlabel("degrees of freedom $n$", fontsize=12)
    ax.set_ylabel("time of one evaluation, µs", fontsize=12)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=11.5)
    _tidy(ax)
    return figure


def plot_ratios(timings: Sequence[Timing]) -> Figure:
    """How long the others take on small chains, in times of the fully recursive method, by number of parameters."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    cases = {
        "one parameter": [row for row in timings if row.p == 1],
        "two parameters per bar": [row for row in timings if row.p == 2 * row.n],
    }
    axes = figure.subplots(1, len(cases), sharey=True)
    for ax, (title, rows) in zip(axes, cases.items(), strict=True):
        base = {row.n: row.seconds for row in rows if row.method == RECURSIVE}
        ax.axhline(1, color=COLOURS[RECURSIVE], linewidth=2, label=RECURSIVE)
        for name in (name for name in MARKERS if name != RECURSIVE):
            points = [(row.n, row.seconds / base[row.n]) for row in rows if row.method == name]
            ax.semilogy(*zip(*points, strict=True), color=COLOURS[name], marker=MARKERS[name], linewidth=2, label=name)
        ax.axvline(4, color=FAINT, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
        ax.text(4.1, 0.72, "the paper’s crossing", color="#6a7784", fontsize=11, va="center")
        ax.set_title(title, loc="left", fontweight="bold", fontsize=12, color=INK)
        ax.set_yticks([0.5, 1, 2, 5, 10, 20], minor=False)
        ax.set_yticklabels(["½", "1", "2", "5", "10", "20"])
        ax.minorticks_off()
        ax.set_xticks(chains.SMALL)
        ax.set_xlabel("degrees of freedom $n$", fontsize=12)
        _tidy(ax)
    axes[0].set_ylabel("time / time of the\nfully recursive method", fontsize=12)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=11.5
    )
    return figure


def plot_pendulum(x: Pendulum) -> Figure:
    """Figure 3, the pendulum as it is released; and its motion."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=[1, 2.2])
    ax: Any = figure.add_subplot(grid[:, 0])
    first, second = swing.START[0], sum(swing.START)
    P = swing.VALUES["L1"] * np.array([np.sin(first), -np.cos(first)])
    Q = P + swing.VALUES["L2"] * np.array([np.sin(second), -np.cos(second)])
    ax.plot([0, 0], [0, -1.1], color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
    ax.plot(*zip((0, 0), P, Q, strict=True), color=INK, linewidth=3, zorder=2)
    ax.plot(0, 0, marker="^", markersize=13, color=INK)
    ax.plot(*P, marker="o", markersize=15, color="#2f6fab", zorder=3)
    ax.plot(*Q, marker="o", markersize=15, color="#d1495b", zorder=3)
    side = np.array([0.12, 0.06])
    for place, text in ((P / 2, "$L_1$"), ((P + Q) / 2, "$L_2$"), (P, "$M_P$"), (Q, "$M_Q$")):
        ax.annotate(text, place + side, fontsize=14, color=INK, va="center")
    angle = np.linspace(0, first, 30)
    ax.plot(0.45 * np.sin(angle), -0.45 * np.cos(angle), color=FAINT, linewidth=1.2)
    ax.annotate(f"{np.degrees(first):.0f}°", (0.04, -0.62), fontsize=12, color="#4a5a6a")
    ax.set_aspect("equal")
    ax.set_xlim(-0.25, 1.45)
    ax.set_ylim(-1.95, 0.15)
    ax.axis("off")
    angles = figure.add_subplot(grid[0, 1])
    for k, colour in enumerate(("#2f6fab", "#d1495b")):
        angles.plot(x.t, np.degrees(x.q[:, k]), color=colour, linewidth=1.8, label=f"$q_{k + 1}$")
    angles.set_ylabel("angle, °", fontsize=12)
    angles.set_ylim(None, np.degrees(x.q).max() * 1.5)
    angles.legend(loc="upper right", ncols=2, frameon=False, fontsize=12)
    angles.tick_params(labelbottom=False)
    energy = figure.add_subplot(grid[1, 1], sharex=angles)
    energy.plot(x.t, x.kinetic, color=INK, linewidth=1.8)
    energy.set_ylabel("kinetic energy, J", fontsize=12)
    energy.set_xlabel("time, s", fontsize=12)
    figure.align_ylabels([angles, energy])
    for each in (angles, energy):
        _tidy(each)
    return figure


def plot_sensitivities(x: Pendulum) -> Figure:
    """Figures 4 to 7: dT/dp by all methods, one over the other, and how far they are from the fully recursive one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 11), layout="constrained")
    grid = figure.subplots(len(swing.STEPS), 2, sharex=True, width_ratios=[1.25, 1])
    exact = x.sensitivity["fully recursive"]
    marks = {"marker": "o", "markersize": 5, "markerfacecolor": "white", "markeredgewidth": 1.5}
    styles: dict[str, dict[str, Any]] = {  # one over the other, so that all can be seen
        "forward differences": {"color": "#e08e45", "zorder": 5, "markevery": 5, **marks},  # every 0.25 s
        "conventional": {"color": INK, "zorder": 4},
        "central differences": {"color": "#2a7f62", "zorder": 3},
    }
    for k, (name, (left, right)) in enumerate(zip(swing.STEPS, grid, strict=True)):
        symbol = rf"\mathrm{{d}}T/\mathrm{{d}}{name[0]}_{name[1]}"
        left.plot(x.t, exact[:, k], color="#8fbce6", linewidth=7, solid_capstyle="round", label="fully recursive")
        for method, style in styles.items():
            values = x.sensitivity[method][:, k]
            if method != "central differences":  # which cannot be told from the others here
                left.plot(x.t, values, linestyle="" if "marker" in style else "-", linewidth=1.4, label=method, **style)
            away = np.maximum(np.abs(values - exact[:, k]), FLOOR)
            right.semilogy(x.t, away, linewidth=1.4, label=method, **(style | {"markevery": 20}))
        left.set_ylabel(rf"${symbol}$,  {swing.UNITS[name]}", fontsize=12)
        right.set_ylabel(f"distance, {swing.UNITS[name]}", fontsize=12)
        right.set_ylim(FLOOR / 3, 1)
        left.set_title(f"Figure {4 + k}: ${name[0]}_{name[1]}$", loc="left", fontweight="bold", fontsize=12, color=INK)
        for ax in (left, right):
            _tidy(ax)
    grid[0, 1].set_title(
        "distance from the fully recursive curve", loc="left", fontweight="bold", fontsize=12, color=INK
    )
    for ax in grid[-1]:
        ax.set_xlabel("time, s", fontsize=12)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    other, names = grid[0, 1].get_legend_handles_labels()
    handles, labels = handles + other[-1:], [*labels, f"{names[-1]} (right only)"]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=12)
    return figure


def plot_perturbations(rows: Sequence[Perturbation]) -> Figure:
    """Errors of differences by perturbation; horizontal lines are the exact method with the same integrator."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row.parameter for row in rows))
    across = min(len(names), 2)
    down = -(-len(names) // across)
    figure = Figure(figsize=(11, 4.6 * down), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    styles = {
        ("forward", swing.TIGHT): ("#d1495b", "o", "-"), ("central", swing.TIGHT): ("#2f6fab", "s", "-"),
        ("forward", swing.LOOSE): ("#d1495b", "o", ":"), ("central", swing.LOOSE): ("#2f6fab", "s", ":"),
    }  # fmt: skip
    for ax, name in zip(grid.flat, names, strict=True):
        for (method, tolerance), (colour, marker, dashes) in styles.items():
            chosen = [r for r in rows if (r.parameter, r.method, r.tolerance) == (name, method, tolerance)]
            ax.loglog(
                [r.step for r in chosen], [r.error for r in chosen], color=colour, marker=marker, markersize=5,
                linestyle=dashes, linewidth=1.8, markerfacecolor=colour if dashes == "-" else "white",
                label=f"{method}, tolerance {_power(tolerance)}",
            )  # fmt: skip
        for tolerance, dashes in ((swing.TIGHT, "-"), (swing.LOOSE, ":")):
            (same,) = (r for r in rows if (r.parameter, r.method, r.tolerance) == (name, "fully recursive", tolerance))
            label = f"fully recursive, tolerance {_power(tolerance)}"
            ax.axhline(same.error, color="#2a7f62", linestyle=dashes, linewidth=2.4, label=label)
        ax.axvline(swing.STEPS[name], color=FAINT, linewidth=1, linestyle=(0, (3, 3)), zorder=1)
        ax.text(swing.STEPS[name] * 1.15, 2e-13, "the paper’s", color="#6a7784", fontsize=11, va="bottom")
        ax.set_title(f"${name[0]}_{name[1]}$", loc="left", fontweight="bold", fontsize=13, color=INK)
        ax.set_ylim(1e-13, 10)
        _tidy(ax)
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(f"perturbation, {swing.UNITS[name].removeprefix('J/')}", fontsize=12)
    for ax in grid[:, 0]:
        ax.set_ylabel("largest error in 20 s, relative", fontsize=12)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=11)
    return figure


def _power(x: float) -> str:
    """A power of ten.

    >>> _power(1e-6)
    '$10^{-6}$'
    """
    return f"$10^{{{round(np.log10(x))}}}$"


def _tidy(ax: Any) -> None:
    ax.grid(color="#e6eaee", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=11)
