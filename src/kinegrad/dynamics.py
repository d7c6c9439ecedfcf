"""Forces and motion: inverse dynamics by two formulations, forward dynamics by two, hybrid dynamics between them, the
mass matrix and its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import aba, crba, hybrid, lagrange, rnea, tree_solve
from kinegrad._kernels.lanes.finite import FINE
from kinegrad.errors import InputError, SingularError, shown
from kinegrad.loads import Loads, expand, load_batch, no_load
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = [
    "HybridDynamics",
    "bias_forces",
    "forward_dynamics",
    "gravity_forces",
    "hybrid_dynamics",
    "inverse_dynamics",
    "mass_matrix",
]

Array = NDArray[np.float64]
_NONE = (-1, -1)  # status of a kernel that found no joint that nothing resists
METHODS = {"spatial": (rnea.rnea, rnea.N), "lagrange": (lagrange.lagrange, lagrange.N)}


@dataclass(frozen=True, eq=False)
class HybridDynamics(Result):
    """Accelerations and torques of all joints, where some have prescribed motion.

    Attributes
    ----------
    a : ndarray, shape (..., n)
        As given at prescribed joints, found at free ones, rad/s² or m/s².
    tau : ndarray, shape (..., n)
        Found at prescribed joints, as given at free ones, N·m or N.
    """

    a: Array
    tau: Array


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

    Springs, dampers and armature of the joints are included.

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
    kernel, slots = METHODS[engine.one_of("method", method, METHODS)]
    if loads is None and out is None and (state := engine.one_state(threads, model, q, v, a)):
        n = len(model.joints)
        one, none, scratch = np.empty(n), no_load(n), engine.scratch((n + 1) * slots)
        if kernel(*state, none, none, none, one[None], scratch, 0, 1) == FINE:
            return one
    if engine.mapped(model):
        at = expand(model, loads, {"q": q, "v": v, "a": a})
        motion = at.primitive, at.q_hat, at.v_hat, at.a_hat
        return at.deliver(at.forces(inverse_dynamics(*motion, loads=loads, method=method, threads=threads)), out)
    batch, load_arrays = load_batch(model, loads, {"q": q, "v": v, "a": a})
    result, tau = batch.output((model.n,), out)
    arguments = (engine.mechanism(model), *batch.arguments[:3], *load_arrays, tau)
    engine.run(kernel, batch, (model.n + 1) * slots, threads, *arguments)
    return engine.finish(result, tau)


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

    Springs, dampers and armature of the joints are included.

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
        If nothing resists a joint: a massless leaf, or a slender rod turned about itself.

    Examples
    --------
    >>> from kinegrad import samples
    >>> arm = samples.two_link()
    >>> a = forward_dynamics(arm, [0.3, 0.2], [1, 0], [5, 1])
    >>> inverse_dynamics(arm, [0.3, 0.2], [1, 0], a).round(12)
    array([5., 1.])
    """
    engine.one_of("method", method, ("aba", "crba"))
    plain = method == "aba" and loads is None and out is None
    if plain and (state := engine.one_state(threads, model, q, v, tau)):
        n = len(model.joints)
        one, none, scratch, status = np.empty(n), no_load(n), engine.scratch((n + 1) * aba.N), np.array(_NONE)
        ok = aba.aba(*state, none, none, none, one[None], status, scratch, 0, 1)
        if ok == FINE and status[0] < 0:
            return one
    engine.check_model(model)
    if model.coordinates:
        at = expand(model, loads, {"q": q, "v": v, "tau": tau})
        return at.deliver(_forward_in_coordinates(at, loads, method, threads), out)
    n = model.n
    batch, load_arrays = load_batch(model, loads, {"q": q, "v": v, "tau": tau})
    result, a = batch.output((n,), out)
    constants, state = engine.mechanism(model), batch.arguments[:3]
    if method == "aba":
        arguments = (constants, *state, *load_arrays, a)
        run_or_singular(model, aba.aba, batch, (n + 1) * aba.N, threads, *arguments)
    else:
        batch.check_finite()
        zero = np.zeros((1, n))
        engine.run(rnea.rnea, batch, (n + 1) * rnea.N, threads, constants, *state[:2], zero, *load_arrays, a)
        _, M = batch.output((n, n), zero=True)  # not before `a` is filled: each run looks at all results there are
        engine.run(crba.crba, batch, (n + 1) * crba.N, threads, constants, state[0], M)
        with np.errstate(all="ignore"):
            np.subtract(state[2], a, out=a)
        batch.check_results()
        pairs = engine.places(model, "dense")[0], engine.tree(model)
        slots = engine.pairs(model) + n
        run_or_singular(model, tree_solve.tree_solve, batch, slots, threads, pairs, M, a, a)
        batch.check_results()
    return engine.finish(result, a)


def hybrid_dynamics(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    a: ArrayLike,
    *,
    prescribed: Iterable[str],
    loads: Loads | None = None,
    threads: int | None = None,
) -> HybridDynamics:
    """What is not known of a and τ, where the motion of some joints is prescribed and the others are free.

    Between :func:`forward_dynamics`, where all joints are free, and :func:`inverse_dynamics`, where all are
    prescribed; by articulated bodies, O(n).  Springs, dampers and armature of the joints are included.

    Parameters
    ----------
    model : Model
    q, v : array_like, shape (..., n)
        Coordinates and speeds: rad or m, and their time derivatives.
    tau : array_like, shape (..., n)
        Torques or forces of the free joints, N·m or N; entries at prescribed joints are ignored, NaN too.
    a : array_like, shape (..., n)
        Accelerations of the prescribed joints, rad/s² or m/s²; entries at free joints are ignored, NaN too.
    prescribed : sequence of str
        Names of the joints whose accelerations are given.
    loads : Loads, optional
        External forces and torques on links.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    HybridDynamics
        a and τ of all joints.

    Raises
    ------
    SingularError
        If nothing resists a free joint; prescribed joints need no resistance.

    Examples
    --------
    A cart is pushed so that it accelerates at 2 m/s²: how its pendulum starts to swing, and the force it takes.

    >>> from kinegrad import samples
    >>> start = hybrid_dynamics(samples.cart_pendulum(), [0, 0], [0, 0], [0, 0], [2, 0], prescribed=["track"])
    >>> start.a, start.tau.round(3)
    (array([2., 5.]), array([2.1, 0. ]))
    """
    flags = prescribed_flags(model, prescribed)
    state = {"q": q, "v": v, "tau": without("tau", tau, flags == 1), "a": without("a", a, flags == 0)}
    if model.coordinates:
        at = expand(model, loads, state)
        found = _hybrid_in_coordinates(at, at.given["tau"], at.given["a"], flags == 1, loads, threads)
        return HybridDynamics(*(at.deliver(x) for x in found))
    batch, load_arrays = load_batch(model, loads, state)
    results = batch.outputs((model.n,), 2)
    arguments = (engine.mechanism(model), *batch.arguments[:4], flags, *load_arrays, *(flat for _, flat in results))
    run_or_singular(model, hybrid.hybrid, batch, (model.n + 1) * aba.N, threads, *arguments)
    return HybridDynamics(*(x for x, _ in results))


def prescribed_flags(model: Model, prescribed: Any) -> NDArray[np.int64]:
    """1 for each joint (or speed) named, 0 for the others, (nv,)."""
    engine.check_model(model)
    one = isinstance(prescribed, str) or (isinstance(prescribed, np.ndarray) and prescribed.ndim != 1)
    try:
        names = None if one else tuple(prescribed)
    except Exception:  # whatever a foreign object raises when asked for its items
        names = None
    if names is None:
        raise InputError(
            f"`prescribed` is {shown(prescribed)}; expected names of joints, such as [{model.speed_names[0]!r}]"
        )
    flags = np.zeros(model.nv, dtype=np.int64)
    for name in names:
        flags[model.speed_index(name)] += 1
    if (flags > 1).any():
        raise InputError(f"`prescribed` names joint {model.speed_names[int(np.argmax(flags))]!r} twice; expected once")
    return flags


def without(name: str, value: Any, ignored: NDArray[np.bool_]) -> Array:
    """`value` with zeros where it is ignored, (n,) or (n, 1); as it is where its shape is wrong."""
    x = engine.real(name, value)
    return np.where(ignored, 0.0, x) if x.shape[-ignored.ndim :][:1] == ignored.shape[:1] else x


def run_or_singular(
    model: Model, kernel: Callable[..., int], batch: engine.Batch, slots: int, threads: int | None, *arguments: Any
) -> None:
    """Run a kernel that divides by pivots; raise if it found a joint that nothing resists."""
    found = engine.run_pivots(kernel, batch, slots, threads, *arguments)
    if found is not None:
        raise free_joint(model, *found, batch.shape)


def free_joint(model: Model, joint: int, state: int, shape: tuple[int, ...], what: str = "joint") -> SingularError:
    """What to raise when nothing resists a joint, or a coordinate, in one of the states of a batch."""
    name = model.joint_names[joint] if what == "joint" else model.speed_names[joint]
    where = tuple(int(k) for k in np.unravel_index(state, shape)) if shape else ()
    at = f" in state {where[0] if len(where) == 1 else where}" if where else ""
    return SingularError(
        f"nothing resists {what} {name!r} of model {model.name!r}{at}: the links it moves have "
        "no inertia about it; give them some, or give the joint armature"
    )


def _forward_in_coordinates(at: engine.Expansion, loads: Loads | None, method: str, threads: int | None) -> Array:
    """Accelerations, (..., nv), where coordinates are not joints."""
    tau = at.given["tau"]
    if method == "aba":
        none = np.zeros(at.model.nv, dtype=bool)
        return _hybrid_in_coordinates(at, tau, np.zeros(at.model.nv), none, loads, threads)[0]
    bias = inverse_dynamics(at.primitive, at.q_hat, at.v_hat, at.a_hat, loads=loads, threads=threads)
    M = at.matrix(mass_matrix(at.primitive, at.q_hat, threads=threads))
    M = np.broadcast_to(M, (*at.shape, *M.shape[-2:]))
    return solve_reduced(at, M, (tau - at.forces(bias))[..., None])[..., 0]


def _hybrid_in_coordinates(
    at: engine.Expansion, tau: Array, a: Array, held: NDArray[np.bool_], loads: Loads | None, threads: int | None
) -> tuple[Array, Array]:
    """a and τ, (..., nv), where coordinates are not joints: see ``_engine/reduction.py``."""
    primitive = at.primitive
    at.check_joints()

    def run(model: Model, *state: Any) -> tuple[Array, Array]:
        *numbers, stands = state
        names = [name for name, held in zip(model.joint_names, stands, strict=True) if held]
        found = hybrid_dynamics(
            model, *numbers, prescribed=names, loads=loads if model is primitive else None, threads=threads
        )
        return found.a, found.tau

    def inverse(model: Model, *state: Array) -> Array:
        return inverse_dynamics(model, *state, threads=threads)

    try:
        return engine.solve_hybrid(at, at.shape, tau, a, held, run, inverse)
    except engine.Reduced as found:
        raise free_joint(at.model, found.speed, found.state, at.shape, "coordinate") from None


def solve_reduced(at: engine.Expansion, M: Array, right: Array, speeds: NDArray[np.int64] | None = None) -> Array:
    """M⁻¹ times `right`, (..., nv, k), with the mass matrix of coordinates, or of some `speeds`; or SingularError."""
    stuck = engine.factor_pivot(M, np.diagonal(M, axis1=-2, axis2=-1))
    if stuck is not None:
        at.check(M, 2)
        row, state = stuck
        raise free_joint(at.model, row if speeds is None else int(speeds[row]), state, at.shape, "coordinate")
    with np.errstate(all="ignore"):  # what overflows is found in the end
        return np.asarray(np.linalg.solve(M, right))


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
    if out is None and (state := engine.one_state(threads, model, q)):
        n = len(model.joints)
        one, scratch = np.zeros((n, n)), engine.scratch((n + 1) * crba.N)
        if crba.crba(*state, one.reshape(1, n * n), scratch, 0, 1) == FINE:
            return one
    if engine.mapped(model):
        at = engine.Expansion(model, {"q": q})
        return at.deliver(at.matrix(mass_matrix(at.primitive, at.q_hat, threads=threads)), out)
    batch = engine.Batch(model, {"q": q})
    result, M = batch.output((model.n, model.n), out, zero=True)
    slots = (model.n + 1) * crba.N
    engine.run(crba.crba, batch, slots, threads, engine.mechanism(model), batch.arguments[0], M)
    return engine.finish(result, M)


def bias_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    *,
    loads: Loads | None = None,
    out: Array | None = None,
    threads: int | None = None,
) -> Array:
    """What inverse dynamics gives at rest in acceleration: c(q, v) + g(q) − loads, so that M a + bias = τ.

    Parameters, units and batch rules are those of :func:`inverse_dynamics`; springs and dampers are included.

    Examples
    --------
    >>> from kinegrad import samples
    >>> bias_forces(samples.two_link(), [0, np.pi / 2], [0, 1]).round(3)
    array([2.902, 0.   ])
    """
    engine.check_model(model)
    return inverse_dynamics(model, q, v, np.zeros(model.nv), loads=loads, out=out, threads=threads)


def gravity_forces(model: Model, q: ArrayLike, *, out: Array | None = None, threads: int | None = None) -> Array:
    """The generalised forces g(q) that hold the links against gravity alone (no springs, no loads).

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
