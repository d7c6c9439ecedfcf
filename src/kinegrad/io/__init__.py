"""Files in and out: trajectories and torques as CSV, NPZ or NetCDF, chosen by the suffix of the path."""

from kinegrad.io.trajectory import Trajectory, file_format, read_trajectory, write_torques, write_trajectory

__all__ = ["Trajectory", "file_format", "read_trajectory", "write_torques", "write_trajectory"]
