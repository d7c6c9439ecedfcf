"""Contacts, loops, rods, couplings and given joints: rows φ(q) = 0 that the motion of a model has to fulfil."""

from kinegrad.constraints.assembly import assemble, project_velocity
from kinegrad.constraints.constraint_set import ConstraintDerivatives, ConstraintSet
from kinegrad.constraints.descriptions import Constraint, Contact, Coupling, Distance, Given, Loop

__all__ = [
    "Constraint", "ConstraintDerivatives", "ConstraintSet", "Contact", "Coupling", "Distance", "Given", "Loop",
    "assemble", "project_velocity",
]  # fmt: skip
