"""A mechanism drawn as its links and joint axes: figure 2 of [zhakatayev2023].

Parallel projection into plain two-dimensional axes: lines, arrows and labels are then sharp, are clipped nowhere,
and can be laid out on the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.configuration import neutral
from kinegrad.kinematics import forward_kinematics
from kinegrad.model import Model
from kinegrad.model.segments import link_segments
from kinegrad.model.topology import joint_ranges
from kinegrad.plot.colours import branch_colours
from kinegrad.plot.connections import attachments, coil, connections, places
from kinegrad.plot.given import check_constraints, finite
from kinegrad.plot.names import drawn_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kinegrad.constraints import ConstraintSet

__all__ = ["draw_skeleton", "joint_points", "plot_skeleton"]

Array = NDArray[np.float64]
SAME_POINT = 1e-6  # m
LINE, LETTER = 0.235, 0.085  # inches that a line and a letter of a label take
INK, WORLD, AXIS = "#1b2733", "#1f8a3b", "#5d6b78"
COIL = 0.018  # radius of the coil of a spring, of the size of the drawing
STYLES: dict[str, dict[str, Any]] = {
    "spring": {"color": INK, "linewidth": 1.2},
    "rod": {"color": INK, "linewidth": 2.5, "marker": "o", "markersize": 4},
    "bushing": {"color": INK, "linewidth": 1.2, "linestyle": ":", "marker": "s", "markersize": 6,
                "markerfacecolor": "white"},
    "loop": {"color": INK, "linewidth": 1.0, "linestyle": ":", "marker": "o", "markersize": 5.5,
             "markerfacecolor": "white"},
    "contact": {"color": INK, "linewidth": 0.0, "marker": "^", "markersize": 7, "markerfacecolor": "white"},
}  # fmt: skip


def plot_skeleton(
    model: Model,
    q: ArrayLike | None = None,
    *,
    constraints: ConstraintSet | None = None,
    show_numbers_from: int = 0,
) -> Figure:
    """Draw the mechanism twice: from the side with its joint axes, and from the front with its joints named.

    Parameters
    ----------
    model : Model
    q : array_like, shape (n,), optional
        Posture; 0 when not given.
    constraints : ConstraintSet, optional
        Of the model: links are drawn to their points, and loops, rods and contacts are shown.
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
    draw_skeleton(model, q, left, constraints=constraints, azimuth=52, elevation=16, axes=True)
    left.set_title("links and joint axes", color=INK, fontweight="bold", fontsize=11)
    draw_skeleton(
        model, q, right, constraints=constraints, azimuth=90, elevation=14, show_numbers_from=show_numbers_from
    )
    right.set_title("joints that meet at each point", color=INK, fontweight="bold", fontsize=11)
    return figure


def draw_skeleton(
    model: Model,
    q: ArrayLike | None,
    ax: Axes,
    *,
    constraints: ConstraintSet | None = None,
    azimuth: float = 60,
    elevation: float = 15,
    axes: bool = False,
    show_numbers_from: int | None = None,
) -> None:
    """Draw each link as lines from its joint to the joints it carries, or to its end, in the colour of its branch.

    Springs are drawn as coils.

    Parameters
    ----------
    model : Model
    q : array_like, shape (n,), or None
        Posture; 0 for None.
    ax : matplotlib axes
        Where to draw.
    constraints : ConstraintSet, optional
        Of the model: links are drawn to their points, and loops, rods and contacts are shown.
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
    scene = Scene(model, _posture(model, q)[None], constraints)
    camera = _camera(azimuth, elevation)
    lines = scene.lines[0] @ camera.T
    begin, arrow = scene.joints[0] @ camera.T, scene.axes[0] @ camera.T
    corners = np.concatenate([begin, lines.reshape(-1, 3), scene.ends[0].reshape(-1, 3) @ camera.T])[:, :2]
    size = max(float(np.ptp(corners, axis=0).max()), SAME_POINT)
    colours = branch_colours(int(model.topology.branch_of.max()) + 1)
    for k in np.argsort(lines[:, :, 2].sum(axis=1), kind="stable"):  # the nearest last
        x, y = lines[k, :, :2].T
        colour = colours[model.topology.branch_of[scene.owners[k]]]
        ax.plot(x, y, color="white", linewidth=9, solid_capstyle="round", zorder=2)
        ax.plot(x, y, color=colour, linewidth=6, solid_capstyle="round", zorder=2)
    for x, y, style in scene.connected(0, camera, size):
        ax.plot(x, y, zorder=4, **style)
    if axes:
        for place, along in zip(begin, arrow, strict=True):
            _arrow(ax, place, 0.085 * size * along, AXIS)
        _draw_world(ax, camera, np.array([corners[:, 0].min() - 0.16 * size, corners[:, 1].min()]), 0.09 * size)
    points = joint_points(model, q)
    places = np.array([begin[joints[0]] for joints in points])
    ax.scatter(places[:, 0], places[:, 1], s=26, c="white", edgecolors=INK, linewidths=1.2, zorder=5)
    ax.scatter(0, 0, s=44, c=WORLD, edgecolors="white", linewidths=0.9, zorder=6)
    if show_numbers_from is not None:
        _label(ax, model, points, places, show_numbers_from, corners, size)
    for end in (corners[:, 1].min() - 0.05 * size, corners[:, 1].max() + 0.05 * size):
        ax.plot(corners[0, 0], end, linewidth=0)  # room for lines that lie flat
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
    start = Scene(model, _posture(model, q)[None]).joints[0]
    groups: list[list[int]] = []
    for i, point in enumerate(start):
        near = (group for group in groups if np.linalg.norm(start[group[0]] - point) < SAME_POINT)
        group = next(near, None)
        if group is None:
            groups.append(group := [])
        group.append(i)
    return tuple(map(tuple, groups))


class Scene:
    """Of each posture (m, nq): where joints are and point, (m, n, 3), and the lines of links, (m, lines, 2, 3).

    `owners` are the links of the lines; `ends` are where the two points of each connection are, (m, connections, 2, 3).
    """

    def __init__(self, model: Model, q: Array, constraints: ConstraintSet | None = None) -> None:
        check_constraints(model, constraints)
        self.connections = connections(model, constraints)
        self.ends = places(model, self.connections, q)
        link = forward_kinematics(model, q).transform
        joint = link @ np.linalg.inv(model.tip)
        local = np.array([each.axis for each in model.joints])
        self.joints = joint[..., :3, 3]
        self.axes = np.einsum("mnij,nj->mni", joint[..., :3, :3], local)
        segments = link_segments(model, attachments(self.connections))
        self.owners = [segment.link for segment in segments]
        ends = np.array([(segment.start, segment.end) for segment in segments]).reshape(-1, 2, 3)
        frames = link[:, self.owners]
        self.lines = np.einsum("mlij,lkj->mlki", frames[..., :3, :3], ends) + frames[:, :, None, :3, 3]

    def connected(self, k: int, camera: Array, size: float) -> list[tuple[Array, Array, dict[str, Any]]]:
        """Coordinates on the page, and the style, of what connects links in posture k."""
        found = []
        for each, (start, end) in zip(self.connections, self.ends[k], strict=True):
            path = coil(start, end, COIL * size) if each.kind == "spring" else np.array([start, end])
            if each.kind == "contact":
                path = path[:1]
            x, y = path @ camera[0], path @ camera[1]
            found.append((x, y, STYLES[each.kind]))
        return found


def _posture(model: Model, q: ArrayLike | None) -> Array:
    engine.check_model(model)
    return neutral(model) if q is None else finite("q", q, (model.nq,))


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


def _label(
    ax: Axes, model: Model, points: Sequence[Sequence[int]], places: Array, base: int, corners: Array, size: float
) -> None:  # fmt: skip
    """Numbers and names in a column at each side, a thin line from each to its point; none overlaps another."""
    texts = [_text(model, joints, base) for joints in points]
    width, height = _inches(ax)
    low, high = corners.min(axis=0), corners.max(axis=0)
    middle_x, gap = (low[0] + high[0]) / 2, 0.13 * size
    left = places[:, 0] < middle_x - SAME_POINT
    sides = {-1: np.flatnonzero(left), 1: np.flatnonzero(~left)}
    rows = {side: [line for k in own for line in texts[k].split("\n")] for side, own in sides.items()}
    letters = {side: max(map(len, lines), default=0) for side, lines in rows.items()}
    room = max(width - LETTER * sum(letters.values()), 0.2 * width)
    scale = max((high[0] - low[0] + 2 * gap) / room, (high[1] - low[1]) / height)  # data per inch
    for side, chosen in sides.items():
        column = (high[0] if side > 0 else low[0]) + side * gap
        order = chosen[np.lexsort((-np.abs(places[chosen, 0] - middle_x), places[chosen, 1].round(6)))]  # outer first
        top = -np.inf
        for k in order:
            half = LINE * scale * (1 + texts[k].count("\n")) / 2
            middle = max(places[k, 1], top + half)
            top = middle + half
            ax.plot([places[k, 0], column - side * 0.015 * size], [places[k, 1], middle], color="#9aa5b1",
                    linewidth=0.8, zorder=3)  # fmt: skip
            ax.text(column, middle, texts[k], color=INK, fontsize=9, va="center", linespacing=1.25,
                    ha="left" if side > 0 else "right")  # fmt: skip
            ax.plot(column + side * LETTER * letters[side] * scale, middle, linewidth=0)  # makes room for the text
            ax.plot(column, middle + half, linewidth=0)


def _inches(ax: Axes) -> tuple[float, float]:
    """About how large the axes will be."""
    figure: Any = ax.get_figure()
    columns = max(len(figure.axes), 1)
    width, height = figure.get_size_inches()
    share = 1 / 1.42 if columns > 1 else 1.0  # as in plot_skeleton
    return float(width * share * 0.95), float(height * 0.9)


def _text(model: Model, joints: Sequence[int], base: int) -> str:
    names = list(map(drawn_name, dict.fromkeys(model.joint_names[i].split(".")[0] for i in joints)))
    numbers = joint_ranges(joints, base)
    if len(names) == 1:
        return f"{numbers}  {names[0]}"
    rows = [", ".join(names[k : k + 2]) for k in range(0, len(names), 2)]
    return "\n".join([numbers, *rows])
