"""The picture of the README: torques of a walking human with two kilograms in a hand, and their exact derivatives.

The walk is made up (``kinegrad.samples.sample_motion``), to have something to compute with.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import kinegrad as kg
from kinegrad.plot import draw_skeleton

TORQUES = {"right_hip.x": "#0072B2", "right_knee": "#D55E00", "right_shoulder.x": "#009E73", "right_elbow.x": "#CC79A7"}
CAUSES = {"right_hip.x": "#0072B2", "right_knee": "#D55E00", "right_ankle.x": "#009E73"}


def main(folder="out"):
    """Compute, draw, and return the largest torque of the shoulder, with the load and without it, N·m."""
    human = kg.samples.human43()
    walk = kg.samples.sample_motion(human)
    loaded = human.attach("right_hand", 2.0)  # kg
    d = kg.inverse_dynamics_derivatives(loaded, walk.q, walk.v, walk.a)
    empty = kg.inverse_dynamics(human, walk.q, walk.v, walk.a)

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[0.55, 1, 1])
    posture = walk.q[12].copy()
    posture[:3] = 0  # where it stands does not matter here
    draw_skeleton(human, posture, left, azimuth=15, elevation=8)
    left.set_title("human43, 43 joints", loc="left", fontsize=11)
    knee = human.speed_index("right_knee")
    for name, colour in TORQUES.items():
        middle.plot(walk.t, d.tau[:, human.speed_index(name)], color=colour, linewidth=2, label=name)
    for name, colour in CAUSES.items():
        slope = d.dtau_dq[:, knee, human.speed_index(name)]
        right.plot(walk.t, slope, color=colour, linewidth=2, label=f"by q of {name}")
    middle.set_title("torques with 2 kg in the right hand, N·m", loc="left", fontsize=11)
    right.set_title("exact derivatives of the knee's torque, N·m/rad", loc="left", fontsize=11)
    for ax in (middle, right):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="0.92")
        ax.margins(x=0)
        ax.set_xlabel("time, s")
        ax.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    Path(folder).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(folder, "human43_walk_torques_and_derivatives.png"), dpi=110)

    shoulder = human.speed_index("right_shoulder.x")
    most = [float(np.abs(x[:, shoulder]).max()) for x in (d.tau, empty)]
    print(f"right shoulder: {most[0]:.1f} N·m at most with 2 kg in the hand, {most[1]:.1f} without")
    return most


if __name__ == "__main__":
    main(*sys.argv[1:])
