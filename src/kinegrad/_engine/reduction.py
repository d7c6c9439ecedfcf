"""Forward and hybrid dynamics of models whose coordinates are not their joints.

**Quaternions.**  The hinges of a pose stand still, so hybrid dynamics of the joints, with these prescribed, gives the
accelerations â of the others, and a = â − γ: O(n).

**Couplings.**  All joints of k coupled coordinates that are free are prescribed too, at first with a = 0; then each
coordinate s is accelerated by one alone, without gravity, speeds or torques.  Everything is linear in these
accelerations, so that those which the torques τ_s cause solve

    R a = τ − Gᵀ τ̂⁰,    R_st = (Gᵀ τ̂ᵗ)_s                                                              (1)

where τ̂⁰ are the torques of the first run and τ̂ᵗ those of t accelerated.  R, k × k, is the mass matrix Gᵀ M̂ G with all
other coordinates eliminated: symmetric and positive.  The work is O(n (k + 1) + k³) for any topology.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.coordinates import Chart
from kinegrad.model import Model

__all__ = ["FREE", "Reduced", "factor_pivot", "inertial", "solve_hybrid"]

Array = NDArray[np.float64]
FREE = 1e-12  # a pivot below this part of the diagonal is rounding: nothing resists the coordinate


class Reduced(Exception):
    """A coordinate, and the state, of which nothing resists it."""

    def __init__(self, speed: int, state: int) -> None:
        super().__init__()
        self.speed, self.state = speed, state


def solve_hybrid(
    chart: Chart,
    shape: tuple[int, ...],
    tau: Array,
    a: Array,
    held: NDArray[np.bool_],
    run: Callable[[Model, Array, Array, Array, Array, NDArray[np.bool_]], tuple[Array, Array]],
    inverse: Callable[[Model, Array, Array, Array], Array],
) -> tuple[Array, Array]:
    """a and τ, (..., nv), of all coordinates.

    `chart` is at q and v.  `held` are the speeds, (nv,), whose accelerations are given in `a`, the others' torques in
    `tau`.  ``run(model, q̂, v̂, τ̂, â, held joints)`` is hybrid dynamics of joints, ``inverse(model, q̂, v̂, â)`` inverse.
    """
    layout = chart.layout
    coupled = np.unique(layout.coupled_v)
    coupled = coupled[~held[coupled]]  # those to be found by (1)
    speed = layout.speed_of
    stands = (speed < 0) | held[speed] | np.isin(speed, layout.coupled_v)
    given = np.where(held, a, 0.0)
    accelerated = chart.G.push(given) + chart.drift
    pushed = np.where(stands, 0.0, tau[..., np.maximum(speed, 0)])
    primitive, q, v = chart.primitive, chart.q, chart.v
    found, forces = run(primitive, q, v, pushed, np.where(stands, accelerated, 0.0), stands)
    if len(coupled):
        bare = inertial(primitive)
        still = np.zeros(layout.n)
        units = np.eye(layout.nv)[coupled]
        along = np.stack([np.broadcast_to(chart.G.push(u), (*shape, layout.n)) for u in units])
        at = np.broadcast_to(q, along.shape)
        whole = chart.G.pull(inverse(bare, at, still, along))  # M of the coupled ones, for the size of pivots
        moved, needed = run(bare, at, still, still, along, stands)
        R = np.moveaxis(chart.G.pull(needed)[..., coupled], 0, -1)
        M = np.moveaxis(whole[..., coupled], 0, -1)
        R = (R + np.swapaxes(R, -1, -2)) / 2
        stuck = factor_pivot(R, np.diagonal(M, axis1=-2, axis2=-1))
        if stuck is not None:
            raise Reduced(int(coupled[stuck[0]]), stuck[1])
        right = (tau - chart.G.pull(forces))[..., coupled]
        x = np.linalg.solve(R, right[..., None])[..., 0]
        for k in range(len(coupled)):
            found = found + x[..., k, None] * moved[k]
            forces = forces + x[..., k, None] * needed[k]
        given = np.broadcast_to(given, (*shape, layout.nv)).copy()
        given[..., coupled] = x
    alone = np.zeros((*shape, layout.nv), dtype=np.float64)
    free = found - chart.drift
    alone[..., speed[speed >= 0]] = free[..., speed >= 0]
    known = held | np.isin(np.arange(layout.nv), layout.coupled_v)
    return np.where(known, given, alone), np.where(held, chart.G.pull(forces), tau)


def inertial(model: Model) -> Model:
    """The model with nothing but its inertia, made once per model."""
    found: Model | None = model.__dict__.get("_inertial")
    if found is None:
        zero = np.zeros(model.n)
        found = model.replace(gravity=np.zeros(3), stiffness=zero, damping=zero, elements={})
        object.__setattr__(model, "_inertial", found)
    return found


def factor_pivot(M: Array, size: Array) -> tuple[int, int] | None:
    """The first state, with the first row, of which a pivot of a symmetric matrix is rounding: (row, state), or None.

    M is (..., k, k), and `size`, (..., k), the inertia of each row before anything was eliminated.
    """
    k = M.shape[-1]
    S, limit = M.reshape(-1, k, k).copy(), FREE * size.reshape(-1, k)
    stuck = np.full(len(S), -1)
    with np.errstate(all="ignore"):  # a pivot of zero is found, and what follows it does not matter
        for j in reversed(range(k)):  # from the leaves, as articulated bodies are
            pivot = S[:, j, j]
            stuck = np.where((stuck < 0) & ~(pivot > limit[:, j]), j, stuck)
            S[:, :j, :j] -= S[:, :j, j, None] * (S[:, j, :j] / pivot[:, None])[:, None, :]
    states = np.flatnonzero(stuck >= 0)
    return (int(stuck[states[0]]), int(states[0])) if len(states) else None
