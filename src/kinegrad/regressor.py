"""The inertial regressor: torques as a linear function of masses, first moments and inertias of the links.

What identification of a robot's or a body's inertial parameters from measured motion and torques needs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import kinematics
from kinegrad._kernels import regressor as kernels
from kinegrad.model import Model

__all__ = ["inertial_parameters", "inverse_dynamics_regressor"]

Array = NDArray[np.float64]
_REGRESSOR = engine.Kernel(
    kernels.regressor,
    engine.QVA,
    (engine.Result("Y", (engine.Axis.TORQUE, engine.Axis.PARAMETER), zero=True),),
    kinematics.N,
    with_elements=engine.indifferent,
)


def inertial_parameters(model: Model) -> Array:
    """π: ten numbers of each link, those that torques depend on linearly.

    Parameters
    ----------
    model : Model

    Returns
    -------
    ndarray, shape (10 n,)
        Of each link in turn: mass m [kg]; first moments m·cx, m·cy, m·cz [kg·m]; inertia about the **origin of the
        link frame** Ixx, Ixy, Ixz, Iyy, Iyz, Izz [kg·m²], along its axes.

    Examples
    --------
    >>> from kinegrad import samples
    >>> inertial_parameters(samples.two_link()).reshape(2, 10)[1].round(3)  # com 0.2 m before the tip
    array([ 0.5 , -0.1 ,  0.  ,  0.  ,  0.  ,  0.  ,  0.  ,  0.12,  0.  ,  0.12])
    """
    engine.check_model(model)
    m, c = model.mass, model.com
    h = m[:, None] * c
    squared = np.einsum("ni,ni->n", h, c)
    about_origin = model.inertia + squared[:, None, None] * np.eye(3) - h[:, :, None] * c[:, None, :]
    rows, columns = np.triu_indices(3)
    each = np.column_stack([m, h, about_origin[:, rows, columns]])
    return each.ravel()


def inverse_dynamics_regressor(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, threads: int | None = None
) -> Array:
    """Y of  τ = Y π:  the torques of the links' own inertia and weight, linear in :func:`inertial_parameters`.

    Springs, dampers and armature of the joints, and loads, are not part of it.

    Parameters
    ----------
    model : Model
        Only its geometry and gravity matter here, not its masses.
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.  Batch shapes broadcast.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n, 10 n)
        ``[..., i, 10 j + k]`` is ∂τ_i by parameter k of link j; zero where joint i does not move link j.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link(gravity=(0, -10, 0))
    >>> Y = inverse_dynamics_regressor(arm, [0, 0], [0, 0], [0, 0])  # stretched out, at rest
    >>> (Y @ inertial_parameters(arm)).round(12)
    array([4., 1.])
    >>> Y[:, 10].round(12)  # of the forearm's mass, were it at the tip
    array([8., 4.])
    """
    (Y,) = engine.evaluate(_REGRESSOR, model, (q, v, a), None, None, threads)
    return Y
