"""Files in and out, by the suffix of the path: models; trajectories, positions and torques."""

from kinegrad.io.model_file import LeftOutWarning, ModelFile, Note, Repair, Report
from kinegrad.io.models import load, read_model, save
from kinegrad.io.names import PositionsAloneError
from kinegrad.io.netcdf_file import write_dataset
from kinegrad.io.storage_file import StorageTable, coordinate_table, read_storage, write_storage
from kinegrad.io.trajectory import (
    Positions,
    Trajectory,
    file_format,
    read_positions,
    read_trajectory,
    write_torques,
    write_trajectory,
)
from kinegrad.io.trc_file import Markers, read_trc, write_trc

__all__ = [
    "LeftOutWarning",
    "Markers",
    "ModelFile",
    "Note",
    "Positions",
    "PositionsAloneError",
    "Repair",
    "Report",
    "StorageTable",
    "Trajectory",
    "coordinate_table",
    "file_format",
    "load",
    "read_model",
    "read_positions",
    "read_storage",
    "read_trajectory",
    "read_trc",
    "save",
    "write_dataset",
    "write_storage",
    "write_torques",
    "write_trajectory",
    "write_trc",
]
