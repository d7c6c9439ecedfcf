"""kinegrad: how robots, machines and human bodies move, and exactly how that changes with everything.

The map
-------
model        Model, ModelBuilder, Inertia, Topology, DH; joints: revolute, prismatic, screw, spherical, universal,
             planar, free; placements: translate, rotate; Frame: a tool or a marker fixed in a link, by name;
             to draw: Shape of Sphere, Cylinder, Capsule, Box, Mesh; functions that couple joints: LinearFunction,
             PolynomialFunction, SplineFunction, PiecewiseLinearFunction; force elements between links: SpringDamper,
             Bushing; Actuation
configuration  integrate, difference, neutral, random_configuration: coordinates that are added and subtracted
samples      human43, human_sagittal, two_link, puma560, double_pendulum, multi_pendulum, spatial_chain, cart_pendulum,
             four_bar, five_bar, slider_crank, stewart_platform, random_tree; sample_motion
kinematics   forward_kinematics, point_motion, jacobian
             and their derivatives: forward_kinematics_derivatives, point_motion_derivatives; second ones, weighted:
             point_motion_hessian
dynamics     inverse_dynamics, forward_dynamics, hybrid_dynamics, mass_matrix, bias_forces, gravity_forces; Loads
             and their derivatives: forward_dynamics_derivatives, hybrid_dynamics_derivatives,
             inverse_dynamics_derivatives, inverse_dynamics_jvp,
             inverse_dynamics_vjp, inverse_dynamics_load_derivatives; second derivatives, weighted:
             inverse_dynamics_hessian, inverse_dynamics_second_order, inverse_dynamics_hvp,
             inverse_dynamics_hessian_tensors, forward_dynamics_hessian
             directional: along many directions of the state at once, exact or by differences
constraints  ConstraintSet of Contact, Loop, Distance, Coupling, Given: errors, Jacobian, drift, and their derivatives;
             assemble, assemble_path, project_velocity
constrained  constrained_dynamics, constrained_hybrid_dynamics, constrained_inverse_dynamics, impact: motion that
             constraints leave, also where motors prescribe a part of it
             and their derivatives: constrained_dynamics_derivatives, constrained_dynamics_load_derivatives,
             constrained_hybrid_dynamics_derivatives, constrained_hybrid_dynamics_design_derivatives,
             constrained_inverse_dynamics_derivatives, impact_derivatives, constrained_dynamics_design_derivatives,
             impact_design_derivatives; second ones, weighted: constrained_dynamics_hessian
energy       kinetic_energy, potential_energy, center_of_mass, momentum
             and their derivatives: center_of_mass_derivatives, momentum_derivatives; second ones, weighted:
             center_of_mass_hessian, momentum_hessian
design       Design: parameters of a model, by name or by a function that builds it;
             inverse_dynamics_design_derivatives, inverse_dynamics_design_vjp, inverse_dynamics_design_hessian,
             forward_dynamics_design_derivatives, hybrid_dynamics_design_derivatives, mass_matrix_design_derivatives,
             transform_design_derivatives, point_motion_design_derivatives, energy_design_derivatives,
             constraint_design_derivatives, constraint_jacobian_design_derivatives, constraint_design_hessian
motion       Motion: t, q, v, a, τ of a model, and what is between: of a simulation, a file, a spline;
             MotionProblem of Phases, requirements and terms: a motion that is predicted; multi_start, sweep
simulate     simulate, simulate_fixed, Feedback; adjoint_gradient
objectives   Objective and its terms, objective_value, objective_gradient
optimize     optimize_design: the best design within bounds and limits; Simulated, TorqueEffort, Limit
regressor    inverse_dynamics_regressor, inertial_parameters: torques as linear in masses, moments and inertias
compare      numerical_jacobian: finite differences, complex step, adaptive, to compare with
bridges      to_jax, to_torch, to_casadi: inverse dynamics and its derivatives inside other packages;
             from_pinocchio, to_pinocchio, from_mujoco, to_mujoco: states of one mechanism in both
files        load, save: models in URDF, MJCF, OpenSim and kinegrad TOML; what is wrong with a file is a FileError
io           read_model: a model with its constraints and a report; read_trajectory, read_positions, write_trajectory,
             write_torques: CSV, NPZ, NetCDF
             read_trc, read_storage: markers, and .mot and .sto files of OpenSim
recordings   read_motion, motion_from_positions: measured positions alone, filtered or smoothed, with v and a; low_pass
             inverse_kinematics: coordinates of markers; read_c3d, plates_of; analyze_recording: torques, error bars
plot         joint and branch graphs, skeletons, torques, sensitivities (matplotlib)
view         Viewer: a model in the browser; export_page: as a page of its own; picture, film
predictions  motions to predict, by name: ``kinegrad predict human43-lift``
papers       the four papers, reproduced: ``kinegrad reproduce anderson2002``
threads      set_threads, get_threads
errors       KinegradError and its kinds; KinegradWarning and its kinds

Packages from simulate on are imported when they are first used, as ``kinegrad.plot`` or by an import.

Arrays are float64; the last axis is the degree of freedom, leading axes are any batch.

>>> import numpy as np, kinegrad as kg
>>> human = kg.samples.human43()
>>> t = np.linspace(0, 3, 301)[:, None]
>>> q, v, a = (np.broadcast_to(x, (301, 43)) for x in (np.sin(t), np.cos(t), -np.sin(t)))
>>> kg.inverse_dynamics(human, q, v, a).shape
(301, 43)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kinegrad import samples
from kinegrad._engine import get_threads, set_threads
from kinegrad.configuration import difference, integrate, neutral, random_configuration
from kinegrad.constrained.derivatives import (
    ConstrainedDynamicsDerivatives,
    ConstrainedLoadDerivatives,
    ImpactDerivatives,
    constrained_dynamics_derivatives,
    constrained_dynamics_load_derivatives,
    impact_derivatives,
)
from kinegrad.constrained.design import (
    ConstrainedDynamicsDesignDerivatives,
    ImpactDesignDerivatives,
    constrained_dynamics_design_derivatives,
    impact_design_derivatives,
)
from kinegrad.constrained.dynamics import ConstrainedDynamics, Impact, constrained_dynamics, impact
from kinegrad.constrained.hessian import ConstrainedDynamicsHessian, constrained_dynamics_hessian
from kinegrad.constrained.hybrid import (
    ConstrainedHybridDynamics,
    ConstrainedHybridDynamicsDerivatives,
    constrained_hybrid_dynamics,
    constrained_hybrid_dynamics_derivatives,
)
from kinegrad.constrained.hybrid_design import (
    ConstrainedHybridDynamicsDesignDerivatives,
    constrained_hybrid_dynamics_design_derivatives,
)
from kinegrad.constrained.inverse import (
    ConstrainedInverseDynamics,
    ConstrainedInverseDynamicsDerivatives,
    constrained_inverse_dynamics,
    constrained_inverse_dynamics_derivatives,
)
from kinegrad.constraints import (
    AssembledPath,
    ConstraintDerivatives,
    ConstraintSet,
    Contact,
    Coupling,
    Distance,
    Given,
    Loop,
    assemble,
    assemble_path,
    project_velocity,
)
from kinegrad.design import (
    ConstraintDesignDerivatives,
    ConstraintDesignHessian,
    Design,
    EnergyDesignDerivatives,
    HybridDynamicsDesignDerivatives,
    InverseDynamicsDesignHessian,
    PointMotionDesignDerivatives,
    constraint_design_derivatives,
    constraint_design_hessian,
    constraint_jacobian_design_derivatives,
    energy_design_derivatives,
    forward_dynamics_design_derivatives,
    hybrid_dynamics_design_derivatives,
    inverse_dynamics_design_derivatives,
    inverse_dynamics_design_hessian,
    inverse_dynamics_design_vjp,
    mass_matrix_design_derivatives,
    point_motion_design_derivatives,
    transform_design_derivatives,
)
from kinegrad.directional import Directional, directional
from kinegrad.dynamics import (
    bias_forces,
    forward_dynamics,
    gravity_forces,
    inverse_dynamics,
    mass_matrix,
)
from kinegrad.dynamics_derivatives import (
    InverseDynamicsDerivatives,
    InverseDynamicsGradient,
    LoadDerivatives,
    inverse_dynamics_derivatives,
    inverse_dynamics_jvp,
    inverse_dynamics_load_derivatives,
    inverse_dynamics_vjp,
)
from kinegrad.dynamics_hessian import (
    InverseDynamicsHessian,
    InverseDynamicsSecondOrder,
    InverseDynamicsTensors,
    inverse_dynamics_hessian,
    inverse_dynamics_hessian_tensors,
    inverse_dynamics_hvp,
    inverse_dynamics_second_order,
)
from kinegrad.energy import Momentum, center_of_mass, kinetic_energy, momentum, potential_energy
from kinegrad.energy_derivatives import MomentumDerivatives, center_of_mass_derivatives, momentum_derivatives
from kinegrad.errors import (
    BranchWarning,
    FileError,
    InputError,
    KinegradError,
    KinegradWarning,
    ModelError,
    RecordingWarning,
    SingularError,
    SolveError,
    UnfinishedWarning,
    UnitsWarning,
)
from kinegrad.forward_derivatives import ForwardDynamicsDerivatives, forward_dynamics_derivatives
from kinegrad.forward_hessian import ForwardDynamicsHessian, forward_dynamics_hessian
from kinegrad.hybrid import HybridDynamics, hybrid_dynamics
from kinegrad.hybrid_derivatives import HybridDynamicsDerivatives, hybrid_dynamics_derivatives
from kinegrad.kinematics import (
    ForwardKinematics,
    Jacobian,
    PointMotion,
    forward_kinematics,
    jacobian,
    point_motion,
)
from kinegrad.kinematics_derivatives import (
    ForwardKinematicsDerivatives,
    PointMotionDerivatives,
    forward_kinematics_derivatives,
    point_motion_derivatives,
)
from kinegrad.kinematics_hessian import (
    MomentumHessian,
    PointMotionHessian,
    center_of_mass_hessian,
    momentum_hessian,
    point_motion_hessian,
)
from kinegrad.loads import Loads
from kinegrad.model import (
    DH,
    Actuation,
    Box,
    Bushing,
    Capsule,
    CoupledCoordinate,
    Cylinder,
    Frame,
    Inertia,
    Joint,
    LinearFunction,
    Mesh,
    Model,
    ModelBuilder,
    PiecewiseLinearFunction,
    PolynomialFunction,
    Quaternion,
    Shape,
    Sphere,
    SplineFunction,
    SpringDamper,
    Topology,
    free,
    planar,
    prismatic,
    revolute,
    rotate,
    screw,
    spherical,
    translate,
    universal,
)
from kinegrad.motion import Motion
from kinegrad.packed_matrix import PackedMatrix
from kinegrad.regressor import inertial_parameters, inverse_dynamics_regressor

if TYPE_CHECKING:
    from kinegrad.io import load, save

__version__ = "0.1.0"


# imported on first use: they bring SciPy's integrators, matplotlib or xarray, which take a while
_LAZY = (
    "bridges",
    "compare",
    "io",
    "objectives",
    "optimize",
    "papers",
    "plot",
    "predictions",
    "recordings",
    "simulate",
    "view",
)
_FROM_IO = ("load", "save")
_TOOLS = ("cli", "warm")  # likewise, but no part of ``from kinegrad import *``


def __getattr__(name: str) -> Any:
    """A subpackage, or a function of one, that has not been imported yet."""
    if name in _LAZY or name in _TOOLS:
        return import_module(f"kinegrad.{name}")
    if name in _FROM_IO:
        return getattr(import_module("kinegrad.io"), name)
    raise AttributeError(f"module 'kinegrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_FROM_IO, *_TOOLS})


__all__ = [
    "DH",
    "Actuation",
    "AssembledPath",
    "Box",
    "BranchWarning",
    "Bushing",
    "Capsule",
    "ConstrainedDynamics",
    "ConstrainedDynamicsDerivatives",
    "ConstrainedDynamicsDesignDerivatives",
    "ConstrainedDynamicsHessian",
    "ConstrainedHybridDynamics",
    "ConstrainedHybridDynamicsDerivatives",
    "ConstrainedHybridDynamicsDesignDerivatives",
    "ConstrainedInverseDynamics",
    "ConstrainedInverseDynamicsDerivatives",
    "ConstrainedLoadDerivatives",
    "ConstraintDerivatives",
    "ConstraintDesignDerivatives",
    "ConstraintDesignHessian",
    "ConstraintSet",
    "Contact",
    "CoupledCoordinate",
    "Coupling",
    "Cylinder",
    "Design",
    "Directional",
    "Distance",
    "EnergyDesignDerivatives",
    "FileError",
    "ForwardDynamicsDerivatives",
    "ForwardDynamicsHessian",
    "ForwardKinematics",
    "ForwardKinematicsDerivatives",
    "Frame",
    "Given",
    "HybridDynamics",
    "HybridDynamicsDerivatives",
    "HybridDynamicsDesignDerivatives",
    "Impact",
    "ImpactDerivatives",
    "ImpactDesignDerivatives",
    "Inertia",
    "InputError",
    "InverseDynamicsDerivatives",
    "InverseDynamicsDesignHessian",
    "InverseDynamicsGradient",
    "InverseDynamicsHessian",
    "InverseDynamicsSecondOrder",
    "InverseDynamicsTensors",
    "Jacobian",
    "Joint",
    "KinegradError",
    "KinegradWarning",
    "LinearFunction",
    "LoadDerivatives",
    "Loads",
    "Loop",
    "Mesh",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Momentum",
    "MomentumDerivatives",
    "MomentumHessian",
    "Motion",
    "PackedMatrix",
    "PiecewiseLinearFunction",
    "PointMotion",
    "PointMotionDerivatives",
    "PointMotionDesignDerivatives",
    "PointMotionHessian",
    "PolynomialFunction",
    "Quaternion",
    "RecordingWarning",
    "Shape",
    "SingularError",
    "SolveError",
    "Sphere",
    "SplineFunction",
    "SpringDamper",
    "Topology",
    "UnfinishedWarning",
    "UnitsWarning",
    "assemble",
    "assemble_path",
    "bias_forces",
    "bridges",
    "center_of_mass",
    "center_of_mass_derivatives",
    "center_of_mass_hessian",
    "compare",
    "constrained_dynamics",
    "constrained_dynamics_derivatives",
    "constrained_dynamics_design_derivatives",
    "constrained_dynamics_hessian",
    "constrained_dynamics_load_derivatives",
    "constrained_hybrid_dynamics",
    "constrained_hybrid_dynamics_derivatives",
    "constrained_hybrid_dynamics_design_derivatives",
    "constrained_inverse_dynamics",
    "constrained_inverse_dynamics_derivatives",
    "constraint_design_derivatives",
    "constraint_design_hessian",
    "constraint_jacobian_design_derivatives",
    "difference",
    "directional",
    "energy_design_derivatives",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_dynamics_design_derivatives",
    "forward_dynamics_hessian",
    "forward_kinematics",
    "forward_kinematics_derivatives",
    "free",
    "get_threads",
    "gravity_forces",
    "hybrid_dynamics",
    "hybrid_dynamics_derivatives",
    "hybrid_dynamics_design_derivatives",
    "impact",
    "impact_derivatives",
    "impact_design_derivatives",
    "inertial_parameters",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_design_derivatives",
    "inverse_dynamics_design_hessian",
    "inverse_dynamics_design_vjp",
    "inverse_dynamics_hessian",
    "inverse_dynamics_hessian_tensors",
    "inverse_dynamics_hvp",
    "inverse_dynamics_jvp",
    "inverse_dynamics_load_derivatives",
    "inverse_dynamics_regressor",
    "inverse_dynamics_second_order",
    "inverse_dynamics_vjp",
    "io",
    "jacobian",
    "kinetic_energy",
    "load",
    "mass_matrix",
    "mass_matrix_design_derivatives",
    "momentum",
    "momentum_derivatives",
    "momentum_hessian",
    "neutral",
    "objectives",
    "optimize",
    "papers",
    "planar",
    "plot",
    "point_motion",
    "point_motion_derivatives",
    "point_motion_design_derivatives",
    "point_motion_hessian",
    "potential_energy",
    "predictions",
    "prismatic",
    "project_velocity",
    "random_configuration",
    "revolute",
    "rotate",
    "samples",
    "save",
    "screw",
    "set_threads",
    "simulate",
    "spherical",
    "transform_design_derivatives",
    "translate",
    "universal",
    "view",
]
