"""Nonlinear programs: one interface, several solvers, and a check of their answers by ourselves.

:class:`NonlinearProgram` is what a problem has to offer, :func:`solve` solves it.
"""

from kinegrad.motion.nlp.program import NonlinearProgram
from kinegrad.motion.nlp.solution import Evaluations, Iterate, NonlinearSolution
from kinegrad.motion.nlp.solver import solve

__all__ = ["Evaluations", "Iterate", "NonlinearProgram", "NonlinearSolution", "solve"]
