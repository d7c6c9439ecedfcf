"""Design optimisation: the parameters that make an objective least, within bounds and limits, with exact gradients.

optimize_design   the best design: DesignOptimum, with its DesignIterates
Limit             a function of the design between two numbers
Simulated         J and dJ/dp of a simulated motion, as a function of the design
TorqueEffort      ∫ Σ w τ² dt of the torques that a given motion takes, as a function of the design
PeakTorque, PeakPower, Work   of the same: the largest torque or power, smoothly; what motors do
Reach, WorkspaceMargin        how far a point gets: in a direction, and beyond targets
"""

from kinegrad.optimize.functions import Simulated, TorqueEffort
from kinegrad.optimize.optimum import DesignOptimum, optimize_design
from kinegrad.optimize.peaks import PeakPower, PeakTorque, Work
from kinegrad.optimize.problem import DesignIterate, Limit
from kinegrad.optimize.workspace import Reach, WorkspaceMargin

__all__ = [
    "DesignIterate",
    "DesignOptimum",
    "Limit",
    "PeakPower",
    "PeakTorque",
    "Reach",
    "Simulated",
    "TorqueEffort",
    "Work",
    "WorkspaceMargin",
    "optimize_design",
]
