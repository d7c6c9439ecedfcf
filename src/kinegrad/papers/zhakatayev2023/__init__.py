"""[zhakatayev2023] reproduced: inverse-dynamics sensitivities of the 43-joint human, beside numerical ones.

reproduction   run the experiment and write everything
experiment     what is computed and timed
disagreements  figures 5 and 6 where the paper differs, and what was tried to explain it
page           text, tables and figures of the page
jacobianest    the step rule of the paper's numerical method
peers          the same work in Pinocchio, where it is installed
terminal       the summary of a report that the command line prints
"""

from kinegrad.papers.zhakatayev2023.reproduction import Report, reproduce
from kinegrad.papers.zhakatayev2023.terminal import summary

__all__ = ["Report", "reproduce", "summary"]
