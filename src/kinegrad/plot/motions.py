"""A motion over time: coordinates, speeds, accelerations and torques."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinegrad.errors import InputError, shown
from kinegrad.motion import Motion
from kinegrad.plot.colours import line_styles
from kinegrad.plot.names import drawn_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_motion"]

Array = NDArray[np.float64]
LINES = 8  # when the caller does not choose
LABELS = {"q": "q", "v": "v", "a": "a", "tau": "τ"}
TURNING = {"q": "°", "v": "°/s", "a": "°/s²", "tau": "N·m"}
SLIDING = {"q": "m", "v": "m/s", "a": "m/s²", "tau": "N"}


def plot_motion(motion: Motion, names: Sequence[str] | None = None, quantities: Sequence[str] | None = None) -> Figure:
    """Curves over time, a panel for each quantity; angles in degrees.

    Parameters
    ----------
    motion : Motion
        One motion, not a batch.
    names : sequence of str, optional
        Coordinates or speeds to show; those that move most, up to eight, when not given: the figure says how many are
        not shown.
    quantities : sequence of {"q", "v", "a", "tau"}, optional
        q and v, and τ if it is known, when not given.

    Returns
    -------
    matplotlib figure
        Not registered with pyplot: ``figure.savefig(path)``.

    Examples
    --------
    >>> from kinegrad import samples
    >>> from kinegrad.simulate import simulate
    >>> motion = simulate(samples.double_pendulum(), [1.0, 0.5], [0, 0], np.linspace(0, 1, 11))
    >>> [ax.get_ylabel() for ax in plot_motion(motion).axes]
    ['q, °', 'v, °/s', 'τ, N·m']
    """
    from matplotlib.figure import Figure

    if not isinstance(motion, Motion):
        raise InputError(f"`motion` is a {type(motion).__name__}; expected a Motion")
    if motion.q.ndim != 2 or not len(motion.t):
        raise InputError(
            f"`motion` has coordinates of shape {motion.q.shape}; expected one motion, ({len(motion.t)}, n)"
        )
    rows = _quantities(motion, quantities)
    chosen, hidden = _names(motion, names)
    figure = Figure(figsize=(8, 2.0 * len(rows) + 0.8), layout="constrained")
    panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
    styles = dict(zip(chosen, line_styles(len(chosen)), strict=True))
    handles: dict[str, Any] = {}
    for ax, x in zip(panels, rows, strict=True):
        units = dict[str, None]()
        for name, values, unit in _curves(motion, x, chosen):
            colour, style = styles[name]
            line = ax.plot(motion.t, values, color=colour, linestyle=style, linewidth=1.6, label=drawn_name(name))
            handles.setdefault(name, line[0])
            units[unit] = None
        ax.set_ylabel(f"{LABELS[x]}, {' or '.join(units)}" if units else LABELS[x])
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.92", linewidth=0.8)
        ax.margins(x=0)
    figure.legend(handles.values(), map(drawn_name, handles), loc="outside right upper", frameon=False, fontsize=9)
    panels[-1].set_xlabel("time, s" + (f"      {hidden}" if hidden else ""))
    figure.suptitle(drawn_name(motion.model.name), fontsize=11, fontweight="bold", x=0.01, ha="left")
    return figure


def _quantities(motion: Motion, given: Any) -> list[str]:
    known = [x for x in ("q", "v", "a", "tau") if getattr(motion, x) is not None]
    if given is None:
        return [x for x in known if x != "a"]
    rows = [given] if isinstance(given, str) else list(given)
    for x in rows:
        if x not in known:
            raise InputError(f"`quantities` holds {shown(x)}; expected some of {', '.join(map(repr, known))}")
    if not rows:
        raise InputError("`quantities` is empty; expected at least one")
    return rows


def _names(motion: Motion, given: Any) -> tuple[list[str], str]:
    """What to show, and a sentence on what is not."""
    model = motion.model
    known = list(dict.fromkeys([*model.coordinate_names, *model.speed_names]))
    if given is not None:
        chosen = [given] if isinstance(given, str) else list(given)
        for name in chosen:
            if name not in known:
                model.coordinate_index(name)  # raises, with the closest
        if not chosen:
            raise InputError("`names` is empty; expected at least one")
        return chosen, ""
    if model.nv <= LINES:
        return known, ""
    moved = np.ptp(np.nan_to_num(motion.v), axis=0)
    largest = np.sort(np.argsort(-moved, kind="stable")[:LINES])
    return [model.speed_names[i] for i in largest], f"({model.nv - LINES} of {model.nv} that move less are not shown)"


def _curves(motion: Motion, x: str, chosen: Sequence[str]) -> list[tuple[str, Array, str]]:
    """Names, values and units of the curves of a panel."""
    _, names, kinds = motion.model.layout.columns(x)
    values, found = getattr(motion, x), []
    for k, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if name not in chosen:
            continue
        if kind == "quaternion":
            found.append((name, values[:, k], "1"))
        elif kind == "prismatic":
            found.append((name, values[:, k], SLIDING[x]))
        else:
            found.append((name, values[:, k] if x == "tau" else np.degrees(values[:, k]), TURNING[x]))
    return found
