"""OpenSim's models, ``.osim``."""

from kinegrad.io.opensim.model_file import OpenSimFile, read_opensim

__all__ = ["OpenSimFile", "read_opensim"]
