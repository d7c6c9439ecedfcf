"""Section 4.4 of [xiang2008]: what the regular and the recursive Lagrangian equations cost, by degrees of freedom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinegrad import samples
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.papers.report.page import Progress
from kinegrad.papers.xiang2008.regular import chain_of, recursive_torques, regular_derivative, regular_torques

__all__ = ["FORMULATIONS", "SIZES", "Cost", "costs", "growth"]

Array = NDArray[np.float64]
FORMULATIONS: dict[str, tuple[Callable[..., Any], int, int]] = {  # order for large n, and the largest n
    "regular, torques": (regular_torques, 4, 64),
    "recursive, torques": (recursive_torques, 1, 256),
    "regular, ∂τ/∂q": (regular_derivative, 5, 16),
}
SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
REPEATS, SHORTEST = 7, 2e-4  # measurements of which the best counts; s that one takes at least


@dataclass(frozen=True)
class Cost:
    """Time of one formulation for one state of a chain.

    Attributes
    ----------
    formulation : str
        A key of :data:`FORMULATIONS`.
    n : int
        Degrees of freedom.
    seconds : float
        Best of several measurements, processor time of one thread.
    difference : float
        Of its results from those of kinegrad's kernels, relative to the largest.
    """

    formulation: str
    n: int
    seconds: float
    difference: float


def costs(sizes: Sequence[int], say: Progress) -> list[Cost]:
    """Times and differences of all formulations on spatial chains of hinges, at random states."""
    rows = []
    for done, n in enumerate(sizes):
        say("formulations", done, len(sizes))
        model = samples.spatial_chain(n)
        chain, state = chain_of(model), 0.5 * np.random.default_rng([2008, n]).normal(size=(3, n))
        torques = inverse_dynamics(model, *state)
        by_q = np.asarray(inverse_dynamics_derivatives(model, *state).dtau_dq)
        for name, (function, _, largest) in FORMULATIONS.items():
            if n <= largest:
                exact = by_q if function is regular_derivative else torques
                off = float(np.abs(function(chain, *state) - exact).max() / np.abs(exact).max())
                rows.append(Cost(name, n, _best(partial(function, chain, *state)), off))
    say("formulations", len(sizes), len(sizes))
    return rows


def growth(rows: Sequence[Cost], formulation: str) -> float:
    """Slope on logarithmic axes, over the sizes from a quarter of the largest on.

    >>> growth([Cost("regular, torques", n, 3e-9 * n**4, 0.0) for n in (2, 8, 16, 32)], "regular, torques").__round__(6)
    4.0
    """
    own = [row for row in rows if row.formulation == formulation]
    points = np.log([(row.n, row.seconds) for row in own if row.n >= max(x.n for x in own) / 4])
    return float(np.polyfit(points[:, 0], points[:, 1], 1)[0])


def _best(run: Callable[[], Any]) -> float:
    start = thread_time()
    run()
    count = max(1, round(SHORTEST / max(thread_time() - start, 1e-7)))
    times = []
    for _ in range(REPEATS):
        start = thread_time()
        for _ in range(count):
            run()
        times.append((thread_time() - start) / count)
    return min(times)
