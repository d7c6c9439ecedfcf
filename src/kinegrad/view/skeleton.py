"""A mechanism drawn in space as its links and joint axes: figure 2 of [zhakatayev2023]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_skeleton", "joint_numbers", "plot_skeleton"]

Array = NDArray[np.float64]
SAME_POINT = 1e-9  # m
INK = "#1b2733"
WORLD_COLOUR, AXIS_COLOUR = "#2a9d3a", "#7a8794"


def plot_skeleton(model: Model, q: ArrayLike | None = None, *, show_numbers_from: int = 0) -> Figure:
    """The mechanism twice: in space with its joint axes, and seen from the front with the joints' numbers.

    Parameters
    ----------
    model : Model
    q : array_like, shape (n,), optional
        Posture; 0 when not given.
    show_numbers_from : int
        Number of the first joint.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot.

    Examples
    --------
    >>> from kinegrad import samples
    >>> [ax.get_title() for ax in plot_skeleton(samples.two_link()).axes]
    ['links and joint axes', 'joint numbers, from the front']
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8.4))
    figure.subplots_adjust(left=0, right=1, bottom=0.0, top=0.94, wspace=0)
    in_space = figure.add_subplot(1, 2, 1, projection="3d", computed_zorder=False)
    draw_skeleton(model, q, in_space)
    in_space.view_init(elev=14, azim=58)  # type: ignore[attr-defined]
    in_space.set_title("links and joint axes", color=INK, fontweight="bold", fontsize=11, y=1.0)
    front = figure.add_subplot(1, 2, 2, projection="3d", computed_zorder=False)
    draw_skeleton(model, q, front, axis_length=0, numbers_from=show_numbers_from)
    front.view_init(elev=0, azim=90)  # type: ignore[attr-defined]
    front.set_title("joint numbers, from the front", color=INK, fontweight="bold", fontsize=11, y=1.0)
    return figure


def draw_skeleton(
    model: Model,
    q: ArrayLike | None,
    ax: Any,
    *,
    axis_length: float | None = None,
    numbers_from: int | None = None,
) -> None:
    """Draw links as lines from each joint to the end of its link, in the colours of the branches.

    Parameters
    ----------
    model : Model
    q : array_like, shape (n,), or None
        Posture; 0 for None.
    ax : matplotlib 3-D axes
        Where to draw.
    axis_length : float, optional
        Of the arrows along joint axes, m; a fitting one when not given, none if 0.
    numbers_from : int, optional
        Write the joints' numbers beside them, the first being this.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kinegrad import samples
    >>> ax = Figure().add_subplot(projection="3d")
    >>> draw_skeleton(samples.two_link(), [0.3, 0.5], ax)
    >>> len(ax.lines) >= 2
    True
    """
    from matplotlib import colormaps

    start, end, axis = _places(model, np.zeros(model.n) if q is None else np.asarray(q, dtype=np.float64))
    low, high = np.minimum(start, end).min(axis=0), np.maximum(start, end).max(axis=0)
    size = float((high - low).max())
    length = 0.085 * size if axis_length is None else axis_length
    branch_of = model.topology.branch_of
    palette = colormaps["tab10" if branch_of.max() < 10 else "tab20"].colors  # type: ignore[attr-defined]
    colours = [palette[k % len(palette)] for k in branch_of]

    for i in range(model.n):
        if np.linalg.norm(end[i] - start[i]) > SAME_POINT and model.mass[i] > 0:
            ax.plot(*np.stack([start[i], end[i]], axis=1), color=colours[i], linewidth=5.5,
                    solid_capstyle="round", alpha=0.85, zorder=2)  # fmt: skip
    if length:
        for i in range(model.n):
            ax.quiver(*start[i], *(length * axis[i]), color=AXIS_COLOUR, linewidth=1.1,
                      arrow_length_ratio=0.28, zorder=3)  # fmt: skip
    points = joint_numbers(model, q)
    places = np.array(list(points))
    ax.scatter(*places.T, s=26, color="white", edgecolor=INK, linewidth=1.1, depthshade=False, zorder=4)
    ax.scatter(0, 0, 0, s=46, color=WORLD_COLOUR, edgecolor="white", linewidth=0.8, depthshade=False, zorder=5)
    if numbers_from is not None:
        _write_numbers(ax, points, numbers_from, size)
    middle = (low + high) / 2
    span = np.maximum(high - low, 0.3 * size) * 1.04
    ax.set(xlim=middle[0] + span[0] * np.array([-0.5, 0.5]), ylim=middle[1] + span[1] * np.array([-0.5, 0.5]),
           zlim=middle[2] + span[2] * np.array([-0.5, 0.5]))  # fmt: skip
    ax.set_box_aspect(span, zoom=1.32)
    ax.set_proj_type("ortho")
    ax.set_axis_off()
    if length:
        _world_axes(ax, middle + span * np.array([0.55, 0.45, -0.5]), 0.1 * size)


def joint_numbers(model: Model, q: ArrayLike | None = None) -> Mapping[tuple[float, ...], list[int]]:
    """Which joints meet at each point of space, in the order of the joints.

    Examples
    --------
    >>> from kinegrad import samples
    >>> joint_numbers(samples.two_link())
    {(0.0, 0.0, 0.0): [0], (0.4, 0.0, 0.0): [1]}
    """
    start, _, _ = _places(model, np.zeros(model.n) if q is None else np.asarray(q, dtype=np.float64))
    points: dict[tuple[float, ...], list[int]] = {}
    for i, point in enumerate(start):
        key = next((key for key in points if np.linalg.norm(point - key) < 1e3 * SAME_POINT), None)
        points.setdefault(key or tuple((point + 0.0).round(12).tolist()), []).append(i)
    return points


def _places(model: Model, q: Array) -> tuple[Array, Array, Array]:
    """Of each joint: where it is, where its link ends, and its axis; in the world, shape (n, 3) each."""
    link = forward_kinematics(model, q).transform
    joint = link @ np.linalg.inv(model.tip)
    axes = np.array([joint_.axis for joint_ in model.joints])
    return joint[:, :3, 3], link[:, :3, 3], np.einsum("nij,nj->ni", joint[:, :3, :3], axes)


def _write_numbers(ax: Any, points: Mapping[tuple[float, ...], list[int]], base: int, size: float) -> None:
    """Numbers beside each point, away from the middle of the body; the middle's own to the right."""
    for (x, y, z), joints in points.items():
        side = 1 if x > SAME_POINT else -1
        middle = abs(x) <= SAME_POINT
        text = " ".join(str(i + base) for i in joints)
        if len(joints) > 5:
            half = -(-len(joints) // 2)
            text = "\n".join(" ".join(str(i + base) for i in part) for part in (joints[:half], joints[half:]))
        ax.text(x + side * 0.022 * size, y, z + (0.012 * size if middle else 0), text, color=INK, fontsize=9,
                ha="right" if side > 0 else "left", va="center", zorder=6,
                bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.6})  # fmt: skip


def _world_axes(ax: Any, origin: Array, length: float) -> None:
    for direction, name in zip(np.eye(3), ("x₀", "y₀", "z₀"), strict=True):
        ax.quiver(*origin, *(length * direction), color=WORLD_COLOUR, linewidth=1.6, arrow_length_ratio=0.22)
        ax.text(*(origin + 1.25 * length * direction), name, color=WORLD_COLOUR, fontsize=10,
                ha="center", va="center")  # fmt: skip
