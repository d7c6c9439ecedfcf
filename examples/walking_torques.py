"""The picture of the README: torques of a walking human with two kilograms in a hand, and their exact derivatives.

The walk is made up (``kinegrad.samples.sample_motion``), to have something to compute with. There are four pictures:
wide and upright, for a phone; on light and on dark pages.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import kinegrad as kg
from kinegrad.plot import draw_skeleton

TORQUES = {"right_hip.x": "#0072B2", "right_knee": "#D55E00", "right_shoulder.x": "#009E73", "right_elbow.x": "#CC79A7"}
CAUSES = {"right_hip.x": "#0072B2", "right_knee": "#D55E00", "right_ankle.x": "#009E73"}
NAME = "human43_walk_torques_and_derivatives"
ON_DARK = {"#000000": "#c9d1d9", "#1b2733": "#c9d1d9", "#0072b2": "#4aa8e8", "#ffffff": "#131416"}


def main(folder="out"):
    """Compute, draw, and return the largest torque of the shoulder, with the load and without it, N·m."""
    human = kg.samples.human43()
    walk = kg.samples.sample_motion(human)
    loaded = human.attach("right_hand", 2.0)  # kg
    d = kg.inverse_dynamics_derivatives(loaded, walk.q, walk.v, walk.a)
    empty = kg.inverse_dynamics(human, walk.q, walk.v, walk.a)

    Path(folder).mkdir(parents=True, exist_ok=True)
    plain = {"svg.hashsalt": "kinegrad", "svg.fonttype": "path"}  # the same bytes every time
    with matplotlib.rc_context(plain):
        for upright in (False, True):
            for dark in (False, True):
                name = f"{NAME}{'_upright' if upright else ''}{'_dark' if dark else ''}.svg"
                figure = draw(human, walk, d, upright, dark)
                figure.savefig(Path(folder, name), transparent=True, metadata={"Date": None})

    shoulder = human.speed_index("right_shoulder.x")
    most = [float(np.abs(x[:, shoulder]).max()) for x in (d.tau, empty)]
    print(f"right shoulder: {most[0]:.1f} N·m at most with 2 kg in the hand, {most[1]:.1f} without")
    return most


def draw(human, walk, d, upright, dark):
    """The body, torques over time, and derivatives of one of them: beside or above one another."""
    if upright:
        figure = Figure(figsize=(4.6, 9), layout="constrained")
        body, torques, slopes = figure.subplots(3, 1, height_ratios=[0.9, 1, 1])
    else:
        figure = Figure(figsize=(11, 4.6), layout="constrained")
        body, torques, slopes = figure.subplots(1, 3, width_ratios=[0.55, 1, 1])
    posture = walk.q[12].copy()
    posture[:3] = 0  # where it stands does not matter here
    draw_skeleton(human, posture, body, azimuth=15, elevation=8)
    knee = human.speed_index("right_knee")
    for name, colour in TORQUES.items():
        torques.plot(walk.t, d.tau[:, human.speed_index(name)], color=colour, linewidth=2, label=name)
    for name, colour in CAUSES.items():
        slope = d.dtau_dq[:, knee, human.speed_index(name)]
        slopes.plot(walk.t, slope, color=colour, linewidth=2, label=f"by q of {name}")
    titles = {body: "human43, 43 joints", torques: "torques with 2 kg in the right hand, N·m",
              slopes: "exact derivatives of the knee's torque, N·m/rad"}  # fmt: skip
    for ax, title in titles.items():
        ax.set_title(title, loc="left", fontsize=11)
    for ax in (torques, slopes):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.5", alpha=0.18)
        ax.margins(x=0)
        ax.set_xlabel("time, s")
        ax.set_xticks(np.linspace(0, 2, 5))
        below = (0.5, -0.2 if upright else -0.14)
        ax.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=below, ncols=2)
    if dark:
        figure.draw_without_rendering()
        for artist in figure.findobj():
            recolour(artist)
    return figure


def recolour(artist):
    """Ink becomes light and paper dark; other colours stay."""
    for part in ("color", "facecolor", "edgecolor", "markeredgecolor", "markerfacecolor"):
        get, change = getattr(artist, f"get_{part}", None), getattr(artist, f"set_{part}", None)
        if get is None or change is None:
            continue
        old = get()
        if isinstance(old, np.ndarray) and old.ndim == 2:
            old = old[0] if len(old) == 1 else None
        if old is not None and not (isinstance(old, str) and old in ("none", "auto")) and len(old):
            new = ON_DARK.get(to_hex(old))
            if new and (not isinstance(old, tuple | np.ndarray) or len(old) < 4 or old[3] > 0):
                change(new)


if __name__ == "__main__":
    main(*sys.argv[1:])
