"""Exact sensitivities of whole trajectories: ∂a/∂(q, v, τ) of forward dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import aba_derivatives
from kinegrad.dynamics import FORWARD
from kinegrad.dynamics_derivatives import DERIVATIVES
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["ForwardDynamicsDerivatives", "forward_dynamics_derivatives"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ForwardDynamicsDerivatives(Result):
    """Accelerations and their derivatives; ``[..., i, j]`` is that of a_i with respect to coordinate j.

    Attributes
    ----------
    a : ndarray, shape (..., n)
        rad/s² or m/s².
    da_dq, da_dv, da_dtau : ndarray, shape (..., n, n)
        With respect to coordinates, speeds and torques; the last is the inverse of the mass matrix.
    """

    a: Array
    da_dq: Array
    da_dv: Array
    da_dtau: Array


def _in_coordinates(
    at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, options: Sequence[Any]
) -> list[Array]:
    """a, and M⁻¹ times −∂τ/∂(δ, v) and 1, with the mass matrix of coordinates."""
    q, v, tau = at.given.values()
    (a,) = engine.evaluate(FORWARD["aba"], at.model, (q, v, tau), loads, threads=threads)
    _, by_q, by_v, M = engine.evaluate(DERIVATIVES["spatial"][False], at.model, (q, v, a), loads, threads=threads)
    return [a, *engine.solve_derivatives(at, by_q, by_v, M, threads)]


_DERIVATIVES = engine.Kernel(
    aba_derivatives.aba_derivatives,
    engine.QVTAU,
    (
        engine.Result("a", (engine.Axis.ACCELERATION,)),
        engine.Result("da_dq", (engine.Axis.ACCELERATION, engine.Axis.PER_POSITION)),
        engine.Result("da_dv", (engine.Axis.ACCELERATION, engine.Axis.PER_SPEED)),
        engine.Result("da_dtau", (engine.Axis.ACCELERATION, engine.Axis.PER_TORQUE)),
    ),
    tables=lambda model, loaded, stream: engine.acceleration_tables(model, loaded, stream),
    loads=True,
    pivots=True,
    together=3,
    spare=True,
    in_coordinates=_in_coordinates,
    with_elements=engine.pushed_derivatives,
)


def forward_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> ForwardDynamicsDerivatives:
    """The accelerations that τ causes, and their exact derivatives with respect to q, v and τ.

    (The inverse of the mass matrix is full within a tree, so there is no packed form.)

    Parameters
    ----------
    model : Model
    q, v, tau : array_like, shape (..., n)
        Coordinates, speeds, and torques or forces: rad or m, their time derivatives, N·m or N.
    loads : Loads, optional
        External forces and torques on links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ForwardDynamicsDerivatives
        ``a``, shape (..., n), rad/s² or m/s²; ``da_dq``, ``da_dv`` and ``da_dtau`` (the inverse of the mass matrix),
        shape (..., n, n) each, where ``[..., i, j]`` is the derivative of a_i with respect to q_j, v_j or τ_j.

    Raises
    ------
    SingularError
        If a joint has no inertia; see :func:`forward_dynamics`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> forward_dynamics_derivatives(samples.two_link(), [0, 0], [0, 0], [0, 0]).da_dtau.round(3)
    array([[ 5.357, -7.143],
           [-7.143, 17.857]])
    """
    given = None if loads is None else named_loads(model, loads)
    return ForwardDynamicsDerivatives(*engine.evaluate(_DERIVATIVES, model, (q, v, tau), given, None, threads))
