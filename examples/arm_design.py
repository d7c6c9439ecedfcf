"""How should an arm be proportioned that lifts a parcel onto a shelf?

The right arm of the human body of zhakatayev2023 lifts two kilograms from before the belly to a shelf at the height
of the shoulder, in 1.2 s.  Its effort is the integral of the squared torques of its nine joints.  Lengths and masses of
upper arm, forearm and hand are the parameters: `Design.from_function` differentiates the function that builds the
person, parcel in hand.

1. The effort's gradient, beside central differences of the whole computation.
2. The arm with the least effort whose hand still gets onto the shelf, which weighs as much in total, and none of whose
   lengths and masses differs by more than a fifth from a person's.

Run it:  python examples/arm_design.py        (some seconds; the figure goes to out/arm_design.png)
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from scipy.integrate import simpson

import kinegrad as kg
from kinegrad.simulate import DesignOptimum, Limit, TorqueEffort, optimize_design

PARTS = ("upper_arm", "forearm", "hand")
LENGTHS = {"upper_arm": 0.28, "forearm": 0.26, "hand": 0.19}  # m, as in Table 2 of zhakatayev2023
MASSES = {"upper_arm": 1.9, "forearm": 1.3, "hand": 0.5}  # kg
PARCEL = kg.Inertia.point(2.0, [0.0, 0.0, 0.0])  # kg, at the tip of the hand
FROM = {"right_shoulder.x": 10, "right_elbow.x": -85, "right_wrist.x": 0}  # degrees; forwards is negative
TO = {"right_shoulder.x": -75, "right_elbow.x": -25, "right_wrist.x": -10}
DURATION = 1.2  # s


def person(**values: float) -> kg.Model:
    """The body with arms of these lengths, such as ``forearm_length``, and masses, ``hand_mass``; parcel in hand."""
    lengths, masses = ({part: values[f"{part}_{what}"] for part in PARTS} for what in ("length", "mass"))
    human = kg.samples.human43(lengths=lengths, masses=masses)
    hand = human.link_inertia("right_hand") + PARCEL
    full = {what: {"right_hand": getattr(hand, what)} for what in ("mass", "com", "inertia")}
    return human.replace(**full)


def arm() -> kg.Design:
    """Three lengths and three masses."""
    lengths = {f"{part}_length": LENGTHS[part] for part in PARTS}
    return kg.Design.from_function(person, lengths | {f"{part}_mass": MASSES[part] for part in PARTS})


def lift(model: kg.Model, instants: int = 121) -> tuple[np.ndarray, ...]:
    """t, q, v, a: the arm goes from one posture to the other on quintics, from rest to rest; all else stands still."""
    t = np.linspace(0, DURATION, instants)
    s = (t / DURATION)[:, None]
    start, end = np.zeros(model.n), np.zeros(model.n)
    for posture, angles in ((start, FROM), (end, TO)):
        for joint, degrees in angles.items():
            posture[model.joint_index(joint)] = np.radians(degrees)
    way = end - start
    q = start + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    v = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / DURATION
    a = way * (60 * s - 180 * s**2 + 120 * s**3) / DURATION**2
    return t, q, v, a


def arm_joints(model: kg.Model) -> np.ndarray:
    """Which joints are of the right arm, (n,)."""
    joints = ("right_clavicle", "right_shoulder", "right_elbow", "right_wrist")
    return np.array([name.startswith(joints) for name in model.joint_names])


def effort_of(model: kg.Model) -> TorqueEffort:
    """∫ Σ τ² dt over the joints of the right arm."""
    t, q, v, a = lift(model)
    return TorqueEffort(q, v, a, t, weight=arm_joints(model).astype(float))


def hand_at_the_end(design: kg.Design) -> tuple[np.ndarray, np.ndarray]:
    """How far forwards and how high the tip of the hand gets, (2,), m; and how that follows the parameters, (2, 6)."""
    q = lift(design.model)[1][-1]
    place = kg.point_motion(design.model, q, link="right_hand").position
    return place[1:], kg.point_motion_design_derivatives(design, q, link="right_hand").dposition_dp[1:]


def mass_of_the_arm(design: kg.Design) -> tuple[float, list[float]]:
    """In all, kg."""
    return design.values[3:].sum(), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]


def effort_again(values: np.ndarray, names: tuple[str, ...]) -> float:
    """The effort by another way, without derivatives: build the person, take its torques, add up their squares."""
    model = person(**dict(zip(names, values, strict=True)))
    t, q, v, a = lift(model)
    tau = kg.inverse_dynamics(model, q, v, a)
    return float(simpson((tau[:, arm_joints(model)] ** 2).sum(axis=1), x=t))


def central_difference(design: kg.Design, k: int, h: float = 2e-3) -> float:
    """dJ/dp from six other arms, of the sixth order in h."""
    change = h * design.values[k] * np.eye(design.p)[k]
    values = [effort_again(design.values + step * change, design.names) for step in (-3, -2, -1, 1, 2, 3)]
    return float(np.dot([-1, 9, -45, 45, -9, 1], values)) / (60 * h * design.values[k])


def check_gradient(effort: TorqueEffort, design: kg.Design) -> float:
    """Print exact and numerical gradients; the largest relative deviation."""
    value, gradient = effort(design)
    print(f"effort of the lift: {value:.3f} N²m²s\n")
    print(f"{'parameter':<18} {'value':>7}      {'dJ/dp, exact':>16} {'central difference':>19} {'deviation':>10}")
    worst = 0.0
    for k, (name, at) in enumerate(zip(design.names, design.values, strict=True)):
        numerical = central_difference(design, k)
        deviation = abs(numerical - gradient[k]) / abs(gradient[k])
        worst = max(worst, deviation)
        unit = "m " if name.endswith("length") else "kg"
        print(f"{name:<18} {at:>7.3f} {unit} {gradient[k]:>18.8f} {numerical:>19.8f} {deviation:>10.1e}")
    return worst


def best_arm(effort: TorqueEffort, design: kg.Design) -> DesignOptimum:
    """As light a lift as lengths and masses allow."""
    reach = Limit(hand_at_the_end, lower=hand_at_the_end(design)[0])
    weight = Limit(mass_of_the_arm, sum(MASSES.values()), sum(MASSES.values()))
    bounds = [(0.8 * x, 1.2 * x) for x in design.values]
    return optimize_design(design, effort, bounds=bounds, constraints=[reach, weight])


def show(effort: TorqueEffort, design: kg.Design, best: DesignOptimum) -> None:
    print(f"\noptimum after {best.iterations} iterations, {best.evaluations} evaluations: {best.message}")
    before = effort(design)[0]
    print(f"effort {before:.3f} → {best.value:.3f} N²m²s ({100 * (best.value / before - 1):+.1f} %)\n")
    print(f"{'parameter':<18} {'before':>8} {'after':>8} {'change':>8}")
    for name, old, new in zip(design.names, design.values, best.values, strict=True):
        held = "  at its bound" if abs(abs(new / old - 1) - 0.2) < 1e-6 else ""
        print(f"{name:<18} {old:>8.4f} {new:>8.4f} {100 * (new / old - 1):>+7.1f}%{held}")
    for when, at in (("before", design), ("after", best.design)):
        forward, up = hand_at_the_end(at)[0]
        print(f"hand on the shelf {when}: {forward:.4f} m forwards, {up:.4f} m up")


def draw(effort: TorqueEffort, design: kg.Design, best: DesignOptimum, path: Path) -> None:
    """Arms from the side, torques over time, and what the effort depends on."""
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    side, torques, slopes = figure.subplots(1, 3, width_ratios=[1.15, 1.1, 0.9])
    looks = {"a person's arm": ("#8a97a6", 4.5, design.model), "the best arm": ("#c2410c", 1.8, best.design.model)}
    side.plot([0, 0], [-0.12, 0.55], color="#d7dde3", linewidth=14, solid_capstyle="round", zorder=0)
    side.add_patch(Ellipse((0, 0.69), 0.16, 0.24, color="#d7dde3", linewidth=0, zorder=0))
    for label, (colour, width, model) in looks.items():
        t, q, v, a = lift(model)
        for k in (0, len(t) // 2, -1):
            points = ["right_clavicle", "right_upper_arm", "right_forearm", "right_hand"]
            place = kg.point_motion(model, q[k], link=points).position
            side.plot(place[:, 1], place[:, 2], "o-", color=colour, linewidth=width, markersize=width + 2.5,
                      label=label if k == 0 else None)  # fmt: skip
        tau = kg.inverse_dynamics(model, q, v, a)
        for joint in TO:
            lifting = -tau[:, model.joint_index(joint)]
            torques.plot(t, lifting, color=colour, linewidth=0.6 * width + 0.4)
            if model is design.model:
                torques.text(t[-1] + 0.04, lifting[-1], joint.split("_")[1].split(".")[0], va="center")
    forward, up = hand_at_the_end(design)[0]
    side.plot([forward, forward + 0.16], [up - 0.02, up - 0.02], color="black", linewidth=1.5)
    side.text(forward + 0.16, up - 0.035, "shelf", ha="right", va="top")
    side.set(
        aspect="equal", xlim=(-0.16, 0.9), ylim=(-0.12, 0.92), xlabel="forwards, m", ylabel="up from the pelvis, m"
    )
    side.set_title("start, half-way and end of the lift")
    side.legend(frameon=False, loc="upper right")
    torques.set(
        xlabel="time, s",
        ylabel="lifting torque, N·m",
        xlim=(0, 1.5),
        ylim=(0, None),
        title="what the joints have to do",
    )
    value, gradient = effort(design)
    slopes.barh([name.replace("_", " ") for name in design.names], gradient * design.values / value, color="#33658a")
    slopes.invert_yaxis()
    slopes.set(xlabel="% more effort for 1 % more", title="what a person's effort depends on")
    for axes in (side, torques, slopes):
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"figure: {path}")


def main(folder: str = "out") -> tuple[float, DesignOptimum]:
    design = arm()
    effort = effort_of(design.model)
    deviation = check_gradient(effort, design)
    best = best_arm(effort, design)
    show(effort, design, best)
    draw(effort, design, best, Path(folder, "arm_design.png"))
    return deviation, best


if __name__ == "__main__":
    main(*sys.argv[1:])
