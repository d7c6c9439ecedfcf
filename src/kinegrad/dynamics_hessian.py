"""Exact second derivatives of inverse dynamics, contracted with weights: ∂²(wᵀτ)/∂(q, v, a)², their products with
vectors, and, on request, the whole tensors ∂²τ/∂(q, v, a)²."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import dual_kernels, rnea_hessian, rnea_hessian_product, rnea_reverse
from kinegrad.dynamics import METHODS
from kinegrad.dynamics_derivatives import DERIVATIVES, JVP, VJP, InverseDynamicsGradient
from kinegrad.errors import InputError
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model
from kinegrad.packed_matrix import PackedMatrix, given_arrays
from kinegrad.results import Result

__all__ = [
    "InverseDynamicsHessian",
    "InverseDynamicsSecondOrder",
    "InverseDynamicsTensors",
    "inverse_dynamics_hessian",
    "inverse_dynamics_hessian_tensors",
    "inverse_dynamics_hvp",
    "inverse_dynamics_second_order",
]

Array = NDArray[np.float64]
Axis, Kind = engine.Axis, engine.Kind
Tables = tuple[tuple[Any, ...], int]
LARGEST_TENSORS = 2**31  # bytes of the tensors that one call makes without being told that it may


@dataclass(frozen=True, eq=False)
class InverseDynamicsHessian(Result):
    """Second derivatives of wᵀτ; ``d2_dqdv[..., i, j]`` is ∂²(wᵀτ)/∂q_i∂v_j.

    Those by v and a, and by a twice, are zero.

    Attributes
    ----------
    d2_dqdq, d2_dvdv : ndarray, shape (..., n, n), or PackedMatrix
        Symmetric.
    d2_dqdv, d2_dqda : ndarray, shape (..., n, n), or PackedMatrix
        The row is that of q.
    """

    d2_dqdq: Array | PackedMatrix
    d2_dqdv: Array | PackedMatrix
    d2_dqda: Array | PackedMatrix
    d2_dvdv: Array | PackedMatrix


@dataclass(frozen=True, eq=False)
class InverseDynamicsSecondOrder(Result):
    """Torques, their first derivatives, and the second derivatives of wᵀτ.

    Attributes
    ----------
    tau : ndarray, shape (..., n)
        N·m or N.
    dtau_dq, dtau_dv, dtau_da : ndarray, shape (..., n, n), or PackedMatrix
        As of :class:`InverseDynamicsDerivatives`.
    d2_dqdq, d2_dqdv, d2_dqda, d2_dvdv : ndarray, shape (..., n, n), or PackedMatrix
        As of :class:`InverseDynamicsHessian`.
    """

    tau: Array
    dtau_dq: Array | PackedMatrix
    dtau_dv: Array | PackedMatrix
    dtau_da: Array | PackedMatrix
    d2_dqdq: Array | PackedMatrix
    d2_dqdv: Array | PackedMatrix
    d2_dqda: Array | PackedMatrix
    d2_dvdv: Array | PackedMatrix


@dataclass(frozen=True, eq=False)
class InverseDynamicsTensors(Result):
    """Second derivatives of every torque; ``d2tau_dqdv[..., k, i, j]`` is ∂²τ_k/∂q_i∂v_j.

    Those by v and a, and by a twice, are zero.

    Attributes
    ----------
    d2tau_dqdq, d2tau_dqdv, d2tau_dqda, d2tau_dvdv : ndarray, shape (..., n, n, n)
    """

    d2tau_dqdq: Array
    d2tau_dqdv: Array
    d2tau_dqda: Array
    d2tau_dvdv: Array


# --- kernels ------------------------------------------------------------------------------------------------------

_STATE = engine.QVA | {"w": Kind.WEIGHT}
_FIRST = {"dtau_dq": Axis.PER_POSITION, "dtau_dv": Axis.PER_SPEED, "dtau_da": Axis.PER_ACCELERATION}
_SECOND = {
    "d2_dqdq": (Axis.PER_POSITION, Axis.PER_POSITION),
    "d2_dqdv": (Axis.PER_POSITION, Axis.PER_SPEED),
    "d2_dqda": (Axis.PER_POSITION, Axis.PER_ACCELERATION),
    "d2_dvdv": (Axis.PER_SPEED, Axis.PER_SPEED),
}
_PER_STATE = {"dq": Axis.PER_POSITION, "dv": Axis.PER_SPEED, "da": Axis.PER_ACCELERATION}


def _kernel(packed: bool, *, both: bool) -> engine.Kernel:
    """The Hessian, after τ and its first derivatives if `both`."""
    second = [engine.Result(name, axes, packed=packed) for name, axes in _SECOND.items()]
    first = [engine.Result(name, (Axis.TORQUE, axis), packed=packed) for name, axis in _FIRST.items()]
    count = len(second) + (len(first) if both else 0)

    def tables(model: Model, loaded: bool, stream: bool) -> Tables:
        found = engine.hessian_tables(model, "packed" if packed else "dense", loaded, stream)
        return found, rnea_hessian.slots(model.n, engine.pairs(model), count)

    def in_coordinates(
        at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, options: Sequence[Any]
    ) -> list[Array]:
        q, v, a, w = at.given.values()
        found = _in_coordinates(at, w, loads, threads)
        if packed:
            rows, cols = at.layout.pattern
            found = [np.ascontiguousarray(x[..., rows, cols]) for x in found]
        if not both:
            return found
        full = np.broadcast_to(v, (*at.shape, v.shape[-1]))  # whatever has the axes of w alone
        first = engine.evaluate(DERIVATIVES["spatial"][packed], at.model, (q, full, a), loads, threads=threads)
        return [*first, *found]

    if not both:
        return engine.Kernel(
            rnea_hessian.rnea_hessian, _STATE, tuple(second), tables=tables, loads=True, together=count,
            in_coordinates=in_coordinates, with_elements=engine.less_hessian(packed=packed, both=False),
        )  # fmt: skip
    results = (engine.Result("tau", (Axis.TORQUE,)), *first, *second)
    return engine.Kernel(
        rnea_hessian.rnea_both_derivatives, _STATE, results, tables=tables, loads=True, together=count,
        in_coordinates=in_coordinates, with_elements=engine.less_hessian(packed=packed, both=True),
    )  # fmt: skip


def _in_coordinates(at: engine.Expansion, w: Array, loads: dict[str, Array] | None, threads: int | None) -> list[Array]:
    """By the chain rule of ``_engine/curvature.py``."""
    joints, state, weights = _in_joints(at, w)
    tau, *matrices = engine.evaluate(_BOTH[False], joints, (*state, weights), loads, threads=threads)
    gradient = engine.evaluate(VJP, joints, (*state, weights), loads, threads=threads)
    by_q, by_v, by_a, qq, qv, qa, vv = matrices
    return engine.hessian_in_coordinates(at, w, (*gradient, tau), (by_q, by_v, by_a), (qq, qv, qa, vv))


def _in_joints(at: engine.Expansion, w: Array) -> tuple[Model, tuple[Array, Array, Array], Array]:
    """The mechanism, its state and its weights."""
    motion = at.q, at.v, at.a
    return engine.without_ball_dampers(at.model), motion, at.check(at.G.push(w), 1)


def _hvp_in_coordinates(method: str) -> Callable[..., list[Array]]:
    """How the gradient of joints changes along the direction, and the weights of joints with it; carried back."""

    def product(
        at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, options: Sequence[Any]
    ) -> list[Array]:
        w, dq, dv, da = (at.given[name] for name in ("w", "dq", "dv", "da"))
        joints, state, weights = _in_joints(at, w)
        direction = [at.check(x, 1) for x in at.push(dq, dv, da)]
        U = at.weight_slope(w)
        turned = at.check(U.push(dq), 1)  # how the weights of joints change

        def run(kernel: engine.Kernel, *given: Array) -> tuple[Array, ...]:
            return engine.evaluate(kernel, joints, (*state, *given), loads, threads=threads)

        if method == "dual":
            found = run(_HVP["dual"], weights, *direction)
            gradient, change = found[:3], found[3:]
            by_weights = run(_HVP["dual"], turned, *np.zeros((3, joints.n)))[:3]
        else:
            gradient, change = run(VJP, weights), run(_HVP["spatial"], weights, *direction)
            by_weights = run(VJP, turned)
        (tau,), (slope,) = run(METHODS["spatial"]), run(JVP, *direction)
        with np.errstate(all="ignore"):  # what overflows is found in the end
            total = [x + y for x, y in zip(change, by_weights, strict=True)]
        return engine.product_in_coordinates(at, w, (*gradient, tau), (*total, slope), (dq, dv, da), U)

    return product


def _products(model: Model, loaded: bool, stream: bool) -> Tables:
    tables, records = engine.product_tables(model)
    return tables, rnea_hessian_product.slots(model.n, records)


_HESSIAN = {packed: _kernel(packed, both=False) for packed in (False, True)}
_BOTH = {packed: _kernel(packed, both=True) for packed in (False, True)}
_ALONG = _STATE | {"dq": Kind.DPOSITION, "dv": Kind.DSPEED, "da": Kind.DACCELERATION}
_CHANGES = tuple(engine.Result(name, (axis,)) for name, axis in _PER_STATE.items())
_HVP = {
    "spatial": engine.Kernel(
        rnea_hessian_product.hvp,
        _ALONG,
        _CHANGES,
        tables=_products,
        loads=True,
        turning=rnea_hessian_product.hvp_turning,
        in_coordinates=_hvp_in_coordinates("spatial"),
        with_elements=engine.less_hvp,
    ),
    "dual": engine.Kernel(  # which has the gradient first
        dual_kernels.weighted_torque_gradient,
        _ALONG,
        (*(engine.Result(f"gradient.{x.name}", x.axes) for x in _CHANGES), *_CHANGES),
        2 * rnea_reverse.N,
        loads=True,
        in_coordinates=_hvp_in_coordinates("dual"),
        with_elements=engine.less_hvp,
    ),
}


# --- public functions ---------------------------------------------------------------------------------------------


def inverse_dynamics_hessian(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    *,
    loads: Loads | None = None,
    packed: bool = False,
    out: InverseDynamicsHessian | None = None,
    threads: int | None = None,
) -> InverseDynamicsHessian:
    """The exact second derivatives of wᵀτ with respect to q, v and a, for weights w of the torques.

    This is what the Hessian of a Lagrangian needs of inverse dynamics, w being the multipliers.  No tensor is formed:
    it costs about 1.4 times the first derivatives (docs/theory/hessian.md).  Springs, dampers and armature are linear
    and have none.  World forces and torques of loads keep their direction, and their points move with the links.

    With respect to quaternions, derivatives are those of φ(q ⊕ δ) by the rotation vector δ at δ = 0
    (:func:`integrate`), and with respect to couplings those by the coordinate.

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.  Batch shapes broadcast.
    w : array_like, shape (..., n)
        Weights of the torques.
    loads : Loads, optional
        External forces and torques on links.
    packed : bool
        Return only the entries that topology does not make zero, as :class:`PackedMatrix`.
    out : InverseDynamicsHessian, optional
        Arrays to fill and return: four of shape (..., n, n), or (..., k) if packed, where k is
        ``len(model.pattern[0])``.  The result is `out` itself, with the arrays, or the :class:`PackedMatrix`, that it
        was made of.  Their contents are undefined if an error is raised.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    InverseDynamicsHessian
        ``d2_dqdq``, ``d2_dqdv``, ``d2_dqda`` and ``d2_dvdv``, shape (..., n, n) each, where ``d2_dqdv[..., i, j]`` is
        ∂²(wᵀτ)/∂q_i∂v_j; the derivatives with respect to (v, a) and (a, a) are zero.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link(gravity=(0, -10, 0))
    >>> inverse_dynamics_hessian(arm, [0, 0], [0, 0], [0, 0], [1, 0]).d2_dqdq  # of the first torque
    array([[-4., -1.],
           [-1., -1.]])
    >>> inverse_dynamics_hessian(arm, [0, np.pi / 2], [0, 0], [0, 0], [1, 0]).d2_dvdv.round(3)[1]
    array([-0.08, -0.08])
    """
    kernel = _HESSIAN[_packed(packed)]
    arrays = None if out is None else given_arrays(out, InverseDynamicsHessian, model)
    found = engine.evaluate_in_blocks(kernel, model, (q, v, a, w), named_loads(model, loads), arrays, threads)
    return InverseDynamicsHessian(*_matrices(model, found, packed)) if out is None else out


def inverse_dynamics_second_order(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    *,
    loads: Loads | None = None,
    packed: bool = False,
    out: InverseDynamicsSecondOrder | None = None,
    threads: int | None = None,
) -> InverseDynamicsSecondOrder:
    """τ, its first derivatives, and the second derivatives of wᵀτ in one call, which share most of their work.

    It is what an optimiser asks for at each iterate, and costs about twice the first derivatives.

    Parameters
    ----------
    model : Model
    q, v, a, w : array_like, shape (..., n)
        State and weights; batch shapes broadcast.
    loads : Loads, optional
        External forces and torques on links.
    packed : bool
        Return only the entries that topology does not make zero, as :class:`PackedMatrix`.
    out : InverseDynamicsSecondOrder, optional
        Arrays to fill and return, as in :func:`inverse_dynamics_hessian`.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    InverseDynamicsSecondOrder
        ``tau`` and its first derivatives as of :func:`inverse_dynamics_derivatives`, and the second derivatives of
        wᵀτ as of :func:`inverse_dynamics_hessian`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link(gravity=(0, -10, 0))
    >>> both = inverse_dynamics_second_order(arm, [np.pi / 2, 0], [0, 0], [0, 0], [1, 0])
    >>> both.dtau_dq
    array([[-4., -1.],
           [-1., -1.]])
    >>> both.d2_dqda.round(3) + 0.0
    array([[0., 0.],
           [0., 0.]])
    """
    kernel = _BOTH[_packed(packed)]
    arrays = None if out is None else given_arrays(out, InverseDynamicsSecondOrder, model)
    tau, *found = engine.evaluate_in_blocks(kernel, model, (q, v, a, w), named_loads(model, loads), arrays, threads)
    return InverseDynamicsSecondOrder(tau, *_matrices(model, found, packed)) if out is None else out


def inverse_dynamics_hvp(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    dq: ArrayLike,
    dv: ArrayLike,
    da: ArrayLike,
    *,
    loads: Loads | None = None,
    method: str = "spatial",
    threads: int | None = None,
) -> InverseDynamicsGradient:
    """The second derivatives of wᵀτ times a direction, in O(n), no matrix formed: how the gradient changes along it.

    Parameters
    ----------
    model : Model
    q, v, a, w, dq, dv, da : array_like, shape (..., n)
        State, weights and direction; batch shapes broadcast, so that directions of shape (k, n) go with one state.
    loads : Loads, optional
        Held fixed in the world, their points moving with the links.
    method : {"spatial", "dual"}
        Spatial algebra in joint frames (fastest), or the reverse sweep of inverse dynamics on dual numbers.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    InverseDynamicsGradient
        The change of each gradient: ``dq`` is d2_dqdq dq + d2_dqdv dv + d2_dqda da, and so on.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm, zero = samples.two_link(gravity=(0, -10, 0)), [0, 0]
    >>> inverse_dynamics_hvp(arm, zero, zero, zero, [1, 0], [[1, 0], [0, 1]], zero, zero).dq
    array([[-4., -1.],
           [-1., -1.]])
    """
    engine.one_of("method", method, _HVP)
    state, given = (q, v, a, w, dq, dv, da), named_loads(model, loads)
    if method == "spatial":
        return InverseDynamicsGradient(*engine.evaluate(_HVP[method], model, state, given, None, threads))
    found = engine.evaluate_with(_HVP[method], model, state, given, None, threads, wanted=slice(3, 6))
    return InverseDynamicsGradient(*found)


def inverse_dynamics_hessian_tensors(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    loads: Loads | None = None,
    max_bytes: float = LARGEST_TENSORS,
    threads: int | None = None,
) -> InverseDynamicsTensors:
    """The exact second derivatives of every torque, as four tensors of n³ numbers for each state.

    Where only a weighted sum of them is needed, :func:`inverse_dynamics_hessian` is n times faster and smaller.

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        State; batch shapes broadcast.
    loads : Loads, optional
        External forces and torques on links.
    max_bytes : int
        How much memory the result may take: 32 n³ bytes for each state.  2 GiB unless said otherwise.  Whatever else
        the call needs is about 0.1 GiB at most.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    InverseDynamicsTensors
        ``d2tau_dqdq``, ``d2tau_dqdv``, ``d2tau_dqda`` and ``d2tau_dvdv``, shape (..., n, n, n) each.

    Raises
    ------
    InputError
        Also if the tensors were larger than `max_bytes`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link(gravity=(0, -10, 0))
    >>> inverse_dynamics_hessian_tensors(arm, [0, 0], [0, 0], [0, 0]).d2tau_dqdq[1]
    array([[-1., -1.],
           [-1., -1.]])
    """
    engine.check_model(model)
    if isinstance(max_bytes, float) and max_bytes.is_integer():  # such as 4e9
        max_bytes = int(max_bytes)
    limit = engine.whole("max_bytes", max_bytes, 0)
    state = {"q": engine.real("q", q), "v": engine.real("v", v), "a": engine.real("a", a)}
    given = named_loads(model, loads)
    _check_size(model, [x.shape[:-1] for x in state.values()], given, limit)
    rows = [x[..., None, :] if x.ndim else x for x in state.values()]
    each = None if given is None else {name: x[..., None, :, :] for name, x in given.items()}
    found = engine.evaluate_in_blocks(_HESSIAN[False], model, (*rows, np.eye(model.nv)), each, None, threads)
    return InverseDynamicsTensors(*found)


def _check_size(model: Model, batches: list[tuple[int, ...]], loads: dict[str, Array] | None, limit: int) -> None:
    """Refuse tensors that are too large."""
    batches = batches + ([] if loads is None else [x.shape[:-2] for x in loads.values()])
    try:
        states = int(np.prod(np.broadcast_shapes(*batches), dtype=object))
    except ValueError:  # the gate has words for it
        return
    size = 32 * model.nv**3 * states
    if size > limit:
        found = f"the tensors of {states} states of model {model.name!r} take {size:,} bytes"
        hint = "raise `max_bytes`, take fewer states, or weights with inverse_dynamics_hessian"
        raise InputError(f"{found}; expected at most `max_bytes` = {limit:,}: {hint}")


def _packed(packed: Any) -> bool:
    return packed if packed is False else engine.flag("packed", packed)


def _matrices(model: Model, found: Sequence[Array], packed: bool) -> list[Any]:
    if not packed:
        return list(found)
    rows, cols = model.pattern
    return [PackedMatrix(values, rows, cols, model.nv) for values in found]
