"""Objectives of a motion, J = g(end) + ∫ f dt, and their derivatives with respect to design parameters.

Objective           g and f as sums of terms: KineticEnergy, PotentialEnergy, TorqueSquared, Tracking, EndPosition,
                    UserTerm
objective_value     J of a motion
objective_gradient  dJ/dp by the direct method, from the sensitivities of the motion

The gradient by the adjoint method is :func:`kinegrad.simulate.adjoint_gradient`.
"""

from kinegrad.objectives.objective import Objective, ObjectiveGradient, objective_gradient, objective_value
from kinegrad.objectives.terms import (
    EndPosition,
    Evaluation,
    KineticEnergy,
    Moments,
    PotentialEnergy,
    Power,
    Term,
    TorqueNorm,
    TorqueSquared,
    Tracking,
    UserTerm,
)

__all__ = [
    "EndPosition",
    "Evaluation",
    "KineticEnergy",
    "Moments",
    "Objective",
    "ObjectiveGradient",
    "PotentialEnergy",
    "Power",
    "Term",
    "TorqueNorm",
    "TorqueSquared",
    "Tracking",
    "UserTerm",
    "objective_gradient",
    "objective_value",
]
