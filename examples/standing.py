"""What do the feet of a person carry who stands on both of them, squats, or stands on one?

The human of zhakatayev2023 floats: nothing holds its pelvis.  Its feet are welded to the ground, six rows each, by a
constraint set; a squat is the posture that closes these loops with the pelvis lowered by 15 cm; and the forces of the
rows, with the torques of all joints but the pelvis, are what it takes to stay there.  Then all muscles let go.

Run it:  python examples/standing.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import kinegrad as kg

Array = NDArray[np.float64]
FLOATING = ("pelvis.tz", "pelvis.ty", "pelvis.tx", "pelvis.rx", "pelvis.rz")
LEGS = ("pelvis", "hip", "knee", "ankle")


def on_feet(model: kg.Model, *sides: str) -> kg.ConstraintSet:
    """Feet that stay where they are while standing upright, with directions of the world."""
    feet = [kg.Loop(f"{side}_foot", _level(model, side), directions="weld", name=f"{side} foot") for side in sides]
    return kg.ConstraintSet(model, feet).held_at(np.zeros(model.n))


def _level(model: kg.Model, side: str) -> Array:
    """A frame in a foot, midway between heel and toes, that has the axes of the world while standing."""
    foot = kg.forward_kinematics(model, np.zeros(model.n)).transform[model.link_index(f"{side}_foot")]
    turned = np.eye(4)
    turned[:3, :3] = foot[:3, :3].T
    turned[:3, 3] = [0.0, 0.08, 0.0]
    return turned


def squat(model: kg.Model, feet: kg.ConstraintSet, depth: float) -> Array:
    """The posture with the pelvis lower by `depth`, m: only the legs move."""
    guess = np.zeros(model.n)
    guess[model.joint_index("pelvis.tz")] = -depth
    for side in ("left", "right"):
        for joint, angle in (("hip.x", -0.5), ("knee", 1.0), ("ankle.x", -0.5)):
            guess[model.joint_index(f"{side}_{joint}")] = angle
    legs = [name for name in model.joint_names if any(word in name for word in LEGS) and name not in FLOATING]
    return kg.assemble(model, feet, guess, keep=[name for name in model.joint_names if name not in legs])


def at_rest(model: kg.Model, feet: kg.ConstraintSet, q: Array) -> kg.ConstrainedInverseDynamics:
    """Torques of all joints but the pelvis, and forces of the feet, that hold a posture."""
    still = np.zeros(model.n)
    driven = [name for name in model.joint_names if name not in FLOATING]
    return kg.constrained_inverse_dynamics(model, feet, q, still, still, actuated=driven)


def main() -> dict[str, Array]:
    """The vertical forces of the feet in each posture, N."""
    human = kg.samples.human43(thickness=0.1)
    both, one = on_feet(human, "left", "right"), on_feet(human, "right")
    weight = human.total_mass * 9.81
    print(both, f"\n\na person of {human.total_mass:g} kg, {weight:.1f} N\n")
    upright, low = np.zeros(human.n), squat(human, both, 0.15)
    carried = {}
    for name, feet, q in (("both feet", both, upright), ("a squat", both, low), ("one foot", one, upright)):
        hold = at_rest(human, feet, q)
        rows = {row: force for row, force in zip(feet.row_names, hold.forces, strict=True) if row.endswith(".z")}
        knee = hold.tau[human.joint_index("right_knee")]
        carried[name] = np.array(list(rows.values()))
        shares = ", ".join(f"{row.removesuffix('.z')} {force:.1f} N" for row, force in rows.items())
        print(f"{name:>9}: {shares}; the right knee {abs(knee):.1f} N·m")
    fall = kg.constrained_dynamics(human, both, low, np.zeros(human.n), np.zeros(human.n), redundant="least-squares")
    carried["letting go"] = fall.forces[[both.row_names.index(f"{side} foot.z") for side in ("left", "right")]]
    head = kg.point_motion(human, low, np.zeros(human.n), fall.a, link="head").acceleration
    print(
        f"all muscles let go: the feet carry {carried['letting go'].sum():.1f} N, the head falls at {-head[2]:.1f} m/s²"
    )
    return carried


if __name__ == "__main__":
    main()
