"""Inverse dynamics as a PyTorch function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kinegrad.bridges.arguments import batch_shape, check, package, third_order, turn_product
from kinegrad.configuration import pull_tangent, tangent
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_jvp, inverse_dynamics_vjp
from kinegrad.dynamics_hessian import inverse_dynamics_hvp
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["to_torch"]


def to_torch(model: Model, *, loads: Loads | None = None) -> Callable[[Any, Any, Any], Any]:
    r"""Inverse dynamics for PyTorch: τ(q, v, a), with exact first and second derivatives.

    ``backward`` and forward mode cost O(n) each, no matrix is formed, and so does a derivative of either that is of a
    weighted sum: ``torch.autograd.functional.hvp``, ``hessian``, ``double_backward``.  ``torch.func`` (``grad``,
    ``jvp``, ``vjp``, ``jacrev``, ``jacfwd``, ``hessian``, ``vmap``) works, a batch being one call.  Forward mode twice
    costs O(n²).  Third derivatives raise a KinegradError.

    Parameters
    ----------
    model : Model
    loads : Loads, optional
        External forces and torques on links, constants of the function.

    Returns
    -------
    callable
        ``tau(q, v, a)``: float64 tensors on the processor, of shape (..., nq), (..., nv), (..., nv), whose batch shapes
        broadcast, to a tensor of shape (..., nv).  Derivatives with respect to the numbers of quaternions, which must
        be of unit length, are those of τ(q / \|q\|).

    Raises
    ------
    ImportError
        PyTorch is not installed.
    InputError
        From the function: wrong shapes, other types than float64 tensors (no silent loss of precision), or tensors
        on another device.

    Examples
    --------
    Examples that run are in docs/bridges.md; in short::

        tau = to_torch(model)
        (tau(q, v, a) ** 2).sum().backward()
    """
    torch = package("torch")
    check(model, loads)

    def host(function: Callable[..., Any], *tensors: Any) -> Any:
        return function(model, *(x.numpy(force=True) for x in tensors), loads=loads)

    class Exact(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """A function of tensors of one shape, computed by kinegrad, in batches too."""

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @classmethod
        def vmap(cls, info: Any, in_dims: Any, *inputs: Any) -> Any:
            # All inputs have one batch shape, so with a new first axis of length 1 or N they still broadcast.
            lead = (x[None] if d is None else x.movedim(d, 0) for x, d in zip(inputs, in_dims, strict=True))
            output = cls.apply(*lead)
            return output, (0,) * len(output) if isinstance(output, tuple) else 0

    class Fixed(Exact):
        """A part of the state at which second derivatives are, and by which they are not differentiated."""

        @staticmethod
        def forward(x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, *w: Any) -> Any:
            raise third_order("PyTorch")

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            raise third_order("PyTorch")

    def fixed(state: Any) -> list[Any]:
        return [Fixed.apply(x) for x in state]

    def filled(given: Any, like: Any) -> list[Any]:
        """Tangents or weights, with zeros for those that PyTorch leaves out."""
        return [torch.zeros_like(y) if x is None else x for x, y in zip(given, like, strict=True)]

    class Bend(Exact):
        """The change of the change of τ, along two directions; linear in each."""

        @staticmethod
        def forward(*state_and_directions: Any) -> Any:
            return torch.from_numpy(host(_bend, *state_and_directions))

        @staticmethod
        def backward(ctx: Any, *w: Any) -> Any:
            state, one, other = ctx.saved_tensors[:3], ctx.saved_tensors[3:6], ctx.saved_tensors[6:]
            at = fixed(state)
            return *map(torch.zeros_like, state), *Hvp.apply(*at, *w, *other), *Hvp.apply(*at, *w, *one)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            state, one, other = ctx.saved_tensors[:3], ctx.saved_tensors[3:6], ctx.saved_tensors[6:]
            d_one, d_other = filled(tangents[3:6], one), filled(tangents[6:], other)
            at = fixed(state)
            return Bend.apply(*at, *d_one, *other) + Bend.apply(*at, *one, *d_other)

    class Hvp(Exact):
        """The change of the gradient of weighted torques along a direction; linear in weights and direction."""

        @staticmethod
        def forward(*state_weights_direction: Any) -> Any:
            return tuple(map(torch.from_numpy, host(_hvp, *state_weights_direction)))

        @staticmethod
        def backward(ctx: Any, *given: Any) -> Any:
            state, w, direction = ctx.saved_tensors[:3], ctx.saved_tensors[3], ctx.saved_tensors[4:]
            other, at = filled(given, state), fixed(state)
            by_direction = Hvp.apply(*at, w, *other)
            return *map(torch.zeros_like, state), Bend.apply(*at, *direction, *other), *by_direction

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            state, w, direction = ctx.saved_tensors[:3], ctx.saved_tensors[3], ctx.saved_tensors[4:]
            (dw,), turned, at = filled(tangents[3:4], (w,)), filled(tangents[4:], direction), fixed(state)
            parts = Hvp.apply(*at, dw, *direction), Hvp.apply(*at, w, *turned)
            return tuple(x + y for x, y in zip(*parts, strict=True))

    class Jvp(Exact):
        @staticmethod
        def forward(*state_and_direction: Any) -> Any:
            return torch.from_numpy(host(_jvp, *state_and_direction))

        @staticmethod
        def backward(ctx: Any, *w: Any) -> Any:
            state, direction = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
            return *Hvp.apply(*fixed(state), *w, *direction), *Vjp.apply(*state, *w)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            state, direction = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
            along, turned = filled(tangents[:3], state), filled(tangents[3:], direction)
            return Bend.apply(*fixed(state), *direction, *along) + Jvp.apply(*state, *turned)

    class Vjp(Exact):
        @staticmethod
        def forward(*state_and_weights: Any) -> Any:
            return tuple(map(torch.from_numpy, host(_vjp, *state_and_weights)))

        @staticmethod
        def backward(ctx: Any, *directions: Any) -> Any:
            *state, w = ctx.saved_tensors
            along = filled(directions, state)
            return *Hvp.apply(*fixed(state), w, *along), Jvp.apply(*state, *along)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            *state, w = ctx.saved_tensors
            *along, dw = filled(tangents, ctx.saved_tensors)
            moved, weighted = Hvp.apply(*fixed(state), w, *along), Vjp.apply(*state, dw)
            return tuple(x + y for x, y in zip(moved, weighted, strict=True))

    class InverseDynamics(Exact):
        @staticmethod
        def forward(*state: Any) -> Any:
            return torch.from_numpy(host(inverse_dynamics, *state))

        @staticmethod
        def backward(ctx: Any, *w: Any) -> Any:
            return Vjp.apply(*ctx.saved_tensors, *w)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            return Jvp.apply(*ctx.saved_tensors, *filled(tangents, ctx.saved_tensors))

    def inverse_dynamics_torch(q: Any, v: Any, a: Any) -> Any:
        state = {"q": q, "v": v, "a": a}
        for name, x in state.items():
            if not isinstance(x, torch.Tensor) or x.dtype != torch.float64:
                found = f"tensor of {x.dtype}" if isinstance(x, torch.Tensor) else type(x).__name__
                raise InputError(f"`{name}` is a {found}; expected a tensor of torch.float64: call .double()")
            if x.device.type != "cpu":
                raise InputError(f"`{name}` is on device {str(x.device)!r}; expected 'cpu': call .cpu()")
        shape = batch_shape(model, loads, **{name: tuple(x.shape) for name, x in state.items()})
        sizes = (model.nq, model.nv, model.nv)
        return InverseDynamics.apply(*(x.expand(*shape, size) for x, size in zip(state.values(), sizes, strict=True)))

    return inverse_dynamics_torch


def _jvp(model: Model, q: Any, v: Any, a: Any, dq: Any, dv: Any, da: Any, *, loads: Loads | None) -> Any:
    """The change of τ along a change of the numbers of q, v and a."""
    return inverse_dynamics_jvp(model, q, v, a, tangent(model, q, dq), dv, da, loads=loads)


def _vjp(model: Model, q: Any, v: Any, a: Any, w: Any, *, loads: Loads | None) -> tuple[Any, ...]:
    """Gradients of wᵀτ with respect to the numbers of q, v and a."""
    gradient = inverse_dynamics_vjp(model, q, v, a, w, loads=loads)
    return pull_tangent(model, q, gradient.dq), gradient.dv, gradient.da


def _hvp(model: Model, q: Any, v: Any, a: Any, w: Any, dq: Any, dv: Any, da: Any, *, loads: Loads | None) -> Any:
    """The change of these gradients along a change of the numbers of q, v and a."""
    along = tangent(model, q, dq)
    change = inverse_dynamics_hvp(model, q, v, a, w, along, dv, da, loads=loads)
    by_q = pull_tangent(model, q, change.dq)
    if model.nq != model.nv:  # what numbers add to the tangent: see arguments.py
        gradient = inverse_dynamics_vjp(model, q, v, a, w, loads=loads)
        by_q = by_q + turn_product(model, q, gradient.dq, dq)
    return by_q, change.dv, change.da


def _bend(
    model: Model, q: Any, v: Any, a: Any, dq: Any, dv: Any, da: Any, eq: Any, ev: Any, ea: Any, *, loads: Loads | None
) -> Any:
    """The change along (eq, ev, ea) of the change of τ along (dq, dv, da): a product for each torque."""
    q, v, a, dq, dv, da = (x[..., None, :] for x in (q, v, a, dq, dv, da))
    of_rows = None if loads is None else Loads(**{name: x[..., None, :, :] for name, x in loads.arrays(model).items()})
    by = _hvp(model, q, v, a, np.eye(model.nv), dq, dv, da, loads=of_rows)
    return sum((x * e[..., None, :]).sum(axis=-1) for x, e in zip(by, (eq, ev, ea), strict=True))
