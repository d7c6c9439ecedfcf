"""Design parameters of a mechanism, and derivatives with respect to them.

parameters    Design: which quantities vary, and how the constants of the model follow from them
given         names, combinations and loads as they are given to it
function      functions that build a model, differentiated and checked: Design.from_function
circles       their second slopes, from what they give on circles in the complex plane
transforms    transforms that follow parameters, by the product rule
declared      second slopes of a model along constants by name
dynamics      derivatives of torques, accelerations and the mass matrix
hybrid        of hybrid dynamics
quantities    derivatives of poses, points and energies
constraints   of constraints: errors, velocities, accelerations, Jacobian
curvature     second slopes of a model's constants along parameters
hessian       second derivatives of torques, with respect to motion and parameters, and to parameters
constraint_hessian   of weighted errors of constraints and their rates
"""

from kinegrad.design.constraint_hessian import ConstraintDesignHessian, constraint_design_hessian
from kinegrad.design.constraints import (
    ConstraintDesignDerivatives,
    constraint_design_derivatives,
    constraint_jacobian_design_derivatives,
)
from kinegrad.design.dynamics import (
    forward_dynamics_design_derivatives,
    inverse_dynamics_design_derivatives,
    inverse_dynamics_design_vjp,
    mass_matrix_design_derivatives,
)
from kinegrad.design.hessian import InverseDynamicsDesignHessian, inverse_dynamics_design_hessian
from kinegrad.design.hybrid import HybridDynamicsDesignDerivatives, hybrid_dynamics_design_derivatives
from kinegrad.design.parameters import Design
from kinegrad.design.quantities import (
    EnergyDesignDerivatives,
    PointMotionDesignDerivatives,
    energy_design_derivatives,
    point_motion_design_derivatives,
    transform_design_derivatives,
)

__all__ = [
    "ConstraintDesignDerivatives",
    "ConstraintDesignHessian",
    "Design",
    "EnergyDesignDerivatives",
    "HybridDynamicsDesignDerivatives",
    "InverseDynamicsDesignHessian",
    "PointMotionDesignDerivatives",
    "constraint_design_derivatives",
    "constraint_design_hessian",
    "constraint_jacobian_design_derivatives",
    "energy_design_derivatives",
    "forward_dynamics_design_derivatives",
    "hybrid_dynamics_design_derivatives",
    "inverse_dynamics_design_derivatives",
    "inverse_dynamics_design_hessian",
    "inverse_dynamics_design_vjp",
    "mass_matrix_design_derivatives",
    "point_motion_design_derivatives",
    "transform_design_derivatives",
]
