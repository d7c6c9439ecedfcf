"""Motions, and how to predict them: "how will this body move from here to there, within these limits?"

Motion          t, q, v, a, τ of a model, and what is between its times: of a simulation, a file, a spline
SplineBasis     B-splines of degree 3 to 5, their derivatives with respect to control points, final time and knots
spline_torque_derivatives   of torques by the same, sparse
MotionProblem   phases, conditions, limits, contacts and objective terms of a motion that is to be found
                (:mod:`kinegrad.motion.problem` lists what it is made of)
multi_start     a problem from many guesses: its distinct optima
sweep           a problem for many parameters, here or on many machines

Everything but Motion is imported when it is first used.
"""

from importlib import import_module
from typing import Any

from kinegrad.motion.motion import Motion, check_times

# names, by the module that has them: SciPy's splines and sparse matrices take longer to import than all of kinegrad
_PROBLEM = (
    "Above", "Acceleration", "Apart", "Boundary", "Effort", "Fixed", "Follow", "Foot", "Guided", "Held", "Jerk", "Kept",
    "Limits", "MotionProblem", "MotionSolution", "Periodic", "Phase", "Posture", "Power", "Reach", "Rests", "Symmetric",
    "Time",
    "UserTerm",
)  # fmt: skip
_LAZY = {
    "SplineBasis": "kinegrad.motion.bspline",
    "spline_torque_derivatives": "kinegrad.motion.spline_torques",
} | dict.fromkeys(_PROBLEM, "kinegrad.motion.problem")
_LAZY |= dict.fromkeys(("multi_start", "sweep"), "kinegrad.motion.sweeps")


def __getattr__(name: str) -> Any:
    """A name that has not been imported yet."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'kinegrad.motion' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = ["Motion", "SplineBasis", "check_times", "spline_torque_derivatives", *_PROBLEM, "multi_start", "sweep"]
