"""Simulation, and derivatives of motions with respect to design, initial state and torques.

simulate            one motion with error control, of some joints prescribed; sensitivities integrated with it
simulate_fixed      many motions in equal steps, explicit or symplectic; exact tangents of the discrete motion
UnilateralContact   a contact that opens and closes; Phase and ImpactEvent tell of it
Feedback            torques that follow the state, with their derivatives
DesignMotion        a prescribed motion that follows the parameters of a design
Objective           J = g(end) + ∫ f dt of terms: KineticEnergy, PotentialEnergy, TorqueSquared, Tracking,
                    EndPosition, UserTerm
objective_value     J of a motion
objective_gradient  dJ/dp, direct
adjoint_gradient    dJ/d(p, initial state, torques), backwards: exact for fixed steps

Objectives are defined in :mod:`kinegrad.objectives`, and optimize_design, Limit, Simulated and TorqueEffort in
:mod:`kinegrad.optimize`; all of them can be imported from here as well.
"""

from typing import Any

from kinegrad.objectives import (
    EndPosition,
    Evaluation,
    KineticEnergy,
    Moments,
    Objective,
    ObjectiveGradient,
    PotentialEnergy,
    Power,
    Term,
    TorqueNorm,
    TorqueSquared,
    Tracking,
    UserTerm,
    objective_gradient,
    objective_value,
)
from kinegrad.simulate.adaptive import Simulation, simulate
from kinegrad.simulate.adjoint import AdjointGradient, adjoint_gradient
from kinegrad.simulate.contacts import ImpactEvent, Phase, UnilateralContact
from kinegrad.simulate.design_motion import DesignMotion
from kinegrad.simulate.fixed import FixedStepSimulation, simulate_fixed
from kinegrad.simulate.law import Feedback

OPTIMIZE = ("DesignIterate", "DesignOptimum", "Limit", "Simulated", "TorqueEffort", "optimize_design")


def __getattr__(name: str) -> Any:
    """The names of :mod:`kinegrad.optimize`, which stands above this package, when they are first used."""
    if name in OPTIMIZE:
        from importlib import import_module

        return getattr(import_module("kinegrad.optimize"), name)
    raise AttributeError(f"module 'kinegrad.simulate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *OPTIMIZE})


__all__ = [
    "AdjointGradient",
    "DesignIterate",
    "DesignMotion",
    "DesignOptimum",
    "EndPosition",
    "Evaluation",
    "Feedback",
    "FixedStepSimulation",
    "ImpactEvent",
    "KineticEnergy",
    "Limit",
    "Moments",
    "Objective",
    "ObjectiveGradient",
    "Phase",
    "PotentialEnergy",
    "Power",
    "Simulated",
    "Simulation",
    "Term",
    "TorqueEffort",
    "TorqueNorm",
    "TorqueSquared",
    "Tracking",
    "UnilateralContact",
    "UserTerm",
    "adjoint_gradient",
    "objective_gradient",
    "objective_value",
    "optimize_design",
    "simulate",
    "simulate_fixed",
]
