"""Design derivatives of models with force elements between their links, from those of the same models without.

With Q(q, v, p) the generalised forces of the elements (``_engine/elements.py``), torques are τ₀ − Q, and accelerations
are those that τ + Q cause without elements.  Parameters enter Q by the constants of elements, by frames that these are
attached to, and by the geometry of the mechanism; along all of these ``_kernels/elements.py`` is differentiated as it
is, compiled for duals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad._kernels import dual_kernels as kernels
from kinegrad._kernels import elements as layout
from kinegrad.design.coordinates import primitive_design
from kinegrad.design.parameters import Design, element_slopes, kernel_slopes, variant

__all__ = ["Changes", "changes", "without_elements"]

Array = NDArray[np.float64]
_FORCES = engine.Kernel(kernels.element_forces, engine.QV, engine.ELEMENTS.results, layout.PER_JOINT)


class Changes(NamedTuple):
    """Forces of elements and derivatives with respect to parameters.

    Attributes
    ----------
    Q : ndarray, shape (..., nv)
    dQ_dp : ndarray, shape (..., nv, p)
        Total, where the state follows the parameters.
    denergy_dp : ndarray, shape (..., p)
        Of all elements together, at fixed state.
    """

    Q: Array
    dQ_dp: Array
    denergy_dp: Array

    def added(self, name: str, value: Any) -> Array:
        """dQ/dp and a derivative that was given, if any; that alone where its shape is wrong, which the gate says."""
        if value is None:
            return self.dQ_dp
        x = engine.real(name, value)
        with np.errstate(all="ignore"):  # what overflows is found by the gate
            return x + self.dQ_dp if _fits(x, self.dQ_dp.shape) else x


def without_elements(design: Design) -> Design:
    """The same parameters of the model without elements, made once per design; or this one, if it has none."""
    if not design.model.elements:
        return design
    found: Design | None = design.__dict__.get("_without_elements")
    if found is None:
        found = design.__dict__["_without_elements"] = variant(design, design.model.without_elements)
    return found


def changes(design: Design, q: Any, v: Any, dq: Any = None, dv: Any = None, threads: int | None = None) -> Changes:
    """What elements do at q and v, (..., nq) and (..., nv), which follow the parameters as dq, dv, (..., nv, p), do."""
    model, table, slopes = design.model, engine.element_table(design.model), element_slopes(design)
    acting = engine.element_derivatives(model, (q, v), threads)
    varies = slopes.reshape(design.p, -1, layout.NUMBERS)[:, :, [layout.LENGTH, layout.DAMPING]].any(axis=(0, 2))
    springs = table.links[::5] == layout.SPRING
    plain, state, at = without_elements(design), (q, v), None
    if model.coordinates:
        at = engine.Expansion(plain.model, {"q": q, "v": v})
        plain, state = primitive_design(plain), (at.q, at.v)
    batch, rows, _ = engine.checked(_FORCES, plain.model, state)
    batch.check_finite()
    pairs = [(engine.kernel_array(np.broadcast_to(x, (batch.states, batch.n))), None) for x in rows]
    fixed = [table.links, table.way, (table.numbers, slopes)]
    points = (len(springs),)
    (_, length, _), (dQ, _, dU) = engine.run_directions(
        _FORCES, batch, kernel_slopes(plain)[0], pairs, fixed, threads, points
    )
    engine.check_apart(model, length.reshape(*batch.shape, *points), springs & varies)
    dQ_dp = np.ascontiguousarray(np.moveaxis(dQ.reshape(*batch.shape, design.p, batch.n), -2, -1))
    with np.errstate(all="ignore"):  # what overflows is found below
        if at is not None:
            dQ_dp = at.G.pull(dQ_dp, -2)
        for matrix, name, follow in ((acting.dQ_dq, "dq_dp", dq), (acting.dQ_dv, "dv_dp", dv)):
            if follow is not None:
                dQ_dp = dQ_dp + matrix @ _checked(name, follow, dQ_dp.shape)
        dU_dp = dU.sum(axis=-1).reshape(*batch.shape, design.p)
    engine.check_sums(dQ_dp, dU_dp)
    return Changes(acting.Q, dQ_dp, dU_dp)


def _checked(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """A derivative of the state; zero where its shape is wrong or it is not finite, which the gate says."""
    x = engine.real(name, value)
    core = shape[-2:]
    if not _fits(x, shape) or not np.isfinite(x).all():
        return np.zeros(core)
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, core))


def _fits(x: Array, shape: tuple[int, ...]) -> bool:
    """Whether x broadcasts with derivatives of this shape, (..., nv, p), and to its last axes."""
    try:
        return np.broadcast_shapes(x.shape, shape)[-2:] == shape[-2:]
    except ValueError:
        return False
