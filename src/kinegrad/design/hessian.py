"""Second derivatives of weighted torques: with respect to the motion and to design parameters, and to parameters alone.

Mixed ones are the gradients of wᵀτ with respect to q, v and a (``_kernels/rnea_reverse.py``), and those of force
elements (``_kernels/elements.py``), compiled for dual numbers whose slopes are those of the constants: O(n) for each
parameter.

Where coordinates are not joints, φ = ŵᵀτ̂(q̂, v̂, â, p) with ŵ = G w, and parameters do not enter the map.  So with the
entries G, V, A, C of ``_engine/coordinates.py`` and U = ∂ŵ/∂δ, and a dash for derivatives with respect to p,

    ∂φ′/∂δ = Gᵀ ĝ_q′ + Vᵀ ĝ_v′ + Aᵀ ĝ_a′ + Uᵀ τ̂′        ∂φ′/∂v = Gᵀ ĝ_v′ + Cᵀ ĝ_a′        ∂φ′/∂a = Gᵀ ĝ_a′      (1)

Those with respect to two parameters, ŵᵀτ̂″, are inverse dynamics compiled for hyper-duals (``_kernels/lanes/hyper.py``),
O(n) for each pair: constants with their slopes along both and with second slopes (``curvature.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import dual_kernels as kernels
from kinegrad._kernels import elements as layout
from kinegrad._kernels import hyper_kernels, rnea, rnea_reverse
from kinegrad.design import coordinates, elements
from kinegrad.design.curvature import element_second_slopes, kernel_second_slopes, load_second_slopes
from kinegrad.design.dynamics import inverse_dynamics_design_derivatives
from kinegrad.design.parameters import Design, element_slopes, kernel_slopes
from kinegrad.design.running import check, followed, loads_of, model_of, parameters_last
from kinegrad.loads import Loads, named_loads
from kinegrad.model.coordinates import HINGES, POSE
from kinegrad.results import Result

__all__ = ["InverseDynamicsDesignHessian", "inverse_dynamics_design_hessian"]

Array = NDArray[np.float64]
_WEIGHT = {"w": engine.Kind.WEIGHT}
_BY = {"d2_dqdp": engine.Axis.PER_POSITION, "d2_dvdp": engine.Axis.PER_SPEED, "d2_dadp": engine.Axis.PER_ACCELERATION}
_RESULTS = tuple(engine.Result(name, (axis,)) for name, axis in _BY.items())
_TORQUES = engine.Kernel(
    kernels.torque_gradient, engine.QVA | _WEIGHT, _RESULTS, rnea_reverse.N, loads=True
)  # fmt: skip
_ELEMENTS = engine.Kernel(kernels.element_gradient, engine.QV | _WEIGHT, _RESULTS[:2], layout.PER_JOINT)
_SECOND = engine.Kernel(
    hyper_kernels.torques, engine.QVA, (engine.Result("tau", (engine.Axis.TORQUE,)),), rnea.N, loads=True
)  # fmt: skip
_SECOND_ELEMENTS = replace(engine.ELEMENTS, function=hyper_kernels.element_forces)


@dataclass(frozen=True, eq=False)
class InverseDynamicsDesignHessian(Result):
    """Second derivatives of wᵀτ; ``d2_dqdp[..., i, k]`` is by coordinate i and parameter k.

    Attributes
    ----------
    d2_dqdp, d2_dvdp, d2_dadp : ndarray, shape (..., n, p)
    d2_dpdp : ndarray, shape (..., p, p)
        With respect to two parameters; symmetric.
    """

    d2_dqdp: Array
    d2_dvdp: Array
    d2_dadp: Array
    d2_dpdp: Array


def inverse_dynamics_design_hessian(
    design: Design,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    w: ArrayLike,
    *,
    loads: Loads | None = None,
    threads: int | None = None,
) -> InverseDynamicsDesignHessian:
    """The exact second derivatives of wᵀτ that the parameters take part in: how its gradients change with p.

    O(n) for each parameter, of any kind that a :class:`Design` has, and for each pair of them.  With respect to
    quaternions, derivatives are those by the rotation vector δ of q ⊕ δ, as of :func:`inverse_dynamics_hessian`.

    How constants of the model depend on two parameters is known in closed form where these are constants by name
    (masses, lengths, inertias, loads, turns, Denavit–Hartenberg rows, elements).  Where a function builds the model, it
    follows to rounding from what that gives on circles in the complex plane (:meth:`Design.from_function`).

    Parameters
    ----------
    design : Design
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations: rad or m, and their time derivatives.
    w : array_like, shape (..., n)
        Weights of the torques; batch shapes broadcast.
    loads : Loads, optional
        External forces and torques on links; those of the design if it has any.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    InverseDynamicsDesignHessian
        ``d2_dqdp``, ``d2_dvdp`` and ``d2_dadp``, shape (..., n, p) each, and ``d2_dpdp``, shape (..., p, p).

    Examples
    --------
    >>> from kinegrad import samples
    >>> design = Design(samples.two_link(gravity=(0, -10, 0)), ["forearm.mass"])
    >>> inverse_dynamics_design_hessian(design, [np.pi / 2, 0], [0, 0], [0, 0], [1, 0]).d2_dqdp[:, 0].round(12)
    array([-6., -2.])
    """
    model = model_of(design)
    state = (q, v, a, w)
    plain = elements.without_elements(design)
    found = [*_torques(plain, state, loads, threads), _by_parameters(plain, state, loads, threads)]
    if model.elements:
        parts = [*_forces_of_elements(design, q, v, w, threads), _elements_by_parameters(design, q, v, w, threads)]
        for total, part in zip((*found[:2], found[3]), parts, strict=True):
            with np.errstate(all="ignore"):  # what overflows is found below
                total -= part
        engine.check_sums(*found)
    return InverseDynamicsDesignHessian(*found)


def _torques(design: Design, state: Sequence[Any], loads: Loads | None, threads: int | None) -> list[Array]:
    """By q, v and a, (..., nv, p) each, without elements."""
    if not design.model.coordinates:
        return _of_joints(design, state, loads, threads)
    whole = named_loads(design.model, loads_of(design, loads))
    at = engine.Expansion(design.model, dict(zip(_TORQUES.state, state, strict=True)), whole)
    joints, motion, weights = (
        coordinates.primitive_design(design),
        (at.q, at.v, at.a),
        at.check(at.G.push(at.given["w"]), 1),
    )
    by = _of_joints(joints, (*motion, weights), loads, threads)
    tau = inverse_dynamics_design_derivatives(joints, *motion, loads=loads, threads=threads)
    found = _in_coordinates(
        at, [x.swapaxes(-1, -2) for x in by], tau.swapaxes(-1, -2), _ball_dampers(design, at, weights)
    )
    return list(at.deliver([*_BY], found))


def _of_joints(design: Design, state: Sequence[Any], loads: Loads | None, threads: int | None) -> list[Array]:
    """The same where coordinates are joints."""
    batch, pairs, load_rows = followed(design, _TORQUES, state, (None,) * 4, loads)
    slopes, varied = kernel_slopes(design)
    turns = [None] * 3 if varied is None else varied
    fixed = [x if dx is None else (x, dx) for x, dx in zip(load_rows, turns, strict=True)]
    _, found = engine.run_directions(_TORQUES, batch, slopes, pairs, fixed, threads)
    return _shaped(batch, found)


def _by_parameters(design: Design, state: Sequence[Any], loads: Loads | None, threads: int | None) -> Array:
    """By two parameters, (..., p, p), without elements."""
    design, motion, weights = _of_primitives(design, _TORQUES, state, loads_of(design, loads))
    given = named_loads(design.model, loads_of(design, loads))
    batch, rows, acting = engine.checked(_SECOND, design.model, motion, given)
    slopes, varied = kernel_slopes(design)
    loaded: list[engine.Curved] = []
    if varied is None:
        rows = [*rows, *acting]
    else:
        loaded = [engine.Curved(*x) for x in zip(acting, varied, load_second_slopes(design), strict=True)]
    found = engine.run_pairs(_SECOND, batch, slopes, kernel_second_slopes(design), rows, loaded, threads)
    return weighted_pairs(batch, found[0], weights)


def _elements_by_parameters(design: Design, q: Any, v: Any, w: Any, threads: int | None) -> Array:
    """Of wᵀQ, by two parameters, (..., p, p)."""
    table, numbers = engine.element_table(design.model), element_slopes(design)
    curved = engine.Curved(table.numbers, numbers, element_second_slopes(design))
    plain, motion, weights = _of_primitives(elements.without_elements(design), _ELEMENTS, (q, v, w), None)
    batch, rows, _ = engine.checked(_SECOND_ELEMENTS, plain.model, motion)
    fixed, points = [table.links, table.way, curved], (len(table.links) // 5,)
    second = kernel_second_slopes(plain)
    found = engine.run_pairs(_SECOND_ELEMENTS, batch, kernel_slopes(plain)[0], second, rows, fixed, threads, points)
    return weighted_pairs(batch, found[0], weights)


def _of_primitives(
    design: Design, kernel: engine.Kernel, state: Sequence[Any], loads: Loads | None
) -> tuple[Design, Sequence[Any], Any]:
    """The design of the joints, their motion, and weights of their torques."""
    if not design.model.coordinates:
        return design, state[:-1], engine.real("w", state[-1])
    given = dict(zip(kernel.state, state, strict=True))
    at = engine.Expansion(design.model, given, named_loads(design.model, loads))
    motion = [getattr(at, name) for name in kernel.state if name != "w"]
    return coordinates.primitive_design(design), motion, at.check(at.G.push(at.given["w"]), 1)


def weighted_pairs(batch: engine.Batch, found: Array, weights: Any) -> Array:
    """Σ w ∂²/∂p∂p, (..., p, p), of (states, p, p, columns)."""
    check(batch, [found.reshape(len(found), found.shape[1] ** 2, found.shape[-1])])
    shape = np.broadcast_shapes(batch.shape, np.shape(weights)[:-1])
    each = np.broadcast_to(found.reshape(*batch.shape, *found.shape[1:]), (*shape, *found.shape[1:]))
    with np.errstate(all="ignore"):  # what overflows is found by the caller
        return np.asarray(np.multiply(each, np.asarray(weights)[..., None, None, :], order="C").sum(axis=-1))


def _shaped(batch: engine.Batch, found: Sequence[Array]) -> list[Array]:
    check(batch, found)
    return [parameters_last(batch, x, (batch.n,)) for x in found]


def _forces_of_elements(design: Design, q: Any, v: Any, w: Any, threads: int | None) -> list[Array]:
    """Of wᵀQ, by q and v, (..., nv, p) each."""
    elements.changes(design, q, v, threads=threads)  # which refuses ends that coincide
    state = dict(zip(_ELEMENTS.state, (q, v, w), strict=True))
    if not design.model.coordinates:
        return _elements_of_joints(design, [*state.values()], threads)
    at = engine.Expansion(design.model, state)
    joints, motion, weights = coordinates.primitive_design(design), (at.q, at.v), at.check(at.G.push(at.given["w"]), 1)
    by = [x.swapaxes(-1, -2) for x in _elements_of_joints(joints, (*motion, weights), threads)]
    Q = elements.changes(joints, *motion, threads=threads).dQ_dp
    return _in_coordinates(at, (*by, np.zeros_like(by[0])), Q.swapaxes(-1, -2))[:2]


def _elements_of_joints(design: Design, state: Sequence[Any], threads: int | None) -> list[Array]:
    """The same where coordinates are joints."""
    table, plain = engine.element_table(design.model), elements.without_elements(design)
    batch, pairs, _ = followed(plain, _ELEMENTS, state, (None,) * 3, None)
    fixed = [table.links, table.way, (table.numbers, element_slopes(design))]
    _, found = engine.run_directions(_ELEMENTS, batch, kernel_slopes(plain)[0], pairs, fixed, threads)
    return _shaped(batch, found)


def _in_coordinates(
    at: engine.Expansion, by: Sequence[Array], tau: Array, damped: tuple[Array, Array] | None = None
) -> list[Array]:
    """(1), (..., nv, p) each, from (..., p, n); `damped` are shares of ĝ_v′ and τ̂′ that do not depend on δ."""
    by_q, by_v, by_a = by
    turned, pushed = (by_v, tau) if damped is None else (by_v - damped[0], tau - damped[1])
    with np.errstate(all="ignore"):  # what overflows is found in the end
        by_delta = at.by_configuration(by_q, turned, by_a, inner=1)
        at.weight_slope(at.given["w"]).add_pulled(by_delta, pushed, 1)
        found = by_delta, at.by_speed(by_v, by_a, inner=1), at.by_acceleration(by_a, inner=1)
    return [np.ascontiguousarray(x.swapaxes(-1, -2)) for x in found]


def _ball_dampers(design: Design, at: engine.Expansion, weights: Array) -> tuple[Array, Array] | None:
    """What dampers of balls that vary add to ĝ_v′ and τ̂′, (..., p, n): they resist ω, whatever δ is."""
    slope = design._variation.get("damping")
    hinges = [first + POSE + k for first, _, _ in at.layout.balls for k in range(len(HINGES) - POSE)]
    if slope is None or not slope[:, hinges].any():
        return None
    own = np.zeros_like(slope)
    own[:, hinges] = slope[:, hinges]
    return own * weights[..., None, :], own * at.v[..., None, :]
