"""Derivatives of constraints with respect to design parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import constraints as row_kernels
from kinegrad._kernels import dual_kernels as kernels
from kinegrad.constraints.assembly import check_set
from kinegrad.constraints.constraint_set import ConstraintSet
from kinegrad.constraints.rows import table_slopes
from kinegrad.design import coordinates, elements
from kinegrad.design.elements import without_elements
from kinegrad.design.parameters import Design, frame_slopes, kernel_slopes
from kinegrad.design.running import followed, model_of, parameters_last
from kinegrad.kinematics import state_of
from kinegrad.model import Model
from kinegrad.results import Result

__all__ = ["ConstraintDesignDerivatives", "constraint_design_derivatives", "constraint_jacobian_design_derivatives"]

Array = NDArray[np.float64]
Axis = engine.Axis


def row_slots(model: Model, loaded: bool, stream: bool) -> tuple[tuple[Any, ...], int]:
    return (), row_kernels.slots(model.n)


MOTION = engine.Kernel(
    kernels.constraint_motion,
    engine.QVA,
    tuple(engine.Result(name, (Axis.POINT,)) for name in ("derror_dp", "dvelocity_dp", "dacceleration_dp")),
    tables=row_slots,
    with_elements=engine.indifferent,
)
JACOBIAN = engine.Kernel(
    kernels.constraint_jacobian,
    engine.Q,
    (engine.Result("djacobian_dp", (Axis.POINT, Axis.PER_POSITION)),),
    tables=row_slots,
    with_elements=engine.indifferent,
)


@dataclass(frozen=True, eq=False)
class ConstraintDesignDerivatives(Result):
    """Derivatives of the errors of constraints, and of their time derivatives, at fixed q, v and a, (..., m, p) each.

    Attributes
    ----------
    derror_dp : ndarray
        Of φ.
    dvelocity_dp : ndarray or None
        Of φ̇ = G v; None unless v was given.
    dacceleration_dp : ndarray or None
        Of φ̈ = G a + Ġ v; None unless a was given.  The drift γ is −φ̈ at a = 0.
    """

    derror_dp: Array
    dvelocity_dp: Array | None = None
    dacceleration_dp: Array | None = None


def constraint_design_derivatives(
    design: Design,
    constraints: ConstraintSet,
    q: ArrayLike,
    v: ArrayLike | None = None,
    a: ArrayLike | None = None,
    *,
    threads: int | None = None,
) -> ConstraintDesignDerivatives:
    """∂φ/∂p, ∂φ̇/∂p and ∂φ̈/∂p at fixed q, v and a.

    What the descriptions say in numbers (points, lengths, ratios) does not vary; frames that are named there do, if
    they are parameters of the design.

    Parameters
    ----------
    design : Design
    constraints : ConstraintSet
        Of the design's model.
    q, v, a : array_like, shape (..., n)
        Coordinates, speeds and accelerations; v and a may be left out.
    threads : int, optional
        See :func:`set_threads`.

    Returns
    -------
    ConstraintDesignDerivatives
        ``derror_dp`` and, if v and a were given, ``dvelocity_dp`` and ``dacceleration_dp``, shape (..., m, p) each.

    Examples
    --------
    >>> from kinegrad import samples
    >>> model, constraints = samples.four_bar()
    >>> design = Design(model, ["rocker.placement.x"])
    >>> constraint_design_derivatives(design, constraints, [0, 0, 0]).derror_dp[:, 0].round(6)
    array([0.197917, 0.980219])
    """
    model, state = model_of(design), state_of(q, v, a)
    check_set(model, constraints)
    design = elements.without_elements(design)  # no force enters
    if model.coordinates:
        at = engine.Expansion(model, dict(zip("qva", state, strict=False)))
        state, design = tuple(at.arguments(engine.QVA)), coordinates.primitive_design(design)
    batch, found = run_rows(MOTION, design, constraints, state, threads)
    found = found[: 1 + (v is not None) + (a is not None)]
    batch.results = list(found)
    batch.check_results()
    return ConstraintDesignDerivatives(*(parameters_last(batch, x, (constraints.m,)) for x in found))


def constraint_jacobian_design_derivatives(
    design: Design, constraints: ConstraintSet, q: ArrayLike, *, threads: int | None = None
) -> Array:
    """∂G/∂p of the Jacobian, shape (..., m, n, p); arguments as of :func:`constraint_design_derivatives`.

    Examples
    --------
    >>> from kinegrad import samples
    >>> model, constraints = samples.cart_pendulum(constrained=True)
    >>> constraint_jacobian_design_derivatives(Design(model, ["rod.mass"]), constraints, np.zeros(4)).shape
    (2, 4, 1)
    """
    model, state = model_of(design), (q,)
    check_set(model, constraints)
    design = elements.without_elements(design)
    at = engine.Expansion(model, {"q": q}) if model.coordinates else None
    if at is not None:
        state, design = (at.q,), coordinates.primitive_design(design)
    batch, (found,) = run_rows(JACOBIAN, design, constraints, state, threads)
    batch.results = [found]
    batch.check_results()
    n = len(model.joints)
    if at is None:
        return parameters_last(batch, found, (constraints.m, n))
    whole = found.reshape(*batch.shape, design.p, constraints.m, n)
    return np.ascontiguousarray(np.moveaxis(at.by_acceleration(whole, inner=2), -3, -1))


def run_rows(
    kernel: engine.Kernel,
    design: Design,
    constraints: ConstraintSet,
    state: tuple[Any, ...],
    threads: int | None,
    rest: tuple[Any, ...] = (),
) -> tuple[engine.Batch, list[Array]]:
    """The batch, and slopes, (states, p, columns), of what a kernel of duals finds."""
    design = without_elements(design)
    batch, pairs, _ = followed(design, kernel, state, [None] * len(kernel.state), None)
    rows, moved = constraints._tables, moved_tables(design, constraints, frame_slopes(design), design.p)
    fixed = [list(rows), *((np.zeros((1, x.shape[1])), x) for x in moved), *rest]
    slopes = kernel_slopes(design)[0]
    _, found = engine.run_directions(kernel, batch, slopes, pairs, fixed, threads, (constraints.m,))
    return batch, found


def moved_tables(
    design: Design, constraints: ConstraintSet, frames: dict[str, Array], count: int
) -> tuple[Array, Array]:
    """Slopes of points and directions of constraints, (count, 6 k) each, as frames in links move."""
    if frames:
        return table_slopes(design.model, constraints.constraints, frames)
    rows = constraints._tables
    return np.zeros((count, rows.ends.size)), np.zeros((count, rows.vector.size))
