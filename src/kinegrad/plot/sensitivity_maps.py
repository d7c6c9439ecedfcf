"""Which torque feels which coordinate, and when: ∂τ/∂q of a motion as maps of joint by joint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion import Motion
from kinegrad.plot.given import instants
from kinegrad.plot.names import drawn_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["plot_sensitivity_map"]

Array = NDArray[np.float64]
PANELS = 3  # instants, when the caller does not choose
WRITTEN, NAMED, MOST = 6, 22, 50  # joints whose entries are written, whose names fit in large and in small letters
WITH_RESPECT_TO = {"q": "dtau_dq", "v": "dtau_dv", "a": "dtau_da"}


def plot_sensitivity_map(
    motion: Motion, *, of: str = "q", times: ArrayLike | None = None, loads: Loads | None = None
) -> Figure:
    """Maps of ∂τ/∂q: the largest size of each entry over the motion, then signed values at some instants.

    Parameters
    ----------
    motion : Motion
        One motion, not a batch.
    of : {"q", "v", "a"}
        With respect to what.
    times : array_like, shape (k,), optional
        Instants to show, s, within the motion; three of them if not given.
    loads : Loads, optional
        External forces on the links.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot.  Rows are torques, columns coordinates; grey is zero by topology.

    Examples
    --------
    >>> from kinegrad import samples
    >>> from kinegrad.simulate import simulate
    >>> motion = simulate(samples.double_pendulum(), [1.0, 0.5], [0, 0], np.linspace(0, 1, 11))
    >>> [ax.get_title() for ax in plot_sensitivity_map(motion, times=[0.5]).axes[:2]]
    ['largest |∂τ/∂q| over 1 s', '∂τ/∂q at 0.5 s']
    """
    from matplotlib.colors import LogNorm, SymLogNorm
    from matplotlib.figure import Figure

    chosen = _instants(motion, times)
    if of not in WITH_RESPECT_TO:
        raise InputError(f"`of` is {shown(of)}; expected 'q', 'v' or 'a'")
    if loads is not None and not isinstance(loads, Loads):
        raise InputError(f"`loads` is {shown(loads)}; expected Loads")
    model = motion.model
    n, (rows, columns) = model.nv, model.pattern
    zero = np.ones((n, n), dtype=bool)
    zero[rows, columns] = False
    largest, signed = np.abs(_entries(motion, of, loads)).max(axis=0), _entries(motion(chosen), of, loads)
    top = float(largest.max()) or 1.0
    low = 1e-4 * top
    across = 1 + len(chosen) if n <= NAMED else 2  # large maps stand in two columns, so that names can be read
    down = -(-(1 + len(chosen)) // across)
    side = 4.2 if n <= NAMED else min(6.5, 0.13 * n + 0.6)
    figure = Figure(figsize=((side + 1.2) * across + 0.8, (side + 0.9) * down), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    axes = list(grid.flat)[: 1 + len(chosen)]
    for empty in list(grid.flat)[len(axes) :]:
        empty.remove()
    titles = [f"largest |∂τ/∂{of}| over {motion.t[-1] - motion.t[0]:g} s", *(f"∂τ/∂{of} at {t:g} s" for t in chosen)]
    for k, (ax, title) in enumerate(zip(axes, titles, strict=True)):
        norm = SymLogNorm(low, vmin=-top, vmax=top) if k else LogNorm(low, top)
        values = signed[k - 1] if k else largest
        drawn = np.ma.masked_where(zero, values if k else np.maximum(values, low))
        image = ax.imshow(drawn, norm=norm, cmap="RdBu_r" if k else "viridis", interpolation="none")
        bar = figure.colorbar(image, ax=ax, shrink=0.8, label=_units(of, model))
        if k:  # powers of ten below `low` would stand on the zero
            powers = 10.0 ** np.arange(np.ceil(np.log10(low)), np.floor(np.log10(top)) + 1)
            bar.set_ticks([*-powers[::-1], 0.0, *powers])
        ax.set_facecolor("#e3e7eb")
        ax.set_title(title, fontsize=11)
        ax.set_xlabel({"q": "coordinate", "v": "speed", "a": "acceleration"}[of])
        _label(ax, list(model.speed_names), rows_too=k % across == 0)
        if n <= WRITTEN:
            _write(ax, image, values, zero)
    return figure


def _instants(motion: Motion, times: ArrayLike | None) -> Array:
    if not isinstance(motion, Motion):
        raise InputError(f"`motion` is {shown(motion)}; expected a Motion")
    if motion.q.ndim != 2 or len(motion.t) < 2:
        raise InputError(f"`motion` has q of shape {motion.q.shape}; expected one motion of two times or more")
    first, last = motion.t[[0, -1]]
    if times is None:
        return np.linspace(first, last, PANELS)
    chosen = instants(times)
    if not (np.isfinite(chosen).all() and (chosen >= first).all() and (chosen <= last).all()):
        raise InputError(f"`times` is {shown(times)}; expected instants from {first:g} to {last:g} s")
    return chosen


def _entries(motion: Motion, of: str, loads: Loads | None) -> Array:
    found = inverse_dynamics_derivatives(motion.model, motion.q, motion.v, motion.a, loads=loads)
    return np.asarray(getattr(found, WITH_RESPECT_TO[of]))


def _units(of: str, model: Model) -> str:
    """Of entries; where joints slide, metres and newtons take the place of radians and newton metres."""
    turning = {"q": "N·m/rad", "v": "N·m·s/rad", "a": "kg·m²"}[of]
    slides = any(kind == "prismatic" for kind in model.layout.speed_kinds)
    return turning + (" (m for rad and N for N·m where joints slide)" if slides else "")


def _label(ax: Axes, names: list[str], *, rows_too: bool) -> None:
    """Names of all joints where they fit, of every so many where they do not."""
    step = -(-len(names) // MOST)
    places = list(range(0, len(names), step))
    size = 9 if len(names) <= NAMED else 7
    labels = [drawn_name(names[k]) for k in places]
    ax.set_xticks(places, labels, rotation=90, fontsize=size)
    ax.set_yticks(places, labels if rows_too else [], fontsize=size)
    if rows_too:
        ax.set_ylabel("torque" if step == 1 else f"torque (one name of {step} is shown)")


def _write(ax: Axes, image: AxesImage, values: Array, zero: NDArray[np.bool_]) -> None:
    """Numbers into the entries, light on dark colours."""
    bright = np.asarray(image.cmap(image.norm(np.asarray(image.get_array()))))[..., :3] @ [0.3, 0.59, 0.11]
    for i, j in zip(*np.nonzero(~zero), strict=True):
        ink = "white" if bright[i, j] < 0.5 else "black"
        ax.text(float(j), float(i), f"{values[i, j]:.3g}", ha="center", va="center", fontsize=8, color=ink)
