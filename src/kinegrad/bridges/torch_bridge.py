"""Inverse dynamics as a PyTorch function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kinegrad.bridges.arguments import check, package, second_order, state_shape
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_jvp, inverse_dynamics_vjp
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["to_torch"]


def to_torch(model: Model, *, loads: Loads | None = None) -> Callable[[Any, Any, Any], Any]:
    """Inverse dynamics for PyTorch: τ(q, v, a), with exact first derivatives.

    ``backward`` and forward mode cost O(n) each, no matrix is formed.  ``torch.func`` (``grad``, ``jvp``, ``vjp``,
    ``jacrev``, ``jacfwd``, ``vmap``) works, a batch being one call.  Second derivatives raise a KinegradError.

    Parameters
    ----------
    model : Model
    loads : Loads, optional
        External forces and torques on links, constants of the function.

    Returns
    -------
    callable
        ``tau(q, v, a)``: float64 tensors on the processor, of shape (..., n), whose batch shapes broadcast, to a
        tensor of shape (..., n).

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

    class FirstOrder(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """A function of tensors of one shape, computed by kinegrad, in batches too."""

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *w: Any) -> Any:
            raise second_order("PyTorch")

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            raise second_order("PyTorch")

        @classmethod
        def vmap(cls, info: Any, in_dims: Any, *inputs: Any) -> Any:
            # All inputs have one shape, so with a new first axis of length 1 or N they still broadcast.
            lead = (x[None] if d is None else x.movedim(d, 0) for x, d in zip(inputs, in_dims, strict=True))
            output = cls.apply(*lead)
            return output, (0,) * len(output) if isinstance(output, tuple) else 0

    class Jvp(FirstOrder):
        @staticmethod
        def forward(*state_and_direction: Any) -> Any:
            return torch.from_numpy(host(inverse_dynamics_jvp, *state_and_direction))

    class Vjp(FirstOrder):
        @staticmethod
        def forward(*state_and_weights: Any) -> Any:
            gradient = host(inverse_dynamics_vjp, *state_and_weights)
            return tuple(map(torch.from_numpy, (gradient.dq, gradient.dv, gradient.da)))

    class InverseDynamics(FirstOrder):
        @staticmethod
        def forward(*state: Any) -> Any:
            return torch.from_numpy(host(inverse_dynamics, *state))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *w: Any) -> Any:
            return Vjp.apply(*ctx.saved_tensors, *w)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            return Jvp.apply(*ctx.saved_tensors, *tangents)

    def inverse_dynamics_torch(q: Any, v: Any, a: Any) -> Any:
        state = {"q": q, "v": v, "a": a}
        for name, x in state.items():
            if not isinstance(x, torch.Tensor) or x.dtype != torch.float64:
                found = f"tensor of {x.dtype}" if isinstance(x, torch.Tensor) else type(x).__name__
                raise InputError(f"`{name}` is a {found}; expected a tensor of torch.float64: call .double()")
            if x.device.type != "cpu":
                raise InputError(f"`{name}` is on device {str(x.device)!r}; expected 'cpu': call .cpu()")
        shape = state_shape(model, loads, **{name: tuple(x.shape) for name, x in state.items()})
        return InverseDynamics.apply(*(x.expand(shape) for x in state.values()))

    return inverse_dynamics_torch
