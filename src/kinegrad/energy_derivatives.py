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
Axis = engine.Axis
_PER = {
    "dcenter_dq": Axis.PER_POSITION,
    "dlinear_dq": Axis.PER_POSITION,
    "dlinear_dv": Axis.PER_SPEED,
    "dangular_dq": Axis.PER_POSITION,
    "dangular_dv": Axis.PER_SPEED,
}
_MOMENTUM = engine.Kernel(
    kernels.momentum_derivatives,
    engine.QV,
    tuple(engine.Result(name, (3, axis), optional=True) for name, axis in _PER.items()),
    kernels.N,
    with_elements=engine.indifferent,
)


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
    (dc_dq,) = engine.evaluate_with(_MOMENTUM, check_mass(model), (q,), threads=threads, wanted=slice(1))
    return dc_dq


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
    fields = engine.evaluate_with(_MOMENTUM, check_mass(model), (q, v), threads=threads, wanted=slice(1, None))
    return MomentumDerivatives(*fields)
