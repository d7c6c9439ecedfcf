"""Inverse dynamics and the products with its derivatives that JAX and PyTorch are given, in the numbers of q.

All are sums wᵀ ∂ᵏτ of a weight for each torque and directions of (q, v, a), with one of these left open:

function    given                open        cost
value                            weights     n
jvp         a direction          weights     n
vjp         weights              direction   n
hvp         weights, direction   direction   n
bend        two directions       weights     n², a product hvp for each torque

Each is linear in everything given besides the state.  So its derivative by what is given is the function itself, its
derivative by the state is the function with one more direction, and its transpose by one of what is given is the
function in which that is open, and what was open is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinegrad.bridges.arguments import turn_product
from kinegrad.configuration import pull_tangent, tangent
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_jvp, inverse_dynamics_vjp
from kinegrad.dynamics_hessian import inverse_dynamics_hvp
from kinegrad.loads import Loads
from kinegrad.model import Model


@dataclass(frozen=True)
class Products:
    """Functions of NumPy arrays, whose batch shapes broadcast."""

    model: Model
    loads: Loads | None = None

    def value(self, q: Any, v: Any, a: Any) -> Any:
        """τ."""
        return inverse_dynamics(self.model, q, v, a, loads=self.loads)

    def jvp(self, q: Any, v: Any, a: Any, dq: Any, dv: Any, da: Any) -> Any:
        """The change of τ along a change of the numbers of q, v and a."""
        return inverse_dynamics_jvp(self.model, q, v, a, self._tangent(q, dq), dv, da, loads=self.loads)

    def vjp(self, q: Any, v: Any, a: Any, w: Any) -> tuple[Any, Any, Any]:
        """Gradients of wᵀτ with respect to the numbers of q, v and a."""
        gradient = inverse_dynamics_vjp(self.model, q, v, a, w, loads=self.loads)
        return pull_tangent(self.model, q, gradient.dq), gradient.dv, gradient.da

    def hvp(self, q: Any, v: Any, a: Any, w: Any, dq: Any, dv: Any, da: Any) -> tuple[Any, Any, Any]:
        """The change of these gradients along a change of the numbers of q, v and a."""
        along = self._tangent(q, dq)
        change = inverse_dynamics_hvp(self.model, q, v, a, w, along, dv, da, loads=self.loads)
        by_q = pull_tangent(self.model, q, change.dq)
        if self.model.nq != self.model.nv:  # what numbers add to the tangent: see arguments.py
            gradient = inverse_dynamics_vjp(self.model, q, v, a, w, loads=self.loads)
            by_q = by_q + turn_product(self.model, q, gradient.dq, dq)
        return by_q, change.dv, change.da

    def bend(self, q: Any, v: Any, a: Any, dq: Any, dv: Any, da: Any, eq: Any, ev: Any, ea: Any) -> Any:
        """The change along (eq, ev, ea) of the change of τ along (dq, dv, da): a product for each torque."""
        one, other = sorted(((dq, dv, da), (eq, ev, ea)), key=_states)  # symmetric; products with the fewer
        loads = self.loads
        if loads is not None:
            loads = Loads(**{name: x[..., None, :, :] for name, x in loads.arrays(self.model).items()})
        (q, v, a), (dq, dv, da) = ([x[..., None, :] for x in xs] for xs in ((q, v, a), one))
        by = Products(self.model, loads).hvp(q, v, a, np.eye(self.model.nv), dq, dv, da)
        return sum(np.einsum("...ki,...i->...k", x, e) for x, e in zip(by, other, strict=True))

    def _tangent(self, q: Any, dq: Any) -> Any:
        """The change of q as tangents, for each state and each direction if there are quaternions."""
        if self.model.nq == self.model.nv:
            return dq
        shape = np.broadcast_shapes(q.shape[:-1], dq.shape[:-1])
        return tangent(self.model, q, np.broadcast_to(dq, (*shape, self.model.nq)))


def _states(direction: Any) -> int:
    """How many states a direction is given for."""
    return math.prod(np.broadcast_shapes(*(x.shape[:-1] for x in direction)))
