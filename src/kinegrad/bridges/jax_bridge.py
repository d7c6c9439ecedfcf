"""Inverse dynamics as a JAX function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kinegrad.bridges.arguments import batch_shape, check, package, pull_left, pull_second, third_order
from kinegrad.configuration import pull_tangent
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.dynamics_hessian import inverse_dynamics_hessian_tensors
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["to_jax"]


def to_jax(model: Model, *, loads: Loads | None = None) -> Callable[[Any, Any, Any], Any]:
    r"""Inverse dynamics for JAX: τ(q, v, a), with exact first and second derivatives.

    Works under ``jit``, ``vmap`` (one call for the whole batch), ``grad``, ``jacfwd``, ``jacrev`` and ``hessian``, in
    any order.  The numbers are computed by kinegrad on the processor, also when JAX runs on a GPU.  Second derivatives
    take 32 n³ bytes for each state, because JAX wants what is linear in a direction as an array, and above 2 GiB an
    InputError is raised; :func:`inverse_dynamics_hessian` needs 32 n².  Third derivatives raise a KinegradError.

    Parameters
    ----------
    model : Model
    loads : Loads, optional
        External forces and torques on links, constants of the function.

    Returns
    -------
    callable
        ``tau(q, v, a)``: arrays of shape (..., nq), (..., nv), (..., nv) whose batch shapes broadcast, to an array of
        shape (..., nv).  Integers and float32 are converted to float64.  Derivatives with respect to the numbers of
        quaternions, which must be of unit length, are those of τ(q / \|q\|).

    Raises
    ------
    ImportError
        JAX is not installed.
    InputError
        From the function: wrong shapes, or JAX is set to single precision, as it is unless told otherwise by
        ``jax.config.update("jax_enable_x64", True)``.

    Examples
    --------
    Examples that run are in docs/bridges.md; in short::

        tau = to_jax(model)
        effort = jax.jit(jax.grad(lambda q: (tau(q, v, a) ** 2).sum()))
    """
    jax = package("jax")
    check(model, loads)
    jnp = jax.numpy
    n, sizes = model.nv, (model.nq, model.nv, model.nv)

    def call(function: Callable[..., Any], cores: tuple[tuple[int, ...], ...], *state: Any) -> Any:
        """`function` of NumPy arrays at all states; results have shapes (..., *core)."""
        results = tuple(jax.ShapeDtypeStruct(state[0].shape[:-1] + core, jnp.float64) for core in cores)
        # All of the state have one batch shape here, so with a new first axis of length 1 or N they still broadcast.
        return jax.pure_callback(function, results, *state, vmap_method="expand_dims")

    def host_value(*state: Any) -> tuple[Any, ...]:
        return (inverse_dynamics(model, *map(np.asarray, state), loads=loads),)

    def host_derivatives(*state: Any) -> tuple[Any, ...]:
        q, v, a = map(np.asarray, state)
        result = inverse_dynamics_derivatives(model, q, v, a, loads=loads)
        assert isinstance(result.dtau_dq, np.ndarray)
        return result.tau, pull_tangent(model, q[..., None, :], result.dtau_dq), result.dtau_dv, result.dtau_da

    def host_tensors(*state: Any) -> tuple[Any, ...]:
        q, v, a = map(np.asarray, state)
        second = inverse_dynamics_hessian_tensors(model, q, v, a, loads=loads)
        first = inverse_dynamics_derivatives(model, q, v, a, loads=loads)
        rows, by_q = q[..., None, :], np.asarray(first.dtau_dq)
        mixed = (pull_left(model, rows, x) for x in (second.d2tau_dqdv, second.d2tau_dqda))
        return pull_second(model, rows, second.d2tau_dqdq, by_q), *mixed, second.d2tau_dvdv

    def value(*state: Any) -> Any:
        return call(host_value, ((n,),), *state)[0]

    def value_and_derivatives(*state: Any) -> Any:
        return tuple(call(host_derivatives, ((n,), *((n, size) for size in sizes)), *state))

    def value_jvp(state: Any, tangents: Any) -> Any:
        tau, *matrices = exact(*state)
        # Linear in the tangents, as JAX wants it: transposed, this is the gradient.
        return tau, sum(jnp.einsum("...ij,...j->...i", D, t) for D, t in zip(matrices, tangents, strict=True))

    def tensors(*state: Any) -> Any:
        nq, nv, _ = sizes
        return call(host_tensors, ((n, nq, nq), (n, nq, nv), (n, nq, nv), (n, nv, nv)), *state)

    def derivatives_jvp(state: Any, tangents: Any) -> Any:
        found, (qq, qv, qa, vv), (dq, dv, da) = exact(*state), curved(*state), tangents
        _, *matrices = found

        def along(tensor: Any, direction: Any) -> Any:
            return jnp.einsum("...kij,...j->...ki", tensor, direction)

        def across(tensor: Any, direction: Any) -> Any:
            return jnp.einsum("...kij,...i->...kj", tensor, direction)

        change = sum(jnp.einsum("...ij,...j->...i", D, t) for D, t in zip(matrices, tangents, strict=True))
        by_q = along(qq, dq) + along(qv, dv) + along(qa, da)
        return found, (change, by_q, across(qv, dq) + along(vv, dv), across(qa, dq))

    def no_jvp(state: Any, tangents: Any) -> Any:
        raise third_order("JAX")

    tau, exact, curved = jax.custom_jvp(value), jax.custom_jvp(value_and_derivatives), jax.custom_jvp(tensors)
    tau.defjvp(value_jvp)
    exact.defjvp(derivatives_jvp)
    curved.defjvp(no_jvp)

    def inverse_dynamics_jax(q: Any, v: Any, a: Any) -> Any:
        if not jax.config.jax_enable_x64:
            raise InputError(
                "JAX is set to single precision; kinegrad computes in double: "
                "call jax.config.update('jax_enable_x64', True) when the program starts"
            )
        state = [jnp.asarray(x, dtype=jnp.float64) for x in (q, v, a)]
        shape = batch_shape(model, loads, **{name: x.shape for name, x in zip("qva", state, strict=True)})
        return tau(*(jnp.broadcast_to(x, (*shape, size)) for x, size in zip(state, sizes, strict=True)))

    return inverse_dynamics_jax
