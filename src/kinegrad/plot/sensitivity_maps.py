"""Which torque feels which coordinate, and when: ∂τ/∂q of a motion as maps of joint by joint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads
from kinegrad.motion import Motion
from kinegrad.plot.given import instants

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_sensitivity_map"]

Array = NDArray[np.float64]
PANELS = 3  # instants, when the caller does not choose
NAMED = 22  # joints whose names fit along a side
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
    largest = np.abs(_entries(motion, of, loads)).max(axis=0)
    top = float(largest.max()) or 1.0
    low = 1e-4 * top
    figure = Figure(figsize=(4.6 * (1 + len(chosen)) + 1.4, 6.2), layout="constrained")
    axes = figure.subplots(1, 1 + len(chosen), squeeze=False)[0]
    span = f"{motion.t[-1] - motion.t[0]:g} s"
    sizes = np.ma.masked_where(zero, np.maximum(largest, low))
    image = axes[0].imshow(sizes, norm=LogNorm(low, top), cmap="viridis", interpolation="none")
    figure.colorbar(image, ax=axes[0], shrink=0.7, location="bottom", label=_units(of))
    axes[0].set_title(f"largest |∂τ/∂{of}| over {span}", fontsize=11)
    values = _entries(motion(chosen), of, loads)
    for ax, t, entries in zip(axes[1:], chosen, values, strict=True):
        norm = SymLogNorm(low, vmin=-top, vmax=top)
        image = ax.imshow(np.ma.masked_where(zero, entries), norm=norm, cmap="RdBu_r", interpolation="none")
        ax.set_title(f"∂τ/∂{of} at {t:g} s", fontsize=11)
    figure.colorbar(image, ax=list(axes[1:]), shrink=0.7, location="bottom", label=_units(of))
    for ax in axes:
        ax.set_facecolor("#e3e7eb")
        ax.set_xlabel({"q": "coordinate", "v": "speed", "a": "acceleration"}[of])
        _label(ax, list(model.speed_names), rows_too=ax is axes[0])
    axes[0].set_ylabel("torque")
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


def _units(of: str) -> str:
    return {"q": "N·m/rad (N, m where joints slide)", "v": "N·m·s/rad", "a": "kg·m²"}[of]


def _label(ax: object, names: list[str], *, rows_too: bool) -> None:
    """Names of all joints where they fit, of every so many where they do not."""
    step = -(-len(names) // NAMED)
    places = list(range(0, len(names), step))
    ax.set_xticks(places, [names[k] for k in places], rotation=90, fontsize=9)  # type: ignore[attr-defined]
    ax.set_yticks(places, [names[k] for k in places] if rows_too else [], fontsize=9)  # type: ignore[attr-defined]
    if step > 1 and rows_too:
        ax.text(0, -0.62, f"one name of {step} is shown", transform=ax.transAxes, fontsize=9)  # type: ignore[attr-defined]
