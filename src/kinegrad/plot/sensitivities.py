"""Exact derivatives beside numerical ones: curves over time with their differences, and maps of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.errors import InputError
from kinegrad.model import Model
from kinegrad.plot.given import finite, instants

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Curve", "plot_comparison", "plot_curves", "plot_error_maps"]

Array = NDArray[np.float64]
INK, EXACT = "#1b2733", "#8fbce6"
NUMERICAL = (  # colour, dashes, width, order: one over the other, so that all can be seen
    ("#1b2733", (0, (3, 3)), 1.2, 5),
    ("#d1495b", "-", 2.4, 4),
    ("#2a7f62", ":", 3.6, 3),
)
FLOOR = 1e-17  # what an error of zero is drawn at, on a logarithmic axis


@dataclass(frozen=True, eq=False)
class Curve:
    """One quantity over time.

    Attributes
    ----------
    name, unit : str
        Matplotlib text, mathematics between dollars.
    exact : ndarray, shape (N,)
    numerical : mapping of str to ndarray, shape (N,)
        Estimates of it, by the name of the method.
    """

    name: str
    unit: str
    exact: Array
    numerical: Mapping[str, Array]


def plot_comparison(t: ArrayLike, curves: Sequence[Curve]) -> Figure:
    """One row a curve: at the left exact and numerical values, at the right how far the numerical ones are off.

    Parameters
    ----------
    t : array_like, shape (N,)
        s.
    curves : sequence of Curve

    Returns
    -------
    matplotlib figure
        Not registered with pyplot.

    Examples
    --------
    >>> curve = Curve("$x$", "m", np.array([0.0, 1.0]), {"central": np.array([0.0, 1.1])})
    >>> figure = plot_comparison([0, 1], [curve])
    >>> [len(ax.lines) for ax in figure.axes]
    [2, 1]
    """
    from matplotlib.figure import Figure

    times = _checked(t, curves)
    figure = Figure(figsize=(12, 2.75 * len(curves) + 0.8), layout="constrained")
    grid = figure.subplots(len(curves), 2, sharex=True, squeeze=False)
    for (left, right), curve in zip(grid, curves, strict=True):
        left.plot(times, curve.exact, color=EXACT, linewidth=6, solid_capstyle="round", label="analytic")
        for (name, values), (colour, dashes, width, order) in zip(curve.numerical.items(), NUMERICAL, strict=False):
            left.plot(times, values, color=colour, linestyle=dashes, linewidth=width, zorder=order, label=name)
            error = np.maximum(np.abs(values - curve.exact), FLOOR)
            right.semilogy(times, error, color=colour, linewidth=1.2, label=name)
        left.set_title(curve.name, loc="left", fontsize=11, color=INK)
        left.set_ylabel(curve.unit)
        right.set_title("|numerical − analytic|", loc="left", fontsize=11, color=INK)
        right.set_ylabel(curve.unit)
        right.set_ylim(FLOOR / 2, None)
        for ax in (left, right):
            _tidy(ax)
    for ax in grid[-1]:
        ax.set_xlabel("time, s")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=10)
    return figure


def plot_curves(t: ArrayLike, curves: Sequence[Curve], *, marks: Sequence[float] = ()) -> Figure:
    """Quantities over time, two beside each other, with thin upright lines at the times `marks`.

    Examples
    --------
    >>> curves = [Curve(f"$q_{k}$", "rad", np.zeros(2), {}) for k in range(4)]
    >>> len(plot_curves([0, 1], curves, marks=[0.5]).axes)
    4
    """
    from matplotlib.figure import Figure

    times = _checked(t, curves)
    rows = -(-len(curves) // 2)
    figure = Figure(figsize=(12, 2.3 * rows + 0.5), layout="constrained")
    grid = figure.subplots(rows, 2, sharex=True, squeeze=False)
    for ax, curve in zip(grid.T.flat, curves, strict=False):
        for mark in marks:
            ax.axvline(mark, color="#d1495b", linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        ax.plot(times, curve.exact, color="#2f6fab", linewidth=2)
        ax.set_title(curve.name, loc="left", fontsize=10, color=INK)
        ax.set_ylabel(curve.unit)
        _tidy(ax)
    for ax in grid[-1]:
        ax.set_xlabel("time, s")
    return figure


def plot_error_maps(model: Model, errors: Mapping[str, Array], *, show_numbers_from: int = 0) -> Figure:
    """The size of every entry of n×n matrices in colour, by powers of ten; grey where topology makes it zero.

    Parameters
    ----------
    model : Model
        Whose branches the thin lines divide.
    errors : mapping of str to ndarray, shape (n, n)
        Titles, and what to draw under each; not negative.
    show_numbers_from : int
        Number of the first joint.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot.

    Examples
    --------
    >>> from kinegrad import samples
    >>> figure = plot_error_maps(samples.two_link(), {"a": np.full((2, 2), 1e-9), "b": np.eye(2)})
    >>> [ax.get_title() for ax in figure.axes][:2]
    ['a', 'b']
    """
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    engine.check_model(model)
    n, (rows, cols) = model.nv, model.pattern
    if not errors:
        raise InputError("`errors` is empty; expected at least one matrix to draw")
    errors = {title: finite(f"errors[{title!r}]", values, (n, n)) for title, values in errors.items()}
    possible = np.zeros((n, n), dtype=bool)
    possible[rows, cols] = True
    sizes = np.concatenate([values[possible & (values > 0)] for values in errors.values()])
    low, high = (sizes.min(), sizes.max()) if sizes.size else (FLOOR, 1.0)
    low, high = 10.0 ** np.floor(np.log10(max(low, FLOOR))), 10.0 ** np.ceil(np.log10(max(high, 10 * FLOOR)))
    norm = LogNorm(low, high)
    figure = Figure(figsize=(4.1 * len(errors) + 0.8, 4.7), layout="constrained")
    grid = figure.subplots(1, len(errors), squeeze=False)[0]
    extent = (
        show_numbers_from - 0.5,
        show_numbers_from + n - 0.5,
        show_numbers_from + n - 0.5,
        show_numbers_from - 0.5,
    )
    for ax, (title, values) in zip(grid, errors.items(), strict=True):
        ax.set_facecolor("#e3e7eb")
        shown = np.ma.masked_where(~possible, np.maximum(values, low))
        image = ax.imshow(shown, norm=norm, cmap="viridis", extent=extent, interpolation="none")
        for joints in () if model.coordinates else model.topology.branches[1:]:
            place = joints[0] + show_numbers_from - 0.5
            ax.axhline(place, color="white", linewidth=0.7)
            ax.axvline(place, color="white", linewidth=0.7)
        ax.set_title(title, fontsize=11)
        ax.set_xlabel("coordinate of joint")
        ax.spines[:].set_visible(False)
    grid[0].set_ylabel("torque of joint")
    figure.colorbar(image, ax=list(grid), shrink=0.8, pad=0.01)
    return figure


def _checked(t: ArrayLike, curves: Sequence[Curve]) -> Array:
    """The times, if there is something to draw at each of them."""
    times = instants(t)
    if not len(curves):
        raise InputError("`curves` is empty; expected at least one to draw")
    for k, curve in enumerate(curves):
        for name, values in {"exact": curve.exact, **curve.numerical}.items():
            finite(f"curves[{k}], {name}", values, times.shape)
    return times


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.92", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.margins(x=0.01)
