"""A mechanism drawn as its links and joint axes: figure 2 of [zhakatayev2023].

Parallel projection into plain two-dimensional axes: lines, arrows and labels are then sharp, are clipped nowhere,
and can be laid out on the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import neutral
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model
from kinegrad.model.topology import joint_ranges
from kinegrad.plot.given import finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_skeleton", "joint_points", "plot_skeleton"]

Array = NDArray[np.float64]
SAME_POINT = 1e-6  # m
INK, WORLD, AXIS = "#1b2733", "#1f8a3b", "#5d6b78"


def plot_skeleton(model: Model, q: ArrayLike | None = None, *, show_numbers_from: int = 0) -> Figure:
    """The mechanism twice: from the side with its joint axes, and from the front with its joints named.

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
    ['links and joint axes', 'joints that meet at each point']
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 7.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[0.42, 1])
    draw_skeleton(model, q, left, azimuth=52, elevation=16, axes=True)
    left.set_title("links and joint axes", color=INK, fontweight="bold", fontsize=11)
    draw_skeleton(model, q, right, azimuth=90, elevation=14, show_numbers_from=show_numbers_from)
    right.set_title("joints that meet at each point", color=INK, fontweight="bold", fontsize=11)
    return figure


def draw_skeleton(
    model: Model,
    q: ArrayLike | None,
    ax: Axes,
    *,
    azimuth: float = 60,
    elevation: float = 15,
    axes: bool = False,
    show_numbers_from: int | None = None,
) -> None:
    """Draw each link as a line from its joint to its far end, in the colour of its branch.

    Parameters
    ----------
    model : Model
    q : array_like, shape (n,), or None
        Posture; 0 for None.
    ax : matplotlib axes
        Where to draw.
    azimuth, elevation : float
        Where the viewer is, degrees: 0, 0 on the world's x axis; 90, 0 on y.
    axes : bool
        Draw an arrow along each joint's axis, and the world's axes.
    show_numbers_from : int, optional
        Write numbers and names of the joints at the sides, the first being this.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from kinegrad import samples
    >>> ax = Figure().add_subplot()
    >>> draw_skeleton(samples.two_link(), [0.3, 0.5], ax, show_numbers_from=1)
    >>> sorted(text.get_text() for text in ax.texts)
    ['1  shoulder', '2  elbow']
    """
    from matplotlib import colormaps

    start, end, axis = _places(model, q)
    camera = _camera(azimuth, elevation)
    begin, finish, arrow = start @ camera.T, end @ camera.T, axis @ camera.T
    corners = np.concatenate([begin, finish])[:, :2]
    size = float(np.ptp(corners, axis=0).max())
    branch_of = model.topology.branch_of
    palette = colormaps["tab10" if branch_of.max() < 10 else "tab20"].colors  # type: ignore[attr-defined]

    solid = [i for i in range(model.n) if np.linalg.norm(end[i] - start[i]) > SAME_POINT]
    for i in sorted(solid, key=lambda i: begin[i, 2] + finish[i, 2]):  # the nearest last
        x, y = np.stack([begin[i], finish[i]], axis=1)[:2]
        ax.plot(x, y, color="white", linewidth=9, solid_capstyle="round", zorder=2)
        ax.plot(x, y, color=palette[branch_of[i] % len(palette)], linewidth=6, solid_capstyle="round", zorder=2)
    if axes:
        for place, along in zip(begin, arrow, strict=True):
            _arrow(ax, place, 0.085 * size * along, AXIS)
        _draw_world(ax, camera, np.array([corners[:, 0].min() - 0.02 * size, corners[:, 1].min()]), 0.09 * size)
    points = joint_points(model, q)
    places = np.array([begin[joints[0]] for joints in points])
    ax.scatter(places[:, 0], places[:, 1], s=26, c="white", edgecolors=INK, linewidths=1.2, zorder=5)
    ax.scatter(0, 0, s=44, c=WORLD, edgecolors="white", linewidths=0.9, zorder=6)
    if show_numbers_from is not None:
        _label(ax, model, points, places, show_numbers_from, size)
    ax.set_aspect("equal")
    ax.margins(0.06 if show_numbers_from is None else 0.02)
    ax.set_axis_off()


def joint_points(model: Model, q: ArrayLike | None = None) -> tuple[tuple[int, ...], ...]:
    """The joints that are at the same point of space, for each such point.

    Examples
    --------
    >>> from kinegrad import samples
    >>> joint_points(samples.human43())[1:3]
    ((6, 7, 8), (9,))
    """
    start, _, _ = _places(model, q)
    groups: list[list[int]] = []
    for i, point in enumerate(start):
        near = (group for group in groups if np.linalg.norm(start[group[0]] - point) < SAME_POINT)
        group = next(near, None)
        if group is None:
            groups.append(group := [])
        group.append(i)
    return tuple(map(tuple, groups))


def _places(model: Model, q: ArrayLike | None) -> tuple[Array, Array, Array]:
    """Of each joint: where it is, where its link ends, and its axis; in the world, shape (n, 3) each."""
    engine.check_model(model)
    posture = neutral(model) if q is None else finite("q", q, (model.nq,))
    link = forward_kinematics(model, posture).transform
    joint = link @ np.linalg.inv(model.tip)
    local = np.array([each.axis for each in model.joints])
    return joint[:, :3, 3], link[:, :3, 3], np.einsum("nij,nj->ni", joint[:, :3, :3], local)


def _camera(azimuth: float, elevation: float) -> Array:
    """Rows: to the right on the page, upwards on it, and out of it towards the viewer."""
    a, e = np.radians([azimuth, elevation])
    towards = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    return np.stack([right, np.cross(towards, right), towards])


def _arrow(ax: Axes, place: Array, along: Array, colour: str) -> None:
    x, y = place[:2]
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 8}
    ax.annotate("", (x + along[0], y + along[1]), (x, y), arrowprops=style, zorder=4)
    ax.plot([x, x + along[0]], [y, y + along[1]], linewidth=0)  # makes room for it


def _draw_world(ax: Axes, camera: Array, origin: Array, length: float) -> None:
    for along, name in zip(length * camera.T, ("x₀", "y₀", "z₀"), strict=True):
        _arrow(ax, origin, along, WORLD)
        x, y = origin + 1.25 * along[:2]
        ax.text(x, y, name, color=WORLD, fontsize=10, ha="center", va="center")


def _label(ax: Axes, model: Model, points: Sequence[Sequence[int]], places: Array, base: int, size: float) -> None:
    """Numbers and names in a column at each side, a thin line from each to its point."""
    texts = [_text(model, joints, base) for joints in points]
    left = places[:, 0] < -SAME_POINT
    for side, chosen in ((-1, np.flatnonzero(left)), (1, np.flatnonzero(~left))):
        column = side * (np.abs(places[:, 0]).max() + 0.13 * size)
        order = chosen[np.lexsort((-np.abs(places[chosen, 0]), places[chosen, 1].round(6)))]  # outer points first
        height = -np.inf
        for k in order:
            half = (0.027 if "\n" in texts[k] else 0.016) * size
            middle = max(places[k, 1], height + half)
            height = middle + half
            ax.plot([places[k, 0], column - side * 0.015 * size], [places[k, 1], middle], color="#9aa5b1",
                    linewidth=0.8, zorder=3)  # fmt: skip
            ax.text(column, middle, texts[k], color=INK, fontsize=9, va="center", linespacing=1.25,
                    ha="left" if side > 0 else "right")  # fmt: skip
            ax.plot(column + side * 0.36 * size, middle, linewidth=0)  # makes room for the text


def _text(model: Model, joints: Sequence[int], base: int) -> str:
    names = list(dict.fromkeys(model.joint_names[i].split(".")[0] for i in joints))
    numbers = joint_ranges(joints, base)
    if len(names) == 1:
        return f"{numbers}  {names[0]}"
    return f"{numbers}\n{', '.join(names)}"
