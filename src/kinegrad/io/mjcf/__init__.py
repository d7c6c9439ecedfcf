"""MJCF: the models of MuJoCo, compiled by MuJoCo itself."""

from kinegrad.io.mjcf.document import read

__all__ = ["read"]
