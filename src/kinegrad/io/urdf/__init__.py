"""URDF: the robots of ROS."""

from kinegrad.io.urdf.building import read

__all__ = ["read"]
