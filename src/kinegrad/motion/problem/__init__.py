"""Motion problems: what a motion is to be, declared; and the nonlinear program that follows from it.

MotionProblem   phases, requirements and objective, checked; solve, describe, check_derivatives
Phase           a stretch of the motion: its splines, its duration, its loads, what is attached
Boundary, Limits, Fixed, Symmetric, Periodic            of coordinates
Held, Reach, Guided, Above, Apart                       of points
Foot, Kept, Rests                                       contacts, loops, resting loads, with unknown forces
Time, Effort, Power, Acceleration, Jerk, Posture, Follow, UserTerm     terms of the objective
"""

from kinegrad.motion.problem.places import Above, Apart, Foot, Guided, Held, Kept, Reach
from kinegrad.motion.problem.problem import MotionProblem
from kinegrad.motion.problem.requirements import Boundary, Fixed, Limits, Periodic, Phase, Requirement, Symmetric
from kinegrad.motion.problem.resting import Rests
from kinegrad.motion.problem.solution import MotionSolution
from kinegrad.motion.problem.terms import Acceleration, Effort, Follow, Jerk, Posture, Power, Term, Time, UserTerm

__all__ = [
    "Above",
    "Acceleration",
    "Apart",
    "Boundary",
    "Effort",
    "Fixed",
    "Follow",
    "Foot",
    "Guided",
    "Held",
    "Jerk",
    "Kept",
    "Limits",
    "MotionProblem",
    "MotionSolution",
    "Periodic",
    "Phase",
    "Posture",
    "Power",
    "Reach",
    "Requirement",
    "Rests",
    "Symmetric",
    "Term",
    "Time",
    "UserTerm",
]
