"""Inverse dynamics as a PyTorch function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kinegrad.bridges.arguments import batch_shape, check, package, second_order
from kinegrad.configuration import pull_tangent, tangent
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_jvp, inverse_dynamics_vjp
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["to_torch"]


def to_torch(model: Model, *, loads: Loads | None = None) -> Callable[[Any, Any, Any], Any]:
    r"""Inverse dynamics for PyTorch: τ(q, v, a), with exact first derivatives.

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
            # All inputs have one batch shape, so with a new first axis of length 1 or N they still broadcast.
            lead = (x[None] if d is None else x.movedim(d, 0) for x, d in zip(inputs, in_dims, strict=True))
            output = cls.apply(*lead)
            return output, (0,) * len(output) if isinstance(output, tuple) else 0

    class Jvp(FirstOrder):
        @staticmethod
        def forward(*state_and_direction: Any) -> Any:
            return torch.from_numpy(host(_jvp, *state_and_direction))

    class Vjp(FirstOrder):
        @staticmethod
        def forward(*state_and_weights: Any) -> Any:
            return tuple(map(torch.from_numpy, host(_vjp, *state_and_weights)))

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
