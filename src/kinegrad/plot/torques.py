"""Joint torques over time, with the tree they belong to beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError
from kinegrad.model import Model, Topology
from kinegrad.plot.given import finite, instants
from kinegrad.plot.graphs import draw_joint_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_torques"]

Array = NDArray[np.float64]
Colour = tuple[float, float, float]
LINES, PANELS = 4, 6  # at most, when the joints are not chosen by the caller


def plot_torques(
    model: Model,
    t: ArrayLike,
    tau: ArrayLike,
    groups: Mapping[str, Sequence[str]] | None = None,
    *,
    title: str | None = None,
    graph: bool = True,
) -> Figure:
    """Torques over time, one panel a group of joints, each line in the colour of its branch.

    Parameters
    ----------
    model : Model
    t : array_like, shape (N,)
        s.
    tau : array_like, shape (N, n)
        N·m or N.
    groups : mapping of str to sequence of str, optional
        Panel titles and the joints in each; the largest torques of each branch when not given.
    title : str, optional
        Over the whole figure.
    graph : bool
        Draw the numbered joint graph at the left.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot: ``figure.savefig(path)`` and forget it.

    Examples
    --------
    >>> from kinegrad import samples
    >>> figure = plot_torques(samples.two_link(), [0, 1], [[1, 2], [3, 4]], {"arm": ["shoulder", "elbow"]})
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['joint graph', 'arm']
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    engine.check_model(model)
    times = instants(t)
    torques = finite("tau", tau, (len(times), model.nv))
    chosen = _largest(model, torques) if groups is None else dict(groups)
    if not chosen:
        raise InputError("`groups` is empty; expected at least one group of joints")
    for name, group in chosen.items():
        if isinstance(group, str) or not len(group):
            raise InputError(f"`groups[{name!r}]` is {group!r}; expected the names of one or more joints")
    panels = {name: [model.speed_index(joint) for joint in joints] for name, joints in chosen.items()}
    branch_of = model.topology.branch_of[model.layout.joint_of]
    palette = colormaps["tab10" if branch_of.max() < 10 else "tab20"].colors  # type: ignore[attr-defined]

    height = max(2.1 * len(panels) + 0.6, 3.6)
    figure = Figure(figsize=(12 if graph else 8, height), layout="constrained")
    widths = [5, 7] if graph else [1]
    grid = figure.add_gridspec(len(panels), len(widths), width_ratios=widths)
    if graph:
        axes = figure.add_subplot(grid[:, 0])
        draw_joint_graph(Topology(model.parents), axes)
        axes.set_title("joint graph", loc="left", fontsize=10, fontweight="bold")
    share: Axes | None = None
    for k, (name, joints) in enumerate(panels.items()):
        axes = figure.add_subplot(grid[k, -1], sharex=share)
        share = share or axes
        colours = _shades([palette[branch_of[i] % len(palette)] for i in joints])
        _panel(axes, model, times, torques, name, joints, colours)
        axes.tick_params(labelbottom=k == len(panels) - 1)
    axes.set_xlabel("time, s")
    if title:
        figure.suptitle(title, fontsize=13, fontweight="bold")
    return figure


def _panel(
    ax: Axes, model: Model, t: Array, tau: Array, name: str, joints: Sequence[int], colours: Sequence[Colour]
) -> None:
    for i, colour in zip(joints, colours, strict=True):
        ax.plot(t, tau[:, i], color=colour, linewidth=1.8, solid_capstyle="round")
    units = {"N" if model.layout.speed_kinds[i] == "prismatic" else "N·m" for i in joints}
    ax.set_title(name, loc="left", fontsize=10, fontweight="bold")
    ax.set_ylabel(f"τ, {' or '.join(sorted(units, reverse=True))}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.axhline(0, color="0.75", linewidth=0.8, zorder=0)
    ax.grid(axis="y", color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.margins(x=0)
    low, high = ax.get_ylim()
    places = _spread((tau[-1, joints] - low) / (high - low), 0.14)
    for i, colour, place in zip(joints, colours, places, strict=True):
        ax.annotate(
            f"{i}  {model.speed_names[i]}", (1, place), (10, 0), xycoords="axes fraction",
            textcoords="offset points", color=colour, va="center", fontsize=9, annotation_clip=False,
        )  # fmt: skip


def _largest(model: Model, tau: Array) -> dict[str, list[str]]:
    """The joints with the largest torques in each of the first branches, in the order of the tree."""
    size = np.abs(tau).max(axis=0, initial=0)
    groups = {}
    branch_of = model.topology.branch_of[model.layout.joint_of]
    for k in range(len(model.topology.branches[:PANELS])):
        largest = sorted(sorted(np.flatnonzero(branch_of == k).tolist(), key=lambda i: -size[i])[:LINES])
        if largest:
            groups[f"branch {k}"] = [model.speed_names[i] for i in largest]
    return groups


def _shades(bases: Sequence[Colour]) -> list[Colour]:
    """Each colour as it is given first, then darker and lighter where it comes again."""
    shades = []
    for k, base in enumerate(bases):
        nth, count = bases[:k].count(base), bases.count(base)
        mix = 0.0 if count == 1 else -0.55 + 0.85 * nth / (count - 1)  # −1 black … 1 white
        r, g, b = ((x + mix * (1 - x)) if mix > 0 else x * (1 + mix) for x in base)
        shades.append((r, g, b))
    return shades


def _spread(places: Array, gap: float) -> Array:
    """Heights of labels near `places`, at least `gap` apart, in the same order, within 0…1 if they fit."""
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    pushed_up = np.maximum.accumulate(places[order] - steps) + steps
    spread: Array = np.empty(len(places))
    spread[order] = np.minimum(pushed_up, 1 - steps[::-1])  # none above the top
    return spread
