"""Exact sensitivities of whole trajectories: ∂τ/∂(q, v, a) of inverse dynamics, its products with vectors, its
derivatives with respect to loads; ∂a/∂(q, v, τ) of forward dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import (
    aba_derivatives,
    kinematics,
    lagrange_derivatives,
    load_derivatives,
    rnea_derivatives,
    rnea_products,
)
from kinegrad._kernels.lanes.finite import FINE
from kinegrad.dynamics import forward_dynamics, inverse_dynamics, run_or_singular, solve_reduced
from kinegrad.errors import InputError, shown
from kinegrad.loads import Loads, expand, load_batch, no_load
from kinegrad.model import Model
from kinegrad.results import Result

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "ForwardDynamicsDerivatives",
    "InverseDynamicsDerivatives",
    "InverseDynamicsGradient",
    "LoadDerivatives",
    "PackedMatrix",
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_jvp",
    "inverse_dynamics_load_derivatives",
    "inverse_dynamics_vjp",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PackedMatrix(Result):
    """The entries of n×n matrices that topology does not make zero.

    Attributes
    ----------
    values : ndarray, shape (..., k)
        One row of k entries for each state, in row-major order of the matrix.
    rows, cols : ndarray of int, shape (k,)
        Where they belong.
    n : int
        Size of the matrix.

    Examples
    --------
    >>> packed = PackedMatrix(np.array([1.0, 2.0]), np.array([0, 1]), np.array([0, 1]), 2)
    >>> packed.to_dense()
    array([[1., 0.],
           [0., 2.]])
    """

    values: Array
    rows: NDArray[np.int64]
    cols: NDArray[np.int64]
    n: int

    def to_dense(self) -> Array:
        """Full matrices, shape (..., n, n)."""
        dense = np.zeros((*self.values.shape[:-1], self.n, self.n))
        dense[..., self.rows, self.cols] = self.values
        return dense

    def to_sparse(self, k: int | tuple[int, ...] = ()) -> csr_array:
        """The matrix of state k (an index into the batch) as a SciPy sparse array."""
        from scipy.sparse import csr_array  # here, because it takes longer to import than all of kinegrad

        try:
            values = self.values[k]
        except (IndexError, TypeError):
            raise InputError(
                f"`k` is {shown(k)}; expected an index into batch shape {self.values.shape[:-1]}"
            ) from None
        if values.ndim != 1:
            raise InputError(
                f"`k` is {shown(k)}, which leaves a batch of shape {values.shape[:-1]}; expected one state"
            )
        return csr_array((values, (self.rows, self.cols)), shape=(self.n, self.n))


@dataclass(frozen=True, eq=False)
class InverseDynamicsDerivatives(Result):
    """Torques and their derivatives; ``[..., i, j]`` is that of τ_i with respect to coordinate j.

    Attributes
    ----------
    tau : ndarray, shape (..., n)
        N·m or N.
    dtau_dq, dtau_dv, dtau_da : ndarray, shape (..., n, n), or PackedMatrix
        With respect to coordinates, speeds and accelerations; the last is the mass matrix.
    """

    tau: Array
    dtau_dq: Array | PackedMatrix
    dtau_dv: Array | PackedMatrix
    dtau_da: Array | PackedMatrix


@dataclass(frozen=True, eq=False)
class InverseDynamicsGradient(Result):
    """Gradients of wᵀτ with respect to coordinates, speeds and accelerations, shape (..., n) each."""

    dq: Array
    dv: Array
    da: Array


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


@dataclass(frozen=True, eq=False)
class LoadDerivatives(Result):
    """Derivatives of τ with respect to the loads; ``[..., i, l, x]`` is that of τ_i by component x on link l.

    Attributes
    ----------
    dtau_dforce : ndarray, shape (..., n, n, 3)
        World force, N.
    dtau_dtorque : ndarray, shape (..., n, n, 3)
        World torque, N·m.
    dtau_dpoint : ndarray, shape (..., n, n, 3)
        Where the force acts, in the link's frame, m.
    """

    dtau_dforce: Array
    dtau_dtorque: Array
    dtau_dpoint: Array


_METHODS = ("spatial", "lagrange")


def _kernel(model: Model, method: str, layout: str, loaded: bool, stream: bool) -> tuple[Any, tuple[Any, ...], int]:
    """The kernel of ∂τ by a method, its arguments between states and results, and the slots that it needs."""
    if method == "spatial":
        return rnea_derivatives.rnea_derivatives, *engine.torque_tables(model, layout, loaded, stream)
    n, count = model.n, engine.pairs(model)
    columns = n * n if layout == "dense" else 2 * count - n
    slots = lagrange_derivatives.slots(n, count) + 3 * columns
    return lagrange_derivatives.lagrange_derivatives, (engine.places(model, layout),), slots


def inverse_dynamics_derivatives(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    loads: Loads | None = None,
    method: str = "spatial",
    packed: bool = False,
    out: InverseDynamicsDerivatives | None = None,
    threads: int | None = None,
) -> InverseDynamicsDerivatives:
    """τ and its exact derivatives with respect to q, v and a.

    Load points move with their links while world forces and torques keep their direction; both are differentiated.
    Springs, dampers and armature are included.

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.  Batch shapes broadcast.
    loads : Loads, optional
        External forces and torques on links.
    method : {"spatial", "lagrange"}
        World-frame spatial algebra (fastest), or the recursions (10)–(17) of [zhakatayev2023].
    packed : bool
        Return only the entries that topology does not make zero, as :class:`PackedMatrix`.
    out : InverseDynamicsDerivatives, optional
        Arrays to fill and return, memory-mapped ones too: τ of shape (..., n) and three of shape (..., n, n),
        or (..., k) if packed.  Their contents are undefined if an error is raised.
    threads : int, optional
        See :func:`set_threads`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link(gravity=(0, -10, 0))
    >>> inverse_dynamics_derivatives(arm, [0, 0], [0, 0], [0, 0]).dtau_da.round(3)
    array([[0.4 , 0.16],
           [0.16, 0.12]])
    >>> inverse_dynamics_derivatives(arm, [np.pi / 2, 0], [0, 0], [0, 0], packed=True).dtau_dq.values
    array([-4., -1., -1., -1.])
    """
    engine.one_of("method", method, _METHODS)
    if packed is not False:
        packed = engine.flag("packed", packed)
    plain = loads is None and out is None and not packed
    if plain and (state := engine.one_state(threads, model, q, v, a)):
        n = len(model.joints)
        torque, block, none = np.empty(n), np.empty((3, 1, n * n)), no_load(n)
        kernel, tables, slots = _kernel(model, method, "dense", loaded=False, stream=False)
        arguments = (*state, none, none, none, *tables, torque[None], *block)
        if kernel(*arguments, engine.scratch(slots), 0, 1) == FINE:
            return InverseDynamicsDerivatives(torque, *block.reshape(3, n, n))
    engine.check_model(model)
    if model.coordinates:
        return _in_coordinates(expand(model, loads, {"q": q, "v": v, "a": a}), loads, method, packed, out, threads)
    n = model.n
    batch, load_arrays = load_batch(model, loads, {"q": q, "v": v, "a": a})
    core: tuple[int, ...] = (model.topology.nonzeros,) if packed else (n, n)
    if out is None:
        tau, matrices = batch.output((n,)), batch.outputs(core, 3)
    else:
        given = _given_arrays(out)
        tau = batch.output((n,), given["tau"], "out.tau")
        names = ("dtau_dq", "dtau_dv", "dtau_da")
        matrices = [batch.output(core, given[name], f"out.{name}") for name in names]
    flat = [tau[1], *(matrix[1] for matrix in matrices)]
    layout, large = "packed" if packed else "dense", engine.streams(3 * flat[1].nbytes)
    kernel, tables, slots = _kernel(model, method, layout, loads is not None, large)
    arguments = (engine.mechanism(model), *batch.arguments[:3], *load_arrays, *tables, *flat)
    engine.run(kernel, batch, slots, threads, *arguments)
    results = [engine.finish(*pair) for pair in (tau, *matrices)]
    if out is not None:
        return out
    if packed:
        pattern = model.topology.pattern
        packs = (PackedMatrix(values, pattern.rows, pattern.cols, n) for values in results[1:])
        return InverseDynamicsDerivatives(results[0], *packs)
    return InverseDynamicsDerivatives(*results)


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

    Raises
    ------
    SingularError
        If nothing resists a joint; see :func:`forward_dynamics`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> forward_dynamics_derivatives(samples.two_link(), [0, 0], [0, 0], [0, 0]).da_dtau.round(3)
    array([[ 5.357, -7.143],
           [-7.143, 17.857]])
    """
    if loads is None and (state := engine.one_state(threads, model, q, v, tau)):
        n = len(model.joints)
        one, block, none, status = np.empty(n), np.empty((3, 1, n * n)), no_load(n), np.array((-1, -1))
        tables, slots = engine.acceleration_tables(model, loaded=False, stream=False)
        arguments = (*state, none, none, none, *tables)
        results = (np.empty((1, n)), one[None], *block, status)
        scratch = engine.scratch(slots)
        if aba_derivatives.aba_derivatives(*arguments, *results, scratch, 0, 1) == FINE and status[0] < 0:
            return ForwardDynamicsDerivatives(one, *block.reshape(3, n, n))
    engine.check_model(model)
    if model.coordinates:
        at = expand(model, loads, {"q": q, "v": v, "tau": tau})
        a_ = forward_dynamics(model, q, v, tau, loads=loads, threads=threads)
        change = inverse_dynamics_derivatives(model, q, v, a_, loads=loads, threads=threads)
        M, nv = np.asarray(change.dtau_da), model.nv
        right = [-np.asarray(change.dtau_dq), -np.asarray(change.dtau_dv), np.broadcast_to(np.eye(nv), M.shape)]
        solved = solve_reduced(at, M, np.concatenate(right, axis=-1))
        parts = [at.deliver(solved[..., k : k + nv].copy()) for k in range(0, 3 * nv, nv)]
        return ForwardDynamicsDerivatives(a_, *parts)
    n = model.n
    batch, load_arrays = load_batch(model, loads, {"q": q, "v": v, "tau": tau})
    a, matrices = batch.output((n,)), batch.outputs((n, n), 3)
    flat = [a[1], *(matrix[1] for matrix in matrices)]
    tables, slots = engine.acceleration_tables(model, loads is not None, engine.streams(3 * flat[1].nbytes))
    spare = np.empty((batch.states, n))
    arguments = (engine.mechanism(model), *batch.arguments[:3], *load_arrays, *tables, spare, *flat)
    run_or_singular(model, aba_derivatives.aba_derivatives, batch, slots, threads, *arguments)
    return ForwardDynamicsDerivatives(a[0], *(matrix[0] for matrix in matrices))


def inverse_dynamics_jvp(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    dq: ArrayLike,
    dv: ArrayLike,
    da: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> Array:
    """The change of τ along a direction: ∂τ/∂q dq + ∂τ/∂v dv + ∂τ/∂a da, in O(n), no matrix formed.

    Parameters
    ----------
    model : Model
    q, v, a, dq, dv, da : array_like, shape (..., n)
        State and direction; batch shapes broadcast.
    loads : Loads, optional
        Held fixed in the world, their points moving with the links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n)

    Examples
    --------
    >>> from kinegrad import samples
    >>> zero = [0, 0]
    >>> inverse_dynamics_jvp(samples.two_link(), zero, zero, zero, zero, zero, [1, 0]).round(3)
    array([0.4 , 0.16])
    """
    state = {"q": q, "v": v, "a": a, "dq": dq, "dv": dv, "da": da}
    if engine.mapped(model):
        at = expand(model, loads, state)
        motion = at.primitive, at.q_hat, at.v_hat, at.a_hat
        along = at.push(at.given["dq"], at.given["dv"], at.given["da"])
        change = inverse_dynamics_jvp(*motion, *(at.check(x, 1) for x in along), loads=loads, threads=threads)
        tau = inverse_dynamics(*motion, loads=loads, threads=threads)
        return at.deliver(at.forces(change) + at.turn(tau, at.given["dq"]))
    batch, load_arrays = load_batch(model, loads, state)
    result, flat = batch.output((model.n,))
    plan = engine.plan(model, loads is not None)
    arguments = (engine.mechanism(model), *batch.arguments[:6], *load_arrays, plan, flat)
    engine.run(rnea_products.jvp, batch, rnea_products.slots(model.n), threads, *arguments)
    return result


def inverse_dynamics_vjp(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> InverseDynamicsGradient:
    """Gradients of wᵀτ with respect to q, v and a, in O(n), no matrix formed.

    Parameters
    ----------
    model : Model
    q, v, a, w : array_like, shape (..., n)
        State and weights; batch shapes broadcast.
    loads : Loads, optional
        Held fixed in the world, their points moving with the links.
    threads : int, optional
        See :func:`set_threads`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> zero = [0, 0]
    >>> inverse_dynamics_vjp(samples.two_link(), zero, zero, zero, [0, 1]).da.round(3)
    array([0.16, 0.12])
    """
    if engine.mapped(model):
        at = expand(model, loads, {"q": q, "v": v, "a": a, "w": w})
        motion = at.primitive, at.q_hat, at.v_hat, at.a_hat
        weights = at.check(at.G.push(at.given["w"]), 1)
        change = inverse_dynamics_vjp(*motion, weights, loads=loads, threads=threads)
        tau = inverse_dynamics(*motion, loads=loads, threads=threads)
        by_q = at.by_configuration(change.dq, change.dv, change.da, inner=0) + at.turn_transposed(tau, at.given["w"])
        by_v, by_a = at.by_speed(change.dv, change.da, inner=0), at.by_acceleration(change.da, inner=0)
        return InverseDynamicsGradient(*(at.deliver(x) for x in (by_q, by_v, by_a)))
    batch, load_arrays = load_batch(model, loads, {"q": q, "v": v, "a": a, "w": w})
    fields, flat = zip(*(batch.output((model.n,)) for _ in range(3)), strict=True)
    plan = engine.plan(model, loads is not None)
    arguments = (engine.mechanism(model), *batch.arguments[:4], *load_arrays, plan, *flat)
    engine.run(rnea_products.vjp, batch, rnea_products.slots(model.n), threads, *arguments)
    return InverseDynamicsGradient(*fields)


def inverse_dynamics_load_derivatives(
    model: Model, q: ArrayLike, *, loads: Loads | None = None, threads: int | None = None
) -> LoadDerivatives:
    """Derivatives of τ with respect to force, torque and point of the load on every link.

    They depend on q and on the loads alone: τ is linear in forces and torques.

    Parameters
    ----------
    model : Model
    q : array_like, shape (..., n)
        Coordinates, rad or m.
    loads : Loads, optional
        Where the forces act and what they are; without it at the origins of the link frames, and zero.
    threads : int, optional
        See :func:`set_threads`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> change = inverse_dynamics_load_derivatives(samples.two_link(), [0, 0])
    >>> change.dtau_dforce[:, 1, 1]  # a force along y on the forearm's tip takes torque off both joints
    array([-0.8, -0.4])
    """
    engine.check_model(model)
    if model.coordinates:
        at = expand(model, loads, {"q": q})
        change = inverse_dynamics_load_derivatives(at.primitive, at.q_hat, loads=loads, threads=threads)
        return LoadDerivatives(*(at.deliver(at.G.pull_axis(x, -3)) for x in vars(change).values()))
    n = model.n
    batch, (force, point, torque) = load_batch(model, loads if loads is not None else Loads(), {"q": q})
    fields, flat = zip(*(batch.output((n, n, 3), zero=True) for _ in range(3)), strict=True)
    slots = (n + 1) * kinematics.N
    arguments = (engine.mechanism(model), batch.arguments[0], force, point, torque, *flat)
    engine.run(load_derivatives.load_derivatives, batch, slots, threads, *arguments)
    return LoadDerivatives(*fields)


def _in_coordinates(
    at: engine.Expansion, loads: Loads | None, method: str, packed: bool,
    out: InverseDynamicsDerivatives | None, threads: int | None,
) -> InverseDynamicsDerivatives:  # fmt: skip
    """τ and its derivatives where coordinates are not joints."""
    given = dict.fromkeys(("tau", "dtau_dq", "dtau_dv", "dtau_da")) if out is None else _given_arrays(out)
    motion = at.primitive, at.q_hat, at.v_hat, at.a_hat
    change = inverse_dynamics_derivatives(*motion, loads=loads, method=method, threads=threads)
    matrices = (np.asarray(x) for x in (change.dtau_dq, change.dtau_dv, change.dtau_da))
    found = [at.forces(change.tau), *at.torque_derivatives(change.tau, *matrices)]
    rows, cols = at.layout.pattern
    if packed:
        found[1:] = [np.ascontiguousarray(x[..., rows, cols]) for x in found[1:]]
    results = [at.deliver(x, to, f"out.{name}") for x, (name, to) in zip(found, given.items(), strict=True)]
    if out is not None:
        return out
    if packed:
        packs = (PackedMatrix(values, rows, cols, at.layout.nv) for values in results[1:])
        return InverseDynamicsDerivatives(results[0], *packs)
    return InverseDynamicsDerivatives(*results)


def _given_arrays(out: Any) -> dict[str, Any]:
    if not isinstance(out, InverseDynamicsDerivatives):
        raise InputError(f"`out` is a {type(out).__name__}; expected an InverseDynamicsDerivatives of arrays")
    arrays = {name: x.values if isinstance(x, PackedMatrix) else x for name, x in vars(out).items()}
    for (one, x), (other, y) in combinations(arrays.items(), 2):
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and engine.share_memory(x, y):
            raise InputError(f"`out.{one}` and `out.{other}` share memory; expected four arrays of their own")
    return arrays
