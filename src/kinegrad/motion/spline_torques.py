"""Torques of a spline motion, and their derivatives by control points, final time and knots: [xiang2008] (41), (42).

With the derivatives of inverse dynamics at the instants s, packed by the topology of the mechanism, and (1)–(3) of
``motion/bspline.py``,

    ∂τ_i/∂p_{αj} = ∂τ_i/∂q_j N_α + ∂τ_i/∂v_j N_α′/T + ∂τ_i/∂a_j N_α″/T²
    ∂τ/∂T        = −(∂τ/∂v v + 2 ∂τ/∂a a) / T
    ∂τ/∂s_k      = ∂τ/∂q ∂q/∂s_k + ∂τ/∂v ∂v/∂s_k + ∂τ/∂a ∂a/∂s_k

The first is sparse twice: a torque depends on the coordinates of its own branches, and an instant on degree + 1 control
points.  It is assembled from these entries alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads
from kinegrad.model import Model
from kinegrad.motion.bspline import SplineBasis
from kinegrad.results import Result

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["SplineTorqueDerivatives", "spline_torque_derivatives"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SplineTorqueDerivatives(Result):
    """Torques of a spline motion, and how they change.

    Attributes
    ----------
    tau : ndarray, shape (K, n)
    dtau_dpoints : scipy.sparse.csr_array, shape (K n, control_points n)
        Row k n + i is torque i at instant k; column α n + j is control point α of coordinate j.
    dtau_dT : ndarray, shape (K, n)
    dtau_dknots : ndarray, shape (K, n, len(knots))
    """

    tau: Array
    dtau_dpoints: csr_array
    dtau_dT: Array
    dtau_dknots: Array


def spline_torque_derivatives(
    model: Model,
    basis: SplineBasis,
    points: ArrayLike,
    T: float,
    s: ArrayLike,
    *,
    knots: Sequence[int] = (),
    loads: Loads | None = None,
) -> SplineTorqueDerivatives:
    """The torques that a spline motion takes, with exact derivatives by its control points, final time and knots.

    Parameters
    ----------
    model : Model
        Coordinates that are quaternions are refused.
    basis : SplineBasis
    points : array_like, shape (control_points, n)
        Control points of all coordinates, rad or m.
    T : float
        The final time, s.
    s : array_like, shape (K,)
        Instants t/T, from 0 to 1.
    knots : sequence of int
        Inner breakpoints to differentiate by, as of :meth:`SplineBasis.knot_derivatives`.
    loads : Loads, optional

    Examples
    --------
    >>> from kinegrad import samples
    >>> basis = SplineBasis(4)
    >>> line = basis.greville[:, None] * [1.0, 2.0]
    >>> found = spline_torque_derivatives(samples.two_link(), basis, line, 0.5, [0.0, 0.5, 1.0])
    >>> found.dtau_dpoints.shape, found.dtau_dT.shape
    ((6, 14), (3, 2))
    """
    from scipy.sparse import csr_array

    engine.check_model(model)
    if model.nq != model.nv:
        raise InputError(f"model {shown(model.name)} has coordinates that are quaternions; expected none for splines")
    if not isinstance(basis, SplineBasis):
        raise InputError(f"`basis` is a {type(basis).__name__}; expected a SplineBasis")
    time = engine.positive("T", T)
    at, p = np.atleast_1d(engine.real("s", s)), engine.real("points", points)
    n = model.nv
    if p.shape != (basis.control_points, n):
        raise InputError(f"`points` has shape {p.shape}; expected {(basis.control_points, n)}")
    q, v, a = basis.evaluate(p, time, at)
    d = inverse_dynamics_derivatives(model, q, v, a, loads=loads, packed=True)
    packed: list[Any] = [d.dtau_dq, d.dtau_dv, d.dtau_da]
    i, j = model.pattern
    columns, values = basis.window(at, 3)
    entries = sum(
        x.values[:, :, None] * values[order][:, None, :] / time**order for order, x in enumerate(packed)
    )  # (K, packed, degree + 1)
    rows = np.broadcast_to((np.arange(len(at)) * n)[:, None, None] + i[None, :, None], entries.shape)
    where = columns[:, None, :] * n + j[None, :, None]
    shape = (len(at) * n, basis.control_points * n)
    sparse = csr_array((np.ravel(entries), (rows.ravel(), where.ravel())), shape=shape)

    def along(dq: Array, dv: Array, da: Array) -> Array:
        out = np.zeros((len(at), n, *dq.shape[2:]))
        for x, change in zip(packed, (dq, dv, da), strict=True):
            part = x.values.reshape(*x.values.shape, *(1,) * (change.ndim - 2)) * change[:, j]
            for k in range(n):
                out[:, k] += part[:, i == k].sum(axis=1)
        return out

    dT = along(np.zeros_like(q), -v / time, -2 * a / time)
    moved = [basis.knot_derivatives(p, at, knots, order) / time**order for order in range(3)]
    return SplineTorqueDerivatives(d.tau, sparse, dT, along(*moved))
