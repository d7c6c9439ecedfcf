"""Simulation, and how motions and their objectives change with design, initial state and torques.

simulate            one motion with error control, of some joints prescribed; sensitivities integrated with it
simulate_fixed      many motions in equal steps, explicit or symplectic; exact tangents of the discrete motion
Feedback            torques that follow the state, with their derivatives
Objective           J = g(end) + ∫ f dt of terms: KineticEnergy, PotentialEnergy, TorqueSquared, Tracking,
                    EndPosition, UserTerm
objective_value     J of a motion
objective_gradient  dJ/dp, direct
adjoint_gradient    dJ/d(p, initial state, torques), backwards: exact for fixed steps
Simulated           J and dJ/dp of a simulated motion, as a function of the design
TorqueEffort        ∫ Σ w τ² dt of the torques that a given motion takes, as a function of the design
optimize_design     the design that makes such a function least, within bounds and Limits: DesignOptimum
"""

from kinegrad.simulate.adjoint import AdjointGradient, adjoint_gradient
from kinegrad.simulate.design_objectives import Simulated, TorqueEffort
from kinegrad.simulate.design_problem import DesignIterate, Limit
from kinegrad.simulate.integrators import FixedStepSimulation, simulate_fixed
from kinegrad.simulate.law import Feedback
from kinegrad.simulate.objectives import (
    EndPosition,
    Evaluation,
    KineticEnergy,
    Moments,
    Objective,
    ObjectiveGradient,
    PotentialEnergy,
    Term,
    TorqueSquared,
    Tracking,
    UserTerm,
    objective_gradient,
    objective_value,
)
from kinegrad.simulate.optimize import DesignOptimum, optimize_design
from kinegrad.simulate.simulation import Simulation, simulate

__all__ = [
    "AdjointGradient",
    "DesignIterate",
    "DesignOptimum",
    "EndPosition",
    "Evaluation",
    "Feedback",
    "FixedStepSimulation",
    "KineticEnergy",
    "Limit",
    "Moments",
    "Objective",
    "ObjectiveGradient",
    "PotentialEnergy",
    "Simulated",
    "Simulation",
    "Term",
    "TorqueEffort",
    "TorqueSquared",
    "Tracking",
    "UserTerm",
    "adjoint_gradient",
    "objective_gradient",
    "objective_value",
    "optimize_design",
    "simulate",
    "simulate_fixed",
]
