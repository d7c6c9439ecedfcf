"""Figures 5 and 6 of [zhakatayev2023] where the paper and this model disagree, and what might explain it.

The paper says that at t = 0.5 s and 1 s Q18 = 0 and Q20 ≠ 0, and that the estimate of ∂Q18/∂q14 has spikes there but
those of the other two entries have none.  Three explanations are tried: limbs that are not slender rods, joints that
are counted from another number, and instants that are summed up rather than multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kinegrad import samples
from kinegrad.dynamics import inverse_dynamics
from kinegrad.dynamics_derivatives import inverse_dynamics_derivatives
from kinegrad.papers.zhakatayev2023.experiment import (
    BREAKDOWN,
    FIGURE_4,
    FIGURE_5,
    SPIKES,
    Entry,
    Experiment,
    motion,
    topological_zeros,
    torques_by,
)
from kinegrad.papers.zhakatayev2023.jacobianest import jacobianest

__all__ = ["Disagreements", "disagreements"]

VANISHING, OTHER = 18, 20  # torques of figure 6, from 1: the one that the paper finds zero, and the one it does not
STEP = 0.01  # s, between the paper's instants
THICKNESS = 0.1  # radius of a limb by its length
ZERO = 1e-9  # N·m: rounding of torques of 1000 N·m


@dataclass(frozen=True)
class Disagreements:
    """Torques and spikes where all coordinates vanish.

    Attributes
    ----------
    rods, cylinders : tuple of float
        Q18 and Q20 at t = 0.5 s, N·m, of slender limbs and of limbs a tenth as thick as long.
    shifts : dict of int to list of str
        Shifts of all joint numbers with which Q18 vanishes and Q20 does not; with the entries of figures 4 and 5 that
        topology then makes zero.
    seen : dict of str to list of float
        Half seconds at which the estimate of each entry of figure 5 is visibly wrong, s, by the variable: q, v, a.
    summed : dict of str to list of float
        The same with instants that are sums of 0.01 s.
    """

    rods: tuple[float, float]
    cylinders: tuple[float, float]
    shifts: dict[int, list[str]]
    seen: dict[str, list[float]]
    summed: dict[str, list[float]]


def disagreements(x: Experiment) -> Disagreements:
    """Compute what figures 5 and 6 show where coordinates vanish, and under three other assumptions."""
    thick = samples.human43(thickness=THICKNESS)
    torque = {t: inverse_dynamics(x.model, *motion(x.model.n, t)) for t in (0.5, 1.0)}
    cylinders = inverse_dynamics(thick, *motion(thick.n, 0.5))
    zeros, n = topological_zeros(x.model), x.model.n
    vanish = {k + 1 for k in range(n) if all(abs(values[k]) < ZERO for values in torque.values())}
    shifts = {}
    for shift in range(1 - VANISHING, n - OTHER + 1):
        if VANISHING + shift in vanish and OTHER + shift not in vanish:
            moved = [Entry(row.torque + shift, row.by, row.joint + shift) for row in FIGURE_4 + FIGURE_5]
            lost = [row for row in moved if not (0 < row.joint <= n and 0 < row.torque <= n) or zeros[row.place[1:]]]
            shifts[shift] = [f"{row.by}: {row.torque - shift}, {row.joint - shift}" for row in lost]
    summed = np.cumsum(np.full(round(SPIKES[-1] / STEP), STEP))
    half = summed[round(SPIKES[1] / STEP) - 1 :: round(SPIKES[1] / STEP)]
    pair = (VANISHING - 1, OTHER - 1)
    return Disagreements(
        rods=(float(torque[0.5][pair[0]]), float(torque[0.5][pair[1]])),
        cylinders=(float(cylinders[pair[0]]), float(cylinders[pair[1]])),
        shifts=shifts,
        seen=_wrong(x, SPIKES[1:]),
        summed=_wrong(x, half.tolist()),
    )


def _wrong(x: Experiment, instants: Sequence[float]) -> dict[str, list[float]]:
    """Instants at which the rule of jacobianest is visibly wrong in the entries of figure 5, by the variable."""
    found: dict[str, list[float]] = {entry.by: [] for entry in FIGURE_5}
    for t in instants:
        state = motion(x.model.n, t)
        exact = inverse_dynamics_derivatives(x.model, *state)
        for entry in FIGURE_5:
            by, i, j = entry.place
            estimate = jacobianest(torques_by(x.model, state, by), state[by], [j])[i, 0]
            value = np.asarray((exact.dtau_dq, exact.dtau_dv, exact.dtau_da)[by])[i, j]
            if abs(estimate - value) > BREAKDOWN * float(np.abs(x.exact[:, by, i, j]).max()):
                found[entry.by].append(round(t, 6))
    return found
