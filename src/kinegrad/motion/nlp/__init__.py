"""Nonlinear programs: one interface, several solvers, and a check of their answers by ourselves.

NonlinearProgram   what a problem has to offer: values, exact sparse derivatives, scales, names
solve              a guess, a solver, a NonlinearSolution that is judged by the conditions of an optimum
save_solution, load_solution   solutions in files
"""

from kinegrad.motion.nlp.program import NonlinearProgram
from kinegrad.motion.nlp.saved import load_solution, save_solution
from kinegrad.motion.nlp.solution import Evaluations, Iterate, NonlinearSolution
from kinegrad.motion.nlp.solver import solve

__all__ = [
    "Evaluations",
    "Iterate",
    "NonlinearProgram",
    "NonlinearSolution",
    "load_solution",
    "save_solution",
    "solve",
]
