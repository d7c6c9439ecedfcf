"""Forward and hybrid dynamics of models whose coordinates are not their joints.

**In series.**  Where the joints of each coupling are connected, as those of a knee are, articulated bodies take them as
one joint: O(n), ``_kernels/series.py``.  The hinges of a quaternion's pose are prescribed to stand still.

**By the mass matrix.**  Where one coordinate moves joints of different branches, or joints with others between them,
M = Gᵀ M̂ G of the free coordinates is factored.  It has the zeros of a tree, though not of the mechanism's: coordinates
are eliminated from the last to the first, and what the elimination of one connects is connected in all that follow.
The parent of a coordinate is the last of those that remain and are connected with it, which makes a tree on whose paths
all entries are, those that fill in too ([davis2006] 4.1).  So ``_kernels/tree_solve.py`` factors M as it does that of a
mechanism.  Derivatives of accelerations go this way, too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinegrad._engine.coordinates import Chart
from kinegrad._engine.gate import Batch, free_joint, kernel_array
from kinegrad._engine.tables import once, reach, tree_of, tree_places
from kinegrad._engine.threads import run
from kinegrad._kernels import aba_derivatives
from kinegrad._kernels.series import ALONE, PRESCRIBED
from kinegrad._kernels.tree_solve import PANEL, tree_solve
from kinegrad.errors import KinegradError, SingularError
from kinegrad.model import Model, Topology
from kinegrad.model.coordinates import HINGES, POSE, Layout

__all__ = ["SpeedBatch", "factor_pivot", "inertial", "roles", "solve_derivatives", "solve_tree", "speed_tree"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
FREE = 1e-12  # a pivot below this part of the diagonal is rounding: nothing resists the coordinate


class SpeedBatch(Batch):
    """States of joints, (..., n) by name, of which errors name the coordinates of the model that the joints are of.

    Parameters
    ----------
    chart : Chart
    state, loads : dict
        As of a Batch.
    speeds : ndarray of int
        The speed that stands behind each joint, or row of a system, of which a kernel may find that nothing resists it.
    """

    __slots__ = ("_owner", "_speeds")

    def __init__(self, chart: Chart, state: dict[str, Array], loads: dict[str, Array] | None, speeds: Integers) -> None:
        super().__init__(chart.primitive, state, loads)
        self._owner, self._speeds = chart.model, speeds

    def free_joint(self, joint: int, state: int) -> KinegradError:
        """What to raise when nothing seems to resist a coordinate in one of the states."""
        found = super().free_joint(0, state)
        if not isinstance(found, SingularError):
            return found
        return free_joint(self._owner, int(self._speeds[joint]), state, self.shape, "coordinate")


def roles(layout: Layout, held: Flags) -> Integers:
    """What ``_kernels/series.py`` is to do with each joint, (n,), where some speeds, (nv,), are `held`."""
    role, speed = np.full(layout.n, ALONE), layout.speed_of
    role[layout.coupled] = layout.joint_of[layout.coupled_v]
    for first, _, _ in layout.balls:
        role[first + POSE : first + len(HINGES)] = range(first + POSE, first + len(HINGES))
    return np.where((speed < 0) | held[speed], PRESCRIBED, role)


def solve_tree(chart: Chart, M: Array, right: Array, free: Integers, threads: int | None) -> Array:
    """x of M x = right, (..., k), with the mass matrix of k coordinates that are `free`, (..., k, k)."""
    pairs, slots = speed_tree(chart.model, free)
    batch, k = SpeedBatch(chart, {"q": chart.q}, None, free), len(free)
    flat = kernel_array(M.reshape(batch.states, k * k)), kernel_array(right.reshape(batch.states, k))
    _, x = batch.output((k,))
    run(tree_solve, batch, slots, threads, (pairs, *flat, x), pivots=True)
    batch.check_results()
    return x.reshape(*batch.shape, k)


def solve_derivatives(chart: Chart, by_q: Array, by_v: Array, M: Array, threads: int | None) -> list[Array]:
    """−M⁻¹ ∂τ/∂δ, −M⁻¹ ∂τ/∂v and M⁻¹, (..., nv, nv) each, where M is known to be regular."""
    nv = chart.layout.nv
    (place, tree), _ = speed_tree(chart.model, np.arange(nv))
    reached = once(chart.model, "reach", lambda: reach(Topology(_elimination(chart.layout, np.arange(nv)))))
    batch = SpeedBatch(chart, {"q": chart.q}, None, chart.layout.some_speed_of)
    given = [kernel_array(x.reshape(batch.states, nv * nv)) for x in (by_q, by_v, M)]
    pairs = batch.outputs((nv, nv), 3)
    slots = len(place) + 2 * PANEL * nv + 3 * nv * nv
    run(
        aba_derivatives.solve_derivatives,
        batch,
        slots,
        threads,
        ((place, tree, reached), *given, *(x for _, x in pairs)),
    )
    return [x for x, _ in pairs]


def speed_tree(model: Model, free: Integers) -> tuple[tuple[Integers, tuple[Integers, ...]], int]:
    """Tables for systems of coordinates that are `free`, and the slots they need; made once for a model and those."""

    def make() -> tuple[tuple[Integers, tuple[Integers, ...]], int]:
        topology = Topology(_elimination(model.layout, free))
        place, _ = tree_places(topology)
        return (place, tree_of(topology)), len(place) + len(free)

    found: tuple[tuple[Integers, tuple[Integers, ...]], int] = once(model, ("tree", free.tobytes()), make)
    return found


def _elimination(layout: Layout, free: Integers) -> list[int]:
    """The parent of each free coordinate in the tree of their elimination, −1 for roots."""
    number = {int(v): k for k, v in enumerate(free)}
    before: list[set[int]] = [set() for _ in free]
    for row, column in zip(*layout.pattern, strict=True):
        if column < row and int(row) in number and int(column) in number:
            before[number[int(row)]].add(number[int(column)])
    parents = [-1] * len(free)
    for k in reversed(range(len(free))):
        if before[k]:
            parents[k] = max(before[k])
            before[parents[k]] |= before[k] - {parents[k]}
    return parents


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
