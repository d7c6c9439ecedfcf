"""Derivatives of hybrid dynamics with respect to the state, torques of free joints, accelerations of prescribed ones.

With h for prescribed joints, x for free ones, and ID(q, v, a) the inverse dynamics at the solution,

    M_xx da_x = dτ_x − M_xh da_h − (∂ID/∂q)_x dq − (∂ID/∂v)_x dv
    dτ_h = (∂ID/∂q)_h dq + (∂ID/∂v)_h dv + (M da)_h
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.hybrid import hybrid_dynamics, prescribed_flags
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["HybridDynamicsDerivatives", "hybrid_dynamics_derivatives"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HybridDynamicsDerivatives(Result):
    """Results of hybrid dynamics and their derivatives; ``[..., i, j]`` is of joint i by coordinate j.

    Attributes
    ----------
    a, tau : ndarray, shape (..., n)
        As of :class:`HybridDynamics`.
    da_dq, da_dv, da_dtau, da_da : ndarray, shape (..., n, n)
        With respect to coordinates, speeds, torques of free joints and accelerations of prescribed ones; columns of
        entries that are not given are zero.
    dtau_dq, dtau_dv, dtau_dtau, dtau_da : ndarray, shape (..., n, n)
        The same of the torques.
    """

    a: Array
    tau: Array
    da_dq: Array
    da_dv: Array
    da_dtau: Array
    da_da: Array
    dtau_dq: Array
    dtau_dv: Array
    dtau_dtau: Array
    dtau_da: Array


def hybrid_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Iterable[str],
    loads: Loads | None = None,
    threads: int | None = None,
) -> HybridDynamicsDerivatives:
    """Results of :func:`hybrid_dynamics`, and their exact derivatives with respect to all that is given.

    Parameters
    ----------
    model, q, v, tau, a, prescribed, loads, threads
        As of :func:`hybrid_dynamics`.

    Returns
    -------
    HybridDynamicsDerivatives

    Raises
    ------
    SingularError
        If nothing resists a free joint.

    Examples
    --------
    A cart that is pushed: how much the force grows with its acceleration, while its pendulum swings back.

    >>> from kinegrad import samples
    >>> cart = samples.cart_pendulum()
    >>> start = hybrid_dynamics_derivatives(cart, [0, 0], [0, 0], [0, 0], [2, 0], prescribed=["track"])
    >>> start.dtau_da[0, 0].round(3), start.da_da[1, 0].round(3)
    (np.float64(1.05), np.float64(2.5))
    """
    held = prescribed_flags(model, prescribed) == 1
    names = [model.speed_names[k] for k in np.flatnonzero(held)]
    found = hybrid_dynamics(model, q, v, tau, a, prescribed=names, loads=loads, threads=threads)
    free, n = np.flatnonzero(~held), model.nv
    change = inverse_dynamics_derivatives(model, q, v, found.a, loads=loads, threads=threads)
    by_q, by_v, M = map(np.asarray, (change.dtau_dq, change.dtau_dv, change.dtau_da))
    eye = np.broadcast_to(np.where(held, 0.0, np.eye(n)), M.shape)
    with np.errstate(all="ignore"):  # what overflows is found below
        right = np.concatenate([-by_q, -by_v, eye, np.where(held, -M, 0.0)], axis=-1)[..., free, :]
        da = np.zeros((*found.a.shape, 4 * n))
        da[..., free, :] = np.linalg.solve(M[..., free[:, None], free], right)
        da[..., held, 3 * n + np.flatnonzero(held)] = 1.0
        dtau = M @ da
        dtau[..., :n] += by_q
        dtau[..., n : 2 * n] += by_v
        dtau[..., free, :] = 0.0
        dtau[..., free, 2 * n + free] = 1.0
    engine.check_sums(da, dtau)
    parts = [np.ascontiguousarray(x) for whole in (da, dtau) for x in np.split(whole, 4, axis=-1)]
    return HybridDynamicsDerivatives(found.a, found.tau, *parts)
