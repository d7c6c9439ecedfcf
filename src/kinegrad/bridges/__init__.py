"""kinegrad beside other packages: inverse dynamics inside them, and states of one mechanism in both.

to_jax      a JAX function: jit, vmap, grad, jvp of grad, jacrev, hessian      pip install 'kinegrad[jax]'
to_torch    a PyTorch function: backward, forward mode, torch.func, vhp        pip install 'kinegrad[torch]'
to_casadi   a CasADi function with sparse Jacobian and Hessian, for nlpsol     installed with kinegrad

Each takes ``(model, *, loads=None)`` and gives τ(q, v, a).  The packages are imported when one of these is called.

from_pinocchio, to_pinocchio, from_mujoco, to_mujoco    q, v, a and tau converted: joints by name, orientations
"""

from kinegrad.bridges.casadi_bridge import to_casadi
from kinegrad.bridges.jax_bridge import to_jax
from kinegrad.bridges.peer_states import PeerState, from_mujoco, from_pinocchio, to_mujoco, to_pinocchio
from kinegrad.bridges.torch_bridge import to_torch

__all__ = [
    "PeerState", "from_mujoco", "from_pinocchio", "to_casadi", "to_jax", "to_mujoco", "to_pinocchio", "to_torch",
]  # fmt: skip
