"""Forces and motion: inverse dynamics by two formulations, forward dynamics by two, the mass matrix and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import aba, crba, lagrange, rnea, series, tree_solve
from kinegrad.loads import Loads, named_loads
from kinegrad.model import Model

__all__ = [
    "bias_forces",
    "forward_dynamics",
    "gravity_forces",
    "inverse_dynamics",
    "mass_matrix",
]

Array = NDArray[np.float64]
Axis = engine.Axis
_TORQUE = engine.Result("tau", (Axis.TORQUE,))
_ACCELERATION = engine.Result("a", (Axis.ACCELERATION,))
METHODS = {
    "spatial": engine.Kernel(rnea.rnea, engine.QVA, (_TORQUE,), rnea.N, loads=True, with_elements=engine.less_forces),
    "lagrange": engine.Kernel(
        lagrange.lagrange, engine.QVA, (_TORQUE,), lagrange.N, loads=True, with_elements=engine.less_forces
    ),
}
MASS_MATRIX = engine.Kernel(
    crba.crba,
    engine.Q,
    (engine.Result("M", (Axis.TORQUE, Axis.PER_ACCELERATION)),),
    crba.N,
    with_elements=engine.indifferent,
)


def hybrid_in_coordinates(
    at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, options: Sequence[Any]
) -> tuple[Array, Array]:
    """a and τ, (..., nv), of hybrid dynamics where coordinates are not joints: see ``_engine/reduction.py``."""
    held = options[0] == 1
    return _in_series(at, loads, threads, held) if at.layout.in_series else _reduced(at, loads, threads, held)


def _forward_in_coordinates(
    at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, options: Sequence[Any]
) -> tuple[Array]:
    """The same where all coordinates are free."""
    return (hybrid_in_coordinates(at, loads, threads, [np.zeros(at.model.nv)])[0],)


def _reduced_in_coordinates(
    at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, options: Sequence[Any]
) -> tuple[Array]:
    """Accelerations by the mass matrix of coordinates."""
    return (_reduced(at, loads, threads, np.zeros(at.model.nv, dtype=bool))[0],)


def _in_series(
    at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, held: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """a and τ, (..., nv), by articulated bodies; `held` are the speeds, (nv,), whose accelerations are given."""
    layout, n = at.layout, at.layout.n
    tau = at.given["tau"]
    state = {"q": at.q, "v": at.v, "tau": tau[..., layout.some_speed_of], "a": at.a, "slope": at.slope}
    batch = engine.SpeedBatch(at, state, loads, layout.some_speed_of)
    rows = batch.arguments if loads is not None else [*batch.arguments, *(engine.no_load(n),) * 3]
    (_, found), (_, forces) = batch.output((n,)), batch.output((n,))
    given = (*rows[:5], engine.roles(layout, held), *rows[5:])
    engine.fill(SERIES, batch, threads, given, [found, forces], loaded=loads is not None)
    found, forces = found.reshape(*at.shape, n), forces.reshape(*at.shape, n)
    a = found[..., layout.joint_of]
    if not held.any():
        return a, tau
    return np.where(held, at.given["a"], a), np.where(held, at.forces(forces), tau)


def _reduced(
    at: engine.Expansion, loads: dict[str, Array] | None, threads: int | None, held: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """The same by the mass matrix of the free coordinates."""
    free = np.flatnonzero(~held)
    (bias,) = engine.evaluate(METHODS["spatial"], at.primitive, (at.q, at.v, at.a), loads, threads=threads)
    M, bias = reduced_mass_matrix(at, threads), at.forces(bias)
    a = np.broadcast_to(at.given.get("a", np.zeros(at.model.nv)), bias.shape).copy()
    with np.errstate(all="ignore"):  # what overflows is found in the end
        right = (at.given["tau"] - bias)[..., free]
        if len(free):
            a[..., free] = engine.solve_tree(at, M[..., free[:, None], free], right, free, threads)
        forces = bias + (M[..., free] * a[..., None, free]).sum(axis=-1)
    return a, np.where(held, forces, at.given["tau"])


def reduced_mass_matrix(at: engine.Expansion, threads: int | None) -> Array:
    """Gᵀ M̂ G of all states, (..., nv, nv)."""
    (M,) = engine.evaluate(MASS_MATRIX, at.primitive, (at.q,), threads=threads)
    return at.matrix(M)


def solve_reduced(at: engine.Expansion, M: Array, right: Array, speeds: NDArray[np.int64] | None = None) -> Array:
    """M⁻¹ times `right`, (..., nv, k), with the mass matrix of coordinates, or of some `speeds`; or SingularError."""
    stuck = engine.factor_pivot(M, np.diagonal(M, axis1=-2, axis2=-1))
    if stuck is not None:
        at.check(M, 2)
        row, state = stuck
        raise engine.free_joint(at.model, row if speeds is None else int(speeds[row]), state, at.shape, "coordinate")
    with np.errstate(all="ignore"):  # what overflows is found in the end
        return np.asarray(np.linalg.solve(M, right))


SERIES = engine.Kernel(
    series.series, engine.QVTAU | {"a": engine.Kind.ACCELERATION}, (_ACCELERATION, _TORQUE), loads=True, pivots=True,
    tables=lambda model, loaded, stream: ((), series.slots(model.n)),
)  # fmt: skip


def _by_mass_matrix(
    batch: engine.Batch, threads: int | None, state: Sequence[Array], loads: Sequence[Array], results: Sequence[Array]
) -> None:
    """a = M⁻¹ (τ − bias): the bias by Newton–Euler, the mass matrix by composite bodies, the system by its tree."""
    (q, v, tau), (a,), n = state, results, batch.n
    batch.check_finite()
    engine.fill(METHODS["spatial"], batch, threads, (q, v, np.zeros((1, n)), *loads), [a])
    _, M = batch.output((n, n))  # not before `a` is filled: each run looks at all results there are
    engine.fill(MASS_MATRIX, batch, threads, [q], [M])
    with np.errstate(all="ignore"):
        np.subtract(tau, a, out=a)
    batch.check_results()
    pairs, slots = (engine.places(batch.model, "dense")[0], engine.tree(batch.model)), engine.pairs(batch.model) + n
    engine.run(tree_solve.tree_solve, batch, slots, threads, (pairs, M, a, a), pivots=True)
    batch.check_results()


FORWARD = {
    "aba": engine.Kernel(
        aba.aba,
        engine.QVTAU,
        (_ACCELERATION,),
        aba.N,
        loads=True,
        pivots=True,
        in_coordinates=_forward_in_coordinates,
        with_elements=engine.pushed_by_forces,
    ),
    "crba": engine.Kernel(
        _by_mass_matrix,
        engine.QVTAU,
        (_ACCELERATION,),
        slots=None,
        loads=True,
        in_coordinates=_reduced_in_coordinates,
        with_elements=engine.pushed_by_forces,
    ),
}


def inverse_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    loads: Loads | None = None,
    method: str = "spatial",
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """The torques and forces τ that the joints must supply:  M(q) a + c(q, v) + g(q) − loads = τ.

    Springs, dampers and armature of the joints, and force elements between links, are included.

    Parameters
    ----------
    model : Model
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.  Batch shapes broadcast.
    loads : Loads, optional
        External forces and torques on links.
    method : {"spatial", "lagrange"}
        Recursive Newton–Euler in the world frame (fastest), or the recursive Lagrangian of [zhakatayev2023].
    out : ndarray, shape (..., n), optional
        Filled and returned; may overlap the inputs.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n)
        N·m or N.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link(gravity=(0, -9.81, 0))
    >>> inverse_dynamics(arm, [0, 0], [0, 0], [0, 0]).round(3)  # holding it stretched out
    array([3.924, 0.981])
    """
    kernel = METHODS[engine.one_of("method", method, METHODS)]
    given = None if loads is None else named_loads(model, loads)
    (tau,) = engine.evaluate(kernel, model, (q, v, a), given, out, threads)
    return tau


def forward_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    loads: Loads | None = None,
    method: str = "aba",
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """The accelerations a that torques τ cause: the inverse of :func:`inverse_dynamics`.

    Springs, dampers and armature of the joints, and force elements between links, are included.

    Parameters
    ----------
    model : Model
    q, v, tau : array_like, shape (..., n)
        Coordinates, speeds, and torques or forces: rad or m, their time derivatives, N·m or N.
    loads : Loads, optional
        External forces and torques on links.
    method : {"aba", "crba"}
        Articulated bodies, O(n); or the mass matrix, factored in the sparsity of the tree.
    out : ndarray, shape (..., n), optional
        Filled and returned; may overlap the inputs.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n)
        rad/s² or m/s².

    Raises
    ------
    SingularError
        If a joint has no inertia: a massless link at the end of the tree, or a slender rod that rotates about its own
        axis.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link()
    >>> a = forward_dynamics(arm, [0.3, 0.2], [1, 0], [5, 1])
    >>> inverse_dynamics(arm, [0.3, 0.2], [1, 0], a).round(12)
    array([5., 1.])
    """
    kernel = FORWARD[engine.one_of("method", method, FORWARD)]
    given = None if loads is None else named_loads(model, loads)
    (a,) = engine.evaluate(kernel, model, (q, v, tau), given, out, threads)
    return a


def mass_matrix(model: Model, q: ArrayLike, *, out: Array | None = None, threads: int | None = None) -> Array:
    """The joint-space mass matrix M(q), armature included: symmetric, full.

    Parameters
    ----------
    model : Model
    q : array_like, shape (..., n)
        Coordinates, rad or m.
    out : ndarray, shape (..., n, n), optional
        Filled and returned.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ndarray, shape (..., n, n)
        kg·m², kg·m or kg.

    Examples
    --------
    >>> from kinegrad import samples
    >>> mass_matrix(samples.two_link(), [0, 0]).round(3)
    array([[0.4 , 0.16],
           [0.16, 0.12]])
    """
    (M,) = engine.evaluate(MASS_MATRIX, model, (q,), None, out, threads)
    return M


def bias_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    loads: Loads | None = None,
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """The torques at zero acceleration: c(q, v) + g(q) − loads, so that M a + bias = τ.

    Parameters, units and batch rules are those of :func:`inverse_dynamics`.  Springs and dampers, and force elements,
    are included.

    Examples
    --------
    >>> from kinegrad import samples
    >>> bias_forces(samples.two_link(), [0, np.pi / 2], [0, 1]).round(3)
    array([2.902, 0.   ])
    """
    engine.check_model(model)
    return inverse_dynamics(model, q, v, np.zeros(model.nv), loads=loads, out=out, threads=threads)


def gravity_forces(model: Model, q: ArrayLike, *, out: Array | None = None, threads: int | None = None) -> Array:
    """The generalised forces g(q) that hold the links against gravity alone (no springs, no elements, no loads).

    Parameters, units and batch rules are those of :func:`inverse_dynamics`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> gravity_forces(samples.two_link(gravity=(0, -10, 0)), [0, 0])
    array([4., 1.])
    """
    engine.check_model(model)
    zero = np.zeros(model.nv)
    return inverse_dynamics(engine.without_springs(model), q, zero, zero, out=out, threads=threads)
