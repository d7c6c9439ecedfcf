"""A closed loop: the five-bar arm carries its point over an obstacle, driven by two motors in the ground."""

from __future__ import annotations

from kinegrad.motion.problem import Acceleration, Boundary, Effort, Kept, Limits, MotionProblem, Phase, Reach, Time
from kinegrad.samples import five_bar

__all__ = ["five_bar_reach"]

START, END = (-0.25, 0.0, 0.45), (0.30, 0.0, 0.40)  # m: of the point
TORQUE, PAYLOAD = 12.0, 1.0  # N·m of each motor, kg at the point


def five_bar_reach(*, segments: int = 40, nodes: int = 2, payload: float = PAYLOAD) -> MotionProblem:
    """The point of a five-bar arm from one side to the other with a payload, time and torques weighed.

    The loop is cut where the two arms meet: its two conditions hold at the breakpoints of the splines, and the force in
    the joint is unknown at every node, [xiang2008] (38).  The elbows have no motors: their torques vanish.

    Parameters
    ----------
    segments, nodes : int
        Of the cubic splines, and in each segment.
    payload : float
        kg.
    """
    model, constraints = five_bar()
    (pin,) = constraints
    ends = [
        Reach("left_elbow", START, "start", directions="xz"), Reach("left_elbow", END, "end", directions="xz"),
        Boundary("start", v=0.0, a=0.0), Boundary("end", v=0.0, a=0.0),
    ]  # fmt: skip
    return MotionProblem(
        model,
        Phase(duration=(0.1, 3.0), segments=segments, nodes=nodes, attached={"left_elbow": payload}),
        [*ends, Limits(tau=TORQUE), Kept(pin, forces=True)],
        [Time(), Effort(2e-3), Acceleration(1e-6)],
    )
