"""Two-phase bend and lift of the human in the sagittal plane, after section 4.3 of [kudruss2019]."""

from __future__ import annotations

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
from kinegrad.samples import human_sagittal

__all__ = ["BOX", "sagittal_lift"]

BOX = 10.0  # kg
FLOOR, SHELF = (0.42, 0.0, 0.30), (0.40, 0.0, 1.10)  # m: where the hands take the box, and where they bring it
WIDTH = 0.20  # m between the outer edges of both soles: the human's feet are one


def sagittal_lift(
    box: float = BOX, *, segments: int = 12, nodes: int = 2, duration: tuple[float, float] = (0.3, 2.0)
) -> MotionProblem:
    """Stand, bend to a box on the floor, and lift it to a shelf; the box hangs at the hands in the second phase.

    Feet are flat on the ground with unknown forces inside the friction cone and the centre of pressure within the sole;
    torques and ranges are limited; relative torques and time count.  The motion is at rest at its ends, and has
    continuous speeds where the box is taken.

    Parameters
    ----------
    box : float
        kg.
    segments, nodes : int
        Of each phase's cubic splines, and in each segment.
    duration : (float, float)
        Of each phase, s.
    """
    human = human_sagittal()
    heel, toe = (human.frames[name].placement[0, 3] for name in ("heel", "toe"))
    sole, length = ((heel + toe) / 2, 0.0, 0.0), toe - heel
    phases = [
        Phase("bend", duration=duration, segments=segments, nodes=nodes),
        Phase("lift", duration=duration, segments=segments, nodes=nodes, attached={"grip": box}, continuity=2),
    ]
    requirements = [
        Boundary("start", q=0.0, v=0.0, a=0.0),
        Reach("grip", FLOOR, "end", phase="bend", directions="xz"),
        Boundary("end", v=0.0, phase="bend"),
        Reach("grip", SHELF, "end", directions="xz"),
        Boundary("end", q={"trunk.ry": (-0.1, 0.3)}, v=0.0, a=0.0),  # upright again
        Foot("foot", sole, size=(length, WIDTH)),
        Above("grip", 0.15, normal=(1.0, 0.0, 0.0), other="shank", phase="lift"),  # the box in front of the knees
        Above("grip", 0.15, normal=(1.0, 0.0, 0.0), other="thigh", phase="lift"),  # and of the hip
        Above("grip", 0.20, normal=(1.0, 0.0, 0.0), other="upper_arm", phase="lift"),  # and of the shoulder
        Limits(q={"trunk.ry": (-0.4, 1.6), "trunk.tx": (-0.6, 0.6), "trunk.tz": (-0.8, 0.1)}),
    ]
    objective = [Effort(relative=True), Time(0.3), Acceleration(1e-5), Posture(1e-3)]
    return MotionProblem(human, phases, requirements, objective)
