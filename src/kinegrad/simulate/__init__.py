"""Simulation, and how motions and their objectives change with design, initial state and torques.

simulate            one motion with error control, of some joints prescribed; sensitivities integrated with it
simulate_fixed      many motions in equal steps; exact tangents of the discrete motion
Feedback            torques that follow the state, with their derivatives
Objective           J = g(end) + ∫ f dt of terms: KineticEnergy, TorqueSquared, Tracking, EndPosition, UserTerm
objective_value     J of a motion
objective_gradient  dJ/dp, direct
adjoint_gradient    dJ/d(p, initial state, torques), backwards: exact for fixed steps
"""

from kinegrad.simulate.adjoint import AdjointGradient, adjoint_gradient
from kinegrad.simulate.integrators import FixedStepSimulation, simulate_fixed
from kinegrad.simulate.law import Feedback
from kinegrad.simulate.objectives import (
    EndPosition,
    Evaluation,
    KineticEnergy,
    Moments,
    Objective,
    ObjectiveGradient,
    Term,
    TorqueSquared,
    Tracking,
    UserTerm,
    objective_gradient,
    objective_value,
)
from kinegrad.simulate.simulation import Simulation, simulate

__all__ = [
    "AdjointGradient",
    "EndPosition",
    "Evaluation",
    "Feedback",
    "FixedStepSimulation",
    "KineticEnergy",
    "Moments",
    "Objective",
    "ObjectiveGradient",
    "Simulation",
    "Term",
    "TorqueSquared",
    "Tracking",
    "UserTerm",
    "adjoint_gradient",
    "objective_gradient",
    "objective_value",
    "simulate",
    "simulate_fixed",
]
