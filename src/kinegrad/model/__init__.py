"""What a mechanism is: the immutable :class:`Model`, how to build one, and how its joints connect."""

from kinegrad.model.actuation import Actuation
from kinegrad.model.builder import ModelBuilder
from kinegrad.model.coordinates import CoupledCoordinate, Quaternion
from kinegrad.model.dh import DH
from kinegrad.model.elements import Bushing, SpringDamper
from kinegrad.model.frames import Frame
from kinegrad.model.functions import LinearFunction, PiecewiseLinearFunction, PolynomialFunction, SplineFunction
from kinegrad.model.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from kinegrad.model.inertia import Inertia
from kinegrad.model.joints import Joint, free, planar, prismatic, revolute, screw, spherical, universal
from kinegrad.model.model import Model
from kinegrad.model.placement import rotate, translate
from kinegrad.model.topology import Topology

__all__ = [
    "DH", "Actuation", "Box", "Bushing", "Capsule", "CoupledCoordinate", "Cylinder", "Frame", "Inertia", "Joint",
    "LinearFunction", "Mesh", "Model", "ModelBuilder", "PiecewiseLinearFunction", "PolynomialFunction",
    "Quaternion", "Shape", "Sphere",
    "SplineFunction", "SpringDamper", "Topology",
    "free", "planar", "prismatic", "revolute", "rotate", "screw", "spherical", "translate", "universal",
]  # fmt: skip
