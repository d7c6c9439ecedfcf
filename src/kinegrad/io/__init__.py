"""Files in and out: trajectories, positions and torques as CSV, NPZ or NetCDF, chosen by the suffix of the path."""

from kinegrad.io.names import PositionsAloneError
from kinegrad.io.trajectory import (
    Positions,
    Trajectory,
    file_format,
    read_positions,
    read_trajectory,
    write_torques,
    write_trajectory,
)

__all__ = [
    "Positions",
    "PositionsAloneError",
    "Trajectory",
    "file_format",
    "read_positions",
    "read_trajectory",
    "write_torques",
    "write_trajectory",
]
