"""What integrators see of a motion, y and ẏ, and what an integration leaves behind: stretches between events.

The state is (q, v); with p design parameters it is joined by dq/dp and dv/dp, whose rates are dv/dp and the total
da/dp of the law ([anderson2002] (4)–(5)): 1 + p rows of two numbers for each joint,

    y = [q v; dq/dp₁ dv/dp₁; …],    ẏ = [v a; dv/dp₁ da/dp₁; …].

Only free joints are integrated; those of a prescribed motion, and its slopes, are known at any time.

With quaternions there are four numbers of q to three speeds, and dq/dp is in the tangent: see
:mod:`kinegrad.simulate.turning`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.integrate import OdeSolution

from kinegrad.simulate.law import Law
from kinegrad.simulate.turning import rate, tangent_rate

__all__ = ["Stretch", "Track", "jacobian_of", "pack", "rate_of", "slopes_of", "state_of"]

Array = NDArray[np.float64]


def rate_of(law: Law, t: float, y: Array) -> Array:
    """ẏ: [anderson2002] (4)–(5)."""
    free = law.free
    q, v = law.whole(t, *state_of(law, y))
    q_dot = rate(law.model, q, v)[law.free_q] if law.turning else v[free]
    if law.design is None:
        return np.concatenate([q_dot, law.acceleration(t, q, v)[0][free]])
    dq, dv = law.whole_slopes(t, *slopes_of(law, y))
    a, _, da, _ = law.with_sensitivity(t, q, v, dq, dv)
    dq_dot = tangent_rate(law.model, v, dq, dv) if law.turning else dv
    return np.concatenate([q_dot, a[free], np.concatenate([dq_dot[free], da[free]]).T.ravel()])


def state_of(law: Law, y: Array) -> tuple[Array, Array]:
    """q and v of the free joints, (..., f) each, or more of q with quaternions."""
    first, f = len(law.free_q), len(law.free)
    return y[..., :first], y[..., first : first + f]


def slopes_of(law: Law, y: Array) -> tuple[Array, Array]:
    """dq/dp and dv/dp of the free joints, (..., f, p); of quaternions in the tangent."""
    f = len(law.free)
    lower = y[..., len(law.free_q) + f :].reshape(*y.shape[:-1], -1, 2 * f).swapaxes(-1, -2)
    return lower[..., :f, :], lower[..., f:, :]


def pack(q: Array, v: Array, dq: Array, dv: Array) -> Array:
    """y of the free joints."""
    return np.concatenate([q, v, np.concatenate([dq, dv]).T.ravel()])


def jacobian_of(law: Law, t: float, y: Array, *, sparse: bool) -> Any:
    """∂ẏ/∂y without the second derivatives: the Jacobian of a row, repeated."""
    f = len(law.free)
    rows = len(y) // (2 * f)
    da_dq, da_dv = law.jacobian(t, *law.whole(t, *state_of(law, y)))
    one = np.block([[np.zeros((f, f)), np.eye(f)], [da_dq, da_dv]])
    if rows == 1:
        return one
    return (
        scipy.sparse.block_diag([scipy.sparse.csc_array(one)] * rows, format="csc")
        if sparse
        else np.kron(np.eye(rows), one)
    )


class Stretch(NamedTuple):
    """A part of a motion that one law governs: the ends of its steps, its first y, its interpolation."""

    law: Law
    edges: Array
    start: Array
    between: OdeSolution | None

    def __call__(self, t: Array) -> Array:
        """y, (len(t), (1 + p) 2f)."""
        if self.between is None:
            return np.broadcast_to(self.start, (len(t), len(self.start))).copy()
        y: Array = self.between(t).T
        y[t == self.edges[0]] = self.start
        return y


class Track:
    """What an integration leaves behind: its stretches, one after the other, and what it reports.

    Where one ends and the next begins, the next one counts.
    """

    def __init__(self, stretches: list[Stretch]) -> None:
        self.stretches = stretches
        self.report: dict[str, Any] = {}

    @property
    def edges(self) -> Array:
        """The ends of all steps."""
        parts = [self.stretches[0].edges[:1], *(stretch.edges[1:] for stretch in self.stretches)]
        return np.concatenate(parts)

    @property
    def row_names(self) -> tuple[str, ...]:
        """Of all constraints."""
        return getattr(self.stretches[0].law, "row_names", ())

    def parts(self, t: Array) -> list[tuple[Stretch, Array]]:
        """Times, increasing, by the stretch they are in; a stretch without a time is left out."""
        starts = [stretch.edges[0] for stretch in self.stretches]
        which = np.maximum(np.searchsorted(starts, t, side="right") - 1, 0)
        return [(self.stretches[k], t[which == k]) for k in np.unique(which).tolist()]
