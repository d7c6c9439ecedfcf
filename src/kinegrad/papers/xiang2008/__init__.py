"""[xiang2008] reproduced: motion prediction of a two-link arm, its numbers and figures.

reproduction      run the experiments and write everything
experiment        solves by discretisation and solver, starts, local minima, sensitivities
closed_form       the arm in closed form, its appendix
regular           regular and recursive Lagrangian equations of chains, (6) to (20)
cost              what these cost by degrees of freedom
bang_bang         the least time without splines
misprints         formulas that cannot be right as printed
figures, findings, page   figures, findings in words, text and tables of the page
terminal          the summary of a report that the command line prints
"""

from kinegrad.papers.xiang2008.reproduction import Report, reproduce
from kinegrad.papers.xiang2008.terminal import summary

__all__ = ["Report", "reproduce", "summary"]
