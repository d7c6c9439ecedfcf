"""Inverse dynamics as a PyTorch function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kinegrad.bridges.arguments import batch_shape, check, package, third_order
from kinegrad.bridges.products import Products
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["to_torch"]


def to_torch(model: Model, *, loads: Loads | None = None) -> Callable[[Any, Any, Any], Any]:
    r"""Inverse dynamics for PyTorch: τ(q, v, a), with exact first and second derivatives.

    ``backward`` and forward mode cost O(n) each, no matrix is formed, and so does either of ``backward``, which is a
    product with the Hessian: ``torch.autograd.functional.vhp``, ``torch.func.jvp`` of ``grad``.  ``torch.func``
    (``grad``, ``jvp``, ``vjp``, ``jacrev``, ``jacfwd``, ``hessian``, ``vmap``) works, a batch being one call.  Forward
    mode twice costs O(n²), and so does ``torch.autograd.functional.hvp``, but for sums with given weights.  Third
    derivatives raise a KinegradError.

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

    exact = Products(model, loads)

    def host(function: Callable[..., Any], *tensors: Any) -> Any:
        return function(*(x.numpy(force=True) for x in tensors))

    def some(given: Any) -> bool:
        return any(x is not None for x in given)

    class Exact(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """A function of tensors of one shape, computed by kinegrad, in batches too."""

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @classmethod
        def backward(cls, ctx: Any, *given: Any) -> Any:
            return cls.pulled(ctx, *given) if some(given) else (None,) * len(ctx.needs_input_grad)

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
        def pulled(ctx: Any, *w: Any) -> Any:
            raise third_order("PyTorch")

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            raise third_order("PyTorch")

    def fixed(state: Any) -> list[Any]:
        return [Fixed.apply(x) for x in state]

    def filled(given: Any, like: Any) -> list[Any]:
        """Tangents or weights, with zeros for those that PyTorch leaves out."""
        return [torch.zeros_like(y) if x is None else x for x, y in zip(given, like, strict=True)]

    def zeros(ctx: Any, state: Any) -> list[Any]:
        """Gradients that tell `Fixed` that they are asked for."""
        return [torch.zeros_like(x) if need else None for x, need in zip(state, ctx.needs_input_grad, strict=False)]

    def total(*parts: Any) -> Any:
        """The sum of those parts that are not None, of tensors or of tuples of them."""
        first, *rest = (x for x in parts if x is not None)
        if not rest:
            return first
        if isinstance(first, torch.Tensor):
            return first + rest[0]
        return tuple(x + y for x, y in zip(first, rest[0], strict=True))

    none = (None, None, None)

    # Of what is given, some parts have gradients, and some have tangents; nothing is computed for the others.  That a
    # part has a gradient does not say that PyTorch asks for it: hvp of functions of τ never uses those by the weights.

    class Bend(Exact):
        """The change of the change of τ, along two directions; linear in each."""

        @staticmethod
        def forward(*state_and_directions: Any) -> Any:
            return torch.from_numpy(host(exact.bend, *state_and_directions))

        @staticmethod
        def pulled(ctx: Any, *w: Any) -> Any:
            state, one, other = ctx.saved_tensors[:3], ctx.saved_tensors[3:6], ctx.saved_tensors[6:]
            at, need = fixed(state), ctx.needs_input_grad
            by_one = Hvp.apply(*at, *w, *other) if any(need[3:6]) else none
            by_other = Hvp.apply(*at, *w, *one) if any(need[6:]) else none
            return *zeros(ctx, state), *by_one, *by_other

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            state, one, other = ctx.saved_tensors[:3], ctx.saved_tensors[3:6], ctx.saved_tensors[6:]
            d_one, d_other, at = tangents[3:6], tangents[6:], fixed(state)
            return total(
                Bend.apply(*at, *filled(d_one, one), *other) if some(d_one) else None,
                Bend.apply(*at, *one, *filled(d_other, other)) if some(d_other) else None,
            )

    class Hvp(Exact):
        """The change of the gradient of weighted torques along a direction; linear in weights and direction."""

        @staticmethod
        def forward(*state_weights_direction: Any) -> Any:
            return tuple(map(torch.from_numpy, host(exact.hvp, *state_weights_direction)))

        @staticmethod
        def pulled(ctx: Any, *given: Any) -> Any:
            state, w, direction = ctx.saved_tensors[:3], ctx.saved_tensors[3], ctx.saved_tensors[4:]
            other, at, need = filled(given, state), fixed(state), ctx.needs_input_grad
            by_weights = Bend.apply(*at, *direction, *other) if need[3] else None
            return *zeros(ctx, state), by_weights, *(Hvp.apply(*at, w, *other) if any(need[4:]) else none)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            state, w, direction = ctx.saved_tensors[:3], ctx.saved_tensors[3], ctx.saved_tensors[4:]
            dw, turned, at = tangents[3], tangents[4:], fixed(state)
            return total(
                Hvp.apply(*at, dw, *direction) if dw is not None else None,
                Hvp.apply(*at, w, *filled(turned, direction)) if some(turned) else None,
            )

    class Jvp(Exact):
        @staticmethod
        def forward(*state_and_direction: Any) -> Any:
            return torch.from_numpy(host(exact.jvp, *state_and_direction))

        @staticmethod
        def pulled(ctx: Any, *w: Any) -> Any:
            state, direction = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
            by_state = Hvp.apply(*fixed(state), *w, *direction) if any(ctx.needs_input_grad[:3]) else none
            return *by_state, *(Vjp.apply(*state, *w) if any(ctx.needs_input_grad[3:]) else none)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            state, direction = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
            along, turned = tangents[:3], tangents[3:]
            return total(
                Bend.apply(*fixed(state), *direction, *filled(along, state)) if some(along) else None,
                Jvp.apply(*state, *filled(turned, direction)) if some(turned) else None,
            )

    class Vjp(Exact):
        @staticmethod
        def forward(*state_and_weights: Any) -> Any:
            return tuple(map(torch.from_numpy, host(exact.vjp, *state_and_weights)))

        @staticmethod
        def pulled(ctx: Any, *directions: Any) -> Any:
            *state, w = ctx.saved_tensors
            along, need = filled(directions, state), ctx.needs_input_grad
            by_state = Hvp.apply(*fixed(state), w, *along) if any(need[:3]) else none
            return *by_state, Jvp.apply(*state, *along) if need[3] else None

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            *state, w = ctx.saved_tensors
            *along, dw = tangents
            return total(
                Hvp.apply(*fixed(state), w, *filled(along, state)) if some(along) else None,
                Vjp.apply(*state, dw) if dw is not None else None,
            )

    class InverseDynamics(Exact):
        @staticmethod
        def forward(*state: Any) -> Any:
            return torch.from_numpy(host(exact.value, *state))

        @staticmethod
        def pulled(ctx: Any, *w: Any) -> Any:
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
