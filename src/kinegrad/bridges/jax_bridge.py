"""Inverse dynamics as a JAX function.

It is one primitive of JAX, which stands for the functions of products.py: operands are q, v, a, then weights of the
torques if it is ``weighted``, then directions, three arrays each.  Results are the torques, or, of one that is
weighted, gradients by q, v and a.  All operands have as many axes, of length 1 where they are not batched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from kinegrad.bridges.arguments import batch_shape, check, package, third_order
from kinegrad.bridges.products import Products
from kinegrad.errors import InputError
from kinegrad.loads import Loads
from kinegrad.model import Model

__all__ = ["to_jax"]


def to_jax(model: Model, *, loads: Loads | None = None) -> Callable[[Any, Any, Any], Any]:
    r"""Inverse dynamics for JAX: τ(q, v, a), with exact first and second derivatives.

    Works under ``jit``, ``vmap`` (one call for the whole batch), ``jvp``, ``vjp``, ``grad``, ``jacfwd``, ``jacrev``,
    ``hessian``, ``linearize``, ``scan`` and ``checkpoint``, in any order.  ``jvp`` and ``grad`` cost O(n), no matrix is
    formed, and so does either of ``grad``, which is a product with the Hessian.  Forward mode twice costs O(n²).  Third
    derivatives raise a KinegradError.  The numbers are computed by kinegrad on the processor, also when JAX runs on a
    GPU.

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
    jnp, product, exact = jax.numpy, _primitive(), Products(model, loads)

    def inverse_dynamics_jax(q: Any, v: Any, a: Any) -> Any:
        if not jax.config.jax_enable_x64:
            raise InputError(
                "JAX is set to single precision; kinegrad computes in double: "
                "call jax.config.update('jax_enable_x64', True) when the program starts"
            )
        state = [jnp.asarray(x, dtype=jnp.float64) for x in (q, v, a)]
        shape = batch_shape(model, loads, **{name: x.shape for name, x in zip("qva", state, strict=True)})
        sizes = (model.nq, model.nv, model.nv)
        full = (jnp.broadcast_to(x, (*shape, size)) for x, size in zip(state, sizes, strict=True))
        return product.bind(*full, exact=exact, weighted=False)[0]

    return inverse_dynamics_jax


@dataclass(frozen=True)
class _Call:
    """A product of products.py as JAX calls it; equal ones are compiled once."""

    exact: Products
    weighted: bool
    directions: int

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        exact, arrays = self.exact, map(np.asarray, operands)
        if self.weighted:
            return (exact.vjp, exact.hvp)[self.directions](*arrays)
        return ((exact.value, exact.jvp, exact.bend)[self.directions](*arrays),)


def _split(operands: Sequence[Any], weighted: bool) -> tuple[list[Any], list[list[Any]]]:
    """The state, and what the product is linear in: weights, and directions."""
    first = 4 if weighted else 3
    directions = [list(operands[k : k + 3]) for k in range(first, len(operands), 3)]
    return list(operands[:3]), [[operands[3]], *directions] if weighted else directions


@cache
def _primitive() -> Any:
    """The primitive with its rules, made when JAX is first asked for."""
    jax = package("jax")
    ad, batching, mlir = (package(f"jax.interpreters.{name}") for name in ("ad", "batching", "mlir"))
    product = package("jax.extend.core").Primitive("kinegrad_inverse_dynamics")
    product.multiple_results = True

    def shapes(operands: Any, exact: Products, weighted: bool) -> list[tuple[int, ...]]:
        batch = np.broadcast_shapes(*(x.shape[:-1] for x in operands))
        n = exact.model.nv
        return [(*batch, size) for size in ((exact.model.nq, n, n) if weighted else (n,))]

    def compute(*operands: Any, exact: Products, weighted: bool) -> Any:
        results = tuple(jax.ShapeDtypeStruct(shape, np.float64) for shape in shapes(operands, exact, weighted))
        return jax.pure_callback(_Call(exact, weighted, (len(operands) - 3) // 3), results, *operands)

    def abstract(*operands: Any, exact: Products, weighted: bool) -> Any:
        return [jax.core.ShapedArray(shape, np.dtype(np.float64)) for shape in shapes(operands, exact, weighted)]

    def zero(x: Any) -> bool:
        return isinstance(x, ad.Zero)

    def filled(given: Any, like: Any) -> list[Any]:
        """Tangents, with zeros for those that JAX leaves out."""
        return [jax.numpy.zeros(y.shape) if zero(x) else x for x, y in zip(given, like, strict=True)]

    def change(operands: Any, tangents: Any, **what: Any) -> Any:
        """The product, and how it changes with the state and with what it is linear in."""
        (state, linear), (along, turned) = _split(operands, what["weighted"]), _split(tangents, what["weighted"])
        changed = []
        if not all(map(zero, along)):
            if len(linear) == 2:
                raise third_order("JAX")
            changed.append([*linear, filled(along, state)])
        for k, part in enumerate(turned):
            if not all(map(zero, part)):
                changed.append([*linear[:k], filled(part, linear[k]), *linear[k + 1 :]])
        parts = [product.bind(*state, *chain(*parts), **what) for parts in changed]
        return product.bind(*operands, **what), [sum(x[1:], x[0]) for x in zip(*parts, strict=True)]

    def transpose(cotangents: Any, *operands: Any, exact: Products, weighted: bool) -> Any:
        """By one of what the product is linear in: that is open now, and what was open is given."""
        if all(map(zero, cotangents)):
            return [None] * len(operands)
        given = [jax.numpy.zeros(x.aval.shape) if zero(x) else x for x in cotangents]
        state, linear = _split(operands, weighted)
        k = next(k for k, part in enumerate(linear) if any(map(ad.is_undefined_primal, part)))
        rest = [x for part in linear[:k] + linear[k + 1 :] for x in part]
        of_weights = weighted and k == 0
        new = [*rest, *given] if weighted else [*given, *rest]
        found = product.bind(*state, *new, exact=exact, weighted=not of_weights)
        before = 3 + sum(map(len, linear[:k]))
        by = dict(enumerate(found, start=before))
        return [fitted(by[i], x.aval.shape) if ad.is_undefined_primal(x) else None for i, x in enumerate(operands)]

    def fitted(x: Any, shape: tuple[int, ...]) -> Any:
        """Summed over axes along which there was one for all."""
        axes = tuple(i for i, (have, size) in enumerate(zip(x.shape, shape, strict=True)) if have != size)
        return x.sum(axis=axes, keepdims=True)

    def batch(operands: Any, axes: Any, **what: Any) -> Any:
        # The new axis comes first, of length 1 where there is one for all, so that batch shapes still broadcast.
        moved = (x[None] if k is None else jax.numpy.moveaxis(x, k, 0) for x, k in zip(operands, axes, strict=True))
        found = product.bind(*moved, **what)
        return found, [0] * len(found)

    product.def_impl(compute)
    product.def_abstract_eval(abstract)
    ad.primitive_jvps[product], ad.primitive_transposes[product] = change, transpose
    batching.primitive_batchers[product] = batch
    mlir.register_lowering(product, mlir.lower_fun(compute, multiple_results=True))
    return product
