"""[anderson2002] reproduced: sensitivities to lengths and masses by three methods, on chains and a double pendulum.

reproduction      run the experiments and write everything
chain, methods    the equations: the paper's chain, and da/dp by its three methods
experiment        chains: times, agreement, rounding
extended          da/dp in extended precision, against which rounding is measured
pendulum          the double pendulum over time
misprints         formulas that cannot be right as printed
figures, findings, page   figures, findings in words, text and tables of the page
terminal          the summary of a report that the command line prints
"""

from kinegrad.papers.anderson2002.reproduction import Report, reproduce
from kinegrad.papers.anderson2002.terminal import summary

__all__ = ["Report", "reproduce", "summary"]
