"""The adjoint of explicit fixed steps, compiled, for torques that are known beforehand.

What :mod:`kinegrad.simulate.adjoint` says, segment by segment: compiled code makes the steps of one again, the terms of
the objective are evaluated at all of them at once, and compiled code goes backwards through them.  No matrix is
formed, so that a step costs O(n) whatever the number of parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinegrad import _engine as engine
from kinegrad.design.dynamics import share_of_parameters
from kinegrad.design.parameters import kernel_constants
from kinegrad.errors import SolveError
from kinegrad.motion import Motion
from kinegrad.objectives.objective import Objective, add_terms
from kinegrad.objectives.terms import Term
from kinegrad.simulate.fixed import Scheme, check_reached, first_divergence, gregory
from kinegrad.simulate.fixed_compiled import check_free, planned
from kinegrad.simulate.law import Law

__all__ = ["CompiledAdjoint"]

Array = NDArray[np.float64]
Nodes = NDArray[np.int64]


class CompiledAdjoint:
    """J and its derivatives, gathered from the end of a motion to its start.

    Attributes
    ----------
    value : ndarray, shape (...)
    q, v : ndarray, shape (..., n)
        ∂J with respect to the initial state.
    dtau : ndarray, shape (steps, ..., n)
    """

    def __init__(
        self, law: Law, scheme: Scheme, h: float, steps: int, length: int, q: Array, v: Array, objective: Objective
    ) -> None:
        self._law, self._shape, self._h = law, q.shape, h
        self._todo, self._tau = planned(law, scheme, h, steps, length, q, v)
        checkpoints = self._checkpoints(scheme)
        constants = engine.mechanism(law.model) if law.design is None else kernel_constants(law.design)
        self._back = engine.Reversal(constants, self._todo, min(length, steps))
        self.value, self.dtau = np.zeros(q.shape[:-1]), np.zeros((steps, *q.shape))
        self._dp = None if law.design is None else np.zeros((*q.shape[:-1], law.design.p))  # explicit in the terms
        weights = gregory(steps, h)
        for first in reversed(range(0, steps, length)):
            nodes = np.arange(first, min(first + length, steps))
            part = self._back.replay(*checkpoints[first // length], first, int(nodes[-1]) + 1)
            if nodes[-1] + 1 == steps:
                self._through_end(part.q[-1], part.v[-1], objective, weights[-1:])
            share = self._share(part, nodes, objective.integral, weights[nodes])
            self.dtau[nodes] += self._reversed(part, share)
        self.q, self.v = (x.reshape(q.shape) for x in (self._back.to_q, self._back.to_v))

    def by_parameters(self) -> Array | None:
        """Total dJ/dp."""
        if self._dp is None or self._law.design is None:
            return None
        shares = share_of_parameters(self._law.design, self._back.by_constants())
        return self._dp + shares.reshape(self._dp.shape)

    def _checkpoints(self, scheme: Scheme) -> list[tuple[Array, Array]]:
        """The states before steps 0, length, 2 length, …, (states, n); SolveError if the motion diverges."""
        law, h, batch = self._law, self._h, self._shape[:-1]
        found = engine.march([law.model], self._todo)
        check_free([law.model], scheme, h, batch, found.free)
        lost = found.lost.reshape(batch)
        if (lost >= 0).any():
            first = lost[lost >= 0].min()
            raise SolveError(first_divergence(law.model, first * h, found.before.reshape(self._shape), lost != first))
        return list(zip(found.q, found.v, strict=True))

    def _through_end(self, q: Array, v: Array, objective: Objective, weight: Array) -> None:
        """Begin, with what J has of the last moment."""
        part, nodes = self._back.end(q, v), np.array([len(self.dtau)])
        speed, a = v.reshape(self._shape), part.a[0].reshape(self._shape)
        check_reached(self._law.model, len(self.dtau) * self._h, speed, a, a)  # states may be finite and their rate not
        share = self._share(part, nodes, objective.integral, weight) + self._share(
            part, nodes, objective.end, np.ones(1)
        )
        self.dtau[-1:] += self._reversed(part, share)

    def _share(self, part: engine.Segment, nodes: Nodes, terms: Sequence[Term], weights: Array) -> Array:
        """Weighted partial derivatives of terms before the steps of a segment, (4, steps, ..., n) for q, v, a, τ."""
        shape = len(nodes), *self._shape
        tau = np.array(np.broadcast_to(self._tau[part.when[:, 0]], shape))
        q, v, a = (x[: len(nodes)].reshape(shape) for x in (part.q, part.v, part.a))
        now = Motion(self._law.model, nodes * np.float64(self._h), q, v, a, tau, design=self._law.design)
        return add_terms(terms, now, weights, self.value, self._dp)

    def _reversed(self, part: engine.Segment, share: Array) -> Array:
        """Back to the start of a segment; ∂J with respect to its torques, (steps, ..., n)."""
        by_q, by_v, by_a = share[:3].reshape(3, *part.a.shape)
        pushed: Array = self._back.reverse(part, by_q, by_v, by_a).reshape(share.shape[1:]) + share[3]
        return pushed
