"""Files in and out, by the suffix of the path: models; trajectories, positions and torques."""

from kinegrad.io.model_file import LeftOutWarning, ModelFile, Note, Report
from kinegrad.io.models import load, read_model, save
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
    "LeftOutWarning",
    "ModelFile",
    "Note",
    "Positions",
    "PositionsAloneError",
    "Report",
    "Trajectory",
    "file_format",
    "load",
    "read_model",
    "read_positions",
    "read_trajectory",
    "save",
    "write_torques",
    "write_trajectory",
]
