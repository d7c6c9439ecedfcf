"""Exact second derivatives of constrained motion, contracted with weights of accelerations and forces.

With multipliers f of the constraints, rows r = φ̈ + 2α φ̇ + β² φ and Lagrange multipliers (λ, μ) of the weights,

    M a + c − Gᵀf = τ,    r(q, v, a) = 0        M λ + Gᵀμ = w_a,    −G λ = w_f                                     (1)

the sum φ = w_aᵀa + w_fᵀf has the second derivatives of ``_kernels/implicit_hessian.py`` with z = (a, f) and

    ℒ = λᵀτ(q, v, a) − fᵀG(q) λ + μᵀr(q, v, a)                                                                     (2)

The first term has those of inverse dynamics with weights λ, the second is −fᵀφ̇ at speeds λ, and the last is a sum of
errors, velocities and accelerations of rows with weights β²μ, 2αμ and μ: ``_kernels/constraint_hessian.py`` has both.

Where rows depend on each other, f is of least norm and r of least squares.  With g among the unknowns, which is free
but for what G sees of it,

    M a + c − Gᵀf = τ,    Gᵀr = 0,    f = G g           ℒ = λᵀ(τ − Gᵀf) + rᵀG x + νᵀ(f − G g)                      (3)
    M λ + Gᵀμ = w_a,    −G λ + ν = w_f,    Gᵀν = 0       μ = G x

so that −G λ is what of w_f the rows see, ν is the rest of it, and μ is of least norm: (1) solved by least squares.
Any smooth g will do while the rank of G stays what it is, since the sum does not depend on it.  Beyond (2), ℒ has then

    by q twice   ∂²(rᵀG x), at fixed r, and (∂(G x)/∂q)ᵀ (∂r/∂q) with its transpose;    −∂²(νᵀG g)
    by q and v   (∂(G x)/∂q)ᵀ (∂r/∂v)                    by q and g   −(∂(Gᵀν)/∂q)ᵀ                                (4)

where r is followed along with a.  Since Gᵀr = 0 stays so, only what Gᵀ does not see is taken of r and of its
derivatives, and the rest of these is −(Gᵀ)⁺ (∂Gᵀ) r: of independent rows nothing is left, not even rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._engine import saddle
from kinegrad._kernels import constraint_hessian as kernels
from kinegrad._kernels import constraints as rows
from kinegrad.constrained.derivatives import ConstrainedDynamicsDerivatives, constrained_dynamics_derivatives
from kinegrad.constrained.system import REDUNDANT, Stabilisation, quietly, solve_dense, stabilisation_law, unmet
from kinegrad.constraints import ConstraintSet
from kinegrad.constraints.assembly import check_set
from kinegrad.dynamics import mass_matrix
from kinegrad.dynamics_hessian import inverse_dynamics_hessian
from kinegrad.errors import InputError
from kinegrad.forward_hessian import forward_dynamics_hessian
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["ConstrainedDynamicsHessian", "constrained_dynamics_hessian"]

Array = NDArray[np.float64]
Axis = engine.Axis


def _slots(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
    return (), rows.slots(model.n)


_BLOCKS = {"d2_dqdq": Axis.PER_POSITION, "d2_dqdv": Axis.PER_SPEED, "d2_dqda": Axis.PER_ACCELERATION}
_ROWS = engine.Kernel(
    kernels.constraint_hessian,
    engine.QVA,
    tuple(engine.Result(name, (Axis.PER_POSITION, axis), zero=True) for name, axis in _BLOCKS.items()),
    tables=_slots,
    with_elements=engine.indifferent,
)


@dataclass(frozen=True, eq=False)
class ConstrainedDynamicsHessian(Result):
    """Second derivatives of w_aᵀa + w_forcesᵀf; ``d2_dqdtau[..., i, j]`` is by q_i and τ_j.

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


def constrained_dynamics_hessian(
    model: Model,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    w_a: ArrayLike | None = None,
    w_forces: ArrayLike | None = None,
    loads: Loads | None = None,
    method: str = "range-space",
    stabilisation: Stabilisation = None,
    redundant: str = "error",
    threads: int | None = None,
) -> ConstrainedDynamicsHessian:
    """The exact second derivatives of a weighted sum of accelerations and forces of constraints by q, v and τ.

    Derivatives are those of the formulas for any q and v, met constraints or not.  With respect to quaternions, they
    are those by the rotation vector δ of q ⊕ δ, as of :func:`inverse_dynamics_hessian`.  With
    ``redundant="least-squares"`` they are those of the forces of least norm, where the rank of the constraints stays
    what it is.

    Parameters
    ----------
    model, constraints, q, v, tau, loads, method, stabilisation, redundant, threads
        As of :func:`constrained_dynamics`.
    w_a : array_like, shape (..., n), optional
        Weights of the accelerations; zero if not given.
    w_forces : array_like, shape (..., m), optional
        Weights of the forces of constraints; zero if not given.

    Returns
    -------
    ConstrainedDynamicsHessian
        ``d2_dqdq``, ``d2_dqdv``, ``d2_dqdtau`` and ``d2_dvdv``, shape (..., n, n) each; the derivatives with respect
        to (v, τ) and (τ, τ) are zero.

    Raises
    ------
    SingularError
        As :func:`constrained_dynamics`.

    Examples
    --------
    >>> import kinegrad as kg
    >>> arm = kg.samples.two_link()
    >>> tip = kg.ConstraintSet(arm, [kg.Contact("forearm", directions="xy")])
    >>> held = constrained_dynamics_hessian(arm, tip, [0.5, -1.0], [0, 0], [0, 0], w_forces=[1, 0])
    >>> held.d2_dqdtau[1].round(3)  # the torque of a joint is borne by forces that turn as the arm does
    array([ 3.098, -4.773])
    """
    check_set(model, constraints)
    engine.one_of("method", method, saddle.METHODS)
    least = engine.one_of("redundant", redundant, REDUNDANT) == "least-squares"
    law = stabilisation_law(stabilisation)
    given, shape = engine.check_arguments(
        model, {"q": q, "v": v, "tau": tau, "w_a": np.zeros(model.nv) if w_a is None else w_a},
        named_loads(model, loads),
    )  # fmt: skip
    q, v, tau, of_a = given.values()
    of_f, shape = _force_weights(constraints, w_forces, shape)
    if not constraints.m:
        of_a = np.broadcast_to(of_a, (*shape, model.nv))
        free = forward_dynamics_hessian(model, q, v, tau, of_a, loads=loads, threads=threads)
        return ConstrainedDynamicsHessian(**vars(free))
    d = constrained_dynamics_derivatives(
        model, constraints, q, v, tau, loads=loads, method=method, stabilisation=law, redundant=redundant,
        threads=threads,
    )  # fmt: skip
    return _hessian(model, constraints, (q, v), d, (of_a, of_f), loads, method, law, least, threads)


def _force_weights(
    constraints: ConstraintSet, given: Any, shape: tuple[int, ...]
) -> tuple[Array, tuple[int, ...]]:  # fmt: skip
    """Weights of forces, (..., m), that fit the batch, and the batch shape with them."""
    x = engine.real("w_forces", np.zeros(constraints.m) if given is None else given)
    if x.shape[-1:] != (constraints.m,):
        raise InputError(
            f"`w_forces` has shape {x.shape}; expected its last axis to be {constraints.m}, one for each row"
        )
    if not np.isfinite(x).all():
        raise engine.not_finite("w_forces", x)
    return x, engine.broadcast({"the state": shape, "w_forces": x.shape[:-1]}, [shape, x.shape[:-1]])


@quietly
def _hessian(
    model: Model, constraints: ConstraintSet, state: tuple[Array, Array], d: ConstrainedDynamicsDerivatives,
    weights: tuple[Array, Array], loads: Loads | None, method: str, law: tuple[float, float], least: bool,
    threads: int | None,
) -> ConstrainedDynamicsHessian:  # fmt: skip
    """(2), or (3), put together."""
    (q, v), (alpha, beta) = state, law
    M, G = mass_matrix(model, q, threads=threads), constraints.jacobian(q, threads=threads)
    of_a, of_f = weights
    x, y = solve_dense(constraints, q, method, M, G, of_a[..., None], -of_f[..., None], least=least)
    lam, mu = np.ascontiguousarray(x[..., 0]), np.ascontiguousarray(-y[..., 0])
    H = inverse_dynamics_hessian(model, q, v, d.a, lam, loads=loads, threads=threads)
    L_qq, L_qv, L_qa, L_vv = (np.asarray(x) for x in vars(H).values())
    none = np.zeros_like(mu)
    curved = row_hessian(constraints, (q, v, d.a), (beta**2 * mu, 2 * alpha * mu, mu), threads)
    pulled = row_hessian(constraints, (q, lam, np.zeros(model.nv)), (none, -d.forces, none), threads)
    turned = np.asarray(constraints.derivatives(q, lam, threads=threads).dvelocity_dq)  # ∂(Gλ)/∂q
    L_qf = np.broadcast_to(-turned.swapaxes(-1, -2), (*L_qq.shape[:-1], constraints.m))
    L_qz = np.concatenate([L_qa + curved[2], L_qf], axis=-1)
    second = [L_qq + curved[0] + pulled[0], L_qv + curved[1], L_qz, L_vv + curved[3]]
    of_z = [[d.da_dq, d.dforces_dq], [d.da_dv, d.dforces_dv], [d.da_dtau, d.dforces_dtau]]
    if least:
        nu = saddle.loose_ends(G, of_f[..., None])[..., 0] + none
        _add_dependent(constraints, (q, v), d, G, (mu, nu), law, second, of_z, threads)
    engine.check_sums(*second)
    first = [np.concatenate(parts, axis=-2) for parts in of_z]
    return ConstrainedDynamicsHessian(*engine.solved_hessian(model, second, first, threads, full=True))


def _add_dependent(
    constraints: ConstraintSet, state: tuple[Array, Array], d: ConstrainedDynamicsDerivatives, G: Array,
    multipliers: tuple[Array, Array], law: tuple[float, float], second: list[Array], of_z: list[list[Array]],
    threads: int | None,
) -> None:  # fmt: skip
    """(4): to the blocks of ℒ, whose ℒ_qz becomes longer by g, and to the derivatives of z, which do, too."""
    (q, v), (mu, nu), (alpha, beta) = state, multipliers, law
    still, none = np.zeros(constraints.model.nv), np.zeros_like(nu)
    x, g = saddle.source(G, mu), saddle.source(G, d.forces)
    at = constraints.derivatives(q, v, d.a, threads=threads)
    r_q = np.asarray(at.dacceleration_dq) + 2 * alpha * np.asarray(at.dvelocity_dq) + beta**2 * G + G @ d.da_dq
    r_v = np.asarray(at.dacceleration_dv) + 2 * alpha * G + G @ d.da_dv
    left = saddle.loose_ends(G, unmet(constraints, q, v, d.a, law, threads)[..., None])[..., 0]
    r_q = saddle.loose_ends(G, r_q) - saddle.tilted(G, constraints.curvature(q, left, threads=threads))
    r_v = saddle.loose_ends(G, r_v)
    turned = saddle.T(np.asarray(constraints.derivatives(q, x, threads=threads).dvelocity_dq))  # (∂(G x)/∂q)ᵀ
    missed = row_hessian(constraints, (q, x, still), (none, left + none, none), threads)
    bent = row_hessian(constraints, (q, g, still), (none, -nu, none), threads)
    crossed = turned @ r_q
    second[0] = second[0] + missed[0] + crossed + saddle.T(crossed) + bent[0]
    second[1] = second[1] + turned @ r_v
    second[2] = np.concatenate([second[2], np.broadcast_to(bent[1], second[0].shape)], axis=-1)
    moved = np.asarray(constraints.derivatives(q, g, threads=threads).dvelocity_dq)  # ∂(G g)/∂q
    of_f = of_z[0][1] - moved, of_z[1][1], of_z[2][1]
    for parts, change in zip(of_z, of_f, strict=True):
        parts.append(saddle.least_norm(G, change))


def row_hessian(
    constraints: ConstraintSet, state: Sequence[Array], weights: Sequence[Array], threads: int | None
) -> list[Array]:
    """Blocks qq, qv, qa, vv, (..., n, n) each, of errors, velocities and accelerations of rows with these weights."""
    model = constraints.model
    error, velocity, acceleration = weights
    shape = np.broadcast_shapes(*(x.shape[:-1] for x in (*state, *weights)))
    q = np.broadcast_to(state[0], (*shape, model.nq))
    if engine.mapped(model):
        return _row_hessian_in_coordinates(constraints, (q, *state[1:]), weights, threads)
    jets = [
        engine.kernel_array(np.broadcast_to(x, (*shape, constraints.m)).reshape(math.prod(shape), constraints.m))
        for x in (acceleration, 0.5 * velocity, error)
    ]
    options = [tuple(constraints._tables), *jets]
    unseen = dict(zip(("w_forces", "w_a", "q"), jets, strict=True))
    qq, qv, qa = engine.evaluate_with(
        _ROWS, model, (q, *state[1:]), threads=threads, points=(constraints.m,), options=options, unseen=unseen
    )  # fmt: skip
    return [qq, qv, qa, 2.0 * qa]


def _row_hessian_in_coordinates(
    constraints: ConstraintSet, state: Sequence[Array], weights: Sequence[Array], threads: int | None
) -> list[Array]:
    """The same where coordinates are not joints: by the chain rule of ``_engine/curvature.py``."""
    at, joints = engine.Expansion(constraints.model, dict(zip("qva", state, strict=True))), constraints._primitive
    motion = at.arguments(engine.QVA)
    qq, qv, qa, vv = row_hessian(joints, motion, weights, threads)
    d = joints.derivatives(*motion, threads=threads)
    by = (
        (d.derror_dq, d.dvelocity_dq, d.dacceleration_dq),
        (None, d.dvelocity_dv, d.dacceleration_dv),
        (None, None, d.dacceleration_da),
    )
    gradient = [
        sum((w[..., :, None] * x).sum(axis=-2) for w, x in zip(weights, slopes, strict=True) if x is not None)
        for slopes in by
    ]
    n = at.layout.n
    none, nothing, w = np.zeros((*at.shape, n)), np.zeros((*at.shape, n, n)), np.zeros((*at.shape, at.layout.nv))
    slopes = [np.asarray(x) for x in (*gradient, none)]
    return engine.hessian_in_coordinates(at, w, slopes, (nothing, nothing, nothing), (qq, qv, qa, vv), across=True)
