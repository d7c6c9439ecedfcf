"""Forces and motion: inverse dynamics by two formulations, forward dynamics by two, the mass matrix and its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import aba, crba, lagrange, rnea, tree_solve
from kinegrad.errors import InputError, SingularError
from kinegrad.loads import Loads, load_batch
from kinegrad.model import Model

__all__ = ["bias_forces", "forward_dynamics", "gravity_forces", "inverse_dynamics", "mass_matrix"]

Array = NDArray[np.float64]
METHODS = {"spatial": (rnea.rnea, rnea.N), "lagrange": (lagrange.lagrange, lagrange.N)}


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
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f"`method` is {method!r}; expected {' or '.join(map(repr, METHODS))}")
    kernel, slots = METHODS[method]
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
    if not isinstance(method, str) or method not in ("aba", "crba"):
        raise InputError(f"`method` is {method!r}; expected 'aba' or 'crba'")
    engine.check_model(model)
    n = model.n
    batch, load_arrays = load_batch(model, loads, {"q": q, "v": v, "tau": tau})
    result, a = batch.output((n,), out)
    constants, state = engine.mechanism(model), batch.arguments[:3]
    if method == "aba":
        arguments = (constants, *state, *load_arrays, a)
        run_or_singular(model, aba.aba, batch, (n + 1) * aba.N, threads, *arguments)
    else:
        batch.check_finite()
        M = np.zeros((batch.states, n * n))
        engine.run(crba.crba, batch, (n + 1) * crba.N, threads, constants, state[0], M)
        zero = np.zeros((1, n))
        engine.run(rnea.rnea, batch, (n + 1) * rnea.N, threads, constants, *state[:2], zero, *load_arrays, a)
        np.subtract(state[2], a, out=a)
        place = engine.places(model, "dense")
        slots = engine.pairs(model) + 4 * n
        run_or_singular(model, tree_solve.tree_solve, batch, slots, threads, constants, place, M, a, a)
    return engine.finish(result, a)


def run_or_singular(
    model: Model, kernel: Callable[..., bool], batch: engine.Batch, slots: int, threads: int | None, *arguments: Any
) -> None:
    """Run a kernel whose last argument is a status; raise if it found a joint that nothing resists."""
    status = np.full(2, -1)
    engine.run(kernel, batch, slots, threads, *arguments, status)
    if status[0] < 0:
        return
    if threads != 1:  # several threads may each have found one: name the first
        status[:] = -1
        engine.run(kernel, batch, slots, 1, *arguments, status)
    joint, state = status.tolist()
    raise free_joint(model, joint, state, batch.shape)


def free_joint(model: Model, joint: int, state: int, shape: tuple[int, ...]) -> SingularError:
    """What to raise when nothing resists a joint in one of the states of a batch."""
    where = tuple(int(k) for k in np.unravel_index(state, shape)) if shape else ()
    at = f" in state {where[0] if len(where) == 1 else where}" if where else ""
    return SingularError(
        f"nothing resists joint {model.joint_names[joint]!r} of model {model.name!r}{at}: the links it moves have "
        "no inertia about it; give them some, or give the joint armature"
    )


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
    return inverse_dynamics(model, q, v, np.zeros(model.n), loads=loads, out=out, threads=threads)


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
    zero = np.zeros(model.n)
    return inverse_dynamics(engine.without_springs(model), q, zero, zero, out=out, threads=threads)
