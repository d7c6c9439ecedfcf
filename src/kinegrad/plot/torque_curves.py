"""Joint torques over time, with the tree they belong to beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.dynamics import inverse_dynamics
from kinegrad.errors import InputError
from kinegrad.model import Model, Topology
from kinegrad.motion import Motion
from kinegrad.plot.colours import line_styles
from kinegrad.plot.given import finite, instants
from kinegrad.plot.graphs import draw_joint_graph
from kinegrad.plot.names import drawn_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_torques"]

Array = NDArray[np.float64]
LINES, PANELS = 8, 10  # at most, when the joints are not chosen by the caller
LINE = 0.165  # inches that a label takes


def plot_torques(
    model: Model | Motion,
    t: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    *,
    title: str | None = None,
    graph: bool = True,
) -> Figure:
    """Torques over time, one panel a group of joints; a colour or kind of line of its own for each joint of a panel.

    Parameters
    ----------
    model : Model or Motion
        A motion has times and torques of its own; where it has no torques, they are those of inverse dynamics.
    t : array_like, shape (N,)
        s; of a model.
    tau : array_like, shape (N, n)
        N·m or N; of a model.
    groups : mapping of str to sequence of str, optional
        Panel titles and the joints in each; all joints, by branches, when not given.  Of mechanisms with more than 80
        joints, those with the largest torques, and the figure says how many are not shown.
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
    from matplotlib.figure import Figure

    if isinstance(model, Motion):
        model, t, tau = _of_motion(model, t, tau)
    engine.check_model(model)
    times = instants([] if t is None else t)
    torques = finite("tau", tau, (len(times), model.nv))
    chosen, hidden = _by_branches(model, torques) if groups is None else (dict(groups), "")
    if not chosen:
        raise InputError("`groups` is empty; expected at least one group of joints")
    for name, group in chosen.items():
        if isinstance(group, str) or not len(group):
            raise InputError(f"`groups[{name!r}]` is {group!r}; expected the names of one or more joints")
    panels = {name: [model.speed_index(joint) for joint in joints] for name, joints in chosen.items()}
    heights = [max(1.5, LINE * len(joints) + 0.3) for joints in panels.values()]
    height = max(sum(heights) + 0.35 * len(panels) + 0.6, 3.6)
    figure = Figure(figsize=(12 if graph else 8, height), layout="constrained")
    widths = [5, 7] if graph else [1]
    grid = figure.add_gridspec(len(panels), len(widths), width_ratios=widths, height_ratios=heights)
    if graph:
        axes = figure.add_subplot(grid[:, 0])
        draw_joint_graph(Topology(model.parents), axes)
        axes.set_title("joint graph", loc="left", fontsize=10, fontweight="bold")
    share: Axes | None = None
    for k, (name, joints) in enumerate(panels.items()):
        axes = figure.add_subplot(grid[k, -1], sharex=share)
        share = share or axes
        _panel(axes, model, times, torques, name, joints, LINE / heights[k])
        axes.tick_params(labelbottom=k == len(panels) - 1)
    axes.set_xlabel("time, s")
    if hidden:
        figure.supxlabel(hidden, fontsize=9, x=0.01, ha="left")
    if title:
        figure.suptitle(title, fontsize=13, fontweight="bold")
    return figure


def _of_motion(motion: Motion, t: ArrayLike | None, tau: ArrayLike | None) -> tuple[Model, Array, Array]:
    """Model, times and torques of one motion."""
    if t is not None or tau is not None:
        raise InputError("`t` and `tau` are given with a Motion, which has its own; expected them with a Model")
    if motion.q.ndim != 2:
        raise InputError(f"`motion` has q of shape {motion.q.shape}; expected one motion, (N, nq)")
    found = motion.tau
    if found is None:
        found = inverse_dynamics(motion.model, motion.q, motion.v, motion.a)
    return motion.model, np.asarray(motion.t), np.asarray(found)


def _panel(
    ax: Axes, model: Model, t: Array, tau: Array, name: str, joints: Sequence[int], gap: float
) -> None:  # fmt: skip
    styles = line_styles(len(joints))
    for i, (colour, style) in zip(joints, styles, strict=True):
        ax.plot(t, tau[:, i], color=colour, linestyle=style, linewidth=1.8)
    units = {"N" if model.layout.speed_kinds[i] == "prismatic" else "N·m" for i in joints}
    ax.set_title(drawn_name(name), loc="left", fontsize=10, fontweight="bold")
    ax.set_ylabel(f"τ, {' or '.join(sorted(units, reverse=True))}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.axhline(0, color="0.75", linewidth=0.8, zorder=0)
    ax.grid(axis="y", color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.margins(x=0)
    low, high = ax.get_ylim()
    places = _spread((tau[-1, joints] - low) / (high - low), gap)
    for i, (colour, style), place in zip(joints, styles, places, strict=True):
        ax.plot(
            [1.005, 1.05], [place, place], color=colour, linestyle=style, linewidth=1.8, transform=ax.transAxes,
            clip_on=False,
        )  # fmt: skip
        ax.annotate(
            f"{i}  {drawn_name(model.speed_names[i])}", (1.05, place), (5, 0), xycoords="axes fraction",
            textcoords="offset points", color="#1b2733", va="center", fontsize=9, annotation_clip=False,
        )  # fmt: skip
    ax.set_ylim(low, high)


def _by_branches(model: Model, tau: Array) -> tuple[dict[str, Sequence[str]], str]:
    """All joints, in panels of a branch or a part of one; or the largest, and a sentence on what is not shown."""
    size = np.abs(tau).max(axis=0, initial=0)
    branch_of = model.topology.branch_of[model.layout.joint_of]
    shown = np.arange(model.nv)
    hidden = ""
    if model.nv > LINES * PANELS:
        order = np.argsort(-size, kind="stable")
        shown, rest = np.sort(order[: LINES * PANELS // 2]), order[LINES * PANELS // 2 :]
        hidden = f"not shown: {len(rest)} of {model.nv} joints, none above {size[rest].max():.3g} N·m or N"
    groups = dict[str, Sequence[str]]()
    for k in range(len(model.topology.branches)):
        own = [int(i) for i in shown if branch_of[i] == k]
        parts = -(-len(own) // LINES)
        for part in range(parts):
            some = own[part * len(own) // parts : (part + 1) * len(own) // parts]
            name = f"branch {k}" + (f", joints {some[0]} to {some[-1]}" if parts > 1 else "")
            groups[name] = [model.speed_names[i] for i in some]
    return groups, hidden


def _spread(places: Array, gap: float) -> Array:
    """Heights of labels near `places`, at least `gap` apart, in the same order, within 0…1 if they fit."""
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    pushed_up = np.maximum.accumulate(places[order] - steps) + steps
    spread: Array = np.empty(len(places))
    spread[order] = np.minimum(pushed_up, 1 - steps[::-1])  # none above the top
    return spread
