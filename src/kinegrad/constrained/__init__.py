"""Motion under constraints: accelerations and forces, impacts, inverse dynamics of closed mechanisms; derivatives."""

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

__all__ = [
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
    "Impact",
    "ImpactDerivatives",
    "ImpactDesignDerivatives",
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
    "impact",
    "impact_derivatives",
    "impact_design_derivatives",
]
