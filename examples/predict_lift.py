"""A person bends to a box and lifts it: two phases, feet on the ground, stated from nothing.

    python examples/predict_lift.py [KILOGRAMS]

prints how long it takes, what knees and hips carry, and writes the motion to out/lift.csv.
"""

import sys
from pathlib import Path

import numpy as np

from kinegrad import samples
from kinegrad.io import write_trajectory
from kinegrad.motion.problem import (
    Above,
    Acceleration,
    Boundary,
    Effort,
    Foot,
    Limits,
    MotionProblem,
    Phase,
    Posture,
    Reach,
    Time,
)


def problem(kilograms=10.0):
    """Stand, bend down to a box, lift it to a shelf."""
    human = samples.human_sagittal()
    return MotionProblem(
        human,
        [
            Phase("bend", duration=(0.3, 2.0), segments=8),
            Phase("lift", duration=(0.3, 2.0), segments=8, attached={"grip": kilograms}),
        ],
        [
            Boundary("start", q=0.0, v=0.0, a=0.0),
            Reach("grip", (0.42, 0.0, 0.30), "end", phase="bend", directions="xz"),
            Boundary("end", phase="bend", v=0.0),
            Reach("grip", (0.40, 0.0, 1.10), "end", directions="xz"),
            Boundary("end", v=0.0, a=0.0),
            Foot("foot", sole=(0.0665, 0.0, 0.0), size=(0.266, 0.2), friction=0.6),
            Above("grip", 0.15, normal=(1, 0, 0), other="shank", phase="lift"),  # the box stays in front of the knees
            Limits(q={"trunk.ry": (-0.4, 1.6)}),
        ],
        [Effort(relative=True), Time(0.3), Acceleration(1e-5), Posture(1e-3)],
    )


def main(kilograms=10.0, out="out"):
    """Solve it; the solution."""
    task = problem(kilograms)
    print(task.describe())
    solution = task.solve(refine=True)  # with shorter segments, if limits are exceeded between the nodes
    print(solution.message)
    bend, lift = solution.durations
    print(f"T = {solution.duration:.3f} s: {bend:.3f} s down, {lift:.3f} s up with {kilograms:g} kg")
    tau = np.abs(solution.motion.tau)
    for joint in ("hip", "knee", "ankle", "shoulder", "elbow"):
        i = task.model.joint_index(joint)
        print(f"  {joint:8s} {tau[:, i].max():6.1f} N·m of {task.model.effort_limits[i]:.0f}")
    Path(out).mkdir(parents=True, exist_ok=True)
    motion = solution.motion
    write_trajectory(Path(out) / "lift.csv", task.model, motion.t, motion.q, motion.v, motion.a)
    return solution


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
