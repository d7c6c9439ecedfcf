"""Contacts, loops, rods, couplings and given joints: rows φ(q) = 0 that the motion of a model has to fulfil."""

from kinegrad.constraints.assembly import AssembledPath, assemble, assemble_path
from kinegrad.constraints.constraint_set import ConstraintDerivatives, ConstraintSet
from kinegrad.constraints.descriptions import Constraint, Contact, Coupling, Distance, Given, Loop
from kinegrad.constraints.speeds import project_velocity

__all__ = [
    "AssembledPath", "Constraint", "ConstraintDerivatives", "ConstraintSet", "Contact", "Coupling", "Distance", "Given",
    "Loop", "assemble", "assemble_path", "project_velocity",
]  # fmt: skip
