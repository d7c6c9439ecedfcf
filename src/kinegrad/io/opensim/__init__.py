"""OpenSim's models, ``.osim``."""

from kinegrad.io.opensim.model_file import OpenSimFile, read

__all__ = ["OpenSimFile", "read"]
