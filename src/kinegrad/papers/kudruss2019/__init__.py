"""[kudruss2019] reproduced: errors and efforts of directional derivatives by four modes.

reproduction      run the experiments and write everything
cart              its cart-pendulum in closed form
systems           the mechanisms, and the functions that are differentiated
accuracy          figure 1: errors against closed forms
effort, linear    figure 2: what derivatives cost; the linear system alone
lifting           figure 3: how optimisers converge on a lifting motion
misprints         formulas that cannot be right as printed
figures, findings, page   figures, findings in words, text and tables of the page
terminal          the summary of a report that the command line prints
"""

from kinegrad.papers.kudruss2019.reproduction import Report, reproduce
from kinegrad.papers.kudruss2019.terminal import summary

__all__ = ["Report", "reproduce", "summary"]
