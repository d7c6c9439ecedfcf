"""Many solves of motion problems: multi-starts and sweeps over parameters, here or on many machines.

multi_start    one problem from many random guesses: which optima there are, and how often each is found
sweep          a problem for all combinations of some parameters, from one or many guesses each
read_records   results of either, from the file to which they are written as they arrive

All take an executor of concurrent.futures or a Client of Dask.
"""

from kinegrad.motion.sweeps.records import read_records
from kinegrad.motion.sweeps.starts import MultiStart, Optimum, Start, multi_start
from kinegrad.motion.sweeps.sweep import Sweep, SweepPoint, sweep

__all__ = ["MultiStart", "Optimum", "Start", "Sweep", "SweepPoint", "multi_start", "read_records", "sweep"]
