"""The joint graph and the branch graph of a topology, as figures 1 and 3 of [zhakatayev2023].

Both are layered trees, the world on top: a leaf takes the next free column in depth-first order, any other
node the middle of its children. Subtrees so occupy disjoint columns: nodes never overlap, edges never cross.
A branch has the same colour in both graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError
from kinegrad.model import Model
from kinegrad.model.topology import Topology, joint_ranges
from kinegrad.plot.colours import branch_colours
from kinegrad.plot.names import drawn_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_branch_graph", "draw_joint_graph", "plot_topology"]

MARKERS = {"simple": "o", "junction": "s", "leaf": "h"}


def draw_joint_graph(
    topology: Topology | Model,
    ax: Axes | None = None,
    names: Sequence[str] | None = None,
    *,
    show_numbers_from: int = 0,
) -> Axes:
    """Draw each joint as a numbered node, coloured by its branch.

    Parameters
    ----------
    topology : Topology, or Model
    ax : matplotlib axes, optional
        Where to draw; a new figure of a fitting size if not given.
    names : sequence of str, length n, optional
        Labels beside the joints, as matplotlib's text; names of the topology, if it has any, when not given.
    show_numbers_from : int
        Number of the first joint; the paper counts from 1.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = draw_joint_graph(Topology([-1, 0, 0, 1]), show_numbers_from=1)
    >>> [text.get_text() for text in ax.texts]
    ['world', '1', '2', '3', '4']
    """
    topology = _topology(topology)
    if names is None and topology.names is not None:
        names = list(map(drawn_name, topology.names))
    if names is not None and len(names) != topology.n:
        raise InputError(f"`names` has {len(names)} entries; expected {topology.n}, one per joint")
    return _draw(topology, topology.branch_of, names, ax, show_numbers_from)


def draw_branch_graph(topology: Topology | Model, ax: Axes | None = None, *, show_numbers_from: int = 0) -> Axes:
    """Draw each branch as a numbered node, labelled with its joints.

    Parameters
    ----------
    topology : Topology, or Model
    ax : matplotlib axes, optional
        Where to draw; a new figure of a fitting size if not given.
    show_numbers_from : int
        Number of the first branch and of the first joint; the paper counts from 1.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> ax = draw_branch_graph(Topology([-1, 0, 1, 1, 3]))
    >>> [text.get_text() for text in ax.texts]
    ['world', '0', '0–1', '1', '2', '2', '3–4']
    """
    topology = _topology(topology)
    labels = [joint_ranges(joints, show_numbers_from) for joints in topology.branches]
    tree = Topology(topology.branch_parents)
    return _draw(tree, np.arange(tree.n), labels, ax, show_numbers_from)


def _topology(drawn: Topology | Model) -> Topology:
    if isinstance(drawn, Topology | Model):
        return drawn.topology if isinstance(drawn, Model) else drawn
    raise InputError(f"`topology` is a {type(drawn).__name__}; expected a Topology or a Model")


def _columns(tree: Topology) -> NDArray[np.float64]:
    """Column of each node, shape (n,)."""
    column = np.zeros(tree.n)
    leaves = np.isin(order := tree.depth_first(), tree.leaves)
    column[order[leaves]] = np.arange(len(tree.leaves))
    for i in reversed(range(tree.n)):
        if children := tree.children(i):
            column[i] = (column[children[0]] + column[children[-1]]) / 2
    return column


def _draw(
    tree: Topology, colour_of: NDArray[np.int64], labels: Sequence[str] | None, ax: Axes | None, base: int
) -> Axes:
    """Draw any tree, node i in colour number ``colour_of[i]`` with ``labels[i]`` beside it."""
    import matplotlib.pyplot as plt

    x, y = _columns(tree), -tree.depth.astype(float)
    columns, rows = len(tree.leaves) + 1, tree.depth.max() + 3  # with a margin, the world and the legend
    if ax is None:
        column_width = 0.8 + 0.08 * max(map(len, labels or [""]))
        size = (min(max(column_width * columns, 4.0), 40.0), min(max(0.5 * rows + 0.5, 3.0), 40.0))
        ax = plt.subplots(figsize=size, layout="constrained")[1]
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    node = float(np.clip(72 * 0.6 * min(box.width / columns, box.height / rows), 2, 20))  # diameter, points
    palette = branch_colours(int(colour_of.max()) + 1)
    colours = [palette[k] for k in colour_of]

    world = (x[tree.roots[0]] + x[tree.roots[-1]]) / 2
    ax.text(world, 1, "world", ha="center", va="center", color="0.4", fontsize=max(0.5 * node, 5))
    for i, parent in enumerate(tree.parents):
        if parent < 0:
            ax.plot([world, x[i]], [0.75, y[i]], ":", color="0.6", linewidth=1.2, zorder=1)
        else:
            ax.plot(x[[parent, i]], y[[parent, i]], color=colours[i], linewidth=1.6, zorder=1)
    kinds = np.full(tree.n, "simple", dtype=object)
    kinds[list(tree.junctions)], kinds[list(tree.leaves)] = "junction", "leaf"
    for kind, marker in MARKERS.items():
        nodes = np.flatnonzero(kinds == kind)
        if nodes.size:
            fill = [colours[i] for i in nodes] if kind == "junction" else "white"
            ax.scatter(x[nodes], y[nodes], s=node**2, marker=marker, c=fill, label=kind, zorder=2,
                       edgecolors=[colours[i] for i in nodes], linewidths=1.6)  # fmt: skip
    for i in range(tree.n if node > 6 else 0):  # smaller numbers could not be read
        ink = "white" if kinds[i] == "junction" else "black"
        ax.text(x[i], y[i], f"{i + base}", ha="center", va="center_baseline", color=ink, fontsize=0.5 * node)
        if labels is not None:
            ax.annotate(labels[i], (x[i], y[i]), (0.7 * node, 0), textcoords="offset points",
                        va="center", fontsize=0.45 * node,
                        bbox={"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.5})  # fmt: skip
    ax.set(xlim=(-0.75, columns - 1.25), ylim=(y.min() - 1.6, 1.4))
    ax.set_axis_off()
    legend = ax.legend(loc="lower center", ncols=3, frameon=False, fontsize=8)
    for handle in filter(None, legend.legend_handles):
        fill = "0.3" if handle.get_label() == "junction" else "white"
        handle.set(sizes=[50], edgecolor="0.3", facecolor=fill)
    return ax


def plot_topology(model: Topology | Model, *, show_numbers_from: int = 0) -> Figure:
    """The tree of a mechanism twice: its joints, and its branches.

    Parameters
    ----------
    model : Model, or Topology
    show_numbers_from : int
        Number of the first joint and branch.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot.

    Examples
    --------
    >>> [ax.get_title() for ax in plot_topology(Topology([-1, 0, 1, 1, 3])).axes]
    ['joints', 'branches']
    """
    from matplotlib.figure import Figure

    tree = _topology(model)
    leaves = len(set(range(tree.n)) - {int(parent) for parent in tree.parents})
    depth = max(sum(1 for _ in _to_root(tree, i)) for i in range(tree.n))
    figure = Figure(figsize=(3.1 * leaves + 2, min(0.55 * depth + 2, 20)), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1.8, 1])
    draw_joint_graph(model, left, show_numbers_from=show_numbers_from)
    draw_branch_graph(model, right, show_numbers_from=show_numbers_from)
    left.set_title("joints", fontweight="bold")
    right.set_title("branches", fontweight="bold")
    return figure


def _to_root(tree: Topology, joint: int) -> Iterator[int]:
    while joint >= 0:
        yield joint
        joint = int(tree.parents[joint])
