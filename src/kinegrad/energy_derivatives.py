"""Exact derivatives of the centre of mass and of momentum, which :mod:`kinegrad.energy` computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import energy_derivatives as kernels
from kinegrad.energy import check_mass
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["MomentumDerivatives", "center_of_mass_derivatives", "momentum_derivatives"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MomentumDerivatives(Result):
    """Derivatives of the fields of :class:`Momentum`; the last axis is the coordinate.

    Attributes
    ----------
    dlinear_dq, dlinear_dv : ndarray, shape (..., 3, n)
        Of the linear momentum, kg·m/s.
    dangular_dq, dangular_dv : ndarray, shape (..., 3, n)
        Of the angular momentum about the centre of mass, which itself moves with q, kg·m²/s.
    """

    dlinear_dq: Array
    dlinear_dv: Array
    dangular_dq: Array
    dangular_dv: Array


def center_of_mass_derivatives(model: Model, q: ArrayLike, *, threads: int | None = None) -> Array:
    """Derivative of the centre of mass of all links with respect to q: its Jacobian, world frame.

    Parameters
    ----------
    model : Model
        With mass.
    q : array_like, shape (..., n)
        Coordinates, rad or m.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., 3, n)
        m per rad or m; exactly zero where a joint moves no mass.

    Examples
    --------
    >>> from kinegrad import samples
    >>> center_of_mass_derivatives(samples.two_link(), [0, 0])[:2].round(3)
    array([[0. , 0. ],
           [0.4, 0.1]])
    """
    if engine.mapped(check_mass(model)):
        at = engine.Expansion(model, {"q": q})
        change = center_of_mass_derivatives(at.primitive, at.q_hat, threads=threads)
        return at.deliver(at.by_configuration(change, inner=1))
    batch = engine.Batch(model, {"q": q})
    n = model.n
    result, flat = batch.output((3, n))
    none = np.empty((0, 3 * n))
    arguments = (engine.mechanism(model), batch.arguments[0], np.zeros((1, n)), flat, none, none, none, none)
    slots = (n + 1) * kernels.N
    engine.run(kernels.momentum_derivatives, batch, slots, threads, *arguments)
    return result


def momentum_derivatives(
    model: Model, q: ArrayLike, v: ArrayLike, *, threads: int | None = None
) -> MomentumDerivatives:
    """Derivatives of linear momentum, and of angular momentum about the centre of mass.

    Those with respect to v are the centroidal momentum matrix: momentum is linear in v.

    Parameters
    ----------
    model : Model
        With mass.
    q, v : array_like, shape (..., n)
        Coordinates and speeds: rad or m, and their time derivatives.  Batch shapes broadcast.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    MomentumDerivatives
        What :func:`momentum` returns, differentiated: arrays of shape (..., 3, n).

    Examples
    --------
    >>> from kinegrad import samples
    >>> change = momentum_derivatives(samples.two_link(), [0, 0], [1, 0])
    >>> change.dlinear_dv[1].round(3), change.dlinear_dq[0].round(3)
    (array([0.4, 0.1]), array([-0.4, -0.1]))
    """
    if engine.mapped(check_mass(model)):
        at = engine.Expansion(model, {"q": q, "v": v})
        return at.contracted(momentum_derivatives(at.primitive, at.q_hat, at.v_hat, threads=threads), 1)
    batch = engine.Batch(model, {"q": q, "v": v})
    n = model.n
    fields, flat = zip(*(batch.output((3, n)) for _ in range(4)), strict=True)
    arguments = (engine.mechanism(model), *batch.arguments, np.empty((0, 3 * n)), *flat)
    slots = (n + 1) * kernels.N
    engine.run(kernels.momentum_derivatives, batch, slots, threads, *arguments)
    return MomentumDerivatives(*fields)
