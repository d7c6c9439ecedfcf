"""Exact second derivatives of forward dynamics, contracted with weights: ∂²(wᵀa)/∂(q, v, τ)²."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad.dynamics_hessian import inverse_dynamics_hessian
from kinegrad.forward_derivatives import forward_dynamics_derivatives
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["ForwardDynamicsHessian", "forward_dynamics_hessian"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ForwardDynamicsHessian(Result):
    """Second derivatives of wᵀa; ``d2_dqdtau[..., i, j]`` is ∂²(wᵀa)/∂q_i∂τ_j.

    Those by v and τ, and by τ twice, are zero.

    Attributes
    ----------
    d2_dqdq, d2_dvdv : ndarray, shape (..., n, n)
        Symmetric.
    d2_dqdv, d2_dqdtau : ndarray, shape (..., n, n)
        The row is that of q.
    """

    d2_dqdq: Array
    d2_dqdv: Array
    d2_dqdtau: Array
    d2_dvdv: Array


def forward_dynamics_hessian(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    w: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> ForwardDynamicsHessian:
    """The exact second derivatives of wᵀa with respect to q, v and τ, for weights w of the accelerations.

    They follow from those of inverse dynamics with the weights M⁻¹w, and from the first derivatives of a
    (docs/theory/hessian.md); no tensor is formed.  With respect to quaternions, they are those by the rotation vector δ
    of q ⊕ δ, as of :func:`inverse_dynamics_hessian`.

    Parameters
    ----------
    model : Model
    q, v, tau : array_like, shape (..., n)
        Coordinates, speeds, and torques or forces: rad or m, their time derivatives, N·m or N.
    w : array_like, shape (..., n)
        Weights of the accelerations; batch shapes broadcast.
    loads : Loads, optional
        External forces and torques on links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ForwardDynamicsHessian
        ``d2_dqdq``, ``d2_dqdv``, ``d2_dqdtau`` and ``d2_dvdv``, shape (..., n, n) each, where ``d2_dqdtau[..., i,
        j]`` is ∂²(wᵀa)/∂q_i∂τ_j; the derivatives with respect to (v, τ) and (τ, τ) are zero.

    Raises
    ------
    SingularError
        If nothing resists a joint; see :func:`forward_dynamics`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link()
    >>> forward_dynamics_hessian(arm, [0, np.pi / 2], [0, 0], [0, 0], [1, 0]).d2_dqdtau.round(3) + 0.0
    array([[0.   , 0.   ],
           [0.   , 1.667]])
    """
    engine.check_model(model)
    given, _ = engine.check_arguments(model, {"q": q, "v": v, "tau": tau, "w": w}, named_loads(model, loads))
    q, v, tau, weights = given.values()
    d = forward_dynamics_derivatives(model, q, v, tau, loads=loads, threads=threads)
    with np.errstate(all="ignore"):  # what overflows is found by who takes it
        multipliers = (d.da_dtau * weights[..., None, :]).sum(axis=-1)
    H = inverse_dynamics_hessian(model, q, v, d.a, multipliers, loads=loads, threads=threads)
    second = H.d2_dqdq, H.d2_dqdv, H.d2_dqda, H.d2_dvdv
    return ForwardDynamicsHessian(
        *engine.solved_hessian(model, [np.asarray(x) for x in second], (d.da_dq, d.da_dv, d.da_dtau), threads)
    )
