"""Derivatives of torques, accelerations and the mass matrix with respect to design parameters.

They are those of the recursive algorithms themselves, O(n) for each parameter, no matrix formed ([anderson2002]
(62)–(70)): compiled for dual numbers, and for torques and accelerations written out, so that parameters share values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import aba_tangent, design_tangent, rnea_reverse, rnea_tangent
from kinegrad._kernels import dual_kernels as kernels
from kinegrad.design import coordinates, elements
from kinegrad.design.parameters import (
    Design,
    directions,
    kernel_constants,
    sparse_slopes,
)
from kinegrad.design.running import check, followed, loads_of, model_of, parameters_last, quantity
from kinegrad.dynamics import MASS_MATRIX, forward_dynamics, inverse_dynamics, reduced_mass_matrix
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model

__all__ = [
    "forward_dynamics_design_derivatives",
    "inverse_dynamics_design_derivatives",
    "inverse_dynamics_design_vjp",
    "mass_matrix_design_derivatives",
]

Array = NDArray[np.float64]


def _slots(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
    return (), design_tangent.slots(model.n)


_TORQUES = engine.Kernel(
    rnea_tangent.inverse_dynamics,
    engine.QVA,
    (engine.Result("dtau_dp", (engine.Axis.TORQUE,)),),
    tables=_slots,
    loads=True,
)
_ACCELERATIONS = engine.Kernel(
    aba_tangent.forward_dynamics,
    engine.QVTAU,
    (engine.Result("da_dp", (engine.Axis.ACCELERATION,)),),
    tables=_slots,
    loads=True,
    pivots=True,
)
_GRADIENT = engine.Kernel(
    rnea_reverse.by_constants,
    engine.QVA | {"w": engine.Kind.WEIGHT},
    (engine.Result("gradient", (engine.Axis.CONSTANT,), zero=True),),
    rnea_reverse.N,
    loads=True,
)
_MASS_MATRIX = replace(MASS_MATRIX, function=kernels.mass_matrix)


def inverse_dynamics_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """∂τ/∂p at fixed motion: how the torques of :func:`inverse_dynamics` change with each parameter.

    Parameters
    ----------
    design : Design
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.
    loads : Loads, optional
        External forces and torques on links; those of the design if it has any.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n, p)

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(gravity=(0, -10, 0)), ["forearm.mass"])
    >>> inverse_dynamics_design_derivatives(design, [0, 0], [0, 0], [0, 0])[:, 0]
    array([6., 2.])
    """
    if model_of(design).elements:
        acting, plain = elements.changes(design, q, v, threads=threads), elements.without_elements(design)
        change = inverse_dynamics_design_derivatives(plain, q, v, a, loads=loads, threads=threads)
        change -= acting.dQ_dp
        engine.check_sums(change)
        return change
    if design.model.coordinates:
        at, change = _torques_in_coordinates(design, (q, v, a), (None, None, None), loads, threads)
        return at.deliver(["dtau_dp"], [np.ascontiguousarray(coordinates.last(change))])[0]
    return _tangents(design, _TORQUES, (q, v, a), (None, None, None), loads, threads)[1]


def inverse_dynamics_design_vjp(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """The gradient of wᵀτ with respect to all parameters at fixed motion: wᵀ ∂τ/∂p without ∂τ/∂p.

    One backward sweep gives the gradient with respect to every constant of the model, O(n) whatever p is, and that of
    the parameters follows from it.  For many parameters this is p times less work than the derivatives.

    Parameters
    ----------
    design : Design
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations.
    w : array_like, shape (..., n)
        Weights of the torques.
    loads, threads
        As of :func:`inverse_dynamics_design_derivatives`.

    Returns
    -------
    ndarray, shape (..., p)

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(gravity=(0, -10, 0)), ["forearm.mass", "elbow.a"])
    >>> inverse_dynamics_design_vjp(design, [0, 0], [0, 0], [0, 0], [1, 0])
    array([6., 5.])
    """
    gradient, batch = constants_gradient(design, q, v, a, w, loads=loads, threads=threads)
    shares = share_of_parameters(design, gradient)
    check(batch, [shares])
    return shares.reshape(*batch.shape, design.p)


def constants_gradient(
    design: Design, *state: ArrayLike, loads: Loads | None = None, threads: int | None = None
) -> tuple[Array, engine.Batch]:
    """The gradient of wᵀτ at q, v, a, w with respect to all constants of kernels and loads, (states, columns); and the
    batch."""
    model = model_of(design)
    if model.elements:
        return _gradient_with_elements(design, state, loads, threads)
    given = named_loads(model, loads_of(design, loads))
    if model.coordinates:
        at = engine.Expansion(model, dict(zip(_GRADIENT.state, state, strict=True)), given)
        primitive = coordinates.primitive_design(design)
        return constants_gradient(primitive, *at.arguments(_GRADIENT.state), loads=loads, threads=threads)
    batch, rows, load_rows = engine.checked(_GRADIENT, model, state, given)
    _, gradient = batch.output((rnea_reverse.columns(model.n, given is not None),), zero=True)
    constants = kernel_constants(design)
    engine.fill(_GRADIENT, batch, threads, (*rows, *load_rows), [gradient], constants, given is not None)
    return gradient, batch


def _gradient_with_elements(
    design: Design, state: Sequence[ArrayLike], loads: Loads | None, threads: int | None
) -> tuple[Array, engine.Batch]:
    """The same where there are force elements: columns of their share, by parameters, come last."""
    q, v, _, w = state
    acting, plain = elements.changes(design, q, v, threads=threads), elements.without_elements(design)
    gradient, batch = constants_gradient(plain, *state, loads=loads, threads=threads)
    with np.errstate(all="ignore"):  # what overflows is found in the end
        share = -(acting.dQ_dp * engine.real("w", w)[..., None]).sum(axis=-2)
    whole = np.broadcast_to(share, (*batch.shape, design.p)).reshape(-1, design.p)
    return np.concatenate([gradient[:, : sparse_slopes(plain).shape[1]], whole], axis=1), batch


def share_of_parameters(design: Design, gradient: Array) -> Array:
    """From gradients with respect to constants, (..., columns), to those with respect to parameters, (..., p)."""
    slopes = sparse_slopes(design)  # which adds in the same order always
    rows = gradient[..., : slopes.shape[1]].reshape(-1, slopes.shape[1])
    with np.errstate(all="ignore"):  # what overflows is found in the end
        shares: Array = (slopes @ rows.T).T
    return np.ascontiguousarray(shares).reshape(*gradient.shape[:-1], design.p)


def forward_dynamics_design_derivatives(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    dq_dp: ArrayLike | None = None,
    dv_dp: ArrayLike | None = None,
    dtau_dp: ArrayLike | None = None,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """da/dp: how the accelerations of :func:`forward_dynamics` change with each parameter.

    At fixed state and torques; or, if their own derivatives are given, the total derivative: [anderson2002] (9), fully
    recursive.

    Parameters
    ----------
    design : Design
    q, v, tau : array_like, shape (..., n)
        Coordinates, speeds, and torques or forces: rad or m, their time derivatives, N·m or N.
    dq_dp, dv_dp, dtau_dp : array_like, shape (..., n, p), optional
        How the state and the torques follow the parameters.
    loads : Loads, optional
        External forces and torques on links; those of the design if it has any.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n, p)

    Raises
    ------
    SingularError
        If nothing resists a joint, as in :func:`forward_dynamics`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.double_pendulum(), ["P.mass"])
    >>> forward_dynamics_design_derivatives(design, [0, 0], [0, 0], [1, 0]).round(12)[:, 0]
    array([-1.,  2.])
    """
    return forward_dynamics_along(design, (q, v, tau), (dq_dp, dv_dp, dtau_dp), loads, threads)[1]


def forward_dynamics_along(
    design: Design,
    state: Sequence[Any],
    follow: Sequence[Any],
    loads: Loads | None = None,
    threads: int | None = None,
) -> tuple[Array, Array]:
    """a and da/dp, in one pass, of q, v and τ, and of how they follow the parameters."""
    if model_of(design).elements:
        (q, v, tau), (dq, dv, dtau) = state, follow
        acting, plain = elements.changes(design, q, v, dq, dv, threads), elements.without_elements(design)
        given, lost = engine.with_forces(tau, acting.Q)
        a, da = forward_dynamics_along(plain, (q, v, given), (dq, dv, acting.added("dtau_dp", dtau)), loads, threads)
        engine.lose(lost, (a, 1), (da, 2))
        return a, da
    if design.model.coordinates:
        a = forward_dynamics(design.model, *state, loads=loads_of(design, loads), threads=threads)
        none, slopes = np.zeros(design.model.nv, dtype=bool), (*follow, None)
        return a, accelerations_in_coordinates(design, none, (*state[:2], a), slopes, loads, threads)[0]
    return _tangents(design, _ACCELERATIONS, state, follow, loads, threads)


def mass_matrix_design_derivatives(design: Design, q: ArrayLike, *, threads: int | None = None) -> Array:
    """∂M/∂p, shape (..., n, n, p); arguments as in :func:`inverse_dynamics_design_derivatives`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> mass_matrix_design_derivatives(Design(samples.two_link(), ["forearm.mass"]), [0, 0])[..., 0].round(3)
    array([[0.36, 0.12],
           [0.12, 0.04]])
    """
    if model_of(design).elements:
        return mass_matrix_design_derivatives(elements.without_elements(design), q, threads=threads)
    if design.model.coordinates:
        at = engine.Expansion(design.model, {"q": q})
        change = mass_matrix_design_derivatives(coordinates.primitive_design(design), at.q, threads=threads)
        contracted = at.G.pull(at.G.pull(coordinates.first(change), -2), inner=1)
        return at.deliver(["dM_dp"], [np.ascontiguousarray(coordinates.last(contracted))])[0]
    return quantity(design, _MASS_MATRIX, (q,), threads)


def _torques_in_coordinates(
    design: Design, state: Sequence[Any], follow: Sequence[Any], loads: Loads | None, threads: int | None
) -> tuple[engine.Expansion, Array]:
    """The motion q, v, a, and dτ/dp, (p, ..., nv), where coordinates are not joints; `follow` are their slopes."""
    whole = loads_of(design, loads)
    at = engine.Expansion(design.model, dict(zip("qva", state, strict=True)), named_loads(design.model, whole))
    names = ("dq_dp", "dv_dp", "da_dp")
    slopes = coordinates.checked_slopes(design, at, **dict(zip(names, follow, strict=True)))
    tau = inverse_dynamics(at.primitive, at.q, at.v, at.a, loads=whole, threads=threads)

    def tangents(primitive: Design, state: Sequence[Any], follow: Sequence[Any]) -> Array:
        return _tangents(primitive, _TORQUES, state, follow, loads, threads)[1]

    return at, coordinates.torques(design, at, tau, tangents, *slopes.values())


def accelerations_in_coordinates(
    design: Design, held: NDArray[np.bool_], state: Sequence[Any], follow: Sequence[Any], loads: Loads | None,
    threads: int | None,
) -> tuple[Array, ...]:  # fmt: skip
    """da/dp and dτ/dp, (..., nv, p), at q, v and all of a; `follow` are slopes of q, v, τ of free ones, a of others."""
    dq, dv, dtau, da = follow
    at, change = _torques_in_coordinates(design, state, (dq, dv, da), loads, threads)
    given = coordinates.checked_slopes(design, at, da_dp=da, dtau_dp=dtau)
    M = reduced_mass_matrix(at, threads)
    found = coordinates.accelerations(at, M, change, given["dtau_dp"], given["da_dp"], held)
    return at.deliver(["da_dp", "dtau_dp"], found)


def _tangents(
    design: Design,
    kernel: engine.Kernel,
    state: Sequence[Any],
    follow: Sequence[Any],
    loads: Loads | None,
    threads: int | None,
) -> tuple[Array, Array]:
    """What a kernel of state and loads finds, (..., n), if it solves for it, and its derivatives, (..., n, p)."""
    batch, pairs, load_rows = followed(design, kernel, state, follow, loads, look=False)
    values, found = engine.run_tangents(kernel, batch, directions(design), pairs, load_rows, threads)
    return values.reshape(*batch.shape, batch.n), parameters_last(batch, found, (batch.n,))
